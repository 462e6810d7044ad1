// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `evidence.json` of a capture: what a trace cannot hold and a cause needs as proof. `record` writes it, `explain`
//! reads it.

use serde::{Deserialize, Serialize};

/// What was read from the machine around the alerts of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Kernel functions that are proofs, with their addresses as the trace has them.
    pub functions: Vec<Function>,
    /// The late tasks, as they were after their alerts.
    pub tasks: Vec<Task>,
    /// Their cgroups and the cgroups above, those with a limit or a freezer.
    pub cgroups: Vec<Cgroup>,
}

/// A kernel function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// As in `/proc/kallsyms`, without a suffix such as `.isra.0`.
    pub name: String,
    /// Where it begins.
    pub address: u64,
}

/// A task that was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number.
    pub tid: i32,
    /// `CLOCK_MONOTONIC`, ns, when this was read.
    pub read: u64,
    /// Its path below the mount point of cgroup v2, `/` for the root.
    pub cgroup: Option<String>,
    /// `SCHED_OTHER`, `SCHED_FIFO`, `SCHED_DEADLINE`, ...
    pub policy: Option<String>,
    /// `Cpus_allowed_list` of its status.
    pub cpus: Option<String>,
}

/// A cgroup with a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its path, as in [`Task::cgroup`].
    pub path: String,
    /// `cpu.max`, `memory.high`, `memory.max`, `io.max`, ... that are set, with their contents.
    pub limits: Vec<(String, String)>,
    /// What its counters were, the earliest first: before the delay if it could be read then, and after it.
    pub reads: Vec<Counters>,
}

/// The counters of a cgroup at one time. `None`: there is no such counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// `CLOCK_MONOTONIC`, ns, before the first was read.
    pub begin: u64,
    /// The same, after the last was read.
    pub end: u64,
    /// `cpu.stat`: how often its quota was used up.
    pub nr_throttled: Option<u64>,
    /// `cpu.stat`: for how long its CPUs were held back by it, us, all CPUs together.
    pub throttled_usec: Option<u64>,
    /// `memory.events.local`: how often a task was above `memory.high`.
    pub memory_high: Option<u64>,
    /// `memory.events.local`: how often `memory.max` was reached.
    pub memory_max: Option<u64>,
    /// `cgroup.events`: whether it is frozen.
    pub frozen: Option<bool>,
    /// `cgroup.stat.local`: for how long it was frozen, us.
    pub frozen_usec: Option<u64>,
}
