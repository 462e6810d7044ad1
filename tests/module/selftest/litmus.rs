// SPDX-License-Identifier: GPL-2.0

//! Litmus tests of the atomics: accesses of several CPUs keep the order on which the engine relies.
//!
//! ```text
//!   MP, message passing      SB, store buffering      LB, load buffering
//!   x = 1   |  r0 = y        x = 1   |  y = 1         r0 = x  |  r1 = y
//!   y = 1   |  r1 = x        r0 = y  |  r1 = x        y = 1   |  x = 1
//!   weak: r0 = 1, r1 = 0     weak: r0 = 0, r1 = 0     weak: r0 = 1, r1 = 1
//!
//!   IRIW, independent reads of independent writes
//!   x = 1   |  y = 1  |  r0 = x  |  r2 = y
//!           |         |  r1 = y  |  r3 = x            weak: r0 = 1, r1 = 0, r2 = 1, r3 = 0
//! ```
//!
//! Each column is a CPU. The kernel's memory model forbids the weak outcome of an `ordered` test,
//! which fails if that outcome occurs. It allows the weak outcome of a `relaxed` test, which only
//! counts it: the count shows what this machine reorders. Documentation/design/testing.md (arm64)
//! describes what the tests can show in an emulated machine.
//!
//! The engine relies on MP to publish an event (`Event::publish`), on SB where two parties look for
//! each other (`Event::publish_and_order`, freelist/exhausted.rs), and on LB where the loads of a
//! key stay before the release of its cell (Documentation/design/engine.md, section 3). It does not
//! rely on IRIW, but uses the full barrier that forbids its weak outcome.

use crate::{
    common::{check, on_cpus, Verdict},
    engine::platform::Platform,
    selftest::ends::doze,
    sys::{
        atomic::{Acquire, Atomic, Full, Relaxed, Release},
        platform::Kernel,
    },
};
use kernel::prelude::*;

/// Number of rounds of each test: one for each combination of the pauses of four CPUs. Not more:
/// CPUs that share a processor of the host sleep in each round.
const ROUNDS: u64 = 1 << 12;

/// A word that shares its cache line with nothing.
#[repr(align(64))]
struct Line(Atomic<u64>);

impl Line {
    fn new() -> Self {
        Self(Atomic::new(0))
    }
}

/// The words of one round.
struct Round {
    x: Line,
    y: Line,
    /// The sum of what the CPUs have read: bit `n` is the value of `rn`.
    seen: Line,
}

impl Round {
    fn new() -> Self {
        Self {
            x: Line::new(),
            y: Line::new(),
            seen: Line::new(),
        }
    }
}

/// Waits until `arrived` has counted `expected` arrivals, among them this one.
fn meet(arrived: &Atomic<u64>, expected: u64) {
    // Release, and Acquire below: what each CPU did before it arrived comes before what any CPU
    // does afterwards.
    arrived.fetch_add(1, Release);
    let mut in_vain = 0_u64;
    while arrived.load(Acquire) < expected {
        in_vain += 1;
        // In a virtual machine, another CPU may be waiting for the host's processor on which this
        // one spins.
        if in_vain % 1000 == 0 {
            doze();
        }
    }
}

/// Runs a test on CPUs 0 to `cpus - 1`, and returns how often the outcome `weak` occurred. Logs how
/// often each outcome occurred: outcome `n` has `r0` in bit 0 of `n`, `r1` in bit 1, and so on.
/// Skipped if there are fewer CPUs.
///
/// `run` performs the accesses of a CPU to `x` and `y`, and returns the bits that it has read.
fn play(
    name: &str,
    cpus: u64,
    weak: usize,
    run: impl Fn(u64, &Atomic<u64>, &Atomic<u64>) -> u64 + Sync,
) -> Result<u64> {
    let present = Kernel::cpus() as u64;
    if present < cpus {
        pr_info!("{name}: skipped: needs {cpus} CPUs, and this machine has {present}\n");
        return Ok(0);
    }
    let arrived = Line::new();
    let (even, odd) = (Round::new(), Round::new());
    let counts = [const { Atomic::<u64>::new(0) }; 16];
    on_cpus(cpus, |cpu| {
        for n in 0..=ROUNDS {
            meet(&arrived.0, (n + 1) * cpus);
            let (this, last) = match n % 2 {
                0 => (&even, &odd),
                _ => (&odd, &even),
            };
            if n < ROUNDS {
                // Pauses of different lengths: the accesses of the CPUs meet at different places.
                for _ in 0..((n >> (3 * cpu)) & 7) * 4 {
                    arrived.0.load(Relaxed);
                }
                // Relaxed, here and below: `meet` orders the rounds.
                let read = run(cpu, &this.x.0, &this.y.0);
                this.seen.0.add(read, Relaxed);
            }
            // All CPUs have left the last round, and the next one, which uses its words, cannot
            // start before this CPU arrives.
            if cpu == 0 && n > 0 {
                let outcome = last.seen.0.load(Relaxed) as usize;
                counts[outcome % counts.len()].add(1, Relaxed);
                for word in [&last.x, &last.y, &last.seen] {
                    word.0.store(0, Relaxed);
                }
            }
        }
    })?;
    let counts = counts.map(|count| count.load(Relaxed));
    let outcomes = 1_usize << cpus;
    let (weak, all) = (counts[weak], &counts[..outcomes]);
    pr_info!("{name}: {ROUNDS} rounds, {weak} weak, outcomes {all:?}\n");
    Ok(weak)
}

