// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Waits of tasks, computed only from the scheduler's raw tracepoints.
//!
//! ```text
//!   fio-171 [000] d..4. 12.2: sched_waking: comm=a pid=9 prio=120 target_cpu=001
//!   fio-171 [000] d..2. 12.3: sched_switch: prev_comm=fio prev_pid=171 prev_prio=120 prev_state=S ==> next_comm=a ...
//! ```
//!
//! Only the part between two marks is judged: see lines.rs.

use std::collections::HashMap;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::alerts::Reported;
use crate::lines::{self, Line, Marks};
use crate::pair::{Pairing, Place, Request};

/// The kind of waits to find, named after the trackers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wait {
    /// From being woken to being switched in.
    Wakeup,
    /// From being switched out while runnable to being switched in.
    Runqueue,
    /// From being switched out to being switched in.
    Offcpu,
}

impl Wait {
    /// The fields of an alert that are compared besides its delay.
    fn said(self) -> &'static [&'static str] {
        match self {
            Wait::Wakeup => &["target", "waker_tid", "context", "prev_tid"],
            Wait::Runqueue => &["state", "by_tid", "prev_tid"],
            Wait::Offcpu => &["state", "waker_tid"],
        }
    }
}

/// A wait that has started.
#[derive(Debug, Clone, Default)]
struct Open {
    start: u64,
    /// The CPU that the task left; set only for [`Wait::Offcpu`].
    cpu: u32,
    /// Fields that the alert must contain, as known so far.
    said: String,
    /// Alternative fields, see `RACING`.
    or: Option<String>,
}

/// When, where and by whom a task was woken.
#[derive(Debug, Clone, Copy)]
struct Waking {
    time: u64,
    cpu: u32,
    waker: u32,
}

/// Finds all waits of a kind between the marks, and the marks.
pub(crate) fn pair(text: &str, wait: Wait) -> Result<(Pairing, Marks)> {
    const EVENTS: [&str; 3] = ["sched_waking", "sched_wakeup_new", "sched_switch"];
    let (lines, marks) = lines::read(text, |event| EVENTS.contains(&event))?;
    let mut pairing = Pairing::default();
    let mut open: HashMap<u32, Open> = HashMap::new();
    let mut woken = HashMap::new();
    for line in &lines {
        let ended = match wait {
            Wait::Wakeup => wakeup(&mut open, line),
            Wait::Runqueue => runqueue(&mut open, line),
            Wait::Offcpu => offcpu(&mut open, &mut woken, line),
        };
        let ended = ended.with_context(|| format!("{line:?}"))?;
        pairing.finished.extend(ended);
    }
    pairing
        .finished
        .retain(|wait| marks.has(wait.end - wait.delay, wait.end));
    pairing.pending = open.len() as u64;
    Ok((pairing, marks))
}

/// Returns the wait that this line ends, if it switches in a woken task.
fn wakeup(open: &mut HashMap<u32, Open>, line: &Line<'_>) -> Result<Option<Request>> {
    match line.event {
        "sched_waking" | "sched_wakeup_new" => {
            let tid = number(line.fields, " pid=")?;
            // A task that wakes itself is awake.
            if tid != line.current {
                let (start, target) = (line.time, number(line.fields, " target_cpu=")?);
                let (waker, context) = (line.current, line.context);
                let said = format!("target={target} waker_tid={waker} context={context}");
                open.insert(
                    tid,
                    Open {
                        start,
                        said,
                        ..Open::default()
                    },
                );
            }
            Ok(None)
        }
        "sched_switch" => {
            let switch = Switch::parse(line.fields)?;
            // `prev` has not slept since it was woken, or it has exited.
            if switch.is_runnable() || switch.is_dead() {
                open.remove(&switch.prev);
            }
            Ok(open.remove(&switch.next).map(|wait| {
                let said = format!("{} prev_tid={}", wait.said, switch.prev);
                ended(switch.next, wait.start, line.time, said)
            }))
        }
        _ => Ok(None),
    }
}

