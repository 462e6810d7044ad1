// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The target of `why`, and the trackers that watch it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lt_common::exec::Exec;
use lt_common::group::{self, Followed};
use lt_common::out::printable;
use lt_common::pids::{comm, process_of};
use lt_proc::{Fields, Setting};

use super::args::WhyArgs;
use crate::run::{TREE, descendants, refuse_pid_namespace};

/// The watched target.
#[derive(Debug)]
pub(super) struct Target {
    /// The target's name in messages.
    pub(super) name: String,
    /// The filter that selects the watched tasks; empty for all tasks, or for a disk.
    filter: Vec<Setting>,
    /// The unit whose cgroup is watched.
    unit: Option<String>,
    /// The cgroup of the filter. `None` also if it is not visible here.
    pub(super) followed: Option<Followed>,
    /// The disk, if only its requests are watched.
    disk: Option<String>,
    /// Whether to count calls that are meant to wait.
    waits: bool,
}

/// One instance to start.
#[derive(Debug)]
pub(super) struct Part {
    /// The last part of the instance's name.
    pub(super) name: &'static str,
    /// The instance's operations, for a table.
    pub(super) what: &'static str,
    pub(super) tracker: &'static str,
    pub(super) settings: Vec<Setting>,
}

impl Target {
    /// Finds the target that the options name. `command` is the process of the command.
    pub(super) fn find(args: &WhyArgs, command: Option<u32>) -> Result<Self> {
        let mut target = Self {
            name: "all processes and disks".into(),
            filter: Vec::new(),
            unit: None,
            followed: None,
            disk: None,
            waits: args.waits || !args.command.is_empty(),
        };
        if let Some(pid) = args.pid {
            refuse_pid_namespace(&format!("-p {pid}"))?;
            target.name = name_of(Path::new("/proc"), pid)?;
            target.filter = vec![setting("pid", &pid.to_string())];
        } else if let Some(unit) = &args.unit {
            target.name.clone_from(unit);
            target.limit_to(&cgroup_of(unit, Path::new(BOOTED))?);
            target.unit = Some(unit.clone());
        } else if let Some(cgroup) = &args.cgroup {
            target.name = format!("cgroup {cgroup}");
            target.limit_to(cgroup);
        } else if let Some(disk) = &args.disk {
            target.name = format!("disk {disk}");
            target.disk = Some(disk.clone());
        } else if let (Some(command), Some(pid)) = (args.command.first(), command) {
            target.name = command.to_string_lossy().into_owned();
            target.filter = descendants(pid)?.into();
        }
        Ok(target)
    }

    /// Limits the target to the cgroup with this path.
    fn limit_to(&mut self, path: &str) {
        self.followed = group::directory(path).and_then(Followed::at);
        // The number makes all instances watch one cgroup, even if another cgroup has its path by now.
        let number = self.followed.as_ref().map(|of| of.number().to_string());
        self.filter = vec![setting(CGROUP, number.as_deref().unwrap_or(path))];
    }

    /// Whether only the descendants of a process of this run are watched, none of which existed before the recording.
    pub(super) fn is_command(&self) -> bool {
        self.filter.iter().any(|setting| setting.key == TREE)
    }

    /// Whether only the processes of a cgroup are watched.
    pub(super) fn is_cgroup(&self) -> bool {
        self.filter.iter().any(|setting| setting.key == CGROUP)
    }

    /// Asks systemd for the directory of the unit's cgroup, which may have moved to another slice.
    pub(super) fn moved_to(&self) -> Option<PathBuf> {
        let path = cgroup_of(self.unit.as_deref()?, Path::new(BOOTED)).ok()?;
        group::directory(&path)
    }

