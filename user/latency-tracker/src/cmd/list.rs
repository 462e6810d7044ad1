// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `list`: what runs, what could run.

use anyhow::Result;
use lt_proc::{Instance, Nanos, ProcRoot, Stats, TrackerInfo};
use serde::Serialize;

use crate::Outcome;
use crate::cli::ListArgs;
use crate::out::{self, Colour};

/// An instance and its counters.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    instance: Instance,
    stats: Stats,
}

pub(crate) fn run(root: &ProcRoot, args: &ListArgs) -> Result<Outcome> {
    if args.trackers {
        return trackers(&root.trackers()?, args.json);
    }
    let mut rows = Vec::new();
    for instance in root.instances()? {
        // Removed between two reads: gone from the list as well.
        let Ok(stats) = root.stats(&instance.name) else {
            continue;
        };
        rows.push(Row { instance, stats });
    }
    if args.json {
        for row in &rows {
            out::json(row)?;
        }
    } else if rows.is_empty() {
        out::note("no instances; start one: latency-tracker start slow_disk block threshold=10ms");
    } else {
        let head = [
            "NAME",
            "TRACKER",
            "STATE",
            ">THRESHOLD",
            ">STARTED",
            ">PENDING",
            ">ALERTS",
            ">LOST",
            ">FULL",
        ];
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        for (i, line) in out::table(&head, &cells).iter().enumerate() {
            let line = if i == 0 {
                out::paint(Colour::Bold, line)
            } else {
                line.clone()
            };
            out::line(&line)?;
        }
    }
    Ok(Outcome::Fine)
}

fn cells(row: &Row) -> Vec<String> {
    let params = &row.instance.params;
    let state = match params.number("enabled") {
        Some(0) => "off",
        _ => "on",
    };
    let threshold = params
        .number("threshold")
        .map_or("-".into(), |ns| Nanos(ns).exact());
    let count = |key| row.stats.count(key).to_string();
    vec![
        out::fit(&row.instance.name, 20),
        row.instance.tracker.clone(),
        state.to_string(),
        threshold,
        count("started"),
        count("pending"),
        count("alerts"),
        count("alerts_lost"),
        count("full"),
    ]
}

fn trackers(all: &[TrackerInfo], json: bool) -> Result<Outcome> {
    for tracker in all {
        if json {
            out::json(tracker)?;
            continue;
        }
        let name = out::paint(Colour::Bold, &tracker.name);
        out::line(&format!("{name}: {}", tracker.text))?;
        if let Some(why) = &tracker.unavailable {
            out::line(&format!(
                "  {} {why}",
                out::paint(Colour::Yellow, "not on this kernel:")
            ))?;
        }
        let rows = tracker.params.iter().map(|p| {
            let setting = format!("  {}={}", p.name, p.default);
            vec![setting, p.kind.clone(), p.text.clone()]
        });
        let lines = out::table(
            &["  PARAMETER=DEFAULT", "TYPE", "MEANING"],
            &rows.collect::<Vec<_>>(),
        );
        for line in lines {
            out::line(&line)?;
        }
    }
    Ok(Outcome::Fine)
}
