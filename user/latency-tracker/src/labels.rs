// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The delays of an instance by label, as a table, the longest total first.

use std::collections::BTreeMap;

use lt_common::{group, out};
use lt_proc::{Delays, Fields, Labels, Nanos};
use serde::Serialize;

/// The delays of a label, or of `other`; for JSON.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a Fields>,
    /// The share of the sum of all delays, in parts per million.
    share_ppm: u64,
    /// Upper bounds: the longest delay of a bucket, or of the label if that is shorter.
    percentiles: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    delays: &'a Delays,
}

/// Returns the row of a label, or of `other` if `label` is `None`. `all` is the sum of all delays.
pub(crate) fn row<'a>(label: Option<&'a Fields>, delays: &'a Delays, all: u128) -> Row<'a> {
    let percentiles = delays.histogram.percentiles(delays.max);
    Row {
        label,
        share_ppm: u64::try_from(delays.sum * 1_000_000 / all.max(1)).unwrap_or(u64::MAX),
        percentiles: percentiles.iter().map(|p| (p.name, p.ns)).collect(),
        delays,
    }
}

/// The rows of all labels, the longest total first.
pub(crate) fn sorted(labels: &Labels) -> Vec<Row<'_>> {
    let all = labels.sum();
    let of = labels.labels.iter();
    let mut rows: Vec<_> = of
        .map(|one| row(Some(&one.label), &one.delays, all))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.delays.sum));
    rows
}

/// The text of a label, which is not safe to print yet: a cgroup's path, the innermost function of a
/// stack, or the fields as a phrase, without the name `by` if the phrase begins with it.
fn text(by: &str, label: &Fields) -> String {
    if by == STACK {
        let stack = label.stack();
        let innermost = stack.first().and_then(|frame| frame.split('+').next());
        return innermost.unwrap_or("[no stack]").to_string();
    }
    if let Some(path) = label.number(CGROUP).and_then(group::path_of) {
        return path;
    }
    let phrase = label.phrase(&[]);
    let value = phrase.strip_prefix(&format!("{by}="));
    value.unwrap_or(&phrase).to_string()
}

/// The field with the number of a cgroup.
const CGROUP: &str = "cgroup";

/// The value of `by` for which labels are stacks.
pub(crate) const STACK: &str = "stack";

const COLUMNS: [(&str, &str); 4] = [
    (">P50", "p50"),
    (">P90", "p90"),
    (">P99", "p99"),
    (">P99.9", "p99.9"),
];

/// Returns the functions of a label that is a stack, each as a line.
fn frames(label: &Fields) -> Vec<String> {
    let stack = label.stack();
    let mut lines: Vec<String> = stack.iter().map(|frame| out::frame(frame)).collect();
    if label.is_cut_off() {
        lines.push(out::frame("[cut off]"));
    }
    lines
}

/// Returns the lines of a table; below a row whose label is a stack, its functions. The longest
/// delays are known only if the table `is_whole`, not for an interval.
pub(crate) fn table(labels: &Labels, is_whole: bool) -> Vec<String> {
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
    let shown = sorted(labels);
    let name =
        |row: &Row<'_>| out::printable(&text(&labels.by, row.label.unwrap_or(&Fields::default())));
    let mut rows: Vec<_> = shown.iter().map(|row| cells(name(row), row)).collect();
    let other = row(None, &labels.other, labels.sum());
    if labels.full || other.delays.count > 0 {
        rows.push(cells("other".to_string(), &other));
    }
    let by = labels.by.to_uppercase();
    let mut head = vec![by.as_str(), ">COUNT"];
    head.extend(COLUMNS.map(|(head, _)| head));
    head.extend([">MAX", ">% TIME"]);
    let mut lines = Vec::new();
    if rows.is_empty() {
        let when = if is_whole { "" } else { " in this interval" };
        lines.push(format!("no delay recorded{when}"));
    } else {
        // The first line is the head, below which there are no functions.
        let stacks = shown.iter().filter_map(|row| row.label).map(frames);
        let mut below = std::iter::once(Vec::new()).chain(stacks);
        for line in out::table(&head, &rows) {
            lines.push(line);
            lines.extend(below.next().unwrap_or_default());
        }
    }
    if labels.full {
        lines.push(format!(
            "full: {} labels; all that came later are in `other`",
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
        let lines = table(&labels, true);
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
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:?}");
        let of_interval = table(&labels.since(&labels), false);
        assert!(of_interval.contains(
            &"(percentiles and MAX are upper bounds, at most 1/8 above the true value)".to_string()
        ));
    }

    #[test]
    fn without_delays_there_is_no_table() {
        let labels = "by=cpu labels=0 max_labels=16 full=0 memory=1\n\
            other count=0 sum=0 min=0 max=0 buckets=\n";
        let labels = Labels::parse(labels).unwrap();
        for (is_whole, text) in [
            (true, "no delay recorded"),
            (false, "no delay recorded in this interval"),
        ] {
            assert_eq!(table(&labels, is_whole)[0], text);
        }
    }

    /// The name of a cgroup may have any character, too.
    #[test]
    fn no_label_controls_the_terminal() {
        let text = "by=stack labels=1 max_labels=4 full=0 memory=1\n\
            label stack=\"\\x1b[31mf+0x1/0x2\" count=1 sum=1 min=1 max=1 buckets=1-2:1\n\
            other count=0 sum=0 min=0 max=0 buckets=\n";
        let lines = table(&Labels::parse(text).unwrap(), true);
        assert!(lines[1].starts_with("?[31mf "), "{lines:?}");
        assert!(lines.iter().all(|line| !line.contains('\u{1b}')));
    }

    #[test]
    fn a_stack_is_below_its_row() {
        let text = "by=stack labels=3 max_labels=4 full=0 memory=1\n\
            label stack=\"\" count=1 sum=1 min=1 max=1 buckets=1-2:1\n\
            label stack=\"f+0x1/0x2,g+0x3/0x4\" cut_off=1 count=1 sum=7 min=7 max=7 buckets=7-8:1\n\
            label stack=\"h+0x1/0x2 [m]\" count=1 sum=5 min=5 max=5 buckets=5-6:1\n\
            other count=1 sum=9 min=9 max=9 buckets=9-10:1\n";
        let lines = table(&Labels::parse(text).unwrap(), true);
        let first = |line: &String| line.split_whitespace().next().unwrap().to_string();
        let words: Vec<String> = lines.iter().take(9).map(first).collect();
        assert_eq!(
            words.join(" "),
            "STACK f f+0x1/0x2 g+0x3/0x4 [cut h h+0x1/0x2 [no other"
        );
    }
}
