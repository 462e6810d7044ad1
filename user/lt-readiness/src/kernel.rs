// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about the kernel: its preemption model, its clock, and what slows it down everywhere.

use lt_common::exec::quoted_if_odd;

use super::answer::{Found, Row, bad, ok, some, warn};
use super::fix::{boot, without};
use super::root::{Root, chosen};
use super::{Target, programs};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "preemption",
        why: "without PREEMPT_RT, spinlocks and softirqs hold off the scheduler",
        question: preemption,
    },
    Row {
        name: "fair server",
        why: "it gives ordinary tasks 50 ms of each second on a CPU that real-time tasks keep busy",
        question: |root, target| server(root, target, "fair_server"),
    },
    Row {
        name: "sched_ext server",
        why: "it gives tasks of a BPF scheduler time on a CPU that real-time tasks keep busy",
        question: |root, target| server(root, target, "ext_server"),
    },
    Row {
        name: "clock source",
        why: "reading a clock outside the processor, such as hpet or acpi_pm, takes microseconds",
        question: clock,
    },
    Row {
        name: "high resolution",
        why: "without high-resolution timers a sleep ends at the next tick",
        question: high_resolution,
    },
    Row {
        name: "virtual machine",
        why: "the host decides when these CPUs run: its scheduling is part of every latency",
        question: hypervisor,
    },
    Row {
        name: "debug options",
        why: "these checks slow down locks and memory accesses, some of them many times",
        question: debug_options,
    },
    Row {
        name: "tracing",
        why: "tracing costs time at each event, and switching it patches code on all CPUs",
        question: tracing,
    },
    Row {
        name: "BPF programs",
        why: "a BPF program runs at each hit of its hook, also on these CPUs",
        question: programs::tracing,
    },
];

/// Installs a kernel for real-time work.
const RT_KERNEL: &str = if cfg!(target_arch = "aarch64") {
    "apt-get install linux-image-rt-arm64 # then boot it"
} else {
    "apt-get install linux-image-rt-amd64 # then boot it"
};

fn preemption(root: &Root, _: &Target) -> Found {
    // The file /sys/kernel/realtime was part of the RT patch set: no mainline kernel has it.
    let version = root.text("/proc/sys/kernel/version")?;
    if version.split_whitespace().any(|word| word == "PREEMPT_RT") {
        return Ok(ok("PREEMPT_RT"));
    }
    let mode = root.text("/sys/kernel/debug/sched/preempt");
    let answer = |found: &str| warn(format!("not PREEMPT_RT; {found}")).fix(RT_KERNEL);
    Ok(match mode.as_deref().map(chosen) {
        // Only ordinary tasks preempt lazily (resched_curr_lazy).
        Ok(mode @ ("full" | "lazy")) => answer(&format!("{mode} preemption is the second best")),
        Ok(mode) => {
            let full = "echo full > /sys/kernel/debug/sched/preempt";
            answer(&format!("{mode} preemption")).fix(full)
        }
        // A kernel without PREEMPT_DYNAMIC has no such file.
        Err(missing) => answer(&missing.to_string()),
    })
}

fn server(root: &Root, target: &Target, server: &str) -> Found {
    let directory = format!("/sys/kernel/debug/sched/{server}");
    let mut on = Vec::new();
    for cpu in target.cpus.iter() {
        let runtime: u64 = root.value(&format!("{directory}/cpu{cpu}/runtime"))?;
        if runtime != 0 {
            on.push((cpu, runtime));
        }
    }
    let Some((_, most)) = on.iter().max_by_key(|(_, runtime)| *runtime) else {
        return Ok(ok("off"));
    };
    let cpus: super::Cpus = on.iter().map(|(cpu, _)| *cpu).collect();
    let found = format!(
        "up to {} ms of a period on CPU {cpus}; turn it off only for tasks that never sleep: \
         ordinary tasks then starve",
        most / 1_000_000
    );
    let off = |(cpu, _): &(u32, u64)| format!("echo 0 > {directory}/cpu{cpu}/runtime");
    Ok(warn(found).fixes(on.iter().map(off)))
}

