// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze delays`: the time of a thread by state, the longest stays in each state, and the chains of waits while it was
//! blocked. Without a thread, the sums and the longest wait of each thread.
//!
//! ```text
//! trace --range.rs--> thread and range --lt_model::why::delays--> segments --tree.rs---> states, stays
//!         |                                                               |--chains.rs-> chains of waits
//!         |                                                               |--page.rs---> an HTML page, a picture
//!         |                                                               `--picture.rs> a trace for Perfetto
//!         `---------> range of all threads --threads.rs--> a row for each thread
//! ```

mod chains;
mod json;
mod page;
mod picture;
mod range;
#[cfg(test)]
mod tests;
mod text;
mod threads;
mod tree;

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_model::why::{Cause, Piece, Stay, Wait};
use lt_model::{Class, Model, ThreadId, why};
use lt_proc::Nanos;

use self::tree::{Tree, branch};
use super::args::DelaysArgs;
use super::csv::Time;
use super::flame::{Stacks, chains};
use super::interrupted;
use super::lanes::{bars_in_picture, bars_of_each};
use super::page::Limits;
use super::parquet::{self, Alerts, Output};
use super::show::Shown;
use super::words::{Facts, class, sentence};
use crate::trace::{self, Finder};

pub(super) fn run(args: &DelaysArgs, alerts: Alerts) -> Result<Outcome> {
    if args.tid.is_none() && args.event.is_none() {
        return threads::run(args);
    }
    let files = [&args.perfetto, &args.html, &args.svg];
    out::file::check(files.into_iter().flatten())?;
    let interrupted = interrupted()?;
    let output = Output::open(&args.parquet, &args.trace, "delays", alerts, &interrupted)?;
    let mut finder = range::finder(args);
    let start = range::start(args);
    let file = &args.trace;
    let search = |model: &Model, finder: &Finder| -> Result<why::Search> {
        let asked = range::asked(model, args, finder)?;
        let (thread, from, to) = (asked.thread, asked.from, asked.to);
        // Only the text sums up what a waker did during the wait that it ended.
        let wakers = !args.json && !args.csv && !args.folded;
        Ok(why::Search::delays(model, thread, from, to, wakers))
    };
    let trace = match args.max_memory {
        None if args.low_memory => {
            range::needs_no_processor(args, "--low-memory")?;
            trace::read_in_parts(file, start, &interrupted, &mut finder, search)?
        }
        None => {
            let only = args.tid.as_ref().and_then(|tid| tid.parse().ok());
            trace::read(file, start, only, &interrupted, Some(&mut finder))?
        }
        Some(limit) => {
            range::needs_no_processor(args, "--max-memory")?;
            let limit = usize::try_from(limit.0).unwrap_or(usize::MAX);
            trace::read_within(limit, file, start, &interrupted, &mut finder, search)?
        }
    };
    let trace = trace.with_threads(&args.trace)?;
    let model = &trace.model;
    let asked = range::asked(model, args, &finder)?;
    asked.note.iter().for_each(|text| note(text));
    let segments = why::delays(model, asked.thread, asked.from, asked.to);
    let report = Report {
        model,
        thread: asked.thread,
        range: (asked.from, asked.to),
        segments: &segments,
        facts: Facts::NONE,
    };
    let beyond = beyond(model, report.range);
    let page = |bars| {
        let notes = asked.note.iter().chain(&beyond).cloned();
        let unrecorded = trace.unrecorded().into_iter().map(str::to_string);
        let notes = notes.chain(unrecorded).chain(trace.caveats());
        let notes = notes.map(|note| sentence(&note)).collect();
        let limits = Limits {
            bars,
            interrupted: &interrupted,
        };
        report.page(args, notes, limits)
    };
    if let Some(file) = &args.perfetto {
        report.draw_picture(file, &interrupted)?;
    }
    if let Some(file) = &args.html {
        page(bars_of_each(1))?.write(file)?;
    }
    if let Some(file) = &args.svg {
        page(bars_in_picture(1))?.draw(file)?;
    }
    if let Some(output) = output {
        parquet::edges::delays(output, &report.json(), &trace, &interrupted)?;
    }
    if args.json {
        out::json(&report.json())?;
    } else if args.csv {
        out::lines(&report.csv(), &interrupted)?;
    } else if args.folded {
        out::lines(&report.folded(), &interrupted)?;
    } else {
        out::lines(&report.lines(args), &interrupted)?;
    }
    beyond.iter().for_each(|beyond| note(beyond));
    trace.unrecorded().into_iter().for_each(note);
    trace.complain();
    Ok(Outcome::Fine)
}

/// A note if the trace does not cover all of the range.
fn beyond(model: &Model, (from, to): (u64, u64)) -> Option<String> {
    let (begin, end) = model.span;
    (from < begin || to > end).then(|| format!("the trace covers only {begin} to {end}"))
}

/// By default, stays and waits shorter than 1/`SHORT` of the range are left out.
const SHORT: u64 = 100;

/// Number of the longest stays that are shown in each state by default.
const STAYS: usize = 3;

/// `, of 15.58ms or more (--min)`
fn at_least(least: u64) -> String {
    match least {
        0 => String::new(),
        least => format!(", of {} or more (--min)", Nanos(least)),
    }
}

/// What to print.
struct Report<'a> {
    model: &'a Model,
    thread: ThreadId,
    range: (u64, u64),
    segments: &'a [why::Segment],
    facts: Facts,
}

