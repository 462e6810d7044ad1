// SPDX-License-Identifier: GPL-2.0

//! Operations in which two CPUs take part. The owner of an event always finds it, and a note goes
//! to the intended event only.

use crate::{
    engine::{hash::Seed, stats::Counter, step::Next, Begin, Open},
    event_model::CLAIM,
    held_model::GET_REF,
    machine::{fails, holds, source, Bound, Model, Mutate, On},
};
use kernel::model::Change;
use loom::thread;
use std::sync::Arc;

const EVENT: Mutate = source!("engine/event.rs");

/// An engine with two words of data: the number of the event, and a note. All events have one key.
type Engine = crate::engine::Engine<1, 2, Model<2>>;
const KEY: [u64; 1] = [1];
const NOTE: usize = 1;
const END: u64 = 1_000;

fn engine(capacity: u32) -> Arc<Engine> {
    let seed = Seed::new(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
    Arc::new(Engine::new(capacity, 0, seed).unwrap())
}

fn begin(engine: &Engine, number: u64) -> Begin {
    engine.event_in(&On(0), &KEY, number, &[number, 0])
}

fn is(number: u64) -> impl Fn(&Open<'_, 1, 2>) -> bool {
    move |event| event.word(0) == number
}

/// Ends the event with this number, by a step; returns its note.
fn end(engine: &Engine, cpu: usize, number: u64) -> Option<u64> {
    let mut note = None;
    let next = engine.step(
        &On(cpu),
        &KEY,
        is(number),
        |_| Next::End(END),
        |late| {
            assert_eq!(late.data[0], number, "an event ended that was not meant");
            assert_eq!(late.delay, END - number, "start and data of two events");
            note = Some(late.data[NOTE]);
        },
    );
    assert_eq!(next.is_some(), note.is_some());
    note
}

/// Adds one to the note of the event with this number.
fn note(engine: &Engine, cpu: usize, number: u64) -> bool {
    let more = |event: &Open<'_, 1, 2>| event.word(NOTE) + 1;
    engine.note(&On(cpu), &KEY, is(number), NOTE, more)
}

fn settled(engine: &Engine) {
    let total = |counter| engine.stats().total(counter);
    assert_eq!(engine.pending_count(), 0, "something is live");
    assert_eq!(engine.holders(), 0, "a reference is lost");
    let capacity = u64::from(engine.capacity());
    assert_eq!(engine.free(), capacity, "a cell is lost");
    assert_eq!(
        total(Counter::Started),
        total(Counter::Ended) + total(Counter::Gone),
        "the sum of events"
    );
}

/// An event ends while another CPU adds a note to it.
fn note_and_end() {
    let engine = engine(2);
    begin(&engine, 7);
    let other = engine.clone();
    let other = thread::spawn(move || note(&other, 1, 7));
    let seen = end(&engine, 0, 7).expect("a note hides the event");
    let noted = other.join().unwrap();
    assert!(seen == 0 || noted, "a note that was not made");
    settled(&engine);
}

/// The owner changes the event during a note. Neither write is lost.
fn note_and_change() {
    let engine = engine(2);
    begin(&engine, 7);
    let other = engine.clone();
    let other = thread::spawn(move || {
        let is_either = |event: &Open<'_, 1, 2>| event.word(0) >= 7;
        other.note(&On(1), &KEY, is_either, NOTE, |_| 1)
    });
    let change = |event: &mut Open<'_, 1, 2>| {
        event.set_words::<0, 1>(&[8]);
        Next::Keep
    };
    let kept = engine.step(&On(0), &KEY, is(7), change, |_| ());
    assert_eq!(kept, Some(Next::Keep), "a note hides the event");
    let noted = other.join().unwrap();
    let mut data = None;
    engine.step(
        &On(0),
        &KEY,
        is(8),
        |_| Next::End(END),
        |late| data = Some(late.data),
    );
    assert_eq!(data, Some([8, noted.into()]), "what was written is lost");
    settled(&engine);
}

/// The event ends during a note, and its cell is reused for the next event of the key.
fn note_and_recycle() {
    let engine = engine(1);
    begin(&engine, 7);
    let other = engine.clone();
    let other = thread::spawn(move || note(&other, 1, 7));
    assert!(end(&engine, 0, 7).is_some(), "a note hides the event");
    if begin(&engine, 8) == Begin::Started {
        let left = end(&engine, 0, 8);
        assert_eq!(left, Some(0), "a note on another event");
    }
    other.join().unwrap();
    settled(&engine);
}

/// Two CPUs end the same event, by a step.
fn two_ends() {
    let engine = engine(2);
    begin(&engine, 7);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 7));
    let ours = end(&engine, 0, 7);
    let theirs = other.join().unwrap();
    assert!(ours.is_some() != theirs.is_some(), "not one winner");
    settled(&engine);
}

/// An event ends concurrently with the next event of its key. Each ends once.
fn two_of_a_key() {
    let engine = engine(2);
    begin(&engine, 7);
    begin(&engine, 8);
    let other = engine.clone();
    let other = thread::spawn(move || end(&other, 1, 8));
    assert!(end(&engine, 0, 7).is_some(), "an end is lost");
    assert!(other.join().unwrap().is_some(), "an end is lost");
    settled(&engine);
}

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("note and end", Some(3), note_and_end),
    ("note and change", Some(3), note_and_change),
    ("note and recycle", Some(3), note_and_recycle),
    ("two last steps", Some(3), two_ends),
    ("two of a key", Some(3), two_of_a_key),
];

#[test]
fn a_note_does_not_hide_an_event() {
    holds("note and end", Some(3), note_and_end);
    holds("note and change", Some(3), note_and_change);
}

#[test]
fn a_note_is_of_the_intended_event() {
    holds("note and recycle", Some(3), note_and_recycle);
}

#[test]
fn a_note_is_of_the_intended_event_by_the_reference() {
    let mutations = [EVENT(GET_REF, Change::Skip)];
    fails(
        "note and recycle",
        "the reference",
        Some(3),
        &mutations,
        "",
        note_and_recycle,
    );
}

#[test]
fn a_last_step_has_one_winner() {
    holds("two last steps", Some(3), two_ends);
    holds("two of a key", Some(3), two_of_a_key);
}

#[test]
fn a_last_step_has_one_winner_by_the_exchange() {
    let mutations = [EVENT(CLAIM, Change::Split)];
    fails(
        "two last steps",
        "the exchange in claim",
        Some(3),
        &mutations,
        "",
        two_ends,
    );
}
