// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads the histograms that other tools write, and our own, to compare them.
//!
//! ```text
//! rtla timerlat|osnoise hist   text: `Index IRQ-000 Thr-000`, rows, `over:`, `min:`, `avg:`, `max:`
//! cyclictest -h, -H            text: `000012 000003 000000`, and `# Max Latencies: 00019 00023`
//! cyclictest, oslat --json     `thread` by number: `histogram`, `min`, `avg`, `max`
//! our own -o x.json, x.txt      JSON and the table of this crate
//! ```
//!
//! In the table of another tool, row N counts the samples that take N units, rounded down. Its bins
//! are assumed to be one unit wide: if a tool leaves out empty rows, as rtla does, the rows do not
//! show the width.

use std::collections::BTreeMap;

use lt_proc::{Bucket, Histogram};
use serde::Deserialize;
use thiserror::Error;

use super::Curve;

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// The file has none of the formats.
    #[error(
        "no known histogram: expected the output of `rtla ... hist`, of `cyclictest -h N` or its --json or \
         --histfile, of `oslat --json`, or of `latency-tracker bench`"
    )]
    Unknown,
    /// Invalid JSON, JSON of another shape, or bins in the wrong order.
    #[error("JSON, but not a known histogram: {0}")]
    Json(String),
    /// An invalid line.
    #[error("line {line}: {word:?}: expected {expected}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The invalid word.
        word: String,
        /// The expected content.
        expected: &'static str,
    },
}

/// Reads all histograms of a file.
///
/// # Errors
/// Names what is wrong and, in a table, its line.
pub fn read(text: &str) -> Result<Vec<Curve>, Unreadable> {
    let curves = match text.trim_start().starts_with('{') {
        true => json(text)?,
        false => rows(text)?,
    };
    let curves: Vec<Curve> = curves
        .into_iter()
        .filter(|curve| curve.count() > 0)
        .collect();
    match curves.is_empty() {
        true => Err(Unreadable::Unknown),
        false => Ok(curves),
    }
}

