// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A peak, and the sentence that names its cause.
//!
//! The best evidence is an alert of one of our trackers, which has a name and a duration. Next is the
//! time that the loop had to wait for its CPU, which the scheduler counts in ns. A counter that moved
//! more than usual is a probable cause. A counter that moved as usual is a possible one. If no
//! counter moved, the kernel did not run: the cause is the host, the firmware or the hardware.

use std::path::PathBuf;

use lt_proc::{Alert, Nanos};
use serde::Serialize;

use crate::measure::Moved;

/// Maximum number of counters that the sentence names.
const NAMED: usize = 3;

/// A peak.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Peak {
    pub(super) cpu: u32,
    pub(super) phase: &'static str,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub(super) time: u64,
    /// How long it took, ns.
    pub(super) took: u64,
    /// The time between the readings of the counters before and after the peak, ns; 0 without a reading before it.
    pub(super) window: u64,
    /// How long the loop was runnable, but did not run, ns.
    pub(super) waited: u64,
    /// The counters that moved, the least usual first.
    pub(super) moved: Vec<Moved>,
    /// Alerts of handlers on the CPU, and of the loop's thread, during the peak.
    pub(super) alerts: Vec<Alert>,
    /// The cause, in a sentence.
    pub(super) cause: String,
    /// The capture with the trace around the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) capture: Option<PathBuf>,
    /// The explanation from the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) explanation: Option<String>,
}

/// Where the loop runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where {
    /// Whether the machine is a virtual machine; `None` if unknown.
    pub(super) guest: Option<bool>,
    /// Whether system management interrupts are among the counters.
    pub(super) smi: bool,
    /// Whether the loop runs in the kernel, with interrupts off.
    pub(super) inside: bool,
}

/// Returns the sentence that names the cause.
pub(super) fn cause(
    took: u64,
    waited: u64,
    window: u64,
    moved: &[Moved],
    alerts: &[Alert],
    at: Where,
) -> String {
    let mut said = Vec::new();
    if let Some(alert) = alerts.iter().max_by_key(|alert| alert.delay) {
        said.push(format!(
            "{} took {}: {}",
            alert.tracker,
            Nanos(alert.delay),
            alert.subject()
        ));
    }
    if waited >= took / 2 && waited > 0 {
        said.push(format!("another task had the CPU for {}", Nanos(waited)));
    }
    let unusual: Vec<&Moved> = moved.iter().filter(|moved| moved.unusual).collect();
    let slight = said.is_empty() && !unusual.is_empty() && unusual.iter().all(|m| routine(m, took));
    if slight {
        return format!(
            "{} cannot have taken {}: probably {}",
            names(&unusual),
            Nanos(took),
            outside(at)
        );
    }
    if !unusual.is_empty() {
        said.push(names(&unusual));
    }
    if !said.is_empty() {
        return said.join("; ");
    }
    if window == 0 {
        return "unknown: the counters had not been read before".into();
    }
    if !moved.is_empty() {
        let all: Vec<&Moved> = moved.iter().collect();
        return format!(
            "nothing unusual: one of {} in {}, or {}",
            names(&all),
            Nanos(window),
            outside(at)
        );
    }
    format!("no counter moved: {}", outside(at))
}

/// Whether this counter counts events that take the kernel only microseconds each, and moved too
/// little to explain the gap. Interrupts that were pending when a host gave the CPU back are an
/// example.
fn routine(moved: &Moved, took: u64) -> bool {
    /// The longest that one of these events may take, ns: a hundred times as long as usual.
    const AT_MOST: u64 = 1_000_000;
    const KINDS: [&str; 9] = [
        "interrupt LOC ",
        "interrupt RES ",
        "interrupt CAL ",
        "interrupt IWI ",
        "interrupt TLB ",
        // arm64
        "interrupt IPI",
        "softirq TIMER",
        "softirq SCHED",
        "softirq RCU",
    ];
    let counter = &moved.counter;
    let is_known = KINDS.iter().any(|kind| counter.starts_with(kind));
    // The tick of arm64 has the line of a device.
    let is_tick = counter.ends_with("arch_timer)");
    (is_known || is_tick) && moved.by.saturating_mul(AT_MOST) < took / 2
}

