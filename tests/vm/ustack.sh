# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With ustack=1, the alert of a late system call has the task's stack in user space: exactly its functions, in order,
# even for a 32-bit program. The alert of the sleep in that call (offcpu) has the same stack. The alert of a request
# (block) has the submitter's stack, even while the request hangs, and no stack if a kernel thread has submitted the
# request. A program without frame pointers, and frame pointers that lead nowhere, give a short stack and the reason. A
# reader without the capability sees no address. Names are looked up while the process exists; later, only addresses are
# shown. Other trackers refuse ustack=1. Each late switch-in has its alert, which waits for the end of the switch.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# arm64: no, the program of tests/ustack.c is for x86
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

need /usr/bin/setpriv /usr/bin/unshare
as_member='/usr/bin/setpriv --reuid=1000 --regid=1000 --groups=77 --inh-caps=-all --bounding-set=-all'
load_module gid=77
ms=$(patiently 40)
control "u syscall threshold=$(patiently 20)ms calls=nanosleep ustack=1 wakeup_interval=0"
control "t syscall threshold=10s timeout=$(patiently 20)ms calls=nanosleep ustack=1 wakeup_interval=0"
control "no syscall threshold=$(patiently 20)ms calls=nanosleep wakeup_interval=0"
control "o offcpu threshold=$(patiently 20)ms when=blocked kthreads=1 ustack=1 wakeup_interval=0"
control "asleep offcpu threshold=10s timeout=$(patiently 20)ms when=blocked ustack=1 wakeup_interval=0"
for name in u t no o asleep; do follow $LT/$name/alerts /tmp/$name; done
# shellcheck disable=SC2086 # words
$as_member /usr/bin/cat $LT/u/alerts >/tmp/member &
member=$!
wait_until 10 sh -c "ls -l /proc/$member/fd 2>/dev/null | grep -q $LT/u/alerts"
latency-tracker watch u --new >/tmp/text &
latency-tracker watch u --new --json >/tmp/json &
wait_until 10 sh -c "[ \$(ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c $LT/u/alerts) -ge 4 ]"

# late PROGRAM MODE: run PROGRAM; its alert is then in /tmp/line, and the output of watch in /tmp/object.
late() {
	"$1" "$2" "$ms" &
	pid=$!
	wait_until 10 grep -q " pid=$pid " /tmp/u
	grep " pid=$pid " /tmp/u >/tmp/line
	cat /tmp/line
	assert_eq "$(grep -c . /tmp/line)" 1 "alerts of $1 $2"
	wait_until 10 grep -q "\"pid\":$pid," /tmp/json
	grep "\"pid\":$pid," /tmp/json >/tmp/object
	shows 'in user space:'
	# The sleep in the call ended first.
	slept=" tid=$pid .* stack=\"[^\"]*nanosleep"
	wait_until 10 grep -q "$slept" /tmp/o
	assert_eq "$(grep "$slept" /tmp/o | grep -o ' ustack=.*')" "$(grep -o ' ustack=.*' /tmp/line)" "the stack of the sleep in $1 $2"
	[ "$2" = exit ] || kill $pid
	wait $pid || :
}
# shown PATTERN: whether the text about process $pid, joined into one line, matches PATTERN. shows: wait until it does.
shown() { awk -v pid="$pid" '$1 == "u" { on = $4 == pid } on' /tmp/text | tr -s ' \n' ' ' | grep -q -- "$1"; }
shows() { wait_until 10 shown "$1"; }
# names: print the functions that watch has found, the innermost first.
names() { grep -o '"name":"[^"]*"' /tmp/object | cut -d'"' -f4 | paste -s -d ' '; }
# addresses: print the addresses of the alert, one per line.
addresses() { field ustack </tmp/line | tr ',' '\n'; }

