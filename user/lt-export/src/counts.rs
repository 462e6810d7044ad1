// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What became of the messages that were sent to a collector.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Counters, gauges, histograms.
    Metrics,
    /// Alerts.
    Logs,
}

impl Signal {
    pub(crate) const ALL: [Self; 2] = [Self::Metrics, Self::Logs];

    /// The word in paths and labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

/// What became of data points and alerts.
#[derive(Debug, Default)]
pub struct Counts {
    sent: [AtomicU64; 2],
    dropped: [AtomicU64; 2],
}

/// Name, help and value of a counter.
pub(crate) type Counted<'a> = (&'static str, &'static str, Box<dyn Fn(Signal) -> u64 + 'a>);

impl Counts {
    // Relaxed in all of them: each number is shown by itself.

    pub(crate) fn metrics(&self) -> [Counted<'_>; 2] {
        [
            (
                "export_sent",
                "Data points and alerts that the collector has accepted",
                Box::new(|signal| self.sent[signal as usize].load(Ordering::Relaxed)),
            ),
            (
                "export_dropped",
                "Data points and alerts that were refused, missed, or found no room in the queue",
                Box::new(|signal| self.dropped(signal)),
            ),
        ]
    }

    /// How many were dropped.
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
