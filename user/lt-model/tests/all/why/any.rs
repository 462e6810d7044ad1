// SPDX-License-Identifier: GPL-2.0 OR MIT

//! For random events: the pieces of a path tile the requested time, and pieces of other threads lie inside a wait.

use std::ops::Range;

use lt_model::why::{
    Cause, Piece, Search, Segment, Wait, causes, delays, handled, instead, path, states,
};
use lt_model::{
    Builder, Disk, Kept, Model, Stage, State, SwitchedOut, ThreadId, Waker, Wanted, What,
};
use proptest::prelude::*;

use crate::anything::{At, events, feed as feed_into, model};

fn feed(mut builder: Builder, events: &[At]) -> Builder {
    feed_into(&mut builder, events);
    builder
}

/// The segments, and the wakers of their waits. The number of a waker depends on what the model keeps.
fn segments(m: &Model, id: ThreadId, from: u64, to: u64) -> (Vec<Segment>, Vec<Option<Waker>>) {
    let mut segments = delays(m, id, from, to);
    let waits = segments.iter_mut().flat_map(|segment| &mut segment.waits);
    let wakers = waits.map(|wait| m.waker(wait.waker.take()?)).collect();
    (segments, wakers)
}

/// A path may have a hundred thousand pieces and waits.
#[test]
fn causes_pieces_and_waits_are_small() {
    assert!(size_of::<Cause>() <= 24);
    assert!(size_of::<Piece>() <= 80);
    assert!(size_of::<Wait>() <= 96);
}

/// At a gap, requests are forgotten, and the size falls. The size that exceeded the limit is still reported.
#[test]
fn the_largest_size_is_reported() {
    let request = What::Request {
        stage: Stage::Queued,
        disk: Disk(0),
        sector: 0,
        sectors: 8,
    };
    let events = [(9, 0, request), (10, 0, What::Lost { until: 0 })];
    let mut has_fallen = false;
    for limit in 0..feed(Builder::new(), &events).bytes() {
        let mut builder = Builder::new();
        builder.limit(limit);
        let builder = feed(builder, &events);
        if let Kept::Nothing(bytes) = builder.kept() {
            assert!(bytes > limit, "{bytes} {limit}");
            has_fallen |= builder.bytes() <= limit;
        }
    }
    assert!(has_fallen);
}

/// However long a trace is, a checkpoint of a builder that keeps nothing has the size of the current state.
#[test]
fn a_builder_that_keeps_nothing_does_not_grow() {
    let switch = |time, prev, next| -> At {
        let what = What::Switch {
            prev,
            prev_name: b"",
            out: SwitchedOut::Preempted,
            prev_prio: None,
            next,
            next_name: b"",
            next_prio: None,
        };
        (time, 0, what)
    };
    let turns = |mut builder, numbers: Range<u64>| {
        for time in numbers.map(|number| number << 33) {
            builder = feed(builder, &[switch(time, 7, 8), switch(time + 1, 8, 7)]);
        }
        builder
    };
    let mut builder = Builder::new();
    builder.keep_only(Wanted::default());
    let first = turns(builder, 0..10);
    let size = first.bytes();
    let all = turns(first, 10..1000);
    assert_eq!(all.bytes(), size);
    assert!(all.checkpoint().bytes() <= size);
}

