# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# report.sh: reports named results, for tests/run, tests/run-debug and scripts/check, and selects names for
# tests/run-suite. Needs lib.sh, $LOGS, and for `beside` and `several` $JOBS.

[ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 51 ] || die "needs bash 5.1"
declare -A running=() judges=()
passed=0 failed=0 skipped=0 status=0 seconds=0 cpu='' list='' words=() flaky=() without_time=() costs=()
# The status of a test that did not start before the deadline: larger than any exit status.
NO_TIME=1000
# Functions that print more about the costs of the results.
on_costs=()

# choose ARGUMENT...: parse --list, and the words that select by name.
choose() {
	local word
	for word in "$@"; do
		case $word in
			--help) usage; exit ;;
			--list) list=1 ;;
			-*) die "unknown option $word; see $0 --help" ;;
			*) words+=("$word") ;;
		esac
	done
}

# wanted NAME: whether the result is selected.
wanted() {
	local word
	[ ${#words[@]} -gt 0 ] || return 0
	for word in "${words[@]}"; do
		# shellcheck disable=SC2053 # the word is a pattern on purpose
		[[ $1 == *$word* ]] && return 0
	done
	return 1
}

# verdict NAME STATUS SECONDS LOG [CPU]: count one result and print it. CPU is its CPU time in seconds, which means more
# than elapsed time on a busy machine.
verdict() {
	local took="$3 s${5:+, $5 s of CPU time}" result=FAIL
	case $2 in
		0) result=PASS passed=$((passed + 1)); printf 'PASS %s (%s)\n' "$1" "$took" ;;
		77) result=SKIP skipped=$((skipped + 1)); printf 'SKIP %s: %s\n' "$1" "$(grep -a '^SKIP: ' "$4" | tail -n 1 | cut -c7-)" ;;
		"$NO_TIME") result=SKIP skipped=$((skipped + 1)); without_time+=("$1"); printf 'SKIP %s (no time)\n' "$1" ;;
		*) failed=$((failed + 1)); printf 'FAIL %s (%s)\n' "$1" "$took"; excerpt "$4" ;;
	esac
	cost "$1" "${5:-}" "$3" "$result"
}

# cost NAME CPU SECONDS RESULT: add the cost of a result, if known, to the table $COSTS, if there is one.
cost() {
	[ -n "$2" ] || return 0
	costs+=("$2 $1")
	[ -z "${COSTS:-}" ] || printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$COSTS"
}

# excerpt LOG: print its last lines.
excerpt() {
	tail -n 30 "$1" | sed 's/^/    | /'
	printf '    The whole log: %s\n' "$1"
}

