// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What the counters of cgroups, and the stacks in alerts, add to an explanation.

use lt_model::{Builder, Event, What};
use lt_proc::evidence::Task;

use super::super::why::Why;
use super::*;
use crate::analyze::made::{R, S, at, completed, request, switch, waking};
use crate::trace::{Saved, Told};

const PERIOD: u64 = 0x10;

fn told(events: &[Event<'_>]) -> Told {
    let mut builder = Builder::new();
    builder.has_functions([(PERIOD, "sched_cfs_period_timer")]);
    events.iter().for_each(|e| builder.feed(e));
    Told::made(builder.finish(), 0)
}

/// A quota holds thread 7 back from 1000 to 91000; the thread runs again at 92000.
fn throttled() -> Vec<Event<'static>> {
    let function = Some(PERIOD);
    vec![
        switch(0, 0, 0, R, 7),
        switch(1000, 0, 7, R, 0),
        at(91_000, 0, What::Timer { function }),
        at(91_500, 0, What::TimerEnd),
        switch(92_000, 0, 0, R, 7),
        switch(100_000, 0, 7, S, 0),
    ]
}

fn alert(reason: &str, (begin, time): (u64, u64), more: &str) -> Alert {
    let delay = time - begin;
    let line = format!(
        "seq=3 time={time} instance=slow tracker=offcpu reason={reason} delay={delay} threshold=10 cpu=0 pid=7 tid=7 \
         comm=\"late\"{more}"
    );
    Alert::parse(&line).unwrap()
}

fn counters(time: u64, nr_throttled: u64, throttled_usec: u64) -> Counters {
    Counters {
        begin: time,
        end: time + 10,
        nr_throttled: Some(nr_throttled),
        throttled_usec: Some(throttled_usec),
        ..Counters::default()
    }
}

fn cgroup(path: &str, max: &str, reads: &[Counters]) -> Cgroup {
    Cgroup {
        path: path.into(),
        limits: vec![("cpu.max".into(), max.into())],
        threads: Vec::new(),
        reads: reads.to_vec(),
    }
}

fn evidence(cgroups: &[Cgroup]) -> Evidence {
    Evidence {
        tasks: vec![Task {
            tid: 7,
            read: 200_000,
            cgroup: Some("/a/b".into()),
            policy: None,
            cpus: None,
        }],
        cgroups: cgroups.to_vec(),
        ..Evidence::default()
    }
}

