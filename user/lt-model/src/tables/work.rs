// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Work items: from queueing to start, and from start to end.
//!
//! A waiting item is identified by its address, a running item by its address and the thread that runs it, as by the
//! tracker `workqueue`: once its function has been called, the memory of an item may be used for another item.
//!
//! An item that is queued again before it starts was cancelled meanwhile, was moved to the end of the queue
//! (`mod_delayed_work()`), or had just been taken by a worker. No event shows the reason, so the wait is not measured.
//! If the item was queued on two workqueues, or by two threads, the workqueue from which it starts, or the thread, is
//! not known, either. After a gap, neither is known: the item may have run in the gap, and its memory may be used for an
//! item of another workqueue.
//!
//! The thread that queues an item is found as the waker of a thread is (`trigger.rs`). If that thread is a worker, the
//! item that it runs is named instead, since a worker runs items for many threads. The queuer of that item, in turn,
//! need not be the cause: the item may have been queued several times, and only the first queueing of a waiting item
//! has an event.

use foldhash::HashMap;

use super::Machine;
use super::ground::{Ground, Mark};
use super::group::{By, Kind, Object, Trigger};
use super::step::{Seen, Step, Work, WorkStage};
use super::table::{Range, Table, Why};
use super::trigger::{Recorded, Triggers};
use crate::names::Name;

#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: Mark,
    function: Option<u64>,
    workqueue: Option<Name>,
    queuer: Trigger,
    /// Whether it was queued again.
    again: bool,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    since: Mark,
    function: Option<u64>,
    object: Object,
}

#[derive(Debug)]
pub(super) struct Works {
    queued: Table,
    work: Table,
    waiting: HashMap<u64, Waiting>,
    running: HashMap<(u64, i32), Running>,
    /// Whether `workqueue_execute_end` is recorded.
    ends: bool,
    triggers: Triggers,
}

impl Works {
    pub(super) fn new(range: Range, by: Option<By>, recorded: Recorded, ends: bool) -> Self {
        let by = by.unwrap_or(By::Object);
        Self {
            queued: Table::new(Kind::Queued, range, by),
            work: Table::new(Kind::Work, range, by),
            waiting: HashMap::default(),
            running: HashMap::default(),
            ends,
            triggers: Triggers::new(recorded),
        }
    }

    /// What queues an item now: if a worker does, the item that it runs.
    fn queuer(&mut self, ground: &mut Ground, seen: &Seen<'_>) -> Trigger {
        let trigger = self.triggers.queuer(ground, seen);
        let Trigger::Thread(Some(id)) = trigger else {
            return trigger;
        };
        let (tid, _) = ground.task(id);
        let is_in = |((_, of), running): &(&(u64, i32), &Running)| {
            self.ends && *of == tid && !ground.spans(running.since)
        };
        let mut items = self.running.iter().filter(is_in);
        // If the worker seems to run several items, the end of one is missing.
        let item = items.next().filter(|_| items.next().is_none());
        let function = item.and_then(|(_, running)| running.function);
        function.map_or(trigger, Trigger::Work)
    }

    fn queue(&mut self, ground: &mut Ground, seen: &Seen<'_>, item: &Work<'_>) {
        let new = Waiting {
            since: ground.mark(seen.time),
            function: item.function,
            workqueue: item.workqueue.map(|name| ground.names.number(name)),
            queuer: self.queuer(ground, seen),
            again: false,
        };
        let Some(earlier) = self.waiting.get_mut(&item.work) else {
            self.waiting.insert(item.work, new);
            return;
        };
        let workqueue = earlier.workqueue.filter(|of| new.workqueue == Some(*of));
        let queuer = match earlier.queuer == new.queuer {
            true => new.queuer,
            false => Trigger::Unrecorded,
        };
        if ground.spans(earlier.since) {
            // The item may have run in the gap, or may still be waiting.
            self.queued.miss(seen.time, None, ground.why());
            *earlier = new;
        }
        (earlier.again, earlier.function) = (true, new.function);
        (earlier.workqueue, earlier.queuer) = (workqueue, queuer);
    }

    fn start(&mut self, ground: &mut Ground, seen: &Seen<'_>, item: &Work<'_>) {
        let who = ground.who(seen);
        // The memory of an item that was cancelled may be used for an item that the kernel inserts without queueing it.
        let functions = |of: &Waiting| of.function.zip(item.function);
        let is_it = |of: &Waiting| functions(of).is_none_or(|(one, other)| one == other);
        let waiting = self.waiting.remove(&item.work).filter(is_it);
        let known = waiting.filter(|waiting| !ground.spans(waiting.since));
        let workqueue = known.and_then(|waiting| waiting.workqueue);
        let queuer = known.map_or(Trigger::Unrecorded, |waiting| waiting.queuer);
        let function = item.function;
        let object = Object::Work(function.unwrap_or(0), workqueue, Some(queuer));
        if let Some(Waiting { since, again, .. }) = waiting {
            let times = (since.time, seen.time);
            let case = ground.case(times, seen.cpu, who, Some(object));
            match (ground.spans(since), again) {
                (true, _) => self.queued.miss_case(&case, ground.why()),
                (false, true) => self.queued.miss_case(&case, Why::Identical),
                (false, false) => self.queued.measure(&case),
            }
        } else {
            let who = who.map(|tid| ground.named(tid));
            self.queued.miss(seen.time, who, ground.why());
        }
        let Some(tid) = who else {
            return;
        };
        let since = ground.mark(seen.time);
        let running = Running {
            since,
            function,
            object,
        };
        if self.running.insert((item.work, tid), running).is_some() {
            // The end of an earlier item is missing.
            let who = ground.named(tid);
            self.work.miss(seen.time, Some(who), ground.why());
        }
    }

    fn end(&mut self, ground: &mut Ground, seen: &Seen<'_>, item: &Work<'_>) {
        let who = ground.who(seen);
        let running = who.and_then(|tid| self.running.remove(&(item.work, tid)));
        let Some(Running { since, object, .. }) = running else {
            let who = who.map(|tid| ground.named(tid));
            return self.work.miss(seen.time, who, ground.why());
        };
        let times = (since.time, seen.time);
        let case = ground.case(times, seen.cpu, who, Some(object));
        match ground.spans(since) {
            true => self.work.miss_case(&case, ground.why()),
            false => self.work.measure(&case),
        }
    }
}

impl Machine for Works {
    fn see(&mut self, ground: &mut Ground, seen: &Seen<'_>) {
        if let Step::Work(item) = &seen.step {
            match item.stage {
                WorkStage::Queued => self.queue(ground, seen, item),
                WorkStage::Started => self.start(ground, seen, item),
                WorkStage::Ended => self.end(ground, seen, item),
            }
        }
        self.triggers.follow(seen);
    }

    fn lost(&mut self, _ground: &mut Ground, time: u64, cpu: u32, _why: Why) {
        self.triggers.lost(time, cpu);
    }

    fn finish(&mut self, ground: &mut Ground, _time: u64) {
        for waiting in self.waiting.values() {
            let why = ground.why_since(waiting.since);
            self.queued.miss_open(waiting.since.time, None, why);
        }
        for ((_, tid), running) in &self.running {
            let why = ground.why_since(running.since);
            self.work
                .miss_open(running.since.time, Some((*tid, None)), why);
        }
        if ground.absent.is_some() {
            self.queued.give_up();
            self.work.give_up();
        }
    }

    fn growing(&mut self) -> Vec<&mut Table> {
        vec![&mut self.queued, &mut self.work]
    }

    fn tables(self: Box<Self>) -> Vec<Table> {
        vec![self.queued, self.work]
    }
}
