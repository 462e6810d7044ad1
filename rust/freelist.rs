// SPDX-License-Identifier: GPL-2.0

//! A preallocated, NUMA-aware pool of type-stable cells: get and put without lock or allocation.
//!
//! ```text
//!             CPU 0     CPU 1          CPU 2     CPU 3        a cache for each CPU,
//!            [hot]     [hot]          [hot]     [hot]         on a cache line of its own:
//!            [stack]   [stack]        [stack]   [stack]       one hot cell, and a stack
//!               \         /              \         /
//!              [ node 0 pool ]          [ node 1 pool ]       one stack per node
//!               chunk 0, 2, ...          chunk 1, 3, ...      memory of that node
//! ```
//!
//! # Idea
//!
//! Cells are named by an index and never leave the pool while it lives, so a stale index always
//! points to a cell, perhaps a recycled one: a caller that follows it decides by the cell's own
//! state (see event.rs). Free cells sit on stacks linked through the cells themselves. A stack is
//! one 64-bit word, `{tag: 40, index + 1: 24}`, changed only by compare-and-swap; each change
//! increments the tag, so a word that is found unchanged means that nothing happened in between (no
//! ABA). 2^40 changes of one stack take hours; a compare-and-swap would have to stall for that
//! long. `hot` is a word of the same form that holds at most one cell, so that it needs no link.
//! Its tag counts only the cells put in, which is enough (see below).
//!
//! [`Freelist::get`] looks for a cell in this order: the CPU's hot word, the CPU's stack, the
//! node's stack, the hot words and stacks of the node's other CPUs, and then the other nodes,
//! nearest first.
//! [`Freelist::put`] gives a cell of this CPU's home to this CPU, up to a limit, and any other cell
//! to the pool of its own home. The home of a CPU is its node, or the nearest one with memory.
//! Cells move one at a time, never in batches: a batch in transit would be invisible to searches,
//! and a pool of N must serve N.
//!
//! # Full means full
//!
//! Stacks are read one after another, so finding each stack empty does not prove that all stacks
//! were empty at once: a cell may have come back to a stack that was read already. Therefore
//! [`Freelist::get`] adds up the tags of the stacks it found empty, until two passes in a row give
//! equal sums, which is the proof. Tags only grow, so equal sums mean equal tags: no stack changed
//! between its reading in the first pass and its reading in the second. (A hot word that was found
//! empty twice with the same tag stayed empty, since no cell was put in.) So at the moment between
//! the passes, all stacks were empty. Every further pass is caused by the get or put of another
//! caller (lock-free). [`PASSES`] and [`LOOKS`] bound a search that other CPUs keep disturbing: a
//! pool that this many passes found exhausted is reported full without the proof.
//!
//! A search that has proved the pool exhausted leaves a note (exhausted.rs), so that later callers
//! need not search. A put that finds the note clears it.
//!
//! # Growing
//!
//! A search requests growth if it leaves a node's pool below the low watermark, takes a cell that a
//! CPU has cached, or finds nothing. A caller that finds the note requests growth without a search.
//! Once the capacity is at its maximum, there are no requests. A request sets `wanted`, and, if
//! `wanted` was not set before, calls [`Platform::queue_memory_work`]. A worker, which may sleep,
//! then calls [`Freelist::grow`], which adds chunks: it fills a directory entry, then pushes the
//! new cells, one by one. Chunks are freed only with the pool.
//!
//! # Contexts
//!
//! `get` and `put` may run anywhere, NMI included: an interrupt in the middle of a
//! compare-and-swap loop changes the tag, and the loop retries. `new` and `grow` may sleep.
//!
//! # Orderings
//!
//! `put` releases the caller's accesses to the cell; `get` acquires them. A `get` is a full
//! barrier, so it releases, too: a CPU that sees a stack emptied by a `get` also sees all that the
//! getting CPU had seen before, which the argument about passes needs
//! (Documentation/design/engine.md). A `put` is also a full barrier, before it reads the note of a
//! search. A caller that has an index sees its chunk: pushing releases the directory, and indices
//! are passed on with release and acquire (here, and by the table).

