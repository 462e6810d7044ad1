// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result of `stacks` for programs: JSON, and folded stacks for flame graphs.

use std::collections::BTreeMap;

use anyhow::Result;
use lt_common::out;
use serde::Serialize;

use super::args::By;
use super::operation::name;
use super::report::missing;
use super::source::Source;
use super::tally::{Group, Sum, Sums};
use super::user::{User, text};

/// What `--json` prints; times in ns.
#[derive(Serialize)]
struct Report<'a> {
    /// The instance or the file; null for an instance of this run.
    name: Option<&'a str>,
    recipe: Option<&'a str>,
    tracker: Option<&'a str>,
    /// The tracker and its parameters.
    line: Option<&'a str>,
    by: By,
    /// Whether the sums are of all operations that ended, late or not (`by=stack`).
    exact: bool,
    /// Lowest and highest threshold: the sums cover only operations that took longer, or that timed out. Null if the
    /// sums are exact.
    threshold: Option<[u64; 2]>,
    /// How long alerts were read.
    duration: Option<u64>,
    #[serde(flatten)]
    all: Sum,
    /// All operations that ended, late or not; null unless the instance is of this run.
    ended: Option<Ended>,
    stacks: Vec<Row<'a>>,
    /// Operations that were in flight at the end for longer than the threshold, and are not in `stacks`.
    in_flight: Vec<Row<'a>>,
    /// The counters of missing or incomplete data that are not 0.
    missing: BTreeMap<String, u64>,
    /// The exit status of the command, 128+N after signal N; null without a command, or if it still runs.
    status: Option<u8>,
}

#[derive(Serialize)]
struct Ended {
    count: u64,
    total: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    sum: Sum,
    tasks: Vec<Task<'a>>,
    /// Where the tasks were, the innermost function first; empty if not recorded.
    stack: &'a [String],
    waker_stack: &'a [String],
    /// Whether `stack` or `waker_stack` is cut off.
    cut_off: bool,
    /// Where the tasks were in user space, the innermost function first; empty if not recorded.
    user_stack: Vec<String>,
    user_cut_off: bool,
}

#[derive(Serialize)]
struct Task<'a> {
    comm: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    waker: &'a str,
    #[serde(flatten)]
    sum: Sum,
}

fn row(group: &Group) -> Row<'_> {
    let tasks = group.tasks.iter();
    Row {
        sum: group.sum,
        tasks: tasks
            .map(|((comm, waker), sum)| Task {
                comm,
                waker,
                sum: *sum,
            })
            .collect(),
        stack: &group.stack,
        waker_stack: &group.waker_stack,
        cut_off: group.is_incomplete(),
        user_stack: group.functions().iter().map(text).collect(),
        user_cut_off: group.is_user_cut(),
    }
}

pub(super) fn json(source: &Source, sums: &Sums) -> Result<String> {
    let missing = missing(source, sums).into_iter();
    let set = source.threshold.map(|threshold| (threshold, threshold));
    let threshold = sums.limits.thresholds.or(set);
    let threshold = threshold.map(|(low, high)| [low, high]);
    let recipe = source.recipe.as_ref();
    let report = Report {
        name: source.name.as_deref(),
        recipe: recipe.map(|recipe| recipe.name.as_str()),
        tracker: source.tracker.as_deref(),
        line: source.line.as_deref(),
        by: sums.by,
        exact: sums.is_exact,
        threshold: threshold.filter(|_| !sums.is_exact),
        duration: source.time.map(|time| time.as_nanos() as u64),
        all: sums.all,
        ended: source.ended.map(|(count, total)| Ended { count, total }),
        stacks: sums.groups.iter().map(row).collect(),
        in_flight: sums.in_flight.iter().map(row).collect(),
        missing: missing.map(|(key, n, _)| (key, n)).collect(),
        status: match source.outcome {
            Some(lt_common::Outcome::Status(status)) => Some(status),
            _ => None,
        },
    };
    Ok(serde_json::to_string(&report)?)
}

/// A line for each stack and task, `comm;outer;...;inner MICROSECONDS`; without `comm` if the sums are not by task. The
/// functions of the program, if recorded, come before the functions of the kernel, as in bcc's offcputime. With
/// `--by waker`, the name and the stack are the waker's. With `--by both`, the task's name and stack are followed by
/// `--`, the waker's stack, the innermost function first, and the waker's name, as in bcc's offwaketime.
pub(super) fn folded(sums: &Sums) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |path: String, sum: &Sum| {
        lines.push(format!("{path} {}", sum.total.saturating_add(500) / 1000));
    };
    for group in &sums.groups {
        for ((comm, waker), sum) in &group.tasks {
            add(path(group, Some(comm.as_str()), waker, sums.by), sum);
        }
        if group.tasks.is_empty() {
            add(path(group, None, "", sums.by), &group.sum);
        }
    }
    lines
}

fn path(group: &Group, comm: Option<&str>, waker: &str, by: By) -> String {
    let mut words: Vec<String> = Vec::new();
    let cut = |is_cut: bool| is_cut.then(|| "[cut off]".to_string());
    let down = |words: &mut Vec<String>, stack: &[String], is_cut: bool| {
        if stack.is_empty() {
            words.push("[no stack]".into());
        } else {
            words.extend(cut(is_cut));
        }
        words.extend(stack.iter().rev().map(|frame| word(&name(frame))));
    };
    match by {
        By::Waker => {
            words.push(word(waker));
            down(&mut words, &group.waker_stack, group.is_waker_cut);
        }
        By::Kernel | By::Both => {
            words.extend(comm.map(word));
            words.extend(cut(group.is_user_cut()));
            let user: Vec<String> = group.user.iter().flat_map(User::names).collect();
            words.extend(user.iter().rev().map(|function| word(function)));
            down(&mut words, &group.stack, group.is_cut);
            if !group.waker_stack.is_empty() {
                words.push("--".into());
                words.extend(group.waker_stack.iter().map(|frame| word(&name(frame))));
                words.extend(cut(group.is_waker_cut));
                words.push(word(waker));
            }
        }
    }
    words.join(";")
}

/// Replaces characters in a name that would end the frame or the line.
fn word(name: &str) -> String {
    match name {
        "" => "[unknown]".into(),
        name => out::printable(name).replace(';', ":"),
    }
}
