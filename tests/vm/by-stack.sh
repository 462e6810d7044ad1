# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# With by=stack, each kernel stack has exactly the operations that ended with it, even if no operation is late. A
# program that waits in three known places, each a known number of times, has these counts, and sums of at least nine
# tenths of the times for which it waited. If each wait has an alert, the rows match the alerts: by stack, their number
# and the sum of their delays. The rows add up exactly to the instance. Without a free row, a stack is in `other`. A
# stack that is cut off is marked. `hist --by`, `stacks` and `run --by` show the rows.
#
# The program may also wait elsewhere, such as for a page, in the same way for all instances: only the three places
# have an expected number. On PREEMPT_RT, a lock may add a wait in these places.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 300

. /lt/tests/lib.sh
. /lt/tests/labels.sh

# The truth: `victim` sleeps five times for 60 ms, waits three times for 400 ms until `writer` writes to a pipe, and
# polls four times for 50 ms. The process has called everything once before it takes this name.
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
# has INSTANCE FUNCTION COUNT MILLISECONDS: check the count (on PREEMPT_RT, that it is at least COUNT), and that the sum
# is at least nine tenths of MILLISECONDS, a time that starts before the task is off the CPU.
case $(uname -r) in *-rt-*) mutex=rtmutex is=-ge ;; *) mutex=mutex is=-eq ;; esac
has() {
	_sums=$(sums "$1" "$2")
	test "${_sums% *}" "$is" "$3" || fail "$1: ${_sums% *} waits in $2, not $3"
	[ "${_sums#* }" -ge "$(($4 * 900000))" ] || fail "$1: ${_sums#* } ns in $2, for $4 ms"
}
# rows INSTANCE: print the number of waits and the stack of each row, in their order.
rows() { sed -n 's/^label stack="\([^"]*\)".* count=\([0-9]*\) .*/\2 \1/p' "$LT/$1/labels"; }
# holds FILE EXPRESSION: check that EXPRESSION, in Python, is true of the JSON object r. count(WORD) is the number of
# operations whose stack has WORD in a function's name.
holds() {
	python3 - "$@" <<'END' || fail "$2: $(cat "$1")"
import json, sys
r = json.loads(open(sys.argv[1], encoding="utf-8").read())
def count(word):
    return sum(one["count"] for one in r["stacks"] if any(word in frame for frame in one["stack"]))
assert eval(f"({sys.argv[2]})"), sys.argv[2]
END
}
says() { tr -s ' \n' ' ' <"$1" | grep -qE -- "$2" || fail "no '$2' in $(cat "$1")"; }

load_module
of_victim='comm=victim when=blocked'
control "w offcpu by=stack $of_victim threshold=10s"
control "few offcpu by=stack max_labels=2 $of_victim threshold=10s"
control "short offcpu by=stack stack=3 $of_victim threshold=10s"
control "late offcpu by=stack $of_victim threshold=0"
line=$(grep '^w ' $LT/control)
case $line in *' stack=32 '*' by=stack max_labels=256') ;; *) fail "the defaults: $line" ;; esac
head -n 1 $LT/w/labels | grep -q '^by=stack labels=0 max_labels=256 full=0 memory=[1-9][0-9]*$' || fail "the head"
python3 /tmp/three.py
cat $LT/w/labels $LT/few/labels $LT/short/labels

# The counts are exact, and complete.
ended=$(stat w ended)
for name in w few short late; do
	assert_eq "$(stat $name ended)" "$ended" "waits of $name"
	whole $name
done
for name in w late; do
	has $name hrtimer_nanosleep 5 300
	has $name pipe_read 3 1200
	has $name 'sys_p*poll' 4 200
done
assert_eq "$(stat w alerts) $(stat late alerts)" "0 $ended" "alerts"
if grep -q 'latency_tracker\|__traceiter\|__schedule' $LT/w/labels; then fail "our functions, or the scheduler's"; fi
if grep -q '0xffff\|\(pipe_read\|nanosleep\|poll\).* cut_off' $LT/w/labels; then fail "an address is shown, or a stack is cut off"; fi

# The rows match the alerts: number, sum and stack.
grep '^seq=' $LT/late/wakeup | awk '
	{
		stack = match($0, / stack="[^"]*"/) ? substr($0, RSTART + 8, RLENGTH - 9) : ""
		match($0, / delay=[0-9]+/)
		count[stack]++; sum[stack] += substr($0, RSTART + 7, RLENGTH - 7)
	}
	END { for (stack in count) printf "%d %.0f %s\n", count[stack], sum[stack], stack }' | sort >/tmp/alerts
sed -n 's/^label stack="\([^"]*\)".* count=\([0-9]*\) sum=\([0-9]*\) .*/\2 \3 \1/p' $LT/late/labels | sort >/tmp/rows
cmp /tmp/alerts /tmp/rows || fail "rows that are not the alerts: $(diff /tmp/alerts /tmp/rows)"

