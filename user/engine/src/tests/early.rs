// SPDX-License-Identifier: GPL-2.0

//! Wakers of tasks that are woken before they have been switched out.

use crate::early::{Early, SLOTS, WAKER};

const BY: [u64; WAKER] = [1, 2, 3];
const BY_ANOTHER: [u64; WAKER] = [4, 5, 6];

fn open() -> Early {
    let early = Early::new().expect("no memory");
    early.open();
    early
}

#[test]
fn the_last_waker_of_this_sleep_is_named() {
    let early = open();
    assert_eq!(early.waker_of(7, 1), None);
    early.note(7, 10, true, || BY);
    // The waker may read the number of switches before the switch is counted, or after it.
    assert_eq!(early.waker_of(7, 11), Some(BY));
    assert_eq!(early.waker_of(7, 10), Some(BY));
    early.note(7, 11, true, || BY_ANOTHER);
    assert_eq!(early.waker_of(7, 12), Some(BY_ANOTHER));
}

#[test]
fn the_waker_of_an_earlier_sleep_is_not_named() {
    let early = open();
    early.note(7, 10, true, || BY);
    assert_eq!(early.waker_of(7, 12), None);
    assert_eq!(early.waker_of(7, 9), None);
    // The wakeup of another task takes over the slot.
    early.note(7, 20, true, || BY);
    early.note(7 + SLOTS as u32, 20, true, || BY_ANOTHER);
    assert_eq!(early.waker_of(7, 20), None);
    assert_eq!(early.waker_of(7 + SLOTS as u32, 20), Some(BY_ANOTHER));
}

#[test]
fn a_waker_that_finds_the_slot_in_use_is_unknown() {
    let early = open();
    early.note(7, 10, true, || BY);
    // The wakeup happens while the waker of another task is written to the slot.
    early.note(7 + SLOTS as u32, 10, true, || {
        early.note(7, 10, true, || BY_ANOTHER);
        assert_eq!(early.waker_of(7, 10), None);
        BY
    });
    assert_eq!(early.waker_of(7, 10), None);
    assert_eq!(early.waker_of(7 + SLOTS as u32, 10), Some(BY));
    // The next wakeup is recorded.
    early.note(7, 11, true, || BY);
    assert_eq!(early.waker_of(7, 11), Some(BY));
}

#[test]
fn a_task_that_is_not_wanted_takes_no_slot_but_replaces_its_own_note() {
    let early = open();
    early.note(7, 10, true, || BY);
    early.note(7 + SLOTS as u32, 10, false, || BY_ANOTHER);
    assert_eq!(early.waker_of(7, 10), Some(BY));
    early.note(7, 10, false, || BY_ANOTHER);
    assert_eq!(early.waker_of(7, 10), Some(BY_ANOTHER));
}

#[test]
fn nothing_is_noted_before_all_probes_are_attached() {
    let early = Early::new().expect("no memory");
    early.note(7, 10, true, || BY);
    assert_eq!(early.waker_of(7, 10), None);
    early.open();
    early.note(7, 10, true, || BY);
    early.close();
    assert_eq!(early.waker_of(7, 10), None);
}
