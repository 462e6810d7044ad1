// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Calls of `futex` for locks with priority inheritance, and wakeups in them.

use super::Builder;
use crate::ids::{ThreadId, WakerId};
use crate::locks::{Futex, Handover, Operation};

impl Builder {
    /// Declares that the thread with this number waited for a lock in one call of `futex` from `begin` to `end`, and
    /// acquired it. The call counts even if system calls are not recorded. Then only the last wakeup in the call counts
    /// as a handover, if a thread caused it: an earlier one may be due to a signal. Must come before the first event.
    pub fn locks(&mut self, tid: i32, begin: u64, end: u64) {
        self.tasks.locks.entry(tid).or_default().push((begin, end));
    }

    /// Records that the thread on `cpu` calls `futex`.
    pub(super) fn futex(&mut self, time: u64, cpu: u32, op: u32, address: u64) {
        self.futexes = true;
        let known = Operation::of(op);
        let name = known.map_or("futex", |(_, name)| name);
        let name = self.names.number(name.as_bytes());
        self.call(time, cpu, Some(name));
        if let (Some((operation, _)), Some(thread)) = (known, self.cpus.at(cpu).thread()) {
            self.tasks.of(thread).futex = Some(Futex::new(operation, op, address, time));
        }
    }

    /// The lock for which `thread` is waiting.
    fn lock(&mut self, thread: ThreadId, time: u64) -> Option<Futex> {
        let tid = self.tasks.threads.get(thread.0 as usize)?.tid;
        let is_in = |(begin, end): &&(u64, u64)| *begin <= time && time <= *end;
        let known = self.tasks.locks.get(&tid);
        let known = known.and_then(|all| all.iter().find(is_in)).copied();
        let task = self.tasks.of(thread);
        if let (None, Some((begin, _)), false) = (task.futex, known, self.futexes) {
            // The address is not known, so the futex counts as shared: addresses of shared futexes are not compared.
            return Some(Futex::new(Operation::Lock, 0, 0, begin.max(task.handed_at)));
        }
        task.futex
            .filter(|futex| futex.operation == Operation::Lock)
    }

    /// Handles a wakeup of `thread` by `waker`, which is `None` if it cannot be an owner or is not known. If the wakeup
    /// hands over a lock, the thread has waited for the owner.
    pub(super) fn hands_on(&mut self, time: u64, thread: ThreadId, waker: Option<WakerId>) {
        let Some(lock) = self.lock(thread, time) else {
            return;
        };
        if self.over {
            return self.handovers.count();
        }
        if !self.futexes {
            // An earlier wakeup in this call did not end it, so it need not have been a handover.
            self.handovers.revoke(thread, lock.since);
            self.tasks.of(thread).handed_at = time;
        }
        let by = waker.and_then(|id| Some((id, self.wakers.get(id)?.by()?)));
        let Some((id, owner)) = by else {
            return;
        };
        let is_unlock = match (self.tasks.of(owner).futex, self.futexes) {
            (Some(of), _) => of.operation == Operation::Unlock && of.may_be_of(&lock),
            (None, recorded) => !recorded,
        };
        // In a gap, the thread may have returned and called again.
        if !is_unlock || owner == thread || self.tasks.gaps.any(lock.since, time).is_some() {
            return;
        }
        let task = self.tasks.of(thread);
        if let Some(futex) = &mut task.futex {
            futex.since = time;
        }
        task.away_until = time;
        let (begin, end, by) = (lock.since, time, id);
        self.handovers.push(thread, Handover { begin, end, by });
    }
}
