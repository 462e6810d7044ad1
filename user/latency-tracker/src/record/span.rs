// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `record --events-for`: records all events that an analysis reads, for a while, without an instance.
//!
//! A flight recorder overwrites its oldest events, and a snapshot saves the remaining events. Here LTTng writes all
//! events to disk instead, so that an analysis of the whole time is complete; discarded events are reported. A short
//! recording, which is not kept, shows the cost before the recording starts.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::capture::{Captures, size_of};
use lt_common::exec::quoted_if_odd;
use lt_common::lttng::events::Known;
use lt_common::lttng::recording::{Recording, Source, Told, Wanted};
use lt_common::lttng::{self, Daemon};
use lt_common::out::{self, bytes, note, plural, thousands};
use lt_common::wait::Signals;
use lt_proc::{Nanos, ProcRoot};

use super::SAMPLE;
use super::analyses::{Analysis, events_for};
use super::args::RecordArgs;
use super::estimate::{Estimate, count};
use super::flight::say_missing;
use super::leftovers::{self, Note};
use super::room::room;

/// Default directory of these traces.
const TRACES: &str = "/var/lib/latency-tracker/traces";

/// How often LTTng writes to disk.
const READ: Duration = Duration::from_millis(200);

/// The events that LTTng writes only when a session starts.
const ONCE: &str = "lttng_statedump_";

pub(super) fn run(root: &ProcRoot, args: &RecordArgs) -> Result<Outcome> {
    let signals = Signals::catch()?;
    lttng::make_run_dir()?;
    leftovers::clean(root);
    let place = args.output.as_deref().unwrap_or(Path::new(TRACES));
    let traces = Captures::open(place).with_context(|| {
        format!(
            "cannot save traces in {}: choose another directory with -o",
            place.display()
        )
    })?;
    let mut partial = traces.partial()?;
    let trace = partial.path.join("trace");

    // The values from here on are dropped in reverse order, which is the order of the cleanup.
    let mut left = Note::new();
    left.update(|owned| owned.directory = Some(partial.path.clone()));
    let _daemon = Daemon::ensure(|pid| left.has_daemon(pid))?;
    let (events, calls) = wanted(args)?;
    let mut often = events.clone();
    often.retain(|event| !event.starts_with(ONCE));
    let (events, often) = (events.join(","), often.join(","));
    let name = lttng::session_name("events", std::process::id());
    left.update(|owned| owned.session = Some(name.clone()));
    let wanted = Wanted {
        pid: None,
        sources: &sources(&events, calls.as_deref()),
        buffers: args.buffers(),
        format: args.trace_format,
        read_timer: READ,
    };
    let sample = Wanted {
        sources: &sources(&often, calls.as_deref()),
        ..wanted
    };
    note("measuring the cost for a second");
    match cost(&name, &partial.path, &sample, args.duration, &signals) {
        Ok(Some(cost)) => out::line(&cost)?,
        Ok(None) => return Ok(Outcome::Fine),
        Err(error) => note(&format!("cannot estimate the cost: {error:#}")),
    }
    out::line(&format!("disk: {}", room(traces.path())))?;
    let recording = Recording::start(&name, &trace, &wanted)?;
    let begun = Instant::now();
    match args.duration {
        Some(time) => note(&format!("recording for {}", time.exact())),
        None => note("recording until Ctrl-C"),
    }
    signals.wait(None, args.duration.map(|time| begun + time.into()))?;
    let took = begun.elapsed();
    let stopped = recording.stop();
    // The trace may be moved once the session is gone.
    drop(recording);
    // If the session or its daemon has ended early, what it wrote is kept.
    if let Err(error) = &stopped {
        note(&format!("{error:#}"));
        note(&room(traces.path()));
    }
    // On a full disk, the trace is kept as it is.
    if let Err(error) = lttng::sign_trace(&trace) {
        note(&format!("not prepared for Trace Compass: {error:#}"));
        note(&room(traces.path()));
    }
    let alone = traces.alone()?;
    let number = traces.number(&mut partial)?;
    drop(alone);
    let path = traces.keep(partial, number)?.join("trace");
    let Ok(told) = stopped else {
        note(&format!(
            "the trace may be incomplete, and its losses are unknown: {}",
            path.display()
        ));
        return Ok(Outcome::Wrong);
    };
    report(&path, took, told)?;
    for analysis in &args.events_for {
        out::line(&next(*analysis, &path))?;
    }
    Ok(Outcome::Fine)
}

