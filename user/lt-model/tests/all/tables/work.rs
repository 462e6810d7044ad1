// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Work items, and what queued them.

use lt_model::Vector;

use super::*;

/// A step of the item at an address, which has one function, on `events`.
fn step(time: u64, cpu: u32, stage: WorkStage, work: u64) -> Seen<'static> {
    let item = Work {
        stage,
        work,
        function: (stage != WorkStage::Ended).then_some(0xf0 + work),
        workqueue: (stage == WorkStage::Queued).then_some(&b"events"[..]),
    };
    seen(time, cpu, Step::Work(item))
}

fn queue(time: u64, cpu: u32, work: u64) -> Seen<'static> {
    step(time, cpu, WorkStage::Queued, work)
}

fn start(time: u64, cpu: u32, work: u64) -> Seen<'static> {
    step(time, cpu, WorkStage::Started, work)
}

fn end(time: u64, cpu: u32, work: u64) -> Seen<'static> {
    step(time, cpu, WorkStage::Ended, work)
}

#[test]
fn an_item_waits_and_then_runs() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(0, 1, 0, R, 8)),
        queue(10, 1, 1),
        queue(11, 1, 2),
        start(15, 0, 1),
        // An item may be queued again while it runs.
        queue(16, 0, 1),
        end(20, 0, 1),
        start(20, 0, 1),
        end(23, 0, 1),
        start(30, 0, 2),
        // The worker moves to another CPU.
        of(switch(31, 0, 7, R, 0)),
        of(switch(31, 1, 8, R, 7)),
        end(37, 1, 2),
    ];
    let found = tables_of(WORK, Range::all(9), None, &all);
    let (queued, work) = (&found.tables[0], &found.tables[1]);
    assert_eq!((queued.kind, work.kind), (Kind::Queued, Kind::Work));
    assert_eq!(took(queued), [(10, 5), (11, 19), (16, 4)]);
    assert_eq!(took(work), [(15, 5), (20, 3), (30, 7)]);
    assert_eq!((queued.whole.sums.sum, work.whole.sums.sum), (28, 15));
    assert_eq!((queued.missed, work.missed), (missed(0, 0), missed(0, 0)));
    let row = |function| &work.rows[&(0, Key::Object(Object::Work(function, None, None)))];
    assert_eq!((row(0xf1).sums.sum, row(0xf2).sums.sum), (8, 7));
    let worker = work.worst[0].thread.unwrap();
    assert_eq!(found.task(worker), (7, Some("late")));
}

#[test]
fn the_workqueue_is_known_from_the_queueing() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        queue(10, 0, 1),
        start(12, 0, 1),
        end(15, 0, 1),
        // The queueing of this item is not in the trace.
        start(20, 0, 2),
        end(27, 0, 2),
    ];
    let by = Some(By::Workqueue);
    let found = tables_of(WORK, Range::all(9), by, &all);
    let mut rows: Vec<_> = found.tables[1]
        .rows
        .iter()
        .map(|((_, key), row)| match key {
            Key::Workqueue(name) => (name.map(|name| found.text(name)), row.sums.sum),
            other => panic!("{other:?}"),
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, [(None, 7), (Some("events"), 3)]);
    assert_eq!(found.tables[0].missed, missed(0, 1));
}

/// The memory of an item that was cancelled, or that ran in a gap, may be used for another item.
#[test]
fn the_workqueue_of_an_item_that_may_be_another_one_is_not_known() {
    let other = Work {
        stage: WorkStage::Queued,
        work: 1,
        function: Some(0xf1),
        workqueue: Some(b"other"),
    };
    let other = seen(13, 0, Step::Work(other));
    let gap = lost(11, 1, 12);
    for between in [&[other][..], &[gap], &[gap, other]] {
        let begin = [of(switch(0, 0, 0, R, 7)), queue(10, 0, 1)];
        let end = [start(15, 0, 1), end(17, 0, 1)];
        let all = [&begin[..], between, &end].concat();
        let found = tables_of(WORK, Range::all(9), Some(By::Workqueue), &all);
        let rows = &found.tables[1].rows;
        let keys: Vec<_> = rows.keys().map(|(_, key)| *key).collect();
        assert_eq!(keys, [Key::Workqueue(None)], "{between:?}");
    }
}

