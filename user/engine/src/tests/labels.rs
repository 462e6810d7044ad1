// SPDX-License-Identifier: GPL-2.0

//! Delays by label: each delay is in one row or in `other`, and together these have all delays.

use super::{off_guard, on, Numa};
use crate::{
    engine::{
        delays::Delays,
        hash::Seed,
        histogram::{bucket_of, BUCKETS},
        labels::{Labels, Place, Source, LABEL},
        platform::Platform,
        stats::Counter,
        Late,
    },
    host::Guard,
    sys::memory::{alive, with_budget},
};
#[cfg(debug_assertions)]
use kernel::hook::interrupted;
use kernel::prelude::*;
use proptest::prelude::*;
use std::{cell::Cell, collections::BTreeSet, rc::Rc};

/// Events have two words of data. A label is a part of one word, both words of data, a CPU, or a
/// stack.
type Engine = crate::engine::Engine<1, 2, Numa>;

const SEED: Seed = Seed::new(0x1234_5678, 0x9abc_def0);

/// The first word of the data, without its upper half.
const WORD: Source = Source::Event(Place {
    at: 1,
    shift: 0,
    mask: 0xffff_ffff,
    words: 1,
});

const BOTH: Source = Source::Event(Place {
    at: 1,
    shift: 0,
    mask: u64::MAX,
    words: 2,
});

/// The stack of the thread whose number is the first word of the data.
const THREAD: Source = Source::Stack(Place {
    at: 1,
    shift: 0,
    mask: 0xffff_ffff,
    words: 1,
});

/// Maximum number of addresses of a stack that are kept.
const DEPTH: usize = 3;

/// The seed of labels.
const LABELS: Seed = Seed::new(3, 4);

fn engine(source: Source, labels: u32, threshold: u64) -> Result<Engine> {
    let labels = Labels::new::<Numa>(source, labels, LABELS)?;
    let labels = match source {
        Source::Stack(_) => labels.with_stacks(DEPTH)?,
        _ => labels,
    };
    let mut engine = Engine::growing(64, 64, threshold, SEED, true)?;
    engine.set_labels(labels);
    Ok(engine)
}

/// A set of delays, as a list.
#[derive(Clone, Default, Debug)]
struct List(Vec<u64>);

impl List {
    fn agrees(&self, delays: &impl Delays) {
        let Self(list) = self;
        let count = |bucket| {
            list.iter()
                .filter(|&&delay| bucket_of(delay) == bucket)
                .count()
        };
        for bucket in 0..BUCKETS {
            assert_eq!(delays.bucket(bucket), count(bucket) as u64);
        }
        let mut copy = [0; BUCKETS];
        assert_eq!(delays.copy(&mut copy), list.len() as u64);
        assert_eq!(delays.count(), list.len() as u64);
        assert_eq!(
            delays.sum(),
            list.iter().map(|&delay| u128::from(delay)).sum::<u128>()
        );
        let extremes = list.iter().min().copied().zip(list.iter().max().copied());
        assert_eq!(delays.extremes(), extremes);
    }
}

/// Starts an event at 1000, and ends it after `delay`. Returns the reported delay, if any.
fn pair(engine: &Engine, guard: &Guard, data: [u64; 2], delay: i64) -> Option<u64> {
    const START: u64 = 1_000;
    engine.event_in(guard, &[7], START, &data);
    let mut reported = None;
    let end = START.wrapping_add_signed(delay);
    let late = |late: &Late<1, 2>| {
        assert_eq!((late.key, late.data, late.start), ([7], data, START));
        reported = Some(late.delay);
    };
    assert!(engine.event_out(guard, &[7], end, |_| true, late));
    reported
}

