// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The chains of waits behind the blocking of a thread. Below each wait are the waits of its waker at that time, down to
//! a device, a timer, the network, or a thread that worked.
//!
//! ```text
//! waits, each with its depth   a0 b1 b1 b1 a0 c1 a0 c1
//! nodes                        a(b b b) a(c) a(c)
//! rows                         a, b 3 times, a 2 times, c
//! ```
//!
//! Consecutive waits for one reason are one row, with the waits below the longest wait. Later chains for the same
//! reasons refer to the first chain.

use std::collections::HashMap;

use lt_common::out;
use lt_model::why::{self, Cause, Segment, Wait, Waited};
use lt_model::{CallFile, Context, State, ThreadId};
use lt_proc::Nanos;

use super::super::args::DelaysArgs;
use super::super::words::name_at;
use super::text::{Row, table};
use super::tree::{Tree, end, within};
use super::{Report, at_least, cause_of};

/// Which waits are shown.
struct Part {
    least: u64,
    depth: usize,
    all: bool,
}

/// A wait, and the waits below it that are shown.
struct Node<'w> {
    wait: &'w Wait,
    below: Vec<Node<'w>>,
    /// Waits below it that are too short to be shown: their number and total.
    short: (usize, u64),
    /// Number of waits deeper than the depth that is shown.
    deeper: usize,
    /// Equal for waits of one thread that have the same reasons.
    reason: usize,
}

/// The reason for a wait. The texts of waits with one reason differ only in the state of the waker.
#[derive(PartialEq, Eq, Hash)]
struct Reason {
    thread: ThreadId,
    kind: Waited,
    file: Option<CallFile>,
    /// The thread that the chain follows.
    by: Option<ThreadId>,
    /// The thread that ended the wait.
    woken_by: Option<ThreadId>,
    cause: Option<Cause>,
    /// Whether the wait had not ended when the recording ended.
    open: bool,
    /// The reasons for the waits below it.
    below: Vec<usize>,
}

/// The rows so far.
struct Rows<'r> {
    report: &'r Report<'r>,
    part: &'r Part,
    rows: Vec<Row>,
    next: usize,
    /// For each reason, the number of its first row.
    shown: HashMap<usize, usize>,
}

/// The state of a thread that wakes another, if no more is known.
const WORKING: &str = " while working";

fn took(wait: &Wait) -> u64 {
    wait.end - wait.begin
}

