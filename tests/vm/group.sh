# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Root owns everything; the module's parameter gid lets one group read, but not write.
# kernels: stock
# long: rt
# cpus: 2
# timeout: 60

. /lt/tests/lib.sh

perms() { ls -ldn "$1" | awk '{ print substr($1, 1, 10), $3, $4 }'; }

load_module
control 'one block'
assert_eq "$(perms $LT/control)" "-rw------- 0 0" control
assert_eq "$(perms $LT/alerts)" "-r-------- 0 0" alerts
assert_eq "$(perms $LT/one/threshold)" "-rw------- 0 0" threshold
assert_eq "$(perms $LT/one/events)" "-r-------- 0 0" events
unload_module

load_module gid=77
control 'one block'
assert_eq "$(perms $LT)" "dr-xr-x--- 0 77" "the directory"
assert_eq "$(perms $LT/control)" "-rw-r----- 0 77" control
assert_eq "$(perms $LT/one/stats)" "-r--r----- 0 77" stats
assert_eq "$(perms $LT/one/wakeup)" "-r--r----- 0 77" wakeup
unload_module
refused "an invalid gid" insmod /lt/latency_tracker.ko gid=99999999999
