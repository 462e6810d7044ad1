// SPDX-License-Identifier: GPL-2.0

//! A timer whose function is running, and the chain to the activity of the function.
//!
//! ```text
//!   due             interrupt or softirq       function called      its activity
//!    |-----------------------|-----------------------|------------------->
//!    start with `from=softexpires`; `from=expires` starts at the end of the slack
//! ```
//!
//! See the head of percpu.rs.

use super::{
    super::chain::{Kind, Origin, Step, Words},
    handlers::First,
    word, Kept, Word,
};
use crate::sys::{
    atomic::Relaxed,
    timer::Timer, //
};

/// The moment from which the delay of a timer counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    Due,
    Latest,
    /// From the interrupt that calls its function.
    Vector,
    /// The timer is no origin: the chain begins with its interrupt.
    NoOrigin,
}

/// The moment from which the delay of a timer counts, and whether the filter refuses the timer.
#[derive(Clone, Copy)]
pub(crate) struct Timers {
    pub(crate) since: Since,
    pub(crate) is_refused: bool,
}

/// Decides which [`Timers`] apply to a timer.
pub(crate) trait Choice {
    /// Whether all timers with exact times are wanted, from their due times on. Inline, without
    /// a call.
    fn is_plain(&self) -> bool;

    fn timers(&self, timing: Timing, function: u64) -> Timers;
}

/// The words of a timer whose function is running.
pub(super) struct Expiring {
    due: Word,
    latest: Word,
    /// 0 if no function is running.
    pub(super) function: Word,
    called: Word,
}

/// Precision of the time when a timer was due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// To the nanosecond.
    Exact = 0,
    /// To the tick.
    Tick = 1,
    /// The timer may be arbitrarily late.
    Any = 2,
}

impl Timing {
    pub(super) fn of(word: u64) -> Self {
        match word {
            0 => Timing::Exact,
            1 => Timing::Tick,
            _ => Timing::Any,
        }
    }
}

impl Expiring {
    pub(super) fn new() -> Self {
        Self {
            due: word(),
            latest: word(),
            function: word(),
            called: word(),
        }
    }

    /// Notes the call of a timer's function. `since` is when the timer's clock was last set, or 0:
    /// an earlier due time counts as `since`.
    #[inline(always)]
    pub(super) fn enter(&self, timer: &Timer, since: u64, now: u64) {
        self.due.store(timer.due.max(since), Relaxed);
        self.latest.store(timer.latest.max(since), Relaxed);
        self.called.store(now, Relaxed);
        self.function.store(timer.function, Relaxed);
    }

    #[inline(always)]
    pub(super) fn leave(&self) {
        self.function.store(0, Relaxed);
    }

    /// Returns the known facts about the timer with this function.
    #[inline(always)]
    pub(super) fn expired(&self, function: u64) -> Expired {
        Expired {
            due: self.due.load(Relaxed),
            latest: self.latest.load(Relaxed),
            function,
            called: self.called.load(Relaxed),
            timing: Timing::Exact,
        }
    }
}

/// The chain on which a timer is called.
pub(super) enum Base<'a> {
    /// The chain is not known.
    Unknown,
    /// The chain is this interrupt, without another step.
    First(First<'a>),
    /// A chain that began at this time.
    Chain(u64, Kept<'a>),
}

impl Base<'_> {
    /// Makes the chain. Returns its start.
    #[inline(always)]
    fn begin(self, chain: &mut impl Words) -> Option<u64> {
        match self {
            Base::Unknown => None,
            Base::First(first) => Some(first.begin(chain)),
            Base::Chain(start, from) => {
                chain.copy_from(&from);
                Some(start)
            }
        }
    }
}

/// A timer whose function is running.
#[derive(Clone, Copy)]
pub(super) struct Expired {
    pub(super) due: u64,
    pub(super) latest: u64,
    pub(super) function: u64,
    pub(super) called: u64,
    pub(super) timing: Timing,
}

impl Expired {
    /// Makes the chain to the function of a timer whose delay counts from its due time; the
    /// function is called on the chain `base`. Returns the start of the new chain.
    #[inline(always)]
    pub(super) fn due_on(self, chain: &mut impl Words, base: (u64, &Kept<'_>), cpu: u32) -> u64 {
        let step = |kind| Step {
            kind,
            cpu,
            subject: self.function,
        };
        // The clock of the interrupt may be slightly ahead of ours.
        let start = self.due.min(self.called);
        let (due, expire) = (step(Kind::Due), step(Kind::Expire));
        chain.begin_around(Origin::Timer, (start, due), base, (self.called, expire));
        start
    }

    /// Makes the chain to the function of the timer. Returns its start.
    #[inline(always)]
    pub(super) fn chain(
        self,
        chain: &mut impl Words,
        base: Base<'_>,
        cpu: u32,
        timers: Timers,
    ) -> Option<u64> {
        let called = self.called;
        let step = |kind| Step {
            kind,
            cpu,
            subject: self.function,
        };
        let (origin, kind) = match self.timing {
            Timing::Exact => (Origin::Timer, Kind::Due),
            _ => (Origin::Wheel, Kind::Wheel),
        };
        let start = match timers.since {
            Since::NoOrigin => {
                let start = base.begin(chain)?;
                chain.push(called, step(Kind::Expire));
                return Some(start);
            }
            Since::Vector => {
                let start = if let Some(start) = base.begin(chain) {
                    chain.push(called, step(Kind::Expire));
                    start
                } else {
                    // No known activity calls the function, so no earlier step is known.
                    chain.begin_with(origin, [(called, step(Kind::Expire))]);
                    called
                };
                let mut counts = chain.counts();
                counts.set_origin(origin);
                // The interrupt may have called another timer, whose softirq calls this one.
                counts.set_refused(timers.is_refused);
                chain.set_counts(counts);
                return Some(start);
            }
            Since::Due => self.due,
            Since::Latest => self.latest,
        };
        // The clock of the interrupt may be slightly ahead of ours.
        let start = start.min(called);
        let (due, expire) = ((start, step(kind)), (called, step(Kind::Expire)));
        match base {
            // Usually a local interrupt, and nothing else.
            Base::First(First { at, step, .. }) if at >= start => {
                chain.begin_with(origin, [due, (at, step), expire]);
            }
            Base::First(_) | Base::Unknown => chain.begin_with(origin, [due, expire]),
            // Steps before the timer was due are left out.
            Base::Chain(begin, before) => chain.begin_around(origin, due, (begin, &before), expire),
        }
        timers.mark(chain);
        Some(start)
    }
}

impl Timers {
    /// The choice with default parameters.
    pub(crate) const PLAIN: Self = Self {
        since: Since::Due,
        is_refused: false,
    };

    /// Marks the chain of a timer as refused, if the filter refuses the timer.
    #[inline(always)]
    fn mark(self, chain: &mut impl Words) {
        if self.is_refused {
            let mut counts = chain.counts();
            counts.set_refused(true);
            chain.set_counts(counts);
        }
    }
}