#[test]
fn an_item_that_is_queued_again_before_it_starts_is_not_measured() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        queue(10, 0, 1),
        queue(13, 0, 1),
        start(15, 0, 1),
        end(17, 0, 1),
        queue(20, 0, 1),
        start(21, 0, 1),
        end(22, 0, 1),
    ];
    let found = tables(WORK, &all);
    let queued = find(&found, Kind::Queued);
    assert_eq!(took(queued), [(20, 1)]);
    let expected = Missed {
        identical: 1,
        ..missed(0, 0)
    };
    assert_eq!(queued.missed, expected);
    assert_eq!(took(find(&found, Kind::Work)), [(15, 2), (21, 1)]);
}

#[test]
fn an_item_that_is_queued_again_after_a_gap_counts_twice() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        queue(10, 0, 1),
        // The item may have run in this gap.
        lost(12, 1, 13),
        queue(20, 0, 1),
        start(25, 0, 1),
        end(26, 0, 1),
        queue(30, 0, 1),
        start(32, 0, 1),
    ];
    let found = tables(WORK, &all);
    let queued = find(&found, Kind::Queued);
    let expected = Missed {
        identical: 1,
        ..missed(1, 0)
    };
    assert_eq!((took(queued), queued.missed), (vec![(30, 2)], expected));
}

#[test]
fn items_at_the_edges_and_over_gaps_are_counted() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        // The start is before the trace.
        end(1, 0, 9),
        queue(10, 0, 1),
        lost(11, 1, 12),
        start(15, 0, 1),
        lost(16, 1, 17),
        end(18, 0, 1),
        // One item runs, and one waits, when the trace ends.
        queue(20, 0, 2),
        start(22, 0, 2),
        queue(23, 0, 3),
    ];
    let found = tables(WORK, &all);
    let (queued, work) = (find(&found, Kind::Queued), find(&found, Kind::Work));
    assert_eq!((took(queued), queued.missed), (vec![(20, 2)], missed(1, 1)));
    assert_eq!((took(work), work.missed), (vec![], missed(1, 2)));
}

/// An item may be freed by its own function, and its address used again, while the function still runs.
#[test]
fn items_at_one_address_are_told_apart_by_their_workers() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(0, 1, 0, R, 8)),
        start(10, 0, 1),
        queue(11, 0, 1),
        start(12, 1, 1),
        end(14, 1, 1),
        end(20, 0, 1),
    ];
    let found = tables(WORK, &all);
    assert_eq!(took(find(&found, Kind::Work)), [(10, 10), (12, 2)]);
}

/// What queued each item, in order of their starts.
fn queuers(table: &Table) -> Vec<Trigger> {
    let mut cases: Vec<_> = table.worst.iter().collect();
    cases.sort_by_key(|case| case.begin);
    let queuer = |case: &&Case| match case.object {
        Some(Object::Work(.., Some(by))) => by,
        other => panic!("{other:?}"),
    };
    cases.iter().map(queuer).collect()
}

/// On CPU 0, worker 7 runs an item at `time`.
fn runs(time: u64, work: u64) -> [Seen<'static>; 2] {
    [start(time, 0, work), end(time + 1, 0, work)]
}

/// Worker 7 runs on CPU 0, and thread 8 of process 6 on CPU 1.
fn workers() -> Vec<Seen<'static>> {
    let switch_to_8 = of(switch(0, 1, 0, R, 8));
    let of_process = Seen {
        process: Some((8, 6)),
        ..switch_to_8
    };
    vec![of(switch(0, 0, 0, R, 7)), of_process]
}

fn on_1(time: u64, what: What<'static>) -> Seen<'static> {
    of(at(time, 1, what))
}

/// Six items run, and each has a different queuer; the queueing of the fifth is not in the trace.
fn each_queuer() -> Vec<Seen<'static>> {
    let irq = What::Irq {
        number: 24,
        name: b"eth0",
    };
    let mut all = workers();
    all.push(queue(10, 1, 1));
    all.extend(runs(15, 1));
    all.extend([
        on_1(30, irq),
        queue(31, 1, 2),
        on_1(32, What::IrqEnd { number: 24 }),
    ]);
    all.extend(runs(35, 2));
    for (time, vector, work) in [(40, 3, 3), (50, 1, 4)] {
        all.extend([
            on_1(time, What::Softirq { vector }),
            queue(time + 1, 1, work),
            on_1(time + 2, What::SoftirqEnd { vector }),
        ]);
        all.extend(runs(time + 5, work));
    }
    all.extend([start(60, 0, 5), queue(61, 0, 6), end(62, 0, 5)]);
    all.extend(runs(63, 6));
    all
}

