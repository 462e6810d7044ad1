# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# plan.sh: determines the tests of a run of tests/run, their order, and the time until which tests
# may start. The head of tests/run explains the settings. Needs lib.sh, report.sh, machines.sh
# and $TESTS.

# Names of the tests of the engine, on which everything else is built.
ENGINE='engine-*|stress|kunit|loom|structures'

case ${LT_LONG:-0} in
	0) LONG='' ;;
	1) LONG=1 ;;
	*) die "LT_LONG=$LT_LONG: expected 0 or 1" ;;
esac
[[ ${LT_ROTATE:-0} =~ ^[0-9]{1,9}$ ]] || die "LT_ROTATE=$LT_ROTATE: expected a number of at most nine digits"

# read_deadline: set deadline, in seconds since the epoch; fail if there is none, or it is not a
# number.
read_deadline() {
	deadline=${LT_DEADLINE:-}
	case $deadline in @*) deadline=$(cat "${deadline#@}" 2>/dev/null) || : ;; esac
	[[ $deadline =~ ^[0-9]{1,12}$ ]]
}
[ -z "${LT_DEADLINE:-}" ] || read_deadline ||
	die "LT_DEADLINE=$LT_DEADLINE: expected seconds since the epoch, as from date -d '70 minutes' +%s, or @FILE, a file with that number"

# no_time_left: true once the deadline has passed. A file that is being written has no deadline yet.
no_time_left() {
	local deadline
	read_deadline && [ "$EPOCHSECONDS" -ge $((10#$deadline)) ]
}

# too_late: fail the run if more than a fifth of its results of host/ and vm/ are missing for lack
# of time.
too_late() {
	local total
	total=$(awk -F '\t' '$1 ~ "^(host|vm)/" && $4 != "AGAIN"' "$COSTS" | wc -l)
	# shellcheck disable=SC2154 # of report.sh
	[ $((${#without_time[@]} * 5)) -gt "$total" ] || return 0
	failed=$((failed + 1))
	echo "FAIL too little time for the tests: ${#without_time[@]} of $total were skipped; the limit is a fifth."
}

# host_in_run FILE: whether this test of host/ is part of the run.
host_in_run() {
	local long
	long=$(head_of "$1" long '')
	if [ -z "$LONG" ]; then
		[ -z "$long" ]
	else
		[ -n "$long$(head_of "$1" long-part '')" ]
	fi
}

# elsewhere FILE: print why this test of vm/ does not run on $LT_KERNEL, a kernel of another
# architecture; nothing if it does.
elsewhere() {
	local said
	said=$(head_of "$1" "$(architecture "$LT_KERNEL")" 'no, not tried there')
	[ "$said" = yes ] || echo "${said#no, }"
}

# kernels_of FILE: print the kernels on which this test of vm/ runs. Other kernels in a head are for
# tests/run-debug.
kernels_of() {
	local long kernels kernel
	if [ -n "${LT_KERNEL:-}" ]; then
		[ -n "$(elsewhere "$1")" ] || echo "$LT_KERNEL"
		return
	fi
	long=$(head_of "$1" long '')
	kernels=$(head_of "$1" kernels "${long:+none}")
	kernels=${kernels:-stock}
	if [ -n "$LONG" ]; then
		[ -n "$(head_of "$1" long-part '')" ] || kernels=''
		kernels+=" $long"
	fi
	for kernel in stock rt; do
		[[ " $kernels " != *" $kernel "* ]] || echo "$kernel"
	done
}

# git_here ARGUMENT...: run git in this checkout. It fails without git, and in a tarball, even
# inside another repository.
git_here() { git -C "$LT_TOP" -c safe.directory="$LT_TOP" --git-dir="$LT_TOP/.git" "$@" 2>/dev/null; }

# touched: print the words of the paths that the last ten commits changed; none in a shallow clone,
# which lacks these commits.
touched() {
	{ git_here diff --name-only HEAD~10 HEAD -- rust user include tests scripts || :; } | tr / '\n' | sed 's/\.[^.]*$//' | sort -u
}

# rotation: print a number that differs from commit to commit.
rotation() {
	local commit
	! commit=$(git_here rev-parse --verify HEAD) || echo $((16#${commit:0:7}))
}

# ranked: print each test as LEAVES CLASS TURN LIMIT NAME, in the order in which they are distributed to machines. Tests
# that no other can follow (LEAVES is 1) come last. CLASS is 0 for tests that the last commits touched, 1 for tests of
# the engine. The other tests form a circle, in which each commit starts at a different place, so that no test is always
# the last one before a deadline; the circle's quarters are the classes 2 to 5. Without a rotation, the longest time
# limit comes first.
ranked() {
	local words rotate file files=() index name leaves class turn limit
	words=" $(tr '\n' ' ' <<<"${LT_TOUCHED-$(touched)}") "
	rotate=${LT_ROTATE-$(rotation)}
	for file in "$TESTS"/{host,vm}/*.sh; do [ ! -e "$file" ] || files+=("$file"); done
	for index in "${!files[@]}"; do
		file=${files[index]}
		name=${file##*/}
		name=${name%.sh}
		case $file in
			*/host/"$name".sh) limit=$(head_of "$file" timeout 300) ;;
			*) limit=$(head_of "$file" timeout 60) ;;
		esac
		leaves=0 class=2 turn=-$limit
		[ -z "$(head_of "$file" leaves '')" ] || leaves=1
		if [ -n "$rotate" ]; then
			turn=$(((index + 10#$rotate) % ${#files[@]}))
			class=$((2 + turn * 4 / ${#files[@]}))
		fi
		# shellcheck disable=SC2053 # a pattern on purpose
		[[ $name != @($ENGINE) ]] || class=1
		[[ $words != *" $name "* && $words != *" ${name%%-*} "* ]] || class=0
		name=${file#"$TESTS/"}
		echo "$leaves $class $turn $limit ${name%.sh}"
	done | sort -k1,1n -k2,2n -k3,3n -k5
}
