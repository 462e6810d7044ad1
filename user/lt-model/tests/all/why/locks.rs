// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Waits for a lock with priority inheritance: its first waiter spins while the owner runs.

use lt_model::why::{Cause, Piece, Search, path};
use lt_model::{Builder, Event, Kept, Model, What};

use crate::made::{R, S, at, switch};

const LOCK: u32 = 6 | 128;
const UNLOCK: u32 = 7 | 128;
const A: u64 = 0x7f00;
const B: u64 = 0x7f80;

fn futex(time: u64, cpu: u32, op: u32, address: u64) -> Event<'static> {
    at(time, cpu, What::Futex { op, address })
}

fn returns(time: u64, cpu: u32) -> Event<'static> {
    at(time, cpu, What::Return)
}

fn wakes(time: u64, cpu: u32, tid: i32) -> [Event<'static>; 2] {
    let (name, target) = (&b""[..], 0);
    let waking = What::Waking { tid, name, target };
    let wakeup = What::Wakeup { tid, name, target };
    [at(time, cpu, waking), at(time, cpu, wakeup)]
}

fn told(m: &Model, (from, to): (u64, u64)) -> String {
    let one = |p: &Piece| {
        let what = match p.cause {
            Cause::Running(call) => {
                let call = call.map(|call| format!(" in {}", m.names.text(call)));
                format!("ran{}", call.unwrap_or_default())
            }
            other => format!("{other:?}"),
        };
        format!("{} {what} {}", m.threads[p.thread.0 as usize].tid, p.end)
    };
    let thread = m.by_tid(7).next().unwrap();
    let all: Vec<_> = path(m, thread, from, to).iter().map(one).collect();
    all.join(", ")
}

fn model(events: &[Event<'static>], known: Option<(u64, u64)>) -> Model {
    let mut builder = Builder::new();
    if let Some((begin, end)) = known {
        builder.locks(7, begin, end);
    }
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}

/// 7 spins on CPU 0 from 10 to 100 while 8, the owner, runs on CPU 1; a tick interrupts 7.
fn spun(unlock: Option<(u32, u64)>) -> Vec<Event<'static>> {
    let mut events = vec![
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        futex(10, 0, LOCK, A),
        at(50, 0, What::Timer { function: None }),
        at(51, 0, What::TimerEnd),
    ];
    events.extend(unlock.map(|(op, address)| futex(99, 1, op, address)));
    events.extend(wakes(100, 1, 7));
    events.extend([
        returns(102, 1),
        returns(110, 0),
        switch(120, 0, 7, S, 0),
        switch(120, 1, 8, S, 0),
    ]);
    events
}

#[test]
fn a_thread_that_spins_waits_for_the_owner_that_wakes_it() {
    let owner = "7 ran 10, 8 ran 50, 8 ran 51, 8 ran 99, 8 ran in futex(FUTEX_UNLOCK_PI) 100, 7 ran in futex(FUTEX_LOCK_PI) 110, 7 ran 120";
    assert_eq!(
        told(&model(&spun(Some((UNLOCK, A))), None), (0, 120)),
        owner
    );
    // A waker that unlocks another lock, or is in another call or in none, is not the owner: no event shows the owner.
    let alone = "7 ran 10, 7 ran in futex(FUTEX_LOCK_PI) 50, 7 Interrupted(Timer) 51, 7 ran in futex(FUTEX_LOCK_PI) 110, 7 ran 120";
    for other in [Some((UNLOCK, B)), Some((1, A)), None] {
        assert_eq!(told(&model(&spun(other), None), (0, 120)), alone);
    }
}

/// Only the wait for a lock is known, as from an alert.
#[test]
fn an_alert_shows_a_wait_for_a_lock_if_system_calls_are_not_recorded() {
    let mut events = spun(None);
    events.retain(|event| !matches!(event.what, What::Futex { .. } | What::Return));
    let ran = "7 ran 50, 7 Interrupted(Timer) 51, 7 ran 120";
    assert_eq!(told(&model(&events, None), (0, 120)), ran);
    let known = model(&events, Some((10, 110)));
    assert_eq!(
        told(&known, (0, 120)),
        "7 ran 10, 8 ran 50, 8 ran 51, 8 ran 100, 7 ran 120"
    );
    // In spite of the alert, the waker is not the owner if calls are recorded and it was in another call.
    let told = told(&model(&spun(Some((1, A))), Some((10, 110))), (0, 120));
    assert!(!told.contains('8'), "{told}");
}

