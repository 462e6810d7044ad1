# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# Completion for bash. The command itself finds the words that fit: only it knows the instances and trackers.

_latency_tracker() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t\n' words current breaks before=
    # the user's own command, which has its own completions
    if [[ $line == *' -- '* ]]; then
        local first
        for first in "${!COMP_WORDS[@]}"; do
            [[ ${COMP_WORDS[first]} != -- ]] || break
        done
        ! declare -F _command_offset >/dev/null || _command_offset $((first + 1))
        return
    fi
    # COMP_WORDS does not have whole words, since bash also splits at = and :
    read -ra words <<<"$line"
    [[ $line != *[[:space:]] ]] || words+=('')
    current=${words[-1]}
    IFS=$'\n'
    # shellcheck disable=SC2207 # one word a line
    COMPREPLY=($(LATENCY_TRACKER_COMPLETE=bash _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        "${words[0]/#\~/$HOME}" -- "${words[@]}" 2>/dev/null))
    # bash replaces only the part after its last word break
    breaks=${COMP_WORDBREAKS//[^=:]/}
    [[ -z $breaks ]] || before=${current%"${current##*["$breaks"]}"}
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
    [[ ${#COMPREPLY[@]} -ne 1 || ${COMPREPLY[0]} != *[=:/] ]] || compopt -o nospace 2>/dev/null
}
complete -o bashdefault -o default -F _latency_tracker latency-tracker
