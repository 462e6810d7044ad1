// SPDX-License-Identifier: GPL-2.0

//! Periods of delays: each delay is in exactly one, and the rows of labels are the whole.

use super::{off_guard, on, Numa};
use crate::{
    engine::{
        delays::Delays,
        hash::Seed,
        histogram::{bucket_of, BUCKETS},
        labels::{Labels, Source},
        periods::{PeriodDelays, Periods, Which},
        platform::Platform,
        stats::Stats,
    },
    host::{Guard, Machine},
    sys::memory::with_budget,
};
use kernel::prelude::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Returns counters by label.
fn labelled(labels: u32) -> Stats {
    off_guard(|| {
        let labels = Labels::new::<Numa>(Source::Cpu, labels, Seed::new(3, 4)).unwrap();
        Stats::new::<Numa>().unwrap().with_labels(Some(labels))
    })
}

/// Counts a delay in the row of a label, or in `other`.
fn count(stats: &Stats, guard: &Guard, label: u64, delay: u64) {
    match stats.labels().and_then(|labels| labels.find(&[label])) {
        Some(row) => row.record::<Numa>(guard, delay),
        None => stats.here::<Numa>(guard).record(delay),
    }
}

/// The content of a set of delays.
#[derive(Clone, Default, PartialEq, Debug)]
struct Content {
    sum: u128,
    buckets: BTreeMap<usize, u64>,
}

impl Content {
    fn of(delays: &impl Delays) -> Self {
        let buckets = (0..BUCKETS).map(|bucket| (bucket, delays.bucket(bucket)));
        Self {
            sum: delays.sum(),
            buckets: buckets.filter(|(_, count)| *count > 0).collect(),
        }
    }

    fn add(&mut self, delay: u64) {
        self.sum += u128::from(delay);
        *self.buckets.entry(bucket_of(delay)).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.buckets.values().sum()
    }
}

/// Returns the content of all sets together.
fn whole(stats: &Stats, period: &PeriodDelays<'_>) -> Content {
    Content::of(&period.of(0..stats.sets()))
}

/// Checks each set of a period, and all of them together.
fn agrees(stats: &Stats, period: &PeriodDelays<'_>, expected: &[Vec<u64>]) {
    assert_eq!(stats.sets(), expected.len());
    let mut all = Content::default();
    for (set, list) in expected.iter().enumerate() {
        let mut content = Content::default();
        for delay in list {
            content.add(*delay);
            all.add(*delay);
        }
        assert_eq!(Content::of(&period.of(set..set + 1)), content, "set {set}");
    }
    assert_eq!(whole(stats, period), all);
    let odd = (0..stats.sets()).filter(|set| set % 2 == 1);
    let even = (0..stats.sets()).filter(|set| set % 2 == 0);
    let halves = [period.of(odd).count(), period.of(even).count()];
    assert_eq!(halves.iter().sum::<u64>(), all.count());
}

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    Count { cpu: usize, label: u64, delay: u64 },
    Reset,
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    let parts = (0usize..4, 0u64..6, any::<u64>(), 8u32..64);
    let count = parts.prop_map(|(cpu, label, delay, shift)| Step::Count {
        cpu,
        label,
        delay: delay >> shift,
    });
    prop_oneof![
        8 => count,
        1 => Just(Step::Reset),
        1 => Just(Step::Read),
    ]
}

