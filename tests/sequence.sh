# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# sequence.sh: runs several tests in one virtual machine, one after another (tests/run and tests/run-debug start
# it there).
#
# usage: sh sequence.sh PATIENCE [LEAKS]   PATIENCE: the factor by which the time limits of waits in tests are
#                                          multiplied; LEAKS: the name under which leaks are reported
#
# Marks where each test begins and ends, and when its cleanup is done, in the output and in the kernel's log:
#
#     lt-test: NAME begins
#     lt-test: NAME ended STATUS SECONDS TAINT      TAINT: the taints that the kernel got in the test
#     lt-test: NAME over TAINT                      TAINT: the taints that the kernel got up to here
#
# Each test finds the machine in the same state as the first one: no module of ours, no disk, an
# empty kernel log, no tracing, the same settings. If leftovers of a test cannot be removed, the
# sequence ends. Without LEAKS it also ends if the state differs otherwise, and after a failed test,
# which may have left invisible damage. The time of a test is limited here with LEAKS, and by the
# caller without.

PATIENCE=$1
leaks=${2:-}
export PATIENCE
kernel=/sys/kernel
out=/lt/out

mark() {
	echo "lt-test: $1"
	echo "lt-test: $1" >/dev/kmsg
}

taint() { cat /proc/sys/kernel/tainted; }
uptime() { cut -d. -f1 /proc/uptime; }

# ours: print the modules that a test has loaded and not unloaded.
ours() { sed -n 's/^\(latency_tracker\|lt_[a-z]*\) .*/\1/p' /proc/modules; }

