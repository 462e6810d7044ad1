// SPDX-License-Identifier: GPL-2.0

//! References, several events of one key, and keys with at most one live event.

use super::{on, Numa};
use crate::{
    engine::{
        event::{Event, GetRef, HOLDERS_MAX},
        freelist::Cell as _,
        hash::Seed,
        held::{Lookup, Reference},
        platform::Platform,
        stats::Counter,
        Begin, Late, Verdict, Why,
    },
    host::{Guard, Host},
};
use kernel::hook::interrupted;
use proptest::prelude::*;
use std::{cell::Cell, rc::Rc};

type Engine = crate::engine::Engine<1, 1, Numa>;

fn engine(capacity: u32) -> Engine {
    Engine::new(capacity, u64::MAX, Seed::new(5, 6)).unwrap()
}

fn begin(engine: &Engine, guard: &Guard, key: u64, start: u64) -> Begin {
    engine.event_in(guard, &[key], start, &[start])
}

fn found(engine: &Engine, key: u64) -> Reference {
    match engine.lookup(&Numa::guard(), &[key]) {
        Lookup::Found(reference) => reference,
        other => panic!("{other:?}"),
    }
}

fn end(engine: &Engine, guard: &Guard, key: u64) -> bool {
    engine.event_out(guard, &[key], u64::MAX, |_| true, |_| ())
}

fn seen(engine: &Engine, reference: &Reference) -> (u64, u64, u64) {
    let copy = engine.view(reference);
    (copy.start, copy.key[0], copy.data[0])
}

#[test]
fn a_reference_is_taken_to_a_live_event_only() {
    let event = Event::<1, 1>::new();
    event.fill(&[1], 1, &[1]);
    event.publish();
    let life = event.life().unwrap();
    assert_eq!(event.get_ref(life), GetRef::Taken);
    assert_eq!(event.holders(), 1);
    // A caller that read the state earlier can still end the event, and learns of the reference.
    let last = event.claim(life).unwrap();
    assert!(last.is_held() && !life.is_held());
    assert_eq!(event.get_ref(life), GetRef::Over);
    assert_eq!(event.get_ref(last), GetRef::Over);
    // A reference can be duplicated.
    assert_eq!(event.get_ref_again(), GetRef::Taken);
    assert!(!event.put_ref(), "one is left");
    assert!(!event.abandon(), "one is left");
    assert!(event.put_ref(), "the last one");
    assert_eq!(event.holders(), 0);
    event.publish();
    assert!(!event.life().unwrap().is_held());
    assert_eq!(event.get_ref(life), GetRef::Over, "of an earlier life");
}

#[test]
fn the_owner_recycles_a_cell_without_references() {
    let event = Event::<1, 1>::new();
    event.publish();
    let life = event.life().unwrap();
    assert_eq!(event.get_ref(life), GetRef::Taken);
    assert!(event.claim(life).is_some());
    assert!(!event.put_ref(), "it is still the owner's");
    assert!(event.abandon(), "no holder is left");
}

#[test]
fn references_of_one_event_are_limited() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(2);
        begin(&engine, guard, 1, 10);
        let mut all: Vec<_> = (0..HOLDERS_MAX).map(|_| found(&engine, 1)).collect();
        assert_eq!(engine.holders(), HOLDERS_MAX);
        assert!(matches!(
            engine.lookup(&Numa::guard(), &[1]),
            Lookup::TooMany
        ));
        assert!(engine.get_ref_again(&all[0]).is_none());
        assert_eq!(engine.each_of(guard, &[1], |_| true), 0, "left out");
        assert_eq!(end_of(&engine, guard, 1), 10, "it ends all the same");
        assert!(matches!(
            engine.lookup(&Numa::guard(), &[1]),
            Lookup::NotFound
        ));
        let last = all.pop().unwrap();
        for reference in all {
            engine.put_ref(guard, reference);
        }
        assert_eq!(engine.free(), 1, "one is left");
        engine.put_ref(guard, last);
        assert_eq!((engine.free(), engine.holders()), (2, 0));
    });
}

/// Ends an event, and returns its start.
fn end_of(engine: &Engine, guard: &Guard, key: u64) -> u64 {
    let mut start = None;
    let is_end = |open: &crate::engine::Open<'_, 1, 1>| {
        start = Some(open.data()[0]);
        true
    };
    assert!(engine.event_out(guard, &[key], u64::MAX, is_end, |_| ()));
    start.unwrap()
}

