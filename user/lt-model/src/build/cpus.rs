// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The current and past activity of each processor.

use super::Detail;
use super::limits::Looked;
use crate::context::{Context, Disk, Handler, Raiser, Vector};
use crate::ids::ThreadId;
use crate::limits::Function;
use crate::processor::{Stretches, Use};
use crate::request::Request;
use crate::tiles::{Kinds, Tiles, with_room};

/// As long after its end, ns, what an interrupt has left to a thread is given to that. It takes some microseconds; a
/// waking that comes later is what the interrupted thread does.
pub(super) const TAIL: u64 = 100_000;

/// As long after an interrupt, ns, a CPU works on softirqs: what is left then, it leaves to a thread. So it is with packets
/// (`net.core.netdev_budget_usecs`).
pub(super) const SOFTIRQS: u64 = 2_000_000;

/// As long after a system call, an interrupt or a switch, ns, a thread may be on its way to user mode. In recorded traces
/// that took less, and wakings by interrupts that are not recorded came from 30 us on.
pub(super) const WAY_OUT: u64 = 30_000;

/// More softirqs than any kernel has.
const VECTORS: usize = 16;

/// The timers of a softirq HRTIMER. It is raised when the first of them is due, and not again until it begins: so it is known
/// when that was due, if it is the only one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    /// When it was raised.
    pub(super) raised: u64,
    /// How many timers it has run.
    pub(super) timers: u32,
    /// The number of the next waker when it began.
    pub(super) wakers: u32,
}

/// A processor at the moment.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// Its thread; `Some(None)` is none.
    current: Option<Option<ThreadId>>,
    /// From when on its events are recorded, without a gap.
    pub(super) known_since: Option<u64>,
    /// Nested interrupts, the innermost last.
    pub(super) contexts: Vec<Context>,
    /// The interrupt that ended last here, and when.
    pub(super) tail: Option<(Context, u64)>,
    /// The softirqs that its thread has raised itself, as bits.
    pub(super) raised: u32,
    /// The softirqs that were raised and have not begun yet, and by what.
    pub(super) raised_by: Vec<(u32, Raiser)>,
    /// The thread that has raised BLOCK, alone, and when; and the same of the BLOCK that has begun last.
    pub(super) block: Option<(ThreadId, u64)>,
    pub(super) served: Option<(ThreadId, u64)>,
    /// When HRTIMER was raised, and what is known of the one that has begun last.
    pub(super) hrtimer: Option<u64>,
    pub(super) due: Option<Due>,
    /// A request of this disk was completed here, inside this many contexts; those that this wakes are woken next.
    pub(super) completed: Option<(Disk, usize, Option<Request>)>,
    /// Until then softirqs may run that an interrupt has left, unless something shows that the thread goes on.
    pub(super) softirqs_until: u64,
    /// The function of a timer that runs now.
    pub(super) expiring: Option<Function>,
    /// Signs of why threads wait for this processor.
    pub(super) looked: Looked,
    /// Current use, and its start.
    used: Option<Use>,
    since: u64,
    tiles: Tiles,
    known: Kinds<Context>,
}

#[derive(Debug, Default)]
pub(super) struct Cpus {
    all: Vec<Cpu>,
    pub(super) policy: Policy,
}

/// All processors.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Activity that ended at this time or before is dropped.
    pub(super) keep: u64,
    pub(super) detail: Detail,
    /// Nothing more is: only how much it would be.
    pub(super) count_only: bool,
    /// How many stretches there are, or would be.
    stored: usize,
}

impl Cpus {
    /// There is a processor of that number, and nothing is known of it before `start`.
    pub(super) fn reach(&mut self, cpu: u32, start: u64) {
        while self.all.len() <= cpu as usize {
            self.all.push(Cpu {
                since: start,
                ..Cpu::default()
            });
        }
    }

    /// One, if it was reached.
    pub(super) fn get(&self, cpu: u32) -> Option<&Cpu> {
        self.all.get(cpu as usize)
    }

    /// The processor `cpu`, which was seen before.
    pub(super) fn at(&mut self, cpu: u32) -> &mut Cpu {
        &mut self.all[cpu as usize]
    }

    /// Changes the current thread of `cpu`: to another one, to none, or to an unknown one.
    pub(super) fn go(&mut self, cpu: u32, time: u64, current: Option<Option<ThreadId>>) {
        let at = self.at(cpu);
        at.current = current;
        at.completed = None;
        at.raised = 0;
        at.softirqs_until = 0;
        at.expiring = None;
        self.note(cpu, time);
    }

    /// Notes that `cpu` has run this thread, or been idle, since then, where its activity is unknown.
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
        at.tiles.replace_since(since, unknown, used);
    }

    /// Updates the use of `cpu`, which may have changed.
    pub(super) fn note(&mut self, cpu: u32, time: u64) {
        self.all[cpu as usize].note(cpu, time, &mut self.policy);
    }

    /// Forgets what they did, and keeps nothing from now on.
    pub(super) fn keep_nothing(&mut self) {
        self.policy.detail = Detail::Waits;
        self.policy.stored = 0;
        for cpu in &mut self.all {
            cpu.tiles = Tiles::default();
            cpu.known = Kinds::default();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let known: usize = self.all.iter().map(|cpu| cpu.known.bytes()).sum();
        self.all.len() * (size_of::<Cpu>() + 512)
            + with_room(self.policy.stored * Tiles::BYTES)
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
    /// Its thread, `Some(None)` if it is idle; none if that is not known.
    pub(super) fn current(&self) -> Option<Option<ThreadId>> {
        self.current
    }

    pub(super) fn thread(&self) -> Option<ThreadId> {
        self.current.flatten()
    }

    /// The innermost context that interrupts the thread; none if all are its own work.
    pub(super) fn above(&self) -> Option<Context> {
        let own = |c: &&Context| !matches!(c, Context::Softirq { own: true, .. });
        self.contexts.iter().rfind(own).copied()
    }

    /// The interrupt that has just ended here.
    pub(super) fn tail(&self, time: u64) -> Option<Context> {
        let (context, end) = self.tail?;
        (time.saturating_sub(end) <= TAIL).then_some(context)
    }

    /// The disk that has completed a request in what goes on now, and which.
    pub(super) fn disk(&self) -> Option<(Disk, Option<Request>)> {
        let (disk, depth, request) = self.completed?;
        (depth == self.contexts.len()).then_some((disk, request))
    }

    /// A softirq is raised, in a handler or elsewhere. One that raises another, or itself again for the rest of its work,
    /// does so for what has raised it.
    pub(super) fn raise(&mut self, time: u64, vector: u32, is_thread: bool) {
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
    }

    /// It begins: what has raised it.
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
        let used = match (self.above(), self.current) {
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
        // Two stretches of one kind that are wanted stay two, even if what separates them took no time: a processor
        // that becomes idle again has been given to a thread in between.
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
