// SPDX-License-Identifier: GPL-2.0

//! Compares the engine with a plain list of what should be pending.

use super::{on, Numa};
use crate::{
    engine::{
        hash::Seed,
        histogram::{bucket_of, BUCKETS},
        platform::Platform,
        stats::{Counter, Summary},
        Begin, Verdict, Why,
    },
    host::Host,
};
use kernel::{hook::interrupted, prelude::*};
use proptest::prelude::*;
use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    rc::Rc,
};

type Engine = crate::engine::Engine<1, 2, Numa>;

fn engine(capacity: u32, threshold: u64) -> Engine {
    Engine::new(capacity, threshold, Seed::new(0x1234_5678, 0x9abc_def0)).unwrap()
}

/// Checks the sums of stats.rs.
fn sums_hold<const K: usize, const D: usize, P: Platform>(engine: &crate::engine::Engine<K, D, P>) {
    let total = |counter| engine.stats().total(counter);
    assert_eq!(
        total(Counter::Attempts),
        total(Counter::Started)
            + total(Counter::Full)
            + total(Counter::Filtered)
            + total(Counter::Off)
            + total(Counter::Crowded)
    );
    let pending = engine.pending_count();
    assert_eq!(
        total(Counter::Started),
        total(Counter::Ended)
            + pending
            + total(Counter::Replaced)
            + total(Counter::Cleared)
            + total(Counter::Gone)
    );
    let histogram: u64 = (0..BUCKETS)
        .map(|bucket| engine.stats().bucket(bucket))
        .sum();
    assert_eq!(total(Counter::Ended), total(Counter::Negative) + histogram);
    assert_eq!(engine.free(), u64::from(engine.capacity()) - pending);
}

#[derive(Clone, Debug)]
enum Step {
    In,
    Unique,
    Out { delay: i64 },
    OutGone,
    Keep,
    Drop,
    Renew,
    Rename { to: u64, gone: bool },
    Clear,
    Filtered,
    Off,
    Threshold(u64),
    Expire { now: u64, timeout: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::In),
        2 => Just(Step::Unique),
        6 => (-5i64..5000).prop_map(|delay| Step::Out { delay }),
        1 => Just(Step::OutGone),
        1 => Just(Step::Keep),
        1 => Just(Step::Drop),
        1 => Just(Step::Renew),
        2 => (0u64..12, prop::bool::weighted(0.2))
            .prop_map(|(to, gone)| Step::Rename { to, gone }),
        1 => Just(Step::Filtered),
        1 => Just(Step::Off),
        1 => (0u64..5000).prop_map(Step::Threshold),
        2 => (9_000u64..22_000, 0u64..12_000)
            .prop_map(|(now, timeout)| Step::Expire { now, timeout }),
        1 => prop_oneof![9 => Just(Step::Filtered), 1 => Just(Step::Clear)],
    ]
}

/// An event of the model; `data[0]` is a serial number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Pending {
    key: u64,
    start: u64,
    data: [u64; 2],
}

#[derive(Default)]
struct Model {
    pending: Vec<Pending>,
    /// The serial numbers of the events that have timed out.
    timed_out: HashSet<u64>,
    counts: HashMap<&'static str, u64>,
    delays: Vec<u64>,
    serial: u64,
}

impl Model {
    fn count(&mut self, counter: Counter) {
        *self.counts.entry(counter.name()).or_default() += 1;
    }

    fn take(&mut self, key: u64, data: [u64; 2]) -> Pending {
        let known = |p: &Pending| p.key == key && p.data == data;
        let at = self
            .pending
            .iter()
            .position(known)
            .expect("an event of this key");
        self.pending.swap_remove(at)
    }

    fn has(&self, key: u64) -> bool {
        self.pending.iter().any(|pending| pending.key == key)
    }

