// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel events that a flight recorder records by default, and whether this LTTng has probes for them.

use anyhow::{Result, bail};

use super::{lttng, names_of};

/// Events that show which thread ran where, and which woke which. Without `sched_wakeup`, a thread that was woken in
/// vain, just before it went to sleep, would seem to wait for a processor.
pub const OF_THREADS: [&str; 6] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
];
/// Stages of a request.
pub const OF_REQUESTS: [&str; 3] = ["block_rq_*", "block_bio_backmerge", "block_bio_frontmerge"];
/// Shows for which disk a thread waited, however that disk signals completion.
const OF_DISKS: &str = "block_rq_complete";
/// Stages before completion: a bio is submitted and gets a request, and the request is issued, or given back by the
/// driver.
pub const OF_PLACES: [&str; 6] = [
    "block_bio_queue",
    "block_bio_remap",
    "block_getrq",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_requeue",
];
/// Events that show the CPU that a thread waited for, why that CPU was idle meanwhile, and which limits held the thread
/// back.
pub const OF_LIMITS: [&str; 7] = [
    "sched_migrate_task",
    "power_cpu_idle",
    "writeback_balance_dirty_pages",
    "workqueue_execute_start",
    "workqueue_execute_end",
    "timer_expire_entry",
    "timer_expire_exit",
];
/// Interrupts and what raises them, for waits that no thread ended. Patterns, since not every architecture has all of
/// them.
pub const OF_INTERRUPTS: [&str; 7] = [
    "irq_handler_*",
    "irq_softirq_*",
    "timer_hrtimer_expire_*",
    "x86_irq_vectors_local_timer_*",
    "x86_irq_vectors_reschedule_*",
    "x86_irq_vectors_call_function*",
    "x86_irq_vectors_irq_work_*",
];
/// Other steps of a wake chain of `tree`: work items, callbacks of timers, the start of hrtimers, and two interrupts of
/// x86. LTTng has no probe for functions that one CPU calls on another (`csd_*`).
const OF_PATHS: [&str; 5] = [
    "workqueue_*",
    "timer_expire_*",
    "timer_hrtimer_start",
    "x86_irq_vectors_thermal_apic_*",
    "x86_irq_vectors_x86_platform_ipi_*",
];

/// The alerts themselves, if the probe for them is loaded (`lttng/`).
const ALERTS: &str = "latency_tracker_*";

/// Returns the events that explain alerts of a tracker. If `lean`, events that show where a thread or a request was
/// held back are left out.
pub fn default_events(tracker: &str, lean: bool) -> Vec<&'static str> {
    let of_requests = matches!(tracker, "block" | "io");
    let mut events = OF_THREADS.to_vec();
    match of_requests {
        true => events.extend(OF_REQUESTS),
        false => events.push(OF_DISKS),
    }
    if tracker != "block" {
        events.extend(OF_INTERRUPTS);
    }
    if tracker == "tree" {
        events.extend(OF_PATHS);
    }
    if !lean {
        // An event that matches a pattern is already included.
        let more = OF_PLACES.into_iter().chain(OF_LIMITS);
        let is_new = |event: &&str| !events.iter().any(|pattern| matches(pattern, event));
        let more: Vec<_> = more.filter(is_new).collect();
        events.extend(more);
    }
    events
}

/// The default events that `--lean` leaves out for a tracker.
pub fn left_out_if_lean(tracker: &str) -> Vec<&'static str> {
    let lean = default_events(tracker, true);
    let mut events = default_events(tracker, false);
    events.retain(|event| !lean.contains(event));
    events
}

/// The kernel tracepoints for which LTTng has probes. They depend on its version and build. LTTng must be asked, since
/// `lttng enable-event` accepts any name.
#[derive(Debug)]
pub struct Known(Vec<String>);

impl Known {
    /// Asks the session daemon, which must be running.
    pub fn ask() -> Result<Self> {
        let xml = lttng(["--mi", "xml", "list", "--kernel"]).output()?;
        Ok(Self(names_of("event", &xml)?))
    }

