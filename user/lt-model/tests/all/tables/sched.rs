// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Wakeups, and time on CPUs.

use super::*;

#[test]
fn a_wakeup_lasts_from_waking_to_running() {
    let all = [
        of(switch(0, 0, 7, S, 8)),
        of(waking(10, 0, 7)),
        of(switch(25, 0, 8, R, 7)),
        // Thread 7 is preempted, and not woken.
        of(switch(30, 0, 7, R, 8)),
        of(switch(90, 0, 8, S, 7)),
        // Thread 7 wakes itself, and continues.
        of(waking(95, 0, 7)),
        of(switch(100, 0, 7, S, 0)),
        of(waking(110, 1, 7)),
        of(switch(117, 0, 0, R, 7)),
        of(waking(120, 0, 8)),
    ];
    let tables = tables(WAKEUPS, &all);
    let table = &tables[0];
    assert_eq!(took(table), [(10, 15), (110, 7)]);
    assert_eq!((table.whole.sums.sum, table.whole.sums.count), (22, 2));
    assert_eq!((table.worst[0].took(), table.worst[0].cpu), (15, 0));
    // Thread 8 has not run since it was woken.
    assert_eq!(table.missed, missed(0, 1));
}

#[test]
fn a_wakeup_before_its_sleep_counts_only_if_the_thread_sleeps() {
    let sleeps = [
        of(switch(0, 0, 0, R, 7)),
        of(waking(10, 1, 7)),
        of(switch(12, 0, 7, S, 8)),
        of(switch(20, 0, 8, S, 7)),
    ];
    assert_eq!(took(&tables(WAKEUPS, &sleeps)[0]), [(10, 10)]);
    let mut stays = sleeps;
    stays[2] = of(switch(12, 0, 7, R, 8));
    let stays = tables(WAKEUPS, &stays);
    assert_eq!((took(&stays[0]), stays[0].missed), (vec![], missed(0, 0)));
    // sched_wakeup comes while the thread still runs, so the wakeup was not for its later sleep.
    let what = What::Wakeup {
        tid: 7,
        name: b"",
        target: 0,
    };
    let mut woken = sleeps.to_vec();
    woken.insert(2, of(at(11, 1, what)));
    woken.push(of(switch(30, 0, 7, S, 0)));
    let woken = tables(WAKEUPS, &woken);
    assert_eq!(took(&woken[0]), []);
}

#[test]
fn a_new_thread_waits_from_its_first_wakeup() {
    let new = Step::New {
        tid: 9,
        name: b"new",
        target: 0,
    };
    let fork = What::Fork {
        child: 9,
        name: b"old",
    };
    let all = [
        of(at(1, 0, fork)),
        seen(2, 0, new),
        of(switch(9, 0, 8, R, 9)),
    ];
    let found = tables_of(WAKEUPS, Range::all(5), None, &all);
    assert_eq!(took(&found.tables[0]), [(2, 7)]);
    let thread = found.tables[0].worst[0].thread.unwrap();
    assert_eq!(found.task(thread), (9, Some("new")));
}

#[test]
fn without_waking_the_wakeup_is_the_start() {
    let wakeup = |time, tid| {
        of(at(
            time,
            1,
            What::Wakeup {
                tid,
                name: b"",
                target: 0,
            },
        ))
    };
    let all = [
        of(switch(0, 0, 7, S, 8)),
        wakeup(10, 7),
        // Thread 8 was running, and not asleep.
        wakeup(11, 8),
        of(switch(15, 0, 8, S, 7)),
    ];
    let table = &tables(Analysis::Wakeups { wakings: false }, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(10, 5)], missed(0, 0)));
}

