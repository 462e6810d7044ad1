// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The counters of a bounded number of instances. The instances with the most alerts are named, and stay named until
//! they are removed; all others are summed up as `other`. Apart from the gauges, no value of `other` ever decreases:
//! the counts of an instance stay in `other` when the instance gets named or is removed.

use std::collections::HashMap;

use lt_proc::{Histogram, Instance, ProcError, ProcRoot, Stats};

/// The counters without a metric of their own name: `sum_us` is the sum of the histogram, from which `mean` follows;
/// `max` is `longest_delay`; `min` is not exported.
const APART: [&str; 4] = ["min", "mean", "max", "sum_us"];

/// Name and tracker of the sum of the unnamed instances.
const OTHER: &str = "other";

/// Bounds of the buckets of delays: 2^n ns, for these n, from a microsecond to more than a minute.
/// The kernel's buckets have boundaries there, too. As in the kernel, a delay that equals a bound is
/// in the bucket above it.
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=36;

/// Returns the upper bounds of the buckets in seconds, except for the last one, which has none.
pub(crate) fn bounds() -> impl Iterator<Item = f64> {
    BOUNDS.map(|n| seconds(1 << n))
}

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the bucket of a delay in ns.
pub(crate) fn bucket_of(delay: u64) -> usize {
    BOUNDS.take_while(|n| 1 << n <= delay).count()
}

/// All delays of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Delays {
    /// Number of delays in each bucket; the counts are not cumulative.
    pub(crate) counts: Vec<u64>,
    pub(crate) sum_us: u64,
}

/// The counters of one instance.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) name: String,
    pub(crate) tracker: String,
    /// When the instance was created: see [`ProcRoot::of_one`].
    created: Option<u64>,
    /// Parameters; `None` for `other`, since they cannot be summed up.
    pub(crate) enabled: Option<u64>,
    pub(crate) threshold: Option<u64>,
    /// The longest delay, ns; for `other`, the longest delay of any unnamed instance so far.
    pub(crate) longest: Option<u64>,
    /// The counters, in the order of the kernel.
    pub(crate) values: Vec<(String, u64)>,
    /// `None` if an older module lacks the sum of all delays: a sum computed from the rounded mean
    /// would sometimes decrease.
    pub(crate) delays: Option<Delays>,
}

impl Reading {
    fn new(instance: Instance, created: Option<u64>, stats: &Stats, delays: &Histogram) -> Self {
        let number = |param: &str| {
            let field = instance.params.0.iter().find(|f| f.key == param)?;
            field.value.number()
        };
        let values = stats.iter().filter(|(key, _)| !APART.contains(key));
        Self {
            created,
            enabled: number("enabled"),
            threshold: number("threshold"),
            longest: stats.get("max"),
            values: values.map(|(key, n)| (key.to_string(), n)).collect(),
            delays: stats.get("sum_us").map(|sum_us| Delays {
                counts: counts(delays),
                sum_us,
            }),
            name: instance.name,
            tracker: instance.tracker,
        }
    }

    /// Creates `other`, without any counts.
    fn other() -> Self {
        Self {
            name: OTHER.to_string(),
            tracker: OTHER.to_string(),
            created: None,
            enabled: None,
            threshold: None,
            longest: None,
            values: Vec::new(),
            delays: None,
        }
    }

    pub(crate) fn labels(&self) -> [(&str, &str); 2] {
        [("name", &self.name), ("tracker", &self.tracker)]
    }

    pub(crate) fn value(&self, key: &str) -> Option<u64> {
        self.values.iter().find(|(k, _)| k == key).map(|(_, n)| *n)
    }

