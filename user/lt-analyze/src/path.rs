// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The critical path of a thread: what would have had to be faster.
//!
//! ```text
//! thread 7   |running|  blocked, woken by 8      |waiting|running
//! thread 8   |running ...|blocked, by irq 5 |running|
//!
//! path of 7  |7 runs |8 runs|irq 5 (of 8)   |8 runs |7 waits|7 runs
//! ```
//!
//! While the thread runs, is interrupted or waits for a processor, the path is the thread itself. While it is blocked,
//! it is what its waker did in that time; and while that was blocked, too, what woke that, within the same time. A wait
//! that a timer, a device or the network ended is a leaf.
//!
//! So the pieces tile the time that was asked for, and a piece on another thread lies inside the wait that it explains:
//! what a waker did before somebody waited for it is nobody's delay. A thread that is blocked cannot be waited for by
//! those that it waits for; so nobody comes twice in a chain, which is why there is an end.

use lt_model::{Context, Interval, Model, Name, Sleep, State, ThreadId, Vector, Waker};

/// A longer chain of threads that wait for each other is not followed: the stack is not endless.
const DEPTH: usize = 200;

/// A part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// From here, ns.
    pub begin: u64,
    /// To here.
    pub end: u64,
    /// Whose time it is.
    pub thread: ThreadId,
    /// What it did.
    pub cause: Cause,
    /// The processor on which it ran, or for which it waited.
    pub cpu: Option<u32>,
    /// How many threads wait for this one, each for the next.
    pub depth: usize,
    /// The wait of the thread before it that this is a part of; for the first thread, all that was asked for.
    pub inside: (u64, u64),
}

/// Why time passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// It ran, in this system call if it is known to be in one.
    Running(Option<Name>),
    /// It was interrupted.
    Interrupted(Leaf),
    /// It could have gone on, and others went first.
    Preempted,
    /// It had been woken, and waited for a processor.
    Waiting,
    /// It waited, in this system call, for what woke it then.
    For(Leaf, Option<Name>),
    /// It waited, and the trace does not tell for whom.
    Blocked(Option<Name>),
    /// It was a kernel thread without work, and the trace does not tell who gave it some.
    Idle,
    /// Somebody had done what wakes it, and it had not yet arrived.
    Transit,
    /// The trace does not tell what it did.
    Unknown,
}

/// What is not a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Leaf {
    /// A timer.
    Timer,
    /// A block device, by its softirq.
    Disk,
    /// The network.
    Network,
    /// The handler of a hard interrupt, of a device of this name.
    Irq(i32, Name),
    /// Another softirq.
    Softirq(u32),
    /// Another processor.
    Ipi(Name),
}

impl From<Context> for Leaf {
    fn from(context: Context) -> Self {
        match context {
            Context::Timer => Self::Timer,
            Context::Irq { number, name } => Self::Irq(number, name),
            Context::Ipi(name) => Self::Ipi(name),
            Context::Softirq { vector, .. } => match vector {
                Vector::NET_TX | Vector::NET_RX => Self::Network,
                Vector(1 | 8) => Self::Timer,
                Vector(4 | 5) => Self::Disk,
                Vector(other) => Self::Softirq(other),
            },
        }
    }
}

/// The critical path of a thread between two times.
#[must_use]
pub fn path(model: &Model, thread: ThreadId, from: u64, to: u64) -> Vec<Piece> {
    let mut walk = Walk {
        model,
        pieces: Vec::new(),
        chain: Vec::new(),
    };
    if from < to {
        walk.thread(thread, (from, to));
    }
    walk.pieces
}

struct Walk<'a> {
    model: &'a Model,
    pieces: Vec<Piece>,
    /// The threads that wait, each for the next.
    chain: Vec<ThreadId>,
}

impl Walk<'_> {
    /// What this thread did in that time.
    fn thread(&mut self, id: ThreadId, inside: (u64, u64)) {
        let (from, to) = inside;
        self.chain.push(id);
        let mut at = from;
        let thread = self.model.thread(id);
        let intervals = thread.map_or(&[][..], |t| t.between(from, to));
        for interval in intervals {
            // Only before the first one there can be a gap.
            self.before(id, (at, interval.begin.max(from)), inside);
            let part = (interval.begin.max(from), interval.end.min(to));
            match interval.state {
                State::Blocked(..) => self.wait(id, interval, part, inside),
                state => self.piece(id, part, plain(state), interval.cpu, inside),
            }
            at = part.1;
        }
        self.before(id, (at, to), inside);
        self.chain.pop();
    }

    /// The time before a thread is known: its maker's, if it was made then.
    fn before(&mut self, id: ThreadId, part: (u64, u64), inside: (u64, u64)) {
        if part.0 >= part.1 {
            return;
        }
        let first = self.model.thread(id).filter(|t| t.born);
        let first = first.and_then(|t| t.intervals.first());
        let birth = first.filter(|first| first.begin == part.1);
        let maker = birth.and_then(|first| self.model.waker(first.waker?)?.by());
        match maker {
            Some(maker) if self.may_follow(maker) => self.thread(maker, part),
            _ => self.piece(id, part, Cause::Unknown, None, inside),
        }
    }

    /// A wait, or a part of it.
    fn wait(&mut self, id: ThreadId, interval: &Interval, part: (u64, u64), inside: (u64, u64)) {
        let (sleep, call) = match interval.state {
            State::Blocked(sleep, call) => (sleep, call),
            _ => (Sleep::Other, None),
        };
        let waker = interval.waker.and_then(|w| self.model.waker(w));
        match waker.map(|waker| (waker, waker.by())) {
            Some((waker, Some(by))) if self.may_follow(by) => {
                // What the waker did until it woke it, also if that is later than what was asked for.
                let acted = waker.time.clamp(part.0, part.1);
                if part.0 < acted {
                    self.thread(by, (part.0, acted));
                }
                self.piece(id, (acted, part.1), Cause::Transit, None, inside);
            }
            Some((
                Waker {
                    context: Some(context),
                    ..
                },
                None,
            )) => {
                let cause = Cause::For(Leaf::from(*context), call);
                self.piece(id, part, cause, None, inside);
            }
            _ if sleep == Sleep::Idle => self.piece(id, part, Cause::Idle, None, inside),
            _ => self.piece(id, part, Cause::Blocked(call), None, inside),
        }
    }

    fn may_follow(&self, id: ThreadId) -> bool {
        self.chain.len() < DEPTH && !self.chain.contains(&id)
    }

    fn piece(
        &mut self,
        thread: ThreadId,
        (begin, end): (u64, u64),
        cause: Cause,
        cpu: Option<u32>,
        inside: (u64, u64),
    ) {
        if begin < end {
            self.pieces.push(Piece {
                begin,
                end,
                thread,
                cause,
                cpu,
                depth: self.chain.len().saturating_sub(1),
                inside,
            });
        }
    }
}

/// What a thread does when it does not wait for anybody.
fn plain(state: State) -> Cause {
    match state {
        State::Running(call) => Cause::Running(call),
        State::Interrupted(context) => Cause::Interrupted(context.into()),
        State::Preempted => Cause::Preempted,
        State::Waiting => Cause::Waiting,
        State::Blocked(_, call) => Cause::Blocked(call),
        State::Unknown => Cause::Unknown,
    }
}