fn verdict(events: &[Event<'_>], alert: &Alert, evidence: &Evidence) -> String {
    Why::new(&told(events), alert, evidence, &[]).verdict()
}

fn of_quota(evidence: &Evidence) -> String {
    verdict(
        &throttled(),
        &alert("threshold", (1000, 92_000), ""),
        evidence,
    )
}

const HALF: &str = "50000 100000";

#[test]
fn a_quota_is_named_with_its_cgroup_if_its_counter_has_grown() {
    let grown = [counters(500, 3, 10), counters(95_000, 4, 10)];
    let of_b = of_quota(&evidence(&[cgroup("/a/b", HALF, &grown)]));
    assert!(
        of_b.starts_with(
            "98 % of the delay (90.00us): late/7 was held back by cpu.max of cgroup /a/b."
        ),
        "{of_b}"
    );
    // A limit of a higher level is attributed to that level. A sibling, and a cgroup without a limit, do not matter.
    let levels = [
        cgroup("/a/b", "max 100000", &grown),
        cgroup("/a", HALF, &grown),
        cgroup("/a/bc", HALF, &grown),
    ];
    let of_a = of_quota(&evidence(&levels));
    assert!(
        of_a.contains("was held back by cpu.max of cgroup /a."),
        "{of_a}"
    );
    // The quotas of two levels were used up.
    let both = [cgroup("/a/b", HALF, &grown), cgroup("/a", HALF, &grown)];
    let of_one = of_quota(&evidence(&both));
    assert!(
        of_one.contains("by cpu.max of its cgroup or an ancestor"),
        "{of_one}"
    );
    // The thread was released before the period ended, as only `throttled_usec` shows.
    let slack = [counters(500, 3, 10), counters(95_000, 3, 100)];
    let of_slack = of_quota(&evidence(&[cgroup("/a/b", HALF, &slack)]));
    assert!(
        of_slack.contains("was held back by cpu.max of cgroup /a/b"),
        "{of_slack}"
    );
}

#[test]
fn a_quota_is_offered_if_its_counter_is_not_known_and_excluded_if_it_has_not_grown() {
    let is_open = |said: String| {
        let begin = "100 % of the delay (91.00us): late/7 was runnable; CPU 0 was idle for 90.50us before the thread ran: perhaps cpu.max,";
        assert!(said.starts_with(begin), "{said}");
    };
    is_open(of_quota(&Evidence::default()));
    // Growth that may have come before or after the delay.
    for times in [[500, 600], [95_000, 99_000], [2000, 95_000], [500, 50_000]] {
        let reads = [counters(times[0], 3, 10), counters(times[1], 4, 20)];
        is_open(of_quota(&evidence(&[cgroup("/a/b", HALF, &reads)])));
    }
    let same = [counters(500, 3, 10), counters(95_000, 3, 10)];
    for none in [
        cgroup("/a/b", HALF, &same),
        cgroup("/a/b", "max 100000", &same),
    ] {
        let excluded = of_quota(&evidence(&[none]));
        assert!(
            excluded.contains("not cpu.max, as its counters show"),
            "{excluded}"
        );
    }
}

/// In a container, the cgroups above the visible root may have a quota, too.
#[test]
fn a_quota_above_a_container_is_not_excluded() {
    let root = cgroup("/", "max 100000", &[]);
    let told = |nr_throttled| {
        let reads = [counters(500, 3, 10), counters(95_000, nr_throttled, 10)];
        of_quota(&evidence(&[cgroup("/a/b", HALF, &reads), root.clone()]))
    };
    let open = told(3);
    assert!(
        open.contains("perhaps cpu.max,") && !open.contains("not cpu.max"),
        "{open}"
    );
    let of_some = "was held back by cpu.max of its cgroup or an ancestor";
    let grown = told(4);
    assert!(grown.contains(of_some), "{grown}");
    // The alert shows a quota, but not whose.
    let alert = alert("threshold", (1000, 92_000), QUOTA);
    let shown = [cgroup("/a/b", HALF, &[]), root];
    let shown = verdict(&throttled(), &alert, &evidence(&shown));
    assert!(shown.contains(of_some), "{shown}");
}

/// The counter grows for another thread of the cgroup.
#[test]
fn a_counter_alone_names_no_quota() {
    let grown = [counters(500, 3, 10), counters(95_000, 4, 80)];
    let evidence = evidence(&[cgroup("/a/b", HALF, &grown)]);
    let alert = alert("threshold", (1000, 92_000), "");
    // Another thread has the CPU.
    let mut busy = throttled();
    busy[1] = switch(1000, 0, 7, R, 8);
    busy[4] = switch(92_000, 0, 8, R, 7);
    let said = verdict(&busy, &alert, &evidence);
    let expected = "was switched out while runnable, and waited for CPU 0, which ran hog/8; meanwhile a \
                    quota was used up (cpu.max of cgroup /a/b), perhaps by another thread.";
    assert!(said.ends_with(expected), "{said}");
    // Another thread has the CPU for a third of the time, so it may be the cause.
    let mut partly = throttled();
    partly.splice(
        2..2,
        [switch(20_000, 0, 0, R, 8), switch(50_000, 0, 8, S, 0)],
    );
    let said = verdict(&partly, &alert, &evidence);
    let expected = "perhaps cpu.max of cgroup /a/b, whose counters have grown meanwhile.";
    assert!(said.ends_with(expected), "{said}");
    // The timer that refilled the quota is not recorded.
    partly.drain(4..6);
    let said = verdict(&partly, &alert, &evidence);
    assert!(said.ends_with(expected), "{said}");
    // The CPU is slow to leave idle, and a period ends in this time.
    let idle = |time, enters| at(time, 0, What::Idle { enters });
    let slow = [
        switch(0, 0, 0, R, 7),
        switch(500, 0, 7, S, 0),
        idle(600, true),
        waking(1000, 1, 7),
        at(
            50_000,
            1,
            What::Timer {
                function: Some(PERIOD),
            },
        ),
        at(50_500, 1, What::TimerEnd),
        idle(91_000, false),
        switch(92_000, 0, 0, R, 7),
    ];
    let said = verdict(&slow, &alert, &evidence);
    assert_eq!(
        said,
        "98 % of the delay (90.00us): late/7 was runnable; CPU 0 took 90.00us to leave idle."
    );
}

const HIGH: &str =
    " stack=__mem_cgroup_handle_over_high+0x1a0/0x230,exit_to_user_mode_loop+0x91/0x130";
const QUOTA: &str = " stack=preempt_schedule_thunk+0x16/0x30,throttle_cfs_rq_work+0x1e0/0x200,task_work_run+0x5b/0xa0";

/// Thread 7 sleeps twice, each time until a timer expires; the second sleep starts at `again`.
fn sleeps(again: u64) -> Vec<Event<'static>> {
    let timer = |time| at(time, 0, What::Timer { function: None });
    vec![
        switch(0, 0, 0, R, 7),
        switch(1000, 0, 7, S, 0),
        timer(again - 1000),
        waking(again - 999, 0, 7),
        at(again - 998, 0, What::TimerEnd),
        switch(again - 990, 0, 0, R, 7),
        switch(again, 0, 7, S, 0),
        timer(90_000),
        waking(90_001, 0, 7),
        at(90_002, 0, What::TimerEnd),
        switch(90_010, 0, 0, R, 7),
        switch(95_000, 0, 7, R, 0),
    ]
}

