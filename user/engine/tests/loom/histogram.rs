// SPDX-License-Identifier: GPL-2.0

//! A histogram that fits on the small stacks of loom's threads. It is not modelled.

pub(crate) const BUCKETS: usize = 1;

pub(crate) const fn bucket_of(_: u64) -> usize {
    0
}

pub(crate) fn bounds(_: usize) -> (u64, u64) {
    (0, u64::MAX)
}