use crate::{
    engine::platform::Platform,
    sys::{
        atomic::{Acquire, Atomic, Full, Relaxed, Release},
        memory::{NodeSlice, PerCpu},
    },
};
use core::{cell::UnsafeCell, marker::PhantomData};
use exhausted::Exhausted;
pub(crate) use index::{Index, Link};
use kernel::prelude::*;
use search::{home_of, populated, search_order, Place};
use used::Used;

#[path = "freelist/exhausted.rs"]
mod exhausted;
#[path = "freelist/index.rs"]
mod index;
#[path = "freelist/search.rs"]
mod search;
#[path = "freelist/used.rs"]
mod used;

const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const TAG_ONE: u64 = 1 << INDEX_BITS;

/// Maximum number of cells of a pool. Half of what 24 bits can name, since the last chunk that each
/// growth adds to a node may leave indices unused.
pub(crate) const MAX_CELLS: u32 = 1 << (INDEX_BITS - 1);

/// Maximum number of cells on a CPU's own stack; further cells go to its node's pool. The limit is
/// lower in a small pool, so that the stacks of all CPUs together hold at most half of the pool, or
/// one cell each.
const CACHE: u64 = 64;

/// Upper and lower bound of the limit on the passes over an exhausted pool that other CPUs keep
/// changing. The more places there are, the lower the limit, so that a search ends on a large
/// machine.
const PASSES: usize = 64;
const PASSES_MIN: usize = 4;

/// Maximum number of places that a disturbed search reads in all its passes together, unless
/// [`PASSES_MIN`] passes need more.
const LOOKS: usize = 2048;

/// Logarithm of the maximum number of cells in one chunk, the unit of allocation.
const CHUNK_BITS: u32 = 12;
const CHUNK: u32 = 1 << CHUNK_BITS;

/// Maximum number of chunks that indices can name: every index plus one must fit in [`INDEX_BITS`]
/// bits.
const MAX_CHUNKS: u32 = (1 << (INDEX_BITS - CHUNK_BITS)) - 1;
const _: () = assert!((MAX_CHUNKS as u64) << CHUNK_BITS <= INDEX_MASK);

/// Growth is wanted when the free cells in a node's pool are fewer than 1 in `LOW_WATER` of the
/// node's cells.
const LOW_WATER: u32 = 8;

/// A cell of a [`Freelist`].
pub(crate) trait Cell: Sized {
    /// Makes a free cell.
    fn new() -> Self;

    /// Makes a free cell of a pool whose cells have a mark, see [`Freelist::with_mark`].
    fn marked() -> Self {
        Self::new()
    }

    /// Returns the cell's link: always the same one, which no other cell shares.
    fn link(&self) -> &Link;
}

/// A stack of free cells.
///
/// # Invariants
///
/// The low [`INDEX_BITS`] of `head` are 0, or one more than the index of a cell of the pool.
struct Stack {
    head: Atomic<u64>,
}

impl Stack {
    fn new() -> Self {
        // INVARIANT: The low bits are 0: the stack is empty.
        Self {
            head: Atomic::new(0),
        }
    }
}

/// The cells that one CPU has cached, alone on their cache line.
///
/// # Invariants
///
/// The low [`INDEX_BITS`] of `hot` are 0, or one more than the index of a cell of the pool.
#[repr(align(64))]
struct Cache {
    /// A recently returned cell.
    hot: Atomic<u64>,
    stack: Stack,
    /// The CPU's home: the cache holds only cells of this node.
    home: Home,
    /// The CPU's node, from which it searches; not its home if this node has no memory.
    node: usize,
}

/// A node's stack, alone on its cache line.
#[repr(align(64))]
struct Pool {
    stack: Stack,
}

/// Cells that were allocated together, on one node.
struct Chunk<T> {
    cells: NodeSlice<T>,
    node: Home,
    used: Used,
}

/// A directory entry, with room for one chunk.
///
/// # Invariants
///
/// `chunk` is written only by the caller that holds `busy`, before `filled` becomes 1, and never
/// again.
struct Entry<T> {
    chunk: UnsafeCell<Option<Chunk<T>>>,
    filled: Atomic<u32>,
}

// SAFETY: After it was filled (type invariant) the chunk is only shared.
unsafe impl<T: Send + Sync> Sync for Entry<T> {}
// SAFETY: An entry owns its chunk.
unsafe impl<T: Send> Send for Entry<T> {}

