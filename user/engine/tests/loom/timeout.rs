// SPDX-License-Identifier: GPL-2.0

//! Timeouts: at most one in the life of an event, only of the intended event, and never in place of
//! its end.

use crate::{
    engine::{stats::Counter, Ended, Verdict, Why},
    event_model::{begin, end_why, engine, settled, Engine, CLAIM, ONE_LIFE, PUBLISH},
    machine::{fails, holds, source, Bound, Mutate, On},
};
use kernel::model::Change;
use loom::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
};
use std::sync::Arc;

const EVENT: Mutate = source!("engine/event.rs");

/// The time of the searches, and of the ends.
const NOW: u64 = 1_000;

/// Expires events that started at `oldest` or before; returns the data of the events that have
/// timed out.
fn expire(engine: &Engine, oldest: u64) -> Vec<u64> {
    search(engine, oldest).0
}

/// Expires events; also returns when the next one may time out.
fn search(engine: &Engine, oldest: u64) -> (Vec<u64>, Option<u64>) {
    let mut reported = Vec::new();
    let first = engine.expire(
        NOW,
        NOW - oldest,
        |_| NOW - oldest,
        || (),
        |_| (),
        |_, late, ()| {
            assert_eq!(late.why, Why::Timeout);
            assert_eq!(
                late.delay,
                NOW - late.data[0],
                "start and data of two events"
            );
            reported.push(late.data[0]);
        },
    );
    (reported, first)
}

/// Checks that the ends and the searches agree on how many events timed out, and that all have
/// ended.
fn agreed(engine: &Engine, reported: usize, late: usize) {
    settled(engine);
    let total = |counter| engine.stats().total(counter);
    assert_eq!(total(Counter::TimedOut), reported as u64);
    assert_eq!(total(Counter::Late), late as u64);
    assert_eq!(reported, late, "timed out and not late, or the reverse");
}

/// The reason that the end of an event must report.
fn why(reported: bool) -> Why {
    if reported {
        Why::LateEnd
    } else {
        Why::Threshold
    }
}

/// An event ends while it times out.
fn time_out_and_end() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let other = engine.clone();
    let other = thread::spawn(move || end_why(&other, 1, 1));
    let reported = expire(&engine, 7);
    assert!(reported.is_empty() || reported == [7], "another event");
    let (data, said) = other.join().unwrap().expect("an end is lost");
    assert_eq!(data, 7, "another event's data");
    assert_eq!(said, why(!reported.is_empty()), "why of the end");
    agreed(&engine, reported.len(), usize::from(said == Why::LateEnd));
}

/// Two CPUs end the same key while its event times out.
fn time_out_and_two_ends() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let ends: Vec<_> = (0..2)
        .map(|cpu| {
            let engine = engine.clone();
            thread::spawn(move || end_why(&engine, cpu, 1))
        })
        .collect();
    let reported = expire(&engine, 7);
    let ends: Vec<_> = ends
        .into_iter()
        .filter_map(|end| end.join().unwrap())
        .collect();
    assert_eq!(ends, [(7, why(!reported.is_empty()))], "not one winner");
    agreed(&engine, reported.len(), reported.len());
}

/// All events are cleared while an event times out.
fn time_out_and_clear() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let other = engine.clone();
    let other = thread::spawn(move || expire(&other, 7));
    assert_eq!(engine.clear(), 1, "an event is not cleared");
    assert!(other.join().unwrap().len() <= 1);
    settled(&engine);
}

/// The cell of an event goes to a younger event while the first one times out.
fn time_out_and_recycle() {
    let engine = engine(1);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        let ended = end_why(&other, 1, 7);
        begin(&other, 1, 8, 8);
        ended
    });
    let reported = expire(&engine, 7);
    assert!(reported.is_empty() || reported == [7], "another event");
    let ended = other.join().unwrap().expect("an end is lost");
    assert_eq!(ended, (7, why(!reported.is_empty())), "why of the first");
    let ended = end_why(&engine, 0, 8).expect("an end is lost");
    assert_eq!(ended, (8, Why::Threshold), "a time-out of another event");
    agreed(&engine, reported.len(), reported.len());
}

/// The cell of an event goes to another event while the first one times out; both are old enough.
fn time_out_and_recycle_old() {
    let engine = engine(1);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        let ended = end_why(&other, 1, 7);
        begin(&other, 1, 8, 8);
        ended
    });
    let reported = expire(&engine, 8);
    assert!(reported.len() <= 1);
    let ended = other.join().unwrap().expect("an end is lost");
    assert_eq!(ended, (7, why(reported == [7])), "why of the first");
    let ended = end_why(&engine, 0, 8).expect("an end is lost");
    assert_eq!(ended, (8, why(reported == [8])), "why of the second");
    agreed(&engine, reported.len(), reported.len());
}

