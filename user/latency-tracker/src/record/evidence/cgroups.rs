// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Cgroups (version 2): their limits and counters.
//!
//! When the recorder is armed, up to [`MOST`] cgroups are read. Later, only cgroups that have or had a limit, that were
//! frozen, or that contain a late task are read. A cgroup is identified by the inode of its directory, because a cgroup
//! that was removed and created again has counters that start at 0.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lt_common::clock::monotonic;
use lt_proc::evidence::{Cgroup, Counters, Task};

/// Maximum number of cgroups read when the recorder is armed.
pub(super) const MOST: usize = 4096;

/// Maximum number of reads of a cgroup that are kept: the first read, and the latest reads.
const KEPT: usize = 8;

/// Maximum number of threads of a cgroup that are listed.
const THREADS: usize = 4096;

/// Files of limits. A file that is empty or starts with `max` (`cgroup.freeze`: with `0`) sets no limit.
const LIMITS: [&str; 7] = [
    "cpu.max",
    "memory.high",
    "memory.max",
    "memory.swap.high",
    "io.max",
    "io.latency",
    "cgroup.freeze",
];

/// The visible part of the hierarchy.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// `None`: not mounted.
    mount: Option<Mount>,
    known: BTreeMap<String, Group>,
    is_cut: bool,
}

#[derive(Debug)]
struct Mount {
    on: PathBuf,
    /// Path in `/proc/TID/cgroup` of the cgroup at the mount point.
    root: String,
}

#[derive(Debug)]
struct Group {
    inode: u64,
    limits: Vec<(String, String)>,
    reads: Vec<Counters>,
}

impl Groups {
    /// Reads at most `most` cgroups, the upper levels first.
    pub(super) fn walk(root: &Path, most: usize) -> Self {
        let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
        let mut groups = Self {
            mount: mount(root, &mounts),
            ..Self::default()
        };
        let mut next = VecDeque::from(["/".to_string()]);
        while let Some(path) = next.pop_front() {
            let Some(directory) = groups.directory(&path) else {
                break;
            };
            if groups.known.len() >= most {
                groups.is_cut = true;
                break;
            }
            groups.read(&path);
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string();
                if let (true, Ok(name)) = (entry.file_type().is_ok_and(|t| t.is_dir()), name) {
                    next.push_back(format!("{}/{name}", path.trim_end_matches('/')));
                }
            }
        }
        groups
    }

    /// Whether some cgroups were not read.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Number of cgroups with a limit.
    pub(super) fn limited(&self) -> usize {
        self.known
            .values()
            .filter(|group| !group.limits.is_empty())
            .count()
    }

    /// Converts a path of `/proc/TID/cgroup` to a path below the mount point; `None` if the cgroup is elsewhere.
    pub(super) fn below_mount(&self, path: &str) -> Option<String> {
        let root = self.mount.as_ref()?.root.trim_end_matches('/');
        let below = path.strip_prefix(root)?;
        let below = match below {
            "" => "/",
            below if below.starts_with('/') => below,
            _ => return None,
        };
        // False if the cgroup is outside the namespace, or was removed.
        let is_there = !below.split('/').any(|name| name == "..")
            && self.directory(below).is_some_and(|d| d.is_dir());
        is_there.then(|| below.to_string())
    }

    /// Reads these cgroups.
    pub(super) fn read_again(&mut self, paths: &[String]) {
        for path in paths {
            self.read(path);
        }
    }

    /// Reads all cgroups that have a limit, or once had one or were frozen.
    pub(super) fn read_limited(&mut self) {
        let limited = self.known.iter().filter(|(_, group)| group.is_evidence());
        let limited: Vec<String> = limited.map(|(path, _)| path.clone()).collect();
        self.read_again(&limited);
    }

    /// The cgroups whose quota was used up since the last read before `start`, according to their current counters.
    pub(super) fn throttled(&self, start: u64) -> Vec<String> {
        let is_throttled = |(path, group): &(&String, &Group)| {
            let mut limits = group.limits.iter();
            let before = group.reads.iter().rfind(|read| read.end <= start)?;
            limits.find(|(file, _)| file == "cpu.max")?;
            let now = counters(&self.directory(path)?);
            // A cgroup that had no counter had no limit either.
            let grew = |before: Option<u64>, now: Option<u64>| before < now && now != Some(0);
            let has_more = grew(before.nr_throttled, now.nr_throttled);
            Some(has_more || grew(before.throttled_usec, now.throttled_usec))
        };
        let all = self.known.iter();
        let all = all.filter(|of| is_throttled(of) == Some(true));
        all.map(|(path, _)| path.clone()).collect()
    }

    /// The threads in that cgroup and its descendants.
    fn threads(&self, path: &str) -> Vec<i32> {
        let mut next: Vec<PathBuf> = self.directory(path).into_iter().collect();
        let mut threads = Vec::new();
        while let Some(directory) = next.pop()
            && threads.len() < THREADS
        {
            let text = fs::read_to_string(directory.join("cgroup.threads")).unwrap_or_default();
            threads.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
            next.extend(below.map(|entry| entry.path()));
        }
        threads.truncate(THREADS);
        threads
    }

    /// The evidence about the cgroups `paths`, with the threads of the cgroups in `throttled`. The reads start with the
    /// last read before `start`, or with the first read if all reads are later.
    pub(super) fn evidence(
        &self,
        paths: &[String],
        throttled: &[String],
        start: u64,
    ) -> Vec<Cgroup> {
        let cgroup = |path: &String| {
            let group = self.known.get(path).filter(|group| group.is_evidence())?;
            let before = group.reads.iter().rposition(|read| read.end <= start);
            Some(Cgroup {
                path: path.clone(),
                limits: group.limits.clone(),
                threads: match throttled.contains(path) {
                    true => self.threads(path),
                    false => Vec::new(),
                },
                reads: group.reads[before.unwrap_or(0)..].to_vec(),
            })
        };
        paths.iter().filter_map(cgroup).collect()
    }

    fn directory(&self, path: &str) -> Option<PathBuf> {
        let mount = self.mount.as_ref()?;
        Some(mount.on.join(path.trim_start_matches('/')))
    }

    /// Reads a cgroup, and forgets it if it was removed.
    fn read(&mut self, path: &str) {
        let directory = self.directory(path);
        let inode = directory
            .as_ref()
            .and_then(|directory| Some(fs::metadata(directory).ok()?.ino()));
        let (Some(directory), Some(inode)) = (directory, inode) else {
            self.known.remove(path);
            return;
        };
        let group = self.known.entry(path.to_string()).or_insert(Group {
            inode,
            limits: Vec::new(),
            reads: Vec::new(),
        });
        if group.inode != inode {
            group.inode = inode;
            group.reads.clear();
        }
        group.limits = limits(&directory);
        // In a container, `/` is not the true root: invisible ancestors may limit it. All its counters are read, so
        // that it is also listed.
        let of_interest = path == "/" || group.is_evidence();
        let frozen = freezer(&directory);
        group.reads.push(match frozen.frozen_usec {
            None | Some(0) if !of_interest => frozen,
            _ => counters(&directory),
        });
        if group.reads.len() > KEPT {
            group.reads.remove(1);
        }
    }
}

