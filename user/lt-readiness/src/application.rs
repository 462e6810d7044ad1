// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about a running process: its resources, and whether it behaves as real-time work should.

use lt_common::exec::quoted;
use lt_common::out;

use super::Target;
use super::answer::{Found, Row, bad, ok, some, warn};
use super::root::{Missing, Root, missing};
use super::tasks::{self, Task};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "policy",
        why: "an ordinary thread waits for the other threads of its CPU; hardly any can preempt one at FIFO 99",
        question: policy,
    },
    Row {
        name: "affinity",
        why: "the process is shielded only on these CPUs",
        question: affinity,
    },
    Row {
        name: "locked memory",
        why: "memory that is not locked may have to be read from a disk",
        question: locked,
    },
    Row {
        name: "page faults",
        why: "each enters the kernel, where it may wait for locks and for memory",
        question: faults,
    },
    Row {
        name: "preempted",
        why: "a task of higher or equal priority ran instead",
        question: preempted,
    },
    Row {
        name: "timer slack",
        why: "the sleeps of an ordinary thread may end this late, so that timers expire in batches",
        question: slack,
    },
    Row {
        name: "bandwidth",
        why: "a cgroup throttles its ordinary threads once its quota is used up",
        question: bandwidth,
    },
    Row {
        name: "limits",
        why: "without them, threads that the process starts later get no priority or no locked memory",
        question: limits,
    },
];

fn process(target: &Target) -> Result<u32, Missing> {
    target.pid.ok_or_else(|| missing("no --pid"))
}

fn threads(root: &Root, target: &Target) -> Result<Vec<Task>, Missing> {
    tasks::threads(root, process(target)?)
}

fn policy(root: &Root, target: &Target) -> Found {
    let pid = process(target)?;
    let threads = threads(root, target)?;
    let real: Vec<&Task> = threads.iter().filter(|task| task.is_real_time()).collect();
    if real.is_empty() {
        let found = "none of its threads is real-time";
        return Ok(bad(found).fix(format!("chrt -f -p 80 {pid}")));
    }
    let shown = |task: &&Task| format!("{} {}", task.shown(), task.scheduling());
    let shown: Vec<String> = real.iter().map(shown).collect();
    let highest: Vec<&&Task> = real.iter().filter(|task| task.priority == 99).collect();
    if !highest.is_empty() {
        let lower = highest.iter().map(|task| task.at_priority(80));
        return Ok(warn(some(&shown)).fixes(lower));
    }
    // On PREEMPT_RT, timers of ordinary sleeps expire in these threads.
    let timers = tasks::all(root)?
        .into_iter()
        .filter(|t| t.kernel && t.name.starts_with("ktimers/"));
    let timers = timers.map(|task| task.priority).max();
    let low = real
        .iter()
        .filter(|t| t.priority > 0 && timers.is_some_and(|top| t.priority <= top));
    let low: Vec<String> = low.map(|task| task.at_priority(80)).collect();
    match low.is_empty() {
        true => Ok(ok(some(&shown))),
        false => Ok(warn(format!("{}: not above the kernel's ktimers", some(&shown))).fixes(low)),
    }
}

fn affinity(root: &Root, target: &Target) -> Found {
    let threads = threads(root, target)?;
    let real = threads.iter().filter(|task| task.is_real_time());
    let astray: Vec<&Task> = real
        .filter(|task| !task.allowed.within(&target.cpus))
        .collect();
    if !threads.iter().any(Task::is_real_time) {
        return Err(missing("it has no real-time thread"));
    }
    if astray.is_empty() {
        return Ok(ok("its real-time threads stay on these CPUs"));
    }
    let shown = |task: &&Task| format!("{} on CPU {}", task.shown(), task.allowed);
    let shown: Vec<String> = astray.iter().map(shown).collect();
    let mend = |task: &&Task| format!("taskset -pc {} {}", target.shielded(), task.tid);
    Ok(bad(some(&shown)).fixes(astray.iter().map(mend)))
}

fn locked(root: &Root, target: &Target) -> Found {
    let pid = process(target)?;
    let size = |key| {
        let text = tasks::status(root, pid, pid, key)?;
        let kib = text
            .split_whitespace()
            .next()
            .and_then(|word| word.parse::<u64>().ok());
        kib.ok_or_else(|| missing(format!("{key} of process {pid} is '{text}'")))
    };
    let (locked, resident) = (size("VmLck")?, size("VmRSS")?);
    let found = format!(
        "{} locked, {} in memory",
        out::bytes(locked << 10),
        out::bytes(resident << 10)
    );
    match locked {
        0 => Ok(bad(format!(
            "{found}: call mlockall(MCL_CURRENT | MCL_FUTURE)"
        ))),
        // Some mappings made by the kernel, such as the vDSO, are resident but never locked.
        _ if locked.saturating_mul(10) < resident.saturating_mul(9) => Ok(warn(found)),
        _ => Ok(ok(found)),
    }
}

