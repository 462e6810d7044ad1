// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `list`: what runs, what could run.

use anyhow::Result;
use lt_proc::{Instance, Nanos, ParamInfo, ProcRoot, Stats, TrackerInfo};
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
        out::line(&name)?;
        for line in out::wrap(&tracker.text, 2) {
            out::line(&line)?;
        }
        if let Some(why) = &tracker.unavailable {
            out::line(&format!(
                "  {} {why}",
                out::paint(Colour::Yellow, "not on this kernel:")
            ))?;
        }
        for param in &tracker.params {
            for line in describe(param) {
                out::line(&line)?;
            }
        }
    }
    Ok(Outcome::Fine)
}

/// `name=default` and its type, then what it is for, indented and wrapped.
fn describe(param: &ParamInfo) -> Vec<String> {
    let default = match (param.kind.as_str(), param.default.parse()) {
        ("duration", Ok(ns)) => Nanos(ns).exact(),
        _ => param.default.clone(),
    };
    let mut lines = vec![format!("  {}={default}  ({})", param.name, param.kind)];
    lines.extend(out::wrap(&param.text, 6));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_with_a_unit_and_text_is_wrapped() {
        let text = "t: x\n  threshold=10000000 duration: report a delay longer than this, "
            .to_string()
            + &"and so on ".repeat(9);
        let lines = describe(&TrackerInfo::parse_all(&text).unwrap()[0].params[0]);
        assert_eq!(lines[0], "  threshold=10ms  (duration)");
        assert!(
            lines.len() > 2 && lines.iter().all(|l| l.len() < 80),
            "{lines:?}"
        );
    }
}
