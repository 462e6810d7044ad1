// SPDX-License-Identifier: GPL-2.0

//! lt_selftest: the engine on a real kernel, without any tracepoint in the way.
//!
//! The files of the engine are compiled into this module as they are. Kernel threads, one bound
//! to each CPU, drive a [`Tracker`]; interrupts and preemption come as they come. The module
//! loads if every test passes, else the log says which one failed.

#![allow(
    dead_code,
    reason = "the tests need less of the engine than the module does"
)]

use hash::Seed;
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint, c_void},
    prelude::*,
    sync::atomic::{Acquire, Atomic, Relaxed, Release},
};
use platform::Platform;
use stats::Counter;
use sys::platform::Kernel;
use tracker::{Begin, Tracker};

#[path = "../../rust/event.rs"]
mod event;
#[path = "../../rust/freelist.rs"]
mod freelist;
#[path = "../../rust/hash.rs"]
mod hash;
#[path = "../../rust/histogram.rs"]
mod histogram;
#[path = "../../rust/platform.rs"]
mod platform;
#[path = "../../rust/rcu_ht.rs"]
mod rcu_ht;
#[path = "../../rust/stats.rs"]
mod stats;
mod sys;
#[path = "../../rust/tracker.rs"]
mod tracker;

module! {
    type: Selftest,
    name: "lt_selftest",
    authors: ["The latency-tracker developers"],
    description: "Tests of the latency-tracker engine",
    license: "GPL v2",
    params: {
        pairs: u64 {
            default: 10_000_000,
            description: "Pairs of begin and end through the small pool",
        },
    },
}

extern "C" {
    fn lt_run_on_cpus(
        nr: c_uint,
        function: unsafe extern "C" fn(c_uint, *mut c_void),
        arg: *mut c_void,
    ) -> c_int;
    fn lt_relax();
}

/// Runs `work` on CPUs 0 to `cpus - 1` at once.
fn on_cpus<F: Fn(u64) + Sync>(cpus: u64, work: F) -> Result {
    /// # Safety
    ///
    /// `arg` points to an `F` that can be shared with this thread.
    unsafe extern "C" fn call<F: Fn(u64) + Sync>(cpu: c_uint, arg: *mut c_void) {
        // SAFETY: The function's contract.
        let work = unsafe { &*arg.cast::<F>() };
        work(u64::from(cpu));
    }
    let arg = core::ptr::from_ref(&work).cast_mut().cast();
    // SAFETY: `call` gets the `F` it was made for, which is `Sync` and outlives the call: it
    // returns when all threads are done.
    to_result(unsafe { lt_run_on_cpus(cpus as c_uint, call::<F>, arg) })
}

fn relax() {
    // SAFETY: Called by our threads, which may sleep.
    unsafe { lt_relax() };
}

const DATA: usize = 2;
type Engine = Tracker<2, DATA, Kernel>;

fn engine(capacity: u32) -> Result<Engine> {
    Tracker::new(
        capacity,
        u64::MAX,
        Seed::new(0x1234_5678_9abc_def1, 0xfeed_beef_cafe_f00d),
    )
}

/// What a test found wrong.
type Verdict = core::result::Result<(), &'static str>;

macro_rules! check {
    ($what:literal, $condition:expr) => {
        if !$condition {
            return Ok(Err($what));
        }
    };
}

fn total(engine: &Engine, counter: Counter) -> u64 {
    engine.stats().total(counter)
}

