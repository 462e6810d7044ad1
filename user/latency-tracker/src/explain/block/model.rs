// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reconstructs the life of a late request from the events of a trace.

use std::collections::{BTreeMap, HashMap};

use lt_model::Unrecorded;
use lt_proc::{Alert, Reason};

use super::event::{Dev, Event};
use super::requests::{Request, Requests, Step, Task};

/// Maximum distance between the times of one step in the trace and in the alert, ns: two probes record the step, and
/// either may be delayed.
pub(super) const NEAR: u64 = 5_000_000;

/// Collects the events that concern one alert.
#[derive(Debug)]
pub(crate) struct Explainer {
    alert: Alert,
    dev: Dev,
    sector: u64,
    requests: Requests,
    /// The task switches by CPU, within the window: from [`NEAR`] before the delay to [`Self::reach`] after the alert.
    /// The first entry of a CPU may be older.
    running: HashMap<u32, Vec<(u64, Task)>>,
    /// Time of the first event of each CPU.
    first: HashMap<u32, u64>,
}

/// A request that was issued later and ended earlier.
#[derive(Debug, Clone)]
pub(crate) struct Overtaker {
    pub(crate) request: Request,
    /// Time after the issue of the late request, ns.
    pub(crate) issued_after: u64,
    pub(crate) took: u64,
}

/// Activity of the device while it had the late request.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeviceQueue {
    /// Other requests at the device when the late request was issued.
    pub(crate) at_issue: usize,
    /// Maximum number of requests at the device, including the late request.
    pub(crate) at_most: usize,
    /// Number of requests left when the late request ended.
    pub(crate) at_end: usize,
    pub(crate) issued: usize,
    pub(crate) completed: usize,
    pub(crate) overtakers: Vec<Overtaker>,
    /// Device times of other requests that ended while the late request was there, ns.
    pub(crate) others: Option<Took>,
    /// Device times of requests that ended before the late request was issued, or were issued after it had ended.
    pub(crate) otherwise: Option<Took>,
}

/// Statistics of device times, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) count: usize,
    pub(crate) median: u64,
    pub(crate) most: u64,
}

impl Took {
    /// Returns `None` if there are no requests.
    fn of<'r>(requests: impl Iterator<Item = &'r Request>) -> Option<Self> {
        let mut took: Vec<u64> = requests.filter_map(Request::at_device_for).collect();
        took.sort_unstable();
        Some(Self {
            count: took.len(),
            median: *took.get(took.len() / 2)?,
            most: *took.last()?,
        })
    }
}

/// The facts about one alert that the trace shows.
#[derive(Debug, Clone)]
pub(crate) struct Explanation {
    pub(crate) alert: Alert,
    /// The request, if the trace has its end, or has its start and the alert found it pending.
    pub(crate) request: Option<Request>,
    /// The queue, if the issue of the request is also in the trace.
    pub(crate) queue: Option<DeviceQueue>,
    /// Why the other activity of the device is unknown, if it is.
    pub(crate) gap: Option<Unrecorded>,
    /// The CPU that issued the request, and the time that each task ran there from the issue to the end, longest first.
    pub(crate) ran: Option<(u32, Vec<(Task, u64)>)>,
    /// How far the trace reaches back before the alert, on the CPU with the shortest history, ns.
    pub(crate) covered: u64,
    /// Number of events that the tracer dropped.
    pub(crate) discarded: u64,
    /// Why part of the trace cannot be read.
    pub(crate) unreadable: Option<String>,
    /// The time of day of the alert, if it is known.
    pub(crate) clock: Option<String>,
}

impl Explainer {
    /// `None` for an alert that is not about a block request.
    pub(crate) fn new(alert: &Alert) -> Option<Self> {
        let dev = Dev::parse(&alert.fields.text("dev")?)?;
        Some(Self {
            dev,
            sector: alert.fields.number("sector")?,
            alert: alert.clone(),
            requests: Requests::default(),
            running: HashMap::new(),
            first: HashMap::new(),
        })
    }