    fn begin(&mut self, engine: &Engine, cpu: usize, key: u64, unique: bool) {
        self.serial += 1;
        let (start, data) = (10_000 + self.serial, [self.serial, !self.serial]);
        let full = self.pending.len() == engine.capacity() as usize;
        let begun = on::<Numa, _>(cpu, |guard| {
            if unique {
                engine.event_in_unique(guard, &[key], start, &data)
            } else {
                engine.event_in(guard, &[key], start, &data)
            }
        });
        self.count(Counter::Attempts);
        let makes_room = |p: &Pending| unique && p.key == key && p.start < start;
        if full && !self.pending.iter().any(makes_room) {
            assert_eq!(begun, Begin::Full);
            return self.count(Counter::Full);
        }
        assert_eq!(begun, Begin::Started);
        self.count(Counter::Started);
        self.pending.push(Pending { key, start, data });
        if unique {
            self.only_one(engine, key, start);
        }
    }

    /// Removes the events of this key that started before `start`. If a later event is live, also
    /// removes the new event, which started at `start`.
    fn only_one(&mut self, engine: &Engine, key: u64, start: u64) {
        let live = pending(engine);
        let is_later = |p: &Pending| p.key == key && p.start > start;
        let is_last = !self.pending.iter().any(is_later);
        for known in self.pending.clone().iter().filter(|p| p.key == key) {
            let stays = is_later(known) || known.start == start && is_last;
            assert_eq!(live.contains(known), stays);
            if !stays {
                self.take(key, known.data);
                self.timed_out.remove(&known.data[0]);
                self.count(Counter::Replaced);
            }
        }
    }

    fn end(&mut self, engine: &Engine, cpu: usize, key: u64, delay: i64, threshold: u64) {
        // The end is relative to the newest start; the engine may end any event of this key.
        let newest = self
            .pending
            .iter()
            .filter(|p| p.key == key)
            .map(|p| p.start)
            .max();
        let end = newest.unwrap_or(10_000).wrapping_add_signed(delay);
        let (mut taken, mut late) = (None, None);
        let known = on::<Numa, _>(cpu, |guard| {
            engine.event_out(
                guard,
                &[key],
                end,
                |open| {
                    taken = Some(open.data());
                    true
                },
                |report| late = Some((report.why, report.delay, report.threshold, report.data)),
            )
        });
        assert_eq!(known, self.has(key));
        let Some(data) = taken else {
            assert!(!known && late.is_none());
            self.count(Counter::Unmatched);
            return;
        };
        let pending = self.take(key, data);
        self.count(Counter::Ended);
        let timed_out = self.timed_out.remove(&data[0]);
        let why = if timed_out {
            self.count(Counter::Late);
            Why::LateEnd
        } else {
            Why::Threshold
        };
        match end.checked_sub(pending.start) {
            None => {
                self.count(Counter::Negative);
                assert_eq!(late, timed_out.then_some((why, 0, threshold, data)));
            }
            Some(delay) => {
                self.delays.push(delay);
                let expected =
                    (timed_out || delay > threshold).then_some((why, delay, threshold, data));
                assert_eq!(late, expected);
            }
        }
    }

    fn gone(&mut self, engine: &Engine, cpu: usize, key: u64) {
        let mut taken = None;
        let known = on::<Numa, _>(cpu, |guard| {
            engine.event_out(
                guard,
                &[key],
                0,
                |open| {
                    taken = Some(open.data());
                    false
                },
                |_| panic!("it did not end"),
            )
        });
        assert_eq!(known, self.has(key));
        match taken {
            Some(data) => {
                self.take(key, data);
                self.count(Counter::Gone);
            }
            None => self.count(Counter::Unmatched),
        }
    }

    fn update(&mut self, engine: &Engine, cpu: usize, key: u64, verdict: Verdict) {
        self.serial += 1;
        let (start, data) = (20_000 + self.serial, [self.serial, !self.serial]);
        let mut taken = None;
        let result = on::<Numa, _>(cpu, |guard| {
            engine.update(guard, &[key], |open| {
                taken = Some(open.data());
                open.set_start(start);
                open.set_data(&data);
                verdict
            })
        });
        assert_eq!(result, self.has(key).then_some(verdict));
        let Some(old) = taken else { return };
        self.take(key, old);
        let timed_out = self.timed_out.remove(&old[0]);
        match verdict {
            Verdict::Keep => {
                if timed_out {
                    self.timed_out.insert(data[0]);
                }
            }
            Verdict::Gone => return self.count(Counter::Gone),
            Verdict::Renewed => {
                self.count(Counter::Replaced);
                self.count(Counter::Attempts);
                self.count(Counter::Started);
            }
        }
        self.pending.push(Pending { key, start, data });
    }

