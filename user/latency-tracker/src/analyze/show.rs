// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A path as a person reads it, and as a program does.

use std::collections::HashMap;

use lt_analyze::{Cause, Leaf, Piece, Place, causes, instead};
use lt_model::{Context, Disk, Handler, Model, Name, Raiser, ThreadId, Unrecorded, Use, Vector};
use lt_proc::Nanos;
use serde::Serialize;

use super::fold::{self, Part, Row};
use crate::out;

/// Threads that wait for each other are indented by one column each, up to this.
const DEEPEST: usize = 12;
/// Causes are shown until what is left is less than this part of the time,
const MOST: u64 = 20;
/// and no more than this number of them.
const CAUSES: usize = 12;

/// What is to be shown.
pub(crate) struct Shown<'a> {
    pub(crate) model: &'a Model,
    pub(crate) thread: ThreadId,
    pub(crate) range: (u64, u64),
    pub(crate) pieces: &'a [Piece],
}

/// A cause, of one thread or of several with one name.
pub(super) struct Group {
    pub(super) threads: Vec<ThreadId>,
    pub(super) cause: Cause,
    pub(super) time: u64,
    count: u64,
    longest: u64,
}

impl Group {
    fn new(sum: &lt_analyze::Sum) -> Self {
        Self {
            threads: vec![sum.thread],
            cause: sum.cause,
            time: sum.time,
            count: sum.count,
            longest: sum.longest,
        }
    }

    fn add(&mut self, sum: &lt_analyze::Sum) {
        self.threads.push(sum.thread);
        self.time += sum.time;
        self.count += sum.count;
        self.longest = self.longest.max(sum.longest);
    }

    /// `fio/812`, or `fio (12 threads)`.
    pub(super) fn who(&self, model: &Model) -> String {
        let called = |id: &ThreadId| model.thread(*id).and_then(|t| t.name);
        match (&self.threads[..], self.threads.first().and_then(called)) {
            ([_, _, ..], Some(name)) => {
                let name = out::printable(model.names.text(name));
                format!("{name} ({} threads)", self.threads.len())
            }
            (threads, _) => threads
                .first()
                .map_or_else(String::new, |id| name(model, *id)),
        }
    }
}

/// Deeper in a chain of threads that wait for each other.
fn indented(depth: usize, text: &str) -> String {
    format!("{:indent$}{text}", "", indent = depth.min(DEEPEST))
}

/// `fio/812`, or the number alone.
pub(crate) fn name(model: &Model, id: ThreadId) -> String {
    let thread = model.thread(id);
    let tid = thread.map_or(0, |t| t.tid);
    match thread.and_then(|t| t.name) {
        Some(name) => format!("{}/{tid}", out::printable(model.names.text(name))),
        None => tid.to_string(),
    }
}

/// `a timer`, `eth0 (interrupt 27)`, ...
pub(crate) fn leaf_name(model: &Model, leaf: Leaf) -> String {
    let text = |name| out::printable(model.names.text(name));
    match leaf {
        Leaf::Timer => "a timer".into(),
        Leaf::Disk(None) => "a disk (softirq BLOCK)".into(),
        Leaf::Disk(Some(disk)) => format!("disk {disk}"),
        Leaf::Dirty(Some(disk)) => format!("the dirty limit (data for disk {disk})"),
        Leaf::Dirty(None) => "the dirty limit".into(),
        Leaf::Completion(disk) => format!("a completion of disk {disk}"),
        Leaf::Network(Handler(number, name)) => {
            format!("the network ({}, interrupt {number})", text(name))
        }
        Leaf::Packet(by) => packet(by).into(),
        Leaf::Irq(number, name) => format!("{} (interrupt {number})", text(name)),
        Leaf::Softirq(vector, Raiser::Device(Handler(number, name))) => format!(
            "softirq {} of {} (interrupt {number})",
            Vector(vector).name(),
            text(name)
        ),
        Leaf::Softirq(vector, by) => {
            let by = match by {
                Raiser::Timer => " of a timer",
                Raiser::Thread => " of a thread",
                Raiser::Ipi => " of another CPU",
                Raiser::Several => " of several sources",
                Raiser::Unrecorded | Raiser::Device(_) => "",
            };
            format!("softirq {}{by}", Vector(vector).name())
        }
        Leaf::Ipi(name) if is_call(model, name) => format!("another CPU ({})", text(name)),
        Leaf::Ipi(name) => format!("interrupt {}", text(name)),
        Leaf::Unseen => "an interrupt or a fault that is not recorded".into(),
    }
}

