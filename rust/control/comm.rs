// SPDX-License-Identifier: GPL-2.0

//! The short name of a command or network device as the value of a parameter: its bytes, in one
//! number.

use super::{fault, Fault, Number};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// Maximum length of a name in bytes, without its NUL.
const COMM_MAX: usize = 15;

/// The errors for the names of commands and of network devices.
pub(super) const COMMAND: &str =
    "expected a command of 1 to 15 bytes, special ones written as \\xHH, or all";
pub(super) const DEVICE: &str =
    "expected a network device of 1 to 15 bytes, special ones written as \\xHH, or all";

/// The error for a pattern or a list, which would match no name.
const ONE_NAME: &str =
    "expected one whole name, no pattern or list; in a name, write * as \\x2a, ? as \\x3f, a comma as \\x2c";

/// Parses the name of a command or a network device: both have the same maximum length.
pub(super) fn parse<'a>(
    text: &'a [u8],
    expected: &'static str,
) -> core::result::Result<Number, Fault<'a>> {
    if text == b"all" {
        return Ok(0);
    }
    let mut name: Number = 0;
    let (mut rest, mut len) = (text, 0);
    while let [first, tail @ ..] = rest {
        let byte;
        (byte, rest) = match (first, tail) {
            (b'\\', [b'x', high, low, tail @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, tail),
                _ => return Err(fault(EINVAL, expected, text)),
            },
            (b'\\', _) => return Err(fault(EINVAL, expected, text)),
            (b'*' | b'?' | b',', _) => return Err(fault(EINVAL, ONE_NAME, text)),
            _ => (*first, tail),
        };
        if byte == 0 || len == COMM_MAX {
            return Err(fault(EINVAL, expected, text));
        }
        name |= Number::from(byte) << (8 * len);
        len += 1;
    }
    if len == 0 {
        return Err(fault(EINVAL, expected, text));
    }
    Ok(name)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

/// Writes a name as [`parse`] reads it.
pub(super) fn write(f: &mut fmt::Formatter<'_>, name: Number) -> fmt::Result {
    // A command or a network device whose name really is `all`.
    if name == Number::from(u32::from_le_bytes(*b"all\0")) {
        return f.write_str("\\x61ll");
    }
    let bytes = name.to_le_bytes();
    let mut bytes = bytes.iter().take_while(|&&byte| byte != 0);
    bytes.try_for_each(|&byte| match byte {
        b'\\' | b'*' | b'?' | b',' | 0..=b' ' | 0x7f.. => f.write_fmt(fmt!("\\x{byte:02x}")),
        _ => f.write_char(byte as char),
    })
}