    /// Adds what an instance has counted since the reading `before`.
    fn add(&mut self, now: &Self, before: Option<&Self>) {
        // A new instance of the same name counts from 0.
        let before = before.filter(|before| before.created == now.created);
        let since = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        self.longest = self.longest.max(now.longest);
        for (key, n) in &now.values {
            let more = match Stats::is_level(key) {
                true => *n,
                false => since(*n, before.and_then(|before| before.value(key))),
            };
            match self.values.iter_mut().find(|(k, _)| k == key) {
                Some((_, sum)) => *sum = sum.wrapping_add(more),
                None => self.values.push((key.clone(), more)),
            }
        }
        if let Some(delays) = &now.delays {
            let before = before.and_then(|before| before.delays.as_ref());
            let sum = self.delays.get_or_insert_default();
            sum.counts.resize(delays.counts.len(), 0);
            for (i, (sum, n)) in sum.counts.iter_mut().zip(&delays.counts).enumerate() {
                let before = before.and_then(|before| before.counts.get(i).copied());
                *sum = sum.wrapping_add(since(*n, before));
            }
            let more = since(delays.sum_us, before.map(|before| before.sum_us));
            sum.sum_us = sum.sum_us.wrapping_add(more);
        }
    }
}

/// Returns the number of delays in each bucket, not cumulative; the last bucket has no bound.
fn counts(histogram: &Histogram) -> Vec<u64> {
    let mut counts = vec![0; BOUNDS.count() + 1];
    for bucket in &histogram.buckets {
        // All delays of one of the kernel's buckets fall into one bucket here.
        if let Some(count) = counts.get_mut(bucket_of(bucket.low)) {
            *count += bucket.count;
        }
    }
    counts
}

/// All instances.
#[derive(Debug)]
pub(crate) struct Readings {
    /// The module's version; `None` if it is not loaded.
    pub(crate) version: Option<String>,
    /// Number of instances.
    pub(crate) count: usize,
    /// The named instances, and `other`.
    pub(crate) instances: Vec<Reading>,
}

impl Readings {
    /// Reads all instances. An instance that is removed meanwhile is left out.
    fn read(root: &ProcRoot) -> Result<Self, ProcError> {
        if !root.is_loaded() {
            return Ok(Self {
                version: None,
                count: 0,
                instances: Vec::new(),
            });
        }
        let version = Some(root.version()?);
        let mut instances = Vec::new();
        for instance in root.instances()? {
            let read = || {
                // The histogram is read first: `stats` has then counted each of its delays as
                // ended.
                let histogram = root.histogram(&instance.name)?;
                Ok((root.stats(&instance.name)?, histogram))
            };
            match root.of_one(&instance.name, read) {
                Ok((created, (stats, histogram))) => {
                    instances.push(Reading::new(instance, created, &stats, &histogram));
                }
                Err(error) => {
                    let is_there = root.instance(&instance.name).is_ok();
                    if is_there {
                        return Err(error);
                    }
                }
            }
        }
        Ok(Self {
            version,
            count: instances.len(),
            instances,
        })
    }

    /// Returns the keys of all counters, in order, without duplicates.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = Vec::new();
        for reading in &self.instances {
            for (key, _) in &reading.values {
                if !keys.contains(&key.as_str()) {
                    keys.push(key);
                }
            }
        }
        keys
    }
}

/// The named instances, and the counts of all others.
#[derive(Debug)]
pub(crate) struct Top {
    most: usize,
    named: Vec<String>,
    /// The last readings of the unnamed instances.
    before: HashMap<String, Reading>,
    /// The sum of the unnamed instances; `None` until there is one.
    other: Option<Reading>,
}

