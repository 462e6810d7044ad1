// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `stacks`: sums operations by stack, and shows where most of their time comes from.
//!
//! ```text
//!   instance, read only --+
//!   instance of this run -+--> alerts --> late operations --+
//!   file, capture --------+                                 +--> sums by stack --> table, JSON, folded stacks
//!   instance with by=stack --> sums of the kernel ----------+
//! ```

mod args;
mod machine;
mod operation;
mod report;
mod source;
mod tally;
#[cfg(test)]
mod tests;
mod user;

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_common::wait::Signals;
use lt_proc::ProcRoot;

pub(crate) use self::args::{EXAMPLES, StacksArgs};
pub(crate) use self::operation::{Open, Operation, name};
pub(crate) use self::tally::Sum;
use self::tally::Tally;
use crate::run;

pub(crate) fn run(root: &ProcRoot, args: &StacksArgs) -> Result<Outcome> {
    out::file::check(&args.output)?;
    let mut tally = Tally::new(args.by);
    let source = match (&args.alerts, &args.what) {
        (Some(file), _) => source::file(file, &mut tally)?,
        (None, Some(what)) => {
            let signals = Signals::catch()?;
            match source::instance(root, args, what)? {
                Some(instance) if source::is_counted(&instance) => {
                    source::counted(root, &instance, args, &signals)?
                }
                Some(instance) => source::observe(root, &instance, args, &signals, &mut tally)?,
                None => source::measure(root, args, what, &signals, &mut tally)?,
            }
        }
        (None, None) => bail!("nothing to read"),
    };
    let depth = source.depth.and_then(|depth| usize::try_from(depth).ok());
    let threshold = source.threshold.unwrap_or(0);
    let mut sums = tally.finish(depth, &source.pending, threshold);
    if let Some(labels) = &source.labels {
        sums.replace(labels);
    }
    let lines = match (args.json, args.folded) {
        (true, _) => vec![machine::json(&source, &sums)?],
        (_, true) => {
            note(&report::which(&source, &sums));
            for (key, n, text) in report::missing(&source, &sums) {
                note(&format!("{key}={n}: {text}"));
            }
            machine::folded(&sums)
        }
        _ => report::text(&source, &sums, args.rows),
    };
    run::print(&lines, args.output.as_deref())?;
    Ok(match (source.outcome, sums.all.count) {
        (Some(outcome), _) => outcome,
        (None, 0) if !source.unread => Outcome::Fine,
        (None, _) => Outcome::Alert,
    })
}
