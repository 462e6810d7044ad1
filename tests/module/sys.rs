// SPDX-License-Identifier: GPL-2.0

//! The files of rust/sys that the engine and its `Platform` need.

#[cfg(target_arch = "aarch64")]
#[path = "../../rust/sys/arm64.rs"]
pub(crate) mod arm64;
#[path = "../../rust/sys/atomic.rs"]
pub(crate) mod atomic;
#[path = "../../rust/sys/bindings.rs"]
pub(crate) mod bindings;
#[path = "../../rust/sys/compat.rs"]
pub(crate) mod compat;
#[path = "../../rust/sys/memory.rs"]
pub(crate) mod memory;
#[path = "../../rust/sys/platform.rs"]
pub(crate) mod platform;
