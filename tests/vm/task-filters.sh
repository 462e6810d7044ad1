# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Each filter by the owner accepts its task and no other. Several filters must all match. Kernel
# threads are tracked if requested. An invalid filter is refused, and the log quotes it.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# timeout: 120

. /lt/tests/lib.sh
. /lt/tests/sched.sh

mkdir -p /sys/fs/cgroup/a/b /sys/fs/cgroup/other
load_module

# A process that is already asleep when the instances are created, and later sleeps for a second.
mkfifo /tmp/go
# shellcheck disable=SC2016 # for the other shell
sh -c 'echo $$ >/tmp/pid; echo $$ >/sys/fs/cgroup/a/b/cgroup.procs; read -r _ </tmp/go
	exec python3 /lt/tests/sched.py sleep 1000 1 1000' &
wait_until 5 test -s /tmp/pid
pid=$(cat /tmp/pid)
wait_until 5 grep -q "^State:.S" "/proc/$pid/status"
n=0
# follows WANTED FILTER...: create an instance with this filter, which must report the process
# WANTED times.
follows() {
	n=$((n + 1)) wanted=$1
	shift
	control "f$n offcpu threshold=900ms $*"
	echo "f$n $wanted $*" >>/tmp/filters
}
inode=$(stat_inode /sys/fs/cgroup/a)
follows 1
for filter in pid="$pid" tid="$pid" comm=python3 'comm=python\x33' cgroup=/a cgroup=/a/b cgroup="$inode" cpu=1 uid=1000; do
	follows 1 "$filter"
done
follows 1 pid="$pid" tid="$pid" comm=python3 cgroup=/a/b cpu=1 uid=1000
for filter in pid=1 tid=1 comm=python comm=python33 cgroup=/other cpu=0 uid=0; do
	follows 0 "$filter"
	# All other filters match.
	follows 0 "$(echo "pid=$pid tid=$pid comm=python3 cgroup=/a uid=1000 cpu=1" | sed "s|${filter%%=*}=[^ ]*|$filter|")"
done
grep " cgroup=$inode " $LT/control | head -n 1
echo go >/tmp/go
wait %1
sleep 0.2
while read -r name wanted filter; do
	: >/tmp/$name
	# Reads all alerts up to now, until end-of-file. Without any alert, cat would wait for the first
	# alert.
	[ "$(stat "$name" alerts)" -eq 0 ] || cat $LT/$name/wakeup >/tmp/$name
	# As a shell, the process has waited since before the start of some instances.
	assert_eq "$(grep " tid=$pid " /tmp/$name | grep -vc since=)" "$wanted" "alerts with '$filter'"
done </tmp/filters
[ "$(stat f11 filtered)" -gt 0 ] || fail "no task was refused"

# A kernel thread.
kernel=$(while read -r p; do
	[ -s "/proc/$p/cmdline" ] || { [ "$(cat "/proc/$p/comm" 2>/dev/null)" != rcu_preempt ] || echo "$p"; }
done </sys/fs/cgroup/cgroup.procs)
for with in 0 1; do control "w$with wakeup kthreads=$with tid=$kernel"; done
wait_until 10 stat_is w1 started -gt 0
assert_eq "$(stat w0 started)" 0 "kthreads=0"
for tracker in wakeup=1 runqueue=1 offcpu=0; do
	sed -n "/^${tracker%=*}:/,/^[a-z]*:/p" $LT/trackers | grep -q "^  kthreads=${tracker#*=} " || fail "default of $tracker"
done

# Invalid filters are refused, and the log has the reason.
for bad in pid=4194304 tid=-1 comm=sixteen_letters_ comm= cgroup=a cgroup=/none cpu=x uid=4294967295; do
	refused_line "bad offcpu $bad" "\"${bad#*=}\""
done
# A pattern or a list would match no task.
for bad in 'pyth*' 'python?' python3,sh; do
	refused "$bad" control "bad offcpu comm=$bad"
	dmesg | tail -n 1 | grep -Fq "expected one whole name, no pattern or list" || fail "$bad: the log says: $(dmesg | tail -n 1)"
done
control 'odd offcpu comm=a\x2cb\x2a'
assert_eq "$(cat $LT/odd/comm)" 'a\x2cb\x2a' "a name that contains a comma"
control -odd
unload_module
