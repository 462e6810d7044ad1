// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Numbered captures in the output directory.
//!
//! ```text
//! DIR/0001/trace/           the recorded trace, for babeltrace2; with --trace-format ctf-1.8 for Trace Compass
//! DIR/0001/alert.json       the alerts of the capture
//! DIR/0001/evidence.json    facts that a trace cannot contain, see lt_proc::evidence
//! DIR/0001/explanation.txt  the explanations of the alerts from the trace
//! ```
//!
//! A capture is written under another name and renamed once it is complete, so a numbered directory is never a partial
//! capture. A capture is renamed again before it is removed. Several recorders may share the output directory. Three
//! steps need a lock (`DIR/.lock`): a capture takes a number, which becomes part of the name of its partial directory;
//! a complete capture gets its final name; old captures are removed.
//!
//! A trace names every process of the machine, so captures are accessible to their owner only (0700, 0600), and no
//! other user can redirect them (see private.rs).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use lt_proc::Alert;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::lttng::Session;
use crate::private::make_private;

/// The output directory.
#[derive(Debug)]
pub struct Captures {
    directory: PathBuf,
    lock: PathBuf,
}

/// `alert.json`.
#[derive(Debug, Serialize)]
pub struct Record<'a> {
    /// The number of the capture.
    pub capture: u64,
    /// When the snapshot was taken.
    #[serde(flatten)]
    pub taken: Taken,
    /// The name of the instance.
    pub instance: &'a str,
    /// The tracker of the instance.
    pub tracker: &'a str,
    /// Time until the snapshot was written, ns: from the recorder's wakeup, or for `why` from the request for the
    /// snapshot. 0 for `hwnoise`, which writes none.
    pub snapshot_took: u64,
    /// Number of alerts that were overwritten before they could be read.
    pub lost: u64,
    /// Number of captures that the recorder has skipped so far: at most one for each of its wakeups.
    pub skipped: usize,
    /// The alerts that the recorder read at this wakeup.
    pub alerts: &'a [Alert],
    /// Sleeps within the late operation that are not late themselves, and whose alerts have stacks; omitted if there
    /// are none.
    #[serde(skip_serializing_if = "<[Alert]>::is_empty")]
    pub sleeps: &'a [Alert],
    /// Why there is no trace; omitted if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_trace: Option<&'a str>,
    /// Where a relay daemon has a copy of the trace: its URL, and the place in its output directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<&'a str>,
    /// Why no relay daemon has a copy; omitted if none was to be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_sent: Option<&'a str>,
}

/// When a capture was taken.
#[derive(Debug, Serialize, Deserialize)]
pub struct Taken {
    /// Time of day, seconds since 1970.
    taken: u64,
    /// The boot; empty if the kernel does not identify it.
    #[serde(default)]
    boot_id: String,
    /// CLOCK_BOOTTIME, ns: not shifted when the time of day is set, and running during a suspend.
    #[serde(default)]
    boottime: u64,
}

impl Taken {
    /// The current time.
    pub fn now() -> Self {
        let taken = SystemTime::now().duration_since(UNIX_EPOCH);
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        Self {
            taken: taken.unwrap_or_default().as_secs(),
            boot_id: boot_id.unwrap_or_default().trim_end().to_string(),
            boottime: clock::since_boot().as_nanos() as u64,
        }
    }

    /// Returns the date in seconds since 1970. In the boot of `now`, it is calculated from the time of day of `now`,
    /// since the clock may have been set in between. `None` if the clock had never been set.
    pub fn date(&self, now: &Self) -> Option<u64> {
        let age = now.since(self);
        let by_uptime = age.map(|age| now.taken.saturating_sub(age.as_secs()));
        // Both times are in whole seconds.
        let date = by_uptime.filter(|date| date.abs_diff(self.taken) > 2);
        let date = date.unwrap_or(self.taken);
        (date >= FIRST.as_secs()).then_some(date)
    }

    /// Returns the time since `earlier`; `None` if that was in another boot, or if the boot is unknown.
    fn since(&self, earlier: &Self) -> Option<Duration> {
        (!self.boot_id.is_empty() && self.boot_id == earlier.boot_id)
            .then(|| Duration::from_nanos(self.boottime.saturating_sub(earlier.boottime)))
    }
}

