// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The recorded life of every request of one device.

use super::event::Event;

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) comm: String,
    pub(crate) tid: u64,
}

/// One step of a request: its time, task and CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) task: Task,
}

/// One request; steps before the trace begins are missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
    pub(crate) op: String,
    pub(crate) inserted: Option<Step>,
    /// When the driver first returned the request before its issue. From then on, the request waits in a queue. Either
    /// the driver had not started it; or, if it was not inserted, it may have been issued before the trace begins.
    pub(crate) returned: Option<Step>,
    /// The issue; the first one if the request was requeued.
    pub(crate) issued: Option<Step>,
    pub(crate) completed: Option<Step>,
    pub(crate) requeues: u64,
    /// Whether the request is at the device: issued, and since then neither requeued nor completed.
    at_device: bool,
    /// The first sector that has not been completed, and the number of sectors from there.
    at: u64,
    left: u64,
}

impl Request {
    /// Time at the device, ns.
    pub(crate) fn at_device_for(&self) -> Option<u64> {
        let (issued, completed) = (self.issued.as_ref()?, self.completed.as_ref()?);
        completed.time.checked_sub(issued.time)
    }

    /// The step after which the request waited for its first issue.
    pub(crate) fn queued(&self) -> Option<&Step> {
        self.inserted.as_ref().or(self.returned.as_ref())
    }
}

/// All requests of the device, in the order in which they first appear.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) all: Vec<Request>,
    /// Indices of requests that have not ended: few, however long the trace.
    live: Vec<usize>,
}

impl Requests {
    /// Processes an event of the device.
    pub(crate) fn feed(&mut self, event: &Event) {
        let sector = event
            .unsigned("sector")
            .filter(|s| *s != u64::MAX)
            .unwrap_or(0);
        let sectors = event.unsigned("nr_sector").unwrap_or(0);
        let step = Step {
            time: event.time,
            cpu: event.cpu,
            task: Task {
                comm: event.text("comm").unwrap_or("").to_string(),
                tid: event.unsigned("tid").unwrap_or(0),
            },
        };
        let new = || Request {
            sector,
            sectors,
            at: sector,
            left: sectors,
            op: operation(event.unsigned("rwbs").unwrap_or(0)),
            ..Request::default()
        };
        match event.name.as_str() {
            "block_rq_insert"
                if self
                    .find(|r| !r.at_device && r.at == sector && r.left == sectors)
                    .is_none() =>
            {
                self.add(Request {
                    inserted: Some(step),
                    ..new()
                });
            }
            "block_rq_issue" => {
                let request = self.in_queue(new());
                request.issued.get_or_insert(step);
                request.at_device = true;
            }
            "block_rq_requeue" => {
                let same = |r: &Request| r.at_device && r.at == sector && r.left == sectors;
                if let Some(i) = self.find(same) {
                    self.all[i].requeues += 1;
                    self.all[i].at_device = false;
                } else {
                    let request = self.in_queue(new());
                    if request.issued.is_none() {
                        request.returned.get_or_insert(step);
                    }
                }
            }
            "block_rq_merge" => {
                if let Some(i) = self.find(|r| !r.at_device && r.at == sector && r.left == sectors)
                {
                    self.live.retain(|l| *l != i);
                }
            }
            "block_rq_complete" => self.complete(sector, sectors, step, new),
            _ => {}
        }
    }

    fn complete(&mut self, sector: u64, sectors: u64, step: Step, new: impl Fn() -> Request) {
        let whole =
            |r: &Request| r.at_device && r.at == sector && (r.left == sectors || r.left == 0);
        let part = |r: &Request| r.at_device && r.at == sector && r.left > sectors;
        if let Some(i) = self.find(whole) {
            self.all[i].completed = Some(step);
            self.live.retain(|l| *l != i);
        } else if let Some(i) = self.find(part).filter(|_| sectors > 0) {
            self.all[i].at = self.all[i].at.saturating_add(sectors);
            self.all[i].left -= sectors;
        } else if sectors > 0 {
            // In flight at the start of the trace.
            let i = self.add(Request {
                completed: Some(step),
                ..new()
            });
            self.live.retain(|l| *l != i);
        }
    }

