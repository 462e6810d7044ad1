// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The columns of a table, and the values of its rows, for text and for a page.

use lt_model::tables::{Case, Extra, Kind, Table};
use lt_proc::Nanos;

use super::view::{self, Line, Report};
use crate::html::{Cell, Cells, Column};

/// A value of a row.
pub(super) enum Value {
    Text(String),
    Count(u64),
    /// A duration, ns, if there is one; and whether it is exact, not an upper bound.
    Time(Option<u64>, bool),
    /// A fraction, if it is known.
    Share(Option<f64>),
}

impl Value {
    /// The value on a terminal.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Time(None, _) => "-".into(),
            Self::Time(Some(ns), true) => Nanos(*ns).to_string(),
            Self::Time(Some(ns), false) => format!("~{}", Nanos(*ns)),
            Self::Share(None) => String::new(),
            Self::Share(Some(share)) => format!("{:.1}", share * 100.0),
        }
    }

    /// The value on a page, which sorts numbers.
    pub(super) fn cell(&self) -> Cell {
        match self {
            Self::Count(number) | Self::Time(Some(number), _) => Cell::Number(*number),
            Self::Share(Some(share)) => Cell::Share(share * 100.0),
            other => Cell::Text(other.text()),
        }
    }
}

/// The counters that are greater than 0 in any row.
fn extras(table: &Table) -> impl Iterator<Item = (&'static str, Extra)> {
    let extras = view::extras(table.kind).iter().copied();
    extras.filter(move |(_, which)| table.whole.extra(*which) > 0)
}

/// The columns of the rows of a table.
pub(super) fn of_rows(report: &Report<'_>, table: &Table) -> Vec<Column> {
    let mut columns = Vec::new();
    if report.args.interval.is_some() {
        columns.push(Column("From", Cells::Clock));
    }
    columns.extend(match table.kind {
        Kind::Run => [
            Column("Time", Cells::Time),
            Column("%", Cells::Percent),
            Column("Runs", Cells::Count),
        ],
        _ => [
            Column("Sum", Cells::Time),
            Column("Count", Cells::Count),
            Column("Min", Cells::Time),
        ],
    });
    columns.extend(["P50", "P90", "P99", "Max"].map(|name| Column(name, Cells::Time)));
    columns.extend(extras(table).map(|(name, _)| Column(name, Cells::Count)));
    columns.push(match view::grouping(table) {
        "cpu" => Column("CPU", Cells::Text),
        what => Column(what, Cells::Text),
    });
    columns
}

/// The values of a row in the columns of [`of_rows`]; without a `line`, the values of all rows together.
pub(super) fn row(report: &Report<'_>, table: &Table, line: Option<&Line<'_>>) -> Vec<Value> {
    let row = line.map_or(&table.whole, |line| line.row);
    let sums = &row.sums;
    let some = |ns: u64| Value::Time((sums.count > 0).then_some(ns), true);
    let mut values = Vec::new();
    if report.args.interval.is_some() {
        let from = line.map(|line| line.interval.to_string());
        values.push(Value::Text(from.unwrap_or_default()));
    }
    let (sum, count) = (Value::Time(Some(sums.sum), true), Value::Count(sums.count));
    values.extend(match table.kind {
        Kind::Run => {
            let share = line.and_then(|line| report.share(table, line));
            [sum, Value::Share(share), count]
        }
        _ => [sum, count, some(sums.least)],
    });
    let percentile = |percent| Value::Time(sums.percentile(percent), sums.is_exact());
    values.extend([50, 90, 99].map(percentile));
    values.push(some(sums.most));
    values.extend(extras(table).map(|(_, which)| Value::Count(row.extra(which))));
    let name = line.map_or_else(|| "all".into(), |line| line.name.clone());
    values.push(Value::Text(name));
    values
}

/// The columns and values of the longest operations.
pub(super) fn of_worst(report: &Report<'_>, table: &Table) -> (Vec<Column>, Vec<Vec<Value>>) {
    let has_object = table.worst.iter().any(|case| case.object.is_some());
    let has_thread = table.worst.iter().any(|case| case.thread.is_some());
    let mut columns = vec![
        Column("Took", Cells::Time),
        Column("From", Cells::Clock),
        Column("To", Cells::Clock),
        Column("CPU", Cells::Count),
    ];
    columns.extend(has_thread.then_some(Column("Thread", Cells::Text)));
    columns.extend(has_object.then_some(Column("What", Cells::Text)));
    let values = |case: &Case| {
        let mut values = vec![
            Value::Time(Some(case.took()), true),
            Value::Text(case.begin.to_string()),
            Value::Text(case.end.to_string()),
            Value::Count(case.cpu.into()),
        ];
        values.extend(has_thread.then(|| Value::Text(report.who(case))));
        values.extend(has_object.then(|| Value::Text(report.what(case))));
        values
    };
    (columns, table.worst.iter().map(values).collect())
}
