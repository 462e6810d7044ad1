// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `explain`: explains on one screen why an operation was late, from the trace around it. `record` writes this
//! explanation for each capture.
//!
//! ```text
//! alert of a request --block--> its life, the queue of the device, requests that overtook it
//! any other alert ----why-----> the critical path of its thread, or the activity of its CPU
//! all alerts --draw, page--> a trace for Perfetto, an HTML page, or its time lines
//!            --analyze/parquet--> rows of the alerts and their paths
//! ```

pub(crate) mod alone;
mod args;
mod block;
mod draw;
mod found;
mod page;
mod proofs;
mod resource;
mod runs;
mod why;

pub(crate) use self::args::{EXAMPLES, ExplainArgs};

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use lt_common::{Outcome, out};
use lt_proc::evidence::Evidence;
use lt_proc::{Alert, StreamLine};
use serde::{Deserialize, Serialize};

use self::proofs::ByThread;
use self::why::Why;
use crate::analyze::interrupted;
use crate::analyze::lanes::{bars_in_picture, bars_of_each};
use crate::analyze::parquet::{EXPLAIN, Output, ParquetArgs, edges};
use crate::analyze::show::Thread;
use crate::carried::{self, Carried};
use crate::trace::{self, Beside, Keep, Saved, Told, evidence};
use crate::ustack;

/// Maximum length of a line in an error: a file without alerts may have very long lines.
const LONGEST: usize = 200;

/// The JSON object that `--json` prints for each alert.
#[derive(Serialize)]
struct Report<'a> {
    alert: &'a Alert,
    /// When the alert was raised, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_utc: Option<String>,
    /// The largest part of the delay, in one or two sentences.
    verdict: Option<String>,
    /// The complete explanation, as text.
    text: String,
    /// The path, as `analyze path --json` prints it; only for the delay of a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<crate::analyze::show::Json>,
    #[serde(skip)]
    explained: Explained,
}

/// The explanation of an alert.
pub(crate) struct Explained {
    /// The explanation without the stacks of the alert, which [`with_stacks`] adds.
    pub(crate) text: String,
    /// Whether the trace starts too late to show the largest part of the delay; false for a request.
    pub(crate) is_cut: bool,
    /// The threads whose requests a disk served during the waits that the text names, except threads that have ended in
    /// the trace.
    pub(crate) served: Vec<Thread>,
}

