// SPDX-License-Identifier: GPL-2.0

//! Wakers of tasks that had not been switched out. A late task names the waker that made it run, or
//! none, even if other tasks use its slot meanwhile.

use crate::{
    early::{Early, SLOTS, WAKER},
    machine::{fails, holds, source, Bound, Mutate},
};
use kernel::model::Change;
use loom::thread;
use std::sync::Arc;

const EARLY: Mutate = source!("trackers/offcpu/early.rs");

/// Two tasks whose thread ids share the first slot, the only slot that is modelled.
const TASK: u32 = SLOTS as u32;
const OTHER: u32 = 2 * TASK;

/// How often the tasks were switched out.
const SWITCHES: u64 = 10;

/// Returns the words of a waker, of which the first two are modelled.
fn by(waker: u64) -> [u64; WAKER] {
    [waker; WAKER]
}

/// Returns the slots after the task was woken once.
fn woken() -> Arc<Early> {
    let early = Arc::new(Early::new().unwrap());
    early.open();
    early.note(TASK, SWITCHES, true, || by(1));
    early
}

/// Wakes the other task, in a thread.
fn other(early: &Arc<Early>) -> thread::JoinHandle<()> {
    let early = early.clone();
    thread::spawn(move || early.note(OTHER, SWITCHES, true, || by(2)))
}

/// Returns the waker recorded for the task, if any.
fn told(early: &Early, task: u32) -> Option<u64> {
    let waker = early.waker_of(task, SWITCHES + 1)?;
    assert_eq!(waker[0], waker[1], "a mixture of two wakers");
    Some(waker[0])
}

/// Another task takes the slot while the task reads it.
fn taken() {
    let early = woken();
    let other = other(&early);
    let waker = told(&early, TASK);
    assert!(matches!(waker, None | Some(1)), "the waker of another task");
    other.join().unwrap();
    assert_eq!(told(&early, TASK), None);
    assert_eq!(told(&early, OTHER), Some(2));
}

/// The task is woken again at the same time. `is_wanted`: whether this wakeup would take a slot
/// that the task does not have.
fn again(is_wanted: bool) {
    let early = woken();
    let other = other(&early);
    early.note(TASK, SWITCHES, is_wanted, || by(3));
    let waker = told(&early, TASK);
    assert!(matches!(waker, None | Some(3)), "not the last waker");
    other.join().unwrap();
    let waker = told(&early, TASK);
    assert!(matches!(waker, None | Some(3)), "not the last waker");
    let waker = told(&early, OTHER);
    assert!(matches!(waker, None | Some(2)), "the waker of another task");
}

fn wanted_again() {
    again(true);
}

fn unwanted_again() {
    again(false);
}

const CLAIM: &str = "slot.state.cmpxchg(state, state | 1, Acquire)";
const WRITE: &str = "word.store(value, Release);";
const READ: &str = "slot.waker[at].load(Acquire)";
const AGAIN: &str = "(is_valid && slot.state.load(Relaxed) == state)";

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("taken", Some(4), taken),
    ("wanted again", Some(4), wanted_again),
    ("unwanted again", Some(4), unwanted_again),
];

#[test]
fn a_late_task_names_the_last_waker_or_none() {
    for (name, bound, body) in MODELS {
        holds(name, *bound, *body);
    }
}

#[test]
fn a_late_task_names_the_last_waker_by_the_order_of_words() {
    for (what, text, change) in [
        ("release of words", WRITE, Change::Relax),
        ("acquire of words", READ, Change::Relax),
        ("the second look", AGAIN, Change::Again),
    ] {
        fails("taken", what, Some(4), &[EARLY(text, change)], "", taken);
    }
}

#[test]
fn a_late_task_names_the_last_waker_by_the_exchange() {
    let mutations = [EARLY(CLAIM, Change::Split)];
    let what = "the exchange";
    fails("wanted again", what, Some(4), &mutations, "", wanted_again);
}
