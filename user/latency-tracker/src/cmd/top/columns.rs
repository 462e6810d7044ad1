// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The table of instances: its columns, their widths, and the order of its rows.
//!
//! ```text
//! NAME       TRACKER  RATE     P50     P99      MAX  ALERTS  PENDING  OLDEST  LOST  P99 OVER TIME
//! slow_disk  block     312  2.10ms  9.44ms  20.40ms   12 +3        2  8.31ms     7  ..:.:-:#:....
//! ```
//!
//! If the width is limited, gaps, names and trackers are narrowed first. Then the graph is left out, and then columns,
//! in the order of [`SPARE`]. `LOST` is shown only if a loss counter is not 0.

use std::cmp::Ordering;

use lt_common::out;
use lt_proc::Nanos;

use super::rows::Row;
use crate::cli::Column;

/// All columns, from left to right.
pub(super) const COLUMNS: [Column; 10] = [
    Column::Name,
    Column::Tracker,
    Column::Rate,
    Column::P50,
    Column::P99,
    Column::Max,
    Column::Alerts,
    Column::Pending,
    Column::Oldest,
    Column::Lost,
];

/// Columns that are left out on a narrow terminal, in this order.
const SPARE: [Column; 6] = [
    Column::P50,
    Column::Tracker,
    Column::Max,
    Column::Rate,
    Column::Pending,
    Column::Alerts,
];

/// Minimum widths of the columns of text.
const NARROWEST_NAME: usize = 10;
const NARROWEST_TRACKER: usize = 7;

/// Minimum and maximum width of the graph.
const GRAPH: usize = 8;
const WIDEST_GRAPH: usize = 60;

impl Column {
    pub(super) fn heading(self) -> &'static str {
        match self {
            Column::Name => "NAME",
            Column::Tracker => "TRACKER",
            Column::Rate => "RATE",
            Column::P50 => "P50",
            Column::P99 => "P99",
            Column::Max => "MAX",
            Column::Alerts => "ALERTS",
            Column::Pending => "PENDING",
            Column::Oldest => "OLDEST",
            Column::Lost => "LOST",
        }
    }

    fn is_text(self) -> bool {
        matches!(self, Column::Name | Column::Tracker)
    }

    /// Returns the text of a cell.
    pub(super) fn cell(self, row: &Row) -> String {
        let time = |ns: Option<u64>| ns.map_or("-".to_string(), |ns| Nanos(ns).to_string());
        match self {
            Column::Name => row.name.clone(),
            Column::Tracker => row.tracker.clone(),
            Column::Rate => row.rate().map_or("-".into(), rate),
            Column::P50 => time(row.quantile(P50)),
            Column::P99 => time(row.quantile(P99)),
            Column::Max => time(row.max),
            Column::Alerts => match (row.stats.count("alerts"), row.new_alerts) {
                (all, new) if new == 0 || row.interval.is_none() => compact(all),
                (all, new) => format!("{} +{}", compact(all), compact(new)),
            },
            Column::Pending => compact(row.stats.count("pending")),
            Column::Oldest => row.oldest.first().map_or("-".into(), |oldest| {
                let old = if row.is_old { "~" } else { "" };
                format!(
                    "{old}{}",
                    super::super::at_least(oldest.age(), &oldest.fields)
                )
            }),
            Column::Lost => match lost(row) {
                0 => "-".to_string(),
                lost => compact(lost),
            },
        }
    }

    /// Compares two rows: names ascending, numbers descending, then by name.
    fn compare(self, a: &Row, b: &Row) -> Ordering {
        let by = |key: fn(&Row) -> Option<u64>| key(b).cmp(&key(a));
        match self {
            Column::Name => Ordering::Equal,
            Column::Tracker => a.tracker.cmp(&b.tracker),
            Column::Rate => {
                let known = |row: &Row| row.rate().unwrap_or(-1.0);
                known(b).total_cmp(&known(a)).then(b.ended.cmp(&a.ended))
            }
            Column::P50 => by(|row| row.quantile(P50)),
            Column::P99 => by(|row| row.quantile(P99)),
            Column::Max => by(|row| row.max),
            Column::Alerts => by(|row| Some(row.stats.count("alerts"))),
            Column::Pending => by(|row| Some(row.stats.count("pending"))),
            Column::Oldest => by(Row::age),
            Column::Lost => by(|row| Some(lost(row))),
        }
        .then_with(|| a.name.cmp(&b.name))
    }
}

pub(super) const P50: u64 = 500_000;
pub(super) const P99: u64 = 990_000;

/// The sum of the losses.
fn lost(row: &Row) -> u64 {
    row.lost()
        .fold(0, |sum, (_, count)| sum.saturating_add(count))
}

/// Sorts rows by a column.
pub(super) fn sort(rows: &mut [&Row], by: Column, is_reversed: bool) {
    rows.sort_by(|a, b| {
        let order = by.compare(a, b);
        if is_reversed { order.reverse() } else { order }
    });
}

