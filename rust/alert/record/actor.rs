// SPDX-License-Identifier: GPL-2.0

//! The tasks that an alert names besides its owner, such as the waker, or a task that ran instead.

use super::{ID_BITS, ID_MASK};

/// A task, as it was when recorded. The ids leave the highest 20 bits of the first word free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Actor {
    /// Process (thread group) id in the initial namespace.
    pub(crate) pid: u32,
    /// Thread id in the initial namespace; 0 for an idle task or no task.
    pub(crate) tid: u32,
    /// Command name, padded with NUL.
    pub(crate) comm: [u64; 2],
}

impl Actor {
    pub(crate) const WORDS: usize = 3;

    #[inline(always)]
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let ids = u64::from(self.pid & ID_MASK) << ID_BITS | u64::from(self.tid & ID_MASK);
        [ids, self.comm[0], self.comm[1]]
    }

    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        Self {
            pid: (words[0] >> ID_BITS) as u32 & ID_MASK,
            tid: words[0] as u32 & ID_MASK,
            comm: [words[1], words[2]],
        }
    }
}

/// The CPU, priority and policy of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    pub(crate) cpu: u32,
    /// The kernel's priority: below 0 deadline, 0-98 real-time, 100-139 by nice value.
    pub(crate) prio: i16,
    /// `SCHED_...`
    pub(crate) policy: u16,
}

impl Place {
    #[inline(always)]
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.policy) << 48 | u64::from(self.prio as u16) << 32 | u64::from(self.cpu)
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Self {
            cpu: word as u32,
            prio: (word >> 32) as i16,
            policy: (word >> 48) as u16,
        }
    }
}
