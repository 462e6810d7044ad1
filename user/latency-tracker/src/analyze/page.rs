// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A path on a page: its lanes, one for each depth in the chain of waiting threads, and its tables.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use lt_common::out;
use lt_model::ThreadId;
use lt_model::why::{Piece, Wait, causes, waits};
use lt_proc::Nanos;

use super::lanes::{Described, Scene, Upper, UpperRow, kind};
use super::show::Shown;
use super::words::{Facts, waits_for};
use crate::html::{Cell, Cells, Column, Kind, Page, Row, Table, View};

/// Maximum number of lanes of a path; deeper steps share the last lane.
pub(super) const DEEPEST: usize = 12;
/// Maximum number of rows of a table.
pub(super) const ROWS: usize = 5000;

/// An alert: its name, start and end.
pub(crate) type Alarm = (String, (u64, u64));

/// Limits of drawing: the maximum number of bars, and the flag that a signal sets.
#[derive(Clone, Copy)]
pub(crate) struct Limits<'a> {
    pub(crate) bars: usize,
    pub(crate) interrupted: &'a AtomicBool,
}

/// Adds a path and the activity around it to a view of the time `range`, within limits.
pub(crate) fn path(
    view: &mut View,
    shown: &Shown<'_>,
    facts: &Facts,
    range: (u64, u64),
    alarm: Option<&Alarm>,
    limits: Limits<'_>,
) -> Result<()> {
    let model = shown.model;
    let waits = waits(model, shown.thread, shown.range.0, shown.range.1);
    let mut rows: Vec<UpperRow> = alarm_row(alarm).into_iter().collect();
    rows.extend(rows_of(shown, &waits, &mut view.left_out));
    let describe = |number: usize| match number.checked_sub(1) {
        None => alarm_bar(alarm),
        Some(i) => match (
            shown.pieces.get(i),
            waits.get(i.wrapping_sub(shown.pieces.len())),
        ) {
            (Some(piece), _) => step(shown, piece),
            (None, Some(wait)) => Described {
                kind: Kind::Blocked,
                text: format!(
                    "{} {}",
                    shown.name(wait.thread),
                    waits_for(model, wait.kind, wait.by, shown.range.1)
                ),
                cpu: None,
                more: None,
            },
            (None, None) => alarm_bar(alarm),
        },
    };
    let by = |wait: &Wait| model.waker(wait.waker?)?.by();
    let mut threads: Vec<ThreadId> = vec![shown.thread];
    threads.extend(shown.pieces.iter().map(|piece| piece.thread));
    threads.extend(waits.iter().filter_map(by));
    let scene = Scene {
        model,
        facts,
        range,
        upper: Some(Upper {
            name: "Critical path",
            rows,
            describe: &describe,
        }),
        threads,
        cpus: shown.pieces.iter().filter_map(|piece| piece.cpu).collect(),
        waits: &waits,
        most: limits.bars,
        interrupted: limits.interrupted,
    };
    scene.draw(view)?;
    view.tables.push(table_of_causes(shown));
    view.tables.push(table_of_steps(shown, range.0));
    Ok(())
}

/// Adds only an alert, and the activity around it.
pub(crate) fn without_path(
    view: &mut View,
    model: &lt_model::Model,
    facts: &Facts,
    range: (u64, u64),
    alarm: &Alarm,
    limits: Limits<'_>,
) -> Result<()> {
    let describe = |_| alarm_bar(Some(alarm));
    let scene = Scene {
        model,
        facts,
        range,
        upper: Some(Upper {
            name: "Alert",
            rows: alarm_row(Some(alarm)).into_iter().collect(),
            describe: &describe,
        }),
        threads: Vec::new(),
        cpus: Vec::new(),
        waits: &[],
        most: limits.bars,
        interrupted: limits.interrupted,
    };
    scene.draw(view)
}

fn alarm_row(alarm: Option<&Alarm>) -> Option<UpperRow> {
    let (_, (begin, end)) = alarm?;
    Some(UpperRow {
        name: "Alert".into(),
        bars: vec![(*begin, *end, 0)],
    })
}

fn alarm_bar(alarm: Option<&Alarm>) -> Described {
    Described {
        kind: Kind::Alert,
        text: alarm.map(|(name, _)| name.clone()).unwrap_or_default(),
        cpu: None,
        more: None,
    }
}

fn step(shown: &Shown<'_>, piece: &Piece) -> Described {
    let who = shown.name(piece.thread);
    let is_runnable = piece.cause.is_runnable();
    Described {
        kind: kind(piece.cause),
        text: format!("{who} {}", shown.what(piece.cause)),
        cpu: piece.cpu,
        more: is_runnable.then(|| shown.step(piece)),
    }
}

