// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One table: durations by group and interval, the worst cases, and counters of operations that were not measured.

use foldhash::HashMap;

use super::group::{By, Case, Extra, InCall, Key, Kind, Object, TaskId, Trigger};
use super::sums::Sums;
use crate::names::Name;

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The durations.
    pub sums: Sums,
    extra: [u64; 9],
}

impl Row {
    fn join(&mut self, other: &Self) {
        self.sums.join(&other.sums);
        for (sum, more) in self.extra.iter_mut().zip(other.extra) {
            *sum += more;
        }
    }

    /// A counter.
    #[must_use]
    pub fn extra(&self, which: Extra) -> u64 {
        self.extra[which as usize]
    }
}

/// Operations that were not measured, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    /// The start, the end, or events between them were lost.
    pub lost: u64,
    /// The start was before the trace or the range, or the end after it.
    pub outside: u64,
    /// Identical requests were in flight at once: it is not recorded which of these ended first. For [`Kind::Queued`],
    /// the work item was queued again before it started. For [`Kind::Backlog`] and [`Kind::Transmit`], the end was not
    /// seen, or may be the end of another packet with the same address.
    pub identical: u64,
}

/// Why an operation is not measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Lost,
    Outside,
    Identical,
}

/// The operations to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Start, ns. Operations that started earlier are not measured.
    pub from: u64,
    /// End, ns. Operations that end later are not measured.
    pub to: u64,
    /// Length of the intervals, ns; greater than 0.
    pub every: Option<u64>,
    /// Only operations of the thread with this number.
    pub tid: Option<i32>,
    /// Number of worst cases to keep.
    pub worst: usize,
    /// Keep every operation until [`Builder::take`](super::Builder::take).
    pub each: bool,
}

impl Range {
    /// The whole trace, with at most `worst` worst cases.
    #[must_use]
    pub fn all(worst: usize) -> Self {
        Self {
            from: 0,
            to: u64::MAX,
            every: None,
            tid: None,
            worst,
            each: false,
        }
    }

    fn interval(&self, time: u64) -> u64 {
        self.every.map_or(0, |every| (time - self.from) / every)
    }
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its operations.
    pub kind: Kind,
    /// Its grouping.
    pub by: By,
    /// All durations.
    pub whole: Row,
    /// The rows, by number of the interval and group. An operation counts in the interval in which it ends; time on a
    /// CPU counts in the interval in which it is spent.
    pub rows: HashMap<(u64, Key), Row>,
    /// The longest operations, the longest first.
    pub worst: Vec<Case>,
    /// Counters of operations that were not measured.
    pub missed: Missed,
    /// Recorded time by interval and CPU, ns. Only for [`Kind::Run`].
    pub recorded: HashMap<(u64, u32), u64>,
    /// Whether all results were dropped, because events of a whole CPU are not recorded.
    pub dropped: bool,
    range: Range,
    /// Measured operations that were not taken yet, if [`Range::each`].
    each: Vec<Case>,
}

impl Table {
    pub(super) fn new(kind: Kind, range: Range, by: By) -> Self {
        Self {
            kind,
            by,
            whole: Row::default(),
            rows: HashMap::default(),
            worst: Vec::new(),
            missed: Missed::default(),
            recorded: HashMap::default(),
            dropped: false,
            range,
            each: Vec::new(),
        }
    }

    fn is_of(&self, case: &Case) -> bool {
        let tid = case.who.map(|(tid, _)| tid);
        self.range.tid.is_none_or(|of| tid == Some(of))
    }

    fn key(&self, case: &Case) -> Key {
        match (self.by, case.object) {
            (By::Cpu, _) => Key::Cpu(case.cpu),
            (By::Name, _) => Key::Name(case.who.and_then(|(_, name)| name)),
            (By::Priority, _) => Key::Priority(case.priority.map(|prio| prio.0)),
            (By::Device, Some(Object::Disk(disk, _))) => Key::Device(disk),
            (By::Device, Some(Object::Packet(device, _))) => Key::Network(device),
            (By::Lock, Some(Object::Lock(_, lock) | Object::Futex(_, lock))) => Key::Lock(lock),
            (By::File, _) => Key::File(case.file),
            (By::State, Some(Object::Sleep(sleep, _))) => Key::State(sleep),
            (By::Waker, Some(Object::Sleep(_, waker))) => Key::Waker(waker),
            (By::Workqueue, Some(Object::Work(_, queue, _))) => Key::Workqueue(queue),
            (By::Queuer, Some(Object::Work(.., Some(queuer)))) => Key::Queuer(queuer),
            (By::Process, Some(Object::Work(.., Some(queuer)))) => match queuer {
                Trigger::Thread(thread) => Key::Thread(thread),
                Trigger::Unrecorded => Key::Thread(None),
                other => Key::Queuer(other),
            },
            (By::Object, Some(object)) | (By::Call, Some(object @ Object::Call(_))) => {
                Key::Object(object.kind())
            }
            (By::Call, _) => Key::Call(case.call.unwrap_or(InCall::Unknown)),
            (By::Stack, object) => Key::Stack(case.thread, object.map(Object::kind)),
            _ => Key::Thread(case.thread),
        }
    }

    fn row(&mut self, interval: u64, case: &Case) -> &mut Row {
        let key = self.key(case);
        self.rows.entry((interval, key)).or_default()
    }

    /// Whether the whole operation is in the range.
    pub(super) fn is_inside(&self, case: &Case) -> bool {
        case.begin >= self.range.from && case.end <= self.range.to
    }

