// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The current and past activity of each processor.

use super::Detail;
use super::limits::Looked;
use crate::context::{Context, Disk, Handler, Raiser, Vector};
use crate::ids::ThreadId;
use crate::limits::Function;
use crate::list::{push, with_room};
use crate::processor::{Stretches, Use};
use crate::request::{Kind, Request};
use crate::tiles::{Kinds, Tiles};
use crate::times::{Times, differ};

/// Time after an interrupt, ns, in which a wakeup of a thread to which it defers work is attributed to the interrupt.
/// Such a wakeup comes within some microseconds; a later wakeup is by the interrupted thread.
pub(super) const TAIL: u64 = 100_000;

/// Time after the completion of a request, ns, in which the wakeup of a thread that waits for it is attributed to the
/// disk. The wakeup usually comes within some microseconds, but a virtual CPU may lose its processor between the
/// events.
pub(super) const SLOW_TAIL: u64 = 10_000_000;

/// Maximum time after an interrupt, ns, that a CPU spends on softirqs before it leaves them to a thread. The time for
/// packets has a similar limit (`net.core.netdev_budget_usecs`).
pub(super) const SOFTIRQS: u64 = 2_000_000;

/// Maximum time, ns, that a thread takes to reach user mode after a system call, an interrupt or a switch to it. In
/// recorded traces, it took less, and wakeups by unrecorded interrupts came after 30 us or more.
pub(super) const WAY_OUT: u64 = 30_000;

/// Maximum number of softirqs to keep as pending: more than any kernel has.
const VECTORS: usize = 16;

/// Maximum number of changes of the innermost context to keep while the thread of a processor is not known: some
/// seconds of a processor with many interrupts.
const CHANGES: usize = 1 << 14;

/// The timers run by an HRTIMER softirq. The softirq is raised when the first timer is due, and not again until it
/// begins. The due time is therefore known if the softirq runs only one timer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// When the softirq was raised.
    pub(super) raised: u64,
    /// Number of timers that the softirq has run.
    pub(super) timers: u32,
    /// The number of the next waker when the softirq started.
    pub(super) wakers: u32,
}

/// The current state of a processor.
#[derive(Debug, Clone, Default)]
pub(super) struct Cpu {
    /// The current thread; `Some(None)` if idle, `None` if not known.
    current: Option<Option<ThreadId>>,
    /// Time since which its events are recorded without a gap.
    pub(super) known_since: Option<u64>,
    /// Nested interrupts, the innermost last.
    pub(super) contexts: Vec<Context>,
    /// While the current thread is not known: the innermost contexts, each with its start; `None` for the thread
    /// itself.
    pub(super) changes: Vec<(u64, Option<Context>)>,
    /// The last interrupt that ended here, and its end.
    pub(super) tail: Option<(Context, u64)>,
    /// The softirqs raised by the thread itself, as bits.
    pub(super) raised: u32,
    /// The pending softirqs, with their raisers.
    pub(super) raised_by: Vec<(u32, Raiser)>,
    /// The thread that alone raised the pending BLOCK softirq, and when.
    pub(super) block: Option<(ThreadId, u64)>,
    /// The thread that alone raised the BLOCK softirq that began last, and when.
    pub(super) served: Option<(ThreadId, u64)>,
    /// When the pending HRTIMER softirq was raised.
    pub(super) hrtimer: Option<u64>,
    /// The timers of the HRTIMER softirq that began last.
    pub(super) due: Option<Due>,
    /// The last completed request here, its disk, the nesting depth and the time. The next wakeups are for its
    /// waiters.
    pub(super) completed: Option<(Disk, usize, Option<Request>, u64)>,
    /// Softirqs of an interrupt may run until this time, unless an event shows that the thread continues.
    pub(super) softirqs_until: u64,
    /// The timer function that is running.
    pub(super) expiring: Option<Function>,
    /// Signs of the causes of waits for this processor.
    pub(super) looked: Looked,
    /// Current use, and its start.
    used: Option<Use>,
    since: u64,
    tiles: Tiles,
    known: Kinds<Context>,
}

/// All processors.
#[derive(Debug, Clone, Default)]
pub(super) struct Cpus {
    all: Vec<Cpu>,
    pub(super) policy: Policy,
}

/// How much of the activity is kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Policy {
    /// Activity that ended at this time or before is dropped.
    pub(super) keep: u64,
    pub(super) detail: Detail,
    /// Nothing more is stored, and only sizes are counted.
    pub(super) count_only: bool,
    /// Number of stretches that are stored, or would be without the limit, and of changes of the upper bits of their
    /// starts.
    stored: usize,
    highs: usize,
    /// The largest number of a use.
    largest: u32,
}

impl Cpus {
    /// Adds processors up to this number, whose activity before `start` is unknown.
    pub(super) fn reach(&mut self, cpu: u32, start: u64) {
        while self.all.len() <= cpu as usize {
            self.all.push(Cpu {
                since: start,
                ..Cpu::default()
            });
        }
    }

    /// The processor `cpu`, if it exists.
    pub(super) fn get(&self, cpu: u32) -> Option<&Cpu> {
        self.all.get(cpu as usize)
    }

