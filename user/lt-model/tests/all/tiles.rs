// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Whatever events come in whatever order: intervals follow each other without a gap, and all time is accounted for.

use lt_model::{
    Builder, Class, Event, Interval, Model, Processor, Sleep, SwitchedOut, Thread, What,
};
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

fn feed(builder: &mut Builder, events: &[(u64, u32, What<'static>)]) {
    for (time, cpu, what) in events {
        builder.feed(&Event {
            time: *time,
            cpu: *cpu,
            what: *what,
        });
    }
}

fn model(events: &[(u64, u32, What<'static>)]) -> Model {
    let mut builder = Builder::new();
    feed(&mut builder, events);
    builder.finish()
}

proptest! {
    #[test]
    fn intervals_tile_the_time(events in events()) {
        let m = model(&events);
        for thread in &m.threads {
            for i in &thread.intervals {
                prop_assert!(i.begin < i.end, "{thread:?}");
                prop_assert!(i.waker.is_none_or(|w| m.waker(w).is_some()));
            }
            for pair in thread.intervals.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].begin, "{:?}", thread);
            }
            if let (false, Some((begin, end))) = (thread.dead, thread.span()) {
                prop_assert_eq!(end, m.span.1);
                prop_assert!(begin >= m.span.0);
            }
        }
        for processor in &m.processors {
            let stretches = &processor.stretches;
            prop_assert!(stretches.iter().all(|s| s.begin < s.end));
            prop_assert!(stretches.windows(2).all(|p| p[0].end == p[1].begin && p[0].used != p[1].used));
            let ends = stretches.first().zip(stretches.last()).map(|(a, b)| (a.begin, b.end));
            prop_assert!(ends.is_none_or(|ends| ends == m.span), "{ends:?} {:?}", m.span);
        }
    }

    #[test]
    fn all_time_is_working_interrupted_blocked_or_unknown(events in events(), from in 0..60u64, took in 0..60u64) {
        let m = model(&events);
        for thread in &m.threads {
            let Some((begin, end)) = thread.span() else {
                continue;
            };
            let classes = [Class::Working, Class::Interrupted, Class::Blocked, Class::Unknown];
            let all = |from, to| classes.map(|c| thread.time_in(c, from, to)).iter().sum::<u64>();
            prop_assert_eq!(all(begin, end), end - begin);
            // And in any part of it.
            let (a, b) = (from.clamp(begin, end), (from + took).clamp(begin, end));
            prop_assert_eq!(all(a, b), b - a);
        }
    }

    #[test]
    fn threads_of_one_number_follow_each_other(events in events()) {
        let m = model(&events);
        for tid in 1..6 {
            let spans: Vec<_> = m.by_tid(tid).filter_map(|id| m.thread(id)?.span()).collect();
            prop_assert!(spans.windows(2).all(|p| p[0].1 <= p[1].0), "{spans:?}");
        }
    }

    #[test]
    fn what_is_forgotten_is_all_that_is_missing(events in events(), keep in 0..60u64) {
        let whole = model(&events);
        let mut builder = Builder::new();
        builder.forget_before(keep);
        feed(&mut builder, &events);
        let part = builder.finish();
        prop_assert_eq!(part.span, whole.span);
        prop_assert_eq!(part.threads.len(), whole.threads.len());
        for (a, b) in part.threads.iter().zip(&whole.threads) {
            let of = |m: &Model, t: &Thread| {
                let kept = t.intervals.iter().filter(|i| i.end > keep);
                let waker = |i: &Interval| i.waker.and_then(|w| m.waker(w)).filter(|w| w.time > keep).copied();
                kept.map(|i| (i.begin.max(keep), i.end, i.state, i.cpu, waker(i))).collect::<Vec<_>>()
            };
            prop_assert_eq!(of(&part, a), of(&whole, b));
            prop_assert!(a.intervals.iter().all(|i| i.end > keep));
        }
        for (a, b) in part.processors.iter().zip(&whole.processors) {
            let of = |p: &Processor| {
                let kept = p.stretches.iter().filter(|s| s.end > keep);
                kept.map(|s| (s.begin.max(keep), s.end, s.used)).collect::<Vec<_>>()
            };
            prop_assert_eq!(of(a), of(b));
        }
    }
}
