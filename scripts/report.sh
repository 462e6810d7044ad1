# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# report.sh: named results, shared by tests/run and scripts/check. Needs lib.sh, $LOGS, and for `beside` $JOBS.

[ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -ge 51 ] || die "needs bash 5.1"
declare -A running=()
passed=0 failed=0 skipped=0 status=0 seconds=0 list='' words=()

# choose ARGUMENT...: --list and the words that select by name.
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

# wanted NAME: is it selected?
wanted() {
	local word
	[ ${#words[@]} -gt 0 ] || return 0
	for word in "${words[@]}"; do
		# shellcheck disable=SC2053 # the word is a pattern on purpose
		[[ $1 == *$word* ]] && return 0
	done
	return 1
}

# verdict NAME STATUS SECONDS LOG: count one result and say how it ended.
verdict() {
	case $2 in
		0) passed=$((passed + 1)); printf 'PASS %s (%s s)\n' "$1" "$3" ;;
		77) skipped=$((skipped + 1)); printf 'SKIP %s: %s\n' "$1" "$(grep -a '^SKIP: ' "$4" | tail -n 1 | cut -c7-)" ;;
		*) failed=$((failed + 1)); failure "$1" "$3" "$4" ;;
	esac
}

# failure NAME SECONDS LOG: say that it failed, and why as far as the log knows.
failure() {
	printf 'FAIL %s (%s s)\n' "$1" "$2"
	tail -n 30 "$3" | sed 's/^/    | /'
	printf '    The whole log: %s\n' "$3"
}

# timed LOG COMMAND...: run it, all output to LOG; sets status and seconds.
timed() {
	local log=$1 start=${EPOCHREALTIME/[.,]/}
	shift
	mkdir -p "${log%/*}"
	status=0
	# in a shell of its own, so that set -e holds inside functions
	( set -e; "$@" ) >"$log" 2>&1 </dev/null &
	wait $! || status=$?
	seconds=$(((${EPOCHREALTIME/[.,]/} - start) / 100000))
	seconds=$((seconds / 10)).$((seconds % 10))
}

# setup COMMAND...: what everything else needs; if it fails, that is the one result.
setup() {
	"$@" >/dev/null || no_setup "${*#"$LT_TOP/"}"
}

# no_setup COMMAND: end, since this failed.
no_setup() {
	failed=1
	echo "FAIL set-up: $1"
	closing
}

# setup_trees: the build trees of the kernels, beside each other: much of that is the work of one processor.
setup_trees() {
	local kernel broken=()
	declare -A trees=()
	for kernel in stock rt; do
		# not to a terminal, where two lines of progress would write over each other
		"$LT_TOP/scripts/kernel-tree" "$kernel" >/dev/null 2> >(cat >&2) &
		trees[$kernel]=$!
	done
	for kernel in stock rt; do wait "${trees[$kernel]}" || broken+=("$kernel"); done
	[ ${#broken[@]} -eq 0 ] || no_setup "scripts/kernel-tree ${broken[0]}"
}

# simple NAME COMMAND...: a result that is the exit status of one command.
simple() {
	local name=$1
	shift
	wanted "$name" || return 0
	[ -z "$list" ] || { echo "$name"; return 0; }
	timed "$LOGS/$name.log" "$@"
	verdict "$name" "$status" "$seconds" "$LOGS/$name.log"
}

# beside NAME LOG COMMAND...: a result as of `simple`, of what runs beside others, JOBS at a time. It is reported
# when it has ended and somebody reaps it.
beside() {
	local name=$1 log=$2
	shift 2
	wanted "$name" || return 0
	[ -z "$list" ] || { echo "$name"; return 0; }
	[ ${#running[@]} -lt "$JOBS" ] || reap
	mkdir -p "${log%/*}"
	{
		timed "$log" "$@"
		echo "$status $seconds" >"$log.result"
	} &
	running[$!]="$name $log"
}

# reap: wait for one of those that run, and report it.
reap() {
	local pid='' name log
	wait -n -p pid "${!running[@]}" || :
	read -r name log <<<"${running[$pid]}"
	unset "running[$pid]"
	read -r status seconds <"$log.result"
	verdict "$name" "$status" "$seconds" "$log"
}

# reap_all: and all of them.
reap_all() { while [ ${#running[@]} -gt 0 ]; do reap; done; }

# closing: the last line, and the exit status of the whole.
closing() {
	[ -z "$list" ] || exit 0
	[ $((passed + failed + skipped)) -gt 0 ] || die "nothing has a name like that; see $0 --list"
	echo "$(elapsed "$SECONDS"), logs in $LOGS"
	echo "$passed passed, $failed failed$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
	[ "$failed" -eq 0 ] || exit 1
	exit 0
}
