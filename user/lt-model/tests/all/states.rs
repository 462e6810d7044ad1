// SPDX-License-Identifier: GPL-2.0 OR MIT

//! States of threads and processors, from tables of events.

use lt_model::{Builder, Class, Sleep, SwitchedOut, Use, What};

use crate::made::*;
use crate::told::told;

#[test]
fn a_thread_runs_sleeps_is_woken_and_waits() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(4, 0, 7, S, 8),
        waking(6, 0, 7),
        switch(9, 0, 8, R, 7),
        switch(12, 0, 7, R, 8),
        switch(15, 0, 8, S, 7),
        switch(20, 0, 7, S, 0),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..4 running, 4..6 blocked by 8, 6..9 waiting, 9..12 running, 12..15 preempted, 15..20 running"
    );
    let thread = &m.threads[0];
    let of = |class| thread.time_in(class, 0, 20);
    assert_eq!(
        [
            Class::Working,
            Class::Interrupted,
            Class::Blocked,
            Class::Unknown
        ]
        .map(of),
        [12, 6, 2, 0]
    );
    assert_eq!(thread.time_in(Class::Interrupted, 7, 13), 3);
}

#[test]
fn a_state_that_is_not_recorded_is_not_known() {
    let m = model(&[
        switch(5, 0, 0, R, 8),
        waking(10, 0, 7),
        switch(12, 0, 8, R, 7),
        switch(15, 0, 7, S, 8),
        // No waker is recorded.
        switch(19, 0, 8, R, 7),
        switch(20, 0, 7, R, 8),
    ]);
    assert_eq!(
        told(&m, 7),
        "5..10 unknown by 8, 10..12 waiting, 12..15 running, 15..19 blocked, 19..20 running"
    );
}

#[test]
fn system_calls_are_known_while_they_run_and_while_they_wait() {
    let call = |time, name| at(time, 0, What::Call { name });
    let m = model(&[
        switch(0, 0, 0, R, 7),
        call(1, b"read"),
        switch(2, 0, 7, S, 0),
        waking(4, 0, 7),
        switch(5, 0, 0, R, 7),
        at(6, 0, What::Return),
        switch(9, 0, 7, S, 0),
        switch(10, 0, 0, R, 8),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..1 running, 1..2 in read, 2..4 blocked in read by an unknown waker, 4..5 waiting, 5..6 in read, \
         6..9 running, 9..10 blocked"
    );
}

#[test]
fn interrupts_take_time_from_the_thread_and_nest() {
    let irq = |time, end| {
        let what = match end {
            false => What::Irq {
                number: 24,
                name: b"disk",
            },
            true => What::IrqEnd { number: 24 },
        };
        at(time, 0, what)
    };
    let m = model(&[
        // An end whose start is before the trace.
        irq(0, true),
        switch(0, 0, 0, R, 7),
        at(2, 0, What::Softirq { vector: 4 }),
        irq(3, false),
        irq(5, true),
        at(6, 0, What::SoftirqEnd { vector: 4 }),
        at(8, 0, What::Timer { function: None }),
        at(9, 0, What::TimerEnd),
        switch(10, 0, 7, S, 0),
        irq(11, false),
        irq(12, true),
        switch(13, 0, 0, R, 8),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..2 running, 2..3 under BLOCK, 3..5 under irq 24 disk, 5..6 under BLOCK, 6..8 running, 8..9 under timer, \
         9..10 running, 10..13 blocked"
    );
    let uses = |u: lt_model::Stretch| match u.used {
        Use::Unknown => '?',
        Use::Idle => '.',
        Use::Thread(_) => 't',
        Use::Context(_) => 'i',
    };
    let used: String = m.processors[0].stretches.iter().map(uses).collect();
    assert_eq!(used, "tiiitit.i.");
}

#[test]
fn an_idle_kernel_thread_sleeps() {
    let idle = SwitchedOut::Blocked(Sleep::Idle);
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(1, 0, 7, idle, 8),
        waking(3, 0, 7),
        switch(5, 0, 8, R, 7),
        switch(6, 0, 7, idle, 8),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..1 running, 1..3 blocked Idle by 8, 3..5 waiting, 5..6 running"
    );
}

#[test]
fn a_number_that_is_used_again_is_another_thread() {
    let fork = |time, child| {
        at(
            time,
            0,
            What::Fork {
                child,
                name: b"child",
            },
        )
    };
    let m = model(&[
        switch(0, 0, 0, R, 7),
        fork(1, 9),
        switch(2, 0, 7, S, 9),
        switch(4, 0, 9, SwitchedOut::Dead, 8),
        fork(6, 9),
        switch(7, 0, 8, S, 9),
        // The event that shows the end of 9 is lost.
        switch(8, 0, 9, S, 8),
        fork(9, 9),
        switch(10, 0, 8, S, 0),
    ]);
    assert_eq!(
        told(&m, 9),
        "made by 7: 1..2 waiting, 2..4 running | made by 8: 6..7 waiting, 7..8 running, 8..9 blocked | made by 8: 9..10 waiting"
    );
    let dead: Vec<_> = m
        .by_tid(9)
        .map(|id| m.thread(id).unwrap().ended.is_some())
        .collect();
    assert_eq!(dead, [true, true, false]);
    assert!(m.by_tid(9).all(|id| m.thread(id).unwrap().born));
}

/// A thread that has become a zombie, and sleeps before it ends, looks as if it had ended.
#[test]
fn the_sleep_of_a_zombie_is_not_known() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(2, 0, 7, SwitchedOut::Dead, 8),
        waking(4, 0, 7),
        switch(5, 0, 8, S, 7),
        switch(6, 0, 7, SwitchedOut::Dead, 0),
        switch(9, 0, 0, R, 8),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..2 running | 2..4 unknown by 8, 4..5 waiting, 5..6 running"
    );
}

