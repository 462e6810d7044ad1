// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze`: shows the waits of a thread, the use of its time, and how long operations took, from any kernel trace.
//!
//! ```text
//! trace --trace.rs--> lt_model::tables --tables.rs--> tables as text, JSON or CSV
//!                                         |--heat.rs-----> a heat map
//!                                         |--page.rs-----> an HTML page
//!                                         `--parquet.rs--> files for SQL, of all analyses
//! trace --trace.rs--> lt_model::Model --delays.rs--> states and waits, in the formats of a path
//! trace --trace.rs--> lt_model::Model --lt_model::why--> pieces --fold.rs, show.rs--> text, or JSON
//!                                                              |--csv.rs-----------> comma-separated values
//!                                                              |--flame.rs---------> folded stacks
//!                                                              |--verdict.rs-------> a sentence
//!                                                              |--picture.rs-------> a trace for Perfetto
//!                                                              `--page.rs, lanes.rs> an HTML page, or its time line
//! ```

mod args;
mod csv;
mod delays;
mod flame;
mod fold;
pub(crate) mod lanes;
#[cfg(test)]
#[expect(unreachable_pub, reason = "the tests of lt-model use it, too")]
#[path = "../../lt-model/tests/all/made.rs"]
pub(crate) mod made;
pub(crate) mod page;
pub(crate) mod parquet;
pub(crate) mod picture;
pub(crate) mod show;
mod tables;
mod thread;
mod verdict;
pub(crate) mod words;

pub(crate) use self::args::{AnalyzeArgs, EXAMPLES};
pub(crate) use self::tables::Subject;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_model::{Model, ThreadId, why};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::args::{AnalyzeCommand, PathArgs};
use self::lanes::{bars_in_picture, bars_of_each};
use self::page::Limits;
use self::parquet::{Alerts, Output};
use self::picture::{Picture, Way};
use crate::trace::{self, When};

/// Runs an analysis. `alerts` reads the alerts that were recorded with a trace.
pub(crate) fn run(args: &AnalyzeArgs, alerts: Alerts) -> Result<Outcome> {
    match &args.command {
        AnalyzeCommand::Path(args) => path(args, alerts),
        AnalyzeCommand::Delays(args) => delays::run(args, alerts),
        AnalyzeCommand::Wakeups(args) => {
            tables::run(Subject::Wakeups, &args.common, args.by, alerts)
        }
        AnalyzeCommand::Sleeps(args) => tables::run(Subject::Sleeps, &args.common, args.by, alerts),
        AnalyzeCommand::Cpu(args) => tables::run(Subject::Cpu, &args.common, args.by, alerts),
        AnalyzeCommand::Irq(args) => tables::run(Subject::Irq, &args.common, args.by, alerts),
        AnalyzeCommand::Syscalls(args) => {
            tables::run(Subject::Syscalls, &args.common, args.by, alerts)
        }
        AnalyzeCommand::Io(args) => tables::run(Subject::Io, &args.common, args.by, alerts),
        AnalyzeCommand::Locks(args) => tables::run(Subject::Locks, &args.common, args.by, alerts),
        AnalyzeCommand::Work(args) => tables::run(Subject::Work, &args.common, args.by, alerts),
        AnalyzeCommand::Reclaim(args) => {
            tables::run(Subject::Reclaim, &args.common, args.by, alerts)
        }
        AnalyzeCommand::Net(args) => tables::run(Subject::Net, &args.common, args.by, alerts),
    }
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. It is polled while a trace is read, before each alert that
/// `explain` explains or prints, while a picture or a page is drawn, and by [`out::lines`], but not while a path is
/// computed. No such signal ends the process at once, not even a second signal: the process always cleans up first.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot catch signals")?;
    }
    Ok(flag)
}

