// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads the kernel's files below a prefix, so that a test can supply its own machine.
//!
//! An unreadable file does not fail the check: its row reports the file, with the reason.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::str::FromStr;

use lt_common::module::is_root;
use nix::errno::Errno;

use super::cpus::Cpus;

/// The machine: its `/proc`, `/sys`, `/dev` and `/boot`.
#[derive(Debug)]
pub struct Root(PathBuf);

/// A fact that is not available, with the reason: usually an unreadable file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Creates an error for missing data that is not due to an unreadable file.
pub(super) fn missing(why: impl Into<String>) -> Missing {
    Missing(why.into())
}

impl Root {
    /// Creates the root; `prefix` is `/` except in tests.
    pub fn new(prefix: impl Into<PathBuf>) -> Self {
        Self(prefix.into())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    fn why(path: &str, error: &io::Error) -> Missing {
        match error.kind() {
            io::ErrorKind::NotFound => Missing(format!("{path} does not exist")),
            io::ErrorKind::PermissionDenied => {
                Missing(format!("{path}: {}", denied(error, is_root())))
            }
            _ => Missing(format!("{path}: {error}")),
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// Whether root may write the file, according to its mode: the kernel clears the write
    /// permission of files that even root cannot change. Writes nothing.
    pub(super) fn is_for_writing(&self, path: &str) -> bool {
        let metadata = self.at(path).metadata();
        metadata.is_ok_and(|metadata| !metadata.permissions().readonly())
    }

    /// Reads a file, without leading and trailing white space. Names of tasks need not be UTF-8.
    pub fn text(&self, path: &str) -> Result<String, Missing> {
        let bytes = fs::read(self.at(path)).map_err(|error| Self::why(path, &error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    /// Parses the first word of a file.
    pub(super) fn value<T: FromStr>(&self, path: &str) -> Result<T, Missing> {
        let text = self.text(path)?;
        let word = text.split_whitespace().next().unwrap_or_default();
        let bad = |_| Missing(format!("{path}: unexpected content '{text}'"));
        word.parse().map_err(bad)
    }

    /// Reads a file with a list of CPUs. The kernel prints `(null)` for a set that it has not
    /// allocated.
    pub fn cpus(&self, path: &str) -> Result<Cpus, Missing> {
        match self.text(path)?.as_str() {
            "(null)" => Ok(Cpus::default()),
            list => list
                .parse()
                .map_err(|error| Missing(format!("{path}: {error}"))),
        }
    }

    /// Reads a file with a mask of CPUs.
    pub(super) fn mask(&self, path: &str) -> Result<Cpus, Missing> {
        let text = self.text(path)?;
        Cpus::from_mask(&text).ok_or_else(|| Missing(format!("{path}: '{text}' is not a CPU mask")))
    }

    /// Reads `N` bytes of a file, from `offset`.
    pub(super) fn bytes<const N: usize>(
        &self,
        path: &str,
        offset: u64,
    ) -> Result<[u8; N], Missing> {
        let why = |error| Self::why(path, &error);
        let file = File::open(self.at(path)).map_err(why)?;
        let mut bytes = [0; N];
        // A device that cannot seek is read from its start.
        if offset == 0 {
            (&file).read_exact(&mut bytes).map_err(why)?;
        } else {
            file.read_exact_at(&mut bytes, offset).map_err(why)?;
        }
        Ok(bytes)
    }

    /// Returns the names in a directory, sorted, numbers by value.
    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, Missing> {
        let entries = fs::read_dir(self.at(path)).map_err(|error| Self::why(path, &error))?;
        let mut names: Vec<String> = entries
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_by_key(|name| (name.parse::<u64>().unwrap_or(u64::MAX), name.clone()));
        Ok(names)
    }

    /// Returns the target of a symbolic link; `None` if it is not a link or cannot be read.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.at(path)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// Returns the directories in a directory, sorted.
    pub(super) fn directories(&self, path: &str) -> Result<Vec<String>, Missing> {
        let mut names = self.names(path)?;
        names.retain(|name| self.at(&format!("{path}/{name}")).is_dir());
        Ok(names)
    }

    /// Returns a parameter of the kernel's command line: `None` if it is missing, else its last
    /// value, which may be empty. `-` and `_` in names are equivalent.
    pub(super) fn parameter(&self, name: &str) -> Result<Option<String>, Missing> {
        let line = self.text("/proc/cmdline")?;
        let words = line.split_whitespace().take_while(|word| *word != "--");
        let pairs = words.map(|word| word.split_once('=').unwrap_or((word, "")));
        let values = pairs.filter(|(key, _)| key.replace('-', "_") == name);
        Ok(values
            .last()
            .map(|(_, value)| value.trim_matches('"').to_string()))
    }

    /// Returns the options in `options` that the kernel was built with (`=y`).
    pub(super) fn built_with(&self, options: &[&str]) -> Result<Vec<String>, Missing> {
        let release = self.text("/proc/sys/kernel/osrelease")?;
        let config = self.text(&format!("/boot/config-{release}"))?;
        let on = |option: &&&str| {
            config
                .lines()
                .any(|line| line == format!("CONFIG_{option}=y"))
        };
        Ok(options
            .iter()
            .filter(on)
            .map(|option| option.to_string())
            .collect())
    }

    /// Whether /proc/cpuinfo has this flag.
    pub fn cpu_flag(&self, flag: &str) -> Result<bool, Missing> {
        let info = self.text("/proc/cpuinfo")?;
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        let flags = lines.find(|(key, _)| key.trim() == "flags");
        let (_, flags) = flags.ok_or_else(|| Missing("/proc/cpuinfo has no flags".into()))?;
        Ok(flags.split_whitespace().any(|word| word == flag))
    }
}

/// Returns why this user may not read a file.
fn denied(error: &io::Error, is_root: bool) -> String {
    const LOCKED: &str = "not readable even by root: the kernel is locked down (see \
        /sys/kernel/security/lockdown), or a capability is missing";
    match error.raw_os_error().map(Errno::from_raw) {
        _ if !is_root => "only root can read it".to_string(),
        // In lockdown, even for integrity only, root may not open most files of debugfs.
        Some(Errno::EPERM) => LOCKED.to_string(),
        _ => error.to_string(),
    }
}

/// Returns the selected word of a file that lists all choices: `always [madvise] never`, or
/// `(full)` in debugfs.
pub(super) fn chosen(text: &str) -> &str {
    let marked = |word: &&str| word.starts_with(['[', '(']);
    let word = text.split_whitespace().find(marked).unwrap_or(text);
    word.trim_matches(['[', ']', '(', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_root_may_not_read_is_not_left_to_root() {
        let why = |errno: Errno, is_root| {
            let error = io::Error::from_raw_os_error(errno as i32);
            denied(&error, is_root)
        };
        for errno in [Errno::EPERM, Errno::EACCES] {
            assert_eq!(why(errno, false), "only root can read it");
        }
        let locked = why(Errno::EPERM, true);
        assert!(locked.contains("locked down"), "{locked}");
        let denied = why(Errno::EACCES, true);
        assert!(denied.starts_with("Permission denied"), "{denied}");
    }
}
