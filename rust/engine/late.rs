// SPDX-License-Identifier: GPL-2.0

//! An event to report, with the reason.

/// An event to report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late<const K: usize, const D: usize> {
    /// Why the event is reported.
    pub(crate) why: Why,
    /// When the operation began, in nanoseconds.
    pub(crate) start: u64,
    /// Duration in nanoseconds; the time so far if the operation has not ended.
    pub(crate) delay: u64,
    /// Whether the operation was found in flight: `start` is when it was first seen, and its
    /// duration is at least `delay`.
    pub(crate) found: bool,
    /// The timeout, for [`Why::Timeout`], or else the threshold, in nanoseconds.
    pub(crate) threshold: u64,
    pub(crate) key: [u64; K],
    pub(crate) data: [u64; D],
}

impl<const K: usize, const D: usize> Late<K, D> {
    /// Returns a copy with another key.
    pub(crate) fn with_key<const L: usize>(&self, key: [u64; L]) -> Late<L, D> {
        Late {
            why: self.why,
            start: self.start,
            delay: self.delay,
            found: self.found,
            threshold: self.threshold,
            key,
            data: self.data,
        }
    }
}

/// Why an event is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// The operation took longer than the threshold.
    Threshold,
    /// The operation did not end within the timeout.
    Timeout,
    /// The operation ended after its timeout.
    LateEnd,
}
