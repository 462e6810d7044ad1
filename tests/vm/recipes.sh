# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The kernel accepts every recipe; a recipe that needs a missing module is refused with the name of that module. The
# test runs each recipe as a user does, and provokes the operations that the recipe measures: the recipe counts them,
# and most recipes name the task, handler or function of the longest operation.
# kernels: stock
# long: rt
# cpus: 2
# root: full
# icount: 1
# timeout: 800
# arm64: no, lt_causes can send NMIs only on x86
# worth: every recipe is provoked, each with a program that does what it measures
# debug: no, it has neither swap nor all of the filesystems
# alone: it loads filesystems and drivers, and changes the limits for dirty pages

. /lt/tests/lib.sh
. /lt/tests/block.sh

load_module

# expect NAME EXPRESSION: note that EXPRESSION, in Python, must be true of the JSON object r in /tmp/r.json. One
# interpreter judges all expressions at the end: under emulation, starting one takes as long as a recipe.
expect() {
	echo "$1" >>/tmp/provoked
	printf '%s\n' "$2" >>/tmp/expressions
	{ tail -n 1 /tmp/r.json; echo; } >>/tmp/results
	rm /tmp/r.json
}
# provoke NAME EXPRESSION [KEY=VALUE...] -- COMMAND...: run the recipe with the command.
provoke() {
	_name=$1 _expression=$2
	shift 2
	latency-tracker run "$_name" --json -o /tmp/r.json "$@" >/tmp/run.log 2>&1 || { cat /tmp/run.log; fail "$_name: $?"; }
	expect "$_name" "$_expression"
}
# beside NAME EXPRESSION [KEY=VALUE...] -- COMMAND...: run the recipe, and the command at the same time.
beside() {
	_name=$1 _expression=$2 _settings=''
	shift 2
	while [ "$1" != -- ]; do _settings="$_settings $1"; shift; done
	shift
	: >/tmp/run.log
	# shellcheck disable=SC2086 # words
	latency-tracker run "$_name" --json -o /tmp/r.json -d 10m $_settings >/tmp/run.log 2>&1 &
	_run=$!
	wait_until 60 grep -q 'measuring for' /tmp/run.log
	"$@" || fail "$_name: $*: $?"
	kill -INT $_run
	wait $_run || [ $? -eq 2 ] || { cat /tmp/run.log; fail "$_name"; }
	expect "$_name" "$_expression"
}

# Every recipe is accepted once its module is loaded. Until then, the error names the module.
latency-tracker recipes --json >/tmp/recipes.json
python3 -c '
import json, sys
for line in open("/tmp/recipes.json"):
    r = json.loads(line)
    module = (r["needs"] or {}).get("module", "-")
    print(r["name"], module, r["tracker"], *r["settings"])' >/tmp/recipes
[ "$(wc -l </tmp/recipes)" -ge 24 ] || fail "only $(wc -l </tmp/recipes) recipes"
while read -r name module line; do
	if [ "$module" != - ]; then
		if ! grep -q "^$module " /proc/modules; then
			latency-tracker run "$name" -d 1s >/tmp/run.log 2>&1 && fail "$name is accepted without $module"
			grep -q "the module $module is not loaded; .modprobe $module. loads it" /tmp/run.log ||
				{ cat /tmp/run.log; fail "$name: the error does not name $module"; }
		fi
		modprobe "$module"
	fi
	control "r $line" || { dmesg | tail -n 2; fail "$name is refused: $line"; }
	control -r
done </tmp/recipes

# Disks that take 20 ms: one with a filesystem, one for requests alone, and a SCSI disk.
null_disk slow 20000000 size=256 cache_size=8
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0,nodiscard /dev/slow
mkdir /tmp/ext
mount /dev/slow /tmp/ext
dd if=/dev/zero of=/tmp/ext/file bs=4k count=1024 conv=fsync 2>/dev/null

null_disk raw 20000000 cache_size=8
echo mq-deadline >/sys/block/raw/queue/scheduler
provoke disk 'r["count"] == 3 and r["max"] > 20e6 and longest["comm"] == "dd" and longest["disk"] == "raw"' \
	dev=raw threshold=10ms -- dd if=/dev/raw of=/dev/null bs=4k count=3 iflag=direct