#[test]
fn no_wait_spans_a_gap_of_any_cpu() {
    let all = [
        of(switch(0, 0, 7, S, 8)),
        of(waking(10, 0, 7)),
        lost(12, 1, 14),
        of(switch(25, 0, 8, S, 7)),
        of(waking(30, 0, 8)),
        of(switch(35, 0, 7, S, 8)),
        // In this gap, thread 7 was woken and thread 8 perhaps switched out.
        lost(40, 0, 50),
        of(switch(60, 0, 8, S, 7)),
    ];
    let table = &tables(WAKEUPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(30, 5)], missed(2, 0)));
    // A wait that starts in a gap.
    let all = [
        of(switch(0, 0, 7, S, 8)),
        lost(5, 1, 20),
        of(waking(10, 0, 7)),
        of(switch(15, 0, 8, S, 7)),
    ];
    let table = &tables(WAKEUPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(1, 0)));
}

#[test]
fn an_operation_outside_of_the_streams_or_the_range_is_not_measured() {
    let all = [
        of(switch(0, 0, 7, S, 8)),
        of(waking(10, 0, 7)),
        of(switch(25, 0, 8, S, 7)),
        of(waking(30, 0, 8)),
        of(switch(35, 0, 7, S, 8)),
        of(waking(40, 0, 7)),
        of(switch(60, 0, 8, S, 7)),
    ];
    let range = Range {
        from: 20,
        to: 50,
        ..Range::all(5)
    };
    let table = &tables_of(WAKEUPS, range, None, &all).tables[0];
    assert_eq!((took(table), table.missed), (vec![(30, 5)], missed(0, 2)));
    let range = Range {
        tid: Some(8),
        ..range
    };
    let table = &tables_of(WAKEUPS, range, None, &all).tables[0];
    assert_eq!((took(table), table.missed), (vec![(30, 5)], missed(0, 0)));
    // The stream of CPU 1 starts later and ends earlier.
    let mut builder = Builder::new(WAKEUPS, Range::all(5), None);
    builder.has_stream(0, 0);
    builder.has_stream(1, 28);
    all[..6].iter().for_each(|seen| builder.feed(seen));
    builder.ends_stream(55, 1);
    builder.feed(&all[6]);
    let table = &builder.finish().tables[0];
    assert_eq!((took(table), table.missed), (vec![(30, 5)], missed(0, 2)));
}

#[test]
fn a_cpu_without_a_stream_leaves_no_time_of_a_thread() {
    let mut builder = Builder::new(WAKEUPS, Range::all(5), None);
    builder.has_stream(0, 0);
    let what = What::Waking {
        tid: 9,
        name: b"",
        target: 3,
    };
    for seen in [
        of(switch(0, 0, 7, S, 8)),
        of(waking(10, 0, 7)),
        of(switch(25, 0, 8, S, 7)),
        of(at(30, 0, what)),
    ] {
        builder.feed(&seen);
    }
    let found = builder.finish();
    let table = &found.tables[0];
    assert_eq!(found.absent(), Some(3));
    assert_eq!((took(table), table.missed), (vec![], missed(1, 1)));
}

/// Three CPUs for 100 ms: threads use a fifth of CPU 0, two thirds of CPU 1 and all of CPU 2. Modelled on `cputop` of
/// lttng-analyses: shares of CPUs and threads refer to the whole range, and include threads that run at its start or
/// end.
#[test]
fn shares_of_cpus_are_of_all_recorded_time() {
    const MS: u64 = 1_000_000;
    let all = [
        // CPU 2 runs thread 30 all the time, as two switches show.
        of(switch(0, 0, 0, R, 10)),
        of(switch(0, 1, 0, R, 20)),
        of(switch(0, 2, 0, R, 30)),
        of(switch(21 * MS, 0, 10, S, 0)),
        of(switch(41 * MS, 1, 20, R, 21)),
        of(switch(66 * MS, 1, 21, S, 0)),
        of(switch(100 * MS, 2, 30, R, 31)),
    ];
    let by_thread = tables_of(Analysis::Cpu, Range::all(9), Some(By::Thread), &all);
    let runs = find(&by_thread.tables, Kind::Run);
    let mut times: Vec<_> = runs.rows.values().map(|row| row.sums.sum / MS).collect();
    times.sort_unstable();
    assert_eq!(times, [21, 25, 41, 100]);
    let by_cpu = tables_of(Analysis::Cpu, Range::all(9), Some(By::Cpu), &all);
    let runs = find(&by_cpu.tables, Kind::Run);
    let mut times: Vec<_> = runs.rows.values().map(|row| row.sums.sum / MS).collect();
    times.sort_unstable();
    assert_eq!(times, [21, 66, 100]);
    assert_eq!(runs.whole.sums.sum, 187 * MS);
    // Each CPU is recorded from its first event to the end.
    let recorded: u64 = runs.recorded.values().sum();
    assert_eq!(recorded, 300 * MS);
}

