// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Cgroups of version 2: their names, their numbers, and whether they exist.
//!
//! An instance that is limited to a cgroup keeps the number of that cgroup. No later cgroup gets this number. When a
//! systemd unit or a container restarts, its cgroup is removed, and created again with another number: no task passes
//! the filter of the instance any longer.

mod followed;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use lt_proc::Instance;

pub use self::followed::{Change, Followed};

/// Returns the path of the cgroup with this number, as in /proc/PID/cgroup. `None` if it was removed, or is not
/// visible here.
pub fn path_of(number: u64) -> Option<String> {
    path_below(&root()?, number)
}

fn path_below(root: &Path, number: u64) -> Option<String> {
    let directory = directory_of(root, number).ok()??;
    let below = directory.strip_prefix(root).ok()?;
    Some(format!("/{}", below.display()))
}

/// Returns the directory of the cgroup at this path, whether or not it exists. `None` if it is not visible here, or if
/// this is not the path of a cgroup.
pub fn directory(path: &str) -> Option<PathBuf> {
    directory_below(&root()?, path)
}

fn directory_below(root: &Path, path: &str) -> Option<PathBuf> {
    let below = path.strip_prefix('/')?.trim_start_matches('/');
    // The inode of a directory elsewhere may have the number of some cgroup.
    let leads_out = below.split('/').any(|part| part == "..");
    (!leads_out).then(|| root.join(below))
}

/// Returns the number of the cgroup at this path. `None` if there is none, or if it is not visible here.
pub fn number(path: &str) -> Option<u64> {
    number_of(&directory(path)?)
}

/// Returns the number of the cgroup in this directory: the number of its inode. `None` if there is no cgroup.
fn number_of(directory: &Path) -> Option<u64> {
    let found = fs::metadata(directory).ok()?;
    found.is_dir().then(|| found.ino())
}

/// Returns the directory of the cgroup with this number, `root` or below it. Fails if it is not found and a directory
/// could not be read.
fn directory_of(root: &Path, number: u64) -> io::Result<Option<PathBuf>> {
    let is_group = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut unread = None;
    let mut next = vec![root.to_path_buf()];
    while let Some(directory) = next.pop() {
        if number_of(&directory) == Some(number) {
            return Ok(Some(directory));
        }
        match fs::read_dir(directory) {
            Ok(entries) => {
                let below = entries.flatten().filter(is_group);
                next.extend(below.map(|entry| entry.path()));
            }
            // The directory has been removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => unread = Some(error),
        }
    }
    unread.map_or(Ok(None), Err)
}

/// The directory of the root cgroup. `None` if it is not visible here.
fn root() -> Option<PathBuf> {
    mounted(&fs::read_to_string("/proc/self/mountinfo").ok()?)
}

/// Finds instances that are limited to a cgroup that does not exist.
#[derive(Debug)]
pub struct Groups {
    /// The root of all cgroups; `None` if some cgroups are not visible here.
    root: Option<PathBuf>,
    /// The directory in which a cgroup was found, by its number; `None` if it was not found.
    known: HashMap<u64, Option<PathBuf>>,
}

impl Groups {
    /// Finds the root of all cgroups.
    pub fn find() -> Self {
        Self::below(root())
    }

    fn below(root: Option<PathBuf>) -> Self {
        Self {
            // In a cgroup namespace, the root is an ordinary cgroup, which has this file.
            root: root.filter(|root| !root.join("cgroup.events").exists()),
            known: HashMap::new(),
        }
    }

    /// Returns the number of the cgroup to which this instance is limited, if that cgroup does not exist. `None` if it
    /// exists, if the instance is not limited to a cgroup, or if this cannot be determined here.
    pub fn missing(&mut self, instance: &Instance) -> Option<u64> {
        let number = instance.params.number("cgroup")?;
        let directory = match self.known.get(&number) {
            Some(known) => known.clone(),
            None => {
                let found = directory_of(self.root.as_deref()?, number).ok()?;
                self.known.insert(number, found.clone());
                found
            }
        };
        let now = directory.and_then(|directory| number_of(&directory));
        (now != Some(number)).then_some(number)
    }
}

