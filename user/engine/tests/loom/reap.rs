// SPDX-License-Identifier: GPL-2.0

//! An outgrown level of the table is freed only once no search reads it.
//!
//! The models of the other files use an RCU that does nothing, since they free nothing. Here, a
//! read-side critical section is a read lock, and a grace period briefly takes the lock as a
//! writer: it waits for the current sections. Freed memory is watched (src/memory.rs), so a thread
//! that accesses it fails the model.

use crate::{
    engine::{
        freelist::Link,
        platform::Platform,
        rcu_ht::{Candidate, Table},
    },
    machine::{run, Bound},
    sys::memory::watched::watch,
    table_model::index,
};
use kernel::{
    model,
    sync::atomic::{Atomic, Relaxed},
};
use loom::{
    sync::{RwLock, RwLockReadGuard},
    thread,
};
use std::sync::{
    atomic::{AtomicU32, Ordering},
    Arc,
};

loom::lazy_static! {
    static ref SECTIONS: RwLock<()> = RwLock::new(());
}

/// Number of the grace period that is skipped in a run; 0 for none.
static LEFT_OUT: AtomicU32 = AtomicU32::new(0);
/// Number of grace periods so far in this run.
static PASSED: AtomicU32 = AtomicU32::new(0);

/// A machine with an RCU.
struct Grace;

/// A read-side critical section.
struct Section(#[expect(dead_code, reason = "held to be dropped")] RwLockReadGuard<'static, ()>);

// SAFETY: There is one CPU, and a lock serves as RCU: `synchronize` waits for all guards. The
// exception is the grace period that a run leaves out to make the model fail; then accesses are
// detected, and the memory stays allocated.
#[expect(unsafe_code, reason = "an unsafe trait")]
unsafe impl Platform for Grace {
    type Guard = Section;

    fn guard() -> Section {
        let sections: &'static RwLock<()> = &SECTIONS;
        Section(sections.read().unwrap())
    }

    fn cpu(_: &Section) -> usize {
        0
    }

    fn cpus() -> usize {
        1
    }

    fn nodes() -> usize {
        1
    }

    fn node_of(cpu: usize) -> Option<usize> {
        (cpu == 0).then_some(0)
    }

    fn has_memory(_: usize) -> bool {
        true
    }

    fn distance(_: usize, _: usize) -> u32 {
        10
    }

    fn now() -> u64 {
        0
    }

    fn synchronize() {
        let number = PASSED.fetch_add(1, Ordering::Relaxed) + 1;
        if number != LEFT_OUT.load(Ordering::Relaxed) {
            drop(SECTIONS.write().unwrap());
        }
    }

    fn queue_memory_work() {}

    fn add_local(_: &Section, counter: &Atomic<u64>, n: u64) {
        counter.add(n, Relaxed);
    }
}

/// A hash with a tag, and with a home that is the same in every level.
const HASH: u64 = 3 << 57;

fn offers(table: &Table<Grace>, guard: &Section, cell: u32) -> bool {
    let take = |found: Candidate<'_>| (found.cell == index(cell)).then_some(());
    table.find(guard, HASH, take).is_some()
}

fn insert(table: &Table<Grace>, guard: &Section, cell: u32) -> Link {
    let link = Link::new();
    assert!(table.insert(guard, HASH, index(cell), &link));
    link
}

fn remove(table: &Table<Grace>, guard: &Section, place: Link) {
    table.remove(guard, HASH, &place, Candidate::anywhere(index(0)));
}

fn table() -> Arc<Table<Grace>> {
    PASSED.store(0, Ordering::Relaxed);
    watch(true);
    Arc::new(Table::new(4).unwrap())
}

/// A CPU inserts while the table grows and the old level is found to be empty.
fn insert_and_reap() {
    let table = table();
    let other = table.clone();
    let other = thread::spawn(move || {
        let guard = Grace::guard();
        let place = insert(&other, &guard, 1);
        assert!(offers(&other, &guard, 1), "a live event is not found");
        drop(guard);
        let guard = Grace::guard();
        assert!(offers(&other, &guard, 1), "a live event is not found");
        remove(&other, &guard, place);
    });
    assert_eq!(table.grow(8), Ok(true));
    let left = table.reap().unwrap();
    assert!(left <= 1, "levels");
    other.join().unwrap();
    assert_eq!(table.reap(), Ok(0), "an empty level");
}

/// A CPU ends the last event of an older level, and searches for it, while the level is freed.
fn end_and_reap() {
    let table = table();
    let place = insert(&table, &Grace::guard(), 1);
    assert_eq!(table.grow(8), Ok(true));
    assert_eq!(table.reap(), Ok(1), "a level with an event");
    let other = table.clone();
    let other = thread::spawn(move || {
        let guard = Grace::guard();
        assert!(offers(&other, &guard, 1), "a live event is not found");
        remove(&other, &guard, place);
        // Searches the event's old level, whose removal may not be visible yet.
        offers(&other, &guard, 1);
    });
    table.reap().unwrap();
    other.join().unwrap();
    assert_eq!(table.reap(), Ok(0), "an empty level");
}

/// Runs a model without the n-th grace period.
fn without(nth: u32, body: fn()) -> Result<u64, String> {
    model::mutate(&[]);
    LEFT_OUT.store(nth, Ordering::Relaxed);
    let result = run(BOUND, body);
    LEFT_OUT.store(0, Ordering::Relaxed);
    result
}

const BOUND: Bound = Some(4);

/// All models of this file.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("insert and reap", BOUND, insert_and_reap),
    ("end and reap", BOUND, end_and_reap),
];

#[test]
fn a_level_is_freed_without_readers() {
    // One test, since the grace period to skip is a setting of the whole process.
    for &(name, _, body) in MODELS {
        match without(0, body) {
            Ok(runs) => println!("holds   {name}: {runs} runs"),
            Err(message) => panic!("{name}: {message}"),
        }
    }
    for (name, body, nth) in [
        // After this grace period, no CPU inserts into the old level.
        ("insert and reap", insert_and_reap as fn(), 1),
        // After this grace period, no CPU reads the level that was empty.
        ("end and reap", end_and_reap, 2),
    ] {
        let message = without(nth, body).expect_err("not noticed");
        println!(
            "notices {name} without grace period {nth}: {}",
            message.lines().next().unwrap_or_default()
        );
    }
}
