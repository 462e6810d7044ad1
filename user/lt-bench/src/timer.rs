// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench timer`: how late a periodic real-time task is woken, and by which wake chain.
//!
//! A thread on each CPU under test runs the cycle of [`super::cycle`]. An instance of the tracker
//! tree follows the timers that wake these threads. Its alerts have the wake chain from the time
//! when a timer was due to the switch to the thread. The alert of a late cycle is about its thread,
//! and was raised between the time when the cycle was due and the time when it ran.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use lt_common::Outcome;
use lt_common::chain;
use lt_common::out::{self, Colour, note};
use lt_common::wait::{Signals, Wake};
use lt_proc::{Alert, Nanos, ProcRoot};
use lt_readiness::Root;
use serde::Serialize;

use super::alerts::{Gaps, Tail};
use super::args::TimerArgs;
use super::arm::{self, Armed, Lost, Wanted};
use super::cycle::{self, Found, Late, Monotonic, Plan};
use super::hold::{self, Held, START, Subject, Wish};
use super::others::{self, Tool, Turn};
use super::phase::PLAIN;
use super::place::Place;
use super::report::{self, Machine, Series};
use super::{plot, show};
use crate::measure::Curve;

/// With --compare, each tool has this many turns.
const TURNS: u64 = 3;
/// How often alerts are read.
const LOOK: Duration = Duration::from_millis(20);
/// At most this many late cycles are shown, the longest delay first; --json has all.
const SHOWN: usize = 10;

/// A late cycle, and why.
#[derive(Debug, Serialize)]
struct Cycle {
    cpu: u32,
    tid: i32,
    /// When it was due, CLOCK_MONOTONIC ns.
    due: u64,
    /// How late it was, ns.
    late: u64,
    /// The cause, in a sentence.
    cause: String,
    /// The alert with the wake chain.
    alert: Option<Alert>,
}

/// The results of another tool.
#[derive(Debug, Serialize)]
struct Compared {
    name: String,
    samples: u64,
    min: Option<u64>,
    mean: Option<f64>,
    max: Option<u64>,
    percentiles: std::collections::BTreeMap<&'static str, u64>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Report<'a> {
    bench: &'static str,
    version: u32,
    #[serde(flatten)]
    machine: Machine,
    cpus: String,
    isolated: bool,
    priority: i32,
    held: &'a [String],
    /// The period, ns.
    interval: u64,
    threshold: u64,
    series: Vec<Series>,
    late: Vec<Cycle>,
    /// Cycles that were skipped because their time had passed.
    missed: u64,
    compared: Vec<Compared>,
    complete: bool,
    lost: Lost,
    passed: bool,
    failed: Vec<String>,
}

/// The results of the thread on a CPU, from all turns.
#[derive(Debug)]
struct OfCpu {
    cpu: u32,
    found: Found,
    late: Vec<(i32, Late)>,
}

pub(super) fn run(root: &ProcRoot, args: &TimerArgs) -> Result<Outcome> {
    let place = Place::here(&args.cpu)?;
    report::check_outputs(&args.output)?;
    let machine = Root::new("/");
    let mut tools = match args.compare {
        true => others::tools(&machine)?,
        false => Vec::new(),
    };
    let signals = Signals::catch()?;
    let armed = Armed::new(root, vec![tree(args)], None)?;
    let wish = Wish {
        priority: args.priority,
        dma_latency: args.dma_latency,
    };
    let (held, ()) = Held::take(wish, &place, "the cycle", || Ok(()))?;
    for line in held.said.iter().chain(armed.said().as_ref()) {
        note(&format!("holds {line}"));
    }
    note("running; Ctrl-C ends it, and the kernel releases what it holds");

    let mut bench = Bench {
        args,
        place: &place,
        signals: &signals,
        tail: Tail::open(root)?,
        alerts: Vec::new(),
        cpus: place.cpus.iter().map(OfCpu::new).collect(),
    };
    bench.measure(&armed, &mut tools)?;
    let lost = armed.lost(0, bench.tail.missing.unread())?;
    let guest = machine.cpu_flag("hypervisor").ok();
    let theirs: Vec<Curve> = tools.into_iter().flat_map(|tool| tool.curves).collect();
    let report = bench.report(&held, guest, lost, &theirs);
    let mut curves: Vec<Curve> = report.series.iter().map(Series::curve).collect();
    curves.extend(theirs);
    let title = report.machine.title(report.bench, &report.cpus);
    report::write(&args.output, &report, &title, &curves)?;
    match args.json {
        true => out::json(&report)?,
        false => report.show(&curves)?,
    }
    Ok(match report.passed {
        true => Outcome::Fine,
        false => Outcome::Alert,
    })
}

/// Returns the instance that follows the timers of our threads. Its threshold is half of what makes
/// a cycle late, since a part of the delay may have passed after the switch.
fn tree(args: &TimerArgs) -> Wanted {
    Wanted {
        tracker: "tree",
        settings: vec![
            arm::setting("threshold", format!("{}ns", args.threshold.0 / 2)),
            arm::setting("origin", "timer"),
            arm::setting("pid", std::process::id()),
        ],
    }
}

impl OfCpu {
    fn new(cpu: u32) -> Self {
        Self {
            cpu,
            found: Found::default(),
            late: Vec::new(),
        }
    }