proptest! {
    /// The first labels have rows. The delays of further labels, and no other delays, are in
    /// `other`.
    #[test]
    fn the_rows_have_the_delays_of_their_labels_and_add_up(
        source in prop_oneof![Just(WORD), Just(BOTH), Just(Source::Cpu)],
        max in 2u32..9,
        threshold in prop_oneof![Just(u64::MAX), 0u64..5_000],
        events in prop::collection::vec((0usize..4, 0u64..12, -3i64..5_000), 0..300),
    ) {
        let engine = off_guard(|| engine(source, max, threshold)).unwrap();
        let mut rows: Vec<([u64; LABEL], List)> = Vec::new();
        let (mut other, mut all, mut negative) = (List::default(), List::default(), 0);
        for &(cpu, label, delay) in &events {
            // If the label is both words, it differs from one other label only in the second word.
            // Otherwise, the bits above the label must not matter.
            let data = match source {
                BOTH => [label / 2, label % 2],
                _ => [label | 1 << 40, label],
            };
            let reported = on::<Numa, _>(cpu, |guard| pair(&engine, guard, data, delay));
            let Ok(delay) = u64::try_from(delay) else {
                negative += 1;
                prop_assert_eq!(reported, None);
                continue;
            };
            prop_assert_eq!(reported, (delay > threshold).then_some(delay));
            let label = match source {
                WORD => [label, 0, 0, 0],
                BOTH => [data[0], data[1], 0, 0],
                _ => [cpu as u64, 0, 0, 0],
            };
            all.0.push(delay);
            match rows.iter().position(|(known, _)| *known == label) {
                Some(at) => rows[at].1 .0.push(delay),
                None if rows.len() < max as usize => rows.push((label, List(vec![delay]))),
                None => other.0.push(delay),
            }
        }
        let stats = engine.stats();
        let labels = stats.labels().unwrap();
        prop_assert_eq!((labels.used(), labels.max()), (rows.len(), max as usize));
        for (at, (label, list)) in rows.iter().enumerate() {
            let (known, row) = labels.labelled(at).unwrap();
            prop_assert_eq!(known, *label);
            list.agrees(row);
        }
        other.agrees(&stats.unlabelled());
        all.agrees(stats);
        prop_assert_eq!(stats.total(Counter::Negative), negative);
        prop_assert_eq!(stats.total(Counter::Ended), events.len() as u64);
        prop_assert_eq!(engine.free(), 64);
    }
}

#[test]
fn as_many_labels_as_rows_have_a_row_each() {
    for max in [2, 3, 16, 100, 256, 1024] {
        let engine = off_guard(|| engine(BOTH, max, u64::MAX)).unwrap();
        on::<Numa, _>(0, |guard| {
            for label in 0..u64::from(max) {
                pair(&engine, guard, [label << 32, label], 5);
            }
            pair(&engine, guard, [u64::MAX; 2], 6);
            pair(&engine, guard, [0; 2], 7);
        });
        let labels = engine.stats().labels().unwrap();
        assert_eq!(labels.used(), max as usize);
        List(vec![6]).agrees(&engine.stats().unlabelled());
        List(vec![5, 7]).agrees(labels.labelled(0).unwrap().1);
        List(vec![5]).agrees(labels.labelled(max as usize - 1).unwrap().1);
    }
}

#[test]
fn labels_that_share_a_home_have_a_row_each() {
    for source in [WORD, BOTH] {
        let engine = off_guard(|| engine(source, 16, u64::MAX)).unwrap();
        let labels = engine.stats().labels().unwrap();
        let home = |word: u64| labels.home(&[word, 0]);
        let words = (1..).filter(|&word| home(word) == home(1));
        let words: Vec<u64> = words.take(16).collect();
        on::<Numa, _>(0, |guard| {
            for _ in 0..2 {
                for (&word, delay) in words.iter().zip(1..) {
                    pair(&engine, guard, [word, 0], delay);
                }
            }
        });
        assert_eq!(labels.used(), 16);
        for (row, (&word, delay)) in words.iter().zip(1..).enumerate() {
            let (label, delays) = labels.labelled(row).unwrap();
            assert_eq!(label, [word, 0, 0, 0]);
            List(vec![delay; 2]).agrees(delays);
        }
    }
}

