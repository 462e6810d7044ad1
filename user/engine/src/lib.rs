// SPDX-License-Identifier: GPL-2.0

//! The engine of the kernel module, compiled for user space: the very same files, tested natively.
//!
//! ```text
//!    rust/engine.rs: freelist, rcu_ht, event, ...                      the kernel's, unchanged
//!        |                    |                    |
//!    kernel (user/kernel)   sys::memory          Platform          stand-ins for the machine
//!                                              Host (host.rs)
//! ```
//!
//! - `src/tests/`: unit tests and proptests of each file, and interrupts at every atomic
//!   operation.
//! - `tests/stress.rs`: real threads, millions of operations.
//! - `tests/loom.rs`: models whose interleavings and stale reads loom tries; run by
//!   tests/host/loom.sh.

#![deny(unsafe_op_in_unsafe_fn)]
// What the module uses, not every test program does.
#![allow(dead_code)]

include!("engine.rs");

#[cfg(not(loom))]
mod host;
#[cfg(all(test, not(loom)))]
#[path = "../../../rust/record.rs"]
mod record;
mod sys;

#[cfg(all(test, not(loom)))]
mod tests;
