#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The runner can fail. A test whose exit status is 0 fails if the kernel complained, was tainted or
# crashed. A test that hangs is ended. Failure, skip and pass are distinguished. Tests that share a
# machine do not affect each other: if cleaning up is not enough, the next one gets a new machine. A
# failed test runs once more, alone, and is flaky if it then passes. After a finding, a test does not
# run again. More than three flaky tests fail the run (tests/again.sh). The table of costs is complete. No
# test starts after the deadline. The order of tests and the selection for make test-long are as
# described in the head of tests/run.
# timeout: 900
# worth: a runner that cannot fail would hide every other fault

. "$(dirname "$0")/../host.sh"
"$LT_TOP/scripts/build-module" stock
mkdir -p "$work/vm" "$work/host"

# vm_test NAME LIMIT COMMANDS [HEAD]: write a test for a machine with one processor, which boots in three
# quarters of the CPU time of a machine with two.
vm_test() { printf '# cpus: 1\n# timeout: %s\n%b. /lt/tests/lib.sh\n%s\n' "$2" "${4:-}" "$3" >"$work/vm/$1.sh"; }
# host_test NAME COMMANDS [HEAD]: write a test on the host.
host_test() { printf '%b%s\n' "${3:-}" "$2" >"$work/host/$1.sh"; }
# once NAME [HEAD]: write a test on the host that fails the first time.
once() { host_test "$1" "[ -e $work/$1 ] || { touch $work/$1; echo 'FAIL: the first time'; exit 1; }" "${2:-}"; }
# nothing: remove all tests and their results.
nothing() {
	find "$work" -maxdepth 1 -type f -delete
	rm -f "$work"/{vm,host}/*.sh
}

# run STATUS ARGUMENT...: run these tests; the runner must end with that status.
run() {
	local status=0 want=$1
	shift
	LT_TESTS=$work LT_LOGS=$work/log LT_JOBS=1 "$LT_TOP/tests/run" "$@" >"$work/said" 2>&1 || status=$?
	cat "$work/said"
	[ "$status" -eq "$want" ] || { echo "exit status $status, expected $want"; exit 1; }
}
check() { grep -qE -- "$1" "$work/said" || { echo "expected a line like: $1"; exit 1; }; }
last() { [ "$(tail -n 1 "$work/said")" = "$1" ] || { echo "not the closing line: $1"; exit 1; }; }
# costs NAME=RESULT...: check that these are the rows of the table of costs, in any order, each with
# its figures.
costs() {
	local rows
	rows=$(sed -n '1d; s/^\([^\t]*\)\t[0-9.]\{1,\}\t[0-9.]\{1,\}\t\([A-Z]*\)$/\1=\2/p' "$work/log/costs.tsv" | sort | xargs)
	[ "$rows" = "$(printf '%s\n' "$@" | sort | xargs)" ] || { cat "$work/log/costs.tsv"; echo "expected the rows $*"; exit 1; }
}
# The deadline and the order of the outer run do not apply to these runs.
unset LT_DEADLINE LT_LONG LT_AGAIN LT_SHARED LT_WORTH "${!LT_STRESS_@}"
export LT_TOUCHED='' LT_ROTATE=''

vm_test good 30 'echo all is well; assert_eq "${LT_LONG:-}" "" LT_LONG'
vm_test warned 30 'echo "WARNING: CPU: 0 PID: 1 at kernel/test.c:1 test+0x1/0x2" >/dev/kmsg'
vm_test tainted 30 'echo 512 >/proc/sys/kernel/tainted'
# One crash is in freed code, the other in code that the kernel had patched: only the second is the
# emulator's fault. The sleep lets earlier output reach the host first.
crash() {
	printf "sleep 1; for line in 'Oops: int3: 0000 [#1]' 'Code: 90 %s 48'; do echo \"\$line\" >/dev/kmsg; done\n" "$1"
	echo 'echo c >/proc/sysrq-trigger; sleep 20'
}
vm_test crashed 28 "$(crash 'cc <cc>')"
# The last test before the test that breaks the machine.
vm_test calm 26 'echo calm'
vm_test snapped 25 "$(crash 'eb <53>')"
vm_test hanging 5 'echo before; sleep 1000'
vm_test skipped 30 'skip "not on a Tuesday"'
# The test with the longest limit runs first. It leaves changes that can be undone: the next test
# does not find them.
vm_test leaving 100 '. /lt/tests/block.sh
	echo left >/tmp/file; echo left >/dev/kmsg; sleep 1000 & load_module; null_disk disk 1000
	control "one block"; echo 1 >/sys/kernel/tracing/events/sched/sched_switch/enable'
vm_test finding 90 'refused "a file" test -e /tmp/file; refused "a module" loaded; refused "a disk" test -e /dev/disk
	refused "a process" pidof sleep; refused "a line of the log" kernel_says left
	assert_eq "$(wc -l </sys/kernel/tracing/set_event)" 0 "events"'
# This test leaves a change that cannot be undone.
vm_test spoiling 80 'mkdir /spoilt; mount -t tmpfs none /spoilt'
vm_test unspoilt 70 'refused "a mount" grep spoilt /proc/mounts'
# Run alone, the test passes.
vm_test shy 110 'assert_eq "$(wc -l </lt/sequence/list)" 1 "tests in this machine"'
run 1
for test in leaving finding spoiling unspoilt good calm; do
	check "^PASS vm/$test@stock "
	[ ! -s "$work/log/vm/$test@stock/complaints" ] || { echo "$test has complaints that are not its own"; exit 1; }
done
check '^FAIL vm/warned@stock '
check '\| .*WARNING: CPU: 0'
check '^FAIL vm/tainted@stock '
check 'the kernel is tainted: 512'
check '^FAIL vm/crashed@stock '
check 'Kernel panic'
check '^FAIL vm/snapped@stock '
check 'vm: the emulator broke the machine'
check '^The emulator broke the machine of vm/snapped@stock,'
[ "$(grep -c '^The emulator broke' "$work/said")" -eq 1 ] || { echo "not once for each of its machines"; exit 1; }
check '^FAIL vm/hanging@stock '
check '^vm/hanging@stock: twice, first failed after [1-9][0-9.]* s: time is up: '
check '\| vm: time is up: ended after 5 s'
check '^SKIP vm/skipped@stock: not on a Tuesday$'
check "^AGAIN vm/shy@stock \\(failed after [0-9.]+ s: tests in this machine: got '13', expected '1'\\)"
check "FAIL: tests in this machine: got '13', expected '1'"
check '^FLAKY vm/shy@stock \(failed after [0-9.]+ s: tests in this machine: .*; passed alone\)$'
check '^1 flaky: vm/shy@stock$'
for log in shy@stock.first/output.log shy@stock/output.log shy@stock.first/console.log; do
	[ -e "$work/log/vm/$log" ] || { echo "no log $log"; exit 1; }
done
for test in warned tainted crashed snapped; do
	! grep -qE "^(AGAIN|FLAKY) vm/$test@" "$work/said" || { echo "$test ran again"; exit 1; }
done
# machines NAME: print the machines in which the test ran.
machines() { grep -lE "lt-test: $1 begins" "$work"/log/vm/{machine,again}-*/*/console.log | sort; }
[ "$(machines leaving)" = "$(machines finding)" ] || { echo "these two did not share a machine"; exit 1; }
[ "$(machines spoiling)" != "$(machines unspoilt)" ] || { echo "a spoilt machine went on"; exit 1; }
! machines shy | grep -qFx "$(machines leaving)" || { echo "a machine went on after a test that failed"; exit 1; }
counts=$(for test in snapped crashed warned shy; do machines $test | wc -l; done | xargs)
[ "$counts" = '2 1 1 2' ] || { echo "not one more machine for the broken one, and none after a finding, but $counts"; exit 1; }
# The test before the test that broke the machine does not run again, either.
[ "$(machines calm)" = "$(machines snapped | head -n 1)" ] || { echo "calm was not before snapped"; exit 1; }
[ "$(machines shy | grep -c /again-)" -eq 1 ] || { echo "the second run was not in a machine of its own"; exit 1; }
last '7 passed, 5 failed, 1 skipped'
costs vm/{leaving,finding,spoiling,unspoilt,good,calm}@stock=PASS vm/{warned,tainted,crashed,snapped,hanging}@stock=FAIL \
	vm/skipped@stock=SKIP vm/{shy,hanging}@stock=AGAIN vm/shy@stock=FLAKY
