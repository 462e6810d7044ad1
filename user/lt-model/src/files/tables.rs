// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables of descriptors, and the threads that share them.
//!
//! ```text
//! thread 7 --.
//! thread 8 --+-> table 1 (known)    3 = /var/log/a   4: closed   5 = socket
//! thread 9 ----> table 2 (dumped)   3 = /etc/b
//! thread 10 ---> table 3 (guessed)  6 = /tmp/c
//! ```
//!
//! All threads that share a table are known only if the trace shows how the table was made. A *guessed* table was first
//! seen when its thread opened a file, and other threads may share it. If a thread without a known table closes a
//! number, the number is therefore closed in all guessed tables. A *dumped* table may be shared only with threads that
//! the dump did not mention.

use std::ops::RangeInclusive;

use foldhash::HashMap;

use super::FileName;

/// A descriptor, or a number that has been closed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    /// Its file; `None` if closed or not known.
    pub(super) file: Option<FileName>,
    /// Whether exec closes it, if known.
    pub(super) closes: Option<bool>,
    /// The number of the event that last changed it.
    pub(super) changed: u64,
}

type Descriptors = HashMap<i32, Descriptor>;

/// The ranges of numbers that were closed.
#[derive(Debug, Clone, Copy, Default)]
struct Ranges {
    /// The last event that closed a range, and the lowest number that any such event closed.
    last: Option<(u64, i32)>,
}

impl Ranges {
    fn add(&mut self, lowest: i32, changed: u64) {
        let (last, least) = self.last.unwrap_or((changed, lowest));
        self.last = Some((changed.max(last), lowest.min(least)));
    }

    /// The last event that may have closed this number; 0 if none did.
    fn closed(self, fd: i32) -> u64 {
        match self.last {
            Some((changed, lowest)) if lowest <= fd => changed,
            _ => 0,
        }
    }
}

/// The numbers that were closed, each with the last event that closed it.
#[derive(Debug, Default)]
struct Closed {
    numbers: HashMap<i32, u64>,
    ranges: Ranges,
}

impl Closed {
    fn last(&self, fd: i32) -> u64 {
        let number = self.numbers.get(&fd).copied();
        number.unwrap_or(0).max(self.ranges.closed(fd))
    }
}

/// How a table, and thereby the threads that share it, became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A fork, an exec or `unshare` made it: all threads that share it are known.
    Known,
    /// From a dump of the kernel's state.
    Dumped,
    /// A thread opened a file.
    Guessed,
}

impl Origin {
    /// Whether a thread with a table of this origin may in fact share a table of origin `other`.
    fn may_share(self, other: Self) -> bool {
        match self {
            Self::Known => false,
            Self::Dumped => other == Self::Guessed,
            Self::Guessed => other != Self::Known,
        }
    }
}

#[derive(Debug)]
struct Table {
    origin: Origin,
    /// Number of threads that share it.
    threads: u32,
    /// Threads that may have a copy instead, since the flags of their `clone3` are not recorded.
    doubtful: Vec<i32>,
    /// Whether its process uses io_uring, whose operations open and close descriptors without a system call.
    has_ring: bool,
    /// Its address, from a dump.
    address: Option<u64>,
    closed: Ranges,
    of: Descriptors,
}

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    all: HashMap<u64, Table>,
    next: u64,
    by_thread: HashMap<i32, u64>,
    by_address: HashMap<u64, u64>,
    /// What was closed by threads whose table is guessed or not known.
    closed_by_guessed: Closed,
    /// What was closed by threads whose table is from a dump.
    closed_by_dumped: Closed,
    /// Number of descriptors in all tables.
    stored: usize,
    /// The largest sizes of `all`, `by_thread` and `by_address` so far.
    most: [usize; 3],
}

/// Upper bound of the memory of a hash table, in bytes, from the largest number of elements that it has had, and the
/// size of an element. A removal frees no memory, and may leave a mark in the place of the element. A table that is
/// half full of elements doubles if such marks fill the other half, and then has room for more than four times as many
/// elements.
pub(super) fn room(most: usize, element: usize) -> usize {
    5 * most * (element + 1)
}

