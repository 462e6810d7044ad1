// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `pending`: what has begun and not ended.

use anyhow::Result;
use lt_proc::{Nanos, Pending, ProcRoot};
use serde::Serialize;

use crate::Outcome;
use crate::cli::PendingArgs;
use crate::out;

#[derive(Serialize)]
struct Row<'a> {
    instance: &'a str,
    #[serde(flatten)]
    pending: &'a Pending,
}

pub(crate) fn run(root: &ProcRoot, args: &PendingArgs) -> Result<Outcome> {
    let mut cells = Vec::new();
    for name in super::names(root, args.name.as_deref())? {
        for pending in &root.pending(&name)? {
            if args.json {
                out::json(&Row {
                    instance: &name,
                    pending,
                })?;
            } else {
                cells.push(row(&name, pending));
            }
        }
    }
    if args.json {
        return Ok(Outcome::Fine);
    }
    if cells.is_empty() {
        out::note("nothing is in flight");
        return Ok(Outcome::Fine);
    }
    for line in out::table(&[">AGE", "INSTANCE", ">TID", "COMM", "WHAT"], &cells) {
        out::line(&line)?;
    }
    Ok(Outcome::Fine)
}

fn row(name: &str, pending: &Pending) -> Vec<String> {
    let fields = &pending.fields;
    let text = |key| fields.text(key).unwrap_or_default().into_owned();
    let shown = ["age", "start", "pid", "tid", "comm"];
    let rest = fields.0.iter().filter(|f| !shown.contains(&f.key.as_str()));
    let rest: Vec<String> = rest.map(|f| format!("{}={}", f.key, f.value)).collect();
    vec![
        Nanos(pending.age()).to_string(),
        out::fit(name, 16),
        text("tid"),
        text("comm"),
        rest.join(" "),
    ]
}
