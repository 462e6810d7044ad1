// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The options of `record`.

use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use lt_common::lttng::events::{default_events, left_out_if_lean, matches};
use lt_common::lttng::{Buffers, Format};
use lt_common::seconds::{seconds, some_time};
use lt_common::size::Size;
use lt_proc::{Nanos, Setting};

use super::analyses::{Analysis, buffers_for};
use super::flight::Plan;
use super::policy::Policy;
use super::relay::Relay;
use crate::analyze::parquet::ParquetArgs;
use crate::carried;
use crate::completion;

/// Options that make sense only for alerts of an instance.
const ALERTS_ONLY: [&str; 15] = [
    "name",
    "max_captures",
    "post_trigger",
    "cooldown",
    "arm_delay",
    "max_per_day",
    "disk_budget",
    "rotate",
    "keep",
    "keep_for",
    "no_default_events",
    "lean",
    "url",
    "no_explain",
    "parquet",
];

const EXAMPLES: &str = "\
Exit status: 0 no alert fired, 1 error, 2 an alert fired.

Examples:
  latency-tracker record slow_disk block threshold=10ms
  latency-tracker record -n 5 --cooldown 1m -o /srv/slow slow_disk
  latency-tracker record -e 'irq_*' --subbuf-size 4M --post-trigger 100ms \\
      sda_queue block threshold=50ms from=insert dev=sda
  latency-tracker record --events-for cpu,irq -d 10s

With TRACKER, the instance is created for the run and removed afterwards; an
instance that exists with these parameters is used, and kept. Without TRACKER,
the instance must exist, and is kept. If `apply` replaces it by one of the same
tracker, the run continues with that one.

A capture is a numbered directory:
  trace/           the trace, for babeltrace2; Trace Compass needs
                   --trace-format ctf-1.8
  alert.json       the alerts
  evidence.json    facts that a trace cannot contain, such as limits of the
                   late task's cgroups, and counters before and after the delay
  explanation.txt  the causes of the three longest delays, from the trace

--parquet writes the alerts of each capture, and the paths of the alerts that
explanation.txt explains, as tables for SQL over many hosts. No other user may
have write access to the directory. If the rows of a capture cannot be written,
a line reports this, and the status counts the capture (`without rows 1`). Rows
remain when a capture is removed, and count toward no limit of disk space.";

/// Waits for alerts, and saves a trace of the time before each from an LTTng flight recorder.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecordArgs {
    /// The instance.
    #[arg(required_unless_present = "events_for", add = ArgValueCompleter::new(completion::instances))]
    name: Option<String>,
    /// Create the instance with this tracker.
    #[arg(add = ArgValueCompleter::new(completion::trackers))]
    pub(crate) tracker: Option<String>,
    /// Parameters of the tracker.
    #[arg(value_name = "KEY=VALUE", add = ArgValueCompleter::new(completion::settings))]
    pub(crate) settings: Vec<Setting>,
    /// Record all events that these analyses of `analyze` read (separate them with commas), until -d has passed or
    /// Ctrl-C.
    #[arg(long, value_name = "ANALYSIS", value_delimiter = ',', conflicts_with_all = ALERTS_ONLY)]
    pub(crate) events_for: Vec<Analysis>,
    /// The directory for the captures [default: /var/lib/latency-tracker/captures; traces/ beside it for --events-for];
    /// no other user may have write access.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// End after this many captures.
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = positive)]
    pub(crate) max_captures: Option<usize>,
    /// End after this time (10s, 5m; a bare number is seconds).
    #[arg(short, long, value_parser = some_time)]
    pub(crate) duration: Option<Nanos>,
    /// After an alert, keep recording for this time before taking the snapshot.
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value = "0")]
    pub(crate) post_trigger: Nanos,
    /// Wait at least this time between two snapshots; captures omitted in between are counted as skipped.
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value = "1s")]
    pub(crate) cooldown: Nanos,
    /// Ignore alerts for this time after the start, while the buffers fill.
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value = "0")]
    pub(crate) arm_delay: Nanos,
    /// Take at most this many captures in 24 hours.
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_per_day: Option<usize>,
    /// Disk space that all captures together may take (K, M, G).
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = some_room)]
    pub(crate) disk_budget: Size,
    /// Remove the oldest capture when the budget is used up, instead of ending.
    #[arg(long)]
    pub(crate) rotate: bool,
    /// Whenever a capture is saved, remove all but the newest N in the directory.
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) keep: Option<usize>,
    /// Whenever a capture is saved, remove captures older than this (30d).
    #[arg(long, value_name = "DURATION", value_parser = some_time)]
    pub(crate) keep_for: Option<Nanos>,
    /// The size of a sub-buffer, a power of two [default: 1M; for --events-for up to 4M, by analysis and memory].
    #[arg(long, value_name = "SIZE", value_parser = power_of_two)]
    pub(crate) subbuf_size: Option<Size>,
    /// Sub-buffers per CPU, a power of two [default: 4; for --events-for 8].
    #[arg(long, value_name = "COUNT", value_parser = two_to_the_n)]
    pub(crate) num_subbuf: Option<u64>,
    /// Also record this kernel event; repeatable. A `*` matches any characters.
    #[arg(short = 'e', long = "event", value_name = "EVENT", value_parser = event)]
    pub(crate) events: Vec<String>,
    /// Record only the events named with -e.
    #[arg(long, requires = "events")]
    pub(crate) no_default_events: bool,
    /// Omit the events that show where a thread or a request was held back: migrations, limits, disk queues.
    #[arg(long, conflicts_with = "no_default_events")]
    pub(crate) lean: bool,
    /// The trace format; by default LTTng's own. Trace Compass reads ctf-1.8; babeltrace2 reads both since 2.1.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) trace_format: Option<Format>,
    /// Also send each trace, with its alerts and evidence, to the LTTng relay daemon at
    /// `net://HOST[:PORT[:PORT]][/PATH]`.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<Relay>,
    /// Do not write explanation.txt.
    #[arg(long, conflicts_with = "parquet")]
    pub(crate) no_explain: bool,
    #[command(flatten)]
    pub(crate) parquet: ParquetArgs,
}

