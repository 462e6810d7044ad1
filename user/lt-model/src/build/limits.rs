// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds signs of limits, from the activity of a CPU while a thread on its runqueue was not running.
//!
//! ```text
//! slow to leave idle   idle ......|queued.......| exit | thread
//! a limit              |queued| exit | idle again ......... timer | thread
//! ```
//!
//! An idle CPU that has left idle and entered it again, or has switched to the idle thread, has looked at its runqueue.
//! If a thread was on the runqueue by then, a limit kept the thread from running. Idleness alone shows nothing.

use super::Builder;
use super::tasks::Task;
use crate::event::Priority;
use crate::ids::ThreadId;
use crate::limits::{Function, Runtime, Sign};
use crate::state::State;

/// Observed activity of a CPU since the last gap.
#[derive(Debug, Clone, Default)]
pub(super) struct Looked {
    /// When it last entered idle, and when it left idle before and after that.
    entered: Option<u64>,
    left_before: Option<u64>,
    left: Option<u64>,
    /// Its last switch, and its last switch to the idle thread.
    switched: Option<u64>,
    became_idle: Option<u64>,
    /// The last interrupt that a CPU sent to this CPU.
    called: Option<u64>,
    /// Time since which it has run neither a SCHED_DEADLINE thread nor a thread of a higher class.
    below_deadline: Option<u64>,
}

impl Looked {
    pub(super) fn idles(&mut self, time: u64) {
        self.entered = Some(time);
        self.left_before = self.left.take();
    }

    pub(super) fn leaves_idle(&mut self, time: u64) {
        self.left = Some(time);
    }

    pub(super) fn is_called(&mut self, time: u64) {
        self.called = Some(time);
    }

    /// Records a switch to a thread with this number, name and priority.
    pub(super) fn switches(&mut self, time: u64, tid: i32, name: &[u8], prio: Option<Priority>) {
        self.switched = Some(time);
        if tid == 0 {
            self.became_idle = Some(time);
        }
        // The stopper thread has precedence over all other threads.
        let is_below = tid == 0 || prio.is_some_and(|prio| !prio.is_deadline());
        if !is_below || name.starts_with(b"migration/") {
            self.below_deadline = None;
        } else {
            self.below_deadline.get_or_insert(time);
        }
    }

    /// The sign of the cause of a wait of `task` from `since` to `time`, if there is one.
    fn sign(&self, since: u64, time: u64, cpu: u32, task: &Task, found: &Found) -> Option<Sign> {
        let is_deadline = task.prio.is_some_and(Priority::is_deadline);
        if is_deadline {
            // A boost by priority inheritance may have ended meanwhile. The timer was then for another thread.
            let is_still = found.prio.is_none_or(Priority::is_deadline);
            let sign = self.deadline(since, time, task, found);
            return sign.filter(|_| is_still);
        }
        if task.prio.is_none_or(Priority::is_fair)
            && let Some(expired) = self.quota(time, cpu, task, found)
        {
            return Some(Sign::Quota(expired));
        }
        let left = self.left.filter(|left| *left > since && found.was_idle);
        let entered = self.entered.filter(|entered| *entered <= since);
        entered.and(left).map(Sign::LeftIdle)
    }

    /// The expiry of the timer that refilled the quota of the thread's cgroup.
    fn quota(&self, time: u64, cpu: u32, task: &Task, found: &Found) -> Option<u64> {
        let queued = task.queued_at?;
        let (expired, by) = found.expired.quota?;
        let is_after = |at: Option<u64>, time| at.is_some_and(|at| at >= time);
        let has_looked = is_after(self.became_idle, queued)
            || self.entered.is_some() && is_after(self.left_before, queued);
        // After the timer, the CPU has not become idle again, and an effect of the timer has reached the CPU.
        let idle_again = is_after(self.became_idle, expired) || is_after(self.entered, expired);
        let is_reached =
            by == cpu || is_after(self.left, expired) || is_after(self.called, expired);
        (has_looked && !idle_again && is_reached && queued < expired && expired <= time)
            .then_some(expired)
    }

