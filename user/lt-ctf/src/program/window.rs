// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The part of a packet that is in memory, and how basic types are read from it.

use crate::bits;
use crate::schema::Int;

/// Why a walk stopped before the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The window ends too early: the bits before this position are needed.
    More(u64),
    /// The data is invalid.
    Bad(Box<str>),
}

impl Stop {
    #[cold]
    pub(crate) fn bad(what: impl Into<Box<str>>) -> Self {
        Self::Bad(what.into())
    }
}

/// A part of a packet. It starts at a multiple of the largest alignment ([`crate::metadata::field::ALIGN`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    pub(crate) bytes: &'a [u8],
    /// End, in bits; at most the end of `bytes`.
    pub(crate) end: u64,
}

impl Window<'_> {
    /// Returns `pos` + `size`, if this is inside the window.
    #[inline]
    pub(crate) fn after(&self, pos: u64, size: u64) -> Result<u64, Stop> {
        let end = pos.saturating_add(size);
        if end <= self.end {
            Ok(end)
        } else {
            Err(Stop::More(end))
        }
    }

    /// Reads an integer at `pos`, which is checked only against the end of `bytes`, not against `end`.
    #[inline]
    pub(crate) fn integer(&self, pos: u64, int: Int) -> Result<u64, Stop> {
        match bits::read(self.bytes, pos as usize, int.len, int.order) {
            Some(value) if int.signed => Ok(bits::sign(value, int.len) as u64),
            Some(value) => Ok(value),
            None => Err(Stop::More(pos.saturating_add(u64::from(int.len)))),
        }
    }

    /// Returns the end of text with units of this size, including its terminator.
    pub(crate) fn text(&self, pos: u64, unit: usize) -> Result<u64, Stop> {
        let rest = self
            .bytes
            .get((pos >> 3) as usize..(self.end >> 3) as usize);
        let rest = rest.unwrap_or_default();
        let length = match unit {
            1 => memchr::memchr(0, rest).map(|i| i + 1),
            _ => {
                let zero = rest
                    .chunks_exact(unit)
                    .position(|c| c.iter().all(|b| *b == 0));
                zero.map(|i| (i + 1) * unit)
            }
        };
        match length {
            Some(length) => Ok(pos + 8 * length as u64),
            None => Err(Stop::More(self.end.saturating_add(8))),
        }
    }
}

#[inline]
pub(crate) fn align(pos: u64, align: u32) -> u64 {
    let mask = u64::from(align) - 1;
    (pos + mask) & !mask
}
