// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist --by`: the delays of each value of a field, the longest total first.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anyhow::{Result, bail};
use lt_common::{group, out};
use lt_proc::{Delays, Fields, Labels, Nanos, ProcRoot, Stats};
use serde::Serialize;

use super::{OfOne, SINCE, since};
use crate::cli::HistArgs;

/// The output of `--json`; times in ns.
#[derive(Serialize)]
struct Report<'a> {
    instance: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<u64>,
    by: &'a str,
    max_labels: u64,
    full: bool,
    labels: Vec<Row<'a>>,
    other: Row<'a>,
    stats: &'a Stats,
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a Fields>,
    /// The share of the sum of all delays, in parts per million.
    share_ppm: u64,
    /// Upper bounds of buckets.
    percentiles: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    delays: &'a Delays,
}

/// The instances, and the last reading of each, for intervals.
pub(super) struct ByLabel<'a> {
    root: &'a ProcRoot,
    args: &'a HistArgs,
    before: HashMap<String, OfOne<Labels>>,
}

impl<'a> ByLabel<'a> {
    /// Removes from `names` the instances that do not count by label; fails if none remains.
    pub(super) fn new(
        root: &'a ProcRoot,
        args: &'a HistArgs,
        names: &mut Vec<String>,
    ) -> Result<Self> {
        names.retain(|name| root.has_labels(name));
        if names.is_empty() {
            match &args.name {
                Some(name) => bail!(
                    "{name} does not count by label: the field is chosen when an instance is \
                     started, for example `latency-tracker start NAME block by=comm`"
                ),
                None => bail!(
                    "no instance counts by label; start one: latency-tracker start slow_disk \
                     block by=comm"
                ),
            }
        }
        Ok(Self {
            root,
            args,
            before: HashMap::new(),
        })
    }

    /// Reads an instance; the next interval starts with this reading.
    pub(super) fn read(&mut self, name: &str) -> Result<()> {
        let root = self.root;
        let now = root.of_one(name, || root.labels(name))?;
        self.before.insert(name.to_string(), now);
        Ok(())
    }

    /// Shows the delays of an instance: since its last reading, or all.
    pub(super) fn show(&mut self, name: &str, interval: Option<Duration>) -> Result<()> {
        let root = self.root;
        let read = || root.labels(name);
        let shown = match self.before.get_mut(name) {
            Some(last) if interval.is_some() => since(root, name, last, read, Labels::since)?,
            _ => read()?,
        };
        let stats = root.stats(name)?;
        print(self.args, name, &shown, &stats, interval)
    }
}

/// Prints the delays of an instance: of an interval, or all.
pub(super) fn print(
    args: &HistArgs,
    name: &str,
    labels: &Labels,
    stats: &Stats,
    interval: Option<Duration>,
) -> Result<()> {
    if args.json {
        return out::json(&report(name, labels, stats, interval));
    }
    let time = if args.timestamp {
        format!("{} ", super::super::clock())
    } else {
        String::new()
    };
    out::line(&format!("{time}{name}"))?;
    for line in table(labels, stats, interval.is_none()) {
        out::line(&line)?;
    }
    out::line("")
}

fn row<'a>(label: Option<&'a Fields>, delays: &'a Delays, all: u128) -> Row<'a> {
    let percentiles = delays.histogram.percentiles(delays.max);
    Row {
        label,
        share_ppm: u64::try_from(delays.sum * 1_000_000 / all.max(1)).unwrap_or(u64::MAX),
        percentiles: percentiles.iter().map(|p| (p.name, p.ns)).collect(),
        delays,
    }
}

/// The rows of all labels, the longest total first.
fn sorted(labels: &Labels) -> Vec<Row<'_>> {
    let all = labels.sum();
    let of = labels.labels.iter();
    let mut rows: Vec<_> = of
        .map(|one| row(Some(&one.label), &one.delays, all))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.delays.sum));
    rows
}

fn report<'a>(
    instance: &'a str,
    labels: &'a Labels,
    stats: &'a Stats,
    interval: Option<Duration>,
) -> Report<'a> {
    Report {
        instance,
        interval: interval.map(|i| i.as_nanos() as u64),
        by: &labels.by,
        max_labels: labels.max_labels,
        full: labels.full,
        labels: sorted(labels),
        other: row(None, &labels.other, labels.sum()),
        stats,
    }
}

/// The text of a label: a cgroup's path, the bare value of a single field, or all fields.
fn text(by: &str, label: &Fields) -> String {
    if let Some(path) = label.number(CGROUP).and_then(group::path_of) {
        return path;
    }
    let phrase = label.phrase(&[]);
    let value = phrase.strip_prefix(&format!("{by}="));
    value.unwrap_or(&phrase).to_string()
}

/// The field with the number of a cgroup.
const CGROUP: &str = "cgroup";

