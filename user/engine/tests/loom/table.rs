// SPDX-License-Identifier: GPL-2.0

//! The table: a live event is found, even if others are inserted and removed.

use crate::{
    engine::{
        freelist::{Index, Link},
        rcu_ht,
    },
    machine::{fails, holds, source, Bound, Model, Mutate, On},
};
use kernel::{
    model::{Change, Mutation},
    prelude::*,
    sync::atomic::{Acquire, Atomic, Release},
};
use loom::thread;
use std::{ops::Deref, sync::Arc};

const TABLE: Mutate = source!("rcu_ht.rs");

type Two = Model<2>;

/// Returns an index that belongs to no pool, since the tables of these tests have none.
#[expect(unsafe_code, reason = "only a pool makes indices")]
pub(crate) fn index(cell: u32) -> Index {
    // SAFETY: The index is not used with a pool.
    unsafe { Index::from_raw(cell) }
}

/// A table whose operations ignore the CPU.
struct Table(rcu_ht::Table<Two>);

impl Table {
    fn new(cells: u32) -> Result<Self> {
        Ok(Self(rcu_ht::Table::new(cells)?))
    }

    fn insert(&self, hash: u64, cell: u32) -> Option<Link> {
        let link = Link::new();
        self.0
            .insert(&On(0), hash, index(cell), &link)
            .then_some(link)
    }

    fn remove(&self, hash: u64, place: Link) {
        let anywhere = rcu_ht::Candidate::anywhere(index(0));
        self.0.remove(&On(0), hash, &place, anywhere);
    }

    fn find<R>(&self, hash: u64, mut take: impl FnMut(u32) -> Option<R>) -> Option<R> {
        let take = |found: rcu_ht::Candidate<'_>| take(found.cell.to_raw());
        self.0.find(&On(0), hash, take)
    }
}

impl Deref for Table {
    type Target = rcu_ht::Table<Two>;

    fn deref(&self) -> &rcu_ht::Table<Two> {
        &self.0
    }
}

/// Mutates the removal of a tag, in the stand-in for rust/sys/atomic.rs.
fn remove(change: Change) -> Mutation {
    Mutation {
        file: "src/sys.rs",
        source: include_str!("../../src/sys.rs"),
        text: "word.fetch_sub(",
        change,
    }
}

/// Returns a hash with this home and tag.
const fn hash(tag: u64, home: u64) -> u64 {
    tag << 57 | home << 6
}

/// Whether a cell is among the candidates of a hash.
fn offers(table: &Table, hash: u64, cell: u32) -> bool {
    table
        .find(hash, |found| (found == cell).then_some(()))
        .is_some()
}

/// A thread removes and inserts while another one inserts and searches, in one bucket.
fn bucket() {
    let table = Arc::new(Table::new(4).unwrap());
    let (old, lasting) = (hash(1, 0), hash(2, 0));
    let place = table.insert(old, 0).unwrap();
    table.insert(lasting, 1).unwrap();
    let other = table.clone();
    let other = thread::spawn(move || {
        other.remove(old, place);
        let place = other.insert(hash(3, 0), 0).unwrap();
        assert!(offers(&other, hash(3, 0), 0), "a live event is not found");
        place
    });
    let ours = table.insert(hash(3, 0), 2).unwrap();
    assert!(offers(&table, hash(3, 0), 2), "a live event is not found");
    assert!(offers(&table, lasting, 1), "a live event is not found");
    let theirs = other.join().unwrap();
    assert!(offers(&table, hash(3, 0), 0), "a live event is not found");
    table.remove(hash(3, 0), ours);
    table.remove(hash(3, 0), theirs);
    assert!(!table.is_empty(), "a live event is not in the table");
    assert!(offers(&table, lasting, 1), "a live event is not found");
}

