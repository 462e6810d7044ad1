// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Futexes with priority inheritance (PI): handovers from an owner to a waiter.
//!
//! ```text
//! thread 7   |futex(FUTEX_LOCK_PI): spins ....|  ....|returns
//! thread 8    has the lock         |futex(UNLOCK_PI): wakes 7
//! thread 7   |<------ waits for 8 -------->|
//! ```
//!
//! The first waiter of such a lock spins while the owner runs, and counts as running. Its task state is already
//! sleeping, so the owner wakes it on unlock like any other waiter. Until that wakeup, the waking thread owned
//! the lock.

use crate::ids::{ThreadId, WakerId};
use crate::list::{push, with_room};

/// An operation of `futex` on a lock with priority inheritance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Waits for the lock.
    Lock,
    /// Hands over the lock.
    Unlock,
}

/// A call of `futex` in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Futex {
    pub(crate) operation: Operation,
    /// Address of the lock; `None` if processes may share the lock, which may then have several addresses.
    address: Option<u64>,
    /// When the call began, or when an owner last woke the caller during the call.
    pub(crate) since: u64,
}

/// `FUTEX_PRIVATE_FLAG`, `FUTEX_CLOCK_REALTIME`.
const PRIVATE: u32 = 128;
const REALTIME: u32 = 256;

impl Operation {
    /// The operation for an argument `op`, with its name.
    pub(crate) fn of(op: u32) -> Option<(Self, &'static str)> {
        Some(match op & !(PRIVATE | REALTIME) {
            6 => (Self::Lock, "futex(FUTEX_LOCK_PI)"),
            7 => (Self::Unlock, "futex(FUTEX_UNLOCK_PI)"),
            13 => (Self::Lock, "futex(FUTEX_LOCK_PI2)"),
            _ => return None,
        })
    }
}

/// Whether `futex` with this argument `op` waits for a lock with priority inheritance.
#[must_use]
pub fn waits_for_pi_lock(op: u32) -> bool {
    matches!(Operation::of(op), Some((Operation::Lock, _)))
}

impl Futex {
    pub(crate) fn new(operation: Operation, op: u32, address: u64, since: u64) -> Self {
        Self {
            operation,
            address: (op & PRIVATE != 0).then_some(address),
            since,
        }
    }

    /// Whether the two calls may be for one lock.
    pub(crate) fn may_be_of(&self, other: &Self) -> bool {
        let both = self.address.zip(other.address);
        both.is_none_or(|(one, other)| one == other)
    }
}

/// A wait for a lock that an owner handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// When the thread began to wait for that owner, ns.
    pub begin: u64,
    /// When that owner woke the thread, ns.
    pub end: u64,
    /// The previous owner, as waker.
    pub by: WakerId,
}

/// All handovers, by waiting thread.
#[derive(Debug, Default)]
pub(crate) struct Handovers {
    all: Vec<(ThreadId, Handover)>,
    /// Number of handovers that were not stored.
    counted: usize,
}

impl Handovers {
    /// Adds a handover.
    pub(crate) fn push(&mut self, thread: ThreadId, handover: Handover) {
        push(&mut self.all, (thread, handover));
    }

    /// Removes the handovers to `thread` that ended at `since` or later.
    pub(crate) fn revoke(&mut self, thread: ThreadId, since: u64) {
        self.all
            .retain(|(of, handover)| *of != thread || handover.end < since);
    }

    /// Counts a handover without storing it.
    pub(crate) fn count(&mut self) {
        self.counted += 1;
    }

    /// Sorts the handovers, once all are stored.
    pub(crate) fn finish(&mut self) {
        self.all.sort_by_key(|(thread, of)| (*thread, of.end));
    }

    /// The first handover to `thread` that ends after `time`.
    pub(crate) fn after(&self, thread: ThreadId, time: u64) -> Option<Handover> {
        let all = &self.all;
        let first = all.partition_point(|(of, handover)| (*of, handover.end) <= (thread, time));
        let next = all.get(first).filter(|(of, _)| *of == thread);
        next.map(|(_, handover)| *handover)
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        with_room((self.all.len() + self.counted) * size_of::<(ThreadId, Handover)>())
    }
}
