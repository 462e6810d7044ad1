// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Chains, as the witness builds them from the trace, and as an alert has them.

use std::rc::Rc;

use anyhow::{Context, Result, bail};
use lt_proc::Alert;

/// A step that the trace shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// As in an alert: `waking:9`.
    pub(super) what: String,
    pub(super) cpu: u32,
    /// Time of the step, ns.
    pub(super) time: u64,
    /// The position of its line in the trace, which orders the steps of one CPU exactly.
    pub(super) at: usize,
}

/// A chain from its origin on. Clones share the steps until one of them adds a step.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) steps: Rc<Vec<Step>>,
    pub(super) origin: Rc<Origin>,
    /// How often its threads were preempted.
    pub(super) preempted: u32,
    /// Whether the module may not have this chain. Set on PREEMPT_RT if a wakeup outside hard interrupts continued the
    /// chain to a task in the state `D` that was on no chain. The task may have waited for a lock, and the release of
    /// a lock continues no chain.
    pub(super) may_not_be: bool,
}

/// The origin of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// `irq`, `vector` or `timer`.
    pub(super) kind: &'static str,
    /// The number of the interrupt line; -1 unless `kind` is `irq`.
    pub(super) irq: i64,
    /// The name of the interrupt line's action; empty unless `kind` is `irq`.
    pub(super) action: String,
    /// Start, ns. `None` for a timer that was started before the trace or whose clock is not
    /// `CLOCK_MONOTONIC`.
    pub(super) start: Option<u64>,
}

impl Chain {
    pub(super) fn new(origin: Origin, first: Step) -> Self {
        Self {
            steps: Rc::new(vec![first]),
            origin: Rc::new(origin),
            preempted: 0,
            may_not_be: false,
        }
    }

    pub(super) fn push(&mut self, step: Step) {
        Rc::make_mut(&mut self.steps).push(step);
    }

    /// Appends the worker's own steps since its last wakeup, except steps before the work item was
    /// queued.
    pub(super) fn follow_worker(&mut self, worker: &Chain) {
        let woken = |step: &Step| step.what.starts_with("waking:");
        let from = worker.steps.iter().rposition(woken).unwrap_or(0);
        let queued = self.last_at();
        for step in worker.steps[from..].iter().filter(|step| step.at > queued) {
            self.preempted += u32::from(step.what.starts_with("preempted:"));
            self.push(step.clone());
        }
    }

    /// Whether the chain belongs to a worker that executes its item: since the last `work`, the task was woken only
    /// from sleeps that are on the chain.
    pub(super) fn is_of_work(&self) -> bool {
        let end = self.steps.len();
        let is = |at: usize, kind: &str| self.steps[at].what.starts_with(kind);
        let work = (0..end).rfind(|&at| is(at, "work:"));
        work.is_some_and(|work| {
            (work + 1..end).all(|at| !is(at, "waking:") || is(at - 1, "sleep:"))
        })
    }

    /// Returns the position of the last step's line.
    pub(super) fn last_at(&self) -> usize {
        self.steps.last().map_or(0, |step| step.at)
    }
}

/// A step of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Told {
    Step {
        what: String,
        cpu: u32,
        time: u64,
    },
    /// Number of steps that are left out.
    More(usize),
}

/// Maximum number of preemptions that a step of an alert records. A step with this number may stand for more.
const MOST_TIMES: usize = 1023;

impl Told {
    /// Returns how many steps of the trace this one stands for; the least number if [`Told::is_at_least`]. Twenty
    /// preemptions have nineteen switches between them.
    pub(super) fn steps(&self) -> usize {
        match self {
            Told::More(number) => *number,
            Told::Step { what, .. } => 2 * times(what) - 1,
        }
    }

    /// Whether the step has the maximum number of preemptions, and may stand for more.
    pub(super) fn is_at_least(&self) -> bool {
        matches!(self, Told::Step { what, .. } if times(what) == MOST_TIMES)
    }
}

/// Returns how many preemptions a step stands for; 1 for any other step.
fn times(what: &str) -> usize {
    let times = what.strip_prefix("preempted:").and_then(|task| {
        let (_, times) = task.rsplit_once('*')?;
        times.parse::<usize>().ok()
    });
    times.map_or(1, |times| times.max(1))
}

/// Returns the steps of an alert, each with its time.
pub(super) fn told(alert: &Alert) -> Result<Vec<Told>> {
    let text = alert.fields.text("path").context("no path=")?;
    let mut time = alert.time - alert.delay;
    let mut steps = Vec::new();
    for word in text.split(' ') {
        let expected = || format!("{word:?}: expected KIND:SUBJECT@CPU+NS");
        let (head, ns) = word.rsplit_once('+').with_context(expected)?;
        time += ns.parse::<u64>().with_context(expected)?;
        if let Some(number) = head.strip_prefix("more(") {
            let number = number.strip_suffix(')').with_context(expected)?;
            steps.push(Told::More(number.parse().with_context(expected)?));
            continue;
        }
        let (what, cpu) = head.rsplit_once('@').with_context(expected)?;
        let cpu = cpu.parse().with_context(expected)?;
        let what = plain(what);
        steps.push(Told::Step { what, cpu, time });
    }
    if time != alert.time {
        bail!("the steps end at {time}, the alert at {}", alert.time);
    }
    Ok(steps)
}

/// Returns a step without the name of its task, which the thread id makes redundant, and without a
/// waker that is on no chain. A wait for a lock becomes a sleep, as in the trace.
fn plain(what: &str) -> String {
    if let Some(tid) = what.strip_prefix("lock:") {
        return format!("sleep:{tid}");
    }
    if let (true, Some((waking, _))) = (what.starts_with("waking:"), what.split_once(",by:")) {
        return waking.to_string();
    }
    match (what.find('('), what.rfind(')')) {
        (Some(open), Some(close))
            if what.starts_with("switch:") || what.starts_with("preempted:") =>
        {
            format!("{}{}", &what[..open], &what[close + 1..])
        }
        _ => what.to_string(),
    }
}
