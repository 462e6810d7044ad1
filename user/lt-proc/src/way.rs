// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The way from an interrupt or a timer to a task: the field `path` of an alert of `tree`.
//!
//! ```text
//! path="irq:29@1+0 raise:HI@1+3001176 softirq:HI@1+3610 more(2)+966 switch:213(lt_target)/120@1+11738"
//!       KIND:SUBJECT@CPU+ns since the step before
//! ```
//!
//! After the time of a `switch` there may be what the CPU did while the task waited for it, with `interference=1`:
//! `{irq:9000,softirq:0,tasks:2738,idle:0}`.
//!
//! What takes long is what happens between two steps: 3 ms in the handler of interrupt 29, before it raised the
//! softirq. So a step has the time until the next one, too.

use crate::alert::{Alert, PATH};
use crate::error::ParseError;
use crate::pending::Pending;

/// A step of a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayStep {
    /// `irq`, `raise`, `waking`, ...; `more` for steps that were left out.
    pub kind: String,
    /// What comes after the colon; of `more`, how many they were.
    pub subject: String,
    /// Where; `more` has none.
    pub cpu: Option<u32>,
    /// When, ns since the origin.
    pub at: u64,
    /// Until the next step, ns; 0 for the last.
    pub took: u64,
    /// What its CPU did in the time since the step before, if the alert tells.
    pub parts: Option<WaitParts>,
}

/// What a CPU did while a task waited for it, ns; together the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitParts {
    /// Interrupts and NMIs.
    pub irq: u64,
    /// Softirqs, other than in threads of PREEMPT_RT.
    pub softirq: u64,
    /// Other tasks, and what no tracepoint tells of.
    pub tasks: u64,
    /// Nothing: it had to come back from idle.
    pub idle: u64,
}

impl WaitParts {
    /// `{irq:NS,softirq:NS,tasks:NS,idle:NS}` without the first brace.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.strip_suffix('}')?.split(',');
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

    /// The wait.
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

/// The steps of an alert, the origin first; none, if it is of another tracker.
///
/// # Errors
/// Names the step that is malformed.
pub fn way(alert: &Alert) -> Result<Vec<WayStep>, ParseError> {
    parse(&alert.fields.text(PATH).unwrap_or_default())
}

/// The steps up to now of what is under way; the last one lasts until now.
///
/// # Errors
/// As [`way`].
pub fn way_so_far(pending: &Pending) -> Result<Vec<WayStep>, ParseError> {
    let mut steps = parse(&pending.fields.text(PATH).unwrap_or_default())?;
    if let Some(last) = steps.last_mut() {
        last.took = pending.age().saturating_sub(last.at);
    }
    Ok(steps)
}

fn parse(path: &str) -> Result<Vec<WayStep>, ParseError> {
    let mut steps: Vec<WayStep> = Vec::new();
    let mut at = 0u64;
    for word in path.split(' ').filter(|word| !word.is_empty()) {
        let bad = || ParseError::new(word, "KIND:SUBJECT@CPU+NS or more(COUNT)+NS");
        let (what, since) = word.rsplit_once('+').ok_or_else(bad)?;
        let (since, parts) = match since.split_once('{') {
            Some((since, parts)) => (since, Some(WaitParts::parse(parts).ok_or_else(bad)?)),
            None => (since, None),
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
        steps.push(WayStep {
            kind: kind.to_string(),
            subject: subject.to_string(),
            cpu,
            at,
            took: 0,
            parts,
        });
    }
    Ok(steps)
}

impl WayStep {
    /// What happened, for a person.
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
            "expire" => format!("timer's function is called: {subject}"),
            "wheel" => format!("timer of the timer wheel is due: {subject}"),
            "queue" => format!("work {subject} is queued"),
            "work" => format!("a worker begins work {subject}"),
            "call" => format!("another CPU shall call {subject}"),
            "called" => format!("{subject} is called there"),
            "raise" => format!("softirq {subject} is raised"),
            "softirq" => format!("softirq {subject} is called"),
            "waking" => format!("{subject} is woken"),
            "switch" => format!("{} runs", task(subject)),
            "preempted" => format!("preempted by {}", task(subject)),
            "lock" => format!("{subject} waits for a spinlock"),
            "sleep" => format!("{subject} sleeps in the middle of its work"),
            "user" => format!("{subject} returns to user space"),
            "blocked" => format!("{subject} waits again"),
            "begin" => format!("{subject} begins work"),
            "done" => format!("{subject} has done the work"),
            "woken" => format!("{subject} still waits for a CPU"),
            "running" => format!("{subject} still runs"),
            "waiting" => format!("{subject} still waits"),
            "queued" => format!("{subject} still waits to be called"),
            "working" => format!("the work of {subject} is not done"),
            "more" => format!("({subject} more steps)"),
            other => format!("{other} {subject}"),
        }
    }

