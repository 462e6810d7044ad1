// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The captures of `record` as exemplars: for each bucket of an instance, the newest capture with
//! an alert whose delay is in that bucket. A capture is read once: it is complete when it is renamed
//! into place, and never changes after that. An exporter that may not read the captures reads the
//! index instead, which `record` writes for it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use crate::readings::bucket_of;

/// Maximum number of captures considered; older captures are ignored.
const MOST: usize = 256;

/// Maximum size of an `alert.json`, in bytes: 4096 alerts with several stacks each.
const LONGEST: u64 = 64 << 20;

/// A capture that stands for a bucket, with the delay of one of its alerts in this bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exemplar {
    /// Its number, as `captures` shows it.
    pub(crate) capture: String,
    /// The delay, ns.
    pub(crate) delay: u64,
    /// Seconds since 1970.
    pub(crate) taken: u64,
}

/// The exemplars by instance name and bucket.
pub(crate) type Exemplars = HashMap<(String, usize), Exemplar>;

/// The fields of `alert.json` that are used here.
#[derive(Debug, Deserialize)]
struct Saved {
    taken: u64,
    instance: String,
    alerts: Vec<Delay>,
}

#[derive(Debug, Deserialize)]
struct Delay {
    delay: u64,
}

/// A line of the index.
#[derive(Debug, Deserialize)]
struct Listed {
    capture: u64,
    #[serde(flatten)]
    saved: Saved,
}

/// A directory of captures.
#[derive(Debug)]
pub(crate) struct Captures {
    directory: PathBuf,
    /// The index to read if the directory may not be read.
    index: Option<PathBuf>,
    /// The captures already read, by the name of their directory. The time of `alert.json` is part
    /// of the value, since a number may be reused once all captures have been removed. The capture
    /// is `None` if its `alert.json` is too long or invalid.
    read: HashMap<String, (Option<SystemTime>, Option<Saved>)>,
}

impl Captures {
    pub(crate) fn new(directory: PathBuf, index: Option<PathBuf>) -> Self {
        Self {
            directory,
            index,
            read: HashMap::new(),
        }
    }

    /// Reads the new captures, or the index if they may not be read, and returns all exemplars.
    ///
    /// # Errors
    /// When the directory cannot be read; if that is for lack of permission and there is an index,
    /// only when the index cannot be read, either. A directory or an index that does not exist has
    /// no captures.
    pub(crate) fn exemplars(&mut self) -> io::Result<Exemplars> {
        match (self.read_directory(), &self.index) {
            (Err(error), Some(index)) if error.kind() == io::ErrorKind::PermissionDenied => {
                from_index(index)
            }
            (exemplars, _) => exemplars,
        }
    }

    fn read_directory(&mut self) -> io::Result<Exemplars> {
        let mut names = Vec::new();
        match fs::read_dir(&self.directory) {
            Ok(entries) => {
                let all = entries
                    .flatten()
                    .map(|e| e.file_name().to_string_lossy().into_owned());
                names.extend(all.filter(|name| name.bytes().all(|b| b.is_ascii_digit())));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        names.sort_by_key(|name| (name.len(), name.clone()));
        names.drain(..names.len().saturating_sub(MOST));
        self.read.retain(|name, _| names.contains(name));
        let mut exemplars = Exemplars::new();
        for name in names {
            let path = self.directory.join(&name).join("alert.json");
            let time = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
            let known = self
                .read
                .get(&name)
                .is_some_and(|(read_at, _)| *read_at == time);
            if !known {
                self.read.remove(&name);
                // A failed read is repeated, since the next one may succeed.
                if let Ok(saved) = read(&path) {
                    self.read.insert(name.clone(), (time, saved));
                }
            }
            let Some((_, Some(saved))) = self.read.get(&name) else {
                continue;
            };
            saved.add_to(&mut exemplars, &name);
        }
        Ok(exemplars)
    }
}

impl Saved {
    /// Makes this capture, whose number is `number`, the exemplar of the buckets of its delays.
    fn add_to(&self, exemplars: &mut Exemplars, number: &str) {
        for alert in &self.alerts {
            let exemplar = Exemplar {
                capture: number.to_string(),
                delay: alert.delay,
                taken: self.taken,
            };
            exemplars.insert((self.instance.clone(), bucket_of(alert.delay)), exemplar);
        }
    }
}

/// Reads an index, which has the newest captures last. An invalid line is ignored, as an invalid
/// capture is.
fn from_index(path: &Path) -> io::Result<Exemplars> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            let about = format!("{}: {error}", path.display());
            return Err(io::Error::new(error.kind(), about));
        }
    };
    let mut exemplars = Exemplars::new();
    for line in text.lines() {
        if let Ok(Listed { capture, saved }) = serde_json::from_str(line) {
            saved.add_to(&mut exemplars, &format!("{capture:04}"));
        }
    }
    Ok(exemplars)
}

