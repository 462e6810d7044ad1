// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The rows of `analyze path`, `analyze delays` and `explain`, made from their JSON, so that rows and JSON have the same
//! values.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use lt_parquet::{Coverage, Edge, Interval};
use lt_proc::Alert;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::show::{Json, reason};
use super::{Output, int, key};
use crate::trace::Told;

fn number(value: &Value) -> Option<i64> {
    value.as_i64()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_string)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn time(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The common part of all edges of a chain.
struct Chain<'a> {
    output: &'a Output,
    /// The JSON object with `thread`, `from` and `to`.
    of: &'a Value,
    /// The TID of the requested thread. Before that thread was created, `of` is about an ancestor, which stands for it.
    analyzed: Option<i64>,
    /// The alert that the path explains.
    alert: Option<&'a Alert>,
}

impl Chain<'_> {
    /// Returns the row of a step of a path, or of a wait.
    fn edge(&self, step: i64, edge: &Value) -> Edge {
        let (trace, analysis) = self.output.names();
        let (begin, end) = (time(&edge["begin"]), time(&edge["end"]));
        let (cause, instead, by) = (&edge["cause"], &edge["instead"], &edge["woken_by"]);
        Edge {
            trace,
            analysis,
            target_tid: number(&self.of["thread"]["tid"]),
            target_comm: text(&self.of["thread"]["comm"]),
            range_start_ns: number(&self.of["from"]),
            range_end_ns: number(&self.of["to"]),
            step: Some(step),
            depth: number(&edge["depth"]),
            kind: text(&edge["kind"]).or_else(|| Some("step".into())),
            start_utc: self.output.utc(begin),
            end_utc: self.output.utc(end),
            start_ns: int(begin),
            end_ns: int(end),
            duration_ns: int(end.saturating_sub(begin)),
            tid: number(&edge["thread"]["tid"]),
            comm: text(&edge["thread"]["comm"]),
            cpu: number(&edge["cpu"]),
            cause: text(&cause["kind"]),
            cause_by: text(&cause["by"]),
            cause_known: text(&cause["known"]),
            cause_why: text(&cause["why"]),
            cause_name: text(&cause["name"]),
            cause_perhaps: text(&cause["perhaps"]),
            call: text(&cause["syscall"]).or_else(|| text(&edge["syscall"])),
            disk: text(&cause["disk"]),
            woken_by_tid: number(&by["tid"]),
            woken_by_comm: text(&by["comm"]),
            instead: text(&instead["kind"]),
            instead_tid: number(&instead["thread"]["tid"]),
            instead_comm: text(&instead["thread"]["comm"]),
            instead_ns: number(&instead["time"]),
            analyzed_tid: self.analyzed,
            held: text(&cause["held"]),
            instance: self.alert.map(|alert| alert.instance.clone()),
            seq: self.alert.and_then(|alert| int(alert.seq)),
            file: text(&edge["file"]),
            descriptor: number(&edge["descriptor"]),
        }
    }

    /// Returns the row of a state of the thread of a segment.
    fn stay(&self, state: &Value) -> Interval {
        let (trace, analysis) = self.output.names();
        let (begin, end) = (time(&state["begin"]), time(&state["end"]));
        let (cause, by) = (&state["cause"], &state["woken_by"]);
        Interval {
            trace,
            analysis,
            kind: Some("stay".into()),
            start_utc: self.output.utc(begin),
            end_utc: self.output.utc(end),
            start_ns: int(begin),
            end_ns: int(end),
            duration_ns: int(end.saturating_sub(begin)),
            tid: number(&self.of["thread"]["tid"]),
            comm: text(&self.of["thread"]["comm"]),
            name: text(&cause["name"]),
            call: text(&cause["syscall"]),
            disk: text(&cause["disk"]),
            class: text(&state["class"]),
            cause: text(&cause["kind"]),
            cause_by: text(&cause["by"]),
            cause_known: text(&cause["known"]),
            woken_by_tid: number(&by["tid"]),
            woken_by_comm: text(&by["comm"]),
            open: Some(state["open"] == true),
            analyzed_tid: self.analyzed,
            file: text(&state["file"]),
            descriptor: number(&state["descriptor"]),
            ..Interval::default()
        }
    }
}

/// The part of the range that is in the trace.
fn range(json: &Value, told: &Told) -> (u64, u64) {
    let (begin, end) = told.model.span;
    let inside = |value| time(value).clamp(begin, end);
    (inside(&json["from"]), inside(&json["to"]))
}

/// The row of `coverage` for rows of these durations.
fn covered(
    output: &Output,
    kind: &str,
    json: &Value,
    told: &Told,
    durations: impl Iterator<Item = Option<i64>>,
) -> Coverage {
    let durations: Vec<i64> = durations.flatten().collect();
    let caveats = told.caveats();
    Coverage {
        tid: number(&json["thread"]["tid"]),
        measured: i64::try_from(durations.len()).ok(),
        sum_ns: Some(
            durations
                .iter()
                .fold(0i64, |sum, of| sum.saturating_add(*of)),
        ),
        caveats: (!caveats.is_empty()).then(|| caveats.join("\n")),
        ..output.coverage(kind, range(json, told), told)
    }
}

/// Adds the thread to the scope, whose rows a second run replaces, and returns the scope.
fn scope(output: &mut Output, json: &Value) -> String {
    let tid = number(&json["thread"]["tid"]).unwrap_or(0);
    output.scope = format!("{}-{tid}", output.scope);
    output.scope.clone()
}

