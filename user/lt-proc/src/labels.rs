// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/labels` of an instance with `by=FIELD`: the delays of each value of that field.
//!
//! ```text
//! by=comm labels=2 max_labels=16 full=0 memory=149504
//! label comm="fio" count=3 sum=330 min=90 max=140 buckets=88-96:1,96-104:1,136-144:1
//! label comm="dd" count=1 sum=70 min=70 max=70 buckets=64-72:1
//! other count=0 sum=0 min=0 max=0 buckets=
//! ```
//!
//! Each delay is counted in one line; the lines add up to `NAME/histogram`. Values that differ in the kernel but print
//! alike, such as states of tasks, are one label here.

use serde::Serialize;

use crate::alert::{STACK, frames};
use crate::{Bucket, Fields, Histogram, ParseError};

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Labels {
    /// The field by which delays are counted.
    pub by: String,
    /// Number of values that can have counters of their own.
    pub max_labels: u64,
    /// Whether all labels are taken: further values are counted in `other`.
    pub full: bool,
    /// The values, in the order of their first delays.
    pub labels: Vec<Label>,
    /// All other delays.
    pub other: Delays,
}

/// A value, and its delays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The value, as fields of an alert.
    pub label: Fields,
    /// The delays.
    #[serde(flatten)]
    pub delays: Delays,
}

/// A set of delays, in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// Number of delays.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The smallest; 0 if there are no delays, or it is not known.
    pub min: u64,
    /// The largest; 0 if there are no delays, or it is not known.
    pub max: u64,
    /// Their histogram.
    #[serde(flatten)]
    pub histogram: Histogram,
}

impl Labels {
    /// Parses the file.
    ///
    /// # Errors
    /// Names the line and the word at fault, or what is missing.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut lines = text.lines().enumerate();
        let head = lines.next().map_or("", |(_, line)| line);
        let fields = Fields::parse(head).map_err(|e| e.at_line(1))?;
        let lacks = |name: &str| ParseError::new(head, format!("{name}=NUMBER")).at_line(1);
        let number = |name: &str| fields.number(name).ok_or_else(|| lacks(name));
        let by = fields.get("by").ok_or_else(|| lacks("by"))?;
        let mut this = Self {
            by: by.text().into_owned(),
            max_labels: number("max_labels")?,
            full: number("full")? != 0,
            labels: Vec::new(),
            other: Delays::default(),
        };
        for (at, line) in lines {
            this.add(line).map_err(|error| error.at_line(at + 1))?;
        }
        Ok(this)
    }

    fn add(&mut self, line: &str) -> Result<(), ParseError> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut label = Fields::parse(rest)?;
        let count = label.0.iter().position(|field| field.key == "count");
        let counts = Fields(label.0.split_off(count.unwrap_or(label.0.len())));
        let delays = Delays::of(&counts, line)?;
        match kind {
            "label" => match self.labels.iter_mut().find(|known| known.label == label) {
                Some(known) => known.delays = known.delays.and(&delays),
                None => self.labels.push(Label { label, delays }),
            },
            "other" => self.other = delays,
            _ => return Err(ParseError::new(kind, "label or other")),
        }
        Ok(())
    }

    /// Returns the delays since `earlier` was read, without their extremes.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let label = |now: &Label| {
            let same = earlier.labels.iter().find(|then| then.label == now.label);
            let delays = match same {
                Some(then) => now.delays.since(&then.delays),
                None => now.delays.since(&Delays::default()),
            };
            Label {
                label: now.label.clone(),
                delays,
            }
        };
        let grown = self.labels.iter().map(label);
        Self {
            by: self.by.clone(),
            labels: grown.filter(|label| label.delays.count > 0).collect(),
            other: self.other.since(&earlier.other),
            ..*self
        }
    }

    /// Returns the histogram of all delays.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let rows = self.labels.iter().map(|label| &label.delays.histogram);
        rows.fold(self.other.histogram.clone(), |all, row| all.and(row))
    }

    /// Returns the sum of all delays, ns.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.other.sum
            + self
                .labels
                .iter()
                .map(|label| label.delays.sum)
                .sum::<u128>()
    }
}

