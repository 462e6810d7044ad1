// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What the events around a wait for a CPU show of its cause, if the CPU did not do anything else.

use crate::ids::ThreadId;
use crate::tiles::{push, with_room};

/// A function of the kernel that shows why, when a timer or a worker calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// Gives a cgroup its quota of CPU time again.
    Quota,
    /// Gives a thread of SCHED_DEADLINE its runtime again.
    Deadline,
    /// Submits the bios that io.max has held back.
    Throttle,
    /// Wakes the thread that has set the timer, or sends it a signal.
    Timeout,
}

impl Function {
    /// The function of this name, ignoring suffixes such as `.isra.0`.
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

/// What the events show of a wait for a CPU that ended with the thread on that CPU, or with its migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The CPU was idle when the thread was put on its runqueue, and left idle at this time, ns.
    LeftIdle(u64),
    /// The CPU became idle while the thread was on its runqueue, and ran it after a timer that gives a cgroup its quota
    /// again; that expired at this time, ns.
    Quota(u64),
    /// The thread is of SCHED_DEADLINE, and the CPU ran what has a lower class until a timer that gives such a thread its
    /// runtime again; that expired at this time, ns.
    Deadline(u64, Runtime),
}

/// The state of the runtime of a SCHED_DEADLINE thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// It was used up.
    UsedUp,
    /// The thread gave the rest of it back, with `sched_yield`.
    Yielded,
    /// Unknown which, since system calls are not recorded.
    Unrecorded,
}

/// All signs, by the end of the wait.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    all: Vec<(u64, ThreadId, Sign)>,
    /// Threads that slept between submitting a bio and getting a request for it: when they got that and when they had
    /// submitted it. When all are there, by thread.
    allocated: Vec<(ThreadId, u64, u64)>,
    /// How many were not stored.
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

    /// None is kept.
    pub(crate) fn clear(&mut self) {
        self.all = Vec::new();
        self.allocated = Vec::new();
    }

    /// A thread gets a request now, for a bio that it submitted then; it has slept meanwhile.
    pub(crate) fn allocates(&mut self, thread: ThreadId, queued: u64, time: u64) {
        push(&mut self.allocated, (thread, time, queued));
    }

    /// All are there.
    pub(crate) fn finish(&mut self) {
        self.allocated.sort_unstable();
    }

    /// Whether the thread had submitted a bio then, and got no request for it before `to`.
    pub(crate) fn had_no_request(&self, thread: ThreadId, from: u64, to: u64) -> bool {
        let all = &self.allocated;
        let next = all.partition_point(|(of, time, _)| (*of, *time) < (thread, to));
        let next = all.get(next).filter(|(of, ..)| *of == thread);
        next.is_some_and(|(.., queued)| *queued <= from)
    }

    /// The sign of a thread's wait that ended at that time.
    pub(crate) fn of(&self, thread: ThreadId, end: u64) -> Option<Sign> {
        let first = self.all.partition_point(|(at, ..)| *at < end);
        let mut then = self.all[first..].iter().take_while(|(at, ..)| *at == end);
        then.find(|(_, of, _)| *of == thread)
            .map(|(.., sign)| *sign)
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        with_room((self.all.len() + self.counted) * size_of::<(u64, ThreadId, Sign)>())
            + with_room(self.allocated.len() * size_of::<(ThreadId, u64, u64)>())
    }
}
