// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist --reset` and `--since-reset`: the delays since the last reset.
//!
//! ```text
//! start of NAME            reset                   reset            now
//!     |----------------------|-----------------------|---------------|
//!                            `- shown by the reset --'- --since-reset'
//! ```
//!
//! The module's counters are never reset, since other readers rely on them. So a reset keeps its reading, and the
//! next period is the difference from that reading: each delay is in exactly one period. Root's readings are in
//! `/run/latency-tracker/NAME.period`, those of another user in a directory of that user. Each user therefore has
//! separate periods.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use lt_common::Outcome;
use lt_common::lttng::{make_run_dir, run_dir};
use lt_common::out::note;
use lt_proc::{Fields, Histogram, Labels, ProcRoot};
use nix::fcntl::{Flock, FlockArg};
use nix::time::{ClockId, clock_gettime};
use tempfile::NamedTempFile;

use super::{by, show};
use crate::cli::HistArgs;

/// All delays of an instance so far.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reading {
    Whole(Histogram),
    /// Of an instance with `by=`. The histogram is the sum of the rows, so that both are of one instant.
    Labels(Labels),
}

/// A reading that was kept.
#[derive(Debug)]
struct Kept {
    /// `CLOCK_BOOTTIME`, ns.
    time: u64,
    tracker: String,
    reading: Reading,
}

pub(super) fn run(root: &ProcRoot, args: &HistArgs, names: &[String]) -> Result<Outcome> {
    // clap requires the name.
    names.iter().try_for_each(|name| period(root, args, name))?;
    Ok(Outcome::Fine)
}

fn period(root: &ProcRoot, args: &HistArgs, name: &str) -> Result<()> {
    let directory = run_dir();
    // Two resets at once would show the same delays.
    let _lock = match args.reset {
        true => Some(lock(directory)?),
        false => None,
    };
    let tracker = root.instance(name)?.tracker;
    let file = match root.has_labels(name) {
        true => "labels",
        false => "histogram",
    };
    let text = root.text(name, file)?;
    let time = u64::try_from(Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME)?).as_nanos())?;
    let now = Reading::parse(file, &text)?;
    let path = directory.join(format!("{name}.period"));
    let kept = Kept::read(&path)?;
    let is_new = |kept: &Kept| kept.tracker != tracker || !now.continues(&kept.reading);
    let kept = match kept {
        Some(kept) if is_new(&kept) => {
            note(&format!(
                "{name} was started after its last reset: all its delays are shown"
            ));
            None
        }
        kept => kept,
    };
    let length = kept.as_ref().map(|kept| time.saturating_sub(kept.time));
    let length = length.map(Duration::from_nanos);
    let shown = kept.map_or_else(|| now.clone(), |kept| now.since(&kept.reading));
    let stats = root.stats(name)?;
    // Written before the output, but renamed only after it: delays that could not be shown are not reset.
    let next = match args.reset {
        true => Some(keep(directory, &tracker, time, file, &text)?),
        false => None,
    };
    match (&shown, args.by) {
        (Reading::Labels(labels), true) => by::print(args, name, labels, &stats, length)?,
        _ => show(args, name, &shown.histogram(), &stats, length)?,
    }
    if let Some(next) = next {
        next.persist(&path)
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Locks the periods of this user until the result is dropped.
fn lock(directory: &Path) -> Result<Flock<File>> {
    make_run_dir()?;
    let path = directory.join("periods.lock");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| anyhow!("{}: {error}", path.display()))
}

/// Writes a reading to a temporary file, which the caller renames.
fn keep(
    directory: &Path,
    tracker: &str,
    time: u64,
    file: &str,
    text: &str,
) -> Result<NamedTempFile> {
    let mut kept = NamedTempFile::new_in(directory)
        .with_context(|| format!("no file in {}", directory.display()))?;
    write!(kept, "tracker={tracker} time={time} file={file}\n{text}")
        .with_context(|| kept.path().display().to_string())?;
    Ok(kept)
}

