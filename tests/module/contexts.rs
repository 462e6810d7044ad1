// SPDX-License-Identifier: GPL-2.0

//! lt_contexts: the engine on a real kernel, entered by NMIs, hard interrupts and softirqs while
//! the same CPU is in its middle, in the same bucket and the same stack of free cells.
//!
//! The files of the engine are compiled into this module as they are. The module loads if its
//! tests pass, else the log says what went wrong.

#![allow(
    dead_code,
    reason = "the tests need less of the engine than the module does"
)]

use common::{check, sums_hold, total, Engine, Test, Verdict, SEED};
use contexts::storm::{cpus, storm, Context, Op, Storm, CPUS};
use core::array;
use kernel::{
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};
use platform::Platform;
use stats::Counter;
use sys::platform::Kernel;
use tracker::{Begin, Late, Tracker, Verdict as Update};

mod common;
mod contexts {
    pub(crate) mod storm;
}
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
    type: Contexts,
    name: "lt_contexts",
    authors: ["The latency-tracker developers"],
    description: "Tests of the latency-tracker engine in all contexts",
    license: "GPL v2",
    params: {
        nmis: u64 {
            default: 1_000,
            description: "NMIs of each CPU and test that shall interrupt the engine",
        },
    },
}

/// The first `N` keys of bucket 0 in a table of up to 64 buckets: all in the same bucket, the
/// tags of their hashes as they come.
fn crowd<const N: usize>() -> [[u64; 2]; N] {
    let mut next = 0;
    array::from_fn(|_| loop {
        next += 1;
        if SEED.hash(&[next, 0]).is_multiple_of(64) {
            return [next, 0];
        }
    })
}

/// Checks that all cells are there, free, and that they are what the pool says: nothing else
/// runs. Ends the live ones by clearing.
fn pool_is_whole(engine: &Engine) -> Verdict {
    engine.clear();
    let capacity = u64::from(engine.capacity());
    if engine.pending_count() != 0 {
        return Err("an event can not be cleared");
    }
    if engine.free() != capacity {
        return Err("the pool leaks");
    }
    let keys: [_; 64] = crowd();
    let all = || keys.iter().cycle().take(capacity as usize);
    if all().any(|key| common::begin(engine, *key) != Begin::Started) {
        return Err("the pool serves less than its capacity");
    }
    if common::begin(engine, [0, 0]) != Begin::Full {
        return Err("the pool serves more than its capacity");
    }
    if !all().all(|key| common::end(engine, *key)) {
        return Err("an event can not be found");
    }
    if !sums_hold(engine) {
        return Err("the sums do not hold");
    }
    Ok(())
}

/// Events of a thread that are live at a time.
const THREAD_LIVE: usize = 4;
/// Events of all contexts of a CPU that are live at a time: each handler has one.
const CPU_LIVE: usize = THREAD_LIVE + 3;

