// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Requests that a disk served while a thread waited for a free request, and since when the disk had been busy.
//!
//! ```text
//! thread 7        |bio queued|====== no free request ======|gets a request
//! request of 8   |issued         completed|
//! request of 9                             |issued     completed|
//! ```
//!
//! Only the allocation shows that a thread waited, and since when. Until then, the last completed requests of each disk
//! are kept, up to a limit. Once a wait is known, only the requests that the disk had during the wait are kept.
//!
//! If the issue or the completion of a request is not seen, it is not known when the disk had the request. If that may
//! have been during a wait, the sums are lower bounds.
//!
//! A busy time consists of the times from issue to completion of requests, and of the short pauses between them. Each
//! request counts only once it completes, so a request whose completion is lost does not make its disk busy forever.
//! The busy times after its issue are lower bounds, since the disk may still have had it. A busy time is also a lower
//! bound if it starts during a request that names no disk, or during a flush that ended after the wait, or whose start
//! or end is not known. For each disk, the latest busy time is kept, and each earlier busy time in which a wait ended.

use std::collections::VecDeque;

use foldhash::HashMap;

use crate::context::Disk;
use crate::ids::ThreadId;
use crate::list::{push, with_room};
use crate::wanted::Spans;

/// Maximum number of completed requests of a disk that are kept until the end of a wait is seen.
const RECENT: usize = 4096;

/// The disk of a request that names none, such as a command to a controller, which may keep any of its disks busy.
const NO_DISK: Disk = Disk(0);

/// Maximum number of ranges of time in which there was a request that names no disk. If there are more, the shorter
/// half of the times between them count as such times, too.
const UNNAMED: usize = 4096;

/// The requests that a disk served during waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Number of requests.
    pub requests: u64,
    /// Time of the waits in which the disk had at least one of the requests, ns.
    pub time: u64,
    /// Whether the time is a lower bound: the issue or the completion of a request that the disk may have had was not
    /// seen. Such a request is counted only if its completion was seen during the waits.
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

/// Maximum length of a pause in a busy time, ns.
///
/// A disk with one tag pauses after each request until the next thread has been woken and has issued its request.
/// If such a pause ended the busy time, each request would be a busy time of its own, which would not show since when
/// the disk has been overloaded.
const PAUSE: u64 = 1_000_000;

/// Maximum length of a pause in a busy time, ns, if the disk worked for at least as long since the previous pause.
///
/// On a busy machine, a thread may take several milliseconds to issue its request. After short requests, such a pause
/// is a sign of a light load, which must not count as the start of a later heavy one.
const LONG_PAUSE: u64 = 10_000_000;

/// Maximum length of a pause in a busy time, ns, if the disk worked for at least [`WORK`] times as long as all pauses
/// together, including this one.
///
/// The threads that keep a disk busy may be held up for a moment, for example while LTTng starts to record.
pub(crate) const LONGEST_PAUSE: u64 = 100_000_000;
const WORK: u64 = 8;

/// The time for which a disk had been busy at the end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// Start of the busy time, ns. It is before the start of the wait.
    pub since: u64,
    /// End of the wait, ns.
    pub until: u64,
    /// Upper bound of the pauses in between, ns: the disk never lacked a request for longer.
    pub pause: u64,
    /// How much is known about the time before `since`.
    pub before: Before,
}

/// What is known about the time before a busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// The disk had no request for longer than a pause may last. The time, in ns, is `None` if the end of the previous
    /// request is not known.
    Idle(Option<u64>),
    /// The disk may have been busy before: events are missing, such as the issue or the completion of a request; the
    /// disk had a flush then that ended after the wait; or there was a request that names no disk.
    Missing,
    /// The disk may have been busy before: the trace starts with the busy time.
    Unrecorded,
}

/// A busy time of a disk, as far as its requests have completed.
#[derive(Debug, Clone, Copy)]
struct BusyTime {
    since: u64,
    until: u64,
    /// End of the last pause.
    resumed: u64,
    /// The longest pause.
    pause: u64,
    /// Total length of the pauses.
    paused: u64,
    /// End of the busy time before this one; 0 for the first one.
    after: u64,
    /// Whether the disk may have been busy just before `since`.
    is_least: bool,
}

impl BusyTime {
    /// The latest time at which the next request may be issued if it belongs to this busy time.
    fn end(&self) -> u64 {
        let work = self.until - self.resumed;
        let all_work = (self.until - self.since).saturating_sub(self.paused);
        let left = (all_work / WORK).saturating_sub(self.paused);
        let pause = work.clamp(PAUSE, LONG_PAUSE).max(left.min(LONGEST_PAUSE));
        self.until.saturating_add(pause)
    }

