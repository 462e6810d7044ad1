// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Prints a path as text and as JSON.

use std::collections::HashMap;

use lt_common::out;
use lt_model::why::{Cause, Leaf, Limit, Piece, Place, Waited, causes, instead};
use lt_model::{
    Before, CallFile, Context, Handler, Interval, Kind, Model, Name, Raiser, Runtime, ThreadId,
    Unrecorded, Use, Vector, why,
};
use lt_proc::Nanos;
use serde::Serialize;

use super::fold::{self, Part, Row};
use super::words::{
    Facts, disk_name, held, is_call, name_at, remedy, unrecorded, used_by, waits_for,
};

/// Maximum indentation: one column for each thread in a chain of waiting threads.
const DEEPEST: usize = 12;
/// Causes are listed until the remainder is at most 1/`MOST` of the time.
const MOST: u64 = 20;
/// Maximum number of causes that are listed.
const CAUSES: usize = 12;

/// A path to print.
pub(crate) struct Shown<'a> {
    pub(crate) model: &'a Model,
    pub(crate) thread: ThreadId,
    pub(crate) range: (u64, u64),
    pub(crate) pieces: &'a [Piece],
    pub(crate) facts: &'a Facts,
}

/// A cause of one thread, or of several threads with the same name.
pub(super) struct Group {
    pub(super) threads: Vec<ThreadId>,
    pub(super) cause: Cause,
    pub(super) time: u64,
    count: u64,
    longest: u64,
}

impl Group {
    fn new(sum: &why::Sum) -> Self {
        Self {
            threads: vec![sum.thread],
            cause: sum.cause,
            time: sum.time,
            count: sum.count,
            longest: sum.longest,
        }
    }

    fn add(&mut self, sum: &why::Sum) {
        self.threads.push(sum.thread);
        self.time += sum.time;
        self.count += sum.count;
        self.longest = self.longest.max(sum.longest);
    }

    /// `fio/812`, or `fio (12 threads)`, with the name at `time`.
    pub(super) fn who(&self, model: &Model, time: u64) -> String {
        let called = |id: &ThreadId| model.thread(*id).and_then(|t| t.name_at(time));
        match (&self.threads[..], self.threads.first().and_then(called)) {
            ([_, _, ..], Some(name)) => {
                let name = out::printable(model.names.text(name));
                format!("{name} ({} threads)", self.threads.len())
            }
            (threads, _) => threads
                .first()
                .map_or_else(String::new, |id| name_at(model, *id, time)),
        }
    }
}

