# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Completion for fish. The command itself finds the words that fit: only it knows the instances and trackers.

function __latency_tracker_words
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    LATENCY_TRACKER_COMPLETE=fish $words[1] -- $words (commandline --current-token --cut-at-cursor) 2>/dev/null
end

complete --command latency-tracker --keep-order --no-files --condition 'not contains -- -- (commandline -opc)' \
    --arguments '(__latency_tracker_words)'
# the user's own command, which has its own completions
complete --command latency-tracker --condition 'contains -- -- (commandline -opc)' \
    --arguments '(__fish_complete_subcommand --commandline (string split -m 1 -- " -- " (commandline -cp))[2])'