/// Returns a clause about an instance whose cgroup is [missing](Groups::missing).
pub fn about_missing(number: u64) -> String {
    format!(
        "cgroup {number} does not exist, so no task passes the filter; a restarted unit or container has a new cgroup"
    )
}

/// Returns how to limit an instance to the new cgroup.
pub fn remedy(instance: &Instance) -> String {
    let (name, tracker) = (&instance.name, &instance.tracker);
    format!(
        "`latency-tracker start {name} {tracker} cgroup=PATH` looks up the path again, and `latency-tracker apply` \
         does so for a line of a file"
    )
}

/// The directory of the root cgroup, from the text of mountinfo.
fn mounted(mountinfo: &str) -> Option<PathBuf> {
    let mount = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, on) = (words.next()?, words.next()?);
        let is_it = root == "/" && filesystem.starts_with("cgroup2 ");
        is_it.then(|| unescaped(on))?
    };
    mountinfo.lines().find_map(mount)
}

/// Decodes a path in mountinfo, in which some characters, such as a space, are written as `\` and three octal digits.
fn unescaped(path: &str) -> Option<PathBuf> {
    let mut parts = path.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(3)?;
        bytes.push(u8::from_str_radix(code, 8).ok()?);
        bytes.extend(rest.as_bytes());
    }
    Some(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_by_its_number() {
        let root = std::env::temp_dir().join(format!("lt-common-group-{}", std::process::id()));
        fs::create_dir_all(root.join("a.slice/b")).unwrap();
        let number = |below: &str| fs::metadata(root.join(below)).unwrap().ino();
        assert_eq!(path_below(&root, number("")).unwrap(), "/");
        assert_eq!(
            path_below(&root, number("a.slice/b")).unwrap(),
            "/a.slice/b"
        );
        let gone = number("a.slice/b");
        fs::remove_dir(root.join("a.slice/b")).unwrap();
        assert_eq!(path_below(&root, gone), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_path_leads_to_a_directory_below_the_root() {
        let of = |path: &str| directory_below(Path::new("/mount"), path);
        assert_eq!(of("/"), Some("/mount".into()));
        assert_eq!(of("//a..b/c"), Some("/mount/a..b/c".into()));
        assert_eq!(of("a"), None);
        assert_eq!(of("/a/../../tmp"), None);
    }

    #[test]
    fn an_instance_is_limited_to_a_cgroup_that_exists_or_not() {
        let root = tempfile::tempdir().unwrap();
        let path = |below: &str| root.path().join(below);
        fs::create_dir_all(path("a/b")).unwrap();
        let number = number_of(&path("a/b")).unwrap();
        let of = |cgroup: &str| Instance::parse(&format!("web offcpu cgroup={cgroup}")).unwrap();
        let web = of(&number.to_string());
        let mut groups = Groups::below(Some(root.path().into()));
        assert_eq!(groups.missing(&web), None);
        assert_eq!(groups.missing(&of("all")), None);
        // Another cgroup, with another number, has the path. The old cgroup still has its inode.
        fs::rename(path("a/b"), path("old")).unwrap();
        fs::create_dir(path("a/b")).unwrap();
        assert_eq!(groups.missing(&web), Some(number));
        fs::remove_dir(path("a/b")).unwrap();
        assert_eq!(groups.missing(&web), Some(number));
        // The cgroup is found by its number, wherever it is.
        let again = || Groups::below(Some(root.path().into()));
        assert_eq!(again().missing(&web), None);
        fs::remove_dir(path("old")).unwrap();
        assert_eq!(again().missing(&web), Some(number));
        // A cgroup may be outside of what is visible here.
        fs::write(path("cgroup.events"), "populated 1\n").unwrap();
        assert_eq!(again().missing(&web), None);
        assert_eq!(Groups::below(None).missing(&web), None);
    }

    #[test]
    fn the_root_cgroup_is_found_where_it_is_mounted() {
        let mounts = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(mounts), Some("/sys/fs/cgroup".into()));
        let escaped = mounts.replace("cgroup rw", r"my\040\134cgroup rw");
        assert_eq!(mounted(&escaped), Some(r"/sys/fs/my \cgroup".into()));
        let inside = "30 25 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(inside), None);
        assert_eq!(mounted(""), None);
    }
}
