// SPDX-License-Identifier: GPL-2.0

//! Renaming a live event: it is always one event, even for searches for either key.

use crate::{
    engine::{held::Lookup, stats::Counter, Verdict, Why},
    event_model::{
        begin, end, end_why, engine, settled, twins, Engine, CLAIM, FILL_KEY, ONE_LIFE, PEEK_DATA,
        PEEK_KEY, PEEK_START, PUBLISH, SET_START,
    },
    machine::{fails, holds, source, Bound, Mutate, On},
};
use kernel::model::Change;
use loom::thread;

const EVENT: Mutate = source!("engine/event.rs");

/// Gives the event of key `from` the key `to`, which becomes its start and data, too.
fn rename(engine: &Engine, cpu: usize, from: u64, to: u64) -> bool {
    rename_by(engine, cpu, from, to, Verdict::Keep)
}

fn rename_by(engine: &Engine, cpu: usize, from: u64, to: u64, verdict: Verdict) -> bool {
    let renamed = engine.rename(&On(cpu), &[from], &[to], |event| {
        assert_eq!(event.data(), [event.start()], "a mixture of two events");
        event.set_start(to);
        event.set_data(&[to]);
        verdict
    });
    assert!(renamed.is_none_or(|decided| decided == verdict));
    renamed.is_some()
}

/// An event gets another key while it is ended by its old key.
fn old_key() {
    let engine = engine(2);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 1));
    let renamed = rename(&engine, 0, 1, 2);
    let theirs = other.join().unwrap();
    assert!(renamed != theirs.is_some(), "not one winner");
    let left = end(&engine, 0, 2);
    assert_eq!(left, renamed.then_some(2), "a live event is not found");
    settled(&engine);
}

/// An event gets another key while another CPU ends that key: the event is not found yet, or found
/// completely.
fn new_key() {
    let engine = engine(2);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 2));
    assert!(rename(&engine, 0, 1, 2), "a change is lost");
    let theirs = other.join().unwrap();
    let left = end(&engine, 0, 2);
    assert!(theirs.is_some() != left.is_some(), "not one winner");
    assert_eq!(theirs.or(left), Some(2), "data from before the change");
    assert_eq!(end(&engine, 0, 1), None, "an event has two keys");
    settled(&engine);
}

/// The two keys have the same tag, so that a search can find the event through the slot it has just
/// left.
fn left_slot() {
    let engine = engine(2);
    let (key, twin) = twins();
    begin(&engine, 0, key, key);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, twin));
    assert!(rename(&engine, 0, key, twin), "a change is lost");
    let theirs = other.join().unwrap();
    // The thread that ended the event has freed only the event's slot: the next two events are
    // found.
    let left = theirs.or_else(|| end(&engine, 0, twin));
    assert_eq!(left, Some(twin), "a live event is not found");
    for key in [key, twin] {
        begin(&engine, 0, key, key);
    }
    for key in [key, twin] {
        assert_eq!(end(&engine, 0, key), Some(key), "a live event is not found");
    }
    settled(&engine);
}

/// Two CPUs rename one event.
fn two_names() {
    let engine = engine(2);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || rename(&other, 1, 1, 2));
    let ours = rename(&engine, 0, 1, 3);
    let theirs = other.join().unwrap();
    assert!(ours != theirs, "not one winner");
    assert_eq!(end(&engine, 0, 2), theirs.then_some(2), "the wrong key");
    assert_eq!(end(&engine, 0, 3), ours.then_some(3), "the wrong key");
    settled(&engine);
}

/// The event is dropped during the rename, while another CPU ends it.
fn dropped() {
    let engine = engine(1);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 1));
    let dropped = rename_by(&engine, 0, 1, 2, Verdict::Gone);
    assert!(dropped != other.join().unwrap().is_some(), "not one winner");
    let gone = engine.stats().total(Counter::Gone);
    assert_eq!(gone, u64::from(dropped), "the count of those that are gone");
    settled(&engine);
}

/// The event is copied during the rename: the copy is entirely the old or entirely the new event.
fn copied() {
    let engine = engine(1);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || rename(&other, 1, 1, 2));
    let seen = engine.each_pending(|copy| {
        assert!(
            copy.key == copy.data && copy.key == [copy.start],
            "a mixture of before and after"
        );
        Ok(())
    });
    assert!(seen.is_ok());
    assert!(other.join().unwrap(), "a change is lost");
    assert_eq!(end(&engine, 0, 2), Some(2), "a live event is not found");
    settled(&engine);
}

