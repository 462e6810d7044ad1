// SPDX-License-Identifier: GPL-2.0

//! The alerts of one instance, or of all: a ring, its readers, and the two files that they read.
//!
//! A newly opened `wakeup` starts after the last alert that any reader of `wakeup` got. A read
//! sleeps until there is a new alert; it and the reads that follow return all alerts up to that
//! moment, and then end-of-file. `alerts` has no end: each open file has its own position, and a
//! seek to its start goes back to the oldest alert in the ring.

use crate::{
    alert::{
        notify::{self, Notifier},
        readers,
        record::{user::USER_DEPTH, Alert, OWN_TAIL},
        ring::{Read, Ring, Words},
    },
    sys::{
        procfs::{Lines, Poller, Seek, Step, Stream},
        stack::DEPTH_MAX,
    }, //
};

use kernel::{
    fmt::{self, Write},
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
    time::{delay::fsleep, Delta}, //
};

/// Maximum length of an alert's tail, in words: the kernel stack, and either the tracker's own
/// words or the stack in user space.
pub(crate) const TAIL_MAX: usize = OWN_TAIL + DEPTH_MAX;
const _: () = assert!(USER_DEPTH <= OWN_TAIL);

/// Prints the line of an alert, without a newline, given its tail: the tracker's own words, the
/// stack as return addresses, innermost first, and the stack in user space.
pub(crate) type Line = fn(&Alert, &[u64], &mut dyn Write) -> fmt::Result;

/// A ring of alerts and its waiting readers.
pub(crate) struct Alerts {
    ring: Ring,
    line: Line,
    notifier: Notifier,
    /// The number of the last alert whose text a reader of `wakeup` got.
    given: Atomic<u64>,
    /// Number of open files that have not returned end-of-file yet.
    listeners: Atomic<u64>,
    /// Number of alerts for which the ring had no free slot.
    lost: Atomic<u64>,
    /// Number of missed alerts that were reported to readers, summed over all readers.
    overruns: Atomic<u64>,
}

/// Maximum time that the removal of a ring waits for its readers to return, in milliseconds.
const DRAIN_TIMEOUT_MS: i64 = 200;

impl Alerts {
    /// Creates a ring that keeps the last `len` alerts, a power of two, with tails of `depth`
    /// words, and wakes its readers at most once per `interval` nanoseconds. May sleep; fails with
    /// `ENOMEM` or `EINVAL`.
    pub(crate) fn new(len: u32, depth: usize, interval: u64, line: Line) -> Result<Self> {
        Ok(Self {
            ring: Ring::new(len, depth)?,
            line,
            notifier: notify::new(interval)?,
            given: Atomic::new(0),
            listeners: Atomic::new(0),
            lost: Atomic::new(0),
            overruns: Atomic::new(0),
        })
    }

    /// Records an alert, see [`Ring::push`], and counts it if it is lost. Any context.
    ///
    /// The caller announces it with [`Alerts::announce`].
    pub(crate) fn record(
        &self,
        fill: impl FnOnce(u64) -> Words,
        tail: &[u64],
    ) -> core::result::Result<u64, u64> {
        let recorded = self.ring.push(fill, tail);
        if recorded.is_err() {
            // Relaxed: the number is only displayed.
            self.lost.add(1, Relaxed);
        }
        recorded
    }