    fn add(&mut self, tid: i32, new: &Found) {
        self.found.samples.merge(&new.samples);
        self.found.peaks += new.peaks;
        self.found.missed += new.missed;
        self.late.extend(new.late.iter().map(|late| (tid, *late)));
    }

    fn cycles(&self) -> u64 {
        self.found.samples.count()
    }
}

struct Bench<'a> {
    args: &'a TimerArgs,
    place: &'a Place,
    signals: &'a Signals,
    tail: Tail,
    /// The alerts of our threads.
    alerts: Vec<Alert>,
    cpus: Vec<OfCpu>,
}

impl Bench<'_> {
    /// Runs turn after turn, our own and then the other tools', until all are done or a signal
    /// arrives.
    fn measure(&mut self, armed: &Armed<'_>, tools: &mut [Tool]) -> Result<()> {
        let turns = if tools.is_empty() { 1 } else { TURNS };
        let stop = AtomicBool::new(false);
        for turn in 0..turns {
            let plan = self.plan(turns - turn, turns);
            armed.switch(true)?;
            let ran = self.turn(&plan, &stop);
            armed.switch(false)?;
            ran?;
            let theirs = Turn {
                cpus: &self.place.cpus,
                priority: self.args.priority,
                interval: plan.interval,
                cycles: plan.cycles.min(plan.length / plan.interval).max(1),
            };
            for tool in tools.iter_mut() {
                if stop.load(Ordering::Relaxed) || !self.other(tool, &theirs)? {
                    return Ok(());
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the plan of the next turn, when `left` of `turns` turns are left.
    fn plan(&self, left: u64, turns: u64) -> Plan {
        let done = self.cpus.iter().map(OfCpu::cycles).min().unwrap_or(0);
        let (cycles, length) = match self.args.loops {
            Some(loops) => (loops.saturating_sub(done).div_ceil(left), u64::MAX),
            None => (u64::MAX, self.args.duration.0 / turns),
        };
        let kept = self.cpus.iter().map(|cpu| cpu.late.len()).sum::<usize>();
        Plan {
            interval: self.args.interval.0,
            cycles,
            length,
            threshold: self.args.threshold.0,
            keep: self.args.max_causes.saturating_sub(kept) / self.cpus.len().max(1),
        }
    }

    /// Runs another tool's turn. The tool may use the CPUs under test, which this thread avoids.
    fn other(&self, tool: &mut Tool, turn: &Turn<'_>) -> Result<bool> {
        let own = hold::affinity();
        hold::pin(&self.place.cpus.or(&own))?;
        let ran = tool.run(turn, self.signals);
        hold::pin(&own)?;
        ran
    }

    /// Runs a thread on each CPU, and reads the alerts meanwhile.
    fn turn(&mut self, plan: &Plan, stop: &AtomicBool) -> Result<()> {
        let priority = self.args.priority;
        let cpus: Vec<u32> = self.cpus.iter().map(|of| of.cpu).collect();
        // The threads, each with a flag that is set once the thread has its CPU.
        let subjects: Vec<(Subject, AtomicBool)> =
            cpus.iter().map(|_| Default::default()).collect();
        let begin = Instant::now();
        let results: Vec<Result<(i32, Found)>> = std::thread::scope(|scope| {
            let threads: Vec<_> = cpus
                .into_iter()
                .zip(&subjects)
                .map(|(cpu, (subject, has_started))| {
                    scope.spawn(move || {
                        subject.start(cpu, priority)?;
                        has_started.store(true, Ordering::Relaxed);
                        let tid = nix::unistd::gettid().as_raw();
                        Ok((tid, cycle::cycle(&Monotonic, plan, stop)))
                    })
                })
                .collect();
            let mut watched = Ok(());
            while !threads.iter().all(|thread| thread.is_finished()) {
                if let Err(error) = self.read_alerts() {
                    watched = watched.and(Err(error));
                }
                match self.signals.wait(None, Some(Instant::now() + LOOK)) {
                    Ok(Wake::Timeout | Wake::Ready) => {}
                    Ok(Wake::Signal) => stop.store(true, Ordering::Relaxed),
                    Err(error) => watched = Err(error),
                }
                let all = threads.iter().zip(&subjects);
                let waiting: Vec<&Subject> = all
                    .filter(|(thread, (_, has_started))| {
                        !thread.is_finished() && !has_started.load(Ordering::Relaxed)
                    })
                    .map(|(_, (subject, _))| subject)
                    .collect();
                if !waiting.is_empty() && begin.elapsed() > START && watched.is_ok() {
                    // Printed now: on PREEMPT_RT, a real-time task that never leaves its CPU also
                    // holds off RCU, for which the removal of the instance waits.
                    note("ending; on PREEMPT_RT, this waits until the other task leaves the CPU");
                    watched = Err(anyhow!(
                        "a cycle does not get its CPU ({}): does a task with a higher priority have it?",
                        self.place.cpus
                    ));
                }
                if watched.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                if stop.load(Ordering::Relaxed) {
                    waiting.iter().for_each(|subject| subject.rescue());
                }
            }
            let joined = threads.into_iter().map(|thread| {
                let joined = thread.join();
                joined.unwrap_or_else(|_| Err(anyhow!("a cycle has failed; please report this")))
            });
            let mut results: Vec<_> = joined.collect();
            results.extend(watched.err().map(Err));
            results
        });
        let read = self.read_alerts();
        let results = results.into_iter().collect::<Result<Vec<_>>>()?;
        read?;
        for (of, (tid, found)) in self.cpus.iter_mut().zip(results) {
            of.add(tid, &found);
        }
        Ok(())
    }

    fn read_alerts(&mut self) -> Result<()> {
        let (alerts, max_causes) = (&mut self.alerts, self.args.max_causes);
        self.tail.read(|alert| keep(alerts, max_causes, alert))
    }

    fn report<'h>(
        &self,
        held: &'h Held,
        guest: Option<bool>,
        mut lost: Lost,
        theirs: &[Curve],
    ) -> Report<'h> {
        let missing = &self.tail.missing;
        lost.dropped = missing.dropped();
        let mut late = Vec::new();
        let mut series = Vec::new();
        for of in &self.cpus {
            late.extend(of.late.iter().map(|(tid, cycle)| {
                let alert = path_of(&self.alerts, *tid, *cycle);
                Cycle {
                    cpu: of.cpu,
                    tid: *tid,
                    due: cycle.due,
                    late: cycle.by,
                    cause: cause(*cycle, alert, unknown(missing, lost, *cycle)),
                    alert: alert.cloned(),
                }
            }));
            let name = format!("CPU {}", of.cpu);
            if let Some(mut one) = Series::new(name, of.cpu, PLAIN, &of.found.samples) {
                one.peaks = of.found.peaks;
                series.push(one);
            }
        }
        let peaks: u64 = self.cpus.iter().map(|of| of.found.peaks).sum();
        lost.peaks = peaks.saturating_sub(late.len() as u64);
        let threshold = self.args.threshold;
        let cycles = out::plural(usize::try_from(peaks).unwrap_or(usize::MAX), "cycle");
        let many = (peaks > 0).then(|| format!("{cycles} late by {threshold} or more"));
        let failed: Vec<String> = many.into_iter().chain(lost.failed()).collect();
        Report {
            bench: "timer",
            version: 1,
            machine: Machine::here(guest),
            cpus: self.place.cpus.to_string(),
            isolated: self.place.isolated,
            priority: self.args.priority,
            held: &held.said,
            interval: self.args.interval.0,
            threshold: threshold.0,
            series,
            late,
            missed: self.cpus.iter().map(|of| of.found.missed).sum(),
            compared: theirs.iter().map(Compared::new).collect(),
            complete: lost.nothing(),
            lost,
            passed: failed.is_empty(),
            failed,
        }
    }
}

/// Returns the alert that belongs to a late cycle. It was raised when the thread was switched in,
/// after the cycle was due and before it ran.
fn path_of(alerts: &[Alert], tid: i32, cycle: Late) -> Option<&Alert> {
    let (from, to) = (cycle.due, cycle.due.saturating_add(cycle.by));
    let its =
        |alert: &&Alert| u64::try_from(tid) == Ok(alert.tid) && (from..=to).contains(&alert.time);
    alerts.iter().filter(its).max_by_key(|alert| alert.delay)
}

/// Keeps an alert of our threads. Returns false if there is no room for it.
fn keep(alerts: &mut Vec<Alert>, max_causes: usize, alert: Alert) -> bool {
    let is_mine = alert.tracker == "tree" && alert.pid == u64::from(std::process::id());
    // Only the alerts of late cycles that are kept are needed.
    if !is_mine || max_causes == 0 {
        return true;
    }
    // A late cycle usually has an alert. A thread also has other alerts, for delays above half the
    // threshold.
    let has_room = alerts.len() < 4 * max_causes;
    if has_room {
        alerts.push(alert);
    }
    has_room
}

/// Returns why the alert of a late cycle may be missing; `None` if no alert of its time is missing.
fn unknown(missing: &Gaps, lost: Lost, cycle: Late) -> Option<&'static str> {
    match missing.during(cycle.due, cycle.due.saturating_add(cycle.by)) {
        Some(why) => Some(why.text()),
        // The times of these operations are not recorded.
        None if lost.operations > 0 => Some("operations of this run were not followed"),
        None => None,
    }
}

