// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `list`: the instances, or the trackers with their parameters.

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::group::{self, Groups};
use lt_common::out::{self, Colour};
use lt_common::seconds::interval;
use lt_proc::{Instance, Nanos, ParamInfo, ProcError, ProcRoot, Stats, TrackerInfo};
use serde::Serialize;

use super::unseen::unseen;
use crate::cli::ListArgs;
use crate::trackers;

mod rates;

/// An instance and its counters.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    instance: Instance,
    stats: Stats,
    /// The number of a cgroup in the filter, if no cgroup has that number.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_cgroup: Option<u64>,
}

pub(crate) fn run(root: &ProcRoot, args: &ListArgs) -> Result<Outcome> {
    match (&args.name, args.trackers) {
        (name, true) => return show(&root.trackers()?, name.as_deref(), args.json),
        (Some(name), false) => {
            return match interval(&args.interval)? {
                Some(times) => rates::show(root, name, args.json, times),
                None => one(root, name, args.json),
            };
        }
        (None, false) => {}
    }
    let mut rows = Vec::new();
    let mut groups = Groups::find();
    for instance in root.instances()? {
        match root.stats(&instance.name) {
            Ok(stats) => rows.push(Row {
                missing_cgroup: groups.missing(&instance),
                instance,
                stats,
            }),
            // The instance was removed between two reads: leave it out of the list.
            Err(ProcError::NoInstance(_)) => {}
            Err(_) if matches!(root.instance(&instance.name), Err(ProcError::NoInstance(_))) => {}
            Err(error) => return Err(error.into()),
        }
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
            ">DROPPED",
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
        for row in &rows {
            if let Some(number) = row.missing_cgroup {
                let (name, about) = (&row.instance.name, group::about_missing(number));
                out::note(&format!("{name}: {about}"));
                out::note(&group::remedy(&row.instance));
            }
        }
    }
    Ok(Outcome::Fine)
}

fn cells(row: &Row) -> Vec<String> {
    let params = &row.instance.params;
    let state = match params.number("enabled") {
        Some(0) => "off",
        _ if row.missing_cgroup.is_some() => "no-cgroup",
        _ => "on",
    };
    let threshold = params
        .number("threshold")
        .map_or("-".into(), |ns| Nanos(ns).exact());
    let count = |key| row.stats.count(key).to_string();
    vec![
        row.instance.name.clone(),
        row.instance.tracker.clone(),
        state.to_string(),
        threshold,
        count("started"),
        count("pending"),
        count("alerts"),
        count("alerts_lost"),
        row.stats.lost().to_string(),
    ]
}

/// Shows all parameters and counters of one instance.
fn one(root: &ProcRoot, name: &str, json: bool) -> Result<Outcome> {
    let instance = root.instance(name)?;
    let stats = root.stats(name)?;
    let missing_cgroup = Groups::find().missing(&instance);
    if json {
        out::json(&Row {
            instance,
            stats,
            missing_cgroup,
        })?;
        return Ok(Outcome::Fine);
    }
    // If the trackers cannot be read, show the parameters without units and descriptions.
    let trackers = root.trackers().unwrap_or_default();
    let info = trackers.iter().find(|t| t.name == instance.tracker);
    let title = format!("{name}: {}", instance.tracker);
    out::line(&out::paint(Colour::Bold, &title))?;
    if let Some(info) = info {
        for line in out::wrap(&info.text, 2) {
            out::line(&line)?;
        }
    }
    let missing = missing_cgroup.map(|number| {
        let (about, remedy) = (group::about_missing(number), group::remedy(&instance));
        format!("Note: {about}. {remedy}.")
    });
    let unseen = unseen(&instance, &stats, info).map(|unseen| format!("Note: {unseen}."));
    for about in missing.into_iter().chain(unseen) {
        for line in out::wrap(&about, 2) {
            out::line(&line)?;
        }
    }
    out::line("\nPARAMETERS")?;
    let rows: Vec<Vec<String>> = parameters(&instance, info);
    for line in out::table(&["  NAME", "VALUE", "WHAT"], &rows)
        .iter()
        .skip(1)
    {
        out::line(line)?;
    }
    out::line("\nCOUNTERS")?;
    let rows: Vec<Vec<String>> = stats.iter().map(|(key, n)| counter(key, n)).collect();
    for line in out::table(&["  NAME", ">VALUE", "WHAT"], &rows)
        .iter()
        .skip(1)
    {
        out::line(line)?;
    }
    Ok(Outcome::Fine)
}

