# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Root without capabilities, as in a container, can neither control nor read. CAP_PERFMON can read.
# Members of the group that the module's parameter gid= names can read without any capability, except
# for addresses. A kernel in confidentiality lockdown shows nothing.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# leaves: a kernel that is locked down
# timeout: 120

. /lt/tests/lib.sh

need /usr/bin/setpriv
# Run a command as root with no capability, and with one.
bare() { /usr/bin/setpriv --inh-caps=-all --bounding-set=-all "$@"; }
perfmon() { /usr/bin/setpriv --inh-caps=-all,+perfmon --bounding-set=-all,+perfmon "$@"; }

load_module
control 'one block'
for file in control trackers version alerts wakeup one/stats one/threshold one/pending one/alerts; do
	case $file in
		*alerts|*wakeup) read='/usr/bin/dd iflag=nonblock count=0 status=none' ;;
		*) read='/usr/bin/dd of=/dev/null status=none' ;;
	esac
	# shellcheck disable=SC2086 # words
	refused "root without capabilities reads $file" bare $read if=$LT/$file
	# shellcheck disable=SC2086 # words
	assert "CAP_PERFMON reads $file" perfmon $read if=$LT/$file
done
refused "root without capabilities writes control" bare sh -c "echo 'evil block' >$LT/control"
refused "CAP_PERFMON writes control" perfmon sh -c "echo 'evil block' >$LT/control"
refused "root without capabilities changes a parameter" bare sh -c "echo 1 >$LT/one/threshold"
refused "root without capabilities turns interrupts off" bare sh -c "echo '1000 1' >$LT/hwnoise"
refused "CAP_PERFMON turns interrupts off" perfmon sh -c "echo '1000 1' >$LT/hwnoise"
assert "root turns them off for a moment" sh -c "echo '1000 1' >$LT/hwnoise"
assert_eq "$(wc -l <$LT/control)" 1 "instances"
unload_module

load_module gid=77
control 'one block'
as_member='/usr/bin/setpriv --reuid=1000 --regid=1000 --groups=77 --inh-caps=-all --bounding-set=-all'
# shellcheck disable=SC2086 # words
member() { $as_member "$@"; }
stranger() { /usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }
assert "a member of the group reads" member /usr/bin/dd if=$LT/one/stats of=/dev/null status=none
refused "a member of the group writes" member sh -c "echo 1 >$LT/one/threshold"
refused "a stranger reads" stranger /usr/bin/dd if=$LT/one/stats of=/dev/null status=none
# A stranger can neither read nor write even after root has opened up the directories and files: their modes are not
# the only protection.
chmod -R a+rwX $LT
assert "a stranger sees the directory" stranger test -r $LT/one -a -x $LT/one -a -r $LT/one/stats
for file in control trackers one/stats one/threshold one/pending one/alerts; do
	refused "a stranger reads $file" stranger /usr/bin/dd if=$LT/$file iflag=nonblock count=0 status=none
	refused "a stranger writes $file" stranger /usr/bin/dd of=$LT/$file if=/dev/null conv=notrunc status=none
done
assert "a member of the group still reads" member /usr/bin/dd if=$LT/one/stats of=/dev/null status=none
refused "a member of the group writes" member sh -c "echo 1 >$LT/one/threshold"

# Only readers with CAP_PERFMON or CAP_SYS_ADMIN see user-space addresses, and numbers that may be part of a kernel
# address. Other readers get hashed values, as %p prints them.
control 's syscall comm=dd calls=write threshold=0'
control 'f func function=vfs_write comm=dd threshold=0'
control 'p pair begin=function:vfs_write end=return:vfs_write begin_show=arg0:32,arg1:16 end_show=ret comm=dd threshold=0'
control 'z syscall comm=sleep calls=clock_nanosleep threshold=1s'
for name in s f p; do
	follow $LT/$name/alerts /tmp/root.$name
	# cat opens the file itself, since open(2) makes the decision.
	# shellcheck disable=SC2086 # words
	$as_member /usr/bin/cat $LT/$name/alerts >/tmp/member.$name &
	member=$!
	wait_until 10 sh -c "ls -l /proc/$member/fd 2>/dev/null | grep -q $LT/$name/alerts"
done
sleep 3600 &
sleeper=$!
dd if=/dev/zero of=/tmp/data bs=100 count=1 2>/dev/null
for who in root member; do
	for name in s f p; do wait_until 20 grep -q 'seq=1 ' /tmp/$who.$name; done
done
cat /tmp/root.? /tmp/member.?
hidden='[0-9a-f]\{16\}'
grep -q ' call=write number=1 abi=native arg0=0x1 arg1=0x[0-9a-f]\{6,\} arg2=0x64 ret=100$' /tmp/root.s || fail "root: syscall"
grep -q " call=write number=1 abi=native arg0=0x1 arg1=$hidden arg2=0x64 ret=100\$" /tmp/member.s || fail "member: syscall"
grep -q " args=$hidden,[1-9][0-9]\{5,\},100 .* ret=100\$" /tmp/root.f || fail "root: func"
grep -q " args=$hidden,$hidden,100 .* ret=100\$" /tmp/member.f || fail "member: func"
grep -q ' begin=[1-9][0-9]*,[0-9]* end=100$' /tmp/root.p || fail "root: pair"
grep -q " begin=$hidden,\($hidden\|[0-9]\{1,4\}\) end=100\$" /tmp/member.p || fail "member: pair"
wait_until 10 sh -c "cat $LT/z/pending | grep -q ' tid=$sleeper '"
grep " tid=$sleeper " $LT/z/pending | grep -q ' arg2=0x[0-9a-f]\{6,\}' || fail "root: pending"
member /usr/bin/cat $LT/z/pending | grep " tid=$sleeper " | grep -q " arg0=0x[01] arg1=0x[01] arg2=$hidden" || fail "member: pending"
kill $sleeper
for name in s f p z; do control -$name; done

# A kernel in confidentiality lockdown hides its memory from root in these files, too. This cannot
# be undone.
lockdown=/sys/kernel/security/lockdown
[ -e $lockdown ] || mount -t securityfs none /sys/kernel/security || :
if [ ! -e $lockdown ]; then
	# The kernels of tests/run-debug have no lockdown.
	! in_time || fail "this kernel has no lockdown"
	unload_module
	exit
fi
exec 3<$LT/one/alerts
echo integrity >$lockdown
assert "root reads while only integrity is asked for" dd if=$LT/control of=/dev/null status=none
echo confidentiality >$lockdown
for file in control trackers version one/stats one/threshold one/pending; do
	refused "root reads $file of a kernel that is locked down" dd if=$LT/$file of=/dev/null
done
for file in alerts wakeup one/alerts; do
	refused "root opens $file of a kernel that is locked down" /usr/bin/dd iflag=nonblock count=0 status=none if=$LT/$file
done
refused "root writes control" control 'late block'
refused "root turns interrupts off" sh -c "echo '1000 1' >$LT/hwnoise"
refused "tracefs is open" dd if=/sys/kernel/tracing/trace of=/dev/null
exec 3<&-
unload_module
