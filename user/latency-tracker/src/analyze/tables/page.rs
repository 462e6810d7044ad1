// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `--html`: the printed text, the heat map, the rows with the largest sums and their histograms, and the longest
//! operations.

use std::cmp::Reverse;

use lt_common::exec::quoted_if_odd;
use lt_common::out;
use lt_model::tables::{Sums, Table};
use lt_proc::Nanos;

use super::super::page::{ROWS, page_of};
use super::columns::{Value, of_rows, of_worst, row};
use super::text::{self, title};
use super::view::{self, Line, Report};
use crate::heat::{self, HeatMap, octave, octaves};
use crate::html::{Cell, Cells, Column, Page, Row, Table as Sheet, View};

/// The page, with the heat map of the same operations.
pub(super) fn page(report: &Report<'_>, mut map: HeatMap) -> Page {
    // The page has the notes above the text.
    let notes = std::mem::take(&mut map.notes);
    let (from, to) = report.found.range;
    let trace = report.args.trace.display().to_string();
    let tables = report.found.tables.tables.iter();
    let tables = tables.flat_map(|table| [rows(report, table), worst(report, table)]);
    let view = View {
        name: report.found.subject.name().into(),
        text: out::whole(|| text::lines(report)).join("\n"),
        picture: heat::svg(&map),
        facts: vec![
            ("Trace".into(), out::printable(&trace)),
            ("Command".into(), command()),
            ("Took".into(), Nanos(to - from).to_string()),
            ("From".into(), format!("{from} ns of the trace's clock")),
            ("To".into(), format!("{to} ns")),
        ],
        notes,
        tables: tables.filter(|table| !table.rows.is_empty()).collect(),
        ..View::default()
    };
    page_of(map.heading, view)
}

/// The command line of this process.
fn command() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted_if_odd(&word.to_string_lossy()));
    let words: Vec<_> = std::iter::once("latency-tracker".into())
        .chain(words)
        .collect();
    out::printable(&words.join(" "))
}

/// The rows with the largest sums, below a row for all operations.
fn rows(report: &Report<'_>, table: &Table) -> Sheet {
    let mut columns = of_rows(report, table);
    columns.push(Column("Durations", Cells::Histogram));
    let mut lines = report.rows(table);
    lines.sort_by_key(|line| Reverse(line.row.sums.sum));
    let all = (lines.len() > 1).then_some(None);
    let left = lines.split_off(lines.len().min(ROWS)).len();
    let cells = |line: Option<&Line<'_>>| {
        let values = row(report, table, line);
        let mut cells: Vec<Cell> = values.iter().map(Value::cell).collect();
        let sums = &line.map_or(&table.whole, |line| line.row).sums;
        cells.push(histogram(sums));
        Row(cells, None)
    };
    let left = (left > 0).then(|| {
        let left = out::thousands(left as u64);
        format!("Rows with smaller sums that are not in this table: {left}.")
    });
    let is_rounded = !table.whole.sums.is_exact();
    let notes: Vec<_> = left
        .into_iter()
        .chain(is_rounded.then(text::rounded))
        .collect();
    Sheet {
        title: format!("{} (by {})", title(table.kind), view::grouping(table)),
        columns,
        rows: all
            .into_iter()
            .chain(lines.iter().map(Some))
            .map(cells)
            .collect(),
        note: (!notes.is_empty()).then(|| notes.join(" ")),
    }
}

/// The number of durations in each power of two, as in the heat map.
fn histogram(sums: &Sums) -> Cell {
    let mut bars: Vec<(u64, u64)> = octaves().into_iter().map(|low| (low, 0)).collect();
    for (longest, count) in sums.buckets() {
        if let Some((_, all)) = bars.get_mut(octave(longest)) {
            *all += count;
        }
    }
    let has_any = |(_, count): &(u64, u64)| *count > 0;
    let end = bars.iter().rposition(has_any).map_or(0, |last| last + 1);
    bars.truncate(end);
    Cell::Histogram(bars.into_iter().skip_while(|bar| !has_any(bar)).collect())
}

fn worst(report: &Report<'_>, table: &Table) -> Sheet {
    let (columns, worst) = of_worst(report, table);
    let cells = |values: &Vec<Value>| Row(values.iter().map(Value::cell).collect(), None);
    Sheet {
        title: format!("{}: the longest {}", title(table.kind), worst.len()),
        columns,
        rows: worst.iter().map(cells).collect(),
        note: None,
    }
}
