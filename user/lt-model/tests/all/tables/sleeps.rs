// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sleeps, and what ended them.

use lt_model::{Sleep, SwitchedOut, Vector};

use super::*;

/// Without events of interrupts.
const ONLY_THREADS: Analysis = Analysis::Sleeps(Recorded {
    wakings: true,
    handlers: false,
    softirqs: false,
    timers: false,
    ipis: false,
    wheel: false,
    calls: false,
    vectors: false,
});

/// On CPU 0, the idle thread runs until 7 runs.
fn runs(time: u64) -> Seen<'static> {
    of(switch(time, 0, 0, R, 7))
}

/// On CPU 0, 7 falls asleep.
fn sleeps(time: u64) -> Seen<'static> {
    of(switch(time, 0, 7, S, 0))
}

fn on_0(time: u64, what: What<'static>) -> Seen<'static> {
    of(at(time, 0, what))
}

/// What ended each sleep, in order of their starts.
fn wakers(table: &Table) -> Vec<Trigger> {
    let mut cases: Vec<_> = table.worst.iter().collect();
    cases.sort_by_key(|case| case.begin);
    let waker = |case: &&Case| match case.object {
        Some(Object::Sleep(_, by)) => by,
        other => panic!("{other:?}"),
    };
    cases.iter().map(waker).collect()
}

/// Thread 7 sleeps seven times, and each sleep has a different waker.
fn each_waker() -> Vec<Seen<'static>> {
    let disk = Block {
        stage: BlockStage::Completed,
        disk: Disk(8 << 20),
        sector: 0,
        sectors: 8,
        operation: Operation::Read,
        failed: false,
    };
    let irq = What::Irq {
        number: 24,
        name: b"eth0",
    };
    vec![
        runs(0),
        of(switch(0, 1, 0, R, 8)),
        sleeps(10),
        of(waking(20, 1, 7)),
        runs(25),
        sleeps(30),
        on_0(40, irq),
        of(waking(42, 0, 7)),
        on_0(43, What::IrqEnd { number: 24 }),
        runs(45),
        sleeps(50),
        on_0(60, What::Softirq { vector: 3 }),
        of(waking(63, 0, 7)),
        on_0(64, What::SoftirqEnd { vector: 3 }),
        runs(65),
        sleeps(70),
        on_0(80, What::Timer { function: None }),
        of(waking(81, 0, 7)),
        on_0(82, What::TimerEnd),
        runs(85),
        sleeps(90),
        on_0(100, irq),
        seen(101, 0, Step::Block(disk)),
        of(waking(104, 0, 7)),
        on_0(105, What::IrqEnd { number: 24 }),
        runs(106),
        sleeps(110),
        on_0(120, What::Ipi { name: b"irq_work" }),
        of(waking(125, 0, 7)),
        on_0(126, What::IpiEnd),
        runs(127),
        // No event shows what woke it on the idle CPU.
        sleeps(130),
        of(waking(146, 0, 7)),
        runs(150),
    ]
}

#[test]
fn a_sleep_lasts_until_the_wakeup_and_names_the_waker() {
    let found = tables_of(SLEEPS, Range::all(9), None, &each_waker());
    let table = &found.tables[0];
    let expected = [
        (10, 10),
        (30, 12),
        (50, 13),
        (70, 11),
        (90, 14),
        (110, 15),
        (130, 16),
    ];
    assert_eq!(
        (took(table), table.missed),
        (expected.to_vec(), missed(0, 0))
    );
    assert_eq!((table.whole.sums.sum, table.whole.sums.count), (91, 7));
    assert_eq!(table.whole.extra(Extra::Unknown), 1);
    let wakers = wakers(table);
    let [
        Trigger::Thread(Some(by)),
        Trigger::Irq(24, line),
        Trigger::Softirq(Vector::NET_RX),
        Trigger::Timer,
        Trigger::Disk(Disk(0x0080_0000)),
        Trigger::Ipi(call),
        Trigger::Unrecorded,
    ] = wakers[..]
    else {
        panic!("{wakers:?}")
    };
    assert_eq!(found.task(by), (8, Some("hog")));
    assert_eq!((found.text(line), found.text(call)), ("eth0", "irq_work"));
    // The first waker ran on CPU 1.
    let cpu = |begin| table.worst.iter().find(|case| case.begin == begin);
    assert_eq!((cpu(10).unwrap().cpu, cpu(30).unwrap().cpu), (1, 0));
}

