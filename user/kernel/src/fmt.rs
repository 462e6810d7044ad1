// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Formatting, as `rust/kernel/fmt.rs` offers it.
//!
//! The kernel's `Display` is a trait of its own, so that foreign types can have one; `core`'s does
//! here.

pub use core::fmt::{Arguments, Debug, Display, Error, Formatter, Result, Write};
