// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Threads, as /proc shows them.

use super::cpus::Cpus;
use super::root::{Missing, Root, missing};

/// Flags of a task (include/linux/sched.h): a kernel thread, and a thread whose affinity is fixed.
const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// Policies (include/uapi/linux/sched.h).
const SCHED_FIFO: u64 = 1;
const SCHED_RR: u64 = 2;
const SCHED_DEADLINE: u64 = 6;

/// The fields of a `stat` file that are used.
#[derive(Debug)]
pub(super) struct Stat {
    comm: String,
    flags: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    priority: u64,
    policy: u64,
}

impl Stat {
    pub(super) fn read(root: &Root, path: &str) -> Result<Self, Missing> {
        let text = root.text(path)?;
        let bad = || missing(format!("{path}: unexpected content '{text}'"));
        // A name may contain spaces and parentheses; the fields after it do not.
        let (start, rest) = text.rsplit_once(')').ok_or_else(bad)?;
        let (_, comm) = start.split_once('(').ok_or_else(bad)?;
        // Fields are numbered as in proc_pid_stat(5); the state, after the name, is 3.
        let words: Vec<&str> = rest.split_whitespace().collect();
        let field = |n: usize| {
            words
                .get(n - 3)
                .and_then(|word| word.parse().ok())
                .ok_or_else(bad)
        };
        Ok(Self {
            comm: comm.to_string(),
            flags: field(9)?,
            minor_faults: field(10)?,
            major_faults: field(12)?,
            priority: field(40)?,
            policy: field(41)?,
        })
    }
}

/// A thread.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) name: String,
    /// Whether it is a kernel thread.
    pub(super) kernel: bool,
    /// Whether its affinity is fixed, as for a per-CPU kernel thread.
    pub(super) bound: bool,
    /// The real-time priority; 0 for other threads and for SCHED_DEADLINE.
    pub(super) priority: u64,
    policy: u64,
    pub(super) allowed: Cpus,
}

impl Task {
    fn read(root: &Root, pid: u32, tid: u32) -> Result<Self, Missing> {
        let stat = Stat::read(root, &format!("/proc/{pid}/task/{tid}/stat"))?;
        let allowed = status(root, pid, tid, "Cpus_allowed_list")?;
        Ok(Self {
            pid,
            tid,
            name: stat.comm,
            kernel: stat.flags & PF_KTHREAD != 0,
            bound: stat.flags & PF_NO_SETAFFINITY != 0,
            priority: stat.priority,
            policy: stat.policy,
            allowed: allowed.parse().map_err(missing)?,
        })
    }

    pub(super) fn is_real_time(&self) -> bool {
        matches!(self.policy, SCHED_FIFO | SCHED_RR | SCHED_DEADLINE)
    }

    /// Returns `name[tid]`.
    pub(super) fn shown(&self) -> String {
        format!("{}[{}]", self.name, self.tid)
    }

    /// Returns policy and priority: `FIFO 80`.
    pub(super) fn scheduling(&self) -> String {
        match self.policy {
            SCHED_FIFO => format!("FIFO {}", self.priority),
            SCHED_RR => format!("RR {}", self.priority),
            SCHED_DEADLINE => "DEADLINE".to_string(),
            _ => "no real-time policy".to_string(),
        }
    }

    /// Returns the command that sets this priority, and keeps the policy.
    pub(super) fn at_priority(&self, priority: u64) -> String {
        // Without an option for the policy, chrt would set SCHED_RR.
        let policy = if self.policy == SCHED_RR { "-r" } else { "-f" };
        format!("chrt {policy} -p {priority} {}", self.tid)
    }

    /// Returns the number of preemptions.
    pub(super) fn preempted(&self, root: &Root) -> Result<u64, Missing> {
        let switches = status(root, self.pid, self.tid, "nonvoluntary_ctxt_switches")?;
        switches
            .parse()
            .map_err(|_| missing(format!("'{switches}' is not a count of switches")))
    }
}

/// Returns a field of a thread's `status`.
pub(super) fn status(root: &Root, pid: u32, tid: u32, key: &str) -> Result<String, Missing> {
    let path = format!("/proc/{pid}/task/{tid}/status");
    let text = root.text(&path)?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    value
        .map(|v| v.trim().to_string())
        .ok_or_else(|| missing(format!("{path} has no {key}")))
}

/// Returns the threads of a process, except those that exit meanwhile.
pub(super) fn threads(root: &Root, pid: u32) -> Result<Vec<Task>, Missing> {
    let tids = root.names(&format!("/proc/{pid}/task"))?;
    let tids = tids.iter().filter_map(|tid| tid.parse().ok());
    Ok(tids
        .filter_map(|tid| Task::read(root, pid, tid).ok())
        .collect())
}

/// Returns the threads of all processes.
pub(super) fn all(root: &Root) -> Result<Vec<Task>, Missing> {
    let pids = root.names("/proc")?;
    let pids = pids.iter().filter_map(|pid| pid.parse().ok());
    Ok(pids
        .filter_map(|pid| threads(root, pid).ok())
        .flatten()
        .collect())
}
