// SPDX-License-Identifier: GPL-2.0

//! Exact counters: one set a CPU, written only by that CPU, added up by the reader.
//!
//! The sums that hold whenever no probe is running:
//!
//! ```text
//!   attempts = started + full + filtered + off
//!   started  = ended + pending + replaced + cleared + gone
//!   ended    = negative + the sum of the histogram
//! ```
//!
//! Each of these is counted where it happens, none is computed from the others (`pending` is
//! counted in the pool), so that the sums mean something. Any context.

use crate::{
    histogram::{self, BUCKETS},
    platform::Platform,
    sys::{
        atomic::{Atomic, Relaxed},
        memory::PerCpu,
    },
};
use core::array;
use kernel::prelude::*;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What is counted.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Counter {
            $($(#[$doc])* $variant,)*
        }

        impl Counter {
            /// All counters, in the order of the `stats` file.
            pub(crate) const ALL: &'static [Counter] = &[$(Counter::$variant,)*];

            /// The name in the `stats` file.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Counter::$variant => $name,)*
                }
            }
        }
    };
}

counters! {
    /// Begins that were seen, whatever became of them.
    Attempts = "attempts",
    /// Begins that became a tracked event.
    Started = "started",
    /// Begins lost because the pool was full.
    Full = "full",
    /// Begins that the instance's filter refused.
    Filtered = "filtered",
    /// Begins seen while the instance was off.
    Off = "off",
    /// Events that met their end.
    Ended = "ended",
    /// Events dropped because the same key began again, which cannot be: their end was not seen.
    Replaced = "replaced",
    /// Events dropped when the instance was disabled.
    Cleared = "cleared",
    /// Events whose operation ceased to exist without an end (merged away, owner exited).
    Gone = "gone",
    /// Ends without a begin: begun before the instance was on, or lost.
    Unmatched = "unmatched",
    /// Ends that lay before their begin; counted in `ended`, not in the histogram.
    Negative = "negative",
    /// Events whose end had not come after the timeout.
    TimedOut = "timed_out",
    /// Ends of events that had timed out.
    Late = "late",
    /// Alerts raised.
    Alerts = "alerts",
    /// Alerts that found their place in the ring taken by a writer a whole lap behind.
    AlertsLost = "alerts_lost",
}

/// How many counters a tracker may have of its own.
pub(crate) const EXTRA: usize = 8;

/// What one CPU has counted, on that CPU's node.
#[repr(align(64))]
struct Local {
    counters: [Atomic<u64>; Counter::ALL.len()],
    extra: [Atomic<u64>; EXTRA],
    sum: Atomic<u64>,
    min: Atomic<u64>,
    max: Atomic<u64>,
    histogram: [Atomic<u64>; BUCKETS],
}

/// The counters of one instance.
pub(crate) struct Stats {
    cpus: PerCpu<Local>,
}

/// Smallest, mean and largest delay in nanoseconds; all 0 when nothing has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Summary {
    pub(crate) min: u64,
    pub(crate) mean: u64,
    pub(crate) max: u64,
}

impl Stats {
    /// Makes counters at zero. Sleeps; fails with `ENOMEM`.
    pub(crate) fn new<P: Platform>() -> Result<Self> {
        let cpus = PerCpu::try_new::<P>(|_| {
            Ok(Local {
                counters: array::from_fn(|_| Atomic::new(0)),
                extra: array::from_fn(|_| Atomic::new(0)),
                sum: Atomic::new(0),
                min: Atomic::new(u64::MAX),
                max: Atomic::new(0),
                histogram: array::from_fn(|_| Atomic::new(0)),
            })
        })?;
        Ok(Self { cpus })
    }

    /// The counters of the CPU that the guard holds, for more than one use.
    #[inline(always)]
    pub(crate) fn here<'a, P: Platform>(&'a self, guard: &'a P::Guard) -> Here<'a, P> {
        let local = self.cpus.this::<P>(guard);
        Here { local, guard }
    }

    /// Counts one.
    #[inline(always)]
    pub(crate) fn count<P: Platform>(&self, guard: &P::Guard, counter: Counter) {
        self.here::<P>(guard).count(counter);
    }

    /// Counts one in a counter of the tracker's own, below [`EXTRA`].
    #[inline]
    pub(crate) fn count_extra<P: Platform>(&self, guard: &P::Guard, which: usize) {
        if let Some(counter) = self.cpus.this::<P>(guard).extra.get(which) {
            P::add_local(guard, counter, 1);
        }
    }

    /// The total of a counter.
    pub(crate) fn total(&self, counter: Counter) -> u64 {
        self.sum_of(|local| &local.counters[counter as usize])
    }

    /// The total of a counter of the tracker's own.
    pub(crate) fn total_extra(&self, which: usize) -> u64 {
        self.sum_of(|local| &local.extra[which])
    }

    /// How many delays fell into a histogram bucket.
    pub(crate) fn bucket(&self, bucket: usize) -> u64 {
        self.sum_of(|local| &local.histogram[bucket])
    }

    /// Smallest, mean and largest delay so far.
    pub(crate) fn summary(&self) -> Summary {
        let count: u64 = (0..BUCKETS).map(|bucket| self.bucket(bucket)).sum();
        if count == 0 {
            return Summary {
                min: 0,
                mean: 0,
                max: 0,
            };
        }
        let (mut min, mut max) = (u64::MAX, 0);
        for local in self.cpus.iter() {
            min = min.min(local.min.load(Relaxed));
            max = max.max(local.max.load(Relaxed));
        }
        Summary {
            min,
            mean: self.sum_of(|local| &local.sum) / count,
            max,
        }
    }

    fn sum_of<'a>(&'a self, field: impl Fn(&'a Local) -> &'a Atomic<u64>) -> u64 {
        // Relaxed: each is exact; together they are a picture of about now.
        let values = self.cpus.iter().map(|local| field(local).load(Relaxed));
        values.fold(0, u64::wrapping_add)
    }
}

/// The counters of one CPU, while a guard holds it.
pub(crate) struct Here<'a, P: Platform> {
    local: &'a Local,
    guard: &'a P::Guard,
}

impl<P: Platform> Here<'_, P> {
    /// Counts one.
    #[inline(always)]
    pub(crate) fn count(&self, counter: Counter) {
        P::count_local(self.guard, &self.local.counters[counter as usize]);
    }

    /// Enters a delay in the histogram, the sum and the extremes.
    #[inline(always)]
    pub(crate) fn record(&self, delay: u64) {
        let local = self.local;
        P::count_local(self.guard, &local.histogram[histogram::bucket_of(delay)]);
        P::add_local(self.guard, &local.sum, delay);
        // Relaxed: only this CPU writes them.
        if delay < local.min.load(Relaxed) {
            improve(&local.min, delay, |new, old| new < old);
        }
        if delay > local.max.load(Relaxed) {
            improve(&local.max, delay, |new, old| new > old);
        }
    }
}

/// Replaces an extreme, against interrupts of this CPU that do the same.
#[cold]
#[inline(never)]
fn improve(extreme: &Atomic<u64>, value: u64, better: impl Fn(u64, u64) -> bool) {
    // Relaxed: nothing else depends on it.
    let mut old = extreme.load(Relaxed);
    while better(value, old) {
        match extreme.cmpxchg(old, value, Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}
