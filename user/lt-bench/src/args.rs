// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lt_common::seconds::seconds;
use lt_proc::Nanos;
use lt_readiness::Cpus;

use super::rate::args::{self as rate, RateArgs};

/// The end of the help of `bench`.
pub const EXAMPLES: &str = "\
Examples:
  latency-tracker bench loop --cpu 3 --duration 1m
  latency-tracker bench timer --cpu 3 --duration 1m --compare
  latency-tracker bench rate --kind syscall --cpu 3
  latency-tracker bench plot before.json after.json -o both.svg";

const LOOP_EXAMPLES: &str = "\
Exit status: 0 passed, 1 error, 2 failed: a loop took --threshold or longer,
--arm or --snapshot added more than --max-added, or data was lost.

Examples:
  latency-tracker bench loop
  latency-tracker bench loop --cpu 2-3 -d 1m -t 50us -o run.json -o run.svg
  latency-tracker bench loop --arm --event syscall --rate 1000 --max-added 5us
  latency-tracker bench loop -t 200us --snapshot /srv/peaks --stop
  latency-tracker bench loop -l 10000000 --json | jq .series
  latency-tracker bench loop -c 3 --in-kernel --yes -d 1m -t 10us

The loop needs root, except with --priority 0 and without --arm, --snapshot and
--in-kernel. It occupies a CPU that the rest of the system must do without.
Ctrl-C ends it. The guide is Documentation/guide/real-time.md.";

const TIMER_EXAMPLES: &str = "\
Exit status: 0 passed, 1 error, 2 failed: a cycle was late by --threshold or
more, or data was lost.

Examples:
  latency-tracker bench timer
  latency-tracker bench timer --cpu 2-3 -i 500us -d 10m -t 50us -o run.json
  latency-tracker bench timer -l 100000 --json | jq '.late[] | .cause'
  latency-tracker bench timer -d 3m --compare -o all.svg

It needs root, the module, and a CPU that the rest of the system can spare.
--compare alternates with cyclictest and, if the kernel has its tracer, rtla
timerlat. Ctrl-C ends it. The guide is
Documentation/guide/real-time.md.";

const PLOT_EXAMPLES: &str = "\
Reads the .json and .txt files of `bench loop`, `bench timer` and `bench rate`,
and the output of `rtla timerlat hist`, `rtla osnoise hist`, `cyclictest -h N`,
`cyclictest --json` and `oslat --json`.

Examples:
  latency-tracker bench plot monday.json tuesday.json -o both.svg
  cyclictest -q -h 100 -D 1m -p 95 -m -a 3 > cyclictest.txt
  latency-tracker bench plot run.json cyclictest.txt
  latency-tracker bench plot run.json -o run.txt && gnuplot -p -e \\
      \"set logscale; plot 'run.txt' using 1:3 with steps\"";

