// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `measure`: the cost of the probes themselves, measured with the processor's counters. The file
//! exists if the module was loaded with `measure=`.
//!
//! ```text
//! counter branch-misses counted cpus=4
//! probe wakeup sched_waking transition samples=1510 discarded=2
//! value cycles count=1510 min=310 mean=352 p50=351 p99=639 max=2011 sum=531520 squares=... products=...
//! value branch-misses count=1510 min=0 mean=0 p50=0 p99=2 max=9 sum=102 squares=... products=...
//! bucket 320 352 1400 12
//! ```
//!
//! A `bucket` line has the lowest number of cycles in the bucket, the lowest number above it, the number of samples,
//! and the sum of each event over these samples.

use serde::Serialize;

use crate::ParseError;

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// The cycles, and the requested events.
    pub counters: Vec<Counter>,
    /// How many times a probe was attached but not measured, for lack of memory or of room in the table.
    pub unmeasured: u64,
    /// The probes in the order in which they were attached; `empty` is first.
    pub probes: Vec<MeasuredProbe>,
}

/// A counter of the processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Name of the event, such as `branch-misses`.
    pub name: String,
    /// Number of CPUs on which it is counted.
    pub cpus: u64,
    /// Why it is not counted, if it is counted on no CPU: `absent`, `busy`, `error-22`.
    pub missing: Option<String>,
}

/// The runs of a probe that started, ended or dropped an event, or all other runs of the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MeasuredProbe {
    /// Name of the tracker, such as `wakeup`.
    pub tracker: String,
    /// The tracepoint, or the function.
    pub hook: String,
    /// `transition` or `none`.
    pub kind: String,
    /// Number of measured runs.
    pub samples: u64,
    /// Number of runs not measured, since an NMI or a machine check interrupted them.
    pub discarded: u64,
    /// Distributions by counter, in the order of the counters.
    pub values: Vec<Taken>,
    /// Buckets by cycles; empty buckets are left out.
    pub buckets: Vec<CycleBucket>,
}

/// Distribution of one counter over the runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Taken {
    /// Name of the counter, such as `branch-misses`.
    pub counter: String,
    /// Number of runs in which it counted; if 0, all values are 0.
    pub count: u64,
    /// Smallest value, exact.
    pub min: u64,
    /// Mean, rounded down.
    pub mean: u64,
    /// Median: an upper bound, at most 1/8 above the true value.
    pub p50: u64,
    /// 99th percentile: an upper bound, at most 1/8 above the true value.
    pub p99: u64,
    /// Largest value, exact.
    pub max: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Sum of the squares of all values, each limited to [`SQUARED`].
    pub squares: u64,
    /// Sum of the products of value and cycles, each limited to [`SQUARED`].
    pub products: u64,
}

/// The limit of each value in sums of squares and products.
const SQUARED: u64 = (1 << 24) - 1;

/// Runs of about equal duration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CycleBucket {
    /// The lowest number of cycles in the bucket.
    pub low: u64,
    /// The lowest number of cycles above the bucket.
    pub high: u64,
    /// Number of runs.
    pub count: u64,
    /// Sum of each counter except the cycles, in the order of the counters.
    pub sums: Vec<u64>,
}

/// An event count of the slowest runs, compared with the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outliers {
    /// Number of slowest runs.
    pub runs: u64,
    /// Mean count of the event in the slowest runs.
    pub mean: f64,
    /// Mean count of the event in the other runs.
    pub others: f64,
}