late late-fp stay
assert_eq "$(names)" "inner middle outer first _start" "functions"
assert_eq "$(addresses | wc -l) $(field ustack_end </tmp/line)" "5 outermost" "addresses, and the end"
assert_eq "$(grep -o '"address":"[^"]*"' /tmp/object | cut -d'"' -f4)" "$(addresses)" "addresses of the object"
shows 'in user space: inner+0x[0-9a-f]* \[.*/late-fp\] middle+0x[0-9a-f]* \[.*\] outer+.* first+.* _start+0x[0-9a-f]* \[.*/late-fp\] $'
grep -q ' call=nanosleep .* ret=0 ustack=0x[0-9a-f,x]* ustack_end=outermost$' /tmp/line || fail "the fields come last"
# Without the parameter there is no such field. A timeout's alert comes from another task, so it has ustack=elsewhere.
wait_until 10 grep -q " pid=$pid " /tmp/no
assert_eq "$(grep -c 'ustack' /tmp/no)" 0 "stacks without ustack=1"
grep " pid=$pid " /tmp/t | grep -q ' reason=timeout .* stack="[^"]*nanosleep.*" ustack=elsewhere$' || fail "the timeout: $(cat /tmp/t)"
assert_eq "$(cat $LT/u/ustack) $(cat $LT/no/ustack)" "1 0" "the parameter"
wait_until 10 grep -q "^seq=.* reason=timeout .*$slept.*\" ustack=elsewhere\$" /tmp/asleep
# A kernel thread has no stack in user space.
wait_until 20 grep -q ' comm="kworker/.* ustack=kernel' /tmp/o
assert_eq "$(grep -c ' comm="kworker/.* ustack=[^k]' /tmp/o)" 0 "stacks of kworkers"

late late-nofp stay
assert_eq "$(names)" inner "functions without frame pointers"
shows 'the program probably has no frame pointers: rebuild it with -fno-omit-frame-pointer'

# A stripped program has no names without its debug file.
late-stripped stay "$ms" &
pid=$!
wait_until 10 grep -q "\"pid\":$pid," /tmp/json
grep "\"pid\":$pid," /tmp/json >/tmp/object
assert_eq "$(names)" "" "functions of a stripped program"
grep -q '"note":"functions without a name are in no symbol table, nor in a debug file"' /tmp/object || fail "no reason: $(cat /tmp/object)"
# With the debug file, and with files in its place that must not be read. What is written below /usr/lib disappears with
# the mount namespace.
cat >/tmp/debug.sh <<'END'
set -eu
pid=$1 alerts=$2
mkdir -p /tmp/debug/upper /tmp/debug/work
mount -t overlay -o lowerdir=/usr/lib,upperdir=/tmp/debug/upper,workdir=/tmp/debug/work overlay /usr/lib
file=/usr/lib/debug/.build-id/6c/6174652d7374726970706564303031.debug
mkdir -p "${file%/*}"
# installed NAME PROGRAM MODE OWNER: install a debug file, and look up the names of the alert.
installed() {
	cp "/lt/bin/$2" "$file"
	chmod "$3" "$file"
	chown "$4" "$file"
	latency-tracker watch u --json -n "$alerts" | grep "\"pid\":$pid," >"/tmp/debug/$1"
}
installed root late-stripped.debug 644 0
installed owner late-stripped.debug 644 1000
installed group late-stripped.debug 664 0
installed others late-stripped.debug 646 0
installed wrong late-fp 644 0
END
/usr/bin/unshare --mount sh /tmp/debug.sh "$pid" "$(stat u alerts)"
cp /tmp/debug/root /tmp/object
assert_eq "$(names)" "inner middle outer first _start" "functions from a debug file"
for how in 'owner must be a file of root' 'group must be a file of root' 'others must be a file of root' 'wrong lacks the build ID'; do
	cp "/tmp/debug/${how%% *}" /tmp/object
	assert_eq "$(names)" "" "functions from a debug file: $how"
	grep -q "\"note\":\"no names: /usr/lib/debug/[^ ]*\.debug was not read: it ${how#* }" /tmp/object || fail "$how: $(cat /tmp/object)"
done
kill $pid
wait $pid || :

late late-fp deep
assert_eq "$(names)" "inner$(printf ' deep%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)" "sixteen functions"
assert_eq "$(field ustack_end </tmp/line)" depth "the end of a deep stack"

# Frame pointers that lead nowhere.
for how in 'cycle 2 broken' 'below 1 broken' 'odd 1 broken' 'kernel 1 unreadable' 'absent 1 unreadable'; do
	# shellcheck disable=SC2086 # words
	set -- $how
	late late-fp "$1"
	assert_eq "$(addresses | wc -l) $(field ustack_end </tmp/line)" "$2 $3" "$1"
	grep -q '"name":"inner"' /tmp/object || fail "$1: no innermost function"
	shows '-fno-omit-frame-pointer'
done

other_abi() {
	late late-32 stay
	assert_eq "$(names)" "inner middle outer first _start" "functions of a 32-bit program"
	addresses | grep -qv '^0x[0-9a-f]\{6,8\}$' && fail "wide addresses"
	grep -q ' abi=compat ' /tmp/line || fail "the ABI"
}
# The kernel of tests/run-debug has only one ABI.
case $(uname -r) in *-debug) ;; *) other_abi ;; esac