impl<T> Entry<T> {
    /// Returns the chunk, if it exists.
    #[inline(always)]
    fn get(&self) -> Option<&Chunk<T>> {
        // Acquire: the chunk is read next.
        if self.filled.load(Acquire) == 0 {
            return None;
        }
        // SAFETY: By the type invariant it is no longer written.
        unsafe { (*self.chunk.get()).as_ref() }
    }
}

/// The pool of cells. See the head of this file.
///
/// # Invariants
///
/// - Every index handed out names a cell: `index >> CHUNK_BITS` is the number of a filled entry of
///   the directory, and `index & (CHUNK - 1)` is below the length of its chunk.
/// - A cell is on one stack, in one hot word, or owned by the one caller that `get` gave it to.
/// - Only the caller that holds `busy` fills entries and changes `used`.
pub(crate) struct Freelist<T: Cell, P: Platform> {
    directory: NodeSlice<Entry<T>>,
    caches: PerCpu<Cache>,
    /// Maximum number of cells that a CPU caches besides the hot cell.
    cache: u64,
    pools: NodeSlice<Pool>,
    /// For each node, all stacks and hot words in the order in which its CPUs search them.
    search: NodeSlice<NodeSlice<Place>>,
    /// Maximum number of passes of a search.
    passes: usize,
    exhausted: Exhausted,
    /// Number of filled entries of the directory.
    used: Atomic<u32>,
    capacity: Atomic<u32>,
    /// Maximum capacity.
    max: u32,
    /// Number of free cells in a node's pool below which growth is wanted; 0 if the capacity is at
    /// its maximum.
    low: Atomic<u64>,
    /// Whether growth has been requested.
    wanted: Atomic<u32>,
    busy: Atomic<u32>,
    is_marked: bool,
    platform: PhantomData<P>,
}

/// A node with memory: the home of a cell or of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Home(usize);

impl<T: Cell, P: Platform> Freelist<T, P> {
    /// Makes a pool of exactly `capacity` cells that may grow to `max`, spread over the nodes
    /// that have memory.
    ///
    /// May sleep. Fails with `EINVAL` if `capacity` is 0 or above `max`, or `max` is above
    /// [`MAX_CELLS`], and with `ENOMEM` if memory is short; a failure leaves nothing allocated.
    #[allow(dead_code, reason = "for tests")]
    pub(crate) fn new(capacity: u32, max: u32) -> Result<Self> {
        Self::with_mark(capacity, max, false)
    }

    /// Makes a pool, as [`Freelist::new`], of cells made by [`Cell::marked`] if `is_marked`.
    pub(crate) fn with_mark(capacity: u32, max: u32, is_marked: bool) -> Result<Self> {
        if capacity == 0 || capacity > max || max > MAX_CELLS {
            return Err(EINVAL);
        }
        let nodes = P::nodes();
        // Each doubling may leave a chunk of each node only partly filled.
        let doublings = max.div_ceil(capacity).next_power_of_two().trailing_zeros();
        let partial = populated::<P>() * (doublings + 1);
        let chunks = (max / CHUNK + partial).min(MAX_CHUNKS);
        let share = u64::from(capacity).checked_div(2 * P::cpus() as u64);
        let search = NodeSlice::try_new(nodes, None, |node| search_order::<P>(node))?;
        // INVARIANT: No entry is filled, and no stack has a cell.
        let pool = Self {
            directory: NodeSlice::try_new(chunks as usize, None, |_| {
                Ok(Entry {
                    chunk: UnsafeCell::new(None),
                    filled: Atomic::new(0),
                })
            })?,
            caches: PerCpu::try_new::<P>(|cpu| {
                Ok(Cache {
                    hot: Atomic::new(0),
                    stack: Stack::new(),
                    home: Home(home_of::<P>(cpu).ok_or(EINVAL)?),
                    node: P::node_of(cpu).ok_or(EINVAL)?,
                })
            })?,
            cache: share.unwrap_or(CACHE).clamp(1, CACHE),
            pools: NodeSlice::try_new(nodes, None, |_| {
                Ok(Pool {
                    stack: Stack::new(),
                })
            })?,
            passes: LOOKS
                .checked_div(search.first().map_or(1, |order| order.len()))
                .map_or(PASSES, |passes| passes.clamp(PASSES_MIN, PASSES)),
            search,
            exhausted: Exhausted::new(),
            used: Atomic::new(0),
            capacity: Atomic::new(0),
            max,
            low: Atomic::new(0),
            wanted: Atomic::new(0),
            busy: Atomic::new(0),
            is_marked,
            platform: PhantomData,
        };
        // Equivalent to holding `busy`: no other caller has the pool yet.
        pool.add(capacity)?;
        Ok(pool)
    }