    /// The processor `cpu`, which was seen before.
    pub(super) fn at(&mut self, cpu: u32) -> &mut Cpu {
        &mut self.all[cpu as usize]
    }

    /// Changes the current thread of `cpu`: to another thread, to idle, or to an unknown thread.
    pub(super) fn go(&mut self, cpu: u32, time: u64, current: Option<Option<ThreadId>>) {
        let at = self.at(cpu);
        at.current = current;
        at.completed = None;
        at.raised = 0;
        at.softirqs_until = 0;
        at.expiring = None;
        at.changes = Vec::new();
        self.note(cpu, time);
    }

    /// Records that `cpu` has run this thread, or been idle, whenever its activity since `since` was unknown.
    pub(super) fn ran(&mut self, cpu: u32, thread: Option<ThreadId>, since: u64) {
        let policy = &mut self.policy;
        let at = &mut self.all[cpu as usize];
        let used = thread.map_or(Use::Idle, Use::Thread);
        if at.used.is_none_or(|used| used == Use::Unknown) {
            at.close(cpu, since, policy);
            at.used = Some(used);
        }
        let (unknown, used) = (
            Use::Unknown.number(&mut at.known),
            used.number(&mut at.known),
        );
        policy.largest = policy.largest.max(used);
        at.tiles.replace_since(since, unknown, used);
    }

    /// Updates the use of `cpu`, which may have changed.
    pub(super) fn note(&mut self, cpu: u32, time: u64) {
        self.all[cpu as usize].note(cpu, time, &mut self.policy);
    }

    /// Drops the activity of all processors, and keeps nothing from now on.
    pub(super) fn keep_nothing(&mut self) {
        self.policy.detail = Detail::Waits;
        (self.policy.stored, self.policy.highs) = (0, 0);
        self.policy.largest = 0;
        for cpu in &mut self.all {
            cpu.tiles = Tiles::default();
            cpu.known = Kinds::default();
            cpu.changes = Vec::new();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let known: usize = self.all.iter().map(|cpu| cpu.known.bytes()).sum();
        let changes: usize = self.all.iter().map(|cpu| cpu.changes.len()).sum();
        self.all.len() * (size_of::<Cpu>() + 512)
            + with_room(self.policy.stored * Tiles::size(self.policy.largest))
            // Only starts are stored, so an extension stores no upper bits.
            + self.policy.highs.min(self.policy.stored) * Times::HIGH
            + with_room(changes * size_of::<(u64, Option<Context>)>())
            + known
    }

    pub(super) fn finish(mut self, end: u64) -> Vec<Stretches> {
        let mut all = Vec::with_capacity(self.all.len());
        for (number, mut cpu) in (0..).zip(self.all) {
            cpu.close(number, end, &mut self.policy);
            all.push(Stretches::new(cpu.tiles, cpu.known));
        }
        all
    }
}

impl Cpu {
    /// The current thread; `Some(None)` if idle, `None` if not known.
    pub(super) fn current(&self) -> Option<Option<ThreadId>> {
        self.current
    }

    pub(super) fn thread(&self) -> Option<ThreadId> {
        self.current.flatten()
    }

    /// The innermost context that interrupts the thread; `None` if all contexts are the thread's own work.
    pub(super) fn above(&self) -> Option<Context> {
        let own = |c: &&Context| !matches!(c, Context::Softirq { own: true, .. });
        self.contexts.iter().rfind(own).copied()
    }

    /// The interrupt that has just ended here, if any.
    pub(super) fn tail(&self, time: u64) -> Option<Context> {
        let (context, end) = self.tail?;
        (time.saturating_sub(end) <= TAIL).then_some(context)
    }

    /// The disk whose request is being completed, the request, and whether the completion may still wake a thread at
    /// `time`. Outside of recorded interrupts, a completion is taken to last at most [`TAIL`], or [`SLOW_TAIL`] if it
    /// wakes the thread that submitted the request. `asleep` is the start of the uninterruptible sleep of `wakee`: a
    /// thread in any other sleep need not wait for its request.
    pub(super) fn disk(
        &self,
        time: u64,
        wakee: Option<ThreadId>,
        asleep: Option<u64>,
    ) -> Option<(Disk, Option<Request>, bool)> {
        let (disk, depth, request, done) = self.completed?;
        let is_own = wakee.is_some() && request.is_some_and(|request| request.of == wakee);
        let waits = asleep.is_some_and(|since| since <= done);
        let most = if is_own && waits { SLOW_TAIL } else { TAIL };
        let goes_on = depth > 0 || time.saturating_sub(done) <= most;
        let is_network = matches!(
            self.contexts.last(),
            Some(Context::Softirq {
                vector: Vector::NET_TX | Vector::NET_RX,
                ..
            })
        );
        // After the request of a disk on the network, the softirq may deliver packets to other threads.
        let is_for = is_own || waits || !is_network;
        (depth == self.contexts.len() && is_for).then_some((disk, request, goes_on))
    }