/// Measures how long a CPU is kept from a task, how late a task is woken, and how fast LTTng can record.
#[derive(Debug, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Runs an empty loop: time lost went to the kernel, the firmware or the host.
    #[command(after_help = LOOP_EXAMPLES)]
    Loop(Box<LoopArgs>),
    /// Runs a periodic task: how late each wakeup is, and the path that led to it.
    #[command(after_help = TIMER_EXAMPLES)]
    Timer(Box<TimerArgs>),
    /// Searches for the highest rate of events at which LTTng loses none.
    #[command(after_help = rate::EXAMPLES)]
    Rate(Box<RateArgs>),
    /// Compares several runs, also of rtla, cyclictest and oslat, in a table and a plot.
    #[command(after_help = PLOT_EXAMPLES)]
    Plot(PlotArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LoopArgs {
    /// The CPUs, each with a loop: a list such as 2-3. By default the last isolated CPU, or the last one if none is.
    #[arg(
        short,
        long,
        value_name = "CPUS",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cpu: Cpus,
    /// How long to measure on each CPU (10s, 5m; a bare number is seconds).
    #[arg(short, long, value_parser = seconds, default_value = "10s")]
    pub(crate) duration: Nanos,
    /// Measure this many iterations instead.
    #[arg(short, long, value_name = "COUNT", value_parser = positive, conflicts_with = "duration")]
    pub(crate) loops: Option<u64>,
    /// Warm-up iterations, not measured.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    pub(crate) warm_up: u64,
    /// An iteration that takes this long or longer is a peak, whose cause is searched for.
    #[arg(short, long, value_name = "TIME", value_parser = time, default_value = "100us")]
    pub(crate) threshold: Nanos,
    /// End at the first peak.
    #[arg(short, long)]
    pub(crate) stop: bool,
    /// Search for the causes of this many peaks; further ones are only counted.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) max_causes: u64,
    /// The SCHED_FIFO priority, 1 to 99; 0 for a SCHED_OTHER task, which other tasks may preempt.
    #[arg(short, long, default_value_t = 95, value_parser = clap::value_parser!(i32).range(0..=99))]
    pub(crate) priority: i32,
    /// The clock.
    #[arg(long, value_enum, default_value_t = Source::Auto)]
    pub(crate) clock: Source,
    /// Allow only idle states with at most this exit latency, in us (/dev/cpu_dma_latency); `none` allows all.
    #[arg(long, value_name = "US", default_value = "0", value_parser = dma_latency)]
    pub(crate) dma_latency: DmaLatency,
    /// The length of a measurement slice.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s")]
    pub(crate) slice: Nanos,
    /// The pause after each slice, which leaves the CPU to other tasks. By default 50ms, or 0 on an isolated CPU.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) rest: Option<Nanos>,
    /// Generate an event in each iteration, for trackers and LTTng to record: a system call (getppid).
    #[arg(short, long, value_enum, default_value_t = EventKind::None)]
    pub(crate) event: EventKind,
    /// Generate at most this many events a second.
    #[arg(short, long, value_name = "COUNT", value_parser = positive, requires = "event")]
    pub(crate) rate: Option<u64>,
    /// Alternate between ON with events and OFF without: 10ms,90ms. Both are shown.
    #[arg(short, long, value_name = "ON,OFF", value_parser = burst, requires = "event")]
    pub(crate) burst: Option<Burst>,
    /// Run the loop in the kernel with interrupts off, at most 1 ms at a time with 1 ms rest: time lost went to an NMI,
    /// the firmware, the hardware or the host. Needs the module and --yes.
    #[arg(long, conflicts_with_all = ["arm", "snapshot", "event", "loops", "clock", "warm_up"])]
    pub(crate) in_kernel: bool,
    /// Confirm that --in-kernel may disable interrupts on the CPUs.
    #[arg(long, requires = "in_kernel")]
    pub(crate) yes: bool,
    /// In every second slice, run the trackers irq, softirq, runqueue and, with --event, syscall on the loop.
    #[arg(short, long)]
    pub(crate) arm: bool,
    /// In every second slice, run LTTng's flight recorder. At a peak, save and explain its buffers in this directory,
    /// to which no other user may have write access.
    #[arg(long, value_name = "DIR")]
    pub(crate) snapshot: Option<PathBuf>,
    /// Take at most this many snapshots.
    #[arg(long, value_name = "COUNT", default_value_t = 3, requires = "snapshot")]
    pub(crate) max_snapshots: usize,
    /// Fail if --arm or --snapshot adds more than this to p99.99.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) max_added: Option<Nanos>,
    /// Also write the result: .json, .svg, or .txt (a table in the format of rtla). Repeatable.
    #[arg(short, long, value_name = "FILE", value_parser = output)]
    pub(crate) output: Vec<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(short, long)]
    pub(crate) json: bool,
}

