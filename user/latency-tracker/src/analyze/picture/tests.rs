// SPDX-License-Identifier: GPL-2.0 OR MIT

use lt_model::why::Cause;
use lt_model::{Event, Sleep, SwitchedOut, What, why};
use proptest::prelude::*;

use super::pftrace::{Pftrace, Slice};
use super::*;
use crate::analyze::made::{R, S, at, chain, model, switch, waking};
use crate::analyze::words::Facts;

/// Draws a thread's path in that time.
fn drawn(m: &Model, thread: ThreadId, range: (u64, u64)) -> (Vec<Piece>, Pftrace) {
    let pieces = why::path(m, thread, range.0, range.1);
    let picture = Picture {
        model: m,
        facts: &Facts::NONE,
        range,
        alerts: Vec::new(),
        states: Vec::new(),
        paths: vec![Way {
            thread,
            range,
            pieces: &pieces,
            alert: None,
        }],
    };
    let mut bytes = Vec::new();
    picture.draw(&mut bytes, &AtomicBool::new(false)).unwrap();
    let trace = Pftrace::read(&bytes);
    (pieces, trace)
}

/// Each slice as `begin..end name`, after one dot for each enclosing slice.
fn told(trace: &Pftrace, track: &str) -> Vec<String> {
    let slices = trace.on(trace.track(track).unwrap());
    let one = |s: &&Slice| format!("{}{}..{} {}", ".".repeat(s.depth), s.begin, s.end, s.name);
    slices.iter().map(one).collect()
}

#[test]
fn a_chain_down_to_a_device_is_drawn() {
    let m = model(&chain(0));
    let thread = m.by_tid(7).next().unwrap();
    let (_, trace) = drawn(&m, thread, (0, 20));
    assert_eq!(
        told(&trace, "Critical path of late/7"),
        [
            "0..1 late/7 runs",
            "1..3 late/7 runs in fsync",
            "3..15 late/7 waits in fsync for hog/8",
            ".3..5 hog/8 runs",
            ".5..10 hog/8 waits for disk (interrupt 24)",
            ".10..12 hog/8 woken, waits for a CPU",
            ".12..15 hog/8 runs",
            "15..18 late/7 woken, waits for a CPU",
            "18..20 late/7 runs in fsync",
        ]
    );
    assert_eq!(
        told(&trace, "CPU 0"),
        [
            "0..3 late/7",
            "3..5 hog/8",
            "9..11 disk (interrupt 24)",
            "12..18 hog/8",
            "18..20 late/7"
        ]
    );
    assert_eq!(
        told(&trace, "hog/8"),
        [
            "0..3 not recorded: no earlier event names the thread",
            "3..5 runs",
            "5..10 waits for disk (interrupt 24)",
            "10..12 woken, waits for a CPU",
            "12..18 runs",
            "18..20 waits; the waker is not recorded"
        ]
    );
    let named = |s: &Slice| (trace.tracks[&s.track].0.clone(), s.name.clone(), s.begin);
    let arrows: Vec<_> = trace
        .arrows()
        .iter()
        .map(|(from, to)| (named(from), named(to)))
        .collect();
    let end = |track: &str, name: &str, time| (track.to_string(), name.to_string(), time);
    let waits = "woken, waits for a CPU";
    assert_eq!(
        arrows,
        [
            (end("CPU 0", "wakes hog/8", 10), end("hog/8", waits, 10)),
            (end("hog/8", "wakes late/7", 15), end("late/7", waits, 15))
        ]
    );
    // The use of the CPU that a thread waited for is printed at the wait.
    let path = trace.on(trace.track("Critical path of late/7").unwrap());
    let value = &path[7].values;
    assert_eq!(value["meanwhile"], "woken, waits for CPU 0 (hog/8 for 3ns)");
    assert_eq!(value["cpu"], "0");
}

