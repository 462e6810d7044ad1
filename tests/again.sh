# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# again.sh: how tests/run repeats tests: a second run of a failed test, or many runs (--repeat).
#
# A failed test of vm/ or host/ runs once more after all others, alone, in a machine of its own. If it then passes, it
# counts as passed and is called flaky: its result depends on other load or on timing. Both logs are kept. A flaky test
# is a bug; a run with more than MOST_FLAKY flaky tests fails.
#
# Some failures are conclusive, and the test does not run again: a kernel warning or a crash of the machine (status
# FINDING, from tests/machines.sh), a failure of a build, of `cargo test`, or of the models. With LT_AGAIN=0 no test
# runs again. At most MOST_AGAIN tests run again: if more failed, the run has failed anyway.
#
# A second run can decide the whole run, so it is made even after the deadline (LT_DEADLINE), unless more than
# MOST_FLAKY tests failed. So after its deadline, at 70 minutes, .ci/run only finishes the running tests and makes at
# most MOST_FLAKY second runs. Each takes a few minutes, and the whole run stays under 90 minutes, unless a test hangs
# until its time limit.
#
# Needs lib.sh, report.sh, machines.sh and plan.sh.

MOST_FLAKY=3
MOST_AGAIN=12
declare -A first_failures=()
failed_once=()

# follow_up NAME: choose the function that judges this test: with --repeat it counts failures; otherwise a failed test
# runs again, by `second_run` of tests/run.
follow_up() {
	if [ -n "$repeat" ]; then
		judges[$1]=repeated_verdict
	elif [ "${LT_AGAIN:-1}" != 0 ]; then
		judges[$1]=first_verdict
	fi
}

# kept LOG: print the path where the log of the first failure is kept while the test runs again.
kept() {
	case $1 in
		*/output.log) echo "${1%/output.log}.first/output.log" ;;
		*) echo "${1%.log}.first.log" ;;
	esac
}

# reason LOG STATUS: print the reason for a failure, in one line.
reason() {
	local line
	line=$(grep -aE '^(FAIL: |vm: time is up)' "$1" | tail -n 1 || :)
	[ -n "$line" ] || line=$(grep -av '^ *$' "$1" | tail -n 1 || :)
	line=${line#FAIL: }
	line=${line#vm: }
	# no escape sequences
	line=$(tr -cd '[:print:]' <<<"${line:0:160}")
	# `timeout` prints nothing
	case $line$2 in
		124|137) line='time is up' ;;
		"$2") line="exit status $2" ;;
	esac
	echo "$line"
}

# first_verdict NAME STATUS SECONDS LOG CPU: judge the first run of a test: `verdict`, or note it for a second run.
first_verdict() {
	local to
	to=$(kept "$4")
	case $to in */output.log) rm -rf "${to%/*}" ;; *) rm -f "$to" ;; esac
	case $2 in
		0|77|"$FINDING"|"$NO_TIME") verdict "$@"; return ;;
	esac
	if [ ${#failed_once[@]} -ge "$MOST_AGAIN" ]; then
		verdict "$@"
		return
	fi
	case $to in */output.log) mv "${4%/*}" "${to%/*}" ;; *) mv "$4" "$to" ;; esac
	failed_once+=("$1")
	cost "$1" "$5" "$3" AGAIN
	first_failures[$1]="failed after $3 s: $(reason "$to" "$2")"
	printf 'AGAIN %s (%s): it runs again, alone, after all others\n' "$1" "${first_failures[$1]}"
	excerpt "$to"
}

# second_verdict NAME STATUS SECONDS LOG CPU: judge the second run: flaky, or `verdict`.
second_verdict() {
	local first
	first=$(kept "$4")
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1))
		flaky+=("$1")
		cost "$1" "$5" "$3" FLAKY
		printf 'FLAKY %s (%s; passed alone)\n' "$1" "${first_failures[$1]}"
		printf '    The log of the first run: %s, of the second: %s\n' "$first" "$4"
		return
	fi
	# the first run did not skip it, so this is a failure
	[ "$2" -ne 77 ] || echo "It was skipped when it ran again." >>"$4"
	printf '%s: twice, first %s; its log: %s\n' "$1" "${first_failures[$1]}" "$first"
	verdict "$1" 1 "${@:3}"
}

# run_again: run the noted tests a second time, one by one.
run_again() {
	local name results=$LOGS/again.results
	reap_all
	[ ${#failed_once[@]} -eq 0 ] || echo "== again, alone: ${failed_once[*]}"
	for name in "${failed_once[@]}"; do
		if [ ${#failed_once[@]} -gt "$MOST_FLAKY" ] && no_time_left; then
			failed=$((failed + 1))
			cost "$name" 0 0 FAIL
			echo "FAIL $name (${first_failures[$name]}; no time for a second run)"
			continue
		fi
		# shellcheck disable=SC2034 # for `reap`
		judges[$name]=second_verdict
		several "$results" "$name" -- second_run "$name" "$results"
		reap_all
	done
	[ ${#flaky[@]} -le "$MOST_FLAKY" ] || {
		failed=$((failed + 1))
		echo "FAIL too many flaky tests: ${#flaky[@]} passed only when they ran again, and at most $MOST_FLAKY are allowed."
	}
}

# Many runs of a test: tests/run --repeat N NAME...

declare -A runs_of=() failures_of=()

# logs_of ROUND: print the log directory of this round.
logs_of() { echo "$LOGS${repeat:+/repeat/$1}"; }

# round ROUND COMMAND...: run COMMAND with the log directory of this round.
round() { LOGS=$(logs_of "$1") "${@:2}"; }

# repeated_verdict NAME STATUS SECONDS LOG CPU: judge one of many runs, and count it.
repeated_verdict() {
	runs_of[$1]=$((${runs_of[$1]:-0} + ($2 != NO_TIME)))
	case $2 in 0|77|"$NO_TIME") ;; *) failures_of[$1]+=" $2:$4" ;; esac
	verdict "$@"
}

# repetition: print how often each test failed.
repetition() {
	local name log logs status
	[ ${#runs_of[@]} -gt 0 ] || die "nothing of vm/ or host/ has a name like that; see $0 --list, and LT_LONG=1 $0 --list for what make test-long adds"
	for name in $(printf '%s\n' "${!runs_of[@]}" | sort); do
		read -ra logs <<<"${failures_of[$name]:-}"
		printf '%s failed in %s of %s runs\n' "$name" "${#logs[@]}" "${runs_of[$name]}"
		for log in "${logs[@]}"; do
			status=${log%%:*} log=${log#*:}
			printf '    %s: %s\n' "$log" "$(reason "$log" "$status")"
		done
	done
}
