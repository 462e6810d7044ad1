// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The users of a processor or a disk, and the thread that had a given number.

use crate::{Busy, Context, Disk, Model, Served, ThreadId, Use};

use super::cause::{Cause, Place};
use super::path::Piece;

/// The use that had the processor for the longest time while a thread waited for it, and that time, ns. `None` if the
/// piece is not such a wait, or if the processor is not known.
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

/// Returns the disk from which a thread waited for a free request in these pieces, and the requests that the disk
/// served meanwhile, if all served requests are recorded. The pieces have one cause, and are in time order. `None` if
/// the cause is not a wait for a free request. The served requests had tags of the disk, but need not be the reason for
/// the wait.
#[must_use]
pub fn served<'p>(
    model: &Model,
    pieces: impl IntoIterator<Item = &'p Piece>,
) -> Option<(Disk, Option<Served>)> {
    let (disk, waits) = waits_in(pieces)?;
    Some((disk, model.served(disk, &waits)))
}

/// Returns the disk from which a thread waited for a free request in these pieces, and the time for which the disk had
/// been busy at the end of the last piece. The pieces have one cause, and are in time order. `None` if the cause is not
/// a wait for a free request, or if the disk had not been busy since before the last piece.
#[must_use]
pub fn busy<'p>(
    model: &Model,
    pieces: impl IntoIterator<Item = &'p Piece>,
) -> Option<(Disk, Busy)> {
    let (disk, waits) = waits_in(pieces)?;
    Some((disk, model.busy(disk, *waits.last()?)?))
}

/// The disks whose completions ended waits for a free request of another disk in these pieces, in the order of the
/// waits: disks of one controller may share their tags.
#[must_use]
pub fn woken_by<'p>(model: &Model, pieces: impl IntoIterator<Item = &'p Piece>) -> Vec<Disk> {
    let mut disks = Vec::new();
    for piece in pieces {
        if let Cause::Held(disk, Place::Unallocated | Place::NoTag, _) = piece.cause
            && let Some(by) = completed(model, piece)
            && by != disk
            && !disks.contains(&by)
        {
            disks.push(by);
        }
    }
    disks
}

/// The disk whose completion ended the sleep that ends with this piece; `None` if no disk did.
fn completed(model: &Model, piece: &Piece) -> Option<Disk> {
    let thread = model.thread(piece.thread)?;
    let mut ending = thread.between(piece.end.checked_sub(1)?, piece.end);
    let sleep = ending.find(|interval| interval.end == piece.end)?;
    match model.waker(sleep.waker?)?.context {
        Some(Context::Disk(disk)) => Some(disk),
        _ => None,
    }
}

/// Returns the disk from which a thread waited for a free request in these pieces, and the times of the pieces. The
/// pieces have one cause. `None` if the cause is not a wait for a free request.
fn waits_in<'p>(pieces: impl IntoIterator<Item = &'p Piece>) -> Option<(Disk, Vec<(u64, u64)>)> {
    let mut pieces = pieces.into_iter().peekable();
    let Cause::Held(disk, Place::Unallocated | Place::NoTag, _) = pieces.peek()?.cause else {
        return None;
    };
    let waits = pieces.map(|piece| (piece.begin, piece.end)).collect();
    Some((disk, waits))
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
