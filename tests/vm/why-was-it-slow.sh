# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The three cases of the guide's page work as shown, each from an alert to its cause: a lock whose owner was preempted, a
# journal behind a slow disk, and a quota. `scripts/example --guide` runs this script, too, and writes the page.
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, LTTng's modules are not built for this kernel
# timeout: 900
# worth: the page's four recordings, from end to end

. /lt/tests/guide.sh
