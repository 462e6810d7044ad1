// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads files, and breaks lines.

use std::fs;

use anyhow::{Context, Result};

/// Reads a file; an error names the file.
pub(crate) fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.to_owned())
}

/// Returns the paths of the files in a folder and its subfolders that have this ending, sorted.
pub(crate) fn files(folder: &str, ending: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.to_owned())? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            paths.extend(files(&path, ending)?);
        } else if path.ends_with(ending) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Breaks words into lines of at most `width` bytes; a longer word has a line of its own. All lines
/// but the first start with `indent`, which does not count.
pub(crate) fn filled<T: AsRef<str>>(indent: &str, width: usize, words: &[T]) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in words.iter().map(AsRef::as_ref) {
        if used > 0 && used + 1 + word.len() > width {
            text += "\n";
            text += indent;
            used = 0;
        } else if used > 0 {
            text += " ";
            used += 1;
        }
        text += word;
        used += word.len();
    }
    text
}

/// Whether a character can be part of a name.
pub(crate) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
