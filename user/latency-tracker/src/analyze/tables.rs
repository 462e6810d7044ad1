// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze wakeups`, `cpu`, `irq`, `syscalls`, `io`, `locks`: how long operations took, in tables.
//!
//! ```text
//! trace --trace/steps.rs--> events --feed.rs--> lt_model::tables --view.rs--> rows --text.rs, json.rs, csv.rs--> output
//!                                                `--operations.rs--> each operation, for --parquet
//! ```

pub(super) mod args;
mod csv;
mod feed;
mod json;
mod needs;
mod operations;
mod text;
mod view;

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_model::tables::By;

use self::args::TableArgs;
use self::feed::{Disks, Feed};
pub(super) use self::needs::Subject;
use self::operations::Operations;
use self::view::Report;
use super::interrupted;
use super::parquet::{Alerts, Output};
use crate::trace;

pub(super) fn run(subject: Subject, args: &TableArgs, by: By, alerts: Alerts) -> Result<Outcome> {
    let interrupted = interrupted()?;
    let (trace, name) = (&args.trace, subject.name());
    let mut operations = match Output::open(&args.parquet, trace, name, alerts, &interrupted)? {
        Some(output) => {
            // The name of a disk may come after its requests, whose rows are written at once, so the names are read
            // first.
            let mut disks = Disks::default();
            if subject == Subject::Io {
                trace::scan(trace, &[], &interrupted, &mut disks)?;
            }
            Some(Operations::new(output, disks.0))
        }
        None => None,
    };
    let mut feed = Feed::new(subject, args, by);
    if let Some(operations) = &mut operations {
        feed = feed.with(operations);
    }
    let told = trace::scan(&args.trace, subject.needs(), &interrupted, &mut feed)?;
    if told.is_empty() {
        bail!("{}: no event in this trace", args.trace.display());
    }
    let mut report = Report::new(feed.finish()?, told.caveats(), args);
    if let Some(operations) = operations {
        operations.finish(&mut report, &told, &interrupted)?;
    }
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
