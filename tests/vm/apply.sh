# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker apply` and `check --config`: an invalid line is reported with file and line, and the other lines
# take effect. An instance whose line is unchanged keeps running, with its counters. An instance is restarted only for
# another tracker, or for a parameter that can only be given at creation. An omitted parameter returns to its default.
# An instance whose line is gone is removed, but not while any line is invalid. If the cgroup of an unchanged instance
# was replaced, the path of the cgroup is looked up again; `list`, `top` and `check` name such an instance. Foreign
# instances are left alone. After the module is reloaded, everything is restored. --stop removes exactly the instances
# that were started from the files. `check --config` reports the same errors, and starts nothing. All lines are
# applied even if the reader of the output has ended.
# kernels: stock
# cpus: 2

. /lt/tests/lib.sh

COMMAND=/lt/bin/latency-tracker
CONF=/tmp/conf
# applies STATUS WORD...: run `apply` and check its exit status; its output is in /tmp/said.
applies() {
	_want=$1 _rc=0
	shift
	$COMMAND apply "$@" >/tmp/said 2>&1 || _rc=$?
	assert_eq "$_rc" "$_want" "the exit status of apply $*: $(cat /tmp/said)"
}
said() { grep -qF -- "$1" /tmp/said || fail "'$1' was not said: $(cat /tmp/said)"; }
silent() { ! grep -qF -- "$1" /tmp/said || fail "'$1' was said: $(cat /tmp/said)"; }
names() { awk '{ print $1 }' $LT/control | sort | xargs; }
read_back() { cat "$LT/$1/$2"; }

load_module
mkdir -p $CONF
control 'foreign wakeup threshold=3600s'

printf '# sleepers\nslow offcpu threshold=10ms comm=sleep timeout=30s\n\nlate wakeup treshold=1ms\n' >$CONF/a.conf
printf 'calls syscall threshold=1s calls=redd\nqueue runqueue threshold=1s\n' >$CONF/b.conf
echo 'no block' >$CONF/c.conf.orig
_rc=0
$COMMAND check --config $CONF >/tmp/said 2>&1 || _rc=$?
assert_eq "$_rc" 1 "the exit status of check --config"
said "ok   config        $CONF/a.conf:2: slow offcpu"
said "bad  config        $CONF/a.conf:4: wakeup has no parameter \"treshold\"; did you mean threshold=?"
said "bad  config        $CONF/b.conf:1:"
said "ok   config        $CONF/b.conf:2: queue runqueue"
assert_eq "$(names)" "foreign" "instances after check --config"
$COMMAND check --config $CONF --json >/tmp/said || :
said "\"state\":\"bad\",\"found\":\"$CONF/a.conf:4: wakeup has no parameter"

applies 1 $CONF
said "$CONF/a.conf:4: wakeup has no parameter \"treshold\"; did you mean threshold=?"
said "$CONF/b.conf:1:"
said "started slow ($CONF/a.conf:2)"
said "started queue ($CONF/b.conf:2)"
assert_eq "$(names)" "foreign queue slow" "the instances"

# An unchanged instance keeps running.
sleep 0.05
wait_until 10 sh -c "[ \"\$(awk '\$1 == \"alerts\" { print \$2 }' $LT/slow/stats)\" -ge 1 ]"
alerts=$(stat slow alerts)
sed -i '/treshold/d' $CONF/a.conf
sed -i 1d $CONF/b.conf
applies 0 $CONF
said "2 unchanged"
silent started
[ "$(stat slow alerts)" -ge "$alerts" ] || fail "slow was restarted"

# Parameters change while the instance runs; an omitted parameter returns to its default.
echo 'slow offcpu threshold=20ms comm=sleep' >$CONF/a.conf
applies 0 $CONF
said "changed slow"
assert_eq "$(read_back slow threshold)" 20000000 threshold
assert_eq "$(read_back slow timeout)" 0 "timeout, which is not given any more"
[ "$(stat slow alerts)" -ge "$alerts" ] || fail "slow was restarted"
# A time in minutes, which the kernel does not know.
echo 'slow offcpu threshold=20ms comm=sleep timeout=5m' >$CONF/a.conf
applies 0 $CONF
said "changed slow"
assert_eq "$(read_back slow timeout)" 300000000000 "timeout in minutes"
[ "$(stat slow alerts)" -ge "$alerts" ] || fail "slow was restarted"
# A line that is valid, but not with a value that was set by hand.
control 'slow offcpu threshold=1ms timeout=0 max=10ms'
echo 'slow offcpu threshold=20ms comm=sleep kthreads=1' >$CONF/a.conf
applies 1 $CONF
said "$CONF/a.conf:1:"
said "no delay is above threshold and at most max"
silent restarted
assert_eq "$(read_back slow threshold)" 1000000 "threshold after a refused change"
[ "$(stat slow alerts)" -ge "$alerts" ] || fail "slow was restarted"
control 'slow offcpu threshold=20ms max=0'
# An invalid value changes no running instance.
echo 'slow offcpu threshold=20ms timeout=1y' >$CONF/a.conf
applies 1 $CONF
said "$CONF/a.conf:1:"
assert_eq "$(read_back slow threshold)" 20000000 "threshold after a wrong line"
assert_eq "$(names)" "foreign queue slow" "the instances after a wrong line"
# A parameter that can be set only at creation.
echo 'slow offcpu threshold=20ms comm=sleep ring=64' >$CONF/a.conf
applies 0 $CONF
said "restarted slow ($CONF/a.conf:1): its counters and alerts start again, because ring can only be given at creation"
assert_eq "$(read_back slow ring)" 64 ring
# The value of ring= is unchanged: the instance keeps running.
echo 'slow offcpu threshold=30ms comm=sleep ring=64' >$CONF/a.conf
applies 0 $CONF
said "changed slow"
silent restarted
assert_eq "$(read_back slow threshold)" 30000000 threshold
# A default that depends on another parameter: the instance has it already, and keeps running.
echo 'stacks offcpu threshold=1h by=stack stack=32' >$CONF/s.conf
applies 0 $CONF
echo 'stacks offcpu threshold=1h by=stack' >$CONF/s.conf
applies 0 $CONF
said "changed stacks"
silent restarted
assert_eq "$(read_back stacks stack)" 32 "the default of stack with by=stack"
rm $CONF/s.conf
applies 0 $CONF