# spent FILE: set spent to the CPU milliseconds of our children that have ended. `times` writes to FILE, which is then
# removed: in $(times), the subshell has no children.
spent() {
	local user system
	times >"$1"
	{ read -r _; read -r user system; } <"$1"
	rm "$1"
	user=${user%s} system=${system%s}
	user=${user/[.,]/} system=${system/[.,]/}
	spent=$(((${user%m*} + ${system%m*}) * 60000 + 10#${user#*m} + 10#${system#*m}))
}

# tenths MILLISECONDS: print this time in seconds.
tenths() { echo "$(($1 / 1000)).$(($1 / 100 % 10))"; }

# timed LOG COMMAND...: run COMMAND, all output to LOG; sets status, seconds and cpu.
timed() {
	local log=$1 start=${EPOCHREALTIME/[.,]/} spent before
	shift
	mkdir -p "${log%/*}"
	spent "$log.times"
	before=$spent
	status=0
	# in its own shell, so that set -e applies inside functions
	( set -e; "$@" ) >"$log" 2>&1 </dev/null &
	wait $! || status=$?
	seconds=$(tenths $(((${EPOCHREALTIME/[.,]/} - start) / 1000)))
	spent "$log.times"
	cpu=$(tenths $((spent - before)))
}

# setup COMMAND...: run a set-up that all results need; a failure is the only result of the run.
setup() {
	"$@" >/dev/null || no_setup "${*#"$LT_TOP/"}"
}

# no_setup COMMAND: end the run, since this set-up failed, after the commands that are already running.
no_setup() {
	failed=$((failed + 1))
	echo "FAIL set-up: $1"
	reap_all
	closing
}

# setup_trees KERNEL...: make the build trees of the kernels in parallel: much of that work uses one processor only.
setup_trees() {
	local kernel broken=()
	declare -A trees=()
	for kernel in "$@"; do
		# not to a terminal, where two lines of progress would write over each other
		"$LT_TOP/scripts/kernel-tree" "$kernel" >/dev/null 2> >(cat >&2) &
		trees[$kernel]=$!
	done
	for kernel in "$@"; do wait "${trees[$kernel]}" || broken+=("$kernel"); done
	[ ${#broken[@]} -eq 0 ] || no_setup "scripts/kernel-tree ${broken[0]}"
}

# beside NAME LOG COMMAND...: run a command, whose exit status is the only result, in parallel with others, JOBS at a time.
# The result is reported when the command has ended and is reaped.
beside() {
	local name=$1 log=$2
	shift 2
	wanted "$name" || return 0
	[ -z "$list" ] || { echo "$name"; return 0; }
	several "$log.results" "$name" -- one_of_them "$log.results" "$name" "$log" "$@"
}

# one_of_them RESULTS NAME LOG COMMAND...: write the single result of `beside`.
one_of_them() {
	timed "$3" "${@:4}"
	echo "$2 $3 $status $seconds $cpu" >"$1"
}

# several RESULTS NAME... -- COMMAND...: like `beside`, for a command that has several results, which it writes to the
# file RESULTS, one per line: NAME LOG STATUS SECONDS [CPU].
several() {
	local results=$1 names=() pid
	shift
	while [ "$1" != -- ]; do names+=("$1"); shift; done
	shift
	slot
	mkdir -p "${results%/*}"
	rm -f "$results"
	"$@" &
	pid=$!
	# if a running command had this pid, it has ended
	[ -z "${running[$pid]:-}" ] || reported "$pid"
	running[$pid]="$results ${names[*]}"
}

# slot: wait until one more command may run.
slot() { [ ${#running[@]} -lt "$JOBS" ] || reap; }

# reap: wait for one of the running commands, and report its results. `jobs` shows which command
# has ended: `wait` may no longer know a command that a signal killed, or whose pid another child has now.
reap() {
	local pid known
	while :; do
		known=" $(jobs -p | tr '\n' ' ')"
		for pid in "${!running[@]}"; do
			[[ $known == *" $pid "* ]] || { reported "$pid"; return; }
		done
		wait -n "${!running[@]}" || :
	done
}

# reported PID: report the results of a command that has ended, with the function in judges[NAME],
# if there is one. That function has the same arguments as `verdict`.
reported() {
	local results names name log
	read -r results names <<<"${running[$1]}"
	unset "running[$1]"
	touch "$results"
	while read -r name log status seconds cpu; do
		"${judges[$name]:-verdict}" "$name" "$status" "$seconds" "$log" "$cpu"
		names=" $names "
		names=${names/ $name / }
	done <"$results"
	# a bug in the code that runs the test must not make it vanish from the count
	for name in $names; do
		echo "It has no result." >>"$results"
		verdict "$name" 1 0 "$results" 0
	done
}

# reaped NAME: reap commands until this one is not running.
reaped() { while [[ " ${running[*]} " == *" $1 "* ]]; do reap; done; }

# reap_all: reap all running commands.
reap_all() { while [ ${#running[@]} -gt 0 ]; do reap; done; }

# costly: print the results with the most CPU time.
costly() {
	[ ${#costs[@]} -gt 20 ] || return 0
	echo "Most CPU time:"
	printf '%s\n' "${costs[@]}" | sort -k1,1nr | head -n 10 | awk '{ printf "%10.1f s  %s\n", $1, $2 }'
}

# closing: print the last lines, and exit with the status of the run.
closing() {
	local line
	[ -z "$list" ] || exit 0
	# only tests/run has $LONG
	[ $((passed + failed + skipped)) -gt 0 ] || die "nothing has a name like that; see $0 --list${LONG+, and LT_LONG=1 $0 --list for what make test-long adds}"
	costly
	for line in "${on_costs[@]}"; do "$line"; done
	echo "$(elapsed "$SECONDS"), logs in $LOGS"
	[ ${#flaky[@]} -eq 0 ] || echo "${#flaky[@]} flaky: ${flaky[*]}"
	[ ${#without_time[@]} -eq 0 ] || echo "${#without_time[@]} without time: ${without_time[*]}"
	echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
	[ "$failed" -eq 0 ] || exit 1
	exit 0
}