# There are two rows for at least three stacks: the first two stacks get the rows.
head -n 1 $LT/few/labels | grep -q '^by=stack labels=2 max_labels=2 full=1 ' || fail "the head of few"
assert_eq "$(rows few)" "$(rows w | head -n 2)" "the first two stacks"
other=$(count few other)
[ "$other" -ge 4 ] || fail "$other waits in other"

# Stacks of three functions are cut off, and marked.
assert_eq "$(grep -Ec '^label stack="[^",]*,[^",]*,[^",]*" cut_off=1 count=' $LT/short/labels)" \
	"$(grep -c '^label ' $LT/short/labels)" "stacks that are cut off"

# The commands show the rows.
latency-tracker hist w --by >/tmp/out
cat /tmp/out
says /tmp/out 'STACK COUNT .*pipe_read [0-9]+ .*vfs_read.*hrtimer_nanosleep [0-9]+ '
latency-tracker hist short --by >/tmp/out
says /tmp/out '\[cut off\]'
latency-tracker stacks w >/tmp/out
cat /tmp/out
says /tmp/out "w \(offcpu\): $ended operations in [0-9]+ stacks, .*All operations that ended are in here, late or not"
latency-tracker stacks w --folded >/tmp/folded 2>/tmp/err
grep -Eq '^[^ ]*;vfs_read;[^ ]*pipe_read [0-9]+$' /tmp/folded || fail "no folded stack: $(cat /tmp/folded)"
says /tmp/err 'late or not \(by=stack\)'
latency-tracker stacks w --json >/tmp/out
total=$(awk 'NR > 1 { sub(/.* sum=/, ""); n += $1 } END { printf "%.0f", n }' $LT/w/labels)
holds /tmp/out "r['exact'] and r['threshold'] is None and r['count'] == $ended and 'other' not in r['missing']
	and r['total'] == sum(one['total'] for one in r['stacks']) == $total and r['longest'] >= 360e6
	and len(r['stacks']) == $(wc -l </tmp/folded)"
for word in hrtimer_nanosleep pipe_read poll; do
	_sums=$(sums w $word)
	holds /tmp/out "count('$word') == ${_sums% *} > 0"
done
latency-tracker stacks few --json >/tmp/out
holds /tmp/out "r['missing']['other'] == $other == r['stacks'][-1]['count'] and r['stacks'][-1]['stack'] == ['[other]']"
latency-tracker stacks short --json >/tmp/out
holds /tmp/out "r['missing']['cut_off'] == $ended and all(one['cut_off'] for one in r['stacks'])"
for words in '--by waker' '--new'; do
	# shellcheck disable=SC2086 # words
	! latency-tracker stacks w $words 2>/tmp/err || fail "stacks w $words"
	says /tmp/err 'by=stack'
done
# shellcheck disable=SC2086 # words
latency-tracker stacks offcpu by=stack $of_victim --json -o /tmp/out -- python3 /tmp/three.py
holds /tmp/out 'r["exact"] and r["status"] == 0 and r["count"] == r["ended"]["count"] >= 12 and count("pipe_read") >= 3'
# by=stack in a recipe
mkdir /tmp/recipes
printf '%s\n' 'question: Q?' "run: offcpu by=stack $of_victim threshold=10s" 'normal: N.' 'next: X.' >/tmp/recipes/waits.recipe
LATENCY_TRACKER_RECIPES=/tmp/recipes latency-tracker stacks waits --json -o /tmp/out -- python3 /tmp/three.py
holds /tmp/out 'r["exact"] and r["status"] == 0 and r["count"] == r["ended"]["count"] >= 12 and count("pipe_read") >= 3'
! LATENCY_TRACKER_RECIPES=/tmp/recipes latency-tracker stacks waits --by waker 2>/tmp/err || fail "stacks waits --by waker"
says /tmp/err 'by=stack counts by the stack of the task, and records no waker'
# shellcheck disable=SC2086 # words
latency-tracker run offcpu --by stack $of_victim --json -o /tmp/out -- python3 /tmp/three.py
holds /tmp/out 'r["labels"]["by"] == "stack" and sum(one["count"] for one in r["labels"]["labels"]) == r["count"] >= 12'
# shellcheck disable=SC2086 # words
latency-tracker run offcpu --by stack $of_victim -o /tmp/out -- python3 /tmp/three.py
says /tmp/out 'STACK COUNT .*pipe_read [0-9]+ '
for name in w few short late; do control "-$name"; done

# A mutex serialises writers to parameters of a module: three waits, which end in the waiter itself.
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
# Tasks wait for other locks, too, perhaps in our module: only the rows of this mutex are checked.
if grep param_attr_store $LT/l/labels | grep -q 'latency_tracker\|__traceiter'; then fail "our own functions"; fi
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