impl Tables {
    fn of(&self, tid: i32) -> Option<&Table> {
        self.all.get(self.by_thread.get(&tid)?)
    }

    /// The last event that may have closed this number in a table of this origin, by a thread that is not known to
    /// share the table; 0 if there is none.
    fn closed_elsewhere(&self, origin: Origin, fd: i32) -> u64 {
        let last = |by: Origin, closed: &Closed| match by.may_share(origin) {
            true => closed.last(fd),
            false => 0,
        };
        let by_guessed = last(Origin::Guessed, &self.closed_by_guessed);
        by_guessed.max(last(Origin::Dumped, &self.closed_by_dumped))
    }

    fn is_valid(&self, table: &Table, fd: i32, of: &Descriptor) -> bool {
        self.closed_elsewhere(table.origin, fd) <= of.changed
    }

    /// The file behind a descriptor of a thread, if known.
    pub(super) fn file(&self, tid: i32, fd: i32) -> Option<FileName> {
        let table = self.of(tid)?;
        let of = table.of.get(&fd)?;
        of.file.filter(|_| self.is_valid(table, fd, of))
    }

    /// Whether a descriptor of a thread may have changed after event number `since`.
    pub(super) fn has_changed(&self, tid: i32, fd: i32, since: u64) -> bool {
        let table = self.of(tid);
        let changed = table.and_then(|table| table.of.get(&fd));
        let origin = table.map_or(Origin::Guessed, |table| table.origin);
        changed.is_some_and(|of| of.changed > since)
            || table.is_some_and(|table| table.closed.closed(fd) > since)
            || self.closed_elsewhere(origin, fd) > since
    }

    /// What was closed by threads whose table has this origin.
    fn closed_by(&mut self, origin: Origin) -> Option<&mut Closed> {
        match origin {
            Origin::Known => None,
            Origin::Dumped => Some(&mut self.closed_by_dumped),
            Origin::Guessed => Some(&mut self.closed_by_guessed),
        }
    }

    /// Records that a number now stands for another file. It must have been closed before; see [`Tables::close`].
    pub(super) fn open(&mut self, tid: i32, fd: i32, of: Descriptor) {
        let id = match self.by_thread.get(&tid) {
            Some(id) => *id,
            None if of.file.is_none() => return,
            None => self.add(tid, Origin::Guessed, Descriptors::default()),
        };
        self.put(id, fd, of);
    }

    fn put(&mut self, id: u64, fd: i32, mut of: Descriptor) {
        let Some(table) = self.all.get_mut(&id) else {
            return;
        };
        // A ring may change the file, and a thread that has a copy of the table may have another file there.
        if table.has_ring || !table.doubtful.is_empty() {
            of.file = None;
        }
        if table.of.insert(fd, of).is_none() {
            self.stored += 1;
        }
    }

    /// Records that a thread, if known, closes a number, or is about to replace its file.
    pub(super) fn close(&mut self, tid: Option<i32>, fd: i32, changed: u64) {
        let id = tid.and_then(|tid| self.by_thread.get(&tid)).copied();
        let table = id.and_then(|id| self.all.get(&id));
        let origin = table.map_or(Origin::Guessed, |table| table.origin);
        if let Some(closed) = self.closed_by(origin) {
            closed.numbers.insert(fd, changed);
        }
        if let Some(id) = id {
            let closed = Descriptor {
                file: None,
                closes: None,
                changed,
            };
            self.put(id, fd, closed);
        }
    }

    /// Records that a thread, if known, closes all of these numbers.
    pub(super) fn close_range(
        &mut self,
        tid: Option<i32>,
        range: &RangeInclusive<i32>,
        changed: u64,
    ) {
        let id = tid.and_then(|tid| self.by_thread.get(&tid)).copied();
        let mut origin = Origin::Guessed;
        if let Some(id) = id
            && let Some(table) = self.all.get_mut(&id)
        {
            origin = table.origin;
            table.closed.add(*range.start(), changed);
            for (_, of) in table.of.iter_mut().filter(|(fd, _)| range.contains(*fd)) {
                (of.file, of.changed) = (None, changed);
            }
        }
        if let Some(closed) = self.closed_by(origin) {
            closed.ranges.add(*range.start(), changed);
        }
    }

