// SPDX-License-Identifier: GPL-2.0

//! The life of an event: exactly one party ends it, and only the intended event, with the data that
//! was stored.

use crate::{
    engine::{hash::Seed, stats::Counter, Begin, Verdict, Why},
    machine::{fails, holds, source, Bound, Model, Mutate, On},
};
use kernel::model::Change;
use loom::thread;
use std::sync::Arc;

const EVENT: Mutate = source!("engine/event.rs");

pub(crate) type Engine = crate::engine::Engine<1, 1, Model<2>>;

pub(crate) fn engine(capacity: u32) -> Arc<Engine> {
    let seed = Seed::new(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
    Arc::new(Engine::new(capacity, 0, seed).unwrap())
}

/// Returns two keys with the same tag under the seed of [`engine`]: each is a candidate in a search
/// for the other.
pub(crate) fn twins() -> (u64, u64) {
    let seed = Seed::new(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
    let tag = |key| seed.hash(&[key]) >> 56;
    let twin = (2..).find(|&key| tag(key) == tag(1)).unwrap();
    (1, twin)
}

pub(crate) fn begin(engine: &Engine, cpu: usize, key: u64, data: u64) -> Begin {
    engine.event_in(&On(cpu), &[key], data, &[data])
}

/// Ends a key; returns the data of the event, if there was one. The start equals the data.
pub(crate) fn end(engine: &Engine, cpu: usize, key: u64) -> Option<u64> {
    let (data, why) = end_why(engine, cpu, key)?;
    assert_eq!(why, Why::Threshold, "nothing times out here");
    Some(data)
}

/// As `end`, but also returns the reason for the report. Each end is reported, since the threshold
/// is 0.
pub(crate) fn end_why(engine: &Engine, cpu: usize, key: u64) -> Option<(u64, Why)> {
    let mut data = None;
    let known = engine.event_out(
        &On(cpu),
        &[key],
        1_000,
        |_| true,
        |late| {
            data = Some((late.data[0], late.why));
            assert_eq!(
                late.delay,
                1_000 - late.data[0],
                "start and data of two events"
            );
        },
    );
    assert_eq!(known, data.is_some());
    data
}

/// Checks that nothing is live, nothing is lost, and the sums hold.
pub(crate) fn settled(engine: &Engine) {
    let total = |counter| engine.stats().total(counter);
    assert_eq!(engine.pending_count(), 0, "something is live");
    assert_eq!(
        engine.free(),
        u64::from(engine.capacity()),
        "a cell is lost"
    );
    assert_eq!(
        total(Counter::Attempts),
        total(Counter::Started) + total(Counter::Full),
        "the sum of attempts"
    );
    assert_eq!(
        total(Counter::Started),
        total(Counter::Ended) + total(Counter::Cleared) + total(Counter::Gone),
        "the sum of events"
    );
}

/// Two CPUs end the same key.
fn two_ends() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 1));
    let ours = end(&engine, 0, 1);
    let theirs = other.join().unwrap();
    assert!(ours.is_some() != theirs.is_some(), "not one winner");
    settled(&engine);
}

/// Two CPUs end the same key, and one of them starts another event in the same cell and slot.
fn recycled() {
    let engine = engine(1);
    let (key, twin) = twins();
    begin(&engine, 0, key, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        let won = end(&other, 1, key);
        let begun = begin(&other, 1, twin, 8);
        (won, begun)
    });
    let ours = end(&engine, 0, key);
    let (theirs, begun) = other.join().unwrap();
    assert!(ours.is_some() != theirs.is_some(), "not one winner");
    assert_eq!(ours.or(theirs), Some(7), "another event's data");
    if begun == Begin::Started {
        assert_eq!(
            end(&engine, 0, twin),
            Some(8),
            "an event ended that was not meant"
        );
    }
    settled(&engine);
}

/// A search for a key finds a cell that had it in an earlier life.
fn earlier_life() {
    let engine = engine(1);
    let (key, twin) = twins();
    begin(&engine, 0, key, 7);
    assert_eq!(end(&engine, 0, key), Some(7));
    let other = engine.clone();
    let other = thread::spawn(move || begin(&other, 1, twin, 8));
    assert_eq!(
        end(&engine, 0, key),
        None,
        "an event ended that was not meant"
    );
    assert_eq!(other.join().unwrap(), Begin::Started);
    assert_eq!(
        end(&engine, 0, twin),
        Some(8),
        "an event ended that was not meant"
    );
    settled(&engine);
}