    fn rename(&mut self, engine: &Engine, cpu: usize, key: u64, to: u64, verdict: Verdict) {
        let mut taken = None;
        let result = on::<Numa, _>(cpu, |guard| {
            engine.rename(guard, &[key], &[to], |open| {
                taken = Some(open.data());
                verdict
            })
        });
        assert_eq!(result, self.has(key).then_some(verdict));
        let Some(data) = taken else { return };
        let pending = self.take(key, data);
        if verdict == Verdict::Gone {
            self.timed_out.remove(&data[0]);
            return self.count(Counter::Gone);
        }
        self.pending.push(Pending { key: to, ..pending });
    }

    fn expire(&mut self, engine: &Engine, cpu: usize, now: u64, timeout: u64) {
        let _seat = crate::host::Machine::new().pin(cpu);
        let mut reported = Vec::new();
        let first = engine.expire(
            now,
            timeout,
            |_| timeout,
            || (),
            |_| (),
            |_, late, ()| {
                assert_eq!((late.why, late.threshold), (Why::Timeout, timeout));
                reported.push((late.delay, late.data));
            },
        );
        let mut expected = Vec::new();
        for pending in &self.pending {
            let age = now.saturating_sub(pending.start);
            if age >= timeout && self.timed_out.insert(pending.data[0]) {
                expected.push((age, pending.data));
            }
        }
        for _ in &expected {
            self.count(Counter::TimedOut);
        }
        expected.sort_unstable();
        reported.sort_unstable();
        assert_eq!(reported, expected);
        let timed_out = |pending: &&Pending| self.timed_out.contains(&pending.data[0]);
        let young = self.pending.iter().filter(|pending| !timed_out(pending));
        assert_eq!(first, young.map(|pending| pending.start + timeout).min());
    }

    fn agrees(&self, engine: &Engine) {
        sums_hold(engine);
        for counter in Counter::ALL {
            let expected = self.counts.get(counter.name()).copied().unwrap_or(0);
            assert_eq!(
                engine.stats().total(*counter),
                expected,
                "{}",
                counter.name()
            );
        }
        let mut expected = self.pending.clone();
        expected.sort();
        assert_eq!(pending(engine), expected);
        for bucket in 0..BUCKETS {
            let count = self
                .delays
                .iter()
                .filter(|&&delay| bucket_of(delay) == bucket)
                .count();
            assert_eq!(engine.stats().bucket(bucket), count as u64);
        }
        let sum: u64 = self.delays.iter().sum();
        let summary = Summary {
            min: self.delays.iter().copied().min().unwrap_or(0),
            mean: sum / self.delays.len().max(1) as u64,
            max: self.delays.iter().copied().max().unwrap_or(0),
            sum_us: sum / 1000,
        };
        assert_eq!(engine.stats().summary(), summary);
    }
}