    fn has(&self, event: &str) -> bool {
        self.0.iter().any(|name| matches(event, name))
    }

    /// Refuses an event of `-e` that has no probe.
    pub fn check(&self, asked: &[String]) -> Result<()> {
        match asked.iter().find(|event| !self.has(event)) {
            None => Ok(()),
            Some(event) => {
                bail!("-e {event}: no such kernel tracepoint; `lttng list --kernel` shows them")
            }
        }
    }

    /// Splits `events` into events with a probe and events without a probe. Adds the alerts to the first list if that
    /// list is not empty and LTTng has a probe for alerts.
    pub fn split(&self, events: Vec<String>) -> (Vec<String>, Vec<String>) {
        let (mut there, missing): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| self.has(event));
        let is_new = !there.is_empty() && there.iter().all(|event| event != ALERTS);
        if is_new && self.has(ALERTS) {
            there.push(ALERTS.into());
        }
        (there, missing)
    }
}

/// Whether the event is expected on this architecture.
pub fn is_expected(event: &str) -> bool {
    cfg!(target_arch = "x86_64") || !event.starts_with("x86_")
}

/// Whether `name` matches `pattern`, in which `*` stands for anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|i| tail.is_char_boundary(i) && matches(rest, &tail[i..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_places_and_limits_is_recorded_once_unless_lean() {
        for tracker in ["offcpu", "syscall", "block", "io", "tree"] {
            let (lean, all) = (
                default_events(tracker, true),
                default_events(tracker, false),
            );
            let times = |event: &str, events: &[&str]| {
                events
                    .iter()
                    .filter(|pattern| matches(pattern, event))
                    .count()
            };
            for event in OF_PLACES.into_iter().chain(OF_LIMITS) {
                assert_eq!(times(event, &all), 1, "{tracker} {event}");
            }
            assert_eq!(times("sched_migrate_task", &lean), 0);
            assert_eq!(times("block_rq_complete", &lean), 1);
            assert_eq!(times("block_rq_requeue", &all), 1);
            assert!(lean.iter().all(|event| all.contains(event)));
        }
    }

    #[test]
    fn patterns_match_as_in_lttng() {
        assert!(matches("irq_*", "irq_handler_entry"));
        assert!(matches("*_exit", "irq_handler_exit"));
        assert!(matches("irq_*_e*", "irq_handler_entry"));
        assert!(!matches("irq", "irq_handler_entry"));
        assert!(!matches("sched_*x", "sched_switch"));
    }

    #[test]
    fn events_without_a_probe_are_named_and_refused_only_if_asked_for() {
        let known = Known(vec!["sched_switch".into(), "irq_handler_entry".into()]);
        let list = |events: &[&str]| events.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (there, missing) = known.split(list(&["sched_switch", "irq_*", "power_*", "new"]));
        assert_eq!(there, ["sched_switch", "irq_*"]);
        assert_eq!(missing, ["power_*", "new"]);
        let known_alerts = Known(vec!["sched_switch".into(), "latency_tracker_alert".into()]);
        for asked in [&["sched_switch"][..], &["sched_switch", ALERTS]] {
            assert_eq!(known_alerts.split(list(asked)).0, ["sched_switch", ALERTS]);
        }
        assert!(known_alerts.split(list(&["new"])).0.is_empty());
        assert!(known.check(&there).is_ok());
        let refused = format!("{:#}", known.check(&missing).unwrap_err());
        assert!(refused.starts_with("-e power_*: "), "{refused}");
    }

    #[test]
    fn lean_leaves_out_only_events_that_it_does_not_record() {
        let out = left_out_if_lean("offcpu");
        assert!(out.contains(&"sched_migrate_task") && !out.contains(&"sched_switch"));
        assert!(
            left_out_if_lean("tree")
                .iter()
                .all(|e| !e.starts_with("workqueue_"))
        );
    }
}
