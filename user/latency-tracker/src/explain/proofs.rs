// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Facts that are not in the trace: counters of cgroups (`evidence.json` of a capture), and stacks in alerts.
//!
//! ```text
//!        read                              read
//!  nr_throttled 3                     nr_throttled 4      grown: a quota was used up between the reads
//!         |------|== held back? ==|----------|
//! ```
//!
//! A counter covers all threads of its cgroup. If the counter grew, a given thread may have been held back. If it did
//! not grow, no thread was held back.
//!
//! A stack shows where a thread slept, and belongs to one time off the CPU. It is in the explained alert, or in another
//! alert of the same thread:
//!
//! ```text
//! alert of syscall   |=========================|      has ended, so it has no stack
//! alert of offcpu         |==============|            has the stack of this sleep
//! thread             |runs|    sleeps    |runs |
//! ```

use lt_model::why::{Beside, Cause, Leaf, Piece, Quota, Slept};
use lt_model::{Interval, Model, Sleep, State, ThreadId, Vector};
use lt_proc::evidence::{Cgroup, Counters, Evidence};
use lt_proc::{Alert, Reason};

use super::{alone, resource};
use crate::analyze::words::Facts;

/// A stack of the alert's thread.
struct Stack<'b> {
    /// The alert that has the stack, unless it is the explained one.
    other: Option<&'b Alert>,
    /// The time off the CPU to which the stack belongs.
    range: (u64, u64),
    /// The resource that the thread waited for, if the stack shows it.
    resource: Option<resource::Resource>,
}

/// Alerts by thread, and by time for each thread.
pub(super) struct ByThread<'b>(Vec<&'b Alert>);

impl<'b> ByThread<'b> {
    pub(super) fn new(alerts: &'b [Alert]) -> Self {
        let mut all: Vec<&Alert> = alerts.iter().collect();
        all.sort_by_key(|alert| (alert.tid, alert.time));
        Self(all)
    }

    /// The alerts of the thread of this alert that were raised during its delay.
    pub(super) fn during(&self, alert: &Alert) -> &[&'b Alert] {
        let place = |other: &Alert| (other.tid, other.time);
        let (from, to) = ((alert.tid, alert.start()), place(alert));
        let from = self.0.partition_point(|other| place(other) < from);
        let to = self.0.partition_point(|other| place(other) <= to);
        self.0.get(from..to).unwrap_or_default()
    }
}

/// Facts about one alert and its thread.
pub(super) struct Proofs<'a, 'b> {
    model: &'a Model,
    evidence: &'a Evidence,
    /// The thread of the alert.
    thread: Option<ThreadId>,
    /// The stacks of this thread, from the alert itself and from other alerts during the delay: one for each time off
    /// the CPU, in time order.
    stacks: Vec<Stack<'b>>,
    /// The alert's thread and its off-CPU time, if the alert shows that a quota held the thread back at first.
    held: Option<(ThreadId, (u64, u64))>,
}

impl<'a, 'b> Proofs<'a, 'b> {
    /// Collects the facts for an alert. An alert in `beside` counts if it is about a time within this alert's delay.
    pub(super) fn new(
        model: &'a Model,
        evidence: &'a Evidence,
        alert: &Alert,
        beside: &[&'b Alert],
        thread: Option<ThreadId>,
    ) -> Self {
        let off = |alert: &Alert| thread.and_then(|thread| stack_range(model, alert, thread));
        let stack = |alert: &Alert, other: Option<&'b Alert>| {
            if alert.stack().is_empty() {
                return None;
            }
            let range = off(alert)?;
            let resource = resource::of_alert(alert).filter(|resource| resource.direct);
            Some(Stack {
                other,
                range,
                resource,
            })
        };
        let is_inside = |other: &&'b Alert| alone::is_inside(other, alert);
        let inside = beside.iter().copied().filter(is_inside);
        let others = inside.filter_map(|other| stack(other, Some(other)));
        let mut stacks: Vec<Stack<'b>> = stack(alert, None).into_iter().chain(others).collect();
        // If two stacks belong to the same time, the stack of the alert itself stays: it is the first, and the sort is
        // stable.
        stacks.sort_by_key(|stack| stack.range);
        stacks.dedup_by_key(|stack| stack.range);
        let held = thread.filter(|_| resource::is_held_by_quota(alert));
        Self {
            model,
            evidence,
            thread,
            stacks,
            held: held.and_then(|thread| Some((thread, off(alert)?))),
        }
    }

