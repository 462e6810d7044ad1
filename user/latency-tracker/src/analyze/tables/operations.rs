// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Writes each measured operation as a row of Parquet while the trace is read, so that memory does not depend on the
//! length of the trace.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use anyhow::{Error, Result};
use lt_model::tables::{self, Builder, Case, Kind, Object, TaskId, Trigger};
use lt_model::{Disk, FileName};
use lt_parquet::{Coverage, Interval, Sheet};

use super::super::parquet::{Dark, Output, int};
use super::feed::{Cases, Each};
use super::view::{self, Report};
use crate::trace::Told;

/// A file, and the sum of the durations in it.
struct File {
    sheet: Sheet<Interval>,
    sum: u64,
}

/// The operations of a trace as files, one for each kind.
pub(super) struct Operations {
    output: Output,
    disks: BTreeMap<Disk, String>,
    functions: BTreeMap<u64, String>,
    files: Vec<(Kind, File)>,
    /// Times in which a CPU was not recorded.
    dark: Vec<Dark>,
    /// The first failure; nothing is written after it.
    failed: Option<Error>,
}

impl Operations {
    pub(super) fn new(
        output: Output,
        disks: BTreeMap<Disk, String>,
        functions: BTreeMap<u64, String>,
    ) -> Self {
        Self {
            output,
            disks,
            functions,
            files: Vec::new(),
            dark: Vec::new(),
            failed: None,
        }
    }

    /// Returns the file of a kind; creates it first if needed.
    fn file(&mut self, kind: Kind) -> Result<&mut File> {
        let place = match self.files.iter().position(|(of, _)| *of == kind) {
            Some(place) => place,
            None => {
                let sheet = self
                    .output
                    .batch
                    .sheet(&self.output.scope, view::name(kind))?;
                self.files.push((kind, File { sheet, sum: 0 }));
                self.files.len() - 1
            }
        };
        let file = self.files.get_mut(place).map(|(_, file)| file);
        file.ok_or_else(|| Error::msg("no such file"))
    }

    fn write<'t>(
        &mut self,
        kind: Kind,
        cases: &[Case],
        text: impl Fn(lt_model::Name) -> &'t str,
        task: impl Fn(TaskId) -> (i32, Option<&'t str>),
        path: impl Fn(FileName) -> &'t str,
    ) -> Result<()> {
        if cases.is_empty() {
            return Ok(());
        }
        let rows = cases.iter();
        let rows = rows.map(|case| self.row(kind, case, &text, &task, &path));
        let rows: Vec<_> = rows.collect();
        let file = self.file(kind)?;
        for (row, case) in rows.into_iter().zip(cases) {
            file.sum = file.sum.saturating_add(case.took());
            file.sheet.push(row)?;
        }
        Ok(())
    }