/// An event is changed while it times out, and stays the same event.
fn time_out_and_update() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        other.update(&On(1), &[1], |event| {
            event.set_start(8);
            event.set_data(&[8]);
            Verdict::Keep
        })
    });
    let (mut reported, next) = search(&engine, 8);
    assert!(
        reported.len() == 1 || next == Some(NOW),
        "passed over for long"
    );
    let changed = other.join().unwrap();
    assert_eq!(changed, Some(Verdict::Keep), "a change is lost");
    reported.extend(expire(&engine, 8));
    assert_eq!(reported.len(), 1, "not reported once");
    let ended = end_why(&engine, 0, 1).expect("an end is lost");
    assert_eq!(ended, (8, Why::LateEnd), "the mark is lost");
    agreed(&engine, 1, 1);
}

/// Two searches run concurrently.
fn two_searches() {
    let engine = engine(2);
    begin(&engine, 0, 7, 7);
    begin(&engine, 0, 8, 8);
    let other = engine.clone();
    let other = thread::spawn(move || expire(&other, 8));
    let mut reported = expire(&engine, 8);
    reported.extend(other.join().unwrap());
    reported.sort_unstable();
    assert_eq!(reported, [7, 8], "not each once");
    for key in [7, 8] {
        assert_eq!(end_why(&engine, 0, key), Some((key, Why::LateEnd)));
    }
    agreed(&engine, 2, 2);
}

/// The object that an event stands for, used by its owner and by the report of its timeout.
#[derive(Default)]
struct Object {
    reports: AtomicU64,
    freed: AtomicBool,
}

/// Ends a key, and frees its object if no report of its event is running or will start. Returns the
/// result of the end, and the number of reports so far.
fn end_and_free(engine: &Engine, cpu: usize, key: u64, object: &Object) -> (Ended, u64) {
    let ended = engine.event_out_if_known(&On(cpu), &[key], 1_000, |_| true, |_| ());
    let ended = ended.expect("an end is lost");
    let reports = object.reports.load(Relaxed);
    if ended == Ended::Over {
        object.freed.store(true, Relaxed);
    }
    (ended, reports)
}

/// Expires events that started at `oldest` or before; the reports use the objects of the events.
fn expire_and_use(engine: &Engine, oldest: u64, object: &Object) -> u64 {
    let mut reports = 0;
    engine.expire(
        NOW,
        NOW - oldest,
        |_| NOW - oldest,
        || (),
        |_| (),
        |_, _, ()| {
            assert!(!object.freed.load(Relaxed), "a report begins after the end");
            object.reports.fetch_add(1, Relaxed);
            assert!(!object.freed.load(Relaxed), "a report runs after the end");
            reports += 1;
        },
    );
    reports
}

/// The owner of an event frees its object once an end allows it.
fn time_out_and_free() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let object = Arc::new(Object::default());
    let (other, theirs) = (engine.clone(), object.clone());
    let other = thread::spawn(move || end_and_free(&other, 1, 1, &theirs));
    let reports = expire_and_use(&engine, 7, &object);
    let (ended, seen) = other.join().unwrap();
    if ended == Ended::Over {
        assert_eq!(seen, reports, "a report is over, but is not seen");
    }
    agreed(&engine, reports as usize, reports as usize);
}

/// While the event times out, another CPU ends it by reference, frees the object if the end allows
/// this, and returns the reference.
fn time_out_and_free_held() {
    let engine = engine(1);
    let held = engine.event_in_held(&On(0), &[1], 7, &[7]).unwrap();
    let object = Arc::new(Object::default());
    let (other, theirs) = (engine.clone(), object.clone());
    let other = thread::spawn(move || {
        let ended = other.event_out_held(&On(1), &held, 1_000, |_| ());
        let ended = ended.expect("an end is lost");
        let reports = theirs.reports.load(Relaxed);
        if ended == Ended::Over {
            theirs.freed.store(true, Relaxed);
        }
        other.put_ref(&On(1), held);
        (ended, reports)
    });
    let reports = expire_and_use(&engine, 7, &object);
    let (ended, seen) = other.join().unwrap();
    if ended == Ended::Over {
        assert_eq!(seen, reports, "a report is over, but is not seen");
    }
    agreed(&engine, reports as usize, reports as usize);
}

/// While an event is reported, its cell goes to another event, which times out in another search.
fn report_and_recycle() {
    let engine = engine(1);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        end_why(&other, 1, 7).expect("an end is lost");
        begin(&other, 1, 8, 8);
        let (mut ended, inside) = (None, other.clone());
        other.expire(
            NOW,
            NOW - 8,
            |_| NOW - 8,
            || (),
            |_| (),
            |_, late, ()| {
                assert_eq!(late.data, [8], "another event");
                ended = inside.event_out_if_known(&On(1), &[8], 1_000, |_| true, |_| ());
            },
        );
        ended
    });
    expire(&engine, 7);
    let ended = other.join().unwrap();
    assert_eq!(ended, Some(Ended::Reporting), "the mark of another report");
    settled(&engine);
}