provoke disk-queue 'r["count"] == 3 and longest["comm"] == "dd" and longest["device"] >= 20e6' dev=raw threshold=10ms -- \
	dd if=/dev/raw of=/dev/null bs=4k count=3 iflag=direct
provoke nvme 'r["count"] == 2 and longest["comm"] == "dd"' dev=raw -- dd if=/dev/raw of=/dev/null bs=4k count=2 iflag=direct
provoke fsync 'r["count"] == 1 and r["max"] > 20e6 and longest["comm"] == "dd" and longest["call"] == "fsync"' threshold=20ms -- \
	dd if=/dev/zero of=/tmp/ext/file bs=4k count=1 conv=notrunc,fsync
provoke ext4-fsync 'r["count"] == 1 and longest["comm"] == "dd"' threshold=20ms -- \
	dd if=/dev/zero of=/tmp/ext/a bs=4k count=1 conv=fsync
provoke jbd2-wait 'r["count"] == 1 and longest["comm"] == "dd"' threshold=20ms -- \
	dd if=/dev/zero of=/tmp/ext/b bs=4k count=1 conv=fsync
for fs in xfs btrfs; do
	# XFS wants 300 MiB.
	null_disk $fs 20000000 size=320 cache_size=8
	mkfs.$fs -q -K /dev/$fs
	mkdir /tmp/$fs
	mount -t $fs /dev/$fs /tmp/$fs
done
provoke xfs-fsync 'r["count"] == 1 and r["max"] > 20e6 and longest["comm"] == "dd"' threshold=20ms -- \
	dd if=/dev/zero of=/tmp/xfs/a bs=4k count=1 conv=fsync
provoke btrfs-commit 'r["count"] == 1 and r["max"] > 20e6 and longest["comm"] == "sync"' threshold=20ms -- \
	sh -c 'echo a >/tmp/btrfs/a; sync -f /tmp/btrfs/a'
umount /tmp/xfs /tmp/btrfs
beside jbd2-commit 'r["count"] >= 1 and longest["comm"].startswith("jbd2/slow")' threshold=20ms -- \
	dd if=/dev/zero of=/tmp/ext/c bs=4k count=1 conv=fsync
provoke disk-flush 'r["count"] == 1 and longest["comm"] == "dd"' threshold=1us -- \
	dd if=/dev/zero of=/dev/raw bs=4k count=1 conv=notrunc,fsync
# Two tasks append to one file: one task holds the lock of the file while it waits for the disk.
provoke lock-contention 'longest["comm"] == "dd" and r["max"] > 10e6' threshold=5ms comm=dd -- sh -c '
	for i in 1 2; do dd if=/dev/zero of=/tmp/ext/log bs=4k count=8 oflag=direct,append conv=notrunc & done; wait'
echo 1048576 >/proc/sys/vm/dirty_bytes
provoke dirty-throttling 'r["count"] > 0 and longest["comm"] == "dd"' threshold=1us -- \
	dd if=/dev/zero of=/tmp/ext/file bs=4k count=1024 conv=notrunc
echo 20 >/proc/sys/vm/dirty_ratio
echo 1000 >/sys/block/slow/queue/wbt_lat_usec
beside writeback-throttling 'r["count"] > 0' threshold=1us -- \
	dd if=/dev/zero of=/tmp/ext/file bs=4k count=256 conv=notrunc,fsync
echo 3 >/proc/sys/vm/drop_caches
provoke page-fault-disk 'longest["comm"] == "victim" and r["max"] > 20e6 and longest["ret"] & 4' threshold=15ms comm=victim -- \
	python3 /lt/tests/late.py fault /tmp/ext/file