check '^CPU time: 0.0 s for builds and cargo, 0.0 s for host, [0-9.]+ s for vm, [0-9.]+ s for set-up and boots$'

# Many runs of tests that run only in make test-long. In the second run, the deadline passes during
# vm/good: LT_DEADLINE names the file of that test's output. The machine ends before the next test.
nothing
for test in good other; do vm_test $test 30 'echo "$LT_LONG"' '# long: stock\n'; done
vm_test out 10 'echo out' '# long: stock\n'
mkdir -p "$work/log/repeat/2/vm/good@stock"
echo 99999999999 >"$work/log/repeat/2/vm/good@stock/output.log"
sed -i 's/30/40/' "$work/vm/other.sh"
LT_LONG=1 LT_DEADLINE=@$work/log/repeat/2/vm/good@stock/output.log run 0 --repeat 2 'vm/*'
check '^vm/good@stock failed in 0 of 2 runs$'
check '^vm/out@stock failed in 0 of 1 runs$'
check '^SKIP vm/out@stock \(no time\)$'
check '^1 without time: vm/out@stock$'
last '5 passed, 0 failed, 1 skipped'
costs vm/{good,good,other,other,out}@stock=PASS vm/out@stock=SKIP
for round in 1 2; do
	[ "$(cat "$work/log/repeat/$round/vm/good@stock/output.log")" = 1 ] || { echo "no log of round $round, or no LT_LONG"; exit 1; }
