// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use lt_common::seconds::some_time;
use lt_proc::{Nanos, Setting};

use crate::completion;

pub(crate) const EXAMPLES: &str = "\
Exit status: that of COMMAND, or 128+N if signal N ended it. Without COMMAND,
or if it still runs at the end: 0 nothing took longer than the threshold, 2
something did. 1 error.

Examples:
  latency-tracker run fsync -- make
  latency-tracker run disk dev=sda threshold=5ms
  latency-tracker run block dev=sda from=insert threshold=20ms -d 1m
  latency-tracker run syscall calls=fsync,fdatasync threshold=5ms -- make
  latency-tracker run syscall calls=fsync threshold=5ms ustack=1 -- ./server
  latency-tracker run offcpu -d 5s --json -- tar -xf backup.tar
  latency-tracker run offcpu --by stack -- make
  latency-tracker run func function=vfs_read threshold=1ms pid=812

Starts one instance, and loads the module if needed. At the end, on Ctrl-C and
after an error, what it has started and loaded is removed again. Shows the
histogram, the longest operation over the threshold with what the tracker knows
about it, what was lost or not counted, and what has not ended. With ustack=1,
syscall, offcpu and block also show the functions of the program that made the
call, waited, or submitted the request. --by FIELD, which is the parameter by=,
adds a row for each value of that field: each program (comm), each stack.

With COMMAND, only that process and its descendants count, from its first
instruction on. Trackers without the parameter `tree`, such as block and irq,
cannot tell them from others: there, everything counts as long as COMMAND runs.
Ctrl-C also ends COMMAND, and SIGTERM and SIGHUP are passed on to it. A second
signal ends the run at once.

A recipe is a question with a name, such as fsync: `latency-tracker recipes`
lists them. `latency-tracker list --trackers` shows the trackers; with the name
of a tracker, its parameters.";

/// Starts an instance for a while, or for the time of a command, and shows what it measured.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The tracker, or a recipe.
    #[arg(value_name = "WHAT", add = ArgValueCompleter::new(completion::recipes_and_trackers))]
    pub(crate) what: String,
    /// Parameters of the tracker; they replace those of a recipe.
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) settings: Vec<Setting>,
    /// Run this command, and measure until it ends.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// End after this time (10s, 5m; a bare number is seconds); 10 seconds, and for a COMMAND no limit, if omitted.
    #[arg(short, long, value_parser = some_time)]
    pub(crate) duration: Option<Nanos>,
    /// Show a row for each value of this field, too.
    #[arg(long, value_name = "FIELD")]
    pub(crate) by: Option<String>,
    /// Print one JSON object.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Write the result to this file, not between the lines of COMMAND.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Command};

    #[test]
    fn the_command_comes_after_two_hyphens() {
        let parse = |words: &[&str]| {
            let all = ["lt", "run"].iter().chain(words);
            match Cli::try_parse_from(all).map(|cli| cli.command) {
                Ok(Command::Run(args)) => Some(*args),
                _ => None,
            }
        };
        let args = parse(&[
            "block",
            "dev=sda",
            "-d",
            "5",
            "--by",
            "comm",
            "--json",
            "--",
            "dd",
            "if=/dev/sda",
            "-x",
        ])
        .unwrap();
        assert_eq!(args.settings.len(), 1);
        assert_eq!(args.command, ["dd", "if=/dev/sda", "-x"]);
        assert!(args.json && args.duration.is_some() && args.by.is_some());
        for bad in [
            &[][..],
            &["block", "dev"],
            &["block", "-d", "0"],
            &["--", "dd"],
        ] {
            assert!(parse(bad).is_none(), "{bad:?}");
        }
    }
}
