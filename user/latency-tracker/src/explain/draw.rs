// SPDX-License-Identifier: GPL-2.0 OR MIT

//! All alerts in one picture, each with the path that explains it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use lt_common::out;
use lt_proc::evidence::Evidence;
use lt_proc::{Alert, Nanos};

use super::proofs::ByThread;
use super::why::Why;
use super::{Report, block, proofs};
use crate::analyze::picture::{Alarm, Picture, Way};
use crate::analyze::words::Facts;
use crate::perfetto::Value;
use crate::trace::Told;

/// Before and after the alerts, 1/`MARGIN` of their total time is also drawn.
pub(super) const MARGIN: u64 = 10;

pub(super) fn draw(
    told: &Told,
    evidence: &Evidence,
    beside: &ByThread<'_>,
    reports: &[Report<'_>],
    file: &Path,
    interrupted: &AtomicBool,
) -> Result<()> {
    let begins = reports.iter().map(|report| report.alert.start());
    let ends = reports.iter().map(|report| report.alert.time);
    let (from, to) = (begins.min().unwrap_or(0), ends.max().unwrap_or(0));
    let margin = (to - from) / MARGIN;
    // A request has its own explanation, without the activity of its thread.
    let of_threads = (0..)
        .zip(reports)
        .filter(|(_, report)| !block::explains(report.alert));
    let paths: Vec<_> = of_threads
        .filter_map(|(number, report)| {
            let alert = report.alert;
            let why = Why::new(told, alert, evidence, beside.during(alert));
            let (thread, pieces) = why.into_path()?;
            Some((number, thread, (alert.start(), alert.time), pieces))
        })
        .collect();
    let facts = Facts {
        cgroups: proofs::cgroups(evidence),
        ..Facts::NONE
    };
    let picture = Picture {
        model: &told.model,
        facts: &facts,
        range: (from.saturating_sub(margin), to.saturating_add(margin)),
        alerts: reports.iter().map(alarm).collect(),
        states: Vec::new(),
        paths: paths
            .iter()
            .map(|(alert, thread, range, pieces)| Way {
                thread: *thread,
                range: *range,
                pieces,
                alert: Some(*alert),
            })
            .collect(),
    };
    picture.write(file, interrupted)
}

fn alarm(report: &Report<'_>) -> Alarm {
    let alert = report.alert;
    let text = |text: &str| Value::Text(out::printable(text));
    let mut values = vec![
        ("tracker", text(&alert.tracker)),
        ("task", Value::Text(super::owner(alert))),
        ("reason", text(&alert.reason.to_string())),
        ("delay", Value::Text(Nanos(alert.delay).to_string())),
        ("cpu", Value::Number(alert.cpu)),
        ("what", text(&alert.subject())),
    ];
    if let Some(verdict) = &report.verdict {
        values.push(("verdict", text(verdict)));
    }
    Alarm {
        name: alarm_name(alert),
        range: (alert.start(), alert.time),
        values,
    }
}

pub(super) fn alarm_name(alert: &Alert) -> String {
    format!(
        "Alert {} of {}: {}",
        alert.seq,
        out::printable(&alert.instance),
        out::printable(&alert.tracker)
    )
}