/// Returns the wait of the task that was switched out while runnable and that this line switches in.
fn runqueue(open: &mut HashMap<u32, Open>, line: &Line<'_>) -> Result<Option<Request>> {
    if line.event != "sched_switch" {
        return Ok(None);
    }
    let switch = Switch::parse(line.fields)?;
    if switch.is_runnable() && switch.prev != 0 {
        let said = format!("state={} by_tid={}", switch.state, switch.next);
        let start = line.time;
        open.insert(
            switch.prev,
            Open {
                start,
                said,
                ..Open::default()
            },
        );
    }
    Ok(open.remove(&switch.next).map(|wait| {
        let said = format!("{} prev_tid={}", wait.said, switch.prev);
        ended(switch.next, wait.start, line.time, said)
    }))
}

/// Distance, ns, below which two events on two CPUs may be in a different order in the trace than
/// in the module: a virtual processor may be stopped between the two probes.
const RACING: u64 = 1_000_000;

/// If this line switches in a task, returns how long the task was off the CPU, for any reason, with its last waker if
/// it slept. If a wakeup on another CPU comes less than `RACING` before or after the task is switched out, the module
/// may have seen the two in the other order; `or` then has the result for that order.
fn offcpu(
    open: &mut HashMap<u32, Open>,
    woken: &mut HashMap<u32, Waking>,
    line: &Line<'_>,
) -> Result<Option<Request>> {
    match line.event {
        "sched_waking" => {
            let tid = number(line.fields, " pid=")?;
            let (time, cpu, waker) = (line.time, line.cpu, line.current);
            woken.insert(tid, Waking { time, cpu, waker });
            // A preempted task has no waker: it is runnable already.
            let sleeps = |wait: &&mut Open| !wait.said.starts_with("state=R");
            if let Some(wait) = open.get_mut(&tid).filter(sleeps) {
                let (state, _) = wait.said.split_once(' ').unwrap_or(("", ""));
                let races = cpu != wait.cpu && time - wait.start < RACING;
                wait.or = races.then(|| format!("{state} waker_tid=0"));
                wait.said = format!("{state} waker_tid={waker}");
            }
            Ok(None)
        }
        "sched_switch" => {
            let switch = Switch::parse(line.fields)?;
            let early = woken.remove(&switch.prev);
            if switch.prev != 0 && !switch.is_dead() {
                let (start, cpu, state) = (line.time, line.cpu, switch.state);
                let races = |w: &Waking| w.cpu != cpu && start - w.time < RACING;
                let early = early.filter(|w| !switch.is_runnable() && races(w));
                let wait = Open {
                    start,
                    cpu,
                    said: format!("state={state} waker_tid=0"),
                    or: early.map(|w| format!("state={state} waker_tid={}", w.waker)),
                };
                open.insert(switch.prev, wait);
            }
            woken.remove(&switch.next);
            let wait = open.remove(&switch.next);
            Ok(wait.map(|wait| Request {
                or: wait.or,
                ..ended(switch.next, wait.start, line.time, wait.said)
            }))
        }
        _ => Ok(None),
    }
}

fn ended(tid: u32, start: u64, end: u64, said: String) -> Request {
    Request {
        place: Place::Task(tid),
        delay: end - start,
        end,
        said,
        or: None,
        within: None,
    }
}

/// A switch from one task to another.
struct Switch<'a> {
    prev: u32,
    /// `R`, `R+` for preempted, `S`, `D`, ...
    state: &'a str,
    next: u32,
}

impl<'a> Switch<'a> {
    fn parse(fields: &'a str) -> Result<Self> {
        let (prev, next) = fields
            .rsplit_once(" ==> next_comm=")
            .context("no ==> next_comm=")?;
        let state = prev.rsplit_once(" prev_state=").context("no prev_state=")?;
        Ok(Self {
            prev: number(prev, " prev_pid=")?,
            state: state.1,
            next: number(next, " next_pid=")?,
        })
    }

    fn is_runnable(&self) -> bool {
        self.state.starts_with('R')
    }

    fn is_dead(&self) -> bool {
        self.state.contains(['X', 'Z'])
    }
}

