// SPDX-License-Identifier: GPL-2.0 OR MIT

//! What an instance does not see of the operations that were under way when it started.

use lt_proc::{Instance, Stats};

/// As a clause about the instance; `None` if it sees them all.
pub(crate) fn unseen(instance: &Instance, stats: &Stats) -> Option<&'static str> {
    if stats.get("before_start").is_none() {
        return Some("operations that began before it started are not seen");
    }
    match instance.tracker.as_str() {
        "offcpu" => None,
        "syscall" => {
            Some("of calls that began before it started, only those are seen whose task slept then")
        }
        "lock" => Some(
            "of waits that began before it started, only those are seen whose task slept for a mutex",
        ),
        _ => Some("not all operations that began before it started are seen"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracker_that_takes_no_stock_says_so() {
        let instance = |tracker: &str| Instance {
            name: "a".to_string(),
            tracker: tracker.to_string(),
            params: lt_proc::Fields::default(),
        };
        let stock = Stats::parse("started 1\nbefore_start 1\nbefore_start_ended 0\n").unwrap();
        let none = Stats::parse("started 1\n").unwrap();
        assert_eq!(unseen(&instance("offcpu"), &stock), None);
        assert!(
            unseen(&instance("offcpu"), &none).is_some(),
            "an older module"
        );
        assert!(
            unseen(&instance("syscall"), &stock)
                .unwrap()
                .contains("slept")
        );
        assert!(
            unseen(&instance("block"), &none)
                .unwrap()
                .contains("not seen")
        );
    }
}
