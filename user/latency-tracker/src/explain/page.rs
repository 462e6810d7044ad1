// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The page of `explain --html`, whose time lines `--svg` draws: a view for each alert, with its explanation, its path
//! and the activity around it.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use lt_common::out;
use lt_model::Use;
use lt_proc::evidence::Evidence;
use lt_proc::{Alert, Nanos};

use super::draw::{MARGIN, alarm_name};
use super::proofs::ByThread;
use super::why::Why;
use super::{Report, block, proofs, stacks_of, with_stacks};
use crate::analyze::page::{Limits, path, without_path};
use crate::analyze::words::{Facts, used_by};
use crate::html::{Cell, Cells, Column, Page, Row, Table, View};
use crate::trace::Told;

/// Maximum number of views. If there are more alerts, only those with the longest delays have a view.
const VIEWS: usize = 50;

/// The page. Given the number of views, `bars` returns the maximum number of bars in each. `beside`: see
/// [`Why::new`].
pub(super) fn page(
    told: &Told,
    evidence: &Evidence,
    beside: &ByThread<'_>,
    reports: &[Report<'_>],
    bars: fn(usize) -> usize,
    interrupted: &AtomicBool,
) -> Result<Page> {
    let mut longest: Vec<usize> = (0..reports.len()).collect();
    longest.sort_by_key(|i| std::cmp::Reverse(reports.get(*i).map(|r| r.alert.delay)));
    longest.truncate(VIEWS);
    longest.sort_unstable();
    let mut left_out = Vec::new();
    if longest.len() < reports.len() {
        left_out.push(format!(
            "Of {} alerts, only the {VIEWS} with the longest delays are included; explain --seq chooses others.",
            reports.len()
        ));
    }
    let limits = Limits {
        bars: bars(longest.len()),
        interrupted,
    };
    let facts = Facts {
        cgroups: proofs::cgroups(evidence),
        ..Facts::NONE
    };
    let chosen = longest.iter().filter_map(|i| reports.get(*i));
    let views = chosen.map(|report| view(told, evidence, beside, &facts, report, limits));
    let views: Vec<View> = views.collect::<Result<_>>()?;
    let title = match &views[..] {
        [one] => one.name.clone(),
        views => out::plural(views.len(), "alert"),
    };
    Ok(Page {
        title,
        choice: "Alert",
        left_out,
        views,
    })
}

fn view(
    told: &Told,
    evidence: &Evidence,
    beside: &ByThread<'_>,
    facts: &Facts,
    report: &Report<'_>,
    limits: Limits<'_>,
) -> Result<View> {
    let alert = report.alert;
    let from = alert.start();
    let to = alert.time.max(from.saturating_add(1));
    let margin = (to - from) / MARGIN;
    let range = (from.saturating_sub(margin), to.saturating_add(margin));
    let alarm = (alarm_name(alert), (from, to));
    let mut view = View {
        name: alarm.0.clone(),
        text: report.text.clone(),
        verdict: report.verdict.as_deref().map(out::printable),
        facts: facts_of(alert),
        origin: range.0,
        length: (range.1 - range.0).max(1),
        focus: (from - range.0, to - range.0),
        ..View::default()
    };
    if !told.has_threads() {
        view.notes.push(
            "No time line: the trace has no event sched_switch, so which thread ran is not recorded."
                .into(),
        );
        return Ok(view);
    }
    if block::explains(alert) {
        without_path(&mut view, &told.model, facts, range, &alarm, limits)?;
        return Ok(view);
    }
    let why = Why::new(told, alert, evidence, beside.during(alert));
    // The text is not wrapped, even if standard output is a terminal.
    view.text = out::whole(|| with_stacks(why.text(), &stacks_of(alert)));
    view.notes = why.notes();
    match why.shown() {
        Some(shown) => path(&mut view, &shown, facts, range, Some(&alarm), limits)?,
        None => without_path(&mut view, &told.model, facts, range, &alarm, limits)?,
    }
    view.tables.extend(table_of_cpu(told, alert, why.used()));
    Ok(view)
}

/// The facts of an alert: the common facts, and the fields of its tracker.
fn facts_of(alert: &Alert) -> Vec<(String, String)> {
    let fact = |(name, value): (&str, String)| (name.to_string(), out::printable(&value));
    let all = [
        ("Task", super::owner(alert)),
        ("Delay", Nanos(alert.delay).to_string()),
        ("Threshold", Nanos(alert.threshold).exact()),
        ("Reason", alert.reason.to_string()),
        ("CPU", alert.cpu.to_string()),
        ("Raised at", format!("{} ns of CLOCK_MONOTONIC", alert.time)),
    ];
    let fields = alert.fields.0.iter();
    let fields = fields.map(|field| (field.key.as_str(), field.value.text().into_owned()));
    all.into_iter().chain(fields).map(fact).collect()
}

/// The use of the alert's CPU.
fn table_of_cpu(told: &Told, alert: &Alert, used: &[(Use, u64)]) -> Option<Table> {
    let row = |(of, time): &(Use, u64)| {
        let cells = vec![
            (*time).into(),
            Cell::percent(*time, alert.delay),
            used_by(&told.model, *of, alert.time).into(),
        ];
        Row(cells, None)
    };
    (!used.is_empty()).then(|| Table {
        title: format!("What used CPU {}, on which the delay ended", alert.cpu),
        columns: vec![
            Column("Time", Cells::Time),
            Column("%", Cells::Percent),
            Column("User", Cells::Text),
        ],
        rows: used.iter().map(row).collect(),
        note: None,
    })
}

#[cfg(test)]
mod tests;
