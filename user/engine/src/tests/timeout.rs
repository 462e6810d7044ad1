// SPDX-License-Identifier: GPL-2.0

//! Timeouts: an event times out at most once in its life, while it is pending, and its end reports
//! that.

use super::{on, Numa};
use crate::{
    engine::{
        event::Event, freelist::Cell, hash::Seed, platform::Platform, stats::Counter, Begin, Ended,
        Late, Verdict, Why,
    },
    host::{Guard, Host, Machine},
};

type Engine = crate::engine::Engine<1, 1, Numa>;

fn engine(capacity: u32, threshold: u64) -> Engine {
    Engine::new(capacity, threshold, Seed::new(5, 6)).unwrap()
}

fn begin(engine: &Engine, guard: &Guard, key: u64, start: u64) {
    let begun = engine.event_in(guard, &[key], start, &[key]);
    assert_eq!(begun, Begin::Started);
}

/// Ends an event at `end`; returns reason, delay and threshold if the end is reported.
fn end(engine: &Engine, guard: &Guard, key: u64, end: u64) -> Option<(Why, u64, u64)> {
    let mut report = None;
    let late = |late: &Late<1, 1>| {
        assert_eq!(late.data, [key]);
        report = Some((late.why, late.delay, late.threshold));
    };
    assert!(engine.event_out(guard, &[key], end, |_| true, late));
    report
}

/// Returns the events that time out at `now`, by key (which is the data) and delay, and the start
/// of the oldest other event.
fn expire(engine: &Engine, now: u64, timeout: u64) -> (Vec<(u64, u64)>, Option<u64>) {
    let mut reported = Vec::new();
    let report = |_: &Guard, late: &Late<1, 1>, (): &()| {
        assert_eq!((late.why, late.threshold), (Why::Timeout, timeout));
        reported.push((late.data[0], late.delay));
    };
    let first = engine.expire(now, timeout, |_| timeout, || (), |_| (), report);
    reported.sort_unstable();
    (reported, first.map(|due| due - timeout))
}

#[test]
fn a_life_times_out_once() {
    let event = Event::<1, 1>::new();
    event.fill(&[1], 1, &[1]);
    event.publish();
    let life = event.life().unwrap();
    assert!(!life.has_timed_out());
    assert!(event.time_out(life));
    assert!(!event.time_out(life), "once");
    let late = event.life().unwrap();
    assert!(late.has_timed_out());
    assert!(!event.time_out(late), "once, whatever was seen");
    assert_eq!(event.peek().unwrap().0, late);
    // A caller that read the state before the timeout can still end the event, and learns of the
    // timeout.
    assert_eq!(event.claim(life), Some(late));
    assert_eq!(event.claim(late), None);
}

#[test]
fn a_life_does_not_time_out_after_its_end() {
    let event = Event::<1, 1>::new();
    let mut lives = Vec::new();
    for round in 0..100 {
        event.fill(&[round], round, &[round]);
        event.publish();
        let life = event.life().unwrap();
        assert!(!life.has_timed_out(), "a new event");
        for old in &lives {
            assert!(!event.time_out(*old), "of an earlier life");
            assert_eq!(event.claim(*old), None, "of an earlier life");
        }
        if round % 2 == 0 {
            assert!(event.time_out(life));
        }
        let last = event.claim(life).unwrap();
        assert_eq!(last.has_timed_out(), round % 2 == 0);
        assert!(!event.time_out(life), "after its end");
        lives.push(life);
    }
}

#[test]
fn each_event_that_is_old_enough_is_reported_once() {
    let _seat = Machine::new().pin(0);
    let engine = engine(10, u64::MAX);
    assert_eq!(expire(&engine, 100, 0), (vec![], None), "nothing is there");
    for key in 1..=4 {
        begin(&engine, &Numa::guard(), key, 100 * key);
    }
    assert_eq!(expire(&engine, 299, 200), (vec![], Some(100)));
    // An event times out at exactly the timeout.
    assert_eq!(expire(&engine, 300, 200), (vec![(1, 200)], Some(200)));
    assert_eq!(expire(&engine, 300, 200), (vec![], Some(200)), "once");
    assert_eq!(engine.pending_count(), 4, "they are still pending");
    let rest = vec![(2, 300), (3, 200)];
    assert_eq!(expire(&engine, 500, 200), (rest, Some(400)));
    // An event that started after the clock was read.
    assert_eq!(expire(&engine, 10, 200), (vec![], Some(400)));
    // With a shorter timeout, all events have timed out.
    assert_eq!(expire(&engine, 500, 1), (vec![(4, 100)], None));
    assert_eq!(expire(&engine, u64::MAX, 0), (vec![], None));
    assert_eq!(engine.stats().total(Counter::TimedOut), 4);
    assert_eq!(engine.stats().total(Counter::Late), 0);
    assert_eq!(engine.clear(), 4);
    assert_eq!(engine.stats().total(Counter::Late), 0, "cleared is no end");
}

