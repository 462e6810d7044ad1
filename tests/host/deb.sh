#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# `make deb` builds three packages without lintian errors. The command runs outside the checkout.
# DKMS gets the complete source of the module, and skips a kernel for which something is missing.
# Programs compile with the headers. All packages have one version. For arm64 only the command
# differs: the other files, the fields of the packages, and the packages for all architectures are
# the same. (host/deb-arm64 runs what is packed for arm64.)
# timeout: 1200
# worth: the packages are built and checked twice, for the second architecture

. "$(dirname "$0")/../host.sh"
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"
"$LT_TOP/scripts/env" --with deb
# The same state as after `make user`, but with the command that all tests use.
export LT_BUILD=$work/build
# one date in all packages
export SOURCE_DATE_EPOCH=$EPOCHSECONDS
mkdir "$LT_BUILD"

! "$LT_TOP/scripts/deb" 2>"$work/said" || fail "made packages without a command"
grep -q 'run make user' "$work/said" || fail "no word of what to do: $(cat "$work/said")"
ln -s "${work%/*}/test" "$LT_BUILD/user"
"$LT_TOP/scripts/deb"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$LT_TOP/user/Cargo.toml")
grep -q "VERSION: &str = \"$version\";" "$LT_TOP/rust/latency_tracker.rs" || fail "the module has another version than $version"
root=$work/root
for name in latency-tracker_"$version"_amd64 latency-tracker-dkms_"$version"_all latency-tracker-dev_"$version"_all; do
	"$LT_TOP/scripts/in-tree" dpkg-deb --extract "$LT_BUILD/deb/$name.deb" "$root" || fail "no $name.deb"
	"$LT_TOP/scripts/in-tree" dpkg-deb --ctrl-tarfile "$LT_BUILD/deb/$name.deb" >/dev/null
done
[ "$(find "$LT_BUILD/deb" -type f | wc -l)" = 3 ] || fail "not three packages: $(ls "$LT_BUILD/deb")"

cd "$root"
[ "$(env -i usr/bin/latency-tracker --version)" = "latency-tracker $version" ] || fail "the command says $(usr/bin/latency-tracker --version)"
! grep -qaF "$LT_BUILD/deb" usr/bin/latency-tracker || fail "the command names the directory where it was packed"
for file in bash-completion/completions/latency-tracker zsh/vendor-completions/_latency-tracker \
	fish/vendor_completions.d/latency-tracker.fish man/man1/latency-tracker{,-watch,-record}.1.gz \
	doc/latency-tracker{/guide/install.md,/examples/job.py,/copyright,-dev/examples/c/sample.c}; do
	[ -s "usr/share/$file" ] || fail "no usr/share/$file"
done
for file in systemd/system/latency-tracker{,-export,-record@}.service sysusers.d/latency-tracker.conf modprobe.d/latency-tracker.conf; do
	[ -s "usr/lib/$file" ] || fail "no usr/lib/$file"
done
"$LT_TOP/scripts/in-tree" dpkg-deb --info "$LT_BUILD/deb/latency-tracker_${version}_amd64.deb" postinst |
	grep -q 'systemd-sysusers .*latency-tracker.conf' || fail "the installation makes no group"
[ ! -e usr/share/latency-tracker ] || fail "a list of make install is packed"
"$LT_TOP/scripts/in-tree" dpkg-deb --control "$LT_BUILD/deb/latency-tracker_${version}_amd64.deb" "$work/control"
! grep -qs "deb-systemd-invoke .*'latency-tracker.service'" "$work"/control/{pre,post}inst ||
	fail "an upgrade stops the instances"
grep -q "deb-systemd-invoke try-restart 'latency-tracker-export.service'" "$work/control/postinst" ||
	fail "an upgrade does not restart the exporter"

# DKMS
source=usr/src/latency-tracker-$version
# shellcheck disable=SC2016 # the inner shell expands it
[ "$(kernelver=K kernel_source_dir=H bash -c '. "$1"; echo "$PACKAGE_NAME/$PACKAGE_VERSION $PRE_BUILD"' - "$source/dkms.conf")" \
	= "latency-tracker/$version dkms/build K H" ] || fail "dkms.conf is not as expected: $(cat "$source/dkms.conf")"
for file in Kbuild rust include; do
	diff -r -x '.*.toml' "$LT_TOP/$file" "$source/$file" || fail "the module's source is not whole"
