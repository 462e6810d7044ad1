#compdef latency-tracker
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Completion for zsh. The command itself finds the words that fit: only it knows the instances and trackers.

_latency_tracker() {
    local first=$words[(i)--]
    # the user's own command, which has its own completions
    if (( first < CURRENT )); then
        shift $first words
        (( CURRENT -= first ))
        _normal
        return
    fi
    local -a found open closed
    local line
    found=("${(@f)$(LATENCY_TRACKER_COMPLETE=zsh _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) \
        ${(e)words[1]} -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    for line in $found; do
        # no space after a word that must continue
        case ${${line//\\:/=}%%:*} in
            *[=/]) open+=("$line") ;;
            *) closed+=("$line") ;;
        esac
    done
    if (( $#open + $#closed == 0 )); then
        _files
        return
    fi
    (( ! $#open )) || _describe -V 'values' open -S ''
    (( ! $#closed )) || _describe -V 'values' closed
}

# zsh runs this file as the function when the function is first used
if [[ $funcstack[1] == _latency-tracker ]]; then
    _latency_tracker "$@"
else
    compdef _latency_tracker latency-tracker
fi
