// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result: what `--json` prints, and the verdict.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lt_common::{Outcome, out};
use lt_proc::{Bucket, Nanos, PERCENTILES};
use serde::Serialize;

use super::args::{EventKind, LoopArgs};
use super::arm::Lost;
use super::clock::Known;
use super::hold::Held;
use super::peak::{Peak, Where};
use super::phase::{ARMED, BASELINE, Phase};
use super::place::Place;
use crate::measure::{Curve, Record, Statistics, picture, table};

/// The histogram of one CPU in one phase.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    pub(super) name: String,
    cpu: u32,
    phase: &'static str,
    #[serde(flatten)]
    pub(super) statistics: Statistics,
    /// Upper bounds of bins, at most 1/8 above the true value.
    pub(super) percentiles: BTreeMap<&'static str, u64>,
    pub(super) peaks: u64,
    pub(super) events: u64,
    /// Time in which nothing was measured because a peak was being examined, ns.
    pub(super) away: u64,
    pub(super) bins: Vec<Bucket>,
}

/// The machine of the measurement.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    host: String,
    kernel: String,
    /// Whether it is a virtual machine, whose host may cause the longest sample; null if unknown.
    pub(super) guest: Option<bool>,
}

impl Machine {
    pub(super) fn here(guest: Option<bool>) -> Self {
        let uname = nix::sys::utsname::uname();
        let of = |text: Option<&std::ffi::OsStr>| {
            text.map_or(String::new(), |t| t.to_string_lossy().into_owned())
        };
        Self {
            host: of(uname.as_ref().ok().map(|u| u.nodename())),
            kernel: of(uname.as_ref().ok().map(|u| u.release())),
            guest,
        }
    }

    /// Returns the title of a picture.
    pub(super) fn title(&self, bench: &str, cpus: &str) -> String {
        format!(
            "bench {bench} on {}, CPU {cpus}, Linux {}",
            self.host, self.kernel
        )
    }
}

/// The whole report.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    bench: &'static str,
    version: u32,
    #[serde(flatten)]
    pub(super) machine: Machine,
    pub(super) cpus: String,
    pub(super) isolated: bool,
    /// Whether the loop ran in the kernel, with interrupts off.
    in_kernel: bool,
    pub(super) priority: i32,
    pub(super) clock: &'a Known,
    held: &'a [String],
    /// ns.
    pub(super) threshold: u64,
    event: Option<&'static str>,
    pub(super) series: Vec<Series>,
    pub(super) peaks: &'a [Peak],
    /// What --arm or --snapshot adds to each percentile, ns.
    pub(super) added: Option<BTreeMap<&'static str, i64>>,
    /// Whether nothing was lost.
    pub(super) complete: bool,
    pub(super) lost: Lost,
    pub(super) passed: bool,
    /// Why the run failed.
    pub(super) failed: Vec<String>,
}

/// The key of the longest sample among the percentiles.
const MAX: &str = "max";
/// The percentile that --max-added limits.
const JUDGED: &str = "p99.99";

impl<'a> Report<'a> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a run, put together once"
    )]
    pub(super) fn new(
        args: &LoopArgs,
        place: &Place,
        held: &'a Held,
        clock: &'a Known,
        at: Where,
        phases: &[Phase],
        peaks: &'a [Peak],
        lost: Lost,
    ) -> Self {
        let added = added(phases);
        let count = phases
            .iter()
            .flat_map(|p| &p.found)
            .map(|(_, found)| found.peaks)
            .sum();
        let failed = failed(args, count, added.as_ref(), lost);
        Self {
            bench: "loop",
            version: 1,
            machine: Machine::here(at.guest),
            cpus: place.cpus.to_string(),
            isolated: place.isolated,
            in_kernel: args.in_kernel,
            priority: args.priority,
            clock,
            held: &held.said,
            threshold: args.threshold.0,
            event: (args.event == EventKind::Syscall).then_some("getppid"),
            series: series(phases),
            peaks,
            added,
            complete: lost.nothing(),
            lost,
            passed: failed.is_empty(),
            failed,
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.passed {
            true => Outcome::Fine,
            false => Outcome::Alert,
        }
    }

    /// Writes the requested files. Their extensions are the formats.
    pub(super) fn write(&self, files: &[PathBuf]) -> Result<()> {
        let title = self.machine.title(self.bench, &self.cpus);
        let curves: Vec<Curve> = self.series.iter().map(Series::curve).collect();
        write(files, self, &title, &curves)
    }
}

