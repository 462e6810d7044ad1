// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rebuilds the chains from interrupts and timers to tasks from raw tracepoints alone.
//!
//! ```text
//!   activity of a CPU       handlers, local interrupt, timer      begin chains
//!   pending work of a CPU   softirqs that were raised             continue chains
//!   what serves a softirq   by CPU and task
//!   tasks                   asleep or awake, with their tips      end chains
//!   work items, calls       that wait for a worker or a CPU       continue chains
//! ```
//!
//! The tip of a task is the chain that led to its current work.
//!
//! When a task is woken while another CPU still shows it running, only later events show whether it
//! was already asleep. If it is then switched out to sleep, and switched in again without another
//! wakeup, it was asleep.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};

use super::chain::{Chain, Origin, Step};
use crate::lines::Line;

/// A chain that has ended at a user-space task.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) tid: u32,
    pub(super) chain: Chain,
    pub(super) prio: String,
}

/// A handler that was called.
#[derive(Debug, Clone)]
struct Handler {
    irq: i64,
    action: String,
    step: Step,
}

/// A timer whose function runs.
#[derive(Debug, Clone)]
struct Timer {
    /// When the timer was due, if known.
    due: Option<u64>,
    function: String,
    expire: Step,
    /// A timer of the timer wheel, which is not the origin of a chain.
    is_wheel: bool,
}

/// A thread that serves softirqs.
#[derive(Debug, Clone)]
struct Thread {
    /// The wakeup, unless the thread has lost the CPU since.
    woken: Option<Step>,
    /// The last switch-in since the wakeup.
    switched: Option<Step>,
}

#[derive(Debug, Default)]
struct Cpu {
    handlers: Vec<Handler>,
    /// The handler that returned last, whose thread may be woken.
    left: Option<Handler>,
    vector: Option<Step>,
    timer: Option<Timer>,
    raised: HashMap<String, Chain>,
    threads: HashMap<u32, Thread>,
    /// The chain to the running function that another CPU has requested, if known.
    call: Option<Chain>,
}

/// A softirq that is being served.
#[derive(Debug, Default)]
struct Serving {
    chain: Option<Chain>,
    timer: Option<Timer>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Is {
    /// Unknown: when the task is woken, it is assumed to have been asleep.
    #[default]
    Unknown,
    /// On this CPU.
    Running(u32),
    /// Waiting for a CPU.
    Queued,
    /// Asleep in a state other than `D`; the work that its chain led to is done.
    Asleep,
    /// Asleep in state `D`, in the middle of its work.
    Waiting,
}

#[derive(Debug, Default)]
struct Task {
    is: Is,
    tip: Option<Chain>,
    /// The address and the function of the work item that the task executes.
    work: Option<(String, String)>,
    /// A wakeup while another CPU shows the task running; the tip that it makes if the task was
    /// asleep; and whether the waker may have released a lock.
    ahead: Option<(Step, Option<Chain>, bool)>,
}

/// The state of the reconstruction. See the head of this file.
pub(super) struct Rebuild {
    kthreads: BTreeSet<u32>,
    /// Whether tasks may wait for locks in the state `D`: on PREEMPT_RT.
    is_rt: bool,
    cpus: HashMap<u32, Cpu>,
    serving: HashMap<(u32, u32), Serving>,
    tasks: HashMap<u32, Task>,
    /// When the timer at an address is due, by its own clock.
    due: HashMap<String, u64>,
    /// The chains to the work items that wait for a worker, and to the function calls that another
    /// CPU has requested, by their addresses.
    works: HashMap<String, Chain>,
    calls: HashMap<String, Chain>,
    pub(super) ended: Vec<Ended>,
}

/// The thread that creates all other kernel threads.
const KTHREADD: u32 = 2;

/// Whether the witness reads an event.
pub(super) fn is_read(event: &str) -> bool {
    const EVENTS: [&str; 22] = [
        "workqueue_queue_work",
        "workqueue_execute_start",
        "workqueue_execute_end",
        "sched_kthread_work_queue_work",
        "sched_kthread_work_execute_start",
        "sched_kthread_work_execute_end",
        "csd_queue_cpu",
        "csd_function_entry",
        "csd_function_exit",
        "timer_expire_entry",
        "timer_expire_exit",
        "irq_handler_entry",
        "irq_handler_exit",
        "hrtimer_start",
        "hrtimer_expire_entry",
        "hrtimer_expire_exit",
        "softirq_raise",
        "softirq_entry",
        "softirq_exit",
        "sched_waking",
        "sched_switch",
        "sched_process_fork",
    ];
    EVENTS.contains(&event) || vector(event).is_some()
}

/// Returns the name of a local interrupt, and whether the event is its entry.
fn vector(event: &str) -> Option<(&str, bool)> {
    const VECTORS: [&str; 6] = [
        "local_timer",
        "x86_platform_ipi",
        "irq_work",
        "call_function",
        "call_function_single",
        "thermal_apic",
    ];
    let entry = event.strip_suffix("_entry").map(|name| (name, true));
    let found = entry.or_else(|| event.strip_suffix("_exit").map(|name| (name, false)));
    found.filter(|(name, _)| VECTORS.contains(name))
}

/// Returns the word after `name`.
pub(super) fn word<'t>(fields: &'t str, name: &str) -> Result<&'t str> {
    let (_, value) = fields
        .rsplit_once(name)
        .with_context(|| format!("no {name}"))?;
    Ok(value.split([' ', ']']).next().unwrap_or(""))
}

