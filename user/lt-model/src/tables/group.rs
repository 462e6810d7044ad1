// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Operations, and the groups in which they are counted.

use super::step::{Operation, PacketEnd, Reclaim};
use crate::context::{Disk, Vector};
use crate::event::Priority;
use crate::files::FileName;
use crate::names::Name;
use crate::sleep::Sleep;

/// A thread. If its number is reused, that is a different thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub(super) u32);

/// The operations of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From waking to running.
    Wakeup,
    /// A sleep, from the thread's switch-out to its wakeup.
    Sleep,
    /// A thread on a CPU, from one switch to the next.
    Run,
    /// From being switched out while runnable to running again.
    Preempted,
    /// The handler of an interrupt.
    Handler,
    /// A softirq.
    Softirq,
    /// A softirq, from its raise to its start.
    Raise,
    /// A system call.
    Call,
    /// A disk request, from insertion to issue.
    Queue,
    /// A disk request, from issue to completion.
    Device,
    /// A contended lock of the kernel, from contention to acquisition.
    Contention,
    /// A call of `futex`.
    Futex,
    /// A work item, from queueing to start.
    Queued,
    /// A work item, from start to end.
    Work,
    /// Reclaim or compaction of memory.
    Reclaim,
    /// A packet in the backlog of a CPU, until it is received.
    Backlog,
    /// A packet, from reception until it is copied to user space, consumed or dropped.
    Receive,
    /// A packet to send, from `net_dev_queue` until the driver has taken it.
    Transmit,
}

/// A grouping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Thread.
    Thread,
    /// Process of the thread; for work items, of the thread that queued the item.
    Process,
    /// Name of the thread.
    Name,
    /// CPU.
    Cpu,
    /// Priority of the thread.
    Priority,
    /// The object of the operation: interrupt line, vector, call, kind of lock, disk with operation, kind of sleep and
    /// of waker, function of a work item, kind of reclaim, network device with the end of a received packet.
    Object,
    /// Disk or network device.
    Device,
    /// Address of the lock or futex.
    Lock,
    /// System call, or the system call in which a thread slept.
    Call,
    /// File of the system call.
    File,
    /// Kind of sleep.
    State,
    /// What ended the sleep.
    Waker,
    /// Workqueue.
    Workqueue,
    /// What queued the work item.
    Queuer,
    /// Thread and object of the operation, the frames of a folded stack.
    Stack,
}

/// The object of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Object {
    /// An interrupt line and one of its handlers.
    Line(i32, Name),
    /// A softirq.
    Vector(Vector),
    /// A system call.
    Call(Name),
    /// An operation on a disk.
    Disk(Disk, Operation),
    /// A kind of lock, and the lock's address.
    Lock(&'static str, u64),
    /// An operation of `futex`, and the address.
    Futex(&'static str, u64),
    /// A kind of sleep, and what ended it.
    Sleep(Sleep, Trigger),
    /// The address of the function of a work item, its workqueue, if recorded, and what queued it. `None`, in the key of
    /// a group, stands for anything.
    Work(u64, Option<Name>, Option<Trigger>),
    /// A kind of reclaim.
    Reclaim(Reclaim),
    /// A network device and, for [`Kind::Receive`], how the packet ended.
    Packet(Name, Option<PacketEnd>),
}

impl Object {
    /// The object without the address of a lock, the thread that ended a sleep, the workqueue, or what queued a work
    /// item.
    pub(super) fn kind(self) -> Self {
        match self {
            Self::Lock(kind, _) => Self::Lock(kind, 0),
            Self::Futex(op, _) => Self::Futex(op, 0),
            Self::Work(function, ..) => Self::Work(function, None, None),
            Self::Sleep(sleep, Trigger::Thread(_)) => Self::Sleep(sleep, Trigger::Thread(None)),
            Self::Sleep(sleep, Trigger::Perhaps(_)) => Self::Sleep(sleep, Trigger::Perhaps(None)),
            other => other,
        }
    }
}

/// The file that a system call works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum File {
    /// The file with this name.
    Named(FileName),
    /// Not recorded, or not certain.
    Unknown,
}

