// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about power saving, and about the firmware, which the kernel cannot observe.

use super::Target;
use super::answer::{Answer, Found, Row, bad, ok, some, warn};
use super::fix::boot;
use super::root::{Root, chosen};

const CPU: &str = "/sys/devices/system/cpu";

/// The longest acceptable exit latency of an idle state, in µs: shallow states (C1, POLL) have
/// less.
const WAKE: u64 = 10;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "firmware",
        why: "a system management interrupt stops all CPUs, and no kernel can hold it off",
        question: firmware,
    },
    Row {
        name: "EFI runtime",
        why: "a firmware call, such as access to a variable, may keep interrupts off",
        question: efi,
    },
    Row {
        name: "idle states",
        why: "wakeup from a deep idle state is late by the exit latency of that state",
        question: idle,
    },
    Row {
        name: "frequency",
        why: "a CPU that was idle runs slowly until its governor raises the frequency",
        question: governor,
    },
    Row {
        name: "energy preference",
        why: "the processor itself takes time to raise its frequency",
        question: preference,
    },
    Row {
        name: "boost",
        why: "the frequency of a boosted core depends on the load of the others",
        question: boost,
    },
    Row {
        name: "PCIe links",
        why: "a device answers late while its link wakes up",
        question: links,
    },
];

fn firmware(_: &Root, target: &Target) -> Found {
    match target.window.smi.clone()? {
        0 => Ok(ok("no system management interrupt in 1 s")),
        count => Ok(bad(format!(
            "{count} system management interrupts in 1 s: check the firmware's setup"
        ))),
    }
}

fn efi(root: &Root, _: &Target) -> Found {
    if !root.exists("/sys/firmware/efi") {
        return Ok(ok("not booted by EFI"));
    }
    if root.parameter("noefi")?.is_some() {
        return Ok(ok("off, by noefi"));
    }
    // The last word applies.
    let words = root.parameter("efi")?.unwrap_or_default();
    let asked = words
        .split(',')
        .rfind(|w| matches!(*w, "runtime" | "noruntime"));
    let off = match asked {
        Some(word) => word == "noruntime",
        // The default of the kernel's configuration, which is off with PREEMPT_RT.
        None => !root.built_with(&["EFI_DISABLE_RUNTIME"])?.is_empty(),
    };
    match off {
        true => Ok(ok("off")),
        false => Ok(warn("on; efibootmgr needs it").fix(boot("efi=noruntime"))),
    }
}

fn idle(root: &Root, target: &Target) -> Found {
    // -1 or a huge number means that no program holds a limit.
    let held = root
        .bytes("/dev/cpu_dma_latency", 0)
        .map(i32::from_le_bytes);
    let held = held.ok().and_then(|limit| u64::try_from(limit).ok());
    let (mut deepest, mut fix): (Option<(u64, String)>, _) = (None, Vec::new());
    for cpu in target.cpus.iter() {
        let directory = format!("{CPU}/cpu{cpu}");
        let limit = root.text(&format!("{directory}/power/pm_qos_resume_latency_us"));
        let limit = match limit.as_deref() {
            // `n/a` means that no latency is allowed, and 0 that there is no limit
            // (pm_qos_resume_latency_us_show).
            Ok("n/a") => Some(0),
            Ok("0") | Err(_) => None,
            Ok(limit) => limit.parse().ok(),
        };
        let limit = limit.unwrap_or(u64::MAX).min(held.unwrap_or(u64::MAX));
        let mut here = (0, "none".to_string());
        for state in root.directories(&format!("{directory}/cpuidle"))? {
            let state = format!("{directory}/cpuidle/{state}");
            let latency: u64 = root.value(&format!("{state}/latency"))?;
            let disabled = root.value::<u64>(&format!("{state}/disable"))? != 0;
            if !disabled && latency <= limit && latency >= here.0 {
                here = (latency, root.text(&format!("{state}/name"))?);
            }
        }
        if here.0 > WAKE {
            fix.push(format!(
                "echo {WAKE} > {directory}/power/pm_qos_resume_latency_us"
            ));
        }
        deepest = deepest.max(Some(here));
    }
    let (latency, name) = deepest.unwrap_or_default();
    let found = format!("deepest permitted state {name}, exit latency {latency} us");
    match fix.is_empty() {
        true => Ok(ok(found)),
        false => Ok(warn(found).fixes(fix)),
    }
}

/// Answers for a file of each CPU's cpufreq directory that should contain this word.
fn each(
    root: &Root,
    target: &Target,
    file: &str,
    want: &str,
    wrong: fn(String) -> Answer,
) -> Found {
    let (mut others, mut fix) = (Vec::new(), Vec::new());
    for cpu in target.cpus.iter() {
        let path = format!("{CPU}/cpu{cpu}/cpufreq/{file}");
        let value = root.text(&path)?;
        if value != want {
            others.push(format!("{value} on CPU {cpu}"));
            fix.push(format!("echo {want} > {path}"));
        }
    }
    match others.is_empty() {
        true => Ok(ok(want)),
        false => Ok(wrong(some(&others)).fixes(fix)),
    }
}

fn governor(root: &Root, target: &Target) -> Found {
    each(root, target, "scaling_governor", "performance", bad)
}

fn preference(root: &Root, target: &Target) -> Found {
    each(
        root,
        target,
        "energy_performance_preference",
        "performance",
        warn,
    )
}

fn boost(root: &Root, _: &Target) -> Found {
    // Intel's driver has its own file, with the opposite meaning.
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    let (path, off) = match root.exists(&intel) {
        true => (intel, 1),
        false => (format!("{CPU}/cpufreq/boost"), 0),
    };
    match root.value::<u64>(&path)? == off {
        true => Ok(ok("off")),
        false => Ok(warn("on").fix(format!("echo {off} > {path}"))),
    }
}

fn links(root: &Root, _: &Target) -> Found {
    let path = "/sys/module/pcie_aspm/parameters/policy";
    let policies = root.text(path)?;
    match chosen(&policies) {
        "performance" => Ok(ok("performance")),
        policy => Ok(warn(format!("policy {policy}")).fix(format!("echo performance > {path}"))),
    }
}