echo 3 >/proc/sys/vm/drop_caches
provoke page-fault 'longest["comm"] == "victim" and r["max"] > 20e6' threshold=15ms comm=victim -- python3 /lt/tests/late.py fault /tmp/ext/file
modprobe scsi_debug dev_size_mb=8 ndelay=20000000
modprobe sd_mod
wait_until 20 sh -c 'ls /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block >/dev/null 2>&1'
sd=$(basename /sys/bus/pseudo/drivers/scsi_debug/adapter*/host*/target*/*/block/*)
wait_until 20 test -b "/dev/$sd"
beside scsi-command 'r["count"] >= 4 and r["max"] > 20e6' threshold=15ms -- \
	dd if="/dev/$sd" of=/dev/null bs=4k count=4 iflag=direct

# Calls. The number is exact, except for memory-map, mmap-lock and futex.
dd if=/dev/zero of=/tmp/calls bs=4k count=1 2>/dev/null
for name in open read write stat; do
	provoke $name 'r["count"] == 5' comm=marked -- python3 /lt/tests/provoke.py calls /tmp/calls
done
provoke memory-map 'r["count"] >= 10' comm=marked -- python3 /lt/tests/provoke.py maps
provoke mmap-lock 'r["count"] >= 10 and longest["comm"] == "marked"' threshold=1 comm=marked -- python3 /lt/tests/provoke.py maps
# The task that becomes sh is called exe until then.
provoke exec 'r["count"] == 3 and longest["comm"] in ("exe", "sh", "true")' threshold=1us -- sh -c '/bin/true; /bin/true; :'
provoke fork 'r["count"] == 2 and longest["comm"] == "sh"' threshold=1us -- sh -c '/bin/true; /bin/true; :'
provoke tcp-connect 'r["count"] == 4 and longest["comm"] == "marked"' threshold=1us comm=marked -- python3 /lt/tests/provoke.py connect
provoke futex 'longest["comm"] == "victim" and r["max"] > 300e6' threshold=300ms -- python3 /lt/tests/late.py futex

# Memory.
null_disk swap 100000 size=64
mkswap /dev/swap >/dev/null
swapon /dev/swap
provoke swap-in 'r["count"] > 0 and longest["comm"] == "marked"' threshold=1us -- python3 /lt/tests/provoke.py pageout
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/lt-memory
echo 20M >/sys/fs/cgroup/lt-memory/memory.high
beside memory-high 'r["count"] > 0 and longest["comm"] == "marked"' threshold=1us -- \
	python3 /lt/tests/provoke.py fill 40 /sys/fs/cgroup/lt-memory
echo max >/sys/fs/cgroup/lt-memory/memory.high
echo 20M >/sys/fs/cgroup/lt-memory/memory.max
beside memcg-reclaim 'r["count"] > 0 and longest["comm"] == "marked"' threshold=1us -- \
	python3 /lt/tests/provoke.py fill 40 /sys/fs/cgroup/lt-memory
swapoff /dev/swap
# killed COMMAND...: the kernel must kill the command.
killed() { _status=0; "$@" || _status=$?; assert_eq $_status 137 "the exit status of a command that must be killed"; }
beside oom-kill 'r["count"] == 1 and longest["comm"] == "marked"' -- \
	killed python3 /lt/tests/provoke.py fill 40 /sys/fs/cgroup/lt-memory
provoke direct-reclaim 'r["count"] > 0 and longest["comm"] == "marked" and longest["kind"] == "direct"' threshold=1us -- \
	python3 /lt/tests/provoke.py shortage /dev/swap
provoke compaction 'r["count"] > 0 and longest["comm"] == "sh"' threshold=1us -- sh -c 'echo 1 >/proc/sys/vm/compact_memory'

# Processors.
provoke wakeup-latency 'longest["comm"] == "victim" and r["max"] > 500e6' threshold=100ms -- python3 /lt/tests/late.py hog
provoke run-queue 'longest["comm"] == "victim" and r["max"] > 300e6' threshold=100ms -- python3 /lt/tests/late.py preempt
provoke off-cpu 'longest["comm"] == "victim" and r["max"] >= 600e6' threshold=300ms -- python3 /lt/tests/late.py sleep
provoke timer-lateness 'r["count"] > 0 and longest["comm"] == "sleep"' threshold=1us comm=sleep -- sleep 0.2
beside cpu-throttle 'r["count"] > 0 and r["max"] > 50e6 and r["max"] < 1e9' threshold=10ms -- python3 /lt/tests/sched.py quota 1 10 100
# Longer than any item that writes to the slow disk.
insmod /lt/lt_works.ko ms=800
provoke workqueue-stall 'r["count"] > 0 and longest["func"].startswith("lt_work_quick ")' -- \
	sh -c 'echo behind >/sys/module/lt_works/parameters/run'
provoke workqueue-run 'r["max"] >= 800e6 and longest["func"].startswith("lt_work_slow ")' -- \
	sh -c 'echo slow >/sys/module/lt_works/parameters/run'
rmmod lt_works

# Interrupts: handlers and tasklets that take 20 ms.
provoke softirq-storm 'r["count"] >= 3 and r["max"] >= 20e6 and longest["name"] == "hi"' -- insmod /lt/lt_irqs.ko times=3
line=$(cat /sys/module/lt_irqs/parameters/number)
rmmod lt_irqs
# The line gets the same number again, and has two handlers.
provoke hard-irq 'r["count"] == 6 and r["max"] >= 20e6 and longest["action"].startswith("lt_long")' irq="$line" -- \
	insmod /lt/lt_irqs.ko times=3
rmmod lt_irqs
provoke irq-storm 'any(one["label"]["action"].startswith("lt_long") and one["count"] == 3 for one in r["labels"]["labels"])' \
	irq="$line" -- insmod /lt/lt_irqs.ko times=3
rmmod lt_irqs
beside ksoftirqd 'r["max"] >= 20e6 and longest["comm"].startswith("ksoftirqd/")' -- insmod /lt/lt_irqs.ko times=3 by_thread=1
rmmod lt_irqs
insmod /lt/lt_causes.ko us=20000
provoke irq-to-task 'r["max"] >= 20e6 and longest["comm"] == "victim" and longest["action"] == "lt_cause"' -- \
	python3 /lt/tests/late.py cause handler
rmmod lt_causes

# Packets.
ip link set lo up
provoke dns 'r["count"] == 3 and r["max"] >= 150e6 and longest["comm"] == "client"' comm=client -- python3 /lt/tests/provoke.py dns
provoke tcp-first-byte 'r["count"] == 1 and r["max"] >= 150e6 and longest["comm"] == "server"' -- python3 /lt/tests/provoke.py accept
provoke net-receive 'r["max"] >= 150e6' dev=lo -- python3 /lt/tests/provoke.py receive
modprobe nfsv3
provoke nfs-request 'r["count"] == 3 and r["max"] >= 150e6 and longest["comm"] == "marked"' comm=marked -- \
	python3 /lt/tests/provoke.py nfs

# Modules, and the grace periods that their removal waits for.
modprobe -r loop 2>/dev/null || :
provoke module-load 'r["count"] == 1 and longest["comm"] == "modprobe"' threshold=1us -- modprobe loop
provoke rcu-wait 'r["count"] > 0' threshold=1us -- modprobe -r loop
beside module-init 'r["count"] == 1 and longest["comm"] == "modprobe"' threshold=1us -- modprobe loop
beside rcu-grace-period 'r["count"] > 0 and longest["comm"].startswith("rcu_")' threshold=1us -- modprobe -r loop
# A tracepoint is turned on: the CPUs must stop executing the old code.
trace=/sys/kernel/tracing
provoke ipi-wait 'r["count"] > 0 and longest["comm"] == "sh"' threshold=1us -- \
	sh -c "echo 1 >$trace/events/signal/enable; echo 0 >$trace/events/signal/enable"

# Suspends the devices only.
echo 1 >/sys/module/suspend/parameters/pm_test_delay
echo devices >/sys/power/pm_test
provoke suspend 'r["count"] == 1 and r["max"] >= 1e9' threshold=1us -- sh -c 'echo freeze >/sys/power/state'
provoke suspend-devices 'r["count"] > 10' threshold=1us -- sh -c 'echo freeze >/sys/power/state'
echo none >/sys/power/pm_test

umount /tmp/ext
python3 - <<'END' || fail "what the recipes have measured: see above"
import json, sys
def lines(file):
    with open(file, encoding="utf-8") as text:
        return [line.rstrip("\n") for line in text if line.strip()]
wrong = 0
names, expressions, results = map(lines, ("/tmp/provoked", "/tmp/expressions", "/tmp/results"))
for name, expression, result in zip(names, expressions, results, strict=True):
    r = json.loads(result)
    longest = r["longest"] or {}
    r["max"] = r["max"] or 0
    print(r["recipe"], r["count"], r["max"], longest.get("comm"))
    try:
        holds = r["recipe"] == name and eval(expression)
    except LookupError:
        holds = False
    if not holds:
        wrong += 1
        print(f"{name}: not {expression}: {r}")
sys.exit(wrong > 0)
END
# No recipe was left out.
cut -d ' ' -f 1 /tmp/recipes | sort >/tmp/names
sort -u /tmp/provoked | diff /tmp/names - || fail "recipes that were not provoked"
assert_eq "$(wc -l <$LT/control)" 0 "instances"
unload_module