#[test]
fn a_thread_that_runs_as_soon_as_it_is_made_runs_in_one_piece() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        at(
            17,
            0,
            What::Fork {
                child: 9,
                name: b"",
            },
        ),
        switch(17, 1, 0, R, 9),
        at(26, 1, What::Timer { function: None }),
        at(26, 1, What::TimerEnd),
        switch(27, 1, 9, S, 0),
        switch(28, 1, 0, R, 8),
    ]);
    assert_eq!(told(&m, 9), "made by 7: 17..27 running, 27..28 blocked");
}

#[test]
fn the_last_name_counts_even_if_it_is_from_a_later_dump() {
    let name = |m: &lt_model::Model, tid| {
        let thread = m.thread(m.by_tid(tid).next().unwrap()).unwrap();
        thread.name.map(|n| m.names.text(n).to_string())
    };
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(1, 0, 7, S, 8),
        at(2, 0, What::There { tid: 7, name: b"a" }),
        at(
            3,
            0,
            What::Waking {
                tid: 8,
                name: b"old",
                target: 0,
            },
        ),
        at(
            4,
            0,
            What::There {
                tid: 8,
                name: b"new",
            },
        ),
    ]);
    assert_eq!(name(&m, 7).as_deref(), Some("a"));
    assert_eq!(name(&m, 8).as_deref(), Some("new"));
}

#[test]
fn after_a_gap_nothing_of_that_processor_is_known() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        at(4, 0, What::Softirq { vector: 1 }),
        at(5, 0, What::Lost { until: 9 }),
        switch(12, 0, 9, S, 7),
        switch(14, 1, 8, S, 0),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..4 running, 4..5 under TIMER, 5..12 unknown, 12..14 running"
    );
    assert_eq!(told(&m, 8), "0..14 running");
}

