// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `bench rate`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use lt_common::lttng::Buffers;
use lt_common::seconds::seconds;
use lt_common::size::Size;
use lt_proc::Nanos;
use lt_readiness::Cpus;

pub(crate) const EXAMPLES: &str = "\
Exit status: 0 rate found, 1 error or ended early, 2 failed: no rate found,
events lost at every rate or at --rate, a lossless rate below --min, or more
events in the trace than were generated.

Examples:
  latency-tracker bench rate
  latency-tracker bench rate --kind kernel --cpu 3 --read-timer 200ms,1ms
  latency-tracker bench rate --kind ust --read-timer 0,200us,1ms
  latency-tracker bench rate --buffers 4x256K --min 100000
  latency-tracker bench rate --rate 50000 --time 1m
  latency-tracker bench rate --json | jq '.modes[] | {name, lossless}'

It needs root and LTTng, whose own processes run on the other CPUs.
Ctrl-C ends it. The guide is Documentation/guide/real-time.md.";

#[derive(Debug, Args)]
pub(crate) struct RateArgs {
    /// The kind of event.
    #[arg(short, long, value_enum, default_value_t = Kind::Syscall)]
    pub(crate) kind: Kind,
    /// The CPU that generates the events. By default the last isolated CPU or, if none is isolated, the last.
    #[arg(
        short,
        long,
        value_name = "CPU",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) cpu: Cpus,
    /// Sub-buffers of each CPU: number and size, powers of two. By default 32x4M; for user space 32x1M.
    #[arg(short, long, value_name = "COUNTxSIZE", value_parser = buffers)]
    pub(crate) buffers: Option<Buffers>,
    /// The period of the timer that wakes LTTng's consumer; each value is a mode. By default 200ms, which is LTTng's
    /// own, and 4ms; for user space 0, which is LTTng's own (the program itself wakes the consumer), and 200us.
    #[arg(long, value_name = "TIME,...", value_parser = timer, value_delimiter = ',')]
    pub(crate) read_timer: Vec<Nanos>,
    /// The shortest run. A run lasts up to ten times as long, until the events have filled the buffers twice.
    #[arg(short, long, value_parser = seconds, default_value = "2s")]
    pub(crate) time: Nanos,
    /// Generate this many events in each run instead.
    #[arg(long, value_name = "COUNT", value_parser = positive, conflicts_with = "time")]
    pub(crate) events: Option<u64>,
    /// Search until the lossless rate is known to within this percentage.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percentage)]
    pub(crate) resolution: f64,
    /// Count a rate as lossless after this many runs without a loss.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = positive)]
    pub(crate) repeat: u64,
    /// Do not search: run at this rate, in events per second or `full`, --repeat times.
    #[arg(short, long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Pace>,
    /// Fail if the lossless rate is lower.
    #[arg(long, value_name = "RATE", value_parser = positive, conflicts_with = "rate")]
    pub(crate) min: Option<u64>,
    /// The SCHED_FIFO priority of the generating thread, 1 to 99; 0 for SCHED_OTHER.
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=99))]
    pub(crate) priority: i32,
    /// The directory for LTTng's traces, which are removed after each run.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub(crate) traces: PathBuf,
    /// Also write the result (.json), or the times of events at full rate or at --rate (.svg, .txt). Repeatable.
    #[arg(short, long, value_name = "FILE", value_parser = output)]
    pub(crate) output: Vec<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(short, long)]
    pub(crate) json: bool,
}

/// The kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A system call, getppid(2), which LTTng records as two events.
    Syscall,
    /// A kernel tracepoint: signal_generate, for a signal that this process ignores.
    Kernel,
    /// A user-space tracepoint of LTTng's library (lttng_ust_cyg_profile_fast:func_entry), hit by Python.
    Ust,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Syscall => "syscall",
            Self::Kernel => "kernel",
            Self::Ust => "ust",
        }
    }
}

/// The value of `--rate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Full,
    Events(u64),
}

impl RateArgs {
    /// Returns the number and size of the channel's sub-buffers.
    pub(crate) fn buffers(&self) -> Buffers {
        self.buffers.unwrap_or(Buffers {
            subbuf_size: if self.kind == Kind::Ust { 1 } else { 4 } << 20,
            num_subbuf: 32,
        })
    }

    /// Checks the rule that clap cannot express: a kernel channel has a read timer.
    pub(crate) fn check(&self) -> Result<()> {
        // Without the timer, the consumer of a kernel channel sleeps forever, and `lttng stop`
        // waits for it.
        if self.kind != Kind::Ust && self.read_timers().contains(&Duration::ZERO) {
            bail!(
                "--read-timer 0: expected a time greater than 0: nothing else wakes the consumer of a kernel channel"
            );
        }
        Ok(())
    }

    /// Returns the period of the read timer in each mode, without duplicates.
    pub(crate) fn read_timers(&self) -> Vec<Duration> {
        let asked: Vec<Duration> = self.read_timer.iter().map(|t| (*t).into()).collect();
        let mut all: Vec<Duration> = Vec::new();
        let default = match self.kind {
            Kind::Ust => [Duration::ZERO, Duration::from_micros(200)],
            _ => [Duration::from_millis(200), Duration::from_millis(4)],
        };
        let chosen = if asked.is_empty() {
            &default[..]
        } else {
            &asked
        };
        for timer in chosen {
            if !all.contains(timer) {
                all.push(*timer);
            }
        }
        all
    }
}

