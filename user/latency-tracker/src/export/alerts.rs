// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sends the alerts of all instances to a collector: a thread waits for alerts, and sends the
//! alerts of each second together.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, SystemTime};

use lt_common::clock;
use lt_common::out::note;
use lt_common::wait::{Chunk, Lines};
use lt_export::{Outbox, Record, Resource};
use lt_proc::{ProcError, ProcRoot, StreamLine};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Once a message has this many alerts, no more are read for it.
const MOST: usize = 1024;

/// The pause after all alerts have been sent. The alerts of this period are sent together.
const TOGETHER: Duration = Duration::from_secs(1);

/// How often to look for a module that is not loaded.
const AGAIN: Duration = Duration::from_secs(5);

/// Starts a thread that sends the alerts from now on. The thread ends with the process. If the module is loaded later,
/// alerts that the ring overwrites before the thread opens the file are neither sent nor counted.
pub(crate) fn start(root: ProcRoot, outbox: Outbox, resource: Resource) {
    let mut source = Source::new(root);
    // If the module is loaded, the file is opened before this function returns, so that no alert is missed.
    let mut file = source.open();
    thread::spawn(move || {
        loop {
            if let Some(file) = file.take() {
                source.send(&file, &outbox, &resource);
            }
            // The module was unloaded, or is not loaded yet.
            thread::sleep(AGAIN);
            file = source.open();
        }
    });
}

/// The file with the alerts of all instances.
struct Source {
    root: ProcRoot,
    /// Whether the next file to open belongs to a module that was loaded after [`start`]: then all its alerts are sent.
    from_start: bool,
    /// The last note, which is not repeated.
    said: String,
}

impl Source {
    fn new(root: ProcRoot) -> Self {
        Self {
            root,
            from_start: false,
            said: String::new(),
        }
    }

    /// Opens the file. If that fails although the module is loaded, notes why.
    fn open(&mut self) -> Option<File> {
        let opened = self.root.open_alerts(None, self.from_start);
        self.from_start |= matches!(opened, Ok(_) | Err(ProcError::NotLoaded(_)));
        match opened {
            Ok(file) => Some(file),
            Err(ProcError::NotLoaded(_)) => None,
            Err(error) => {
                self.say(format!("no alerts: {:#}", anyhow::Error::from(error)));
                None
            }
        }
    }

    /// Sends the alerts until the module is unloaded. After an error, the file is read again: it has kept its position.
    fn send(&mut self, file: &File, outbox: &Outbox, resource: &Resource) {
        let mut lines = Lines::default();
        loop {
            let mut polled = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
            // The result of poll() does not matter, since reading does not block.
            let _ = poll(&mut polled, PollTimeout::NONE);
            loop {
                let (records, missed, stop) = message(|| lines.read(file));
                outbox.alerts(&records, missed, resource);
                match stop {
                    Stop::Full => {}
                    Stop::Empty => break,
                    Stop::End => return,
                    Stop::Failed(error) => {
                        self.say(format!("cannot read the alerts: {error}"));
                        break;
                    }
                }
            }
            thread::sleep(TOGETHER);
        }
    }

    fn say(&mut self, text: String) {
        if self.said != text {
            note(&text);
            self.said = text;
        }
    }
}

/// Why a message has no more alerts.
#[derive(Debug)]
enum Stop {
    /// The message is large enough; there may be more alerts.
    Full,
    /// All alerts so far have been read.
    Empty,
    /// The module was unloaded.
    End,
    /// Reading failed.
    Failed(io::Error),
}

/// Reads the alerts of one message. Also returns how many alerts were missed, and why the message has no more.
fn message(mut read: impl FnMut() -> io::Result<Chunk>) -> (Vec<Record>, u64, Stop) {
    let (mut records, mut missed) = (Vec::new(), 0);
    let stop = loop {
        if records.len() >= MOST {
            break Stop::Full;
        }
        let chunk = match read() {
            Ok(chunk) => chunk,
            Err(error) => break Stop::Failed(error),
        };
        for line in &chunk.lines {
            match StreamLine::parse(line) {
                Ok(StreamLine::Alert(alert)) => records.push(Record {
                    time: time_of(alert.time),
                    // A collector may show the addresses to anyone.
                    alert: alert.without_user_addresses(),
                }),
                Ok(StreamLine::Lost(n)) => missed += n,
                // An alert of a newer module.
                Err(_) => missed += 1,
            }
        }
        if chunk.end {
            break Stop::End;
        }
        if chunk.lines.is_empty() {
            break Stop::Empty;
        }
    };
    (records, missed, stop)
}

/// Returns the time of day of a time in `CLOCK_MONOTONIC`, ns. A suspend since then shifts the result. Few alerts are
/// affected: the kernel wakes this thread at most once a second, and the thread pauses for [`TOGETHER`].
fn time_of(monotonic: u64) -> SystemTime {
    let ago = clock::monotonic().saturating_sub(monotonic);
    SystemTime::now() - Duration::from_nanos(ago)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALERT: &str = "seq=1 time=1 instance=a tracker=block reason=threshold delay=1 threshold=1 cpu=0 pid=1 tid=1 \
        comm=\"x\"";

    #[test]
    fn an_error_costs_no_alert_that_was_read_before_it() {
        let chunk = |lines: &[&str], end: bool| Chunk {
            lines: lines.iter().map(|line| (*line).to_string()).collect(),
            end,
        };
        let mut reads = [
            Ok(chunk(&[ALERT, "lost=2"], false)),
            Ok(chunk(&[ALERT], false)),
            Err(io::Error::other("no memory")),
            Ok(chunk(&[ALERT, "seq=x"], true)),
        ]
        .into_iter();
        let mut read = || reads.next().unwrap();
        let (records, missed, stop) = message(&mut read);
        assert_eq!((records.len(), missed), (2, 2));
        assert!(matches!(stop, Stop::Failed(_)), "{stop:?}");
        let (records, missed, stop) = message(&mut read);
        assert_eq!((records.len(), missed), (1, 1));
        assert!(matches!(stop, Stop::End), "{stop:?}");
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_noted_unless_the_module_is_not_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let mut source = Source::new(ProcRoot::new(dir.path()));
        assert!(source.open().is_none());
        assert_eq!(source.said, "");
        std::fs::write(dir.path().join("control"), "").unwrap();
        assert!(source.open().is_none());
        let path = dir.path().join("alerts");
        let why = "No such file or directory (os error 2)";
        assert_eq!(source.said, format!("no alerts: {}: {why}", path.display()));
        std::fs::write(&path, "").unwrap();
        assert!(source.open().is_some());
    }

    #[test]
    fn only_a_module_that_is_loaded_later_is_read_from_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(dir.path());
        let mut source = Source::new(root.clone());
        assert!(source.open().is_none() && source.from_start);
        std::fs::write(dir.path().join("control"), "").unwrap();
        let mut source = Source::new(root);
        assert!(source.open().is_none() && !source.from_start);
        std::fs::write(dir.path().join("alerts"), "").unwrap();
        // This file is read until the module is unloaded.
        assert!(source.open().is_some() && source.from_start);
    }
}
