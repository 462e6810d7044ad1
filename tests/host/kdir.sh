#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# `make KDIR=` refuses a directory in which it cannot build, and sets up nothing. The error names what is
# missing: a file or, with its menu, an option. scripts/build-module, which `make KDIR=` calls, builds
# against the build directory of a kernel with Rust (host/own-kernel: `make KDIR=` does so as a whole).
# timeout: 300

. "$(dirname "$0")/../host.sh"
release=$("$LT_TOP/scripts/kernel-tree" --release stock)
tree=$("$LT_TOP/scripts/kernel-tree" stock)
[ -f "$LT_BUILD/$release/Module.symvers" ] || "$LT_TOP/scripts/build-module" stock

# A build directory that lacks one required part at a time.
kdir=$work/linux
mkdir -p "$kdir"/{rust,include/config}
touch "$kdir"/{rust/libkernel.rmeta,Module.symvers}
echo 1.2.3-mine >"$kdir/include/config/kernel.release"
all=(CONFIG_MODULES=y CONFIG_RUST=y CONFIG_TRACEPOINTS=y)
# refused VARIABLE TEXT: check that make refuses the kernel with TEXT, and creates no cache.
refused() {
	! XDG_CACHE_HOME=$work/cache LT_CACHE='' make -C "$LT_TOP" "$1=$kdir" >"$work/said" 2>&1 || fail "accepted the kernel instead of printing: $2"
	grep -qF -- "$2" "$work/said" || fail "it does not say '$2': $(cat "$work/said")"
	[ ! -e "$work/cache" ] || fail "it sets up $(find "$work/cache")"
}
refused KDIR "$kdir: no .config"
for option in "${all[@]}"; do
	printf '%s\n' "${all[@]}" | grep -vxF "$option" >"$kdir/.config"
	refused KDIR "${option%=y}; menuconfig: "
done
printf '%s\n' "${all[@]}" >"$kdir/.config"
rm "$kdir/Module.symvers"
refused KDIR "$kdir: Module.symvers does not exist: build that kernel first"
rm -r "$kdir"
refused KREL "$kdir: there is no such directory"
refused KDIR "$kdir: there is no such directory"
# A directory is not a release, even if its name has no slash.
kdir=rust
refused KREL "rust: no .config: this is not a kernel's build directory"

# An existing kernel.
cp "$LT_BUILD/$release/Module.symvers" "$work/"
"$LT_TOP/scripts/in-tree" env LT_MODULE_OUT="$work/samples" "$LT_TOP/scripts/build-module" --samples "$tree"
"$LT_TOP/scripts/in-tree" modinfo -F vermagic "$work/samples/lt_sample_c.ko" | grep "^$release " || fail "built for another kernel"
