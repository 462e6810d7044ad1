// SPDX-License-Identifier: GPL-2.0

//! The data of an event of `func`, and the fields of its alert.

use crate::{
    alert::record::{Owner, DETAIL},
    instance::Details,
    sys::{
        fprobe::Frame,
        symbol::{FunctionName, Limit, Raw, Symbol},
        task::Context, //
    },
    text::Escaped,
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// How many arguments are noted: those in the first registers.
const ARGUMENTS: usize = 3;

/// The words of an event.
pub(super) const WORDS: usize = Owner::WORDS + 4 + ARGUMENTS;

/// A call of a function.
#[derive(Clone, Copy)]
pub(super) struct Called {
    pub(super) owner: Owner,
    pub(super) frame: Frame,
    /// From 1. In an event it is in the key.
    pub(super) depth: u64,
    /// Its address.
    pub(super) function: u64,
    /// The return address.
    pub(super) caller: u64,
    pub(super) context: Context,
    pub(super) arguments: [u64; ARGUMENTS],
    /// The result. Not in an event.
    pub(super) result: u64,
}

impl Called {
    /// The words of an alert that it uses.
    pub(super) const DETAIL_WORDS: usize = 4 + ARGUMENTS;

    /// Packs it into an event's words.
    #[inline(always)]
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let [o0, o1, o2] = self.owner.to_words();
        let [a0, a1, a2] = self.arguments;
        [
            self.frame.0,
            o0,
            o1,
            o2,
            self.function,
            self.caller,
            self.context as u64,
            a0,
            a1,
            a2,
        ]
    }

    /// The frame in an event's words.
    #[inline(always)]
    pub(super) fn frame_of(words: &[u64; WORDS]) -> Frame {
        Frame(words[0])
    }

    /// The inverse of [`Called::to_words`].
    pub(super) fn from_words(words: &[u64; WORDS], depth: u64) -> Self {
        let [frame, o0, o1, o2, function, caller, context, a0, a1, a2] = *words;
        Self {
            owner: Owner::from_words([o0, o1, o2]),
            frame: Frame(frame),
            depth,
            function,
            caller,
            context: Context::from_number(context as u32),
            arguments: [a0, a1, a2],
            result: 0,
        }
    }

    /// The details of its alert.
    pub(super) fn details(self) -> Details {
        let mut words = [0; DETAIL];
        let [a0, a1, a2] = self.arguments;
        let place = (self.context as u64) << 32 | (self.depth & 0xffff_ffff);
        let used: [u64; Self::DETAIL_WORDS] =
            [self.function, self.caller, place, a0, a1, a2, self.result];
        words[..Self::DETAIL_WORDS].copy_from_slice(&used);
        Details {
            owner: self.owner,
            words,
        }
    }

    /// The inverse of [`Called::details`], except the owner.
    pub(super) fn from_detail(words: &[u64; DETAIL]) -> Self {
        let [function, caller, place, a0, a1, a2, result, ..] = *words;
        Self {
            owner: Owner::default(),
            frame: Frame::default(),
            depth: place & 0xffff_ffff,
            function,
            caller,
            context: Context::from_number((place >> 32) as u32),
            arguments: [a0, a1, a2],
            result,
        }
    }

    /// As fields of a line, with the result if it has returned.
    pub(super) fn named(self, has_returned: bool, limit: Limit) -> impl fmt::Display {
        Named {
            called: self,
            has_returned,
            limit,
        }
    }
}

struct Named {
    called: Called,
    has_returned: bool,
    limit: Limit,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Called {
            depth,
            function,
            caller,
            context,
            arguments: [a0, a1, a2],
            result,
            ..
        } = self.called;
        f.write_fmt(fmt!(
            "function={} depth={depth} context={} args={},{},{} caller=\"",
            FunctionName(function),
            context.name(),
            Raw::new(a0, self.limit),
            Raw::new(a1, self.limit),
            Raw::new(a2, self.limit)
        ))?;
        Escaped(f).write_fmt(fmt!("{}", Symbol(caller)))?;
        f.write_str("\"")?;
        if self.has_returned {
            f.write_fmt(fmt!(" ret={}", Raw::new(result, self.limit)))?;
        }
        Ok(())
    }
}
