// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Disk requests in flight, by their first sector.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Builder, Detail};
use crate::context::Disk;
use crate::event::Stage;
use crate::ids::ThreadId;
use crate::missing::Events;
use crate::request::{Kind, Request};
use crate::served::{Done, Log};

/// Maximum number of requests in flight. More means that some ended without an event.
const MOST: usize = 16 << 10;

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Held {
    disk: Disk,
    entered: Option<u64>,
    queued: Option<u64>,
    of: Option<ThreadId>,
    limited: Option<u64>,
    allocated: Option<u64>,
    issued: Option<u64>,
    /// Number of sectors that the driver has yet to complete; 0 if not recorded.
    left: u32,
    /// Whether the driver has completed a part of it.
    is_part: bool,
}

impl Held {
    fn new(disk: Disk) -> Self {
        Self {
            disk,
            entered: None,
            queued: None,
            of: None,
            limited: None,
            allocated: None,
            issued: None,
            left: 0,
            is_part: false,
        }
    }

    /// Whether it is a bio that has not been issued, and may be for a partition of this disk. `disks` are no partitions.
    fn may_be_of(&self, disk: Disk, disks: &HashSet<Disk>) -> bool {
        self.issued.is_none() && may_be_part(self.disk, disk, disks)
    }
}

/// Whether this device may be a partition of the disk. `disks` are no partitions.
fn may_be_part(part: Disk, disk: Disk, disks: &HashSet<Disk>) -> bool {
    !disks.contains(&part) && part.may_be_part_of(disk)
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Requests by first sector, one per disk. Requests of a partition have sectors of its disk.
    held: BTreeMap<u64, Vec<Held>>,
    len: usize,
    flushes: HashMap<Disk, Flushes>,
    /// Devices that are no partitions: they were issued requests, have completed some, or have passed bios on.
    disks: HashSet<Disk>,
    /// What the disks served while threads waited for a free request.
    served: Log,
}

/// Flushes of a disk: their number at the driver, and when the last one was issued. That time is `None` if the driver
/// had another flush then: the starts of the flushes that end next are unknown.
#[derive(Debug, Default)]
struct Flushes {
    under_way: u32,
    issued: Option<u64>,
}

impl Requests {
    /// Forgets all requests, since events of them may be missing until `time`.
    pub(super) fn clear(&mut self, time: u64) {
        let issued = |held: &Held| Some((held.disk, held.issued?));
        let all = self.held.values().flatten();
        self.served.lost(time, all.filter_map(issued));
        self.held.clear();
        self.flushes.clear();
        self.len = 0;
    }

