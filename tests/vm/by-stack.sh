# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With by=stack, each kernel stack has exactly the operations that ended with it, though none is late. A program that
# waits in three known places, each a known number of times, has these counts, and sums that are not below the times
# for which it waited. The rows add up to the instance, to the last delay. Without a free row, a stack is in `other`.
# A stack that is cut off is marked. The stack of a row is that of an alert. `hist --by`, `stacks` and `run --by` show
# the rows.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/block.sh
. /lt/tests/labels.sh

# The truth: `victim` sleeps five times for 60 ms, waits three times for 400 ms until `writer` writes to a pipe, and
# polls four times for 50 ms. It has called everything once before it takes this name.
cat >/tmp/three.py <<'END'
import os, select, time

def called(name):
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write(name)

there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    called("writer")
    for _ in range(4):
        os.read(there[0], 1)
        time.sleep(0.4)
        os.write(back[1], b"x")
    os._exit(0)

def wait(sleeps, reads, polls):
    for _ in range(sleeps):
        time.sleep(0.06)
    for _ in range(reads):
        os.write(there[1], b"x")
        os.read(back[0], 1)
    poll = select.poll()
    for _ in range(polls):
        poll.poll(50)

wait(1, 1, 1)
called("victim")
wait(5, 3, 4)
called("done")
os.wait()
END

# sums INSTANCE FUNCTION: print count and sum of the stacks with a function whose name matches FUNCTION.
sums() {
	awk -v pattern="$2" '
		/^label / {
			stack = $0; sub(/^label stack="/, "", stack); sub(/".*/, "", stack)
			if (stack !~ pattern) next
			sub(/.* count=/, ""); count += $1; sub(/.* sum=/, ""); sum += $1
		}
		END { printf "%d %.0f\n", count, sum }' "$LT/$1/labels"
}
# has INSTANCE FUNCTION COUNT MILLISECONDS: check the count, and that the sum is not below the time.
has() {
	_sums=$(sums "$1" "$2")
	assert_eq "${_sums% *}" "$3" "waits in $2"
	[ "${_sums#* }" -ge "$(($4 * 1000000))" ] || fail "$2: ${_sums#* } ns, less than $4 ms"
}
# holds FILE EXPRESSION: check that EXPRESSION, in Python, is true of the JSON object r. of(WORD) is the only stack of r
# that has WORD in a function's name.
holds() {
	python3 - "$@" <<'END' || fail "$2: $(cat "$1")"
import json, sys
r = json.loads(open(sys.argv[1], encoding="utf-8").read())
def of(word):
    found = [one for one in r["stacks"] if any(word in frame for frame in one["stack"])]
    assert len(found) == 1, found
    return found[0]
assert eval(f"({sys.argv[2]})"), sys.argv[2]
END
}
says() { tr -s ' \n' ' ' <"$1" | grep -qE -- "$2" || fail "no '$2' in $(cat "$1")"; }

load_module
of_victim='comm=victim when=blocked'
control "w offcpu by=stack $of_victim threshold=10s"
control "few offcpu by=stack max_labels=2 $of_victim threshold=10s"
control "short offcpu by=stack stack=3 $of_victim threshold=10s"
control "late offcpu by=stack $of_victim threshold=200ms"
line=$(grep '^w ' $LT/control)
case $line in *' stack=32 '*' by=stack max_labels=256') ;; *) fail "the defaults: $line" ;; esac
head -n 1 $LT/w/labels | grep -q '^by=stack labels=0 max_labels=256 full=0 memory=[1-9][0-9]*$' || fail "the head"
python3 /tmp/three.py
cat $LT/w/labels $LT/few/labels $LT/short/labels

# The counts are exact, and complete.
for name in w late; do
	has $name hrtimer_nanosleep 5 300
	has $name pipe_read 3 1200
	has $name 'sys_p*poll' 4 200
	assert_eq "$(stat $name ended)" 12 "waits in all"
done
assert_eq "$(stat w alerts) $(stat late alerts)" "0 3" "alerts"
for name in w few short late; do whole $name; done
if grep -q 'latency_tracker\|__traceiter\|__schedule' $LT/w/labels; then fail "our functions, or the scheduler's"; fi
if grep -q 'cut_off\|0xffff' $LT/w/labels; then fail "a stack is cut off, or an address is shown"; fi

# The stack of a row is the stack of the alerts of its operations.
grep '^seq=' $LT/late/wakeup >/tmp/alerts
stacks_of() { grep -o ' stack="[^"]*pipe_read[^"]*"' "$1" | sort -u; }
assert_eq "$(stacks_of $LT/late/labels)" "$(stacks_of /tmp/alerts)" "the stack of the alerts"

# Two rows for three stacks: the first two have them.
head -n 1 $LT/few/labels | grep -q '^by=stack labels=2 max_labels=2 full=1 ' || fail "the head of few"
has few hrtimer_nanosleep 5 300
has few pipe_read 3 1200
assert_eq "$(count few other)" 4 "waits of the third stack"

