// SPDX-License-Identifier: GPL-2.0

use super::{off_guard, on, Numa};
use crate::engine::{
    freelist::{Index, Link},
    rcu_ht::{self, Candidate},
};
use kernel::{hook::interrupted, prelude::*};
use proptest::prelude::*;
use std::{cell::Cell, collections::BTreeSet, ops::Deref, rc::Rc};

/// Returns an index that belongs to no pool, since the tables of these tests have none.
#[expect(unsafe_code, reason = "only a pool makes indices")]
fn index(cell: u32) -> Index {
    // SAFETY: The index is not used with a pool.
    unsafe { Index::from_raw(cell) }
}

/// A table used from one CPU.
struct Table(rcu_ht::Table<Numa>);

impl Deref for Table {
    type Target = rcu_ht::Table<Numa>;

    fn deref(&self) -> &rcu_ht::Table<Numa> {
        &self.0
    }
}

impl Table {
    fn new(cells: u32) -> Result<Self> {
        Ok(Self(rcu_ht::Table::new(cells)?))
    }

    fn insert(&self, hash: u64, cell: u32) -> Option<Link> {
        let link = Link::new();
        let is_in = on::<Numa, _>(0, |guard| {
            self.0.insert(guard, apart(hash), index(cell), &link)
        });
        is_in.then_some(link)
    }

    fn remove(&self, hash: u64, place: Link) {
        on::<Numa, _>(0, |guard| {
            let anywhere = Candidate::anywhere(index(0));
            self.0.remove(guard, apart(hash), &place, anywhere);
        });
    }

    fn find<R>(&self, hash: u64, mut take: impl FnMut(u32) -> Option<R>) -> Option<R> {
        on::<Numa, _>(0, |guard| {
            self.0
                .find(guard, apart(hash), |found| take(found.cell.to_raw()))
        })
    }

    /// Grows without a guard.
    fn grow(&self, cells: u32) -> bool {
        off_guard(|| self.0.grow(cells).unwrap())
    }

    fn reap(&self) -> u32 {
        off_guard(|| self.0.reap().unwrap())
    }
}

/// Returns a hash with the tag in the highest seven bits, and the home above the lowest six bits,
/// which the table does not use.
fn apart(hash: u64) -> u64 {
    let tag = hash & 0x7f << 57;
    tag | (hash ^ tag) << 6
}

fn candidates(table: &Table, hash: u64) -> Vec<u32> {
    let mut all = Vec::new();
    table.find(hash, |cell| {
        all.push(cell);
        None::<()>
    });
    all
}

#[test]
fn removing_a_cell_that_is_not_in_the_table_changes_nothing() {
    let table = Table::new(4).unwrap();
    let other = Table::new(4).unwrap();
    table.insert(0, 1).unwrap();
    for seen in [false, true] {
        // A cell that was never in a table, and a cell that is in another table.
        for link in [Link::new(), other.insert(0, 1).unwrap()] {
            on::<Numa, _>(0, |guard| {
                let found = table.0.find(guard, apart(0), |found| seen.then_some(found));
                let found = found.unwrap_or(Candidate::anywhere(index(1)));
                table.0.remove(guard, apart(0), &link, found);
            });
            assert_eq!(candidates(&table, 0), [1]);
        }
    }
}

#[test]
fn a_search_ends_at_the_first_accepted_cell() {
    let table = Table::new(4).unwrap();
    for cell in 0..3 {
        table.insert(0, cell).unwrap();
    }
    let mut seen = 0;
    let found = table.find(0, |cell| {
        seen += 1;
        (cell == 1).then_some(cell)
    });
    assert_eq!((found, seen), (Some(1), 2));
    assert_eq!(table.find(1, |_| Some(())), Some(()), "one bucket for all");
    assert_eq!(table.find(1 << 57, |_| Some(())), None, "another tag");
}

#[test]
fn hundreds_of_one_key_are_all_found() {
    const CELLS: u32 = 192;
    let table = Table::new(CELLS).unwrap();
    let hash = 0xab00_0000_0000_0123;
    let mut places: Vec<_> = (0..CELLS)
        .map(|cell| (cell, table.insert(hash, cell).unwrap()))
        .collect();
    assert!(table.overflowing() > 0);
    assert_eq!(candidates(&table, hash).len(), CELLS as usize);
    // While cells are removed from the middle outwards, all others are found.
    while !places.is_empty() {
        let (_, place) = places.swap_remove(places.len() / 2);
        table.remove(hash, place);
        if places.len() % 32 == 0 {
            let found: BTreeSet<_> = candidates(&table, hash).into_iter().collect();
            assert_eq!(found, places.iter().map(|(cell, _)| *cell).collect());
        }
    }
    assert!(table.is_empty());
    assert_eq!(table.overflowing(), 0);
}

