// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads which traces a directory already has.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::batch::{files, partition};
use crate::rows::{Coverage, Row};

/// A trace and an analysis whose results a directory has.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The trace.
    pub trace: String,
    /// The analysis.
    pub analysis: String,
    /// The only thread that was analyzed, if there was only one.
    pub tid: Option<i64>,
    /// The boot of the host.
    pub boot: String,
    /// Start of the range, ns of the trace's clock.
    pub start_ns: i64,
    /// End of the range, ns of the trace's clock.
    pub end_ns: i64,
}

/// Reads the traces of a host in a directory, from the table `coverage`.
///
/// # Errors
/// If a file cannot be read.
pub fn covered(directory: &Path, host: &str) -> Result<Vec<Covered>> {
    let mut all = Vec::new();
    for path in files(&partition(directory, Coverage::TABLE, host))? {
        let named = || path.display().to_string();
        let reader = SerializedFileReader::new(File::open(&path).with_context(named)?);
        let reader = reader.with_context(named)?;
        for row in reader.get_row_iter(None).with_context(named)? {
            let mut covered = Covered::default();
            for (name, value) in row.with_context(named)?.get_column_iter() {
                match (name.as_str(), value) {
                    ("trace", Field::Str(text)) => covered.trace.clone_from(text),
                    ("analysis", Field::Str(text)) => covered.analysis.clone_from(text),
                    ("tid", Field::Long(tid)) => covered.tid = Some(*tid),
                    ("boot", Field::Str(text)) => covered.boot.clone_from(text),
                    ("start_ns", Field::Long(ns)) => covered.start_ns = *ns,
                    ("end_ns", Field::Long(ns)) => covered.end_ns = *ns,
                    _ => {}
                }
            }
            all.push(covered);
        }
    }
    Ok(all)
}
