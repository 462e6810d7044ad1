// SPDX-License-Identifier: GPL-2.0

//! Whichever allocation fails in the engine's creation or growth, that operation returns an error,
//! unless it can do without the memory. After a failed growth, the engine is usable with its old
//! size, and can grow later.
//!
//! In the first pass only the n-th allocation fails, for every n; in the second pass, all from the
//! n-th on fail. kmemleak searches for leaks afterwards.

use crate::{
    common::{begin, end, sums_hold, Engine, SEED},
    engine::Begin,
};
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint},
    prelude::*,
};

extern "C" {
    fn lt_faults_start() -> c_int;
    fn lt_faults_stop();
    fn lt_faults_arm(nth: c_uint, count: c_uint);
    fn lt_faults_disarm() -> c_uint;
}

/// Allows allocations to fail until it is dropped.
pub(crate) struct Faults(());

impl Faults {
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Called once, when the module is loaded.
        to_result(unsafe { lt_faults_start() })?;
        Ok(Self(()))
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        // SAFETY: `new` has called `lt_faults_start`.
        unsafe { lt_faults_stop() };
    }
}

/// The result of an operation, and how many of its allocations failed.
struct Tried<T> {
    result: Result<T>,
    failed: u32,
}

/// Performs the operation with `count` allocations failing, from the n-th on.
fn with_faults<T>(nth: u32, count: u32, operation: impl FnOnce() -> Result<T>) -> Tried<T> {
    // SAFETY: The suites run one after another, in a thread that may sleep.
    unsafe { lt_faults_arm(nth, count) };
    let result = operation();
    // SAFETY: The suites run one after another, in a thread that may sleep.
    let failed = unsafe { lt_faults_disarm() };
    Tried { result, failed }
}

/// Number of failing allocations: one, which the operation may tolerate, or all that follow.
const COUNTS: [u32; 2] = [1, u32::MAX];

/// More allocations than any operation here makes.
const MOST: u32 = 2000;

/// The size at the start, and the limit of growth.
const CAPACITY: u32 = 5000;
const MAX: u32 = 4 * CAPACITY;

fn make() -> Result<Engine> {
    Engine::growing(CAPACITY, MAX, u64::MAX, SEED, false)
}

/// Begins events `from` to `to`; returns the number that found no room.
fn begin_all(engine: &Engine, from: u32, to: u32) -> usize {
    (from..to)
        .filter(|&n| begin(engine, [1, n.into()]) == Begin::Full)
        .count()
}

/// Ends events 0 to `to`; returns the number that were not found.
fn end_all(engine: &Engine, to: u32) -> usize {
    (0..to).filter(|&n| !end(engine, [1, n.into()])).count()
}

/// Grows the engine to its limit, and uses all of it.
fn grows_to_the_end(engine: &Engine, live: u32) -> bool {
    let mut live = live;
    while engine.capacity() < MAX {
        let capacity = engine.capacity();
        // The pool is full, so growth is requested.
        if begin_all(engine, live, capacity + 1) != 1 {
            pr_err!("no place though fewer than {capacity} are live\n");
            return false;
        }
        live = capacity;
        if let Err(error) = engine.grow() {
            pr_err!("{capacity} cannot become more: {error:?}\n");
            return false;
        }
        if engine.capacity() <= capacity {
            pr_err!("{capacity} did not become more\n");
            return false;
        }
    }
    begin_all(engine, live, MAX) == 0
        && end_all(engine, MAX) == 0
        && engine.reap() == Ok(0)
        && engine.free() == u64::from(MAX)
        && engine.pending_count() == 0
        && sums_hold(engine)
}

#[kunit_tests(lt_engine_faults)]
mod suite {
    use super::{
        begin_all, end_all, grows_to_the_end, make, with_faults, CAPACITY, COUNTS, MAX, MOST,
    };
    use crate::common::sums_hold;
    use kernel::prelude::*;

    #[test]
    fn creation_is_refused_or_whole() {
        for count in COUNTS {
            let mut refused = 0;
            for nth in 1.. {
                assert!(nth < MOST);
                let tried = with_faults(nth, count, make);
                match tried.result {
                    Ok(engine) => {
                        assert_eq!(engine.capacity(), CAPACITY);
                        assert_eq!(begin_all(&engine, 0, CAPACITY), 0);
                        assert_eq!(end_all(&engine, CAPACITY), 0);
                        assert!(sums_hold(&engine));
                    }
                    Err(error) => {
                        assert_eq!(error, ENOMEM);
                        assert!(tried.failed > 0);
                        refused += 1;
                    }
                }
                if tried.failed == 0 {
                    pr_info!("creation: {} allocations, {refused} refused\n", nth - 1);
                    break;
                }
            }
            assert!(count == 1 || refused > 0);
        }
    }

    #[test]
    fn growth_that_fails_is_made_up_for() {
        for count in COUNTS {
            let mut refused = 0;
            for nth in 1.. {
                assert!(nth < MOST);
                let Ok(engine) = make() else {
                    return assert!(false);
                };
                // One event too many, which requests growth.
                assert_eq!(begin_all(&engine, 0, CAPACITY + 1), 1);
                assert!(engine.wants_to_grow());
                let tried = with_faults(nth, count, || engine.grow());
                match tried.result {
                    Ok(added) => assert_eq!(added, CAPACITY),
                    Err(error) => {
                        assert_eq!(error, ENOMEM);
                        assert!(tried.failed > 0);
                        assert_eq!(engine.capacity(), CAPACITY);
                        refused += 1;
                    }
                }
                assert!(grows_to_the_end(&engine, CAPACITY));
                if tried.failed == 0 {
                    pr_info!("growth: {} allocations, {refused} refused\n", nth - 1);
                    break;
                }
            }
            assert!(count == 1 || refused > 0);
        }
    }

    /// Memory stays short, and each growth gets a little further than the one before.
    #[test]
    fn growth_that_fails_often_gets_there() {
        let Ok(engine) = make() else {
            return assert!(false);
        };
        let mut live = 0;
        let mut refused = 0;
        let mut nth = 1;
        while engine.capacity() < MAX {
            let capacity = engine.capacity();
            assert_eq!(begin_all(&engine, live, capacity + 1), 1);
            live = capacity;
            let tried = with_faults(nth, u32::MAX, || engine.grow());
            match tried.result {
                Ok(_) => (),
                Err(error) => {
                    assert_eq!(error, ENOMEM);
                    refused += 1;
                }
            }
            // One more allocation succeeds each time, until growth makes progress.
            nth = match engine.capacity() > capacity {
                true => 1,
                false => nth + 1,
            };
            assert!(nth < MOST);
        }
        assert!(refused > 0);
        assert!(grows_to_the_end(&engine, live));
    }
}
