// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One of the traces that are read as one.

use std::path::PathBuf;

use crate::schema::Schema;

/// One trace: a directory with metadata and streams.
#[derive(Debug)]
pub struct Trace {
    /// Where it is.
    pub directory: PathBuf,
    /// What its metadata say.
    pub schema: Schema,
    /// The number of its first class among those of all traces.
    pub(crate) first: usize,
}