/// `hog/8, worker (20, 21)`: the threads in order; threads with one name are grouped.
pub(crate) fn together<'t>(threads: impl IntoIterator<Item = &'t Thread>) -> String {
    let mut groups: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    for thread in threads {
        let (comm, tid) = (thread.comm.as_deref(), thread.tid.to_string());
        let known = groups.iter_mut().find(|(of, _)| *of == comm);
        match known.filter(|_| comm.is_some()) {
            Some((_, tids)) => tids.push(tid),
            None => groups.push((comm, vec![tid])),
        }
    }
    let each = groups.iter().map(|(comm, tids)| match (comm, &tids[..]) {
        (None, tids) => tids.join(", "),
        (Some(comm), [tid]) => format!("{}/{tid}", out::printable(comm)),
        (Some(comm), tids) => format!("{} ({})", out::printable(comm), tids.join(", ")),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Indents text by the depth in a chain of waiting threads.
fn indented(depth: usize, text: &str) -> String {
    format!("{:indent$}{text}", "", indent = depth.min(DEEPEST))
}

impl Shown<'_> {
    pub(super) fn text(&self, name: Name) -> String {
        out::printable(self.model.names.text(name))
    }

    /// The name of a file; `descriptor 3` if the file is not known.
    pub(super) fn file(&self, file: CallFile) -> String {
        match file {
            CallFile::Named(name) => out::printable(self.model.file_name(name)),
            CallFile::Descriptor(fd) => format!("descriptor {fd}"),
        }
    }

    /// The file or descriptor of the system call in which a thread was during these pieces, if it is the same in each
    /// piece. A descriptor of another thread may be another file.
    pub(super) fn file_of<'p>(
        &self,
        mut pieces: impl Iterator<Item = &'p Piece>,
    ) -> Option<CallFile> {
        let file = |piece: &Piece| self.model.file(piece.thread, piece.begin, piece.end);
        let first = pieces.next()?;
        let (thread, of_first) = (first.thread, file(first)?);
        let is_named = of_first.name().is_some();
        pieces
            .all(|piece| (is_named || piece.thread == thread) && file(piece) == Some(of_first))
            .then_some(of_first)
    }

    /// A thread, with its name at the end of the range.
    pub(crate) fn name(&self, id: ThreadId) -> String {
        name_at(self.model, id, self.range.1)
    }

    /// A sentence, a table of causes, and then the path.
    pub(crate) fn lines(&self, part: Part, depth: usize) -> Vec<String> {
        let (from, to) = self.range;
        let mut lines = vec![format!(
            "{} from {from} to {to}: {}",
            self.name(self.thread),
            Nanos(to - from)
        )];
        if let Some(verdict) = self.verdict() {
            lines.push(String::new());
            lines.extend(out::wrap(&verdict, 0));
        }
        if let Some(missing) = self.not_recorded() {
            lines.extend(out::wrap(&missing, 0));
        }
        lines.push(String::new());
        self.causes(part == Part::All, &mut lines);
        lines.push(String::new());
        self.path(part, depth, &mut lines);
        lines
    }

    /// `Not recorded: 12 % of the time (60.00ms): events of CPU 1 were lost; record with larger buffers.` `None` if
    /// everything is recorded.
    pub(crate) fn not_recorded(&self) -> Option<String> {
        let mut reasons: Vec<(Unrecorded, u64)> = Vec::new();
        for piece in self.pieces {
            let Cause::Unknown(why) = piece.cause else {
                continue;
            };
            let took = piece.end - piece.begin;
            match reasons.iter_mut().find(|(of, _)| *of == why) {
                Some((_, sum)) => *sum += took,
                None => reasons.push((why, took)),
            }
        }
        reasons.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        let (most, _) = *reasons.first()?;
        let sum = reasons.iter().map(|(_, took)| took).sum();
        let mut text = format!(
            "Not recorded: {}: {}",
            out::share(sum, self.range.1 - self.range.0, self.facts.whole),
            unrecorded(most)
        );
        if reasons.len() > 1 {
            let others = out::plural(reasons.len() - 1, "other reason");
            text += &format!(", and {others}");
        }
        if let Some(remedy) = remedy(most) {
            text += &format!("; {remedy}");
        }
        Some(text + ".")
    }

    /// Lists the causes of the time. Unless `all` is set, threads with the same name are merged, and rare causes are
    /// summed up.
    fn causes(&self, all: bool, lines: &mut Vec<String>) {
        let took = self.range.1 - self.range.0;
        let mut groups = self.groups(all);
        let mut seen = 0;
        let is_rare = |group: &Group| {
            let before = seen;
            seen += group.time;
            !all && before >= took - took / MOST
        };
        let frequent = groups.iter().position(is_rare).unwrap_or(groups.len());
        let rare = groups.split_off(match all {
            true => groups.len(),
            false => frequent.min(CAUSES),
        });
        let row = |group: &Group| {
            vec![
                Nanos(group.time).to_string(),
                format!("{:.1}", group.time as f64 * 100.0 / took.max(1) as f64),
                out::thousands(group.count),
                Nanos(group.longest).to_string(),
                group.who(self.model, self.range.1),
                self.what(group.cause),
            ]
        };
        let rows: Vec<_> = groups.iter().map(row).collect();
        lines.extend(out::table(
            &[">TIME", ">%", ">COUNT", ">LONGEST", "THREAD", "CAUSE"],
            &rows,
        ));
        if !rare.is_empty() {
            lines.push(format!(
                "and {}, {} in total",
                out::plural(rare.len(), "more cause"),
                Nanos(rare.iter().map(|group| group.time).sum())
            ));
        }
    }

    /// The causes, longest first; unless `each` is set, threads with the same name are merged.
    pub(super) fn groups(&self, each: bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places = HashMap::new();
        for sum in causes(self.pieces) {
            let thread = self.model.thread(sum.thread);
            let called = thread.and_then(|t| t.name_at(self.range.1));
            let key = match called.filter(|_| !each) {
                Some(name) => (Some(name), None, sum.cause),
                None => (None, Some(sum.thread), sum.cause),
            };
            let place = *places.entry(key).or_insert(groups.len());
            match groups.get_mut(place) {
                Some(group) => group.add(&sum),
                None => groups.push(Group::new(&sum)),
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.time));
        groups
    }

    /// Prints the steps, one per line, and a line for each run of steps that is not shown.
    fn path(&self, part: Part, depth: usize, lines: &mut Vec<String>) {
        let rows = fold::rows(self.pieces, part, depth);
        let begin = |row: &Row<'_>| match row {
            Row::Step(piece) => piece.begin,
            Row::Folded(steps) => steps.first().map_or(0, |piece| piece.begin),
        };
        let begins: Vec<u64> = rows.iter().map(|row| begin(row) - self.range.0).collect();
        let mut left = 0;
        let cells = |(at, row): (String, &Row<'_>)| match row {
            Row::Step(piece) => vec![
                at,
                Nanos(piece.end - piece.begin).to_string(),
                indented(piece.depth, &self.name(piece.thread)),
                self.step(piece),
            ],
            Row::Folded(steps) => {
                left += steps.len();
                let mut threads: Vec<ThreadId> = steps.iter().map(|p| p.thread).collect();
                threads.sort_unstable();
                threads.dedup();
                let who = match threads[..] {
                    [one] => self.name(one),
                    _ => format!("{} threads", threads.len()),
                };
                let depth = steps.iter().map(|p| p.depth).min().unwrap_or(0);
                let time = |piece: &Piece| piece.end - piece.begin;
                let longest = steps.iter().map(time).max().unwrap_or(0);
                vec![
                    at,
                    Nanos(steps.iter().map(time).sum()).to_string(),
                    indented(depth, &who),
                    match steps.len() {
                        1 => "1 step".into(),
                        n => format!(
                            "{} steps, up to {}",
                            out::thousands(n as u64),
                            Nanos(longest)
                        ),
                    },
                ]
            }
        };
        let cells: Vec<_> = fold::offsets(&begins)
            .into_iter()
            .zip(&rows)
            .map(cells)
            .collect();
        lines.extend(out::table(&[">AT", ">TOOK", "THREAD", "STEP"], &cells));
        if left > 0 {
            lines.push(format!(
                "{} of {} steps are summed up; --all shows them",
                out::thousands(left as u64),
                out::thousands(self.pieces.len() as u64)
            ));
        }
    }

    /// Describes a step, and what ran on the CPU for which its thread waited.
    pub(crate) fn step(&self, piece: &Piece) -> String {
        let mut text = match (piece.cause, piece.cpu) {
            (Cause::Waiting, None) => "woken, waits for a CPU that is not recorded".into(),
            (Cause::Preempted, None) => "runnable, waits for a CPU that is not recorded".into(),
            (Cause::Waiting, Some(cpu)) => format!("woken, waits for CPU {cpu}"),
            (Cause::Preempted, Some(cpu)) => format!("runnable, waits for CPU {cpu}"),
            (Cause::LeavesIdle, Some(cpu)) => format!("runnable, CPU {cpu} leaves idle"),
            (cause, _) => self.what_on(cause, self.file_of([piece].into_iter())),
        };
        if let Some((used, time)) = instead(self.model, piece)
            && used != Use::Unknown
        {
            text += &format!(
                " ({} for {})",
                used_by(self.model, used, self.range.1),
                Nanos(time)
            );
        }
        text
    }

    /// Describes the state of a thread in an interval. A sleep that a thread ended was a wait for that thread.
    pub(crate) fn state(&self, interval: &Interval) -> String {
        let cause = Cause::of(self.model, interval);
        let by = interval.waker.and_then(|w| self.model.waker(w)?.by());
        match cause {
            Cause::Blocked(call) if by.is_some() => {
                waits_for(self.model, Waited::Blocked(call), by, self.range.1)
            }
            Cause::Idle if by.is_some() => {
                waits_for(self.model, Waited::Blocked(None), by, self.range.1)
            }
            _ => self.what(cause),
        }
    }

    pub(crate) fn what(&self, cause: Cause) -> String {
        self.what_on(cause, None)
    }

    /// Describes a cause; in a system call, with its file.
    fn what_on(&self, cause: Cause, file: Option<CallFile>) -> String {
        let within = |call| self.within(call, file);
        match cause {
            Cause::Running(call) => format!("runs{}", within(call)),
            Cause::Interrupted(leaf) => format!("interrupted: {}", self.leaf(leaf)),
            Cause::Preempted => "runnable, waits for a CPU".into(),
            Cause::Waiting => "woken, waits for a CPU".into(),
            Cause::LeavesIdle => "runnable, its CPU leaves idle".into(),
            Cause::Limited(limit) => format!("runnable, {}", self.facts.limit(limit)),
            Cause::For(leaf, call) => format!("waits{} for {}", within(call), self.leaf(leaf)),
            Cause::Blocked(call) => {
                format!("waits{}; the waker is not recorded", within(call))
            }
            Cause::Held(disk, place, call) => {
                format!(
                    "waits{} for a request {}",
                    within(call),
                    held(self.model, disk, place)
                )
            }
            Cause::Idle => "idle; the source of its next work is not recorded".into(),
            Cause::Transit => "is about to be woken".into(),
            Cause::Unknown(why) => format!("not recorded: {}", unrecorded(why)),
        }
    }

    /// ` in read of /var/log/a`; nothing without a call.
    pub(super) fn within(&self, call: Option<Name>, file: Option<CallFile>) -> String {
        let of = file.map(|file| format!(" of {}", self.file(file)));
        let of = of.unwrap_or_default();
        let call = call.map(|call| format!(" in {}{of}", self.text(call)));
        call.unwrap_or_default()
    }

    pub(super) fn leaf(&self, leaf: Leaf) -> String {
        if let Leaf::Others(disk, of) = leaf {
            let disk = disk_name(self.model, disk);
            return format!("{disk} (a request of {})", self.name(of));
        }
        self.facts.leaf(self.model, leaf)
    }

    /// The path for programs; times are ns of the trace's clock.
    pub(crate) fn json(&self) -> Json {
        let sum = |sum: why::Sum| Sum {
            thread: self.thread_json(sum.thread),
            cause: self.cause_json(sum.cause),
            time: sum.time,
            count: sum.count,
            longest: sum.longest,
            served: self.served_json(&sum),
            busy: self.busy_json(&sum),
        };
        let step = |piece: &Piece| {
            let file = self.model.file(piece.thread, piece.begin, piece.end);
            let of_cpu = instead(self.model, piece);
            Step {
                begin: piece.begin,
                end: piece.end,
                depth: piece.depth,
                thread: self.thread_json(piece.thread),
                cause: self.cause_json(piece.cause),
                file: self.file_json(file),
                descriptor: file.and_then(CallFile::descriptor),
                cpu: piece.cpu,
                instead: of_cpu.map(|(used, time)| self.instead_json(used, time)),
            }
        };
        Json {
            analysis: "path",
            thread: self.thread_json(self.thread),
            from: self.range.0,
            to: self.range.1,
            causes: causes(self.pieces).into_iter().map(sum).collect(),
            path: self.pieces.iter().map(step).collect(),
        }
    }

    /// The requests that a disk served while a thread waited for a free request, if they are recorded. `None` for
    /// another cause.
    fn served_json(&self, sum: &why::Sum) -> Option<Option<Served>> {
        let (_, served) = why::served(self.model, self.held_in(sum)?)?;
        let by = |by: &lt_model::ServedFor| ServedFor {
            thread: by.thread.map(|thread| self.thread_json(thread)),
            requests: by.requests,
            time: by.time,
        };
        Some(served.map(|served| Served {
            requests: served.requests,
            time: served.time,
            at_least: served.is_least,
            by: served.by.iter().map(by).collect(),
        }))
    }

    /// How long a disk had been busy at the end of a wait for a free request, if this is known.
    fn busy_json(&self, sum: &why::Sum) -> Option<Busy> {
        let (_, busy) = why::busy(self.model, self.held_in(sum)?)?;
        let (at_least, idle_before) = match busy.before {
            Before::Idle(idle) => (false, idle),
            Before::Missing | Before::Unrecorded => (true, None),
        };
        Some(Busy {
            since: busy.since,
            time: busy.until - busy.since,
            at_least,
            longest_pause: busy.pause,
            idle_before,
        })
    }

    /// The pieces of this cause, if it held a request back.
    fn held_in(&self, sum: &why::Sum) -> Option<impl Iterator<Item = &Piece>> {
        let is_of = move |piece: &&Piece| piece.thread == sum.thread && piece.cause == sum.cause;
        let is_held = matches!(sum.cause, Cause::Held(..));
        is_held.then(|| self.pieces.iter().filter(is_of))
    }

    pub(super) fn thread_json(&self, id: ThreadId) -> Thread {
        let thread = self.model.thread(id);
        Thread {
            tid: thread.map_or(0, |t| t.tid),
            comm: thread
                .and_then(|t| t.name_at(self.range.1))
                .map(|n| self.model.names.text(n).to_string()),
        }
    }

    pub(super) fn file_json(&self, file: Option<CallFile>) -> Option<String> {
        let name = file.and_then(CallFile::name);
        name.map(|name| self.model.file_name(name).to_string())
    }

    pub(super) fn cause_json(&self, cause: Cause) -> CauseJson {
        let text = |name| self.model.names.text(name).to_string();
        let mut json = CauseJson::default();
        let (kind, call, leaf) = match cause {
            Cause::Running(call) => ("running", call, None),
            Cause::Interrupted(leaf) => ("interrupted", None, Some(leaf)),
            Cause::Preempted => ("preempted", None, None),
            Cause::Waiting => ("waiting", None, None),
            Cause::LeavesIdle => {
                json.by = Some("idle-exit");
                ("waiting", None, None)
            }
            Cause::Limited(Limit::Quota(cgroup)) => {
                json.by = Some("cpu.max");
                json.name = self.facts.cgroup(cgroup).map(str::to_string);
                ("limited", None, None)
            }
            Cause::Limited(Limit::Deadline(runtime)) => {
                json.by = Some("deadline");
                json.name = match runtime {
                    Runtime::UsedUp => Some("used-up".into()),
                    Runtime::Yielded => Some("yielded".into()),
                    Runtime::Unrecorded => None,
                };
                ("limited", None, None)
            }
            Cause::For(leaf, call) => ("blocked", call, Some(leaf)),
            Cause::Blocked(call) => ("blocked", call, None),
            Cause::Held(disk, place, call) => {
                json.held = Some(match place {
                    Place::Unsubmitted => "unsubmitted",
                    Place::Limited => "io.max",
                    Place::Stacked => "stacked",
                    Place::Unallocated
                    | Place::NoTag
                    | Place::WritebackThrottling
                    | Place::IoCost
                    | Place::IoLatency => "unallocated",
                    Place::Queued => "queued",
                    Place::Unrecorded => "unrecorded",
                });
                json.function = place.function();
                ("blocked", call, Some(Leaf::Disk(Some(disk))))
            }
            Cause::Idle => ("idle", None, None),
            Cause::Transit => ("transit", None, None),
            Cause::Unknown(why) => {
                let (why, cpu) = reason(why);
                (json.why, json.of_cpu) = (Some(why), cpu);
                ("unknown", None, None)
            }
        };
        json.known = known(cause);
        json.kind = kind;
        json.syscall = call.map(text);
        let disk = match leaf {
            Some(Leaf::Disk(disk) | Leaf::Dirty(disk)) => disk,
            Some(Leaf::Special(disk, _) | Leaf::Others(disk, _) | Leaf::Completion(disk)) => {
                Some(disk)
            }
            _ => None,
        };
        let disk = disk.and_then(|disk| self.model.disk_name(disk));
        json.disk = disk.map(str::to_string);
        match leaf {
            Some(Leaf::Timer) => json.by = Some("timer"),
            Some(Leaf::PerhapsTimer { disk, .. }) => {
                json.by = Some("timer");
                json.perhaps = Some(if disk { "disk" } else { "dirty-limit" });
            }
            Some(Leaf::PerhapsHigh(cgroup)) => {
                json.by = Some("timer");
                json.perhaps = Some("memory.high");
                json.name = self.facts.cgroup(cgroup).map(str::to_string);
            }
            Some(Leaf::Special(disk, kind)) => {
                json.by = Some("disk");
                json.name = Some(disk.to_string());
                json.request = match kind {
                    Kind::Flush => Some("flush"),
                    Kind::Discard => Some("discard"),
                    Kind::Other => Some("other"),
                    Kind::Plain => None,
                };
            }
            Some(Leaf::Disk(disk)) => {
                json.by = Some("disk");
                json.name = disk.map(|disk| disk.to_string());
            }
            Some(Leaf::Others(disk, of)) => {
                json.by = Some("disk");
                json.name = Some(disk.to_string());
                json.request_of = Some(self.thread_json(of));
            }
            Some(Leaf::Dirty(disk)) => {
                json.by = Some("dirty-limit");
                json.name = disk.map(|disk| disk.to_string());
            }
            Some(Leaf::Completion(disk)) => {
                json.by = Some("completion");
                json.name = Some(disk.to_string());
            }
            Some(Leaf::Network(Handler(number, name))) => {
                json.by = Some("network");
                (json.irq, json.name) = (Some(number), Some(text(name)));
            }
            Some(Leaf::Packet(by)) => {
                json.by = Some("packet");
                json.raised_by = raiser(self.model, by);
            }
            Some(Leaf::Irq(number, name)) => {
                json.by = Some("irq");
                (json.irq, json.name) = (Some(number), Some(text(name)));
            }
            Some(Leaf::Softirq(vector, by)) => {
                json.by = Some("softirq");
                json.irq = match by {
                    Raiser::Device(Handler(number, _)) => Some(number),
                    _ => None,
                };
                json.raised_by = raiser(self.model, by);
                json.name = Some(Vector(vector).name().to_string());
            }
            Some(Leaf::Ipi(name)) => {
                json.by = Some(if is_call(self.model, name) {
                    "ipi"
                } else {
                    "irq"
                });
                json.name = Some(text(name));
            }
            Some(Leaf::Unseen) => json.by = Some("unseen"),
            Some(Leaf::Continue) => json.by = Some("signal"),
            Some(Leaf::Tracer) => json.by = Some("tracer"),
            Some(Leaf::Resource(&(function, what))) => {
                json.by = Some("resource");
                (json.name, json.function) = (Some(what.into()), Some(function));
            }
            Some(Leaf::Freezer(cgroup)) => {
                json.by = Some("freezer");
                json.name = self.facts.cgroup(cgroup).map(str::to_string);
            }
            None => {}
        }
        json
    }

    fn instead_json(&self, used: Use, time: u64) -> Instead {
        let (kind, thread) = match used {
            Use::Unknown => ("unknown", None),
            Use::Idle => ("idle", None),
            Use::Thread(id) => ("thread", Some(self.thread_json(id))),
            Use::Context(Context::Softirq { .. }) => ("softirq", None),
            Use::Context(_) => ("interrupt", None),
        };
        Instead { kind, thread, time }
    }
}

