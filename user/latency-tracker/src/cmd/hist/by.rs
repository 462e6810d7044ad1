// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist --by`: the delays of each value of a field, the longest total first.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Result, bail};
use lt_common::out;
use lt_proc::{Labels, ProcRoot, Stats};
use serde::Serialize;

use super::{OfOne, SINCE, since};
use crate::cli::HistArgs;
use crate::labels::{Row, row, sorted, table};

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

/// Shows delays by label; keeps the last reading of each instance, for intervals.
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
        format!("{} ", lt_common::clock::now())
    } else {
        String::new()
    };
    out::line(&format!("{time}{name}"))?;
    for line in table(labels, interval.is_none()) {
        out::line(&line)?;
    }
    let since = if interval.is_none() { "" } else { SINCE };
    out::line(&format!("lost{since}: events {}", out::lost(stats)))?;
    out::line("")
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

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "by=comm labels=2 max_labels=2 full=1 memory=4096\n\
        label comm=\"dd\" count=1 sum=700 min=700 max=700 buckets=640-704:1\n\
        label comm=\"a b\" count=2 sum=1400 min=690 max=710 buckets=640-704:1,704-768:1\n\
        other count=4 sum=700 min=100 max=300 buckets=96-104:3,288-320:1\n";

    #[test]
    fn json_has_the_share_of_each_label() {
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