#[test]
fn nine_in_ten_regular_labels_are_at_home() {
    const SEEDS: u64 = 100;
    const FULL: u32 = 16;
    type Family = (&'static str, fn(u64) -> u64);
    const FAMILIES: [Family; 5] = [
        ("CPUs", |i| i),
        ("threads", |i| 1000 + i),
        ("disks", |i| (8 << 20) | (16 * i)),
        ("pointers to pages", |i| 0xffff_8881_0480_0000 + 4096 * i),
        ("names", |i| u64::from_le_bytes(*b"worker-0") + (i << 56)),
    ];
    for (name, family) in FAMILIES {
        let mut at_home = 0;
        for nth in 0..SEEDS {
            let seed = Seed::new(SEED.hash(&[nth, 0]), SEED.hash(&[nth, 1]));
            let labels = off_guard(|| Labels::new::<Numa>(WORD, FULL, seed)).unwrap();
            // Of the labels that share a home, only one is at home.
            let homes = (0..u64::from(FULL)).map(|i| labels.home(&[family(i)]));
            at_home += homes.collect::<BTreeSet<_>>().len() as u64;
        }
        let all = SEEDS * u64::from(FULL);
        assert!(10 * at_home > 9 * all, "{name}: {at_home} of {all}");
    }
}

#[test]
fn events_that_timed_out_or_were_found_count_as_without_labels() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(WORD, 2, 50).unwrap();
        engine.event_in(guard, &[1], 10, &[8, 0]);
        let mut expired = 0;
        engine.expire(20, 5, |_| 5, || (), |_| (), |_, _, ()| expired += 1);
        assert_eq!(expired, 1);
        let mut late = Vec::new();
        engine.event_out(guard, &[1], 40, |_| true, |l| late.push(l.delay));
        assert_eq!(late, [30], "reported, though below the threshold");
        let event = engine.event_in_found(guard, &[2], 10, &[9, 0]).unwrap();
        engine.put_ref(guard, event);
        engine.event_out(guard, &[2], 100, |_| true, |l| late.push(l.delay));
        assert_eq!(late, [30, 90]);
        let (stats, labels) = (engine.stats(), engine.stats().labels().unwrap());
        assert_eq!(labels.used(), 1, "a lower bound is in no row");
        List(vec![30]).agrees(labels.labelled(0).unwrap().1);
        List(vec![30]).agrees(stats);
        assert_eq!(stats.total(Counter::BeforeStartEnded), 1);
        // The cell of such an event can be used again.
        pair(&engine, guard, [8, 0], 40);
        List(vec![30, 40]).agrees(stats);
    });
}

#[test]
fn a_label_is_read_from_the_event_while_it_is_the_callers() {
    for (source, key, data, cpu, label) in [
        (WORD, [1], [0xf_0000_0005, 2], 0, [5, 0, 0, 0]),
        (BOTH, [1], [7, 8], 0, [7, 8, 0, 0]),
        (Source::Cpu, [1], [7, 8], 3, [3, 0, 0, 0]),
        (
            Source::Event(Place {
                at: 0,
                shift: 8,
                mask: 0xff,
                words: 1,
            }),
            [0x1234_5678],
            [0; 2],
            0,
            [0x56, 0, 0, 0],
        ),
    ] {
        assert_eq!(source.label(&key, &data, cpu), label);
        let engine = off_guard(|| engine(source, 2, u64::MAX)).unwrap();
        on::<Numa, _>(cpu, |guard| {
            engine.event_in(guard, &key, 10, &data);
            engine.event_out(guard, &key, 20, |_| true, |_| ());
        });
        let labels = engine.stats().labels().unwrap();
        assert_eq!(labels.labelled(0).unwrap().0, label);
    }
}

#[test]
fn each_stack_has_the_delays_of_the_operations_that_end_with_it() {
    // Four threads with stacks of 1, 3, 4 and 0 addresses take all rows; the fifth gets none.
    const THREADS: [u64; 5] = [0x11, 0x23, 0x34, 0x40, 0x55];
    let engine = off_guard(|| engine(THREAD, 4, u64::MAX)).unwrap();
    on::<Numa, _>(0, |guard| {
        for round in 0..2 {
            for (tid, delay) in THREADS.into_iter().zip(1..) {
                pair(&engine, guard, [tid, round], delay);
            }
        }
    });
    let (stats, labels) = (engine.stats(), engine.stats().labels().unwrap());
    assert_eq!((labels.used(), labels.depth()), (4, DEPTH));
    for (row, (tid, delay)) in THREADS.into_iter().zip(1..).take(4).enumerate() {
        List(vec![delay; 2]).agrees(labels.labelled(row).unwrap().1);
        let stack = labels.stack(row).unwrap();
        let all: Vec<u64> = (0..tid % 16).map(|nth| tid << 8 | nth).collect();
        let (kept, cut) = all.split_at(all.len().min(DEPTH));
        assert_eq!((stack.addresses(), stack.is_cut), (kept, !cut.is_empty()));
    }
    List(vec![5; 2]).agrees(&stats.unlabelled());
    assert_eq!(stats.total(Counter::Ended), 10);
}

