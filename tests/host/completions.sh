#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# In a shell on a terminal, a tab completes what was typed: commands, options, instances, trackers, recipes, parameters
# and their values.
# timeout: 600
# long-part: zsh and fish, which the tree lacks

. "$(dirname "$0")/../host.sh"
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user" --only latency-tracker
# the files of the module
mkdir -p "$work/proc" "$work/recipes" "$work/functions"
cat >"$work/proc/trackers" <<'END'
block: block I/O request, issue or insert to completion (key: the request)
  threshold=10ms duration: report a delay longer than this
  from=issue issue|insert: where the delay starts (at creation only)
pair: from any point in the kernel to another
  threshold=1ms duration: report a delay longer than this
  begin= tracepoint:NAME|function:NAME|return:NAME: where the delay starts (at creation only)
END
printf 'slow_disk block threshold=10ms\nother pair threshold=1ms\n' >"$work/proc/control"
printf 'question: Ours?\nrun: block threshold=1ms\nnormal: No.\nnext: Look at disk.\n' >"$work/recipes/own-question.recipe"
for shell in bash zsh fish; do "$LT_BUILD/test/latency-tracker" completions $shell >"$work/$shell"; done
# where zsh looks for the function of this name
ln "$work/zsh" "$work/functions/_latency-tracker"

shells=(bash) layer=()
if [ -n "${LT_LONG:-}" ]; then
	shells+=(zsh fish) layer=(--with shells)
	"$LT_TOP/scripts/env" "${layer[@]}"
fi
"$LT_TOP/scripts/in-tree" "${layer[@]}" env "PATH=$LT_BUILD/test:/usr/bin:/bin" "LATENCY_TRACKER_PROC_ROOT=$work/proc" \
	"LATENCY_TRACKER_RECIPES=$work/recipes" timeout 500 python3 -B "$LT_TOP/tests/shells.py" "$work" "${shells[@]}"
