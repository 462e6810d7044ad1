// SPDX-License-Identifier: GPL-2.0

//! The stack of an alert's task in user space: the last words of the record's tail, described by a
//! byte in the record.
//!
//! ```text
//!   tail:   | kernel stack, innermost first ...         | user stack, innermost first ... |
//!   byte:   end << 5 | number of addresses                <----------- number ---------->
//! ```
//!
//! Three bits are too few for all ends: the byte of [`End::Kernel`] has a number of addresses that
//! no stack has.

use kernel::{fmt, prelude::*};

/// Maximum number of addresses.
pub(crate) const USER_DEPTH: usize = 16;

/// Number of bits for the number of addresses.
const LEN_BITS: u32 = 5;
const LEN_MASK: u8 = (1 << LEN_BITS) - 1;

/// Where a stack ends, or why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// No stack in user space was asked for.
    Unasked = 0,
    /// At the outermost function.
    Outermost = 1,
    /// At a frame pointer that is not aligned, is below the stack pointer, or does not increase.
    Broken = 2,
    /// At an address that could not be read without a page fault.
    Unreadable = 3,
    /// At the maximum number of addresses.
    Depth = 4,
    /// At the innermost address: the frame layout of the program's ABI is not known.
    Unsupported = 5,
    /// There is no stack: the event has no task, its task has no memory in user space or is
    /// replacing its program, or the walk of another stack was in progress.
    None = 6,
    /// The alert was raised by another task, or by an interrupt.
    Elsewhere = 7,
    /// There is no stack: the task is a kernel thread, or a kernel worker in a process, such as a
    /// worker of io_uring.
    Kernel = 8,
}

/// The mark of [`End::Kernel`]: a length that no stack has.
const KERNEL: Mark = Mark((End::None as u8) << LEN_BITS | LEN_MASK);
const _: () = assert!(USER_DEPTH < LEN_MASK as usize);

impl End {
    /// All ends but `Kernel`, by their numbers.
    const ALL: [End; 8] = [
        End::Unasked,
        End::Outermost,
        End::Broken,
        End::Unreadable,
        End::Depth,
        End::Unsupported,
        End::None,
        End::Elsewhere,
    ];

    /// Returns the word in the alert line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            End::Unasked => "unasked",
            End::Outermost => "outermost",
            End::Broken => "broken",
            End::Unreadable => "unreadable",
            End::Depth => "depth",
            End::Unsupported => "unsupported",
            End::None => "none",
            End::Elsewhere => "elsewhere",
            End::Kernel => "kernel",
        }
    }
}

/// The number of addresses of a stack, and where they end: a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mark(pub(crate) u8);

impl Mark {
    /// Packs the number of addresses, and where they end.
    pub(crate) fn new(end: End, len: usize) -> Self {
        match end {
            End::Kernel => KERNEL,
            _ => Self((end as u8) << LEN_BITS | (len.min(USER_DEPTH) as u8)),
        }
    }

    /// Returns the number of addresses.
    pub(crate) fn len(self) -> usize {
        match self {
            KERNEL => 0,
            _ => usize::from(self.0 & LEN_MASK).min(USER_DEPTH),
        }
    }

    /// Returns where the addresses end.
    pub(crate) fn end(self) -> End {
        match self {
            KERNEL => End::Kernel,
            _ => End::ALL[usize::from(self.0 >> LEN_BITS)],
        }
    }
}

/// The stack as fields of a line, each with a space before it; nothing if it was not asked for.
/// User-space addresses are shown only to a trusted reader.
pub(crate) struct UserField<'a> {
    pub(crate) entries: &'a [u64],
    pub(crate) mark: Mark,
    pub(crate) is_trusted: bool,
}

impl fmt::Display for UserField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.mark.end();
        match end {
            End::Unasked => return Ok(()),
            End::None | End::Elsewhere | End::Kernel => {
                return f.write_fmt(fmt!(" ustack={}", end.name()));
            }
            _ if !self.is_trusted => return f.write_str(" ustack=hidden"),
            _ => {}
        }
        f.write_str(" ustack=")?;
        for (i, &address) in self.entries.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            f.write_fmt(fmt!("{comma}{address:#x}"))?;
        }
        f.write_fmt(fmt!(" ustack_end={}", end.name()))
    }
}
