// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Requests that a disk served while a thread waited for a free request.
//!
//! ```text
//! thread 7        |bio queued|====== no free request ======|gets a request
//! request of 8   |issued         completed|
//! request of 9                             |issued     completed|
//! ```
//!
//! Only the allocation shows that a thread waited, and since when. Until then, the last completed requests of each disk
//! are kept, up to a limit. After that, only the requests that the disk had during the wait are.
//!
//! Of a request whose issue or completion is not seen, it is not known how long the disk had it. If that may have been
//! during a wait, the sums are lower bounds.

use std::collections::{HashMap, VecDeque};

use crate::context::Disk;
use crate::ids::ThreadId;
use crate::tiles::{push, with_room};
use crate::wanted::Spans;

/// Maximum number of completed requests of a disk that are kept until the end of a wait is seen.
const RECENT: usize = 4096;

/// The requests that a disk served during waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Number of requests.
    pub requests: u64,
    /// Time of the waits in which the disk had at least one of the requests, ns.
    pub time: u64,
    /// Whether the time is a lower bound: the issue or the completion of a request that the disk may have had was not
    /// seen. Of these requests, only those that were completed during the waits are counted.
    pub is_least: bool,
    /// The requests by the thread that entered them, longest time first.
    pub by: Vec<ServedFor>,
}

/// The requests of one thread that a disk served during waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedFor {
    /// The thread, as in [`crate::Request::of`].
    pub thread: Option<ThreadId>,
    /// Number of requests.
    pub requests: u64,
    /// Time of the waits in which the disk had at least one of the requests, ns.
    pub time: u64,
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// When it was last issued; `completed` if its issue was not seen.
    pub(crate) issued: u64,
    pub(crate) completed: u64,
    /// The thread that entered it.
    pub(crate) of: Option<ThreadId>,
}

#[derive(Debug, Default)]
struct OfDisk {
    /// The last completed requests that are not in `all`, in the order of completion.
    recent: VecDeque<Done>,
    /// When the last request that was dropped from `recent` had completed.
    dropped: u64,
    /// End of the last wait. Requests that were issued before are kept when they complete.
    until: u64,
    /// Requests that the disk had during a wait; in the order of completion once all are stored.
    all: Vec<Done>,
    /// Longest time from issue to completion in `all`, ns.
    longest: u64,
    /// Waits whose completed requests are all in `all`.
    known: Spans,
    /// Times at which the disk may have had other requests: their issue or their completion was not seen.
    unseen: Spans,
    /// Number of requests that were not stored.
    counted: usize,
}

impl OfDisk {
    fn keep(&mut self, done: Done, count_only: bool) {
        if count_only {
            self.counted += 1;
            return;
        }
        self.longest = self.longest.max(done.completed - done.issued);
        push(&mut self.all, done);
    }
}

/// Requests that disks served while threads waited.
#[derive(Debug, Default)]
pub(crate) struct Log {
    disks: HashMap<Disk, OfDisk>,
    /// Time from which on all events are recorded.
    since: u64,
}

impl Log {
    /// Records a completed request. With `count_only`, it is not stored.
    pub(crate) fn completes(&mut self, disk: Disk, done: Done, count_only: bool) {
        let of_disk = self.disks.entry(disk).or_default();
        if done.issued == done.completed && self.since < done.completed {
            of_disk.unseen.add(self.since, done.completed);
        }
        if done.issued < of_disk.until {
            return of_disk.keep(done, count_only);
        }
        if of_disk.recent.len() >= RECENT
            && let Some(oldest) = of_disk.recent.pop_front()
        {
            of_disk.dropped = oldest.completed;
        }
        of_disk.recent.push_back(done);
    }

    /// Records that a thread has waited from `from` until now, `to`, for a request of this disk.
    pub(crate) fn waited(&mut self, disk: Disk, (from, to): (u64, u64), count_only: bool) {
        let of_disk = self.disks.entry(disk).or_default();
        of_disk.until = to;
        let is_during = |done: &Done| done.completed > from;
        while of_disk.recent.back().is_some_and(is_during)
            && let Some(done) = of_disk.recent.pop_back()
        {
            of_disk.keep(done, count_only);
        }
        let from = from.max(of_disk.dropped);
        if from < to && !count_only {
            of_disk.known.add(from, to);
        }
    }

