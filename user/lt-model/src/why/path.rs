// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The critical path of a thread: the activity that determined how long the thread took.
//!
//! ```text
//! thread 7   |running|  blocked, woken by 8      |waiting|running
//! thread 8   |running ...|blocked, by irq 5 |running|
//!
//! path of 7  |7 runs |8 runs|irq 5 (of 8)   |8 runs |7 waits|7 runs
//! ```
//!
//! While the thread runs, is interrupted or waits for a processor, the path is the thread itself. While it is blocked,
//! the path is the activity of its waker in that time; while the waker was also blocked, the activity of the waker's
//! waker, and so on. A wait that a timer, a device or the network ended is a leaf.
//!
//! The pieces tile the requested time, and a piece on another thread lies inside the wait that it explains: the
//! activity of a waker before the wait delays no thread. The threads that a blocked thread waits for cannot wait for
//! it, so no thread occurs twice in a chain, and the recursion ends.

use crate::{
    CallFile, Context, Handler, Helper, Interval, Kind, Model, Name, Raiser, Request, State,
    ThreadId, Unrecorded, Vector, Waker, WakerId, Wanted,
};

use super::beside::{Beside, Nothing, Slept};
use super::cause::{Cause, Leaf, Place, plain, stopped};
use super::runnable;

/// Maximum depth of a chain of threads that wait for each other. The recursion uses the stack.
const DEPTH: usize = 200;

/// A part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Start, ns.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
    /// The thread.
    pub thread: ThreadId,
    /// The cause.
    pub cause: Cause,
    /// The processor on which the thread ran, or for which it waited.
    pub cpu: Option<u32>,
    /// Number of threads in the chain of waits above this thread.
    pub depth: usize,
    /// The wait that this piece explains; for the first thread, the requested time.
    pub inside: (u64, u64),
}

/// A part of a path in which a thread was blocked, spun, or did not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Start, ns.
    pub begin: u64,
    /// End, ns.
    pub end: u64,
    /// End of the whole wait, which may be after the requested time, ns.
    pub until: u64,
    /// The thread that waited, or did not exist yet.
    pub thread: ThreadId,
    /// The kind of wait.
    pub kind: Waited,
    /// The file of the system call in which the thread waited, or its descriptor, if known.
    pub file: Option<CallFile>,
    /// The waker that ended it, if recorded.
    pub waker: Option<WakerId>,
    /// The other thread whose pieces explain the wait; `None` if there is none, as for a timer or a device.
    pub by: Option<ThreadId>,
    /// The cause; `None` if a thread ended the wait, and the path follows that thread.
    pub cause: Option<Cause>,
    /// Number of threads in the chain of waits above this thread.
    pub depth: usize,
}

/// A kind of wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waited {
    /// The thread was blocked, in this system call if it is known to be in one.
    Blocked(Option<Name>),
    /// The thread spun until the owner handed over a lock.
    Spun,
    /// The thread had not been created yet.
    Unborn,
}

/// The critical path of a thread between two times.
#[must_use]
pub fn path(model: &Model, thread: ThreadId, from: u64, to: u64) -> Vec<Piece> {
    walk(model, &Nothing, Stores::Pieces, thread, (from, to)).pieces
}

/// The critical path, using facts that are not in the events.
#[must_use]
pub fn path_beside(
    model: &Model,
    beside: &dyn Beside,
    thread: ThreadId,
    from: u64,
    to: u64,
) -> Vec<Piece> {
    walk(model, beside, Stores::Pieces, thread, (from, to)).pieces
}

/// The waits on the critical path, by start. An outer wait comes before an inner wait that starts at the same time, so
/// the waits below a wait follow it with a greater depth.
#[must_use]
pub fn waits(model: &Model, thread: ThreadId, from: u64, to: u64) -> Vec<Wait> {
    walk(model, &Nothing, Stores::Waits, thread, (from, to)).waits
}