fn faults(_: &Root, target: &Target) -> Found {
    match target.window.faults.clone()? {
        (0, 0) => Ok(ok("none in 1 s")),
        (minor, 0) => Ok(warn(format!(
            "{} in 1 s",
            out::plural(minor as usize, "minor fault")
        ))),
        (minor, major) => Ok(bad(format!(
            "{major} major and {} in 1 s",
            out::plural(minor as usize, "minor fault")
        ))),
    }
}

fn preempted(root: &Root, target: &Target) -> Found {
    if !threads(root, target)?.iter().any(Task::is_real_time) {
        return Err(missing("it has no real-time thread"));
    }
    match target.window.preempted.clone()? {
        0 => Ok(ok("never in 1 s")),
        times => Ok(warn(format!(
            "its real-time threads were preempted {} in 1 s",
            out::plural(times as usize, "time")
        ))),
    }
}

fn slack(root: &Root, target: &Target) -> Found {
    // The kernel applies no slack to real-time threads, regardless of the file.
    let threads = threads(root, target)?.into_iter();
    let ordinary: Vec<Task> = threads.filter(|task| !task.is_real_time()).collect();
    let mut slack = Vec::new();
    for task in &ordinary {
        // /proc has a directory for each thread, although it lists only processes.
        let path = format!("/proc/{}/timerslack_ns", task.tid);
        let ns: u64 = root.value(&path)?;
        if ns > 1 {
            slack.push((task.shown(), ns, path));
        }
    }
    let most = slack.iter().map(|(_, ns, _)| *ns).max();
    let Some(most) = most else {
        return Ok(ok(match ordinary.is_empty() {
            true => "none: all threads are real-time",
            false => "none",
        }));
    };
    let shown: Vec<String> = slack.iter().map(|(name, ..)| name.clone()).collect();
    let fix = slack.iter().map(|(_, _, path)| format!("echo 1 > {path}"));
    let found = format!("up to {} us: {}", most.div_ceil(1000), some(&shown));
    Ok(warn(found).fixes(fix))
}

fn bandwidth(root: &Root, target: &Target) -> Found {
    let pid = process(target)?;
    let groups = root.text(&format!("/proc/{pid}/cgroup"))?;
    // ID:CONTROLLERS:PATH; the hierarchy of version 2 lists no controllers.
    let mut controllers = groups.lines().filter_map(|line| line.split(':').nth(1));
    if controllers.any(|names| names.split(',').any(|name| name == "cpu")) {
        return Err(missing("its CPU quota is in cgroup version 1"));
    }
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let mut path = path.ok_or_else(|| missing("it is in no cgroup of version 2"))?;
    path = path.trim_end_matches('/');
    // The limits of all ancestors apply, too. The root has none.
    while !path.is_empty() {
        let file = format!("/sys/fs/cgroup{path}/cpu.max");
        if let Ok(limit) = root.text(&file)
            && !limit.starts_with("max")
        {
            let found = format!("{file}: {} us", limit.replace(' ', " of "));
            // Only ordinary tasks are throttled (throttle_cfs_rq).
            if threads(root, target)?.iter().all(Task::is_real_time) {
                return Ok(ok(format!("{found}, but all threads are real-time")));
            }
            let fix = format!("echo max > {}", quoted(&file));
            return Ok(bad(found).fix(fix));
        }
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    Ok(ok("no limit"))
}

fn limits(root: &Root, target: &Target) -> Found {
    /// Bits of a capability set (include/uapi/linux/capability.h).
    const IPC_LOCK: u64 = 1 << 14;
    const NICE: u64 = 1 << 23;
    let pid = process(target)?;
    let effective = tasks::status(root, pid, pid, "CapEff")?;
    let effective = u64::from_str_radix(&effective, 16).unwrap_or(0);
    let all = root.text(&format!("/proc/{pid}/limits"))?;
    let soft = |name: &str| {
        let line = all.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.map(str::to_string)
            .ok_or_else(|| missing(format!("process {pid} has no limit '{name}'")))
    };
    let (priority, memory) = (soft("Max realtime priority")?, soft("Max locked memory")?);
    let mut fix = Vec::new();
    if priority == "0" && effective & NICE == 0 {
        fix.push(format!("prlimit --pid {pid} --rtprio=98"));
    }
    if memory != "unlimited" && effective & IPC_LOCK == 0 {
        fix.push(format!("prlimit --pid {pid} --memlock=unlimited"));
    }
    let found = format!("rtprio {priority}, memlock {memory}");
    match fix.is_empty() {
        true if effective & NICE != 0 => Ok(ok(format!("{found}; it has CAP_SYS_NICE"))),
        true => Ok(ok(found)),
        false => Ok(warn(found).fixes(fix)),
    }
}
