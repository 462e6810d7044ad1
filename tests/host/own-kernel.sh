#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# A kernel of our own configuration (scripts/debug-kernel small: PREEMPT_RT, without fprobe, kprobes, the function
# tracer, cgroups and network): `make KDIR=` builds the module, names the trackers that are left out and the options that
# they need, and sets up nothing. A wrong KDIR gives one line. The kernel boots with the module, vm/smoke passes, and eight
# of the remaining trackers report delays of known cause (tests/small.sh). A module with two trackers and an instance take
# at most 1 MiB. The module compiles for a kernel that has tracepoints, but no tracer. The kernel has the options of
# packaging/kernel.cfg, the fragment for Yocto and Buildroot.
# long: yes
# timeout: 1200
# worth: builds four modules, and boots three machines

. "$(dirname "$0")/../host.sh"

assert_same() { [ "$1" = "$2" ] || fail "got '$1', expected '$2'"; }

tree=$("$LT_TOP/scripts/kernel-tree" small)
release=$(<"$tree/include/config/kernel.release")
case $release in *-small) ;; *) fail "the kernel is called $release" ;; esac
while read -r option; do
	grep -qx "$option" "$tree/.config" || fail "packaging/kernel.cfg: this kernel has no $option"
done < <(grep '^CONFIG_' "$LT_TOP/packaging/kernel.cfg")

# ours COMMAND...: run the command where the compilers are, with nothing of this project in its environment.
ours() {
	"$LT_TOP/scripts/in-tree" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$work/home" "$@"
}
# sets_up_nothing: check that nothing was written to the place of the cache.
sets_up_nothing() { [ ! -e "$work/home" ] || fail "it sets up $(find "$work/home")"; }

# The module, as its users build it.
rm -rf "${LT_TOP:?}/build/$release"
ours make -C "$LT_TOP" KDIR="$tree" >"$work/said" 2>&1 || fail "it does not build: $(cat "$work/said")"
cat "$work/said"
sets_up_nothing
module=$LT_TOP/build/$release/latency_tracker.ko
[ -e "$module" ] || fail "no $module"
grep -qx '  left out, for want of options of this kernel: func net accept' "$work/said" || fail "which trackers are left out?"
for option in FPROBE NET INET; do grep -q "^  CONFIG_$option; menuconfig: ." "$work/said" || fail "no word of $option"; done
assert_same "$(grep -c menuconfig "$work/said")" 3

# wrong DIRECTORY TEXT: check that this KDIR is refused with one line.
wrong() {
	! ours make --no-print-directory -C "$LT_TOP" KDIR="$1" >"$work/said" 2>&1 || fail "accepted $1"
	assert_same "$(grep -v '^make: \*\*\* ' "$work/said")" "build-module: $1: $2"
	sets_up_nothing
}
wrong "$tree/nowhere" "there is no such directory"
wrong "$tree/include" "no .config: this is not a kernel's build directory"
wrong "$("$LT_TOP/scripts/kernel-tree" --source stock)" "no .config: this is not a kernel's build directory"
# A kernel that was configured but not built.
mkdir -p "$work/linux"
cp "$tree/.config" "$work/linux/"
wrong "$work/linux" "include/config/kernel.release does not exist: build that kernel first"

# The modules of the tests, some of which this kernel cannot use, and a module with few trackers.
"$LT_TOP/scripts/in-tree" "$LT_TOP/scripts/build-module" --tests "$tree"
"$LT_TOP/scripts/in-tree" env LT_MODULE_OUT="$work/few" "$LT_TOP/scripts/build-module" "$tree" TRACKERS='wakeup irq'
[ -x "$LT_BUILD/test/latency-tracker" ] || "$LT_TOP/scripts/build-user"

# A kernel without CONFIG_FTRACE. Its symbols are not known, which is only a warning.
untraced=$("$LT_TOP/scripts/kernel-tree" untraced)
"$LT_TOP/scripts/in-tree" env LT_MODULE_OUT="$work/untraced" KBUILD_MODPOST_WARN=1 "$LT_TOP/scripts/build-module" "$untraced" \
	>"$work/said" 2>&1 || fail "it does not compile without CONFIG_FTRACE: $(grep -v ' undefined!$' "$work/said")"
[ -e "$work/untraced/latency_tracker.ko" ] || fail "no module for the kernel without CONFIG_FTRACE: $(tail -n 5 "$work/said")"

# inside NAME OPTION... -- COMMAND...: run the command in a machine; the kernel must not complain.
inside() {
	local name=$1
	shift
	"$LT_TOP/scripts/vm" --kernel small --cpus 2 --icount 1 --timeout 300 --log "$work/$name" "$@" ||
		{ tail -n 20 "$work/$name/console.log"; fail "$name, see above"; }
	"$LT_TOP/scripts/kernel-log-check" "$work/$name" || fail "$name: the kernel complained, see above"
}
inside smoke -- sh /lt/tests/vm/smoke.sh
inside small --add "$("$LT_TOP/scripts/env" --print)/usr/bin/chrt:/lt/bin/chrt" -- sh /lt/tests/small.sh
inside fits --add "$work/few/latency_tracker.ko:/lt/only.ko" -- sh /lt/tests/fits.sh
