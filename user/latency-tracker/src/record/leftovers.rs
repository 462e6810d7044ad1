// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds and removes the leftovers of a killed run.
//!
//! A run records in `/run/latency-tracker/PID.json` (see [`lttng::run_dir`]) what it has set up, and removes this note
//! when it ends. If the process of a note is gone, its run could not clean up, and the next run cleans up instead.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use lt_common::clock::monotonic;
use lt_common::lttng;
use lt_common::out::note;
use lt_proc::{Instance, ProcError, ProcRoot, Setting};
use serde::{Deserialize, Serialize};

use super::same::difference;
use crate::ustack::start_in;

/// Maximum time between the note of a request for an instance and the creation of the instance, ns.
const CREATION: u64 = 10_000_000_000;

/// Extension of the file of a note that is being written.
const NEW: &str = "new";

/// The resources that a run has set up, noted for the next run.
///
/// A note with other fields was written by another version, which may have left resources unknown to this version.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Owned {
    /// Start time of the process, in clock ticks since boot: a pid may be reused, with another start time.
    started: u64,
    /// The LTTng session of the run.
    pub(crate) session: Option<String>,
    /// The instances that the run created.
    instances: BTreeMap<String, Known>,
    /// The session daemon that the run started.
    daemon: Option<i32>,
    /// A directory to remove: a temporary one, or an unfinished trace.
    pub(crate) directory: Option<PathBuf>,
}

/// What identifies an instance of a run: another instance may have its name by now. Times are of `CLOCK_MONOTONIC`, ns.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Known {
    /// The instance's name has the PID of the run.
    ByName,
    /// The line that requests the instance, and the time before the request. The instance may not exist.
    Requested(String, u64),
    /// The instance's line in `control`, and the time of its creation; `None` if the module is too old to show this
    /// time.
    Created(String, Option<u64>),
}

impl Known {
    /// Whether this identifies the instance `now`, which was created at `created`.
    fn is(&self, now: &Instance, created: Option<u64>) -> bool {
        match self {
            Self::ByName => true,
            Self::Requested(line, since) => {
                created.is_some_and(|created| is_requested(now, created, line, *since))
            }
            Self::Created(line, time) => created == *time && is_same(&now.to_string(), line),
        }
    }
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

    /// Notes an instance whose name has the PID of this run. Must be called before the instance is created, so that a
    /// run that is killed in between leaves no instance without a note.
    pub(crate) fn has_own(&mut self, name: &str) {
        self.knows(name, Known::ByName);
    }

    /// Notes the request for an instance whose name has no PID. Must be called before the instance is created.
    pub(crate) fn requests(&mut self, name: &str, request: String) {
        self.knows(name, Known::Requested(request, monotonic()));
    }

    /// Notes an instance of this run, which was created at `created`.
    pub(crate) fn has(&mut self, instance: &Instance, created: Option<u64>) {
        let known = Known::Created(instance.to_string(), created);
        self.knows(&instance.name, known);
    }

    fn knows(&mut self, name: &str, known: Known) {
        self.update(|owned| drop(owned.instances.insert(name.to_string(), known)));
    }

    /// Notes the session daemon that this run has started.
    pub(crate) fn has_daemon(&mut self, pid: i32) {
        self.update(|owned| owned.daemon = Some(pid));
    }

    /// Changes the note in memory and on disk. A run that is killed meanwhile leaves the note as it was before.
    pub(crate) fn update(&mut self, change: impl FnOnce(&mut Owned)) {
        change(&mut self.owned);
        let new = self.path.with_extension(NEW);
        let written = serde_json::to_string(&self.owned)
            .ok()
            .map(|text| fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path)));
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
    // Without a note (another /run, an older version), sessions are recognised by name.
    for session in lttng::sessions() {
        let gone = lttng::session_owner(&session).is_some_and(|pid| start_time(pid).is_none());
        if gone {
            drop_session(&session);
        }
    }
}

/// Removes and reports only leftovers that have a note, and instances that were only tried out.
pub(crate) fn clean_noted(root: &ProcRoot) {
    lt_common::instance::remove_tried(root);
    clean_notes(root, lttng::run_dir());
}

