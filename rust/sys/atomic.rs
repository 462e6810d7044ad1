// SPDX-License-Identifier: GPL-2.0

//! `kernel::sync::atomic`, inlined.
//!
//! The `kernel` crate's atomics call C functions, unless the kernel is built with
//! `CONFIG_RUST_INLINE_HELPERS`, which distributions do not set. Each load and each exchange of the
//! engine would then be a call that clobbers all caller-saved registers. These calls would take
//! more than a quarter of the instructions for the start and end of an event. The types here have
//! the same names, methods and orderings, and compile to the instructions of C, inline.
//!
//! On x86-64:
//!
//! | operation                        | instruction    | C                                    |
//! |----------------------------------|----------------|--------------------------------------|
//! | `load(Relaxed)`                  | `mov`          | `READ_ONCE`                          |
//! | `load(Acquire)`                  | `mov`, barrier | `smp_load_acquire`: TSO orders it    |
//! | `store(Relaxed)`                 | `mov`          | `WRITE_ONCE`                         |
//! | `store(Release)`                 | barrier, `mov` | `smp_store_release`: TSO orders it   |
//! | `cmpxchg`, `fetch_*`, any order  | `lock ...`     | `arch_cmpxchg`, ...: a full barrier  |
//! | `xchg`, any order                | `xchg`         | `arch_xchg`: a full barrier          |
//!
//! A "barrier" here restricts only the compiler.
//!
//! On arm64:
//!
//! | operation                        | instructions   | C                                    |
//! |----------------------------------|----------------|--------------------------------------|
//! | `load(Relaxed)`                  | `ldr`          | `READ_ONCE`                          |
//! | `load(Acquire)`                  | `ldar`         | `smp_load_acquire`                   |
//! | `store(Relaxed)`                 | `str`          | `WRITE_ONCE`                         |
//! | `store(Release)`                 | `stlr`         | `smp_store_release`                  |
//! | `xchg`, `cmpxchg`, `fetch_*`     | a loop         | `__ll_sc_*`, see atomic/arm64.rs     |
//!
//! The kernel patches its own loops if the processor has the exchange as one instruction (LSE).
//! Ours, of 4 to 7 instructions, are not patched, and work on every processor. If many CPUs change
//! one word at the same time, they may be slower than LSE (not measured); in the engine, few words
//! are shared in this way. With `CONFIG_LTO`, `READ_ONCE` also acquires, so that the compiler
//! cannot break a dependency between loads. Here, a load that must be ordered uses `Acquire`.
//!
//! On other architectures, with inline helpers, and with sanitizers that check each access (KASAN,
//! KCSAN), this file reexports `kernel::sync::atomic`.
//!
//! C headers: [`arch/x86/include/asm/atomic64_64.h`](srctree/arch/x86/include/asm/atomic64_64.h),
//! [`arch/x86/include/asm/barrier.h`](srctree/arch/x86/include/asm/barrier.h)

#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
)))]
#[allow(unused_imports, reason = "not every user of this file needs each")]
pub(crate) use kernel::sync::atomic::{Acquire, Atomic, Full, Relaxed, Release};

/// Clears byte number `byte` of a word; that byte has the value `value`. No other CPU changes it.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
)))]
#[allow(dead_code, reason = "not every user of this file needs each")]
pub(crate) fn clear_byte(word: &Atomic<u64>, byte: u32, value: u64) {
    // Release: earlier accesses stay before it. The byte is `value`: no borrow from other bytes.
    word.fetch_sub(value << (byte * 8), Release);
}

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
))]
#[allow(unused_imports, reason = "not every user of this file needs each")]
pub(crate) use self::inline::{clear_byte, Acquire, Atomic, Full, Relaxed, Release};

#[cfg(all(
    target_arch = "aarch64",
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
))]
#[path = "atomic/arm64.rs"]
mod arm64;

#[cfg(all(
    target_arch = "x86_64",
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
))]
#[path = "atomic/x86_64.rs"]
mod x86_64;

