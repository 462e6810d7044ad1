// SPDX-License-Identifier: GPL-2.0

//! Prints kernel addresses and numbers as text: names of functions, and pseudonyms of pointers.
//!
//! A kernel address is never printed as a number. A number that may be an address of user space, or
//! a part of one, is shown to readers with CAP_PERFMON or CAP_SYS_ADMIN, who could read it
//! elsewhere; other readers get a pseudonym for it, as for a kernel address.
//!
//! C header: [`include/linux/kallsyms.h`](srctree/include/linux/kallsyms.h)
//!
//! # Contexts
//!
//! Only where text is generated, never in a probe.

use crate::{sys::bindings as helpers, text::Escaped};
use kernel::{
    bindings,
    ffi::c_char,
    fmt::{self, Write},
    prelude::*, //
};

/// Runs `write` on a buffer of `N` bytes, and passes the text to `see`; `None` if it is empty.
pub(super) fn written<const N: usize, R>(
    write: impl FnOnce(*mut c_char, usize) -> u32,
    see: impl FnOnce(Option<&str>) -> R,
) -> R {
    let mut text = [0u8; N];
    let len = write(text.as_mut_ptr().cast(), N) as usize;
    let text = text
        .get(..len)
        .and_then(|text| core::str::from_utf8(text).ok());
    see(text.filter(|text| !text.is_empty()))
}

/// Buffer size in bytes, larger than any name of a function with its module.
const SYMBOL_MAX: usize = helpers::LT_SYMBOL_MAX as usize;

/// A return address, as the name of the function and the offset in it: `f+0x12/0x34`, and the name
/// of its module, if it is in one. `?` for an address that is in no function, or no longer in one.
pub(crate) struct Symbol(pub(crate) u64);

impl Symbol {
    /// Whether its name starts with `start`.
    pub(crate) fn starts_with(&self, start: &str) -> bool {
        self.look_up(|name| name.is_some_and(|name| name.starts_with(start)))
    }

    fn look_up<R>(&self, see: impl FnOnce(Option<&str>) -> R) -> R {
        // SAFETY: Writes at most `size` bytes, terminated; any address is valid.
        let write = |out, size| unsafe { helpers::lt_symbol(out, size, self.0) };
        written::<SYMBOL_MAX, _>(write, see)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look_up(|name| f.write_str(name.unwrap_or("?")))
    }
}

/// The address of a function, printed as its name and the name of its module, if any; `?` if there
/// is no function at this address, or no longer one.
pub(crate) struct Function(pub(crate) u64);

impl Function {
    fn look_up<R>(&self, see: impl FnOnce(Option<&str>) -> R) -> R {
        // SAFETY: As in `Symbol::look_up`.
        let write = |out, size| unsafe { helpers::lt_function(out, size, self.0) };
        written::<SYMBOL_MAX, _>(write, see)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look_up(|name| f.write_str(name.unwrap_or("?")))
    }
}

/// The address of a function, printed as its name without its module; `?` as in [`Function`].
pub(crate) struct FunctionName(pub(crate) u64);

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Function(self.0).look_up(|name| {
            let name = name.and_then(|name| name.split(' ').next());
            f.write_str(name.unwrap_or("?"))
        })
    }
}

/// The address of a kernel object, printed as by `%p`: 16 digits that stand for it. The events of
/// tracefs show the same digits.
pub(crate) struct Hashed(pub(crate) u64);

impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: As in `Symbol::look_up`.
        let write = |out, size| unsafe { helpers::lt_hashed(out, size, self.0) };
        written::<24, _>(write, |text| f.write_str(text.unwrap_or("?")))
    }
}

/// The content of a register, of any type: a number; a possible error code, below 0; or a possible
/// address, printed as by `%p`: 16 digits that stand for it.
pub(crate) struct Raw {
    register: u64,
    /// The largest number that is shown unchanged.
    most: u64,
}

impl Raw {
    /// Wraps a register for a reader that may only see numbers up to `most`: a larger one may be an
    /// address.
    pub(crate) fn new(register: u64, most: Limit) -> Self {
        let most = most.0;
        Self { register, most }
    }
}

/// The largest number that a reader may see: a larger one may be an address, or part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit(u64);

impl Limit {
    /// Nothing is mapped up to this number (vm.mmap_min_addr, as set by distributions), so no
    /// number up to it is an address of user space.
    pub(crate) const ADDRESS: Self = Self(0xffff);
    /// The largest offset in a page: an offset does not depend on the address of the page.
    pub(crate) const PART: Self = Self(0xfff);

    /// Returns no limit for a trusted reader, and this one for others.
    pub(crate) fn unless(self, is_trusted: bool) -> Self {
        if is_trusted {
            Self(u64::MAX)
        } else {
            self
        }
    }

    /// Whether a number may be seen.
    pub(crate) fn allows(self, number: u64) -> bool {
        number <= self.0
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ERRNO_MAX: i64 = bindings::MAX_ERRNO as i64;
        let is_error = |number: i64| (-ERRNO_MAX..0).contains(&number);
        let long = self.register as i64;
        // The upper half of the register of an `int` is undefined, and usually 0.
        let int = i64::from(self.register as i32);
        if is_error(long) {
            f.write_fmt(fmt!("{long}"))
        } else if self.register >> 32 == 0 && is_error(int) {
            f.write_fmt(fmt!("{int}"))
        } else if long >= 0 && self.register <= self.most {
            f.write_fmt(fmt!("{long}"))
        } else {
            Hashed(self.register).fmt(f)
        }
    }
}

/// A stack as a field of a line, with a space before it; nothing if it is empty. Return addresses,
/// innermost first.
pub(crate) struct StackField<'a>(pub(crate) &'a [u64]);

impl StackField<'_> {
    /// Returns the addresses that are printed. Leaves out the function by which a tracepoint calls
    /// several probes, which says nothing about the task that hit the tracepoint.
    pub(crate) fn entries(&self) -> &[u64] {
        let is_ours = |&&address: &&u64| Symbol(address).starts_with("__traceiter_");
        let ours = self.0.iter().take(1).filter(is_ours).count();
        self.0.get(ours..).unwrap_or_default()
    }
}

impl fmt::Display for StackField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_stack("stack", self.entries().iter().copied(), f)
    }
}

/// Prints a stack as a field of a line, with a space before it; nothing if it is empty.
pub(crate) fn show_stack(
    name: &str,
    entries: impl Iterator<Item = u64>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    f.write_fmt(fmt!(" {name}=\""))?;
    for (i, address) in entries.enumerate() {
        let comma = if i == 0 { "" } else { "," };
        Escaped(f).write_fmt(fmt!("{comma}{}", Symbol(address)))?;
    }
    f.write_str("\"")
}
