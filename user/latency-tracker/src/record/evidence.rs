// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `evidence.json`: facts about limits that a trace does not contain.
//!
//! ```text
//!   armed            addresses of functions; names of disks; counters of all cgroups with a limit
//!   alert            the late tasks; limits and counters of their cgroups
//!   snapshot taken   counters of the same cgroups (some grow only when a thread is released); names of disks; cgroups
//!                    whose quota was used up, with their threads
//!   capture done     counters of all cgroups with a limit, for the next delay
//! ```
//!
//! Unreadable facts are omitted, and do not invalidate a capture. A note reports if no addresses or no late tasks can
//! be read at all. As few facts as possible are read between an alert and the snapshot, because the recorder overwrites
//! its oldest events meanwhile.

mod cgroups;
mod disks;
mod functions;
mod tasks;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lt_common::out::{self, note};
use lt_common::pids::are_numbered_as_in_alerts;
use lt_proc::evidence::{Evidence, Function, Task};
use lt_proc::{Alert, Nanos};

use self::cgroups::Groups;
use self::disks::Disks;
use self::functions::Unknown;

/// Maximum number of late tasks read for a capture, those with the longest delays.
const MOST_TASKS: usize = 64;

/// Facts about the machine, read before and between alerts.
#[derive(Debug)]
pub(crate) struct Collector {
    root: PathBuf,
    functions: Vec<Function>,
    groups: Groups,
    disks: Disks,
    /// Whether alerts and `/proc` use the same thread ids.
    same_ids: bool,
    /// Time taken to read the cgroups.
    took: Duration,
}

/// Facts read right after an alert.
#[derive(Debug)]
pub(crate) struct Seen {
    tasks: Vec<Task>,
    /// When the earliest delay began.
    start: u64,
}

impl Collector {
    /// Reads the facts that must be known before an alert. `root` is `/` except in tests.
    pub(crate) fn start(root: &Path) -> Self {
        let functions = functions::read(root).unwrap_or_else(|why| {
            let why = match why {
                Unknown::Unreadable(error) => format!("/proc/kallsyms: {error}"),
                Unknown::Hidden => "/proc/kallsyms hides them (kernel.kptr_restrict)".to_string(),
            };
            note(&format!(
                "addresses of kernel functions are not recorded ({why}): timers of limits cannot be identified"
            ));
            Vec::new()
        });
        let same_ids = are_numbered_as_in_alerts(root);
        if !same_ids {
            note(
                "late tasks and their cgroups are not recorded: this process runs in its own PID namespace",
            );
        }
        let begun = Instant::now();
        let groups = Groups::walk(root, cgroups::MOST);
        let took = begun.elapsed();
        if groups.is_cut() {
            note(&format!(
                "only the first {} cgroups are read before an alert",
                out::thousands(cgroups::MOST as u64)
            ));
        }
        let mut disks = Disks::default();
        disks.read(root);
        Self {
            root: root.to_path_buf(),
            functions,
            groups,
            disks,
            same_ids,
            took,
        }
    }

    /// Reads the late tasks of `alerts` and their cgroups.
    pub(crate) fn woken(&mut self, alerts: &[Alert]) -> Seen {
        let start = alerts.iter().map(Alert::start).min();
        let mut seen = Seen {
            tasks: Vec::new(),
            start: start.unwrap_or(0),
        };
        if !self.same_ids {
            return seen;
        }
        let mut longest: Vec<&Alert> = alerts.iter().collect();
        longest.sort_by_key(|alert| std::cmp::Reverse(alert.delay));
        let mut known = HashSet::new();
        longest.retain(|alert| alert.tid > 0 && known.insert(alert.tid));
        if longest.len() > MOST_TASKS {
            note(&format!(
                "evidence covers only {MOST_TASKS} of {} late tasks, those with the longest delays",
                longest.len()
            ));
        }
        let groups = &self.groups;
        let read = |alert: &&Alert| {
            let mut task = tasks::read(&self.root, alert)?;
            task.cgroup = task.cgroup.and_then(|path| groups.below_mount(&path));
            Some(task)
        };
        seen.tasks = longest.iter().take(MOST_TASKS).filter_map(read).collect();
        self.groups.read_again(&cgroups::chain(&seen.tasks, &[]));
        seen
    }

    /// Reads the cgroups of the late tasks and the throttled cgroups again, and returns all evidence.
    pub(crate) fn finish(&mut self, seen: Seen) -> Evidence {
        // A late task may have waited for a throttled thread.
        let throttled = match self.same_ids {
            true => self.groups.throttled(seen.start),
            false => Vec::new(),
        };
        let chain = cgroups::chain(&seen.tasks, &throttled);
        self.groups.read_again(&chain);
        self.disks.read(&self.root);
        Evidence {
            functions: self.functions.clone(),
            cgroups: self.groups.evidence(&chain, &throttled, seen.start),
            tasks: seen.tasks,
            disks: self.disks.evidence(),
        }
    }

    /// Reads the counters again, as the start values for the next delay.
    pub(crate) fn rearm(&mut self) {
        self.groups.read_limited();
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "evidence: {} kernel functions; cgroups with a limit: {} of {} (read in {})",
            self.functions.len(),
            out::thousands(self.groups.limited() as u64),
            out::thousands(self.groups.len() as u64),
            Nanos(self.took.as_nanos() as u64)
        )
    }
}

#[cfg(test)]
mod tests;
