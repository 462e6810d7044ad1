#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The command in the package of `make deb A=arm64` runs on Debian's arm64 kernel, in an emulated
# machine: it loads the cross-built module, starts an instance, and shows its alerts.
# timeout: 3600
# long: yes
# worth: it builds the kernel's metadata, the module and the command for arm64

. "$(dirname "$0")/../host.sh"
"$LT_TOP/scripts/env" --with deb
"$LT_TOP/scripts/build-module" arm64
[ -x "$LT_BUILD/test-arm64/latency-tracker" ] || "$LT_TOP/scripts/build-user" --with arm64
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"

# The same state as after `make user` and `scripts/build-user --with arm64 --release`, but with the
# commands that all tests use.
mkdir "$work/build"
ln -s "$LT_BUILD/test" "$work/build/user"
ln -s "$LT_BUILD/test-arm64" "$work/build/user-arm64"
LT_BUILD=$work/build "$LT_TOP/scripts/deb" arm64
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$LT_TOP/user/Cargo.toml")
"$LT_TOP/scripts/in-tree" dpkg-deb --extract "$work/build/deb-arm64/latency-tracker_${version}_arm64.deb" "$work/root"

cat >"$work/inside.sh" <<-'END'
	. /lt/tests/lib.sh
	. /lt/tests/block.sh
	PATH=/packed/usr/bin:/bin:/sbin:/usr/bin:/usr/sbin
	assert_eq "$(uname -m)" aarch64 "machine"
	modules=/lib/modules/$(uname -r)
	mkdir $modules/updates
	cp /lt/latency_tracker.ko $modules/updates/
	depmod
	watch_slow_disk
	latency-tracker list slow_disk
	latency-tracker stop slow_disk
	unload_module
END
"$LT_TOP/scripts/vm" --kernel arm64 --icount 1 --log "$work/vm" --add "$work/root:/packed" --add "$work/inside.sh" \
	-- sh /lt/inside.sh | tee "$work/said"
[ "$(grep -c '^slow_disk .* dd .* slow RS' "$work/said")" -ge 5 ] || fail "the command did not show the alerts"
"$LT_TOP/scripts/kernel-log-check" "$work/vm"