    /// Maximum memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.len * 2 * (size_of::<Held>() + size_of::<Vec<Held>>() + size_of::<u64>())
            + self.flushes.len() * 2 * size_of::<(Disk, Flushes)>()
            + self.disks.len() * 2 * size_of::<Disk>()
            + self.served.bytes()
    }

    /// Drops what the disks served.
    pub(super) fn forget_served(&mut self) {
        self.served = Log::default();
    }

    /// What the disks served, once all events are seen.
    pub(super) fn into_served(mut self) -> Log {
        // No event shows when the requests that are still in flight are completed.
        self.clear(u64::MAX);
        self.served.finish();
        self.served
    }

    /// Records that a thread has waited for a request of this disk or partition. Of a partition, the disk is not
    /// recorded: what each possible disk served is kept.
    fn waited(&mut self, device: Disk, wait: (u64, u64), count_only: bool) {
        let is_possible =
            |disk: &&Disk| **disk == device || may_be_part(device, **disk, &self.disks);
        for disk in self.disks.iter().filter(is_possible) {
            self.served.waited(*disk, wait, count_only);
        }
    }

    /// Records that a request has reached a stage. For its submission, records the thread and whether a limit held
    /// it back. For its allocation by its own thread, returns when the thread submitted it.
    fn reach(
        &mut self,
        time: u64,
        stage: Stage,
        (disk, sector): (Disk, u64),
        sectors: u32,
        (by, is_limited): (Option<ThreadId>, bool),
    ) -> Option<u64> {
        if stage == Stage::Issued {
            self.disks.insert(disk);
        }
        let held = self.at(time, disk, sector, stage == Stage::Issued);
        match stage {
            Stage::Queued => {
                // The end of an older request with this sector was not seen. A bio that a stacked device has just
                // passed on has no `queued` yet.
                if held.queued.is_some() {
                    *held = Held::new(disk);
                }
                if held.entered.is_none() {
                    (held.entered, held.of) = (Some(time), by.filter(|_| !is_limited));
                }
                held.queued = Some(time);
                held.limited = held.limited.or(is_limited.then_some(time));
            }
            Stage::Allocated => {
                held.allocated = Some(time);
                return held.queued.filter(|_| by.is_some() && held.of == by);
            }
            Stage::Issued => {
                held.left = sectors;
                // After an incomplete transfer, drivers give the rest of a request back to be issued again.
                if !held.is_part {
                    held.issued = Some(time);
                }
            }
        }
        None
    }

    /// Passes a bio from a stacked device on to another device.
    pub(super) fn remap(
        &mut self,
        time: u64,
        (from, old): (Disk, u64),
        (disk, sector): (Disk, u64),
    ) {
        if from == disk {
            return;
        }
        self.disks.insert(from);
        let upper = self.held.get(&old);
        let upper = upper.and_then(|all| all.iter().find(|held| held.disk == from));
        if let Some(upper) = upper.copied()
            && upper.entered.is_some()
        {
            let lower = self.at(time, disk, sector, false);
            *lower = Held::new(disk);
            (lower.entered, lower.of, lower.limited) = (upper.entered, upper.of, upper.limited);
        }
    }

    /// Records that a flush is issued to the driver.
    pub(super) fn flush(&mut self, time: u64, disk: Disk) {
        let of = self.flushes.entry(disk).or_default();
        of.issued = (of.under_way == 0).then_some(time);
        of.under_way += 1;
    }

    /// Handles the end of a flush, or of a request that waited for one. Returns the flush, if its start is known.
    pub(super) fn flushed(&mut self, time: u64, disk: Disk) -> Option<Request> {
        let of = self.flushes.get_mut(&disk)?;
        let is_under_way = of.under_way > 0;
        of.under_way = of.under_way.saturating_sub(1);
        let issued = of.issued?;
        if is_under_way {
            self.served.flushes(disk, issued, time);
        }
        Some(request(Held::new(disk), issued, Kind::Flush))
    }

    /// Completes a request, or a part of it. Returns the request, if its issue was seen, and what the disk has served,
    /// if this was the last part.
    pub(super) fn complete(
        &mut self,
        time: u64,
        disk: Disk,
        (sector, sectors): (u64, u32),
        kind: Kind,
    ) -> (Option<Request>, Option<Done>) {
        let unseen = Done {
            issued: time,
            completed: time,
            of: None,
        };
        let is = |held: &&Held| held.disk == disk;
        let held = self.held.get(&sector).and_then(|all| all.iter().find(is));
        let Some(mut held) = held.copied() else {
            return (None, Some(unseen));
        };
        let end = sector.saturating_add(u64::from(sectors.max(held.left).max(1)));
        let inside: Vec<u64> = self.held.range(sector..end).map(|(at, _)| *at).collect();
        let mut is_of_one = true;
        for at in inside {
            // A bio merged into the request may still be recorded for a partition.
            let merged = self.held.get(&at).into_iter().flatten();
            is_of_one &= merged
                .filter(|bio| bio.disk == disk || bio.may_be_of(disk, &self.disks))
                .all(|bio| bio.of == held.of);
            if let Some(all) = self.held.get_mut(&at) {
                let before = all.len();
                all.retain(|held| held.disk != disk);
                self.len -= before - all.len();
                if all.is_empty() {
                    self.held.remove(&at);
                }
            }
        }
        if !is_of_one {
            // The history of the first bio does not apply to the others.
            held = Held {
                issued: held.issued,
                left: held.left,
                is_part: held.is_part,
                ..Held::new(disk)
            };
        }
        let Some(issued) = held.issued else {
            return (None, Some(unseen));
        };
        let request = request(held, issued, kind);
        if held.left > sectors {
            let rest = sector.saturating_add(u64::from(sectors));
            (held.left, held.is_part) = (held.left - sectors, true);
            self.held.entry(rest).or_default().push(held);
            self.len += 1;
            return (Some(request), None);
        }
        let done = Done {
            issued,
            completed: time,
            of: held.of,
        };
        (Some(request), Some(done))
    }

    /// Finds the request with this sector, or adds one. A bio may be recorded for a partition, but its issue
    /// (`is_issued`) is recorded for the disk: if the only request with this sector may be for a partition of the disk,
    /// the issue is taken to be of that request.
    fn at(&mut self, time: u64, disk: Disk, sector: u64, is_issued: bool) -> &mut Held {
        if self.len >= MOST {
            self.clear(time);
        }
        let all = self.held.entry(sector).or_default();
        let mut place = all.iter().position(|held| held.disk == disk);
        if place.is_none()
            && is_issued
            && let [bio] = &mut all[..]
            && bio.may_be_of(disk, &self.disks)
        {
            bio.disk = disk;
            place = Some(0);
        }
        let place = place.unwrap_or_else(|| {
            all.push(Held::new(disk));
            self.len += 1;
            all.len() - 1
        });
        &mut all[place]
    }
}

