// SPDX-License-Identifier: GPL-2.0

//! A pool of N events holds N live events, however fast they follow each other, and the counters
//! are exact.

use crate::{
    common::{begin, check, cond_resched, end, engine, on_cpus, sums_hold, total, Verdict},
    engine::{platform::Platform, stats::Counter, Begin},
    module_parameters,
    sys::{compat::parameter, platform::Kernel},
};
use kernel::prelude::*;

/// Starts and ends `pairs` events on two CPUs; each keeps half of the pool live.
fn two_cpus_fill(capacity: u32, pairs: u64) -> Result<Verdict> {
    let live = u64::from(capacity) / 2;
    let pairs = (pairs / 2).max(live);
    let engine = engine(capacity)?;
    let started = Kernel::now();
    on_cpus(2, |cpu| {
        for n in 0..pairs {
            if n >= live {
                end(&engine, [cpu, n - live]);
            }
            begin(&engine, [cpu, n]);
            if n % 4096 == 0 {
                cond_resched();
            }
        }
        for n in pairs - live..pairs {
            end(&engine, [cpu, n]);
        }
    })?;
    pr_info!(
        "{} pairs through a pool of {capacity} in {} ms, full {}, unmatched {}, pending {}\n",
        total(&engine, Counter::Ended),
        (Kernel::now() - started) / 1_000_000,
        total(&engine, Counter::Full),
        total(&engine, Counter::Unmatched),
        engine.pending_count()
    );
    check!("an event was lost", total(&engine, Counter::Full) == 0);
    check!("an end was lost", total(&engine, Counter::Unmatched) == 0);
    check!(
        "a pair was lost",
        total(&engine, Counter::Ended) == pairs * 2
    );
    check!("the pool leaks", engine.free() == u64::from(capacity));
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// Two CPUs share a pool of 64, with at most 64 live events. However many pairs there are, none is
/// lost.
pub(crate) fn small_pool_loses_nothing() -> Result<Verdict> {
    two_cpus_fill(64, parameter::<u64>(module_parameters::pairs.value()))
}

/// Two CPUs share a pool of 100, with 100 live events: none is lost.
pub(crate) fn a_pool_of_100_serves_100_live() -> Result<Verdict> {
    two_cpus_fill(100, parameter::<u64>(module_parameters::pairs.value()) / 10)
}

/// With a pool of one, and one live event at a time, none of a million pairs is lost.
pub(crate) fn a_pool_of_one_serves_a_million_pairs() -> Result<Verdict> {
    const PAIRS: u64 = 1_000_000;
    let engine = engine(1)?;
    for n in 0..PAIRS {
        check!("lost", begin(&engine, [7, n]) == Begin::Started);
        check!("not found", end(&engine, [7, n]));
        if n % 4096 == 0 {
            cond_resched();
        }
    }
    check!("an event was lost", total(&engine, Counter::Full) == 0);
    check!("an end was lost", total(&engine, Counter::Ended) == PAIRS);
    check!("the sums do not hold", sums_hold(&engine));
    for n in 0..1000 {
        check!("lost", begin(&engine, [7, n]) == Begin::Started);
        check!("more than one event", begin(&engine, [8, n]) == Begin::Full);
        check!("not found", end(&engine, [7, n]));
    }
    check!("not counted", total(&engine, Counter::Full) == 1000);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// An ended event is free at once: all pairs are in one RCU read-side critical section, so no
/// grace period passes between them.
pub(crate) fn no_grace_period_is_needed() -> Result<Verdict> {
    let engine = engine(1)?;
    let reader = Kernel::guard();
    for n in 0..20_000 {
        check!("lost", begin(&engine, [7, n]) == Begin::Started);
        check!("not found", end(&engine, [7, n]));
    }
    drop(reader);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// A pool of N serves N events, from all NUMA nodes, and counts those that do not fit.
pub(crate) fn full_means_full() -> Result<Verdict> {
    let capacity = 1000;
    let engine = engine(capacity)?;
    for n in 0..u64::from(capacity) {
        check!("lost", begin(&engine, [n, n]) == Begin::Started);
    }
    check!("not full", begin(&engine, [0, 1 << 40]) == Begin::Full);
    check!("not counted", total(&engine, Counter::Full) == 1);
    check!(
        "not all pending",
        engine.pending_count() == u64::from(capacity)
    );
    check!("not all cleared", engine.clear() == u64::from(capacity));
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// Two CPUs count at the same time: every counter is exact.
pub(crate) fn two_cpus_count_exactly() -> Result<Verdict> {
    const EACH: u64 = 300_000;
    let engine = engine(64)?;
    on_cpus(2, |cpu| {
        for n in 0..EACH {
            begin(&engine, [cpu, n]);
            end(&engine, [cpu, n]);
            end(&engine, [cpu, n]);
            let guard = Kernel::guard();
            engine.filtered(&guard);
            engine.off(&guard);
            drop(guard);
            if n % 4096 == 0 {
                cond_resched();
            }
        }
    })?;
    let all = EACH * 2;
    check!("attempts", total(&engine, Counter::Attempts) == all * 3);
    check!("started", total(&engine, Counter::Started) == all);
    check!("ended", total(&engine, Counter::Ended) == all);
    check!("unmatched", total(&engine, Counter::Unmatched) == all);
    check!("filtered", total(&engine, Counter::Filtered) == all);
    check!("off", total(&engine, Counter::Off) == all);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// 65,536 live events are all found. For information, the log has the mean time of a start and of
/// an end, for a quarter of the events and for all of them.
pub(crate) fn all_of_65536_are_found() -> Result<Verdict> {
    const EVENTS: u64 = 1 << 16;
    let engine = engine(EVENTS as u32)?;
    for live in [EVENTS / 4, EVENTS] {
        let started = Kernel::now();
        for n in 0..live {
            begin(&engine, [n, n]);
            if n % 4096 == 0 {
                cond_resched();
            }
        }
        let filled = Kernel::now();
        // Ends them in a different order than they began: by an odd stride modulo `live`.
        for n in 0..live {
            let key = n.wrapping_mul(40_503) % live;
            check!("not found", end(&engine, [key, key]));
            if n % 4096 == 0 {
                cond_resched();
            }
        }
        pr_info!(
            "{live} live: {} ns for a begin, {} ns for an end\n",
            (filled - started) >> live.trailing_zeros(),
            (Kernel::now() - filled) >> live.trailing_zeros()
        );
    }
    check!("lost", total(&engine, Counter::Full) == 0);
    check!("the pool leaks", engine.free() == EVENTS);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}
