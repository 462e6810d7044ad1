// SPDX-License-Identifier: GPL-2.0

//! References: a cell is recycled exactly once, when its event has ended and no reference is left.
//! Also keys that can be live only once: of two concurrent starts, one event stays.

use crate::{
    engine::{
        held::{Lookup, Reference},
        Begin, Verdict,
    },
    event_model::{begin, end, end_why, engine, settled, Engine, CLAIM},
    machine::{fails, holds, source, Bound, Mutate, On},
};
use kernel::model::Change;
use loom::thread;

const EVENT: Mutate = source!("engine/event.rs");
const INDEX: Mutate = source!("freelist/index.rs");

fn lookup(engine: &Engine, key: u64) -> Option<Reference> {
    match engine.lookup(&On(0), &[key]) {
        Lookup::Found(held) => Some(held),
        Lookup::NotFound => None,
        Lookup::TooMany => panic!("too many"),
    }
}

/// Reads a held event, whose key, start and data are all the same.
fn check(engine: &Engine, held: &Reference, event: u64) {
    let copy = engine.view(held);
    assert_eq!(
        (copy.key, copy.start, copy.data),
        ([event], event, [event]),
        "another event"
    );
}

/// An event is held and read while it ends and another event needs its cell.
fn get_ref_and_recycle() {
    let engine = engine(1);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        assert_eq!(end(&other, 1, 7), Some(7), "an end is lost");
        begin(&other, 1, 8, 8)
    });
    if let Some(held) = lookup(&engine, 7) {
        check(&engine, &held, 7);
        engine.put_ref(&On(0), held);
    }
    if other.join().unwrap() == Begin::Started {
        assert_eq!(end(&engine, 0, 8), Some(8), "a live event is not found");
    }
    settled(&engine);
}

/// The last reference is returned while the event ends.
fn put_ref_and_end() {
    let engine = engine(1);
    let held = engine.event_in_held(&On(0), &[7], 7, &[7]).unwrap();
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 7));
    check(&engine, &held, 7);
    engine.put_ref(&On(0), held);
    assert_eq!(other.join().unwrap(), Some(7), "an end is lost");
    settled(&engine);
    assert_eq!(engine.holders(), 0);
}

/// Two threads return the last references to an event that has ended, one thread after taking
/// another reference.
fn two_put_ref() {
    let engine = engine(1);
    let held = engine.event_in_held(&On(0), &[7], 7, &[7]).unwrap();
    let theirs = engine.get_ref_again(&held).unwrap();
    end(&engine, 0, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        let again = other.get_ref_again(&theirs).unwrap();
        other.put_ref(&On(1), theirs);
        check(&other, &again, 7);
        other.put_ref(&On(1), again);
    });
    engine.put_ref(&On(0), held);
    other.join().unwrap();
    settled(&engine);
}

/// An event is ended by its key and, at the same time, by a reference.
fn held_end_and_end() {
    let engine = engine(1);
    let held = engine.event_in_held(&On(0), &[7], 7, &[7]).unwrap();
    let other = engine.clone();
    let other = thread::spawn(move || end_why(&other, 1, 7).is_some());
    let ours = engine.event_out_held(&On(0), &held, 1_000, |_| ());
    assert!(ours.is_some() != other.join().unwrap(), "not one winner");
    check(&engine, &held, 7);
    engine.put_ref(&On(0), held);
    settled(&engine);
}

/// An event ends while references are taken and returned. They must not make the end fail.
fn get_ref_and_end() {
    let engine = engine(2);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        if let Some(held) = lookup(&other, 7) {
            other.put_ref(&On(1), held);
        }
    });
    assert_eq!(end(&engine, 0, 7), Some(7), "an end is lost");
    other.join().unwrap();
    settled(&engine);
}

/// A reference is returned while the event is changed.
fn put_ref_and_update() {
    let engine = engine(1);
    let held = engine.event_in_held(&On(0), &[7], 7, &[7]).unwrap();
    let other = engine.clone();
    let other = thread::spawn(move || {
        let changed = other.update(&On(1), &[7], |_| Verdict::Keep);
        assert_eq!(changed, Some(Verdict::Keep), "a change is lost");
    });
    engine.put_ref(&On(0), held);
    other.join().unwrap();
    assert_eq!(engine.holders(), 0, "a reference is lost");
    assert_eq!(end(&engine, 0, 7), Some(7), "an end is lost");
    settled(&engine);
}

/// Two CPUs start the same key concurrently.
fn two_unique() {
    let engine = engine(2);
    let unique = |engine: &Engine, cpu: usize, start: u64| {
        let begun = engine.event_in_unique(&On(cpu), &[1], start, &[start]);
        assert_eq!(begun, Begin::Started);
    };
    let other = engine.clone();
    let other = thread::spawn(move || unique(&other, 1, 7));
    unique(&engine, 0, 8);
    other.join().unwrap();
    assert!(engine.pending_count() < 2, "both stay");
    assert_eq!(end(&engine, 0, 1), Some(8), "the later one has gone");
    assert_eq!(engine.pending_count(), 0);
    assert_eq!(engine.free(), 2, "a cell is lost");
}

