// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Wakers, from tables of events.

use lt_model::{Builder, Disk, Event, Model, Sleep, Stage, SwitchedOut, What};

use crate::made::*;
use crate::told::told;

const TIMER: u32 = 1;
const NET_RX: u32 = 3;

fn softirq(time: u64, vector: u32) -> Event<'static> {
    at(time, 0, What::Softirq { vector })
}

fn softirq_end(time: u64, vector: u32) -> Event<'static> {
    at(time, 0, What::SoftirqEnd { vector })
}

fn irq(time: u64) -> [Event<'static>; 2] {
    let what = What::Irq {
        number: 5,
        name: b"disk",
    };
    [
        at(time, 0, what),
        at(time + 1, 0, What::IrqEnd { number: 5 }),
    ]
}

fn named(time: u64, tid: i32, name: &'static [u8]) -> Event<'static> {
    at(
        time,
        0,
        What::Waking {
            tid,
            name,
            target: 0,
        },
    )
}

/// Thread 7 sleeps from 0 on, and 8 runs, before the given events.
fn then(events: &[Event<'static>]) -> String {
    let mut all = vec![switch(0, 0, 7, S, 8)];
    all.extend_from_slice(events);
    all.push(switch(90, 0, 8, R, 9));
    first(&model(&all))
}

/// The first state of 7.
fn first(model: &Model) -> String {
    told(model, 7).split(", ").next().unwrap().to_string()
}

#[test]
fn the_waker_is_the_innermost_context_of_the_processor() {
    assert_eq!(then(&[waking(6, 0, 7)]), "0..6 blocked by 8");
    assert_eq!(
        then(&[softirq(5, TIMER), waking(6, 0, 7), softirq_end(7, TIMER)]),
        "0..6 blocked by TIMER"
    );
    let [begin, end] = irq(5);
    assert_eq!(
        then(&[softirq(4, TIMER), begin, waking(6, 0, 7), end]),
        "0..6 blocked by irq 5 disk"
    );
    assert_eq!(
        then(&[
            at(
                3,
                0,
                What::Ipi {
                    name: b"reschedule"
                }
            ),
            waking(6, 0, 7)
        ]),
        "0..6 blocked by ipi reschedule"
    );
}

#[test]
fn an_interrupt_of_another_processor_is_no_waker() {
    let [begin, end] = irq(5);
    assert_eq!(
        then(&[switch(1, 1, 0, R, 6), begin, waking(6, 1, 7), end]),
        "0..6 blocked by 6"
    );
}

#[test]
fn only_threads_to_which_an_interrupt_defers_work_are_woken_in_its_tail() {
    let [begin, end] = irq(4);
    for name in [&b"irq/5-disk"[..], b"ksoftirqd/0", b"ktimers/0"] {
        assert_eq!(
            then(&[begin, end, named(6, 7, name)]),
            "0..6 blocked by irq 5 disk"
        );
        // Another event came in between.
        let call = at(6, 0, What::Call { name: b"write" });
        assert_eq!(
            then(&[begin, end, call, named(6, 7, name)]),
            "0..6 blocked by 8"
        );
    }
    assert_eq!(
        then(&[begin, end, named(6, 7, b"fio")]),
        "0..6 blocked by 8"
    );
    // One interrupt may wake several threads.
    let both = [
        begin,
        end,
        named(6, 6, b"irq/5-s-disk"),
        named(7, 7, b"irq/5-disk"),
    ];
    assert_eq!(then(&both), "0..7 blocked by irq 5 disk");
}

#[test]
fn a_tail_is_short_and_belongs_to_one_interrupt() {
    // Thread 3, the thread of an interrupt, sleeps; 8 runs, and wakes it.
    let by = |events: &[Event<'static>]| {
        let begin = [
            named(0, 3, b"irq/5-disk"),
            switch(1, 0, 0, R, 3),
            switch(2, 0, 3, S, 8),
        ];
        let m = model(&[&begin[..], events, &[switch(900_000, 0, 8, R, 3)]].concat());
        let told = told(&m, 3);
        let slept = told.split(", ").find(|i| i.contains("blocked")).unwrap();
        slept.split(" by ").nth(1).unwrap().to_string()
    };
    let [begin, end] = irq(10);
    let wakes = |time| named(time, 3, b"irq/5-disk");
    assert_eq!(by(&[begin, end, wakes(20)]), "irq 5 disk");
    // The interrupt ended long ago: 8 may have handed over a lock, for example.
    assert_eq!(by(&[begin, end, wakes(500_000)]), "8");
    // A timer does not defer work to the thread of an interrupt.
    let timer = [
        at(10, 0, What::Timer { function: None }),
        at(11, 0, What::TimerEnd),
    ];
    assert_eq!(by(&[&timer[..], &[wakes(12)]].concat()), "8");
    // The handler of another interrupt does not defer work to this thread, either.
    let (number, name) = (55, b"other");
    let other = [
        at(10, 0, What::Irq { number, name }),
        at(11, 0, What::IrqEnd { number }),
        wakes(12),
    ];
    assert_eq!(by(&other), "8");
}

#[test]
fn a_softirq_in_its_own_thread_is_that_threads_work() {
    const TASKLET: u32 = 6;
    let m = model(&[
        switch(0, 0, 7, S, 0),
        named(1, 3, b"ksoftirqd/0"),
        switch(2, 0, 0, R, 3),
        softirq(3, TASKLET),
        waking(4, 0, 7),
        // On PREEMPT_RT a softirq may be preempted.
        switch(5, 0, 3, R, 8),
        waking(6, 0, 9),
        switch(7, 0, 8, S, 3),
        waking(8, 0, 8),
        softirq_end(9, TASKLET),
        switch(10, 0, 3, S, 7),
    ]);
    assert_eq!(told(&m, 7), "0..4 blocked by 3, 4..10 waiting");
    assert!(told(&m, 9).starts_with("0..6 unknown by 8"));
    assert!(told(&m, 8).contains("7..8 blocked by 3"), "{}", told(&m, 8));
    assert_eq!(
        told(&m, 3),
        "0..1 unknown by an unknown waker, 1..2 waiting, 2..5 running, 5..7 preempted, 7..10 running"
    );
}

/// The thread works for its own interrupt, not for another one that ends on top of it.
#[test]
fn a_softirq_on_top_of_the_thread_of_an_interrupt_belongs_to_its_raiser() {
    let by = |raised: &[Event<'static>]| {
        let begin = [
            switch(0, 0, 7, S, 0),
            named(1, 3, b"irq/9-acpi"),
            switch(2, 0, 0, R, 3),
        ];
        let end = [
            softirq(5, NET_RX),
            waking(6, 0, 7),
            softirq_end(7, NET_RX),
            switch(9, 0, 3, S, 7),
        ];
        first(&model(&[&begin[..], raised, &end].concat()))
    };
    let raise = at(4, 0, What::Raise { vector: NET_RX });
    let [begin, end] = irq(4);
    assert_eq!(
        by(&[begin, raise, end]),
        "0..6 blocked by NET_RX of irq 5 disk"
    );
    // The raise is not recorded.
    assert_eq!(by(&[begin, end]), "0..6 blocked by NET_RX");
    // On PREEMPT_RT the handler runs in the thread, and raises the softirq there.
    assert_eq!(by(&[raise]), "0..6 blocked by 3");
}

/// The waker is the timer, not the thread, as for an interrupt that runs timers.
#[test]
fn a_timer_that_a_thread_for_softirqs_runs_is_a_timer() {
    let by = |raise: &[Event<'static>], vector| {
        let begin = [
            switch(0, 0, 7, S, 0),
            named(1, 3, b"ktimers/0"),
            switch(2, 0, 0, R, 3),
            softirq(3, TIMER),
        ];
        let end = [
            softirq(6, vector),
            waking(7, 0, 7),
            softirq_end(8, vector),
            switch(9, 0, 3, S, 7),
        ];
        told(&model(&[&begin[..], raise, &end].concat()), 7)
    };
    let timer = by(&[softirq_end(5, TIMER)], TIMER);
    assert_eq!(timer, "0..7 blocked by TIMER, 7..9 waiting");
    // A delayed ACK.
    let vector = NET_RX;
    let raise = [at(4, 0, What::Raise { vector }), softirq_end(5, TIMER)];
    assert_eq!(
        by(&raise, NET_RX),
        "0..7 blocked by NET_RX of Timer, 7..9 waiting"
    );
    // The softirq was raised elsewhere.
    let other = by(&[softirq_end(5, TIMER)], NET_RX);
    assert_eq!(other, "0..7 blocked by 3, 7..9 waiting");
}

#[test]
fn packets_to_this_machine_are_delivered_by_their_sender() {
    let call = at(3, 0, What::Call { name: b"sendto" });
    let receive = [softirq(4, NET_RX), waking(6, 0, 7), softirq_end(7, NET_RX)];
    let with = |begin: &[Event<'static>]| then(&[begin, &receive].concat());
    assert_eq!(with(&[call]), "0..6 blocked by 8");
    // Outside of a call, the packet is from the network.
    assert_eq!(with(&[]), "0..6 blocked by NET_RX");
    let [begin, end] = irq(3);
    assert_eq!(with(&[call, begin, end]), "0..6 blocked by NET_RX");
    // A recorded raiser determines the waker, even after an interrupt or inside one.
    let raise = at(3, 0, What::Raise { vector: NET_RX });
    assert_eq!(with(&[begin, end, raise]), "0..6 blocked by 8");
    assert_eq!(
        with(&[begin, raise, end]),
        "0..6 blocked by NET_RX of irq 5 disk"
    );
    assert_eq!(with(&[raise, begin, end]), "0..6 blocked by 8");
    // One softirq serves the packets of the device and of the thread.
    let both = "0..6 blocked by NET_RX of Several";
    assert_eq!(with(&[begin, raise, end, raise]), both);
    assert_eq!(with(&[raise, begin, raise, end]), both);
    // Another softirq was raised, or another thread raised it.
    let other = at(3, 0, What::Raise { vector: TIMER });
    assert_eq!(with(&[other]), "0..6 blocked by NET_RX");
    let switched = [raise, switch(3, 0, 8, R, 9), raise];
    for other in [&switched[..2], &switched] {
        assert_eq!(with(other), "0..6 blocked by NET_RX of Thread");
    }
}

/// An interrupt without events of its own, as on Hyper-V, raises the softirq while 8 is in user mode.
#[test]
fn a_thread_in_user_mode_sends_no_packet() {
    let by = |before: What<'static>| {
        let mut builder = Builder::new();
        builder.has_all_calls();
        let vector = NET_RX;
        for event in [
            switch(0, 0, 7, S, 8),
            at(2, 0, before),
            at(80_003, 0, What::Raise { vector }),
            softirq(80_004, NET_RX),
            waking(80_006, 0, 7),
            softirq_end(80_007, NET_RX),
        ] {
            builder.feed(&event);
        }
        first(&builder.finish())
    };
    assert_eq!(by(What::Return), "0..80006 blocked by NET_RX");
    let calls = What::Call { name: b"sendto" };
    assert_eq!(by(calls), "0..80006 blocked by 8");
}

#[test]
fn a_softirq_belongs_to_its_raiser() {
    let raise = at(3, 0, What::Raise { vector: TIMER });
    let receive = [softirq(4, TIMER), waking(6, 0, 7), softirq_end(7, TIMER)];
    let with = |begin: &[Event<'static>]| then(&[begin, &receive].concat());
    let [begin, end] = irq(3);
    let (handler, no_handler) = (
        "0..6 blocked by TIMER of irq 5 disk",
        "0..6 blocked by TIMER",
    );
    assert_eq!(with(&[begin, raise, end]), handler);
    assert_eq!(
        with(&[begin, raise, raise, end, begin, raise, end]),
        handler
    );
    // The raise may be by another interrupt, since not all interrupts are recorded.
    assert_eq!(with(&[begin, end, raise]), no_handler);
    assert_eq!(with(&[begin, end]), no_handler);
    // Another interrupt raised it, too.
    let name = b"other";
    let other = at(3, 0, What::Irq { number: 6, name });
    let other_end = at(3, 0, What::IrqEnd { number: 6 });
    assert_eq!(
        with(&[begin, raise, end, other, raise, other_end]),
        format!("{no_handler} of Several")
    );
    assert_eq!(
        with(&[raise, begin, raise, end]),
        format!("{no_handler} of Several")
    );
    // The raised softirq has run already; the raise of the second one is not recorded.
    let before = [begin, raise, end, softirq(3, TIMER), softirq_end(3, TIMER)];
    assert_eq!(with(&before), no_handler);
}

/// If every interrupt that is not from a device is recorded, a softirq that the thread itself
/// raised is recognised.
#[test]
fn a_softirq_belongs_to_the_thread_or_the_interrupt_that_raised_it() {
    let with = |raised: &[Event<'static>]| {
        let mut builder = Builder::new();
        builder.has_all_vectors();
        builder.has_all_calls();
        let end = [softirq(80_004, 0), waking(80_006, 0, 7)];
        let begin = [switch(0, 0, 7, S, 8)];
        for event in begin.iter().chain(raised).chain(&end) {
            builder.feed(event);
        }
        first(&builder.finish())
    };
    let raise = |time| at(time, 0, What::Raise { vector: 0 });
    let name = b"irq_work";
    let [call, call_end] = [at(2, 0, What::Ipi { name }), at(4, 0, What::IpiEnd)];
    assert_eq!(with(&[raise(3)]), "0..80006 blocked by HI of Thread");
    let in_call = with(&[call, raise(3), call_end]);
    assert_eq!(in_call, "0..80006 blocked by HI of ipi irq_work");
    // A softirq that a handler raised belongs to the handler.
    let [begin, end] = irq(2);
    let in_handler = with(&[call, begin, raise(3), end, call_end]);
    assert_eq!(in_handler, "0..80006 blocked by HI of irq 5 disk");
    // A thread in user mode raises nothing.
    let user = with(&[at(2, 0, What::Return), raise(80_003)]);
    assert_eq!(user, "0..80006 blocked by HI");
}

/// The handler runs inside another interrupt, which continues afterwards.
#[test]
fn the_thread_of_an_interrupt_is_woken_by_the_handler() {
    let name = b"irq_work";
    let [begin, end] = irq(3);
    let events = [
        switch(0, 0, 7, S, 8),
        at(2, 0, What::Ipi { name }),
        begin,
        end,
        named(5, 7, b"irq/5-disk"),
        at(6, 0, What::IpiEnd),
    ];
    assert_eq!(first(&model(&events)), "0..5 blocked by irq 5 disk");
}

#[test]
fn a_disk_is_the_waker_while_it_completes_a_request() {
    let disk = Disk(8 << 20 | 16);
    let done = |time| completed(time, disk, None);
    let by_disk = |time| format!("0..{time} blocked by disk 8:16");
    // The request may complete inside any interrupt.
    let [begin, end] = irq(3);
    assert_eq!(then(&[begin, done(3), waking(4, 0, 7), end]), by_disk(4));
    let timer = at(3, 0, What::Timer { function: None });
    assert_eq!(then(&[timer, done(4), waking(5, 0, 7)]), by_disk(5));
    let call = at(3, 0, What::Ipi { name: b"call" });
    assert_eq!(then(&[call, done(4), waking(5, 0, 7)]), by_disk(5));
    // The request may also complete in the thread of an interrupt.
    let thread = [
        named(3, 3, b"irq/5-disk"),
        switch(4, 0, 8, R, 3),
        done(5),
        waking(6, 0, 7),
    ];
    assert_eq!(then(&thread), by_disk(6));
    // A thread that implements a disk served the request itself.
    assert_eq!(then(&[done(3), waking(4, 0, 7)]), "0..4 blocked by 8");
    // A wakeup in a softirq is not by the disk, even if the end of the handler is missing.
    let softirq = softirq(4, TIMER);
    assert_eq!(
        then(&[begin, done(3), softirq, waking(5, 0, 7)]),
        "0..5 blocked by TIMER"
    );
    // The disk is the waker only until the interrupt, or its thread, has ended.
    let ended = [begin, done(3), end, begin, waking(5, 0, 7)];
    assert_eq!(then(&ended), "0..5 blocked by irq 5 disk");
    let gone = [
        named(2, 3, b"irq/5-disk"),
        switch(3, 0, 8, R, 3),
        done(4),
        switch(5, 0, 3, S, 8),
        waking(6, 0, 7),
    ];
    assert_eq!(then(&gone), "0..6 blocked by 8");
}

/// 7 is woken in the softirq that has completed a request of a disk on the network.
#[test]
fn a_network_disk_wakes_only_the_waiters_for_its_request() {
    const D: SwitchedOut = SwitchedOut::Blocked(Sleep::Uninterruptible);
    let disk = Disk(8 << 20);
    let waker = |submitter, out| {
        let m = model(&[
            switch(0, 0, 0, R, submitter),
            request(1, Stage::Queued, disk, 8),
            request(2, Stage::Issued, disk, 8),
            switch(3, 0, submitter, R, 9),
            switch(4, 0, 9, R, 7),
            switch(5, 0, 7, out, 9),
            softirq(6, NET_RX),
            completed(7, disk, Some((8, 8))),
            waking(8, 0, 7),
            softirq_end(9, NET_RX),
            switch(10, 0, 9, R, 7),
        ]);
        let told = told(&m, 7);
        let by = told.split(" by ").nth(1).unwrap();
        by.split(", ").next().unwrap().to_string()
    };
    assert_eq!(waker(8, D), "disk 8:0");
    assert_eq!(waker(7, S), "disk 8:0");
    // A packet for 7, which waits for no disk.
    assert_eq!(waker(8, S), "NET_RX");
}

#[test]
fn a_waking_before_the_sleep_ends_it_at_once() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        waking(3, 1, 7),
        switch(4, 0, 7, S, 0),
        switch(6, 0, 0, R, 7),
        switch(9, 0, 7, R, 0),
    ]);
    assert_eq!(told(&m, 7), "0..4 running, 4..6 waiting, 6..9 running");
}

