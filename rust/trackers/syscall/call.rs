// SPDX-License-Identifier: GPL-2.0

//! How the `syscall` tracker prints a call, and which calls wait by design.

use super::Detail;
use crate::{
    record::{say, How},
    sys::{
        symbol::Hashed,
        syscall::names::{code_of, Abi, Call, NO_CODE}, //
    },
};
use kernel::{fmt, prelude::*};

pub(super) fn show_call(it: &Detail, _: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (abi, number) = (Abi::from_number(it.abi), it.number);
    f.write_fmt(fmt!(" {}", Call { abi, number }))
}

pub(super) fn show_arguments(it: &Detail, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, &argument) in ["arg0", "arg1", "arg2"].iter().zip(&it.arg) {
        if how.limit().allows(argument) {
            f.write_fmt(fmt!(" {name}={argument:#x}"))?;
        } else {
            say(name, Hashed(argument), f)?;
        }
    }
    Ok(())
}

pub(super) fn show_result(it: &Detail, how: &How, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match it.ret {
        _ if !it.returned => Ok(()),
        // An error, or a number that the reader may see.
        ret if ret < 0 || how.limit().allows(ret as u64) => say("ret", ret, f),
        ret => say("ret", Hashed(ret as u64), f),
    }
}

/// The calls that are meant to wait, for as long as necessary.
const WAITING: [&str; 32] = [
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
    "sigsuspend",
    "wait4",
    "waitid",
    "waitpid",
];

/// The calls of `WAITING`, a bit for each code.
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

/// Whether a call is meant to wait, by its code.
#[inline(always)]
pub(super) fn waits(code: u16) -> bool {
    let bits = WAITING_BITS.get(usize::from(code >> 6)).copied();
    bits.unwrap_or(0) >> (code & 63) & 1 != 0
}
