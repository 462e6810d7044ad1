// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist`: how long operations took. Prints bcc's log2 text, percentiles from the kernel's finer
//! buckets, and the counters that show whether any delay is missing.
//!
//! ```text
//!   NAME/histogram    since the start of the instance; -i: differences of readings
//!   NAME/period*      since the last reset; --reset: the period that it ends (period.rs)
//! ```

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out;
use lt_common::seconds::interval;
use lt_common::wait::{Signals, Wake};
use lt_proc::{Bucket, Histogram, Log2Hist, Nanos, Percentile, Period, ProcRoot, Stats, Unit};
use serde::Serialize;

use crate::cli::HistArgs;

mod by;
mod heat;
mod period;

use by::ByLabel;

/// The output of `--json`; times in ns.
#[derive(Serialize)]
struct Report<'a> {
    instance: &'a str,
    #[serde(flatten)]
    span: Span,
    count: u64,
    /// Upper bounds of buckets.
    percentiles: BTreeMap<&'static str, u64>,
    buckets: &'a [Bucket],
    stats: &'a Stats,
}

/// The time that a histogram covers, in the output of `--json`.
#[derive(Serialize)]
struct Span {
    /// The length of an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<u64>,
    /// Start and end of a period, `CLOCK_MONOTONIC`.
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
}

/// The time that a histogram covers.
#[derive(Clone, Copy)]
enum Time<'a> {
    /// Since the start of the instance.
    Whole,
    /// The time between two readings.
    Interval(Duration),
    /// Between two resets, or since one.
    Period(&'a Period),
}

impl Time<'_> {
    fn is_whole(self) -> bool {
        matches!(self, Time::Whole)
    }

    fn span(self) -> Span {
        let (interval, times) = match self {
            Time::Whole => (None, None),
            Time::Interval(interval) => (Some(interval.as_nanos() as u64), None),
            Time::Period(period) => (None, Some((period.begin, period.end))),
        };
        Span {
            interval,
            begin: times.map(|(begin, _)| begin),
            end: times.map(|(_, end)| end),
        }
    }

    /// Returns the heading of an instance: the time of day if it is wanted, the name, and the
    /// length of a period.
    fn heading(self, args: &HistArgs, name: &str) -> String {
        let clock = if args.timestamp {
            format!("{} ", super::clock())
        } else {
            String::new()
        };
        match self {
            Time::Period(period) => format!("{clock}{name}, {}", Nanos(period.duration())),
            Time::Whole | Time::Interval(_) => format!("{clock}{name}"),
        }
    }
}

pub(crate) fn run(root: &ProcRoot, args: &HistArgs) -> Result<Outcome> {
    let mut names = super::names(root, args.name.as_deref())?;
    if args.by {
        let mut labels = ByLabel::new(root, args, &mut names)?;
        return run_by(&mut labels, args, &names);
    }
    if names.is_empty() {
        out::note("no instances; start one: latency-tracker start slow_disk block threshold=10ms");
    }
    let Some((interval, count)) = interval(&args.interval)? else {
        for name in &names {
            let period = period::wanted(root, args, name)?;
            let (histogram, time) = match &period {
                Some(period) => (period.all.histogram.clone(), Time::Period(period)),
                None => (root.histogram(name)?, Time::Whole),
            };
            show(args, name, &histogram, &root.stats(name)?, time)?;
        }
        return Ok(Outcome::Fine);
    };
    if args.live || args.svg.is_some() {
        return heat::run(root, args, &names, (interval, count));
    }
    let signals = Signals::catch()?;
    let mut before: HashMap<&str, Histogram> = HashMap::new();
    for name in &names {
        before.insert(name, root.histogram(name)?);
    }
    let mut next = Instant::now();
    for _ in 0..count {
        next += interval;
        if signals.wait(None, Some(next))? == Wake::Signal {
            break;
        }
        for name in &names {
            let now = root.histogram(name)?;
            let earlier = before.insert(name, now.clone()).unwrap_or_default();
            show(
                args,
                name,
                &now.since(&earlier),
                &root.stats(name)?,
                Time::Interval(interval),
            )?;
        }
    }
    Ok(Outcome::Fine)
}

