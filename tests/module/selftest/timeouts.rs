// SPDX-License-Identifier: GPL-2.0

//! A search for timeouts removes nothing from the table or the pool.

use crate::{
    common::{begin, check, cond_resched, end, engine, on_cpus, sums_hold, total, Engine, Verdict},
    engine::{platform::Platform, stats::Counter, Begin, Late, Why},
    sys::platform::Kernel,
};
use kernel::{
    prelude::*,
    sync::atomic::{Acquire, Atomic, Relaxed, Release},
};

const HOUR: u64 = 3_600_000_000_000;

/// Looks for timeouts at `now`, and returns how many were reported.
fn expire(engine: &Engine, now: u64, timeout: u64) -> u64 {
    let mut reported = 0;
    engine.expire(
        now,
        timeout,
        |_| timeout,
        cond_resched,
        |_| (),
        |_, _, ()| reported += 1,
    );
    reported
}

/// With a timeout of an hour, nothing is reported. Two hours later, each event is reported once,
/// and stays live. The ends then find all events, and the pool is complete again.
pub(crate) fn a_search_takes_nothing_away() -> Result<Verdict> {
    const EVENTS: u64 = 500;
    let engine = engine(EVENTS as u32)?;
    for _ in 0..20 {
        for n in 0..EVENTS {
            check!("lost", begin(&engine, [n, 4]) == Begin::Started);
        }
        let now = Kernel::now();
        check!("timed out too early", expire(&engine, now, HOUR) == 0);
        let later = now + 2 * HOUR;
        check!("not all timed out", expire(&engine, later, HOUR) == EVENTS);
        check!("timed out again", expire(&engine, later, HOUR) == 0);
        check!("one is gone", engine.pending_count() == EVENTS);
        for n in 0..EVENTS {
            check!("not found by its end", end(&engine, [n, 4]));
        }
        check!("the pool leaks", engine.free() == EVENTS);
    }
    check!(
        "not all late",
        total(&engine, Counter::Late) == total(&engine, Counter::TimedOut)
    );
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// One CPU starts and ends events. The other searches for timeouts all the time; each event is old
/// enough at once. An event times out at most once, its end detects that, and no event times out
/// after its end. The cell of a timed-out event returns to the pool like any other.
pub(crate) fn nothing_times_out_after_its_end() -> Result<Verdict> {
    const EVENTS: u64 = 200_000;
    const LIVE: u64 = 16;
    let engine = engine(LIVE as u32)?;
    let done = Atomic::<u64>::new(0);
    // For each event, the number of its timeouts and of its late ends.
    let mut books = KVVec::with_capacity(EVENTS as usize, GFP_KERNEL)?;
    for _ in 0..EVENTS {
        let entry = (Atomic::<u32>::new(0), Atomic::<u32>::new(0));
        books.push(entry, GFP_KERNEL)?;
    }
    on_cpus(2, |cpu| {
        if cpu == 1 {
            while done.load(Acquire) == 0 {
                engine.expire(
                    Kernel::now() + HOUR,
                    HOUR,
                    |_| HOUR,
                    cond_resched,
                    |_| (),
                    |_, late, ()| {
                        if let Some((timeouts, _)) = books.get(late.data[0] as usize) {
                            timeouts.add(1, Relaxed);
                        }
                    },
                );
                cond_resched();
            }
            return;
        }
        for n in 0..EVENTS + LIVE {
            if n >= LIVE {
                let guard = Kernel::guard();
                let key = n - LIVE;
                let late = |late: &Late<2, 2>| {
                    if let (Why::LateEnd, Some((_, ends))) = (late.why, books.get(key as usize)) {
                        ends.add(1, Relaxed);
                    }
                };
                engine.event_out(&guard, &[key, 5], Kernel::now() + HOUR, |_| true, late);
            }
            if n < EVENTS {
                begin(&engine, [n, 5]);
            }
            // However slow the other CPU is, it must have timed out some events.
            while n == EVENTS / 2 && total(&engine, Counter::TimedOut) == 0 {
                cond_resched();
            }
            if n % 4096 == 0 {
                cond_resched();
            }
        }
        done.store(1, Release);
    })?;
    let timed_out = total(&engine, Counter::TimedOut);
    pr_info!("{timed_out} of {EVENTS} timed out\n");
    for (timeouts, ends) in books.iter() {
        check!("timed out twice", timeouts.load(Relaxed) <= 1);
        check!(
            "timed out after its end",
            timeouts.load(Relaxed) == ends.load(Relaxed)
        );
    }
    check!("nothing timed out", timed_out > 0);
    check!("late", total(&engine, Counter::Late) == timed_out);
    check!("lost", total(&engine, Counter::Full) == 0);
    check!("ended", total(&engine, Counter::Ended) == EVENTS);
    check!("the pool leaks", engine.free() == LIVE);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}
