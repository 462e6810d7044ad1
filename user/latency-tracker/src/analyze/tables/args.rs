// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of the analyses that print tables.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lt_common::out;
use lt_model::tables::By;
use lt_proc::Nanos;

use super::super::parquet::ParquetArgs;
use crate::trace::When;

/// Help of an analysis: its own part, then the common part.
macro_rules! help {
    ($($own:literal)*) => {
        concat!(
            "Examples:\n",
            $($own,)*
            "\n\
A duration is measured only if its start, its end and all events in between\n\
were recorded; what was not measured is counted below each table. P50, P90 and\n\
P99 are exact for up to 1,024 durations, and otherwise at most 1/8 too high.\n\
With -i, a duration counts in the interval in which it ends. --json and --csv\n\
print all rows, with times in ns.\n\
\n\
--svg draws how long the operations took over time; a darker cell has more of\n\
them. With -i, a column is an interval.\n\
\n\
--html writes a page to send: the text, the picture of --svg, all rows with a\n\
histogram of each, and what was not measured. A click sorts the rows. The page\n\
needs no network.\n\
\n\
--folded prints `frame;frame;frame NANOSECONDS`: the table, the process, the\n\
name of the thread, and the call, disk, lock, waker, kind of reclaim or network\n\
device; for interrupts and work items only the table and the line, softirq or\n\
function. The sums are those of the tables.\n\
\n\
--parquet writes every measured operation as a row, for SQL over the traces of\n\
many hosts; --host names the host if the trace does not."
        )
    };
}

pub(crate) const WAKEUPS: &str = help!(
    "  latency-tracker analyze wakeups /srv/slow/0001/trace\n"
    "  latency-tracker analyze wakeups trace --by cpu -i 100ms\n"
    "  latency-tracker analyze wakeups trace --tid 812 --from +2s --to +3s -n 20\n"
    "  latency-tracker analyze wakeups trace --svg wakeups.svg\n"
    "  latency-tracker analyze wakeups trace --html wakeups.html\n"
    "  latency-tracker analyze wakeups /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "From sched_waking (of a new thread: sched_wakeup_new) to the sched_switch to\n"
    "the thread, as the tracker wakeup measures. Without sched_waking, sched_wakeup\n"
    "is the start.\n"
);

pub(crate) const SLEEPS: &str = help!(
    "  latency-tracker analyze sleeps /srv/slow/0001/trace\n"
    "  latency-tracker analyze sleeps trace --by kind -i 1s\n"
    "  latency-tracker analyze sleeps trace --tid 812 --by waker -n 20\n"
    "  latency-tracker analyze sleeps trace --by stack --csv\n"
    "  latency-tracker analyze sleeps trace --folded | flamegraph.pl\n"
    "  latency-tracker analyze sleeps /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "From the sched_switch from a thread that goes to sleep to its sched_waking; the\n"
    "time from there until it runs is that of analyze wakeups. Without sched_waking,\n"
    "sched_wakeup is the end. CPU is the waker's, also with --by cpu.\n"
    "\n"
    "--by state: S, D, I, T or t, as in ps, or other. --by waker: the thread,\n"
    "interrupt, softirq, timer or disk that woke the thread. --by kind: the state\n"
    "and the kind of waker; --by stack: also the process and the thread. UNKNOWN is\n"
    "the number of sleeps whose waker is not recorded. irq_handler_*,\n"
    "irq_softirq_*, timer_hrtimer_expire_* and x86_irq_vectors_* show whether the\n"
    "waker was an interrupt or the thread on its CPU; block_rq_complete shows the\n"
    "disk.\n"
    "\n"
    "--by call: the system call in which the thread slept; the trace must have all\n"
    "system calls (latency-tracker record --events-for sleeps,syscalls). It is not\n"
    "recorded until the thread starts or ends a call in the trace, as kernel threads\n"
    "never do, and after a signal handler until the next call.\n"
);

pub(crate) const CPU: &str = help!(
    "  latency-tracker analyze cpu /srv/slow/0001/trace\n"
    "  latency-tracker analyze cpu trace --by cpu -i 1s --csv\n"
    "  latency-tracker analyze cpu trace --by name --from +2s --to +3s\n"
    "  latency-tracker analyze cpu trace --folded | flamegraph.pl\n"
    "  latency-tracker analyze cpu /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs sched_switch. TIME is the time on CPUs in the range, or in an interval,\n"
    "including runs that began before it or end after it, and interrupts. % is of\n"
    "one CPU. A run is from one switch to the next. A thread that is switched out\n"
    "while runnable counts as preempted until it runs again, as in the tracker\n"
    "runqueue.\n"
);

pub(crate) const IRQ: &str = help!(
    "  latency-tracker analyze irq /srv/slow/0001/trace\n"
    "  latency-tracker analyze irq trace --by cpu -i 1s\n"
    "  latency-tracker analyze irq trace --json | jq '.tables[0].worst'\n"
    "  latency-tracker analyze irq trace --svg irq.svg\n"
    "  latency-tracker analyze irq /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs irq_handler_entry and _exit, or irq_softirq_entry and _exit;\n"
    "irq_softirq_raise adds how long softirqs waited. Worst cases and --tid name the\n"
    "interrupted thread, if sched_switch is recorded.\n"
);