/// Removes and reports the leftovers that have a note in this directory.
fn clean_notes(root: &ProcRoot, directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let pid = path
            .file_stem()
            .and_then(|s| s.to_str())
            .and_then(|s| s.parse().ok());
        let Some(pid) = pid else {
            continue;
        };
        let (file, started) = (path.display(), start_time(pid));
        let read = fs::read(&path);
        match read.map(|text| serde_json::from_slice::<Owned>(&text)) {
            Ok(Ok(owned)) if started == Some(owned.started) => continue,
            // The next run tries again.
            Ok(Ok(owned)) if !tidy(root, pid, &owned) => continue,
            Ok(Ok(_)) => {}
            // The process of this note may be writing it.
            Ok(Err(_)) | Err(_) if started.is_some() => continue,
            Ok(Err(error)) if error.is_data() => {
                note(&format!(
                    "{file} is kept, as it may be the note of a killed run of a newer version: {error}"
                ));
                continue;
            }
            // A run that was killed while it wrote this file has also left the note as it was before.
            Ok(Err(_)) if path.extension().is_some_and(|end| end == NEW) => {}
            Ok(Err(error)) => note(&format!(
                "{file} is damaged, and removed; what a killed run (process {pid}) left is not known: {error}"
            )),
            // Another run has removed the note.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                note(&format!(
                    "cannot read {file}, the note of a killed run: {error}"
                ));
                continue;
            }
        }
        let _ = fs::remove_file(&path);
    }
}