    /// The task of a `switch`, as `NAME/TID`, or `TID`.
    #[must_use]
    pub fn task(&self) -> String {
        task(&self.subject)
    }

    /// What went on until the next step: `in the handler of interrupt 29 (lt_cause) on CPU 1`.
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
            "waking" => format!("while {subject} had been woken and waited for a CPU"),
            "switch" => format!("while {} ran", task(subject)),
            "preempted" => format!("while {} had preempted it", task(subject)),
            "lock" => format!("while {subject} waited for a spinlock"),
            "sleep" => format!("while {subject} slept in the middle of its work"),
            "begin" => format!("in the work that {subject} has begun"),
            "more" => format!("in {subject} steps that were left out"),
            other => format!("after {other} {subject}"),
        };
        match self.cpu {
            Some(cpu) => format!("{text}, CPU {cpu}"),
            None => text,
        }
    }
}

/// `213(sshd)/120` as `sshd/213`, `213/120` as `213`.
fn task(subject: &str) -> String {
    let (who, _) = subject.rsplit_once('/').unwrap_or((subject, ""));
    match who.strip_suffix(')').and_then(|who| who.split_once('(')) {
        Some((tid, name)) => format!("{name}/{tid}"),
        None => who.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATH: &str = "irq:29@1+0 raise:HI@1+3001176 softirq:HI@1+3610 more(2)+966 switch:213(lt_target)/120@0+11738";

    #[test]
    fn a_way_is_read_step_by_step() {
        let steps = parse(PATH).unwrap();
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
                ("(2 more steps)", None, 3_005_752, 11_738),
                ("lt_target/213 runs", Some(0), 3_017_490, 0),
            ]
        );
        assert_eq!(
            steps[0].meanwhile("lt_cause"),
            "in the handler of interrupt 29 (lt_cause), CPU 1"
        );
        assert_eq!(
            steps[3].meanwhile("lt_cause"),
            "in 2 steps that were left out"
        );
    }

    #[test]
    fn the_last_step_lasts_until_now() {
        let line =
            "age=5000 start=7 task=0x1 pid=1 tid=2 comm=\"a\" path=\"irq:29@1+0 waking:2@1+3000\"";
        let steps = way_so_far(&Pending::parse_all(line).unwrap()[0]).unwrap();
        let took: Vec<_> = steps.iter().map(|step| step.took).collect();
        assert_eq!(took, [3000, 2000]);
        let other = Pending::parse_all("age=5 start=7 rq=0x1").unwrap();
        assert_eq!(way_so_far(&other[0]).unwrap(), []);
    }

    #[test]
    fn work_is_told_from_its_begin_to_its_end() {
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
    fn what_is_handed_on_is_told() {
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
                "another CPU shall call g".into(),
                "before g was called on another CPU, CPU 0".into()
            )
        );
        assert_eq!(told(4).1, "in g, for another CPU, CPU 1");
        let steps = parse("wheel:h@0+0 queue:f@0+10 queued:f@0+300").unwrap();
        assert_eq!(steps[0].what(""), "timer of the timer wheel is due: h");
        assert_eq!(steps[2].what(""), "f still waits to be called");
    }

    #[test]
    fn what_the_cpu_did_belongs_to_the_step_that_ends_the_wait() {
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
    fn the_step_at_fault_is_named() {
        for bad in [
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
            let path: Vec<_> = times.iter().map(|t| format!("waking:{t}@0+{t}")).collect();
            let steps = parse(&path.join(" ")).unwrap();
            let all: u64 = times.iter().sum();
            prop_assert_eq!(steps.last().map(|s| s.at), Some(all));
            prop_assert_eq!(steps.iter().map(|s| s.took).sum::<u64>(), all - times[0]);
        }
    }
}
