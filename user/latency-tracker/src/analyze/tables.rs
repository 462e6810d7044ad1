// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze wakeups`, `cpu`, `irq`, `syscalls`, `io`, `locks`: how long operations took, in tables.
//!
//! ```text
//! trace --trace/steps.rs--> events --feed.rs--> lt_model::tables --view.rs--> rows --text.rs, json.rs, csv.rs--> output
//! ```

pub(super) mod args;
mod csv;
mod feed;
mod json;
mod needs;
mod text;
mod view;

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_model::tables::By;

use self::args::TableArgs;
use self::feed::Feed;
pub(super) use self::needs::Subject;
use self::view::Report;
use super::interrupted;
use crate::trace;

pub(super) fn run(subject: Subject, args: &TableArgs, by: By) -> Result<Outcome> {
    let interrupted = interrupted()?;
    let mut feed = Feed::new(subject, args, by);
    let told = trace::scan(&args.trace, subject.needs(), &interrupted, &mut feed)?;
    if told.is_empty() {
        bail!("{}: no event in this trace", args.trace.display());
    }
    let report = Report::new(feed.finish()?, told.caveats(), args);
    // Notes about missing data come before the figures.
    report.caveats().iter().for_each(|caveat| note(caveat));
    report.hints().iter().for_each(|hint| note(hint));
    if let Some(outside) = report.outside() {
        note(&outside);
    }
    if args.json {
        out::json(&json::of(&report))?;
    } else if args.csv {
        out::lines(&csv::lines(&report), &interrupted)?;
    } else {
        out::lines(&text::lines(&report), &interrupted)?;
    }
    Ok(Outcome::Fine)
}
