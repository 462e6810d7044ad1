// SPDX-License-Identifier: GPL-2.0 OR MIT

//! States of threads if the streams of some processors start late, end early, have gaps, or are missing.

use lt_model::{Builder, Event, Model, State, Unrecorded, Use, What};

use crate::made::*;
use crate::told::told;

/// The model of these events. Each stream is a processor, with its start and end.
fn model_of(streams: &[(u32, u64, u64)], events: &[Event<'_>]) -> Model {
    let mut builder = Builder::new();
    for (cpu, begin, end) in streams {
        builder.has_stream(*cpu, *begin, *end);
    }
    events.iter().for_each(|e| builder.feed(e));
    builder.finish()
}

/// The gaps of the processors.
fn gaps(model: &Model) -> Vec<(u32, (u64, u64), Unrecorded)> {
    model.gaps().collect()
}

/// The unrecorded parts of a thread's activity, with the reasons.
fn why(model: &Model, tid: i32) -> Vec<(u64, u64, Unrecorded)> {
    let id = model.by_tid(tid).next().unwrap();
    let all = model.thread(id).unwrap().intervals.iter();
    all.filter_map(|i| match i.state {
        State::Unknown(why) => Some((i.begin, i.end, why)),
        _ => None,
    })
    .collect()
}

/// As in a flight recorder: only the last events of the busy processor are left.
#[test]
fn a_thread_is_not_known_to_be_off_while_a_stream_has_not_started() {
    let events = [
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, R, 9),
        // 7 ran on CPU 1 from 20 to 60, but these events were overwritten.
        switch(80, 1, 8, S, 7),
        switch(90, 1, 7, S, 0),
        switch(100, 0, 9, S, 0),
    ];
    let m = model_of(&[(0, 0, 100), (1, 70, 100)], &events);
    assert_eq!(
        told(&m, 7),
        "0..10 running, 10..70 unknown, 70..80 preempted, 80..90 running, 90..100 blocked"
    );
    assert_eq!(why(&m, 7), [(10, 70, Unrecorded::Before(1))]);
    // The first switch of CPU 1 shows the thread that ran from the start of its stream.
    assert_eq!(
        told(&m, 8),
        "0..70 unknown, 70..80 running, 80..100 blocked"
    );
    let used: Vec<_> = m.processors[1].stretches.iter().collect();
    assert_eq!((used[0].used, used[0].end), (Use::Unknown, 70));
    assert_eq!(used[1].end, 80);
    assert!(matches!(used[1].used, Use::Thread(_)), "{used:?}");
}

#[test]
fn a_thread_is_not_known_to_be_off_after_a_stream_has_ended() {
    let events = [
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(10, 0, 7, S, 9),
        switch(100, 0, 9, S, 0),
    ];
    let m = model_of(&[(0, 0, 100), (1, 0, 40)], &events);
    assert_eq!(
        told(&m, 7),
        "0..10 running, 10..40 blocked, 40..100 unknown"
    );
    assert_eq!(why(&m, 7), [(40, 100, Unrecorded::After(1))]);
    assert_eq!(told(&m, 8), "0..40 running, 40..100 unknown");
    // A stream may last until the end of the trace, long after its last event.
    let m = model_of(&[(0, 0, 100), (1, 0, 100)], &events);
    assert_eq!(told(&m, 7), "0..10 running, 10..100 blocked");
    assert_eq!(told(&m, 8), "0..100 running");
}

#[test]
fn nothing_is_known_of_a_processor_without_a_stream() {
    let wakeup = What::Wakeup {
        tid: 7,
        name: b"",
        target: 1,
    };
    let m = model_of(
        &[(0, 0, 100)],
        &[
            switch(0, 0, 0, R, 7),
            switch(10, 0, 7, S, 9),
            at(20, 0, wakeup),
            switch(100, 0, 9, S, 7),
            switch(110, 0, 7, S, 0),
        ],
    );
    let parts = why(&m, 7);
    assert_eq!(parts[0], (10, 20, Unrecorded::NoStream(1)));
    assert_eq!(parts[1].1, 100);
    let expected = [
        (0, (100, u64::MAX), Unrecorded::After(0)),
        (1, (0, u64::MAX), Unrecorded::NoStream(1)),
    ];
    assert_eq!(gaps(&m), expected);
}