#[test]
fn an_alert_is_above_its_path_and_both_may_begin_before_the_trace() {
    let m = model(&[switch(100, 0, 0, R, 7), switch(120, 0, 7, S, 0)]);
    let thread = m.by_tid(7).next().unwrap();
    let pieces = why::path(&m, thread, 90, 110);
    let alarm = |name: &str, range| Alarm {
        name: name.into(),
        range,
        values: vec![("verdict", Value::Text("It ran.".into()))],
    };
    let picture = Picture {
        model: &m,
        facts: &Facts::NONE,
        range: (88, 112),
        alerts: vec![
            alarm("Alert 1 of x", (95, 105)),
            alarm("Alert 2 of x", (90, 110)),
        ],
        states: Vec::new(),
        paths: vec![Way {
            thread,
            range: (90, 110),
            pieces: &pieces,
            alert: Some(1),
        }],
    };
    let mut bytes = Vec::new();
    picture.draw(&mut bytes, &AtomicBool::new(false)).unwrap();
    let trace = Pftrace::read(&bytes);
    assert_eq!(told(&trace, "Alert 1 of x"), ["95..105 Alert 1 of x"]);
    assert_eq!(told(&trace, "Alert 2 of x"), ["90..110 Alert 2 of x"]);
    let path = trace.track("Critical path of late/7").unwrap();
    assert_eq!(trace.tracks[&path].1, trace.track("Alert 2 of x"));
    assert_eq!(
        told(&trace, "Critical path of late/7"),
        [
            "90..100 late/7 not recorded: no earlier event names the thread",
            "100..110 late/7 runs"
        ]
    );
    assert_eq!(told(&trace, "late/7"), ["100..112 runs"]);
    let alert = trace.on(trace.track("Alert 2 of x").unwrap())[0];
    assert_eq!(alert.values["verdict"], "It ran.");
}

#[test]
fn a_thread_that_spins_exists_and_waits_for_the_owner_of_the_lock() {
    let address = 0x7f00;
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        at(10, 0, What::Futex { op: 6, address }),
        at(99, 1, What::Futex { op: 7, address }),
        waking(100, 1, 7),
        at(110, 0, What::Return),
        switch(120, 0, 7, S, 0),
    ]);
    let thread = m.by_tid(7).next().unwrap();
    let (_, trace) = drawn(&m, thread, (0, 120));
    assert_eq!(
        told(&trace, "Critical path of late/7"),
        [
            "0..10 late/7 runs",
            "10..100 late/7 spins for a lock of hog/8",
            ".10..99 hog/8 runs",
            ".99..100 hog/8 runs in futex(FUTEX_UNLOCK_PI)",
            "100..110 late/7 runs in futex(FUTEX_LOCK_PI)",
            "110..120 late/7 runs",
        ]
    );
}

/// Thread 8 continues thread 7, which need not have been stopped by it.
#[test]
fn a_stopped_thread_waits_for_a_signal() {
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(0, 1, 0, R, 8),
        switch(10, 0, 7, SwitchedOut::Blocked(Sleep::Stopped), 0),
        waking(30, 1, 7),
        switch(40, 0, 0, R, 7),
        switch(50, 0, 7, S, 0),
    ]);
    let thread = m.by_tid(7).next().unwrap();
    let (_, trace) = drawn(&m, thread, (0, 50));
    assert_eq!(
        told(&trace, "late/7"),
        [
            "0..10 runs",
            "10..30 waits for SIGCONT (a signal had stopped it)",
            "30..40 woken, waits for a CPU",
            "40..50 runs",
        ]
    );
}

/// As in the text.
#[test]
fn threads_have_the_names_of_the_drawn_time() {
    let (tid, name, target) = (7, &b"cat"[..], 0);
    let m = model(&[
        switch(0, 0, 0, R, 7),
        switch(10, 0, 7, S, 0),
        at(50, 1, What::Waking { tid, name, target }),
    ]);
    let thread = m.by_tid(7).next().unwrap();
    let (_, trace) = drawn(&m, thread, (0, 10));
    assert_eq!(
        told(&trace, "Critical path of late/7"),
        ["0..10 late/7 runs"]
    );
    assert_eq!(told(&trace, "CPU 0"), ["0..10 late/7"]);
    assert_eq!(told(&trace, "late/7"), ["0..10 runs"]);
}

