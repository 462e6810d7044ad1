// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Marks the start and the end of a program's work for latency-tracker, by a cookie.
//!
//! ```text
//! interrupt ---> ... ---> listener ---> queue ---> worker
//!                            |                        |
//!                            begin COOKIE             done COOKIE
//! ```
//!
//! Instances of the tracker `tree` with `end=work` follow the work, starting from the interrupt or
//! timer that woke the task that begins it. A cookie is 1 to 64 arbitrary bytes; a newline at its
//! end is ignored. A mark is one write(2), which costs a system call even if nothing follows the
//! work. See Documentation/trackers/tree.md.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! let marks = lt_work::Marks::open()?;
//! let order = marks.work(b"order 4711")?;
//! // The work lasts until `order` is dropped, here or in another thread.
//! drop(order);
//! # Ok(())
//! # }
//! ```
//!
//! Depends on the standard library only.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// The longest cookie, in bytes.
pub const COOKIE_MAX: usize = 64;

const ROOT: &str = "/proc/latency_tracker";
const BEGIN: &[u8] = b"begin ";
const DONE: &[u8] = b"done ";

/// Marks work. Any number of threads may share it.
#[derive(Debug)]
pub struct Marks(Files);

#[derive(Debug)]
enum Files {
    /// The files for all instances.
    All { begin: File, done: File },
    /// The file of one instance.
    One(File),
}

impl Marks {
    /// Opens the files that mark work for all instances that wait for it.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the module is not loaded, [`ErrorKind::PermissionDenied`] for users who may not mark
    /// work.
    pub fn open() -> io::Result<Self> {
        Self::open_in(Path::new(ROOT))
    }

    /// Opens the files below another directory than /proc/latency_tracker.
    ///
    /// # Errors
    /// As for [`Marks::open`].
    pub fn open_in(root: &Path) -> io::Result<Self> {
        let begin = write_only(&root.join("work_begin"))?;
        let done = write_only(&root.join("work_done"))?;
        Ok(Self(Files::All { begin, done }))
    }

    /// Opens the file that marks work for one instance.
    ///
    /// # Errors
    /// As for [`Marks::open`]; [`ErrorKind::NotFound`] also if there is no such instance, or if it does not wait for
    /// work.
    pub fn open_instance(name: &str) -> io::Result<Self> {
        Self::open_instance_in(Path::new(ROOT), name)
    }

    /// Opens the file of one instance below another directory than /proc/latency_tracker.
    ///
    /// # Errors
    /// As for [`Marks::open_instance`].
    pub fn open_instance_in(root: &Path, name: &str) -> io::Result<Self> {
        let file = write_only(&root.join(name).join("work"))?;
        Ok(Self(Files::One(file)))
    }

    /// Marks the start of work.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for a cookie that is empty or too long. From the kernel:
    /// `ENODEV` if no instance that waits for work is enabled, `ENOSPC` if one has no room for more,
    /// `EIO` if the instance, or the module, has gone.
    pub fn begin(&self, cookie: &[u8]) -> io::Result<()> {
        match &self.0 {
            Files::All { begin, .. } => mark(begin, b"", cookie),
            Files::One(file) => mark(file, BEGIN, cookie),
        }
    }

    /// Marks the end of work. An unknown cookie is not an error.
    ///
    /// # Errors
    /// As for [`Marks::begin`], except `ENOSPC`.
    pub fn done(&self, cookie: &[u8]) -> io::Result<()> {
        match &self.0 {
            Files::All { done, .. } => mark(done, b"", cookie),
            Files::One(file) => mark(file, DONE, cookie),
        }
    }

    /// Marks the start of work, and its end when the result is dropped.
    ///
    /// # Errors
    /// As for [`Marks::begin`].
    pub fn work<'a>(&'a self, cookie: &'a [u8]) -> io::Result<Work<'a>> {
        self.begin(cookie)?;
        Ok(Work {
            marks: self,
            cookie,
        })
    }
}

/// Work in progress. Dropping it marks the end.
#[derive(Debug)]
#[must_use = "dropping it at once marks the end of the work"]
pub struct Work<'a> {
    marks: &'a Marks,
    cookie: &'a [u8],
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        // The instance may be gone by now; the work has ended anyway.
        let _ = self.marks.done(self.cookie);
    }
}

fn write_only(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Writes a mark with one write(2).
fn mark(mut file: &File, word: &[u8], cookie: &[u8]) -> io::Result<()> {
    if cookie.is_empty() || cookie.len() > COOKIE_MAX {
        let why = format!(
            "a cookie of {} bytes, not of 1 to {COOKIE_MAX}",
            cookie.len()
        );
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let line = [word, cookie].concat();
    file.write(&line).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for name in ["work_begin", "work_done"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        fs::create_dir(root.path().join("job")).unwrap();
        fs::write(root.path().join("job/work"), "").unwrap();
        root
    }

    #[test]
    fn a_mark_is_the_cookie_in_the_file_of_its_kind() {
        let root = root();
        let read = |name| fs::read(root.path().join(name)).unwrap();
        let marks = Marks::open_in(root.path()).unwrap();
        let work = marks.work(b"a\0b").unwrap();
        assert_eq!(
            (read("work_begin"), read("work_done")),
            (b"a\0b".to_vec(), vec![])
        );
        drop(work);
        assert_eq!(read("work_done"), b"a\0b");
    }

    #[test]
    fn the_file_of_an_instance_takes_both_marks() {
        let root = root();
        let marks = Marks::open_instance_in(root.path(), "job").unwrap();
        drop(marks.work(b"one").unwrap());
        let marked = fs::read(root.path().join("job/work")).unwrap();
        assert_eq!(marked, b"begin onedone one");
        let error = Marks::open_instance_in(root.path(), "other").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn cookies_have_1_to_64_bytes() {
        let root = root();
        let marks = Marks::open_in(root.path()).unwrap();
        for (len, is_valid) in [(0, false), (1, true), (64, true), (65, false)] {
            let cookie = vec![b'x'; len];
            assert_eq!(marks.begin(&cookie).is_ok(), is_valid, "{len}");
            assert_eq!(marks.done(&cookie).is_ok(), is_valid, "{len}");
        }
        let written = fs::read(root.path().join("work_begin")).unwrap();
        assert_eq!(written.len(), 65);
    }
}
