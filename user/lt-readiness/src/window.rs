// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Counters that should not change, read twice: system management interrupts, time stolen by a
//! host, page faults and preemptions of the application.

use std::collections::BTreeMap;

use super::cpus::Cpus;
use super::root::{Missing, Root, missing};
use super::tasks::{self, Task};

/// The number of system management interrupts since reset, on Intel's processors since Nehalem.
const MSR_SMI_COUNT: u64 = 0x34;

/// Changes between the two readings; unreadable values are missing.
#[derive(Debug)]
pub(super) struct Window {
    /// System management interrupts, on the CPU with the most.
    pub(super) smi: Result<u64, Missing>,
    /// Time stolen by the host, summed over the checked CPUs, in ticks of 10 ms.
    pub(super) steal: Result<u64, Missing>,
    /// Minor and major page faults of the process.
    pub(super) faults: Result<(u64, u64), Missing>,
    /// How often real-time threads of the process were preempted.
    pub(super) preempted: Result<u64, Missing>,
}

struct Sample {
    smi: Result<Vec<u64>, Missing>,
    steal: Result<u64, Missing>,
    faults: Result<(u64, u64), Missing>,
    preempted: Result<BTreeMap<u32, u64>, Missing>,
}

impl Sample {
    fn take(root: &Root, cpus: &Cpus, pid: Option<u32>) -> Self {
        let process = || pid.ok_or_else(|| missing("no --pid"));
        Self {
            smi: smi(root, cpus),
            steal: steal(root, cpus),
            faults: process().and_then(|pid| {
                let stat = tasks::Stat::read(root, &format!("/proc/{pid}/stat"))?;
                Ok((stat.minor_faults, stat.major_faults))
            }),
            preempted: process().and_then(|pid| {
                let threads = tasks::threads(root, pid)?;
                let switches = |task: &Task| Some((task.tid, task.preempted(root).ok()?));
                Ok(threads
                    .iter()
                    .filter(|t| t.is_real_time())
                    .filter_map(switches)
                    .collect())
            }),
        }
    }
}

impl Window {
    /// Reads the counters, calls `wait`, and reads them again.
    pub(super) fn watch(root: &Root, cpus: &Cpus, pid: Option<u32>, wait: impl FnOnce()) -> Self {
        let before = Sample::take(root, cpus, pid);
        wait();
        let after = Sample::take(root, cpus, pid);
        Self {
            smi: before.smi.and_then(|before| {
                let pairs = before.into_iter().zip(after.smi?);
                Ok(pairs
                    .map(|(before, after)| after.saturating_sub(before))
                    .max()
                    .unwrap_or(0))
            }),
            steal: before
                .steal
                .and_then(|before| Ok(after.steal?.saturating_sub(before))),
            faults: before.faults.and_then(|(minor, major)| {
                let after = after.faults?;
                Ok((after.0.saturating_sub(minor), after.1.saturating_sub(major)))
            }),
            preempted: before.preempted.and_then(|before| {
                let after = after.preempted?.into_iter();
                let new = |(tid, n): (u32, u64)| Some(n.saturating_sub(*before.get(&tid)?));
                Ok(after.filter_map(new).sum())
            }),
        }
    }
}

fn smi(root: &Root, cpus: &Cpus) -> Result<Vec<u64>, Missing> {
    if !root.text("/proc/cpuinfo")?.contains("GenuineIntel") {
        return Err(missing(
            "only Intel processors have the counter of system management interrupts",
        ));
    }
    // KVM's counter has the SMIs of the guest's own firmware (smi_count in arch/x86/kvm).
    if root.cpu_flag("hypervisor")? {
        return Err(missing(
            "a virtual machine does not see the system management interrupts of its host",
        ));
    }
    let read = |cpu| {
        let path = format!("/dev/cpu/{cpu}/msr");
        if !root.exists(&path) {
            return Err(missing(format!(
                "{path} does not exist: run `modprobe msr` as root"
            )));
        }
        root.bytes(&path, MSR_SMI_COUNT).map(u64::from_le_bytes)
    };
    cpus.iter().map(read).collect()
}

fn steal(root: &Root, cpus: &Cpus) -> Result<u64, Missing> {
    /// Position of `steal`: after the name, user, nice, system, idle, iowait, irq and softirq.
    const STEAL: usize = 8;
    let stat = root.text("/proc/stat")?;
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let cpu: u32 = words.first()?.strip_prefix("cpu")?.parse().ok()?;
        cpus.contains(cpu)
            .then(|| words.get(STEAL)?.parse::<u64>().ok())
            .flatten()
    };
    Ok(stat.lines().filter_map(of).sum())
}
