// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `evidence.json` of a capture: what a trace cannot hold and a cause needs as proof. `record` writes it, `explain`
//! reads it.

use serde::{Deserialize, Serialize};

/// Facts read from the machine around the alerts of a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Kernel functions that are proofs, with their addresses as the trace has them. Empty if the kernel hides them.
    pub functions: Vec<Function>,
    /// The late tasks, as they were after their alerts; without those that had ended.
    pub tasks: Vec<Task>,
    /// Those of their cgroups, and of the cgroups above, that have a limit, had one, or were frozen at some time. If `/` is
    /// one of them, there are cgroups above it that are not visible, as in a container.
    pub cgroups: Vec<Cgroup>,
    /// The block devices. Captures of before have none.
    #[serde(default)]
    pub disks: Vec<Disk>,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Device numbers.
    pub major: u32,
    /// The second one.
    pub minor: u32,
    /// `sda`, `loop0`; of the device mapper the name that it has there, `vg-root`.
    pub name: String,
}

/// A kernel function. Several may have one name: the compiler's copies of it.
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
    /// `CLOCK_MONOTONIC`, ns, when this was read.
    pub read: u64,
    /// Its path below the mount point of cgroup v2, `/` for the root. `None`: not visible from there, or removed.
    pub cgroup: Option<String>,
    /// `SCHED_OTHER`, `SCHED_FIFO`, `SCHED_DEADLINE`, ...
    pub policy: Option<String>,
    /// `Cpus_allowed_list` of its status.
    pub cpus: Option<String>,
}

/// A cgroup with a limit, or one that was frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Its path, as in [`Task::cgroup`].
    pub path: String,
    /// `cpu.max`, `memory.high`, `memory.max`, `io.max`, ... that were set after the delay, with their contents.
    pub limits: Vec<(String, String)>,
    /// The threads in it when the snapshot had been written, if a quota of it or of one above was used up since the delays
    /// began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<i32>,
    /// What its counters were, the earliest first. The first one was read before the delays of all alerts, if it could be
    /// read then: its `end` shows that. The last one was read when the snapshot of the trace had been written.
    pub reads: Vec<Counters>,
}

/// The counters of a cgroup at one time. `None`: there is no such counter, or it was not read then. Of a cgroup that had no
/// limit yet, only [`Counters::frozen_usec`] was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// `CLOCK_MONOTONIC`, ns, before the first was read.
    pub begin: u64,
    /// `CLOCK_MONOTONIC`, ns, after the last was read.
    pub end: u64,
    /// `cpu.stat`: how often its quota was used up.
    pub nr_throttled: Option<u64>,
    /// `cpu.stat`: for how long its CPUs were held back by it, us, all CPUs together. Grows when they are released.
    pub throttled_usec: Option<u64>,
    /// `memory.events.local`: how often a task was above `memory.high`.
    pub memory_high: Option<u64>,
    /// `memory.events.local`: how often `memory.max` was reached.
    pub memory_max: Option<u64>,
    /// `cgroup.events`: whether it is frozen.
    pub frozen: Option<bool>,
    /// `cgroup.stat.local`: for how long it was frozen, us, also by a cgroup above; with the present freeze.
    pub frozen_usec: Option<u64>,
}
