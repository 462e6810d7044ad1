// SPDX-License-Identifier: GPL-2.0

//! Atomic words by instructions of x86-64. An exchange of any ordering is a full barrier.

use super::inline::{Atomic, AtomicWord};
use core::arch::asm;
use kernel::sync::atomic::ordering::Ordering;

/// Keeps the compiler from moving memory accesses across this call.
#[inline(always)]
fn barrier() {
    // SAFETY: Emits no instruction.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Clears byte number `byte` of a word. No other CPU changes that byte.
///
/// Stores only that byte, with release ordering. An exchange of the whole word by another CPU comes
/// either before or after the store; queued_spin_unlock() relies on this, too.
#[inline(always)]
#[allow(dead_code, reason = "not every user of this file needs each")]
pub(crate) fn clear_byte(word: &Atomic<u64>, byte: u32, _value: u64) {
    barrier();
    // SAFETY: One of the eight bytes of a valid word; volatile, so that it is one store.
    unsafe {
        let bytes = word.as_ptr().cast::<u8>();
        bytes.add((byte & 7) as usize).write_volatile(0);
    }
}

macro_rules! atomic_word {
    ($type:ty, $size:literal, $modifier:literal) => {
        impl AtomicWord for $type {
            #[inline(always)]
            fn negated(self) -> Self {
                self.wrapping_neg()
            }

            #[inline(always)]
            fn load_acquire(word: &Atomic<Self>) -> Self {
                // SAFETY: Valid and aligned, since it is a reference; volatile, so that it is read
                // once and in one piece, as by READ_ONCE.
                let value = unsafe { word.as_ptr().read_volatile() };
                barrier();
                value
            }

            #[inline(always)]
            fn store_release(word: &Atomic<Self>, value: Self) {
                barrier();
                // SAFETY: As in `load_acquire`; volatile, so that it is written once and in one
                // piece, as by WRITE_ONCE.
                unsafe { word.as_ptr().write_volatile(value) };
            }

            #[inline(always)]
            fn xchg<O: Ordering>(word: &Atomic<Self>, mut value: Self) -> Self {
                // SAFETY: Valid and aligned, since it is a reference. `xchg` with memory is always
                // locked. Not `nomem`: also a barrier to the compiler.
                unsafe {
                    asm!(
                        concat!("xchg ", $size, " ptr [{ptr}], {value:", $modifier, "}"),
                        ptr = in(reg) word.as_ptr(),
                        value = inout(reg) value,
                        options(nostack, preserves_flags),
                    );
                }
                value
            }

            #[inline(always)]
            fn cmpxchg<O: Ordering>(word: &Atomic<Self>, old: Self, new: Self) -> Self {
                let found;
                // SAFETY: Valid and aligned, since it is a reference. Not `nomem`, as above.
                unsafe {
                    asm!(
                        concat!("lock cmpxchg ", $size, " ptr [{ptr}], {new:", $modifier, "}"),
                        ptr = in(reg) word.as_ptr(),
                        new = in(reg) new,
                        inout("rax") old => found,
                        options(nostack),
                    );
                }
                found
            }

            #[inline(always)]
            fn xadd<O: Ordering>(word: &Atomic<Self>, mut value: Self) -> Self {
                // SAFETY: Valid and aligned, since it is a reference. Not `nomem`, as above.
                unsafe {
                    asm!(
                        concat!("lock xadd ", $size, " ptr [{ptr}], {value:", $modifier, "}"),
                        ptr = in(reg) word.as_ptr(),
                        value = inout(reg) value,
                        options(nostack),
                    );
                }
                value
            }
        }
    };
}

atomic_word!(u32, "dword", "e");
atomic_word!(u64, "qword", "r");