impl Fields {
    /// Returns the functions of a label that is a stack, the innermost first; empty if none is
    /// recorded.
    #[must_use]
    pub fn stack(&self) -> Vec<String> {
        frames(self, STACK)
    }

    /// Whether a label is a stack whose outer functions are missing.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.number("cut_off") == Some(1)
    }
}

impl Delays {
    /// Reads the counts of a line.
    fn of(counts: &Fields, line: &str) -> Result<Self, ParseError> {
        let lacks = |name: &str| ParseError::new(line, format!("{name}=NUMBER"));
        let number = |name: &str| counts.number(name).ok_or_else(|| lacks(name));
        let text = |name: &str| counts.get(name).map(super::fields::Value::text);
        let sum = text("sum").and_then(|sum| sum.parse().ok());
        let buckets = text("buckets").ok_or_else(|| lacks("buckets"))?;
        let this = Self {
            count: number("count")?,
            sum: sum.ok_or_else(|| lacks("sum"))?,
            min: number("min")?,
            max: number("max")?,
            histogram: Histogram::parse_list(&buckets)?,
        };
        let counted = this.histogram.count();
        if counted != this.count {
            let word = format!("count={}", this.count);
            return Err(ParseError::new(
                word,
                format!("count={counted}, as the buckets"),
            ));
        }
        Ok(this)
    }

    fn and(&self, other: &Self) -> Self {
        let of_both =
            |this: u64, that: u64, both: fn(u64, u64) -> u64| match (self.count, other.count) {
                (0, _) => that,
                (_, 0) => this,
                _ => both(this, that),
            };
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            min: of_both(self.min, other.min, u64::min),
            max: of_both(self.max, other.max, u64::max),
            histogram: self.histogram.and(&other.histogram),
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        let histogram = self.histogram.since(&earlier.histogram);
        Self {
            count: histogram.count(),
            sum: self.sum.saturating_sub(earlier.sum),
            min: 0,
            max: 0,
            histogram,
        }
    }
}

impl Histogram {
    /// Parses buckets as in a line: `LOW-HIGH:COUNT,...`
    fn parse_list(text: &str) -> Result<Self, ParseError> {
        let lines: Vec<String> = text
            .split(',')
            .map(|bucket| bucket.replace(['-', ':'], " "))
            .collect();
        Self::parse(&lines.join("\n"))
    }

