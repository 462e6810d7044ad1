// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One instance in detail: the histogram of the last interval, and the counters since its start.

use lt_common::out;
use lt_proc::{Log2Hist, Nanos, Unit};
use ratatui::text::{Line, Span};

use super::heading_line;
use crate::cmd::top::rows::Row;
use crate::cmd::top::state::State;

/// The width of the histogram: bounds, count, bar.
const RANGE: usize = 18;
const COUNT: usize = 9;
const LEAST_BAR: usize = 8;
const MOST_BAR: usize = 40;

/// The width of a counter with its name.
const COUNTER: usize = 30;

pub(super) fn lines(state: &State, row: &Row, width: usize, room: usize) -> Vec<Line<'static>> {
    let Some(room) = room.checked_sub(1) else {
        return Vec::new();
    };
    let span = match row.interval {
        Some(_) => "in the interval",
        None => "since its start",
    };
    let bar = (width / 2)
        .saturating_sub(RANGE + COUNT + 2)
        .clamp(LEAST_BAR, MOST_BAR);
    let left = RANGE + COUNT + 2 + bar;
    let histogram = histogram(row, bar, room, state.is_unicode);
    let across = (width.saturating_sub(left + 2) / COUNTER).max(1);
    let counters = counters(row, room, across);
    let ended = format!("{}: {} ended {span}", row.name, out::thousands(row.ended));
    let threshold = row
        .threshold
        .map(|ns| format!(", threshold {}", Nanos(ns).exact()));
    let title = format!(
        "{:<left$}  counters since its start ({}{})",
        out::fit(&ended, left),
        row.tracker,
        threshold.unwrap_or_default()
    );
    let mut lines = vec![heading_line(&title, width)];
    for n in 0..histogram.len().max(counters.len()) {
        let text = |lines: &[String]| lines.get(n).cloned().unwrap_or_default();
        lines.push(Line::from(vec![
            Span::raw(format!("{:<left$}  ", text(&histogram))),
            Span::raw(text(&counters)),
        ]));
    }
    lines
}

/// Returns a line for each power of two from the shortest delay on; if room is short, only the
/// lines of the longest delays.
fn histogram(row: &Row, bar: usize, room: usize, is_unicode: bool) -> Vec<String> {
    let merged = Log2Hist::merge(&row.delays, Unit::Nsecs);
    let rows: Vec<(u64, u64, u64)> = merged.rows().skip_while(|(_, _, n)| *n == 0).collect();
    if rows.is_empty() {
        return vec!["no delay recorded".to_string()];
    }
    let most = rows.iter().map(|(_, _, n)| *n).max().unwrap_or(1).max(1);
    let star = if is_unicode { "█" } else { "#" };
    let hidden = rows.len().saturating_sub(room);
    let line = |&(low, high, count): &(u64, u64, u64)| {
        let filled = u128::from(count) * bar as u128 / u128::from(most);
        // Even a single delay is visible.
        let filled = usize::try_from(filled)
            .unwrap_or(bar)
            .max(usize::from(count > 0));
        let range = format!("{} - {}", Nanos(low), Nanos(high.saturating_add(1)));
        format!(
            "{range:>RANGE$} {:>COUNT$} {}",
            out::thousands(count),
            star.repeat(filled)
        )
    };
    rows.iter().skip(hidden).map(line).collect()
}

/// Lays out the counters that are not 0 in `across` columns, losses first.
fn counters(row: &Row, room: usize, across: usize) -> Vec<String> {
    let lost: Vec<&str> = row.lost().map(|(key, _)| key).collect();
    let others = row
        .stats
        .iter()
        .filter(|(key, n)| *n > 0 && !lost.contains(key));
    let mut cells: Vec<String> = row.lost().map(|(key, n)| cell(key, n)).collect();
    cells.extend(others.map(|(key, n)| cell(key, n)));
    if cells.len() > room * across && room > 0 {
        let hidden = cells.len() - room * across + 1;
        cells.truncate(room * across - 1);
        cells.push(format!("{hidden} more: see `list {}`", row.name));
    }
    let tall = cells.len().div_ceil(across);
    (0..tall)
        .map(|n| {
            let line: String = cells
                .iter()
                .skip(n)
                .step_by(tall)
                .map(|cell| padded(cell))
                .collect();
            line.trim_end().to_string()
        })
        .collect()
}

fn padded(cell: &str) -> String {
    format!("{:<COUNTER$}", out::fit(cell, COUNTER - 1))
}

fn cell(key: &str, n: u64) -> String {
    let value = match key {
        "min" | "mean" | "max" => Nanos(n).to_string(),
        _ => out::thousands(n),
    };
    let width = COUNTER - 2 - key.len().min(COUNTER - 3);
    format!("{key} {value:>width$}")
}