#[test]
fn the_function_of_a_sleep_shows_the_cause_of_that_sleep_only() {
    let why = |alert: &Alert| verdict(&sleeps(11_000), alert, &Evidence::default());
    let of_second = "late/7 waited for memory.high of its cgroup (__mem_cgroup_handle_over_high).";
    let second = why(&alert("threshold", (11_000, 90_010), HIGH));
    assert!(second.ends_with(of_second), "{second}");
    // An alert during the sleep.
    let pending = why(&alert("timeout", (11_000, 50_000), HIGH));
    assert!(pending.ends_with(of_second), "{pending}");
    // The thread ran when the stack was read, or the stack comes from another kind of alert.
    for (reason, time) in [("timeout", 92_000), ("other", 90_010)] {
        let said = why(&alert(reason, (11_000, time), HIGH));
        assert!(said.contains("waited for a timer"), "{said}");
    }
    // The first sleep, which is the longest part, had another cause.
    let alert = alert("stack", (1000, 90_010), HIGH);
    let first = verdict(&sleeps(80_000), &alert, &Evidence::default());
    assert!(first.ends_with("late/7 waited for a timer."), "{first}");
}

const TAG: &str = " stack=\"blk_mq_get_tag+0x12c/0x2e0\"";

/// Thread 7 submits a bio at time 8, and waits from 10 to 800 for the only tag of the disk, which a request of thread 8
/// holds.
fn lacks_a_tag() -> Vec<Event<'static>> {
    use lt_model::Stage::{Allocated, Issued, Queued};
    let disk = lt_model::Disk(254 << 20);
    let stage = |time, stage, sector| request(time, stage, disk, sector);
    vec![
        switch(0, 0, 0, R, 8),
        stage(1, Queued, 64),
        stage(2, Allocated, 64),
        stage(3, Issued, 64),
        switch(4, 0, 8, S, 7),
        stage(8, Queued, 256),
        switch(10, 0, 7, S, 0),
        at(800, 0, What::Timer { function: None }),
        completed(800, disk, Some((64, 8))),
        waking(800, 0, 7),
        at(801, 0, What::TimerEnd),
        switch(810, 0, 0, R, 7),
        stage(811, Allocated, 256),
        stage(812, Issued, 256),
        switch(900, 0, 7, S, 0),
    ]
}

