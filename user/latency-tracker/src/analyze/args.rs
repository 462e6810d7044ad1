// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `analyze`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lt_common::size::Size;
use lt_proc::Nanos;

use super::fold::Part;
use super::parquet::ParquetArgs;
use super::tables::args::{
    self as of_tables, CpuArgs, IoArgs, IrqArgs, LocksArgs, NetArgs, ReclaimArgs, SleepsArgs,
    SyscallsArgs, WakeupsArgs, WorkArgs,
};
use crate::trace::{Mark, Point, When, event};

pub(crate) const EXAMPLES: &str = "\
Examples:
  latency-tracker analyze delays /srv/slow/0001/trace
  latency-tracker analyze delays /srv/slow/0001/trace --tid 812
  latency-tracker analyze path /srv/slow/0001/trace --tid 812
  latency-tracker analyze wakeups /srv/slow/0001/trace
  latency-tracker analyze irq trace --by cpu -i 100ms --csv
  latency-tracker analyze io /srv/slow/0001/trace --parquet fleet";

const PATH_EXAMPLES: &str = "\
Examples:
  latency-tracker analyze path /srv/slow/0001/trace --tid 812
  latency-tracker analyze path trace --tid xinit --from +2s --to +2500ms
  latency-tracker analyze path trace --tid 812 --min 1ms --depth 1
  latency-tracker analyze path trace --tid 812 --json | jq .causes
  latency-tracker analyze path trace --tid 812 --perfetto 812.pftrace
  latency-tracker analyze path trace --tid 812 --html 812.html
  latency-tracker analyze path trace --tid 812 --svg 812.svg
  latency-tracker analyze path trace --tid 812 --folded | flamegraph.pl
  latency-tracker analyze path trace --tid 812 --csv >812.csv
  latency-tracker analyze path trace --tid 812 --parquet fleet
  latency-tracker analyze path week-of-traces --tid 812 --low-memory

A time is the time= of an alert (ns of CLOCK_MONOTONIC) or, with a +, the time
since the start of the trace.

While the thread runs, is interrupted or waits for a CPU, it is on the path
itself. While it is blocked, the thread that woke it is on the path, indented,
and so on down to a timer, a device or the network.

The trace needs sched_switch and sched_waking; irq_handler_*, irq_softirq_*,
timer_hrtimer_expire_*, x86_irq_vectors_* and system calls add detail.
In a perf trace (perf data convert --to-ctf), these events are sched:*, irq:*,
timer:hrtimer_expire_*, irq_vectors:*, syscalls:sys_* and block:*;
raw_syscalls:* does not help, because it has only numbers.

https://ui.perfetto.dev opens the file that --perfetto writes. It shows the
path, and the CPUs and active threads at that time; arrows are wakeups.

The file that --html writes has the text, the path, a time line and tables; it
needs no network. The picture of --svg is this time line.

--folded prints `frame;frame;frame NANOSECONDS`: each thread that waits with
its wait, then the thread and the cause of the step.";

const DELAYS_EXAMPLES: &str = "\
Examples:
  latency-tracker analyze delays /srv/slow/0001/trace
  latency-tracker analyze delays trace --from +2s --to +2500ms --min 10ms
  latency-tracker analyze delays trace -i 100ms --top 3
  latency-tracker analyze delays /srv/slow/0001/trace --tid 812
  latency-tracker analyze delays trace --tid xinit --from +2s --to +2500ms
  latency-tracker analyze delays trace --event sched_process_exec:542
  latency-tracker analyze delays trace --tid 812 --min 1ms --depth 1 --top 10
  latency-tracker analyze delays trace --tid 812 --json | jq '.segments[].sums'
  latency-tracker analyze delays trace --tid 812 --folded | flamegraph.pl
  latency-tracker analyze delays trace --tid 812 --perfetto 812.pftrace
  latency-tracker analyze delays trace --tid 812 --html 812.html
  latency-tracker analyze delays trace --tid 812 --svg 812.svg
  latency-tracker analyze delays trace --tid 812 --csv >812.csv
  latency-tracker analyze delays trace --tid 812 --parquet fleet

Without --tid and --event, the threads with the longest waits have a row each
(see --top): the longest wait, what ended that wait, and the time of the thread
by state. The last line is the command for the report on the first thread. In a
wait, a thread is blocked, or waits for a CPU. --depth, --folded, --perfetto,
--svg, --parquet, --max-memory and --low-memory need a thread.

With -i, each interval of the range has its own report on all threads. A wait
counts in each interval with the part that is in the interval.

