// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Small graphs with a known critical path, from the tests of other implementations, such as Trace Compass's unit
//! tests of its bounded critical path, as tables.
//!
//! A letter is a thread; `A 0 R 6 B 8 R 9` runs from 0 to 6, is blocked until 8 and runs until 9. `B 8 > A 8` is an
//! edge: B woke A at 8. The edge `B 3 > A 4` took from 3 to 4 to arrive.

use lt_model::why::{Cause, path};
use lt_model::{Context, Interval, Model, Sleep, State, Thread, ThreadId, Waker, WakerId};

fn thread(letter: &str) -> ThreadId {
    ThreadId(u32::from(letter.as_bytes()[0] - b'A'))
}

fn model(lines: &[&str], edges: &[&str]) -> Model {
    let mut m = Model::default();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(thread(words[0]).0 as usize, m.threads.len());
        let mut begin = words[1].parse().unwrap();
        let mut intervals = Vec::new();
        for pair in words[2..].chunks(2) {
            let state = match pair[0] {
                "R" => State::Running(None),
                "B" => State::Blocked(Sleep::Interruptible, None),
                other => panic!("{other}"),
            };
            let end = pair[1].parse().unwrap();
            intervals.push(Interval {
                begin,
                end,
                state,
                cpu: None,
                waker: None,
            });
            begin = end;
        }
        m.threads.push(Thread {
            tid: 1,
            name: None,
            earlier: Vec::new(),
            born: false,
            maker: None,
            ended: None,
            intervals: intervals.into_iter().collect(),
        });
    }
    for edge in edges {
        let [who, from, _, whom, to] = edge.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{edge}")
        };
        let (thread_, context) = match who {
            "timer" => (None, Some(Context::Timer)),
            who => (Some(thread(who)), None),
        };
        let waker = m.wakers.push(Waker {
            time: from.parse().unwrap(),
            cpu: 0,
            thread: thread_,
            context,
        });
        let to: u64 = to.parse().unwrap();
        let whom = &mut m.threads[thread(whom).0 as usize];
        let ends = |i: &Interval| i.end == to;
        assert!(whom.intervals.iter().any(|i| ends(&i)));
        let woken = |i: Interval| Interval {
            waker: if ends(&i) { Some(waker) } else { i.waker },
            ..i
        };
        whom.intervals = whom.intervals.iter().map(woken).collect();
    }
    m
}

