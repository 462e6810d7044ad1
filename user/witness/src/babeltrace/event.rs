// SPDX-License-Identifier: GPL-2.0 OR MIT

//! An event of a trace: time, CPU, name, and fields by name.

use std::fmt;

/// The value of an integer field; LTTng's fields are signed or unsigned, of up to 64 bits.
pub(crate) type Number = i128;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// `CLOCK_MONOTONIC`, ns.
    pub(crate) time: u64,
    /// The processor that recorded it.
    pub(crate) cpu: u32,
    /// `sched_switch`, `block_rq_issue`, ...
    pub(crate) name: String,
    /// Fields of all scopes, in the order of the text; strings are unescaped.
    pub(crate) fields: Vec<(String, String)>,
}

impl Event {
    /// The field `key` as text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str())
    }

    /// The field `key` as a number, decimal or hexadecimal.
    pub(crate) fn number(&self, key: &str) -> Option<Number> {
        let text = self.text(key)?;
        match text.strip_prefix("0x") {
            Some(hex) => Number::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// The field `key` as a number that is not negative.
    pub(crate) fn unsigned(&self, key: &str) -> Option<u64> {
        u64::try_from(self.number(key)?).ok()
    }

    /// The block device of the event.
    pub(crate) fn dev(&self) -> Option<Dev> {
        let number = u32::try_from(self.number("dev")?).ok()?;
        Some(Dev::from_kernel(number))
    }
}

/// A block device. LTTng records the kernel's own `dev_t`, major << 20 | minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Dev {
    /// The driver.
    pub(crate) major: u32,
    /// The device.
    pub(crate) minor: u32,
}

impl Dev {
    /// Splits the kernel's number.
    pub(crate) fn from_kernel(dev: u32) -> Self {
        Self {
            major: dev >> 20,
            minor: dev & ((1 << 20) - 1),
        }
    }

    /// Reads `8:0` (or ftrace's `8,0`).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once([':', ','])?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

impl fmt::Display for Dev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_split_as_the_kernel_does() {
        let sda = Dev { major: 8, minor: 0 };
        assert_eq!(Dev::from_kernel(8_388_608), sda);
        assert_eq!(Dev::from_kernel(264_241_152).to_string(), "252:0");
        assert_eq!(Dev::parse("8:0"), Some(sda));
        assert_eq!(Dev::parse("8,0"), Some(sda));
        assert_eq!(Dev::parse("sda"), None);
    }
}
