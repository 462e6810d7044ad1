# SPDX-License-Identifier: GPL-2.0 OR MIT
# shellcheck shell=bash
#
# skip.sh: how the scripts that DKMS runs skip a kernel: the exit status 77, and the reason.

# terminal: the number of the process whose stderr is not DKMS's log, as ours is: dkms itself.
terminal() {
	local pid=$$ log
	log=$(readlink "/proc/$$/fd/2")
	while [ "$pid" -gt 1 ] && [ "$(readlink "/proc/$pid/fd/2")" = "$log" ]; do
		read -r _ pid _ < <(sed 's/.*) //' "/proc/$pid/stat")
	done
	echo "$pid"
}

# skip WHY...: say that there is $none for the kernel $release, in one line, in the log and where dkms prints, and end.
skip() {
	local line="latency-tracker: $none for Linux $release: $*" terminal
	terminal=/proc/$(terminal)/fd/2
	printf '%s\n' "$line" >&2
	{ printf '\n%s\n' "$line" >>"$terminal"; } 2>/dev/null || :
	exit 77
}