#[test]
fn a_held_event_is_not_recycled() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(1);
        let reference = engine.event_in_held(guard, &[1], 10, &[11]).unwrap();
        assert!(engine.is_live(&reference));
        assert!(end(&engine, guard, 1));
        assert!(!engine.is_live(&reference));
        assert_eq!(
            begin(&engine, guard, 2, 20),
            Begin::Full,
            "its memory is kept"
        );
        assert_eq!(seen(&engine, &reference), (10, 1, 11));
        assert_eq!(
            engine.event_out_held(guard, &reference, 30, |_| panic!("not late")),
            None
        );
        engine.put_ref(guard, reference);
        assert_eq!(begin(&engine, guard, 2, 20), Begin::Started);
        assert_eq!(engine.stats().total(Counter::Ended), 1);
        assert_eq!(engine.stats().total(Counter::Unmatched), 0);
    });
}

#[test]
fn an_end_by_reference_ends_the_held_event_of_the_key() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(8);
        let held: Vec<_> = (0..3)
            .map(|i| engine.event_in_held(guard, &[1], i, &[i]).unwrap())
            .collect();
        engine.set_threshold(0);
        let mut late = None;
        let note = |report: &Late<1, 1>| late = Some((report.key, report.start, report.data));
        assert!(engine.event_out_held(guard, &held[1], 100, note).is_some());
        assert_eq!(late, Some(([1], 1, [1])));
        assert_eq!(
            engine.event_out_held(guard, &held[1], 100, |_| ()),
            None,
            "once"
        );
        let mut left = Vec::new();
        let shown = engine.each_of(guard, &[1], |event| {
            left.push(engine.view(event).start);
            true
        });
        left.sort_unstable();
        assert_eq!((shown, left), (2, vec![0, 2]));
        assert_eq!(engine.each_of(guard, &[1], |_| false), 1, "it can stop");
        let mut ends = Vec::new();
        let ended = engine.event_out_all(guard, &[1], 100, |late| ends.push(late.start));
        ends.sort_unstable();
        assert_eq!((ended, ends), (2, vec![0, 2]));
        assert_eq!(engine.event_out_all(guard, &[1], 100, |_| ()), 0);
        assert_eq!(engine.stats().total(Counter::Unmatched), 1);
        for reference in held {
            engine.put_ref(guard, reference);
        }
        assert_eq!(engine.free(), 8);
    });
}

#[test]
fn a_held_event_is_cleared_and_times_out_like_any_other() {
    let engine = engine(4);
    let held = on::<Numa, _>(0, |guard| {
        engine.event_in_held(guard, &[1], 10, &[1]).unwrap()
    });
    let _seat = crate::host::Machine::new().pin(0);
    let mut reported = 0;
    engine.expire(
        100,
        50,
        |_| 50,
        || (),
        |_| (),
        |_, late, ()| reported = late.start,
    );
    assert_eq!(reported, 10);
    assert_eq!(engine.clear(), 1);
    assert_eq!(seen(&engine, &held), (10, 1, 1));
    assert_eq!((engine.free(), engine.pending_count()), (3, 0));
    use crate::engine::platform::Platform;
    engine.put_ref(&Numa::guard(), held);
    assert_eq!(engine.free(), 4);
}

#[test]
fn a_reference_stays_with_a_changed_event() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(2);
        let held = engine.event_in_held(guard, &[1], 10, &[1]).unwrap();
        for verdict in [Verdict::Keep, Verdict::Renewed, Verdict::Gone] {
            assert!(engine.is_live(&held));
            let done = engine.update(guard, &[1], |event| {
                event.set_data(&[2]);
                verdict
            });
            assert_eq!(done, Some(verdict));
            assert_eq!(seen(&engine, &held), (10, 1, 2));
            let first = engine.expire(20, 100, |_| 100, || (), |_| (), |_, _, ()| ());
            let live = verdict != Verdict::Gone;
            assert_eq!(first, live.then_some(110), "a change is over");
        }
        assert!(!engine.is_live(&held));
        engine.put_ref(guard, held);
        assert_eq!(engine.free(), 2);
    });
}

