// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Pairs the starts of requests with their ends, from public fields alone.
//!
//! ```text
//!             insert            issue            complete (all sectors)
//!  (nothing) -------> queued ---------> at device ---------> finished
//!      |               |  ^              |  ^  `- complete (some): the rest stays
//!      |   merge: gone '  `-- requeue ---'  |
//!      `------------------ issue -----------'
//! ```
//!
//! A trace does not name the request, so it is identified by device, position and length. If several requests at the
//! device agree in all three, a completion ends the earliest issued one, if possible one with the completion's
//! operation. A completion is counted as ambiguous if several requests agree with it in the operation too.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;

use crate::babeltrace::Dev;
use clap::ValueEnum;

use crate::input::{BlockEvent, Kind};

/// Where a delay starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// When the driver gets the request.
    Issue,
    /// When the I/O scheduler gets it; at issue, if it never did.
    Insert,
}

/// A request in flight.
#[derive(Debug, Clone)]
struct Live {
    /// Sector at issue, as in an alert.
    sector: u64,
    /// Sector of the remaining part.
    at: u64,
    left: u64,
    op: String,
    inserted: Option<u64>,
    issued: Option<u64>,
    at_device: bool,
    /// Whether the driver has given it back.
    is_back: bool,
}

impl Live {
    /// A request that enters a queue.
    fn queued(event: &BlockEvent) -> Self {
        Self {
            sector: event.sector,
            at: event.sector,
            left: event.sectors,
            op: event.op.clone(),
            inserted: Some(event.time),
            issued: None,
            at_device: false,
            is_back: false,
        }
    }
}

/// Where an operation happens. The operations and the alerts of one place are compared in order of their ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A sector of a disk.
    Disk(Dev, u64),
    /// A thread.
    Task(u32),
    /// The key of a rule, in an alert's form.
    Key(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Disk(dev, sector) => write!(f, "{dev} sector {sector}"),
            Place::Task(tid) => write!(f, "tid {tid}"),
            Place::Key(key) => f.write_str(key),
        }
    }
}

/// A completed operation: a request, or a task's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) place: Place,
    pub(crate) delay: u64,
    /// End of the operation, ns.
    pub(crate) end: u64,
    /// Further fields that its alert must contain, in the form of the alert.
    pub(crate) said: String,
    /// An alternative to `said`, if two events on two CPUs came so close together that the probes of the trace and
    /// of the module may have seen them in different orders.
    pub(crate) or: Option<String>,
    /// When the module must have seen the start and the end, ns: between the events before and after it in the same
    /// thread. `None` if other threads may be involved.
    pub(crate) within: Option<(RangeInclusive<u64>, RangeInclusive<u64>)>,
}

/// The outcome of pairing.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    /// In order of their ends.
    pub(crate) finished: Vec<Request>,
    /// Number of ends whose start is not in the trace.
    pub(crate) unmatched: u64,
    /// Number of requests still in flight when the trace ended.
    pub(crate) pending: u64,
    pub(crate) requeued: u64,
    pub(crate) merged: u64,
    pub(crate) partial: u64,
    /// Number of ends that matched more than one request.
    pub(crate) ambiguous: u64,
}

impl Pairing {
    /// Pairs the events, which are in order of time.
    pub(crate) fn run(events: &[BlockEvent], from: From) -> Self {
        let mut live: HashMap<Dev, Vec<Live>> = HashMap::new();
        let mut pairing = Self::default();
        for event in events {
            let on_dev = live.entry(event.dev).or_default();
            match event.kind {
                Kind::Insert => insert(on_dev, event),
                Kind::Issue => issue(on_dev, event),
                Kind::Requeue => {
                    pairing.requeued += 1;
                    let request = find(on_dev, event, |r| r.at_device);
                    if let Some(i) = request.or_else(|| find(on_dev, event, |_| true)) {
                        on_dev[i].at_device = false;
                        on_dev[i].is_back = true;
                    } else {
                        // The driver has not started it, and the block layer keeps it in a queue now.
                        on_dev.push(Live {
                            is_back: true,
                            ..Live::queued(event)
                        });
                    }
                }
                Kind::Merge => {
                    pairing.merged += 1;
                    if let Some(i) = find(on_dev, event, |r| !r.at_device) {
                        on_dev.remove(i);
                    }
                }
                Kind::Complete => pairing.complete(on_dev, event, from),
            }
        }
        pairing.pending = live.values().map(|requests| requests.len() as u64).sum();
        pairing
    }

