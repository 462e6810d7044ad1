// SPDX-License-Identifier: GPL-2.0

//! Capacity: how many events can be live, and how that becomes more.
//!
//! A probe that finds few cells left only asks for growth (freelist.rs). What is here is done by
//! somebody who may sleep.

use super::Tracker;
use crate::{hash::Seed, platform::Platform};
use kernel::prelude::*;

impl<const K: usize, const D: usize, P: Platform> Tracker<K, D, P> {
    /// Makes a tracker for `capacity` live events that reports delays above `threshold`
    /// nanoseconds. Sleeps; fails with `EINVAL` for an impossible capacity, or `ENOMEM`.
    #[allow(dead_code, reason = "for tests; the module's trackers may grow")]
    pub(crate) fn new(capacity: u32, threshold: u64, seed: Seed) -> Result<Self> {
        Self::growing(capacity, capacity, threshold, seed)
    }

    /// Whether the pool has asked to grow.
    pub(crate) fn wants_to_grow(&self) -> bool {
        self.pool.wants_to_grow()
    }

    /// The capacity after the next growth.
    pub(crate) fn next_capacity(&self) -> u32 {
        let capacity = self.pool.capacity();
        capacity.saturating_mul(2).min(self.pool.max())
    }

    /// Doubles the capacity, up to the largest, if the pool has asked for it. Returns how many
    /// events were added. Sleeps; with `ENOMEM` the capacity is what it was and the pool still wants
    /// to grow, and with `EBUSY` another call is under way.
    pub(crate) fn grow(&self) -> Result<u32> {
        if !self.pool.wants_to_grow() {
            return Ok(0);
        }
        let target = self.next_capacity();
        // The table first: it must never be smaller than the pool.
        self.table.grow(target)?;
        self.pool.grow(target)
    }

    /// Frees what the table has outgrown, and returns how many older parts are still in use.
    /// Sleeps; `EBUSY` as for `grow`.
    pub(crate) fn reap(&self) -> Result<u32> {
        self.table.reap()
    }

    /// Gives back what a CPU that went offline had cached. Any context.
    pub(crate) fn cpu_gone(&self, cpu: usize) {
        self.pool.drain(cpu);
    }

    /// The most events that can be live.
    pub(crate) fn capacity(&self) -> u32 {
        self.pool.capacity()
    }

    /// The most events that can ever be live.
    pub(crate) fn max_capacity(&self) -> u32 {
        self.pool.max()
    }

    /// How many cells are free, approximately.
    pub(crate) fn free(&self) -> u64 {
        self.pool.free()
    }
}