impl Kept {
    fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).with_context(|| {
                format!(
                    "{}: not written by `hist --reset`; delete this file",
                    path.display()
                )
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let (head, text) = text.split_once('\n').context("the head is missing")?;
        let head = Fields::parse(head)?;
        let word = |key| head.text(key).with_context(|| format!("{key}= is missing"));
        Ok(Self {
            time: head.number("time").context("time= is missing")?,
            tracker: word("tracker")?.into(),
            reading: Reading::parse(&word("file")?, text)?,
        })
    }
}

impl Reading {
    fn parse(file: &str, text: &str) -> Result<Self> {
        Ok(match file {
            "histogram" => Self::Whole(Histogram::parse(text)?),
            "labels" => Self::Labels(Labels::parse(text)?),
            _ => bail!("file={file}"),
        })
    }

    fn histogram(&self) -> Histogram {
        match self {
            Self::Whole(histogram) => histogram.clone(),
            Self::Labels(labels) => labels.histogram(),
        }
    }

    /// Whether this may be a later reading of the same instance: no bucket has shrunk, and the labels are of the same
    /// field.
    fn continues(&self, earlier: &Self) -> bool {
        let is_of_same = match (self, earlier) {
            (Self::Labels(now), Self::Labels(earlier)) => now.by == earlier.by,
            (Self::Whole(_), Self::Whole(_)) => true,
            _ => false,
        };
        is_of_same && earlier.histogram().since(&self.histogram()).count() == 0
    }

    fn since(&self, earlier: &Self) -> Self {
        match (self, earlier) {
            (Self::Labels(now), Self::Labels(earlier)) => Self::Labels(now.since(earlier)),
            _ => Self::Whole(self.histogram().since(&earlier.histogram())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Reading {
        Reading::parse("histogram", text).unwrap()
    }

    fn by_comm(rows: &str, other: &str) -> Reading {
        let head = "by=comm labels=2 max_labels=16 full=0 memory=149504";
        Reading::parse("labels", &format!("{head}\n{rows}other {other}\n")).unwrap()
    }

    #[test]
    fn a_new_instance_is_not_the_one_that_was_reset() {
        let before = whole("64 72 3\n96 104 1\n");
        assert!(before.continues(&before));
        assert!(whole("64 72 3\n88 96 5\n96 104 1\n").continues(&before));
        assert!(!whole("64 72 300\n").continues(&before));
        let none = "count=0 sum=0 min=0 max=0 buckets=";
        let fio = "label comm=\"fio\" count=3 sum=210 min=70 max=70 buckets=64-72:3\n";
        assert!(by_comm(fio, none).continues(&by_comm("", none)));
        assert!(!by_comm("", none).continues(&by_comm(fio, none)));
        assert!(!by_comm(fio, none).continues(&whole("64 72 1\n")));
    }

    #[test]
    fn the_rows_of_a_period_add_up_to_its_histogram() {
        let fio = "label comm=\"fio\" count=1 sum=70 min=70 max=70 buckets=64-72:1\n";
        let more = "label comm=\"fio\" count=3 sum=230 min=70 max=90 buckets=64-72:2,88-96:1\n\
                    label comm=\"dd\" count=1 sum=70 min=70 max=70 buckets=64-72:1\n";
        let other = "count=1 sum=99 min=99 max=99 buckets=96-104:1";
        let before = by_comm(fio, other);
        let period = by_comm(more, other).since(&before);
        assert_eq!(
            period.histogram(),
            Histogram::parse("64 72 2\n88 96 1\n").unwrap()
        );
    }

    #[test]
    fn a_reading_is_kept_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slow.period");
        assert!(Kept::read(&path).unwrap().is_none());
        let next = keep(
            directory.path(),
            "block",
            77,
            "histogram",
            "64 72 3\n96 104 1\n",
        );
        next.unwrap().persist(&path).unwrap();
        let kept = Kept::read(&path).unwrap().unwrap();
        assert_eq!((kept.time, &*kept.tracker), (77, "block"));
        assert_eq!(kept.reading, whole("64 72 3\n96 104 1\n"));
        fs::write(&path, "64 72 3\n").unwrap();
        let error = format!("{:#}", Kept::read(&path).unwrap_err());
        assert!(
            error.contains("slow.period: not written by `hist --reset`"),
            "{error}"
        );
    }
}
