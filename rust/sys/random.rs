// SPDX-License-Identifier: GPL-2.0

//! Secrets for hash tables.

use crate::hash::Seed;

/// Draws a seed. Does not sleep.
pub(crate) fn seed() -> Seed {
    // SAFETY: No requirements.
    let (a, b) = unsafe {
        (
            kernel::bindings::get_random_u64(),
            kernel::bindings::get_random_u64(),
        )
    };
    Seed::new(a, b)
}