/// The events and system calls to record. Reports the events for which LTTng has no probe.
fn wanted(args: &RecordArgs) -> Result<(Vec<String>, Option<String>)> {
    let (mut events, calls) = events_for(&args.events_for);
    let known = Known::ask()?;
    known.check(&args.events)?;
    for event in &args.events {
        if !events.contains(event) {
            events.push(event.clone());
        }
    }
    let (there, missing) = known.split(events);
    if there.is_empty() && calls.is_none() {
        bail!("LTTng has probes for none of the events; `latency-tracker check` shows why");
    }
    say_missing(missing);
    Ok((there, calls))
}

/// These tracepoints, separated by commas, and system calls.
fn sources<'a>(events: &'a str, calls: Option<&'a str>) -> Vec<Source<'a>> {
    let tracepoints = (!events.is_empty()).then_some(Source::Tracepoints(events));
    let calls = calls.map(Source::Syscalls);
    tracepoints.into_iter().chain(calls).collect()
}

/// Estimates the cost of a recording of length `time` from a short recording, made below `directory` and removed.
/// Returns `None` if a signal came.
fn cost(
    name: &str,
    directory: &Path,
    wanted: &Wanted<'_>,
    time: Option<Nanos>,
    signals: &Signals,
) -> Result<Option<String>> {
    let directory = tempfile::tempdir_in(directory)?;
    let trace = directory.path().join("trace");
    let recording = Recording::start(name, &trace, wanted)?;
    let begun = Instant::now();
    if !signals.sleep(SAMPLE)? {
        return Ok(None);
    }
    let took = begun.elapsed();
    let told = recording.stop()?;
    let estimate = Estimate::measure(&trace, wanted.buffers, took, &[])?;
    Ok(Some(estimate.of_recording(told != Told::default(), time)))
}

/// Prints the amount of recorded data, its rate, and losses.
fn report(trace: &Path, took: Duration, told: Told) -> Result<()> {
    let size = size_of(trace);
    let seconds = took.as_secs_f64();
    let events = count(trace, &[]).map(|count| count.all);
    let recorded = match events {
        Some(events) => format!(
            "{} events ({:.0} a second), ",
            thousands(events),
            events as f64 / seconds
        ),
        None => String::new(),
    };
    out::line(&format!(
        "recorded {recorded}{} ({}/s) in {seconds:.1} s: {}",
        bytes(size),
        bytes((size as f64 / seconds) as u64),
        trace.display()
    ))?;
    if told.discarded > 0 || told.packets > 0 {
        note(&format!(
            "LTTng discarded {} and {}: what they touch is not measured; larger buffers help \
             (--subbuf-size, --num-subbuf), or fewer analyses at a time",
            plural(told.discarded as usize, "event"),
            plural(told.packets as usize, "packet")
        ));
    }
    Ok(())
}

/// The command that analyzes the trace.
fn next(analysis: Analysis, trace: &Path) -> String {
    use clap::ValueEnum;
    let name = analysis
        .to_possible_value()
        .map(|value| value.get_name().to_string())
        .unwrap_or_default();
    let tid = match analysis {
        Analysis::Path => " --tid TID",
        _ => "",
    };
    let trace = quoted_if_odd(&trace.display().to_string());
    format!("next: latency-tracker analyze {name} {trace}{tid}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_can_be_pasted() {
        let trace = Path::new("/srv/it's/0001/trace");
        assert_eq!(
            next(Analysis::Irq, trace),
            "next: latency-tracker analyze irq '/srv/it'\\''s/0001/trace'"
        );
        assert!(next(Analysis::Path, trace).ends_with(" --tid TID"));
        assert!(next(Analysis::Delays, trace).ends_with("/trace'"));
    }
}
