// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about other activity on the CPUs: interrupts, work items and threads.

use super::answer::{Found, Row, bad, ok, some, warn};
use super::fix::boot;
use super::isolation::managed;
use super::root::{Missing, Root, missing};
use super::tasks::{self, Task};
use super::{Cpus, Target};

const WORK: &str = "/sys/devices/virtual/workqueue/cpumask";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "interrupts",
        why: "a device interrupt takes the CPU from every task, and its thread runs at FIFO 50",
        question: interrupts,
    },
    Row {
        name: "new interrupts",
        why: "devices that appear later get this affinity",
        question: new_interrupts,
    },
    Row {
        name: "managed interrupts",
        why: "the interrupts of queues that a driver spreads over all CPUs cannot be moved later",
        question: managed_interrupts,
    },
    Row {
        name: "irqbalance",
        why: "it moves interrupts back onto any CPU that is not banned",
        question: irqbalance,
    },
    Row {
        name: "work queues",
        why: "unbound work items of the whole kernel run on the CPUs of this mask",
        question: work,
    },
    Row {
        name: "other threads",
        why: "a thread that may run on a CPU runs there sooner or later",
        question: threads,
    },
    Row {
        name: "highest priority",
        why: "only a SCHED_DEADLINE or a migration thread can preempt a task at FIFO 99",
        question: highest,
    },
];

/// An interrupt that the CPUs handle.
struct Line {
    shown: String,
    /// The file that sets its affinity.
    file: String,
    /// Whether root can move it: the file of a managed interrupt cannot be written.
    movable: bool,
}

/// The interrupts that the CPUs handle, and the others.
#[derive(Default)]
struct Lines {
    here: Vec<Line>,
    /// Number of interrupts on other CPUs.
    others: usize,
    /// Interrupts that were moved away, which takes effect only at their next occurrence: many
    /// interrupt controller drivers reprogram a line only then.
    moving: Vec<String>,
}

fn lines(root: &Root, target: &Target) -> Result<Lines, Missing> {
    let mut lines = Lines::default();
    for irq in root.directories("/proc/irq")? {
        let directory = format!("/proc/irq/{irq}");
        // Each handler has a directory there. Without a handler, the line is not used.
        let handlers = root.directories(&directory)?;
        if handlers.is_empty() {
            continue;
        }
        let file = format!("{directory}/smp_affinity_list");
        // Uses the effective affinity, since the permitted affinity often includes all CPUs.
        let effective = root.cpus(&format!("{directory}/effective_affinity_list"));
        let Ok(cpus) = effective.or_else(|_| root.cpus(&file)) else {
            continue;
        };
        let here = cpus.and(&target.cpus);
        if here.is_empty() {
            lines.others += 1;
            continue;
        }
        if root
            .cpus(&file)
            .is_ok_and(|asked| asked.and(&target.cpus).is_empty())
        {
            lines.moving.push(irq);
            continue;
        }
        let shown = format!("{irq} ({}) on CPU {here}", handlers.join(" "));
        let movable = root.is_for_writing(&file);
        lines.here.push(Line {
            shown,
            file,
            movable,
        });
    }
    match lines.here.len() + lines.others + lines.moving.len() {
        0 => Err(missing("/proc/irq shows no affinity")),
        _ => Ok(lines),
    }
}

fn interrupts(root: &Root, target: &Target) -> Found {
    let Lines {
        mut here,
        others,
        moving,
    } = lines(root, target)?;
    here.retain(|line| line.movable);
    if here.is_empty() {
        let found = format!("{others} elsewhere");
        return Ok(ok(match moving.is_empty() {
            true => found,
            false => format!("{found}; {} move when they next occur", some(&moving)),
        }));
    }
    let shown: Vec<String> = here.iter().map(|line| line.shown.clone()).collect();
    let rest = target.housekeeping();
    let away = |line: &Line| format!("echo {rest} > {}", line.file);
    Ok(bad(some(&shown)).fixes(here.iter().map(away)))
}

fn new_interrupts(root: &Root, target: &Target) -> Found {
    let file = "/proc/irq/default_smp_affinity";
    let here = root.mask(file)?.and(&target.cpus);
    if here.is_empty() {
        return Ok(ok("elsewhere"));
    }
    let rest = target.housekeeping();
    let answer = warn(format!("also on CPU {here}")).fix(format!("echo {} > {file}", rest.mask()));
    Ok(answer.fix(boot(&format!("irqaffinity={rest}"))))
}

