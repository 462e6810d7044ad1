// SPDX-License-Identifier: GPL-2.0

//! Measures the probes themselves with the processor's counters, before and after each run.
//!
//! ```text
//!   not measured:   tracepoint ---------------------> probe
//!   measured:       tracepoint --> around(meter, ---> probe )
//!                                  interrupts off, counters before and after
//! ```
//!
//! Whether a probe is measured is decided when it is attached, by [`Target::meter`]: its tracepoint
//! then calls a measuring function, which calls the probe. So unmeasured probes have no overhead,
//! not even a branch.
//!
//! C header: [`include/linux/perf_event.h`](srctree/include/linux/perf_event.h)

use crate::sys::{bindings, interrupts, platform::PreemptGuard};
use core::ffi::CStr;
use kernel::{bindings as errno, error::to_result, ffi::c_int, prelude::*, sync::Arc};

/// Number of processor events to choose from.
pub(crate) const EVENTS: usize = bindings::LT_MEASURE_EVENTS as usize;

/// Number of counters: the cycles, and the events.
pub(crate) const COUNTERS: usize = 1 + EVENTS;

/// Increments of each counter during a run: the cycles, then the chosen events, in their order.
/// `None` for a counter that did not count on this CPU.
pub(crate) type Values = [Option<u64>; COUNTERS];

/// Receives the measurements of a probe's runs.
pub(crate) trait Meter: Send + Sync {
    /// Takes the values of a run, and whether the run has changed the probe's state. The values are
    /// `None` if an NMI or a machine check interrupted the run. Called with interrupts off; an NMI
    /// may interrupt a call and make another one.
    fn take(&self, guard: &PreemptGuard, has_changed: bool, values: Option<&Values>);
}

/// The data that probes are called with.
pub(crate) trait Target: Send + Sync + 'static {
    /// Returns the meter of the probe that is about to be attached to this tracepoint or function;
    /// `None` to leave it unmeasured. May sleep.
    fn meter(&self, hook: &CStr) -> Option<Arc<dyn Meter>>;

    /// Returns a number that changes when a probe changes its state.
    fn changes(&self, guard: &PreemptGuard) -> u64;
}

/// Runs and measures a function. Any context.
pub(crate) fn around<R>(
    meter: &dyn Meter,
    changes: impl Fn(&PreemptGuard) -> u64,
    run: impl FnOnce() -> R,
) -> R {
    interrupts::off(|| {
        // SAFETY: With interrupts off nothing preempts.
        let guard = unsafe { PreemptGuard::already() };
        let before = changes(guard);
        let mut sample = bindings::lt_sample::default();
        // SAFETY: The sample can be written, and interrupts are off.
        unsafe { bindings::lt_measure_begin(&mut sample) };
        let result = run();
        // SAFETY: As above.
        unsafe { bindings::lt_measure_end(&mut sample) };
        let has_changed = changes(guard) != before;
        if sample.breaks != 0 {
            meter.take(guard, has_changed, None);
            return result;
        }
        let mut values = [None; COUNTERS];
        values[0] = Some(sample.cycles);
        let events = values.iter_mut().skip(1).zip(sample.events);
        for (nth, (value, event)) in events.enumerate() {
            *value = (sample.counted & 1 << nth != 0).then_some(event);
        }
        meter.take(guard, has_changed, Some(&values));
        result
    })
}

/// Value of the module parameter `measure`.
pub(crate) fn parameter() -> &'static CStr {
    // SAFETY: A C string that does not change once the module is loaded.
    unsafe { CStr::from_ptr(bindings::lt_measure_text().cast()) }
}

/// The reason why an event is not counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// This machine has no such counter.
    Absent,
    /// All counters are in use.
    Busy,
    /// An error of the kernel.
    Error(i32),
}

/// Counts the chosen events, on each CPU, until dropped. Only one exists at a time.
pub(crate) struct Counting {
    len: usize,
}

impl Counting {
    /// Starts counting the events with these numbers, on each CPU that is or comes online. Events
    /// that cannot be counted are reported as missing. May sleep. Fails with `EINVAL` for more than
    /// [`EVENTS`] events, or with `ENOSPC` if the kernel has no hotplug state left.
    pub(crate) fn new(events: &[u32]) -> Result<Self> {
        // SAFETY: There are that many numbers; may sleep.
        to_result(unsafe {
            bindings::lt_measure_start(events.as_ptr(), u32::try_from(events.len())?)
        })?;
        Ok(Self { len: events.len() })
    }

    /// Returns the number of CPUs that count each event, or the reason why none does.
    pub(crate) fn states(&self) -> impl Iterator<Item = core::result::Result<u32, Missing>> {
        (0..self.len as u32).map(|nth| {
            let mut error: c_int = 0;
            // SAFETY: The error can be written.
            let cpus = unsafe { bindings::lt_measure_cpus(nth, &mut error) };
            if cpus > 0 {
                return Ok(cpus);
            }
            Err(match error.unsigned_abs() {
                errno::ENOENT | errno::ENODEV | errno::EINVAL | errno::EOPNOTSUPP => {
                    Missing::Absent
                }
                errno::EBUSY => Missing::Busy,
                _ => Missing::Error(error),
            })
        })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // SAFETY: Balances the call that succeeded; may sleep.
        unsafe { bindings::lt_measure_stop() };
    }
}
