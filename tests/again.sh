# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# again.sh: what tests/run does with a test that failed: a second run, or the next of many (--repeat).
#
# A test of vm/ or host/ that failed runs once more after all others, alone, in a machine of its own. If it passes then,
# it counts as passed, and is called flaky: something beside it, or the time of day, decides. Both logs are kept. A flaky
# test is a bug with a name; a run with more than MOST_FLAKY of them fails.
#
# What is a finding at its first sight never runs again: a complaint of the kernel or a crash of the machine (status
# FINDING, which tests/machines.sh gives), a failure of a build, of `cargo test`, or of the models. Nor does anything
# with LT_AGAIN=0, and no more than MOST_AGAIN tests do: then the run has failed, whatever they say.
#
# After the deadline (LT_DEADLINE) a second run decides whether the whole run has failed, so it is made; but not if more
# than MOST_FLAKY tests failed, since then it has failed in any case. So a run of .ci/run, whose deadline is after 70
# minutes, ends after that with the tests that are running and at most MOST_FLAKY others. Each of these takes a few
# minutes, and the whole stays under 90 minutes, unless one hangs until its time limit.
#
# Needs lib.sh, report.sh, machines.sh and plan.sh.

MOST_FLAKY=3
MOST_AGAIN=12
declare -A first_failures=()
failed_once=()

# follow_up NAME: what comes after this test is decided here: with --repeat it is counted; if it fails, it runs again, by
# `second_run` of tests/run.
follow_up() {
	if [ -n "$repeat" ]; then
		judges[$1]=repeated_verdict
	elif [ "${LT_AGAIN:-1}" != 0 ]; then
		judges[$1]=first_verdict
	fi
}

# kept LOG: where the logs of a first failure stand while the test runs again.
kept() {
	case $1 in
		*/output.log) echo "${1%/output.log}.first/output.log" ;;
		*) echo "${1%.log}.first.log" ;;
	esac
}

# reason LOG STATUS: why a test failed, in one line.
reason() {
	local line
	line=$(grep -aE '^(FAIL: |vm: time is up)' "$1" | tail -n 1 || :)
	[ -n "$line" ] || line=$(grep -av '^ *$' "$1" | tail -n 1 || :)
	line=${line#FAIL: }
	line=${line#vm: }
	# not what a terminal would take for a command
	line=$(tr -cd '[:print:]' <<<"${line:0:160}")
	# `timeout` says nothing
	case $line$2 in
		124|137) line='time is up' ;;
		"$2") line="exit status $2" ;;
	esac
	echo "$line"
}

# first_verdict NAME STATUS SECONDS LOG CPU: as `verdict`, of a test that may run again.
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

# second_verdict NAME STATUS SECONDS LOG CPU: as `verdict`, of a test that runs again.
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
	# what can be skipped now could have been skipped before
	[ "$2" -ne 77 ] || echo "It was skipped when it ran again." >>"$4"
	printf '%s: twice, first %s; its log: %s\n' "$1" "${first_failures[$1]}" "$first"
	verdict "$1" 1 "${@:3}"
}

# run_again: the second run of each test that failed, one by one.
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
		echo "FAIL too many flaky tests: ${#flaky[@]} passed only when they ran again, and $MOST_FLAKY may."
	}
}

# Many runs of a test: tests/run --repeat N NAME...

declare -A runs_of=() failures_of=()

# logs_of ROUND: where its logs are.
logs_of() { echo "$LOGS${repeat:+/repeat/$1}"; }

# round ROUND COMMAND...: COMMAND, with the logs of this round.
round() { LOGS=$(logs_of "$1") "${@:2}"; }

# repeated_verdict NAME STATUS SECONDS LOG CPU: as `verdict`, of one of many runs of a test.
repeated_verdict() {
	runs_of[$1]=$((${runs_of[$1]:-0} + ($2 != NO_TIME)))
	case $2 in 0|77|"$NO_TIME") ;; *) failures_of[$1]+=" $2:$4" ;; esac
	verdict "$@"
}

# repetition: how often each test failed.
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
