// SPDX-License-Identifier: GPL-2.0

//! If an allocation fails, nothing is created, and nothing leaks.

use super::Numa;
use crate::{
    alert::ring::Ring,
    engine::{hash::Seed, Engine},
    sys::memory::{alive, with_budget},
};
use kernel::prelude::*;

fn fails_cleanly<T>(make: impl Fn() -> Result<T>) {
    let before = alive();
    let mut failures = 0;
    for budget in 0.. {
        match with_budget(budget, &make) {
            Err(error) => {
                assert_eq!(error, ENOMEM);
                assert_eq!(alive(), before, "left behind after {budget} allocations");
                failures += 1;
            }
            Ok(made) => {
                assert!(alive() > before);
                drop(made);
                assert_eq!(alive(), before);
                assert!(failures > 0);
                return;
            }
        }
    }
}

#[test]
fn a_tracker_fails_cleanly_at_every_allocation() {
    fails_cleanly(|| Engine::<1, 1, Numa>::new(10_000, 0, Seed::new(1, 2)));
}

#[test]
fn a_ring_fails_cleanly() {
    fails_cleanly(|| Ring::new(64, 3));
}