    fn row<'t>(
        &self,
        kind: Kind,
        case: &Case,
        text: impl Fn(lt_model::Name) -> &'t str,
        task: impl Fn(TaskId) -> (i32, Option<&'t str>),
        path: impl Fn(FileName) -> &'t str,
    ) -> Interval {
        let (trace, analysis) = self.output.names();
        let named = |name| Some(text(name).to_string());
        let mut row = Interval {
            trace,
            analysis,
            kind: Some(view::name(kind).into()),
            start_utc: self.output.utc(case.begin),
            end_utc: self.output.utc(case.end),
            start_ns: int(case.begin),
            end_ns: int(case.end),
            duration_ns: int(case.took()),
            cpu: Some(case.cpu.into()),
            tid: case.who.map(|(tid, _)| tid.into()),
            comm: case.who.and_then(|(_, name)| named(name?)),
            prio: case.priority.map(|prio| prio.0.into()),
            call: match case.call {
                Some(tables::InCall::Named(name)) => named(name),
                _ => None,
            },
            file: match case.file {
                Some(tables::File::Named(name)) => Some(path(name).to_string()),
                Some(tables::File::Unknown) | None => None,
            },
            ..Interval::default()
        };
        // 0 stands for an address that is not recorded.
        let address = |address: u64| (address != 0).then(|| format!("{address:#x}"));
        match case.object {
            None => {}
            Some(Object::Line(number, name)) => {
                (row.line, row.name) = (Some(number.into()), named(name));
            }
            Some(Object::Vector(vector)) => {
                row.vector = Some(vector.0.into());
                row.name = Some(vector.name().to_string());
            }
            Some(Object::Call(name)) => row.call = named(name),
            Some(Object::Disk(disk, operation)) => {
                row.device = Some(disk.to_string());
                row.disk = self.disks.get(&disk).cloned();
                row.operation = Some(view::operation(operation).into());
            }
            Some(Object::Lock(kind, lock)) => {
                (row.lock_kind, row.lock) = (Some(kind.into()), address(lock));
            }
            Some(Object::Futex(operation, lock)) => {
                (row.operation, row.lock) = (Some(operation.into()), address(lock));
            }
            Some(Object::Reclaim(kind)) => row.reclaim = Some(view::reclaim(kind).into()),
            Some(Object::Packet(device, end)) => {
                row.device = named(device);
                row.ended = end.map(|end| view::ended(end).into());
            }
            Some(Object::Work(function, queue, queuer)) => {
                row.function = Some(format!("{function:#x}"));
                row.name = self.functions.get(&function).cloned();
                row.workqueue = queue.and_then(named);
                row.queuer = queuer.and_then(view::trigger).map(String::from);
                (row.queued_by_tid, row.queued_by_name) = match queuer {
                    Some(Trigger::Thread(Some(id)) | Trigger::Perhaps(Some(id))) => {
                        let (tid, comm) = task(id);
                        (Some(tid.into()), comm.map(String::from))
                    }
                    Some(Trigger::Irq(_, name) | Trigger::Ipi(name)) => (None, named(name)),
                    Some(Trigger::Softirq(vector)) => (None, Some(vector.name().into())),
                    Some(Trigger::Disk(disk)) => {
                        let name = self.disks.get(&disk).cloned();
                        (None, name.or_else(|| Some(disk.to_string())))
                    }
                    Some(Trigger::Work(function)) => {
                        let name = self.functions.get(&function).cloned();
                        (None, name.or_else(|| Some(format!("{function:#x}"))))
                    }
                    Some(Trigger::Thread(None) | Trigger::Perhaps(None)) => (None, None),
                    Some(Trigger::Timer | Trigger::Unrecorded) | None => (None, None),
                };
            }
            Some(Object::Sleep(sleep, by)) => {
                row.state = Some(view::state(sleep).into());
                row.waker = view::trigger(by).map(String::from);
                match by {
                    Trigger::Thread(Some(id)) | Trigger::Perhaps(Some(id)) => {
                        let (tid, comm) = task(id);
                        row.woken_by_tid = Some(tid.into());
                        row.woken_by_comm = comm.map(String::from);
                    }
                    Trigger::Irq(number, name) => {
                        (row.line, row.name) = (Some(number.into()), named(name));
                    }
                    Trigger::Softirq(vector) => {
                        row.vector = Some(vector.0.into());
                        row.name = Some(vector.name().to_string());
                    }
                    Trigger::Disk(disk) => {
                        row.device = Some(disk.to_string());
                        row.disk = self.disks.get(&disk).cloned();
                    }
                    Trigger::Ipi(name) => row.name = named(name),
                    Trigger::Thread(None) | Trigger::Perhaps(None) | Trigger::Work(_) => {}
                    Trigger::Timer | Trigger::Unrecorded => {}
                }
            }
        }
        row
    }

    /// Writes what remains, and completes the files.
    pub(super) fn finish(
        mut self,
        report: &Report<'_>,
        told: &Told,
        interrupted: &AtomicBool,
    ) -> Result<()> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        let caveats = report.caveats();
        let range = report.found.range;
        let tables = &report.found.tables;
        let (text, task) = (|name| tables.text(name), |id| tables.task(id));
        for (kind, cases) in &report.found.rest {
            self.write(*kind, cases, text, task, |name| tables.file(name))?;
        }
        let mut coverage = Vec::new();
        for table in &tables.tables {
            let kind = table.kind;
            let file = self.files.iter().find(|(of, _)| *of == kind);
            let (rows, sum) = match file {
                Some((_, file)) if !table.dropped => (file.sheet.rows(), file.sum),
                _ => (0, 0),
            };
            coverage.push(Coverage {
                tid: report.args.tid.map(i64::from),
                measured: int(rows),
                sum_ns: int(sum),
                not_measured_lost: int(table.missed.lost),
                not_measured_outside: int(table.missed.outside),
                not_measured_identical: int(table.missed.identical),
                caveats: (!caveats.is_empty()).then(|| caveats.join("\n")),
                ..self.output.coverage(view::name(kind), range, told)
            });
        }
        let absent = tables.absent();
        let absent = absent.map(|cpu| (cpu, (0, u64::MAX), "no-stream"));
        let dark = self.dark.iter().copied().chain(absent);
        let tid = report.args.tid.map(i64::from);
        let gaps = self.output.gaps(tid, range, told, dark);
        let scope = self.output.scope.clone();
        for (kind, file) in self.files {
            let table = tables.tables.iter().find(|t| t.kind == kind);
            // Nothing is known about a table that was dropped, or for which the trace lacks events.
            if table.is_some_and(|table| !table.dropped) {
                self.output.batch.add(&scope, file.sheet)?;
            }
        }
        self.output.finish(coverage, gaps, interrupted)
    }
}

impl Each for Operations {
    fn take(&mut self, cases: &[Cases], builder: &Builder) {
        for (kind, cases) in cases {
            if self.failed.is_some() {
                return;
            }
            let (text, task) = (|name| builder.text(name), |id| builder.task(id));
            let written = self.write(*kind, cases, text, task, |name| builder.file(name));
            self.failed = written.err();
        }
    }

    fn lost(&mut self, time: (u64, u64), cpu: u32) {
        let why = match time {
            (0, _) => "starts-later",
            (_, u64::MAX) => "ends-earlier",
            _ => "lost",
        };
        self.dark.push((cpu, time, why));
    }
}
