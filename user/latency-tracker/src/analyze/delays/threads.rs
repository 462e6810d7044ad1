// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze delays` without a thread: the time of each thread by class, and its longest wait.
//!
//! ```text
//! model --lt_model::why::totals--> sums and longest wait of each thread --> text, JSON, CSV, an HTML page
//!         lt_model::why::own_states--> the cause of that wait ----------^
//! ```
//!
//! No path is computed, so this takes little longer than reading the trace.

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::exec::quoted_if_odd;
use lt_common::out::{self, note};
use lt_model::why::{Piece, Stay, Total};
use lt_model::{Class, Model, why};
use lt_proc::Nanos;
use lt_proc::evidence::Evidence;
use serde::Serialize;

use super::super::args::DelaysArgs;
use super::super::csv::line;
use super::super::interrupted;
use super::super::page::{ROWS, page_of};
use super::super::show::{Thread, known};
use super::super::words::{class, sentence};
use super::json::{State, Sums};
use super::text::{Row, table};
use super::tree::{call_of, end, within};
use super::{Facts, Report, at_least, beyond, range};
use crate::html::{self, Cell, Cells, Column, Page, View};
use crate::trace::{self, Keep};

/// Number of threads that are shown by default.
const THREADS: usize = 20;

/// The names of the columns of the comma-separated values.
pub(super) const COLUMNS: &str = "\
    tid,comm,from_ns,to_ns,elapsed_ns,working_ns,interrupted_ns,blocked_ns,unknown_ns,\
    begin_ns,end_ns,duration_ns,class,known,text,woken_by,interval_ns";

/// Returns an error if an option needs a thread.
fn needs_no_thread(args: &DelaysArgs) -> Result<()> {
    let options = [
        ("--depth", args.depth.is_some()),
        ("--folded", args.folded),
        ("--perfetto", args.perfetto.is_some()),
        ("--svg", args.svg.is_some()),
        ("--max-memory", args.max_memory.is_some()),
        ("--parquet", args.parquet.parquet.is_some()),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!("{option} needs a thread: name one with --tid or --event"),
        None => Ok(()),
    }
}

pub(super) fn run(args: &DelaysArgs) -> Result<Outcome> {
    needs_no_thread(args)?;
    out::file::check(args.html.iter())?;
    let interrupted = interrupted()?;
    let mut finder = range::finder(args);
    let trace = trace::read_beside(
        &args.trace,
        range::start(args).map_or(Keep::All, Keep::Since),
        &Evidence::default(),
        &[],
        &interrupted,
        Some(&mut finder),
    )?;
    let trace = trace.with_threads(&args.trace)?;
    let model = &trace.model;
    let range = range::of_all(model, args, &finder)?;
    let parts = range::intervals(model, range, args.interval)?;
    let beyond = beyond(model, range);
    if let Some(file) = &args.html {
        let unrecorded = trace.unrecorded().into_iter().map(str::to_string);
        let notes = beyond.iter().cloned().chain(unrecorded);
        let notes = notes.chain(trace.caveats());
        let notes = notes.map(|note| sentence(&note)).collect();
        Threads::new(model, range).page(args, notes).write(file)?;
    }
    let reports = parts.iter().map(|part| Threads::new(model, *part));
    if args.json {
        match args.interval {
            Some(length) => out::json(&Intervals {
                analysis: "delays",
                from: range.0,
                to: range.1,
                interval: length.0,
                intervals: reports.map(|report| report.json()).collect(),
            })?,
            None => out::json(&Threads::new(model, range).json())?,
        }
    } else if args.csv {
        out::line(COLUMNS)?;
        for report in reports {
            out::lines(&report.csv(), &interrupted)?;
        }
    } else {
        for (place, report) in reports.enumerate() {
            if place > 0 {
                out::line("")?;
            }
            out::lines(&report.lines(args), &interrupted)?;
        }
    }
    beyond.iter().for_each(|beyond| note(beyond));
    trace.unrecorded().into_iter().for_each(note);
    trace.complain();
    Ok(Outcome::Fine)
}

