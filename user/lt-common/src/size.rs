// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Numbers of bytes with a unit.

/// A number of bytes: `512K`, `1M`, `2G`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u64);

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "expected a size such as 512K, 1M or 2G".to_string();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = match unit.to_ascii_uppercase().as_str() {
            "" => 0,
            "K" | "KIB" => 10,
            "M" | "MIB" => 20,
            "G" | "GIB" => 30,
            _ => return Err(bad()),
        };
        let number: u64 = number.parse().map_err(|_| bad())?;
        number.checked_mul(1 << shift).map(Size).ok_or_else(bad)
    }
}
