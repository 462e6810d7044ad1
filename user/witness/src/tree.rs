// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Compares wake chains from interrupts and timers to tasks, rebuilt from raw tracepoints alone, with the alerts of the
//! tracker `tree` with threshold 0.
//!
//! ```text
//!  trace --lines--> order --> rebuild --> chains that have ended, by task --.
//!                     ^                                                    compare, step by step
//!  alerts --lt_proc--> chain --> steps with their times --------------------'
//! ```
//!
//! An alert must agree with the trace on the task, the origin with its line and action, the CPU and
//! the priority at the end, the number of preemptions of threads, and the kind, place and time of
//! each step. The time when a timer was due must match exactly. Other times are from two probes on
//! one tracepoint, and may differ; other events may come between the two probes (`order`).
//!
//! The trace does not distinguish a wait for a lock of PREEMPT_RT from another sleep in the state `D`. So on such a
//! kernel, an alert may be missing if a task on the chain woke another task that slept in this state on no chain. Steps
//! that an alert has left out are compared only by their number.

mod chain;
mod order;
mod rebuild;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use lt_proc::{Alert, Nanos};

use self::chain::{Step, Told, told};
use self::rebuild::{Ended, Rebuild, is_read};
use crate::judge::{Limits, Verdict, are_too_few};
use crate::lines::{self, Line};

/// The trace has microseconds: a step this close to the due time of a timer may have been before or after it.
const CLOSE: u64 = 3_000;

/// Resolution of the times of the trace, ns.
const MICROSECOND: u64 = 1_000;

/// Compares a trace with the alerts. `kthreads` has the thread ids of the kernel threads that existed before the trace.
pub(crate) fn check(trace: &str, alerts: &str, kthreads: &str, limits: &Limits) -> Result<Verdict> {
    let kthreads: Result<BTreeSet<u32>, _> = kthreads.split_whitespace().map(str::parse).collect();
    let kthreads = kthreads.context("thread ids")?;
    let (mut lines, marks) = lines::read(trace, is_read)?;
    let alerts = lines::stream(alerts)?;
    order::as_seen(&mut lines, &alerts)?;
    // Without PREEMPT_RT, these threads exist only if a boot parameter (`threadirqs`) moves handlers to threads.
    let is_rt = trace.contains("ktimers/");
    let mut rebuild = Rebuild::new(kthreads, is_rt);
    for (at, line) in lines.iter().enumerate() {
        rebuild.see(at, line).with_context(|| format!("{line:?}"))?;
    }
    let mut judge = Judge {
        limits,
        lines: &lines,
        faults: Vec::new(),
        differences: Vec::new(),
        unknown: 0,
    };
    let mut by_task: BTreeMap<u32, (Vec<&Ended>, Vec<Alert>)> = BTreeMap::new();
    let (mut ended, mut told) = (0, 0);
    for chain in &rebuild.ended {
        if (marks.begin..=marks.end).contains(&chain.end()) {
            by_task.entry(chain.tid).or_default().0.push(chain);
            ended += 1;
        }
    }
    for alert in alerts {
        if (marks.begin..=marks.end).contains(&alert.time) {
            let tid = u32::try_from(alert.tid)?;
            by_task.entry(tid).or_default().1.push(alert);
            told += 1;
        }
    }
    for (chains, alerts) in by_task.values() {
        judge.task(chains, alerts)?;
    }
    Ok(judge.verdict(ended, told))
}

impl Ended {
    fn last(&self) -> &Step {
        // A chain has a first step, and the switch.
        &self.chain.steps[self.chain.steps.len() - 1]
    }

    /// Returns the time at which the chain ended, ns.
    fn end(&self) -> u64 {
        self.last().time
    }

    /// Returns the fields of its alert except the times and the steps.
    fn head(&self) -> [(&'static str, String); 7] {
        let origin = &self.chain.origin;
        [
            ("end", "switch".into()),
            ("origin", origin.kind.into()),
            ("irq", origin.irq.to_string()),
            ("action", origin.action.clone()),
            ("target_cpu", self.last().cpu.to_string()),
            ("prio", self.prio.clone()),
            ("preempted", self.chain.preempted.to_string()),
        ]
    }

    /// Returns the steps in readable form.
    fn text(&self) -> String {
        let steps = self.chain.steps.iter();
        let steps: Vec<String> = steps
            .map(|step| format!("{}@{}:{}", step.what, step.cpu, step.time))
            .collect();
        steps.join(" ")
    }
}

/// Returns the least number of steps of the trace that these steps of an alert stand for.
fn least(told: &[Told]) -> usize {
    told.iter().map(Told::steps).sum()
}

struct Judge<'a> {
    limits: &'a Limits,
    /// The trace.
    lines: &'a [Line<'a>],
    faults: Vec<String>,
    /// The largest time difference of each pair.
    differences: Vec<u64>,
    /// Number of chains from a timer whose due time is unknown (see `Origin::start`).
    unknown: usize,
}

