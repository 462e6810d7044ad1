// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The clock of the loop, in ns.
//!
//! It is the TSC if the kernel itself relies on the TSC: its clocksource is `tsc`, and the
//! processor reports that the TSC neither changes speed nor stops. The frequency of the TSC is
//! measured against CLOCK_MONOTONIC_RAW at the start, while the processor is kept busy so that it
//! runs at full speed. If the kernel does not rely on the TSC, the clock is CLOCK_MONOTONIC_RAW
//! itself, which the vDSO reads without entering the kernel. If the clocksource cannot be read in
//! user space, each reading is a system call, and takes as long as one.
//!
//! Readings are converted, not their differences, so that rounding errors do not add up.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_common::rt;
use lt_readiness::Root;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::args::Source;
use super::cycle::{Monotonic, Time};

/// How long the frequency of the TSC is measured.
const CALIBRATION: Duration = Duration::from_millis(100);

/// A clock that can be read.
pub(super) trait Now {
    fn now(&self) -> u64;
}

/// CLOCK_MONOTONIC_RAW.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw;

impl Now for Raw {
    #[inline(always)]
    fn now(&self) -> u64 {
        // It cannot fail: this clock is in every kernel since 2.6.28.
        clock_gettime(ClockId::CLOCK_MONOTONIC_RAW)
            .map_or(0, |t| Duration::from(t).as_nanos() as u64)
    }
}

impl Now for Monotonic {
    fn now(&self) -> u64 {
        Time::now(self)
    }
}

/// The TSC, counted from `base`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tsc {
    base: u64,
    /// ns in 2^32 ticks.
    scale: u64,
}

impl Now for Tsc {
    #[inline(always)]
    fn now(&self) -> u64 {
        let ticks = rt::ticks().wrapping_sub(self.base);
        ((u128::from(ticks) * u128::from(self.scale)) >> 32) as u64
    }
}

/// The clock in use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    Tsc(Tsc),
    Raw(Raw),
    /// CLOCK_MONOTONIC, as the kernel reads it for itself.
    Kernel(Monotonic),
}

/// Properties of the clock.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Known {
    /// `tsc`, `raw` or `kernel`.
    source: &'static str,
    /// Resolution: the smallest difference between two consecutive readings that differ, ns.
    resolution: u64,
    /// How long a reading takes on average, ns.
    reading: u64,
    /// Frequency of the TSC.
    #[serde(skip_serializing_if = "Option::is_none")]
    mhz: Option<f64>,
}

impl std::fmt::Display for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.mhz {
            Some(mhz) => write!(f, "TSC at {mhz:.3} MHz")?,
            None if self.source == KERNEL => write!(f, "CLOCK_MONOTONIC, in the kernel")?,
            None => write!(f, "CLOCK_MONOTONIC_RAW")?,
        }
        write!(
            f,
            ", resolution {} ns, a reading takes {} ns",
            self.resolution, self.reading
        )
    }
}

const KERNEL: &str = "kernel";

impl Known {
    /// Describes the clock that the kernel reads in its own loop.
    pub(super) fn of_kernel(resolution: u64, reading: u64) -> Self {
        Self {
            source: KERNEL,
            resolution,
            reading,
            mhz: None,
        }
    }

    /// Whether a reading takes as long as a system call: then the clock cannot be read in user space.
    pub(super) fn is_slow(&self) -> bool {
        self.reading > 300 && self.source != KERNEL
    }
}

impl Clock {
    /// Chooses, calibrates and measures the clock. Must be called on a CPU on which a loop will
    /// run.
    pub(super) fn prepare(source: Source) -> Result<(Self, Known)> {
        let fit = tsc_is_fit(&Root::new("/"));
        let clock = match (source, fit) {
            (Source::Raw, _) | (Source::Auto, Err(_)) => Clock::Raw(Raw),
            (_, Ok(())) => Clock::Tsc(calibrate()?),
            (Source::Tsc, Err(why)) => bail!("--clock tsc: {why}; use --clock raw"),
        };
        let (resolution, reading) = match &clock {
            Clock::Tsc(clock) => measure(clock),
            Clock::Raw(clock) => measure(clock),
            Clock::Kernel(clock) => measure(clock),
        };
        let known = Known {
            source: match clock {
                Clock::Tsc(_) => "tsc",
                Clock::Raw(_) => "raw",
                Clock::Kernel(_) => KERNEL,
            },
            resolution,
            reading,
            mhz: match clock {
                Clock::Tsc(tsc) => Some((1u64 << 32) as f64 * 1000.0 / tsc.scale as f64),
                Clock::Raw(_) | Clock::Kernel(_) => None,
            },
        };
        Ok((clock, known))
    }

    pub(super) fn now(&self) -> u64 {
        match self {
            Clock::Tsc(clock) => clock.now(),
            Clock::Raw(clock) => clock.now(),
            Clock::Kernel(clock) => Now::now(clock),
        }
    }

