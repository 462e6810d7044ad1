// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Bios and disk requests in flight, by their first sector, since events do not name them. A bio of a partition has the
//! number and a sector of its disk in all events. Only `block_bio_remap` also shows the partition.
//!
//! ```text
//!             queued        allocated        issued          completed (all sectors)
//!  (nothing) --------> bio ----------> bio ---------> request ----------> ended
//!      |                ^               |               |  ^ `- completed (some): the rest stays
//!      `- passed on: ---'               |               `--' issued again
//!         lower bio                     `- merged into the issued request: gone
//! ```
//!
//! A request that the driver gives back is like a bio that has not been issued. Without an event of this
//! (`block_rq_requeue`), only its next issue shows it.
//!
//! If an event may be of any of several bios or requests, these are doubtful from then on: their times are unknown, and
//! so is their thread, unless all have the same one.
//!
//! Flushes and commands have no position. All flushes of a disk are alike, and so are all its commands.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::{Builder, Detail};
use crate::context::Disk;
use crate::event::{NOWHERE, Stage};
use crate::ids::ThreadId;
use crate::missing::Events;
use crate::request::{Kind, Request};
use crate::served::{Done, Log};

/// Maximum number of bios and requests in flight; also of the flushes, and of the commands, of a disk. More means that
/// some ended without an event, such as the bios of a device without requests.
const MOST: usize = 16 << 10;

/// Maximum number of bios and requests with the same first sector, which bounds the time for an event. There may be one
/// for each disk of a large array. On a device without requests, bios stay, since no event ends them.
const MOST_ALIKE: usize = 256;

/// A bio that has not been issued, or a request at the driver.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// The disk, or a stacked device.
    disk: Disk,
    entered: Option<u64>,
    queued: Option<u64>,
    of: Option<ThreadId>,
    limited: Option<u64>,
    allocated: Option<u64>,
    issued: Option<u64>,
    /// Number of sectors of a bio; of a request, those that the driver has yet to complete. 0 if not recorded.
    left: u32,
    /// Whether its bio was seen when it was submitted.
    has_bio: bool,
    /// Whether the driver has completed a part of it.
    is_part: bool,
    /// Whether this is a request that the driver has given back, and that waits to be issued again.
    is_back: bool,
    /// Whether the last event may be that of another bio or request.
    is_doubtful: bool,
    /// The bio of a stacked device that was passed on as this one: the device and the first sector there.
    upper: Option<(Disk, u64)>,
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
            has_bio: false,
            is_part: false,
            is_back: false,
            is_doubtful: false,
            upper: None,
        }
    }

    /// When it reached its last stage.
    fn reached(&self) -> u64 {
        let last = self.issued.or(self.allocated).or(self.queued);
        last.or(self.entered).unwrap_or_default()
    }

    /// Whether it is a bio that a stacked device has just passed on, and that is not submitted yet.
    fn is_passed_on(&self) -> bool {
        self.queued.is_none() && !self.has_request() && self.issued.is_none()
    }

    /// Whether it is seen to have a `struct request` of the disk, unless it is at the driver.
    fn has_request(&self) -> bool {
        self.allocated.is_some() || self.is_back
    }

    /// Cuts a bio to its first sectors, which get a request or are passed on now. Returns a bio for the rest, whose
    /// submission has no event. `None` if there is no rest, or if this may be another bio.
    fn split(&mut self, sectors: u32) -> Option<Self> {
        let left = self.left.checked_sub(sectors).filter(|left| *left > 0)?;
        if sectors == 0 || self.is_doubtful {
            return None;
        }
        self.left = sectors;
        Some(Self { left, ..*self })
    }

    /// Whether it is a bio of this disk.
    fn is_bio_of(&self, disk: Disk) -> bool {
        self.disk == disk && self.issued.is_none()
    }

    /// Whether this is a request at the driver that may be issued again, or completed, with this length.
    fn is_at_driver(&self, disk: Disk, sectors: u32) -> bool {
        self.disk == disk && self.issued.is_some() && self.left == sectors
    }

    /// Whether the next event may be of either, if both have the same sector.
    fn is_like(&self, other: &Self) -> bool {
        let both_passed_on = self.is_passed_on() && other.is_passed_on();
        both_passed_on && self.disk == other.disk
            || other.issued.is_some() && self.is_at_driver(other.disk, other.left)
    }
}

/// Makes bios or requests doubtful if there are several: the next event may be of any of them.
fn confuse<'a>(alike: impl Iterator<Item = &'a mut Held>) {
    let mut alike: Vec<&mut Held> = alike.collect();
    let [first, others @ ..] = &alike[..] else {
        return;
    };
    if others.is_empty() {
        return;
    }
    let is_of_one = others.iter().all(|held| held.of == first.of);
    let of = first.of.filter(|_| is_of_one);
    for held in &mut alike {
        (held.of, held.is_doubtful) = (of, true);
    }
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Bios and requests by first sector, in the order of their arrival.
    held: BTreeMap<u64, Vec<Held>>,
    len: usize,
    flushes: HashMap<Disk, Alike>,
    /// Commands without a position.
    commands: HashMap<Disk, Alike>,
    /// What the disks served while threads waited for a free request.
    served: Log,
}

/// The flushes, or the commands, of a disk at the driver. If there are several, it is not known which one ends next.
#[derive(Debug, Clone, Default)]
struct Alike {
    /// When each was issued, in time order. The latest counts as the next one to end. So the driver has had at least
    /// one since the first of these times.
    issued: Vec<u64>,
    /// When those were issued that the driver has given back, and that wait to be issued again. One of them may still
    /// be at the driver, if the driver has refused another one without an event of its issue.
    back: Vec<u64>,
    /// Whether it is not known when the next one to end was issued.
    is_doubtful: bool,
}