/// A reference to the event is taken by the old key, and returned.
fn held() {
    let engine = engine(1);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || rename(&other, 1, 1, 2));
    if let Lookup::Found(held) = engine.lookup(&On(0), &[1]) {
        engine.put_ref(&On(0), held);
    }
    assert!(other.join().unwrap(), "a change is lost");
    assert_eq!(engine.holders(), 0, "a reference is lost");
    assert_eq!(end(&engine, 0, 2), Some(2), "a live event is not found");
    settled(&engine);
}

/// The event times out during the rename, at most once, and its end reports that.
fn timed_out() {
    const NOW: u64 = 1_000;
    let engine = engine(1);
    begin(&engine, 0, 1, 1);
    let other = engine.clone();
    let other = thread::spawn(move || rename(&other, 1, 1, 2));
    let mut reported = 0;
    engine.expire(
        NOW,
        NOW - 2,
        |_| NOW - 2,
        || (),
        |_| (),
        |_, late, ()| {
            assert_eq!(late.key, late.data, "a mixture of before and after");
            reported += 1;
        },
    );
    assert!(other.join().unwrap(), "a change is lost");
    let (data, why) = end_why(&engine, 0, 2).expect("a live event is not found");
    assert_eq!(data, 2);
    let timed_out = u64::from(why == Why::LateEnd);
    assert_eq!(
        reported, timed_out,
        "timed out and not late, or the reverse"
    );
    settled(&engine);
}

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("old key", Some(3), old_key),
    ("new key", Some(3), new_key),
    ("left slot", Some(3), left_slot),
    ("two names", Some(3), two_names),
    ("dropped", Some(3), dropped),
    ("copied", Some(4), copied),
    ("held while renamed", Some(3), held),
    ("timed out while renamed", Some(3), timed_out),
];

#[test]
fn a_renamed_event_has_one_winner() {
    holds("old key", Some(3), old_key);
    holds("two names", Some(3), two_names);
    holds("dropped", Some(3), dropped);
}

#[test]
fn a_renamed_event_has_one_winner_by_the_exchange() {
    for (name, model) in [("old key", old_key as fn()), ("two names", two_names)] {
        let mutations = [EVENT(CLAIM, Change::Split)];
        fails(
            name,
            "the exchange in claim",
            Some(3),
            &mutations,
            "",
            model,
        );
    }
}

#[test]
fn a_renamed_event_is_found_whole() {
    holds("new key", Some(3), new_key);
    holds("left slot", Some(3), left_slot);
}

#[test]
fn a_renamed_event_is_found_whole_by_release() {
    let mutations = [EVENT(PUBLISH, Change::Relax)];
    fails(
        "left slot",
        "release in publish",
        Some(3),
        &mutations,
        "",
        left_slot,
    );
}

#[test]
fn a_copy_of_a_renamed_event_is_of_before_or_after() {
    holds("copied", Some(4), copied);
}

#[test]
fn a_copy_of_a_renamed_event_is_of_before_or_after_by_acquire() {
    let mutations = [
        EVENT(PEEK_START, Change::Relax),
        EVENT(PEEK_KEY, Change::Relax),
        EVENT(PEEK_DATA, Change::Relax),
    ];
    fails(
        "copied",
        "acquire in peek",
        Some(4),
        &mutations,
        "a mixture",
        copied,
    );
}

#[test]
fn a_copy_of_a_renamed_event_is_of_before_or_after_by_release() {
    let mutations = [
        EVENT(FILL_KEY, Change::Relax),
        EVENT(SET_START, Change::Relax),
    ];
    fails(
        "copied",
        "release of the key",
        Some(4),
        &mutations,
        "a mixture",
        copied,
    );
}

#[test]
fn a_copy_of_a_renamed_event_is_of_before_or_after_by_the_generation() {
    let mutations = [EVENT(PUBLISH, ONE_LIFE)];
    fails("copied", "the generation", Some(4), &mutations, "", copied);
}

#[test]
fn a_renamed_event_keeps_its_references_and_its_timeout() {
    holds("held while renamed", Some(3), held);
    holds("timed out while renamed", Some(3), timed_out);
}
