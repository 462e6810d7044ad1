// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads all instances once per tick, at a bounded cost.
//!
//! - `pending` makes the kernel walk all events of an instance. Only its head is read: the oldest
//!   operations come first. The file is not read again until [`PAUSE`] times the duration of the
//!   read has passed; until then, its result stays, marked as old.
//! - `alerts` is a stream. Each open file has its own position, so no other reader misses an alert.
//!   The file `wakeup` has one position for all its readers, and is not used.
//! - The hierarchy of cgroups is searched once for each cgroup number. Later ticks look only at the
//!   directory that was found.
//! - A histogram is read before the counters, so the longest delay in the counters is at least as
//!   long as any delay in the histogram.
//!
//! An instance that is removed between two reads is left out.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use anyhow::Result;
use lt_common::clock::monotonic;
use lt_common::group;
use lt_common::wait::Lines;
use lt_proc::{Alert, Histogram, Instance, Pending, ProcError, ProcRoot, Stats, StreamLine};
use nix::errno::Errno;

use super::groups::Groups;

/// Maximum number of bytes of `pending` that are read.
const HEAD: u64 = 16 << 10;

/// Reading the `pending` file of an instance may take at most 1/`PAUSE` of a CPU.
const PAUSE: u32 = 20;

/// Number of alerts that are kept.
pub(super) const KEPT: usize = 256;

/// The state of one instance at one time.
#[derive(Debug, Clone)]
pub(super) struct OneReading {
    pub(super) instance: Instance,
    /// When the instance was created: see [`ProcRoot::of_one`].
    pub(super) created: Option<u64>,
    pub(super) stats: Stats,
    pub(super) delays: Histogram,
    /// When the counters were read.
    pub(super) at: Instant,
    pub(super) oldest: Vec<Pending>,
    /// Whether `oldest` is from an earlier reading.
    pub(super) is_old: bool,
    /// The number of a cgroup in the filter, if no cgroup has that number.
    pub(super) missing_cgroup: Option<u64>,
}

/// The result of a tick.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// `CLOCK_MONOTONIC`, ns, as in alerts.
    pub(super) time: u64,
    pub(super) all: Vec<OneReading>,
    /// New alerts, the oldest first, at most [`KEPT`].
    pub(super) alerts: Vec<Alert>,
    /// Alerts that were overwritten before they were read.
    pub(super) missed: u64,
    /// New alerts that are older than those in `alerts`, and were dropped.
    pub(super) dropped: u64,
}

/// The last reading of a `pending` file.
#[derive(Debug)]
struct Last {
    /// When the instance was created: another instance may have its name by now.
    created: Option<u64>,
    oldest: Vec<Pending>,
    /// Earliest time of the next reading.
    due: Instant,
}

/// Reads the files of the module.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    root: &'a ProcRoot,
    /// Reads only this instance.
    name: Option<String>,
    stream: Option<File>,
    lines: Lines,
    alerts: VecDeque<Alert>,
    missed: u64,
    dropped: u64,
    /// Groups of all alerts that are read, including those that are dropped.
    pub(super) groups: Option<Groups>,
    last: HashMap<String, Last>,
    cgroups: group::Groups,
}

impl<'a> Reader<'a> {
    /// Opens the stream of alerts, at the oldest alert that is recorded.
    pub(super) fn open(root: &'a ProcRoot, name: Option<&str>) -> Result<Self> {
        if let Some(name) = name {
            root.instance(name)?;
        }
        Ok(Self {
            root,
            name: name.map(String::from),
            stream: Some(root.open_alerts(None, true)?),
            lines: Lines::default(),
            alerts: VecDeque::new(),
            missed: 0,
            dropped: 0,
            groups: None,
            last: HashMap::new(),
            cgroups: group::Groups::find(),
        })
    }