/// Removes the leftovers of process `pid`. Returns false if an instance could not be read or removed, or the directory
/// of the run could not be removed; this is reported.
fn tidy(root: &ProcRoot, pid: u32, owned: &Owned) -> bool {
    let mut is_tidy = true;
    for (name, known) in &owned.instances {
        let what = format!("instance {name}, left by a killed run (process {pid})");
        let removed = match root.of_one(name, || root.instance(name)) {
            Ok((created, now)) if known.is(&now, created) => {
                lt_common::instance::remove(root, name)
            }
            // Without the module, there is no instance.
            Ok(_) | Err(ProcError::NoInstance(_) | ProcError::NotLoaded(_)) => continue,
            Err(error) => Err(error.into()),
        };
        match removed {
            Ok(()) => note(&format!("removed {what}")),
            Err(error) => {
                is_tidy = false;
                note(&format!("cannot remove {what}: {error:#}"));
            }
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
    if let Some(directory) = &owned.directory
        && let Err(error) = fs::remove_dir_all(directory)
        && error.kind() != ErrorKind::NotFound
    {
        is_tidy = false;
        note(&format!(
            "cannot remove {}, left by a killed run (process {pid}): {error}",
            directory.display()
        ));
    }
    is_tidy
}

/// Whether the line `now` describes the instance that was noted as `noted`. Ignores `enabled`, because a run may have
/// been killed after it enabled the instance and before it noted this; and, with `worst=1`, the threshold, which each
/// alert raises.
fn is_same(now: &str, noted: &str) -> bool {
    let raises = noted.split(' ').any(|word| word == "worst=1");
    let is_fixed = |word: &&str| {
        let is_raised = raises && word.starts_with("threshold=");
        !is_raised && !word.starts_with("enabled=")
    };
    let (now, noted) = (now.split(' '), noted.split(' '));
    now.filter(is_fixed).eq(noted.filter(is_fixed))
}

/// Whether an instance created at `created` is the one that a run requested at `since` with the line `request`.
/// An instance of another program was created earlier or later, or has other settings.
fn is_requested(now: &Instance, created: u64, request: &str, since: u64) -> bool {
    let mut words = request.split(' ').skip(1);
    let tracker = words.next().unwrap_or_default();
    let settings: Vec<Setting> = words.filter_map(|word| word.parse().ok()).collect();
    (since..since.saturating_add(CREATION)).contains(&created)
        && difference(now, tracker, &settings).is_none()
}

fn drop_session(session: &str) {
    match lttng::destroy(session) {
        Ok(()) => note(&format!(
            "destroyed session {session}, left by a killed run"
        )),
        Err(error) => note(&format!("{error:#}")),
    }
}

/// The time at which a process started, in ticks since boot.
fn start_time(pid: u32) -> Option<u64> {
    start_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_process_is_known_by_pid_and_start() {
        let own = start_time(std::process::id());
        assert!(own.is_some_and(|t| t > 0));
        assert_eq!(start_time(u32::MAX), None);
    }

    #[test]
    fn an_instance_is_known_by_what_a_run_leaves_alone() {
        let noted = "a block threshold=10 worst=1 enabled=0 dev=all";
        assert!(is_same(noted, noted));
        let now = "a block threshold=99 worst=1 enabled=1 dev=all";
        assert!(is_same(now, noted));
        for other in [
            "a block threshold=10 worst=1 enabled=0 dev=8:0",
            "a block threshold=10 worst=0 enabled=0 dev=all",
            "a wakeup threshold=10 worst=1 enabled=0 dev=all",
        ] {
            assert!(!is_same(other, noted), "{other}");
        }
        let fixed = noted.replace("worst=1", "worst=0");
        assert!(!is_same(&fixed.replace("=10", "=99"), &fixed));
    }

    #[test]
    fn an_instance_with_the_same_line_may_be_another_one() {
        let line = "a block threshold=10 enabled=0";
        let now = Instance::parse(line).unwrap();
        let created = Known::Created(line.into(), Some(5));
        assert!(created.is(&now, Some(5)));
        assert!(!created.is(&now, Some(6)));
        let requested = Known::Requested(line.into(), 5);
        assert!(requested.is(&now, Some(6)));
        assert!(!requested.is(&now, Some(4)));
        assert!(!requested.is(&now, None));
    }

    #[test]
    fn an_instance_is_known_by_its_request_and_its_age() {
        let request = "a block threshold=10ms enabled=0";
        let now = |line: &str| Instance::parse(line).unwrap();
        let ours = now("a block threshold=10000000 dev=all enabled=0");
        assert!(is_requested(&ours, 100, request, 90));
        // These are instances of other programs, or were changed by another program.
        assert!(!is_requested(&ours, 80, request, 90));
        assert!(!is_requested(&ours, 90 + CREATION, request, 90));
        for other in [
            "a block threshold=10000000 dev=all enabled=1",
            "a block threshold=20000000 dev=all enabled=0",
            "a wakeup threshold=10000000 dev=all enabled=0",
        ] {
            assert!(!is_requested(&now(other), 100, request, 90), "{other}");
        }
    }

    #[test]
    fn an_instance_that_cannot_be_removed_stays_noted() {
        let directory = tempfile::tempdir().unwrap();
        let control = directory.path().join("control");
        fs::write(&control, "run_7 block threshold=1\n").unwrap();
        fs::set_permissions(&control, fs::Permissions::from_mode(0o400)).unwrap();
        let owned = Owned {
            instances: [("run_7".into(), Known::ByName)].into(),
            ..Owned::default()
        };
        // Modes do not restrict root.
        let may_write = fs::OpenOptions::new().write(true).open(&control).is_ok();
        let root = ProcRoot::new(directory.path());
        assert_eq!(tidy(&root, 7, &owned), may_write);
    }

    #[test]
    fn only_an_instance_that_is_not_there_needs_no_note() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let owned = Owned {
            instances: [("run_7".into(), Known::ByName)].into(),
            ..Owned::default()
        };
        let root = ProcRoot::new(directory.path());
        // The module is not loaded; another instance; a time that cannot be read.
        assert!(tidy(&root, 7, &owned));
        fs::write(file("control"), "run_8 block threshold=1\n").unwrap();
        assert!(tidy(&root, 7, &owned));
        fs::create_dir(file("run_7")).unwrap();
        fs::write(file("run_7/created"), "soon\n").unwrap();
        assert!(!tidy(&root, 7, &owned));
        // `control` cannot be read.
        fs::remove_dir_all(file("run_7")).unwrap();
        fs::write(file("control"), "9\n").unwrap();
        assert!(!tidy(&root, 7, &owned));
    }

    #[test]
    fn a_directory_that_cannot_be_removed_stays_noted() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let root = ProcRoot::new(file("none"));
        let is_tidied = |path: PathBuf| {
            let owned = Owned {
                directory: Some(path),
                ..Owned::default()
            };
            tidy(&root, 7, &owned)
        };
        fs::create_dir(file("trace")).unwrap();
        assert!(is_tidied(file("trace")) && !file("trace").exists());
        assert!(is_tidied(file("trace")));
        fs::write(file("other"), "").unwrap();
        assert!(!is_tidied(file("other/trace")));
    }

    #[test]
    fn a_note_that_cannot_be_read_is_kept_unless_it_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let own = format!("{}.json", std::process::id());
        // No process has these large numbers.
        let notes = [
            ("4294967291.json", "{\"pipes\":[\"/x\"]}", true),
            ("4294967292.json", "{\"instances\":{\"a\":\"New\"}}", true),
            ("4294967293.json", "{\"started\":7,", false),
            ("4294967294.json", "", false),
            ("4294967293.new", "{\"sta", false),
            ("4294967295.json", "{}", false),
            // These files are being written, or are no notes.
            (&own[..], "{\"sta", true),
            ("sessiond", "7", true),
        ];
        for (name, text, _) in notes {
            fs::write(file(name), text).unwrap();
        }
        clean_notes(&ProcRoot::new(file("none")), directory.path());
        for (name, text, stays) in notes {
            assert_eq!(file(name).exists(), stays, "{name}: {text}");
        }
    }

    #[test]
    fn notes_are_read_back() {
        let owned = Owned {
            started: 7,
            session: Some("s".into()),
            instances: [
                ("a".into(), Known::Requested("a block".into(), 5)),
                ("b".into(), Known::Created("b block".into(), Some(6))),
                ("run_7".into(), Known::ByName),
            ]
            .into(),
            daemon: None,
            directory: Some("/tmp/x".into()),
        };
        let text = serde_json::to_string(&owned).unwrap();
        assert_eq!(serde_json::from_str::<Owned>(&text).unwrap(), owned);
    }
}
