// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `explain`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const EXAMPLES: &str = "\
Examples:
  latency-tracker explain /var/lib/latency-tracker/captures/0001
  latency-tracker explain /srv/slow/0001 --seq 17 --json | jq .verdict
  latency-tracker explain my-trace --alerts late.txt
  latency-tracker explain /srv/slow/0001 --perfetto slow.pftrace

For a request: its life, the queue of its device, and which requests overtook
it. For anything else: the critical path of its thread in that delay (as
`analyze path` has it), or what its CPU did, and which threads and interrupts
worked more then than in the rest of the trace. What is not recorded
has a line of its own, with the reason.

https://ui.perfetto.dev opens the file of --perfetto: each alert with the path
that explains it, and each CPU and each thread that did something in the delay
and a tenth of it before and after; arrows are wakings.";

/// Why something was late, from the trace around it.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A capture of `record`, or with --alerts any trace of the kernel: a directory. With `trace` of a capture, the
    /// evidence.json beside it counts.
    pub(crate) capture: PathBuf,
    /// Explain the alerts of this file, lines as in /proc/latency_tracker/alerts (- is standard input).
    #[arg(long, value_name = "FILE")]
    pub(crate) alerts: Option<PathBuf>,
    /// Only the alert of this number; repeatable.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seq: Vec<u64>,
    /// One JSON object an alert.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Also draw all of it, for ui.perfetto.dev; the file is replaced if it exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Say at the end how much was read, and how fast.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
