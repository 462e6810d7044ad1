// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The operations that were late besides the explained one.

use std::collections::BTreeSet;

use lt_common::out;
use lt_proc::Alert;

use crate::explain::alone::{is_inside, took, what};
use crate::explain::owner;

/// Maximum number of operations that are listed.
const MOST: usize = 5;

/// Lists the longest late operation of each thread, and each operation of an idle CPU or an unknown task, except `late`
/// and the operations within it. The thread of `late` may be listed, too. `lost` is the number of alerts that may be
/// missing. `takes_pids` is whether `why -p` takes a PID here, which is not the case inside a PID namespace. `clock`
/// returns the time of day of a time of `CLOCK_MONOTONIC`. Empty if there is no other late operation.
pub(super) fn lines(
    late: &Alert,
    alerts: &[Alert],
    lost: u64,
    takes_pids: bool,
    clock: impl Fn(u64) -> String,
) -> Vec<String> {
    let is_other = |alert: &&Alert| *alert != late && !is_inside(alert, late);
    let mut others: Vec<&Alert> = alerts.iter().filter(is_other).collect();
    others.sort_by_key(|alert| std::cmp::Reverse(alert.delay));
    let mut threads = BTreeSet::new();
    // A tid of 0 does not identify a thread.
    others.retain(|alert| alert.tid == 0 || threads.insert(alert.tid));
    let also = |alert: &&Alert| {
        // Another operation of this thread may be earlier, or be the call in which the explained delay occurred.
        let is_again = alert.tid != 0 && alert.tid == late.tid && alert.start() >= late.time;
        let (which, at) = match is_again {
            true => ("late again", format!(", at {}", clock(alert.time))),
            false => ("also late", String::new()),
        };
        let (who, what, took) = (owner(alert), what(alert), took(alert));
        let text = format!("{which}: {who}, {what}, {took}{at}");
        out::wrap(&out::printable(&text), 2)
    };
    let mut lines: Vec<String> = others.iter().take(MOST).flat_map(also).collect();
    let left = others.get(MOST..).unwrap_or_default();
    let unknown = left.iter().filter(|alert| alert.tid == 0).count();
    for (more, what, of) in [
        (left.len() - unknown, "more thread", ""),
        (unknown, "more operation", " of idle CPUs or unknown tasks"),
    ] {
        if more > 0 {
            lines.push(format!("  and {}{of}", out::plural(more, what)));
        }
    }
    if lost > 0 && !lines.is_empty() {
        let lost = out::plural(usize::try_from(lost).unwrap_or(usize::MAX), "alert");
        lines.push(format!("  perhaps not all: {lost} missed or not raised"));
    }
    // A request may belong to a kernel thread, whose other operations are not watched. For the same process, `why -p`
    // might explain the same thread again.
    let can_be_next =
        |alert: &&&Alert| takes_pids && alert.tracker != "block" && alert.pid != late.pid;
    if let Some(alert) = others.iter().take(MOST).find(can_be_next) {
        lines.push(format!(
            "  to explain the next delay of {}: latency-tracker why -p {}",
            owner(alert),
            alert.pid
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An alert of a thread about the time from `start` to `end`, ms.
    fn alert(tracker: &str, (tid, comm): (u64, &str), (start, end): (u64, u64)) -> Alert {
        let (time, delay) = (end * 1_000_000, (end - start) * 1_000_000);
        let more = match tracker {
            "syscall" => "call=pread64 number=17",
            "block" => "dev=8:0 disk=\"sda\" op=\"W\" sector=8 bytes=4096",
            _ => "state=D",
        };
        let line = format!(
            "seq={end} time={time} instance=why_{tracker} tracker={tracker} reason=threshold delay={delay} \
             threshold=1 cpu=0 pid={tid} tid={tid} comm=\"{comm}\" {more}"
        );
        Alert::parse(&line).unwrap()
    }

    fn lines(late: &Alert, alerts: &[Alert], lost: u64, takes_pids: bool) -> Vec<String> {
        let clock = |time: u64| format!("14:03:{:02}", time / 10_000_000);
        super::lines(late, alerts, lost, takes_pids, clock)
    }

    const ORDERS: (u64, &str) = (185, "orders");
    const ARCHIVER: (u64, &str) = (192, "archiver");

    #[test]
    fn each_other_late_thread_is_listed_once_with_its_longest_operation() {
        let late = alert("block", ARCHIVER, (0, 300));
        let alerts = [
            // Within the explained operation.
            alert("offcpu", ARCHIVER, (10, 290)),
            alert("offcpu", ORDERS, (51, 299)),
            late.clone(),
            alert("syscall", ORDERS, (50, 300)),
            alert("block", (40, "kworker/0:1"), (100, 380)),
        ];
        let all = lines(&late, &alerts, 0, true);
        assert_eq!(
            all,
            [
                "  also late: kworker/0:1/40, sda W sector 8 4K, 280.0ms",
                "  also late: orders/185, pread64, 250.0ms",
                "  to explain the next delay of orders/185: latency-tracker why -p 185",
            ]
        );
        // Inside a PID namespace.
        assert_eq!(lines(&late, &alerts, 0, false), all[..2]);
        let some = lines(&late, &alerts, 12, true);
        assert_eq!(some[2], "  perhaps not all: 12 alerts missed or not raised");
        assert_eq!(some.len(), 4);
    }

    #[test]
    fn an_operation_that_the_explained_one_does_not_contain_is_listed() {
        let late = alert("syscall", ORDERS, (50, 300));
        let alerts = [late.clone(), alert("offcpu", ORDERS, (310, 390))];
        // The same process: `why -p` might explain the same thread again.
        let expected = "  late again: orders/185, off the CPU in state D, 80.00ms, at 14:03:39";
        assert_eq!(lines(&late, &alerts, 0, true), [expected]);
        // A call around the explained operation, which began before the recording, and an earlier operation.
        for range in [(40, 310), (10, 50)] {
            let other = alert("syscall", ORDERS, range);
            let all = lines(&late, &[late.clone(), other], 0, true);
            assert!(
                all[0].starts_with("  also late: orders/185, pread64, "),
                "{all:?}"
            );
        }
        // Nothing else was late, as far as is known.
        let inside = alert("offcpu", ORDERS, (60, 290));
        assert!(lines(&late, &[late.clone(), inside], 12, true).is_empty());
    }

    #[test]
    fn threads_with_the_longest_operations_are_listed_and_the_others_counted() {
        let late = alert("syscall", ORDERS, (50, 300));
        let of = |tid| alert("syscall", (tid, "x"), (200 - tid, 300));
        let mut alerts: Vec<Alert> = (1..=7).map(of).collect();
        let all = lines(&late, &alerts, 0, true);
        assert_eq!(all.len(), 7);
        assert_eq!(all[0], "  also late: x/7, pread64, 107.0ms");
        assert_eq!(all[4], "  also late: x/3, pread64, 103.0ms");
        assert_eq!(all[5], "  and 2 more threads");
        assert!(
            all[6].ends_with(" x/7: latency-tracker why -p 7"),
            "{all:?}"
        );
        let idle = |begin| alert("offcpu", (0, "swapper/1"), (begin, 300));
        alerts.extend([280, 290].map(idle));
        let more = lines(&late, &alerts, 0, true);
        assert_eq!(more[..6], all[..6]);
        let expected = "  and 2 more operations of idle CPUs or unknown tasks";
        assert_eq!(more[6..], [expected, all[6].as_str()]);
    }

    #[test]
    fn control_characters_of_a_name_are_not_printed() {
        let late = alert("syscall", ORDERS, (50, 300));
        let other = alert("syscall", (7, "a\\x1b[2J"), (0, 300));
        let all = lines(&late, &[other], 0, true);
        assert!(!all.concat().contains('\u{1b}'), "{all:?}");
        assert!(all[0].contains("a?[2J/7"), "{all:?}");
    }
}
