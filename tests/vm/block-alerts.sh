# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Slow requests raise alerts and fast ones do not, for each instance by its own threshold and disk.
# kernels: stock
# long: rt
# cpus: 2
# arm64: yes
# timeout: 120
# icount: 1

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
null_disk fast 100000
null_disk slow 20000000
control 'any block threshold=10ms'
control "fast block threshold=10ms dev=fast"
control "slow block threshold=10ms dev=$(dev_of slow)"
control 'patient block threshold=10s'
assert_eq "$(wc -l <$LT/control)" 4 "instances"
assert_eq "$(cat $LT/slow/dev)" "$(dev_of slow)" "canonical device"
assert_eq "$(cat $LT/fast/dev)" "$(dev_of fast)" "canonical device by name"

follow $LT/alerts /tmp/alerts
reads fast 50
writes fast 50
reads slow 10
dd if=/dev/zero of=/dev/slow bs=8k seek=8 count=10 oflag=direct 2>/dev/null &
writer=$!
wait $writer
for name in any fast slow patient; do wait_until 10 quiet $name; sums_hold $name; done

# The alerts of each instance.
assert_eq "$(stat any started)" 120 "any: started"
assert_eq "$(stat any alerts)" 20 "any: alerts"
assert_eq "$(stat fast started)" 100 "fast: started"
assert_eq "$(stat fast filtered)" 20 "fast: filtered"
assert_eq "$(stat fast alerts)" 0 "fast: alerts"
assert_eq "$(stat slow started)" 20 "slow: started"
assert_eq "$(stat slow alerts)" 20 "slow: alerts"
assert_eq "$(stat patient alerts)" 0 "patient: alerts"
for name in any fast slow patient; do
	for key in full replaced unmatched negative alerts_lost; do
		assert_eq "$(stat $name $key)" 0 "$name: $key"
	done
done

# The contents of the lines.
wait_until 10 sh -c "[ \$(wc -l </tmp/alerts) -ge 40 ]"
cat /tmp/alerts
grep ' instance=slow ' /tmp/alerts >/tmp/slow
assert_eq "$(wc -l </tmp/slow)" 20 "alerts of slow"
assert_eq "$(sed -n 's/^seq=\([0-9]*\) .*/\1/p' /tmp/slow | tr '\n' ' ')" "$(seq -s ' ' 1 20) " "numbers"
assert_eq "$(field dev </tmp/slow | sort -u)" "$(dev_of slow)" "dev"
assert_eq "$(field disk </tmp/slow | sort -u)" slow "disk"
assert_eq "$(field op </tmp/slow | sort | uniq -c | tr -s ' \n' ' ')" " 10 RS 10 WS " "operations"
assert_eq "$(grep 'op="WS"' /tmp/slow | field sector | tr '\n' ' ')" "$(seq -s ' ' 128 16 272) " "sectors"
assert_eq "$(grep 'op="WS"' /tmp/slow | field bytes | sort -u)" 8192 "bytes"
assert_eq "$(grep 'op="WS"' /tmp/slow | field pid | sort -u)" $writer "the submitter's pid"
assert_eq "$(grep 'op="WS"' /tmp/slow | field comm | sort -u)" dd "the submitter's name"
for delay in $(field delay </tmp/slow); do
	[ "$delay" -ge 20000000 ] && [ "$delay" -lt 10000000000 ] || fail "a delay of $delay ns on a disk that takes 20 ms"
done

# max and min agree with the alerts.
assert_eq "$(stat slow max)" "$(field delay </tmp/slow | sort -n | tail -n 1)" "max"
assert_eq "$(stat slow min)" "$(field delay </tmp/slow | sort -n | head -n 1)" "min"

# A threshold takes effect at once; a removed instance is gone, and its name is free.
echo 10s >$LT/slow/threshold
assert_eq "$(cat $LT/slow/threshold)" 10000000000 "threshold"
reads slow 1
wait_until 10 quiet slow
assert_eq "$(stat slow alerts)" 20 "slow: alerts after raising the threshold"
control '-slow'
[ ! -e $LT/slow ] || fail "slow is still there"
control 'slow block dev=slow threshold=1ms'
reads slow 1
wait_until 10 quiet slow
assert_eq "$(stat slow alerts)" 1 "slow: alerts of the new one"
unload_module
[ ! -e $LT ] || fail "$LT is still there"