# put_back NAME: remove leftovers of a test, whether or not it succeeded.
put_back() {
	# Spares this shell, the processes that wait for it, and kernel threads, which have no program. One `ls` finds all
	# processes, because a command for each would take too long.
	killed=''
	for pid in $(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's|.* /proc/\([0-9]*\)/exe -> .*|\1|p'); do
		case $pid in 1|"$$"|"$PPID") continue ;; esac
		kill -KILL "$pid" 2>/dev/null && killed="$killed $pid"
	done
	# Our module first: it may watch the disks. A module may be in use by another module that calls or follows
	# its functions, or by a task that was just killed: so try more than once.
	for pause in 0 1 5; do
		sleep $pause
		for module in $(ours); do rmmod "$module" 2>/dev/null; done
		[ -n "$(ours)" ] || break
	done
	[ -z "$(ours)" ] || { ours; return 1; }
	for disk in "$kernel"/config/nullb/*/; do
		[ -d "$disk" ] || continue
		echo 0 >"$disk/power"
		rmdir "$disk" || return 1
	done
	# The last close of a disk drops its module before the disk itself, which needs the module once
	# more (Documentation/upstream/block-module-put.patch). So the killed processes must have finished
	# that close.
	for pid in $killed; do
		for pause in 0 0.1 0.3 1 3 6 12; do
			read -r task 2>/dev/null <"/proc/$pid/stat" || break
			case ${task##*) } in [ZX]*) break ;; esac
			sleep $pause
		done
	done
	# A worker removes the files of a target later, in scsi_debug's code, and removing the module does not wait for
	# it (Documentation/upstream/scsi-debug-cleanup.patch). So the targets are removed first, and their files must be
	# gone.
	hosts=/sys/bus/pseudo/drivers/scsi_debug/add_host
	if [ -e $hosts ]; then
		files=''
		for target in /sys/bus/scsi/devices/target*; do
			files="$files $(find $kernel/debug/scsi_debug -maxdepth 1 -name "${target##*/}")"
		done
		read -r count <$hosts
		while [ "$count" -gt 0 ]; do echo -1 >$hosts; count=$((count - 1)); done
		for pause in 0 0.1 0.3 1 3 6 12; do
			sleep $pause
			gone=yes
			for target in $files; do [ ! -e "$target" ] || gone=no; done
			[ $gone = no ] || break
		done
		[ $gone = yes ] || { echo "files of scsi_debug are still there:$files"; return 1; }
	fi
	for module in scsi_debug dm_delay null_blk; do
		! grep -q "^$module " /proc/modules || rmmod $module || return 1
	done
	grep -q ' configfs ' /run/lt.before || ! grep -q ' configfs ' /proc/mounts || umount $kernel/config || return 1
	{
		for module in loop brd; do rmmod $module; done
		for space in /run/netns/*; do [ ! -e "$space" ] || /usr/bin/ip netns del "${space##*/}"; done
		umount /run/netns
		rmdir /run/netns
		# few_modules in lib.sh
		umount "/usr/lib/modules/$(uname -r)" && rm -r /run/lt.modules
		find $kernel/../fs/cgroup -mindepth 1 -depth -type d -exec rmdir {} \;
		for controller in $(cat $kernel/../fs/cgroup/cgroup.subtree_control); do
			echo "-$controller" >$kernel/../fs/cgroup/cgroup.subtree_control
		done
	} 2>/dev/null
	(
		cd $kernel/tracing || exit
		echo 0 >events/enable
		# only if the test mentions filters: there are thousands of files
		! grep -q '/filter' "/lt/sequence/$1.sh" || for file in $(grep -Lx none events/*/*/filter); do echo 0 >"$file"; done
		# read it: its size is always 0
		! grep -q . dynamic_events || echo >dynamic_events
		echo nop >current_tracer
		echo 1 >tracing_on
		echo local >trace_clock
		# 1408 is the size once the buffer has been used for the first time
		case $(cat buffer_size_kb) in *1408*) ;; *) echo 1408 >buffer_size_kb ;; esac
		echo >trace
	) 2>/dev/null
	echo 0 >$kernel/rcu_expedited
	rm -rf /tmp/* "$HOME/lttng-traces" "$HOME/.lttng" /run/lttng /run/latency-tracker /dev/shm/lttng-* 2>/dev/null
	return 0
}

# state: print the state of the machine that a test could change and the next one could see.
state() {
	ours
	# files written to the root
	if [ -d /lt/written ]; then find /lt/written; else find / -xdev ! -path '/lt/*'; fi | sort
	cat /proc/mounts
	find $kernel/../fs/cgroup -type d
	cat $kernel/../fs/cgroup/cgroup.subtree_control
	ls /sys/class/net /sys/block "$HOME" /run /dev/shm
	[ ! -d /run/netns ] || ls /run/netns
	# the priorities of kernel threads that serve other tasks: rt_priority and policy
	cat /proc/[0-9]*/stat | awk '$2 ~ /^\((ktimers|ksoftirqd|irq_work|rcuc)\// { print $2, $40, $41 }'
	cat /sys/devices/system/cpu/online
	(
		cd $kernel/tracing || exit
		ls instances
		cat current_tracer set_event dynamic_events kprobe_events uprobe_events set_ftrace_filter tracing_on
	)
	(
		cd /proc/sys || exit
		grep -s . kernel/sched_* kernel/printk kernel/panic* kernel/*watchdog* kernel/perf* kernel/hung* kernel/pid_max \
			kernel/kptr_restrict kernel/dmesg_restrict vm/dirty_* vm/overcommit_* vm/swappiness vm/min_free_kbytes net/core/*
	)
} 2>/dev/null

# as_before: wait until the state is restored; removals may take a moment.
as_before() {
	for pause in 0 0.2 1; do
		sleep $pause
		state >/run/lt.state
		cmp -s /run/lt.state /run/lt.before && return
	done
	diff /run/lt.before /run/lt.state
	return 1
}

# one NAME LIMIT: run a test, and mark its start and end. LIMIT, in seconds, applies only with LEAKS.
one() {
	begun=$(uptime)
	dmesg -c >/dev/null
	mark "$1 begins"
	status=0
	if [ -n "$leaks" ]; then
		timeout -k 10 "$2" sh "/lt/sequence/$1.sh" 2>&1 || status=$?
	else
		sh "/lt/sequence/$1.sh" 2>&1 || status=$?
	fi
	# the exit statuses of the timeout of busybox, and of coreutils
	[ -z "$leaks" ] || case $status in 124|137|143) echo "time is up: ended after $2 s" ;; esac
	mark "$1 ended $status $(($(uptime) - begun)) $(($(taint) & ~had))"
	mkdir -p $out.all
	[ -z "$(ls -A $out)" ] || { mkdir "$out.all/$1"; mv $out/* "$out.all/$1/"; }
}

# leaks: report new findings of kmemleak, and whether lockdep is still on.
leaks() {
	status=0
	if [ -e $kernel/debug/kmemleak ]; then
		# an object must be without reference in two scans, and some seconds old
		sleep 6
		echo scan >$kernel/debug/kmemleak
		echo scan >$kernel/debug/kmemleak
		cat $kernel/debug/kmemleak
		[ -z "$(cat $kernel/debug/kmemleak)" ] || status=1
	fi
	if [ -e /proc/lockdep_stats ] && ! grep -q 'debug_locks: *1$' /proc/lockdep_stats; then
		echo "lockdep turned itself off"
		status=1
	fi
}

mkdir -p $out
[ ! -e $kernel/debug/kmemleak ] || { echo scan; echo clear; } >$kernel/debug/kmemleak
touch /run/lt.state /run/lt.before
# so that these directories always count as written to
for directory in "$HOME" /var/tmp; do
	[ ! -d "$directory" ] || { touch "$directory/lt" && rm "$directory/lt"; }
done
state >/run/lt.before
# without LEAKS, a taint of the boot counts for the first test
had=0
[ -z "$leaks" ] || had=$(taint)
while read -r name limit <&4; do
	one "$name" "$limit" 4<&-
	if [ -z "$leaks" ] && [ $status -ne 0 ] && [ $status -ne 77 ]; then
		dmesg >>$out.messages
		break
	fi
	put_back "$name" && whole=1 || whole=
	mark "$name over $(($(taint) & ~had))"
	dmesg >>$out.messages
	had=$(taint)
	[ -n "$whole" ] || { echo "after $name the machine could not be put back"; break; }
	[ -n "$leaks" ] || as_before || { echo "after $name the machine is not what it was"; break; }
done 4</lt/sequence/list
if [ -n "$leaks" ]; then
	begun=$(uptime)
	mark "$leaks begins"
	leaks
	mark "$leaks ended $status $(($(uptime) - begun)) $(($(taint) & ~had))"
fi
[ ! -d $out.all ] || mv $out.all/* $out/ 2>/dev/null
mv $out.messages $out/messages
exit 0
