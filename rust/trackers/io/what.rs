// SPDX-License-Identifier: GPL-2.0

//! The events of the `io` tracker, system calls or requests, and the fields of their alerts.

use super::class_of;
use crate::{
    engine::profile::Class,
    record::{put, say, take, How, InQuotes, Record},
    sys::block::Transfer,
    trackers::block, //
};
use kernel::fmt;

/// The kinds of events.
pub(crate) enum Detail {
    /// A system call: its class, and its number on this architecture.
    Call(Class, u32),
    Request(block::Detail),
}

/// Marks a system call. It is stored where a request has its device and flags, and differs from
/// every device with flags.
const CALL: u64 = u64::MAX;

impl Record for Detail {
    const WORDS: usize = block::Detail::WORDS;

    #[inline(always)]
    fn pack(&self, words: &mut [u64]) {
        match self {
            Self::Call(class, number) => {
                put(words, 0, CALL);
                put(words, 64, (*class as u64) << 32 | u64::from(*number));
            }
            Self::Request(request) => request.pack(words),
        }
    }

    #[inline(always)]
    fn unpack(words: &[u64]) -> Self {
        if take(words, 0) != CALL {
            return Self::Request(Record::unpack(words));
        }
        let call = take(words, 64);
        Self::Call(
            Class::from_number(call >> 32).unwrap_or(Class::Read),
            call as u32,
        )
    }

    fn show(&self, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = match self {
            Self::Call(class, number) => {
                say("class", class.name(), f)?;
                return say("call", number, f);
            }
            Self::Request(request) => request,
        };
        let transfer = Transfer::of(request.cmd_flags.0);
        say(
            "class",
            transfer.map_or("?", |transfer| class_of(transfer).name()),
            f,
        )?;
        if !how.pending() {
            return request.show(how, f);
        }
        say("dev", request.dev, f)?;
        say("op", InQuotes(request.cmd_flags), f)?;
        say("sector", request.sector, f)?;
        say("bytes", request.bytes, f)
    }
}
