#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# `make install` puts the module, the command, its pages and its completions where the system
# finds them, and `make uninstall` removes exactly these files. (tests/vm/command.sh loads and runs
# the installed module and command.)
# timeout: 600

. "$(dirname "$0")/../host.sh"
release=$("$LT_TOP/scripts/kernel-tree" --release stock)
[ -f "$LT_BUILD/$release/lttng/lttng-probe-latency-tracker.ko" ] || "$LT_TOP/scripts/build-module" stock
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"
# The same state as after `make`, but with the command that all tests use.
export LT_BUILD=$work/build
mkdir "$LT_BUILD"
ln -s "${work%/*}/test" "$LT_BUILD/user"
ln -s "${work%/*}/$release" "$LT_BUILD/$release"

root=$work/root
at() { timeout 120 make --no-print-directory -C "$LT_TOP" "$@" "DESTDIR=$root" KREL=stock >"$work/said" 2>&1; }
tree() { (cd "$root" && find . -printf '%y %m %p %s\n' | sort -k3); }

# A missing directory is created by install, and removed by uninstall.
root=$work/deep/new
at install PREFIX=/usr || { cat "$work/said"; fail "make install into a directory that does not exist failed"; }
"$root/usr/bin/latency-tracker" --version >/dev/null || fail "the command that was installed there does not run"
at uninstall PREFIX=/usr || { cat "$work/said"; fail "make uninstall from there failed"; }
[ ! -e "$root" ] || fail "make uninstall left $(find "$root")"
root=$work/root

# Foreign files are left alone.
mkdir -p "$root/usr/share/man/man1" "$root/usr/bin"
echo theirs >"$root/usr/share/man/man1/other.1"
tree >"$work/before"

at install PREFIX=/usr || { cat "$work/said"; fail "make install failed"; }
tree | grep -v '^d' | awk '{ print $2, $3 }' >"$work/files"
cat >"$work/wanted" <<-END
	644 ./lib/modules/$release/updates/latency_tracker.ko
	644 ./lib/modules/$release/updates/lttng-probe-latency-tracker.ko
	755 ./usr/bin/latency-tracker
	644 ./usr/lib/modprobe.d/latency-tracker.conf
	644 ./usr/lib/systemd/system/latency-tracker-export.service
	644 ./usr/lib/systemd/system/latency-tracker-record@.service
	644 ./usr/lib/systemd/system/latency-tracker.service
	644 ./usr/lib/sysusers.d/latency-tracker.conf
	644 ./usr/share/bash-completion/completions/latency-tracker
	644 ./usr/share/fish/vendor_completions.d/latency-tracker.fish
	644 ./usr/share/latency-tracker/installed
	644 ./usr/share/man/man1/other.1
	644 ./usr/share/zsh/site-functions/_latency-tracker
END
grep -v 'man1/latency-tracker\|share/doc/latency-tracker/' "$work/files" | diff "$work/wanted" - || fail "other files than these were installed"
for page in '' -list -watch -record; do
	grep -q '^\.TH' "$root/usr/share/man/man1/latency-tracker$page.1" || fail "no man page of latency-tracker$page"
done
diff -r "$LT_TOP/Documentation" "$root/usr/share/doc/latency-tracker" || fail "the pages are not those of Documentation"
cmp "$LT_BUILD/$release/latency_tracker.ko" "$root/lib/modules/$release/updates/latency_tracker.ko"
"$root/usr/bin/latency-tracker" --version >/dev/null || fail "the installed command does not run"
grep -qx 'ExecStart=/usr/bin/latency-tracker apply' "$root/usr/lib/systemd/system/latency-tracker.service" ||
	fail "the service does not start the command that was installed"
for shell in bash-completion/completions/latency-tracker fish/vendor_completions.d/latency-tracker.fish; do
	grep -q LATENCY_TRACKER_COMPLETE= "$root/usr/share/$shell" || fail "$shell does not ask the command"
done
head -n 1 "$root/usr/share/zsh/site-functions/_latency-tracker" | grep -qx '#compdef latency-tracker' || fail "zsh would not load it"
find "$root" -type d ! -perm 755 | grep . && fail "directories that not all users can enter"

# After another install, uninstall removes everything except a foreign file in the same directory.
at install PREFIX=/usr
echo mine >"$root/usr/share/latency-tracker/mine"
at uninstall PREFIX=/usr || { cat "$work/said"; fail "make uninstall failed"; }
rm "$root/usr/share/latency-tracker/mine"
rmdir "$root/usr/share/latency-tracker"
tree | diff "$work/before" - || fail "make uninstall left or took something else"
! at uninstall PREFIX=/usr || fail "uninstalled twice"
grep -q 'nothing to remove' "$work/said" || fail "it does not say so: $(cat "$work/said")"

# A missing build is named, and nothing is installed.
! LT_BUILD=$work/none at install PREFIX=/usr || fail "installed what was not built"
grep -q 'run make' "$work/said" || fail "no word of what to do: $(cat "$work/said")"
tree | diff "$work/before" - || fail "half installed"