#[test]
fn a_signal_ends_the_drawing() {
    let mut events = Vec::new();
    for time in (0..2 * u64::from(OFTEN)).step_by(2) {
        events.push(switch(time, 0, 0, R, 7));
        events.push(switch(time + 1, 0, 7, S, 0));
    }
    let m = model(&events);
    let picture = Picture {
        model: &m,
        facts: &Facts::NONE,
        range: m.span,
        alerts: Vec::new(),
        states: Vec::new(),
        paths: Vec::new(),
    };
    let draw = |flag| picture.draw(&mut std::io::sink(), &AtomicBool::new(flag));
    assert!(draw(false).is_ok());
    assert_eq!(draw(true).unwrap_err().to_string(), "interrupted");
}

fn what() -> impl Strategy<Value = What<'static>> {
    let tid = || 0..6i32;
    let out = prop_oneof![3 => Just(S), 2 => Just(R), 1 => Just(SwitchedOut::Dead)];
    let name = || prop_oneof![Just(&b"a"[..]), Just(&b"ksoftirqd/0"[..])];
    prop_oneof![
        8 => (tid(), out, tid()).prop_map(|(prev, out, next)| {
            What::Switch { prev, prev_name: b"", out, next, next_name: b"", prev_prio: None, next_prio: None }
        }),
        6 => (tid(), name(), 0..3u32).prop_map(|(tid, name, target)| What::Waking { tid, name, target }),
        1 => (tid(), name(), 0..3u32).prop_map(|(tid, name, target)| What::Wakeup { tid, name, target }),
        1 => (tid(), name()).prop_map(|(child, name)| What::Fork { child, name }),
        1 => name().prop_map(|name| What::Call { name }),
        1 => Just(What::Return),
        1 => (0..3i32, name()).prop_map(|(number, name)| What::Irq { number, name }),
        1 => (0..3i32).prop_map(|number| What::IrqEnd { number }),
        1 => (0..12u32).prop_map(|vector| What::Raise { vector }),
        1 => (0..12u32).prop_map(|vector| What::Softirq { vector }),
        1 => (0..12u32).prop_map(|vector| What::SoftirqEnd { vector }),
        1 => (0..100u64).prop_map(|until| What::Lost { until }),
    ]
}

/// Random events, in time order.
pub(in crate::analyze) fn events() -> impl Strategy<Value = Vec<Event<'static>>> {
    prop::collection::vec((0..3u64, 0..3u32, what()), 1..120).prop_map(|all| {
        let mut time = 0;
        let each = all.into_iter().map(|(delta, cpu, what)| {
            time += delta;
            Event { time, cpu, what }
        });
        each.collect()
    })
}

proptest! {
    #[test]
    fn random_events_are_drawn_as_the_model_has_them(
        events in events(),
        (cut_from, cut_to) in (0..30u64, 0..30u64),
    ) {
        let m = model(&events);
        for (id, thread) in (0..).map(ThreadId).zip(&m.threads) {
            let Some((from, to)) = thread.span() else {
                continue;
            };
            let range = (from + cut_from.min(to - from - 1), to);
            let range = (range.0, (range.0 + 1).max(to.saturating_sub(cut_to)));
            let (pieces, trace) = drawn(&m, id, range);
            check_path(&trace, &m, (id, range.1), &pieces);
            check_tracks(&trace, &m, range);
            check_arrows(&trace, &m, id, range);
        }
    }
}

