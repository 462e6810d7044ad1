#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# Building the module for a kernel with kCFI is refused with a clear message. A probe whose type
# differs from its tracepoint's does not compile.
# timeout: 400

. "$(dirname "$0")/../host.sh"

# refused WHAT TEXT COMMAND...: the command must fail and print TEXT.
refused() {
	local what=$1 text=$2
	shift 2
	! LT_MODULE_OUT=$work/out "$@" >"$work/said" 2>&1 || { echo "$what was built"; exit 1; }
	grep -qF -- "$text" "$work/said" || { echo "$what does not say '$text':"; tail -n 20 "$work/said"; exit 1; }
	rm -rf "$work/out"
}

refused "a module for kCFI" 'kernels with CONFIG_CFI are not supported' "$LT_TOP/scripts/build-module" stock KCFLAGS=-DCONFIG_CFI=1

mkdir "$work/top"
cp -r "$LT_TOP"/{Kbuild,rust,include,scripts} "$work/top/"
sed -i 's/_flags: c_int/_flags: u64/' "$work/top/rust/sys/accept.rs"
! cmp -s "$LT_TOP/rust/sys/accept.rs" "$work/top/rust/sys/accept.rs" || { echo "nothing is different"; exit 1; }
refused "a probe of another type" 'mismatched types' "$work/top/scripts/build-module" stock
