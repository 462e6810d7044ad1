// SPDX-License-Identifier: GPL-2.0

//! lt_sample_rust: uses latency_tracker from a Rust module, to track how long a function takes.
//!
//! The function is [`Sample::work`], which this module calls when it is loaded. The function starts
//! an event, whose key is the number of the call, and ends it. A call that takes longer than 10 ms
//! is reported. [`Sample::work_held`] starts a second event, with its own timeout, and ends it by
//! reference.
//!
//! ```text
//!   insmod latency_tracker.ko
//!   insmod lt_sample_rust.ko ms=20
//!   dmesg; cat /proc/latency_tracker/sample_rust/stats
//! ```

use kernel::{
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
    time::{delay::fsleep, Delta},
};
use latency_tracker::{Late, Options, Reason, Report, Tracker, SHOW_KEYS, UNIQUE};

#[path = "../../include/latency_tracker.rs"]
mod latency_tracker;

module! {
    type: Sample,
    name: "lt_sample_rust",
    authors: ["The latency-tracker developers"],
    description: "How to use latency_tracker from a Rust module",
    license: "GPL",
    params: {
        ms: i64 {
            default: 20,
            description: "How long the function takes, in milliseconds",
        },
    },
}

const NSEC_PER_MSEC: u64 = 1_000_000;

/// Receives the reports; only counts them, since it may run in any context.
struct Reports;

/// Number of reports for each reason, and the sum of the milliseconds in the events' data.
static COUNTS: [Atomic<u64>; 3] = [const { Atomic::new(0) }; 3];
static SUM: Atomic<u64> = Atomic::new(0);

impl Late<1> for Reports {
    fn late(report: &Report<'_, 1>) {
        let which = match report.reason {
            Reason::Threshold => 0,
            Reason::Timeout => 1,
            Reason::Late => 2,
        };
        // Relaxed: each number is read by itself, and orders nothing else.
        COUNTS[which].add(1, Relaxed);
        SUM.add(report.data[0], Relaxed);
    }
}

struct Sample {
    tracker: Tracker<1, Reports>,
}

impl Sample {
    /// The tracked function.
    #[inline(never)]
    fn work(&self, number: u64, ms: u64) -> Result {
        let key = number.to_ne_bytes();
        self.tracker.event_in(&key, &[ms])?;
        fsleep(Delta::from_millis(ms as i64));
        // Nothing is freed at the end, so it does not matter whether a callback is running.
        self.tracker.event_out(&key, 0).map(|_| ())
    }

    /// Tracks a second event, with a timeout of half its length, and ends it by reference.
    #[inline(never)]
    fn work_held(&self, number: u64, ms: u64) -> Result {
        let key = number.to_ne_bytes();
        let timeout = ms * NSEC_PER_MSEC / 2;
        let event = self.tracker.event_in_get(&key, &[ms], 0, timeout)?;
        fsleep(Delta::from_millis(ms as i64));
        // A lookup by key finds the same event.
        let found = self.tracker.lookup(&key)?;
        assert_same(found.start() == event.start() && found.data() == [ms])?;
        event.end(1)?;
        assert_same(!found.is_live())
    }
}

fn assert_same(is: bool) -> Result {
    is.then_some(()).ok_or(EIO)
}

impl kernel::Module for Sample {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let options = Options {
            key_size: 8,
            capacity: 64,
            threshold: 10 * NSEC_PER_MSEC,
            min_event_timeout: 5 * NSEC_PER_MSEC,
            flags: UNIQUE | SHOW_KEYS,
            ..Options::default()
        };
        let sample = Self {
            tracker: Tracker::new(module, c"sample_rust", &options)?,
        };
        #[allow(
            clippy::clone_on_copy,
            reason = "a reference in Linux 7.2, a copy in 7.3"
        )]
        let ms = u64::try_from(module_parameters::ms.value().clone())?;
        sample.work(1, ms)?;
        sample.work_held(2, ms)?;
        let [threshold, timeout, late] = [0, 1, 2].map(|which: usize| COUNTS[which].load(Relaxed));
        pr_info!(
            "threshold={threshold} timeout={timeout} late={late} ms={}\n",
            SUM.load(Relaxed)
        );
        Ok(sample)
    }
}
