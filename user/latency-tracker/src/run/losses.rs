// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Counters of an instance that show operations and alerts missing from a result.

use lt_proc::Stats;

/// Counters that show no loss: totals, levels, and events in the life of an operation that is measured nevertheless.
const COMPLETE: [&str; 31] = [
    "attempts",
    "started",
    "ended",
    // The instance is turned off before the counters are read, so operations in flight are `cleared`.
    "pending",
    "cleared",
    "timed_out",
    "late",
    "alerts",
    "wakes",
    "wakes_suppressed",
    "min",
    "mean",
    "max",
    "sum_us",
    "capacity",
    "max_capacity",
    "free",
    "grown",
    "before_start",
    "partial",
    "requeued",
    "reissued",
    "renamed",
    "early",
    "stacks",
    "copied",
    "consumed",
    "dropped",
    "work_begun",
    "work_done",
    "work_free",
];

/// Counters of missing operations and alerts. A name with a tracker is for that tracker alone.
const MISSING: [(&str, &str); 36] = [
    (
        "full",
        "operations lost, since the pool was full; a larger max_events= avoids it",
    ),
    (
        "crowded",
        "operations lost, since too many of their key were in flight",
    ),
    (
        "filtered",
        "operations refused by the filters, such as those of other tasks",
    ),
    (
        "off",
        "operations that started while the instance was turned off",
    ),
    (
        "replaced",
        "operations dropped, since their key started again before they had ended",
    ),
    (
        "gone",
        "operations dropped, since their object was gone without an end",
    ),
    (
        "unmatched",
        "ends without a start: begun before the run, or not tracked for another reason in this list",
    ),
    (
        "negative",
        "operations that ended before their start, by the clock; not in the histogram",
    ),
    (
        "before_start_ended",
        "operations that began before the run, at an unknown time; not in the histogram",
    ),
    (
        "grow_failed",
        "attempts to enlarge the pool that failed for lack of memory",
    ),
    ("alerts_lost", "alerts that found no place in the ring"),
    (
        "overruns",
        "alerts overwritten before they were read; a larger ring= avoids it",
    ),
    (
        "alerts_suppressed",
        "late operations without an alert: over max_alerts= in that second",
    ),
    (
        "readers",
        "late operations without an alert: of tasks that read alerts",
    ),
    (
        "missed",
        "calls not followed, since fprobe had no room for their return",
    ),
    ("own", "calls not followed, since the module made them"),
    (
        "again",
        "starts that were ignored, since their key was live already (again=keep)",
    ),
    (
        "over_max",
        "late operations without an alert: longer than max=",
    ),
    (
        "closed",
        "of gone: connections closed without a byte from the server",
    ),
    (
        "unissued",
        "of gone: requests completed without having been issued, such as flushes",
    ),
    ("aborted", "of gone: requests given back without an end"),
    (
        "merged",
        "of gone: requests joined with another request; its delay covers them",
    ),
    (
        "net.merged",
        "of gone: packets appended to the one before in the queue of a socket",
    ),
    (
        "gro",
        "of gone: received packets that were passed to GRO; what it delivers counts as received again",
    ),
    (
        "tree.merged",
        "wakeups of a task, and raises of a softirq, that were on a chain already",
    ),
    ("awake", "of gone: wakeups of a task that did not sleep"),
    (
        "unqueued",
        "work items that ran without having been seen in a queue; not measured",
    ),
    (
        "stale",
        "operations in interrupts that have no tracepoint, on no chain",
    ),
    (
        "shortened",
        "late chains that left out steps; their delay is complete",
    ),
    (
        "unserved",
        "softirqs not followed, since four others were in progress on their CPU",
    ),
    (
        "endless",
        "of gone: chains of threads that keep sleeping uninterruptibly",
    ),
    (
        "busy",
        "references refused, since the event had 255 of them",
    ),
    (
        "nested",
        "callbacks not called, since four others were running",
    ),
    ("work_full", "marks of work refused for lack of room"),
    ("work_unmatched", "marks of done work without a begin"),
    ("work_pending", "work that has begun and is not done"),
];

/// The counters of missing operations and alerts that are not 0, with a sentence each.
pub(crate) fn losses<'a>(tracker: &str, stats: &'a Stats) -> Vec<(&'a str, u64, &'static str)> {
    let missing = |(key, n): (&'a str, u64)| {
        (n > 0 && !COMPLETE.contains(&key)).then(|| (key, n, sentence(tracker, key)))
    };
    stats.iter().filter_map(missing).collect()
}

fn sentence(tracker: &str, key: &str) -> &'static str {
    let find = |name: &str| MISSING.iter().find(|(known, _)| *known == name);
    let known = find(&format!("{tracker}.{key}")).or_else(|| find(key));
    known.map_or(
        "a counter of a newer module; see the page of the tracker",
        |(_, text)| text,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_shown_each_with_a_sentence() {
        let stats = Stats::parse(
            "attempts 9\nfull 2\nfiltered 0\nended 5\nmerged 3\nreplaced 1\ncleared 4\nshade 7\n",
        )
        .unwrap();
        let keys = |tracker| {
            let losses = losses(tracker, &stats);
            losses
                .iter()
                .map(|(key, n, _)| (*key, *n))
                .collect::<Vec<_>>()
        };
        let all = [("full", 2), ("merged", 3), ("replaced", 1), ("shade", 7)];
        assert_eq!(keys("block"), all);
        assert!(sentence("block", "merged").contains("requests"));
        assert!(sentence("net", "merged").contains("packets"));
        assert!(sentence("block", "shade").contains("newer module"));
    }

    #[test]
    fn every_counter_of_the_module_is_known() {
        let abi = include_str!("../../../../tests/abi.txt");
        let lines = abi
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("stats: "));
        let mut keys: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        assert!(keys.len() > 100);
        keys.sort_unstable();
        keys.dedup();
        let is_known =
            |key: &str| COMPLETE.contains(&key) || MISSING.iter().any(|(known, _)| known == &key);
        let unknown: Vec<_> = keys.iter().filter(|key| !is_known(key)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
