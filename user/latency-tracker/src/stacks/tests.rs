// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sums of recorded alerts.

use lt_proc::{Alert, Labels, Pending, UserFrame, UserNames};

use super::args::By;
use super::source::Source;
use super::tally::{Group, Sums, Tally};
use super::{machine, report};

const SLEEP: &str = "hrtimer_nanosleep+0xc2/0x140,common_nsleep_timens+0x41/0xa0,__x64_sys_clock_nanosleep+0xed/0x170,\
    do_syscall_64+0xe1/0x650,entry_SYSCALL_64_after_hwframe+0x76/0x7e";
const READ: &str = "anon_pipe_read+0x34c/0x460,vfs_read+0x3e5/0x490,ksys_read+0xcf/0x110,do_syscall_64+0xe1/0x650,\
    entry_SYSCALL_64_after_hwframe+0x76/0x7e";
const WRITE: &str = "try_to_wake_up+0x1/0x2,anon_pipe_write+0x3/0x4,vfs_write+0x5/0x6,ksys_write+0x7/0x8,\
    do_syscall_64+0xe1/0x650,entry_SYSCALL_64_after_hwframe+0x76/0x7e";
const MS: u64 = 1_000_000;

fn alert(seq: u64, time: u64, reason: &str, delay: u64, tid: u64, rest: &str) -> Alert {
    let line = format!(
        "seq={seq} time={} instance=p tracker=offcpu reason={reason} delay={} threshold=10000000 cpu=1 pid={tid} tid={tid} \
         comm=\"p{tid}\" {rest}",
        time * MS,
        delay * MS
    );
    Alert::parse(&line).unwrap()
}

fn sums_by(by: By, alerts: &[Alert], depth: Option<usize>, pending: &str) -> Sums {
    let mut tally = Tally::new(by);
    alerts.iter().for_each(|alert| tally.see(alert));
    let pending = Pending::parse_all(pending).unwrap();
    tally.finish(depth, &pending, 10 * MS)
}

fn sums(alerts: &[Alert]) -> Sums {
    sums_by(By::Kernel, alerts, Some(16), "")
}

fn rows(groups: &[Group]) -> Vec<(u64, u64, u64, String)> {
    let row = |group: &Group| {
        let first = group.stack.first().cloned().unwrap_or_default();
        let sum = group.sum;
        (sum.count, sum.total / MS, sum.longest / MS, first)
    };
    groups.iter().map(row).collect()
}

fn plain(lines: &[String]) -> String {
    let all = lines.join("\n") + "\n";
    anstream::adapter::strip_str(&all).to_string()
}

/// Five sleeps of one thread, each of 60 ms, and three reads of another thread from a pipe, each of 200 ms.
fn two_reasons() -> Vec<Alert> {
    let mut all = Vec::new();
    for i in 0..5 {
        let stack = format!("state=S context=hardirq waker_comm=\"x\" stack=\"{SLEEP}\"");
        all.push(alert(i + 1, 100 + 61 * i, "threshold", 60, 7, &stack));
    }
    for i in 0..3 {
        let other = READ.replace("0x34c", &format!("0x34{i}"));
        let stack = format!(
            "state=S context=task waker_comm=\"w;1\" waker_stack=\"{WRITE}\" stack=\"{other}\""
        );
        all.push(alert(i + 6, 900 + 201 * i, "threshold", 200, 8, &stack));
    }
    all
}

#[test]
fn two_reasons_are_told_apart_the_longer_total_first() {
    let sums = sums(&two_reasons());
    assert_eq!(
        rows(&sums.groups),
        [
            (3, 600, 200, "anon_pipe_read".into()),
            (5, 300, 60, "hrtimer_nanosleep+0xc2/0x140".into())
        ],
        "an offset that differs is left out"
    );
    assert_eq!(sums.groups[0].stack[1], "vfs_read+0x3e5/0x490");
    assert!(sums.groups.iter().all(|group| !group.is_cut));
    let source = Source {
        name: Some("p".into()),
        tracker: Some("offcpu".into()),
        ..Source::default()
    };
    let text = plain(&report::text(&source, &sums, 1));
    for words in [
        "p (offcpu): 8 late operations in 2 stacks, 900.0ms in all",
        "Only delays above the threshold (10ms) are in here.",
        "    3  600.0ms  66.6  200.0ms  p8\n    anon_pipe_read\n    vfs_read+0x3e5/0x490\n",
        "and 1 stack more, 33 % of the total (300.0ms) together: --rows 0 shows all",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("Lost, incomplete"), "{text}");
    let folded = machine::folded(&sums);
    assert_eq!(
        folded,
        [
            "p8;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;anon_pipe_read 600000",
            "p7;entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_clock_nanosleep;common_nsleep_timens;\
             hrtimer_nanosleep 300000"
        ]
    );
}

