// SPDX-License-Identifier: GPL-2.0

use super::{off_guard, on, Numa};
use crate::{
    engine::{
        freelist::{Cell, Freelist, Index, Link, MAX_CELLS},
        hash::Seed,
        platform::Platform,
        Engine,
    },
    host::{Guard, Host, Machine},
};
use kernel::{hook::interrupted, prelude::*};
use proptest::prelude::*;
use std::{
    collections::HashSet,
    rc::Rc,
    sync::{Arc, Mutex},
};

struct Plain(Link);

impl Cell for Plain {
    fn new() -> Self {
        Self(Link::new())
    }

    fn link(&self) -> &Link {
        &self.0
    }
}

type Pool<P> = Freelist<Plain, P>;

/// Four nodes in a line, with one CPU each.
type Line = Host<4, 4, 0x3210>;

fn pool<P: Platform>(capacity: u32) -> Pool<P> {
    Pool::new(capacity, capacity).unwrap()
}

fn get<P: Platform<Guard = Guard>>(pool: &Pool<P>, cpu: usize) -> Option<Index> {
    on::<P, _>(cpu, |guard| pool.get(guard))
}

fn put<P: Platform<Guard = Guard>>(pool: &Pool<P>, cpu: usize, index: Index) {
    on::<P, _>(cpu, |guard| pool.put(guard, index));
}

fn serves_exactly<P: Platform<Guard = Guard>>(capacity: u32) {
    let pool = pool::<P>(capacity);
    assert_eq!(pool.capacity(), capacity);
    assert_eq!(pool.cells().count(), 0, "none was ever handed out");
    for round in 0..3 {
        let held: Vec<_> = (0..capacity as usize)
            .map(|i| get(&pool, (i + round) % P::cpus()).expect("a free cell"))
            .collect();
        for cpu in 0..P::cpus() {
            assert_eq!(get(&pool, cpu), None, "capacity {capacity}");
        }
        assert_eq!(pool.free(), 0);
        let distinct: HashSet<_> = held.iter().copied().collect();
        assert_eq!(distinct.len(), capacity as usize);
        assert_eq!(distinct, pool.cells().map(|(index, _)| index).collect());
        for (i, index) in held.into_iter().enumerate() {
            put(&pool, (i * 7 + round) % P::cpus(), index);
        }
        assert_eq!(pool.free(), u64::from(capacity));
    }
}

#[test]
fn a_pool_of_n_serves_exactly_n() {
    for capacity in [
        1, 2, 3, 5, 62, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 8193, 10_000,
    ] {
        serves_exactly::<Host<1>>(capacity);
        serves_exactly::<Host<2>>(capacity);
        serves_exactly::<Numa>(capacity);
        serves_exactly::<Host<3, 3, 0x210>>(capacity);
        serves_exactly::<Line>(capacity);
        // CPUs without memory; a node without CPUs; memory only on the last node
        serves_exactly::<Host<4, 2, 0x1100, 0b01>>(capacity);
        serves_exactly::<Host<2, 3, 0x20>>(capacity);
        serves_exactly::<Host<4, 4, 0x3210, 0b1000>>(capacity);
    }
}

#[test]
fn an_impossible_capacity_is_refused() {
    for capacity in [0, MAX_CELLS + 1, u32::MAX] {
        assert_eq!(Pool::<Numa>::new(capacity, MAX_CELLS).err(), Some(EINVAL));
    }
}

#[test]
fn the_largest_pool_has_indices_that_fit() {
    // Partly filled chunks waste indices: a power of two is not divisible by three nodes.
    let pool = pool::<Host<3, 3, 0x210>>(MAX_CELLS);
    assert_eq!(pool.free(), u64::from(MAX_CELLS));
    let all = on::<Host<3, 3, 0x210>, _>(0, |guard| std::iter::from_fn(|| pool.get(guard)).max());
    let highest = pool.cells().map(|(index, _)| index).max();
    assert_eq!(highest, all);
    assert!(
        u64::from(highest.unwrap().to_raw()) < (1 << 24) - 1,
        "{highest:?}"
    );
    assert_eq!(pool.cells().count(), MAX_CELLS as usize);
}

/// Returns the nodes from which a CPU is served, in order, by a pool with `each` cells per node.
fn order<P: Platform<Guard = Guard>>(cpu: usize, each: u32) -> Vec<u32> {
    let pool = pool::<P>(each * P::nodes() as u32);
    let mut nodes: Vec<_> = std::iter::from_fn(|| get(&pool, cpu))
        // Every node has one chunk.
        .map(|index| index.to_raw() >> 12)
        .collect();
    nodes.dedup();
    nodes
}

