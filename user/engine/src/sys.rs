// SPDX-License-Identifier: GPL-2.0

//! What the engine imports of the module's `sys`.

// By its path, since test programs include this file by its path, too.
#[path = "memory.rs"]
pub(crate) mod memory;
