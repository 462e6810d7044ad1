// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench loop`: slices with rests between them. Each slice has a separate thread for each CPU
//! under test, so that the priority and affinity end with the slice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use lt_common::Outcome;
use lt_common::instance;
use lt_common::out::note;
use lt_common::wait::{Signals, Wake};
use lt_proc::ProcRoot;
use lt_readiness::Root;

use super::Explain;
use super::args::LoopArgs;
use super::arm::{self, Armed};
use super::clock::Clock;
use super::hold::{Held, START, Subject, Wish};
use super::inside;
use super::peak::Where;
use super::phase::{ARMED, BASELINE, PLAIN, Phase};
use super::place::Place;
use super::probe;
use super::report::{self, Report};
use super::spin::{self, Found, Mail, Plan};
use super::watch::{Limits, Watch};
use super::{args::EventKind, show};

/// How long a CPU that is not isolated is left to other tasks after a slice.
const REST: Duration = Duration::from_millis(50);

pub(super) fn run(root: &ProcRoot, args: &LoopArgs, explain: Explain) -> Result<Outcome> {
    if args.in_kernel && !args.yes {
        bail!(
            "--in-kernel turns off the interrupts of CPUs under test, at most 1 ms at a time: everything there waits \
             that long; add --yes if that is what you want"
        );
    }
    let place = Place::here(&args.cpu)?;
    report::check_outputs(&args.output)?;
    let signals = Signals::catch()?;
    if args.in_kernel {
        instance::load_module(root)?;
    }
    let wanted = arm::of_loop(args, &place);
    let armed = Armed::new(root, wanted, args.snapshot.as_deref())?;
    let wish = Wish {
        priority: args.priority,
        dma_latency: args.dma_latency,
    };
    let (what, prepare): (_, Box<dyn FnOnce() -> Result<_>>) = match args.in_kernel {
        true => {
            let hwnoise = inside::open(root)?;
            let what = "slices of the loop with interrupts off";
            (what, Box::new(|| inside::prepare(hwnoise)))
        }
        false => ("the loop", Box::new(|| Clock::prepare(args.clock))),
    };
    let (held, (clock, known)) = Held::take(wish, &place, what, prepare)?;
    if known.is_slow() {
        note(
            "reading the clock takes as long as a system call: the kernel does not rely on the processor's clock \
             (see `latency-tracker check --rt`, row clock source)",
        );
    }
    let machine = Root::new("/");
    let at = Where {
        guest: machine.cpu_flag("hypervisor").ok(),
        smi: place
            .cpus
            .first()
            .is_some_and(|cpu| probe::has_smi(&machine, cpu)),
        inside: args.in_kernel,
    };
    let watchers = armed
        .said()
        .map(|said| format!("in every second slice: {said}"));
    for line in held.said.iter().chain(watchers.as_ref()) {
        note(&format!("holds {line}"));
    }
    if !place.isolated {
        let rest = rest(args, &place);
        note(&format!(
            "CPU {}: not isolated, so the results include other tasks; rests {} ms after each slice; \
             `latency-tracker check --rt {}` shows how to isolate it",
            place.cpus,
            rest.as_millis(),
            place.cpus
        ));
    }
    note("running; Ctrl-C ends it, and the kernel releases what it holds");

    let limits = Limits {
        causes: args.max_causes,
        snapshots: args.max_snapshots,
        stop: args.stop,
    };
    let mut watch = Watch::new(&clock, root, &armed, limits, at, place.cpus.iter());
    let names: &[&'static str] = match args.compares() {
        true => &[BASELINE, ARMED],
        false => &[PLAIN],
    };
    let mut bench = Bench {
        root,
        args,
        place: &place,
        clock: &clock,
        armed: &armed,
        signals: &signals,
        phases: names
            .iter()
            .map(|name| Phase {
                name,
                found: place
                    .cpus
                    .iter()
                    .map(|cpu| (cpu, Found::default()))
                    .collect(),
            })
            .collect(),
    };
    bench.measure(&mut watch)?;
    let events = bench.phases.iter().filter(|phase| phase.name == ARMED);
    let events = events
        .flat_map(|phase| &phase.found)
        .map(|(_, found)| found.events)
        .sum();
    let mut lost = armed.lost(events, watch.unread())?;
    let peaks: u64 = bench
        .phases
        .iter()
        .flat_map(|p| &p.found)
        .map(|(_, f)| f.peaks)
        .sum();
    lost.peaks = peaks.saturating_sub(watch.peaks.len() as u64);
    for peak in &mut watch.peaks {
        peak.explanation = peak
            .capture
            .as_ref()
            .map(|capture| explanation(capture, explain));
    }
    let report = Report::new(
        args,
        &place,
        &held,
        &known,
        at,
        &bench.phases,
        &watch.peaks,
        lost,
    );
    report.write(&args.output)?;
    match args.json {
        true => lt_common::out::json(&report)?,
        false => show::show(&report)?,
    }
    Ok(report.outcome())
}