done
[ ! -e "$work/log/repeat/2/vm/out@stock" ] || { echo "the machine went on after the deadline"; exit 1; }

# These tests are only on the host, where they are quick.
nothing
once moody
# A failure of the models is a failure of the code.
once loom
host_test bad 'exit 3'
host_test hanging 'sleep 100' '# timeout: 1\n'
run 1
check '^FAIL host/bad '
check '^FAIL host/hanging '
check '^FLAKY host/moody \(failed after [0-9.]+ s: the first time; passed alone\)$'
check '^AGAIN host/bad \(failed after [0-9.]+ s: exit status 3\)'
check '^host/bad: twice, first failed after .* s: exit status 3; '
check '^AGAIN host/hanging \(failed after [0-9.]+ s: time is up\)'
check '^FAIL host/loom '
! grep -qE '^(AGAIN|FLAKY) host/loom' "$work/said" || { echo "the models ran again"; exit 1; }
grep -q 'FAIL: the first time' "$work/log/host/moody.first.log" || { echo "not the log of the first run"; exit 1; }
[ -e "$work/log/host/moody.log" ] || { echo "no log of the second run"; exit 1; }
last '1 passed, 3 failed'
costs host/{bad,hanging,moody}=AGAIN host/{bad,hanging,loom}=FAIL host/moody=FLAKY
nothing
for test in one two three; do once $test; done
host_test four 'exit 0'
run 0
check '^3 flaky: '
last '4 passed, 0 failed'
once four
rm "$work"/{one,two,three}
run 1
check '^FAIL too many flaky tests: 4 passed only when they ran again, and at most 3 are allowed'
last '4 passed, 1 failed'
rm "$work"/{one,two,three,four}
LT_AGAIN=0 run 1
last '0 passed, 4 failed'

# Many runs: the second of three fails, and its log is named.
host_test often "echo run >>$work/runs; [ \$(wc -l <$work/runs) -ne 2 ] || { echo 'FAIL: the second'; exit 1; }"
run 1 --repeat 3 host/often
check '^host/often failed in 1 of 3 runs$'
check "^    $work/log/repeat/2/host/often.log: the second\$"
last '2 passed, 1 failed'
costs host/often={PASS,PASS,FAIL}
for wrong in '--repeat' '--repeat 0 host/often' '--repeat 3' '--repeat 2 nothing'; do
	# shellcheck disable=SC2086 # words
	run 1 $wrong
done

