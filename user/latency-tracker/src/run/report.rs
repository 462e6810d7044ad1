// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result of a run, for people and for programs.

use std::collections::BTreeMap;

use anyhow::Result;
use lt_common::out::{self, Colour};
use lt_proc::{Alert, Bucket, Labels, Log2Hist, Nanos, Pending, Stats, Unit};
use serde::Serialize;

use super::Measured;
use super::losses::losses;
use crate::explain::alone;
use crate::labels;

/// Maximum number of operations in flight that are shown.
const SHOWN: usize = 5;

/// The output of `--json`; times in ns.
#[derive(Serialize)]
struct Report<'a> {
    recipe: Option<&'a str>,
    question: Option<&'a str>,
    tracker: &'a str,
    /// The tracker and all parameters, as in `control`.
    line: &'a str,
    threshold: u64,
    /// How long the run measured.
    duration: u64,
    command: Option<Vec<String>>,
    /// The exit status of the command, 128+N after signal N; null without a command,
    /// or if it still runs.
    status: Option<u8>,
    count: u64,
    /// Upper bounds of buckets, or the maximum if that is less.
    percentiles: BTreeMap<&'static str, u64>,
    max: Option<u64>,
    buckets: &'a [Bucket],
    /// The delays by label; null without `by=`.
    labels: Option<&'a Labels>,
    stats: &'a Stats,
    longest: Option<&'a Alert>,
    alerts_missed: u64,
    /// The counters of missing operations and alerts that are not 0.
    missing: BTreeMap<&'a str, u64>,
    not_ended: u64,
    /// The operations that had not ended, as they were just before the end.
    pending: &'a [Pending],
}

pub(super) fn json(measured: &Measured, longest: Option<&Alert>) -> Result<String> {
    let stats = &measured.stats;
    let max = (measured.histogram.count() > 0).then(|| stats.count("max"));
    let percentiles = measured.histogram.percentiles(max.unwrap_or(0));
    let words = measured.command.iter();
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
    let missing = losses(&measured.tracker, stats);
    let recipe = measured.recipe.as_ref();
    let report = Report {
        recipe: recipe.map(|recipe| recipe.name.as_str()),
        question: recipe.map(|recipe| recipe.question.as_str()),
        tracker: &measured.tracker,
        line: &measured.line,
        threshold: measured.threshold,
        duration: measured.time.as_nanos() as u64,
        command: (!words.is_empty()).then_some(words),
        status: measured.status.map(lt_common::exec::code),
        count: measured.histogram.count(),
        percentiles: percentiles.iter().map(|p| (p.name, p.ns)).collect(),
        max,
        buckets: &measured.histogram.buckets,
        labels: measured.labels.as_ref(),
        stats,
        longest,
        alerts_missed: measured.missed,
        missing: missing.iter().map(|(key, n, _)| (*key, *n)).collect(),
        not_ended: stats.count("cleared"),
        pending: &measured.pending,
    };
    Ok(serde_json::to_string(&report)?)
}

pub(super) fn text(measured: &Measured, late: Option<&Alert>) -> Vec<String> {
    let time = Nanos(measured.time.as_nanos() as u64);
    let title = match &measured.recipe {
        Some(recipe) => format!("{} ({time})", recipe.question),
        None => format!("{}, for {time}", measured.tracker),
    };
    let mut lines = vec![out::paint(Colour::Bold, &title)];
    lines.extend(distribution(measured));
    lines.push(String::new());
    if let Some(by) = &measured.labels {
        lines.extend(labels::table(by, true));
        lines.push(String::new());
    }
    lines.extend(longest(measured, late));
    lines.extend(missing(measured));
    lines.extend(not_ended(measured));
    if let Some(recipe) = &measured.recipe {
        lines.push(String::new());
        for (title, text) in [("Normal", &recipe.normal), ("Next", &recipe.next)] {
            lines.extend(out::wrap(&format!("{title}: {text}"), 0));
        }
    }
    lines
}

