// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The independent judge of the trackers.
//!
//! Reads a full trace of raw tracepoints that ftrace or LTTng recorded while the trackers were on, pairs starts with
//! ends independently, and compares all slow operations with the alerts, one by one. The only code that it shares
//! with the alert path is lt_proc: the parsers of the module's files.
//!
//! ```text
//!  trace --ftrace/lttng--> BlockEvent --pair--> Request (slow?) --.
//!                                                                 judge --> verdict, exit status
//!  alerts --lt_proc--> Alert -------------------------------------'
//! ```

mod alerts;
mod babeltrace;
mod ftrace;
mod input;
mod judge;
mod lines;
mod lttng;
mod pair;
mod profile;
mod ruled;
mod rules;
mod tasks;
mod tree;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::babeltrace::Dev;
use anyhow::{Context, Result, bail};
use clap::Parser;
use lt_proc::Nanos;

use crate::alerts::Reported;
use crate::judge::{Limits, Verdict};
use crate::pair::{From, Pairing};
use crate::profile::Subject;
use crate::rules::Rule;
use crate::tasks::Wait;

/// Recomputes the delays from a trace and compares them with the alerts.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit status: 0 the alerts are exactly the slow requests, 1 they are not or the \
input cannot prove it.\n\nExamples:\n  lt-witness --threshold 10ms --expect-at-least 10 \
--dev 254:1 trace.txt alerts.txt\n  lt-witness --lttng --from insert --threshold 10ms bt.txt alerts.txt"
)]
struct Args {
    /// The trace: text of tracefs' `trace` file with trace_clock set to mono.
    trace: PathBuf,
    /// The alerts: lines of the `alerts` file of one instance.
    alerts: PathBuf,
    /// The trace is the output of `babeltrace2 convert --clock-cycles` for an LTTng trace (with its
    /// stderr).
    #[arg(long)]
    lttng: bool,
    /// A request is slow when its delay is above this.
    #[arg(long, value_name = "DURATION")]
    threshold: Nanos,
    /// Where a delay starts.
    #[arg(long, value_enum, default_value_t = From::Issue)]
    from: From,
    /// Find waits of tasks, of this kind, in a trace of the scheduler.
    #[arg(long, value_enum, value_name = "TRACKER", conflicts_with_all = ["lttng", "from", "dev"])]
    tasks: Option<Wait>,
    /// Find starts and ends by a rule: its name, or its text as described in rules.rs.
    #[arg(long, value_name = "RULE", conflicts_with_all = ["lttng", "from", "dev", "tasks"], value_parser = parse_rule)]
    rule: Option<Rule>,
    /// The alerts come from the tracker `io` with threshold 0, and this is its profile.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lttng", "from", "tasks", "rule"])]
    profile: Option<PathBuf>,
    /// With --profile: judge system calls of this thread and its descendants, not requests of --dev.
    #[arg(long, value_name = "TID", requires = "profile", conflicts_with = "dev")]
    root: Option<u32>,
    /// Only this device (MAJ:MIN), in the trace and in the alerts.
    #[arg(long, value_name = "MAJ:MIN", value_parser = parse_dev)]
    dev: Option<Dev>,
    /// The alerts come from the tracker `tree` with threshold 0. FILE has the thread ids of the
    /// kernel threads that existed before the trace.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lttng", "tasks", "rule", "profile", "dev"])]
    tree: Option<PathBuf>,
    /// Fail unless the trace holds at least this many slow requests; with --tree, unless at least
    /// this many chains agree.
    #[arg(long, value_name = "N", default_value_t = 1)]
    expect_at_least: usize,
    /// Maximum difference of nine in ten delays.
    #[arg(long, value_name = "DURATION", default_value = "200us")]
    usual: Nanos,
    /// Maximum difference of any delay.
    #[arg(long, value_name = "DURATION", default_value = "2ms")]
    most: Nanos,
    /// Print the delay of each slow request with the delay of its alert; not with --tree.
    #[arg(long, short)]
    verbose: bool,
}

fn parse_dev(text: &str) -> Result<Dev, String> {
    Dev::parse(text).ok_or_else(|| format!("{text:?}: expected MAJ:MIN, e.g. 8:0"))
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    Rule::find(text).map_err(|error| format!("{error:#}"))
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "lt-witness: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns true if the alerts are exact.
fn run(args: &Args) -> Result<bool> {
    let trace = read(&args.trace)?;
    if let Some(profile) = &args.profile {
        return of_profile(args, &trace, &read(profile)?);
    }
    if let Some(kthreads) = &args.tree {
        let (alerts, kthreads) = (read(&args.alerts)?, read(kthreads)?);
        let verdict = tree::check(&trace, &alerts, &kthreads, &limits(args))?;
        return print(args, &verdict);
    }
    let (paired, alerts) = match (args.tasks, &args.rule) {
        (Some(wait), _) => of_tasks(args, &trace, wait)?,
        (None, Some(rule)) => of_rule(args, &trace, rule)?,
        (None, None) => of_requests(args, &trace)?,
    };
    print(args, &judge::judge(&paired, &alerts, &limits(args)))
}

fn limits(args: &Args) -> Limits {
    Limits {
        threshold: args.threshold.0,
        expect_at_least: args.expect_at_least,
        usual: args.usual.0,
        most: args.most.0,
    }
}

fn print(args: &Args, verdict: &Verdict) -> Result<bool> {
    let mut out = io::stdout().lock();
    for line in verdict.lines(args.verbose) {
        writeln!(out, "{line}")?;
    }
    Ok(verdict.exact())
}

fn of_profile(args: &Args, trace: &str, profile: &str) -> Result<bool> {
    let subject = match (args.root, args.dev) {
        (Some(root), _) => Subject::Task(root),
        (None, Some(dev)) => Subject::Disk(dev),
        (None, None) => bail!("--profile needs --root or --dev"),
    };
    let alerts = read(&args.alerts)?;
    let verdict = profile::check(subject, trace, &alerts, profile, &limits(args))?;
    print(args, &verdict)
}

fn of_tasks(args: &Args, trace: &str, wait: Wait) -> Result<(Pairing, Vec<Reported>)> {
    let (paired, marks) =
        tasks::pair(trace, wait).with_context(|| args.trace.display().to_string())?;
    let alerts = tasks::alerts(&read(&args.alerts)?, wait, marks)
        .with_context(|| args.alerts.display().to_string())?;
    Ok((paired, alerts))
}

fn of_rule(args: &Args, trace: &str, rule: &Rule) -> Result<(Pairing, Vec<Reported>)> {
    let (paired, marks) =
        ruled::pair(trace, rule).with_context(|| args.trace.display().to_string())?;
    let alerts = ruled::alerts(&read(&args.alerts)?, rule, marks)
        .with_context(|| args.alerts.display().to_string())?;
    Ok((paired, alerts))
}

fn of_requests(args: &Args, trace: &str) -> Result<(Pairing, Vec<Reported>)> {
    let events = if args.lttng {
        lttng::parse(trace)
    } else {
        ftrace::parse(trace)
    };
    let mut events = events.with_context(|| args.trace.display().to_string())?;
    events.retain(|e| args.dev.is_none_or(|dev| e.dev == dev));
    let paired = Pairing::run(&events, args.from);
    if paired.unmatched > 0 {
        bail!(
            "{} completions without a start: the trace began after the load; start the trace first",
            paired.unmatched
        );
    }
    let alerts = alerts::parse(&read(&args.alerts)?, args.dev)
        .with_context(|| args.alerts.display().to_string())?;
    Ok((paired, alerts))
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