    /// Adds a request that completes now, and was issued no later than [`Self::end`].
    fn add(&mut self, done: &Done) {
        if done.issued > self.until {
            let pause = done.issued - self.until;
            self.pause = self.pause.max(pause);
            self.paused += pause;
            self.resumed = done.issued;
        }
        self.resumed = self.resumed.min(done.issued);
        self.until = done.completed;
        self.is_least |= !done.is_issue_seen();
        self.begins_by(done.issued);
    }

    /// Moves the start back to `issued`, if that is earlier.
    fn begins_by(&mut self, issued: u64) {
        if issued < self.since {
            self.since = issued;
            // The start of the busy time before this one is no longer known.
            self.is_least |= issued <= self.after.saturating_add(LONGEST_PAUSE);
        }
    }
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Done {
    /// As [`crate::Request::issued`]; `completed` if its issue was not seen.
    pub(crate) issued: u64,
    /// When its last sector was completed.
    pub(crate) completed: u64,
    /// The thread that entered it.
    pub(crate) of: Option<ThreadId>,
}

impl Done {
    fn is_issue_seen(&self) -> bool {
        self.issued < self.completed
    }
}

#[derive(Debug, Default)]
struct OfDisk {
    /// The last completed requests that are not in `all`, in the order of completion.
    recent: VecDeque<Done>,
    /// When the last request that was dropped from `recent` had completed.
    dropped: u64,
    /// End of the last wait whose requests are kept. Requests that were issued before are kept when they complete.
    until: u64,
    /// End of the last wait of any thread.
    waited: u64,
    /// Requests that the disk had during a wait; in the order of completion once all are stored.
    all: Vec<Done>,
    /// Longest time from issue to completion in `all`, ns.
    longest: u64,
    /// Waits whose completed requests are all in `all`.
    known: Spans,
    /// Times at which the disk may have had other requests: their issue or their completion was not seen.
    unseen: Spans,
    /// Times at which the disk may have had a flush that a busy time lacks: its start or its end is not known, or it
    /// ended after a wait.
    flushes: Spans,
    /// The latest busy time.
    busy: Option<BusyTime>,
    /// The busy times in which waits ended, in time order, each as it was at the end of its last wait.
    busy_times: Vec<BusyTime>,
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

    /// Adds a request that completes now to the latest busy time, or starts a new one with it.
    fn add_busy(&mut self, done: &Done) {
        match &mut self.busy {
            Some(busy) if done.issued <= busy.end() => busy.add(done),
            busy => {
                *busy = Some(BusyTime {
                    since: done.issued,
                    until: done.completed,
                    resumed: done.issued,
                    pause: 0,
                    paused: 0,
                    after: busy.map_or(0, |last| last.until),
                    is_least: !done.is_issue_seen(),
                });
            }
        }
    }

    /// Keeps the latest busy time for a wait that ends now, at `time`.
    fn keep_busy(&mut self, time: u64) {
        self.waited = time;
        if let Some(busy) = self.busy {
            // Replaces what an earlier wait in the same busy time has kept.
            self.busy_times.pop_if(|last| last.after == busy.after);
            push(&mut self.busy_times, busy);
        }
    }