impl LoopArgs {
    /// Whether every second slice runs with a tracer, to be compared with the others.
    pub(crate) fn compares(&self) -> bool {
        self.arm || self.snapshot.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct TimerArgs {
    /// The CPUs, each with a task: a list such as 2-3. By default the last isolated CPU, or the last one if none is.
    #[arg(
        short,
        long,
        visible_alias = "cpus",
        value_name = "CPUS",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cpu: Cpus,
    /// The period of the task.
    #[arg(short, long, value_name = "TIME", value_parser = interval, default_value = "1ms")]
    pub(crate) interval: Nanos,
    /// How long to measure (10s, 5m; a bare number is seconds).
    #[arg(short, long, value_parser = seconds, default_value = "10s")]
    pub(crate) duration: Nanos,
    /// Run this many cycles on each CPU instead.
    #[arg(short, long, value_name = "COUNT", value_parser = positive, conflicts_with = "duration")]
    pub(crate) loops: Option<u64>,
    /// Show the path of each cycle that is late by this much or more.
    #[arg(short, long, value_name = "TIME", value_parser = time, default_value = "100us")]
    pub(crate) threshold: Nanos,
    /// Keep this many late cycles, with their paths; further ones are only counted.
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = causes)]
    pub(crate) max_causes: usize,
    /// The SCHED_FIFO priority, 1 to 99; 0 for a SCHED_OTHER task, which other tasks may preempt.
    #[arg(short, long, default_value_t = 95, value_parser = clap::value_parser!(i32).range(0..=99))]
    pub(crate) priority: i32,
    /// Allow only idle states with at most this exit latency, in us (/dev/cpu_dma_latency); `none` allows all.
    #[arg(long, value_name = "US", default_value = "0", value_parser = dma_latency)]
    pub(crate) dma_latency: DmaLatency,
    /// Alternate with cyclictest and, if the kernel has its tracer, rtla timerlat.
    #[arg(long)]
    pub(crate) compare: bool,
    /// Also write the result: .json, .svg, or .txt (a table in the format of rtla). Repeatable.
    #[arg(short, long, value_name = "FILE", value_parser = output)]
    pub(crate) output: Vec<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlotArgs {
    /// The files; each may contain several histograms.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write a plot (.svg), or the table of all bins (.txt). Repeatable.
    #[arg(short, long, value_name = "FILE", value_parser = drawn)]
    pub(crate) output: Vec<PathBuf>,
    /// The title of the plot.
    #[arg(long, default_value = "Latency")]
    pub(crate) title: String,
}

/// The clock of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    /// TSC if the kernel itself relies on it, else raw.
    Auto,
    /// The processor's own clock.
    Tsc,
    /// CLOCK_MONOTONIC_RAW.
    Raw,
}

/// The event of each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventKind {
    /// Nothing.
    None,
    /// getppid(2).
    Syscall,
}

/// The value of `--burst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Burst {
    pub(crate) on: u64,
    pub(crate) off: u64,
}

/// The value of `--dma-latency`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DmaLatency(pub(crate) Option<i32>);

fn dma_latency(text: &str) -> Result<DmaLatency, String> {
    if text == "none" {
        return Ok(DmaLatency(None));
    }
    let us = text.parse::<i32>().ok().filter(|us| *us >= 0);
    let us = us.ok_or("expected a number of microseconds, or `none`")?;
    Ok(DmaLatency(Some(us)))
}

/// Parses a short time. Unless it is 0, it must have a unit: a bare number could be meant in us or in s.
fn time(text: &str) -> Result<Nanos, String> {
    if text != "0" && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("expected a time with a unit, such as {text}us"));
    }
    lt_proc::parse_duration(text).map_err(|_| "expected a time such as 100us or 5ms".to_string())
}

/// Parses a period. A long period is refused, since the end of a run waits for the last cycle; a period of less than
/// 20 us is refused, too.
fn interval(text: &str) -> Result<Nanos, String> {
    const SHORTEST: Nanos = Nanos(20_000);
    const LONGEST: Nanos = Nanos(100_000_000);
    let interval = time(text)?;
    match (SHORTEST.0..=LONGEST.0).contains(&interval.0) {
        true => Ok(interval),
        false => Err(format!("expected {SHORTEST} to {LONGEST}")),
    }
}

fn positive(text: &str) -> Result<u64, String> {
    let number = text.replace('_', "").parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected a number greater than 0".to_string())
}

/// Parses the number of late cycles to keep. Their memory is allocated and locked at the start.
fn causes(text: &str) -> Result<usize, String> {
    const MOST: usize = 1_000_000;
    let number = text.replace('_', "").parse::<usize>().ok();
    let number = number.filter(|number| *number <= MOST);
    number.ok_or_else(|| format!("expected a number up to {MOST}"))
}

fn burst(text: &str) -> Result<Burst, String> {
    let (on, off) = text
        .split_once(',')
        .ok_or("expected two times, such as 10ms,90ms")?;
    let (on, off) = (time(on)?.0, time(off)?.0);
    if on == 0 || off == 0 {
        return Err("expected two times greater than 0, such as 10ms,90ms".into());
    }
    Ok(Burst { on, off })
}