/// Returns the number of atomic operations in `body`.
fn counted<R>(body: impl FnOnce() -> R) -> (u64, R) {
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    let result = interrupted(move || counted.set(counted.get() + 1), body);
    (count.get(), result)
}

/// Some events of one key are accepted and the others refused, at a cost that does not depend on
/// their number. Events of other keys are accepted and found, and all events can be removed.
#[test]
fn a_crowd_is_bounded() {
    const CELLS: u32 = 1 << 18;
    let table = Table::new(CELLS).unwrap();
    let crowd = 0x5b00_0000_0000_0123;
    let mut most = 0;
    let mut places = Vec::new();
    let mut room = 0;
    for attempts in [8_000, 200_000] {
        for cell in 0..attempts {
            let (operations, place) = counted(|| table.insert(crowd, cell));
            most = most.max(operations);
            places.extend(place);
        }
        room = room.max(places.len());
        assert_eq!(places.len(), room, "no more after {attempts}");
    }
    assert!((192..=200).contains(&room), "{room} of a key");
    assert_eq!(candidates(&table, crowd).len(), room);
    // Other keys, as many as fit: with the same home, with a home after it, and anywhere.
    let random = |cell: u32| {
        let mut hash = (u64::from(cell) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^ (hash >> 33)
    };
    let beside = (0..CELLS - room as u32).map(|cell| match cell {
        // Another tag, with the crowded home or one after it.
        0..100 => (cell, 0x1700_0000_0000_0123 + u64::from(cell)),
        _ => (cell, random(cell)),
    });
    let others: Vec<_> = beside
        .map(|(cell, hash)| {
            let (operations, place) = counted(|| table.insert(hash, cell));
            most = most.max(operations);
            (cell, hash, place.expect("another key is refused"))
        })
        .collect();
    for (cell, hash, _) in &others {
        let (operations, found) =
            counted(|| table.find(*hash, |found| (found == *cell).then_some(())));
        most = most.max(operations);
        assert_eq!(found, Some(()));
    }
    for place in places {
        let (operations, ()) = counted(|| table.remove(crowd, place));
        most = most.max(operations);
    }
    for (_, hash, place) in others {
        table.remove(hash, place);
    }
    assert!(table.is_empty());
    assert!(most < 1_000, "{most} operations for one");
}

/// A table holds few events of one key, however often it has grown, and wherever they are. Each
/// level has room for eight more in the home bucket, whose slots are claimed without a look at
/// other buckets.
#[test]
fn a_crowd_is_bounded_over_all_levels() {
    const LEVELS: usize = 19;
    let table = Table::new(4).unwrap();
    let crowd = 0x5b00_0000_0000_0123;
    let mut places = Vec::new();
    for level in 0..LEVELS {
        assert_eq!(level > 0, table.grow(4 << level));
        places.extend((0..1_000).filter_map(|cell| table.insert(crowd, cell)));
    }
    let found = candidates(&table, crowd).len();
    assert_eq!(found, places.len());
    assert!(
        (192..=200 + 8 * LEVELS).contains(&found),
        "{found} of a key"
    );
    // Other keys are not refused.
    let other = table.insert(0x1700_0000_0000_0123, 1).unwrap();
    table.remove(0x1700_0000_0000_0123, other);
    for place in places {
        table.remove(crowd, place);
    }
    assert!(table.is_empty());
    assert!(table.insert(crowd, 1).is_some());
}

#[test]
fn a_crowd_at_the_last_bucket_continues_at_the_first() {
    let table = Table::new(64).unwrap();
    // 16 buckets of 8 slots
    let hash = 5 << 56 | 15;
    let places: Vec<_> = (0..64)
        .map(|cell| table.insert(hash, cell).unwrap())
        .collect();
    assert_eq!(candidates(&table, hash).len(), 64);
    for place in places {
        table.remove(hash, place);
    }
    assert!(table.is_empty());
}

#[test]
fn an_event_that_does_not_fit_leaves_no_trace() {
    let table = Table::new(12).unwrap();
    // 4 buckets of 8 slots: more than twice the promised 12 events. One event more does not fit.
    let places: Vec<_> = (0..32).map(|cell| table.insert(7, cell).unwrap()).collect();
    let before = table.overflowing();
    assert!(table.insert(7, 32).is_none());
    assert_eq!(table.overflowing(), before);
    for place in places {
        table.remove(7, place);
    }
    assert!(table.is_empty());
}

/// The cost of a search does not grow with the number of live events: in a full table of any size,
/// few events are outside their home bucket.
#[test]
fn a_large_table_is_no_more_crowded_than_a_small_one() {
    for bits in [8, 12, 16, 20] {
        let cells = 1u32 << bits;
        let table = Table::new(cells).unwrap();
        for cell in 0..cells {
            // Any hash that spreads keys evenly: half of the finaliser of MurmurHash3.
            let mut hash = (u64::from(cell) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            table.insert(hash ^ (hash >> 33), cell).unwrap();
        }
        let outside = table.overflowing() as f64 / f64::from(cells);
        assert!(outside < 0.03, "{outside} of {cells}");
    }
}

#[test]
fn a_table_grows_around_its_events() {
    let table = Table::new(4).unwrap();
    // Tags that differ in more than their lowest bit: see `equal_bytes`.
    let hash = |i: u64| i << 59 | i;
    let old: Vec<_> = (0..4)
        .map(|i| (i, table.insert(hash(i), i as u32).unwrap()))
        .collect();
    assert!(!table.grow(4), "large enough");
    for cells in [8, 16, 64] {
        assert!(table.grow(cells));
        assert!(!table.grow(cells), "large enough");
    }
    // The first level has four events. The other levels were never used.
    assert_eq!(table.reap(), 1);
    let new = table.insert(hash(9), 9).unwrap();
    for i in (0..4).chain([9]) {
        assert_eq!(candidates(&table, hash(i)), [i as u32]);
    }
    assert_eq!(candidates(&table, hash(5)), []);
    for (i, place) in old {
        assert_eq!(table.reap(), 1);
        table.remove(hash(i), place);
    }
    assert_eq!(table.reap(), 0);
    assert_eq!(candidates(&table, hash(9)), [9]);
    table.remove(hash(9), new);
    assert!(table.is_empty());
}

#[test]
fn an_overflowed_event_of_an_older_level_can_be_removed() {
    let table = Table::new(9).unwrap();
    let hash = 3 << 57;
    let mut places: Vec<_> = (0..18)
        .map(|cell| table.insert(hash, cell).unwrap())
        .collect();
    assert!(table.overflowing() > 0);
    assert!(table.grow(1_000));
    places.extend((18..40).map(|cell| table.insert(hash, cell).unwrap()));
    assert_eq!(candidates(&table, hash).len(), 40);
    for place in places {
        table.remove(hash, place);
    }
    assert_eq!((table.overflowing(), table.reap()), (0, 0));
    assert!(table.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Compares the table with a plain list of (hash, cell). There are few homes and few tags, so
    /// that buckets overflow and tags collide.
    #[test]
    fn the_table_finds_what_a_list_finds(
        capacity in 1u32..120,
        homes in prop::collection::vec(any::<u64>(), 1..4),
        steps in prop::collection::vec((0u8..7, any::<prop::sample::Index>(), 0u64..4), 1..400),
    ) {
        let table = Table::new(capacity).unwrap();
        let mut live: Vec<(u64, u32, Link)> = Vec::new();
        let mut free: Vec<u32> = (0..capacity).collect();
        let mut capacity = capacity;
        for (step, which, tag) in steps {
            let hash = (which.get(&homes) & 0xff) | tag << 57;
            match (step, free.pop()) {
                (0..3, Some(cell)) => {
                    let place = table.insert(hash, cell);
                    prop_assert!(place.is_some(), "a slot for every cell");
                    live.push((hash, cell, place.unwrap()));
                }
                (5, cell) if capacity < 5_000 => {
                    free.extend(cell);
                    let more = capacity * 2;
                    let grew = table.grow(more);
                    prop_assert!(grew || more.div_ceil(4) <= capacity.div_ceil(4).next_power_of_two());
                    free.extend(capacity..more);
                    capacity = more;
                }
                (6, cell) => {
                    free.extend(cell);
                    prop_assert!(table.reap() <= 24);
                }
                (_, cell) => {
                    free.extend(cell);
                    if !live.is_empty() {
                        let (hash, cell, place) = live.swap_remove(which.index(live.len()));
                        table.remove(hash, place);
                        free.push(cell);
                    }
                }
            }
            let found = candidates(&table, hash);
            for (_, cell, _) in live.iter().filter(|(other, ..)| *other == hash) {
                prop_assert!(found.contains(cell));
            }
        }
        for (hash, _, place) in live {
            table.remove(hash, place);
        }
        prop_assert!(table.is_empty());
        prop_assert_eq!(table.reap(), 0);
    }
}