/// The output of `cyclictest --json` and `oslat --json`.
#[derive(Deserialize)]
struct RtTests {
    /// 1 if cyclictest ran with -N.
    #[serde(default)]
    resolution_in_ns: u8,
    thread: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct Thread {
    histogram: BTreeMap<String, u64>,
    cpu: Option<i64>,
    min: Option<f64>,
    avg: Option<f64>,
    max: Option<f64>,
    /// Number of samples; only cyclictest has it.
    cycles: Option<u64>,
}

/// The output of `bench loop --json`, `bench timer --json` and `bench rate --json`.
#[derive(Deserialize)]
struct Ours {
    series: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    name: String,
    bins: Vec<Bin>,
    min: u64,
    mean: f64,
    max: u64,
}

#[derive(Deserialize)]
struct Bin {
    low: u64,
    high: u64,
    count: u64,
}

fn json(text: &str) -> Result<Vec<Curve>, Unreadable> {
    let bad = |error: serde_json::Error| Unreadable::Json(error.to_string());
    let value: serde_json::Value = serde_json::from_str(text).map_err(bad)?;
    if value.get("series").is_some() {
        let ours: Ours = serde_json::from_value(value).map_err(bad)?;
        return ours.series.into_iter().map(series).collect();
    }
    let others: RtTests = serde_json::from_value(value).map_err(bad)?;
    let unit = if others.resolution_in_ns == 1 {
        1
    } else {
        1000
    };
    let thread = |(number, thread): (String, Thread)| {
        let mut bins = BTreeMap::new();
        for (low, count) in &thread.histogram {
            let low = low
                .parse::<u64>()
                .ok()
                .filter(|low| *low < u64::MAX / unit - 1);
            let low = low.ok_or_else(|| {
                Unreadable::Json(format!("thread {number}: a bin is not a number"))
            })?;
            bins.insert(low, *count);
        }
        let whole = |value: Option<f64>| value.map(|v| (v.max(0.0) * unit as f64) as u64);
        let inside: u64 = bins.values().sum();
        Ok(Curve {
            name: match thread.cpu {
                Some(cpu) => format!("CPU {cpu}"),
                None => format!("thread {number}"),
            },
            bins: units(bins, unit),
            over: thread
                .cycles
                .map_or(0, |cycles| cycles.saturating_sub(inside)),
            min: whole(thread.min),
            mean: thread.avg.map(|avg| avg * unit as f64),
            max: whole(thread.max),
        })
    };
    others.thread.into_iter().map(thread).collect()
}

fn series(series: Series) -> Result<Curve, Unreadable> {
    let mut bins: Vec<Bucket> = Vec::new();
    for Bin { low, high, count } in series.bins {
        if high <= low || bins.last().is_some_and(|last| low < last.high) {
            return Err(Unreadable::Json(format!(
                "{}: the bin from {low} to {high} is out of order",
                series.name
            )));
        }
        bins.push(Bucket { low, high, count });
    }
    Ok(Curve {
        name: series.name,
        bins: Histogram { buckets: bins },
        over: 0,
        min: Some(series.min),
        mean: Some(series.mean),
        max: Some(series.max),
    })
}

/// Returns bins of one unit each.
fn units(bins: BTreeMap<u64, u64>, unit: u64) -> Histogram {
    let bin = |(low, count): (u64, u64)| Bucket {
        low: low * unit,
        high: (low + 1) * unit,
        count,
    };
    let used = bins.into_iter().filter(|(_, count)| *count > 0);
    Histogram {
        buckets: used.map(bin).collect(),
    }
}

/// A table while it is read, with a curve for each column.
#[derive(Default)]
struct Columns {
    curves: Vec<Curve>,
    /// The unit of the times in the file, ns.
    unit: u64,
}

impl Columns {
    /// Returns a column; first adds missing columns before it, since a later row may have more
    /// columns.
    fn at(&mut self, column: usize) -> &mut Curve {
        while self.curves.len() <= column {
            let name = format!("column {}", self.curves.len() + 1);
            self.curves.push(Curve {
                name,
                ..Curve::default()
            });
        }
        &mut self.curves[column]
    }
}

fn rows(text: &str) -> Result<Vec<Curve>, Unreadable> {
    let mut columns = Columns {
        unit: 1000,
        ..Columns::default()
    };
    // Whether rows include the end of their bins.
    let mut ends = false;
    for (i, whole) in text.lines().enumerate() {
        let line = whole.trim();
        let fault = |word: &str, expected| Unreadable::Line {
            line: i + 1,
            word: word.to_string(),
            expected,
        };
        if let Some(comment) = line.strip_prefix('#') {
            remark(&mut columns, comment.trim());
            continue;
        }
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "Index" {
            let mut names: Vec<&str> = words.collect();
            ends = names.first() == Some(&"End");
            if ends {
                names.remove(0);
            }
            columns.curves.clear();
            for (column, name) in names.into_iter().enumerate() {
                columns.at(column).name = name.to_string();
            }
            continue;
        }
        if let Some(key) = first.strip_suffix(':') {
            summary(&mut columns, key, words);
            if key == "ALL" {
                // All further lines summarise all CPUs.
                break;
            }
            continue;
        }
        if !first.bytes().all(|b| b.is_ascii_digit()) {
            // cyclictest -h prints lines about its threads in between.
            continue;
        }
        let number = |word: &str| {
            let number = word
                .parse::<u64>()
                .ok()
                .filter(|n| *n < u64::MAX / 1000 || ends);
            number.ok_or_else(|| fault(word, "a number"))
        };
        let low = number(first)?;
        let high = match ends {
            true => number(words.next().unwrap_or(""))?,
            false => low + 1,
        };
        let unit = if ends { 1 } else { columns.unit };
        let (low, high) = (low * unit, high * unit);
        if high <= low {
            return Err(fault(first, "a bin that ends above its start"));
        }
        for (column, word) in words.enumerate() {
            let count = number(word)?;
            let bins = &mut columns.at(column).bins.buckets;
            if count == 0 {
                continue;
            }
            if bins.last().is_some_and(|last| low < last.high) {
                return Err(fault(first, "bins in ascending order"));
            }
            bins.push(Bucket { low, high, count });
        }
    }
    // cyclictest -H has a column with the sum of all others.
    if text.contains("# Histogram") && columns.curves.len() > 2 {
        let sum: u64 = columns.curves.iter().rev().skip(1).map(Curve::count).sum();
        let last_is_sum = columns
            .curves
            .last()
            .is_some_and(|last| last.bins.count() == sum && last.max.is_none());
        if last_is_sum {
            columns.curves.pop();
        }
    }
    Ok(columns.curves)
}

/// Reads a line that starts with `#`.
fn remark(columns: &mut Columns, text: &str) {
    if let Some(unit) = text.strip_prefix("Time unit is ") {
        columns.unit = if unit.starts_with("nano") { 1 } else { 1000 };
    }
    let Some((what, values)) = text.split_once(':') else {
        return;
    };
    let unit = columns.unit;
    for (column, word) in values.split_whitespace().enumerate() {
        let Ok(value) = word.parse::<u64>() else {
            return;
        };
        let time = value.saturating_mul(unit);
        match what {
            "Min Latencies" => columns.at(column).min = Some(time),
            "Avg Latencies" => columns.at(column).mean = Some(time as f64),
            "Max Latencies" => columns.at(column).max = Some(time),
            "Histogram Overflows" => columns.at(column).over = value,
            _ => return,
        }
    }
}

/// Reads a line such as `over:` or `min:`.
fn summary<'a>(columns: &mut Columns, key: &str, words: impl Iterator<Item = &'a str>) {
    let unit = columns.unit;
    for (column, word) in words.enumerate() {
        if column >= columns.curves.len() {
            return;
        }
        let Ok(value) = word.parse::<f64>() else {
            continue;
        };
        let time = (value.max(0.0) * unit as f64) as u64;
        let curve = columns.at(column);
        match key {
            "over" => curve.over = value as u64,
            "min" => curve.min = Some(time),
            "avg" => curve.mean = Some(value * unit as f64),
            "max" => curve.max = Some(time),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Record, table};
    use proptest::prelude::*;

    const RTLA: &str = "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n# Duration:   0 00:00:01\n\
Index   IRQ-000   Thr-000   IRQ-001   Thr-001\n\
0           998         0       997         0\n\
2             2       990         3       999\n\
11            0         9         0         1\n\
over:         0         1         0         0\n\
count:     1000      1000      1000      1000\n\
min:          0         2         0         2\n\
avg:          0         2         0         2\n\
max:          2        37         2        11\n\
ALL:        IRQ       Thr\ncount:     2000      2000\nmin:          0         2\n";

    #[test]
    fn rtla_is_read() {
        let curves = read(RTLA).unwrap();
        let names: Vec<&str> = curves.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["IRQ-000", "Thr-000", "IRQ-001", "Thr-001"]);
        assert!(curves.iter().all(|c| c.count() == 1000));
        let thread = &curves[1];
        assert_eq!(
            (thread.min, thread.max, thread.over),
            (Some(2000), Some(37_000), 1)
        );
        assert_eq!(thread.percentiles()[0].ns, 2999);
        assert_eq!(thread.percentiles().last().unwrap().ns, 37_000);
        let nanos = RTLA.replace("microseconds (us)", "nanoseconds (ns)");
        assert_eq!(read(&nanos).unwrap()[1].max, Some(37));
    }

    const CYCLICTEST: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000000 000000\t000000\n\
000001 000004\t000003\n000002 000006\t000006\n000003 000000\t000001\n# Total: 000000010 000000010\n\
# Min Latencies: 00001 00001\n# Avg Latencies: 00001 00002\n# Max Latencies: 00002 00040\n\
# Histogram Overflows: 00000 00001\n# Histogram Overflow at cycle number:\n# Thread 0:\n# Thread 1: 00007\n";

    #[test]
    fn cyclictest_is_read_with_and_without_the_sum() {
        let curves = read(CYCLICTEST).unwrap();
        assert_eq!(curves.len(), 2);
        assert_eq!((curves[0].count(), curves[1].count()), (10, 11));
        assert_eq!((curves[1].max, curves[1].over), (Some(40_000), 1));
        let with_sum = CYCLICTEST
            .replace("000004\t000003", "000004\t000003\t000007")
            .replace("000006\t000006", "000006\t000006\t000012")
            .replace("000000\t000001", "000000\t000001\t000001")
            .replace(
                "00001\n# Histogram Overflow at",
                "00000\n# Histogram Overflow at",
            )
            .replace("000000\t000000", "000000\t000000\t000000");
        assert_eq!(read(&with_sum).unwrap().len(), 2);
    }

    #[test]
    fn json_of_rt_tests_is_read() {
        let text = r#"{"file_version": 1, "num_threads": 1, "resolution_in_ns": 0, "thread": {"0": {
            "histogram": {"3": 90, "10": 9}, "cycles": 100, "min": 3, "max": 70, "avg": 3.64, "cpu": 2, "node": 0}}}"#;
        let curves = read(text).unwrap();
        assert_eq!((curves[0].name.as_str(), curves[0].over), ("CPU 2", 1));
        assert_eq!(
            curves[0].bins.buckets[1].low, 10_000,
            "by number, not by letter"
        );
        assert_eq!(curves[0].max, Some(70_000));
        let nanos = text.replace("\"resolution_in_ns\": 0", "\"resolution_in_ns\": 1");
        assert_eq!(read(&nanos).unwrap()[0].max, Some(70));
        // The output of oslat 2.10.
        let oslat = r#"{"file_version": 1, "thread": {"0": {"cpu": 1, "freq": 2597, "min": 0, "avg": 1.015071,
            "max": 7023, "duration": 0.999, "histogram": {"1": 22982115, "2": 124, "32": 592}}}}"#;
        assert_eq!(read(oslat).unwrap()[0].count(), 22_982_831);
    }

    #[test]
    fn an_invalid_file_is_reported() {
        for (text, says) in [
            ("", "no known histogram"),
            ("hello\nworld\n", "no known histogram"),
            ("{\"a\": 1}", "JSON, but not a known histogram"),
            ("{", "JSON, but not a known histogram"),
            ("Index A\n3 x\n", "line 2: \"x\": expected a number"),
            (
                "Index A\n3 1\n2 1\n",
                "line 3: \"2\": expected bins in ascending order",
            ),
            (
                "Index End A\n3 3 1\n",
                "line 2: \"3\": expected a bin that ends above",
            ),
            (
                "{\"series\": [{\"name\": \"a\", \"min\": 1, \"mean\": 1, \"max\": 1, \"bins\": [{\"low\": 2, \"high\": 1, \"count\": 1}]}]}",
                "out of order",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    fn curve(name: &str, samples: &[u64]) -> Curve {
        let mut record = Record::default();
        samples.iter().for_each(|ns| record.add(*ns));
        let statistics = record.statistics().unwrap();
        Curve {
            name: name.into(),
            bins: record.histogram(),
            over: 0,
            min: Some(statistics.min),
            mean: Some(statistics.mean.round()),
            max: Some(statistics.max),
        }
    }

    proptest! {
        #[test]
        fn our_table_is_read_back(a in prop::collection::vec(0u64..1 << 40, 1..50), b in prop::collection::vec(0u64..1 << 20, 1..50)) {
            let curves = vec![curve("CPU-1", &a), curve("CPU-2,-armed", &b)];
            prop_assert_eq!(read(&table(&curves)).unwrap(), curves);
        }

        #[test]
        fn no_text_makes_it_panic(text in "(Index |End |# Max Latencies: |over: |[0-9]{1,20}|\t| |\n|\\{|\"|.){0,60}") {
            let _ = read(&text);
        }
    }
}