#[cfg(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
))]
mod inline {
    #[cfg(target_arch = "aarch64")]
    pub(crate) use crate::sys::atomic::arm64::clear_byte;
    #[cfg(target_arch = "x86_64")]
    pub(crate) use crate::sys::atomic::x86_64::clear_byte;
    use core::cell::UnsafeCell;
    use kernel::sync::atomic::ordering::{
        AcquireOrRelaxed, Ordering, OrderingType, ReleaseOrRelaxed,
    };
    pub(crate) use kernel::sync::atomic::{Acquire, Full, Relaxed, Release};

    /// A word that several CPUs and interrupts may use at once.
    #[repr(transparent)]
    pub(crate) struct Atomic<T>(UnsafeCell<T>);

    // SAFETY: All access is by instructions that are atomic for aligned words of up to 8 bytes,
    // and `AtomicWord` is implemented for no other types.
    unsafe impl<T: AtomicWord> Sync for Atomic<T> {}

    impl<T> Atomic<T> {
        /// Creates an atomic with a value.
        pub(crate) const fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }

        /// Returns the address of the value.
        #[inline(always)]
        pub(crate) const fn as_ptr(&self) -> *mut T {
            self.0.get()
        }
    }

    impl<T: AtomicWord> Atomic<T> {
        /// Reads the value.
        #[inline(always)]
        pub(crate) fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
            if !matches!(O::TYPE, OrderingType::Relaxed) {
                return T::load_acquire(self);
            }
            // SAFETY: Valid and aligned, since it is a reference; volatile, so that it is read once
            // and in one piece, as by READ_ONCE.
            unsafe { self.as_ptr().read_volatile() }
        }

        /// Writes the value.
        #[inline(always)]
        pub(crate) fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
            if !matches!(O::TYPE, OrderingType::Relaxed) {
                return T::store_release(self, value);
            }
            // SAFETY: As in `load`; volatile, so that it is written once and in one piece, as by
            // WRITE_ONCE.
            unsafe { self.as_ptr().write_volatile(value) };
        }

        /// Replaces the value and returns the old one.
        #[inline(always)]
        #[allow(dead_code, reason = "not every user of this file needs each")]
        pub(crate) fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
            T::xchg::<O>(self, value)
        }

        /// Replaces the value by `new` if it is `old`; if not, fails with the actual value.
        #[inline(always)]
        pub(crate) fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
            let found = T::cmpxchg::<O>(self, old, new);
            if found == old {
                Ok(found)
            } else {
                Err(found)
            }
        }

        /// Adds to the value, wrapping around.
        #[inline(always)]
        pub(crate) fn add(&self, value: T, order: Relaxed) {
            self.fetch_add(value, order);
        }

        /// Adds to the value, wrapping around, and returns the old one.
        #[inline(always)]
        pub(crate) fn fetch_add<O: Ordering>(&self, value: T, _: O) -> T {
            T::xadd::<O>(self, value)
        }

        /// Subtracts from the value, wrapping around, and returns the old one.
        #[inline(always)]
        pub(crate) fn fetch_sub<O: Ordering>(&self, value: T, order: O) -> T {
            self.fetch_add(value.negated(), order)
        }
    }

    /// Words that the processor can exchange. Each exchange has the ordering `O`, or a stronger
    /// one.
    pub(crate) trait AtomicWord: Copy + PartialEq {
        /// Returns the value whose addition subtracts this one.
        fn negated(self) -> Self;

        /// Returns the value of `word`. Later accesses come after this.
        fn load_acquire(word: &Atomic<Self>) -> Self;

        /// Replaces the value of `word`. Earlier accesses come before this.
        fn store_release(word: &Atomic<Self>, value: Self);

        /// Replaces the value of `word` by `value`, and returns the old one.
        fn xchg<O: Ordering>(word: &Atomic<Self>, value: Self) -> Self;

        /// Replaces the value of `word` by `new` if it is `old`, and returns the previous value.
        fn cmpxchg<O: Ordering>(word: &Atomic<Self>, old: Self, new: Self) -> Self;

        /// Adds `value` to `word`, and returns the previous value.
        fn xadd<O: Ordering>(word: &Atomic<Self>, value: Self) -> Self;
    }
}
