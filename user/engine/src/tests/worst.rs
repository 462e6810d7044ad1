// SPDX-License-Identifier: GPL-2.0

//! `worst=1`: an end that exceeds the threshold is reported, and raises the threshold to its delay.

use super::Numa;
use crate::engine::{hash::Seed, Late, Why};
use std::thread;

type Engine = crate::engine::Engine<1, 1, Numa>;

fn engine(threshold: u64) -> Engine {
    Engine::new(1, threshold, Seed::new(5, 6)).unwrap()
}

/// Returns a late event from the time when the threshold was still 10.
fn late(why: Why, delay: u64) -> Late<1, 1> {
    Late {
        why,
        delay,
        start: 0,
        found: false,
        threshold: 10,
        key: [0],
        data: [0],
    }
}

/// Reports a late event; returns the threshold of the report, or `None` if it is not reported.
fn report(engine: &Engine, why: Why, delay: u64) -> Option<u64> {
    engine.raise_threshold(&late(why, delay))
}

#[test]
fn a_report_raises_the_threshold_to_its_delay() {
    let engine = engine(10);
    assert_eq!(report(&engine, Why::Threshold, 20), Some(10));
    assert_eq!(engine.threshold(), 20);
    // The event exceeded the old threshold, but another event raised the threshold first.
    assert_eq!(report(&engine, Why::Threshold, 15), None);
    assert_eq!(report(&engine, Why::Threshold, 20), None, "as bad");
    assert_eq!(report(&engine, Why::Threshold, 21), Some(20));
    assert_eq!(engine.threshold(), 21);
    engine.set_threshold(10);
    assert_eq!(report(&engine, Why::Threshold, 12), Some(10), "again");
    assert_eq!(engine.threshold(), 12);
}

#[test]
fn a_timeout_is_always_reported_and_only_its_end_raises_the_threshold() {
    let engine = engine(10);
    assert_eq!(report(&engine, Why::Timeout, 500), Some(10));
    assert_eq!(engine.threshold(), 10, "the delay is not known yet");
    assert_eq!(report(&engine, Why::LateEnd, 700), Some(10));
    assert_eq!(engine.threshold(), 700);
    assert_eq!(report(&engine, Why::LateEnd, 600), Some(10));
    assert_eq!(report(&engine, Why::LateEnd, 5), Some(10));
    assert_eq!(engine.threshold(), 700, "never lowered");
}

#[test]
fn reports_of_all_cpus_form_a_chain() {
    const EACH: u64 = 20_000;
    for round in 0..10 {
        let engine = engine(0);
        let reported = thread::scope(|scope| {
            let ends: Vec<_> = (0..4)
                .map(|cpu| {
                    let engine = &engine;
                    scope.spawn(move || {
                        // All delays grow at about the same pace, and some are equal.
                        let delays = (1..EACH).map(|n| n * 4 + (n * (cpu + 1 + round)) % 7);
                        let chain = delays.filter_map(|delay| {
                            let from = report(engine, Why::Threshold, delay)?;
                            Some((from, delay))
                        });
                        chain.collect::<Vec<_>>()
                    })
                })
                .collect();
            let ends = ends.into_iter().map(|end| end.join().unwrap());
            ends.flatten().collect::<Vec<_>>()
        });
        let mut chain = reported;
        chain.sort_unstable();
        let mut threshold = 0;
        for (from, delay) in chain {
            assert_eq!(from, threshold, "not the delay of the one before");
            assert!(delay > from);
            threshold = delay;
        }
        assert_eq!(threshold, engine.threshold());
    }
}
