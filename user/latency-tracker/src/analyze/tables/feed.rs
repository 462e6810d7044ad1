// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Feeds the events of a trace into tables, and determines the range.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use lt_model::tables::{Analysis, Builder, By, Case, Kind, Range, Seen, Step, Table, Tables};
use lt_model::{Disk, What};

use super::args::{INTERVALS, TableArgs, too_many};
use super::functions;
use super::needs::Subject;
use crate::trace::{Need, Sink};

/// Number of events between two calls of [`Each::take`].
const OFTEN: u64 = 1 << 12;
/// Rows and worst cases that are shown by default.
pub(super) const SHOWN: usize = 5;

/// The name of a thread, and its number with the number of its process, if recorded.
type Before = (Vec<u8>, Option<(i32, i32)>);

pub(super) struct Feed<'a> {
    subject: Subject,
    args: &'a TableArgs,
    by: By,
    analysis: Option<Analysis>,
    hints: Vec<&'static str>,
    without: Vec<Kind>,
    disks: BTreeMap<Disk, String>,
    functions: BTreeMap<u64, String>,
    /// The CPUs and the starts of their streams.
    streams: Vec<(u32, u64)>,
    /// Losses and ends of streams before the first event.
    losses: Vec<(u64, u32, u64)>,
    /// Threads that existed before the first event, as recorded by perf.
    found: BTreeMap<i32, Before>,
    builder: Option<Builder>,
    range: Range,
    span: (u64, u64),
    too_many: bool,
    each: Vec<&'a mut dyn Each>,
    fed: u64,
}

/// Operations of one kind.
pub(super) type Cases = (Kind, Vec<Case>);

/// A consumer of every measured operation.
pub(super) trait Each {
    /// Called once, before any operation, with the start of the range and the time of the first event.
    fn start(&mut self, _from: u64, _first: u64) {}
    /// Called every `OFTEN` events with the operations measured since the previous call. [`Found::rest`] has the
    /// operations measured after the final call.
    fn take(&mut self, cases: &[Cases], builder: &Builder);
    /// Called with each time in which a CPU was not recorded, as [`Sink::lost`].
    fn lost(&mut self, time: (u64, u64), cpu: u32);
}

/// The result of reading a trace.
pub(super) struct Found {
    pub(super) subject: Subject,
    pub(super) tables: Tables,
    pub(super) disks: BTreeMap<Disk, String>,
    /// Names of kernel functions by address; empty unless the analysis has any, and this boot recorded the trace.
    pub(super) functions: BTreeMap<u64, String>,
    pub(super) hints: Vec<&'static str>,
    /// The part of the range that is in the trace.
    pub(super) range: (u64, u64),
    /// Start and end of the trace.
    pub(super) span: (u64, u64),
    /// The requested range; the first interval starts with it.
    pub(super) asked: (u64, u64),
    /// The operations that no [`Each`] has taken.
    pub(super) rest: Vec<Cases>,
}

impl<'a> Feed<'a> {
    pub(super) fn new(subject: Subject, args: &'a TableArgs, by: By) -> Self {
        Self {
            subject,
            args,
            by,
            analysis: None,
            hints: Vec::new(),
            without: Vec::new(),
            disks: BTreeMap::new(),
            functions: BTreeMap::new(),
            streams: Vec::new(),
            losses: Vec::new(),
            found: BTreeMap::new(),
            builder: None,
            range: Range::all(args.limit.unwrap_or(SHOWN)),
            span: (0, 0),
            too_many: false,
            each: Vec::new(),
            fed: 0,
        }
    }

    /// Also passes every operation to `each`.
    pub(super) fn with(mut self, each: &'a mut dyn Each) -> Self {
        self.range.each = true;
        self.each.push(each);
        self
    }

    /// Names kernel functions.
    pub(super) fn naming(mut self, functions: BTreeMap<u64, String>) -> Self {
        self.functions = functions;
        self
    }

    /// Makes the builder, at the time of the first event.
    fn start(&mut self, time: u64) -> Option<Builder> {
        self.span = (time, time);
        let at = |when: crate::trace::When| when.since(time);
        self.range = Range {
            from: self.args.from.map_or(time, at),
            to: self.args.to.map_or(u64::MAX, at),
            every: self.args.interval.map(|every| every.0),
            tid: self.args.tid,
            ..self.range
        };
        let from = self.range.from;
        for each in &mut self.each {
            each.start(from, time);
        }
        let mut builder = Builder::new(self.analysis?, self.range, Some(self.by));
        for (cpu, begin) in &self.streams {
            builder.has_stream(*cpu, *begin);
        }
        for (time, cpu, until) in std::mem::take(&mut self.losses) {
            lose(&mut builder, time, cpu, until);
        }
        for (tid, (name, process)) in std::mem::take(&mut self.found) {
            let step = Step::Known(What::There { tid, name: &name });
            builder.feed(&Seen {
                time,
                cpu: u32::MAX,
                tid: None,
                process,
                file: None,
                step,
            });
        }
        Some(builder)
    }

