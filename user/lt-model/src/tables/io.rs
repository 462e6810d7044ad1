// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Disk requests: in the queue, from insertion to first issue, and at the device, from first issue to completion of the
//! last sector, as the tracker `block` measures them. After the first issue, time for which the driver has given the
//! request back counts as time at the device. If the driver gives back a request that was neither inserted nor issued,
//! the request is in the queue from then on.

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Case, Extra, Kind, Object};
use super::requests::{Completed, Live, Requests};
use super::step::{Block, BlockStage, Seen, Step};
use super::table::{Range, Table, Why};
use crate::context::Disk;

#[derive(Debug)]
pub(super) struct Io {
    queue: Table,
    device: Table,
    requests: Requests,
}

impl Io {
    pub(super) fn new(range: Range, by: Option<By>) -> Self {
        let by = by.unwrap_or(By::Object);
        Self {
            queue: Table::new(Kind::Queue, range, by),
            device: Table::new(Kind::Device, range, by),
            requests: Requests::default(),
        }
    }

    fn case(ground: &mut Ground, seen: &Seen<'_>, disk: Disk, live: &Live, since: Mark) -> Case {
        let object = Object::Disk(disk, live.operation);
        let times = (since.time, seen.time);
        ground.case(times, seen.cpu, live.tid, Some(object))
    }

    fn add(table: &mut Table, ground: &Ground, case: &Case, live: &Live, since: Mark) {
        let gap = ground.spans(since).then(|| ground.why());
        match gap.or(live.doubt) {
            Some(why) => table.miss_case(case, why),
            None => table.measure(case),
        }
    }

    fn note(
        &mut self,
        ground: &mut Ground,
        seen: &Seen<'_>,
        disk: Disk,
        live: &Live,
        which: Extra,
    ) {
        let now = ground.mark(seen.time);
        let case = Self::case(ground, seen, disk, live, now);
        self.device.note(&case, which);
    }

    fn complete(&mut self, ground: &mut Ground, seen: &Seen<'_>, block: &Block) {
        let live = match self.requests.complete(ground, block) {
            Completed::All(live) => live,
            Completed::Part(live) => {
                return self.note(ground, seen, block.disk, &live, Extra::Parts);
            }
            Completed::Nothing => return,
            Completed::Unknown => {
                let why = ground.why();
                return self.device.miss(seen.time, None, why);
            }
        };
        let Some(since) = live.issued else {
            return;
        };
        let case = Self::case(ground, seen, block.disk, &live, since);
        Self::add(&mut self.device, ground, &case, &live, since);
        if block.failed {
            self.device.note(&case, Extra::Errors);
        }
    }
}

impl Machine for Io {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        let Step::Block(block) = &seen.step else {
            return;
        };
        let (now, tid) = (ground.mark(seen.time), ground.who(seen));
        let disk = block.disk;
        match block.stage {
            BlockStage::Inserted => {
                self.requests.insert(ground, block, now, tid);
            }
            BlockStage::Issued => {
                if let Some(live) = self.requests.issue(ground, block, now, tid)
                    && let Some(since) = live.queued
                {
                    let case = Self::case(ground, seen, disk, &live, since);
                    Self::add(&mut self.queue, ground, &case, &live, since);
                }
            }
            BlockStage::Requeued => {
                if let Some(live) = self.requests.requeue(ground, block, now) {
                    self.note(ground, seen, disk, &live, Extra::Requeues);
                }
            }
            BlockStage::Merged => {
                if let Some(live) = self.requests.merge(block) {
                    self.note(ground, seen, disk, &live, Extra::Merges);
                }
            }
            BlockStage::Completed => self.complete(ground, seen, block),
        }
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        for (_, live) in self.requests.drain() {
            let (table, since) = match (live.issued, live.queued) {
                (Some(issued), _) => (&mut self.device, issued),
                (None, Some(queued)) => (&mut self.queue, queued),
                (None, None) => continue,
            };
            // One of several identical requests has not ended; which one is not recorded.
            let gap = live.doubt.filter(|why| *why != Why::Identical);
            let why = gap.unwrap_or_else(|| ground.why_since(since));
            table.miss_open(since.time, live.tid.map(|tid| (tid, None)), why);
        }
        if ground.absent.is_some() {
            self.queue.give_up();
            self.device.give_up();
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.queue, &mut self.device]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.queue, self.device]
    }
}
