// SPDX-License-Identifier: GPL-2.0

//! The contenders: implementations that pair events.

use crate::{
    engine::{hash::Seed, platform::Platform, Begin},
    key,
    lean::{become_cpu, Lean},
    thread_time, Contender,
};
use std::{collections::HashMap, ptr::NonNull, sync::Mutex};

/// The delay of every operation, in nanoseconds: there is no clock.
const DELAY: u64 = 1_000;

/// The engine, with its counters and histogram.
pub struct Engine {
    engine: crate::engine::Engine<2, 2, Lean>,
    live: u64,
}

impl Engine {
    #[inline(always)]
    fn begin(&self, thread: u64, n: u64) {
        let guard = Lean::guard();
        let begun = self
            .engine
            .event_in(&guard, &key(thread, n), n, &[n, thread]);
        assert!(begun == Begin::Started);
    }
}

impl Contender for Engine {
    fn new(threads: u64, live: u64, _pairs: u64) -> Self {
        let capacity = threads * (live + live / 16 + 1);
        let seed = Seed::new(0x1234_5678_9abc_def1, 0xfeed_beef_cafe_f00d);
        let engine =
            u32::try_from(capacity).map(|cells| crate::engine::Engine::new(cells, u64::MAX, seed));
        let Ok(Ok(engine)) = engine else {
            panic!("no engine of {capacity} events");
        };
        let engine = Self { engine, live };
        for thread in 0..threads {
            become_cpu(thread as usize);
            (0..live - 1).for_each(|n| engine.begin(thread, n));
        }
        engine
    }

    fn run(&self, thread: u64, from: u64, pairs: u64) -> u64 {
        become_cpu(thread as usize);
        let started = thread_time();
        for n in from..from + pairs {
            self.begin(thread, n + self.live - 1);
            let guard = Lean::guard();
            let known = self
                .engine
                .event_out(&guard, &key(thread, n), n + DELAY, |_| true, |_| {});
            assert!(known);
        }
        thread_time() - started
    }
}

/// The obvious implementation: a map of starts under a lock, and a histogram.
pub struct Locked {
    state: Mutex<State>,
    live: u64,
}

/// The data that the lock protects.
struct State {
    starts: HashMap<[u64; 2], u64>,
    histogram: [u64; 64],
}

impl Locked {
    fn begin(&self, thread: u64, n: u64) {
        let Ok(mut state) = self.state.lock() else {
            panic!("another thread panicked");
        };
        state.starts.insert(key(thread, n), n);
    }

    fn end(&self, thread: u64, n: u64) {
        let Ok(mut state) = self.state.lock() else {
            panic!("another thread panicked");
        };
        let Some(start) = state.starts.remove(&key(thread, n)) else {
            panic!("a start was lost");
        };
        state.histogram[(n + DELAY - start).ilog2() as usize] += 1;
    }
}

impl Contender for Locked {
    fn new(threads: u64, live: u64, _pairs: u64) -> Self {
        let locked = Self {
            state: Mutex::new(State {
                starts: HashMap::with_capacity((threads * live) as usize),
                histogram: [0; 64],
            }),
            live,
        };
        for thread in 0..threads {
            (0..live - 1).for_each(|n| locked.begin(thread, n));
        }
        locked
    }

    fn run(&self, thread: u64, from: u64, pairs: u64) -> u64 {
        let started = thread_time();
        for n in from..from + pairs {
            self.begin(thread, n + self.live - 1);
            self.end(thread, n);
        }
        thread_time() - started
    }
}

/// liburcu's lock-free hash table, bare: see lfht.c.
///
/// # Invariants
///
/// The pointer is from `lt_lfht_new`. It is never freed.
pub struct Lfht(NonNull<Opaque>);

/// The table of lfht.c.
#[repr(C)]
struct Opaque {
    opaque: [u8; 0],
}

extern "C" {
    fn lt_lfht_new(threads: u64, live: u64, pairs: u64) -> *mut Opaque;
    fn lt_lfht_run(lfht: *mut Opaque, thread: u64, from: u64, pairs: u64) -> u64;
}

// SAFETY: Threads share the table; each uses its own nodes, by its number.
unsafe impl Send for Lfht {}
// SAFETY: Threads share the table; each uses its own nodes, by its number.
unsafe impl Sync for Lfht {}

impl Contender for Lfht {
    fn new(threads: u64, live: u64, pairs: u64) -> Self {
        // SAFETY: No requirements.
        let lfht = NonNull::new(unsafe { lt_lfht_new(threads, live, pairs) });
        let Some(lfht) = lfht else {
            panic!("no memory");
        };
        // INVARIANT: Just made.
        Self(lfht)
    }

    fn run(&self, thread: u64, from: u64, pairs: u64) -> u64 {
        // SAFETY: By the type invariant.
        let took = unsafe { lt_lfht_run(self.0.as_ptr(), thread, from, pairs) };
        assert!(took > 0, "a node was lost");
        took
    }
}
