// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Delivery counters of the messages to a collector.

use std::sync::atomic::{AtomicU64, Ordering};

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Counters, gauges, histograms.
    Metrics,
    /// Alerts.
    Logs,
}

impl Signal {
    pub(crate) const ALL: [Self; 2] = [Self::Metrics, Self::Logs];

    /// Returns its name in paths and labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

/// Delivery counters of data points and alerts.
#[derive(Debug, Default)]
pub struct Counts {
    sent: [AtomicU64; 2],
    dropped: [AtomicU64; 2],
}

/// Name, help and value of a counter.
pub(crate) type Counted<'a> = (&'static str, &'static str, Box<dyn Fn(Signal) -> u64 + 'a>);

impl Counts {
    // All accesses are relaxed: no counter is compared with another.

    pub(crate) fn metrics(&self) -> [Counted<'_>; 2] {
        [
            (
                "export_sent",
                "Data points and alerts that the collector has accepted",
                Box::new(|signal| self.sent[signal as usize].load(Ordering::Relaxed)),
            ),
            (
                "export_dropped",
                "Data points and alerts that were refused, missed, or dropped from a full queue",
                Box::new(|signal| self.dropped(signal)),
            ),
        ]
    }

    /// Returns the number of dropped data points (`Metrics`) or alerts (`Logs`).
    #[must_use]
    pub fn dropped(&self, signal: Signal) -> u64 {
        self.dropped[signal as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn add_sent(&self, signal: Signal, n: u64) {
        self.sent[signal as usize].fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn add_dropped(&self, signal: Signal, n: u64) {
        self.dropped[signal as usize].fetch_add(n, Ordering::Relaxed);
    }
}
