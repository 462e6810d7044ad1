// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Signs of the cause of a wait for a CPU, from events around the wait.

use crate::context::Disk;
use crate::ids::ThreadId;
use crate::list::{push, with_room};

/// A kernel function, run by a timer or a worker, that identifies a limit or a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// Refills the CPU quota of a cgroup.
    Quota,
    /// Refills the runtime of a SCHED_DEADLINE thread.
    Deadline,
    /// Submits the bios that io.max held back.
    Throttle,
    /// Wakes the thread that set the timer, or sends it a signal.
    Timeout,
}

impl Function {
    /// The function with this name, ignoring suffixes such as `.isra.0`.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name.split('.').next()? {
            "sched_cfs_period_timer" | "sched_cfs_slack_timer" => Self::Quota,
            "dl_task_timer" => Self::Deadline,
            "blk_throtl_dispatch_work_fn" => Self::Throttle,
            "hrtimer_wakeup" | "process_timeout" | "it_real_fn" | "posix_timer_fn"
            | "alarmtimer_fired" => Self::Timeout,
            _ => return None,
        })
    }
}

/// A sign of the cause of a wait for a CPU that ended when the thread ran on that CPU, or migrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The CPU was idle when the thread was put on its runqueue, and left the idle state at this time, ns.
    LeftIdle(u64),
    /// The CPU became idle, or idle again, while the thread was on its runqueue. The CPU ran the thread, or lost it to
    /// another CPU, only after a timer had refilled a cgroup's quota. The timer expired at this time, ns.
    Quota(u64),
    /// The thread is a SCHED_DEADLINE thread, and the CPU ran threads of lower classes until a timer refilled the
    /// runtime of a SCHED_DEADLINE thread, or of the server that gives fair threads time. The timer expired at this
    /// time, ns.
    Deadline(u64, Runtime),
}

/// The state of the runtime of a SCHED_DEADLINE thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// The runtime was used up.
    UsedUp,
    /// The thread yielded the rest of its runtime, with `sched_yield`.
    Yielded,
    /// Used up or yielded: system calls are not recorded.
    Unrecorded,
}

/// All signs, by end of the wait.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    all: Vec<(u64, ThreadId, Sign)>,
    /// Threads that slept between submitting a bio and getting a request for it, and issued no other request before
    /// their last sleep, with the time of the request, and the time and the device of the bio; sorted by thread once
    /// complete.
    allocated: Vec<(ThreadId, u64, u64, Disk)>,
    /// Number of signs that were not stored.
    counted: usize,
}

impl Signs {
    /// Stores the sign of a wait that ends now.
    pub(crate) fn push(&mut self, end: u64, thread: ThreadId, sign: Sign) {
        push(&mut self.all, (end, thread, sign));
    }

    /// Counts a sign without storing it.
    pub(crate) fn count(&mut self) {
        self.counted += 1;
    }

    /// Drops all signs.
    pub(crate) fn clear(&mut self) {
        self.all = Vec::new();
        self.allocated = Vec::new();
    }

    /// Records that a thread gets a request now, at `time`, for a bio that it submitted to a device at `queued`, that
    /// it slept meanwhile, and that it issued no other request before the last sleep.
    pub(crate) fn allocates(&mut self, by: ThreadId, (queued, time): (u64, u64), device: Disk) {
        push(&mut self.allocated, (by, time, queued, device));
    }

    /// Sorts the requests by thread, once all are stored.
    pub(crate) fn finish(&mut self) {
        self.allocated.sort_unstable();
    }

    /// The device to which the thread had submitted a bio by `from`, if the next request that the thread got after
    /// `to` was for this bio, and the thread issued no other request between the bio and its last sleep.
    pub(crate) fn lacked_request_of(&self, thread: ThreadId, from: u64, to: u64) -> Option<Disk> {
        let all = &self.allocated;
        let next = all.partition_point(|(of, time, ..)| (*of, *time) < (thread, to));
        let (of, _, queued, device) = *all.get(next)?;
        (of == thread && queued <= from).then_some(device)
    }

    /// The sign of the wait of this thread that ended at `end`.
    pub(crate) fn of(&self, thread: ThreadId, end: u64) -> Option<Sign> {
        let first = self.all.partition_point(|(at, ..)| *at < end);
        let mut then = self.all[first..].iter().take_while(|(at, ..)| *at == end);
        then.find(|(_, of, _)| *of == thread)
            .map(|(.., sign)| *sign)
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        with_room((self.all.len() + self.counted) * size_of::<(u64, ThreadId, Sign)>())
            + with_room(self.allocated.len() * size_of::<(ThreadId, u64, u64, Disk)>())
    }
}
