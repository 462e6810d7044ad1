// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sleeps that a timer ends, in traces without the events that would show another cause.

use lt_model::why::{Cause, Leaf, Place, path};
use lt_model::{Builder, Disk, Event, Events, Sleep, Stage, SwitchedOut, What};

use crate::made::{R, at, completed, request, switch, waking};

const WAKES: u64 = 0x10;
const OTHER: u64 = 0x20;

/// The cause of the wait of 7 from 10 to 100, in a trace without these events.
fn cause(missing: &[Events], sleep: Sleep, events: &[Event<'static>]) -> Cause {
    let mut builder = Builder::new();
    builder.has_functions([(WAKES, "hrtimer_wakeup")]);
    missing.iter().for_each(|events| builder.has_no(*events));
    let out = SwitchedOut::Blocked(sleep);
    let name = b"kworker/0:1";
    let begin = [
        at(0, 0, What::There { tid: 9, name }),
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, out, 0),
    ];
    for event in begin.iter().chain(events).chain([&switch(110, 0, 0, R, 7)]) {
        builder.feed(event);
    }
    let m = builder.finish();
    path(&m, m.by_tid(7).next().unwrap(), 10, 100)[0].cause
}

fn timer(missing: &[Events], sleep: Sleep, function: u64) -> Cause {
    let function = Some(function);
    let ended = [
        at(99, 0, What::Timer { function }),
        waking(100, 0, 7),
        at(101, 0, What::TimerEnd),
    ];
    cause(missing, sleep, &ended)
}

/// The cause of a sleep that a timer of the timer wheel ends.
fn in_softirq(missing: &[Events], function: u64) -> Cause {
    let ended = [
        at(98, 0, What::Softirq { vector: 1 }),
        at(99, 0, What::Expire { function }),
        waking(100, 0, 7),
        at(101, 0, What::ExpireEnd),
        at(102, 0, What::SoftirqEnd { vector: 1 }),
    ];
    cause(missing, Sleep::Interruptible, &ended)
}

#[test]
fn an_unknown_timer_may_be_the_timer_of_a_disk_if_completions_are_not_recorded() {
    let perhaps = |disk, dirty| Cause::For(Leaf::PerhapsTimer { disk, dirty }, None);
    let certain = Cause::For(Leaf::Timer, None);
    let (waits, pauses) = (Sleep::Interruptible, Sleep::Uninterruptible);
    let completions = [Events::Completions];
    assert_eq!(timer(&[], waits, OTHER), certain);
    assert_eq!(timer(&completions, waits, OTHER), perhaps(true, false));
    assert_eq!(in_softirq(&completions, OTHER), perhaps(true, false));
    // The thread itself has set the timer.
    assert_eq!(timer(&completions, waits, WAKES), certain);
    assert_eq!(in_softirq(&completions, WAKES), certain);
    // The thread itself also sets the timer of the dirty limit's pause.
    let dirty = [Events::Dirty];
    assert_eq!(timer(&dirty, pauses, WAKES), perhaps(false, true));
    assert_eq!(timer(&dirty, waits, WAKES), certain);
    let both = [Events::Completions, Events::Dirty];
    assert_eq!(timer(&both, pauses, OTHER), perhaps(true, true));
    assert_eq!(timer(&both, pauses, WAKES), perhaps(false, true));
    let others = [
        Events::Softirqs,
        Events::Timers,
        Events::Handlers,
        Events::Works,
    ];
    assert_eq!(timer(&others, pauses, OTHER), certain);
}

/// Another timer may expire in the same softirq.
#[test]
fn a_timer_is_the_threads_own_only_while_its_function_runs() {
    let function = WAKES;
    let after = [
        at(97, 0, What::Softirq { vector: 1 }),
        at(98, 0, What::Expire { function }),
        at(99, 0, What::ExpireEnd),
        waking(100, 0, 7),
        at(102, 0, What::SoftirqEnd { vector: 1 }),
    ];
    let found = cause(&[Events::Completions], Sleep::Interruptible, &after);
    let (disk, dirty) = (true, false);
    assert_eq!(found, Cause::For(Leaf::PerhapsTimer { disk, dirty }, None));
}

/// A worker submits a bio: for another device, or because io.max held it back.
#[test]
fn a_request_is_not_attributed_to_a_worker_if_work_items_are_not_recorded() {
    let disk = Disk(253 << 20);
    let (sector, range) = (64, Some((64, 8)));
    let stage = |time, stage| request(time, stage, disk, sector);
    let events = [
        switch(50, 0, 0, R, 9),
        stage(60, Stage::Queued),
        stage(61, Stage::Allocated),
        stage(62, Stage::Issued),
        switch(63, 0, 9, R, 0),
        at(98, 0, What::Timer { function: None }),
        completed(99, disk, range),
        waking(100, 0, 7),
        at(101, 0, What::TimerEnd),
    ];
    let found = |missing: &[Events]| cause(missing, Sleep::Uninterruptible, &events);
    assert!(matches!(found(&[]), Cause::For(Leaf::Others(..), _)));
    let held = found(&[Events::Works]);
    assert_eq!(held, Cause::Held(disk, Place::Unsubmitted, None));
}