A time is the time= of an alert (ns of CLOCK_MONOTONIC), the time since the
start of the trace (with a +), the time of day in UTC (14:03:20.5), or the
name of an event, which stands for the first such event (NAME:TID: of that
thread) or, for --to and --event, for the first one after the start of the
range.

Before the thread is created, its closest existing ancestor is analyzed. A
thread is working (in user mode or in system calls), interrupted (by an
interrupt, or runnable and waiting for a CPU), blocked, or its state is not
recorded. These times add up exactly to the range. A wait is explained by the
thread that ended it, and by the waits of that thread at that time.

The trace needs sched_switch and sched_waking; sched_process_fork shows
ancestors, and system calls, irq_handler_*, irq_softirq_*,
timer_hrtimer_expire_* and x86_irq_vectors_* add detail. The files of system
calls need the events that `latency-tracker analyze syscalls --help` lists.

https://ui.perfetto.dev opens the file that --perfetto writes. It shows the
states of the thread, the chains of its waits as a path, and the CPUs and
active threads at that time; arrows are wakeups.

The file of --html has the report, a time line and tables; it needs no network.
The picture of --svg is this time line. Without a thread, --html has the report
and a table of all threads.

--folded prints `frame;frame;frame NANOSECONDS`: the thread, its state, and the
threads and causes that a wait leads to.";