impl Measure {
    /// Parses the file.
    ///
    /// # Errors
    /// Names the line and the word.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut this = Self {
            counters: Vec::new(),
            unmeasured: 0,
            probes: Vec::new(),
        };
        for (at, line) in text.lines().enumerate() {
            this.line(line).map_err(|error| error.at_line(at + 1))?;
        }
        Ok(this)
    }

    fn line(&mut self, line: &str) -> Result<(), ParseError> {
        let mut words = line.split(' ');
        let kind = words.next().unwrap_or_default();
        let mut word = |what| words.next().ok_or_else(|| ParseError::new("", what));
        match kind {
            "counter" => {
                let name = word("a counter")?.to_string();
                let mut counter = Counter {
                    name,
                    cpus: 0,
                    missing: None,
                };
                match word("counted or missing")? {
                    "counted" => counter.cpus = number(keyed(word("cpus=")?, "cpus")?)?,
                    "missing" => counter.missing = Some(keyed(word("why=")?, "why")?.to_string()),
                    other => return Err(ParseError::new(other, "counted or missing")),
                }
                self.counters.push(counter);
            }
            "unmeasured" => self.unmeasured = number(word("a number")?)?,
            "probe" => self.probes.push(MeasuredProbe {
                tracker: word("a tracker")?.to_string(),
                hook: word("a tracepoint or a function")?.to_string(),
                kind: word("transition or none")?.to_string(),
                samples: number(keyed(word("samples=")?, "samples")?)?,
                discarded: number(keyed(word("discarded=")?, "discarded")?)?,
                values: Vec::new(),
                buckets: Vec::new(),
            }),
            "value" | "bucket" => {
                let probe = self.probes.last_mut();
                let probe = probe.ok_or_else(|| ParseError::new(kind, "a probe first"))?;
                if kind == "value" {
                    probe.values.push(Taken::parse(words)?);
                } else {
                    probe.buckets.push(CycleBucket::parse(words)?);
                }
            }
            // A line of a newer module.
            _ => {}
        }
        Ok(())
    }

    /// Returns why an event is not counted, as text to print.
    #[must_use]
    pub fn why(missing: &str) -> String {
        match missing {
            "absent" => "this machine has no such counter".to_string(),
            "busy" => "all counters of the processor are in use".to_string(),
            other => format!("the kernel refused it ({other})"),
        }
    }
}

impl Taken {
    fn parse<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Self, ParseError> {
        let counter = words.next().unwrap_or_default().to_string();
        let mut this = Self {
            counter,
            ..Self::default()
        };
        for word in words {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| ParseError::new(word, "key=value"))?;
            let field = match key {
                "count" => &mut this.count,
                "min" => &mut this.min,
                "mean" => &mut this.mean,
                "p50" => &mut this.p50,
                "p99" => &mut this.p99,
                "max" => &mut this.max,
                "sum" => &mut this.sum,
                "squares" => &mut this.squares,
                "products" => &mut this.products,
                _ => continue,
            };
            *field = number(value)?;
        }
        Ok(this)
    }
}

impl CycleBucket {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, ParseError> {
        let mut numbers = words.map(number);
        let mut next = || {
            let missing = || ParseError::new("", "low, high and count");
            numbers.next().ok_or_else(missing)?
        };
        Ok(Self {
            low: next()?,
            high: next()?,
            count: next()?,
            sums: numbers.collect::<Result<_, _>>()?,
        })
    }
}

impl MeasuredProbe {
    /// Returns the distribution of a counter.
    #[must_use]
    pub fn value(&self, counter: &str) -> Option<&Taken> {
        self.values.iter().find(|value| value.counter == counter)
    }

    /// Returns the correlation of an event with the cycles, from -1 to 1 (Pearson's coefficient).
    /// `None` if the event or the cycles do not vary or are not counted in all runs, or if a value exceeds [`SQUARED`].
    #[must_use]
    pub fn correlation(&self, event: &str) -> Option<f64> {
        let (cycles, event) = (self.values.first()?, self.value(event)?);
        if cycles.count != event.count || cycles.max.max(event.max) > SQUARED {
            return None;
        }
        let float = |value: u64| value as f64;
        let n = float(cycles.count);
        let spread = |x: &Taken| n * float(x.squares) - float(x.sum) * float(x.sum);
        let common = n * float(event.products) - float(event.sum) * float(cycles.sum);
        let both = (spread(cycles) * spread(event)).sqrt();
        (both > 0.0).then(|| (common / both).clamp(-1.0, 1.0))
    }