    /// The requests that completed after `from`, except those that must have been issued after `to`.
    fn completed(&self, from: u64, to: u64) -> impl Iterator<Item = &Done> {
        let first = self.all.partition_point(|done| done.completed <= from);
        let end = to.saturating_add(self.longest);
        let later = self.all[first..].iter();
        later.take_while(move |done| done.completed < end)
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
        if disk == NO_DISK {
            of_disk.unseen.add(done.issued, done.completed);
            return of_disk.unseen.limit(UNNAMED);
        }
        of_disk.add_busy(&done);
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

    /// Records a flush, which keeps the disk busy, but is not a request of a thread.
    pub(crate) fn flushes(&mut self, disk: Disk, issued: u64, completed: u64) {
        let of_disk = self.disks.entry(disk).or_default();
        of_disk.add_busy(&Done {
            issued,
            completed,
            of: None,
        });
        if issued < of_disk.waited {
            of_disk.flushes.add(issued, completed);
        }
    }

    /// Records that the disk may have had a flush between two times.
    pub(crate) fn may_flush(&mut self, disk: Disk, from: u64, to: u64) {
        let from = from.max(self.since);
        if from < to {
            let of_disk = self.disks.entry(disk).or_default();
            of_disk.flushes.add(from, to);
        }
    }

    /// Keeps the busy time of a wait for a request of this disk that ends now, at `time`, and nothing else of the wait.
    /// Called for the waits that are not kept, so that busy times do not depend on which waits are kept.
    pub(crate) fn ended(&mut self, disk: Disk, time: u64) {
        self.disks.entry(disk).or_default().keep_busy(time);
    }

    /// Records that a thread has waited from `from` until now, `to`, for a request of this disk.
    pub(crate) fn waited(&mut self, disk: Disk, (from, to): (u64, u64), count_only: bool) {
        let of_disk = self.disks.entry(disk).or_default();
        of_disk.keep_busy(to);
        of_disk.until = to;
        let is_during = |done: &Done| done.completed > from;
        while of_disk.recent.back().is_some_and(is_during)
            && let Some(done) = of_disk.recent.pop_back()
        {
            of_disk.keep(done, count_only);
        }
        if count_only {
            return;
        }
        let from = from.max(of_disk.dropped);
        if from < to {
            of_disk.known.add(from, to);
        }
    }

    /// Records that events until `time` may be missing. `issued` has the requests whose completion may be missing: the
    /// disk of each, and when it was issued.
    pub(crate) fn lost(&mut self, time: u64, issued: impl Iterator<Item = (Disk, u64)>) {
        for (disk, issued) in issued.filter(|(_, issued)| *issued < time) {
            let of_disk = self.disks.entry(disk).or_default();
            of_disk.unseen.add(issued, time);
        }
        self.since = self.since.max(time);
    }

    /// Records that the end of this request, issued at `issued`, will not be recognised.
    pub(crate) fn forgets(&mut self, disk: Disk, issued: u64) {
        let of_disk = self.disks.entry(disk).or_default();
        of_disk.unseen.add(issued, u64::MAX);
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
            let busy = with_room(of.busy_times.len() * size_of::<BusyTime>());
            recent + all + busy + of.known.bytes() + of.unseen.bytes() + of.flushes.bytes()
        };
        let each: usize = self.disks.values().map(of_disk).sum();
        each + self.disks.len() * 2 * size_of::<(Disk, OfDisk)>()
    }

