// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command line. Help, man pages and completions all come from here.

mod top;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use lt_bench::BenchArgs;
use lt_common::seconds::seconds;
use lt_proc::{Nanos, Setting};
use lt_readiness::RtArgs;

use crate::action::Action;
use crate::analyze::{self, AnalyzeArgs};
use crate::completion;
use crate::explain::{self, ExplainArgs};
use crate::export::ExportArgs;
use crate::profile::{self, ProfileArgs};
use crate::record::RecordArgs;
use crate::run::{self, RunArgs};
use crate::stacks::{self, StacksArgs};
use crate::why::{self, WhyArgs};

pub(crate) use top::{By, Column, TopArgs};

const EXAMPLES: &str = "\
Exit status: 0 success, 1 error, 2 an alert fired (why, watch, record, run,
stacks), a limit was exceeded (bench), or profiles differ (profile compare).
`run` and `stacks` end with the status of their COMMAND.

Questions:
  What is late now, and why: anywhere, in a process, in a service, on a disk?
    latency-tracker why
    latency-tracker why -p orders
    latency-tracker why --unit nginx.service --over 100ms
    latency-tracker why --disk sda
  Which tasks hang in the kernel, and where?
    latency-tracker start stuck offcpu kthreads=1
    latency-tracker pending stuck --stacks | grep -A8 state=D
  Which disk requests are unfinished, whose are they, and how old?
    latency-tracker start disks block
    latency-tracker pending disks
  What was late before? (if an instance or a recorder was running)
    latency-tracker watch -T
    latency-tracker captures
  Since when has something been late, if nothing was running before?
    latency-tracker why
  And if an instance was running? (AGE: so far; -T: time of day)
    latency-tracker pending slow_disk
    latency-tracker watch -T
  Which interrupts come most often, which softirqs run too long?
    latency-tracker run irq-storm
    latency-tracker run softirq-storm
  Which kernel lock is contended, who waits, and who held it?
    latency-tracker run lock-contention --by lock
    latency-tracker record locks lock threshold=5ms
  How long does something else take, such as fsync in a command?
    latency-tracker recipes
    latency-tracker run fsync -- make
  How do I watch for it from now on?
    latency-tracker start slow_disk block threshold=10ms
    latency-tracker watch slow_disk
    latency-tracker record slow_disk
    latency-tracker stop slow_disk
  Is the module loaded, what runs, and how often?
    latency-tracker check
    latency-tracker top
  How do I switch everything off at once?
    rmmod latency_tracker

rmmod removes all instances and probes; `stop --all` keeps the module. A module
without instances costs 3.2 MB of memory, and no time. An instance costs 380 to
1,900 instructions for each operation that it follows; RATE in `top` counts
these operations. `record` also traces, which costs more. To turn off services,
use `systemctl disable --now`: latency-tracker, latency-tracker-export, and
latency-tracker-record@NAME.";

/// Finds out in production why something was late.
///
/// The latency_tracker kernel module pairs the start and the end of kernel operations, and reports
/// operations that took longer than a threshold. This command starts instances of its trackers,
/// shows their reports, and records a kernel trace of the time before a report. Run it as root.
/// `why` needs no preparation; the questions below name the other commands.
#[derive(Debug, Parser)]
#[command(name = "latency-tracker", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 79)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watches everything, a process, a unit, a disk or a command until an operation is late, and explains why.
    #[command(after_help = why::EXAMPLES)]
    Why(Box<WhyArgs>),
    /// Measures for a while, or for the time of a command, and shows the result.
    #[command(after_help = run::EXAMPLES)]
    Run(Box<RunArgs>),
    /// Sums late operations by their stack: where the tasks waited, or from where they were woken.
    #[command(after_help = stacks::EXAMPLES)]
    Stacks(Box<StacksArgs>),
    /// Lists the recipes for `run`: questions with a name, or shows one.
    #[command(after_help = "Examples:\n  latency-tracker recipes\n  \
