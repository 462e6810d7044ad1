# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# guide.sh: the cases of Documentation/guide/why-was-it-slow.md, inside the virtual machine (scripts/example --guide).
# It leaves each command with its output in /lt/out/*.txt, and each explanation as JSON, with its path. It fails if an
# explanation does not name the cause, which is known by construction (tests/guide.py).

. /lt/tests/lib.sh
. /lt/tests/block.sh

# shown FILE COMMAND...: run a command, and add it with its output to FILE.txt.
shown() {
	_file=/lt/out/$1.txt
	shift
	echo "# $*" >>"$_file"
	"$@" >>"$_file" 2>&1 || [ $? -eq 2 ] || fail "$*: $(cat "$_file")"
}

# recorded NAME SENTENCE PROGRAM TRACKER KEY=VALUE...: record until an instance NAME of this tracker has an alert, while
# tests/guide.py runs PROGRAM. The explanation must match SENTENCE.
recorded() {
	_name=$1 _sentence=$2 _program=$3 _file=/lt/out/$1-record.txt
	shift 3
	echo "# latency-tracker record -n 1 -o /tmp/$_name $_name $*" >"$_file"
	latency-tracker record -n 1 -o "/tmp/$_name" "$_name" "$@" >>"$_file" 2>&1 &
	_recorder=$!
	wait_until 600 sh -c "grep -q '^armed' $_file || ! kill -0 $_recorder 2>/dev/null"
	python3 -B /lt/tests/guide.py $_program
	wait_until 60 sh -c "! kill -0 $_recorder 2>/dev/null"
	wait $_recorder && _status=0 || _status=$?
	cat "$_file"
	assert_eq $_status 2 "the exit status of record"
	latency-tracker explain "/tmp/$_name/0001" --json | head -n 1 >"/lt/out/$_name.json"
	tr -s ' \n' ' ' <"/tmp/$_name/0001/explanation.txt" | grep -Eq -- "$_sentence" || fail "$_name: no $_sentence"
}

# has FILE TEXT: check that the output FILE.txt has the text, even if it is folded there.
has() { tr -s ' \n' ' ' <"/lt/out/$1.txt" | grep -Eq -- "$2" || { cat "/lt/out/$1.txt"; fail "$1: no $2"; }; }

# of NAME EXPRESSION: print the value of a Python expression over the explanation, x, and its path, path.
of() {
	python3 -c "import json
x = json.load(open('/lt/out/$1.json'))
path = x['path']
print($2)"
}

load_module
null_disk slow 40000000
modprobe ext4
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/slow
mkdir /tmp/data
mount /dev/slow /tmp/data
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/shop
echo '10000 100000' >/sys/fs/cgroup/shop/cpu.max
# Warm up: the first run of anything is slow under emulation.
for program in lock 'journal /tmp/data' quota; do python3 -B /lt/tests/guide.py $program; done

recorded lock 'client/[0-9]+ waited for logger/[0-9]+, which was switched out while runnable, and waited for CPU 1, which ran batch/' \
	lock syscall threshold=200ms comm=client calls=recvfrom
from=$(of lock 'path["from"]') to=$(of lock 'path["to"]')
# Once more, with system calls, which show in which call each thread of the chain waited.
echo "# latency-tracker record --events-for delays -o /tmp/calls" >/lt/out/lock-calls.txt
latency-tracker record --events-for delays -o /tmp/calls >>/lt/out/lock-calls.txt 2>&1 &
recorder=$!
wait_until 600 sh -c "grep -q 'recording until Ctrl-C$' /lt/out/lock-calls.txt || ! kill -0 $recorder 2>/dev/null"
python3 -B /lt/tests/guide.py lock &
client=$!
wait $client || fail "guide.py lock: exit status $?"
kill $recorder
wait $recorder || fail "record --events-for delays: $(cat /lt/out/lock-calls.txt)"
shown lock-delays latency-tracker analyze delays /tmp/calls/0001/trace --from "syscall_entry_recvfrom:$client" \
	--event "syscall_exit_recvfrom:$client" --top 0
has lock-delays ' in recvfrom( of [^:]+)?: woken by server/'
has lock-delays ' server/[0-9]+ in flock( of [^:]+)?: woken by logger/'
has lock-delays ' logger/[0-9]+ meanwhile: interrupted [0-9]'
! grep -E 'No wait is recorded|no system calls' /lt/out/lock-delays.txt || fail "lock-delays: no chain of waits"
shown lock-cpu latency-tracker analyze cpu /tmp/lock/0001/trace --from "$from" --to "$to" -n 3

recorded journal 'database/[0-9]+ waited for jbd2/[^,]+, which waited for disk slow\.' \
	'journal /tmp/data' syscall threshold=60ms comm=database calls=fsync
from=$(of journal 'path["from"]') to=$(of journal 'path["to"]')
shown journal-path latency-tracker analyze path /tmp/journal/0001/trace --tid "$(of journal 'path["thread"]["tid"]')" \
	--from "$from" --to "$to" --min 5ms
shown journal-io latency-tracker analyze io /tmp/journal/0001/trace --by thread --from "$from" --to "$to" -n 3
# One disk has one name: in the trace, in the evidence and in the tables.
has journal-path ', which waited for disk slow\.'
has journal-io ' slow \(253:[0-9]+\) write'
! grep -E 'disk [0-9]+:' /lt/out/journal-*.txt || fail "a disk without its name"

shown quota-list latency-tracker start woken wakeup threshold=50ms cgroup=/shop comm=ticker
shown quota-list latency-tracker start held runqueue threshold=50ms cgroup=/shop comm=ticker
python3 -B /lt/tests/guide.py quota
wait_until 10 stat_is held alerts -gt 0
shown quota-list latency-tracker list
shown quota-list latency-tracker watch held -n 1
for name in woken held; do latency-tracker stop $name; done
recorded quota 'ticker/[0-9]+ was held back by cpu\.max of cgroup /shop' \
	quota runqueue threshold=50ms cgroup=/shop comm=ticker max_alerts=2
shown quota-stat grep throttled /sys/fs/cgroup/shop/cpu.stat

umount /tmp/data
unload_module
