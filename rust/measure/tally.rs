// SPDX-License-Identifier: GPL-2.0

//! Measurements of a probe's runs, for each counter: preallocated histograms and sums for each CPU,
//! which the reader adds up.
//!
//! ```text
//!                         cycles: 896..960   960..1024   1024..1152  ...
//!   samples                       1,200          310            12
//!   sum of branch-misses              7            4            60    <- frequent in slow runs
//! ```
//!
//! Besides a histogram for each counter, a tally has the sum of each event over the samples in each
//! bucket of cycles. So a reader sees which events were more frequent in the slowest runs, though
//! the samples are not stored.

use crate::{
    engine::{
        histogram::{bounds, bucket_of},
        platform::Platform,
    },
    sys::{
        atomic::{Atomic, Relaxed},
        memory::{NodeSlice, PerCpu},
    },
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// The counter that every machine has.
pub(crate) const CYCLES: &str = "cycles";

/// Events of the processor, by perf's names. Their positions are their numbers in sys/measure.c.
pub(crate) const EVENTS: [&str; 6] = [
    "cpu-cycles",
    "instructions",
    "L1-dcache-load-misses",
    "LLC-load-misses",
    "dTLB-load-misses",
    "branch-misses",
];

/// Maximum number of counters.
pub(crate) const COUNTERS: usize = 1 + EVENTS.len();

/// A set of [`EVENTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chosen(u32);

impl Chosen {
    /// Parses words separated by commas; [`CYCLES`] is always chosen. Fails with the first unknown
    /// word.
    pub(crate) fn parse(text: &str) -> core::result::Result<Self, &str> {
        let mut chosen = 0;
        for word in text.split(',').filter(|&word| word != CYCLES) {
            let nth = EVENTS.iter().position(|&event| event == word).ok_or(word)?;
            chosen |= 1 << nth;
        }
        Ok(Self(chosen))
    }

    pub(crate) fn numbers(self) -> impl Iterator<Item = usize> {
        (0..EVENTS.len()).filter(move |nth| self.0 & 1 << nth != 0)
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.numbers().map(|nth| EVENTS[nth])
    }

    /// Returns the number of counters, including the cycles.
    pub(crate) fn counters(self) -> usize {
        1 + self.numbers().count()
    }
}

/// The last bucket has all values from 2^32 on: about a second, in cycles.
const BUCKETS: usize = bucket_of(1 << 32) + 1;

/// Maximum value in squares and products. Larger values are outliers. The sums of squares and of
/// products wrap after 65,536 values of this size: for cycles, that is minutes inside probes.
const SQUARED: u64 = (1 << 24) - 1;

// The words of a counter.
const SUM: usize = 0;
const SQUARES: usize = 1;
/// Products of the value and the cycles.
const PRODUCTS: usize = 2;
/// Inverted, so that the initial value is 0.
const MIN: usize = 3;
const MAX: usize = 4;
const FIRST: usize = 5;
/// First of an event's sums, one for each bucket of the cycles.
const FIRST_SUM: usize = FIRST + BUCKETS;
const WORDS: usize = FIRST_SUM + BUCKETS;

/// Measurements of runs, by several counters.
pub(crate) struct Tally {
    counters: usize,
    /// The [`WORDS`] of each counter, and then the number of discarded runs. The sums per bucket of
    /// cycles are not used by the cycles themselves.
    cpus: PerCpu<NodeSlice<Atomic<u64>>>,
}

impl Tally {
    /// Creates an empty tally. May sleep; fails with `ENOMEM`.
    pub(crate) fn new<P: Platform>(counters: usize) -> Result<Self> {
        let len = counters * WORDS + 1;
        let cpus = PerCpu::try_new::<P>(|cpu| {
            NodeSlice::try_new(len, P::node_of(cpu), |_| Ok(Atomic::new(0)))
        })?;
        Ok(Self { counters, cpus })
    }

    /// Adds the values of a run: the cycles, and each event that was counted. `None` counts the run
    /// as discarded, because it was interrupted. Any context.
    pub(crate) fn take<P: Platform>(
        &self,
        guard: &P::Guard,
        values: Option<&[Option<u64>; COUNTERS]>,
    ) {
        let words = self.cpus.this::<P>(guard);
        let add = |at: usize, n| {
            if let Some(word) = words.get(at) {
                P::add_local(guard, word, n);
            }
        };
        let Some(values) = values else {
            return add(self.counters * WORDS, 1);
        };
        let cycles = values[0].unwrap_or(0);
        for (nth, value) in values.iter().take(self.counters).enumerate() {
            let Some(value) = *value else {
                continue;
            };
            let (base, square) = (nth * WORDS, value.min(SQUARED));
            add(base + SUM, value);
            add(base + SQUARES, square * square);
            add(base + PRODUCTS, square * cycles.min(SQUARED));
            add(base + FIRST + bucket(value), 1);
            if nth > 0 {
                add(base + FIRST_SUM + bucket(cycles), value);
            }
            raise(words.get(base + MIN), !value);
            raise(words.get(base + MAX), value);
        }
    }

    /// Returns the number of discarded runs.
    pub(crate) fn discarded(&self) -> u64 {
        self.sum(self.counters * WORDS)
    }

    /// Returns the number of runs that were not discarded.
    pub(crate) fn samples(&self) -> u64 {
        self.count(0)
    }

    /// Prints a line for each counter, and one for each bucket of the cycles that has samples.
    pub(crate) fn print(
        &self,
        names: impl Iterator<Item = &'static str>,
        out: &mut dyn Write,
    ) -> fmt::Result {
        for (nth, name) in Iterator::chain([CYCLES].into_iter(), names).enumerate() {
            self.print_counter(nth, name, out)?;
        }
        for at in 0..BUCKETS {
            let count = self.sum(FIRST + at);
            if count == 0 {
                continue;
            }
            let (low, above) = limits(at);
            out.write_fmt(fmt!("bucket {low} {above} {count}"))?;
            for nth in 1..self.counters {
                let sum = self.sum(nth * WORDS + FIRST_SUM + at);
                out.write_fmt(fmt!(" {sum}"))?;
            }
            out.write_str("\n")?;
        }
        Ok(())
    }

    fn print_counter(&self, nth: usize, name: &str, out: &mut dyn Write) -> fmt::Result {
        let base = nth * WORDS;
        let count = self.count(nth);
        out.write_fmt(fmt!("value {name} count={count}"))?;
        if let Some(mean) = self.sum(base + SUM).checked_div(count) {
            let (min, max) = (!self.most(base + MIN), self.most(base + MAX));
            let percentile = |percent| self.percentile(nth, count, percent).min(max);
            let (p50, p99) = (percentile(50), percentile(99));
            out.write_fmt(fmt!(" min={min} mean={mean} p50={p50} p99={p99} max={max}"))?;
            let sum = self.sum(base + SUM);
            let (squares, products) = (self.sum(base + SQUARES), self.sum(base + PRODUCTS));
            out.write_fmt(fmt!(" sum={sum} squares={squares} products={products}"))?;
        }
        out.write_str("\n")
    }

    /// Returns the number of values of a counter.
    fn count(&self, nth: usize) -> u64 {
        let base = nth * WORDS + FIRST;
        (base..base + BUCKETS).map(|at| self.sum(at)).sum()
    }

    /// Returns the highest value of the bucket that contains a percentile.
    fn percentile(&self, nth: usize, count: u64, percent: u64) -> u64 {
        // In this order, so that nothing overflows.
        let whole = count / 100 * percent + (count % 100 * percent).div_ceil(100);
        let mut seen = 0;
        for at in 0..BUCKETS {
            seen += self.sum(nth * WORDS + FIRST + at);
            if seen >= whole.max(1) {
                return limits(at).1 - 1;
            }
        }
        u64::MAX
    }

    fn sum(&self, at: usize) -> u64 {
        self.each(at).fold(0, u64::wrapping_add)
    }

    fn most(&self, at: usize) -> u64 {
        self.each(at).max().unwrap_or(0)
    }

    /// Iterates over the values of a word on all CPUs.
    fn each(&self, at: usize) -> impl Iterator<Item = u64> + '_ {
        // Relaxed: each is exact; together they are a snapshot of about now.
        let word = move |words: &NodeSlice<Atomic<u64>>| words.get(at).map(|w| w.load(Relaxed));
        self.cpus.iter().filter_map(word)
    }
}

fn bucket(value: u64) -> usize {
    bucket_of(value).min(BUCKETS - 1)
}

/// Returns the lowest value of a bucket, and the lowest above it.
fn limits(at: usize) -> (u64, u64) {
    let (low, above) = bounds(at);
    (low, if at == BUCKETS - 1 { u64::MAX } else { above })
}

/// Raises an extreme. An NMI of this CPU may do so at the same time.
fn raise(word: Option<&Atomic<u64>>, value: u64) {
    let Some(word) = word else {
        return;
    };
    // Relaxed: nothing else depends on it.
    let mut old = word.load(Relaxed);
    while value > old {
        match word.cmpxchg(old, value, Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}
