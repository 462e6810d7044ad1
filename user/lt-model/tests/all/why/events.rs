// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Paths from known events: the named threads, and the users of the processor.

use lt_model::why::{
    Cause, Leaf, Piece, Search, Worker, handled, instead, path, thread_in, unusual, used,
};
use lt_model::{Builder, Event, Handler, Model, Raiser, Sleep, SwitchedOut, ThreadId, Use, What};

use crate::made::{R, S, at, chain, completed, model, switch, waking};

fn of(m: &Model, tid: i32) -> ThreadId {
    m.by_tid(tid).next().unwrap()
}

#[test]
fn a_chain_ends_at_a_device() {
    let m = model(&chain(0));
    let told: Vec<_> = path(&m, of(&m, 7), 0, 20)
        .iter()
        .map(|p| (m.threads[p.thread.0 as usize].tid, p.end, p.depth))
        .collect();
    assert_eq!(
        told,
        [
            (7, 1, 0),
            (7, 3, 0),
            (8, 5, 1),
            (8, 10, 1),
            (8, 12, 1),
            (8, 15, 1),
            (7, 18, 0),
            (7, 20, 0)
        ]
    );
    let pieces = path(&m, of(&m, 7), 0, 20);
    assert!(
        matches!(pieces[3].cause, Cause::For(Leaf::Irq(24, name), _) if m.names.text(name) == "disk")
    );
    assert!(matches!(pieces[1].cause, Cause::Running(Some(call)) if m.names.text(call) == "fsync"));
    // The path of a part of the wait covers that part.
    let part = path(&m, of(&m, 7), 8, 13);
    let ends: Vec<_> = part.iter().map(|p| (p.begin, p.end)).collect();
    assert_eq!(ends, [(8, 10), (10, 12), (12, 13)]);
}

/// The pieces of a path: thread, cause and end of each.
fn told(m: &Model, tid: i32, from: u64, to: u64) -> String {
    let one = |p: &Piece| {
        let why = match p.cause {
            Cause::Running(_) => "R".to_string(),
            Cause::Waiting | Cause::Preempted => "P".to_string(),
            Cause::For(Leaf::Irq(number, _), _) => format!("irq {number}"),
            other => format!("{other:?}"),
        };
        format!("{} {why} {}", m.threads[p.thread.0 as usize].tid, p.end)
    };
    let all: Vec<_> = path(m, of(m, tid), from, to).iter().map(one).collect();
    all.join(", ")
}

/// Lists of events from the tests of other implementations, such as Trace Compass's tests of its graph, each as seen
/// on one machine.
#[test]
fn the_paths_of_published_lists_of_events() {
    // Two threads take turns, and the waker of the second is not recorded.
    let m = model(&[
        switch(10, 0, 1, R, 2),
        switch(20, 0, 2, S, 1),
        switch(30, 0, 1, R, 2),
        switch(40, 0, 2, S, 1),
    ]);
    assert_eq!(told(&m, 1, 10, 40), "1 P 20, 1 R 30, 1 P 40");
    assert_eq!(told(&m, 2, 10, 40), "2 R 20, 2 Blocked(None) 30, 2 R 40");

    // 200 sends a packet and waits for the answer, which a softirq of another processor delivers; 202 waits for 200.
    let answered = |end: &[Event<'static>]| {
        let begin = [
            switch(7, 0, 202, S, 201),
            switch(10, 0, 201, R, 200),
            switch(15, 0, 200, S, 201),
        ];
        model(&[&begin, end].concat())
    };
    let m = answered(&[
        at(60, 1, What::Softirq { vector: 3 }),
        waking(70, 1, 200),
        at(72, 1, What::SoftirqEnd { vector: 3 }),
        switch(75, 0, 201, R, 200),
        waking(90, 0, 202),
        switch(95, 0, 200, S, 202),
    ]);
    assert_eq!(
        told(&m, 200, 10, 95),
        "200 R 15, 200 For(Packet(Unrecorded), None) 70, 200 P 75, 200 R 95"
    );
    assert_eq!(
        told(&m, 202, 10, 95),
        "200 R 15, 200 For(Packet(Unrecorded), None) 70, 200 P 75, 200 R 90, 202 P 95"
    );

    // The thread of an interrupt delivers the answer.
    let name = b"wlan";
    let m = answered(&[
        at(50, 0, What::Irq { number: 30, name }),
        waking(55, 0, 50),
        at(57, 0, What::IrqEnd { number: 30 }),
        switch(60, 0, 201, R, 50),
        waking(70, 0, 200),
        switch(75, 0, 50, S, 200),
        switch(95, 0, 200, S, 201),
    ]);
    assert_eq!(
        told(&m, 200, 10, 95),
        "200 R 15, 50 Unknown(Unseen) 55, 50 P 60, 50 R 70, 200 P 75, 200 R 95"
    );
}

