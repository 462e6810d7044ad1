// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command line of `top`.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use lt_common::seconds::seconds;
use lt_proc::Nanos;

use crate::completion;

pub(super) const EXAMPLES: &str = "\
Examples:
  latency-tracker top
  latency-tracker top slow_disk -i 500ms
  latency-tracker top --once
  latency-tracker top -b -n 60 -i 10 --sort alerts > log
  latency-tracker top --json -n 2
  latency-tracker top --once --by stack

Keys: h shows them all, q quits. If the output is not a terminal, `top` prints
tables, as with -b. The first table counts since the start of each instance,
the next ones since the table before. Nothing is reset, and no alert is taken
away from another reader.

--by sums late operations in each instance: by the task that owns them, by what
their tracker follows (a disk, a call, a lock), or by the stack of the task in
the kernel. An operation counts once in a table, with its delay at its last
alert: the whole delay if it has ended.

Percentiles are upper bounds: at most 1/8 above the true value. So is MAX,
unless the longest delay since the start of the instance is in the interval.

Exit status: 1 error, otherwise 0, even if the module is removed meanwhile.";

/// A column, by which rows can be sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Column {
    /// The instance.
    Name,
    /// Its tracker.
    Tracker,
    /// Operations that ended, per second.
    Rate,
    /// The median of their delays.
    P50,
    /// The 99th percentile of their delays.
    P99,
    /// The longest of their delays.
    Max,
    /// Alerts since the start of the instance, and new ones.
    Alerts,
    /// Operations in flight.
    Pending,
    /// The age of the oldest operation in flight.
    Oldest,
    /// What was lost since the start of the instance.
    Lost,
}

/// What late operations are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// The task that owns the operation.
    Task,
    /// What the tracker follows: a disk, a call, a lock.
    Subject,
    /// Where the task was in the kernel.
    Stack,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The instance; all if omitted.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: Option<String>,
    /// Print tables instead of a live view.
    #[arg(short, long)]
    pub(crate) batch: bool,
    /// End after this many tables or refreshes.
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// Print one table: -b -n 1.
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,
    /// The time between two refreshes (a bare number is seconds).
    #[arg(short, long, default_value = "1", value_parser = seconds, value_name = "TIME")]
    pub(crate) interval: Nanos,
    /// The column to sort by: a heading in small letters. Names ascend, numbers descend.
    #[arg(
        short,
        long,
        default_value = "p99",
        value_name = "COLUMN",
        hide_possible_values = true
    )]
    pub(crate) sort: Column,
    /// Show groups of late operations, with their count and delays, instead of single alerts.
    #[arg(long)]
    pub(crate) by: Option<By>,
    /// Print one JSON object per table.
    #[arg(short, long)]
    pub(crate) json: bool,
}