    /// Processes the next event.
    pub(crate) fn feed(&mut self, event: &Event) {
        self.first.entry(event.cpu).or_insert(event.time);
        if event.name.starts_with("block_rq_") {
            if event.dev() == Some(self.dev) {
                self.requests.feed(event);
            }
        } else if event.name == "sched_switch"
            && event.time <= self.alert.time.saturating_add(self.reach())
        {
            let task = Task {
                comm: event.text("next_comm").unwrap_or("").to_string(),
                tid: event.unsigned("next_tid").unwrap_or(0),
            };
            let on_cpu = self.running.entry(event.cpu).or_default();
            // Before the window, only the last switch matters: its task runs when the window begins.
            if event.time.saturating_add(NEAR) < self.alert.start() {
                on_cpu.clear();
            }
            on_cpu.push((event.time, task));
        }
    }

    /// For a request that begins with the delay, the maximum distance between the request's end in the trace and the
    /// alert, ns. A virtual CPU may lose its processor between the two probes. A request that ended in the first half
    /// of the delay, or long before a timeout, is not the late request.
    fn reach(&self) -> u64 {
        match self.alert.reason {
            Reason::Timeout => NEAR,
            _ => NEAR.max(self.alert.delay / 2),
        }
    }

    /// Ends the request, which is still pending, at the time of the alert: the explanation stops there.
    fn end_pending(&mut self) {
        let (alert, time) = (&self.alert, self.alert.time);
        let pending = |r: &&mut Request| {
            let mut begun = [r.queued(), r.issued.as_ref()].into_iter().flatten();
            let begun = begun.any(|step| step.time <= time);
            r.sector == self.sector && begun && r.completed.as_ref().is_none_or(|c| c.time > time)
        };
        let all = self.requests.all.iter_mut().filter(pending);
        if let Some(request) = all.min_by_key(|r| start_distance(r, alert)) {
            // A request that waited in a queue may have been returned and issued later.
            request.returned = request.returned.take().filter(|s| s.time <= time);
            request.issued = request.issued.take().filter(|s| s.time <= time);
            request.completed = Some(Step {
                time,
                cpu: u32::try_from(alert.cpu).unwrap_or(0),
                task: Task::default(),
            });
        }
    }

    /// Explains the request, once the whole trace has been read.
    ///
    /// `gap` returns why events between two times may be missing, and `begin` the time at which the recording of a CPU
    /// begins, if it is known: an idle CPU may have its first event much later.
    pub(crate) fn finish(
        mut self,
        discarded: u64,
        unreadable: Option<String>,
        gap: impl Fn(u64, u64) -> Option<Unrecorded>,
        begin: impl Fn(u32) -> Option<u64>,
    ) -> Explanation {
        if self.alert.reason == Reason::Timeout {
            self.end_pending();
        }
        let alert = &self.alert;
        let begins_with_it = |r: &Request| start_distance(r, alert).is_some_and(|d| d <= NEAR);
        let end_distance = |r: &Request| Some(r.completed.as_ref()?.time.abs_diff(alert.time));
        let reach = self.reach();
        let fits = |r: &&Request| {
            let most = if begins_with_it(r) { reach } else { NEAR };
            r.sector == self.sector && end_distance(r).is_some_and(|d| d <= most)
        };
        let fitting = self.requests.all.iter().filter(fits);
        // A later request for the same sector may end closer to the alert.
        let request = fitting.min_by_key(|r| (!begins_with_it(r), end_distance(r)));
        let steps = request.and_then(|r| Some((r, r.issued.as_ref()?, r.completed.as_ref()?)));
        let queue =
            steps.map(|(r, issued, completed)| device_queue(&self.requests, r, issued, completed));
        let ran = steps.map(|(_, issued, completed)| {
            let switches = self.running.get(&issued.cpu).map_or(&[][..], Vec::as_slice);
            (
                issued.cpu,
                time_by_task(switches, issued.time, completed.time),
            )
        });
        let begins = self.first.iter();
        let begins = begins.map(|(cpu, first)| begin(*cpu).map_or(*first, |time| time.min(*first)));
        let begin = begins.max().unwrap_or(self.alert.time);
        Explanation {
            request: request.cloned(),
            gap: steps.and_then(|(_, issued, completed)| {
                // A request that ended in a gap seems to stay at the device.
                let seems_busy = queue
                    .as_ref()
                    .is_some_and(|q| q.at_issue > 0 && q.completed == 0);
                let from = if seems_busy { 0 } else { issued.time };
                gap(from, completed.time)
            }),
            queue,
            ran,
            covered: self.alert.time.saturating_sub(begin),
            discarded,
            unreadable,
            clock: None,
            alert: self.alert,
        }
    }
}