impl RecordArgs {
    /// The name of the instance; empty with `--events-for`, which has none.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The directory for the captures.
    pub(crate) fn captures(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(super::CAPTURES))
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy {
            cooldown: self.cooldown.into(),
            max_per_day: self.max_per_day,
            max_captures: self.max_captures,
        }
    }

    pub(crate) fn buffers(&self) -> Buffers {
        let chosen = match self.events_for.as_slice() {
            [] => Buffers::default(),
            analyses => buffers_for(analyses),
        };
        Buffers {
            subbuf_size: self.subbuf_size.map_or(chosen.subbuf_size, |size| size.0),
            num_subbuf: self.num_subbuf.unwrap_or(chosen.num_subbuf),
        }
    }

    /// What to record for alerts of that tracker.
    pub(crate) fn plan(&self, tracker: &str) -> Plan<'_> {
        Plan {
            name: self.name(),
            buffers: self.buffers(),
            events: self.events(tracker),
            asked: &self.events,
            format: self.trace_format,
        }
    }

    /// Returns the default events that `--lean` would leave out.
    pub(crate) fn saved_by_lean(&self, tracker: &str) -> Vec<&'static str> {
        if self.lean || self.no_default_events {
            return Vec::new();
        }
        let asked = |event: &&str| self.events.iter().any(|pattern| matches(pattern, event));
        let mut events = left_out_if_lean(tracker);
        events.retain(|event| !asked(event));
        events
    }

    /// Returns the events to record for alerts of that tracker, without duplicates.
    pub(crate) fn events(&self, tracker: &str) -> Vec<String> {
        let mut events: Vec<String> = match self.no_default_events {
            true => Vec::new(),
            false => default_events(tracker, self.lean)
                .into_iter()
                .map(String::from)
                .collect(),
        };
        let logger = self.url.iter().map(|_| carried::EVENT.to_string());
        for event in self.events.iter().cloned().chain(logger) {
            if !events.contains(&event) {
                events.push(event);
            }
        }
        events
    }
}

fn some_room(text: &str) -> Result<Size, String> {
    match text.parse()? {
        Size(0) => Err("expected a size greater than 0, such as 512M or 1G".into()),
        size => Ok(size),
    }
}

fn power_of_two(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0.is_power_of_two() && (4096..=1 << 30).contains(&size.0) {
        return Ok(size);
    }
    Err("expected a power of two from 4K to 1G".to_string())
}