/// Returns the causes that no counter of the kernel shows.
fn outside(at: Where) -> &'static str {
    match (at.guest, at.smi) {
        (Some(true), _) => "the host of this virtual machine",
        (_, true) => "the hardware (the firmware's SMIs are counted, and there was none)",
        (Some(false), false) => "the firmware (SMI) or the hardware",
        // Only x86 shows whether the machine is virtual.
        (None, false) => "the firmware, the hardware or, in a virtual machine, its host",
    }
}

/// Returns the counters as text: `interrupt 25 (lt_cause) +1, softirq NET_RX +3`.
fn names(moved: &[&Moved]) -> String {
    let named = moved.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|moved| format!("{} +{}", moved.counter, moved.by))
        .collect();
    match moved.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

/// Returns the alerts that overlap the time from `begin` to `end` (CLOCK_MONOTONIC, ns), and are about this thread, or
/// about a handler that started on this CPU in that time. Other delays take no time from the loop: a request or a sleep
/// goes on while the loop runs, and a task or a preempted softirq that waits for the CPU waits for the loop.
pub(super) fn during<'a>(
    alerts: impl Iterator<Item = &'a Alert>,
    cpu: u32,
    tid: i32,
    begin: u64,
    end: u64,
) -> Vec<Alert> {
    /// Trackers whose delays are time of a CPU.
    const HANDLERS: [&str; 2] = ["irq", "softirq"];
    // An allowance for the error of comparing a time of the loop's clock with a time of the clock of
    // alerts. The two drift apart by less than a thousandth (Clock::monotonic).
    let slack = 20_000 + end.saturating_sub(begin) / 1000;
    let there = |alert: &&Alert| {
        let is_here = alert.cpu == u64::from(cpu) && alert.start() + slack >= begin;
        let is_handler = HANDLERS.contains(&alert.tracker.as_str());
        let concerned = is_here && is_handler || u64::try_from(tid) == Ok(alert.tid);
        concerned && alert.start() < end + slack && alert.time + slack > begin
    };
    alerts.filter(there).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(counter: &str, by: u64, unusual: bool) -> Moved {
        Moved {
            counter: counter.into(),
            by,
            usual: 0.0,
            unusual,
        }
    }

    const METAL: Where = Where {
        guest: Some(false),
        smi: false,
        inside: false,
    };
    const GUEST: Where = Where {
        guest: Some(true),
        smi: false,
        inside: false,
    };

    fn alert(cpu: u64, tid: u64, time: u64, delay: u64) -> Alert {
        let line = format!(
            "seq=1 time={time} instance=i tracker=irq reason=threshold delay={delay} threshold=1 cpu={cpu} pid=1 \
             tid={tid} comm=\"x\" irq=25 on=1 action=\"lt_cause\" ret=handled"
        );
        Alert::parse(&line).unwrap()
    }

    #[test]
    fn the_best_evidence_comes_first() {
        let counters = [
            moved("interrupt 25 (lt_cause)", 1, true),
            moved("interrupt LOC (timer)", 2, false),
        ];
        let said = cause(100, 0, 10, &counters, &[], METAL);
        assert_eq!(said, "interrupt 25 (lt_cause) +1");
        let said = cause(100, 80, 10, &counters, &[alert(1, 1, 9, 3_000_000)], METAL);
        assert!(said.starts_with("irq took 3.00ms: irq=25"), "{said}");
        assert!(
            said.contains("action=lt_cause") || said.contains("action=\"lt_cause\""),
            "{said}"
        );
        assert!(
            said.ends_with("; another task had the CPU for 80ns; interrupt 25 (lt_cause) +1"),
            "{said}"
        );
        // A short wait is not the cause.
        assert!(!cause(100, 10, 10, &counters, &[], METAL).contains("another task"));
    }

    #[test]
    fn if_no_counter_moved_the_cause_is_outside_the_kernel() {
        assert_eq!(
            cause(100, 0, 10, &[], &[], GUEST),
            "no counter moved: the host of this virtual machine"
        );
        assert!(cause(100, 0, 10, &[], &[], METAL).contains("firmware (SMI) or the hardware"));
        let unknown = Where {
            guest: None,
            ..METAL
        };
        assert!(cause(100, 0, 10, &[], &[], unknown).ends_with("its host"));
        let smi = Where { smi: true, ..METAL };
        assert!(cause(100, 0, 10, &[], &[], smi).contains("there was none"));
        assert!(cause(100, 0, 0, &[], &[], METAL).starts_with("unknown"));
        let usual = [moved("interrupt LOC (timer)", 2, false)];
        let said = cause(100, 0, 10_000_000, &usual, &[], GUEST);
        assert_eq!(
            said,
            "nothing unusual: one of interrupt LOC (timer) +2 in 10.00ms, or the host of this virtual machine"
        );
    }

    #[test]
    fn a_few_ticks_are_not_the_cause_of_a_long_gap() {
        let ticks = [moved("interrupt LOC (timer)", 3, true)];
        assert_eq!(
            cause(136_000_000, 0, 140_000_000, &ticks, &[], GUEST),
            "interrupt LOC (timer) +3 cannot have taken 136.0ms: probably the host of this virtual machine"
        );
        for line in [
            "11 (GICv3 30 Level arch_timer)",
            "IPI1 (Function call interrupts)",
        ] {
            let arm = [moved(&format!("interrupt {line}"), 3, true)];
            let said = cause(136_000_000, 0, 140_000_000, &arm, &[], GUEST);
            assert!(said.contains("cannot have taken"), "{said}");
        }
        let said = cause(2_000_000, 0, 10_000_000, &ticks, &[], GUEST);
        assert_eq!(said, "interrupt LOC (timer) +3");
        // A device's handler may be that slow; other evidence comes first.
        let device = [moved("interrupt 25 (lt_cause)", 1, true), ticks[0].clone()];
        let said = cause(136_000_000, 0, 140_000_000, &device, &[], GUEST);
        assert!(said.starts_with("interrupt 25 (lt_cause) +1"), "{said}");
        let said = cause(136_000_000, 130_000_000, 140_000_000, &ticks, &[], GUEST);
        assert!(said.starts_with("another task had the CPU"), "{said}");
    }

    #[test]
    fn many_counters_are_summed_up() {
        let many: Vec<Moved> = (0..5)
            .map(|i| moved(&format!("c{i}"), i + 1, true))
            .collect();
        assert_eq!(
            cause(1, 0, 1, &many, &[], METAL),
            "c0 +1, c1 +2, c2 +3, and 2 more"
        );
    }

    #[test]
    fn only_alerts_of_the_right_cpu_and_time_count() {
        let at = |cpu, tid, time, delay| {
            during(
                [alert(cpu, tid, time, delay)].iter(),
                1,
                77,
                1_000_000,
                2_000_000,
            )
            .len()
        };
        assert_eq!(at(1, 5, 1_500_000, 100), 1);
        assert_eq!(
            at(0, 77, 1_500_000, 100),
            1,
            "of the loop, wherever it was seen"
        );
        assert_eq!(at(0, 5, 1_500_000, 100), 0, "elsewhere");
        assert_eq!(at(1, 5, 900_000, 100), 0, "before");
        assert_eq!(at(1, 5, 2_500_000, 100), 0, "after");
        assert_eq!(at(1, 5, 2_500_000, 1_000_000), 1, "it began before the end");
        let waits = Alert {
            tracker: "runqueue".into(),
            ..alert(1, 5, 1_500_000, 1_000_000)
        };
        assert!(during([waits].iter(), 1, 77, 1_000_000, 2_000_000).is_empty());
        assert_eq!(at(1, 5, 1_500_000, 900_000), 0, "preempted by the loop");
        // The clocks have drifted apart over a second.
        let handler = alert(1, 5, 900_000_000, 800_000_000);
        let found = during([handler].iter(), 1, 77, 100_500_000, 1_100_500_000);
        assert_eq!(found.len(), 1);
    }
}
