// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Limits of the kernel: named only if it is proved that they held the thread back.

use lt_model::why::{Beside, Cause, Leaf, Limit, Nothing, Place, Quota, Slept, path_beside};
use lt_model::{
    Builder, Disk, Event, Interval, Priority, Runtime, Sleep, Stage, State, SwitchedOut, ThreadId,
    What,
};

use crate::made::{R, S, at, completed, timer};

const PERIOD: u64 = 0x10;
const DEADLINE: u64 = 0x20;
const THROTTLE: u64 = 0x30;

fn switch(time: u64, cpu: u32, prev: i32, out: SwitchedOut, next: i32) -> Event<'static> {
    // 9 is a SCHED_DEADLINE thread.
    let prio = |tid| Some(Priority(if tid == 9 { -1 } else { 120 }));
    let what = What::Switch {
        prev,
        prev_name: b"",
        out,
        prev_prio: prio(prev),
        next,
        next_name: b"",
        next_prio: prio(next),
    };
    at(time, cpu, what)
}

fn waking(time: u64, cpu: u32, tid: i32) -> [Event<'static>; 2] {
    let (name, target) = (&b""[..], 0);
    [
        at(time, cpu, What::Waking { tid, name, target }),
        at(time, cpu, What::Wakeup { tid, name, target }),
    ]
}

/// Known facts about quotas and sleeps.
struct Knows(Quota, Option<Slept>);

impl Beside for Knows {
    fn quota(&self, _: ThreadId, wait: &Interval) -> Quota {
        assert!(matches!(wait.state, State::Waiting | State::Preempted));
        self.0
    }

    fn slept(&self, _: ThreadId, sleep: &Interval) -> Option<Slept> {
        assert!(matches!(sleep.state, State::Blocked(..)));
        self.1
    }
}

/// The parts of the path of a thread from 10 to 110: end and cause of each.
fn parts(tid: i32, beside: &dyn Beside, events: &[Event<'static>]) -> Vec<(u64, Cause)> {
    let mut builder = Builder::new();
    builder.has_functions([
        (PERIOD, "sched_cfs_period_timer"),
        (DEADLINE, "dl_task_timer"),
        (THROTTLE, "blk_throtl_dispatch_work_fn"),
    ]);
    events.iter().for_each(|e| builder.feed(e));
    let m = builder.finish();
    let pieces = path_beside(&m, beside, m.by_tid(tid).next().unwrap(), 10, 110);
    pieces.iter().map(|p| (p.end, p.cause)).collect()
}

/// 7 has used up its quota. CPU 0 then runs another thread for the time `by`, and after the timer, 8
/// before 7.
fn throttled(by: u64) -> Vec<Event<'static>> {
    let mut events = vec![switch(0, 0, 0, R, 7), switch(10, 0, 7, R, 0)];
    events.extend([switch(40, 0, 0, R, 5), switch(40 + by, 0, 5, S, 0)]);
    events.extend(timer(90, 0, PERIOD));
    events.extend([
        switch(92, 0, 0, R, 8),
        switch(100, 0, 8, S, 7),
        switch(120, 0, 7, S, 0),
    ]);
    events
}

#[test]
fn a_quota_is_named_if_it_is_proved_and_the_cpu_was_idle() {
    let cgroup = Some(3);
    let proved = Knows(Quota::Proved(cgroup), None);
    let quota = Cause::Limited(Limit::Quota(cgroup));
    let run = (110, Cause::Running(None));
    let expected = [(90, quota), (100, Cause::Preempted), run];
    assert_eq!(parts(7, &proved, &throttled(4)), expected);
    // Another thread had the CPU for much of the time.
    let plain = [(100, Cause::Preempted), run];
    assert_eq!(parts(7, &proved, &throttled(30)), plain);
    // The counters are not known, or show that no quota was used up.
    for unproved in [Quota::Open, Quota::Excluded] {
        assert_eq!(parts(7, &Knows(unproved, None), &throttled(4)), plain);
    }
}

/// While another thread has the CPU, a quota is not the cause of the wait, even if it is used up.
#[test]
fn a_quota_is_not_the_cause_while_another_thread_has_the_cpu() {
    let events = [
        &[
            switch(0, 0, 0, R, 7),
            switch(10, 0, 7, R, 5),
            switch(60, 0, 5, S, 0),
        ][..],
        &timer(90, 0, PERIOD),
        &[switch(100, 0, 0, R, 7), switch(120, 0, 7, S, 0)],
    ]
    .concat();
    let expected = [
        (60, Cause::Preempted),
        (90, Cause::Limited(Limit::Quota(None))),
        (100, Cause::Preempted),
        (110, Cause::Running(None)),
    ];
    assert_eq!(
        parts(7, &Knows(Quota::Proved(None), None), &events),
        expected
    );
}

#[test]
fn a_cpu_that_leaves_idle_late_is_named_without_further_proof() {
    let idle = |time, enters| at(time, 0, What::Idle { enters });
    let events = [
        &[switch(0, 0, 0, R, 7), switch(5, 0, 7, S, 0), idle(6, true)][..],
        &waking(20, 1, 7),
        &timer(50, 1, PERIOD),
        &[
            idle(99, false),
            switch(100, 0, 0, R, 7),
            switch(120, 0, 7, S, 0),
        ],
    ]
    .concat();
    let parts = parts(7, &Knows(Quota::Proved(None), None), &events);
    let expected = [
        (99, Cause::LeavesIdle),
        (100, Cause::Waiting),
        (110, Cause::Running(None)),
    ];
    assert_eq!(parts[1..], expected);
}

