// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The view without a terminal: intervals, the order of rows, widths, and shares of the lists.

mod groups;
mod keys;
mod screens;

use std::time::{Duration, Instant};

use lt_proc::{Alert, Histogram, Instance, Pending, Stats};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::columns::{Layout, compact, graph, sort};
use super::draw::draw;
use super::read::{OneReading, Reading};
use super::rows::{Row, rows};
use super::state::State;
use crate::cli::Column;

const MS: u64 = 1_000_000;

/// Makes readings of instances; their times count from `start`.
struct Made {
    start: Instant,
}

impl Made {
    fn one(
        &self,
        seconds: u64,
        name: &str,
        tracker: &str,
        stats: &str,
        delays: &str,
    ) -> OneReading {
        let line = format!("{name} {tracker} enabled=1 threshold=10000000");
        OneReading {
            instance: Instance::parse(&line).unwrap(),
            created: Some(5),
            stats: Stats::parse(&stats.replace(' ', "\n").replace('=', " ")).unwrap(),
            delays: Histogram::parse(&delays.replace(',', "\n")).unwrap(),
            at: self.start + Duration::from_secs(seconds),
            oldest: Vec::new(),
            is_old: false,
            missing_cgroup: None,
        }
    }
}

fn reading(seconds: u64, all: Vec<OneReading>) -> Reading {
    Reading {
        time: 1_000_000_000 * (100 + seconds),
        all,
        alerts: Vec::new(),
        missed: 0,
        dropped: 0,
    }
}

fn alert(seconds: u64, instance: &str, delay: u64) -> Alert {
    let time = 1_000_000_000 * (100 + seconds);
    Alert::parse(&format!(
        "seq=1 time={time} instance={instance} tracker=block reason=threshold delay={delay} \
         threshold=10000000 cpu=1 pid=812 tid=812 comm=\"f\\x1bo\" dev=8:0 disk=\"sda\" op=\"WS\" sector=2048 bytes=4096"
    ))
    .unwrap()
}

fn pending(age: u64, tid: u64) -> Pending {
    let text = format!(
        "age={age} start={} pid={tid} tid={tid} comm=\"dd\" dev=8:0 sector=8",
        1000 * MS - age
    );
    Pending::parse_all(&text).unwrap().remove(0)
}

const BEFORE: &str = "attempts=100 started=100 ended=98 pending=2 alerts=1 max=20000000 min=2000";
const AFTER: &str =
    "attempts=400 started=400 ended=398 pending=2 alerts=4 max=20000000 min=2000 full=3";

/// Two readings, two seconds apart. The first reading has two instances, and the second has a third.
fn two() -> (Reading, Reading) {
    let made = Made {
        start: Instant::now(),
    };
    let old = "1920 2048 90,18874368 20971520 8";
    let new = "1920 2048 380,9437184 10485760 10,18874368 20971520 8";
    let before = reading(
        0,
        vec![
            made.one(0, "slow_disk", "block", BEFORE, old),
            made.one(
                0,
                "calls",
                "syscall",
                "attempts=9 ended=9 max=500",
                "480 512 9",
            ),
        ],
    );
    let mut disk = made.one(2, "slow_disk", "block", AFTER, new);
    disk.oldest = vec![pending(500 * MS, 7), pending(2 * MS, 8)];
    let mut after = reading(
        2,
        vec![
            disk,
            made.one(
                2,
                "calls",
                "syscall",
                "attempts=9 ended=9 max=500",
                "480 512 9",
            ),
            made.one(
                2,
                "late",
                "wakeup",
                "attempts=5 ended=4 alerts=0 max=700",
                "640 704 4",
            ),
        ],
    );
    after.alerts = vec![
        alert(1, "slow_disk", 20 * MS),
        alert(2, "slow_disk", 12 * MS),
    ];
    (before, after)
}

fn state() -> State {
    let (before, after) = two();
    let mut state = State::new(Duration::from_secs(2), Column::P99);
    state.clock = "14:03:20".to_string();
    state.update(before);
    state.update(after);
    state
}

fn screen(state: &State, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    terminal
}

fn text(terminal: &Terminal<TestBackend>) -> Vec<String> {
    let buffer = terminal.backend().buffer();
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width);
    rows.map(|row| {
        let text: String = row.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_string()
    })
    .collect()
}

fn shown(state: &State, width: u16, height: u16) -> Vec<String> {
    text(&screen(state, width, height))
}

fn names(state: &State) -> Vec<&str> {
    state.rows().iter().map(|row| row.name.as_str()).collect()
}

#[test]
fn an_interval_is_the_difference_of_two_readings() {
    let (before, after) = two();
    let first = rows(&before, None);
    assert_eq!((first[0].interval, first[0].rate()), (None, None));
    assert_eq!((first[0].ended, first[0].max), (98, Some(20 * MS)));
    let all = rows(&after, Some(&before));
    let disk = &all[0];
    assert_eq!(disk.interval, Some(Duration::from_secs(2)));
    assert_eq!((disk.ended, disk.rate()), (300, Some(150.0)));
    assert_eq!(disk.quantile(500_000), Some(2047));
    // None of the delays of 20 ms is in the interval.
    assert_eq!(
        (disk.quantile(990_000), disk.max),
        (Some(10_485_759), Some(10_485_759))
    );
    assert_eq!((disk.new_alerts, disk.stats.count("alerts")), (3, 4));
    assert_eq!(disk.lost().collect::<Vec<_>>(), [("full", 3)]);
    // Nothing has ended.
    assert_eq!(
        (all[1].ended, all[1].quantile(500_000), all[1].max),
        (0, None, None)
    );
    assert_eq!(all[1].rate(), Some(0.0));
    // The instance has started since, so all of its counters belong to the interval.
    assert_eq!((all[2].ended, all[2].rate()), (4, Some(2.0)));
    assert_eq!(all[2].max, Some(700), "the longest delay limits its bucket");
}

