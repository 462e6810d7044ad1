// SPDX-License-Identifier: GPL-2.0

//! What the engine imports of the module's `sys`.

pub(crate) mod memory;