impl Report<'_> {
    /// Names threads and causes, with the names that threads had at the end of the range.
    fn words(&self) -> Shown<'_> {
        Shown {
            model: self.model,
            thread: self.thread,
            range: self.range,
            pieces: &[],
            facts: &self.facts,
        }
    }

    /// The states of each segment, which keep the stays that take at least `least`. Numbers continue from one segment
    /// to the next.
    fn trees(&self, least: u64) -> Vec<Tree> {
        let words = self.words();
        let mut next = 0;
        let tree = |segment: &why::Segment| Tree::new(&words, &segment.states, least, &mut next);
        self.segments.iter().map(tree).collect()
    }

    /// Minimum length of the stays and waits to show, ns.
    fn least(&self, args: &DelaysArgs) -> u64 {
        let (from, to) = self.range;
        match (args.min, args.all) {
            (Some(least), _) => least.0,
            (None, true) => 0,
            (None, false) => (to - from) / SHORT,
        }
    }

    fn lines(&self, args: &DelaysArgs) -> Vec<String> {
        let words = self.words();
        let (from, to) = self.range;
        let mut lines = vec![format!(
            "{} from {from} to {to}: {}",
            words.name(self.thread),
            Nanos(to - from)
        )];
        self.ancestors(&mut lines);
        let top = match args.all {
            true => usize::MAX,
            false => args.top.unwrap_or(STAYS),
        };
        let least = match top {
            0 => u64::MAX,
            _ => self.least(args),
        };
        let trees = self.trees(least);
        for (segment, tree) in self.segments.iter().zip(&trees) {
            lines.push(String::new());
            if self.segments.len() > 1 {
                lines.push(format!("States of {}", words.name(segment.thread)));
            }
            lines.extend(tree.lines(args.all));
        }
        if top > 0 {
            lines.push(String::new());
            lines.push(match args.all {
                true => "All stays in each state, the longest first".into(),
                false => format!(
                    "Longest stays, at most {top} in each state{}",
                    at_least(least)
                ),
            });
            lines.extend(tree::longest(&trees, top));
        }
        lines.push(String::new());
        lines.extend(self.chains(args));
        lines
    }

    /// Lists the threads that stand for the thread before its creation.
    fn ancestors(&self, lines: &mut Vec<String>) {
        if self.segments.len() < 2 {
            return;
        }
        let words = self.words();
        lines.push(String::new());
        lines.push("Closest ancestors until the creation of the thread:".into());
        let row = |segment: &why::Segment| {
            vec![
                segment.begin.to_string(),
                Nanos(segment.end - segment.begin).to_string(),
                words.name(segment.thread),
            ]
        };
        let rows: Vec<_> = self.segments.iter().map(row).collect();
        lines.extend(out::table(&[">FROM", ">TOOK", "THREAD"], &rows));
    }

    /// Returns all states and all waits as lines, below the names of the columns.
    fn csv(&self) -> Vec<String> {
        let words = self.words();
        let mut times = Vec::new();
        for segment in self.segments {
            let state = |stay: Stay| Time {
                kind: "state",
                range: (stay.begin, stay.end),
                depth: 0,
                thread: segment.thread,
                cpu: None,
                class: class(stay.class()),
                cause: stay.cause,
                text: branch(&words, &stay).join(": "),
                woken_by: stay.by,
            };
            let wait = |wait: &Wait| Time {
                kind: "wait",
                range: (wait.begin, wait.end),
                depth: wait.depth,
                thread: wait.thread,
                cpu: None,
                class: json::kind(wait.kind),
                cause: cause_of(wait),
                text: self.wait_text(wait, true),
                woken_by: self.woken_by(wait),
            };
            times.extend(segment.states.iter().map(state));
            times.extend(segment.waits.iter().map(wait));
        }
        Time::lines(&words, times)
    }

    /// The thread that ended a wait, unless the cause is what this thread handled, such as a timer.
    fn woken_by(&self, wait: &Wait) -> Option<ThreadId> {
        let waker = self.model.waker(wait.waker?)?;
        let is_by_thread = matches!(wait.cause, None | Some(Cause::Blocked(_) | Cause::Idle));
        waker.by().filter(|_| is_by_thread)
    }

    /// Returns the time of each state, by the chain of causes behind it, as folded stacks.
    fn folded(&self) -> Vec<String> {
        let words = self.words();
        let mut stacks = Stacks::default();
        for segment in self.segments {
            let (from, to) = (segment.begin, segment.end);
            let path = why::path(self.model, segment.thread, from, to);
            let mut stays = segment.states.iter().peekable();
            chains(&words, &path, &segment.waits, |piece, chain| {
                let mut at = piece.begin;
                while let Some(stay) = stays.peek().copied().filter(|_| at < piece.end) {
                    let end = stay.end.min(piece.end);
                    let mut stack = vec![words.name(segment.thread)];
                    stack.extend(branch(&words, &stay));
                    stack.extend_from_slice(self.behind(&stay, piece, &chain));
                    stacks.add(&stack, end - at);
                    if stay.end <= piece.end {
                        stays.next();
                    }
                    at = end;
                }
            });
        }
        stacks.lines()
    }

    /// Returns the frames of `chain` that the frames of the stay do not already contain.
    fn behind<'c>(&self, stay: &Stay, piece: &Piece, chain: &'c [String]) -> &'c [String] {
        // The state already shows the thread and, if it is blocked, its wait, but not that it spins.
        let described = match (piece.depth, stay.class()) {
            (0, _) => chain.len(),
            (_, Class::Blocked) => 2,
            _ => 1,
        };
        let behind = chain.get(described..).unwrap_or_default();
        let woken_by = stay.by.map(|by| self.words().name(by));
        match behind.split_first() {
            Some((first, rest)) if woken_by.as_ref() == Some(first) => rest,
            _ => behind,
        }
    }
}

/// The cause of a wait; `Blocked(None)` if a thread ended the wait. The cause does not name that thread.
fn cause_of(wait: &Wait) -> Cause {
    wait.cause.unwrap_or(Cause::Blocked(None))
}
