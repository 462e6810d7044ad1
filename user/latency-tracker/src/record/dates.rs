// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Detects that the time of day was set, or that the machine was suspended.
//!
//! The events of a trace are timed by `CLOCK_MONOTONIC`. The difference between this clock and the time of day is
//! measured when the session starts. After a step or a suspend, the dates in the session's traces are wrong until it is
//! measured again.
//!
//! The age of a capture of an earlier boot is known only by its date. If the time of day is wrong, this age is wrong,
//! too. A machine may start with a wrong time of day, until it gets the right one from the network; later, the time of
//! day may be set by mistake. So in the first hour after boot, and for an hour after each step that was detected, no
//! capture is removed by its date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lt_common::clock;

/// Smaller changes are ignored, because two clocks cannot be read at one instant.
const TOLERANCE: Duration = Duration::from_millis(500);

/// How long a new time of day must stand before ages are computed from dates.
const SETTLED: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) struct Dates {
    last: Reading,
    /// When the time of day was last found to have been set, in time since boot; 0 if it was not.
    set: Duration,
}

/// Why the difference between the time of day and `CLOCK_MONOTONIC` has changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Jump {
    /// The time of day was set; a sentence for the user.
    Set(String),
    /// The machine was suspended.
    Suspended,
}

impl Dates {
    pub(super) fn start() -> Self {
        Self {
            last: Reading::now(),
            set: Duration::ZERO,
        }
    }

    /// Returns what has changed since the last returned change, or since the start.
    pub(super) fn look(&mut self) -> Option<Jump> {
        let now = Reading::now();
        let jump = now.jump_since(self.last)?;
        if matches!(jump, Jump::Set(_)) {
            self.set = now.since_boot;
        }
        self.last = now;
        Some(jump)
    }

    /// Whether the time of day has been left alone for long enough to compute ages from dates.
    pub(super) fn are_settled(&self) -> bool {
        self.are_settled_at(clock::since_boot())
    }

    fn are_settled_at(&self, since_boot: Duration) -> bool {
        since_boot >= self.set + SETTLED
    }
}

/// The clocks at one instant.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Time of day, since 1970.
    today: Duration,
    since_boot: Duration,
    suspended: Duration,
}

impl Reading {
    fn now() -> Self {
        loop {
            let since_boot = clock::since_boot();
            let today = SystemTime::now().duration_since(UNIX_EPOCH);
            let reading = Self {
                today: today.unwrap_or_default(),
                since_boot,
                suspended: clock::suspended(),
            };
            // The reading is repeated if this thread was preempted, or the machine was suspended, between two clocks.
            if clock::since_boot().saturating_sub(since_boot) < TOLERANCE / 4 {
                return reading;
            }
        }
    }

    fn jump_since(self, last: Self) -> Option<Jump> {
        let expected = last.today + self.since_boot.saturating_sub(last.since_boot);
        let (how, step) = match self.today.checked_sub(expected) {
            Some(step) => ("forward", step),
            None => ("back", expected.saturating_sub(self.today)),
        };
        if step >= TOLERANCE {
            let step = Duration::from_secs(step.as_millis().div_ceil(1000) as u64);
            let step = humantime::format_duration(step);
            let text = format!("the time of day was set {how} by {step}");
            return Some(Jump::Set(text));
        }
        let suspended = self.suspended.saturating_sub(last.suspended);
        (suspended >= TOLERANCE).then_some(Jump::Suspended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_time_of_day_differs_from_a_suspend() {
        let reading = |today, since_boot, suspended| Reading {
            today: Duration::from_secs(today),
            since_boot: Duration::from_secs(since_boot),
            suspended: Duration::from_secs(suspended),
        };
        let first = reading(1_800_000_000, 100, 5);
        let jump = |passed: u64, step: i64, suspended: u64| {
            let today = 1_800_000_000_u64.saturating_add_signed(step) + passed;
            reading(today, 100 + passed, 5 + suspended).jump_since(first)
        };
        let set = |text: &str| Some(Jump::Set(format!("the time of day was set {text}")));
        assert_eq!(jump(86_400, 0, 0), None);
        assert_eq!(jump(0, 864_000, 0), set("forward by 10days"));
        assert_eq!(jump(30, -60, 0), set("back by 1m"));
        // During a suspend, the time of day and the time since boot run on.
        assert_eq!(jump(3600, 0, 3600), Some(Jump::Suspended));
        assert_eq!(jump(3600, 1, 3600), set("forward by 1s"));
    }

    #[test]
    fn dates_are_settled_an_hour_after_boot_and_after_a_step() {
        let mut dates = Dates::start();
        assert_eq!(dates.look(), None);
        assert!(!dates.are_settled_at(SETTLED - Duration::from_secs(1)));
        assert!(dates.are_settled_at(SETTLED));
        dates.last.today -= Duration::from_secs(7200);
        assert!(matches!(dates.look(), Some(Jump::Set(_))));
        assert_eq!(dates.look(), None);
        assert!(!dates.are_settled());
        assert!(dates.are_settled_at(clock::since_boot() + SETTLED));
    }
}
