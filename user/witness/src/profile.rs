// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Judges the profile of the tracker `io`, together with its alerts.
//!
//! The instance reports everything (threshold 0). Then three things must hold:
//!
//! 1. The alerts match the trace, one by one: place, class, delay (see `judge`).
//! 2. The profile is the histogram of the delays in the alerts, count for count.
//! 3. The profile matches the trace. The module and the tracer read their clocks a few hundred instructions apart, and
//!    the text of a trace shows only microseconds: a delay within `EDGE` of the bound of a row may be on either side of
//!    it. An interrupt may come between the two reads, so up to 1 + N/100 of N delays may be in any row.
//!
//! The profile covers the system calls of a task and its descendants, or the block requests of a disk.

use std::collections::{BTreeMap, BTreeSet};

use crate::babeltrace::Dev;
use anyhow::{Context, Result, ensure};
use lt_proc::{Profile, StreamLine};

use crate::alerts::Reported;
use crate::input::{BlockEvent, Kind};
use crate::judge::{self, Limits, Verdict};
use crate::lines::{self, Line};
use crate::pair::{From, Pairing, Place, Request};

/// Distance from the bound of a row within which a delay may be in either row, ns.
const EDGE: u64 = 5_000;

/// Numbers of the system calls of each class on x86-64.
#[cfg(not(target_arch = "aarch64"))]
const CALLS: [(&str, &[u32]); 6] = [
    ("s_read", &[0, 17, 19, 45, 47, 295, 299, 327]),
    ("s_write", &[1, 18, 20, 44, 46, 296, 307, 328]),
    ("s_rw", &[40, 275, 276, 278, 326]),
    ("s_sync", &[26, 74, 75, 162, 277, 306]),
    ("s_open", &[2, 42, 43, 85, 257, 288, 304, 437]),
    ("s_close", &[3, 48, 436]),
];
/// Numbers of the system calls of each class on arm64.
#[cfg(target_arch = "aarch64")]
const CALLS: [(&str, &[u32]); 6] = [
    ("s_read", &[63, 65, 67, 69, 207, 212, 243, 286]),
    ("s_write", &[64, 66, 68, 70, 206, 211, 269, 287]),
    ("s_rw", &[71, 75, 76, 77, 285]),
    ("s_sync", &[81, 82, 83, 84, 227, 267]),
    ("s_open", &[56, 202, 203, 242, 265, 437]),
    ("s_close", &[57, 210, 436]),
];

/// The subject of a profile.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    /// System calls of a task and its descendants.
    Task(u32),
    /// Requests of a disk.
    Disk(Dev),
}

/// Compares the profile, the alerts and the trace.
pub(crate) fn check(
    subject: Subject,
    trace: &str,
    alerts: &str,
    profile: &str,
    limits: &Limits,
) -> Result<Verdict> {
    let profile = Profile::parse(profile).context("the profile")?;
    let reported = reported(subject, alerts).context("the alerts")?;
    let paired = match subject {
        Subject::Task(root) => calls(trace, root),
        Subject::Disk(dev) => requests(trace, dev),
    };
    let paired = paired.context("the trace")?;
    let mut verdict = judge::judge(&paired, &reported, limits);
    let kind = match subject {
        Subject::Task(_) => "s_",
        Subject::Disk(_) => "b_",
    };
    let mut near = 0;
    for class in profile.classes.iter().filter(|c| c.name.starts_with(kind)) {
        let said = format!("class={}", class.name);
        let is_it = |text: &str| text.split(' ').next() == Some(said.as_str());
        let told = reported.iter().filter(|alert| is_it(&alert.said));
        let seen = paired
            .finished
            .iter()
            .filter(|request| is_it(&request.said));
        let told: Vec<u64> = told.map(|alert| alert.delay).collect();
        let seen: Vec<u64> = seen.map(|request| request.delay).collect();
        near += seen
            .iter()
            .filter(|delay| is_near(&profile, **delay))
            .count();
        verdict
            .faults
            .extend(exactly(&profile, &class.name, &class.counts, &told));
        verdict
            .faults
            .extend(nearly(&profile, &class.name, &class.counts, &seen));
    }
    verdict.note(&format!("near_a_bound={near}"));
    Ok(verdict)
}

/// Whether a delay is so close to the bound of a row that either row is right.
fn is_near(profile: &Profile, delay: u64) -> bool {
    let bounds = profile.rows.iter().skip(1).map(|row| row.low);
    bounds.into_iter().any(|bound| bound.abs_diff(delay) < EDGE)
}

