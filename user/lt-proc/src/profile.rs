// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/profile` and related files: the number of operations of each class by their duration.
//!
//! ```text
//! # begin=1234 end=5678
//! range                s_read     s_write ...
//! [1ns,2ns[                 0           0 ...
//! ...
//! [2048s,inf[               0           0 ...
//! ```
//!
//! Each row except the last ends at twice its start. As in other log2 tables, `us`, `ms` and `s` stand for
//! 2^10, 2^20 and 2^30 ns. Columns of a newer module are kept.

use std::fmt;

use serde::Serialize;

use crate::{Fields, ParseError};

/// The time that a profile of an instance covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Since the last reset.
    SinceReset,
    /// The profile that the last reset ended.
    Previous,
    /// About the last 1, 5 or 15 minutes.
    Minutes(u8),
}

impl Span {
    /// Returns the name of the file below the instance.
    #[must_use]
    pub fn file(self) -> String {
        match self {
            Span::SinceReset => "profile".into(),
            Span::Previous => "profile_previous".into(),
            Span::Minutes(minutes) => format!("profile_{minutes}min"),
        }
    }
}

/// The bounds of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Label in the file.
    pub label: String,
    /// The shortest delay in the row, ns.
    pub low: u64,
    /// The shortest delay above the row, ns; `None` for the last row.
    pub high: Option<u64>,
}

/// The counts of a class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCounts {
    /// Name in the head of the table.
    pub name: String,
    /// A count for each row.
    pub counts: Vec<u64>,
}

impl ClassCounts {
    /// Returns the number of operations.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Start of the time covered, `CLOCK_MONOTONIC` ns.
    pub begin: u64,
    /// End of the time covered, `CLOCK_MONOTONIC` ns.
    pub end: u64,
    /// The rows, the shortest delays first.
    pub rows: Vec<Row>,
    /// The columns.
    pub classes: Vec<ClassCounts>,
}

impl Profile {
    /// Parses a file.
    ///
    /// # Errors
    /// Names the line and the unexpected word.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let missing =
            |what: &str| ParseError::new("", format!("{what} before the end of the file"));
        let (at, times) = lines.next().ok_or_else(|| missing("# begin= end="))?;
        let (begin, end) = parse_times(times).map_err(|e| e.at_line(at))?;
        let (at, head) = lines
            .next()
            .ok_or_else(|| missing("the head of the table"))?;
        let mut classes = parse_head(head).map_err(|e| e.at_line(at))?;
        let mut rows: Vec<Row> = Vec::new();
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let row = parse_row(line, &mut classes).map_err(|e| e.at_line(at))?;
            let joins = rows.last().is_none_or(|last| last.high == Some(row.low));
            if !joins {
                let expected = "a row that begins where the one before ends";
                return Err(ParseError::new(row.label, expected).at_line(at));
            }
            rows.push(row);
        }
        Ok(Self {
            begin,
            end,
            rows,
            classes,
        })
    }

    /// Returns the time covered, ns.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }

    /// Returns the counts since `earlier`, a reading of the same profile. `None` if the two cannot be compared, as
    /// after a reset.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let same = self.begin == earlier.begin && self.end >= earlier.end;
        if !same || self.rows != earlier.rows || self.classes.len() != earlier.classes.len() {
            return None;
        }
        let pairs = self.classes.iter().zip(&earlier.classes);
        let classes = pairs.map(|(now, then)| {
            let counts = now.counts.iter().zip(&then.counts);
            let counts: Option<Vec<u64>> = counts.map(|(a, b)| a.checked_sub(*b)).collect();
            (now.name == then.name).then_some(ClassCounts {
                name: now.name.clone(),
                counts: counts?,
            })
        });
        Some(Self {
            begin: earlier.end,
            end: self.end,
            rows: self.rows.clone(),
            classes: classes.collect::<Option<_>>()?,
        })
    }
}

