// SPDX-License-Identifier: GPL-2.0

//! Defines the places where a CPU searches for a free cell, and their order: nearest first.
//!
//! The order is computed once, with the pool. All functions may sleep.

use crate::{engine::platform::Platform, sys::memory::NodeSlice};
use kernel::prelude::*;

/// A stack or a hot word.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Pool(usize),
    Cache(usize),
    Hot(usize),
}

/// Returns the number of nodes with memory, at least 1.
pub(super) fn populated<P: Platform>() -> u32 {
    (0..P::nodes()).filter(|&n| P::has_memory(n)).count().max(1) as u32
}

/// Returns the node whose cells a CPU caches: its own, or the nearest one with memory if its own
/// has none. `None` if no such CPU is possible.
pub(super) fn home_of<P: Platform>(cpu: usize) -> Option<usize> {
    let own = P::node_of(cpu)?;
    if P::has_memory(own) {
        return Some(own);
    }
    let with_memory = (0..P::nodes()).filter(|&node| P::has_memory(node));
    let nearest = with_memory.min_by_key(|&node| (P::distance(own, node), node));
    // At least one node has memory, by the contract of the platform.
    Some(nearest.unwrap_or(own))
}

/// Returns all places, in the order in which the CPUs of `node` search them: node by node, nearest
/// first, and for each node its pool before the hot words and caches of the CPUs whose home it is.
pub(super) fn search_order<P: Platform>(node: usize) -> Result<NodeSlice<Place>> {
    let (nodes, cpus) = (P::nodes(), P::cpus());
    let nth_nearest = |rank: usize| {
        (0..nodes)
            .find(|&n| {
                let nearer = |&m: &usize| (P::distance(node, m), m) < (P::distance(node, n), n);
                (0..nodes).filter(nearer).count() == rank
            })
            .unwrap_or(node)
    };
    // The next place: the pool of the node of this rank, or the hot word and the cache of one of
    // that node's CPUs, from `from` on.
    let mut rank = 0;
    let mut from = None;
    let mut cached = None;
    let home = P::has_memory(node).then_some(node);
    let possible = (0..cpus).filter(|&cpu| P::node_of(cpu).is_some());
    NodeSlice::try_new(nodes + 2 * possible.count(), home, |_| loop {
        if let Some(cpu) = cached.take() {
            return Ok(Place::Cache(cpu));
        }
        let near = nth_nearest(rank);
        let Some(first) = from else {
            from = Some(0);
            return Ok(Place::Pool(near));
        };
        match (first..cpus).find(|&cpu| home_of::<P>(cpu) == Some(near)) {
            Some(cpu) => {
                from = Some(cpu + 1);
                cached = Some(cpu);
                return Ok(Place::Hot(cpu));
            }
            None => {
                from = None;
                rank += 1;
            }
        }
    })
}
