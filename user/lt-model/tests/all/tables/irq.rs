// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Interrupt handlers and softirqs. The first case has the shape of a published test of lttng-analyses (`irqstats`),
//! with events of its own: the durations of handlers, and the raise latencies of vectors 1 and 9, are as in that test.

use super::*;

const MS: u64 = 1_000_000;

fn handler(time: u64, cpu: u32, number: i32, name: &'static [u8]) -> [Seen<'static>; 2] {
    [
        of(at(time, cpu, What::Irq { number, name })),
        of(at(time + 2 * MS, cpu, What::IrqEnd { number })),
    ]
}

fn softirq(raise: u64, cpu: u32, vector: u32, entry: u64, exit: u64) -> [Seen<'static>; 3] {
    [
        of(at(raise, cpu, What::Raise { vector })),
        of(at(entry, cpu, What::Softirq { vector })),
        of(at(exit, cpu, What::SoftirqEnd { vector })),
    ]
}

#[test]
fn handlers_and_softirqs_have_known_durations() {
    let mut all = vec![
        // This softirq started before the trace.
        of(at(0, 1, What::SoftirqEnd { vector: 1 })),
    ];
    for (i, cpu) in [0, 1, 2, 0, 1, 2].into_iter().enumerate() {
        let at = 100 * MS * i as u64;
        all.extend(handler(at + MS, cpu, 41, b"ahci"));
    }
    for (i, cpu) in [0, 1, 2].into_iter().enumerate() {
        let (at, more) = (1000 * MS + 100 * MS * i as u64, i as u64 * MS);
        // Vector 1 is raised 5, 6 and 7 ms before it starts, vector 9 is raised 8, 9 and 10 ms before.
        all.extend(softirq(at, cpu, 1, at + 5 * MS + more, at + 6 * MS + more));
        all.extend(softirq(
            at + 20 * MS,
            cpu,
            9,
            at + 28 * MS + more,
            at + 31 * MS + more,
        ));
    }
    for i in 0..6 {
        let at = 2000 * MS + 10 * MS * i;
        all.extend(softirq(at, 0, 4, at, at + 2 * MS));
    }
    all.sort_by_key(|seen| seen.time);
    let found = tables_of(Analysis::Irq, Range::all(100), None, &all);
    let handlers = find(&found.tables, Kind::Handler);
    assert_eq!(handlers.rows.len(), 1);
    let sums = &handlers.whole.sums;
    assert_eq!(
        (sums.count, sums.sum, sums.least, sums.most),
        (6, 12 * MS, 2 * MS, 2 * MS)
    );
    let raises = find(&found.tables, Kind::Raise);
    let of_vector = |table: &Table, number: u32| {
        let is = |case: &&Case| matches!(case.object, Some(Object::Vector(v)) if v.0 == number);
        let mut all: Vec<_> = table.worst.iter().filter(is).map(Case::took).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(of_vector(raises, 1), [5 * MS, 6 * MS, 7 * MS]);
    assert_eq!(of_vector(raises, 9), [8 * MS, 9 * MS, 10 * MS]);
    let softirqs = find(&found.tables, Kind::Softirq);
    assert_eq!(of_vector(softirqs, 4), [2 * MS; 6]);
    assert_eq!(of_vector(softirqs, 9), [3 * MS; 3]);
    // Only the end without a start counts as missed.
    assert_eq!(
        (softirqs.missed, handlers.missed),
        (missed(0, 1), missed(0, 0))
    );
}

#[test]
fn handlers_that_share_a_line_are_separate_and_each_name_has_a_row() {
    let all: Vec<_> = [(0, &b"a"[..]), (10, b"b"), (20, b"a")]
        .into_iter()
        .flat_map(|(ms, name)| handler(ms * MS, 0, 9, name))
        .collect();
    let found = tables_of(Analysis::Irq, Range::all(5), None, &all);
    let handlers = find(&found.tables, Kind::Handler);
    let mut counts: Vec<_> = handlers.rows.values().map(|row| row.sums.count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn a_gap_of_another_cpu_hides_no_handler() {
    let mut all = handler(10, 0, 9, b"a").to_vec();
    all.insert(1, lost(11, 1, 20));
    let found = tables(Analysis::Irq, &all);
    let handlers = find(&found, Kind::Handler);
    assert_eq!(
        (took(handlers), handlers.missed),
        (vec![(10, 2 * MS)], missed(0, 0))
    );
    all[1] = lost(11, 0, 20);
    let found = tables(Analysis::Irq, &all);
    let handlers = find(&found, Kind::Handler);
    assert_eq!((took(handlers), handlers.missed), (vec![], missed(1, 0)));
}

#[test]
fn a_softirq_waits_since_its_first_raise() {
    let raise = |time| of(at(time, 0, What::Raise { vector: 3 }));
    let all = [
        raise(1),
        raise(5),
        of(at(9, 0, What::Softirq { vector: 3 })),
        // The softirq is raised again while it runs.
        raise(10),
        of(at(12, 0, What::SoftirqEnd { vector: 3 })),
        of(at(14, 0, What::Softirq { vector: 3 })),
        of(at(15, 0, What::SoftirqEnd { vector: 3 })),
    ];
    let found = tables(Analysis::Irq, &all);
    assert_eq!(took(find(&found, Kind::Raise)), [(1, 8), (10, 4)]);
    assert_eq!(took(find(&found, Kind::Softirq)), [(9, 3), (14, 1)]);
}

/// On PREEMPT_RT, another thread may run the same vector before the preempted softirq continues.
#[test]
fn softirqs_of_two_threads_are_not_confused() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(at(10, 0, What::Softirq { vector: 3 })),
        of(switch(20, 0, 7, R, 8)),
        of(at(22, 0, What::Softirq { vector: 3 })),
        of(at(25, 0, What::SoftirqEnd { vector: 3 })),
        of(switch(30, 0, 8, S, 7)),
        of(at(40, 0, What::SoftirqEnd { vector: 3 })),
    ];
    assert_eq!(
        took(find(&tables(Analysis::Irq, &all), Kind::Softirq)),
        [(10, 30), (22, 3)]
    );
}
