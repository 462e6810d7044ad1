// SPDX-License-Identifier: GPL-2.0

//! Follows interrupt handlers.
//!
//! ```text
//!   irq_handler_entry          irq_handler_exit
//!   ------> action->handler() -------->
//! ```
//!
//! C headers: [`include/linux/interrupt.h`](srctree/include/linux/interrupt.h),
//! [`include/trace/events/irq.h`](srctree/include/trace/events/irq.h)
//!
//! # Contexts
//!
//! Interrupts are off. The context is usually a hard interrupt, but an NMI for a line that was
//! requested as an NMI (arm64), and a softirq if the kernel resends an interrupt.

use crate::sys::{
    bindings as helpers,
    measure::Target,
    platform::PreemptGuard,
    tracepoint::{callbacks, probe, Probe}, //
};
use core::{
    marker::PhantomData,
    ptr::{addr_of, NonNull}, //
};
use kernel::{bindings, ffi::c_int};

/// The action of an interrupt line, while its handler runs. A shared line has several.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Action<'a> {
    raw: NonNull<bindings::irqaction>,
    _during: PhantomData<&'a bindings::irqaction>,
}

/// `IRQ_WAKE_THREAD`.
pub(crate) const WAKE_THREAD: u32 = 2;

/// Number of words of [`Action::name`].
pub(crate) const NAME_WORDS: usize = 4;

impl Action<'_> {
    /// # Safety
    ///
    /// `raw` is valid for the duration of `'a`.
    unsafe fn from_raw<'a>(raw: *mut bindings::irqaction) -> Action<'a> {
        // INVARIANT: The caller's promise.
        Action {
            // SAFETY: A valid pointer is not NULL.
            raw: unsafe { NonNull::new_unchecked(raw) },
            _during: PhantomData,
        }
    }

    /// Returns the name of the action, as in /proc/interrupts, padded with NUL; truncated to 31
    /// bytes.
    #[inline(always)]
    pub(crate) fn name(&self) -> [u64; NAME_WORDS] {
        let mut name = [0; NAME_WORDS];
        // SAFETY: Valid by the type invariant, and there is room for the 32 bytes of a name, all 0.
        unsafe { helpers::lt_irq_action_name(self.raw.as_ptr().cast(), name.as_mut_ptr()) };
        name
    }

    /// Passes the name of the action to `see`, in as many words as [`Action::name`] returns. The
    /// bytes after its NUL are arbitrary, and a long name has no NUL. For callers that use few of
    /// the names that they get, and truncate these names themselves.
    #[inline(always)]
    pub(crate) fn with_uncut_name(&self, see: impl FnOnce([u64; NAME_WORDS])) {
        #[cfg(any(
            target_arch = "x86_64",
            all(target_arch = "aarch64", not(CONFIG_KASAN_HW_TAGS))
        ))]
        {
            use kernel::page::PAGE_SIZE;
            const SIZE: usize = NAME_WORDS * size_of::<u64>();
            // SAFETY: Valid by the type invariant; the field is set before the handler may be
            // called.
            let name = unsafe { addr_of!((*self.raw.as_ptr()).name).read() };
            // The name must be within one page, and not start at its first byte: this excludes
            // NULL, too.
            if name.addr().wrapping_sub(1) % PAGE_SIZE < PAGE_SIZE - SIZE {
                let (n0, n1, n2, n3);
                // SAFETY: Reads the start of a string and bytes after it in the same page: if one
                // byte of a page can be read, so can all. The bytes after the string may be another
                // object, and change meanwhile, so they are read by assembly, which the compiler
                // and KASAN do not check. (With CONFIG_KASAN_HW_TAGS the processor would.) Any
                // bytes are valid numbers.
                #[cfg(target_arch = "x86_64")]
                unsafe {
                    core::arch::asm!(
                        "mov {n0}, qword ptr [{name}]",
                        "mov {n1}, qword ptr [{name} + 8]",
                        "mov {n2}, qword ptr [{name} + 16]",
                        "mov {n3}, qword ptr [{name} + 24]",
                        name = in(reg) name,
                        n0 = out(reg) n0,
                        n1 = out(reg) n1,
                        n2 = out(reg) n2,
                        n3 = lateout(reg) n3,
                        options(nostack, readonly, preserves_flags),
                    );
                }
                // SAFETY: As on x86-64. The address need not be aligned.
                #[cfg(target_arch = "aarch64")]
                unsafe {
                    core::arch::asm!(
                        "ldp {n0}, {n1}, [{name}]",
                        "ldp {n2}, {n3}, [{name}, #16]",
                        name = in(reg) name,
                        n0 = out(reg) n0,
                        n1 = out(reg) n1,
                        n2 = lateout(reg) n2,
                        n3 = lateout(reg) n3,
                        options(nostack, readonly, preserves_flags),
                    );
                }
                return see([n0, n1, n2, n3]);
            }
        }
        self.with_name(see);
    }

    #[cold]
    fn with_name(self, see: impl FnOnce([u64; NAME_WORDS])) {
        see(self.name());
    }

    /// Returns the address of the thread of the action, 0 if it has none: a number, see
    /// [`TaskRef::address`](crate::sys::task::TaskRef::address).
    #[inline(always)]
    pub(crate) fn thread(&self) -> u64 {
        // SAFETY: Valid by the type invariant; the field is set before the handler may be called.
        let thread = unsafe { addr_of!((*self.raw.as_ptr()).thread).read_volatile() };
        thread.addr() as u64
    }
}

/// Receives the events of interrupt handlers. Interrupts are off.
pub(crate) trait Observer: Target {
    /// Called when a handler is about to be called. `TIMED`: see [`probes`].
    fn entered<const TIMED: bool>(&self, guard: &PreemptGuard, irq: u32, action: &Action<'_>);

    /// Called when the handler has returned, with a value of `irqreturn_t`. If that is
    /// [`WAKE_THREAD`], the thread of the action is woken next.
    fn left<const TIMED: bool>(
        &self,
        guard: &PreemptGuard,
        irq: u32,
        action: &Action<'_>,
        ret: u32,
    );
}

callbacks! {
    fn handler_entered<T: Observer, const TIMED: bool>(
        observer,
        irq: c_int,
        action: *mut bindings::irqaction,
    ) {
        // SAFETY: The action is valid.
        let action = unsafe { Action::from_raw(action) };
        // SAFETY: Interrupts are off, see "Contexts" above.
        let guard = unsafe { PreemptGuard::already() };
        observer.entered::<TIMED>(guard, irq as u32, &action);
    }

    fn handler_left<T: Observer, const TIMED: bool>(
        observer,
        irq: c_int,
        action: *mut bindings::irqaction,
        ret: c_int,
    ) {
        // SAFETY: The action is valid.
        let action = unsafe { Action::from_raw(action) };
        // SAFETY: As in `handler_entered`.
        let guard = unsafe { PreemptGuard::already() };
        observer.left::<TIMED>(guard, irq as u32, &action, ret as u32);
    }
}

/// Returns the probes of handlers, the end first, so that no end is missed.
/// `TIMED` is passed on to the observer, which may then do more.
pub(crate) fn probes<T: Observer, const TIMED: bool>() -> [Probe<'static, T>; 2] {
    // SAFETY: The probes have the arguments of these tracepoints, whose action is valid.
    unsafe {
        [
            probe!(irq_handler_exit: handler_left::<T, TIMED>),
            probe!(irq_handler_entry: handler_entered::<T, TIMED>),
        ]
    }
}