#[test]
fn ksoftirqd_works_for_the_handler_that_has_left_it_a_softirq() {
    for thread in [&b"ksoftirqd/0"[..], b"ktimersoftd/0"] {
        works_for_the_handler(thread);
    }
}

fn works_for_the_handler(thread: &'static [u8]) {
    const HI: u32 = 0;
    const TIMER: u32 = 1;
    const NET_RX: u32 = 3;
    let named = |time| {
        let (tid, name) = (3, thread);
        at(time, 0, What::There { tid, name })
    };
    let wakes = Event {
        time: 64,
        cpu: 0,
        what: What::Waking {
            tid: 3,
            name: thread,
            target: 0,
        },
    };
    let name = b"disk";
    let path_of = |vector, handler: [Event<'static>; 3]| {
        let begin = [
            named(1),
            switch(5, 0, 3, S, 7),
            switch(10, 0, 7, S, 0),
            at(20, 0, What::Softirq { vector: 9 }),
        ];
        // The handler interrupts another softirq, after which the thread is woken.
        let end = [
            at(62, 0, What::SoftirqEnd { vector: 9 }),
            wakes,
            switch(70, 0, 0, R, 3),
            at(71, 0, What::Softirq { vector }),
            waking(75, 0, 7),
            at(76, 0, What::SoftirqEnd { vector }),
            switch(80, 0, 3, S, 7),
        ];
        told(&model(&[&begin[..], &handler, &end].concat()), 7, 10, 80)
    };
    let [entry, raise, exit] = [
        at(30, 0, What::Irq { number: 24, name }),
        at(59, 0, What::Raise { vector: HI }),
        at(60, 0, What::IrqEnd { number: 24 }),
    ];
    assert_eq!(
        path_of(HI, [entry, raise, exit]),
        "3 irq 24 64, 3 P 70, 3 R 75, 7 P 80"
    );
    // A timer wakes the thread, which also runs the softirq that the handler raised.
    let by_timer = [
        at(62, 0, What::Softirq { vector: 9 }),
        at(63, 0, What::SoftirqEnd { vector: 9 }),
        at(63, 0, What::Timer { function: None }),
    ];
    assert_eq!(
        told(
            &model(
                &[
                    &[named(1), switch(5, 0, 3, S, 7), switch(10, 0, 7, S, 0)],
                    &[entry, raise, exit][..],
                    &by_timer,
                    &[wakes, at(65, 0, What::TimerEnd), switch(70, 0, 0, R, 3)],
                    &[at(71, 0, What::Softirq { vector: HI }), waking(75, 0, 7)],
                    &[switch(80, 0, 3, S, 7)],
                ]
                .concat()
            ),
            7,
            10,
            80
        ),
        "3 irq 24 64, 3 P 70, 3 R 75, 7 P 80"
    );
    // The interrupted thread is not the sender of the packet, either.
    assert_eq!(
        path_of(NET_RX, [entry, exit, at(61, 0, What::Exit)]),
        "3 For(Packet(Unrecorded), None) 64, 3 P 70, 3 R 75, 7 P 80"
    );
    // The raiser of the softirq is unknown, but its vector is known.
    let late = Event { time: 60, ..raise };
    assert_eq!(
        path_of(HI, [entry, exit, late]),
        "3 For(Softirq(0, Unrecorded), None) 64, 3 P 70, 3 R 75, 7 P 80"
    );
    // The due time of the timer is not known, and neither is the thread's share of the delay.
    assert_eq!(
        path_of(TIMER, [entry, exit, late]),
        "7 For(Timer, None) 75, 7 P 80"
    );
}

