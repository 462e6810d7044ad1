# SPDX-License-Identifier: GPL-2.0
#
# syscalls.awk: generates tables of system call names from bindgen's constants for the kernel's
# <asm/unistd.h>.
#
# The code of a name is its number. If a 64-bit kernel has a name only for 32-bit calls, the code is the
# number of the 32-bit call + 512. LT_SYSCALLS lists all names with their codes. LT_COMPAT_SYSCALLS lists
# the codes of the 32-bit calls by number.

BEGIN { FS = "[ :;=]+"; LIMIT = 512; NONE = 2 * LIMIT - 1 }

/^pub const __NR_/ {
	name = substr($3, 6)
	# Skips the number of calls, other ABIs, and names that only serve other macros.
	if (name ~ /syscalls$/ || name ~ /^(x32|compat|3264)_/ || $5 >= LIMIT) next
	if (sub(/^(ia32|compat32)_/, "", name)) {
		compat[$5 + 0] = name
	} else if (!(name in code)) {
		code[name] = $5 + 0
		names[count++] = name
	}
}

END {
	for (number = 0; number < LIMIT; number++) {
		if ((number in compat) && !(compat[number] in code)) {
			code[compat[number]] = LIMIT + number
			names[count++] = compat[number]
		}
	}
	printf "pub const LT_SYSCALLS: [(&str, u16); %d] = [", count
	for (i = 0; i < count; i++) printf "(\"%s\", %d), ", names[i], code[names[i]]
	print "];"
	printf "pub static LT_COMPAT_SYSCALLS: [u16; %d] = [", LIMIT
	for (number = 0; number < LIMIT; number++) printf "%d, ", (number in compat) ? code[compat[number]] : NONE
	print "];"
}
