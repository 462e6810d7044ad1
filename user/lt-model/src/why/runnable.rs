// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Why a runnable thread did not run, if the events show more than the CPU that it waited for.

use crate::{Interval, Model, Sign, ThreadId, Use};

use super::beside::{Beside, Quota};
use super::cause::{Cause, Limit, plain};

/// If only the counters of a cgroup show that a quota was used up, the quota counts as the cause of the wait only if
/// other threads used the CPU for at most `1 / BUSY` of the time. Otherwise, they may be the cause.
const BUSY: u64 = 10;

/// A wait for a CPU between two times, in parts that follow each other, each with its cause; parts may be empty.
pub(crate) fn parts(
    model: &Model,
    beside: &dyn Beside,
    thread: ThreadId,
    wait: &Interval,
    (from, to): (u64, u64),
) -> [(u64, u64, Cause); 3] {
    let cause = plain(wait.state);
    let part = part(model, beside, thread, wait, (from, to));
    let (begin, end, why) = part.unwrap_or((to, to, cause));
    let begin = begin.clamp(from, to);
    let end = end.clamp(begin, to);
    [(from, begin, cause), (begin, end, why), (end, to, cause)]
}

/// The part of a wait for a CPU, between two times, that has a cause other than the CPU's activity, and the cause.
/// Before and after it, the thread waited for the CPU.
fn part(
    model: &Model,
    beside: &dyn Beside,
    thread: ThreadId,
    wait: &Interval,
    (from, to): (u64, u64),
) -> Option<(u64, u64, Cause)> {
    let expired = match model.sign(thread, wait.end) {
        Some(Sign::LeftIdle(left)) => {
            let left = left.min(to);
            let (mut begin, mut end) = longest_idle(model, wait.cpu?, from, left)?;
            // Short interrupts, such as the one that wakes the CPU, are a part of leaving idle.
            if 10 * end.saturating_sub(begin) >= 9 * left.saturating_sub(from) {
                (begin, end) = (from, left);
            }
            return Some((begin, end, Cause::LeavesIdle));
        }
        Some(Sign::Deadline(expired, runtime)) => {
            let cause = Cause::Limited(Limit::Deadline(runtime));
            return Some((wait.begin, expired, cause));
        }
        Some(Sign::Quota(expired)) => Some(expired),
        None => None,
    };
    let (begin, end, cgroup) = match beside.quota(thread, wait) {
        // An idle CPU would have run the thread, so the quota was still used up.
        Quota::Shown(cgroup) => (
            wait.begin,
            expired.or_else(|| last_idle(model, wait))?,
            cgroup,
        ),
        Quota::Proved(cgroup) => {
            let expired = expired?;
            let since = idle_since(model, wait.cpu?, wait.begin, expired)?;
            (since, expired, cgroup)
        }
        Quota::Excluded | Quota::Open => return None,
    };
    Some((begin, end, Cause::Limited(Limit::Quota(cgroup))))
}

/// The longest time between two times in which the CPU was idle and handled no interrupt. A CPU that halts handles
/// interrupts before the event that shows that it leaves idle.
fn longest_idle(model: &Model, cpu: u32, from: u64, to: u64) -> Option<(u64, u64)> {
    let processor = model.processors.get(cpu as usize)?;
    let stretches = processor.between(from, to);
    let idle = stretches.filter(|stretch| stretch.used == Use::Idle);
    let parts = idle.map(|stretch| (stretch.begin.max(from), stretch.end.min(to)));
    parts.max_by_key(|(begin, end)| end.saturating_sub(*begin))
}

/// The last time in a wait at which the CPU was idle.
fn last_idle(model: &Model, wait: &Interval) -> Option<u64> {
    let processor = model.processors.get(wait.cpu? as usize)?;
    let stretches = processor.between(wait.begin, wait.end);
    let idle = stretches.filter(|stretch| stretch.used == Use::Idle);
    idle.last().map(|stretch| stretch.end.min(wait.end))
}

/// The first time at which the CPU was idle or handled an interrupt, if the CPU did nothing else from then on up to
/// `to`, except for at most `1 / BUSY` of the time. An interrupt does not keep a thread off an idle CPU for long.
fn idle_since(model: &Model, cpu: u32, from: u64, to: u64) -> Option<u64> {
    let processor = model.processors.get(cpu as usize)?;
    let is_idle = |used: &Use| !matches!(used, Use::Thread(_) | Use::Unknown);
    let mut stretches = processor
        .between(from, to)
        .skip_while(|stretch| !is_idle(&stretch.used))
        .peekable();
    let since = stretches.peek()?.begin.max(from);
    let busy: u64 = stretches
        .filter(|stretch| !is_idle(&stretch.used))
        .map(|stretch| stretch.end.min(to) - stretch.begin.max(from))
        .sum();
    (since < to && busy <= (to - since) / BUSY).then_some(since)
}

/// Whether the events around a wait for a CPU look as if a quota caused it.
#[must_use]
pub fn looks_like_a_quota(model: &Model, thread: ThreadId, wait_end: u64) -> bool {
    matches!(model.sign(thread, wait_end), Some(Sign::Quota(_)))
}
