// SPDX-License-Identifier: GPL-2.0

use crate::rcu_ht::{Place, Table};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn candidates(table: &Table, hash: u64) -> Vec<u32> {
    let mut all = Vec::new();
    table.find(hash, |cell| {
        all.push(cell);
        None::<()>
    });
    all
}

#[test]
fn a_place_survives_as_a_word() {
    let table = Table::new(100).unwrap();
    for hash in 0..100 {
        let place = table.insert(hash, 0).unwrap();
        assert_eq!(Place::from_bits(place.to_bits()), place);
    }
}

#[test]
fn a_search_ends_at_the_first_that_is_accepted() {
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
    assert_eq!(
        table.find(1 << 56 | 1, |_| Some(())),
        Some(()),
        "hash 0 has tag 1"
    );
    assert_eq!(table.find(2 << 56, |_| Some(())), None);
}

#[test]
fn thousands_of_one_key_are_all_found() {
    const CELLS: u32 = 4000;
    let table = Table::new(CELLS).unwrap();
    let hash = 0xab00_0000_0000_0123;
    let mut places: Vec<_> = (0..CELLS)
        .map(|cell| (cell, table.insert(hash, cell).unwrap()))
        .collect();
    assert!(table.overflowing() > 0);
    assert_eq!(candidates(&table, hash).len(), CELLS as usize);
    // Removed from the middle outwards, the others are found all the time.
    while !places.is_empty() {
        let (_, place) = places.swap_remove(places.len() / 2);
        table.remove(hash, place);
        if places.len() % 500 == 0 {
            let found: BTreeSet<_> = candidates(&table, hash).into_iter().collect();
            assert_eq!(found, places.iter().map(|(cell, _)| *cell).collect());
        }
    }
    assert!(table.is_empty());
    assert_eq!(table.overflowing(), 0);
}

#[test]
fn a_crowd_at_the_last_bucket_goes_on_at_the_first() {
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
fn what_does_not_fit_leaves_no_trace() {
    let table = Table::new(12).unwrap();
    // 4 buckets of 8 slots: twice what is promised, and then one more
    let places: Vec<_> = (0..32).map(|cell| table.insert(7, cell).unwrap()).collect();
    let before = table.overflowing();
    assert!(table.insert(7, 32).is_none());
    assert_eq!(table.overflowing(), before);
    for place in places {
        table.remove(7, place);
    }
    assert!(table.is_empty());
}

/// What a search costs does not grow with the number of live events: in a full table, however
/// large, few sit outside of their bucket.
#[test]
fn a_large_table_is_no_more_crowded_than_a_small_one() {
    for bits in [8, 12, 16, 20] {
        let cells = 1u32 << bits;
        let table = Table::new(cells).unwrap();
        for cell in 0..cells {
            // Any hash that spreads keys evenly: the finaliser of MurmurHash3.
            let mut hash = (u64::from(cell) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            table.insert(hash ^ (hash >> 33), cell).unwrap();
        }
        let outside = table.overflowing() as f64 / f64::from(cells);
        assert!(outside < 0.03, "{outside} of {cells}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Against a plain list of (hash, cell), with few homes and few tags, so that buckets
    /// overflow and tags are equal.
    #[test]
    fn what_is_in_is_found(
        capacity in 1u32..120,
        homes in prop::collection::vec(any::<u64>(), 1..4),
        steps in prop::collection::vec((0u8..5, any::<prop::sample::Index>(), 0u64..4), 1..400),
    ) {
        let table = Table::new(capacity).unwrap();
        let mut live: Vec<(u64, u32, Place)> = Vec::new();
        let mut free: Vec<u32> = (0..capacity).collect();
        for (step, which, tag) in steps {
            let hash = (which.get(&homes) & 0xff) | tag << 56;
            match (step, free.pop()) {
                (0..3, Some(cell)) => {
                    let place = table.insert(hash, cell);
                    prop_assert!(place.is_some(), "a slot for every cell");
                    live.push((hash, cell, place.unwrap()));
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
    }
}