    /// Records that events until `time` may be missing, and the requests whose completion may be one of them: the disk
    /// of each, and when it was issued.
    pub(crate) fn lost(&mut self, time: u64, issued: impl Iterator<Item = (Disk, u64)>) {
        for (disk, issued) in issued.filter(|(_, issued)| *issued < time) {
            let of_disk = self.disks.entry(disk).or_default();
            of_disk.unseen.add(issued, time);
        }
        self.since = self.since.max(time);
    }

    /// Orders the requests, once all are stored.
    pub(crate) fn finish(&mut self) {
        for of_disk in self.disks.values_mut() {
            of_disk.recent = VecDeque::new();
            of_disk.all.sort_unstable_by_key(|done| done.completed);
        }
    }

    /// Maximum memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let of_disk = |of: &OfDisk| {
            // The queue may double with the next request.
            let recent = of.recent.capacity() * 2 * size_of::<Done>();
            let all = with_room((of.all.len() + of.counted) * size_of::<Done>());
            recent + all + of.known.bytes() + of.unseen.bytes()
        };
        let each: usize = self.disks.values().map(of_disk).sum();
        each + self.disks.len() * 2 * size_of::<(Disk, OfDisk)>()
    }

    /// The disk of a device: the device itself if requests of it are recorded. Otherwise, it is a partition: of `disk`
    /// if its number allows that, or of the nearest other disk whose number does. Returns the device if there is none.
    pub(crate) fn disk_of(&self, device: Disk, disk: Disk) -> Disk {
        if self.disks.contains_key(&device) {
            return device;
        }
        if device.may_be_part_of(disk) {
            return disk;
        }
        let others = self.disks.keys().copied();
        let possible = others.filter(|other| device.may_be_part_of(*other));
        possible.max().unwrap_or(device)
    }

    /// The requests that the disk served in these waits, which do not overlap and are in time order. `None` if it is
    /// not known for each wait that all its requests are stored.
    pub(crate) fn during(&self, disk: Disk, waits: &[(u64, u64)]) -> Option<Served> {
        let of_disk = self.disks.get(&disk)?;
        let mut each = waits.iter();
        if !each.all(|(from, to)| of_disk.known.covers(*from, *to)) {
            return None;
        }
        let ((from, _), (_, to)) = (*waits.first()?, *waits.last()?);
        let first = of_disk.all.partition_point(|done| done.completed <= from);
        // A request that completes later was issued after the last wait.
        let end = to.saturating_add(of_disk.longest);
        let candidates = of_disk.all[first..]
            .iter()
            .take_while(|done| done.completed < end);
        let during = candidates.filter(|done| is_during(waits, done));
        let mut during: Vec<Done> = during.copied().collect();
        during.sort_unstable_by_key(|done| (done.issued, done.completed));
        let mut total = Cover::default();
        let mut by_thread: HashMap<Option<ThreadId>, Cover> = HashMap::new();
        for done in &during {
            total.add(waits, done);
            by_thread.entry(done.of).or_default().add(waits, done);
        }
        let by = by_thread.into_iter().map(|(thread, cover)| ServedFor {
            thread,
            requests: cover.requests,
            time: cover.time,
        });
        let mut by: Vec<ServedFor> = by.collect();
        by.sort_unstable_by_key(|by| (std::cmp::Reverse((by.time, by.requests)), by.thread));
        let may_have_more = |(from, to): &(u64, u64)| of_disk.unseen.has(*from, *to);
        Some(Served {
            requests: total.requests,
            time: total.time,
            is_least: waits.iter().any(may_have_more),
            by,
        })
    }
}

/// The parts of the waits between two times.
fn parts(waits: &[(u64, u64)], (from, to): (u64, u64)) -> impl Iterator<Item = (u64, u64)> {
    let first = waits.partition_point(|(_, end)| *end <= from);
    let during = waits[first..].iter();
    let during = during.take_while(move |(begin, _)| *begin < to);
    during.map(move |(begin, end)| ((*begin).max(from), (*end).min(to)))
}

/// Whether the disk had this request in one of the waits.
fn is_during(waits: &[(u64, u64)], done: &Done) -> bool {
    let mut parts = parts(waits, (done.issued, done.completed));
    parts.next().is_some()
}

/// Sums up the time that requests cover, given in the order of their issue.
#[derive(Debug, Default)]
struct Cover {
    requests: u64,
    time: u64,
    /// The time up to which requests are summed up.
    until: u64,
}

