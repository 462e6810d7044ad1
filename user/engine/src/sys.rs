// SPDX-License-Identifier: GPL-2.0

//! The parts of the module's `sys` that the engine imports.

/// Atomics with the orderings and methods of the module's; under loom, loom's atomics.
pub(crate) mod atomic {
    pub(crate) use kernel::sync::atomic::{Acquire, Atomic, Full, Relaxed, Release};

    /// Subtracts `value` from byte number `byte` of a word. No other thread changes that byte.
    pub(crate) fn clear_byte(word: &Atomic<u64>, byte: u32, value: u64) {
        word.fetch_sub(value << (byte * 8), Release);
    }
}

// The path is explicit, since test programs include this file by its path, too.
#[path = "memory.rs"]
pub(crate) mod memory;