impl Alike {
    /// Adds one that is issued now. If there are too many, drops the older half, and returns when the first of these
    /// was issued.
    fn issue(&mut self, time: u64) -> Option<u64> {
        self.is_doubtful |= !self.issued.is_empty();
        self.back.pop();
        let is_full = self.issued.len() >= MOST;
        let dropped = self.issued.first().copied().filter(|_| is_full);
        if is_full {
            self.issued.drain(..MOST / 2);
        }
        self.issued.push(time);
        dropped
    }

    /// Removes the next one to end. Returns when it was issued, and whether this is certain.
    fn end(&mut self) -> Option<(u64, bool)> {
        let issued = self.issued.pop().or_else(|| self.back.pop())?;
        let is_known = !self.is_doubtful;
        self.is_doubtful &= !self.issued.is_empty() || !self.back.is_empty();
        Some((issued, is_known))
    }

    /// The driver gives one of them back, or one that it has not accepted.
    fn give_back(&mut self) {
        if let Some(issued) = self.issued.pop() {
            self.back.push(issued);
            self.is_doubtful = true;
        }
    }

    /// When those were issued that may be at the driver.
    fn all(&self) -> impl Iterator<Item = u64> {
        self.issued.iter().chain(&self.back).copied()
    }
}

impl Requests {
    /// Forgets all requests, since events of them may be missing until `time`.
    pub(super) fn clear(&mut self, time: u64) {
        for (disk, of) in &self.flushes {
            if let Some(since) = of.all().min() {
                self.served.may_flush(*disk, since, time);
            }
        }
        let issued = |held: &Held| Some((held.disk, held.issued?));
        let requests = self.held.values().flatten().filter_map(issued);
        let commands = self.commands.iter().flat_map(|(disk, of)| {
            let issued = of.all();
            issued.map(move |issued| (*disk, issued))
        });
        self.served.lost(time, requests.chain(commands));
        self.held.clear();
        self.flushes.clear();
        self.commands.clear();
        self.len = 0;
    }