/// CPU 0 halts, and handles interrupts before the event that shows that it leaves idle.
#[test]
fn a_cpu_that_handles_an_interrupt_is_not_slow_to_leave_idle() {
    let idle = |time, enters| at(time, 0, What::Idle { enters });
    let of = |meanwhile: &[Event<'static>]| {
        let begin = [switch(0, 0, 0, R, 7), switch(5, 0, 7, S, 0), idle(6, true)];
        let end = [
            idle(99, false),
            switch(100, 0, 0, R, 7),
            switch(120, 0, 7, S, 0),
        ];
        let parts = parts(7, &Nothing, &[&begin[..], meanwhile, &end].concat());
        parts.into_iter().skip(1).collect::<Vec<_>>()
    };
    let run = (110, Cause::Running(None));
    // A softirq wakes 7, and goes on.
    let [woken, queued] = waking(20, 0, 7);
    let vector = 3;
    let softirq = [
        at(12, 0, What::Softirq { vector }),
        woken,
        queued,
        at(90, 0, What::SoftirqEnd { vector }),
    ];
    let leaves = (99, Cause::LeavesIdle);
    let expected = [(90, Cause::Waiting), leaves, (100, Cause::Waiting), run];
    assert_eq!(of(&softirq), expected);
    // A handler delays the exit from idle.
    let [woken, queued] = waking(20, 1, 7);
    let (number, name) = (24, &b"disk"[..]);
    let handler = [
        woken,
        queued,
        at(60, 0, What::Irq { number, name }),
        at(98, 0, What::IrqEnd { number }),
    ];
    let expected = [(60, Cause::LeavesIdle), (100, Cause::Waiting), run];
    assert_eq!(of(&handler), expected);
}

#[test]
fn a_thread_of_sched_deadline_waits_for_its_runtime() {
    let events = [
        &[switch(0, 0, 0, R, 9), switch(10, 0, 9, R, 5)][..],
        &timer(90, 0, DEADLINE),
        &[switch(100, 0, 5, R, 9), switch(120, 0, 9, S, 0)],
    ]
    .concat();
    let expected = [
        (90, Cause::Limited(Limit::Deadline(Runtime::Unrecorded))),
        (100, Cause::Preempted),
        (110, Cause::Running(None)),
    ];
    assert_eq!(parts(9, &Nothing, &events), expected);
}

/// 7 reads, and a worker submits its bio at 60.
#[test]
fn a_bio_that_the_work_item_of_io_max_submits_was_held_back_by_io_max() {
    let disk = Disk(8 << 20);
    let held = |function| {
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
        let range = Some((8, 8));
        let events = [
            switch(0, 0, 0, R, 7),
            switch(10, 0, 7, S, 0),
            switch(2, 1, 0, R, 5),
            at(50, 1, What::Work { function }),
            request(60, Stage::Queued),
            request(62, Stage::Issued),
            at(99, 0, What::Softirq { vector: 4 }),
            completed(100, disk, range),
            waking(110, 0, 7)[0],
        ];
        parts(7, &Nothing, &events)[0]
    };
    assert_eq!(
        held(THROTTLE),
        (60, Cause::Held(disk, Place::Limited, None))
    );
    // Another work item: only the submission by the worker is known.
    assert!(matches!(
        held(PERIOD),
        (110, Cause::For(Leaf::Others(..), None))
    ));
}

#[test]
fn a_sleep_is_for_what_its_function_waits_for() {
    let leaf = Leaf::Resource(&("reclaim_throttle", "memory"));
    let slept = |alone| Knows(Quota::Open, Some(Slept { leaf, alone }));
    let begin = [switch(0, 0, 0, R, 7), switch(10, 0, 7, S, 0)];
    let by = |ends: &[Event<'static>]| [&begin[..], ends, &[switch(110, 0, 0, R, 7)]].concat();
    let timer = by(&[timer(100, 0, 1)[0], waking(100, 0, 7)[0]]);
    assert_eq!(
        parts(7, &slept(false), &timer)[0],
        (100, Cause::For(leaf, None))
    );
    assert_eq!(
        parts(7, &Nothing, &timer)[0],
        (100, Cause::For(Leaf::Timer, None))
    );
    // A device or a thread is a better explanation, unless the thread has only ended a sleep that
    // it did not cause.
    let name = b"eth0";
    let device = by(&[
        at(99, 0, What::Irq { number: 3, name }),
        waking(100, 0, 7)[0],
    ]);
    assert!(matches!(
        parts(7, &slept(false), &device)[0].1,
        Cause::For(Leaf::Irq(3, _), None)
    ));
    let thread = by(&[switch(50, 1, 0, R, 5), waking(100, 1, 7)[0]]);
    assert_eq!(
        parts(7, &slept(true), &thread)[0],
        (100, Cause::For(leaf, None))
    );
    assert!(!matches!(
        parts(7, &slept(false), &thread)[0].1,
        Cause::For(..)
    ));
}

/// The sender of SIGCONT need not have stopped the thread.
#[test]
fn a_stopped_thread_waits_for_a_signal_and_not_for_its_sender() {
    let events = |sleep| {
        [
            switch(0, 0, 0, R, 7),
            switch(10, 0, 7, SwitchedOut::Blocked(sleep), 0),
            switch(50, 1, 0, R, 5),
            waking(100, 1, 7)[0],
            switch(110, 0, 0, R, 7),
        ]
    };
    let why = |sleep| parts(7, &Nothing, &events(sleep))[0];
    assert_eq!(why(Sleep::Stopped), (100, Cause::For(Leaf::Continue, None)));
    assert_eq!(why(Sleep::Traced), (100, Cause::For(Leaf::Tracer, None)));
}