/// A key is started again, with new data, while another CPU ends it.
fn hand_over() {
    let engine = engine(1);
    begin(&engine, 0, 1, 7);
    assert_eq!(end(&engine, 0, 1), Some(7));
    let other = engine.clone();
    let other = thread::spawn(move || begin(&other, 1, 1, 8));
    let won = end(&engine, 0, 1);
    assert!(matches!(won, None | Some(8)), "data of an earlier life");
    other.join().unwrap();
    assert_eq!(
        won.or_else(|| end(&engine, 0, 1)),
        Some(8),
        "data of an earlier life"
    );
    settled(&engine);
}

/// An event is changed while it is ended.
fn update() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 1));
    let changed = engine.update(&On(0), &[1], |event| {
        assert_eq!(event.data(), [7]);
        event.set_start(8);
        event.set_data(&[8]);
        Verdict::Keep
    });
    let theirs = other.join().unwrap();
    // The event cannot be found while it is being changed. In that case it is still live.
    let left = end(&engine, 0, 1);
    assert!(theirs.is_some() != left.is_some(), "not one winner");
    let expected = if changed.is_some() { 8 } else { 7 };
    assert_eq!(
        theirs.or(left),
        Some(expected),
        "data from before the change"
    );
    settled(&engine);
}

/// All events are cleared while an event ends.
fn clear() {
    let engine = engine(2);
    begin(&engine, 0, 1, 7);
    begin(&engine, 0, 2, 7);
    let other = engine.clone();
    let other = thread::spawn(move || u64::from(end(&other, 1, 1).is_some()));
    let cleared = engine.clear();
    assert_eq!(cleared + other.join().unwrap(), 2, "not one winner");
    settled(&engine);
}

/// An event is copied while it ends, and its cell goes to another event.
fn peek() {
    let engine = engine(1);
    begin(&engine, 0, 7, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        end(&other, 1, 7);
        begin(&other, 1, 8, 8);
    });
    let seen = engine.each_pending(|copy| {
        assert!(
            copy.key[0] == copy.data[0] && copy.start == copy.data[0],
            "a mixture of two events"
        );
        Ok(())
    });
    assert!(seen.is_ok());
    other.join().unwrap();
    assert_eq!(end(&engine, 0, 8), Some(8));
    settled(&engine);
}

/// An event is copied while it is changed.
fn peek_update() {
    let engine = engine(1);
    begin(&engine, 0, 1, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        other.update(&On(1), &[1], |event| {
            event.set_data(&[8]);
            event.set_start(8);
            Verdict::Keep
        })
    });
    let seen = engine.each_pending(|copy| {
        assert_eq!(copy.start, copy.data[0], "a mixture of before and after");
        Ok(())
    });
    assert!(seen.is_ok());
    other.join().unwrap();
    assert_eq!(end(&engine, 0, 1), Some(8));
    settled(&engine);
}

/// Two CPUs with one event each share a pool of two cells and a bucket. No event is lost, and each
/// CPU finds its own.
fn pairs() {
    let engine = engine(2);
    let (key, twin) = twins();
    let pairs = |engine: &Engine, cpu: usize, key: u64| {
        assert_eq!(
            begin(engine, cpu, key, key),
            Begin::Started,
            "full with a free cell"
        );
        assert_eq!(
            end(engine, cpu, key),
            Some(key),
            "a live event is not found"
        );
    };
    let other = engine.clone();
    let other = thread::spawn(move || pairs(&other, 1, twin));
    pairs(&engine, 0, key);
    other.join().unwrap();
    settled(&engine);
}

pub(crate) const CLAIM: &str = "self.state.cmpxchg(life.0, taken, Acquire)";
pub(crate) const PUBLISH: &str = "self.state.store(next, Release);";
pub(crate) const LIFE: &str = "let state = self.state.load(Acquire);";
pub(crate) const FILL_KEY: &str = "for (word, value) in self.key.iter().zip(key) {
            word.store(*value, Release);";
pub(crate) const SET_START: &str = "self.start.store(start, Release);";
pub(crate) const PEEK_START: &str = "start: self.start.load(Acquire),";
pub(crate) const PEEK_KEY: &str = "key: array::from_fn(|i| self.key[i].load(Acquire)),";
pub(crate) const PEEK_DATA: &str = "data: array::from_fn(|i| self.data[i].load(Acquire)),";
const PEEK_STATE: &str = "// Relaxed: ordered by the acquire loads above.
        let now = self.state.load(Relaxed);";