/// The raiser of the softirq that delivers a packet shows the origin of the packet.
#[test]
fn a_packet_is_from_the_network_if_a_device_has_raised_its_softirq() {
    let vector = 3;
    let cause = |raised: &[Event<'static>]| {
        let begin = [switch(0, 0, 0, R, 7), switch(10, 0, 7, S, 0)];
        let end = [
            at(56, 0, What::Softirq { vector }),
            waking(57, 0, 7),
            at(58, 0, What::SoftirqEnd { vector }),
            switch(60, 0, 0, R, 7),
        ];
        let m = model(&[&begin[..], raised, &end].concat());
        let pieces = path(&m, of(&m, 7), 10, 57);
        // The last piece: a gap before it is a separate piece.
        match pieces.last().map(|piece| piece.cause) {
            Some(Cause::For(leaf, None)) => leaf,
            other => panic!("{other:?}"),
        }
    };
    let raise = |time| at(time, 0, What::Raise { vector });
    let name = b"eth0";
    let device = [
        at(50, 0, What::Irq { number: 27, name }),
        raise(51),
        at(52, 0, What::IrqEnd { number: 27 }),
    ];
    let timer = [
        at(50, 0, What::Softirq { vector: 1 }),
        raise(51),
        at(52, 0, What::SoftirqEnd { vector: 1 }),
    ];
    assert!(matches!(cause(&device), Leaf::Network(Handler(27, _))));
    assert_eq!(cause(&timer), Leaf::Packet(Raiser::Timer));
    let both = [&device[..], &timer.map(|e| Event { time: 53, ..e })].concat();
    assert_eq!(cause(&both), Leaf::Packet(Raiser::Several));
    // The first raise has been served.
    let served = [
        at(53, 0, What::Softirq { vector }),
        at(53, 0, What::SoftirqEnd { vector }),
    ];
    let other = [
        &device[..],
        &served,
        &timer.map(|e| Event { time: 54, ..e }),
    ]
    .concat();
    assert_eq!(cause(&other), Leaf::Packet(Raiser::Timer));
    // A softirq whose raise was lost or not recorded does not count as the device's, either.
    let lost = [&device[..], &[at(53, 0, What::Lost { until: 54 })]].concat();
    assert_eq!(cause(&lost), Leaf::Packet(Raiser::Unrecorded));
    assert_eq!(cause(&[]), Leaf::Packet(Raiser::Unrecorded));
}

