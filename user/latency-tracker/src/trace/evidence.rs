// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds the files of a capture that are next to its trace, and reads `evidence.json`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lt_model::Disk;
use lt_proc::evidence::Evidence;

/// The `evidence.json` of a capture, see [`of_capture`]. A capture may have none.
pub(crate) fn file(directory: &Path) -> Result<Option<PathBuf>> {
    of_capture(directory, "evidence.json")
}

/// A file of a capture, given the directory of the capture or the `trace` in it; `None` if there is no such file.
pub(crate) fn of_capture(directory: &Path, name: &str) -> Result<Option<PathBuf>> {
    let mut file = directory.join(name);
    // The path is resolved, as the directory may be `.`. An unreadable directory is reported as an error of the trace.
    if !file.exists()
        && let Ok(trace) = fs::canonicalize(directory)
        && trace.file_name() == Some(OsStr::new("trace"))
    {
        file = trace.with_file_name(name);
    }
    let exists = file.try_exists();
    let exists = exists.with_context(|| file.display().to_string())?;
    Ok(exists.then_some(file))
}

/// Reads the evidence of a capture; `None` if it has no `evidence.json`.
pub(crate) fn read(directory: &Path) -> Result<Option<Evidence>> {
    let Some(file) = file(directory)? else {
        return Ok(None);
    };
    let about = || file.display().to_string();
    let text = fs::read_to_string(&file).with_context(about)?;
    serde_json::from_str(&text).with_context(about).map(Some)
}

/// The disks in the evidence, and their names.
pub(super) fn disks(evidence: &Evidence) -> impl Iterator<Item = (Disk, String)> {
    let disks = evidence.disks.iter();
    let disks = disks.filter(|of| of.major < 1 << 12 && of.minor < 1 << 20);
    disks.map(|of| (Disk(of.major << 20 | of.minor), of.name.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_may_lack_evidence_but_invalid_evidence_is_an_error() {
        let capture = tempfile::tempdir().unwrap();
        assert_eq!(read(capture.path()).unwrap(), None);
        let file = capture.path().join("evidence.json");
        let disk = lt_proc::evidence::Disk {
            major: 8,
            minor: 0,
            name: "sda".into(),
        };
        let some = Some(Evidence {
            disks: vec![disk],
            ..Evidence::default()
        });
        fs::write(&file, serde_json::to_string(&some).unwrap()).unwrap();
        assert_eq!(read(capture.path()).unwrap(), some);
        // The evidence also belongs to the capture's trace, but not to another trace in the directory.
        let [trace, other] = ["trace", "other"].map(|name| capture.path().join(name));
        for directory in [&trace, &other] {
            fs::create_dir(directory).unwrap();
        }
        assert_eq!(read(&trace).unwrap(), some);
        assert_eq!(read(&trace.join(".")).unwrap(), some);
        assert_eq!(read(&other).unwrap(), None);
        fs::write(&file, "{").unwrap();
        let error = read(capture.path()).unwrap_err().to_string();
        assert!(error.ends_with("evidence.json"), "{error}");
    }
}