# The cgroup of an unchanged line is removed and created again, as for a unit that restarts.
GROUP=/sys/fs/cgroup/lt-apply
# shown NUMBER: each command must name the instance whose cgroup is gone.
shown() {
	$COMMAND list >/tmp/said 2>&1
	awk '$1 == "grouped" { print $3 }' /tmp/said | grep -qx no-cgroup || fail "list: $(cat /tmp/said)"
	said "grouped: cgroup $1 does not exist"
	said "latency-tracker start grouped offcpu cgroup=PATH"
	$COMMAND list grouped >/tmp/said
	said "Note: cgroup $1 does not exist"
	$COMMAND list grouped --json >/tmp/said
	said "\"missing_cgroup\":$1"
	$COMMAND top --once >/tmp/said
	said "cgroup is gone (see "
	$COMMAND check >/tmp/said || :
	said "running; their cgroup is gone: grouped"
}
mkdir $GROUP
echo 'grouped offcpu threshold=1h cgroup=/lt-apply' >$CONF/g.conf
applies 0 $CONF
said "started grouped"
first=$(read_back grouped cgroup)
$COMMAND list >/tmp/said 2>&1
silent cgroup
applies 0 $CONF
silent renewed
rmdir $GROUP
shown "$first"
# A unit may be stopped on purpose: that is not an error.
applies 0 $CONF
said "$CONF/g.conf:1: cgroup $first does not exist"
said "no such cgroup of version 2"
said "3 unchanged"
mkdir $GROUP
shown "$first"
control 'grouped offcpu threshold=7200s'
applies 0 $CONF
said "renewed grouped ($CONF/g.conf:1)"
second=$(read_back grouped cgroup)
[ "$second" != "$first" ] || fail "a new cgroup has the number $first, too"
assert_eq "$second" "$(ls -di $GROUP | { read -r _inode _; echo "$_inode"; })" "the cgroup of the renewed instance"
assert_eq "$(read_back grouped threshold)" 7200000000000 "a threshold that was set by hand"
applies 0 $CONF
silent renewed
# An instance that was limited to another cgroup by hand keeps running.
control 'grouped offcpu cgroup=/'
applies 0 $CONF
silent renewed
rm $CONF/g.conf
applies 0 $CONF
rmdir $GROUP

# No instance is removed while a line is invalid.
mv $CONF/b.conf /tmp/b.conf
echo 'oops' >$CONF/z.conf
applies 1 $CONF
said "not removed until all lines are valid: queue"
assert_eq "$(names)" "foreign queue slow" "the instances"
rm $CONF/z.conf
# Another file does not affect these instances.
echo 'other wakeup threshold=1h' >/tmp/other.conf
applies 0 /tmp/other.conf
assert_eq "$(names)" "foreign other queue slow" "the instances"
applies 0 $CONF
said "removed queue"
assert_eq "$(names)" "foreign other slow" "the instances"
echo 'other runqueue threshold=1h' >/tmp/other.conf
applies 0 /tmp/other.conf
said "restarted other (/tmp/other.conf:1): its counters and alerts start again, because its tracker changed"

# An instance of another tracker that was created by hand has this name.
echo 'foreign offcpu threshold=1h' >$CONF/f.conf
applies 1 $CONF
said "an instance named foreign of the tracker wakeup already runs"
rm $CONF/f.conf
# An instance that was started from the files has been removed since, and another instance was given its name by hand.
echo 'taken runqueue threshold=1h' >$CONF/f.conf
applies 0 $CONF
said "started taken"
control '-taken'
control 'taken wakeup threshold=3600s'
applies 1 $CONF
said "an instance named taken of the tracker wakeup already runs"
assert_eq "$(awk '$1 == "taken" { print $2 }' $LT/control)" wakeup "the tracker of taken"
applies 1 $CONF
rm $CONF/f.conf
applies 0 $CONF
silent "removed taken"
assert_eq "$(names)" "foreign other slow taken" "the instances"
control '-taken'

# The module is unloaded and loaded again.
unload_module
load_module
applies 0 $CONF
said "started slow"
assert_eq "$(names)" "slow" "the instances of the new module"
control 'foreign wakeup threshold=3600s'
applies 0 --stop $CONF
said "removed slow"
assert_eq "$(names)" "foreign" "the instances after --stop"
applies 0 $CONF
said "started slow"

# Every line is applied, even if the reader of the output has ended.
printf 'one wakeup threshold=1h\ntwo wakeup threshold=1h\n' >$CONF/z.conf
{ sleep 0.5; $COMMAND apply $CONF; } | :
assert_eq "$(names)" "foreign one slow two" "the instances after a broken pipe"

# Files that are unreadable or missing.
applies 1 /tmp/nonexistent
said "cannot read /tmp/nonexistent"
mkdir /tmp/empty
applies 0 /tmp/empty
said "there is no *.conf in /tmp/empty"
unload_module
_rc=0
$COMMAND check --config $CONF >/tmp/said 2>&1 || _rc=$?
assert_eq "$_rc" 0 "the exit status of check --config without the module"
said "were not checked: the module is not loaded"
