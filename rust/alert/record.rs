// SPDX-License-Identifier: GPL-2.0

//! One alert: its fields, their layout in a ring's record, and its printed line.
//!
//! A record is self-contained, so that a line can be printed after its instance was removed. Text
//! is generated when a reader asks for it, never in a probe.

use crate::{
    alert::ring::{Words, WORDS},
    text::Quoted, //
};
use core::ffi::CStr;
use kernel::{fmt, prelude::*};

#[path = "record/actor.rs"]
pub(crate) mod actor;
#[path = "record/user.rs"]
pub(crate) mod user;

/// Why an alert was raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The delay was longer than the threshold.
    Threshold = 0,
    /// The operation did not end within the timeout.
    Timeout = 1,
    /// The operation ended after its timeout.
    Late = 2,
    /// The operation continues, and its task was switched in, with this stack.
    Stack = 3,
}

impl Reason {
    /// Returns the word in the alert line.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Reason::Threshold => c"threshold",
            Reason::Timeout => c"timeout",
            Reason::Late => c"late",
            Reason::Stack => c"stack",
        }
    }

    /// Whether the alert may show fields of the end: all reasons but a timeout.
    pub(crate) fn is_end(self) -> bool {
        self != Reason::Timeout
    }

    fn from_number(number: u64) -> Self {
        match number {
            1 => Reason::Timeout,
            2 => Reason::Late,
            3 => Reason::Stack,
            _ => Reason::Threshold,
        }
    }
}

/// The task that an operation belongs to, in its state at the start of the operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Owner {
    /// Process (thread group) id in the initial namespace; 0 if unknown.
    pub(crate) pid: u32,
    /// Thread id in the initial namespace; 0 if unknown.
    pub(crate) tid: u32,
    /// See [`Owner::start_mark_of`].
    pub(crate) start_mark: u32,
    /// Command name, padded with NUL.
    pub(crate) comm: [u64; 2],
}

impl Owner {
    /// Number of words of an owner inside an event's data.
    pub(crate) const WORDS: usize = 3;

    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let ids = u64::from(self.start_mark) << (2 * ID_BITS)
            | u64::from(self.pid & ID_MASK) << ID_BITS
            | u64::from(self.tid & ID_MASK);
        [ids, self.comm[0], self.comm[1]]
    }

    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        Self {
            pid: (words[0] >> ID_BITS) as u32 & ID_MASK,
            tid: words[0] as u32 & ID_MASK,
            start_mark: (words[0] >> (2 * ID_BITS)) as u32,
            comm: [words[1], words[2]],
        }
    }

    /// Returns the [`Owner::start_mark`] of a task with start time `time` (nanoseconds), in
    /// approximate microseconds. The mark has the 20 bits that the ids leave free, and wraps after
    /// about a second.
    pub(crate) fn start_mark_of(time: u64) -> u32 {
        (time >> 10) as u32 & START_MARK_MASK
    }

    /// Whether the task with our `tid` and start time `time` is the owner of an operation that
    /// began at `began`.
    ///
    /// An id belongs to one task at a time, so a task that has it and started before the operation
    /// is the owner. `began` may be later than the true start, if it was moved to a later step. If
    /// the id passed to another task between the true start and `began`, `start_mark` shows that,
    /// except in about 1 case in a million. `start_mark` never shows one case: the owner is the
    /// leader of its process, and is exiting, because another thread has called execve(); that
    /// thread takes over the leader's id and start time (`de_thread` in fs/exec.c).
    pub(crate) fn is_task_started_at(&self, time: u64, began: u64) -> bool {
        self.tid != 0 && time <= began && Self::start_mark_of(time) == self.start_mark
    }
}

/// Number of bits of a process or thread id; the kernel has at most 2^22 (`PID_MAX_LIMIT`).
pub(crate) const ID_BITS: u32 = 22;
const ID_MASK: u32 = (1 << ID_BITS) - 1;
const START_MARK_MASK: u32 = (1 << (64 - 2 * ID_BITS)) - 1;

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!(
            "pid={} tid={} comm={}",
            self.pid,
            self.tid,
            Quoted::words(&self.comm)
        ))
    }
}

/// Number of words left for the tracker's own fields.
pub(crate) const DETAIL: usize = WORDS - 12;

/// Maximum number of a tracker's own words in a tail; the words of the stack follow.
pub(crate) const OWN_TAIL: usize = 28;

/// The bit in the third word of an alert that marks an operation that was in flight when its
/// instance started.
const BEFORE: u64 = 1 << 63;

/// The last field of a line about an operation that was in flight when its instance started.
pub(crate) const BEFORE_START: &str = " since=before-start";

/// Maximum length of an instance's name.
pub(crate) const NAME_MAX: usize = 31;

/// An instance's name in words, padded with NUL.
pub(crate) type Name = [u64; 4];

/// An alert. Times and durations are in nanoseconds, and times are of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alert {
    /// The number of the alert within its instance, from 1.
    pub(crate) seq: u64,
    pub(crate) time: u64,
    pub(crate) instance: Name,
    pub(crate) tracker: usize,
    pub(crate) reason: Reason,
    pub(crate) delay: u64,
    /// Whether the operation was in flight when its instance started: it took at least `delay`.
    pub(crate) before_start: bool,
    pub(crate) threshold: u64,
    pub(crate) cpu: u32,
    pub(crate) owner: Owner,
    pub(crate) detail: [u64; DETAIL],
    /// Number of words of the record's tail. The tail has the entries of the owner's kernel stack,
    /// and either the tracker's own words before them, or the entries of the owner's stack in user
    /// space after them.
    pub(crate) tail: u8,
    /// The number of addresses of the owner's stack in user space, and where they end.
    pub(crate) user: user::Mark,
    /// Whether the reader may see addresses of user space: not part of the record.
    pub(crate) is_trusted: bool,
}

impl Alert {
    pub(crate) fn to_words(self) -> Words {
        let mut words = [0; WORDS];
        let before = if self.before_start { BEFORE } else { 0 };
        let kind = before
            | (self.reason as u64) << 56
            | u64::from(self.user.0) << 48
            | (self.tracker as u64 & 0xff) << 40
            | u64::from(self.tail) << 32;
        let (head, detail) = words.split_at_mut(WORDS - DETAIL);
        let [n0, n1, n2, n3] = self.instance;
        let [o0, o1, o2] = self.owner.to_words();
        head.copy_from_slice(&[
            self.seq,
            self.time,
            kind | u64::from(self.cpu),
            self.delay,
            self.threshold,
            n0,
            n1,
            n2,
            n3,
            o0,
            o1,
            o2,
        ]);
        detail.copy_from_slice(&self.detail);
        words
    }

    pub(crate) fn from_words(words: &Words) -> Self {
        let [seq, time, kind, delay, threshold, n0, n1, n2, n3, o0, o1, o2, rest @ ..] = words;
        Self {
            seq: *seq,
            time: *time,
            instance: [*n0, *n1, *n2, *n3],
            tracker: (kind >> 40) as usize & 0xff,
            reason: Reason::from_number((kind & !BEFORE) >> 56),
            delay: *delay,
            before_start: kind & BEFORE != 0,
            threshold: *threshold,
            cpu: *kind as u32,
            owner: Owner::from_words([*o0, *o1, *o2]),
            detail: *rest,
            tail: (kind >> 32) as u8,
            user: user::Mark((kind >> 48) as u8),
            is_trusted: false,
        }
    }
}
