// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kernel's counters of one CPU, and of the thread that measures on it. The counters are cheap
//! to read, and are read from another CPU, so that reading them does not disturb the measurement.
//! The MSR is the exception: the CPU is interrupted to read it (probe.rs).
//!
//! ```text
//!   /proc/interrupts        each line: devices, the local timer, IPIs, NMIs
//!   /proc/softirqs          each vector
//!   /proc/stat              time that a host took (steal), in ticks of 10 ms
//!   TASK/status, TASK/stat  involuntary switches, page faults
//!   TASK/schedstat          how long the thread could have run and did not, in ns
//!   MSR 0x34                system management interrupts, of Intel's processors
//! ```

use std::collections::BTreeMap;
use std::fmt;

/// A counter of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// A line of /proc/interrupts: its name and its description.
    Interrupt(String, String),
    /// A vector of /proc/softirqs.
    Softirq(String),
    /// The thread was preempted.
    Preempted,
    /// A page fault without I/O.
    MinorFault,
    /// A page fault that read from a disk.
    MajorFault,
    /// A tick that the host took.
    Steal,
    /// A system management interrupt.
    Smi,
    /// Nanoseconds for which the thread waited for its CPU.
    Waited,
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Counter::Interrupt(name, what) => write!(f, "interrupt {name} ({what})"),
            Counter::Softirq(name) => write!(f, "softirq {name}"),
            Counter::Preempted => f.write_str("preemption"),
            Counter::MinorFault => f.write_str("minor page fault"),
            Counter::MajorFault => f.write_str("major page fault"),
            Counter::Steal => f.write_str("tick stolen by the host"),
            Counter::Smi => f.write_str("system management interrupt (SMI)"),
            Counter::Waited => f.write_str("ns waiting for the CPU"),
        }
    }
}

/// One reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(pub(crate) BTreeMap<Counter, u64>);

impl Counts {
    /// Sets one counter.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.0.insert(counter, value);
    }

    /// Returns the value of a counter.
    #[must_use]
    pub fn get(&self, counter: &Counter) -> Option<u64> {
        self.0.get(counter).copied()
    }

    /// Returns the number of counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a CPU's column of /proc/interrupts.
    pub fn interrupts(&mut self, text: &str, cpu: u32) {
        for (name, value, rest) in column(text, cpu) {
            let what = rest.split_whitespace().collect::<Vec<_>>().join(" ");
            self.set(Counter::Interrupt(name.into(), what), value);
        }
    }

    /// Adds a CPU's column of /proc/softirqs.
    pub fn softirqs(&mut self, text: &str, cpu: u32) {
        for (name, value, _) in column(text, cpu) {
            self.set(Counter::Softirq(name.into()), value);
        }
    }

    /// Adds a CPU's line of /proc/stat.
    pub fn stat(&mut self, text: &str, cpu: u32) {
        /// Position of `steal` after user, nice, system, idle, iowait, irq and softirq.
        const STEAL: usize = 7;
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name));
        let steal = line.and_then(|line| line.split_whitespace().nth(STEAL)?.parse().ok());
        if let Some(steal) = steal {
            self.set(Counter::Steal, steal);
        }
    }

    /// Adds `status`, `stat` and `schedstat` of a task.
    pub fn task(&mut self, status: &str, stat: &str, schedstat: &str) {
        let switches = status
            .lines()
            .find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        if let Some(switches) = switches.and_then(|n| n.trim().parse().ok()) {
            self.set(Counter::Preempted, switches);
        }
        // The name may contain anything, but ends with the last `)`. After it: state, ppid, pgrp,
        // session, tty, tpgid, flags, minflt, cminflt, majflt.
        if let Some((_, rest)) = stat.rsplit_once(") ") {
            let words: Vec<&str> = rest.split(' ').collect();
            let number = |i: usize| words.get(i)?.parse::<u64>().ok();
            for (counter, field) in [(Counter::MinorFault, 7), (Counter::MajorFault, 9)] {
                if let Some(value) = number(field) {
                    self.set(counter, value);
                }
            }
        }
        // The time that it ran, and the time that it waited to run.
        let waited = schedstat.split_whitespace().nth(1);
        if let Some(waited) = waited.and_then(|n| n.parse().ok()) {
            self.set(Counter::Waited, waited);
        }
    }
}

