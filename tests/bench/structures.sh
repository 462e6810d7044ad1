# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=sh
#
# structures.sh: inside the virtual machine, compares the structures of lt_structures.ko with each other and with BPF
# programs. The figures are in the kernel's log.
#
# usage: structures.sh pairs|across|crowd CPUS CALLS
#
# In a crowd, each CPU has 1,000 events, and the pool is a sixteenth larger. Two CPUs repeat this
# twenty times, sixteen CPUs twice.

set -eu

way=$1 cpus=$2 calls=$3 rounds=$((40 / cpus))

# run PARAMETER...: measure all structures.
run() { insmod /lt/lt_structures.ko "$@" && rmmod lt_structures; }

# bpf PROGRAMS ENTRIES PARAMETER...: measure BPF programs, with a map of ENTRIES. Sets delays, the number of delays that
# they have measured.
bpf() {
	programs=$1 entries=$2
	shift 2
	delays=$(/lt/bench-bpf "/lt/$programs.bpf.o" /lt/lt_structures.ko "$entries" "$@")
	delays=${delays#delays }
	rmmod lt_structures
}

case $way in
	pairs)
		run what=1 "calls=$calls"
		bpf pair 68001 what=1 "calls=$calls"
		bpf storage 0 what=1 by_task=1 "calls=$calls"
		;;
	across)
		for live in 1 1000 64000; do
			run what=2 "live=$live"
			bpf pair 68001 what=2 "live=$live"
		done
		;;
	crowd)
		for what in 3 4; do
			run "what=$what" "calls=$rounds"
			bpf pair $((cpus * 1000 * 17 / 16 + 1)) "what=$what" "calls=$rounds"
			pairs=$((cpus * 1000 * rounds))
			case $what in 3) row=lost_M ;; 4) row=lost_across_M ;; esac
			echo "lt_structures: result $row $cpus $((1000 * (pairs - delays))) $pairs" >/dev/kmsg
		done
		;;
esac
