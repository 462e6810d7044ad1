// SPDX-License-Identifier: GPL-2.0

//! The events of the `io` tracker, system calls or requests, and the fields of their alerts.

use super::class_of;
use crate::{
    alert::record::{Owner, DETAIL},
    engine::profile::Class,
    instance::Details,
    sys::block::Transfer,
    trackers::block::steps::{self, Steps, STEPS}, //
};
use kernel::{fmt, prelude::*};

/// A system call.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) owner: Owner,
    pub(super) class: Class,
    /// As the architecture numbers them.
    pub(super) number: u32,
}

/// In place of a request's device and flags; no device has such a number.
const CALL: u64 = u64::MAX;

impl Call {
    /// Packs it for an event.
    #[inline(always)]
    pub(super) fn to_words(self) -> [u64; STEPS] {
        let [ids, comm0, comm1] = self.owner.to_words();
        let mut words = [0; STEPS];
        words[0] = ids;
        words[1] = comm0;
        words[2] = comm1;
        words[WHAT] = CALL;
        words[WHAT + 1] = self.packed();
        words
    }

    fn packed(self) -> u64 {
        (self.class as u64) << 32 | u64::from(self.number)
    }

    /// From the word after [`CALL`].
    fn unpack(owner: Owner, packed: u64) -> Self {
        Self {
            owner,
            class: Class::from_number(packed >> 32).unwrap_or(Class::Read),
            number: packed as u32,
        }
    }
}

/// The position of [`CALL`], if the event is a system call.
const WHAT: usize = 5;

/// The kinds of events.
pub(super) enum What {
    Call(Call),
    Request(Steps),
}

impl What {
    /// From the words of an event.
    pub(super) fn of(words: [u64; STEPS]) -> Self {
        if words[WHAT] != CALL {
            return What::Request(Steps::from_words(words));
        }
        let owner = Owner::from_words([words[0], words[1], words[2]]);
        What::Call(Call::unpack(owner, words[WHAT + 1]))
    }

    pub(super) fn owner(&self) -> Owner {
        match self {
            What::Call(call) => call.owner,
            What::Request(steps) => steps.owner,
        }
    }

    /// The details of an alert about it, at `now`.
    pub(super) fn details(&self, now: u64) -> Details {
        match self {
            What::Request(steps) => steps.details(now),
            What::Call(call) => {
                let mut words = [0; DETAIL];
                words[0] = CALL;
                words[1] = call.packed();
                Details {
                    owner: call.owner,
                    words,
                }
            }
        }
    }
}

/// As `pending` shows it, except the owner.
impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::Call(call) => {
                f.write_fmt(fmt!("class={} call={}", call.class.name(), call.number))
            }
            What::Request(steps) => f.write_fmt(fmt!(
                "class={} {}",
                class_name(steps.flags),
                steps.operation()
            )),
        }
    }
}

fn class_name(flags: u32) -> &'static str {
    Transfer::of(flags).map_or("?", |transfer| class_of(transfer).name())
}

/// Our fields of an alert.
pub(super) struct Detail<'a>(pub(super) &'a [u64; DETAIL]);

impl Detail<'_> {
    /// The words of an alert that it uses.
    pub(super) const WORDS: usize = steps::Detail::WORDS;
}

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0;
        if words[0] == CALL {
            let call = Call::unpack(Owner::default(), words[1]);
            return What::Call(call).fmt(f);
        }
        // The flags are in the lower half, as in an event.
        let class = class_name(words[0] as u32);
        let request = steps::Detail::from_words(words);
        f.write_fmt(fmt!("class={class} {request}"))
    }
}
