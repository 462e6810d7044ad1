// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The users of a processor, and the thread that had a given number.

use crate::{Model, ThreadId, Use};

use super::cause::Cause;
use super::path::Piece;

/// The longest activity of the processor while a thread waited for it, and its length; `None` for other pieces, and if
/// the processor is not known.
#[must_use]
pub fn instead(model: &Model, piece: &Piece) -> Option<(Use, u64)> {
    if !matches!(piece.cause, Cause::Waiting | Cause::Preempted) {
        return None;
    }
    used(model, piece.cpu?, piece.begin, piece.end)
        .first()
        .copied()
}

/// The activity of a processor between two times: the time of each use in ns, the longest first.
#[must_use]
pub fn used(model: &Model, cpu: u32, from: u64, to: u64) -> Vec<(Use, u64)> {
    let mut sums: Vec<(Use, u64)> = Vec::new();
    let processor = model.processors.get(cpu as usize);
    for stretch in processor.into_iter().flat_map(|p| p.between(from, to)) {
        let took = stretch.end.min(to) - stretch.begin.max(from);
        match sums.iter_mut().find(|(used, _)| *used == stretch.used) {
            Some((_, sum)) => *sum += took,
            None => sums.push((stretch.used, took)),
        }
    }
    sums.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    sums
}

/// Finds the thread numbered `tid` that existed for the longest part of the time.
#[must_use]
pub fn thread_in(model: &Model, tid: i32, from: u64, to: u64) -> Option<ThreadId> {
    let common = |id: &ThreadId| {
        let span = model.thread(*id).and_then(crate::Thread::span);
        span.map_or(0, |(begin, end)| {
            end.min(to).saturating_sub(begin.max(from))
        })
    };
    let there = model.by_tid(tid).filter(|id| common(id) > 0);
    there.max_by_key(common)
}
