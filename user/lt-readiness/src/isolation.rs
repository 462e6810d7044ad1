// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Rows about the isolation of the CPUs, at boot and by cpuset partitions.

use lt_common::exec::quoted;

use super::answer::{Found, Row, bad, ok, some, warn};
use super::fix::boot;
use super::root::{Missing, Root};
use super::{Cpus, Target, cache, isolated};

const CPU: &str = "/sys/devices/system/cpu";
const CGROUPS: &str = "/sys/fs/cgroup";

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "isolated",
        why: "the scheduler moves ordinary tasks onto CPUs that are not isolated",
        question: shielded,
    },
    Row {
        name: "housekeeping",
        why: "tasks and interrupts that are kept off isolated CPUs need another CPU",
        question: housekeeping,
    },
    Row {
        name: "partitions",
        why: "the kernel silently turns a partition that it cannot grant into an ordinary cpuset",
        question: partitions,
    },
    Row {
        name: "boot line",
        why: "the kernel ignores lists that contradict each other, and reports that only in its log",
        question: boot_line,
    },
    Row {
        name: "SMT siblings",
        why: "two hardware threads share one core, so that each slows the other",
        question: siblings,
    },
    Row {
        name: "caches",
        why: "other CPUs evict the memory of a task from a cache that they share",
        question: cache::shared,
    },
    Row {
        name: "tick",
        why: "without nohz_full the tick interrupts a busy CPU CONFIG_HZ times a second",
        question: tick,
    },
    Row {
        name: "RCU callbacks",
        why: "without rcu_nocbs each CPU runs its RCU callbacks itself, in softirqs",
        question: rcu,
    },
    Row {
        name: "tick skew",
        why: "ticks of all CPUs at the same instant contend for the same locks",
        question: skew,
    },
];

fn shielded(root: &Root, target: &Target) -> Found {
    // Fails if the kernel has no such file, but not if there are no cgroups.
    root.cpus(&format!("{CPU}/isolated"))?;
    let open = target.cpus.without(&isolated(root));
    if open.is_empty() {
        return Ok(ok("all of them"));
    }
    let answer = bad(format!("not CPU {open}"));
    let cpus = target.shielded();
    if cpus.is_empty() {
        return Ok(answer);
    }
    // A cpuset of cgroup version 1 has no partitions.
    let controllers = root.text(&format!("{CGROUPS}/cgroup.controllers"));
    if !controllers.is_ok_and(|all| all.split_whitespace().any(|one| one == "cpuset")) {
        return Ok(answer.fix(boot(&format!("isolcpus=managed_irq,domain,{cpus}"))));
    }
    Ok(answer.fixes([
        format!("echo +cpuset > {CGROUPS}/cgroup.subtree_control"),
        format!("mkdir -p {CGROUPS}/rt"),
        format!("echo {cpus} > {CGROUPS}/rt/cpuset.cpus"),
        format!("echo isolated > {CGROUPS}/rt/cpuset.cpus.partition"),
    ]))
}

fn housekeeping(_: &Root, target: &Target) -> Found {
    let rest = target.online.without(&target.cpus);
    match rest.is_empty() {
        false => Ok(ok(format!("CPU {rest}"))),
        true => Ok(bad(
            "no CPU is left for other work: leave at least one out, as in `check --rt 1-3`",
        )),
    }
}

fn partitions(root: &Root, _: &Target) -> Found {
    /// Depth of the search: partitions are not expected any deeper.
    const DEPTH: usize = 4;
    root.text(&format!("{CGROUPS}/cgroup.controllers"))?;
    let (mut valid, mut invalid) = (0, Vec::new());
    let mut paths = vec![(CGROUPS.to_string(), 0)];
    while let Some((path, depth)) = paths.pop() {
        match root
            .text(&format!("{path}/cpuset.cpus.partition"))
            .as_deref()
        {
            Ok("root" | "isolated") => valid += 1,
            Ok(state) if state.contains("invalid") => {
                invalid.push((path.clone(), state.to_string()))
            }
            _ => {}
        }
        if depth < DEPTH {
            let below = root.directories(&path).unwrap_or_default().into_iter();
            paths.extend(below.map(|name| (format!("{path}/{name}"), depth + 1)));
        }
    }
    if invalid.is_empty() {
        return Ok(ok(format!("{valid}, all valid")));
    }
    let shown = |(path, state): &(String, String)| format!("{path}: {state}");
    let fix = |(path, _): &(String, String)| {
        format!(
            "echo member > {}",
            quoted(&format!("{path}/cpuset.cpus.partition"))
        )
    };
    let found = some(&invalid.iter().map(shown).collect::<Vec<_>>());
    Ok(bad(found).fixes(invalid.iter().map(fix)))
}

/// Flags and CPUs of `isolcpus=`; `None` if the CPUs are not a list.
type Isolcpus = (Vec<String>, Option<Cpus>);

/// Returns the last `isolcpus=` of the command line.
fn isolcpus(root: &Root, last: u32) -> Result<Option<Isolcpus>, Missing> {
    let Some(value) = root.parameter("isolcpus")? else {
        return Ok(None);
    };
    let mut flags = Vec::new();
    let mut rest = value.as_str();
    while let Some((flag, after)) = rest.split_once(',')
        && flag.starts_with(|c: char| c.is_ascii_lowercase())
        && flag != "all"
    {
        flags.push(flag.to_string());
        rest = after;
    }
    // Without flags, `isolcpus=` means `domain` (housekeeping_isolcpus_setup).
    if flags.is_empty() {
        flags.push("domain".into());
    }
    Ok(Some((flags, Cpus::from_boot(rest, last))))
}

