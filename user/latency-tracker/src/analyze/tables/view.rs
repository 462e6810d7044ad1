// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The rows of tables in the order in which they are shown, with the names of their groups.

use lt_common::out;
use lt_model::tables::{
    By, Case, Extra, File, InCall, Key, Kind, Object, Operation, PacketEnd, Reclaim, Row, Table,
    TaskId, Trigger,
};
use lt_model::{Disk, Sleep};

use super::args::TableArgs;
use super::feed::{Found, SHOWN};

/// The report to print.
pub(super) struct Report<'a> {
    pub(super) found: Found,
    caveats: Vec<String>,
    pub(super) args: &'a TableArgs,
}

/// A row.
pub(super) struct Line<'a> {
    /// Start of its interval, ns.
    pub(super) interval: u64,
    /// Number of its interval.
    number: u64,
    pub(super) key: Key,
    pub(super) name: String,
    pub(super) row: &'a Row,
}

/// The name of an operation on a disk.
pub(super) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Flush => "flush",
        Operation::Discard => "discard",
        Operation::Other => "other",
    }
}

/// The letter of a kind of sleep, as `ps` shows it.
pub(super) fn state(sleep: Sleep) -> &'static str {
    match sleep {
        Sleep::Interruptible => "S",
        Sleep::Uninterruptible | Sleep::Dirty(_) => "D",
        Sleep::Idle => "I",
        Sleep::Stopped => "T",
        Sleep::Traced => "t",
        Sleep::Other => "other",
    }
}

/// The name of a kind of reclaim.
pub(super) fn reclaim(kind: Reclaim) -> &'static str {
    match kind {
        Reclaim::Direct => "direct",
        Reclaim::Memcg => "memcg",
        Reclaim::Compaction => "compaction",
        Reclaim::Kswapd => "kswapd",
    }
}

/// The name of an end of a packet.
pub(super) fn ended(end: PacketEnd) -> &'static str {
    match end {
        PacketEnd::Copied => "copied",
        PacketEnd::Consumed => "consumed",
        PacketEnd::Dropped => "dropped",
    }
}

/// The kind of what ended a sleep, or queued a work item, for programs; `None` if it is not recorded.
pub(super) fn trigger(by: Trigger) -> Option<&'static str> {
    Some(match by {
        Trigger::Thread(_) => "thread",
        Trigger::Perhaps(_) => "thread-or-irq",
        Trigger::Irq(..) => "irq",
        Trigger::Softirq(_) => "softirq",
        Trigger::Timer => "timer",
        Trigger::Disk(_) => "disk",
        Trigger::Ipi(_) => "ipi",
        Trigger::Work(_) => "work",
        Trigger::Unrecorded => return None,
    })
}

/// The additional columns of a table.
pub(super) fn extras(kind: Kind) -> &'static [(&'static str, Extra)] {
    match kind {
        Kind::Run => &[("migrations", Extra::Migrations)],
        Kind::Call | Kind::Futex => &[("errors", Extra::Errors)],
        Kind::Device => &[
            ("errors", Extra::Errors),
            ("parts", Extra::Parts),
            ("requeues", Extra::Requeues),
            ("merges", Extra::Merges),
        ],
        Kind::Sleep => &[("unknown", Extra::Unknown)],
        Kind::Backlog => &[("dropped", Extra::Dropped)],
        Kind::Receive => &[("merges", Extra::Merges), ("replaced", Extra::Replaced)],
        Kind::Transmit => &[
            ("errors", Extra::Errors),
            ("requeues", Extra::Requeues),
            ("consumed", Extra::Consumed),
            ("dropped", Extra::Dropped),
        ],
        _ => &[],
    }
}

