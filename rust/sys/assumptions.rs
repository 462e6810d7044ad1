// SPDX-License-Identifier: GPL-2.0

//! Assumptions about the internals of the kernel, beyond the guarantees of its headers.
//!
//! ```text
//!   load: check() -- each self-test, once --> failed assumptions, a bit each
//!                                                  |
//!   `trackers`, a new instance: Kind::missing --> missing(the assumptions of the tracker)
//! ```
//!
//! A tracker that relies on an assumption names it in its `Kind::missing`: on a kernel where the
//! self-test fails the tracker is not available, and `trackers` shows why.
//!
//! The text of an assumption ends with the number that its self-test expects, and the self-test
//! reads the number from the text. So the self-test fails in a copy of this module that has another
//! number in the text (tests/vm/assumptions.sh).
//!
//! | assumption | read from | relied on by |
//! |---|---|---|
//! | [`QUEUED`] | `activate_task`, `block_task`, `__block_task`, `set_delayed`, `finish_task` in kernel/sched | [`TaskRef::is_awake`], [`TaskRef::is_asleep`] |
//! | [`WAKING_LOCK`] | `try_to_wake_up` in kernel/sched/core.c | [`TaskRef::may_be_woken_now`] |
//! | [`THROTTLE_WORK`] | `init_cfs_throttle_work`, `task_throttle_setup_work` in kernel/sched/fair.c | [`TaskRef::is_to_be_throttled`] |
//! | [`TIMER_BASE`] | `__hrtimer_setup`, `hrtimer_update_base` in kernel/time/hrtimer.c | [`HighRes::read`] |
//!
//! All were verified by reading Linux 7.2. Two more assumptions need no self-test. The members that
//! lead from a work item to the name of its workqueue are found by their types (workqueue.c); if
//! they are not found, work items have no queue names. The types of per-CPU variables of x86, and
//! the layout of the preemption counter of arm64, are asserted at compile time (helpers.c).
//!
//! A self-test that does not meet its case at that moment, such as a sleeping task, counts as
//! passed: it has no evidence against the assumption. No self-test starts the timer that it looks
//! at, or changes a task. All self-tests together wait for at most 20 pauses of about 1 ms, for a
//! work item, and for grace periods.

use crate::{
    engine::platform::Platform,
    sys::{
        atomic::{Atomic, Relaxed},
        bindings as helpers,
        platform::Kernel,
        task::TaskRef,
        timer::HighRes, //
    },
};
use core::ffi::CStr;
use kernel::{bindings, prelude::*};

/// An assumption and its self-test.
pub(crate) struct Assumption {
    /// Its bit in [`FAILED`].
    bit: u64,
    /// Its text, as shown to users. Ends with a digit.
    text: &'static CStr,
    /// The self-test: whether the assumption holds with this digit, as far as it can see. May
    /// sleep.
    holds: fn(u8) -> bool,
}

impl Assumption {
    /// Returns the digit at the end of the text.
    fn expected(&self) -> u8 {
        let bytes = self.text.to_bytes();
        let last = bytes.last().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: It points to a byte of a static string that is not empty. Volatile: the compiler
        // must not assume the digit, which may differ in a copy of this module.
        unsafe { last.read_volatile() }.wrapping_sub(b'0')
    }
}

/// A runnable task has an `on_rq` of 1, and `se.on_rq` set if it is of the fair class; a sleeping
/// task has neither, or has `se.sched_delayed` set.
pub(crate) static QUEUED: Assumption = Assumption {
    bit: 1,
    text: c"a task that is runnable has on_rq=1",
    holds: is_queued_while_runnable,
};

/// At `sched_waking`, the waker of another task holds the `pi_lock` of the wakee.
pub(crate) static WAKING_LOCK: Assumption = Assumption {
    bit: 2,
    text: c"the waker of a task holds its pi_lock: locked=1",
    // SAFETY: Called while the module is loading, where sleeping is allowed.
    holds: |locked| unsafe { helpers::lt_assume_waking_lock(locked != 0) },
};