fn managed_interrupts(root: &Root, target: &Target) -> Found {
    let open = target.cpus.without(&managed(root, target)?);
    let mut here = lines(root, target)?.here;
    here.retain(|line| !line.movable);
    let shown: Vec<String> = here.iter().map(|line| line.shown.clone()).collect();
    if !open.is_empty() {
        let words = format!("isolcpus=managed_irq,domain,{}", target.shielded());
        let found = match shown.is_empty() {
            true => format!("none now, but may come to CPU {open}"),
            false => some(&shown),
        };
        return Ok(warn(found).fix(boot(&words)));
    }
    match shown.is_empty() {
        true => Ok(ok("elsewhere (isolcpus=managed_irq)")),
        false => Ok(warn(format!(
            "{}: of queues that only these CPUs use, for their own requests",
            some(&shown)
        ))),
    }
}

fn irqbalance(root: &Root, target: &Target) -> Found {
    let running = tasks::all(root)?
        .into_iter()
        .find(|task| !task.kernel && task.name == "irqbalance");
    let Some(irqbalance) = running else {
        return Ok(ok("does not run"));
    };
    let variables = root
        .text(&format!("/proc/{}/environ", irqbalance.pid))
        .unwrap_or_default();
    let value = |key: &str| {
        let mut pairs = variables.split('\0').filter_map(|v| v.split_once('='));
        pairs.find(|(name, value)| *name == key && !value.is_empty())
    };
    // CPUs in the environment of irqbalance replace the kernel's lists; a mask there takes
    // precedence over a list (setup_banned_cpus). irqbalance does not avoid the CPUs that a cpuset
    // partition isolates.
    let mask = value("IRQBALANCE_BANNED_CPUS");
    let own = match mask {
        Some((_, mask)) => Cpus::from_mask(mask),
        None => value("IRQBALANCE_BANNED_CPULIST").and_then(|(_, list)| list.parse().ok()),
    };
    let banned = own.unwrap_or_else(|| {
        let list = |name: &str| root.cpus(&format!("/sys/devices/system/cpu/{name}"));
        let isolated = list("isolated").unwrap_or_default();
        isolated.or(&list("nohz_full").unwrap_or_default())
    });
    match target.cpus.without(&banned) {
        open if open.is_empty() => Ok(ok("runs, with these CPUs banned")),
        open => {
            let no_mask = "echo IRQBALANCE_BANNED_CPUS= >> /etc/default/irqbalance";
            let ban = format!(
                "echo IRQBALANCE_BANNED_CPULIST={} >> /etc/default/irqbalance && \
                 systemctl restart irqbalance",
                target.shielded().or(&banned)
            );
            let fixes = mask.map(|_| no_mask.to_string()).into_iter().chain([ban]);
            Ok(bad(format!("runs, and uses CPU {open}")).fixes(fixes))
        }
    }
}

fn work(root: &Root, target: &Target) -> Found {
    // The masks of individual workqueues, such as writeback, are restricted to this mask
    // (wqattrs_actualize_cpumask).
    let here = root.mask(WORK)?.and(&target.cpus);
    match here.is_empty() {
        true => Ok(ok("elsewhere")),
        false => {
            let fix = format!("echo {} > {WORK}", target.housekeeping().mask());
            Ok(bad(format!("unbound ones may run on CPU {here}")).fix(fix))
        }
    }
}

fn threads(root: &Root, target: &Target) -> Found {
    // The application, and this program.
    let ours = [target.pid, Some(std::process::id())];
    let foreign = |task: &Task| {
        let may_run = !task.allowed.and(&target.cpus).is_empty();
        may_run && !task.bound && !ours.contains(&Some(task.pid))
    };
    let all: Vec<Task> = tasks::all(root)?.into_iter().filter(foreign).collect();
    if all.is_empty() {
        return Ok(ok("only the kernel's per-CPU threads"));
    }
    let names: Vec<String> = all.iter().map(Task::shown).collect();
    let rest = target.housekeeping();
    let away = |task: &Task| format!("taskset -pc {rest} {}", task.tid);
    Ok(warn(some(&names)).fixes(all.iter().map(away)))
}

fn highest(root: &Root, target: &Target) -> Found {
    let highest = |task: &Task| {
        let here = !task.allowed.and(&target.cpus).is_empty();
        here && !task.kernel && task.priority == 99
    };
    let all: Vec<Task> = tasks::all(root)?.into_iter().filter(highest).collect();
    if all.is_empty() {
        return Ok(ok("only the kernel's tasks at 99"));
    }
    let names: Vec<String> = all.iter().map(Task::shown).collect();
    Ok(warn(some(&names)).fixes(all.iter().map(|task| task.at_priority(98))))
}
