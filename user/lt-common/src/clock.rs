// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel's clocks.
//!
//! ```text
//!                   in a suspend   when the time of day is set
//! CLOCK_MONOTONIC   stops          runs on                       alerts, traces, timers, watchdogs: `Instant`
//! CLOCK_BOOTTIME    runs on        runs on                       ages, and limits such as "in 24 hours"
//! time of day       runs on        jumps                         what people read: `SystemTime`
//! ```

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// `CLOCK_BOOTTIME`: the time since boot, with all suspends.
pub fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Total time of suspends since boot.
pub fn suspended() -> Duration {
    let awake = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    since_boot().saturating_sub(awake)
}