/// The fields of `alert.json` that are needed here.
#[derive(Deserialize)]
struct Capture {
    alerts: Vec<Alert>,
    /// Sleeps that are not late themselves, but have stacks.
    #[serde(default)]
    sleeps: Vec<Alert>,
    /// Alerts that were overwritten before they were read.
    #[serde(default)]
    lost: u64,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome> {
    let files = [&args.perfetto, &args.html, &args.svg];
    out::file::check(files.into_iter().flatten())?;
    // This comes before signals are caught: a signal must end the process while it waits for alerts from a terminal or
    // a pipe.
    let asked = what(args)?;
    let (trace, alerts) = (&asked.trace, &asked.alerts[..asked.chosen]);
    let beside = ByThread::new(&asked.alerts);
    let interrupted = interrupted()?;
    let output = Output::open(&args.parquet, trace, EXPLAIN, recorded_with, &interrupted)?;
    let evidence = evidence::read(&args.capture)?.or(asked.evidence);
    let evidence = evidence.unwrap_or_default();
    let drawn = match (&args.perfetto, args.html.as_ref().or(args.svg.as_ref())) {
        (Some(_), _) => Threads::Needed,
        (None, Some(_)) => Threads::Drawn,
        (None, None) => Threads::Explained,
    };
    let goes_on = &mut || ();
    let (mut told, requests) = read(trace, alerts, &evidence, &interrupted, drawn, goes_on)?;
    if asked.is_capture {
        told.saved = Saved::Capture(trace.clone());
    }
    let reports = reports(
        &told,
        alerts,
        &evidence,
        &beside,
        requests,
        &interrupted,
        goes_on,
    )?;
    if let Some(file) = &args.perfetto {
        draw::draw(&told, &evidence, &beside, &reports, file, &interrupted)?;
    }
    let page = |bars| page::page(&told, &evidence, &beside, &reports, bars, &interrupted);
    if let Some(file) = &args.html {
        page(bars_of_each)?.write(file)?;
    }
    if let Some(file) = &args.svg {
        page(bars_in_picture)?.draw(file)?;
    }
    if let Some(output) = output {
        write_rows(output, &told, &reports, &interrupted)?;
    }
    for (i, report) in reports.iter().enumerate() {
        poll(&interrupted)?;
        if args.json {
            out::json(report)?;
            continue;
        }
        if i > 0 {
            out::line("")?;
        }
        for line in report.text.lines() {
            out::line(line)?;
        }
    }
    if args.verbose {
        told.say_how_fast();
    }
    Ok(Outcome::Fine)
}

/// Writes the rows of `--parquet`.
fn write_rows(
    output: Output,
    told: &Told,
    reports: &[Report<'_>],
    interrupted: &AtomicBool,
) -> Result<()> {
    let paths = reports.iter().map(|of| (of.alert, of.path.as_ref()));
    edges::explained(output, paths, told, interrupted)
}

/// Fails once a signal has set `interrupted`.
fn poll(interrupted: &AtomicBool) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

/// The task that was delayed: `fio/812`, or `swapper/1` for an idle CPU.
pub(crate) fn owner(alert: &Alert) -> String {
    let comm = out::printable(&alert.comm.text());
    match (alert.tid, comm.as_str()) {
        (0, "") => "an unknown task".into(),
        (0, idle) => idle.into(),
        (tid, comm) => format!("{comm}/{tid}"),
    }
}

/// What `explain` reads besides the trace's events.
struct Asked {
    trace: PathBuf,
    /// All alerts of a file, a capture or the trace; first those to explain, last those that are only evidence.
    alerts: Vec<Alert>,
    /// Number of alerts to explain.
    chosen: usize,
    /// Whether the alerts are from the `alert.json` of a capture.
    is_capture: bool,
    /// The evidence in the trace.
    evidence: Option<Evidence>,
}

/// Finds the trace, the alerts to explain, and the evidence in the trace.
fn what(args: &ExplainArgs) -> Result<Asked> {
    let inside = args.capture.join("trace");
    let trace = match inside.is_dir() {
        true => inside,
        false => args.capture.clone(),
    };
    let file = args.capture.join("alert.json");
    let about = || file.display().to_string();
    // A signal still ends the process.
    let never = AtomicBool::new(false);
    let mut sleeps = Vec::new();
    let mut is_capture = false;
    let (alerts, evidence) = match &args.alerts {
        Some(file) => {
            let alerts = lines(file)?;
            let carried = match evidence::file(&args.capture)? {
                Some(_) => Carried::default(),
                None => carried::read(&trace, &never).unwrap_or_default(),
            };
            (alerts, carried.evidence)
        }
        None if file.try_exists().with_context(about)? => {
            let capture = capture(&args.capture)?;
            sleeps = capture.sleeps;
            is_capture = true;
            (capture.alerts, None)
        }
        None => {
            // An unreadable directory is reported first.
            fs::read_dir(&args.capture).with_context(|| args.capture.display().to_string())?;
            let carried = carried::read(&trace, &never).unwrap_or_default();
            if carried.alerts.is_empty() {
                let interrupted = interrupted()?;
                let alerts = found::alerts(&trace, &args.seq, &interrupted)?;
                return Ok(Asked {
                    trace,
                    chosen: alerts.len(),
                    alerts,
                    is_capture,
                    evidence: None,
                });
            }
            (carried.alerts, carried.evidence)
        }
    };
    let is_chosen = |alert: &Alert| args.seq.is_empty() || args.seq.contains(&alert.seq);
    let (mut alerts, others): (Vec<_>, Vec<_>) = alerts.into_iter().partition(is_chosen);
    let chosen = alerts.len();
    if chosen == 0 {
        bail!("there is no such alert");
    }
    alerts.extend(others);
    alerts.extend(sleeps);
    Ok(Asked {
        trace,
        alerts,
        chosen,
        is_capture,
        evidence,
    })
}

/// The alerts of a capture, and the number of lost alerts.
pub(crate) fn saved(directory: &Path) -> Result<(Vec<Alert>, u64)> {
    let capture = capture(directory)?;
    Ok((capture.alerts, capture.lost))
}

/// Reads the `alert.json` of a capture.
fn capture(directory: &Path) -> Result<Capture> {
    let file = directory.join("alert.json");
    let about = || file.display().to_string();
    let text = fs::read_to_string(&file).with_context(about)?;
    serde_json::from_str(&text).with_context(about)
}

/// All alerts that were recorded with a trace: the alerts of its capture, alerts that a recorder sent along, or events
/// of the trace.
pub(crate) fn recorded_with(trace: &Path, interrupted: &AtomicBool) -> Result<Vec<Alert>> {
    let file = evidence::of_capture(trace, "alert.json")?;
    if let Some(capture) = file.as_deref().and_then(Path::parent) {
        return Ok(saved(capture)?.0);
    }
    // If the trace cannot be read, the analysis reports it.
    let carried = carried::read(trace, interrupted);
    poll(interrupted)?;
    let carried = carried.unwrap_or_default().alerts;
    if !carried.is_empty() {
        return Ok(carried);
    }
    Ok(found::all(trace, interrupted)?.unwrap_or_default())
}

/// The alerts in a file in the format of `alerts`.
fn lines(file: &Path) -> Result<Vec<Alert>> {
    let alert = |line| match line {
        StreamLine::Alert(alert) => Some(*alert),
        StreamLine::Lost(_) => None,
    };
    Ok(recorded(file)?.into_iter().filter_map(alert).collect())
}

/// The lines of a file in the format of `alerts`.
pub(crate) fn recorded(file: &Path) -> Result<Vec<StreamLine>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes)?;
    } else {
        bytes = fs::read(file).with_context(|| file.display().to_string())?;
    }
    let mut lines = Vec::new();
    // The name of a task may be in any encoding.
    for (i, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match StreamLine::parse(line) {
            Ok(line) => lines.push(line),
            Err(error) => {
                let wrong = format!("{}: {}", file.display(), error.at_line(i + 1));
                bail!(out::fit(&wrong, LONGEST))
            }
        }
    }
    Ok(lines)
}