#[derive(Serialize)]
pub(crate) struct Json {
    analysis: &'static str,
    thread: Thread,
    from: u64,
    to: u64,
    causes: Vec<Sum>,
    path: Vec<Step>,
}

/// A thread, and its name at the end of the range, if that is known.
#[derive(Serialize)]
pub(crate) struct Thread {
    pub(crate) tid: i32,
    pub(crate) comm: Option<String>,
}

/// The raiser of a softirq, if recorded.
fn raiser(model: &Model, by: Raiser) -> Option<&'static str> {
    Some(match by {
        Raiser::Unrecorded => return None,
        Raiser::Device(_) => "device",
        Raiser::Timer => "timer",
        Raiser::Thread => "thread",
        Raiser::Ipi(name) if is_call(model, name) => "ipi",
        Raiser::Ipi(_) => "interrupt",
        Raiser::Several => "several",
    })
}

/// Why nothing is recorded, as a word, and the CPU responsible.
pub(super) fn reason(why: Unrecorded) -> (&'static str, Option<u32>) {
    match why {
        Unrecorded::Unseen => ("unseen", None),
        Unrecorded::Before(cpu) => ("starts-later", Some(cpu)),
        Unrecorded::After(cpu) => ("ends-earlier", Some(cpu)),
        Unrecorded::Lost(cpu) | Unrecorded::NoPackets(cpu) | Unrecorded::Damaged(cpu) => {
            ("lost", Some(cpu))
        }
        Unrecorded::Between(cpu) => ("between-traces", Some(cpu)),
        Unrecorded::NoStream(cpu) => ("no-stream", Some(cpu)),
        Unrecorded::Missing => ("missing", None),
        Unrecorded::Ended => ("ended", None),
    }
}