/// Returns name, value and meaning of each parameter; a time has its unit.
fn parameters(instance: &Instance, info: Option<&TrackerInfo>) -> Vec<Vec<String>> {
    let row = |field: &lt_proc::Field| {
        let known = info.and_then(|i| i.params.iter().find(|p| p.name == field.key));
        let value = match field.value.number() {
            Some(ns) if known.is_some_and(|p| p.kind == "duration") => Nanos(ns).exact(),
            _ => out::printable(&field.value.to_string()),
        };
        let text = known.map(|p| p.text.clone()).unwrap_or_default();
        vec![format!("  {}", field.key), value, text]
    };
    instance.params.0.iter().map(row).collect()
}

/// Returns name, value and meaning of a counter; a time has its unit.
fn counter(key: &str, n: u64) -> Vec<String> {
    let value = match key {
        "min" | "mean" | "max" => Nanos(n).to_string(),
        _ => out::thousands(n),
    };
    let text = Stats::meaning(key).unwrap_or_default();
    vec![format!("  {key}"), value, text.to_string()]
}

/// Shows all trackers; or only the tracker with this name, and example commands that start it.
fn show(all: &[TrackerInfo], name: Option<&str>, json: bool) -> Result<Outcome> {
    let names = || all.iter().map(|t| t.name.as_str());
    if let Some(name) = name.filter(|name| names().all(|n| n != *name)) {
        let hint = match lt_common::instance::meant(name, names()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        };
        bail!("unknown tracker {name:?}; {hint}");
    }
    for tracker in all.iter().filter(|t| name.is_none_or(|n| n == t.name)) {
        if json {
            out::json(tracker)?;
            continue;
        }
        out::line(&out::paint(Colour::Bold, &tracker.name))?;
        for line in out::wrap(&tracker.text, 2) {
            out::line(&line)?;
        }
        if let Some(why) = &tracker.unavailable {
            out::line(&format!(
                "  {} {why}",
                out::paint(Colour::Yellow, "not on this kernel:")
            ))?;
        }
        if let Some(lacks) = &tracker.lacks {
            let label = out::paint(Colour::Yellow, "not on this architecture:");
            out::line(&format!("  {label}"))?;
            for line in out::wrap(lacks, 6) {
                out::line(&line)?;
            }
        }
        for param in &tracker.params {
            for line in describe(param) {
                out::line(&line)?;
            }
        }
        if name.is_some() && tracker.unavailable.is_none() {
            for line in examples(&tracker.name) {
                out::line(&line)?;
            }
        }
    }
    Ok(Outcome::Fine)
}

/// Returns commands that start an instance of a tracker, under a heading. A long command continues on the next line.
fn examples(tracker: &str) -> Vec<String> {
    const GOES_ON: &str = " \\\n";
    let command = |line: &String| {
        let width = out::HELP_WIDTH - GOES_ON.len();
        out::wrap_to(&format!("latency-tracker start {line}"), 4, width).join(GOES_ON)
    };
    let mut lines: Vec<String> = trackers::examples(tracker).iter().map(command).collect();
    if !lines.is_empty() {
        lines.insert(0, "  Examples:".to_string());
    }
    lines
}

/// Returns `name=default` and the type, then the description, indented and wrapped.
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
    fn an_instance_without_its_cgroup_is_not_shown_as_on() {
        let state = |enabled: u64, missing_cgroup: Option<u64>| {
            let line = format!("web offcpu enabled={enabled} cgroup=7");
            let row = Row {
                instance: Instance::parse(&line).unwrap(),
                stats: Stats::default(),
                missing_cgroup,
            };
            cells(&row).swap_remove(2)
        };
        assert_eq!(state(1, None), "on");
        assert_eq!(state(1, Some(7)), "no-cgroup");
        assert_eq!(state(0, Some(7)), "off");
    }

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

    #[test]
    fn each_counter_of_all_trackers_is_described() {
        // A line of each tracker: the keys of its `stats`.
        let abi = include_str!("../../../../tests/abi.txt");
        let keys: Vec<Vec<&str>> = abi
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("stats: "))
            .map(|keys| keys.split_whitespace().collect())
            .collect();
        assert!(keys.len() > 10);
        let common = keys[0].iter();
        let common = common.filter(|key| keys.iter().all(|of_one| of_one.contains(*key)));
        let unknown: Vec<_> = common.filter(|key| Stats::meaning(key).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