/// 9 wakes 7 at 60, for example with a signal, and 7 goes on waiting.
#[test]
fn of_a_wait_for_a_lock_that_only_an_alert_shows_the_last_waker_is_the_owner() {
    let told_with = |last: &[Event<'static>]| {
        let mut events = spun(None);
        events.retain(|event| !matches!(event.what, What::Futex { .. } | What::Return));
        events.insert(0, switch(0, 2, 0, R, 9));
        events.splice(5..5, wakes(60, 2, 7));
        events.splice(9..9, last.iter().copied());
        told(&model(&events, Some((10, 110))), (0, 120))
    };
    let owner = "7 ran 50, 7 Interrupted(Timer) 51, 7 ran 60, 8 ran 100, 7 ran 120";
    assert_eq!(told_with(&[]), owner);
    // A timer wakes it last, or the last waker is not known: the owner is not known.
    let ran = "7 ran 50, 7 Interrupted(Timer) 51, 7 ran 120";
    let [waking, wakeup] = wakes(105, 1, 7);
    let timer = [
        at(104, 1, What::Timer { function: None }),
        waking,
        wakeup,
        at(106, 1, What::TimerEnd),
    ];
    assert_eq!(told_with(&timer), ran);
    let preempted = [switch(101, 0, 7, R, 5), waking, switch(106, 0, 5, S, 7)];
    let told = told_with(&preempted);
    assert!(!told.contains('9') && !told.contains("8 ran"), "{told}");
}

/// 9 has the lock until 40, then 8 until 100; 7 and 8 spin, each on its own CPU.
fn handed_on() -> Vec<Event<'static>> {
    let mut events = vec![
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(0, 2, 0, R, 9),
        futex(5, 1, LOCK, A),
        futex(10, 0, LOCK, A),
        futex(39, 2, UNLOCK, A),
    ];
    events.extend(wakes(40, 2, 8));
    events.extend([returns(41, 1), returns(42, 2), futex(99, 1, UNLOCK, A)]);
    events.extend(wakes(100, 1, 7));
    events.extend([returns(102, 1), returns(104, 0)]);
    events.extend([switch(120, 0, 7, S, 0), switch(120, 1, 8, S, 0)]);
    events
}

#[test]
fn a_wait_for_a_lock_that_is_handed_on_has_each_owner_in_turn() {
    let m = model(&handed_on(), None);
    let owners = "9 ran 39, 9 ran in futex(FUTEX_UNLOCK_PI) 40, 8 ran in futex(FUTEX_LOCK_PI) 41, 8 ran 99, \
                  8 ran in futex(FUTEX_UNLOCK_PI) 100";
    assert_eq!(told(&m, (10, 100)), owners);
    // Two owners wake 7 in turn, since another thread gets the lock first.
    let mut events = spun(Some((UNLOCK, A)));
    events.insert(0, switch(0, 2, 0, R, 9));
    let first = [futex(59, 2, UNLOCK, A)].into_iter().chain(wakes(60, 2, 7));
    events.splice(6..6, first);
    let owners = "9 ran 50, 9 ran 51, 9 ran 59, 9 ran in futex(FUTEX_UNLOCK_PI) 60, 8 ran 99, 8 ran in futex(FUTEX_UNLOCK_PI) 100";
    assert_eq!(told(&model(&events, None), (10, 100)), owners);
}

#[test]
fn a_lost_event_may_be_another_call() {
    let mut events = spun(Some((UNLOCK, A)));
    events.insert(5, at(60, 2, What::Lost { until: 61 }));
    let told = told(&model(&events, None), (0, 100));
    assert!(!told.contains('8'), "{told}");
}

#[test]
fn the_activity_that_is_kept_for_a_path_has_the_owners() {
    let events = handed_on();
    let whole = model(&events, None);
    let mut waits = Builder::new();
    waits.keep_waits();
    events.iter().for_each(|e| waits.feed(e));
    assert_eq!(waits.kept(), Kept::Waits);
    let waits = waits.finish();
    for (from, to) in [(0, 120), (10, 100), (20, 90)] {
        let thread = waits.by_tid(7).next().unwrap();
        let mut parts = Builder::new();
        parts.keep_only(Search::path(thread, from, to).all(&waits));
        events.iter().for_each(|e| parts.feed(e));
        assert_eq!(told(&parts.finish(), (from, to)), told(&whole, (from, to)));
    }
}