pub(crate) const GET_REF: &str = "match self.state.cmpxchg(now, now.wrapping_add(REF), Acquire) {";
const PUT_REF: &str = "match self.state.cmpxchg(now, next, Full) {";
const ABANDON: &str = "if self.state.cmpxchg(now, now | ORPHAN, Release).is_ok() {";
const REPUBLISH: &str = "if self.state.cmpxchg(now, next, Release).is_ok() {";
const ORDER: &str = "self.state.xchg(next, Full);";

/// The events of a key are visited while another event starts, whose slot still has an old index.
fn visit_and_begin() {
    let engine = engine(2);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        let start = 8;
        other.event_in(&On(1), &[7], start, &[start])
    });
    let mut lasting = 0;
    engine.each_of(&On(0), &[7], |event| {
        lasting += u64::from(engine.view(event).start == 7);
        true
    });
    assert_eq!(lasting, 1, "a live event is not visited once");
    assert_eq!(other.join().unwrap(), Begin::Started);
    assert_eq!(engine.each_of(&On(0), &[7], |_| true), 2);
}

/// The store of a cell's slot in its link.
const KEEP: &str = "self.0.store(word, Relaxed);";

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("get_ref and recycle", Some(4), get_ref_and_recycle),
    ("put_ref and end", None, put_ref_and_end),
    ("two put_ref", None, two_put_ref),
    ("held end and end", None, held_end_and_end),
    ("get_ref and end", Some(3), get_ref_and_end),
    ("put_ref and update", None, put_ref_and_update),
    ("two unique", Some(3), two_unique),
    ("visit and begin", Some(3), visit_and_begin),
];

#[test]
fn an_event_is_visited_once() {
    holds("visit and begin", Some(3), visit_and_begin);
}

#[test]
fn an_event_is_visited_once_by_its_link() {
    let mutations = [INDEX(KEEP, Change::Skip)];
    fails(
        "visit and begin",
        "the place in the link",
        Some(3),
        &mutations,
        "a live event is not visited once",
        visit_and_begin,
    );
}

#[test]
fn a_held_cell_is_not_recycled() {
    holds("get_ref and recycle", Some(4), get_ref_and_recycle);
}

#[test]
fn a_held_cell_is_not_recycled_by_the_count() {
    let mutations = [EVENT(GET_REF, Change::Skip)];
    fails(
        "get_ref and recycle",
        "the reference",
        Some(4),
        &mutations,
        "",
        get_ref_and_recycle,
    );
}

#[test]
fn a_held_cell_is_not_recycled_by_the_exchange() {
    let mutations = [EVENT(GET_REF, Change::Split)];
    fails(
        "get_ref and recycle",
        "the exchange in get_ref",
        Some(4),
        &mutations,
        "",
        get_ref_and_recycle,
    );
}

#[test]
fn the_end_or_the_last_reference_recycles() {
    holds("put_ref and end", None, put_ref_and_end);
    holds("two put_ref", None, two_put_ref);
}

#[test]
fn the_end_or_the_last_reference_recycles_by_the_exchange() {
    for place in [PUT_REF, ABANDON] {
        let mutations = [EVENT(place, Change::Split)];
        fails(
            "put_ref and end",
            "an exchange",
            None,
            &mutations,
            "",
            put_ref_and_end,
        );
    }
    let mutations = [EVENT(PUT_REF, Change::Split)];
    fails(
        "two put_ref",
        "the exchange in put_ref",
        None,
        &mutations,
        "",
        two_put_ref,
    );
}

#[test]
fn an_end_by_key_or_an_end_by_reference_wins() {
    holds("held end and end", None, held_end_and_end);
}

#[test]
fn an_end_by_key_or_an_end_by_reference_wins_by_the_exchange() {
    let mutations = [EVENT(CLAIM, Change::Split)];
    fails(
        "held end and end",
        "the exchange in claim",
        None,
        &mutations,
        "not one winner",
        held_end_and_end,
    );
}

#[test]
fn an_end_is_not_lost_to_a_reference() {
    holds("get_ref and end", Some(3), get_ref_and_end);
}

#[test]
fn an_end_is_not_lost_to_a_reference_by_the_second_try() {
    let again = "let last = self.state.load(Relaxed);";
    let mutations = [EVENT(again, Change::Read(|state| state & !1))];
    fails(
        "get_ref and end",
        "the second try",
        Some(3),
        &mutations,
        "an end is lost",
        get_ref_and_end,
    );
}

#[test]
fn a_reference_is_not_lost_to_a_change() {
    holds("put_ref and update", None, put_ref_and_update);
}

#[test]
fn a_reference_is_not_lost_to_a_change_by_the_exchange() {
    let mutations = [EVENT(REPUBLISH, Change::Split)];
    fails(
        "put_ref and update",
        "the exchange in republish",
        None,
        &mutations,
        "",
        put_ref_and_update,
    );
}

#[test]
fn of_two_starts_of_a_unique_key_the_later_stays() {
    holds("two unique", Some(3), two_unique);
}

#[test]
fn of_two_starts_of_a_unique_key_the_later_stays_by_the_barrier() {
    let mutations = [EVENT(ORDER, Change::Acquire)];
    fails(
        "two unique",
        "the barrier",
        Some(3),
        &mutations,
        "both stay",
        two_unique,
    );
}
