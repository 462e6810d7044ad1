// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What delays a timer that a thread runs: `ktimers/1` on PREEMPT_RT, or `ksoftirqd/1`.

use lt_model::{Model, State, ThreadId};

use crate::cause::plain;
use crate::path::Piece;

/// If a thread for softirqs ran the timer that ended a sleep of `thread` at `end`: where that waited for a CPU since it had
/// been woken. When the timer was due is not known.
#[must_use]
pub fn handled(model: &Model, thread: ThreadId, end: u64) -> Option<Vec<Piece>> {
    let mut ending = model.thread(thread)?.between(end.checked_sub(1)?, end);
    let sleep = ending.find(|interval| interval.end == end)?;
    let waker = model.waker(sleep.waker?)?;
    let handler = waker.handler()?;
    let inside = (sleep.begin, waker.time);
    let mut waits = Vec::new();
    for interval in model.thread(handler)?.between(inside.0, inside.1) {
        match interval.state {
            State::Waiting | State::Preempted => waits.push(Piece {
                begin: interval.begin.max(inside.0),
                end: interval.end.min(inside.1),
                thread: handler,
                cause: plain(interval.state),
                cpu: interval.cpu,
                depth: 1,
                inside,
            }),
            // What it was woken for before that is another timer.
            State::Blocked(..) | State::Unknown(_) => waits.clear(),
            State::Running(_) | State::Interrupted(_) => {}
        }
    }
    Some(waits)
}