# Stacks of three functions are cut off, and marked.
assert_eq "$(grep -Ec '^label stack="[^",]*,[^",]*,[^",]*" cut_off=1 count=' $LT/short/labels)" \
	"$(grep -c '^label ' $LT/short/labels)" "stacks that are cut off"
assert_eq "$(stat short ended)" 12 "waits with short stacks"

# The commands show the rows.
latency-tracker hist w --by >/tmp/out
cat /tmp/out
says /tmp/out 'STACK COUNT .*pipe_read 3 .*vfs_read.* 5 .*hrtimer_nanosleep'
latency-tracker hist short --by >/tmp/out
says /tmp/out '\[cut off\]'
latency-tracker stacks w --json >/tmp/out
holds /tmp/out 'r["exact"] and r["threshold"] is None and r["count"] == 12 and r["missing"].get("other") is None
	and [of(word)["count"] for word in ("hrtimer_nanosleep", "pipe_read", "sys_p")] == [5, 3, 4]
	and r["total"] == sum(one["total"] for one in r["stacks"]) and of("pipe_read")["longest"] >= 400e6'
total=$(awk 'NR > 1 { sub(/.* sum=/, ""); n += $1 } END { printf "%.0f", n }' $LT/w/labels)
holds /tmp/out "r['total'] == $total"
latency-tracker stacks w >/tmp/out
cat /tmp/out
says /tmp/out 'w \(offcpu\): 12 operations in 3 stacks, .*All operations that ended are in here, late or not'
latency-tracker stacks w --folded >/tmp/out 2>/tmp/err
grep -Eq '^[^ ]*;vfs_read;[^ ]*pipe_read [0-9]+$' /tmp/out || fail "no folded stack: $(cat /tmp/out)"
assert_eq "$(wc -l </tmp/out)" 3 "folded stacks"
says /tmp/err 'late or not \(by=stack\)'
latency-tracker stacks few --json >/tmp/out
holds /tmp/out 'r["missing"]["other"] == 4 == r["stacks"][-1]["count"] and r["stacks"][-1]["stack"] == ["[other]"]'
latency-tracker stacks short --json >/tmp/out
holds /tmp/out 'r["missing"]["cut_off"] == 12 and all(one["cut_off"] for one in r["stacks"])'
for words in '--by waker' '--new'; do
	# shellcheck disable=SC2086 # words
	! latency-tracker stacks w $words 2>/tmp/err || fail "stacks w $words"
	says /tmp/err 'by=stack'
done
# shellcheck disable=SC2086 # words
latency-tracker stacks offcpu by=stack $of_victim --json -o /tmp/out -- python3 /tmp/three.py
holds /tmp/out 'r["exact"] and r["status"] == 0 and r["count"] == 12 and of("pipe_read")["count"] == 3'
# shellcheck disable=SC2086 # words
latency-tracker run offcpu --by stack $of_victim --json -o /tmp/out -- python3 /tmp/three.py
holds /tmp/out 'r["labels"]["by"] == "stack" and sum(one["count"] for one in r["labels"]["labels"]) == 12 == r["count"]'
# shellcheck disable=SC2086 # words
latency-tracker run offcpu --by stack $of_victim -o /tmp/out -- python3 /tmp/three.py
says /tmp/out 'STACK COUNT .*pipe_read 3 '
for name in w few short late; do control "-$name"; done

# A mutex serializes writers to parameters of a module: three waits, which end in the waiter itself.
case $(uname -r) in *-rt-*) mutex=rtmutex ;; *) mutex=mutex ;; esac
insmod /lt/lt_works.ko ms=40
run=/sys/module/lt_works/parameters/run
echo slow >$run
control "l lock by=stack kind=$mutex threshold=3600s"
for _ in 1 2 3; do
	echo long >$run &
	first=$!
	wait_until 10 grep -q __flush_work "/proc/$first/stack"
	echo slow >$run
	wait $first
done
control 'l lock enabled=0'
cat $LT/l/labels
has l param_attr_store 3 0
if grep -q 'latency_tracker\|__traceiter' $LT/l/labels; then fail "our own functions"; fi
whole l
control -l
rmmod lt_works

# Two tasks take turns on one CPU: the row of each preemption has a stack.
control 'r runqueue by=stack max_labels=1024 threshold=3600s'
busy=
for _ in 1 2; do
	taskset 1 sh -c 'while :; do :; done' &
	busy="$busy $!"
done
wait_until 60 stat_is r ended -ge 50
# shellcheck disable=SC2086 # words
kill $busy
control 'r runqueue enabled=0'
found=$(sums r .)
[ "${found% *}" -ge 40 ] || fail "preemptions without a stack: $(cat $LT/r/labels)"
whole r
unload_module
