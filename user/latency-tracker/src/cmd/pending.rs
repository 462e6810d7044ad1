// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `pending`: the operations in flight in one instance or all, the oldest first, with a note about
//! operations that are not tracked.

use anyhow::Result;
use lt_common::Outcome;
use lt_common::{disk, out};
use lt_proc::{Pending, ProcError, ProcRoot};
use serde::Serialize;

use super::unseen::unseen;
use crate::cli::PendingArgs;

#[derive(Serialize)]
struct Row<'a> {
    instance: &'a str,
    #[serde(flatten)]
    pending: &'a Pending,
}

pub(crate) fn run(root: &ProcRoot, args: &PendingArgs) -> Result<Outcome> {
    let mut all: Vec<(String, Pending)> = Vec::new();
    let names = super::names(root, args.name.as_deref())?;
    for name in &names {
        let pending = match root.pending(name) {
            Ok(pending) => pending,
            // The instance was removed between two reads, so it has no operation in flight.
            Err(ProcError::NoInstance(_)) if args.name.is_none() => continue,
            Err(error) => return Err(error.into()),
        };
        all.extend(pending.into_iter().map(|pending| (name.clone(), pending)));
    }
    // Sort by start, not by age: the files were not read at the same instant.
    all.sort_by_key(|(_, pending)| pending.fields.number("start"));
    if args.json {
        for (instance, pending) in &all {
            out::json(&Row { instance, pending })?;
        }
        return Ok(Outcome::Fine);
    }
    if all.is_empty() {
        out::note("no operation is in flight");
    } else {
        table(&all, args)?;
    }
    let trackers = root.trackers().unwrap_or_default();
    for name in names {
        let (Ok(instance), Ok(stats)) = (root.instance(&name), root.stats(&name)) else {
            // The instance was removed meanwhile.
            continue;
        };
        let info = trackers.iter().find(|t| t.name == instance.tracker);
        if let Some(unseen) = unseen(&instance, &stats, info) {
            out::note(&format!("{name} ({}): {unseen}", instance.tracker));
        }
    }
    Ok(Outcome::Fine)
}

fn table(all: &[(String, Pending)], args: &PendingArgs) -> Result<()> {
    let cells: Vec<Vec<String>> = all.iter().map(|(name, p)| row(name, p)).collect();
    let lines = out::table(&[">AGE", "INSTANCE", ">TID", "COMM", "WHAT"], &cells);
    let stacks = all.iter().map(|(_, pending)| pending.stack());
    let stacks = std::iter::once(Vec::new()).chain(stacks);
    for (line, stack) in lines.iter().zip(stacks) {
        out::line(line)?;
        for function in stack.iter().filter(|_| args.stacks) {
            out::line(&out::frame(function))?;
        }
    }
    Ok(())
}

fn row(name: &str, pending: &Pending) -> Vec<String> {
    let text = |key| pending.fields.text(key).unwrap_or_default().into_owned();
    vec![
        super::at_least(pending.age(), &pending.fields),
        name.to_string(),
        text("tid"),
        out::printable(&text("comm")),
        out::printable(&disk::named(&pending.subject())),
    ]
}