    /// What has happened to the target if its cgroup was removed.
    pub(super) fn removed(&self) -> &'static str {
        match self.unit {
            Some(_) => "has stopped: nothing is watched until it starts again",
            None => "was removed: nothing is watched until it is created again",
        }
    }

    /// What has happened to the target if its cgroup has a successor.
    pub(super) fn replaced(&self) -> &'static str {
        match self.unit {
            Some(_) => "was restarted: its new cgroup is watched from now on",
            None => "was created again: the new one is watched from now on",
        }
    }

    /// The instances that watch the target.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.disk.is_none() {
            parts.extend(self.of_tasks());
        }
        if self.filter.is_empty() {
            let mut settings = vec![setting("from", "insert")];
            settings.extend(self.disk.iter().map(|disk| setting("dev", disk)));
            parts.push(Part {
                name: "request",
                what: "requests to a disk",
                tracker: "block",
                settings,
            });
        }
        parts
    }

    /// The instance that records the stacks of sleeps that are not late themselves. `None` if no tasks are watched.
    pub(super) fn stacks(&self) -> Option<Part> {
        let [.., sleeps] = self.of_tasks();
        self.disk.is_none().then_some(Part {
            name: "stacks",
            ..sleeps
        })
    }

    fn of_tasks(&self) -> [Part; 4] {
        let part = |name, what, tracker, setting: Setting| Part {
            name,
            what,
            tracker,
            settings: self.filter.iter().cloned().chain([setting]).collect(),
        };
        let waits = setting("waits", if self.waits { "1" } else { "0" });
        let slept = match self.waits {
            true => "sleeps",
            false => SLEEPS,
        };
        let no_threads = || setting("kthreads", "0");
        [
            part("call", "system calls", "syscall", waits),
            part(
                "wakeup",
                "waits for a CPU after a wakeup",
                "wakeup",
                no_threads(),
            ),
            part(
                "runnable",
                "waits for a CPU after losing it while runnable",
                "runqueue",
                no_threads(),
            ),
            part("sleep", slept, "offcpu", setting("when", "blocked")),
        ]
    }

    /// A sentence about waits for a disk that its instance does not see; `None` for another target.
    pub(super) fn not_seen(&self) -> Option<&'static str> {
        self.disk.is_some().then_some(NOT_SEEN)
    }

    /// Whether LTTng's session daemon may be in the target although the user did not choose it.
    pub(super) fn may_include_lttng(&self) -> bool {
        self.unit.is_none() && !self.filter.iter().any(|setting| setting.key == "pid")
    }

    /// Whether a long operation of this tracker is late. Unless `waits` is set, sleeps that a signal can end are not
    /// late: the `syscall` instance watches them, and distinguishes the calls that wait for work.
    pub(super) fn matters(&self, tracker: &str, fields: &Fields) -> bool {
        let state = fields.text("state");
        let is_stuck = state.is_some_and(|state| state.starts_with(['D', 'T']));
        tracker != "offcpu" || self.waits || is_stuck
    }

    /// Whether the delays of a part show its usual latency. Unless `waits` is set, sleeps do not, since most of them
    /// wait for work.
    pub(super) fn is_telling(&self, part: &Part) -> bool {
        self.waits || part.tracker != "offcpu"
    }
}

/// The filter by cgroup.
pub(super) const CGROUP: &str = "cgroup";

const NOT_SEEN: &str = "Not seen with --disk: waits before a request exists (for a free tag, or for throttling). \
    `why` without a target shows them.";

const SLEEPS: &str = "sleeps, including waits for work";

/// A directory that exists if systemd is the init process, see sd_booted(3).
const BOOTED: &str = "/run/systemd/system";

const INSTEAD: &str = "use -p PID, -p NAME or --cgroup PATH instead";

/// The name of a process in messages. Refuses a thread that is not its process's main thread: the filter compares the
/// IDs of processes, and would match nothing.
fn name_of(proc: &Path, pid: u32) -> Result<String> {
    let process = process_of(proc, pid);
    let named = process.and_then(|process| Some((process, comm(proc, process)?)));
    let Some((process, comm)) = named else {
        bail!("-p {pid}: there is no such process");
    };
    let comm = printable(&String::from_utf8_lossy(&comm));
    if process != pid {
        bail!("-p {pid}: a thread of process {process} ({comm}); use -p {process}");
    }
    Ok(format!("{comm}/{pid}"))
}

/// The cgroup of an active unit. `booted` is [`BOOTED`].
fn cgroup_of(unit: &str, booted: &Path) -> Result<String> {
    if !booted.is_dir() {
        bail!("--unit {unit}: systemd is not running here; {INSTEAD}");
    }
    let show = ["show", "--property=ControlGroup", "--value", "--", unit];
    let shown = Exec::new("systemctl", show).output();
    let about = || format!("--unit {unit}: systemd does not answer; {INSTEAD}");
    let path = shown.with_context(about)?;
    match path.trim() {
        "" => bail!("--unit {unit}: not active, or no such unit"),
        path => Ok(path.to_string()),
    }
}