impl Report<'_> {
    /// The chains of all segments, in time order.
    pub(super) fn chains(&self, args: &DelaysArgs) -> Vec<String> {
        let part = Part {
            least: self.least(args),
            depth: args.depth.unwrap_or(usize::MAX),
            all: args.all,
        };
        let mut reasons = HashMap::new();
        let mut rows = Rows {
            report: self,
            part: &part,
            rows: Vec::new(),
            next: 1,
            shown: HashMap::new(),
        };
        for segment in self.segments {
            let (nodes, short) = forest(self, segment, &part, &mut reasons);
            rows.siblings(&nodes, 0);
            rows.left_out(short, 0);
        }
        if rows.rows.is_empty() {
            return vec!["No wait is recorded.".into()];
        }
        let mut lines = vec![format!("Waits and what ended them{}", at_least(part.least))];
        lines.extend(table(&["NR", "FROM", "TO", "TOOK", "WAIT"], &rows.rows));
        lines
    }

    /// `in read: woken by server/526 while working in write`, preceded by the name of the thread unless `own` is set.
    pub(super) fn wait_text(&self, wait: &Wait, own: bool) -> String {
        self.text_with_state(wait, own, &self.state_of_waker(wait))
    }

    /// As [`Self::wait_text`], with this text about the state of the waker.
    fn text_with_state(&self, wait: &Wait, own: bool, state: &str) -> String {
        let words = self.words();
        let who = match own {
            true => String::new(),
            false => words.name(wait.thread) + " ",
        };
        let by = self.woken_by(wait);
        let file = wait.file.map(|file| format!(" of {}", words.file(file)));
        let place = match wait.kind {
            Waited::Blocked(call) => within(&words, call, false) + &file.unwrap_or_default(),
            Waited::Spun => "spins for a lock".into(),
            Waited::Unborn => "not created yet".into(),
        };
        let end = match (wait.kind, by) {
            (Waited::Spun, Some(by)) => format!("handed over by {}", words.name(by)),
            (Waited::Unborn, Some(by)) => format!("created by {}", words.name(by)),
            _ => end(&words, cause_of(wait), by, self.is_open(wait)),
        };
        let helper = wait.by.filter(|_| wait.cause.is_some());
        let helper = helper.map(|by| format!(", handled by {}", words.name(by)));
        format!("{who}{place}: {end}{state}{}", helper.unwrap_or_default())
    }

    /// Whether a wait had not ended when the recording ended.
    fn is_open(&self, wait: &Wait) -> bool {
        wait.waker.is_none() && wait.until == self.model.span.1
    }

    /// ` while working in write`: the state of a waker at the wakeup; empty if no thread ended the wait.
    fn state_of_waker(&self, wait: &Wait) -> String {
        let waker = wait.waker.and_then(|waker| self.model.waker(waker));
        let (Some(waker), Some(by)) = (waker, self.woken_by(wait)) else {
            return String::new();
        };
        if let Some(Context::Softirq { vector, .. }) = waker.context {
            return format!(" while working in softirq {}", vector.name());
        }
        // A thread that is not part of the chain, or that acted after the range, may not have been kept.
        let is_kept = wait.by == Some(by) && waker.time <= wait.end;
        let thread = self.model.thread(by).filter(|_| is_kept);
        let before = waker.time.saturating_sub(1);
        let state = thread.and_then(|thread| thread.between(before, waker.time).next_back());
        match state.map(|interval| interval.state) {
            Some(State::Running(Some(call))) => {
                format!(" while working in {}", self.words().text(call))
            }
            // Only a thread that runs can wake another.
            _ => WORKING.into(),
        }
    }
}

/// The waits of a segment that are shown, as nodes; and the number and total of the short waits.
fn forest<'w>(
    report: &Report<'_>,
    segment: &'w Segment,
    part: &Part,
    reasons: &mut HashMap<Reason, usize>,
) -> (Vec<Node<'w>>, (usize, u64)) {
    let mut waits = segment.waits.as_slice();
    let all = nodes(report, &mut waits, 0, part, reasons);
    (all.below, all.short)
}

/// The waits below a wait.
#[derive(Default)]
struct Below<'w> {
    below: Vec<Node<'w>>,
    short: (usize, u64),
    deeper: usize,
}

/// Consumes the waits of this depth, each with the waits below it.
fn nodes<'w>(
    report: &Report<'_>,
    waits: &mut &'w [Wait],
    depth: usize,
    part: &Part,
    reasons: &mut HashMap<Reason, usize>,
) -> Below<'w> {
    let mut found = Below::default();
    while let Some((wait, rest)) = waits.split_first().filter(|(wait, _)| wait.depth >= depth) {
        *waits = rest;
        let inner = nodes(report, waits, wait.depth + 1, part, reasons);
        if depth > part.depth {
            found.deeper += 1 + inner.deeper;
            continue;
        }
        if took(wait) < part.least {
            found.short.0 += 1;
            found.short.1 += took(wait);
            continue;
        }
        let mut below: Vec<_> = inner.below.iter().map(|node| node.reason).collect();
        below.dedup();
        let reason = Reason {
            thread: wait.thread,
            kind: wait.kind,
            file: wait.file,
            by: wait.by,
            woken_by: report.woken_by(wait),
            cause: wait.cause,
            open: report.is_open(wait),
            below,
        };
        let next = reasons.len();
        found.below.push(Node {
            wait,
            below: inner.below,
            short: inner.short,
            deeper: inner.deeper,
            reason: *reasons.entry(reason).or_insert(next),
        });
    }
    found
}