    fn deadline(&self, since: u64, time: u64, task: &Task, found: &Found) -> Option<Sign> {
        let (expired, _) = found.expired.deadline?;
        // A CPU that runs a lower class shows that the thread has no runtime. The thread had no runtime before, either:
        // a thread that is not running uses no runtime.
        if task.state != State::Preempted || self.below_deadline? > expired {
            return None;
        }
        // The thread has precedence over all threads that have run since it was switched out, so nothing kept it from
        // running after the timer.
        let at_once = self.switched.is_some_and(|last| last <= expired);
        let runtime = match task.yields {
            Some(true) => Runtime::Yielded,
            Some(false) => Runtime::UsedUp,
            None => Runtime::Unrecorded,
        };
        (at_once && since < expired && expired <= time).then_some(Sign::Deadline(expired, runtime))
    }
}

/// Further facts about the end of a wait for a CPU.
struct Found {
    /// Whether the CPU was idle until now.
    was_idle: bool,
    /// The priority of the thread now, if recorded.
    prio: Option<Priority>,
    /// Last expiries of quota and deadline timers.
    expired: Expired,
}

/// Last expiries of quota and deadline timers, and their processors.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Expired {
    quota: Option<(u64, u32)>,
    deadline: Option<(u64, u32)>,
}

impl Builder {
    /// Records the start of a timer function.
    pub(super) fn expires(&mut self, time: u64, cpu: u32, function: Option<u64>) {
        let function = function.and_then(|address| self.functions.get(&address));
        self.cpus.at(cpu).expiring = function.copied();
        match function {
            Some(Function::Quota) => self.expired.quota = Some((time, cpu)),
            Some(Function::Deadline) => self.expired.deadline = Some((time, cpu)),
            Some(Function::Throttle | Function::Timeout) | None => {}
        }
    }

    /// Records that a worker begins a work item with this function, or ends one. Items in softirqs are ignored.
    pub(super) fn works(&mut self, time: u64, cpu: u32, function: Option<u64>) {
        let function = function.and_then(|address| self.functions.get(&address));
        let is_throttle = function == Some(&Function::Throttle);
        let at = self.cpus.at(cpu);
        let Some(thread) = at.thread().filter(|_| at.contexts.is_empty()) else {
            return;
        };
        // A BH workqueue runs its items in a softirq, on top of any thread.
        if !is_throttle && self.is_called(thread, |name| !name.starts_with("kworker/")) {
            return;
        }
        self.cpus.at(cpu).softirqs_until = 0;
        self.tasks.of(thread).throttles = is_throttle.then_some(time);
    }

    /// Whether io.max held back the bio that is now submitted on `cpu`.
    pub(super) fn was_held_back(&mut self, time: u64, cpu: u32) -> bool {
        let at = self.cpus.at(cpu);
        let Some(thread) = at.thread().filter(|_| at.contexts.is_empty()) else {
            return false;
        };
        let since = self.tasks.of(thread).throttles;
        since.is_some_and(|since| self.tasks.gaps.any(since, time).is_none())
    }

    /// Records the sign, if any, of the cause of a wait that ends because the thread begins to run on `cpu`, or leaves
    /// that CPU. `prio` is its priority now, if recorded.
    pub(super) fn note_sign(
        &mut self,
        time: u64,
        cpu: u32,
        thread: ThreadId,
        prio: Option<Priority>,
    ) {
        let since = self.tasks.since(thread);
        let task = self.tasks.of(thread);
        let is_here = task.cpu == Some(cpu);
        if !matches!(task.state, State::Waiting | State::Preempted) || !is_here {
            return;
        }
        let Some(at) = self.cpus.get(cpu) else {
            return;
        };
        let found = Found {
            was_idle: at.current() == Some(None),
            prio,
            expired: self.expired,
        };
        let Some(sign) = at.looked.sign(since, time, cpu, task, &found) else {
            return;
        };
        if time <= self.tasks.keep || !self.tasks.wants(thread, since, time) {
            return;
        }
        match self.over {
            true => self.signs.count(),
            false => self.signs.push(time, thread, sign),
        }
    }
}