/// Explains each alert as text: see [`explained`].
pub(crate) fn explain(
    trace: &Path,
    saved: Saved,
    alerts: &[Alert],
    beside: &[Alert],
    goes_on: &mut dyn FnMut(),
) -> Result<Vec<String>> {
    let all = explained(trace, saved, alerts, beside, goes_on)?;
    let each = all.into_iter().zip(alerts);
    let each = each.map(|(one, alert)| with_stacks(one.text, &stacks_of(alert)));
    Ok(each.collect())
}

/// Explains each alert of a capture as text, see [`explained`], and then writes the rows of `--parquet`. A failure to
/// write them is the second result, and changes no explanation.
pub(crate) fn explain_capture(
    trace: &Path,
    saved: Saved,
    alerts: &[Alert],
    beside: &[Alert],
    parquet: &ParquetArgs,
    goes_on: &mut dyn FnMut(),
) -> Result<(Vec<String>, Result<()>)> {
    let (told, reports) = told_and_reports(trace, saved, alerts, beside, goes_on)?;
    goes_on();
    let never = AtomicBool::new(false);
    let write = |output| write_rows(output, &told, &reports, &never);
    let output = Output::open(parquet, trace, EXPLAIN, recorded_with, &never);
    let written = output.and_then(|output| output.map_or(Ok(()), write));
    let texts = reports.into_iter().map(|report| report.text);
    Ok((texts.collect(), written))
}