/// The histogram and its summary.
fn distribution(measured: &Measured) -> Vec<String> {
    let count = measured.histogram.count();
    if count == 0 {
        return vec!["no delay recorded".into()];
    }
    let stats = &measured.stats;
    let hist = Log2Hist::merge(&measured.histogram, Unit::Usecs).to_string();
    let mut lines: Vec<String> = hist.lines().map(String::from).collect();
    let max = stats.count("max");
    let quantile = |ppm| {
        let ns = measured.histogram.quantile(ppm).unwrap_or(max);
        Nanos(ns.min(max))
    };
    lines.push(format!(
        "count {}  p50 {}  p99 {}  max {}",
        out::thousands(count),
        quantile(500_000),
        quantile(990_000),
        Nanos(max)
    ));
    lines.push("(percentiles are upper bounds, at most 1/8 above the true value)".into());
    lines
}

/// The longest operation, with the fields of its tracker.
fn longest(measured: &Measured, longest: Option<&Alert>) -> Vec<String> {
    let threshold = Nanos(measured.threshold).exact();
    let Some(alert) = longest else {
        return vec![match measured.was_late(false) {
            true => format!(
                "Operations took longer than {threshold}, but none of their alerts was read."
            ),
            false => format!("Nothing that ended took longer than {threshold}."),
        }];
    };
    let mut lines = vec![out::paint(
        Colour::Bold,
        &format!("The longest over {threshold}"),
    )];
    let text = alone::text(alert, &[]);
    lines.extend(text.lines().map(|line| format!("  {line}")));
    lines
}

fn missing(measured: &Measured) -> Vec<String> {
    let mut missing = losses(&measured.tracker, &measured.stats);
    if measured.missed > 0 {
        let overruns = "alerts overwritten before this command read them; a larger ring= avoids it";
        missing.push(("unread", measured.missed, overruns));
    }
    if missing.is_empty() {
        return Vec::new();
    }
    let rows = missing.iter().map(|(key, n, sentence)| {
        vec![
            format!("  {key}"),
            out::thousands(*n),
            (*sentence).to_string(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut lines = vec![
        String::new(),
        out::paint(Colour::Bold, "Lost, dropped or not counted"),
    ];
    let table = out::table(&["  COUNTER", ">COUNT", "WHAT"], &rows);
    lines.extend(table.into_iter().skip(1));
    lines
}

fn not_ended(measured: &Measured) -> Vec<String> {
    let count = measured.stats.count("cleared");
    if count == 0 {
        return Vec::new();
    }
    let title = format!("Not ended: {}, the oldest first", out::thousands(count));
    let mut lines = vec![String::new(), out::paint(Colour::Bold, &title)];
    let shown = measured.pending.iter().take(SHOWN);
    let mut more = count;
    for pending in shown {
        lines.extend(alone::unfinished(&measured.tracker, pending));
        more = more.saturating_sub(1);
    }
    if more > 0 {
        lines.push(format!("  and {} more", out::thousands(more)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lt_proc::Histogram;

    use super::*;

    fn measured(stats: &str, missed: u64) -> Measured {
        Measured {
            recipe: None,
            line: "block threshold=1000".into(),
            tracker: "block".into(),
            threshold: 1000,
            time: Duration::from_secs(1),
            histogram: Histogram::parse("896 960 1").unwrap(),
            labels: None,
            stats: Stats::parse(stats).unwrap(),
            missed,
            pending: Vec::new(),
            command: Vec::new(),
            status: None,
        }
    }

    #[test]
    fn operations_from_before_the_start_have_no_delay() {
        let mut ended = measured("ended 3\nbefore_start_ended 3\n", 0);
        ended.histogram = Histogram::parse("").unwrap();
        assert_eq!(distribution(&ended), ["no delay recorded"]);
    }

    #[test]
    fn nothing_was_late_only_if_no_counter_shows_a_late_operation() {
        let fine = measured("ended 1\nmax 900\n", 0);
        assert_eq!(
            longest(&fine, None),
            ["Nothing that ended took longer than 1us."]
        );
        for late in [
            measured("ended 1\nmax 1001\n", 0),
            measured("ended 1\nmax 900\n", 1),
            measured("ended 1\nmax 900\nalerts_lost 1\n", 0),
            measured("ended 1\nmax 900\nalerts_suppressed 1\n", 0),
        ] {
            let text = longest(&late, None).concat();
            assert!(
                text.starts_with("Operations took longer than 1us"),
                "{text}"
            );
        }
    }
}
