// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables and JSON, for pipes, files and scripts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out::{self, Colour};
use lt_common::wait::{Signals, Wake};
use lt_proc::{Alert, Pending};
use serde::Serialize;

use super::columns::{self, Layout, P50, P99};
use super::draw::{ago, alert_cells, group_cells, pending_cells, warning};
use super::groups::{Group, Groups};
use super::read::{Reader, Reading};
use super::rows::{self, Row};
use super::{End, NO_INSTANCES, SLICE, end};
use crate::cli::{By, TopArgs};

/// Maximum number of alerts or groups, and of operations in flight, below each table.
const LINES: usize = 10;

/// The output of `--json`; times in ns.
#[derive(Serialize)]
struct Report<'a> {
    /// `CLOCK_MONOTONIC`.
    time: u64,
    instances: Vec<One<'a>>,
    /// Alerts since the previous report, the oldest first.
    alerts: &'a [Alert],
    /// Number of alerts that were overwritten before they were read.
    missed: u64,
    /// The oldest operations in flight of each instance.
    pending: Vec<InFlight<'a>>,
    /// Number of alerts since the previous report that are older than those in `alerts`.
    dropped: u64,
    /// With `--by`: the late operations of all alerts since the previous report, the longest total first.
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<&'a [Group]>,
}

/// An instance.
#[derive(Serialize)]
struct One<'a> {
    name: &'a str,
    tracker: &'a str,
    /// `null`: since the start of the instance.
    interval: Option<u64>,
    /// Operations that ended in the interval, and per second.
    ended: u64,
    rate: Option<f64>,
    /// Upper bounds, for the interval.
    p50: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
    /// Since the start of the instance, and in the interval.
    alerts: u64,
    new_alerts: u64,
    pending: u64,
    /// The age of the oldest operation in flight.
    oldest: Option<u64>,
    /// Counters of losses that are not 0.
    lost: BTreeMap<&'static str, u64>,
    /// Whether `oldest`, and the instance's operations in `pending`, are from an earlier reading.
    is_old: bool,
    /// The number of a cgroup in the filter, if no cgroup has that number.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_cgroup: Option<u64>,
}

#[derive(Serialize)]
struct InFlight<'a> {
    instance: &'a str,
    #[serde(flatten)]
    pending: &'a Pending,
}

/// Prints a table for each interval, until the count is reached.
pub(super) fn run(reader: &mut Reader<'_>, args: &TopArgs, count: u64) -> Result<Outcome> {
    let signals = Signals::catch()?;
    reader.groups = args.by.map(Groups::new);
    let mut before: Option<Reading> = None;
    let mut next = Instant::now();
    for nth in 1..=count {
        let start = Instant::now();
        let reading = match reader.read() {
            Err(error) if before.is_some() && !reader.is_loaded() => {
                drop(error);
                return Ok(end(End::Removed));
            }
            reading => reading?,
        };
        let groups = reader.groups.as_mut().map(Groups::take);
        let rows = rows::rows(&reading, before.as_ref());
        if rows.is_empty() && before.is_none() && !args.json {
            out::note(NO_INSTANCES);
        }
        match args.json {
            true => json(&reading, &rows, groups.as_deref())?,
            false => text(&reading, &rows, groups.as_deref(), args)?,
        }
        before = Some(reading);
        if nth == count {
            break;
        }
        next = super::next(next, args.interval.into(), start.elapsed());
        if !wait(reader, &signals, next)? {
            break;
        }
    }
    Ok(Outcome::Fine)
}

/// Reads new alerts until the time `until`, or until the module is removed;
/// returns false if a signal came first.
fn wait(reader: &mut Reader<'_>, signals: &Signals, until: Instant) -> Result<bool> {
    loop {
        let slice = until.min(Instant::now() + SLICE);
        if signals.wait(None, Some(slice))? == Wake::Signal {
            return Ok(false);
        }
        if slice == until || !reader.is_loaded() {
            return Ok(true);
        }
        reader.drain()?;
    }
}