#[test]
fn an_item_names_what_queued_it() {
    let found = tables_of(WORK, Range::all(9), None, &each_queuer());
    let table = find(&found.tables, Kind::Work);
    let by = queuers(table);
    let [
        Trigger::Thread(Some(thread)),
        Trigger::Irq(24, line),
        Trigger::Softirq(Vector::NET_RX),
        Trigger::Timer,
        Trigger::Unrecorded,
        Trigger::Work(0xf5),
    ] = by[..]
    else {
        panic!("{by:?}")
    };
    assert_eq!(found.task(thread), (8, Some("hog")));
    assert_eq!(found.text(line), "eth0");
    let queued = queuers(find(&found.tables, Kind::Queued));
    assert_eq!(queued, [by[0], by[1], by[2], by[3], by[5]]);
}

#[test]
fn without_events_of_interrupts_a_thread_is_not_certain() {
    let analysis = Analysis::Work {
        recorded: Recorded {
            handlers: false,
            ..RECORDED
        },
        ends: true,
    };
    let found = tables_of(analysis, Range::all(9), None, &each_queuer());
    let by = queuers(find(&found.tables, Kind::Work));
    let [
        Trigger::Perhaps(Some(first)),
        Trigger::Perhaps(Some(second)),
        Trigger::Softirq(Vector::NET_RX),
        Trigger::Timer,
        Trigger::Unrecorded,
        // The item that this worker runs may have been interrupted.
        Trigger::Perhaps(Some(worker)),
    ] = by[..]
    else {
        panic!("{by:?}")
    };
    let tid = |id| found.task(id).0;
    assert_eq!((tid(first), tid(second), tid(worker)), (8, 8, 7));
}

#[test]
fn a_queuer_that_may_be_another_one_is_not_known() {
    let on_2 = of(switch(0, 2, 0, R, 9));
    let other = queue(11, 2, 1);
    let gap = lost(12, 1, 13);
    for (between, is_known) in [
        (&[][..], true),
        (&[queue(11, 1, 1)], true),
        (&[on_2, other], false),
        // The item may have run in this gap, and its memory may be used for another one.
        (&[gap], false),
        (&[on_2, gap, queue(14, 2, 1)], false),
    ] {
        let mut all = workers();
        all.push(queue(10, 1, 1));
        all.extend(between);
        all.extend(runs(15, 1));
        let found = tables_of(WORK, Range::all(9), None, &all);
        let by = queuers(find(&found.tables, Kind::Work));
        let is_8 = matches!(by[..], [Trigger::Thread(Some(id))] if found.task(id).0 == 8);
        assert_eq!(is_8, is_known, "{by:?}");
        assert!(is_known || by == [Trigger::Unrecorded], "{by:?}");
    }
}

/// The first item was cancelled, and its memory is used for an item that is not queued, but inserted before others.
#[test]
fn an_item_with_another_function_has_not_waited_and_has_no_queuer() {
    let mut all = workers();
    all.push(queue(10, 1, 1));
    let inserted = Work {
        stage: WorkStage::Started,
        work: 1,
        function: Some(0xee),
        workqueue: None,
    };
    all.extend([seen(15, 0, Step::Work(inserted)), end(16, 0, 1)]);
    let found = tables_of(WORK, Range::all(9), None, &all);
    let (queued, work) = (&found.tables[0], &found.tables[1]);
    assert_eq!((took(queued), queued.missed), (vec![], missed(0, 1)));
    assert_eq!(queuers(work), [Trigger::Unrecorded]);
}

