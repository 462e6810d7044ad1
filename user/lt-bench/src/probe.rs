// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads the kernel's counters for a CPU and for the loop on it, from another CPU.

use std::fs;
use std::os::unix::fs::FileExt;

use lt_readiness::Root;

use super::clock::Clock;
use crate::measure::Counts;

/// `MSR_SMI_COUNT`, on Intel's processors since Nehalem.
const MSR_SMI_COUNT: u64 = 0x34;

/// A reading of the counters, with the times of its start and end.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) counts: Counts,
}

/// A CPU under test, and the thread on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub(super) cpu: u32,
    pub(super) tid: i32,
}

/// Reads the counters of all subjects at once: the files that do not belong to a thread cover all CPUs.
pub(super) fn read(clock: &Clock, subjects: &[Subject]) -> Vec<Reading> {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let begin = clock.now();
    let interrupts = file("/proc/interrupts");
    let softirqs = file("/proc/softirqs");
    let stat = file("/proc/stat");
    let counts = |subject: &Subject| {
        let mut counts = Counts::default();
        counts.interrupts(&interrupts, subject.cpu);
        counts.softirqs(&softirqs, subject.cpu);
        counts.stat(&stat, subject.cpu);
        let of = |name: &str| file(&format!("/proc/self/task/{}/{name}", subject.tid));
        counts.task(&of("status"), &of("stat"), &of("schedstat"));
        counts
    };
    let counts: Vec<Counts> = subjects.iter().map(counts).collect();
    let end = clock.now();
    let reading = |counts| Reading { begin, end, counts };
    counts.into_iter().map(reading).collect()
}

/// Whether this processor counts system management interrupts, and this user can read the count.
pub(super) fn has_smi(root: &Root, cpu: u32) -> bool {
    let intel = root
        .text("/proc/cpuinfo")
        .is_ok_and(|text| text.contains("GenuineIntel"));
    intel && smi(cpu).is_some()
}

/// Returns the number of system management interrupts so far. To read it, the kernel interrupts that CPU, so this is
/// called only while the loop waits or is not running.
pub(super) fn smi(cpu: u32) -> Option<u64> {
    let file = fs::File::open(format!("/dev/cpu/{cpu}/msr")).ok()?;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, MSR_SMI_COUNT).ok()?;
    Some(u64::from_le_bytes(bytes))
}
