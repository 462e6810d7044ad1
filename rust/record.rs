// SPDX-License-Identifier: GPL-2.0

//! One alert: its fields, how they lie in a ring's record, and the line a person reads.
//!
//! A record is self-contained, so that a line can be printed after its instance has gone. Text
//! is made when a reader asks, never in a probe.

use crate::{
    alert::{Words, WORDS},
    text::Quoted, //
};
use core::ffi::CStr;
use kernel::{fmt, prelude::*};

/// Why an alert was raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// The delay was longer than the threshold.
    Threshold = 0,
    /// The end had not come after the timeout.
    Timeout = 1,
    /// The end of an event that had timed out.
    Late = 2,
}

impl Reason {
    /// The word in the alert line.
    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Reason::Threshold => c"threshold",
            Reason::Timeout => c"timeout",
            Reason::Late => c"late",
        }
    }

    fn from_number(number: u64) -> Self {
        match number {
            1 => Reason::Timeout,
            2 => Reason::Late,
            _ => Reason::Threshold,
        }
    }
}

/// The task an operation belongs to, as it was when the operation began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Owner {
    /// Process (thread group) id in the initial namespace; 0 if unknown.
    pub(crate) pid: u32,
    /// Thread id in the initial namespace; 0 if unknown.
    pub(crate) tid: u32,
    /// Command name, padded with NUL.
    pub(crate) comm: [u64; 2],
}

impl Owner {
    /// The words of an owner inside an event's data.
    pub(crate) const WORDS: usize = 3;

    /// Packs it into words.
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let ids = u64::from(self.pid) << 32 | u64::from(self.tid);
        [ids, self.comm[0], self.comm[1]]
    }

    /// Back from [`Owner::to_words`].
    pub(crate) fn from_words(words: [u64; Self::WORDS]) -> Self {
        Self {
            pid: (words[0] >> 32) as u32,
            tid: words[0] as u32,
            comm: [words[1], words[2]],
        }
    }
}

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

/// The words left for what a tracker has to add.
pub(crate) const DETAIL: usize = WORDS - 12;

/// The longest name of an instance.
pub(crate) const NAME_MAX: usize = 31;

/// An instance's name in words, padded with NUL.
pub(crate) type Name = [u64; 4];

/// An alert. Times are `CLOCK_MONOTONIC`, durations nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alert {
    /// The number of the alert within its instance, from 1.
    pub(crate) seq: u64,
    pub(crate) time: u64,
    pub(crate) instance: Name,
    pub(crate) tracker: usize,
    pub(crate) reason: Reason,
    pub(crate) delay: u64,
    pub(crate) threshold: u64,
    pub(crate) cpu: u32,
    pub(crate) owner: Owner,
    pub(crate) detail: [u64; DETAIL],
}

impl Alert {
    /// Packs it for a ring.
    pub(crate) fn to_words(self) -> Words {
        let mut words = [0; WORDS];
        let kind = (self.reason as u64) << 56 | (self.tracker as u64) << 32;
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

    /// Back from [`Alert::to_words`].
    pub(crate) fn from_words(words: &Words) -> Self {
        let [seq, time, kind, delay, threshold, n0, n1, n2, n3, o0, o1, o2, rest @ ..] = words;
        Self {
            seq: *seq,
            time: *time,
            instance: [*n0, *n1, *n2, *n3],
            tracker: (kind >> 32) as usize & 0xff_ffff,
            reason: Reason::from_number(kind >> 56),
            delay: *delay,
            threshold: *threshold,
            cpu: *kind as u32,
            owner: Owner::from_words([*o0, *o1, *o2]),
            detail: *rest,
        }
    }
}
