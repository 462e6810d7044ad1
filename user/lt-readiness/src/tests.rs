// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests every row on simulated machines: a ready machine, and machines that differ from it in one
//! respect.

mod cases;
mod machine;

use self::cases::{Case, cases};
use self::machine::{GONE, Made, PID, stat, status};
use super::answer::State::{self, Bad, Ok, Unknown, Warn};
use super::fix::Fix;
use super::*;

fn cpus(list: &str) -> Cpus {
    list.parse().unwrap()
}

fn answers(root: &Root, case: &Case, made: &Made) -> Vec<(&'static str, State, String, usize)> {
    let wait = || case.2.iter().for_each(|(path, text)| made.put(path, text));
    let target = aim(root, &cpus("2-3"), Some(PID), wait).unwrap();
    let all = ask(root, &target).into_iter();
    all.map(|(_, row, answer)| (row.name, answer.state, answer.found, answer.fix.len()))
        .collect()
}

#[test]
fn a_ready_machine_passes_all_rows() {
    let made = Made::new(&[]);
    let nothing = ("", vec![], vec![], Ok, "");
    for (row, state, found, fixes) in answers(&made.root(), &nothing, &made) {
        assert_eq!((state, fixes), (Ok, 0), "{row}: {found}");
    }
}

#[test]
fn each_row_sees_its_difference() {
    for case in cases() {
        let made = Made::new(&case.1);
        let answers = answers(&made.root(), &case, &made);
        let (_, state, found, fixes) = answers.iter().find(|(row, ..)| *row == case.0).unwrap();
        assert_eq!(*state, case.3, "{}: {found}", case.0);
        assert!(found.contains(case.4), "{}: {found}", case.0);
        let mends = matches!(state, Warn | Bad);
        assert!(
            mends || *fixes == 0,
            "{}: what is not wrong is mended",
            case.0
        );
    }
}

#[test]
fn every_row_has_a_case_of_each_kind() {
    // These answers need only earlier readings of the check, or the existence of /proc.
    let always = [
        "housekeeping",
        "irqbalance",
        "other threads",
        "highest priority",
        "policy",
    ];
    // The kernel answers this row itself, through clock_getres: see below.
    let rows = groups();
    let rows = rows.iter().flat_map(|(_, rows)| rows.iter());
    let cases = cases();
    for row in rows.filter(|row| row.name != "high resolution") {
        let has = |states: &[State]| {
            cases
                .iter()
                .any(|c| c.0 == row.name && states.contains(&c.3))
        };
        assert!(has(&[Warn, Bad]), "{}", row.name);
        assert!(
            has(&[Unknown]) || always.contains(&row.name),
            "{}",
            row.name
        );
    }
    let known = |row: &str| {
        groups()
            .iter()
            .any(|(_, rows)| rows.iter().any(|r| r.name == row))
    };
    assert!(cases.iter().all(|case| known(case.0)));
}

#[test]
fn the_resolution_of_timers_is_as_the_kernel_reports_it() {
    // No configuration in /boot is needed.
    let made = Made::new(&[("/boot", GONE.into())]);
    let root = made.root();
    let says = |resolution| {
        let mut target = aim(&root, &cpus("2-3"), None, || ()).unwrap();
        target.resolution = resolution;
        let mut all = ask(&root, &target).into_iter();
        let (.., answer) = all
            .find(|(_, row, _)| row.name == "high resolution")
            .unwrap();
        (answer.state, answer.found, answer.fix.len())
    };
    assert_eq!(says(Result::Ok(1)), (Ok, "on".into(), 0));
    let (state, found, _) = says(Result::Ok(4_000_000));
    assert_eq!(state, Bad);
    assert!(found.contains("4000000 ns"), "{found}");
    made.put("/proc/cmdline", "quiet highres=off");
    let (state, found, fixes) = says(Result::Ok(4_000_000));
    assert!(found.contains("highres=off"), "{found}");
    assert_eq!((state, fixes), (Bad, 1));
    assert_eq!(says(Err(missing("x"))).0, Unknown);
}

