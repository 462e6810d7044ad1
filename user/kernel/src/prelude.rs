// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The prelude: items that `use kernel::prelude::*` imports.

pub use crate::error::{Error, Result, code::*};
pub use core::format_args as fmt;
