// SPDX-License-Identifier: GPL-2.0

//! Measures the parts of a pair (a start and its end) separately, and alternatives to these parts.

use crate::{
    engine::{
        event::Event,
        freelist::{Cell, Freelist},
        platform::Platform,
        rcu_ht::Table,
        stats::{Counter, Stats},
    },
    key,
    meter::Meter,
    sys::{platform::Kernel, Objpool},
    SEED,
};
use core::hint::black_box;
use kernel::prelude::*;

/// Number of cells and slots; the parts use one at a time.
const CELLS: u32 = 1024;

/// Measures all parts.
pub(crate) fn run(meter: &Meter) -> Result {
    // The loop itself, and the construction of a key.
    meter.row("loop", 0, |n| {
        black_box(n);
    });
    meter.row("key", 0, |n| {
        black_box(key(n));
    });
    meter.row("clock", 0, |_| {
        black_box(Kernel::now());
    });
    meter.row("guard", 0, |_| {
        black_box(Kernel::guard());
    });
    meter.row("hash", 0, |n| {
        black_box(SEED.hash(&black_box(key(n))));
    });
    pools(meter)?;
    table(meter)?;
    counters(meter)
}

fn pools(meter: &Meter) -> Result {
    let pool = Freelist::<Event<2, 2>, Kernel>::new(CELLS, CELLS)?;
    let guard = Kernel::guard();
    meter.row("pool", 0, |_| {
        if let Some(index) = pool.get(&guard) {
            pool.put(&guard, black_box(index));
        }
    });
    drop(guard);
    let pool = Objpool::new(CELLS, size_of::<Event<2, 2>>())?;
    meter.row("objpool", 0, |_| pool.cycle());
    Ok(())
}

fn table(meter: &Meter) -> Result {
    let pool = Freelist::<Event<2, 2>, Kernel>::new(CELLS, CELLS)?;
    let table = Table::<Kernel>::new(CELLS)?;
    let guard = Kernel::guard();
    let index = pool.get(&guard).ok_or(ENOMEM)?;
    let cell = pool.cell(index);
    meter.row("table", 0, |n| {
        // The hash is measured as a part of its own.
        let hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if table.insert(&guard, hash, index, cell.link()) {
            let found = table.find(&guard, hash, |found| (found.cell == index).then_some(found));
            if let Some(found) = black_box(found) {
                table.remove(&guard, hash, cell.link(), found);
            }
        }
    });
    Ok(())
}

fn counters(meter: &Meter) -> Result {
    let stats = Stats::new::<Kernel>()?;
    let guard = Kernel::guard();
    meter.row("count", 0, |_| {
        stats.here::<Kernel>(&guard).count(Counter::UNMATCHED);
    });
    meter.row("record", 0, |n| {
        stats.here::<Kernel>(&guard).record(1_000 + n % 256);
    });
    Ok(())
}