#[test]
fn without_proc_rows_about_threads_are_unknown() {
    let made = Made::new(&[("/proc", GONE.into())]);
    let root = made.root();
    let target = aim(&root, &cpus("2-3"), None, || ()).unwrap();
    let states = ask(&root, &target)
        .into_iter()
        .map(|(_, row, answer)| (row.name, answer.state));
    let states: Vec<_> = states
        .filter(|(row, _)| row.contains("thread") || *row == "irqbalance")
        .collect();
    assert_eq!(
        states,
        [("irqbalance", Unknown), ("other threads", Unknown)]
    );
}

#[test]
fn the_check_is_not_among_the_other_threads() {
    let own = std::process::id();
    let task = format!("/proc/{own}/task/{own}");
    let (file, other) = (format!("{task}/stat"), format!("{task}/status"));
    let made = Made::new(&[
        (file.as_str(), stat("check", [0, 0, 0, 0, 0])),
        (other.as_str(), status("0-3", 0)),
    ]);
    let nothing = ("", vec![], vec![], Ok, "");
    let answers = answers(&made.root(), &nothing, &made);
    let mut answers = answers.iter();
    let (_, state, found, _) = answers.find(|(row, ..)| *row == "other threads").unwrap();
    assert_eq!(*state, Ok, "{found}");
}

#[test]
fn the_default_is_the_isolated_cpus_or_all() {
    let aimed = |changes: &[(&str, String)], list: &str| {
        let made = Made::new(changes);
        let target = aim(&made.root(), &cpus(list), None, || ());
        target
            .map(|target| (target.cpus.to_string(), target.from))
            .map_err(|e| e.to_string())
    };
    let boot = "/sys/devices/system/cpu/isolated";
    assert_eq!(aimed(&[], ""), Result::Ok(("2-3".into(), "isolated")));
    assert_eq!(aimed(&[], "1"), Result::Ok(("1".into(), "as given")));
    let run_time = ("/sys/fs/cgroup/cpuset.cpus.isolated", "1".to_string());
    assert_eq!(aimed(&[run_time], "").unwrap().0, "1-3");
    assert_eq!(aimed(&[(boot, String::new())], "").unwrap().0, "0-3");
    assert_eq!(
        aimed(&[], "3-4"),
        Err("CPU 4 is not online (online: 0-3)".into())
    );
}

#[test]
fn commands_leave_a_cpu_for_the_system() {
    let made = Made::new(&[("/sys/devices/system/cpu/isolated", String::new())]);
    let root = made.root();
    let target = aim(&root, &Cpus::default(), None, || ()).unwrap();
    assert_eq!(
        (
            target.shielded().to_string(),
            target.housekeeping().to_string()
        ),
        ("1-3".into(), "0".into())
    );
    let all = ask(&root, &target);
    let (.., isolated) = all
        .iter()
        .find(|(_, row, _)| row.name == "isolated")
        .unwrap();
    assert_eq!(
        isolated.fix[2].command(),
        "echo 1-3 > /sys/fs/cgroup/rt/cpuset.cpus"
    );
    assert_eq!(
        isolated.fix[3].command(),
        "echo isolated > /sys/fs/cgroup/rt/cpuset.cpus.partition"
    );
}

