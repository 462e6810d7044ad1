// SPDX-License-Identifier: GPL-2.0

//! Secrets for hash tables.

/// Returns two random words. Does not sleep.
pub(crate) fn words() -> [u64; 2] {
    // SAFETY: No requirements.
    core::array::from_fn(|_| unsafe { kernel::bindings::get_random_u64() })
}