#[test]
fn each_gap_has_its_processor_and_its_reason() {
    let lost = |until| {
        let events = [
            switch(0, 0, 0, R, 7),
            switch(30, 1, 0, R, 8),
            at(40, 1, What::Lost { until }),
            switch(100, 0, 7, S, 0),
        ];
        // Nothing ever switches on CPU 2, which is recorded.
        gaps(&model_of(&[(0, 0, 100), (1, 20, 60), (2, 0, 100)], &events))
    };
    let (before, after) = (Unrecorded::Before(1), Unrecorded::After(1));
    let all = |until| {
        [
            (1, (0, 20), before),
            (1, (40, until), Unrecorded::Lost(1)),
            (1, (60, u64::MAX), after),
        ]
    };
    assert_eq!(lost(50), all(50));
    // Adjacent gaps keep their reasons.
    assert_eq!(lost(60), all(60));
}

/// Events are lost on CPU 0 from 30 to 60.
#[test]
fn a_sleep_with_a_gap_is_known_up_to_the_gap_and_after_it() {
    let m = model(&[
        switch(0, 0, 0, R, 8),
        switch(0, 1, 0, R, 7),
        switch(10, 1, 7, S, 0),
        at(30, 0, What::Lost { until: 60 }),
        waking(80, 0, 7),
        switch(90, 1, 0, R, 7),
        switch(95, 0, 8, S, 0),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..10 running, 10..30 blocked, 30..60 unknown, 60..80 blocked by an unknown waker, \
         80..90 waiting, 90..95 running"
    );
    assert_eq!(why(&m, 7), [(30, 60, Unrecorded::Lost(0))]);
    assert_eq!(told(&m, 8), "0..30 running, 30..60 unknown, 60..95 running");
}

#[test]
fn a_gap_has_the_reason_that_its_event_reports() {
    let until = 60;
    for (what, reason) in [
        (What::Lost { until }, Unrecorded::Lost(0)),
        (What::NoPackets { until }, Unrecorded::NoPackets(0)),
        (What::Damaged { until }, Unrecorded::Damaged(0)),
        (What::Between { until }, Unrecorded::Between(0)),
    ] {
        let m = model(&[
            switch(0, 0, 0, R, 7),
            at(30, 0, what),
            switch(100, 0, 7, S, 0),
        ]);
        assert_eq!(
            told(&m, 7),
            "0..30 running, 30..60 unknown, 60..100 running"
        );
        assert_eq!(why(&m, 7), [(30, 60, reason)]);
        assert_eq!(gaps(&m), [(0, (30, 60), reason)]);
    }
}

#[test]
fn a_thread_without_a_recorded_switch_in_was_not_off_all_the_time() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(10, 0, 7, R, 9),
        // The switch from 8 to 7 is missing.
        switch(50, 1, 7, S, 8),
        switch(60, 1, 8, S, 0),
    ]);
    assert_eq!(told(&m, 7), "0..10 running, 10..50 unknown, 50..60 blocked");
    assert_eq!(why(&m, 7), [(10, 50, Unrecorded::Missing)]);
}

/// Only the first switch shows which thread has run since the start of the trace, or since a gap.
#[test]
fn a_thread_that_is_known_late_was_interrupted_before() {
    let (number, vector) = (24, 3);
    let handler = What::Irq {
        number,
        name: b"eth0",
    };
    let told_of = |prev_name: &'static [u8]| {
        let last = What::Switch {
            prev: 5,
            prev_name,
            out: S,
            next: 0,
            next_name: b"",
            prev_prio: None,
            next_prio: None,
        };
        let m = model(&[
            at(0, 0, What::Return),
            at(10, 0, handler),
            at(20, 0, What::Raise { vector }),
            at(30, 0, What::IrqEnd { number }),
            at(30, 0, What::Softirq { vector }),
            at(70, 0, What::SoftirqEnd { vector }),
            // The thread may have raised this one.
            at(75, 0, What::Softirq { vector }),
            at(80, 0, What::SoftirqEnd { vector }),
            at(90, 0, last),
        ]);
        told(&m, 5)
    };
    assert_eq!(
        told_of(b"busy"),
        "0..10 running, 10..30 under irq 24 eth0, 30..70 under NET_RX of irq 24 eth0, 70..90 running"
    );
    // A softirq is the work of this thread.
    assert_eq!(
        told_of(b"ksoftirqd/0"),
        "0..10 running, 10..30 under irq 24 eth0, 30..90 running"
    );
    let m = model(&[
        switch(0, 0, 0, R, 7),
        at(10, 0, What::Lost { until: 20 }),
        at(30, 0, handler),
        at(60, 0, What::IrqEnd { number }),
        switch(80, 0, 7, S, 0),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..10 running, 10..20 unknown, 20..30 running, 30..60 under irq 24 eth0, 60..80 running"
    );
}