#[test]
fn stacks_with_equal_hashes_have_a_row_each() {
    // An address equal to the seed's second word makes one factor of a product 0, so the
    // address before it does not change the hash.
    let stacks = [[3, 4, 1, 4], [3, 4, 2, 4]];
    assert_eq!(LABELS.hash(&stacks[0]), LABELS.hash(&stacks[1]));
    off_guard(|| {
        let labels = Labels::new::<Numa>(THREAD, 2, LABELS).unwrap();
        let labels = labels.with_stacks(DEPTH).unwrap();
        for _ in 0..2 {
            for (nth, stack) in stacks.iter().enumerate() {
                let row = labels.find_stack(stack).unwrap();
                let found = labels.rows().position(|one| std::ptr::eq(one, row));
                assert_eq!(found, Some(nth));
            }
        }
        assert_eq!(labels.used(), 2);
    });
}

#[test]
fn without_memory_nothing_is_created() {
    off_guard(|| {
        let before = alive();
        for source in [WORD, THREAD] {
            let create = || engine(source, 4, 0);
            let needed = (0..).find(|&budget| with_budget(budget, create).is_ok());
            assert!(needed.unwrap() > 4, "a row each");
            for budget in 0..needed.unwrap() {
                let error = with_budget(budget, create).err().unwrap();
                assert_eq!(error, ENOMEM);
                assert_eq!(alive(), before, "something is left");
            }
        }
    });
}

#[test]
fn the_size_includes_all_rows() {
    let rows = 16 * 4 * 8 * (BUCKETS + 3);
    let size = Labels::bytes(16, 4, 0);
    assert!((rows..rows + 16_384).contains(&size), "{size}");
    assert_eq!(Labels::bytes(16, 4, 32), size + 16 * 8 * 33);
}

/// At any point while the first event of a label ends, an interrupt ends another event of the label, or an event of
/// another label, which may share the home. Each delay is counted once, and no label has two rows.
#[cfg(debug_assertions)]
#[test]
fn an_interrupt_of_a_claim_counts_in_other_or_in_its_own_row() {
    let shares_home = off_guard(|| {
        let labels = Labels::new::<Numa>(WORD, 2, LABELS).unwrap();
        let mut words = 6..;
        words.find(|&word| labels.home(&[word]) == labels.home(&[5]))
    });
    for theirs in [5, 6, shares_home.unwrap()] {
        let mut places = 0;
        for at in 0.. {
            let engine = Rc::new(off_guard(|| engine(WORD, 2, u64::MAX)).unwrap());
            let done = on::<Numa, _>(0, |guard| {
                engine.event_in(guard, &[1], 10, &[5, 0]);
                engine.event_in(guard, &[2], 10, &[theirs, 0]);
                let (count, done) = (Cell::new(0), Rc::new(Cell::new(false)));
                let hook = {
                    let (engine, done) = (engine.clone(), done.clone());
                    move || {
                        count.set(count.get() + 1);
                        if count.get() == at + 1 {
                            let guard = Numa::guard();
                            engine.event_out(&guard, &[2], 30, |_| true, |_| ());
                            done.set(true);
                        }
                    }
                };
                interrupted(hook, || engine.event_out(guard, &[1], 20, |_| true, |_| ()));
                done.get()
            });
            if !done {
                break;
            }
            places += 1;
            let (stats, labels) = (engine.stats(), engine.stats().labels().unwrap());
            List(vec![10, 20]).agrees(stats);
            let used: Vec<u64> = (0..labels.used())
                .map(|row| labels.labelled(row).unwrap().0[0])
                .collect();
            match theirs {
                5 => assert_eq!(used, [5], "a label in two rows"),
                _ => assert!(used == [5, theirs] || used == [theirs, 5], "{used:?}"),
            }
            let other = stats.unlabelled().count();
            assert!(other == 0 || theirs == 5, "another label is no reason");
        }
        assert!(places > 10, "{places}");
    }
}
