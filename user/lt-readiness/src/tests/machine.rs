// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A simulated machine: the files of a ready machine, in a directory of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::root::Root;

/// The process of `--pid`, on the isolated CPUs 2 and 3 of 4.
pub(super) const PID: u32 = 100;

/// Stands for the contents of a file that is missing. Contents that start with `-> ` stand for a
/// link.
pub(super) const GONE: &str = "<gone>";

/// Returns a `stat` file; the numbers are flags, minor and major faults, priority and policy.
pub(super) fn stat(name: &str, [flags, minor, major, priority, policy]: [u64; 5]) -> String {
    let between = "0 ".repeat(27);
    format!("1 ({name}) S 1 1 1 0 -1 {flags} {minor} 0 {major} {between}{priority} {policy} 0 0")
}

pub(super) fn status(allowed: &str, preempted: u64) -> String {
    format!(
        "Name:\tx\nVmLck:\t   10000 kB\nVmRSS:\t   10040 kB\nCapEff:\t0000000000000000\n\
         Cpus_allowed_list:\t{allowed}\nnonvoluntary_ctxt_switches:\t{preempted}\n"
    )
}

pub(super) fn msr(count: u8) -> String {
    format!(
        "{}{}{}",
        "\0".repeat(0x34),
        char::from(count),
        "\0".repeat(7)
    )
}

pub(super) fn limits(priority: &str, memory: &str) -> String {
    format!(
        "Limit                     Soft Limit           Hard Limit           Units\n\
         Max locked memory         {memory}            unlimited            bytes\n\
         Max realtime priority     {priority}                   99\n"
    )
}

pub(super) const LINE: &str =
    "root=/dev/vda isolcpus=managed_irq,domain,2-3 nohz_full=2-N irqaffinity=0-1";

/// Returns the files of a ready machine.
pub(super) fn ready() -> Vec<(&'static str, String)> {
    let s = |text: &str| text.to_string();
    let mut files = vec![
        ("/sys/devices/system/cpu/online", s("0-3\n")),
        ("/sys/devices/system/cpu/possible", s("0-3\n")),
        ("/sys/devices/system/cpu/isolated", s("2-3\n")),
        ("/sys/devices/system/cpu/nohz_full", s("2-3\n")),
        ("/sys/fs/cgroup/cpuset.cpus.isolated", s("\n")),
        ("/sys/fs/cgroup/cgroup.controllers", s("cpuset cpu\n")),
        ("/sys/fs/cgroup/rt/cpuset.cpus.partition", s("isolated\n")),
        ("/sys/fs/cgroup/rt/cpu.max", s("max 100000\n")),
        ("/sys/fs/cgroup/rt/app/cpu.max", s("max 100000\n")),
        (
            "/proc/sys/kernel/version",
            s("#1 SMP PREEMPT_RT Debian 7.2.12-1\n"),
        ),
        ("/proc/sys/kernel/osrelease", s("7.2.12-rt\n")),
        (
            "/boot/config-7.2.12-rt",
            s("CONFIG_HIGH_RES_TIMERS=y\n# CONFIG_KASAN is not set\n"),
        ),
        ("/proc/cmdline", s(LINE)),
        (
            "/proc/cpuinfo",
            s("vendor_id\t: GenuineIntel\nflags\t\t: constant_tsc nonstop_tsc\n"),
        ),
        (
            "/proc/stat",
            s("cpu  0 0 0 0 0 0 0 9\ncpu2 0 0 0 0 0 0 0 5\ncpu3 0 0 0 0 0 0 0 4\n"),
        ),
        ("/proc/swaps", s("Filename Type Size Used Priority\n")),
        (
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            s("tsc\n"),
        ),
        ("/sys/kernel/tracing/current_tracer", s("nop\n")),
        ("/sys/kernel/tracing/events/enable", s("0\n")),
        ("/proc/irq/default_smp_affinity", s("3\n")),
        ("/proc/irq/24/eth0/.keep", s("")),
        ("/proc/irq/24/effective_affinity_list", s("1\n")),
        ("/proc/irq/24/smp_affinity_list", s("0-3\n")),
        ("/proc/irq/9/effective_affinity_list", s("2\n")),
        ("/sys/devices/virtual/workqueue/cpumask", s("3\n")),
        (
            "/sys/module/pcie_aspm/parameters/policy",
            s("default [performance] powersave\n"),
        ),
        ("/sys/devices/system/cpu/cpufreq/boost", s("0\n")),
        (
            "/sys/kernel/mm/transparent_hugepage/enabled",
            s("always [madvise] never\n"),
        ),
        ("/proc/sys/kernel/numa_balancing", s("0\n")),
        ("/sys/kernel/mm/ksm/run", s("0\n")),
        ("/proc/sys/vm/compaction_proactiveness", s("0\n")),
        ("/proc/sys/kernel/watchdog", s("1\n")),
        ("/proc/sys/kernel/watchdog_cpumask", s("0-1\n")),
        ("/proc/sys/kernel/nmi_watchdog", s("1\n")),
        ("/proc/sys/kernel/hung_task_timeout_secs", s("120\n")),
        ("/proc/sys/vm/stat_interval", s("10\n")),
        (
            "/sys/kernel/tracing/instances/other/current_tracer",
            s("nop\n"),
        ),
        (
            "/sys/kernel/tracing/instances/other/events/enable",
            s("0\n"),
        ),
        ("/proc/1/fd/0", s("-> /dev/null")),
        ("/proc/1/fdinfo/0", s("pos:\t0\nflags:\t02\n")),
        (
            "/proc/1/fdinfo/7",
            s("link_type:\ttracing\nlink_id:\t3\nprog_id:\t2\nattach_type:\t27\n"),
        ),
        (
            "/proc/50/task/50/stat",
            stat("khungtaskd", [0x0020_0000, 0, 0, 0, 0]),
        ),
        ("/proc/50/task/50/status", status("0-1", 0)),
        ("/proc/100/timerslack_ns", s("50000\n")),
        ("/proc/sys/kernel/timer_migration", s("0\n")),
        (
            "/proc/20/task/20/stat",
            stat("ktimers/2", [0x0420_0000, 0, 0, 1, 1]),
        ),
        ("/proc/20/task/20/status", status("2", 0)),
        ("/proc/30/task/30/stat", stat("a (b) c", [0, 0, 0, 0, 0])),
        ("/proc/30/task/30/status", status("0-1", 0)),
        ("/proc/100/stat", stat("app", [0, 500, 3, 80, 1])),
        ("/proc/100/cgroup", s("0::/rt/app\n")),
        ("/proc/100/limits", limits("98", "unlimited")),
        ("/proc/100/task/100/stat", stat("app", [0, 0, 0, 80, 1])),
        ("/proc/100/task/100/status", status("2-3", 7)),
    ];
    for (cpu, path) in [(2, CPU2), (3, CPU3)] {
        let contents = [
            s("0\n"),
            s("0\n"),
            format!("{cpu}\n"),
            s("performance\n"),
            s("performance\n"),
            s("0\n"),
            s("POLL\n"),
            s("0\n"),
            s("0\n"),
            s("C1\n"),
            s("2\n"),
            s("0\n"),
            s("C6\n"),
            s("133\n"),
            s("1\n"),
            s("0\n"),
            msr(5),
            s("2\n"),
            s("2-3\n"),
            s("0\n"),
        ];
        files.extend(path.into_iter().zip(contents));
    }
    files
}