latency-tracker recipes --about memory\n  latency-tracker recipes fsync\n  \
latency-tracker recipes --json\n  latency-tracker run fsync -- make\n\n\
Files /etc/latency-tracker/recipes/NAME.recipe add recipes of your own, or\n\
replace those of the same name:\n\n  \
question: How long does fsync of the database take?\n  \
run: syscall calls=fsync comm=postgres threshold=20ms\n  \
normal: Up to 5 ms on this machine.\n  \
next: Look at disk-flush.\n\n\
Indented lines continue the line above. `needs: module NAME` names a module\n\
that must be loaded.")]
    Recipes(RecipesArgs),
    /// Shows the instances and their counters.
    #[command(
        after_help = "Examples:\n  latency-tracker list\n  latency-tracker list slow_disk\n  \
latency-tracker list slow_disk -i 1 10\n  \
latency-tracker list --trackers\n  latency-tracker list --trackers block\n  \
latency-tracker list --json"
    )]
    List(ListArgs),
    /// Starts an instance of a tracker.
    #[command(
        after_help = "Examples:\n  latency-tracker start slow_disk block threshold=10ms\n  \
latency-tracker start sda_queue block threshold=50ms from=insert dev=sda\n\n\
`latency-tracker list --trackers` shows the trackers; with the name of a\n\
tracker, its parameters and examples. A time has a unit: 500us, 10ms, 2s, 5m,\n\
1h; a bare number is nanoseconds. Starting a running instance changes its\n\
parameters."
    )]
    Start(StartArgs),
    /// Makes the running instances match configuration files.
    #[command(after_help = "Examples:\n  latency-tracker apply\n  \
latency-tracker apply ~/disks.conf\n  latency-tracker apply --stop\n  \
latency-tracker check --config\n\n\
A file has lines of the control language, `NAME TRACKER [key=value ...]`, one\n\
for each instance, and comments after #. An instance whose line is unchanged\n\
keeps running; if its cgroup no longer exists, since a unit was restarted, the\n\
path is looked up again. One whose line is gone is removed. Instances that\n\
`apply` did not start are left alone, unless a line has the name and the\n\
tracker of such an instance. An invalid line is reported, and the other lines\n\
take effect; as long as any line is invalid, no instance is removed.")]
    Apply(ApplyArgs),
    /// Stops instances.
    #[command(
        after_help = "Examples:\n  latency-tracker stop slow_disk\n  latency-tracker stop --all"
    )]
    Stop(StopArgs),
    /// Shows the recorded alerts, and new ones as they arrive.
    #[command(
        after_help = "Exit status: 0 no alert fired, 1 error, 2 an alert fired.\n\nExamples:\n  \
latency-tracker watch\n  latency-tracker watch slow_disk -T -d 1m\n  \
latency-tracker watch slow_disk -n 1 --json\n  \
latency-tracker watch slow_disk \\\n      \
--on-alert shell,command='logger -- \"$LT_ALERT\"' --on-alert continue\n\n\
Alerts from before the start come first, below a note; --json prints no note.\n\
Without a name, these include alerts of instances that no longer exist, such\n\
as those of `why`. --new leaves them all out.\n\n\
In a pipe, `watch` ends as soon as the reader has ended, as with `| head -n 3`.\n\n\
A shell command gets the alert in LT_ALERT, LT_INSTANCE and LT_DELAY (ns).\n\
LT_ALERT contains names chosen by users of this machine: quote it, after `--`."
    )]
    Watch(WatchArgs),
    /// Shows a histogram and percentiles of the delays.
    #[command(
        after_help = "Examples:\n  latency-tracker hist slow_disk\n  latency-tracker hist slow_disk -m\n  \
latency-tracker hist slow_disk -i 5 12\n  latency-tracker hist --json\n  \
latency-tracker start by_program block by=comm\n  \
latency-tracker hist by_program --by\n\n\
Percentiles are upper bounds of the kernel's buckets: at most 1/8 above the\n\
true value. With --by, each delay is in one row: the row of its label or, if\n\
all labels of the instance are taken (max_labels=), the last row, `other`. The\n\
row with the longest total is first. With by=stack, the functions of the stack\n\
are below its row."
    )]
    Hist(HistArgs),
    /// Shows the operations in flight now, the oldest first.
    #[command(
        after_help = "Examples:\n  latency-tracker pending\n  latency-tracker pending slow_disk --stacks\n  \
latency-tracker pending --json\n  latency-tracker start stuck offcpu kthreads=1\n  \
latency-tracker pending stuck --stacks | grep -A8 state=D\n\n\
An AGE with > is a lower bound: the operation began before its instance. Only\n\
instances of offcpu, syscall and lock show such operations, and a note names\n\
those that they cannot. Disk requests are listed, with their disk, if they\n\
began after the instance. The last example lists the tasks that hang in the\n\
kernel."
    )]
    Pending(PendingArgs),
    /// Shows all instances live: rates, percentiles, alerts, operations in flight, losses.
    #[command(after_help = top::EXAMPLES)]
    Top(TopArgs),
    /// Shows where time goes on the paths from interrupts and timers to tasks, by kind of step.
    #[command(
        after_help = "Examples:\n  latency-tracker start chain tree threshold=1ms\n  \
latency-tracker steps\n  latency-tracker steps chain --json\n\n\
Counts all chains that have ended, late or not. The time of a step lasts until\n\
the next one. P99 is an upper bound: at most a quarter above the true value."
    )]
    Steps(StepsArgs),
    /// Shows the wake chains from interrupts and timers that have not reached user space yet.
    #[command(after_help = "Examples:\n  latency-tracker start chain tree\n  \