#[test]
fn a_thread_that_waits_for_a_processor_with_a_gap_is_not_known_from_the_gap_on() {
    let lost = |since, until, cpu| at(since, cpu, What::Lost { until });
    let m = model(&[
        switch(0, 0, 0, R, 9),
        switch(0, 1, 0, R, 8),
        waking(3, 1, 7),
        switch(4, 0, 9, R, 6),
        lost(5, 8, 0),
        waking(9, 1, 5),
        switch(10, 0, 4, S, 7),
        switch(11, 0, 7, S, 5),
        switch(12, 0, 5, S, 9),
        switch(13, 0, 9, S, 0),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..3 unknown by 8, 3..5 waiting, 5..10 unknown, 10..11 running, 11..13 blocked"
    );
    assert_eq!(
        told(&m, 9),
        "0..4 running, 4..5 preempted, 5..12 unknown, 12..13 running"
    );
    // Thread 5 was woken after the gap.
    assert!(told(&m, 5).ends_with("9..11 waiting, 11..12 running, 12..13 blocked"));
    // Thread 7 is woken in the gap.
    let m = model(&[
        switch(0, 1, 0, R, 8),
        lost(5, 8, 0),
        waking(6, 1, 7),
        switch(10, 0, 4, S, 7),
    ]);
    assert_eq!(told(&m, 7), "0..6 unknown by 8, 6..10 unknown");
    // The gap is on another CPU, where the thread may have run.
    let m = model(&[
        switch(0, 1, 0, R, 8),
        waking(4, 1, 7),
        lost(5, 8, 2),
        switch(10, 0, 4, S, 7),
    ]);
    assert_eq!(
        told(&m, 7),
        "0..4 unknown by 8, 4..5 waiting, 5..8 unknown, 8..10 waiting"
    );
}

/// The end of each state of thread 7, and its processor.
fn cpus(m: &lt_model::Model) -> Vec<(u64, Option<u32>)> {
    let thread = m.by_tid(7).next().and_then(|id| m.thread(id)).unwrap();
    thread.intervals.iter().map(|i| (i.end, i.cpu)).collect()
}

fn wakeup(time: u64, cpu: u32, target: u32) -> lt_model::Event<'static> {
    let (tid, name) = (7, b"");
    at(time, cpu, What::Wakeup { tid, name, target })
}

fn moved(time: u64, cpu: u32, from: u32, to: u32) -> lt_model::Event<'static> {
    let (tid, name) = (7, b"");
    let what = What::Migrate {
        tid,
        name,
        from,
        to,
    };
    at(time, cpu, what)
}

#[test]
fn a_thread_waits_for_each_processor_as_long_as_it_is_queued_there() {
    let events = |moves: bool| {
        let mut events = vec![
            switch(0, 0, 0, R, 7),
            switch(0, 1, 0, R, 8),
            switch(0, 2, 0, R, 9),
            // The thread is preempted on 0, moved to 2, and continues there.
            switch(2, 0, 7, R, 6),
            moved(4, 2, 0, 2),
            switch(5, 2, 9, S, 7),
            switch(6, 2, 7, S, 9),
            // The thread is woken on its last CPU, is moved to 1 in between, and waits for 1 and then for 2.
            waking(7, 0, 7),
            moved(7, 0, 2, 1),
            wakeup(8, 0, 1),
            moved(10, 2, 1, 2),
            // A move to the CPU that the thread is on.
            moved(10, 2, 2, 2),
            switch(11, 2, 9, S, 7),
            switch(12, 2, 7, S, 0),
        ];
        events.retain(|e| moves || !matches!(e.what, What::Migrate { .. }));
        model(&events)
    };
    let whole = events(true);
    assert_eq!(
        told(&whole, 7),
        "0..2 running, 2..4 preempted, 4..5 preempted, 5..6 running, 6..7 blocked by 6, 7..10 waiting, \
         10..11 waiting, 11..12 running"
    );
    assert_eq!(
        cpus(&whole),
        [2, 4, 5, 6, 7, 10, 11, 12]
            .into_iter()
            .zip([0, 0, 2, 2, 2, 1, 2, 2].map(Some))
            .collect::<Vec<_>>()
    );
    // Without the events of moves, the CPU that the thread waited for is not known.
    assert_eq!(
        cpus(&events(false)),
        [
            (2, Some(0)),
            (5, None),
            (6, Some(2)),
            (7, Some(2)),
            (11, None),
            (12, Some(2))
        ]
    );
}

/// With proxy execution, the kernel moves a thread that was preempted before it slept on a mutex, without an event.
#[test]
fn a_move_from_another_processor_shows_that_an_earlier_move_has_no_event() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(0, 2, 0, R, 9),
        switch(2, 0, 7, R, 6),
        moved(4, 2, 1, 2),
        switch(5, 2, 9, S, 7),
        switch(6, 2, 7, S, 9),
    ]);
    let expected = [(2, Some(0)), (4, None), (5, Some(2)), (6, Some(2))];
    assert_eq!(cpus(&m), expected);
}

