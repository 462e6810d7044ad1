// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result: the modes side by side, and their ratios.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use lt_common::out;
use lt_proc::{Nanos, PERCENTILES};
use lt_readiness::Root;
use serde::Serialize;

use super::args::{Pace, RateArgs};
use super::emit::Made;
use super::run::Run;
use super::search::{Answer, FLOOR, MOST, Verdict};
use crate::clock::Known;
use crate::hold::Held;
use crate::measure::{Curve, Record, Statistics};
use crate::place::Place;
use crate::report::{self as common, Machine, Series};
use crate::show;

const NOT_TRACED: &str = "not traced";

/// The result for one mode: one way of waking the consumer.
#[derive(Debug, Serialize)]
pub(super) struct Mode {
    name: String,
    /// The period of the read timer, us.
    read_timer_us: u64,
    verdict: Verdict,
    /// The highest rate without a loss, events per second.
    lossless: Option<u64>,
    /// The lowest rate with a loss.
    lossy: Option<u64>,
    /// The full rate while traced, events per second.
    full: Option<u64>,
    /// Whether all events of a run at the lossless rate fit into the buffers, so that a longer run may lose some.
    fits: bool,
    runs: Vec<Run>,
    #[serde(skip)]
    each: Record,
    #[serde(skip)]
    pub(super) interrupted: bool,
}

/// A mode, relative to the first.
#[derive(Debug, Serialize)]
struct Ratio {
    name: String,
    to: String,
    lossless: Option<f64>,
    /// Ratio of the mean times of an event, at full rate or at the rate of --rate; the following fields are the ratios
    /// of the maximum, the variance and the deviation.
    mean: Option<f64>,
    max: Option<f64>,
    variance: Option<f64>,
    deviation: Option<f64>,
}

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    bench: &'static str,
    version: u32,
    #[serde(flatten)]
    machine: Machine,
    cpus: String,
    isolated: bool,
    priority: i32,
    clock: &'a Known,
    held: &'a [String],
    kind: &'static str,
    /// Number of events that LTTng records for one of ours.
    events_each: u64,
    subbuf_size: u64,
    num_subbuf: u64,
    /// Resolution of the search, in percent.
    resolution: f64,
    repeat: u64,
    /// The full rate without LTTng, events per second.
    untraced: u64,
    modes: Vec<Mode>,
    ratios: Vec<Ratio>,
    /// The times of an event: at full rate, or at the rate of --rate.
    series: Vec<Series>,
    interrupted: bool,
    pub(super) passed: bool,
    failed: Vec<String>,
}

impl Mode {
    pub(super) fn new(
        name: String,
        read_timer: Duration,
        answer: Answer,
        runs: Vec<Run>,
        each: Record,
        interrupted: bool,
    ) -> Self {
        let full = runs.iter().filter(|run| run.asked.is_none());
        let best = runs
            .iter()
            .filter(|run| run.lossless && Some(run.made) == answer.lossless);
        Self {
            name,
            read_timer_us: u64::try_from(read_timer.as_micros()).unwrap_or(u64::MAX),
            verdict: answer.verdict,
            lossless: answer.lossless,
            lossy: answer.lossy,
            full: full.map(|run| run.made).max(),
            fits: best.map(|run| run.fills).fold(f64::MAX, f64::min) < 1.0,
            runs,
            each,
            interrupted,
        }
    }

    /// Returns the reasons why the run fails.
    fn failed(&self, args: &RateArgs) -> Vec<String> {
        let mut failed = Vec::new();
        let name = &self.name;
        let n = out::thousands;
        match (self.verdict, self.lossy) {
            (Verdict::AlwaysLoses, _) => {
                failed.push(format!("{name}: events are lost even at {FLOOR}/s"));
            }
            (Verdict::Lossy, Some(rate)) => {
                failed.push(format!("{name}: events are lost at {}/s", n(rate)))
            }
            // An interrupted search is reported as ended early.
            (Verdict::Unsettled, _) if !self.interrupted => failed.push(format!(
                "{name}: no rate was found in {MOST} runs: use a lower --repeat or a higher --resolution"
            )),
            _ => {}
        }
        if let (Some(least), Some(rate)) = (args.min, self.lossless)
            && rate < least
        {
            failed.push(format!(
                "{name}: the lossless rate is {}/s, below {}/s",
                n(rate),
                n(least)
            ));
        }
        if let Some(run) = self.runs.iter().find(|run| run.too_many()) {
            failed.push(format!(
                "{name}: {} events are in the trace, and {} were made; please report this",
                n(run.kept),
                n(run.events)
            ));
        }
        failed
    }