    fn add(&mut self, request: Request) -> usize {
        self.all.push(request);
        self.live.push(self.all.len() - 1);
        self.all.len() - 1
    }

    fn find(&self, fits: impl Fn(&Request) -> bool) -> Option<usize> {
        self.live.iter().copied().find(|i| fits(&self.all[*i]))
    }

    /// Returns the request in a queue that has this sector and length, or adds `new`. Bios merged into the request may
    /// have made it longer without an event.
    fn in_queue(&mut self, new: Request) -> &mut Request {
        let (sector, sectors) = (new.sector, new.sectors);
        let end = sector.saturating_add(sectors);
        let same = |r: &Request| !r.at_device && r.at == sector && r.left == sectors;
        let grown = |r: &Request| {
            !r.at_device && r.left > 0 && r.at >= sector && r.at.saturating_add(r.left) <= end
        };
        let known = self.find(same).or_else(|| self.find(grown));
        let i = known.unwrap_or_else(|| self.add(new));
        let request = &mut self.all[i];
        (request.sector, request.sectors) = (sector, sectors);
        (request.at, request.left) = (sector, sectors);
        request
    }

    /// Number of requests at the device, over time.
    pub(crate) fn depths(&self) -> Depths {
        let mut depths = Depths::default();
        for request in &self.all {
            let begun = match (&request.issued, request.queued()) {
                (Some(issued), _) => issued.time,
                // A request with only its end in the trace was issued earlier. Any other request without an issue has
                // not reached the device.
                (None, None) if request.completed.is_some() => 0,
                (None, _) => continue,
            };
            let ended = request.completed.as_ref().map_or(u64::MAX, |c| c.time);
            if begun < ended {
                depths.begun.push(begun);
                depths.ended.push(ended);
            }
        }
        depths.begun.sort_unstable();
        depths.ended.sort_unstable();
        depths
    }
}

/// Arrivals at the device and departures from it, each in time order.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    begun: Vec<u64>,
    ended: Vec<u64>,
}

impl Depths {
    /// Number of requests at the device at `time`, including changes at that instant.
    pub(crate) fn at(&self, time: u64) -> usize {
        let until = |times: &[u64]| times.partition_point(|t| *t <= time);
        until(&self.begun) - until(&self.ended)
    }
}