/// Every context has keys of its own, and there are as many cells as events can be live: nothing
/// is lost, each event is found by whoever began it, as it was left.
fn each_finds_its_own() -> Result<Verdict> {
    let engine: Engine = Tracker::new(cpus() as u32 * CPU_LIVE as u32, 0, SEED)?;
    let keys: [_; CPUS * CPU_LIVE] = crowd();
    let turns: [[Atomic<u64>; 4]; CPUS] = array::from_fn(|_| array::from_fn(|_| Atomic::new(0)));
    let (full, unknown, changed, unreported) = (
        Atomic::<u64>::new(0),
        Atomic::<u64>::new(0),
        Atomic::<u64>::new(0),
        Atomic::<u64>::new(0),
    );
    let reports = Atomic::<u64>::new(0);
    let count = |counter: &Atomic<u64>| counter.add(1, Relaxed);

    let begin = |storm: &Storm, key: &[u64; 2], turn: u64| {
        let begin = |guard: &_| engine.event_in(guard, key, turn, &[turn, !key[0]]);
        if storm.within(Op::Begin, begin) != Begin::Started {
            count(&full);
        }
    };
    let end = |storm: &Storm, key: &[u64; 2], turn: u64| {
        let reported = Atomic::<u64>::new(0);
        let late = |late: &Late<2, 2>| {
            count(&reported);
            if late.delay != 1 || late.data != [turn + 1, !key[0]] {
                count(&changed);
            }
        };
        if !storm.within(Op::End, |guard| {
            engine.event_out(guard, key, turn + 1, |_| true, late)
        }) {
            count(&unknown);
        } else if reported.load(Relaxed) != 1 {
            count(&unreported);
        }
        reports.add(reported.load(Relaxed), Relaxed);
    };
    let update = |storm: &Storm, key: &[u64; 2], turn: u64| {
        let change = |open: &mut tracker::Open<'_, 2, 2>| {
            if open.data() != [turn, !key[0]] {
                count(&changed);
            }
            open.set_data(&[turn + 1, !key[0]]);
            Update::Keep
        };
        if storm.within(Op::Update, |guard| engine.update(guard, key, change)) != Some(Update::Keep)
        {
            count(&unknown);
        }
    };

    let storms = storm(
        "each_finds_its_own",
        *module_parameters::nmis.value(),
        |storm, context, cpu| {
            let turn = turns[cpu as usize][context as usize].fetch_add(1, Relaxed);
            let mine = &keys[cpu as usize * CPU_LIVE..][..CPU_LIVE];
            if context == Context::Thread {
                // The last few stay live, so that handlers meet them.
                let live = THREAD_LIVE as u64;
                let key = &mine[(turn % live) as usize];
                if turn >= live {
                    end(storm, key, turn - live);
                }
                begin(storm, key, turn);
                update(storm, key, turn);
            } else {
                let key = &mine[THREAD_LIVE - 1 + context as usize];
                begin(storm, key, turn);
                update(storm, key, turn);
                end(storm, key, turn);
            }
        },
    )?;
    pr_info!(
        "each_finds_its_own: {} ended, {} live; {} full, {} unknown, {} changed, {} not reported\n",
        total(&engine, Counter::Ended),
        engine.pending_count(),
        full.load(Relaxed),
        unknown.load(Relaxed),
        changed.load(Relaxed),
        unreported.load(Relaxed)
    );
    if storms.is_err() {
        return Ok(storms);
    }
    let turns: u64 = turns.iter().flatten().map(|turn| turn.load(Relaxed)).sum();
    check!("an event was lost", full.load(Relaxed) == 0);
    check!("an event was not found", unknown.load(Relaxed) == 0);
    check!("an event has changed", changed.load(Relaxed) == 0);
    check!("an end was not reported", unreported.load(Relaxed) == 0);
    check!(
        "a begin is missing",
        total(&engine, Counter::Started) == turns
    );
    check!(
        "a live event is missing",
        engine.pending_count() == cpus() * THREAD_LIVE as u64
    );
    check!(
        "an end is missing",
        total(&engine, Counter::Ended) == reports.load(Relaxed)
    );
    check!("the sums do not hold", sums_hold(&engine));
    Ok(pool_is_whole(&engine))
}

/// What the operations themselves said, added up in all contexts.
struct Said {
    counts: [Atomic<u64>; Counter::ALL.len()],
}

impl Said {
    fn add(&self, counter: Counter, n: u64) {
        self.counts[counter as usize].add(n, Relaxed);
    }

    fn of(&self, counter: Counter) -> u64 {
        self.counts[counter as usize].load(Relaxed)
    }
}

