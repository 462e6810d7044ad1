// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A separate cgroup for a command: all descendants are in it from their first instruction, regardless of process
//! groups, sessions and parents.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::out::note;
use anyhow::{Context, Result};

/// The cgroup; removed when dropped.
#[derive(Debug)]
pub struct Group {
    /// Name, as `cgroup=` takes it.
    name: String,
    directory: PathBuf,
    /// The parent: the cgroup of this process.
    above: PathBuf,
}

impl Group {
    /// Creates the cgroup below the cgroup of this process, so that the command has the same limits as without it. The
    /// name contains the subcommand.
    pub fn create(subcommand: &str) -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::"));
        let own = own.context("no cgroups of version 2 in this kernel")?;
        let above = place(&mounts, own).context("cgroup2 is not mounted; see `man cgroups`")?;
        let last = format!("latency-tracker-{subcommand}-{}", std::process::id());
        let directory = above.join(&last);
        fs::create_dir(&directory).with_context(|| directory.display().to_string())?;
        Ok(Self {
            name: format!("{}/{last}", own.trim_end_matches('/')),
            directory,
            above,
        })
    }

    /// Directory of the cgroup.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Name of the cgroup, for a filter.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves a process into the cgroup.
    pub fn adopt(&self, pid: u32) -> Result<()> {
        move_to(&self.directory, pid)
    }

    /// Starts a command in the cgroup. This process enters it for the duration of the fork, so that the child inherits
    /// it.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        enter(&self.directory)?;
        let child = command.spawn();
        enter(&self.above)?;
        child.with_context(|| format!("cannot run {}", command.get_program().display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

/// Removes a cgroup. Processes that the command left running continue in the parent cgroup.
pub fn remove(directory: &Path) {
    let left = fs::read_to_string(directory.join(PROCS)).unwrap_or_default();
    if let Some(above) = directory.parent() {
        for pid in left.lines() {
            let _ = fs::write(above.join(PROCS), pid);
        }
    }
    if let Err(error) = fs::remove_dir(directory) {
        note(&format!("{} is left behind: {error}", directory.display()));
    }
}

const PROCS: &str = "cgroup.procs";

/// Moves this process into a cgroup.
fn enter(group: &Path) -> Result<()> {
    move_to(group, std::process::id())
}

fn move_to(group: &Path, pid: u32) -> Result<()> {
    let file = group.join(PROCS);
    fs::write(&file, pid.to_string()).with_context(|| file.display().to_string())
}

/// Returns the path of the cgroup with this inode number, as in /proc/PID/cgroup. `None` if it was removed, or is not
/// visible here.
pub fn path_of(number: u64) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    find(&place(&mounts, "/")?, number)
}

/// Returns the path, below `root`, of the directory with this inode number.
fn find(root: &Path, number: u64) -> Option<String> {
    let mut next = vec![root.to_path_buf()];
    while let Some(directory) = next.pop() {
        if fs::metadata(&directory).is_ok_and(|found| found.ino() == number) {
            let below = directory.strip_prefix(root).ok()?;
            return Some(format!("/{}", below.display()));
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        next.extend(below.map(|entry| entry.path()));
    }
    None
}

/// The directory of the cgroup that /proc/PID/cgroup calls `own`, from the text of mountinfo.
fn place(mountinfo: &str, own: &str) -> Option<PathBuf> {
    let mount = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, on) = (words.next()?, words.next()?);
        let below = own.strip_prefix(root.trim_end_matches('/'))?;
        filesystem
            .starts_with("cgroup2 ")
            .then(|| Path::new(on).join(below.trim_start_matches('/')))
    };
    mountinfo.lines().find_map(mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_by_its_number() {
        let root = std::env::temp_dir().join(format!("lt-common-group-{}", std::process::id()));
        fs::create_dir_all(root.join("a.slice/b")).unwrap();
        let number = |below: &str| fs::metadata(root.join(below)).unwrap().ino();
        assert_eq!(find(&root, number("")).unwrap(), "/");
        assert_eq!(find(&root, number("a.slice/b")).unwrap(), "/a.slice/b");
        let gone = number("a.slice/b");
        fs::remove_dir(root.join("a.slice/b")).unwrap();
        assert_eq!(find(&root, gone), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_directory_of_a_cgroup_is_found_where_it_is_mounted() {
        let mounts = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let place = |own| place(mounts, own);
        assert_eq!(place("/"), Some("/sys/fs/cgroup".into()));
        assert_eq!(place("/a/b"), Some("/sys/fs/cgroup/a/b".into()));
        let inside = "30 25 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            super::place(inside, "/a/b"),
            Some("/sys/fs/cgroup/b".into())
        );
        assert_eq!(super::place(inside, "/b"), None);
        assert_eq!(super::place("", "/"), None);
    }
}