/// Reads an `alert.json`; `None` if it is too long or invalid.
fn read(path: &Path) -> io::Result<Option<Saved>> {
    if fs::metadata(path)?.len() > LONGEST {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&fs::read(path)?).ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_newest_capture_with_such_a_delay_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut captures = Captures::new(dir.path().join("none"), None);
        assert_eq!(captures.exemplars().unwrap(), Exemplars::new());
        let mut captures = Captures::new(dir.path().to_path_buf(), None);
        for (name, alerts) in [
            ("0009", r#"{"delay":1000},{"delay":5000}"#),
            ("10000", r#"{"delay":1023}"#),
            (".partial-7", r#"{"delay":1}"#),
        ] {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            let text = format!(
                r#"{{"capture":1,"taken":17,"instance":"slow","tracker":"block","alerts":[{alerts}]}}"#
            );
            fs::write(path.join("alert.json"), text).unwrap();
        }
        fs::create_dir(dir.path().join("0010")).unwrap();
        let found = captures.exemplars().unwrap();
        let of = |found: &Exemplars, bucket| {
            let exemplar = found.get(&("slow".to_string(), bucket))?;
            assert_eq!(exemplar.taken, 17);
            Some((exemplar.capture.clone(), exemplar.delay))
        };
        assert_eq!(found.len(), 2);
        assert_eq!(of(&found, 0), Some(("10000".to_string(), 1023)));
        assert_eq!(of(&found, 3), Some(("0009".to_string(), 5000)));
        fs::remove_dir_all(dir.path().join("10000")).unwrap();
        assert_eq!(
            of(&captures.exemplars().unwrap(), 0),
            Some(("0009".to_string(), 1000))
        );
    }

    #[test]
    fn a_capture_that_could_not_be_read_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0001/alert.json");
        let mut captures = Captures::new(dir.path().to_path_buf(), None);
        // A directory cannot be read as a file.
        fs::create_dir_all(&path).unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(captures.exemplars().unwrap(), Exemplars::new());
        fs::remove_dir(&path).unwrap();
        let text = r#"{"taken":1,"instance":"a","alerts":[{"delay":1}]}"#;
        fs::write(&path, text).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        assert_eq!(captures.exemplars().unwrap().len(), 1);
    }

    #[test]
    fn the_index_names_the_newest_capture_with_such_a_delay() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index");
        assert_eq!(from_index(&index).unwrap(), Exemplars::new());
        let mut text = String::new();
        for (number, alerts) in [
            (9, r#"{"delay":1000},{"delay":5000}"#),
            (10000, r#"{"delay":1023}"#),
        ] {
            text += &format!(r#"{{"capture":{number},"taken":17,"#);
            text += &format!(r#""instance":"slow","alerts":[{alerts}]}}"#);
            text += "\nnot a line of the index\n";
        }
        fs::write(&index, text).unwrap();
        let found = from_index(&index).unwrap();
        assert_eq!(found.len(), 2);
        for (bucket, capture, delay) in [(0, "10000", 1023), (3, "0009", 5000)] {
            let exemplar = Exemplar {
                capture: capture.to_string(),
                delay,
                taken: 17,
            };
            assert_eq!(found.get(&("slow".to_string(), bucket)), Some(&exemplar));
        }
    }

    #[test]
    fn the_index_stands_in_for_captures_that_may_not_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let index = dir.path().join("index");
        let line = r#"{"capture":7,"taken":1,"instance":"a","alerts":[{"delay":1}]}"#;
        fs::write(&index, line).unwrap();
        let private = dir.path().join("private");
        fs::create_dir(&private).unwrap();
        let of = |directory: &Path| {
            let mut captures = Captures::new(directory.to_path_buf(), Some(index.clone()));
            captures.exemplars().map(|exemplars| exemplars.len())
        };
        // Captures that can be read are exact.
        assert_eq!(of(&private).unwrap(), 0);
        assert!(of(&index).is_err(), "a file is no directory of captures");
        // The note of `export` begins with the directory, so the error names the index.
        let error = from_index(&private).unwrap_err().to_string();
        assert!(error.starts_with(private.to_str().unwrap()), "{error}");
        fs::set_permissions(&private, fs::Permissions::from_mode(0o000)).unwrap();
        // Modes do not restrict root.
        let may_read = fs::read_dir(&private).is_ok();
        assert_eq!(of(&private).unwrap(), usize::from(!may_read));
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
