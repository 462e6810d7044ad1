// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables of durations, from lists of events with known results.

mod any;
mod io;
mod irq;
mod locks;
mod net;
mod reclaim;
mod sched;
mod sleeps;
mod syscalls;
mod work;

use lt_model::tables::{
    Analysis, Block, BlockStage, Builder, By, Case, Extra, File, InCall, Key, Kind, Missed, Object,
    Operation, Packet, PacketEnd, PacketEvents, PacketStage, Range, Reclaim, Recorded, Row, Seen,
    Step, Table, Tables, TaskId, Trigger, Work, WorkStage,
};
use lt_model::{Access, Disk, Event, FileEvent, FilePath, What};

use crate::made::{R, S, at, switch, waking};

const WAKEUPS: Analysis = Analysis::Wakeups { wakings: true };
const RECORDED: Recorded = Recorded {
    wakings: true,
    handlers: true,
    softirqs: true,
    timers: true,
    ipis: true,
    wheel: true,
    calls: false,
    vectors: false,
};
const SLEEPS: Analysis = Analysis::Sleeps(RECORDED);
const WORK: Analysis = Analysis::Work {
    recorded: RECORDED,
    ends: true,
};

fn of(event: Event<'static>) -> Seen<'static> {
    let Event { time, cpu, what } = event;
    seen(time, cpu, Step::Known(what))
}

fn seen(time: u64, cpu: u32, step: Step<'static>) -> Seen<'static> {
    Seen {
        time,
        cpu,
        tid: None,
        process: None,
        file: None,
        step,
    }
}

fn tables_of(analysis: Analysis, range: Range, by: Option<By>, all: &[Seen<'static>]) -> Tables {
    let mut builder = Builder::new(analysis, range, by);
    all.iter().for_each(|seen| builder.feed(seen));
    builder.finish()
}

/// The tables of all of the events.
fn tables(analysis: Analysis, all: &[Seen<'static>]) -> Vec<Table> {
    tables_of(analysis, Range::all(100), None, all).tables
}

fn find(tables: &[Table], kind: Kind) -> &Table {
    tables.iter().find(|table| table.kind == kind).unwrap()
}

/// The sums of the rows by CPU, in order of the CPUs.
fn by_cpu(analysis: Analysis, all: &[Seen<'static>]) -> Vec<(Kind, u32, u64)> {
    let mut sums = Vec::new();
    for table in tables_of(analysis, Range::all(9), Some(By::Cpu), all).tables {
        for ((_, key), row) in &table.rows {
            match key {
                Key::Cpu(cpu) => sums.push((table.kind, *cpu, row.sums.sum)),
                other => panic!("{other:?}"),
            }
        }
    }
    sums.sort_by_key(|(_, cpu, _)| *cpu);
    sums
}

/// The durations, in order of their starts.
fn took(table: &Table) -> Vec<(u64, u64)> {
    let mut all: Vec<_> = table
        .worst
        .iter()
        .map(|case| (case.begin, case.took()))
        .collect();
    all.sort_unstable();
    all
}

fn missed(lost: u64, outside: u64) -> Missed {
    Missed {
        lost,
        outside,
        identical: 0,
    }
}

fn lost(time: u64, cpu: u32, until: u64) -> Seen<'static> {
    of(at(time, cpu, What::Lost { until }))
}
