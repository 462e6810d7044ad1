// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Disk requests in flight, paired by disk, position and length, since events do not name the request.
//!
//! ```text
//!             insert            issue            complete (all sectors)
//!  (nothing) -------> queued ---------> at device ---------> ended
//!      |               |  ^              |  ^  `- complete (some): the rest stays
//!      |   merge: gone '  `-- requeue ---'  |
//!      `------------------ issue -----------'
//! ```
//!
//! A driver may also give back a request that it has not started: a requeue with no issue before it. If the request was
//! not inserted, it is queued from then on. An issue before the start of the trace, or in a gap, is not seen: the
//! request then counts as queued from the requeue to the next issue.

use std::collections::BTreeMap;

use super::ground::{Ground, Mark};
use super::step::{Block, Operation};
use super::table::Why;
use crate::context::Disk;

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live {
    pub(super) operation: Operation,
    /// When it was queued: inserted, or given back by the driver before any other event.
    pub(super) queued: Option<Mark>,
    /// The first issue.
    pub(super) issued: Option<Mark>,
    /// The thread that inserted or issued it.
    pub(super) tid: Option<i32>,
    /// Why its events may be of another request: an identical request was in flight, too, or may have ended in a gap.
    pub(super) doubt: Option<Why>,
    at_device: bool,
    /// Whether the driver has given it back since its last issue: it may be inserted again.
    is_back: bool,
    left: u64,
}

/// The effect of a completion.
#[derive(Debug, Clone, Copy)]
pub(super) enum Completed {
    /// The request has ended.
    All(Live),
    /// A part of the request has ended.
    Part(Live),
    /// A request ended that waited for a flush, and has no issue of its own; or no sector of a request has ended: a
    /// SCSI disk reports this before the request fails or is issued again.
    Nothing,
    /// The request was not seen before.
    Unknown,
}

/// All requests in flight, by disk and first remaining sector; requests at one position are in the order of their
/// arrival.
#[derive(Debug, Default)]
pub(super) struct Requests(BTreeMap<(Disk, u64), Vec<Live>>);

impl Requests {
    fn take(&mut self, key: (Disk, u64), is: impl Fn(&Live) -> bool) -> Option<Live> {
        let here = self.0.get_mut(&key)?;
        let place = here.iter().position(is)?;
        let live = here.remove(place);
        if here.is_empty() {
            self.0.remove(&key);
        }
        Some(live)
    }

    fn put(&mut self, ground: &Ground, disk: Disk, sector: u64, mut live: Live) {
        let here = self.0.entry((disk, sector)).or_default();
        for other in here.iter_mut() {
            if other.is_like(&live) {
                let gap = other.may_have_ended(ground).then(|| ground.why());
                let doubt = gap.or(other.doubt).or(live.doubt);
                let doubt = Some(doubt.unwrap_or(Why::Identical));
                (other.doubt, live.doubt) = (doubt, doubt);
            }
        }
        here.push(live);
    }

    /// Inserts a request. Returns false if the request is in flight already, since the driver had given it back.
    pub(super) fn insert(
        &mut self,
        ground: &Ground,
        block: &Block,
        mark: Mark,
        tid: Option<i32>,
    ) -> bool {
        let key = (block.disk, block.sector);
        let is_back = |live: &Live| live.is_queued(block) && live.is_back;
        if self
            .0
            .get(&key)
            .is_some_and(|here| here.iter().any(is_back))
        {
            return false;
        }
        let live = Live::queued(block, mark, tid);
        self.put(ground, block.disk, block.sector, live);
        true
    }

    /// Issues a request. Returns it if this is its first issue.
    pub(super) fn issue(
        &mut self,
        ground: &Ground,
        block: &Block,
        mark: Mark,
        tid: Option<i32>,
    ) -> Option<Live> {
        let key = (block.disk, block.sector);
        let known = self
            .take(key, |live| live.is_queued(block))
            .or_else(|| self.grown(block));
        let is_first = known.is_none_or(|live| live.issued.is_none());
        let live = Live {
            operation: block.operation,
            queued: known.and_then(|live| live.queued),
            issued: known.and_then(|live| live.issued).or(Some(mark)),
            tid: known.and_then(|live| live.tid).or(tid),
            doubt: known.and_then(|live| live.doubt),
            at_device: true,
            is_back: false,
            left: block.sectors,
        };
        self.put(ground, block.disk, block.sector, live);
        is_first.then_some(live)
    }

    /// Finds a queued request that has grown: bios merged into it make it longer without an event.
    fn grown(&mut self, block: &Block) -> Option<Live> {
        let end = block.sector.saturating_add(block.sectors);
        let fits = |at: u64, live: &Live| {
            let is_inside = live.left > 0 && at.saturating_add(live.left) <= end;
            !live.at_device && live.operation == block.operation && is_inside
        };
        let range = (block.disk, block.sector)..(block.disk, end);
        let mut inside = self.0.range(range);
        let (key, _) = inside.find(|((_, at), here)| here.iter().any(|live| fits(*at, live)))?;
        let key = *key;
        self.take(key, |live| fits(key.1, live))
    }