/// Formats LTTng's rwbs bits as the letters of the block layer.
fn operation(bits: u64) -> String {
    let before = if bits & (1 << 10) != 0 { "F" } else { "" };
    let kind = match bits {
        // A secure erase has the bit of a discard, too.
        b if b & (1 << 7) != 0 => "DE",
        b if b & (1 << 1) != 0 => "D",
        b if b & 1 != 0 => "W",
        b if b & (1 << 2) != 0 => "R",
        b if b & (1 << 8) != 0 => "F",
        _ => "N",
    };
    let flags = [(9, 'F'), (3, 'A'), (5, 'S'), (6, 'M')];
    let mut text = format!("{before}{kind}");
    text.extend(
        flags
            .iter()
            .filter(|(bit, _)| bits & (1 << bit) != 0)
            .map(|(_, c)| c),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, name: &str, sector: u64, sectors: u64) -> Event {
        let text = format!(
            "[{time}] h {name}: {{ cpu_id = 0 }}, {{ dev = 8388608, sector = {sector}, nr_sector = {sectors}, tid = 7, rwbs = 33, comm = \"a\" }}"
        );
        crate::explain::block::event::of_line(&text)
    }

    fn requests(events: &[(u64, &str, u64, u64)]) -> Requests {
        let mut requests = Requests::default();
        for (time, name, sector, sectors) in events {
            requests.feed(&event(*time, name, *sector, *sectors));
        }
        requests
    }

    #[test]
    fn depth_counts_what_the_device_holds() {
        let r = requests(&[
            (1, "block_rq_issue", 0, 8),
            (2, "block_rq_insert", 8, 8),
            (3, "block_rq_issue", 8, 8),
            (4, "block_rq_complete", 0, 8),
            (5, "block_rq_complete", 800, 8),
        ]);
        // Sector 800 is in flight from before the trace until 5.
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|t| r.depths().at(t)),
            [1, 2, 2, 3, 2, 1]
        );
        assert_eq!(r.all[1].issued.as_ref().unwrap().time, 3);
        assert_eq!(r.all[0].op, "WS");
    }

    #[test]
    fn requeues_partial_ends_and_merges_are_followed() {
        let r = requests(&[
            (1, "block_rq_insert", 0, 8),
            (2, "block_rq_insert", 8, 8),
            (3, "block_rq_merge", 8, 8),
            (4, "block_rq_issue", 0, 16),
            (5, "block_rq_requeue", 0, 16),
            (6, "block_rq_issue", 0, 16),
            (7, "block_rq_complete", 0, 8),
            (9, "block_rq_complete", 8, 8),
        ]);
        assert_eq!(r.all[0].requeues, 1);
        assert_eq!(r.all[0].at_device_for(), Some(5));
        assert_eq!(r.depths().at(8), 1);
        assert_eq!(r.depths().at(9), 0);
    }

    #[test]
    fn a_request_that_was_returned_before_it_was_started_waits_from_then_on() {
        let r = requests(&[
            (1, "block_rq_requeue", 0, 8),
            (2, "block_rq_insert", 0, 8),
            (3, "block_rq_requeue", 0, 8),
            (4, "block_rq_issue", 0, 8),
            (6, "block_rq_complete", 0, 8),
        ]);
        assert_eq!(r.all.len(), 1);
        assert_eq!(r.all[0].queued().unwrap().time, 1);
        assert_eq!(r.all[0].at_device_for(), Some(2));
        assert_eq!([3, 4, 6].map(|t| r.depths().at(t)), [0, 1, 0]);
    }

    #[test]
    fn a_request_that_was_inserted_may_have_grown_when_the_driver_returns_it() {
        let r = requests(&[
            (1, "block_rq_insert", 8, 8),
            (3, "block_rq_requeue", 0, 16),
            (5, "block_rq_requeue", 0, 16),
            (7, "block_rq_issue", 0, 16),
            (9, "block_rq_requeue", 0, 16),
            (10, "block_rq_issue", 0, 16),
            (12, "block_rq_complete", 0, 16),
        ]);
        assert_eq!(r.all.len(), 1);
        assert_eq!(r.all[0].queued().unwrap().time, 1);
        assert_eq!(r.all[0].returned.as_ref().unwrap().time, 3);
        assert_eq!((r.all[0].requeues, r.all[0].at_device_for()), (1, Some(5)));
    }

    #[test]
    fn the_last_possible_sectors_do_not_overflow() {
        let last = u64::MAX - 2;
        let r = requests(&[
            (1, "block_rq_insert", last, 8),
            (2, "block_rq_issue", last - 8, 8),
            (3, "block_rq_issue", last, 8),
            (4, "block_rq_complete", last, 4),
        ]);
        assert_eq!(r.depths().at(4), 2);
    }

    #[test]
    fn operations_are_spelled_as_in_the_kernel() {
        assert_eq!(operation(36), "RS");
        assert_eq!(operation(33), "WS");
        assert_eq!(operation(4), "R");
        assert_eq!(operation(1280), "FF");
        assert_eq!(operation(1 << 1 | 1 << 7), "DE");
        assert_eq!(operation(1 | 1 << 5 | 1 << 9 | 1 << 10), "FWFS");
    }
}