/// The system call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InCall {
    /// The call with this name.
    Named(Name),
    /// No call.
    Outside,
    /// Not recorded: no call of the thread has started or ended since the start of the trace, the last gap, or the end
    /// of a signal handler.
    Unknown,
}

/// What ended a sleep, or queued a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// This thread. `None`, in the key of a group, stands for any thread.
    Thread(Option<TaskId>),
    /// This thread, or an interrupt on top of it: not all interrupts are recorded, or not the start of the one that may
    /// run. `None` stands for any thread.
    Perhaps(Option<TaskId>),
    /// The handler of an interrupt line.
    Irq(i32, Name),
    /// A softirq that runs no timers.
    Softirq(Vector),
    /// A timer.
    Timer,
    /// The completion of a request of this disk, in any context.
    Disk(Disk),
    /// An interrupt that a CPU sent.
    Ipi(Name),
    /// A work item with a function at this address, which a worker ran; only for work items.
    Work(u64),
    /// Not recorded.
    Unrecorded,
}

/// The group of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A thread; `None` if it is not recorded.
    Thread(Option<TaskId>),
    /// A process, by its main thread; `None` if the process of the thread is not recorded.
    Process(Option<TaskId>),
    /// A name of threads.
    Name(Option<Name>),
    /// A CPU.
    Cpu(u32),
    /// A priority, as the kernel counts.
    Priority(Option<i32>),
    /// An object. Addresses of locks and futexes are 0; workqueues, what queued work items, and the threads that ended
    /// sleeps, are left out.
    Object(Object),
    /// A disk.
    Device(Disk),
    /// A network device.
    Network(Name),
    /// The address of a lock or futex.
    Lock(u64),
    /// The system call in which threads slept.
    Call(InCall),
    /// A file; `None` for calls that work on no file, or on several.
    File(Option<File>),
    /// A kind of sleep.
    State(Sleep),
    /// What ended sleeps.
    Waker(Trigger),
    /// A workqueue; `None` if it is not recorded.
    Workqueue(Option<Name>),
    /// What queued work items. With [`By::Process`], a thread that may have queued them is the main thread of its
    /// process; `None` if its process is not recorded.
    Queuer(Trigger),
    /// A thread, or `None` if it is not recorded, and the object of its operation, as for [`Key::Object`].
    Stack(Option<TaskId>, Option<Object>),
}

/// A measured operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Its start, ns.
    pub begin: u64,
    /// Its end, ns.
    pub end: u64,
    /// The CPU where it ended; for [`Kind::Preempted`], the CPU that the thread left; for [`Kind::Sleep`], the waker's
    /// CPU.
    pub cpu: u32,
    /// The thread, if known.
    pub thread: Option<TaskId>,
    /// The number and the name of the thread.
    pub who: Option<(i32, Option<Name>)>,
    /// The priority of the thread, if recorded.
    pub priority: Option<Priority>,
    /// The object.
    pub object: Option<Object>,
    /// The file of a system call; `None` if the call works on no file, or on several.
    pub file: Option<File>,
    /// The system call in which a thread slept; `None` for other operations, and unless sleeps are grouped by
    /// [`By::Call`].
    pub call: Option<InCall>,
}

impl Case {
    /// Its duration, ns.
    #[must_use]
    pub fn took(&self) -> u64 {
        self.end - self.begin
    }
}

/// Counters of a row besides its durations. Each kind of table uses only some counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Calls or requests that ended with an error, and packets that the driver did not send.
    Errors,
    /// Switches to a thread on a CPU other than its last one.
    Migrations,
    /// Completions of a part of a request.
    Parts,
    /// Requests or packets that the driver gave back.
    Requeues,
    /// Requests or packets that became a part of another request or packet.
    Merges,
    /// Sleeps whose waker is not recorded.
    Unknown,
    /// Packets to send that were freed before their `net_dev_xmit`, usually because they were cut into segments.
    Consumed,
    /// Packets that were dropped in a backlog, or before the driver took them.
    Dropped,
    /// Received packets that were passed on to another device, to be received again or merged by GRO.
    Replaced,
}
