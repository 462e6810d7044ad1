// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about periodic work of the kernel on every CPU: watchdogs and other housekeeping.

use super::answer::{Found, Row, ok, warn};
use super::root::Root;
use super::{Target, isolated, tasks};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "lockup detector",
        why: "its timer and the FIFO 99 migration thread run on each CPU every 4 s",
        question: lockup,
    },
    Row {
        name: "NMI watchdog",
        why: "its NMI also interrupts code with interrupts off, and it occupies a performance counter",
        question: nmi,
    },
    Row {
        name: "hung tasks",
        why: "a kernel thread walks through all tasks at this interval, on some CPU",
        question: hung,
    },
    Row {
        name: "memory statistics",
        why: "a work item on each CPU adds up its counters at this interval",
        question: statistics,
    },
    Row {
        name: "timer migration",
        why: "a sleep ends late when the CPU on which its timer expires is busy",
        question: migration,
    },
    Row {
        name: "machine checks",
        why: "a timer on each CPU polls the hardware for corrected errors",
        question: machine_checks,
    },
];

const KERNEL: &str = "/proc/sys/kernel";

fn lockup(root: &Root, target: &Target) -> Found {
    if root.value::<u64>(&format!("{KERNEL}/watchdog"))? == 0 {
        return Ok(ok("off"));
    }
    let path = format!("{KERNEL}/watchdog_cpumask");
    let here = root.cpus(&path)?.and(&target.cpus);
    match here.is_empty() {
        true => Ok(ok("elsewhere")),
        false => {
            let fix = format!("echo {} > {path}", target.housekeeping());
            Ok(warn(format!("on CPU {here}")).fix(fix))
        }
    }
}

fn nmi(root: &Root, target: &Target) -> Found {
    if root.value::<u64>(&format!("{KERNEL}/nmi_watchdog"))? == 0 {
        return Ok(ok("off"));
    }
    let here = root
        .cpus(&format!("{KERNEL}/watchdog_cpumask"))?
        .and(&target.cpus);
    match here.is_empty() {
        true => Ok(ok("elsewhere")),
        false => Ok(warn(format!("on CPU {here}")).fix("sysctl kernel.nmi_watchdog=0")),
    }
}

fn hung(root: &Root, target: &Target) -> Found {
    /// The shortest interval that does no harm, s.
    const SELDOM: u64 = 600;
    let timeout: u64 = root.value(&format!("{KERNEL}/hung_task_timeout_secs"))?;
    if timeout == 0 {
        return Ok(ok("not looked for"));
    }
    let interval: u64 = root
        .value(&format!("{KERNEL}/hung_task_check_interval_secs"))
        .unwrap_or(0);
    let every = match interval {
        0 => timeout,
        interval => interval.min(timeout),
    };
    let mut threads = tasks::all(root)?.into_iter();
    let thread = threads.find(|task| task.kernel && task.name == "khungtaskd");
    if thread.is_some_and(|thread| thread.allowed.and(&target.cpus).is_empty()) {
        return Ok(ok(format!("every {every} s, elsewhere")));
    }
    match every {
        SELDOM.. => Ok(ok(format!("every {every} s"))),
        _ => Ok(warn(format!("every {every} s")).fixes([
            format!("sysctl kernel.hung_task_timeout_secs={SELDOM}"),
            "sysctl kernel.hung_task_check_interval_secs=0".to_string(),
        ])),
    }
}

fn statistics(root: &Root, target: &Target) -> Found {
    let interval: u64 = root.value("/proc/sys/vm/stat_interval")?;
    // The kernel starts this work on no isolated CPU (vmstat_shepherd).
    let here = target.cpus.without(&isolated(root));
    match interval {
        _ if here.is_empty() => Ok(ok("not on isolated CPUs")),
        often @ 0..10 => {
            let found = format!("every {often} s on CPU {here}");
            Ok(warn(found).fix("sysctl vm.stat_interval=10"))
        }
        seldom => Ok(ok(format!("every {seldom} s"))),
    }
}

fn migration(root: &Root, target: &Target) -> Found {
    if root.value::<u64>(&format!("{KERNEL}/timer_migration"))? == 0 {
        return Ok(ok("off"));
    }
    // A timer that is started on a nohz_full CPU is queued on another CPU (get_nohz_timer_target,
    // hrtimer_prefer_local).
    let full = root
        .cpus("/sys/devices/system/cpu/nohz_full")
        .unwrap_or_default()
        .and(&target.cpus);
    let found = match full.is_empty() {
        true => "on".to_string(),
        false => format!("on: timers started on CPU {full} (nohz_full) expire on another CPU"),
    };
    Ok(warn(found).fix("sysctl kernel.timer_migration=0"))
}

fn machine_checks(root: &Root, target: &Target) -> Found {
    let directory = "/sys/devices/system/machinecheck";
    let (mut most, mut fix) = (0, Vec::new());
    for cpu in target.cpus.iter() {
        let of_cpu = format!("{directory}/machinecheck{cpu}");
        let path = format!("{of_cpu}/check_interval");
        let interval: u64 = root.value(&path)?;
        // The same setting as mce=ignore_ce on the command line: no polling and no interrupts for
        // corrected errors.
        let ignored = root.value::<u64>(&format!("{of_cpu}/ignore_ce"));
        if interval != 0 && !ignored.is_ok_and(|ignored| ignored != 0) {
            most = interval.max(most);
            fix.push(format!("echo 0 > {path}"));
        }
    }
    match fix.is_empty() {
        true => Ok(ok("not polled")),
        false => Ok(warn(format!("polled every {most} s")).fixes(fix)),
    }
}