#[test]
fn without_events_of_interrupts_no_thread_is_certain() {
    let is_of_thread = |seen: &&Seen<'static>| {
        let Step::Known(what) = seen.step else {
            return false;
        };
        matches!(what, What::Switch { .. } | What::Waking { .. })
    };
    let all = each_waker();
    let all: Vec<_> = all.iter().filter(is_of_thread).copied().collect();
    let found = tables_of(ONLY_THREADS, Range::all(9), None, &all);
    let table = &found.tables[0];
    assert_eq!((table.whole.sums.sum, table.whole.sums.count), (91, 7));
    // An idle CPU wakes no thread.
    assert_eq!(table.whole.extra(Extra::Unknown), 6);
    let wakers = wakers(table);
    assert!(matches!(wakers[0], Trigger::Perhaps(Some(by)) if found.task(by).0 == 8));
}

/// Without the ends of handlers, every later wakeup would seem to be by the handler.
#[test]
fn a_handler_without_an_end_is_no_waker() {
    let irq = What::Irq {
        number: 24,
        name: b"eth0",
    };
    let all = [
        runs(0),
        of(switch(0, 1, 0, R, 8)),
        sleeps(10),
        of(at(11, 1, irq)),
        of(waking(20, 1, 7)),
        runs(25),
    ];
    let found = tables_of(ONLY_THREADS, Range::all(9), None, &all);
    let wakers = wakers(&found.tables[0]);
    assert!(
        matches!(wakers[..], [Trigger::Perhaps(Some(_))]),
        "{wakers:?}"
    );
}

/// A SCSI disk completes no sector of a request that then fails or is issued again.
#[test]
fn a_completion_that_ends_nothing_wakes_no_thread() {
    use Operation::{Discard, Flush, Other, Read, Write};
    let (number, name) = (24, &b"disk"[..]);
    let done = |sector, sectors, operation| {
        let block = Block {
            stage: BlockStage::Completed,
            disk: Disk(8 << 20),
            sector,
            sectors,
            operation,
            failed: false,
        };
        seen(21, 0, Step::Block(block))
    };
    let woken_by = |done: &[Seen<'static>]| {
        let begin = [runs(0), sleeps(10), on_0(20, What::Irq { number, name })];
        let end = [
            of(waking(30, 0, 7)),
            on_0(31, What::IrqEnd { number }),
            runs(32),
        ];
        let all = [&begin[..], done, &end].concat();
        wakers(&tables(SLEEPS, &all)[0])[0]
    };
    for nothing in [Read, Write, Discard, Other] {
        let by = woken_by(&[done(64, 0, nothing)]);
        assert!(matches!(by, Trigger::Irq(24, _)), "{nothing:?}: {by:?}");
    }
    let disk = Trigger::Disk(Disk(8 << 20));
    assert_eq!(woken_by(&[done(64, 8, Read)]), disk);
    // A flush, a command, and a write that waited for a flush.
    for ended in [Flush, Other] {
        assert_eq!(woken_by(&[done(0, 0, ended)]), disk, "{ended:?}");
    }
    let both = [done(0, 0, Flush), done(64, 0, Write)];
    assert_eq!(woken_by(&both), disk);
}

/// The thread of an interrupt is woken after the handler has ended, while the interrupted thread is current.
#[test]
fn the_thread_of_an_interrupt_is_woken_by_its_interrupt() {
    let waking = What::Waking {
        tid: 9,
        name: b"irq/24-eth0",
        target: 0,
    };
    let irq = What::Irq {
        number: 24,
        name: b"eth0",
    };
    let all = [
        of(switch(0, 0, 9, S, 8)),
        on_0(10, irq),
        on_0(11, What::IrqEnd { number: 24 }),
        on_0(12, waking),
        of(switch(13, 0, 8, R, 9)),
    ];
    let table = &tables(SLEEPS, &all)[0];
    assert_eq!(took(table), [(0, 12)]);
    let wakers = wakers(table);
    assert!(matches!(wakers[..], [Trigger::Irq(24, _)]), "{wakers:?}");
}

