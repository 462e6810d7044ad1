// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The page of `analyze delays --html`: the states of the thread, and below them the waits of its wakers.

use anyhow::Result;
use lt_common::out;
use lt_model::ThreadId;
use lt_model::why::{Stay, Wait};

use super::super::lanes::{Described, Scene, Upper, kind};
use super::super::page::{DEEPEST, Limits, ROWS, lanes, page_of, shorter, view_of_range};
use super::tree::{Tree, branch};
use super::{DelaysArgs, Report};
use crate::html::{Cell, Cells, Column, Kind, Page, Row, Table, View};

impl Report<'_> {
    /// The page, with the lines that are printed, and these notes.
    pub(super) fn page(
        &self,
        args: &DelaysArgs,
        notes: Vec<String>,
        limits: Limits<'_>,
    ) -> Result<Page> {
        let thread = self.words().name(self.thread);
        let text = out::whole(|| self.lines(args)).join("\n");
        let mut view = view_of_range(&thread, self.range, text, notes);
        self.draw(&mut view, limits)?;
        view.tables.push(self.table_of_states());
        view.tables.push(self.table_of_stays());
        view.tables.push(self.table_of_waits());
        Ok(page_of(format!("Delays of {thread}"), view))
    }

    /// Everything that the thread did, and everything that it or its wakers waited for.
    fn all(&self) -> (Vec<Stay>, Vec<&Wait>) {
        let stays = self.segments.iter();
        let stays = stays.flat_map(|segment| segment.states.iter());
        let waits = self.segments.iter().flat_map(|segment| &segment.waits);
        (stays.collect(), waits.collect())
    }

    fn draw(&self, view: &mut View, limits: Limits<'_>) -> Result<()> {
        let (stays, below) = self.all();
        let words = self.words();
        let describe = |number: usize| match (
            stays.get(number),
            below.get(number.wrapping_sub(stays.len())),
        ) {
            (Some(stay), _) => Described {
                kind: kind(stay.cause),
                text: branch(&words, stay).join(": "),
                cpu: None,
                more: None,
            },
            (None, wait) => Described {
                kind: Kind::Blocked,
                text: wait
                    .map(|wait| self.wait_text(wait, false))
                    .unwrap_or_default(),
                cpu: None,
                more: None,
            },
        };
        let deepest = below.iter().map(|wait| wait.depth).max().unwrap_or(0);
        if deepest >= DEEPEST {
            view.left_out.push(format!(
                "Only the first {DEEPEST} threads of a chain have lanes; up to {} threads wait in one chain.",
                deepest + 1
            ));
        }
        let names = ["states", "waits of its waker", "waits of that waker"];
        let mut rows = lanes(deepest, names);
        let bar = |number: usize, stay: &Stay| (stay.begin, stay.end, number);
        if let Some(row) = rows.first_mut() {
            row.bars = (0..).zip(&stays).map(|(i, stay)| bar(i, stay)).collect();
        }
        for (number, wait) in (stays.len()..).zip(&below) {
            if let Some(row) = rows.get_mut(wait.depth).filter(|_| wait.depth > 0) {
                row.bars.push((wait.begin, wait.end, number));
            }
        }
        let mut threads: Vec<ThreadId> = self.segments.iter().map(|s| s.thread).rev().collect();
        threads.extend(below.iter().map(|wait| wait.thread));
        threads.extend(
            below
                .iter()
                .filter_map(|wait| self.model.waker(wait.waker?)?.by()),
        );
        let waits: Vec<Wait> = below.iter().map(|wait| **wait).collect();
        let scene = Scene {
            model: self.model,
            facts: &self.facts,
            range: self.range,
            upper: Some(Upper {
                name: "States and waits",
                rows,
                describe: &describe,
            }),
            threads,
            cpus: Vec::new(),
            waits: &waits,
            most: limits.bars,
            interrupted: limits.interrupted,
        };
        scene.draw(view)
    }

    fn table_of_states(&self) -> Table {
        let trees = self.trees(u64::MAX);
        let mut rows = Vec::new();
        for (segment, tree) in self.segments.iter().zip(&trees) {
            let several = self.segments.len() > 1;
            let of = tree.time;
            let mut see = |node: &Tree, depth: usize| {
                let (begin, end) = node.longest;
                let label = match depth {
                    0 if several => format!("all of {}", self.words().name(segment.thread)),
                    _ => node.label.to_string(),
                };
                let cells = vec![
                    (node.number as u64).into(),
                    node.time.into(),
                    Cell::percent(node.time, of),
                    (node.count as u64).into(),
                    (end - begin).into(),
                    format!("{:indent$}{label}", "", indent = 2 * depth).into(),
                ];
                let at = (node.count > 0).then(|| self.relative(begin, end));
                rows.push(Row(cells, at));
            };
            tree.each(0, &mut see);
        }
        let all = rows.len();
        rows.truncate(ROWS);
        let left = all - rows.len();
        Table {
            title: "States".into(),
            columns: vec![
                Column("Nr", Cells::Count),
                Column("Time", Cells::Time),
                Column("%", Cells::Percent),
                Column("Count", Cells::Count),
                Column("Longest", Cells::Time),
                Column("State", Cells::Text),
            ],
            rows,
            note: (left > 0).then(|| format!("Not in this table: {left} more states.")),
        }
    }

    fn relative(&self, begin: u64, end: u64) -> (u64, u64) {
        let (from, _) = self.range;
        (begin.saturating_sub(from), end.saturating_sub(from))
    }

    fn table_of_stays(&self) -> Table {
        let (mut stays, _) = self.all();
        stays.sort_by_key(|stay| std::cmp::Reverse(stay.took()));
        let rest = stays.split_off(stays.len().min(ROWS));
        let words = self.words();
        let rows = stays.iter().map(|stay| {
            let text = branch(&words, stay).join(": ");
            self.row((stay.begin, stay.end), text)
        });
        Table {
            title: "Stays, the longest first".into(),
            columns: timed("State"),
            rows: rows.collect(),
            note: shorter(rest.len(), rest.iter().map(|stay| stay.took()).sum()),
        }
    }

    /// A row of a table with the columns [`timed`].
    fn row(&self, (begin, end): (u64, u64), text: String) -> Row {
        let at = self.relative(begin, end);
        Row(
            vec![at.0.into(), (end - begin).into(), text.into()],
            Some(at),
        )
    }

    fn table_of_waits(&self) -> Table {
        let (_, mut waits) = self.all();
        let took = |wait: &Wait| wait.end - wait.begin;
        let mut rest = Vec::new();
        if waits.len() > ROWS {
            let mut longest: Vec<usize> = (0..waits.len()).collect();
            longest.sort_by_key(|i| std::cmp::Reverse(waits.get(*i).map(|wait| took(wait))));
            let mut short = longest.split_off(ROWS);
            short.sort_unstable();
            rest = short
                .iter()
                .filter_map(|i| waits.get(*i).copied())
                .collect();
            longest.sort_unstable();
            waits = longest
                .iter()
                .filter_map(|i| waits.get(*i).copied())
                .collect();
        }
        let rows = waits.iter().map(|wait| {
            let own = wait.depth == 0 && self.segments.len() == 1;
            let indent = 2 * wait.depth.min(DEEPEST);
            let text = self.wait_text(wait, own);
            self.row((wait.begin, wait.end), format!("{:indent$}{text}", ""))
        });
        Table {
            title: "What it waited for; indented, what its waker waited for meanwhile".into(),
            columns: timed("Wait"),
            rows: rows.collect(),
            note: shorter(rest.len(), rest.iter().map(|wait| took(wait)).sum()),
        }
    }
}

/// The columns of a table of times with a text.
fn timed(text: &'static str) -> Vec<Column> {
    vec![
        Column("At", Cells::At),
        Column("Took", Cells::Time),
        Column(text, Cells::Text),
    ]
}
