// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Generates events at a rate.
//!
//! The thread reads the clock until the next event is due, then generates the event; it never
//! sleeps. If the thread was kept from its CPU for longer than the time between two events, the
//! events of that time are skipped: catching up would be a burst at a higher rate. The rate is
//! therefore at most the requested rate, and the actual rate is reported.
//!
//! The time of each event is recorded, from the reading of the clock before it to the reading after
//! it, and thus includes the time of one reading.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::clock::{Clock, Now};
use super::args::Kind;
use crate::measure::Record;

/// The plan of a run. Times are in ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    /// The time from one event to the next; `None` for full rate.
    pub(super) gap: Option<f64>,
    /// Least length of the run.
    pub(super) length: u64,
    /// Least number of events; a run is extended until it has made them.
    pub(super) least: u64,
    /// Maximum length of an extended run.
    pub(super) longest: u64,
    /// Maximum number of events.
    pub(super) most: u64,
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Made {
    pub(super) events: u64,
    /// From the first event to the end of the last, ns.
    pub(super) time: u64,
    /// The time of each event.
    pub(super) each: Record,
}

impl Made {
    /// Returns the rate, in events per second.
    pub(super) fn rate(&self) -> u64 {
        (self.events as f64 * 1e9 / self.time.max(1) as f64) as u64
    }
}

/// Generates events of this kind on this thread.
pub(super) fn emit(kind: Kind, clock: &Clock, plan: &Plan, stop: &AtomicBool) -> Made {
    match kind {
        Kind::Syscall => by_clock(clock, plan, stop, || {
            let _ = nix::unistd::getppid();
        }),
        // Another process generates these.
        Kind::Ust => Made::default(),
        Kind::Kernel => {
            // Ignored by default, so it is not delivered; the tracepoint fires nevertheless.
            let (own, signal) = (nix::unistd::getpid(), nix::sys::signal::Signal::SIGURG);
            by_clock(clock, plan, stop, || {
                let _ = nix::sys::signal::kill(own, signal);
            })
        }
    }
}

fn by_clock(clock: &Clock, plan: &Plan, stop: &AtomicBool, event: impl FnMut()) -> Made {
    match clock {
        Clock::Tsc(clock) => paced(clock, plan, stop, event),
        Clock::Raw(clock) => paced(clock, plan, stop, event),
        Clock::Kernel(clock) => paced(clock, plan, stop, event),
    }
}

fn paced<C: Now>(clock: &C, plan: &Plan, stop: &AtomicBool, mut event: impl FnMut()) -> Made {
    let mut made = Made::default();
    // Prefaults the pages before the run starts.
    std::hint::black_box(&mut made.each).merge(&Record::default());
    let begin = clock.now();
    // Events are due at `anchor`, and one gap apart after it.
    let (mut anchor, mut due) = (begin, 0u64);
    let mut before = begin;
    while made.events < plan.most {
        if let Some(gap) = plan.gap {
            let at = anchor.saturating_add((due as f64 * gap) as u64);
            while before < at && !stop.load(Ordering::Relaxed) {
                before = clock.now();
            }
            if before as f64 > at as f64 + gap {
                (anchor, due) = (before, 0);
            }
            due += 1;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        event();
        let after = clock.now();
        made.each.add(after.saturating_sub(before));
        made.events += 1;
        before = after;
        made.time = after.saturating_sub(begin);
        let enough = made.time >= plan.length && made.events >= plan.least;
        if enough || made.time >= plan.longest {
            break;
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock that a reading advances by 10, an event by 30, and some events by more.
    struct Ticks(Cell<u64>);

    impl Now for Ticks {
        fn now(&self) -> u64 {
            self.0.replace(self.0.get() + 10)
        }
    }

    const PLAN: Plan = Plan {
        gap: None,
        length: 10_000,
        least: 0,
        longest: u64::MAX,
        most: u64::MAX,
    };

    fn run(plan: &Plan, mut late: impl FnMut(u64) -> u64) -> Made {
        let ticks = Ticks(Cell::new(0));
        let mut count = 0;
        paced(&ticks, plan, &AtomicBool::new(false), || {
            count += 1;
            ticks.0.set(ticks.0.get() + 30 + late(count));
        })
    }

    #[test]
    fn at_full_rate_each_event_takes_its_own_time() {
        let made = run(&PLAN, |_| 0);
        assert_eq!((made.events, made.time), (250, 10_000));
        let s = made.each.statistics().unwrap();
        assert_eq!((s.loops, s.min, s.max), (250, 40, 40));
        assert_eq!(made.rate(), 25_000_000);
    }

    #[test]
    fn a_rate_is_kept_and_never_exceeded() {
        let plan = Plan {
            gap: Some(100.0),
            ..PLAN
        };
        let made = run(&plan, |_| 0);
        assert!((99..=101).contains(&made.events), "{}", made.events);
        // The gap is not a whole number of ns.
        let made = run(
            &Plan {
                gap: Some(66.6),
                ..PLAN
            },
            |_| 0,
        );
        assert!((148..=152).contains(&made.events), "{}", made.events);
        // The rate is too high to be reached.
        let made = run(
            &Plan {
                gap: Some(1.0),
                ..PLAN
            },
            |_| 0,
        );
        assert_eq!(made.events, 250);
    }

    #[test]
    fn missed_events_are_not_made_up_for() {
        let plan = Plan {
            gap: Some(100.0),
            ..PLAN
        };
        let made = run(&plan, |count| if count == 10 { 5_000 } else { 0 });
        assert!((48..=52).contains(&made.events), "{}", made.events);
        assert_eq!(made.each.statistics().unwrap().max, 5_040);
    }

    #[test]
    fn a_run_lasts_until_there_are_enough_events_but_not_forever() {
        let least = Plan { least: 600, ..PLAN };
        assert_eq!(run(&least, |_| 0).events, 600);
        let longest = Plan {
            longest: 12_000,
            ..least
        };
        assert_eq!(run(&longest, |_| 0).events, 300);
        let most = Plan { most: 7, ..PLAN };
        assert_eq!(run(&most, |_| 0).events, 7);
    }

    #[test]
    fn a_run_ends_when_it_is_stopped() {
        let ticks = Ticks(Cell::new(0));
        let made = paced(
            &ticks,
            &Plan {
                gap: Some(1e18),
                length: u64::MAX,
                ..PLAN
            },
            &AtomicBool::new(true),
            || {},
        );
        assert_eq!(made.events, 0);
    }
}