const COLUMNS: [(&str, &str); 4] = [
    (">P50", "p50"),
    (">P90", "p90"),
    (">P99", "p99"),
    (">P99.9", "p99.9"),
];

/// Returns the lines of a table. The longest delays are known only if the table `is_whole`,
/// not for an interval.
fn table(labels: &Labels, stats: &Stats, is_whole: bool) -> Vec<String> {
    let cells = |name: String, row: &Row<'_>| {
        let ns = |known: Option<u64>| known.map_or("-".to_string(), |ns| Nanos(ns).to_string());
        let mut cells = vec![name, out::thousands(row.delays.count)];
        cells.extend(COLUMNS.map(|(_, name)| ns(row.percentiles.get(name).copied())));
        let last = row.delays.histogram.quantile(1_000_000);
        cells.push(ns(if row.delays.max > 0 {
            Some(row.delays.max)
        } else {
            last
        }));
        cells.push(format!("{:.1}", row.share_ppm as f64 / 10_000.0));
        cells
    };
    let mut rows: Vec<_> = sorted(labels)
        .iter()
        .map(|row| {
            cells(
                text(&labels.by, row.label.unwrap_or(&Fields::default())),
                row,
            )
        })
        .collect();
    let other = row(None, &labels.other, labels.sum());
    if labels.full || other.delays.count > 0 {
        rows.push(cells("other".to_string(), &other));
    }
    let by = labels.by.to_uppercase();
    let mut head = vec![by.as_str(), ">COUNT"];
    head.extend(COLUMNS.map(|(head, _)| head));
    head.extend([">MAX", ">% TIME"]);
    let mut lines = if rows.is_empty() {
        vec!["no operation has ended".to_string()]
    } else {
        out::table(&head, &rows)
    };
    if labels.full {
        lines.push(format!(
            "full: {} labels, the first that came; all further ones are in `other`",
            labels.max_labels
        ));
    }
    let bounds = match is_whole {
        true => "percentiles",
        false => "percentiles and MAX",
    };
    lines.push(format!(
        "({bounds} are upper bounds, at most 1/8 above the true value)"
    ));
    let since = if is_whole { "" } else { SINCE };
    lines.push(format!("lost{since}: events {}", out::lost(stats)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "by=comm labels=2 max_labels=2 full=1 memory=4096\n\
        label comm=\"dd\" count=1 sum=700 min=700 max=700 buckets=640-704:1\n\
        label comm=\"a b\" count=2 sum=1400 min=690 max=710 buckets=640-704:1,704-768:1\n\
        other count=4 sum=700 min=100 max=300 buckets=96-104:3,288-320:1\n";

    #[test]
    fn the_longest_total_is_first_and_other_last() {
        let labels = Labels::parse(TEXT).unwrap();
        let stats = Stats::parse("ended 7\nfull 3\n").unwrap();
        let lines = table(&labels, &stats, true);
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words(&lines[0]),
            [
                "COMM", "COUNT", "P50", "P90", "P99", "P99.9", "MAX", "%", "TIME"
            ]
        );
        assert_eq!(
            words(&lines[1]),
            [
                "\"a", "b\"", "2", "703ns", "710ns", "710ns", "710ns", "710ns", "50.0"
            ]
        );
        assert_eq!(words(&lines[2])[0], "dd");
        assert_eq!(words(&lines[3]).last().unwrap(), "25.0");
        assert!(lines[3].starts_with("other"));
        assert!(lines[4].starts_with("full: 2 labels"));
        assert_eq!(lines.last().unwrap(), "lost: events 3 (pool full)");
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:?}");
        let of_interval = table(&labels.since(&labels), &stats, false);
        assert!(of_interval.contains(
            &"(percentiles and MAX are upper bounds, at most 1/8 above the true value)".to_string()
        ));
    }

    #[test]
    fn nothing_is_no_table() {
        let labels = "by=cpu labels=0 max_labels=16 full=0 memory=1\n\
            other count=0 sum=0 min=0 max=0 buckets=\n";
        let labels = Labels::parse(labels).unwrap();
        let lines = table(&labels, &Stats::parse("ended 0\n").unwrap(), true);
        assert_eq!(lines[0], "no operation has ended");
    }

    #[test]
    fn json_has_the_share_of_each() {
        let labels = Labels::parse(TEXT).unwrap();
        let stats = Stats::parse("ended 7\n").unwrap();
        let value = serde_json::to_value(report("a", &labels, &stats, None)).unwrap();
        assert_eq!(value["labels"][0]["label"]["comm"], "a b");
        assert_eq!(value["labels"][0]["share_ppm"], 500_000);
        assert_eq!(value["other"]["count"], 4);
        assert_eq!(value["other"]["buckets"][0]["count"], 3);
        assert!(value["other"].get("label").is_none());
    }
}