/// Explains each alert. `trace` is a trace, or the directory `trace` of a capture, and `saved` is what can be read
/// after this run. The stacks of the alerts in `beside` may show where a late thread slept. Calls `goes_on` often while
/// reading, and before each explanation.
pub(crate) fn explained(
    trace: &Path,
    saved: Saved,
    alerts: &[Alert],
    beside: &[Alert],
    goes_on: &mut dyn FnMut(),
) -> Result<Vec<Explained>> {
    let (_, reports) = told_and_reports(trace, saved, alerts, beside, goes_on)?;
    let explained = reports.into_iter().map(|report| report.explained);
    Ok(explained.collect())
}

/// Reads the trace, and explains each alert: see [`explained`].
fn told_and_reports<'a>(
    trace: &Path,
    saved: Saved,
    alerts: &'a [Alert],
    beside: &[Alert],
    goes_on: &mut dyn FnMut(),
) -> Result<(Told, Vec<Report<'a>>)> {
    let evidence = evidence::read(trace)?.unwrap_or_default();
    let never = AtomicBool::new(false);
    let (mut told, requests) = read(
        trace,
        alerts,
        &evidence,
        &never,
        Threads::Explained,
        goes_on,
    )?;
    told.saved = saved;
    let all = ByThread::new(beside);
    let reports = reports(&told, alerts, &evidence, &all, requests, &never, goes_on)?;
    Ok((told, reports))
}

/// The stacks of the task of an alert, in the kernel and in user space, as lines; empty if the alert has none.
pub(crate) fn stacks_of(alert: &Alert) -> String {
    let stack = alert.stack();
    let mut lines: Vec<String> = Vec::new();
    if !stack.is_empty() {
        lines.push("stack of the task".into());
    }
    lines.extend(stack.iter().map(|f| format!("  {}", out::printable(f))));
    lines.extend(ustack::lines(alert, 0));
    joined(&lines)
}

/// Adds stacks to an explanation as its last paragraph: stacks are long, and the cause must not be below them.
pub(crate) fn with_stacks(text: String, stacks: &str) -> String {
    match stacks.is_empty() {
        true => text,
        false => text + "\n" + stacks,
    }
}

/// Lines as text.
fn joined(lines: &[String]) -> String {
    let lines = lines.iter();
    lines.flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Number of events between two calls of `goes_on`.
const OFTEN: u64 = 1 << 10;

/// Passes each event to the explanations of requests, and calls `goes_on`.
struct Watch<'a> {
    explainers: block::Explainers,
    seen: u64,
    goes_on: &'a mut dyn FnMut(),
}

impl Beside for Watch<'_> {
    fn begin(&mut self, reader: &lt_ctf::Reader) {
        self.explainers.begin(reader);
    }

    fn see(&mut self, time: u64, event: &lt_ctf::Event<'_>) {
        self.seen += 1;
        if self.seen.is_multiple_of(OFTEN) {
            (self.goes_on)();
        }
        self.explainers.see(time, event);
    }
}

/// Why the activity of threads is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// Only to explain alerts.
    Explained,
    /// Also for a time line, if the activity is recorded.
    Drawn,
    /// For a picture that consists of thread activity.
    Needed,
}

/// Reads the trace, including scheduling if an alert or a picture needs it. Also explains each alert of a request.
fn read(
    trace: &Path,
    alerts: &[Alert],
    evidence: &Evidence,
    interrupted: &AtomicBool,
    threads: Threads,
    goes_on: &mut dyn FnMut(),
) -> Result<(Told, Vec<block::Explanation>)> {
    let explained = alerts.iter().any(|alert| !block::explains(alert));
    let needed = explained || threads == Threads::Needed;
    let keep = match needed || threads == Threads::Drawn {
        true => Keep::All,
        false => Keep::Nothing,
    };
    let mut watch = Watch {
        explainers: block::Explainers::new(alerts),
        seen: 0,
        goes_on,
    };
    let mut told =
        trace::read_beside(trace, keep, evidence, alerts, interrupted, Some(&mut watch))?;
    if needed {
        told = told.with_threads(trace)?;
    }
    let requests = watch.explainers.finish(&told).collect();
    Ok((told, requests))
}