/// Which columns are shown, and how wide they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) columns: Vec<(Column, usize)>,
    /// The width of the graph; 0 for none.
    pub(super) graph: usize,
    /// The space between two columns.
    pub(super) gap: usize,
}

impl Layout {
    /// Lays the columns out, with a graph if there is room for one.
    pub(super) fn with_graph(rows: &[&Row], limit: usize) -> Self {
        let mut layout = Self::new(rows);
        if layout.width() + layout.gap + GRAPH > limit {
            layout.gap = 1;
        }
        let before = limit.saturating_sub(layout.gap + GRAPH);
        layout.shrink(before);
        if layout.width() > before {
            return Self::within(rows, Some(limit));
        }
        let left = limit - layout.width() - layout.gap;
        layout.graph = left.min(WIDEST_GRAPH);
        layout
    }

    /// Lays the columns out without a graph.
    pub(super) fn within(rows: &[&Row], limit: Option<usize>) -> Self {
        let mut layout = Self::new(rows);
        let limit = limit.unwrap_or(usize::MAX);
        if layout.width() > limit {
            layout.gap = 1;
        }
        layout.shrink(limit);
        for spare in SPARE {
            if layout.width() > limit {
                layout.columns.retain(|(column, _)| *column != spare);
            }
        }
        layout
    }

    /// Returns the columns in their natural width.
    fn new(rows: &[&Row]) -> Self {
        let natural = |column: Column| {
            let cells = rows.iter().map(|row| column.cell(row).chars().count());
            cells.max().unwrap_or(0).max(column.heading().len())
        };
        let any_lost = rows.iter().any(|row| lost(row) > 0);
        let shown = COLUMNS
            .into_iter()
            .filter(|c| *c != Column::Lost || any_lost);
        Self {
            columns: shown.map(|column| (column, natural(column))).collect(),
            graph: 0,
            gap: 2,
        }
    }

    /// Returns the width of all columns but the graph.
    fn width(&self) -> usize {
        let gaps = self.gap * self.columns.len().saturating_sub(1);
        self.columns.iter().map(|(_, width)| width).sum::<usize>() + gaps
    }

    /// Cuts the columns of text to fit the limit, but not below their minimum widths.
    fn shrink(&mut self, limit: usize) {
        let mut over = self.width().saturating_sub(limit);
        for (column, width) in self.columns.iter_mut().rev() {
            let least = match column {
                Column::Name => NARROWEST_NAME,
                Column::Tracker => NARROWEST_TRACKER,
                _ => continue,
            };
            let give = over.min(width.saturating_sub(least));
            *width -= give;
            over -= give;
        }
    }

    /// Returns the headings, as wide as the columns.
    pub(super) fn headings(&self) -> Vec<(Column, String)> {
        let headings = self.columns.iter();
        headings
            .map(|(column, width)| (*column, aligned(*column, column.heading(), *width)))
            .collect()
    }

    /// Returns the cells of a row, as wide as the columns.
    pub(super) fn cells(&self, row: &Row) -> Vec<(Column, String)> {
        let cells = self.columns.iter();
        cells
            .map(|(column, width)| (*column, aligned(*column, &column.cell(row), *width)))
            .collect()
    }
}

fn aligned(column: Column, text: &str, width: usize) -> String {
    let text = out::fit(text, width);
    match column.is_text() {
        true => format!("{text:<width$}"),
        false => format!("{text:>width$}"),
    }
}

/// A number, in at most six characters up to 999.9T: 9999, 12.3k, 4.5M.
pub(super) fn compact(n: u64) -> String {
    if n < 10_000 {
        return n.to_string();
    }
    let units = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    let n = n as f64;
    // 999,950 is 1.0M, not 1000.0k.
    let unit = units.iter().find(|(_, scale)| n >= scale * 0.99995);
    unit.map_or(n.to_string(), |(unit, scale)| {
        format!("{:.1}{unit}", n / scale)
    })
}

/// A rate in at most six characters: 0.5, 312, 12.3k.
fn rate(rate: f64) -> String {
    match rate {
        r if r > 0.0 && r < 9.95 => format!("{r:.1}"),
        r => compact(r.round() as u64),
    }
}

/// The heights of a bar, the lowest first, and their ASCII equivalents.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['.', ':', '-', '=', '+', '*', '%', '#'];

/// Draws the last `width` values, the newest on the right; a space for an interval without a value.
pub(super) fn graph(values: &[Option<u64>], width: usize, is_unicode: bool) -> String {
    let values = &values[values.len().saturating_sub(width)..];
    let bars = if is_unicode { BARS } else { ASCII_BARS };
    let most = values.iter().flatten().copied().max().unwrap_or(0).max(1);
    let bar = |value: &Option<u64>| match value {
        None => ' ',
        Some(value) => {
            let height = u128::from(*value) * (bars.len() as u128 - 1) / u128::from(most);
            bars[usize::try_from(height).unwrap_or(0).min(bars.len() - 1)]
        }
    };
    let drawn: String = values.iter().map(bar).collect();
    format!("{drawn:>width$}")
}