/// Whether an address is NULL.
fn is_null(address: &str) -> bool {
    address.contains("null") || address.bytes().all(|digit| digit == b'0')
}

fn number(fields: &str, name: &str) -> Result<u64> {
    let value = word(fields, name)?;
    value
        .parse()
        .with_context(|| format!("{value:?}: expected a number after {name}"))
}

impl Rebuild {
    /// Starts a reconstruction. `kthreads`: the kernel threads that existed before the trace.
    /// `is_rt`: whether the kernel has PREEMPT_RT.
    pub(super) fn new(kthreads: BTreeSet<u32>, is_rt: bool) -> Self {
        Self {
            kthreads,
            is_rt,
            cpus: HashMap::new(),
            serving: HashMap::new(),
            tasks: HashMap::new(),
            due: HashMap::new(),
            works: HashMap::new(),
            calls: HashMap::new(),
            ended: Vec::new(),
        }
    }

    fn cpu(&mut self, line: &Line<'_>) -> &mut Cpu {
        self.cpus.entry(line.cpu).or_default()
    }

    /// Processes a line, given its number.
    pub(super) fn see(&mut self, at: usize, line: &Line<'_>) -> Result<()> {
        let (cpu, time) = (line.cpu, line.time);
        let step = |what: String| Step {
            what,
            cpu,
            time,
            at,
        };
        let by = self.tasks.entry(line.current).or_default();
        if by.is == Is::Unknown {
            by.is = Is::Running(cpu);
        }
        if let Some((name, begins)) = vector(line.event) {
            let now = self.cpu(line);
            if begins {
                now.forget();
            }
            now.vector = begins.then(|| step(format!("vector:{name}")));
            return Ok(());
        }
        match line.event {
            "irq_handler_entry" => {
                let (_, action) = line.fields.split_once("name=").context("no name=")?;
                let irq = i64::try_from(number(line.fields, "irq=")?)?;
                let handler = Handler {
                    irq,
                    action: action.to_string(),
                    step: step(format!("irq:{irq}")),
                };
                self.cpu(line).handlers.push(handler);
            }
            "irq_handler_exit" => {
                let now = self.cpu(line);
                now.left = now.handlers.pop();
            }
            "hrtimer_start" => {
                let timer = word(line.fields, "hrtimer=")?.to_string();
                let due = number(line.fields, "softexpires=")?;
                self.due.insert(timer, due);
            }
            "hrtimer_expire_entry" => self.expire(line, &step)?,
            "workqueue_queue_work" | "sched_kthread_work_queue_work" => {
                let function = word(line.fields, "function=")?;
                let work = word(line.fields, "work struct=")?.to_string();
                let task = self.task(line.current);
                // As in the module, the address alone decides if the worker's chain lacks the function.
                let is_known = task.tip.as_ref().is_some_and(Chain::is_of_work);
                let may_be = |called: &str| called == function || !is_known;
                let by = task.work.as_ref();
                let is_by = by.is_some_and(|(by, called)| *by == work && may_be(called));
                if line.context == "task" && is_by {
                    // The item queues itself again. The origin of its next run is unknown.
                    self.works.remove(&work);
                } else {
                    self.hand_on(line, work, step(format!("queue:{function}")), |it| {
                        &mut it.works
                    });
                }
            }
            "workqueue_execute_start" | "sched_kthread_work_execute_start" => {
                self.start_work(line, &step)?
            }
            "workqueue_execute_end" | "sched_kthread_work_execute_end" => {
                if line.context == "task" {
                    let task = self.task(line.current);
                    (task.tip, task.work) = (None, None);
                }
            }
            "csd_queue_cpu" => {
                let function = word(line.fields, "func=")?;
                // This call is a wakeup, which was seen where it was requested.
                if function != "sched_ttwu_pending" {
                    let call = word(line.fields, "csd=")?.to_string();
                    self.hand_on(line, call, step(format!("call:{function}")), |it| {
                        &mut it.calls
                    });
                }
            }
            "csd_function_entry" => {
                let function = word(line.fields, "func=")?.trim_end_matches(',');
                if let Some(mut chain) = self.calls.remove(word(line.fields, "csd=")?) {
                    let now = self.cpu(line);
                    if let Some(vector) = &now.vector
                        && vector.at > chain.last_at()
                    {
                        chain.push(vector.clone());
                    }
                    chain.push(step(format!("called:{function}")));
                    now.call = Some(chain);
                }
            }
            // A call that the CPU makes on itself runs at once, nested in this call, and has no address.
            "csd_function_exit" => {
                if !is_null(word(line.fields, "csd=")?) {
                    self.cpu(line).call = None;
                }
            }
            "timer_expire_entry" => {
                let function = word(line.fields, "function=")?;
                let timer = Timer {
                    due: None,
                    function: function.to_string(),
                    expire: step(format!("expire:{function}")),
                    is_wheel: true,
                };
                if let Some(serving) = self.serving.get_mut(&(cpu, line.current)) {
                    serving.timer = Some(timer);
                }
            }
            "timer_expire_exit" => {
                if let Some(serving) = self.serving.get_mut(&(cpu, line.current)) {
                    serving.timer = None;
                }
            }
            "hrtimer_expire_exit" => {
                if line.context == "hardirq" {
                    self.cpu(line).timer = None;
                } else if let Some(serving) = self.serving.get_mut(&(cpu, line.current)) {
                    serving.timer = None;
                }
            }
            "softirq_raise" => {
                let name = word(line.fields, "action=")?.to_string();
                let chain = self.chain(line, None);
                let own = format!("softirq:{name}");
                if let Some(mut chain) = chain
                    && chain.steps.last().is_none_or(|last| last.what != own)
                    && !self.cpu(line).raised.contains_key(&name)
                {
                    chain.push(step(format!("raise:{name}")));
                    self.cpu(line).raised.insert(name, chain);
                }
            }
            "softirq_entry" => {
                let name = word(line.fields, "action=")?;
                let now = self.cpu(line);
                now.forget();
                let chain = now.raised.remove(name).map(|mut chain| {
                    now.follow_thread(&mut chain, line.current);
                    chain.push(step(format!("softirq:{name}")));
                    chain
                });
                let timer = None;
                self.serving
                    .insert((cpu, line.current), Serving { chain, timer });
            }
            "softirq_exit" => {
                self.serving.remove(&(cpu, line.current));
            }
            "sched_waking" => self.waking(line, &step)?,
            "sched_switch" => self.switch(line, &step)?,
            "sched_process_fork" => {
                let tid = u32::try_from(number(line.fields, " child_pid=")?)?;
                // A thread id may be reused.
                self.tasks.remove(&tid);
                if line.current == KTHREADD {
                    self.kthreads.insert(tid);
                } else {
                    self.kthreads.remove(&tid);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expire(&mut self, line: &Line<'_>, step: &dyn Fn(String) -> Step) -> Result<()> {
        let function = word(line.fields, "function=")?;
        // The time by the timer's own clock, which is CLOCK_MONOTONIC if it agrees with the line's
        // time.
        let now = number(line.fields, "now=")?;
        let is_monotonic = now.abs_diff(line.time) < 1_000_000_000;
        let due = self.due.remove(word(line.fields, "hrtimer=")?);
        let timer = Timer {
            due: due.filter(|_| is_monotonic).map(|due| due.min(line.time)),
            function: function.to_string(),
            expire: step(format!("expire:{function}")),
            is_wheel: false,
        };
        if line.context == "hardirq" {
            self.cpu(line).timer = Some(timer);
        } else if let Some(serving) = self.serving.get_mut(&(line.cpu, line.current)) {
            serving.timer = Some(timer);
        }
        Ok(())
    }

    /// Adds `step` to the current chain, and stores the chain in `map` under the address of the deferred work.
    fn hand_on(
        &mut self,
        line: &Line<'_>,
        address: String,
        step: Step,
        map: fn(&mut Self) -> &mut HashMap<String, Chain>,
    ) {
        match self.chain(line, None) {
            Some(mut chain) => {
                chain.push(step);
                map(self).insert(address, chain);
            }
            // A chain that is stored under this address led to work that was cancelled.
            None => {
                map(self).remove(&address);
            }
        }
    }

    /// Handles the start of a work item in a worker: the worker's own chain ends, and the work item's chain continues.
    fn start_work(&mut self, line: &Line<'_>, step: &dyn Fn(String) -> Step) -> Result<()> {
        let work = word(line.fields, "work struct ")?.trim_end_matches(':');
        let function = word(line.fields, "function ")?;
        let queued = format!("queue:{function}");
        let chain = self.works.remove(work);
        let chain =
            chain.filter(|chain| chain.steps.last().is_some_and(|last| last.what == queued));
        // A work item that runs in a softirq is on the chain of that softirq.
        if line.context == "task" {
            let task = self.task(line.current);
            task.work = Some((work.to_string(), function.to_string()));
            let worker = task.tip.take();
            task.tip = chain.map(|mut chain| {
                if let Some(worker) = worker {
                    chain.follow_worker(&worker);
                }
                chain.push(step(format!("work:{function}")));
                chain
            });
        }
        Ok(())
    }

    /// Returns the chain to the current activity. `thread` is the interrupt line whose thread is
    /// woken, if any.
    fn chain(&mut self, line: &Line<'_>, thread: Option<i64>) -> Option<Chain> {
        if let ("hardirq" | "task", Some(chain)) = (line.context, &self.cpu(line).call) {
            return Some(chain.clone());
        }
        match line.context {
            "hardirq" => self.cpu(line).chain(thread),
            "softirq" => {
                let serving = self.serving.get(&(line.cpu, line.current))?;
                with_timer(serving.chain.clone(), serving.timer.as_ref())
            }
            "task" if self.kthreads.contains(&line.current) => {
                let task = self.tasks.get(&line.current)?;
                task.tip
                    .clone()
                    .filter(|_| matches!(task.is, Is::Running(_)))
            }
            _ => None,
        }
    }

    fn waking(&mut self, line: &Line<'_>, step: &dyn Fn(String) -> Step) -> Result<()> {
        let tid = u32::try_from(number(line.fields, " pid=")?)?;
        if tid == line.current {
            return Ok(());
        }
        let (comm, _) = line.fields.rsplit_once(" pid=").context("no pid=")?;
        let comm = comm.strip_prefix("comm=").context("no comm=")?;
        let woken = step(format!("waking:{tid}"));
        let is = self.tasks.entry(tid).or_default().is;
        let of_softirqs = comm
            .strip_prefix("ksoftirqd/")
            .or_else(|| comm.strip_prefix("ktimers/"));
        if let Some(cpu) = of_softirqs {
            if cpu.parse() == Ok(line.cpu) && !matches!(is, Is::Running(_) | Is::Queued) {
                // In the state `D`, the thread waits for a lock, and has run since its wakeup.
                if is != Is::Waiting {
                    let thread = Thread {
                        woken: Some(woken),
                        switched: None,
                    };
                    self.cpu(line).threads.insert(tid, thread);
                }
                self.task(tid).is = Is::Queued;
            }
            return Ok(());
        }
        if is == Is::Queued {
            return Ok(());
        }
        if is == Is::Waiting {
            let task = self.task(tid);
            if let Some(tip) = &mut task.tip {
                tip.push(woken);
                task.is = Is::Queued;
                return Ok(());
            }
        }
        let is_kthread = self.kthreads.contains(&tid);
        let thread = comm
            .strip_prefix("irq/")
            .and_then(|rest| rest.split('-').next()?.parse().ok());
        let chain = self.chain(line, thread.filter(|_| is_kthread));
        // No interrupt releases a lock for which a task sleeps.
        let may_release = self.is_rt && line.context != "hardirq";
        let chain = chain.map(|mut chain| {
            chain.push(woken.clone());
            chain.may_not_be |= is == Is::Waiting && may_release;
            chain
        });
        let task = self.task(tid);
        if let Is::Running(_) = is {
            task.ahead = Some((woken, chain, may_release));
        } else {
            task.is = Is::Queued;
            task.ahead = None;
            task.tip = chain;
        }
        Ok(())
    }

    fn task(&mut self, tid: u32) -> &mut Task {
        self.tasks.entry(tid).or_default()
    }

    fn switch(&mut self, line: &Line<'_>, step: &dyn Fn(String) -> Step) -> Result<()> {
        let (prev, next) = line
            .fields
            .rsplit_once(" ==> next_comm=")
            .context("no ==> next_comm=")?;
        let state = word(prev, " prev_state=")?;
        let prev = u32::try_from(number(prev, " prev_pid=")?)?;
        let tid = u32::try_from(number(next, " next_pid=")?)?;
        let prio = word(next, " next_prio=")?;
        self.cpu(line).forget();
        if prev != 0 {
            let task = self.task(prev);
            match state.chars().next() {
                Some('R') => {
                    task.is = Is::Queued;
                    task.ahead = None;
                    if let Some(tip) = &mut task.tip {
                        tip.push(step(format!("preempted:{tid}/{prio}")));
                        tip.preempted += 1;
                    }
                }
                Some('D') => {
                    task.is = Is::Waiting;
                    if let Some(tip) = &mut task.tip {
                        tip.push(step(format!("sleep:{prev}")));
                    }
                }
                _ => {
                    task.is = Is::Asleep;
                    task.tip = None;
                }
            }
        }
        if tid == 0 {
            return Ok(());
        }
        let switched = step(format!("switch:{tid}/{prio}"));
        if let Some(thread) = self.cpu(line).threads.get_mut(&tid)
            && thread.switched.replace(switched.clone()).is_some()
        {
            thread.woken = None;
        }
        let is_kthread = self.kthreads.contains(&tid);
        let task = self.task(tid);
        let (is, ahead) = (task.is, task.ahead.take());
        if let (Is::Asleep | Is::Waiting, Some((woken, chain, may_release))) = (is, ahead) {
            match &mut task.tip {
                // The task slept in the middle of its work.
                Some(tip) => tip.push(woken),
                None => {
                    task.tip = chain.map(|mut chain| {
                        chain.may_not_be |= is == Is::Waiting && may_release;
                        chain
                    });
                }
            }
        }
        task.is = Is::Running(line.cpu);
        if let Some(tip) = &mut task.tip {
            tip.push(switched);
            if !is_kthread && let Some(chain) = task.tip.take() {
                let prio = prio.to_string();
                self.ended.push(Ended { tid, chain, prio });
            }
        }
        Ok(())
    }
}

impl Cpu {
    /// Drops the handlers: all of them have ended.
    fn forget(&mut self) {
        self.handlers.clear();
        self.left = None;
    }

    /// Returns the chain to this hard interrupt, or to the thread of an interrupt line, which is
    /// woken after the handler.
    fn chain(&mut self, thread: Option<i64>) -> Option<Chain> {
        let left = self.left.take_if(|left| Some(left.irq) == thread);
        let handler = left.as_ref().or(self.handlers.last());
        let base = if let Some(handler) = handler {
            let origin = Origin {
                kind: "irq",
                irq: handler.irq,
                action: handler.action.clone(),
                start: Some(handler.step.time),
            };
            Some(Chain::new(origin, handler.step.clone()))
        } else {
            let vector = self.vector.clone();
            vector.map(|step| Chain::new(Origin::of("vector", Some(step.time)), step))
        };
        with_timer(base, self.timer.as_ref())
    }

    /// Appends the wakeup and the last switch-in of `tid`, which serves a softirq, if later than the chain's last
    /// step.
    fn follow_thread(&self, chain: &mut Chain, tid: u32) {
        let Some(thread) = self.threads.get(&tid) else {
            return;
        };
        for step in thread.woken.iter().chain(&thread.switched) {
            if step.at > chain.last_at() {
                chain.push(step.clone());
            }
        }
    }
}

impl Origin {
    fn of(kind: &'static str, start: Option<u64>) -> Self {
        Self {
            kind,
            irq: -1,
            action: String::new(),
            start,
        }
    }
}

/// Returns the chain to the function of a timer. The chain of an hrtimer starts when the timer was due; a wheel timer
/// only adds its expiry to `base`. Without a timer, returns `base`.
fn with_timer(base: Option<Chain>, timer: Option<&Timer>) -> Option<Chain> {
    let Some(timer) = timer else {
        return base;
    };
    if timer.is_wheel {
        return base.map(|mut base| {
            base.push(timer.expire.clone());
            base
        });
    }
    let due = timer.due.unwrap_or(0);
    let first = Step {
        what: format!("timer:{}", timer.function),
        time: due,
        at: 0,
        ..timer.expire
    };
    let mut chain = Chain::new(Origin::of("timer", timer.due), first);
    if let Some(base) = base {
        for step in base.steps.iter() {
            chain.push(step.clone());
        }
        chain.preempted = base.preempted;
        chain.may_not_be = base.may_not_be;
    }
    chain.push(timer.expire.clone());
    Some(chain)
}
