// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds the waker of each wakeup, and the runqueue of the wakee.

use super::Builder;
use crate::context::{Context, Helper, Raiser, Vector, Waker, is_left_to, is_of_softirqs};
use crate::ids::{ThreadId, WakerId};
use crate::limits::Function;
use crate::missing::Events;
use crate::names::Name;
use crate::request::Request;
use crate::state::State;

/// A softirq that may be running if the events do not show any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unseen {
    /// The thread is a softirq thread.
    Own,
    /// The softirq may have begun when an interrupt ended.
    AfterInterrupt,
}

/// A waker, and facts about it.
struct Found {
    waker: Waker,
    /// The request that the waker completed.
    request: Option<Request>,
    /// Whether the waker is a timer set by the wakee, or by another thread of its program.
    times_out: bool,
    helper: Option<Helper>,
}

impl Builder {
    /// The softirq that may run on `cpu` without an event.
    fn unseen_softirq(&mut self, time: u64, cpu: u32) -> Option<Unseen> {
        if !self.missing.has(Events::Softirqs) {
            return None;
        }
        let at = self.cpus.at(cpu);
        let (thread, is_left) = (at.thread()?, time <= at.softirqs_until);
        match self.is_called(thread, |name| is_of_softirqs(name.as_bytes())) {
            true => Some(Unseen::Own),
            false => is_left.then_some(Unseen::AfterInterrupt),
        }
    }

    /// The interrupt that has just ended on `cpu` and may have deferred work to a thread named `whom`.
    fn tail(&mut self, time: u64, cpu: u32, whom: &[u8]) -> Option<Context> {
        // After the interrupt, softirqs may have run, which also defer work to these threads.
        if self.missing.has(Events::Softirqs) && is_of_softirqs(whom) {
            return None;
        }
        let tail = self.cpus.at(cpu).tail(time)?;
        is_left_to(whom, tail).then_some(tail)
    }

    /// The current waker, on `cpu`, of thread `tid`, named `whom`; `None` if no event of this CPU has been fed.
    pub(crate) fn current_waker(
        &mut self,
        time: u64,
        cpu: u32,
        tid: i32,
        whom: &[u8],
    ) -> Option<Waker> {
        self.cpus.get(cpu)?;
        let thread = self.tasks.find(tid);
        Some(self.found(time, cpu, whom, thread).waker)
    }

    /// The number of a thread.
    pub(crate) fn tid(&self, thread: ThreadId) -> Option<i32> {
        let thread = self.tasks.threads.get(thread.0 as usize);
        thread.map(|thread| thread.tid)
    }

    /// The name of an interrupt.
    pub(crate) fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    /// Finds the current waker, on `cpu`, of a thread named `whom`, which is `thread` unless it is new or not known.
    fn found(&mut self, time: u64, cpu: u32, whom: &[u8], thread: Option<ThreadId>) -> Found {
        let asleep = thread.and_then(|thread| self.tasks.of(thread).uninterruptible_since());
        let tail = self.tail(time, cpu, whom);
        let unseen = self.unseen_softirq(time, cpu);
        let at = self.cpus.at(cpu);
        let disk = at.disk(time, thread, asleep);
        let mut waker = Waker {
            time,
            cpu,
            thread: at.thread(),
            context: match at.contexts[..] {
                // On PREEMPT_RT a thread runs the timer, in this softirq.
                [.., softirq, Context::Timer] if softirq.is_own(Vector::HRTIMER) => Some(softirq),
                // A handler may be called within another interrupt, which is still running.
                _ if whom.starts_with(b"irq/") && tail.is_some() => tail,
                [Context::Timer] if unseen == Some(Unseen::Own) => Some(Context::Softirq {
                    vector: Vector::TIMER,
                    own: true,
                    by: Raiser::Unrecorded,
                }),
                [.., last] => Some(last),
                [] => tail.or(unseen.map(|_| Context::Softirq {
                    vector: Vector::UNRECORDED,
                    own: false,
                    by: Raiser::Unrecorded,
                })),
            },
        };
        let is_of_timers = matches!(
            waker.context,
            Some(
                Context::Timer
                    | Context::Softirq {
                        vector: Vector::TIMER | Vector::HRTIMER,
                        ..
                    }
            )
        );
        let times_out = is_of_timers
            && at.expiring == Some(Function::Timeout)
            && self.missing.has(Events::Completions);
        // A thread that completes a request has also served that request, unless the thread only runs completions.
        let mut request = None;
        let mut helper = self.handler(cpu);
        let by = waker.by();
        if let Some((disk, of, goes_on)) = disk
            && (goes_on && (by.is_none() || self.missing.has(Events::Handlers))
                || by.is_some_and(|by| self.is_for_softirqs(by)))
        {
            waker.context = Some(Context::Disk(disk));
            request = of;
            helper = self.server(cpu).or(helper);
        } else if !waker
            .context
            .is_some_and(|context| context.is_own(Vector::TIMER) || context.is_own(Vector::HRTIMER))
        {
            helper = None;
        }
        if waker.context.is_none() && self.is_in_user_mode(time, waker.thread) {
            waker.context = Some(Context::Unseen);
        }
        Found {
            waker,
            request,
            times_out,
            helper,
        }
    }

