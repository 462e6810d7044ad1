// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The names of cgroups.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the path of the cgroup with this inode number, as in /proc/PID/cgroup. `None` if it was removed, or is not
/// visible here.
pub fn path_of(number: u64) -> Option<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    find(&mounted(&mounts)?, number)
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

/// The directory of the root cgroup, from the text of mountinfo.
fn mounted(mountinfo: &str) -> Option<PathBuf> {
    let mount = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = mount.split(' ').skip(3);
        let (root, on) = (words.next()?, words.next()?);
        let is_it = root == "/" && filesystem.starts_with("cgroup2 ");
        is_it.then(|| PathBuf::from(on))
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
    fn the_root_cgroup_is_found_where_it_is_mounted() {
        let mounts = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(mounts), Some("/sys/fs/cgroup".into()));
        let inside = "30 25 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(inside), None);
        assert_eq!(mounted(""), None);
    }
}
