// SPDX-License-Identifier: GPL-2.0

//! Operations that were found in flight: their delays are lower bounds, and are counted separately.

use super::{on, Numa};
use crate::{
    engine::{hash::Seed, histogram, stats::Counter, Begin, Verdict, Why},
    host::Guard,
};

type Engine = crate::engine::Engine<1, 1, Numa>;

fn engine(threshold: u64) -> Engine {
    Engine::new(4, threshold, Seed::new(5, 6)).unwrap()
}

/// Returns the counters `ended` and `before_start_ended`, and the sum of the histogram.
fn counts(engine: &Engine) -> (u64, u64, u64) {
    let stats = engine.stats();
    let recorded = (0..histogram::BUCKETS).map(|at| stats.bucket(at)).sum();
    let total = |counter| stats.total(counter);
    (
        total(Counter::Ended),
        total(Counter::BeforeStartEnded),
        recorded,
    )
}

fn find(engine: &Engine, guard: &Guard, key: u64, start: u64) {
    let event = engine.event_in_found(guard, &[key], start, &[0]).unwrap();
    engine.put_ref(guard, event);
}

#[test]
fn the_delay_of_a_found_operation_is_a_bound_and_not_in_the_histogram() {
    on::<Numa, _>(0, |guard| {
        for (threshold, expected) in [(50, vec![(true, 90)]), (100, vec![])] {
            let engine = engine(threshold);
            find(&engine, guard, 1, 10);
            let mut late = Vec::new();
            engine.event_out(
                guard,
                &[1],
                100,
                |_| true,
                |l| late.push((l.found, l.delay)),
            );
            assert_eq!(late, expected);
            assert_eq!(counts(&engine), (1, 1, 0));
            // The delay of the next event in the same cell is exact.
            engine.event_in(guard, &[1], 10, &[0]);
            engine.event_out(guard, &[1], 100, |_| true, |l| assert!(!l.found));
            assert_eq!(counts(&engine), (2, 1, 1));
            assert_eq!(engine.stats().total(Counter::BeforeStart), 1);
        }
    });
}

#[test]
fn an_operation_stays_found_until_it_is_renewed() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(u64::MAX);
        find(&engine, guard, 1, 10);
        let pending = || {
            let mut found = Vec::new();
            engine
                .each_pending(|copy| {
                    found.push(copy.found);
                    Ok(())
                })
                .unwrap();
            found
        };
        engine.update(guard, &[1], |open| {
            assert!(open.was_found());
            open.set_data(&[7]);
            Verdict::Keep
        });
        assert_eq!(pending(), [true]);
        let mut timed_out = Vec::new();
        let report = |_: &Guard, late: &crate::engine::Late<1, 1>, _: &()| {
            timed_out.push((late.why, late.found, late.delay));
        };
        engine.expire(100, 50, |_| 50, || (), |_| (), report);
        assert_eq!(timed_out, [(Why::Timeout, true, 90)]);
        engine.update(guard, &[1], |_| Verdict::Renewed);
        assert_eq!(pending(), [false]);
        engine.event_out(guard, &[1], 100, |_| true, |_| ());
        assert_eq!(counts(&engine), (1, 0, 1));
    });
}

#[test]
fn a_later_start_replaces_a_found_operation_and_is_not_dropped_with_it() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(u64::MAX);
        let event = engine.event_in_found(guard, &[1], 10, &[0]).unwrap();
        assert!(engine.is_known(guard, &[1]) && !engine.is_known(guard, &[2]));
        let begun = engine.event_in_unique(guard, &[1], 20, &[1]);
        assert_eq!((begun, engine.pending_count()), (Begin::Started, 1));
        engine.drop_held(event);
        assert_eq!(engine.pending_count(), 1);
        let total = |counter| engine.stats().total(counter);
        assert_eq!((total(Counter::Replaced), total(Counter::Gone)), (1, 0));
        engine.event_out(guard, &[1], 30, |_| true, |_| ());
        assert_eq!(counts(&engine), (1, 0, 1));
        // The found event is dropped if it is live, even if it has timed out.
        let event = engine.event_in_found(guard, &[1], 10, &[0]).unwrap();
        engine.expire(100, 50, |_| 50, || (), |_| (), |_, _, ()| ());
        engine.drop_held(event);
        assert_eq!((engine.pending_count(), engine.free()), (0, 4));
        assert_eq!(total(Counter::Gone), 1);
    });
}

#[test]
fn an_event_that_is_being_changed_is_known() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(u64::MAX);
        engine.event_in(guard, &[1], 10, &[0]);
        engine.update(guard, &[1], |_| {
            assert!(engine.is_known(guard, &[1]));
            Verdict::Gone
        });
        assert!(!engine.is_known(guard, &[1]));
    });
}
