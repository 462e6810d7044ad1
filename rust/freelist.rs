// SPDX-License-Identifier: GPL-2.0

//! A preallocated, NUMA-aware pool of type-stable cells: get and put without lock or allocation.
//!
//! ```text
//!             CPU 0     CPU 1          CPU 2     CPU 3        a cache for each CPU,
//!            [stack]   [stack]        [stack]   [stack]       on its own cache line
//!               \         /              \         /
//!              [ node 0 pool ]          [ node 1 pool ]       one stack a node
//!               cells 0..31              cells 32..63         memory of that node
//! ```
//!
//! # Idea
//!
//! Cells are named by an index and never leave the pool while it lives, so a stale index always
//! points to a cell, perhaps a recycled one: whoever follows it decides by the cell's own state
//! (see event.rs). Free cells sit on stacks linked through the cells themselves. A stack is one
//! 64-bit word, `{tag: 40, index + 1: 24}`, changed only by compare-and-swap; each change
//! increments the tag, so a word that is met again unchanged means that nothing happened in
//! between (no ABA). 2^40 changes of one stack take hours, a compare-and-swap that stalls that
//! long has other worries.
//!
//! [`Freelist::get`] takes from the CPU's own stack, then from the node's, then from the stacks
//! of that node's other CPUs, then from the other nodes, nearest first. [`Freelist::put`] gives
//! a cell of this node to the CPU's stack, up to a limit, and any other cell to the pool
//! of its home node. Cells move one at a time, never in batches: a batch in somebody's hands
//! would be invisible, and a pool of N must serve N.
//!
//! # Full means full
//!
//! Stacks are looked at one after another, so "all were empty when I looked" does not mean that
//! all were empty at once: a cell may have come back behind the searcher's back. Therefore
//! [`Freelist::get`] adds up the tags of the stacks it found empty, and fails only when two
//! passes in a row give the same sum. Tags only grow, so the same sum means the same tags: no
//! stack changed between its reading in the first pass and its reading in the second, and in
//! the moment between the passes all of them were empty. Every further pass is caused by
//! somebody else's get or put (lock-free). [`PASSES`] ends a search that others keep disturbing:
//! a pool that so many searches in a row found exhausted is called full without the proof.
//!
//! # Contexts
//!
//! `get` and `put` may run anywhere, NMI included: an interrupt in the middle of a
//! compare-and-swap loop changes the tag, and the loop goes round again. `new` sleeps.
//!
//! # Orderings
//!
//! `put` releases what its caller did with the cell, `get` acquires it. A `get` is a full
//! barrier also as a writer: whoever sees a stack emptied by it also sees all that this CPU had
//! seen before, which the argument about passes needs (Documentation/design/engine.md).

use crate::{
    platform::Platform,
    sys::{
        atomic::{Acquire, Atomic, Full, Relaxed, Release},
        memory::{NodeSlice, PerCpu},
    },
};
use core::marker::PhantomData;
use kernel::prelude::*;

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const TAG_ONE: u64 = 1 << INDEX_BITS;
const DEPTH_SHIFT: u32 = 32;

/// The most cells a pool can hold. Half of what 24 bits can name, since the last chunk of every
/// node may leave indices unused.
pub(crate) const MAX_CELLS: u32 = 1 << (INDEX_BITS - 1);

/// The most cells a CPU keeps to itself before its node's pool gets them; fewer in a small pool,
/// so that the caches of all CPUs together hold half of it, or one each.
const CACHE: u64 = 64;

/// How many times an exhausted pool is searched while others keep changing it.
const PASSES: usize = 64;

/// The most cells in one chunk, the unit of allocation.
const CHUNK_MAX: u32 = 4096;

/// What can live in a [`Freelist`].
pub(crate) trait Cell: Sized {
    /// Makes a free cell.
    fn new() -> Self;

    /// A word that belongs to the pool while the cell is free, to the cell's owner otherwise.
    fn link(&self) -> &Atomic<u64>;
}

/// A stack of free cells, alone on its cache line.
///
/// # Invariants
///
/// The low [`INDEX_BITS`] of `head` are 0, or one more than the index of a cell of the pool.
#[repr(align(64))]
struct Stack {
    head: Atomic<u64>,
}

impl Stack {
    fn new() -> Self {
        // INVARIANT: An empty stack holds index 0.
        Self {
            head: Atomic::new(0),
        }
    }
}

/// Cells that were allocated together, on one node.
struct Chunk<T> {
    cells: NodeSlice<T>,
    node: usize,
}

/// The pool. See the head of this file.
///
/// # Invariants
///
/// - Every index handed out names a cell: `index >> shift` is below `chunks.len()` and
///   `index & mask` below the length of that chunk.
/// - A cell is on one stack, or in the hands of the one caller that `get` gave it to.
pub(crate) struct Freelist<T: Cell, P: Platform> {
    chunks: NodeSlice<Chunk<T>>,
    shift: u32,
    capacity: u32,
    /// The most cells a CPU keeps to itself.
    cache: u64,
    caches: PerCpu<Stack>,
    pools: NodeSlice<Stack>,
    /// For each node, all stacks in the order in which its CPUs search them.
    search: NodeSlice<NodeSlice<Place>>,
    platform: PhantomData<P>,
}