/// Prints the profile as the kernel does.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# begin={} end={}", self.begin, self.end)?;
        write!(f, "{:<15}", "range")?;
        for class in &self.classes {
            write!(f, " {:>11}", class.name)?;
        }
        writeln!(f)?;
        for (i, row) in self.rows.iter().enumerate() {
            write!(f, "{:<15}", row.label)?;
            for class in &self.classes {
                write!(f, " {:>11}", class.counts.get(i).unwrap_or(&0))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn parse_times(line: &str) -> Result<(u64, u64), ParseError> {
    let bad = || ParseError::new(line, "# begin=NS end=NS");
    let fields = Fields::parse(line.strip_prefix('#').ok_or_else(bad)?)?;
    let time = |key| fields.number(key).ok_or_else(bad);
    Ok((time("begin")?, time("end")?))
}

fn parse_head(line: &str) -> Result<Vec<ClassCounts>, ParseError> {
    let mut words = line.split_whitespace();
    if words.next() != Some("range") {
        let word = line.split_whitespace().next().unwrap_or("");
        return Err(ParseError::new(word, "range, and the names of classes"));
    }
    let classes = words.map(|name| ClassCounts {
        name: name.to_string(),
        counts: Vec::new(),
    });
    Ok(classes.collect())
}

fn parse_row(line: &str, classes: &mut [ClassCounts]) -> Result<Row, ParseError> {
    let mut words = line.split_whitespace();
    let row = parse_range(words.next().unwrap_or(""))?;
    for class in &mut *classes {
        let word = words.next().unwrap_or("");
        let count = word.parse();
        let count = count.map_err(|_| ParseError::new(word, "a count for each class"))?;
        class.counts.push(count);
    }
    match words.next() {
        None => Ok(row),
        Some(word) => Err(ParseError::new(word, "one count for each class")),
    }
}

/// Parses `[512ns,1us[` or `[2048s,inf[`.
fn parse_range(label: &str) -> Result<Row, ParseError> {
    let bad = || ParseError::new(label, "a range such as [512ns,1us[");
    let inner = label.strip_prefix('[').and_then(|l| l.strip_suffix('['));
    let (low, high) = inner.and_then(|l| l.split_once(',')).ok_or_else(bad)?;
    let high = match high {
        "inf" => None,
        high => Some(parse_bound(high).ok_or_else(bad)?),
    };
    Ok(Row {
        label: label.to_string(),
        low: parse_bound(low).ok_or_else(bad)?,
        high,
    })
}

fn parse_bound(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "ns" => 0,
        "us" => 10,
        "ms" => 20,
        "s" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "# begin=5 end=7\n\
        range                s_read     b_write\n\
        [512ns,1us[               1           0\n\
        [1us,2us[                 3           4\n\
        [2us,inf[                 0           2\n";

    #[test]
    fn the_documented_table_is_read_and_written_back() {
        let profile = Profile::parse(TEXT).unwrap();
        assert_eq!((profile.begin, profile.end, profile.duration()), (5, 7, 2));
        assert_eq!(profile.classes[1].name, "b_write");
        assert_eq!(profile.classes[1].counts, [0, 4, 2]);
        assert_eq!(profile.classes[0].total(), 4);
        let bounds: Vec<_> = profile.rows.iter().map(|r| (r.low, r.high)).collect();
        assert_eq!(
            bounds,
            [(512, Some(1024)), (1024, Some(2048)), (2048, None)]
        );
        assert_eq!(profile.to_string(), TEXT);
    }

    #[test]
    fn a_difference_has_the_operations_between_two_readings() {
        let earlier = Profile::parse(TEXT).unwrap();
        let text = TEXT
            .replace("end=7", "end=9")
            .replace("3           4", "8           9");
        let later = Profile::parse(&text).unwrap();
        let between = later.since(&earlier).unwrap();
        assert_eq!((between.begin, between.end), (7, 9));
        assert_eq!(between.classes[0].counts, [0, 5, 0]);
        assert_eq!(between.classes[1].counts, [0, 5, 0]);
        // After a reset there is no difference.
        let reset = Profile::parse(&text.replace("begin=5", "begin=8")).unwrap();
        assert_eq!(reset.since(&earlier), None);
        assert_eq!(earlier.since(&later), None);
    }

    #[test]
    fn the_word_at_fault_is_named() {
        for (from, to, line, word) in [
            ("# begin=5", "# start=5", 1, "# start=5 end=7"),
            ("range", "ranges", 2, "ranges"),
            ("[1us,2us[", "[1us,2us]", 4, "[1us,2us]"),
            ("[1us,2us[", "[1us,2u[", 4, "[1us,2u["),
            ("[1us,2us[", "[2us,4us[", 4, "[2us,4us["),
            ("3           4", "3           x", 4, "x"),
            ("3           4", "3", 4, ""),
            ("3           4", "3 4 5", 4, "5"),
        ] {
            let error = Profile::parse(&TEXT.replace(from, to)).unwrap_err();
            assert_eq!((error.line, error.word.as_str()), (line, word), "{to}");
        }
        assert!(Profile::parse("").is_err());
    }

    #[test]
    fn files_are_named_after_their_spans() {
        let files = [Span::SinceReset, Span::Previous, Span::Minutes(15)].map(Span::file);
        assert_eq!(files, ["profile", "profile_previous", "profile_15min"]);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[# a-z=0-9,\\[\n]{0,200}") {
            let _ = Profile::parse(&text);
        }
    }
}