/// The names of one CPU's files; `ready` has their contents.
macro_rules! cpu_files {
    ($cpu:literal) => {
        [
            concat!("/sys/kernel/debug/sched/fair_server/cpu", $cpu, "/runtime"),
            concat!("/sys/kernel/debug/sched/ext_server/cpu", $cpu, "/runtime"),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/topology/thread_siblings_list"
            ),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpufreq/scaling_governor"
            ),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpufreq/energy_performance_preference"
            ),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/power/pm_qos_resume_latency_us"
            ),
            concat!("/sys/devices/system/cpu/cpu", $cpu, "/cpuidle/state0/name"),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpuidle/state0/latency"
            ),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpuidle/state0/disable"
            ),
            concat!("/sys/devices/system/cpu/cpu", $cpu, "/cpuidle/state1/name"),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpuidle/state1/latency"
            ),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpuidle/state1/disable"
            ),
            concat!("/sys/devices/system/cpu/cpu", $cpu, "/cpuidle/state2/name"),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpuidle/state2/latency"
            ),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cpuidle/state2/disable"
            ),
            concat!(
                "/sys/devices/system/machinecheck/machinecheck",
                $cpu,
                "/check_interval"
            ),
            concat!("/dev/cpu/", $cpu, "/msr"),
            concat!("/sys/devices/system/cpu/cpu", $cpu, "/cache/index2/level"),
            concat!(
                "/sys/devices/system/cpu/cpu",
                $cpu,
                "/cache/index2/shared_cpu_list"
            ),
            concat!(
                "/sys/devices/system/machinecheck/machinecheck",
                $cpu,
                "/ignore_ce"
            ),
        ]
    };
}
pub(super) const CPU2: [&str; 20] = cpu_files!(2);
pub(super) const CPU3: [&str; 20] = cpu_files!(3);

/// A simulated machine's files, removed on drop.
pub(super) struct Made(PathBuf);

impl Made {
    pub(super) fn new(changes: &[(&str, String)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let made =
            Self(std::env::temp_dir().join(format!("lt-ready-{}-{number}", std::process::id())));
        ready().iter().for_each(|(path, text)| made.put(path, text));
        changes.iter().for_each(|(path, text)| made.put(path, text));
        made
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path.trim_start_matches('/'));
        if text == GONE {
            match path.is_dir() {
                true => fs::remove_dir_all(&path).unwrap(),
                false => fs::remove_file(&path).unwrap(),
            }
            return;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }

    /// Removes the write permission of a file.
    pub(super) fn protect(&self, path: &str) {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::set_permissions(path, fs::Permissions::from_mode(0o444)).unwrap();
    }

    pub(super) fn root(&self) -> Root {
        Root::new(&self.0)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
