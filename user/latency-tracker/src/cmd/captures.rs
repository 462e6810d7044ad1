// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `captures`: lists what `record` has saved, or shows one capture.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::capture::{Taken, numbered, size_of};
use lt_common::out::{self, Colour};
use lt_proc::{Alert, Nanos};
use serde::{Deserialize, Serialize};

use crate::cli::CapturesArgs;

/// The fields of `alert.json` that are used here.
#[derive(Deserialize)]
struct Saved {
    #[serde(flatten)]
    taken: Taken,
    instance: String,
    tracker: String,
    alerts: Vec<Alert>,
    no_trace: Option<String>,
}

/// A capture, as `--json` prints it.
#[derive(Serialize)]
struct Row<'a> {
    capture: u64,
    path: &'a Path,
    /// Seconds since 1970; null if the clock had never been set.
    taken: Option<u64>,
    /// Size of all files, in bytes.
    size: u64,
    instance: &'a str,
    tracker: &'a str,
    alerts: usize,
    /// The longest delay, ns.
    worst: u64,
    /// The verdict of the explanation; null if there is none.
    verdict: Option<&'a str>,
    /// Why there is no trace; null if there is one.
    no_trace: Option<&'a str>,
}

pub(crate) fn run(args: &CapturesArgs) -> Result<Outcome> {
    // Without the directory, nothing has been recorded yet.
    let captures = match args.output.try_exists() {
        Ok(false) => Vec::new(),
        _ => numbered(&args.output)?,
    };
    let Some(number) = args.number else {
        return list(&captures, args);
    };
    let Some((_, path)) = captures.iter().find(|(n, _)| *n == number) else {
        let hint = match (captures.first(), captures.last()) {
            (Some((first, _)), Some((last, _))) => format!("there are {first:04} to {last:04}"),
            _ => "the directory has none".to_string(),
        };
        bail!("{}: no capture {number:04}; {hint}", args.output.display());
    };
    show(path)
}

fn list(captures: &[(u64, std::path::PathBuf)], args: &CapturesArgs) -> Result<Outcome> {
    let (mut outcome, mut cells) = (Outcome::Fine, Vec::new());
    let now = Taken::now();
    for (number, path) in captures {
        let saved = match saved(path) {
            Ok(saved) => saved,
            Err(error) => {
                out::note(&format!("{error:#}"));
                outcome = Outcome::Wrong;
                continue;
            }
        };
        let verdict = verdict(path);
        let row = Row {
            capture: *number,
            path,
            taken: saved.taken.date(&now),
            size: size_of(path),
            instance: &saved.instance,
            tracker: &saved.tracker,
            alerts: saved.alerts.len(),
            worst: saved.alerts.iter().map(|a| a.delay).max().unwrap_or(0),
            verdict: verdict.as_deref(),
            no_trace: saved.no_trace.as_deref(),
        };
        if args.json {
            out::json(&row)?;
        } else {
            cells.push(row_cells(&row));
        }
    }
    if args.json {
        return Ok(outcome);
    }
    if captures.is_empty() {
        out::note(&format!(
            "no captures in {}; `latency-tracker record` saves captures",
            args.output.display()
        ));
        return Ok(outcome);
    }
    let head = [
        ">CAPTURE", "TAKEN", ">SIZE", "INSTANCE", ">ALERTS", ">WORST", "WHY",
    ];
    for (i, line) in out::table(&head, &cells).iter().enumerate() {
        match i {
            0 => out::line(&out::paint(Colour::Bold, line))?,
            _ => out::line(line)?,
        }
    }
    Ok(outcome)
}

fn row_cells(row: &Row<'_>) -> Vec<String> {
    let taken = match row.taken {
        Some(seconds) => {
            let date = UNIX_EPOCH + Duration::from_secs(seconds);
            humantime::format_rfc3339_seconds(date).to_string()
        }
        None => "clock not set".to_string(),
    };
    let why = match (row.verdict, row.no_trace) {
        (Some(verdict), _) => verdict.to_string(),
        (None, Some(_)) => "no trace".to_string(),
        (None, None) => "not explained".to_string(),
    };
    vec![
        format!("{:04}", row.capture),
        taken,
        out::bytes(row.size),
        row.instance.to_string(),
        row.alerts.to_string(),
        Nanos(row.worst).to_string(),
        why,
    ]
}

/// Prints the alerts, the explanation, and the path of the capture.
fn show(path: &Path) -> Result<Outcome> {
    let saved = saved(path)?;
    for alert in &saved.alerts {
        out::line(&out::printable(&alert.to_string()))?;
    }
    out::line("")?;
    match fs::read_to_string(path.join("explanation.txt")) {
        Ok(text) => text.lines().try_for_each(out::line)?,
        Err(_) => {
            let why = saved.no_trace.map_or_else(
                || format!("`latency-tracker explain {}` explains it", path.display()),
                |why| format!("no trace: {why}"),
            );
            out::line(&why)?;
        }
    }
    out::line("")?;
    out::line(&path.display().to_string())?;
    Ok(Outcome::Fine)
}

fn saved(path: &Path) -> Result<Saved> {
    let file = path.join("alert.json");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// Returns the verdict: the second paragraph of the explanation. `None` if the trace was not explained.
fn verdict(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path.join("explanation.txt")).ok()?;
    if text.starts_with("No explanation:") {
        return None;
    }
    let paragraph = text.split("\n\n").nth(1)?;
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    Some(out::printable(&words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_second_paragraph() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(verdict(dir.path()), None);
        let text = "slow: a delay\n\n98 % of the delay:\n  a timer.\n\nmore\n";
        fs::write(dir.path().join("explanation.txt"), text).unwrap();
        assert_eq!(
            verdict(dir.path()).as_deref(),
            Some("98 % of the delay: a timer.")
        );
        // Without an explanation, `why` describes the alert.
        let text = "No explanation: no such file\na/7: read\n\n  waits in:\n";
        fs::write(dir.path().join("explanation.txt"), text).unwrap();
        assert_eq!(verdict(dir.path()), None);
    }
}