    /// Maximum memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let alike = self.flushes.values().chain(self.commands.values());
        let issued = alike.map(|of| of.issued.capacity() + of.back.capacity());
        let issued: usize = issued.sum();
        // The first one at a sector gets room for four.
        (self.held.len() * 4 + self.len * 2) * size_of::<Held>()
            + self.held.len() * 2 * (size_of::<Vec<Held>>() + size_of::<u64>())
            // A list may double with the next flush or command.
            + issued * 2 * size_of::<u64>()
            + (self.flushes.len() + self.commands.len()) * 2 * size_of::<(Disk, Alike)>()
            + self.served.bytes()
    }

    /// Returns a copy without what the disks served.
    pub(super) fn without_served(&self) -> Self {
        Self {
            held: self.held.clone(),
            len: self.len,
            flushes: self.flushes.clone(),
            commands: self.commands.clone(),
            served: Log::default(),
        }
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

    /// Records that a bio or a request has reached a stage. For the submission of a bio, records the thread and whether
    /// a limit held it back. For its allocation by its own thread, returns when the thread submitted it.
    fn reach(
        &mut self,
        time: u64,
        stage: Stage,
        place: (Disk, u64),
        sectors: u32,
        (by, is_limited): (Option<ThreadId>, bool),
    ) -> Option<u64> {
        match stage {
            Stage::Queued => {
                let bio = self.bio(place, Held::is_passed_on);
                if bio.entered.is_none() {
                    (bio.entered, bio.of) = (Some(time), by.filter(|_| !is_limited));
                }
                (bio.queued, bio.has_bio, bio.left) = (Some(time), true, sectors);
                bio.limited = bio.limited.or(is_limited.then_some(time));
                None
            }
            Stage::Allocated => {
                let bio = self.allocate(time, place, sectors, by);
                let is_own = by.is_some() && bio.of == by && !bio.is_doubtful;
                bio.queued.filter(|_| is_own)
            }
            Stage::Issued if place.1 == NOWHERE => {
                self.command(time, place.0);
                None
            }
            Stage::Issued => {
                self.issue(time, place, sectors);
                None
            }
        }
    }

    /// Finds the latest bio of this device with this sector that `is` accepts, or adds one.
    fn bio(&mut self, (disk, sector): (Disk, u64), is: impl Fn(&Held) -> bool) -> &mut Held {
        self.make_room(sector);
        let all = self.held.entry(sector).or_default();
        let is = |held: &Held| held.is_bio_of(disk) && is(held);
        let place = all.iter().rposition(is).unwrap_or_else(|| {
            all.push(Held::new(disk));
            self.len += 1;
            all.len() - 1
        });
        &mut all[place]
    }

    /// Allocates a request for a bio that `by` submits: one that this thread has entered, if there is one. A bio that
    /// another thread has entered does not get the request, unless a stacked device has passed that bio on: the
    /// submission of the rest of a split bio, for example, has no event. If the bio is longer than the request, it is
    /// split.
    fn allocate(
        &mut self,
        time: u64,
        place: (Disk, u64),
        sectors: u32,
        by: Option<ThreadId>,
    ) -> Held {
        let (disk, sector) = place;
        let is_of_another =
            |bio: &Held| by.is_some() && bio.of.is_some() && bio.of != by && bio.upper.is_none();
        let is_open = |bio: &Held| {
            let is_waiting = !bio.has_request() && bio.issued.is_none();
            bio.disk == disk && is_waiting && !is_of_another(bio)
        };
        let is_own = |bio: &Held| is_open(bio) && by.is_some() && bio.of == by;
        let all = self.held.entry(sector).or_default();
        let has_own = all.iter().any(is_own);
        if !has_own {
            confuse(all.iter_mut().filter(|bio| is_open(bio)));
        }
        let bio = self.bio(place, |bio| is_open(bio) && (!has_own || is_own(bio)));
        let rest = bio.split(sectors);
        bio.allocated = Some(time);
        let bio = *bio;
        self.put_rest(sector, sectors, rest);
        bio
    }

    /// Issues a request: a bio, with those that were merged into it, or a request that the driver gave back.
    fn issue(&mut self, time: u64, (disk, sector): (Disk, u64), sectors: u32) {
        let bio = self.take_bio(disk, sector, sectors);
        if bio.is_none() && self.issue_again(time, (disk, sector), sectors) {
            return;
        }
        let mut request = bio.unwrap_or_else(|| Held::new(disk));
        (request.disk, request.issued, request.left) = (disk, Some(time), sectors);
        request.is_back = false;
        self.put(sector, request);
    }

    /// Removes the bio that is issued as this request, and those that were merged into it.
    fn take_bio(&mut self, disk: Disk, sector: u64, sectors: u32) -> Option<Held> {
        let end = sector.saturating_add(u64::from(sectors.max(1)));
        let inside = self.held.range(sector.saturating_add(1)..end);
        let inside: Vec<u64> = inside.map(|(at, _)| *at).collect();

        let is_bio = |held: &Held| held.is_bio_of(disk);
        let has_request = |bio: &Held| is_bio(bio) && bio.has_request();
        let is_allocated = |bio: &Held| is_bio(bio) && bio.allocated.is_some();
        // Only a bio that has a request is issued, or one that was merged to the front of a request. The allocations
        // of all bios are recorded, or none.
        let mut behind = inside.iter().filter_map(|at| self.held.get(at)).flatten();
        let is_front = behind.any(has_request);
        let all = self.held.get_mut(&sector)?;
        let needs_request = !is_front && all.iter().any(is_allocated);
        let may_be = |bio: &Held| is_bio(bio) && (!needs_request || has_request(bio));
        confuse(all.iter_mut().filter(|bio| may_be(bio)));
        let place = all.iter().position(may_be)?;
        let mut bio = all.remove(place);
        self.len -= 1;
        if all.is_empty() {
            self.held.remove(&sector);
        }

        let mut is_of_one = true;
        for at in inside {
            while let Some(merged) = self.take(at, is_bio) {
                is_of_one &= merged.of == bio.of;
                self.forget_uppers(merged);
            }
        }
        if !is_of_one {
            // The issued bio may be any of the doubtful ones.
            let others = self.held.get_mut(&sector).into_iter().flatten();
            for other in others.filter(|other| other.issued.is_none() && other.is_doubtful) {
                other.of = None;
            }
        }
        self.forget_uppers(bio);
        if bio.is_doubtful || !is_of_one {
            // The history of one bio does not apply to the others.
            bio = Held {
                of: bio.of.filter(|_| is_of_one),
                has_bio: bio.has_bio,
                ..Held::new(disk)
            };
        }
        Some(bio)
    }

    /// Issues a request again that the driver gave back without an event, or of which it gave back the rest. Returns
    /// false if there is none.
    fn issue_again(&mut self, time: u64, (disk, sector): (Disk, u64), sectors: u32) -> bool {
        let all = self.held.get_mut(&sector).into_iter().flatten();
        let again = all.filter(|held| held.is_at_driver(disk, sectors));
        let mut again: Vec<&mut Held> = again.collect();
        // After an incomplete transfer, drivers give the rest of a request back.
        if let [request] = &mut again[..]
            && !request.is_part
        {
            request.issued = Some(time);
            // It may also be an identical request whose bio is not seen, either.
            request.is_doubtful |= !request.has_bio;
        }
        !again.is_empty()
    }

    /// Removes the last bio or request with this sector that `is` accepts: an earlier one may have ended without an
    /// event, and its age must not count as that of a later one.
    fn take(&mut self, sector: u64, is: impl Fn(&Held) -> bool) -> Option<Held> {
        let all = self.held.get_mut(&sector)?;
        let place = all.iter().rposition(is)?;
        let taken = all.remove(place);
        self.len -= 1;
        if all.is_empty() {
            self.held.remove(&sector);
        }
        Some(taken)
    }

    /// Adds a bio that a stacked device passes on, or a request at the driver.
    fn put(&mut self, sector: u64, held: Held) {
        self.make_room(sector);
        let all = self.held.entry(sector).or_default();
        all.push(held);
        self.len += 1;
        confuse(all.iter_mut().filter(|other| other.is_like(&held)));
    }

    /// Adds the rest of a bio that was split after `sectors`, if there is one.
    fn put_rest(&mut self, sector: u64, sectors: u32, rest: Option<Held>) {
        if let Some(rest) = rest {
            self.put(sector.saturating_add(u64::from(sectors)), rest);
        }
    }

    /// If there are too many, in all or with this sector, drops the older half of the largest group: the bios or the
    /// requests of one device.
    fn make_room(&mut self, sector: u64) {
        let here = self.held.get(&sector).map_or(0, Vec::len);
        let sectors = match here < MOST_ALIKE {
            true if self.len < MOST => return,
            true => 0..=u64::MAX,
            false => sector..=sector,
        };
        let group = |held: &Held| (held.disk, held.issued.is_some());
        let mut groups: HashMap<(Disk, bool), Vec<u64>> = HashMap::default();
        for held in self.held.range(sectors.clone()).flat_map(|(_, all)| all) {
            groups.entry(group(held)).or_default().push(held.reached());
        }
        let largest = groups
            .into_iter()
            .max_by_key(|(group, times)| (times.len(), *group));
        let Some((largest, mut times)) = largest else {
            return;
        };
        let middle = times.len() / 2;
        let last = *times.select_nth_unstable(middle).1;
        let drops = |held: &Held| group(held) == largest && held.reached() <= last;
        for (_, all) in self.held.range_mut(sectors) {
            let before = all.len();
            for held in all.iter().filter(|held| drops(held)) {
                if let Some(issued) = held.issued {
                    self.served.forgets(held.disk, issued);
                }
            }
            all.retain(|held| !drops(held));
            if all.len() < before {
                // The next event of a dropped bio or request may be mistaken for one of those that are left.
                for held in all.iter_mut().filter(|held| held.disk == largest.0) {
                    (held.of, held.is_doubtful) = (None, true);
                }
            }
        }
        self.held.retain(|_, all| !all.is_empty());
        self.len = self.held.values().map(Vec::len).sum();
    }

    /// Removes the bios of stacked devices that were passed on as this one.
    fn forget_uppers(&mut self, bio: Held) {
        let mut upper = bio.upper;
        while let Some((disk, sector)) = upper {
            let is_upper = |held: &Held| {
                held.disk == disk && held.issued.is_none() && held.entered == bio.entered
            };
            upper = self.take(sector, is_upper).and_then(|held| held.upper);
        }
    }

    /// Passes the first sectors of a bio from a stacked device on to another device. If this is a partition, a second
    /// event shows the partition as the old device, and the sector there: the bio gets its sector of the disk.
    pub(super) fn remap(
        &mut self,
        (from, old): (Disk, u64),
        (disk, sector): (Disk, u64),
        sectors: u32,
    ) {
        let Some(all) = self.held.get_mut(&old) else {
            return;
        };
        let is_upper = |held: &Held| held.is_bio_of(from) && held.entered.is_some();
        confuse(all.iter_mut().filter(|held| is_upper(held)));
        let Some(upper) = all.iter_mut().rfind(|held| is_upper(held)) else {
            let is_passed_on = |held: &Held| held.disk == disk && held.is_passed_on();
            if from.may_be_part_of(disk)
                && let Some(bio) = self.take(old, is_passed_on)
            {
                self.put(sector, bio);
            }
            return;
        };
        let rest = upper.split(sectors);
        let lower = Held {
            entered: upper.entered,
            of: upper.of,
            limited: upper.limited,
            left: sectors,
            is_doubtful: upper.is_doubtful,
            upper: Some((from, old)),
            ..Held::new(disk)
        };
        self.put(sector, lower);
        self.put_rest(old, sectors, rest);
    }

    /// Records that a command without a position is issued to the driver.
    fn command(&mut self, time: u64, disk: Disk) {
        let of = self.commands.entry(disk).or_default();
        if let Some(dropped) = of.issue(time) {
            self.served.forgets(disk, dropped);
        }
    }

    /// Records that a flush is issued to the driver.
    pub(super) fn flush(&mut self, time: u64, disk: Disk) {
        let of = self.flushes.entry(disk).or_default();
        if let Some(dropped) = of.issue(time) {
            self.served.may_flush(disk, dropped, u64::MAX);
        }
    }

    /// Handles the end of a flush. Returns the flush, if its start is known.
    pub(super) fn flushed(&mut self, time: u64, disk: Disk) -> Option<Request> {
        let of = self.flushes.get_mut(&disk);
        let ended = of.and_then(|of| of.end().map(|ended| (ended, of.issued.is_empty())));
        let Some(((issued, is_known), is_last)) = ended else {
            // The start of this flush, or of one that has ended in its place, was not seen.
            self.served.may_flush(disk, 0, time);
            return None;
        };
        if is_last {
            self.served.flushes(disk, issued, time);
        }
        is_known.then(|| request(Held::new(disk), issued, Kind::Flush))
    }

    /// Handles a request that the driver gives back, or has refused; without a range, a flush.
    pub(super) fn requeue(&mut self, disk: Disk, range: Option<(u64, u32)>) {
        let alike = match range {
            None => self.flushes.get_mut(&disk),
            Some((NOWHERE, _)) => self.commands.get_mut(&disk),
            Some((sector, sectors)) => return self.give_back(disk, sector, sectors),
        };
        if let Some(alike) = alike {
            alike.give_back();
        }
    }

    /// Gives a request back, unless it may be another one with these sectors that the driver has refused. After an
    /// incomplete transfer, the rest of a request stays the same request.
    fn give_back(&mut self, disk: Disk, sector: u64, sectors: u32) {
        let Some(all) = self.held.get_mut(&sector) else {
            return;
        };
        let is_refused = |held: &Held| held.is_bio_of(disk) && held.left == sectors;
        if all.iter().any(is_refused) {
            return;
        }
        let is_given = |held: &Held| held.is_at_driver(disk, sectors) && !held.is_part;
        if let Some(request) = all.iter_mut().rfind(|held| is_given(held)) {
            (request.issued, request.is_back) = (None, true);
        }
    }

    /// Whether a request with this first sector is at the driver.
    pub(super) fn is_at_driver(&self, disk: Disk, sector: u64) -> bool {
        let all = self.held.get(&sector).into_iter().flatten();
        let mut of_disk = all.filter(|held| held.disk == disk);
        of_disk.any(|held| held.issued.is_some())
    }

    /// Completes a request, or a part of it; without sectors, a command. Returns the request, unless its issue was not
    /// seen or may be that of another one; and what the disk has served, if this was the last part.
    pub(super) fn complete(
        &mut self,
        time: u64,
        disk: Disk,
        (sector, sectors): (u64, u32),
        kind: Kind,
    ) -> (Option<Request>, Option<Done>) {
        if sector == NOWHERE || sectors == 0 {
            let ended = self.commands.get_mut(&disk).and_then(Alike::end);
            let (issued, is_known) = ended.unwrap_or((time, false));
            let known = is_known.then(|| request(Held::new(disk), issued, kind));
            let done = Done {
                issued,
                completed: time,
                of: None,
            };
            return (known, Some(done));
        }
        let taken = self.take_request(disk, sector, sectors);
        let Some((mut held, issued)) = taken.and_then(|held| Some((held, held.issued?))) else {
            let unseen = Done {
                issued: time,
                completed: time,
                of: None,
            };
            return (None, Some(unseen));
        };
        let known = (!held.is_doubtful).then(|| request(held, issued, kind));
        if held.left > sectors {
            let rest = sector.saturating_add(u64::from(sectors));
            (held.left, held.is_part) = (held.left - sectors, true);
            self.put(rest, held);
            return (known, None);
        }
        // The time in which the disk had at least one of several doubtful requests is the same in whichever order they
        // end.
        let done = Done {
            issued,
            completed: time,
            of: held.of,
        };
        (known, Some(done))
    }

    /// Removes the request of which these sectors are completed: one of this length, or a longer one.
    fn take_request(&mut self, disk: Disk, sector: u64, sectors: u32) -> Option<Held> {
        let is_of_disk = |held: &Held| held.disk == disk && held.issued.is_some();
        let is_longer = |held: &Held| is_of_disk(held) && held.left > sectors;
        if let Some(whole) = self.take(sector, |held| held.is_at_driver(disk, sectors)) {
            return Some(whole);
        }
        let all = self.held.get_mut(&sector)?;
        confuse(all.iter_mut().filter(|held| is_longer(held)));
        let longer = self.take(sector, is_longer);
        longer.or_else(|| self.take(sector, is_of_disk))
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
        let Some(thread) = by else {
            return;
        };
        let task = self.tasks.of(thread);
        if stage == Stage::Issued {
            task.issued = time;
        }
        let (slept, issued) = (task.slept_since, task.issued_before_sleep);
        let Some(queued) = queued else {
            return;
        };
        if slept.is_none_or(|since| since < queued)
            || time <= self.tasks.keep
            || !self.tasks.wants_any()
        {
            return;
        }
        let (disk, wait) = (place.0, (queued, time));
        // The next allocation after a wait shows whether the thread lacked a request during the wait. An allocation is
        // therefore kept if any earlier activity of the thread is wanted.
        if !self.tasks.wants(thread, 0, time) {
            return self.requests.served.ended(disk, time);
        }
        self.requests.served.waited(disk, wait, self.over);
        match self.over {
            true => self.signs.count(),
            // The sleep may have been in a driver such as nbd or mmc, to which the thread issued another request.
            // After a wait for a free request, a thread often issues requests of other threads before it gets its own.
            false if issued >= queued => {}
            false => self.signs.allocates(thread, wait, disk),
        }
    }

    /// Records that a flush is issued to the driver on `cpu`.
    pub(super) fn flush(&mut self, time: u64, cpu: u32, disk: Disk) {
        self.requests.flush(time, disk);
        let at = self.cpus.at(cpu);
        if let Some(thread) = at.thread().filter(|_| at.contexts.is_empty()) {
            self.tasks.of(thread).issued = time;
        }
    }

    /// Records that a disk has completed a request, for threads that may be waiting for a free one. Without `done`, the
    /// disk has completed only a part of the request.
    pub(super) fn note_served(&mut self, disk: Disk, done: Option<Done>) {
        let Some(done) = done else {
            return;
        };
        if !matches!(self.tasks.detail, Detail::Waits) && self.tasks.keep != u64::MAX {
            self.requests.served.completes(disk, done, self.over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served::Before;

    const DISK: Disk = Disk(8 << 20);
    const PARTITION: Disk = Disk(8 << 20 | 1);
    const MAPPED: Disk = Disk(254 << 20);
    const BY: Option<ThreadId> = Some(ThreadId(1));

    /// A flush is issued, or given back, or ends; when it was issued, if that is known.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Issue,
        Back,
        End(Option<u64>),
    }

    impl Requests {
        /// A bio of [`BY`], or a request, reaches a stage.
        fn reaches(&mut self, time: u64, stage: Stage, place: (Disk, u64), sectors: u32) {
            self.reach(time, stage, place, sectors, (BY, false));
        }
    }

    #[test]
    fn nothing_is_left_of_a_request_that_has_ended() {
        let mut requests = Requests::default();
        requests.reaches(1, Stage::Queued, (MAPPED, 0), 8);
        requests.remap((MAPPED, 0), (DISK, 8), 8);
        requests.remap((PARTITION, 8), (DISK, 64), 8);
        requests.reaches(3, Stage::Queued, (DISK, 64), 8);
        requests.reaches(4, Stage::Allocated, (DISK, 64), 8);
        // Merged into the request.
        requests.reaches(5, Stage::Queued, (DISK, 72), 8);
        requests.reaches(6, Stage::Issued, (DISK, 64), 16);
        assert_eq!(requests.len, 1);
        let (request, done) = requests.complete(9, DISK, (64, 16), Kind::Plain);
        let request = request.unwrap();
        assert_eq!((request.disk, request.of), (DISK, BY));
        assert_eq!((request.entered, request.queued), (Some(1), Some(3)));
        assert_eq!(done.map(|done| done.issued), Some(6));
        assert_eq!((requests.len, requests.held.len()), (0, 0));
    }

    #[test]
    fn a_request_is_issued_again_or_is_identical_to_one_in_flight() {
        let issued = |has_bio: bool, is_given_back: bool| {
            let mut requests = Requests::default();
            if has_bio {
                requests.reaches(1, Stage::Queued, (DISK, 64), 8);
            }
            requests.reaches(2, Stage::Issued, (DISK, 64), 8);
            if is_given_back {
                requests.requeue(DISK, Some((64, 8)));
            }
            requests.reaches(5, Stage::Issued, (DISK, 64), 8);
            let (request, done) = requests.complete(9, DISK, (64, 8), Kind::Plain);
            assert_eq!(requests.len, 0);
            (request.map(|request| request.issued), done.unwrap().issued)
        };
        assert_eq!(issued(true, false), (Some(5), 5));
        // Without the events of bios, there may be two requests.
        assert_eq!(issued(false, false), (None, 5));
        for has_bio in [true, false] {
            assert_eq!(issued(has_bio, true), (Some(5), 5));
        }
    }

    #[test]
    fn a_request_may_grow_after_the_driver_has_given_it_back() {
        for (has_bio, of) in [(true, BY), (false, None)] {
            let mut requests = Requests::default();
            if has_bio {
                requests.reaches(1, Stage::Queued, (DISK, 64), 8);
            }
            requests.reaches(2, Stage::Issued, (DISK, 64), 8);
            requests.requeue(DISK, Some((64, 8)));
            // Merged into the request.
            requests.reaches(4, Stage::Queued, (DISK, 72), 8);
            requests.reaches(5, Stage::Issued, (DISK, 64), 16);
            let (request, done) = requests.complete(9, DISK, (64, 16), Kind::Plain);
            let request = request.unwrap();
            assert_eq!((request.issued, request.of), (5, of));
            assert_eq!((done.unwrap().issued, requests.len), (5, 0));
        }
    }

    /// Another bio of the same sectors waits, so the driver may have refused that bio.
    #[test]
    fn a_request_at_the_driver_is_not_given_back_in_place_of_another() {
        let mut requests = Requests::default();
        requests.reaches(1, Stage::Queued, (DISK, 64), 8);
        requests.reaches(2, Stage::Issued, (DISK, 64), 8);
        let other = (Some(ThreadId(2)), false);
        requests.reach(3, Stage::Queued, (DISK, 64), 8, other);
        requests.requeue(DISK, Some((64, 8)));
        let (request, _) = requests.complete(9, DISK, (64, 8), Kind::Plain);
        let request = request.unwrap();
        assert_eq!((request.issued, request.of), (2, BY));
    }

    /// The rest of a request is issued again. The disk has had the request since its first issue.
    #[test]
    fn the_rest_of_a_request_that_the_driver_gives_back_stays_the_same_request() {
        let mut requests = Requests::default();
        requests.reaches(2, Stage::Issued, (DISK, 64), 8);
        requests.complete(5, DISK, (64, 3), Kind::Plain);
        requests.requeue(DISK, Some((67, 5)));
        requests.reaches(7, Stage::Issued, (DISK, 67), 5);
        let (_, done) = requests.complete(9, DISK, (67, 5), Kind::Plain);
        assert_eq!((done.unwrap().issued, requests.len), (2, 0));
    }

    #[test]
    fn a_request_that_never_ends_does_not_make_a_later_one_long() {
        let mut requests = Requests::default();
        for time in [1, 100] {
            requests.reaches(time, Stage::Queued, (DISK, 64), 8);
            requests.reaches(time + 1, Stage::Issued, (DISK, 64), 8);
        }
        let (request, done) = requests.complete(109, DISK, (64, 8), Kind::Plain);
        // The completion may be that of either.
        assert!(request.is_none());
        assert_eq!(done.unwrap().issued, 101);
    }

    /// Another thread submits a bio that is split. Its second part starts at the sector of a bio that has no request.
    #[test]
    fn a_part_of_a_bio_does_not_take_the_bio_of_another_thread() {
        let mut requests = Requests::default();
        requests.reaches(1, Stage::Queued, (DISK, 64), 8);
        let other = (Some(ThreadId(2)), false);
        let allocated = requests.reach(2, Stage::Allocated, (DISK, 64), 32, other);
        assert_eq!(allocated, None);
        requests.reach(3, Stage::Issued, (DISK, 64), 32, other);
        let own = requests.reach(5, Stage::Allocated, (DISK, 64), 8, (BY, false));
        assert_eq!(own, Some(1));
        requests.reaches(6, Stage::Issued, (DISK, 64), 8);
        for (sectors, of) in [(32, None), (8, BY)] {
            let (request, _) = requests.complete(9, DISK, (64, sectors), Kind::Plain);
            assert_eq!(request.unwrap().of, of);
        }
    }

    /// The bio is longer than a request may be, or a stacked device passes it on in parts.
    #[test]
    fn the_rest_of_a_split_bio_is_of_the_same_thread() {
        for device in [DISK, MAPPED] {
            let mut requests = Requests::default();
            requests.reaches(1, Stage::Queued, (device, 64), 24);
            for (time, sector) in [(10, 64), (20, 72), (30, 80)] {
                if device != DISK {
                    requests.remap((device, sector), (DISK, sector), 8);
                    requests.reaches(time, Stage::Queued, (DISK, sector), 8);
                }
                let get = Stage::Allocated;
                let queued = requests.reach(time, get, (DISK, sector), 8, (BY, false));
                assert_eq!(queued, Some(if device == DISK { 1 } else { time }));
                requests.reaches(time + 1, Stage::Issued, (DISK, sector), 8);
            }
            for sector in [64, 72, 80] {
                let (request, _) = requests.complete(99, DISK, (sector, 8), Kind::Plain);
                let request = request.unwrap();
                assert_eq!((request.of, request.entered), (BY, Some(1)));
            }
            assert_eq!(requests.len, 0);
        }
    }

    /// A thread has submitted two bios for the same sector. One of them gets a request; which one is not recorded.
    #[test]
    fn a_bio_that_may_be_another_one_is_not_split() {
        let mut requests = Requests::default();
        for sectors in [8, 24] {
            requests.reaches(1, Stage::Queued, (DISK, 64), sectors);
        }
        for (sector, of) in [(64, BY), (72, None)] {
            requests.reach(5, Stage::Allocated, (DISK, sector), 8, (None, false));
            requests.reaches(6, Stage::Issued, (DISK, sector), 8);
            let (request, _) = requests.complete(9, DISK, (sector, 8), Kind::Plain);
            assert_eq!(request.map(|request| request.of), Some(of));
        }
    }

    #[test]
    fn a_device_without_requests_does_not_displace_the_bios_of_others() {
        let mut requests = Requests::default();
        requests.reaches(1, Stage::Queued, (DISK, 64), 8);
        requests.reaches(2, Stage::Issued, (DISK, 128), 8);
        for time in 3..2 * MOST as u64 {
            requests.reaches(time, Stage::Queued, (MAPPED, time * 8), 8);
        }
        assert!(requests.len <= MOST, "{}", requests.len);
        requests.reaches(1 << 20, Stage::Issued, (DISK, 64), 8);
        for (sector, issued, of) in [(64, 1 << 20, BY), (128, 2, None)] {
            let (request, _) = requests.complete(2 << 20, DISK, (sector, 8), Kind::Plain);
            let request = request.unwrap();
            assert_eq!((request.issued, request.of), (issued, of));
        }
    }

    #[test]
    fn the_bios_for_one_sector_of_a_device_without_requests_do_not_pile_up() {
        let mut requests = Requests::default();
        requests.reaches(1, Stage::Queued, (DISK, 64), 8);
        for time in 2..10 * MOST_ALIKE as u64 {
            requests.reaches(time, Stage::Queued, (MAPPED, 64), 8);
            assert!(requests.len <= MOST_ALIKE);
        }
        assert_eq!(requests.held[&64].len(), requests.len);
        requests.reaches(1 << 20, Stage::Issued, (DISK, 64), 8);
        let (request, _) = requests.complete(2 << 20, DISK, (64, 8), Kind::Plain);
        assert_eq!(request.unwrap().of, BY);
    }

    /// Requests of two threads start at one sector. The older one is dropped, and then completed.
    #[test]
    fn a_dropped_request_does_not_end_as_that_of_another_thread() {
        let mut requests = Requests::default();
        requests.reaches(1, Stage::Queued, (DISK, 64), 8);
        requests.reaches(1, Stage::Issued, (DISK, 64), 8);
        let end = MOST as u64;
        for time in 2..end {
            requests.reaches(time, Stage::Issued, (DISK, time * 8 + 128), 8);
        }
        let other = (Some(ThreadId(2)), false);
        for stage in [Stage::Queued, Stage::Issued] {
            requests.reach(end, stage, (DISK, 64), 16, other);
        }
        requests.reaches(end + 1, Stage::Issued, (DISK, 128), 8);
        assert_eq!(requests.held[&64].len(), 1);
        let (request, _) = requests.complete(end + 2, DISK, (64, 8), Kind::Plain);
        assert!(request.is_none());
    }

    #[test]
    fn a_dropped_bio_does_not_give_its_request_to_another_thread() {
        let mut requests = Requests::default();
        for time in 0..MOST as u64 {
            requests.reaches(time, Stage::Queued, (DISK, time * 8), 8);
        }
        // A bio of another thread, with the sectors of the oldest bio, which is dropped when the next bio arrives.
        let by = (Some(ThreadId(2)), false);
        let last = requests.held.last_entry().unwrap();
        let (sector, all) = last.remove_entry();
        requests.len -= all.len();
        requests.reach(MOST as u64, Stage::Queued, (DISK, 0), 8, by);
        requests.reaches(MOST as u64, Stage::Queued, (DISK, sector), 8);
        requests.reaches(1 << 20, Stage::Issued, (DISK, 0), 8);
        let (request, _) = requests.complete(2 << 20, DISK, (0, 8), Kind::Plain);
        assert_eq!(request.unwrap().of, None);
    }

    #[test]
    fn what_a_disk_served_is_a_lower_bound_once_a_request_in_flight_was_dropped() {
        let is_least = |number: u64| {
            let mut requests = Requests::default();
            for time in 0..number {
                requests.reaches(time, Stage::Issued, (DISK, time * 8), 8);
            }
            let end = 1 << 20;
            let left: Vec<u64> = requests.held.keys().copied().collect();
            for sector in left {
                let (_, done) = requests.complete(end, DISK, (sector, 8), Kind::Plain);
                requests.served.completes(DISK, done.unwrap(), false);
            }
            assert_eq!(requests.len, 0);
            requests.served.waited(DISK, (end + 1, end + 9), false);
            let wait = [(end + 1, end + 9)];
            requests.into_served().during(DISK, &wait).unwrap().is_least
        };
        assert!(!is_least(MOST as u64));
        assert!(is_least(MOST as u64 + 1));
    }

    /// All commands of a disk are alike, but the disk has one until all have ended.
    #[test]
    fn a_disk_has_a_command_until_all_its_commands_have_ended() {
        let mut requests = Requests::default();
        for time in [10, 20] {
            requests.reaches(time, Stage::Issued, (DISK, NOWHERE), 0);
        }
        let mut end = |time| {
            let (request, done) = requests.complete(time, DISK, (NOWHERE, 0), Kind::Other);
            assert_eq!(request, None);
            done.map(|done| done.issued)
        };
        assert_eq!([end(30), end(900)], [Some(20), Some(10)]);
    }

    /// Whether what the disk served in a later wait is a lower bound, if all its commands end before.
    fn is_least_after_commands(mut requests: Requests) -> bool {
        let end = 1 << 20;
        for _ in 0..requests.commands[&DISK].issued.len() {
            let (_, done) = requests.complete(end, DISK, (NOWHERE, 0), Kind::Other);
            assert!(done.unwrap().issued < end);
        }
        let wait = (end + 1, end + 9);
        requests.served.waited(DISK, wait, false);
        let served = requests.into_served().during(DISK, &[wait]);
        served.unwrap().is_least
    }

    #[test]
    fn many_commands_in_flight_are_known() {
        let mut requests = Requests::default();
        let number = 2 * MOST_ALIKE;
        for time in 0..number as u64 {
            for disk in [DISK, MAPPED, Disk(0)] {
                requests.reaches(time, Stage::Issued, (disk, NOWHERE), 0);
            }
        }
        for disk in [MAPPED, Disk(0)] {
            assert_eq!(requests.commands[&disk].issued.len(), number);
        }
        assert!(!is_least_after_commands(requests));
    }

    #[test]
    fn commands_that_never_end_do_not_pile_up() {
        let mut requests = Requests::default();
        for time in 0..10 * MOST as u64 {
            requests.reaches(time, Stage::Issued, (DISK, NOWHERE), 0);
            assert!(requests.commands[&DISK].issued.len() <= MOST);
        }
        assert!(is_least_after_commands(requests));
    }

    /// Of several flushes at the driver, it is not known which one ends, but the driver has one until all have ended.
    #[test]
    fn a_disk_is_not_said_to_be_idle_while_it_may_have_a_flush() {
        const MS: u64 = 1_000_000;
        let before = |steps: &[(u64, Step)]| {
            let mut requests = Requests::default();
            let read = |issued: u64, completed: u64| Done {
                issued: issued * MS,
                completed: completed * MS,
                of: BY,
            };
            requests.served.completes(DISK, read(10, 20), false);
            for (time, step) in steps {
                match step {
                    Step::Issue => requests.flush(time * MS, DISK),
                    Step::Back => requests.requeue(DISK, None),
                    Step::End(issued) => {
                        let ended = requests.flushed(time * MS, DISK);
                        assert_eq!(ended.map(|flush| flush.issued / MS), *issued);
                    }
                }
            }
            requests.served.completes(DISK, read(1000, 1060), false);
            let wait = (1050 * MS, 1060 * MS);
            requests.served.waited(DISK, wait, false);
            requests.into_served().busy(DISK, wait).unwrap().before
        };
        let idle = |ms: u64| Before::Idle(Some(ms * MS));
        let issue = |time| (time, Step::Issue);
        let back = |time| (time, Step::Back);
        let end = |time, issued| (time, Step::End(issued));
        assert_eq!(before(&[]), idle(980));
        let one = [issue(30), end(50, Some(30))];
        assert_eq!(before(&one), idle(950));
        let two = [issue(30), issue(40), end(50, None), end(60, None)];
        assert_eq!(before(&two), idle(940));
        // One of the first two may be at the driver until 700.
        let three = [
            issue(30),
            issue(40),
            end(50, None),
            issue(55),
            end(60, None),
            end(700, None),
        ];
        assert_eq!(before(&three), idle(300));
        // The start was before the trace.
        assert_eq!(before(&[end(50, None)]), Before::Idle(None));
        let first = [issue(30), end(50, Some(30)), end(700, None)];
        assert_eq!(before(&first), Before::Idle(None));
        // The end is not in the trace.
        assert_eq!(before(&[issue(30)]), Before::Missing);
        assert_eq!(before(&two[..3]), Before::Missing);
        // The driver gives a flush back: the only one, one of two, or both.
        let again = [issue(700), end(710, None)];
        let all = |first: &[(u64, Step)]| before(&[first, &again].concat());
        assert_eq!(all(&[issue(30), back(35)]), idle(290));
        let one_of_two = [issue(30), issue(40), back(45), end(50, None)];
        assert_eq!(all(&one_of_two), idle(290));
        let both = [
            issue(30),
            issue(40),
            back(45),
            back(46),
            issue(50),
            end(60, None),
        ];
        assert_eq!(all(&both), idle(290));
        // The next flush is known again.
        let next = [again.as_slice(), &[issue(800), end(810, Some(800))]].concat();
        let first = [issue(30), back(35)];
        assert_eq!(before(&[&first[..], &next].concat()), idle(190));
        // It is not issued again, or this is not recorded.
        assert_eq!(before(&first), Before::Missing);
        // The driver refuses another one.
        let refused = [back(25), issue(30), back(35), end(50, None)];
        assert_eq!(before(&refused), idle(950));
        let known = [back(25), issue(30), end(50, Some(30))];
        assert_eq!(before(&known), idle(950));
    }

    #[test]
    fn a_command_that_the_driver_gives_back_ends_once() {
        let mut requests = Requests::default();
        for time in [10, 20] {
            requests.reaches(time, Stage::Issued, (DISK, NOWHERE), 0);
            requests.requeue(DISK, Some((NOWHERE, 0)));
        }
        requests.reaches(30, Stage::Issued, (DISK, NOWHERE), 0);
        let (request, done) = requests.complete(40, DISK, (NOWHERE, 0), Kind::Other);
        // The driver may have had another command, and have refused this one twice.
        assert_eq!((request, done.unwrap().issued), (None, 30));
        requests.reaches(50, Stage::Issued, (DISK, NOWHERE), 0);
        let (request, _) = requests.complete(60, DISK, (NOWHERE, 0), Kind::Other);
        assert_eq!(request.map(|request| request.issued), Some(50));
    }

    /// A bio at 64 is merged to the front of the request at 72. Another bio at 64 has its own request.
    #[test]
    fn a_bio_in_front_of_another_request_may_be_the_issued_one() {
        let mut requests = Requests::default();
        let mut reach = |time, stage, sector, sectors, by| {
            let by = (Some(ThreadId(by)), false);
            requests.reach(time, stage, (DISK, sector), sectors, by);
        };
        reach(1, Stage::Queued, 72, 8, 1);
        reach(2, Stage::Allocated, 72, 8, 1);
        reach(3, Stage::Queued, 64, 8, 1);
        reach(4, Stage::Queued, 64, 8, 2);
        reach(5, Stage::Allocated, 64, 8, 2);
        reach(6, Stage::Issued, 64, 16, 1);
        reach(7, Stage::Issued, 64, 8, 1);
        for sectors in [16, 8] {
            let (request, _) = requests.complete(9, DISK, (64, sectors), Kind::Plain);
            assert_eq!(request.map(|request| request.of), Some(None));
        }
    }
}
