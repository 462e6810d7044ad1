// SPDX-License-Identifier: GPL-2.0

//! Exact counters: one set for each CPU, written only by that CPU, added up by the reader.
//!
//! These sums hold whenever no probe is running:
//!
//! ```text
//!   attempts = started + full + filtered + off + crowded
//!   started  = ended + pending + replaced + cleared + gone
//!   ended    = negative + before_start_ended + the sum of the histogram
//! ```
//!
//! If delays are counted by label (labels.rs), each delay is either in the row of its label or, if
//! the label has no row, in the unlabelled delays here. The histogram and the summary add up both.
//!
//! Each event is counted where it happens, and no counter is computed from others (`pending` is
//! counted in the pool), so that the sums are a real check. Any context.

use crate::{
    engine::{
        delays::{self, Delays},
        labels::Labels,
        platform::Platform,
    },
    sys::{
        atomic::{Atomic, Relaxed},
        memory::PerCpu,
    },
};
pub(crate) use delays::Summary;
use kernel::prelude::*;

/// The position of a counter, for code in which it is known at compile time.
#[derive(Clone, Copy)]
pub(crate) struct At<const POSITION: usize>;

macro_rules! counters {
    ($($(#[$doc:meta])* $variant:ident $position:ident = $name:literal,)*) => {
        /// A counter of events.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Counter {
            $($(#[$doc])* $variant,)*
        }

        impl Counter {
            /// All counters, in the order of the `stats` file, except that `Crowded` and the
            /// counters after it are further down in the file (instance.rs).
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
    /// Events dropped because their key started again before their end was seen: the end was
    /// missed.
    Replaced REPLACED = "replaced",
    /// Events dropped when the instance was disabled or removed, or when its module cleared it.
    Cleared CLEARED = "cleared",
    /// Events whose operation ceased to exist without an end (merged away, owner exited).
    Gone GONE = "gone",
    /// Ends of operations without a live event: the start came before the instance was on, or was
    /// lost, or the event was dropped.
    Unmatched UNMATCHED = "unmatched",
    /// Ends before their start; counted in `ended`, not in the histogram.
    Negative NEGATIVE = "negative",
    /// Events that had not ended by their timeout.
    TimedOut TIMED_OUT = "timed_out",
    /// Ends of events that had timed out.
    Late LATE = "late",
    /// Alerts raised.
    Alerts ALERTS = "alerts",
    /// Alerts lost because another alert, a whole lap behind or ahead, had their slot in the ring.
    AlertsLost ALERTS_LOST = "alerts_lost",
    /// Starts lost because too many events of their key were live.
    Crowded CROWDED = "crowded",
    /// Events of operations that were in flight when the instance started; also in `started`.
    BeforeStart BEFORE_START = "before_start",
    /// Ends of operations that were in flight when the instance started; in `ended`, not in the
    /// histogram.
    BeforeStartEnded BEFORE_START_ENDED = "before_start_ended",
    /// Alerts that were suppressed because there were more than `max_alerts` in one second.
    AlertsSuppressed ALERTS_SUPPRESSED = "alerts_suppressed",
}

/// Maximum number of a tracker's own counters.
pub(crate) const EXTRA: usize = 8;

// The counters of one CPU are one array of words, since a single instruction increments a word of
// an array at a known position. The delays come last.
const FIRST_EXTRA: usize = Counter::ALL.len();
const DELAYS: usize = FIRST_EXTRA + EXTRA;
const BUCKETS_AT: usize = DELAYS + delays::BUCKETS_AT;
const WORDS: usize = DELAYS + delays::WORDS;

/// The counters of one CPU.
type Local = [Atomic<u64>; WORDS];

/// The counters of one instance.
pub(crate) struct Stats {
    cpus: PerCpu<Local>,
    labels: Option<Labels>,
}

impl Stats {
    /// Creates counters at zero. May sleep; fails with `ENOMEM`.
    pub(crate) fn new<P: Platform>() -> Result<Self> {
        let cpus = PerCpu::<Local>::zeroed::<P>()?;
        for local in cpus.iter() {
            delays::clear(&local[DELAYS..]);
        }
        Ok(Self { cpus, labels: None })
    }

    /// Counts delays by label from now on.
    pub(super) fn set_labels(&mut self, labels: Labels) {
        self.labels = Some(labels);
    }

    /// Returns the labels, if delays are counted by label.
    #[inline(always)]
    pub(crate) fn labels(&self) -> Option<&Labels> {
        self.labels.as_ref()
    }

    /// Returns the delays that are not in the row of a label: all delays if there are no labels.
    pub(crate) fn unlabelled(&self) -> Unlabelled<'_> {
        Unlabelled(self)
    }

    /// Returns the counters of the CPU that the guard holds, for repeated use.
    #[inline(always)]
    pub(crate) fn here<'a, P: Platform>(&'a self, guard: &'a P::Guard) -> Here<'a, P> {
        let local = self.cpus.this::<P>(guard);
        Here { local, guard }
    }

    /// Returns the total of a counter.
    pub(crate) fn total(&self, counter: Counter) -> u64 {
        self.total_at(counter as usize)
    }

    /// Returns the total of one of the tracker's own counters.
    pub(crate) fn total_extra(&self, which: usize) -> u64 {
        self.total_at(FIRST_EXTRA + which)
    }

    /// Returns the number of delays in a histogram bucket.
    pub(crate) fn bucket(&self, bucket: usize) -> u64 {
        Delays::bucket(self, bucket)
    }

    /// Returns the smallest, mean and largest delay so far, and the sum of all delays.
    pub(crate) fn summary(&self) -> Summary {
        Delays::summary(self)
    }

    fn total_at(&self, at: usize) -> u64 {
        // Relaxed: each is exact; together they are a snapshot of about now.
        let values = self.cpus.iter().map(|local| local[at].load(Relaxed));
        values.fold(0, u64::wrapping_add)
    }

    fn base(&self) -> impl Iterator<Item = &[Atomic<u64>]> {
        self.cpus.iter().map(|local| &local[DELAYS..])
    }
}

/// The counters of one CPU, while a guard holds it.
pub(crate) struct Here<'a, P: Platform> {
    local: &'a Local,
    guard: &'a P::Guard,
}

impl<P: Platform> Here<'_, P> {
    /// Increments a counter.
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

    /// Returns a number that changes with each start and each end of an event, of any kind, on this
    /// CPU.
    pub(crate) fn changes(&self) -> u64 {
        let counted = [
            Counter::Started,
            Counter::Ended,
            Counter::Replaced,
            Counter::Cleared,
            Counter::Gone,
        ];
        // Relaxed: only this CPU writes them. A sum that wraps still changes.
        let values = counted.map(|counter| self.local[counter as usize].load(Relaxed));
        values.into_iter().fold(0, u64::wrapping_add)
    }

    /// Adds a delay to the histogram, the sum and the extremes.
    #[inline(always)]
    pub(crate) fn record(&self, delay: u64) {
        delays::record::<P, DELAYS, BUCKETS_AT, WORDS>(self.guard, self.local, delay);
    }
}

/// All delays of an instance.
impl Delays for Stats {
    fn parts(&self) -> impl Iterator<Item = &[Atomic<u64>]> {
        let labels = self.labels.iter();
        // All other rows are empty.
        let used = labels.flat_map(|labels| labels.rows().take(labels.used()));
        Iterator::chain(self.base(), used.flat_map(Delays::parts))
    }
}

/// The delays that are not in the row of a label, see [`Stats::unlabelled`].
pub(crate) struct Unlabelled<'a>(&'a Stats);

impl Delays for Unlabelled<'_> {
    fn parts(&self) -> impl Iterator<Item = &[Atomic<u64>]> {
        self.0.base()
    }
}