/// A slot gets a new owner: a search reads the new owner's writes.
fn slot() {
    let table = Arc::new(Table::new(4).unwrap());
    let other = table.clone();
    let other = thread::spawn(move || {
        let place = other.insert(hash(1, 0), 1).unwrap();
        other.remove(hash(1, 0), place);
    });
    table.insert(hash(1, 0), 2).unwrap();
    assert!(offers(&table, hash(1, 0), 2), "a live event is not found");
    other.join().unwrap();
    assert!(offers(&table, hash(1, 0), 2), "a live event is not found");
}

/// Home bucket 0 is full, and one event is beyond it. Others are inserted there and removed.
fn chain() {
    let table = Arc::new(Table::new(9).unwrap());
    for cell in 0..8 {
        table.insert(hash(1, 0), cell).unwrap();
    }
    let lasting = hash(2, 0);
    table.insert(lasting, 8).unwrap();
    let leaving = hash(3, 0);
    let place = table.insert(leaving, 9).unwrap();
    let other = table.clone();
    let other = thread::spawn(move || other.remove(leaving, place));
    let place = table.insert(hash(4, 0), 10).unwrap();
    assert!(offers(&table, hash(4, 0), 10), "a live event is not found");
    assert!(offers(&table, lasting, 8), "a live event is not found");
    table.remove(hash(4, 0), place);
    assert!(offers(&table, lasting, 8), "a live event is not found");
    other.join().unwrap();
    assert_eq!(table.overflowing(), 1, "the count of what went beyond");
    assert!(offers(&table, lasting, 8), "a live event is not found");
}

/// The table grows while one event stays and another is inserted.
fn growing() {
    let table = Arc::new(Table::new(4).unwrap());
    let lasting = hash(2, 0);
    let stays = table.insert(lasting, 0).unwrap();
    let other = table.clone();
    let other = thread::spawn(move || other.0.grow(8).unwrap());
    let coming = hash(4, 1);
    let place = table.insert(coming, 1).unwrap();
    assert!(offers(&table, coming, 1), "a live event is not found");
    assert!(offers(&table, lasting, 0), "a live event is not found");
    assert!(other.join().unwrap());
    assert!(offers(&table, coming, 1), "a live event is not found");
    assert!(offers(&table, lasting, 0), "a live event is not found");
    table.remove(coming, place);
    assert!(offers(&table, lasting, 0), "a live event is not found");
    table.remove(lasting, stays);
    assert!(table.is_empty(), "the slots of what has ended");
    assert_eq!(table.0.reap(), Ok(0), "an empty level");
}

/// The table grows while its events are visited.
fn growing_visited() {
    let table = Arc::new(Table::new(4).unwrap());
    let lasting = hash(2, 0);
    let place = table.insert(lasting, 1).unwrap();
    let other = table.clone();
    let other = thread::spawn(move || other.0.grow(8).unwrap());
    let visits = || {
        let mut visits = 0;
        table.0.visit(&On(0), lasting, |found| {
            let here = found.cell.to_raw() == 1 && found.is_place_of(&place);
            visits += u64::from(here);
            None::<()>
        });
        visits
    };
    assert_eq!(visits(), 1, "a live event is not visited once");
    assert!(other.join().unwrap());
    assert_eq!(visits(), 1, "a live event is not visited once");
}

/// Another CPU inserts an event while the table grows, and then signals this.
fn growing_elsewhere() {
    let table = Arc::new(Table::new(4).unwrap());
    let told = Arc::new(Atomic::<u64>::new(0));
    let (other, tell) = (table.clone(), told.clone());
    let other = thread::spawn(move || {
        other.insert(hash(2, 0), 0).unwrap();
        // Stands for the publication of the event's state.
        tell.store(1, Release);
    });
    let grower = table.clone();
    let grower = thread::spawn(move || grower.0.grow(8).unwrap());
    if told.load(Acquire) == 1 {
        assert!(offers(&table, hash(2, 0), 0), "a live event is not found");
    }
    other.join().unwrap();
    assert!(grower.join().unwrap());
    assert!(offers(&table, hash(2, 0), 0), "a live event is not found");
}