impl Group {
    /// Whether the cgroup has a limit, earlier had one or was frozen, or is the root in a container. For all other
    /// cgroups except the true root, only `frozen_usec` was read.
    fn is_evidence(&self) -> bool {
        !self.limits.is_empty() || self.reads.iter().any(|read| read.frozen.is_some())
    }
}

/// The cgroups of `tasks` and the cgroups `others`, with all ancestors, without duplicates.
pub(super) fn chain(tasks: &[Task], others: &[String]) -> Vec<String> {
    let mut paths = Vec::new();
    let of_tasks = tasks.iter().filter_map(|task| task.cgroup.as_deref());
    for path in of_tasks.chain(others.iter().map(String::as_str)) {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
        let ends = ends.chain([path.len()]);
        paths.push("/".to_string());
        paths.extend(ends.map(|end| path[..end].to_string()));
    }
    paths.sort();
    paths.dedup();
    paths
}

/// Finds the mount point of the hierarchy in the text of `mountinfo`: `36 35 0:26 /root /mount/point options - cgroup2
/// ...`. Prefers a mount of the whole hierarchy.
fn mount(root: &Path, mounts: &str) -> Option<Mount> {
    let mut found: Option<Mount> = None;
    for line in mounts.lines() {
        let Some((mount, kind)) = line.split_once(" - ") else {
            continue;
        };
        let mut words = mount.split(' ').skip(3);
        let (Some(of), Some(on)) = (words.next(), words.next()) else {
            continue;
        };
        let is_better = found.as_ref().is_none_or(|f| f.root != "/" && of == "/");
        if kind.split(' ').next() == Some("cgroup2") && is_better {
            let on = on.replace("\\040", " ");
            found = Some(Mount {
                on: root.join(on.trim_start_matches('/')),
                root: of.replace("\\040", " "),
            });
        }
    }
    found
}

/// The limits in effect.
fn limits(directory: &Path) -> Vec<(String, String)> {
    let limit = |name: &&str| {
        let text = fs::read_to_string(directory.join(name)).ok()?;
        let text = text.trim();
        let unlimited = if *name == "cgroup.freeze" { "0" } else { "max" };
        let is_set = text
            .split_whitespace()
            .next()
            .is_some_and(|word| word != unlimited);
        is_set.then(|| (name.to_string(), text.to_string()))
    };
    LIMITS.iter().filter_map(limit).collect()
}

fn counters(directory: &Path) -> Counters {
    let mut counters = freezer(directory);
    let cpu = directory.join("cpu.stat");
    counters.nr_throttled = number(&cpu, "nr_throttled");
    counters.throttled_usec = number(&cpu, "throttled_usec");
    let memory = directory.join("memory.events.local");
    counters.memory_high = number(&memory, "high");
    counters.memory_max = number(&memory, "max");
    counters.frozen = number(&directory.join("cgroup.events"), "frozen").map(|n| n != 0);
    counters.end = monotonic();
    counters
}

/// Reads how long the cgroup was frozen.
fn freezer(directory: &Path) -> Counters {
    Counters {
        begin: monotonic(),
        frozen_usec: number(&directory.join("cgroup.stat.local"), "frozen_usec"),
        end: monotonic(),
        ..Counters::default()
    }
}

/// The number after `key` in a file of lines such as `nr_throttled 7`.
fn number(file: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
}