#[test]
fn a_late_end_is_reported_whatever_the_threshold() {
    let _seat = Machine::new().pin(0);
    let guard = Numa::guard();
    for threshold in [0, 1_000, u64::MAX] {
        let engine = engine(10, threshold);
        begin(&engine, &guard, 1, 100);
        begin(&engine, &guard, 2, 150);
        assert_eq!(expire(&engine, 200, 100).0, [(1, 100)]);
        let late = end(&engine, &guard, 1, 250);
        assert_eq!(late, Some((Why::LateEnd, 150, threshold)));
        let other = (threshold == 0).then_some((Why::Threshold, 100, 0));
        assert_eq!(end(&engine, &guard, 2, 250), other, "it had not timed out");
        // An event of the same key, and probably in the same cell.
        begin(&engine, &guard, 1, 300);
        let other = (threshold == 0).then_some((Why::Threshold, 5, 0));
        assert_eq!(end(&engine, &guard, 1, 305), other, "a new event");
        let total = |counter| engine.stats().total(counter);
        assert_eq!((total(Counter::TimedOut), total(Counter::Late)), (1, 1));
        assert_eq!((total(Counter::Ended), total(Counter::Negative)), (3, 0));
    }
}

#[test]
fn a_late_end_is_reported_even_if_before_the_start() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(10, 0);
        begin(&engine, guard, 1, 100);
        begin(&engine, guard, 2, 150);
        assert_eq!(expire(&engine, 200, 100).0, [(1, 100)]);
        assert_eq!(end(&engine, guard, 1, 99), Some((Why::LateEnd, 0, 0)));
        assert_eq!(end(&engine, guard, 2, 99), None, "it had not timed out");
        let total = |counter| engine.stats().total(counter);
        assert_eq!((total(Counter::Late), total(Counter::Negative)), (1, 2));
    });
}

#[test]
fn a_changed_event_stays_timed_out_and_a_renewed_one_does_not() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(1, u64::MAX);
        let update = |verdict| engine.update(guard, &[1], |_| verdict);
        begin(&engine, guard, 1, 100);
        assert_eq!(expire(&engine, 200, 100).0, [(1, 100)]);
        assert_eq!(update(Verdict::Keep), Some(Verdict::Keep));
        assert_eq!(expire(&engine, 200, 100), (vec![], None), "the same event");
        assert_eq!(update(Verdict::Renewed), Some(Verdict::Renewed));
        assert_eq!(expire(&engine, 200, 100).0, [(1, 100)], "another event");
        assert_eq!(update(Verdict::Keep), Some(Verdict::Keep));
        let late = end(&engine, guard, 1, 300);
        assert_eq!(late, Some((Why::LateEnd, 200, u64::MAX)));
        // A new event in the only cell, after one that timed out.
        begin(&engine, guard, 1, 400);
        assert_eq!(expire(&engine, 401, 100), (vec![], Some(400)));
        assert_eq!(end(&engine, guard, 1, 450), None);
        let total = |counter| engine.stats().total(counter);
        assert_eq!((total(Counter::TimedOut), total(Counter::Late)), (2, 1));
    });
}

#[test]
fn an_event_that_is_being_changed_is_examined_again_soon() {
    on::<Numa, _>(0, |guard| {
        for verdict in [Verdict::Keep, Verdict::Renewed, Verdict::Gone] {
            let engine = engine(4, u64::MAX);
            begin(&engine, guard, 1, 100);
            begin(&engine, guard, 2, 150);
            let mut seen = None;
            let done = engine.update(guard, &[1], |_| {
                seen = Some(expire(&engine, 210, 100));
                verdict
            });
            assert_eq!(done, Some(verdict));
            // The next search must follow at once, whatever the timeout of the other event.
            assert_eq!(seen, Some((vec![], Some(110))), "{verdict:?}");
            let (due, left) = match verdict {
                Verdict::Keep | Verdict::Renewed => (vec![(1, 110)], 2),
                Verdict::Gone => (vec![], 1),
            };
            assert_eq!(expire(&engine, 210, 100), (due, Some(150)), "{verdict:?}");
            assert_eq!(engine.clear(), left);
            assert_eq!(expire(&engine, 300, 100), (vec![], None), "{verdict:?}");
        }
    });
}

#[test]
fn a_timed_out_event_that_is_being_changed_is_not_waited_for() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(4, u64::MAX);
        begin(&engine, guard, 1, 100);
        assert_eq!(expire(&engine, 200, 100).0, [(1, 100)]);
        engine.update(guard, &[1], |_| {
            assert_eq!(expire(&engine, 210, 100), (vec![], None));
            Verdict::Keep
        });
    });
}

