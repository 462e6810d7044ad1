// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The loop itself, and how it reports a peak.
//!
//! A sample is the time between two consecutive readings of the clock. It includes what the loop
//! does between them: the statistics, and the system call of `--event`. At a peak, the loop posts a
//! message to the watching thread, and spins until that thread has read the counters, so reporting a
//! peak takes no system call. Then the loop reads the clock again, so that the time of this wait is
//! in no sample; it is added to the time in which nothing was measured. While a snapshot is taken,
//! the loop sleeps instead: the snapshot waits for work that the kernel does on every CPU, and on
//! the CPU of the loop that work would wait for the loop.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::clock::{Clock, Now};
use crate::measure::Record;

const IDLE: u32 = 0;
const POSTED: u32 = 1;
const LENGTHY: u32 = 2;

/// The time that the loop read last. The loop writes it in each iteration, so it has cache lines of
/// its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seen(AtomicU64);

/// The messages from a loop to the watching thread. They have cache lines of their own, since the
/// other CPU writes to them.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Mail {
    seen: Seen,
    state: AtomicU32,
    begin: AtomicU64,
    end: AtomicU64,
    /// The id of the loop's thread, once it runs.
    tid: AtomicI32,
    /// Set once further peaks are only counted.
    enough: AtomicBool,
}

impl Mail {
    /// Reports a peak, and waits until it has been examined.
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

    /// Makes the loop sleep instead of spin: examining this peak takes a long time, and needs kernel threads on all
    /// CPUs.
    pub(super) fn takes_long(&self) {
        self.state.store(LENGTHY, Ordering::Release);
    }

    /// Returns the start and the end of the peak that waits to be examined.
    pub(super) fn waiting(&self) -> Option<(u64, u64)> {
        let waits = self.state.load(Ordering::Acquire) == POSTED;
        waits.then(|| {
            (
                self.begin.load(Ordering::Relaxed),
                self.end.load(Ordering::Relaxed),
            )
        })
    }

    /// Marks the peak as examined.
    pub(super) fn done(&self, enough: bool) {
        self.enough.store(enough, Ordering::Relaxed);
        self.state.store(IDLE, Ordering::Release);
    }

    /// Records that every peak up to this time has been reported.
    pub(super) fn sees(&self, until: u64) {
        self.seen.0.store(until, Ordering::Relaxed);
    }

    /// Returns the time up to which every peak has been reported.
    pub(super) fn seen(&self) -> u64 {
        self.seen.0.load(Ordering::Relaxed)
    }

    /// Returns the thread id of the loop; 0 if the loop is not running yet.
    pub(super) fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Records the calling thread as the loop's.
    pub(super) fn is_mine(&self) {
        self.tid
            .store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
    }
}

/// The plan of a loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// Measuring time after which the loop ends, ns.
    pub(super) length: u64,
    /// Number of measured iterations after which the loop ends, if that comes first.
    pub(super) loops: u64,
    /// Iterations before the measured ones.
    pub(super) warm_up: u64,
    /// A sample of this length or longer is a peak, ns.
    pub(super) threshold: u64,
    /// Least time from one event to the next, ns; `None`: no events.
    pub(super) event: Option<u64>,
    /// Length of a burst, in which events are generated, and of the pause after it, ns.
    pub(super) burst: Option<(u64, u64)>,
}

/// The result of a loop.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// All samples; with bursts, only samples in bursts.
    pub(super) samples: Record,
    /// Samples between bursts.
    pub(super) quiet: Record,
    pub(super) peaks: u64,
    pub(super) events: u64,
    /// Time in which nothing was measured because a peak was being examined, ns.
    pub(super) away: u64,
}

impl Found {
    pub(super) fn loops(&self) -> u64 {
        self.samples.count() + self.quiet.count()
    }

    /// Returns how long the loop measured, ns.
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

/// Runs the loop on this thread until the plan is done or `stop` is set.
pub(super) fn spin(clock: &Clock, plan: &Plan, mail: &Mail, stop: &AtomicBool) -> Found {
    match clock {
        Clock::Tsc(clock) => spin_by(clock, plan, mail, stop),
        Clock::Raw(clock) => spin_by(clock, plan, mail, stop),
        Clock::Kernel(clock) => spin_by(clock, plan, mail, stop),
    }
}

fn spin_by<C: Now>(clock: &C, plan: &Plan, mail: &Mail, stop: &AtomicBool) -> Found {
    let mut found = Found::default();
    // Prefaults the pages before the loop starts.
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
            // The time starts after the warm-up. Otherwise the last slice, which is short, might
            // never measure anything.
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

    /// A clock whose readings are these times; after the last of them, each further reading is 1 higher.
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
    fn time_while_a_peak_is_examined_is_in_no_sample() {
        // The peak takes 50. The reading after it is 900 later.
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
    fn only_measuring_time_counts_toward_the_length() {
        // 960 ns pass while the peak, the second iteration, is examined; the loop still measures for 100.
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
        // An iteration takes 10 ns; an event is due after 30.
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
        // 10,000 ns are 2.5 windows of 4000, each with a burst of 1000. The third burst is in the
        // half window.
        assert!(
            (250..=320).contains(&found.samples.count()),
            "{}",
            found.samples.count()
        );
        assert!((60..=110).contains(&found.events), "{}", found.events);
    }

    #[test]
    fn the_loop_ends_when_the_time_is_over_and_when_it_is_stopped() {
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
    fn a_peak_waits_until_it_has_been_examined() {
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
        // After enough peaks, post() does not wait: the test would hang if it did.
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
        // post() does not wait once the run ends, either.
        mail.done(false);
        stop.store(true, Ordering::Relaxed);
        mail.post(10, 20, &stop);
        assert_eq!(mail.waiting(), Some((10, 20)));
    }
}
