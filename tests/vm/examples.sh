# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The examples of three pages of the guide work when pasted in order. Examples that need the
# network, files from another machine, or a build (make, apt) are left out. `record`, and `analyze`
# and `explain` for its captures, have their own tests (record.sh, demo.sh, path.sh, explain.sh).
# kernels: stock
# cpus: 2
# root: full
# debug: no, LTTng's modules are not built for this kernel
# timeout: 240
# alone: it creates disks, cgroups and files as the guide describes

. /lt/tests/lib.sh
. /lt/tests/examples.sh

# The machine that the pages describe: a disk sda, nginx, and a built clone.
modprobe scsi_debug dev_size_mb=8
modprobe sd_mod
wait_until 10 test -b /dev/sda
mkdir -p /sys/fs/cgroup/system.slice/nginx.service "/tmp/clone/build/$(uname -r)"
cp /lt/latency_tracker.ko "/tmp/clone/build/$(uname -r)/"
cd /tmp/clone || exit

# examples PAGE LEAST [REGEX]: check that a page has at least LEAST examples, and that all work
# except those that match.
examples() {
	examples_of "/lt/Documentation/guide/$1.md" "/tmp/$1"
	run_examples "/tmp/$1" "${3:-^$}"
	_count=$(find "/tmp/$1" -type f | wc -l)
	[ "$_count" -ge "$2" ] || fail "$1: only $_count examples were found"
}

load_module
examples control-language 10
# Of several lines in one write, only those before the refused line are executed, as the page
# promises.
assert_eq "$(cut -d' ' -f1 $LT/control | grep -c '^before\|^after')" 1 "instances of a write with a bad line"
grep -q '^before ' $LT/control || fail "the line before the bad one was not done"
for name in $(cut -d' ' -f1 $LT/control); do control "-$name"; done

latency-tracker start io io
latency-tracker profile save -o tuesday.json
examples_of /lt/Documentation/guide/profile.md /tmp/profile
# The two profiles differ only by chance here: nothing is significant, so the exit status is 0.
sed -i 's/--every 5 --duration 10m/--every 1 --duration 3/; s/compare monday.json tuesday.json/compare --significance 0 monday.json tuesday.json/' \
	/tmp/profile/*
grep -q 'significance 0 monday.json tuesday.json' /tmp/profile/* || fail "the page has another example of compare"
run_examples /tmp/profile
control -io
unload_module

# The examples of this page load the module themselves, and unload it at the end.
examples first-use 12 '^(make|apt|sudo|grep CONFIG|latency-tracker (record|analyze|explain))'
loaded && fail "the last example removes the module" || :
