// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `list NAME -i`: the counters of an instance, and their rates.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use lt_common::Outcome;
use lt_common::out::{self, Colour};
use lt_common::wait::{Signals, Wake};
use lt_proc::{Nanos, ProcRoot, Stats};
use serde::Serialize;

use super::counter;
use crate::cmd::restarted;

/// Statistics of all delays so far, which have no rate. Values that can decrease have no rate, either.
const OF_ALL_DELAYS: [&str; 3] = ["min", "mean", "max"];

/// The output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    instance: &'a str,
    /// The length of the interval, ns.
    interval: u64,
    stats: &'a Stats,
    per_second: BTreeMap<&'a str, f64>,
}

/// Shows the counters after each interval, `count` times.
pub(super) fn show(
    root: &ProcRoot,
    name: &str,
    json: bool,
    (interval, count): (Duration, u64),
) -> Result<Outcome> {
    let signals = Signals::catch()?;
    let read = || root.of_one(name, || root.stats(name));
    let ((mut created, mut before), mut at) = (read()?, Instant::now());
    let mut next = at;
    for _ in 0..count {
        next += interval;
        if signals.wait(None, Some(next))? == Wake::Signal {
            break;
        }
        let ((is_of, now), read_at) = (read()?, Instant::now());
        let took = read_at - at;
        if is_of != created {
            out::note(&restarted(name));
            before = Stats::default();
        }
        if json {
            let per_second = rates(&before, &now, took).collect();
            out::json(&Report {
                instance: name,
                interval: took.as_nanos() as u64,
                stats: &now,
                per_second,
            })?;
        } else {
            text(name, &before, &now, took)?;
        }
        (created, before, at) = (is_of, now, read_at);
    }
    Ok(Outcome::Fine)
}

/// The increase of each counter per second.
fn rates<'a>(
    before: &'a Stats,
    now: &'a Stats,
    took: Duration,
) -> impl Iterator<Item = (&'a str, f64)> {
    let counts = now
        .iter()
        .filter(|(key, _)| !Stats::is_level(key) && !OF_ALL_DELAYS.contains(key));
    counts.map(move |(key, n)| {
        let more = n.saturating_sub(before.count(key));
        (key, more as f64 / took.as_secs_f64())
    })
}

fn text(name: &str, before: &Stats, now: &Stats, took: Duration) -> Result<()> {
    let rates: BTreeMap<&str, f64> = rates(before, now, took).collect();
    let row = |(key, n): (&str, u64)| {
        let mut cells = counter(key, n);
        let rate = rates.get(key).map(|rate| per_second(*rate));
        cells.insert(2, rate.unwrap_or_default());
        cells
    };
    let rows: Vec<_> = now.iter().filter(|(_, n)| *n > 0).map(row).collect();
    let took = Nanos(took.as_nanos() as u64);
    out::line(&out::paint(Colour::Bold, &format!("{name}, in {took}")))?;
    for line in out::table(&["  COUNTER", ">VALUE", ">PER SECOND", "WHAT"], &rows) {
        out::line(&out::fit_line(&line))?;
    }
    out::line("")
}

/// Formats a rate, with a decimal place if it is small.
fn per_second(rate: f64) -> String {
    match rate {
        0.0 => "0".into(),
        ..0.05 => "<0.1".into(),
        ..9.95 => format!("{rate:.1}"),
        _ => out::thousands(rate.round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_increase_in_the_time() {
        let stats = |text| Stats::parse(text).unwrap();
        let before = stats("attempts 100\npending 9\nended 10\nwork_free 1\n");
        let now = stats("attempts 1100\npending 3\nended 11\nalerts 0\nwork_free 4\n");
        let rates: Vec<_> = rates(&before, &now, Duration::from_secs(2)).collect();
        assert_eq!(
            rates,
            [("attempts", 500.0), ("ended", 0.5), ("alerts", 0.0)]
        );
    }

    #[test]
    fn small_rates_are_not_0() {
        let shown = [0.0, 0.01, 0.5, 9.94, 9.96, 12_345.6].map(per_second);
        assert_eq!(shown, ["0", "<0.1", "0.5", "9.9", "10", "12,346"]);
    }
}