/// Compares the profile with the alerts; returns the faults.
fn exactly(profile: &Profile, class: &str, counts: &[u64], delays: &[u64]) -> Vec<String> {
    let rows = profile.rows.iter().zip(counts);
    let wrong = rows.filter_map(|(row, count)| {
        let first = row.low == 1;
        let is_in = |d: &&u64| (**d >= row.low || first) && row.high.is_none_or(|high| **d < high);
        let found = delays.iter().filter(is_in).count() as u64;
        let label = &row.label;
        (found != *count)
            .then(|| format!("{class} {label}: {count} in the profile, {found} alerts"))
    });
    wrong.collect()
}

/// Compares the profile with the trace, by the number of delays below each bound.
fn nearly(profile: &Profile, class: &str, counts: &[u64], delays: &[u64]) -> Vec<String> {
    let mut faults = Vec::new();
    let total: u64 = counts.iter().sum();
    if total != delays.len() as u64 {
        let seen = delays.len();
        faults.push(format!(
            "{class}: {total} in the profile, {seen} in the trace"
        ));
    }
    let mut below = 0;
    for (row, count) in profile.rows.iter().zip(counts) {
        below += count;
        let Some(high) = row.high else { continue };
        let seen = |bound: u64| delays.iter().filter(|delay| **delay < bound).count() as u64;
        let (least, most) = (seen(high.saturating_sub(EDGE)), seen(high + EDGE));
        let odd = 1 + total / 100;
        if below + odd < least || below > most + odd {
            faults.push(format!(
                "{class} up to {}: {below} in the profile, {least} to {most} in the trace",
                row.label
            ));
        }
    }
    faults
}

fn class_of(number: u32) -> Option<&'static str> {
    let mut all = CALLS.iter();
    let found = all.find(|(_, numbers)| numbers.contains(&number));
    found.map(|(class, _)| *class)
}

/// Finds the calls of a task and its descendants that start at or after the first mark and have a class. A call that
/// does not end is an error.
fn calls(text: &str, root: u32) -> Result<Pairing> {
    let events = ["sys_enter", "sys_exit", "sched_process_fork"];
    let (lines, marks) = lines::read(text, |event| events.contains(&event))?;
    let mut family = BTreeSet::from([root]);
    let mut open: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
    let mut pairing = Pairing::default();
    for line in lines.iter().filter(|line| line.time >= marks.begin) {
        match line.event {
            "sched_process_fork" => {
                let child = number_after(line, "child_pid=")?;
                if family.contains(&line.current) {
                    family.insert(child);
                }
            }
            "sys_enter" => {
                open.insert(line.current, (line.time, number_after(line, "NR ")?));
            }
            "sys_exit" => {
                let Some((start, number)) = open.remove(&line.current) else {
                    continue;
                };
                let class = class_of(number).filter(|_| family.contains(&line.current));
                pairing.finished.extend(class.map(|class| Request {
                    place: Place::Task(line.current),
                    delay: line.time - start,
                    end: line.time,
                    said: format!("class={class} call={number}"),
                    or: None,
                    within: None,
                }));
            }
            _ => {}
        }
    }
    let is_pending = |(tid, (_, number)): &(&u32, &(u64, u32))| {
        family.contains(tid) && class_of(*number).is_some()
    };
    pairing.pending = open.iter().filter(is_pending).count() as u64;
    ensure!(
        pairing.pending == 0,
        "calls of the task have not ended: the trace is too short"
    );
    Ok(pairing)
}

fn number_after(line: &Line<'_>, mark: &str) -> Result<u32> {
    let found = line.fields.split_once(mark).map(|(_, rest)| rest);
    let word = found.and_then(|rest| rest.split(' ').next());
    let number = word.and_then(|word| word.parse().ok());
    number.with_context(|| format!("no {mark}NUMBER in {line:?}"))
}

