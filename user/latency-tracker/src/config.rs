// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Configuration files: the control language, one instance per line. `apply` starts the instances, `check --config`
//! only validates the lines.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Result, bail};
use lt_proc::{Setting, valid_name};
use serde::{Deserialize, Serialize};

/// The default directory of configuration files.
pub(crate) const DIRECTORY: &str = "/etc/latency-tracker";

/// The directory where `apply` records the instances that it has started; cleared at boot.
pub(crate) const STATE: &str = "/run/latency-tracker";

/// The file in [`STATE`] that a running `apply` has locked.
pub(crate) const LOCK: &str = "lock";

/// Whether an `apply` is running that keeps its records in the directory `state`. `None` if its lock cannot be opened
/// or tested, such as for lack of permission.
pub(crate) fn is_being_applied(state: &Path) -> Option<bool> {
    match File::open(state.join(LOCK)).map(|lock| lock.try_lock_shared()) {
        Ok(Ok(())) => Some(false),
        Ok(Err(TryLockError::WouldBlock)) => Some(true),
        // No `apply` has run since boot.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(false),
        Ok(Err(TryLockError::Error(_))) | Err(_) => None,
    }
}

/// A line that starts an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) file: PathBuf,
    /// Line number, from 1.
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) tracker: String,
    /// As written, `key=value`.
    pub(crate) settings: Vec<String>,
}

impl Entry {
    /// `FILE:LINE`.
    pub(crate) fn place(&self) -> String {
        place(&self.file, self.line)
    }

    pub(crate) fn settings(&self) -> Result<Vec<Setting>> {
        let settings = self.settings.iter().map(|word| Ok(word.parse()?));
        settings.collect()
    }

    /// Whether both lines start the same instance, regardless of their place.
    pub(crate) fn same(&self, other: &Self) -> bool {
        (&self.name, &self.tracker, &self.settings)
            == (&other.name, &other.tracker, &other.settings)
    }

    /// Reads the words of a line.
    fn parse(file: &Path, line: usize, text: &str) -> Result<Self> {
        let mut words = text.split_whitespace().map(String::from);
        let name = words.next().unwrap_or_default();
        if let Some(name) = name.strip_prefix('-') {
            bail!("{text:?} would remove an instance; delete the line that starts {name} instead");
        }
        if !valid_name(&name) {
            bail!(
                "{name:?} cannot be the name of an instance: expected up to 31 letters, digits, _ or -, starting with \
                 a letter or _, and not the name of a file of /proc/latency_tracker"
            );
        }
        let tracker = words.next().unwrap_or_default();
        if tracker.is_empty() || tracker.contains('=') {
            bail!("expected the name of a tracker after {name}: NAME TRACKER [key=value ...]");
        }
        let settings: Vec<String> = words.collect();
        let entry = Self {
            file: file.to_path_buf(),
            line,
            name,
            tracker,
            settings,
        };
        entry.settings()?;
        Ok(entry)
    }
}

fn place(file: &Path, line: usize) -> String {
    format!("{}:{line}", file.display())
}

/// The contents of the files.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// In the order of the given paths, then of file names, then of lines.
    pub(crate) entries: Vec<Entry>,
    /// Errors, each with its file, and with its line if a line is wrong.
    pub(crate) faults: Vec<String>,
    /// Number of files.
    pub(crate) files: usize,
}

impl Config {
    /// Reads files, and the `*.conf` files in directories.
    pub(crate) fn read(paths: &[PathBuf]) -> Self {
        let mut config = Self::default();
        for path in paths {
            match files(path) {
                Ok(files) => files.iter().for_each(|file| config.read_file(file)),
                Err(error) => config.cannot_read(path, &error),
            }
        }
        config.refuse_twice();
        config
    }