    /// The alerts other than the explained one whose stacks show causes of these pieces.
    pub(super) fn shown_by(&self, pieces: &[Piece]) -> Vec<&'b Alert> {
        let mut used: Vec<&Alert> = Vec::new();
        for piece in pieces.iter().filter(|p| Some(p.thread) == self.thread) {
            let Some(function) = function_of(piece.cause) else {
                continue;
            };
            let is_of = |resource: resource::Resource| resource.function() == function;
            let stack = self.stack_at(piece.begin, piece.end);
            let stack = stack.filter(|stack| stack.resource.is_some_and(is_of));
            if let Some(other) = stack.and_then(|stack| stack.other)
                && !used.iter().any(|known| std::ptr::eq(*known, other))
            {
                used.push(other);
            }
        }
        used
    }

    /// The facts needed to describe a delay of that thread.
    pub(super) fn facts(&self, thread: Option<ThreadId>, from: u64, to: u64) -> Facts {
        let quota = thread.map(|thread| self.counted(thread, from, to));
        let held = self.held.filter(|(of, _)| Some(*of) == thread);
        Facts {
            cgroups: cgroups(self.evidence),
            whole: "delay",
            quota: quota.unwrap_or(Quota::Open),
            held: held.map(|(of, range)| (range, self.only_quota(of))),
        }
    }

    /// The stack that belongs to this interval of this thread.
    fn stack(&self, thread: ThreadId, interval: &Interval) -> Option<&Stack<'b>> {
        let is_own = self.thread == Some(thread);
        let stack = is_own.then(|| self.stack_at(interval.begin, interval.end));
        stack.flatten()
    }

    /// The stack whose time off the CPU covers all of this time.
    fn stack_at(&self, begin: u64, end: u64) -> Option<&Stack<'b>> {
        let later = self.stacks.partition_point(|stack| stack.range.0 <= begin);
        let earlier = self.stacks.get(..later)?.iter().rev();
        // Ranges that overlap belong to the same time off the CPU, and have the same end.
        let mut near = earlier.take_while(|stack| begin < stack.range.1);
        near.find(|stack| end <= stack.range.1)
    }

    /// The levels of a thread: its cgroup and the known ancestors of this cgroup, with their numbers.
    fn levels(&self, thread: ThreadId) -> Option<Vec<(u16, &Cgroup)>> {
        let tid = self.model.thread(thread)?.tid;
        let task = self.evidence.tasks.iter().find(|task| task.tid == tid);
        let has = |cgroup: &&Cgroup| cgroup.threads.contains(&tid);
        let path = match task {
            Some(task) => task.cgroup.as_deref()?,
            // A cgroup also contains the threads of its descendants.
            None => {
                let all = self.evidence.cgroups.iter().filter(has);
                all.map(|cgroup| cgroup.path.as_str())
                    .max_by_key(|path| path.len())?
            }
        };
        // The cgroups above the visible root are not known.
        if path.starts_with("/..") {
            return None;
        }
        let is_above = |cgroup: &str| {
            let rest = path.strip_prefix(cgroup.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let all = (0..).zip(&self.evidence.cgroups);
        Some(all.filter(|(_, cgroup)| is_above(&cgroup.path)).collect())
    }

    /// Whether the counters show that quotas of the thread's cgroups were used up between two times.
    fn counted(&self, thread: ThreadId, from: u64, to: u64) -> Quota {
        let Some(levels) = self.levels(thread) else {
            return Quota::Open;
        };
        let mut grown = Vec::new();
        let mut open = usize::from(has_hidden(&levels));
        let limited = levels.into_iter().filter(|(_, cgroup)| has_quota(cgroup));
        for (number, cgroup) in limited {
            match throttled(cgroup, from, to) {
                Some(true) => grown.push(number),
                Some(false) => {}
                None => open += 1,
            }
        }
        match (&grown[..], open) {
            ([], 0) => Quota::Excluded,
            ([], _) => Quota::Open,
            ([one], 0) => Quota::Proved(Some(*one)),
            _ => Quota::Proved(None),
        }
    }

    /// The level with a quota, if there is exactly one.
    fn only_quota(&self, thread: ThreadId) -> Option<u16> {
        let levels = self.levels(thread).filter(|levels| !has_hidden(levels))?;
        let mut limited = levels.iter().filter(|(_, cgroup)| has_quota(cgroup));
        let (number, _) = limited.next()?;
        limited.next().is_none().then_some(*number)
    }

    /// The level whose `memory.high` was exceeded around that sleep; `Some(None)` if several levels are possible.
    fn high(&self, thread: ThreadId, sleep: &Interval) -> Option<Option<u16>> {
        // A thread over `memory.high` sleeps on its way back to user space, until a timeout.
        if !matches!(sleep.state, State::Blocked(_, None)) || self.stack(thread, sleep).is_some() {
            return None;
        }
        match self.model.waker(sleep.waker?)?.context? {
            lt_model::Context::Softirq { vector, .. } if vector == Vector::TIMER => {}
            _ => return None,
        }
        let is_grown = |cgroup: &Cgroup| {
            let (before, after) = around(cgroup, sleep.begin, sleep.end)?;
            Some(before.memory_high? < after.memory_high?)
        };
        let levels = self.levels(thread)?.into_iter();
        let mut grown = levels.filter(|(_, cgroup)| is_grown(cgroup) == Some(true));
        let (number, _) = grown.next()?;
        Some(grown.next().is_none().then_some(number))
    }

    /// The level that was frozen for about the time of that sleep.
    fn frozen(&self, thread: ThreadId, sleep: &Interval) -> Option<u16> {
        // A frozen thread sleeps outside of system calls, and unfreezing wakes it.
        let State::Blocked(Sleep::Interruptible, None) = sleep.state else {
            return None;
        };
        self.model.waker(sleep.waker?)?.by()?;
        let took = (sleep.end - sleep.begin) / 1000;
        let is_it = |cgroup: &Cgroup| {
            let (before, after) = around(cgroup, sleep.begin, sleep.end)?;
            let frozen = after.frozen_usec?.checked_sub(before.frozen_usec?)?;
            Some(frozen > 0 && frozen.abs_diff(took) <= took / 10)
        };
        // A frozen cgroup freezes its descendants; the freeze was requested for the topmost one.
        let levels = self.levels(thread)?.into_iter();
        let frozen = levels.filter(|(_, cgroup)| is_it(cgroup) == Some(true));
        let uppermost = frozen.min_by_key(|(_, cgroup)| cgroup.path.len());
        uppermost.map(|(number, _)| number)
    }
}

impl Beside for Proofs<'_, '_> {
    fn quota(&self, thread: ThreadId, wait: &Interval) -> Quota {
        let is_held = |(of, (begin, end)): (ThreadId, (u64, u64))| {
            of == thread && begin <= wait.begin && wait.end <= end
        };
        if self.held.is_some_and(is_held) && wait.state == State::Preempted {
            return Quota::Shown(self.only_quota(thread));
        }
        self.counted(thread, wait.begin, wait.end)
    }

    fn slept(&self, thread: ThreadId, sleep: &Interval) -> Option<Slept> {
        let stack = self.stack(thread, sleep);
        if let Some(resource) = stack.and_then(|stack| stack.resource) {
            // A quota explains no sleep: the thread became runnable meanwhile, and now sleeps for another reason.
            let is_it = resource.function() != resource::QUOTA;
            return is_it.then_some(Slept {
                leaf: Leaf::Resource(resource.known),
                alone: resource.alone,
            });
        }
        let frozen = self.frozen(thread, sleep).map(|cgroup| Slept {
            leaf: Leaf::Freezer(Some(cgroup)),
            alone: true,
        });
        frozen.or_else(|| {
            self.high(thread, sleep).map(|cgroup| Slept {
                leaf: Leaf::PerhapsHigh(cgroup),
                alone: false,
            })
        })
    }
}

/// The kernel function that shows this cause, if a stack does.
fn function_of(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Held(_, place, _) => place.function(),
        Cause::For(Leaf::Resource(&(function, _)), _) => Some(function),
        _ => None,
    }
}

