// SPDX-License-Identifier: GPL-2.0

//! The engine of the kernel module, compiled for user space: the same files, tested natively.
//!
//! ```text
//!    rust/engine.rs: freelist, rcu_ht, event, ...                      the kernel's, unchanged
//!        |                    |                    |
//!    kernel (user/kernel)   sys::memory          Platform          stand-ins for the machine
//!                                              Host (host.rs)
//! ```
//!
//! - `src/tests/`: unit tests, proptests, and interrupts at every atomic operation.
//! - `tests/stress.rs`: real threads, millions of operations.
//! - `tests/loom.rs`: models, which loom runs in all or many interleavings, with stale reads
//!   (tests/host/loom.sh).

#![deny(unsafe_op_in_unsafe_fn)]
#![expect(dead_code, reason = "the module uses more of its engine")]

include!("engine.rs");

#[cfg(not(loom))]
mod host;
#[cfg(all(test, not(loom)))]
#[path = "../../../rust/record.rs"]
mod record;
mod sys;

#[cfg(all(test, not(loom)))]
mod tests;