fn two_to_the_n(text: &str) -> Result<u64, String> {
    let number = text
        .parse::<u64>()
        .ok()
        .filter(|n| n.is_power_of_two() && (2..=4096).contains(n));
    number.ok_or_else(|| "expected a power of two from 2 to 4096".to_string())
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|n| *n > 0);
    number.ok_or_else(|| "expected a number greater than 0".to_string())
}

fn event(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
    if !text.is_empty() && text.chars().all(fine) {
        return Ok(text.to_string());
    }
    Err("expected the name of a kernel tracepoint, e.g. irq_handler_entry or irq_*".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn parse(words: &[&str]) -> Result<RecordArgs, clap::Error> {
        let line = ["latency-tracker", "record"].iter().chain(words);
        match Cli::try_parse_from(line)?.command {
            Command::Record(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_as_documented() {
        let args = parse(&["slow", "block", "threshold=10ms", "dev=sda"]).unwrap();
        assert_eq!(args.settings.len(), 2);
        assert_eq!(
            args.buffers(),
            Buffers {
                subbuf_size: 1 << 20,
                num_subbuf: 4
            }
        );
        assert_eq!(args.cooldown, Nanos(1_000_000_000));
        assert_eq!((args.keep, args.keep_for), (None, None));
        assert_eq!(
            args.events("block").len(),
            default_events("block", false).len()
        );
    }

    #[test]
    fn events_can_be_added_or_replace_the_default() {
        let args = parse(&["-e", "irq_*", "-e", "sched_switch", "slow"]).unwrap();
        assert_eq!(
            args.events("block").len(),
            default_events("block", false).len() + 1
        );
        let args = parse(&["--no-default-events", "-e", "irq_*", "slow"]).unwrap();
        assert_eq!(args.events("block"), ["irq_*"]);
        let args = parse(&[
            "--url",
            "net://a",
            "--no-default-events",
            "-e",
            "irq_*",
            "slow",
        ])
        .unwrap();
        assert_eq!(args.events("block"), ["irq_*", "lttng_logger"]);
        let args = parse(&["--lean", "slow"]).unwrap();
        assert_eq!(args.events("block"), default_events("block", true));
        assert!(args.saved_by_lean("block").is_empty());
        let args = parse(&["-e", "sched_*", "slow"]).unwrap();
        let saved = args.saved_by_lean("offcpu");
        assert!(saved.contains(&"power_cpu_idle") && !saved.contains(&"sched_migrate_task"));
        assert!(parse(&["--no-default-events", "slow"]).is_err());
        assert!(parse(&["-e", "a b", "slow"]).is_err());
    }

    #[test]
    fn all_events_of_an_analysis_need_no_instance() {
        let args = parse(&["--events-for", "cpu,irq", "-d", "1s"]).unwrap();
        assert_eq!(args.events_for, [Analysis::Cpu, Analysis::Irq]);
        assert_eq!(args.name(), "");
        assert_eq!(args.buffers(), buffers_for(&args.events_for));
        let args = parse(&["--events-for", "path", "--subbuf-size", "64K"]).unwrap();
        assert_eq!(args.buffers().subbuf_size, 64 << 10);
        assert_eq!(args.buffers().num_subbuf, 8);
        for bad in [
            &["--events-for", "cpu", "slow"][..],
            &["--events-for", "nothing"],
            &["--events-for", "cpu", "--rotate"],
            &["--events-for", "cpu", "--keep", "5"],
            &["--events-for", "cpu", "--parquet", "fleet"],
            &["--no-explain", "--parquet", "fleet", "slow"],
            &["--host", "web3", "slow"],
            &["-d", "1s"],
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!("512K".parse(), Ok(Size(512 << 10)));
        assert_eq!("7".parse(), Ok(Size(7)));
        for bad in ["", "K", "1T", "-1", "99999999999G"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
        for bad in [
            ["--subbuf-size", "3M"],
            ["--subbuf-size", "1K"],
            ["--num-subbuf", "3"],
            ["-n", "0"],
            ["--keep", "0"],
            ["--disk-budget", "0"],
            ["--disk-budget", "0G"],
            ["--duration", "0"],
            ["-d", "0ms"],
        ] {
            assert!(parse(&[bad[0], bad[1], "slow"]).is_err(), "{bad:?}");
        }
    }
}
