// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `NAME/pending`: `age=NS start=NS key... pid= tid= comm="..." ...`, the oldest first.

use serde::Serialize;

use crate::alert::STACK;
use crate::fields::SINCE;
use crate::{Fields, ParseError};

/// An event that has started, but not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// All fields, in order.
    #[serde(flatten)]
    pub fields: Fields,
}

impl Pending {
    /// Parses the whole file.
    ///
    /// # Errors
    /// Names the line, and the word that is not a field. Every line must have numbers in `age` and
    /// `start`.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, ParseError> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, l)| !l.trim().is_empty());
        let parse = |line: &str| {
            let fields = Fields::parse(line)?;
            for key in ["age", "start"] {
                if fields.number(key).is_none() {
                    let word = fields.text(key).unwrap_or_default();
                    return Err(ParseError::new(word, format!("{key}=nanoseconds")));
                }
            }
            Ok(Self { fields })
        };
        lines
            .map(|(i, line)| parse(line).map_err(|e| e.at_line(i + 1)))
            .collect()
    }

    /// Returns the current kernel stack of its task, the innermost function first; empty if the
    /// line has none: for example, the task runs, or there is no task.
    #[must_use]
    pub fn stack(&self) -> Vec<String> {
        crate::alert::frames(&self.fields, STACK)
    }

    /// Returns a short phrase for the operation, for a column on a terminal, with the fields that
    /// have no column of their own.
    #[must_use]
    pub fn subject(&self) -> String {
        let columns = ["age", "start", "pid", "tid", "comm", STACK, SINCE];
        format!("{}{}", self.fields.since(), self.fields.phrase(&columns))
    }

    /// Returns the age in ns; a lower bound if [`Fields::is_at_least`].
    #[must_use]
    pub fn age(&self) -> u64 {
        self.fields.number("age").unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_the_one_at_fault_is_named() {
        let text = "age=5 start=1 dev=8:0 sector=7 pid=1 tid=1 comm=\"a b\"\nage=4 start=2\n";
        let all = Pending::parse_all(text).unwrap();
        assert_eq!(all[0].age(), 5);
        assert_eq!(all[0].fields.text("comm").unwrap(), "a b");
        let line = "age=5 start=1 rq=0x1 pid=1 tid=1 comm=\"a\" shade=2 stack=\"f+0x1,g+0x2\"";
        let stuck = &Pending::parse_all(line).unwrap()[0];
        assert_eq!(stuck.stack(), ["f+0x1", "g+0x2"]);
        assert_eq!(stuck.subject(), "rq=0x1 shade=2");
        assert!(all[0].stack().is_empty());
        assert!(!stuck.fields.is_at_least());
        let old = &Pending::parse_all(&format!("{line} since=before-start")).unwrap()[0];
        assert!(old.fields.is_at_least());
        assert_eq!(old.subject(), "began before the start: rq=0x1 shade=2");
        assert_eq!(old.stack(), stuck.stack());
        let err = Pending::parse_all("age=1 start=1\nage=x start=1").unwrap_err();
        assert_eq!((err.line, err.word.as_str()), (2, "x"));
    }
}
