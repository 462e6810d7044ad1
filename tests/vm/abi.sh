# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The interface that programs rely on matches tests/abi.txt: the parameters of each tracker with defaults and types,
# the keys of `stats`, the files of an instance, the fields of an alert in order, and the formats of the tracepoints. A
# change of this interface must also update that file.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# arm64: no, tests/abi.txt also has what only x86 has
# timeout: 180

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module
ip link set lo up
null_disk disk 20000000
insmod /lt/lt_works.ko
insmod /lt/lt_sample_c.ko

# Operations that were in flight before the start have another field, since, which vm/stock checks.
# fields: print the field names of the first line, in order.
fields() { sed -n '1{s/="[^"]*"/=/g;s/=[^ ]*/=/g;p}'; }

# with TRACKER: print a pattern that matches the alert with the most fields.
with() {
	case $1 in
	offcpu) echo ' waker_stack=".*" stack="' ;;
	net) echo ' end=copied' ;;
	io) echo ' call=' ;;
	*) head_of "$1" has ;;
	esac
}

# head_of TRACKER KEY: print a value from the head of the tracker's own test: `# abi-alert: COMMAND`
# raises an alert, and `# abi-has: PATTERN` matches the alert with the most fields.
head_of() { [ ! -e "/lt/tests/vm/$1.sh" ] || sed -n "s/^# abi-$2: //p" "/lt/tests/vm/$1.sh"; }

# One alert of each tracker, caused by frequent kernel activity or provoked here.
trackers=$(sed -n 's/^\([a-z]*\): .*/\1/p' $LT/trackers)
words() {
	case $1 in
	block) echo threshold=0 dev=disk ;;
	io) echo threshold=0 dev=disk comm=dd ;;
	func) echo threshold=0 comm=dd function=vfs_read ;;
	pair) echo threshold=0 comm=dd begin=function:vfs_read end=return:vfs_read begin_show=arg2 end_show=ret ;;
	offcpu|wakeup|runqueue) echo threshold=0 kthreads=1 ;;
	*) echo threshold=0 ;;
	esac
}
# make TRACKER...: create an instance of each tracker.
make() {
	for _tracker; do control "i_$_tracker $_tracker $(words "$_tracker")"; done
}
# shellcheck disable=SC2046 # words
make $(echo "$trackers" | grep -v '^module$\|^func$\|^pair$')
(while :; do sleep 0.01; done) &
busy=$!
dd if=/dev/disk of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
echo slow >/sys/module/lt_works/parameters/run
echo 30 >/sys/module/lt_sample_c/parameters/work
python3 /lt/tests/net.py read udp 127.0.0.1 1 >/dev/null
python3 /lt/tests/net.py serve 127.0.0.1 1 1 >/tmp/server &
server=$!
wait $server || fail "the server failed"
for tracker in $trackers; do eval "$(head_of "$tracker" alert)"; done
# offcpu is disabled first: the kernel warns if a stack is walked while a followed function returns.
wait_until 20 stat_is i_offcpu alerts -gt 100
control 'i_offcpu offcpu enabled=0'
make func pair
dd if=/dev/zero of=/dev/null bs=4k count=1 2>/dev/null

{
	echo '# SPDX-License-Identifier: GPL-2.0 OR MIT'
	echo '#'
	echo '# What programs rely on, made and compared by tests/vm/abi.sh. Fields are not renamed and not reordered; new ones go'
	echo '# last. Change this file together with the interface, its pages in Documentation/ABI, and the version if need be.'
	echo
	sed 's/ kernel=.*//; s/latency_tracker [^ ]*/latency_tracker VERSION/' $LT/version
	find $LT -maxdepth 1 -type f | sed "s|$LT/||" | sort | paste -s -d ' '
	for tracker in $trackers; do
		echo
		echo "$tracker"
		instance=i_$tracker
		[ "$tracker" != module ] || instance=sample_c
		sed -n "/^$tracker: /,/^[a-z]/p" $LT/trackers | grep '^  ' | grep -v unavailable |
			sed 's/: .*(at creation only)$/ (at creation only)/; s/: .*//'
		echo "  stats: $(cut -d' ' -f1 "$LT/$instance/stats" | paste -s -d ' ')"
		echo "  files: $(find "$LT/$instance" -type f | sed "s|.*/||" | sort | paste -s -d ' ')"
		wait_until 20 stat_is "$instance" alerts -gt 0
		echo "  alert: $(grep " reason=threshold .*$(with "$tracker")" "$LT/$instance/wakeup" | grep -v since= | fields)"
	done
	for format in /sys/kernel/tracing/events/latency_tracker/*/format; do
		echo
		grep -v '^ID:' "$format"
	done
} >/lt/out/abi.txt
kill $busy
cmp -s /lt/tests/abi.txt /lt/out/abi.txt || {
	diff -u /lt/tests/abi.txt /lt/out/abi.txt || :
	echo 'The interface is not what tests/abi.txt says. If that is meant, see its first lines; the new text is in'
	echo 'build/log/vm/abi@KERNEL/out/abi.txt, to be copied to tests/abi.txt.'
	fail "the interface has changed"
}
for tracker in $trackers; do [ "$tracker" = module ] || control "-i_$tracker"; done
rmmod lt_sample_c lt_works
unload_module