/// The alert of a system call of thread 7, without a stack.
fn call(range: (u64, u64)) -> Alert {
    let line = alert("threshold", range, "").to_string();
    let line = line.replace("seq=3 ", "seq=4 ");
    Alert::parse(&line.replace("tracker=offcpu", "tracker=syscall")).unwrap()
}

/// The sentence about an alert, and the whole text with its lines joined. `beside`: see [`Why::new`].
fn explained(events: &[Event<'_>], alert: &Alert, beside: &[Alert]) -> (String, String) {
    explained_from(&told(events), alert, beside)
}

/// As [`explained`], from a trace that was read.
fn explained_from(told: &Told, alert: &Alert, beside: &[Alert]) -> (String, String) {
    let evidence = Evidence::default();
    let beside = ByThread::new(beside);
    let why = Why::new(told, alert, &evidence, beside.during(alert));
    let text = lt_common::out::whole(|| why.text());
    let words: Vec<&str> = text.split_whitespace().collect();
    (why.verdict(), words.join(" "))
}

#[test]
fn only_alerts_of_the_thread_during_the_delay_are_searched() {
    let other = alert("threshold", (60, 70), "").to_string();
    let other = Alert::parse(&other.replace("tid=7 ", "tid=8 ")).unwrap();
    let ranges = [(300, 400), (10, 50), (90, 100), (20, 49), (399, 401)];
    let own = ranges.map(|range| alert("threshold", range, ""));
    let all: Vec<Alert> = [other].into_iter().chain(own).collect();
    let all = ByThread::new(&all);
    let during = |range| {
        let found = all.during(&call(range)).iter();
        found.map(|alert| alert.time).collect::<Vec<_>>()
    };
    assert_eq!(during((50, 400)), [50, 100, 400]);
    assert!(during((402, 500)).is_empty());
}

/// The call has ended when its alert is raised, so only the alert of the sleep within the call has a stack.
#[test]
fn the_stack_in_the_alert_of_a_sleep_shows_why_a_call_was_late() {
    let (events, late) = (lacks_a_tag(), call((5, 815)));
    let sleep = |more: &str| alert("threshold", (10, 810), more);
    let reason = "late/7 waited for a request held back before disk 254:0: no free tag; the stack shows blk_mq_get_tag";
    let (own, text) = explained(&events, &sleep(TAG), &[]);
    assert!(own.contains(reason), "{own}");
    assert!(!text.contains("The stack is in"), "{text}");
    let (said, text) = explained(&events, &late, &[late.clone(), sleep(TAG)]);
    assert!(said.starts_with("97 % of the delay (790ns): "), "{said}");
    let [own, said] = [own, said].map(|said| said.split_once(": ").unwrap().1.to_string());
    assert_eq!(own, said);
    let note =
        "The stack is in alert 3 of slow, about a sleep of the same thread during the delay.";
    assert!(text.contains(note), "{text}");
    // Stacks that do not show where this thread slept then.
    let line = sleep(TAG).to_string();
    let other = |from: &str, to: &str| Alert::parse(&line.replace(from, to)).unwrap();
    for other in [
        sleep(""),
        sleep(" stack=\"schedule_timeout+0x1/0x2,blk_mq_get_tag+0x12c/0x2e0\""),
        other("tid=7 ", "tid=8 "),
        other("tracker=offcpu", "tracker=runqueue"),
        other("tracker=offcpu", "tracker=syscall"),
        alert("threshold", (2, 810), TAG),
        alert("threshold", (10, 820), TAG),
        alert("threshold", (5, 9), TAG),
    ] {
        let (said, text) = explained(&events, &late, std::slice::from_ref(&other));
        let vague = "no free request; the reason is a lack of tags";
        assert!(said.contains(vague), "{other}: {said}");
        assert!(!text.contains("The stack is in"), "{other}: {text}");
    }
}

#[test]
fn each_sleep_of_a_call_has_the_stack_of_its_own_alert() {
    let (events, late) = (sleeps(11_000), call((500, 92_000)));
    let [first, second] =
        [(1000, 10_010), (11_000, 90_010)].map(|range| alert("threshold", range, HIGH));
    let high = "late/7 waited for memory.high of its cgroup (__mem_cgroup_handle_over_high).";
    let (said, _) = explained(&events, &late, std::slice::from_ref(&second));
    assert!(said.starts_with("86 % of the delay (79.00us): "), "{said}");
    assert!(said.ends_with(high), "{said}");
    // The first sleep is shorter; nothing shows the reason for the second one.
    let (said, text) = explained(&events, &late, std::slice::from_ref(&first));
    assert!(said.ends_with("late/7 waited for a timer."), "{said}");
    let row = "late/7 waits for memory.high of its cgroup (__mem_cgroup_handle_over_high)";
    assert!(text.contains(row), "{text}");
    let both = [first, second];
    let (said, text) = explained(&events, &late, &both);
    assert!(said.ends_with(high), "{said}");
    let note = "The stacks are in alert 3 of slow and 1 more alert, about sleeps of the same thread during the delay.";
    assert!(text.contains(note), "{text}");
    // Where the stacks are.
    for (saved, beside, note) in [
        (
            Saved::Capture("0001/trace".into()),
            &both[..],
            "The stacks are in alert 3 of slow and 1 more alert (in alert.json), about sleeps of the same thread",
        ),
        (
            Saved::Capture("0001/trace".into()),
            &both[1..],
            "The stack is in alert 3 of slow (in alert.json), about a sleep of the same thread during the delay.",
        ),
        (
            Saved::Nothing,
            &both[..],
            "The stacks come from 2 sleeps of the same thread during the delay; -o DIR keeps them in alert.json.",
        ),
        (
            Saved::Nothing,
            &both[1..],
            "The stack comes from a sleep of the same thread during the delay; -o DIR keeps it in alert.json.",
        ),
    ] {
        let mut told = told(&events);
        told.saved = saved;
        let (_, text) = explained_from(&told, &late, beside);
        assert!(text.contains(note), "{text}");
        let names_it = |text: &str| text.contains("alert 3 of slow");
        assert_eq!(names_it(&text), names_it(note), "{text}");
    }
}

#[test]
fn the_function_that_throttles_proves_a_quota() {
    let alert = alert("threshold", (1000, 92_000), QUOTA);
    let said = verdict(&throttled(), &alert, &Evidence::default());
    assert!(
        said.contains("was held back by cpu.max of its cgroup or an ancestor"),
        "{said}"
    );
    let unknown = evidence(&[cgroup("/a", HALF, &[])]);
    let said = verdict(&throttled(), &alert, &unknown);
    assert!(
        said.contains("was held back by cpu.max of cgroup /a."),
        "{said}"
    );
    // Another thread ran first when the quota was refilled.
    let mut busy = throttled();
    busy.insert(4, switch(91_600, 0, 0, R, 8));
    busy[5] = switch(92_000, 0, 8, S, 7);
    let held = "98 % of the delay (90.00us): late/7 was held back by cpu.max of cgroup /a.";
    assert_eq!(verdict(&busy, &alert, &unknown), held);
    // The timer is not recorded. The idle CPU shows that the quota was still used up.
    busy.drain(2..4);
    let held = "99 % of the delay (90.60us): late/7 was held back by cpu.max of cgroup /a.";
    assert_eq!(verdict(&busy, &alert, &unknown), held);
    // The other thread had the CPU all the time.
    busy[1] = switch(1000, 0, 7, R, 8);
    busy.remove(2);
    let said = verdict(&busy, &alert, &unknown);
    let expected = "ran hog/8; at first a quota held it back (cpu.max of cgroup /a), as the alert shows; until when is \
                    not recorded.";
    assert!(said.ends_with(expected), "{said}");
}

/// The quota held the thread back earlier, and for a short time.
#[test]
fn a_stack_is_no_evidence_about_another_wait() {
    let events = [
        switch(0, 0, 0, R, 7),
        switch(1000, 0, 7, R, 0),
        switch(5000, 0, 0, R, 7),
        switch(6000, 0, 7, S, 8),
        waking(10_000, 0, 7),
        switch(92_000, 0, 8, S, 7),
        switch(100_000, 0, 7, S, 0),
    ];
    let alert = alert("timeout", (1000, 4000), QUOTA);
    let evidence = evidence(&[cgroup("/a", HALF, &[])]);
    let told = told(&events);
    let thread = told.model.by_tid(7).next();
    let proofs = Proofs::new(&told.model, &evidence, &alert, &[], thread);
    let pieces = lt_model::why::path_beside(&told.model, &proofs, thread.unwrap(), 1000, 92_000);
    let shown = crate::analyze::show::Shown {
        model: &told.model,
        thread: thread.unwrap(),
        range: (1000, 92_000),
        pieces: &pieces,
        facts: &proofs.facts(thread, 1000, 92_000),
    };
    let said = shown.verdict().unwrap();
    assert!(
        said.ends_with("had been woken, and waited for CPU 0, which ran hog/8."),
        "{said}"
    );
}

/// Thread 9 thaws thread 7, after other activity.
#[test]
fn a_frozen_thread_does_not_wait_for_the_thread_that_thaws_it() {
    let call = |time, name| at(time, 0, What::Call { name });
    let events = |begin: Event<'static>| {
        [
            switch(0, 0, 0, R, 7),
            begin,
            switch(1_000_000, 0, 7, S, 0),
            switch(2_000_000, 1, 0, R, 9),
            waking(81_000_000, 1, 7),
            switch(81_010_000, 0, 0, R, 7),
            switch(90_000_000, 0, 7, S, 0),
        ]
    };
    let why = |begin, usec: u64| {
        let read = |time: u64, frozen: u64| Counters {
            begin: time,
            end: time,
            frozen_usec: Some(frozen),
            ..Counters::default()
        };
        let frozen = cgroup("/a", "max", &[read(10, 7), read(85_000_000, 7 + usec)]);
        let alert = alert("threshold", (1_000_000, 81_010_000), "");
        verdict(&events(begin), &alert, &evidence(&[frozen]))
    };
    let outside = at(10, 0, What::Return);
    let said = why(outside, 80_020);
    assert!(
        said.ends_with("late/7 waited for the freezer of cgroup /a."),
        "{said}"
    );
    // Frozen for a shorter time, or never, or asleep in a call.
    for (begin, usec) in [(outside, 30_000), (outside, 0), (call(10, b"read"), 80_020)] {
        let said = why(begin, usec);
        assert!(
            said.contains("waited for 9") && !said.contains("freezer"),
            "{said}"
        );
    }
}

