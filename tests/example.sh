# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# example.sh: the run behind the example in README.md, inside the virtual machine (scripts/example). It leaves an alert,
# its explanation, and the path of the explanation as JSON.

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk slow 120000000
# Run Python once, so that its files are in memory.
python3 /lt/tests/example.py /dev/slow
latency-tracker record -o /tmp/captures -n 1 late syscall threshold=100ms comm=client calls=recvfrom >/tmp/record.log 2>&1 &
recorder=$!
wait_until 600 sh -c "grep -q '^armed' /tmp/record.log || ! kill -0 $recorder 2>/dev/null"
follow $LT/late/alerts /tmp/alerts
python3 /lt/tests/example.py /dev/slow
wait_until 60 sh -c "! kill -0 $recorder 2>/dev/null"
wait $recorder || [ $? -eq 2 ] || { cat /tmp/record.log; fail "no capture"; }

mv /tmp/captures/0001/explanation.txt /lt/out/
latency-tracker explain /tmp/captures/0001 --json | head -n 1 >/lt/out/explanation.json
seq=$(python3 -c 'import json; print(json.load(open("/lt/out/explanation.json"))["alert"]["seq"])')
grep "^seq=$seq " /tmp/alerts >/lt/out/alert.txt || { cat /tmp/alerts; fail "no alert $seq"; }
unload_module
