// SPDX-License-Identifier: GPL-2.0

//! Work that programs mark: with a cookie when it begins, and with the same cookie when it is done.
//!
//! ```text
//!   write(2) to /proc ---> Cookie ---> Work: an instance that waits for it
//! ```
//!
//! Only the cookie identifies the work, which may begin in one process and be done in another.

use kernel::prelude::*;

/// Maximum length of a cookie, in bytes.
pub(crate) const COOKIE_MAX: usize = 64;

/// The identity of a piece of work: 1 to [`COOKIE_MAX`] arbitrary bytes.
#[derive(Clone, Copy)]
pub(crate) struct Cookie<'a>(&'a [u8]);

impl<'a> Cookie<'a> {
    /// Creates a cookie. Fails with `EINVAL` if it is empty or too long.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        if bytes.is_empty() || bytes.len() > COOKIE_MAX {
            return Err(EINVAL);
        }
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// An instance that waits for work. The task that writes a mark calls these functions.
pub(crate) trait Work: Send + Sync {
    /// Marks the start of work. `ENODEV` if the instance is off, `ENOSPC` if there is no room for
    /// more work.
    fn begin(&self, cookie: Cookie<'_>) -> Result;

    /// Marks work as done; the cookie may be unknown. `ENODEV` if the instance is off.
    fn done(&self, cookie: Cookie<'_>) -> Result;
}
