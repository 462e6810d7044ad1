// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `tree`: wake chains in flight from interrupts and timers, grouped by root.
//!
//! ```text
//!   irq:27 eth0 @0, 3.01ms ago
//!     nginx/812 (CPU 2) has been woken, and waits for a CPU, for 2.62ms
//!       irq:27@0 0%, raise:NET_RX@0 12%, softirq:NET_RX@0 1%, waking:812@0 87%
//! ```
//!
//! Chains have the same root if their first steps agree in kind, subject, CPU and time.

use std::io::IsTerminal;

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, Colour};
use lt_common::wait::Signals;
use lt_proc::{ChainStep, Nanos, Pending, ProcError, ProcRoot, chain_so_far};
use serde::Serialize;

use crate::cli::TreeArgs;

/// Clears a terminal, and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// The output of `--json`; times in ns.
#[derive(Debug, Serialize)]
struct Root {
    /// `irq:27`
    root: String,
    action: String,
    cpu: Option<u32>,
    start: u64,
    age: u64,
    tips: Vec<Tip>,
}

/// The end of a chain so far: a task, a work item or a call.
#[derive(Debug, Serialize)]
struct Tip {
    tid: u64,
    comm: String,
    state: String,
    cpu: Option<u64>,
    age: u64,
    steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    /// `waking:812`
    step: String,
    cpu: Option<u32>,
    took: u64,
    percent: u64,
}

pub(crate) fn run(root: &ProcRoot, args: &TreeArgs) -> Result<Outcome> {
    let name = &args.name;
    let tracker = root.instance(name)?.tracker;
    if tracker != "tree" {
        bail!(
            "{name} is of the tracker {tracker}, and has no tree; start one that has: \
             latency-tracker start chain tree"
        );
    }
    if args.interval.0 == 0 {
        bail!("--interval 0: expected a duration greater than 0");
    }
    if !args.live || !std::io::stdout().is_terminal() {
        return once(root, args);
    }
    let signals = Signals::catch()?;
    loop {
        let pending = match root.pending(name) {
            Err(ProcError::NoInstance(_)) => {
                out::note("the instance was removed");
                return Ok(Outcome::Fine);
            }
            pending => pending?,
        };
        let roots = roots(&pending)?;
        let head = format!(
            "{CLEAR}{}  {}",
            lt_common::clock::now(),
            summary(name, &roots)
        );
        let mut lines = vec![out::paint(Colour::Bold, &head)];
        lines.extend(roots.iter().flat_map(Root::lines));
        out::line(&cut(lines, height()).join("\n"))?;
        if !signals.sleep(args.interval.into())? {
            return Ok(Outcome::Fine);
        }
    }
}

fn once(root: &ProcRoot, args: &TreeArgs) -> Result<Outcome> {
    let roots = roots(&root.pending(&args.name)?)?;
    if args.json {
        roots.iter().try_for_each(out::json)?;
        return Ok(Outcome::Fine);
    }
    let summary = summary(&args.name, &roots);
    if roots.is_empty() {
        out::note(&summary);
        return Ok(Outcome::Fine);
    }
    out::line(&out::paint(Colour::Bold, &summary))?;
    for line in roots.iter().flat_map(Root::lines) {
        out::line(&line)?;
    }
    Ok(Outcome::Fine)
}

fn height() -> Option<usize> {
    let (_, height) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(height.0)).filter(|height| *height > 2)
}

/// Returns the lines that fit on a terminal; if some do not, the last line counts them.
fn cut(mut lines: Vec<String>, height: Option<usize>) -> Vec<String> {
    // One line for the cursor.
    let room = height.map_or(usize::MAX, |height| height - 1);
    if lines.len() > room {
        let more = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("... {}", out::plural(more, "more line")));
    }
    lines
}