    /// Converts a time of this clock to CLOCK_MONOTONIC, which alerts and traces use. The time must
    /// be in the recent past, since the two clocks drift apart, by less than a thousandth.
    pub(super) fn monotonic(&self, at: u64) -> u64 {
        // The task may lose its CPU between two readings, so the closest of several pairs is used.
        let pair = |_| {
            let before = self.now();
            let monotonic = Time::now(&Monotonic);
            let took = self.now().saturating_sub(before);
            (took, before + took / 2, monotonic)
        };
        let (_, now, monotonic) = (0..5).map(pair).min().unwrap_or_default();
        monotonic.saturating_sub(now.saturating_sub(at))
    }
}

/// Checks whether the kernel itself relies on the TSC; the error is the reason why not.
fn tsc_is_fit(root: &Root) -> Result<(), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("this processor has no TSC".into());
    }
    for flag in ["constant_tsc", "nonstop_tsc"] {
        match root.cpu_flag(flag) {
            Ok(true) => {}
            Ok(false) => return Err(format!("the processor has no {flag}")),
            Err(missing) => return Err(missing.to_string()),
        }
    }
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match root.text(path) {
        Ok(source) if source == "tsc" => Ok(()),
        Ok(source) => Err(format!("the kernel's clocksource is {source}, not tsc")),
        Err(missing) => Err(missing.to_string()),
    }
}

/// Measures the frequency of the TSC, and keeps the processor busy meanwhile.
fn calibrate() -> Result<Tsc> {
    let (begin, end) = (pair(), {
        let until = Raw.now() + CALIBRATION.as_nanos() as u64;
        while Raw.now() < until {
            std::hint::spin_loop();
        }
        pair()
    });
    let (ticks, ns) = (end.0.wrapping_sub(begin.0), end.1.saturating_sub(begin.1));
    let scale = (u128::from(ns) << 32).checked_div(u128::from(ticks));
    let scale = scale
        .and_then(|scale| u64::try_from(scale).ok())
        .filter(|scale| *scale > 0);
    let scale = scale.context("the TSC does not count: use --clock raw")?;
    Ok(Tsc { base: end.0, scale })
}

/// Returns one instant on both clocks. One clock is read between two readings of the other; of
/// several such triples, the closest is used.
fn pair() -> (u64, u64) {
    let reading = |_| {
        let before = rt::ticks();
        let ns = Raw.now();
        let took = rt::ticks().wrapping_sub(before);
        (took, before.wrapping_add(took / 2), ns)
    };
    let best = (0..50).map(reading).min();
    best.map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

/// Returns the smallest difference, and the mean time of a reading.
fn measure<C: Now>(clock: &C) -> (u64, u64) {
    const READINGS: u64 = 20_000;
    let begin = clock.now();
    let (mut last, mut least) = (begin, u64::MAX);
    for _ in 0..READINGS {
        let now = clock.now();
        if now > last {
            least = least.min(now - last);
        }
        last = now;
    }
    (least, (last - begin) / READINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_available_clock_goes_forward_and_as_fast_as_the_others() {
        let sources = match tsc_is_fit(&Root::new("/")) {
            Ok(()) => vec![Source::Tsc, Source::Raw],
            Err(_) => vec![Source::Raw],
        };
        for source in sources {
            let (clock, known) = Clock::prepare(source).unwrap();
            assert!(
                known.resolution > 0 && known.resolution < u64::MAX,
                "{known}"
            );
            let (raw, own) = (Raw.now(), clock.now());
            let mut last = own;
            while Raw.now() < raw + 20_000_000 {
                let now = clock.now();
                assert!(now >= last);
                last = now;
            }
            // The clock was read between two readings of the raw clock, so the raw clock advanced further.
            let (own, raw) = (last - own, Raw.now() - raw);
            assert!(own as f64 <= raw as f64 * 1.01, "{own} of {raw}");
        }
    }

    #[test]
    fn a_converted_time_lies_between_two_readings_of_the_other_clock() {
        let (clock, _) = Clock::prepare(Source::Auto).unwrap();
        let monotonic =
            || Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_nanos() as u64;
        let before = monotonic();
        let at = clock.now();
        let after = monotonic();
        let found = clock.monotonic(at);
        // The error is at most the time of the closest pair of readings.
        assert!(
            found >= before.saturating_sub(1_000_000),
            "{before} {found}"
        );
        assert!(found <= after + 1_000_000_000, "{found} {after}");
    }

    #[test]
    fn a_missing_clock_is_refused_with_the_reason() {
        let dir = std::env::temp_dir().join(format!("lt-clock-{}", std::process::id()));
        let sys = dir.join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&sys).unwrap();
        std::fs::create_dir_all(dir.join("proc")).unwrap();
        let write = |flags: &str, source: &str| {
            std::fs::write(dir.join("proc/cpuinfo"), format!("flags : {flags}\n")).unwrap();
            std::fs::write(sys.join("current_clocksource"), source).unwrap();
            tsc_is_fit(&Root::new(&dir))
        };
        assert!(
            write("fpu constant_tsc", "tsc\n")
                .unwrap_err()
                .contains("nonstop_tsc")
        );
        assert!(
            write("constant_tsc nonstop_tsc", "hpet\n")
                .unwrap_err()
                .contains("hpet")
        );
        assert_eq!(
            write("constant_tsc nonstop_tsc", "tsc\n").is_ok(),
            cfg!(target_arch = "x86_64")
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
