// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Orders the events of a trace as the module has seen them, where ftrace may have seen another order.
//!
//! The module's probe of an event runs after the probe of ftrace. Interrupts are enabled when a softirq or a work item
//! starts, so an interrupt may come between the two probes, and another task may preempt a work item or, on PREEMPT_RT,
//! a softirq:
//!
//! ```text
//!   ftrace   start   interrupt   switch   switch back           end
//!   module           interrupt   switch   switch back   start   end
//!                    `---- between the two probes ----'
//! ```
//!
//! The trace does not show how much of this the module saw before the start. The time of the start in an alert shows
//! it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use lt_proc::Alert;

use super::MICROSECOND;
use super::chain::{Told, told};
use super::rebuild::word;
use crate::lines::Line;

/// The events that can follow a start in its own context. By then, all probes of the start have returned.
const NEXT: [&str; 5] = [
    "hrtimer_expire_entry",
    "timer_expire_entry",
    "softirq_exit",
    "workqueue_execute_end",
    "sched_kthread_work_execute_end",
];

/// Gives a start of a softirq or of a work item the time of its step in the alerts, if other events of its CPU lie
/// between the two times and if the next event of its context (see `NEXT`) came later. Sorts the lines by time again.
pub(super) fn as_seen(lines: &mut [Line<'_>], alerts: &[Alert]) -> Result<()> {
    let mut seen: BTreeMap<(String, u32), BTreeSet<u64>> = BTreeMap::new();
    for alert in alerts {
        for step in told(alert)? {
            if let Told::Step { what, cpu, time } = step {
                seen.entry((what, cpu)).or_default().insert(time);
            }
        }
    }
    let mut late = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(what) = start(line)? else { continue };
        let times = seen.get(&(what, line.cpu));
        let Some(time) = times.and_then(|times| times.range(line.time..).next()) else {
            continue;
        };
        // The trace would show this time. Other lines of that microsecond may have come later, and stay after the
        // start.
        let time = time - time % MICROSECOND;
        let mut later = lines[at + 1..].iter().filter(|one| one.cpu == line.cpu);
        let next = later.clone().find(|one| is_next(line, one));
        let is_interrupted = later.next().is_some_and(|first| first.time < time);
        if is_interrupted && next.is_none_or(|next| time <= next.time) {
            late.push((at, time));
        }
    }
    for (at, time) in late {
        lines[at].time = time;
    }
    lines.sort_by_key(|line| line.time);
    Ok(())
}

/// Returns the name of a line's step in an alert, if the line is the start of a softirq or of a work item.
fn start(line: &Line<'_>) -> Result<Option<String>> {
    let (kind, name) = match line.event {
        "softirq_entry" => ("softirq", word(line.fields, "action=")?),
        "workqueue_execute_start" | "sched_kthread_work_execute_start" => {
            ("work", word(line.fields, "function ")?)
        }
        _ => return Ok(None),
    };
    Ok(Some(format!("{kind}:{name}")))
}

/// Whether `later` is an event that comes after all probes of a start.
fn is_next(start: &Line<'_>, later: &Line<'_>) -> bool {
    later.current == start.current && later.context == start.context && NEXT.contains(&later.event)
}