#[test]
fn each_event_has_its_own_timeout() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(8);
        for key in 1..=3 {
            begin(&engine, guard, key, 100);
        }
        let timeout = |copy: &crate::engine::event::EventCopy<1, 1>| match copy.key[0] {
            1 => 10,
            2 => 1000,
            _ => u64::MAX,
        };
        let expire = |now| {
            let mut keys = Vec::new();
            let report =
                |_: &Guard, late: &Late<1, 1>, (): &()| keys.push((late.key[0], late.threshold));
            let first = engine.expire(now, 10, timeout, || (), |_| (), report);
            (keys, first)
        };
        assert_eq!(expire(105), (vec![], Some(110)));
        assert_eq!(expire(110), (vec![(1, 10)], Some(1100)));
        assert_eq!(expire(u64::MAX), (vec![(2, 1000)], None), "never is never");
        assert_eq!(end_why(&engine, guard, 1), Some(Why::LateEnd));
        assert_eq!(end_why(&engine, guard, 3), None);
    });
}

fn end_why(engine: &Engine, guard: &Guard, key: u64) -> Option<Why> {
    let mut why = None;
    assert!(engine.event_out(guard, &[key], 200, |_| true, |late| why = Some(late.why)));
    why
}

#[test]
fn the_latest_event_of_a_unique_key_stays() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(8);
        let unique = |start| engine.event_in_unique(guard, &[1], start, &[start]);
        // Earlier events of the key that started without `unique` are dropped, too.
        begin(&engine, guard, 1, 10);
        begin(&engine, guard, 1, 11);
        assert_eq!(unique(20), Begin::Started);
        assert_eq!(engine.stats().total(Counter::Replaced), 2);
        // An event that arrives late, according to its own time, finds the later one live.
        assert_eq!(unique(15), Begin::Started);
        assert_eq!(engine.stats().total(Counter::Replaced), 3);
        assert_eq!(end_of(&engine, guard, 1), 20);
        assert!(!end(&engine, guard, 1));
        assert_eq!(engine.free(), 8);
    });
}

#[test]
fn a_unique_key_makes_room_for_itself_in_a_full_pool() {
    on::<Host<1>, _>(0, |guard| {
        let engine = crate::engine::Engine::<1, 1, Host<1>>::new(1, 0, Seed::new(5, 6)).unwrap();
        for round in 0..100 {
            let begun = engine.event_in_unique(guard, &[1], round, &[round]);
            assert_eq!(begun, Begin::Started);
        }
        let total = |counter| engine.stats().total(counter);
        assert_eq!((total(Counter::Replaced), total(Counter::Full)), (99, 0));
        let earlier = engine.event_in_unique(guard, &[1], 98, &[98]);
        assert_eq!(earlier, Begin::Full, "the later event stays");
        let other = engine.event_in_unique(guard, &[2], 1, &[1]);
        assert_eq!(other, Begin::Full, "another key");
    });
}

#[derive(Clone, Debug)]
enum Step {
    In,
    InHeld,
    Unique,
    UniqueHeld,
    Out,
    OutAll,
    Lookup,
    Again(usize),
    PutRef(usize),
    OutHeld(usize),
    Keep,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::In),
        3 => Just(Step::InHeld),
        1 => Just(Step::Unique),
        1 => Just(Step::UniqueHeld),
        3 => Just(Step::Out),
        1 => Just(Step::OutAll),
        3 => Just(Step::Lookup),
        1 => any::<usize>().prop_map(Step::Again),
        4 => any::<usize>().prop_map(Step::PutRef),
        2 => any::<usize>().prop_map(Step::OutHeld),
        1 => Just(Step::Keep),
        1 => prop_oneof![5 => Just(Step::Lookup), 1 => Just(Step::Clear)],
    ]
}

/// The expected state of the engine. The start of an event is also its data.
#[derive(Default)]
struct Model {
    /// Key and start of the live events.
    live: Vec<(u64, u64)>,
    held: Vec<(Reference, (u64, u64))>,
    clock: u64,
}

impl Model {
    fn is_live(&self, event: (u64, u64)) -> bool {
        self.live.contains(&event)
    }

