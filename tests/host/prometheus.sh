#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A real Prometheus scrapes `latency-tracker export`, and Prometheus' lint has no complaints. The
# exported data is the tree of a module in a virtual machine, copied twice, each time after reads from
# a disk of known slowness. Prometheus shows the kernel's numbers, then their increase, and a capture
# as an exemplar. OpenTelemetry's own decoder reads the messages with metrics and with alerts. By
# Prometheus' rules, these metrics are the series that Prometheus has scraped. If Prometheus has an
# OTLP receiver, metrics sent there become these series. Without a receiver, as in Debian, all
# refusals are one line of the log. Every query of the dashboard has a result. (In the machine,
# Prometheus would take minutes to start; vm/service exports the live tree.)
# timeout: 900
# long: yes
# worth: Prometheus, a virtual machine

. "$(dirname "$0")/../host.sh"
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user" --only latency-tracker
"$LT_TOP/scripts/env" --with fleet
cat >"$work/inside.sh" <<-'END'
	. /lt/tests/lib.sh
	. /lt/tests/block.sh
	load_module
	null_disk slow 20000000
	control 'slow block threshold=10ms dev=slow'
	control 'idle wakeup threshold=3600s'
	# copy NAME: copy the files that the exporter reads
	copy() {
		wait_until 10 quiet slow
		mkdir -p "/lt/out/$1/slow" "/lt/out/$1/idle"
		for _file in version control slow/stats slow/histogram idle/stats idle/histogram; do
			cat "$LT/$_file" >"/lt/out/$1/$_file"
		done
	}
	follow $LT/slow/alerts /lt/out/alerts
	reader=$!
	reads slow 20
	copy 1
	reads slow 10
	copy 2
	copied() { [ "$(wc -l </lt/out/alerts)" -ge 30 ]; }
	wait_until 30 copied
	kill $reader
END
"$LT_TOP/scripts/vm" --icount 1 --log "$work/vm" --out "$work/trees" --add "$work/inside.sh:/lt/inside.sh" -- sh /lt/inside.sh
"$LT_TOP/scripts/kernel-log-check" "$work/vm"
"$LT_TOP/scripts/in-tree" --with fleet python3 -m pip install --quiet --root-user-action ignore --no-compile \
	--target "$work/pip" opentelemetry-proto
# in a network namespace of its own, where no other test uses these ports
"$LT_TOP/scripts/in-tree" --with fleet unshare --net sh -c 'ip link set lo up; exec "$@"' sh python3 "$LT_TOP/tests/prometheus.py" \
	"$LT_BUILD/test/latency-tracker" "$work" "$LT_TOP/Documentation/guide/grafana-dashboard.json"
