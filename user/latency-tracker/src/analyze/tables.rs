// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `analyze wakeups`, `sleeps`, `cpu`, `irq`, `syscalls`, `io`, `locks`, `work`, `reclaim`, `net`: how long operations
//! took.
//!
//! ```text
//! trace --trace/steps.rs--> events --feed.rs--> lt_model::tables --view.rs--> rows --text.rs, json.rs, csv.rs--> output
//!                                                |--heat.rs--------> each operation, for --svg and --html
//!                                                |--page.rs--------> an HTML page, with all rows and the heat map
//!                                                `--operations.rs--> each operation, for --parquet
//! ```

pub(super) mod args;
mod columns;
mod csv;
mod feed;
mod functions;
mod heat;
mod json;
mod needs;
mod operations;
mod page;
mod text;
mod view;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_model::tables::By;

use self::args::TableArgs;
use self::feed::{Disks, Feed};
use self::heat::Heat;
pub(crate) use self::needs::Subject;
use self::operations::Operations;
use self::view::Report;
use super::flame::Stacks;
use super::interrupted;
use super::parquet::{Alerts, Output};
use crate::{heat as picture, trace};

pub(super) fn run(subject: Subject, args: &TableArgs, by: By, alerts: Alerts) -> Result<Outcome> {
    out::file::check([&args.html, &args.svg].into_iter().flatten())?;
    let interrupted = interrupted()?;
    let (trace, name) = (&args.trace, subject.name());
    let functions = match subject {
        Subject::Work => functions::of(trace)?,
        _ => BTreeMap::new(),
    };
    let mut operations = match Output::open(&args.parquet, trace, name, alerts, &interrupted)? {
        Some(output) => {
            // The name of a disk may come after its requests, whose rows are written at once, so the names are read
            // first.
            let mut disks = Disks::default();
            if matches!(subject, Subject::Io | Subject::Sleeps | Subject::Work) {
                trace::scan(trace, &[], &interrupted, &mut disks)?;
            }
            Some(Operations::new(output, disks.0, functions.clone()))
        }
        None => None,
    };
    let by = match (args.folded, subject) {
        (false, _) => by,
        // The interrupted thread did not cause the interrupt, and a worker runs the work of others.
        (true, Subject::Irq | Subject::Work) => By::Object,
        (true, _) => By::Stack,
    };
    let is_drawn = args.html.is_some() || args.svg.is_some();
    let mut heat = is_drawn.then(|| Heat::new(args.interval));
    let mut feed = Feed::new(subject, args, by).naming(functions);
    if let Some(operations) = &mut operations {
        feed = feed.with(operations);
    }
    if let Some(heat) = &mut heat {
        feed = feed.with(heat);
    }
    let told = trace::scan(&args.trace, subject.needs(by), &interrupted, &mut feed)?;
    if told.is_empty() {
        bail!("{}: no event in this trace", args.trace.display());
    }
    let report = Report::new(feed.finish()?, told.caveats(), args);
    if let Some(operations) = operations {
        operations.finish(&report, &told, &interrupted)?;
    }
    if let Some(heat) = heat {
        let map = heat.map(&report);
        if let Some(file) = &args.svg {
            picture::write(&map, file)?;
        }
        if let Some(file) = &args.html {
            page::page(&report, map).write(file)?;
        }
    }
    // Notes about missing data come before the figures.
    report.caveats().iter().for_each(|caveat| note(caveat));
    report.hints().iter().for_each(|hint| note(hint));
    if let Some(outside) = report.outside() {
        note(&outside);
    }
    if args.csv || args.folded {
        for table in &report.found.tables.tables {
            let missed = Report::missed(table).into_iter();
            missed.for_each(|text| note(&format!("{}: {text}", view::name(table.kind))));
        }
    }
    if args.json {
        out::json(&json::of(&report))?;
    } else if args.csv {
        out::lines(&csv::lines(&report), &interrupted)?;
    } else if args.folded {
        out::lines(&folded(&report), &interrupted)?;
    } else {
        out::lines(&text::lines(&report), &interrupted)?;
    }
    Ok(Outcome::Fine)
}

/// Returns the sums of all tables as folded stacks, whose outermost frame is the table.
fn folded(report: &Report<'_>) -> Vec<String> {
    let mut stacks = Stacks::default();
    for table in &report.found.tables.tables {
        for row in report.rows(table) {
            let mut frames = vec![view::name(table.kind).to_string()];
            frames.extend(report.frames(row.key));
            stacks.add(&frames, row.row.sums.sum);
        }
    }
    stacks.lines()
}
