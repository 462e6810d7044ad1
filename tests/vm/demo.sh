# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The demonstration works: `make demo` runs tests/demo.sh, too.
# kernels: rt
# long: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, LTTng's modules are not built for this kernel
# timeout: 600

. /lt/tests/demo.sh