/// Returns a CPU's column of a table whose head names CPUs: name, value, and the words after the
/// columns. Lines with fewer columns are not counted per CPU, and are left out.
fn column(text: &str, cpu: u32) -> impl Iterator<Item = (&str, u64, &str)> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or("").split_whitespace().collect();
    let columns = head.len();
    let wanted = format!("CPU{cpu}");
    let at = head.iter().position(|name| *name == wanted);
    lines.filter_map(move |line| {
        let (name, mut rest) = line.split_once(':')?;
        let mut value = None;
        for i in 0..columns {
            rest = rest.trim_start();
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let number: u64 = rest[..end].parse().ok()?;
            if Some(i) == at {
                value = Some(number);
            }
            rest = &rest[end..];
        }
        Some((name.trim(), value?, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       \n  \
 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n  \
 25:          7       1234     dummy   0 Edge      lt_cause\n\
NMI:          3          4   Non-maskable interrupts\n\
LOC:   12759338   12396397   Local timer interrupts\n\
ERR:          9\n";

    #[test]
    fn a_cpu_has_its_column_by_name_and_not_by_place() {
        let mut counts = Counts::default();
        counts.interrupts(INTERRUPTS, 2);
        let line = |name: &str, what: &str| Counter::Interrupt(name.into(), what.into());
        assert_eq!(counts.get(&line("25", "dummy 0 Edge lt_cause")), Some(1234));
        assert_eq!(counts.get(&line("NMI", "Non-maskable interrupts")), Some(4));
        assert_eq!(counts.len(), 4, "ERR is not for each CPU: {counts:?}");
        let mut none = Counts::default();
        none.interrupts(INTERRUPTS, 1);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn softirqs_steal_and_the_task_are_read() {
        let mut counts = Counts::default();
        counts.softirqs("   CPU0 CPU1\n  HI:  1  2\n TIMER: 30 40\n", 1);
        counts.stat(
            "cpu 1 1 1 1 1 1 1 1 0 0\ncpu1 1 2 3 4 5 6 7 88 0 0\ncpu10 0 0 0 0 0 0 0 9 0 0\n",
            1,
        );
        counts.task(
            "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n",
            "12 (a) b) R 1 2 3 4 5 6 77 8 99 10 11",
            "1000 2000 3",
        );
        for (counter, value) in [
            (Counter::Softirq("HI".into()), 2),
            (Counter::Softirq("TIMER".into()), 40),
            (Counter::Steal, 88),
            (Counter::Preempted, 6),
            (Counter::MinorFault, 77),
            (Counter::MajorFault, 99),
            (Counter::Waited, 2000),
        ] {
            assert_eq!(counts.get(&counter), Some(value), "{counter}");
        }
    }

    #[test]
    fn the_files_of_this_machine_are_read() {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let mut counts = Counts::default();
        counts.softirqs(&read("/proc/softirqs"), 0);
        counts.stat(&read("/proc/stat"), 0);
        counts.task(
            &read("/proc/thread-self/status"),
            &read("/proc/thread-self/stat"),
            "",
        );
        for counter in [
            Counter::Softirq("TIMER".into()),
            Counter::Steal,
            Counter::Preempted,
            Counter::MinorFault,
        ] {
            assert!(counts.get(&counter).is_some(), "{counter}: {counts:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(CPU[0-3] |[A-Z0-9]{0,3}:| [0-9]{1,22}|\n|.){0,40}", cpu in 0u32..4) {
            let mut counts = Counts::default();
            counts.interrupts(&text, cpu);
            counts.softirqs(&text, cpu);
            counts.stat(&text, cpu);
            counts.task(&text, &text, &text);
        }
    }
}
