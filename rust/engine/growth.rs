// SPDX-License-Identifier: GPL-2.0

//! Capacity: how many events can be live, and how it grows.
//!
//! A probe that finds few cells left only requests growth (freelist.rs). The functions here are
//! called where sleeping is allowed.

use super::Engine;
use crate::engine::{hash::Seed, platform::Platform};
use kernel::prelude::*;

impl<const K: usize, const D: usize, P: Platform> Engine<K, D, P> {
    /// Creates an engine for `capacity` live events that reports delays above `threshold`
    /// nanoseconds. May sleep; fails with `EINVAL` for an impossible capacity, or `ENOMEM`.
    #[allow(dead_code, reason = "for tests; the module's trackers may grow")]
    pub(crate) fn new(capacity: u32, threshold: u64, seed: Seed) -> Result<Self> {
        Self::growing(capacity, capacity, threshold, seed, false)
    }

    /// Whether the pool has requested growth.
    pub(crate) fn wants_to_grow(&self) -> bool {
        self.pool.wants_to_grow()
    }

    /// Returns the capacity after the next growth.
    pub(crate) fn next_capacity(&self) -> u32 {
        let capacity = self.pool.capacity();
        capacity.saturating_mul(2).min(self.pool.max())
    }

    /// Doubles the capacity, up to the maximum, if the pool has requested it. Returns by how much
    /// the capacity grew. May sleep; after `ENOMEM` the capacity is unchanged and the pool still
    /// wants to grow, and `EBUSY` means that another `grow` or [`Engine::reap`] is running.
    pub(crate) fn grow(&self) -> Result<u32> {
        if !self.pool.wants_to_grow() {
            return Ok(0);
        }
        let target = self.next_capacity();
        // The table grows first: it must never be smaller than the pool.
        self.table.grow(target)?;
        self.pool.grow(target)
    }

    /// Frees outgrown parts of the table, and returns how many older parts are still in use.
    /// May sleep; `EBUSY` means that another `reap` or [`Engine::grow`] is running.
    pub(crate) fn reap(&self) -> Result<u32> {
        self.table.reap()
    }

    /// Gives the cells that an offline CPU has cached back to the pool. Any context.
    pub(crate) fn cpu_gone(&self, cpu: usize) {
        self.pool.drain(cpu);
    }

    /// Returns the maximum number of events that can be live now.
    pub(crate) fn capacity(&self) -> u32 {
        self.pool.capacity()
    }

    /// Returns the maximum number of events that can ever be live.
    pub(crate) fn max_capacity(&self) -> u32 {
        self.pool.max()
    }

    /// Returns the approximate number of free cells.
    pub(crate) fn free(&self) -> u64 {
        self.pool.free()
    }
}
