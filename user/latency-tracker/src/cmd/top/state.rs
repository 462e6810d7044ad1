// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The state of `top`: the last interval, a history, the latest alerts, and the user's choices.
//!
//! This code reads no file and uses no terminal, so that tests need neither.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use lt_proc::{Alert, Pending};

use super::columns::{self, P99};
use super::groups::{Group, Groups};
use super::read::{KEPT, Reading};
use super::rows::{self, Row};
use crate::cli::{By, Column};

/// Number of intervals in a graph.
const HISTORY: usize = 120;

/// An interval in a graph.
#[derive(Debug, Clone, Copy)]
struct Point {
    p99: Option<u64>,
    /// Operations in 1,000 s.
    rate: Option<u64>,
}

/// The input line at the bottom of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Prompt {
    /// A filter; contains the previous filter.
    Filter(String),
    /// A new interval.
    Interval(String),
}

/// The values in the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Graph {
    P99,
    Rate,
}

/// The state.
#[derive(Debug)]
pub(super) struct State {
    /// The instances in the last interval.
    rows: Vec<Row>,
    before: Option<Reading>,
    history: HashMap<String, VecDeque<Point>>,
    /// The latest alerts, the newest last.
    alerts: VecDeque<Alert>,
    /// Number of alerts that were read, but are too old to be kept.
    pub(super) older: u64,
    /// Number of alerts that were not read in time.
    pub(super) missed: u64,
    /// Operations that were in flight at the previous reading: instance, start, thread.
    seen: HashSet<(String, u64, u64)>,
    /// `CLOCK_MONOTONIC`, ns, at the last reading.
    pub(super) time: u64,
    /// The time of day of the last reading.
    pub(super) clock: String,
    /// The time between two readings.
    pub(super) interval: Duration,
    pub(super) sort: Column,
    pub(super) is_reversed: bool,
    pub(super) graph: Graph,
    /// The name of the selected instance.
    pub(super) selected: Option<String>,
    pub(super) filter: String,
    pub(super) prompt: Option<Prompt>,
    pub(super) is_paused: bool,
    pub(super) shows_details: bool,
    pub(super) shows_help: bool,
    /// What the list of late operations is grouped by; `None`: single alerts.
    pub(super) by: Option<By>,
    /// Whether the longest delays come first, instead of the newest alerts or the groups with the longest totals.
    pub(super) longest_first: bool,
    /// A message about the last key.
    pub(super) note: Option<String>,
    pub(super) has_colour: bool,
    pub(super) is_unicode: bool,
}

impl State {
    pub(super) fn new(interval: Duration, sort: Column) -> Self {
        Self {
            rows: Vec::new(),
            before: None,
            history: HashMap::new(),
            alerts: VecDeque::new(),
            older: 0,
            missed: 0,
            seen: HashSet::new(),
            time: 0,
            clock: String::new(),
            interval,
            sort,
            is_reversed: false,
            graph: Graph::P99,
            selected: None,
            filter: String::new(),
            prompt: None,
            is_paused: false,
            shows_details: false,
            shows_help: false,
            by: None,
            longest_first: false,
            note: None,
            has_colour: true,
            is_unicode: true,
        }
    }

    /// Applies a reading. The interval is the time since the previous reading.
    pub(super) fn update(&mut self, reading: Reading) {
        if self.before.is_some() {
            self.seen = self.in_flight().map(|(row, p)| identity(row, p)).collect();
        }
        self.rows = rows::rows(&reading, self.before.as_ref());
        for row in self.rows.iter().filter(|row| row.interval.is_some()) {
            let points = self.history.entry(row.name.clone()).or_default();
            points.push_back(Point {
                p99: row.quantile(P99),
                rate: row.rate().map(|rate| (rate * 1000.0) as u64),
            });
            if points.len() > HISTORY {
                points.pop_front();
            }
        }
        let names: HashSet<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
        self.history.retain(|name, _| names.contains(name.as_str()));
        self.alerts.extend(reading.alerts.iter().cloned());
        let excess = self.alerts.len().saturating_sub(KEPT);
        self.alerts.drain(..excess);
        self.older += reading.dropped + excess as u64;
        self.missed = self.missed.saturating_add(reading.missed);
        self.time = reading.time;
        self.before = Some(reading);
        self.keep_selection();
    }