impl Judge<'_> {
    /// Compares the chains and the alerts of a task, both in order.
    fn task(&mut self, chains: &[&Ended], alerts: &[Alert]) -> Result<()> {
        let (mut chains, mut alerts) = (chains.iter().peekable(), alerts.iter().peekable());
        loop {
            // A chain or alert without a counterpart is reported, and the others are still compared.
            let most = self.limits.most;
            match (chains.peek(), alerts.peek()) {
                (None, None) => return Ok(()),
                (Some(chain), alert) if alert.is_none_or(|a| a.time > chain.end() + most) => {
                    if !chain.chain.may_not_be {
                        let text = chain.text();
                        self.faults
                            .push(format!("no alert for tid {}: {text}", chain.tid));
                    }
                    chains.next();
                }
                (chain, Some(alert)) if chain.is_none_or(|p| p.end() > alert.time + most) => {
                    let text = alert.fields.text("path").unwrap_or_default();
                    let (seq, tid) = (alert.seq, alert.tid);
                    let fault = format!("alert seq={seq} for tid {tid}: no such chain: {text}");
                    self.faults.push(fault);
                    alerts.next();
                }
                (Some(chain), Some(alert))
                    if chain.chain.may_not_be && !self.has_steps(chain, alert)? =>
                {
                    chains.next();
                }
                _ => {
                    if let (Some(chain), Some(alert)) = (chains.next(), alerts.next()) {
                        self.pair(chain, alert)?;
                    }
                }
            }
        }
    }

    fn pair(&mut self, chain: &Ended, alert: &Alert) -> Result<()> {
        let (seq, tid) = (alert.seq, alert.tid);
        for (name, expected) in chain.head() {
            let said = alert.fields.text(name).unwrap_or_default();
            if said != expected {
                let fault = format!(
                    "alert seq={seq} for tid {tid} has {name}={said}, the trace {expected}: {}",
                    chain.text()
                );
                self.faults.push(fault);
            }
        }
        match self.steps(chain, alert)? {
            Ok(difference) => self.differences.push(difference),
            Err(why) => {
                let text = alert.fields.text("path").unwrap_or_default();
                let (start, trace) = (alert.time - alert.delay, chain.text());
                self.faults.push(format!(
                    "alert seq={seq} for tid {tid}, from {start}: {text}: {why}; the trace: {trace}"
                ));
            }
        }
        Ok(())
    }

    /// Returns whether a step of the trace is the step of an alert, and nothing else was traced on that CPU between the
    /// two times. The host of a virtual machine may stop the CPU for any time between the two probes of one tracepoint;
    /// a timer that becomes due meanwhile is due after the step in the trace, and before it in the alert.
    fn is_at_once(&self, step: &Step, told: Option<&Told>) -> bool {
        let Some(Told::Step { what, cpu, time }) = told else {
            return false;
        };
        let mut later = self.lines[step.at + 1..].iter();
        let next = later.find(|line| line.cpu == step.cpu);
        step.what == *what
            && step.cpu == *cpu
            && next.is_none_or(|next| next.time + MICROSECOND > *time)
    }

    /// Whether an alert has the steps of a chain.
    fn has_steps(&mut self, chain: &Ended, alert: &Alert) -> Result<bool> {
        let unknown = self.unknown;
        let difference = self.steps(chain, alert)?;
        self.unknown = unknown;
        Ok(difference.is_ok())
    }

    /// Returns the largest difference in time, or a description of another difference.
    fn steps(&mut self, chain: &Ended, alert: &Alert) -> Result<Result<u64, String>> {
        let (told, start) = (told(alert)?, alert.time - alert.delay);
        if chain.chain.origin.kind == "timer" {
            match chain.chain.origin.start {
                Some(due) if due != start => return Ok(Err(format!("due at {due}"))),
                Some(_) => {}
                None => self.unknown += 1,
            }
        }
        // Steps before the start of the alert are not on its chain.
        let (first, rest) = chain.chain.steps.split_at(1);
        let rest = rest
            .iter()
            .filter(|step| step.time + CLOSE >= start || self.is_at_once(step, told.get(1)));
        let mut steps = first.iter().chain(rest).peekable();
        let mut worst = 0;
        for (at, one) in told.iter().enumerate() {
            let (what, cpu, time) = match one {
                Told::More(number) => {
                    let (left, later) = (steps.clone().count(), &told[at + 1..]);
                    let expected = number + least(later);
                    let is_at_least = later.iter().any(Told::is_at_least);
                    if left < expected || left > expected && !is_at_least {
                        return Ok(Err(format!("{left} steps follow the first {at}")));
                    }
                    steps.by_ref().take(*number).for_each(drop);
                    continue;
                }
                Told::Step { what, cpu, time } => (what, *cpu, *time),
            };
            if one.steps() > 1 {
                // This step stands for several preemptions of one task, and names one of them. The
                // switch that follows has their total time.
                let mut folded: Vec<_> = steps.by_ref().take(one.steps()).collect();
                if one.is_at_least() {
                    // It also stands for the preemptions that follow, except the preemptions in later steps.
                    let spare = steps.clone().count().saturating_sub(least(&told[at + 1..]));
                    let pairs = steps.clone().zip(steps.clone().skip(1)).step_by(2);
                    let is_one = |(back, out): &(&Step, &Step)| {
                        back.what.starts_with("switch:") && out.what.starts_with("preempted:")
                    };
                    let more = pairs.take(spare / 2).take_while(is_one).count();
                    folded.extend(steps.by_ref().take(2 * more));
                }
                let named = what.split('*').next().unwrap_or_default();
                let is_odd = |(nth, step): (usize, &&Step)| {
                    let kind = if nth % 2 == 0 {
                        "preempted:"
                    } else {
                        "switch:"
                    };
                    !step.what.starts_with(kind)
                };
                if folded.len() < one.steps()
                    || folded.iter().enumerate().any(is_odd)
                    || !folded.iter().any(|step| step.what == named)
                {
                    return Ok(Err(format!("{what} is {folded:?}")));
                }
                continue;
            }
            let is_it = |step: &&Step| step.what == *what && step.cpu == cpu;
            while let Some(step) = steps.next_if(|step| !is_it(step)) {
                if at == 0 || step.time > start + CLOSE {
                    return Ok(Err(format!("{what} is {}", step.what)));
                }
            }
            let Some(step) = steps.next() else {
                return Ok(Err(format!("there is no {what}")));
            };
            if at > 0 || chain.chain.origin.kind != "timer" {
                worst = worst.max(step.time.abs_diff(time));
            }
        }
        Ok(match steps.next() {
            Some(step) => Err(format!("{} follows", step.what)),
            None if worst > self.limits.most => Err(format!("a step differs by {}", Nanos(worst))),
            None => Ok(worst),
        })
    }

    fn verdict(mut self, chains: usize, alerts: usize) -> Verdict {
        let matched = self.differences.len();
        let usual = self.limits.usual;
        let close = self.differences.iter().filter(|d| **d <= usual).count();
        if are_too_few(close, matched) {
            let limit = Nanos(usual).exact();
            let fault = format!("only {close} of {matched} chains agree within {limit}");
            self.faults.push(fault);
        }
        if matched < self.limits.expect_at_least {
            let wanted = self.limits.expect_at_least;
            self.faults.push(format!(
                "{matched} chains agree, expected at least {wanted}"
            ));
        }
        let worst = Nanos(self.differences.iter().copied().max().unwrap_or(0));
        let summary = format!(
            "chains={chains} alerts={alerts} matched={matched} worst={worst} usual={close} unknown={}",
            self.unknown
        );
        Verdict::new(summary, self.faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 2_000_000_000;

    /// A trace of lines `[CPU] FLAGS MICROSECONDS TID EVENT: FIELDS`, the times from two seconds on.
    fn trace<S: AsRef<str>>(lines: &[S]) -> String {
        let mut text = "# entries-in-buffer/entries-written: 9/9   #P:2\n".to_string();
        text += "  sh-1  [000] .....  1.0: tracing_mark_write: lt-witness begin\n";
        for line in lines {
            let line = line.as_ref();
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            let [cpu, flags, time, tid, event] = words[..] else {
                panic!("{line}");
            };
            let time: u32 = time.parse().unwrap();
            text += &format!("  a b-{tid} {cpu} {flags} 2.{time:06}: {event}\n");
        }
        text + "  sh-1  [000] .....  9.0: tracing_mark_write: lt-witness end\n"
    }

    /// Returns the alert of a chain to a task, with the given steps, that begins at `start`.
    fn alert(seq: u64, tid: u32, start: u64, head: &str, chain: &str) -> String {
        let delays = chain
            .split(' ')
            .map(|step| step.rsplit_once('+').unwrap().1);
        let delay: u64 = delays.map(|ns| ns.parse::<u64>().unwrap()).sum();
        let time = start + delay;
        format!(
            "seq={seq} time={time} instance=w tracker=tree reason=threshold delay={delay} threshold=0 cpu=1 \
             pid={tid} tid={tid} comm=\"x\" end=switch state=running {head} policy=other merged=0 more=0 path=\"{chain}\"\n"
        )
    }

    fn faults<S: AsRef<str>>(lines: &[S], alerts: &str) -> Vec<String> {
        let limits = Limits {
            usual: 5_000,
            most: 50_000,
            ..Limits::default()
        };
        check(&trace(lines), alerts, "2 3\n27", &limits)
            .unwrap()
            .faults
    }

    const IDLE: &str = "[001] d..2. 0 9 sched_switch: prev_comm=x prev_pid=9 prev_prio=120 prev_state=S ==> \
        next_comm=swapper/1 next_pid=0 next_prio=120";
    const RUNS: &str = "[001] d..2. 90 0 sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
        next_comm=x next_pid=9 next_prio=120";

    const TIMER: [&str; 8] = [
        "[001] d..1. 0 9 hrtimer_start: hrtimer=00000000ab function=hrtimer_wakeup expires=2000070000 \
            softexpires=2000020000 mode=ABS was_armed=0",
        IDLE,
        "[001] d.h1. 71 0 local_timer_entry: vector=236",
        "[001] d.h2. 72 0 hrtimer_expire_entry: hrtimer=00000000ab function=hrtimer_wakeup now=2000070800",
        "[001] d.h3. 73 0 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
        "[001] d.h2. 74 0 hrtimer_expire_exit: hrtimer=00000000ab",
        "[001] d.h1. 75 0 local_timer_exit: vector=236",
        RUNS,
    ];
    const TIMER_HEAD: &str = "origin=timer irq=-1 action=\"\" target_cpu=1 prio=120 preempted=0";
    const TIMER_CHAIN: &str = "timer:hrtimer_wakeup@1+0 vector:local_timer@1+51200 expire:hrtimer_wakeup@1+1000 \
        waking:9@1+1000 switch:9(x)/120@1+17000";

    #[test]
    fn a_timer_is_followed_from_when_it_was_due() {
        let due = START + 20_000;
        let told = |head: &str, chain: &str| faults(&TIMER, &alert(1, 9, due, head, chain));
        assert_eq!(told(TIMER_HEAD, TIMER_CHAIN), [""; 0]);
        // One thing wrong at a time.
        for (from, to, fault) in [
            (
                "vector:local_timer@1",
                "vector:local_timer@0",
                "local_timer",
            ),
            ("waking:9", "waking:8", "waking:8 is waking:9"),
            ("vector:local_timer@1+51200 ", "", "no such chain"),
            ("+17000", "+80000", "no such chain"),
            ("expire:hrtimer_wakeup@1+1000 ", "", "expire"),
            ("+51200", "+45000", "within 5us"),
        ] {
            let chain = TIMER_CHAIN.replace(from, to);
            let found = told(TIMER_HEAD, &chain).join("\n");
            assert!(found.contains(fault), "{from} {to}: {found}");
        }
        for (from, to) in [
            ("irq=-1", "irq=0"),
            ("target_cpu=1", "target_cpu=0"),
            ("prio=120", "prio=119"),
            ("preempted=0", "preempted=1"),
            ("origin=timer", "origin=vector"),
        ] {
            let found = told(&TIMER_HEAD.replace(from, to), TIMER_CHAIN);
            assert!(found[0].contains(to), "{found:?}");
        }
        // A difference of one nanosecond is too much.
        let found = faults(&TIMER, &alert(1, 9, due + 1, TIMER_HEAD, TIMER_CHAIN));
        assert!(found[0].contains("due at 2000020000"), "{found:?}");
    }

    #[test]
    fn a_timer_may_become_due_between_the_two_probes_of_an_interrupt() {
        let mut lines = TIMER.map(|line| {
            line.replace("softexpires=2000020000", "softexpires=2000060000")
                .replace(" 71 0 local_timer_entry", " 50 0 local_timer_entry")
        });
        let chain = TIMER_CHAIN.replace("+51200", "+11200");
        let alert = alert(1, 9, START + 60_000, TIMER_HEAD, &chain);
        let told = |lines: &[String]| faults(lines, &alert);
        // A difference of 21 us is above the usual limit, but the interrupt is still recognised.
        assert_eq!(told(&lines), ["only 0 of 1 chains agree within 5us"]);
        // Another event of that CPU lies between the two times, so this is a different interrupt.
        lines[1] = lines[1].replace(" 0 9 ", " 40 9 ");
        let other = "[001] d.h1. 65 0 hrtimer_start: hrtimer=00000000cd function=f expires=2 softexpires=2 mode=ABS";
        let mut between = lines.to_vec();
        between.insert(3, other.to_string());
        let found = told(&between);
        assert!(found[0].contains("local_timer is expire"), "{found:?}");
        // An event of another CPU in between makes no difference.
        between[3] = other.replace("[001]", "[000]").replace(" 0 hr", " 4 hr");
        assert_eq!(told(&between), ["only 0 of 1 chains agree within 5us"]);
    }

    #[test]
    fn missing_and_invented_alerts_are_found() {
        let found = faults(&TIMER, "");
        assert!(found[0].contains("no alert for tid 9"), "{found:?}");
        let due = START + 20_000;
        let one = alert(1, 9, due, TIMER_HEAD, TIMER_CHAIN);
        let twice = one.clone() + &one.replace("seq=1", "seq=2");
        assert!(faults(&TIMER, &twice)[0].contains("no such chain"));
        let lost = one.clone() + &one.replace("seq=1", "seq=3");
        assert!(check(&trace(&TIMER), &lost, "", &Limits::default()).is_err());
    }

    #[test]
    fn steps_that_are_left_out_are_counted() {
        let chain = |number| {
            format!(
                "timer:hrtimer_wakeup@1+0 vector:local_timer@1+51200 more({number})+2000 switch:9(x)/120@1+17000"
            )
        };
        let told = |number| {
            let alert = alert(1, 9, START + 20_000, TIMER_HEAD, &chain(number));
            faults(&TIMER, &alert)
        };
        assert_eq!(told(2), [""; 0]);
        assert!(told(1)[0].contains("3 steps follow the first 2"));
    }

    #[test]
    fn preemptions_in_one_step_stand_for_preemptions_of_the_trace() {
        let step = |what: &str| Told::Step {
            what: what.into(),
            cpu: 1,
            time: 0,
        };
        assert_eq!(step("preempted:9/49*3").steps(), 5);
        assert_eq!(step("preempted:9/49").steps(), 1);
        assert_eq!(step("timer:f*2").steps(), 1);
        assert_eq!(Told::More(3).steps(), 3);
        assert!(step("preempted:9/49*1023").is_at_least());
        assert!(!step("preempted:9/49*1022").is_at_least() && !Told::More(1023).is_at_least());
    }

    /// The worker of a work item is preempted 1,100 times.
    #[test]
    fn a_step_with_the_maximum_number_of_preemptions_may_stand_for_more() {
        let begin = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 workqueue_queue_work: work struct=00000000cd function=do_it workqueue=q req_cpu=8192 cpu=0",
            "[000] d.h2. 13 0 sched_waking: comm=kworker/0:1 pid=3 prio=120 target_cpu=000",
            "[000] d.h1. 14 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d..2. 20 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=kworker/0:1 next_pid=3 next_prio=120",
            "[000] ..... 22 3 workqueue_execute_start: work struct 00000000cd: function do_it",
        ];
        let mut lines = begin.map(str::to_string).to_vec();
        for time in (100..).step_by(4).take(1100) {
            lines.extend([
                format!(
                    "[000] d..2. {time} 3 sched_switch: prev_comm=kworker/0:1 prev_pid=3 prev_prio=120 prev_state=R+ \
                     ==> next_comm=y next_pid=8 next_prio=49"
                ),
                format!(
                    "[000] d..2. {} 8 sched_switch: prev_comm=y prev_pid=8 prev_prio=49 prev_state=S ==> \
                     next_comm=kworker/0:1 next_pid=3 next_prio=120",
                    time + 2
                ),
            ]);
        }
        let wakes = "[000] d..3. 5000 3 sched_waking: comm=x pid=9 prio=120 target_cpu=001";
        lines.extend([wakes.to_string(), RUNS.replace(" 90 0 ", " 6000 0 ")]);
        let head = IRQ_HEAD.replace("preempted=0", "preempted=1100");
        let worker = "waking:3@0+1000 switch:3(kworker/0:1)/120@0+7000 work:do_it@0+2000";
        let told = |worker: &str, times: &str| {
            let chain = format!(
                "irq:27@0+0 queue:do_it@0+2000 {worker} preempted:8(y)/49{times}@0+2276000 \
                 switch:3(kworker/0:1)/120@0+2200000 waking:9@0+502000 switch:9(x)/120@1+1000000"
            );
            faults(&lines, &alert(1, 9, START + 10_000, &head, &chain))
        };
        assert_eq!(told(worker, "*1023"), [""; 0]);
        assert_eq!(told("more(3)+10000", "*1023"), [""; 0]);
        for wrong in [
            told("more(2)+10000", "*1023"),
            told("more(3)+10000", "*1022"),
            told(worker, "*1022"),
            told(worker, ""),
        ] {
            assert_ne!(wrong, [""; 0]);
        }
    }

    const IRQ_HEAD: &str = "origin=irq irq=27 action=\"eth0\" target_cpu=1 prio=120 preempted=0";

    #[test]
    fn a_thread_is_woken_after_its_handler() {
        let lines = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d.h2. 13 0 sched_waking: comm=irq/27-eth0 pid=27 prio=49 target_cpu=000",
            "[000] d..2. 20 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=irq/27-eth0 next_pid=27 next_prio=49",
            "[000] d..3. 30 27 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            RUNS,
        ];
        let chain = "irq:27@0+0 waking:27@0+3000 switch:27(irq/27-eth0)/49@0+7000 waking:9@0+10000 switch:9(x)/120@1+60000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        // A task that is woken after another handler, or outside of interrupts, has no chain.
        let other = lines.map(|line| line.replace("irq/27", "irq/28"));
        assert!(faults(&other, &told)[0].contains("no such chain"));
    }

    #[test]
    fn a_task_that_may_have_waited_for_a_lock_may_be_on_no_chain() {
        let sleeps = IDLE.replace("prev_state=S", "prev_state=D");
        let of_rt = "[000] d.h2. 9 0 sched_waking: comm=ktimers/0 pid=19 prio=98 target_cpu=000";
        let by_thread = [
            of_rt,
            sleeps.as_str(),
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d.h2. 13 0 sched_waking: comm=irq/27-eth0 pid=27 prio=49 target_cpu=000",
            "[000] d..2. 20 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=irq/27-eth0 next_pid=27 next_prio=49",
            "[000] d..3. 30 27 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            RUNS,
        ];
        let none = ["0 chains agree, expected at least 1"];
        assert_eq!(faults(&by_thread, ""), none);
        // Without PREEMPT_RT there are no such locks.
        assert!(faults(&by_thread[1..], "")[0].contains("no alert for tid 9"));
        let chain = "irq:27@0+0 waking:27@0+3000 switch:27(irq/27-eth0)/49@0+7000 waking:9@0+10000 switch:9(x)/120@1+60000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&by_thread, &told), [""; 0]);
        let other = told.replace("waking:27@0", "waking:28@0");
        assert!(faults(&by_thread, &other)[0].contains("no such chain"));
        // No interrupt releases such a lock.
        let by_handler = [
            of_rt,
            sleeps.as_str(),
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h2. 11 0 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            "[000] d.h1. 12 0 irq_handler_exit: irq=27 ret=handled",
            RUNS,
        ];
        assert!(faults(&by_handler, "")[0].contains("no alert for tid 9"));
    }

    #[test]
    fn a_kernel_thread_created_meanwhile_is_a_hop() {
        let lines = [
            "[000] ..... 5 2 sched_process_fork: comm=kthreadd pid=2 child_comm=kthreadd child_pid=31",
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h2. 12 0 sched_waking: comm=z pid=31 prio=120 target_cpu=000",
            "[000] d.h1. 13 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d..2. 20 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=z next_pid=31 next_prio=120",
            "[000] d..3. 30 31 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            RUNS,
        ];
        let chain = "irq:27@0+0 waking:31@0+2000 switch:31(z)/120@0+8000 waking:9@0+10000 switch:9(x)/120@1+60000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        let by_another = lines.map(|line| line.replace("5 2 sched", "5 1 sched"));
        assert_ne!(faults(&by_another, &told), [""; 0]);
    }

    #[test]
    fn a_softirq_may_wait_for_its_thread() {
        let lines = [
            IDLE,
            "[001] d.h1. 10 8 irq_handler_entry: irq=27 name=eth0",
            "[001] d.h1. 11 8 softirq_raise: vec=3 [action=NET_RX]",
            "[001] d.h1. 12 8 irq_handler_exit: irq=27 ret=handled",
            "[001] d..2. 13 8 sched_waking: comm=ksoftirqd/1 pid=2 prio=120 target_cpu=001",
            "[001] d..2. 20 8 sched_switch: prev_comm=y prev_pid=8 prev_prio=120 prev_state=R+ ==> \
                next_comm=ksoftirqd/1 next_pid=2 next_prio=120",
            "[001] ..s1. 22 2 softirq_entry: vec=3 [action=NET_RX]",
            "[001] d.s2. 23 2 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            "[001] ..s1. 24 2 softirq_exit: vec=3 [action=NET_RX]",
            &RUNS.replace("pid=0", "pid=2"),
        ];
        let chain = "irq:27@1+0 raise:NET_RX@1+1000 waking:2@1+2000 switch:2(ksoftirqd/1)/120@1+7000 \
            softirq:NET_RX@1+2000 waking:9@1+1000 switch:9(x)/120@1+67000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        // A thread that has lost the CPU has not simply waited since its wakeup.
        let mut lines = lines.to_vec();
        let out = lines[5]
            .replace(" 20 8 ", " 16 2 ")
            .replace("prev_comm=y prev_pid=8", "prev_comm=ksoftirqd/1 prev_pid=2")
            .replace("next_comm=ksoftirqd/1 next_pid=2", "next_comm=y next_pid=8");
        let first = lines[5].replace(" 20 8 ", " 14 8 ");
        lines.insert(5, &out);
        lines.insert(5, &first);
        let chain = "irq:27@1+0 raise:NET_RX@1+1000 switch:2(ksoftirqd/1)/120@1+9000 softirq:NET_RX@1+2000 \
            waking:9@1+1000 switch:9(x)/120@1+67000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        // The release of a lock for which the thread has waited is not its wakeup.
        let out = out.replace("prev_state=R+", "prev_state=D");
        let release = lines[4].replace(" 13 8 ", " 18 8 ");
        lines[6] = &out;
        lines.insert(7, &release);
        assert_eq!(faults(&lines, &told), [""; 0]);
    }

    #[test]
    fn a_softirq_may_be_preempted_between_the_two_probes_of_its_start() {
        let lines = [
            IDLE,
            "[001] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[001] d.h1. 11 0 softirq_raise: vec=3 [action=NET_RX]",
            "[001] d.h1. 12 0 irq_handler_exit: irq=27 ret=handled",
            "[001] d..2. 15 0 sched_waking: comm=ksoftirqd/1 pid=2 prio=120 target_cpu=001",
            "[001] d..2. 20 0 sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=ksoftirqd/1 next_pid=2 next_prio=120",
            "[001] ..s1. 22 2 softirq_entry: vec=3 [action=NET_RX]",
            "[001] d.s2. 30 2 sched_switch: prev_comm=ksoftirqd/1 prev_pid=2 prev_prio=120 prev_state=R+ ==> \
                next_comm=y next_pid=8 next_prio=49",
            "[001] d..2. 50 8 sched_switch: prev_comm=y prev_pid=8 prev_prio=49 prev_state=S ==> \
                next_comm=ksoftirqd/1 next_pid=2 next_prio=120",
            "[001] d.s2. 54 2 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            "[001] ..s1. 55 2 softirq_exit: vec=3 [action=NET_RX]",
            &RUNS.replace("pid=0", "pid=2"),
        ];
        let found = |lines: &[&str], thread: &str, softirq: u64, waking: u64| {
            let chain = format!(
                "irq:27@1+0 raise:NET_RX@1+1000 {thread} softirq:NET_RX@1+{softirq} waking:9@1+{waking} \
                 switch:9(x)/120@1+36000"
            );
            faults(lines, &alert(1, 9, START + 10_000, IRQ_HEAD, &chain))
        };
        let woken = "waking:2@1+4000 switch:2(ksoftirqd/1)/120@1+5000";
        let again = "switch:2(ksoftirqd/1)/120@1+39000";
        // The module's probe may run before the preemption or after it.
        assert_eq!(found(&lines, woken, 2_500, 31_500), [""; 0]);
        assert_eq!(found(&lines, again, 2_000, 2_000), [""; 0]);
        // The time of the start decides which steps come before it.
        let late = found(&lines, woken, 32_000, 2_000);
        assert!(late[0].contains("waking:2 is switch:2/120"), "{late:?}");
        // The probe has run before the softirq ends.
        let late = found(&lines, again, 6_000, 0);
        assert!(late[0].contains("switch:2/120 is waking:2"), "{late:?}");
        // Without a preemption, the time of the start only differs.
        let alone = [&lines[..7], &lines[9..]].concat();
        assert_eq!(found(&alone, woken, 2_500, 31_500), [""; 0]);
        let late = found(&alone, woken, 32_000, 2_000);
        assert_eq!(late, ["only 0 of 1 chains agree within 5us"]);
    }

    #[test]
    fn a_work_item_may_be_preempted_between_the_two_probes_of_its_start() {
        let lines = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 workqueue_queue_work: work struct=00000000cd function=do_it workqueue=q req_cpu=8192 cpu=0",
            "[000] d.h2. 13 0 sched_waking: comm=kworker/0:1 pid=3 prio=120 target_cpu=000",
            "[000] d.h1. 14 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d..2. 20 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=kworker/0:1 next_pid=3 next_prio=120",
            "[000] ..... 22 3 workqueue_execute_start: work struct 00000000cd: function do_it",
            "[000] d..2. 24 3 sched_switch: prev_comm=kworker/0:1 prev_pid=3 prev_prio=120 prev_state=R+ ==> \
                next_comm=y next_pid=8 next_prio=49",
            "[000] d..2. 26 8 sched_switch: prev_comm=y prev_pid=8 prev_prio=49 prev_state=S ==> \
                next_comm=kworker/0:1 next_pid=3 next_prio=120",
            "[000] d..3. 30 3 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            "[000] ..... 31 3 workqueue_execute_end: work struct 00000000cd: function do_it",
            RUNS,
        ];
        let head = IRQ_HEAD.replace("preempted=0", "preempted=1");
        let out = "preempted:8(y)/49@0";
        let back = "switch:3(kworker/0:1)/120@0+2000";
        for steps in [
            format!("work:do_it@0+2000 {out}+2000 {back} waking:9@0+4000"),
            format!("{out}+4000 {back} work:do_it@0+1000 waking:9@0+3000"),
        ] {
            let chain = format!(
                "irq:27@0+0 queue:do_it@0+2000 waking:3@0+1000 switch:3(kworker/0:1)/120@0+7000 {steps} \
                 switch:9(x)/120@1+60000"
            );
            let told = alert(1, 9, START + 10_000, &head, &chain);
            assert_eq!(faults(&lines, &told), [""; 0]);
        }
    }

    #[test]
    fn a_work_item_is_followed_to_its_worker() {
        let lines = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 workqueue_queue_work: work struct=00000000cd function=do_it workqueue=q req_cpu=8192 cpu=0",
            "[000] d.h2. 13 0 sched_waking: comm=kworker/0:1 pid=3 prio=120 target_cpu=000",
            "[000] d.h1. 14 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d..2. 20 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=kworker/0:1 next_pid=3 next_prio=120",
            "[000] ..... 22 3 workqueue_execute_start: work struct 00000000cd: function do_it",
            "[000] d..3. 30 3 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            "[000] ..... 31 3 workqueue_execute_end: work struct 00000000cd: function do_it",
            RUNS,
        ];
        let chain = "irq:27@0+0 queue:do_it@0+2000 waking:3@0+1000 switch:3(kworker/0:1)/120@0+7000 work:do_it@0+2000 \
            waking:9@0+8000 switch:9(x)/120@1+60000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        // Other activity of a worker is not on the chain of its work item.
        for (at, to) in [
            (6, "struct 00000000ef"),
            (8, "_start: work struct 00000000ef"),
        ] {
            let mut lines = lines.map(str::to_string);
            lines[at] = match at {
                6 => lines[at].replace("struct 00000000cd", to),
                _ => lines[at].replace("_end: work struct 00000000cd", to),
            };
            if at == 8 {
                lines.swap(7, 8);
                lines[7] = lines[7].replace(" 31 3 ", " 29 3 ");
            }
            assert!(faults(&lines, &told)[0].contains("no such chain"), "{at}");
        }
    }

    #[test]
    fn a_work_item_that_queues_itself_is_on_no_chain_the_second_time() {
        let lines = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 workqueue_queue_work: work struct=00000000cd function=do_it workqueue=q req_cpu=8192 cpu=0",
            "[000] d.h1. 14 0 irq_handler_exit: irq=27 ret=handled",
            "[000] ..... 22 3 workqueue_execute_start: work struct 00000000cd: function do_it",
            "[000] d..1. 24 3 workqueue_queue_work: work struct=00000000cd function=do_it workqueue=q req_cpu=8192 cpu=0",
            "[000] ..... 25 3 workqueue_execute_end: work struct 00000000cd: function do_it",
            "[000] ..... 26 3 workqueue_execute_start: work struct 00000000cd: function do_it",
            "[000] d..3. 30 3 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            RUNS,
        ];
        assert_eq!(faults(&lines, ""), ["0 chains agree, expected at least 1"]);
        // Another work item is on the chain of the first one, and so is this item with another function.
        for (old, new) in [("00000000cd", "00000000ef"), ("do_it", "do_more")] {
            let mut other = lines.map(str::to_string);
            for at in [5, 7] {
                other[at] = other[at].replace(old, new);
            }
            assert!(faults(&other, "")[0].contains("no alert for tid 9"));
        }
    }

    #[test]
    fn the_function_of_a_work_item_is_unknown_on_the_chain_of_another_wakeup() {
        let lines = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 workqueue_queue_work: work struct=00000000cd function=do_it workqueue=q req_cpu=8192 cpu=0",
            "[000] d.h1. 14 0 irq_handler_exit: irq=27 ret=handled",
            "[000] ..... 22 3 workqueue_execute_start: work struct 00000000cd: function do_it",
            "[000] d..2. 23 3 sched_switch: prev_comm=kworker/0:1 prev_pid=3 prev_prio=120 prev_state=S ==> \
                next_comm=swapper/0 next_pid=0 next_prio=120",
            "[000] d.h1. 24 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h2. 25 0 sched_waking: comm=kworker/0:1 pid=3 prio=120 target_cpu=000",
            "[000] d.h1. 26 0 irq_handler_exit: irq=27 ret=handled",
            "[000] d..2. 27 0 sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> \
                next_comm=kworker/0:1 next_pid=3 next_prio=120",
            "[000] d..1. 28 3 workqueue_queue_work: work struct=00000000cd function=do_more workqueue=q req_cpu=8192 cpu=0",
            "[000] ..... 29 3 workqueue_execute_end: work struct 00000000cd: function do_it",
            "[000] ..... 30 3 workqueue_execute_start: work struct 00000000cd: function do_more",
            "[000] d..3. 31 3 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            RUNS,
        ];
        assert_eq!(faults(&lines, ""), ["0 chains agree, expected at least 1"]);
        // In the state `D`, the worker sleeps in the middle of its work, and stays on its chain.
        let waits = lines[5].replace("prev_state=S", "prev_state=D");
        let mut lines = lines.to_vec();
        lines[5] = &waits;
        assert!(faults(&lines, "")[0].contains("no alert for tid 9"));
    }

    #[test]
    fn a_call_is_followed_to_the_other_cpu() {
        let lines = [
            IDLE,
            "[000] d.h1. 10 0 irq_handler_entry: irq=27 name=eth0",
            "[000] d.h1. 12 0 csd_queue_cpu: cpu=1 callsite=f+0x1/0x2 func=do_it csd=00000000cd",
            "[000] d.h1. 14 0 irq_handler_exit: irq=27 ret=handled",
            "[001] d.h1. 20 0 call_function_single_entry: vector=251",
            "[001] d.h1. 22 0 csd_function_entry: func=do_it, csd=00000000cd",
            "[001] d.h2. 30 0 sched_waking: comm=x pid=9 prio=120 target_cpu=001",
            "[001] d.h1. 31 0 csd_function_exit: func=do_it, csd=00000000cd",
            "[001] d.h1. 32 0 call_function_single_exit: vector=251",
            RUNS,
        ];
        let chain = "irq:27@0+0 call:do_it@0+2000 vector:call_function_single@1+8000 called:do_it@1+2000 \
            waking:9@1+8000 switch:9(x)/120@1+60000";
        let told = alert(1, 9, START + 10_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        let other = lines
            .map(|line| line.replace("func=do_it, csd=00000000cd", "func=do_it, csd=00000000ef"));
        assert!(!faults(&other, &told).is_empty());
    }

    #[test]
    fn later_events_show_whether_a_running_task_was_asleep() {
        let woken = "[000] d.h1. 5 0 sched_waking: comm=x pid=9 prio=120 target_cpu=001";
        let handler = [
            "[000] d.h1. 4 0 irq_handler_entry: irq=27 name=eth0",
            woken,
            "[000] d.h1. 6 0 irq_handler_exit: irq=27 ret=handled",
        ];
        let ran = "[001] d..1. 1 9 softirq_raise: vec=1 [action=TIMER]";
        let out = IDLE.replace(" 0 9 ", " 7 9 ");
        let mut lines = vec![ran];
        lines.extend(handler);
        lines.extend([out.as_str(), RUNS]);
        let chain = "irq:27@0+0 waking:9@0+1000 switch:9(x)/120@1+85000";
        let told = alert(1, 9, START + 4_000, IRQ_HEAD, chain);
        assert_eq!(faults(&lines, &told), [""; 0]);
        // The task was awake at the first wakeup, and another wakeup came when it slept.
        let later = "[000] ..... 50 1 sched_waking: comm=x pid=9 prio=120 target_cpu=001";
        lines.insert(5, later);
        assert_eq!(faults(&lines, ""), ["0 chains agree, expected at least 1"]);
    }
}