/// What to print.
pub(super) struct Threads<'a> {
    model: &'a Model,
    range: (u64, u64),
    /// All threads, those with the longest wait first.
    totals: Vec<Total>,
}

#[derive(Serialize)]
pub(super) struct Json {
    analysis: &'static str,
    from: u64,
    to: u64,
    threads: Vec<Part>,
}

/// A report for each interval of the range.
#[derive(Serialize)]
struct Intervals {
    analysis: &'static str,
    from: u64,
    to: u64,
    /// Length of an interval, ns.
    interval: u64,
    intervals: Vec<Json>,
}

/// A thread, and the part of the range in which it existed.
#[derive(Serialize)]
struct Part {
    thread: Thread,
    from: u64,
    to: u64,
    sums: Sums,
    /// Missing if no wait is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest: Option<Longest>,
}

/// The longest wait, and the states that tile it.
#[derive(Serialize)]
struct Longest {
    begin: u64,
    end: u64,
    states: Vec<State>,
}

impl<'a> Threads<'a> {
    pub(super) fn new(model: &'a Model, range: (u64, u64)) -> Self {
        Self {
            model,
            range,
            totals: why::totals(model, range.0, range.1),
        }
    }

    /// An empty report on one thread, for the names and texts that a report makes.
    fn of(&self, total: &Total) -> Report<'a> {
        Report {
            model: self.model,
            thread: total.thread,
            range: self.range,
            segments: &[],
            facts: Facts::NONE,
        }
    }

    /// The longest wait of a thread, in parts with one cause each; only a wait for a CPU has several parts.
    fn parts(&self, total: &Total) -> Vec<Stay> {
        let (begin, end) = total.longest.unwrap_or_default();
        why::own_states(self.model, total.thread, begin, end)
    }

    /// `in read of /var/log/a: woken by server/526`, or `woken, waits for CPU 1 (hog/8 for 80.00ms)`.
    fn wait_text(&self, total: &Total, parts: &[Stay]) -> String {
        let report = self.of(total);
        let words = report.words();
        let text = |stay: &Stay| {
            if stay.class() == Class::Blocked {
                let place = within(&words, call_of(stay.cause), stay.outside);
                let file = stay.file.map(|file| format!(" of {}", words.file(file)));
                let end = end(&words, stay.cause, stay.by, stay.open);
                return format!("{place}{}: {end}", file.unwrap_or_default());
            }
            let thread = self.model.thread(total.thread);
            let interval = thread.and_then(|thread| thread.between(stay.begin, stay.end).next());
            words.step(&Piece {
                begin: stay.begin,
                end: stay.end,
                thread: total.thread,
                cause: stay.cause,
                cpu: interval.and_then(|interval| interval.cpu),
                depth: 0,
                inside: (stay.begin, stay.end),
            })
        };
        match parts {
            [] => "no wait is recorded".into(),
            [one] => text(one),
            _ => {
                let each = parts
                    .iter()
                    .map(|stay| format!("{}: {}", Nanos(stay.took()), text(stay)));
                each.collect::<Vec<_>>().join("; then ")
            }
        }
    }

    /// Number of threads to show, and the minimum length of their longest waits, ns.
    fn shown(&self, args: &DelaysArgs) -> (usize, u64) {
        let most = if args.all { usize::MAX } else { THREADS };
        let least = args.min.map_or(0, |min| min.0);
        let long = self.totals.iter().take(args.top.unwrap_or(most));
        let long = long.take_while(|total| total.wait() >= least);
        (long.count(), least)
    }

    pub(super) fn lines(&self, args: &DelaysArgs) -> Vec<String> {
        let (from, to) = self.range;
        let mut lines = vec![format!(
            "{} from {from} to {to}: {}",
            out::plural(self.totals.len(), "thread"),
            Nanos(to - from)
        )];
        let (count, least) = self.shown(args);
        let (shown, others) = self.totals.split_at(count);
        if !shown.is_empty() {
            lines.push(String::new());
            lines.push(format!("Longest wait of each thread{}", at_least(least)));
            lines.extend(self.table_of_waits(shown));
            lines.push(String::new());
            lines.push("Time of these threads by state".into());
            lines.extend(self.table_of_times(shown));
        }
        lines.push(String::new());
        if let Some(longest) = others.first() {
            let what = match shown.is_empty() {
                true => "thread",
                false => "more thread",
            };
            let waits = match longest.wait() {
                0 => "without a recorded wait".into(),
                wait => format!("whose longest waits are up to {}", Nanos(wait)),
            };
            let text = format!(
                "Not shown: {}, {waits}; --all shows all threads.",
                out::plural(others.len(), what)
            );
            lines.extend(out::wrap(&text, 0));
        }
        lines.extend(self.silent().iter().flat_map(|text| out::wrap(text, 0)));
        lines.extend(self.next(args));
        lines
    }

    fn table_of_waits(&self, shown: &[Total]) -> Vec<String> {
        let row = |(number, total): (usize, &Total)| {
            let (took, from) = match total.longest {
                Some((begin, _)) => (Nanos(total.wait()).to_string(), begin.to_string()),
                None => ("-".into(), "-".into()),
            };
            let name = self.of(total).words().name(total.thread);
            let colon = if total.longest.is_some() { "" } else { ":" };
            let wait = self.wait_text(total, &self.parts(total));
            Row {
                cells: vec![number.to_string(), took, from],
                indent: 0,
                text: format!("{name}{colon} {wait}"),
            }
        };
        let rows: Vec<_> = (1..).zip(shown).map(row).collect();
        table(&["NR", "TOOK", "FROM", "THREAD AND WAIT"], &rows)
    }

    fn table_of_times(&self, shown: &[Total]) -> Vec<String> {
        let row = |(number, total): (usize, &Total)| {
            let part = |time: u64| {
                let percent = u128::from(time) * 100 / u128::from(total.took());
                format!("{} {percent:>3}%", Nanos(time))
            };
            vec![
                number.to_string(),
                Nanos(total.took()).to_string(),
                part(total.working),
                part(total.interrupted),
                part(total.blocked),
                part(total.unknown),
                self.of(total).words().name(total.thread),
            ]
        };
        let rows: Vec<_> = (1..).zip(shown).map(row).collect();
        let head = [
            ">NR",
            ">ELAPSED",
            ">WORKING",
            ">INTERRUPTED",
            ">BLOCKED",
            ">NOT RECORDED",
            "THREAD",
        ];
        out::table(&head, &rows)
    }

    /// A sentence about the threads without any recorded activity, if there are any.
    fn silent(&self) -> Option<String> {
        let is_silent = |total: &&Total| total.unknown == total.took();
        let count = self.totals.iter().filter(is_silent).count();
        (count > 0).then(|| {
            format!(
                "{} without any recorded activity in this range may have waited all the time.",
                out::plural(count, "thread")
            )
        })
    }

    /// The command for the report on the first thread; its sums are those of the thread's row.
    fn next(&self, args: &DelaysArgs) -> Option<String> {
        let first = self.totals.first()?;
        // The text may be read in another directory.
        let trace = std::path::absolute(&args.trace).unwrap_or_else(|_| args.trace.clone());
        Some(format!(
            "next: latency-tracker analyze delays {} --tid {} --from {} --to {}",
            quoted_if_odd(&trace.display().to_string()),
            self.model.thread(first.thread)?.tid,
            first.begin,
            first.end
        ))
    }

    /// The rows of all threads.
    pub(super) fn json(&self) -> Json {
        let part = |total: &Total| {
            let report = self.of(total);
            let state = |stay: &Stay| report.state(stay);
            Part {
                thread: report.words().thread_json(total.thread),
                from: total.begin,
                to: total.end,
                sums: Sums {
                    working: total.working,
                    interrupted: total.interrupted,
                    blocked: total.blocked,
                    unknown: total.unknown,
                },
                longest: total.longest.map(|(begin, end)| Longest {
                    begin,
                    end,
                    states: self.parts(total).iter().map(state).collect(),
                }),
            }
        };
        Json {
            analysis: "delays",
            from: self.range.0,
            to: self.range.1,
            threads: self.totals.iter().map(part).collect(),
        }
    }

    /// The rows of all threads, with the cells of [`COLUMNS`]. The cells of the wait are empty if none is recorded.
    pub(super) fn csv(&self) -> Vec<String> {
        let row = |total: &Total| {
            let report = self.of(total);
            let words = report.words();
            let thread = words.thread_json(total.thread);
            let times = [
                total.begin,
                total.end,
                total.took(),
                total.working,
                total.interrupted,
                total.blocked,
                total.unknown,
            ];
            let comm = thread.comm.unwrap_or_default();
            let mut cells = vec![thread.tid.to_string(), out::printable(&comm)];
            cells.extend(times.map(|time| time.to_string()));
            let parts = self.parts(total);
            match (total.longest, parts.iter().max_by_key(|stay| stay.took())) {
                (Some((begin, end)), Some(most)) => cells.extend([
                    begin.to_string(),
                    end.to_string(),
                    total.wait().to_string(),
                    class(most.class()).into(),
                    known(most.cause).into(),
                    self.wait_text(total, &parts),
                    most.by.map_or_else(String::new, |by| words.name(by)),
                ]),
                _ => cells.extend([const { String::new() }; 7]),
            }
            cells.push(self.range.0.to_string());
            line(&cells)
        };
        self.totals.iter().map(row).collect()
    }

    /// The page, with the lines that are printed, and these notes.
    fn page(&self, args: &DelaysArgs, notes: Vec<String>) -> Page {
        let (from, to) = self.range;
        let trace = args.trace.display().to_string();
        let view = View {
            name: "all threads".into(),
            text: out::whole(|| self.lines(args)).join("\n"),
            facts: vec![
                ("Trace".into(), out::printable(&trace)),
                ("Took".into(), Nanos(to - from).to_string()),
                ("From".into(), format!("{from} ns of the trace's clock")),
                ("To".into(), format!("{to} ns")),
            ],
            notes,
            tables: vec![self.table_of_page()],
            ..View::default()
        };
        page_of("Delays of all threads".into(), view)
    }

    fn table_of_page(&self) -> html::Table {
        let row = |total: &Total| {
            let took = total.took();
            let mut cells: Vec<Cell> = match total.longest {
                Some((begin, _)) => vec![total.wait().into(), begin.to_string().into()],
                None => vec!["-".to_string().into(), "-".to_string().into()],
            };
            cells.push(self.of(total).words().name(total.thread).into());
            cells.push(self.wait_text(total, &self.parts(total)).into());
            cells.push(took.into());
            let times = [
                total.working,
                total.interrupted,
                total.blocked,
                total.unknown,
            ];
            for time in times {
                cells.extend([time.into(), Cell::percent(time, took)]);
            }
            html::Row(cells, None)
        };
        let left = self.totals.len().saturating_sub(ROWS);
        html::Table {
            title: "Threads, those with the longest wait first".into(),
            columns: vec![
                Column("Longest wait", Cells::Time),
                Column("From", Cells::Clock),
                Column("Thread", Cells::Text),
                Column("Wait and what ended it", Cells::Text),
                Column("Elapsed", Cells::Time),
                Column("Working", Cells::Time),
                Column("Working %", Cells::Percent),
                Column("Interrupted", Cells::Time),
                Column("Interrupted %", Cells::Percent),
                Column("Blocked", Cells::Time),
                Column("Blocked %", Cells::Percent),
                Column("Not recorded", Cells::Time),
                Column("Not recorded %", Cells::Percent),
            ],
            rows: self.totals.iter().take(ROWS).map(row).collect(),
            note: (left > 0).then(|| format!("Not in this table: {left} more threads.")),
        }
    }
}
