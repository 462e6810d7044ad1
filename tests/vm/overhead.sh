# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The study of overhead (make bench B=overhead) with small loads: each tracker counts every
# operation of its load, and the study produces a table and a picture. Afterwards, even after an
# early end, the machine is as before: no module, disk, namespace or session is left.
# kernels: stock
# long: rt
# long-part: the load of SQLite
# cpus: 1
# root: full
# icount: 0
# debug: no, LTTng's modules are not built for this kernel
# arm64: no, its root has no LTTng
# timeout: 600

. /lt/tests/lib.sh
. /lt/tests/block.sh

study() { python3 /lt/tests/bench/overhead.py --small "$@"; }
# as_before WHEN: check that nothing of the study is left.
as_before() {
	[ ! -e $LT ] || fail "$1: the module is loaded"
	for left in /dev/lt_fio /dev/lt_oltp $NULLB; do [ ! -e $left ] || fail "$1: $left is left"; done
	[ -z "$(/usr/bin/ip netns list)" ] || fail "$1: a namespace is left"
	! grep -q ' configfs ' /proc/mounts || fail "$1: configfs is mounted"
	wait_until 10 sh -c '! pgrep "lttng-sessiond|fio|iperf3" >/dev/null'
}

loads='fio iperf3'
[ -z "${LT_LONG:-}" ] || loads="$loads oltp"
study --rounds 1 --loads "$(echo $loads | tr ' ' ,)" --contenders 'idle,block!,softirq!,lttng' >/tmp/runs ||
	{ cat /tmp/runs; fail "the study failed"; }
cat /tmp/runs
# absent, idle, LTTng, and one of our trackers
for load in $loads; do assert_eq "$(grep -c "^run $load " /tmp/runs)" 4 "runs of $load"; done
assert_eq "$(tail -n 1 /tmp/runs)" complete "the last line"
awk '$2 == "fio" && /block/ && ($6 < 1500 || $7 != 0) { print; exit 1 }' /tmp/runs || fail "block counted fewer than the 1500 requests of fio, or lost some"
awk '$2 == "oltp" && /block/ && ($6 < 150 || $7 != 0) { print; exit 1 }' /tmp/runs || fail "block counted fewer than 150 requests of oltp, or lost some"
awk '$2 == "iperf3" && /softirq/ && $6 < 100 { print; exit 1 }' /tmp/runs || fail "softirqs receive the packets"

python3 /lt/tests/bench/overhead_table.py --svg /tmp/o.svg --json /tmp/o.json </tmp/runs
python3 -c 'import json, xml.dom.minidom as dom; dom.parse("/tmp/o.svg"); assert len(json.load(open("/tmp/o.json"))["rows"]) == '$(($(echo $loads | wc -w) * 3))
grep -v 'fio lttng' /tmp/runs | sed 's/fio idle 0/fio idle 1/' >/tmp/fewer
refused "a round is missing" python3 /lt/tests/bench/overhead_table.py </tmp/fewer

as_before "it has ended"

# The study is ended while its module is loaded, or while its session exists.
for turn in TERM:block INT:lttng; do
	# python itself, not a shell that runs it
	python3 /lt/tests/bench/overhead.py --small --rounds 1000 --loads fio,iperf3 --contenders ${turn#*:} >/tmp/runs 2>/tmp/said & pid=$!
	case $turn in
		TERM:block) wait_until 60 loaded ;;
		INT:lttng) wait_until 60 sh -c '[ -n "$(lttng --no-sessiond list 2>/dev/null | grep lt_overhead)" ]' ;;
	esac
	kill -${turn%:*} $pid
	status=0
	wait $pid || status=$?
	assert_eq "$status $(cat /tmp/said)" "1 overhead: ended by SIG${turn%:*}" "its end by SIG${turn%:*}"
	as_before "ended by SIG${turn%:*}"
done
refused "an unknown load" study --loads nosuch
refused "an unknown contender" study --contenders nosuch
# left by mount(8)
rm -rf /run/mount
