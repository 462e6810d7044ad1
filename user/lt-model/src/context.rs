// SPDX-License-Identifier: GPL-2.0 OR MIT

//! In whose name a processor works, other than a thread's, and who woke a thread.

use crate::names::Name;
use crate::thread::ThreadId;

/// What interrupts a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        /// Which.
        vector: Vector,
        /// It is the present thread's own work: of a thread that is there for softirqs, or packets that a thread has
        /// just sent and that are for this machine.
        own: bool,
    },
    /// The function of a timer.
    Timer,
    /// Another processor's call.
    Ipi(Name),
}

/// A softirq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vector(pub u32);

impl Vector {
    /// Packets to be sent.
    pub const NET_TX: Self = Self(2);
    /// Packets received.
    pub const NET_RX: Self = Self(3);

    /// As the kernel calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 10] = [
            "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
            "RCU",
        ];
        NAMES.get(self.0 as usize).copied().unwrap_or("unknown")
    }
}

/// The number of a waker in [`crate::Model::wakers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WakerId(pub u32);

/// Who woke a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// When it did that, ns.
    pub time: u64,
    /// Where.
    pub cpu: u32,
    /// The thread that was running there. It did it, unless it was interrupted.
    pub thread: Option<ThreadId>,
    /// What had interrupted it.
    pub context: Option<Context>,
}

impl Waker {
    /// The thread, if it was that.
    #[must_use]
    pub fn by(&self) -> Option<ThreadId> {
        match self.context {
            None | Some(Context::Softirq { own: true, .. }) => self.thread,
            Some(_) => None,
        }
    }
}

/// Whether threads of that name do in their own time what interrupts leave behind.
pub(crate) fn is_for_softirqs(name: &[u8]) -> bool {
    let begins: [&[u8]; 4] = [b"ksoftirqd/", b"ktimers/", b"irq/", b"ktimersoftd/"];
    begins.iter().any(|begin| name.starts_with(begin))
}
