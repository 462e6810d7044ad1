// SPDX-License-Identifier: GPL-2.0

//! Atomic words by instructions of arm64.
//!
//! The instructions are those of the kernel's C: `smp_load_acquire`, `smp_store_release`,
//! `__ll_sc_atomic64_fetch_add*`, `__ll_sc__cmpxchg_case_*`, and `__xchg_case_*` on a processor
//! without LSE. An exchange is a loop of an exclusive load and an exclusive store. The store fails,
//! and the loop repeats, if another CPU has written to the word since the load, or if an interrupt
//! came in between.
//!
//! | ordering | load    | store   | then      | what comes first                                 |
//! |----------|---------|---------|-----------|--------------------------------------------------|
//! | Relaxed  | `ldxr`  | `stxr`  |           |                                                  |
//! | Acquire  | `ldaxr` | `stxr`  |           | the load, before later accesses                  |
//! | Release  | `ldxr`  | `stlxr` |           | earlier accesses, before the store               |
//! | Full     | `ldxr`  | `stlxr` | `dmb ish` | earlier accesses, before the store, and all that |
//! |          |         |         |           | is before the barrier, before later accesses     |
//!
//! A `cmpxchg` that fails stores nothing, skips the barrier, and guarantees no order.
//!
//! C headers:
//! [`arch/arm64/include/asm/atomic_ll_sc.h`](srctree/arch/arm64/include/asm/atomic_ll_sc.h),
//! [`arch/arm64/include/asm/cmpxchg.h`](srctree/arch/arm64/include/asm/cmpxchg.h),
//! [`arch/arm64/include/asm/barrier.h`](srctree/arch/arm64/include/asm/barrier.h)

use super::inline::{Atomic, AtomicWord};
use core::arch::asm;
use kernel::sync::atomic::ordering::{Ordering, OrderingType};

/// Clears byte number `byte` of a word. No other CPU changes that byte.
///
/// Stores only that byte, with release ordering. If the store comes between the load and the store
/// of an exchange by another CPU, the exchange repeats. queued_spin_unlock() relies on this, too.
#[inline(always)]
#[allow(dead_code, reason = "not every user of this file needs each")]
pub(crate) fn clear_byte(word: &Atomic<u64>, byte: u32, _value: u64) {
    // SAFETY: One of the eight bytes of a valid word. Not `nomem`: also a barrier to the compiler.
    unsafe {
        asm!(
            "stlrb wzr, [{byte}]",
            byte = in(reg) word.as_ptr().cast::<u8>().add((byte & 7) as usize),
            options(nostack, preserves_flags),
        );
    }
}

/// Expands to `$exchange!(LOAD, STORE, BARRIER, ...)`, with the instructions of an ordering.
macro_rules! with_ordering {
    ($order:ident, $exchange:ident, $($argument:tt),+) => {
        match $order::TYPE {
            OrderingType::Relaxed => $exchange!("ldxr", "stxr", "", $($argument),+),
            OrderingType::Acquire => $exchange!("ldaxr", "stxr", "", $($argument),+),
            OrderingType::Release => $exchange!("ldxr", "stlxr", "", $($argument),+),
            OrderingType::Full => $exchange!("ldxr", "stlxr", "dmb ish", $($argument),+),
        }
    };
}

macro_rules! xchg {
    ($load:tt, $store:tt, $barrier:tt, $size:tt, $word:ident, $value:ident) => {{
        let found;
        // SAFETY: Valid and aligned, since it is a reference. Not `nomem`: also a barrier to the
        // compiler.
        unsafe {
            asm!(
                "prfm pstl1strm, [{ptr}]",
                "2:",
                concat!($load, " {found:", $size, "}, [{ptr}]"),
                concat!($store, " {failed:w}, {value:", $size, "}, [{ptr}]"),
                "cbnz {failed:w}, 2b",
                $barrier,
                ptr = in(reg) $word.as_ptr(),
                value = in(reg) $value,
                found = out(reg) found,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
        found
    }};
}

macro_rules! cmpxchg {
    ($load:tt, $store:tt, $barrier:tt, $size:tt, $word:ident, $old:ident, $new:ident) => {{
        let found;
        // SAFETY: As in `xchg`.
        unsafe {
            asm!(
                "prfm pstl1strm, [{ptr}]",
                "2:",
                concat!($load, " {found:", $size, "}, [{ptr}]"),
                concat!("eor {other:", $size, "}, {found:", $size, "}, {old:", $size, "}"),
                concat!("cbnz {other:", $size, "}, 3f"),
                concat!($store, " {other:w}, {new:", $size, "}, [{ptr}]"),
                "cbnz {other:w}, 2b",
                $barrier,
                "3:",
                ptr = in(reg) $word.as_ptr(),
                old = in(reg) $old,
                new = in(reg) $new,
                found = out(reg) found,
                other = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
        found
    }};
}

macro_rules! xadd {
    ($load:tt, $store:tt, $barrier:tt, $size:tt, $word:ident, $value:ident) => {{
        let found;
        // SAFETY: As in `xchg`.
        unsafe {
            asm!(
                "prfm pstl1strm, [{ptr}]",
                "2:",
                concat!($load, " {found:", $size, "}, [{ptr}]"),
                concat!("add {sum:", $size, "}, {found:", $size, "}, {value:", $size, "}"),
                concat!($store, " {failed:w}, {sum:", $size, "}, [{ptr}]"),
                "cbnz {failed:w}, 2b",
                $barrier,
                ptr = in(reg) $word.as_ptr(),
                value = in(reg) $value,
                found = out(reg) found,
                sum = out(reg) _,
                failed = out(reg) _,
                options(nostack, preserves_flags),
            );
        }
        found
    }};
}

macro_rules! atomic_word {
    ($type:ty, $size:tt) => {
        impl AtomicWord for $type {
            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }

            #[inline(always)]
            fn load_acquire(word: &Atomic<Self>) -> Self {
                let value;
                // SAFETY: As in `xchg`.
                unsafe {
                    asm!(
                        concat!("ldar {value:", $size, "}, [{ptr}]"),
                        ptr = in(reg) word.as_ptr(),
                        value = lateout(reg) value,
                        options(nostack, preserves_flags),
                    );
                }
                value
            }

            #[inline(always)]
            fn store_release(word: &Atomic<Self>, value: Self) {
                // SAFETY: As in `xchg`.
                unsafe {
                    asm!(
                        concat!("stlr {value:", $size, "}, [{ptr}]"),
                        ptr = in(reg) word.as_ptr(),
                        value = in(reg) value,
                        options(nostack, preserves_flags),
                    );
                }
            }

            #[inline(always)]
            fn xchg<O: Ordering>(word: &Atomic<Self>, value: Self) -> Self {
                with_ordering!(O, xchg, $size, word, value)
            }

            #[inline(always)]
            fn cmpxchg<O: Ordering>(word: &Atomic<Self>, old: Self, new: Self) -> Self {
                with_ordering!(O, cmpxchg, $size, word, old, new)
            }

            #[inline(always)]
            fn xadd<O: Ordering>(word: &Atomic<Self>, value: Self) -> Self {
                with_ordering!(O, xadd, $size, word, value)
            }
        }
    };
}

atomic_word!(u32, "w");
atomic_word!(u64, "x");
