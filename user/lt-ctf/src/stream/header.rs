// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Decodes the headers of events: class and time.

use crate::bits::{self, Order};
use crate::program::{Roles, State, Stop, Window, align, tick, walk};
use crate::schema::{Fast, Schema, Shape, StreamClass};

/// Decodes LTTng's and babeltrace2's headers. Returns the number of the class, the clock, and where
/// the fields start.
#[inline]
pub(super) fn fast(
    window: Window<'_>,
    pos: u64,
    fast: Fast,
    clock: u64,
) -> Result<(u64, u64, u64), Stop> {
    let pos = align(pos, fast.align);
    let (number, time, len, escape, after) = match fast.shape {
        Shape::Compact => {
            let after = window.after(pos, 32)?;
            let word = word(window.bytes, pos);
            (word & 31, word >> 5, 27, 31, after)
        }
        Shape::Wide => {
            let after = window.after(pos, 128)?;
            let (number, time) = (long(window.bytes, pos), long(window.bytes, pos + 64));
            return Ok((number, time, after));
        }
        Shape::Large { time_align } => {
            let at = align(pos + 16, time_align);
            // An extended header is longer than this anyway.
            let after = window.after(at, 32)?;
            (
                word(window.bytes, pos) & 0xffff,
                word(window.bytes, at),
                32,
                65535,
                after,
            )
        }
    };
    if number != escape {
        return Ok((number, tick(clock, time, len), after));
    }
    extended(window, pos + if escape == 31 { 5 } else { 16 }, fast)
}

#[cold]
fn extended(window: Window<'_>, pos: u64, fast: Fast) -> Result<(u64, u64, u64), Stop> {
    let (whole, number_align, time_align) = fast.extended;
    let pos = align(align(pos, whole), number_align);
    let time_at = align(window.after(pos, 32)?, time_align);
    let after = window.after(time_at, 64)?;
    let read = |at, len| bits::read(window.bytes, at as usize, len, Order::Little).unwrap_or(0);
    Ok((read(pos, 32), read(time_at, 64), after))
}

/// Reads 32 byte-aligned bits, which must be in the window.
#[inline]
fn word(bytes: &[u8], pos: u64) -> u64 {
    let four = bytes
        .get((pos >> 3) as usize..)
        .and_then(<[u8]>::first_chunk::<4>);
    four.map_or(0, |b| u64::from(u32::from_le_bytes(*b)))
}

/// Reads 64 byte-aligned bits, which must be in the window.
#[inline]
fn long(bytes: &[u8], pos: u64) -> u64 {
    let eight = bytes
        .get((pos >> 3) as usize..)
        .and_then(<[u8]>::first_chunk::<8>);
    eight.map_or(0, |b| u64::from_le_bytes(*b))
}

/// Decodes any header.
pub(super) fn any(
    schema: &Schema,
    class: &StreamClass,
    window: Window<'_>,
    pos: u64,
    state: &mut State,
    clock: u64,
) -> Result<(u64, u64, u64), Stop> {
    state.roles = Roles {
        time: clock,
        ..Roles::default()
    };
    let pos = match class.header {
        Some(header) => walk(schema, window, header, pos, state)?,
        None => pos,
    };
    Ok((state.roles.event.unwrap_or(0), state.roles.time, pos))
}