fn summary(name: &str, roots: &[Root]) -> String {
    let tips = roots.iter().map(|root| root.tips.len()).sum();
    if tips == 0 {
        return format!("{name}: no wake chain is in flight");
    }
    let from = out::plural(roots.len(), "origin");
    format!(
        "{name}: {} in flight from {from}",
        out::plural(tips, "wake chain")
    )
}

/// Returns the roots, the oldest first, each with its tips in the order of `pending`.
fn roots(pending: &[Pending]) -> Result<Vec<Root>> {
    let mut roots: Vec<Root> = Vec::new();
    for tip in pending {
        let steps = chain_so_far(tip)?;
        // Every tip has a first step.
        let Some(first) = steps.first() else {
            continue;
        };
        let text = |key| tip.fields.text(key).unwrap_or_default();
        let root = format!("{}:{}", first.kind, first.subject);
        let start = tip.fields.number("start").unwrap_or(0);
        let branch = Tip::new(tip, &steps);
        let found = roots
            .iter_mut()
            .find(|r| r.start == start && r.root == root && r.cpu == first.cpu);
        if let Some(found) = found {
            found.age = found.age.max(tip.age());
            found.tips.push(branch);
            continue;
        }
        roots.push(Root {
            root,
            action: text("action").into_owned(),
            cpu: first.cpu,
            start,
            age: tip.age(),
            tips: vec![branch],
        });
    }
    roots.sort_by_key(|root| root.start);
    Ok(roots)
}

impl Tip {
    fn new(tip: &Pending, steps: &[ChainStep]) -> Self {
        let text = |key| tip.fields.text(key).unwrap_or_default().into_owned();
        let age = tip.age();
        let step = |step: &ChainStep| Step {
            step: format!("{}:{}", step.kind, step.subject),
            cpu: step.cpu,
            took: step.took,
            percent: u64::try_from(u128::from(step.took) * 100 / u128::from(age.max(1)))
                .unwrap_or(100),
        };
        Self {
            tid: tip.fields.number("tid").unwrap_or(0),
            comm: text("comm"),
            state: text("state"),
            cpu: tip.fields.number("target_cpu"),
            age,
            steps: steps.iter().map(step).collect(),
        }
    }

    /// Returns the current activity of the tip, for the line below its root.
    fn hangs_on(&self) -> String {
        let last = self.steps.last();
        let what = last.map_or("", |last| last.step.as_str());
        match self.state.as_str() {
            "woken" => "has been woken, and waits for a CPU".into(),
            "running" if what.starts_with("preempted:") => "was preempted".into(),
            "running" if what.starts_with("throttled:") => "is throttled".into(),
            "running" => "runs".into(),
            "waiting" if what.starts_with("lock:") => "waits for a spinlock".into(),
            "waiting" => "sleeps in the middle of its work".into(),
            "working" => "has started work that is not done".into(),
            "queued" => {
                let (_, function) = what.split_once(':').unwrap_or_default();
                let whom = if what.starts_with("call:") {
                    "another CPU"
                } else {
                    "a worker"
                };
                format!("{function} waits for {whom}")
            }
            "awake" => "was woken while awake, and may keep running".into(),
            other => other.to_string(),
        }
    }

    /// Returns a line about the tip, and its steps, wrapped into lines.
    fn lines(&self) -> Vec<String> {
        let cpu = self
            .cpu
            .map_or_else(String::new, |cpu| format!(" (CPU {cpu})"));
        let who = match self.state.as_str() {
            "queued" => String::new(),
            _ => format!("{}/{}{cpu} ", self.comm, self.tid),
        };
        let took = self.steps.last().map_or(0, |last| last.took);
        let first = format!("  {who}{}, for {}", self.hangs_on(), Nanos(took));
        let steps: Vec<String> = self.steps.iter().map(Step::text).collect();
        let width = out::width().unwrap_or(usize::MAX);
        let mut lines = vec![out::fit_line(&out::printable(&first))];
        lines.extend(out::wrap_to(&out::printable(&steps.join(", ")), 4, width));
        lines
    }
}