/// As on PREEMPT_RT: 8 has the processor of `ktimers/0`, which runs the timer that wakes 7, or that completes the
/// request of 7.
#[test]
fn what_delays_a_timer_after_its_due_time_is_on_the_path() {
    const HRTIMER: u32 = 8;
    let (tid, name, target) = (3, &b"ktimers/0"[..], 0);
    let disk = lt_model::Disk(8 << 20);
    let path_of = |of_disk: bool, raised: bool, timers: u64| {
        let function = None;
        let timer = |time| at(time, 0, What::Timer { function });
        let mut events = vec![
            at(1, 0, What::There { tid, name }),
            switch(2, 0, 3, S, 7),
            at(
                9,
                0,
                What::Request {
                    stage: lt_model::Stage::Issued,
                    disk,
                    sector: 64,
                    sectors: 8,
                },
            ),
            switch(10, 0, 7, S, 8),
            // A wakeup for another softirq.
            at(20, 0, What::Waking { tid, name, target }),
            timer(39),
        ];
        if raised {
            events.push(at(40, 0, What::Raise { vector: HRTIMER }));
        }
        events.extend([
            at(41, 0, What::TimerEnd),
            switch(90, 0, 8, R, 3),
            at(91, 0, What::Softirq { vector: HRTIMER }),
            timer(92),
        ]);
        if of_disk {
            let range = Some((64, 8));
            events.push(completed(92, disk, range));
        }
        events.extend([waking(93, 0, 7), at(94, 0, What::TimerEnd)]);
        for time in (95..).take(timers as usize - 1) {
            events.extend([timer(time), at(time, 0, What::TimerEnd)]);
        }
        events.extend([
            at(97, 0, What::SoftirqEnd { vector: HRTIMER }),
            switch(98, 0, 3, S, 7),
        ]);
        let m = model(&events);
        let waits = handled(&m, of(&m, 7), 93).len();
        (told(&m, 7, 10, 98), waits)
    };
    let late = "3 P 90, 3 R 92, 3 Interrupted(Timer) 93, 7 P 98";
    let of_disk = "For(Disk(Some(Disk(8388608))), None)";
    for (of_disk, what) in [(false, "For(Timer, None)"), (true, of_disk)] {
        let known = (format!("7 {what} 40, {late}"), 0);
        assert_eq!(path_of(of_disk, true, 1), known);
        // With several timers, or without the raise, the due time is not known.
        for (raised, timers) in [(true, 2), (false, 1)] {
            let (path, waits) = path_of(of_disk, raised, timers);
            assert_eq!((path, waits), (format!("7 {what} 93, 7 P 98"), 1));
        }
    }
}

#[test]
fn a_wait_for_a_disk_names_it() {
    let disk = lt_model::Disk(8 << 20);
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(1, 0, 7, S, 0),
        at(5, 0, What::Softirq { vector: 4 }),
        completed(6, disk, None),
        waking(7, 0, 7),
        at(8, 0, What::SoftirqEnd { vector: 4 }),
        switch(9, 0, 0, R, 7),
    ]);
    let pieces = path(&m, of(&m, 7), 1, 7);
    assert_eq!(pieces[0].cause, Cause::For(Leaf::Completion(disk), None));
}

/// A timer ends a sleep for the dirty limit, but the limit is the cause of the sleep.
#[test]
fn a_sleep_for_the_dirty_limit_is_not_for_a_timer() {
    const D: SwitchedOut = SwitchedOut::Blocked(Sleep::Uninterruptible);
    let disk = Some(lt_model::Disk(8 << 20));
    let cause = |between: &[Event<'static>], out| {
        let begin = [switch(0, 0, 0, R, 7), at(1, 0, What::Dirty { disk })];
        let end = [
            switch(3, 0, 7, out, 0),
            at(50, 0, What::Timer { function: None }),
            waking(50, 0, 7),
            at(51, 0, What::TimerEnd),
            switch(52, 0, 0, R, 7),
            switch(60, 0, 7, S, 0),
            at(70, 0, What::Timer { function: None }),
            waking(70, 0, 7),
            at(71, 0, What::TimerEnd),
        ];
        let m = model(&[&begin[..], between, &end].concat());
        let causes = [(3, 50), (60, 70)].map(|(from, to)| path(&m, of(&m, 7), from, to)[0].cause);
        assert_eq!(causes[1], Cause::For(Leaf::Timer, None));
        causes[0]
    };
    assert_eq!(cause(&[], D), Cause::For(Leaf::Dirty(disk), None));
    // The thread writes for io_uring, did not sleep for the limit, and waits for something else.
    assert_eq!(cause(&[], S), Cause::For(Leaf::Timer, None));
    // A thread runs the timer, as on PREEMPT_RT.
    let name = b"ktimers/1";
    let by_thread = [
        at(1, 1, What::There { tid: 5, name }),
        switch(2, 1, 0, R, 5),
    ];
    let timer = |time| {
        [
            at(time, 1, What::Softirq { vector: 1 }),
            waking(time, 1, 7),
            at(time + 1, 1, What::SoftirqEnd { vector: 1 }),
        ]
    };
    let slept = [
        &[switch(0, 0, 0, R, 7), at(1, 0, What::Dirty { disk })][..],
        &by_thread,
        &[switch(3, 0, 7, D, 0)],
        &timer(50),
        &[switch(52, 0, 0, R, 7)],
    ]
    .concat();
    let m = model(&slept);
    assert_eq!(
        path(&m, of(&m, 7), 3, 50)[0].cause,
        Cause::For(Leaf::Dirty(disk), None)
    );
    // The thread did something else first.
    let returns = at(2, 0, What::Return);
    assert_eq!(cause(&[returns], D), Cause::For(Leaf::Timer, None));
}

