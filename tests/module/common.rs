// SPDX-License-Identifier: GPL-2.0

//! Shared by the tests of the engine in a real kernel: threads, the engine, and its sums.
//!
//! Compiled into each test module together with the files of the engine. [`begin`] and [`end`] run
//! in any context; the other functions may sleep.

use crate::{
    engine::{hash::Seed, histogram, platform::Platform, stats::Counter, Begin},
    sys::platform::Kernel,
};
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint, c_void},
    prelude::*,
};

extern "C" {
    fn lt_run_on_cpus(
        nr: c_uint,
        function: unsafe extern "C" fn(c_uint, *mut c_void),
        arg: *mut c_void,
    ) -> c_int;
    fn lt_cond_resched();
}

/// Runs `work` on CPUs 0 to `cpus - 1` at once.
pub(crate) fn on_cpus<F: Fn(u64) + Sync>(cpus: u64, work: F) -> Result {
    /// # Safety
    ///
    /// `arg` points to an `F` that can be shared with this thread, and that lives until this call
    /// returns.
    unsafe extern "C" fn call<F: Fn(u64) + Sync>(cpu: c_uint, arg: *mut c_void) {
        // SAFETY: The function's contract.
        let work = unsafe { &*arg.cast::<F>() };
        work(u64::from(cpu));
    }
    let arg = core::ptr::from_ref(&work).cast_mut().cast();
    // SAFETY: `call` gets the `F` that it was instantiated for, which is `Sync`. The `F` outlives
    // the call of `lt_run_on_cpus`, which returns only when all threads are done.
    to_result(unsafe { lt_run_on_cpus(cpus as c_uint, call::<F>, arg) })
}

/// Lets other tasks run.
pub(crate) fn cond_resched() {
    // SAFETY: Called by our threads, which may sleep.
    unsafe { lt_cond_resched() };
}

/// Words of data of an event.
pub(crate) const DATA: usize = 2;

/// The engine of the tests.
pub(crate) type Engine = crate::engine::Engine<2, DATA, Kernel>;

/// The seed of all engines of the tests.
pub(crate) const SEED: Seed = Seed::new(0x1234_5678_9abc_def1, 0xfeed_beef_cafe_f00d);

/// Returns an engine whose threshold no delay exceeds.
pub(crate) fn engine(capacity: u32) -> Result<Engine> {
    Engine::new(capacity, u64::MAX, SEED)
}

/// Result of a test; the error is the check that failed.
pub(crate) type Verdict = core::result::Result<(), &'static str>;

/// Ends the test as failed unless the condition holds.
macro_rules! check {
    ($what:literal, $condition:expr) => {
        if !$condition {
            return Ok(Err($what));
        }
    };
}
pub(crate) use check;

/// Returns the total of a counter.
pub(crate) fn total(engine: &Engine, counter: Counter) -> u64 {
    engine.stats().total(counter)
}

/// Checks the sums of stats.rs. `before_start_ended` is not in them: no event of these tests began
/// before its engine.
pub(crate) fn sums_hold(engine: &Engine) -> bool {
    let of = |counter| total(engine, counter);
    let begins = of(Counter::Started)
        + of(Counter::Full)
        + of(Counter::Filtered)
        + of(Counter::Off)
        + of(Counter::Crowded);
    let ends = of(Counter::Ended)
        + engine.pending_count()
        + of(Counter::Replaced)
        + of(Counter::Cleared)
        + of(Counter::Gone);
    let counted: u64 = (0..histogram::BUCKETS)
        .map(|bucket| engine.stats().bucket(bucket))
        .sum();
    of(Counter::Attempts) == begins
        && of(Counter::Started) == ends
        && of(Counter::Ended) == counted + of(Counter::Negative)
}

/// Starts an event whose data is computed from its key.
pub(crate) fn begin(engine: &Engine, key: [u64; 2]) -> Begin {
    let guard = Kernel::guard();
    engine.event_in(&guard, &key, Kernel::now(), &[key[0], !key[1]])
}

/// Ends an event; returns whether it was known.
pub(crate) fn end(engine: &Engine, key: [u64; 2]) -> bool {
    let guard = Kernel::guard();
    engine.event_out(&guard, &key, Kernel::now, |_| true, |_| {})
}

/// A named test. The outer result is an error if the test could not run, for example if memory is
/// short.
pub(crate) type Test = (&'static str, fn() -> Result<Verdict>);

/// Runs the tests and logs the result of each; fails with `EIO` if one failed. Stops with the error
/// of a test that could not run.
pub(crate) fn run(tests: &[Test]) -> Result {
    let mut failed = false;
    for (name, test) in tests {
        match test()? {
            Ok(()) => pr_info!("{name}: ok\n"),
            Err(what) => {
                pr_err!("{name}: FAILED: {what}\n");
                failed = true;
            }
        }
    }
    if failed {
        return Err(EIO);
    }
    Ok(())
}
