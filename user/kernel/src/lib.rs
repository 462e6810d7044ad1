// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A stand-in for the kernel's `kernel` crate, with only the items that the engine's files import.
//!
//! The engine (rust/freelist.rs, rust/rcu_ht.rs, ...) is compiled for user space against this crate, with each file
//! unchanged, to be tested natively and by the loom model checker. Names and signatures are the kernel's, so code that
//! compiles here compiles there; code that the kernel refuses, such as a load with `Release`, is refused here, too.
//!
//! - [`sync::atomic`]: wraps `core`'s atomics, or loom's with `--cfg loom`, and describes how the
//!   kernel's orderings are mapped.
//! - `hook` (debug builds without loom): runs a closure in the middle of operations, as an
//!   interrupt does.
//! - `model` (with `--cfg loom`): weakens chosen operations, to see whether a model notices.

pub mod error;
pub mod fmt;
#[cfg(all(debug_assertions, not(loom)))]
pub mod hook;
#[cfg(loom)]
pub mod model;
pub mod prelude;
pub mod sync;