/// Shows the delays by label, once or for each interval.
fn run_by(labels: &mut ByLabel<'_>, args: &HistArgs, names: &[String]) -> Result<Outcome> {
    let Some((interval, count)) = interval(&args.interval)? else {
        names.iter().try_for_each(|name| labels.show(name, None))?;
        return Ok(Outcome::Fine);
    };
    let signals = Signals::catch()?;
    names.iter().try_for_each(|name| labels.read(name))?;
    let mut next = Instant::now();
    for _ in 0..count {
        next += interval;
        if signals.wait(None, Some(next))? == Wake::Signal {
            break;
        }
        for name in names {
            labels.show(name, Some(interval))?;
        }
    }
    Ok(Outcome::Fine)
}

fn show(
    args: &HistArgs,
    name: &str,
    hist: &Histogram,
    stats: &Stats,
    time: Time<'_>,
) -> Result<()> {
    // The largest delay is known only for the whole life of the instance, and limits the delays of
    // any part of it.
    let max = match time {
        Time::Whole | Time::Period(_) => stats.count("max"),
        Time::Interval(_) => 0,
    };
    let percentiles = hist.percentiles(max);
    if args.json {
        return out::json(&Report {
            instance: name,
            span: time.span(),
            count: hist.count(),
            percentiles: percentiles.iter().map(|p| (p.name, p.ns)).collect(),
            buckets: &hist.buckets,
            stats,
        });
    }
    let unit = match (args.milliseconds, args.nanoseconds) {
        (true, _) => Unit::Msecs,
        (_, true) => Unit::Nsecs,
        _ => Unit::Usecs,
    };
    out::line(&time.heading(args, name))?;
    out::line(&Log2Hist::merge(hist, unit).to_string())?;
    for line in footer(&percentiles, hist.count(), stats, time) {
        out::line(&line)?;
    }
    out::line("")
}

fn footer(percentiles: &[Percentile], count: u64, stats: &Stats, time: Time<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if percentiles.is_empty() {
        lines.push("no operation has ended yet".to_string());
    } else {
        let known = percentiles.iter();
        let known: Vec<String> = known
            .map(|p| format!("{} {}", p.name, Nanos(p.ns)))
            .collect();
        lines.push(known.join("  "));
        lines.push("(percentiles are upper bounds, at most 1/8 above the true value)".to_string());
    }
    let n = |key| out::thousands(stats.count(key));
    if time.is_whole() && stats.count("ended") > 0 {
        let ns = |key| Nanos(stats.count(key));
        lines.push(format!(
            "min {}  mean {}  max {}",
            ns("min"),
            ns("mean"),
            ns("max")
        ));
    }
    let ended = out::thousands(count);
    lines.push(format!(
        "ended {ended}  pending {}  alerts {}",
        n("pending"),
        n("alerts")
    ));
    lines.push(format!(
        "lost: alerts {}, events {}",
        n("alerts_lost"),
        out::lost(stats)
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_footer_is_narrow_and_says_what_was_lost() {
        let hist = Histogram::parse("18000000000 20000000000 100000000").unwrap();
        let stats = Stats::parse(
            "ended 100000000\npending 64\nalerts 1234567\nalerts_lost 1234567\nfull 99999\nmin 1\nmean 2\nmax 18999999999\n",
        );
        let stats = stats.unwrap();
        let lines = footer(
            &hist.percentiles(stats.count("max")),
            hist.count(),
            &stats,
            Time::Whole,
        );
        assert!(lines.iter().all(|l| l.len() < 80), "{lines:?}");
        assert!(lines[0].starts_with("p50 19.00s"));
        assert_eq!(
            lines[4],
            "lost: alerts 1,234,567, events 99,999 (pool full)"
        );
    }
}
