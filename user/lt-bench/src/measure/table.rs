// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Histograms as a table, for gnuplot and spreadsheets, with a column for each. It is the format of
//! `rtla ... hist`, except that each row also has the end of its bin. [`super::read()`] reads it
//! back.
//!
//! ```text
//! # latency-tracker bench
//! # Time unit is nanoseconds (ns)
//! Index  End  CPU-1
//! 20     22   99711
//! over:       0
//! count:      99711
//! min:        20
//! avg:        20
//! max:        21
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Curve;

/// Returns the table.
#[must_use]
pub fn table(curves: &[Curve]) -> String {
    let bins = curves.iter().flat_map(|curve| &curve.bins.buckets);
    let rows: BTreeSet<(u64, u64)> = bins.map(|bin| (bin.low, bin.high)).collect();
    let mut text =
        String::from("# latency-tracker bench\n# Time unit is nanoseconds (ns)\nIndex\tEnd");
    for curve in curves {
        let name: String = curve
            .name
            .chars()
            .map(|c| {
                if c.is_whitespace() || c.is_control() {
                    '-'
                } else {
                    c
                }
            })
            .collect();
        let _ = write!(text, "\t{}", if name.is_empty() { "-" } else { &name });
    }
    for (low, high) in rows {
        let _ = write!(text, "\n{low}\t{high}");
        for curve in curves {
            let bin = curve
                .bins
                .buckets
                .iter()
                .find(|bin| (bin.low, bin.high) == (low, high));
            let _ = write!(text, "\t{}", bin.map_or(0, |bin| bin.count));
        }
    }
    let mut row = |name: &str, value: &dyn Fn(&Curve) -> Option<u64>| {
        let _ = write!(text, "\n{name}\t");
        for curve in curves {
            let _ = match value(curve) {
                Some(value) => write!(text, "\t{value}"),
                None => write!(text, "\t-"),
            };
        }
    };
    row("over:", &|curve| Some(curve.over));
    row("count:", &|curve| Some(curve.count()));
    row("min:", &|curve| curve.min);
    row("avg:", &|curve| curve.mean.map(|mean| mean.round() as u64));
    row("max:", &|curve| curve.max);
    text.push('\n');
    text
}
