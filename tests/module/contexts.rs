// SPDX-License-Identifier: GPL-2.0

//! lt_contexts: the engine on a real kernel, entered by NMIs, hard interrupts and softirqs while
//! the same CPU is in the middle of an operation. All operations use one bucket of the table, and
//! those of a CPU one stack of free cells.
//!
//! The files of the engine are compiled into this module as they are. The module loads if its tests
//! pass; otherwise the log has the failure.

#![allow(
    dead_code,
    reason = "the tests need less of the engine than the module does"
)]

use common::{check, sums_hold, total, Engine, Test, Verdict, SEED};
use contexts::storm::{cpus, storm, Context, Storm, CPUS};
use core::array;
use engine::platform::Platform;
use engine::stats::Counter;
use engine::{Begin, Late, Verdict as Update};
use kernel::{
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};
use mix::{crowd, pool_is_whole, Dice, Mix, Notes, Op};
use sys::{compat::parameter, platform::Kernel};

mod common;
mod contexts {
    pub(crate) mod storm;
}
#[path = "../../rust/engine.rs"]
mod engine;
mod mix;
mod sys;

module! {
    type: Contexts,
    name: "lt_contexts",
    authors: ["The latency-tracker developers"],
    description: "Tests of the latency-tracker engine in all contexts",
    license: "GPL v2",
    params: {
        nmis: u64 {
            default: 1_000,
            description: "NMIs of each CPU and test that must interrupt the engine",
        },
    },
}

/// Number of live events of a thread.
const THREAD_LIVE: usize = 4;
/// Number of live events of all contexts of a CPU: each handler has one.
const CPU_LIVE: usize = THREAD_LIVE + 3;

/// Every context has keys of its own, and there are as many cells as live events. Nothing is lost,
/// and each context finds its events unchanged.
fn each_finds_its_own() -> Result<Verdict> {
    let engine = Engine::new(cpus() as u32 * CPU_LIVE as u32, 0, SEED)?;
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
        let change = |open: &mut engine::Open<'_, 2, 2>| {
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
        parameter::<u64>(module_parameters::nmis.value()),
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

/// All contexts perform all operations on a few shared keys.
fn all_share_a_few_keys() -> Result<Verdict> {
    let mix = Mix::new()?;
    let dice: [[Dice; 4]; CPUS] =
        array::from_fn(|cpu| array::from_fn(|context| Dice::new((4 * cpu + context) as u64)));
    let storms = storm(
        "all_share_a_few_keys",
        parameter::<u64>(module_parameters::nmis.value()),
        |storm, context, cpu| {
            let dice = &dice[cpu as usize][context as usize];
            for _ in 0..3 {
                mix.step(storm, dice);
            }
            if context == Context::Thread {
                mix.search(storm, dice);
            }
        },
    )?;
    if storms.is_err() {
        return Ok(storms);
    }
    Ok(mix.verdict())
}

/// All contexts start and end two keys that can be live only once. At the end, each is live at most
/// once, and nothing was lost, since there is a cell for each key and each operation in progress.
fn a_key_is_live_once() -> Result<Verdict> {
    let keys: [_; 2] = crowd();
    let capacity = cpus() as usize * Context::ALL.len() + keys.len();
    let engine = common::engine(capacity as u32)?;
    let turns: [[Atomic<u64>; 4]; CPUS] = array::from_fn(|_| array::from_fn(|_| Atomic::new(0)));
    let (begun, ended) = (Atomic::<u64>::new(0), Atomic::<u64>::new(0));
    let storms = storm(
        "a_key_is_live_once",
        parameter::<u64>(module_parameters::nmis.value()),
        |storm, context, cpu| {
            let turn = turns[cpu as usize][context as usize].fetch_add(1, Relaxed);
            let key = &keys[(turn & 1) as usize];
            let data = [turn, turn];
            let begin = |guard: &_| engine.event_in_unique(guard, key, Kernel::now(), &data);
            storm.within(Op::Begin, begin);
            begun.add(1, Relaxed);
            // Some events are ended by their own context, some by another one; some are replaced.
            if turn % 3 == 0 {
                let end = |guard: &_| engine.event_out(guard, key, Kernel::now(), |_| true, |_| {});
                ended.add(u64::from(storm.within(Op::End, end)), Relaxed);
            }
        },
    )?;
    pr_info!(
        "a_key_is_live_once: {} started, {} replaced, {} ended, {} live, {} full\n",
        total(&engine, Counter::Started),
        total(&engine, Counter::Replaced),
        total(&engine, Counter::Ended),
        engine.pending_count(),
        total(&engine, Counter::Full)
    );
    if storms.is_err() {
        return Ok(storms);
    }
    for key in &keys {
        let guard = Kernel::guard();
        check!("live twice", engine.each_of(&guard, key, |_| true) <= 1);
    }
    check!("an event was lost", total(&engine, Counter::Full) == 0);
    check!(
        "a begin is missing",
        total(&engine, Counter::Started) == begun.load(Relaxed)
    );
    check!(
        "an end is missing",
        total(&engine, Counter::Ended) == ended.load(Relaxed)
    );
    check!(
        "nothing was replaced",
        total(&engine, Counter::Replaced) > 0
    );
    check!("the sums do not hold", sums_hold(&engine));
    Ok(pool_is_whole(&engine))
}

const TESTS: [Test; 3] = [
    ("each_finds_its_own", each_finds_its_own),
    ("all_share_a_few_keys", all_share_a_few_keys),
    ("a_key_is_live_once", a_key_is_live_once),
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
