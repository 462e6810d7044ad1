// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Numbered captures in the output directory.
//!
//! ```text
//! DIR/0001/trace/           the flight recorder, for babeltrace2 or Trace Compass
//! DIR/0001/alert.json       the alerts of this wake-up
//! DIR/0001/explanation.txt  what the trace says about them
//! ```
//!
//! A capture is made under another name and renamed when it is whole: a directory with a number is
//! never half a capture.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lt_proc::Alert;
use serde::Serialize;

use crate::lttng::Session;

/// The output directory.
#[derive(Debug)]
pub(crate) struct Captures {
    directory: PathBuf,
}

/// `alert.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Record<'a> {
    /// The number of the capture.
    pub(crate) capture: u64,
    /// Seconds since 1970 when the snapshot was taken.
    pub(crate) taken: u64,
    pub(crate) instance: &'a str,
    pub(crate) tracker: &'a str,
    /// From the wake-up until the snapshot was written, ns.
    pub(crate) snapshot_took: u64,
    /// Alerts that the ring overtook.
    pub(crate) lost: u64,
    /// Wake-ups without a capture so far.
    pub(crate) skipped: usize,
    pub(crate) alerts: &'a [Alert],
}

impl Captures {
    /// The directory, made if it is missing; halves of an earlier run are removed.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let directory = directory
            .canonicalize()
            .with_context(|| directory.display().to_string())?;
        for entry in fs::read_dir(&directory)?.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(PARTIAL) && owner_is_gone(&name.to_string_lossy())
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(Self { directory })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// A directory for something unfinished, removed when dropped.
    pub(crate) fn partial(&self) -> Result<Partial> {
        let path = self
            .directory
            .join(format!("{PARTIAL}{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        Ok(Partial { path })
    }

    /// Takes a snapshot; the capture has no number yet.
    pub(crate) fn snapshot(&self, session: &Session) -> Result<Partial> {
        let partial = self.partial()?;
        session.snapshot(&partial.path.join("trace"))?;
        Ok(partial)
    }

    /// Gives a capture the next number.
    pub(crate) fn keep(&self, partial: Partial, number: u64) -> Result<PathBuf> {
        let path = self.directory.join(format!("{number:04}"));
        fs::rename(&partial.path, &path).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// One more than the largest there is.
    pub(crate) fn next_number(&self) -> Result<u64> {
        Ok(self.numbered()?.last().map_or(1, |(n, _)| n + 1))
    }

    /// How many bytes all captures take.
    pub(crate) fn size(&self) -> Result<u64> {
        let sizes = self.numbered()?.into_iter().map(|(_, path)| size_of(&path));
        Ok(sizes.sum())
    }

    /// Removes the oldest capture; its path, or none when there is none.
    pub(crate) fn remove_oldest(&self) -> Result<Option<PathBuf>> {
        let Some((_, path)) = self.numbered()?.into_iter().next() else {
            return Ok(None);
        };
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Some(path))
    }

    /// The captures, the oldest first.
    fn numbered(&self) -> Result<Vec<(u64, PathBuf)>> {
        let place = || self.directory.display().to_string();
        let mut list = Vec::new();
        for entry in fs::read_dir(&self.directory).with_context(place)?.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let digits = name.len() >= 4 && name.bytes().all(|b| b.is_ascii_digit());
            if let (true, Ok(number)) = (digits, name.parse()) {
                list.push((number, entry.path()));
            }
        }
        list.sort();
        Ok(list)
    }
}

const PARTIAL: &str = ".partial-";

fn owner_is_gone(name: &str) -> bool {
    let pid = name.strip_prefix(PARTIAL).unwrap_or("");
    !Path::new("/proc").join(pid).exists() || pid.is_empty()
}

/// An unfinished capture.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(crate) path: PathBuf,
}

impl Partial {
    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                crate::out::note(&format!("cannot remove {}: {e}", self.path.display()));
            }
            _ => {}
        }
    }
}

/// The bytes of all files below `path`.
pub(crate) fn size_of(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !meta.is_dir() {
        return meta.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|e| size_of(&e.path())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_numbered_kept_whole_and_removed_oldest_first() {
        let dir = std::env::temp_dir().join(format!("lt-captures-{}", std::process::id()));
        fs::create_dir_all(dir.join(".partial-4194399")).unwrap();
        fs::create_dir_all(dir.join("notes")).unwrap();
        let captures = Captures::open(&dir).unwrap();
        assert!(!dir.join(".partial-4194399").exists());
        assert_eq!(captures.next_number().unwrap(), 1);
        for n in [1, 2, 9999, 10000] {
            let partial = captures.partial().unwrap();
            partial.write("alert.json", "12345").unwrap();
            captures.keep(partial, n).unwrap();
        }
        drop(captures.partial().unwrap());
        assert_eq!(captures.next_number().unwrap(), 10001);
        assert_eq!(captures.size().unwrap(), 20);
        assert!(captures.remove_oldest().unwrap().unwrap().ends_with("0001"));
        assert_eq!(captures.numbered().unwrap().len(), 3);
        assert!(dir.join("notes").exists());
        fs::remove_dir_all(&dir).unwrap();
    }
}
