// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The loop itself, and how it reports a peak.
//!
//! A sample is the time between two readings of the clock in a row. What the loop does between them, statistics and
//! the event, is a part of it, as in npt. At a peak the loop leaves a message for the thread that watches and spins
//! until that has read what it wants to: it makes no system call. Then the clock is read again, so what has passed
//! meanwhile is in no sample; it is summed up as time in which nothing was measured. Only while a snapshot is taken,
//! which waits for work that the kernel does on every CPU, the loop sleeps: otherwise the two would wait for each other.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::clock::{Clock, Now};
use crate::measure::Record;

const IDLE: u32 = 0;
const POSTED: u32 = 1;
const LENGTHY: u32 = 2;

/// The last time that the loop read. It writes this in each loop, so it is on cache lines that nothing else is on.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seen(AtomicU64);

/// What a loop says to the thread that watches. On cache lines of its own: the other CPU writes to it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Mail {
    seen: Seen,
    state: AtomicU32,
    begin: AtomicU64,
    end: AtomicU64,
    /// The thread, once it runs.
    tid: AtomicI32,
    /// Peaks are only counted from now on.
    enough: AtomicBool,
}

impl Mail {
    /// Tells of a peak, and waits until it has been dealt with.
    #[cold]
    pub(super) fn post(&self, begin: u64, end: u64, stop: &AtomicBool) {
        if self.enough.load(Ordering::Relaxed) {
            return;
        }
        self.begin.store(begin, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.state.store(POSTED, Ordering::Release);
        while !stop.load(Ordering::Relaxed) {
            match self.state.load(Ordering::Acquire) {
                POSTED => std::hint::spin_loop(),
                LENGTHY => std::thread::sleep(Duration::from_millis(1)),
                _ => break,
            }
        }
    }

    /// It takes long to deal with it, and needs the kernel's threads of all CPUs: the loop sleeps meanwhile.
    pub(super) fn takes_long(&self) {
        self.state.store(LENGTHY, Ordering::Release);
    }

    /// The peak that waits: from when to when.
    pub(super) fn waiting(&self) -> Option<(u64, u64)> {
        let waits = self.state.load(Ordering::Acquire) == POSTED;
        waits.then(|| {
            (
                self.begin.load(Ordering::Relaxed),
                self.end.load(Ordering::Relaxed),
            )
        })
    }

    /// It has been dealt with.
    pub(super) fn done(&self, enough: bool) {
        self.enough.store(enough, Ordering::Relaxed);
        self.state.store(IDLE, Ordering::Release);
    }

    /// Says that every peak until then has been told of.
    pub(super) fn sees(&self, until: u64) {
        self.seen.0.store(until, Ordering::Relaxed);
    }

    /// Up to then every peak has been told.
    pub(super) fn seen(&self) -> u64 {
        self.seen.0.load(Ordering::Relaxed)
    }

    /// The thread of the loop; 0 if there is none yet.
    pub(super) fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Says who the thread is.
    pub(super) fn is_mine(&self) {
        self.tid
            .store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
    }
}

/// What a loop is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// It ends after this time of measuring, ns,
    pub(super) length: u64,
    /// or after this many loops that count.
    pub(super) loops: u64,
    /// Loops before those.
    pub(super) warm_up: u64,
    /// From this on a sample is a peak.
    pub(super) threshold: u64,
    /// At least this many ns from one event to the next; none: no events.
    pub(super) event: Option<u64>,
    /// Events come for the first time, and not for the second.
    pub(super) burst: Option<(u64, u64)>,
}

/// What a loop found.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// Samples; those in bursts, if there are bursts.
    pub(super) samples: Record,
    /// Samples between bursts.
    pub(super) quiet: Record,
    pub(super) peaks: u64,
    pub(super) events: u64,
    /// ns in which nothing was measured because a peak was dealt with.
    pub(super) away: u64,
}

impl Found {
    pub(super) fn loops(&self) -> u64 {
        self.samples.count() + self.quiet.count()
    }