pub(crate) const SYSCALLS: &str = help!(
    "  latency-tracker analyze syscalls trace\n"
    "  latency-tracker analyze syscalls trace --by thread\n"
    "  latency-tracker analyze syscalls trace --by file -n 20\n"
    "  latency-tracker analyze syscalls trace --tid 812 -i 100ms --csv\n"
    "  latency-tracker analyze syscalls trace --folded | flamegraph.pl\n"
    "  latency-tracker analyze syscalls /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs system calls (latency-tracker record --events-for syscalls), and\n"
    "sched_switch or the context tid. ERRORS is the number of calls that returned\n"
    "an error. Calls that never return are not counted. --by file needs all system\n"
    "calls and sched_process_fork; sched_process_exec, lttng_statedump_process_state\n"
    "and lttng_statedump_file_descriptor add names. A name is shown only if it is\n"
    "certain.\n"
);

pub(crate) const IO: &str = help!(
    "  latency-tracker analyze io /srv/slow/0001/trace\n"
    "  latency-tracker analyze io trace --by device -i 1s\n"
    "  latency-tracker analyze io trace --by thread --json\n"
    "  latency-tracker analyze io trace -i 100ms --svg io.svg\n"
    "  latency-tracker analyze io trace --html io.html\n"
    "  latency-tracker analyze io /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs block_rq_issue and block_rq_complete; block_rq_insert adds the time in\n"
    "the queue, and block_rq_requeue and block_rq_merge are followed. The times are\n"
    "as in the tracker block. Events are paired by disk, sector and length: requests\n"
    "that are identical in these and in flight at once are not measured. --by cpu:\n"
    "the CPU of the issue and, at the device, of the completion; REQUEUES, MERGES\n"
    "and PARTS count for the CPU of their event.\n"
);

pub(crate) const LOCKS: &str = help!(
    "  latency-tracker analyze locks trace\n"
    "  latency-tracker analyze locks trace --by lock -n 20\n"
    "  latency-tracker analyze locks trace --by thread --json\n"
    "  latency-tracker analyze locks trace --folded | flamegraph.pl\n"
    "  latency-tracker analyze locks /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs lock:contention_begin and _end, which perf records, or futex calls\n"
    "(latency-tracker record --events-for locks), and which thread ran. Futex calls\n"
    "include those that wait for no lock. --by cpu: the CPU where the lock was\n"
    "acquired, or the call ended.\n"
);

pub(crate) const WORK: &str = help!(
    "  latency-tracker analyze work /srv/slow/0001/trace\n"
    "  latency-tracker analyze work trace --by workqueue -n 20\n"
    "  latency-tracker analyze work trace --by process --json\n"
    "  latency-tracker analyze work trace -i 100ms --svg work.svg\n"
    "  latency-tracker analyze work /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs workqueue_execute_start, and which thread ran; workqueue_queue_work adds\n"
    "how long work items waited and what queued them, and workqueue_execute_end how\n"
    "long they ran, as the tracker workqueue measures. An item that is queued again\n"
    "before it starts is counted, and its wait is not measured. Functions have names\n"
    "if the trace is of this boot; only perf records the workqueue.\n"
    "\n"
    "The thread, also with --tid, --by thread and --by name, is the worker. --by\n"
    "queuer: the thread, interrupt, softirq, timer, disk or other work item that\n"
    "queued the item. --by process: the process of that thread; other queuers have\n"
    "the rows of --by queuer. irq_handler_*, irq_softirq_*, timer_hrtimer_expire_*\n"
    "and x86_irq_vectors_* show whether an interrupt queued the item, or the thread\n"
    "on its CPU; without them, a thread is named as `sh/77 or an interrupt`.\n"
);

pub(crate) const RECLAIM: &str = help!(
    "  latency-tracker analyze reclaim /srv/slow/0001/trace\n"
    "  latency-tracker analyze reclaim trace --by kind -i 1s\n"
    "  latency-tracker analyze reclaim trace --by stack -n 20\n"
    "  latency-tracker analyze reclaim trace --folded | flamegraph.pl\n"
    "  latency-tracker analyze reclaim /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "Needs the starts and ends of any of mm_vmscan_direct_reclaim_*,\n"
    "mm_vmscan_memcg_reclaim_*, mm_vmscan_kswapd_wake and _sleep, or (only perf\n"
    "records them) mm_compaction_*; and which thread ran. A thread that finds no\n"
    "free memory, or whose cgroup is at its limit (memcg), reclaims some itself and\n"
    "is delayed meanwhile; kswapd reclaims in the background. --by stack: process,\n"
    "thread and kind. --by cpu: the CPU where the reclaim ended.\n"
);