#[test]
fn rows_are_by_state_by_waker_and_by_both() {
    let out = |time, sleep| of(switch(time, 0, 7, SwitchedOut::Blocked(sleep), 0));
    let all = [
        runs(0),
        of(switch(0, 1, 0, R, 8)),
        out(10, Sleep::Uninterruptible),
        of(waking(11, 1, 7)),
        runs(12),
        out(20, Sleep::Interruptible),
        of(waking(22, 1, 7)),
        runs(23),
        out(30, Sleep::Uninterruptible),
        of(waking(34, 0, 7)),
        runs(35),
    ];
    let sums = |by| {
        let mut found = tables_of(SLEEPS, Range::all(9), Some(by), &all);
        let rows = found.tables.remove(0).rows;
        let mut sums: Vec<_> = rows.into_iter().collect();
        sums.sort_by_key(|(_, row)| row.sums.sum);
        let row = |((_, key), row): ((u64, Key), Row)| (key, row.sums.sum, row.sums.count);
        sums.into_iter().map(row).collect::<Vec<_>>()
    };
    let (s, d) = (Sleep::Interruptible, Sleep::Uninterruptible);
    assert_eq!(
        sums(By::State),
        [(Key::State(s), 2, 1), (Key::State(d), 5, 2)]
    );
    let by_waker = sums(By::Waker);
    assert!(matches!(
        by_waker[..],
        [
            (Key::Waker(Trigger::Thread(Some(_))), 3, 2),
            (Key::Waker(Trigger::Unrecorded), 4, 1)
        ]
    ));
    let by_thread = Trigger::Thread(None);
    assert_eq!(
        sums(By::Object),
        [
            (Key::Object(Object::Sleep(d, by_thread)), 1, 1),
            (Key::Object(Object::Sleep(s, by_thread)), 2, 1),
            (Key::Object(Object::Sleep(d, Trigger::Unrecorded)), 4, 1)
        ]
    );
    let of_7 = |key| matches!(key, Key::Stack(Some(_), Some(Object::Sleep(..))));
    assert!(sums(By::Stack).into_iter().all(|(key, ..)| of_7(key)));
}

#[test]
fn a_sleep_counts_on_the_cpu_of_its_waker() {
    let all = [
        runs(0),
        sleeps(10),
        of(waking(20, 1, 7)),
        runs(25),
        sleeps(30),
        of(waking(32, 0, 7)),
    ];
    let expected = [(Kind::Sleep, 0, 2), (Kind::Sleep, 1, 10)];
    assert_eq!(by_cpu(SLEEPS, &all), expected);
}

