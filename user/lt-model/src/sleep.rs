// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decodes `prev_state` of `sched_switch`, whose meaning depends on the kernel version.
//!
//! Since 4.14 the tracepoint records the state that `ps` would show, as bits, and 0x100 for a preempted thread.
//! Before 4.14, it recorded the kernel's own bits, and the bit above the highest for a preempted thread. A thread that
//! yields has no bit.
//!
//! ```text
//!            1  2  4  8  0x10  0x20  0x40    0x80      0x100      0x200      0x400      0x800      0x1000
//! 4.14 on    S  D  T  t  dead  zombie parked idle      preempted
//! 4.8        S  D  T  t  dead  zombie dead   wakekill  waking     parked     no load    new        preempted
//! 4.2        S  D  T  t  dead  zombie dead   wakekill  waking     parked     no load    preempted
//! 3.9        S  D  T  t  dead  zombie dead   wakekill  waking     parked     preempted
//! 2.6.33     S  D  T  t  zombie dead  dead   wakekill  waking     preempted
//! ```
//!
//! The kernel exchanged 0x10 and 0x20 in 3.15; both mean a dead thread.
//!
//! Since 4.14, these two bits hide the bits of a sleep. So a thread that sleeps between exit_notify() and its end, in
//! one of a few functions of do_exit(), counts as dead. If the thread is woken, it seems to be another thread with this
//! number, and the time of the sleep is not known. A preemption is recorded as such, and current kernels record the
//! wait for a lock on PREEMPT_RT as D.

use crate::context::Disk;

/// The kind of a thread's sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sleep {
    /// Sleeps until a wakeup or a signal (S).
    Interruptible,
    /// Waits for the kernel or a device (D).
    Uninterruptible,
    /// Waits because there is too much dirty data for this disk, or for an unknown disk.
    Dirty(Option<Disk>),
    /// A kernel thread without work (I).
    Idle,
    /// Stopped by a signal (T).
    Stopped,
    /// Stopped for its tracer (t).
    Traced,
    /// Parked, or in an uncommon state.
    Other,
}

/// State of a thread when it is switched out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchedOut {
    /// Switched out while runnable: preempted, or yielded.
    Preempted,
    /// Blocked.
    Blocked(Sleep),
    /// The thread has ended.
    Dead,
}

/// The version of the kernel that recorded a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

impl Release {
    /// Parses a release such as `7.2.12+deb14-amd64`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        Some(Self(major, numbers.next()?.parse().ok()?))
    }

    /// Decodes `prev_state`.
    #[must_use]
    pub fn switched_out(self, prev_state: i64) -> SwitchedOut {
        let state = prev_state;
        let (goes_on, dead) = match self {
            r if r >= Self(4, 14) => (0x100, 0x30),
            r if r >= Self(4, 8) => (0x1000, 0x70),
            r if r >= Self(4, 2) => (0x800, 0x70),
            r if r >= Self(3, 9) => (0x400, 0x70),
            _ => (0x200, 0x70),
        };
        let idle = if self >= Self(4, 14) {
            state & 0x80 != 0
        } else {
            state & 0x402 == 0x402
        };
        match state {
            0 => SwitchedOut::Preempted,
            s if s & goes_on != 0 => SwitchedOut::Preempted,
            s if s & dead != 0 => SwitchedOut::Dead,
            _ if idle => SwitchedOut::Blocked(Sleep::Idle),
            s if s & 1 != 0 => SwitchedOut::Blocked(Sleep::Interruptible),
            s if s & 2 != 0 => SwitchedOut::Blocked(Sleep::Uninterruptible),
            s if s & 4 != 0 => SwitchedOut::Blocked(Sleep::Stopped),
            s if s & 8 != 0 => SwitchedOut::Blocked(Sleep::Traced),
            _ => SwitchedOut::Blocked(Sleep::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SwitchedOut::{Blocked, Dead, Preempted};

    #[test]
    fn a_state_is_decoded_for_the_kernel_of_the_trace() {
        let table = [
            ("7.2.12+deb14-amd64", 0x100, Preempted),
            ("7.2.12+deb14-amd64", 1, Blocked(Sleep::Interruptible)),
            ("6.12.1", 2, Blocked(Sleep::Uninterruptible)),
            ("6.12.1", 0x80, Blocked(Sleep::Idle)),
            ("6.12.1", 0x40, Blocked(Sleep::Other)),
            ("5.4.0", 0x20, Dead),
            // A zombie that is preempted, or waits for a lock on PREEMPT_RT.
            ("7.2.12", 0x100, Preempted),
            ("7.2.12", 2, Blocked(Sleep::Uninterruptible)),
            ("5.4.0", 4, Blocked(Sleep::Stopped)),
            ("7.2.12", 8, Blocked(Sleep::Traced)),
            ("4.4.3", 2048, Preempted),
            ("4.4.3", 64, Dead),
            ("4.4.3", 0x402, Blocked(Sleep::Idle)),
            ("4.4.3", 1, Blocked(Sleep::Interruptible)),
            ("3.10.0", 1024, Preempted),
            ("3.10.0", 512, Blocked(Sleep::Other)),
            ("2.6.38", 0, Preempted),
        ];
        for (release, state, out) in table {
            let release = Release::parse(release).unwrap();
            assert_eq!(release.switched_out(state), out, "{release:?} {state:#x}");
        }
        assert_eq!(Release::parse("5.15-rt"), Some(Release(5, 15)));
        assert_eq!(Release::parse("linux"), None);
    }
}