/// The sums of stats.rs.
fn sums_hold(engine: &Engine) -> bool {
    let of = |counter| total(engine, counter);
    let begins =
        of(Counter::Started) + of(Counter::Full) + of(Counter::Filtered) + of(Counter::Off);
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

fn begin(engine: &Engine, key: [u64; 2]) -> Begin {
    let guard = Kernel::guard();
    engine.event_in(&guard, &key, Kernel::now(), &[key[0], !key[1]])
}

fn end(engine: &Engine, key: [u64; 2]) -> bool {
    let guard = Kernel::guard();
    engine.event_out(&guard, &key, Kernel::now(), |_| true, |_| {})
}

/// Two CPUs, a pool of 64, at most 64 live: whatever the number of pairs, none is lost.
fn small_pool_loses_nothing() -> Result<Verdict> {
    const LIVE: u64 = 32;
    let engine = engine(64)?;
    let pairs = *module_parameters::pairs.value() / 2;
    let started = Kernel::now();
    on_cpus(2, |cpu| {
        for n in 0..pairs {
            if n >= LIVE {
                end(&engine, [cpu, n - LIVE]);
            }
            begin(&engine, [cpu, n]);
            if n % 4096 == 0 {
                relax();
            }
        }
        for n in pairs.saturating_sub(LIVE)..pairs {
            end(&engine, [cpu, n]);
        }
    })?;
    pr_info!(
        "{} pairs through a pool of 64 in {} ms, full {}, unmatched {}, pending {}\n",
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
    check!("the pool leaks", engine.free() == 64);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// A pool of one cell, back to back.
fn pool_of_one() -> Result<Verdict> {
    let engine = engine(1)?;
    for n in 0..100_000 {
        check!("lost", begin(&engine, [7, n]) == Begin::Started);
        check!("more than one", begin(&engine, [8, n]) == Begin::Full);
        check!("not found", end(&engine, [7, n]));
    }
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// A pool of N serves N, and counts what does not fit; on all nodes.
fn full_means_full() -> Result<Verdict> {
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

/// All CPUs end the same events: each has one winner.
fn one_winner() -> Result<Verdict> {
    const EVENTS: u64 = 200_000;
    const AHEAD: u64 = 128;
    let cpus = (Kernel::cpus() as u64).min(8);
    let engine = engine(256)?;
    let begun = Atomic::<u64>::new(0);
    let wins = Atomic::<u64>::new(0);
    on_cpus(cpus, |cpu| {
        for n in 0..EVENTS {
            if cpu == 0 {
                // Not further ahead than the pool is large.
                while n >= wins.load(Acquire) + AHEAD {
                    relax();
                }
                begin(&engine, [n, 1]);
                begun.store(n + 1, Release);
            } else {
                while begun.load(Acquire) <= n {
                    relax();
                }
            }
            if end(&engine, [n, 1]) {
                wins.fetch_add(1, Release);
            }
        }
    })?;
    check!("not one winner each", wins.load(Relaxed) == EVENTS);
    let losers = EVENTS * (cpus - 1);
    check!(
        "losers not counted",
        total(&engine, Counter::Unmatched) == losers
    );
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// Begun on one CPU, ended on the next: cells travel and come home.
fn across_cpus() -> Result<Verdict> {
    const EVENTS: u64 = 50_000;
    const AHEAD: u64 = 16;
    let cpus = (Kernel::cpus() as u64).min(8);
    let engine = engine((cpus * AHEAD) as u32)?;
    let done: [Atomic<u64>; 8] = [const { Atomic::new(0) }; 8];
    let begun: [Atomic<u64>; 8] = [const { Atomic::new(0) }; 8];
    on_cpus(cpus, |cpu| {
        let before = cpu.checked_sub(1).unwrap_or(cpus - 1) as usize;
        let me = cpu as usize;
        let (mut mine, mut others) = (0, 0);
        while mine < EVENTS || others < EVENTS {
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
                relax();
            }
        }
    })?;
    check!("an event was lost", total(&engine, Counter::Full) == 0);
    check!("an end was lost", total(&engine, Counter::Unmatched) == 0);
    check!("the pool leaks", engine.free() == cpus * AHEAD);
    check!("the sums do not hold", sums_hold(&engine));
    Ok(Ok(()))
}

/// A test by its name; it fails itself if memory is short.
type Test = (&'static str, fn() -> Result<Verdict>);

const TESTS: [Test; 5] = [
    ("pool_of_one", pool_of_one),
    ("full_means_full", full_means_full),
    ("one_winner", one_winner),
    ("across_cpus", across_cpus),
    ("small_pool_loses_nothing", small_pool_loses_nothing),
];

struct Selftest;

impl kernel::Module for Selftest {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut failed = false;
        for (name, test) in TESTS {
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
        Ok(Self)
    }
}
