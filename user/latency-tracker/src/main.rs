// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `latency-tracker`: finds out in production why something was late.
//!
//! One command, one action. The kernel module does the work; this program sets it up, waits for it and shows the
//! results. Formats are in `lt-proc` and `lt-ctf`, `bench` in `lt-bench`, `check --rt` in `lt-readiness`; policy is
//! here.

mod action;
mod analyze;
mod carried;
mod cli;
mod cmd;
mod completion;
mod config;
mod explain;
mod export;
mod heat;
mod html;
mod labels;
mod perfetto;
mod profile;
mod recipes;
mod record;
mod run;
mod service;
mod stacks;
mod trace;
mod trackers;
mod ustack;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use lt_common::{Outcome, out};

use crate::cli::{Cli, Command};

/// Returns the module's directory: /proc/latency_tracker, or another directory in tests.
fn proc_root() -> lt_proc::ProcRoot {
    let root = std::env::var_os("LATENCY_TRACKER_PROC_ROOT");
    lt_proc::ProcRoot::new(root.unwrap_or(lt_proc::DEFAULT_ROOT.into()))
}

fn main() -> ExitCode {
    if let Some(failed) = run::is_child() {
        return failed;
    }
    completion::answer(Cli::command);
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(1)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let root = proc_root();
    let result = match cli.command {
        Command::List(args) => cmd::list::run(&root, &args),
        Command::Start(args) => cmd::start::run(&root, &args),
        Command::Apply(args) => cmd::apply::run(&root, &args),
        Command::Stop(args) => cmd::stop::run(&root, &args),
        Command::Watch(args) => cmd::watch::run(&root, &args),
        Command::Hist(args) => cmd::hist::run(&root, &args),
        Command::Pending(args) => cmd::pending::run(&root, &args),
        Command::Top(args) => cmd::top::run(&root, &args),
        Command::Steps(args) => cmd::steps::run(&root, &args),
        Command::Tree(args) => cmd::tree::run(&root, &args),
        Command::Profile(args) => profile::run(&root, &args),
        Command::Recipes(args) => cmd::recipes::run(&args),
        Command::Run(args) => run::run(&root, &args),
        Command::Stacks(args) => stacks::run(&root, &args),
        Command::Why(args) => why::run(&root, &args),
        Command::Record(args) => record::run(&root, &args),
        Command::Analyze(args) => analyze::run(&args, explain::recorded_with),
        Command::Captures(args) => cmd::captures::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Export(args) => export::run(&root, &args),
        Command::Bench(args) => lt_bench::run(&root, &args, |trace, alerts| {
            let saved = trace::Saved::Capture(trace.into());
            explain::explain(trace, saved, alerts, alerts, &mut || ())
        }),
        Command::Measure(args) => cmd::measure::run(&root, &args),
        Command::Check(args) => cmd::check::run(&root, &args),
        Command::Completions { shell } => cmd::generate::completions(shell),
        Command::Man { directory } => cmd::generate::man(&directory),
    };
    match result {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Wrong) => ExitCode::from(1),
        Ok(Outcome::Alert) => ExitCode::from(2),
        Ok(Outcome::Status(status)) => ExitCode::from(status),
        Err(error) if out::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out::note(&format!("{error:#}"));
            if let Some(hint) = cmd::hint(&error) {
                out::note(&hint);
            }
            ExitCode::from(1)
        }
    }
}
