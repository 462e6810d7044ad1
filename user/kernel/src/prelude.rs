// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What `use kernel::prelude::*` brings into scope.

pub use crate::error::{Error, Result, code::*};
pub use core::format_args as fmt;