/// Time between the start of the delay and the nearest step at which the delay of a request may start, ns.
fn start_distance(request: &Request, alert: &Alert) -> Option<u64> {
    let begun = [request.queued(), request.issued.as_ref()];
    let begun = begun.into_iter().flatten();
    begun.map(|step| step.time.abs_diff(alert.start())).min()
}

fn device_queue(
    requests: &Requests,
    late: &Request,
    issued: &Step,
    completed: &Step,
) -> DeviceQueue {
    let (begin, end) = (issued.time, completed.time);
    let within = |step: &Option<Step>| {
        step.as_ref()
            .is_some_and(|s| s.time > begin && s.time < end)
    };
    let others = || requests.all.iter().filter(|r| !std::ptr::eq(*r, late));
    let depths = requests.depths();
    let instants = others().filter_map(|r| r.issued.as_ref()).map(|s| s.time);
    let at_most = instants
        .filter(|t| *t > begin && *t < end)
        .chain([begin])
        .map(|t| depths.at(t))
        .max();
    let overtakers = others()
        .filter(|r| within(&r.issued) && within(&r.completed))
        .filter_map(|r| {
            Some(Overtaker {
                issued_after: r.issued.as_ref()?.time - begin,
                took: r.at_device_for()?,
                request: r.clone(),
            })
        });
    let is_before = |r: &Request| r.completed.as_ref().is_some_and(|s| s.time <= begin);
    let is_after = |r: &Request| r.issued.as_ref().is_some_and(|s| s.time >= end);
    DeviceQueue {
        at_issue: depths.at(begin).saturating_sub(1),
        at_most: at_most.unwrap_or(1),
        at_end: depths.at(end),
        issued: others().filter(|r| within(&r.issued)).count(),
        completed: others().filter(|r| within(&r.completed)).count(),
        overtakers: overtakers.collect(),
        others: Took::of(others().filter(|r| within(&r.completed))),
        otherwise: Took::of(others().filter(|r| is_before(r) || is_after(r))),
    }
}

/// Time that each task ran between `begin` and `end`, longest first; idle is tid 0.
fn time_by_task(switches: &[(u64, Task)], begin: u64, end: u64) -> Vec<(Task, u64)> {
    let mut times: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for (i, (since, task)) in switches.iter().enumerate() {
        let until = switches.get(i + 1).map_or(end, |(t, _)| *t).min(end);
        let since = (*since).max(begin);
        if until > since {
            let comm = if task.tid == 0 { "idle" } else { &task.comm };
            *times.entry((task.tid, comm.to_string())).or_default() += until - since;
        }
    }
    let mut list: Vec<(Task, u64)> = times
        .into_iter()
        .map(|((tid, comm), t)| (Task { comm, tid }, t))
        .collect();
    list.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_time_is_cut_to_the_window() {
        let task = |tid: u64| Task {
            comm: format!("t{tid}"),
            tid,
        };
        let switches = [(0, task(1)), (50, task(0)), (70, task(1)), (200, task(2))];
        let times = time_by_task(&switches, 40, 100);
        assert_eq!(
            times,
            [
                (task(1), 40),
                (
                    Task {
                        comm: "idle".into(),
                        tid: 0
                    },
                    20
                )
            ]
        );
    }
}