done
# skips SCRIPT LINE RELEASE: run the script in the tree, as DKMS does; it must skip the kernel and print LINE.
skips() {
	local rc=0
	(cd "$source" && "$LT_TOP/scripts/in-tree" bash -c 'cd "$1"; ("$2" "$3" /nowhere) 2>log || exit' bash "$PWD" "$1" "$3") \
		>"$work/said" 2>&1 || rc=$?
	[ "$rc" -eq 77 ] || fail "$1: $rc: $(cat "$work/said" "$source/log")"
	grep -q "^latency-tracker: $2" "$work/said" || fail "no word of '$2': $(cat "$work/said")"
	grep -q "^latency-tracker: $2" "$source/log" || fail "no word of '$2' in the log"
	[ ! -e "$source/tree" ] || fail "it left $(find "$source/tree" | head)"
}
skips dkms/build 'no module for Linux 1.2.3-none: .*the headers of 1.2.3-none are neither' 1.2.3-none

# LTTng's probe, which DKMS builds separately: it builds from the packed files. (The tree has LTTng's source.)
source=usr/src/latency-tracker-lttng-$version
# shellcheck disable=SC2016 # the inner shell expands it
[ "$(kernelver=K kernel_source_dir=H bash -c '. "$1"; echo "$PACKAGE_NAME/$PACKAGE_VERSION $PRE_BUILD"' - "$source/dkms.conf")" \
	= "latency-tracker-lttng/$version dkms/probe K H" ] || fail "dkms.conf is not as expected: $(cat "$source/dkms.conf")"
skips dkms/probe 'no LTTng probe for Linux 1.2.3-none: it does not build' 1.2.3-none
release=$("$LT_TOP/scripts/kernel-tree" --release stock)
"$LT_TOP/scripts/in-tree" bash -c 'cd "$1" && dkms/probe "$2" "/usr/src/linux-headers-$2"' bash "$PWD/$source" "$release" ||
	fail "the probe does not build"
[ -s "$source/out/lttng-probe-latency-tracker.ko" ] || fail "no probe"

# headers
"$LT_TOP/scripts/in-tree" gcc -fsyntax-only -Wall -Werror "-I$root/usr/include" "$root/usr/share/doc/latency-tracker-dev/examples/queue.c"
for file in latency_tracker.h latency_tracker.rs; do
	[ -s "usr/share/doc/latency-tracker-dev/examples/../include/$file" ] || fail "the samples do not find $file"
done

# For arm64: a minimal program stands for the command.
! "$LT_TOP/scripts/deb" arm64 2>"$work/said" || fail "made packages for arm64 without a command"
grep -q 'run scripts/build-user --with arm64 --release' "$work/said" || fail "no word of what to do: $(cat "$work/said")"
mkdir "$LT_BUILD/user-arm64"
"$LT_TOP/scripts/in-tree" --with deb sh -euc '
	printf "%s\n" ".globl _start" "_start: mov x0, 0" "mov x8, 93" "svc 0" | aarch64-linux-gnu-as -o "$1/start.o" -
	aarch64-linux-gnu-ld -o "$1/latency-tracker" "$1/start.o"' sh "$LT_BUILD/user-arm64"
"$LT_TOP/scripts/deb" arm64
[ "$(find "$LT_BUILD/deb-arm64" -type f | wc -l)" = 3 ] || fail "not three packages: $(ls "$LT_BUILD/deb-arm64")"
for name in latency-tracker-dkms latency-tracker-dev; do
	cmp "$LT_BUILD"/deb{,-arm64}/"${name}_${version}_all.deb" || fail "$name differs between architectures"
done
# shown ARCHITECTURE: print the fields and files of the command's package, except those that differ.
shown() {
	# shellcheck disable=SC2016 # the inner shell expands it
	"$LT_TOP/scripts/in-tree" sh -euc '
		dpkg-deb --field "$1" | grep -vE "^(Architecture|Installed-Size): "
		dpkg-deb --contents "$1" | awk "{ \$3 = \"\"; print }"' \
		sh "$1"
}
amd64=$LT_BUILD/deb/latency-tracker_${version}_amd64.deb arm64=$LT_BUILD/deb-arm64/latency-tracker_${version}_arm64.deb
diff <(shown "$amd64") <(shown "$arm64") || fail "the package for arm64 has other fields or files"
[ "$("$LT_TOP/scripts/in-tree" dpkg-deb --field "$arm64" Architecture)" = arm64 ] || fail "the package is not for arm64"
"$LT_TOP/scripts/in-tree" dpkg-deb --extract "$arm64" "$work/arm64"
"$LT_TOP/scripts/in-tree" readelf --wide --file-header --sections "$work/arm64/usr/bin/latency-tracker" >"$work/said"
grep -q ' Machine: *AArch64$' "$work/said" || fail "the command is not for arm64: $(cat "$work/said")"
! grep -q ' [.]symtab ' "$work/said" || fail "the command has its symbols: $(cat "$work/said")"
