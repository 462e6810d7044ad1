// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/stats`: `key value` lines, the counters of an instance.
//!
//! They add up (Documentation/design): attempts = started + full + filtered + off + crowded, and
//! started = ended + pending + replaced + cleared + gone. [`Stats::imbalance`] returns the sums
//! that do not hold. It is exact only if no event occurs while the counters are read.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::ParseError;

/// The meaning of the counters that all trackers have. A tracker's own counters are on its page.
const COUNTERS: [(&str, &str); 33] = [
    ("attempts", "starts seen"),
    ("started", "of attempts: tracked"),
    ("full", "of attempts: lost, the pool was full"),
    ("filtered", "of attempts: refused by a filter"),
    ("off", "of attempts: while not enabled"),
    ("ended", "of started: the end was seen"),
    ("pending", "of started: in flight now"),
    ("replaced", "dropped: their key started again"),
    ("cleared", "dropped when the instance was disabled"),
    ("gone", "dropped: their object is gone without an end"),
    ("unmatched", "ends of operations that are not tracked"),
    ("negative", "of ended: the end was before the start"),
    ("timed_out", "of started: had not ended after the timeout"),
    ("late", "of ended: had timed out"),
    ("alerts", "alerts raised"),
    ("alerts_lost", "of alerts: found no place in the ring"),
    ("wakes", "how often sleeping readers were woken"),
    (
        "wakes_suppressed",
        "alerts raised while a wakeup was pending",
    ),
    ("min", "the shortest delay"),
    ("mean", "the mean delay"),
    ("max", "the longest delay"),
    ("capacity", "operations that the pool can hold now"),
    ("max_capacity", "the limit of its growth"),
    ("free", "of capacity: free, approximately"),
    ("grown", "how often the pool has grown"),
    ("grow_failed", "how often there was no memory for growth"),
    (
        "alerts_suppressed",
        "alerts not raised: over max_alerts in that second",
    ),
    ("overruns", "alerts overwritten before they were read"),
    ("readers", "alerts suppressed: the task reads alerts"),
    (
        "crowded",
        "of attempts: lost, too many of their key were live",
    ),
    (
        "before_start",
        "of started: in flight when the instance was enabled",
    ),
    (
        "before_start_ended",
        "of before_start: ended; not in the histogram, min, mean and max",
    ),
    ("sum_us", "the sum of the delays, in microseconds"),
];

/// The values that are not counters, apart from the extremes and the mean of the delays.
const LEVELS: [&str; 6] = [
    "pending",
    "capacity",
    "max_capacity",
    "free",
    "work_pending",
    "work_free",
];

/// Counters in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats(Vec<(String, u64)>);

impl Stats {
    /// Parses the file.
    ///
    /// # Errors
    /// Names the line and the word that is not `key number`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut stats = Vec::new();
        for (i, line) in text
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty())
        {
            let bad = |word: &str, what: &str| Err(ParseError::new(word, what).at_line(i + 1));
            let mut words = line.split_whitespace();
            let (Some(key), Some(value), None) = (words.next(), words.next(), words.next()) else {
                return bad(line, "key value");
            };
            let Ok(value) = value.parse() else {
                return bad(value, "a number from 0 to 2^64-1");
            };
            stats.push((key.to_string(), value));
        }
        Ok(Self(stats))
    }

    /// Returns the counter named `key`; an older module may lack it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| *v)
    }

    /// Returns the counter named `key`; 0 if the module lacks it.
    #[must_use]
    pub fn count(&self, key: &str) -> u64 {
        self.get(key).unwrap_or(0)
    }

    /// Returns the meaning of a common counter; a tracker's own counters are on its page.
    #[must_use]
    pub fn meaning(key: &str) -> Option<&'static str> {
        COUNTERS
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, text)| *text)
    }

    /// Whether the value named `key` is a current level, which can decrease, and not a counter. False for the extremes
    /// and the mean of the delays.
    #[must_use]
    pub fn is_level(key: &str) -> bool {
        LEVELS.contains(&key)
    }

    /// Returns how many operations could not be tracked, each number with the reason.
    #[must_use]
    pub fn losses(&self) -> [(u64, &'static str); 4] {
        [
            ("full", "pool full"),
            ("crowded", "key crowded"),
            ("missed", "missed by fprobe"),
            ("unserved", "too many softirqs"),
        ]
        .map(|(key, reason)| (self.count(key), reason))
    }

    /// Returns the sum of [`Stats::losses`].
    #[must_use]
    pub fn lost(&self) -> u64 {
        let counts = self.losses().map(|(count, _)| count);
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns all counters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(k, v)| (k.as_str(), *v))
    }

    /// Returns the sums that do not hold, as `left side, right side, rule`.
    #[must_use]
    pub fn imbalance(&self) -> Vec<(u64, u64, &'static str)> {
        let sum = |keys: &[&str]| {
            keys.iter()
                .fold(0u64, |sum, key| sum.wrapping_add(self.count(key)))
        };
        [
            (
                self.count("attempts"),
                sum(&["started", "full", "filtered", "off", "crowded"]),
                "attempts = started + full + filtered + off + crowded",
            ),
            (
                self.count("started"),
                sum(&["ended", "pending", "replaced", "cleared", "gone"]),
                "started = ended + pending + replaced + cleared + gone",
            ),
        ]
        .into_iter()
        .filter(|(left, right, _)| left != right)
        .collect()
    }
}

impl Serialize for Stats {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_unknown_ones_kept() {
        let stats =
            Stats::parse("attempts 10\nstarted 10\nended 9\npending 1\nnew_one 7\n").unwrap();
        assert_eq!(stats.count("new_one"), 7);
        assert_eq!(stats.get("full"), None);
        assert!(stats.imbalance().is_empty());
        assert_eq!(stats.iter().last(), Some(("new_one", 7)));
    }

    #[test]
    fn what_is_not_a_counter_in_the_abi_page_is_a_level() {
        let page = include_str!("../../../Documentation/ABI/testing/procfs-latency_tracker");
        let marked = page
            .lines()
            .filter(|line| line.ends_with("(not a counter)"));
        let marked: Vec<_> = marked
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(marked, ["pending", "work_pending", "work_free"]);
        assert!(marked.into_iter().all(Stats::is_level));
        assert!(!Stats::is_level("work_done"));
    }

    #[test]
    fn losses_for_all_reasons_are_added_up() {
        let lost = |text| Stats::parse(text).unwrap().lost();
        assert_eq!(lost("attempts 9\nfull 2\nfiltered 3\n"), 2);
        assert_eq!(lost("attempts 9\nfull 2\ncrowded 4\n"), 6);
        assert_eq!(lost("attempts 9\nfull 2\nmissed 8\nunserved 16\n"), 26);
    }

    #[test]
    fn a_lost_event_breaks_the_sum() {
        let stats = Stats::parse("attempts 10\nstarted 10\nended 9\npending 0\n").unwrap();
        assert_eq!(stats.imbalance().len(), 1);
        assert_eq!(stats.imbalance()[0].0, 10);
    }

    #[test]
    fn the_line_and_word_at_fault_are_named() {
        let err = Stats::parse("a 1\nb -2\n").unwrap_err();
        assert_eq!((err.line, err.word.as_str()), (2, "-2"));
        assert_eq!(Stats::parse("a 1 2").unwrap_err().word, "a 1 2");
    }
}