/// Before Linux 4.3 there is no sched_waking, and some traces lack sched_wakeup: the move shows the thread's CPU.
#[test]
fn a_move_shows_where_a_thread_has_waited() {
    let m = model(&[
        switch(0, 1, 0, R, 7),
        switch(0, 0, 0, R, 9),
        switch(5, 1, 7, S, 8),
        waking(10, 0, 7),
        moved(60, 1, 0, 1),
        switch(120, 1, 8, S, 7),
        switch(130, 1, 7, S, 0),
    ]);
    let expected = [5, 10, 60, 120, 130].into_iter();
    assert_eq!(
        cpus(&m),
        expected.zip([1, 1, 0, 1, 1].map(Some)).collect::<Vec<_>>()
    );
}

#[test]
fn a_thread_that_has_left_is_not_lost_with_its_old_processor() {
    let elsewhere = [
        at(6, 0, What::Lost { until: 9 }),
        // A switch that shows that events of CPU 0 are missing has no effect on the thread, either.
        switch(6, 0, 9, S, 0),
    ];
    for event in elsewhere {
        let m = model(&[
            switch(0, 0, 0, R, 7),
            switch(4, 1, 0, R, 7),
            event,
            switch(8, 1, 7, S, 0),
        ]);
        assert_eq!(told(&m, 7), "0..8 running");
    }
}

#[test]
fn an_interrupt_of_one_thread_does_not_continue_with_another() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        at(2, 0, What::Softirq { vector: 1 }),
        switch(5, 0, 8, R, 9),
        switch(6, 0, 9, S, 8),
        switch(8, 0, 8, S, 0),
    ]);
    assert!(told(&m, 8).ends_with("6..8 running"), "{}", told(&m, 8));
}

#[test]
fn interrupts_that_never_end_do_not_pile_up() {
    let mut events = vec![switch(0, 0, 0, R, 7)];
    for time in 1..=100_000 {
        events.push(at(time, 0, What::Timer { function: None }));
        events.push(at(time, 0, What::SoftirqEnd { vector: 1 }));
    }
    for time in 100_001..=100_064 {
        events.push(at(time, 0, What::TimerEnd));
    }
    events.push(switch(100_070, 0, 7, S, 0));
    assert_eq!(
        told(&model(&events), 7),
        "0..1 running, 1..100064 under timer, 100064..100070 running"
    );
}

#[test]
fn a_switch_from_a_thread_that_did_not_run_shows_that_events_are_missing() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(5, 0, 8, S, 9),
        switch(6, 0, 9, S, 7),
        switch(8, 0, 7, S, 0),
    ]);
    assert_eq!(told(&m, 7), "0..5 running, 5..6 unknown, 6..8 running");
}

#[test]
fn the_creator_of_a_thread_is_not_the_waker_that_ended_its_first_state() {
    let fork = What::Fork {
        child: 4,
        name: b"",
    };
    // The CPU of the fork has a gap; the thread runs for no time, and its next state is not known either.
    let m = model(&[
        switch(9, 0, 0, R, 7),
        at(10, 0, fork),
        at(10, 0, What::Lost { until: 12 }),
        switch(18, 0, 0, S, 4),
        switch(18, 0, 0, S, 8),
        waking(28, 0, 4),
        switch(30, 0, 8, S, 4),
    ]);
    assert_eq!(
        told(&m, 4),
        "made by 7: 10..18 unknown, 18..28 unknown by 8, 28..30 waiting"
    );
}

