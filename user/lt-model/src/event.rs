// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Events, the input of the model.

use crate::context::Disk;
use crate::request::Kind;
use crate::sleep::SwitchedOut;

/// An event of the kernel. Events come in time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Time in ns, of any one clock.
    pub time: u64,
    /// The processor where it happened.
    pub cpu: u32,
    /// Kind of event, with its fields.
    pub what: What<'a>,
}

/// Priority of a thread, as the kernel counts: lower is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority(pub i32);

impl Priority {
    /// Whether this is a priority of SCHED_DEADLINE.
    pub(crate) fn is_deadline(self) -> bool {
        self.0 < 0
    }

    /// Whether this is a priority of SCHED_OTHER, SCHED_BATCH or SCHED_IDLE.
    pub(crate) fn is_fair(self) -> bool {
        self.0 >= 100
    }
}

/// The first sector of a request without a position, such as a command that reads the state of a disk.
pub const NOWHERE: u64 = u64::MAX;

/// Stage that a request reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// `block_bio_queue`: a bio is submitted.
    Queued,
    /// `block_getrq`: the bio gets a request.
    Allocated,
    /// `block_rq_issue`: the request is issued to the driver.
    Issued,
}

/// A kind of event, with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// `sched_switch`: a processor switches from one thread to another. Number 0 is the idle thread.
    Switch {
        /// The thread that ran.
        prev: i32,
        /// Its name.
        prev_name: &'a [u8],
        /// Its state after the switch.
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
    /// `sched_waking`: a waker makes a thread runnable; the event is on the waker's processor.
    Waking {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The processor where the thread ran last. The wakeup may move the thread to another one.
        target: u32,
    },
    /// `sched_wakeup`, `sched_wakeup_new`: a thread has become runnable. The event may be on a processor other than the
    /// waker's.
    Wakeup {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The processor on which the thread will run.
        target: u32,
    },
    /// `sched_migrate_task`: a thread moves from the runqueue of one processor to another. The event is on the
    /// processor that moves it.
    Migrate {
        /// The thread.
        tid: i32,
        /// Its name.
        name: &'a [u8],
        /// The processor that it leaves.
        from: u32,
        /// The processor on which it will run.
        to: u32,
    },
    /// `sched_process_fork`: the current thread creates another.
    Fork {
        /// The new thread.
        child: i32,
        /// Its name.
        name: &'a [u8],
    },
    /// `sched_process_exec`: the current thread executes another program. All other threads of its process have ended,
    /// and it has the number of the process, whatever its number was before.
    Exec {
        /// Its number from now on.
        tid: i32,
        /// Its number before.
        old: i32,
    },
    /// An existing thread, from a dump of the kernel's state.
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
    /// `sched_process_exit`: the current thread exits; it stays in the kernel until it is gone.
    Exit,
    /// A hard interrupt's handler begins.
    Irq {
        /// The number of the interrupt.
        number: i32,
        /// The name of the device's handler.
        name: &'a [u8],
    },
    /// A hard interrupt's handler ends.
    IrqEnd {
        /// The number of the interrupt.
        number: i32,
    },
    /// A softirq is raised: it will begin soon.
    Raise {
        /// Its number.
        vector: u32,
    },
    /// A softirq begins.
    Softirq {
        /// Its number.
        vector: u32,
    },
    /// A softirq ends.
    SoftirqEnd {
        /// Its number.
        vector: u32,
    },
    /// The function of a timer, or the local timer's interrupt, begins.
    Timer {
        /// The address of the function, if that is recorded.
        function: Option<u64>,
    },
    /// The function of a timer, or the local timer's interrupt, ends.
    TimerEnd,
    /// `timer_expire_entry`: in the timer softirq, the function of a timer begins.
    Expire {
        /// The address of the function.
        function: u64,
    },
    /// `timer_expire_exit`: in the timer softirq, the function of a timer ends.
    ExpireEnd,
    /// `workqueue_execute_start`: a work item begins, in the current thread, which is a worker. An item of a BH
    /// workqueue begins in a softirq, on top of any thread.
    Work {
        /// The address of its function.
        function: u64,
    },
    /// `workqueue_execute_end`: the work item ends.
    WorkEnd,
    /// `power_cpu_idle`: the processor enters an idle state, or leaves it.
    Idle {
        /// Whether the processor enters an idle state.
        enters: bool,
    },
    /// An interrupt that a processor sent, to another one or to itself, begins.
    Ipi {
        /// `reschedule`, `call_function`, ...
        name: &'a [u8],
    },
    /// An interrupt that a processor sent ends.
    IpiEnd,
    /// `writeback_balance_dirty_pages` with a pause: the current thread has dirtied too much data, and is about to
    /// sleep, unless it writes for io_uring and must not sleep.
    Dirty {
        /// The disk to which the data is written.
        disk: Option<Disk>,
    },
    /// A request of a disk, or a bio of a disk or of a stacked device, reaches a stage. A bio of a partition counts as
    /// a bio of the disk.
    Request {
        /// The stage.
        stage: Stage,
        /// The disk, or the stacked device.
        disk: Disk,
        /// Its first sector, counted from the start of the disk; [`NOWHERE`] if it is a command without a position.
        sector: u64,
        /// Number of sectors; 0 if not recorded.
        sectors: u32,
    },
    /// A flush of a disk's cache is issued to the driver.
    Flush {
        /// The disk.
        disk: Disk,
    },
    /// `block_rq_requeue`: the driver gives a request of a disk back, which will be issued again. The driver may have
    /// refused it without an event of its issue.
    Requeued {
        /// The disk.
        disk: Disk,
        /// First sector and number of sectors, as in [`What::Request`]. `None` for a flush.
        range: Option<(u64, u32)>,
    },
    /// `block_bio_remap`: a stacked device passes a bio on to another device, or a bio of a partition becomes a bio of
    /// the disk.
    Remap {
        /// The stacked device or the partition, and the first sector there.
        from: (Disk, u64),
        /// The new disk and first sector.
        to: (Disk, u64),
        /// Number of sectors; 0 if not recorded.
        sectors: u32,
    },
    /// A request of a disk, or a part of it, is completed.
    Completed {
        /// The disk.
        disk: Disk,
        /// First sector, which may be [`NOWHERE`], and number of sectors. `None` for a flush, or if not recorded.
        ///
        /// With 0 sectors, the disk has done nothing for the request with this first sector, which is still at the
        /// driver. If no such request is there, this is the end of a request that waited for a flush ([`Kind::Plain`]),
        /// or of a command ([`Kind::Other`]).
        range: Option<(u64, u32)>,
        /// Its kind.
        kind: Kind,
    },
    /// The tracer discarded events of this processor between now and `until`.
    Lost {
        /// End of the gap. Earlier events of this processor may lack their counterparts.
        until: u64,
    },
    /// Packets of this processor are missing between now and `until`.
    NoPackets {
        /// End of the gap.
        until: u64,
    },
    /// A packet of this processor is damaged between now and `until`.
    Damaged {
        /// End of the gap.
        until: u64,
    },
    /// This processor is not recorded between now and `until`: one trace has ended, and the next one has not started.
    Between {
        /// End of the gap.
        until: u64,
    },
}