    /// Reads everything; the alerts are those since the last call.
    pub(super) fn read(&mut self) -> Result<Reading> {
        let mut all = Vec::new();
        for instance in self.root.instances()? {
            if self
                .name
                .as_ref()
                .is_some_and(|name| *name != instance.name)
            {
                continue;
            }
            match self.one(instance) {
                Ok(one) => all.push(one),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.last
            .retain(|name, _| all.iter().any(|one| one.instance.name == *name));
        self.drain()?;
        Ok(Reading {
            time: monotonic(),
            all,
            alerts: self.alerts.drain(..).collect(),
            missed: std::mem::take(&mut self.missed),
            dropped: std::mem::take(&mut self.dropped),
        })
    }

    fn one(&mut self, instance: Instance) -> Result<OneReading, ProcError> {
        let name = &instance.name;
        let read = || Ok::<_, ProcError>((self.root.histogram(name)?, self.root.stats(name)?));
        let (created, (delays, stats)) = self.root.of_one(name, read)?;
        let at = Instant::now();
        let is_valid = |last: &&Last| last.created == created && at < last.due;
        let last = self.last.get(name).filter(is_valid);
        let is_old = last.is_some() && stats.count("pending") > 0;
        let oldest = match last {
            _ if stats.count("pending") == 0 => Vec::new(),
            Some(last) => last.oldest.clone(),
            None => {
                let oldest = self.root.oldest(name, HEAD)?;
                let last = Last {
                    created,
                    oldest: oldest.clone(),
                    due: Instant::now() + at.elapsed() * PAUSE,
                };
                self.last.insert(name.clone(), last);
                oldest
            }
        };
        Ok(OneReading {
            missing_cgroup: self.cgroups.missing(&instance),
            instance,
            created,
            stats,
            delays,
            at,
            oldest,
            is_old,
        })
    }

    /// Reads the available alerts, so that the ring does not overwrite them during a long interval.
    pub(super) fn drain(&mut self) -> Result<()> {
        let path = self.root.path().join("alerts");
        let inode = fs::metadata(&path).map(|meta| meta.ino()).ok();
        let ours = self.stream.as_ref().and_then(|file| file.metadata().ok());
        // The module was loaded again.
        if inode.is_some() && ours.map(|meta| meta.ino()) != inode {
            self.stream = match self.root.open_alerts(None, true) {
                Ok(stream) => Some(stream),
                // The module is being removed again.
                Err(error) if is_gone(&error) || !self.is_loaded() => None,
                Err(error) => return Err(error.into()),
            };
            self.lines = Lines::default();
        }
        let Some(stream) = &self.stream else {
            return Ok(());
        };
        // The number of reads is limited, so that this call ends even if alerts come faster than
        // they are parsed. The next call continues.
        for _ in 0..CHUNKS {
            let chunk = match self.lines.read(stream) {
                Ok(chunk) => chunk,
                // The module was removed.
                Err(_) => break,
            };
            for line in &chunk.lines {
                match StreamLine::parse(line)? {
                    StreamLine::Lost(lost) => self.missed = self.missed.saturating_add(lost),
                    StreamLine::Alert(alert)
                        if self
                            .name
                            .as_ref()
                            .is_none_or(|name| *name == alert.instance) =>
                    {
                        if let Some(groups) = &mut self.groups {
                            groups.see(&alert);
                        }
                        self.alerts.push_back(*alert);
                    }
                    StreamLine::Alert(_) => {}
                }
            }
            let excess = self.alerts.len().saturating_sub(KEPT);
            self.alerts.drain(..excess);
            self.dropped = self.dropped.saturating_add(excess as u64);
            if chunk.end || chunk.lines.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the module is still loaded.
    pub(super) fn is_loaded(&self) -> bool {
        self.root.is_loaded()
    }
}

/// Maximum number of reads of `alerts` by one call.
const CHUNKS: usize = 128;

/// Whether an error only means that the instance was removed meanwhile.
fn is_gone(error: &ProcError) -> bool {
    match error {
        ProcError::NoInstance(_) => true,
        ProcError::Io { source, .. } => removed(source),
        _ => false,
    }
}

/// Whether reading an open file failed because the file was removed.
fn removed(error: &io::Error) -> bool {
    let known = [Errno::EIO, Errno::ENODEV, Errno::ENOENT];
    known
        .iter()
        .any(|errno| error.raw_os_error() == Some(*errno as i32))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ALERT: &str = "seq=17 time=1 instance=slow tracker=block reason=threshold delay=2 threshold=1 cpu=1 \
        pid=8 tid=8 comm=\"fio\"\n";

    /// The module's directory, with one instance.
    fn tree() -> (tempfile::TempDir, ProcRoot) {
        let dir = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(dir.path());
        fs::create_dir(dir.path().join("slow")).unwrap();
        for (path, text) in [
            ("control", "slow block threshold=1\n"),
            ("alerts", ALERT),
            ("slow/stats", "attempts 2\npending 2\n"),
            ("slow/histogram", ""),
            ("slow/pending", "age=5 start=1\nage=4 start=2\n"),
        ] {
            fs::write(dir.path().join(path), text).unwrap();
        }
        (dir, root)
    }

    #[test]
    fn a_slow_file_is_read_less_often_and_its_last_result_is_marked() {
        let (dir, root) = tree();
        let mut reader = Reader::open(&root, None).unwrap();
        let mut read = |due: Option<Instant>| {
            if let Some(due) = due {
                reader.last.get_mut("slow").unwrap().due = due;
            }
            let one = reader.read().unwrap().all.remove(0);
            (one.oldest.len(), one.is_old)
        };
        assert_eq!(read(None), (2, false));
        fs::write(dir.path().join("slow/pending"), "age=5 start=1\n").unwrap();
        let hour = Duration::from_secs(3600);
        assert_eq!(read(Some(Instant::now() + hour)), (2, true));
        assert_eq!(read(Some(Instant::now())), (1, false));
        // Another instance has the name.
        fs::write(dir.path().join("slow/created"), "7\n").unwrap();
        fs::write(dir.path().join("slow/pending"), "").unwrap();
        assert_eq!(read(Some(Instant::now() + hour)), (0, false));
        fs::write(dir.path().join("slow/stats"), "attempts 2\npending 0\n").unwrap();
        let none = read(Some(Instant::now() + hour));
        assert_eq!(none, (0, false), "the counter says that there is none");
    }

    #[test]
    fn each_alert_is_read_once_even_if_the_module_is_loaded_again() {
        let (dir, root) = tree();
        let mut reader = Reader::open(&root, Some("slow")).unwrap();
        let path = |name: &str| dir.path().join(name);
        let seen = |reader: &mut Reader<'_>| -> Vec<u64> {
            let alerts = reader.read().unwrap().alerts;
            alerts.iter().map(|alert| alert.seq).collect()
        };
        assert_eq!(seen(&mut reader), [17]);
        assert!(seen(&mut reader).is_empty());
        let other = ALERT
            .replace("seq=17", "seq=1")
            .replace("instance=slow", "instance=other");
        fs::write(
            path("new"),
            ALERT.replace("seq=17", "seq=2") + "lost=3\n" + &other,
        )
        .unwrap();
        fs::rename(path("new"), path("alerts")).unwrap();
        reader.drain().unwrap();
        let reading = reader.read().unwrap();
        assert_eq!((reading.alerts.len(), reading.missed), (1, 3));
        assert!(seen(&mut reader).is_empty());
    }

    #[test]
    fn alerts_that_cannot_be_opened_again_are_an_error() {
        let (dir, root) = tree();
        let mut reader = Reader::open(&root, None).unwrap();
        let path = dir.path().join("alerts");
        fs::remove_file(&path).unwrap();
        reader.drain().unwrap();
        // Not even root can open a socket.
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = reader.drain().unwrap_err();
        assert_eq!(error.to_string(), path.display().to_string());
        fs::remove_file(dir.path().join("control")).unwrap();
        reader.drain().unwrap();
    }

    #[test]
    fn an_instance_that_vanishes_between_two_reads_is_left_out() {
        let (dir, root) = tree();
        let mut reader = Reader::open(&root, None).unwrap();
        fs::remove_file(dir.path().join("slow/stats")).unwrap();
        assert!(reader.read().unwrap().all.is_empty());
        fs::remove_file(dir.path().join("control")).unwrap();
        assert!(reader.read().is_err());
        assert!(!reader.is_loaded());
        for (errno, gone) in [
            (Errno::EIO, true),
            (Errno::ENODEV, true),
            (Errno::EACCES, false),
        ] {
            let source = io::Error::from(errno);
            let path = dir.path().to_path_buf();
            assert_eq!(is_gone(&ProcError::Io { path, source }), gone, "{errno}");
        }
    }
}
