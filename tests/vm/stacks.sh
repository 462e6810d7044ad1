# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `latency-tracker stacks` distinguishes two known reasons to sleep: it shows each with its count, first the reason
# with the longer total. It does so from an instance of its own, from another user's instance, which keeps its line
# and all its alerts, and from a file. A stack that is cut off or missing, an alert that is gone, and an operation
# that has not ended are counted. With ustack=1, the functions of programs follow the kernel's functions. Nothing is
# left behind.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 300

. /lt/tests/lib.sh

# The command loads and unloads the module itself.
few_modules /lt/latency_tracker.ko

# The truth: `victim` sleeps five times for 60 ms, and waits three times for 400 ms until `writer` writes to a pipe.
cat >/tmp/two.py <<'END'
import os, time

def called(name):
    with open("/proc/self/comm", "w", encoding="ascii") as comm:
        comm.write(name)

there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    called("writer")
    for _ in range(3):
        os.read(there[0], 1)
        time.sleep(0.4)
        os.write(back[1], b"x")
    os._exit(0)
called("victim")
for _ in range(5):
    time.sleep(0.06)
for _ in range(3):
    os.write(there[1], b"x")
    os.read(back[0], 1)
called("done")
os.wait()
END

# stacks STATUS WORD...: check the exit status of the command; its output is in /tmp/out, its notes are in /tmp/err.
stacks() {
	_want=$1 _rc=0
	shift
	latency-tracker stacks "$@" >/tmp/out 2>/tmp/err || _rc=$?
	cat /tmp/err /tmp/out
	assert_eq "$_rc" "$_want" "the exit status of stacks $*"
}
says() { tr -s ' \n' ' ' <"$1" | grep -qE -- "$2" || fail "no '$2'"; }
# holds EXPRESSION FILE...: note that EXPRESSION, in Python, must be true of the JSON objects r[0], r[1] ... of the
# files. One interpreter judges all notes at the end: under emulation, starting one takes as long as the command.
holds() {
	_notes=$((${_notes:-0} + 1)) _file=0
	mkdir -p /tmp/notes/$_notes
	printf '%s' "$1" >/tmp/notes/$_notes/expression
	shift
	for _json; do
		cp "$_json" /tmp/notes/$_notes/$_file
		_file=$((_file + 1))
	done
}
truth='[s["count"] for s in r[0]["stacks"]] == [3, 5] and r[0]["count"] == 8
	and of(0, "pipe_read")["count"] == 3 and of(0, "pipe_read")["total"] >= 1200e6 and of(0, "pipe_read")["longest"] >= 400e6
	and of(0, "hrtimer_nanosleep")["count"] == 5 and of(0, "hrtimer_nanosleep")["total"] >= 300e6
	and sum(s["total"] for s in r[0]["stacks"]) == r[0]["total"] and r[0]["threshold"] == [40e6, 40e6]'
whole='all(s["stack"][-1].startswith("entry_SYSCALL") and not s["cut_off"] for s in r[0]["stacks"])
	and not any(missing(0, key) for key in ["no_stack", "cut_off", "unread", "older", "not_ended"])'

# Errors come before anything is started.
stacks 1 nosuch
says /tmp/err 'unknown tracker or recipe "nosuch"'
stacks 1 block
says /tmp/err 'block records a stack only for an operation that times out.*add timeout='
stacks 1 offcpu worst=1
says /tmp/err 'worst=1 reports new records only'
stacks 1 offcpu stack=0
says /tmp/err 'stack=0 records no stack'
stacks 1 offcpu by=stack ustack=1
says /tmp/err 'by=stack counts by the stack in the kernel, and records no functions of programs'
stacks 1 offcpu -d 0
says /tmp/err 'offcpu is not an instance'
stacks 1 --alerts /no/such/file
[ ! -d $LT ] || fail "the module is still loaded"

# The command has an instance of its own while it runs a program.
stacks 0 offcpu comm=victim threshold=40ms --json -o /tmp/own -- python3 /tmp/two.py
holds "$truth and $whole and r[0]['ended']['count'] >= 8 and r[0]['status'] == 0" /tmp/own
[ ! -d $LT ] || fail "the module is still loaded"
# A call waits in one place, but has an alert for its stack and another alert for its end.
stacks 0 syscall comm=victim calls=read,clock_nanosleep threshold=40ms --json -o /tmp/calls -- python3 /tmp/two.py
holds "$truth and $whole" /tmp/calls