fn finish(
    output: Output,
    json: &Value,
    told: &Told,
    coverage: Vec<Coverage>,
    interrupted: &AtomicBool,
) -> Result<()> {
    let dark = told.model.gaps();
    let dark = dark.map(|(cpu, time, why)| (cpu, time, reason(why).0));
    let tid = number(&json["thread"]["tid"]);
    let gaps = output.gaps(tid, range(json, told), told, dark);
    output.finish(coverage, gaps, interrupted)
}

/// Writes the steps of a path, given the JSON of `analyze path`.
pub(in crate::analyze) fn path(
    mut output: Output,
    json: &impl Serialize,
    told: &Told,
    interrupted: &AtomicBool,
) -> Result<()> {
    let json = serde_json::to_value(json)?;
    let scope = scope(&mut output, &json);
    let chain = Chain {
        output: &output,
        of: &json,
        analyzed: number(&json["thread"]["tid"]),
        alert: None,
    };
    let steps = (0..).zip(list(&json["path"]));
    let edges: Vec<Edge> = steps.map(|(n, step)| chain.edge(n, step)).collect();
    let durations = edges.iter().map(|edge| edge.duration_ns);
    let coverage = vec![covered(&output, "edge", &json, told, durations)];
    output.batch.write(&scope, "edges", edges)?;
    finish(output, &json, told, coverage, interrupted)
}

/// Writes the steps of the paths of alerts, given the JSON of each path. An alert may have no path. The range of coverage
/// and gaps is from the start of the first delay to the end of the last one.
pub(crate) fn explained<'a>(
    mut output: Output,
    alerts: impl Iterator<Item = (&'a Alert, Option<&'a Json>)>,
    told: &Told,
    interrupted: &AtomicBool,
) -> Result<()> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut seen = BTreeSet::new();
    let (mut from, mut to) = (u64::MAX, 0_u64);
    for (alert, path) in alerts {
        if !seen.insert(key(alert)) {
            continue;
        }
        (from, to) = (from.min(alert.start()), to.max(alert.time));
        let Some(path) = path else {
            continue;
        };
        let path = serde_json::to_value(path)?;
        let chain = Chain {
            output: &output,
            of: &path,
            analyzed: number(&path["thread"]["tid"]),
            alert: Some(alert),
        };
        let steps = (0..).zip(list(&path["path"]));
        edges.extend(steps.map(|(n, step)| chain.edge(n, step)));
    }
    let whole = json!({ "from": from.min(to), "to": to });
    let durations = edges.iter().map(|edge| edge.duration_ns);
    let coverage = vec![covered(&output, "edge", &whole, told, durations)];
    let scope = output.scope.clone();
    output.batch.write(&scope, "edges", edges)?;
    finish(output, &whole, told, coverage, interrupted)
}

/// Writes the states and the waits, given the JSON of `analyze delays`.
pub(in crate::analyze) fn delays(
    mut output: Output,
    json: &impl Serialize,
    told: &Told,
    interrupted: &AtomicBool,
) -> Result<()> {
    let json = serde_json::to_value(json)?;
    let scope = scope(&mut output, &json);
    let (mut stays, mut edges) = (Vec::new(), Vec::new());
    for segment in list(&json["segments"]) {
        let chain = Chain {
            output: &output,
            of: segment,
            analyzed: number(&json["thread"]["tid"]),
            alert: None,
        };
        stays.extend(list(&segment["states"]).map(|state| chain.stay(state)));
        let waits = (0..).zip(list(&segment["waits"]));
        edges.extend(waits.map(|(n, wait)| chain.edge(n, wait)));
    }
    let of_stays = stays.iter().map(|stay| stay.duration_ns);
    let of_edges = edges.iter().map(|edge| edge.duration_ns);
    let coverage = vec![
        covered(&output, "stay", &json, told, of_stays),
        covered(&output, "edge", &json, told, of_edges),
    ];
    output.batch.write(&scope, "states", stays)?;
    output.batch.write(&scope, "edges", edges)?;
    finish(output, &json, told, coverage, interrupted)
}

#[cfg(test)]
mod tests {
    use lt_parquet::Batch;

    use super::*;
    use crate::trace::Identity;

    /// No trace of the tests shows the files of its calls.
    #[test]
    fn a_row_has_the_file_of_the_call_or_its_descriptor() {
        let output = Output {
            batch: Batch::new("fleet".as_ref(), "web3", "1", "test"),
            scope: "delays".into(),
            analysis: "delays",
            directory: "fleet".into(),
            host: "web3".into(),
            identity: Identity {
                id: "1".into(),
                host: None,
                kernel: None,
                boot: None,
                utc_offset: None,
                is_monotonic: true,
            },
            alerts: Vec::new(),
            earlier: Vec::new(),
        };
        let chain = Chain {
            output: &output,
            of: &Value::Null,
            analyzed: None,
            alert: None,
        };
        for (json, expected) in [
            (json!({"file": "/var/log"}), (Some("/var/log"), None)),
            (json!({"descriptor": 3}), (None, Some(3))),
            (json!({}), (None, None)),
        ] {
            let (edge, stay) = (chain.edge(0, &json), chain.stay(&json));
            assert_eq!((edge.file.as_deref(), edge.descriptor), expected);
            assert_eq!((stay.file.as_deref(), stay.descriptor), expected);
        }
    }
}
