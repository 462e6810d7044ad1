// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The disk of a directory, and its free space, for errors about captures that could not be written.

use std::fs;
use std::path::{Path, PathBuf};

use lt_common::out::bytes;

/// Returns text such as `/dev/vda1 (mounted on /) has 12 KiB free of 1.0 GiB`. Names the directory if its mount is not
/// found, and gives the error if the free space cannot be read.
pub(crate) fn room(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // The path may be relative, or contain links.
    let path = directory.canonicalize();
    let place = match disk_of(path.as_deref().unwrap_or(directory), &mounts) {
        Some((source, on)) => format!("{source} (mounted on {})", on.display()),
        None => format!("the disk of {}", directory.display()),
    };
    match nix::sys::statvfs::statvfs(directory) {
        Ok(fs) => {
            let of = |blocks| bytes(blocks * fs.fragment_size());
            let (free, all) = (of(fs.blocks_available()), of(fs.blocks()));
            format!("{place} has {free} free of {all}")
        }
        Err(error) => format!("{place}: {error}"),
    }
}

/// Source and mount point of the innermost mount that contains `directory` (of several at one mount point, the last),
/// in the text of `mountinfo`: `36 35 98:0 /root /mount/point options optional... - type source options`.
fn disk_of(directory: &Path, mounts: &str) -> Option<(String, PathBuf)> {
    let mut found: Option<(String, PathBuf)> = None;
    for line in mounts.lines() {
        let Some((mount, device)) = line.split_once(" - ") else {
            continue;
        };
        let (on, source) = (mount.split(' ').nth(4), device.split(' ').nth(1));
        let (Some(on), Some(source)) = (on, source) else {
            continue;
        };
        // The backslash comes last, since digits may follow it.
        let on = PathBuf::from(on.replace("\\040", " ").replace("\\134", "\\"));
        let deeper =
            |(_, other): &(String, PathBuf)| on.components().count() >= other.components().count();
        if directory.starts_with(&on) && found.as_ref().is_none_or(deeper) {
            found = Some((source.to_string(), on));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_of_the_innermost_mount_is_found() {
        let mounts = "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n\
                      23 22 0:5 / /srv/a\\040b rw shared:1 - tmpfs small rw,size=60k\n\
                      24 22 0:6 / /srv rw - xfs /dev/vdb rw\n\
                      25 22 0:7 / /srv/a\\134040b rw - ext4 /dev/vdc rw\n";
        let at = |path: &str| disk_of(Path::new(path), mounts).map(|(source, _)| source);
        assert_eq!(at("/var/lib").as_deref(), Some("/dev/vda1"));
        assert_eq!(at("/srv/a b/c").as_deref(), Some("small"));
        assert_eq!(at("/srv/ab").as_deref(), Some("/dev/vdb"));
        assert_eq!(at("/srv/a\\040b/c").as_deref(), Some("/dev/vdc"));
        assert_eq!(disk_of(Path::new("/"), ""), None);
    }

    #[test]
    fn the_free_space_is_shown() {
        let text = room(&std::env::temp_dir());
        assert!(text.contains(" free of "), "{text}");
    }

    #[test]
    fn a_link_is_followed_to_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("captures");
        std::os::unix::fs::symlink("/proc", &link).unwrap();
        let text = room(&link);
        assert!(text.contains("(mounted on /proc) has "), "{text}");
    }
}