/// Names a stack.
#[derive(Clone, Copy)]
enum Place {
    Pool(usize),
    Cache(usize),
}

/// One cell in the hands of its only owner; what it must do is give it back.
///
/// Not `Drop`: a cell outlives the call that took it, as the event it then is.
pub(crate) type Index = u32;

impl<T: Cell, P: Platform> Freelist<T, P> {
    /// Makes a pool of exactly `capacity` cells, spread over the nodes that have memory.
    ///
    /// Fails with `EINVAL` when `capacity` is 0 or above [`MAX_CELLS`], with `ENOMEM` when
    /// memory is short; nothing is left behind. Sleeps.
    pub(crate) fn new(capacity: u32) -> Result<Self> {
        if capacity == 0 || capacity > MAX_CELLS {
            return Err(EINVAL);
        }
        let nodes = P::nodes();
        let populated = (0..nodes).filter(|&n| P::has_memory(n)).count().max(1) as u32;
        let share = capacity.div_ceil(populated);
        let chunk = share.next_power_of_two().min(CHUNK_MAX);

        // The plan first, then the memory: how many cells of which node each chunk gets.
        let chunk_count = |cells: u32| cells.div_ceil(chunk) as usize;
        let share_of = |rank: u32| share.min(capacity - (share * rank).min(capacity));
        let total: usize = (0..populated).map(|r| chunk_count(share_of(r))).sum();

        let node_of_rank = |rank: u32| {
            (0..nodes)
                .filter(|&n| P::has_memory(n))
                .nth(rank as usize)
                .unwrap_or(0)
        };
        let mut rank = 0;
        let mut left = share_of(0);
        let chunks = NodeSlice::try_new(total, None, |_| {
            while left == 0 && rank + 1 < populated {
                rank += 1;
                left = share_of(rank);
            }
            let node = node_of_rank(rank);
            let len = left.min(chunk);
            left -= len;
            let cells = NodeSlice::try_new(len as usize, Some(node), |_| Ok(T::new()))?;
            Ok(Chunk { cells, node })
        })?;

        let share = u64::from(capacity).checked_div(2 * P::cpus() as u64);
        let cache = share.unwrap_or(CACHE).clamp(1, CACHE);
        let caches = PerCpu::try_new::<P>(|_| Ok(Stack::new()))?;
        let pools = NodeSlice::try_new(nodes, None, |_| Ok(Stack::new()))?;
        let search = NodeSlice::try_new(nodes, None, |node| search_order::<P>(node))?;

        // INVARIANT: `shift` is the chunk size, every chunk is at most that long, and only
        // indices of existing cells are put below, each once.
        let pool = Self {
            chunks,
            shift: chunk.trailing_zeros(),
            capacity,
            cache,
            caches,
            pools,
            search,
            platform: PhantomData,
        };
        for (number, chunk) in pool.chunks.iter().enumerate() {
            // Downwards, so that cells are handed out upwards: neighbours share pages.
            for offset in (0..chunk.cells.len()).rev() {
                let index = ((number as u32) << pool.shift) | offset as u32;
                pool.push(&pool.pools[chunk.node], index, u64::MAX);
            }
        }
        Ok(pool)
    }

    /// How many cells there are, free or not.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Takes a free cell. `None` means that the pool is full.
    #[inline]
    pub(crate) fn get(&self, guard: &P::Guard) -> Option<Index> {
        let cpu = P::cpu(guard);
        match self.pop(self.caches.get(cpu)) {
            Ok(index) => Some(index),
            Err(_) => self.search(P::node_of(cpu)),
        }
    }

    /// Gives a cell back.
    ///
    /// The caller got `index` from [`Freelist::get`] and forgets it now.
    #[inline]
    pub(crate) fn put(&self, guard: &P::Guard, index: Index) {
        let cpu = P::cpu(guard);
        let home = self.node_of(index);
        if home == P::node_of(cpu) && self.push(self.caches.get(cpu), index, self.cache) {
            return;
        }
        self.push(&self.pools[home], index, u64::MAX);
    }

    /// The cell with an index that this pool once gave out.
    #[inline(always)]
    pub(crate) fn cell(&self, index: Index) -> &T {
        let (chunk, offset) = self.split(index);
        debug_assert!(chunk < self.chunks.len());
        // SAFETY: By the type invariant every index of this pool names a chunk and a cell in it,
        // and callers have indices from nowhere else.
        unsafe { self.chunks.get_unchecked(chunk).cells.get_unchecked(offset) }
    }

