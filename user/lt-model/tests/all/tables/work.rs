// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Work items.

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
    let found = tables_of(Analysis::Work, Range::all(9), None, &all);
    let (queued, work) = (&found.tables[0], &found.tables[1]);
    assert_eq!((queued.kind, work.kind), (Kind::Queued, Kind::Work));
    assert_eq!(took(queued), [(10, 5), (11, 19), (16, 4)]);
    assert_eq!(took(work), [(15, 5), (20, 3), (30, 7)]);
    assert_eq!((queued.whole.sums.sum, work.whole.sums.sum), (28, 15));
    assert_eq!((queued.missed, work.missed), (missed(0, 0), missed(0, 0)));
    let row = |function| &work.rows[&(0, Key::Object(Object::Work(function, None)))];
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
    let found = tables_of(Analysis::Work, Range::all(9), by, &all);
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
        let found = tables_of(Analysis::Work, Range::all(9), Some(By::Workqueue), &all);
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
    let found = tables(Analysis::Work, &all);
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
    let found = tables(Analysis::Work, &all);
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
    let found = tables(Analysis::Work, &all);
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
    let found = tables(Analysis::Work, &all);
    assert_eq!(took(find(&found, Kind::Work)), [(10, 10), (12, 2)]);
}
