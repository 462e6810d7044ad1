// SPDX-License-Identifier: GPL-2.0

//! Work that programs mark: a cookie when it begins, and the same one when it is done.
//!
//! ```text
//!   write(2) to /proc ---> Cookie ---> Work: an instance that waits for it
//! ```
//!
//! Only the cookie identifies a work: it may begin in one process, and be done in another one.

use kernel::prelude::*;

/// The longest cookie, in bytes.
pub(crate) const COOKIE_MAX: usize = 64;

/// The identity of a work: 1 to [`COOKIE_MAX`] bytes of any kind.
#[derive(Clone, Copy)]
pub(crate) struct Cookie<'a>(&'a [u8]);

impl<'a> Cookie<'a> {
    /// `EINVAL` if it is empty or too long.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        if bytes.is_empty() || bytes.len() > COOKIE_MAX {
            return Err(EINVAL);
        }
        Ok(Self(bytes))
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// An instance that waits for work. In the task that does it.
pub(crate) trait Work: Send + Sync {
    /// Work begins. `ENODEV` if the instance is off, `ENOSPC` if there is no room for more work.
    fn begin(&self, cookie: Cookie<'_>) -> Result;

    /// Work is done, perhaps one that is not known. `ENODEV` if the instance is off.
    fn done(&self, cookie: Cookie<'_>) -> Result;
}
