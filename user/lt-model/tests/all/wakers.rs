// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Who woke whom, by tables of events.

use lt_model::{Event, What};

use crate::made::*;

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

/// Thread 7 sleeps from 0 on, and 8 runs; what then happens.
fn then(events: &[Event<'static>]) -> String {
    let mut all = vec![switch(0, 0, 7, S, 8)];
    all.extend_from_slice(events);
    all.push(switch(90, 0, 8, R, 9));
    let m = model(&all);
    told(&m, 7).split(", ").next().unwrap().to_string()
}

#[test]
fn it_is_the_innermost_of_what_the_processor_is_in() {
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
fn another_processor_says_nothing_of_this_one() {
    let [begin, end] = irq(5);
    assert_eq!(
        then(&[switch(1, 1, 0, R, 6), begin, waking(6, 1, 7), end]),
        "0..6 blocked by 6"
    );
}

#[test]
fn threads_of_interrupts_are_woken_in_their_tail_and_others_are_not() {
    let [begin, end] = irq(4);
    for name in [&b"irq/5-disk"[..], b"ksoftirqd/0", b"ktimers/0"] {
        assert_eq!(
            then(&[begin, end, named(6, 7, name)]),
            "0..6 blocked by irq 5 disk"
        );
        // Something else has happened since.
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
    // Several at once.
    let both = [
        begin,
        end,
        named(6, 6, b"irq/5-s-disk"),
        named(7, 7, b"irq/5-disk"),
    ];
    assert_eq!(then(&both), "0..7 blocked by irq 5 disk");
}

#[test]
fn a_softirq_in_its_own_thread_is_that_threads_work() {
    let m = model(&[
        switch(0, 0, 7, S, 0),
        named(1, 3, b"ksoftirqd/0"),
        switch(2, 0, 0, R, 3),
        softirq(3, TIMER),
        waking(4, 0, 7),
        // On PREEMPT_RT it may be switched out in its middle.
        switch(5, 0, 3, R, 8),
        waking(6, 0, 9),
        switch(7, 0, 8, S, 3),
        waking(8, 0, 8),
        softirq_end(9, TIMER),
        switch(10, 0, 3, S, 7),
    ]);
    assert_eq!(told(&m, 7), "0..4 blocked by 3, 4..10 waiting");
    assert!(told(&m, 9).starts_with("0..6 unknown by 8"));
    assert!(told(&m, 8).contains("7..8 blocked by 3"), "{}", told(&m, 8));
    assert_eq!(
        told(&m, 3),
        "0..1 unknown by nobody known, 1..2 waiting, 2..5 running, 5..7 preempted, 7..10 running"
    );
}

#[test]
fn packets_to_this_machine_are_delivered_by_who_sends_them() {
    let call = at(3, 0, What::Call { name: b"sendto" });
    let receive = [softirq(4, NET_RX), waking(6, 0, 7), softirq_end(7, NET_RX)];
    let with = |begin: &[Event<'static>]| then(&[begin, &receive].concat());
    assert_eq!(with(&[call]), "0..6 blocked by 8");
    // From outside.
    assert_eq!(with(&[]), "0..6 blocked by NET_RX");
    let [begin, end] = irq(3);
    assert_eq!(with(&[call, begin, end]), "0..6 blocked by NET_RX");
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
    // Also one that was preempted in between.
    let m = model(&[
        switch(0, 0, 0, R, 7),
        waking(2, 1, 7),
        switch(3, 0, 7, R, 8),
        switch(4, 0, 8, R, 7),
        switch(5, 0, 7, S, 8),
        switch(9, 0, 8, R, 7),
    ]);
    assert!(told(&m, 7).ends_with("4..5 running, 5..9 blocked"));
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
    // Where there are both, the first one counts.
    assert_eq!(then(&[waking(5, 0, 7), wakeup]), "0..5 blocked by 8");
}
