// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The well-known histogram of bcc, as the C function `print_log2_hist` of its libbpf-tools prints it.
//!
//! ```text
//!      usecs               : count    distribution
//!          0 -> 1          : 0        |                                        |
//!          2 -> 3          : 12       |****************************************|
//! ```
//!
//! The kernel's buckets are finer (8 per power of two). The middle of a bucket determines its row
//! in the chosen unit. Slot n > 1 holds 2^(n-1) .. 2^n - 1, slot 1 holds 0 and 1, as in bcc.

use std::fmt;

use crate::Histogram;

const STARS: usize = 40;

/// The unit of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nsecs,
    /// Microseconds.
    Usecs,
    /// Milliseconds.
    Msecs,
}

impl Unit {
    /// Returns the name of the unit, as bcc prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Nsecs => "nsecs",
            Unit::Usecs => "usecs",
            Unit::Msecs => "msecs",
        }
    }

    /// Returns the nanoseconds in one unit.
    #[must_use]
    pub fn ns(self) -> u64 {
        match self {
            Unit::Nsecs => 1,
            Unit::Usecs => 1_000,
            Unit::Msecs => 1_000_000,
        }
    }
}

/// A count for each power of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log2Hist {
    unit: Unit,
    /// `slots[n]`: delays of slot n; slot 0 is never used.
    slots: Vec<u64>,
}

impl Log2Hist {
    /// Merges the fine buckets of `histogram` into rows of `unit`.
    #[must_use]
    pub fn merge(histogram: &Histogram, unit: Unit) -> Self {
        let mut slots = vec![0; 65];
        for bucket in &histogram.buckets {
            // The last bucket has no end.
            let high = if bucket.high == u64::MAX {
                bucket.low
            } else {
                bucket.high
            };
            let value = (bucket.low + (high - bucket.low) / 2) / unit.ns();
            let slot = (u64::BITS - value.leading_zeros()).max(1) as usize;
            slots[slot] += bucket.count;
        }
        let used = slots
            .iter()
            .rposition(|&n| n > 0)
            .map_or(0, |last| last + 1);
        slots.truncate(used);
        Self { unit, slots }
    }

    /// Returns the rows, the smallest first: low, high (inclusive), count.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let rows = self.slots.iter().enumerate().skip(1);
        rows.map(|(n, &count)| {
            let low = if n == 1 { 0 } else { 1 << (n - 1) };
            (low, u64::MAX >> (64 - n), count)
        })
    }
}

impl fmt::Display for Log2Hist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(most) = self.slots.iter().copied().max().filter(|&n| n > 0) else {
            return Ok(());
        };
        // From 2^33 on, the columns of libbpf-tools are wider, with fewer stars (in bcc's Python tools, from 2^32 on).
        let wide = self.slots.len() > 34;
        let (indent, label, number, stars) = if wide {
            (15, 29, 20, STARS / 2)
        } else {
            (5, 19, 10, STARS)
        };
        let name = self.unit.name();
        writeln!(f, "{:indent$}{name:<label$} : count    distribution", "")?;
        for (low, high, count) in self.rows() {
            let filled = u128::from(count) * stars as u128 / u128::from(most);
            let bar = "*".repeat(filled as usize);
            writeln!(
                f,
                "{low:>number$} -> {high:<number$} : {count:<8} |{bar:<stars$}|"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, unit: Unit) -> Log2Hist {
        Log2Hist::merge(&Histogram::parse(text).unwrap(), unit)
    }

    #[test]
    fn the_text_is_as_bcc_prints_it() {
        let hist = merged(
            "0 128 1\n1024 1152 1\n4096 4608 10\n4608 5120 10\n8192 9216 5\n",
            Unit::Usecs,
        );
        let expected = "     \
usecs               : count    distribution
         0 -> 1          : 2        |****                                    |
         2 -> 3          : 0        |                                        |
         4 -> 7          : 20       |****************************************|
         8 -> 15         : 5        |**********                              |
";
        assert_eq!(hist.to_string(), expected);
        assert!(hist.to_string().lines().all(|line| line.len() < 80));
    }

    #[test]
    fn large_values_take_the_wide_form() {
        let hist = merged("8589934592 9663676416 3\n", Unit::Nsecs);
        let text = hist.to_string();
        let last = text.lines().last().unwrap();
        assert!(
            text.starts_with(
                "               nsecs                         : count    distribution"
            )
        );
        assert_eq!(
            last,
            "          8589934592 -> 17179869183          : 3        |********************|"
        );
    }

    #[test]
    fn no_delays_print_nothing_and_the_largest_value_fits() {
        assert_eq!(merged("", Unit::Msecs).to_string(), "");
        let hist = merged("17293822569102704640 18446744073709551615 1", Unit::Nsecs);
        assert_eq!(hist.rows().last(), Some((1 << 63, u64::MAX, 1)));
    }
}