    /// Returns the number of cells, free or not.
    pub(crate) fn capacity(&self) -> u32 {
        // Relaxed: a number for readers and for planning.
        self.capacity.load(Relaxed)
    }

    /// Returns the maximum capacity.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Whether growth was requested since the last successful [`Freelist::grow`].
    pub(crate) fn wants_to_grow(&self) -> bool {
        // Relaxed: a hint.
        self.wanted.load(Relaxed) != 0
    }

    /// Adds cells until there are `capacity`, or `max` if that is less. Returns the number of cells
    /// added.
    ///
    /// May sleep. Fails with `ENOMEM`, and then adds nothing and leaves growth requested, so that
    /// no new request is made. (Keeping the chunks that could be allocated would use up the
    /// directory, which is sized for doublings.) Fails with `EBUSY` while another call is running.
    pub(crate) fn grow(&self, capacity: u32) -> Result<u32> {
        // Acquire: we see the accesses of the last caller.
        self.busy.cmpxchg(0, 1, Acquire).map_err(|_| EBUSY)?;
        let before = self.capacity();
        let added = self.add(capacity.min(self.max).saturating_sub(before));
        if added.is_ok() {
            // Relaxed: the next search that finds too few cells requests it again.
            self.wanted.store(0, Relaxed);
        }
        // Release: the next caller sees our accesses.
        self.busy.store(0, Release);
        added.map(|()| self.capacity() - before)
    }

    /// Adds `count` cells, spread over the nodes, or fails and adds none. The caller holds `busy`.
    fn add(&self, count: u32) -> Result {
        // Relaxed: only the caller that holds `busy` writes it.
        let first = self.used.load(Relaxed);
        let mut next = first;
        let allocated = self.allocate(count, &mut next);
        for number in first..next {
            match allocated {
                Ok(()) => self.publish(number),
                // SAFETY: The entry is not filled, so no CPU reads it; we hold `busy`.
                Err(_) => unsafe { *self.directory[number as usize].chunk.get() = None },
            }
        }
        allocated
    }

    /// Allocates chunks with `count` cells in total, into the entries from `next` on, and advances
    /// `next`. The caller holds `busy`.
    fn allocate(&self, count: u32, next: &mut u32) -> Result {
        let nodes = populated::<P>();
        let share = count.div_ceil(nodes);
        let mut left = count;
        for node in (0..P::nodes()).filter(|&n| P::has_memory(n)) {
            let mut of_node = share.min(left);
            left -= of_node;
            while of_node > 0 {
                let len = of_node.min(CHUNK);
                let entry = self.directory.get(*next as usize).ok_or(ENOSPC)?;
                let cell = if self.is_marked { T::marked } else { T::new };
                let cells = NodeSlice::try_new(len as usize, Some(node), |_| Ok(cell()))?;
                let node = Home(node);
                // INVARIANT: The entry is not filled yet.
                // SAFETY: No CPU reads it before it is filled, and no other CPU writes it: we hold
                // `busy`.
                unsafe {
                    *entry.chunk.get() = Some(Chunk {
                        cells,
                        node,
                        used: Used::new(),
                    })
                };
                *next += 1;
                of_node -= len;
            }
        }
        Ok(())
    }

