// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds the traces below a directory, and opens their streams.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::Reader;
use crate::convert::{self, Progress, Scratch, Watch};
use crate::error::{Error, Result};
use crate::metadata;
use crate::stream::{Part, Stream, WINDOW};
use crate::trace::Trace;

/// How deep below the given directory traces are looked for.
const DEPTH: usize = 16;
/// All windows together, bytes, unless there are more streams than that is enough for, and each gets its least.
/// They should stay in the cache.
const WINDOWS: usize = 4 << 20;
const LEAST: usize = 16 << 10;

/// How to open a trace.
#[derive(Default)]
pub struct Options<'a> {
    growing: bool,
    watch: Watch<'a>,
}

impl<'a> Options<'a> {
    /// The trace is still being written: what is incomplete at the end of a file is not there yet, and no error.
    #[must_use]
    pub fn growing(mut self, growing: bool) -> Self {
        self.growing = growing;
        self
    }

    /// Called a few times a second while an older trace is being converted.
    #[must_use]
    pub fn progress(mut self, told: &'a mut dyn FnMut(Progress)) -> Self {
        self.watch.progress = Some(told);
        self
    }

    /// When this becomes true, the conversion of an older trace ends with [`crate::What::Cancelled`], and what it has
    /// made is removed. Let a handler of SIGINT set it: a process that dies of the signal removes nothing.
    #[must_use]
    pub fn cancel(mut self, cancelled: &'a AtomicBool) -> Self {
        self.watch.cancelled = Some(cancelled);
        self
    }

    /// Opens all traces below `path`, or the one that is there.
    ///
    /// # Errors
    /// When there is none, or the metadata of one cannot be read. A stream that cannot be read is an error of
    /// [`Reader::next`].
    pub fn open(mut self, path: &Path) -> Result<Reader> {
        let mut directories = Vec::new();
        find(path, 0, &mut directories)?;
        if directories.is_empty() {
            return Err(Error::new(path, 0, crate::What::Nowhere));
        }
        let mut reader = Reader::default();
        let converted = reader.convert(&directories, &mut self.watch)?;
        for (directory, converted) in directories.iter().zip(converted) {
            match converted {
                Some(new) => reader.add_converted(directory, &new)?,
                None => {
                    let text = read_metadata(&directory.join("metadata"))?;
                    reader.add(directory, directory, &text, self.growing)?;
                }
            }
        }
        reader.ready();
        Ok(reader)
    }
}

/// The directories with metadata in or below `path`, in the order of their names.
fn find(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if path.join("metadata").is_file() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    let wrong = |e| Error::new(path, 0, crate::What::Io(e));
    let mut below = Vec::new();
    for entry in fs::read_dir(path).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        // No links: they may lead in a circle.
        if entry.file_type().map_err(wrong)?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    if depth < DEPTH {
        below.iter().try_for_each(|b| find(b, depth + 1, found))?;
    }
    Ok(())
}

impl Reader {
    /// Converts those of the older format; where each of these is then.
    fn convert(
        &mut self,
        directories: &[PathBuf],
        watch: &mut Watch<'_>,
    ) -> Result<Vec<Option<PathBuf>>> {
        let mut new = vec![None; directories.len()];
        let mut old = Vec::new();
        for (directory, new) in directories.iter().zip(&mut new) {
            let begin = head(&directory.join("metadata"), 1)?;
            if !metadata::is_ctf2(&begin) && !begin.is_empty() {
                old.push((directory.as_path(), new));
            }
        }
        if let Some((first, _)) = old.first() {
            let scratch = self.scratch.insert(Scratch::new(first)?);
            let directories: Vec<_> = old.iter().map(|(directory, _)| *directory).collect();
            let converted = convert::convert(&directories, scratch, watch)?;
            for ((_, new), converted) in old.iter_mut().zip(converted) {
                **new = Some(converted);
            }
        }
        Ok(new)
    }

    /// Adds what has become of the trace in `directory`.
    fn add_converted(&mut self, directory: &Path, new: &Path) -> Result<()> {
        let mut found = Vec::new();
        find(new, 0, &mut found)?;
        for found in found {
            let text = read_metadata(&found.join("metadata"))?;
            self.add(directory, &found, &text, false)?;
        }
        Ok(())
    }

    /// Adds the trace in `directory`, which is called `shown`.
    fn add(&mut self, shown: &Path, directory: &Path, text: &[u8], growing: bool) -> Result<()> {
        let schema = metadata::parse(&directory.join("metadata"), text, growing)?;
        let trace = self.traces.len();
        let mut streams: Vec<Stream> = Vec::new();
        let wrong = |e| Error::new(directory, 0, crate::What::Io(e));
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default();
            if name != "metadata" && !name.as_encoded_bytes().starts_with(b".") {
                let facts =
                    fs::metadata(&path).map_err(|e| Error::new(&path, 0, crate::What::Io(e)))?;
                if facts.is_file() && facts.len() > 0 {
                    files.push(Part {
                        path,
                        size: facts.len(),
                    });
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        for part in files {
            match Stream::probe(&schema, part, growing) {
                Ok(Some(stream)) => streams.push(stream),
                Ok(None) => {}
                Err(error) => self.faults.push(error),
            }
        }
        // The files of one stream, when the tracer went on in another: in the order of time.
        streams.sort_by_key(|s| (s.class, s.id, s.id.and(s.packet.begin)));
        let groups = streams.chunk_by(|a, b| a.id.is_some() && (a.class, a.id) == (b.class, b.id));
        for group in groups {
            let parts = group.iter().flat_map(|s| s.parts.clone()).collect();
            let class = group.first().map_or(0, |s| s.class);
            let mut stream = Stream::new(&schema, class, parts, growing);
            stream.index = self.streams.len();
            stream.trace = trace;
            self.streams.push(stream);
        }
        let first = self
            .traces
            .last()
            .map_or(0, |t| t.first + t.schema.classes.len());
        self.traces.push(Trace {
            directory: shown.to_path_buf(),
            schema,
            first,
        });
        Ok(())
    }

    fn ready(&mut self) {
        let size = (WINDOWS / self.streams.len().max(1)).clamp(LEAST, WINDOW);
        // A multiple of a page, as windows are.
        self.streams
            .iter_mut()
            .for_each(|s| s.limit_window(size / 4096 * 4096));
        self.begin();
    }
}

/// Metadata, of no more than is reasonable.
fn read_metadata(file: &Path) -> Result<Vec<u8>> {
    let text = head(file, metadata::LIMIT + 1)?;
    if text.len() as u64 > metadata::LIMIT {
        return Err(Error::metadata(
            file,
            metadata::LIMIT,
            "far too much metadata",
        ));
    }
    Ok(text)
}

/// The first bytes of a file, at most this many.
fn head(file: &Path, bytes: u64) -> Result<Vec<u8>> {
    let wrong = |e| Error::new(file, 0, crate::What::Io(e));
    let mut text = Vec::new();
    let open = fs::File::open(file).map_err(wrong)?;
    open.take(bytes).read_to_end(&mut text).map_err(wrong)?;
    Ok(text)
}
