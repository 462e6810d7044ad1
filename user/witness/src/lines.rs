// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The lines of an ftrace trace, with any events, and the alerts of the same period.
//!
//! ```text
//!   fio-171 [000] d..2. 12.262482: sched_switch: prev_comm=fio prev_pid=171 ...
//!   COMM-TID [CPU] FLAGS SECONDS:  EVENT:        FIELDS
//! ```
//!
//! Only the part between two marks (`lt-witness begin`, `lt-witness end` in `trace_marker`) is judged: the instance was
//! on for all of it.

use anyhow::{Context, Result, bail};
use lt_proc::{Alert, Reason, StreamLine};

use crate::alerts::Reported;
use crate::ftrace::{check_complete, parse_seconds};
use crate::pair::Place;

/// A line of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// `CLOCK_MONOTONIC`, ns.
    pub(crate) time: u64,
    /// Thread id of the current task.
    pub(crate) current: u32,
    pub(crate) cpu: u32,
    /// `task`, `softirq`, `hardirq` or `nmi`.
    pub(crate) context: &'static str,
    pub(crate) event: &'a str,
    pub(crate) fields: &'a str,
}

/// The period in which the instance was on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Marks {
    /// Whether an operation lies entirely between the marks.
    pub(crate) fn has(self, start: u64, end: u64) -> bool {
        self.begin <= start && end <= self.end
    }
}

/// The event that `trace_marker` writes.
const MARK: &str = "tracing_mark_write";

/// Reads the whole file: the lines of the wanted events, in order of time, and the marks. A trace that has lost events
/// is an error.
pub(crate) fn read(text: &str, is_wanted: impl Fn(&str) -> bool) -> Result<(Vec<Line<'_>>, Marks)> {
    check_complete(text)?;
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if !line.starts_with('#') {
            let parsed = parse(line, &is_wanted);
            lines.extend(parsed.with_context(|| format!("line {}: {line:?}", i + 1))?);
        }
    }
    lines.sort_by_key(|line| line.time);
    let marks = marks(&lines)?;
    Ok((lines, marks))
}

/// Parses a line; `None` if it has no mark or wanted event.
fn parse<'a>(line: &'a str, is_wanted: impl Fn(&str) -> bool) -> Result<Option<Line<'a>>> {
    // A command name may contain `: text:`, so only a mark or a wanted event is taken for the event.
    let is_event = |event: &str| event == MARK || is_wanted(event);
    let found = line.match_indices(": ").find_map(|(at, _)| {
        let (event, fields) = line[at + 2..].split_once(':')?;
        is_event(event).then_some((&line[..at], event, fields))
    });
    let Some((prefix, event, fields)) = found else {
        return Ok(None);
    };
    let (rest, stamp) = last_word(prefix).context("no time")?;
    let (rest, flags) = last_word(rest).context("no flags")?;
    let (task, cpu) = rest.rsplit_once('[').context("no [CPU]")?;
    let (_, tid) = task.trim_end().rsplit_once('-').context("no COMM-TID")?;
    let cpu = cpu.trim_end().trim_end_matches(']');
    Ok(Some(Line {
        time: parse_seconds(stamp)
            .with_context(|| format!("{stamp:?}: expected SECONDS.FRACTION"))?,
        current: tid
            .parse()
            .with_context(|| format!("{tid:?}: expected a thread id"))?,
        cpu: cpu
            .parse()
            .with_context(|| format!("{cpu:?}: expected a CPU"))?,
        context: context(flags)?,
        event,
        fields: fields.strip_prefix(' ').unwrap_or(fields),
    }))
}

/// Cuts the last word off.
fn last_word(text: &str) -> Option<(&str, &str)> {
    text.trim_end().rsplit_once(' ')
}

/// Returns the context from flags such as `d.h2.`
fn context(flags: &str) -> Result<&'static str> {
    match flags.as_bytes().get(2) {
        Some(b'Z' | b'z') => Ok("nmi"),
        Some(b'H' | b'h') => Ok("hardirq"),
        Some(b's') => Ok("softirq"),
        Some(b'.') => Ok("task"),
        _ => bail!("{flags:?}: expected flags such as d.h2."),
    }
}

fn marks(lines: &[Line<'_>]) -> Result<Marks> {
    let time = |mark: &str| {
        let is_it = |line: &&Line<'_>| line.event == MARK && line.fields.trim() == mark;
        let mut found = lines.iter().filter(is_it);
        match (found.next(), found.next()) {
            (Some(line), None) => Ok(line.time),
            _ => bail!("expected one mark {mark:?} in the trace"),
        }
    };
    Ok(Marks {
        begin: time("lt-witness begin")?,
        end: time("lt-witness end")?,
    })
}

/// Reads the alerts of an instance. Lost or missing alerts are an error.
pub(crate) fn stream(text: &str) -> Result<Vec<Alert>> {
    let mut alerts: Vec<Alert> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let place = || format!("line {}", i + 1);
        let alert = match StreamLine::parse(line).with_context(place)? {
            StreamLine::Lost(n) => bail!("{}: {n} alerts were lost: enlarge ring=", place()),
            StreamLine::Alert(alert) => alert,
        };
        if let Some(last) = alerts.last().filter(|last| alert.seq != last.seq + 1) {
            bail!("{}: seq={} follows seq={}", place(), alert.seq, last.seq);
        }
        alerts.push(*alert);
    }
    Ok(alerts)
}

/// Reads the alerts of an instance that are above the threshold and whose operations lie between the marks. `judged`
/// returns the place of each alert, and the fields that are also in the trace.
pub(crate) fn alerts(
    text: &str,
    marks: Marks,
    judged: impl Fn(&Alert) -> Result<(Place, String)>,
) -> Result<Vec<Reported>> {
    let mut reported: Vec<Reported> = Vec::new();
    for (i, alert) in stream(text)?.into_iter().enumerate() {
        if alert.reason != Reason::Threshold || !marks.has(alert.time - alert.delay, alert.time) {
            continue;
        }
        let (key, said) = judged(&alert).with_context(|| format!("line {}", i + 1))?;
        reported.push(Reported {
            seq: alert.seq,
            place: key,
            delay: alert.delay,
            time: alert.time,
            said,
        });
    }
    Ok(reported)
}

/// Returns some fields of an alert as `name=value`, separated by spaces.
pub(crate) fn said<'n>(alert: &Alert, names: impl Iterator<Item = &'n str>) -> Result<String> {
    let fields: Result<Vec<String>> = names
        .map(|name| {
            let value = match name {
                "cpu" => Some(alert.cpu.to_string()),
                "pid" => Some(alert.pid.to_string()),
                "tid" => Some(alert.tid.to_string()),
                _ => alert.fields.text(name).map(|text| text.to_string()),
            };
            Ok(format!(
                "{name}={}",
                value.with_context(|| format!("no {name}="))?
            ))
        })
        .collect();
    Ok(fields?.join(" "))
}
