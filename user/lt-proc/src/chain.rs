// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The wake chain from an interrupt or a timer to a task: the field `path` of an alert of `tree`.
//!
//! ```text
//! path="irq:29@1+0 raise:HI@1+3001176 softirq:HI@1+3610 more(2)+966 switch:213(lt_target)/120@1+11738"
//!       KIND:SUBJECT@CPU+ns since the step before
//! ```
//!
//! With `interference=1`, the time of a `switch` is followed by the activity of the CPU while the task
//! waited for it: `{irq:9000,softirq:0,tasks:2738,idle:0}`. For the longest of these waits, the users of
//! the CPU follow:
//! `{irq:9000,softirq:0,tasks:2738,idle:0;irq/27(eth0)=8800;task/214(hog)>=2400}`.
//!
//! Time passes between two steps: 3 ms in the handler of interrupt 29, before it raised the softirq. A step
//! therefore also has the time until the next step. Steps that were left out share one time, from the first
//! of them to the step after `more`.
//!
//! A `waking` has only a thread id. The thread's name is taken from a `switch` or `preempted` that has it,
//! or from the alert.

use std::collections::HashMap;

use crate::alert::{Alert, PATH};
use crate::error::ParseError;
use crate::pending::Pending;

/// A step of a wake chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainStep {
    /// `irq`, `raise`, `waking`, ...; `more` for steps that were left out.
    pub kind: String,
    /// The part after the colon; for `more`, the number of steps left out.
    pub subject: String,
    /// The CPU; `None` for `more`. For `waking`, the CPU of the waker.
    pub cpu: Option<u32>,
    /// The CPU that the task waits for until the next step, if it waits for one.
    pub waits_for: Option<u32>,
    /// For `lock`, `sleep` and `reads`: the task that ended the wait, as `NAME/TID`, if known. `None` if
    /// an interrupt ended it.
    pub ended_by: Option<String>,
    /// Name of the task in `subject`, or empty.
    pub name: String,
    /// Time of the step, ns since the origin.
    pub at: u64,
    /// Time until the next step, ns. For the last step, 0; for the last step so far of an operation in
    /// flight, the time until now.
    pub took: u64,
    /// What the CPU did since the previous step, if the alert records it.
    pub parts: Option<WaitParts>,
    /// Up to three tasks, interrupts or softirqs that had the CPU in that time, the longest first, if the
    /// alert names them.
    pub rivals: Vec<Rival>,
}

/// An interrupt, a softirq or a task that had a CPU while a task waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// `irq`, `vector`, `softirq`, `task`, `nmi`.
    pub kind: String,
    /// The number of an `irq`, the thread id of a `task`, the name of a `vector` or `softirq`;
    /// empty for `nmi`.
    pub id: String,
    /// The name of the action of an `irq`, at most 15 bytes, or the name of a `task`; may be empty.
    pub name: String,
    /// How long it had the CPU, ns.
    pub time: u64,
    /// Whether the time is a lower bound, since the user of the CPU is not known for the whole wait.
    pub at_least: bool,
}

impl Rival {
    /// Parses `KIND/ID(NAME)=NS` or `KIND/ID(NAME)>=NS`.
    fn parse(text: &str) -> Option<Self> {
        let (what, time) = text.rsplit_once('=')?;
        let (what, at_least) = match what.strip_suffix('>') {
            Some(what) => (what, true),
            None => (what, false),
        };
        let (what, name) = match what.split_once('(') {
            Some((what, name)) => (what, name.strip_suffix(')')?),
            None => (what, ""),
        };
        let (kind, id) = what.split_once('/').unwrap_or((what, ""));
        Some(Self {
            kind: kind.to_string(),
            id: id.to_string(),
            name: name.to_string(),
            time: time.parse().ok()?,
            at_least,
        })
    }

    /// Parses `FIRST;SECOND;...`.
    fn parse_all(mut text: &str) -> Option<Vec<Self>> {
        let mut rivals = Vec::new();
        loop {
            // A name may contain a semicolon, but no closing parenthesis: the module writes that as `\x29`.
            let name = text.find(')').filter(|_| {
                let end = text.find(';').unwrap_or(text.len());
                text.find('(').is_some_and(|begin| begin < end)
            });
            let from = name.unwrap_or(0);
            let end = text[from..].find(';').map(|end| from + end);
            rivals.push(Self::parse(&text[..end.unwrap_or(text.len())])?);
            match end {
                Some(end) => text = &text[end + 1..],
                None => return Some(rivals),
            }
        }
    }

