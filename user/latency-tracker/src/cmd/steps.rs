// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `steps`: shows the time of each kind of step on the wake chains from interrupts and timers to
//! tasks.

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out;
use lt_proc::{Nanos, ProcRoot, StepTime};
use serde::Serialize;

use crate::cli::StepsArgs;

/// Width of the bar of a step that takes all the time.
const BAR: usize = 16;

/// The output of `--json`; times in ns.
#[derive(Serialize)]
struct Report<'a> {
    instance: &'a str,
    steps: &'a [StepTime],
}

pub(crate) fn run(root: &ProcRoot, args: &StepsArgs) -> Result<Outcome> {
    let names = super::names(root, args.name.as_deref())?;
    let names: Vec<String> = names.into_iter().filter(|n| root.has_steps(n)).collect();
    if names.is_empty() {
        match &args.name {
            Some(name) => {
                bail!("{name} has no steps; only instances of the tracker `tree` have them")
            }
            None => bail!("no instance has steps; start one: latency-tracker start chain tree"),
        }
    }
    for name in &names {
        let steps = root.steps(name)?;
        if args.json {
            let report = Report {
                instance: name,
                steps: &steps,
            };
            out::json(&report)?;
        } else {
            show(name, &steps)?;
        }
    }
    Ok(Outcome::Fine)
}

fn show(name: &str, steps: &[StepTime]) -> Result<()> {
    out::line(&out::paint(out::Colour::Bold, name))?;
    let all: u128 = steps.iter().map(StepTime::total).sum();
    if steps.is_empty() {
        return out::line("  no wake chain has ended yet");
    }
    let row = |step: &StepTime| {
        let part = usize::try_from(step.total() * BAR as u128 / all.max(1)).unwrap_or(BAR);
        vec![
            format!("  {}", step.step),
            out::thousands(step.count),
            Nanos(step.mean).to_string(),
            Nanos(step.p99).to_string(),
            Nanos(step.max).to_string(),
            (step.total() * 100 / all.max(1)).to_string(),
            "#".repeat(part) + &".".repeat(BAR - part),
            step.meanwhile(),
        ]
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    let head = [
        "  STEP", ">COUNT", ">MEAN", ">P99", ">MAX", ">%", "", "THE TIME",
    ];
    for line in out::table(&head, &rows) {
        out::line(&line)?;
    }
    Ok(())
}