/// The name of a table in JSON and CSV.
pub(super) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Wakeup => "wakeup",
        Kind::Sleep => "sleep",
        Kind::Run => "run",
        Kind::Preempted => "preempted",
        Kind::Handler => "handler",
        Kind::Softirq => "softirq",
        Kind::Raise => "raise",
        Kind::Call => "call",
        Kind::Queue => "queue",
        Kind::Device => "device",
        Kind::Contention => "contention",
        Kind::Futex => "futex",
        Kind::Queued => "queued",
        Kind::Work => "work",
        Kind::Reclaim => "reclaim",
        Kind::Backlog => "backlog",
        Kind::Receive => "receive",
        Kind::Transmit => "transmit",
    }
}

/// The name of a grouping: the value of `--by`, except for softirqs (`vector` for `line`), futex calls (`call` for
/// `kind`), packets that are not received (`device` for `end`) and `--folded` (`stack`).
pub(super) fn grouping(table: &Table) -> &'static str {
    match (table.by, table.kind) {
        (By::Thread, _) => "thread",
        (By::Process, _) => "process",
        (By::Name, _) => "name",
        (By::Cpu, _) => "cpu",
        (By::Priority, _) => "priority",
        (By::Device, _) => "device",
        (By::Lock, _) => "lock",
        (By::Call, _) => "call",
        (By::File, _) => "file",
        (By::State, _) => "state",
        (By::Waker, _) => "waker",
        (By::Workqueue, _) => "workqueue",
        (By::Queuer, _) => "queuer",
        (By::Stack, _) => "stack",
        (By::Object, Kind::Handler) => "line",
        (By::Object, Kind::Softirq | Kind::Raise) => "vector",
        (By::Object, Kind::Queue | Kind::Device) => "operation",
        (By::Object, Kind::Contention | Kind::Sleep | Kind::Reclaim) => "kind",
        (By::Object, Kind::Queued | Kind::Work) => "function",
        (By::Object, Kind::Receive) => "end",
        (By::Object, Kind::Backlog | Kind::Transmit) => "device",
        (By::Object, _) => "call",
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(found: Found, caveats: Vec<String>, args: &'a TableArgs) -> Self {
        Self {
            found,
            caveats,
            args,
        }
    }

    /// Why figures are missing, or not what they seem.
    pub(super) fn caveats(&self) -> Vec<String> {
        let mut caveats = self.caveats.clone();
        if let Some(cpu) = self.found.tables.absent() {
            caveats.push(format!(
                "the trace has no stream of CPU {cpu}: what happened there is missing, and operations that may have \
                 continued there are not measured"
            ));
        }
        let tables = &self.found.tables;
        let is_relative = |(_, key): &(u64, Key)| match key {
            Key::File(Some(File::Named(name))) => !tables.file(*name).starts_with('/'),
            _ => false,
        };
        let mut keys = tables.tables.iter().flat_map(|table| table.rows.keys());
        if keys.any(is_relative) {
            caveats.push(
                "a row may be several files if its name does not start with /: it is a path relative to the working \
                 directory of each process, which is not known, or the kind of a descriptor, such as socket"
                    .to_string(),
            );
        }
        let has_received = || tables.tables.iter().any(|of| of.kind == Kind::Receive);
        if self.args.tid.is_some() && has_received() {
            caveats.push(
                "MERGES and REPLACED of received packets are 0 with --tid: merged and replaced packets have no thread"
                    .to_string(),
            );
        }
        caveats
    }

    /// What is not shown because events are missing, and how to record them.
    pub(super) fn hints(&self) -> &[&'static str] {
        &self.found.hints
    }

    /// A note if the range reaches beyond the trace.
    pub(super) fn outside(&self) -> Option<String> {
        let ((begin, end), (from, to)) = (self.found.span, self.found.asked);
        let is_outside = from < begin || to != u64::MAX && to > end;
        is_outside.then(|| format!("the trace covers only {begin} to {end}"))
    }

    pub(super) fn thread(&self, id: TaskId) -> String {
        match self.found.tables.task(id) {
            (0, _) => "idle".into(),
            (tid, None) => format!("thread {tid}"),
            (tid, Some(name)) => format!("{}/{tid}", out::printable(name)),
        }
    }

    pub(super) fn disk(&self, disk: Disk) -> String {
        match self.found.disks.get(&disk) {
            Some(name) => format!("{} ({disk})", out::printable(name)),
            None => disk.to_string(),
        }
    }

    pub(super) fn object(&self, object: Object) -> String {
        let text = |name| out::printable(self.found.tables.text(name));
        let at = |what: &str, address| match address {
            0 => what.to_string(),
            address => format!("{what} {address:#x}"),
        };
        match object {
            Object::Line(number, name) => format!("{number} {}", text(name)),
            Object::Vector(vector) => format!("{} {}", vector.0, vector.name()),
            Object::Call(name) => text(name),
            Object::Disk(disk, op) => format!("{} {}", self.disk(disk), operation(op)),
            Object::Lock(kind, address) => at(kind, address),
            Object::Futex(op, address) => at(&format!("futex {op}"), address),
            Object::Reclaim(kind) => reclaim(kind).into(),
            Object::Packet(device, None) => text(device),
            Object::Packet(device, Some(end)) => format!("{} {}", text(device), ended(end)),
            Object::Work(function, queue, queuer) => {
                let queue = queue.map(|queue| format!(" of {}", text(queue)));
                let queuer = queuer.map(|queuer| match queuer {
                    Trigger::Unrecorded => ", queuer not recorded".to_string(),
                    queuer => format!(", queued by {}", self.trigger(queuer)),
                });
                self.function(function) + &queue.unwrap_or_default() + &queuer.unwrap_or_default()
            }
            Object::Sleep(sleep, Trigger::Unrecorded) => {
                format!("{}, waker not recorded", state(sleep))
            }
            Object::Sleep(sleep, by) => format!("{}, woken by {}", state(sleep), self.trigger(by)),
        }
    }

    fn function(&self, address: u64) -> String {
        let name = self.found.functions.get(&address);
        name.map_or_else(|| format!("{address:#x}"), |name| out::printable(name))
    }

    /// What ended a sleep, or queued a work item. For a group of these, the thread may be missing.
    fn trigger(&self, by: Trigger) -> String {
        let text = |name| out::printable(self.found.tables.text(name));
        let thread = |id: Option<TaskId>| id.map_or("a thread".into(), |id| self.thread(id));
        match by {
            Trigger::Thread(id) => thread(id),
            Trigger::Perhaps(id) => format!("{} or an interrupt", thread(id)),
            Trigger::Irq(number, name) => format!("{} (interrupt {number})", text(name)),
            Trigger::Softirq(vector) => format!("softirq {}", vector.name()),
            Trigger::Timer => "a timer".into(),
            Trigger::Disk(disk) => self.disk(disk),
            Trigger::Ipi(name) => format!("interrupt {}", text(name)),
            Trigger::Work(function) => format!("work item {}", self.function(function)),
            Trigger::Unrecorded => "not recorded".into(),
        }
    }

    /// The name of a file, if it is recorded.
    fn file(&self, file: File) -> Option<String> {
        match file {
            File::Named(name) => Some(out::printable(self.found.tables.file(name))),
            File::Unknown => None,
        }
    }

    /// The object of a case, with the file of a system call or the call in which a thread slept.
    pub(super) fn what(&self, case: &Case) -> String {
        let object = case.object.map(|object| self.object(object));
        let file = case.file.and_then(|file| self.file(file));
        let more = match case.call {
            Some(InCall::Named(_)) => case.call.map(|call| format!(", in {}", self.call(call))),
            _ => file.map(|file| format!(" of {file}")),
        };
        object.unwrap_or_default() + &more.unwrap_or_default()
    }

    fn call(&self, call: InCall) -> String {
        match call {
            InCall::Named(name) => out::printable(self.found.tables.text(name)),
            InCall::Outside => "no system call".into(),
            InCall::Unknown => "not recorded".into(),
        }
    }

    fn key(&self, key: Key) -> String {
        let unknown = || "not recorded".to_string();
        match key {
            Key::Thread(thread) => thread.map_or_else(unknown, |thread| self.thread(thread)),
            Key::Process(main) => main.map_or_else(unknown, |main| self.thread(main)),
            Key::Name(name) => {
                name.map_or_else(unknown, |name| out::printable(self.found.tables.text(name)))
            }
            Key::Cpu(cpu) => cpu.to_string(),
            Key::Priority(prio) => prio.map_or_else(unknown, |prio| prio.to_string()),
            Key::Object(object) => self.object(object),
            Key::Device(disk) => self.disk(disk),
            Key::Network(device) => out::printable(self.found.tables.text(device)),
            Key::Lock(lock) => format!("{lock:#x}"),
            Key::Call(call) => self.call(call),
            Key::File(None) => "no file, or several".into(),
            Key::File(Some(file)) => self.file(file).unwrap_or_else(unknown),
            Key::State(sleep) => state(sleep).into(),
            Key::Waker(by) | Key::Queuer(by) => self.trigger(by),
            Key::Workqueue(name) => {
                name.map_or_else(unknown, |name| out::printable(self.found.tables.text(name)))
            }
            Key::Stack(..) => self.frames(key).join(";"),
        }
    }

    /// The frames of a group: for a stack, the process, the name of the thread and the object.
    pub(super) fn frames(&self, key: Key) -> Vec<String> {
        let Key::Stack(thread, object) = key else {
            return vec![self.key(key)];
        };
        let tables = &self.found.tables;
        let process = thread.and_then(|thread| tables.process(thread));
        let name = match thread.map(|thread| tables.task(thread)) {
            Some((0, _)) => "idle".into(),
            Some((_, Some(name))) => out::printable(name),
            Some((tid, None)) => format!("thread {tid}"),
            None => "not recorded".into(),
        };
        let mut frames = vec![self.key(Key::Process(process)), name];
        frames.extend(object.map(|object| self.object(object)));
        frames
    }

    /// All rows by interval, and in each interval the largest sum first.
    pub(super) fn rows<'t>(&self, table: &'t Table) -> Vec<Line<'t>> {
        let every = self.args.interval.map_or(0, |every| every.0);
        let line = |((number, key), row): (&(u64, Key), &'t Row)| Line {
            interval: self
                .found
                .asked
                .0
                .saturating_add(number.saturating_mul(every)),
            number: *number,
            key: *key,
            name: self.key(*key),
            row,
        };
        let mut lines: Vec<_> = table.rows.iter().map(line).collect();
        lines.sort_by(|a, b| {
            let order = |line: &Line<'_>| (line.interval, std::cmp::Reverse(line.row.sums.sum));
            (order(a), &a.name).cmp(&(order(b), &b.name))
        });
        lines
    }

    /// The rows to show, and the number of all rows.
    pub(super) fn shown<'t>(
        &self,
        table: &'t Table,
        default: Option<usize>,
    ) -> (Vec<Line<'t>>, usize) {
        let mut lines = self.rows(table);
        let count = lines.len();
        if let Some(limit) = self.args.limit.or(default) {
            let (mut last, mut place) = (None, 0);
            lines.retain(|line| {
                place = if last.replace(line.interval) == Some(line.interval) {
                    place + 1
                } else {
                    0
                };
                place < limit
            });
        }
        (lines, count)
    }

    /// The rows that a person sees by default, and the number of all rows.
    pub(super) fn few<'t>(&self, table: &'t Table) -> (Vec<Line<'t>>, usize) {
        self.shown(table, Some(SHOWN))
    }

    /// The CPU usage of a row of [`Kind::Run`]: its time as a fraction of the recorded time of its CPU, or else of the
    /// CPU that is recorded the longest. A fraction of the mean recorded time could exceed one CPU, because the buffers
    /// of a snapshot reach back to different times.
    pub(super) fn share(&self, table: &Table, line: &Line<'_>) -> Option<f64> {
        let recorded = table.recorded.iter().filter(|((number, cpu), _)| {
            let is_other = matches!(line.key, Key::Cpu(of) if of != *cpu);
            *number == line.number && !is_other
        });
        let time = recorded.map(|(_, time)| *time).max();
        let time = time.filter(|time| *time > 0 && table.kind == Kind::Run)?;
        Some(line.row.sums.sum as f64 / time as f64)
    }

    /// The thread of a case.
    pub(super) fn who(&self, case: &Case) -> String {
        case.thread
            .map_or_else(String::new, |thread| self.thread(thread))
    }

    /// Why operations of a table were not measured, with their number.
    pub(super) fn missed(table: &Table) -> Vec<String> {
        const OUTSIDE: &str =
            "they start or end outside the trace or range, or a CPU was not recorded meanwhile";
        let missed = table.missed;
        let (outside, identical) = match table.kind {
            Kind::Queued => (
                "they were cancelled, were queued for a flush, were queued or started outside the trace or range, or \
                 a CPU was not recorded meanwhile",
                "they were queued again before they started: whether they had been cancelled or taken is not recorded",
            ),
            Kind::Backlog | Kind::Receive | Kind::Transmit => (
                OUTSIDE,
                "their address was reused before their end was seen, or the end may be another packet's",
            ),
            _ => (
                OUTSIDE,
                "identical requests were in flight at once, and which of them ended first is not recorded",
            ),
        };
        let lines = [
            (
                missed.lost,
                "their start, their end or events in between were lost",
            ),
            (missed.outside, outside),
            (missed.identical, identical),
        ];
        let line =
            |(count, why): (u64, &str)| format!("{} not measured: {why}", out::thousands(count));
        let some = lines.into_iter().filter(|(count, _)| *count > 0);
        some.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser;
    use lt_model::What;
    use lt_model::tables::{Analysis, Builder, Range, Recorded, Seen, Step, Work, WorkStage};
    use serde_json::json;

    use super::super::needs::Subject;
    use super::*;
    use crate::analyze::args::AnalyzeCommand;
    use crate::analyze::made::{R, switch};
    use crate::cli::{Cli, Command};

    fn seen(time: u64, cpu: u32, step: Step<'_>) -> Seen<'_> {
        Seen {
            time,
            cpu,
            tid: None,
            process: None,
            file: None,
            step,
        }
    }

    /// The result of reading these events. One function has a name.
    fn found(subject: Subject, mut builder: Builder, events: &[Seen<'_>]) -> Found {
        events.iter().for_each(|seen| builder.feed(seen));
        Found {
            subject,
            tables: builder.finish(),
            disks: BTreeMap::new(),
            functions: BTreeMap::from([(0xf1, "wb_workfn".to_string())]),
            hints: Vec::new(),
            range: (0, 1000),
            span: (0, 1000),
            asked: (0, u64::MAX),
            rest: Vec::new(),
        }
    }

    /// The arguments of an analysis, without options.
    fn args(analysis: &str) -> TableArgs {
        let cli = Cli::try_parse_from(["lt", "analyze", analysis, "trace"]).unwrap();
        let Command::Analyze(args) = cli.command else {
            panic!()
        };
        match args.command {
            AnalyzeCommand::Cpu(args) => args.common,
            AnalyzeCommand::Work(args) => args.common,
            other => panic!("{other:?}"),
        }
    }

    /// CPU 0 is recorded for 1000 ns, in which one thread runs, and CPU 1 for the last 100 ns.
    #[test]
    fn a_thread_uses_at_most_one_cpu_even_if_another_cpu_is_recorded_for_less_time() {
        let events = [
            switch(0, 0, 0, R, 7),
            switch(900, 1, 0, R, 9),
            switch(1000, 0, 7, R, 10),
        ];
        let events = events.map(|event| seen(event.time, event.cpu, Step::Known(event.what)));
        let args = args("cpu");
        let shares = |by| {
            let builder = Builder::new(Analysis::Cpu, Range::all(0), Some(by));
            let found = found(Subject::Cpu, builder, &events);
            let report = Report::new(found, Vec::new(), &args);
            let table = &report.found.tables.tables[0];
            let rows = report.rows(table).into_iter();
            rows.map(|line| (line.name.clone(), report.share(table, &line).unwrap()))
                .collect::<Vec<_>>()
        };
        let row = |name: &str, share| (name.to_string(), share);
        assert_eq!(
            shares(By::Thread),
            [row("late/7", 1.0), row("thread 9", 0.1)]
        );
        assert_eq!(shares(By::Cpu), [row("0", 1.0), row("1", 1.0)]);
    }

    /// Worker 7 on CPU 0 runs items that 8 on CPU 1, another item, a softirq and an unknown queuer queued.
    #[test]
    fn what_queued_a_work_item_is_named() {
        use WorkStage::{Ended, Queued, Started};
        let analysis = Analysis::Work {
            recorded: Recorded {
                handlers: true,
                softirqs: true,
                timers: true,
                ipis: true,
                ..Recorded::default()
            },
            ends: true,
        };
        let item = |time, cpu, stage, work| {
            let item = Work {
                stage,
                work,
                function: Some(0xf0 + work),
                workqueue: None,
            };
            seen(time, cpu, Step::Work(item))
        };
        let known = |time, cpu, what| seen(time, cpu, Step::Known(what));
        let events = [
            known(0, 0, switch(0, 0, 0, R, 7).what),
            known(0, 1, switch(0, 1, 0, R, 8).what),
            item(1, 1, Queued, 1),
            item(2, 0, Started, 1),
            item(3, 0, Queued, 2),
            item(4, 0, Ended, 1),
            item(5, 0, Started, 2),
            item(6, 0, Ended, 2),
            known(7, 1, What::Softirq { vector: 3 }),
            item(8, 1, Queued, 3),
            known(9, 1, What::SoftirqEnd { vector: 3 }),
            item(10, 0, Started, 3),
            item(11, 0, Ended, 3),
            item(20, 0, Started, 4),
            item(25, 0, Ended, 4),
        ];
        let builder = Builder::new(analysis, Range::all(9), Some(By::Queuer));
        let args = args("work");
        let report = Report::new(found(Subject::Work, builder, &events), Vec::new(), &args);
        let table = &report.found.tables.tables[1];
        let rows = report.rows(table).into_iter();
        let rows: Vec<_> = rows.map(|line| line.name).collect();
        let expected = [
            "not recorded",
            "hog/8",
            "softirq NET_RX",
            "work item wb_workfn",
        ];
        assert_eq!(rows, expected);
        let what = |case: &Case| report.what(case);
        let expected = [
            "0xf4, queuer not recorded",
            "wb_workfn, queued by hog/8",
            "0xf2, queued by work item wb_workfn",
            "0xf3, queued by softirq NET_RX",
        ];
        assert_eq!(table.worst.iter().map(what).collect::<Vec<_>>(), expected);
        let json = super::super::json::of(&report);
        let worst = json["tables"][1]["worst"].as_array().unwrap().iter();
        let queuers = worst.map(|case| json!([case["queuer"], case["queued_by"]]));
        let expected = [
            json!([null, null]),
            json!(["thread", {"tid": 8, "comm": "hog"}]),
            json!(["work", {"function": "0xf1", "name": "wb_workfn"}]),
            json!(["softirq", {"vector": 3, "name": "NET_RX"}]),
        ];
        assert_eq!(queuers.collect::<Vec<_>>(), expected);
    }
}
