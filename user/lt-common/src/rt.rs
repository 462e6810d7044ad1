// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Real-time priority for the waiting thread: the snapshot must be taken before the flight recorder has overwritten
//! the interesting part, however busy the machine is. Also the priority and the clock for measuring loops.
//!
//! `SCHED_RESET_ON_FORK`: children of this thread (lttng, babeltrace2, the thread that explains) run at ordinary
//! priority.

use anyhow::{Context, Result, bail};
use nix::sys::mman::{MlockAllFlags, mlockall};

/// Above ordinary threads, below interrupt threads (50).
pub const PRIORITY: i32 = 45;

/// Runs the calling thread under SCHED_FIFO, above ordinary threads.
pub fn raise() -> Result<()> {
    fifo(PRIORITY)
}

/// Runs the calling thread under SCHED_FIFO with this priority.
pub fn fifo(priority: i32) -> Result<()> {
    // SAFETY: sched_param is a plain C structure of integers, for which all zeroes is a valid value.
    #[expect(unsafe_code, reason = "sched_setscheduler(2) has no safe wrapper")]
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = priority;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `param` is initialised and outlives the call, which only reads it; 0 is this thread.
    #[expect(unsafe_code, reason = "sched_setscheduler(2) has no safe wrapper")]
    let result = unsafe { libc::sched_setscheduler(0, policy, &param) };
    if result != 0 {
        bail!(
            "no real-time priority ({})",
            std::io::Error::last_os_error()
        );
    }
    Ok(())
}

/// Locks the program's pages in memory.
pub fn lock_memory() -> Result<()> {
    // MCL_FUTURE is for root only: for other users, a limit could make a later allocation fail.
    let flags = if nix::unistd::geteuid().is_root() {
        MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE
    } else {
        MlockAllFlags::MCL_CURRENT
    };
    mlockall(flags).context("memory not locked")
}

/// Reads the processor's own clock (TSC), after all preceding instructions have completed.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of every x86-64 processor, access no memory, and are normally allowed in user
    // space; where rdtsc is not allowed (PR_SET_TSC), the process is killed.
    #[expect(unsafe_code, reason = "intrinsics of the processor are unsafe")]
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Stub for other architectures, which have no TSC; never called.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    0
}