    /// Returns the number of missed alerts that were reported to readers, summed over all readers:
    /// alerts that were overwritten before they were read, or had no slot.
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns.load(Relaxed)
    }

    /// Prints the counters of the ring that all instances share.
    pub(crate) fn show_stats(&self, out: &SeqFile) {
        let notifier = &self.notifier;
        for (name, value) in [
            ("alerts", self.ring.head()),
            ("alerts_lost", self.lost.load(Relaxed)),
            ("overruns", self.overruns()),
            ("wakes", notifier.wakes()),
            ("wakes_suppressed", notifier.suppressed()),
        ] {
            seq_print!(out, "{name} {value}\n");
        }
    }

    /// Returns the function that prints the line of an alert.
    pub(crate) fn line(&self) -> Line {
        self.line
    }

    /// Schedules a wakeup of the readers. Any context.
    pub(crate) fn announce(&self) {
        notify::raise(&self.notifier);
    }

    /// Makes all readers return, for good. May sleep.
    ///
    /// Once the files are removed, procfs answers any further read with `EIO`. So this waits
    /// briefly for tasks that are reading, which get the remaining alerts and then end-of-file.
    fn release(&self) {
        if !notify::release(&self.notifier) {
            return;
        }
        for _ in 0..DRAIN_TIMEOUT_MS / 5 {
            if self.listeners.load(Relaxed) == 0 {
                break;
            }
            fsleep(Delta::from_millis(5));
        }
    }

    pub(crate) fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// Whether alert `number` can be read or is known to be lost.
    fn is_settled(&self, number: u64) -> bool {
        !matches!(self.ring.read(number, &mut []), Read::NotYet)
    }

    /// Looks up alert `number` and advances to the next; counts lost alerts in between.
    fn take(&self, number: &mut u64, lost: &mut u64) -> Option<ReadAlert> {
        loop {
            let mut tail = [0; TAIL_MAX];
            match self.ring.read(*number, &mut tail) {
                Read::NotYet => return None,
                Read::Ready(words) => {
                    *number += 1;
                    let alert = Alert::from_words(&words);
                    return Some(ReadAlert { alert, tail });
                }
                Read::Lost => {
                    let next = self.ring.tail().max(*number + 1);
                    *lost += next - *number;
                    *number = next;
                }
            }
        }
    }
}

/// An alert read from the ring.
struct ReadAlert {
    alert: Alert,
    /// The tail, of which the first `alert.tail` words are used.
    tail: [u64; TAIL_MAX],
}

impl ReadAlert {
    fn tail(&self) -> &[u64] {
        let len = usize::from(self.alert.tail);
        self.tail.get(..len).unwrap_or_default()
    }
}

/// Maximum number of alerts in one read; a line about a loss may precede each.
const BATCH: usize = 16;

/// Number of bytes of text after which a read stops.
const SOFT_LIMIT: usize = 8192;

/// Appends lines from alert `number` on, up to alert `until`; returns whether there were any.
fn print(
    alerts: &Alerts,
    number: &mut u64,
    until: u64,
    is_trusted: bool,
    out: &mut KVec<u8>,
) -> Result<bool> {
    let start = out.len();
    for _ in 0..BATCH {
        let told = out.len();
        if *number > until || told - start >= SOFT_LIMIT {
            break;
        }
        let (mut next, mut lost) = (*number, 0);
        let mut taken = alerts.take(&mut next, &mut lost);
        if let Some(taken) = &mut taken {
            taken.alert.is_trusted = is_trusted;
        }
        if print_one(alerts.line, &mut Lines(out), taken.as_ref(), lost).is_err() {
            // `number` is not advanced: a loss that cannot be reported now is reported to the next
            // read.
            out.truncate(told);
            return if told > start { Ok(true) } else { Err(ENOMEM) };
        }
        *number = next;
        if lost > 0 {
            // Relaxed: the number is only displayed.
            alerts.overruns.add(lost, Relaxed);
        }
        if taken.is_none() {
            break;
        }
    }
    Ok(out.len() > start)
}

fn print_one(
    line: Line,
    lines: &mut Lines<'_>,
    taken: Option<&ReadAlert>,
    lost: u64,
) -> fmt::Result {
    if lost > 0 {
        lines.write_fmt(fmt!("lost={lost}\n"))?;
    }
    let Some(taken) = taken else { return Ok(()) };
    line(&taken.alert, taken.tail(), lines)?;
    lines.write_str("\n")
}

