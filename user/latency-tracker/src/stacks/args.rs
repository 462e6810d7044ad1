// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `stacks`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use lt_common::seconds::seconds;
use lt_proc::{Nanos, Setting};
use serde::Serialize;

use crate::completion;

pub(crate) const EXAMPLES: &str = "\
Exit status: that of COMMAND, or 128+N if signal N ended it. Without COMMAND,
or if it still runs at the end: 0 no operation was late, 2 some were; 0 with
--alerts, and for an instance with by=stack. 1 error.

Examples:
  latency-tracker stacks offcpu pid=812 threshold=10ms
  latency-tracker stacks lock threshold=1ms -d 30s
  latency-tracker stacks slow_reads --by both
  latency-tracker stacks offcpu threshold=1ms -- make
  latency-tracker stacks offcpu ustack=1 threshold=1ms --folded -- make
  latency-tracker stacks offcpu by=stack --folded -o off.folded -- make
  latency-tracker stacks fsync threshold=5ms --folded > fsync.folded
  latency-tracker stacks --alerts /var/lib/latency-tracker/captures/0001

WHAT is an instance, a tracker or a recipe. An instance is only read: the
alerts that are still recorded, and those that come within the time. Other
readers miss nothing. For a tracker or a recipe, one instance is made with
stack=32, and removed at the end, as by `latency-tracker run`.

Only operations that took longer than the threshold, or timed out, raise an
alert, so all sums are of late operations. Each operation counts once, with its
whole delay, or its delay so far if it has not ended. The longest total is
first.

With ustack=1, the functions of the program that waited follow those of the
kernel: for offcpu, syscall and block. Names are looked up as alerts are read.
The result shows how many operations have no such stack.

By contrast, with by=stack the kernel counts every operation by its stack, late
or not: the sums are exact and need no threshold. offcpu, runqueue, lock and
reclaim have it. The first 256 stacks (max_labels=) have sums, and [other] is
the sum of all others. No names of programs and no functions in user space are
recorded. An instance with by=stack is read at once, or after -d.

Stacks at the end of an operation are recorded by offcpu, runqueue, lock and
reclaim, and by syscall with stacks=switch, which is set here by default. All
other trackers record a stack only if timeout= is set and the operation has not
ended by then.

--folded prints `comm;outer;...;inner MICROSECONDS`, as tools for flame graphs
read it, the functions of the program before those of the kernel. [no stack],
[no user stack] and [cut off] stand for what is not recorded.";

/// By which stack to sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    /// Where the late task was in the kernel, and with ustack=1 in its program.
    #[default]
    Kernel,
    /// Where the waker was; recorded only by offcpu.
    Waker,
    /// Both: where the task waited, and from where it was woken.
    Both,
}

/// Sums operations by their stack: where the tasks waited, or from where they were woken.
#[derive(Debug, Args)]
pub(crate) struct StacksArgs {
    /// An instance, a tracker, or a recipe.
    #[arg(
        value_name = "WHAT",
        required_unless_present = "alerts",
        conflicts_with = "alerts",
        add = ArgValueCompleter::new(completion::anything)
    )]
    pub(crate) what: Option<String>,
    /// Parameters of the tracker; they replace those of a recipe.
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) settings: Vec<Setting>,
    /// Run this command, and measure until it ends.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "alerts")]
    pub(crate) command: Vec<OsString>,
    /// Read these alerts instead: a capture of `record`, or a file in the format of
    /// /proc/latency_tracker/alerts (- is standard input).
    #[arg(long, value_name = "FILE")]
    pub(crate) alerts: Option<PathBuf>,
    /// End after this time (10s, 5m; a bare number is seconds); 10 seconds, and for a COMMAND no limit, if omitted. 0
    /// reads only what an instance has recorded.
    #[arg(short, long, value_parser = seconds, conflicts_with = "alerts")]
    pub(crate) duration: Option<Nanos>,
    /// Leave out the alerts that an instance recorded before this command started.
    #[arg(long, conflicts_with = "alerts")]
    pub(crate) new: bool,
    /// The stack to sum by.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: By,
    /// Show at most this many stacks; 0 shows all. JSON and --folded have all.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) rows: usize,
    /// Print a line for each stack and program, for flame graphs.
    #[arg(short, long)]
    pub(crate) folded: bool,
    /// Print one JSON object.
    #[arg(short, long, conflicts_with = "folded")]
    pub(crate) json: bool,
    /// Write the result to this file, not between the lines of COMMAND.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn what_or_a_file_is_required() {
        let parse = |words: &[&str]| {
            let all = ["lt", "stacks"].iter().chain(words);
            match Cli::try_parse_from(all).map(|cli| cli.command) {
                Ok(Command::Stacks(args)) => Some(*args),
                _ => None,
            }
        };
        let args = parse(&["offcpu", "pid=8", "-d", "5", "--", "make", "-f"]).unwrap();
        assert_eq!((args.settings.len(), args.command.len()), (1, 2));
        assert_eq!(args.by, By::Kernel);
        assert_eq!(
            parse(&["slow", "-d", "0"]).unwrap().duration,
            Some(Nanos(0))
        );
        let args = parse(&["--alerts", "-", "--by", "both", "--folded"]).unwrap();
        assert_eq!((args.what, args.by), (None, By::Both));
        for bad in [
            &[][..],
            &["slow", "--alerts", "-"],
            &["--alerts", "-", "--new"],
            &["--alerts", "-", "-d", "3"],
            &["--alerts", "-", "--", "make"],
            &["slow", "--json", "--folded"],
            &["slow", "--by", "user"],
        ] {
            assert!(parse(bad).is_none(), "{bad:?}");
        }
    }
}