/// How the cause is known: `seen` in events or in a stack, `inferred` from other events, counters or the alert, or
/// `not-recorded`. A wait whose waker is not recorded is itself `seen`, but has no `by`.
pub(super) fn known(cause: Cause) -> &'static str {
    match cause {
        Cause::Unknown(_)
        | Cause::For(Leaf::PerhapsTimer { .. } | Leaf::Softirq(u32::MAX, _), _) => "not-recorded",
        Cause::For(Leaf::Unseen | Leaf::Freezer(_), _)
        | Cause::Interrupted(Leaf::Unseen)
        | Cause::Limited(_) => "inferred",
        _ => "seen",
    }
}

/// A cause for programs. `by` names what a thread waited for, what interrupted it, or what kept it from running: a
/// limit, or a CPU that took time to leave idle. `known` and `perhaps` show how certain it is.
#[derive(Serialize, Default)]
pub(crate) struct CauseJson {
    kind: &'static str,
    known: &'static str,
    /// Why the cause is not recorded, and the CPU responsible.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syscall: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    irq: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raised_by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Name of the disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<String>,
    /// Kind of the disk request, if not a plain read or write.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'static str>,
    /// A possible reason, not proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    perhaps: Option<&'static str>,
    /// The thread of the disk request, if it is not the waiting thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_of: Option<Thread>,
    /// The kernel function in which the thread slept, if it shows the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'static str>,
}

