# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# `export --alerts` sends the alerts of a module that is loaded later, or again, even alerts that were raised before the
# exporter found the module's file. The exporter is its own collector: it refuses each message, and thus counts each
# alert.
# kernels: stock
# cpus: 2
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

ADDRESS=127.0.0.1:9817
# refused_so_far N: whether N alerts have been sent and refused.
refused_so_far() {
	[ "$(wget -q -O - "http://$ADDRESS/metrics" | sed -n 's/^latency_tracker_export_dropped_total{signal="logs"} //p')" = "$1" ]
}

null_disk slow 20000000
latency-tracker export --listen "$ADDRESS" --otlp "http://$ADDRESS" --alerts &
exporter=$!
wait_until 30 refused_so_far 0
for total in 3 6; do
	# The exporter finds the file only after the alerts were raised.
	kill -STOP $exporter
	load_module
	control 'slow block threshold=10ms dev=slow'
	reads slow 3
	wait_until 10 quiet slow
	assert_eq "$(stat slow alerts)" 3 "the alerts"
	kill -CONT $exporter
	wait_until 60 refused_so_far $total
	unload_module
done
kill $exporter
wait $exporter
