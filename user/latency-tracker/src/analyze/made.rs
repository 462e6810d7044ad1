// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Concise event builders for tests of sentences and pictures.

use lt_model::{Builder, Event, Model, Sleep, SwitchedOut, What};

pub(crate) const S: SwitchedOut = SwitchedOut::Blocked(Sleep::Interruptible);
pub(crate) const R: SwitchedOut = SwitchedOut::Preempted;

pub(crate) fn at(time: u64, cpu: u32, what: What<'static>) -> Event<'static> {
    Event { time, cpu, what }
}

/// One thread gives the processor to another. Two have names.
pub(crate) fn switch(
    time: u64,
    cpu: u32,
    prev: i32,
    out: SwitchedOut,
    next: i32,
) -> Event<'static> {
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

pub(crate) fn waking(time: u64, cpu: u32, tid: i32) -> Event<'static> {
    let what = What::Waking {
        tid,
        name: b"",
        target: 0,
    };
    at(time, cpu, what)
}

pub(crate) fn model(events: &[Event<'_>]) -> Model {
    let mut builder = Builder::new();
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}