    /// Marks the next entry, which already has its chunk, as filled, and pushes the chunk's cells.
    /// The caller holds `busy`.
    fn publish(&self, number: u32) {
        let entry = &self.directory[number as usize];
        // Release: a CPU that sees it filled sees the chunk.
        entry.filled.store(1, Release);
        self.used.store(number + 1, Release);
        let first = Index::first_of(number as usize);
        let chunk = self.chunk(first);
        let len = chunk.cells.len() as u32;
        // Relaxed, here and below: only the caller that holds `busy` writes it.
        let capacity = self.capacity.load(Relaxed) + len;
        self.capacity.store(capacity, Relaxed);
        let low = match capacity < self.max {
            true => (capacity / LOW_WATER).div_ceil(populated::<P>()).max(1),
            false => 0,
        };
        self.low.store(low.into(), Relaxed);
        // Downwards, so that cells are handed out upwards: neighbours share pages.
        for offset in (0..len).rev() {
            // INVARIANT: A cell of a filled entry, on no stack and without an owner.
            let index = first.with_offset(offset as usize);
            self.push(&self.pools[chunk.node.0].stack, index, u64::MAX);
            // After each cell, since a cell that is on the stack can be taken at once.
            self.exhausted.end();
        }
    }

    /// Takes a free cell. Returns `None` if the pool is full.
    #[inline(always)]
    pub(crate) fn get(&self, guard: &P::Guard) -> Option<Index> {
        self.get_hot(guard).or_else(|| self.get_colder(guard))
    }

    /// Takes this CPU's hot cell, if there is one.
    ///
    /// For callers that handle failure out of line, with [`Freelist::get`].
    #[inline(always)]
    pub(crate) fn get_hot(&self, guard: &P::Guard) -> Option<Index> {
        let cache = self.caches.this::<P>(guard);
        // Acquire: we see what the cell's last owner left in it.
        let hot = cache.hot.load(Acquire);
        let top = hot & INDEX_MASK;
        // Full: see "Orderings" above.
        let taken = top != 0 && cache.hot.cmpxchg(hot, hot - top, Full).is_ok();
        taken.then(|| Index::on_top(top))
    }

    /// Takes a free cell from anywhere.
    #[inline(never)]
    fn get_colder(&self, guard: &P::Guard) -> Option<Index> {
        let cache = self.caches.this::<P>(guard);
        match self.pop(&cache.stack) {
            Ok(index) => Some(index),
            Err(_) if self.exhausted.is_known() => {
                self.want();
                None
            }
            Err(_) => self.search(cache.node),
        }
    }

    /// Returns a cell to the pool.
    ///
    /// The caller got `index` from [`Freelist::get`] and must not use it again.
    #[inline(always)]
    pub(crate) fn put(&self, guard: &P::Guard, index: Index) {
        self.put_home(guard, index, self.home(index));
    }

    /// Returns a cell to the pool, for callers that know its home. See [`Freelist::put`].
    #[inline(always)]
    pub(crate) fn put_home(&self, guard: &P::Guard, index: Index, home: Home) {
        let cache = self.caches.this::<P>(guard);
        if home == cache.home && warm(&cache.hot, index) {
            return self.exhausted.end();
        }
        self.put_colder(cache, index, home);
    }

    #[inline(never)]
    fn put_colder(&self, cache: &Cache, index: Index, home: Home) {
        if home != cache.home || !self.push(&cache.stack, index, self.cache) {
            self.push(&self.pools[home.0].stack, index, u64::MAX);
        }
        self.exhausted.end();
    }

    /// Moves the cells that an offline CPU has cached to the pools. Any context; a cell in transit
    /// counts as held.
    pub(crate) fn drain(&self, cpu: usize) {
        let Some(cache) = self.caches.get(cpu) else {
            return;
        };
        loop {
            // No preemption while a cell is in transit: otherwise other CPUs might find the pool
            // full for a long time.
            let _guard = P::guard();
            let Ok(index) = cool(&cache.hot).or_else(|_| self.pop(&cache.stack)) else {
                return;
            };
            self.push(&self.pools[self.home(index).0].stack, index, u64::MAX);
            self.exhausted.end();
        }
    }

    /// Returns the cell with an index that this pool once handed out.
    #[inline(always)]
    pub(crate) fn cell(&self, index: Index) -> &T {
        let chunk = self.chunk(index);
        debug_assert!(index.offset() < chunk.cells.len());
        // SAFETY: By the type invariants of `Index` and of this type it names a cell of the chunk.
        unsafe { chunk.cells.get_unchecked(index.offset()) }
    }

