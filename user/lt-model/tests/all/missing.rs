// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Claims that are not made about a trace without the events that could contradict them.

use lt_model::{Builder, Disk, Event, Events, Sleep, Stage, SwitchedOut, What};

use crate::made::*;
use crate::told::told;

const NET_RX: u32 = 3;
const WAKES: u64 = 0x10;

/// The waker of 7 as text: 7 has slept since 0, and 3 runs under this name.
fn waker(
    missing: impl IntoIterator<Item = Events>,
    name: &'static [u8],
    events: &[Event<'static>],
) -> String {
    let mut builder = Builder::new();
    builder.has_functions([(WAKES, "process_timeout")]);
    for events in missing {
        builder.has_no(events);
    }
    let tid = 3;
    let begin = [at(0, 0, What::There { tid, name }), switch(0, 0, 7, S, 3)];
    let end = switch(9_000_000, 0, 3, R, 9);
    for event in begin.iter().chain(events).chain([&end]) {
        builder.feed(event);
    }
    let told = told(&builder.finish(), 7);
    let slept = told.split(", ").next().unwrap();
    slept.split(" by ").nth(1).unwrap_or("nobody").to_string()
}

fn irq(begin: u64) -> [Event<'static>; 2] {
    let (number, name) = (5, b"disk");
    let what = What::Irq { number, name };
    [
        at(begin, 0, what),
        at(begin + 1, 0, What::IrqEnd { number }),
    ]
}

fn tick(begin: u64) -> [Event<'static>; 2] {
    let what = What::Timer { function: None };
    [at(begin, 0, what), at(begin + 1, 0, What::TimerEnd)]
}

#[test]
fn a_softirq_may_run_after_an_interrupt_if_there_are_no_events_of_softirqs() {
    let by = |missing: Option<Events>, events: &[Event<'static>]| waker(missing, b"thread", events);
    let softirqs = Some(Events::Softirqs);
    let call = at(7, 0, What::Call { name: b"write" });
    for (what, of_it) in [(irq(5), 1_000_000), (tick(5), 50_000)] {
        let [begin, end] = what;
        let after = |time| [begin, end, waking(time, 0, 7)];
        assert_eq!(by(softirqs, &after(of_it)), "unknown");
        assert_eq!(by(None, &after(of_it)), "3");
        // The thread has continued.
        assert_eq!(by(softirqs, &[begin, end, call, waking(8, 0, 7)]), "3");
        assert_eq!(by(softirqs, &after(3_000_000)), "3");
    }
    // Neither softirqs nor the functions of timers are recorded.
    let both = [Events::Softirqs, Events::Timers];
    let [begin, end] = tick(5);
    let after = [begin, end, waking(1_000_000, 0, 7)];
    assert_eq!(waker(both, b"thread", &after), "unknown");
    assert_eq!(by(softirqs, &after), "3");
    let [begin, end] = irq(5);
    assert_eq!(by(softirqs, &[waking(6, 0, 7)]), "3");
    let handler = [begin, waking(6, 0, 7), end];
    assert_eq!(by(softirqs, &handler), "irq 5 disk");
    // The absence of other events makes no difference.
    let others = [
        Events::Completions,
        Events::Dirty,
        Events::Handlers,
        Events::Works,
    ];
    for other in others {
        assert_eq!(by(Some(other), &[begin, end, waking(8, 0, 7)]), "3");
    }
}

#[test]
fn a_work_item_in_a_softirq_does_not_show_that_the_thread_continues() {
    let [begin, end] = irq(5);
    let work = at(7, 0, What::Work { function: 1 });
    for (name, by) in [(&b"thread"[..], "unknown"), (b"kworker/0:1", "3")] {
        let events = [begin, end, work, waking(8, 0, 7)];
        assert_eq!(waker(Some(Events::Softirqs), name, &events), by);
    }
}

#[test]
fn a_waker_in_a_softirq_thread_is_not_known_if_softirqs_are_not_recorded() {
    let softirqs = Some(Events::Softirqs);
    let [begin, end] = irq(1);
    for name in [&b"ksoftirqd/0"[..], b"ktimers/0"] {
        assert_eq!(waker(softirqs, name, &[waking(6, 0, 7)]), "unknown");
        // A softirq after the interrupt may have deferred work to the thread.
        let target = 0;
        let leaves = at(
            3,
            0,
            What::Waking {
                tid: 7,
                name,
                target,
            },
        );
        let events = [begin, end, leaves];
        assert_eq!(waker(softirqs, b"thread", &events), "unknown");
        assert_eq!(waker(None, b"thread", &events), "irq 5 disk");
        // The functions of timers have events of their own.
        let timer = [
            at(4, 0, What::Expire { function: WAKES }),
            waking(6, 0, 7),
            at(7, 0, What::ExpireEnd),
        ];
        assert_eq!(waker(softirqs, name, &timer), "TIMER");
    }
    assert_eq!(waker(softirqs, b"irq/5-disk", &[waking(6, 0, 7)]), "3");
}

#[test]
fn a_packet_belongs_to_no_thread_if_handlers_are_not_recorded() {
    let receives = [
        at(3, 0, What::Raise { vector: NET_RX }),
        at(4, 0, What::Softirq { vector: NET_RX }),
        waking(6, 0, 7),
        at(7, 0, What::SoftirqEnd { vector: NET_RX }),
    ];
    assert_eq!(waker(None, b"thread", &receives), "3");
    let handlers = Some(Events::Handlers);
    assert_eq!(waker(handlers, b"thread", &receives), "NET_RX");
    let calls = [&[at(2, 0, What::Call { name: b"send" })], &receives[1..]].concat();
    assert_eq!(waker(None, b"thread", &calls), "3");
    assert_eq!(waker(handlers, b"thread", &calls), "NET_RX");
}

#[test]
fn a_request_is_completed_by_the_disk_if_there_are_no_events_of_handlers() {
    let disk = Disk(8 << 20);
    let range = None;
    let done = [completed(3, disk, range), waking(4, 0, 7)];
    assert_eq!(waker(None, b"thread", &done), "3");
    let handlers = Some(Events::Handlers);
    assert_eq!(waker(handlers, b"thread", &done), "disk 8:0");
    // The interrupt has ended long ago.
    let later = [completed(3, disk, range), waking(1_000_000, 0, 7)];
    assert_eq!(waker(handlers, b"thread", &later), "3");
}

/// The waker of 7 as text: 7 has slept since `asleep`, and its request is completed at 5 while 3 runs.
fn waker_of_own(sleep: Sleep, asleep: u64, events: &[Event<'static>]) -> String {
    let disk = Disk(8 << 20);
    let mut all = vec![
        switch(0, 0, 0, S, 7),
        request(1, Stage::Queued, disk, 8),
        request(2, Stage::Allocated, disk, 8),
        request(3, Stage::Issued, disk, 8),
        switch(asleep, 0, 7, SwitchedOut::Blocked(sleep), 3),
        completed(5, disk, Some((8, 8))),
    ];
    all.extend(events);
    all.push(switch(20_000_000, 0, 3, R, 9));
    all.sort_by_key(|event| event.time);
    let mut builder = Builder::new();
    builder.has_no(Events::Handlers);
    all.iter().for_each(|event| builder.feed(event));
    let told = told(&builder.finish(), 7);
    let by = told.split(" by ").nth(1).unwrap_or("nobody");
    by.split(", ").next().unwrap().to_string()
}

#[test]
fn a_slow_machine_wakes_the_thread_of_the_request_later() {
    let waker =
        |woken, asleep| waker_of_own(Sleep::Uninterruptible, asleep, &[waking(woken, 0, 7)]);
    assert_eq!(waker(9_000_000, 4), "disk 8:0");
    // A later sleep, or a sleep that goes on long after the request.
    assert_eq!(waker(9_000_000, 6), "3");
    assert_eq!(waker(11_000_000, 4), "3");
}

#[test]
fn a_request_ends_no_sleep_if_the_thread_has_continued_or_the_sleep_is_of_another_kind() {
    let disk = "disk 8:0";
    let waker = |sleep, events: &[Event<'static>]| waker_of_own(sleep, 4, events);
    // The thread may wait for a futex, while its request is written in the background.
    let late = waking(9_000_000, 0, 7);
    assert_eq!(waker(Sleep::Interruptible, &[late]), "3");
    assert_eq!(waker(Sleep::Interruptible, &[waking(50, 0, 7)]), disk);
    // The completion has ended once the interrupted thread begins or ends a system call, or forks.
    let child = What::Fork {
        child: 4,
        name: b"",
    };
    for goes_on in [What::Call { name: b"futex" }, What::Return, child] {
        for woken in [60, 9_000_000] {
            let events = [at(50, 0, goes_on), waking(woken, 0, 7)];
            assert_eq!(waker(Sleep::Uninterruptible, &events), "3", "{goes_on:?}");
        }
    }
}

#[test]
fn the_completion_of_a_request_ends_before_the_processor_is_idle_again() {
    let disk = Disk(8 << 20);
    let by = |between: Option<bool>| {
        let mut events = vec![
            switch(0, 0, 0, S, 7),
            switch(1, 0, 7, S, 0),
            completed(3, disk, None),
        ];
        events.extend(between.map(|enters| at(4, 0, What::Idle { enters })));
        events.extend([waking(5, 0, 7), switch(6, 0, 0, S, 7)]);
        told(&model(&events), 7)
    };
    assert!(by(None).contains("blocked by disk 8:0"), "{}", by(None));
    for enters in [false, true] {
        let told = by(Some(enters));
        assert!(told.contains("blocked by an unknown waker"), "{told}");
    }
}

#[test]
fn a_thread_that_forks_just_after_an_interrupt_is_the_maker() {
    let [begin, end] = irq(5);
    let (child, name) = (7, b"child");
    let mut builder = Builder::new();
    builder.has_no(Events::Softirqs);
    for event in [
        switch(0, 0, 0, S, 3),
        begin,
        end,
        at(8, 0, What::Fork { child, name }),
        switch(9, 0, 3, R, 7),
    ] {
        builder.feed(&event);
    }
    let told = told(&builder.finish(), 7);
    assert!(told.starts_with("made by 3: "), "{told}");
}