latency-tracker tree chain --live\n  latency-tracker tree chain --live --interval 200ms\n  \
latency-tracker tree chain --json\n\n\
One line for each interrupt or timer, the oldest first. Below it are the tasks,\n\
work items and calls in flight from it: each with its steps so far, their CPUs,\n\
and their shares of the time.")]
    Tree(TreeArgs),
    /// Prints, compares and draws I/O latency by class.
    #[command(after_help = profile::EXAMPLES)]
    Profile(ProfileArgs),
    /// Waits for alerts, and saves a trace of the time before each.
    Record(Box<RecordArgs>),
    /// Lists the captures of `record`, or shows one.
    #[command(after_help = "Examples:\n  latency-tracker captures\n  \
latency-tracker captures 7\n  latency-tracker captures -o /srv/slow --json")]
    Captures(CapturesArgs),
    /// Serves counters and histograms to Prometheus, and sends them by OTLP.
    #[command(after_help = "Examples:\n  latency-tracker export\n  \
latency-tracker export --listen '0.0.0.0:9817'\n  latency-tracker export --once\n  \
latency-tracker export --otlp http://localhost:4318 --alerts\n\n\
A counter of `latency-tracker list NAME` is latency_tracker_COUNTER_total, with\n\
name and tracker as labels; one that can decrease, such as pending, is a gauge\n\
without _total. Delays are the histogram latency_tracker_delay_seconds, and the\n\
longest one is latency_tracker_longest_delay_seconds. The page is OpenMetrics\n\
text for clients that accept it, otherwise the older text. The command changes\n\
nothing. Members of the group that may read /proc/latency_tracker can run it;\n\
exemplars from a directory other than the default need permission to read the\n\
captures.\n\n\
OTLP messages that the collector cannot take yet wait in a queue of 4 MiB; when\n\
it is full, the oldest are dropped and counted in\n\
latency_tracker_export_dropped_total.")]
    Export(ExportArgs),
    /// Explains why something was late, from a capture of `record` or another trace.
    #[command(after_help = explain::EXAMPLES)]
    Explain(ExplainArgs),
    /// Shows what a thread waited for, or how long operations took, from a kernel trace.
    #[command(after_help = analyze::EXAMPLES)]
    Analyze(AnalyzeArgs),
    /// Measures how long a CPU is kept from a task, how late a task is woken, and how fast LTTng can record.
    #[command(after_help = lt_bench::EXAMPLES)]
    Bench(Box<BenchArgs>),
    /// Shows the cost of the probes, from the processor's counters.
    #[command(after_help = "Examples:\n  rmmod latency_tracker\n  \
