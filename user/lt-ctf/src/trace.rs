// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One of several traces that are read together.

use std::path::PathBuf;

use crate::schema::Schema;

/// A trace: a directory with metadata and streams.
#[derive(Debug)]
pub struct Trace {
    /// Its directory.
    pub directory: PathBuf,
    /// Its metadata.
    pub schema: Schema,
    /// The number of its first class among those of all traces.
    pub(crate) first: usize,
}
