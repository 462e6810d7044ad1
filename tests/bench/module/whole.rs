// SPDX-License-Identifier: GPL-2.0

//! Whole operations of the engine, as a probe calls them: each takes its own guard.

use crate::{
    engine,
    engine::{
        hash::Seed,
        held::Lookup,
        labels::{Labels, Place, Source},
        platform::Platform,
        Begin, Verdict,
    },
    key,
    meter::{now, ticks, Meter},
    sys::{free_memory, platform::Kernel, Request, Switches, Way},
    unknown, Engine,
};
use core::hint::black_box;
use kernel::prelude::*;

#[inline(always)]
fn begin(engine: &Engine, n: u64) {
    let guard = Kernel::guard();
    engine.event_in(&guard, &key(n), Kernel::now(), &[n, !n]);
}

#[inline(always)]
fn end(engine: &Engine, n: u64) {
    let guard = Kernel::guard();
    engine.event_out(&guard, &key(n), Kernel::now, |_| true, |_| {});
}

/// Returns an engine with `live` live events.
fn filled(live: u64) -> Result<Engine> {
    // The pool is as full as it should ever get in use.
    let engine = engine(live + live / 16 + 1)?;
    for n in 0..live - 1 {
        begin(&engine, n);
    }
    Ok(engine)
}

/// Starts an event, and ends the oldest of `live` events.
#[inline(always)]
fn pair(engine: &Engine, live: u64, n: u64) {
    begin(engine, n.wrapping_add(live - 1));
    end(engine, n);
}

/// Measures all operations with `live` live events.
pub(crate) fn run(meter: &Meter, live: u64) -> Result {
    let engine = filled(live)?;
    meter.row("pair", live, |n| pair(&engine, live, n));

    let engine = filled(live + 1)?;
    meter.row("unknown_out", live, |n| {
        let guard = Kernel::guard();
        // No event ends, so the time of the end is not used.
        black_box(engine.event_out(&guard, &unknown(n), 0, |_| true, |_| {}));
    });

    meter.row("lookup_unknown", live, |n| {
        let guard = Kernel::guard();
        black_box(engine.lookup(&guard, &unknown(n)));
    });
    let mut at = 0;
    meter.row("lookup_known", live, |_| {
        let guard = Kernel::guard();
        if let Lookup::Found(event) = engine.lookup(&guard, &key(at)) {
            engine.put_ref(&guard, black_box(event));
        }
        at = if at + 1 == live { 0 } else { at + 1 };
    });
    meter.row("pair_held", live, |n| {
        let guard = Kernel::guard();
        let held = engine.event_in_held(&guard, &unknown(n), Kernel::now(), &[n, !n]);
        drop(guard);
        let guard = Kernel::guard();
        if let Ok(event) = held {
            engine.event_out_held(&guard, &event, Kernel::now(), |_| {});
            engine.put_ref(&guard, event);
        }
    });

    meter.row("update_unknown", live, |n| {
        let guard = Kernel::guard();
        black_box(engine.update(&guard, &unknown(n), |_| Verdict::Keep));
    });
    let mut at = 0;
    meter.row("update_known", live, |_| {
        let guard = Kernel::guard();
        black_box(engine.update(&guard, &key(at), |_| Verdict::Keep));
        at = if at + 1 == live { 0 } else { at + 1 };
    });
    Ok(())
}

/// Measures pairs whose delays are counted by label: a label of one word, and a label of two
/// words, as for a task's name.
pub(crate) fn labelled(meter: &Meter) -> Result {
    for (name, words) in [("pair_by_word", 1), ("pair_by_name", 2)] {
        let source = Source::Event(Place {
            at: 2,
            shift: 0,
            mask: u64::MAX,
            words,
        });
        let labels = Labels::new::<Kernel>(source, 16, Seed::new(3, 4))?;
        let mut engine = Engine::growing(64, 64, u64::MAX, crate::SEED, true)?;
        engine.set_labels(labels);
        meter.row(name, 1, |n| {
            let guard = Kernel::guard();
            engine.event_in(&guard, &key(n), Kernel::now(), &[n & 7, 5]);
            drop(guard);
            end(&engine, n);
        });
    }
    Ok(())
}