#[test]
fn cells_are_stolen_from_the_nearest_node_first() {
    assert_eq!(order::<Line>(0, 64), [0, 1, 2, 3]);
    assert_eq!(order::<Line>(1, 64), [1, 0, 2, 3]);
    assert_eq!(order::<Line>(2, 64), [2, 1, 3, 0]);
    assert_eq!(order::<Line>(3, 64), [3, 2, 1, 0]);
    assert_eq!(order::<Numa>(3, 16), [1, 0]);
}

#[test]
fn a_cell_goes_home() {
    let pool = pool::<Numa>(64);
    let all: Vec<_> = std::iter::from_fn(|| get(&pool, 0)).collect();
    assert_eq!(all.len(), 64);
    for index in all {
        put(&pool, 0, index);
    }
    for _ in 0..32 {
        assert!(get(&pool, 2).unwrap().to_raw() >= 32, "not from node 1");
    }
    assert!(
        get(&pool, 2).unwrap().to_raw() < 32,
        "not from node 0, though node 1 is empty"
    );
}

/// Starting an event costs no more on a CPU without memory: only the first events need a search.
#[test]
fn a_cpu_without_memory_keeps_some_cells_of_the_nearest_node() {
    fn check<P: Platform<Guard = Guard>>(cpu: usize, home: u32) {
        let pool = pool::<P>(400);
        let held: Vec<_> = (0..20).map(|_| get(&pool, cpu).unwrap()).collect();
        for &index in &held {
            assert_eq!(index.to_raw() >> 12, home, "not of the nearest node");
            put(&pool, cpu, index);
        }
        let hot = on::<P, _>(cpu, |guard| pool.get_hot(guard));
        assert_eq!(hot, held.first().copied(), "no hot cell");
        let mut again: Vec<_> = (1..20).map(|_| get(&pool, cpu).unwrap()).collect();
        again.reverse();
        assert_eq!(again, held[1..], "not from its stack");
        assert_eq!(pool.free(), 380);
        for &index in &held {
            put(&pool, cpu, index);
        }
        on::<P, _>(cpu, |_| pool.drain(cpu));
        assert_eq!(pool.free(), 400);
        let all = std::iter::from_fn(|| get(&pool, 0)).count();
        assert_eq!(all, 400, "a cell is out of reach");
    }
    // One chunk for each node with memory: node 0; node 3; or nodes 0 and 3.
    check::<Host<4, 2, 0x1100, 0b01>>(2, 0);
    check::<Host<4, 2, 0x1100, 0b01>>(3, 0);
    check::<Host<4, 4, 0x3210, 0b1000>>(0, 0);
    check::<Host<4, 4, 0x3210, 0b1001>>(1, 0);
    check::<Host<4, 4, 0x3210, 0b1001>>(2, 1);
    check::<Host<4, 4, 0x3210, 0b1001>>(3, 1);
}

/// All CPUs, with and without memory, take and return cells concurrently. Some cells pass from CPU
/// to CPU.
#[test]
fn cpus_without_memory_share_the_cells_of_a_node() {
    type Far = Host<4, 4, 0x3210, 0b0010>;
    /// Two cells for each CPU, and one in transit.
    const CELLS: u32 = 9;
    let pool = Arc::new(pool::<Far>(CELLS));
    let machine = Machine::new();
    // A cell in transit from one CPU to another.
    let passed = Arc::new(Mutex::new(None));
    std::thread::scope(|scope| {
        for cpu in 0..Far::cpus() {
            let (pool, machine, passed) = (pool.clone(), machine.clone(), passed.clone());
            scope.spawn(move || {
                let _seat = machine.pin(cpu);
                for round in 0..50_000 {
                    let guard = Far::guard();
                    let one = pool.get(&guard).expect("a free cell");
                    let two = pool.get(&guard).expect("a free cell");
                    pool.put(&guard, one);
                    let last = match round % 8 {
                        0 => passed.lock().unwrap().replace(two),
                        _ => Some(two),
                    };
                    if let Some(last) = last {
                        pool.put(&guard, last);
                    }
                }
            });
        }
    });
    let last = passed.lock().unwrap().take().unwrap();
    put(&pool, 0, last);
    assert_eq!(pool.free(), u64::from(CELLS));
    let all: HashSet<_> = std::iter::from_fn(|| get(&pool, 0)).collect();
    assert_eq!(all.len(), CELLS as usize);
}

