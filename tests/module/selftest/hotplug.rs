// SPDX-License-Identifier: GPL-2.0

//! A CPU goes offline while its events are live and its stack of free cells (freelist.rs) is not
//! empty.

use crate::{
    common::{begin, check, end, engine, on_cpus, sums_hold, total, Verdict},
    engine::{stats::Counter, Begin},
};
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint},
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
    time::{delay::fsleep, Delta},
};

extern "C" {
    fn remove_cpu(cpu: c_uint) -> c_int;
    fn add_cpu(cpu: c_uint) -> c_int;
}

/// Does `work` on CPU 1, while no other CPU uses the engine, and returns its count.
fn on_cpu_1(work: impl Fn() -> u64 + Sync) -> Result<u64> {
    let count = Atomic::<u64>::new(0);
    on_cpus(2, |cpu| {
        if cpu == 1 {
            count.store(work(), Relaxed);
        }
    })?;
    Ok(count.load(Relaxed))
}

/// Removes or adds a CPU. Retries for up to two seconds if the kernel is busy with the last change.
fn change(of_cpu: impl Fn() -> c_int) -> Result {
    for _ in 0..200 {
        match to_result(of_cpu()) {
            Err(EBUSY) => fsleep(Delta::from_millis(10)),
            done => return done,
        }
    }
    Err(EBUSY)
}

/// Other CPUs can use the events and the free cells of an offline CPU, and none is counted twice or
/// lost when the CPU comes back. Repeated several times.
pub(crate) fn an_offline_cpu_keeps_nothing_to_itself() -> Result<Verdict> {
    const EVENTS: u64 = 64;
    let engine = engine(EVENTS as u32)?;
    let begin_many = |from, to| {
        let started = |n: &u64| begin(&engine, [*n, 6]) == Begin::Started;
        (from..to).filter(started).count() as u64
    };
    let end_many = |from, to| {
        let found = |n: &u64| end(&engine, [*n, 6]);
        (from..to).filter(found).count() as u64
    };
    for round in 0..3 {
        // CPU 1 has used all cells: half are live, and some of the others are on its stack.
        let begun = on_cpu_1(|| begin_many(0, EVENTS))?;
        let ended = on_cpu_1(|| end_many(EVENTS / 2, EVENTS))?;
        // SAFETY: Called by a task that may sleep.
        change(|| unsafe { remove_cpu(1) })?;
        let taken = begin_many(EVENTS / 2, EVENTS);
        let more = begin(&engine, [EVENTS, 6]);
        let found = end_many(0, EVENTS / 2);
        // SAFETY: Called by a task that may sleep.
        change(|| unsafe { add_cpu(1) })?;
        check!("not all begun", begun == EVENTS);
        check!("not all ended", ended == EVENTS / 2);
        check!("it kept cells to itself", taken == EVENTS / 2);
        check!("more than the pool has", more == Begin::Full);
        check!("its events are not found", found == EVENTS / 2);
        check!(
            "those begun meanwhile are not found",
            on_cpu_1(|| end_many(EVENTS / 2, EVENTS))? == EVENTS / 2
        );
        check!("the pool leaks", engine.free() == EVENTS);
        check!("full", total(&engine, Counter::Full) == round + 1);
    }
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}