fn path(args: &PathArgs, alerts: Alerts) -> Result<Outcome> {
    let files = [&args.perfetto, &args.html, &args.svg];
    out::file::check(files.into_iter().flatten())?;
    let interrupted = interrupted()?;
    let output = Output::open(&args.parquet, &args.trace, "path", alerts, &interrupted)?;
    let (file, start) = (&args.trace, args.from);
    let search = |model: &Model, (): &()| -> Result<why::Search> {
        let (thread, (from, to), _) = asked(model, args)?;
        Ok(why::Search::path(thread, from, to))
    };
    let trace = match args.max_memory {
        None if args.low_memory => {
            trace::read_in_parts(file, start, &interrupted, &mut (), search)?
        }
        None => trace::read(file, start, args.tid.parse().ok(), &interrupted, None)?,
        Some(limit) => {
            let limit = usize::try_from(limit.0).unwrap_or(usize::MAX);
            trace::read_within(limit, file, start, &interrupted, &mut (), search)?
        }
    };
    let model = &trace.model;
    let (thread, (from, to), several) = asked(model, args)?;
    let (begin, end) = model.span;
    let beyond =
        (from < begin || to > end).then(|| format!("the trace covers only {begin} to {end}"));
    several.iter().for_each(|several| note(several));
    let pieces = why::path(model, thread, from, to);
    let shown = show::Shown {
        model,
        thread,
        range: (from, to),
        pieces: &pieces,
        facts: &words::Facts::NONE,
    };
    if let Some(file) = &args.perfetto {
        let picture = Picture {
            model,
            facts: &words::Facts::NONE,
            range: (from, to),
            alerts: Vec::new(),
            states: Vec::new(),
            paths: vec![Way {
                thread,
                range: (from, to),
                pieces: &pieces,
                alert: None,
            }],
        };
        picture.write(file, &interrupted)?;
    }
    let page = |bars| {
        let lines = || shown.lines(args.part(), args.depth.unwrap_or(usize::MAX));
        let text = out::whole(lines).join("\n");
        let notes = several.iter().chain(&beyond).cloned();
        let notes = notes.chain(trace.caveats());
        let notes = notes.map(|note| words::sentence(&note)).collect();
        let limits = Limits {
            bars,
            interrupted: &interrupted,
        };
        page::page(&shown, text, notes, limits)
    };
    if let Some(file) = &args.html {
        page(bars_of_each(1))?.write(file)?;
    }
    if let Some(file) = &args.svg {
        page(bars_in_picture(1))?.draw(file)?;
    }
    if let Some(output) = output {
        parquet::edges::path(output, &shown.json(), &trace, &interrupted)?;
    }
    if args.json {
        out::json(&shown.json())?;
    } else if args.csv {
        out::lines(&shown.csv(), &interrupted)?;
    } else if args.folded {
        out::lines(&shown.folded(), &interrupted)?;
    } else {
        let lines = shown.lines(args.part(), args.depth.unwrap_or(usize::MAX));
        out::lines(&lines, &interrupted)?;
    }
    beyond.iter().for_each(|beyond| note(beyond));
    trace.complain();
    if args.verbose {
        trace.say_how_fast();
    }
    Ok(Outcome::Fine)
}

/// Finds the requested thread and time. Returns them, and the note of [`thread::named`].
fn asked(model: &Model, args: &PathArgs) -> Result<(ThreadId, (u64, u64), Option<String>)> {
    let at = |when: &Option<When>| when.map(|when| when.since(model.span.0));
    let (from, to) = (at(&args.from), at(&args.to));
    let (begin, end) = model.span;
    // This is checked before the thread is looked up, because no thread is found outside of the trace.
    if from.is_some_and(|from| from >= end) || to.is_some_and(|to| to <= begin) {
        bail!("the trace is from {begin} to {end}, and does not cover the requested time");
    }
    let (thread, span, several) = thread::named(model, &args.tid, from, to)?;
    let (from, to) = (from.unwrap_or(span.0), to.unwrap_or(span.1));
    if from >= to {
        bail!(
            "the range from {from} to {to} is empty; thread {} is in the trace from {} to {}",
            args.tid,
            span.0,
            span.1
        );
    }
    Ok((thread, (from, to), several))
}