fn output(text: &str) -> Result<PathBuf, String> {
    ends_in(text, &["json", "svg", "txt"])
}

fn drawn(text: &str) -> Result<PathBuf, String> {
    ends_in(text, &["svg", "txt"])
}

/// Parses the name of a file whose extension is the format to write.
fn ends_in(text: &str, known: &[&str]) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let fine = path
        .extension()
        .is_some_and(|end| known.iter().any(|known| end == *known));
    match fine {
        true => Ok(path),
        false => Err(format!(
            "expected a name that ends in .{}",
            known.join(", .")
        )),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        bench: BenchArgs,
    }

    pub(crate) fn parse_bench(what: &str, words: &[&str]) -> Result<BenchCommand, String> {
        let line = ["latency-tracker", what]
            .into_iter()
            .chain(words.iter().copied());
        match Cli::try_parse_from(line) {
            Ok(cli) => Ok(cli.bench.command),
            Err(error) => Err(error.to_string()),
        }
    }

    fn parse_timer(words: &[&str]) -> Result<TimerArgs, String> {
        match parse_bench("timer", words)? {
            BenchCommand::Timer(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_options_of_a_timer_are_read_and_refused() {
        let args = parse_timer(&["--cpus", "2-3", "-i", "500us", "-l", "7"]).unwrap();
        assert_eq!((args.interval, args.loops), (Nanos(500_000), Some(7)));
        assert_eq!(args.cpu.to_string(), "2-3");
        assert_eq!(parse_timer(&[]).unwrap().interval, Nanos(1_000_000));
        for (words, says) in [
            (&["-i", "1000"][..], "such as 1000us"),
            (&["-i", "1us"], "expected 20.00us to 100.0ms"),
            (&["-i", "2s"], "expected 20.00us to 100.0ms"),
            (&["-l", "0"], "greater than 0"),
            (&["-l", "5", "-d", "1"], "cannot be used with"),
            (&["--max-causes", "1000001"], "up to 1000000"),
        ] {
            let error = parse_timer(words).unwrap_err();
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }

    fn parse(words: &[&str]) -> Result<LoopArgs, String> {
        match parse_bench("loop", words)? {
            BenchCommand::Loop(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let args = parse(&[]).unwrap();
        assert!(args.cpu.is_empty() && !args.compares());
        assert_eq!(
            (args.priority, args.warm_up, args.threshold),
            (95, 5, Nanos(100_000))
        );
        assert_eq!(args.dma_latency, DmaLatency(Some(0)));
        assert_eq!(args.duration, Nanos(10_000_000_000));
    }

    #[test]
    fn bursts_rates_and_outputs_are_read() {
        let args = parse(&[
            "-e",
            "syscall",
            "-b",
            "10ms,90ms",
            "-r",
            "1000",
            "-o",
            "a.svg",
            "-o",
            "b.json",
        ])
        .unwrap();
        assert_eq!(
            args.burst,
            Some(Burst {
                on: 10_000_000,
                off: 90_000_000
            })
        );
        assert_eq!((args.rate, args.output.len()), (Some(1000), 2));
        assert!(parse(&["--snapshot", "d"]).unwrap().compares());
    }

    #[test]
    fn errors_name_what_is_expected() {
        for (words, says) in [
            (&["-t", "100"][..], "such as 100us"),
            (&["-t", "soon"], "100us or 5ms"),
            (&["-l", "0"], "greater than 0"),
            (&["-l", "5", "-d", "1"], "cannot be used with"),
            (&["-p", "100"], "0..=99"),
            (&["-b", "10ms"], "10ms,90ms"),
            (&["-e", "syscall", "-b", "10ms,0"], "greater than 0"),
            (&["-o", "a.png"], ".json, .svg, .txt"),
            (&["--dma-latency=-1"], "microseconds"),
            (&["--dma-latency", "x"], "microseconds"),
            (&["-c", "3-2"], "above the last"),
            (&["--in-kernel", "--arm"], "cannot be used with"),
            (&["--in-kernel", "-e", "syscall"], "cannot be used with"),
            (&["--in-kernel", "-l", "5"], "cannot be used with"),
            (&["--yes"], "--in-kernel"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }
}