/// The waits of the thread itself, by start. No waker is followed, so `by` is `None`, and a wait that a thread ended
/// has a cause, too: [`Cause::Blocked`] or [`Cause::Idle`].
pub(super) fn own_waits(model: &Model, thread: ThreadId, from: u64, to: u64) -> Vec<Wait> {
    walk(model, &Nothing, Stores::OwnWaits, thread, (from, to)).waits
}

/// Adds what a model must contain for the path of a thread between two times: the activity of each thread on the path,
/// of threads that ran a timer for it, and of the processors that were waited for. Returns the path and its waits.
pub(super) fn want(
    wanted: &mut Wanted,
    model: &Model,
    thread: ThreadId,
    range: (u64, u64),
) -> (Vec<Piece>, Vec<Wait>) {
    let walk = walk(model, &Nothing, Stores::All, thread, range);
    let mut waits = walk.waits.iter().peekable();
    for piece in &walk.pieces {
        // In time order, which makes adding fast.
        while let Some(wait) = waits.next_if(|wait| wait.begin <= piece.begin) {
            wanted.thread(wait.thread, wait.begin, wait.end);
        }
        wanted.thread(piece.thread, piece.begin, piece.end);
        if let Some((handler, inside)) = handler(model, piece.thread, piece.end) {
            wanted.thread(handler, since_wakeup(model, handler, inside), inside.1);
            for waited in waits_of_handler(model, handler, inside) {
                if let Some(cpu) = waited.cpu {
                    wanted.processor(cpu, waited.begin, waited.end);
                }
            }
        }
        if let (true, Some(cpu)) = (piece.cause.is_runnable(), piece.cpu) {
            wanted.processor(cpu, piece.begin, piece.end);
        }
    }
    // A waker is recorded at the end of the wait, which may be after the requested time.
    for (thread, begin, end) in walk.cut {
        wanted.thread(thread, begin, end);
    }
    (walk.pieces, walk.waits)
}

/// Returns the waits for a CPU of the softirq or interrupt thread that ended the sleep of `thread` at `end`, by running
/// a timer or completing a request. Only its waits since its last wakeup count. Empty if no such thread ended the
/// sleep, or if the due time is known: the path then follows that thread.
#[must_use]
pub fn handled(model: &Model, thread: ThreadId, end: u64) -> Vec<Piece> {
    let handler = handler(model, thread, end);
    handler.map_or_else(Vec::new, |(handler, inside)| {
        waits_of_handler(model, handler, inside)
    })
}

/// The softirq or interrupt thread that ended the sleep of `thread` at `end`, unless the due time is known; with the
/// start of the sleep and the time of the wakeup.
fn handler(model: &Model, thread: ThreadId, end: u64) -> Option<(ThreadId, (u64, u64))> {
    let mut ending = model.thread(thread)?.between(end.checked_sub(1)?, end);
    let sleep = ending.find(|interval| interval.end == end)?;
    let waker = model.waker(sleep.waker?)?;
    let Helper::Handled(handler, None) = model.helper(sleep.waker?)? else {
        return None;
    };
    let inside = (sleep.begin, waker.time);
    (inside.0 < inside.1).then_some((handler, inside))
}

/// The waits of a softirq or interrupt thread for a CPU since its last wakeup, in the time `inside`.
fn waits_of_handler(model: &Model, handler: ThreadId, inside: (u64, u64)) -> Vec<Piece> {
    let mut waits = Vec::new();
    let thread = model.thread(handler);
    let intervals = thread.map(|thread| thread.between(inside.0, inside.1));
    for interval in intervals.into_iter().flatten() {
        match interval.state {
            State::Waiting | State::Preempted => waits.push(Piece {
                begin: interval.begin.max(inside.0),
                end: interval.end.min(inside.1),
                thread: handler,
                cause: plain(interval.state),
                cpu: interval.cpu,
                depth: 1,
                inside,
            }),
            // Earlier waits were for other work.
            State::Blocked(..) | State::Unknown(_) => waits.clear(),
            State::Running(_) | State::Interrupted(_) => {}
        }
    }
    waits
}

