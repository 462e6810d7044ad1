// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Properties that hold for all traces.

use proptest::prelude::*;

use super::*;

const ALL: [Analysis; 11] = [
    WAKEUPS,
    SLEEPS,
    Analysis::Cpu,
    Analysis::Irq,
    Analysis::Syscalls,
    Analysis::Io,
    Analysis::Locks,
    WORK,
    Analysis::Reclaim,
    Analysis::Net(net::LTTNG),
    Analysis::Net(net::PERF),
];

/// An event, with few different CPUs, threads and objects; `n` selects its kind.
fn some(time: u64, cpu: u32, n: u32, tid: i32, more: u32) -> Seen<'static> {
    let known = |what| seen(time, cpu, Step::Known(what));
    let names: [&'static [u8]; 3] = [b"read", b"futex", b"write"];
    let name = names[more as usize % 3];
    match n {
        0..10 => of(switch(
            time,
            cpu,
            tid,
            if more.is_multiple_of(2) { S } else { R },
            (tid + 1 + more as i32 % 2) % 5,
        )),
        10..15 => of(waking(time, cpu, tid)),
        15 => known(What::Exec {
            tid,
            old: more as i32 % 5,
        }),
        16 => known(What::Irq {
            number: 4,
            name: b"disk",
        }),
        17 => known(What::IrqEnd { number: 4 }),
        18 => known(What::Raise { vector: more % 3 }),
        19 => known(What::Softirq { vector: more % 3 }),
        20 => known(What::SoftirqEnd { vector: more % 3 }),
        21 | 22 => known(What::Call { name }),
        23 | 24 => seen(
            time,
            cpu,
            Step::Return {
                call: Some(name),
                result: Some(i64::from(more) - 2),
            },
        ),
        25 => known(What::Futex {
            op: more,
            address: 64,
        }),
        26 => seen(
            time,
            cpu,
            Step::Contended {
                lock: 64,
                flags: more,
            },
        ),
        27 => seen(time, cpu, Step::Acquired { lock: 64 }),
        28 => known(What::Fork {
            child: tid,
            name: b"child",
        }),
        29 => known(What::Lost {
            until: time + u64::from(more),
        }),
        30..35 => {
            use WorkStage::{Ended, Queued, Started};
            let stages = [Queued, Queued, Started, Started, Ended];
            let work = Work {
                stage: stages[n as usize % stages.len()],
                work: u64::from(more) / 4,
                function: Some(u64::from(more % 2)),
                workqueue: more.is_multiple_of(3).then_some(&b"events"[..]),
            };
            seen(time, cpu, Step::Work(work))
        }
        35..39 => {
            let kinds = [Reclaim::Direct, Reclaim::Kswapd];
            let kind = kinds[more as usize % kinds.len()];
            match n % 2 {
                0 => seen(time, cpu, Step::Reclaims(kind)),
                _ => seen(time, cpu, Step::Reclaimed(kind)),
            }
        }
        39..49 => {
            use PacketStage::{
                Backlog, Consumed, Copied, Dropped, Freed, Gro, Merged, Queued, Received, Sent,
                Started,
            };
            let stages = [
                Backlog, Received, Gro, Copied, Consumed, Dropped, Queued, Started, Sent, Freed,
                Merged,
            ];
            let packet = Packet {
                stage: stages[(n - 39 + more) as usize % stages.len()],
                skb: u64::from(more) / 3,
                device: [&b"lo"[..], b"eth0"][tid as usize % 2],
                len: 100 + u64::from(more) % 2,
                result: i64::from(n % 4) * 8,
            };
            seen(time, cpu, Step::Packet(packet))
        }
        _ => {
            use BlockStage::{Completed, Inserted, Issued, Merged, Requeued};
            let stages = [
                Inserted, Issued, Issued, Completed, Completed, Requeued, Merged,
            ];
            let block = Block {
                stage: stages[n as usize % stages.len()],
                disk: Disk(8 << 20),
                sector: u64::from(more) / 4 * 8,
                sectors: 8 + u64::from(more % 2) * 8,
                operation: Operation::Write,
                failed: more == 0,
            };
            seen(time, cpu, Step::Block(block))
        }
    }
}

fn events() -> impl Strategy<Value = Vec<Seen<'static>>> {
    let one = (0..3u64, 0..3u32, 0..59u32, 0..5i32, 0..8u32);
    prop::collection::vec(one, 0..300).prop_map(|all| {
        let mut time = 0;
        let each = all.into_iter().map(|(later, cpu, n, tid, more)| {
            time += later;
            some(time, cpu, n, tid, more)
        });
        each.collect()
    })
}

