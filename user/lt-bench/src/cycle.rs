// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The cycle of a periodic real-time task, as in cyclictest: sleep until a time, and measure how
//! late the wakeup is.
//!
//! ```text
//!   due            due + interval       due + 2 intervals
//!    |----> runs    |-> runs             |----------> runs
//!    | late |       |  |                 |   late     |
//! ```
//!
//! The next time is an interval after the last one, not an interval from now, so a late cycle does
//! not delay the next. Times that have passed by the end of a cycle are skipped and counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

use crate::measure::Record;

/// A clock that a thread can read and sleep by, in ns.
pub(super) trait Time {
    fn now(&self) -> u64;
    fn sleep_until(&self, time: u64);
}

/// CLOCK_MONOTONIC, which alerts use, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Monotonic;

impl Time for Monotonic {
    fn now(&self) -> u64 {
        // Cannot fail: every kernel has this clock.
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| Duration::from(t).as_nanos() as u64)
    }

    fn sleep_until(&self, time: u64) {
        let time = TimeSpec::from(Duration::from_nanos(time));
        // Signals are blocked in this thread, so nothing interrupts the sleep.
        let _ = clock_nanosleep(
            ClockId::CLOCK_MONOTONIC,
            ClockNanosleepFlags::TIMER_ABSTIME,
            &time,
        );
    }
}

/// The plan of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The time from one cycle to the next, ns.
    pub(super) interval: u64,
    /// Number of cycles after which the thread ends.
    pub(super) cycles: u64,
    /// Time after which the thread ends, if that comes first, ns.
    pub(super) length: u64,
    /// A cycle that is late by this many ns or more is a late cycle.
    pub(super) threshold: u64,
    /// Late cycles beyond this number are only counted.
    pub(super) keep: usize,
}

/// A late cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late {
    /// When it was due, CLOCK_MONOTONIC ns.
    pub(super) due: u64,
    /// How late it was, ns.
    pub(super) by: u64,
}

/// The result of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    /// How late each cycle was.
    pub(super) samples: Record,
    /// Number of late cycles.
    pub(super) peaks: u64,
    /// The late cycles that are kept.
    pub(super) late: Vec<Late>,
    /// Cycles that were skipped because their time had passed.
    pub(super) missed: u64,
}

/// Runs the cycle on this thread until the plan is done or `stop` is set.
pub(super) fn cycle(time: &impl Time, plan: &Plan, stop: &AtomicBool) -> Found {
    let mut found = Found {
        // Allocated now, so that the cycle does not allocate.
        late: Vec::with_capacity(plan.keep),
        ..Found::default()
    };
    let begin = time.now();
    let end = begin.saturating_add(plan.length);
    let (mut now, mut due) = (begin, begin.saturating_add(plan.interval));
    for _ in 0..plan.cycles {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // Times after the end of the plan are not missed.
        if let Some(past) = now.min(end).checked_sub(due) {
            let gone = past / plan.interval + 1;
            found.missed += gone;
            due = due.saturating_add(gone.saturating_mul(plan.interval));
        }
        if due > end {
            break;
        }
        time.sleep_until(due);
        now = time.now();
        let by = now.saturating_sub(due);
        found.samples.add(by);
        if by >= plan.threshold {
            found.peaks += 1;
            if found.late.len() < plan.keep {
                found.late.push(Late { due, by });
            }
        }
        due = due.saturating_add(plan.interval);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    /// A clock that starts at 1000. Each sleep ends late, by the next time in `late`.
    struct Script {
        now: Cell<u64>,
        late: RefCell<VecDeque<u64>>,
    }

    impl Script {
        fn new(late: &[u64]) -> Self {
            Self {
                now: Cell::new(1000),
                late: RefCell::new(late.iter().copied().collect()),
            }
        }
    }

    impl Time for Script {
        fn now(&self) -> u64 {
            self.now.get()
        }
        fn sleep_until(&self, time: u64) {
            let by = self.late.borrow_mut().pop_front().unwrap_or(0);
            self.now.set(self.now.get().max(time) + by);
        }
    }

    const PLAN: Plan = Plan {
        interval: 100,
        cycles: 5,
        length: u64::MAX,
        threshold: 30,
        keep: 2,
    };

    fn run(late: &[u64], plan: &Plan) -> Found {
        cycle(&Script::new(late), plan, &AtomicBool::new(false))
    }

    #[test]
    fn a_late_cycle_makes_no_other_one_late() {
        let found = run(&[1, 40, 2, 0, 3], &PLAN);
        let s = found.samples.statistics().unwrap();
        assert_eq!((s.loops, s.min, s.max, s.sum), (5, 0, 40, 46));
        assert_eq!(found.late, [Late { due: 1200, by: 40 }]);
        assert_eq!((found.peaks, found.missed), (1, 0));
    }

    #[test]
    fn times_that_have_passed_are_skipped_and_counted() {
        // The cycle due at 1100 runs at 1350: 1200 and 1300 have passed. The cycle due at 1400 runs
        // at 1500, which has just passed.
        let found = run(&[250, 100, 0], &PLAN);
        assert_eq!((found.missed, found.samples.count()), (3, 5));
        let dues: Vec<u64> = found.late.iter().map(|late| late.due).collect();
        assert_eq!(dues, [1100, 1400]);
    }

    #[test]
    fn times_after_the_last_cycle_are_not_missed() {
        // The cycle due at 1500 is the fifth and last one.
        assert_eq!(run(&[0, 0, 0, 0, 1000], &PLAN).missed, 0);
        let plan = Plan {
            cycles: u64::MAX,
            length: 350,
            ..PLAN
        };
        assert_eq!(run(&[0, 0, 1000], &plan).missed, 0);
        // Only 1300 has passed before the end at 1350.
        assert_eq!(run(&[0, 1000], &plan).missed, 1);
    }

    #[test]
    fn late_cycles_above_the_number_to_keep_are_only_counted() {
        let found = run(&[50, 50, 50, 29, 30], &PLAN);
        assert_eq!((found.peaks, found.late.len()), (4, 2));
    }

    #[test]
    fn the_thread_ends_after_its_length_and_when_it_is_stopped() {
        let plan = Plan {
            cycles: u64::MAX,
            length: 350,
            ..PLAN
        };
        assert_eq!(run(&[], &plan).samples.count(), 3);
        let found = cycle(&Script::new(&[]), &PLAN, &AtomicBool::new(true));
        assert_eq!(found.samples.count(), 0);
    }

    #[test]
    fn the_clock_of_the_kernel_wakes_no_sooner_than_requested() {
        let plan = Plan {
            interval: 1_000_000,
            cycles: 20,
            threshold: 0,
            keep: 20,
            ..PLAN
        };
        let begin = Monotonic.now();
        let found = cycle(&Monotonic, &plan, &AtomicBool::new(false));
        assert_eq!((found.samples.count(), found.late.len()), (20, 20));
        assert!(Monotonic.now() >= begin + 20_000_000);
        assert!(found.late.windows(2).all(|w| w[0].due < w[1].due));
    }
}