/// Returns the sentence that names the cause. `unknown` is why the alert may be missing.
fn cause(cycle: Late, alert: Option<&Alert>, unknown: Option<&str>) -> String {
    let Some(alert) = alert else {
        return match unknown {
            Some(why) => format!("not recorded: {why}"),
            None => "no wake chain: the thread was woken in time and then preempted, or the cycle was due before the thread slept".into(),
        };
    };
    let verdict = chain::verdict(alert).unwrap_or_else(|| alert.subject());
    let rest = cycle.by.saturating_sub(alert.delay);
    match rest > cycle.by / 4 {
        true => format!(
            "{verdict}; {} more until it returned to user space",
            Nanos(rest)
        ),
        false => verdict,
    }
}

impl Compared {
    fn new(curve: &Curve) -> Self {
        Self {
            name: curve.name.clone(),
            samples: curve.count(),
            min: curve.min,
            mean: curve.mean,
            max: curve.max,
            percentiles: curve.percentiles().iter().map(|p| (p.name, p.ns)).collect(),
        }
    }
}

impl Report<'_> {
    fn show(&self, curves: &[Curve]) -> Result<()> {
        show::histograms(&self.series)?;
        let late = show::row(&self.series, "late", &|s| out::thousands(s.peaks));
        show::statistics(&self.series, "cycles", vec![late])?;
        if self.missed > 0 {
            let text = match self.missed {
                1 => "1 cycle was skipped: its time had passed".into(),
                n => format!(
                    "{} cycles were skipped: their time had passed",
                    out::thousands(n)
                ),
            };
            out::line(&text)?;
        }
        if self.lost.dropped > 0 {
            out::line(&format!(
                "Alerts dropped for lack of room: {}. Raise --max-causes or --threshold.",
                out::thousands(self.lost.dropped)
            ))?;
        }
        self.show_late()?;
        if !self.compared.is_empty() {
            out::line("")?;
            for line in plot::lines(&self.named(curves)) {
                out::line(&line)?;
            }
        }
        out::line("")?;
        if self.machine.guest == Some(true) {
            out::line("This is a virtual machine: its host may have caused the longest delays.")?;
        }
        let fine = format!("no cycle was late by {} or more", Nanos(self.threshold));
        show::verdict(&self.failed, &fine)
    }

    /// Returns the curves, with `bench timer` before the names of our own.
    fn named(&self, curves: &[Curve]) -> Vec<Curve> {
        let named = |(i, curve): (usize, &Curve)| Curve {
            name: match i < self.series.len() {
                true => format!("bench timer {}", curve.name),
                false => curve.name.clone(),
            },
            ..curve.clone()
        };
        curves.iter().enumerate().map(named).collect()
    }

    fn show_late(&self) -> Result<()> {
        let mut latest: Vec<&Cycle> = self.late.iter().collect();
        latest.sort_by_key(|cycle| std::cmp::Reverse(cycle.late));
        if latest.is_empty() {
            return Ok(());
        }
        let count = match latest.len() > SHOWN {
            true => format!(
                "The {SHOWN} longest delays of {} late cycles:",
                latest.len()
            ),
            false => "Late cycles:".into(),
        };
        out::line("")?;
        out::line(&out::paint(Colour::Bold, &count))?;
        for cycle in latest.iter().take(SHOWN) {
            let head = format!(
                "CPU {:<3} {:>8}  ",
                cycle.cpu,
                Nanos(cycle.late).to_string()
            );
            show::hanging(&head, &cycle.cause)?;
            for line in cycle.alert.iter().flat_map(chain::steps) {
                out::line(&line)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::alerts::{Missing, Why};
    use super::*;

    fn alert(tid: u64, time: u64, delay: u64) -> Alert {
        let line = format!(
            "seq=1 time={time} instance=bench_5_tree tracker=tree reason=threshold delay={delay} threshold=50000 cpu=1 \
             pid=5 tid={tid} comm=\"latency-tracker\" end=switch origin=timer irq=-1 action=\"\" more=0 \
             path=\"timer:hrtimer_wakeup@1+0 vector:local_timer@1+{delay} expire:hrtimer_wakeup@1+0 waking:{tid}@1+0 \
             switch:{tid}(latency-tracker)/4@1+0\""
        );
        Alert::parse(&line).unwrap()
    }

    #[test]
    fn a_cycle_has_the_path_of_its_own_thread_and_time() {
        let cycle = Late {
            due: 1_000_000,
            by: 200_000,
        };
        let alerts = [
            alert(7, 1_150_000, 150_000),
            alert(8, 1_190_000, 190_000),
            alert(7, 2_150_000, 150_000),
            alert(7, 990_000, 100_000),
        ];
        assert_eq!(path_of(&alerts, 7, cycle), Some(&alerts[0]));
        assert_eq!(path_of(&alerts, 9, cycle), None);
        let later = Late {
            due: 3_000_000,
            by: 200_000,
        };
        assert_eq!(path_of(&alerts, 7, later), None);
    }

    #[test]
    fn the_sentence_names_where_most_of_the_delay_passed() {
        let cycle = Late {
            due: 1_000_000,
            by: 200_000,
        };
        let said = cause(cycle, Some(&alert(7, 1_190_000, 190_000)), None);
        assert!(
            said.starts_with("most of the delay (190.0us, 100 %) passed"),
            "{said}"
        );
        assert!(!said.contains("more until"), "{said}");
        let said = cause(cycle, Some(&alert(7, 1_120_000, 120_000)), None);
        assert!(
            said.ends_with("80.00us more until it returned to user space"),
            "{said}"
        );
        assert!(cause(cycle, None, None).starts_with("no wake chain"));
    }

    #[test]
    fn a_cycle_whose_alert_may_be_missing_has_no_cause() {
        let cycle = |due| Late { due, by: 200_000 };
        let said = |missing: &Gaps, lost: Lost, cycle: Late| {
            cause(cycle, None, unknown(missing, lost, cycle))
        };
        let mut missing = Gaps::default();
        for (why, from, to, reason) in [
            (Why::Lost, 1_100_000, 1_150_000, "lost"),
            (Why::Unreadable, 2_000_000_000, 2_000_000_000, "parsed"),
            (Why::Dropped, 3_000_200_000, 3_000_200_000, "dropped"),
        ] {
            missing.add(Missing {
                why,
                count: 1,
                from,
                to,
            });
            let due = to - to % 1_000_000;
            let said = said(&missing, Lost::default(), cycle(due));
            assert!(said.starts_with("not recorded: alerts"), "{said}");
            assert!(said.contains(reason), "{said}");
        }
        // No alert of the time of this cycle is missing.
        let other = cycle(1_150_001);
        assert!(said(&missing, Lost::default(), other).starts_with("no wake chain"));
        let lost = Lost {
            operations: 1,
            ..Lost::default()
        };
        assert!(said(&missing, lost, other).starts_with("not recorded: operations"));
        // The alert of the cycle is there.
        let found = alert(7, 1_190_000, 190_000);
        let why = unknown(&missing, lost, cycle(1_000_000));
        let said = cause(cycle(1_000_000), Some(&found), why);
        assert!(said.starts_with("most of the delay"), "{said}");
    }

    #[test]
    fn only_alerts_of_our_threads_take_room() {
        let ours = Alert {
            pid: u64::from(std::process::id()),
            ..alert(7, 1, 1)
        };
        let mut alerts = Vec::new();
        let theirs = Alert {
            pid: ours.pid + 1,
            ..ours.clone()
        };
        let kept: Vec<bool> = (0..6)
            .map(|_| keep(&mut alerts, 1, theirs.clone()) && keep(&mut alerts, 1, ours.clone()))
            .collect();
        assert_eq!(kept, [true, true, true, true, false, false]);
        assert_eq!(alerts.len(), 4);
        assert!(keep(&mut Vec::new(), 0, ours), "no cause is wanted");
    }
}