#[test]
fn time_on_a_cpu_is_cut_at_gaps_and_ranges_and_only_complete_runs_count() {
    let all = [
        of(switch(10, 0, 7, S, 8)),
        of(switch(30, 0, 8, R, 7)),
        lost(40, 0, 50),
        of(switch(55, 0, 7, S, 8)),
        of(switch(70, 0, 8, S, 0)),
    ];
    let of_range = |from, to| {
        let range = Range {
            from,
            to,
            ..Range::all(5)
        };
        tables_of(Analysis::Cpu, range, Some(By::Cpu), &all).tables
    };
    let whole = of_range(0, u64::MAX);
    let runs = find(&whole, Kind::Run);
    // Thread 8 runs for 20 and for 15; thread 7 for 10 until the gap, and for 5 after it.
    assert_eq!((runs.whole.sums.sum, runs.whole.sums.count), (50, 2));
    assert_eq!(took(runs), [(10, 20), (55, 15)]);
    assert_eq!(runs.recorded.values().sum::<u64>(), 50);
    assert_eq!(runs.missed.lost, 2);
    let waits = find(&whole, Kind::Preempted);
    assert_eq!((took(waits), waits.missed), (vec![], missed(1, 0)));
    let part = of_range(20, 60);
    assert_eq!(find(&part, Kind::Run).whole.sums.sum, 10 + 10 + 5 + 5);
}

#[test]
fn an_exec_that_changes_the_number_of_a_thread_ends_its_run() {
    let all = [
        of(switch(0, 0, 0, R, 9)),
        of(at(10, 0, What::Exec { tid: 7, old: 9 })),
        of(switch(30, 0, 7, S, 0)),
    ];
    let tables = tables(Analysis::Cpu, &all);
    let runs = find(&tables, Kind::Run);
    assert_eq!(took(runs), [(0, 10), (10, 20)]);
    assert_eq!(runs.missed, missed(0, 0));
}

#[test]
fn an_exec_that_sleeps_with_its_new_number_ends_a_run_of_the_old_one() {
    let all = [
        of(switch(0, 0, 0, R, 9)),
        of(at(5, 0, What::Call { name: b"execve" })),
        of(switch(15, 0, 7, S, 0)),
        of(switch(18, 0, 0, R, 7)),
        of(at(20, 0, What::Exec { tid: 7, old: 9 })),
        of(switch(30, 0, 7, S, 0)),
    ];
    let range = Range {
        tid: Some(9),
        ..Range::all(9)
    };
    let old = &tables_of(Analysis::Cpu, range, None, &all).tables;
    assert_eq!(took(find(old, Kind::Run)), [(0, 15)]);
    let all = tables(Analysis::Cpu, &all);
    let runs = find(&all, Kind::Run);
    assert_eq!(took(runs), [(0, 15), (18, 12)]);
    assert_eq!(runs.missed, missed(0, 0));
}

#[test]
fn a_preempted_thread_waits_and_may_migrate() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(0, 1, 0, R, 9)),
        of(switch(10, 0, 7, R, 8)),
        of(switch(30, 1, 9, S, 7)),
        of(switch(35, 1, 7, S, 0)),
    ];
    let tables = tables(Analysis::Cpu, &all);
    let waits = find(&tables, Kind::Preempted);
    assert_eq!(took(waits), [(10, 20)]);
    let runs = find(&tables, Kind::Run);
    assert_eq!(runs.whole.extra(Extra::Migrations), 1);
}

