# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# skip.sh: how the scripts that DKMS runs skip a kernel: the exit status 77, and the reason.

# terminal: print the PID of dkms: of the nearest ancestor whose stderr, unlike ours, is not DKMS's log.
terminal() {
	local pid=$$ log
	log=$(readlink "/proc/$$/fd/2")
	while [ "$pid" -gt 1 ] && [ "$(readlink "/proc/$pid/fd/2")" = "$log" ]; do
		read -r _ pid _ < <(sed 's/.*) //' "/proc/$pid/stat")
	done
	echo "$pid"
}

# skip_kernel WHAT RELEASE WHY...: exit with 77. A line in the log, and on dkms's own stderr, has the reason. WHAT is
# the outcome, such as 'no module'.
skip_kernel() {
	local line="latency-tracker: $1 for Linux $2: ${*:3}" terminal
	terminal=/proc/$(terminal)/fd/2
	printf '%s\n' "$line" >&2
	{ printf '\n%s\n' "$line" >>"$terminal"; } 2>/dev/null || :
	exit 77
}
