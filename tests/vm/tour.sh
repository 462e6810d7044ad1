# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# The commands of the tour (Documentation/guide/tour.md) work in order, and print what the page shows: numbers and times
# may differ, and all other words are the same. Nothing is left at the end of the tour.
# kernels: stock
# cpus: 2
# root: full
# icount: 1
# debug: no, the times of a tour are those of an ordinary kernel
# timeout: 300

. /lt/tests/lib.sh

# The commands load and unload the module themselves, as after `make install`.
few_modules /lt/latency_tracker.ko
page=/lt/Documentation/guide/tour.md
# Warm up: a program that must first be read from a slow disk may start too late to wait for long.
(sleep 0.01; echo warm) | cat >/dev/null
python3 -B /lt/tests/tour.py $page /tmp/shown || fail "the tour prints something else"
[ "$(grep -c '^    # latency-tracker ' $page)" -ge 10 ] || fail "too few commands"
[ ! -d $LT ] || fail "the module is still loaded"