fn buffers(text: &str) -> Result<Buffers, String> {
    let bad = || "expected a number and a size, such as 32x4M, both powers of two".to_string();
    let (number, size) = text.split_once('x').ok_or_else(bad)?;
    let num_subbuf: u64 = number.parse().map_err(|_| bad())?;
    let Size(subbuf_size) = size.parse().map_err(|_| bad())?;
    let fine = num_subbuf.is_power_of_two() && subbuf_size.is_power_of_two();
    match fine && (2..=4096).contains(&num_subbuf) && (4096..=1 << 30).contains(&subbuf_size) {
        true => Ok(Buffers {
            subbuf_size,
            num_subbuf,
        }),
        false => Err("expected 2 to 4096 sub-buffers of 4K to 1G, both powers of two".into()),
    }
}

fn timer(text: &str) -> Result<Nanos, String> {
    const LONGEST: u64 = 10_000_000_000;
    if text != "0" && text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("expected a time with a unit, such as {text}us"));
    }
    let time = lt_proc::parse_duration(text).map_err(|_| "expected a time such as 200ms")?;
    match time.0 {
        0 | 1000..=LONGEST => Ok(time),
        _ => Err("expected 0, or 1us to 10s".into()),
    }
}

fn positive(text: &str) -> Result<u64, String> {
    let number = text.replace('_', "").parse().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected a number greater than 0".to_string())
}

fn rate(text: &str) -> Result<Pace, String> {
    if text == "full" {
        return Ok(Pace::Full);
    }
    let rate = positive(text).map_err(|_| "expected events per second, or `full`")?;
    Ok(Pace::Events(rate))
}

fn percentage(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    let number = number.filter(|n| (0.1..=100.0).contains(n));
    number.ok_or_else(|| "expected 0.1 to 100".to_string())
}

fn output(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let end = path.extension().and_then(|end| end.to_str());
    match end {
        Some("json" | "svg" | "txt") => Ok(path),
        _ => Err("expected a name that ends in .json, .svg, .txt".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Rate {
        #[command(flatten)]
        args: RateArgs,
    }

    fn parse(words: &[&str]) -> Result<RateArgs, String> {
        let line = ["rate"].iter().chain(words);
        Rate::try_parse_from(line)
            .map(|rate| rate.args)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let args = parse(&[]).unwrap();
        assert_eq!((args.kind, args.priority), (Kind::Syscall, 0));
        let buffers = args.buffers();
        assert_eq!((buffers.num_subbuf, buffers.subbuf_size), (32, 4 << 20));
        let ms = Duration::from_millis;
        assert_eq!(args.read_timers(), [ms(200), ms(4)]);
        assert_eq!((args.resolution, args.repeat), (5.0, 2));
        let args = parse(&["-k", "ust"]).unwrap();
        assert_eq!(args.buffers().subbuf_size, 1 << 20);
        assert_eq!(
            args.read_timers(),
            [Duration::ZERO, Duration::from_micros(200)]
        );
    }

    #[test]
    fn modes_buffers_and_rates_are_read() {
        let args = parse(&["--read-timer", "2ms,1ms,2ms", "-b", "2x4K", "-r", "50_000"]).unwrap();
        assert_eq!(
            args.read_timers(),
            [Duration::from_millis(2), Duration::from_millis(1)]
        );
        let buffers = args.buffers();
        assert_eq!((buffers.num_subbuf, buffers.subbuf_size), (2, 4096));
        assert_eq!(args.rate, Some(Pace::Events(50_000)));
        assert_eq!(parse(&["-r", "full"]).unwrap().rate, Some(Pace::Full));
    }

    #[test]
    fn a_kernel_channel_must_have_a_timer() {
        let error = parse(&["--read-timer", "1ms,0"]).unwrap().check();
        assert!(error.unwrap_err().to_string().contains("greater than 0"));
        assert!(
            parse(&["--read-timer", "0", "-k", "ust"])
                .unwrap()
                .check()
                .is_ok()
        );
        assert!(parse(&[]).unwrap().check().is_ok());
    }

    #[test]
    fn errors_name_what_is_expected() {
        for (words, says) in [
            (&["-b", "4M"][..], "such as 32x4M"),
            (&["-b", "3x4M"], "powers of two"),
            (&["-b", "1x4M"], "2 to 4096"),
            (&["-b", "4x2K"], "4K to 1G"),
            (&["--read-timer", "200"], "such as 200us"),
            (&["--read-timer", "1h"], "1us to 10s"),
            (&["-r", "0"], "or `full`"),
            (&["-r", "5", "--min", "5"], "cannot be used with"),
            (&["--events", "5", "-t", "5"], "cannot be used with"),
            (&["--resolution", "0"], "0.1 to 100"),
            (&["--repeat", "0"], "greater than 0"),
            (&["-k", "ust8"], "possible values"),
            (&["-o", "a.png"], ".json, .svg, .txt"),
        ] {
            let error = parse(words).err().unwrap_or_default();
            assert!(error.contains(says), "{words:?}: {error}");
        }
    }
}