pub(crate) const ONE_LIFE: Change = Change::Write(|state| state & 0x1fff);

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("two ends", None, two_ends),
    ("recycled", Some(4), recycled),
    ("earlier life", Some(4), earlier_life),
    ("hand-over", Some(4), hand_over),
    ("update", None, update),
    ("clear", Some(4), clear),
    ("peek", Some(4), peek),
    ("peek and update", None, peek_update),
    ("pairs", Some(3), pairs),
];

#[test]
fn one_of_two_ends_wins() {
    holds("two ends", None, two_ends);
}

#[test]
fn one_of_two_ends_wins_by_the_exchange() {
    let mutations = [EVENT(CLAIM, Change::Split)];
    fails(
        "two ends",
        "the exchange in claim",
        None,
        &mutations,
        "",
        two_ends,
    );
}

#[test]
fn an_end_takes_the_intended_event() {
    holds("recycled", Some(4), recycled);
    holds("earlier life", Some(4), earlier_life);
}

#[test]
fn an_end_takes_the_intended_event_by_the_generation() {
    let mutations = [EVENT(PUBLISH, ONE_LIFE)];
    fails(
        "recycled",
        "the generation",
        Some(4),
        &mutations,
        "",
        recycled,
    );
}

#[test]
fn an_end_takes_the_intended_event_by_acquire() {
    let mutations = [EVENT(LIFE, Change::Relax)];
    fails(
        "earlier life",
        "acquire in life",
        Some(4),
        &mutations,
        "",
        earlier_life,
    );
}

#[test]
fn an_end_takes_the_intended_event_by_release() {
    let mutations = [EVENT(PUBLISH, Change::Relax)];
    fails(
        "earlier life",
        "release in publish",
        Some(4),
        &mutations,
        "",
        earlier_life,
    );
}

#[test]
fn the_winner_sees_the_stored_data() {
    holds("hand-over", Some(4), hand_over);
}

#[test]
fn the_winner_sees_the_stored_data_by_release() {
    let mutations = [EVENT(PUBLISH, Change::Relax)];
    fails(
        "hand-over",
        "release in publish",
        Some(4),
        &mutations,
        "",
        hand_over,
    );
}

#[test]
fn an_update_and_an_end_take_turns() {
    holds("update", None, update);
}

#[test]
fn an_update_and_an_end_take_turns_by_release() {
    let mutations = [EVENT(PUBLISH, Change::Relax)];
    fails("update", "release in publish", None, &mutations, "", update);
}

#[test]
fn an_update_and_an_end_take_turns_by_the_exchange() {
    let mutations = [EVENT(CLAIM, Change::Split)];
    fails(
        "update",
        "the exchange in claim",
        None,
        &mutations,
        "",
        update,
    );
}

#[test]
fn clear_and_an_end_share_the_events() {
    holds("clear", Some(4), clear);
}

#[test]
fn clear_and_an_end_share_the_events_by_the_exchange() {
    let mutations = [EVENT(CLAIM, Change::Split)];
    fails(
        "clear",
        "the exchange in claim",
        Some(4),
        &mutations,
        "",
        clear,
    );
}

#[test]
fn a_copy_is_of_one_event() {
    holds("peek", Some(4), peek);
    holds("peek and update", None, peek_update);
}

#[test]
fn a_copy_is_of_one_event_by_acquire() {
    let mutations = [
        EVENT(PEEK_START, Change::Relax),
        EVENT(PEEK_KEY, Change::Relax),
        EVENT(PEEK_DATA, Change::Relax),
    ];
    fails(
        "peek",
        "acquire in peek",
        Some(4),
        &mutations,
        "a mixture",
        peek,
    );
}

#[test]
fn a_copy_is_of_one_event_by_release() {
    let mutations = [
        EVENT(FILL_KEY, Change::Relax),
        EVENT(SET_START, Change::Relax),
    ];
    fails(
        "peek",
        "release in fill",
        Some(4),
        &mutations,
        "a mixture",
        peek,
    );
}

#[test]
fn a_copy_is_of_one_event_by_the_second_read() {
    let mutations = [EVENT(PEEK_STATE, Change::Again)];
    fails(
        "peek",
        "the second look",
        Some(4),
        &mutations,
        "a mixture",
        peek,
    );
}

#[test]
fn a_copy_is_of_one_event_by_the_generation() {
    let mutations = [EVENT(PUBLISH, ONE_LIFE)];
    fails(
        "peek",
        "the generation",
        Some(4),
        &mutations,
        "a mixture",
        peek,
    );
}

#[test]
fn a_pool_of_two_serves_two() {
    holds("pairs", Some(3), pairs);
}
