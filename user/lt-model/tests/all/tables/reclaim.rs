// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reclaim and compaction of memory.

use super::*;

fn begin(time: u64, cpu: u32, kind: Reclaim) -> Seen<'static> {
    seen(time, cpu, Step::Reclaims(kind))
}

fn end(time: u64, cpu: u32, kind: Reclaim) -> Seen<'static> {
    seen(time, cpu, Step::Reclaimed(kind))
}

/// The sums of the rows by kind.
fn sums(all: &[Seen<'static>]) -> Vec<(Reclaim, u64, u64)> {
    let found = tables_of(Analysis::Reclaim, Range::all(9), Some(By::Object), all);
    let row = |((_, key), row): (&(u64, Key), &Row)| match key {
        Key::Object(Object::Reclaim(kind)) => (*kind, row.sums.sum, row.sums.count),
        other => panic!("{other:?}"),
    };
    let mut sums: Vec<_> = found.tables[0].rows.iter().map(row).collect();
    sums.sort_unstable();
    sums
}

#[test]
fn reclaim_is_identified_by_thread_and_kind() {
    use Reclaim::{Compaction, Direct, Kswapd, Memcg};
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(0, 1, 0, R, 8)),
        begin(10, 0, Direct),
        begin(11, 1, Kswapd),
        // A compaction inside a reclaim is an operation of its own.
        begin(12, 0, Compaction),
        end(14, 0, Compaction),
        of(switch(15, 0, 7, S, 0)),
        // kswapd goes on.
        begin(16, 1, Kswapd),
        of(switch(18, 0, 0, R, 7)),
        end(20, 0, Direct),
        begin(21, 0, Memcg),
        end(24, 0, Memcg),
        end(30, 1, Kswapd),
        begin(40, 0, Direct),
        end(41, 0, Direct),
    ];
    let expected = [
        (Direct, 11, 2),
        (Memcg, 3, 1),
        (Compaction, 2, 1),
        (Kswapd, 19, 1),
    ];
    assert_eq!(sums(&all), expected);
    let found = tables_of(Analysis::Reclaim, Range::all(9), Some(By::Thread), &all);
    let table = &found.tables[0];
    assert_eq!(table.missed, missed(0, 0));
    let worst = table.worst[0].thread.unwrap();
    assert_eq!(found.task(worst), (8, Some("hog")));
    assert_eq!((table.whole.sums.sum, table.whole.sums.count), (35, 5));
}

#[test]
fn a_reclaim_counts_on_the_cpu_where_it_ends() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        begin(10, 0, Reclaim::Direct),
        of(switch(12, 0, 7, S, 8)),
        // The thread moves to another CPU.
        of(switch(15, 1, 0, R, 7)),
        begin(16, 0, Reclaim::Memcg),
        end(19, 0, Reclaim::Memcg),
        end(20, 1, Reclaim::Direct),
    ];
    let expected = [(Kind::Reclaim, 0, 3), (Kind::Reclaim, 1, 10)];
    assert_eq!(by_cpu(Analysis::Reclaim, &all), expected);
}

#[test]
fn reclaim_at_the_edges_and_over_gaps_is_counted() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        end(1, 0, Reclaim::Direct),
        begin(10, 0, Reclaim::Direct),
        lost(12, 1, 13),
        end(20, 0, Reclaim::Direct),
        begin(30, 0, Reclaim::Kswapd),
        lost(32, 1, 33),
        // kswapd may have slept meanwhile.
        begin(40, 0, Reclaim::Kswapd),
        end(47, 0, Reclaim::Kswapd),
        begin(50, 0, Reclaim::Memcg),
    ];
    let table = &tables(Analysis::Reclaim, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(40, 7)], missed(2, 2)));
}

#[test]
fn a_reclaim_whose_end_is_missing_is_counted_even_if_its_thread_is_replaced() {
    let fork = What::Fork {
        child: 7,
        name: b"new",
    };
    let all = [
        of(switch(0, 0, 0, R, 7)),
        begin(10, 0, Reclaim::Direct),
        // The reclaim ends, and its thread, too.
        lost(12, 0, 13),
        of(at(20, 0, fork)),
        of(switch(25, 0, 0, R, 7)),
        begin(30, 0, Reclaim::Direct),
        end(34, 0, Reclaim::Direct),
    ];
    let table = &tables(Analysis::Reclaim, &all)[0];
    assert_eq!((took(table), table.missed), (vec![(30, 4)], missed(1, 0)));
}
