# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# sched.sh: tasks that wait in known ways, for tests inside the virtual machine. Sourced after lib.sh.

# waits WORD...: run tests/sched.py with these words.
waits() { python3 /lt/tests/sched.py "$@"; }

# other_of prev|next TID TIME: of the switches in $TRACE/trace that have TID on this side, take the one nearest to TIME
# (ns), and print the TID of the other side.
other_of() {
	awk -v mine=" $1_pid=$2 " -v time="$3" -v other="$([ "$1" = prev ] && echo next || echo prev)_pid=" '
		index($0 " ", mine) && match($0, / [0-9]+[.][0-9]+: sched_switch: /) {
			at = substr($0, RSTART + 1) + 0
			off = at * 1e9 > time ? at * 1e9 - time : time - at * 1e9
			if (found == "" || off < least) {
				least = off
				found = substr($0, index($0, other) + length(other)) + 0
			}
		}
		END { print found }' $TRACE/trace
}

# stat_inode FILE: print its inode number, which identifies a cgroup.
stat_inode() { ls -di "$1" | { read -r _inode _; echo "$_inode"; }; }