    /// How long it measured, ns.
    pub(super) fn measured(&self) -> u64 {
        let sum = |record: &Record| record.statistics().map_or(0, |s| s.sum);
        sum(&self.samples) + sum(&self.quiet)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.samples.merge(&other.samples);
        self.quiet.merge(&other.quiet);
        self.peaks += other.peaks;
        self.events += other.events;
        self.away += other.away;
    }
}

/// Runs the loop on this thread, until the plan is done or `stop`.
pub(super) fn spin(clock: &Clock, plan: &Plan, mail: &Mail, stop: &AtomicBool) -> Found {
    match clock {
        Clock::Tsc(clock) => spin_by(clock, plan, mail, stop),
        Clock::Raw(clock) => spin_by(clock, plan, mail, stop),
        Clock::Kernel(clock) => spin_by(clock, plan, mail, stop),
    }
}

fn spin_by<C: Now>(clock: &C, plan: &Plan, mail: &Mail, stop: &AtomicBool) -> Found {
    let mut found = Found::default();
    // Its pages are there before it begins.
    for _ in 0..2 {
        std::hint::black_box(&mut found.samples).merge(&Record::default());
        std::hint::black_box(&mut found.quiet).merge(&Record::default());
    }
    let mut warm_up = plan.warm_up;
    let mut left = plan.loops;
    let mut since_event = 0u64;
    let mut in_burst = true;
    let mut last = clock.now();
    let mut until = last.saturating_add(plan.length);
    let mut turn = plan
        .burst
        .map_or(u64::MAX, |(on, _)| last.saturating_add(on));
    while left > 0 {
        let now = clock.now();
        let took = now.saturating_sub(last);
        let begin = std::mem::replace(&mut last, now);
        if warm_up > 0 {
            warm_up -= 1;
            // The time begins after it: else the last slice, which is short, might never measure anything.
            until = now.saturating_add(plan.length);
        } else {
            left -= 1;
            match in_burst {
                true => found.samples.add(took),
                false => found.quiet.add(took),
            }
            if took >= plan.threshold {
                found.peaks += 1;
                mail.post(begin, now, stop);
                last = clock.now();
                found.away += last - now;
                until = until.saturating_add(last - now);
            }
        }
        mail.seen.0.store(last, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) || now >= until {
            break;
        }
        if now >= turn
            && let Some((on, off)) = plan.burst
        {
            in_burst = !in_burst;
            turn = now.saturating_add(if in_burst { on } else { off });
        }
        if let Some(period) = plan.event
            && in_burst
        {
            since_event += took;
            if since_event >= period {
                let _ = nix::unistd::getppid();
                found.events += 1;
                since_event = 0;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Each reading is the next of these times; then each is one later.
    struct Script(Cell<usize>, Vec<u64>);

    impl Now for Script {
        fn now(&self) -> u64 {
            let at = self.0.replace(self.0.get() + 1);
            let last = self.1.len() - 1;
            self.1[at.min(last)] + at.saturating_sub(last) as u64
        }
    }

    const PLAN: Plan = Plan {
        length: u64::MAX,
        loops: 4,
        warm_up: 0,
        threshold: u64::MAX,
        event: None,
        burst: None,
    };

    fn run(times: &[u64], plan: &Plan) -> Found {
        let script = Script(Cell::new(0), times.to_vec());
        let mail = Mail::default();
        mail.enough.store(true, Ordering::Relaxed);
        spin_by(&script, plan, &mail, &AtomicBool::new(false))
    }

    #[test]
    fn samples_are_the_gaps_between_readings_and_add_up_to_the_time() {
        let found = run(&[100, 110, 125, 126, 200], &PLAN);
        let s = found.samples.statistics().unwrap();
        assert_eq!((s.loops, s.min, s.max, s.sum), (4, 1, 74, 100));
        assert_eq!((found.loops(), found.peaks, found.away), (4, 0, 0));
    }

    #[test]
    fn loops_that_warm_up_do_not_count() {
        let plan = Plan {
            warm_up: 2,
            loops: 2,
            ..PLAN
        };
        let short = Plan {
            length: 1,
            loops: u64::MAX,
            ..plan
        };
        let one = run(&[0, 1000, 2000, 2010, 2030], &short);
        assert_eq!(one.loops(), 1, "each slice measures something");
        let s = run(&[0, 1000, 2000, 2010, 2030], &plan)
            .samples
            .statistics()
            .unwrap();
        assert_eq!((s.loops, s.sum), (2, 30));
    }

    #[test]
    fn what_passes_while_a_peak_is_dealt_with_is_in_no_sample() {
        // The peak takes 50; the next reading, after it, is 900 later.
        let plan = Plan {
            threshold: 50,
            loops: 3,
            ..PLAN
        };
        let found = run(&[0, 10, 60, 960, 970], &plan);
        let s = found.samples.statistics().unwrap();
        assert_eq!((s.loops, s.sum, s.max), (3, 70, 50));
        assert_eq!((found.peaks, found.away), (1, 900));
    }

    #[test]
    fn the_time_is_that_of_measuring() {
        // 1000 ns go by while the second loop is dealt with; it still measures for 100.
        let mut times: Vec<u64> = (0..=100).map(|i| i * 10).collect();
        times.splice(2..2, [60]);
        times.iter_mut().skip(3).for_each(|time| *time += 1000);
        let plan = Plan {
            length: 100,
            loops: u64::MAX,
            threshold: 50,
            ..PLAN
        };
        let found = run(&times, &plan);
        assert!(
            (100..=110).contains(&found.measured()),
            "{}",
            found.measured()
        );
        assert!(found.away > 900);
    }

    #[test]
    fn events_keep_to_their_rate_and_to_their_bursts() {
        // A loop of 10 ns, an event after 30.
        let times: Vec<u64> = (0..=1000).map(|i| i * 10).collect();
        let plan = Plan {
            loops: 1000,
            event: Some(30),
            ..PLAN
        };
        assert_eq!(run(&times, &plan).events, 333);
        assert_eq!(
            run(
                &times,
                &Plan {
                    event: Some(0),
                    ..plan
                }
            )
            .events,
            1000
        );
        let bursts = Plan {
            burst: Some((1000, 3000)),
            ..plan
        };
        let found = run(&times, &bursts);
        assert_eq!(found.loops(), 1000);
        // 10,000 ns have 2.5 windows of 4000: 1000 each, and the third begins.
        assert!(
            (250..=320).contains(&found.samples.count()),
            "{}",
            found.samples.count()
        );
        assert!((60..=110).contains(&found.events), "{}", found.events);
    }

    #[test]
    fn it_ends_when_the_time_is_over_and_when_it_is_told_to() {
        let times: Vec<u64> = (0..=100).map(|i| i * 10).collect();
        let plan = Plan {
            length: 200,
            loops: u64::MAX,
            ..PLAN
        };
        assert_eq!(run(&times, &plan).loops(), 20);
        let script = Script(Cell::new(0), times);
        let mail = Mail::default();
        let stopped = spin_by(&script, &PLAN, &mail, &AtomicBool::new(true));
        assert_eq!((stopped.loops(), mail.seen()), (1, 10));
    }

    #[test]
    fn a_peak_waits_until_it_has_been_dealt_with() {
        let mail = Mail::default();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| mail.post(3, 9, &stop));
            while mail.waiting().is_none() {
                std::thread::yield_now();
            }
            assert_eq!(mail.waiting(), Some((3, 9)));
            mail.done(true);
        });
        assert_eq!(mail.waiting(), None);
        // Enough: nothing waits, or this would never return.
        mail.post(10, 20, &stop);
        assert_eq!(mail.waiting(), None);
        mail.done(false);
        std::thread::scope(|scope| {
            scope.spawn(|| mail.post(5, 7, &stop));
            while mail.waiting().is_none() {
                std::thread::yield_now();
            }
            mail.takes_long();
            assert_eq!(mail.waiting(), None, "it is being dealt with");
            mail.done(false);
        });
        // Nor when it is told to end.
        mail.done(false);
        stop.store(true, Ordering::Relaxed);
        mail.post(10, 20, &stop);
        assert_eq!(mail.waiting(), Some((10, 20)));
    }
}
