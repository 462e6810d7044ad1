// SPDX-License-Identifier: GPL-2.0

//! The pool: no cell has two owners, and "full" is reported only when it is true.

use crate::{
    engine::{
        freelist::{Cell, Freelist, Index, Link},
        platform::Platform,
    },
    machine::{fails, holds, selection, source, Bound, Model, Mutate, On},
};
use kernel::{
    model::{self, Change, Mutation},
    sync::atomic::{Atomic, Relaxed},
};
use loom::thread;
use std::sync::{
    atomic::{AtomicBool, AtomicU64, Ordering},
    Arc,
};

const FREELIST: Mutate = source!("freelist.rs");

/// A cell that records whether it is held, and its holder's last write.
struct Checked {
    link: Link,
    word: Atomic<u64>,
    held: AtomicBool,
    written: AtomicU64,
}

impl Cell for Checked {
    fn new() -> Self {
        Self {
            link: Link::new(),
            word: Atomic::new(0),
            held: AtomicBool::new(false),
            written: AtomicU64::new(0),
        }
    }

    fn link(&self) -> &Link {
        &self.link
    }
}

/// Takes a cell, if there is one, and checks that no other thread holds it, and that it is as its
/// last owner left it.
fn take<P: Platform>(pool: &Freelist<Checked, P>, guard: &P::Guard, mark: u64) -> Option<Index> {
    let index = pool.get(guard)?;
    let cell = pool.cell(index);
    assert!(
        !cell.held.swap(true, Ordering::Relaxed),
        "a cell in two hands"
    );
    let left = cell.word.load(Relaxed);
    assert_eq!(
        left,
        cell.written.load(Ordering::Relaxed),
        "not as its last owner left it"
    );
    cell.word.store(mark, Relaxed);
    cell.written.store(mark, Ordering::Relaxed);
    Some(index)
}

fn give<P: Platform>(pool: &Freelist<Checked, P>, guard: &P::Guard, index: Index) {
    assert!(
        pool.cell(index).held.swap(false, Ordering::Relaxed),
        "given back twice"
    );
    pool.put(guard, index);
}

/// Checks that all cells can be taken, each once: none is lost, and none is duplicated.
fn complete<P: Platform>(pool: &Freelist<Checked, P>, guard: &P::Guard) {
    assert_eq!(
        pool.free(),
        u64::from(pool.capacity()),
        "the count of free cells"
    );
    for _ in 0..pool.capacity() {
        assert!(take(pool, guard, 99).is_some(), "a cell is lost");
    }
    assert!(take(pool, guard, 99).is_none(), "more cells than there are");
}

/// Two nodes, with a CPU each.
type Even = Model<2, 2, 0x10>;
/// Node 1 has no memory, so CPU 1 keeps cells of node 0.
type Uneven = Model<2, 2, 0x10, 0b01>;

/// Two CPUs take cells from one stack and return cells to it. The cells that CPU 1 returns go to
/// node 0's pool and not to CPU 1's cache, since CPU 1 is on another node. The only cell of that
/// node is taken.
fn recycling() {
    let pool = Arc::new(Freelist::<Checked, Even>::new(3, 3).unwrap());
    let taken = take(&pool, &On(1), 0).unwrap();
    let other = pool.clone();
    let other = thread::spawn(move || {
        let first = take(&other, &On(1), 1);
        let second = take(&other, &On(1), 2);
        if let Some(first) = first {
            give(&other, &On(1), first);
        }
        second
    });
    let first = take(&pool, &On(0), 3);
    let second = take(&pool, &On(0), 4);
    let theirs = other.join().unwrap();
    for index in [first, second, theirs].into_iter().flatten() {
        give(&pool, &On(0), index);
    }
    give(&pool, &On(0), taken);
    complete(&pool, &On(0));
}

/// A pool of two cells, and two threads with at most one cell each: there is always a free cell.
/// CPUs 0 and 2 are on node 0, CPU 1 on node 1. During the search, the other thread exchanges its
/// cell. It returns its cell on CPU 1, where the cell of node 1 stays in the cache and the cell of
/// node 0 goes home. Then it takes the other cell, or the same one again if the other is gone. The
/// scheduler also migrates that thread to CPU 2 and back.
fn full_means_full_in(rounds: usize) {
    type Three = Model<3, 2, 0x010>;
    let pool = Arc::new(Freelist::<Checked, Three>::new(2, 2).unwrap());
    // The other thread holds the cell of node 0. The other cell is in the cache of CPU 1.
    let near = take(&pool, &On(1), 1).unwrap();
    let mut held = take(&pool, &On(1), 2).unwrap();
    give(&pool, &On(1), near);
    let other = pool.clone();
    let other = thread::spawn(move || {
        for round in 0..rounds {
            let cpu = On(if round % 2 == 0 { 1 } else { 2 });
            give(&other, &On(1), held);
            held = take(&other, &cpu, 3).expect("full with a free cell");
        }
        held
    });
    let ours = take(&pool, &On(0), 4).expect("full with a free cell");
    let theirs = other.join().unwrap();
    give(&pool, &On(0), ours);
    give(&pool, &On(0), theirs);
    complete(&pool, &On(0));
}

