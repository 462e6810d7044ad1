// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Formatting, with the interface of `rust/kernel/fmt.rs`.
//!
//! The kernel's `Display` is a separate trait, so that foreign types can implement it; here it is `core`'s.

pub use core::fmt::{Arguments, Debug, Display, Error, Formatter, Result, Write};