fn pending(engine: &Engine) -> Vec<Pending> {
    let mut all = Vec::new();
    let seen = engine.each_pending(|copy| {
        all.push(Pending {
            key: copy.key[0],
            start: copy.start,
            data: copy.data,
        });
        Ok(())
    });
    assert_eq!(seen, Ok(()));
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_engine_behaves_like_a_list(
        capacity in 1u32..40,
        keys in 1u64..12,
        steps in prop::collection::vec((step(), 0u64..12, 0usize..4), 1..150),
    ) {
        let mut threshold = 1000;
        let engine = engine(capacity, threshold);
        let mut model = Model::default();
        for (step, key, cpu) in steps {
            let key = key % keys;
            match step {
                Step::In => model.begin(&engine, cpu, key, false),
                Step::Unique => model.begin(&engine, cpu, key, true),
                Step::Out { delay } => model.end(&engine, cpu, key, delay, threshold),
                Step::OutGone => model.gone(&engine, cpu, key),
                Step::Keep => model.update(&engine, cpu, key, Verdict::Keep),
                Step::Drop => model.update(&engine, cpu, key, Verdict::Gone),
                Step::Renew => model.update(&engine, cpu, key, Verdict::Renewed),
                Step::Rename { to, gone } => {
                    let verdict = if gone { Verdict::Gone } else { Verdict::Keep };
                    model.rename(&engine, cpu, key, to % keys, verdict);
                }
                Step::Clear => {
                    let _seat = crate::host::Machine::new().pin(cpu);
                    prop_assert_eq!(engine.clear(), model.pending.len() as u64);
                    for _ in model.pending.drain(..).collect::<Vec<_>>() {
                        model.count(Counter::Cleared);
                    }
                }
                Step::Filtered => {
                    on::<Numa, _>(cpu, |guard| engine.filtered(guard));
                    model.count(Counter::Attempts);
                    model.count(Counter::Filtered);
                }
                Step::Off => {
                    on::<Numa, _>(cpu, |guard| engine.off(guard));
                    model.count(Counter::Attempts);
                    model.count(Counter::Off);
                }
                Step::Threshold(new) => {
                    threshold = new;
                    engine.set_threshold(new);
                }
                Step::Expire { now, timeout } => model.expire(&engine, cpu, now, timeout),
            }
            model.agrees(&engine);
        }
    }
}

#[test]
fn a_pool_of_one_serves_a_million_pairs() {
    let engine = crate::engine::Engine::<1, 1, Host<1>>::new(1, u64::MAX, Seed::new(3, 4)).unwrap();
    on::<Host<1>, _>(0, |guard| {
        for i in 0..1_000_000 {
            assert_eq!(engine.event_in(guard, &[i], i, &[i]), Begin::Started);
            assert!(engine.event_out(guard, &[i], i + 5, |_| true, |_| panic!("not late")));
        }
    });
    sums_hold(&engine);
    assert_eq!(engine.stats().total(Counter::Full), 0);
    assert_eq!(engine.stats().summary().mean, 5);
}

/// Some events of one key are accepted, the others are refused and counted, and events of other
/// keys start. The accepted ones end one by one, or all at once. The cost of each call does not
/// depend on the number of attempts.
#[test]
fn of_thousands_of_starts_of_one_key_hundreds_are_accepted() {
    for (attempts, at_once) in [(8_000, false), (8_000, true), (200_000, true)] {
        let engine =
            crate::engine::Engine::<1, 1, Host<1>>::new(300_000, 0, Seed::new(3, 4)).unwrap();
        let engine = Rc::new(engine);
        let count = Rc::new(Cell::new(0u64));
        // Highest number of atomic operations in one call.
        let mut most = 0;
        let mut counted = |body: &mut dyn FnMut()| {
            let counted = count.clone();
            counted.set(0);
            interrupted(move || counted.set(counted.get() + 1), body);
            most = most.max(count.get());
        };
        on::<Host<1>, _>(0, |guard| {
            let mut taken = 0u64;
            for i in 0..attempts {
                counted(&mut || match engine.event_in(guard, &[7], i, &[taken]) {
                    Begin::Started => taken += 1,
                    begun => assert_eq!(begun, Begin::Crowded),
                });
            }
            assert!((192..=200).contains(&taken), "{taken} of a key");
            assert_eq!(engine.stats().total(Counter::Crowded), attempts - taken);
            for key in 1_000..100_000 {
                assert_eq!(engine.event_in(guard, &[key], 0, &[key]), Begin::Started);
            }
            let mut seen = vec![false; taken as usize];
            let mut late = |late: &crate::engine::Late<1, 1>| {
                let old = std::mem::replace(&mut seen[late.data[0] as usize], true);
                assert!(!old, "twice");
            };
            if at_once {
                let all = &mut || {
                    assert_eq!(engine.event_out_all(guard, &[7], 1 << 40, &mut late), taken);
                };
                counted(all);
            } else {
                for _ in 0..taken {
                    counted(&mut || {
                        assert!(engine.event_out(guard, &[7], 1 << 40, |_| true, &mut late));
                    });
                }
            }
            assert!(!engine.event_out(guard, &[7], 0, |_| true, |_| ()));
            assert!(seen.into_iter().all(|seen| seen));
        });
        sums_hold(&engine);
        // A call that ends all events ends some 200, and counts down the buckets that each event
        // passed.
        assert!(most < if at_once { 20_000 } else { 1_000 }, "{most}");
    }
}