modprobe latency_tracker measure=cycles,instructions,branch-misses\n  \
latency-tracker start cost wakeup threshold=1h\n  latency-tracker measure\n  \
latency-tracker measure --json\n\n\
The module must be loaded with measure=; modprobe changes no loaded module.\n\
Percentiles are upper bounds: at most 1/8 above the true value. The correlation\n\
of a counter with the cycles is from -1 to 1.")]
    Measure(MeasureArgs),
    /// Checks whether this machine is ready, and how to fix it if not.
    #[command(
        after_help = "Exit status: 0 ready, 1 something is missing or bad.\n\nExamples:\n  \
latency-tracker check\n  latency-tracker check --rt\n  latency-tracker check --rt 2-3 --pid 1234\n  \
latency-tracker check --config\n  latency-tracker check --rt 2-3 --print-fix > fix.sh\n  latency-tracker check --rt 2-3 --json\n\n\
With --rt: \"bad\" rules out real-time work on these CPUs, \"warn\" may delay it,\n\
\"n/a\" cannot be checked on this machine, or only by root."
    )]
    Check(CheckArgs),
    /// Prints the completions of a shell; `make install` installs them.
    #[command(after_help = "Example:\n  \
latency-tracker completions bash > /etc/bash_completion.d/latency-tracker\n\n\
The shell then completes commands, options, KEY=VALUE, and the names of\n\
instances, trackers, recipes, processes, disks, cgroups, functions and\n\
tracepoints that the user may see.")]
    Completions {
        /// bash, zsh, fish, elvish or powershell.
        shell: clap_complete::Shell,
    },
    /// Writes the man pages to a directory; `make install` installs them.
    #[command(after_help = "Example:\n  latency-tracker man /usr/local/share/man/man1")]
    Man {
        /// The directory; created if it is missing.
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Show all parameters and counters of this instance; with --trackers, this tracker only, with examples.
    #[arg(add = ArgValueCompleter::new(completion::instances_or_trackers))]
    pub(crate) name: Option<String>,
    /// Show the trackers, with their parameters, defaults and units.
    #[arg(short, long)]
    pub(crate) trackers: bool,
    /// Show the counters of the instance that are not 0, and their rates, in each INTERVAL (a bare number is seconds),
    /// COUNT times.
    #[arg(short, long, num_args = 1..=2, value_names = ["INTERVAL", "COUNT"], requires = "name", conflicts_with = "trackers")]
    pub(crate) interval: Vec<String>,
    /// Print one JSON object per line.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecipesArgs {
    /// Show this recipe: what it measures, what is normal, and what to do next.
    #[arg(add = ArgValueCompleter::new(completion::recipes))]
    pub(crate) name: Option<String>,
    /// List only recipes with WORD in their name or text, in upper or lower case.
    #[arg(short, long, value_name = "WORD", conflicts_with = "name")]
    pub(crate) about: Option<String>,
    /// Print one JSON object per line.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    /// The name of the instance, and of its directory below /proc/latency_tracker.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: String,
    /// The tracker.
    #[arg(add = ArgValueCompleter::new(completion::trackers))]
    pub(crate) tracker: String,
    /// Parameters of the tracker.
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) settings: Vec<Setting>,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// Files, or directories whose *.conf files are read in the order of their names; /etc/latency-tracker
    /// if omitted.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Remove the instances that `apply` has started from these files.
    #[arg(long)]
    pub(crate) stop: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The instances to stop.
    #[arg(required_unless_present = "all", add = ArgValueCompleter::new(completion::instances))]
    pub(crate) names: Vec<String>,
    /// Stop every instance.
    #[arg(short, long, conflicts_with = "names")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The instance; all if omitted.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: Option<String>,
    /// Print one JSON object per line.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Show the time of day first.
    #[arg(short = 'T', long)]
    pub(crate) timestamp: bool,
    /// Also show the stack of the waker, one function per line.
    #[arg(short, long)]
    pub(crate) stacks: bool,
    /// End after this time (10s, 5m; a bare number is seconds).
    #[arg(short, long, value_parser = seconds)]
    pub(crate) duration: Option<Nanos>,
    /// Leave out alerts recorded before this command started; the default with --on-alert.
    #[arg(long)]
    pub(crate) new: bool,
    /// End after this many alerts.
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// On each alert: snapshot[,session=NAME] | shell,command=COMMAND | signal,num=N,pid=PID |
    /// continue. Repeatable; without `continue`, watch ends at the first alert. pid=parent is the
    /// process that started watch. A failed action ends the run.
    #[arg(long, value_name = "ACTION")]
    pub(crate) on_alert: Vec<Action>,
}

