// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The current and past activity of each thread.

use std::sync::Arc;

use foldhash::HashMap;

use super::Detail;
use super::gaps::Gaps;
use crate::context::{Context, Disk};
use crate::event::Priority;
use crate::ids::{ThreadId, WakerId};
use crate::intervals::{Doing, Intervals, Stored};
use crate::list::{push, with_room};
use crate::locks::{Futex, Operation};
use crate::names::Name;
use crate::sleep::Sleep;
use crate::state::{Interval, State, Unrecorded};
use crate::thread::Thread;
use crate::tiles::Kinds;

/// The current state of a thread.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// Current state, and its start.
    pub(super) state: State,
    since: u64,
    /// The processor on which it runs, ran last, or will run.
    pub(super) cpu: Option<u32>,
    /// Whether it waits for `cpu` and no other processor.
    pub(super) queued: bool,
    /// Time since which it has been on the runqueue of `cpu`, if it is not running.
    pub(super) queued_at: Option<u64>,
    /// Its priority when it was last seen running.
    pub(super) prio: Option<Priority>,
    /// Whether it was switched out in `sched_yield`, if system calls are recorded.
    pub(super) yields: Option<bool>,
    /// Time since which it has been submitting requests that io.max held back.
    pub(super) throttles: Option<u64>,
    /// The system call that it is in.
    pub(super) call: Option<Name>,
    /// Its `futex` call on a lock with priority inheritance.
    pub(super) futex: Option<Futex>,
    /// When it was last woken in a wait for a lock with priority inheritance that is known from outside the events.
    pub(super) handed_at: u64,
    /// Time since which nothing has kept it in the kernel, if it is in user mode or on its way there.
    pub(super) user_since: Option<u64>,
    /// Its waker, and the target processor, if it was woken while it ran.
    pub(super) pending: Option<(Option<WakerId>, Option<u32>)>,
    /// The sleep to restore if the wakeup that seemed to end it turns out to be void.
    pub(super) assumed: Option<(Sleep, Option<Name>)>,
    /// Start of its last sleep, if a wakeup ended it.
    pub(super) slept_since: Option<u64>,
    /// When it last issued a request to a driver itself; 0 if it never did.
    pub(super) issued: u64,
    /// The value of `issued` at the end of its last sleep.
    pub(super) issued_before_sleep: u64,
    /// The disk, if the thread is about to sleep because it has dirtied too much data.
    pub(super) dirty: Option<Option<Disk>>,
    /// The processors on which it may run; `None` if it may run on all, or if they are not known.
    pub(super) runs_on: Option<Arc<[u32]>>,
    /// Time of the last event with its name.
    pub(super) named_at: u64,
    /// When it was last switched out with another number, that number, and its system call then. Events are missing, or
    /// an exec has changed the number.
    pub(super) left_as: Option<(u64, i32, Option<Name>)>,
    /// The softirqs in which it was switched out.
    pub(super) held: Vec<Context>,
    /// Whether a wakeup ended its last interval.
    woken: bool,
    /// End of the last time in which its path may be the activity of other threads; at first, its own start.
    pub(super) away_until: u64,
}

impl Task {
    /// Whether its path is its own activity: it is awake, and no owner of a lock keeps it spinning.
    fn is_awake(&self) -> bool {
        matches!(self.state, State::Running(_) | State::Interrupted(_)) && self.futex.is_none()
    }

    /// Whether it waits for a known processor.
    pub(super) fn is_queued(&self) -> bool {
        match self.state {
            State::Preempted => true,
            State::Waiting => self.queued,
            _ => false,
        }
    }