/// Creates the record of a completed request.
fn request(held: Held, issued: u64, kind: Kind) -> Request {
    Request {
        disk: held.disk,
        entered: held.entered,
        queued: held.queued,
        of: held.of,
        limited: held.limited,
        allocated: held.allocated,
        issued,
        kind,
    }
}

impl Builder {
    /// Whether io.max may have held back the requests that `thread` submits: it is a worker whose work items are not
    /// recorded.
    fn may_be_held_back(&self, thread: ThreadId) -> bool {
        self.missing.has(Events::Works)
            && self.is_called(thread, |name| name.starts_with("kworker/"))
    }

    /// Records that a request, or a bio, has reached a stage on `cpu`.
    pub(super) fn request(
        &mut self,
        time: u64,
        cpu: u32,
        stage: Stage,
        place: (Disk, u64),
        sectors: u32,
    ) {
        let is_limited = stage == Stage::Queued && self.was_held_back(time, cpu);
        let at = self.cpus.at(cpu);
        let by = at.thread().filter(|_| at.contexts.is_empty());
        let by = by.filter(|by| !self.may_be_held_back(*by));
        let by_limit = (by, is_limited);
        let queued = self.requests.reach(time, stage, place, sectors, by_limit);
        let (Some(thread), Some(queued)) = (by, queued) else {
            return;
        };
        let slept = self.tasks.of(thread).slept_since;
        if slept.is_none_or(|since| since < queued)
            || time <= self.tasks.keep
            // The next request after a wait shows whether the thread waited without a request, so it is kept if
            // any earlier part of the thread's activity is.
            || !self.tasks.wants(thread, 0, time)
        {
            return;
        }
        self.requests.waited(place.0, (queued, time), self.over);
        match self.over {
            true => self.signs.count(),
            false => self.signs.allocates(thread, (queued, time), place.0),
        }
    }

    /// Records that a disk has completed a request, or a part of it without `done`, for threads that may be waiting for
    /// a free one.
    pub(super) fn note_served(&mut self, disk: Disk, done: Option<Done>) {
        self.requests.disks.insert(disk);
        let Some(done) = done else {
            return;
        };
        if !matches!(self.tasks.detail, Detail::Waits) && self.tasks.keep != u64::MAX {
            self.requests.served.completes(disk, done, self.over);
        }
    }
}
