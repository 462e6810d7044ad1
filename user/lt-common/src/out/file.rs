// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Files that are written completely, or not changed.

use std::ffi::OsString;
use std::fs;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// Replaces a file with the output of `write`. The file is unchanged until the output is
/// complete, even if `write` fails: the output goes to a temporary file next to it, which is
/// removed on failure.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let named = || path.display().to_string();
    let (target, mut new) = prepare(path).with_context(named)?;
    let mut out = BufWriter::new(new.as_file_mut());
    write(&mut out).with_context(named)?;
    out.flush().with_context(named)?;
    drop(out);
    new.persist(target).with_context(named)?;
    Ok(())
}

/// Checks that [`replace`] can write these files, and that no two paths lead to the same file. Changes no file. Called
/// before the work whose results the files will hold.
pub fn check<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<()> {
    let mut targets = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let (target, _) = prepare(path).with_context(|| path.display().to_string())?;
        if targets.contains(&target) {
            bail!(
                "{}: named for two outputs; each needs its own file",
                path.display()
            );
        }
        targets.push(target);
    }
    Ok(())
}

/// Returns the canonical path of the file that `path` leads to, and a new temporary file next to that file.
fn prepare(path: &Path) -> Result<(PathBuf, NamedTempFile)> {
    if path == Path::new("-") {
        bail!("expected the name of a file; ./- is a file with this name");
    }
    // Through a link, the target is replaced, not the link.
    let path = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(error.into()),
    };
    // A device or a pipe would be replaced by a regular file.
    if path.exists() && !path.is_file() {
        bail!("not a regular file");
    }
    let file = path.file_name().context("not the name of a file")?;
    let mut name = OsString::from(".");
    name.push(file);
    name.push(".");
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let directory = fs::canonicalize(directory)?;
    let mut new = tempfile::Builder::new();
    // The mode of a new file, reduced by the umask.
    new.prefix(&name)
        .permissions(fs::Permissions::from_mode(0o666));
    let new = new.tempfile_in(&directory)?;
    Ok((directory.join(file), new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        let write = |path: &Path, text: &'static str| {
            replace(path, |out| Ok(out.write_all(text.as_bytes())?))
        };
        write(&file, "one").unwrap();
        write(&link, "two").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let failed = replace(&file, |out| {
            out.write_all(&[b'x'; 100_000])?;
            bail!("interrupted")
        });
        let failed = format!("{:#}", failed.unwrap_err());
        assert!(failed.ends_with("/a: interrupted"), "{failed}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        let new = dir.path().join("new");
        check([&file, &new]).unwrap();
        let name = dir.path().file_name().unwrap();
        let again = dir.path().join("..").join(name).join("new");
        for (one, other) in [(&file, &link), (&new, &again)] {
            let twice = format!("{:#}", check([one, other]).unwrap_err());
            assert!(twice.contains(": named for two outputs"), "{twice}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_left_alone() {
        for bad in ["/dev/null", "/", "/nonexistent/a", "", "/dev/..", "-"] {
            let done = [replace(Path::new(bad), |_| Ok(())), check([bad])];
            let [written, checked] = done.map(|done| format!("{:#}", done.unwrap_err()));
            assert_eq!(written, checked, "{bad}");
        }
        let error = replace(Path::new("/dev/null"), |_| Ok(())).unwrap_err();
        assert_eq!(format!("{error:#}"), "/dev/null: not a regular file");
    }
}
