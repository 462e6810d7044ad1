// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `--svg`, `--html`: every measured operation in a heat map, with a panel for each table.
//!
//! An operation counts in the column in which it ends. With `-i`, a column is an interval. Otherwise, columns become twice
//! as wide whenever there would be too many, so that memory does not depend on the length of the trace:
//!
//! ```text
//! columns  | 3 |   | 1 |   |   | 2 |      an operation ends here: --> |
//! then     | 3     | 1     | 2     |       | 1     |
//! ```

use std::collections::BTreeMap;

use lt_common::out;
use lt_model::tables::{Builder, Kind, Table};
use lt_proc::Nanos;

use super::super::words::sentence;
use super::feed::{Cases, Each};
use super::text::title;
use super::view::Report;
use crate::heat::{Column, HeatMap, OCTAVES, Panel, octave, octaves};

/// Maximum number of columns without `-i`.
const COLUMNS: u64 = 400;

/// Two gaps in the recording are drawn as one if at most 1/`NEAR` of the range, less than a pixel, is between them.
const NEAR: u64 = 2000;

/// The counts of each column that is not empty, by the number of the column.
type Columns = BTreeMap<u64, Vec<u64>>;

/// The operations so far.
pub(super) struct Heat {
    /// Start of the first column.
    from: u64,
    /// The width of a column, ns.
    width: u64,
    is_fixed: bool,
    panels: Vec<(Kind, Columns)>,
    /// Times in which a CPU was not recorded.
    dark: Vec<(u64, u64)>,
}

impl Heat {
    /// Returns an empty map, with columns of this width if one is given.
    pub(super) fn new(width: Option<Nanos>) -> Self {
        Self {
            from: 0,
            width: width.map_or(1, |width| width.0),
            is_fixed: width.is_some(),
            panels: Vec::new(),
            dark: Vec::new(),
        }
    }

    /// The number of the column of a time.
    fn column(&self, time: u64) -> u64 {
        time.saturating_sub(self.from) / self.width
    }

    /// Widens the columns until `time` is in one of the first `COLUMNS`, unless `-i` has set their width.
    fn reach(&mut self, time: u64) {
        while !self.is_fixed && self.column(time) >= COLUMNS {
            self.widen();
        }
    }

    fn add(&mut self, kind: Kind, begin: u64, end: u64) {
        self.reach(end);
        let number = self.column(end);
        let place = self.panels.iter().position(|(of, _)| *of == kind);
        let place = place.unwrap_or_else(|| {
            self.panels.push((kind, Columns::new()));
            self.panels.len() - 1
        });
        let column = self.panels[place].1.entry(number);
        column.or_insert_with(empty)[octave(end - begin)] += 1;
    }

    fn add_all(&mut self, cases: &[Cases]) {
        for (kind, cases) in cases {
            for case in cases {
                self.add(*kind, case.begin, case.end);
            }
        }
    }

    /// Makes columns twice as wide.
    fn widen(&mut self) {
        self.width *= 2;
        for (_, columns) in &mut self.panels {
            for (number, counts) in std::mem::take(columns) {
                let sums = columns.entry(number / 2).or_insert_with(empty);
                for (sum, count) in sums.iter_mut().zip(counts) {
                    *sum += count;
                }
            }
        }
    }

    /// The times in a range in which a CPU was not recorded.
    fn gaps(&self, (from, to): (u64, u64)) -> Vec<(u64, u64)> {
        let mut dark = self.dark.clone();
        dark.sort_unstable();
        let near = (to - from) / NEAR;
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in dark {
            let (begin, end) = (begin.max(from), end.min(to));
            match gaps.last_mut() {
                _ if begin >= end => {}
                Some((_, last)) if begin <= last.saturating_add(near) => *last = end.max(*last),
                _ => gaps.push((begin, end)),
            }
        }
        gaps
    }

    fn panel(&self, table: &Table, (from, to): (u64, u64)) -> Panel {
        let columns = self.panels.iter().find(|(kind, _)| *kind == table.kind);
        // If a CPU has no stream, tables of operations that may change CPUs are dropped.
        let columns = columns.filter(|_| !table.dropped);
        let column = |number: u64| {
            let begin = self.from.saturating_add(number.saturating_mul(self.width));
            let counts = columns.and_then(|(_, columns)| columns.get(&number));
            Column {
                begin: begin.max(from),
                end: begin.saturating_add(self.width).min(to),
                counts: counts.cloned().unwrap_or_else(empty),
            }
        };
        Panel {
            name: title(table.kind).into(),
            columns: (self.column(from)..=self.column(to)).map(column).collect(),
        }
    }

