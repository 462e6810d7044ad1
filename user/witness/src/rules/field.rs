// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A field of a rule: its name in an alert, and its place in the trace; see rules.rs.

use anyhow::{Context, Result, bail};

use crate::lines::Line;

/// A line that is a step of a rule, with the earlier line of the same task that belongs to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) line: &'a Line<'a>,
    pub(crate) earlier: Option<&'a Line<'a>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    /// Possible events of the earlier line; empty if the field is in the line itself.
    pub(super) earlier: Vec<String>,
    is_hex: bool,
    source: Source,
    to_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Tid,
    Cpu,
    Context,
    Word(usize),
    After(String),
}

impl Field {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (name, source) = match text.split_once(':') {
            Some(split) => split,
            None => (text, ""),
        };
        let (earlier, source) = match source.split_once('.') {
            Some((events, source)) if !events.is_empty() && !source.starts_with('.') => {
                (events.split('|').map(str::to_string).collect(), source)
            }
            _ => (Vec::new(), source),
        };
        let (is_hex, source) = match source.strip_prefix("0x") {
            Some(source) => (true, source),
            None => (false, source),
        };
        let (source, to_end) = match source.strip_suffix("..") {
            Some(source) => (source, true),
            None => (source, false),
        };
        let expected = || format!("{text:?}: expected NAME:WORD=, NAME:#N or NAME:@tid");
        let source = match (source, name) {
            ("@tid", _) | ("", "tid") => Source::Tid,
            ("@cpu", _) | ("", "cpu") => Source::Cpu,
            ("@context", _) | ("", "context") => Source::Context,
            (source, _) => match source.strip_prefix('#') {
                Some(number) => Source::Word(number.parse().with_context(expected)?),
                None if source.ends_with('=') => Source::After(source.to_string()),
                None => bail!(expected()),
            },
        };
        Ok(Self {
            name: name.to_string(),
            earlier,
            is_hex,
            source,
            to_end,
        })
    }

    /// Whether this is the thread id at the head of the line.
    pub(super) fn is_tid(&self) -> bool {
        self.source == Source::Tid && self.earlier.is_empty()
    }

    pub(super) fn value(&self, seen: &Seen<'_>) -> Option<String> {
        let line = if self.earlier.is_empty() {
            seen.line
        } else {
            seen.earlier?
        };
        let rest = match &self.source {
            Source::Tid => return Some(line.current.to_string()),
            Source::Cpu => return Some(line.cpu.to_string()),
            Source::Context => return Some(line.context.to_string()),
            Source::Word(number) => {
                let mut rest = line.fields.trim_start();
                for _ in 0..*number {
                    rest = rest.split_once(' ')?.1.trim_start();
                }
                rest
            }
            // A field that extends to the end may contain anything, so it begins at the first mark.
            Source::After(mark) if self.to_end => line.fields.split_once(mark.as_str())?.1,
            Source::After(mark) => {
                let at = |(at, _): &(usize, &str)| {
                    *at == 0 || line.fields[..*at].ends_with([' ', '(', ','])
                };
                let (at, _) = line.fields.rmatch_indices(mark.as_str()).find(at)?;
                &line.fields[at + mark.len()..]
            }
        };
        let word = if self.to_end {
            rest.trim()
        } else {
            let word = rest.split(' ').next().unwrap_or("");
            word.trim_matches([',', ':', '(', ')', '[', ']'])
        };
        let hex = if self.is_hex { "0x" } else { "" };
        (!word.is_empty()).then(|| format!("{hex}{word}"))
    }
}