#[test]
fn an_impossible_capacity_is_refused() {
    for capacity in [0, u32::MAX] {
        assert_eq!(
            Engine::new(capacity, 0, Seed::new(1, 2)).err(),
            Some(EINVAL)
        );
    }
}

#[test]
fn a_draft_starts_an_event_or_leaves_nothing() {
    let engine = engine(10, 100);
    on::<Numa, _>(0, |guard| {
        // A draft needs a hot cell. There is none until an event has ended.
        assert!(engine.draft(guard).is_none());
        engine.event_in(guard, &[7], 0, &[0, 0]);
        assert!(engine.event_out(guard, &[7], 1, |_| true, |_| ()));
        let attempts = engine.stats().total(Counter::Attempts);

        let mut draft = engine.draft(guard).expect("a cell");
        draft.open().set_word(0, 11);
        assert!(!engine.event_out(guard, &[7], 5, |_| true, |_| ()));
        // An interrupt takes another cell.
        assert!(engine.draft(guard).is_none());
        engine.event_in(guard, &[8], 0, &[1, 2]);
        assert_eq!((engine.free(), engine.pending_count()), (8, 1));
        drop(draft);
        assert_eq!(engine.stats().total(Counter::Attempts), attempts + 1);
        sums_hold(&engine);

        let mut draft = engine.draft(guard).expect("the same cell");
        // The words of an earlier event stay until they are set.
        assert_eq!([0, 1].map(|at| draft.open().word(at)), [11, 0]);
        draft.open().set_word(1, 12);
        draft.open().set_word(2, 13);
        assert_eq!(draft.begin(&[9], 1_000), Begin::Started);
        sums_hold(&engine);
        let mut late = Vec::new();
        let found = engine.event_out(guard, &[9], 2_000, |_| true, |one| late.push(*one));
        assert!(found && late.len() == 1);
        assert_eq!(
            (late[0].key, late[0].start, late[0].delay),
            ([9], 1_000, 1_000)
        );
        assert_eq!(late[0].data, [11, 12]);
        sums_hold(&engine);
    });
}

#[test]
fn listing_pending_events_can_be_stopped() {
    let engine = engine(10, 0);
    for key in 0..10 {
        on::<Numa, _>(0, |guard| engine.event_in(guard, &[key], key, &[0, 0]));
    }
    let mut seen = 0;
    let result = engine.each_pending(|_| {
        seen += 1;
        if seen == 4 {
            Err(EAGAIN)
        } else {
            Ok(())
        }
    });
    assert_eq!((result, seen), (Err(EAGAIN), 4));
}

#[test]
fn extra_counters_do_not_affect_common_ones() {
    let engine = engine(10, 0);
    for cpu in 0..4 {
        on::<Numa, _>(cpu, |guard| {
            engine.stats().here::<Numa>(guard).count_extra(3);
            engine.stats().here::<Numa>(guard).count_extra(usize::MAX);
            engine.stats().here::<Numa>(guard).count(Counter::ALERTS);
        });
    }
    assert_eq!(engine.stats().total_extra(3), 4);
    assert_eq!(engine.stats().total_extra(2), 0);
    assert_eq!(engine.stats().total(Counter::Alerts), 4);
}
