// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Late operations in groups: by task, by the subject of their tracker, or by the kernel stack of their task.
//!
//! An operation counts once, even if its timeout and its end were separate alerts: in a table or in JSON, once for each
//! interval that has alerts about it; in the live view, once among the alerts that are kept. It counts with its delay
//! at the last of these alerts: the whole delay if the operation has ended. Groups of different instances are not
//! merged: an operation of one instance may contain an operation of another.

use std::collections::HashMap;

use lt_common::out;
use lt_proc::Alert;
use serde::Serialize;

use crate::cli::By;
use crate::stacks::{Open, Operation, Sum, name};

/// The fields of an alert that name its subject, by tracker. Operations of `module` and `pair` have no common subject.
pub(super) const SUBJECTS: [(&str, &[&str]); 15] = [
    ("accept", &["local"]),
    ("block", &["disk"]),
    ("func", &["function"]),
    ("io", &["class", "disk"]),
    ("irq", &["irq", "action"]),
    ("lock", &["lock", "kind"]),
    ("net", &["dev"]),
    ("offcpu", &["comm"]),
    ("reclaim", &["kind"]),
    ("runqueue", &["comm"]),
    ("softirq", &["name"]),
    ("syscall", &["call"]),
    ("tree", &["origin", "action"]),
    ("wakeup", &["comm"]),
    ("workqueue", &["func"]),
];

impl By {
    pub(super) fn heading(self) -> &'static str {
        match self {
            By::Task => "BY TASK",
            By::Subject => "BY SUBJECT",
            By::Stack => "BY STACK",
        }
    }
}

/// What the operations of a group have in common, besides their instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub(super) enum Key {
    /// The task that owns the operations.
    Task { pid: u64, tid: u64, comm: String },
    /// The subject of the operations; empty if their tracker has none.
    Subject { subject: String },
    /// The functions of the stack, the innermost first; empty if not recorded.
    Stack { stack: Vec<String> },
}

impl Key {
    /// Returns the key of an alert. A stack stays empty: it may be in another alert of the operation.
    fn of(alert: &Alert, by: By) -> Self {
        match by {
            By::Task => Self::Task {
                pid: alert.pid,
                tid: alert.tid,
                comm: alert.comm.text().into_owned(),
            },
            By::Subject => Self::Subject {
                subject: subject(alert),
            },
            By::Stack => Self::Stack { stack: Vec::new() },
        }
    }

    /// Returns the text of a cell.
    pub(super) fn text(&self) -> String {
        let text = match self {
            Self::Task { comm, tid, .. } => format!("{comm}/{tid}"),
            Self::Subject { subject } if subject.is_empty() => "-".to_string(),
            Self::Subject { subject } => subject.clone(),
            Self::Stack { stack } if stack.is_empty() => "[no stack]".to_string(),
            Self::Stack { stack } => stack.join(" <- "),
        };
        out::printable(&text)
    }
}

/// Returns the value of the field that names the subject; `key=value` if there are several.
fn subject(alert: &Alert) -> String {
    let known = SUBJECTS
        .iter()
        .find(|(tracker, _)| *tracker == alert.tracker);
    let keys = known.map(|(_, keys)| *keys).unwrap_or_default();
    let value = |key: &str| match key {
        "comm" => Some(alert.comm.text()),
        _ => alert.fields.text(key),
    };
    let word = |key: &&str| {
        let text = value(key).filter(|text| !text.is_empty())?;
        Some(match keys.len() {
            1 => text.into_owned(),
            _ => format!("{key}={text}"),
        })
    };
    let words: Vec<String> = keys.iter().filter_map(word).collect();
    words.join(" ")
}

/// The delays of a group, ns.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Totals {
    #[serde(flatten)]
    pub(super) sum: Sum,
    /// Time of the last alert, `CLOCK_MONOTONIC` ns.
    pub(super) last: u64,
    /// Whether an operation had not ended, or began before its instance: total and longest are lower bounds.
    pub(super) is_at_least: bool,
}

/// A group.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Group {
    pub(super) instance: String,
    #[serde(flatten)]
    pub(super) key: Key,
    #[serde(flatten)]
    pub(super) totals: Totals,
}

/// The groups of the alerts so far. Memory grows with the number of groups and of operations in flight, not of alerts.
#[derive(Debug)]
pub(super) struct Groups {
    by: By,
    open: Open<(String, Key)>,
    /// By instance and key.
    all: HashMap<(String, Key), Totals>,
}

impl Groups {
    pub(super) fn new(by: By) -> Self {
        Self {
            by,
            open: Open::default(),
            all: HashMap::new(),
        }
    }

    /// Adds an alert.
    pub(super) fn see(&mut self, alert: &Alert) {
        let tag = (alert.instance.clone(), Key::of(alert, self.by));
        if let Some(operation) = self.open.see(alert, tag) {
            self.add(operation, true);
        }
    }

    fn add(&mut self, operation: Operation<(String, Key)>, has_ended: bool) {
        let (instance, mut key) = operation.tag;
        if let Key::Stack { stack } = &mut key {
            *stack = operation.stack.iter().map(|frame| name(frame)).collect();
        }
        let totals = self.all.entry((instance, key)).or_default();
        totals.sum.add(operation.delay);
        totals.last = totals.last.max(operation.seen);
        totals.is_at_least |= operation.is_at_least || !has_ended;
    }

    /// Returns the groups of the alerts since the last call, the longest total first.
    pub(super) fn take(&mut self) -> Vec<Group> {
        for (_, operation) in std::mem::take(&mut self.open).rest() {
            self.add(operation, false);
        }
        let all = self.all.drain();
        let mut groups: Vec<Group> = all
            .map(|((instance, key), totals)| Group {
                instance,
                key,
                totals,
            })
            .collect();
        groups.sort_by(|a, b| {
            let rank = |group: &Group| (group.totals.sum.total, group.totals.sum.longest);
            let by_name = || (&a.instance, &a.key).cmp(&(&b.instance, &b.key));
            rank(b).cmp(&rank(a)).then_with(by_name)
        });
        groups
    }
}