#[test]
fn a_waker_is_a_task_or_an_interrupt() {
    let all = two_reasons();
    let by_waker = machine::folded(&sums_by(By::Waker, &all, Some(16), ""));
    let write = "entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_write;vfs_write;anon_pipe_write;try_to_wake_up";
    assert_eq!(
        by_waker,
        [
            format!("w:1;{write} 600000"),
            "[hardirq];[no stack] 300000".into()
        ]
    );
    let both = sums_by(By::Both, &all, Some(16), "");
    let lines = machine::folded(&both);
    assert!(
        lines[0].contains(";anon_pipe_read;--;try_to_wake_up;anon_pipe_write;"),
        "{lines:?}"
    );
    assert!(lines[0].ends_with(";w:1 600000"), "{lines:?}");
    assert!(
        !lines[1].contains("--") && !lines.concat().contains(";x"),
        "{lines:?}"
    );
    let text = plain(&report::text(&Source::default(), &both, 0));
    assert!(
        text.contains("  woken from:\n    try_to_wake_up+0x1/0x2\n"),
        "{text}"
    );
}

/// A late read, whose functions in user space have these names, and are called from this offset.
fn read_by(names: &[&str], offset: u64, seq: u64, end: &str) -> Alert {
    let addresses: Vec<String> = (1..=names.len()).map(|n| format!("{n:#x}")).collect();
    let addresses = addresses.join(",");
    let rest = format!("stack=\"{READ}\" ustack={addresses} ustack_end={end}");
    let mut alert = alert(seq, 100 * seq, "threshold", 20, 7, &rest);
    let frame = |name: &&str| UserFrame {
        address: format!("{seq:#x}"),
        name: Some((*name).to_string()),
        offset: Some(offset),
        file: Some("/bin/x".into()),
        file_offset: Some(0x1000 + offset),
    };
    let frames = names.iter().map(frame).collect();
    alert.ustack_names = Some(UserNames { frames, note: None });
    alert
}