impl Rows<'_> {
    /// Adds the waits of one thread. Consecutive waits with the same reason are one row, unless all are requested.
    fn siblings(&mut self, nodes: &[Node<'_>], depth: usize) {
        let all = self.part.all;
        for run in nodes.chunk_by(|a, b| !all && a.reason == b.reason) {
            let Some(longest) = run.iter().max_by_key(|node| took(node.wait)) else {
                continue;
            };
            let number = self.next;
            self.next += 1;
            let first = run.first().map_or(longest.wait, |node| node.wait);
            let last = run.last().map_or(longest.wait, |node| node.wait);
            let own = depth == 0 && self.report.segments.len() == 1;
            let state = self.report.state_of_waker(longest.wait);
            let is_common = |node: &Node<'_>| self.report.state_of_waker(node.wait) == state;
            let state = match run.iter().all(is_common) {
                true => state.as_str(),
                // The waker was in different states, and was working in each of them.
                false => WORKING,
            };
            let mut text = self.report.text_with_state(longest.wait, own, state);
            if run.len() > 1 {
                let (count, most) = (out::thousands(run.len() as u64), Nanos(took(longest.wait)));
                text += &format!("; {count} times, up to {most}");
            }
            let is_chain = !longest.below.is_empty();
            let earlier = self
                .shown
                .get(&longest.reason)
                .filter(|_| is_chain && !all)
                .copied();
            if let Some(earlier) = earlier {
                text += &format!("; the waits below are those of row {earlier}");
            }
            let total = run.iter().map(|node| took(node.wait)).sum();
            let range = (first.begin, last.end);
            self.push(Some((number, range, total)), depth, text);
            if earlier.is_some() {
                continue;
            }
            self.shown.insert(longest.reason, number);
            if is_chain {
                self.siblings(&longest.below, depth + 1);
            } else {
                self.meanwhile(longest.wait, depth + 1, run.len() > 1);
            }
            self.left_out(longest.short, depth + 1);
            if longest.deeper > 0 {
                let more = out::plural(longest.deeper, "wait");
                self.push(
                    None,
                    depth + 1,
                    format!("{more} at lower levels; a larger --depth shows them"),
                );
            }
        }
    }

    fn push(&mut self, cells: Option<(usize, (u64, u64), u64)>, depth: usize, text: String) {
        let cells = cells.map_or_else(Default::default, |(number, (from, to), took)| {
            [
                number.to_string(),
                from.to_string(),
                to.to_string(),
                Nanos(took).to_string(),
            ]
        });
        self.rows.push(Row {
            cells: cells.into(),
            indent: 2 * depth,
            text,
        });
    }

    /// Sums up the waits that are too short to be shown.
    fn left_out(&mut self, (count, time): (usize, u64), depth: usize) {
        if count > 0 {
            let waits = match count {
                1 => "1 shorter wait".into(),
                n => format!("{} shorter waits", out::thousands(n as u64)),
            };
            self.push(
                None,
                depth,
                format!("and {waits}, {} in total", Nanos(time)),
            );
        }
    }

    /// Describes the activity of the thread at the end of a chain.
    fn meanwhile(&mut self, wait: &Wait, depth: usize, is_longest: bool) {
        let Some(by) = wait.by.filter(|_| wait.cause.is_none()) else {
            return;
        };
        let model = self.report.model;
        let until = wait.waker.and_then(|waker| model.waker(waker));
        let until = until.map_or(wait.end, |waker| waker.time.clamp(wait.begin, wait.end));
        let states = why::states(model, by, wait.begin, until);
        let tree = Tree::new(&self.report.words(), &states, u64::MAX, &mut 0);
        let who = name_at(model, by, self.report.range.1);
        let when = match is_longest {
            true => "during the longest",
            false => "meanwhile",
        };
        self.push(None, depth, format!("{who} {when}: {}", tree.sentence()));
    }
}
