// SPDX-License-Identifier: GPL-2.0 OR MIT

//! For all events in any order: intervals follow each other without a gap, and all time is accounted for.

use lt_model::{Builder, Class, Interval, Model, Processor, Thread};
use proptest::prelude::*;

use crate::anything::{events, feed, model};

proptest! {
    #[test]
    fn intervals_tile_the_time(events in events()) {
        let m = model(&events);
        for thread in &m.threads {
            let intervals: Vec<_> = thread.intervals.iter().collect();
            for i in &intervals {
                prop_assert!(i.begin < i.end, "{thread:?}");
                prop_assert!(i.waker.is_none_or(|w| m.waker(w).is_some()));
            }
            for pair in intervals.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].begin, "{:?}", thread);
            }
            if let (None, Some((begin, end))) = (thread.ended, thread.span()) {
                prop_assert_eq!(end, m.span.1);
                prop_assert!(begin >= m.span.0);
            }
        }
        // Times and processors of events; a late event counts as simultaneous with its predecessor.
        let there = events.iter().filter(|(_, cpu, _)| *cpu != u32::MAX);
        let known: Vec<_> = there
            .scan(0, |last, (time, cpu, _)| {
                *last = (*last).max(*time);
                Some((*last, *cpu as usize))
            })
            .collect();
        for (cpu, processor) in m.processors.iter().enumerate() {
            let stretches: Vec<_> = processor.stretches.iter().collect();
            prop_assert!(stretches.iter().all(|s| s.begin < s.end));
            // Two stretches of one kind are adjacent only if an event separates them: the activity in between took no
            // time.
            let happened = |time| known.contains(&(time, cpu));
            for pair in stretches.windows(2) {
                prop_assert_eq!(pair[0].end, pair[1].begin);
                prop_assert!(pair[0].used != pair[1].used || happened(pair[0].end));
            }
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
            // The same holds in any part of the range.
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
    fn forgetting_the_past_changes_nothing_later(events in events(), keep in 0..60u64) {
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
                let waker = |i: &Interval| i.waker.and_then(|w| m.waker(w)).filter(|w| w.time > keep);
                kept.map(|i| (i.begin.max(keep), i.end, i.state, i.cpu, waker(&i))).collect::<Vec<_>>()
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
