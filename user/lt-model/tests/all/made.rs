// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Short constructors of events, also for the tests of the `latency-tracker` command.

use lt_model::{Builder, Disk, Event, Kind, Model, Sleep, Stage, SwitchedOut, What};

pub const S: SwitchedOut = SwitchedOut::Blocked(Sleep::Interruptible);
pub const R: SwitchedOut = SwitchedOut::Preempted;

pub fn at(time: u64, cpu: u32, what: What<'static>) -> Event<'static> {
    Event { time, cpu, what }
}

/// A processor switches from one thread to another. Threads 7 and 8 have names.
pub fn switch(time: u64, cpu: u32, prev: i32, out: SwitchedOut, next: i32) -> Event<'static> {
    let name = |tid| match tid {
        7 => &b"late"[..],
        8 => b"hog",
        _ => b"",
    };
    let what = What::Switch {
        prev,
        prev_name: name(prev),
        out,
        next,
        next_name: name(next),
        prev_prio: None,
        next_prio: None,
    };
    at(time, cpu, what)
}

pub fn waking(time: u64, cpu: u32, tid: i32) -> Event<'static> {
    let what = What::Waking {
        tid,
        name: b"",
        target: 0,
    };
    at(time, cpu, what)
}

/// A timer that runs this function expires.
pub fn timer(time: u64, cpu: u32, function: u64) -> [Event<'static>; 2] {
    let function = Some(function);
    [
        at(time, cpu, What::Timer { function }),
        at(time + 1, cpu, What::TimerEnd),
    ]
}

/// A request for eight sectors, which starts at `sector`, reaches `stage`.
pub fn request(time: u64, stage: Stage, disk: Disk, sector: u64) -> Event<'static> {
    let what = What::Request {
        stage,
        disk,
        sector,
        sectors: 8,
    };
    at(time, 0, what)
}

/// A disk completes a request; `range` is its first sector and its length.
pub fn completed(time: u64, disk: Disk, range: Option<(u64, u32)>) -> Event<'static> {
    let kind = Kind::Plain;
    at(time, 0, What::Completed { disk, range, kind })
}

/// From `start` on, 7 runs and calls fsync, which waits for 8, which waits for a disk.
pub fn chain(start: u64) -> Vec<Event<'static>> {
    let disk = What::Irq {
        number: 24,
        name: b"disk",
    };
    let mut all = vec![
        switch(0, 0, 0, R, 7),
        at(1, 0, What::Call { name: b"fsync" }),
        switch(3, 0, 7, S, 8),
        switch(5, 0, 8, S, 0),
        at(9, 0, disk),
        waking(10, 0, 8),
        at(11, 0, What::IrqEnd { number: 24 }),
        switch(12, 0, 0, R, 8),
        waking(15, 0, 7),
        switch(18, 0, 8, S, 7),
        switch(20, 0, 7, S, 0),
    ];
    all.iter_mut().for_each(|event| event.time += start);
    all
}

pub fn model(events: &[Event<'_>]) -> Model {
    let mut builder = Builder::new();
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}
