// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The answers, for people, for programs and for a root shell.

use anyhow::Result;
use lt_common::out::{self, Colour};
use serde::Serialize;

use super::Target;
use super::answer::{Answer, Row, State};
use super::fix::{Fix, Words};

/// One row as a line of JSON, for `check` and `check --rt`.
#[derive(Serialize)]
pub struct Line<'a> {
    /// The group of the row.
    pub group: &'a str,
    /// The name of the row.
    pub row: &'a str,
    /// The answer.
    pub state: State,
    /// The facts from which the answer follows.
    pub found: &'a str,
    /// Why it matters.
    pub why: &'a str,
    /// The commands that fix it.
    pub fix: Vec<String>,
    /// The checked CPUs; empty for the machine as a whole.
    pub cpus: String,
}

type Answers = [(&'static str, &'static Row, Answer)];

/// Column in which the findings start.
const INDENT: usize = 25;

/// Maximum number of commands shown below a row; `--print-fix` shows all.
const COMMANDS: usize = 3;

pub(super) fn json(target: &Target, answers: &Answers) -> Result<()> {
    for (group, row, answer) in answers {
        out::json(&Line {
            group,
            row: row.name,
            state: answer.state,
            found: &answer.found,
            why: row.why,
            fix: answer.fix.iter().map(Fix::command).collect(),
            cpus: target.cpus.to_string(),
        })?;
    }
    Ok(())
}

/// Prints the commands without duplicates. Changes that need a reboot come last, as one
/// command.
pub(super) fn fixes(target: &Target, answers: &Answers) -> Result<()> {
    let mut printed: Vec<String> = Vec::new();
    let mut words = Words::default();
    let mut rows = Vec::new();
    for (_, row, answer) in answers {
        let mut commands = Vec::new();
        for fix in &answer.fix {
            match fix {
                Fix::Boot(more) => {
                    words.extend(more);
                    if rows.last() != Some(&row.name) {
                        rows.push(row.name);
                    }
                }
                Fix::Command(command) if !printed.contains(command) => commands.push(command),
                Fix::Command(_) => {}
            }
        }
        if !commands.is_empty() {
            out::line(&format!(
                "# {}: {}",
                row.name,
                out::printable(&answer.found)
            ))?;
        }
        for command in commands {
            out::line(command)?;
            printed.push(command.clone());
        }
    }
    if words.is_empty() {
        return Ok(());
    }
    out::line(&format!("# {}: from the next boot on", rows.join(", ")))?;
    out::line(&Fix::Boot(words).command())?;
    out::line(&format!(
        "# After the boot: latency-tracker check --rt {}",
        target.cpus
    ))
}

pub(super) fn people(target: &Target, answers: &Answers) -> Result<()> {
    out::line(&format!("CPUs {} ({})", target.cpus, target.from))?;
    let mut last = "";
    for (group, row, answer) in answers {
        if *group != last {
            out::line(&out::paint(Colour::Bold, &format!("\n{group}")))?;
            last = group;
        }
        person(row, answer)?;
    }
    let count = |state| {
        answers
            .iter()
            .filter(|(_, _, answer)| answer.state == state)
            .count()
    };
    out::line(&format!(
        "\n{} ok, {} warn, {} bad, {} n/a",
        count(State::Ok),
        count(State::Warn),
        count(State::Bad),
        count(State::Unknown)
    ))
}

fn person(row: &Row, answer: &Answer) -> Result<()> {
    let state = match answer.state {
        State::Ok => out::paint(Colour::Green, "ok  "),
        State::Warn => out::paint(Colour::Yellow, "warn"),
        State::Bad => out::paint(Colour::Red, "bad "),
        State::Unknown => "n/a ".to_string(),
    };
    let found = out::printable(&answer.found);
    let mut lines = out::wrap(&found, INDENT).into_iter();
    let first = lines.next().unwrap_or_default();
    out::line(&format!("{state} {:<19} {}", row.name, first.trim_start()))?;
    for line in lines {
        out::line(&line)?;
    }
    if !matches!(answer.state, State::Warn | State::Bad) {
        return Ok(());
    }
    for line in out::wrap(&format!("({})", row.why), INDENT) {
        out::line(&line)?;
    }
    for fix in answer.fix.iter().take(COMMANDS) {
        out::line(&format!("{:5}# {}", "", fix.brief()))?;
    }
    match answer.fix.len().saturating_sub(COMMANDS) {
        0 => Ok(()),
        more => out::line(&format!("{:5}# ... and {more} more: --print-fix", "")),
    }
}
