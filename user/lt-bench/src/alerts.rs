// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The alerts that the trackers raise while a bench runs, in its own instances and in others, and
//! the times in which alerts are missing.

use std::fs::File;

use anyhow::{Context, Result, bail};
use lt_common::wait::Lines;
use lt_proc::{Alert, ProcRoot, StreamLine};

use super::cycle::{Monotonic, Time};

/// An allowance for the time from the end of an operation, which is the time of its alert, until
/// the alert can be read, ns.
const LAG: u64 = 20_000_000;

/// Why alerts are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// They were overwritten before they were read, or found no place in the ring.
    Lost,
    /// Their lines could not be parsed.
    Unreadable,
    /// The bench had no room for them.
    Dropped,
}

impl Why {
    /// Returns the reason as a clause.
    pub(super) fn text(self) -> &'static str {
        match self {
            Why::Lost => "alerts of that time were lost before they were read",
            Why::Unreadable => "alerts of that time could not be parsed",
            Why::Dropped => "alerts of that time were dropped for lack of room",
        }
    }
}

/// Missing alerts, and the time in which they were raised, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    pub(super) why: Why,
    pub(super) count: u64,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// All missing alerts.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Missing>);

impl Gaps {
    /// Adds missing alerts. To limit the memory, this extends the last entry with the same reason
    /// if the time between the two is at most [`LAG`].
    pub(super) fn add(&mut self, new: Missing) {
        let last = self.0.iter_mut().rfind(|old| old.why == new.why);
        match last {
            Some(old) if new.from <= old.to.saturating_add(LAG) => {
                old.count = old.count.saturating_add(new.count);
                old.from = old.from.min(new.from);
                old.to = old.to.max(new.to);
            }
            _ => self.0.push(new),
        }
    }

    /// Returns why alerts of the time from `from` to `to` may be missing; `None` if none is.
    pub(super) fn during(&self, from: u64, to: u64) -> Option<Why> {
        let gap = self.0.iter().find(|gap| gap.from <= to && gap.to >= from);
        gap.map(|gap| gap.why)
    }

    /// Returns the number of alerts that were dropped for lack of room.
    pub(super) fn dropped(&self) -> u64 {
        self.count(|why| why == Why::Dropped)
    }

    /// Returns the number of alerts that were lost or could not be parsed.
    pub(super) fn unread(&self) -> u64 {
        self.count(|why| why != Why::Dropped)
    }

    fn count(&self, wanted: impl Fn(Why) -> bool) -> u64 {
        let gaps = self.0.iter().filter(|gap| wanted(gap.why));
        gaps.fold(0u64, |sum, gap| sum.saturating_add(gap.count))
    }
}

/// The alerts of all instances, including instances of other users, as they arrive. The default
/// has none.
#[derive(Debug, Default)]
pub(super) struct Tail {
    file: Option<File>,
    lines: Lines,
    /// When the last reading up to the end of the stream started, CLOCK_MONOTONIC ns.
    since: u64,
    pub(super) missing: Gaps,
}

impl Tail {
    /// Follows the alerts from now on. Fails without the module.
    pub(super) fn open(root: &ProcRoot) -> Result<Self> {
        let since = Monotonic.now();
        Ok(Self {
            file: Some(root.open_alerts(None, false)?),
            since,
            ..Self::default()
        })
    }

    /// Passes the alerts that have arrived to `keep`, which returns false if it has no room for an
    /// alert. If the stream ends or cannot be read, fails once, and then returns no further alert.
    pub(super) fn read(&mut self, mut keep: impl FnMut(Alert) -> bool) -> Result<()> {
        let begin = Monotonic.now();
        while let Some(file) = &self.file {
            let chunk = match self.lines.read(file) {
                Ok(chunk) => chunk,
                Err(error) => {
                    self.file = None;
                    return Err(error).context("alerts can no longer be read");
                }
            };
            for line in &chunk.lines {
                self.take(line, &mut keep);
            }
            if chunk.end {
                self.file = None;
                bail!("alerts can no longer be read: was the module removed?");
            }
            if chunk.lines.is_empty() {
                self.since = begin;
                break;
            }
        }
        Ok(())
    }

    /// Passes the alert of a line to `keep`, or records that alerts are missing.
    fn take(&mut self, line: &str, keep: &mut impl FnMut(Alert) -> bool) {
        let mut missing = Missing {
            why: Why::Unreadable,
            count: 1,
            from: self.since.saturating_sub(LAG),
            to: Monotonic.now(),
        };
        match StreamLine::parse(line) {
            Ok(StreamLine::Alert(alert)) => {
                let time = alert.time;
                if keep(*alert) {
                    return;
                }
                missing.why = Why::Dropped;
                (missing.from, missing.to) = (time, time);
            }
            Ok(StreamLine::Lost(count)) => {
                missing.why = Why::Lost;
                missing.count = count;
            }
            Err(_) => {}
        }
        self.missing.add(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;

    #[test]
    fn missing_alerts_are_counted_with_their_time() {
        let alert = "seq=1 time=1000 instance=i tracker=tree reason=threshold delay=9 threshold=1 \
                     cpu=1 pid=5 tid=7 comm=\"x\"";
        let (reader, mut writer) = io::pipe().unwrap();
        let since = Monotonic.now();
        let mut tail = Tail {
            file: Some(File::from(OwnedFd::from(reader))),
            since,
            ..Tail::default()
        };
        let text = format!("lost=3\nno alert\n{alert}\n{alert}\n");
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        let mut passed = 0;
        let read = tail.read(|_| {
            passed += 1;
            passed == 1
        });
        let error = read.unwrap_err().to_string();
        assert!(error.contains("was the module removed?"), "{error}");
        assert!(tail.read(|_| true).is_ok(), "it fails once");
        let missing = &tail.missing;
        assert_eq!((passed, missing.unread(), missing.dropped()), (2, 4, 1));
        assert_eq!(missing.during(0, 1000), Some(Why::Dropped));
        assert_eq!(missing.during(1001, 1002), None);
        assert_eq!(missing.during(since, since), Some(Why::Lost));
        assert_eq!(missing.during(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn gaps_are_joined_if_they_are_close() {
        let mut gaps = Gaps::default();
        for (why, at) in [
            (Why::Lost, 0),
            (Why::Unreadable, 5),
            (Why::Lost, LAG),
            (Why::Lost, 3 * LAG),
        ] {
            gaps.add(Missing {
                why,
                count: 2,
                from: at,
                to: at,
            });
        }
        assert_eq!((gaps.0.len(), gaps.unread(), gaps.dropped()), (3, 8, 0));
        assert_eq!(gaps.during(LAG, LAG), Some(Why::Lost));
        assert_eq!(gaps.during(2 * LAG, 2 * LAG), None);
    }
}