    fn read_file(&mut self, file: &Path) {
        self.files += 1;
        // Invalid UTF-8 affects only its line.
        let text = match fs::read(file) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return self.cannot_read(file, &error),
        };
        for (at, text) in text.lines().enumerate() {
            let (line, text) = (at + 1, text.trim());
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match Entry::parse(file, line, text) {
                Ok(entry) => self.entries.push(entry),
                Err(error) => self
                    .faults
                    .push(format!("{}: {error:#}", place(file, line))),
            }
        }
    }

    fn cannot_read(&mut self, path: &Path, error: &io::Error) {
        self.faults
            .push(format!("cannot read {}: {error}", path.display()));
    }

    /// Keeps the first of several lines that use the same name, and reports the others.
    fn refuse_twice(&mut self) {
        let mut first: HashMap<String, String> = HashMap::new();
        let (mut entries, mut faults) = (Vec::new(), Vec::new());
        for entry in self.entries.drain(..) {
            match first.get(&entry.name) {
                Some(place) => faults.push(format!(
                    "{}: {} is already the name of the instance at {place}",
                    entry.place(),
                    entry.name
                )),
                None => {
                    first.insert(entry.name.clone(), entry.place());
                    entries.push(entry);
                }
            }
        }
        self.entries = entries;
        self.faults.append(&mut faults);
    }
}

/// Returns the file itself, or the `*.conf` files of a directory, sorted by name. Hidden files, which some editors
/// leave there, are ignored.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        let hidden = file
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && file.extension() == Some(OsStr::new("conf")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> (Config, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        (Config::read(&[dir.path().to_path_buf()]), dir)
    }

    #[test]
    fn an_apply_is_running_while_its_file_is_locked() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!(is_being_applied(state.path()), Some(false));
        let lock = File::create(state.path().join(LOCK)).unwrap();
        assert_eq!(is_being_applied(state.path()), Some(false));
        lock.lock().unwrap();
        assert_eq!(is_being_applied(state.path()), Some(true));
        lock.unlock().unwrap();
        assert_eq!(is_being_applied(state.path()), Some(false));
    }

    #[test]
    fn files_are_read_by_name_and_others_are_left_alone() {
        let (config, _dir) = read(&[
            ("20-b.conf", "b block\n"),
            (
                "10-a.conf",
                "# comment\n\n  a wakeup\tthreshold=1ms comm=x \n",
            ),
            (".hidden.conf", "c block"),
            ("a.conf~", "d block"),
        ]);
        assert_eq!((config.files, config.faults.len()), (2, 0));
        let names: Vec<_> = config.entries.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(config.entries[0].settings, ["threshold=1ms", "comm=x"]);
        assert!(config.entries[0].place().ends_with("10-a.conf:3"));
    }

    #[test]
    fn a_wrong_line_is_named_and_the_others_remain() {
        let text = "a block\n-a\n9b block\nc threshold=1\nd block oops\ne\nf block x=1\n";
        let (config, dir) = read(&[("a.conf", text), ("b.conf", "a wakeup\n")]);
        let names: Vec<_> = config.entries.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["a", "f"]);
        let file = |name: &str| dir.path().join(name).display().to_string();
        for (fault, (line, word)) in config.faults.iter().zip([
            (2, "delete the line"),
            (3, "\"9b\" cannot be the name"),
            (4, "the name of a tracker after c"),
            (5, "oops"),
            (6, "the name of a tracker after e"),
        ]) {
            let begin = format!("{}:{line}: ", file("a.conf"));
            assert!(fault.starts_with(&begin) && fault.contains(word), "{fault}");
        }
        let twice = format!(
            "{}:1: a is already the name of the instance at {}:1",
            file("b.conf"),
            file("a.conf")
        );
        assert_eq!(config.faults[5..], [twice]);
    }

    #[test]
    fn what_cannot_be_read_is_a_fault() {
        let config = Config::read(&["/nonexistent".into()]);
        assert!(config.faults[0].starts_with("cannot read /nonexistent: "));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("any-name");
        fs::write(&file, b"a block\n\xff\xfe block\n").unwrap();
        let config = Config::read(&[file]);
        assert_eq!((config.entries.len(), config.faults.len()), (1, 1));
        // A file that cannot be read does not affect the others.
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("a.conf")).unwrap();
        std::os::unix::fs::symlink("/nonexistent", path("b.conf")).unwrap();
        fs::write(path("c.conf"), "c block\n").unwrap();
        let config = Config::read(&[dir.path().to_path_buf()]);
        assert_eq!((config.entries.len(), config.files), (1, 3));
        let fault = |name, why| format!("cannot read {}: {why}", path(name).display());
        assert_eq!(
            config.faults,
            [
                fault("a.conf", "Is a directory (os error 21)"),
                fault("b.conf", "No such file or directory (os error 2)")
            ]
        );
    }
}
