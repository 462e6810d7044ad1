// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Interrupts: a closure that runs in the middle of other operations, on the same thread.
//!
//! Every atomic operation of this crate calls `fire` first. An operation of the engine accesses shared state only by
//! atomics; so an interrupt or NMI at any instruction has the same effect as one just before the next atomic operation,
//! and the hook covers all of these places.

use std::cell::{Cell, RefCell};

type Hook = Box<dyn FnMut()>;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Runs `body`, and runs `hook` before each atomic operation of `body`. The atomic operations of the
/// hook are not interrupted, unless the hook calls `interrupted` itself.
pub fn interrupted<R>(hook: impl FnMut() + 'static, body: impl FnOnce() -> R) -> R {
    let outer = HOOK.replace(Some(Box::new(hook)));
    let armed = ARMED.replace(true);
    let result = body();
    ARMED.set(armed);
    HOOK.replace(outer);
    result
}

/// Runs `body` without interrupts, as if it were one instruction.
#[inline]
pub fn uninterrupted<R>(body: impl FnOnce() -> R) -> R {
    let armed = ARMED.replace(false);
    let result = body();
    ARMED.set(armed);
    result
}

/// Marks a place where an interrupt may come.
#[inline(always)]
pub(crate) fn fire() {
    if ARMED.get() {
        interrupt();
    }
}

#[cold]
fn interrupt() {
    ARMED.set(false);
    if let Some(mut hook) = HOOK.take() {
        hook();
        HOOK.replace(Some(hook));
    }
    ARMED.set(true);
}
