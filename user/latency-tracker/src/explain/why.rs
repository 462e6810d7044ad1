// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Explains one alert: the causes of the delay.
//!
//! An alert that belongs to a thread is explained by the critical path of that thread. An alert of an interrupt or
//! a softirq, or without a task, is explained by the activity of the CPU on which the delay ended.

#[cfg(test)]
mod tests;
mod text;

use lt_common::{chain, out};
use lt_model::why::{Cause, Piece, causes, path_beside, thread_in, used};
use lt_model::{Model, ThreadId, Unrecorded, Use};
use lt_proc::Alert;
use lt_proc::evidence::Evidence;

use super::proofs::Proofs;
use crate::analyze::show::{Json, Shown, Thread};
use crate::analyze::words::{Facts, name_at, sentence, used_by};
use crate::trace::Told;

/// Trackers whose delays the CPU's activity explains better than the thread that happened to be interrupted.
const OF_PROCESSORS: [&str; 2] = ["irq", "softirq"];

/// An alert, with the causes of its delay.
pub(super) struct Why<'a> {
    told: &'a Told,
    alert: &'a Alert,
    from: u64,
    to: u64,
    /// The alert's thread and the path of this thread; `None` if the alert belongs to no thread in the trace.
    thread: Option<(ThreadId, Vec<Piece>)>,
    /// Facts that are not in the trace.
    facts: Facts,
    /// The other alerts whose stacks show causes of the path.
    shown_by: Vec<&'a Alert>,
    /// The use of the alert's CPU during the delay.
    used: Vec<(Use, u64)>,
}

/// The thread of the alert, if the trace has it.
pub(super) fn thread_of(model: &Model, alert: &Alert) -> Option<ThreadId> {
    let tid = i32::try_from(alert.tid).ok().filter(|tid| *tid > 0)?;
    if OF_PROCESSORS.contains(&alert.tracker.as_str()) {
        return None;
    }
    thread_in(model, tid, alert.start(), alert.time)
}

impl<'a> Why<'a> {
    /// Explains an alert. The stacks of other alerts of its thread, in `beside`, may show where the thread slept.
    pub(super) fn new(
        told: &'a Told,
        alert: &'a Alert,
        evidence: &Evidence,
        beside: &[&'a Alert],
    ) -> Self {
        let model = &told.model;
        let (from, to) = (alert.start(), alert.time);
        let thread = thread_of(model, alert);
        let proofs = Proofs::new(model, evidence, alert, beside, thread);
        let path = thread.map(|id| (id, path_beside(model, &proofs, id, from, to)));
        let pieces = path.as_ref().map(|(_, pieces)| &pieces[..]);
        let cpu = u32::try_from(alert.cpu).unwrap_or(u32::MAX);
        Self {
            told,
            alert,
            from,
            to,
            shown_by: proofs.shown_by(pieces.unwrap_or_default()),
            thread: path,
            facts: proofs.facts(thread, from, to),
            used: used(model, cpu, from, to),
        }
    }

    fn model(&self) -> &'a Model {
        &self.told.model
    }

    /// The largest part of the delay, in one sentence; for an alert of `tree`, in one or two. Another sentence follows
    /// for a wait for a busy disk.
    pub(super) fn verdict(&self) -> String {
        let model = self.model();
        // An alert of `tree` carries its own steps.
        if let Some(chain) = chain::verdict(self.alert) {
            let told = [Some(chain), chain::interference(self.alert)];
            let sentences: Vec<_> = told.iter().flatten().map(|text| sentence(text)).collect();
            return sentences.join(" ");
        }
        if self.to <= model.span.0 || self.from >= model.span.1 {
            return "The trace does not cover the time of the delay.".into();
        }
        let clock = |time| self.told.instant_of_day(time);
        if let Some(verdict) = self.shown().and_then(|shown| shown.verdict_at(&clock)) {
            return verdict;
        }
        let cpu = self.alert.cpu;
        match self.used.first() {
            None => format!("No events of CPU {cpu} cover the delay."),
            Some((Use::Idle, time)) => format!("{}: CPU {cpu} was idle.", self.share(*time)),
            Some((Use::Thread(id), time)) => {
                format!(
                    "{}: CPU {cpu} ran {}.",
                    self.share(*time),
                    name_at(model, *id, self.to)
                )
            }
            Some((used @ Use::Context(_), time)) => format!(
                "{}: CPU {cpu} worked for {}.",
                self.share(*time),
                used_by(model, *used, self.to)
            ),
            Some((Use::Unknown, time)) => {
                format!(
                    "{}: the activity of CPU {cpu} is not recorded.",
                    self.share(*time)
                )
            }
        }
    }

    /// Whether the trace starts too late to show the largest part of the delay: in that part, the path is on a thread
    /// that no earlier event names.
    pub(super) fn is_cut(&self) -> bool {
        let pieces = self.thread.iter().flat_map(|(_, pieces)| causes(pieces));
        let largest = pieces.map(|sum| sum.cause).next();
        largest == Some(Cause::Unknown(Unrecorded::Unseen))
    }

    /// The share of a time in the delay.
    fn share(&self, time: u64) -> String {
        out::share(time, self.to - self.from, "delay")
    }

    /// The path, if the alert belongs to a thread in the trace.
    pub(super) fn shown(&self) -> Option<Shown<'_>> {
        self.thread.as_ref().map(|(thread, pieces)| Shown {
            model: self.model(),
            thread: *thread,
            range: (self.from, self.to),
            pieces,
            facts: &self.facts,
        })
    }

    /// See [`Shown::served_threads`].
    pub(super) fn served_threads(&self) -> Vec<Thread> {
        let shown = self.shown();
        shown.map_or_else(Vec::new, |shown| shown.served_threads())
    }

    /// The thread and its path, for a picture.
    pub(super) fn into_path(self) -> Option<(ThreadId, Vec<Piece>)> {
        self.thread
    }

    /// The use of the alert's CPU during the delay: the time of each use, the longest first.
    pub(super) fn used(&self) -> &[(Use, u64)] {
        &self.used
    }

    /// The path, for programs.
    pub(super) fn json(&self) -> Option<Json> {
        self.shown().map(|shown| shown.json())
    }
}