    /// Notes that the driver gives a request back, and returns the request. The current thread may only have been
    /// interrupted, so the thread of a request without an earlier event is not known before its issue. `None` if no
    /// request in flight matches, and the event has no sectors and is neither a flush nor a command.
    pub(super) fn requeue(&mut self, ground: &Ground, block: &Block, mark: Mark) -> Option<Live> {
        let key = (block.disk, block.sector);
        let whole = |live: &Live| live.at_device && live.left == block.sectors;
        let same = |live: &Live| whole(live) && live.operation == block.operation;
        let other = |live: &Live| whole(live) && live.may_be_of(block);
        let known = self
            .take(key, same)
            .or_else(|| self.take(key, |live| live.is_queued(block)))
            .or_else(|| self.grown(block))
            .or_else(|| self.take(key, other));
        let is_request =
            block.sectors > 0 || matches!(block.operation, Operation::Flush | Operation::Other);
        let new = || is_request.then(|| Live::queued(block, mark, None));
        let live = known.or_else(new)?;
        let back = Live {
            at_device: false,
            is_back: true,
            left: block.sectors,
            ..live
        };
        self.put(ground, block.disk, block.sector, back);
        Some(live)
    }

    /// Removes a queued request that becomes a part of another one, and returns it.
    pub(super) fn merge(&mut self, block: &Block) -> Option<Live> {
        self.take((block.disk, block.sector), |live| live.is_queued(block))
    }

    /// Completes a request, or a part of one.
    pub(super) fn complete(&mut self, ground: &Ground, block: &Block) -> Completed {
        let key = (block.disk, block.sector);
        let whole = |live: &Live| live.at_device && live.left == block.sectors;
        let same = |live: &Live| whole(live) && live.operation == block.operation;
        // A command without sectors at its issue may have sectors at its end.
        let bare =
            |live: &Live| live.at_device && live.left == 0 && live.operation == block.operation;
        if let Some(live) = self.take(key, same).or_else(|| self.take(key, bare)) {
            return Completed::All(live);
        }
        let longer = |live: &Live| block.sectors > 0 && live.at_device && live.left > block.sectors;
        let same_longer = |live: &Live| longer(live) && live.operation == block.operation;
        if let Some(here) = self.0.get_mut(&key)
            && here.iter().filter(|live| same_longer(live)).count() > 1
        {
            // It is not recorded which of these requests has completed a part.
            for live in here.iter_mut().filter(|live| same_longer(live)) {
                live.doubt = live.doubt.or(Some(Why::Identical));
            }
        }
        if let Some(live) = self.take(key, same_longer) {
            return self.continue_after(ground, block, live);
        }
        let other = |live: &Live| whole(live) && live.may_be_of(block);
        if let Some(live) = self.take(key, other) {
            return Completed::All(live);
        }
        match self.take(key, longer) {
            Some(live) => self.continue_after(ground, block, live),
            None if block.sectors == 0 => Completed::Nothing,
            None => Completed::Unknown,
        }
    }

    /// Keeps what is left of a request after the completion of these sectors.
    fn continue_after(&mut self, ground: &Ground, block: &Block, mut live: Live) -> Completed {
        live.left -= block.sectors;
        let rest = block.sector.saturating_add(block.sectors);
        self.put(ground, block.disk, rest, live);
        Completed::Part(live)
    }

    /// Ends all requests, and returns them with their disks.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (Disk, Live)> {
        let all = std::mem::take(&mut self.0).into_iter();
        all.flat_map(|((disk, _), here)| here.into_iter().map(move |live| (disk, live)))
    }
}

impl Live {
    /// A request that is queued now.
    fn queued(block: &Block, mark: Mark, tid: Option<i32>) -> Self {
        Self {
            operation: block.operation,
            queued: Some(mark),
            issued: None,
            tid,
            doubt: None,
            at_device: false,
            is_back: false,
            left: block.sectors,
        }
    }

    /// Whether an insertion, issue or merge may be of this request.
    fn is_queued(&self, block: &Block) -> bool {
        !self.at_device && self.left == block.sectors && self.operation == block.operation
    }

    /// Whether an event with another operation may be of this request. Without sectors, the event may be of a request
    /// that waited for a flush, or of which nothing is done yet. Old kernels show the end of a failed command as that
    /// of another operation.
    fn may_be_of(&self, block: &Block) -> bool {
        let is_command = block.operation == Operation::Other && self.operation != Operation::Flush;
        block.sectors > 0 || is_command
    }

    /// Whether it may have ended in a gap since it was last seen.
    fn may_have_ended(&self, ground: &Ground) -> bool {
        let seen = self.issued.or(self.queued);
        seen.is_some_and(|seen| ground.spans(seen))
    }

    /// Whether a completion could belong to either request.
    fn is_like(&self, other: &Self) -> bool {
        self.left == other.left && self.operation == other.operation
    }
}