pub(crate) const NET: &str = help!(
    "  latency-tracker analyze net /srv/slow/0001/trace\n"
    "  latency-tracker analyze net trace --by process -i 1s\n"
    "  latency-tracker analyze net trace --by cpu --json\n"
    "  latency-tracker analyze net trace --svg net.svg\n"
    "  latency-tracker analyze net /srv/slow/0001/trace --parquet fleet\n"
    "\n"
    "A packet is in the backlog of a CPU from net_if_rx to net_if_receive_skb, and\n"
    "on its way to the driver of a device from net_dev_queue to net_dev_xmit. Needs\n"
    "these events, skb_kfree and skb_consume, and which thread ran (latency-tracker\n"
    "record --events-for net). The thread is the one that sent the packet; packets\n"
    "that a softirq or a handler sent, as irq_softirq_entry, _exit and irq_handler_*\n"
    "show, have none.\n"
    "\n"
    "From netif_receive_skb to its reader, as the tracker net measures, a packet is\n"
    "followed only in a trace of perf: some functions free packets without an event,\n"
    "and only perf records the packets that they free, with these fprobes:\n"
    "  for f in __kfree_skb skb_attempt_defer_free kfree_skb_partial; do\n"
    "    echo \"f:fprobes/$f $f skbaddr=\\$arg1:x64\"\n"
    "  done >>/sys/kernel/tracing/dynamic_events\n"
    "  perf record -a -e 'net:*' -e 'skb:*' -e 'fprobes:*' -e 'irq:*' \\\n"
    "    -e sched:sched_switch sleep 10\n"
    "  perf data convert --to-ctf trace\n"
    "The thread of a received packet is its reader. --by end also shows whether\n"
    "packets were copied to user space, consumed or dropped. perf enables one event\n"
    "after another, so packets of the first second are not measured.\n"
);

/// A parser of `--by`.
fn by(names: &'static [&'static str]) -> impl TypedValueParser<Value = By> {
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "process" => By::Process,
        "name" => By::Name,
        "cpu" => By::Cpu,
        "priority" => By::Priority,
        "device" => By::Device,
        "lock" => By::Lock,
        "call" => By::Call,
        "file" => By::File,
        "state" => By::State,
        "waker" => By::Waker,
        "stack" => By::Stack,
        "workqueue" => By::Workqueue,
        "queuer" => By::Queuer,
        "thread" => By::Thread,
        _ => By::Object,
    })
}

/// Maximum number of intervals.
pub(crate) const INTERVALS: u64 = 10_000;

/// Parses the length of an interval.
pub(crate) fn interval(text: &str) -> Result<Nanos, String> {
    match lt_proc::parse_duration(text) {
        Ok(Nanos(0)) => Err("expected a duration greater than 0".into()),
        Ok(interval) => Ok(interval),
        Err(error) => Err(error.to_string()),
    }
}

/// The error about a range with too many intervals of this length.
pub(crate) fn too_many(interval: Nanos) -> String {
    format!(
        "--interval {}: more than {} intervals; choose a longer one",
        interval.exact(),
        out::thousands(INTERVALS)
    )
}

#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    /// The trace: a directory.
    pub(crate) trace: PathBuf,
    /// Start of the range; by default the start of the trace.
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub(crate) from: Option<When>,
    /// End of the range; by default the end of the trace.
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    pub(crate) to: Option<When>,
    /// Only the thread with this number.
    #[arg(short, long)]
    pub(crate) tid: Option<i32>,
    /// Divide the range into intervals of this length (100ms, 1s).
    #[arg(short, long, value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Option<Nanos>,
    /// Show this many rows (of each interval) and worst cases; by default 5.
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// Print one JSON object.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Print the rows as comma-separated values.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Print the sums as folded stacks, in ns, for flame graphs.
    #[arg(long, conflicts_with_all = ["by", "interval", "limit", "json", "csv", "html"])]
    pub(crate) folded: bool,
    /// Also write the tables as a page for a browser, in one file; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also draw a heat map of the durations over time (SVG); an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) parquet: ParquetArgs,
}

macro_rules! args {
    ($($name:ident [$($by:literal),*] $default:literal;)*) => {$(
        #[derive(Debug, Args)]
        pub(crate) struct $name {
            #[command(flatten)]
            pub(crate) common: TableArgs,
            /// What a row is for.
            #[arg(long, default_value = $default, value_parser = by(&[$($by),*]))]
            pub(crate) by: By,
        }
    )*};
}

args! {
    WakeupsArgs ["thread", "process", "name", "cpu", "priority"] "thread";
    SleepsArgs [
        "thread", "process", "name", "cpu", "state", "waker", "kind", "call", "stack"
    ] "thread";
    CpuArgs ["thread", "process", "name", "cpu", "priority"] "thread";
    IrqArgs ["line", "cpu"] "line";
    SyscallsArgs ["call", "file", "thread", "process", "name", "cpu"] "call";
    IoArgs ["operation", "device", "thread", "process", "name", "cpu"] "operation";
    LocksArgs ["kind", "lock", "thread", "process", "name", "cpu"] "kind";
    WorkArgs ["function", "workqueue", "queuer", "process", "thread", "name", "cpu"] "function";
    ReclaimArgs ["process", "thread", "name", "cpu", "kind", "stack"] "process";
    NetArgs ["device", "end", "process", "thread", "name", "cpu", "stack"] "device";
}
