// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The alerts of the instance, read through a separate open file.
//!
//! All readers of `NAME/wakeup` share one position: each alert goes to the first reader. `NAME/alerts` has a position
//! for each open file. The file is opened once and kept open while captures are made, so each alert is either returned
//! here or counted as missed, independently of other readers. Sequence numbers confirm this: a gap that no `lost=N`
//! announced counts as missed as well.

use std::fs::File;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use lt_common::wait::Lines;
use lt_proc::{Alert, ProcRoot, StreamLine};

use crate::ustack::Names;

/// At one wakeup, nothing more is read once there are this many alerts, so that a storm cannot prevent a capture.
const MOST: usize = 4096;

/// The result of one wakeup.
#[derive(Debug, Default, Clone)]
pub(crate) struct Woken {
    pub(crate) alerts: Vec<Alert>,
    /// Number of alerts that were overwritten before they were read.
    pub(crate) missed: u64,
    /// End of the stream: the instance is gone.
    pub(crate) end: bool,
}

impl Woken {
    /// Starts a thread, at ordinary priority, that looks up the names of user-space functions and returns the alerts
    /// with these names.
    pub(crate) fn find_names(&self) -> JoinHandle<Self> {
        let mut woken = self.clone();
        std::thread::spawn(move || {
            let mut names = Names::default();
            for alert in &mut woken.alerts {
                names.find(alert);
            }
            woken
        })
    }
}

/// An open `alerts` file.
#[derive(Debug)]
pub(crate) struct Stream {
    file: File,
    lines: Lines,
    /// The number of the last alert.
    last: Option<u64>,
    /// Alerts missed since the last alert, as announced by `lost=N`.
    announced: u64,
}

impl Stream {
    /// The alerts of instance `name` that are raised from now on.
    pub(crate) fn open(root: &ProcRoot, name: &str) -> Result<Self> {
        Ok(Self::new(root.open_alerts(Some(name), false)?))
    }

    /// The alerts of instance `name`, from the oldest that is still recorded.
    pub(crate) fn open_recorded(root: &ProcRoot, name: &str) -> Result<Self> {
        Ok(Self::new(root.open_alerts(Some(name), true)?))
    }

    /// All alerts of instance `name` since it was created: those already overwritten count as missed.
    pub(crate) fn open_whole(root: &ProcRoot, name: &str) -> Result<Self> {
        Ok(Self {
            // Alerts are numbered from 1.
            last: Some(0),
            ..Self::open_recorded(root, name)?
        })
    }

    fn new(file: File) -> Self {
        Self {
            file,
            lines: Lines::default(),
            last: None,
            announced: 0,
        }
    }

    /// The file to poll.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the alerts that can be read without waiting.
    pub(crate) fn read(&mut self) -> Result<Woken> {
        let mut woken = Woken::default();
        while woken.alerts.len() < MOST && !woken.end {
            let chunk = self.lines.read(&self.file);
            let chunk = chunk.context("cannot read the alerts")?;
            for line in &chunk.lines {
                match StreamLine::parse(line)? {
                    StreamLine::Lost(n) => {
                        woken.missed += n;
                        self.announced += n;
                    }
                    StreamLine::Alert(alert) => {
                        let gap = self
                            .last
                            .map_or(0, |last| alert.seq.saturating_sub(last + 1));
                        woken.missed += gap.saturating_sub(self.announced);
                        self.announced = 0;
                        self.last = Some(alert.seq);
                        woken.alerts.push(*alert);
                    }
                }
            }
            woken.end = chunk.end;
            if chunk.lines.is_empty() {
                break;
            }
        }
        Ok(woken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64) -> String {
        format!(
            "seq={seq} time=1 instance=a tracker=block reason=threshold delay=1 threshold=1 cpu=0 pid=1 tid=1 \
             comm=\"x\"\n"
        )
    }

    #[test]
    fn each_alert_is_returned_or_counted_as_missed() {
        let text = [
            line(7),
            line(8),
            "lost=3\n".into(),
            line(12),
            line(20),
            "lost=2\n".into(),
        ]
        .concat();
        let file = std::env::temp_dir().join(format!("lt-stream-{}", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let woken = Stream::new(File::open(&file).unwrap()).read().unwrap();
        std::fs::remove_file(&file).unwrap();
        let seqs: Vec<u64> = woken.alerts.iter().map(|alert| alert.seq).collect();
        assert_eq!(seqs, [7, 8, 12, 20]);
        // 9 to 11 as announced, 13 to 19 by the gap alone, 21 and 22 as announced.
        assert_eq!(woken.missed, 3 + 7 + 2);
    }

    #[test]
    fn an_alert_that_was_overwritten_before_the_stream_was_opened_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::write(dir.path().join("a/alerts"), line(4) + &line(5)).unwrap();
        let root = ProcRoot::new(dir.path());
        let missed = |stream: Result<Stream>| stream.unwrap().read().unwrap().missed;
        assert_eq!(missed(Stream::open_recorded(&root, "a")), 0);
        assert_eq!(missed(Stream::open_whole(&root, "a")), 3);
    }
}
