// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The text of reports about known events.

use std::sync::atomic::AtomicBool;

use clap::Parser;
use lt_model::{
    Access, Builder, CallFile, Disk, Event, FileEvent, FilePath, Sleep, Stage, SwitchedOut, What,
    why,
};
use proptest::prelude::*;

use super::super::args::{AnalyzeCommand, DelaysArgs};
use super::super::made::{R, S, at, chain, completed, model, request, switch, timer, waking};
use super::super::picture::pftrace::Pftrace;
use super::super::picture::tests::events;
use super::threads::{COLUMNS, Threads};
use super::*;
use crate::cli::{Cli, Command};

fn args(more: &[&str]) -> DelaysArgs {
    parsed(&[&["--tid", "7"], more].concat())
}

fn parsed(options: &[&str]) -> DelaysArgs {
    let all = [&["lt", "analyze", "delays", "trace"], options].concat();
    let Command::Analyze(args) = Cli::try_parse_from(all).unwrap().command else {
        panic!()
    };
    match args.command {
        AnalyzeCommand::Delays(args) => args,
        _ => panic!(),
    }
}

/// Calls `see` with the report on a thread in that time.
fn report<T>(
    model: &Model,
    thread: ThreadId,
    range: (u64, u64),
    see: impl FnOnce(&Report<'_>) -> T,
) -> T {
    let segments = why::delays(model, thread, range.0, range.1);
    see(&Report {
        model,
        thread,
        range,
        segments: &segments,
        facts: Facts::NONE,
    })
}

/// The report on thread 7 up to `to`.
fn lines(events: &[Event<'_>], to: u64, more: &[&str]) -> Vec<String> {
    let model = model(events);
    let thread = model.by_tid(7).next().unwrap();
    report(&model, thread, (0, to), |report| report.lines(&args(more)))
}

/// The lines below this heading.
fn below(lines: &[String], heading: &str) -> Vec<String> {
    let place = lines
        .iter()
        .position(|line| line.starts_with(heading))
        .unwrap();
    let rest = lines[place + 1..].iter();
    rest.take_while(|line| !line.is_empty()).cloned().collect()
}

/// Thread 7 waits for thread 8, which waited for a timer; then for thread 9, which works; then again for thread 8.
fn waits() -> Vec<Event<'static>> {
    let mut events = vec![
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(0, 2, 0, R, 9),
    ];
    let by_8 = |begin: u64, events: &mut Vec<Event<'static>>| {
        events.push(at(begin, 0, What::Call { name: b"read" }));
        events.push(switch(begin, 0, 7, S, 0));
        events.push(switch(begin + 10, 1, 8, S, 0));
        let [expires, ends] = timer(begin + 90, 1, 0);
        events.extend([expires, waking(begin + 90, 1, 8), ends]);
        events.push(switch(begin + 100, 1, 0, R, 8));
        events.push(waking(begin + 110, 1, 7));
        events.push(switch(begin + 120, 0, 0, R, 7));
        events.push(at(begin + 120, 0, What::Return));
    };
    by_8(100, &mut events);
    events.extend([
        switch(300, 0, 7, S, 0),
        waking(380, 2, 7),
        switch(390, 0, 0, R, 7),
    ]);
    by_8(500, &mut events);
    events.push(switch(700, 0, 7, S, 0));
    events
}

#[test]
fn a_chain_that_was_shown_is_referred_to() {
    let lines = lines(&waits(), 700, &[]);
    assert_eq!(lines[0], "late/7 from 0 to 700: 700ns");
    assert_eq!(
        below(&lines, "Waits and what ended them"),
        [
            "NR  FROM   TO   TOOK  WAIT",
            " 1   100  210  110ns  in read: woken by hog/8 while working",
            " 2   110  190   80ns    hog/8 in no recorded system call: a timer",
            " 3   300  380   80ns  in no recorded system call: woken by 9 while working",
            "                        9 meanwhile: working 80ns (in no recorded system call",
            "                        80ns)",
            " 4   500  610  110ns  in read: woken by hog/8 while working; the waits below",
            "                      are those of row 1",
        ]
    );
}