impl Series {
    /// Creates the series of these samples; `None` if there are none.
    pub(super) fn new(
        name: String,
        cpu: u32,
        phase: &'static str,
        samples: &Record,
    ) -> Option<Self> {
        let statistics = samples.statistics()?;
        let bins = samples.histogram();
        let percentiles = bins.percentiles(statistics.max);
        Some(Self {
            name,
            cpu,
            phase,
            statistics,
            percentiles: percentiles.iter().map(|p| (p.name, p.ns)).collect(),
            peaks: 0,
            events: 0,
            away: 0,
            bins: bins.buckets,
        })
    }

    pub(super) fn curve(&self) -> Curve {
        Curve {
            name: self.name.clone(),
            bins: lt_proc::Histogram {
                buckets: self.bins.clone(),
            },
            over: 0,
            min: Some(self.statistics.min),
            mean: Some(self.statistics.mean),
            max: Some(self.statistics.max),
        }
    }
}

/// Writes the requested files. The extension selects the report itself, or a picture or a table of
/// these curves.
pub(super) fn write(
    files: &[PathBuf],
    report: &impl Serialize,
    title: &str,
    curves: &[Curve],
) -> Result<()> {
    for file in files {
        let text = match file.extension().and_then(|end| end.to_str()) {
            Some("json") => serde_json::to_string_pretty(report)? + "\n",
            _ => drawn(file, title, curves),
        };
        fs::write(file, text).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// Returns a picture or a table of the curves.
pub(super) fn drawn(file: &Path, title: &str, curves: &[Curve]) -> String {
    match file.extension().is_some_and(|end| end == "svg") {
        true => picture(title, curves),
        false => table(curves),
    }
}

/// Checks the output files before the measurement, so that a bad path does not lose the result.
pub(super) fn check_outputs(files: &[PathBuf]) -> Result<()> {
    for file in files {
        let parent = file
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        if !parent.is_dir() {
            bail!(
                "-o {}: there is no directory {}",
                file.display(),
                parent.display()
            );
        }
        if file.is_dir() {
            bail!("-o {}: that is a directory", file.display());
        }
    }
    Ok(())
}

fn series(phases: &[Phase]) -> Vec<Series> {
    let mut all = Vec::new();
    for phase in phases {
        for (cpu, found) in &phase.found {
            for (samples, words) in [(&found.samples, ""), (&found.quiet, ", quiet")] {
                let phase_words = match phase.name {
                    BASELINE | ARMED => format!(", {}", phase.name),
                    _ => String::new(),
                };
                let name = format!("CPU {cpu}{phase_words}{words}");
                let Some(mut series) = Series::new(name, *cpu, phase.name, samples) else {
                    continue;
                };
                // These counts cover the samples in bursts and between them, so they are reported once.
                if words.is_empty() {
                    series.peaks = found.peaks;
                    series.events = found.events;
                    series.away = found.away;
                }
                all.push(series);
            }
        }
    }
    all
}

/// Returns by how much each percentile and the maximum rose from the baseline to the armed phase, all CPUs together.
fn added(phases: &[Phase]) -> Option<BTreeMap<&'static str, i64>> {
    let whole = |name: &str| {
        let phase = phases.iter().find(|phase| phase.name == name)?;
        let mut record = Record::default();
        for (_, found) in &phase.found {
            record.merge(&found.samples);
        }
        let statistics = record.statistics()?;
        let percentiles = record.histogram().percentiles(statistics.max);
        let mut all: BTreeMap<&'static str, i64> =
            percentiles.iter().map(|p| (p.name, signed(p.ns))).collect();
        all.insert(MAX, signed(statistics.max));
        Some(all)
    };
    let (baseline, armed) = (whole(BASELINE)?, whole(ARMED)?);
    let names = PERCENTILES.iter().map(|(name, _)| *name).chain([MAX]);
    Some(
        names
            .filter_map(|name| Some((name, armed.get(name)? - baseline.get(name)?)))
            .collect(),
    )
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Returns the reasons why the run fails.
fn failed(
    args: &LoopArgs,
    peaks: u64,
    added: Option<&BTreeMap<&'static str, i64>>,
    lost: Lost,
) -> Vec<String> {
    let mut failed = Vec::new();
    if peaks > 0 {
        let loops = out::plural(usize::try_from(peaks).unwrap_or(usize::MAX), "loop");
        failed.push(format!("{loops} took {} or longer", args.threshold));
    }
    if let (Some(limit), Some(added)) = (args.max_added, added)
        && let Some(by) = added.get(JUDGED).filter(|by| **by > signed(limit.0))
    {
        failed.push(format!(
            "{JUDGED} is {} longer than in the baseline, the limit is {limit}",
            Nanos(by.unsigned_abs())
        ));
    }
    failed.extend(lost.failed());
    failed
}
#[cfg(test)]
mod tests {
    use super::super::spin::Found;
    use super::*;

    fn phase(name: &'static str, samples: &[u64]) -> Phase {
        let mut found = Found::default();
        samples.iter().for_each(|ns| found.samples.add(*ns));
        Phase {
            name,
            found: vec![(3, found)],
        }
    }

    #[test]
    fn added_is_the_difference_of_the_two_phases() {
        let phases = [
            phase(BASELINE, &[100, 100, 100, 500]),
            phase(ARMED, &[100, 200, 200, 400]),
        ];
        let added = added(&phases).unwrap();
        assert_eq!(added[MAX], -100);
        // Upper bounds of bins: 103 and 207.
        assert_eq!(added["p50"], 104);
        assert_eq!(super::added(&phases[..1]), None);
    }

    #[test]
    fn series_have_names_and_invariants() {
        let mut phases = [phase("plain", &[1, 2, 3])];
        phases[0].found[0].1.quiet.add(9);
        phases[0].found[0].1.peaks = 2;
        let series = series(&phases);
        let names: Vec<&str> = series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["CPU 3", "CPU 3, quiet"]);
        assert_eq!(series.iter().map(|s| s.peaks).sum::<u64>(), 2, "told once");
        for s in &series {
            assert_eq!(
                s.bins.iter().map(|b| b.count).sum::<u64>(),
                s.statistics.loops
            );
        }
    }

    #[test]
    fn the_verdict_names_what_failed() {
        use crate::args::{BenchCommand, tests::parse_bench};
        let line = ["--max-added", "1us", "-t", "50us"];
        let BenchCommand::Loop(args) = &parse_bench("loop", &line).unwrap() else {
            panic!()
        };
        let fine = Lost::default();
        assert!(failed(args, 0, None, fine).is_empty());
        assert_eq!(
            failed(args, 2, None, fine),
            ["2 loops took 50.00us or longer"]
        );
        assert_eq!(
            failed(args, 1, None, fine),
            ["1 loop took 50.00us or longer"]
        );
        let added = |by| BTreeMap::from([(JUDGED, by)]);
        assert!(failed(args, 0, Some(&added(1000)), fine).is_empty());
        assert!(failed(args, 0, Some(&added(-5000)), fine).is_empty());
        assert!(
            failed(args, 0, Some(&added(1001)), fine)[0].contains("longer than in the baseline")
        );
        let lost = Lost {
            peaks: 1,
            alerts: 2,
            unread: 3,
            dropped: 4,
            operations: 5,
            events: 6,
            lttng: 7,
        };
        assert_eq!(failed(args, 0, None, lost).len(), 6, "all but `dropped`");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_at_once() {
        assert!(check_outputs(&["/nowhere/at/all/x.json".into()]).is_err());
        assert!(check_outputs(&["x.json".into()]).is_ok());
    }
}
