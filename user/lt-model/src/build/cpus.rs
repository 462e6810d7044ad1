// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What each processor does at the moment, and has done.

use crate::context::Context;
use crate::processor::{Stretch, Use};
use crate::thread::ThreadId;

/// A processor at the moment.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Its thread; `Some(None)` is none.
    current: Option<Option<ThreadId>>,
    /// What it was interrupted for, the innermost last.
    pub(super) contexts: Vec<Context>,
    /// What has just ended here.
    pub(super) tail: Option<Context>,
    /// What it does, and since when.
    used: Option<Use>,
    since: u64,
    keep: u64,
    stretches: Vec<Stretch>,
}

#[derive(Debug, Default)]
pub(super) struct Cpus {
    all: Vec<Cpu>,
    /// What ends here or before is not kept.
    pub(super) keep: u64,
}

impl Cpus {
    /// There is a processor of that number, and nothing is known of it before `start`.
    pub(super) fn reach(&mut self, cpu: u32, start: u64) {
        while self.all.len() <= cpu as usize {
            self.all.push(Cpu {
                since: start,
                keep: self.keep,
                ..Cpu::default()
            });
        }
    }

    /// One that was reached.
    pub(super) fn at(&mut self, cpu: u32) -> &mut Cpu {
        &mut self.all[cpu as usize]
    }

    pub(super) fn finish(self, end: u64) -> Vec<Vec<Stretch>> {
        let close = |mut cpu: Cpu| {
            cpu.close(end);
            cpu.stretches
        };
        self.all.into_iter().map(close).collect()
    }
}

impl Cpu {
    pub(super) fn thread(&self) -> Option<ThreadId> {
        self.current.flatten()
    }

    /// What the thread waits for: the innermost context, unless all are its own work.
    pub(super) fn above(&self) -> Option<Context> {
        let own = |c: &&Context| !matches!(c, Context::Softirq { own: true, .. });
        self.contexts.iter().rfind(own).copied()
    }

    /// Has another thread, or none, or one that is not known.
    pub(super) fn go(&mut self, time: u64, current: Option<Option<ThreadId>>) {
        self.current = current;
        self.note(time);
    }

    /// What it does may have changed.
    pub(super) fn note(&mut self, time: u64) {
        let used = match (self.above(), self.current) {
            (Some(context), _) => Use::Context(context),
            (None, Some(Some(thread))) => Use::Thread(thread),
            (None, Some(None)) => Use::Idle,
            (None, None) => Use::Unknown,
        };
        if self.used != Some(used) {
            self.close(time);
            self.used = Some(used);
        }
    }

    fn close(&mut self, time: u64) {
        if time <= self.since {
            return;
        }
        let used = self.used.unwrap_or(Use::Unknown);
        let begin = std::mem::replace(&mut self.since, time);
        if time <= self.keep {
            return;
        }
        match self.stretches.last_mut() {
            // What came between took no time.
            Some(last) if last.used == used => last.end = time,
            _ => self.stretches.push(Stretch {
                begin,
                end: time,
                used,
            }),
        }
    }
}