# Instances of another user, one of each kind.
load_module
control 'w offcpu threshold=40ms comm=victim stack=32'
control 'short offcpu threshold=40ms comm=victim stack=3'
control 'none offcpu threshold=40ms comm=victim stack=0'
control 'small offcpu threshold=40ms comm=victim ring=2'
control 'hung offcpu threshold=40ms timeout=100ms comm=hung'
control 'flies offcpu threshold=40ms comm=hung'
cp $LT/control /tmp/before
exec 3<$LT/w/alerts
latency-tracker stacks w --json >/tmp/live 2>/tmp/err -d 10m &
reader=$!
wait_until 60 grep -q 'reading the alerts of w' /tmp/err
python3 /tmp/two.py
wait_until 10 stat_is w alerts -eq 8
kill -INT $reader
wait $reader && status=0 || status=$?
assert_eq $status 2 "the exit status with alerts"
cat /tmp/live
holds "$truth and $whole" /tmp/live
alerts_of w /tmp/late
exec 3<&-
stacks 0 --alerts /tmp/late --json -o /tmp/file
stacks 2 w -d 0 --json -o /tmp/recorded
holds 'r[0]["stacks"] == r[1]["stacks"] == r[2]["stacks"]' /tmp/live /tmp/file /tmp/recorded
stacks 0 w -d 0 --new
says /tmp/out 'Nothing that ended took longer than the threshold \(40ms\)\.'
assert_eq "$(grep -c '^seq=' $LT/w/wakeup)" 8 "alerts for a reader of wakeup"
cmp /tmp/before $LT/control || fail "an instance has changed"

# The output for people, and the output for flame graph tools.
stacks 2 w -d 0
says /tmp/out 'w \(offcpu\), as recorded: 8 late operations in 2 stacks, .*Only delays above the threshold \(40ms\) are in here\.'
says /tmp/out ' 3 [0-9.]+m?s [0-9.]+ [0-9.]+ms victim anon_pipe_read.* entry_SYSCALL_64.* 5 [0-9.]+ms [0-9.]+ [0-9.]+ms victim hrtimer_nanosleep'
stacks 2 w -d 0 --folded
grep -Eq '^victim;entry_SYSCALL_64_after_hwframe;do_syscall_64;[^ ]*pipe_read [0-9]+$' /tmp/out || fail "no folded stack"
python3 - <<'END' || fail "the folded sums differ"
import json
lines = [line.rsplit(" ", 1) for line in open("/tmp/out", encoding="utf-8").read().splitlines()]
total = json.loads(open("/tmp/recorded", encoding="utf-8").read())["total"]
assert len(lines) == 2 and abs(sum(int(value) for _, value in lines) - total / 1000) <= 2, (lines, total)
END
says /tmp/err 'Only delays above the threshold'
stacks 2 w -d 0 --by waker --folded
grep -Eq '^writer;entry_SYSCALL_64_after_hwframe;[^ ]*pipe_write;[^ ]* [0-9]+$' /tmp/out || fail "no waker"
stacks 2 w -d 0 --by both --json -o /tmp/both
holds '[s["count"] for s in r[0]["stacks"]][0] == 3 and of(0, "pipe_write", "waker_stack")["tasks"][0]["waker"] == "writer"
	and all(t["waker"] != "writer" for t in r[0]["stacks"][-1]["tasks"])' /tmp/both

# What the stacks lack is counted.
stacks 2 short -d 0 --json -o /tmp/out.json
holds 'r[0]["count"] == 8 and missing(0, "cut_off") == 8 and all(s["cut_off"] and len(s["stack"]) == 3 for s in r[0]["stacks"])' /tmp/out.json
stacks 2 short -d 0
says /tmp/out '\[cut off\].* cut_off 8 operations whose stack is cut off'
stacks 2 none -d 0 --json -o /tmp/out.json
holds 'r[0]["count"] == 8 == missing(0, "no_stack") and r[0]["stacks"][0]["stack"] == []' /tmp/out.json
stacks 2 none -d 0
says /tmp/out ' no_stack 8 late operations without a stack: the instance has stack=0'
stacks 2 small -d 0 --json -o /tmp/out.json
holds 'r[0]["count"] == 2 and missing(0, "older") == 6' /tmp/out.json
stacks 1 w threshold=1ms
says /tmp/err 'threshold=1ms: w is an instance, which is not changed'