#[derive(Serialize)]
struct Sum {
    thread: Thread,
    cause: CauseJson,
    time: u64,
    count: u64,
    longest: u64,
    /// `null` if not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<Option<Served>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy: Option<Busy>,
}

/// The requests that a disk served while a thread waited for a free request.
#[derive(Serialize)]
struct Served {
    requests: u64,
    /// Time of the wait in which the disk had at least one of these requests, ns.
    time: u64,
    /// Whether the time is a lower bound.
    at_least: bool,
    by: Vec<ServedFor>,
}

/// How long a disk had been busy at the end of a wait for a free request.
#[derive(Serialize)]
struct Busy {
    /// Start, ns.
    since: u64,
    /// Time from `since` to the end of the wait, ns.
    time: u64,
    /// Whether the disk may have been busy before.
    at_least: bool,
    /// Upper bound of the pauses, ns.
    longest_pause: u64,
    /// How long the disk had been idle before `since`, ns, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    idle_before: Option<u64>,
}

/// The requests of one thread.
#[derive(Serialize)]
struct ServedFor {
    /// `null` if not recorded.
    thread: Option<Thread>,
    requests: u64,
    time: u64,
}

#[derive(Serialize)]
struct Step {
    begin: u64,
    end: u64,
    depth: usize,
    thread: Thread,
    cause: CauseJson,
    /// The file of the system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The descriptor of the system call, if its file is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<Instead>,
}

