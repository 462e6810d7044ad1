// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `explain`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const EXAMPLES: &str = "\
Examples:
  latency-tracker explain /var/lib/latency-tracker/captures/0001
  latency-tracker explain /srv/slow/0001 --seq 17 --json | jq .verdict
  latency-tracker explain ~/lttng-traces/auto-20261128-093000
  latency-tracker explain my-trace --alerts late.txt
  latency-tracker explain /srv/slow/0001 --perfetto slow.pftrace

For a request: its history, the queue of its device, and the requests that
overtook it. For anything else: the critical path of its thread during the
delay, as in `analyze path`, or what its CPU did; and the threads and
interrupts that were busier during the delay than in the rest of the trace. A
part that is not recorded has its own line, with the reason.

A trace of LTTng has the alerts itself if the events latency_tracker_* were
recorded. The newest is explained, or those of --seq.

https://ui.perfetto.dev opens the file of --perfetto. It shows each alert with
the path that explains it, and each CPU and active thread, from a tenth of the
delay before it to a tenth after it; arrows are wakeups.";

/// Explains why something was late, from the trace around it.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The directory of a capture of `record`, a trace that `record --url` sent, or a kernel trace with alerts in it or,
    /// with --alerts, without. For the `trace` of a capture, the evidence.json next to it is also read.
    pub(crate) capture: PathBuf,
    /// Explain the alerts in this file, in the format of /proc/latency_tracker/alerts (- is standard input).
    #[arg(long, value_name = "FILE")]
    pub(crate) alerts: Option<PathBuf>,
    /// Explain only the alert with this number; repeatable.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seq: Vec<u64>,
    /// Print one JSON object per alert.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Also write the alerts and their paths for ui.perfetto.dev; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Print at the end how much was read, and how fast.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
