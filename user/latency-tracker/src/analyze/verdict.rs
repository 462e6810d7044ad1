// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A path in one sentence: where most of the time went.

use lt_analyze::{Cause, Piece, Sum, causes, held_back, used};
use lt_model::{Model, ThreadId, Use};

use super::show::{Shown, leaf_name, name, used_by};
use crate::out;

impl Shown<'_> {
    /// `98 % of it (604.0ms): victim/525 waited for server/526, which waited for a timer.`
    pub(crate) fn verdict(&self) -> Option<String> {
        let all = causes(self.pieces);
        let most = all.first()?;
        Some(format!(
            "{}: {}{}.",
            out::share(most.time, self.range.1 - self.range.0),
            self.who(most.thread),
            self.did(most)
        ))
    }

    /// The subject of the sentence: the thread itself, or the one that it waited for.
    fn who(&self, of: ThreadId) -> String {
        let (model, thread) = (self.model, self.thread);
        if thread == of {
            return format!("{} ", name(model, thread));
        }
        format!(
            "{} waited for {}, which ",
            name(model, thread),
            name(model, of)
        )
    }

    /// The rest of it.
    fn did(&self, sum: &Sum) -> String {
        let model = self.model;
        let call = |call: Option<lt_model::Name>| {
            let call = call.map(|c| format!(" in {}", out::printable(model.names.text(c))));
            call.unwrap_or_default()
        };
        let of_it = self
            .pieces
            .iter()
            .filter(|p| (p.thread, p.cause) == (sum.thread, sum.cause));
        // Who had the processor, in all of these pieces together.
        let had = had(model, of_it.clone());
        // Nothing else makes a processor idle that has work; the trace does not tell which limit it was.
        let held: u64 = of_it.map(|p| held_back(model, p)).sum();
        let limit = had.filter(|_| held > sum.time / 2).map(|(cpu, _)| {
            format!("but was held back while CPU {cpu} was idle, as by cpu.max of a cgroup")
        });
        let processor = had.map_or("a CPU".into(), |(cpu, used)| {
            let who = used_by(model, used);
            let did = match used {
                Use::Idle => "was idle".into(),
                Use::Context(_) => format!("worked for {who}"),
                Use::Thread(_) | Use::Unknown => format!("ran {who}"),
            };
            format!("CPU {cpu}, which {did}")
        });
        match sum.cause {
            Cause::Running(c) => format!("ran{}", call(c)),
            Cause::Interrupted(leaf) => format!("was interrupted: {}", leaf_name(model, leaf)),
            Cause::Preempted => match limit {
                Some(limit) => format!("could have gone on, {limit}"),
                None => format!("could have gone on, and waited for {processor}"),
            },
            Cause::Waiting => match limit {
                Some(limit) => format!("had been woken, {limit}"),
                None => format!("had been woken, and waited for {processor}"),
            },
            Cause::For(leaf, c) => format!("waited{} for {}", call(c), leaf_name(model, leaf)),
            Cause::Blocked(c) => format!("waited{}; the trace does not tell for whom", call(c)),
            Cause::Idle => "had no work; the trace does not tell who gave it some".into(),
            Cause::Transit => "was about to be woken".into(),
            Cause::Unknown => "did what the trace does not tell".into(),
        }
    }
}

/// Who had the processor the most while a thread waited for it, in those of the pieces where it did, and which one.
fn had<'p>(model: &Model, pieces: impl Iterator<Item = &'p Piece>) -> Option<(u32, Use)> {
    let mut sums: Vec<((u32, Use), u64)> = Vec::new();
    for piece in pieces.filter(|p| matches!(p.cause, Cause::Waiting | Cause::Preempted)) {
        let Some(cpu) = piece.cpu else { continue };
        for (by, time) in used(model, cpu, piece.begin, piece.end) {
            match sums.iter_mut().find(|(who, _)| *who == (cpu, by)) {
                Some((_, sum)) => *sum += time,
                None => sums.push(((cpu, by), time)),
            }
        }
    }
    // Of two with the same time, the first.
    sums.into_iter()
        .rev()
        .max_by_key(|(_, time)| *time)
        .map(|(who, _)| who)
}
