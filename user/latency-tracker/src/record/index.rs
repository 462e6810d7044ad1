// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The index of captures, from which `export` takes its exemplars if it may not read the captures.
//!
//! ```text
//! {"capture":7,"taken":1796083200,"instance":"slow_disk","alerts":[{"delay":10485762},{"delay":41943040}]}
//! ```
//!
//! Each line is the `alert.json` of a capture, reduced to four fields. The group of the module's files may read the
//! index: it can read the same times, instances and delays in those files, and the number means nothing without the
//! captures, which remain accessible to their owner only.
//!
//! The index lists the newest captures in the default directory since boot. Like the counters of the instances, it
//! does not survive a reboot. It is replaced as a whole, by a rename, so a reader never sees half of it. This happens
//! under the lock of the captures, so recorders that share the directory lose no line.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lt_common::capture::Captures;
use lt_common::out::note;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// Path of the index of the captures in [`super::CAPTURES`].
pub(crate) const INDEX: &str = "/run/latency-tracker/shared/captures";

/// Maximum number of captures listed: as many as `export` considers.
const MOST: usize = 256;

#[derive(Debug, Deserialize, Serialize)]
struct Entry {
    capture: u64,
    /// Seconds since 1970.
    taken: u64,
    instance: String,
    alerts: Vec<Delay>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Delay {
    /// In ns.
    delay: u64,
}

#[derive(Debug)]
pub(super) struct Index {
    path: PathBuf,
    /// A file of the module, whose group may read the index.
    alerts: PathBuf,
    /// Whether the last attempt to write failed, to report a failure once.
    failed: bool,
}

impl Index {
    pub(super) fn new(alerts: PathBuf) -> Self {
        Self {
            path: INDEX.into(),
            alerts,
            failed: false,
        }
    }

    /// Lists a capture that was saved. A failure is reported, and costs only exemplars.
    pub(super) fn add(&mut self, captures: &Captures, saved: &Path) {
        let written = self.write(captures, saved);
        if let (Err(error), false) = (&written, self.failed) {
            let path = self.path.display();
            note(&format!(
                "{path} not written, so `export` may have no exemplars: {error:#}"
            ));
        }
        self.failed = written.is_err();
    }