#[derive(Debug, Args)]
pub(crate) struct CapturesArgs {
    /// Show the alerts and the explanation of this capture, instead of a list.
    pub(crate) number: Option<u64>,
    /// The directory of the captures.
    #[arg(short, long, value_name = "DIR", default_value = crate::record::CAPTURES)]
    pub(crate) output: PathBuf,
    /// Print one JSON object per capture.
    #[arg(short, long, conflicts_with = "number")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HistArgs {
    /// The instance; all if omitted.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: Option<String>,
    /// Show a row for each label of an instance with by=FIELD, instead of a histogram.
    #[arg(long, conflicts_with_all = ["milliseconds", "nanoseconds"])]
    pub(crate) by: bool,
    /// Show the delays since the last reset, and reset: each delay is shown by exactly one reset.
    #[arg(short, long, requires = "name", conflicts_with_all = ["interval", "since_reset"])]
    pub(crate) reset: bool,
    /// Show the delays since the last reset.
    #[arg(long, requires = "name", conflicts_with = "interval")]
    pub(crate) since_reset: bool,
    /// Show a histogram of each INTERVAL (a bare number is seconds), COUNT times.
    #[arg(short, long, num_args = 1..=2, value_names = ["INTERVAL", "COUNT"])]
    pub(crate) interval: Vec<String>,
    /// Show a line for each INTERVAL: a heat map that runs down.
    #[arg(short, long, requires = "interval", conflicts_with_all = ["by", "json", "milliseconds", "nanoseconds"])]
    pub(crate) live: bool,
    /// Write a heat map of all INTERVALs to this file at the end, which may be Ctrl-C.
    #[arg(long, value_name = "FILE", requires = "interval", conflicts_with_all = ["by", "json", "milliseconds", "nanoseconds"])]
    pub(crate) svg: Option<PathBuf>,
    /// Print one JSON object per histogram.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Use milliseconds for the rows instead of microseconds.
    #[arg(short, long, conflicts_with = "nanoseconds")]
    pub(crate) milliseconds: bool,
    /// Use nanoseconds for the rows.
    #[arg(short = 'N', long)]
    pub(crate) nanoseconds: bool,
    /// Show the time of day first.
    #[arg(short = 'T', long)]
    pub(crate) timestamp: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StepsArgs {
    /// An instance of the tracker `tree`; all of them if omitted.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: Option<String>,
    /// Print one JSON object per line.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// An instance of the tracker `tree`.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: String,
    /// Refresh until Ctrl-C. If the output is not a terminal, print once.
    #[arg(short, long)]
    pub(crate) live: bool,
    /// With --live: the time between two refreshes (a bare number is seconds).
    #[arg(short, long, default_value = "1", value_parser = seconds, value_name = "TIME")]
    pub(crate) interval: Nanos,
    /// Print one JSON object per interrupt or timer.
    #[arg(short, long, conflicts_with = "live")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PendingArgs {
    /// The instance; all if omitted.
    #[arg(add = ArgValueCompleter::new(completion::instances))]
    pub(crate) name: Option<String>,
    /// Show the current kernel stack of each task, one function per line.
    #[arg(short, long)]
    pub(crate) stacks: bool,
    /// Print one JSON object per line.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Print one JSON object.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Print one JSON object per line.
    #[arg(short, long)]
    pub(crate) json: bool,
    /// Check configuration files as `apply` would read them; the kernel validates every line, and nothing is
    /// started. Without PATH, those in /etc/latency-tracker.
    #[arg(long, value_name = "PATH", num_args = 0.., conflicts_with = "rt")]
    pub(crate) config: Option<Vec<PathBuf>>,
    #[command(flatten)]
    pub(crate) real_time: RtArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bare_numbers_are_seconds() {
        assert_eq!(seconds("5"), Ok(Nanos(5_000_000_000)));
        assert_eq!(seconds("500ms"), Ok(Nanos(500_000_000)));
        assert!(seconds("").is_err());
        assert!(seconds("x").is_err());
    }

    #[test]
    fn intervals_take_a_count() {
        let cli = Cli::try_parse_from(["lt", "hist", "a", "-i", "1", "5"]).unwrap();
        let Command::Hist(args) = cli.command else {
            panic!()
        };
        assert_eq!(args.interval, ["1", "5"]);
    }

    #[test]
    fn every_help_fits_on_a_terminal_and_has_examples() {
        let mut command = Cli::command();
        command.build();
        is_not_wrapped(&command);
        fits(&mut command);
    }

    /// The command lines of a page, in backticks or indented as code.
    fn commands(page: &str) -> Vec<String> {
        const NAME: &str = "latency-tracker ";
        let code = page.lines().filter_map(|line| line.strip_prefix("    "));
        let quoted = page.lines().filter(|line| !line.starts_with("    "));
        let quoted = quoted.flat_map(|line| line.split('`').skip(1).step_by(2));
        let all = code.chain(quoted).map(str::trim);
        all.filter(|text| text.starts_with(NAME))
            .map(Into::into)
            .collect()
    }

    #[test]
    fn the_commands_for_users_of_other_tools_exist() {
        let page = include_str!("../../../Documentation/guide/coming-from.md");
        let all = commands(page);
        assert!(all.len() > 40, "{all:?}");
        for line in &all {
            let words: Vec<_> = line.split_whitespace().collect();
            let parsed = Cli::try_parse_from(&words);
            let cli = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            // Each parameter is described on the page of its tracker, or is common to all trackers.
            if let Command::Start(args) = cli.command {
                let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Documentation");
                let read = |file: String| std::fs::read_to_string(format!("{directory}/{file}"));
                let tracker = read(format!("trackers/{}.md", args.tracker)).expect(line);
                let common = read("guide/control-language.md".into()).expect(line);
                for setting in &args.settings {
                    let named = format!("`{}`", setting.key);
                    assert!(
                        tracker.contains(&named) || common.contains(&named),
                        "{line}: {named}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_commands_of_the_first_page_exist() {
        let all = commands(EXAMPLES);
        assert!(all.len() > 15, "{all:?}");
        let recipes = crate::recipes::Recipes::read();
        for line in &all {
            let command = line.split(" | ").next().unwrap_or_default();
            // A process with the name in the example need not exist here.
            let command = command.replace("-p orders", "-p 1");
            let parsed = Cli::try_parse_from(command.split_whitespace());
            let cli = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            if let Command::Run(args) = cli.command {
                assert!(matches!(recipes.find(&args.what), Ok(Some(_))), "{line}");
            }
        }
    }

    /// Checks that lines broken by hand are short enough not to wrap.
    fn is_not_wrapped(command: &clap::Command) {
        let text = command.get_after_help().map(ToString::to_string);
        for line in text.iter().flat_map(|text| text.lines()) {
            let name = command.get_name();
            assert!(line.chars().count() < 80, "{name}: {line}");
        }
    }

    fn fits(command: &mut clap::Command) {
        for sub in command
            .get_subcommands_mut()
            .filter(|c| c.get_name() != "help")
        {
            fits(sub);
            is_not_wrapped(sub);
            let help = sub.render_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() < 80, "{}: {line}", sub.get_name());
            }
            assert!(help.contains("Example"), "{}", sub.get_name());
        }
    }
}
