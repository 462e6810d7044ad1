// SPDX-License-Identifier: GPL-2.0

//! A machine that costs as little as the kernel's: each thread is a CPU, and a guard holds nothing.

use crate::{
    engine::platform::Platform,
    sys::atomic::{Atomic, Relaxed},
};
use std::{cell::Cell, marker::PhantomData};

/// Maximum number of threads.
pub(crate) const CPUS: usize = 64;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
}

/// Makes this thread the CPU with that number; no other thread may be that CPU at the same time.
pub(crate) fn become_cpu(cpu: usize) {
    assert!(cpu < CPUS);
    CPU.set(cpu);
}

/// The machine.
pub(crate) struct Lean;

/// Holds nothing: a thread is its CPU all the time.
pub(crate) struct Guard(PhantomData<*const ()>);

// SAFETY: A thread has one CPU all the time, below `CPUS`, and a guard is not `Send`; nothing is freed
// that other threads may access.
unsafe impl Platform for Lean {
    type Guard = Guard;

    #[inline(always)]
    fn guard() -> Guard {
        Guard(PhantomData)
    }

    #[inline(always)]
    fn cpu(_: &Guard) -> usize {
        CPU.get()
    }

    fn cpus() -> usize {
        CPUS
    }

    fn nodes() -> usize {
        1
    }

    #[inline(always)]
    fn node_of(cpu: usize) -> Option<usize> {
        (cpu < CPUS).then_some(0)
    }

    fn has_memory(_: usize) -> bool {
        true
    }

    fn distance(_: usize, _: usize) -> u32 {
        10
    }

    fn now() -> u64 {
        crate::thread_time()
    }

    fn synchronize() {
        unreachable!("the benchmarks' engines do not grow");
    }

    fn queue_memory_work() {}

    /// One instruction on x86-64, as in the kernel.
    #[inline(always)]
    fn add_local(_: &Guard, counter: &Atomic<u64>, n: u64) {
        // Relaxed: only this thread writes it.
        counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
    }
}