#[test]
fn a_waking_of_a_thread_that_goes_on_is_void() {
    let wakeup = at(
        3,
        1,
        What::Wakeup {
            tid: 7,
            name: b"",
            target: 0,
        },
    );
    let call = at(3, 0, What::Call { name: b"read" });
    for void in [wakeup, call] {
        let m = model(&[
            switch(0, 0, 0, R, 7),
            switch(0, 1, 0, R, 8),
            waking(2, 1, 7),
            void,
            switch(4, 0, 7, S, 0),
            waking(6, 1, 7),
            switch(8, 0, 0, R, 7),
            switch(9, 0, 7, R, 0),
        ]);
        let told = told(&m, 7);
        assert!(told.contains("by 8, 6..8 waiting, 8..9"), "{told}");
    }
    // The wakeup is also void if the thread is preempted in between.
    let m = model(&[
        switch(0, 0, 0, R, 7),
        waking(2, 1, 7),
        switch(3, 0, 7, R, 8),
        switch(4, 0, 8, R, 7),
        switch(5, 0, 7, S, 8),
        switch(9, 0, 8, R, 7),
    ]);
    assert!(told(&m, 7).ends_with("4..5 running, 5..9 blocked"));
    // An interrupt on top of the thread wakes it, and `sched_wakeup` is not recorded.
    let [begin, end] = irq(2);
    let m = model(&[
        switch(0, 0, 0, R, 7),
        begin,
        waking(2, 0, 7),
        end,
        switch(5, 0, 7, S, 8),
        switch(9, 0, 8, S, 0),
    ]);
    assert!(told(&m, 7).ends_with("3..5 running, 5..9 blocked"));
}