/// The callback_head that throttles a task points to itself while it is not queued.
pub(crate) static THROTTLE_WORK: Assumption = Assumption {
    bit: 4,
    text: c"sched_throttle_work points to itself while idle: queued=0",
    // SAFETY: No requirements.
    holds: |queued| unsafe { helpers::lt_assume_throttle_work(queued != 0) },
};

/// The base of a high-resolution timer has the timer's clock, and that clock's offset from
/// `CLOCK_MONOTONIC`.
pub(crate) static TIMER_BASE: Assumption = Assumption {
    bit: 8,
    text: c"the base of an hrtimer has its clock and offset: clocks=4",
    holds: |clocks| {
        // SAFETY: The function has the expected type and contract.
        let seen = unsafe { helpers::lt_assume_hrtimer(Some(is_timer_as_set)) };
        seen == u32::from(clocks)
    },
};

static ALL: [&Assumption; 4] = [&QUEUED, &WAKING_LOCK, &THROTTLE_WORK, &TIMER_BASE];

/// Assumptions that failed, a bit each.
static FAILED: Atomic<u64> = Atomic::new(0);

/// Runs the self-tests, and logs failures. May sleep; must be called once, on load, before
/// there are instances.
pub(crate) fn check() {
    for assumption in ALL {
        if !(assumption.holds)(assumption.expected()) {
            let text = assumption.text.to_str().unwrap_or("?");
            pr_warn!("this kernel violates an assumption: {text}; the trackers that need this are unavailable\n");
            // Relaxed: read only by users of the module's files, which are created later.
            FAILED.add(assumption.bit, Relaxed);
        }
    }
}

/// Returns the first of these assumptions that failed, if any.
pub(crate) fn missing(needed: &[&'static Assumption]) -> Option<&'static CStr> {
    // Relaxed: as in `check`.
    let failed = FAILED.load(Relaxed);
    let mut needed = needed.iter();
    needed.find(|one| failed & one.bit != 0).map(|one| one.text)
}

/// Whether `missing` is the text of an assumption.
pub(crate) fn is_one(missing: &CStr) -> bool {
    ALL.iter().any(|one| one.text == missing)
}

fn is_queued_while_runnable(on_rq: u8) -> bool {
    let expected = i64::from(on_rq);
    // Repeated, since a priority change takes a task off its runqueue for a moment.
    let is_here = (0..100).any(|_| {
        let _guard = Kernel::guard();
        TaskRef::with_current(|task| {
            task.on_rq() == expected && task.is_awake() && task.may_run() && task.is_on_cpu()
        })
    });
    // SAFETY: The function has the expected type and contract.
    is_here && unsafe { helpers::lt_assume_asleep(Some(is_asleep)) }
}

/// # Safety
///
/// The task is valid, and its `pi_lock` held.
unsafe extern "C" fn is_asleep(task: *mut bindings::task_struct) -> bool {
    // SAFETY: The function's contract.
    let task = unsafe { TaskRef::from_raw(task) };
    task.is_asleep() && !task.is_awake()
}

/// Whether a timer reads as it was set; `clock` is its [`Timer::clock`](super::timer::Timer).
///
/// # Safety
///
/// The timer was set up.
unsafe extern "C" fn is_timer_as_set(
    timer: *mut bindings::hrtimer,
    clock: u32,
    due: u64,
    latest: u64,
    function: u64,
) -> bool {
    // SAFETY: The function's contract.
    let timer = unsafe { HighRes::from_raw(timer) };
    let read = timer.read();
    read.clock == clock as usize
        && read.due.wrapping_add(read.offset) == due
        && read.latest.wrapping_add(read.offset) == latest
        && read.function == function
        && (clock != 0 || (read.offset == 0 && timer.read_monotonic().is_some()))
}
