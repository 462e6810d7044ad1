// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Groups of late operations, from alerts.

use lt_proc::Alert;

use super::MS;
use crate::cli::By;
use crate::cmd::top::groups::{Group, Groups, SUBJECTS};

/// An alert of an instance with the name of its tracker; times in ms.
fn alert(tracker: &str, reason: &str, time: u64, delay: u64, tid: u64, rest: &str) -> Alert {
    Alert::parse(&format!(
        "seq=1 time={} instance={tracker} tracker={tracker} reason={reason} delay={} \
         threshold=10000000 cpu=1 pid=7 tid={tid} comm=\"t{tid}\" {rest}",
        time * MS,
        delay * MS
    ))
    .unwrap()
}

fn grouped(by: By, alerts: &[Alert]) -> Vec<Group> {
    let mut groups = Groups::new(by);
    alerts.iter().for_each(|alert| groups.see(alert));
    let first = groups.take();
    assert!(groups.take().is_empty(), "each alert is in one result only");
    first
}

/// Text, count, total, longest delay and last time of each group; times in ms.
fn rows(groups: &[Group]) -> Vec<(String, u64, u64, u64, u64)> {
    let row = |group: &Group| {
        let (sum, last) = (group.totals.sum, group.totals.last / MS);
        let text = group.key.text();
        (text, sum.count, sum.total / MS, sum.longest / MS, last)
    };
    groups.iter().map(row).collect()
}

#[test]
fn groups_have_count_sum_longest_and_last_the_longest_total_first() {
    let call = |name: &str| format!("call={name} number=1");
    let alerts = [
        alert("syscall", "threshold", 100, 20, 1, &call("read")),
        alert("syscall", "threshold", 300, 50, 2, &call("fsync")),
        alert("syscall", "threshold", 200, 40, 1, &call("fsync")),
        // The instances are separate: one operation may contain the other.
        alert("lock", "threshold", 190, 35, 1, "lock=a1 kind=mutex"),
    ];
    assert_eq!(
        rows(&grouped(By::Task, &alerts)),
        [
            ("t1/1".into(), 2, 60, 40, 200),
            ("t2/2".into(), 1, 50, 50, 300),
            ("t1/1".into(), 1, 35, 35, 190),
        ]
    );
    assert_eq!(
        rows(&grouped(By::Subject, &alerts)),
        [
            ("fsync".into(), 2, 90, 50, 300),
            ("lock=a1 kind=mutex".into(), 1, 35, 35, 190),
            ("read".into(), 1, 20, 20, 100),
        ]
    );
    let without = rows(&grouped(By::Stack, &alerts));
    assert_eq!(without[0], ("[no stack]".into(), 3, 110, 50, 300));
    assert_eq!(without.len(), 2);
}

#[test]
fn an_operation_counts_once_and_a_lower_bound_is_marked() {
    let stack = "stack=\"f+0x1/0x9,g+0x2/0x9 [m]\"";
    let moved = "stack=\"f+0x5/0x9,g+0x2/0x9 [m]\"";
    let mut alerts = vec![
        // The alert of this operation's end has no stack.
        alert("io", "timeout", 150, 50, 1, stack),
        alert("io", "late", 190, 90, 1, ""),
        alert("io", "threshold", 250, 30, 2, moved),
    ];
    let groups = grouped(By::Stack, &alerts);
    assert_eq!(rows(&groups), [("f <- g [m]".into(), 2, 120, 90, 250)]);
    assert!(!groups[0].totals.is_at_least);
    // This operation has not ended.
    alerts.push(alert("io", "timeout", 350, 50, 3, stack));
    let groups = grouped(By::Stack, &alerts);
    assert_eq!(rows(&groups), [("f <- g [m]".into(), 3, 170, 90, 350)]);
    assert!(groups[0].totals.is_at_least);
    let before = alert("io", "threshold", 350, 50, 3, "since=before-start");
    assert!(grouped(By::Task, &[before])[0].totals.is_at_least);
}

#[test]
fn a_subject_is_what_the_tracker_follows() {
    for (tracker, fields, subject) in [
        ("block", "dev=8:0 disk=\"sda\" op=\"WS\" sector=8", "sda"),
        // A queue without a disk.
        ("block", "dev=0:0 disk=\"\" op=\"N\" sector=0", "-"),
        (
            "io",
            "class=b_read dev=8:0 disk=\"sda\"",
            "class=b_read disk=sda",
        ),
        ("io", "class=s_sync call=74", "class=s_sync"),
        (
            "irq",
            "irq=29 on=1 action=\"eth0\" ret=handled",
            "irq=29 action=eth0",
        ),
        ("softirq", "vec=3 name=net_rx on=1", "net_rx"),
        ("tree", "origin=timer irq=-1 action=\"\"", "origin=timer"),
        ("workqueue", "work=1 func=\"slow [m\\x1b]\"", "slow [m?]"),
        ("wakeup", "prio=120 waker_tid=9", "t5"),
        ("pair", "context=task key=5", "-"),
        ("of_a_newer_module", "call=read", "-"),
    ] {
        let alert = alert(tracker, "threshold", 9, 5, 5, fields);
        let groups = grouped(By::Subject, &[alert]);
        assert_eq!(groups[0].key.text(), subject, "{tracker} {fields}");
    }
}

#[test]
fn each_tracker_has_a_subject_in_its_alerts() {
    let abi = include_str!("../../../../../../tests/abi.txt");
    let alerts: Vec<(&str, &str)> = abi
        .split("\n\n")
        .filter_map(|section| {
            let tracker = section.lines().next()?;
            let alert = section.lines().find(|line| line.starts_with("  alert: "))?;
            Some((tracker, alert))
        })
        .collect();
    assert!(alerts.len() > 15, "{alerts:?}");
    let of = |name: &str| alerts.iter().find(|(tracker, _)| *tracker == name);
    let mut known: Vec<&str> = SUBJECTS.iter().map(|(tracker, _)| *tracker).collect();
    for (tracker, keys) in SUBJECTS {
        let (_, own) = of(tracker).unwrap();
        // An alert of `io` about a request has the fields of `block`.
        let (_, block) = of("block").unwrap();
        for key in keys {
            let key = format!(" {key}=");
            let is_there = own.contains(&key) || (tracker == "io" && block.contains(&key));
            assert!(is_there, "{tracker}{key}");
        }
    }
    known.extend(["module", "pair"]);
    known.sort_unstable();
    let mut all: Vec<&str> = alerts.iter().map(|(tracker, _)| *tracker).collect();
    all.sort_unstable();
    assert_eq!(known, all);
}
