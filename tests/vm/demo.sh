# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The demonstration works on both kernels: `make demo` runs this script, too.
# kernels: stock rt
# cpus: 2
# root: full
# icount: 1
# debug: no, LTTng's modules are not built for this kernel
# timeout: 600

. /lt/tests/demo.sh