    /// Start of its sleep, if that is uninterruptible.
    pub(super) fn uninterruptible_since(&self) -> Option<u64> {
        let is_it = matches!(self.state, State::Blocked(Sleep::Uninterruptible, _));
        is_it.then_some(self.since)
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tasks {
    pub(super) threads: Vec<Thread>,
    now: Vec<Task>,
    by_tid: HashMap<i32, ThreadId>,
    /// For each thread number, the time at which the last thread with this number ended.
    ended: HashMap<i32, u64>,
    /// Start of the events, and of all threads that were not created later.
    pub(super) start: u64,
    /// Intervals that ended at this time or before are dropped.
    pub(super) keep: u64,
    /// Times at which a processor is not recorded: a thread that seemed to wait or to sleep may have run there.
    pub(super) gaps: Gaps,
    /// The processors on which threads with these numbers may run; a thread without an entry may run on all.
    pub(super) affine: HashMap<i32, Arc<[u32]>>,
    /// Times at which threads with these numbers waited for a lock with priority inheritance and acquired it, known
    /// from outside the events.
    pub(super) locks: HashMap<i32, Vec<(u64, u64)>>,
    kinds: Kinds<Doing>,
    pub(super) detail: Detail,
    /// Nothing more is stored, and only sizes are counted.
    pub(super) count_only: bool,
    /// What is stored, or would be without the limit.
    stored: Stored,
    /// Number of earlier names.
    renamed: usize,
}

impl Tasks {
    /// The thread numbered `tid`, which is added if it is new; `None` for the idle thread.
    pub(super) fn find(&mut self, tid: i32) -> Option<ThreadId> {
        if tid <= 0 {
            return None;
        }
        match self.by_tid.get(&tid) {
            Some(thread) => Some(*thread),
            None => {
                let since = self.ended.get(&tid).copied().unwrap_or(self.start);
                Some(self.add(tid, since, State::Unknown(Unrecorded::Unseen)))
            }
        }
    }

    /// The thread numbered `tid`, if it is known and its end is not.
    pub(super) fn alive(&self, tid: i32) -> Option<ThreadId> {
        self.by_tid.get(&tid).copied()
    }

    fn add(&mut self, tid: i32, since: u64, state: State) -> ThreadId {
        // 2^32 threads would not fit into memory.
        let id = ThreadId(self.threads.len() as u32);
        let thread = Thread {
            tid,
            name: None,
            earlier: Vec::new(),
            born: false,
            maker: None,
            ended: None,
            intervals: Intervals::default(),
        };
        push(&mut self.threads, thread);
        let task = Task {
            state,
            since,
            cpu: None,
            queued: false,
            queued_at: None,
            prio: None,
            yields: None,
            throttles: None,
            call: None,
            futex: None,
            handed_at: 0,
            user_since: None,
            pending: None,
            assumed: None,
            slept_since: None,
            issued: 0,
            issued_before_sleep: 0,
            dirty: None,
            runs_on: self.affine.get(&tid).cloned(),
            named_at: 0,
            left_as: None,
            held: Vec::new(),
            woken: false,
            away_until: since,
        };
        push(&mut self.now, task);
        self.by_tid.insert(tid, id);
        id
    }

    /// The task of `thread`.
    pub(super) fn of(&mut self, thread: ThreadId) -> &mut Task {
        &mut self.now[thread.0 as usize]
    }

    /// Sets the name of a thread from `time` on.
    pub(super) fn rename(&mut self, id: ThreadId, time: u64, name: Name) {
        let Some(thread) = self.threads.get_mut(id.0 as usize) else {
            return;
        };
        let before = thread.name.replace(name);
        if let Some(before) = before.filter(|_| time > self.keep && !self.count_only) {
            thread.earlier.push((time, before));
            self.renamed += 1;
        }
    }

    /// Start of the current state of a thread.
    pub(super) fn since(&self, thread: ThreadId) -> u64 {
        self.now[thread.0 as usize].since
    }

    /// Start of the current state of each thread; of a dead thread, its end.
    pub(super) fn all_since(&self) -> Vec<u64> {
        self.now.iter().map(|task| task.since).collect()
    }

    /// Puts a thread into another state from now on.
    pub(super) fn go(&mut self, thread: ThreadId, time: u64, state: State) {
        if self.now[thread.0 as usize].state != state {
            self.close(thread, time, None);
            self.now[thread.0 as usize].state = state;
            self.now[thread.0 as usize].assumed = None;
        }
    }

    /// Makes a blocked thread wait for a processor.
    pub(super) fn woken(
        &mut self,
        thread: ThreadId,
        time: u64,
        waker: Option<WakerId>,
        target: Option<u32>,
    ) {
        let task = self.of(thread);
        task.slept_since = matches!(task.state, State::Blocked(..)).then_some(task.since);
        task.issued_before_sleep = task.issued;
        self.close(thread, time, waker);
        let task = self.of(thread);
        task.state = State::Waiting;
        task.assumed = None;
        task.queued = false;
        task.queued_at = None;
        task.cpu = target.or(task.cpu);
    }

    /// Moves a thread to the runqueue of another processor; each processor gets its part of the wait. If `wakeups` are
    /// recorded, a woken thread is on no runqueue until its `sched_wakeup`: if it is moved before that, the whole wait
    /// is for the second processor.
    pub(super) fn moved(&mut self, thread: ThreadId, time: u64, from: u32, to: u32, wakeups: bool) {
        let task = self.of(thread);
        if !matches!(task.state, State::Waiting | State::Preempted) {
            return;
        }
        if !task.is_queued() {
            task.cpu = Some(from);
        } else if task.cpu != Some(from) {
            // An earlier move has no event, so the wait for each processor is not known. With proxy execution, the
            // kernel moves a thread that blocks on a mutex, and was preempted before it slept, to the mutex owner.
            task.cpu = None;
        }
        if task.is_queued() || !wakeups {
            self.close(thread, time, None);
        }
        let task = self.of(thread);
        task.cpu = Some(to);
        task.queued = true;
        task.queued_at = Some(time);
    }

    /// Adds a thread that the current thread created. If another thread has this number, its end was not seen.
    pub(super) fn born(&mut self, tid: i32, time: u64, maker: Option<WakerId>) -> Option<ThreadId> {
        if tid <= 0 {
            return None;
        }
        if let Some(old) = self.by_tid.get(&tid).copied() {
            self.end(old, time);
        }
        let id = self.add(tid, time, State::Waiting);
        let thread = &mut self.threads[id.0 as usize];
        (thread.born, thread.maker) = (true, maker);
        Some(id)
    }

    /// Ends a running thread, and adds the thread that it continues as: exec has given it the number of its process,
    /// whose main thread has ended. The name of the new thread is not known yet.
    pub(super) fn renumber(&mut self, old: ThreadId, tid: i32, time: u64) -> Option<ThreadId> {
        if tid <= 0 {
            return None;
        }
        if let Some(main) = self.by_tid.get(&tid).copied() {
            self.end(main, time);
        }
        self.end(old, time);
        let call = self.of(old).call;
        let id = self.add(tid, time, State::Running(call));
        self.of(id).call = call;
        Some(id)
    }

    /// Ends the thread numbered `old` when it was switched out with the number `tid`: an exec had given it that number.
    /// Returns its system call then. `None` if no such switch is known, or if the thread was seen again later.
    pub(super) fn was_renumbered(&mut self, old: i32, tid: i32) -> Option<Option<Name>> {
        let id = *self.by_tid.get(&old)?;
        let task = self.of(id);
        let (time, _, call) = task.left_as.filter(|(_, new, _)| *new == tid)?;
        if task.since != time || !matches!(task.state, State::Unknown(_)) {
            return None;
        }
        self.end(id, time);
        Some(call)
    }

    /// Makes the state of a thread unknown from `since` on, if the thread is running on `cpu`.
    pub(super) fn forget_on(
        &mut self,
        thread: Option<ThreadId>,
        cpu: u32,
        since: u64,
        why: Unrecorded,
    ) {
        let Some(thread) = thread else {
            return;
        };
        let task = self.of(thread);
        if task.cpu != Some(cpu) || !matches!(task.state, State::Running(_) | State::Interrupted(_))
        {
            return;
        }
        task.pending = None;
        task.dirty = None;
        task.held.clear();
        (task.call, task.futex) = (None, None);
        task.throttles = None;
        task.user_since = None;
        self.go(thread, since, State::Unknown(why));
    }

    /// Records that a thread has run on `cpu` since `since`, as only its switch-out at `time` shows. Returns false if
    /// that contradicts its known state.
    pub(super) fn ran(&mut self, thread: ThreadId, cpu: u32, since: u64, time: u64) -> bool {
        let begin = self.of(thread).since;
        if matches!(
            self.of(thread).state,
            State::Running(_) | State::Interrupted(_)
        ) {
            return false;
        }
        if begin > since {
            self.contradict(thread, time);
            return false;
        }
        self.contradict(thread, since);
        self.close(thread, since, None);
        let task = self.of(thread);
        task.state = State::Running(task.call);
        task.assumed = None;
        task.cpu = Some(cpu);
        true
    }

    /// Handles a thread that runs at `time` although no event shows that it started to run. Its last known state lasted
    /// until the first gap; without a gap, that state becomes unknown from its start.
    pub(super) fn contradict(&mut self, thread: ThreadId, time: u64) {
        let task = self.of(thread);
        let since = task.since;
        let is_off = matches!(
            task.state,
            State::Waiting | State::Preempted | State::Blocked(..)
        );
        if !is_off || time <= since {
            return;
        }
        let gap = self.gaps.any(since, time);
        let (at, why) = gap.map_or((since, Unrecorded::Missing), |gap| (gap.since, gap.why));
        self.close(thread, at, None);
        let task = self.of(thread);
        task.state = State::Unknown(why);
        task.assumed = None;
        task.cpu = None;
    }

    /// Ends a thread; another thread may then have its number.
    pub(super) fn end(&mut self, thread: ThreadId, time: u64) {
        self.close(thread, time, None);
        if let Some(dead) = self.threads.get_mut(thread.0 as usize) {
            dead.ended = Some(time);
            if self.by_tid.get(&dead.tid) == Some(&thread) {
                self.by_tid.remove(&dead.tid);
                self.ended.insert(dead.tid, time);
            }
        }
    }

    pub(super) fn finish(&mut self, end: u64) {
        for i in 0..self.threads.len() {
            if self.threads[i].ended.is_none() {
                self.close(ThreadId(i as u32), end, None);
            }
        }
        let kinds: Arc<[Doing]> = std::mem::take(&mut self.kinds).into_list().into();
        for thread in &mut self.threads {
            thread.intervals.set_kinds(&kinds);
        }
    }

    fn close(&mut self, id: ThreadId, time: u64, waker: Option<WakerId>) {
        let task = &mut self.now[id.0 as usize];
        let thread = &self.threads[id.0 as usize];
        // If events are missing, a processor may still count a dead thread as its current one.
        if time <= task.since || thread.ended.is_some() {
            return;
        }
        if !task.is_awake() {
            task.away_until = time;
        }
        let ends = std::mem::replace(&mut task.woken, waker.is_some());
        let mut interval = Interval {
            begin: std::mem::replace(&mut task.since, time),
            end: time,
            state: task.state,
            cpu: task.cpu,
            waker,
        };
        if matches!(task.state, State::Waiting | State::Preempted) {
            let gap = task
                .cpu
                .and_then(|cpu| self.gaps.first(cpu, interval.begin, time));
            if let Some((gap, why)) = gap {
                if interval.begin < gap {
                    let waited = Interval {
                        end: gap,
                        ..interval
                    };
                    self.keep_seen(id, waited, ends);
                    (interval.begin, interval.waker) = (gap, None);
                }
                interval.state = State::Unknown(why);
            }
        }
        self.keep_seen(id, interval, ends);
    }

    /// Records that a thread runs on `cpu`. If the processors on which it may run do not include `cpu`, they are void
    /// for the whole trace: earlier gaps of other processors then split its intervals, too. Returns true if its
    /// intervals were stored again.
    pub(super) fn runs(&mut self, id: ThreadId, cpu: u32) -> bool {
        let task = &mut self.now[id.0 as usize];
        if task.runs_on.take_if(|cpus| !cpus.contains(&cpu)).is_none() || self.count_only {
            return false;
        }
        let intervals = std::mem::take(&mut self.threads[id.0 as usize].intervals);
        let mut ends = false;
        for (begin, end, kind, waker) in intervals.packed() {
            let (state, cpu) = self.kinds.list()[kind as usize];
            let interval = Interval {
                begin,
                end,
                state,
                cpu,
                waker,
            };
            self.keep_seen(id, interval, std::mem::replace(&mut ends, waker.is_some()));
        }
        true
    }

    /// Stores an interval, whose unrecorded parts become unknown: a thread that seems not to run may have run on any
    /// processor that has a gap and on which it may run. The waker ended only the last part.
    fn keep_seen(&mut self, id: ThreadId, mut interval: Interval, mut ends: bool) {
        let is_off = matches!(
            interval.state,
            State::Waiting | State::Preempted | State::Blocked(..)
        );
        let cpus = self.now[id.0 as usize].runs_on.clone();
        let next = |gaps: &Gaps, from, to| match &cpus {
            Some(cpus) => gaps.on(cpus, from, to),
            None => gaps.any(from, to),
        };
        while let Some(gap) = next(&self.gaps, interval.begin, interval.end).filter(|_| is_off) {
            if interval.begin < gap.since {
                let seen = Interval {
                    end: gap.since,
                    waker: None,
                    ..interval
                };
                self.keep(id, seen, std::mem::take(&mut ends));
            }
            let ended = gap.until >= interval.end;
            let missing = Interval {
                begin: gap.since,
                end: gap.until,
                state: State::Unknown(gap.why),
                cpu: None,
                waker: interval.waker.filter(|_| ended),
            };
            self.keep(id, missing, std::mem::take(&mut ends));
            if ended {
                return;
            }
            interval.begin = gap.until;
        }
        self.keep(id, interval, ends);
    }

    /// Adds an interval to the thread, or drops it if it ended before the time to keep; an unwanted interval becomes
    /// unknown. `ends` means that a wakeup ended the interval before it.
    fn keep(&mut self, id: ThreadId, interval: Interval, ends: bool) {
        let Interval {
            begin,
            end,
            mut waker,
            ..
        } = interval;
        if end <= self.keep {
            return;
        }
        let all = &mut self.threads[id.0 as usize].intervals;
        let doing = (interval.state, interval.cpu);
        let (doing, ends) = match &self.detail {
            Detail::All => (doing, ends),
            Detail::Waits => (only_waits(doing), ends),
            Detail::Some(wanted) if wanted.has_thread(id, begin, end) => (doing, ends),
            Detail::Some(_) => {
                waker = None;
                ((State::Unknown(Unrecorded::Unseen), None), false)
            }
        };
        let kind = all.recent(doing, &self.kinds);
        let kind = kind.unwrap_or_else(|| self.kinds.number(doing));
        // Any state in between took no time, so the last interval continues.
        let is_new = ends || !all.extend(end, kind, waker);
        self.stored.add((begin, end), kind, waker, is_new);
        if !is_new {
            return;
        }
        if self.count_only && !all.is_empty() {
            all.replace_last(end, kind);
        } else {
            all.push(begin, end, kind, waker);
        }
    }

    /// Drops everything except the waits between threads, and keeps nothing else from now on.
    pub(super) fn keep_waits(&mut self) {
        self.detail = Detail::Waits;
        self.stored = Stored::default();
        let doing = std::mem::take(&mut self.kinds).into_list();
        for thread in &mut self.threads {
            let mut packed = Intervals::default();
            let mut ended = false;
            for (begin, end, kind, waker) in thread.intervals.packed() {
                let kind = self.kinds.number(only_waits(doing[kind as usize]));
                // An interval that a wakeup ended is not merged with the next one.
                let is_new = std::mem::replace(&mut ended, waker.is_some())
                    || !packed.extend(end, kind, waker);
                if is_new {
                    packed.push(begin, end, kind, waker);
                }
                self.stored.add((begin, end), kind, waker, is_new);
            }
            thread.intervals = packed;
        }
    }

    /// Whether the waker of `thread` at `time` is needed.
    pub(super) fn wants_waker(&self, thread: ThreadId, time: u64) -> bool {
        let Detail::Some(wanted) = &self.detail else {
            return true;
        };
        let task = &self.now[thread.0 as usize];
        if let Some(lock) = task.futex.filter(|of| of.operation == Operation::Lock) {
            // The thread may have spun before. The wakeup may also show since when it waits for the next owner.
            return wanted.has_thread(thread, lock.since.min(task.since), u64::MAX);
        }
        match task.state {
            State::Blocked(..) | State::Unknown(_) => wanted.has_thread(thread, task.since, time),
            // The sleep that the wakeup ends is still to come.
            _ => wanted.has_thread(thread, time, u64::MAX),
        }
    }

    /// Whether the path of the only thread with this number may be the activity of other threads at some time between
    /// `from` and now. A thread that is not known yet may be created later: until then, its path is its creator's
    /// activity.
    pub(super) fn may_be_away(&self, tid: i32, from: u64) -> bool {
        match self.by_tid.get(&tid) {
            Some(thread) => {
                let task = &self.now[thread.0 as usize];
                !task.is_awake() || task.away_until > from
            }
            None => self.ended.get(&tid).is_none_or(|end| *end > from),
        }
    }

    /// Whether the activity of a thread between two times is wanted, and not only its waits.
    pub(super) fn wants(&self, thread: ThreadId, from: u64, to: u64) -> bool {
        match &self.detail {
            Detail::All => true,
            Detail::Waits => false,
            Detail::Some(wanted) => wanted.has_thread(thread, from, to),
        }
    }

    /// Whether the activity of any thread is wanted, and not only its waits.
    pub(super) fn wants_any(&self) -> bool {
        match &self.detail {
            Detail::All => true,
            Detail::Waits => false,
            Detail::Some(wanted) => !wanted.is_empty(),
        }
    }

    /// Memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        // Besides the elements of the vectors: the hash tables, and unused capacity in the vectors of a thread.
        const MORE: usize = 320;
        let thread = size_of::<Thread>() + size_of::<Task>() + MORE;
        with_room(self.threads.len() * thread)
            + self.stored.bytes()
            // A vector may have room for four elements, or for twice as many as it holds.
            + self.renamed * 4 * size_of::<(u64, Name)>()
            + self.kinds.bytes()
            + self.gaps.bytes()
    }
}

/// The state to keep when only waits are kept.
fn only_waits((state, cpu): Doing) -> Doing {
    match state {
        State::Unknown(why) => (State::Unknown(why), None),
        State::Running(_) | State::Interrupted(_) => (State::Running(None), None),
        State::Blocked(sleep, call) => (State::Blocked(sleep, call), None),
        State::Preempted | State::Waiting => (state, cpu),
    }
}
