# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# Root without capabilities, as in a container, neither controls nor reads; CAP_PERFMON reads; the group
# that the module was given reads without any capability.
# kernels: stock
# cpus: 2
# root: full
# timeout: 60

. /lt/tests/lib.sh

need /usr/bin/setpriv
# Root with no capability, and with one.
bare() { /usr/bin/setpriv --inh-caps=-all --bounding-set=-all "$@"; }
perfmon() { /usr/bin/setpriv --inh-caps=-all,+perfmon --bounding-set=-all,+perfmon "$@"; }

load_module
control 'one block'
for file in control trackers version alerts wakeup one/stats one/threshold one/pending one/alerts; do
	case $file in
		*alerts|*wakeup) read='/usr/bin/dd iflag=nonblock count=0 status=none' ;;
		*) read='/usr/bin/dd of=/dev/null status=none' ;;
	esac
	# shellcheck disable=SC2086 # words
	refused "root without capabilities reads $file" bare $read if=$LT/$file
	# shellcheck disable=SC2086 # words
	assert "CAP_PERFMON reads $file" perfmon $read if=$LT/$file
done
refused "root without capabilities writes control" bare sh -c "echo 'evil block' >$LT/control"
refused "CAP_PERFMON writes control" perfmon sh -c "echo 'evil block' >$LT/control"
refused "root without capabilities changes a parameter" bare sh -c "echo 1 >$LT/one/threshold"
assert_eq "$(wc -l <$LT/control)" 1 "instances"
unload_module

load_module gid=77
control 'one block'
member() { /usr/bin/setpriv --reuid=1000 --regid=1000 --groups=77 --inh-caps=-all --bounding-set=-all "$@"; }
stranger() { /usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all --bounding-set=-all "$@"; }
assert "a member of the group reads" member /usr/bin/dd if=$LT/one/stats of=/dev/null status=none
refused "a member of the group writes" member sh -c "echo 1 >$LT/one/threshold"
refused "a stranger reads" stranger /usr/bin/dd if=$LT/one/stats of=/dev/null status=none
# Nor where root has opened the way: not the modes alone keep a stranger out.
chmod -R a+rwX $LT
assert "a stranger sees the directory" stranger test -r $LT/one -a -x $LT/one -a -r $LT/one/stats
for file in control trackers one/stats one/threshold one/pending one/alerts; do
	refused "a stranger reads $file" stranger /usr/bin/dd if=$LT/$file iflag=nonblock count=0 status=none
	refused "a stranger writes $file" stranger /usr/bin/dd of=$LT/$file if=/dev/null conv=notrunc status=none
done
assert "a member of the group reads still" member /usr/bin/dd if=$LT/one/stats of=/dev/null status=none
refused "a member of the group writes" member sh -c "echo 1 >$LT/one/threshold"
unload_module
