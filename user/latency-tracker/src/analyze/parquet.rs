// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `--parquet`: what an analysis found, as rows for SQL over many hosts.
//!
//! ```text
//! measured operations --tables/operations.rs--> intervals \
//! paths, states, waits --parquet/edges.rs-----> edges,     > lt_parquet --> DIR/TABLE/host=NAME/TRACE.SCOPE.PART.parquet
//!                                               intervals |
//! alerts of the trace or its capture, gaps, coverage     /
//! ```

pub(crate) mod edges;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Result, anyhow};
use clap::Args;
use lt_common::out::{self, note};
use lt_parquet::{Batch, Coverage, Done, Gap};
use lt_proc::Alert;

use crate::trace::{Identity, Told};

/// Reads the alerts that were recorded with a trace.
pub(crate) type Alerts = fn(&Path, &AtomicBool) -> Result<Vec<Alert>>;

/// A time in which a CPU was not recorded: the CPU, start, end and reason. The start is 0 if the CPU is not recorded at
/// the start of the trace, and the end is `u64::MAX` if the CPU is not recorded at the end of the trace.
pub(super) type Dark = (u32, (u64, u64), &'static str);

/// The reason why nothing is recorded between two traces.
const BETWEEN: &str = "between-traces";

/// The scope of alerts, which every analysis of a trace writes alike.
const ALERTS: &str = "alerts";

/// The name of `explain` in the rows.
pub(crate) const EXPLAIN: &str = "explain";

#[derive(Debug, Args)]
pub(crate) struct ParquetArgs {
    /// Also write the results and the alerts as rows of Parquet below this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
    /// Name of the host for --parquet; by default the one in the trace.
    #[arg(long, value_name = "NAME", requires = "parquet", value_parser = lt_parquet::host)]
    pub(crate) host: Option<String>,
}

/// Checks that the traces of a host with this name can have rows.
///
/// # Errors
/// If the name cannot be that of a partition, and there is no `--host`.
pub(crate) fn check_host(args: &ParquetArgs, name: &str) -> Result<()> {
    if args.parquet.is_none() || args.host.is_some() {
        return Ok(());
    }
    let checked = lt_parquet::host(name).map_err(|expected| {
        anyhow!(
            "this host is named {:?}: {expected}; name another one with --host",
            out::printable(name)
        )
    });
    checked.map(drop)
}

/// The files of an analysis.
pub(crate) struct Output {
    pub(super) batch: Batch,
    /// Names the rows that a second run replaces: the analysis, and for `path` and `delays` also the thread.
    pub(super) scope: String,
    analysis: &'static str,
    directory: PathBuf,
    host: String,
    identity: Identity,
    alerts: Vec<Alert>,
    earlier: Vec<lt_parquet::Covered>,
}

impl Output {
    /// Prepares the files; `None` without `--parquet`. Removes what killed runs have left. Nothing is created yet.
    pub(crate) fn open(
        args: &ParquetArgs,
        trace: &Path,
        analysis: &'static str,
        alerts: Alerts,
        interrupted: &AtomicBool,
    ) -> Result<Option<Self>> {
        let Some(directory) = &args.parquet else {
            return Ok(None);
        };
        let identity = Identity::of(trace)?;
        let host = match (&args.host, &identity.host) {
            (Some(host), _) => host.clone(),
            (None, Some(host)) => lt_parquet::host(host).map_err(|expected| {
                anyhow!(
                    "{}: the trace names its host {:?}: {expected}; name another one with --host",
                    trace.display(),
                    out::printable(host)
                )
            })?,
            (None, None) => {
                return Err(anyhow!(
                    "{}: the trace does not name its host; name it with --host",
                    trace.display()
                ));
            }
        };
        let left = lt_parquet::remove_left(directory, &host);
        if left > 0 {
            note(&format!(
                "{}: removed {} that a killed run left",
                directory.display(),
                out::plural(left, "unfinished file")
            ));
        }
        let by = concat!("latency-tracker version ", env!("CARGO_PKG_VERSION"));
        Ok(Some(Self {
            batch: Batch::new(directory, &host, &identity.id, by),
            scope: analysis.into(),
            analysis,
            earlier: match analysis {
                // Captures may overlap. The time of an alert in several of them shows that it is one alert.
                EXPLAIN => Vec::new(),
                _ => lt_parquet::covered(directory, &host)?,
            },
            directory: directory.clone(),
            host,
            alerts: alerts(trace, interrupted)?,
            identity,
        }))
    }

    /// The trace and the analysis as text: the first values of each row.
    pub(super) fn names(&self) -> (Option<String>, Option<String>) {
        (Some(self.identity.id.clone()), Some(self.analysis.into()))
    }

    /// Converts a time of the trace's clock to us since 1970; `None` if the trace does not record the time of day.
    pub(super) fn utc(&self, ns: u64) -> Option<i64> {
        utc(self.identity.utc_offset, ns)
    }

    /// The row of `coverage` for one kind of operation in a range.
    pub(super) fn coverage(&self, kind: &str, (from, to): (u64, u64), told: &Told) -> Coverage {
        let (trace, analysis) = self.names();
        Coverage {
            trace,
            analysis,
            kind: Some(kind.into()),
            start_utc: self.utc(from),
            end_utc: self.utc(to),
            start_ns: int(from),
            end_ns: int(to),
            utc_offset_ns: self.identity.utc_offset,
            boot: self.identity.boot.clone(),
            kernel: self.identity.kernel.clone(),
            events_lost: int(told.lost),
            packets_lost: int(told.packets),
            version: Some(env!("CARGO_PKG_VERSION").into()),
            ..Coverage::default()
        }
    }

    /// The rows of `gaps` for the part of these times that is in a range. The rows of a CPU do not overlap. `tid` is the
    /// analyzed thread, if there is only one.
    pub(super) fn gaps(
        &self,
        tid: Option<i64>,
        (from, to): (u64, u64),
        told: &Told,
        dark: impl Iterator<Item = Dark>,
    ) -> Vec<Gap> {
        // The time between two traces comes first, so that it keeps its reason: it is also reported as lost.
        let between = told.between().map(|(cpu, time)| (cpu, time, BETWEEN));
        let mut of_cpus: BTreeMap<u32, Parts> = BTreeMap::new();
        for (cpu, (begin, end), why) in between.chain(dark) {
            let part = (begin.max(from), end.min(to));
            fill(of_cpus.entry(cpu).or_default(), part, why);
        }
        let mut rows = Vec::new();
        for (cpu, parts) in &of_cpus {
            for (begin, (end, why)) in parts {
                let gap = self.gap(*cpu, (*begin, *end), why);
                rows.push(Gap { tid, ..gap });
            }
        }
        rows
    }

    fn gap(&self, cpu: u32, (from, to): (u64, u64), why: &str) -> Gap {
        let (trace, analysis) = self.names();
        Gap {
            trace,
            analysis,
            cpu: Some(cpu.into()),
            start_utc: self.utc(from),
            end_utc: self.utc(to),
            start_ns: int(from),
            end_ns: int(to),
            why: Some(why.into()),
            tid: None,
        }
    }

    /// Writes alerts, gaps and coverage, gives all files their names, and prints a summary.
    pub(super) fn finish(
        mut self,
        coverage: Vec<Coverage>,
        gaps: Vec<Gap>,
        interrupted: &AtomicBool,
    ) -> Result<()> {
        let scope = self.scope.clone();
        let mut seen = BTreeSet::new();
        let alerts = self.alerts.iter().filter(|alert| seen.insert(key(alert)));
        let alerts: Vec<_> = alerts.map(|alert| self.alert(alert)).collect();
        // A copy of the trace may lack its alerts: then the alerts that an earlier run wrote remain.
        if !alerts.is_empty() {
            self.batch.write(ALERTS, "alerts", alerts)?;
        }
        self.batch.write(&scope, "gaps", gaps)?;
        let overlaps = self.overlaps(&coverage);
        self.batch.write(&scope, "coverage", coverage)?;
        if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(anyhow!("interrupted"));
        }
        let Done {
            files,
            rows,
            replaced,
        } = self.batch.finish()?;
        note(&format!(
            "{}: {} rows of {} for host {}{}",
            self.directory.display(),
            out::thousands(rows),
            out::plural(files, "file"),
            self.host,
            match replaced {
                true => "; they replace those of an earlier run for this trace",
                false => "",
            }
        ));
        overlaps.iter().for_each(|overlap| note(overlap));
        Ok(())
    }

    /// Returns a note about other traces of the same boot that overlap this one in time: an operation in both counts
    /// twice.
    fn overlaps(&self, coverage: &[Coverage]) -> Option<String> {
        let own = coverage.first()?;
        let (Some(boot), Some(start), Some(end)) = (&own.boot, own.start_ns, own.end_ns) else {
            return None;
        };
        let others = self.earlier.iter().filter(|other| {
            other.trace != self.identity.id
                && other.analysis == self.analysis
                && other.boot == *boot
                // Analyses of two threads have no operation in common.
                && own.tid.zip(other.tid).is_none_or(|(tid, of)| tid == of)
                && other.start_ns < end
                && start < other.end_ns
        });
        let mut traces: Vec<_> = others.map(|other| other.trace.as_str()).collect();
        traces.sort_unstable();
        traces.dedup();
        let first = traces.first()?;
        let more = match traces.len() {
            1 => String::new(),
            n => format!(" and {}", out::plural(n - 1, "other trace")),
        };
        Some(format!(
            "this trace overlaps the trace {first}{more} of host {} in time: an operation in both has two rows, which \
             differ in the column trace",
            self.host
        ))
    }

    fn alert(&self, alert: &Alert) -> lt_parquet::Alert {
        let offset = self.identity.utc_offset;
        let offset = offset.filter(|_| self.identity.is_monotonic);
        let fields = serde_json::to_string(&alert.fields).ok();
        lt_parquet::Alert {
            trace: Some(self.identity.id.clone()),
            seq: int(alert.seq),
            instance: Some(alert.instance.clone()),
            tracker: Some(alert.tracker.clone()),
            reason: Some(alert.reason.to_string()),
            time_utc: utc(offset, alert.time),
            time_ns: int(alert.time),
            delay_ns: int(alert.delay),
            threshold_ns: int(alert.threshold),
            cpu: int(alert.cpu),
            pid: int(alert.pid),
            tid: int(alert.tid),
            comm: Some(alert.comm.text().into_owned()),
            fields,
        }
    }
}

