// SPDX-License-Identifier: GPL-2.0

//! `pending`: the live events as lines, the oldest first, a batch at a time.
//!
//! ```text
//!   cells of the pool, in no order:  . x . . x x . x . x x . . x
//!                                      one pass keeps the oldest that come after the last batch
//!   a batch, in order:               x x x x  --> lines; then the next pass
//! ```
//!
//! An open file holds only one batch, and each line is generated once: a reader with a small buffer
//! costs no more than one with a large buffer. The batch grows with the pool, so that the number of
//! passes is limited, too. All functions may sleep.

use crate::{engine::event::EventCopy, sys::procfs::Records};
use kernel::{alloc::Flags, prelude::*};

/// Minimum and maximum number of events of a full batch; between these, a batch is 1/64 of the
/// pool.
const LEAST: usize = 256;
const MOST: usize = 8192;

/// The memory is charged to the reader's memory cgroup, if it has one.
const FLAGS: Flags = kernel::alloc::flags::GFP_KERNEL_ACCOUNT;

/// The data of a line.
type Event<const K: usize, const D: usize> = EventCopy<K, D>;

/// The batch of an open file.
pub(crate) struct Batch<const K: usize, const D: usize> {
    events: KVVec<Event<K, D>>,
    /// Number of events of a full batch.
    limit: usize,
    /// The start and the key of the last event of the batch.
    last: Option<(u64, [u64; K])>,
    /// Number of events with this start and key that have been in a batch.
    equal: usize,
    /// Events that started later are not shown: otherwise a reader might never reach the end.
    until: u64,
    is_last: bool,
}

impl<const K: usize, const D: usize> Batch<K, D> {
    /// Creates an empty batch, for a pool of this capacity.
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            events: KVVec::new(),
            limit: (capacity as usize / 64).clamp(LEAST, MOST),
            last: None,
            equal: 0,
            until: u64::MAX,
            is_last: false,
        }
    }

    /// Returns an event of this batch.
    pub(crate) fn get(&self, nth: usize) -> Option<&Event<K, D>> {
        self.events.get(nth)
    }

    /// Makes the next batch the first one.
    pub(crate) fn rewind(&mut self) {
        *self = Self {
            events: core::mem::take(&mut self.events),
            limit: self.limit,
            ..Self::new(0)
        };
        self.events.clear();
    }

    /// Builds the next batch, from the events that `each` passes to its argument. Returns its
    /// number of events, 0 at the end. Fails with `ENOMEM`.
    pub(crate) fn next(
        &mut self,
        each: impl FnOnce(&mut dyn FnMut(Event<K, D>) -> Result) -> Result,
    ) -> Result<usize> {
        self.events.clear();
        if self.is_last {
            return Ok(0);
        }
        let (limit, after, until) = (self.limit, self.last, self.until);
        let (mut equal, mut newest, mut worst) = (self.equal, 0, None);
        let events = &mut self.events;
        let mut more = false;
        each(&mut |event| {
            newest = newest.max(event.start);
            let at = place(&event);
            if event.start > until || after.is_some_and(|after| at < after) {
                return Ok(());
            }
            if after == Some(at) && equal > 0 {
                equal -= 1;
                return Ok(());
            }
            if worst.is_some_and(|worst| at > worst) {
                more = true;
                return Ok(());
            }
            if events.len() == 2 * limit {
                sort(events);
                events.truncate(limit);
                worst = events.last().map(place);
                more = true;
            }
            events.push(event, FLAGS)?;
            Ok(())
        })?;
        sort(events);
        self.is_last = !more && events.len() <= limit;
        events.truncate(limit);
        if until == u64::MAX {
            self.until = newest;
        }
        let last = events.last().map(place);
        let same = events
            .iter()
            .rev()
            .take_while(|event| Some(place(event)) == last)
            .count();
        self.equal = same + if last == after { self.equal } else { 0 };
        self.last = last;
        Ok(self.events.len())
    }
}

/// Returns the sort key of a line: the oldest events come first, and events that started together
/// are ordered by key.
fn place<const K: usize, const D: usize>(event: &Event<K, D>) -> (u64, [u64; K]) {
    (event.start, event.key)
}

fn sort<const K: usize, const D: usize>(mut events: &mut [Event<K, D>]) {
    heapsort(&mut events);
}

/// The argument of [`heapsort`], so that one copy of its code serves the events of all trackers.
trait Sortable {
    fn len(&self) -> usize;
    fn is_less(&self, a: usize, b: usize) -> bool;
    fn swap(&mut self, a: usize, b: usize);
}

impl<const K: usize, const D: usize> Sortable for &mut [Event<K, D>] {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn is_less(&self, a: usize, b: usize) -> bool {
        place(&self[a]) < place(&self[b])
    }

    fn swap(&mut self, a: usize, b: usize) {
        <[_]>::swap(self, a, b);
    }
}

/// Sorts the items. `core`'s sort would take a kilobyte or two of code for each type, and a large
/// stack frame.
fn heapsort(items: &mut dyn Sortable) {
    let len = items.len();
    for root in (0..len / 2).rev() {
        sift(items, root, len);
    }
    for end in (1..len).rev() {
        items.swap(0, end);
        sift(items, 0, end);
    }
}

/// Makes a heap of the elements at `root` and below, the largest first.
fn sift(items: &mut dyn Sortable, mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && items.is_less(child, child + 1) {
            child += 1;
        }
        if !items.is_less(root, child) {
            return;
        }
        items.swap(root, child);
        root = child;
    }
}

/// The lines of an instance, for its file.
pub(crate) type Lines = KBox<dyn Records>;
