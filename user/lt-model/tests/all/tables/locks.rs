// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Contended locks, and futexes.

use super::*;

fn contended(time: u64, cpu: u32, lock: u64, flags: u32) -> Seen<'static> {
    seen(time, cpu, Step::Contended { lock, flags })
}

fn acquired(time: u64, cpu: u32, lock: u64) -> Seen<'static> {
    seen(time, cpu, Step::Acquired { lock })
}

fn kinds(table: &Table) -> Vec<&'static str> {
    let mut cases: Vec<_> = table.worst.iter().collect();
    cases.sort_by_key(|case| case.begin);
    let kind = |case: &&Case| match case.object {
        Some(Object::Lock(kind, _) | Object::Futex(kind, _)) => kind,
        _ => "?",
    };
    cases.iter().map(kind).collect()
}

#[test]
fn waits_are_of_a_lock_and_a_thread() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        of(switch(0, 1, 0, R, 8)),
        contended(10, 0, 0xa0, 32),
        contended(11, 1, 0xa0, 32),
        // The waiter for a mutex goes to sleep, which does not end its wait.
        contended(12, 0, 0xa0, 32 | 1),
        acquired(20, 1, 0xa0),
        acquired(30, 0, 0xa0),
        // A semaphore starts with a spinlock, which has the same address.
        contended(40, 0, 0xb0, 0),
        contended(41, 0, 0xb0, 1),
        acquired(42, 0, 0xb0),
        acquired(50, 0, 0xb0),
        contended(60, 1, 0xc0, 1 | 4),
        acquired(61, 1, 0xc0),
        acquired(70, 1, 0xd0),
    ];
    let found = tables(Analysis::Locks, &all);
    let table = find(&found, Kind::Contention);
    assert_eq!(took(table), [(10, 20), (11, 9), (40, 10), (60, 1)]);
    assert_eq!(kinds(table), ["mutex", "mutex", "semaphore", "rwlock:W"]);
    assert_eq!(table.missed, missed(0, 1));
}

#[test]
fn a_wait_counts_on_the_cpu_where_the_lock_is_acquired() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        contended(10, 0, 0xa0, 32),
        of(switch(12, 0, 7, S, 8)),
        // The waiter moves to another CPU.
        of(switch(15, 1, 0, R, 7)),
        contended(17, 0, 0xb0, 1),
        acquired(19, 0, 0xb0),
        acquired(20, 1, 0xa0),
    ];
    let expected = [(Kind::Contention, 0, 2), (Kind::Contention, 1, 10)];
    assert_eq!(by_cpu(Analysis::Locks, &all), expected);
}

/// The waiter goes to sleep after a gap of another CPU.
#[test]
fn a_wait_for_a_mutex_over_a_gap_is_missed_once() {
    let all = [
        of(switch(0, 0, 0, R, 7)),
        contended(10, 0, 0xa0, 32 | 1),
        lost(11, 1, 15),
        contended(20, 0, 0xa0, 32),
        acquired(30, 0, 0xa0),
        contended(40, 0, 0xa0, 32 | 1),
        acquired(45, 0, 0xa0),
    ];
    let found = tables(Analysis::Locks, &all);
    let table = find(&found, Kind::Contention);
    assert_eq!((took(table), table.missed), (vec![(40, 5)], missed(1, 0)));
}

#[test]
fn calls_of_futex_are_by_operation() {
    let futex = |time, op| of(at(time, 0, What::Futex { op, address: 0x70 }));
    let end = |time, call: &'static [u8], result| {
        let result = Some(result);
        seen(
            time,
            0,
            Step::Return {
                call: Some(call),
                result,
            },
        )
    };
    let all = [
        of(switch(0, 0, 0, R, 7)),
        futex(10, 128),
        end(15, b"futex", -110),
        futex(20, 6 | 128),
        end(27, b"futex", 0),
        of(at(30, 0, What::Call { name: b"read" })),
        end(40, b"read", 0),
    ];
    let found = tables(Analysis::Locks, &all);
    let table = find(&found, Kind::Futex);
    assert_eq!(
        (took(table), kinds(table)),
        (vec![(10, 5), (20, 7)], vec!["wait", "lock_pi"])
    );
    assert_eq!(
        (table.whole.extra(Extra::Errors), table.missed),
        (1, missed(0, 0))
    );
}

#[test]
fn a_futex_call_without_a_recorded_start_is_missed() {
    let end = |time, call: &'static [u8]| {
        let step = Step::Return {
            call: Some(call),
            result: Some(0),
        };
        seen(time, 0, step)
    };
    let all = [
        of(switch(0, 0, 0, R, 7)),
        end(10, b"futex"),
        end(20, b"futex_wait"),
        end(30, b"read"),
    ];
    let found = tables(Analysis::Locks, &all);
    let table = find(&found, Kind::Futex);
    assert_eq!((took(table), table.missed), (vec![], missed(0, 2)));
}