fn message_passing() -> Result<Verdict> {
    let weak = play("MP ordered", 2, 0b01, |cpu, x, y| match cpu {
        0 => {
            x.store(1, Relaxed);
            // Release: a CPU that reads this also sees `x`.
            y.store(1, Release);
            0
        }
        _ => {
            // Acquire: pairs with the release.
            let flag = y.load(Acquire);
            flag | (x.load(Relaxed) << 1)
        }
    })?;
    check!("a word written before a release was not seen", weak == 0);
    play("MP relaxed", 2, 0b01, |cpu, x, y| match cpu {
        0 => {
            x.store(1, Relaxed);
            y.store(1, Relaxed);
            0
        }
        _ => {
            let flag = y.load(Relaxed);
            flag | (x.load(Relaxed) << 1)
        }
    })?;
    Ok(Ok(()))
}

fn store_buffering() -> Result<Verdict> {
    let weak = play("SB ordered", 2, 0b00, |cpu, x, y| match cpu {
        0 => {
            // Full: before the load.
            x.xchg(1, Full);
            y.load(Relaxed)
        }
        _ => {
            // Full: before the load. It succeeds, since no other CPU writes `y`.
            let _ = y.cmpxchg(0, 1, Full);
            x.load(Relaxed) << 1
        }
    })?;
    check!("neither CPU saw the other", weak == 0);
    play("SB relaxed", 2, 0b00, |cpu, x, y| match cpu {
        0 => {
            x.store(1, Relaxed);
            y.load(Relaxed)
        }
        _ => {
            y.store(1, Relaxed);
            x.load(Relaxed) << 1
        }
    })?;
    Ok(Ok(()))
}

fn load_buffering() -> Result<Verdict> {
    let weak = play("LB ordered", 2, 0b11, |cpu, x, y| match cpu {
        0 => {
            let read = x.load(Relaxed);
            // Release: after the load.
            y.store(1, Release);
            read
        }
        _ => {
            let read = y.load(Relaxed);
            // Release: after the load.
            x.store(1, Release);
            read << 1
        }
    })?;
    check!("a load saw a consequence of a later release", weak == 0);
    play("LB relaxed", 2, 0b11, |cpu, x, y| match cpu {
        0 => {
            let read = x.load(Relaxed);
            y.store(1, Relaxed);
            read
        }
        _ => {
            let read = y.load(Relaxed);
            x.store(1, Relaxed);
            read << 1
        }
    })?;
    Ok(Ok(()))
}

fn independent_reads() -> Result<Verdict> {
    // Full if the exchange succeeds. The word was then 1, and remains 1.
    let read_fully = |word: &Atomic<u64>| u64::from(word.cmpxchg(1, 1, Full).is_ok());
    let weak = play("IRIW ordered", 4, 0b0101, |cpu, x, y| match cpu {
        0 => {
            x.store(1, Relaxed);
            0
        }
        1 => {
            y.store(1, Relaxed);
            0
        }
        2 => {
            let first = read_fully(x);
            first | (y.load(Relaxed) << 1)
        }
        _ => {
            let first = read_fully(y);
            (first << 2) | (x.load(Relaxed) << 3)
        }
    })?;
    check!("two CPUs saw two writes in different orders", weak == 0);
    play("IRIW relaxed", 4, 0b0101, |cpu, x, y| match cpu {
        0 => {
            x.store(1, Relaxed);
            0
        }
        1 => {
            y.store(1, Relaxed);
            0
        }
        2 => {
            let first = x.load(Relaxed);
            first | (y.load(Relaxed) << 1)
        }
        _ => {
            let first = y.load(Relaxed);
            (first << 2) | (x.load(Relaxed) << 3)
        }
    })?;
    Ok(Ok(()))
}

/// All litmus tests, as far as there are enough CPUs.
pub(crate) fn the_orderings_hold() -> Result<Verdict> {
    let shapes: [fn() -> Result<Verdict>; 4] = [
        message_passing,
        store_buffering,
        load_buffering,
        independent_reads,
    ];
    for shape in shapes {
        if let Err(what) = shape()? {
            return Ok(Err(what));
        }
    }
    Ok(Ok(()))
}