pub(crate) struct AlertsFile(pub(crate) Arc<Alerts>);

impl Stream for AlertsFile {
    /// The number of the next alert.
    type Reader = u64;

    fn open(&self) -> u64 {
        self.0.listeners.add(1, Relaxed);
        self.0.ring.head() + 1
    }

    fn left(&self) {
        self.0.listeners.fetch_sub(1, Relaxed);
    }

    fn next(&self, reader: &mut u64, is_trusted: bool, out: &mut KVec<u8>) -> Result<Step> {
        readers::note_current();
        if print(&self.0, reader, u64::MAX, is_trusted, out)? {
            Ok(Step::Data)
        } else if self.0.notifier.is_gone() {
            Ok(Step::End)
        } else {
            Ok(Step::Wait)
        }
    }

    fn seek(&self, reader: &mut u64, to: Seek) -> Result {
        let ring = &self.0.ring;
        *reader = match to {
            // An alert that was overwritten before this seek is not a loss for this reader.
            Seek::Oldest => ring.tail(),
            Seek::End => ring.head() + 1,
        };
        Ok(())
    }

    fn wait(&self, reader: u64) -> Result {
        let alerts = &*self.0;
        let ready = || alerts.is_settled(reader) || alerts.notifier.is_gone();
        alerts.notifier.wait(ready)
    }

    fn release(&self) {
        self.0.release();
    }

    fn poll(&self, reader: u64, poller: &Poller) -> (bool, bool) {
        readers::note_current();
        poller.register(&self.0.notifier);
        (self.0.is_settled(reader), self.0.notifier.is_gone())
    }
}

pub(crate) struct WakeupFile(pub(crate) Arc<Alerts>);

/// The position of an open `wakeup` file.
#[derive(Clone, Copy)]
pub(crate) struct Sleeper {
    next: u64,
    /// The last alert to read; set once there is an alert to read.
    until: Option<u64>,
}

impl Stream for WakeupFile {
    type Reader = Sleeper;

    fn open(&self) -> Sleeper {
        self.0.listeners.add(1, Relaxed);
        Sleeper {
            next: self.0.given.load(Relaxed) + 1,
            until: None,
        }
    }

    fn left(&self) {
        self.0.listeners.fetch_sub(1, Relaxed);
    }

    fn next(&self, reader: &mut Sleeper, is_trusted: bool, out: &mut KVec<u8>) -> Result<Step> {
        readers::note_current();
        if reader.until.is_none() {
            if !self.0.is_settled(reader.next) {
                return Ok(if self.0.notifier.is_gone() {
                    Step::End
                } else {
                    Step::Wait
                });
            }
        }
        // Later alerts are left to the next open file.
        let until = *reader.until.get_or_insert_with(|| self.0.ring.head());
        let any = print(&self.0, &mut reader.next, until, is_trusted, out)?;
        // An alert that is being written at this moment is left to the next open file.
        Ok(if any { Step::Data } else { Step::End })
    }

    fn given(&self, reader: &Sleeper) {
        give(&self.0.given, reader.next - 1);
    }

    fn wait(&self, reader: Sleeper) -> Result {
        let alerts = &*self.0;
        let ready = || alerts.is_settled(reader.next) || alerts.notifier.is_gone();
        alerts.notifier.wait(ready)
    }

    fn release(&self) {
        self.0.release();
    }

    fn poll(&self, reader: Sleeper, poller: &Poller) -> (bool, bool) {
        readers::note_current();
        poller.register(&self.0.notifier);
        let ready = reader.until.is_some() || self.0.is_settled(reader.next);
        (ready, self.0.notifier.is_gone())
    }
}

/// Moves `given` up to `number`, never back.
fn give(given: &Atomic<u64>, number: u64) {
    // Relaxed: a number that orders nothing.
    let mut old = given.load(Relaxed);
    while old < number {
        match given.cmpxchg(old, number, Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}