    /// Returns the cell with an index that this pool once handed out, and its home.
    #[inline(always)]
    pub(crate) fn cell_and_home(&self, index: Index) -> (&T, Home) {
        (self.cell(index), self.home(index))
    }

    /// Returns the home of a cell: the pool that it returns to.
    #[inline(always)]
    pub(crate) fn home(&self, index: Index) -> Home {
        self.chunk(index).node
    }

    /// Returns the index of the cell with this number, if there is one.
    pub(crate) fn index_of(&self, number: u32) -> Option<Index> {
        let (chunk, offset) = (
            (number >> CHUNK_BITS) as usize,
            (number & (CHUNK - 1)) as usize,
        );
        // Acquire: the entry is read next.
        if chunk >= self.used.load(Acquire) as usize {
            return None;
        }
        let cells = &self.directory.get(chunk)?.get()?.cells;
        (offset < cells.len()).then(|| Index::first_of(chunk).with_offset(offset))
    }

    /// Iterates over all cells that may ever have been handed out, free or not, with their indices.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (Index, &T)> {
        self.chunks().flat_map(|(base, cells)| {
            let number = move |(offset, cell)| (base.with_offset(offset), cell);
            cells.iter().enumerate().map(number)
        })
    }

    /// Iterates over all cells that may ever have been handed out, as slices, each with the index
    /// of its first cell.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (Index, &[T])> {
        // Acquire: the entries are read next.
        let filled = self.used.load(Acquire) as usize;
        let chunks = self.directory.iter().take(filled).map(Entry::get);
        chunks.flatten().enumerate().map(|(number, chunk)| {
            let cells = chunk.cells.get(..chunk.used.get());
            let cells = cells.unwrap_or(&chunk.cells);
            (Index::first_of(number), cells)
        })
    }

    /// Returns the number of free cells; approximate while other CPUs take or return some.
    pub(crate) fn free(&self) -> u64 {
        let pools = self.pools.iter().map(|pool| &pool.stack);
        let caches = self.caches.iter().map(|cache| &cache.stack);
        // Relaxed: a number for readers.
        let is_hot = |cache: &&Cache| cache.hot.load(Relaxed) & INDEX_MASK != 0;
        let hot = self.caches.iter().filter(is_hot).count() as u64;
        let depths = Iterator::chain(pools, caches).map(|stack| self.depth(stack));
        hot + depths.sum::<u64>()
    }

    #[inline(always)]
    fn chunk(&self, index: Index) -> &Chunk<T> {
        let number = index.chunk();
        debug_assert!(self.directory[number].filled.load(Relaxed) != 0);
        // SAFETY: By the type invariants of `Index` and of this type it names a filled entry, and
        // a party that has an index sees it filled, see "Orderings" above.
        unsafe {
            let chunk = &*self.directory.get_unchecked(number).chunk.get();
            chunk.as_ref().unwrap_unchecked()
        }
    }

    /// Takes a cell from a stack or a hot word, or fails with the word that showed its absence.
    fn take(&self, place: Place) -> core::result::Result<Index, u64> {
        match place {
            Place::Pool(node) => self.pop(&self.pools[node].stack),
            Place::Cache(cpu) => self.caches.get(cpu).map_or(Err(0), |c| self.pop(&c.stack)),
            Place::Hot(cpu) => self.caches.get(cpu).map_or(Err(0), |c| cool(&c.hot)),
        }
    }

    /// Returns the number of cells on a stack.
    fn depth(&self, stack: &Stack) -> u64 {
        loop {
            // Acquire: the link of the cell on top is read next.
            let head = stack.head.load(Acquire);
            let top = head & INDEX_MASK;
            if top == 0 {
                return 0;
            }
            let depth = self.cell(Index::on_top(top)).link().checked_depth();
            // If the cell was taken meanwhile, the value that was read may be a stale link or no
            // link. Relaxed: the head is read after the link (Acquire), and a CPU that takes the
            // cell changes the head, by a full exchange, before the link.
            if stack.head.load(Relaxed) == head {
                return depth;
            }
        }
    }

    /// Takes the top cell, or fails with the head of the empty stack.
    #[inline]
    fn pop(&self, stack: &Stack) -> core::result::Result<Index, u64> {
        loop {
            // Acquire: the link, and what the last owner left in the cell, are read later.
            let head = stack.head.load(Acquire);
            let top = head & INDEX_MASK;
            if top == 0 {
                return Err(head);
            }
            let index = Index::on_top(top);
            let Some(next) = self.cell(index).link().next() else {
                // The cell was taken and is in the table: the exchange fails. Or a caller used a
                // cell that it did not own.
                match stack.head.cmpxchg(head, head, Full) {
                    Ok(_) => return Err(head),
                    Err(_) => continue,
                }
            };
            let below = (head & !INDEX_MASK).wrapping_add(TAG_ONE) | next;
            // INVARIANT: `next` was the link of a cell on this stack, hence 0 or an index + 1.
            // Full: Release as well as Acquire, see "Orderings" above.
            if stack.head.cmpxchg(head, below, Full).is_ok() {
                return Ok(index);
            }
        }
    }

    /// Pushes a cell, unless the stack already holds `limit` cells.
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
                top => self.cell(Index::on_top(top)).link().depth(),
            };
            if depth >= limit {
                return false;
            }
            link.set(depth + 1, top);
            let above = (head & !INDEX_MASK).wrapping_add(TAG_ONE) | index.as_top();
            // Full. Release: the next owner sees the link, and all that this owner did to the cell.
            // And the note of an exhausted pool is read only after the cell can be found
            // (exhausted.rs).
            if stack.head.cmpxchg(head, above, Full).is_ok() {
                return true;
            }
        }
    }

    /// Searches every stack, nearest first, until one yields a cell, all are proved to have been
    /// empty at once, or the passes run out.
    #[cold]
    fn search(&self, node: usize) -> Option<Index> {
        let mut before = None;
        let mut note = None;
        for _ in 0..self.passes {
            let mut tags = 0u64;
            for &place in self.search[node].iter() {
                match self.take(place) {
                    Ok(index) => {
                        self.chunk(index).used.note(index.offset() as u32);
                        self.note_low(place);
                        return Some(index);
                    }
                    Err(head) => tags = tags.wrapping_add(head >> INDEX_BITS),
                }
            }
            if before == Some(tags) {
                if let Some(note) = note {
                    self.exhausted.confirm(note);
                }
                break;
            }
            before = Some(tags);
            note = self.exhausted.suspect();
        }
        self.want();
        None
    }

    /// Requests growth if few cells are left at `place`, where a cell was just taken.
    fn note_low(&self, place: Place) {
        let left = match place {
            Place::Pool(node) => self.depth(&self.pools[node].stack),
            // The cell was stolen from another CPU.
            Place::Cache(_) | Place::Hot(_) => 0,
        };
        // Relaxed: a limit that changes now applies from about now.
        if left < self.low.load(Relaxed) {
            self.want();
        }
    }

    /// Requests growth, unless it has been requested or is impossible.
    fn want(&self) {
        // Relaxed: the worker takes no data from us.
        if self.low.load(Relaxed) != 0
            && self.wanted.load(Relaxed) == 0
            && self.wanted.cmpxchg(0, 1, Relaxed).is_ok()
        {
            P::queue_memory_work();
        }
    }
}

/// Stores a cell as the hot cell, if there is none. Returns whether the cell was stored.
#[inline(always)]
fn warm(hot: &Atomic<u64>, index: Index) -> bool {
    // Relaxed: only whether it is empty matters.
    let word = hot.load(Relaxed);
    // INVARIANT: The low bits were 0.
    let with = word.wrapping_add(TAG_ONE + index.as_top());
    // Full: as in `push`.
    word & INDEX_MASK == 0 && hot.cmpxchg(word, with, Full).is_ok()
}

/// Takes the hot cell, or fails with the word if there is none.
fn cool(hot: &Atomic<u64>) -> core::result::Result<Index, u64> {
    loop {
        // Acquire: as in `get_hot`.
        let word = hot.load(Acquire);
        let top = word & INDEX_MASK;
        if top == 0 {
            return Err(word);
        }
        // INVARIANT: The low bits become 0. Full: see "Orderings" above.
        if hot.cmpxchg(word, word - top, Full).is_ok() {
            return Ok(Index::on_top(top));
        }
    }
}