    /// The requests that the disk served in these waits, which do not overlap and are in time order. `None` unless all
    /// requests of these waits are known to be stored.
    pub(crate) fn during(&self, disk: Disk, waits: &[(u64, u64)]) -> Option<Served> {
        let of_disk = self.disks.get(&disk)?;
        let mut each = waits.iter();
        if !each.all(|(from, to)| of_disk.known.covers(*from, *to)) {
            return None;
        }
        let ((from, _), (_, to)) = (*waits.first()?, *waits.last()?);
        let candidates = of_disk.completed(from, to);
        let during = candidates.filter(|done| is_during(waits, done));
        let mut during: Vec<Done> = during.copied().collect();
        during.sort_unstable_by_key(|done| (done.issued, done.completed));
        let mut total = Cover::default();
        let mut by_thread: HashMap<Option<ThreadId>, Cover> = HashMap::default();
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

    /// The busy time of the disk that started before this wait and lasted until the wait ended, as far as the completed
    /// requests show. `None` if there is none.
    pub(crate) fn busy(&self, disk: Disk, (from, to): (u64, u64)) -> Option<Busy> {
        let of_disk = self.disks.get(&disk)?;
        let all = &of_disk.busy_times;
        let mut busy = *all.get(all.partition_point(|busy| busy.end() < to))?;
        // The disk had these requests, too, but completed them after the wait.
        for done in of_disk.completed(to, to) {
            busy.begins_by(done.issued);
        }
        let of_none = self.disks.get(&NO_DISK).map(|of| &of.unseen);
        let unseen = [Some(&of_disk.unseen), Some(&of_disk.flushes), of_none];
        let is_unseen = |from| {
            let mut unseen = unseen.iter().flatten();
            unseen.any(|spans| spans.has(from, busy.since))
        };
        let before = match busy.is_least || is_unseen(busy.since.saturating_sub(1)) {
            true => Before::Missing,
            false => {
                let is_known = busy.after > 0 && !is_unseen(busy.after);
                Before::Idle(is_known.then(|| busy.since.saturating_sub(busy.after)))
            }
        };
        (busy.since < from).then_some(Busy {
            since: busy.since,
            until: to,
            pause: busy.pause.max(to.saturating_sub(busy.until)),
            before,
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
        // The first was at the disk at the end of the wait; the second was issued after the wait.
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
            after
                .into_iter()
                .for_each(|of| log.completes(DISK, of, false));
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

    const MS: u64 = 1_000_000;

    /// The disk was idle before, and had no earlier request.
    const IDLE: Before = Before::Idle(None);

    fn idle(ms: u64) -> Before {
        Before::Idle(Some(ms * MS))
    }

    fn done_ms((issued, completed): (u64, u64)) -> Done {
        done(issued * MS, completed * MS, 1)
    }

    /// Start and longest pause of the busy time at the end of this wait, and what was before it. The requests `later`
    /// complete after the wait. All times are in ms.
    fn busy(
        all: &[(u64, u64)],
        (from, to): (u64, u64),
        later: &[(u64, u64)],
    ) -> Option<(u64, u64, Before)> {
        let all: Vec<Done> = all.iter().copied().map(done_ms).collect();
        let mut log = log(&all);
        let wait = (from * MS, to * MS);
        log.waited(DISK, wait, false);
        for of in later {
            log.completes(DISK, done_ms(*of), false);
        }
        log.finish();
        let busy = log.busy(DISK, wait)?;
        assert_eq!(busy.until, wait.1);
        Some((busy.since / MS, busy.pause / MS, busy.before))
    }

    #[test]
    fn a_busy_time_has_only_short_pauses() {
        let three = [(1000, 1060), (1062, 1120), (1125, 1185)];
        assert_eq!(busy(&three, (1100, 1185), &[]), Some((1000, 5, IDLE)));
        // A pause of more than 10 ms.
        let two = [(1000, 1060), (1071, 1130)];
        assert_eq!(busy(&two, (1080, 1130), &[]), Some((1071, 0, idle(11))));
        // After eight times as much work, a pause of up to 100 ms is short.
        let long = |pause: u64| [(1000, 1000 + 8 * pause), (1000 + 9 * pause, 3000)];
        assert_eq!(busy(&long(99), (2000, 3000), &[]), Some((1000, 99, IDLE)));
        assert_eq!(
            busy(&long(101), (2000, 3000), &[]),
            Some((1909, 0, idle(101)))
        );
        // A short pause after each request does not matter, as long as the pauses are few.
        let each: Vec<_> = (0..20).map(|i| (1000 + 60 * i, 1057 + 60 * i)).collect();
        let paused = [each.as_slice(), &[(2250, 3000)]].concat();
        assert_eq!(busy(&paused, (2500, 3000), &[]), Some((1000, 53, IDLE)));
        let short = [(1000, 1150), (1170, 3000)];
        assert_eq!(busy(&short, (2000, 3000), &[]), Some((1170, 0, idle(20))));
        // Pauses that are longer than the work before them, and than 1 ms: a light load before a heavy one.
        let light = [(1000, 1001), (1003, 1004), (1006, 1100)];
        assert_eq!(busy(&light, (1050, 1100), &[]), Some((1006, 0, idle(2))));
        // A pause at the end of the wait.
        let one = [(1000, 1060)];
        assert_eq!(busy(&one, (1050, 1065), &[]), Some((1000, 5, IDLE)));
        assert_eq!(busy(&one, (1050, 1090), &[]), None);
        // The disk had no request at the start of the wait.
        assert_eq!(busy(&one, (990, 1060), &[]), None);
        assert_eq!(log(&[]).busy(DISK, (1050, 1060)), None);
    }

    #[test]
    fn the_idle_time_before_a_busy_time_is_known_if_the_request_before_it_is() {
        let before = |all: &[(u64, u64)]| {
            let all: Vec<Done> = all.iter().copied().map(done_ms).collect();
            let mut log = log(&all);
            let wait = (2050 * MS, 2090 * MS);
            log.waited(DISK, wait, false);
            log.finish();
            let busy = log.busy(DISK, wait).unwrap();
            assert_eq!(busy.since, 2000 * MS);
            busy.before
        };
        assert_eq!(before(&[(1000, 1060), (2000, 2090)]), idle(940));
        // The first request in the trace.
        assert_eq!(before(&[(2000, 2090)]), IDLE);
        // The disk may have had a request whose issue was not seen.
        assert_eq!(
            before(&[(1000, 1060), (1500, 1500), (2000, 2090)]),
            idle(500)
        );
        assert_eq!(
            before(&[(1000, 1060), (2000, 2089), (2090, 2090)]),
            Before::Missing
        );
    }

    #[test]
    fn a_busy_time_starts_with_the_request_that_was_issued_first() {
        use Before::Missing;
        let parallel = [(1002, 1030), (1001, 1040)];
        assert_eq!(busy(&parallel, (1010, 1040), &[]), Some((1001, 0, IDLE)));
        let late = [(1000, 1050)];
        assert_eq!(busy(&parallel, (1010, 1040), &late), Some((1000, 0, IDLE)));
        // Without the last request, there would be two busy times; the start of the first one is no longer known.
        let long = [(1010, 1011), (1030, 1031), (1005, 1050)];
        assert_eq!(busy(&long, (1040, 1050), &[]), Some((1005, 0, Missing)));
        // The issue of a request was not seen.
        let unseen = [(1020, 1020), (1000, 1060)];
        assert_eq!(busy(&unseen, (1040, 1060), &[]), Some((1000, 0, Missing)));
    }

    #[test]
    fn a_busy_time_is_a_lower_bound_if_the_disk_may_have_had_a_request_just_before() {
        let before = |in_flight: &[u64], later: Option<(u64, u64)>| {
            let mut log = log(&[done_ms((1000, 1060))]);
            let wait = (1050 * MS, 1060 * MS);
            log.waited(DISK, wait, false);
            if let Some(of) = later {
                log.completes(DISK, done_ms(of), false);
            }
            let issued = in_flight.iter().map(|issued| (DISK, *issued * MS));
            log.lost(u64::MAX, issued);
            log.finish();
            let busy = log.busy(DISK, wait).unwrap();
            assert_eq!(busy.since, 1000 * MS);
            busy.before
        };
        assert_eq!(before(&[], None), IDLE);
        // A request is still at the disk at the end of the trace.
        assert_eq!(before(&[900], None), Before::Missing);
        assert_eq!(before(&[1000, 1010], None), IDLE);
        // The issue of a request that is completed later was not seen.
        assert_eq!(before(&[], Some((1100, 1100))), Before::Missing);
    }

    #[test]
    fn a_disk_is_not_said_to_be_idle_while_it_has_a_flush_that_ends_after_the_wait() {
        let before = |issued: u64| {
            let mut log = log(&[done_ms((500, 600)), done_ms((1000, 1060))]);
            let wait = (1050 * MS, 1060 * MS);
            log.waited(DISK, wait, false);
            log.flushes(DISK, issued * MS, 1100 * MS);
            log.finish();
            log.busy(DISK, wait).unwrap().before
        };
        assert_eq!(before(1000), idle(400));
        assert_eq!(before(900), Before::Missing);
    }

    #[test]
    fn a_disk_is_not_said_to_be_idle_while_its_controller_may_have_a_command() {
        let before = |command: (u64, u64)| {
            let mut log = log(&[done_ms((500, 600))]);
            log.completes(NO_DISK, done_ms(command), false);
            log.completes(DISK, done_ms((1000, 1060)), false);
            let wait = (1050 * MS, 1060 * MS);
            log.waited(DISK, wait, false);
            log.finish();
            log.busy(DISK, wait).unwrap().before
        };
        assert_eq!(before((500, 600)), idle(400));
        assert_eq!(before((700, 800)), IDLE);
        assert_eq!(before((700, 1010)), Before::Missing);
    }

    #[test]
    fn many_commands_of_a_controller_take_little_memory() {
        let mut log = Log::default();
        let number = 3 * UNNAMED as u64;
        let half = number / 2;
        let issued = |i: u64| i * 10 + if i < half { 0 } else { 1000 };
        for i in 0..number {
            log.completes(NO_DISK, done(issued(i), issued(i) + 1, 0), false);
        }
        let unseen = &log.disks[&NO_DISK].unseen;
        let room = 2 * UNNAMED * size_of::<(u64, u64)>();
        assert!(unseen.bytes() <= 64 + room, "{}", unseen.bytes());
        assert!((0..number).all(|i| unseen.covers(issued(i), issued(i) + 1)));
        // The long pause is still known.
        assert!(!unseen.has(issued(half - 1) + 1, issued(half)));
    }

    #[test]
    fn a_busy_time_is_kept_once_however_many_waits_end_in_it() {
        let mut log = Log::default();
        for (begin, end) in [(1000, 1200), (2000, 2200)] {
            for time in (begin..end).step_by(10) {
                log.completes(DISK, done_ms((time, time + 9)), false);
                log.waited(DISK, ((time + 1) * MS, (time + 9) * MS), false);
            }
        }
        log.finish();
        assert_eq!(log.disks[&DISK].busy_times.len(), 2);
        for (wait, since) in [((1051, 1059), 1000), ((2191, 2199), 2000)] {
            let busy = log.busy(DISK, (wait.0 * MS, wait.1 * MS)).unwrap();
            assert_eq!((busy.since, busy.pause), (since * MS, MS));
        }
    }
}