    /// The flush of this disk that has just ended here. The requests that waited for it end directly after it.
    pub(super) fn flushed(&self, time: u64, disk: Disk) -> Option<Request> {
        let (of, depth, request, done) = self.completed?;
        let goes_on = depth > 0 || time.saturating_sub(done) <= TAIL;
        let is_here = of == disk && depth == self.contexts.len() && goes_on;
        request.filter(|request| is_here && request.kind == Kind::Flush)
    }

    /// Records that the thread itself continues: softirqs of an interrupt, and the completion of a request, have ended.
    pub(super) fn continues(&mut self) {
        self.softirqs_until = 0;
        self.completed = None;
    }

    /// Records the raise of a softirq, in a handler or elsewhere. Returns false if the softirq was already pending. A
    /// softirq that raises another, or itself for remaining work, does so on behalf of its own raiser.
    pub(super) fn raise(&mut self, time: u64, vector: u32, is_thread: bool) -> bool {
        let by = match self.contexts.last() {
            Some(Context::Irq { number, name }) => Raiser::Device(Handler(*number, *name)),
            Some(Context::Timer) => Raiser::Timer,
            Some(Context::Softirq { vector, by, .. }) => match *vector {
                Vector::TIMER | Vector::HRTIMER => Raiser::Timer,
                _ => *by,
            },
            Some(Context::Ipi(name)) => Raiser::Ipi(*name),
            Some(Context::Disk(_) | Context::Unseen) => Raiser::Unrecorded,
            None if is_thread => Raiser::Thread,
            None => Raiser::Unrecorded,
        };
        let is_first = self.raised_by.iter().all(|(v, _)| *v != vector);
        match Vector(vector) {
            Vector::BLOCK => {
                let thread = self.thread().filter(|_| by == Raiser::Thread);
                let other = !is_first && self.block.map(|(of, _)| of) != thread;
                self.block = thread.map(|thread| (thread, time)).filter(|_| !other);
            }
            Vector::HRTIMER if is_first => self.hrtimer = Some(time),
            _ => {}
        }
        if let Some((_, first)) = self.raised_by.iter_mut().find(|(v, _)| *v == vector) {
            if *first != by {
                *first = Raiser::Several;
            }
        } else if self.raised_by.len() < VECTORS {
            self.raised_by.push((vector, by));
        }
        is_first
    }

    /// Records the start of a softirq, and returns its raiser.
    pub(super) fn raiser(&mut self, vector: u32, wakers: u32) -> Raiser {
        match Vector(vector) {
            Vector::BLOCK => self.served = self.block.take(),
            Vector::HRTIMER => {
                self.due = self.hrtimer.take().map(|raised| Due {
                    raised,
                    timers: 0,
                    wakers,
                });
            }
            _ => {}
        }
        let place = self.raised_by.iter().position(|(v, _)| *v == vector);
        place.map_or(Raiser::Unrecorded, |place| {
            self.raised_by.swap_remove(place).1
        })
    }

    fn note(&mut self, number: u32, time: u64, policy: &mut Policy) {
        let above = self.above();
        // Otherwise, no interrupt of a thread is kept.
        let is_kept = policy.keep < u64::MAX && !matches!(policy.detail, Detail::Waits);
        let is_new = self.changes.last().is_none_or(|(_, last)| *last != above);
        if self.current.is_none() && is_kept && is_new {
            if self.changes.len() == CHANGES {
                // What the thread did before the newer half is then not known.
                self.changes.drain(..CHANGES / 2);
                let since = self.changes.first().map(|(time, _)| *time);
                self.known_since = self.known_since.max(since);
            }
            push(&mut self.changes, (time, above));
        }
        let used = match (above, self.current) {
            (Some(context), _) => Use::Context(context),
            (None, Some(Some(thread))) => Use::Thread(thread),
            (None, Some(None)) => Use::Idle,
            (None, None) => Use::Unknown,
        };
        if self.used != Some(used) {
            self.close(number, time, policy);
            self.used = Some(used);
        }
    }

    fn close(&mut self, number: u32, time: u64, policy: &mut Policy) {
        if time <= self.since {
            return;
        }
        let used = self.used.unwrap_or(Use::Unknown);
        let begin = std::mem::replace(&mut self.since, time);
        if time <= policy.keep {
            return;
        }
        let (used, is_wanted) = match &policy.detail {
            Detail::All => (used, true),
            Detail::Some(wanted) if wanted.has_processor(number, begin, time) => (used, true),
            Detail::Some(_) => (Use::Unknown, false),
            Detail::Waits => return,
        };
        let used = used.number(&mut self.known);
        policy.largest = policy.largest.max(used);
        policy.highs += usize::from(differ(begin, time));
        // Two wanted stretches of one kind stay separate, even if what separates them took no time: a processor that
        // becomes idle again has been given to a thread in between.
        if !is_wanted && self.tiles.last_kind() == Some(used) {
            self.tiles.extend(time);
            return;
        }
        policy.stored += 1;
        if policy.count_only && self.tiles.len() > 0 {
            self.tiles.replace_last(time, used);
        } else {
            self.tiles.push(begin, time, used);
        }
    }
}