    /// Records that the process of a thread, if known, uses io_uring.
    pub(super) fn has_ring(&mut self, tid: Option<i32>) {
        let id = tid.and_then(|tid| self.by_thread.get(&tid)).copied();
        let table = id.and_then(|id| self.all.get(&id));
        let origin = table.map_or(Origin::Guessed, |table| table.origin);
        // Other threads of this process may seem to have other tables, in which the ring may close numbers at any time.
        if let Some(closed) = self.closed_by(origin) {
            closed.ranges.add(0, u64::MAX);
        }
        if let Some(id) = id {
            self.set_ring(id);
        }
    }

    /// Forgets all tables, but not the use of io_uring: a ring may close numbers in any table that is found later.
    pub(super) fn forget(&mut self) {
        let closed = [&self.closed_by_guessed, &self.closed_by_dumped];
        let has_ring = self.all.values().any(|table| table.has_ring)
            || closed.iter().any(|by| by.last(i32::MAX) == u64::MAX);
        *self = Self::default();
        if has_ring {
            self.has_ring(None);
        }
    }

    fn set_ring(&mut self, id: u64) {
        let table = self.all.get_mut(&id);
        if let Some(table) = table.filter(|table| !table.has_ring) {
            table.has_ring = true;
            table.of.values_mut().for_each(|of| of.file = None);
        }
    }

    /// Adds a table that only this thread has.
    fn add(&mut self, tid: i32, origin: Origin, of: Descriptors) -> u64 {
        self.leave(tid);
        let id = self.next;
        self.next += 1;
        self.stored += of.len();
        let table = Table {
            origin,
            threads: 1,
            doubtful: Vec::new(),
            has_ring: false,
            address: None,
            closed: Ranges::default(),
            of,
        };
        self.all.insert(id, table);
        self.by_thread.insert(tid, id);
        self.note_sizes();
        id
    }

    fn note_sizes(&mut self) {
        let sizes = [self.all.len(), self.by_thread.len(), self.by_address.len()];
        for (most, size) in self.most.iter_mut().zip(sizes) {
            *most = size.max(*most);
        }
    }

    /// Records that a thread has ended, or is about to get another table.
    pub(super) fn leave(&mut self, tid: i32) {
        let Some(id) = self.by_thread.remove(&tid) else {
            return;
        };
        let Some(table) = self.all.get_mut(&id) else {
            return;
        };
        table.threads -= 1;
        table.doubtful.retain(|of| *of != tid);
        table.doubtful.shrink_to(4 * table.doubtful.len());
        match table.threads {
            0 => {
                self.stored -= table.of.len();
                let address = table.address;
                self.all.remove(&id);
                if let Some(address) = address.filter(|at| self.by_address.get(at) == Some(&id)) {
                    self.by_address.remove(&address);
                }
            }
            1 => table.doubtful = Vec::new(),
            _ => {}
        }
    }

    /// Lets `child` share the table of `parent`. Unless this is `certain`, `child` may have a copy instead.
    pub(super) fn share(&mut self, parent: i32, child: i32, certain: bool) {
        self.leave(child);
        let Some(id) = self.by_thread.get(&parent).copied() else {
            return;
        };
        if let Some(table) = self.all.get_mut(&id) {
            table.threads += 1;
            if !certain || table.doubtful.contains(&parent) {
                table.doubtful.push(child);
                // A dump may now show the table of either thread at this address.
                if let Some(address) = table.address.take() {
                    self.by_address.remove(&address);
                }
            }
            self.by_thread.insert(child, id);
            self.note_sizes();
        }
    }

    /// Gives `tid` a table of its own: a copy of the table of `from` with the descriptors that `keeps` selects, except
    /// those that changed after event number `since`, when the copy may already have been made.
    pub(super) fn copy(
        &mut self,
        from: i32,
        tid: i32,
        since: u64,
        keeps: impl Fn(&Descriptor) -> bool,
    ) {
        let mut copy = Descriptors::default();
        if let Some(table) = self.of(from) {
            let all = table.of.iter();
            let kept = all.filter(|(fd, of)| {
                of.file.is_some()
                    && keeps(of)
                    && !self.has_changed(from, **fd, since)
                    && self.is_valid(table, **fd, of)
            });
            copy.extend(kept.map(|(fd, of)| (*fd, *of)));
        }
        self.add(tid, Origin::Known, copy);
    }

