// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The calls whose file or descriptor is known.

use super::{CallFile, Packed};
use crate::ids::ThreadId;
use crate::list::{Long, with_room};
use crate::times::{Times, differ};

/// The calls of a thread, in time order.
#[derive(Debug, Default)]
struct OfThread {
    begins: Times,
    ends: Times,
    files: Long<Packed>,
}

impl OfThread {
    /// Size of a call, in bytes.
    const BYTES: usize = 2 * Times::BYTES + size_of::<Packed>();
    /// Room for the first calls, in bytes.
    const LEAST: usize = 4 * Self::BYTES + 4 * Times::HIGH;
}

/// All calls whose file or descriptor is known.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    threads: Vec<Option<Box<OfThread>>>,
    /// Number of threads with calls, and of calls.
    used: usize,
    stored: usize,
    /// Number of changes of the upper bits of their starts and ends.
    highs: usize,
}

impl Calls {
    /// Adds a call. It is ignored if it overlaps an earlier one of the thread: then events are missing.
    pub(crate) fn push(&mut self, thread: ThreadId, (begin, end): (u64, u64), file: CallFile) {
        let Some(file) = Packed::of(file) else {
            return;
        };
        let index = thread.0 as usize;
        if let more @ 1.. = (index + 1).saturating_sub(self.threads.len()) {
            // Growing by a quarter, as in `list::push`.
            if index >= self.threads.capacity() {
                self.threads.reserve_exact(more.max(self.threads.len() / 4));
            }
            self.threads.resize_with(index + 1, || None);
        }
        let of = self.threads[index].get_or_insert_with(|| {
            self.used += 1;
            Box::default()
        });
        let (begins, ends) = (of.begins.last(), of.ends.last());
        if ends.is_some_and(|last| begin < last) {
            return;
        }
        self.stored += 1;
        for (last, time) in [(begins, begin), (ends, end)] {
            self.highs += usize::from(last.is_none_or(|last| differ(last, time)));
        }
        of.begins.push(begin);
        of.ends.push(end);
        of.files.push(file);
    }

    /// Drops all calls.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The file of the call in which `thread` was from `begin` to `end`.
    pub(crate) fn file(&self, thread: ThreadId, begin: u64, end: u64) -> Option<CallFile> {
        let of = self.threads.get(thread.0 as usize)?.as_ref()?;
        let first = of.ends.before(end);
        let file = of.files.get(first)?;
        (of.begins.get(first)? <= begin).then(|| file.file())
    }

    /// Upper bound of the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let threads = self.threads.capacity() * size_of::<Option<Box<OfThread>>>()
            + self.used * (size_of::<OfThread>() + OfThread::LEAST);
        match self.stored {
            0 => threads,
            calls => threads + with_room(calls * OfThread::BYTES) + self.highs * Times::HIGH,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileName;
    use super::*;
    use crate::names::Names;

    #[test]
    fn the_file_of_a_call_is_found_by_a_part_of_the_call() {
        let mut names = Names::default();
        let [a, b] = [b"a", b"b"].map(|name| CallFile::Named(FileName(names.number(name))));
        let (thread, late) = (ThreadId(3), 1 << 33);
        let mut calls = Calls::default();
        calls.push(thread, (10, 20), a);
        calls.push(thread, (40, 50), CallFile::Descriptor(3));
        calls.push(thread, (late, late + 5), b);
        // It overlaps the previous call.
        calls.push(thread, (late + 4, late + 9), a);
        for ((begin, end), file) in [
            ((10, 20), Some(a)),
            ((12, 15), Some(a)),
            ((9, 15), None),
            ((12, 21), None),
            ((25, 30), None),
            ((40, 45), Some(CallFile::Descriptor(3))),
            ((late + 1, late + 5), Some(b)),
            ((late + 6, late + 7), None),
        ] {
            assert_eq!(calls.file(thread, begin, end), file, "{begin}");
        }
        assert_eq!(calls.file(ThreadId(0), 12, 15), None);
        assert_eq!(calls.file(ThreadId(4), 12, 15), None);
    }
}