    /// Formats a rate for the table.
    fn said(&self, rate: Option<u64>) -> String {
        rate.map_or("-".into(), |rate| format!("{}/s", out::thousands(rate)))
    }
}

impl Ratio {
    fn new(mode: &Mode, to: &Mode) -> Self {
        let rates = mode.lossless.zip(to.lossless);
        let both = mode.each.statistics().zip(to.each.statistics());
        let of = |value: fn(&Statistics) -> f64| {
            both.as_ref().and_then(|(a, b)| ratio(value(a), value(b)))
        };
        Self {
            name: mode.name.clone(),
            to: to.name.clone(),
            lossless: rates.and_then(|(a, b)| ratio(a as f64, b as f64)),
            mean: of(|s| s.mean),
            max: of(|s| s.max as f64),
            variance: of(|s| s.variance),
            deviation: of(|s| s.deviation),
        }
    }
}

/// Selects one of the numbers of a ratio.
type Value = fn(&Ratio) -> Option<f64>;

fn ratio(one: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| one / other)
}

impl<'a> Report<'a> {
    pub(super) fn new(
        args: &RateArgs,
        place: &Place,
        held: &'a Held,
        clock: &'a Known,
        untraced: &Made,
        modes: Vec<Mode>,
        interrupted: bool,
    ) -> Self {
        let cpu = place.cpus.first().unwrap_or(0);
        let named = modes.iter().map(|mode| (mode.name.as_str(), &mode.each));
        let all = std::iter::once((NOT_TRACED, &untraced.each)).chain(named);
        let phase = match args.rate {
            Some(Pace::Events(_)) => "paced",
            Some(Pace::Full) | None => "full",
        };
        let series = all.filter_map(|(name, each)| Series::new(name.into(), cpu, phase, each));
        let failed: Vec<String> = modes.iter().flat_map(|mode| mode.failed(args)).collect();
        let ratios = modes.first().map_or(Vec::new(), |first| {
            modes[1..]
                .iter()
                .map(|mode| Ratio::new(mode, first))
                .collect()
        });
        let buffers = args.buffers();
        Self {
            bench: "rate",
            version: 1,
            machine: Machine::here(Root::new("/").cpu_flag("hypervisor").ok()),
            cpus: place.cpus.to_string(),
            isolated: place.isolated,
            priority: args.priority,
            clock,
            held: &held.said,
            kind: args.kind.name(),
            events_each: args.kind.per(),
            subbuf_size: buffers.subbuf_size,
            num_subbuf: buffers.num_subbuf,
            resolution: args.resolution,
            repeat: args.repeat,
            untraced: untraced.rate(),
            series: series.collect(),
            modes,
            ratios,
            interrupted,
            passed: failed.is_empty() && !interrupted,
            failed,
        }
        .at_one_rate(args)
    }

    /// With a rate in --rate, drops the times without LTTng, which are at full rate.
    fn at_one_rate(mut self, args: &RateArgs) -> Self {
        if matches!(args.rate, Some(Pace::Events(_))) {
            self.series.retain(|series| series.name != NOT_TRACED);
        }
        self
    }

    /// Writes the requested files.
    pub(super) fn write(&self, files: &[PathBuf]) -> Result<()> {
        let title = self.machine.title(self.bench, &self.cpus);
        let curves: Vec<Curve> = self.series.iter().map(Series::curve).collect();
        common::write(files, self, &title, &curves)
    }

    pub(super) fn show(&self) -> Result<()> {
        out::line(&format!(
            "{} events on CPU {}; buffers: {} x {} on each CPU; not traced: {}/s",
            self.kind,
            self.cpus,
            self.num_subbuf,
            out::bytes(self.subbuf_size),
            out::thousands(self.untraced)
        ))?;
        if self.events_each > 1 {
            out::line(&format!(
                "LTTng records each as {} events.",
                self.events_each
            ))?;
        }
        self.rates()?;
        self.times()?;
        for mode in self.modes.iter().filter(|mode| mode.fits) {
            out::line(&format!(
                "{}: at the lossless rate all events of a run fit into the buffers, so a longer run may lose \
                 events: raise --time, or use smaller --buffers",
                mode.name
            ))?;
        }
        let runs = || self.modes.iter().flat_map(|mode| &mode.runs);
        let untold = runs().filter(|run| run.untold > 0).count();
        if untold > 0 {
            out::line(&format!(
                "In {untold} of {}, more events were missing than LTTng's counters and the trace show.",
                out::plural(runs().count(), "run")
            ))?;
        }
        if self.machine.guest == Some(true) {
            out::line("This is a virtual machine, so the rates depend on its host.")?;
        }
        if self.interrupted {
            return out::line("ended early: partial results");
        }
        show::verdict(&self.failed, "a rate was found in each mode")
    }

