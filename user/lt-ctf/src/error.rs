// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Errors in a trace, with their place.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error in a trace: the file, the byte, and the problem.
#[derive(Debug, Error)]
#[error("{}{}: {what}", file.display(), self.place())]
pub struct Error {
    /// The file; the directory if the error concerns the whole trace.
    pub file: PathBuf,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// In a stream, the offset of the bad packet in the file, in bytes.
    pub packet: Option<u64>,
    /// The fault at this place.
    pub what: What,
}

/// The kinds of faults.
#[derive(Debug, Error)]
pub enum What {
    /// The operating system returned an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// There is no trace.
    #[error("no trace: there is no file `metadata` in or below it")]
    Nowhere,
    /// The metadata is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The metadata is not CTF, or exceeds a limit of this reader.
    #[error("{0}")]
    Metadata(String),
    /// The data does not match the metadata.
    #[error("{0}")]
    Data(String),
    /// The file ends within a packet.
    #[error("the packet has {packet} bytes, and the file ends after {there} of them")]
    Truncated {
        /// Size of the packet according to its header.
        packet: u64,
        /// Number of its bytes in the file.
        there: u64,
    },
}

impl Error {
    /// Formats the byte offset; empty for a directory and for a file that cannot be opened.
    fn place(&self) -> String {
        match (&self.what, self.packet) {
            (What::Nowhere, _) => String::new(),
            (What::Io(_), _) if self.offset == 0 => String::new(),
            (_, Some(packet)) => format!(": byte {} (packet at byte {packet})", self.offset),
            (_, None) => format!(": byte {}", self.offset),
        }
    }

    pub(crate) fn new(file: &Path, offset: u64, what: impl Into<What>) -> Self {
        Self {
            file: file.to_path_buf(),
            offset,
            packet: None,
            what: what.into(),
        }
    }

    pub(crate) fn metadata(file: &Path, offset: u64, what: impl Into<String>) -> Self {
        Self::new(file, offset, What::Metadata(what.into()))
    }
}

/// The result of reading.
pub type Result<T, E = Error> = std::result::Result<T, E>;
