// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `hist --reset` and `--since-reset`: the delays since the last reset.
//!
//! ```text
//! start of NAME            reset                   reset            now
//!     |----------------------|-----------------------|---------------|
//!                            `- shown by the reset --'- --since-reset'
//! ```
//!
//! The module's counters are never reset, since other readers rely on that. So a reset keeps its reading, and the
//! next period is the difference from that reading: each delay is in exactly one period. Root's readings are in
//! `/run/latency-tracker/NAME.period`, and another user's readings are in a directory of that user. Each user
//! therefore has separate periods.
//!
//! A reading includes the time at which the instance was created. A reading of an earlier instance of the same name
//! starts no period, since the old counters say nothing about the new instance.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::lttng::{make_run_dir, run_dir};
use lt_common::out::note;
use lt_proc::{Fields, Histogram, Labels, ProcRoot, Stats};
use nix::time::{ClockId, clock_gettime};
use tempfile::NamedTempFile;

use super::{by, show};
use crate::cli::HistArgs;
use crate::cmd::lock;

/// All delays of an instance so far.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reading {
    Whole(Histogram),
    /// The delays of an instance with `by=`. The histogram is the sum of the rows, so that both are of one instant.
    Labels(Labels),
}

/// A reading that was kept.
#[derive(Debug)]
struct Kept {
    /// `CLOCK_BOOTTIME`, ns.
    time: u64,
    /// When the instance was created: see [`ProcRoot::of_one`].
    created: u64,
    reading: Reading,
}

/// The delays since the last reset.
#[derive(Debug)]
struct Period {
    shown: Reading,
    /// The time since the last reset; `None` if all delays are shown.
    length: Option<Duration>,
    /// Whether the instance was created after the last reset of its name.
    is_new: bool,
    /// The counters of the instance.
    stats: Stats,
    /// The text that a reset must store.
    next: String,
}

pub(super) fn run(root: &ProcRoot, args: &HistArgs, names: &[String]) -> Result<Outcome> {
    // clap requires the name.
    names.iter().try_for_each(|name| period(root, args, name))?;
    Ok(Outcome::Fine)
}