    /// Returns the delays of both.
    fn and(&self, other: &Self) -> Self {
        let mut buckets = self.buckets.clone();
        for bucket in &other.buckets {
            match buckets.binary_search_by_key(&bucket.low, |known| known.low) {
                Ok(at) => {
                    buckets[at] = Bucket {
                        count: buckets[at].count + bucket.count,
                        ..*bucket
                    }
                }
                Err(at) => buckets.insert(at, *bucket),
            }
        }
        Self { buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "by=comm labels=2 max_labels=2 full=1 memory=4096\n\
        label comm=\"a \\\"b\\\"\" count=3 sum=330 min=90 max=140 buckets=88-96:1,96-104:1,136-144:1\n\
        label comm=\"dd\" count=1 sum=70 min=70 max=70 buckets=64-72:1\n\
        other count=0 sum=0 min=0 max=0 buckets=\n";

    #[test]
    fn it_reads_what_the_kernel_writes() {
        let labels = Labels::parse(TEXT).unwrap();
        assert_eq!((labels.by.as_str(), labels.max_labels), ("comm", 2));
        assert!(labels.full);
        assert_eq!(labels.labels[0].label.phrase(&[]), "comm=\"a \\\"b\\\"\"");
        assert_eq!(labels.labels[0].delays.histogram.count(), 3);
        assert_eq!(labels.labels[1].delays.max, 70);
        assert_eq!(labels.other, Delays::default());
        assert_eq!(labels.sum(), 400);
    }

    #[test]
    fn values_that_print_alike_are_one_label() {
        let text = "by=state labels=2 max_labels=16 full=0 memory=1\n\
            label state=S count=1 sum=70 min=70 max=70 buckets=64-72:1\n\
            label state=S count=2 sum=140 min=66 max=74 buckets=64-72:1,72-80:1\n\
            other count=0 sum=0 min=0 max=0 buckets=\n";
        let labels = Labels::parse(text).unwrap();
        let delays = &labels.labels[0].delays;
        assert_eq!(labels.labels.len(), 1);
        assert_eq!((delays.count, delays.sum), (3, 210));
        assert_eq!((delays.min, delays.max), (66, 74));
        assert_eq!(
            delays.histogram,
            Histogram::parse("64 72 2\n72 80 1").unwrap()
        );
    }

    #[test]
    fn a_stack_is_a_label() {
        let counts = "count=1 sum=70 min=70 max=70 buckets=64-72:1";
        let text = format!(
            "by=stack labels=3 max_labels=4 full=0 memory=1\n\
             label stack=\"a+0x1/0x2,b+0x3/0x4 [m]\" cut_off=1 {counts}\n\
             label stack=\"a+0x1/0x2,b+0x3/0x4 [m]\" {counts}\n\
             label stack=\"\" {counts}\n\
             other count=0 sum=0 min=0 max=0 buckets=\n"
        );
        let labels = Labels::parse(&text).unwrap();
        let labels: Vec<_> = labels.labels.iter().map(|one| &one.label).collect();
        assert_eq!(labels[0].stack(), ["a+0x1/0x2", "b+0x3/0x4 [m]"]);
        assert_eq!(labels[1].stack(), labels[0].stack());
        assert!(labels[2].stack().is_empty());
        let cut: Vec<bool> = labels.iter().map(|label| label.is_cut_off()).collect();
        assert_eq!(cut, [true, false, false]);
    }

    #[test]
    fn an_interval_is_the_difference() {
        let earlier = Labels::parse(TEXT).unwrap();
        let later = TEXT.replace(
            "count=1 sum=70 min=70 max=70 buckets=64-72:1",
            "count=3 sum=230 min=70 max=80 buckets=64-72:1,80-88:2",
        );
        let between = Labels::parse(&later).unwrap().since(&earlier);
        assert_eq!(between.labels.len(), 1);
        let delays = &between.labels[0].delays;
        assert_eq!((delays.count, delays.sum, delays.max), (2, 160, 0));
        assert_eq!(delays.histogram, Histogram::parse("80 88 2").unwrap());
    }

    #[test]
    fn a_fault_is_named_with_its_line() {
        let head = "by=cpu labels=0 max_labels=2 full=0 memory=1";
        for (text, line, word) in [
            ("", 1, ""),
            ("by=cpu full=0", 1, "by=cpu full=0"),
            (
                &format!("{head}\nrow count=0 sum=0 min=0 max=0 buckets="),
                2,
                "row",
            ),
            (
                &format!("{head}\nother count=1 sum=0 min=0 max=0 buckets="),
                2,
                "count=1",
            ),
            (
                &format!("{head}\nother count=1 sum=0 min=0 max=0 buckets=1-x:1"),
                2,
                "x",
            ),
            (
                &format!("{head}\nother sum=0 min=0 max=0"),
                2,
                "other sum=0 min=0 max=0",
            ),
        ] {
            let error = Labels::parse(text).unwrap_err();
            assert_eq!((error.word.as_str()), word, "{text:?}");
            assert!(
                error.line == line || word == "x",
                "{text:?}: line {}",
                error.line
            );
        }
    }

    proptest! {
        #[test]
        fn two_histograms_add_up(
            a in prop::collection::btree_map(0u64..20, 1u64..9, 0..9),
            b in prop::collection::btree_map(0u64..20, 1u64..9, 0..9),
        ) {
            let of = |counts: &std::collections::BTreeMap<u64, u64>| Histogram {
                buckets: counts.iter().map(|(&low, &count)| Bucket { low, high: low + 1, count }).collect(),
            };
            let both = of(&a).and(&of(&b));
            prop_assert_eq!(both.since(&of(&b)), of(&a));
            prop_assert_eq!(both.count(), of(&a).count() + of(&b).count());
        }
    }
}
