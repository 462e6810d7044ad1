// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decides whether to capture an alert, by limits like the limits of Perfetto's triggers. Callers
//! pass the time since boot, which includes suspends.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The limits that the user set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    /// Minimum time between two captures.
    pub(crate) cooldown: Duration,
    /// Maximum number of captures in any 24 hours.
    pub(crate) max_per_day: Option<usize>,
    /// Number of captures after which the run ends.
    pub(crate) max_captures: Option<usize>,
}

/// Reason for not taking a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skip {
    /// Too soon after the last capture.
    Cooldown,
    /// The limit of captures per day is reached.
    PerDay,
    /// The disk budget is used up.
    Budget,
    /// The disk budget is used up by unfinished captures of other recorders.
    Others,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::Cooldown => "cooldown",
            Skip::PerDay => "max-per-day",
            Skip::Budget => "disk budget",
            Skip::Others => "disk budget, used by unfinished captures of other recorders",
        })
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// Captures so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Times of the captures of the last 24 hours, the oldest first.
    recent: VecDeque<Duration>,
    last: Option<Duration>,
    /// Captures of this run.
    pub(crate) taken: usize,
    /// Captures skipped by the policy, or for lack of room: at most one for each wakeup.
    pub(crate) skipped: usize,
    /// Wakeups for which no trace was saved.
    pub(crate) failed: usize,
    /// Captures that the relay daemon did not get.
    pub(crate) unsent: usize,
    /// Captures without rows of `--parquet`.
    pub(crate) unwritten: usize,
    /// Alerts that were overwritten before they could be read.
    pub(crate) missed: u64,
}

impl History {
    /// Whether to capture an alert at `now`.
    pub(crate) fn decide(&mut self, policy: &Policy, now: Duration) -> Result<(), Skip> {
        while self
            .recent
            .front()
            .is_some_and(|t| now.saturating_sub(*t) >= DAY)
        {
            self.recent.pop_front();
        }
        if self
            .last
            .is_some_and(|t| now.saturating_sub(t) < policy.cooldown)
        {
            return Err(Skip::Cooldown);
        }
        if policy
            .max_per_day
            .is_some_and(|max| self.recent.len() >= max)
        {
            return Err(Skip::PerDay);
        }
        Ok(())
    }

    /// Counts a capture that was finished at `now`.
    pub(crate) fn captured(&mut self, now: Duration) {
        self.recent.push_back(now);
        self.last = Some(now);
        self.taken += 1;
    }

    /// Counts a capture that failed at `now`. The cooldown applies: the next capture may fail as slowly.
    pub(crate) fn failed(&mut self, now: Duration) {
        self.last = Some(now);
        self.failed += 1;
    }

    /// Counts a capture for which there was no room at `now`. The cooldown applies: there may be no room for a while.
    pub(crate) fn refused(&mut self, now: Duration) {
        self.last = Some(now);
        self.skipped += 1;
    }

    /// Whether the run has reached its number of captures.
    pub(crate) fn complete(&self, policy: &Policy) -> bool {
        policy.max_captures.is_some_and(|max| self.taken >= max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cooldown_daily_limit_and_count_are_enforced() {
        let policy = Policy {
            cooldown: Duration::from_secs(10),
            max_per_day: Some(2),
            max_captures: Some(3),
        };
        let at = Duration::from_secs;
        let mut history = History::default();
        assert_eq!(history.decide(&policy, at(0)), Ok(()));
        history.captured(at(0));
        assert_eq!(history.decide(&policy, at(9)), Err(Skip::Cooldown));
        assert_eq!(history.decide(&policy, at(10)), Ok(()));
        history.captured(at(10));
        assert_eq!(history.decide(&policy, at(30)), Err(Skip::PerDay));
        assert!(!history.complete(&policy));
        assert_eq!(history.decide(&policy, at(86_400)), Ok(()));
        history.captured(at(86_400));
        assert!(history.complete(&policy));
    }

    #[test]
    fn a_failed_snapshot_is_no_capture_but_cools_down() {
        let policy = Policy {
            cooldown: Duration::from_secs(10),
            max_per_day: Some(1),
            max_captures: Some(1),
        };
        for fail in [History::failed, History::refused] {
            let mut history = History::default();
            fail(&mut history, Duration::ZERO);
            let soon = Duration::from_secs(9);
            assert_eq!(history.decide(&policy, soon), Err(Skip::Cooldown));
            let later = Duration::from_secs(10);
            assert_eq!(history.decide(&policy, later), Ok(()));
            assert!(!history.complete(&policy));
        }
    }

    #[test]
    fn without_limits_every_alert_is_captured() {
        let mut history = History::default();
        for _ in 0..100 {
            let now = Duration::ZERO;
            assert_eq!(history.decide(&Policy::default(), now), Ok(()));
            history.captured(now);
        }
        assert!(!history.complete(&Policy::default()));
    }
}
