// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Causes of waits that the events around the wait prove, and causes that they do not prove.

use lt_model::{
    Builder, Disk, Event, Model, Priority, Runtime, Sign, Stage, SwitchedOut, ThreadId, What,
};

use crate::made::{R, S, at, switch, timer, waking};

const PERIOD: u64 = 0x10;
const DEADLINE: u64 = 0x20;
const THROTTLE: u64 = 0x30;

fn model(events: &[Event<'_>]) -> Model {
    let mut builder = Builder::new();
    builder.has_functions([
        (PERIOD, "sched_cfs_period_timer"),
        (DEADLINE, "dl_task_timer.isra.0"),
        (THROTTLE, "blk_throtl_dispatch_work_fn"),
        (0x40, "hrtimer_wakeup"),
    ]);
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}

/// The sign of the wait of thread 7 that ends at 100.
fn sign(events: &[Event<'_>]) -> Option<Sign> {
    let m = model(events);
    m.sign(m.by_tid(7).next().unwrap(), 100)
}

fn wakeup(time: u64, cpu: u32) -> Event<'static> {
    let (tid, name, target) = (7, &b""[..], 0);
    at(time, cpu, What::Wakeup { tid, name, target })
}

fn idle(time: u64, cpu: u32, enters: bool) -> Event<'static> {
    at(time, cpu, What::Idle { enters })
}

fn with_prio(time: u64, prev: (i32, i32), out: SwitchedOut, next: (i32, i32)) -> Event<'static> {
    let what = What::Switch {
        prev: prev.0,
        prev_name: b"",
        out,
        prev_prio: Some(Priority(prev.1)),
        next: next.0,
        next_name: if next.0 == 9 { b"migration/0" } else { b"" },
        next_prio: Some(Priority(next.1)),
    };
    at(time, 0, what)
}

/// 7 uses up its quota at 10, and CPU 0 is idle until a timer of another CPU, or of its own, expires.
#[test]
fn a_cpu_that_becomes_idle_with_a_runnable_thread_shows_a_limit() {
    let throttled = [
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, R, 0),
        idle(11, 0, true),
    ];
    let runs = |events: &[Event<'static>]| {
        sign(&[&throttled[..], events, &[switch(100, 0, 0, R, 7)]].concat())
    };
    let own = [&[idle(89, 0, false)][..], &timer(90, 0, PERIOD)].concat();
    assert_eq!(runs(&own), Some(Sign::Quota(90)));
    let other = [&timer(90, 1, PERIOD)[..], &[idle(92, 0, false)]].concat();
    assert_eq!(runs(&other), Some(Sign::Quota(90)));
    let call = What::Ipi {
        name: b"call_function_single",
    };
    let called = [&timer(90, 1, PERIOD)[..], &[at(92, 0, call)]].concat();
    assert_eq!(runs(&called), Some(Sign::Quota(90)));
    // The timer did not reach the CPU, or the CPU became idle again afterwards, or it was another timer.
    assert_eq!(runs(&timer(90, 1, PERIOD)), None);
    let again = [&other[..], &[idle(94, 0, true), idle(95, 0, false)]].concat();
    assert_eq!(runs(&again), None);
    assert_eq!(runs(&timer(90, 0, 0x40)), None);
    assert_eq!(runs(&[]), None);
    // The time before a gap is not known.
    let lost = [&[at(20, 0, What::Lost { until: 30 })][..], &own].concat();
    assert_eq!(runs(&lost), None);
}

/// The timer expires in each period, even if no thread is held back.
#[test]
fn a_period_that_ends_meanwhile_shows_no_limit() {
    let runs = |events: &[Event<'static>]| {
        let begin = [
            switch(0, 0, 0, R, 7),
            switch(5, 0, 7, S, 0),
            idle(6, 0, true),
        ];
        let end = [switch(100, 0, 0, R, 7)];
        sign(&[&begin[..], events, &end].concat())
    };
    // CPU 0 leaves idle only at the end.
    let late = [
        &[waking(10, 1, 7), wakeup(11, 1)][..],
        &timer(50, 1, PERIOD),
        &[idle(99, 0, false)],
    ]
    .concat();
    assert_eq!(runs(&late), Some(Sign::LeftIdle(99)));
    // The CPU left the idle state for the waking, and found nothing to run.
    let limited = [
        &[waking(10, 1, 7), wakeup(11, 1)][..],
        &[idle(12, 0, false), idle(13, 0, true)],
        &timer(50, 1, PERIOD),
        &[idle(51, 0, false)],
    ]
    .concat();
    assert_eq!(runs(&limited), Some(Sign::Quota(50)));
    // The thread was queued while the CPU was entering idle.
    let race = [
        &[idle(8, 0, false), waking(10, 1, 7)][..],
        &[idle(11, 0, true), wakeup(12, 1)],
        &timer(50, 1, PERIOD),
        &[idle(99, 0, false)],
    ]
    .concat();
    assert_eq!(runs(&race), None);
}

#[test]
fn a_busy_cpu_shows_no_limit() {
    let events = [
        &[switch(0, 0, 0, R, 7), switch(10, 0, 7, R, 8)][..],
        &timer(90, 0, PERIOD),
        &[switch(100, 0, 8, R, 7)],
    ];
    assert_eq!(sign(&events.concat()), None);
}

