// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The loop in the kernel, with interrupts off. The module runs it one slice at a time, in a
//! write(2) of the thread on the CPU under test.
//!
//! ```text
//!   slice, at most 1 ms   rest 1 ms    slice      rest    ...
//!   |-------------------|            |---------|
//!     interrupts off      all that had to wait: interrupts, their threads, other tasks
//! ```
//!
//! A slice is too short to trigger the kernel's watchdogs: the lockup detectors and RCU's stall
//! detector count in seconds. A signal ends the run after the slice in which it arrives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_proc::{Hwnoise, LONGEST_SLICE, ProcRoot};

use super::clock::{Clock, Known};
use super::cycle::Monotonic;
use super::spin::{Found, Mail, Plan};
use crate::measure::Moved;

/// How long to rest after each slice.
const REST: Duration = Duration::from_millis(1);

/// Opens the module's file.
pub(super) fn open(root: &ProcRoot) -> Result<Hwnoise> {
    Hwnoise::open(root).context("--in-kernel")
}

/// Measures the kernel's clock with the loop itself, on this CPU.
pub(super) fn prepare(mut hwnoise: Hwnoise) -> Result<(Clock, Known)> {
    let slice = hwnoise.slice(LONGEST_SLICE, u64::MAX).context(GONE)?;
    let least = slice.bins.iter().map(|(low, _)| *low).find(|low| *low > 0);
    let Some(least) = least.map(|low| low.max(slice.min)) else {
        bail!("the kernel's clock stands still while interrupts are off");
    };
    Ok((
        Clock::Kernel(Monotonic),
        Known::of_kernel(least, slice.sum / slice.loops),
    ))
}

const GONE: &str = "the module no longer answers: was it unloaded?";

/// Measures on this thread until the plan is done or `stop` is set.
pub(super) fn measure(
    hwnoise: &mut Hwnoise,
    clock: &Clock,
    plan: &Plan,
    mail: &Mail,
    stop: &AtomicBool,
) -> Result<Found> {
    let mut found = Found::default();
    let mut measured = 0;
    while measured < plan.length && !stop.load(Ordering::Relaxed) {
        let length = (plan.length - measured).min(LONGEST_SLICE);
        let slice = hwnoise.slice(length, plan.threshold).context(GONE)?;
        // A slice ends with the first reading after its time. It counts as at least 1 ns, so that a
        // clock that stands still does not make the run endless.
        measured += slice.sum.max(1);
        found.samples.add_slice(&slice);
        found.peaks += slice.peaks;
        // One peak of a slice is reported, the longest one that the module kept: the counters are
        // not read between two peaks of a slice.
        if let Some((begin, took)) = slice.kept.iter().max_by_key(|(_, took)| *took) {
            let told = clock.now();
            mail.post(*begin, begin.saturating_add(*took), stop);
            found.away += clock.now().saturating_sub(told);
        }
        mail.sees(clock.now());
        std::thread::sleep(REST);
    }
    Ok(found)
}

/// Whether a counter may move while interrupts are off. Other counters moved after the slice, when
/// the pending interrupts were taken.
pub(super) fn may_move(moved: &Moved) -> bool {
    [
        "interrupt NMI",
        "interrupt MCE",
        "system management",
        "tick stolen",
    ]
    .iter()
    .any(|known| moved.counter.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_that_may_move_with_interrupts_off_is_a_cause() {
        let moves = |counter: &str| {
            may_move(&Moved {
                counter: counter.into(),
                by: 1,
                usual: 0.0,
                unusual: true,
            })
        };
        use crate::measure::Counter;
        let line = |name: &str| Counter::Interrupt(name.into(), "x".into()).to_string();
        assert!(moves(&line("NMI")) && moves(&line("MCE")));
        assert!(moves(&Counter::Smi.to_string()) && moves(&Counter::Steal.to_string()));
        assert!(!moves(&line("LOC")) && !moves(&line("25")) && !moves(&line("MCP")));
        assert!(!moves(&Counter::Preempted.to_string()));
        assert!(!moves(&Counter::Softirq("HI".into()).to_string()));
    }
}
