// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Fills the window onto a packet.
//!
//! The file is read, not mapped: if a mapped file shrinks, as it may during recording, the process
//! dies of SIGBUS. Reading 256 KiB costs 20 us, decoding it 200 us or more. The window begins at a
//! multiple of 4096 bytes of its packet: alignment in the window is then alignment in the packet.
//! The window grows only if a single event does not fit.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{PAGE, Stream};
use crate::error::{Error, Result, What};
use crate::program::Stop;

/// Maximum size of an event, or of the header of a packet, in bytes.
const LARGEST: usize = 16 << 20;

impl Stream {
    /// Reads more of the packet if decoding stopped for lack of bytes, or because the batch was full.
    #[cold]
    pub(super) fn more(&mut self, stop: Option<Stop>) -> Result<()> {
        let at = 8 * self.base + self.pos;
        // The new window starts at the page in which the event starts.
        let base = at / 8 / PAGE * PAGE;
        let size = match stop {
            Some(Stop::Bad(what)) => return Err(self.fault(at, What::Data(what.into()))),
            Some(Stop::More(want)) => self.enough(at, base, want.saturating_add(8 * self.base))?,
            // The events that did not fit into the batch are read again.
            None => self.size,
        };
        self.fill(base, size)?;
        self.pos = at - 8 * base;
        Ok(())
    }

    /// Returns the size of a window from byte `base` that has the bits of the packet up to `want`, for the event at
    /// bit `at`.
    fn enough(&self, at: u64, base: u64, want: u64) -> Result<usize> {
        if self.is_beyond(want) {
            let what = format!(
                "an event that passes the end of its packet at bit {}",
                self.packet.content
            );
            return Err(self.fault(at, What::Data(what)));
        }
        let mut size = self.size.max(self.bytes.len());
        // If the current window starts there already, it is doubled.
        if base == self.base {
            size = (2 * self.filled).max(self.size);
        }
        let need = usize::try_from(want.div_ceil(8) - base).unwrap_or(usize::MAX);
        if need > LARGEST {
            return Err(self.fault(
                at,
                What::Data(format!("an event of more than {LARGEST} bytes")),
            ));
        }
        Ok(size.min(LARGEST).max(need))
    }

    /// Whether this bit is beyond the content of the packet, or the window already has the rest of the content.
    pub(super) fn is_beyond(&self, want: u64) -> bool {
        let content = self.packet.content;
        want > content || self.base + self.filled as u64 >= content.div_ceil(8)
    }

    /// Fills the window with `size` bytes of the packet from byte `base`, or with fewer if the
    /// packet ends before.
    pub(super) fn fill(&mut self, base: u64, size: usize) -> Result<()> {
        let left = self.packet.content.div_ceil(8).saturating_sub(base);
        let size = size.min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.bytes.len() < size {
            self.bytes.resize(size, 0);
        }
        let (part, offset) = (self.packet.part, self.packet.offset + base);
        self.base = base;
        self.filled = 0;
        let mut bytes = std::mem::take(&mut self.bytes);
        let got = self.read(part, offset, &mut bytes[..size]);
        self.bytes = bytes;
        let got = got?;
        if got < size {
            // The file has shrunk.
            let there = base + got as u64;
            return Err(self.fault(
                8 * base,
                What::Truncated {
                    packet: self.packet.total,
                    there,
                },
            ));
        }
        self.filled = size;
        Ok(())
    }

    /// Reads until the buffer is full or the file ends.
    fn read(&mut self, part: usize, offset: u64, into: &mut [u8]) -> Result<usize> {
        let path = &self.origin.parts[part].path;
        let wrong = |e| Error::new(path, offset, What::Io(e));
        if self.open.as_ref().is_none_or(|(open, _)| *open != part) {
            self.open = Some((part, File::open(path).map_err(wrong)?));
        }
        let Some((_, file)) = &self.open else {
            return Ok(0);
        };
        let mut got = 0;
        while got < into.len() {
            match file.read_at(&mut into[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(wrong(e)),
            }
        }
        Ok(got)
    }

    /// Releases the memory and the file: nothing more will be read.
    pub(super) fn close(&mut self) {
        self.open = None;
        self.bytes = Vec::new();
        self.filled = 0;
    }
}