/// Finds the requests of a disk that read or write.
fn requests(text: &str, dev: Dev) -> Result<Pairing> {
    let mut events = crate::ftrace::parse(text)?;
    events.retain(|event| event.dev == dev);
    let mut all = Pairing::default();
    for (class, letter) in [("b_read", 'R'), ("b_write", 'W')] {
        // An F before the operation is a preceding flush.
        let is_it = |event: &&BlockEvent| {
            let op = event.op.strip_prefix('F').unwrap_or(&event.op);
            op.starts_with(letter) && (event.sectors > 0 || event.kind != Kind::Complete)
        };
        let events: Vec<BlockEvent> = events.iter().filter(is_it).cloned().collect();
        let paired = Pairing::run(&events, From::Issue);
        ensure!(
            paired.unmatched == 0,
            "completions without a start: start the trace first"
        );
        all.pending += paired.pending;
        all.ambiguous += paired.ambiguous;
        all.requeued += paired.requeued;
        all.merged += paired.merged;
        all.partial += paired.partial;
        all.finished
            .extend(paired.finished.into_iter().map(|request| Request {
                said: format!("class={class}"),
                ..request
            }));
    }
    Ok(all)
}

/// Returns the alerts with a system call, for a task, or with a sector, for a disk. Lost or missing alerts, and
/// requests of another disk, are an error.
fn reported(subject: Subject, text: &str) -> Result<Vec<Reported>> {
    let mut reported = Vec::new();
    let mut last: Option<u64> = None;
    for (i, line) in text.lines().enumerate() {
        let place = || format!("line {}", i + 1);
        let StreamLine::Alert(alert) = StreamLine::parse(line).with_context(place)? else {
            anyhow::bail!("{}: alerts were lost: enlarge ring=", place());
        };
        ensure!(
            last.is_none_or(|last| alert.seq == last + 1),
            "{}: seq={} follows seq={last:?}",
            place(),
            alert.seq
        );
        last = Some(alert.seq);
        let word = |name: &str| alert.fields.text(name).map(|text| text.to_string());
        let class = word("class").with_context(|| format!("{}: no class=", place()))?;
        let (found, said) = match subject {
            Subject::Task(_) => {
                let Some(number) = word("call") else { continue };
                let tid = u32::try_from(alert.tid).with_context(place)?;
                (Place::Task(tid), format!("class={class} call={number}"))
            }
            Subject::Disk(dev) => {
                let Some(sector) = alert.fields.number("sector") else {
                    continue;
                };
                let is_it = word("dev").and_then(|text| Dev::parse(&text)) == Some(dev);
                ensure!(is_it, "{}: of another disk", place());
                (Place::Disk(dev, sector), format!("class={class}"))
            }
        };
        reported.push(Reported {
            seq: alert.seq,
            place: found,
            delay: alert.delay,
            time: alert.time,
            said,
        });
    }
    Ok(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "# entries-in-buffer/entries-written: 9/9   #P:2
  sh-1    [000] .....  0.500000: sys_enter: NR 0 (3, 7f, 10, 0, 0, 0)
  io-7    [000] .....  0.900000: sys_enter: NR 0 (3, 7f, 10, 0, 0, 0)
  sh-1    [000] .....  1.000000: tracing_mark_write: lt-witness begin
  io-7    [001] .....  1.100000: sys_exit: NR 0 = 16
  io-7    [001] .....  2.000000: sys_enter: NR 1 (3, 7f, 10, 0, 0, 0)
  io-7    [001] .....  2.000100: sys_exit: NR 1 = 16
  io-7    [001] .....  2.100000: sched_process_fork: comm=io pid=7 child_comm=io child_pid=8
  io-8    [000] .....  2.200000: sys_enter: NR 74 (3, 7f, 10, 0, 0, 0)
  sh-1    [001] .....  2.200500: sys_enter: NR 3 (3, 7f, 10, 0, 0, 0)
  sh-1    [001] .....  2.200600: sys_exit: NR 3 = 0
  io-8    [000] .....  2.203000: sys_exit: NR 74 = 0
  io-8    [000] .....  2.300000: sys_enter: NR 39 (3, 7f, 10, 0, 0, 0)
  io-8    [000] .....  2.303000: sys_exit: NR 39 = 8
  sh-1    [000] .....  3.000000: tracing_mark_write: lt-witness end
";

    fn alert(seq: u64, tid: u32, delay: u64, said: &str) -> String {
        format!(
            "seq={seq} time=9000000000 instance=io tracker=io reason=threshold delay={delay} threshold=0 cpu=0 \
             pid={tid} tid={tid} comm=\"io\" {said}\n"
        )
    }

    fn alerts() -> String {
        alert(1, 7, 100_400, "class=s_write call=1")
            + &alert(2, 8, 3_000_200, "class=s_sync call=74")
    }

    fn profile(write: u64, sync: u64) -> String {
        let mut text = "# begin=1 end=9\nrange s_read s_write s_sync b_read\n".to_string();
        for bit in 0..41 {
            let bound = |bit: u32| match bit / 10 {
                0 => format!("{}ns", 1 << bit),
                1 => format!("{}us", 1 << (bit - 10)),
                2 => format!("{}ms", 1 << (bit - 20)),
                _ => format!("{}s", 1 << (bit - 30)),
            };
            let write = if bit == 16 { write } else { 0 };
            let sync = if bit == 21 { sync } else { 0 };
            text += &format!("[{},{}[ 0 {write} {sync} 7\n", bound(bit), bound(bit + 1));
        }
        text
    }

    fn faults(trace: &str, alerts: &str, profile: &str) -> Vec<String> {
        let limits = Limits {
            expect_at_least: 2,
            ..Limits::default()
        };
        check(Subject::Task(7), trace, alerts, profile, &limits)
            .unwrap()
            .faults
    }

    #[test]
    fn the_truth_is_accepted() {
        assert_eq!(faults(TRACE, &alerts(), &profile(1, 1)), [""; 0]);
    }

    #[test]
    fn a_wrong_count_is_rejected_twice() {
        let found = faults(TRACE, &alerts(), &profile(2, 1));
        assert!(
            found[0].contains("s_write [64us,128us[: 2 in the profile, 1 alerts"),
            "{found:?}"
        );
        assert!(
            found[1].contains("s_write: 2 in the profile, 1 in the trace"),
            "{found:?}"
        );
    }

    #[test]
    fn calls_in_another_row_are_rejected() {
        let at = |delay: u64| [delay; 10].to_vec();
        let profile = Profile::parse(&profile(10, 1)).unwrap();
        let found =
            |delays: &[u64]| nearly(&profile, "s_write", &profile.classes[1].counts, delays);
        assert_eq!(found(&at(100_000)), [""; 0]);
        assert_eq!(found(&at(200_000)).len(), 1, "up to 128us");
        // 64 us are 65,536 ns.
        assert_eq!(found(&at(65_100)), [""; 0], "near to the bound");
        assert_eq!(found(&at(60_000)).len(), 1, "up to 64us");
        let mut one = at(100_000);
        one[3] = 900_000;
        assert_eq!(found(&one), [""; 0], "one of a few");
        one[4] = 900_000;
        assert!(!found(&one).is_empty());
        assert_eq!(
            found(&at(100_000)[1..]),
            ["s_write: 10 in the profile, 9 in the trace"]
        );
    }

    #[test]
    fn a_missing_alert_and_another_class_are_rejected() {
        assert!(
            !faults(
                TRACE,
                &alert(1, 7, 100_400, "class=s_write call=1"),
                &profile(1, 1)
            )
            .is_empty()
        );
        assert!(!faults(TRACE, &alerts().replace("s_sync", "s_open"), &profile(1, 1)).is_empty());
    }

    #[test]
    fn calls_of_other_tasks_and_earlier_calls_are_not_judged() {
        let pairing = calls(TRACE, 7).unwrap();
        let said: Vec<&str> = pairing.finished.iter().map(|r| r.said.as_str()).collect();
        assert_eq!(said, ["class=s_write call=1", "class=s_sync call=74"]);
    }

    #[test]
    fn requests_are_distinguished_by_their_operation() {
        let line = |time: &str, what: &str| format!(" a-1 [000] ..... {time}: block_rq_{what}\n");
        let text = "# entries-in-buffer/entries-written: 9/9   #P:2\n".to_string()
            + &line("1.0", "issue: 8,0 R 4096 () 8 + 8 none,0,0 [a]")
            + &line("1.1", "issue: 8,0 FWFS 4096 () 16 + 8 none,0,0 [a]")
            + &line("1.2", "issue: 8,0 FF 0 () 0 + 0 none,0,0 [a]")
            + &line("1.3", "issue: 8,0 D 4096 () 24 + 8 none,0,0 [a]")
            + &line("2.0", "complete: 8,0 R () 8 + 8 none,0,0 [0]")
            + &line("2.1", "complete: 8,0 FWFS () 16 + 8 none,0,0 [0]")
            + &line("2.2", "complete: 8,0 FF () 0 + 0 none,0,0 [0]")
            + &line("2.3", "complete: 8,0 D () 24 + 8 none,0,0 [0]");
        let found = requests(&text, Dev { major: 8, minor: 0 })
            .unwrap()
            .finished;
        let said: Vec<&str> = found.iter().map(|r| r.said.as_str()).collect();
        assert_eq!(said, ["class=b_read", "class=b_write"]);
    }
}
