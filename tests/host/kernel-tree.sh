#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A build tree is accepted only if every Rust symbol of the kernel has the same name in it. A
# missing kernel is refused with a reason. C tools that were updated since the kernel was built are
# accepted. An updated rustc is not, nor is an option for which the tools here give another value.
# timeout: 400

. "$(dirname "$0")/../host.sh"

for kernel in stock rt; do
	"$LT_TOP/scripts/kernel-tree" --verify "$kernel"
	tree=$("$LT_TOP/scripts/kernel-tree" "$kernel")
	[ -e "$tree/rust/libkernel.rmeta" ]
done

# the hash of a crate changes with compiler, configuration and source: one different digit suffices
sed 's/\(_RN.*Cs\)\([0-9A-Za-z]\)\([0-9A-Za-z_]*6kernel\)/\1Z\2\3/' "$tree/Module.symvers" >"$work/Module.symvers"
! "$LT_TOP/scripts/kernel-tree" --verify rt "$work/Module.symvers" 2>"$work/said" || { echo "took another kernel's symbols"; exit 1; }
grep -E '^kernel-tree: [1-9][0-9]* of [0-9]+ Rust symbols of .* come out under another name' "$work/said"

! "$LT_TOP/scripts/kernel-tree" 1.2.3-none 2>"$work/said" || { echo "took a kernel that is not there"; exit 1; }
grep 'kernel-tree: the headers of 1.2.3-none are neither' "$work/said"

# tree_of HEADERS...: make a tree of these headers; the package linux-headers-amd64 depends on the last one
tree_of() {
	rm -rf "$work/tree"
	mkdir -p "$work/tree/usr/src" "$work/tree/var/lib/dpkg" "$work/bin"
	local headers
	for headers in "$@"; do mkdir -p "$work/tree/usr/src/linux-headers-$headers"; done
	printf 'Package: linux-headers-amd64\nDepends: %s (= 1)\n' "linux-headers-$headers" >"$work/tree/var/lib/dpkg/status"
}
mkdir "$work/scripts"
cp "$LT_TOP"/scripts/{kernel-tree,lib.sh} "$work/scripts/"
ln -s "$LT_TOP/scripts/kernels" "$work/scripts/kernels"
printf '#!/bin/sh\necho "%s/tree"\n' "$work" >"$work/scripts/env"
chmod +x "$work/scripts/env"
release() { LT_TOP=$work "$work/scripts/kernel-tree" --release "$1"; }
tree_of 7.4.1-arm64 7.4.2-rt-arm64 7.3.4-amd64 7.3.4-rt-amd64 7.10.1-amd64 7.2.12-amd64
[ "$(release stock)" = 7.2.12-amd64 ] || { echo "stock is $(release stock), not what the package means"; exit 1; }
[ "$(release rt)" = 7.3.4-rt-amd64 ] || { echo "rt is $(release rt)"; exit 1; }
[ "$(release arm64) $(release rt-arm64)" = '7.4.1-arm64 7.4.2-rt-arm64' ] || { echo "of arm64: $(release arm64) $(release rt-arm64)"; exit 1; }
rm "$work/tree/var/lib/dpkg/status"
[ "$(release stock)" = 7.10.1-amd64 ] || { echo "stock is $(release stock), not the newest"; exit 1; }

# the configuration as written by another gcc, binutils and pahole
config=$tree/.config
newer() {
	sed -E -e 's/^(CONFIG_CC_VERSION_TEXT=".*)-([0-9]+)\)/\1-99)/' -e 's/^(CONFIG_GCC_VERSION)=.*/\1=169900/' \
		-e 's/^(CONFIG_(AS|LD)_VERSION)=.*/\1=29900/' -e 's/^(CONFIG_PAHOLE_VERSION)=.*/\1=199/' "$config"
}
newer >"$work/newer"
changed=$(diff "$config" "$work/newer" | grep -c '^>' || :)
[ "$changed" -eq 5 ] || { echo "changed $changed lines, not 5"; exit 1; }
"$LT_TOP/scripts/kernel-tree" --verify-config rt "$work/newer" || { echo "refused a kernel that another gcc built"; exit 1; }

# refused FILE PATTERN: check that --verify-config rejects FILE with a message that matches PATTERN
refused() {
	! "$LT_TOP/scripts/kernel-tree" --verify-config rt "$1" >"$work/said" 2>&1 || { echo "took $1"; exit 1; }
	grep -E -- "$2" "$work/said" || { echo "said something else than '$2':"; cat "$work/said"; exit 1; }
}
sed '/^CONFIG_HAVE_RUST=y/d' "$work/newer" >"$work/other"
refused "$work/other" '^> CONFIG_HAVE_RUST=y'
sed -E 's/^(CONFIG_RUSTC_VERSION_TEXT)=.*/\1="rustc 1.2.3"/' "$config" >"$work/other"
refused "$work/other" "was built by 'rustc 1.2.3', but here is 'rustc"