/// The lanes of a path. The bars of steps are numbered from 1, and the bars of waits follow.
fn rows_of(shown: &Shown<'_>, waits: &[Wait], left_out: &mut Vec<String>) -> Vec<UpperRow> {
    let deepest = shown.pieces.iter().map(|p| p.depth).max().unwrap_or(0);
    if deepest >= DEEPEST {
        left_out.push(format!(
            "Chains of up to {deepest} waiting threads are drawn in {DEEPEST} lanes: the last one has all deeper steps."
        ));
    }
    let first = shown.name(shown.thread);
    let mut rows = lanes(deepest, [&first, "waited for", "which waited for"]);
    for (number, piece) in (1..).zip(shown.pieces) {
        if let Some(row) = rows.get_mut(piece.depth.min(DEEPEST - 1)) {
            row.bars.push((piece.begin, piece.end, number));
        }
    }
    for (number, wait) in (shown.pieces.len() + 1..).zip(waits) {
        let first = shown.pieces.partition_point(|p| p.end <= wait.begin);
        let inside = shown.pieces.iter().skip(first);
        let mut inside = inside.take_while(|piece| piece.begin < wait.end);
        let is_explained = wait.by.is_some() && inside.all(|piece| piece.depth > wait.depth);
        if is_explained
            && wait.depth < DEEPEST - 1
            && let Some(row) = rows.get_mut(wait.depth)
        {
            row.bars.push((wait.begin, wait.end, number));
        }
    }
    for row in &mut rows {
        row.bars.sort_unstable();
    }
    rows
}

/// Empty lanes of a chain of this depth, with the names of the first, the second, and all deeper lanes.
pub(super) fn lanes(deepest: usize, names: [&str; 3]) -> Vec<UpperRow> {
    let lane = |depth: usize| UpperRow {
        name: names[depth.min(2)].into(),
        bars: Vec::new(),
    };
    (0..=deepest.min(DEEPEST - 1)).map(lane).collect()
}

fn table_of_causes(shown: &Shown<'_>) -> Table {
    let took = shown.range.1 - shown.range.0;
    let all = causes(shown.pieces);
    let row = |sum: &lt_model::why::Sum| {
        let cells = vec![
            sum.time.into(),
            Cell::percent(sum.time, took),
            sum.count.into(),
            sum.longest.into(),
            shown.name(sum.thread).into(),
            shown.what(sum.cause).into(),
        ];
        Row(cells, None)
    };
    let rest = all.iter().skip(ROWS);
    Table {
        title: "Where the time went".into(),
        columns: vec![
            Column("Time", Cells::Time),
            Column("%", Cells::Percent),
            Column("Count", Cells::Count),
            Column("Longest", Cells::Time),
            Column("Thread", Cells::Text),
            Column("Cause", Cells::Text),
        ],
        rows: all.iter().take(ROWS).map(row).collect(),
        note: shorter(rest.clone().count(), rest.map(|sum| sum.time).sum()),
    }
}

fn table_of_steps(shown: &Shown<'_>, origin: u64) -> Table {
    let took = |piece: &Piece| piece.end - piece.begin;
    let mut longest: Vec<&Piece> = shown.pieces.iter().collect();
    longest.sort_by_key(|piece| std::cmp::Reverse(took(piece)));
    let rest = longest.split_off(longest.len().min(ROWS));
    longest.sort_by_key(|piece| piece.begin);
    let row = |piece: &&Piece| {
        let (begin, end) = (piece.begin - origin, piece.end - origin);
        let indent = piece.depth.min(DEEPEST);
        let cpu = piece.cpu.map(u64::from);
        let cells = vec![
            (piece.begin - shown.range.0).into(),
            took(piece).into(),
            format!("{:indent$}{}", "", shown.name(piece.thread)).into(),
            cpu.map_or_else(|| String::new().into(), Cell::from),
            shown.step(piece).into(),
        ];
        Row(cells, Some((begin, end)))
    };
    Table {
        title: "The critical path, step by step".into(),
        columns: vec![
            Column("At", Cells::At),
            Column("Took", Cells::Time),
            Column("Thread", Cells::Text),
            Column("CPU", Cells::Count),
            Column("Step", Cells::Text),
        ],
        rows: longest.iter().map(row).collect(),
        note: shorter(rest.len(), rest.iter().map(|piece| took(piece)).sum()),
    }
}

/// A note about the shortest rows, which the table leaves out.
pub(crate) fn shorter(count: usize, time: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "Not in this table: {} shorter ones, {} in all.",
            out::thousands(count as u64),
            Nanos(time)
        )
    })
}

/// The page of `analyze path`.
pub(super) fn page(
    shown: &Shown<'_>,
    text: String,
    notes: Vec<String>,
    limits: Limits<'_>,
) -> Result<Page> {
    let thread = shown.name(shown.thread);
    let mut view = View {
        verdict: shown.verdict(),
        ..view_of_range(&thread, shown.range, text, notes)
    };
    view.notes.extend(shown.not_recorded());
    path(&mut view, shown, shown.facts, shown.range, None, limits)?;
    Ok(page_of(format!("Critical path of {thread}"), view))
}

/// The page of one view.
pub(super) fn page_of(title: String, view: View) -> Page {
    Page {
        title,
        choice: "Thread",
        left_out: Vec::new(),
        views: vec![view],
    }
}

/// A view of a thread in a range, without lanes and tables.
pub(super) fn view_of_range(
    thread: &str,
    (from, to): (u64, u64),
    text: String,
    notes: Vec<String>,
) -> View {
    View {
        name: thread.into(),
        text,
        facts: vec![
            ("Thread".into(), thread.into()),
            ("Took".into(), Nanos(to - from).to_string()),
            ("From".into(), format!("{from} ns of the trace's clock")),
            ("To".into(), format!("{to} ns")),
        ],
        notes,
        origin: from,
        length: to - from,
        focus: (0, to - from),
        ..View::default()
    }
}
