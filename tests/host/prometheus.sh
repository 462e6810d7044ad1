#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A real Prometheus, in a virtual machine, scrapes `latency-tracker export`: its lint has nothing to say, its numbers are
# the kernel's, and the percentile of a disk of known slowness is in the right bucket.
# timeout: 1800
# long: yes

set -euo pipefail
. "$(dirname "$0")/../../scripts/lib.sh"

fail() { echo "FAIL: $*" >&2; exit 1; }

mkdir -p "$LT_BUILD"
work=$(mktemp -d "$LT_BUILD/prometheus.XXXXXX")
trap 'rm -rf "$work"' EXIT
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"
"$LT_TOP/scripts/env" --with fleet
cat >"$work/config.yml" <<-END
	global: {scrape_interval: 1s, scrape_timeout: 1s}
	scrape_configs:
	  - job_name: latency-tracker
	    static_configs: [{targets: ["127.0.0.1:9817"]}]
END
cat >"$work/inside.sh" <<-'END'
	. /lt/tests/lib.sh
	. /lt/tests/block.sh
	load_module
	null_disk slow 20000000
	control 'slow block threshold=10ms dev=slow'
	reads slow 20
	wait_until 10 quiet slow
	latency-tracker export --once >/tmp/page
	/lt/promtool check metrics --extended </tmp/page || fail "promtool complains"
	latency-tracker export >/tmp/export 2>&1 &
	/lt/prometheus --config.file=/lt/config.yml --storage.tsdb.path=/tmp/data --web.listen-address=127.0.0.1:9090 >/tmp/prometheus 2>&1 &
	# is QUERY: its value
	is() { busybox wget -qO - "http://127.0.0.1:9090/api/v1/query?query=$1" | sed -n 's/.*"value":\[[^,]*,"\([^"]*\)"\].*/\1/p'; }
	answers() { [ "$(is 'latency_tracker_ended_total{instance="slow"}')" = "$1" ]; }
	wait_until 600 answers 20
	assert_eq "$(is up)" 1 up
	assert_eq "$(is 'latency_tracker_alerts_total{instance="slow",tracker="block"}')" 20 alerts
	assert_eq "$(is latency_tracker_delay_seconds_count)" 20 "delays"
	assert_eq "$(is 'latency_tracker_delay_seconds_bucket{le="0.016777216"}')" 0 "delays below 16.8 ms"
	p50=$(is 'histogram_quantile(0.5,latency_tracker_delay_seconds_bucket)')
	awk -v p="$p50" 'BEGIN { exit !(p > 0.0167 && p < 0.0336) }' || fail "the median is $p50 s"
	assert_eq "$(is latency_tracker_delay_seconds_sum)" "$(awk '$1 == "sum_us" { print $2 / 1e6 }' $LT/slow/stats)" "the sum"
END
"$LT_TOP/scripts/vm" --root full --memory 3072 --timeout 1500 --log "$work/vm" \
	--add "$("$LT_TOP/scripts/env" --with fleet --print)/usr/bin/prometheus:/lt/prometheus" \
	--add "$("$LT_TOP/scripts/env" --with fleet --print)/usr/bin/promtool:/lt/promtool" \
	--add "$work/config.yml:/lt/config.yml" --add "$work/inside.sh:/lt/inside.sh" -- sh /lt/inside.sh
"$LT_TOP/scripts/kernel-log-check" "$work/vm/dmesg.log"