    /// All cells, free or not, with their indices.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (Index, &T)> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            let base = (number as u32) << self.shift;
            chunk
                .cells
                .iter()
                .enumerate()
                .map(move |(offset, cell)| (base | offset as u32, cell))
        })
    }

    /// How many cells are on the stacks, approximately while others are at work.
    pub(crate) fn free(&self) -> u64 {
        let pools = self.pools.iter();
        let caches = (0..P::cpus()).map(|cpu| self.caches.get(cpu));
        let stacks = Iterator::chain(pools, caches);
        stacks.map(|stack| self.depth(stack)).sum()
    }

    #[inline(always)]
    fn split(&self, index: Index) -> (usize, usize) {
        let mask = (1u32 << self.shift) - 1;
        ((index >> self.shift) as usize, (index & mask) as usize)
    }

    #[inline(always)]
    fn node_of(&self, index: Index) -> usize {
        let (chunk, _) = self.split(index);
        debug_assert!(chunk < self.chunks.len());
        // SAFETY: As in `cell`.
        unsafe { self.chunks.get_unchecked(chunk).node }
    }

    fn stack(&self, place: Place) -> &Stack {
        match place {
            Place::Pool(node) => &self.pools[node],
            Place::Cache(cpu) => self.caches.get(cpu),
        }
    }

    fn depth(&self, stack: &Stack) -> u64 {
        match stack.head.load(Acquire) & INDEX_MASK {
            0 => 0,
            top => self.cell(top as u32 - 1).link().load(Relaxed) >> DEPTH_SHIFT,
        }
    }

    /// Takes the top cell, or fails with the head of the empty stack.
    #[inline]
    fn pop(&self, stack: &Stack) -> core::result::Result<Index, u64> {
        loop {
            // Acquire: the link, and whatever the cell's last owner left in it, is read below.
            let head = stack.head.load(Acquire);
            let top = head & INDEX_MASK;
            if top == 0 {
                return Err(head);
            }
            let index = top as u32 - 1;
            // Relaxed: if the cell is taken and its link overwritten meanwhile, the tag has
            // moved and the exchange fails.
            let next = self.cell(index).link().load(Relaxed) & INDEX_MASK;
            let below = (head & !INDEX_MASK).wrapping_add(TAG_ONE) | next;
            // INVARIANT: `next` was the link of a cell on this stack, hence 0 or an index + 1.
            // Full: Release as well as Acquire, see "Orderings" above.
            if stack.head.cmpxchg(head, below, Full).is_ok() {
                return Ok(index);
            }
        }
    }

    /// Puts a cell on top, unless the stack holds `limit` cells already.
    #[inline]
    fn push(&self, stack: &Stack, index: Index, limit: u64) -> bool {
        let link = self.cell(index).link();
        loop {
            // Acquire: the depth is read from the cell on top.
            let head = stack.head.load(Acquire);
            let top = head & INDEX_MASK;
            let depth = match top {
                0 => 0,
                // A stale depth is harmless: the exchange fails, or the cell goes to the pool.
                top => self.cell(top as u32 - 1).link().load(Relaxed) >> DEPTH_SHIFT,
            };
            if depth >= limit {
                return false;
            }
            // Relaxed: published by the exchange.
            link.store(((depth + 1) << DEPTH_SHIFT) | top, Relaxed);
            let above = (head & !INDEX_MASK).wrapping_add(TAG_ONE) | u64::from(index + 1);
            // Release: the next owner sees the link and all that this one did to the cell.
            if stack.head.cmpxchg(head, above, Release).is_ok() {
                return true;
            }
        }
    }

    /// Searches every stack, nearest first, until one gives a cell or all are empty at once.
    #[cold]
    fn search(&self, node: usize) -> Option<Index> {
        let mut before = None;
        for _ in 0..PASSES {
            let mut tags = 0u64;
            for &place in self.search[node].iter() {
                match self.pop(self.stack(place)) {
                    Ok(index) => return Some(index),
                    Err(head) => tags = tags.wrapping_add(head >> INDEX_BITS),
                }
            }
            if before == Some(tags) {
                return None;
            }
            before = Some(tags);
        }
        None
    }
}

/// All stacks, in the order in which the CPUs of `node` search them: node by node, nearest
/// first, and of each node its pool before the caches of its CPUs.
fn search_order<P: Platform>(node: usize) -> Result<NodeSlice<Place>> {
    let (nodes, cpus) = (P::nodes(), P::cpus());
    let nth_nearest = |rank: usize| {
        (0..nodes)
            .find(|&n| {
                let nearer = |&m: &usize| (P::distance(node, m), m) < (P::distance(node, n), n);
                (0..nodes).filter(nearer).count() == rank
            })
            .unwrap_or(node)
    };
    let mut rank = 0;
    let mut cpu = None;
    let home = P::has_memory(node).then_some(node);
    NodeSlice::try_new(nodes + cpus, home, |_| loop {
        let near = nth_nearest(rank);
        match cpu {
            None => {
                cpu = Some(0);
                return Ok(Place::Pool(near));
            }
            Some(from) => match (from..cpus).find(|&c| P::node_of(c) == near) {
                Some(found) => {
                    cpu = Some(found + 1);
                    return Ok(Place::Cache(found));
                }
                None => {
                    cpu = None;
                    rank += 1;
                }
            },
        }
    })
}
