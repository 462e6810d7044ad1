// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel's clocks.
//!
//! ```text
//!                   in a suspend   when the time of day is set
//! CLOCK_MONOTONIC   stops          runs on                       alerts, traces, timers, watchdogs: `Instant`
//! CLOCK_BOOTTIME    runs on        runs on                       ages, and limits such as "in 24 hours"
//! time of day       runs on        jumps                         what people read: `SystemTime`
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, ns, as in alerts.
#[must_use]
pub fn monotonic() -> u64 {
    awake().as_nanos() as u64
}

/// `CLOCK_MONOTONIC`: the time since boot, without suspends.
fn awake() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// `CLOCK_BOOTTIME`: the time since boot, with all suspends.
pub fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Total time of suspends since boot.
pub fn suspended() -> Duration {
    since_boot().saturating_sub(awake())
}

/// The present time of day, `HH:MM:SS` in UTC.
#[must_use]
pub fn now() -> String {
    of_day(since_1970().as_secs())
}

/// The time of day of an instant of `CLOCK_MONOTONIC`, ns; `HH:MM:SS` in UTC.
#[must_use]
pub fn at(monotonic: u64) -> String {
    // A suspend or a step of the clock since then shifts the result; the alert's `time` stays exact.
    let ago = awake().saturating_sub(Duration::from_nanos(monotonic));
    of_day(since_1970().saturating_sub(ago).as_secs())
}

/// The time of day of a time since 1970, in seconds; `HH:MM:SS` in UTC.
#[must_use]
pub fn of_day(seconds: u64) -> String {
    let seconds = seconds % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monotonic_time_has_a_time_of_day() {
        assert_eq!(of_day(86_400 + 3_723), "01:02:03");
        let (before, of, after) = (now(), at(monotonic()), now());
        assert!(of == before || of == after, "{before} {of} {after}");
    }
}