    /// Prints the rates of each mode.
    fn rates(&self) -> Result<()> {
        let mut head = vec![String::new()];
        head.extend(self.modes.iter().map(|mode| format!(">{}", mode.name)));
        let row = |name: &str, value: &dyn Fn(&Mode) -> String| {
            let mut row = vec![name.to_string()];
            row.extend(self.modes.iter().map(value));
            row
        };
        let mut rows = vec![
            row("highest lossless", &|m| match m.verdict {
                Verdict::NoLoss => format!("{} or more", m.said(m.lossless)),
                Verdict::AlwaysLoses => format!("below {FLOOR}/s"),
                _ => m.said(m.lossless),
            }),
            row("lowest lossy", &|m| m.said(m.lossy)),
            row("at full rate", &|m| m.said(m.full)),
            row("runs", &|m| m.runs.len().to_string()),
        ];
        self.with_ratio(
            &mut head,
            &mut rows,
            &[("highest lossless", |r| r.lossless)],
        );
        table(&head, &rows)
    }

    /// Prints the times of an event.
    fn times(&self) -> Result<()> {
        if self.series.is_empty() {
            return Ok(());
        }
        let mut head = vec!["time of an event".to_string()];
        head.extend(self.series.iter().map(|series| format!(">{}", series.name)));
        let row =
            |name: &str, value: &dyn Fn(&Series) -> String| show::row(&self.series, name, value);
        let mut rows = vec![
            row("min", &|s| format!("{}ns", s.statistics.min)),
            row("mean", &|s| format!("{:.1}ns", s.statistics.mean)),
            row("std dev", &|s| format!("{:.1}ns", s.statistics.deviation)),
            row("variance", &|s| format!("{:.3e}ns2", s.statistics.variance)),
        ];
        for (name, _) in PERCENTILES {
            rows.push(row(name, &|s| {
                let ns = s.percentiles.get(name);
                ns.map_or("-".into(), |ns| Nanos(*ns).to_string())
            }));
        }
        rows.push(row("max", &|s| Nanos(s.statistics.max).to_string()));
        self.with_ratio(
            &mut head,
            &mut rows,
            &[
                ("mean", |r| r.mean),
                ("std dev", |r| r.deviation),
                ("variance", |r| r.variance),
                ("max", |r| r.max),
            ],
        );
        table(&head, &rows)
    }

    /// With two modes, adds a column with the ratio of the second to the first.
    fn with_ratio(&self, head: &mut Vec<String>, rows: &mut [Vec<String>], of: &[(&str, Value)]) {
        let [ratio] = self.ratios.as_slice() else {
            return;
        };
        head.push(">ratio".into());
        for row in rows {
            let value = of
                .iter()
                .find(|(name, _)| row.first().is_some_and(|first| first == name));
            let value = value.and_then(|(_, value)| value(ratio));
            row.push(value.map_or(String::new(), |value| format!("{value:.3}")));
        }
    }
}

fn table(head: &[String], rows: &[Vec<String>]) -> Result<()> {
    out::line("")?;
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    out::table(&head, rows)
        .iter()
        .try_for_each(|line| out::line(line))
}

#[cfg(test)]
mod tests {
    use super::super::search;
    use super::*;
    use crate::args::{BenchCommand, tests::parse_bench};

    #[test]
    fn a_search_that_gives_up_has_found_no_rate() {
        let BenchCommand::Rate(args) = &parse_bench("rate", &[]).unwrap() else {
            panic!()
        };
        let failed = |interrupted| {
            let (answer, each) = (search::so_far(&[]), Record::default());
            let mode = Mode::new(
                "m".into(),
                Duration::ZERO,
                answer,
                Vec::new(),
                each,
                interrupted,
            );
            mode.failed(args)
        };
        assert!(failed(false)[0].starts_with("m: no rate was found in 60 runs"));
        assert!(failed(true).is_empty());
    }
}