#[test]
fn functions_of_a_program_follow_the_functions_of_the_kernel() {
    let read = |user: &str| format!("stack=\"{READ}\" {user}");
    let addresses = "ustack=0x10,0x20 ustack_end=outermost";
    let all = [
        read_by(&["inner", "main"], 3, 1, "outermost"),
        read_by(&["inner", "main"], 5, 2, "outermost"),
        read_by(&["inner", "operator new; x", "other"], 3, 3, "broken"),
        alert(4, 400, "threshold", 10, 8, &read("ustack=kernel")),
        // No names were looked up.
        alert(5, 500, "threshold", 5, 8, &read(addresses)),
        // Only the end of an operation that has timed out has the stack.
        alert(6, 650, "timeout", 2, 9, &read("ustack=elsewhere")),
        alert(7, 651, "late", 3, 9, addresses),
        alert(8, 700, "timeout", 1, 9, &read("ustack=elsewhere")),
        alert(9, 800, "threshold", 100, 7, "ustack=hidden"),
    ];
    let sums = sums(&all);
    let kernel = "entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;anon_pipe_read";
    assert_eq!(
        machine::folded(&sums),
        [
            format!("p7;main;inner;{kernel} 40000"),
            format!("p7;[cut off];other;operator new: x;inner;{kernel} 20000"),
            format!("p8;[no user stack];{kernel} 10000"),
            format!("p8;0x20;0x10;{kernel} 5000"),
            format!("p9;0x20;0x10;{kernel} 3000"),
            format!("p9;[no user stack];{kernel} 1000"),
            "p7;[no user stack];[no stack] 100000".into(),
        ]
    );
    let source = Source::default();
    let text = plain(&report::text(&source, &sums, 0));
    for words in [
        "8 late operations in 5 stacks",
        "\n    entry_SYSCALL_64_after_hwframe+0x76/0x7e\n  in user space:\n    inner [/bin/x]\n    main [/bin/x]\n",
        "\n    inner+0x3 [/bin/x]\n    operator new; x+0x3 [/bin/x]\n    other+0x3 [/bin/x]\n    [cut off]\n",
        "\n  in user space:\n    [no user stack]\n",
        "1 hidden from readers with neither CAP_PERFMON nor CAP_SYS_ADMIN, 1 of kernel threads, \
         1 whose alert another task raised\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let missing = |sums: &Sums| -> Vec<_> {
        let missing = report::missing(&source, sums).into_iter();
        missing.map(|(key, n, _)| (key, n)).collect()
    };
    let expected = [
        ("no_stack", 1),
        ("no_user_stack", 3),
        ("user_cut_off", 1),
        ("unnamed", 2),
        ("not_ended", 1),
    ];
    let expected = expected.map(|(key, n)| (key.to_string(), n));
    assert_eq!(missing(&sums), expected);
    let json = machine::json(&source, &sums).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let stacks = &json["stacks"];
    assert_eq!(stacks[0]["user_stack"][1], "main [/bin/x]");
    assert_eq!(stacks[1]["user_stack"][0], "inner+0x3 [/bin/x]");
    assert_eq!(stacks[2]["user_stack"][0], serde_json::Value::Null);
    for (stack, is_cut) in [(0usize, false), (1, true)] {
        assert_eq!(stacks[stack]["user_cut_off"], is_cut);
        assert_eq!(stacks[stack]["cut_off"], false);
    }
    // The stack in user space is the task's, not the waker's.
    let sums = sums_by(By::Waker, &all, Some(16), "");
    assert_eq!(sums.groups.len(), 1);
    assert!(!machine::folded(&sums).concat().contains("user"));
    assert!(
        missing(&sums)
            .iter()
            .all(|(key, _)| !key.contains("user") && key != "unnamed")
    );
}

#[test]
fn an_operation_counts_once_with_its_whole_delay() {
    let stack = |functions: &str| format!("stack=\"{functions}\"");
    let all = [
        // This operation timed out and ended later; the alert of its end has no stack.
        alert(1, 150, "timeout", 50, 7, &stack(SLEEP)),
        alert(2, 190, "late", 90, 7, ""),
        // A call that waits in two places.
        alert(3, 250, "stack", 50, 7, &stack(SLEEP)),
        alert(4, 280, "stack", 80, 7, &stack(READ)),
        alert(5, 290, "threshold", 90, 7, ""),
        // The end of the first operation was not read: the next alert is about another operation of the thread.
        alert(6, 350, "timeout", 50, 9, &stack(READ)),
        alert(7, 450, "threshold", 30, 9, &stack(SLEEP)),
        // This operation began before the instance.
        alert(
            8,
            500,
            "threshold",
            40,
            10,
            &format!("since=before-start {}", stack(READ)),
        ),
    ];
    let sums = sums(&all);
    assert_eq!(sums.all.count, 5);
    assert_eq!(
        rows(&sums.groups),
        [
            (3, 180, 90, READ.split(',').next().unwrap().into()),
            (2, 120, 90, SLEEP.split(',').next().unwrap().into())
        ]
    );
    assert_eq!((sums.moved, sums.unfinished, sums.at_least), (1, 1, 1));
    assert_eq!(
        sums.ended,
        (90 + 90 + 30) * MS,
        "what the histogram has, too"
    );
    let text = plain(&report::text(&Source::default(), &sums, 0));
    for key in ["several", "not_ended", "before_start"] {
        assert!(text.contains(&format!("\n  {key} ")), "{text}");
    }
}

