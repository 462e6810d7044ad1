// SPDX-License-Identifier: GPL-2.0

//! The data of an event of the `workqueue` tracker, and the fields of its alerts.

use super::super::tasks::Guard;
use crate::{
    alert::record::{actor::Actor, Alert, Owner, DETAIL},
    engine::platform::Platform,
    instance::Details,
    sys::{
        platform::Kernel,
        symbol::{Function, Hashed},
        task::{self, Context},
        workqueue, //
    },
    text::{Escaped, Quoted}, //
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// A work item that waits or runs. Times in nanoseconds, 0 for a step not reached, or not seen.
#[derive(Clone, Copy, Default)]
pub(super) struct Item {
    /// Its address.
    pub(super) work: u64,
    /// The address of its function.
    pub(super) function: u64,
    /// The name of its workqueue, padded with NUL.
    pub(super) queue: [u64; 4],
    /// The task that queued it; none if that was an interrupt.
    pub(super) by: Owner,
    /// In which context.
    pub(super) context: u32,
    /// When; in an alert, how long it waited.
    pub(super) queued: u64,
    /// When it was started; in an alert, how long it has been running.
    pub(super) started: u64,
    /// The task that runs it; none if that is a softirq on top of a task.
    pub(super) worker: Owner,
    /// Where it was started.
    pub(super) cpu: u32,
    pub(super) is_running: bool,
}

/// The words of [`Item`].
pub(super) const WORDS: usize = 15;

/// The bits of the word for the small fields: the CPU in the lowest, the context, and this.
const RUNNING: u64 = 1 << 63;
const CONTEXT_AT: u32 = 32;

impl Item {
    /// The words of an alert that it uses.
    pub(super) const DETAIL_WORDS: usize = 12;

    /// The current task runs it now.
    pub(super) fn start(&mut self, guard: &Guard, now: u64) {
        self.started = now;
        self.is_running = true;
        self.cpu = Kernel::cpu(guard) as u32;
        self.worker = task::current().map_or(Owner::default(), |task| Owner::from(&task));
    }

    /// Whether it no longer waits, though its start was not seen: it was cancelled, or is about to
    /// start.
    pub(super) fn is_cancelled(&self) -> bool {
        !self.is_running && !workqueue::is_queued(self.work, self.function)
    }

    fn small(&self) -> u64 {
        let running = if self.is_running { RUNNING } else { 0 };
        running | u64::from(self.context) << CONTEXT_AT | u64::from(self.cpu)
    }

    fn set_small(&mut self, word: u64) {
        self.is_running = word & RUNNING != 0;
        self.context = ((word & !RUNNING) >> CONTEXT_AT) as u32;
        self.cpu = word as u32;
    }

    /// Packs it for an event.
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let [q0, q1, q2, q3] = self.queue;
        let [b0, b1, b2] = self.by.to_words();
        let [w0, w1, w2] = self.worker.to_words();
        [
            self.work,
            self.function,
            q0,
            q1,
            q2,
            q3,
            b0,
            b1,
            b2,
            self.queued,
            self.started,
            w0,
            w1,
            w2,
            self.small(),
        ]
    }

    /// The inverse of [`Item::to_words`].
    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [work, function, q0, q1, q2, q3, b0, b1, b2, queued, started, w0, w1, w2, small] =
            *words;
        let mut item = Self {
            work,
            function,
            queue: [q0, q1, q2, q3],
            by: Owner::from_words([b0, b1, b2]),
            queued,
            started,
            worker: Owner::from_words([w0, w1, w2]),
            ..Self::default()
        };
        item.set_small(small);
        item
    }

    /// The details of an alert at `now`.
    pub(super) fn details(&self, now: u64) -> Details {
        let since = |begin: u64, end: u64| match begin {
            0 => 0,
            begin => end.saturating_sub(begin),
        };
        let left = if self.is_running { self.started } else { now };
        let queued = since(self.queued, left);
        let running = since(self.started, now);
        let by = Actor {
            pid: self.by.pid,
            tid: self.by.tid,
            note: self.context,
            comm: self.by.comm,
        };
        let ([q0, q1, q2, q3], [b0, b1, b2]) = (self.queue, by.to_words());
        let used: [u64; Self::DETAIL_WORDS] = [
            self.work,
            self.function,
            q0,
            q1,
            q2,
            q3,
            self.small(),
            queued,
            running,
            b0,
            b1,
            b2,
        ];
        let mut words = [0; DETAIL];
        words[..Self::DETAIL_WORDS].copy_from_slice(&used);
        Details {
            owner: self.worker,
            words,
        }
    }

    /// From the words of an alert.
    pub(super) fn from_detail(alert: &Alert) -> AlertDetail {
        let [work, function, q0, q1, q2, q3, small, queued, started, b0, b1, b2, ..] = alert.detail;
        let by = Actor::from_words([b0, b1, b2]);
        let mut item = Self {
            work,
            function,
            queue: [q0, q1, q2, q3],
            by: Owner {
                pid: by.pid,
                tid: by.tid,
                start_mark: 0,
                comm: by.comm,
            },
            queued,
            started,
            ..Self::default()
        };
        item.set_small(small);
        AlertDetail(item)
    }

    /// Its current state, before it ends, as fields of a line.
    pub(super) fn pending(&self) -> impl fmt::Display + '_ {
        let state = if self.is_cancelled() {
            "cancelled"
        } else {
            self.state()
        };
        Named { item: self, state }
    }

    fn state(&self) -> &'static str {
        if self.is_running {
            "running"
        } else {
            "waiting"
        }
    }
}

struct Named<'a> {
    item: &'a Item,
    state: &'a str,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { item, state } = self;
        f.write_fmt(fmt!("work={} func=\"", Hashed(item.work)))?;
        Escaped(f).write_fmt(fmt!("{}", Function(item.function)))?;
        let by = item.by;
        f.write_fmt(fmt!(
            "\" workqueue={} state={state} worker_cpu={} by_pid={} by_tid={} by_comm={} context={}",
            Quoted::words(&item.queue),
            item.cpu,
            by.pid,
            by.tid,
            Quoted::words(&by.comm),
            Context::from_number(item.context).name()
        ))
    }
}

/// As it is in an alert, with elapsed times.
pub(super) struct AlertDetail(Item);

impl fmt::Display for AlertDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(item) = self;
        let state = item.state();
        let named = Named { item, state };
        let Item {
            queued, started, ..
        } = item;
        f.write_fmt(fmt!("{named} queued={queued} running={started}"))
    }
}