proptest! {
    /// Labels have rows in the order in which they come; the last ones are in `other`.
    #[test]
    fn each_period_has_the_delays_of_its_time(steps in prop::collection::vec(step(), 0..80)) {
        const ROWS: usize = 4;
        let stats = labelled(ROWS as u32);
        let mut periods = Periods::new(0);
        let nothing = vec![Vec::new(); 1 + ROWS];
        let (mut current, mut previous) = (nothing.clone(), nothing.clone());
        let mut rows = Vec::new();
        let (mut begin, mut before) = (0, 0);
        for (now, step) in (1..).zip(steps) {
            match step {
                Step::Count { cpu, label, delay } => {
                    on::<Numa, _>(cpu, |guard| count(&stats, guard, label, delay));
                    if !rows.contains(&label) && rows.len() < ROWS {
                        rows.push(label);
                    }
                    let row = rows.iter().position(|known| *known == label);
                    current[row.map_or(0, Stats::set_of)].push(delay);
                }
                Step::Reset => {
                    periods.reset(&stats, now, || ()).unwrap();
                    previous = std::mem::replace(&mut current, nothing.clone());
                    (before, begin) = (begin, now);
                }
                Step::Read => {
                    let period = periods.get(Which::Current, &stats, now, || ()).unwrap();
                    prop_assert_eq!(period.times(), (begin, now));
                    agrees(&stats, &period, &current);
                    let period = periods.get(Which::Previous, &stats, now, || ()).unwrap();
                    prop_assert_eq!(period.times(), (before, begin));
                    agrees(&stats, &period, &previous);
                }
            }
        }
    }
}

#[test]
fn counters_themselves_are_not_reset() {
    let stats = off_guard(|| Stats::new::<Numa>().unwrap());
    let mut periods = Periods::new(5);
    on::<Numa, _>(2, |guard| count(&stats, guard, 0, 40));
    let before = stats.summary();
    periods.reset(&stats, 9, || ()).unwrap();
    assert_eq!(stats.summary(), before);
    assert_eq!(stats.bucket(bucket_of(40)), 1);
    let period = periods.get(Which::Current, &stats, 10, || ()).unwrap();
    assert_eq!((period.times(), period.of(0..1).count()), ((9, 10), 0));
}

/// The words of a sum wrap at 2^64 ns, within a period, too.
#[test]
fn the_sum_of_a_period_may_exceed_64_bits() {
    const LONG: u64 = (1 << 60) + 1;
    let stats = off_guard(|| Stats::new::<Numa>().unwrap());
    let mut periods = Periods::new(0);
    let count_long = |number: usize| {
        on::<Numa, _>(3, |guard| {
            for _ in 0..number {
                count(&stats, guard, 0, LONG);
            }
        });
    };
    count_long(7);
    periods.reset(&stats, 1, || ()).unwrap();
    count_long(20);
    let period = periods.get(Which::Current, &stats, 2, || ()).unwrap();
    assert_eq!(period.of(0..1).sum(), 20 * u128::from(LONG));
}

/// A delay that is counted between two sets of the snapshot is in the next period if its set was
/// already read, and else in the one that ends.
#[test]
fn delays_during_a_reset_are_in_one_of_both_periods() {
    const ROWS: u32 = 3;
    let stats = labelled(ROWS);
    let mut periods = Periods::new(0);
    let count_each = || {
        on::<Numa, _>(1, |guard| {
            for label in 0..=u64::from(ROWS) {
                count(&stats, guard, label, 100);
            }
        });
    };
    count_each();
    // The last label is in `other`, which is the first set.
    periods.reset(&stats, 1, count_each).unwrap();
    let mut counts = Vec::new();
    for which in [Which::Previous, Which::Current] {
        let period = periods.get(which, &stats, 2, || ()).unwrap();
        let sets = (0..stats.sets()).map(|set| period.of(set..set + 1).count());
        counts.push(sets.collect::<Vec<u64>>());
        assert_eq!(
            whole(&stats, &period).count(),
            counts.last().unwrap().iter().sum::<u64>()
        );
    }
    assert_eq!(counts, [[2, 3, 4, 5], [3, 2, 1, 0]]);
}