    /// Returns a phrase that names this user of the CPU, for the middle of a sentence.
    #[must_use]
    pub fn what(&self) -> String {
        let Self { id, name, .. } = self;
        match self.kind.as_str() {
            "irq" if name.is_empty() => format!("interrupt {id}"),
            "irq" => format!("interrupt {id} ({name})"),
            "vector" => format!("interrupt {id}"),
            "softirq" => format!("softirq {id}"),
            "task" if name.is_empty() => id.clone(),
            "task" => format!("{name}/{id}"),
            "nmi" => "NMIs".to_string(),
            other => format!("{other} {id}"),
        }
    }
}

/// The use of a CPU while a task waited for it, ns. The sum is the length of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitParts {
    /// Interrupts, their threads, and NMIs.
    pub irq: u64,
    /// Softirqs, including those in threads.
    pub softirq: u64,
    /// Other tasks, and all work that has no tracepoint.
    pub tasks: u64,
    /// The idle task: the CPU left an idle state, or a limit kept the task from running.
    pub idle: u64,
}

impl WaitParts {
    /// Parses `irq:NS,softirq:NS,tasks:NS,idle:NS`.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(',');
        let mut part = |name: &str| -> Option<u64> {
            let time = words.next()?.strip_prefix(name)?.strip_prefix(':')?;
            time.parse().ok()
        };
        let parts = Self {
            irq: part("irq")?,
            softirq: part("softirq")?,
            tasks: part("tasks")?,
            idle: part("idle")?,
        };
        words.next().is_none().then_some(parts)
    }

    /// Returns the length of the wait.
    #[must_use]
    pub fn wait(&self) -> u64 {
        let Self {
            irq,
            softirq,
            tasks,
            idle,
        } = *self;
        irq.saturating_add(softirq)
            .saturating_add(tasks)
            .saturating_add(idle)
    }
}

/// Returns the steps of an alert, the origin first; no steps for an alert without the field `path`.
///
/// # Errors
/// Names the step that is malformed.
pub fn chain(alert: &Alert) -> Result<Vec<ChainStep>, ParseError> {
    let mut steps = parse(&alert.fields.text(PATH).unwrap_or_default())?;
    name(&mut steps, &alert.tid.to_string(), &alert.comm.text());
    Ok(steps)
}

/// Returns the steps so far of an operation in flight; the last one lasts until now.
///
/// # Errors
/// As [`chain`].
pub fn chain_so_far(pending: &Pending) -> Result<Vec<ChainStep>, ParseError> {
    let mut steps = parse(&pending.fields.text(PATH).unwrap_or_default())?;
    if let Some(last) = steps.last_mut() {
        last.took = pending.age().saturating_sub(last.at);
    }
    let text = |key| pending.fields.text(key).unwrap_or_default();
    name(&mut steps, &text("tid"), &text("comm"));
    Ok(steps)
}

/// Returns a sentence about the time before the first step if that time is unknown, else `None`.
///
/// The time is unknown if the first step is an interrupt that another interrupt or a task requested,
/// perhaps on another CPU.
#[must_use]
pub fn before(steps: &[ChainStep]) -> Option<String> {
    let first = steps.first().filter(|first| first.is_requested())?;
    Some(format!(
        "the delay is counted from interrupt {}, whose request is not recorded",
        first.subject
    ))
}

/// Fills in the name of each task that has only a thread id, if another step has the name, or if the task
/// is the thread `tid`, whose name is `comm`.
fn name(steps: &mut [ChainStep], tid: &str, comm: &str) {
    let mut names: HashMap<String, String> = HashMap::new();
    for step in steps.iter() {
        if let ("switch" | "preempted", (tid, Some(name))) =
            (step.kind.as_str(), who(&step.subject))
        {
            names.insert(tid.to_string(), name.to_string());
        }
    }
    if !comm.is_empty() {
        names
            .entry(tid.to_string())
            .or_insert_with(|| comm.to_string());
    }
    for step in steps
        .iter_mut()
        .filter(|step| TASKS.contains(&step.kind.as_str()))
    {
        let (tid, told) = who(&step.subject);
        if let Some(name) = told.or_else(|| names.get(tid).map(String::as_str)) {
            step.name = name.to_string();
        }
    }
}

