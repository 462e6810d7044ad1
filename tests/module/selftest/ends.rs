// SPDX-License-Identifier: GPL-2.0

//! An event ends once, on any CPU. Clearing also ends events, and leaves nothing behind.

use crate::{
    common::{
        begin, check, cond_resched, end, engine, on_cpus, sums_hold, total, Engine, Verdict, SEED,
    },
    engine::{platform::Platform, stats::Counter, Begin},
    sys::platform::Kernel,
};
use kernel::{
    prelude::*,
    sync::atomic::{Acquire, Atomic, Relaxed, Release},
};

// See threads.h.
extern "C" {
    fn lt_doze();
}

/// Sleeps briefly.
pub(crate) fn doze() {
    // SAFETY: Called by our threads, which may sleep.
    unsafe { lt_doze() };
}

/// All CPUs end the same events: each has one winner, and is reported once.
pub(crate) fn one_winner() -> Result<Verdict> {
    const EVENTS: u64 = 200_000;
    const AHEAD: u64 = 128;
    let cpus = (Kernel::cpus() as u64).min(8);
    let engine = Engine::new(256, 0, SEED)?;
    let begun = Atomic::<u64>::new(0);
    let wins = Atomic::<u64>::new(0);
    let reports = Atomic::<u64>::new(0);
    on_cpus(cpus, |cpu| {
        for n in 0..EVENTS {
            if cpu == 0 {
                // Stay ahead by at most half the capacity of the pool.
                while n >= wins.load(Acquire) + AHEAD {
                    cond_resched();
                }
                let guard = Kernel::guard();
                engine.event_in(&guard, &[n, 1], n, &[n, 1]);
                drop(guard);
                begun.store(n + 1, Release);
            } else {
                while begun.load(Acquire) <= n {
                    cond_resched();
                }
            }
            let guard = Kernel::guard();
            let late = |_: &_| reports.add(1, Relaxed);
            let won = engine.event_out(&guard, &[n, 1], n + 1, |_| true, late);
            drop(guard);
            if won {
                wins.fetch_add(1, Release);
            }
        }
    })?;
    check!("not one winner each", wins.load(Relaxed) == EVENTS);
    check!("not one report each", reports.load(Relaxed) == EVENTS);
    let losers = EVENTS * (cpus - 1);
    check!(
        "losers not counted",
        total(&engine, Counter::Unmatched) == losers
    );
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// Events start on one CPU and end on the next: cells move between the CPUs and return.
pub(crate) fn across_cpus() -> Result<Verdict> {
    const EVENTS: u64 = 50_000;
    const AHEAD: u64 = 16;
    let cpus = (Kernel::cpus() as u64).min(8);
    let engine = engine((cpus * AHEAD) as u32)?;
    let done: [Atomic<u64>; 8] = [const { Atomic::new(0) }; 8];
    let begun: [Atomic<u64>; 8] = [const { Atomic::new(0) }; 8];
    on_cpus(cpus, |cpu| {
        let before = cpu.checked_sub(1).unwrap_or(cpus - 1) as usize;
        let me = cpu as usize;
        let (mut mine, mut others, mut in_vain) = (0, 0, 0);
        while mine < EVENTS || others < EVENTS {
            let moved = mine + others;
            if mine < EVENTS && mine < done[me].load(Acquire) + AHEAD {
                begin(&engine, [cpu, mine]);
                mine += 1;
                begun[me].store(mine, Release);
            }
            if others < begun[before].load(Acquire) {
                end(&engine, [before as u64, others]);
                others += 1;
                done[before].store(others, Release);
            }
            if (mine + others) % 1024 == 0 {
                cond_resched();
            }
            // In a virtual machine, the other CPU may be waiting for the host's processor on
            // which this one spins.
            in_vain = if mine + others == moved {
                in_vain + 1
            } else {
                0
            };
            if in_vain == 1000 {
                in_vain = 0;
                doze();
            }
        }
    })?;
    check!("an event was lost", total(&engine, Counter::Full) == 0);
    check!("an end was lost", total(&engine, Counter::Unmatched) == 0);
    check!("the pool leaks", engine.free() == cpus * AHEAD);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// Clears a hundred times: the live events are counted and gone, all events that start afterwards
/// are found, and the pool has room for all.
pub(crate) fn clearing_leaves_nothing_behind() -> Result<Verdict> {
    const EVENTS: u64 = 500;
    let engine = engine(EVENTS as u32)?;
    for _ in 0..100 {
        for n in 0..EVENTS {
            check!("lost", begin(&engine, [n, 2]) == Begin::Started);
        }
        check!("not all cleared", engine.clear() == EVENTS);
        check!("something is pending", engine.pending_count() == 0);
        check!("an old event was found", !end(&engine, [1, 2]));
        for n in 0..EVENTS {
            check!(
                "a new one is lost",
                begin(&engine, [n, 2]) == Begin::Started
            );
        }
        for n in 0..EVENTS {
            check!("a new one is not found", end(&engine, [n, 2]));
        }
        check!("the pool leaks", engine.free() == EVENTS);
    }
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// One CPU clears all the time, while the other starts and ends events. Each event is either ended
/// or cleared, a new event of its key is found at once, and no cell is lost.
pub(crate) fn clearing_beside_begins_and_ends() -> Result<Verdict> {
    const EVENTS: u64 = 200_000;
    const LIVE: u64 = 16;
    let engine = engine(LIVE as u32)?;
    let done = Atomic::<u64>::new(0);
    let (found, cleared) = (Atomic::<u64>::new(0), Atomic::<u64>::new(0));
    on_cpus(2, |cpu| {
        if cpu == 1 {
            while done.load(Acquire) == 0 {
                cleared.add(engine.clear(), Relaxed);
                cond_resched();
            }
            return;
        }
        for n in 0..EVENTS + LIVE {
            if n >= LIVE && end(&engine, [n - LIVE, 3]) {
                found.add(1, Relaxed);
            }
            if n < EVENTS {
                begin(&engine, [n, 3]);
            }
            // However slow the other CPU is, it must have cleared some events.
            while n == EVENTS / 2 && cleared.load(Relaxed) == 0 {
                cond_resched();
            }
            if n % 4096 == 0 {
                cond_resched();
            }
        }
        done.store(1, Release);
    })?;
    let (found, cleared) = (found.load(Relaxed), cleared.load(Relaxed));
    pr_info!("{found} of {EVENTS} ended, {cleared} cleared\n");
    // The clearing CPU holds a cell for a moment after its event has ended.
    let started = EVENTS - total(&engine, Counter::Full);
    check!("neither ended nor cleared", found + cleared == started);
    check!("ended", total(&engine, Counter::Ended) == found);
    check!("cleared", total(&engine, Counter::Cleared) == cleared);
    check!("nothing was cleared", cleared > 0);
    check!("the pool leaks", engine.free() == LIVE);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}