    /// Compares how often an event occurred in the slowest runs and in the others. The slowest runs are in the buckets
    /// above the bucket of p99. `None` if there are no such runs.
    #[must_use]
    pub fn outliers(&self, event: &str) -> Option<Outliers> {
        let nth = self
            .values
            .iter()
            .position(|value| value.counter == event)?;
        let (nth, p99) = (nth.checked_sub(1)?, self.values.first()?.p99);
        let (mut slow, mut others) = ((0, 0), (0, 0));
        for bucket in &self.buckets {
            let to = if bucket.low > p99 {
                &mut slow
            } else {
                &mut others
            };
            to.0 += bucket.count;
            to.1 += bucket.sums.get(nth)?;
        }
        let mean = |(runs, sum): (u64, u64)| sum as f64 / runs.max(1) as f64;
        (slow.0 > 0).then(|| Outliers {
            runs: slow.0,
            mean: mean(slow),
            others: mean(others),
        })
    }
}

fn keyed<'a>(word: &'a str, key: &str) -> Result<&'a str, ParseError> {
    let value = word.strip_prefix(key).and_then(|w| w.strip_prefix('='));
    value.ok_or_else(|| ParseError::new(word, format!("{key}=")))
}

fn number(word: &str) -> Result<u64, ParseError> {
    word.parse().map_err(|_| ParseError::new(word, "a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "counter cycles counted cpus=2
counter instructions missing why=absent
counter branch-misses counted cpus=2
unmeasured 0
probe wakeup sched_waking transition samples=4 discarded=1
value cycles count=4 min=100 mean=325 p50=103 p99=900 max=1000 sum=1300 squares=1030000 products=1030000
value instructions count=0
value branch-misses count=4 min=0 mean=2 p50=0 p99=8 max=8 sum=8 squares=64 products=8000
bucket 96 104 3 0 0
bucket 960 1024 1 0 8
later this that
probe wakeup sched_waking none samples=0 discarded=0
";

    #[test]
    fn the_file_is_read() {
        let measure = Measure::parse(TEXT).unwrap();
        let missing: Vec<_> = measure
            .counters
            .iter()
            .map(|c| c.missing.as_deref())
            .collect();
        assert_eq!(missing, [None, Some("absent"), None]);
        assert_eq!(measure.probes.len(), 2);
        let probe = &measure.probes[0];
        assert_eq!((probe.samples, probe.discarded), (4, 1));
        assert_eq!(probe.value("cycles").unwrap().p99, 900);
        assert_eq!(probe.buckets[1].sums, [0, 8]);
        assert!(measure.probes[1].values.is_empty());
    }

    #[test]
    fn events_of_slow_runs_are_found() {
        let measure = Measure::parse(TEXT).unwrap();
        let probe = &measure.probes[0];
        let correlation = probe.correlation("branch-misses").unwrap();
        assert!(correlation > 0.999, "{correlation}");
        let slow = probe.outliers("branch-misses").unwrap();
        assert_eq!(slow.runs, 1);
        assert!(
            (slow.mean - 8.0).abs() < 1e-9 && slow.others.abs() < 1e-9,
            "{slow:?}"
        );
        assert_eq!(probe.correlation("instructions"), None);
        assert_eq!(probe.correlation("cycles").map(f64::round), Some(1.0));
        assert_eq!(probe.outliers("cycles"), None);
        assert_eq!(measure.probes[1].outliers("branch-misses"), None);
    }

    #[test]
    fn the_word_at_fault_is_named() {
        for (text, line, word) in [
            ("counter cycles", 1, ""),
            ("counter cycles lost", 1, "lost"),
            ("unmeasured x", 1, "x"),
            ("unmeasured 0\nvalue cycles count=1", 2, "value"),
            ("probe a b none samples=-1 discarded=0", 1, "-1"),
            ("probe a b none samples=1 lost=0", 1, "lost=0"),
            ("probe a b none samples=1 discarded=0\nbucket 1 2", 2, ""),
            (
                "probe a b none samples=1 discarded=0\nvalue cycles count",
                2,
                "count",
            ),
        ] {
            let error = Measure::parse(text).unwrap_err();
            assert_eq!((error.line, error.word.as_str()), (line, word), "{text:?}");
        }
    }
}