impl Captures {
    /// Opens the directory, creating it if missing, and removes partial captures of recorders that no longer run.
    pub fn open(directory: &Path) -> Result<Self> {
        let directory = make_private(directory, "choose another place with -o")?;
        for entry in fs::read_dir(&directory)?.flatten() {
            let name = entry.file_name();
            if name.to_string_lossy().starts_with(PARTIAL) && owner_is_gone(&name.to_string_lossy())
            {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let lock = directory.join(".lock");
        open_lock(&lock)?;
        Ok(Self { directory, lock })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Creates a directory for an unfinished capture, removed when dropped.
    pub fn partial(&self) -> Result<Partial> {
        let path = self
            .directory
            .join(format!("{PARTIAL}{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| path.display().to_string())?;
        Ok(Partial { path })
    }

    /// Locks the directory: until the returned file is dropped, no other recorder numbers, completes or removes
    /// captures here.
    pub fn alone(&self) -> Result<File> {
        let file = open_lock(&self.lock)?;
        let locked = file.lock();
        locked.with_context(|| self.lock.display().to_string())?;
        Ok(file)
    }

    /// Reserves the next number for a capture. The caller must hold the lock of [`Captures::alone`].
    pub fn number(&self, partial: &mut Partial) -> Result<u64> {
        let number = self.next_number()?;
        let pid = std::process::id();
        let path = self.directory.join(format!("{PARTIAL}{pid}-{number:04}"));
        fs::rename(&partial.path, &path).with_context(|| path.display().to_string())?;
        partial.path = path;
        Ok(number)
    }

    /// Takes a snapshot; the capture has no number yet.
    pub fn snapshot(&self, session: &Session) -> Result<Partial> {
        let partial = self.partial()?;
        session.snapshot(&partial.path.join("trace"))?;
        Ok(partial)
    }

    /// Renames a complete capture to its number. Takes the lock of [`Captures::alone`], which the caller must not hold.
    /// Another recorder that adds up sizes under that lock thus finds the capture by its old or its new name.
    pub fn keep(&self, partial: Partial, number: u64) -> Result<PathBuf> {
        // Without the lock, only a sum of sizes may be wrong, which must not cost the capture.
        let _alone = self.alone().ok();
        let path = self.place(number);
        fs::rename(&partial.path, &path).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Path of the capture with this number, once it is complete.
    pub fn place(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:04}"))
    }

    /// One more than the largest number that exists or is reserved.
    fn next_number(&self) -> Result<u64> {
        let reserved = self.reserved()?.into_iter().map(|(n, _)| n);
        let kept = numbered(&self.directory)?.into_iter().map(|(n, _)| n);
        Ok(kept.chain(reserved).max().map_or(1, |n| n + 1))
    }

    /// Size of all captures in bytes, including those that are not complete yet, but have a number. Without the lock of
    /// [`Captures::alone`], a capture that is completed or removed meanwhile may be missing.
    pub fn size(&self) -> Result<u64> {
        Ok(total(&self.complete()?) + total(&self.reserved()?))
    }

    /// Returns the complete captures, the oldest first. Any other numbered directory, such as a trace of `--events-for`
    /// or a directory of the user, counts toward no limit and is never removed.
    fn complete(&self) -> Result<Vec<(u64, PathBuf)>> {
        let mut captures = numbered(&self.directory)?;
        captures.retain(|(_, path)| path.join("alert.json").is_file());
        Ok(captures)
    }

    /// The partial captures that have a number.
    fn reserved(&self) -> Result<Vec<(u64, PathBuf)>> {
        let entries = fs::read_dir(&self.directory);
        let entries = entries.with_context(|| self.directory.display().to_string())?;
        let partial = entries.flatten().filter_map(|entry| {
            let name = entry.file_name();
            let (_, number) = name.to_str()?.strip_prefix(PARTIAL)?.split_once('-')?;
            Some((number.parse().ok()?, entry.path()))
        });
        Ok(partial.collect())
    }

    /// Keeps the size of all captures within `budget`: with `rotate`, removes the oldest complete ones, and passes the
    /// path of each to `removed`. Returns false, and removes nothing, if the size would still exceed `budget`. The
    /// caller must hold the lock of [`Captures::alone`], and have given the new capture its number, so that the number
    /// of a removed capture is not used again.
    pub fn make_room(
        &self,
        budget: u64,
        rotate: bool,
        mut removed: impl FnMut(&Path),
    ) -> Result<bool> {
        let mut all = self.size()?;
        let least = match rotate {
            true => total(&self.reserved()?),
            false => all,
        };
        if least > budget {
            return Ok(false);
        }
        for (number, path) in self.complete()? {
            if all <= budget {
                break;
            }
            let freed = size_of(&path);
            self.remove(number, &path)?;
            all = all.saturating_sub(freed);
            removed(&path);
        }
        Ok(true)
    }

    /// Removes all captures except the `keep` newest, and returns their paths. The caller must hold the lock of
    /// [`Captures::alone`].
    pub fn remove_excess(&self, keep: usize) -> Result<Vec<PathBuf>> {
        let all = self.complete()?;
        let excess = all.len().saturating_sub(keep);
        let mut removed = Vec::new();
        for (number, path) in all.into_iter().take(excess) {
            self.remove(number, &path)?;
            removed.push(path);
        }
        Ok(removed)
    }

    /// Removes the captures that were saved more than `age` ago, and returns their paths. The age of a capture of this
    /// boot is measured in time since boot: on a machine without a battery-backed clock, the time of day jumps by years
    /// once the network is up. If the modification time of such a capture is wrong, it is corrected, for later boots.
    /// The age of a capture of another boot is known only by its modification time: without `by_date`, such captures
    /// are kept. The modification time is wrong if it comes from a clock that was never set, or if it is before the
    /// date in the `alert.json` of the capture itself or of an earlier capture. Then the capture ages from now on.
    ///
    /// The caller must hold the lock of [`Captures::alone`].
    pub fn remove_older(&self, age: Duration, by_date: bool) -> Result<Vec<PathBuf>> {
        self.remove_older_at(age, by_date, &Taken::now())
    }

    fn remove_older_at(&self, age: Duration, by_date: bool, now: &Taken) -> Result<Vec<PathBuf>> {
        let today = UNIX_EPOCH + Duration::from_secs(now.taken);
        let first = UNIX_EPOCH + FIRST;
        // The earliest possible date of the captures from here on: their numbers are in the order of time.
        let mut least = first;
        let mut removed = Vec::new();
        for (number, path) in self.complete()? {
            let meta = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
            let modified = meta.modified()?;
            let saved = taken(&path);
            let date = saved.as_ref().and_then(|saved| saved.date(now));
            if let Some(date) = date.filter(|date| *date <= now.taken) {
                least = least.max(UNIX_EPOCH + Duration::from_secs(date) - CLOCK_WAS_SET);
            }
            // A date in the future, or before the earliest possible one, comes from a wrong clock, and gives no age.
            let dated = today.duration_since(modified).ok();
            let dated = dated.filter(|_| modified >= least);
            let by_uptime = saved.and_then(|saved| now.since(&saved));
            let right = match by_uptime {
                Some(old) => dated
                    .is_none_or(|date| date.abs_diff(old) > CLOCK_WAS_SET)
                    .then_some(old),
                // The clock was wrong in that boot. The capture ages from now on.
                None => (by_date && modified < least && first < today).then_some(Duration::ZERO),
            };
            if let Some(old) = right {
                File::open(&path)
                    .and_then(|directory| directory.set_modified(today - old))
                    .with_context(|| path.display().to_string())?;
            }
            let old = by_uptime.or(dated.filter(|_| by_date));
            if old.is_some_and(|old| old > age) {
                self.remove(number, &path)?;
                removed.push(path);
            }
        }
        Ok(removed)
    }

    /// Removes a complete capture, which first loses its number: if the removal is interrupted, a later recorder
    /// removes what is left, as it removes unfinished captures. Under its number, but without its alert.json, a capture
    /// would count toward no limit.
    fn remove(&self, number: u64, path: &Path) -> Result<()> {
        let pid = std::process::id();
        let rest = self.directory.join(format!("{PARTIAL}{pid}-{number:04}"));
        let removed = fs::rename(path, &rest).and_then(|()| fs::remove_dir_all(&rest));
        removed.with_context(|| path.display().to_string())
    }
}

/// A larger difference between two ages or dates means that the clock was set: saving a capture and the drift of a
/// clock account for less.
const CLOCK_WAS_SET: Duration = Duration::from_secs(3600);

/// The start of 2020, since 1970: older than any capture. A clock that was never set starts in 1970, 2000 or the like.
const FIRST: Duration = Duration::from_secs(1_577_836_800);

/// Returns the time at which a capture was taken; `None` if its `alert.json` does not record the time.
fn taken(capture: &Path) -> Option<Taken> {
    serde_json::from_str(&fs::read_to_string(capture.join("alert.json")).ok()?).ok()
}

/// Returns the numbered entries of a directory, the oldest first.
pub fn numbered(directory: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let place = || directory.display().to_string();
    let mut list = Vec::new();
    for entry in fs::read_dir(directory).with_context(place)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let digits = name.len() >= 4 && name.bytes().all(|b| b.is_ascii_digit());
        if let (true, Ok(number)) = (digits, name.parse()) {
            list.push((number, entry.path()));
        }
    }
    list.sort();
    Ok(list)
}

/// Prefix of an unfinished capture: `.partial-PID`, and `.partial-PID-NUMBER` once it has a number.
const PARTIAL: &str = ".partial-";

/// Whether the process that made this unfinished capture no longer runs. This process has not made one yet, so a
/// capture with its PID is from an earlier recorder.
fn owner_is_gone(name: &str) -> bool {
    let owner = name.strip_prefix(PARTIAL).unwrap_or("");
    let pid = owner.split('-').next().unwrap_or("");
    let is_ours = pid.parse() == Ok(std::process::id());
    !Path::new("/proc").join(pid).exists() || pid.is_empty() || is_ours
}

/// Opens the file that serves as the lock: a directory cannot be locked on NFS.
fn open_lock(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    let opened = options.custom_flags(libc::O_NOFOLLOW).open(path);
    opened.with_context(|| path.display().to_string())
}

/// An unfinished capture.
#[derive(Debug)]
pub struct Partial {
    /// Path of the directory.
    pub path: PathBuf,
}

impl Partial {
    /// Writes a file into the capture.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let opened = options.custom_flags(libc::O_NOFOLLOW).open(&path);
        let written = opened.and_then(|mut file| {
            // On a full disk, a truncated file would be left.
            let written = file.write_all(text.as_bytes());
            written.inspect_err(|_| drop(fs::remove_file(&path)))
        });
        written.with_context(|| path.display().to_string())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                crate::out::note(&format!("cannot remove {}: {e}", self.path.display()));
            }
            _ => {}
        }
    }
}

/// Size of all files of these captures, in bytes.
fn total(captures: &[(u64, PathBuf)]) -> u64 {
    captures.iter().map(|(_, path)| size_of(path)).sum()
}

/// Size of all files below `path`, in bytes.
pub fn size_of(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !meta.is_dir() {
        return meta.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|e| size_of(&e.path())).sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn captures_are_numbered_kept_whole_and_removed_oldest_first() {
        let dir = std::env::temp_dir().join(format!("lt-captures-{}", std::process::id()));
        let ours = format!(".partial-{}-0008", std::process::id());
        let gone = [".partial-4194399", ".partial-4194399-0007", &ours].map(|name| dir.join(name));
        for partial in &gone {
            fs::create_dir_all(partial).unwrap();
        }
        for other in ["notes", "0000"] {
            fs::create_dir_all(dir.join(other)).unwrap();
            fs::write(dir.join(other).join("mine"), "123").unwrap();
        }
        let captures = Captures::open(&dir).unwrap();
        assert!(gone.iter().all(|partial| !partial.exists()));
        assert_eq!(captures.next_number().unwrap(), 1);
        for n in [1, 2, 9999, 10000] {
            let partial = captures.partial().unwrap();
            partial.write("alert.json", "12345").unwrap();
            captures.keep(partial, n).unwrap();
        }
        drop(captures.partial().unwrap());
        assert_eq!(captures.next_number().unwrap(), 10001);
        assert_eq!(captures.size().unwrap(), 20);
        let make_room = |budget, rotate| {
            let mut removed = Vec::new();
            let push = |path: &Path| removed.push(path.to_path_buf());
            let made = captures.make_room(budget, rotate, push).unwrap();
            (made, removed)
        };
        let mut new = captures.partial().unwrap();
        new.write("alert.json", "1234567890").unwrap();
        assert_eq!(captures.number(&mut new).unwrap(), 10001);
        // If a capture does not fit even alone, no other capture is removed.
        assert_eq!(make_room(9, true), (false, vec![]));
        assert_eq!(make_room(29, false), (false, vec![]));
        assert_eq!(make_room(30, true), (true, vec![]));
        assert_eq!(make_room(29, true), (true, vec![dir.join("0001")]));
        drop(new);
        assert_eq!(captures.complete().unwrap().len(), 3);
        let old = SystemTime::now() - Duration::from_secs(100);
        let future = SystemTime::now() + Duration::from_secs(100);
        for (number, time) in [("0000", old), ("0002", old), ("9999", future)] {
            File::open(dir.join(number))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        let age = Duration::from_secs(50);
        let removed = captures.remove_older(age, true).unwrap();
        assert_eq!(removed, [dir.join("0002")]);
        assert_eq!(captures.complete().unwrap().len(), 2);
        assert!(dir.join("notes/mine").exists() && dir.join("0000/mine").exists());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_capture_that_replaces_all_others_has_a_number_of_its_own() {
        let dir = scratch("rotated");
        let captures = Captures::open(&dir.join("captures")).unwrap();
        for number in [1, 2] {
            let mut partial = captures.partial().unwrap();
            partial.write("alert.json", "12345").unwrap();
            assert_eq!(captures.number(&mut partial).unwrap(), number);
            assert!(captures.make_room(5, true, |_| ()).unwrap());
            captures.keep(partial, number).unwrap();
        }
        assert_eq!(captures.complete().unwrap().len(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_capture_that_has_its_number_is_whole() {
        let dir = scratch("whole");
        let captures = Captures::open(&dir.join("captures")).unwrap();
        let partial = captures.partial().unwrap();
        partial.write("alert.json", "12345").unwrap();
        let kept = captures.keep(partial, 1).unwrap();
        // The capture cannot lose its number, so nothing of it is removed.
        let name = format!("{PARTIAL}{}-0001", std::process::id());
        let rest = captures.path().join(name);
        fs::create_dir(&rest).unwrap();
        fs::write(rest.join("other"), "").unwrap();
        assert!(captures.make_room(0, true, |_| ()).is_err());
        assert!(kept.join("alert.json").exists());
        fs::remove_dir_all(rest).unwrap();
        assert!(captures.make_room(0, true, |_| ()).unwrap());
        // Only the lock is left.
        assert_eq!(fs::read_dir(captures.path()).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn only_captures_count_among_those_to_keep() {
        let dir = scratch("kept");
        let captures = Captures::open(&dir.join("captures")).unwrap();
        let path = |number: &str| captures.path().join(number);
        for number in [1, 2, 9999, 10000] {
            let partial = captures.partial().unwrap();
            partial.write("alert.json", "12345").unwrap();
            captures.keep(partial, number).unwrap();
        }
        // A trace of --events-for has no alert, and a partial capture has no number of its own yet.
        fs::create_dir_all(path("20000").join("trace")).unwrap();
        let partial = captures.partial().unwrap();
        assert!(captures.remove_excess(4).unwrap().is_empty());
        let removed = captures.remove_excess(2).unwrap();
        assert_eq!(removed, [path("0001"), path("0002")]);
        let left = captures.complete().unwrap();
        let left: Vec<u64> = left.into_iter().map(|(number, _)| number).collect();
        assert_eq!(left, [9999, 10000]);
        assert!(path("20000/trace").exists() && partial.path.exists());
        drop(partial);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn recorders_that_share_a_directory_give_each_capture_a_number_of_its_own() {
        let dir = scratch("shared");
        let mine = Captures::open(&dir.join("captures")).unwrap();
        // Another recorder: another process ID, and another open file.
        let init = dir.join("captures/.partial-1");
        let theirs = Captures::open(&dir.join("captures")).unwrap();
        let (mut partial, alone) = (mine.partial().unwrap(), mine.alone().unwrap());
        assert!(open_lock(&theirs.lock).unwrap().try_lock().is_err());
        partial.write("alert.json", "12345").unwrap();
        assert_eq!(mine.number(&mut partial).unwrap(), 1);
        drop(alone);
        assert!(open_lock(&theirs.lock).unwrap().try_lock().is_ok());
        fs::create_dir(&init).unwrap();
        let mut other = Partial { path: init };
        assert_eq!(theirs.number(&mut other).unwrap(), 2);
        assert_eq!(
            theirs.size().unwrap(),
            size_of(&partial.path) + size_of(&other.path)
        );
        assert!(theirs.keep(other, 2).unwrap().ends_with("0002"));
        // While another recorder adds up sizes, the capture keeps its name.
        let alone = theirs.alone().unwrap();
        let size = theirs.size().unwrap();
        let mine = &mine;
        std::thread::scope(|scope| {
            let (thread, threads) = std::sync::mpsc::channel();
            let keeping = scope.spawn(move || {
                let own = fs::read_link("/proc/thread-self").unwrap();
                thread.send(own).unwrap();
                mine.keep(partial, 1).unwrap()
            });
            let own = threads.recv().unwrap();
            let stat = Path::new("/proc").join(own).join("stat");
            let sleeps = || {
                let stat = fs::read_to_string(&stat).unwrap_or_default();
                stat.rsplit_once(") ")
                    .is_some_and(|(_, state)| state.starts_with('S'))
            };
            while !sleeps() && !keeping.is_finished() {
                std::thread::yield_now();
            }
            assert!(!keeping.is_finished());
            assert_eq!(theirs.size().unwrap(), size);
            drop(alone);
            assert!(keeping.join().unwrap().ends_with("0001"));
        });
        assert_eq!(mine.next_number().unwrap(), 3);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_capture_of_this_boot_ages_by_the_time_since_boot() {
        const DAY: Duration = Duration::from_secs(86_400);
        let dir = scratch("ages");
        let captures = Captures::open(&dir.join("captures")).unwrap();
        let at = |boot: &str, days: u32| Taken {
            taken: 1_800_000_000,
            boot_id: boot.to_string(),
            boottime: (days * DAY).as_nanos() as u64,
        };
        // The ninth day of a boot. The clock was set meanwhile, so by their dates the captures are too old.
        let today = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let year_ago = today - 365 * DAY;
        let old = Taken {
            taken: 1_800_000_000 - 365 * DAY.as_secs(),
            ..at("other", 8)
        };
        for (number, saved, modified) in [
            (1, old, year_ago),
            (2, at("other", 8), UNIX_EPOCH + DAY),
            (3, at("this", 1), year_ago),
            (4, at("this", 8), year_ago),
        ] {
            let partial = captures.partial().unwrap();
            let text = serde_json::to_string(&saved).unwrap();
            partial.write("alert.json", &text).unwrap();
            let opened = File::open(captures.keep(partial, number).unwrap()).unwrap();
            opened.set_modified(modified).unwrap();
        }
        let path = |number: &str| dir.join("captures").join(number);
        let remove = |by_date| {
            let removed = captures.remove_older_at(5 * DAY, by_date, &at("this", 9));
            removed.unwrap()
        };
        let modified = |number| fs::metadata(path(number)).unwrap().modified().unwrap();
        // Without dates, only captures of this boot have an age.
        assert_eq!(remove(false), [path("0003")]);
        assert_eq!(modified("0004"), today - DAY);
        assert_eq!(remove(true), [path("0001")]);
        // The clock was never set in the boot of this capture, so it ages from now on.
        assert_eq!(modified("0002"), today);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_capture_is_not_older_than_what_was_captured_before() {
        const DAY: u64 = 86_400;
        const TODAY: u64 = 1_800_000_000;
        let dir = scratch("order");
        let captures = Captures::open(&dir.join("captures")).unwrap();
        let at = |boot: &str, taken| Taken {
            taken,
            boot_id: boot.to_string(),
            boottime: 0,
        };
        let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let (recent, old) = (TODAY - 10 * DAY, TODAY - 2000 * DAY);
        for (number, taken, modified) in [
            (1, recent, recent),
            // The clock was wrong.
            (2, old, old),
            // A later clock, which was wrong, has replaced the date.
            (3, recent, old),
            // A damaged file.
            (4, u64::MAX, recent + DAY),
        ] {
            let partial = captures.partial().unwrap();
            let text = serde_json::to_string(&at("other", taken)).unwrap();
            partial.write("alert.json", &text).unwrap();
            let opened = File::open(captures.keep(partial, number).unwrap()).unwrap();
            opened.set_modified(time(modified)).unwrap();
        }
        let path = |number: &str| dir.join("captures").join(number);
        let remove = |today| {
            let age = Duration::from_secs(5 * DAY);
            let removed = captures.remove_older_at(age, true, &at("this", today));
            removed.unwrap()
        };
        let modified = |number| fs::metadata(path(number)).unwrap().modified().unwrap();
        // By this clock, all captures come from the future.
        assert!(remove(old - DAY).is_empty());
        assert_eq!(modified("0002"), time(old));
        assert_eq!(remove(TODAY), [path("0001"), path("0004")]);
        for number in ["0002", "0003"] {
            assert_eq!(modified(number), time(TODAY));
        }
        let later = TODAY + 6 * DAY;
        assert_eq!(remove(later), [path("0002"), path("0003")]);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_date_of_a_capture_of_this_boot_follows_the_present_time_of_day() {
        let at = |boot: &str, taken, seconds: u64| Taken {
            taken,
            boot_id: boot.to_string(),
            boottime: seconds * 1_000_000_000,
        };
        // The clock was set at 60 s.
        let now = at("this", 1_800_000_100, 100);
        let date = |boot, taken, seconds| at(boot, taken, seconds).date(&now);
        assert_eq!(date("this", 20, 20), Some(1_800_000_020));
        assert_eq!(date("this", 1_800_000_071, 70), Some(1_800_000_071));
        assert_eq!(date("other", 20, 20), None);
        assert_eq!(date("other", 1_700_000_000, 20), Some(1_700_000_000));
        // Earlier versions saved neither the boot nor the time since boot.
        let old: Taken = serde_json::from_str(r#"{"taken":1700000000}"#).unwrap();
        assert_eq!(old.date(&now), Some(1_700_000_000));
    }

    /// Creates a directory in the system's temporary directory, which is sticky.
    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("lt-{name}-{}", std::process::id()));
        DirBuilder::new().mode(0o755).create(&dir).unwrap();
        dir.canonicalize().unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn refusal(path: &Path) -> String {
        format!("{:#}", Captures::open(path).unwrap_err())
    }

    #[test]
    fn captures_are_for_their_owner_alone() {
        let dir = scratch("private");
        let captures = Captures::open(&dir.join("a/b")).unwrap();
        assert_eq!(captures.path(), dir.join("a/b"));
        assert_eq!(
            (mode(&dir.join("a")), mode(&dir.join("a/b"))),
            (0o700, 0o700)
        );
        let partial = captures.partial().unwrap();
        partial.write("alert.json", "x").unwrap();
        assert_eq!(mode(&partial.path), 0o700);
        assert_eq!(mode(&partial.path.join("alert.json")), 0o600);
        // An existing link is not followed.
        std::os::unix::fs::symlink(dir.join("target"), partial.path.join("explanation.txt"))
            .unwrap();
        assert!(partial.write("explanation.txt", "x").is_err());
        assert!(!dir.join("target").exists());
        drop(partial);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_place_that_others_can_change_is_refused() {
        let dir = scratch("others");
        let chmod = |path: &Path, mode: u32| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let inside = dir.join("inside");
        fs::create_dir(&inside).unwrap();
        for bad in [0o777, 0o1777, 0o775] {
            chmod(&inside, bad);
            let refused = refusal(&inside);
            assert!(refused.contains("others could put"), "{bad:o}");
            assert!(refused.contains("another place with -o"), "{refused}");
        }
        chmod(&inside, 0o755);
        assert!(Captures::open(&inside).is_ok());
        std::os::unix::fs::symlink(&inside, dir.join("link")).unwrap();
        assert!(refusal(&dir.join("link")).contains("a link"));
        fs::write(dir.join("file"), "").unwrap();
        assert!(refusal(&dir.join("file")).contains("not a directory"));
        // In a parent directory that anyone can write to, anyone can rename entries, unless it is sticky.
        chmod(&dir, 0o777);
        assert!(refusal(&inside).contains("could replace it"));
        chmod(&dir, 0o1777);
        assert!(Captures::open(&inside).is_ok());
        chmod(&dir, 0o755);
        if nix::unistd::geteuid().is_root() {
            // Members of the group can do this too; members of the group root are trusted.
            chmod(&dir, 0o775);
            assert!(Captures::open(&inside).is_ok());
            std::os::unix::fs::chown(&dir, None, Some(65534)).unwrap();
            chmod(&dir, 0o775);
            let refused = refusal(&inside);
            assert!(refused.contains("could replace it"), "{refused}");
            assert!(refused.contains("group 65534 with mode 0775"), "{refused}");
            chmod(&dir, 0o1775);
            assert!(Captures::open(&inside).is_ok());
            chmod(&dir, 0o755);
            std::os::unix::fs::chown(&inside, Some(65534), None).unwrap();
            assert!(refusal(&inside).contains("of user 65534"));
            assert!(refusal(&inside.join("deeper")).contains("could replace it"));
            assert!(
                !inside.join("deeper").exists(),
                "made in a foreign directory"
            );
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