    /// Returns the number of cells with an event that is live or has a reference.
    fn used(&self) -> usize {
        let mut all = self.live.clone();
        all.extend(self.held.iter().map(|(_, event)| *event));
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    fn starts(&self, key: u64) -> Vec<u64> {
        let mut starts: Vec<_> = (self.live.iter())
            .filter(|event| event.0 == key)
            .map(|event| event.1)
            .collect();
        starts.sort_unstable();
        starts
    }

    /// Starts an event, and requests a reference to it if `hold`.
    fn begin(&mut self, engine: &Engine, guard: &Guard, key: u64, unique: bool, hold: bool) {
        self.clock += 1;
        let (start, full) = (self.clock, self.used() == engine.capacity() as usize);
        let (key_, data) = (&[key], &[start]);
        let (started, held) = match (unique, hold) {
            (false, false) => (
                engine.event_in(guard, key_, start, data) == Begin::Started,
                None,
            ),
            (true, false) => (
                engine.event_in_unique(guard, key_, start, data) == Begin::Started,
                None,
            ),
            (false, true) => {
                let held = engine.event_in_held(guard, key_, start, data).ok();
                (held.is_some(), held)
            }
            (true, true) => {
                let held = engine.event_in_unique_held(guard, key_, start, data).ok();
                (held.is_some(), held)
            }
        };
        if full && unique && !self.starts(key).is_empty() {
            // The start drops an event of the key to make room, and gets its cell if no reference
            // to that event is held.
            let left = live(engine);
            if !started {
                let before = self.live.len();
                self.live.retain(|event| left.contains(event));
                assert_eq!(self.live.len(), before - 1, "one dropped in vain");
                return;
            }
        } else {
            assert_eq!(started, !full);
        }
        if !started {
            return;
        }
        if unique {
            self.live.retain(|event| event.0 != key);
        }
        self.live.push((key, start));
        if let Some(held) = held {
            self.held.push((held, (key, start)));
        }
    }

    fn agrees(&self, engine: &Engine) {
        let mut expected = self.live.clone();
        expected.sort_unstable();
        assert_eq!(live(engine), expected);
        assert_eq!(
            engine.free(),
            u64::from(engine.capacity()) - self.used() as u64
        );
        assert_eq!(engine.holders(), self.held.len() as u64);
        for (reference, event) in &self.held {
            assert_eq!(seen(engine, reference), (event.1, event.0, event.1));
            assert_eq!(engine.is_live(reference), self.is_live(*event));
        }
    }
}

/// Returns key and start of the live events, in order.
fn live(engine: &Engine) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    let shown = engine.each_pending(|copy| {
        all.push((copy.key[0], copy.start));
        Ok(())
    });
    assert!(shown.is_ok());
    all.sort_unstable();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn references_behave_like_a_list(
        capacity in 1u32..20,
        keys in 1u64..6,
        steps in prop::collection::vec((step(), 0u64..6), 1..120),
    ) {
        on::<Numa, _>(0, |guard| {
            let engine = engine(capacity);
            let mut model = Model::default();
            for (step, key) in steps {
                let key = key % keys;
                let nth = |n: usize, of: usize| n.checked_rem(of);
                match step {
                    Step::In => model.begin(&engine, guard, key, false, false),
                    Step::InHeld => model.begin(&engine, guard, key, false, true),
                    Step::Unique => model.begin(&engine, guard, key, true, false),
                    Step::UniqueHeld => model.begin(&engine, guard, key, true, true),
                    Step::Out => {
                        if model.starts(key).is_empty() {
                            assert!(!end(&engine, guard, key));
                        } else {
                            let start = end_of(&engine, guard, key);
                            assert!(model.is_live((key, start)));
                            model.live.retain(|event| *event != (key, start));
                        }
                    }
                    Step::OutAll => {
                        let ended = engine.event_out_all(guard, &[key], u64::MAX, |_| ());
                        assert_eq!(ended, model.starts(key).len() as u64);
                        model.live.retain(|event| event.0 != key);
                    }
                    Step::Lookup => {
                        let mut shown = Vec::new();
                        engine.each_of(guard, &[key], |event| {
                            shown.push(engine.view(event).start);
                            true
                        });
                        shown.sort_unstable();
                        assert_eq!(shown, model.starts(key));
                        match engine.copy_of(guard, &[key], |_| true) {
                            Some(copy) => assert!(model.is_live((copy.key[0], copy.start))),
                            None => assert!(model.starts(key).is_empty()),
                        }
                        match engine.lookup(&Numa::guard(), &[key]) {
                            Lookup::Found(held) => {
                                let start = engine.view(&held).start;
                                assert!(model.is_live((key, start)));
                                model.held.push((held, (key, start)));
                            }
                            other => assert!(model.starts(key).is_empty(), "{other:?}"),
                        }
                    }
                    Step::Again(n) => {
                        if let Some(n) = nth(n, model.held.len()) {
                            let (held, event) = &model.held[n];
                            let more = (engine.get_ref_again(held).unwrap(), *event);
                            model.held.push(more);
                        }
                    }
                    Step::PutRef(n) => {
                        if let Some(n) = nth(n, model.held.len()) {
                            engine.put_ref(guard, model.held.swap_remove(n).0);
                        }
                    }
                    Step::OutHeld(n) => {
                        if let Some(n) = nth(n, model.held.len()) {
                            let (held, event) = &model.held[n];
                            let ended = engine.event_out_held(guard, held, u64::MAX, |_| ());
                            assert_eq!(ended.is_some(), model.is_live(*event));
                            let event = *event;
                            model.live.retain(|other| *other != event);
                        }
                    }
                    Step::Keep => {
                        let known = engine.update(guard, &[key], |_| Verdict::Keep);
                        assert_eq!(known.is_some(), !model.starts(key).is_empty());
                    }
                    Step::Clear => {
                        assert_eq!(engine.clear(), model.live.len() as u64);
                        model.live.clear();
                    }
                }
                model.agrees(&engine);
            }
            for (held, _) in model.held.drain(..) {
                engine.put_ref(guard, held);
            }
            model.agrees(&engine);
        });
    }
}

