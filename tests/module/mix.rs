// SPDX-License-Identifier: GPL-2.0

//! Everything at once: each context begins, ends, changes, drops, renews and holds events of the
//! same six keys; threads also search for timeouts and clear all events. Several events of each key
//! are live, in a pool of twelve that is often full.
//!
//! All keys are in one bucket of the table. The results of the operations are noted, and in the end
//! the engine's counters must match them. [`Mix::step`] runs in any context.

use crate::{
    common::{self, sums_hold, total, Engine, Verdict, SEED},
    engine::{held::Lookup, platform::Platform, stats::Counter, Begin, Verdict as Update},
    sys::platform::Kernel,
};
use core::array;
use kernel::{
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// An operation of the engine.
#[derive(Clone, Copy)]
pub(crate) enum Op {
    Begin = 1,
    End,
    Update,
    Search,
    Hold,
}

/// Performs operations under a guard, and may record them.
pub(crate) trait Notes {
    /// Performs `work`, recorded as `op`.
    fn within<R>(&self, op: Op, work: impl FnOnce(&<Kernel as Platform>::Guard) -> R) -> R;
}

/// Returns the first `N` keys of bucket 0 in a table of up to 64 buckets. All are in the same
/// bucket; the tags of their hashes are arbitrary.
pub(crate) fn crowd<const N: usize>() -> [[u64; 2]; N] {
    let mut next = 0;
    array::from_fn(|_| loop {
        next += 1;
        if SEED.hash(&[next, 0]) % 64 == 0 {
            return [next, 0];
        }
    })
}

/// Random numbers of one context of one CPU, or of one thread.
pub(crate) struct Dice(Atomic<u64>);

impl Dice {
    /// Creates a sequence that depends on `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Atomic::new((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns a random number below 64.
    fn roll(&self) -> u64 {
        // Relaxed: only one context or thread uses a sequence.
        let mut x = self.0.load(Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, Relaxed);
        x >> 58
    }
}

/// The engine, and the results of its operations.
pub(crate) struct Mix {
    engine: Engine,
    keys: [[u64; 2]; 6],
    said: [Atomic<u64>; Counter::ALL.len()],
    /// Number of referenced events found to have changed their identity.
    strange: Atomic<u64>,
}

impl Mix {
    /// Makes a mix that has not run yet. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            engine: common::engine(12)?,
            keys: crowd(),
            said: array::from_fn(|_| Atomic::new(0)),
            strange: Atomic::new(0),
        })
    }

    fn say(&self, counter: Counter, n: u64) {
        self.said[counter as usize].add(n, Relaxed);
    }

    /// Performs one random operation that is allowed in any context.
    pub(crate) fn step(&self, notes: &impl Notes, dice: &Dice) {
        let engine = &self.engine;
        let key = &self.keys[(dice.roll() * 6 / 64) as usize];
        match dice.roll() {
            0..=26 => {
                let data = [key[0], !key[1]];
                let begin = |guard: &_| engine.event_in(guard, key, Kernel::now(), &data);
                self.say(Counter::Attempts, 1);
                match notes.within(Op::Begin, begin) {
                    Begin::Started => self.say(Counter::Started, 1),
                    Begin::Full => self.say(Counter::Full, 1),
                    Begin::Crowded => self.say(Counter::Crowded, 1),
                }
            }
            27..=53 => {
                let end = |guard: &_| engine.event_out(guard, key, Kernel::now(), |_| true, |_| {});
                match notes.within(Op::End, end) {
                    true => self.say(Counter::Ended, 1),
                    false => self.say(Counter::Unmatched, 1),
                }
            }
            54..=57 => self.hold(notes, key),
            luck => {
                let verdict = match luck {
                    58..=59 => Update::Keep,
                    60..=61 => Update::Gone,
                    _ => Update::Renewed,
                };
                let update = |guard: &_| engine.update(guard, key, |_| verdict);
                match notes.within(Op::Update, update) {
                    Some(Update::Gone) => self.say(Counter::Gone, 1),
                    Some(Update::Renewed) => {
                        self.say(Counter::Attempts, 1);
                        self.say(Counter::Started, 1);
                        self.say(Counter::Replaced, 1);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes a reference, ends the event by it in some cases, and checks that its cell was not
    /// recycled.
    fn hold(&self, notes: &impl Notes, key: &[u64; 2]) {
        let engine = &self.engine;
        let Lookup::Found(event) = notes.within(Op::Hold, |guard: &_| engine.lookup(guard, key))
        else {
            return;
        };
        let before = engine.view(&event);
        let end = |guard: &_| {
            let ended = engine.event_out_held(guard, &event, Kernel::now(), |_| {});
            ended.is_some()
        };
        if before.start % 2 == 0 && notes.within(Op::End, end) {
            self.say(Counter::Ended, 1);
            // Its cell is held, so no other event can be live in it.
            self.strange.add(u64::from(engine.is_live(&event)), Relaxed);
        }
        let after = engine.view(&event);
        let same = after.key == *key && after.start == before.start && after.data[0] == key[0];
        self.strange.add(u64::from(!same), Relaxed);
        let put_ref = |guard: &_| engine.put_ref(guard, event);
        notes.within(Op::Hold, put_ref);
    }

    /// Occasionally searches all cells for timeouts, and rarely clears them. For threads.
    pub(crate) fn search(&self, notes: &impl Notes, dice: &Dice) {
        if dice.roll() != 0 {
            return;
        }
        notes.within(Op::Search, |_| {
            let report = |_: &_, _: &_, (): &()| self.say(Counter::TimedOut, 1);
            let engine = &self.engine;
            engine.expire(Kernel::now(), 10_000, |_| 10_000, || {}, |_| {}, report);
            if dice.roll() == 0 {
                self.say(Counter::Cleared, self.engine.clear());
            }
        });
    }

    /// Checks everything after all work has stopped. May sleep.
    pub(crate) fn verdict(&self) -> Verdict {
        let engine = &self.engine;
        let mut agree = true;
        for counter in Counter::ALL {
            let (is, said) = (
                total(engine, *counter),
                self.said[*counter as usize].load(Relaxed),
            );
            // No operation returns these two.
            agree &= is == said || matches!(counter, Counter::Late | Counter::Negative);
            if is != 0 || said != 0 {
                pr_info!("mix: {} {is}, said {said}\n", counter.name());
            }
        }
        if !agree {
            return Err("a counter says otherwise");
        }
        if total(engine, Counter::Full) == 0 || total(engine, Counter::Cleared) == 0 {
            return Err("the pool was never full, or never cleared");
        }
        if self.strange.load(Relaxed) != 0 {
            return Err("an event has changed while it was held");
        }
        if engine.holders() != 0 {
            return Err("a reference is left");
        }
        if total(engine, Counter::Late) > total(engine, Counter::TimedOut) {
            return Err("more ends were late than events timed out");
        }
        if !sums_hold(engine) {
            return Err("the sums do not hold");
        }
        pool_is_whole(engine)
    }
}

/// Clears the live events, and checks that all cells are present and free, and match the pool's
/// count. Nothing else may run.
pub(crate) fn pool_is_whole(engine: &Engine) -> Verdict {
    engine.clear();
    let capacity = u64::from(engine.capacity());
    if engine.pending_count() != 0 {
        return Err("an event cannot be cleared");
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
        return Err("an event cannot be found");
    }
    if !sums_hold(engine) {
        return Err("the sums do not hold");
    }
    Ok(())
}