/// Returns the time from which on the activity of a handler must be kept to show its waits since its last wakeup: just
/// before that wakeup, so that the sleep is known, too. If the model shows no such wakeup in the time `inside`, returns
/// the start of `inside`, since a part of the activity may not have been kept.
fn since_wakeup(model: &Model, handler: ThreadId, inside: (u64, u64)) -> u64 {
    let is_other = |state| match state {
        State::Blocked(..) => true,
        State::Unknown(why) => why != Unrecorded::Unseen,
        _ => false,
    };
    let thread = model.thread(handler);
    let intervals = thread.map(|thread| thread.between(inside.0, inside.1).rev());
    let mut intervals = intervals.into_iter().flatten();
    let last = intervals.find(|interval| is_other(interval.state));
    last.map_or(inside.0, |last| last.end.min(inside.1) - 1)
}

/// What a walk stores.
#[derive(PartialEq, Eq)]
enum Stores {
    Pieces,
    Waits,
    /// The waits of the thread itself, without following its wakers.
    OwnWaits,
    All,
}

fn walk<'a>(
    model: &'a Model,
    beside: &'a dyn Beside,
    stores: Stores,
    thread: ThreadId,
    range: (u64, u64),
) -> Walk<'a> {
    let mut walk = Walk {
        model,
        beside,
        stores,
        pieces: Vec::new(),
        waits: Vec::new(),
        cut: Vec::new(),
        chain: Vec::new(),
    };
    if range.0 < range.1 {
        walk.thread(thread, range, None);
    }
    walk
}

struct Walk<'a> {
    model: &'a Model,
    beside: &'a dyn Beside,
    stores: Stores,
    pieces: Vec<Piece>,
    waits: Vec<Wait>,
    /// The full extent of each wait that was requested only in part.
    cut: Vec<(ThreadId, u64, u64)>,
    /// The threads that wait, each for the next.
    chain: Vec<ThreadId>,
}