    fn complete(&mut self, live: &mut Vec<Live>, event: &BlockEvent, from: From) {
        let here = |r: &Live| r.at_device && r.at == event.sector;
        let whole = |r: &Live| here(r) && r.left == event.sectors;
        let same = |r: &Live| whole(r) && r.op == event.op;
        // A command without sectors at its issue may have some at its end.
        let bare = |r: &Live| here(r) && r.left == 0 && r.op == event.op;
        if live.iter().filter(|r| same(r)).count() > 1 {
            self.ambiguous += 1;
        }
        let found = oldest(live, same).or_else(|| oldest(live, whole));
        let Some(i) = found.or_else(|| oldest(live, bare)) else {
            // The event completes no whole request: it completes a part of one, or its start is missing.
            let part = |r: &Live| here(r) && r.left > event.sectors;
            match oldest(live, part).filter(|_| event.sectors > 0) {
                Some(i) => {
                    self.partial += 1;
                    live[i].at += event.sectors;
                    live[i].left -= event.sectors;
                }
                // A flush without data ends without having been issued to the driver.
                None if event.sectors == 0 => {}
                None => self.unmatched += 1,
            }
            return;
        };
        let request = live.remove(i);
        let inserted = request.inserted.filter(|_| from == From::Insert);
        let start = inserted.or(request.issued).unwrap_or(event.time);
        self.finished.push(Request {
            place: Place::Disk(event.dev, request.sector),
            delay: event.time.saturating_sub(start),
            end: event.time,
            said: String::new(),
            or: None,
            within: None,
        });
    }
}

fn insert(live: &mut Vec<Live>, event: &BlockEvent) {
    // A requeued request may be inserted again: it remains the same request.
    if find(live, event, |r| !r.at_device && r.is_back).is_none() {
        live.push(Live::queued(event));
    }
}

fn issue(live: &mut Vec<Live>, event: &BlockEvent) {
    let queued = |r: &Live| !r.at_device;
    let end = event.sector + event.sectors;
    // Bios merged into a queued request make it longer without an event that is read here.
    let grown = |r: &Live| {
        !r.at_device
            && r.op == event.op
            && r.at >= event.sector
            && r.at + r.left <= end
            && r.left > 0
    };
    let known = find(live, event, queued).or_else(|| oldest(live, grown));
    let request = match known {
        Some(i) => {
            // Duplicates are in order of issue: this request moves to the end of `live`.
            let request = live.remove(i);
            Live {
                at: event.sector,
                left: event.sectors,
                sector: event.sector,
                issued: request.issued.or(Some(event.time)),
                at_device: true,
                is_back: false,
                ..request
            }
        }
        None => Live {
            sector: event.sector,
            at: event.sector,
            left: event.sectors,
            op: event.op.clone(),
            inserted: None,
            issued: Some(event.time),
            at_device: true,
            is_back: false,
        },
    };
    live.push(request);
}

/// Finds the oldest request with exactly the range of the event.
fn find(live: &[Live], event: &BlockEvent, also: impl Fn(&Live) -> bool) -> Option<usize> {
    oldest(live, |r| {
        r.at == event.sector && r.left == event.sectors && also(r)
    })
}