#[test]
fn the_user_of_the_processor_is_named() {
    let m = model(&[
        switch(0, 1, 7, S, 8),
        at(
            2,
            0,
            What::Waking {
                tid: 7,
                name: b"",
                target: 1,
            },
        ),
        switch(3, 1, 8, R, 9),
        switch(9, 1, 9, S, 7),
        switch(12, 1, 7, R, 8),
    ]);
    let pieces = path(&m, of(&m, 7), 0, 12);
    let waits = pieces.iter().find(|p| p.cause == Cause::Waiting).unwrap();
    assert_eq!((waits.begin, waits.end, waits.cpu), (2, 9, Some(1)));
    assert_eq!(instead(&m, waits), Some((Use::Thread(of(&m, 9)), 6)));
    assert_eq!(instead(&m, &pieces[0]), None);
}

#[test]
fn before_a_thread_exists_its_creator_is_on_the_path() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        // 7 waits for a thread that 8 creates at 4.
        switch(1, 0, 7, S, 0),
        at(
            4,
            1,
            What::Fork {
                child: 9,
                name: b"",
            },
        ),
        switch(5, 1, 8, S, 9),
        waking(8, 1, 7),
        switch(9, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
    ]);
    let told: Vec<_> = path(&m, of(&m, 7), 0, 10)
        .iter()
        .map(|p| {
            (
                m.threads[p.thread.0 as usize].tid,
                p.end,
                p.cause == Cause::Running(None),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (7, 1, true),
            (8, 4, true),
            (9, 5, false),
            (9, 8, true),
            (7, 9, false),
            (7, 10, true)
        ]
    );
}

#[test]
fn a_user_that_works_more_than_in_the_rest_of_the_trace_is_unusual() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        // 9 runs from 60 to 80, and is interrupted for a quarter of the time on one CPU.
        switch(60, 0, 7, R, 9),
        at(70, 0, What::Softirq { vector: 3 }),
        at(75, 0, What::SoftirqEnd { vector: 3 }),
        switch(80, 0, 9, S, 7),
        switch(100, 1, 8, R, 0),
    ]);
    let told = |from, to| -> Vec<_> {
        let all = unusual(&m, from, to, 0.1);
        all.iter().map(|w| (w.who, w.then, w.otherwise)).collect()
    };
    assert_eq!(
        told(60, 80),
        [
            (Worker::Thread(of(&m, 9)), 0.75, 0.0),
            (Worker::Leaf(Leaf::Packet(Raiser::Unrecorded)), 0.25, 0.0)
        ]
    );
    // 7 works all of this time, and half of the remaining time.
    assert_eq!(told(0, 60), [(Worker::Thread(of(&m, 7)), 1.0, 0.5)]);
    // There is no other time to compare with.
    assert!(told(0, 100).is_empty());
    assert!(told(200, 300).is_empty());
}

/// The buffer of a busy processor fills sooner, so its part of the trace starts later.
#[test]
fn a_user_that_works_all_the_recorded_time_is_not_unusual() {
    let m = model(&[
        switch(0, 0, 0, R, 0),
        switch(80, 1, 0, R, 8),
        switch(100, 1, 8, R, 8),
        switch(100, 0, 0, R, 0),
    ]);
    assert_eq!(used(&m, 1, 0, 100)[0], (Use::Unknown, 80));
    assert_eq!(unusual(&m, 90, 100, 0.1), []);
    // That processor has no other time to compare with.
    assert_eq!(unusual(&m, 70, 100, 0.1), []);
}

