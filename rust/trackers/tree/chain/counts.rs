// SPDX-License-Identifier: GPL-2.0

//! The small numbers of a chain, in one word: its origin, its state, counts of events.

use super::PLACES;

/// The kinds of origins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    None = 0,
    Irq = 1,
    Vector = 2,
    Timer = 3,
    Work = 4,
    Wheel = 5,
}

impl Origin {
    fn of(number: u64) -> Self {
        match number {
            1 => Origin::Irq,
            2 => Origin::Vector,
            3 => Origin::Timer,
            4 => Origin::Work,
            5 => Origin::Wheel,
            _ => Origin::None,
        }
    }
}

/// The state of the task of a tip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The task was woken, and has not been switched in.
    Waking = 0,
    /// The task runs, or is preempted or throttled.
    Running = 1,
    /// The task waits for a lock, or sleeps in the middle of its work. Only in copies: see
    /// notes.rs.
    Waiting = 2,
    /// The work that the task has started is not done.
    Working = 3,
    /// No task: a work item that no worker has started yet, or a call on another CPU.
    Queued = 4,
    /// The task was woken when it had set a sleeping state, but was still awake: it may run on
    /// without having slept (doubts.rs).
    Doubted = 5,
    /// The task has left its system call, and may be stopped before it is in user space.
    Leaving = 6,
}

/// The bits of `target`.
const TARGET: u64 = 1;
const BEGUN: u64 = 2;
const REFUSED: u64 = 4;
/// Parity of the number of times that the task of a tip in doubt had left its CPU voluntarily when
/// it was woken.
const ODD: u64 = 8;

/// Small numbers of a chain, in one word.
///
/// ```text
///   63   60 59   56 55    52 51    48 47   40 39        24 23    8 7       0
///  | end   | target| origin | state  | merged | preempted | more  | places |
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counts(pub(crate) u64);

impl Counts {
    const fn field<const AT: u32, const BITS: u32>(self) -> u64 {
        self.0 >> AT & ((1 << BITS) - 1)
    }

    fn set<const AT: u32, const BITS: u32>(&mut self, value: u64) {
        let mask = (1u64 << BITS) - 1;
        self.0 = self.0 & !(mask << AT) | value.min(mask) << AT;
    }

    /// Returns the counts of a new chain.
    #[inline(always)]
    pub(super) fn of(origin: Origin, places: usize) -> Self {
        let mut counts = Self(0);
        counts.set::<52, 4>(origin as u64);
        counts.set_places(places);
        counts
    }

    /// Returns the number of places in use.
    #[inline(always)]
    pub(crate) fn places(self) -> usize {
        (self.field::<0, 8>() as usize).min(PLACES)
    }

    /// Returns the first free place, if at least `places` are free.
    #[inline(always)]
    pub(super) fn free_place(self, places: usize) -> Option<usize> {
        let used = self.field::<0, 8>() as usize;
        (used + places <= PLACES).then_some(used)
    }

    /// Marks this many more places as used.
    #[inline(always)]
    pub(super) fn add_places(&mut self, places: usize) {
        self.0 = self.0.wrapping_add(places as u64);
    }

    /// Returns the number of steps that were left out, at most 65535.
    pub(crate) fn more(self) -> u64 {
        self.field::<8, 16>()
    }

    /// Returns the number of times that the task of this chain was preempted, at most 65535.
    pub(crate) fn preempted(self) -> u64 {
        self.field::<24, 16>()
    }

    /// Returns the number of further causes that came while the wakeup was in flight, at most
    /// 255.
    pub(crate) fn merged(self) -> u64 {
        self.field::<40, 8>()
    }

    pub(crate) fn state(self) -> State {
        match self.field::<48, 4>() {
            1 => State::Running,
            2 => State::Waiting,
            3 => State::Working,
            4 => State::Queued,
            5 => State::Doubted,
            6 => State::Leaving,
            _ => State::Waking,
        }
    }

    /// Returns the kind of origin of the chain.
    pub(crate) fn origin(self) -> Origin {
        Origin::of(self.field::<52, 4>())
    }

    /// Whether the task is the measured target, not a hop.
    pub(crate) fn is_target(self) -> bool {
        self.field::<56, 4>() & TARGET != 0
    }

    /// Whether the target has started a unit of work, which has a chain of its own.
    pub(crate) fn has_begun(self) -> bool {
        self.field::<56, 4>() & BEGUN != 0
    }

    /// Whether the chain begins with a timer that the filter refuses.
    pub(crate) fn is_refused(self) -> bool {
        self.field::<56, 4>() & REFUSED != 0
    }

    /// Returns how the chain ended, as noted by the tracker; 0 at first.
    pub(crate) fn end(self) -> u64 {
        self.field::<60, 4>()
    }

    pub(super) fn set_places(&mut self, places: usize) {
        self.set::<0, 8>(places as u64);
    }

    pub(super) fn add_more(&mut self, steps: u64) {
        self.set::<8, 16>(self.more() + steps);
    }

    pub(super) fn set_preempted(&mut self, times: u64) {
        self.set::<24, 16>(times);
    }

    pub(crate) fn add_preempted(&mut self) {
        if self.preempted() < u64::from(u16::MAX) {
            self.0 = self.0.wrapping_add(1 << 24);
        }
    }

    pub(crate) fn add_merged(&mut self, times: u64) {
        self.set::<40, 8>(self.merged().saturating_add(times));
    }

    pub(crate) fn set_state(&mut self, state: State) {
        self.set::<48, 4>(state as u64);
    }

    /// Notes that the task was woken, perhaps while awake, after it had left its CPU `leaves`
    /// times.
    pub(crate) fn set_doubt(&mut self, leaves: u64) {
        self.set_state(State::Doubted);
        let others = self.field::<56, 4>() & !ODD;
        self.set::<56, 4>(others | if leaves & 1 == 0 { 0 } else { ODD });
    }

    /// Notes that the waking ended a sleep of the task.
    pub(crate) fn end_doubt(&mut self) {
        self.set_state(State::Waking);
        self.set::<56, 4>(self.field::<56, 4>() & !ODD);
    }

    /// Whether the task of a tip in doubt has left its CPU since it was woken; it can have left at
    /// most once.
    pub(crate) fn has_left(self, leaves: u64) -> bool {
        (self.field::<56, 4>() & ODD != 0) != (leaves & 1 != 0)
    }

    /// Sets whether the task is the target. Clears the other marks, except the mark of a refused
    /// timer.
    pub(crate) fn set_target(&mut self, target: bool) {
        let refused = self.field::<56, 4>() & REFUSED;
        self.set::<56, 4>(refused | if target { TARGET } else { 0 });
    }

    /// Sets whether the chain begins with a timer that the filter refuses.
    pub(crate) fn set_refused(&mut self, refused: bool) {
        let others = self.field::<56, 4>() & !REFUSED;
        self.set::<56, 4>(others | if refused { REFUSED } else { 0 });
    }

    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.set::<52, 4>(origin as u64);
    }

    pub(crate) fn set_begun(&mut self) {
        self.set::<56, 4>(self.field::<56, 4>() | BEGUN);
    }

    pub(crate) fn set_end(&mut self, end: u64) {
        self.set::<60, 4>(end);
    }
}