/// Kinds whose subject is a task.
const TASKS: [&str; 15] = [
    "waking",
    "switch",
    "preempted",
    "lock",
    "sleep",
    "reads",
    "user",
    "blocked",
    "begin",
    "done",
    "woken",
    "running",
    "waiting",
    "working",
    "throttled",
];

fn parse(chain: &str) -> Result<Vec<ChainStep>, ParseError> {
    let mut steps: Vec<ChainStep> = Vec::new();
    let mut at = 0u64;
    let waits =
        |step: &ChainStep| matches!(step.kind.as_str(), "waking" | "preempted" | "throttled");
    for word in chain.split(' ').filter(|word| !word.is_empty()) {
        let bad = || ParseError::new(word, "KIND:SUBJECT@CPU+NS or more(COUNT)+NS");
        let (what, since) = word.rsplit_once('+').ok_or_else(bad)?;
        let (since, braces) = match since.split_once('{') {
            Some((since, rest)) => (since, Some(rest.strip_suffix('}').ok_or_else(bad)?)),
            None => (since, None),
        };
        let (parts, rivals) = match braces.map(|text| text.split_once(';').unwrap_or((text, ""))) {
            Some((parts, rivals)) => (
                Some(WaitParts::parse(parts).ok_or_else(bad)?),
                match rivals {
                    "" => Vec::new(),
                    rivals => Rival::parse_all(rivals).ok_or_else(bad)?,
                },
            ),
            None => (None, Vec::new()),
        };
        let since: u64 = since.parse().map_err(|_| bad())?;
        at = at.saturating_add(since);
        if let Some(last) = steps.last_mut() {
            last.took = since;
        }
        let more = what.strip_prefix("more(").and_then(|m| m.strip_suffix(')'));
        let (kind, subject, cpu) = match more {
            Some(count) => ("more", count, None),
            None => {
                let (kind, rest) = what.split_once(':').ok_or_else(bad)?;
                let (subject, cpu) = rest.rsplit_once('@').ok_or_else(bad)?;
                (kind, subject, Some(cpu.parse().map_err(|_| bad())?))
            }
        };
        if let Some(last) = steps
            .last_mut()
            .filter(|last| kind == "switch" && waits(last))
        {
            last.waits_for = cpu;
        }
        if let (Some(last), Some((_, by))) = (steps.last_mut(), subject.split_once(",by:"))
            && kind == "waking"
        {
            last.ended_by = Some(task(by));
        }
        steps.push(ChainStep {
            kind: kind.to_string(),
            subject: subject.to_string(),
            cpu,
            waits_for: None,
            ended_by: None,
            name: String::new(),
            at,
            took: 0,
            parts,
            rivals,
        });
    }
    Ok(steps)
}

impl ChainStep {
    /// Describes the step in a clause.
    #[must_use]
    pub fn what(&self, action: &str) -> String {
        let subject = &self.subject;
        let named = if action.is_empty() {
            String::new()
        } else {
            format!(" ({action})")
        };
        match self.kind.as_str() {
            "irq" => format!("handler of interrupt {subject}{named} is called"),
            "vector" => format!("interrupt {subject}"),
            "timer" => format!("timer is due: {subject}"),
            "expire" => format!("the function of the timer is called: {subject}"),
            "wheel" => format!("timer of the timer wheel is due: {subject}"),
            "queue" => format!("work {subject} is queued"),
            "work" => format!("a worker begins work {subject}"),
            "call" => format!("another CPU is asked to call {subject}"),
            "called" => format!("{subject} is called there"),
            "raise" => format!("softirq {subject} is raised"),
            "softirq" => format!("softirq {subject} is called"),
            "waking" => format!("{} is woken{}", self.task(), self.by()),
            "switch" => format!("{} runs", self.task()),
            "preempted" if self.is_idle() => "switched out, and its CPU goes idle".to_string(),
            "preempted" => format!("preempted by {}{}", self.task(), self.times()),
            "throttled" => format!("{} is throttled", self.task()),
            "lock" => format!("{} waits for a spinlock", self.task()),
            "sleep" => format!("{} sleeps in state D", self.task()),
            "reads" => format!("{} sleeps in state D, after reads of its own", self.task()),
            "user" => format!("{} returns to user space", self.task()),
            "blocked" => format!("{} waits again", self.task()),
            "begin" => format!("{} begins work", self.task()),
            "done" => format!("{} has done the work", self.task()),
            "woken" => format!("{} still waits for a CPU", self.task()),
            "running" => format!("{} still runs", self.task()),
            "waiting" => format!("{} still waits", self.task()),
            "queued" => format!("{subject} still waits to be called"),
            "working" => format!("the work of {} is not done", self.task()),
            "more" => format!("({subject} steps left out of the wake chain)"),
            other => format!("{other} {subject}"),
        }
    }

