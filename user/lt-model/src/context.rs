// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Interrupts and other contexts in which a processor runs, and wakers of threads.

use std::fmt;

use crate::ids::ThreadId;
use crate::names::Name;

/// A context that interrupts a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// The handler of a hard interrupt.
    Irq {
        /// The number of the interrupt.
        number: i32,
        /// The name of the handler.
        name: Name,
    },
    /// A softirq.
    Softirq {
        /// The vector.
        vector: Vector,
        /// Whether the softirq is the current thread's own work: the work of a softirq thread, or packets that a thread
        /// has just sent to this machine.
        own: bool,
        /// The raiser.
        by: Raiser,
    },
    /// The function of a timer, or the local timer's interrupt.
    Timer,
    /// An interrupt that a processor sent, to another one or to itself.
    Ipi(Name),
    /// The completion of a disk request, in any kind of interrupt; used for wakers only.
    Disk(Disk),
    /// An interrupt, a fault, a signal or task work that the events do not show: the thread was in no system call, so
    /// the waker is not known. Used for wakers only.
    Unseen,
}

impl Context {
    /// Whether this is softirq `of`, and the current thread's own work.
    pub(crate) fn is_own(self, of: Vector) -> bool {
        matches!(self, Self::Softirq { vector, own: true, .. } if vector == of)
    }
}

/// The handler of a hard interrupt: the number of the interrupt, and the name of the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handler(pub i32, pub Name);

/// The raiser of a softirq, on whose behalf it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Raiser {
    /// Not recorded: the raise is not in the trace.
    Unrecorded,
    /// The handler of a device.
    Device(Handler),
    /// A timer of this machine, or a softirq that runs timers.
    Timer,
    /// The thread itself, such as a thread that sends packets to this machine.
    Thread,
    /// An interrupt not from a device: from another processor, or from the processor itself.
    Ipi(Name),
    /// Several raisers.
    Several,
}

impl Raiser {
    /// Whether an interrupt or a timer raised the softirq, and no thread did.
    pub(crate) fn is_interrupt(self) -> bool {
        matches!(self, Self::Device(_) | Self::Timer | Self::Ipi(_))
    }
}

/// Major number of the disks and partitions that get no number from their driver (`BLOCK_EXT_MAJOR`).
const EXTENDED: u32 = 259;

/// Minor numbers that most other drivers reserve for a disk and the partitions that follow it.
const RESERVED: u32 = 16;

/// A block device, by its kernel number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Disk(pub u32);

impl Disk {
    /// Whether this device may be a partition of the disk, by its number.
    pub(crate) fn may_be_part_of(self, disk: Self) -> bool {
        let is_numbered = (1..RESERVED).contains(&self.0.wrapping_sub(disk.0));
        self.0 >> 20 == EXTENDED || is_numbered
    }

    /// Whether this is a loop device, whose data is in a file on another disk.
    #[must_use]
    pub fn is_loop(self) -> bool {
        self.0 >> 20 == 7
    }
}

impl fmt::Display for Disk {
    /// `8:0`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0 >> 20, self.0 & ((1 << 20) - 1))
    }
}

/// A softirq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Vector(pub u32);

impl Vector {
    /// Timers.
    pub const TIMER: Self = Self(1);
    /// High-resolution timers.
    pub const HRTIMER: Self = Self(8);
    /// Packets to be sent.
    pub const NET_TX: Self = Self(2);
    /// Completed block requests.
    pub const BLOCK: Self = Self(4);
    /// Completions of block drivers that poll.
    pub const IRQ_POLL: Self = Self(5);
    /// Packets received.
    pub const NET_RX: Self = Self(3);
    /// Not recorded. Perhaps no softirq ran, and the thread itself acted.
    pub const UNRECORDED: Self = Self(u32::MAX);

    /// The kernel's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 10] = [
            "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
            "RCU",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// A waker of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// Time of the wakeup, ns.
    pub time: u64,
    /// The CPU of the waker.
    pub cpu: u32,
    /// The thread that was running there. It is the waker, unless it was interrupted.
    pub thread: Option<ThreadId>,
    /// The context that had interrupted the thread.
    pub context: Option<Context>,
}

impl Waker {
    /// The thread, if it caused the wakeup. A thread that runs the timer softirq, such as `ktimers/1`, is no more the
    /// cause than an interrupt that runs the softirq.
    #[must_use]
    pub fn by(&self) -> Option<ThreadId> {
        match self.context {
            Some(Context::Softirq { vector, by, .. }) if is_of_another(vector, by) => None,
            None | Some(Context::Softirq { own: true, .. }) => self.thread,
            Some(_) => None,
        }
    }
}

/// The thread that completed the operation that another thread waited for, and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// This thread did the work of a device, as the worker of a loop device does, until this time.
    Served(ThreadId, u64),
    /// This softirq or interrupt thread ran the timer or completed the request. The time is when the timer was due, if
    /// known.
    Handled(ThreadId, Option<u64>),
}

/// Whether a softirq is unrelated to the thread that runs it: timers, packets that a timer sent, such as a
/// delayed ACK, and disks.
fn is_of_another(vector: Vector, by: Raiser) -> bool {
    match vector {
        Vector::TIMER | Vector::HRTIMER | Vector::BLOCK | Vector::IRQ_POLL => true,
        Vector::NET_TX | Vector::NET_RX => by == Raiser::Timer,
        _ => false,
    }
}

/// Whether an interrupt that has just ended may defer work to threads with this name. Only the handler of a device
/// defers work to its own interrupt threads, `irq/5-eth0` and `irq/5-s-eth0` for interrupt 5.
pub(crate) fn is_left_to(name: &[u8], ended: Context) -> bool {
    match (name.strip_prefix(b"irq/"), ended) {
        (None, _) => is_of_softirqs(name),
        (Some(of), Context::Irq { number, .. }) => of.starts_with(format!("{number}-").as_bytes()),
        (Some(_), _) => false,
    }
}

/// Whether threads with this name run work that interrupts deferred.
pub(crate) fn is_for_softirqs(name: &[u8]) -> bool {
    is_of_softirqs(name) || name.starts_with(b"irq/")
}

/// Whether threads with this name only run softirqs. The first waker of such a thread need not be the cause of its
/// work.
pub(crate) fn is_of_softirqs(name: &[u8]) -> bool {
    let begins: [&[u8]; 3] = [b"ksoftirqd/", b"ktimers/", b"ktimersoftd/"];
    begins.iter().any(|begin| name.starts_with(begin))
}
