// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result for people: a histogram of each CPU, the statistics side by side, the largest peaks with their causes,
//! and the verdict.

use anyhow::Result;
use lt_common::out::{self, Colour};
use lt_proc::{Histogram, Log2Hist, Nanos, PERCENTILES, Unit};

use super::report::{Report, Series};

/// At most this many peaks are shown, the largest first; --json has all.
const PEAKS: usize = 10;

pub(super) fn show(report: &Report<'_>) -> Result<()> {
    out::line(&format!("clock: {}", report.clock))?;
    histograms(&report.series)?;
    let mut more = vec![row(&report.series, "peaks", &|s| out::thousands(s.peaks))];
    if report.series.iter().any(|s| s.events > 0) {
        more.push(row(&report.series, "events", &|s| out::thousands(s.events)));
    }
    more.push(row(&report.series, "not measured", &|s| {
        Nanos(s.away).to_string()
    }));
    statistics(&report.series, "loops", more)?;
    peaks(report)?;
    markers(report)
}

/// Prints a histogram of each series.
pub(super) fn histograms(series: &[Series]) -> Result<()> {
    for series in series {
        out::line("")?;
        out::line(&out::paint(Colour::Bold, &series.name))?;
        let bins = Histogram {
            buckets: series.bins.clone(),
        };
        for line in Log2Hist::merge(&bins, Unit::Nsecs).to_string().lines() {
            out::line(line)?;
        }
    }
    Ok(())
}

/// Returns a row of statistics, with a column for each series.
pub(super) fn row(series: &[Series], name: &str, value: &dyn Fn(&Series) -> String) -> Vec<String> {
    let mut row = vec![name.to_string()];
    row.extend(series.iter().map(value));
    row
}

/// Prints the table of statistics. `samples` is the word for samples; the rows `more` follow.
pub(super) fn statistics(series: &[Series], samples: &str, more: Vec<Vec<String>>) -> Result<()> {
    let mut head = vec![String::new()];
    head.extend(series.iter().map(|s| format!(">{}", s.name)));
    let row = |name: &str, value: &dyn Fn(&Series) -> String| row(series, name, value);
    let mut rows = vec![
        row(samples, &|s| out::thousands(s.statistics.loops)),
        row("min", &|s| Nanos(s.statistics.min).to_string()),
        row("mean", &|s| format!("{:.2}ns", s.statistics.mean)),
        row("std dev", &|s| format!("{:.2}ns", s.statistics.deviation)),
        row("variance", &|s| format!("{:.4e}ns2", s.statistics.variance)),
        row("sum", &|s| Nanos(s.statistics.sum).to_string()),
    ];
    for (name, _) in PERCENTILES {
        rows.push(row(name, &|s| {
            let ns = s.percentiles.get(name);
            ns.map_or("-".into(), |ns| Nanos(*ns).to_string())
        }));
    }
    rows.push(row("max", &|s| Nanos(s.statistics.max).to_string()));
    rows.extend(more);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    out::line("")?;
    for line in out::table(&head, &rows) {
        out::line(&line)?;
    }
    out::line("(percentiles are upper bounds, at most 1/8 above the true value)")
}

fn peaks(report: &Report<'_>) -> Result<()> {
    let mut largest: Vec<_> = report.peaks.iter().collect();
    largest.sort_by_key(|peak| std::cmp::Reverse(peak.took));
    if largest.is_empty() {
        return Ok(());
    }
    out::line("")?;
    let shown = largest.len().min(PEAKS);
    let count = match largest.len() > shown {
        true => format!("The largest {shown} of {} peaks:", largest.len()),
        false => "Peaks:".into(),
    };
    out::line(&out::paint(Colour::Bold, &count))?;
    for peak in largest.iter().take(PEAKS) {
        let took = Nanos(peak.took).to_string();
        let head = format!("CPU {:<3} {:>8}  ", peak.cpu, took);
        let indent = head.chars().count();
        hanging(&head, &peak.cause)?;
        if let Some(capture) = &peak.capture {
            out::line(&format!("{:indent$}{}", "", capture.display()))?;
        }
        for line in peak.explanation.iter().flat_map(|text| text.lines()) {
            out::line(&format!("    {line}"))?;
        }
    }
    Ok(())
}

/// Prints what the tracers added, what was lost, and the verdict.
fn markers(report: &Report<'_>) -> Result<()> {
    out::line("")?;
    if let Some(added) = &report.added {
        let names = PERCENTILES.iter().map(|(name, _)| *name).chain(["max"]);
        let parts = names.filter_map(|name| {
            let by = added.get(name)?;
            let sign = if *by < 0 { '-' } else { '+' };
            Some(format!("{name} {sign}{}", Nanos(by.unsigned_abs())))
        });
        let parts: Vec<String> = parts.collect();
        out::line(&format!("added to the baseline: {}", parts.join("  ")))?;
    }
    let complete = match report.complete {
        true => "nothing was lost".to_string(),
        false => "data was lost, see below".to_string(),
    };
    out::line(&format!("complete: {complete}"))?;
    if report.machine.guest == Some(true) {
        out::line("This is a virtual machine: its host may have caused the longest loops.")?;
    }
    let fine = format!("no loop took {} or longer", Nanos(report.threshold));
    verdict(&report.failed, &fine)
}

/// Prints `head` and a text, with the further lines indented to the end of `head`.
pub(super) fn hanging(head: &str, text: &str) -> Result<()> {
    let mut lines = out::wrap(&out::printable(text), head.chars().count());
    if let Some(first) = lines.first_mut() {
        *first = format!("{head}{}", first.trim_start());
    }
    lines.iter().try_for_each(|line| out::line(line))
}

/// Prints why the run failed, or `fine`.
pub(super) fn verdict(failed: &[String], fine: &str) -> Result<()> {
    if failed.is_empty() {
        return out::line(&format!("{}: {fine}", out::paint(Colour::Green, "passed")));
    }
    failed
        .iter()
        .try_for_each(|why| out::line(&format!("{}: {why}", out::paint(Colour::Red, "failed"))))
}