    /// Whether the step is an interrupt that another interrupt or a task requested, perhaps on
    /// another CPU.
    fn is_requested(&self) -> bool {
        const REQUESTED: [&str; 3] = ["irq_work", "call_function", "call_function_single"];
        self.kind == "vector" && REQUESTED.contains(&self.subject.as_str())
    }

    /// Returns the task of the step as `NAME/TID`, or as `TID` if its name is not known.
    #[must_use]
    pub fn task(&self) -> String {
        let (tid, name) = who(&self.subject);
        match name.unwrap_or(&self.name) {
            "" => tid.to_string(),
            name => format!("{name}/{tid}"),
        }
    }

    /// Whether the subject of the step is the idle task.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        who(&self.subject).0 == "0"
    }

    /// Whether a limit kept the task from a CPU until the next step: the task was throttled, or its
    /// CPU was idle.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.kind == "throttled" || (self.kind == "preempted" && self.is_idle())
    }

    /// Returns the waker, for the middle of a sentence.
    fn by(&self) -> String {
        match self.subject.split_once(",by:") {
            Some((_, by)) => format!(" by {}", task(by)),
            None => String::new(),
        }
    }

    /// Returns how often the task was preempted, for the middle of a sentence.
    fn times(&self) -> String {
        match times(&self.subject) {
            None => String::new(),
            Some(times) => format!(" and others, {times}"),
        }
    }

    /// Returns what happened until the next step: `in the handler of interrupt 29 (lt_cause), CPU
    /// 1`.
    #[must_use]
    pub fn meanwhile(&self, action: &str) -> String {
        let subject = &self.subject;
        let named = if action.is_empty() {
            String::new()
        } else {
            format!(" ({action})")
        };
        let text = match self.kind.as_str() {
            "irq" => format!("in the handler of interrupt {subject}{named}"),
            "vector" => format!("in the interrupt {subject}"),
            "timer" => "before the timer's interrupt was taken".to_string(),
            "expire" => format!("in the timer's function {subject}"),
            "wheel" => "before the timer wheel's interrupt was taken".to_string(),
            "queue" => format!("while work {subject} waited for a worker"),
            "work" => format!("in work {subject}"),
            "call" => format!("before {subject} was called on another CPU"),
            "called" => format!("in {subject}, for another CPU"),
            "raise" => format!("before the softirq {subject} was called"),
            "softirq" => format!("in the softirq {subject}"),
            "waking" => {
                let by = match self.by() {
                    by if by.is_empty() => by,
                    by => format!(", woken{by},"),
                };
                return match self.waits_for {
                    Some(cpu) => format!("while {}{by} waited for CPU {cpu}", self.task()),
                    None => format!("while {}{by} waited for a CPU", self.task()),
                };
            }
            "switch" => format!("while {} ran", self.task()),
            // Only a limit keeps a CPU idle while it has a task to run.
            "preempted" if self.is_idle() => {
                "while the task was runnable and its CPU was idle, perhaps because of a quota"
                    .to_string()
            }
            "preempted" => match times(subject) {
                // Other tasks may have run before the task continued.
                None => format!(
                    "while the task waited for a CPU, after {} had preempted it",
                    self.task()
                ),
                Some(times) => format!(
                    "while the task waited for a CPU {times}, the longest time after {} had preempted it",
                    self.task()
                ),
            },
            "throttled" => format!(
                "while {} was throttled, its CPU quota or SCHED_DEADLINE runtime used up",
                self.task()
            ),
            "lock" => match &self.ended_by {
                Some(owner) => format!(
                    "while {} waited for a spinlock, until {owner} woke it",
                    self.task()
                ),
                None => format!("while {} waited for a spinlock", self.task()),
            },
            // A task that waits for a request of its own is in state `D`, too.
            "sleep" => match &self.ended_by {
                Some(waker) => format!(
                    "while {} slept in state D, until {waker} woke it",
                    self.task()
                ),
                None => format!(
                    "while {} slept in state D, in the middle of its work or for a request of its own",
                    self.task()
                ),
            },
            "reads" => format!(
                "while {} slept in state D, after it had requested reads of its own, which may be unrelated to \
                 the start of this wake chain",
                self.task()
            ),
            "begin" => format!("in the work that {} has begun", self.task()),
            "more" if subject == "1" => "in 1 step that was left out of the wake chain".to_string(),
            "more" => format!(
                "in {subject} steps that were left out of the wake chain, without separate times"
            ),
            other => format!("after {other} {subject}"),
        };
        match self.cpu {
            Some(cpu) => format!("{text}, CPU {cpu}"),
            None => text,
        }
    }
}