/// The innermost slices are the pieces; every other slice is completely covered by its inner slices.
fn check_path(trace: &Pftrace, m: &Model, (id, to): (ThreadId, u64), pieces: &[Piece]) {
    let track = trace.track(&format!("Critical path of {}", name_at(m, id, to)));
    let slices = trace.on(track.unwrap());
    let inner: Vec<_> = (0..slices.len())
        .filter(|i| {
            slices
                .get(i + 1)
                .is_none_or(|next| next.depth <= slices[*i].depth)
        })
        .map(|i| slices[i])
        .collect();
    assert_eq!(inner.len(), pieces.len());
    for (slice, piece) in inner.iter().zip(pieces) {
        assert_eq!((slice.begin, slice.end), (piece.begin, piece.end));
        let who = name_at(m, piece.thread, to);
        assert!(slice.name.starts_with(&format!("{who} ")), "{slice:?}");
        // A piece is nested in one slice for each wait that it explains: its depth is their number. The last part of a
        // wait may also be nested in the slice of that wait.
        let in_wait = usize::from(piece.cause == Cause::Transit);
        assert!(
            slice.depth == piece.depth + in_wait || slice.depth == piece.depth,
            "{slice:?} {piece:?}"
        );
    }
    for (i, slice) in slices.iter().enumerate() {
        let within = slices[i + 1..].iter().take_while(|s| s.depth > slice.depth);
        let children: Vec<_> = within.filter(|s| s.depth == slice.depth + 1).collect();
        if let (Some(first), Some(last)) = (children.first(), children.last()) {
            assert_eq!((first.begin, last.end), (slice.begin, slice.end));
            assert!(children.windows(2).all(|pair| pair[0].end == pair[1].begin));
        }
    }
}

/// The tracks of threads and CPUs match the model, to the nanosecond.
fn check_tracks(trace: &Pftrace, m: &Model, (from, to): (u64, u64)) {
    let cut = |begin: u64, end: u64| (begin.max(from), end.min(to));
    let of = |name: &str, parent: &str| {
        let parent = trace.track(parent);
        let mut found: Vec<_> = trace
            .tracks
            .iter()
            .filter(|(_, (n, p))| n == name && *p == parent)
            .map(|(track, _)| {
                trace
                    .on(*track)
                    .iter()
                    .map(|s| (s.begin, s.end))
                    .collect::<Vec<_>>()
            })
            .collect();
        found.sort();
        found
    };
    for (cpu, processor) in m.processors.iter().enumerate() {
        let busy = processor.between(from, to).filter(|s| s.used != Use::Idle);
        let expected: Vec<_> = busy.map(|s| cut(s.begin, s.end)).collect();
        for found in of(&format!("CPU {cpu}"), "CPUs") {
            assert_eq!(found, expected);
        }
    }
    for (id, thread) in (0..).map(ThreadId).zip(&m.threads) {
        let intervals: Vec<_> = thread.between(from, to).collect();
        let expected: Vec<_> = intervals.iter().map(|i| cut(i.begin, i.end)).collect();
        let found = of(&name_at(m, id, to), "Threads");
        // Several threads may have had the same name.
        let asleep = |i: &Interval| matches!(i.state.class(), Class::Blocked | Class::Unknown);
        if found.is_empty() {
            assert!(intervals.iter().all(asleep));
        } else {
            assert!(
                found.contains(&expected) || intervals.iter().all(asleep),
                "{found:?} {expected:?}"
            );
        }
    }
}

/// Each arrow goes from the waker, at the time of the wakeup, to the wakee's next slice; each wakeup has one arrow.
fn check_arrows(trace: &Pftrace, m: &Model, id: ThreadId, (from, to): (u64, u64)) {
    let mut found: Vec<_> = trace
        .arrows()
        .iter()
        .map(|(source, end)| {
            let woken = trace.tracks[&end.track].0.clone();
            assert_eq!(source.name, format!("wakes {woken}"));
            (
                trace.tracks[&source.track].0.clone(),
                source.begin,
                woken,
                end.begin,
            )
        })
        .collect();
    let mut expected = Vec::new();
    for wait in waits(m, id, from, to) {
        let Some(waker) = wait.waker.and_then(|id| m.waker(id)) else {
            continue;
        };
        let thread = m.thread(wait.thread).unwrap();
        let goes_on = thread.intervals.iter().any(|i| i.begin == wait.end);
        if goes_on && waker.time >= from && wait.end < to {
            let source = match waker.by() {
                Some(by) => name_at(m, by, to),
                None => format!("CPU {}", waker.cpu),
            };
            let woken = name_at(m, wait.thread, to);
            expected.push((source, waker.time, woken, wait.end));
        }
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
