// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Directories that no other user can redirect. The directory is ours, is not a symbolic link, and is not writable for
//! its group or others. Each directory above it is ours or root's, and must be sticky if others can write to it. It
//! must also be sticky if its group can write to it, unless the group is root or the owner's private group, which has
//! the owner's number.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Creates `directory` and its missing parents, with mode 0700, and returns its real path. Refuses a directory that
/// another user owns, can write to, or could replace; the error then includes `remedy`: how to choose another one.
pub fn make_private(directory: &Path, remedy: &str) -> Result<PathBuf> {
    let shown = || directory.display().to_string();
    let (Some(name), parent) = (directory.file_name(), directory.parent()) else {
        bail!("{}: expected the name of a directory", shown());
    };
    let parent = parent.filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    let parent = match parent.canonicalize() {
        Ok(parent) => {
            check_above(&parent, remedy).with_context(shown)?;
            parent
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_private(parent, remedy)?,
        Err(error) => return Err(error).with_context(shown),
    };
    let path = parent.join(name);
    match builder.create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(shown);
        }
        _ => {}
    }
    // The directory is opened first and then examined, so it cannot be replaced in between. Later, no other user can
    // replace it, since none can rename the entries of `parent`.
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY);
    let opened: File = match options.open(&path) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) => {
            bail!("{}: a link or a file, not a directory", shown());
        }
        opened => opened.with_context(shown)?,
    };
    let meta = opened.metadata().with_context(shown)?;
    if !is_ours(&meta) || meta.mode() & 0o022 != 0 {
        bail!(
            "{}: others could put something there, for it is {}; {remedy}, or make it your own (chown, chmod go-w)",
            shown(),
            whose(&meta)
        );
    }
    Ok(path)
}

/// Refuses `parent` if another user could rename an entry of it, or of a directory above it.
fn check_above(parent: &Path, remedy: &str) -> Result<()> {
    for above in parent.ancestors() {
        let meta = fs::symlink_metadata(above).with_context(|| above.display().to_string())?;
        let (mode, group) = (meta.mode(), meta.gid());
        let is_shared = group != 0 && group != meta.uid();
        let is_open = mode & 0o002 != 0 || (mode & 0o020 != 0 && is_shared);
        let is_sticky = mode & 0o1000 != 0;
        if !(is_ours(&meta) || meta.uid() == 0) || (is_open && !is_sticky) {
            bail!(
                "another user could replace it, for {} is {}; {remedy}",
                above.display(),
                whose(&meta)
            );
        }
    }
    Ok(())
}

fn is_ours(meta: &fs::Metadata) -> bool {
    meta.uid() == nix::unistd::geteuid().as_raw()
}

/// Owner, group and mode, for a message.
fn whose(meta: &fs::Metadata) -> String {
    let (owner, group, mode) = (meta.uid(), meta.gid(), meta.mode() & 0o7777);
    format!("of user {owner} and group {group} with mode {mode:04o}")
}