    /// Returns the tables.
    pub(super) fn finish(self) -> Result<Found> {
        let (begin, end) = self.span;
        let Some(builder) = self.builder else {
            let name = self.subject.name();
            bail!(
                "{}: no event for {name} in this trace",
                self.args.trace.display()
            );
        };
        let Range { from, to, .. } = self.range;
        if from >= end || to <= begin {
            bail!("the trace is from {begin} to {end}, and does not cover the requested time");
        }
        if from >= to {
            bail!("there is no time between {from} and {to}");
        }
        if let Some(interval) = self.args.interval.filter(|_| self.too_many) {
            bail!(too_many(interval));
        }
        let mut tables = builder.finish();
        tables
            .tables
            .retain(|table| !self.without.contains(&table.kind));
        let rest = |table: &mut Table| (table.kind, table.take());
        let rest = tables.tables.iter_mut().map(rest).collect();
        Ok(Found {
            subject: self.subject,
            tables,
            disks: self.disks,
            functions: self.functions,
            hints: self.hints,
            range: (from.max(begin), to.min(end)),
            span: (begin, end),
            asked: (from, to),
            rest,
        })
    }
}

/// Reports missing events of a CPU to the builder, see [`Sink::lost`].
fn lose(builder: &mut Builder, time: u64, cpu: u32, until: u64) {
    if until == u64::MAX {
        return builder.ends_stream(time, cpu);
    }
    builder.feed(&Seen {
        time,
        cpu,
        tid: None,
        process: None,
        file: None,
        step: Step::Known(What::Lost { until }),
    });
}

impl Sink for Feed<'_> {
    fn begin(&mut self, has: &dyn Fn(Need) -> bool) -> Result<()> {
        let found = self.subject.analysis(has);
        let trace = self.args.trace.display();
        let (analysis, hints) = found.map_err(|error| anyhow!("{trace}: {error}"))?;
        if self.by == By::File && !has(Need::Files) {
            bail!(
                "{trace}: --by file needs all system calls and sched_process_fork; record with latency-tracker record \
                 --events-for syscalls"
            );
        }
        let has_calls = has(Need::AllCalls) && has(Need::Returns);
        if self.subject == Subject::Sleeps && self.by == By::Call && !has_calls {
            bail!(
                "{trace}: --by call needs all system calls; record with latency-tracker record --events-for \
                 sleeps,syscalls"
            );
        }
        (self.analysis, self.hints) = (Some(analysis), hints);
        if self.subject == Subject::Work && self.functions.is_empty() {
            self.hints.push(functions::UNKNOWN);
        }
        self.without = self.subject.without(has);
        Ok(())
    }

    fn needs_processes(&self) -> bool {
        matches!(self.by, By::Process | By::Stack)
    }

    fn needs_files(&self) -> bool {
        self.subject == Subject::Syscalls
    }

    fn see(&mut self, seen: &Seen<'_>) {
        if let Step::Known(What::There { tid, name }) = seen.step
            && seen.time == 0
        {
            self.found.insert(tid, (name.to_vec(), seen.process));
            return;
        }
        if self.builder.is_none() {
            self.builder = self.start(seen.time);
        }
        self.span.1 = self.span.1.max(seen.time);
        let Range {
            from, to, every, ..
        } = self.range;
        let intervals = every.map(|every| seen.time.min(to).saturating_sub(from) / every);
        self.too_many |= intervals.is_some_and(|intervals| intervals >= INTERVALS);
        if let Some(builder) = self.builder.as_mut().filter(|_| !self.too_many) {
            builder.feed(seen);
            self.fed += 1;
            if !self.each.is_empty() && self.fed.is_multiple_of(OFTEN) {
                let cases = builder.take();
                for each in &mut self.each {
                    each.take(&cases, builder);
                }
            }
        }
    }

    fn lost(&mut self, time: u64, cpu: u32, until: u64) {
        for each in &mut self.each {
            each.lost((time, until), cpu);
        }
        match &mut self.builder {
            _ if time == 0 => self.streams.push((cpu, until)),
            Some(builder) => lose(builder, time, cpu, until),
            None => self.losses.push((time, cpu, until)),
        }
    }

    fn disk(&mut self, disk: Disk, name: &str) {
        self.disks.insert(disk, name.into());
    }
}

/// The names of the disks in a trace.
#[derive(Debug, Default)]
pub(super) struct Disks(pub(super) BTreeMap<Disk, String>);

impl Sink for Disks {
    fn begin(&mut self, _has: &dyn Fn(Need) -> bool) -> Result<()> {
        Ok(())
    }

    fn see(&mut self, _seen: &Seen<'_>) {}

    fn lost(&mut self, _time: u64, _cpu: u32, _until: u64) {}

    fn disk(&mut self, disk: Disk, name: &str) {
        self.0.insert(disk, name.into());
    }
}