/// Returns the thread id of a subject, and the name, if it has one: `213` and `sshd` for
/// `213(sshd)/120`.
fn who(subject: &str) -> (&str, Option<&str>) {
    let end = subject.bytes().position(|byte| !byte.is_ascii_digit());
    let (tid, rest) = subject.split_at(end.unwrap_or(subject.len()));
    let name = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    // No name contains a closing parenthesis: the module writes it as `\x29`.
    (tid, name.map(|(name, _)| name))
}

/// Maximum number of preemptions that the kernel records in a step. A step with this number may stand for more.
const MOST_TIMES: u64 = 1023;

/// Returns how many preemptions the step stands for, unless it is one: `20 times` for `17(ktimers/1)/98*20`.
fn times(subject: &str) -> Option<String> {
    let (_, times) = subject.rsplit_once('*')?;
    match times.parse::<u64>().ok()? {
        0 | 1 => None,
        MOST_TIMES => Some(format!("at least {MOST_TIMES} times")),
        times => Some(format!("{times} times")),
    }
}

/// Formats `213(sshd)/120` as `sshd/213`, and `213/120` as `213`.
fn task(subject: &str) -> String {
    match who(subject) {
        (tid, Some(name)) => format!("{name}/{tid}"),
        (tid, None) => tid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHAIN: &str = "irq:29@1+0 raise:HI@1+3001176 softirq:HI@1+3610 more(2)+966 switch:213(lt_target)/120@0+11738";

    #[test]
    fn a_chain_is_read_step_by_step() {
        let steps = parse(CHAIN).unwrap();
        let told: Vec<_> = steps
            .iter()
            .map(|s| (s.what("lt_cause"), s.cpu, s.at, s.took))
            .collect();
        let told: Vec<_> = told
            .iter()
            .map(|(what, cpu, at, took)| (what.as_str(), *cpu, *at, *took))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "handler of interrupt 29 (lt_cause) is called",
                    Some(1),
                    0,
                    3_001_176
                ),
                ("softirq HI is raised", Some(1), 3_001_176, 3610),
                ("softirq HI is called", Some(1), 3_004_786, 966),
                (
                    "(2 steps left out of the wake chain)",
                    None,
                    3_005_752,
                    11_738
                ),
                ("lt_target/213 runs", Some(0), 3_017_490, 0),
            ]
        );
        assert_eq!(
            steps[0].meanwhile("lt_cause"),
            "in the handler of interrupt 29 (lt_cause), CPU 1"
        );
        assert_eq!(
            steps[3].meanwhile("lt_cause"),
            "in 2 steps that were left out of the wake chain, without separate times"
        );
        assert_eq!(steps[2].meanwhile(""), "in the softirq HI, CPU 1");
    }

    /// The chain does not include a handler that queues an irq_work and then spins.
    #[test]
    fn a_chain_that_starts_with_a_requested_interrupt_lacks_the_request() {
        let told = |chain: &str| before(&parse(chain).unwrap());
        assert_eq!(
            told("vector:irq_work@1+0 waking:7@1+900 switch:7(a)/120@1+40100").unwrap(),
            "the delay is counted from interrupt irq_work, whose request is not recorded"
        );
        assert!(told("vector:call_function_single@1+0 waking:7@1+9").is_some());
        // In these chains, the hardware raised the interrupt, or the request is a step.
        assert_eq!(told("vector:local_timer@1+0 waking:7@1+9"), None);
        assert_eq!(
            told("irq:9@0+0 call:f@0+5 vector:call_function_single@1+4 called:f@1+1"),
            None
        );
        assert_eq!(told(""), None);
    }

    #[test]
    fn a_wait_for_a_cpu_names_that_cpu_and_not_the_wakers() {
        let steps = parse("timer:f@0+0 waking:278@0+900 switch:278(bench)/98@1+604000").unwrap();
        assert_eq!((steps[1].cpu, steps[1].waits_for), (Some(0), Some(1)));
        assert_eq!(steps[1].meanwhile(""), "while 278 waited for CPU 1");
        // The CPU is unknown if the next step was left out.
        let steps =
            parse("timer:f@0+0 waking:278@0+900 more(1)+100 switch:278(bench)/98@1+60").unwrap();
        assert_eq!(steps[1].meanwhile(""), "while 278 waited for a CPU");
        let steps = parse("switch:7(a)/120@1+0 preempted:9(hog)/98@1+5 switch:7/120@3+70").unwrap();
        assert_eq!(steps[1].waits_for, Some(3));
    }

    #[test]
    fn a_task_has_the_name_that_another_step_or_the_alert_has() {
        let line = "seq=4 time=7507454796 instance=t tracker=tree reason=threshold delay=3017490 threshold=2500000 \
             cpu=1 pid=213 tid=213 comm=\"server\" path=\"irq:30@1+0 waking:191@1+5 switch:191(irq/30-eth)/49@1+9 \
             lock:191@1+8 waking:191,by:305(holder)@1+22145554 switch:191(irq/30-eth)/49@1+7 waking:213@1+2 \
             switch:213/120@1+4\"";
        let steps = chain(&Alert::parse(line).unwrap()).unwrap();
        let told: Vec<_> = steps.iter().map(|step| step.what("")).collect();
        assert_eq!(
            told[1..],
            [
                "irq/30-eth/191 is woken",
                "irq/30-eth/191 runs",
                "irq/30-eth/191 waits for a spinlock",
                "irq/30-eth/191 is woken by holder/305",
                "irq/30-eth/191 runs",
                "server/213 is woken",
                "server/213 runs",
            ]
        );
        assert_eq!(
            steps[4].meanwhile(""),
            "while irq/30-eth/191, woken by holder/305, waited for CPU 1"
        );
        assert_eq!(
            steps[3].meanwhile(""),
            "while irq/30-eth/191 waited for a spinlock, until holder/305 woke it, CPU 1"
        );
        // The name of a task is never given to a timer's function or a softirq.
        let steps = parse("timer:213@0+0 raise:HI@0+3").unwrap();
        assert_eq!(steps[0].name, "");
    }

    #[test]
    fn a_task_that_a_limit_keeps_from_running_was_not_preempted() {
        let steps =
            parse("switch:7(a)/120@1+0 throttled:7@1+5 switch:7/120@1+70 preempted:0/120@1+3")
                .unwrap();
        assert_eq!(steps[1].what(""), "7 is throttled");
        assert_eq!(
            steps[1].meanwhile(""),
            "while 7 was throttled, its CPU quota or SCHED_DEADLINE runtime used up, CPU 1"
        );
        assert_eq!(steps[3].what(""), "switched out, and its CPU goes idle");
        assert_eq!(
            steps[3].meanwhile(""),
            "while the task was runnable and its CPU was idle, perhaps because of a quota, CPU 1"
        );
    }

    /// `dd` reads 64 KiB in several requests, and sends the later ones itself.
    #[test]
    fn a_sleep_may_be_for_a_request_that_the_task_made_itself() {
        let steps =
            parse("switch:7(dd)/120@1+0 sleep:7@1+5 waking:7@1+70 switch:7(dd)/120@1+2").unwrap();
        assert_eq!(
            steps[1].meanwhile(""),
            "while 7 slept in state D, in the middle of its work or for a request of its own, CPU 1"
        );
        let steps = parse("switch:7(dd)/120@1+0 sleep:7@1+5 waking:7,by:9(cp)@1+70").unwrap();
        assert_eq!(
            steps[1].meanwhile(""),
            "while 7 slept in state D, until cp/9 woke it, CPU 1"
        );
        assert_eq!(steps[1].what(""), "7 sleeps in state D");
    }

    #[test]
    fn a_sleep_after_the_tasks_own_reads_is_not_blamed_on_the_origin() {
        let steps =
            parse("switch:7(dd)/120@1+0 reads:7@1+5 waking:7@1+70 switch:7/120@1+2").unwrap();
        assert_eq!(
            steps[1].what(""),
            "7 sleeps in state D, after reads of its own"
        );
        assert_eq!(
            steps[1].meanwhile(""),
            "while 7 slept in state D, after it had requested reads of its own, which may be unrelated to \
             the start of this wake chain, CPU 1"
        );
    }

    #[test]
    fn preemptions_in_one_step_are_counted() {
        let steps =
            parse("switch:7(a)/120@1+0 preempted:17(ktimers/1)/98*20@1+5 switch:7/120@1+70")
                .unwrap();
        assert_eq!(
            steps[1].what(""),
            "preempted by ktimers/1/17 and others, 20 times"
        );
        assert_eq!(
            steps[1].meanwhile(""),
            "while the task waited for a CPU 20 times, the longest time after ktimers/1/17 had preempted it, CPU 1"
        );
        let steps = parse("preempted:17(ktimers/1)/98*1023@1+5 switch:7/120@1+70").unwrap();
        assert_eq!(
            steps[0].what(""),
            "preempted by ktimers/1/17 and others, at least 1023 times"
        );
        assert_eq!(
            steps[0].meanwhile(""),
            "while the task waited for a CPU at least 1023 times, the longest time after ktimers/1/17 had preempted it, CPU 1"
        );
        // Others may have run after the thread that preempted the task.
        let steps = parse("preempted:17(ktimers/1)/98@1+5 switch:7/120@1+70").unwrap();
        assert_eq!(
            steps[0].meanwhile(""),
            "while the task waited for a CPU, after ktimers/1/17 had preempted it, CPU 1"
        );
        let steps = parse("preempted:17(*5)/98@1+5").unwrap();
        assert_eq!(steps[0].what(""), "preempted by *5/17");
    }

    #[test]
    fn the_last_step_lasts_until_now() {
        let line =
            "age=5000 start=7 task=0x1 pid=1 tid=2 comm=\"a\" path=\"irq:29@1+0 waking:2@1+3000\"";
        let steps = chain_so_far(&Pending::parse_all(line).unwrap()[0]).unwrap();
        let took: Vec<_> = steps.iter().map(|step| step.took).collect();
        assert_eq!(took, [3000, 2000]);
        let other = Pending::parse_all("age=5 start=7 rq=0x1").unwrap();
        assert_eq!(chain_so_far(&other[0]).unwrap(), []);
    }

    #[test]
    fn work_is_described_from_its_start_to_its_end() {
        let steps =
            parse("waking:7@0+0 switch:7(listener)/120@0+10 begin:7@0+20 done:9@1+300").unwrap();
        assert_eq!(steps[2].what(""), "7 begins work");
        assert_eq!(
            steps[2].meanwhile(""),
            "in the work that 7 has begun, CPU 0"
        );
        assert_eq!(steps[3].what(""), "9 has done the work");
        let steps = parse("begin:7@0+0 working:7@0+300").unwrap();
        assert_eq!(steps[1].what(""), "the work of 7 is not done");
    }

    #[test]
    fn deferred_work_is_named() {
        let steps =
            parse("irq:29@1+0 queue:f@1+10 work:f@0+300 call:g@0+20 called:g@1+400 waking:7@1+5")
                .unwrap();
        let told = |at: usize| (steps[at].what(""), steps[at].meanwhile(""));
        assert_eq!(
            told(1),
            (
                "work f is queued".into(),
                "while work f waited for a worker, CPU 1".into()
            )
        );
        assert_eq!(
            told(2),
            ("a worker begins work f".into(), "in work f, CPU 0".into())
        );
        assert_eq!(
            told(3),
            (
                "another CPU is asked to call g".into(),
                "before g was called on another CPU, CPU 0".into()
            )
        );
        assert_eq!(told(4).1, "in g, for another CPU, CPU 1");
        let steps = parse("wheel:h@0+0 queue:f@0+10 queued:f@0+300").unwrap();
        assert_eq!(steps[0].what(""), "timer of the timer wheel is due: h");
        assert_eq!(steps[2].what(""), "f still waits to be called");
    }

    #[test]
    fn the_activity_of_the_cpu_belongs_to_the_step_that_ends_the_wait() {
        let steps = parse("waking:7@0+0 switch:7({a{b)/120@1+11738{irq:9000,softirq:500,tasks:2038,idle:200} user:7@1+5").unwrap();
        let parts = WaitParts {
            irq: 9000,
            softirq: 500,
            tasks: 2038,
            idle: 200,
        };
        assert_eq!(
            steps.iter().map(|step| step.parts).collect::<Vec<_>>(),
            [None, Some(parts), None]
        );
        assert_eq!((parts.wait(), steps[0].took), (11_738, 11_738));
        assert_eq!(
            (steps[1].task().as_str(), steps[1].cpu),
            ("{a{b/7", Some(1))
        );
    }

    #[test]
    fn the_users_of_the_cpu_belong_to_their_wait() {
        let steps = parse(
            "waking:7@0+0 switch:7(a)/120@1+9000{irq:4000,softirq:500,tasks:4500,idle:0;task/9(a;b=c{)>=4100;\
             irq/27(eth0)=3900;softirq/NET_RX=500;nmi=0}",
        )
        .unwrap();
        let told: Vec<_> = steps[1]
            .rivals
            .iter()
            .map(|rival| (rival.what(), rival.time, rival.at_least))
            .collect();
        assert_eq!(
            told,
            [
                ("a;b=c{/9".to_string(), 4100, true),
                ("interrupt 27 (eth0)".to_string(), 3900, false),
                ("softirq NET_RX".to_string(), 500, false),
                ("NMIs".to_string(), 0, false),
            ]
        );
        assert!(steps[0].rivals.is_empty() && steps[1].parts.is_some());
    }

    #[test]
    fn the_step_at_fault_is_named() {
        for bad in [
            "switch:7/120@1+5{irq:1,softirq:2,tasks:1,idle:1;task/7(a)}",
            "switch:7/120@1+5{irq:1,softirq:2,tasks:1,idle:1;task/7(a=5}",
            "switch:7/120@1+5{irq:1,softirq:2,tasks:1,idle:1;task/7(a)=5;}",
            "irq:29@1",
            "irq:29+5",
            "irq@1+5",
            "switch:7/120@1+5{",
            "switch:7/120@1+5{irq:1,softirq:2,tasks:2}",
            "switch:7/120@1+5{irq:1,softirq:2,tasks:2,idle:x}",
            "switch:7/120@1+5{irq:1,softirq:2,tasks:1,idle:1,nmi:0}",
            "irq:29@x+5",
            "irq:29@1+y",
            "more(3",
        ] {
            let error = parse(&format!("timer:f@0+0 {bad}")).unwrap_err();
            assert_eq!(error.word, bad);
        }
        assert_eq!(parse("").unwrap(), []);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn the_times_add_up(times in prop::collection::vec(0..1_000_000u64, 1..20)) {
            let chain: Vec<_> = times.iter().map(|t| format!("waking:{t}@0+{t}")).collect();
            let steps = parse(&chain.join(" ")).unwrap();
            let all: u64 = times.iter().sum();
            prop_assert_eq!(steps.last().map(|s| s.at), Some(all));
            prop_assert_eq!(steps.iter().map(|s| s.took).sum::<u64>(), all - times[0]);
        }
    }
}