fn full_means_full() {
    full_means_full_in(1);
}

fn full_means_full_long() {
    full_means_full_in(3);
}

/// Two free cells, and two threads with at most one cell each. One thread must always steal, since
/// the only cell of its node is taken.
fn stealing() {
    let pool = Arc::new(Freelist::<Checked, Even>::new(3, 3).unwrap());
    let taken = take(&pool, &On(1), 0).unwrap();
    let pool = steal(pool);
    give(&pool, &On(0), taken);
    complete(&pool, &On(0));
}

/// Stealing on a node without memory, whose CPU also keeps returned cells.
fn stealing_without_memory() {
    let pool = steal(Arc::new(Freelist::<Checked, Uneven>::new(2, 2).unwrap()));
    complete(&pool, &On(0));
}

fn steal<P: Platform<Guard = On>>(pool: Arc<Freelist<Checked, P>>) -> Arc<Freelist<Checked, P>> {
    let other = pool.clone();
    let other = thread::spawn(move || {
        let index = take(&other, &On(1), 1).expect("full with a free cell");
        give(&other, &On(1), index);
        take(&other, &On(1), 2).expect("full with a free cell")
    });
    let index = take(&pool, &On(0), 3).expect("full with a free cell");
    give(&pool, &On(0), index);
    let ours = take(&pool, &On(0), 4).expect("full with a free cell");
    let theirs = other.join().unwrap();
    give(&pool, &On(0), ours);
    give(&pool, &On(0), theirs);
    pool
}

/// Two CPUs return cells to the pool of another node. Its count stays correct.
fn counting() {
    type Far = Model<2, 2, 0x00>;
    let pool = Arc::new(Freelist::<Checked, Far>::new(4, 4).unwrap());
    // Both of these cells are of the CPUs' own node, so the next two are of the other node.
    let taken = [take(&pool, &On(0), 0), take(&pool, &On(0), 0)];
    let ours = take(&pool, &On(0), 1).unwrap();
    let theirs = take(&pool, &On(0), 2).unwrap();
    let other = pool.clone();
    let other = thread::spawn(move || give(&other, &On(1), theirs));
    give(&pool, &On(0), ours);
    other.join().unwrap();
    for index in taken.into_iter().flatten() {
        give(&pool, &On(0), index);
    }
    complete(&pool, &On(0));
}

/// A pool grows while a thread takes all of its cells, and more.
fn growing() {
    type One = Model<2>;
    let pool = Arc::new(Freelist::<Checked, One>::new(1, 2).unwrap());
    let other = pool.clone();
    let other = thread::spawn(move || assert_eq!(other.grow(2), Ok(1), "one more"));
    let first = take(&pool, &On(0), 1).expect("full with a free cell");
    let second = take(&pool, &On(0), 2);
    give(&pool, &On(0), first);
    other.join().unwrap();
    if let Some(second) = second {
        give(&pool, &On(0), second);
    }
    complete(&pool, &On(0));
}

/// One CPU returns a hot cell and takes it again; the other CPU steals it and returns it.
fn hot() {
    // A caller that finds nothing notes that the pool is exhausted, and has no cell whose return
    // would clear the note. So the note must be right, which takes the barriers.
    with_barriers();
    type Two = Model<2>;
    let pool = Arc::new(Freelist::<Checked, Two>::new(2, 2).unwrap());
    let ours = take(&pool, &On(0), 1).unwrap();
    let theirs = take(&pool, &On(1), 1).unwrap();
    give(&pool, &On(0), ours);
    let other = pool.clone();
    let other = thread::spawn(move || {
        let stolen = take(&other, &On(1), 2);
        give(&other, &On(1), theirs);
        if let Some(stolen) = stolen {
            give(&other, &On(1), stolen);
        }
    });
    let first = take(&pool, &On(0), 3);
    if let Some(first) = first {
        give(&pool, &On(0), first);
    }
    other.join().unwrap();
    complete(&pool, &On(0));
}

/// A pool of one cell. One thread returns it while another thread, on another CPU, searches for it.
/// Even if the search finds the pool exhausted, a search after the return finds the cell.
fn exhausted() {
    exhausted_on::<Model<2>>();
}

/// An exhausted pool, and a cell that is returned to the pool of another node.
fn exhausted_far() {
    exhausted_on::<Even>();
}

