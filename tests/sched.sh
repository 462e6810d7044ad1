# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# sched.sh: tasks that wait in known ways, for tests inside the virtual machine. Sourced after lib.sh.

# waits WORD...: tests/sched.py with these words.
waits() { python3 /lt/tests/sched.py "$@"; }

# alerts_of INSTANCE FILE: into FILE all its alerts up to now, from its file `alerts`, open as 3.
alerts_of() {
	cat <&3 >"$2" &
	_reader=$! _last=$(stat "$1" alerts)
	[ "$_last" -eq 0 ] || wait_until 30 sh -c "tail -n 1 $2 | grep -q '^seq=$_last '"
	kill $_reader
	wait $_reader || :
}

# stat_inode FILE: the number of its inode, which is that of a cgroup.
stat_inode() { ls -di "$1" | { read -r _inode _; echo "$_inode"; }; }