    /// Whether the operation is in the range; counts it as outside if only a part of it is.
    fn has(&mut self, case: &Case) -> bool {
        let Range { from, to, .. } = self.range;
        if !self.is_of(case) || case.end <= from && case.begin < from || case.begin >= to {
            return false;
        }
        let is_inside = self.is_inside(case);
        if !is_inside {
            self.tally(Why::Outside);
        }
        is_inside
    }

    /// Adds an operation.
    pub(super) fn measure(&mut self, case: &Case) {
        if self.has(case) {
            let interval = self.range.interval(case.end);
            self.row(interval, case).sums.add(case.took());
            self.whole.sums.add(case.took());
            self.compare(case);
        }
    }

    /// Adds an operation whose time is accounted for by [`Table::spend`].
    pub(super) fn count(&mut self, case: &Case) {
        if self.has(case) {
            let interval = self.range.interval(case.end);
            self.row(interval, case).sums.value(case.took());
            self.whole.sums.value(case.took());
            self.compare(case);
        }
    }

    /// Removes and returns the operations that were measured since the last call. Empty without [`Range::each`].
    pub fn take(&mut self) -> Vec<Case> {
        std::mem::take(&mut self.each)
    }

    fn compare(&mut self, case: &Case) {
        if self.range.each {
            self.each.push(*case);
        }
        let order = |case: &Case| (std::cmp::Reverse(case.took()), case.begin, case.cpu);
        let place = self
            .worst
            .partition_point(|other| order(other) <= order(case));
        if place < self.range.worst {
            self.worst.truncate(self.range.worst - 1);
            self.worst.insert(place, *case);
        }
    }

    /// Calls `each` with every interval between two times, and the time in it.
    fn split(&self, begin: u64, end: u64, mut each: impl FnMut(u64, u64)) {
        let (mut at, end) = (begin.max(self.range.from), end.min(self.range.to));
        while at < end {
            let interval = self.range.interval(at);
            let next = self.range.every.and_then(|every| {
                let ends = interval.checked_add(1)?.checked_mul(every)?;
                self.range.from.checked_add(ends)
            });
            let until = next.unwrap_or(end).min(end);
            each(interval, until - at);
            at = until;
        }
    }

    /// Adds the part of an operation that lies in the range to the sums of its intervals.
    pub(super) fn spend(&mut self, case: &Case) {
        if !self.is_of(case) {
            return;
        }
        let mut parts = Vec::new();
        self.split(case.begin, case.end, |interval, time| {
            parts.push((interval, time));
        });
        for (interval, time) in parts {
            let row = self.row(interval, case);
            row.sums.sum = row.sums.sum.saturating_add(time);
            self.whole.sums.sum = self.whole.sums.sum.saturating_add(time);
        }
    }

    /// Adds recorded time of a CPU.
    pub(super) fn record(&mut self, cpu: u32, begin: u64, end: u64) {
        let mut parts = Vec::new();
        self.split(begin, end, |interval, time| parts.push((interval, time)));
        for (interval, time) in parts {
            *self.recorded.entry((interval, cpu)).or_default() += time;
        }
    }

    /// Increments a counter of the row of an operation, at the time of its end.
    pub(super) fn note(&mut self, case: &Case, which: Extra) {
        let is_in = self.range.from <= case.end && case.end <= self.range.to;
        if is_in && self.is_of(case) {
            let interval = self.range.interval(case.end);
            self.row(interval, case).extra[which as usize] += 1;
            self.whole.extra[which as usize] += 1;
        }
    }

    /// Counts an operation that is not measured because only its start or its end is known.
    pub(super) fn miss(&mut self, time: u64, who: Option<(i32, Option<Name>)>, why: Why) {
        if self.range.from <= time {
            self.miss_open(time, who, why);
        }
    }

    /// Counts an operation that started at `begin`, perhaps before the range, and has not ended. An operation of an
    /// unknown thread may belong to the range's thread.
    pub(super) fn miss_open(&mut self, begin: u64, who: Option<(i32, Option<Name>)>, why: Why) {
        let is_other = |of| who.is_some_and(|(tid, _)| tid != of);
        if begin <= self.range.to && !self.range.tid.is_some_and(is_other) {
            self.tally(why);
        }
    }

    /// Counts an operation that is not measured, although its start and its end are known.
    pub(super) fn miss_case(&mut self, case: &Case, why: Why) {
        if self.has(case) {
            self.tally(why);
        }
    }

    fn tally(&mut self, why: Why) {
        match why {
            Why::Lost => self.missed.lost += 1,
            Why::Outside => self.missed.outside += 1,
            Why::Identical => self.missed.identical += 1,
        }
    }

    /// Turns the rows of threads into rows of processes. Done last, since a thread's process may be recorded only after
    /// its operations.
    pub(super) fn by_process(&mut self, process: impl Fn(TaskId) -> Option<TaskId>) {
        for ((interval, key), row) in std::mem::take(&mut self.rows) {
            let key = match key {
                Key::Thread(thread) => Key::Process(thread.and_then(&process)),
                Key::Queuer(Trigger::Perhaps(thread)) => {
                    Key::Queuer(Trigger::Perhaps(thread.and_then(&process)))
                }
                other => other,
            };
            self.rows.entry((interval, key)).or_default().join(&row);
        }
    }

    /// Drops all results, since events of a whole CPU are not recorded: nothing was measured.
    pub(super) fn give_up(&mut self) {
        self.missed.lost += self.whole.sums.count;
        self.whole = Row::default();
        self.rows.clear();
        self.worst.clear();
        self.each.clear();
        self.dropped = true;
    }
}