#[test]
fn a_fix_needs_only_what_the_kernel_has() {
    let fixes = |row: &str, changes: &[(&str, String)]| {
        let made = Made::new(changes);
        let root = made.root();
        let target = aim(&root, &cpus("2-3"), None, || ()).unwrap();
        let mut all = ask(&root, &target).into_iter();
        let (.., answer) = all.find(|(_, asked, _)| asked.name == row).unwrap();
        answer.fix.iter().map(Fix::command).collect::<Vec<_>>()
    };
    let stock = || ("/proc/sys/kernel/version", "#1 SMP".to_string());
    let mode = |text: &str| ("/sys/kernel/debug/sched/preempt", text.to_string());
    let full = "echo full > /sys/kernel/debug/sched/preempt";
    let preemption = |mode| fixes("preemption", &[stock(), mode]);
    assert!(preemption(mode("none (voluntary) full")).contains(&full.into()));
    assert_eq!(preemption(mode("full (lazy)")).len(), 1);
    assert_eq!(fixes("preemption", &[stock()]).len(), 1);
    let clock = "/sys/devices/system/clocksource/clocksource0";
    let (current, available) = (
        format!("{clock}/current_clocksource"),
        format!("{clock}/available_clocksource"),
    );
    let choices = |text: &str| {
        let kvm = (current.as_str(), "kvm-clock".into());
        fixes("clock source", &[kvm, (available.as_str(), text.into())])
    };
    assert_eq!(choices("kvm-clock tsc").len(), 1);
    assert!(choices("kvm-clock acpi_pm").is_empty());
    // A cpuset of cgroup version 1 has no partitions.
    let open = ("/sys/devices/system/cpu/isolated", String::new());
    let v1 = ("/sys/fs/cgroup/cgroup.controllers", GONE.into());
    let words = fixes("isolated", &[open, v1]);
    assert_eq!(words.len(), 1);
    assert!(
        words[0].contains("isolcpus=managed_irq,domain,2-3"),
        "{words:?}"
    );
    // The first CPU of x86 cannot be taken offline.
    let siblings = "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list";
    let sibling = || (siblings, "0,2".to_string());
    assert!(fixes("SMT siblings", &[sibling()]).is_empty());
    let online = ("/sys/devices/system/cpu/cpu0/online", "1".into());
    assert_eq!(fixes("SMT siblings", &[sibling(), online]).len(), 1);
    // irqbalance ignores the list if it also has the mask.
    let banned = |text: &str| {
        let task = ("/proc/40/task/40/stat", stat("irqbalance", [0; 5]));
        let place = ("/proc/40/task/40/status", status("0-1", 0));
        let environment = ("/proc/40/environ", text.into());
        fixes("irqbalance", &[task, place, environment])
    };
    assert_eq!(banned("IRQBALANCE_BANNED_CPULIST=3\0").len(), 1);
    let words = banned("IRQBALANCE_BANNED_CPUS=8\0");
    assert!(words[0].starts_with("echo IRQBALANCE_BANNED_CPUS= >>"));
    assert!(words[1].contains("IRQBALANCE_BANNED_CPULIST=2-3 >>"));
}

#[test]
fn an_interrupt_that_cannot_be_moved_is_managed() {
    let made = Made::new(&[("/proc/irq/24/effective_affinity_list", "2".into())]);
    made.protect("/proc/irq/24/smp_affinity_list");
    let root = made.root();
    let says = |row: &str| {
        let target = aim(&root, &cpus("2-3"), None, || ()).unwrap();
        let all = ask(&root, &target).into_iter();
        let mut all = all.filter(|(_, asked, _)| asked.name == row);
        let (.., answer) = all.next().unwrap();
        (answer.state, answer.found)
    };
    assert_eq!(says("interrupts").0, Ok);
    let (state, found) = says("managed interrupts");
    assert!(found.contains("24 (eth0) on CPU 2: of queues"), "{found}");
    assert_eq!(state, Warn);
    made.put("/proc/cmdline", "quiet");
    assert_eq!(
        says("managed interrupts"),
        (Warn, "24 (eth0) on CPU 2".into())
    );
}

#[test]
fn a_process_that_does_not_exist_is_an_error() {
    let made = Made::new(&[]);
    let error = aim(&made.root(), &cpus("2"), Some(4711), || ()).unwrap_err();
    assert_eq!(error.to_string(), "--pid 4711: no such process");
}