    fn write(&self, captures: &Captures, saved: &Path) -> Result<()> {
        let shown = fs::metadata(&self.alerts);
        let shown = shown.with_context(|| self.alerts.display().to_string())?;
        let group = shown.gid();
        let directory = self.path.parent().context("no directory")?;
        let new = serde_json::from_str(&fs::read_to_string(saved.join("alert.json"))?)?;
        let _alone = captures.alone()?;
        let is_kept = |number: u64| captures.path().join(format!("{number:04}")).exists();
        let old = fs::read_to_string(&self.path).unwrap_or_default();
        fs::create_dir_all(directory)?;
        // Only the owner can read the file until it has its group.
        let mut file = NamedTempFile::new_in(directory)?;
        file.write_all(merge(&old, new, is_kept)?.as_bytes())?;
        fchown(file.as_file(), None, Some(group))
            .with_context(|| format!("cannot give it to group {group}"))?;
        let mode = Permissions::from_mode(0o640);
        file.as_file().set_permissions(mode)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

/// Returns the text of the index with a new entry, and without the captures that were removed.
fn merge(old: &str, mut new: Entry, is_kept: impl Fn(u64) -> bool) -> Result<String> {
    // One delay for each bucket of `export` is enough: the bounds of the buckets are powers of two.
    new.alerts.sort_unstable_by_key(|a| a.delay);
    new.alerts.dedup_by_key(|a| a.delay.checked_ilog2());
    let lines = old.lines();
    let mut entries: Vec<Entry> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    // A number may be used again once all captures have been removed.
    entries.retain(|entry| entry.capture != new.capture && is_kept(entry.capture));
    entries.push(new);
    entries.sort_by_key(|entry| entry.capture);
    let mut text = String::new();
    for entry in entries.iter().skip(entries.len().saturating_sub(MOST)) {
        text += &serde_json::to_string(entry)?;
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Saves a capture with these delays, and with fields that must not be in the index.
    fn save(captures: &Captures, delays: &[u64]) -> PathBuf {
        let mut partial = captures.partial().unwrap();
        let number = captures.number(&mut partial).unwrap();
        let alert = |delay: &u64| json!({"seq": 1, "delay": delay, "comm": "secret"});
        let alerts: Vec<Value> = delays.iter().map(alert).collect();
        let saved = json!({
            "capture": number, "taken": 17, "boot_id": "secret",
            "instance": "slow", "alerts": alerts
        });
        partial.write("alert.json", &saved.to_string()).unwrap();
        captures.keep(partial, number).unwrap()
    }

    /// The captures of the index, with their delays.
    fn listed(text: &str) -> Vec<(u64, Vec<u64>)> {
        let entry = |line| {
            let entry: Entry = serde_json::from_str(line).unwrap();
            assert_eq!((entry.taken, entry.instance.as_str()), (17, "slow"));
            let delays: Vec<u64> = entry.alerts.iter().map(|a| a.delay).collect();
            (entry.capture, delays)
        };
        text.lines().map(entry).collect()
    }

    #[test]
    fn the_index_has_what_its_group_may_read_and_no_capture_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let alerts = dir.path().join("alerts");
        fs::write(&alerts, "").unwrap();
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(&alerts, None, Some(65534)).unwrap();
        }
        let mut index = Index::new(alerts);
        index.path = dir.path().join("shared/captures");
        let captures = Captures::open(&dir.path().join("captures")).unwrap();
        let first = save(&captures, &[5000, 4096, 1500, 1024]);
        index.add(&captures, &first);
        assert!(!index.failed);
        let text = || fs::read_to_string(&index.path).unwrap();
        assert_eq!(listed(&text()), [(1, vec![1024, 4096])]);
        assert!(!text().contains("secret"), "{}", text());
        let of = |path: &Path| fs::metadata(path).unwrap();
        assert_eq!(of(&index.path).mode() & 0o7777, 0o640);
        assert_eq!(of(&index.path).gid(), of(&index.alerts).gid());
        // Nothing else is left in the directory.
        let files = fs::read_dir(dir.path().join("shared")).unwrap();
        assert_eq!(files.count(), 1);

        let second = save(&captures, &[0]);
        index.write(&captures, &second).unwrap();
        let both = [(1, vec![1024, 4096]), (2, vec![0])];
        assert_eq!(listed(&text()), both);
        fs::remove_dir_all(first).unwrap();
        index.write(&captures, &second).unwrap();
        assert_eq!(listed(&text()), both[1..]);
    }

    #[test]
    fn the_newest_captures_are_listed() {
        let entry = |capture| Entry {
            capture,
            taken: 17,
            instance: "slow".into(),
            alerts: Vec::new(),
        };
        let line = |capture| serde_json::to_string(&entry(capture)).unwrap() + "\n";
        let full: String = (1..=256).map(line).collect();
        let text = merge(&full, entry(300), |_| true).unwrap();
        assert_eq!(text.lines().count(), MOST);
        assert!(text.starts_with(&line(2)) && text.ends_with(&line(300)));
        // A recorder that got its number first may save its capture last.
        let damaged = line(1) + "damaged\n" + &line(3);
        let text = merge(&damaged, entry(2), |_| true).unwrap();
        assert_eq!(text, line(1) + &line(2) + &line(3));
    }

    #[test]
    fn a_failure_is_remembered_and_costs_no_capture() {
        let dir = tempfile::tempdir().unwrap();
        let captures = Captures::open(&dir.path().join("captures")).unwrap();
        let saved = save(&captures, &[5000]);
        let mut index = Index::new(dir.path().join("missing"));
        index.path = dir.path().join("shared/captures");
        index.add(&captures, &saved);
        assert!(index.failed && !index.path.exists() && saved.exists());
        index.alerts = saved.join("alert.json");
        index.add(&captures, &saved);
        assert!(!index.failed && index.path.exists());
    }
}