#[test]
fn a_queuer_on_an_idle_or_unknown_cpu_is_not_recorded() {
    let with_tid = |tid| Seen {
        tid: Some(tid),
        ..queue(10, 1, 1)
    };
    for (before, event, expected) in [
        // No event shows the thread.
        (None, queue(10, 1, 1), None),
        // The idle thread queues nothing, and no interrupt is recorded.
        (Some(of(switch(1, 1, 8, S, 0))), queue(10, 1, 1), None),
        (None, with_tid(0), None),
        // Before its first switch, the CPU may be in an interrupt.
        (None, with_tid(9), Some(9)),
    ] {
        let mut all = vec![of(switch(0, 0, 0, R, 7))];
        all.extend(before);
        all.push(event);
        all.extend(runs(15, 1));
        let found = tables_of(WORK, Range::all(9), None, &all);
        let by = queuers(find(&found.tables, Kind::Work));
        let tid = match by[..] {
            [Trigger::Perhaps(Some(id))] => Some(found.task(id).0),
            [Trigger::Unrecorded] => None,
            _ => panic!("{by:?}"),
        };
        assert_eq!(tid, expected);
    }
}

/// A worker is named if it may have ended the item that it ran.
#[test]
fn an_item_that_may_have_ended_queues_nothing() {
    for (between, ends, expected) in [
        (None, true, Ok(0xf5)),
        (Some(end(62, 0, 5)), true, Err(7)),
        // The end of the first item is not in the trace.
        (Some(start(62, 0, 4)), true, Err(7)),
        (Some(lost(62, 1, 63)), true, Err(7)),
        (None, false, Err(7)),
    ] {
        let mut all = workers();
        all.push(start(60, 0, 5));
        all.extend(between);
        all.push(queue(65, 0, 6));
        all.extend(runs(70, 6));
        let analysis = Analysis::Work {
            recorded: RECORDED,
            ends,
        };
        let found = tables_of(analysis, Range::all(9), None, &all);
        let by = queuers(find(&found.tables, Kind::Queued));
        let by = match by[..] {
            [Trigger::Work(function)] => Ok(function),
            [Trigger::Thread(Some(id))] => Err(found.task(id).0),
            _ => panic!("{by:?}"),
        };
        assert_eq!(by, expected, "{between:?} {ends}");
    }
}

/// The rows by process, as text, in order of the text.
fn by_process(recorded: Recorded) -> Vec<(String, u64)> {
    let analysis = Analysis::Work {
        recorded,
        ends: true,
    };
    let found = tables_of(analysis, Range::all(9), Some(By::Process), &each_queuer());
    let tid = |id: TaskId| found.task(id).0;
    let row = |((_, key), row): (&(u64, Key), &Row)| {
        let text = match key {
            Key::Process(main) => format!("process {:?}", main.map(tid)),
            Key::Queuer(Trigger::Perhaps(main)) => format!("perhaps {:?}", main.map(tid)),
            Key::Queuer(Trigger::Irq(line, _)) => format!("line {line}"),
            Key::Queuer(by) => format!("{by:?}"),
            other => panic!("{other:?}"),
        };
        (text, row.sums.count)
    };
    let table = find(&found.tables, Kind::Work);
    let mut rows: Vec<_> = table.rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_process_has_the_items_that_its_threads_queued() {
    let expected = [
        ("Softirq(Vector(3))", 1),
        ("Timer", 1),
        ("Work(245)", 1),
        ("line 24", 1),
        ("process None", 1),
        ("process Some(6)", 1),
    ];
    let expected = expected.map(|(row, count)| (row.to_string(), count));
    assert_eq!(by_process(RECORDED), expected);
    let without = Recorded {
        handlers: false,
        ..RECORDED
    };
    let expected = [
        ("Softirq(Vector(3))", 1),
        ("Timer", 1),
        // The process of the worker is not recorded.
        ("perhaps None", 1),
        ("perhaps Some(6)", 2),
        ("process None", 1),
    ];
    let expected = expected.map(|(row, count)| (row.to_string(), count));
    assert_eq!(by_process(without), expected);
}

#[test]
fn rows_are_by_queuer() {
    let found = tables_of(WORK, Range::all(9), Some(By::Queuer), &each_queuer());
    let table = find(&found.tables, Kind::Work);
    let row = |by| table.rows.get(&(0, Key::Queuer(by)));
    assert_eq!(table.rows.len(), 6);
    for by in queuers(table) {
        assert!(row(by).is_some_and(|row| row.sums.count == 1), "{by:?}");
    }
}