#[test]
fn other_tasks_may_run_while_a_large_pool_is_searched() {
    let _seat = Machine::new().pin(0);
    let engine = crate::engine::Engine::<1, 1, Host<1>>::new(1_000, 0, Seed::new(5, 6)).unwrap();
    let relaxed = |live| {
        for key in engine.pending_count()..live {
            let begun = engine.event_in(&Host::<1>::guard(), &[key], key, &[key]);
            assert_eq!(begun, Begin::Started);
        }
        let mut relaxed = 0;
        engine.expire(live, 1, |_| live, || relaxed += 1, |_| (), |_, _, ()| ());
        relaxed
    };
    assert_eq!(relaxed(0), 0, "what was never in use is not looked at");
    assert_eq!(relaxed(600), 3 + 1, "and after the one that is due");
    assert_eq!(relaxed(1_000), 4, "that one has timed out");
}

#[test]
fn an_event_that_ends_during_its_visit_is_not_reported() {
    on::<Numa, _>(0, |guard| {
        let engine = engine(3, u64::MAX);
        for key in 1..=3 {
            begin(&engine, guard, key, 100);
        }
        let mut looked = Vec::new();
        let mut reported = Vec::new();
        engine.expire(
            200,
            50,
            |_| 50,
            || (),
            |event| {
                let key = event.data[0];
                looked.push(key);
                match key {
                    // The event ends during the visit, and so does the next one, whose key is then
                    // started again.
                    1 => assert_eq!(end(&engine, guard, 1, 150), None),
                    2 => {
                        assert_eq!(end(&engine, guard, 2, 150), None);
                        begin(&engine, guard, 2, 150);
                    }
                    _ => (),
                }
                key * 10
            },
            |_, late, &seen| reported.push((late.data[0], seen)),
        );
        looked.sort_unstable();
        assert_eq!(looked, [1, 2, 3]);
        assert_eq!(reported, [(3, 30)]);
        assert_eq!(engine.stats().total(Counter::TimedOut), 1);
    });
}

/// Lets the event of key 1 time out at 200, and calls `meanwhile` during the report. Returns the
/// result of a following end.
fn end_after(meanwhile: impl Fn(&Engine, &Guard)) -> Option<Ended> {
    let _seat = Machine::new().pin(0);
    let (engine, guard) = (engine(2, u64::MAX), Numa::guard());
    begin(&engine, &guard, 1, 100);
    let mut reports = 0;
    let report = |guard: &Guard, _: &Late<1, 1>, (): &()| {
        meanwhile(&engine, guard);
        reports += 1;
    };
    engine.expire(200, 100, |_| 100, || (), |_| (), report);
    assert_eq!(reports, 1);
    tell(&engine, &guard, 1)
}

fn tell(engine: &Engine, guard: &Guard, key: u64) -> Option<Ended> {
    engine.event_out_if_known(guard, &[key], 300, |_| true, |_| ())
}

#[test]
fn an_end_inside_a_report_is_known_as_such() {
    let left = end_after(|engine, guard| {
        assert_eq!(tell(engine, guard, 1), Some(Ended::Reporting));
        assert_eq!(tell(engine, guard, 1), None, "once");
        // Its cell is free. Another event gets it.
        for _ in 0..3 {
            begin(engine, guard, 2, 150);
            begin(engine, guard, 3, 150);
            assert_eq!(tell(engine, guard, 2), Some(Ended::Over));
            assert_eq!(tell(engine, guard, 3), Some(Ended::Over));
        }
    });
    assert_eq!(left, None);
}

#[test]
fn an_end_after_a_report_is_over() {
    assert_eq!(end_after(|_, _| ()), Some(Ended::Over));
}

#[test]
fn an_end_by_reference_inside_a_report_is_known_as_such() {
    let left = end_after(|engine, guard| {
        let crate::engine::held::Lookup::Found(event) = engine.lookup(guard, &[1]) else {
            panic!("it is live");
        };
        let ended = engine.event_out_held(guard, &event, 300, |_| ());
        assert_eq!(ended, Some(Ended::Reporting));
        engine.put_ref(guard, event);
        assert_eq!(engine.free(), 2);
    });
    assert_eq!(left, None);
}

#[test]
fn a_change_inside_a_report_keeps_the_mark_and_a_new_event_does_not() {
    let change = |verdict| {
        end_after(move |engine, guard| {
            assert_eq!(engine.update(guard, &[1], |_| verdict), Some(verdict));
        })
    };
    // The report is over, but a changed event keeps the mark until its end.
    assert_eq!(change(Verdict::Keep), Some(Ended::Reporting));
    assert_eq!(change(Verdict::Renewed), Some(Ended::Over));
    assert_eq!(change(Verdict::Gone), None);
}