#[test]
fn the_longest_use_of_a_processor_comes_first() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
        switch(40, 0, 0, R, 7),
        switch(50, 0, 7, S, 0),
    ]);
    let thread = Use::Thread(of(&m, 7));
    assert_eq!(used(&m, 0, 0, 50), [(Use::Idle, 30), (thread, 20)]);
    assert_eq!(used(&m, 0, 5, 12), [(thread, 5), (Use::Idle, 2)]);
    assert!(used(&m, 9, 0, 50).is_empty());
}

#[test]
fn a_number_that_is_used_again_is_the_thread_of_that_time() {
    let fork = |time| {
        at(
            time,
            0,
            What::Fork {
                child: 9,
                name: b"",
            },
        )
    };
    let m = model(&[
        switch(0, 0, 0, R, 7),
        fork(1),
        switch(2, 0, 7, R, 9),
        switch(10, 0, 9, SwitchedOut::Dead, 7),
        fork(20),
        switch(30, 0, 7, S, 9),
        switch(40, 0, 9, S, 0),
    ]);
    let all: Vec<_> = m.by_tid(9).collect();
    assert_eq!(thread_in(&m, 9, 0, 15), Some(all[0]));
    assert_eq!(thread_in(&m, 9, 8, 40), Some(all[1]));
    assert_eq!(thread_in(&m, 9, 11, 19), None);
    assert_eq!(thread_in(&m, 4, 0, 50), None);
}

/// The first activity of the new thread is not recorded, and ends with a wakeup by a thread that did not create it.
#[test]
fn the_first_waker_of_a_thread_is_not_its_creator() {
    let fork = What::Fork {
        child: 9,
        name: b"",
    };
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        at(4, 1, fork),
        at(4, 0, What::Lost { until: 5 }),
        switch(6, 0, 0, S, 9),
        switch(6, 0, 0, S, 7),
        waking(8, 0, 9),
        switch(9, 0, 7, S, 9),
        switch(10, 0, 9, S, 0),
    ]);
    let first = path(&m, of(&m, 9), 0, 10)[0];
    assert_eq!((first.thread, first.end), (of(&m, 8), 4));
}

/// The thread that ran the timer is not on the path, but its activity is also kept, from its last wakeup on.
#[test]
fn in_two_passes_the_thread_that_ran_a_timer_is_known() {
    let (tid, name, target) = (5, &b"ktimers/1"[..], 1);
    let events = [
        at(0, 1, What::There { tid, name }),
        switch(0, 0, 0, R, 7),
        switch(1, 1, 0, R, 5),
        switch(2, 1, 5, S, 8),
        switch(10, 0, 7, S, 0),
        // Other work.
        at(15, 1, What::Waking { tid, name, target }),
        switch(16, 1, 8, R, 5),
        switch(20, 1, 5, S, 8),
        at(30, 1, What::Waking { tid, name, target }),
        switch(90, 1, 8, R, 5),
        at(91, 1, What::Softirq { vector: 1 }),
        waking(92, 1, 7),
        switch(95, 0, 0, R, 7),
    ];
    let whole = model(&events);
    let mut first = Builder::new();
    first.keep_waits();
    events.iter().for_each(|e| first.feed(e));
    let mut second = Builder::new();
    second.keep_only(Search::path(of(&whole, 7), 10, 95).all(&first.finish()));
    events.iter().for_each(|e| second.feed(e));
    let part = second.finish();
    for m in [&whole, &part] {
        let waits = handled(m, of(m, 7), 92);
        let parts: Vec<_> = waits.iter().map(|p| (p.thread, p.begin, p.end)).collect();
        assert_eq!(parts, [(of(m, 5), 30, 90)]);
        assert_eq!(used(m, 1, 30, 90), [(Use::Thread(of(m, 8)), 60)]);
    }
    let handler = part.thread(of(&part, 5)).unwrap();
    let unseen = handler.intervals.first().unwrap();
    assert_eq!((unseen.begin, unseen.end), (0, 20));
}