# An expensive test must justify its cost.
nothing
burn='import time\nwhile time.process_time() < 0.5: pass'
host_test burning "exec python3 -c \$'$burn'"
host_test worthy "exec python3 -c \$'$burn'" '# worth: it warms the room\n'
LT_WORTH=0.3 run 0
check "^More than 0.3 s of CPU time, and no line '# worth: WHY' in the head: host/burning\$"
run 0
! grep '# worth' "$work/said" || { echo "half a second is not worth a note"; exit 1; }

# After the deadline, only second runs start.
nothing
for limit in 60 50 40 30; do host_test t$limit 'exit 0' "# timeout: $limit\n"; done
LT_DEADLINE=1 run 1
for limit in 60 50 40 30; do check "^SKIP host/t$limit \\(no time\\)\$"; done
check '^4 without time: host/t60 host/t50 host/t40 host/t30$'
check '^FAIL too little time for the tests: 4 of 4 were skipped; the limit is a fifth\.$'
last '0 passed, 1 failed, 4 skipped'
costs host/t{60,50,40,30}=SKIP
LT_DEADLINE=99999999999 run 0
last '4 passed, 0 failed'
echo 99999999999 >"$work/deadline"
once t20 "# timeout: 20\necho 1 >$work/deadline\n"
vm_test t10 10 'exit 0'
LT_DEADLINE=@$work/deadline run 0
check '^FLAKY host/t20 '
check '^1 without time: vm/t10@stock$'
last '5 passed, 0 failed, 1 skipped'
# With more failures than tests may be flaky, there are no second runs after the deadline.
echo 99999999999 >"$work/deadline"
for limit in 60 50 40 30; do host_test t$limit 'exit 3' "# timeout: $limit\n"; done
LT_DEADLINE=@$work/deadline run 1
for limit in 60 50 40 30; do check "^FAIL host/t$limit \\(failed after .* s: exit status 3; no time for a second run\\)\$"; done
last '1 passed, 4 failed, 1 skipped'
for wrong in tomorrow -1 12h "@$work/none" "@$work/said"; do
	LT_DEADLINE=$wrong run 1
	check "LT_DEADLINE=$wrong: expected seconds since the epoch, .* or @FILE"
done