/// Measures pairs with `live` events that can time out, and the searches for timeouts.
///
/// Measures pairs before any search and between searches (the path alone), and with one search in
/// the time in which all events are replaced. Measures the search alone, with nothing due, and in a
/// pool whose cells were used and are free. Measures the longest time between two calls of
/// `cond_resched`, for which other tasks may wait, with nothing due and with everything due.
pub(crate) fn timeouts(meter: &Meter, live: u64) -> Result {
    let engine = filled(live)?;
    let mut n = 0;
    let mut round = || {
        for _ in 0..live {
            pair(&engine, live, n);
            n += 1;
        }
    };
    round();
    meter.report("pair_no_timeout", live, ticks(&mut round), live);
    search(&engine, NEVER, || {});
    meter.report("pair_timeout", live, ticks(&mut round), live);
    let total = ticks(|| {
        round();
        search(&engine, NEVER, || {});
    });
    meter.report("pair_search", live, total, live);
    let total = ticks(|| search(&engine, NEVER, || {}));
    meter.report("expiry_event", live, total, live);
    meter.report("slice_young", live, longest(&engine, NEVER), 1);
    meter.report("slice_due", live, longest(&engine, 0), 1);
    engine.clear();
    let total = ticks(|| search(&engine, NEVER, || {}));
    meter.report("expiry_free", live, total, live);
    Ok(())
}

/// A timeout that no event reaches.
const NEVER: u64 = u64::MAX / 2;

#[inline(never)]
fn search(engine: &Engine, timeout: u64, cond_resched: impl FnMut()) {
    let report = |_: &_, late: &_, (): &()| {
        black_box(late);
    };
    engine.expire(
        Kernel::now(),
        timeout,
        |_| timeout,
        cond_resched,
        |_| {},
        report,
    );
}

/// Returns the longest time of a search between two calls of `cond_resched`.
fn longest(engine: &Engine, timeout: u64) -> u64 {
    let mut longest = 0;
    ticks(|| {
        let mut last = now();
        search(engine, timeout, || {
            let here = now();
            longest = here.wrapping_sub(last).max(longest);
            last = here;
        });
    });
    longest
}

/// Measures the tracepoint of a request that is not tracked. The name says whether a probe is
/// attached.
pub(crate) fn tracepoint(meter: &Meter, name: &str) -> Result {
    let request = Request::new()?;
    meter.row(name, 0, |_| request.inserted());
    Ok(())
}

/// Measures the functions that the tracepoint of a switch calls. The name says which tracker is
/// attached.
pub(crate) fn switches(meter: &Meter, name: &str) -> Result {
    let switches = Switches::new()?;
    meter.row(name, 0, |n| switches.switch(&Kernel::guard(), n));
    Ok(())
}

/// Measures a scenario from start to end, by its number in glue.h. The name says which tracker is
/// attached.
pub(crate) fn way(meter: &Meter, what: u32, name: &str) -> Result {
    pass(meter, &Way::new(what)?, name)
}

/// Measures the scenario with an empty probe at each of its tracepoints: the cost of calling them.
pub(crate) fn empty_way(meter: &Meter, what: u32, name: &str) -> Result {
    let way = Way::new(what)?;
    way.attach_empty()?;
    pass(meter, &way, name)
}

fn pass(meter: &Meter, way: &Way, name: &str) -> Result {
    meter.row(name, 0, |_| way.pass(&Kernel::guard()));
    Ok(())
}

/// Measures a start that succeeds, each time with another cell of the pool, and a start that finds
/// the pool exhausted. Only the first such start, which is not measured, searches the stacks of all
/// possible CPUs: it leaves a note for later starts.
pub(crate) fn full(meter: &Meter) -> Result {
    let (succeeds, fails) = match Kernel::cpus() {
        2 => ("begin_2", "full_2"),
        16 => ("begin_16", "full_16"),
        _ => return Err(EINVAL),
    };
    let empty = engine(2 * meter.calls())?;
    meter.row(succeeds, 0, |n| begin(&empty, n));
    let exhausted = filled(64)?;
    while begin_or_full(&exhausted, 64) {}
    meter.row(fails, 0, |n| begin(&exhausted, n));
    Ok(())
}

fn begin_or_full(engine: &Engine, n: u64) -> bool {
    let guard = Kernel::guard();
    engine.event_in(&guard, &key(n), Kernel::now(), &[n, !n]) == Begin::Started
}

/// Measures the memory per event, of the whole engine, as the page allocator counts it. There are
/// enough events that the pages in a CPU's free lists do not matter.
pub(crate) fn memory(meter: &Meter) -> Result {
    const EVENTS: u64 = 1 << 20;
    let before = free_memory();
    let engine = engine(EVENTS)?;
    let bytes = before.wrapping_sub(free_memory());
    meter.report("memory", EVENTS, bytes, EVENTS);
    drop(engine);
    Ok(())
}
