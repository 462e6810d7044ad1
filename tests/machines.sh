# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# machines.sh: shared by tests/run and tests/run-debug. Reads the heads of tests, builds the parts
# of their machines, and runs several tests in one machine. Needs lib.sh, report.sh, $TESTS and
# $LOGS, and plan.sh to run tests.

declare -A prepared=()
# The exit status of a test during which the kernel logged a problem or the machine crashed; no test exits with this
# status.
FINDING=120

# head_of FILE KEY DEFAULT: print the value of a line `# KEY: VALUE` in a test's head.
head_of() {
	local value
	value=$(sed -n "/^[^#]/q; /^# $2:/ { s/^# $2: *//p; q; }" "$1")
	echo "${value:-$3}"
}

# unasked NAME COMMAND...: build a dependency of a selected test, unless NAME itself is selected. There is a result only
# if it fails.
unasked() {
	! wanted "$1" || return 0
	timed "$LOGS/$1.log" "${@:2}"
	# shellcheck disable=SC2154 # set by timed
	[ "$status" -eq 0 ] || verdict "$1" "$status" "$seconds" "$LOGS/$1.log" "$cpu"
}

# machine_parts KERNEL: make the files that machines with this kernel boot from.
machine_parts() {
	local release part
	release=$("$LT_TOP/scripts/kernel-tree" --release "$1")
	for part in initramfs kernel root; do "$LT_TOP/scripts/vm-image" "$part" "$release"; done
}

# prepare KERNEL: build the parts of the machine now, outside the time of a test.
prepare() {
	[ -z "${prepared[$1]:-}" ] || return 0
	prepared[$1]=1
	if [ -z "${LT_TESTS:-}" ]; then
		unasked "build/module@$1" "$LT_TOP/scripts/build-module" "$1"
		unasked "build/tests@$1" "$LT_TOP/scripts/build-module" --tests "$1"
		unasked "build/samples@$1" "$LT_TOP/scripts/build-module" --samples "$1"
		local layer
		layer_for "$1"
		unasked build/user "$LT_TOP/scripts/build-user" "${layer[@]}"
	fi
	machine_parts "$1" >/dev/null
}

# part_of TEST LOG [last]: print the lines of the kernel's LOG that belong to a test of
# tests/sequence.sh: from the end of the previous test (or from the boot) to the end of the test, or
# to the end of the log if the test was the last.
part_of() {
	[ -e "$2" ] || return 0
	awk -v over="lt-test: $1 over " -v last="${3:-}" '
		{ sub(/\r$/, ""); part = part $0 "\n" }
		index($0, over) { mine = part; part = ""; if (last == "") exit }
		/lt-test: [^ ]* over / { part = "" }
		END { printf "%s%s", mine, mine == "" || last != "" ? part : "" }' "$2"
}

# emulator PROCESS: print the pid of QEMU in this process of scripts/vm.
emulator() {
	local child
	for child in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$child/comm")" != timeout ] || echo $(($(cat "/proc/$child/task/$child/children")))
	done 2>/dev/null || :
}

