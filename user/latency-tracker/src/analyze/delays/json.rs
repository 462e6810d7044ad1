// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The report for programs: all stays and all waits; times are ns of the trace's clock.

use lt_model::why::{Segment, Stay, Wait, Waited};
use lt_model::{CallFile, Class};
use serde::Serialize;

use super::super::show::{CauseJson, Thread};
use super::super::words::class;
use super::Report;

#[derive(Serialize)]
pub(super) struct Json {
    analysis: &'static str,
    thread: Thread,
    from: u64,
    to: u64,
    segments: Vec<Part>,
}

/// A part of the range, and the thread that stands for the requested one.
#[derive(Serialize)]
struct Part {
    thread: Thread,
    from: u64,
    to: u64,
    sums: Sums,
    states: Vec<State>,
    waits: Vec<WaitJson>,
}

/// The time of each class, ns; the times add up to the time of the segment, or of the thread.
#[derive(Serialize, Default)]
pub(super) struct Sums {
    pub(super) working: u64,
    pub(super) interrupted: u64,
    pub(super) blocked: u64,
    pub(super) unknown: u64,
}

#[derive(Serialize)]
pub(super) struct State {
    begin: u64,
    end: u64,
    class: &'static str,
    cause: CauseJson,
    /// The file of the system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The descriptor of the system call, if its file is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<i32>,
    /// The thread that ended the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_by: Option<Thread>,
    /// Whether the thread works or is blocked, and is known to be outside of all system calls.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    outside: bool,
    /// Whether the thread was still blocked when the trace ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
}

#[derive(Serialize)]
struct WaitJson {
    begin: u64,
    end: u64,
    depth: usize,
    kind: &'static str,
    thread: Thread,
    /// Missing if a thread ended the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<CauseJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    syscall: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The descriptor of the system call, if its file is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_by: Option<Thread>,
}

impl Report<'_> {
    pub(super) fn json(&self) -> Json {
        let words = self.words();
        Json {
            analysis: "delays",
            thread: words.thread_json(self.thread),
            from: self.range.0,
            to: self.range.1,
            segments: self
                .segments
                .iter()
                .map(|segment| self.part(segment))
                .collect(),
        }
    }

    fn part(&self, segment: &Segment) -> Part {
        let words = self.words();
        let mut sums = Sums::default();
        for stay in segment.states.iter() {
            *match stay.class() {
                Class::Working => &mut sums.working,
                Class::Interrupted => &mut sums.interrupted,
                Class::Blocked => &mut sums.blocked,
                Class::Unknown => &mut sums.unknown,
            } += stay.took();
        }
        Part {
            thread: words.thread_json(segment.thread),
            from: segment.begin,
            to: segment.end,
            sums,
            states: segment
                .states
                .iter()
                .map(|stay| self.state(&stay))
                .collect(),
            waits: segment.waits.iter().map(|wait| self.wait(wait)).collect(),
        }
    }

    pub(super) fn state(&self, stay: &Stay) -> State {
        let words = self.words();
        State {
            begin: stay.begin,
            end: stay.end,
            class: class(stay.class()),
            cause: words.cause_json(stay.cause),
            file: words.file_json(stay.file),
            descriptor: stay.file.and_then(CallFile::descriptor),
            woken_by: stay.by.map(|by| words.thread_json(by)),
            outside: stay.outside,
            open: stay.open,
        }
    }

    fn wait(&self, wait: &Wait) -> WaitJson {
        let words = self.words();
        let call = match wait.kind {
            Waited::Blocked(call) => call,
            Waited::Spun | Waited::Unborn => None,
        };
        WaitJson {
            begin: wait.begin,
            end: wait.end,
            depth: wait.depth,
            kind: kind(wait.kind),
            thread: words.thread_json(wait.thread),
            cause: wait.cause.map(|cause| words.cause_json(cause)),
            syscall: call.map(|call| self.model.names.text(call).to_string()),
            file: words.file_json(wait.file),
            descriptor: wait.file.and_then(CallFile::descriptor),
            woken_by: self.woken_by(wait).map(|by| words.thread_json(by)),
        }
    }
}

/// The kind of a wait, as a word.
pub(super) fn kind(of: Waited) -> &'static str {
    match of {
        Waited::Blocked(_) => "blocked",
        Waited::Spun => "spun",
        Waited::Unborn => "unborn",
    }
}
