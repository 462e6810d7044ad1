// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Events, the input of the model.

use crate::context::Disk;
use crate::request::Kind;
use crate::sleep::SwitchedOut;

/// An event of the kernel. They come in the order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// ns of any clock, the same for all.
    pub time: u64,
    /// The processor where it happened.
    pub cpu: u32,
    /// The kind of event, with its fields.
    pub what: What<'a>,
}

/// The priority of a thread, as the kernel counts: less is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority(pub i32);

impl Priority {
    /// Whether it is a priority of SCHED_DEADLINE.
    pub(crate) fn is_deadline(self) -> bool {
        self.0 < 0
    }

    /// Whether it is a priority of SCHED_OTHER, SCHED_BATCH or SCHED_IDLE.
    pub(crate) fn is_fair(self) -> bool {
        self.0 >= 100
    }
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `block_bio_queue`: a bio is submitted.
    Queued,
    /// `block_getrq`: it has got a request.
    Allocated,
    /// `block_rq_issue`: the driver has got it.
    Issued,
}

/// A kind of event, with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// `sched_switch`: a processor goes from one thread to another. Number 0 is the idle one.
    Switch {
        /// The thread that ran.
        prev: i32,
        /// Its name.
        prev_name: &'a [u8],
        /// Its state after that.
        out: SwitchedOut,
        /// Its priority, if that is recorded.
        prev_prio: Option<Priority>,
        /// The thread that runs from now on.
        next: i32,
        /// Its name.
        next_name: &'a [u8],
        /// Its priority, if that is recorded.
        next_prio: Option<Priority>,
    },
    /// `sched_waking`: somebody makes a thread runnable, and this is where.
    Waking {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The processor on which it is to run.
        target: u32,
    },
    /// `sched_wakeup`, `sched_wakeup_new`: a thread has become runnable, perhaps told elsewhere than it was woken.
    Wakeup {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The processor on which it is to run.
        target: u32,
    },
    /// `sched_migrate_task`: a thread moves from the runqueue of one processor to another. The event is of the processor
    /// that moves it.
    Migrate {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The processor on which it was.
        from: u32,
        /// The processor on which it is to run.
        to: u32,
    },
    /// `sched_process_fork`: the present thread makes another.
    Fork {
        /// The new thread.
        child: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// A thread that is there, of a dump of the kernel's state.
    There {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// A system call begins.
    Call {
        /// `read`, `futex`, ...
        name: &'a [u8],
    },
    /// A call of `futex` begins.
    Futex {
        /// Its argument `op`.
        op: u32,
        /// Its argument `uaddr`.
        address: u64,
    },
    /// A system call ends.
    Return,
    /// `sched_process_exit`: the present thread ends, and is in the kernel until then.
    Exit,
    /// A hard interrupt's handler begins.
    Irq {
        /// The number of the interrupt.
        number: i32,
        /// The name of the handler, of a device.
        name: &'a [u8],
    },
    /// It ends.
    IrqEnd {
        /// The number of the interrupt.
        number: i32,
    },
    /// A softirq is raised: it is to begin soon.
    Raise {
        /// Its number.
        vector: u32,
    },
    /// A softirq begins.
    Softirq {
        /// Its number.
        vector: u32,
    },
    /// It ends.
    SoftirqEnd {
        /// Its number.
        vector: u32,
    },
    /// The function of a timer begins, or the local timer's interrupt.
    Timer {
        /// The address of the function, if that is recorded.
        function: Option<u64>,
    },
    /// It ends.
    TimerEnd,
    /// `timer_expire_entry`: in the softirq of timers, the function of one begins.
    Expire {
        /// The address of the function.
        function: u64,
    },
    /// `timer_expire_exit`: it ends.
    ExpireEnd,
    /// `workqueue_execute_start`: the present thread, a worker, begins a work.
    Work {
        /// The address of its function.
        function: u64,
    },
    /// `workqueue_execute_end`: it has done it.
    WorkEnd,
    /// `power_cpu_idle`: the processor enters an idle state, or leaves it.
    Idle {
        /// It enters it.
        enters: bool,
    },
    /// An interrupt from another processor begins.
    Ipi {
        /// `reschedule`, `call_function`, ...
        name: &'a [u8],
    },
    /// It ends.
    IpiEnd,
    /// `writeback_balance_dirty_pages` with a pause: the present thread has made too much data dirty, and is about to sleep.
    Dirty {
        /// The disk to which the data goes.
        disk: Option<Disk>,
    },
    /// A request of a disk, or a bio of one or of a partition, has come to a stage.
    Request {
        /// The stage.
        stage: Stage,
        /// The disk or partition.
        disk: Disk,
        /// Its first sector, of the disk.
        sector: u64,
    },
    /// The driver of a disk has got a flush of its cache.
    Flush {
        /// Which disk.
        disk: Disk,
    },
    /// `block_bio_remap`: a stacked device hands a bio on to another.
    Remap {
        /// The device that it was for, and its first sector there.
        from: (Disk, u64),
        /// Its new disk and sector.
        to: (Disk, u64),
    },
    /// A request of a disk has been completed, or a part of it.
    Completed {
        /// Which disk.
        disk: Disk,
        /// The first sector, and how many; `None` of a flush.
        range: Option<(u64, u32)>,
        /// Its kind.
        kind: Kind,
    },
    /// The tracer lost events of this processor between now and `until`.
    Lost {
        /// End of the gap. Earlier events of this processor may be incomplete.
        until: u64,
    },
}
