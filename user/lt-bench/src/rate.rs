// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench rate`: the highest rate of events at which LTTng loses none, and the cost of an event (Tables 4.4 and 4.3 of
//! Beamonte's thesis), for each way of waking LTTng's consumer.
//!
//! ```text
//!   search --> rate --> run: session, events at that rate, stop --> LTTng's counters --> lossless? --> search
//!                                                              `--> the trace, counted --'
//! ```
//!
//! A run is lossless if LTTng has discarded no event and lost no packet, the trace agrees, and the
//! trace has as many events as were generated. A run must be long enough: what fits into the
//! buffers is not lost, however slow the consumer is. A run therefore continues until its events have filled the
//! buffers of its CPU twice, but for at most ten times `--time`. How many times they filled the buffers is reported.

pub(super) mod args;
mod count;
mod emit;
mod report;
mod run;
mod search;
mod ust;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::exec;
use lt_common::lttng::{self, Buffers, Daemon};
use lt_common::out::{self, note};
use lt_common::wait::Signals;
use lt_proc::Nanos;
use lt_readiness::{ONLINE, Root};

use self::args::{Kind, Pace, RateArgs};
use self::report::{Mode, Report};
use self::run::{Run, Runner};
use self::search::{Answer, Next, Rules, Trial, Verdict};
use self::ust::Ust;
use super::args::{DmaLatency, Source};
use super::clock::Clock;
use super::guard::{Guard, Guarded};
use super::hold::{Held, Wish};
use super::place::Place;
use super::report as common;
use crate::measure::Record;

/// How long events are generated without LTTng.
const UNTRACED: Duration = Duration::from_millis(200);

pub(super) fn run(args: &RateArgs) -> Result<Outcome> {
    args.check()?;
    let place = Place::here(&args.cpu)?;
    let cpu = place.cpus.first().context("no CPU")?;
    if place.cpus.iter().count() != 1 {
        bail!("--cpu {}: events are generated on one CPU", place.cpus);
    }
    common::check_outputs(&args.output)?;
    let machine = Root::new("/");
    check_memory(&machine, args.buffers())?;
    if !exec::exists("lttng") {
        bail!("cannot run `lttng`; install the package lttng-tools");
    }
    let signals = Signals::catch()?;
    let traces = tempfile::Builder::new()
        .prefix("latency-tracker-rate-")
        .tempdir_in(&args.traces);
    let traces = traces.with_context(|| format!("--traces {}", args.traces.display()))?;
    let wish = Wish {
        priority: args.priority,
        dma_latency: DmaLatency(None),
    };
    let prepare = || Clock::prepare(Source::Auto);
    let (held, (clock, known)) =
        Held::take(wish, &place, "the thread that generates events", prepare)?;
    lttng::make_run_dir()?;
    // The daemon and its consumer run on the CPUs of this thread.
    let daemon = Daemon::ensure(|_| ())?;
    let session = lttng::session_name("rate", std::process::id());
    let _guard = Guard::start(&Guarded {
        session: Some(&session),
        daemon: daemon.started(),
        directory: Some(traces.path()),
        ..Guarded::default()
    })?;
    let ust = match args.kind {
        Kind::Ust => Some(Ust::start(cpu, args.priority)?.into()),
        _ => None,
    };
    for line in &held.said {
        note(&format!("holds {line}"));
    }
    note(&format!(
        "holds LTTng session {session} during each run, and {} for its trace",
        traces.path().display()
    ));
    if daemon.started().is_none() {
        note("LTTng's daemon was running before, and stays on the CPUs where it is");
    }
    note("running; Ctrl-C ends it");

    let mut runner = Runner {
        args,
        cpu,
        clock: &clock,
        signals: &signals,
        traces: traces.path(),
        session: &session,
        fastest: 0,
        ust,
    };
    let untraced = runner.untraced(UNTRACED)?;
    runner.fastest = untraced.rate();
    check_disk(traces.path(), &runner)?;
    let mut modes = Vec::new();
    let mut interrupted = untraced.events == 0;
    for read_timer in args.read_timers() {
        if interrupted {
            break;
        }
        let mode = measure(&runner, read_timer)?;
        interrupted = mode.interrupted;
        modes.push(mode);
    }
    let report = Report::new(args, &place, &held, &known, &untraced, modes, interrupted);
    report.write(&args.output)?;
    match args.json {
        true => out::json(&report)?,
        false => report.show()?,
    }
    Ok(match (interrupted, report.passed) {
        (true, _) => Outcome::Wrong,
        (_, true) => Outcome::Fine,
        (_, false) => Outcome::Alert,
    })
}