/// Without a stack, the cause is named as possible only if a timeout has ended a sleep outside of system calls, and the
/// counter has grown.
#[test]
fn a_counter_offers_memory_high_for_a_timeout_outside_of_system_calls() {
    let slept = |begin, [entry, exit]: [What<'static>; 2]| {
        [
            switch(0, 0, 0, R, 7),
            begin,
            switch(1000, 0, 7, S, 0),
            at(91_000, 0, entry),
            waking(91_001, 0, 7),
            at(91_002, 0, exit),
            switch(92_000, 0, 0, R, 7),
            switch(100_000, 0, 7, S, 0),
        ]
    };
    let read = |time, high| Counters {
        begin: time,
        end: time,
        memory_high: Some(high),
        ..Counters::default()
    };
    let of = |path: &str, high| cgroup(path, "max", &[read(500, 3), read(95_000, high)]);
    let by_stack = |events: &[Event<'_>], cgroups: &[Cgroup], stack| {
        let alert = alert("threshold", (1000, 92_000), stack);
        verdict(events, &alert, &evidence(cgroups))
    };
    let why = |events: &[Event<'_>], cgroups: &[Cgroup]| by_stack(events, cgroups, "");
    let (vector, function) = (1, None);
    let softirq = [What::Softirq { vector }, What::SoftirqEnd { vector }];
    let outside = at(10, 0, What::Return);
    let sleeps = slept(outside, softirq);
    let said = why(&sleeps, &[of("/a/b", 3), of("/a", 4), of("/c", 9)]);
    let expected = "late/7 waited for a timer, perhaps because of memory.high of cgroup /a, whose counter has grown.";
    assert!(said.ends_with(expected), "{said}");
    let said = why(&sleeps, &[of("/a/b", 4), of("/a", 4)]);
    let expected = "memory.high of its cgroup or an ancestor, whose counter has grown.";
    assert!(said.ends_with(expected), "{said}");
    // The counter has not grown, or the thread slept in a call or until its own timer, or its stack shows no such
    // function.
    let grown = [of("/a", 4)];
    let call = at(10, 0, What::Call { name: b"read" });
    let hrtimer = [What::Timer { function }, What::TimerEnd];
    for said in [
        why(&sleeps, &[of("/a", 3)]),
        why(&slept(call, softirq), &grown),
        why(&slept(outside, hrtimer), &grown),
        by_stack(&sleeps, &grown, " stack=schedule_timeout+0x1/0x2"),
    ] {
        assert!(said.ends_with("for a timer."), "{said}");
    }
}

/// The cause of the longest step, for programs.
fn json(events: &[Event<'_>], alert: &Alert, evidence: &Evidence) -> serde_json::Value {
    let told = told(events);
    let json = Why::new(&told, alert, evidence, &[]).json().unwrap();
    serde_json::to_value(json).unwrap()["causes"][0]["cause"].take()
}

#[test]
fn programs_read_the_same_causes() {
    let grown = [counters(500, 3, 10), counters(95_000, 4, 10)];
    let alert_of = |more| alert("threshold", (1000, 92_000), more);
    let quota = json(
        &throttled(),
        &alert_of(""),
        &evidence(&[cgroup("/a", HALF, &grown)]),
    );
    let expected = serde_json::json!({
        "kind": "limited", "known": "inferred", "by": "cpu.max", "name": "/a"
    });
    assert_eq!(quota, expected);
    let open = json(&throttled(), &alert_of(""), &Evidence::default());
    assert_eq!(open["kind"], "preempted");
    let slept = json(&sleeps(11_000), &alert_of(HIGH), &Evidence::default());
    let expected = serde_json::json!({
        "kind": "blocked", "known": "seen", "by": "resource", "name": "memory.high of its cgroup",
        "function": "__mem_cgroup_handle_over_high"
    });
    assert_eq!(slept, expected);
}

/// Thread 8 is not late itself, and thread 7 waits for it.
#[test]
fn the_quota_of_another_thread_is_named_if_the_cgroup_of_this_thread_is_known() {
    let function = Some(PERIOD);
    let events = [
        switch(0, 0, 0, R, 7),
        switch(500, 0, 7, S, 8),
        switch(1000, 0, 8, R, 0),
        at(91_000, 0, What::Timer { function }),
        at(91_500, 0, What::TimerEnd),
        switch(92_000, 0, 0, R, 8),
        waking(93_000, 0, 7),
        switch(93_100, 0, 8, S, 7),
        switch(100_000, 0, 7, S, 0),
    ];
    let grown = [counters(400, 3, 10), counters(95_000, 4, 10)];
    let mut group = cgroup("/c", HALF, &grown);
    let said = |group: &Cgroup| {
        let evidence = evidence(std::slice::from_ref(group));
        verdict(&events, &alert("threshold", (500, 93_100), ""), &evidence)
    };
    let other = said(&group);
    assert!(
        other.contains("perhaps cpu.max, one of whose timers expired at the end"),
        "{other}"
    );
    group.threads = vec![8];
    let held = said(&group);
    assert!(
        held.contains("late/7 waited for hog/8, which was held back by cpu.max of cgroup /c."),
        "{held}"
    );
}