    /// All instances, in the kernel's order.
    pub(super) fn all(&self) -> &[Row] {
        &self.rows
    }

    /// The instances that pass the filter, in the order of the screen.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let shown = self.rows.iter();
        let mut rows: Vec<&Row> = shown
            .filter(|row| self.passes(&row.name, &row.tracker))
            .collect();
        columns::sort(&mut rows, self.sort, self.is_reversed);
        rows
    }

    /// The selected instance, and its place on the screen.
    pub(super) fn selection(&self) -> Option<(usize, &Row)> {
        let rows = self.rows();
        let place = rows
            .iter()
            .position(|row| Some(&row.name) == self.selected.as_ref())?;
        Some((place, rows[place]))
    }

    /// Selects a row by its place on the screen; the last row if there are fewer rows.
    pub(super) fn select(&mut self, place: usize) {
        let rows = self.rows();
        let name = rows
            .get(place.min(rows.len().saturating_sub(1)))
            .map(|row| row.name.clone());
        self.selected = name;
    }

    /// Selects the first row if the selected one is gone.
    pub(super) fn keep_selection(&mut self) {
        if self.selection().is_none() {
            self.select(0);
        }
    }

    fn passes(&self, name: &str, tracker: &str) -> bool {
        let filter = self.filter.to_lowercase();
        name.to_lowercase().contains(&filter) || tracker.contains(&filter)
    }

    /// The alerts of the instances that pass the filter, in the order of the screen.
    pub(super) fn alerts(&self) -> Vec<&Alert> {
        let newest = self.alerts.iter().rev();
        let mut alerts: Vec<&Alert> = newest
            .filter(|alert| self.passes(&alert.instance, &alert.tracker))
            .collect();
        if self.longest_first {
            alerts.sort_by_key(|alert| Reverse(alert.delay));
        }
        alerts
    }

    /// The groups of the alerts of the instances that pass the filter, in the order of the screen.
    pub(super) fn groups(&self, by: By) -> Vec<Group> {
        let mut groups = Groups::new(by);
        let alerts = self.alerts.iter();
        alerts
            .filter(|alert| self.passes(&alert.instance, &alert.tracker))
            .for_each(|alert| groups.see(alert));
        let mut groups = groups.take();
        if self.longest_first {
            groups.sort_by_key(|group| Reverse(group.totals.sum.longest));
        }
        groups
    }

    /// The oldest operations in flight of the instances that pass the filter, at most `most`.
    ///
    /// Each instance has an equal share, and gives unused lines to the others: the threads that
    /// sleep for hours in an instance of `offcpu` must not hide a hanging disk.
    pub(super) fn pending(&self, most: usize) -> Vec<(&Row, &Pending)> {
        let mut rows = self.rows();
        rows.retain(|row| !row.oldest.is_empty());
        rows.sort_by_key(|row| row.oldest.len());
        let mut shown = Vec::new();
        for (nth, row) in rows.iter().enumerate() {
            let share = (most - shown.len()) / (rows.len() - nth);
            // With fewer lines than instances, the instances with the most operations get a line.
            shown.extend(row.oldest.iter().take(share).map(|p| (*row, p)));
        }
        shown.sort_by_key(|(_, pending)| pending.fields.number("start"));
        shown
    }

    /// Whether an operation was in flight at the previous reading.
    pub(super) fn has_grown(&self, row: &Row, pending: &Pending) -> bool {
        self.seen.contains(&identity(row, pending))
    }

    fn in_flight(&self) -> impl Iterator<Item = (&Row, &Pending)> {
        let rows = self.rows.iter();
        rows.flat_map(|row| row.oldest.iter().map(move |pending| (row, pending)))
    }

    /// The values of the graph of an instance, the newest last.
    pub(super) fn graph_of(&self, name: &str) -> Vec<Option<u64>> {
        let points = self.history.get(name).into_iter().flatten();
        let value = |point: &Point| match self.graph {
            Graph::P99 => point.p99,
            Graph::Rate => point.rate,
        };
        points.map(value).collect()
    }
}

fn identity(row: &Row, pending: &Pending) -> (String, u64, u64) {
    let number = |key| pending.fields.number(key).unwrap_or(0);
    (row.name.clone(), number("start"), number("tid"))
}
