// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A path as a person reads it, and as a program does.

use lt_analyze::{Cause, Leaf, Piece, causes, instead};
use lt_model::{Context, Model, Name, ThreadId, Use, Vector};
use lt_proc::Nanos;
use serde::Serialize;

use crate::out;

/// Threads that wait for each other are indented by one column each, up to this.
const DEEPEST: usize = 12;

/// What is to be shown.
pub(crate) struct Shown<'a> {
    pub(crate) model: &'a Model,
    pub(crate) thread: ThreadId,
    pub(crate) range: (u64, u64),
    pub(crate) pieces: &'a [Piece],
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

impl Shown<'_> {
    fn text(&self, name: Name) -> String {
        out::printable(self.model.names.text(name))
    }

    /// A table of causes, and then the path.
    pub(crate) fn lines(&self) -> Vec<String> {
        let (from, to) = self.range;
        let all = to - from;
        let mut lines = vec![format!(
            "{} from {from} to {to}: {}",
            name(self.model, self.thread),
            Nanos(all)
        )];
        let row = |sum: lt_analyze::Sum| {
            vec![
                Nanos(sum.time).to_string(),
                format!("{:.1}", sum.time as f64 * 100.0 / all.max(1) as f64),
                out::thousands(sum.count),
                Nanos(sum.longest).to_string(),
                name(self.model, sum.thread),
                self.what(sum.cause),
            ]
        };
        let rows: Vec<_> = causes(self.pieces).into_iter().map(row).collect();
        lines.push(String::new());
        lines.extend(out::table(
            &[">TIME", ">%", ">COUNT", ">LONGEST", "THREAD", "CAUSE"],
            &rows,
        ));
        let step = |piece: &Piece| {
            vec![
                format!("+{}", Nanos(piece.begin - from)),
                Nanos(piece.end - piece.begin).to_string(),
                format!(
                    "{:indent$}{}",
                    "",
                    name(self.model, piece.thread),
                    indent = piece.depth.min(DEEPEST)
                ),
                self.step(piece),
            ]
        };
        let rows: Vec<_> = self.pieces.iter().map(step).collect();
        lines.push(String::new());
        lines.extend(out::table(&[">AT", ">TOOK", "THREAD", "STEP"], &rows));
        lines
    }

    /// What a piece is, and who had the processor that it waited for.
    fn step(&self, piece: &Piece) -> String {
        let mut text = self.what(piece.cause);
        if let (Cause::Waiting | Cause::Preempted, Some(cpu)) = (piece.cause, piece.cpu) {
            text += &format!(", CPU {cpu}");
        }
        if let Some((used, time)) = instead(self.model, piece) {
            let who = match used {
                Use::Unknown => return text,
                Use::Idle => "idle".to_string(),
                Use::Thread(id) => name(self.model, id),
                Use::Context(context) => self.leaf(context.into()),
            };
            text += &format!(" (there: {who} for {})", Nanos(time));
        }
        text
    }

    fn what(&self, cause: Cause) -> String {
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
                format!("waits{}; the trace does not tell for whom", within(call))
            }
            Cause::Idle => "has no work; the trace does not tell who gives it some".into(),
            Cause::Transit => "is about to be woken".into(),
            Cause::Unknown => "not known".into(),
        }
    }

    fn leaf(&self, leaf: Leaf) -> String {
        match leaf {
            Leaf::Timer => "a timer".into(),
            Leaf::Disk => "a disk (softirq BLOCK)".into(),
            Leaf::Network => "the network".into(),
            Leaf::Irq(number, name) => format!("{} (interrupt {number})", self.text(name)),
            Leaf::Softirq(vector) => format!("softirq {}", Vector(vector).name()),
            Leaf::Ipi(name) => format!("another CPU ({})", self.text(name)),
        }
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
            Cause::Idle => ("idle", None, None),
            Cause::Transit => ("transit", None, None),
            Cause::Unknown => ("unknown", None, None),
        };
        json.kind = kind;
        json.syscall = call.map(text);
        match leaf {
            Some(Leaf::Timer) => json.by = Some("timer"),
            Some(Leaf::Disk) => json.by = Some("disk"),
            Some(Leaf::Network) => json.by = Some("network"),
            Some(Leaf::Irq(number, name)) => {
                json.by = Some("irq");
                (json.irq, json.name) = (Some(number), Some(text(name)));
            }
            Some(Leaf::Softirq(vector)) => {
                json.by = Some("softirq");
                json.name = Some(Vector(vector).name().to_string());
            }
            Some(Leaf::Ipi(name)) => {
                json.by = Some("ipi");
                json.name = Some(text(name));
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

#[derive(Serialize)]
struct Thread {
    tid: i32,
    comm: Option<String>,
}

/// `by` is there when it is known what a thread waited for, or what interrupted it.
#[derive(Serialize, Default)]
struct CauseJson {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    syscall: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    irq: Option<i32>,
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