#[test]
fn a_waking_before_the_sleep_is_void_if_another_one_follows() {
    // On PREEMPT_RT a thread may be woken for a lock that it then gets without sleeping.
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        waking(3, 1, 7),
        switch(4, 0, 7, S, 0),
        waking(20, 1, 7),
        switch(22, 0, 0, R, 7),
        switch(30, 0, 7, S, 0),
        waking(33, 1, 7),
        switch(35, 0, 0, R, 7),
        switch(36, 0, 7, R, 0),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..4 running, 4..20 blocked by 8, 20..22 waiting, 22..30 running, 30..33 blocked by 8, 33..35 waiting, \
         35..36 running"
    );
}

#[test]
fn a_trace_without_wakings_has_wakeups() {
    let wakeup = at(
        6,
        1,
        What::Wakeup {
            tid: 7,
            name: b"",
            target: 1,
        },
    );
    assert_eq!(then(&[switch(1, 1, 0, R, 6), wakeup]), "0..6 blocked by 6");
    // If both sched_waking and sched_wakeup are recorded, the first one counts.
    assert_eq!(then(&[waking(5, 0, 7), wakeup]), "0..5 blocked by 8");
    // If sched_waking is missing, the waker is not known: sched_wakeup comes later, perhaps on
    // another CPU.
    let m = model(&[
        switch(0, 0, 7, S, 8),
        waking(1, 0, 9),
        switch(1, 1, 0, R, 6),
        wakeup,
        switch(8, 0, 8, S, 7),
        switch(9, 0, 7, S, 0),
    ]);
    assert_eq!(told(&m, 7), "0..6 blocked, 6..8 waiting, 8..9 running");
}
