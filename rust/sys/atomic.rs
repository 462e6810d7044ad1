// SPDX-License-Identifier: GPL-2.0

//! `kernel::sync::atomic`, inlined.
//!
//! The `kernel` crate's atomics call C functions, unless the kernel is built with
//! `CONFIG_RUST_INLINE_HELPERS`, which distributions do not set. Each load and each exchange of the
//! engine would then be a call that clobbers all caller-saved registers: more than a quarter of the
//! instructions for the start and end of an event. The types here have the same names, methods and
//! orderings, and compile to the same instructions on x86-64, inline:
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
//! A "barrier" here restricts only the compiler. On other architectures, with inline helpers, and
//! with sanitizers that check each access (KASAN, KCSAN), this file reexports
//! `kernel::sync::atomic`.
//!
//! C headers: [`arch/x86/include/asm/atomic64_64.h`](srctree/arch/x86/include/asm/atomic64_64.h),
//! [`arch/x86/include/asm/barrier.h`](srctree/arch/x86/include/asm/barrier.h)

#[cfg(not(all(
    target_arch = "x86_64",
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
)))]
#[allow(unused_imports, reason = "not every user of this file needs each")]
pub(crate) use kernel::sync::atomic::{Acquire, Atomic, Full, Relaxed, Release};

/// Clears a byte of a word: number `byte`, whose value is `value`. No other CPU changes that byte.
#[cfg(not(all(
    target_arch = "x86_64",
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
    target_arch = "x86_64",
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
))]
#[allow(unused_imports, reason = "not every user of this file needs each")]
pub(crate) use self::x86_64::{clear_byte, Acquire, Atomic, Full, Relaxed, Release};

#[cfg(all(
    target_arch = "x86_64",
    not(CONFIG_RUST_INLINE_HELPERS),
    not(CONFIG_KASAN),
    not(CONFIG_KCSAN)
))]
mod x86_64 {
    use core::{arch::asm, cell::UnsafeCell};
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

    /// Keeps the compiler from moving memory accesses across this call.
    #[inline(always)]
    fn barrier() {
        // SAFETY: Emits no instruction.
        unsafe { asm!("", options(nostack, preserves_flags)) };
    }

    impl<T: AtomicWord> Atomic<T> {
        /// Reads the value.
        #[inline(always)]
        pub(crate) fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
            // SAFETY: Valid and aligned, since it is a reference; volatile, so that it is read once
            // and in one piece, as by READ_ONCE.
            let value = unsafe { self.as_ptr().read_volatile() };
            if !matches!(O::TYPE, OrderingType::Relaxed) {
                barrier();
            }
            value
        }

        /// Writes the value.
        #[inline(always)]
        pub(crate) fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
            if !matches!(O::TYPE, OrderingType::Relaxed) {
                barrier();
            }
            // SAFETY: As in `load`; as by WRITE_ONCE.
            unsafe { self.as_ptr().write_volatile(value) };
        }

        /// Replaces the value and returns the old one.
        #[inline(always)]
        #[allow(dead_code, reason = "not every user of this file needs each")]
        pub(crate) fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
            T::xchg(self, value)
        }

        /// Replaces the value by `new` if it is `old`; if not, fails with the actual value.
        #[inline(always)]
        pub(crate) fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
            let found = T::cmpxchg(self, old, new);
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
            T::xadd(self, value)
        }

        /// Subtracts from the value, wrapping around, and returns the old one.
        #[inline(always)]
        pub(crate) fn fetch_sub<O: Ordering>(&self, value: T, order: O) -> T {
            self.fetch_add(value.negated(), order)
        }
    }

    /// Words that the processor can exchange.
    pub(crate) trait AtomicWord: Copy + PartialEq {
        /// Returns the value whose addition subtracts this one.
        fn negated(self) -> Self;

        /// Replaces the value of `word` by `value`, and returns the old one.
        fn xchg(word: &Atomic<Self>, value: Self) -> Self;

        /// Replaces the value of `word` by `new` if it is `old`, and returns the previous value.
        fn cmpxchg(word: &Atomic<Self>, old: Self, new: Self) -> Self;

        /// Adds `value` to `word`, and returns the previous value.
        fn xadd(word: &Atomic<Self>, value: Self) -> Self;
    }

    /// Clears byte number `byte` of a word. No other CPU changes that byte.
    ///
    /// Stores only that byte, with release ordering. An exchange of the whole word by another CPU
    /// comes either before or after the store; queued_spin_unlock() relies on this, too.
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
                fn xchg(word: &Atomic<Self>, mut value: Self) -> Self {
                    // SAFETY: Valid and aligned, since it is a reference. `xchg` with memory is
                    // always locked. Not `nomem`: also a barrier to the compiler.
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
                fn cmpxchg(word: &Atomic<Self>, old: Self, new: Self) -> Self {
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
                fn xadd(word: &Atomic<Self>, mut value: Self) -> Self {
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
}
