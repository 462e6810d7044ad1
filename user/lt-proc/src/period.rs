// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/period` and `NAME/period_previous`: the delays between two resets.
//!
//! ```text
//! begin=5000 end=9000 by=comm labels=2 max_labels=16 full=0
//! all count=4 sum=400 buckets=64-72:1,88-96:1,96-104:1,136-144:1
//! label comm="fio" count=3 sum=330 buckets=88-96:1,96-104:1,136-144:1
//! label comm="dd" count=1 sum=70 buckets=64-72:1
//! other count=0 sum=0 buckets=
//! ```
//!
//! Without `by=` when the instance was created, the first line ends after `end`, and there are no lines after `all`.

use serde::Serialize;

use crate::{Delays, Fields, Labels, ParseError};

/// The delays of a period. Their extremes are not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Period {
    /// Start of the period, `CLOCK_MONOTONIC` ns.
    pub begin: u64,
    /// End of the period, `CLOCK_MONOTONIC` ns.
    pub end: u64,
    /// All delays.
    pub all: Delays,
    /// The delays by label, which add up to `all`; `None` if they are not counted by label.
    pub labels: Option<Labels>,
}

impl Period {
    /// Parses a file.
    ///
    /// # Errors
    /// Names the line and the word at fault, or what is missing.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut lines = text.lines().enumerate();
        let head = lines.next().map_or("", |(_, line)| line);
        let (begin, end, mut labels) = parse_head(head).map_err(|e| e.at_line(1))?;
        let mut all = None;
        for (at, line) in lines {
            let added = match (line.strip_prefix("all "), &mut labels) {
                (Some(counts), _) => parse_all(counts, line).map(|delays| all = Some(delays)),
                (None, Some(labels)) => labels.add(line),
                (None, None) => {
                    let word = line.split_whitespace().next().unwrap_or("");
                    Err(ParseError::new(word, "all"))
                }
            };
            added.map_err(|e| e.at_line(at + 1))?;
        }
        let all = all.ok_or_else(|| ParseError::new("", "a line `all`"))?;
        Ok(Self {
            begin,
            end,
            all,
            labels,
        })
    }

    /// Returns its length, ns.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

fn parse_head(head: &str) -> Result<(u64, u64, Option<Labels>), ParseError> {
    let fields = Fields::parse(head)?;
    let time = |name: &str| {
        let lacks = || ParseError::new(head, format!("{name}=NUMBER"));
        fields.number(name).ok_or_else(lacks)
    };
    let labels = match fields.get("by") {
        Some(_) => Some(Labels::of_head(head)?),
        None => None,
    };
    Ok((time("begin")?, time("end")?, labels))
}

fn parse_all(counts: &str, line: &str) -> Result<Delays, ParseError> {
    Delays::of(&Fields::parse(counts)?, line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;
    use proptest::prelude::*;

    const HEAD: &str = "begin=5000 end=9000";
    const ALL: &str = "all count=4 sum=400 buckets=64-72:1,88-96:1,96-104:1,136-144:1\n";
    const ROWS: &str = "label comm=\"fio\" count=3 sum=330 buckets=88-96:1,96-104:1,136-144:1\n\
        label comm=\"dd\" count=1 sum=70 buckets=64-72:1\n\
        other count=0 sum=0 buckets=\n";

    #[test]
    fn the_documented_file_is_read() {
        let text = format!("{HEAD} by=comm labels=2 max_labels=16 full=0\n{ALL}{ROWS}");
        let period = Period::parse(&text).unwrap();
        assert_eq!((period.begin, period.end), (5000, 9000));
        assert_eq!(period.duration(), 4000);
        assert_eq!((period.all.count, period.all.sum), (4, 400));
        assert_eq!((period.all.min, period.all.max), (0, 0));
        let labels = period.labels.unwrap();
        assert_eq!((labels.by.as_str(), labels.max_labels), ("comm", 16));
        assert_eq!(labels.labels[0].delays.count, 3);
        assert_eq!(labels.labels[1].label.phrase(&[]), "comm=dd");
        assert_eq!(labels.sum(), period.all.sum);
    }

    #[test]
    fn without_labels_there_is_the_whole() {
        let period = Period::parse(&format!("{HEAD}\n{ALL}")).unwrap();
        assert_eq!(period.labels, None);
        assert_eq!(
            period.all.histogram,
            Histogram::parse("64 72 1\n88 96 1\n96 104 1\n136 144 1").unwrap()
        );
        let empty = Period::parse("begin=1 end=1\nall count=0 sum=0 buckets=\n").unwrap();
        assert_eq!((empty.duration(), empty.all), (0, Delays::default()));
    }

    #[test]
    fn a_fault_is_named_with_its_line() {
        for (text, line, word) in [
            ("", 1, ""),
            ("begin=1\nall count=0 sum=0 buckets=\n", 1, "begin=1"),
            ("begin=1 end=2\n", 1, ""),
            (&format!("{HEAD}\n{ROWS}"), 2, "label"),
            (
                &format!("{HEAD} by=comm\n{ALL}"),
                1,
                "begin=5000 end=9000 by=comm",
            ),
            (
                &format!("{HEAD}\nall count=3 sum=70 buckets=64-72:1\n"),
                2,
                "count=3",
            ),
        ] {
            let error = Period::parse(text).unwrap_err();
            assert_eq!((error.line, error.word.as_str()), (line, word), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z=0-9,: \n-]{0,200}") {
            let _ = Period::parse(&text);
        }
    }
}
