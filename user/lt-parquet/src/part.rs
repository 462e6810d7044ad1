// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Unfinished files. Readers ignore them, since their names start with a dot. Each is locked as long as its process
//! runs, so that a later run recognises the files of a killed run.

use std::fs::{self, DirEntry, OpenOptions};
use std::io;
use std::path::Path;

use tempfile::NamedTempFile;

const PREFIX: &str = ".";
const SUFFIX: &str = ".part";

/// Creates an unfinished file in a directory; removed if it is dropped.
pub(crate) fn create(directory: &Path) -> io::Result<NamedTempFile> {
    loop {
        // The mode of a temporary file is 0600.
        let part = tempfile::Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .tempfile_in(directory)?;
        // If the file system has no locks, no file is recognised, and none is removed.
        let _ = part.as_file().lock();
        // Another run may have removed the file before it was locked.
        if part.path().try_exists()? {
            return Ok(part);
        }
    }
}

/// Removes the unfinished files that killed runs have left in a directory. Returns their number.
pub(crate) fn remove_left(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let left = entries.filter(|entry| is_part(entry) && remove(&entry.path()));
    left.count()
}

fn is_part(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let is_named = name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    is_named && entry.file_type().is_ok_and(|kind| kind.is_file())
}

/// Removes an unfinished file whose process has ended. Returns whether it was removed.
fn remove(path: &Path) -> bool {
    let file = OpenOptions::new().write(true).open(path);
    // The file stays locked until it is removed.
    file.is_ok_and(|file| file.try_lock().is_ok() && fs::remove_file(path).is_ok())
}