# An operation that has not ended is in the sums if it has raised an alert, and listed separately if not.
python3 -c 'import time; open("/proc/self/comm", "w").write("hung"); time.sleep(1000)' &
hung=$!
wait_until 60 stat_is hung timed_out -eq 1
stacks 2 hung -d 0 --json -o /tmp/out.json
holds 'r[0]["count"] == 1 == missing(0, "not_ended") and of(0, "hrtimer_nanosleep")["total"] > 100e6 and r[0]["in_flight"] == []' /tmp/out.json
stacks 0 flies -d 0 --json -o /tmp/out.json
holds 'r[0]["count"] == 0 and r[0]["in_flight"][0]["tasks"][0]["comm"] == "hung"' /tmp/out.json
stacks 0 flies -d 0
says /tmp/out 'Not ended, for longer than the threshold, and not in the sums: 1 operation .*hung hrtimer_nanosleep'
kill $hung
wait $hung || :

# Two programs have the same stack when they sleep, and the third a deeper one. A worker reports an operation that has
# not ended, so that its stack in user space is missing.
control 'u offcpu threshold=100ms comm=late-fp when=blocked stack=32 ustack=1'
control 'e offcpu threshold=100s timeout=100ms comm=late-fp when=blocked stack=32 ustack=1'
programs=''
for mode in stay stay deep; do
	late-fp $mode 400 &
	programs="$programs $!"
done
wait_until 60 stat_is u alerts -ge 3
wait_until 60 stat_is e timed_out -ge 6
deep="inner$(printf ' deep%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)"
slept='{" ".join(f.split("+")[0] for f in s["user_stack"]): (s["count"], s["user_cut_off"])
	for s in r[0]["stacks"] if any("nanosleep" in f for f in s["stack"])}'
by_program="$slept == {'inner middle outer first _start': (2, False), '$deep': (1, True)}"
stacks 2 u -d 0 --json -o /tmp/out.json
holds "$by_program and missing(0, 'user_cut_off') >= 1 and missing(0, 'no_user_stack') == missing(0, 'unnamed') == 0" /tmp/out.json
stacks 2 e -d 0 --json -o /tmp/out.json
holds "$by_program and missing(0, 'no_user_stack') >= 3" /tmp/out.json
stacks 2 u -d 0
says /tmp/out 'nanosleep.* entry_SYSCALL_64[^ ]* in user space: inner\+0x[0-9a-f]+ \[[^ ]*/late-fp\] middle\+0x[0-9a-f]+ '
stacks 2 u -d 0 --folded
grep -Eq '^late-fp;_start;first;outer;middle;inner;entry_SYSCALL_64[^ ]*nanosleep [0-9]+$' /tmp/out || fail "no functions of the program"
grep -Eq '^late-fp;\[cut off\];deep;deep;[^ ]*;deep;inner;entry_SYSCALL_64[^ ]*nanosleep [0-9]+$' /tmp/out || fail "no functions of a stack that is cut off"
stacks 2 e -d 0 --folded
grep -Eq '^late-fp;\[no user stack\];entry_SYSCALL_64[^ ]* [0-9]+$' /tmp/out || fail "no frame for a missing stack"
says /tmp/err 'no_user_stack=[0-9]+: late operations without a stack in user space: [0-9]+ whose alert another task raised'
# Once the programs have exited, their functions have no names.
# shellcheck disable=SC2086 # words
kill $programs
# shellcheck disable=SC2086 # words
wait $programs || :
stacks 2 u -d 0 --json -o /tmp/out.json
holds 'missing(0, "unnamed") >= 3 and all(f.startswith("0x") for s in r[0]["stacks"] for f in s["user_stack"])' /tmp/out.json
python3 - <<'END' || fail "what the stacks hold: see above"
import json, os, sys
# of(i, WORD) is the only stack of r[i] that has WORD in a function's name.
def of(i, word, key="stack"):
    found = [one for one in r[i]["stacks"] if any(word in frame for frame in one[key])]
    assert len(found) == 1, found
    return found[0]
def missing(i, key):
    return r[i]["missing"].get(key, 0)
def read(file):
    with open(file, encoding="utf-8") as text:
        return text.read()
wrong = 0
notes = sorted(os.listdir("/tmp/notes"), key=int)
for note in notes:
    files = sorted(set(os.listdir(f"/tmp/notes/{note}")) - {"expression"})
    r = [json.loads(read(f"/tmp/notes/{note}/{file}")) for file in files]
    expression = read(f"/tmp/notes/{note}/expression")
    try:
        holds = eval(f"({expression})")
    except (AssertionError, LookupError) as fault:
        holds, expression = False, f"{expression}: {fault!r}"
    if not holds:
        wrong += 1
        print(f"{note}: not {expression}: {r}")
print(len(notes), "notes,", wrong, "wrong")
sys.exit(wrong > 0)
END
unload_module
found=$(find /run/latency-tracker -name '*.json' 2>/dev/null) || :
assert_eq "$found" "" "what is left"
