// SPDX-License-Identifier: GPL-2.0

//! Exact counters: one set for each CPU, written only by that CPU, added up by the reader.
//!
//! The sums that hold whenever no probe is running:
//!
//! ```text
//!   attempts = started + full + filtered + off + crowded
//!   started  = ended + pending + replaced + cleared + gone
//!   ended    = negative + before_start_ended + the sum of the histogram
//! ```
//!
//! Each of these is counted where it happens, and none is computed from the others (`pending` is
//! counted in the pool), so that the sums are a real check. Any context.

use crate::{
    engine::{
        histogram::{self, BUCKETS},
        platform::Platform,
    },
    sys::{
        atomic::{Atomic, Relaxed},
        memory::PerCpu,
    },
};
use kernel::prelude::*;

/// The position of a counter, for code in which it is known at compile time.
#[derive(Clone, Copy)]
pub(crate) struct At<const POSITION: usize>;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident $position:ident = $name:literal,)*) => {
        /// A counter, by what it counts.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Counter {
            $($(#[$doc])* $variant,)*
        }

        impl Counter {
            /// All counters, in the order of the `stats` file; `Crowded` and what follows it come last
            /// there, after those of the kind.
            pub(crate) const ALL: &'static [Counter] = &[$(Counter::$variant,)*];

            $($(#[$doc])* pub(crate) const $position: At<{ Counter::$variant as usize }> = At;)*

            /// Returns the name in the `stats` file.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Counter::$variant => $name,)*
                }
            }
        }
    };
}

counters! {
    /// Starts that were seen, with any result.
    Attempts ATTEMPTS = "attempts",
    /// Starts that became a tracked event.
    Started STARTED = "started",
    /// Starts lost because the pool was full.
    Full FULL = "full",
    /// Starts that the instance's filter refused.
    Filtered FILTERED = "filtered",
    /// Starts seen while the instance was off.
    Off OFF = "off",
    /// Events whose end was seen.
    Ended ENDED = "ended",
    /// Events dropped because the same key started again before their end, which was therefore
    /// missed.
    Replaced REPLACED = "replaced",
    /// Events dropped when the instance was disabled.
    Cleared CLEARED = "cleared",
    /// Events whose operation ceased to exist without an end (merged away, owner exited).
    Gone GONE = "gone",
    /// Ends without a start: started before the instance was on, or lost.
    Unmatched UNMATCHED = "unmatched",
    /// Ends before their start; counted in `ended`, not in the histogram.
    Negative NEGATIVE = "negative",
    /// Events whose end had not come after the timeout.
    TimedOut TIMED_OUT = "timed_out",
    /// Ends of events that had timed out.
    Late LATE = "late",
    /// Alerts raised.
    Alerts ALERTS = "alerts",
    /// Alerts whose slot in the ring was held by a writer a whole lap behind.
    AlertsLost ALERTS_LOST = "alerts_lost",
    /// Starts lost because too many events of their key were live.
    Crowded CROWDED = "crowded",
    /// Events of operations that were in flight when the instance started; also in `started`.
    BeforeStart BEFORE_START = "before_start",
    /// Ends of operations that were in flight at the start; in `ended`, not in the histogram.
    BeforeStartEnded BEFORE_START_ENDED = "before_start_ended",
    /// Alerts that were suppressed, as there were too many in one second.
    AlertsSuppressed ALERTS_SUPPRESSED = "alerts_suppressed",
}

/// Maximum number of a tracker's own counters.
pub(crate) const EXTRA: usize = 8;

// The counters of one CPU are one array of words, since a single instruction increments a word of
// an array at a known position.
const SUM: usize = Counter::ALL.len();
const MIN: usize = SUM + 1;
const MAX: usize = MIN + 1;
const FIRST_EXTRA: usize = MAX + 1;
const FIRST_BUCKET: usize = FIRST_EXTRA + EXTRA;
const WORDS: usize = FIRST_BUCKET + BUCKETS;

/// The counters of one CPU.
type Local = [Atomic<u64>; WORDS];

/// The counters of one instance.
pub(crate) struct Stats {
    cpus: PerCpu<Local>,
}

/// Smallest, mean and largest delay in nanoseconds, and their sum in microseconds; all 0 when nothing has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Summary {
    pub(crate) min: u64,
    pub(crate) mean: u64,
    pub(crate) max: u64,
    pub(crate) sum_us: u64,
}

impl Stats {
    /// Creates counters at zero. Sleeps; fails with `ENOMEM`.
    pub(crate) fn new<P: Platform>() -> Result<Self> {
        let cpus = PerCpu::<Local>::zeroed::<P>()?;
        for local in cpus.iter() {
            // Relaxed: nothing else has access to them yet.
            local[MIN].store(u64::MAX, Relaxed);
        }
        Ok(Self { cpus })
    }

    /// Returns the counters of the CPU that the guard holds, for repeated use.
    #[inline(always)]
    pub(crate) fn here<'a, P: Platform>(&'a self, guard: &'a P::Guard) -> Here<'a, P> {
        let local = self.cpus.this::<P>(guard);
        Here { local, guard }
    }

