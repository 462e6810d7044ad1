// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `explain`.

use std::path::PathBuf;

use clap::Args;

use crate::analyze::parquet::ParquetArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  latency-tracker explain /var/lib/latency-tracker/captures/0001
  latency-tracker explain /srv/slow/0001 --seq 17 --json | jq .verdict
  latency-tracker explain ~/lttng-traces/auto-20261128-093000
  latency-tracker explain my-trace --alerts late.txt
  latency-tracker explain /srv/slow/0001 --perfetto slow.pftrace
  latency-tracker explain /srv/slow/0001 --html slow.html
  latency-tracker explain /srv/slow/0001 --svg slow.svg
  latency-tracker explain /srv/slow/0001 --parquet fleet

The explanation of a disk request shows its history, the queue of its device,
and the requests that overtook it. Other explanations show the critical path of
the late thread, as in `analyze path`, or the activity of the CPU. They also
name threads and interrupts that were busier during the delay than in the rest
of the trace. A part that is not recorded has its own line, with the reason.

An LTTng trace contains the alerts if the events latency_tracker_* were
recorded. The newest alert is explained, or those selected with --seq.

https://ui.perfetto.dev opens the file that --perfetto writes. It shows each
alert with the path that explains it, and the CPUs and active threads during
the alerts and for a tenth of that time before and after; arrows are wakeups.

The file that --html writes is a page to send to a colleague: the explanation,
the path, the same activity as a time line, and tables. It needs no network.
The picture of --svg is this time line, for each alert.

--parquet writes tables for SQL over many hosts: the alerts, and the steps of
the paths of the explained ones. Only you may read these files. A second run
for the same trace replaces the rows of the first.";

/// Explains why something was late, from the trace around it.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A capture of `record`, a trace that `record --url` sent, or any other kernel trace; a trace without alerts needs
    /// --alerts. For the `trace` directory of a capture, the evidence.json next to it is also read.
    pub(crate) capture: PathBuf,
    /// Explain the alerts in this file, in the format of /proc/latency_tracker/alerts (- is standard input).
    #[arg(long, value_name = "FILE", conflicts_with = "parquet")]
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
    /// Also write the explanation as a page for a browser, in one file; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw the time line of each alert (SVG); an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) parquet: ParquetArgs,
    /// At the end, print how many events were read, and how fast.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