/// The cell of a reported event goes to an event that is not reported.
fn recycle_after_report() {
    let engine = engine(1);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        end_why(&other, 1, 7).expect("an end is lost");
        begin(&other, 1, 8, 8);
        let ended = other.event_out_if_known(&On(1), &[8], 1_000, |_| true, |_| ());
        assert_eq!(ended, Some(Ended::Over), "the mark of an earlier event");
    });
    expire(&engine, 7);
    other.join().unwrap();
    settled(&engine);
}

/// The exchange at the end of a report.
const UNMARK: &str = "self.state.cmpxchg(now, now & !REPORTING, Release)";
/// The exchange in the second try of a claim.
const CLAIM_AGAIN: &str = "if self.state.cmpxchg(last, taken, Acquire).is_ok() {";

/// The first load of a cell's state in a search.
const QUICK_CHECK: &str = "let seen = self.state.load(Acquire);";
const TIME_OUT: &str = "self.state.cmpxchg(now, now | IN_REPORT, Release)";
/// The load in the second try of a claim; with `OVER`, it finds that the life is over.
const AGAIN: &str = "let last = self.state.load(Relaxed);";
const OVER: Change = Change::Read(|state| state & !1);

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("time-out and end", None, time_out_and_end),
    ("time-out and two ends", Some(3), time_out_and_two_ends),
    ("time-out and clear", None, time_out_and_clear),
    ("time-out and recycle", Some(4), time_out_and_recycle),
    (
        "time-out and recycle, old",
        Some(4),
        time_out_and_recycle_old,
    ),
    ("time-out and update", Some(4), time_out_and_update),
    ("two searches", Some(3), two_searches),
    ("time-out and free", Some(4), time_out_and_free),
    ("time-out and free, held", Some(4), time_out_and_free_held),
    ("report and recycle", Some(3), report_and_recycle),
    ("recycle after report", Some(3), recycle_after_report),
];

#[test]
fn an_end_is_not_lost_to_a_timeout() {
    holds("time-out and end", None, time_out_and_end);
    holds("time-out and two ends", Some(3), time_out_and_two_ends);
    holds("time-out and clear", None, time_out_and_clear);
}

#[test]
fn an_end_is_not_lost_to_a_timeout_by_the_second_try() {
    let mutations = [EVENT(AGAIN, OVER)];
    fails(
        "time-out and end",
        "the second try",
        None,
        &mutations,
        "an end is lost",
        time_out_and_end,
    );
}

#[test]
fn clear_wins_against_a_timeout_by_the_exchange() {
    let mutations = [EVENT(TIME_OUT, Change::Split)];
    fails(
        "time-out and clear",
        "the exchange in time_out",
        None,
        &mutations,
        "something is live",
        time_out_and_clear,
    );
}

#[test]
fn an_end_knows_of_the_timeout_by_the_exchange() {
    let mutations = [EVENT(TIME_OUT, Change::Split)];
    fails(
        "time-out and end",
        "the exchange in time_out",
        None,
        &mutations,
        "why of the end",
        time_out_and_end,
    );
}

#[test]
fn an_end_wins_against_a_timeout_by_the_exchange() {
    let mutations = [EVENT(CLAIM, Change::Split)];
    fails(
        "time-out and end",
        "the exchange in claim",
        None,
        &mutations,
        "",
        time_out_and_end,
    );
}

#[test]
fn the_intended_event_times_out() {
    holds("time-out and recycle", Some(4), time_out_and_recycle);
    holds(
        "time-out and recycle, old",
        Some(4),
        time_out_and_recycle_old,
    );
}

#[test]
fn the_intended_event_times_out_by_the_generation() {
    let mutations = [EVENT(PUBLISH, ONE_LIFE)];
    fails(
        "time-out and recycle",
        "the generation",
        Some(4),
        &mutations,
        "",
        time_out_and_recycle,
    );
}

#[test]
fn the_intended_event_times_out_by_release() {
    let mutations = [EVENT(PUBLISH, Change::Relax)];
    fails(
        "time-out and recycle",
        "release in publish",
        Some(4),
        &mutations,
        "",
        time_out_and_recycle,
    );
}

#[test]
fn the_intended_event_times_out_by_acquire() {
    let mutations = [EVENT(QUICK_CHECK, Change::Relax)];
    fails(
        "time-out and recycle",
        "acquire in quick_check",
        Some(4),
        &mutations,
        "",
        time_out_and_recycle,
    );
}