/// Also models the note of an exhausted pool. The note depends on the barrier of a full
/// compare-and-swap, which loom's does not have.
fn with_the_note() {
    model::select(|file, nth| is_note(file) || selection(file, nth));
    with_barriers();
}

fn with_barriers() {
    model::barriers(|file| is_note(file) || file.ends_with("rust/freelist.rs"));
}

fn is_note(file: &str) -> bool {
    file.ends_with("rust/freelist/exhausted.rs")
}

fn exhausted_on<P: Platform<Guard = On>>() {
    with_the_note();
    let pool = Arc::new(Freelist::<Checked, P>::new(1, 1).unwrap());
    let held = take(&pool, &On(1), 1).unwrap();
    let other = pool.clone();
    let other = thread::spawn(move || give(&other, &On(1), held));
    let ours = take(&pool, &On(0), 2);
    other.join().unwrap();
    let ours = ours.or_else(|| take(&pool, &On(0), 3));
    assert!(ours.is_some(), "full with a free cell");
}

/// Two threads find a pool exhausted while it grows by two cells. Each takes at most one cell, and
/// the cells left are found afterwards.
fn exhausted_twice() {
    with_the_note();
    find_it_twice();
}

/// Two threads find a pool exhausted while it grows. The stacks are not modelled: threads are
/// switched only at the note and at barriers, so that longer runs can be tried.
fn exhausted_in_turn() {
    with_the_note();
    model::select(|file, _| is_note(file));
    find_it_twice();
}

fn find_it_twice() {
    type Two = Model<2>;
    let pool = Arc::new(Freelist::<Checked, Two>::new(1, 3).unwrap());
    take(&pool, &On(0), 1).unwrap();
    let other = pool.clone();
    let other = thread::spawn(move || take(&other, &On(1), 2).is_some());
    let third = pool.clone();
    let third = thread::spawn(move || assert_eq!(third.grow(3), Ok(2), "two more"));
    let first = take(&pool, &On(0), 3).is_some();
    third.join().unwrap();
    let taken = u32::from(first) + u32::from(other.join().unwrap());
    for _ in taken..2 {
        assert!(take(&pool, &On(0), 4).is_some(), "full with a free cell");
    }
}

const GET_HOT: &str = "cache.hot.cmpxchg(hot, hot - top, Full)";
const COOL: &str = "hot.cmpxchg(word, word - top, Full)";
const COOL_LOAD: &str = "let word = hot.load(Acquire);";
const WARM: &str = "hot.cmpxchg(word, with, Full)";
const POP: &str = "stack.head.cmpxchg(head, below, Full)";
const PUSH: &str = "stack.head.cmpxchg(head, above, Full)";
const HEAD: &str = "// Acquire: the link, and what the last owner left in the cell, are read later.
            let head = stack.head.load(Acquire);";
const SUSPECT: &str = "self.0.cmpxchg(word, note, Full)";
const END: &str = "self.0.cmpxchg(word, word & !STATE, Relaxed)";
const ENDED: &str = "// Relaxed: after the exchange, which was full.
        let word = self.0.load(Relaxed);";
const EXHAUSTED: Mutate = source!("freelist/exhausted.rs");

const PUSH_HEAD: &str = "// Acquire: the depth is read from the cell on top.
            let head = stack.head.load(Acquire);";
const INDEX: u64 = (1 << 24) - 1;

/// All models of this file, each with its bound on preemptions.
pub(crate) const MODELS: &[(&str, Bound, fn())] = &[
    ("recycling", Some(4), recycling),
    ("counting", None, counting),
    ("full", None, full_means_full),
    ("growing", Some(4), growing),
    ("hot", Some(4), hot),
    ("stealing", Some(4), stealing),
    ("stealing without memory", Some(4), stealing_without_memory),
    ("full, three rounds", Some(4), full_means_full_long),
    ("exhausted", None, exhausted),
    ("exhausted, far", None, exhausted_far),
    ("exhausted, twice", Some(2), exhausted_twice),
    ("exhausted, in turn", Some(3), exhausted_in_turn),
];

#[test]
fn a_pool_is_not_exhausted_once_a_cell_is_back() {
    holds("exhausted", None, exhausted);
    holds("exhausted, far", None, exhausted_far);
    holds("exhausted, twice", Some(2), exhausted_twice);
    holds("exhausted, in turn", Some(3), exhausted_in_turn);
}

