# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# A user who is not root records, as a member of the groups of LTTng's session daemon and of the module: the captures
# are this user's own. Each failure is reported with its remedy: a missing group, no session daemon of root, an instance
# that does not exist, and a directory that belongs to root.
# kernels: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root is without LTTng
# timeout: 600

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/recorders.sh

# A user and a group, for the duration of this test. LTTng looks users up in these files.
cp /etc/passwd /etc/group /tmp
echo 'anna:x:1234:1234::/tmp/anna:/bin/sh' >>/tmp/passwd
printf 'anna:x:1234:\nlatency-tracker:x:990:anna\n' >>/tmp/group
sed -i 's/^tracing:.*/tracing:x:102:anna/' /tmp/group
for file in passwd group; do mount --bind /tmp/$file /etc/$file; done
# shellcheck disable=SC2154 # by this trap
trap 'rc=$?; umount /etc/passwd /etc/group; [ $rc -eq 0 ] || tail -n 25 /tmp/*.log' EXIT
mkdir -m 755 /tmp/anna
chown 1234:1234 /tmp/anna

load_module gid=990
null_disk slow 200000000
control 'slow block threshold=50ms dev=slow'
# anna GROUPS COMMAND...: run the command as this user, in these groups.
anna() {
	groups=$1
	shift
	/usr/bin/setpriv --reuid 1234 --regid 1234 --groups "$groups" /usr/bin/env -i PATH="$PATH" HOME=/tmp/anna USER=anna "$@"
}
# hears WORDS GROUPS ARGUMENT...: check that record is refused, and its output has these words.
hears() {
	words=$1 groups=$2
	shift 2
	! anna "$groups" latency-tracker record "$@" >/tmp/refused.log 2>&1 || fail "record $* was not refused with groups $groups"
	grep -F "$words" /tmp/refused.log || { cat /tmp/refused.log; fail "missing in the output: $words"; }
	assert_eq "$(grep -vc 'measuring for a second' /tmp/refused.log)" "${lines:-1}" "lines of the refusal"
}

hears 'it is not running; as root, start it with `systemctl start lttng-sessiond`' 102,990 -o /tmp/anna/captures slow
lttng-sessiond --daemonize
hears 'session daemon: to allow it, run `usermod --append --groups tracing anna` as root' 990 -o /tmp/anna/captures slow
# one line for the fault, and one for the remedy
lines=2 hears '`usermod --append --groups latency-tracker anna` as root' 102 -o /tmp/anna/captures slow
hears 'run `latency-tracker start fresh block` with these parameters as root' 102,990 -o /tmp/anna/captures fresh block threshold=50ms
mkdir -m 700 /tmp/roots
hears 'choose another directory with -o' 102,990 -o /tmp/roots/captures slow
assert_eq "$(lttng --no-sessiond --mi xml list | grep -c '<session>')" 0 "sessions after a refusal"

# shellcheck disable=SC2034 # for start
RECORDER="/usr/bin/setpriv --reuid 1234 --regid 1234 --groups 102,990 /usr/bin/env -i HOME=/tmp/anna USER=anna PATH=$PATH"
start anna -o /tmp/anna/captures slow
anna=$!
reads slow 1 3
in_a_while captured /tmp/anna/captures 0001
kill -INT $anna
ended $anna anna
! grep 'cannot write\|left behind' /tmp/anna.log || fail "not what a user may do"
traced /tmp/anna/captures/0001/trace 24
find /tmp/anna -exec stat -c '%u %a %n' {} \; >/tmp/files
cat /tmp/files
! grep -v '^1234 ' /tmp/files || fail "files of another user"
grep '^1234 700 /tmp/anna/captures/0001$' /tmp/files || fail "not for the user alone"
[ ! -e /tmp/anna/.lttngrc ] || fail "the user's own configuration was changed"
assert_eq "$(lttng --no-sessiond --mi xml list | grep -c '<session>')" 0 "sessions left"
anna 102,990 latency-tracker explain /tmp/anna/captures/0001 | grep 'sector 24 ' || fail "not explained"
pkill lttng-sessiond
unload_module
