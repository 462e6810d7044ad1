// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Facts about the late tasks, from `/proc`.

use std::fs;
use std::path::Path;

use lt_common::clock::{self, monotonic};
use lt_proc::Alert;
use lt_proc::evidence::Task;

/// Clock ticks a second in `/proc/TID/stat`: `USER_HZ`.
const TICKS: u64 = 100;

/// The late task of `alert`; `None` if it has ended. The path of its cgroup comes from `/proc/TID/cgroup`.
pub(super) fn read(root: &Path, alert: &Alert) -> Option<Task> {
    let directory = root.join("proc").join(alert.tid.to_string());
    let text = |name: &str| {
        let bytes = fs::read(directory.join(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let read = monotonic();
    let (started, policy) = of_stat(&text("stat")?)?;
    // Start times include suspends, times of alerts do not.
    let suspended = clock::suspended().as_nanos() as u64;
    // The id was reused: this task is newer than the alert.
    if started.saturating_mul(1_000_000_000 / TICKS) > alert.time.saturating_add(suspended) {
        return None;
    }
    let status = text("status");
    let cgroup = text("cgroup");
    let after = |text: &Option<String>, head: &str| {
        let found = text.as_ref()?.lines().find_map(|l| l.strip_prefix(head))?;
        Some(found.trim().to_string())
    };
    Some(Task {
        tid: i32::try_from(alert.tid).ok()?,
        read,
        cgroup: after(&cgroup, "0::"),
        policy,
        cpus: after(&status, "Cpus_allowed_list:"),
    })
}

/// Start time, in ticks since boot, and scheduling policy in `/proc/TID/stat`: fields 22 and 41. The name before them
/// may contain anything, but ends with the last `)`.
fn of_stat(stat: &str) -> Option<(u64, Option<String>)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let field = |n: usize| rest.split_ascii_whitespace().nth(n - 3);
    let policy = match field(41) {
        Some("0") => "SCHED_OTHER",
        Some("1") => "SCHED_FIFO",
        Some("2") => "SCHED_RR",
        Some("3") => "SCHED_BATCH",
        Some("5") => "SCHED_IDLE",
        Some("6") => "SCHED_DEADLINE",
        Some("7") => "SCHED_EXT",
        _ => return Some((field(22)?.parse().ok()?, None)),
    };
    Some((field(22)?.parse().ok()?, Some(policy.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_and_start_are_found_after_any_name() {
        let rest = (4..=52)
            .map(|n| if n == 41 { 6 } else { n }.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        let stat = format!("17 (a) S 1 (b c) R {rest}\n");
        assert_eq!(of_stat(&stat), Some((22, Some("SCHED_DEADLINE".into()))));
        assert_eq!(of_stat("17 (a) R 1"), None);
    }

    #[test]
    fn this_process_is_read() {
        let alert = |time: u64| {
            Alert::parse(&format!(
                "seq=1 time={time} instance=a tracker=offcpu reason=threshold delay=1 threshold=1 cpu=0 pid=1 tid={} \
                 comm=\"x\"",
                std::process::id()
            ))
            .unwrap()
        };
        let task = read(Path::new("/"), &alert(monotonic())).unwrap();
        assert!(task.policy.is_some() && task.cpus.is_some(), "{task:?}");
        // The late task with this id ended before this task was created.
        assert_eq!(read(Path::new("/"), &alert(0)), None);
    }
}