#[test]
fn a_pool_is_not_exhausted_once_a_cell_is_back_by_each_part() {
    let text = "full with a free cell";
    let once: fn() = exhausted;
    let cases: [(&str, Mutation, fn()); 6] = [
        ("the barrier in warm", FREELIST(WARM, Change::Release), once),
        (
            "the barrier in push",
            FREELIST(PUSH, Change::Release),
            exhausted_far,
        ),
        (
            "the barrier after the note",
            EXHAUSTED(SUSPECT, Change::Acquire),
            once,
        ),
        (
            "the look of a put",
            EXHAUSTED(ENDED, Change::Read(|_| 0)),
            once,
        ),
        // The pool counts as exhausted after the first search.
        (
            "a state between",
            EXHAUSTED(SUSPECT, Change::Write(|note| note ^ 3)),
            full_means_full_long,
        ),
        // Notes look alike if a put resets them to 0: one is confirmed in place of another.
        (
            "the version",
            EXHAUSTED(END, Change::Write(|_| 0)),
            exhausted_in_turn,
        ),
    ];
    for (what, mutation, body) in cases {
        fails("exhausted", what, Some(3), &[mutation], text, body);
    }
}

#[test]
fn a_recycled_cell_has_one_owner() {
    holds("recycling", Some(4), recycling);
}

#[test]
fn a_recycled_cell_has_one_owner_by_the_tag() {
    let untagged = Change::Write(|head| head & INDEX);
    let mutations = [FREELIST(POP, untagged), FREELIST(PUSH, untagged)];
    fails(
        "recycling",
        "the tag",
        Some(3),
        &mutations,
        "a cell in two hands",
        recycling,
    );
}

#[test]
fn a_recycled_cell_has_one_owner_by_compare_and_swap() {
    let mutations = [FREELIST(POP, Change::Split)];
    fails(
        "recycling",
        "the exchange",
        Some(4),
        &mutations,
        "a cell in two hands",
        recycling,
    );
}

#[test]
fn a_recycled_cell_is_as_its_owner_left_it_by_release() {
    let mutations = [FREELIST(PUSH, Change::Relax)];
    fails(
        "recycling",
        "release in push",
        Some(4),
        &mutations,
        "",
        recycling,
    );
}

#[test]
fn a_recycled_cell_is_as_its_owner_left_it_by_acquire() {
    let mutations = [FREELIST(HEAD, Change::Relax), FREELIST(POP, Change::Relax)];
    fails(
        "recycling",
        "acquire in pop",
        Some(3),
        &mutations,
        "",
        recycling,
    );
}

#[test]
fn full_means_that_no_cell_is_free() {
    holds("full", None, full_means_full);
    holds("stealing", Some(4), stealing);
    holds("stealing without memory", Some(4), stealing_without_memory);
}

#[test]
fn full_means_that_no_cell_is_free_in_the_long_run() {
    holds("full, three rounds", Some(4), full_means_full_long);
}

#[test]
fn full_means_that_no_cell_is_free_by_the_second_pass() {
    // The tags of empty stacks read as zero, so that two passes always agree.
    let unseen = Change::Read(|head| if head & INDEX == 0 { 0 } else { head });
    let mutations = [FREELIST(HEAD, unseen), FREELIST(COOL_LOAD, unseen)];
    let text = "full with a free cell";
    fails(
        "full",
        "comparing the passes",
        Some(4),
        &mutations,
        text,
        full_means_full_long,
    );
}

#[test]
fn full_means_that_no_cell_is_free_by_full_ordering() {
    let mutations = [
        FREELIST(POP, Change::Acquire),
        FREELIST(GET_HOT, Change::Acquire),
        FREELIST(COOL, Change::Acquire),
    ];
    let text = "full with a free cell";
    fails(
        "full",
        "release in pop",
        None,
        &mutations,
        text,
        full_means_full,
    );
}

#[test]
fn a_pool_knows_its_number_of_cells() {
    holds("counting", None, counting);
}

#[test]
fn a_pool_knows_its_number_of_cells_by_acquire() {
    let mutations = [FREELIST(PUSH_HEAD, Change::Relax)];
    fails(
        "counting",
        "acquire in push",
        None,
        &mutations,
        "the count of free cells",
        counting,
    );
}

#[test]
fn a_pool_grows_while_its_cells_are_taken() {
    holds("growing", Some(4), growing);
}

#[test]
fn a_hot_cell_has_one_owner() {
    holds("hot", Some(4), hot);
}

#[test]
fn a_hot_cell_has_one_owner_by_compare_and_swap() {
    let mutations = [FREELIST(GET_HOT, Change::Split)];
    fails(
        "hot",
        "the exchange in get_hot",
        Some(4),
        &mutations,
        "",
        hot,
    );
}

#[test]
fn a_hot_cell_is_as_its_owner_left_it_by_release() {
    let mutations = [FREELIST(WARM, Change::Relax)];
    fails("hot", "release in warm", Some(4), &mutations, "", hot);
}