/// The names of the cgroups, by number.
pub(super) fn cgroups(evidence: &Evidence) -> Vec<String> {
    let all = evidence.cgroups.iter();
    all.map(|cgroup| cgroup.path.clone()).collect()
}

/// Whether these levels have ancestors that are not visible, and may have a quota: `/` is listed only in a container.
fn has_hidden(levels: &[(u16, &Cgroup)]) -> bool {
    levels.iter().any(|(_, cgroup)| cgroup.path == "/")
}

fn has_quota(cgroup: &Cgroup) -> bool {
    let mut limits = cgroup.limits.iter();
    limits.any(|(file, text)| file == "cpu.max" && !text.trim_start().starts_with("max"))
}

/// The last counters read before `from`, and the first read after `to`.
fn around(cgroup: &Cgroup, from: u64, to: u64) -> Option<(&Counters, &Counters)> {
    let before = cgroup.reads.iter().rfind(|read| read.end <= from)?;
    let after = cgroup.reads.iter().find(|read| read.begin >= to)?;
    Some((before, after))
}

/// Whether a cgroup's quota was used up between two times. `nr_throttled` grows when the period ends. `throttled_usec`
/// grows when a thread continues, which may be earlier.
fn throttled(cgroup: &Cgroup, from: u64, to: u64) -> Option<bool> {
    let (before, after) = around(cgroup, from, to)?;
    let count = before.nr_throttled? < after.nr_throttled?;
    let time = before.throttled_usec.zip(after.throttled_usec);
    Some(count || time.is_some_and(|(before, after)| before < after))
}