#[test]
fn a_cpu_keeps_some_cells_that_others_take_last() {
    let pool = pool::<Host<2>>(200);
    let held: Vec<_> = std::iter::from_fn(|| get(&pool, 0)).collect();
    for &index in &held {
        put(&pool, 0, index);
    }
    // The first cell became CPU 0's hot cell, the next 50 went to its stack, and the others to the
    // pool. CPU 1 takes the cells of the pool first, from the top.
    let taken: Vec<_> = std::iter::from_fn(|| get(&pool, 1)).collect();
    let (kept, given) = held.split_at(51);
    let expected: Vec<_> = given
        .iter()
        .rev()
        .chain(&kept[..1])
        .chain(kept[1..].iter().rev())
        .copied()
        .collect();
    assert_eq!(taken, expected);
}

#[test]
fn a_pool_grows_when_it_must_and_no_further() {
    let pool = Pool::<Numa>::new(16, 100).unwrap();
    let mut held: Vec<Index> = Vec::new();
    let mut sizes = vec![16];
    // Growth is first requested when the last cell of a node is taken.
    let calls = crate::host::calls_of_grower();
    while held.len() < 100 {
        held.extend(get(&pool, 0));
        if pool.wants_to_grow() {
            let more = pool.capacity() * 2;
            let added = off_guard(|| pool.grow(more)).unwrap();
            assert_eq!(pool.capacity(), sizes[sizes.len() - 1] + added);
            sizes.push(pool.capacity());
        }
    }
    assert_eq!(sizes, [16, 32, 64, 100]);
    assert_eq!(
        crate::host::calls_of_grower() - calls,
        3,
        "requests, one for each growth"
    );
    assert_eq!(get(&pool, 0), None);
    assert!(!pool.wants_to_grow(), "at its maximum");
    assert_eq!(off_guard(|| pool.grow(200)), Ok(0));
    let distinct: HashSet<_> = held.iter().copied().collect();
    assert_eq!(distinct, pool.cells().map(|(index, _)| index).collect());
    for index in held {
        put(&pool, 3, index);
    }
    assert_eq!(pool.free(), 100);
}

#[test]
fn growth_that_fails_leaves_a_sound_pool() {
    use crate::sys::memory::with_budget;
    let pool = Pool::<Numa>::new(16, 100_000).unwrap();
    for budget in 0..20 {
        let before = pool.capacity();
        let result = with_budget(budget, || off_guard(|| pool.grow(before + 20_000)));
        assert_eq!(result.is_err(), budget < 6, "10,000 cells are three chunks");
        let added = if result.is_err() { 0 } else { 20_000 };
        assert_eq!(pool.capacity(), before + added);
        assert_eq!(pool.free(), u64::from(pool.capacity()));
        if budget > 6 {
            break;
        }
    }
    let all: HashSet<_> = std::iter::from_fn(|| get(&pool, 1)).collect();
    assert_eq!(all.len(), pool.capacity() as usize);
}

/// A failed growth must not use up entries of the directory, or there would be too few for the last
/// growth.
#[test]
fn growth_that_fails_often_succeeds_at_last() {
    use crate::sys::memory::with_budget;
    let pool = Pool::<Numa>::new(64, 256).unwrap();
    for target in [128, 256] {
        for _ in 0..10 {
            let second_fails = with_budget(1, || off_guard(|| pool.grow(target)));
            assert_eq!(second_fails, Err(ENOMEM));
        }
        assert_eq!(off_guard(|| pool.grow(target)), Ok(target / 2));
    }
    let all: HashSet<_> = std::iter::from_fn(|| get(&pool, 1)).collect();
    assert_eq!(all.len(), 256);
}

#[test]
fn a_cpu_that_goes_offline_leaves_its_cells_to_the_pools() {
    let pool = pool::<Numa>(400);
    let held: Vec<_> = (0..20).map(|_| get(&pool, 1).unwrap()).collect();
    for index in held {
        put(&pool, 1, index);
    }
    on::<Numa, _>(0, |_| pool.drain(1));
    assert_eq!(pool.free(), 400);
    // CPU 0 is on the same node: it gets all 200 cells of that node before any of node 1.
    let first: Vec<_> = (0..200).map(|_| get(&pool, 0).unwrap()).collect();
    assert!(
        first.iter().all(|index| index.to_raw() >> 12 == 0),
        "not all from node 0"
    );
}