/// 7 sleeps. 8 returns to user mode at 1000, or does something else; it is interrupted, and later seems to wake 7.
#[test]
fn a_thread_in_user_mode_wakes_no_thread() {
    const LONG: u64 = 200_000;
    let events = |before: What<'static>, after: u64| {
        let irq = What::Irq {
            number: 24,
            name: b"disk",
        };
        [
            switch(0, 0, 0, R, 7),
            switch(500, 0, 7, S, 8),
            at(900, 0, What::Call { name: b"read" }),
            at(1000, 0, before),
            at(LONG, 0, irq),
            at(2 * LONG, 0, What::IrqEnd { number: 24 }),
            waking(2 * LONG + after, 0, 7),
            switch(9 * LONG, 0, 8, S, 7),
        ]
    };
    let woken_by = |all_calls: bool, before, after| {
        let mut builder = Builder::new();
        if all_calls {
            builder.has_all_calls();
        }
        events(before, after).iter().for_each(|e| builder.feed(e));
        let told = told(&builder.finish(), 7);
        let (_, by) = told.split_once(" by ").unwrap();
        by.split(',').next().unwrap().to_string()
    };
    assert_eq!(woken_by(true, What::Return, LONG), "unseen");
    // Thread 8 may still be on its way back to user mode.
    assert_eq!(woken_by(true, What::Return, 25_000), "8");
    assert_eq!(woken_by(true, What::Return, 35_000), "unseen");
    // In the kernel, the thread is the waker.
    assert_eq!(woken_by(true, What::Call { name: b"write" }, LONG), "8");
    assert_eq!(woken_by(true, What::Exit, LONG), "8");
    // Other system calls may not be recorded.
    assert_eq!(woken_by(false, What::Return, LONG), "8");
}

#[test]
fn a_thread_has_its_names_one_after_the_other() {
    let named = |time, name| at(time, 0, What::There { tid: 7, name });
    let m = model(&[
        named(1, b"sh"),
        named(5, b"true"),
        named(6, b"true"),
        named(9, b"sh"),
    ]);
    let thread = m.thread(m.by_tid(7).next().unwrap()).unwrap();
    let names = [0, 1, 2, 6, 7, 99].map(|time| m.names.text(thread.name_at(time).unwrap()));
    assert_eq!(names, ["sh", "sh", "true", "true", "sh", "sh"]);
}

/// 9 is switched out with its new number before the event of the exec.
#[test]
fn the_event_of_an_exec_shows_that_a_thread_was_switched_out_with_its_new_number() {
    let execs = |tid, old| {
        let m = model(&[
            switch(0, 0, 0, R, 7),
            switch(0, 1, 0, R, 9),
            at(1, 1, What::Call { name: b"execve" }),
            switch(2, 0, 7, SwitchedOut::Dead, 0),
            switch(3, 1, 7, S, 0),
            waking(4, 0, 7),
            switch(5, 1, 0, R, 7),
            at(6, 1, What::Exec { tid, old }),
            at(8, 1, What::Return),
            switch(9, 1, 7, S, 0),
        ]);
        (told(&m, 9), told(&m, 7))
    };
    let (before, after) = execs(7, 9);
    assert_eq!(before, "0..1 running, 1..3 in execve");
    let continues = "0..2 running | 2..3 unknown, 3..4 blocked by an unknown waker, 4..5 waiting, 5..6 running, \
                     6..8 in execve, 8..9 running";
    assert_eq!(after, continues);
    // The exec of another thread: events are missing.
    let (before, after) = execs(7, 8);
    assert_eq!(before, "0..1 running, 1..3 in execve, 3..9 unknown");
    assert!(!after.contains("in execve"), "{after}");
}

#[test]
fn a_thread_continues_with_the_number_that_exec_gives_it() {
    let execs = |tid, old| {
        let m = model(&[
            switch(0, 0, 0, R, 7),
            switch(0, 1, 0, R, 9),
            at(1, 1, What::Call { name: b"execve" }),
            switch(2, 0, 7, SwitchedOut::Dead, 0),
            at(3, 1, What::Exec { tid, old }),
            at(5, 1, What::Return),
            switch(6, 1, 7, S, 0),
            switch(8, 1, 0, R, 7),
            switch(9, 1, 7, S, 0),
        ]);
        (told(&m, 9), told(&m, 7))
    };
    let (before, after) = execs(7, 9);
    assert_eq!(before, "0..1 running, 1..3 in execve");
    let continues = "0..2 running | 3..5 in execve, 5..6 running, 6..8 blocked, 8..9 running";
    assert_eq!(after, continues);
    // The event of another thread.
    let (_, after) = execs(7, 8);
    assert!(!after.contains("in execve"), "{after}");
}
