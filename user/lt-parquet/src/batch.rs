// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The files of one run: their names, and how they replace the files of an earlier run.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::part;
use crate::rows::{Row, TABLES};
use crate::sheet::{Closed, Sheet};

/// The files of one run for one host.
pub struct Batch {
    directory: PathBuf,
    host: String,
    trace: String,
    by: String,
    closed: Vec<Closed>,
    scopes: BTreeSet<String>,
}

/// What a run wrote.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Done {
    /// Number of files.
    pub files: usize,
    /// Number of rows.
    pub rows: u64,
    /// Whether there were files of an earlier run.
    pub replaced: bool,
}

/// Checks the name of a host, which is a part of paths and a value in queries.
///
/// # Errors
/// For a name that would need to be escaped there, is empty, or has more than 250 characters.
pub fn host(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match name.chars().all(is_plain) && !name.is_empty() && name.len() <= 250 {
        true => Ok(name.to_string()),
        false => Err(
            "expected the name of a host, of at most 250 letters, digits, '.', '-' and '_'".into(),
        ),
    }
}

/// Removes the unfinished files that killed runs have left for a host. Returns their number.
#[must_use]
pub fn remove_left(directory: &Path, host: &str) -> usize {
    let partitions = TABLES
        .iter()
        .map(|(table, _)| partition(directory, table, host));
    partitions.map(|dir| part::remove_left(&dir)).sum()
}

/// The directory of a table for a host.
pub(crate) fn partition(directory: &Path, table: &str, host: &str) -> PathBuf {
    directory.join(table).join(format!("host={host}"))
}

/// Returns `TRACE.SCOPE.`, with which the names of all files of a run start.
fn prefix(trace: &str, scope: &str) -> String {
    format!("{trace}.{scope}.")
}

impl Batch {
    /// Starts the files of a trace in `directory`. `by` is the program that writes them. `trace` must not contain a dot
    /// or a slash.
    #[must_use]
    pub fn new(directory: &Path, host: &str, trace: &str, by: &str) -> Self {
        Self {
            directory: directory.to_path_buf(),
            host: host.to_string(),
            trace: trace.to_string(),
            by: by.to_string(),
            closed: Vec::new(),
            scopes: BTreeSet::new(),
        }
    }

    /// The trace.
    #[must_use]
    pub fn trace(&self) -> &str {
        &self.trace
    }

    /// Starts a file, with mode 0600; new directories have mode 0700. A later run for the trace replaces all files of
    /// this `scope`; `part` distinguishes the files of a scope.
    ///
    /// # Errors
    /// If the directory or the file cannot be created.
    pub fn sheet<R: Row>(&self, scope: &str, part: &str) -> Result<Sheet<R>> {
        let directory = partition(&self.directory, R::TABLE, &self.host);
        let mut made = DirBuilder::new();
        made.recursive(true).mode(0o700);
        let made = made.create(&directory);
        made.with_context(|| directory.display().to_string())?;
        let name = format!("{}{part}.parquet", prefix(&self.trace, scope));
        Sheet::new(directory.join(name), &self.by)
    }

    /// Adds a complete file, which gets its name in [`Batch::finish`]. A file without rows is dropped.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add<R: Row>(&mut self, scope: &str, sheet: Sheet<R>) -> Result<()> {
        self.scopes.insert(scope.to_string());
        if sheet.rows() > 0 {
            self.closed.push(sheet.close()?);
        }
        Ok(())
    }

    /// Writes a file of these rows, if there are any.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write<R: Row>(
        &mut self,
        scope: &str,
        part: &str,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<()> {
        self.scopes.insert(scope.to_string());
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let mut sheet = self.sheet(scope, part)?;
        for row in rows {
            sheet.push(row)?;
        }
        self.add(scope, sheet)
    }

    /// Gives the files their names, and removes the other files of an earlier run for the same trace and scopes.
    ///
    /// # Errors
    /// If a file cannot be renamed or removed. In that case, files of the earlier run that were not yet replaced or
    /// removed remain.
    pub fn finish(self) -> Result<Done> {
        let old = self.old()?;
        let mut done = Done {
            files: self.closed.len(),
            replaced: !old.is_empty(),
            ..Done::default()
        };
        let mut new = BTreeSet::new();
        for closed in self.closed {
            let named = || closed.path.display().to_string();
            closed.temporary.persist(&closed.path).with_context(named)?;
            done.rows += closed.rows;
            new.insert(closed.path);
        }
        for path in old.iter().filter(|path| !new.contains(*path)) {
            fs::remove_file(path).with_context(|| path.display().to_string())?;
        }
        Ok(done)
    }

    /// The files that an earlier run left for the same trace and scopes.
    fn old(&self) -> Result<Vec<PathBuf>> {
        let scopes = self.scopes.iter();
        let prefixes: Vec<_> = scopes.map(|scope| prefix(&self.trace, scope)).collect();
        let mut old = Vec::new();
        for (table, _) in TABLES {
            for path in files(&partition(&self.directory, table, &self.host))? {
                let name = path.file_name().map(|name| name.to_string_lossy());
                let starts = |prefix: &String| {
                    name.as_ref()
                        .is_some_and(|name| name.starts_with(prefix.as_str()))
                };
                if prefixes.iter().any(starts) {
                    old.push(path);
                }
            }
        }
        Ok(old)
    }
}

/// The Parquet files in a directory; none if there is no such directory.
pub(crate) fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let named = || directory.display().to_string();
    if !directory.try_exists().with_context(named)? {
        return Ok(Vec::new());
    }
    if !directory.is_dir() {
        bail!("{}: not a directory", named());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(named)? {
        let path = entry.with_context(named)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| name.ends_with(".parquet") && !name.starts_with('.')) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
