// SPDX-License-Identifier: GPL-2.0

//! Fields that only the kernel can print, such as functions and states.

use super::{fields, How, InQuotes};
use crate::sys::{
    sched::{policy_name, State},
    symbol::{Function, Hashed, Limit, Symbol},
    task::Context,
};
use kernel::fmt;

impl How {
    /// Returns the largest register content that the reader may see.
    pub(crate) fn limit(&self) -> Limit {
        Limit::ADDRESS.unless(self.is_trusted)
    }

    /// Returns the largest number that the reader may see, for numbers that may be only a part of a
    /// register.
    pub(crate) fn limit_of_part(&self) -> Limit {
        Limit::PART.unless(self.is_trusted)
    }
}

/// The address of a kernel object, shown as a pseudonym.
#[derive(Clone, Copy, Default)]
pub(crate) struct Address(pub(crate) u64);

/// The address of a function, shown by its name.
#[derive(Clone, Copy, Default)]
pub(crate) struct Func(pub(crate) u64);

/// An address in a function, shown as the function's name and the offset in it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Location(pub(crate) u64);

/// `SCHED_...`
#[derive(Clone, Copy, Default)]
pub(crate) struct Policy(pub(crate) u16);

fields! {
    Context, 2, |it| it as u64, |bits| Context::from_number(bits as u32 & 3), it.name(),
        "u32" "%s" "3 & " "__print_symbolic(X, LT_CONTEXTS)";
    State, 64, |it| it.to_word(), |bits| State::from_word(bits), it,
        "__field(bool, preempted) __field(u32, NAME)"
        "__entry->preempted = (WORDS)[0] >> 32; __entry->NAME = (WORDS)[0];"
        "preempted=%d NAME=%#x" "__entry->preempted, __entry->NAME"
        "ctf_integer(u8, preempted, WORD >> 32) ctf_integer_hex(u32, NAME, WORD)"
        "preempted: bool; bit 32 of WORD" "NAME: u32; bits 0 to 31 of WORD";
    Policy, u16::BITS, |it| it.0.into(), |bits| Policy(bits as u16), policy_name(it.0.into()),
        "u32" "%u" "(u16)";
    Address, u64::BITS, |it| it.0, |bits| Address(bits), Hashed(it.0), "void *" "%p" "(void *)";
    Func, u64::BITS, |it| it.0, |bits| Func(bits), InQuotes(Function(it.0)),
        "void *" "%ps" "(void *)";
    Location, u64::BITS, |it| it.0, |bits| Location(bits), it, "void *" "%pS" "(void *)";
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        InQuotes(Symbol(self.0)).fmt(f)
    }
}