impl Step {
    fn text(&self) -> String {
        let step = match self.step.strip_prefix("more:") {
            Some(count) => format!("({count} more)"),
            None => self.step.clone(),
        };
        let cpu = self.cpu.map_or_else(String::new, |cpu| format!("@{cpu}"));
        format!("{step}{cpu} {}%", self.percent)
    }
}

impl Root {
    fn lines(&self) -> Vec<String> {
        let action = match self.action.as_str() {
            "" => String::new(),
            action => format!(" {action}"),
        };
        let cpu = self.cpu.map_or_else(String::new, |cpu| format!(" @{cpu}"));
        let line = format!("{}{action}{cpu}, {} ago", self.root, Nanos(self.age));
        let mut lines = vec![out::fit_line(&out::printable(&line))];
        lines.extend(self.tips.iter().flat_map(Tip::lines));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDING: &str = "\
age=4000 start=6000 task=0xffff8881 pid=812 tid=812 comm=\"nginx\" end=none state=woken origin=irq irq=27 action=\"eth0\" target_cpu=2 prio=120 policy=other preempted=0 merged=0 more=0 path=\"irq:27@0+0 raise:NET_RX@0+1000 waking:812@0+1000\"
age=4000 start=6000 task=0xffff8882 pid=9 tid=9 comm=\"kworker/0:1\" end=none state=waiting origin=irq irq=27 action=\"eth0\" target_cpu=0 prio=120 policy=other preempted=0 merged=0 more=0 path=\"irq:27@0+0 waking:9@0+500 switch:9(kworker/0:1)/120@0+500 lock:9@0+0\"
age=9000 start=1000 task=0xffff8883 pid=0 tid=0 comm=\"\" end=none state=queued origin=timer irq=-1 action=\"\" target_cpu=1 prio=-1 policy=other preempted=0 merged=0 more=3 path=\"timer:f@1+0 more(3)+100 queue:lt_on_item@1+0\"
";

    fn of(text: &str) -> Vec<Root> {
        roots(&Pending::parse_all(text).unwrap()).unwrap()
    }

    #[test]
    fn tips_are_below_their_roots_the_oldest_first() {
        let roots = of(PENDING);
        assert_eq!(
            summary("chain", &roots),
            "chain: 3 wake chains in flight from 2 origins"
        );
        let lines: Vec<_> = roots.iter().flat_map(Root::lines).collect();
        assert_eq!(
            lines,
            [
                "timer:f @1, 9.00us ago",
                "  lt_on_item waits for a worker, for 8.90us",
                "    timer:f@1 1%, (3 more) 0%, queue:lt_on_item@1 98%",
                "irq:27 eth0 @0, 4.00us ago",
                "  nginx/812 (CPU 2) has been woken, and waits for a CPU, for 2.00us",
                "    irq:27@0 25%, raise:NET_RX@0 25%, waking:812@0 50%",
                "  kworker/0:1/9 (CPU 0) waits for a spinlock, for 3.00us",
                "    irq:27@0 12%, waking:9@0 12%, switch:9(kworker/0:1)/120@0 0%, lock:9@0 75%",
            ]
        );
    }

    #[test]
    fn another_interrupt_of_the_same_time_is_another_root() {
        let other = PENDING.replace("irq:27@0", "irq:28@1");
        assert_eq!(of(&format!("{PENDING}{other}")).len(), 3);
        let later = PENDING.replace("start=6000", "start=6001");
        assert_eq!(of(&format!("{PENDING}{later}")).len(), 3);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let lines = || (0..10).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(cut(lines(), None), lines());
        assert_eq!(cut(lines(), Some(11)), lines());
        assert_eq!(cut(lines(), Some(4)), ["0", "1", "... 8 more lines"]);
    }

    #[test]
    fn an_instance_without_a_wake_chain_in_flight_has_a_message() {
        assert_eq!(summary("chain", &[]), "chain: no wake chain is in flight");
    }
}