proptest! {
    #[test]
    fn pieces_tile_the_requested_time(events in events(), from in 0..60u64, took in 0..60u64) {
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

    /// The first pass keeps only the waits, the second only the wanted parts: the path and the use of processors are
    /// the same as in the complete model.
    #[test]
    fn in_two_passes_a_path_is_the_same(events in events(), from in 0..60u64, took in 1..60u64, keep in 0..30u64) {
        let whole = model(&events);
        let kept = keep.min(from);
        let mut builder = Builder::new();
        builder.forget_before(kept);
        // Limits too small for everything: at some point, at most the waits are kept.
        let bytes = feed(Builder::new(), &events).bytes();
        for limit in [0, bytes / 3, bytes / 2, bytes - 1] {
            let mut builder = Builder::new();
            builder.forget_before(kept);
            builder.limit(limit);
            let builder = feed(builder, &events);
            match builder.kept() {
                Kept::Nothing(bytes) => prop_assert!(bytes > limit),
                // The limit is checked after each event.
                Kept::All | Kept::Waits => prop_assert!(builder.bytes() <= limit || events.is_empty()),
            }
        }
        let mut builder = Builder::new();
        builder.forget_before(kept);
        builder.keep_waits();
        let builder = feed(builder, &events);
        prop_assert_eq!(builder.kept(), Kept::Waits);
        let waits = builder.finish();
        for id in (0..whole.threads.len() as u32).map(ThreadId) {
            let mut builder = Builder::new();
            builder.forget_before(kept);
            builder.keep_only(Search::path(id, from, from + took).all(&waits));
            let part = feed(builder, &events).finish();
            let (expected, found) = (path(&whole, id, from, from + took), path(&part, id, from, from + took));
            prop_assert_eq!(&found, &expected);
            for piece in &expected {
                prop_assert_eq!(instead(&part, piece), instead(&whole, piece));
                let ran = |m| handled(m, piece.thread, piece.end);
                prop_assert_eq!(ran(&part), ran(&whole));
            }
            let name = |m: &Model, id: ThreadId| m.thread(id).and_then(|t| t.name).map(|n| m.names.text(n).to_string());
            prop_assert_eq!(name(&part, id), name(&whole, id));
        }
    }

    /// The segments, and the states of the wakers, are the same as in the complete model.
    #[test]
    fn in_two_passes_the_delays_are_the_same(
        events in events(), from in 0..60u64, took in 1..60u64, keep in 0..30u64, all_calls: bool
    ) {
        let to = from + took;
        let builder = || {
            let mut builder = Builder::new();
            builder.forget_before(keep.min(from));
            if all_calls {
                builder.has_all_calls();
            }
            builder
        };
        let whole = feed(builder(), &events).finish();
        let mut first = builder();
        first.keep_waits();
        let waits = feed(first, &events).finish();
        for id in (0..whole.threads.len() as u32).map(ThreadId) {
            let part = |wakers| {
                let mut second = builder();
                second.keep_only(Search::delays(&waits, id, from, to, wakers).all(&waits));
                feed(second, &events).finish()
            };
            let expected = segments(&whole, id, from, to);
            prop_assert_eq!(&segments(&part(false), id, from, to), &expected);
            let part = part(true);
            prop_assert_eq!(&segments(&part, id, from, to), &expected);
            for wait in expected.0.iter().flat_map(|segment| &segment.waits).filter(|wait| wait.cause.is_none()) {
                let Some(by) = wait.by else { continue };
                let of = |m| states(m, by, wait.begin, wait.end);
                prop_assert_eq!(of(&part), of(&whole));
            }
        }
    }

    /// The wanted parts are found in one part of the events after another, the last part first.
    #[test]
    fn in_parts_the_delays_are_the_same(
        events in events(), from in 0..60u64, took in 1..60u64, keep in 0..30u64, all_calls: bool,
        mut starts in prop::collection::vec(1..120usize, 0..5)
    ) {
        let to = from + took;
        starts.retain(|start| *start < events.len());
        starts.sort_unstable();
        starts.dedup();
        let builder = |wanted| {
            let mut builder = Builder::new();
            builder.forget_before(keep.min(from));
            if all_calls {
                builder.has_all_calls();
            }
            builder.keep_only(wanted);
            builder
        };
        let mut whole = builder(Wanted::default());
        whole.keep_all();
        let whole = feed(whole, &events).finish();
        let mut first = builder(Wanted::default());
        let mut checkpoints = vec![(0, first.checkpoint())];
        let mut at = 0;
        for start in starts {
            first = feed(first, &events[at..start]);
            checkpoints.push((start, first.checkpoint()));
            at = start;
        }
        let first = feed(first, &events[at..]).finish();
        for id in (0..whole.threads.len() as u32).map(ThreadId) {
            let mut search = Search::delays(&first, id, from, to, true);
            let mut end = events.len();
            for (start, checkpoint) in checkpoints.iter().rev() {
                let before = checkpoint.since();
                if search.needs(&before) {
                    let mut part = checkpoint.checkpoint();
                    part.keep_all();
                    search.look(&feed(part, &events[*start..end]).finish(), &before);
                }
                end = *start;
            }
            // Nothing is left before the first event.
            prop_assert!(!search.needs(&[]));
            let mut wanted = search.into_wanted();
            let mut passes = 0;
            let part = loop {
                passes += 1;
                let part = feed(builder(wanted.clone()), &events).finish();
                let found = Search::delays(&part, id, from, to, true).all(&part);
                if wanted.has_all(&found) {
                    break part;
                }
                wanted.add_all(&found);
            };
            // Each pass finds the wakers of the threads that the previous pass has found.
            prop_assert!(passes <= 5 + whole.threads.len(), "{passes}");
            let expected = segments(&whole, id, from, to);
            prop_assert_eq!(&segments(&part, id, from, to), &expected);
            prop_assert_eq!(path(&part, id, from, to), path(&whole, id, from, to));
            for wait in expected.0.iter().flat_map(|segment| &segment.waits).filter(|wait| wait.cause.is_none()) {
                let Some(by) = wait.by else { continue };
                let of = |m| states(m, by, wait.begin, wait.end);
                prop_assert_eq!(of(&part), of(&whole));
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
                let own: Vec<_> = thread.between(piece.begin, piece.end).collect();
                if piece.depth == 0 {
                    prop_assert_eq!(piece.thread, id);
                    continue;
                }
                // The piece explains one wait of the requested thread, or a time in which it spun.
                prop_assert_ne!(piece.thread, id);
                prop_assert_eq!(own.len(), 1, "{:?} {:?}", piece, own);
                let spins = m.handover(id, piece.begin).is_some_and(|of| of.begin <= piece.begin && piece.end <= of.end);
                prop_assert!(spins || matches!(own[0].state, State::Blocked(..)), "{piece:?} {own:?}");
                // The piece shows the actual activity of the other thread.
                let theirs: Vec<_> = m.thread(piece.thread).unwrap().between(piece.begin, piece.end).collect();
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