#[test]
fn a_switch_from_a_thread_that_did_not_run_is_a_gap() {
    let all = [
        of(switch(0, 0, 7, S, 8)),
        of(waking(10, 0, 7)),
        of(switch(20, 0, 9, S, 7)),
    ];
    let table = &tables(WAKEUPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(1, 0)));
}

#[test]
fn an_impossible_event_is_a_gap() {
    let all = [
        of(switch(0, 0, 7, S, 8)),
        of(waking(10, 0, 7)),
        of(switch(12, 0, -1, S, -1)),
        of(switch(20, 0, 8, S, 7)),
    ];
    let table = &tables(WAKEUPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(1, 0)));
    let runs = tables(Analysis::Cpu, &all);
    assert_eq!(took(find(&runs, Kind::Run)), []);
    // Linux has no CPU with this number.
    let mut all = all;
    all[2] = of(waking(12, 8192, 9));
    let table = &tables(WAKEUPS, &all)[0];
    assert_eq!((took(table), table.missed), (vec![], missed(1, 0)));
}

#[test]
fn a_thread_that_existed_before_the_trace_has_its_name_and_is_no_gap() {
    let there = What::There {
        tid: 9,
        name: b"old",
    };
    let all = [
        // In a trace of perf, this event has no CPU.
        of(at(0, u32::MAX, there)),
        of(switch(0, 0, 9, S, 8)),
        of(waking(10, 1, 9)),
        of(switch(25, 0, 8, S, 9)),
        of(waking(30, 1, 8)),
    ];
    let found = tables_of(WAKEUPS, Range::all(5), None, &all);
    let table = &found.tables[0];
    assert_eq!((took(table), table.missed), (vec![(10, 15)], missed(0, 1)));
    let thread = table.worst[0].thread.unwrap();
    assert_eq!(found.task(thread), (9, Some("old")));
}

#[test]
fn a_process_has_the_time_of_its_threads_even_if_it_is_named_later() {
    let process = |seen: Seen<'static>, process| Seen {
        process: Some(process),
        ..seen
    };
    let fork = |time, child| {
        let name = b"new";
        of(at(time, 0, What::Fork { child, name }))
    };
    let there = |time, tid| of(at(time, 0, What::There { tid, name: b"" }));
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(10, 0, 7, R, 8)),
        of(switch(30, 0, 8, R, 9)),
        // 8 is a thread of process 7, and 12 a process of its own.
        process(there(35, 7), (7, 7)),
        process(there(36, 8), (8, 7)),
        process(fork(37, 12), (12, 12)),
        process(fork(38, 13), (13, 7)),
        of(switch(40, 0, 9, R, 12)),
        of(switch(70, 0, 12, R, 13)),
        of(switch(100, 0, 13, R, 0)),
        // The number 13 is used again, by a thread of process 12.
        process(there(100, 13), (13, 12)),
        of(switch(110, 0, 0, R, 13)),
        of(switch(117, 0, 13, S, 0)),
        // The number 8 is used again, by the main thread of a process.
        process(there(117, 8), (8, 8)),
        of(switch(120, 0, 0, R, 8)),
        process(of(switch(123, 0, 8, R, 0)), (8, 8)),
        of(switch(130, 0, 0, R, 8)),
        process(of(switch(134, 0, 8, S, 0)), (8, 8)),
    ];
    let found = tables_of(Analysis::Cpu, Range::all(5), Some(By::Process), &all);
    let table = find(&found.tables, Kind::Run);
    let mut rows: Vec<_> = table
        .rows
        .iter()
        .map(|((_, key), row)| match key {
            Key::Process(main) => (
                main.map(|main| found.task(main).0),
                row.sums.sum,
                row.sums.count,
            ),
            other => panic!("{other:?}"),
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(
        rows,
        [
            (None, 10, 1),
            (Some(7), 10 + 20 + 30, 3),
            (Some(8), 3 + 4, 2),
            (Some(12), 30 + 7, 2)
        ]
    );
    assert_eq!(table.whole.sums.sum, 114);
}
