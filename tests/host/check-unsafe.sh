#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR MIT
#
# The fence around unsafe code holds: scripts/check-unsafe rejects unsafe code outside it, and inside it
# unsafe code without a justification. It accepts justified code inside.
# timeout: 20

. "$(dirname "$0")/../host.sh"
mkdir -p "$work"/rust/{sys,engine,alert}

# expect pass|refuse FILE: check the result for the code on stdin, as if it were in FILE
expect() {
	local got=pass
	cat >"$work/$2"
	"$LT_TOP/scripts/check-unsafe" "$work/$2" >"$work/said" || got=refuse
	[ "$got" = "$1" ] || { echo "expected to $1 in $2:"; cat "$work/$2" "$work/said"; exit 1; }
	rm "$work/$2"
}

expect refuse rust/engine.rs <<<'fn f() { unsafe { g() } }'
expect refuse rust/engine.rs <<<'// SAFETY: argued for, but in the wrong place.
fn f() { unsafe { g() } }'
expect refuse rust/alert/ring.rs <<<'unsafe impl Send for X {}'
expect pass rust/engine.rs <<<'// unsafe is a word here, /* and here unsafe */
/* unsafe */ const A: &str = "unsafe { }"; const B: &str = r#"unsafe "quoted" { }"#;
#![deny(unsafe_op_in_unsafe_fn)]'
expect refuse rust/sys/a.rs <<<'fn f() {
    unsafe { g() }
}'
expect refuse rust/sys/a.rs <<<'fn f() {
    // SAFETY: for the first only.
    unsafe { g() };
    let x = unsafe { g() };
}'
expect refuse rust/sys/a.rs <<<'fn f() {
    // SAFETY:
    unsafe { g() }
}'
expect refuse rust/freelist.rs <<<'unsafe impl Sync for X {}'
expect refuse rust/rcu_ht.rs <<<'/// Does things.
pub unsafe fn f() {}'
expect pass rust/sys/a.rs <<<'fn f() {
    // SAFETY: g has no conditions.
    unsafe { g() };
    // SAFETY: neither has h, which is
    // a long story.
    let x = y
        .map(|z| unsafe { h(z) });
}'
expect pass rust/freelist.rs <<<'// SAFETY: no interior mutability.
#[cfg(x)]
unsafe impl Sync for X {}

/// Does things.
///
/// # Safety
///
/// The pointer is valid.
#[inline]
pub unsafe fn f(p: *const u8) {}'
expect pass rust/sys.rs <<<'unsafe extern "C" fn callback(p: *mut c_void) {}
type Callback = unsafe extern "C" fn(*mut c_void);'
expect pass rust/engine/platform.rs <<<'/// The machine.
///
/// # Safety
///
/// A guard keeps its CPU.
pub unsafe trait Platform {}'
expect refuse rust/engine/platform.rs <<<'// SAFETY: argued for, but no declaration of a trait.
unsafe impl Platform for X {}'
expect refuse rust/engine.rs <<<'/// # Safety
///
/// Not here.
unsafe trait T {}'
echo "all cases as expected"
