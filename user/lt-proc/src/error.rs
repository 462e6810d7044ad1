// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Errors of reading, parsing and writing the files of `/proc/latency_tracker`.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A line that does not match the format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {word:?}: expected {expected}")]
pub struct ParseError {
    /// Number of the line in the parsed text, from 1.
    pub line: usize,
    /// The offending word; empty if one is missing.
    pub word: String,
    /// Expected text.
    pub expected: String,
}

impl ParseError {
    pub(crate) fn new(word: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            line: 1,
            word: word.into(),
            expected: expected.into(),
        }
    }

    /// Returns this error with the number of its line in a larger text.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.line = line;
        self
    }
}

/// A failure to use the tree. The cause is the error's source, and not part of its text.
#[derive(Debug, Error)]
pub enum ProcError {
    /// There is no `/proc/latency_tracker`.
    #[error("the latency_tracker module is not loaded ({path} does not exist)", path = .0.display())]
    NotLoaded(PathBuf),
    /// The tree exists, but this user may not access it.
    #[error("the latency_tracker module is loaded, but this user may not use {path}", path = .0.display())]
    Denied(PathBuf),
    /// The tree exists, but the instance does not, or it does not have the file.
    #[error("no instance named {0:?}")]
    NoInstance(String),
    /// Reading or writing failed.
    #[error("{path}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused a control line.
    #[error("the kernel refused \"{line}\"")]
    Refused {
        /// The line that was written.
        line: String,
        /// The requested tracker; empty if there was none.
        tracker: String,
        /// The errno.
        source: io::Error,
    },
    /// A file contains something that this program does not understand.
    #[error("{path}", path = path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Place and error.
        source: ParseError,
    },
}