impl Cover {
    fn add(&mut self, waits: &[(u64, u64)], done: &Done) {
        self.requests += 1;
        let from = done.issued.max(self.until);
        if from < done.completed {
            let new = parts(waits, (from, done.completed));
            self.time += new.map(|(begin, end)| end - begin).sum::<u64>();
            self.until = done.completed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Disk = Disk(8 << 20);

    fn done(issued: u64, completed: u64, of: u32) -> Done {
        let of = (of > 0).then_some(ThreadId(of));
        Done {
            issued,
            completed,
            of,
        }
    }

    fn log(all: &[Done]) -> Log {
        let mut log = Log::default();
        all.iter().for_each(|of| log.completes(DISK, *of, false));
        log
    }

    #[test]
    fn time_with_several_requests_counts_once() {
        let mut log = log(&[
            done(1, 5, 1),
            done(8, 30, 1),
            done(20, 40, 2),
            done(25, 50, 1),
        ]);
        log.waited(DISK, (10, 60), false);
        // Was at the disk at the end of the wait, and after it.
        log.completes(DISK, done(58, 90, 2), false);
        log.completes(DISK, done(70, 95, 2), false);
        log.finish();
        let by = |thread, requests, time| ServedFor {
            thread: Some(ThreadId(thread)),
            requests,
            time,
        };
        let served = Served {
            requests: 4,
            time: 42,
            is_least: false,
            by: vec![by(1, 2, 40), by(2, 2, 22)],
        };
        assert_eq!(log.during(DISK, &[(10, 60)]), Some(served));
        // A request that spans two waits is one request.
        let two = log.during(DISK, &[(10, 22), (24, 28)]).unwrap();
        assert_eq!((two.requests, two.time), (3, 16));
        assert_eq!(log.during(DISK, &[(10, 61)]), None);
        assert_eq!(log.during(Disk(9 << 20), &[(10, 60)]), None);
    }

    #[test]
    fn a_request_whose_issue_was_not_seen_makes_the_time_a_lower_bound() {
        let mut log = log(&[done(20, 20, 0), done(30, 40, 1)]);
        log.waited(DISK, (10, 60), false);
        log.finish();
        let served = log.during(DISK, &[(10, 60)]).unwrap();
        assert_eq!(
            (served.requests, served.time, served.is_least),
            (2, 10, true)
        );
        assert_eq!(served.by[1].thread, None);
    }

    #[test]
    fn a_request_that_is_not_fully_recorded_makes_the_time_a_lower_bound() {
        let is_least = |before: Option<Done>, after: Option<Done>, in_flight: &[u64]| {
            let mut log = Log::default();
            log.lost(5, [].into_iter());
            let all = before.into_iter().chain([done(20, 30, 1)]);
            all.for_each(|of| log.completes(DISK, of, false));
            log.waited(DISK, (10, 60), false);
            after.into_iter().for_each(|of| log.completes(DISK, of, false));
            let issued = in_flight.iter().map(|issued| (DISK, *issued));
            log.lost(u64::MAX, issued);
            log.finish();
            log.during(DISK, &[(10, 60)]).unwrap().is_least
        };
        assert!(!is_least(None, None, &[]));
        // The issue was not seen.
        assert!(!is_least(Some(done(8, 8, 0)), None, &[]));
        assert!(is_least(Some(done(15, 15, 0)), None, &[]));
        assert!(is_least(None, Some(done(90, 90, 0)), &[]));
        // The completion was not seen.
        assert!(!is_least(None, None, &[60, 70]));
        assert!(is_least(None, None, &[59, 70]));
    }

    #[test]
    fn a_wait_with_more_requests_than_are_kept_is_not_known() {
        let all: Vec<Done> = (0..2 * RECENT as u64)
            .map(|i| done(i * 10, i * 10 + 9, 1))
            .collect();
        let end = all.len() as u64 * 10;
        let mut log = log(&all);
        let room = log.bytes();
        assert!(room < 5 * RECENT * size_of::<Done>(), "{room}");
        log.waited(DISK, (100, end), false);
        log.finish();
        assert_eq!(log.during(DISK, &[(100, end)]), None);
        let last = log.during(DISK, &[(end - 100, end)]).unwrap();
        assert_eq!((last.requests, last.time), (10, 90));
    }
}