fn clock(root: &Root, _: &Target) -> Found {
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let clock = root.text(&format!("{directory}/current_clocksource"))?;
    let available = root.text(&format!("{directory}/available_clocksource"));
    let has_tsc = available.is_ok_and(|all| all.split_whitespace().any(|word| word == "tsc"));
    let use_tsc = || format!("echo tsc > {directory}/current_clocksource");
    match clock.as_str() {
        "arch_sys_counter" => Ok(ok(clock)),
        "tsc" => {
            let stable = root.cpu_flag("constant_tsc")? && root.cpu_flag("nonstop_tsc")?;
            match stable {
                true => Ok(ok("tsc, constant and nonstop")),
                false => Ok(warn(
                    "tsc, which may stop or change its rate on this processor",
                )),
            }
        }
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" => {
            if has_tsc {
                return Ok(bad(format!("{clock}, though tsc is available")).fix(use_tsc()));
            }
            let answer = bad(format!("{clock}: `dmesg | grep -i tsc` says why not tsc"));
            Ok(answer.fix(boot("tsc=nowatchdog")))
        }
        _ if has_tsc => Ok(warn(clock).fix(use_tsc())),
        _ => Ok(warn(clock)),
    }
}

fn high_resolution(root: &Root, target: &Target) -> Found {
    // Without high-resolution timers, the resolution is the tick period, 1 ms or more.
    const FINE: u64 = 1_000;
    match target.resolution.clone()? {
        ..=FINE => Ok(ok("on")),
        coarse => {
            let found = format!("off: timers have a resolution of {coarse} ns");
            match root.parameter("highres") {
                Ok(Some(value)) if value == "off" => {
                    Ok(bad(format!("{found}, by highres=off on the command line"))
                        .fix(without("highres")))
                }
                _ => Ok(bad(found)),
            }
        }
    }
}

fn hypervisor(root: &Root, target: &Target) -> Found {
    if !root.cpu_flag("hypervisor")? {
        return Ok(ok("no"));
    }
    let stolen = target.window.steal.clone()?;
    match stolen {
        0 => Ok(warn("yes: measure on the host, too")),
        ticks => Ok(warn(format!(
            "yes, and the host took {} ms from these CPUs while this ran",
            ticks * 10
        ))),
    }
}

fn debug_options(root: &Root, _: &Target) -> Found {
    let costly = root.built_with(&[
        "PROVE_LOCKING",
        "LOCK_STAT",
        "KASAN",
        "KCSAN",
        "KMSAN",
        "UBSAN_TRAP",
        "DEBUG_KMEMLEAK",
        "DEBUG_OBJECTS",
        "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
        "DEBUG_PREEMPT",
        "DEBUG_MUTEXES",
        "DEBUG_ATOMIC_SLEEP",
        "PREEMPT_TRACER",
        "IRQSOFF_TRACER",
    ])?;
    match costly.is_empty() {
        true => Ok(ok("none")),
        false => Ok(bad(some(&costly)).fix(RT_KERNEL)),
    }
}

fn tracing(root: &Root, _: &Target) -> Found {
    const TRACING: &str = "/sys/kernel/tracing";
    let (mut found, mut fix) = (Vec::new(), Vec::new());
    let instances = root
        .directories(&format!("{TRACING}/instances"))
        .unwrap_or_default();
    let instances = instances.iter().map(|name| {
        let path = format!("{TRACING}/instances/{name}");
        (format!(" in the instance {name}"), path)
    });
    for (place, path) in std::iter::once((String::new(), TRACING.into())).chain(instances) {
        let tracer = root.text(&format!("{path}/current_tracer"))?;
        if tracer != "nop" {
            found.push(format!("tracer {tracer}{place}"));
            fix.push(format!(
                "echo nop > {}",
                quoted_if_odd(&format!("{path}/current_tracer"))
            ));
        }
        if root.text(&format!("{path}/events/enable"))? != "0" {
            found.push(format!("events of ftrace{place}"));
            fix.push(format!(
                "echo 0 > {}",
                quoted_if_odd(&format!("{path}/events/enable"))
            ));
        }
    }
    let probes = root
        .text(&format!("{TRACING}/kprobe_events"))
        .unwrap_or_default();
    if !probes.is_empty() {
        found.push(format!("{} kprobes", probes.lines().count()));
        fix.push(format!("echo > {TRACING}/kprobe_events"));
    }
    let ours = root
        .directories("/proc/latency_tracker")
        .unwrap_or_default();
    if !ours.is_empty() {
        found.push(format!("our own instances: {}", some(&ours)));
        fix.push("latency-tracker stop --all".to_string());
    }
    // tracefs shows neither LTTng nor perf.
    found.extend(programs::tracers(root)?);
    match found.is_empty() {
        true => Ok(ok("none")),
        false => Ok(warn(found.join("; ")).fixes(fix)),
    }
}
