// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `check --rt`: checks whether this machine is ready for real-time work on some CPUs.
//!
//! A row is one check: a function from the kernel's files and the CPUs to an answer. Each group of
//! rows has a module, with the most important row first. The check changes nothing: an answer that is
//! not ok includes the commands that fix the problem, if there are any.

mod answer;
mod application;
mod cache;
mod cpus;
mod fix;
mod interrupts;
mod isolation;
mod kernel;
mod memory;
mod power;
mod programs;
mod root;
mod show;
mod tasks;
#[cfg(test)]
mod tests;
mod watchdogs;
mod window;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use lt_common::Outcome;
use nix::time::{ClockId, clock_getres};

pub use answer::State;
use answer::{Answer, Row};
pub use cpus::Cpus;
pub use root::Root;
use root::{Missing, missing};
pub use show::Line;
use window::Window;

/// Time between the two readings of counters: long enough for the tick, and for events that occur
/// once a second.
const WINDOW: Duration = Duration::from_millis(1100);

/// File with the list of online CPUs.
pub const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The options of `check` for real time.
#[derive(Debug, Args)]
pub struct RtArgs {
    /// Check whether these CPUs are ready for real-time work: a list such as 2-3,6. Without CPUS,
    /// the isolated CPUs or, if none is isolated, all online CPUs.
    #[arg(long, value_name = "CPUS", num_args = 0..=1, default_missing_value = "")]
    pub rt: Option<Cpus>,
    /// Also check this running process.
    #[arg(long, requires = "rt")]
    pub(crate) pid: Option<u32>,
    /// Print only the commands that fix each problem, for a root shell. None is executed.
    #[arg(long, requires = "rt", conflicts_with = "json")]
    pub(crate) print_fix: bool,
}

/// The target of the checks.
#[derive(Debug)]
pub(crate) struct Target {
    /// The CPUs to check.
    cpus: Cpus,
    /// How the CPUs were chosen.
    from: &'static str,
    online: Cpus,
    pid: Option<u32>,
    window: Window,
    /// Resolution of a timer, ns.
    resolution: Result<u64, Missing>,
}

impl Target {
    /// Returns the CPUs that a command should isolate: `cpus`, except that at least one CPU is left
    /// to the rest of the system.
    fn shielded(&self) -> Cpus {
        if self.online.within(&self.cpus) {
            let first: Cpus = self.online.first().into_iter().collect();
            return self.cpus.without(&first);
        }
        self.cpus.clone()
    }

    /// Returns the online CPUs that are left to the rest of the system.
    fn housekeeping(&self) -> Cpus {
        self.online.without(&self.shielded())
    }
}

/// Returns the groups with their rows.
fn groups() -> [(&'static str, &'static [Row]); 7] {
    [
        ("kernel", kernel::ROWS),
        ("isolation", isolation::ROWS),
        ("interrupts and threads", interrupts::ROWS),
        ("power", power::ROWS),
        ("memory", memory::ROWS),
        ("watchdogs", watchdogs::ROWS),
        ("application", application::ROWS),
    ]
}

/// Returns all answers, in order. The application group is included only if there is a process.
fn ask(root: &Root, target: &Target) -> Vec<(&'static str, &'static Row, Answer)> {
    let groups = groups().into_iter();
    let groups = groups.filter(|(name, _)| *name != "application" || target.pid.is_some());
    let rows = groups.flat_map(|(group, rows)| rows.iter().map(move |row| (group, row)));
    rows.map(|(group, row)| (group, row, row.ask(root, target)))
        .collect()
}

/// Returns the CPUs without load balancing: the CPUs isolated at boot, and the CPUs of isolated
/// cpuset partitions, which `isolated` in sysfs does not list.
pub fn isolated(root: &Root) -> Cpus {
    let boot = root
        .cpus("/sys/devices/system/cpu/isolated")
        .unwrap_or_default();
    boot.or(&root
        .cpus("/sys/fs/cgroup/cpuset.cpus.isolated")
        .unwrap_or_default())
}

/// Chooses the CPUs, and reads the counters before and after `wait`.
fn aim(root: &Root, asked: &Cpus, pid: Option<u32>, wait: impl FnOnce()) -> Result<Target> {
    let online = match root.cpus(ONLINE) {
        Ok(online) => online,
        Err(missing) => bail!("cannot determine the online CPUs: {missing}"),
    };
    let absent = asked.without(&online);
    if !absent.is_empty() {
        bail!("CPU {absent} is not online (online: {online})");
    }
    if let Some(pid) = pid
        && !root.exists(&format!("/proc/{pid}/task"))
    {
        bail!("--pid {pid}: no such process");
    }
    let isolated = isolated(root).and(&online);
    let (cpus, from) = match (asked.is_empty(), isolated.is_empty()) {
        (false, _) => (asked.clone(), "as given"),
        (true, false) => (isolated, "isolated"),
        (true, true) => (online.clone(), "all online CPUs: none is isolated"),
    };
    let window = Window::watch(root, &cpus, pid, wait);
    let resolution = clock_getres(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    Ok(Target {
        cpus,
        from,
        online,
        pid,
        window,
        resolution: resolution
            .map(|resolution| resolution.as_nanos() as u64)
            .map_err(|error| missing(format!("clock_getres: {error}"))),
    })
}

/// Runs the check on this machine.
pub fn run(args: &RtArgs, asked: &Cpus, json: bool) -> Result<Outcome> {
    let root = Root::new(Path::new("/"));
    let target = aim(&root, asked, args.pid, || std::thread::sleep(WINDOW))?;
    let answers = ask(&root, &target);
    match (args.print_fix, json) {
        (true, _) => show::fixes(&target, &answers)?,
        (false, true) => show::json(&target, &answers)?,
        (false, false) => show::people(&target, &answers)?,
    }
    let bad = answers.iter().any(|(_, _, answer)| answer.is_bad());
    Ok(if bad { Outcome::Wrong } else { Outcome::Fine })
}