const SWITCH: &str = "self.current.store(address, Release);";
const OTHERS: &str = "self.others.store(others, Release);";
const CLAIM_LINE: &str = "            if self
                .tags
                .cmpxchg(";
const ENTER: &str = ".overflow.add(1, Relaxed);";
const LEAVE: &str = ".overflow.fetch_sub(1, Release);";
const NOT_FOUND: &str = "a live event is not found";

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("bucket", Some(4), bucket),
    ("slot", None, slot),
    ("chain", Some(4), chain),
    ("growing", Some(4), growing),
    ("growing elsewhere", Some(3), growing_elsewhere),
    ("growing, visited", None, growing_visited),
];

#[test]
fn a_live_event_is_found_in_a_busy_bucket() {
    holds("bucket", Some(4), bucket);
    holds("slot", None, slot);
}

#[test]
fn a_live_event_is_found_by_an_exclusive_claim_of_its_slot() {
    let mutations = [TABLE(CLAIM_LINE, Change::Split)];
    fails(
        "bucket",
        "the exchange in claim",
        Some(4),
        &mutations,
        NOT_FOUND,
        bucket,
    );
}

#[test]
fn a_live_event_is_found_by_an_atomic_remove() {
    let mutations = [remove(Change::Split)];
    fails(
        "bucket",
        "the atomic subtraction in remove",
        Some(4),
        &mutations,
        NOT_FOUND,
        bucket,
    );
}

#[test]
fn a_live_event_is_found_by_acquire_of_its_slot() {
    let mutations = [TABLE(CLAIM_LINE, Change::Relax)];
    fails(
        "slot",
        "acquire in claim",
        None,
        &mutations,
        NOT_FOUND,
        slot,
    );
}

#[test]
fn a_live_event_is_found_by_release_of_its_slot() {
    let mutations = [remove(Change::Relax)];
    fails(
        "slot",
        "release in remove",
        None,
        &mutations,
        NOT_FOUND,
        slot,
    );
}

#[test]
fn a_live_event_is_found_beyond_its_bucket() {
    holds("chain", Some(4), chain);
}

#[test]
fn a_live_event_is_found_beyond_its_bucket_by_the_count() {
    let mutations = [TABLE(ENTER, Change::Skip)];
    fails("chain", "the count", Some(4), &mutations, NOT_FOUND, chain);
}

#[test]
fn a_live_event_is_found_beyond_its_bucket_by_an_atomic_count() {
    let mutations = [TABLE(LEAVE, Change::Split)];
    fails(
        "chain",
        "the atomic subtraction in leave",
        Some(4),
        &mutations,
        "",
        chain,
    );
}

#[test]
fn a_live_event_is_found_while_the_table_grows() {
    holds("growing", Some(4), growing);
    holds("growing elsewhere", Some(3), growing_elsewhere);
}

#[test]
fn a_live_event_is_visited_once_while_the_table_grows() {
    holds("growing, visited", None, growing_visited);
}

#[test]
fn a_live_event_is_visited_once_while_the_table_grows_by_the_older_levels() {
    let mutations = [TABLE(OTHERS, Change::Skip)];
    fails(
        "growing, visited",
        "the bit of the older level",
        None,
        &mutations,
        "a live event is not visited once",
        growing_visited,
    );
}

#[test]
fn a_live_event_is_found_while_the_table_grows_by_the_older_levels() {
    let mutations = [TABLE(OTHERS, Change::Skip)];
    fails(
        "growing",
        "the bit of the older level",
        Some(4),
        &mutations,
        NOT_FOUND,
        growing,
    );
}

#[test]
fn a_live_event_is_found_while_the_table_grows_by_release_of_the_new_level() {
    let mutations = [TABLE(SWITCH, Change::Relax)];
    fails(
        "growing",
        "release of the new level",
        Some(4),
        &mutations,
        "",
        growing,
    );
}
