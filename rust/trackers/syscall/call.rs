// SPDX-License-Identifier: GPL-2.0

//! The data of an event of the `syscall` tracker, the fields of its alerts, and which calls wait.

use crate::{
    alert::record::{Owner, DETAIL},
    instance::Details,
    sys::{
        symbol::{Hashed, Limit},
        syscall::names::{code_of, Call, NO_CODE}, //
    },
};
use kernel::{fmt, prelude::*};

/// A system call that a task has made.
#[derive(Clone, Copy, Default)]
pub(super) struct SyscallEvent {
    pub(super) owner: Owner,
    pub(super) call: Call,
    /// The first three; those that a call does not take are arbitrary.
    pub(super) arguments: [u64; 3],
    /// The result, once it has returned.
    pub(super) ret: Option<i64>,
}

/// The words of a [`SyscallEvent`] that has not returned.
pub(super) const WORDS: usize = Owner::WORDS + 4;

/// The bit of the word of the call in an alert: it has returned.
const RETURNED: u64 = 1 << 48;

impl SyscallEvent {
    /// The words of an alert that it uses.
    pub(super) const DETAIL_WORDS: usize = 5;

    /// Packs it for an event.
    #[inline(always)]
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let [o0, o1, o2] = self.owner.to_words();
        let [a0, a1, a2] = self.arguments;
        [o0, o1, o2, self.call.to_bits(), a0, a1, a2]
    }

    /// The inverse of [`SyscallEvent::to_words`].
    pub(super) fn from_words([o0, o1, o2, call, a0, a1, a2]: &[u64; WORDS]) -> Self {
        Self {
            owner: Owner::from_words([*o0, *o1, *o2]),
            call: Call::from_bits(*call),
            arguments: [*a0, *a1, *a2],
            ret: None,
        }
    }

    /// The details of an alert.
    pub(super) fn details(&self) -> Details {
        let [a0, a1, a2] = self.arguments;
        let (returned, ret) = match self.ret {
            Some(ret) => (RETURNED, ret as u64),
            None => (0, 0),
        };
        let mut words = [0; DETAIL];
        words[..Self::DETAIL_WORDS].copy_from_slice(&[
            self.call.to_bits() | returned,
            a0,
            a1,
            a2,
            ret,
        ]);
        Details {
            owner: self.owner,
            words,
        }
    }

    /// The inverse of [`SyscallEvent::details`], without the owner.
    pub(super) fn from_detail(words: &[u64; DETAIL]) -> Self {
        let [call, a0, a1, a2, ret, ..] = *words;
        Self {
            owner: Owner::default(),
            call: Call::from_bits(call),
            arguments: [a0, a1, a2],
            ret: (call & RETURNED != 0).then_some(ret as i64),
        }
    }
}

/// The fields of an alert or of a pending event, for a reader that may see these numbers.
pub(super) struct Shown(pub(super) SyscallEvent, pub(super) Limit);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(syscall, limit) = self;
        f.write_fmt(fmt!("{}", syscall.call))?;
        for (nth, &argument) in syscall.arguments.iter().enumerate() {
            if limit.allows(argument) {
                f.write_fmt(fmt!(" arg{nth}={argument:#x}"))?;
            } else {
                f.write_fmt(fmt!(" arg{nth}={}", Hashed(argument)))?;
            }
        }
        match syscall.ret {
            // An error, or a number.
            Some(ret) if ret < 0 || limit.allows(ret as u64) => f.write_fmt(fmt!(" ret={ret}")),
            Some(ret) => f.write_fmt(fmt!(" ret={}", Hashed(ret as u64))),
            None => Ok(()),
        }
    }
}

/// The calls whose purpose is to wait, for as long as it takes.
const WAITING: [&str; 31] = [
    "accept",
    "accept4",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "futex",
    "futex_time64",
    "futex_wait",
    "futex_waitv",
    "io_getevents",
    "io_pgetevents",
    "io_pgetevents_time64",
    "io_uring_enter",
    "_newselect",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "ppoll_time64",
    "pselect6",
    "pselect6_time64",
    "restart_syscall",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "select",
    "wait4",
    "waitid",
    "waitpid",
];

/// The calls of `WAITING` as bits, by their codes.
static WAITING_BITS: [u64; (NO_CODE as usize + 1) / 64] = {
    let mut bits = [0; (NO_CODE as usize + 1) / 64];
    let mut at = 0;
    while at < WAITING.len() {
        let code = code_of(WAITING[at]);
        if code != NO_CODE {
            bits[code as usize / 64] |= 1u64 << (code % 64);
        }
        at += 1;
    }
    bits
};

/// Whether the purpose of a call is to wait, by its code.
#[inline(always)]
pub(super) fn waits(code: u16) -> bool {
    let bits = WAITING_BITS.get(usize::from(code >> 6)).copied();
    bits.unwrap_or(0) >> (code & 63) & 1 != 0
}
