// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The expected answer of each row if one thing differs from the ready machine.

use super::machine::{CPU2, CPU3, GONE, LINE, limits, msr, stat, status};
use crate::answer::State::{self, Bad, Ok, Unknown, Warn};

/// The row, the differing files, the changes while counters are watched, and the expected answer.
pub(super) type Case = (
    &'static str,
    Vec<(&'static str, String)>,
    Vec<(&'static str, String)>,
    State,
    &'static str,
);

/// Returns a case in which `path` has the contents `text`.
pub(super) fn case(
    row: &'static str,
    path: &'static str,
    text: &str,
    state: State,
    found: &'static str,
) -> Case {
    (row, vec![(path, text.to_string())], vec![], state, found)
}

/// Returns a case in which a file changes while counters are watched.
pub(super) fn later(
    row: &'static str,
    path: &'static str,
    text: String,
    state: State,
    found: &'static str,
) -> Case {
    (row, vec![], vec![(path, text)], state, found)
}

// One case per line.
#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    let line = |text: &str| format!("{LINE} {text}");
    let app = |numbers| stat("app", numbers);
    let mut cases = vec![
        case("preemption", "/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC", Warn, "not PREEMPT_RT"),
        case("preemption", "/proc/sys/kernel/version", GONE, Unknown, "does not exist"),
        case("fair server", CPU2[0], "50000000", Warn, "50 ms of a period on CPU 2;"),
        case("fair server", CPU2[0], GONE, Unknown, "does not exist"),
        case("sched_ext server", CPU3[1], "50000000", Warn, "on CPU 3;"),
        case("sched_ext server", CPU3[1], GONE, Unknown, "does not exist"),
        case("debug options", "/boot/config-7.2.12-rt", "CONFIG_KASAN=y\n", Bad, "KASAN"),
        case("debug options", "/boot", GONE, Unknown, "does not exist"),
        case("tracing", "/sys/kernel/tracing/current_tracer", "function", Warn, "tracer function"),
        case("tracing", "/sys/kernel/tracing/events/enable", "X", Warn, "events of ftrace"),
        case("tracing", "/sys/kernel/tracing/kprobe_events", "p:a b\np:c d", Warn, "2 kprobes"),
        case("tracing", "/proc/latency_tracker/slow/stats", "", Warn, "instances: slow"),
        case("tracing", "/sys/kernel/tracing/instances/other/events/enable", "X", Warn, "events of ftrace in the instance other"),
        case("tracing", "/sys/kernel/tracing/instances/other/current_tracer", "function", Warn, "tracer function in the instance other"),
        case("tracing", "/proc/50/fd/9", "-> anon_inode:[lttng_session]", Warn, "LTTng session of [50]"),
        case("tracing", "/proc/50/fd/9", "-> anon_inode:[perf_event]", Warn, "perf events of [50]"),
        case("tracing", "/proc/50/fd/9", "-> anon_inode:[eventpoll]", Ok, "none"),
        case("tracing", "/proc/1/fd", GONE, Unknown, "does not exist"),
        case("tracing", "/sys/kernel/tracing", GONE, Unknown, "does not exist"),
        case("BPF programs", "/proc/100/fdinfo/5", "pos:\t0\nlink_type:\traw_tracepoint\nprog_id:\t4", Warn, "[100] has 1"),
        case("BPF programs", "/proc/100/fdinfo/5", "link_type:\ttracing\nprog_id:\t4\nattach_type:\t24", Warn, "has 1"),
        case("BPF programs", "/proc/100/fdinfo/5", "link_type:\ttracing\nprog_id:\t4\nattach_type:\t0", Ok, "none"),
        case("BPF programs", "/proc/100/fdinfo/5", "link_type:\tperf\nprog_id:\t4", Warn, "has 1"),
        case("BPF programs", "/proc/100/fdinfo/5", "prog_type:\t5\nprog_id:\t4", Warn, "has 1"),
        ("BPF programs", vec![("/proc/100/fdinfo/5", "prog_type:\t2\nprog_id:\t4".into()), ("/proc/100/fdinfo/6", "link_type:\tperf\nprog_id:\t4".into())], vec![], Warn, "has 1"),
        ("BPF programs", vec![("/proc/100/fdinfo/5", "prog_type:\t2\nprog_id:\t4".into()), ("/proc/100/fdinfo/6", "link_type:\tperf\nprog_id:\t5".into())], vec![], Warn, "has 2"),
        case("BPF programs", "/proc/100/fdinfo/5", "link_type:\tcgroup\nprog_id:\t4", Ok, "none"),
        case("BPF programs", "/proc/100/fdinfo/5", "prog_type:\t8\nprog_id:\t4", Ok, "none"),
        case("BPF programs", "/proc/1", GONE, Unknown, "does not exist"),
        case("isolated", "/sys/devices/system/cpu/isolated", "3", Bad, "not CPU 2"),
        case("isolated", "/sys/devices/system/cpu/isolated", GONE, Unknown, "does not exist"),
        case("isolated", "/sys/devices/system/cpu/isolated", "a", Unknown, "'a': expected a list of CPUs"),
        case("housekeeping", "/sys/devices/system/cpu/online", "2-3", Bad, "leave at least one"),
        case("partitions", "/sys/fs/cgroup/a/b/cpuset.cpus.partition", "root invalid (x)", Bad, "/a/b: root invalid"),
        case("partitions", "/sys/fs/cgroup/cgroup.controllers", GONE, Unknown, "does not exist"),
        case("boot line", "/sys/devices/system/cpu/nohz_full", "", Bad, "nohz_full= asks for 2-3, the kernel has none"),
        case("boot line", "/proc/cmdline", "isolcpus=1-3", Bad, "isolcpus= asks for 1-3, the kernel has 2-3"),
        case("boot line", "/proc/cmdline", "isolcpus=nohz,1-3", Bad, "isolcpus=nohz asks for 1-3"),
        case("boot line", "/proc/cmdline", "nohz_full=x", Bad, "nohz_full= is not a list"),
        case("boot line", "/proc/cmdline", "quiet -- nohz_full=1", Ok, "asks for no isolation"),
        case("boot line", "/proc/cmdline", GONE, Unknown, "does not exist"),
        case("SMT siblings", CPU2[2], "0,2", Bad, "CPU 0 runs other work"),
        case("SMT siblings", CPU3[2], "2-3", Warn, "CPU 2 share"),
        case("SMT siblings", CPU3[2], "3,7", Ok, "none online"),
        case("SMT siblings", CPU2[2], GONE, Unknown, "does not exist"),
        case("caches", CPU2[18], "0-3", Ok, "L2 shared with CPU 0-1; this processor cannot"),
        case("caches", CPU2[17], GONE, Unknown, "does not exist"),
        case("tick", "/sys/devices/system/cpu/nohz_full", "3", Warn, "on CPU 2,"),
        case("tick", "/sys/devices/system/cpu/nohz_full", GONE, Unknown, "does not exist"),
        case("RCU callbacks", "/sys/devices/system/cpu/nohz_full", "3", Warn, "on CPU 2"),
        case("tick skew", "/sys/devices/system/cpu/nohz_full", "", Warn, "none"),
        case("interrupts", "/proc/irq/24/effective_affinity_list", "2", Bad, "24 (eth0) on CPU 2"),
        ("interrupts", vec![("/proc/irq/24/effective_affinity_list", "2".into()), ("/proc/irq/24/smp_affinity_list", "0-1".into())], vec![], Ok, "0 elsewhere; 24 move when"),
        case("interrupts", "/proc/irq", GONE, Unknown, "does not exist"),
        case("new interrupts", "/proc/irq/default_smp_affinity", "f", Warn, "also on CPU 2-3"),
        case("new interrupts", "/proc/irq/default_smp_affinity", GONE, Unknown, "does not exist"),
        case("managed interrupts", "/proc/cmdline", "isolcpus=2-3", Warn, "may come to CPU 2-3"),
        case("managed interrupts", "/proc/cmdline", GONE, Unknown, "does not exist"),
        case("work queues", "/sys/devices/virtual/workqueue/cpumask", "f", Bad, "on CPU 2-3"),
        case("work queues", "/sys/devices/virtual/workqueue/cpumask", GONE, Unknown, "does not exist"),
        case("other threads", "/proc/30/task/30/status", &status("0-3", 0), Warn, "a (b) c[30]"),
        later("firmware", CPU3[16], msr(7), Bad, "2 system management interrupts"),
        case("firmware", CPU2[16], GONE, Unknown, "modprobe msr"),
        case("firmware", "/proc/cpuinfo", "vendor_id : AuthenticAMD", Unknown, "only Intel"),
        case("firmware", "/proc/cpuinfo", "vendor_id : GenuineIntel\nflags : hypervisor", Unknown, "of its host"),
        case("EFI runtime", "/sys/firmware/efi/runtime", "0x1", Warn, "on; "),
        case("idle states", CPU2[14], "0", Warn, "C6, exit latency 133 us"),
        case("idle states", "/sys/devices/system/cpu/cpu2/cpuidle", GONE, Unknown, "does not exist"),
        case("frequency", CPU3[3], "schedutil", Bad, "schedutil on CPU 3"),
        case("frequency", CPU2[3], GONE, Unknown, "does not exist"),
        case("energy preference", CPU3[4], "balance_power", Warn, "balance_power on CPU 3"),
        case("energy preference", CPU2[4], GONE, Unknown, "does not exist"),
        case("boost", "/sys/devices/system/cpu/cpufreq/boost", "1", Warn, "on"),
        case("boost", "/sys/devices/system/cpu/intel_pstate/no_turbo", "0", Warn, "on"),
        case("boost", "/sys/devices/system/cpu/cpufreq/boost", GONE, Unknown, "does not exist"),
        case("PCIe links", "/sys/module/pcie_aspm/parameters/policy", "[default] x", Warn, "policy default"),
        case("PCIe links", "/sys/module/pcie_aspm/parameters/policy", GONE, Unknown, "does not exist"),
        case("swap", "/proc/swaps", "Filename\n/dev/vdb", Warn, "1 in use"),
        case("swap", "/proc/swaps", GONE, Unknown, "does not exist"),
        case("huge pages", "/sys/kernel/mm/transparent_hugepage/enabled", "[always] never", Warn, "always"),
        case("huge pages", "/sys/kernel/mm/transparent_hugepage/enabled", GONE, Unknown, "does not exist"),
        case("lockup detector", "/proc/sys/kernel/watchdog_cpumask", "0-3", Warn, "on CPU 2-3"),
        case("lockup detector", "/proc/sys/kernel/watchdog", GONE, Unknown, "does not exist"),
        case("NMI watchdog", "/proc/sys/kernel/watchdog_cpumask", "0-2", Warn, "on CPU 2"),
        case("NMI watchdog", "/proc/sys/kernel/nmi_watchdog", GONE, Unknown, "does not exist"),
        case("hung tasks", "/proc/50/task/50/status", &status("0-3", 0), Warn, "every 120 s"),
        case("hung tasks", "/proc/sys/kernel/hung_task_timeout_secs", "0", Ok, "not looked for"),
        case("hung tasks", "/proc/sys/kernel/hung_task_timeout_secs", GONE, Unknown, "does not exist"),
        case("memory statistics", "/proc/sys/vm/stat_interval", "1", Ok, "not on isolated CPUs"),
        case("memory statistics", "/proc/sys/vm/stat_interval", "x", Unknown, "unexpected content 'x'"),
        case("machine checks", CPU3[15], "300", Warn, "polled every 300 s"),
        case("machine checks", CPU3[15], GONE, Unknown, "does not exist"),
        case("policy", "/proc/100/task/100/stat", &app([0, 0, 0, 0, 0]), Bad, "none of its threads"),
        case("policy", "/proc/100/task/100/stat", &app([0, 0, 0, 99, 1]), Warn, "FIFO 99"),
        case("policy", "/proc/100/task/100/stat", &app([0, 0, 0, 1, 2]), Warn, "RR 1: not above"),
        case("affinity", "/proc/100/task/100/status", &status("1-3", 0), Bad, "app[100] on CPU 1-3"),
        case("affinity", "/proc/100/task/100/stat", GONE, Unknown, "no real-time thread"),
        case("locked memory", "/proc/100/task/100/status", "VmLck:\t0 kB\nVmRSS:\t9 kB", Bad, "mlockall"),
        case("locked memory", "/proc/100/task/100/status", "VmLck:\t4 kB\nVmRSS:\t9 kB", Warn, "4 KiB locked"),
        case("locked memory", "/proc/100/task/100/status", "VmRSS:\t9 kB", Unknown, "has no VmLck"),
        later("page faults", "/proc/100/stat", app([0, 501, 3, 80, 1]), Warn, "1 minor fault in"),
        later("page faults", "/proc/100/stat", app([0, 502, 3, 80, 1]), Warn, "2 minor faults in"),
        later("page faults", "/proc/100/stat", app([0, 502, 4, 80, 1]), Bad, "1 major and 2 minor"),
        later("page faults", "/proc/100/stat", GONE.into(), Unknown, "does not exist"),
        later("preempted", "/proc/100/task/100/status", status("2-3", 9), Warn, "2 times"),
        case("preempted", "/proc/100/task/100/stat", GONE, Unknown, "no real-time thread"),
        case("timer slack", "/proc/100/task/100/stat", &app([0, 0, 0, 0, 0]), Warn, "up to 50 us: app[100]"),
        case("bandwidth", "/sys/fs/cgroup/rt/cpu.max", "50000 100000", Ok, "50000 of 100000 us, but all threads are real-time"),
        case("bandwidth", "/proc/100/cgroup", "1:cpu,cpuacct:/rt\n0::/", Unknown, "version 1"),
        case("bandwidth", "/proc/100/cgroup", "1:memory:/", Unknown, "version 2"),
        case("limits", "/proc/100/limits", &limits("0", "unlimited"), Warn, "rtprio 0"),
        case("limits", "/proc/100/limits", &limits("98", "65536"), Warn, "memlock 65536"),
        case("limits", "/proc/100/limits", GONE, Unknown, "does not exist"),
    ];
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let available = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    cases.extend([
        case("clock source", clock, "hpet", Bad, "hpet"),
        ("clock source", vec![(clock, "hpet".into()), (available, "hpet acpi_pm".into())], vec![], Bad, "says why not tsc"),
        ("clock source", vec![(clock, "hpet".into()), (available, "tsc hpet acpi_pm".into())], vec![], Bad, "hpet, though tsc is available"),
        case("clock source", clock, "kvm-clock", Warn, "kvm-clock"),
        case("clock source", "/proc/cpuinfo", "flags : constant_tsc", Warn, "may stop"),
        case("clock source", clock, GONE, Unknown, "does not exist"),
    ]);
    for (row, path) in [
        ("NUMA balancing", "/proc/sys/kernel/numa_balancing"),
        ("page merging", "/sys/kernel/mm/ksm/run"),
        ("compaction", "/proc/sys/vm/compaction_proactiveness"),
    ] {
        cases.extend([
            case(row, path, "1", Warn, "1"),
            case(row, path, GONE, Unknown, "does not exist"),
        ]);
    }
    let text = |s: &str| s.to_string();
    let virtual_machine = (
        "/proc/cpuinfo",
        text("flags : hypervisor constant_tsc nonstop_tsc"),
    );
    let stolen = (
        "/proc/stat",
        text("cpu0 0 0 0 0 0 0 0 9\ncpu2 0 0 0 0 0 0 0 8\ncpu3 0 0 0 0 0 0 0 4\n"),
    );
    let full = "/sys/devices/system/cpu/nohz_full";
    let not_nohz = || (full, text(""));
    let irqbalance = || ("/proc/40/task/40/stat", stat("irqbalance", [0, 0, 0, 0, 0]));
    let where_it_runs = || ("/proc/40/task/40/status", status("0-1", 0));
    let boot = "/sys/devices/system/cpu/isolated";
    let partition = || {
        vec![
            (boot, text("")),
            ("/sys/fs/cgroup/cpuset.cpus.isolated", text("2-3")),
        ]
    };
    let cat = || {
        let flags = "flags : constant_tsc nonstop_tsc cat_l2";
        ("/proc/cpuinfo", text(flags))
    };
    let all_share = || (CPU3[18], text("0-3"));
    let efi = || ("/sys/firmware/efi/runtime", text("0x1"));
    let config = |more: &str| ("/boot/config-7.2.12-rt", text(more));
    let ordinary = || ("/proc/100/task/100/stat", app([0, 0, 0, 0, 0]));
    let migration = || ("/proc/sys/kernel/timer_migration", text("1"));
    let none_is_isolated = vec![
        (boot, text("")),
        not_nohz(),
        ("/proc/cmdline", text("quiet")),
    ];
    cases.extend([
        // The kernel's file `isolated` includes only the CPUs isolated at boot.
        ("isolated", partition(), vec![], Ok, "all of them"),
        ("virtual machine", vec![virtual_machine.clone()], vec![], Warn, "measure on the host"),
        ("virtual machine", vec![virtual_machine], vec![stolen], Warn, "took 30 ms"),
        ("virtual machine", vec![("/proc/cpuinfo", text(""))], vec![], Unknown, "no flags"),
        ("RCU callbacks", vec![not_nohz(), ("/proc/cmdline", text("rcu_nocbs=2-3"))], vec![], Ok, "offloaded"),
        ("RCU callbacks", vec![not_nohz(), ("/proc/cmdline", text("quiet")), config("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n")], vec![], Ok, "configuration"),
        ("RCU callbacks", vec![(full, text("3")), ("/proc/cmdline", text("nohz_full=3")), config("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n")], vec![], Warn, "on CPU 2"),
        ("RCU callbacks", vec![not_nohz(), ("/proc/cmdline", text(GONE))], vec![], Unknown, "does not exist"),
        ("tick skew", vec![not_nohz(), ("/proc/cmdline", text("skew-tick=1"))], vec![], Ok, "skew_tick=1"),
        ("tick skew", vec![("/proc/cmdline", text(GONE))], vec![], Unknown, "does not exist"),
        ("caches", vec![cat(), (CPU3[18], text("3,7"))], vec![], Ok, "shared with no other"),
        ("caches", vec![cat(), all_share()], vec![], Warn, "L2 shared with CPU 0-1, and no resctrl group divides it for CPU 2-3"),
        ("caches", vec![cat(), all_share(), ("/sys/fs/resctrl/cpus_list", text("0-2"))], vec![], Warn, "for CPU 2"),
        ("caches", vec![cat(), all_share(), ("/sys/fs/resctrl/cpus_list", text("0-1"))], vec![], Ok, "CPU 2-3 not in resctrl's root group"),
        ("EFI runtime", vec![efi(), ("/proc/cmdline", line("efi=debug,noruntime"))], vec![], Ok, "off"),
        ("EFI runtime", vec![efi(), ("/proc/cmdline", line("noefi"))], vec![], Ok, "noefi"),
        ("EFI runtime", vec![efi(), config("CONFIG_EFI_DISABLE_RUNTIME=y\n")], vec![], Ok, "off"),
        ("EFI runtime", vec![efi(), config("CONFIG_EFI_DISABLE_RUNTIME=y\n"), ("/proc/cmdline", line("efi=runtime"))], vec![], Warn, "on; "),
        ("EFI runtime", vec![efi(), ("/boot", text(GONE))], vec![], Unknown, "does not exist"),
        ("hung tasks", vec![("/proc/50", text(GONE)), ("/proc/sys/kernel/hung_task_check_interval_secs", text("10"))], vec![], Warn, "every 10 s"),
        ("hung tasks", vec![("/proc/50", text(GONE)), ("/proc/sys/kernel/hung_task_timeout_secs", text("600"))], vec![], Ok, "every 600 s"),
        ("memory statistics", vec![(boot, text("3")), ("/proc/sys/vm/stat_interval", text("1"))], vec![], Warn, "every 1 s on CPU 2"),
        ("memory statistics", vec![(boot, text(""))], vec![], Ok, "every 10 s"),
        ("machine checks", vec![(CPU2[15], text("300")), (CPU2[19], text("1"))], vec![], Ok, "not polled"),
        ("bandwidth", vec![ordinary(), ("/sys/fs/cgroup/rt/cpu.max", text("50000 100000"))], vec![], Bad, "/rt/cpu.max: 50000 of 100000 us"),
        ("timer slack", vec![ordinary(), ("/proc/100/timerslack_ns", text("1"))], vec![], Ok, "none"),
        ("timer slack", vec![ordinary(), ("/proc/100/timerslack_ns", text(GONE))], vec![], Unknown, "does not exist"),
        ("irqbalance", vec![irqbalance(), where_it_runs()], vec![], Ok, "with these CPUs banned"),
        ("irqbalance", vec![(boot, text("")), not_nohz(), irqbalance(), where_it_runs()], vec![], Bad, "uses CPU 2-3"),
        ("irqbalance", vec![(boot, text("")), not_nohz(), irqbalance(), where_it_runs(), ("/proc/40/environ", text("A=1\0IRQBALANCE_BANNED_CPULIST=2\0B=2\0"))], vec![], Bad, "uses CPU 3"),
        ("irqbalance", vec![irqbalance(), where_it_runs(), ("/proc/40/environ", text("IRQBALANCE_BANNED_CPULIST=3\0"))], vec![], Bad, "uses CPU 2"),
        ("irqbalance", vec![irqbalance(), where_it_runs(), ("/proc/40/environ", text("IRQBALANCE_BANNED_CPUS=c\0"))], vec![], Ok, "with these CPUs banned"),
        ("highest priority", vec![("/proc/30/task/30/stat", stat("spin", [0, 0, 0, 99, 1])), ("/proc/30/task/30/status", status("0-3", 0))], vec![], Warn, "spin[30]"),
        // Either limit keeps the CPU out of the deep state: the CPU's own limit, or a limit that a program holds.
        ("idle states", vec![(CPU2[14], text("0")), (CPU2[5], text("10"))], vec![], Ok, "C1, exit latency 2 us"),
        ("idle states", vec![(CPU2[14], text("0")), ("/dev/cpu_dma_latency", text("\x01\0\0\0"))], vec![], Ok, "POLL, exit latency 0 us"),
        ("timer migration", [none_is_isolated, vec![migration()]].concat(), vec![], Warn, "on"),
        ("timer migration", vec![migration()], vec![], Warn, "on: timers started on CPU 2-3 (nohz_full) expire on another CPU"),
        ("timer migration", vec![("/proc/sys/kernel/timer_migration", text(GONE))], vec![], Unknown, "does not exist"),
    ]);
    cases
}
