// SPDX-License-Identifier: GPL-2.0

//! System calls by number and name.
//!
//! A number belongs to one of several tables: the kind of program decides which. A name may be in
//! several tables. syscalls.awk generates our tables from the kernel's headers:
//!
//! ```text
//!   Call: ABI, number ----> code: one for each name ----> name
//! ```
//!
//! C header: [`include/uapi/asm-generic/unistd.h`](srctree/include/uapi/asm-generic/unistd.h)
//!
//! # Contexts
//!
//! Any.

use crate::{sys::bindings as helpers, text::is_equal};
use kernel::{fmt, prelude::*};

/// The table that a number belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Abi {
    /// The kernel's own.
    #[default]
    Native = 0,
    /// Calls of 32-bit programs.
    Compat = 1,
    /// Calls of 64-bit programs with 32-bit pointers, on x86 only.
    X32 = 2,
}

/// The values of a parameter that selects an ABI: `all`, then the ABIs of this architecture in the
/// order of their numbers.
pub(crate) const ABIS: &[&str] = if cfg!(target_arch = "x86_64") {
    &["all", "native", "compat", "x32"]
} else {
    &["all", "native", "compat"]
};

impl Abi {
    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => Abi::Compat,
            2 => Abi::X32,
            _ => Abi::Native,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Abi::Native => "native",
            Abi::Compat => "compat",
            Abi::X32 => "x32",
        }
    }
}

/// A system call, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Call {
    pub(crate) abi: Abi,
    /// The number passed by the program; perhaps no call has it.
    pub(crate) number: i32,
}

/// The names of all calls, each with its [`Call::code`].
pub(crate) static CALLS: [(&str, u16); helpers::LT_SYSCALLS.len()] = helpers::LT_SYSCALLS;

/// A code that no name has.
pub(crate) const NO_CODE: u16 = 1023;

/// The bit that is set in all x32 numbers.
const X32_BIT: i32 = 0x4000_0000;

impl Call {
    /// Returns the call with this number. `is_compat` is whether the kernel treats the call as
    /// compat, which includes x32.
    #[inline(always)]
    pub(crate) fn new(number: i64, is_compat: bool) -> Self {
        // The kernel itself uses only 32 bits of the number.
        let number = number as i32;
        let abi = match is_compat {
            false => Abi::Native,
            true if cfg!(target_arch = "x86_64") && number > 0 && number & X32_BIT != 0 => Abi::X32,
            true => Abi::Compat,
        };
        Self { abi, number }
    }

    /// Returns a number below [`NO_CODE`], equal for all calls of one name, whatever the ABI. If
    /// the call has no name, returns [`NO_CODE`], or another code that no name has. The x32 calls
    /// from 512 on have no name here.
    #[inline(always)]
    pub(crate) fn code(self) -> u16 {
        match self.abi {
            // Numbers without a name are in no list, so it does no harm that they have a code.
            Abi::Native if (0..512).contains(&self.number) => self.number as u16,
            Abi::X32 if (X32_BIT..X32_BIT + 512).contains(&self.number) => {
                (self.number - X32_BIT) as u16
            }
            Abi::Compat => usize::try_from(self.number)
                .ok()
                .and_then(|number| helpers::LT_COMPAT_SYSCALLS.get(number))
                .map_or(NO_CODE, |code| *code),
            _ => NO_CODE,
        }
    }

    /// Returns the name of the call, if it has one.
    pub(crate) fn name(self) -> Option<&'static str> {
        let code = self.code();
        let mut calls = CALLS.iter();
        calls.find(|call| call.1 == code).map(|(name, _)| *name)
    }
}

/// Name, number and ABI, as fields of a line.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, abi) = (self.name().unwrap_or("?"), self.abi.name());
        f.write_fmt(fmt!("call={name} number={} abi={abi}", self.number))
    }
}

/// Returns the code of a name, [`NO_CODE`] if there is none; for use at compile time.
pub(crate) const fn code_of(name: &str) -> u16 {
    let mut at = 0;
    while at < helpers::LT_SYSCALLS.len() {
        let (other, code) = helpers::LT_SYSCALLS[at];
        if is_equal(name, other) {
            return code;
        }
        at += 1;
    }
    NO_CODE
}
