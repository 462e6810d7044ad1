// SPDX-License-Identifier: GPL-2.0

//! Steps of operations in which two CPUs take part.

use super::{on, Numa};
use crate::{
    engine::{
        hash::Seed, platform::Platform, stats::Counter, step::Next, Late, Open, Verdict, Why,
    },
    host::Machine,
};
use std::{
    cell::Cell,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

/// An engine with two words of data: the number of the event, and a note.
type Engine = crate::engine::Engine<1, 2, Numa>;
const NOTE: usize = 1;

fn engine() -> Engine {
    Engine::new(4, 100, Seed::new(5, 6)).unwrap()
}

fn is(number: u64) -> impl Fn(&Open<'_, 1, 2>) -> bool {
    move |event| event.word(0) == number
}

#[test]
fn the_last_step_ends_the_intended_event() {
    on::<Numa, _>(0, |guard| {
        let engine = engine();
        for (number, start) in [(1, 1000), (2, 2000), (3, 3000)] {
            engine.event_in(guard, &[7], start, &[number, 0]);
        }
        let reported = Cell::new(None);
        let late = |late: &Late<1, 2>| reported.set(Some((late.why, late.data[0], late.delay)));
        let next = engine.step(guard, &[7], is(2), |_| Next::End(2101), late);
        assert_eq!(next, Some(Next::End(2101)));
        assert_eq!(reported.get(), Some((Why::Threshold, 2, 101)));
        assert_eq!(
            engine.step(guard, &[7], is(2), |_| Next::Keep, |_| ()),
            None
        );
        // The event ends in time, and is not reported.
        let next = engine.step(guard, &[7], is(3), |_| Next::End(3100), |_| panic!());
        assert_eq!(next, Some(Next::End(3100)));
        let next = engine.step(guard, &[7], is(1), |_| Next::Gone, |_| panic!());
        assert_eq!(next, Some(Next::Gone));
        assert_eq!((engine.pending_count(), engine.free()), (0, 4));
        let total = |counter| engine.stats().total(counter);
        assert_eq!((total(Counter::Ended), total(Counter::Gone)), (2, 1));
    });
}

#[test]
fn a_step_changes_an_event_and_keeps_it() {
    on::<Numa, _>(0, |guard| {
        let engine = engine();
        engine.event_in(guard, &[7], 10, &[1, 0]);
        let change = |event: &mut Open<'_, 1, 2>| {
            event.set_words::<0, 1>(&[event.word(0) + 1]);
            Next::Keep
        };
        let kept = engine.step(guard, &[7], |_| true, change, |_| panic!());
        assert_eq!(kept, Some(Next::Keep));
        let copy = engine.copy_of(guard, &[7], |_| true).unwrap();
        assert_eq!((copy.start, copy.data), (10, [2, 0]));
        assert_eq!(
            engine.step(guard, &[8], |_| true, |_| Next::Keep, |_| ()),
            None
        );
        assert_eq!(engine.pending_count(), 1);
    });
}

#[test]
fn a_note_goes_to_the_intended_event() {
    on::<Numa, _>(0, |guard| {
        let engine = engine();
        engine.event_in(guard, &[7], 10, &[1, 0]);
        engine.event_in(guard, &[7], 20, &[2, 0]);
        let next = |event: &Open<'_, 1, 2>| event.word(NOTE) + event.word(0);
        assert!(engine.note(guard, &[7], is(2), NOTE, next));
        assert!(engine.note(guard, &[7], is(2), NOTE, next));
        assert!(!engine.note(guard, &[7], is(3), NOTE, next));
        assert!(!engine.note(guard, &[8], |_| true, NOTE, next));
        assert_eq!(engine.holders(), 0, "no reference is left");
        let mut seen = Vec::new();
        engine
            .each_pending(|event| {
                seen.push(event.data);
                Ok(())
            })
            .unwrap();
        seen.sort_unstable();
        assert_eq!(seen, [[1, 0], [2, 4]]);
        // The owner of the event is changing it.
        let change = |_: &mut Open<'_, 1, 2>| {
            assert!(!engine.note(guard, &[7], is(2), NOTE, next));
            Next::Gone
        };
        engine.step(guard, &[7], is(2), change, |_| ());
        assert_eq!((engine.pending_count(), engine.free()), (1, 3));
    });
}

#[test]
fn a_note_does_not_hide_the_event_from_its_owner() {
    const STEPS: u64 = 20_000;
    const NOTES: u64 = 1_000;
    let (engine, machine) = (&engine(), &Machine::new());
    let (notes, is_over) = (&AtomicU64::new(0), &AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(move || {
            let _seat = machine.pin(1);
            let guard = &Numa::guard();
            while !is_over.load(Ordering::Relaxed) {
                let note = |event: &Open<'_, 1, 2>| event.word(NOTE) + 1;
                if engine.note(guard, &[7], |_| true, NOTE, note) {
                    notes.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let _seat = machine.pin(0);
        let guard = &Numa::guard();
        let mut start = 0;
        // Repeats until owner and note have met often enough.
        while start < STEPS || notes.load(Ordering::Relaxed) < NOTES {
            engine.event_in(guard, &[7], start, &[start, 0]);
            let change = |event: &mut Open<'_, 1, 2>| {
                event.set_words::<0, 1>(&[event.word(0) + 1]);
                Next::Keep
            };
            let kept = engine.step(guard, &[7], is(start), change, |_| ());
            let end = |_: &mut Open<'_, 1, 2>| Next::End(start);
            let ended = engine.step(guard, &[7], is(start + 1), end, |_| ());
            if (kept, ended) != (Some(Next::Keep), Some(Next::End(start))) {
                is_over.store(true, Ordering::Relaxed);
                panic!("it was hidden: {kept:?}, {ended:?}");
            }
            start += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!((engine.holders(), engine.pending_count()), (0, 0));
    let _seat = machine.pin(0);
    assert_eq!(engine.free(), 4);
    // A change would have hidden the event: this is why there are notes.
    let guard = &Numa::guard();
    engine.event_in(guard, &[7], 0, &[1, 0]);
    engine.update(guard, &[7], |_| {
        assert_eq!(
            engine.step(guard, &[7], |_| true, |_| Next::Keep, |_| ()),
            None
        );
        Verdict::Keep
    });
}
