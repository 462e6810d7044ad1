// SPDX-License-Identifier: GPL-2.0

//! The data of an event of the `block` tracker, and the fields of its alerts.

use crate::{
    alert::record::{Owner, DETAIL},
    control::Device,
    instance::Details,
    sys::block::{Operation, Request, Rwbs},
    text::Quoted, //
};
use kernel::{fmt, prelude::*};

/// The data of an event, which grow from step to step.
///
/// 12 words; times in nanoseconds, 0 for a step not reached.
#[derive(Clone, Copy, Default)]
pub(crate) struct Steps {
    pub(crate) owner: Owner,
    pub(crate) inserted: u64,
    pub(crate) issued: u64,
    /// Name of the disk, padded with NUL.
    pub(crate) disk: [u64; 4],
    pub(crate) dev: u32,
    pub(crate) flags: u32,
    pub(crate) sector: u64,
    pub(crate) bytes: u32,
    pub(crate) requeues: u32,
    /// Returned by the driver, to be issued again.
    pub(crate) waiting: bool,
}

/// The words of [`Steps`].
pub(crate) const STEPS: usize = 12;
const WAITING: u64 = 1 << 63;

impl Steps {
    /// Packs them for an event.
    pub(crate) fn to_words(self) -> [u64; STEPS] {
        let [ids, comm0, comm1] = self.owner.to_words();
        let [d0, d1, d2, d3] = self.disk;
        let counts = u64::from(self.requeues & 0x7fff_ffff) << 32 | u64::from(self.bytes);
        [
            ids,
            comm0,
            comm1,
            self.inserted,
            self.issued,
            u64::from(self.dev) << 32 | u64::from(self.flags),
            self.sector,
            counts | if self.waiting { WAITING } else { 0 },
            d0,
            d1,
            d2,
            d3,
        ]
    }

    /// The inverse of [`Steps::to_words`].
    pub(crate) fn from_words(words: [u64; STEPS]) -> Self {
        let [ids, comm0, comm1, inserted, issued, what, sector, counts, disk @ ..] = words;
        Self {
            owner: Owner::from_words([ids, comm0, comm1]),
            inserted,
            issued,
            disk,
            dev: (what >> 32) as u32,
            flags: what as u32,
            sector,
            bytes: counts as u32,
            requeues: ((counts & !WAITING) >> 32) as u32,
            waiting: counts & WAITING != 0,
        }
    }

    /// The steps of a request with none noted yet, and an unknown submitter.
    pub(crate) fn of(rq: &Request<'_>) -> Self {
        let mut steps = Self {
            disk: rq.disk_name(),
            ..Self::default()
        };
        steps.set_operation(&rq.operation());
        steps
    }

    /// Notes the operation of the request.
    pub(crate) fn set_operation(&mut self, operation: &Operation) {
        self.dev = operation.dev;
        self.flags = operation.flags;
        self.sector = operation.sector;
        self.bytes = operation.bytes;
    }

    /// The operation of the request, as fields of a line.
    pub(crate) fn operation(&self) -> impl fmt::Display + '_ {
        struct Fields<'a>(&'a Steps);
        impl fmt::Display for Fields<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (dev, rwbs) = (Device(self.0.dev), Rwbs(self.0.flags));
                f.write_fmt(fmt!(
                    "dev={dev} op=\"{rwbs}\" sector={} bytes={}",
                    self.0.sector,
                    self.0.bytes
                ))
            }
        }
        Fields(self)
    }
}

impl Steps {
    /// The details of an alert about this request, at `now`.
    pub(crate) fn details(&self, now: u64) -> Details {
        let since = |begin: u64, end: u64| match begin {
            0 => 0,
            begin => end.saturating_sub(begin),
        };
        let left_queue = if self.issued != 0 { self.issued } else { now };
        let detail = Detail {
            dev: self.dev,
            flags: self.flags,
            sector: self.sector,
            bytes: self.bytes,
            requeues: self.requeues,
            queue: since(self.inserted, left_queue),
            device: since(self.issued, now),
            disk: self.disk,
        };
        Details {
            owner: self.owner,
            words: detail.to_words(),
        }
    }
}

/// Our fields of an alert.
pub(crate) struct Detail {
    dev: u32,
    flags: u32,
    sector: u64,
    bytes: u32,
    requeues: u32,
    queue: u64,
    device: u64,
    disk: [u64; 4],
}

impl Detail {
    /// The words of an alert that it uses.
    pub(crate) const WORDS: usize = 9;

    pub(crate) fn to_words(&self) -> [u64; DETAIL] {
        let mut words = [0; DETAIL];
        let used = [
            u64::from(self.dev) << 32 | u64::from(self.flags),
            self.sector,
            u64::from(self.requeues) << 32 | u64::from(self.bytes),
            self.queue,
            self.device,
            self.disk[0],
            self.disk[1],
            self.disk[2],
            self.disk[3],
        ];
        words[..Self::WORDS].copy_from_slice(&used);
        words
    }

    /// From an alert's words.
    pub(crate) fn from_words(words: &[u64; DETAIL]) -> Self {
        Self {
            dev: (words[0] >> 32) as u32,
            flags: words[0] as u32,
            sector: words[1],
            bytes: words[2] as u32,
            requeues: (words[2] >> 32) as u32,
            queue: words[3],
            device: words[4],
            disk: [words[5], words[6], words[7], words[8]],
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!(
            "dev={} disk={} op=\"{}\" sector={} bytes={} queue={} device={} requeues={}",
            Device(self.dev),
            Quoted::words(&self.disk),
            Rwbs(self.flags),
            self.sector,
            self.bytes,
            self.queue,
            self.device,
            self.requeues
        ))
    }
}