    /// Records from a dump that a thread has the table at this address.
    pub(super) fn dump(&mut self, tid: i32, address: u64) {
        let own = self.by_thread.get(&tid).copied();
        let own = own.filter(|id| {
            let table = self.all.get(id);
            table.is_some_and(|table| {
                table.origin != Origin::Guessed && table.address.is_none_or(|at| at == address)
            })
        });
        let there = self.by_address.get(&address).copied();
        let id = match (own, there) {
            (Some(own), _) => own,
            (None, Some(there)) => {
                self.leave(tid);
                if let Some(table) = self.all.get_mut(&there) {
                    table.threads += 1;
                    self.by_thread.insert(tid, there);
                    self.note_sizes();
                }
                return;
            }
            (None, None) => self.add(tid, Origin::Dumped, Descriptors::default()),
        };
        let table = self.all.get_mut(&id);
        if let Some(table) = table.filter(|table| table.doubtful.is_empty()) {
            table.address = Some(address);
            self.by_address.insert(address, id);
            self.note_sizes();
        }
    }

    /// Records from a dump a descriptor of the table at this address; `is_ring` if it stands for an io_uring.
    pub(super) fn dump_descriptor(&mut self, address: u64, fd: i32, of: Descriptor, is_ring: bool) {
        if let Some(id) = self.by_address.get(&address).copied() {
            self.put(id, fd, of);
            if is_ring {
                self.set_ring(id);
            }
        }
    }

    /// Upper bound of the memory in use, in bytes; 0 at first.
    pub(super) fn bytes(&self) -> usize {
        /// A hash table from which nothing is removed may have room for more than twice as many elements as it holds.
        const ROOM: usize = 3;
        /// The smallest room of the hash table and the list of a table.
        const LEAST: usize = 256;
        let closed = [&self.closed_by_guessed, &self.closed_by_dumped];
        let closed: usize = closed.iter().map(|by| by.numbers.len()).sum();
        let [tables, threads, addresses] = self.most;
        // Each thread may be in the list of one table. A list has room for at most four times its threads.
        let doubtful = 4 * self.by_thread.len() * size_of::<i32>();
        ROOM * self.stored * (size_of::<(i32, Descriptor)>() + 1)
            + ROOM * closed * (size_of::<(i32, u64)>() + 1)
            + room(tables, size_of::<(u64, Table)>())
            + room(threads, size_of::<(i32, u64)>())
            + room(addresses, size_of::<(u64, u64)>())
            + self.all.len() * LEAST
            + doubtful
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_threads_that_have_ended_is_counted() {
        let mut tables = Tables::default();
        assert_eq!(tables.bytes(), 0);
        for tid in 0..10_000 {
            tables.dump(tid, tid as u64);
        }
        (0..10_000).for_each(|tid| tables.leave(tid));
        assert!(tables.all.is_empty() && tables.by_thread.is_empty());
        // A lower bound of the memory.
        let memory = tables.all.capacity() * size_of::<(u64, Table)>()
            + tables.by_thread.capacity() * size_of::<(i32, u64)>()
            + tables.by_address.capacity() * size_of::<(u64, u64)>();
        assert!(tables.bytes() >= memory, "{} {memory}", tables.bytes());
    }

    #[test]
    fn a_list_of_doubtful_threads_shrinks_with_them() {
        let mut tables = Tables::default();
        tables.add(0, Origin::Known, Descriptors::default());
        (1..=1000).for_each(|tid| tables.share(0, tid, false));
        (2..=1000).for_each(|tid| tables.leave(tid));
        let doubtful = &tables.of(0).unwrap().doubtful;
        assert_eq!(doubtful, &[1]);
        assert!(doubtful.capacity() <= 4, "{}", doubtful.capacity());
    }
}
