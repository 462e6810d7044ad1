// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Whatever happened: the pieces of a path tile the time that was asked for, and those of others lie inside a wait.

use lt_analyze::{Cause, causes, instead, path};
use lt_model::{Builder, Event, Model, Sleep, State, SwitchedOut, ThreadId, What};
use proptest::prelude::*;

fn out() -> impl Strategy<Value = SwitchedOut> {
    prop_oneof![
        3 => Just(SwitchedOut::Blocked(Sleep::Interruptible)),
        2 => Just(SwitchedOut::Preempted),
        1 => Just(SwitchedOut::Blocked(Sleep::Idle)),
        1 => Just(SwitchedOut::Dead),
    ]
}

fn name() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![Just(&b""[..]), Just(&b"a"[..]), Just(&b"ksoftirqd/0"[..])]
}

fn what() -> impl Strategy<Value = What<'static>> {
    let tid = || 0..6i32;
    prop_oneof![
        6 => (tid(), out(), tid(), name(), name()).prop_map(|(prev, out, next, prev_name, next_name)| {
            What::Switch { prev, prev_name, out, next, next_name }
        }),
        4 => (tid(), name(), 0..3u32).prop_map(|(tid, name, target)| What::Waking { tid, name, target }),
        2 => (tid(), name(), 0..3u32).prop_map(|(tid, name, target)| What::Wakeup { tid, name, target }),
        1 => (tid(), name()).prop_map(|(child, name)| What::Fork { child, name }),
        1 => (tid(), name()).prop_map(|(tid, name)| What::There { tid, name }),
        2 => name().prop_map(|name| What::Call { name }),
        2 => Just(What::Return),
        1 => (0..3i32, name()).prop_map(|(number, name)| What::Irq { number, name }),
        1 => (0..3i32).prop_map(|number| What::IrqEnd { number }),
        1 => (0..12u32).prop_map(|vector| What::Softirq { vector }),
        1 => (0..12u32).prop_map(|vector| What::SoftirqEnd { vector }),
        1 => Just(What::Timer),
        1 => Just(What::TimerEnd),
        1 => name().prop_map(|name| What::Ipi { name }),
        1 => Just(What::IpiEnd),
        1 => (0..100u64).prop_map(|since| What::Lost { since }),
    ]
}

/// In the order of time, nearly: a tracer's clocks may be off by a little.
fn events() -> impl Strategy<Value = Vec<(u64, u32, What<'static>)>> {
    let event = (
        0..4u64,
        prop_oneof![9 => 0..3u32, 1 => Just(u32::MAX)],
        what(),
    );
    prop::collection::vec(event, 0..120).prop_map(|mut events| {
        let mut time = 10;
        for (delta, ..) in &mut events {
            time = (time + *delta).saturating_sub(1);
            *delta = time;
        }
        events
    })
}

fn model(events: &[(u64, u32, What<'static>)]) -> Model {
    let mut builder = Builder::new();
    for (time, cpu, what) in events {
        builder.feed(&Event {
            time: *time,
            cpu: *cpu,
            what: *what,
        });
    }
    builder.finish()
}

proptest! {
    #[test]
    fn pieces_tile_what_was_asked_for(events in events(), from in 0..60u64, took in 0..60u64) {
        let m = model(&events);
        let to = from + took;
        for id in (0..m.threads.len() as u32).map(ThreadId) {
            let pieces = path(&m, id, from, to);
            prop_assert_eq!(pieces.first().map_or(from, |p| p.begin), from);
            prop_assert_eq!(pieces.last().map_or(from, |p| p.end), to);
            prop_assert!(pieces.windows(2).all(|p| p[0].end == p[1].begin), "{pieces:?}");
            prop_assert!(pieces.iter().all(|p| p.begin < p.end));
            let sums = causes(&pieces);
            prop_assert_eq!(sums.iter().map(|s| s.time).sum::<u64>(), took);
            prop_assert_eq!(sums.iter().map(|s| s.count).sum::<u64>(), pieces.len() as u64);
            prop_assert!(sums.windows(2).all(|s| s[0].time >= s[1].time));
            for piece in &pieces {
                let of_processor = instead(&m, piece).map_or(0, |(_, took)| took);
                prop_assert!(of_processor <= piece.end - piece.begin);
            }
        }
    }

    #[test]
    fn a_piece_of_another_thread_lies_inside_a_wait(events in events()) {
        let m = model(&events);
        for (id, thread) in (0..).map(ThreadId).zip(&m.threads) {
            let Some((from, to)) = thread.span() else {
                continue;
            };
            for piece in path(&m, id, from, to) {
                prop_assert!(piece.inside.0 <= piece.begin && piece.end <= piece.inside.1, "{piece:?}");
                prop_assert!(piece.depth < m.threads.len(), "{piece:?}");
                let own = thread.between(piece.begin, piece.end);
                if piece.depth == 0 {
                    prop_assert_eq!(piece.thread, id);
                    continue;
                }
                // It explains one wait of the thread that was asked for, or the time before that was born.
                prop_assert_ne!(piece.thread, id);
                prop_assert_eq!(own.len(), 1, "{:?} {:?}", piece, own);
                prop_assert!(matches!(own[0].state, State::Blocked(..)), "{piece:?} {own:?}");
                // What is told of the other is what it did.
                let theirs = m.thread(piece.thread).unwrap().between(piece.begin, piece.end);
                let fits = match piece.cause {
                    Cause::Running(_) => theirs.len() == 1 && matches!(theirs[0].state, State::Running(_)),
                    Cause::Waiting => theirs.len() == 1 && theirs[0].state == State::Waiting,
                    Cause::Preempted => theirs.len() == 1 && theirs[0].state == State::Preempted,
                    _ => true,
                };
                prop_assert!(fits, "{piece:?} {theirs:?}");
            }
        }
    }
}