/// Returns the number after the last `name`: a command may be named like a field.
fn number(fields: &str, name: &str) -> Result<u32> {
    let (_, value) = fields
        .rsplit_once(name)
        .with_context(|| format!("no{name}"))?;
    let value = value.split(' ').next().unwrap_or("");
    value
        .parse()
        .with_context(|| format!("{value:?}: expected a number after{name}"))
}

/// Reads the alerts of an instance that are above the threshold and whose waits lie between the marks.
pub(crate) fn alerts(text: &str, wait: Wait, marks: Marks) -> Result<Vec<Reported>> {
    lines::alerts(text, marks, |alert| {
        let task = Place::Task(u32::try_from(alert.tid)?);
        Ok((task, lines::said(alert, wait.said().iter().copied())?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "# entries-in-buffer/entries-written: 9/9   #P:2\n";

    /// A trace in which `sh`, with the thread id 1, sets the marks.
    fn trace(lines: &[&str]) -> String {
        let mark = |time, mark| {
            format!("  sh-1  [000] .....  {time}: tracing_mark_write: lt-witness {mark}\n")
        };
        let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
        format!(
            "{HEADER}{}{body}{}",
            mark("1.0", "begin"),
            mark("9.0", "end")
        )
    }

    fn waits(wait: Wait, lines: &[&str]) -> Vec<(Place, u64, String)> {
        let (pairing, _) = pair(&trace(lines), wait).unwrap();
        let waits = pairing.finished.into_iter();
        waits.map(|w| (w.place, w.delay, w.said)).collect()
    }

    const WAKING: &str = " a pid=3 b-7 [001] d.h4. 2.000001: sched_waking: comm=x pid=8 y pid=9 prio=120 target_cpu=001";
    const IN: &str = " <idle>-0 [001] d..2. 2.000031: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
        prev_state=R ==> next_comm=x next_pid=9 next_prio=120";
    const OUT: &str = " x-9 [001] d..2. 3.0: sched_switch: prev_comm=x prev_pid=9 prev_prio=120 \
        prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";

    fn said(context: &str) -> String {
        format!("target=1 waker_tid=7 context={context} prev_tid=0")
    }

    #[test]
    fn a_task_woken_and_switched_in_has_waited() {
        let waited = (Place::Task(9), 30_000, said("hardirq"));
        assert_eq!(waits(Wait::Wakeup, &[WAKING, IN, OUT]), [waited]);
        // The wakeup has ended with the first switch to the task, and does not count again.
        assert_eq!(waits(Wait::Wakeup, &[WAKING, IN, OUT, IN]).len(), 1);
        assert_eq!(waits(Wait::Wakeup, &[IN, OUT]), []);
    }

    #[test]
    fn a_task_woken_while_it_runs_has_not_waited() {
        let preempted = OUT.replace("2.0", "2.00002").replace("=S ", "=R+ ");
        let preempted = preempted.replace("3.0", "2.00002");
        assert_eq!(waits(Wait::Wakeup, &[WAKING, &preempted, IN]), []);
        let oneself = WAKING.replace("b-7", "x-9");
        assert_eq!(waits(Wait::Wakeup, &[&oneself, IN]), []);
        let dead = OUT.replace("3.0", "2.00002").replace("=S ", "=X ");
        assert_eq!(waits(Wait::Wakeup, &[WAKING, &dead, IN]), []);
    }

    #[test]
    fn the_last_wakeup_counts() {
        let again = WAKING
            .replace("2.000001", "2.000011")
            .replace("d.h4.", "d..4.");
        let waited = (Place::Task(9), 20_000, said("task"));
        assert_eq!(waits(Wait::Wakeup, &[WAKING, &again, IN]), [waited]);
    }

    #[test]
    fn a_task_switched_out_runnable_waits_on_the_runqueue() {
        let out = OUT.replace("3.0", "2.00001").replace("=S ", "=R ");
        let waited = |state: &str| {
            let said = format!("state={state} by_tid=0 prev_tid=0");
            [(Place::Task(9), 21_000, said)]
        };
        assert_eq!(waits(Wait::Runqueue, &[&out, IN]), waited("R"));
        let preempted = out.replace("=R ", "=R+ ");
        assert_eq!(waits(Wait::Runqueue, &[&preempted, IN]), waited("R+"));
        let asleep = out.replace("=R ", "=S ");
        assert_eq!(waits(Wait::Runqueue, &[&asleep, WAKING, IN]), []);
        // An idle processor is not a task that waits.
        assert_eq!(
            waits(Wait::Runqueue, &[IN, &out.replace("=R ", "=S "), IN]),
            []
        );
    }

    #[test]
    fn a_task_switched_out_is_off_the_cpu() {
        let out = |state| {
            let out = OUT.replace("3.0", "2.0");
            out.replace("=S ", &format!("={state} "))
        };
        let waited = |state: &str, waker: u32| {
            let said = format!("state={state} waker_tid={waker}");
            [(Place::Task(9), 31_000, said)]
        };
        assert_eq!(
            waits(Wait::Offcpu, &[&out("S"), WAKING, IN]),
            waited("S", 7)
        );
        assert_eq!(waits(Wait::Offcpu, &[&out("R+"), IN]), waited("R+", 0));
        // A task that is preempted on its way to sleep was runnable before it was woken.
        assert_eq!(
            waits(Wait::Offcpu, &[&out("R+"), WAKING, IN]),
            waited("R+", 0)
        );
        assert_eq!(waits(Wait::Offcpu, &[&out("X"), IN]), []);
        // A wakeup on another CPU at the time of the switch may count or not, regardless of the order in the trace.
        let elsewhere = WAKING.replace("[001]", "[000]");
        let early = elsewhere.replace("2.000001", "1.999999");
        let other = |lines: &[&str]| {
            let (pairing, _) = pair(&trace(lines), Wait::Offcpu).unwrap();
            pairing.finished.into_iter().next_back().unwrap().or
        };
        let said = |waker| Some(format!("state=S waker_tid={waker}"));
        assert_eq!(other(&[&out("S"), &elsewhere, IN]), said(0));
        assert_eq!(other(&[&early, &out("S"), IN]), said(7));
        assert_eq!(other(&[&out("S"), WAKING, IN]), None);
        let long_before = elsewhere.replace("2.000001", "1.9");
        assert_eq!(other(&[&long_before, &out("S"), IN]), None);
        assert_eq!(waits(Wait::Offcpu, &[WAKING, IN]), []);
    }

    #[test]
    fn waits_outside_the_marks_are_left_out() {
        let early = WAKING.replace("2.000001", "0.9");
        assert_eq!(waits(Wait::Wakeup, &[&early, IN]), []);
        let late = IN.replace("2.000031", "9.1");
        assert_eq!(waits(Wait::Wakeup, &[WAKING, &late]), []);
        assert!(pair(HEADER, Wait::Wakeup).is_err());
        let alert = |time: u64| {
            format!(
                "seq=1 time={time} instance=a tracker=wakeup reason=threshold delay=10 threshold=0 cpu=0 pid=9 \
                 tid=9 comm=\"x\" target=1 waker_tid=7 context=task prev_tid=0\n"
            )
        };
        let marks = Marks { begin: 89, end: 99 };
        let inside = alerts(&alert(99), Wait::Wakeup, marks).unwrap();
        assert_eq!(inside[0].said, said("task"));
        assert_eq!(alerts(&alert(100), Wait::Wakeup, marks).unwrap(), []);
        assert_eq!(
            alerts(&alert(99 - 1), Wait::Wakeup, marks).unwrap().len(),
            0
        );
    }

    #[test]
    fn an_incomplete_trace_is_refused() {
        let lost = trace(&[WAKING]).replace("9/9", "9/10");
        assert!(pair(&lost, Wait::Wakeup).is_err());
        let broken = IN.replace("next_pid", "next_id");
        assert!(pair(&trace(&[&broken]), Wait::Wakeup).is_err());
    }
}