/// Searches in one mode.
fn measure(runner: &Runner<'_>, read_timer: Duration) -> Result<Mode> {
    let args = runner.args;
    let name = match read_timer.is_zero() {
        true => "no read timer".to_string(),
        false => format!("read timer {}", Nanos(read_timer.as_nanos() as u64)),
    };
    let rules = Rules {
        factor: 1.0 + args.resolution / 100.0,
        repeat: usize::try_from(args.repeat).unwrap_or(usize::MAX),
    };
    let (mut runs, mut trials) = (Vec::<Run>::new(), Vec::<Trial>::new());
    let mut each = Record::default();
    let (answer, interrupted) = loop {
        let asked = match wanted(args, rules, &trials) {
            Next::Done(answer) => break (answer, false),
            Next::Full => None,
            Next::Try(rate) => Some(rate),
        };
        let Some((run, made)) = runner.run(read_timer, asked)? else {
            break (search::so_far(&trials), true);
        };
        note(&format!("{name}: {run}"));
        trials.push(Trial {
            asked,
            made: run.made,
            lossless: run.lossless,
        });
        if asked.is_none() || args.rate.is_some() {
            each.merge(&made.each);
        }
        runs.push(run);
    };
    Ok(Mode::new(name, read_timer, answer, runs, each, interrupted))
}

/// Returns the next step: a step of the search, or a run at the requested rate.
fn wanted(args: &RateArgs, rules: Rules, trials: &[Trial]) -> Next {
    let Some(pace) = args.rate else {
        return search::next(rules, trials);
    };
    let lossy = trials.iter().find(|trial| !trial.lossless);
    if let Some(lossy) = lossy {
        return Next::Done(Answer {
            verdict: Verdict::Lossy,
            lossless: None,
            lossy: Some(lossy.made),
        });
    }
    match (trials.len() < rules.repeat, pace) {
        (true, Pace::Full) => Next::Full,
        (true, Pace::Events(rate)) => Next::Try(rate),
        (false, pace) => Next::Done(Answer {
            verdict: match pace {
                Pace::Full => Verdict::NoLoss,
                Pace::Events(_) => Verdict::Found,
            },
            lossless: trials.iter().map(|trial| trial.made).min(),
            lossy: None,
        }),
    }
}

/// Checks that the buffers fit into memory. LTTng allocates buffers for all online CPUs. If they
/// are too large, its error does not name the reason, or the kernel reclaims memory from other
/// processes.
fn check_memory(machine: &Root, buffers: Buffers) -> Result<()> {
    let cpus = machine.cpus(ONLINE).map_or(1, |cpus| cpus.iter().count()) as u64;
    let Ok(meminfo) = machine.text("/proc/meminfo") else {
        return Ok(());
    };
    let Some(available) = available(&meminfo) else {
        return Ok(());
    };
    let need = buffers.num_subbuf * buffers.subbuf_size * cpus;
    match need > available / 10 * 8 {
        false => Ok(()),
        true => bail!(
            "the buffers, {} x {} on each of {cpus} CPUs, take {}, which is more than four fifths of the {} that are \
             available: choose others with --buffers, such as 8x1M",
            buffers.num_subbuf,
            out::bytes(buffers.subbuf_size),
            out::bytes(need),
            out::bytes(available)
        ),
    }
}

/// Returns the available memory in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib << 10)
}

/// Checks that the trace of a run fits on the disk, where it stays until it is counted. A full disk
/// would look like a slow one.
fn check_disk(traces: &Path, runner: &Runner<'_>) -> Result<()> {
    let Ok(disk) = nix::sys::statvfs::statvfs(traces) else {
        return Ok(());
    };
    let free = disk.blocks_available() * disk.fragment_size();
    let need = runner.largest();
    match need > free {
        false => Ok(()),
        true => bail!(
            "the trace of a run may have up to {}, and {} has {} free: choose another place with --traces, or smaller \
             buffers with --buffers, or a shorter --time",
            out::bytes(need),
            traces.display(),
            out::bytes(free)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_memory_lacks_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc")).unwrap();
        std::fs::create_dir_all(dir.path().join("sys/devices/system/cpu")).unwrap();
        std::fs::write(dir.path().join("sys/devices/system/cpu/online"), "0-3\n").unwrap();
        let text = "MemTotal:       1048576 kB\nMemAvailable:    655360 kB\n";
        std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
        let root = Root::new(dir.path());
        let of = |num_subbuf| Buffers {
            subbuf_size: 4 << 20,
            num_subbuf,
        };
        assert!(check_memory(&root, of(32)).is_ok());
        let error = check_memory(&root, of(64)).unwrap_err().to_string();
        assert!(error.contains("64 x 4 MiB on each of 4 CPUs"), "{error}");
        assert!(
            error.contains("1 GiB") && error.contains("640 MiB"),
            "{error}"
        );
        assert_eq!(available("MemFree: 5 kB\n"), None);
    }
}