/// Returns the CPUs that managed interrupts of drivers (NVMe, network) avoid.
pub(super) fn managed(root: &Root, target: &Target) -> Result<Cpus, Missing> {
    let isolcpus = isolcpus(root, last_possible(root, target))?;
    let managed = isolcpus.filter(|(flags, _)| flags.iter().any(|flag| flag == "managed_irq"));
    Ok(managed.and_then(|(_, cpus)| cpus).unwrap_or_default())
}

fn last_possible(root: &Root, target: &Target) -> u32 {
    let possible = root.cpus(&format!("{CPU}/possible")).unwrap_or_default();
    possible.last().or(target.online.last()).unwrap_or(0)
}

fn boot_line(root: &Root, target: &Target) -> Found {
    let last = last_possible(root, target);
    let mut wrong = Vec::new();
    let mut compare = |what: &str, asked: Option<&Cpus>, got: &Cpus| match asked {
        None => wrong.push(format!("{what} is not a list of CPUs")),
        Some(asked) if asked != got => {
            wrong.push(format!("{what} asks for {asked}, the kernel has {got}"))
        }
        Some(_) => {}
    };
    let full = root.cpus(&format!("{CPU}/nohz_full")).unwrap_or_default();
    let mut asked = Vec::new();
    if let Some(list) = root.parameter("nohz_full")? {
        compare("nohz_full=", Cpus::from_boot(&list, last).as_ref(), &full);
        asked.push("nohz_full");
    }
    if let Some((flags, cpus)) = isolcpus(root, last)? {
        if flags.iter().any(|flag| flag == "domain") {
            let got = root.cpus(&format!("{CPU}/isolated"))?;
            compare("isolcpus=", cpus.as_ref(), &got);
        }
        if flags.iter().any(|flag| flag == "nohz") {
            compare("isolcpus=nohz", cpus.as_ref(), &full);
        }
        asked.push("isolcpus");
    }
    if !wrong.is_empty() {
        let shielded = target.shielded();
        let mend = boot(&format!(
            "isolcpus=managed_irq,domain,{shielded} nohz_full={shielded}"
        ));
        return Ok(bad(wrong.join("; "))
            .fix("dmesg | grep Housekeeping")
            .fix(mend));
    }
    match asked.is_empty() {
        true => Ok(ok("asks for no isolation")),
        false => Ok(ok(format!("{} as asked", asked.join(" and ")))),
    }
}

fn siblings(root: &Root, target: &Target) -> Found {
    let mut others = Cpus::default();
    for cpu in target.cpus.iter() {
        let threads = root.cpus(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"))?;
        others = others.or(&threads.without(&Cpus::from_iter([cpu])));
    }
    let others = others.and(&target.online);
    if others.is_empty() {
        return Ok(ok("none online"));
    }
    let foreign = others.without(&target.cpus);
    // The first CPU of x86 has no such file: the kernel cannot take it offline.
    let off = |cpus: &Cpus| {
        let files = cpus.iter().map(|cpu| format!("{CPU}/cpu{cpu}/online"));
        let files: Vec<_> = files.filter(|file| root.exists(file)).collect();
        files.into_iter().map(|file| format!("echo 0 > {file}"))
    };
    if !foreign.is_empty() {
        return Ok(
            bad(format!("CPU {foreign} runs other work on the same cores")).fixes(off(&foreign)),
        );
    }
    // Keep the first thread of each core.
    let mut second = Cpus::default();
    for cpu in target.cpus.iter() {
        let threads = root.cpus(&format!("{CPU}/cpu{cpu}/topology/thread_siblings_list"))?;
        if threads.first() != Some(cpu) {
            second = second.or(&Cpus::from_iter([cpu]));
        }
    }
    Ok(warn(format!("CPU {others} share their cores among themselves")).fixes(off(&second)))
}

fn tick(root: &Root, target: &Target) -> Found {
    let full = root.cpus(&format!("{CPU}/nohz_full"))?;
    match target.cpus.without(&full) {
        none if none.is_empty() => Ok(ok("stops while one task runs (nohz_full)")),
        ticking => {
            let answer = warn(format!("on CPU {ticking}, even while one task runs"));
            Ok(answer.fix(boot(&format!("nohz_full={}", target.shielded()))))
        }
    }
}

fn rcu(root: &Root, target: &Target) -> Found {
    // nohz_full= implies rcu_nocbs=.
    let full = root.cpus(&format!("{CPU}/nohz_full")).unwrap_or_default();
    let last = last_possible(root, target);
    let asked = root.parameter("rcu_nocbs")?;
    // The kernel's default applies only if the command line has neither (rcu_init_nohz).
    let is_default = asked.is_none() && full.is_empty();
    let listed = asked.and_then(|list| Cpus::from_boot(&list, last));
    let offloaded = full.or(&listed.unwrap_or_default());
    let left = target.cpus.without(&offloaded);
    if left.is_empty() {
        return Ok(ok("offloaded"));
    }
    let all = root.built_with(&["RCU_NOCB_CPU_DEFAULT_ALL"]);
    if is_default && all.is_ok_and(|all| !all.is_empty()) {
        return Ok(ok("offloaded by the kernel's configuration"));
    }
    let answer = warn(format!("executed on CPU {left}"));
    Ok(answer.fix(boot(&format!("rcu_nocbs={}", target.shielded()))))
}

fn skew(root: &Root, target: &Target) -> Found {
    let full = root.cpus(&format!("{CPU}/nohz_full")).unwrap_or_default();
    let skewed = root
        .parameter("skew_tick")?
        .is_some_and(|value| value == "1");
    match (skewed, target.cpus.within(&full)) {
        (true, _) => Ok(ok("skew_tick=1")),
        (false, true) => Ok(ok("no tick there (nohz_full)")),
        (false, false) => Ok(warn("none").fix(boot("skew_tick=1"))),
    }
}