/// The path of A from its start to its end: `A R 6, B R 8, A R 9`.
fn path_of_a(m: &Model) -> String {
    let (from, to) = m.threads[0].span().unwrap();
    let mut told: Vec<(u32, &str, u64)> = Vec::new();
    for piece in path(m, ThreadId(0), from, to) {
        let what = match piece.cause {
            Cause::Running(_) => "R",
            Cause::Blocked(_) => "B",
            Cause::For(..) => "T",
            Cause::Transit => "N",
            Cause::Unknown(_) => "?",
            other => panic!("{other:?}"),
        };
        match told.last_mut() {
            Some((thread, last, end)) if (*thread, *last) == (piece.thread.0, what) => {
                *end = piece.end
            }
            _ => told.push((piece.thread.0, what, piece.end)),
        }
    }
    let letter = |n: u32| char::from(b'A' + n as u8);
    let all = told
        .iter()
        .map(|(t, what, end)| format!("{} {what} {end}", letter(*t)));
    all.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_path_of_each_graph_is_the_known_one() {
    let table: &[(&str, &[&str], &[&str], &str)] = &[
        ("basic", &["A 0 R 1"], &[], "A R 1"),
        (
            "woken by its own timer",
            &["A 0 R 2 B 3 R 4"],
            &["timer 3 > A 3"],
            "A R 2, A T 3, A R 4",
        ),
        (
            "nobody wakes it",
            &["A 0 R 2 B 4 R 6"],
            &[],
            "A R 2, A B 4, A R 6",
        ),
        (
            "woken by one of whom nothing else is known",
            &["A 0 R 2 B 4 R 6", "B 9 R 10"],
            &["B 3 > A 4"],
            "A R 2, B ? 3, A N 4, A R 6",
        ),
        (
            "woken by one that it made",
            &["A 0 R 4 B 6 R 8", "B 3 R 6"],
            &["B 6 > A 6"],
            "A R 4, B R 6, A R 8",
        ),
        (
            "opened",
            &["A 0 R 3 B 6 R 9", "B 0 R 9"],
            &["B 6 > A 6"],
            "A R 3, B R 6, A R 9",
        ),
        (
            // The wakeup was sent before A waited, so no activity of B is its delay.
            "opened, and it takes a while to arrive",
            &["A 0 R 3 B 6 R 9", "B 0 R 5"],
            &["B 2 > A 6"],
            "A R 3, A N 6, A R 9",
        ),
        (
            "mutual",
            &["A 0 R 3 B 4 R 5", "B 0 R 1 B 2 R 5"],
            &["A 2 > B 2", "B 4 > A 4"],
            "A R 3, B R 4, A R 5",
        ),
        (
            "embedded",
            &["A 0 R 6 B 8 B 10 R 12", "B 4 R 8", "C 2 R 10"],
            &["B 8 > A 8", "C 10 > A 10"],
            "A R 6, B R 8, C R 10, A R 12",
        ),
        (
            "interleaved",
            &["A 0 R 6 B 8 B 10 R 12", "B 2 R 8", "C 4 R 10"],
            &["B 8 > A 8", "C 10 > A 10"],
            "A R 6, B R 8, C R 10, A R 12",
        ),
        (
            "nested",
            &[
                "A 0 R 1 B 6 R 7",
                "B 1 R 2 B 5 R 6",
                "C 2 R 3 B 4 R 5",
                "D 3 R 4",
            ],
            &["D 4 > C 4", "C 5 > B 5", "B 6 > A 6"],
            "A R 1, B R 2, C R 3, D R 4, C R 5, B R 6, A R 7",
        ),
        (
            // B sends to C, which sends to D: packets are not followed from one to the next.
            "woken by one that a packet has reached",
            &["A 0 R 1 B 11 R 12", "B 3 R 5", "C 6 R 8", "D 9 R 11"],
            &["D 11 > A 11"],
            "A R 1, D ? 9, D R 11, A R 12",
        ),
        (
            // B waits longer than A: only the part of B's wait within A's wait counts.
            "the waker waited before",
            &["A 0 R 5 B 9 R 10", "B 0 B 8 R 9", "C 0 R 8"],
            &["C 8 > B 8", "B 9 > A 9"],
            "A R 5, C R 8, B R 9, A R 10",
        ),
        (
            // Each wakes the other at the same time.
            "in a circle",
            &["A 0 R 2 B 5 R 6", "B 0 R 1 B 5 R 6"],
            &["A 5 > B 5", "B 5 > A 5"],
            "A R 2, B B 5, A R 6",
        ),
    ];
    for (name, lines, edges, expected) in table {
        assert_eq!(path_of_a(&model(lines, edges)), *expected, "{name}");
    }
}

#[test]
fn a_cycle_of_threads_is_left_at_once() {
    let m = model(
        &["A 0 R 2 B 5 R 6", "B 0 R 1 B 5 R 6", "C 0 R 1 B 5 R 6"],
        &["A 5 > B 5", "B 5 > C 5", "C 5 > A 5"],
    );
    let depths: Vec<_> = path(&m, ThreadId(0), 0, 6)
        .iter()
        .map(|p| p.depth)
        .collect();
    assert_eq!(depths, [0, 2, 0]);
}

#[test]
fn a_long_chain_has_an_end() {
    // Thread n waits for thread n + 1 from n + 1 on, and is woken at 9999 - n.
    const N: u64 = 3000;
    let interval = |begin, end, state, waker| Interval {
        begin,
        end,
        state,
        cpu: None,
        waker,
    };
    let blocked = State::Blocked(Sleep::Uninterruptible, None);
    let running = State::Running(None);
    let threads = (0..N).map(|n| Thread {
        tid: n as i32,
        name: None,
        earlier: Vec::new(),
        born: false,
        maker: None,
        ended: None,
        intervals: [
            interval(n, n + 1, running, None),
            interval(n + 1, 10_000 - n - 1, blocked, Some(WakerId(n as u32))),
            interval(10_000 - n - 1, 10_000 - n, running, None),
        ]
        .into_iter()
        .collect(),
    });
    let waker = |n| Waker {
        time: 10_000 - n - 1,
        cpu: 0,
        thread: Some(ThreadId(n as u32 + 1)),
        context: None,
    };
    let mut m = Model::default();
    m.threads = threads.collect();
    m.wakers = (0..N).map(waker).collect();
    let pieces = path(&m, ThreadId(0), 0, 10_000);
    assert_eq!(pieces.iter().map(|p| p.end - p.begin).sum::<u64>(), 10_000);
    assert!(
        pieces
            .iter()
            .any(|p| p.cause == Cause::Blocked(None) && p.depth > 100)
    );
}
