// SPDX-License-Identifier: GPL-2.0

//! The threshold changes during other operations, at each of their atomic operations.

use super::on;
use crate::{
    engine::{hash::Seed, stats::Counter, Late},
    host::Host,
};
use kernel::hook::interrupted;
use std::{cell::Cell, rc::Rc};

type One = Host<1>;
type Engine = crate::engine::Engine<1, 1, One>;

const DELAY: u64 = 10_000;
/// A threshold that [`DELAY`] exceeds.
const LOW: u64 = 1_000;
/// A threshold that [`DELAY`] does not exceed.
const HIGH: u64 = 1_000_000;

fn engine(threshold: u64) -> Rc<Engine> {
    Rc::new(Engine::new(8, threshold, Seed::new(1, 2)).unwrap())
}

/// Performs an operation of [`DELAY`]; returns delay and threshold of its report.
fn operation(engine: &Engine) -> Option<(u64, u64)> {
    let mut reported = None;
    on::<One, _>(0, |guard| {
        engine.event_in(guard, &[1], 0, &[0]);
        let report = |late: &Late<1, 1>| reported = Some((late.delay, late.threshold));
        engine.event_out(guard, &[1], DELAY, |_| true, report);
    });
    reported
}

/// Runs `body` once for each of its atomic operations, with `interrupt` before that operation.
fn at_each_operation(
    threshold: u64,
    interrupt: impl Fn(&Engine) + Clone + 'static,
    body: impl Fn(&Engine),
    check: impl Fn(&Engine, usize),
) {
    for at in 0.. {
        let engine = engine(threshold);
        let operations = Rc::new(Cell::new(0));
        let hook = {
            let (engine, operations, interrupt) =
                (engine.clone(), operations.clone(), interrupt.clone());
            move || {
                if operations.replace(operations.get() + 1) == at {
                    interrupt(&engine);
                }
            }
        };
        interrupted(hook, || body(&engine));
        if operations.get() <= at {
            assert!(at > 0, "no operation was interrupted");
            break;
        }
        check(&engine, at);
    }
}

#[test]
fn two_concurrent_changes_leave_one_threshold() {
    for (outer, inner) in [(LOW, HIGH), (HIGH, LOW), (LOW, u64::MAX), (u64::MAX, LOW)] {
        at_each_operation(
            500,
            move |engine| engine.set_threshold(inner),
            |engine| engine.set_threshold(outer),
            |engine, at| {
                let threshold = engine.threshold();
                assert!([outer, inner].contains(&threshold));
                assert_eq!(
                    operation(engine).is_some(),
                    threshold < DELAY,
                    "threshold {threshold}; {inner} was set before operation {at} of setting {outer}"
                );
            },
        );
    }
}

#[test]
fn a_report_exceeds_its_threshold_even_during_a_change() {
    for (from, to) in [(HIGH, LOW), (LOW, HIGH), (u64::MAX, LOW), (LOW, u64::MAX)] {
        // An operation interrupts a change.
        at_each_operation(
            from,
            |engine| above(operation(engine)),
            |engine| engine.set_threshold(to),
            |engine, _| assert_eq!(engine.threshold(), to),
        );
        // A change interrupts an operation.
        at_each_operation(
            from,
            move |engine| engine.set_threshold(to),
            |engine| above(operation(engine)),
            |engine, _| {
                assert_eq!(engine.stats().total(Counter::Ended), 1);
                assert_eq!(engine.stats().summary().max, DELAY, "it is measured");
            },
        );
    }
}

fn above(reported: Option<(u64, u64)>) {
    if let Some((delay, threshold)) = reported {
        assert!(delay > threshold, "{delay} is reported for {threshold}");
    }
}

#[test]
fn the_largest_thresholds_report_nothing() {
    for none in [u64::MAX, i64::MAX as u64] {
        let engine = engine(none);
        assert_eq!(engine.threshold(), u64::MAX);
        assert_eq!(operation(&engine), None);
    }
}
