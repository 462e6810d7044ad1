#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The packages of `make deb` on a clean Debian system, with its stock kernel. Without the kernel's
# source, the installation succeeds, and one line names the missing package. Once that package is
# installed, DKMS builds the module, signs it, and removes its temporary files. An upgrade builds the
# new module in place of the old one, keeps the administrator's files, and stops no service but the
# exporter, which it restarts. A virtual machine that boots from this system loads the new module and
# starts the instances of the administrator's files, and the installed command shows an alert. A
# change of version without the kernel's source leaves no module. A purge leaves nothing behind but
# the administrator's files.
# timeout: 7200
# long: yes
# worth: it builds the module twice as a user's machine does, with the kernel's metadata

. "$(dirname "$0")/../host.sh"
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"
"$LT_TOP/scripts/env" --with deb

# The packages of this version, and of the next one.
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$LT_TOP/user/Cargo.toml")
packages() {
	mkdir -p "$2/user"
	cp "$LT_BUILD/test/latency-tracker" "$2/user/"
	LT_TOP=$1 LT_BUILD=$2 "$1/scripts/deb"
}
mkdir "$work/next"
tar -C "$LT_TOP" --exclude=./build --exclude=./.git -cf - . | tar -C "$work/next" -xf -
sed -i "s/^version = \"$version\"/version = \"$version+1\"/" "$work/next/user/Cargo.toml"
sed -i "s/VERSION: &str = \"$version\"/VERSION: \&str = \"$version+1\"/" "$work/next/rust/latency_tracker.rs"
packages "$LT_TOP" "$work/this"
packages "$work/next" "$work/next/build"

# A system with a kernel. Unlike the environment, it has man pages and lets DKMS build modules.
printf '%s\n' linux-image-amd64 ca-certificates >"$work/list"
XDG_CACHE_HOME=$work LT_CACHE='' LT_PACKAGES=$work/list "$LT_TOP/scripts/env"
system=$(XDG_CACHE_HOME=$work LT_CACHE='' LT_PACKAGES=$work/list "$LT_TOP/scripts/env" --print)
rm "$system/etc/dkms/no-autoinstall" "$system/etc/dpkg/dpkg.cfg.d/99mmdebstrap"
release=$(basename "$system"/usr/lib/modules/*)
there() { LT_TREE=$system "$LT_TOP/scripts/in-tree" env -u LT_IN_TREE -u LT_TOP -u LT_CACHE -u LT_BUILD DEBIAN_FRONTEND=noninteractive "$@"; }
# apt WORD...: run apt-get, with its output shown and copied to $work/said.
apt() {
	there apt-get -o APT::Sandbox::User=root -o DPkg::Options::=--force-unsafe-io --yes "$@" 2>&1 | tee "$work/said" ||
		fail "apt-get $* failed"
	[ -z "$(there dpkg --audit)" ] || fail "half configured after apt-get $*: $(there dpkg --audit)"
}
status() { there dkms status latency-tracker; }
# has_module VERSION: check that DKMS has built and signed the module of this version alone, and that modprobe finds it.
has_module() {
	status
	[[ $(status) = "latency-tracker/$1, $release, x86_64: installed"* && $(status | wc -l) -eq 1 ]] ||
		fail "not the module of version $1 alone: $(status)"
	there modinfo -k "$release" latency_tracker | grep -E '^(filename|vermagic|signer)' | tee "$work/modinfo"
	grep -q '^filename: *.*/updates/dkms/latency_tracker.ko' "$work/modinfo" || fail "modprobe would not find it"
	grep -q '^signer: *DKMS' "$work/modinfo" || fail "it is not signed"
}
# kept: check that the administrator's files are unchanged.
kept() {
	[ "$(cat "$system"/etc/{latency-tracker/late.conf,default/latency-tracker-export})" = "$files" ] ||
		fail "the administrator's files have changed"
}
# The temporary files of the build are gone: 1.8 GB of source, 200 MB of metadata.
small() {
	local size
	size=$(du -sm "$system/var/lib/dkms" | cut -f1)
	[ "$size" -lt 30 ] || fail "$size MB are left in /var/lib/dkms: $(du -m --max-depth=4 "$system/var/lib/dkms" | sort -n | tail -n 5)"
}
there apt-get -o APT::Sandbox::User=root update

