#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# scripts/check-words rejects each of its phrases, prints file, line and a replacement, and accepts plain English.
# timeout: 20

. "$(dirname "$0")/../host.sh"
lines=$(grep -c '^expect rejected' "$0")
cd "$work"

# expect accepted|rejected: check the result for the line on stdin
expect() {
	local got=accepted
	{ echo 'A plain line.'; cat; } >file
	"$LT_TOP/scripts/check-words" file >said || got=rejected
	[ "$got" = "$1" ] || { echo "expected this to be $1:"; cat file said; exit 1; }
	[ "$got" = accepted ] || grep -qE '^file:2: "[^"]+": .' said || { echo "no file and line:"; cat said; exit 1; }
}

# one line for each phrase
expect rejected <<<'Whoever reads gets it.'
expect rejected <<<'For who is busy.'
expect rejected <<<'Only who looks for it finds it.'
expect rejected <<<'This is who is told.'
expect rejected <<<'When nobody else any more has it.'
expect rejected <<<'When nobody uses it any more.'
expect rejected <<<'So many bytes.'
expect rejected <<<'It can not fail.'
expect rejected <<<'It begins anew.'
expect rejected <<<'It waits for ever.'
expect rejected <<<'Sleeps not.'
expect rejected <<<'The task lets go of it.'
expect rejected <<<'The worker has it done.'
expect rejected <<<'To have it done by a worker.'
expect rejected <<<'Beside those that all have.'
phrases=$(sed -n "/<<'PHRASES'/,/^PHRASES/p" "$LT_TOP/scripts/check-words" | grep -c '\\b')
[ "$lines" -ge "$phrases" ] || { echo "$phrases phrases, and lines for $lines"; exit 1; }

expect accepted <<<'Readers that wait forever cannot be woken again; there were so many that none was lost.'
expect accepted <<<'It can not only begin, but also end. The file is renewed. The task that is told, whatever it looks for.'
expect accepted <<<'for who in root member; do'
echo "all lines as expected"
