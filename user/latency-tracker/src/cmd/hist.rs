// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist`: how long operations took. Prints a log2 histogram like bcc's, percentiles from the
//! kernel's finer buckets, and the counters that show whether any delay is missing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out;
use lt_common::seconds::interval;
use lt_common::wait::{Signals, Wake};
use lt_proc::{Bucket, Histogram, Log2Hist, Nanos, Percentile, ProcError, ProcRoot, Stats, Unit};
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
    /// The length of the interval; `None`: since the start of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<u64>,
    count: u64,
    /// Upper bounds of buckets.
    percentiles: BTreeMap<&'static str, u64>,
    buckets: &'a [Bucket],
    stats: &'a Stats,
}

pub(crate) fn run(root: &ProcRoot, args: &HistArgs) -> Result<Outcome> {
    let mut names = super::names(root, args.name.as_deref())?;
    if args.by && (args.reset || args.since_reset) {
        ByLabel::new(root, args, &mut names)?;
    }
    if args.reset || args.since_reset {
        return period::run(root, args, &names);
    }
    if args.by {
        let mut labels = ByLabel::new(root, args, &mut names)?;
        return run_by(&mut labels, args, &names);
    }
    if names.is_empty() {
        out::note("no instances; start one: latency-tracker start slow_disk block threshold=10ms");
    }
    let Some((interval, count)) = interval(&args.interval)? else {
        for name in &names {
            show(args, name, &root.histogram(name)?, &root.stats(name)?, None)?;
        }
        return Ok(Outcome::Fine);
    };
    if args.live || args.svg.is_some() {
        return heat::run(root, args, &names, (interval, count));
    }
    let signals = Signals::catch()?;
    let mut before: Vec<OfOne<Histogram>> = Vec::new();
    for name in &names {
        before.push(root.of_one(name, || root.histogram(name))?);
    }
    let mut next = Instant::now();
    for _ in 0..count {
        next += interval;
        if signals.wait(None, Some(next))? == Wake::Signal {
            break;
        }
        for (name, last) in names.iter().zip(&mut before) {
            let delays = since(root, name, last, || root.histogram(name), Histogram::since)?;
            show(args, name, &delays, &root.stats(name)?, Some(interval))?;
        }
    }
    Ok(Outcome::Fine)
}

/// When an instance was created, and a reading of it: see [`ProcRoot::of_one`].
type OfOne<T> = (Option<u64>, T);

/// Returns the delays since the reading in `last`, and stores the new reading there. If the instance was replaced since
/// then, returns all delays of the new instance.
fn since<T: Clone>(
    root: &ProcRoot,
    name: &str,
    last: &mut OfOne<T>,
    read: impl Fn() -> Result<T, ProcError>,
    difference: impl Fn(&T, &T) -> T,
) -> Result<T, ProcError> {
    let now = root.of_one(name, read)?;
    let delays = match now.0 == last.0 {
        true => difference(&now.1, &last.1),
        false => {
            out::note(&super::restarted(name));
            now.1.clone()
        }
    };
    *last = now;
    Ok(delays)
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
    interval: Option<Duration>,
) -> Result<()> {
    // The largest delay is known only for the whole life of the instance.
    let max = if interval.is_none() {
        stats.count("max")
    } else {
        0
    };
    let percentiles = hist.percentiles(max);
    if args.json {
        return out::json(&Report {
            instance: name,
            interval: interval.map(|i| i.as_nanos() as u64),
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
    let time = if args.timestamp {
        format!("{} ", lt_common::clock::now())
    } else {
        String::new()
    };
    out::line(&format!("{time}{name}"))?;
    out::line(&Log2Hist::merge(hist, unit).to_string())?;
    for line in footer(&percentiles, hist.count(), stats, interval.is_none()) {
        out::line(&line)?;
    }
    out::line("")
}

/// Marks counters that cover the whole life of the instance, when they are printed below the delays of an interval.
const SINCE: &str = " since the start";

fn footer(percentiles: &[Percentile], count: u64, stats: &Stats, whole: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if percentiles.is_empty() {
        let when = if whole { "yet" } else { "in this interval" };
        lines.push(format!("no delay recorded {when}"));
    } else {
        let known = percentiles.iter();
        let known: Vec<String> = known
            .map(|p| format!("{} {}", p.name, Nanos(p.ns)))
            .collect();
        lines.push(known.join("  "));
        lines.push("(percentiles are upper bounds, at most 1/8 above the true value)".to_string());
    }
    let n = |key| out::thousands(stats.count(key));
    if whole && count > 0 {
        let ns = |key| Nanos(stats.count(key));
        lines.push(format!(
            "min {}  mean {}  max {}",
            ns("min"),
            ns("mean"),
            ns("max")
        ));
    }
    let ended = out::thousands(count);
    let since = if whole { "" } else { SINCE };
    lines.push(format!(
        "ended {ended}  pending {}  alerts{since} {}",
        n("pending"),
        n("alerts")
    ));
    lines.push(format!(
        "lost{since}: alerts {}, events {}",
        n("alerts_lost"),
        out::lost(stats)
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delays_of_an_interval_are_of_one_instance() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        std::fs::create_dir(directory.path().join("slow")).unwrap();
        let mut last = (Some(5), Histogram::parse("64 72 3\n").unwrap());
        for (created, histogram, count) in [
            ("5\n", "64 72 5\n", 2),
            // Another instance has counted more since its creation.
            ("9\n", "64 72 7\n88 96 1\n", 8),
            ("9\n", "64 72 7\n88 96 2\n", 1),
            ("12\n", "", 0),
        ] {
            for (file, text) in [("created", created), ("histogram", histogram)] {
                std::fs::write(directory.path().join("slow").join(file), text).unwrap();
            }
            let read = || root.histogram("slow");
            let delays = since(&root, "slow", &mut last, read, Histogram::since).unwrap();
            assert_eq!(delays.count(), count, "{created}{histogram}");
        }
    }

    #[test]
    fn the_footer_is_narrow_and_names_the_losses() {
        let hist = Histogram::parse("18000000000 20000000000 100000000").unwrap();
        let stats = Stats::parse(
            "ended 100000000\npending 64\nalerts 1234567\nalerts_lost 1234567\nfull 99999\nmin 1\nmean 2\nmax 18999999999\n",
        );
        let stats = stats.unwrap();
        let lines = footer(
            &hist.percentiles(stats.count("max")),
            hist.count(),
            &stats,
            true,
        );
        assert!(lines.iter().all(|l| l.len() < 80), "{lines:?}");
        assert!(lines[0].starts_with("p50 19.00s"));
        assert_eq!(
            lines[4],
            "lost: alerts 1,234,567, events 99,999 (pool full)"
        );
        // The counters cover the time since the start, not an interval.
        let lines = footer(&hist.percentiles(0), hist.count(), &stats, false);
        assert_eq!(
            lines[2..],
            [
                "ended 100,000,000  pending 64  alerts since the start 1,234,567",
                "lost since the start: alerts 1,234,567, events 99,999 (pool full)",
            ]
        );
        // The delays of operations that began before the start are unknown, not 0.
        let stats = Stats::parse("ended 3\nbefore_start_ended 3\nmin 0\nmean 0\nmax 0\n");
        let lines = footer(&[], 0, &stats.unwrap(), true);
        assert_eq!(lines[0], "no delay recorded yet");
        assert!(
            lines.iter().all(|line| !line.starts_with("min")),
            "{lines:?}"
        );
    }
}