fn oldest(live: &[Live], fits: impl Fn(&Live) -> bool) -> Option<usize> {
    live.iter().position(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, kind: Kind, sector: u64, sectors: u64) -> BlockEvent {
        BlockEvent {
            time,
            kind,
            dev: Dev { major: 8, minor: 0 },
            sector,
            sectors,
            op: "R".into(),
        }
    }

    fn delays(events: &[BlockEvent], from: From) -> Vec<(u64, u64)> {
        let finished = Pairing::run(events, from).finished;
        let sector = |r: &Request| match r.place {
            Place::Disk(_, sector) => sector,
            Place::Task(_) | Place::Key(_) => panic!("{}", r.place),
        };
        finished.iter().map(|r| (sector(r), r.delay)).collect()
    }

    use Kind::{Complete, Insert, Issue, Merge, Requeue};

    #[test]
    fn the_start_is_where_it_was_requested() {
        let events = [
            event(1, Insert, 0, 8),
            event(5, Issue, 0, 8),
            event(9, Issue, 8, 8),
            event(20, Complete, 0, 8),
            event(30, Complete, 8, 8),
        ];
        assert_eq!(delays(&events, From::Issue), [(0, 15), (8, 21)]);
        assert_eq!(delays(&events, From::Insert), [(0, 19), (8, 21)]);
    }

    #[test]
    fn duplicates_end_in_order_of_issue_and_are_counted() {
        let events = [
            event(1, Issue, 0, 8),
            event(2, Issue, 0, 8),
            event(10, Complete, 0, 8),
            event(30, Complete, 0, 8),
        ];
        assert_eq!(delays(&events, From::Issue), [(0, 9), (0, 28)]);
        assert_eq!(Pairing::run(&events, From::Issue).ambiguous, 1);
    }

    #[test]
    fn a_partial_completion_is_not_an_end() {
        let events = [
            event(1, Issue, 0, 16),
            event(5, Complete, 0, 8),
            event(9, Complete, 8, 8),
        ];
        let pairing = Pairing::run(&events, From::Issue);
        assert_eq!(
            (pairing.partial, pairing.unmatched, pairing.pending),
            (1, 0, 0)
        );
        assert_eq!(delays(&events, From::Issue), [(0, 8)]);
    }

    #[test]
    fn a_requeue_keeps_the_first_start() {
        let events = [
            event(1, Issue, 0, 8),
            event(2, Requeue, 0, 8),
            event(3, Insert, 0, 8),
            event(5, Issue, 0, 8),
            event(9, Complete, 0, 8),
        ];
        assert_eq!(delays(&events, From::Issue), [(0, 8)]);
    }

    #[test]
    fn a_request_that_was_given_back_before_it_was_started_waits_from_then_on() {
        let events = [
            event(2, Requeue, 0, 8),
            event(3, Insert, 0, 8),
            event(4, Requeue, 0, 8),
            event(5, Issue, 0, 8),
            event(9, Complete, 0, 8),
        ];
        assert_eq!(delays(&events, From::Insert), [(0, 7)]);
        assert_eq!(delays(&events, From::Issue), [(0, 4)]);
        assert_eq!(Pairing::run(&events, From::Insert).pending, 0);
    }

    #[test]
    fn merged_requests_are_one() {
        let events = [
            event(1, Insert, 0, 8),
            event(2, Insert, 8, 8),
            event(3, Merge, 8, 8),
            event(4, Issue, 0, 16),
            event(9, Complete, 0, 16),
        ];
        let pairing = Pairing::run(&events, From::Insert);
        assert_eq!(
            (pairing.merged, pairing.pending, pairing.unmatched),
            (1, 0, 0)
        );
        assert_eq!(delays(&events, From::Insert), [(0, 8)]);
    }

    #[test]
    fn a_flush_ends_only_an_issued_request() {
        let mut flush = [
            event(1, Issue, 0, 0),
            event(2, Issue, 0, 8),
            event(5, Complete, 0, 0),
            event(6, Complete, 0, 0),
            event(9, Complete, 0, 8),
        ];
        flush[0].op = "FF".into();
        flush[2].op = "FF".into();
        let pairing = Pairing::run(&flush, From::Issue);
        assert_eq!(
            (pairing.unmatched, pairing.pending, pairing.finished.len()),
            (0, 0, 2)
        );
        assert_eq!(delays(&flush, From::Issue), [(0, 4), (0, 7)]);
    }

    #[test]
    fn ends_without_starts_and_starts_without_ends_are_counted() {
        let events = [event(1, Complete, 0, 8), event(2, Issue, 8, 8)];
        let pairing = Pairing::run(&events, From::Issue);
        assert_eq!((pairing.unmatched, pairing.pending), (1, 1));
    }
}