/// The longest use of the CPU for which the thread waited.
#[derive(Serialize)]
struct Instead {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<Thread>,
    time: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::made::{R, S, at, model, switch, waking};
    use lt_model::What;

    /// The path of thread 7, which waits for an interrupt with that name.
    fn path_of(name: &'static str) -> serde_json::Value {
        let name = name.as_bytes();
        let model = model(&[
            switch(0, 0, 0, R, 7),
            switch(10, 0, 7, S, 0),
            at(20, 0, What::Ipi { name }),
            waking(21, 0, 7),
            at(22, 0, What::IpiEnd),
            switch(25, 0, 0, R, 7),
            switch(30, 0, 7, S, 0),
        ]);
        let thread = model.by_tid(7).next().unwrap();
        let pieces = why::path(&model, thread, 0, 30);
        let shown = Shown {
            model: &model,
            thread,
            range: (0, 30),
            pieces: &pieces,
            facts: &Facts::NONE,
        };
        let mut json = serde_json::to_value(shown.json()).unwrap();
        json["said"] = shown.what(pieces[1].cause).into();
        json
    }

    #[test]
    fn an_interrupt_that_a_cpu_sends_to_itself_does_not_come_from_another_cpu() {
        let (other, own) = (path_of("call_function_single"), path_of("irq_work"));
        assert_eq!(
            other["said"],
            "waits for another CPU (call_function_single)"
        );
        assert_eq!(other["path"][1]["cause"]["by"], "ipi");
        assert_eq!(own["said"], "waits for interrupt irq_work");
        assert_eq!(own["path"][1]["cause"]["by"], "irq");
        assert_eq!(own["path"][1]["cause"]["name"], "irq_work");
    }
}