/// A number from 0 to 63, another one each time; `state` belongs to one context of one CPU.
fn dice(state: &Atomic<u64>) -> u64 {
    let mut x = state.load(Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state.store(x, Relaxed);
    x >> 58
}

/// All contexts begin, end, change, drop and renew the same six keys, several times live each, in
/// a pool of twelve that is often full and sometimes cleared: every counter says what the
/// operations said.
fn all_share_a_few_keys() -> Result<Verdict> {
    let engine = common::engine(12)?;
    let keys: [_; 6] = crowd();
    let said = Said {
        counts: array::from_fn(|_| Atomic::new(0)),
    };
    let seeds: [[Atomic<u64>; 4]; CPUS] = array::from_fn(|cpu| {
        array::from_fn(|context| Atomic::new(0x9e37_79b9 * (4 * cpu + context + 1) as u64))
    });

    let storms = storm(
        "all_share_a_few_keys",
        *module_parameters::nmis.value(),
        |storm, context, cpu| {
            let seed = &seeds[cpu as usize][context as usize];
            for _ in 0..3 {
                let key = &keys[(dice(seed) * 6 / 64) as usize];
                match dice(seed) {
                    0..=26 => {
                        let begin = |guard: &_| {
                            engine.event_in(guard, key, Kernel::now(), &[key[0], !key[1]])
                        };
                        said.add(Counter::Attempts, 1);
                        match storm.within(Op::Begin, begin) {
                            Begin::Started => said.add(Counter::Started, 1),
                            Begin::Full => said.add(Counter::Full, 1),
                        }
                    }
                    27..=53 => {
                        let end = |guard: &_| {
                            engine.event_out(guard, key, Kernel::now(), |_| true, |_| {})
                        };
                        let known = storm.within(Op::End, end);
                        said.add(
                            if known {
                                Counter::Ended
                            } else {
                                Counter::Unmatched
                            },
                            1,
                        );
                    }
                    luck => {
                        let verdict = match luck {
                            54..=59 => Update::Keep,
                            60..=61 => Update::Gone,
                            _ => Update::Renewed,
                        };
                        let update = |guard: &_| engine.update(guard, key, |_| verdict);
                        match storm.within(Op::Update, update) {
                            Some(Update::Gone) => said.add(Counter::Gone, 1),
                            Some(Update::Renewed) => {
                                said.add(Counter::Attempts, 1);
                                said.add(Counter::Started, 1);
                                said.add(Counter::Replaced, 1);
                            }
                            _ => {}
                        }
                    }
                }
            }
            // These look at all cells, and are for threads.
            if context == Context::Thread && dice(seed) == 0 {
                let report = |_: &_, _: &_| said.add(Counter::TimedOut, 1);
                let search = |_: &_| {
                    engine.expire(Kernel::now(), |_| 10_000, || {}, report);
                    if dice(seed) == 0 {
                        said.add(Counter::Cleared, engine.clear());
                    }
                };
                storm.within(Op::Search, search);
            }
        },
    )?;
    for counter in Counter::ALL {
        pr_info!(
            "all_share_a_few_keys: {} {}, said {}\n",
            counter.name(),
            total(&engine, *counter),
            said.of(*counter)
        );
    }
    if storms.is_err() {
        return Ok(storms);
    }
    for counter in Counter::ALL {
        // No operation tells these.
        if !matches!(counter, Counter::Late | Counter::Negative) {
            check!(
                "a counter says otherwise",
                total(&engine, *counter) == said.of(*counter)
            );
        }
    }
    check!("the pool was never full", total(&engine, Counter::Full) > 0);
    check!("no event was cleared", total(&engine, Counter::Cleared) > 0);
    check!(
        "more ends were late than events timed out",
        total(&engine, Counter::Late) <= total(&engine, Counter::TimedOut)
    );
    check!("the sums do not hold", sums_hold(&engine));
    Ok(pool_is_whole(&engine))
}

const TESTS: [Test; 2] = [
    ("each_finds_its_own", each_finds_its_own),
    ("all_share_a_few_keys", all_share_a_few_keys),
];

struct Contexts;

impl kernel::Module for Contexts {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        if cpus() < 2 {
            pr_err!("needs two CPUs that send each other NMIs\n");
            return Err(ENODEV);
        }
        common::run(&TESTS)?;
        Ok(Self)
    }
}