impl Top {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            named: Vec::new(),
            before: HashMap::new(),
            other: None,
        }
    }

    /// Reads all instances.
    pub(crate) fn read(&mut self, root: &ProcRoot) -> Result<Readings, ProcError> {
        let mut readings = Readings::read(root)?;
        let all = std::mem::take(&mut readings.instances);
        readings.instances = self.bound(all);
        Ok(readings)
    }

    fn bound(&mut self, mut all: Vec<Reading>) -> Vec<Reading> {
        self.named
            .retain(|name| all.iter().any(|r| r.name == *name));
        let free = self.most.saturating_sub(self.named.len());
        let mut candidates: Vec<&Reading> = all.iter().collect();
        candidates.retain(|r| !self.named.contains(&r.name));
        // The sort is stable: of instances with equal counts, the first in the kernel's list is
        // named.
        candidates.sort_by_key(|r| std::cmp::Reverse(r.value("alerts")));
        let chosen = candidates.iter().take(free).map(|r| r.name.clone());
        let chosen: Vec<String> = chosen.collect();
        self.named.extend(chosen);

        let others: Vec<Reading> = all
            .extract_if(.., |r| !self.named.contains(&r.name))
            .collect();
        if !others.is_empty() || self.other.is_some() {
            let other = self.other.get_or_insert_with(Reading::other);
            // Values that can decrease are summed up again.
            other
                .values
                .iter_mut()
                .filter(|(key, _)| Stats::is_level(key))
                .for_each(|(_, n)| *n = 0);
            for now in &others {
                other.add(now, self.before.get(&now.name));
            }
            self.before = others.into_iter().map(|r| (r.name.clone(), r)).collect();
            all.push(other.clone());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &str, alerts: u64, pending: u64) -> Reading {
        created(5, name, alerts, pending)
    }

    fn created(created: u64, name: &str, alerts: u64, pending: u64) -> Reading {
        let line = format!("{name} block threshold=10 enabled=1");
        let instance = Instance::parse_all(&line).unwrap().remove(0);
        let text = format!("alerts {alerts}\npending {pending}\nmax {alerts}\nsum_us {alerts}\n");
        let histogram = Histogram::parse(&format!("896 1024 {alerts}\n")).unwrap();
        let stats = Stats::parse(&text).unwrap();
        Reading::new(instance, Some(created), &stats, &histogram)
    }

    #[track_caller]
    fn shows(readings: &[Reading], expected: &[(&str, u64, u64)]) {
        let shown = readings.iter().map(|r| {
            let delays = r.delays.as_ref().unwrap();
            assert_eq!(Some(delays.sum_us), r.value("alerts"));
            assert_eq!(Some(delays.counts[0]), r.value("alerts"));
            (
                r.name.as_str(),
                r.value("alerts").unwrap(),
                r.value("pending").unwrap(),
            )
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_delay_is_below_the_bound_of_its_bucket() {
        assert_eq!(bounds().count(), 27);
        assert_eq!(bounds().next(), Some(0.000_001_024));
        for (delay, bucket) in [(0, 0), (1023, 0), (1024, 1), (1 << 36, 27), (u64::MAX, 27)] {
            assert_eq!(bucket_of(delay), bucket, "{delay}");
        }
        // The kernel's buckets at a bound.
        let histogram = Histogram::parse("960 1024 3\n1024 1152 5\n").unwrap();
        assert_eq!(counts(&histogram)[..3], [3, 5, 0]);
        assert_eq!((bucket_of(1023), bucket_of(1024)), (0, 1));
    }

    #[test]
    fn instances_with_the_most_alerts_are_named_and_other_never_falls() {
        let mut top = Top::new(2);
        let all = || vec![reading("a", 1, 5), reading("b", 9, 6)];
        shows(&top.bound(all()), &[("a", 1, 5), ("b", 9, 6)]);
        let mut top = Top::new(2);
        let mut four = all();
        four.extend([reading("c", 3, 7), reading("d", 1, 8)]);
        shows(
            &top.bound(four.clone()),
            &[("b", 9, 6), ("c", 3, 7), ("other", 2, 13)],
        );
        // An instance that overtakes named ones does not replace them.
        four[0] = reading("a", 100, 0);
        shows(
            &top.bound(four.clone()),
            &[("b", 9, 6), ("c", 3, 7), ("other", 101, 8)],
        );
        // A free place goes to the next instance, whose alerts so far stay in `other`.
        four.remove(1);
        shows(
            &top.bound(four.clone()),
            &[("a", 100, 0), ("c", 3, 7), ("other", 101, 8)],
        );
        four[2] = reading("d", 4, 1);
        shows(
            &top.bound(four.clone()),
            &[("a", 100, 0), ("c", 3, 7), ("other", 104, 1)],
        );
        // A new instance of the same name counts from 0.
        four[2] = created(9, "d", 6, 1);
        shows(
            &top.bound(four.clone()),
            &[("a", 100, 0), ("c", 3, 7), ("other", 110, 1)],
        );
        four.pop();
        shows(
            &top.bound(four),
            &[("a", 100, 0), ("c", 3, 7), ("other", 110, 0)],
        );
    }
}