/// The time in which the thread of an alert was off the CPU with the alert's stack.
fn stack_range(model: &Model, alert: &Alert, thread: ThreadId) -> Option<(u64, u64)> {
    let is_off = |state| {
        matches!(
            state,
            State::Blocked(..) | State::Waiting | State::Preempted
        )
    };
    // The alert and the switch are recorded by different tracers, so their times differ slightly. The alert belongs to
    // the last time off the CPU that began before it.
    let mut last: Option<(u64, u64)> = None;
    let all = model.thread(thread)?.between(alert.start(), u64::MAX);
    for interval in all {
        if interval.begin >= alert.time {
            // The time off the CPU continues past the alert.
            match last {
                Some((begin, end)) if end == interval.begin && is_off(interval.state) => {
                    last = Some((begin, interval.end));
                    continue;
                }
                _ => break,
            }
        }
        last = match (is_off(interval.state), last) {
            (true, Some((begin, end))) if end == interval.begin => Some((begin, interval.end)),
            (true, _) => Some((interval.begin, interval.end)),
            (false, last) => last,
        };
        // The thread's activity, and its stack, in this time are not known.
        if matches!(interval.state, State::Unknown(_)) {
            last = None;
        }
    }
    let (begin, end) = last?;
    let is_of_it = match alert.reason {
        Reason::Timeout => end >= alert.time,
        Reason::Stack => true,
        // The stack belongs to the alert's time off the CPU.
        Reason::Threshold | Reason::Late => {
            ["offcpu", "runqueue"].contains(&alert.tracker.as_str())
        }
        Reason::Other(_) => false,
    };
    (is_of_it && end > alert.start()).then_some((begin, end))
}

#[cfg(test)]
mod tests;