/// Count and sum of all rows together.
fn of_rows(table: &Table) -> (u64, u64) {
    let rows = table.rows.values();
    rows.fold((0, 0), |(count, sum), row| {
        (count + row.sums.count, sum + row.sums.sum)
    })
}

proptest! {
    #[test]
    fn groups_add_up_to_the_whole_and_all_groupings_agree(all in events()) {
        for analysis in ALL {
            let by = |by| tables_of(analysis, Range::all(5), Some(by), &all).tables;
            let first = by(By::Thread);
            for other in [By::Thread, By::Process, By::Name, By::Cpu, By::Priority, By::Object, By::Device, By::Lock, By::Call, By::File, By::State, By::Waker, By::Workqueue, By::Queuer, By::Stack].map(by) {
                for (table, first) in other.iter().zip(&first) {
                    prop_assert_eq!(of_rows(table), (table.whole.sums.count, table.whole.sums.sum));
                    prop_assert_eq!(&table.whole, &first.whole);
                    prop_assert_eq!(&table.worst, &first.worst);
                    prop_assert_eq!(table.missed, first.missed);
                }
            }
        }
    }

    #[test]
    fn intervals_lose_nothing(all in events(), every in 1..50u64) {
        for analysis in ALL {
            let whole = tables_of(analysis, Range::all(5), None, &all).tables;
            let range = Range { every: Some(every), ..Range::all(5) };
            let parts = tables_of(analysis, range, None, &all).tables;
            for (parts, whole) in parts.iter().zip(&whole) {
                prop_assert_eq!(of_rows(parts), of_rows(whole));
                prop_assert_eq!((&parts.whole, parts.missed), (&whole.whole, whole.missed));
                let recorded = |table: &Table| table.recorded.values().sum::<u64>();
                prop_assert_eq!(recorded(parts), recorded(whole));
            }
        }
    }

    /// However often operations are taken, each is returned once, unless all are void because a CPU
    /// has no stream.
    #[test]
    fn each_operation_can_be_taken(all in events(), often in 1..50usize) {
        let range = Range { each: true, ..Range::all(100_000) };
        for analysis in ALL {
            let mut taken = Vec::new();
            let mut builder = Builder::new(analysis, range, None);
            for (n, seen) in all.iter().enumerate() {
                builder.feed(seen);
                if n % often == 0 {
                    taken.extend(builder.take());
                }
            }
            for mut table in builder.finish().tables {
                let of_kind = taken.iter().filter(|(kind, _)| *kind == table.kind);
                let mut cases: Vec<_> = of_kind.flat_map(|(_, cases)| cases.clone()).collect();
                cases.extend(table.take());
                if table.dropped {
                    prop_assert_eq!(&table.worst, &[]);
                    continue;
                }
                cases.sort_by_key(|case| (std::cmp::Reverse(case.took()), case.begin, case.cpu));
                prop_assert_eq!(&cases, &table.worst);
                prop_assert_eq!(table.take(), []);
            }
        }
    }

    #[test]
    fn a_thread_alone_has_the_rows_that_it_has_among_others(all in events(), tid in 0..5i32) {
        for analysis in ALL {
            let found = tables_of(analysis, Range::all(1000), Some(By::Thread), &all);
            let range = Range { tid: Some(tid), ..Range::all(1000) };
            let alone = tables_of(analysis, range, Some(By::Thread), &all).tables;
            for (table, alone) in found.tables.iter().zip(&alone) {
                let is = |case: &&Case| case.who.is_some_and(|(of, _)| of == tid);
                let cases: Vec<_> = table.worst.iter().filter(is).copied().collect();
                prop_assert_eq!(&alone.worst, &cases);
            }
        }
    }

    /// No duration overlaps a gap.
    #[test]
    fn no_duration_of_a_thread_spans_a_gap(all in events()) {
        let gaps: Vec<(u64, u64)> = all.iter().filter_map(|seen| match seen.step {
            Step::Known(What::Lost { until }) => Some((seen.time, until)),
            _ => None,
        }).collect();
        for analysis in [WAKEUPS, SLEEPS, Analysis::Syscalls, Analysis::Io, Analysis::Locks, WORK, Analysis::Reclaim, Analysis::Net(net::LTTNG), Analysis::Net(net::PERF)] {
            for table in tables(analysis, &all) {
                for case in &table.worst {
                    let hidden = gaps.iter().any(|(from, until)| *from < case.end && *until > case.begin);
                    prop_assert!(!hidden, "{case:?} {gaps:?}");
                }
            }
        }
    }
}
