// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Describes the operations in flight at the start of an instance that are not tracked.

use lt_proc::{Instance, Stats, TrackerInfo};

/// Returns a clause about the operations that were in flight at the start and are not tracked; `None` if the tracker
/// finds all of them.
pub(crate) fn unseen(
    instance: &Instance,
    stats: &Stats,
    info: Option<&TrackerInfo>,
) -> Option<&'static str> {
    let lacks = info.and_then(|info| info.lacks.as_deref());
    let finds_none = lacks.is_some_and(|lacks| lacks.contains("in flight at the start"));
    if stats.get("before_start").is_none() || finds_none {
        return Some("operations in flight before its start are not tracked");
    }
    match instance.tracker.as_str() {
        "offcpu" => None,
        "syscall" => {
            Some("of the calls in flight before its start, only those whose task slept are tracked")
        }
        "lock" => Some(
            "of the waits in flight before its start, only those of tasks asleep for a mutex are tracked; on PREEMPT_RT, none is",
        ),
        _ => Some("not all operations in flight before its start are tracked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_in_flight_at_the_start_that_are_not_tracked_are_reported() {
        let instance = |tracker: &str| Instance {
            name: "a".to_string(),
            tracker: tracker.to_string(),
            params: lt_proc::Fields::default(),
        };
        let stock = Stats::parse("started 1\nbefore_start 1\nbefore_start_ended 0\n").unwrap();
        let none = Stats::parse("started 1\n").unwrap();
        assert_eq!(unseen(&instance("offcpu"), &stock, None), None);
        assert!(
            unseen(&instance("offcpu"), &none, None).is_some(),
            "an older module"
        );
        assert!(
            unseen(&instance("syscall"), &stock, None)
                .unwrap()
                .contains("slept")
        );
        assert!(
            unseen(&instance("lock"), &stock, None)
                .unwrap()
                .ends_with("on PREEMPT_RT, none is")
        );
        assert!(
            unseen(&instance("block"), &none, None)
                .unwrap()
                .contains("not tracked")
        );
        let arm64 = "syscall: x; lacks: calls in flight at the start, on arm64\n";
        let arm64 = TrackerInfo::parse_all(arm64).unwrap();
        assert_eq!(
            unseen(&instance("syscall"), &stock, arm64.first()),
            unseen(&instance("block"), &none, None)
        );
    }
}