# An alert of a request has the stack of its submitter: when an interrupt reports it, and when a worker does because the
# request hangs.
null_disk slow $((3 * ms))000000
control "b block threshold=$(patiently 20)ms dev=slow ustack=1 wakeup_interval=0"
control "bt block threshold=10s timeout=$(patiently 20)ms dev=slow ustack=1 wakeup_interval=0"
for name in b bt; do follow $LT/$name/alerts /tmp/$name; done
# reads_disk PROGRAM: run it on the disk; its alert is then in /tmp/line, with the names in /tmp/object.
reads_disk() {
	"$1" read 0 </dev/slow &
	pid=$!
	wait_until 10 grep -q " pid=$pid " /tmp/b
	grep " pid=$pid " /tmp/b >/tmp/line
	cat /tmp/line
	assert_eq "$(grep -c . /tmp/line)" 1 "requests of $1"
	latency-tracker watch b --json -n "$(stat b alerts)" | grep "\"pid\":$pid," >/tmp/object || fail "no alert of $pid"
	wait_until 10 grep -q " reason=timeout .* pid=$pid " /tmp/bt
	assert_eq "$(grep " reason=timeout .* pid=$pid " /tmp/bt | grep -o ' ustack=.*')" "$(grep -o ' ustack=.*' /tmp/line)" "the hanging request of $1"
	kill $pid
	wait $pid || :
}
reads_disk late-fp
assert_eq "$(names) $(field ustack_end </tmp/line)" "inner middle outer first _start outermost" "functions that submit a request"
reads_disk late-nofp
assert_eq "$(names)" inner "functions without frame pointers that submit a request"
# The worker of a loop device submits the requests of its tasks.
modprobe loop
losetup /dev/loop0 /dev/slow
dd if=/dev/loop0 of=/dev/null bs=4k count=1 2>/dev/null
wait_until 10 grep -q ' comm="kworker/.* ustack=kernel$' /tmp/b
assert_eq "$(grep -c ' comm="kworker/.* ustack=[^k]' /tmp/b)" 0 "stacks of a loop device's worker"
losetup -d /dev/loop0

# The member of the group has seen the same alerts, without addresses.
wait_until 10 sh -c "[ \$(grep -c . /tmp/member) -ge 8 ]"
assert_eq "$(grep -c ' ustack=hidden$' /tmp/member)" "$(grep -c . /tmp/member)" "hidden stacks"
assert_eq "$(grep -c 'ustack_end' /tmp/member)" 0 "ends of hidden stacks"
kill $member
# shellcheck disable=SC2086 # words
$as_member latency-tracker watch u -n 1 >/tmp/watched 2>&1 || :
tr -s ' \n' ' ' </tmp/watched | grep -q 'a stack that only a reader with CAP_PERFMON or CAP_SYS_ADMIN may see' ||
	fail "watch as a member: $(cat /tmp/watched)"

# A process that has exited: only addresses are left. watch reads alerts that are already recorded.
late-fp exit "$ms" &
pid=$!
wait $pid
wait_until 10 grep -q " pid=$pid " /tmp/u
seen=$(stat u alerts)
latency-tracker watch u --json -n "$seen" | grep "\"pid\":$pid," >/tmp/object || fail "no alert of $pid"
cat /tmp/object
assert_eq "$(names)" "" "functions of a process that has exited"
grep -q '"note":"no names: the process has exited' /tmp/object || fail "no reason"
assert_eq "$(grep -c '"address":"0x' /tmp/object)" 1 "addresses"

# `latency-tracker run` shows the names, too.
latency-tracker run syscall threshold="$(patiently 20)ms" calls=nanosleep ustack=1 -- timeout 2 late-fp stay "$ms" >/tmp/run 2>&1 || :
cat /tmp/run
tr -s ' \n' ' ' </tmp/run | grep -q 'in user space: inner+.* middle+.* outer+.* first+.* _start+' || fail "run"

# No report of a switch-in stays behind, even if the instance is disabled or a CPU goes offline in the middle of
# switches.
control 'each offcpu threshold=0 kthreads=1 ustack=1 enabled=0'
(while :; do sleep 0.001; done) &
load=$!
for _ in 1 2 3; do
	for on in 0 1; do
		control 'each offcpu enabled=1'
		online 1 $on
		late-fp exit 1
		control 'each offcpu enabled=0'
	done
done
kill $load
cat $LT/each/stats
[ "$(stat each alerts)" -gt 6 ] || fail "few switch-ins"
assert_eq "$(($(stat each alerts) + $(stat each readers) + $(stat each negative)))" "$(stat each ended)" "alerts of switch-ins"

# The other trackers refuse ustack=1, with the reason.
for tracker in wakeup irq tree; do
	refused_line "bad $tracker ustack=1" 'can be read by the task only, and it does not raise these alerts: "ustack"'
done
refused_line 'bad func function=vfs_read ustack=1' 'this tracker does not record stacks in user space: "ustack"'
refused_line 'bad workqueue ustack=1' 'a worker of the kernel has no stack in user space: "ustack"'
refused "ustack=2" control 'bad syscall ustack=2'
for line in 'u syscall' 'o offcpu' 'b block'; do refused "$line: ustack cannot be changed" control "$line ustack=0"; done
[ ! -e $LT/bad ] || fail "a refused line has made an instance"
for name in u t no o asleep b bt each; do control -$name; done
unload_module