impl Walk<'_> {
    /// Adds the activity of a thread in the time `inside`. With `left_by`, the thread does work that this cause left to
    /// it.
    fn thread(&mut self, id: ThreadId, inside: (u64, u64), left_by: Option<Leaf>) {
        let (from, to) = inside;
        self.chain.push(id);
        let mut at = from;
        let thread = self.model.thread(id);
        let intervals = thread.map(|t| t.between(from, to));
        for interval in intervals.into_iter().flatten() {
            // A gap is possible only before the first interval.
            self.before(id, (at, interval.begin.max(from)), inside);
            let part = (interval.begin.max(from), interval.end.min(to));
            match interval.state {
                State::Blocked(..) => self.wait(id, &interval, part, inside, left_by),
                State::Waiting => self.runnable(id, &interval, part, inside),
                _ => self.spins(id, &interval, part, inside),
            }
            at = part.1;
        }
        self.before(id, (at, to), inside);
        self.chain.pop();
    }

    /// Adds the time of an awake thread: it makes progress, or spins until the owner hands over a lock.
    fn spins(&mut self, id: ThreadId, interval: &Interval, part: (u64, u64), inside: (u64, u64)) {
        let own = |walk: &mut Self, part: (u64, u64)| match interval.state {
            State::Preempted => walk.runnable(id, interval, part, inside),
            state => walk.piece(id, part, plain(state), interval.cpu, inside),
        };
        let mut at = part.0;
        while at < part.1
            && !matches!(interval.state, State::Unknown(_))
            && let Some(handover) = self.model.handover(id, at).filter(|of| of.begin < part.1)
        {
            let spin = (handover.begin.max(at), handover.end.min(part.1));
            let owner = self.model.waker(handover.by).and_then(|waker| waker.by());
            own(self, (at, spin.0));
            match owner.filter(|owner| self.may_follow(*owner)) {
                Some(owner) => {
                    self.cut.push((id, handover.begin, handover.end + 1));
                    let kind = (Waited::Spun, handover.end);
                    self.ended(id, spin, kind, Some(handover.by), Some(owner), None);
                    self.thread(owner, spin, None);
                }
                None => own(self, spin),
            }
            at = spin.1;
        }
        own(self, (at, part.1));
    }

    /// Adds a wait for a CPU, or a part of one.
    fn runnable(
        &mut self,
        id: ThreadId,
        interval: &Interval,
        part: (u64, u64),
        inside: (u64, u64),
    ) {
        // Finding the parts, which are pieces, takes searches in the activity of the CPU.
        if matches!(self.stores, Stores::Waits | Stores::OwnWaits) {
            return;
        }
        for (begin, end, cause) in runnable::parts(self.model, self.beside, id, interval, part) {
            self.piece(id, (begin, end), cause, interval.cpu, inside);
        }
    }

    /// Adds a time in which the thread is not known: its creator's activity if the thread was created at the end of
    /// that time, otherwise an unknown piece.
    fn before(&mut self, id: ThreadId, part: (u64, u64), inside: (u64, u64)) {
        if part.0 >= part.1 {
            return;
        }
        let thread = self.model.thread(id).filter(|t| t.born);
        let birth = thread.filter(|t| t.span().is_some_and(|(begin, _)| begin == part.1));
        let waker = birth.and_then(|thread| thread.maker);
        let maker = waker.and_then(|waker| Some((waker, self.model.waker(waker)?.by()?)));
        match maker {
            Some((waker, maker)) if self.may_follow(maker) => {
                let kind = (Waited::Unborn, part.1);
                self.ended(id, part, kind, Some(waker), Some(maker), None);
                self.thread(maker, part, None);
            }
            _ => self.piece(id, part, absent(self.model, id, part.0), None, inside),
        }
    }

    /// Adds a wait, or a part of one.
    fn wait(
        &mut self,
        id: ThreadId,
        interval: &Interval,
        part: (u64, u64),
        inside: (u64, u64),
        left_by: Option<Leaf>,
    ) {
        if part != (interval.begin, interval.end) {
            self.cut.push((id, interval.begin, interval.end));
        }
        let slept = self.slept(id, interval);
        let waker = interval.waker.and_then(|w| Some((w, self.model.waker(w)?)));
        let ended_by = waker.map(|(number, _)| number);
        let kind = (Waited::Blocked(call_of(interval)), interval.end);
        if let Some(slept) = slept.filter(|slept| slept.alone) {
            let cause = Cause::For(slept.leaf, call_of(interval));
            self.ended(id, part, kind, ended_by, None, Some(cause));
            return self.piece(id, part, cause, None, inside);
        }
        match waker.map(|(number, waker)| (number, waker, waker.by())) {
            Some((_, waker, Some(by))) if self.may_follow(by) => {
                // The activity of the waker until the wakeup, which may be after this part of the wait.
                let acted = waker.time.clamp(part.0, part.1);
                let follows = part.0 < acted;
                self.ended(id, part, kind, ended_by, follows.then_some(by), None);
                if follows {
                    let left = left_to(waker.context, self.model.is_of_softirqs(by));
                    self.thread(by, (part.0, acted), left);
                }
                self.piece(id, (acted, part.1), Cause::Transit, None, inside);
            }
            _ => {
                let mut cause = Cause::of(self.model, interval);
                let request = interval.waker.and_then(|w| self.model.request(w));
                cause = self.of_others(id, interval, slept, request, cause);
                // The last event before the wakeup of ksoftirqd need not be the reason for it.
                if let (Some(left), Cause::For(leaf, call)) = (left_by, cause)
                    && (is_of_softirq(leaf) || self.model.is_of_softirqs(id))
                {
                    cause = Cause::For(left, call);
                }
                if let Some(slept) = slept
                    && let Cause::Blocked(call) | Cause::For(_, call) = cause
                    && !matches!(cause, Cause::For(leaf, _) if !leaf.is_vague())
                {
                    cause = Cause::For(slept.leaf, call);
                }
                let waker =
                    waker.map(|(number, waker)| (number, waker, self.helped(number, cause)));
                let by = waker.and_then(|(.., helped)| helped).map(|(by, _)| by);
                let of_disk = cause;
                if let (Some(request), Cause::For(Leaf::Disk(Some(disk)), call)) = (request, cause)
                    && request.kind != Kind::Plain
                {
                    cause = Cause::For(Leaf::Special(disk, request.kind), call);
                }
                self.ended(id, part, kind, ended_by, by, Some(cause));
                let at = self.held(id, request, part, of_disk, inside);
                match waker {
                    Some((_, waker, Some((by, helps)))) => {
                        self.by_thread(id, waker, (at, part.1), (by, helps), cause, inside);
                    }
                    _ => self.piece(id, (at, part.1), cause, None, inside),
                }
            }
        }
    }

    /// The thread whose activity ended a wait for `cause`, if the path can follow it.
    fn helped(&self, waker: WakerId, cause: Cause) -> Option<(ThreadId, Helps)> {
        let (by, helps) = match (self.model.helper(waker)?, cause) {
            (Helper::Served(by, done), Cause::For(Leaf::Disk(Some(_)), _)) => {
                (by, Helps::Until(done))
            }
            (Helper::Handled(by, Some(due)), Cause::For(Leaf::Timer | Leaf::Disk(Some(_)), _)) => {
                (by, Helps::From(due))
            }
            _ => return None,
        };
        self.may_follow(by).then_some((by, helps))
    }

    /// Adds a wait that a thread ended: the work of a worker that served a request, or what delayed a softirq thread
    /// once the softirq was due.
    fn by_thread(
        &mut self,
        id: ThreadId,
        waker: Waker,
        (from, to): (u64, u64),
        (by, helps): (ThreadId, Helps),
        cause: Cause,
        inside: (u64, u64),
    ) {
        let acted = waker.time.clamp(from, to);
        let (begin, end, rest) = match helps {
            Helps::Until(done) => (from, done.clamp(from, acted), cause),
            Helps::From(due) => (due.clamp(from, acted), acted, Cause::Transit),
        };
        self.piece(id, (from, begin), cause, None, inside);
        if begin < end {
            self.thread(by, (begin, end), None);
        }
        self.piece(id, (end, to), rest, None, inside);
    }

    /// Returns the cause of a wait, given the `cause` that its waker shows. The two causes differ if a disk ended the
    /// wait by completing another thread's request: the stages of that request are not the stages of the waiting
    /// thread's own request. The causes also differ if the waiting thread had no request yet, as `slept` or later
    /// events show.
    fn of_others(
        &self,
        id: ThreadId,
        sleep: &Interval,
        slept: Option<Slept>,
        request: Option<Request>,
        cause: Cause,
    ) -> Cause {
        let Cause::For(Leaf::Disk(Some(disk)) | Leaf::Completion(disk), call) = cause else {
            return cause;
        };
        let own = self.model.lacked_request_of(id, sleep.begin, sleep.end);
        let place = slept.and_then(|slept| Place::of_sleep(slept.leaf));
        if let Some(place) = place.or(own.map(|_| Place::Unallocated)) {
            // Disks may share their tags, so that a completion of another disk ends the wait.
            return Cause::Held(own.unwrap_or(disk), place, call);
        }
        match request.and_then(|request| request.of) {
            Some(of) if of != id => Cause::For(Leaf::Others(disk, of), call),
            _ => cause,
        }
    }

    /// The reason for a sleep, if facts other than the wakeup show it. The sender of SIGCONT, for example, need not
    /// have stopped the thread.
    fn slept(&self, id: ThreadId, interval: &Interval) -> Option<Slept> {
        let leaf = match interval.state {
            State::Blocked(sleep, _) => stopped(sleep),
            _ => None,
        };
        match leaf {
            Some(leaf) => Some(Slept { leaf, alone: true }),
            None => self.beside.slept(id, interval),
        }
    }

    /// Adds the first part of a wait, before the disk had the request whose completion ended the wait. Returns the end
    /// of this part.
    fn held(
        &mut self,
        id: ThreadId,
        request: Option<Request>,
        part: (u64, u64),
        cause: Cause,
        inside: (u64, u64),
    ) -> u64 {
        let (Some(request), Cause::For(Leaf::Disk(Some(disk)), call)) = (request, cause) else {
            return part.0;
        };
        let mut at = part.0;
        let mut until = |place, end: Option<u64>| {
            let end = end.unwrap_or(at).clamp(at, part.1);
            self.piece(id, (at, end), Cause::Held(disk, place, call), None, inside);
            at = end;
        };
        let issued = Some(request.issued);
        if request.queued.is_some() {
            let limited = |place, end: Option<u64>| match request.limited {
                Some(at) if Some(at) == end => Place::Limited,
                _ => place,
            };
            let entered = limited(Place::Unsubmitted, request.entered);
            let queued = limited(Place::Stacked, request.queued);
            until(entered, request.entered);
            until(queued, request.queued);
            if request.allocated.is_some() {
                until(Place::Unallocated, request.allocated);
                until(Place::Queued, issued);
            }
        }
        until(Place::Unrecorded, issued);
        at
    }

    fn ended(
        &mut self,
        thread: ThreadId,
        (begin, end): (u64, u64),
        (kind, until): (Waited, u64),
        waker: Option<WakerId>,
        by: Option<ThreadId>,
        cause: Option<Cause>,
    ) {
        if self.stores == Stores::Pieces {
            return;
        }
        self.waits.push(Wait {
            begin,
            end,
            until,
            thread,
            kind,
            file: self.model.file(thread, begin, end),
            waker,
            by,
            cause,
            depth: self.chain.len().saturating_sub(1),
        });
    }

    fn may_follow(&self, id: ThreadId) -> bool {
        self.stores != Stores::OwnWaits && self.chain.len() < DEPTH && !self.chain.contains(&id)
    }

    fn piece(
        &mut self,
        thread: ThreadId,
        (begin, end): (u64, u64),
        cause: Cause,
        cpu: Option<u32>,
        inside: (u64, u64),
    ) {
        if begin < end && matches!(self.stores, Stores::Pieces | Stores::All) {
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

/// The cause of a time from `from` on in which a thread has no intervals: no event names it yet, or it has ended.
pub(super) fn absent(model: &Model, id: ThreadId, from: u64) -> Cause {
    let ended = model.thread(id).and_then(|thread| thread.ended);
    Cause::Unknown(match ended.unwrap_or(u64::MAX).min(model.span.1) <= from {
        true => Unrecorded::Ended,
        false => Unrecorded::Unseen,
    })
}

/// The part of a wait in which a helper's activity explains it.
#[derive(Debug, Clone, Copy)]
enum Helps {
    /// Up to this time.
    Until(u64),
    /// From this time on.
    From(u64),
}

/// A thread that runs a deferred softirq wakes another thread on behalf of this cause: the handler that raised the
/// softirq, or else the softirq's usual cause. `None` if the thread runs no such softirq, or if it delivers packets
/// that may be its own, since it does not only run softirqs.
fn left_to(context: Option<Context>, is_of_softirqs: bool) -> Option<Leaf> {
    let Some(Context::Softirq {
        vector,
        own: true,
        by,
    }) = context
    else {
        return None;
    };
    match (by, vector) {
        (Raiser::Device(Handler(number, name)), _) => Some(Leaf::Irq(number, name)),
        (Raiser::Thread, Vector::NET_TX | Vector::NET_RX) => None,
        (_, Vector::NET_TX | Vector::NET_RX) if !is_of_softirqs => None,
        _ => context.map(Leaf::from),
    }
}

/// Whether the leaf stands for a softirq that runs no timers.
fn is_of_softirq(leaf: Leaf) -> bool {
    matches!(
        leaf,
        Leaf::Softirq(..) | Leaf::Network(_) | Leaf::Packet(_) | Leaf::Disk(None)
    )
}

/// The system call in which the thread slept.
fn call_of(interval: &Interval) -> Option<Name> {
    match interval.state {
        State::Blocked(_, call) => call,
        _ => None,
    }
}