#[test]
fn all_waits_are_shown_on_request_and_waits_too_deep_or_too_short_are_not() {
    let of = |more: &[&str]| below(&lines(&waits(), 700, more), "Waits and what ended them");
    assert_eq!(
        of(&["--all"])
            .iter()
            .filter(|line| line.contains("a timer"))
            .count(),
        2
    );
    let flat = of(&["--depth", "0"]);
    assert!(
        flat.iter()
            .any(|line| line.trim() == "1 wait at lower levels; a larger --depth shows them"),
        "{flat:?}"
    );
    assert!(
        !flat.iter().any(|line| line.contains("a timer")),
        "{flat:?}"
    );
    // The activity of thread 8 is then a summary.
    assert!(
        flat[2].contains("hog/8 meanwhile: blocked 80ns (in no recorded"),
        "{flat:?}"
    );
    // The waits for thread 8 are consecutive among the shown waits.
    let long = of(&["--min", "100"]);
    assert!(
        long[1]
            .ends_with(" 100  610  220ns  in read: woken by hog/8 while working; 2 times, up to"),
        "{long:?}"
    );
    let short: Vec<_> = long
        .iter()
        .filter(|line| line.trim() == "and 1 shorter wait, 80ns in total")
        .collect();
    assert_eq!(short.len(), 2, "{long:?}");
}

#[test]
fn waits_for_one_reason_are_one_row() {
    let mut events = vec![switch(0, 0, 0, R, 7), switch(0, 1, 0, R, 8)];
    for (place, took) in (0..).zip([40, 60, 50]) {
        let begin = 100 * (place + 1);
        events.push(switch(begin, 0, 7, S, 0));
        events.push(waking(begin + took, 1, 7));
        events.push(switch(begin + took, 0, 0, R, 7));
    }
    events.push(switch(500, 0, 7, S, 0));
    assert_eq!(
        below(&lines(&events, 500, &[]), "Waits and what ended them"),
        [
            "NR  FROM   TO   TOOK  WAIT",
            " 1   100  350  150ns  in no recorded system call: woken by hog/8 while working;",
            "                      3 times, up to 60ns",
            "                        hog/8 during the longest: working 60ns (in no recorded",
            "                        system call 60ns)",
        ]
    );
}

