// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Short constructors of events, also for the tests of the command.

use lt_model::{Builder, Disk, Event, Kind, Model, Sleep, Stage, SwitchedOut, What};

pub const S: SwitchedOut = SwitchedOut::Blocked(Sleep::Interruptible);
pub const R: SwitchedOut = SwitchedOut::Preempted;

pub fn at(time: u64, cpu: u32, what: What<'static>) -> Event<'static> {
    Event { time, cpu, what }
}

/// One thread gives the processor to another. Two have names.
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

/// A request that starts at this sector gets as far as `stage`.
pub fn request(time: u64, stage: Stage, disk: Disk, sector: u64) -> Event<'static> {
    let what = What::Request {
        stage,
        disk,
        sector,
    };
    at(time, 0, what)
}

/// A disk completes a request of the sectors `range`: the first, and how many.
pub fn completed(time: u64, disk: Disk, range: Option<(u64, u32)>) -> Event<'static> {
    let kind = Kind::Plain;
    at(time, 0, What::Completed { disk, range, kind })
}

pub fn model(events: &[Event<'_>]) -> Model {
    let mut builder = Builder::new();
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}