# order NAME...: check that the tests start in this order.
order() {
	run 0 --list
	[ "$(xargs <"$work/said")" = "$*" ] || { echo "expected the order $*"; exit 1; }
}
nothing
for test in a:10 b:20 c:30 engine-x:5 tree-y:6 z:40; do vm_test ${test%:*} ${test#*:} '' "$([ $test != z:40 ] || echo '# leaves: dust\n')"; done
order vm/{engine-x,c,b,a,tree-y,z}@stock
LT_TOUCHED='x y tree' order vm/{tree-y,engine-x,c,b,a,z}@stock
LT_TOUCHED=$'b\ntree-y' order vm/{b,tree-y,engine-x,c,a,z}@stock
LT_ROTATE=1 order vm/{engine-x,a,b,c,tree-y,z}@stock
LT_ROTATE=5 order vm/{engine-x,b,c,tree-y,a,z}@stock
LT_ROTATE=5 LT_TOUCHED=a order vm/{a,engine-x,b,c,tree-y,z}@stock
# Machines start in the order of their most urgent test, then by their total time. Each test has a
# machine of its own, except for z and c.
for test in a:2 b:4 tree-y:8 engine-x:16; do sed -i "1i # cpus: ${test#*:}" "$work/vm/${test%:*}.sh"; done
host_test h 'exit 0' '# timeout: 25\n'
order vm/{engine-x,c,z}@stock host/h vm/{b,a,tree-y}@stock
LT_TOUCHED='a z' order vm/{c,z,a,engine-x}@stock host/h vm/{b,tree-y}@stock
LT_ROTATE=3 order vm/{engine-x,tree-y,c,z}@stock host/h vm/{b,a}@stock
LT_ROTATE=x run 1 --list
check 'LT_ROTATE=x: expected a number'

# Without these variables, the commits determine the order: the last ten, if all ten exist.
if command -v git >/dev/null; then
	repository=$work/repository
	mkdir -p "$repository/rust/trackers"
	ln -s "$LT_TOP/scripts" "$LT_TOP/tests" "$repository"
	in_git() { git -C "$repository" -c user.name=runner -c user.email=runner@localhost "$@"; }
	in_git init --quiet
	# from_git NAME: check that this test starts first in this repository.
	from_git() {
		(unset LT_TOUCHED LT_ROTATE; env LT_TOP="$repository" LT_TESTS="$work" "$LT_TOP/tests/run" --list) >"$work/said"
		[ "$(head -n 1 "$work/said")" = "$1" ] || { cat "$work/said"; echo "$1 is not the first one"; exit 1; }
	}
	for commit in a nothing tree 4 5 6 7 8 9 10; do
		echo >"$repository/rust/trackers/$commit.rs"
		in_git add rust
		in_git commit --quiet --message "$commit"
	done
	from_git vm/engine-x@stock
	in_git commit --quiet --allow-empty --message 11
	from_git vm/tree-y@stock
	cp "$work/said" "$work/before"
	from_git vm/tree-y@stock
	cmp "$work/said" "$work/before"
	in_git clone --quiet --depth 1 "file://$repository" "$work/shallow"
	ln -s "$LT_TOP/scripts" "$LT_TOP/tests" "$work/shallow"
	repository=$work/shallow from_git vm/engine-x@stock
	rm -rf "$work/repository/.git"
	from_git vm/engine-x@stock
	mv "$work/said" "$work/before"
	run 0 --list
	cmp "$work/said" "$work/before"
fi

# The tests of make test-long.
nothing
vm_test either 10 '' '# kernels: stock\n# long: rt\n'
vm_test long 10 '' '# long: stock\n'
vm_test part 10 '' '# kernels: stock rt\n# long-part: more of it\n'
vm_test short 10 ''
host_test long '' '# long: yes\n'
host_test part '' '# long-part: more of it\n'
host_test short ''
# has NAME...: check that the run has these tests, in any order.
has() {
	run 0 --list
	[ "$(sort "$work/said")" = "$(printf '%s\n' "$@" | sort)" ] || { echo "expected the tests $*"; exit 1; }
}
has host/{part,short} vm/{either,short}@stock vm/part@{stock,rt}
LT_LONG=0 has host/{part,short} vm/{either,short}@stock vm/part@{stock,rt}
LT_LONG=1 has host/{long,part} vm/either@rt vm/long@stock vm/part@{stock,rt}
LT_LONG=yes run 1 --list
check 'LT_LONG=yes: expected 0 or 1'
# A command whose status bash no longer has when the runner waits for it: a signal killed it, or its
# pid belongs to another child.
cat >"$work/forgotten" <<'END'
set -euo pipefail
. "$1/scripts/lib.sh"
. "$1/scripts/report.sh"
LOGS=$2/log JOBS=3
die_at_once() { kill -KILL "$BASHPID"; }
ended() { while [ -e "/proc/$1" ] && ! grep -q '^State:.Z' "/proc/$1/status"; do sleep 0.1; done 2>/dev/null; sleep 0.1; }
several "$LOGS/killed.results" killed -- die_at_once
ended $!
beside first "$LOGS/first.log" true
first=$!
ended $first
# next NUMBER: give this pid to the next process, unless another program forks first. Some
# containers do not allow this.
next() { { echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; } 2>/dev/null; }
for ((try = 0; try < 1000; try++)); do
	next $first || { echo "note: the number of the next process cannot be set here"; break; }
	[ "$(echo $BASHPID)" -ne $first ] || break
done
[ $try -lt 1000 ] || die "no process got the number $first"
next $first || :
beside second "$LOGS/second.log" sleep 1
for ((try = 0; try < 3; try++)); do beside other$try "$LOGS/other$try.log" true; done
reap_all
closing
END
status=0
bash "$work/forgotten" "$LT_TOP" "$work" >"$work/said" 2>&1 || status=$?
cat "$work/said"
[ "$status" -eq 1 ] || { echo "exit status $status, expected 1"; exit 1; }
check '^FAIL killed '
check '\| It has no result'
for test in first second other0 other1 other2; do check "^PASS $test "; done
last '5 passed, 1 failed'
! pgrep -f "$work" >/dev/null || { echo "processes are left:"; pgrep -fa "$work"; exit 1; }