#[test]
fn an_operation_in_flight_counts_as_late_only_if_it_has_raised_an_alert() {
    let all = [
        alert(1, 150, "timeout", 50, 7, &format!("stack=\"{SLEEP}\"")),
        alert(2, 150, "threshold", 20, 9, &format!("stack=\"{SLEEP}\"")),
    ];
    let pending = format!(
        "age=100000000 start=100000000 task=0x1 pid=7 tid=7 comm=\"p7\" stack=\"{SLEEP}\"\n\
         age=90000000 start=110000000 task=0x2 pid=8 tid=8 comm=\"p8\" stack=\"{READ}\"\n\
         age=5000000 start=195000000 task=0x3 pid=9 tid=9 comm=\"p9\" stack=\"{READ}\"\n"
    );
    let sums = sums_by(By::Kernel, &all, Some(16), &pending);
    assert_eq!(
        rows(&sums.groups),
        [(2, 120, 100, "hrtimer_nanosleep+0xc2/0x140".into())],
        "the delay so far is the newest one"
    );
    assert_eq!(sums.unfinished, 1);
    assert_eq!(rows(&sums.in_flight)[0].1, 90);
    assert_eq!(sums.in_flight.len(), 1, "the third is not late");
    let text = plain(&report::text(&Source::default(), &sums, 0));
    assert!(text.contains("not in the sums: 1 operation\n"), "{text}");
}

#[test]
fn rows_limits_the_stacks_in_flight_and_0_shows_all() {
    let one = |n: u64| {
        let task = format!("task={n:#x} pid={n} tid={n} comm=\"p{n}\"");
        format!("age=90000000 start=110000000 {task} stack=\"f{n}+0x1/0x2\"\n")
    };
    let pending: String = (1..=25).map(one).collect();
    let sums = sums_by(By::Kernel, &[], Some(16), &pending);
    for (rows, shown) in [(0, 25), (3, 3)] {
        let text = plain(&report::text(&Source::default(), &sums, rows));
        assert_eq!(text.matches("+0x1/0x2\n").count(), shown, "{text}");
        assert_eq!(text.contains("--rows 0"), shown < 25, "{text}");
    }
}

#[test]
fn what_is_cut_off_or_has_no_stack_is_counted_and_shown() {
    let short = |n: usize| {
        let functions: Vec<_> = READ.split(',').take(n).collect();
        format!("stack=\"{}\"", functions.join(","))
    };
    let all = [
        alert(5, 100, "threshold", 20, 7, &short(3)),
        alert(6, 200, "threshold", 20, 7, ""),
        alert(7, 300, "threshold", 20, 7, &format!("stack=\"{READ}\"")),
    ];
    let source = Source {
        has_older: true,
        missed: 3,
        losses: vec![("full".into(), 2, "lost")],
        ..Source::default()
    };
    let sums = sums_by(By::Kernel, &all, Some(3), "");
    let missing: Vec<_> = report::missing(&source, &sums)
        .into_iter()
        .map(|(key, n, _)| (key, n))
        .collect();
    let expected = [
        ("no_stack", 1),
        ("cut_off", 1),
        ("unread", 3),
        ("older", 4),
        ("full", 2),
    ];
    assert_eq!(missing, expected.map(|(key, n)| (key.to_string(), n)));
    assert!(sums.groups.last().unwrap().is_without(), "it is last");
    let folded = machine::folded(&sums);
    assert!(
        folded.contains(&"p7;[cut off];ksys_read;vfs_read;anon_pipe_read 20000".to_string()),
        "{folded:?}"
    );
    assert_eq!(folded.last().unwrap(), "p7;[no stack] 20000");
    let text = plain(&report::text(&source, &sums, 0));
    assert!(
        text.contains("    [cut off]\n") && text.contains("    [no stack]\n"),
        "{text}"
    );
    // In a file, the limit is not known. The length of the longest stack counts, unless that stack ends where the
    // kernel is entered.
    let in_file = |alerts: &[Alert]| {
        let sums = sums_by(By::Kernel, alerts, None, "");
        sums.groups.iter().filter(|group| group.is_cut).count()
    };
    assert_eq!(in_file(&all), 0);
    assert_eq!(in_file(&all[..2]), 1);
}