/// Where a request was that a disk had not got yet.
pub(crate) fn held(disk: Disk, place: Place) -> String {
    let place = match place {
        Place::Unsubmitted => ": not submitted",
        Place::Stacked => ": in a stacked device",
        Place::Unallocated => ": no free request",
        Place::Queued => ": in its queue",
        Place::Unrecorded => "",
    };
    format!("held back before disk {disk}{place}")
}

/// A packet that no device has brought, by what has raised the softirq.
fn packet(by: Raiser) -> &'static str {
    match by {
        Raiser::Timer => "a packet of a local timer",
        Raiser::Thread => "a packet sent on this machine",
        Raiser::Ipi => "a packet that another CPU has passed on",
        Raiser::Several => "a packet from one of several sources",
        Raiser::Unrecorded | Raiser::Device(_) => "a packet",
    }
}

/// What a sentence adds to a cause: what it may have been, or which event would show it.
pub(super) fn addition(cause: Cause) -> Option<&'static str> {
    Some(match cause {
        Cause::Held(_, place, _) => match place {
            Place::Unsubmitted => "by io.max of a cgroup, or by the thread that submits it",
            Place::Stacked => "device mapper or md",
            Place::Unallocated => "by its tags, writeback throttling or io.cost",
            Place::Queued => "by the I/O scheduler, or the disk is busy",
            Place::Unrecorded => "where is not recorded (enable block_bio_queue and block_getrq)",
        },
        Cause::For(Leaf::Dirty(_), _) => {
            "threads have written more than may wait to be on disk (vm.dirty_*)"
        }
        Cause::For(Leaf::Completion(_), _) => {
            "where its request was held is not recorded (enable block_rq_issue)"
        }
        Cause::For(Leaf::Packet(Raiser::Timer), _) => {
            "no device has brought it: a delayed ACK, a retransmission or pacing"
        }
        Cause::For(Leaf::Packet(Raiser::Unrecorded), _) => {
            "its source is not recorded (enable irq_softirq_raise)"
        }
        _ => return None,
    })
}

/// Why it is not recorded what a thread did.
pub(crate) fn unrecorded(why: Unrecorded) -> String {
    match why {
        Unrecorded::Unseen => "no event names the thread yet".into(),
        Unrecorded::Before(cpu) => format!("the trace of CPU {cpu} starts later"),
        Unrecorded::After(cpu) => format!("the trace of CPU {cpu} ends earlier"),
        Unrecorded::Lost(cpu) => format!("events of CPU {cpu} were lost"),
        Unrecorded::NoStream(cpu) => format!("the trace has no stream of CPU {cpu}"),
        Unrecorded::Missing => "events are missing, and no gap is reported".into(),
    }
}

/// How to record what is missing.
fn remedy(why: Unrecorded) -> Option<&'static str> {
    match why {
        Unrecorded::Before(_) => Some("use a larger --subbuf-size or --num-subbuf"),
        Unrecorded::Lost(_) => Some("record with larger buffers"),
        _ => None,
    }
}

/// Whether an interrupt of that name comes from another CPU. Of the others that have no handler of a device, a CPU
/// sends `irq_work` to itself, and the rest tell of errors and heat.
fn is_call(model: &Model, name: Name) -> bool {
    let calls = ["reschedule", "call_function", "call_function_single"];
    calls.contains(&model.names.text(name))
}

/// Who has a processor that is used so.
pub(crate) fn used_by(model: &Model, used: Use) -> String {
    match used {
        Use::Unknown => "something not recorded".into(),
        Use::Idle => "idle".into(),
        Use::Thread(id) => name(model, id),
        Use::Context(context) => leaf_name(model, context.into()),
    }
}