#[test]
fn an_instance_whose_cgroup_is_gone_is_named() {
    let (before, mut after) = two();
    after.all[1].missing_cgroup = Some(7);
    let mut state = State::new(Duration::from_secs(2), Column::P99);
    state.update(before);
    state.update(after);
    assert_eq!(
        shown(&state, 80, 24)[1],
        "cgroup is gone (see `list NAME`): calls; lost: slow_disk full=3"
    );
}

#[test]
fn an_instance_that_replaces_another_one_counts_from_0() {
    let made = Made {
        start: Instant::now(),
    };
    let old = reading(0, vec![made.one(0, "a", "block", BEFORE, "1920 2048 98")]);
    for (created, ended) in [(9, 398), (5, 300)] {
        let mut one = made.one(1, "a", "block", AFTER, "1920 2048 398");
        one.created = Some(created);
        let row = &rows(&reading(1, vec![one]), Some(&old))[0];
        assert_eq!(row.ended, ended, "{created}");
        assert_eq!(row.delays.count(), ended, "{created}");
    }
}

#[test]
fn rows_are_sorted_by_each_column_in_both_orders() {
    let mut state = state();
    for (column, expected) in [
        (Column::P99, ["slow_disk", "late", "calls"]),
        (Column::Name, ["calls", "late", "slow_disk"]),
        (Column::Tracker, ["slow_disk", "calls", "late"]),
        (Column::Rate, ["slow_disk", "late", "calls"]),
        (Column::Pending, ["slow_disk", "calls", "late"]),
    ] {
        state.sort = column;
        state.is_reversed = false;
        assert_eq!(names(&state), expected, "{column:?}");
        state.is_reversed = true;
        let reversed: Vec<&str> = expected.iter().rev().copied().collect();
        assert_eq!(names(&state), reversed, "{column:?}");
    }
    let all = state.rows();
    let mut sorted = all.clone();
    sort(&mut sorted, Column::Lost, false);
    assert_eq!(sorted[0].name, "slow_disk");
}

#[test]
fn each_instance_has_a_share_of_the_list_of_operations_in_flight() {
    let made = Made {
        start: Instant::now(),
    };
    let mut sleeps = made.one(0, "sleeps", "offcpu", "attempts=99 pending=50", "");
    sleeps.oldest = (0..50).map(|n| pending(900 * MS - n, n)).collect();
    let mut disk = made.one(0, "disk", "block", "attempts=9 pending=2", "");
    disk.oldest = vec![pending(90 * MS, 77), pending(5 * MS, 78)];
    let mut state = State::new(Duration::from_secs(1), Column::P99);
    state.update(reading(0, vec![sleeps.clone(), disk.clone()]));
    let shown = |most| -> Vec<&str> {
        state
            .pending(most)
            .iter()
            .map(|(row, _)| row.name.as_str())
            .collect()
    };
    assert_eq!(shown(4), ["sleeps", "sleeps", "disk", "disk"]);
    assert_eq!(shown(7).iter().filter(|name| **name == "sleeps").count(), 5);
    assert_eq!(shown(1).len(), 1);
    assert_eq!(shown(0).len(), 0);
    // One operation of the disk is still in flight; the other one is new.
    disk.oldest = vec![pending(90 * MS, 77), pending(4 * MS, 79)];
    state.update(reading(1, vec![sleeps, disk]));
    let grown: Vec<(u64, bool)> = state
        .pending(200)
        .iter()
        .filter(|(row, _)| row.name == "disk")
        .map(|(row, p)| (p.fields.number("tid").unwrap(), state.has_grown(row, p)))
        .collect();
    assert_eq!(grown, [(77, true), (79, false)]);
}

#[test]
fn a_table_fits_its_limit_and_is_whole_in_a_pipe() {
    let (before, after) = two();
    let mut all = rows(&after, Some(&before));
    all[0].name = "n".repeat(31);
    let all: Vec<&Row> = all.iter().collect();
    let width = |layout: &Layout| -> usize {
        let cells: usize = layout
            .columns
            .iter()
            .map(|(_, width)| width + layout.gap)
            .sum();
        cells - layout.gap
    };
    let whole = Layout::within(&all, None);
    assert_eq!(
        (whole.columns.len(), whole.graph, whole.columns[0].1),
        (10, 0, 31)
    );
    for limit in [40, 50, 60, 79, 80, 100, 120, 200] {
        assert!(
            width(&Layout::within(&all, Some(limit))) <= limit,
            "{limit}"
        );
        let drawn = Layout::with_graph(&all, limit);
        let graph = if drawn.graph > 0 {
            drawn.gap + drawn.graph
        } else {
            0
        };
        assert!(width(&drawn) + graph <= limit, "{limit}");
        assert_eq!(drawn.graph > 0, limit >= 100, "{limit}");
    }
    assert_eq!(Layout::within(&all, Some(79)).columns.len(), 10);
}

#[test]
fn numbers_and_graphs_are_short() {
    for (n, text) in [
        (0, "0"),
        (9_999, "9999"),
        (12_345, "12.3k"),
        (999_990, "1.0M"),
        (u64::MAX, "18446744.1T"),
    ] {
        assert_eq!(compact(n), text);
    }
    let values = [None, Some(0), Some(50), Some(100)];
    assert_eq!(graph(&values, 6, true), "   ▁▄█");
    assert_eq!(graph(&values, 2, false), "=#");
    assert_eq!(graph(&[], 3, true), "   ");
}