/// 7 and 8 are SCHED_DEADLINE threads.
#[test]
fn a_deadline_thread_yields_to_lower_classes_without_runtime() {
    const D: i32 = -1;
    let runs = |events: &[Event<'static>], last: (i32, i32)| {
        let begin = [with_prio(0, (0, 120), R, (7, D))];
        let end = [with_prio(100, last, R, (7, D))];
        sign(&[&begin[..], events, &end].concat())
    };
    let out = |next| with_prio(10, (7, D), R, next);
    let expired = timer(90, 0, DEADLINE);
    let then = |first: &[Event<'static>]| [first, &expired].concat();
    let unrecorded = Some(Sign::Deadline(90, Runtime::Unrecorded));
    for lower in [(0, 120), (6, 120), (6, 0)] {
        assert_eq!(runs(&then(&[out(lower)]), lower), unrecorded, "{lower:?}");
    }
    // The thread gave up its runtime, or is known to be in another call.
    let call = |name| at(9, 0, What::Call { name });
    let yielded = then(&[call(b"sched_yield"), out((0, 120))]);
    let expected = Some(Sign::Deadline(90, Runtime::Yielded));
    assert_eq!(runs(&yielded, (0, 120)), expected);
    let read = then(&[call(b"read"), out((0, 120))]);
    let expected = Some(Sign::Deadline(90, Runtime::UsedUp));
    assert_eq!(runs(&read, (0, 120)), expected);
    // A thread with an earlier deadline, or the stopper, has the CPU.
    for higher in [(8, D), (9, 0)] {
        assert_eq!(runs(&then(&[out(higher)]), higher), None, "{higher:?}");
        // The CPU then runs a lower class, so the thread has no runtime.
        let lower = |out| [out, with_prio(30, higher, S, (6, 120))];
        let first = lower(out(higher));
        assert_eq!(runs(&then(&first), (6, 120)), unrecorded, "{higher:?}");
        let later = [
            &[out((6, 120))][..],
            &lower(with_prio(20, (6, 120), R, higher)),
        ]
        .concat();
        assert_eq!(runs(&then(&later), (6, 120)), unrecorded, "{higher:?}");
        // That thread has the CPU when the timer expires, so the timer may be another thread's.
        let at_expiry = [out((6, 120)), with_prio(20, (6, 120), R, higher)];
        assert_eq!(runs(&then(&at_expiry), higher), None, "{higher:?}");
    }
    // The timer was another thread's: this thread could have run after it.
    let other = [
        then(&[out((6, 120))]),
        vec![with_prio(95, (6, 120), R, (5, 120))],
    ]
    .concat();
    assert_eq!(runs(&other, (5, 120)), None);
    // The timer moves the thread to another CPU at once.
    let (tid, name, from, to) = (7, &b""[..], 0, 1);
    let moves = at(
        92,
        0,
        What::Migrate {
            tid,
            name,
            from,
            to,
        },
    );
    let moved = [
        &[with_prio(0, (0, 120), R, (7, D)), out((0, 120))][..],
        &expired,
        &[moves],
    ];
    let m = model(&moved.concat());
    assert_eq!(m.sign(m.by_tid(7).next().unwrap(), 92), unrecorded);
    // The thread had this priority only as the owner of a lock, and is in a lower class by now.
    let boosted = [
        with_prio(0, (0, 120), R, (7, D)),
        out((6, 120)),
        expired[0],
        expired[1],
        with_prio(100, (6, 120), R, (7, 120)),
    ];
    assert_eq!(sign(&boosted), None);
    // A quota does not apply to such threads.
    let quota = [&[out((0, 120))][..], &timer(90, 0, PERIOD)].concat();
    assert_eq!(runs(&quota, (0, 120)), None);
}

#[test]
fn a_bio_that_a_throttling_work_submits_was_held_back() {
    let disk = Disk(8 << 20);
    let limited = |function, before: &[Event<'static>]| {
        let request = |time, stage| {
            at(
                time,
                1,
                What::Request {
                    stage,
                    disk,
                    sector: 8,
                    sectors: 8,
                },
            )
        };
        let done = What::Completed {
            disk,
            range: Some((8, 8)),
            kind: lt_model::Kind::Plain,
        };
        let begin = [
            switch(0, 0, 0, R, 7),
            switch(1, 0, 7, S, 0),
            switch(2, 1, 0, R, 5),
            at(50, 1, What::Work { function }),
        ];
        let end = [
            request(60, Stage::Queued),
            request(61, Stage::Allocated),
            request(62, Stage::Issued),
            at(
                70,
                0,
                What::Irq {
                    number: 1,
                    name: b"disk",
                },
            ),
            at(71, 0, done),
            waking(72, 0, 7),
        ];
        let m = model(&[&begin[..], before, &end].concat());
        let seven = m.thread(m.by_tid(7).next().unwrap()).unwrap();
        let waker = seven.intervals.iter().find_map(|i| i.waker).unwrap();
        m.request(waker).unwrap().limited
    };
    assert_eq!(limited(THROTTLE, &[]), Some(60));
    assert_eq!(limited(PERIOD, &[]), None);
    assert_eq!(limited(THROTTLE, &[at(55, 1, What::WorkEnd)]), None);
    // Another context interrupts the work, or events are lost meanwhile.
    assert_eq!(
        limited(THROTTLE, &[at(55, 1, What::Softirq { vector: 3 })]),
        None
    );
    let other = at(55, 2, What::Lost { until: 56 });
    assert_eq!(limited(THROTTLE, &[other]), None);
}

#[test]
fn a_thread_without_a_wait_has_no_sign() {
    let m = model(&[switch(0, 0, 0, R, 7), switch(100, 0, 7, S, 0)]);
    assert_eq!(m.sign(ThreadId(0), 100), None);
}