/// A reset interrupts the counting of a delay at each of its atomic operations. (The host's two
/// additions are one step, see the concurrent test.)
#[cfg(debug_assertions)]
#[test]
fn a_reset_in_the_middle_of_a_delay_neither_loses_nor_doubles_it() {
    use kernel::hook::interrupted;
    use std::{
        cell::{Cell, RefCell},
        rc::Rc,
    };

    let mut found = Vec::new();
    for at in 0.. {
        let stats = Rc::new(labelled(2));
        let periods = Rc::new(RefCell::new(Periods::new(0)));
        // Has the memory from here on.
        periods.borrow_mut().reset(&stats, 1, || ()).unwrap();
        let done = on::<Numa, _>(0, |guard| {
            let (calls, done) = (Cell::new(0), Rc::new(Cell::new(false)));
            let hook = {
                let (stats, periods, done) = (stats.clone(), periods.clone(), done.clone());
                move || {
                    calls.set(calls.get() + 1);
                    if calls.get() == at + 1 {
                        periods.borrow_mut().reset(&stats, 2, || ()).unwrap();
                        done.set(true);
                    }
                }
            };
            interrupted(hook, || count(&stats, guard, 7, 1000));
            done.get()
        });
        if !done {
            break;
        }
        let content = [Which::Previous, Which::Current].map(|which| {
            let mut periods = periods.borrow_mut();
            let period = periods.get(which, &stats, 3, || ()).unwrap();
            whole(&stats, &period)
        });
        let counts = content.each_ref().map(Content::count);
        let sums = content.each_ref().map(|content| content.sum);
        assert_eq!(counts.iter().sum::<u64>(), 1, "{at}: {content:?}");
        assert_eq!(sums.iter().sum::<u128>(), 1000, "{at}: {content:?}");
        found.push((counts[0], sums[0]));
    }
    // First before the delay is counted, and in the end after it.
    found.dedup();
    assert_eq!(found, [(0, 0), (1, 1000)]);
}

#[test]
fn reading_and_resetting_while_others_count_loses_nothing() {
    const EACH: u64 = 100_000;
    let stats = labelled(2);
    let machine = Machine::new();
    let mut periods = Periods::new(0);
    let mut pieces = Content::default();
    let mut add = |content: Content| {
        pieces.sum += content.sum;
        for (bucket, count) in content.buckets {
            *pieces.buckets.entry(bucket).or_default() += count;
        }
    };
    let mut resets = 0;
    std::thread::scope(|scope| {
        let (stats, machine) = (&stats, &machine);
        let threads: Vec<_> = (0..Numa::cpus())
            .map(|cpu| {
                scope.spawn(move || {
                    let _seat = machine.pin(cpu);
                    for number in 0..EACH {
                        let guard = Numa::guard();
                        count(stats, &guard, number % 3, number % 4096);
                    }
                })
            })
            .collect();
        let (mut now, mut last) = (0, 0);
        while resets == 0 || threads.iter().any(|thread| !thread.is_finished()) {
            now += 1;
            let period = periods.get(Which::Current, stats, now, || ()).unwrap();
            let running = whole(stats, &period).count();
            assert!(running >= last, "a period only grows");
            last = running;
            if now % 3 == 0 {
                periods.reset(stats, now, || ()).unwrap();
                let period = periods.get(Which::Previous, stats, now, || ()).unwrap();
                let ended = whole(stats, &period);
                assert!(ended.count() >= last, "what was seen is in what ended");
                add(ended);
                (resets, last) = (resets + 1, 0);
            }
        }
    });
    let period = periods
        .get(Which::Current, &stats, u64::MAX, || ())
        .unwrap();
    add(whole(&stats, &period));
    // Every delay is in one piece: all counters, from the creation to the end.
    assert_eq!(pieces, Content::of(&stats), "{resets} resets");
    assert_eq!(pieces.count(), EACH * Numa::cpus() as u64);
}

#[test]
fn without_memory_nothing_is_reset() {
    let stats = labelled(2);
    let mut periods = Periods::new(0);
    on::<Numa, _>(0, |guard| count(&stats, guard, 1, 10));
    assert_eq!(
        with_budget(0, || periods.reset(&stats, 1, || ())),
        Err(ENOMEM)
    );
    let period = periods.get(Which::Previous, &stats, 2, || ()).unwrap();
    assert_eq!(
        (period.times(), whole(&stats, &period).count()),
        ((0, 0), 0)
    );
    let period = periods.get(Which::Current, &stats, 2, || ()).unwrap();
    assert_eq!(
        (period.times(), whole(&stats, &period).count()),
        ((0, 2), 1)
    );
    // From now on it needs none.
    assert_eq!(with_budget(0, || periods.reset(&stats, 3, || ())), Ok(()));
}
