// SPDX-License-Identifier: GPL-2.0

//! Values that name objects of the kernel: disks, cgroups, functions, tracepoints.
//!
//! Only the kernel can resolve these names; the parser of a line is passed a [`Lookup`] for this.

use super::{
    fault,
    number::{in_range, parse_number},
    Fault, ALL, ALL_DEVICES, MINOR_BITS,
};
use kernel::prelude::*;

/// A name that only the kernel can resolve.
#[derive(Clone, Copy)]
pub(crate) enum LookupTarget<'a> {
    /// A disk, resolved to its number in the `MKDEV` encoding. `ENOTBLK` for a partition,
    /// `ENOTSUPP` for a disk whose driver uses no requests. A number is only checked; the disk need
    /// not exist yet.
    Disk(Disk<'a>),
    /// A cgroup by its path, resolved to its number. `ENOENT` if there is none, `ENOTSUPP` if this
    /// kernel has no cgroups.
    Cgroup(&'a [u8]),
    /// A function by its name, checked for whether it can be followed; the number has no meaning.
    /// `ENOENT` if there is none, `EBUSY` if its module is being loaded or unloaded, `EPERM` for a
    /// function of ours that may run in a probe, `ENOTSUPP` if this kernel cannot follow functions,
    /// any other error if it cannot be traced.
    Function(&'a [u8]),
    /// A tracepoint by its name, checked for whether it can be followed; the number has no meaning.
    /// `ENOENT` if there is none, `EBUSY` if its module is being loaded or unloaded, `EEXIST` if
    /// several modules have a tracepoint of this name, `EPERM` for a tracepoint of ours.
    Tracepoint(&'a [u8]),
}

/// The notation of a disk.
#[derive(Clone, Copy)]
pub(crate) enum Disk<'a> {
    /// Its name under /dev.
    Name(&'a [u8]),
    /// In the kernel's `MKDEV` encoding.
    Number(u32),
}

/// Resolves a name.
pub(crate) type Lookup<'d> = &'d dyn Fn(LookupTarget<'_>) -> Result<u64>;

pub(super) fn parse_disk<'a>(
    text: &'a [u8],
    lookup: Lookup<'_>,
) -> core::result::Result<u64, Fault<'a>> {
    const EXPECTED: &str = "expected a whole disk: its name under /dev, MAJOR:MINOR, or all";
    const NO_REQUESTS: &str =
        "expected a disk with requests (md, zram, brd and most of device mapper have none)";
    if text == b"all" {
        return Ok(ALL_DEVICES);
    }
    if let Some(at) = text.iter().position(|&b| b == b':') {
        const RANGE: &str = "expected MAJOR from 0 to 4095 and MINOR from 0 to 1048575";
        const _: () = assert!(MINOR_BITS == 20);
        let major = parse_number(&text[..at], text, EXPECTED)?;
        let minor = parse_number(&text[at + 1..], text, EXPECTED)?;
        in_range(major, 0, (1 << (32 - MINOR_BITS)) - 1, text, RANGE)?;
        in_range(minor, 0, (1 << MINOR_BITS) - 1, text, RANGE)?;
        let number = major << MINOR_BITS | minor;
        return match lookup(LookupTarget::Disk(Disk::Number(number as u32))) {
            Err(error) if error == ENOTBLK => {
                let expected = "expected a whole disk, not a partition";
                Err(fault(EINVAL, expected, text))
            }
            Err(error) if error == ENOTSUPP => Err(fault(EINVAL, NO_REQUESTS, text)),
            _ => Ok(number),
        };
    }
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    if text.is_empty() || text.len() > 31 || text[0] == b'.' || !text.iter().all(plain) {
        return Err(fault(EINVAL, EXPECTED, text));
    }
    match lookup(LookupTarget::Disk(Disk::Name(text))) {
        Ok(dev) => Ok(dev),
        Err(error) if error == ENOENT || error == ENXIO || error == ENODEV => {
            Err(fault(ENOENT, "no such disk under /dev", text))
        }
        Err(error) if error == EINVAL || error == ENOTBLK => Err(fault(EINVAL, EXPECTED, text)),
        Err(error) if error == ENOTSUPP => Err(fault(EINVAL, NO_REQUESTS, text)),
        Err(error) => Err(fault(error, "this disk cannot be looked up", text)),
    }
}

pub(super) fn parse_cgroup<'a>(
    text: &'a [u8],
    lookup: Lookup<'_>,
) -> core::result::Result<u64, Fault<'a>> {
    const EXPECTED: &str = "expected a cgroup: its path from the first slash, its number, or all";
    const WITHOUT: &str = "this kernel is built without CONFIG_CGROUPS, which this filter needs";
    if text == b"all" {
        return Ok(ALL);
    }
    if text.first() != Some(&b'/') {
        let number = parse_number(text, text, EXPECTED)?;
        let number = in_range(number, 1, ALL - 1, text, EXPECTED)?;
        // Without cgroups, no task would ever match.
        return match lookup(LookupTarget::Cgroup(b"/")) {
            Err(error) if error == ENOTSUPP => Err(fault(EINVAL, WITHOUT, text)),
            _ => Ok(number),
        };
    }
    match lookup(LookupTarget::Cgroup(text)) {
        Ok(number) => Ok(number),
        Err(error) if error == ENOTSUPP => Err(fault(EINVAL, WITHOUT, text)),
        Err(error) if error == ENOENT => Err(fault(ENOENT, "no such cgroup of version 2", text)),
        Err(error) => Err(fault(error, EXPECTED, text)),
    }
}