impl Shown<'_> {
    fn text(&self, name: Name) -> String {
        out::printable(self.model.names.text(name))
    }

    /// A sentence, a table of causes, and then the path.
    pub(crate) fn lines(&self, part: Part, depth: usize) -> Vec<String> {
        let (from, to) = self.range;
        let mut lines = vec![format!(
            "{} from {from} to {to}: {}",
            name(self.model, self.thread),
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

    /// `Not recorded: 12 % of it (60ms): events of CPU 1 were lost; record with larger buffers.` Nothing if all of it is.
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
            out::share(sum, self.range.1 - self.range.0),
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

    /// What the time went to. Unless all are asked for, threads of one name are one, and what is rare is summed up.
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
                group.who(self.model),
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
                "and {}, {} in all",
                out::plural(rare.len(), "more cause"),
                Nanos(rare.iter().map(|group| group.time).sum())
            ));
        }
    }

    /// The causes, those that took most first; if not `each`, those of threads of one name together.
    pub(super) fn groups(&self, each: bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places = HashMap::new();
        for sum in causes(self.pieces) {
            let called = self.model.thread(sum.thread).and_then(|t| t.name);
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

    /// The steps, one a line, and a line for those between them that are not shown.
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
                indented(piece.depth, &name(self.model, piece.thread)),
                self.step(piece),
            ],
            Row::Folded(steps) => {
                left += steps.len();
                let mut threads: Vec<ThreadId> = steps.iter().map(|p| p.thread).collect();
                threads.sort_unstable();
                threads.dedup();
                let who = match threads[..] {
                    [one] => name(self.model, one),
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

    /// What a piece is, and who had the processor that it waited for.
    pub(crate) fn step(&self, piece: &Piece) -> String {
        let mut text = match (piece.cause, piece.cpu) {
            (Cause::Waiting, None) => "woken, waits for a CPU, not recorded which".into(),
            (Cause::Preempted, None) => "preempted, not recorded on which CPU".into(),
            (Cause::Waiting, Some(cpu)) => format!("woken, waits for CPU {cpu}"),
            (Cause::Preempted, Some(cpu)) => format!("preempted on CPU {cpu}"),
            (cause, _) => self.what(cause),
        };
        if let Some((used, time)) = instead(self.model, piece)
            && used != Use::Unknown
        {
            text += &format!(" ({} for {})", used_by(self.model, used), Nanos(time));
        }
        text
    }

    pub(crate) fn what(&self, cause: Cause) -> String {
        let within = |call: Option<Name>| {
            let call = call.map(|c| format!(" in {}", self.text(c)));
            call.unwrap_or_default()
        };
        match cause {
            Cause::Running(call) => format!("runs{}", within(call)),
            Cause::Interrupted(leaf) => format!("interrupted: {}", self.leaf(leaf)),
            Cause::Preempted => "preempted".into(),
            Cause::Waiting => "woken, waits for a CPU".into(),
            Cause::For(leaf, call) => format!("waits{} for {}", within(call), self.leaf(leaf)),
            Cause::Blocked(call) => {
                format!("waits{}; waker not recorded", within(call))
            }
            Cause::Held(disk, place, call) => {
                format!("request{} {}", within(call), held(disk, place))
            }
            Cause::Idle => "idle; source of its next work not recorded".into(),
            Cause::Transit => "is about to be woken".into(),
            Cause::Unknown(why) => format!("not recorded: {}", unrecorded(why)),
        }
    }

    fn leaf(&self, leaf: Leaf) -> String {
        leaf_name(self.model, leaf)
    }

    /// For programs; times are ns of the trace's clock.
    pub(crate) fn json(&self) -> Json {
        let sum = |sum: lt_analyze::Sum| Sum {
            thread: self.thread_json(sum.thread),
            cause: self.cause_json(sum.cause),
            time: sum.time,
            count: sum.count,
            longest: sum.longest,
        };
        let step = |piece: &Piece| Step {
            begin: piece.begin,
            end: piece.end,
            depth: piece.depth,
            thread: self.thread_json(piece.thread),
            cause: self.cause_json(piece.cause),
            cpu: piece.cpu,
            instead: instead(self.model, piece).map(|(used, time)| self.instead_json(used, time)),
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

    fn thread_json(&self, id: ThreadId) -> Thread {
        let thread = self.model.thread(id);
        Thread {
            tid: thread.map_or(0, |t| t.tid),
            comm: thread
                .and_then(|t| t.name)
                .map(|n| self.model.names.text(n).to_string()),
        }
    }

    fn cause_json(&self, cause: Cause) -> CauseJson {
        let text = |name| self.model.names.text(name).to_string();
        let mut json = CauseJson::default();
        let (kind, call, leaf) = match cause {
            Cause::Running(call) => ("running", call, None),
            Cause::Interrupted(leaf) => ("interrupted", None, Some(leaf)),
            Cause::Preempted => ("preempted", None, None),
            Cause::Waiting => ("waiting", None, None),
            Cause::For(leaf, call) => ("blocked", call, Some(leaf)),
            Cause::Blocked(call) => ("blocked", call, None),
            Cause::Held(disk, place, call) => {
                json.held = Some(match place {
                    Place::Unsubmitted => "unsubmitted",
                    Place::Stacked => "stacked",
                    Place::Unallocated => "unallocated",
                    Place::Queued => "queued",
                    Place::Unrecorded => "unrecorded",
                });
                ("blocked", call, Some(Leaf::Disk(Some(disk))))
            }
            Cause::Idle => ("idle", None, None),
            Cause::Transit => ("transit", None, None),
            Cause::Unknown(why) => {
                let (why, cpu) = match why {
                    Unrecorded::Unseen => ("unseen", None),
                    Unrecorded::Before(cpu) => ("starts-later", Some(cpu)),
                    Unrecorded::After(cpu) => ("ends-earlier", Some(cpu)),
                    Unrecorded::Lost(cpu) => ("lost", Some(cpu)),
                    Unrecorded::NoStream(cpu) => ("no-stream", Some(cpu)),
                    Unrecorded::Missing => ("missing", None),
                };
                (json.why, json.of_cpu) = (Some(why), cpu);
                ("unknown", None, None)
            }
        };
        json.known = known(cause);
        json.kind = kind;
        json.syscall = call.map(text);
        match leaf {
            Some(Leaf::Timer) => json.by = Some("timer"),
            Some(Leaf::Disk(disk)) => {
                json.by = Some("disk");
                json.name = disk.map(|disk| disk.to_string());
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
                json.raised_by = raiser(by);
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
                json.raised_by = raiser(by);
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

#[derive(Serialize)]
struct Thread {
    tid: i32,
    comm: Option<String>,
}

/// What has raised a softirq, if that is recorded.
fn raiser(by: Raiser) -> Option<&'static str> {
    Some(match by {
        Raiser::Unrecorded => return None,
        Raiser::Device(_) => "device",
        Raiser::Timer => "timer",
        Raiser::Thread => "thread",
        Raiser::Ipi => "ipi",
        Raiser::Several => "several",
    })
}

/// How it is known: from events that show it, or by a rule from events around it. Of a wait whose waker is not recorded,
/// that it was one is seen, and there is no `by`.
fn known(cause: Cause) -> &'static str {
    match cause {
        Cause::Unknown(_) => "not-recorded",
        Cause::For(Leaf::Unseen, _) | Cause::Interrupted(Leaf::Unseen) => "inferred",
        _ => "seen",
    }
}

/// `by` is there when it is known what a thread waited for, or what interrupted it.
#[derive(Serialize, Default)]
struct CauseJson {
    kind: &'static str,
    known: &'static str,
    /// Why it is not recorded, and because of which CPU.
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
}

#[derive(Serialize)]
struct Sum {
    thread: Thread,
    cause: CauseJson,
    time: u64,
    count: u64,
    longest: u64,
}

#[derive(Serialize)]
struct Step {
    begin: u64,
    end: u64,
    depth: usize,
    thread: Thread,
    cause: CauseJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instead: Option<Instead>,
}

/// Who had the processor for which the thread waited, most of the time.
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

    /// The path of 7, which waits for an interrupt of that name.
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
        let pieces = lt_analyze::path(&model, thread, 0, 30);
        let shown = Shown {
            model: &model,
            thread,
            range: (0, 30),
            pieces: &pieces,
        };
        let mut json = serde_json::to_value(shown.json()).unwrap();
        json["said"] = shown.what(pieces[1].cause).into();
        json
    }

    #[test]
    fn what_a_processor_sends_to_itself_is_not_another_one() {
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