#[test]
fn the_intended_event_times_out_by_the_exchange() {
    let mutations = [EVENT(TIME_OUT, Change::Split)];
    fails(
        "time-out and recycle",
        "the exchange in time_out",
        Some(4),
        &mutations,
        "",
        time_out_and_recycle,
    );
}

#[test]
fn a_new_event_has_not_timed_out_because_it_is_renewed() {
    let mutations = [EVENT(PUBLISH, Change::Write(|state| state | 2))];
    fails(
        "time-out and recycle",
        "taking off the mark",
        Some(4),
        &mutations,
        "why of the first",
        time_out_and_recycle,
    );
}

#[test]
fn a_changed_event_times_out_once() {
    holds("time-out and update", Some(4), time_out_and_update);
}

#[test]
fn a_changed_event_times_out_once_by_the_mark() {
    let mutations = [EVENT(PUBLISH, Change::Write(|state| state & !2))];
    fails(
        "time-out and update",
        "the mark",
        Some(4),
        &mutations,
        "not reported once",
        time_out_and_update,
    );
}

#[test]
fn a_changed_event_is_not_passed_over_by_the_changing_bit() {
    let mutations = [EVENT(CLAIM, Change::Write(|state| state & !8))];
    fails(
        "time-out and update",
        "the bit of a change",
        Some(4),
        &mutations,
        "passed over for long",
        time_out_and_update,
    );
}

#[test]
fn a_change_is_not_lost_to_a_timeout_by_the_second_try() {
    let mutations = [EVENT(AGAIN, OVER)];
    fails(
        "time-out and update",
        "the second try",
        Some(4),
        &mutations,
        "a change is lost",
        time_out_and_update,
    );
}

#[test]
fn of_two_searches_one_reports() {
    holds("two searches", Some(3), two_searches);
}

#[test]
fn of_two_searches_one_reports_by_the_exchange() {
    let mutations = [EVENT(TIME_OUT, Change::Split)];
    fails(
        "two searches",
        "the exchange in time_out",
        Some(3),
        &mutations,
        "not each once",
        two_searches,
    );
}

#[test]
fn no_report_starts_or_runs_after_an_end_that_is_over() {
    holds("time-out and free", Some(4), time_out_and_free);
    holds("time-out and free, held", Some(4), time_out_and_free_held);
}

#[test]
fn no_report_starts_or_runs_after_an_end_by_the_mark() {
    let mutations = [EVENT(TIME_OUT, Change::Write(|state| state & !0x1000))];
    fails(
        "time-out and free",
        "the mark of a report",
        Some(4),
        &mutations,
        // Which of the three assertions fails first depends on the order in which loom tries runs.
        "a report",
        time_out_and_free,
    );
    fails(
        "time-out and free, held",
        "the mark of a report",
        Some(4),
        &mutations,
        // Which of the three assertions fails first depends on the order in which loom tries runs.
        "a report",
        time_out_and_free_held,
    );
}

#[test]
fn a_report_that_is_over_is_seen_by_release() {
    let mutations = [EVENT(UNMARK, Change::Relax)];
    fails(
        "time-out and free",
        "release in has_reported",
        Some(4),
        &mutations,
        "a report is over, but is not seen",
        time_out_and_free,
    );
}

#[test]
fn a_report_that_is_over_is_seen_by_acquire() {
    let mutations = [EVENT(CLAIM_AGAIN, Change::Relax)];
    fails(
        "time-out and free",
        "acquire in the second try",
        Some(4),
        &mutations,
        "a report is over, but is not seen",
        time_out_and_free,
    );
}

#[test]
fn an_end_is_not_lost_to_the_end_of_a_report_by_the_exchange() {
    let mutations = [EVENT(UNMARK, Change::Split)];
    fails(
        "time-out and free",
        "the exchange in has_reported",
        Some(4),
        &mutations,
        "something is live",
        time_out_and_free,
    );
}

#[test]
fn a_report_leaves_later_events_of_its_cell_alone() {
    holds("report and recycle", Some(3), report_and_recycle);
    holds("recycle after report", Some(3), recycle_after_report);
}

#[test]
fn a_report_leaves_later_events_of_its_cell_alone_by_the_generation() {
    let mutations = [EVENT(PUBLISH, ONE_LIFE)];
    fails(
        "report and recycle",
        "the generation",
        Some(3),
        &mutations,
        "the mark of another report",
        report_and_recycle,
    );
}

#[test]
fn a_new_event_is_not_reported_because_it_is_renewed() {
    let mutations = [EVENT(PUBLISH, Change::Write(|state| state | 0x1000))];
    fails(
        "recycle after report",
        "taking off the mark of a report",
        Some(3),
        &mutations,
        "the mark of an earlier event",
        recycle_after_report,
    );
}
