// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds and removes the leftovers of a killed run.
//!
//! A run records in `/run/latency-tracker/PID.json` (see [`lttng::run_dir`]) what it has set up, and removes this note
//! when it ends. If the process of a note is gone, its run could not clean up, and the next run cleans up instead.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use lt_common::lttng;
use lt_common::out::note;
use lt_proc::ProcRoot;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The resources that a run has set up, noted for the next run.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Owned {
    /// Start time of the process, in clock ticks since boot: a pid may be reused, with another start time.
    started: u64,
    /// Its LTTng session.
    pub(crate) session: Option<String>,
    /// The instances it created, and the lines that they have in `control`.
    pub(crate) instances: BTreeMap<String, String>,
    /// The session daemon it started.
    pub(crate) daemon: Option<i32>,
    /// The directory of a trace that is not kept.
    pub(crate) directory: Option<PathBuf>,
    /// The stopped process that waits to become a command, and its start time.
    waiting: Option<(u32, u64)>,
}

/// The note of this run; removed when dropped.
#[derive(Debug)]
pub(crate) struct Note {
    path: PathBuf,
    owned: Owned,
}

impl Note {
    /// Creates an empty note.
    pub(crate) fn new() -> Self {
        let pid = std::process::id();
        Self {
            path: lttng::run_dir().join(format!("{pid}.json")),
            owned: Owned {
                started: start_time(pid).unwrap_or(0),
                ..Owned::default()
            },
        }
    }

    /// Notes which stopped process waits to become a command.
    pub(crate) fn set_waiting(&mut self, pid: Option<u32>) {
        let waiting = pid.and_then(|pid| Some((pid, start_time(pid)?)));
        if waiting != self.owned.waiting {
            self.update(|owned| owned.waiting = waiting);
        }
    }

    /// Changes the note in memory and on disk.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Owned)) {
        change(&mut self.owned);
        let written = serde_json::to_string(&self.owned)
            .ok()
            .map(|text| fs::write(&self.path, text));
        if !matches!(written, Some(Ok(()))) {
            note(&format!(
                "cannot write {}: if this run is killed, nothing will be cleaned up",
                self.path.display()
            ));
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The name of the instance of `run` in process `pid`.
pub(crate) fn name_of_run(pid: u32) -> String {
    format!("run_{pid}")
}

/// Removes and reports the leftovers of killed runs.
pub(crate) fn clean(root: &ProcRoot) {
    clean_noted(root);
    // Without a note (another /run, an older version), sessions are recognized by name.
    for session in lttng::sessions() {
        let gone = lttng::session_owner(&session).is_some_and(|pid| start_time(pid).is_none());
        if gone {
            drop_session(&session);
        }
    }
}

/// Removes and reports only leftovers that have a note.
pub(crate) fn clean_noted(root: &ProcRoot) {
    for entry in fs::read_dir(lttng::run_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        let pid = path
            .file_stem()
            .and_then(|s| s.to_str())
            .and_then(|s| s.parse().ok());
        let owned = fs::read_to_string(&path)
            .ok()
            .and_then(|t| serde_json::from_str::<Owned>(&t).ok());
        let (Some(pid), Some(owned)) = (pid, owned) else {
            continue;
        };
        if start_time(pid) != Some(owned.started) {
            tidy(root, pid, &owned);
            let _ = fs::remove_file(&path);
        }
    }
}

fn tidy(root: &ProcRoot, pid: u32, owned: &Owned) {
    for (name, line) in &owned.instances {
        // Another instance may have this name by now, so only an identical instance is removed. The threshold of an
        // instance of `why` or `run` rises by itself, so its line changes, but its name contains the PID.
        let by_name = name.starts_with(&format!("why_{pid}_")) || *name == name_of_run(pid);
        let same = root
            .instance(name)
            .is_ok_and(|i| by_name || i.to_string() == *line);
        if same && root.remove(name).is_ok() {
            note(&format!(
                "removed instance {name}, left by a killed run (process {pid})"
            ));
        }
    }
    if let Some(session) = &owned.session
        && lttng::sessions().contains(session)
    {
        drop_session(session);
    }
    if let Some(daemon) = owned.daemon {
        lttng::stop_daemon(daemon);
    }
    if let Some(directory) = &owned.directory {
        let _ = fs::remove_dir_all(directory);
    }
    if let Some((pid, started)) = owned.waiting
        && start_time(pid) == Some(started)
        && let Ok(process) = i32::try_from(pid)
        && kill(Pid::from_raw(process), Signal::SIGKILL).is_ok()
    {
        note(&format!(
            "killed process {pid}, which a killed run had not started yet"
        ));
    }
}

fn drop_session(session: &str) {
    match lttng::destroy(session) {
        Ok(()) => note(&format!(
            "destroyed session {session}, left by a killed run"
        )),
        Err(error) => note(&format!("{error:#}")),
    }
}

/// Field 22 of /proc/PID/stat. The name before it may contain anything, but ends with the last `)`.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_pid_and_start() {
        let own = start_time(std::process::id());
        assert!(own.is_some_and(|t| t > 0));
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn notes_are_read_back() {
        let owned = Owned {
            started: 7,
            session: Some("s".into()),
            instances: [("a".into(), "a block".into())].into(),
            daemon: None,
            directory: Some("/tmp/x".into()),
            waiting: Some((8, 9)),
        };
        let text = serde_json::to_string(&owned).unwrap();
        assert_eq!(serde_json::from_str::<Owned>(&text).unwrap(), owned);
    }
}