/// Identifies an alert of a trace. An alert that was read twice is one alert.
fn key(alert: &Alert) -> (&str, u64, u64) {
    (&alert.instance, alert.seq, alert.time)
}

/// Times of a CPU that do not overlap: end and reason, by start.
type Parts = BTreeMap<u64, (u64, &'static str)>;

/// Adds the parts of a time that are not in `parts`.
fn fill(parts: &mut Parts, (mut from, to): (u64, u64), why: &'static str) {
    while from < to {
        let before = parts.range(..=from).next_back();
        let covered = before.map_or(0, |(_, (end, _))| *end);
        if covered > from {
            from = covered;
            continue;
        }
        let next = parts.range(from..to).next();
        let next = next.map_or(to, |(begin, _)| *begin);
        parts.insert(from, (next, why));
        from = next;
    }
}

/// A number of a row; `None` if it is too large for the 63 bits of its column.
pub(super) fn int(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

fn utc(offset: Option<i64>, ns: u64) -> Option<i64> {
    let since = i128::from(ns) + i128::from(offset?);
    i64::try_from(since.div_euclid(1000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_cpu_do_not_overlap() {
        let mut parts = Parts::new();
        for (time, why) in [
            ((20, 30), "a"),
            ((40, 50), "b"),
            ((10, 45), "c"),
            ((60, 60), "d"),
            ((12, 48), "e"),
            ((48, 55), "f"),
        ] {
            fill(&mut parts, time, why);
        }
        let parts = parts.iter().map(|(from, (to, why))| (*from, *to, *why));
        let parts: Vec<_> = parts.collect();
        let expected = [
            (10, 20, "c"),
            (20, 30, "a"),
            (30, 40, "c"),
            (40, 50, "b"),
            (50, 55, "f"),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_host_whose_name_cannot_be_that_of_a_partition_needs_another_name() {
        let check = |parquet: bool, host: Option<&str>| {
            let args = ParquetArgs {
                parquet: parquet.then(|| "fleet".into()),
                host: host.map(String::from),
            };
            let checked = ["(none)", "web3"].map(|name| check_host(&args, name));
            checked.map(|checked| checked.err().map(|error| error.to_string()))
        };
        let [refused, none] = check(true, None);
        let refused = refused.unwrap();
        assert!(refused.starts_with("this host is named \"(none)\": "));
        assert!(refused.ends_with("; name another one with --host"));
        assert_eq!(none, None);
        assert_eq!(check(true, Some("web3")), [None, None]);
        assert_eq!(check(false, None), [None, None]);
    }

    #[test]
    fn a_time_is_rounded_down_to_us_and_unknown_without_an_offset() {
        assert_eq!(utc(Some(1_000_000_000), 1_999), Some(1_000_001));
        assert_eq!(utc(Some(-1), 0), Some(-1));
        assert_eq!(utc(None, 5), None);
        assert_eq!((int(5), int(u64::MAX)), (Some(5), None));
    }
}
