// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command line of `profile`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use lt_common::seconds::seconds;
use lt_proc::Nanos;

pub(crate) const EXAMPLES: &str = "\
Examples:
  latency-tracker start io io
  latency-tracker profile show --minutes 5
  latency-tracker profile save -o monday.json
  latency-tracker profile compare monday.json
  latency-tracker profile record --every 5 --duration 10m -o night.json
  latency-tracker profile draw night.json -o night.svg";

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// The subcommands of `profile`.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Prints a table: the operations of each class by duration.
    #[command(
        after_help = "Counts of 100000 or more are abbreviated; --json has all digits.\n\nExamples:\n  \
latency-tracker profile show\n  latency-tracker profile show io --minutes 15\n  \
latency-tracker profile show --reset"
    )]
    Show(ShowArgs),
    /// Writes a profile to a file, with data about the machine.
    #[command(
        after_help = "Examples:\n  latency-tracker profile save -o monday.json\n  \
latency-tracker profile save io --minutes 5 -o now.json"
    )]
    Save(SaveArgs),
    /// Reports whether and where two profiles differ.
    #[command(
        after_help = "Each class is tested with chi-squared; rows are merged until all expected\n\
counts are 5 or more.\n\nExit status: 0 no significant difference, 1 error, 2 they differ.\n\n\
Examples:\n  latency-tracker profile compare monday.json tuesday.json\n  \
latency-tracker profile compare monday.json --minutes 5"
    )]
    Compare(CompareArgs),
    /// Samples a profile repeatedly, into one file.
    #[command(
        after_help = "Ctrl-C ends it early, and the file is still written.\n\nExamples:\n  \
latency-tracker profile record --every 5 --duration 10m -o night.json\n  \
latency-tracker profile record io -e 1 -d 60 -o minute.json --svg minute.svg"
    )]
    Record(RecordArgs),
    /// Draws a recorded file as a heat map: time, latency, count.
    #[command(
        after_help = "Examples:\n  latency-tracker profile draw night.json -o night.svg\n  \
latency-tracker profile draw night.json -o writes.svg --class b_write"
    )]
    Draw(DrawArgs),
}

/// Selects a profile of an instance.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The instance; may be omitted if only one has a profile.
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) span: SpanArgs,
}

/// A parser of `--minutes`: the module keeps a profile for each of these times.
fn minutes() -> impl TypedValueParser<Value = u8> {
    PossibleValuesParser::new(["1", "5", "15"]).try_map(|minutes| minutes.parse::<u8>())
}

/// Selects the time that the profile covers.
#[derive(Debug, Args)]
pub(crate) struct SpanArgs {
    /// How many of the last minutes, instead of the time since the last reset.
    #[arg(short, long, value_parser = minutes())]
    pub(crate) minutes: Option<u8>,
    /// The profile that the last reset ended.
    #[arg(long, conflicts_with = "minutes")]
    pub(crate) previous: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) source: Source,
    /// End the profile, print it, and start the next one.
    #[arg(short, long, conflicts_with_all = ["minutes", "previous"])]
    pub(crate) reset: bool,
    /// Also print the empty rows at both ends.
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Print one JSON object.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    #[command(flatten)]
    pub(crate) source: Source,
    /// The file; replaced if it exists.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A file of `save` or `record`.
    pub(crate) before: PathBuf,
    /// The file to compare it with; by default the current profile of the instance.
    pub(crate) after: Option<PathBuf>,
    /// The instance to compare with.
    #[arg(long, conflicts_with = "after")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) span: SpanArgs,
    /// The p-value below which a difference is significant.
    #[arg(long, default_value_t = 0.001, value_name = "P")]
    pub(crate) significance: f64,
    /// Print one JSON object.
    #[arg(short, long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// The instance; may be omitted if only one has a profile.
    pub(crate) name: Option<String>,
    /// The time between two samples (a bare number is seconds).
    #[arg(short, long, default_value = "5s", value_parser = seconds)]
    pub(crate) every: Nanos,
    /// How long to sample (a bare number is seconds).
    #[arg(short, long, default_value = "10m", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// The file; replaced if it exists.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Also draw the samples as a heat map, into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DrawArgs {
    /// A file of `record`.
    pub(crate) input: PathBuf,
    /// The picture; replaced if it exists.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Draw only this class. Repeatable; all that have counts if omitted.
    #[arg(short, long = "class", value_name = "CLASS")]
    pub(crate) classes: Vec<String>,
}