fn setting(key: &str, value: &str) -> Setting {
    Setting {
        key: key.into(),
        value: value.into(),
    }
}

#[cfg(test)]
impl Target {
    /// Process 7.
    pub(super) fn of_process(waits: bool) -> Self {
        Self {
            name: "x/7".into(),
            filter: vec![setting("pid", "7")],
            unit: None,
            followed: None,
            disk: None,
            waits,
        }
    }

    /// The requests of a disk.
    pub(super) fn of_disk(disk: &str) -> Self {
        Self {
            name: format!("disk {disk}"),
            filter: Vec::new(),
            disk: Some(disk.into()),
            ..Self::of_process(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use lt_proc::Alert;

    use super::*;

    fn alert(tracker: &str, rest: &str) -> Alert {
        let line = format!(
            "seq=1 time=9 instance=a tracker={tracker} reason=threshold delay=5 threshold=1 cpu=0 pid=7 tid=7 \
             comm=\"x\" {rest}"
        );
        Alert::parse(&line).unwrap()
    }

    fn counts(waits: bool, alert: &Alert) -> bool {
        Target::of_process(waits).matters(&alert.tracker, &alert.fields)
    }

    #[test]
    fn a_sleep_that_a_signal_can_end_is_not_late_by_itself() {
        let sleeping = alert("offcpu", "state=S");
        assert!(!counts(false, &sleeping) && counts(true, &sleeping));
        let no_state = alert("offcpu", "from=0");
        assert!(!counts(false, &no_state));
        for late in [
            alert("offcpu", "state=D"),
            alert("offcpu", "state=T"),
            alert("syscall", "call=read"),
            alert("runqueue", "state=R"),
        ] {
            assert!(counts(false, &late), "{late}");
        }
    }

    #[test]
    fn a_thread_is_refused_with_its_process() {
        let proc = tempfile::tempdir().unwrap();
        for (tid, comm) in [(190, "archiver"), (193, "writer")] {
            let own = proc.path().join(tid.to_string());
            std::fs::create_dir(&own).unwrap();
            std::fs::write(own.join("comm"), format!("{comm}\n")).unwrap();
            let status = format!("Name:\t{comm}\nTgid:\t190\n");
            std::fs::write(own.join("status"), status).unwrap();
        }
        let name_of = |pid| name_of(proc.path(), pid).map_err(|error| error.to_string());
        assert_eq!(name_of(190).as_deref(), Ok("archiver/190"));
        let refused = "-p 193: a thread of process 190 (archiver); use -p 190";
        assert_eq!(name_of(193).unwrap_err(), refused);
        let refused = "-p 194: there is no such process";
        assert_eq!(name_of(194).unwrap_err(), refused);
    }

    #[test]
    fn a_unit_needs_systemd() {
        let error = cgroup_of("nginx.service", Path::new("/no/such/directory")).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "--unit nginx.service: systemd is not running here; use -p PID, -p NAME or --cgroup PATH instead"
        );
    }

    #[test]
    fn processes_are_watched_by_their_filter_and_a_disk_by_its_requests() {
        let process = Target::of_process(false);
        let parts = process.parts();
        assert!(parts.iter().all(|part| part.settings[0].key == "pid"));
        assert!(parts.iter().all(|part| part.tracker != "block"));
        assert_eq!(process.stacks().unwrap().settings[0].key, "pid");
        assert!(!process.may_include_lttng() && !process.is_command());
        let mut command = Target::of_process(true);
        command.filter.push(setting(TREE, "1"));
        assert!(command.is_command());
        let mut all = process;
        all.filter.clear();
        assert!(all.may_include_lttng());
        assert_eq!(all.parts().len(), 5);
        let disk = Target::of_disk("sda");
        assert!(disk.may_include_lttng() && disk.stacks().is_none());
        assert!(disk.not_seen().is_some() && all.not_seen().is_none());
        let parts = disk.parts();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].settings[1], setting("dev", "sda"));
    }
}