/// A full pool is searched once, and not by each caller, whatever the number of CPUs. The cost is
/// counted in atomic operations. A cell that is returned anywhere is found.
#[test]
fn a_full_pool_is_not_searched_again() {
    fn looks<P: Platform<Guard = Guard>>(pool: &Pool<P>, cpu: usize) -> (u64, Option<Index>) {
        on::<P, _>(cpu, |guard| {
            let count = Rc::new(std::cell::Cell::new(0));
            let counted = count.clone();
            let found = interrupted(move || counted.set(counted.get() + 1), || pool.get(guard));
            (count.get(), found)
        })
    }
    fn check<P: Platform<Guard = Guard>>() {
        let pool = pool::<P>(32);
        let mut held: Vec<_> = std::iter::from_fn(|| get(&pool, 0)).collect();
        assert_eq!(held.len(), 32);
        for round in 0..P::cpus() {
            for cpu in 0..P::cpus() {
                let (looks, found) = looks(&pool, cpu);
                assert_eq!(found, None);
                assert!(looks <= 8, "{looks} operations on CPU {cpu}");
            }
            // A pool is no longer exhausted after a CPU has returned a cell, even if that CPU then
            // goes offline, or after growth.
            put(&pool, round, held.pop().unwrap());
            if round % 2 == 0 {
                on::<P, _>(0, |_| pool.drain(round));
            }
            let there = get(&pool, (round + 1) % P::cpus()).expect("a free cell");
            held.push(there);
            // The first caller after that searches.
            assert_eq!(get(&pool, 0), None);
        }
    }
    check::<Host<2>>();
    check::<Host<16, 2, 0x1010_1010_1010_1010>>();
    let pool = Pool::<Numa>::new(8, 16).unwrap();
    assert_eq!(std::iter::from_fn(|| get(&pool, 0)).count(), 8);
    pool.grow(16).unwrap();
    assert_eq!(std::iter::from_fn(|| get(&pool, 1)).count(), 8);
}

/// The free count never exceeds the capacity, even if cells are taken during the count: the links
/// of cells in the table are not mistaken for depths.
#[test]
fn free_is_never_above_the_capacity() {
    type One = Host<1>;
    let mut interrupts = 0;
    for after in 0..40 {
        let engine = Rc::new(Engine::<1, 1, One>::new(8, 1_000, Seed::new(1, 2)).unwrap());
        let begin = |engine: &Engine<1, 1, One>, key| {
            on::<One, _>(0, |guard| engine.event_in(guard, &[key], 0, &[0]));
        };
        // Eight events have ended: one cell is hot, and the others are on the stacks.
        (0..8).for_each(|key| begin(&engine, key));
        for key in 0..8 {
            on::<One, _>(0, |guard| {
                engine.event_out(guard, &[key], 1, |_| true, |_| ())
            });
        }
        let (other, mut before) = (engine.clone(), 0);
        let came = Rc::new(std::cell::Cell::new(0));
        let counted = came.clone();
        let hook = move || {
            if before == after {
                counted.set(1);
                (100..106).for_each(|key| begin(&other, key));
            }
            before += 1;
        };
        let free = interrupted(hook, || engine.free());
        assert!(
            free <= 8,
            "{free} of 8 are free, interrupted before operation {after}"
        );
        interrupts += came.get();
    }
    assert!(interrupts > 3, "{interrupts} interrupts prove little");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_pool_is_full_exactly_when_all_cells_are_held(
        capacity in 1u32..150,
        steps in prop::collection::vec((any::<bool>(), 0usize..4, any::<prop::sample::Index>()), 1..600),
    ) {
        let pool = pool::<Numa>(capacity);
        let mut held: Vec<Index> = Vec::new();
        for (take, cpu, which) in steps {
            if take {
                match get(&pool, cpu) {
                    Some(index) => {
                        prop_assert!(!held.contains(&index));
                        held.push(index);
                    }
                    None => prop_assert_eq!(held.len(), capacity as usize),
                }
            } else if !held.is_empty() {
                let index = held.swap_remove(which.index(held.len()));
                put(&pool, cpu, index);
            }
            prop_assert_eq!(pool.free(), u64::from(capacity) - held.len() as u64);
        }
    }
}
