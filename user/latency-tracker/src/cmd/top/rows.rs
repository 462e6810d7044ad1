// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What happened in an interval: the difference of two readings of an instance.
//!
//! Nothing is reset, so other readers of the counters are not disturbed. An instance that was not in the previous
//! reading started within the interval: its counters are the difference. In the first reading, the counters cover
//! the time since the start of the instance.

use std::time::Duration;

use lt_proc::{Histogram, Pending, Stats};

use super::read::{OneReading, Reading};

/// Counters of losses: operations that were not tracked, delays that were negative, alerts that were lost, suppressed
/// or overwritten, and failures to enlarge the pool.
const LOSSES: [&str; 10] = [
    "full",
    "crowded",
    "missed",
    "unserved",
    "work_full",
    "negative",
    "alerts_lost",
    "alerts_suppressed",
    "overruns",
    "grow_failed",
];

/// An instance in an interval.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) tracker: String,
    /// The threshold, ns.
    pub(super) threshold: Option<u64>,
    /// The length of the interval; `None`: since the start of the instance.
    pub(super) interval: Option<Duration>,
    /// Operations that ended in the interval.
    pub(super) ended: u64,
    /// The delays of the operations that ended in the interval.
    pub(super) delays: Histogram,
    /// The longest of these delays, ns; an upper bound unless it is the longest since the start.
    pub(super) max: Option<u64>,
    /// Alerts raised in the interval.
    pub(super) new_alerts: u64,
    /// The oldest operations in flight, the oldest first.
    pub(super) oldest: Vec<Pending>,
    /// Whether `oldest` is from an earlier reading.
    pub(super) is_old: bool,
    /// The number of a cgroup in the filter, if no cgroup has that number.
    pub(super) missing_cgroup: Option<u64>,
    /// All counters, since the start of the instance.
    pub(super) stats: Stats,
}

impl Row {
    fn new(now: &OneReading, before: Option<&OneReading>, interval: Option<Duration>) -> Self {
        let count = |key: &str| {
            let earlier = before.map_or(0, |before| before.stats.count(key));
            now.stats.count(key).saturating_sub(earlier)
        };
        let delays = match before {
            Some(before) => now.delays.since(&before.delays),
            None => now.delays.clone(),
        };
        // The longest delay since the start limits the delays of any interval.
        let longest = match now.stats.count("max") {
            0 => u64::MAX,
            max => max,
        };
        let max = delays.buckets.last();
        Self {
            name: now.instance.name.clone(),
            tracker: now.instance.tracker.clone(),
            threshold: now.instance.params.number("threshold"),
            interval: before.map_or(interval, |before| {
                Some(now.at.saturating_duration_since(before.at))
            }),
            ended: count("ended"),
            max: max.map(|bucket| (bucket.high - 1).min(longest)),
            delays,
            new_alerts: count("alerts"),
            oldest: now.oldest.clone(),
            is_old: now.is_old,
            missing_cgroup: now.missing_cgroup,
            stats: now.stats.clone(),
        }
    }

    /// Operations that ended, per second; `None` if the time is not known.
    pub(super) fn rate(&self) -> Option<f64> {
        let seconds = self.interval?.as_secs_f64();
        (seconds > 0.0).then(|| self.ended as f64 / seconds)
    }

    /// A quantile of the delays, ns: an upper bound; `None` if no operation has ended.
    pub(super) fn quantile(&self, ppm: u64) -> Option<u64> {
        Some(self.delays.quantile(ppm)?.min(self.max?))
    }

    /// The counters of losses that are not 0, since the start of the instance.
    pub(super) fn lost(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = LOSSES.iter().map(|key| (*key, self.stats.count(key)));
        counts.filter(|(_, count)| *count > 0)
    }

    /// The age of the oldest operation in flight, ns.
    pub(super) fn age(&self) -> Option<u64> {
        self.oldest.first().map(Pending::age)
    }
}

/// Returns a row for each instance of a reading.
pub(super) fn rows(now: &Reading, before: Option<&Reading>) -> Vec<Row> {
    let interval = before.map(|before| Duration::from_nanos(now.time.saturating_sub(before.time)));
    let row = |one: &OneReading| {
        let is_it =
            |b: &&OneReading| b.instance.name == one.instance.name && b.created == one.created;
        let earlier = before.and_then(|before| before.all.iter().find(is_it));
        Row::new(one, earlier, interval)
    };
    now.all.iter().map(row).collect()
}
