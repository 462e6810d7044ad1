// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze`: answers from a trace of the kernel, however it was recorded.
//!
//! ```text
//! trace --feed.rs--> lt_model::Model --lt_analyze--> pieces --show.rs--> text, or JSON
//! ```

mod args;
mod feed;
mod kinds;
mod show;

pub(crate) use self::args::{AnalyzeArgs, EXAMPLES};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use lt_model::{Class, Model, ThreadId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::args::{AnalyzeCommand, PathArgs, When};
use crate::Outcome;
use crate::out::{self, note};

/// How many threads an error names.
const NAMED: usize = 8;

pub(crate) fn run(args: &AnalyzeArgs) -> Result<Outcome> {
    match &args.command {
        AnalyzeCommand::Path(args) => path(args),
    }
}

/// A flag that the signals to end set. All that takes a while looks at it: a second signal must not end the process
/// before it has removed what the first one left.
fn interrupted() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot catch signals")?;
    }
    Ok(flag)
}

fn path(args: &PathArgs) -> Result<Outcome> {
    let interrupted = interrupted()?;
    let trace = feed::read(&args.trace, args.from, &interrupted)?;
    let model = &trace.model;
    let start = model.span.0;
    let at = |when: &Option<When>| when.map(|when| when.since(start));
    let (from, to) = (at(&args.from), at(&args.to));
    let (thread, span) = choose(model, args.tid, from, to)?;
    let (from, to) = (from.unwrap_or(span.0), to.unwrap_or(span.1));
    if from >= to {
        bail!(
            "there is no time between {from} and {to}; thread {} is in the trace from {} to {}",
            args.tid,
            span.0,
            span.1
        );
    }
    let pieces = lt_analyze::path(model, thread, from, to);
    let shown = show::Shown {
        model,
        thread,
        range: (from, to),
        pieces: &pieces,
    };
    if args.json {
        out::json(&shown.json())?;
    } else {
        for line in shown.lines() {
            if interrupted.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            out::line(&line)?;
        }
    }
    trace.complain();
    if args.verbose {
        trace.say_how_fast();
    }
    Ok(Outcome::Fine)
}

/// The thread of that number which is there for the longest part of that time, and from where to where it is known.
fn choose(
    model: &Model,
    tid: i32,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<(ThreadId, (u64, u64))> {
    let (from, to) = (from.unwrap_or(0), to.unwrap_or(u64::MAX));
    let span = |id| Some((id, model.thread(id)?.span()?));
    let all: Vec<_> = model.by_tid(tid).filter_map(span).collect();
    let common =
        |(_, (begin, end)): &(ThreadId, (u64, u64))| end.min(&to).saturating_sub(*begin.max(&from));
    let there = all.iter().filter(|t| common(t) > 0);
    match there.clone().max_by_key(|t| common(t)) {
        Some(chosen) => {
            if there.count() > 1 {
                let (begin, end) = chosen.1;
                note(&format!(
                    "several threads had the number {tid}; this is the one from {begin} to {end}"
                ));
            }
            Ok(*chosen)
        }
        None if all.is_empty() => bail!("no thread {tid} in the trace; {}", busiest(model)),
        None => {
            let times: Vec<_> = all
                .iter()
                .map(|(_, (a, b))| format!("from {a} to {b}"))
                .collect();
            bail!(
                "thread {tid} is in the trace {}, and not then",
                times.join(", and ")
            )
        }
    }
}

/// The threads that worked the most.
fn busiest(model: &Model) -> String {
    let (from, to) = model.span;
    let work = |id| Some((model.thread(id)?.time_in(Class::Working, from, to), id));
    let all = (0..model.threads.len() as u32).map(ThreadId);
    let mut worked: Vec<_> = all.filter_map(work).collect();
    worked.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    worked.truncate(NAMED);
    let names = worked.iter().map(|(_, id)| show::name(model, *id));
    format!(
        "those that ran the most: {}",
        names.collect::<Vec<_>>().join(", ")
    )
}
