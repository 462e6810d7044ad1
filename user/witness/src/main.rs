// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The independent judge of the block tracker.
//!
//! It reads a full trace of the block layer, recorded by ftrace or LTTng at the same time, pairs
//! starts with ends by itself, and compares every slow request with the alerts, one by one. It shares
//! nothing with the alert path but the parser of the alert line.
//!
//! ```text
//!  trace --ftrace/lttng--> BlockEvent --pair--> Request (slow?) --.
//!                                                                 judge --> verdict, exit status
//!  alerts --lt_proc--> Alert -------------------------------------'
//! ```

mod alerts;
mod ftrace;
mod input;
mod judge;
mod lttng;
mod pair;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use lt_proc::Nanos;
use lt_trace::Dev;

use crate::judge::Limits;
use crate::pair::{From, Pairing};

/// Recomputes the slow block requests from a trace and compares them with the alerts.
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
    /// The trace is `babeltrace2 convert --clock-cycles` text of an LTTng trace (with its stderr).
    #[arg(long)]
    lttng: bool,
    /// A request is slow when its delay is above this.
    #[arg(long, value_name = "DURATION")]
    threshold: Nanos,
    /// Where a delay starts.
    #[arg(long, value_enum, default_value_t = From::Issue)]
    from: From,
    /// Only this device (MAJ:MIN), in the trace and in the alerts.
    #[arg(long, value_name = "MAJ:MIN", value_parser = parse_dev)]
    dev: Option<Dev>,
    /// Fail unless the trace holds that many slow requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    expect_at_least: usize,
    /// Print every slow request with its alert.
    #[arg(long, short)]
    verbose: bool,
}

fn parse_dev(text: &str) -> Result<Dev, String> {
    Dev::parse(text).ok_or_else(|| format!("{text:?}: expected MAJ:MIN, e.g. 8:0"))
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

/// True when the alerts are exact.
fn run(args: &Args) -> Result<bool> {
    let trace = read(&args.trace)?;
    let events = if args.lttng {
        lttng::parse(&trace)
    } else {
        ftrace::parse(&trace)
    };
    let mut events = events.with_context(|| args.trace.display().to_string())?;
    events.retain(|e| args.dev.is_none_or(|dev| e.dev == dev));
    let paired = Pairing::run(&events, args.from);
    if paired.unmatched > 0 {
        bail!(
            "{} completions without a start: the trace began after the load; start it first",
            paired.unmatched
        );
    }
    let alerts = alerts::parse(&read(&args.alerts)?, args.dev)
        .with_context(|| args.alerts.display().to_string())?;
    let limits = Limits {
        threshold: args.threshold.0,
        expect_at_least: args.expect_at_least,
        ..Limits::default()
    };
    let verdict = judge::judge(&paired, &alerts, &limits);
    let mut out = io::stdout().lock();
    for line in verdict.lines(args.verbose) {
        writeln!(out, "{line}")?;
    }
    Ok(verdict.exact())
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
