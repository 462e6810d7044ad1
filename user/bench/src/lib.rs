// SPDX-License-Identifier: GPL-2.0

//! The engine of the kernel module, compared natively with other ways to pair events.
//!
//! Each [`Contender`] does the same work: a pair starts one operation and ends the oldest live one.
//! Times are CPU time of the thread, which other load on the machine affects little. No clock is
//! read for the events, since that would dominate the time of a pair.

#![deny(unsafe_op_in_unsafe_fn)]
#![expect(dead_code, reason = "the module uses more of its engine")]

include!("../../engine/src/engine.rs");

#[path = "../../engine/src/sys.rs"]
mod sys;

mod contenders;
mod lean;

pub use contenders::{Engine, Lfht, Locked};

/// An implementation that pairs events.
pub trait Contender: Send + Sync {
    /// Creates a contender for these numbers of threads, live events per thread, and pairs per run.
    fn new(threads: u64, live: u64, pairs: u64) -> Self
    where
        Self: Sized;

    /// Runs the pairs `from` to `from + pairs` of a thread; returns the thread's CPU time for it in
    /// nanoseconds. Runs of a thread follow each other without a gap.
    fn run(&self, thread: u64, from: u64, pairs: u64) -> u64;
}

/// The n-th key of a thread.
#[inline(always)]
fn key(thread: u64, n: u64) -> [u64; 2] {
    let request = n.wrapping_mul(384);
    [
        0xffff_8881_0000_0000_u64.wrapping_add(request),
        0x0080_0010 + thread,
    ]
}

/// CPU time of this thread in nanoseconds.
fn thread_time() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec to write to.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    assert_eq!(failed, 0);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