fn json(reading: &Reading, rows: &[Row], groups: Option<&[Group]>) -> Result<()> {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let one = |row| {
        let row: &Row = row;
        One {
            name: &row.name,
            tracker: &row.tracker,
            interval: row.interval.map(ns),
            ended: row.ended,
            rate: row.rate(),
            p50: row.quantile(P50),
            p99: row.quantile(P99),
            max: row.max,
            alerts: row.stats.count("alerts"),
            new_alerts: row.new_alerts,
            pending: row.stats.count("pending"),
            oldest: row.age(),
            lost: row.lost().collect(),
            is_old: row.is_old,
            missing_cgroup: row.missing_cgroup,
        }
    };
    let in_flight = |row: &'_ Row| -> Vec<(String, Pending)> {
        row.oldest
            .iter()
            .take(LINES)
            .map(|p| (row.name.clone(), p.clone()))
            .collect()
    };
    let pending: Vec<(String, Pending)> = rows.iter().flat_map(in_flight).collect();
    out::json(&Report {
        time: reading.time,
        instances: rows.iter().map(one).collect(),
        alerts: &reading.alerts,
        missed: reading.missed,
        pending: pending
            .iter()
            .map(|(instance, pending)| InFlight { instance, pending })
            .collect(),
        dropped: reading.dropped,
        groups,
    })
}

fn text(reading: &Reading, rows: &[Row], groups: Option<&[Group]>, args: &TopArgs) -> Result<()> {
    let interval = rows.iter().find_map(|row| row.interval);
    let over = match interval {
        Some(time) => format!("over {}", lt_proc::Nanos(u64::try_from(time.as_nanos())?)),
        None => "since the start of each instance".to_string(),
    };
    let head = format!(
        "{}  {}, {over}",
        lt_common::clock::now(),
        out::plural(rows.len(), "instance")
    );
    out::line(&out::paint(Colour::Bold, &head))?;
    if let Some(warning) = warning(rows, reading.missed) {
        for line in out::wrap_to(&warning, 0, out::width().unwrap_or(usize::MAX)) {
            out::line(&out::paint(Colour::Yellow, &line))?;
        }
    }
    let mut sorted: Vec<&Row> = rows.iter().collect();
    columns::sort(&mut sorted, args.sort, false);
    let layout = Layout::within(&sorted, out::width());
    let join = |cells: Vec<(crate::cli::Column, String)>| {
        let cells: Vec<String> = cells.into_iter().map(|(_, text)| text).collect();
        cells.join(&" ".repeat(layout.gap))
    };
    if !rows.is_empty() {
        out::line(&join(layout.headings()))?;
    }
    for row in &sorted {
        out::line(&join(layout.cells(row)))?;
    }
    match args.by.zip(groups) {
        Some((by, groups)) => grouped(groups, by, reading.time)?,
        None => alerts(reading)?,
    }
    let mut oldest: Vec<(&Row, &Pending)> = sorted
        .iter()
        .flat_map(|row| row.oldest.iter().take(LINES).map(move |p| (*row, p)))
        .collect();
    oldest.sort_by_key(|(_, pending)| pending.fields.number("start"));
    let oldest: Vec<Vec<String>> = oldest
        .iter()
        .take(LINES)
        .map(|(row, pending)| {
            let (age, who, what) = pending_cells(pending);
            vec![age, row.name.clone(), who, what]
        })
        .collect();
    section(
        &[">AGE", "INSTANCE", "WHO", "IN FLIGHT (oldest first)"],
        &oldest,
    )?;
    out::line("")
}

/// Prints the newest alerts.
fn alerts(reading: &Reading) -> Result<()> {
    let newest = reading.alerts.iter().rev().take(LINES);
    let alerts: Vec<Vec<String>> = newest
        .map(|alert| {
            let (delay, who, what) = alert_cells(alert);
            let ago = ago(reading.time.saturating_sub(alert.time));
            vec![ago, delay, alert.instance.clone(), who, what]
        })
        .collect();
    section(
        &[">AGO", ">DELAY", "INSTANCE", "WHO", "ALERTS (newest first)"],
        &alerts,
    )
}

/// Prints the groups with the longest totals, and the number of the others.
fn grouped(groups: &[Group], by: By, now: u64) -> Result<()> {
    let shown = groups.iter().take(LINES);
    let cells: Vec<Vec<String>> = shown
        .map(|group| {
            let [last, total, count, longest, what] = group_cells(group, now);
            vec![last, total, group.instance.clone(), count, longest, what]
        })
        .collect();
    let title = format!("{} (longest total first)", by.heading());
    section(
        &[">LAST", ">TOTAL", "INSTANCE", ">COUNT", ">LONGEST", &title],
        &cells,
    )?;
    match groups.len().saturating_sub(LINES) {
        0 => Ok(()),
        hidden => out::line(&format!("and {hidden} more; --json has all")),
    }
}

/// Prints a list with its headings, unless it is empty.
fn section(head: &[&str], rows: &[Vec<String>]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    out::line("")?;
    out::table(head, rows)
        .iter()
        .try_for_each(|line| out::line(&out::fit_line(line)))
}