/// Returns the explanation of a peak from the trace of its capture. Runs in a separate thread, at
/// ordinary priority.
fn explanation(capture: &std::path::Path, explain: Explain) -> String {
    let read = || -> Result<String> {
        #[derive(serde::Deserialize)]
        struct Alerts {
            alerts: Vec<lt_proc::Alert>,
        }
        let text = std::fs::read_to_string(capture.join("alert.json"))?;
        let record: Alerts = serde_json::from_str(&text)?;
        Ok(explain(&capture.join("trace"), &record.alerts)?.join("\n"))
    };
    let explained = std::thread::scope(|scope| scope.spawn(read).join());
    match explained {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => format!("No explanation: {error:#}"),
        Err(_) => "No explanation: the reader of the trace failed.".into(),
    }
}

fn rest(args: &LoopArgs, place: &Place) -> Duration {
    match args.rest {
        Some(rest) => rest.into(),
        None if place.isolated => Duration::ZERO,
        None => REST,
    }
}

struct Bench<'a> {
    root: &'a ProcRoot,
    args: &'a LoopArgs,
    place: &'a Place,
    clock: &'a Clock,
    armed: &'a Armed<'a>,
    signals: &'a Signals,
    phases: Vec<Phase>,
}

impl Bench<'_> {
    /// Runs slice after slice, of each phase in turn, until all phases are done, a signal arrives,
    /// or a peak ends the run (`--stop`).
    fn measure(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        let stop = AtomicBool::new(false);
        let rest = rest(self.args, self.place);
        loop {
            let mut more = false;
            for i in 0..self.phases.len() {
                let Some(plan) = self.plan(i) else { continue };
                more = true;
                let armed = self.phases[i].name == ARMED;
                if armed {
                    self.armed.switch(true)?;
                }
                let slice = self.slice(i, &plan, watch, &stop);
                if armed {
                    self.armed.switch(false)?;
                }
                slice?;
                if stop.load(Ordering::Relaxed) || (!rest.is_zero() && !self.signals.sleep(rest)?) {
                    return Ok(());
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Returns the next slice of a phase; `None` if the phase is done.
    fn plan(&self, i: usize) -> Option<Plan> {
        let slice = self.args.slice.0.max(1);
        let found = self.phases[i].found.iter().map(|(_, found)| found.loops());
        let (length, loops) = match self.args.loops {
            // The number applies to each CPU; the CPU with the fewest loops determines what is
            // left.
            Some(loops) => (slice, loops.saturating_sub(found.min().unwrap_or(0))),
            None => {
                let all = self.args.duration.0 / self.phases.len() as u64;
                let measured = self.phases[i]
                    .found
                    .iter()
                    .map(|(_, found)| found.measured());
                let left = all.saturating_sub(measured.min().unwrap_or(0));
                (slice.min(left), u64::MAX)
            }
        };
        let event = (self.args.event == EventKind::Syscall)
            .then(|| self.args.rate.map_or(0, |rate| 1_000_000_000 / rate));
        (length > 0 && loops > 0).then_some(Plan {
            length,
            loops,
            warm_up: self.args.warm_up,
            threshold: self.args.threshold.0,
            event,
            burst: self.args.burst.map(|burst| (burst.on, burst.off)),
        })
    }

    /// Runs a thread on each CPU, and watches them from this thread.
    fn slice(
        &mut self,
        i: usize,
        plan: &Plan,
        watch: &mut Watch<'_>,
        stop: &AtomicBool,
    ) -> Result<()> {
        let cpus: Vec<u32> = self.place.cpus.iter().collect();
        let mails: Vec<Mail> = cpus.iter().map(|_| Mail::default()).collect();
        let subjects: Vec<Subject> = cpus.iter().map(|_| Subject::default()).collect();
        let (go, clock, priority) = (AtomicBool::new(false), self.clock, self.args.priority);
        let done = &self.phases[i].found;
        // If the number of loops is given, each CPU runs the loops that are left for it.
        let plans: Vec<Plan> = done
            .iter()
            .map(|(_, found)| match self.args.loops {
                Some(loops) => Plan {
                    loops: loops.saturating_sub(found.loops()),
                    ..*plan
                },
                None => *plan,
            })
            .collect();
        let (root, in_kernel) = (self.root, self.args.in_kernel);
        let begin = Instant::now();
        let results: Vec<Result<Found>> = std::thread::scope(|scope| {
            let threads: Vec<_> = cpus
                .iter()
                .zip(&subjects)
                .zip(&mails)
                .zip(&plans)
                .map(|(((cpu, subject), mail), plan)| {
                    let go = &go;
                    scope.spawn(move || {
                        subject.start(*cpu, priority)?;
                        let mut hwnoise = in_kernel.then(|| inside::open(root)).transpose()?;
                        mail.is_mine();
                        while !go.load(Ordering::Acquire) {
                            if stop.load(Ordering::Relaxed) {
                                return Ok(Found::default());
                            }
                            std::hint::spin_loop();
                        }
                        match &mut hwnoise {
                            Some(hwnoise) => inside::measure(hwnoise, clock, plan, mail, stop),
                            None => Ok(spin::spin(clock, plan, mail, stop)),
                        }
                    })
                })
                .collect();
            let mut watched = Ok(());
            let mut started = false;
            loop {
                let ended = threads.iter().all(|thread| thread.is_finished());
                if ended {
                    break;
                }
                let stops = stop.load(Ordering::Relaxed);
                if !started
                    && !stops
                    && mails
                        .iter()
                        .zip(&threads)
                        .all(|(m, t)| m.tid() != 0 || t.is_finished())
                {
                    watch.begin(self.phases[i].name, &mails);
                    go.store(true, Ordering::Release);
                    started = true;
                }
                if !started && begin.elapsed() > START {
                    watched = Err(anyhow!(
                        "a loop does not get its CPU ({}): does a task with a higher priority have it?",
                        self.place.cpus
                    ));
                    stop.store(true, Ordering::Relaxed);
                }
                if started && watched.is_ok() {
                    watched = watch.look(&mails, stop);
                }
                let next = Instant::now() + Duration::from_millis(1);
                match self.signals.wait(None, Some(next)) {
                    Ok(Wake::Timeout | Wake::Ready) => {}
                    Ok(Wake::Signal) => stop.store(true, Ordering::Relaxed),
                    Err(error) => watched = watched.and(Err(error)),
                }
                if watched.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                if !started && stop.load(Ordering::Relaxed) {
                    let all = threads.iter().zip(&subjects);
                    let waiting = all.filter(|(thread, _)| !thread.is_finished());
                    waiting.for_each(|(_, subject)| subject.rescue());
                }
            }
            let joined = threads.into_iter().map(|thread| {
                let joined = thread.join();
                joined.unwrap_or_else(|_| Err(anyhow!("a loop has failed; please report this")))
            });
            let mut results: Vec<Result<Found>> = joined.collect();
            // Examines a peak at the very end of the slice.
            if started && watched.is_ok() {
                watched = watch.look(&mails, stop);
            }
            if let Err(error) = watched {
                results.push(Err(error));
            }
            results
        });
        let mut all = Vec::new();
        for result in results {
            all.push(result.context("the measurement ended early")?);
        }
        for ((_, found), new) in self.phases[i].found.iter_mut().zip(&all) {
            found.merge(new);
        }
        Ok(())
    }
}