echo "== what apt would install"
apt install --simulate "$work"/this/deb/*.deb
for package in linux-source linux-headers-amd64; do
	grep -q "^Inst $package " "$work/said" || fail "apt would not install $package"
done

echo "== without the kernel's source"
apt install --no-install-recommends "$work"/this/deb/*.deb linux-headers-amd64
why="latency-tracker: no module for Linux $release: linux-source-[0-9.]* is not installed; .* run: apt install linux-source-"
grep "^$why" "$work/said" || fail "apt does not show what is missing"
rc=0
there dkms autoinstall -k "$release" >"$work/said" 2>&1 || rc=$?
[ "$rc" -eq 0 ] || { cat "$work/said"; fail "dkms autoinstall ends with $rc"; }
grep "^$why" "$work/said" || { cat "$work/said"; fail "dkms does not show what is missing"; }
! status | grep installed || fail "a module was built"
small

echo "== what that line says"
read -ra words < <(sed -n "s/^latency-tracker: no module .* run: apt //p" "$work/said")
apt "${words[@]}"
has_module "$version"
small
ls "$system/usr/share/man/man1/latency-tracker.1.gz" "$system/usr/bin/latency-tracker"

echo "== upgrade"
mkdir "$system/etc/latency-tracker"
echo 'late wakeup threshold=1h' >"$system/etc/latency-tracker/late.conf"
echo 'EXPORT_OPTIONS=--listen 127.0.0.1:9999' >"$system/etc/default/latency-tracker-export"
files=$(cat "$system"/etc/{latency-tracker/late.conf,default/latency-tracker-export})
# As on a machine that runs systemd: what the packages ask of it is in /run/asked.
mkdir -p "$system/run/systemd/system"
cat >"$system/usr/bin/deb-systemd-invoke" <<-'END'
	#!/bin/sh
	echo "$*" >>/run/asked
END
apt install --no-install-recommends "$work"/next/build/deb/*.deb
rmdir "$system/run/systemd/system"
[ "$(cat "$system/run/asked")" = "try-restart latency-tracker-export.service" ] ||
	fail "an upgrade asks systemd to: $(cat "$system/run/asked")"
has_module "$version+1"
[ ! -e "$system/usr/src/latency-tracker-$version" ] || fail "the old source is left"
kept
small

echo "== in a virtual machine"
# shellcheck disable=SC2016 # the machine's shell expands it
"$LT_TOP/scripts/vm" --tree "$system" --kernel "$release" --icount 1 --log "$work/vm" -- sh -c '
	. /lt/tests/lib.sh
	. /lt/tests/block.sh
	PATH=/usr/sbin:/usr/bin:/sbin:/bin
	modprobe latency_tracker
	cat $LT/version
	grep -q "^latency_tracker $1 " $LT/version || fail "not the module of version $1"
	latency-tracker apply
	assert_eq "$(awk "{ print \$1 }" $LT/control)" late "instances of /etc/latency-tracker"
	watch_slow_disk
	modprobe -r latency_tracker
	! loaded' sh "$version+1" | tee "$work/said"
[ "$(grep -c '^slow_disk .* dd .* slow RS' "$work/said")" -ge 5 ] || fail "the command did not show the alerts"
"$LT_TOP/scripts/kernel-log-check" "$work/vm"

echo "== back to the earlier version, without the source"
apt purge 'linux-source*'
apt install --no-install-recommends --allow-downgrades "$work"/this/deb/*.deb
grep "^$why" "$work/said" || fail "apt does not show what is missing"
[ "$(status)" = "latency-tracker/$version: added" ] || fail "not the earlier version alone: $(status)"
! there modinfo -k "$release" latency_tracker 2>/dev/null || fail "the module of the other version is left"
small

echo "== purge"
mkdir -p "$system/var/lib/latency-tracker/captures/0001"
apt purge latency-tracker latency-tracker-dkms latency-tracker-dev
kept
rm -r "$system/etc/latency-tracker" "$system/etc/default/latency-tracker-export"
# except for the mount points of this checkout and the cache (in-tree)
left=$(find "$system" -xdev \( -path "$system/var/log" -o -path "$system/var/cache/apt" -o -path "$system$LT_TOP" -o -path "$system$LT_CACHE" \) -prune \
	-o -iname '*latency[-_]tracker*' -print)
[ -z "$left" ] || fail "left after a purge: $left"
[ -z "$(find "$system/var/lib/dkms" -mindepth 1 ! -name 'mok.*' ! -name dkms_dbversion)" ] ||
	fail "left in /var/lib/dkms: $(find "$system/var/lib/dkms")"
[ ! -d "$system/usr/lib/modules/$release/updates" ] || fail "left: $(find "$system/usr/lib/modules/$release/updates")"
! there dpkg-query -W 'latency-tracker*' 2>/dev/null | grep . || fail "dpkg still knows the packages"