    /// Returns the total of a counter.
    pub(crate) fn total(&self, counter: Counter) -> u64 {
        self.sum_of(counter as usize)
    }

    /// Returns the total of one of the tracker's own counters.
    pub(crate) fn total_extra(&self, which: usize) -> u64 {
        self.sum_of(FIRST_EXTRA + which)
    }

    /// Returns the number of delays in a histogram bucket.
    pub(crate) fn bucket(&self, bucket: usize) -> u64 {
        self.sum_of(FIRST_BUCKET + bucket)
    }

    /// Returns the smallest, mean and largest delay so far, and their sum.
    pub(crate) fn summary(&self) -> Summary {
        let count: u64 = (0..BUCKETS).map(|bucket| self.bucket(bucket)).sum();
        if count == 0 {
            return Summary {
                min: 0,
                mean: 0,
                max: 0,
                sum_us: 0,
            };
        }
        let (mut min, mut max) = (u64::MAX, 0);
        for local in self.cpus.iter() {
            min = min.min(local[MIN].load(Relaxed));
            max = max.max(local[MAX].load(Relaxed));
        }
        let sum = self.sum();
        Summary {
            min,
            mean: quotient(sum, count),
            max,
            sum_us: quotient(sum, 1000),
        }
    }

    /// Returns the sum of all delays.
    ///
    /// The word that each CPU adds to wraps: 65,536 sleepers add 65 s in a second, which is 2^64 ns
    /// after three days. This word is the lower half. The upper half follows from the histogram,
    /// whose bounds for the sum are at most an eighth apart. So the result is exact up to 2^67 ns.
    /// Above that it is the number with this lower half that is closest to the middle of the
    /// bounds: at most a sixteenth, plus half of 2^64, from the sum.
    fn sum(&self) -> u128 {
        let (mut least, mut most) = (0, 0);
        for bucket in 0..BUCKETS {
            let count = u128::from(self.bucket(bucket));
            let (low, above) = histogram::bounds(bucket);
            least += count * u128::from(low);
            most += count * u128::from(above - 1);
        }
        with_lower_half(self.sum_of(SUM), least + (most - least) / 2)
    }

    fn sum_of(&self, at: usize) -> u64 {
        // Relaxed: each is exact; together they are a snapshot of about now.
        let values = self.cpus.iter().map(|local| local[at].load(Relaxed));
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
    pub(crate) fn count<const COUNTER: usize>(&self, _: At<COUNTER>) {
        P::count_word::<COUNTER, WORDS>(self.guard, self.local);
    }

    /// Increments one of the tracker's own counters, below [`EXTRA`].
    #[inline]
    pub(crate) fn count_extra(&self, which: usize) {
        if which < EXTRA {
            P::count_nth::<FIRST_EXTRA, WORDS>(self.guard, self.local, which);
        }
    }

    /// Adds to one of the tracker's own counters, below [`EXTRA`].
    pub(crate) fn add_extra(&self, which: usize, n: u64) {
        if which < EXTRA {
            P::add_local(self.guard, &self.local[FIRST_EXTRA + which], n);
        }
    }

    /// Returns a number that changes with each start and each end of an event, of whatever kind.
    pub(crate) fn changes(&self) -> u64 {
        let counted = [
            Counter::Started,
            Counter::Ended,
            Counter::Replaced,
            Counter::Cleared,
            Counter::Gone,
        ];
        // Relaxed: this CPU writes them. The sum only wraps.
        let values = counted.map(|counter| self.local[counter as usize].load(Relaxed));
        values.into_iter().fold(0, u64::wrapping_add)
    }

    /// Adds a delay to the histogram, the sum and the extremes.
    #[inline(always)]
    pub(crate) fn record(&self, delay: u64) {
        let words = self.local;
        P::count_nth::<FIRST_BUCKET, WORDS>(self.guard, words, histogram::bucket_of(delay));
        P::add_word::<SUM, WORDS>(self.guard, words, delay);
        // Relaxed: only this CPU writes them.
        if delay < words[MIN].load(Relaxed) {
            improve(&words[MIN], delay, |new, old| new < old);
        }
        if delay > words[MAX].load(Relaxed) {
            improve(&words[MAX], delay, |new, old| new > old);
        }
    }
}

/// Returns the number closest to `near` with this lower half.
fn with_lower_half(half: u64, near: u128) -> u128 {
    let difference = half.wrapping_sub(near as u64) as i64;
    let found = near.checked_add_signed(difference.into());
    found.unwrap_or(half.into())
}

/// Returns the quotient, which must fit in 64 bits. By hand: kernels have no 128-bit division.
fn quotient(sum: u128, by: u64) -> u64 {
    let (mut rest, low) = ((sum >> 64) as u64, sum as u64);
    if rest >= by {
        return u64::MAX;
    }
    let mut quotient = 0;
    for bit in (0..u64::BITS).rev() {
        let carry = rest >> 63;
        rest = rest << 1 | (low >> bit & 1);
        if carry != 0 || rest >= by {
            rest = rest.wrapping_sub(by);
            quotient |= 1 << bit;
        }
    }
    quotient
}

/// Replaces an extreme, safe against interrupts of this CPU that do the same.
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
