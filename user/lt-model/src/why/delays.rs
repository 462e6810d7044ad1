// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The time of a thread by state, and the chains of waits while it was blocked.
//!
//! ```text
//! range       |-- before its creation --|---- thread 7 -----|
//! segments    |5   |6                   |7                  |   5 created 6, and 6 created 7
//! states of 7                           |works|blocked|works|   they tile the segment
//! waits                                       |in read, woken by 8
//!                                               |8 in futex, woken by 9
//! ```
//!
//! Working, interrupted, blocked and unknown time add up exactly to the range. Before a thread exists, its closest
//! existing ancestor stands in for it, since only this ancestor could have created the thread sooner.

use crate::{Interval, Model, State, ThreadId, Unrecorded};

use super::beside::Nothing;
use super::cause::{Cause, plain};
use super::path::{Wait, Waited, absent, own_waits, waits};
use super::runnable;
use super::stays::{Added, Stay, Stays};

/// A part of the requested time, and the thread that is analyzed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The requested thread, or the ancestor that stands in for it.
    pub thread: ThreadId,
    /// Start, ns.
    pub begin: u64,
    /// End, ns: for an ancestor, when it created the next segment's thread.
    pub end: u64,
    /// The states of the thread, which tile the segment.
    pub states: Stays,
    /// Its waits, with the waits of its wakers below: see [`waits`].
    pub waits: Vec<Wait>,
}

/// The time of a thread between two times, with its ancestors for the time before its creation.
#[must_use]
pub fn delays(model: &Model, thread: ThreadId, from: u64, to: u64) -> Vec<Segment> {
    let segment = |(thread, begin, end)| {
        let waits = waits(model, thread, begin, end);
        Segment {
            thread,
            begin,
            end,
            states: tiles(model, thread, (begin, end), &waits),
            waits,
        }
    };
    let parts = ancestry(model, thread, from, to);
    parts.into_iter().map(segment).collect()
}

/// The thread, and the ancestors that stand in for it before its creation, each with its start and end, in time order.
pub(super) fn ancestry(
    model: &Model,
    thread: ThreadId,
    from: u64,
    to: u64,
) -> Vec<(ThreadId, u64, u64)> {
    let mut parts = Vec::new();
    let (mut id, mut end) = (thread, to);
    while from < end {
        let birth = parent(model, id).filter(|(birth, _)| from < *birth && *birth < end);
        let begin = birth.map_or(from, |(birth, _)| birth);
        parts.push((id, begin, end));
        let Some((_, maker)) = birth else { break };
        (id, end) = (maker, begin);
    }
    parts.reverse();
    parts
}

/// The states of a thread between two times; the stays tile that time.
#[must_use]
pub fn states(model: &Model, thread: ThreadId, from: u64, to: u64) -> Stays {
    tiles(model, thread, (from, to), &waits(model, thread, from, to))
}

/// The states of a thread between two times, as [`states`] returns them. No waker is followed, so the cost does not
/// grow with the activity of wakers.
#[must_use]
pub fn own_states(model: &Model, thread: ThreadId, from: u64, to: u64) -> Vec<Stay> {
    let waits = own_waits(model, thread, from, to);
    tiles(model, thread, (from, to), &waits).iter().collect()
}

/// When a thread was created, and by which thread, if recorded.
fn parent(model: &Model, id: ThreadId) -> Option<(u64, ThreadId)> {
    let thread = model.thread(id).filter(|thread| thread.born)?;
    let maker = model.waker(thread.maker?)?.by()?;
    Some((thread.span()?.0, maker))
}

fn tiles(model: &Model, id: ThreadId, (from, to): (u64, u64), waits: &[Wait]) -> Stays {
    let is_own = |wait: &&Wait| wait.depth == 0 && matches!(wait.kind, Waited::Blocked(_));
    let mut waits = waits.iter().filter(is_own);
    let mut outside = is_outside_known(model, id, from);
    let mut stays = Added::default();
    let mut push = |begin, end, cause, by, outside, open| {
        if begin < end {
            stays.push(Stay {
                begin,
                end,
                cause,
                by,
                file: model.file(id, begin, end),
                outside,
                open,
            });
        }
    };
    let unseen = Cause::Unknown(Unrecorded::Unseen);
    let mut at = from;
    let intervals = model.thread(id).map(|thread| thread.between(from, to));
    for interval in intervals.into_iter().flatten() {
        let part = (interval.begin.max(from), interval.end.min(to));
        push(at, part.0, unseen, None, false, false);
        at = part.1;
        outside = follows(interval.state, outside);
        let is_outside = matches!(
            interval.state,
            State::Running(None) | State::Blocked(_, None)
        ) && model.has_all_calls()
            && outside;
        match interval.state {
            State::Blocked(..) => {
                let wait = waits.next();
                let cause = wait.and_then(|wait| wait.cause);
                let cause = cause.unwrap_or(plain(interval.state));
                let waker = interval.waker.and_then(|waker| model.waker(waker));
                let is_by_thread = matches!(cause, Cause::Blocked(_) | Cause::Idle);
                let by = waker.filter(|_| is_by_thread).and_then(|waker| waker.by());
                let cause = by.map_or(cause, |_| plain(interval.state));
                let open = interval.waker.is_none() && interval.end == model.span.1;
                push(part.0, part.1, cause, by, is_outside, open);
            }
            State::Waiting | State::Preempted => {
                for (begin, end, cause) in runnable::parts(model, &Nothing, id, &interval, part) {
                    push(begin, end, cause, None, false, false);
                }
            }
            state => push(part.0, part.1, plain(state), None, is_outside, false),
        }
    }
    push(at, to, absent(model, id, at), None, false, false);
    stays.finish()
}

/// The system call of a state.
fn call(state: State) -> Option<crate::Name> {
    match state {
        State::Running(call) | State::Blocked(_, call) => call,
        _ => None,
    }
}

/// Whether a thread without a recorded call is outside of all calls, after this state. It may have been in a call since
/// before the recording, or since a gap, until its next call shows otherwise.
fn follows(state: State, outside: bool) -> bool {
    match state {
        State::Unknown(_) => false,
        state => outside || call(state).is_some(),
    }
}

/// Whether a thread that is in no recorded call at `time` is outside of all calls, judging by its last states.
fn is_outside_known(model: &Model, id: ThreadId, time: u64) -> bool {
    let last = decides_outside(model, id, time, STATES).last();
    last.is_some_and(|last| call(last.state).is_some())
}

/// Maximum number of states before a time that are examined to find out whether a thread is outside of all calls. A
/// thread without a call for longer may be a kernel thread.
pub(super) const STATES: usize = 1000;

/// The last states before `time`, at most `most`, the latest first, back to the state that shows whether the thread is
/// outside of all calls: a state in a call, or an unknown state.
pub(super) fn decides_outside(
    model: &Model,
    id: ThreadId,
    time: u64,
    most: usize,
) -> impl Iterator<Item = Interval> {
    let earlier = model.thread(id).map(|thread| thread.between(0, time).rev());
    let mut is_decided = !model.has_all_calls();
    let states = earlier.into_iter().flatten().take(most);
    states.take_while(move |of| {
        let shows = matches!(of.state, State::Unknown(_)) || call(of.state).is_some();
        let was_decided = is_decided;
        is_decided |= shows;
        !was_decided
    })
}