/// The sums and the numbers of the sleeps in each call, the smallest sum first; all system calls are recorded.
fn by_call(all: &[Seen<'static>]) -> Vec<(String, u64, u64)> {
    let Analysis::Sleeps(recorded) = SLEEPS else {
        panic!()
    };
    let analysis = Analysis::Sleeps(Recorded {
        calls: true,
        ..recorded
    });
    let found = tables_of(analysis, Range::all(9), Some(By::Call), all);
    let row = |((_, key), row): (&(u64, Key), &Row)| {
        let call = match key {
            Key::Call(InCall::Named(name)) => found.text(*name).to_string(),
            Key::Call(other) => format!("{other:?}"),
            other => panic!("{other:?}"),
        };
        (call, row.sums.sum, row.sums.count)
    };
    let mut sums: Vec<_> = found.tables[0].rows.iter().map(row).collect();
    sums.sort_by_key(|(_, sum, _)| *sum);
    sums
}

fn call(time: u64, name: &'static [u8]) -> Seen<'static> {
    on_0(time, What::Call { name })
}

fn end_of_call(time: u64) -> Seen<'static> {
    let (call, result) = (None, Some(0));
    seen(time, 0, Step::Return { call, result })
}

#[test]
fn a_thread_sleeps_in_the_call_that_it_has_started() {
    let futex = What::Futex {
        op: 128,
        address: 0x70,
    };
    let sleep = |time: u64, length: u64| {
        [
            sleeps(time),
            of(waking(time + length, 1, 7)),
            runs(time + length + 1),
        ]
    };
    let all: Vec<_> = [
        vec![runs(0)],
        // The thread may be in a call that started before the trace.
        sleep(10, 1).to_vec(),
        vec![call(20, b"read")],
        sleep(22, 2).to_vec(),
        sleep(26, 4).to_vec(),
        vec![end_of_call(35)],
        sleep(40, 8).to_vec(),
        vec![on_0(50, futex)],
        sleep(52, 16).to_vec(),
        // The thread may have left the call in this gap.
        vec![lost(70, 1, 71)],
        sleep(80, 32).to_vec(),
        vec![end_of_call(120)],
        sleep(130, 64).to_vec(),
        vec![call(200, b"poll")],
        sleep(202, 128).to_vec(),
    ]
    .concat();
    let expected = [
        ("read", 6, 2),
        ("futex", 16, 1),
        ("Unknown", 33, 2),
        ("Outside", 72, 2),
        ("poll", 128, 1),
    ];
    let expected = expected.map(|(call, sum, count)| (call.to_string(), sum, count));
    assert_eq!(by_call(&all), expected);
    // Without system calls, it is not known in which call a thread sleeps.
    let found = tables_of(SLEEPS, Range::all(9), Some(By::Call), &all);
    let keys: Vec<_> = found.tables[0].rows.keys().map(|(_, key)| *key).collect();
    assert_eq!(keys, [Key::Call(InCall::Unknown)]);
}

#[test]
fn the_call_of_a_thread_is_not_recorded_after_a_signal_handler() {
    let all = [
        runs(0),
        call(5, b"nanosleep"),
        // The handler has returned.
        call(10, b"rt_sigreturn"),
        sleeps(20),
        of(waking(22, 1, 7)),
        runs(23),
        call(25, b"read"),
        sleeps(30),
        of(waking(34, 1, 7)),
    ];
    let expected = [("Unknown", 2, 1), ("read", 4, 1)];
    let expected = expected.map(|(call, sum, count)| (call.to_string(), sum, count));
    assert_eq!(by_call(&all), expected);
}

#[test]
fn a_new_thread_is_in_no_call_and_an_exec_keeps_its_call() {
    let fork = What::Fork {
        child: 9,
        name: b"new",
    };
    let new = Step::New {
        tid: 9,
        name: b"new",
        target: 0,
    };
    let all = [
        runs(0),
        call(5, b"clone3"),
        on_0(6, fork),
        seen(7, 0, new),
        of(switch(8, 0, 7, R, 9)),
        of(switch(10, 0, 9, S, 0)),
        of(waking(11, 1, 9)),
        of(switch(12, 0, 0, R, 9)),
        call(13, b"execve"),
        // The thread takes the number of its process.
        on_0(14, What::Exec { tid: 6, old: 9 }),
        of(switch(20, 0, 6, S, 0)),
        of(waking(22, 1, 6)),
        of(switch(23, 0, 0, R, 6)),
        of(switch(30, 0, 6, SwitchedOut::Dead, 0)),
        // Another thread with this number, whose creation is not recorded.
        of(switch(35, 0, 0, R, 6)),
        of(switch(40, 0, 6, S, 0)),
        of(waking(44, 1, 6)),
    ];
    let expected = [("Outside", 1, 1), ("execve", 2, 1), ("Unknown", 4, 1)];
    let expected = expected.map(|(call, sum, count)| (call.to_string(), sum, count));
    assert_eq!(by_call(&all), expected);
}

#[test]
fn a_thread_that_is_woken_on_its_way_to_sleep_does_not_sleep() {
    let all = [
        runs(0),
        of(waking(10, 1, 7)),
        of(switch(12, 0, 7, S, 8)),
        of(switch(20, 0, 8, R, 7)),
        // This wakeup is void: it does not end the sleep that follows.
        of(waking(30, 1, 7)),
        of(switch(32, 0, 7, S, 8)),
        of(waking(35, 1, 7)),
        of(switch(40, 0, 8, R, 7)),
        // The thread is woken while it runs, and again after it has been preempted.
        of(waking(50, 1, 7)),
        of(switch(52, 0, 7, R, 8)),
        of(waking(55, 1, 7)),
        of(switch(60, 0, 8, R, 7)),
    ];
    let table = &tables(SLEEPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(32, 3)], missed(0, 0)));
}