#[test]
fn the_stack_that_is_cut_off_has_the_mark() {
    let waker: Vec<_> = WRITE.split(',').take(3).collect();
    let waker = waker.join(",");
    let words = format!("context=task waker_comm=\"w\" waker_stack=\"{waker}\" stack=\"{READ}\"");
    let sums = sums_by(
        By::Both,
        &[alert(1, 100, "threshold", 20, 7, &words)],
        Some(3),
        "",
    );
    assert_eq!(
        machine::folded(&sums),
        [
            "p7;entry_SYSCALL_64_after_hwframe;do_syscall_64;ksys_read;vfs_read;anon_pipe_read;--;try_to_wake_up;\
             anon_pipe_write;vfs_write;[cut off];w 20000"
        ]
    );
    let text = plain(&report::text(&Source::default(), &sums, 0));
    assert_eq!(text.matches("[cut off]").count(), 1, "{text}");
    assert!(
        text.contains("    vfs_write+0x5/0x6\n    [cut off]\n"),
        "{text}"
    );
    let missing = report::missing(&Source::default(), &sums);
    assert!(
        missing
            .iter()
            .any(|(key, n, _)| key == "cut_off" && *n == 1)
    );
}

#[test]
fn the_sums_of_the_kernel_are_of_all_operations() {
    let counts = |n: u64| {
        let sum = n * 8000;
        format!("count={n} sum={sum} min=7000 max=9000 buckets=7-10:{n}")
    };
    let text = format!(
        "by=stack labels=3 max_labels=3 full=1 memory=1\n\
         label stack=\"{SLEEP}\" {}\n\
         label stack=\"{}\" {}\n\
         label stack=\"f+0x1/0x2\" cut_off=1 {}\n\
         other {}\n",
        counts(3),
        SLEEP.replace("0xc2", "0xc3"),
        counts(2),
        counts(3),
        counts(4)
    );
    let mut sums = sums(&two_reasons());
    sums.replace(&Labels::parse(&text).unwrap());
    let all = sums.all;
    assert_eq!((all.count, all.total, all.longest), (12, 96_000, 9_000));
    let row = |group: &Group| (group.sum.count, group.is_cut, group.stack[0].clone());
    let rows: Vec<_> = sums.groups.iter().map(row).collect();
    assert_eq!(
        rows,
        [
            (5, false, "hrtimer_nanosleep".into()),
            (3, true, "f+0x1/0x2".into()),
            (4, false, "[other]".into())
        ],
        "the other stacks come last"
    );
    let folded = machine::folded(&sums);
    assert!(
        folded[0].starts_with("entry_SYSCALL_64_after_hwframe;"),
        "{folded:?}"
    );
    assert_eq!(folded[1..], ["[cut off];f 24", "[other] 32"]);
    let source = Source {
        threshold: Some(MS),
        ..Source::default()
    };
    let text = plain(&report::text(&source, &sums, 0));
    for words in [
        "12 operations in 2 stacks",
        "late or not (by=stack)",
        "\n  other ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("COMM"), "{text}");
    let json = machine::json(&source, &sums).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["exact"], true);
    assert_eq!(json["missing"]["other"], 4);
}

#[test]
fn json_has_every_sum_and_every_loss() {
    let source = Source {
        missed: 3,
        ended: Some((9, 2_000 * MS)),
        ..Source::default()
    };
    let sums = sums(&two_reasons());
    let json = machine::json(&source, &sums).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["count"], 8);
    assert_eq!(json["total"], 900 * MS);
    assert_eq!(json["by"], "kernel");
    assert_eq!(json["threshold"][0], 10 * MS);
    assert_eq!(json["stacks"][0]["longest"], 200 * MS);
    assert_eq!(json["stacks"][0]["tasks"][0]["comm"], "p8");
    assert_eq!(
        json["stacks"][1]["stack"][0],
        "hrtimer_nanosleep+0xc2/0x140"
    );
    assert_eq!(json["missing"]["unread"], 3);
    assert_eq!(json["ended"]["count"], 9);
    let text = plain(&report::text(&source, &sums, 0));
    assert!(
        text.contains("45 % of the time (2.00s) of\nall 9 operations"),
        "{text}"
    );
}
