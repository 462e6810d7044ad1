// SPDX-License-Identifier: GPL-2.0

//! What the engine imports of the module's `sys`.

/// The same orderings and methods; loom's under loom.
pub(crate) mod atomic {
    pub(crate) use kernel::sync::atomic::{Acquire, Atomic, Full, Relaxed, Release};
}

// By its path, since test programs include this file by its path, too.
#[path = "memory.rs"]
pub(crate) mod memory;