    /// Returns the whole map.
    pub(super) fn map(mut self, report: &Report<'_>) -> HeatMap {
        let found = &report.found;
        self.add_all(&found.rest);
        let (from, to) = found.range;
        // The trace may go on long after the last operation.
        self.reach(to);
        let gaps = self.gaps(found.range);
        let mut notes = report.caveats();
        notes.extend(report.hints().iter().copied().map(String::from));
        notes.extend(report.outside());
        let mut panels = Vec::new();
        for table in &found.tables.tables {
            let missed = Report::missed(table);
            if !table.rows.is_empty() || !missed.is_empty() {
                panels.push(self.panel(table, found.range));
            }
            let note = |text: &String| format!("{}: {text}", title(table.kind));
            notes.extend(missed.iter().map(note));
        }
        if !gaps.is_empty() {
            notes.push("at grey times, at least one CPU was not recorded".into());
        }
        let trace = report.args.trace.display().to_string();
        HeatMap {
            heading: format!(
                "{} of {}: how long operations took",
                found.subject.name(),
                out::fit(&out::printable(&trace), 80)
            ),
            subheading: format!(
                "from {from} to {to} ns of the trace's clock: {}, in columns of {}",
                Nanos(to - from),
                Nanos(self.width)
            ),
            low: octaves(),
            panels,
            gaps,
            notes: notes.iter().map(|note| sentence(note)).collect(),
        }
    }
}

fn empty() -> Vec<u64> {
    vec![0; OCTAVES]
}

impl Each for Heat {
    fn start(&mut self, from: u64, first: u64) {
        self.from = if self.is_fixed { from } else { from.max(first) };
    }

    fn take(&mut self, cases: &[Cases], _builder: &Builder) {
        self.add_all(cases);
    }

    fn lost(&mut self, time: (u64, u64), _cpu: u32) {
        self.dark.push(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Number and counts of each column.
    fn columns(heat: &Heat) -> Vec<(u64, u64)> {
        let columns = heat.panels.iter().flat_map(|(_, columns)| columns);
        let sum = |(number, counts): (&u64, &Vec<u64>)| (*number, counts.iter().sum());
        columns.map(sum).collect()
    }

    #[test]
    fn with_an_interval_columns_have_its_length() {
        let mut heat = Heat::new(Some(Nanos(100)));
        heat.start(1000, 1050);
        for (begin, end) in [(1000, 1099), (1010, 1100), (1000, 999_999)] {
            heat.add(Kind::Call, begin, end);
        }
        assert_eq!(columns(&heat), [(0, 1), (1, 1), (9989, 1)]);
        let slowest = &heat.panels[0].1[&9989];
        assert_eq!(slowest[octave(998_999)], 1);
    }

    #[test]
    fn few_columns_span_the_time_after_the_last_operation() {
        let mut heat = Heat::new(None);
        heat.start(1000, 1000);
        heat.add(Kind::Call, 1000, 1010);
        heat.reach(1 << 40);
        assert!((COLUMNS / 2..COLUMNS).contains(&heat.column(1 << 40)));
        assert_eq!(columns(&heat), [(0, 1)]);
    }

    #[test]
    fn times_without_a_cpu_are_joined() {
        let mut heat = Heat::new(None);
        for time in [
            (0, 1_000),
            (5_000, u64::MAX),
            (3_000, 3_500),
            (3_400, 3_600),
            (200, 400),
        ] {
            heat.lost(time, 0);
        }
        assert_eq!(
            heat.gaps((500, 9_000)),
            [(500, 1_000), (3_000, 3_600), (5_000, 9_000)]
        );
        assert!(heat.gaps((1_000, 3_000)).is_empty());
        // The times of a damaged trace.
        heat.lost((u64::MAX - 2, u64::MAX - 1), 0);
        assert_eq!(heat.gaps((u64::MAX - 9_000, u64::MAX)).len(), 1);
    }

    proptest! {
        #[test]
        fn no_operation_is_lost_when_columns_are_joined(
            all in prop::collection::vec((0..1u64 << 40, 0..1u64 << 30), 1..300)
        ) {
            let mut heat = Heat::new(None);
            heat.start(0, 0);
            for (begin, took) in &all {
                heat.add(Kind::Wakeup, *begin, begin + took);
            }
            let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
            for (begin, took) in &all {
                *expected.entry((begin + took) / heat.width).or_default() += 1;
            }
            let found = columns(&heat);
            prop_assert!(found.iter().all(|(number, _)| *number < COLUMNS));
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