/// Analyzes a kernel trace (of LTTng, or of perf in the Common Trace Format).
#[derive(Debug, Args)]
pub(crate) struct AnalyzeArgs {
    #[command(subcommand)]
    pub(crate) command: AnalyzeCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AnalyzeCommand {
    /// Shows the critical path of a thread: what delayed it.
    #[command(after_help = PATH_EXAMPLES)]
    Path(PathArgs),
    /// Shows the time of a thread, or of each thread, by state, and the causes of waits.
    #[command(after_help = DELAYS_EXAMPLES)]
    Delays(DelaysArgs),
    /// Shows how long woken threads waited for a CPU.
    #[command(after_help = of_tables::WAKEUPS)]
    Wakeups(WakeupsArgs),
    /// Shows how long threads slept, and what woke them.
    #[command(after_help = of_tables::SLEEPS)]
    Sleeps(SleepsArgs),
    /// Shows the time of threads on CPUs, and how long preempted threads waited.
    #[command(after_help = of_tables::CPU)]
    Cpu(CpuArgs),
    /// Shows how long interrupt handlers and softirqs ran, and how long softirqs waited.
    #[command(after_help = of_tables::IRQ)]
    Irq(IrqArgs),
    /// Shows how long system calls took, and how many failed.
    #[command(after_help = of_tables::SYSCALLS)]
    Syscalls(SyscallsArgs),
    /// Shows how long requests of disks were in the queue and at the device.
    #[command(after_help = of_tables::IO)]
    Io(IoArgs),
    /// Shows how long contended locks were waited for, and how long futex calls took.
    #[command(after_help = of_tables::LOCKS)]
    Locks(LocksArgs),
    /// Shows how long work items waited and ran, and what queued them.
    #[command(after_help = of_tables::WORK)]
    Work(WorkArgs),
    /// Shows how long memory was reclaimed and compacted, and by which processes.
    #[command(after_help = of_tables::RECLAIM)]
    Reclaim(ReclaimArgs),
    /// Shows how long packets waited in backlogs, for their readers, and for their drivers.
    #[command(after_help = of_tables::NET)]
    Net(NetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DelaysArgs {
    /// The directory of the trace.
    pub(crate) trace: PathBuf,
    /// The thread ID, or the name if only one thread has it; by default the thread of --event or, without --event, all
    /// threads.
    #[arg(short, long, value_name = "TID|NAME")]
    pub(crate) tid: Option<String>,
    /// Start of the range; by default the start of the trace.
    #[arg(long, value_name = "TIME|EVENT", value_parser = Point::parse)]
    pub(crate) from: Option<Point>,
    /// End of the range; by default the end of the trace or, if earlier, of the thread.
    #[arg(long, value_name = "TIME|EVENT", value_parser = Point::parse, conflicts_with = "event")]
    pub(crate) to: Option<Point>,
    /// End the range at the first such event after its start.
    #[arg(long, value_name = "NAME[:TID]", value_parser = event)]
    pub(crate) event: Option<Mark>,
    /// Divide the range into intervals of this length (100ms, 1s), each with a report on all threads.
    #[arg(
        short,
        long,
        value_name = "TIME",
        value_parser = of_tables::interval,
        conflicts_with_all = [
            "tid", "event", "depth", "folded", "perfetto", "html", "svg", "max_memory", "low_memory", "parquet"
        ]
    )]
    pub(crate) interval: Option<Nanos>,
    /// Show this many of the longest stays in each state, by default 3; without a thread, this many threads, by default
    /// 20.
    #[arg(long, value_name = "COUNT")]
    pub(crate) top: Option<usize>,
    /// Show only stays and waits of this length or more, by default 1 % of the range; without a thread, only threads
    /// with such a wait.
    #[arg(long, value_name = "TIME", value_parser = lt_proc::parse_duration)]
    pub(crate) min: Option<Nanos>,
    /// Follow a chain of waiting threads down to this depth: 0 shows the thread itself.
    #[arg(long, value_name = "THREADS")]
    pub(crate) depth: Option<usize>,
    /// Show all states and all stays, and each wait on a separate line; without a thread, show all threads.
    #[arg(short, long, conflicts_with_all = ["min", "top"])]
    pub(crate) all: bool,
    /// Print one JSON object, with all stays and all waits or, without a thread, all threads.
    #[arg(short, long, conflicts_with_all = ["top", "min", "depth", "all"])]
    pub(crate) json: bool,
    /// Print all stays and all waits or, without a thread, all threads as comma-separated values.
    #[arg(long, conflicts_with_all = ["top", "min", "depth", "all", "json"])]
    pub(crate) csv: bool,
    /// Print the time by state and chain of causes as folded stacks, in ns, for flame graphs.
    #[arg(long, conflicts_with_all = ["top", "min", "depth", "all", "json", "csv"])]
    pub(crate) folded: bool,
    /// Also write the states and the chains of waits for ui.perfetto.dev; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Also write the report as a page for a browser, in one file; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw the time line (SVG); an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Keep at most this much of the trace in memory, and read a larger trace twice. The report itself takes
    /// additional memory.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["event", "perfetto", "html", "svg"])]
    pub(crate) max_memory: Option<Size>,
    /// Keep in memory only what the report on a thread (--tid) needs, and read the trace at least three times. The
    /// report itself takes additional memory.
    #[arg(long, requires = "tid", conflicts_with_all = ["event", "perfetto", "html", "svg", "max_memory"])]
    pub(crate) low_memory: bool,
    #[command(flatten)]
    pub(crate) parquet: ParquetArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// The directory of the trace.
    pub(crate) trace: PathBuf,
    /// The thread ID, or the name if only one thread has it.
    #[arg(short, long, value_name = "TID|NAME")]
    pub(crate) tid: String,
    /// Start of the path; by default the start of the trace or, if later, of the thread.
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub(crate) from: Option<When>,
    /// End of the path; by default the end of the trace or, if earlier, of the thread.
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub(crate) to: Option<When>,
    /// Show only steps of this length or more; by default the 25 longest. Other steps are summed up.
    #[arg(long, value_name = "TIME", value_parser = lt_proc::parse_duration, conflicts_with = "json")]
    pub(crate) min: Option<Nanos>,
    /// Follow a chain of waiting threads down to this depth: 0 shows the thread itself.
    #[arg(long, value_name = "THREADS", conflicts_with = "json")]
    pub(crate) depth: Option<usize>,
    /// Show all causes and all steps.
    #[arg(short, long, conflicts_with_all = ["min", "json"])]
    pub(crate) all: bool,
    /// Print one JSON object, with all steps.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Print all steps as comma-separated values.
    #[arg(long, conflicts_with_all = ["min", "depth", "all", "json"])]
    pub(crate) csv: bool,
    /// Print the time by chain of causes as folded stacks, in ns, for flame graphs.
    #[arg(long, conflicts_with_all = ["min", "depth", "all", "json", "csv"])]
    pub(crate) folded: bool,
    /// Also write the path for ui.perfetto.dev; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Also write the path as a page for a browser, in one file; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw the path as a time line (SVG); an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) parquet: ParquetArgs,
    /// Keep at most this much of the trace in memory, and read a larger trace twice. The path itself takes
    /// additional memory.
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["perfetto", "html", "svg"])]
    pub(crate) max_memory: Option<Size>,
    /// Keep in memory only what the path needs, and read the trace at least three times. The path itself takes
    /// additional memory.
    #[arg(long, conflicts_with_all = ["perfetto", "html", "svg", "max_memory"])]
    pub(crate) low_memory: bool,
    /// At the end, print how many events were read, and how fast.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Number of steps shown by default: one or two screens, with the lines that sum up the others.
const STEPS: usize = 25;

impl PathArgs {
    pub(crate) fn part(&self) -> Part {
        match self.min {
            _ if self.all => Part::All,
            Some(least) => Part::From(least.0),
            None => Part::Longest(STEPS),
        }
    }
}