/// Maximum length of the name of a function or a tracepoint.
const SYMBOL_MAX: usize = 127;

/// Whether a text can be the name of a function or a tracepoint.
fn is_symbol(text: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_.$".contains(b);
    !text.is_empty() && text.len() <= SYMBOL_MAX && text.iter().all(plain)
}

pub(super) fn check_function<'a>(
    name: &'a [u8],
    text: &'a [u8],
    lookup: Lookup<'_>,
) -> core::result::Result<(), Fault<'a>> {
    if !is_symbol(name) {
        return Err(fault(EINVAL, "expected the name of a function", text));
    }
    let (error, why) = match lookup(LookupTarget::Function(name)) {
        Ok(_) => return Ok(()),
        Err(error) if error == ENOENT => (error, "no such function"),
        Err(error) if error == EBUSY => (
            error,
            "the module of this function is being loaded or unloaded (try again)",
        ),
        Err(error) if error == EPERM => (
            EINVAL,
            "a function of latency_tracker that a probe may call cannot be traced",
        ),
        Err(error) if error == ENOTSUPP => (
            EINVAL,
            "this kernel is built without CONFIG_FPROBE, which follows functions",
        ),
        Err(_) => (EINVAL, "this function cannot be traced"),
    };
    Err(fault(error, why, text))
}

/// The prefixes of the name of a point.
const POINTS: [(&str, Point); 3] = [
    ("tracepoint:", Point::Tracepoint),
    ("function:", Point::Entry),
    ("return:", Point::Return),
];

/// The kinds of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Point {
    Tracepoint,
    Entry,
    Return,
}

impl Point {
    /// Splits a point into its kind and its name.
    pub(crate) fn split(text: &[u8]) -> Option<(Self, &[u8])> {
        let found = POINTS.iter().find_map(|(start, point)| {
            let name = text.strip_prefix(start.as_bytes())?;
            Some((*point, name))
        });
        found.filter(|(_, name)| is_symbol(name))
    }
}

fn check_tracepoint<'a>(
    name: &'a [u8],
    text: &'a [u8],
    lookup: Lookup<'_>,
) -> core::result::Result<(), Fault<'a>> {
    let (error, why) = match lookup(LookupTarget::Tracepoint(name)) {
        Ok(_) => return Ok(()),
        Err(error) if error == ENOENT => (
            error,
            "no such tracepoint in the kernel or a loaded module (load its module first)",
        ),
        Err(error) if error == EBUSY => (
            error,
            "the module of this tracepoint is being loaded or unloaded (try again)",
        ),
        Err(error) if error == EEXIST => (
            EINVAL,
            "several loaded modules have a tracepoint of this name (unload the others)",
        ),
        Err(error) if error == EPERM => (EINVAL, "cannot trace latency_tracker's own tracepoints"),
        Err(error) => (error, "this tracepoint cannot be traced"),
    };
    Err(fault(error, why, text))
}

pub(super) fn check_point<'a>(
    text: &'a [u8],
    lookup: Lookup<'_>,
) -> core::result::Result<(), Fault<'a>> {
    const EXPECTED: &str = "expected tracepoint:NAME, function:NAME or return:NAME";
    match Point::split(text).ok_or_else(|| fault(EINVAL, EXPECTED, text))? {
        (Point::Tracepoint, name) => check_tracepoint(name, text, lookup),
        (Point::Entry | Point::Return, name) => check_function(name, text, lookup),
    }
}
