// SPDX-License-Identifier: GPL-2.0

//! `lock`: how long tasks and interrupts wait for contended kernel locks.
//!
//! ```text
//!   lock()  contention_begin                         contention_end
//!   ------------>|--- spins, or sleeps, or both --------->|--- holds it
//!                |<---------------- delay ---------------->|
//! ```
//!
//! Taking a free lock starts no event and costs nothing. The key is the lock and the task that
//! waits for it (or, if an interrupt waits, the task that it interrupted); an idle task is
//! identified by its CPU. A mutex waiter that switches between spinning and sleeping hits
//! contention_begin again: this is one event, from the first contention_begin on. A nested wait at
//! the same address also belongs to the outer event, since contention_end does not identify the
//! kind of lock. Such waits exist: a semaphore and an rt_mutex (on PREEMPT_RT, also a mutex and a
//! spinlock_t) begin in memory with the spinlock that protects them. The waiter may wait for that
//! spinlock, and so may an interrupt on top of it. Until an event ends, `ret` counts its nested
//! waits in progress.
//!
//! # Contexts
//!
//! Any, including NMI (locks of BPF), and under any other lock, such as the lock of a runqueue, a
//! timer base, the console or a workqueue's pool. So nothing here may take a lock: its tracepoints
//! would recurse without end, or this CPU would wait for a lock that it holds:
//!
//! - The pool, the table and the ring of alerts have no lock, the counters are the CPU's own, and
//!   the clock is NMI-safe.
//! - The stack walk at an end needs no memory but the caller's stack, and uses tables that do not
//!   change.
//! - An irq_work wakes readers and requests memory: queueing it takes a few atomic operations, and
//!   raises an interrupt on the same CPU. Its callback (wake up, start a timer, queue a work item)
//!   takes locks. The interrupted code holds none of these locks, since they are taken with
//!   interrupts off; on PREEMPT_RT the callback runs in a thread. If the callback itself waits for
//!   a lock, the wait is an ordinary event, except while our readers are woken: the alert would
//!   wake them again.
//! - Nothing is printed.
//! - The guard is a preempt count. Dropping it may reschedule, if nothing else keeps preemption
//!   off; a task that waits with its state set continues in that state, as after any interrupt.

use super::{declare::*, stock};
use crate::record;

/// `all`; the kinds in the order of [`FLAGS`], as `perf lock` first called them (`rtmutex` is now
/// `rt-mutex` there); and `other` for any other flags.
#[rustfmt::skip]
const KINDS: [&str; 14] = [
    "all", "semaphore", "spinlock", "rwlock:R", "rwlock:W", "rwsem:R", "rwsem:W", "rtmutex",
    "rwlock-rt:R", "rwlock-rt:W", "pcpu-sem:R", "pcpu-sem:W", "mutex", "other",
];

tracker! {
    lock: "contended kernel locks, from contention to acquisition (key: the lock and the waiter)";
    key: 2;
    threshold: 1_000_000;
    tasks: true;
    stack: true;
    stock: Probes::take_stock;
    params {
        kind: ParamKind::Word(&KINDS) => 0, "only locks of this kind";
    }
    keeps: detail;
    alert {
        /// 16 hexadecimal digits that stand for the lock, as %p prints its address.
        lock: Address at 0,
        /// The kind of lock, and whether it is taken for reading or writing.
        kind: u8 at 1 in KINDS,
        /// 0 if the lock was acquired, otherwise the error that ended the wait. Before the end, the
        /// number of waits in progress at the same address inside this one.
        ret: i32 at 1:8,
    }
    probes lock {
        contention_end(lock: [void *], ret: [int]) => ended(lock, ret);
        contention_begin(lock: [void *], flags: [unsigned int]) => begun(lock, flags);
    }
    impl {
        const NO_USER_STACK: &str = NOT_RECORDED;

        // `ret` is known only at the end.
        const LABELS: labels::Rules = labels::Rules::WITH_STACK.without(&["ret"]);
    }
}

/// The flags of contention_begin for each kind: LCB_F_SPIN is 1, _READ 2, _WRITE 4, _RT 8, _PERCPU
/// 16 and _MUTEX 32.
#[rustfmt::skip]
const FLAGS: [u64; 12] = [0, 1, 1 | 2, 1 | 4, 2, 4, 8, 8 | 2, 8 | 4, 16 | 2, 16 | 4, MUTEX];
const MUTEX: u64 = 32;

/// Returns the position in [`KINDS`] of the kind with these flags.
fn kind(flags: u64) -> u8 {
    // A mutex waiter also sets LCB_F_SPIN while it spins.
    let flags = if flags & MUTEX != 0 { MUTEX } else { flags };
    let known = FLAGS.iter().position(|&of_kind| of_kind == flags);
    known.unwrap_or(FLAGS.len()) as u8 + 1
}

fn key(guard: &Guard, lock: u64, task: &TaskRef<'_>) -> [u64; 2] {
    let who = match task.tid() {
        0 => 1 << 32 | u64::from(tasks::this_cpu(guard)),
        tid => u64::from(tid),
    };
    [lock, who]
}

impl Probes {
    /// Starts events for tasks that already wait. Finds only tasks that sleep for a mutex, by
    /// `blocked_on`; none on PREEMPT_RT.
    fn take_stock(&self) {
        let (kind, wanted) = (kind(MUTEX), self.core.value(PARAM_KIND));
        if wanted != 0 && wanted != u64::from(kind) {
            return;
        }
        stock::take(&self.core, |waiting| {
            let (task, lock) = (waiting.task(), waiting.mutex()?);
            let known = Detail {
                lock: Address(lock),
                kind,
                ret: 0,
            };
            let key = [lock, u64::from(task.tid())];
            Some((key, record::data(tasks::owner(&task), &known)))
        });
    }

    fn begun(&self, guard: &Guard, lock: u64, flags: u64) {
        let (kind, wanted) = (kind(flags), self.core.value(PARAM_KIND));
        // Waking the readers of alerts must not raise another alert.
        if is_waking(guard) {
            return;
        }
        TaskRef::with_current(|task| {
            let key = key(guard, lock, &task);
            // A mutex waiter continues to wait; any other wait is nested in the first.
            let inside = i32::from(flags & MUTEX == 0);
            if self.change(guard, &key, |known| known.ret += inside) {
                return;
            }
            if wanted != 0 && wanted != u64::from(kind) {
                self.core.engine().filtered(guard);
                return;
            }
            let known = Detail {
                lock: Address(lock),
                kind,
                ret: 0,
            };
            if let Some(owner) = self.caller(guard, &task) {
                self.begin(guard, &key, owner, &known);
            }
        });
    }

    fn ended(&self, guard: &Guard, lock: u64, ret: u64) {
        // As at the start, waking the readers of alerts must not raise another alert.
        if is_waking(guard) {
            return;
        }
        let key = TaskRef::with_current(|task| key(guard, lock, &task));
        let mut is_inside = false;
        let is_known = self.change(guard, &key, |known| {
            is_inside = known.ret > 0;
            known.ret -= i32::from(is_inside);
        });
        if is_known && !is_inside {
            self.end(guard, &key, |known| known.ret = ret as i32);
        }
    }
}