/// The date and the time of an alert, if the trace records the time of day.
fn utc(told: &Told, alert: &Alert) -> Option<String> {
    let date = UNIX_EPOCH.checked_add(told.since_1970(alert.time)?)?;
    Some(humantime::format_rfc3339_nanos(date).to_string())
}

/// Explains each alert, with the stacks of the alerts in `beside`; fails before the next alert if `interrupted`.
fn reports<'a>(
    told: &Told,
    alerts: &'a [Alert],
    evidence: &Evidence,
    beside: &ByThread<'_>,
    requests: Vec<block::Explanation>,
    interrupted: &AtomicBool,
    goes_on: &mut dyn FnMut(),
) -> Result<Vec<Report<'a>>> {
    let mut requests = requests.into_iter();
    let mut report = |alert: &'a Alert| {
        let (verdict, path, explained) = match block::explains(alert) {
            false => {
                let why = Why::new(told, alert, evidence, beside.during(alert));
                let explained = Explained {
                    text: why.text(),
                    is_cut: why.is_cut(),
                    served: why.served_threads(),
                };
                (Some(why.verdict()), why.json(), explained)
            }
            true => {
                let request = requests.next();
                let text = request.as_ref().map(ToString::to_string);
                let explained = Explained {
                    text: text.unwrap_or_default(),
                    is_cut: false,
                    served: Vec::new(),
                };
                let verdict = request.as_ref().and_then(block::Explanation::verdict);
                (verdict, None, explained)
            }
        };
        Report {
            alert,
            time_utc: utc(told, alert),
            verdict,
            text: with_stacks(explained.text.clone(), &stacks_of(alert)),
            path,
            explained,
        }
    };
    let one = |alert: &'a Alert| -> Result<Report<'a>> {
        poll(interrupted)?;
        goes_on();
        Ok(report(alert))
    };
    alerts.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn stacks_are_the_last_paragraph() {
        let line = "seq=1 time=90 instance=a tracker=offcpu reason=threshold delay=60 threshold=50 cpu=0 pid=7 tid=7 \
                    comm=\"x\"";
        let text = |more: &str| {
            let alert = Alert::parse(&format!("{line}{more}")).unwrap();
            with_stacks("cause\n".into(), &stacks_of(&alert))
        };
        let both = text(" stack=\"a+0x1/0x2,b+0x1/0x2\" ustack=none");
        let kernel = "stack of the task\n  a+0x1/0x2\n  b+0x1/0x2\n";
        let user = "in user space: no stack of the task\n";
        assert_eq!(both, format!("cause\n\n{kernel}{user}"));
        assert_eq!(text(""), "cause\n");
    }

    #[test]
    fn the_sleeps_of_a_capture_are_evidence_only() {
        let line = "seq=1 time=90 instance=a tracker=syscall reason=threshold delay=60 threshold=50 cpu=0 pid=7 tid=7 \
                    comm=\"x\"";
        let late = Alert::parse(line).unwrap();
        let sleep = Alert::parse(&line.replace("syscall", "offcpu")).unwrap();
        let capture = tempfile::tempdir().unwrap();
        let json = json!({ "alerts": [late], "sleeps": [sleep] });
        fs::write(capture.path().join("alert.json"), json.to_string()).unwrap();
        let words = ["lt", "explain", capture.path().to_str().unwrap()];
        let Command::Explain(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("another command");
        };
        let asked = what(&args).unwrap();
        let trackers = asked.alerts.iter().map(|alert| &alert.tracker[..]);
        assert_eq!(trackers.collect::<Vec<_>>(), ["syscall", "offcpu"]);
        assert!(asked.chosen == 1 && asked.is_capture);
    }
}