/// Returns the starts of the events of key 1.
fn visited(engine: &Engine, guard: &Guard) -> Vec<u64> {
    let mut starts = Vec::new();
    engine.each_of(guard, &[1], |event| {
        starts.push(engine.view(event).start);
        true
    });
    starts.sort_unstable();
    starts
}

/// The capacity grows during the visit of one event, each in turn, as by a worker on another CPU.
#[test]
fn each_event_is_visited_once_while_the_table_grows() {
    for during in 0..30 {
        on::<Numa, _>(0, |guard| {
            let engine = Engine::growing(24, 1024, u64::MAX, Seed::new(5, 6), false).unwrap();
            // More events than a bucket has slots, and enough for growth to be requested.
            for start in 0..30 {
                begin(&engine, guard, 1, start);
            }
            assert!(engine.wants_to_grow());
            let begun = engine.pending_count();
            let mut starts = Vec::new();
            let count = engine.each_of(guard, &[1], |event| {
                if starts.len() == during {
                    engine.grow().unwrap();
                    // This event is in the new level, and was not live all the time.
                    assert_eq!(begin(&engine, guard, 1, 100), Begin::Started);
                }
                starts.push(engine.view(event).start);
                true
            });
            assert_eq!(count, starts.len() as u64);
            starts.retain(|&start| start != 100);
            starts.sort_unstable();
            assert!(starts.iter().copied().eq(0..begun), "{starts:?}");
            assert_eq!(
                engine.each_of(guard, &[1], |_| true),
                engine.pending_count()
            );
        });
    }
}

/// While an event of the key starts, its slot still has the previous index.
#[cfg(debug_assertions)]
#[test]
fn each_event_is_visited_once_while_another_one_starts() {
    let engine = Rc::new(engine(8));
    on::<Numa, _>(0, |guard| {
        begin(&engine, guard, 1, 10);
        let visits = Rc::new(Cell::new(0));
        let hook = {
            let (engine, visits) = (engine.clone(), visits.clone());
            move || {
                let starts = visited(&engine, &Numa::guard());
                let old: Vec<_> = starts.iter().filter(|&&start| start == 10).collect();
                assert_eq!(old.len(), 1, "{starts:?}");
                visits.set(visits.get() + 1);
            }
        };
        interrupted(hook, || {
            begin(&engine, guard, 1, 20);
            end(&engine, guard, 2);
            begin(&engine, guard, 1, 30);
        });
        assert!(visits.get() > 5);
        assert_eq!(visited(&engine, guard), [10, 20, 30]);
    });
}

#[test]
fn only_held_events_have_references() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(3);
        let numbers = (0..10).chain((1..64).map(|i| i << 12)).chain([u32::MAX]);
        let references = || numbers.clone().filter(|&n| engine.reference(n).is_some());
        assert_eq!(references().count(), 0, "nothing was ever live");
        assert_eq!(begin(&engine, guard, 1, 10), Begin::Started);
        assert_eq!(references().count(), 0, "it is not held");
        let held = engine.event_in_held(guard, &[2], 20, &[21]).unwrap();
        assert_eq!(references().count(), 1);
        let number = references().next().unwrap();
        let found = engine.reference(number).unwrap();
        assert_eq!(seen(&engine, &found), (20, 2, 21));
        assert!(end(&engine, guard, 2));
        assert_eq!(references().count(), 1, "it can be read after its end");
        engine.put_ref(guard, held);
        assert_eq!(references().count(), 0, "it was returned");
    });
}