/// The memory for interrupts before the first switch is limited: if it is full, the older half is dropped.
#[test]
fn of_very_many_interrupts_before_the_first_switch_the_last_are_known() {
    const IRQS: u64 = 8200;
    let (number, name) = (24, &b"eth0"[..]);
    let mut events = Vec::new();
    for time in (0..IRQS).map(|irq| irq * 10) {
        events.push(at(time, 0, What::Irq { number, name }));
        events.push(at(time + 1, 0, What::IrqEnd { number }));
    }
    events.push(switch(IRQS * 10, 0, 7, S, 0));
    let m = model(&events);
    let id = m.by_tid(7).next().unwrap();
    let parts: Vec<_> = m.thread(id).unwrap().intervals.iter().collect();
    assert!(matches!(parts[0].state, State::Unknown(_)));
    let interrupts = parts[1..]
        .iter()
        .filter(|part| matches!(part.state, State::Interrupted(_)));
    assert!(interrupts.clone().all(|part| part.end - part.begin == 1));
    assert_eq!(interrupts.count(), 4104);
}

/// CPU 1 is not recorded from 10 to 20, while two threads sleep.
#[test]
fn a_gap_splits_only_the_sleeps_of_threads_that_may_have_run_there() {
    let sleeps = |tid, name: &'static [u8], cpus: Option<&[u32]>| {
        let mut builder = Builder::new();
        if let Some(cpus) = cpus {
            builder.runs_on(tid, cpus);
        }
        let events = [
            at(0, 0, What::There { tid, name }),
            switch(1, 0, tid, S, 0),
            switch(2, 1, 9, S, 0),
            at(10, 1, What::Lost { until: 20 }),
            switch(30, 0, 0, R, tid),
        ];
        events.iter().for_each(|e| builder.feed(e));
        let why = why(&builder.finish(), tid);
        why.iter().any(|(.., why)| *why == Unrecorded::Lost(1))
    };
    assert!(sleeps(7, b"any", None));
    assert!(!sleeps(7, b"any", Some(&[0])));
    assert!(sleeps(7, b"any", Some(&[0, 1])));
    assert!(!sleeps(7, b"ksoftirqd/0", None));
    assert!(sleeps(7, b"ksoftirqd/1", None));
    // A worker may have come from another CPU, which is offline now.
    assert!(sleeps(7, b"kworker/0:1", None));
}

/// When the trace ends, 7 may run on CPU 0 only.
#[test]
fn processors_on_which_a_thread_may_run_count_only_if_it_never_runs_on_another() {
    let of = |cpu| {
        let mut builder = Builder::new();
        builder.runs_on(7, &[0]);
        let events = [
            switch(0, 0, 0, R, 7),
            switch(1, 0, 7, S, 0),
            switch(2, 1, 9, S, 0),
            at(10, 1, What::Lost { until: 20 }),
            waking(30, 0, 7),
            switch(31, 0, 0, R, 7),
            switch(40, 0, 7, S, 0),
            switch(50, cpu, 0, R, 7),
            switch(60, cpu, 7, S, 0),
            at(65, 1, What::Lost { until: 68 }),
            switch(80, 0, 0, R, 7),
            switch(90, 0, 7, S, 0),
        ];
        events.iter().for_each(|e| builder.feed(e));
        told(&builder.finish(), 7)
    };
    assert_eq!(
        of(0),
        "0..1 running, 1..30 blocked by an unknown waker, 30..31 waiting, 31..40 running, 40..50 blocked, \
         50..60 running, 60..80 blocked, 80..90 running"
    );
    assert_eq!(
        of(2),
        "0..1 running, 1..10 blocked, 10..20 unknown, 20..30 blocked by an unknown waker, 30..31 waiting, \
         31..40 running, 40..50 blocked, 50..60 running, 60..65 blocked, 65..68 unknown, 68..80 blocked, \
         80..90 running"
    );
}

/// 7 ran on CPU 1 in between, but the events of that CPU were overwritten, and the streams are not
/// declared.
#[test]
fn a_thread_that_has_moved_without_an_event_was_not_off_all_the_time() {
    let moved = |first: &[Event<'static>]| {
        let events = [
            switch(1, 0, 0, R, 7),
            switch(10, 0, 7, R, 9),
            switch(80, 1, 8, S, 7),
            switch(90, 1, 7, S, 0),
        ];
        model(&[first, &events].concat())
    };
    let (tid, name, from, to) = (5, &b""[..], 0, 1);
    let m = moved(&[at(
        0,
        0,
        What::Migrate {
            tid,
            name,
            from,
            to,
        },
    )]);
    assert_eq!(
        why(&m, 7)[..],
        [(0, 1, Unrecorded::Unseen), (10, 80, Unrecorded::Missing)]
    );
    // Moves are not recorded.
    assert_eq!(
        told(&moved(&[]), 7),
        "1..10 running, 10..80 preempted, 80..90 running"
    );
}
