// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Durations: `10ms`, `500us`, `2s`, or a bare number of nanoseconds.

use std::fmt;
use std::time::Duration;

use crate::ParseError;

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a duration; a bare number is nanoseconds.
///
/// # Errors
/// Names a word that is not a whole number with a known unit, or does not fit in 64 bits.
pub fn parse_duration(word: &str) -> Result<Nanos, ParseError> {
    let bad = || ParseError::new(word, "a duration such as 10ms, 500us, 2s or 1000 (ns)");
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at(digits);
    let scale = if unit.is_empty() {
        1
    } else {
        UNITS.iter().find(|(u, _)| *u == unit).ok_or_else(bad)?.1
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(scale).map(Nanos).ok_or_else(bad)
}

/// Nanoseconds, printed in the largest unit up to seconds that is not longer than the duration: `10.41ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Returns the duration as a whole number of the largest possible unit up to seconds, e.g.
    /// `10ms`, which [`parse_duration`] parses to the same duration.
    #[must_use]
    pub fn exact(self) -> String {
        let unit = UNITS[..4]
            .iter()
            .rev()
            .find(|(_, scale)| self.0.is_multiple_of(*scale));
        match unit {
            Some((unit, scale)) if self.0 != 0 => format!("{}{unit}", self.0 / scale),
            _ => self.0.to_string(),
        }
    }
}

impl From<Nanos> for Duration {
    fn from(n: Nanos) -> Self {
        Duration::from_nanos(n.0)
    }
}

impl std::str::FromStr for Nanos {
    type Err = ParseError;
    fn from_str(word: &str) -> Result<Self, ParseError> {
        parse_duration(word)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match UNITS[1..4].iter().rev().find(|(_, scale)| self.0 >= *scale) {
            None => format!("{}ns", self.0),
            Some((unit, scale)) => {
                let value = self.0 as f64 / *scale as f64;
                let decimals = match value {
                    v if v < 99.995 => 2,
                    v if v < 999.95 => 1,
                    _ => 0,
                };
                format!("{value:.decimals$}{unit}")
            }
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_documented_forms_are_read() {
        for (text, ns) in [
            ("10ms", 10_000_000),
            ("500us", 500_000),
            ("2s", 2_000_000_000),
            ("17", 17),
            ("17ns", 17),
            ("5m", 300_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(Nanos(ns)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for text in [
            "",
            "ms",
            "-1",
            "1.5ms",
            "10 ms",
            "10MS",
            "99999999999999999999",
            "18446744073709551615s",
        ] {
            let err = parse_duration(text).unwrap_err();
            assert_eq!(err.word, text);
        }
    }

    #[test]
    fn three_or_four_digits_are_shown() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_500, "1.50us"),
            (10_412_345, "10.41ms"),
            (104_123_450, "104.1ms"),
            (2_000_000_000, "2.00s"),
            (7_200_000_000_000, "7200s"),
        ] {
            assert_eq!(Nanos(ns).to_string(), text);
        }
        assert_eq!(format!("{:>8}", Nanos(999)), "   999ns");
    }

    proptest! {
        #[test]
        fn exact_text_reads_back(ns: u64) {
            prop_assert_eq!(parse_duration(&Nanos(ns).exact()), Ok(Nanos(ns)));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse_duration(&text);
        }
    }
}