# used PROCESS: set used to the CPU time of the process in milliseconds.
used() {
	local line
	used=0
	# the emulator may have ended before it was found
	[ -n "$1" ] || return 0
	read -r line 2>/dev/null <"/proc/$1/stat" || return 0
	# shellcheck disable=SC2086 # words
	set -- ${line##*) }
	used=$(((${12} + ${13}) * 10))
}

# now: set now to the time in milliseconds.
now() { now=$((${EPOCHREALTIME/[.,]/} / 1000)); }

# share RESULTS DIRECTORY KERNEL OPTIONS TEST...: run the tests, one after another, in a machine
# with these options of scripts/vm (separated by |), and write a line for each to RESULTS (see
# `several` of report.sh). A machine ends after a test that fails, or that leaves the machine
# changed; the remaining tests get another machine. If the emulator breaks a machine (scripts/vm),
# or the machine does not start, the current test counts as not run and gets another machine, once.
# After the deadline, the running test is the machine's last one, and no other machine starts,
# except for a test whose machine broke.
share() {
	local results=$1 dir=$2 kernel=$3 options machine=0 ended test broken=''
	IFS='|' read -ra options <<<"$4"
	shift 4
	while [ $# -gt 0 ]; do
		if no_time_left && [ "$1" != "$broken" ]; then
			for test in "$@"; do echo "vm/$test@$kernel $LOGS/vm/$test@$kernel/output.log $NO_TIME 0 0"; done >>"$results"
			return
		fi
		machine=$((machine + 1))
		machine "$dir/$machine" "$@"
		shift "$ended"
	done
}

# machine DIRECTORY TEST...: run one machine of `share`. Sets ended to the number of tests that it
# ran. Sets broken to the test that gets another machine, if the emulator broke this machine or this
# machine did not start.
machine() {
	local dir=$1 settings=() add=() limits=() ends=() times=() taints=()
	local test from to vm qemu='' line rc limit=180 end now used begun=0 before=0 taint whole=last late='' stopped='' spent total
	shift
	rm -rf "$dir"
	mkdir -p "$dir"
	for test in "$@"; do
		limits+=($(($(head_of "$TESTS/vm/$test.sh" timeout 60) + ${LT_STRESS_SECONDS:-0})))
		add+=(--add "$TESTS/vm/$test.sh:/lt/sequence/$test.sh")
		echo "$test 0" >>"$dir/list"
	done
	for line in "${!LT_STRESS_@}"; do settings+=("$line=${!line}"); done
	[ -z "$LONG" ] || settings+=(LT_LONG=1)
	ended=0
	spent "$dir/times"
	total=$spent
	now
	end=$((now + limit * 1000))
	exec {to}>"$dir/output.log"
	exec {from}< <(exec "$LT_TOP/scripts/vm" --kernel "$kernel" "${options[@]}" --timeout 86400 --log "$dir" --out "$dir/out" \
		--add "$dir/list:/lt/sequence/list" "${add[@]}" -- env "${settings[@]}" sh /lt/tests/sequence.sh 1 2>&1 </dev/null)
	vm=$!
	while :; do
		now
		rc=0 line=''
		[ "$now" -lt "$end" ] || rc=142
		[ "$rc" -ne 0 ] || IFS= read -r -t "$(tenths $((end - now + 100)))" line <&"$from" || rc=$?
		case $rc$line in
			'0lt-test: '*' begins')
				# the boot has its own time limit; the first test's time starts here
				now
				limit=${limits[ended]} begun=$now
				end=$((now + limit * 1000))
				[ -n "$qemu" ] || qemu=$(emulator "$vm")
				used "$qemu"
				before=$used
				ended=$((ended + 1))
				exec {to}>&-
				rm -rf "$LOGS/vm/${!ended}@$kernel"
				mkdir -p "$LOGS/vm/${!ended}@$kernel"
				exec {to}>"$LOGS/vm/${!ended}@$kernel/output.log" ;;
			'0lt-test: '*' ended '*)
				now
				used "$qemu"
				read -r _ _ _ rc _ taint <<<"$line"
				ends[ended]=$rc taints[ended]=$taint
				times[ended]="$(tenths $((now - begun))) $(tenths $((used - before)))"
				# for the cleanup
				end=$((now + 120000)) ;;
			'0lt-test: '*' over '*)
				taints[ended]=${line##* }
				if [ "$ended" -lt $# ] && no_time_left; then
					stopped=1
					kill "$vm" 2>/dev/null || :
					cat <&"$from" >/dev/null
					break
				fi ;;
			0*) printf '%s\n' "$line" >&"$to" ;;
			*)
				[ -z "$line" ] || printf '%s\n' "$line" >&"$to"
				[ "$rc" -gt 128 ] || break
				now
				used "$qemu"
				[ "$ended" -eq 0 ] || times[ended]=${times[ended]:-"$(tenths $((now - begun))) $(tenths $((used - before)))"}
				kill "$vm" 2>/dev/null || :
				[ -n "${ends[ended]:-}" ] || { late=$ended; echo "vm: time is up: ended after $limit s" >&"$to"; }
				now
				end=$((now + 60000)) ;;
		esac
	done
	rc=0
	wait "$vm" || rc=$?
	# the next test may have started, and the rest of the kernel's log may belong to it
	[ -z "$stopped" ] || rc=0 whole=''
	spent "$dir/times"
	total=$((spent - total))
	exec {from}<&- {to}>&-
	test=${*:ended > 0 ? ended : 1:1}
	if [ "$broken" != "$test" ] && { [ "$ended" -eq 0 ] || [ "$rc" -eq 126 ] && [ "${ends[ended]:-0}" -eq 0 ]; }; then
		broken=$test
		# The last messages of the kernel belong to the test that runs again.
		whole=''
		[ "$ended" -eq 0 ] || ended=$((ended - 1))
		line='The emulator broke the machine'
		[ "$rc" -eq 126 ] || line='The machine did not start'
		echo "$line of vm/$test@$kernel, which gets another one; its console log: $dir/console.log"
	elif [ "$ended" -eq 0 ]; then
		echo "vm/$1@$kernel $dir/output.log $FINDING $(tenths $((now - end + limit * 1000))) $(tenths "$total")" >>"$results"
		ended=1
		return
	fi
	# problems after the last test are attributed to it
	if [ "$rc" -ne 0 ] && [ -n "$whole" ] && [ "${ends[ended]:-1}" -eq 0 ]; then
		ends[ended]=$FINDING
		{ echo "The machine failed after this test:"; tail -n 20 "$dir/console.log"; } >>"$LOGS/vm/${!ended}@$kernel/output.log"
	fi
	now
	for ((rc = 1; rc <= ended; rc++)); do
		outcome "${!rc}" "${ends[rc]:-$([ "$rc" != "$late" ] || echo 1)}" "${taints[rc]:-}" "${times[rc]:-$(tenths $((now - begun))) $(tenths $((total - before)))}" "$([ "$rc" -lt "$ended" ] || echo "$whole")"
	done
}

# outcome TEST STATUS TAINT TIMES LAST: write the result of a test that `machine` ran, with the
# kernel's messages from that time. A test whose time was up has failed. A test that crashed the machine,
# or about which the kernel complained, is a FINDING.
outcome() {
	local test=$1 status=$2 log=$LOGS/vm/$1@$kernel/output.log to=$LOGS/vm/$1@$kernel
	part_of "$test" "$dir/console.log" "$5" >"$to/console.log"
	part_of "$test" "$dir/out/messages" "$5" >"$to/dmesg.log"
	[ ! -d "$dir/out/$test" ] || cp -r "$dir/out/$test" "$to/out"
	[ -z "$3" ] || echo "taint $3" >"$to/result"
	if [ -z "$status" ]; then
		echo "The machine did not get to the end of this test." >>"$log"
		status=$FINDING
	fi
	if ! "$LT_TOP/scripts/kernel-log-check" "$to" >"$to/complaints"; then
		{ echo "The kernel complained (console: $to/console.log):"; cat "$to/complaints"; } >>"$log"
		status=$FINDING
	fi
	echo "vm/$test@$kernel $log $status $4" >>"$results"
}
