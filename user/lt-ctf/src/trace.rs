// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A trace, one of several that are read together.

use std::path::PathBuf;
use std::sync::Arc;

use crate::schema::Schema;

/// A trace: a directory with metadata and streams.
#[derive(Debug)]
pub struct Trace {
    /// Its directory.
    pub directory: PathBuf,
    /// Its metadata.
    pub schema: Arc<Schema>,
    /// The index of its first class among the classes of all traces.
    pub(crate) first: usize,
}
