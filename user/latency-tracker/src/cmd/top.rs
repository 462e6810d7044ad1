// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `top`: all instances at a glance, live: rates and delays of operations, recent alerts,
//! operations in flight, and losses.
//!
//! ```text
//!   read      the files of all instances  ->  a Reading
//!   rows      two Readings                ->  a Row for each instance, about the interval
//!   columns   Rows                        ->  cells, widths, order
//!   groups    alerts                      ->  late operations by task, subject or stack
//!
//!   batch     prints them                     live    keys, signals, ticks
//!                                             state   what is shown and selected
//!                                             keys    a key changes the state
//!                                             draw    a state on a screen
//!                                             screen  the terminal
//!                                             input   keys, from the bytes of the terminal
//! ```

mod batch;
mod columns;
mod draw;
mod groups;
mod input;
mod keys;
mod live;
mod read;
mod rows;
mod screen;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lt_common::{Outcome, out};
use lt_proc::ProcRoot;

use crate::cli::TopArgs;
use read::Reader;

/// Maximum time between two checks of the alerts and the module, even in a longer interval.
const SLICE: Duration = Duration::from_millis(500);

/// The hint if there is nothing to show.
const NO_INSTANCES: &str =
    "no instances; start one: latency-tracker start slow_disk block threshold=10ms";

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// By a key, a signal or the count.
    Wanted,
    /// The module was removed.
    Removed,
}

pub(crate) fn run(root: &ProcRoot, args: &TopArgs) -> Result<Outcome> {
    if args.interval.0 == 0 {
        bail!("--interval 0: expected a duration greater than 0");
    }
    let count = if args.once {
        1
    } else {
        args.count.unwrap_or(u64::MAX)
    };
    let mut reader = Reader::open(root, args.name.as_deref())?;
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let live = !(args.batch || args.once || args.json || dumb);
    if live && std::io::stdout().is_terminal() {
        // The live view needs a terminal to read keys from.
        if let Some(input) = screen::input() {
            return live::run(&mut reader, args, count, input);
        }
    }
    batch::run(&mut reader, args, count)
}

/// Reports why a run ended.
fn end(end: End) -> Outcome {
    if end == End::Removed {
        out::note("the latency_tracker module was removed");
    }
    Outcome::Fine
}

/// The time of the next reading: an interval after the last reading, or later. The pause is at
/// least as long as the last reading took, so reading takes at most half of a CPU.
fn next(last: Instant, interval: Duration, cost: Duration) -> Instant {
    (last + interval).max(Instant::now() + cost)
}
