// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `evidence.json` of a capture: facts that prove a cause, and that a trace cannot contain.
//! `record` writes it, `explain` reads it.

use serde::{Deserialize, Serialize};

/// Facts read from the machine around the alerts of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Kernel functions that prove a cause, with the same addresses as in the trace. Empty if the
    /// kernel hides them.
    pub functions: Vec<Function>,
    /// The late tasks, as they were after their alerts; tasks that had exited by then are left out.
    pub tasks: Vec<Task>,
    /// The cgroups of these tasks, and all ancestors, that have or had a limit or have been frozen.
    /// If `/` is among these cgroups, it has ancestors that are not visible, as in a container.
    pub cgroups: Vec<Cgroup>,
    /// The block devices. Older captures have none.
    #[serde(default)]
    pub disks: Vec<Disk>,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Major device number.
    pub major: u32,
    /// Minor device number.
    pub minor: u32,
    /// The name: `sda`, `loop0`; for a device of the device mapper, the mapper's name, such as `vg-root`.
    pub name: String,
}

/// A kernel function. Several may have the same name: the compiler's copies of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Name in `/proc/kallsyms`, without a suffix such as `.isra.0`.
    pub name: String,
    /// Start address.
    pub address: u64,
}

/// A task that was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Thread ID.
    pub tid: i32,
    /// When this was read, `CLOCK_MONOTONIC` ns.
    pub read: u64,
    /// Path of its cgroup below the mount point of cgroup v2, `/` for the root. `None`: not visible
    /// from there, or removed.
    pub cgroup: Option<String>,
    /// `SCHED_OTHER`, `SCHED_FIFO`, `SCHED_DEADLINE`, ...
    pub policy: Option<String>,
    /// `Cpus_allowed_list` in its `status`.
    pub cpus: Option<String>,
}

/// A cgroup that has or had a limit, or was frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its path, as in [`Task::cgroup`].
    pub path: String,
    /// The limits after the delay, with their contents: `cpu.max`, `memory.high`, `memory.max`,
    /// `io.max`, ...
    pub limits: Vec<(String, String)>,
    /// The threads in the cgroup after the snapshot was written, if its own quota or the quota of an ancestor was used
    /// up since the start of the delays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<i32>,
    /// The readings of its counters, the earliest first. If possible, the first reading was taken before the delays of
    /// all alerts; its `end` shows whether this succeeded. The last reading was taken when the snapshot of the trace
    /// had been written.
    pub reads: Vec<Counters>,
}

/// The counters of a cgroup at one time. `None`: there is no such counter, or it was not read then.
/// If a cgroup had no limit and had not been frozen yet, only [`Counters::frozen_usec`] was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Time before the first counter was read, `CLOCK_MONOTONIC` ns.
    pub begin: u64,
    /// Time after the last counter was read, `CLOCK_MONOTONIC` ns.
    pub end: u64,
    /// `cpu.stat`: number of periods in which its quota was used up.
    pub nr_throttled: Option<u64>,
    /// `cpu.stat`: how long it was throttled, us, summed over all CPUs. Increases when the
    /// throttling of a CPU ends.
    pub throttled_usec: Option<u64>,
    /// `memory.events.local`: how often a task was above `memory.high`.
    pub memory_high: Option<u64>,
    /// `memory.events.local`: how often `memory.max` was reached.
    pub memory_max: Option<u64>,
    /// `cgroup.events`: whether it is frozen.
    pub frozen: Option<bool>,
    /// `cgroup.stat.local`: how long it was frozen, us, by itself or by an ancestor, including a freeze in progress.
    pub frozen_usec: Option<u64>,
}