fn period(root: &ProcRoot, args: &HistArgs, name: &str) -> Result<()> {
    make_run_dir()?;
    let directory = run_dir();
    // Two resets at once would show the same delays.
    let _lock = match args.reset {
        true => Some(lock(&directory.join("periods.lock"))?),
        false => None,
    };
    let path = directory.join(format!("{name}.period"));
    let period = Period::read(root, name, &path)?;
    if period.is_new {
        note(&format!(
            "{name} was started after its last reset: all its delays are shown"
        ));
    }
    // The reading is written before the output, but renamed only after it: delays that could not be shown are not
    // reset.
    let next = match args.reset {
        true => Some(keep(directory, &period.next)?),
        false => None,
    };
    let (stats, length) = (&period.stats, period.length);
    match (&period.shown, args.by) {
        (Reading::Labels(labels), true) => by::print(args, name, labels, stats, length)?,
        (shown, _) => show(args, name, &shown.histogram(), stats, length)?,
    }
    if let Some(next) = next {
        next.persist(&path)
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Writes a reading to a temporary file, which the caller renames.
fn keep(directory: &Path, text: &str) -> Result<NamedTempFile> {
    let mut kept = NamedTempFile::new_in(directory)
        .with_context(|| format!("no file in {}", directory.display()))?;
    kept.write_all(text.as_bytes())
        .with_context(|| kept.path().display().to_string())?;
    Ok(kept)
}

impl Period {
    /// Reads an instance, and the reading that its last reset has kept in `path`.
    fn read(root: &ProcRoot, name: &str, path: &Path) -> Result<Self> {
        // This is read before the counters: otherwise another command could store a later reading in between.
        let kept = Kept::read(path)?;
        let (created, (file, text, time, stats)) = root.of_one(name, || {
            let file = match root.has_labels(name) {
                true => "labels",
                false => "histogram",
            };
            let text = root.text(name, file)?;
            let time = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME)?);
            let time = u64::try_from(time.as_nanos())?;
            anyhow::Ok((file, text, time, root.stats(name)?))
        })?;
        let created = created.with_context(|| {
            format!(
                "the loaded module is older than this command, and does not show when {name} was created: load the \
                 installed module, or use `hist {name} -i`"
            )
        })?;
        let now = Reading::parse(file, &text)?;
        let is_new = kept.as_ref().is_some_and(|kept| kept.created != created);
        let kept = kept.filter(|_| !is_new);
        let length = kept.as_ref().map(|kept| time.saturating_sub(kept.time));
        Ok(Self {
            shown: kept.map_or_else(|| now.clone(), |kept| now.since(&kept.reading)),
            length: length.map(Duration::from_nanos),
            is_new,
            stats,
            next: format!("created={created} time={time} file={file}\n{text}"),
        })
    }
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
        let number = |key| head.number(key).with_context(|| format!("no {key}="));
        let file = head.text("file").context("no file=")?;
        Ok(Self {
            time: number("time")?,
            created: number("created")?,
            reading: Reading::parse(&file, text)?,
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

    /// A tree with an instance that was created at this time.
    fn tree(created: &str, histogram: &str) -> (tempfile::TempDir, ProcRoot) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("slow")).unwrap();
        for (file, text) in [
            ("control", "slow block threshold=1\n"),
            ("slow/created", created),
            ("slow/histogram", histogram),
            ("slow/stats", "ended 1\n"),
        ] {
            fs::write(directory.path().join(file), text).unwrap();
        }
        let root = ProcRoot::new(directory.path());
        (directory, root)
    }

    fn by_comm(rows: &str, other: &str) -> Reading {
        let head = "by=comm labels=2 max_labels=16 full=0 memory=149504";
        Reading::parse("labels", &format!("{head}\n{rows}other {other}\n")).unwrap()
    }

    #[test]
    fn each_delay_is_in_one_period_and_a_new_instance_starts_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slow.period");
        let reset = |created, histogram| {
            let (_tree, root) = tree(created, histogram);
            let period = Period::read(&root, "slow", &path).unwrap();
            let next = keep(directory.path(), &period.next).unwrap();
            next.persist(&path).unwrap();
            let count = period.shown.histogram().count();
            (count, period.length.is_some(), period.is_new)
        };
        for (created, histogram, expected) in [
            ("5\n", "64 72 3\n96 104 1\n", (4, false, false)),
            ("5\n", "64 72 5\n88 96 5\n96 104 1\n", (7, true, false)),
            ("5\n", "64 72 5\n88 96 5\n96 104 1\n", (0, true, false)),
            // A new instance may have more delays in each bucket than the old one, or fewer.
            ("9\n", "64 72 9\n88 96 9\n96 104 9\n", (27, false, true)),
            ("12\n", "64 72 1\n", (1, false, true)),
            ("12\n", "64 72 2\n", (1, true, false)),
        ] {
            assert_eq!(reset(created, histogram), expected, "{histogram}");
        }
    }

    #[test]
    fn an_older_module_is_named() {
        let (tree, root) = tree("5\n", "64 72 3\n");
        fs::remove_file(tree.path().join("slow/created")).unwrap();
        let error = Period::read(&root, "slow", Path::new("none")).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("older than this command"), "{error}");
        let error = Period::read(&root, "other", Path::new("none")).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("no instance named \"other\""), "{error}");
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
    fn a_file_of_another_program_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("slow.period");
        assert!(Kept::read(&path).unwrap().is_none());
        fs::write(&path, "64 72 3\n").unwrap();
        let error = format!("{:#}", Kept::read(&path).unwrap_err());
        assert!(
            error.contains("slow.period: not written by `hist --reset`"),
            "{error}"
        );
    }
}