/// The rows of the waits of thread 7 up to `to`, as one text.
fn text_of_waits(events: &[Event<'_>], to: u64, more: &[&str]) -> String {
    let waits = below(&lines(events, to, more), "Waits and what ended them");
    let words: Vec<_> = waits.iter().flat_map(|l| l.split_whitespace()).collect();
    words.join(" ")
}

#[test]
fn a_row_of_several_waits_has_the_state_of_the_waker_only_if_it_is_the_same() {
    let mut events = vec![switch(0, 0, 0, R, 7), switch(0, 1, 0, R, 8)];
    let names: [&'static [u8]; 3] = [b"write", b"write", b"read"];
    for (begin, name) in [100, 200, 300].into_iter().zip(names) {
        events.push(switch(begin, 0, 7, S, 0));
        events.push(at(begin + 10, 1, What::Call { name }));
        events.push(waking(begin + 50, 1, 7));
        events.push(switch(begin + 50, 0, 0, R, 7));
        events.push(at(begin + 60, 1, What::Return));
    }
    events.push(switch(400, 0, 7, S, 0));
    let same = text_of_waits(&events, 290, &[]);
    let expected = "100 250 100ns in no recorded system call: woken by hog/8 while working in write; 2 times, up to 50ns";
    assert!(same.contains(expected), "{same}");
    let different = text_of_waits(&events, 400, &[]);
    let expected = "100 350 150ns in no recorded system call: woken by hog/8 while working; 3 times, up to 50ns";
    assert!(different.contains(expected), "{different}");
    let each = text_of_waits(&events, 400, &["--all"]);
    assert_eq!(each.matches("while working in write").count(), 2, "{each}");
    assert_eq!(each.matches("while working in read").count(), 1, "{each}");
}

/// Events are lost while thread 7 sleeps.
#[test]
fn a_wait_that_is_open_is_not_summed_up_with_one_whose_end_is_not_recorded() {
    let events = [
        switch(0, 0, 0, R, 7),
        switch(100, 0, 7, S, 0),
        at(150, 1, What::Lost { until: 200 }),
        switch(900, 0, 0, R, 9),
    ];
    let text = text_of_waits(&events, 900, &[]);
    for expected in [
        "100 150 50ns in no recorded system call: the waker is not recorded",
        "200 900 700ns in no recorded system call: not woken before the trace ends",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(!text.contains("times"), "{text}");
}

#[test]
fn a_signal_has_not_continued_a_thread_that_is_still_stopped() {
    let stopped = SwitchedOut::Blocked(Sleep::Stopped);
    let mut events = vec![
        switch(0, 0, 0, R, 7),
        switch(100, 0, 7, stopped, 0),
        switch(200, 0, 0, R, 9),
    ];
    let signal = "SIGCONT (a signal had stopped it)";
    let open = format!("{signal}; not woken before the trace ends");
    let text = text_of_waits(&events, 200, &[]);
    assert!(text.contains(&open), "{text}");
    let model = model(&events);
    let rows = Threads::new(&model, (0, 200)).csv();
    assert!(rows.iter().any(|row| row.contains(&open)), "{rows:?}");
    events.extend([waking(300, 0, 7), switch(310, 0, 9, S, 7)]);
    let text = text_of_waits(&events, 310, &[]);
    assert!(
        text.contains(signal) && !text.contains("not woken"),
        "{text}"
    );
}

#[test]
fn the_states_are_a_tree_with_the_longest_stays() {
    let lines = lines(&waits(), 700, &["--top", "1"]);
    assert_eq!(
        lines[2..9],
        [
            "NR   TIME      %  COUNT  LONGEST  STATE",
            " 0  700ns  100.0     10    110ns  all",
            " 1  370ns   52.9      4    110ns    working",
            " 2  370ns   52.9      4    110ns      in no recorded system call",
            " 3  300ns   42.9      3    110ns    blocked",
            " 4  220ns   31.4      2    110ns      in read",
            " 5  220ns   31.4      2    110ns        woken by hog/8",
        ]
    );
    let longest = below(&lines, "Longest stays");
    assert_eq!(longest[0], "NR  FROM   TO   TOOK  STATE");
    assert!(
        longest.contains(&" 5   100  210  110ns  woken by hog/8".to_string()),
        "{longest:?}"
    );
}

#[test]
fn rare_states_are_summed_up_unless_all_are_requested() {
    let names: [&'static [u8]; 20] = [
        b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"j", b"k", b"l", b"m", b"n", b"o",
        b"p", b"q", b"r", b"s", b"t",
    ];
    let mut events = vec![switch(0, 0, 0, R, 7)];
    for (place, name) in (1..).zip(names) {
        events.push(at(100 * place, 0, What::Call { name }));
        events.push(at(100 * place + 50, 0, What::Return));
    }
    events.push(switch(3000, 0, 7, S, 0));
    let of = |more: &[&str]| lines(&events, 3000, more)[2..].to_vec();
    let few = of(&["--top", "0"]);
    let rare = few
        .iter()
        .find(|line| line.contains("more; --all"))
        .unwrap();
    assert_eq!(
        rare.trim(),
        "450ns   15.0      9     50ns      9 more; --all shows them"
    );
    assert_eq!(
        few.iter().filter(|line| line.contains("    in ")).count(),
        12
    );
    let all = of(&["--all"]);
    let states = all.split(|line| line.is_empty()).next().unwrap();
    assert_eq!(
        states
            .iter()
            .filter(|line| line.contains("    in "))
            .count(),
        21
    );
    // All 41 stays are in one state, and each is in one of the states below.
    let stays = below(&all, "All stays in each state, the longest first");
    assert_eq!(stays.len(), 1 + 41 + 41, "{stays:?}");
}

#[test]
fn all_cannot_be_combined_with_the_limits_that_it_lifts() {
    let all = ["lt", "analyze", "delays", "trace", "--tid", "7", "--all"];
    for limit in [["--top", "10"], ["--min", "1ms"]] {
        let error = Cli::try_parse_from([&all[..], &limit].concat()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("cannot be used with"), "{error}");
    }
}

#[test]
fn a_waker_has_its_state_at_the_wakeup() {
    let all = [
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(100, 0, 7, S, 0),
        at(150, 1, What::Call { name: b"write" }),
        waking(180, 1, 7),
        switch(190, 0, 0, R, 7),
        at(200, 1, What::Return),
        switch(300, 0, 7, S, 0),
        at(350, 1, What::Softirq { vector: 9 }),
        waking(360, 1, 7),
        at(370, 1, What::SoftirqEnd { vector: 9 }),
        switch(380, 0, 0, R, 7),
        switch(400, 0, 7, S, 0),
    ];
    let waits = below(&lines(&all, 400, &[]), "Waits and what ended them");
    let text = waits.join(" ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(
            "100 180 80ns in no recorded system call: woken by hog/8 while working in write"
        ),
        "{text}"
    );
    // The softirq is not the work of the thread that it interrupted.
    assert!(
        text.contains("300 360 60ns in no recorded system call: softirq RCU"),
        "{text}"
    );
    assert_eq!(text.matches("while working").count(), 1, "{text}");
}

#[test]
fn the_summary_of_the_last_thread_counts_the_states_that_it_leaves_out() {
    let names: [&'static [u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];
    let mut events = vec![
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(100, 0, 7, S, 0),
    ];
    for (place, name) in (1..).zip(names) {
        // The first calls take the longest.
        events.push(at(100 * place, 1, What::Call { name }));
        events.push(at(100 * place + 90 - 10 * place, 1, What::Return));
    }
    events.extend([waking(600, 1, 7), switch(610, 0, 0, R, 7)]);
    events.push(switch(700, 0, 7, S, 0));
    let text = lines(&events, 700, &[]).join(" ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = "hog/8 meanwhile: working 500ns (in no recorded system call 200ns, in a 80ns, in b 70ns, and 3 more 150ns)";
    assert!(text.contains(summary), "{text}");
}

#[test]
fn stacks_have_the_state_and_the_chain_behind_it() {
    let model = model(&waits());
    let thread = model.by_tid(7).next().unwrap();
    let stacks = report(&model, thread, (0, 700), |report| report.folded());
    assert_eq!(
        stacks,
        [
            "late/7;blocked;in no recorded system call;woken by 9;runs 80",
            "late/7;blocked;in read;woken by hog/8;runs 40",
            "late/7;blocked;in read;woken by hog/8;waits for a timer 160",
            "late/7;blocked;in read;woken by hog/8;woken, waits for a CPU 20",
            "late/7;interrupted;woken, waiting for a CPU 30",
            "late/7;working;in no recorded system call 370",
        ]
    );
}

#[test]
fn a_picture_has_the_states_and_the_chains_of_the_waits() {
    let model = model(&waits());
    let thread = model.by_tid(7).next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("7.pftrace");
    let stays: Vec<_> = report(&model, thread, (0, 700), |report| {
        let interrupted = AtomicBool::new(false);
        report.draw_picture(&file, &interrupted).unwrap();
        let states = report.segments[0].states.iter();
        states.map(|stay| (stay.begin, stay.end)).collect()
    });
    let drawn = Pftrace::read(&std::fs::read(&file).unwrap());
    let states = drawn.on(drawn.track("States of late/7").unwrap());
    let times: Vec<_> = states.iter().map(|s| (s.begin, s.end)).collect();
    assert_eq!(times, stays);
    assert_eq!(states[1].name, "blocked: in read: woken by hog/8");
    let path = drawn.on(drawn.track("Critical path of late/7").unwrap());
    let inner = path.iter().filter(|slice| slice.depth == 1);
    let inner: Vec<_> = inner.map(|s| (s.begin, s.end, s.name.as_str())).collect();
    for slice in [(110, 190, "hog/8 waits for a timer"), (300, 380, "9 runs")] {
        assert!(inner.contains(&slice), "{inner:?}");
    }
}

/// In fsync, thread 7 waits with a request of its own, until a request of thread 9 ends and frees a tag.
#[test]
fn a_wait_for_a_request_has_its_call_and_its_place() {
    const DISK: Disk = Disk(253 << 20);
    const D: SwitchedOut = SwitchedOut::Blocked(Sleep::Uninterruptible);
    let events = [
        switch(0, 0, 0, R, 7),
        at(4, 0, What::Call { name: b"fsync" }),
        request(5, Stage::Queued, DISK, 128),
        switch(10, 0, 7, D, 0),
        switch(59, 0, 0, R, 9),
        request(60, Stage::Queued, DISK, 64),
        request(61, Stage::Allocated, DISK, 64),
        request(62, Stage::Issued, DISK, 64),
        switch(63, 0, 9, D, 0),
        at(99, 0, What::Timer { function: None }),
        completed(99, DISK, Some((64, 8))),
        waking(100, 0, 7),
        at(101, 0, What::TimerEnd),
        switch(102, 0, 0, R, 7),
        request(103, Stage::Allocated, DISK, 128),
        switch(110, 0, 7, D, 0),
    ];
    let model = model(&events);
    let thread = model.by_tid(7).next().unwrap();
    let stacks = report(&model, thread, (0, 110), |report| report.folded());
    let place = "a request held back before disk 253:0: no free request";
    let why = "the reason is a lack of tags, writeback throttling, io.cost or io.latency";
    let stack = format!("late/7;blocked;in fsync;{place}, {why} 90");
    assert!(stacks.contains(&stack), "{stacks:?}");
    // The line is wrapped.
    let text = lines(&events, 110, &[]).join(" ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wait = format!("in fsync: {place}; {why}");
    assert!(text.contains(&wait), "{text}");
    assert!(!text.contains("the waker is not recorded"), "{text}");
}

#[test]
fn without_a_thread_all_threads_are_listed_with_their_longest_waits() {
    let model = model(&waits());
    let threads = Threads::new(&model, (0, 700));
    let lines = |options: &[&str]| out::whole(|| threads.lines(&parsed(options)));
    let all = lines(&[]);
    assert_eq!(
        all[..12],
        [
            "3 threads from 0 to 700: 700ns",
            "",
            "Longest wait of each thread",
            "NR   TOOK  FROM  THREAD AND WAIT",
            " 1  110ns   100  late/7 in read: woken by hog/8",
            " 2   80ns   110  hog/8 in no recorded system call: a timer",
            " 3      -     -  9: no wait is recorded",
            "",
            "Time of these threads by state",
            "NR  ELAPSED     WORKING  INTERRUPTED     BLOCKED  NOT RECORDED  THREAD",
            " 1    700ns  370ns  52%    30ns   4%  300ns  42%      0ns   0%  late/7",
            " 2    700ns  520ns  74%    20ns   2%  160ns  22%      0ns   0%  hog/8",
        ]
    );
    let last = all.last().unwrap();
    assert!(
        last.starts_with("next: latency-tracker analyze delays /")
            && last.ends_with("/trace --tid 7 --from 0 --to 700"),
        "{last}"
    );
    for (options, expected) in [
        (
            &["--top", "1"][..],
            "Not shown: 2 more threads, whose longest waits are up to 80ns; --all shows all",
        ),
        (
            &["--min", "80"],
            "Not shown: 1 more thread, without a recorded wait; --all shows all threads.",
        ),
    ] {
        let lines = lines(options);
        assert!(lines.iter().any(|line| line == expected), "{lines:?}");
    }
}

/// Thread 8 has the CPU while thread 7 is runnable; thread 9 has no event of its own.
#[test]
fn a_wait_for_a_cpu_is_listed_with_its_cpu() {
    let (tid, name) = (9, b"there" as &[u8]);
    let model = model(&[
        switch(0, 0, 0, R, 7),
        at(1, 0, What::There { tid, name }),
        switch(10, 0, 7, R, 8),
        switch(90, 0, 8, S, 7),
        switch(100, 0, 7, S, 0),
    ]);
    let threads = Threads::new(&model, (0, 100));
    let lines = out::whole(|| threads.lines(&parsed(&[])));
    assert_eq!(
        lines[4],
        " 1  80ns    10  late/7 runnable, waits for CPU 0 (hog/8 for 80ns)"
    );
    let silent = "1 thread without any recorded activity in this range may have waited all the";
    assert!(lines.iter().any(|line| line == silent), "{lines:?}");
    let rows = threads.csv();
    assert_eq!(
        rows[0],
        "7,late,0,100,100,20,80,0,0,10,90,80,interrupted,seen,\
         \"runnable, waits for CPU 0 (hog/8 for 80ns)\",,0"
    );
    assert_eq!(rows[2].split(',').count(), COLUMNS.split(',').count());
    let json = serde_json::to_value(threads.json()).unwrap();
    let row = &json["threads"][0];
    assert_eq!(row["to"], 100);
    assert_eq!(row["sums"]["interrupted"], 80);
    assert_eq!(row["longest"]["states"][0]["cause"]["kind"], "preempted");
    assert_eq!(json["threads"][2]["longest"], serde_json::Value::Null);
}

/// Thread 7 waits from 100 to 210, and has run again by 300.
#[test]
fn each_interval_has_the_part_of_a_wait_that_is_in_it() {
    let model = model(&waits());
    let rows = |part| Threads::new(&model, part).csv();
    let of_7 = |rows: &[String]| rows.iter().find(|row| row.starts_with("7,")).cloned();
    let parts = range::intervals(&model, (0, 700), Some(Nanos(150))).unwrap();
    assert_eq!(
        parts,
        [(0, 150), (150, 300), (300, 450), (450, 600), (600, 700)]
    );
    let first = of_7(&rows(parts[0])).unwrap();
    assert!(
        first.starts_with("7,late,0,150,150,100,0,50,0,100,150,50,blocked,"),
        "{first}"
    );
    assert!(first.ends_with(",0"), "{first}");
    let second = of_7(&rows(parts[1])).unwrap();
    assert!(
        second.starts_with("7,late,150,300,150,80,10,60,0,150,210,60,blocked,"),
        "{second}"
    );
    assert!(second.ends_with(",150"), "{second}");
}

#[test]
fn intervals_begin_with_the_range_and_are_in_the_trace() {
    let of = |model: &Model, asked, length| range::intervals(model, asked, Some(Nanos(length)));
    let late = model(&chain(1000));
    let whole = range::intervals(&late, (0, 9999), None);
    assert_eq!(whole.unwrap(), [(0, 9999)]);
    assert_eq!(of(&late, (0, 1020), 300).unwrap(), [(900, 1020)]);
    assert_eq!(
        of(&late, (1001, 9999), 10).unwrap(),
        [(1001, 1011), (1011, 1021)]
    );
    let long = model(&[switch(0, 0, 0, R, 7), switch(20_000, 0, 7, S, 0)]);
    assert_eq!(of(&long, (0, 20_000), 2).unwrap().len(), 10_000);
    let error = of(&long, (0, 20_000), 1).unwrap_err().to_string();
    let expected = "--interval 1ns: more than 10,000 intervals; choose a longer one";
    assert_eq!(error, expected);
}

#[test]
fn intervals_are_only_for_the_report_on_all_threads() {
    let command = ["lt", "analyze", "delays", "trace", "-i"];
    assert_eq!(parsed(&["-i", "100ms"]).interval, Some(Nanos(100_000_000)));
    let error = |options: &[&str]| {
        let all = [&command[..], options].concat();
        Cli::try_parse_from(all).unwrap_err().to_string()
    };
    assert!(error(&["0"]).contains("expected a duration greater than 0"));
    for option in [
        &["--tid", "7"][..],
        &["--event", "sched_switch"],
        &["--depth", "1"],
        &["--folded"],
        &["--perfetto", "a"],
        &["--html", "a"],
        &["--svg", "a"],
        &["--max-memory", "1G"],
        &["--parquet", "a"],
    ] {
        let error = error(&[&["1s"], option].concat());
        assert!(
            error.contains("cannot be used with") && error.contains("--interval <TIME>"),
            "{option:?}: {error}"
        );
    }
}

/// In `read`, a thread waits for an interrupt.
fn reads(builder: &mut Builder, tid: i32, begin: u64, fd: i32) {
    let disk = What::Irq {
        number: 24,
        name: b"disk",
    };
    let (call, access) = (&b"read"[..], Access::On(fd));
    builder.feed(&at(begin, 0, What::Call { name: b"read" }));
    builder.feed_file(begin, 0, &FileEvent::Call { call, access });
    for event in [
        switch(begin, 0, tid, S, 0),
        at(begin + 50, 0, disk),
        waking(begin + 50, 0, tid),
        at(begin + 51, 0, What::IrqEnd { number: 24 }),
        switch(begin + 60, 0, 0, R, tid),
        at(begin + 60, 0, What::Return),
    ] {
        builder.feed(&event);
    }
    let (call, result) = (Some(call), Some(1));
    builder.feed_file(begin + 60, 0, &FileEvent::Return { call, result });
}

#[test]
fn a_call_has_its_file_or_else_its_descriptor() {
    let mut builder = Builder::new();
    builder.has_all_calls();
    builder.feed(&switch(0, 0, 0, R, 7));
    let access = Access::Open {
        path: FilePath {
            text: b"/a",
            directory: None,
        },
        closes: None,
    };
    let (call, result) = (&b"openat"[..], Some(3));
    builder.feed_file(10, 0, &FileEvent::Call { call, access });
    let call = Some(call);
    builder.feed_file(11, 0, &FileEvent::Return { call, result });
    reads(&mut builder, 7, 100, 3);
    reads(&mut builder, 7, 200, 9);
    builder.feed(&switch(300, 0, 7, S, 0));
    let model = builder.finish();
    let thread = model.by_tid(7).next().unwrap();
    report(&model, thread, (0, 300), |report| {
        let stacks = report.folded();
        for expected in [
            "late/7;blocked;in read;/a;disk (interrupt 24) 50",
            "late/7;blocked;in read;descriptor 9;disk (interrupt 24) 50",
        ] {
            assert!(stacks.iter().any(|line| line == expected), "{stacks:?}");
        }
        let lines = report.lines(&args(&[]));
        for expected in [
            "in read of /a: disk (interrupt 24)",
            "in read of descriptor 9: disk (interrupt 24)",
        ] {
            assert!(lines.iter().any(|l| l.ends_with(expected)), "{lines:?}");
        }
        let json = serde_json::to_value(report.json()).unwrap();
        let waits = &json["segments"][0]["waits"];
        assert_eq!(waits[0]["file"], "/a");
        assert_eq!(waits[0]["descriptor"], serde_json::Value::Null);
        assert_eq!(waits[1]["file"], serde_json::Value::Null);
        assert_eq!(waits[1]["descriptor"], 9);
    });
    let pieces = why::path(&model, thread, 100, 150);
    let shown = Shown {
        model: &model,
        thread,
        range: (100, 150),
        pieces: &pieces,
        facts: &Facts::NONE,
    };
    let verdict = shown.verdict().unwrap();
    let expected = ": late/7 waited in read of /a for disk (interrupt 24).";
    assert!(verdict.ends_with(expected), "{verdict}");
}

/// Two threads with one number of a descriptor may have two files.
#[test]
fn only_one_thread_has_a_descriptor() {
    let mut builder = Builder::new();
    builder.has_all_calls();
    builder.feed(&switch(0, 0, 0, R, 7));
    reads(&mut builder, 7, 100, 9);
    reads(&mut builder, 7, 200, 9);
    builder.feed(&switch(290, 0, 7, S, 8));
    reads(&mut builder, 8, 300, 9);
    builder.feed(&switch(400, 0, 8, S, 0));
    let model = builder.finish();
    let piece = |tid: i32, begin: u64| {
        let thread = model.by_tid(tid).next().unwrap();
        why::path(&model, thread, begin, begin + 50)[0]
    };
    let pieces = [piece(7, 100), piece(7, 200), piece(8, 300)];
    let shown = Shown {
        model: &model,
        thread: pieces[0].thread,
        range: (0, 400),
        pieces: &pieces,
        facts: &Facts::NONE,
    };
    let file = |pieces: &[Piece]| shown.file_of(pieces.iter());
    let descriptor = Some(CallFile::Descriptor(9));
    assert_eq!(file(&pieces[..2]), descriptor);
    assert_eq!(file(&pieces[2..]), descriptor);
    assert_eq!(file(&pieces), None);
}

#[test]
fn columns_have_all_states_and_waits() {
    let model = model(&waits());
    let thread = model.by_tid(7).next().unwrap();
    let lines = report(&model, thread, (0, 700), |report| report.csv());
    assert_eq!(
        lines[0],
        "kind,begin_ns,end_ns,duration_ns,depth,tid,comm,cpu,class,known,text,woken_by"
    );
    let is = |line: &&String| line.starts_with("wait,");
    let waits: Vec<_> = lines.iter().filter(is).collect();
    assert_eq!(
        waits[0],
        "wait,100,210,110,0,7,late,,blocked,seen,in read: woken by hog/8 while working,hog/8"
    );
    // A timer ended the sleep of the waker.
    assert!(
        waits[1].contains(",1,8,hog,") && waits[1].ends_with(','),
        "{}",
        waits[1]
    );
    assert_eq!(waits.len(), 5);
    assert_eq!(
        lines[1],
        "state,0,100,100,0,7,late,,working,seen,working: in no recorded system call,"
    );
}

proptest! {
    #[test]
    fn stacks_add_up_to_the_range(events in events()) {
        let model = model(&events);
        for (id, thread) in (0..).map(ThreadId).zip(&model.threads) {
            let Some((_, to)) = thread.span() else {
                continue;
            };
            // Before the thread is created, its ancestors are analyzed.
            let range = (model.span.0, to);
            if range.0 >= range.1 {
                continue;
            }
            let (stacks, rows) = report(&model, id, range, |report| {
                let count = |segment: &why::Segment| segment.states.len() + segment.waits.len();
                let rows: usize = report.segments.iter().map(count).sum();
                (report.folded(), (rows, report.csv().len()))
            });
            let time = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
            prop_assert_eq!(stacks.iter().map(time).sum::<u64>(), range.1 - range.0);
            prop_assert_eq!(rows.0 + 1, rows.1);
        }
    }
}