    /// The current waker, on `cpu`, of a thread named `whom`; `None` if it is not needed.
    pub(super) fn waker(
        &mut self,
        time: u64,
        cpu: u32,
        whom: &[u8],
        thread: Option<ThreadId>,
    ) -> Option<WakerId> {
        let found = self.found(time, cpu, whom, thread);
        // The sleep that this wakeup ends is not kept, either.
        if time <= self.tasks.keep
            || thread.is_some_and(|thread| !self.tasks.wants_waker(thread, time))
        {
            return None;
        }
        if self.over {
            self.wakers.count();
            return None;
        }
        let id = self.wakers.push(found.waker);
        if let Some(request) = found.request {
            self.wakers.completes(request);
        }
        if found.times_out {
            self.wakers.times_out();
        }
        if let Some(helper) = found.helper {
            self.wakers.helped(helper);
        }
        Some(id)
    }

    /// The softirq thread or interrupt thread that runs the timer or completes the request. The due time is included if
    /// the timer is the only one of its softirq.
    fn handler(&mut self, cpu: u32) -> Option<Helper> {
        let at = self.cpus.at(cpu);
        let inside = match &at.contexts[..] {
            [inside @ .., Context::Timer] => inside,
            all => all,
        };
        let is_own = |context: &Context| matches!(context, Context::Softirq { own: true, .. });
        let due = match inside {
            [.., last] if last.is_own(Vector::HRTIMER) => at.due.filter(|due| due.timers == 1),
            _ => None,
        };
        let thread = at.thread().filter(|_| inside.iter().all(is_own))?;
        let helper = Helper::Handled(thread, due.map(|due| due.raised));
        self.is_for_softirqs(thread).then_some(helper)
    }

    /// The thread that served a request in place of a device, if the request was completed in a softirq that this
    /// thread raised. The thread of an interrupt does not count.
    fn server(&mut self, cpu: u32) -> Option<Helper> {
        let at = self.cpus.at(cpu);
        let is_block = |context: &Context| matches!(context, Context::Softirq { vector, by: Raiser::Thread, .. } if *vector == Vector::BLOCK);
        let (thread, done) = at.contexts.last().filter(|c| is_block(c)).and(at.served)?;
        (!self.is_for_softirqs(thread)).then_some(Helper::Served(thread, done))
    }

    pub(super) fn waking(
        &mut self,
        time: u64,
        cpu: u32,
        tid: i32,
        name: &[u8],
        target: Option<u32>,
    ) {
        let thread = self.tasks.find(tid);
        self.named(thread, name);
        let Some(thread) = thread else {
            return;
        };
        let task = self.tasks.of(thread);
        if let (State::Waiting, Some((sleep, call))) = (task.state, task.assumed.take()) {
            // The thread still sleeps, so the earlier wakeup was void.
            task.state = State::Blocked(sleep, call);
        }
        match task.state {
            State::Blocked(..) | State::Unknown(_) => {
                let waker = self.waker(time, cpu, name, Some(thread));
                self.hands_on(time, thread, waker);
                self.tasks.woken(thread, time, waker, target);
            }
            // The thread wakes itself, or an interrupt on top of it does: it has not gone to sleep.
            State::Running(_) | State::Interrupted(_)
                if self.cpus.at(cpu).thread() == Some(thread) =>
            {
                self.tasks.of(thread).pending = None;
                self.hands_on(time, thread, None);
            }
            State::Running(_) | State::Interrupted(_) => {
                let waker = self.waker(time, cpu, name, Some(thread));
                self.hands_on(time, thread, waker);
                self.tasks.of(thread).pending = Some((waker, target));
            }
            State::Preempted | State::Waiting => self.hands_on(time, thread, None),
        }
    }

    pub(super) fn wakeup(&mut self, time: u64, cpu: u32, tid: i32, name: &[u8], target: u32) {
        self.mention(target);
        self.wakeups = true;
        let thread = self.tasks.find(tid);
        self.named(thread, name);
        let Some(thread) = thread else {
            return;
        };
        let task = self.tasks.of(thread);
        match task.state {
            // The thread had not gone to sleep, and this wakeup does not end a sleep.
            State::Running(_) | State::Interrupted(_) => task.pending = None,
            State::Waiting => task.cpu = Some(target),
            State::Preempted => {}
            // The `sched_waking` event is missing.
            State::Blocked(..) | State::Unknown(_) if self.wakings => {
                self.tasks.woken(thread, time, None, Some(target));
            }
            State::Blocked(..) | State::Unknown(_) => {
                self.waking(time, cpu, tid, name, Some(target))
            }
        }
        // `sched_waking` records the processor where the thread ran last; this event records where it waits.
        let task = self.tasks.of(thread);
        task.queued = task.state == State::Waiting;
        task.queued_at = task.queued.then_some(time).or(task.queued_at);
    }

    pub(super) fn migrate(&mut self, time: u64, tid: i32, name: &[u8], (from, to): (u32, u32)) {
        self.mention(to);
        self.moves = true;
        let thread = self.tasks.find(tid);
        self.named(thread, name);
        if let Some(thread) = thread.filter(|_| from != to) {
            if self.tasks.of(thread).is_queued() {
                // A thread may be migrated as soon as a limit no longer holds it back.
                self.note_sign(time, from, thread, None);
            }
            self.tasks.moved(thread, time, from, to, self.wakeups);
        }
    }

    pub(super) fn fork(&mut self, time: u64, cpu: u32, child: i32, name: &[u8]) {
        // Only the thread itself forks.
        self.cpus.at(cpu).continues();
        let waker = self.waker(time, cpu, name, None);
        if let Some(thread) = self.tasks.born(child, time, waker) {
            self.named(Some(thread), name);
        }
    }
}