#[test]
fn sleeps_at_the_edges_of_the_trace_are_counted() {
    let all = [
        // Thread 7 has slept since before the trace, and 9 sleeps beyond its end.
        of(waking(5, 1, 7)),
        runs(6),
        of(switch(10, 0, 7, R, 9)),
        of(switch(20, 0, 9, S, 7)),
    ];
    let table = &tables(SLEEPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(0, 2)));
    let range = Range {
        tid: Some(9),
        ..Range::all(9)
    };
    let table = &tables_of(SLEEPS, range, None, &all).tables[0];
    assert_eq!((took(table), table.missed), (vec![], missed(0, 1)));
}

#[test]
fn no_sleep_spans_a_gap_and_each_is_counted() {
    let all = [
        runs(0),
        sleeps(10),
        // The wakeup, or a run and another sleep, may be lost.
        lost(12, 1, 14),
        of(waking(20, 0, 7)),
        runs(25),
        sleeps(30),
        lost(35, 1, 36),
        // The wakeup is lost.
        runs(40),
        sleeps(50),
        of(waking(57, 0, 7)),
        runs(60),
    ];
    let table = &tables(SLEEPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(50, 7)], missed(2, 0)));
}

#[test]
fn without_waking_the_wakeup_ends_a_sleep() {
    let wakeup = |time, tid| {
        let what = What::Wakeup {
            tid,
            name: b"",
            target: 0,
        };
        of(at(time, 1, what))
    };
    let Analysis::Sleeps(recorded) = SLEEPS else {
        panic!()
    };
    let analysis = Analysis::Sleeps(Recorded {
        wakings: false,
        ..recorded
    });
    let all = [
        runs(0),
        sleeps(10),
        wakeup(30, 7),
        runs(31),
        // Thread 7 was awake.
        wakeup(40, 7),
        sleeps(50),
        wakeup(55, 7),
        runs(60),
    ];
    let table = &tables(analysis, &all)[0];
    assert_eq!(took(table), [(10, 20), (50, 5)]);
    assert_eq!(table.missed, missed(0, 0));
}

#[test]
fn a_new_thread_has_not_slept() {
    let fork = What::Fork {
        child: 9,
        name: b"new",
    };
    let new = Step::New {
        tid: 9,
        name: b"new",
        target: 0,
    };
    let all = [
        // An older thread with this number, whose end is missing.
        of(switch(0, 0, 9, S, 8)),
        on_0(1, fork),
        seen(2, 0, new),
        of(switch(9, 0, 8, R, 9)),
    ];
    let table = &tables(SLEEPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(0, 1)));
}

/// Runs, sleeps, and waits for a CPU add up to the time from the first switch to the last.
#[test]
fn a_thread_runs_sleeps_or_waits() {
    let all = [
        runs(0),
        of(switch(10, 0, 7, S, 8)),
        of(waking(30, 1, 7)),
        of(switch(42, 0, 8, R, 7)),
        of(switch(50, 0, 7, R, 8)),
        of(switch(65, 0, 8, R, 7)),
        sleeps(70),
        of(waking(90, 1, 7)),
        runs(91),
        of(switch(100, 0, 7, R, 8)),
    ];
    let sum = |analysis, kind| {
        let range = Range {
            tid: Some(7),
            ..Range::all(9)
        };
        let found = tables_of(analysis, range, None, &all);
        find(&found.tables, kind).whole.sums.sum
    };
    let parts = [
        sum(Analysis::Cpu, Kind::Run),
        sum(SLEEPS, Kind::Sleep),
        sum(WAKEUPS, Kind::Wakeup),
        sum(Analysis::Cpu, Kind::Preempted),
    ];
    assert_eq!(parts, [32, 40, 13, 15]);
    assert_eq!(parts.iter().sum::<u64>(), 100);
}
