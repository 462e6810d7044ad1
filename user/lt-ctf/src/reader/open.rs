// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds the traces below a directory, and opens their streams.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use super::Reader;
use super::feed::Feed;
use crate::error::{Error, Result, What};
use crate::metadata;
use crate::schema::Clock;
use crate::stream::{MAGIC, Origin, Part, Span, Stream, WINDOW};
use crate::trace::Trace;

/// Maximum depth at which traces are searched for.
const DEPTH: usize = 16;
/// Total size of all windows, bytes: they should stay in the cache. The windows of many streams
/// exceed this size, since each window has a minimum size.
const WINDOWS: usize = 4 << 20;
const LEAST: usize = 16 << 10;
/// Size of a trace from which threads are worth starting, bytes.
const LARGE: u64 = 8 * WINDOW as u64;
/// Number of streams up to which all files stay open. By default, a process may have 1,024 open files.
const FILES: usize = 512;
/// Maximum number of threads, unless an option sets it.
const THREADS: usize = 4;

/// Options for opening a trace.
#[derive(Debug, Default, Clone, Copy)]
pub struct Options {
    growing: bool,
    threads: Option<usize>,
}

impl Options {
    /// Declares that the trace is still being written: incomplete data at the end of a file is then
    /// ignored, and not an error.
    #[must_use]
    pub fn growing(mut self, growing: bool) -> Self {
        self.growing = growing;
        self
    }

    /// Sets the number of threads that decode events ahead of [`Reader::next`], at most one for each stream. They
    /// change neither items nor errors. By default, there is one for each further processor, at most four, if the
    /// trace has several streams and more than 2 MiB. The first call of [`Reader::next`] or [`Reader::seek`] starts
    /// them.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Opens all traces below `path`, or the trace at `path`.
    ///
    /// # Errors
    /// When a directory cannot be read, there is no trace, or no trace has readable metadata. If only
    /// some of several traces have unreadable metadata, [`Reader::next`] returns the error, as it does
    /// for an unreadable stream.
    pub fn open(self, path: &Path) -> Result<Reader> {
        let mut found = Found::default();
        found.look(path, 0)?;
        let mut reader = Reader::default();
        for directory in &found.directories {
            let done = read_metadata(&directory.join("metadata"))
                .and_then(|text| reader.add(directory, &text, self.growing));
            if let Err(error) = done {
                reader.faults.push(error);
            }
        }
        if reader.traces.is_empty() {
            let first = reader.faults.into_iter().next().or(found.foreign);
            return Err(first.unwrap_or_else(|| Error::new(path, 0, What::Nowhere)));
        }
        reader.connect();
        reader.ready(self.threads);
        Ok(reader)
    }
}

/// The traces and files found below a directory.
#[derive(Default)]
struct Found {
    /// The directories of traces, in the order of their names.
    directories: Vec<PathBuf>,
    /// The first file that is named `metadata`, but is not the metadata of a trace.
    foreign: Option<Error>,
}

impl Found {
    fn look(&mut self, path: &Path, depth: usize) -> Result<()> {
        let metadata = path.join("metadata");
        if metadata.is_file() {
            match head(&metadata, metadata::BEGIN) {
                // If there are streams in the directory, the file is damaged metadata rather than a foreign file.
                Ok(begin) if !metadata::is_metadata(&begin) && !has_stream(path) => {
                    let foreign = || Error::metadata(&metadata, 0, metadata::FOREIGN);
                    self.foreign.get_or_insert_with(foreign);
                }
                // If the file is unreadable, reading the metadata fails later.
                _ => {
                    self.directories.push(path.to_path_buf());
                    return Ok(());
                }
            }
        }
        let wrong = |e| Error::new(path, 0, What::Io(e));
        let mut below = Vec::new();
        for entry in fs::read_dir(path).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            // Links are not followed, since they may form a loop.
            if entry.file_type().map_err(wrong)?.is_dir() {
                below.push(entry.path());
            }
        }
        below.sort();
        if depth < DEPTH {
            below.iter().try_for_each(|b| self.look(b, depth + 1))?;
        }
        Ok(())
    }
}

impl Reader {
    /// Adds the trace in `directory`.
    fn add(&mut self, directory: &Path, text: &[u8], growing: bool) -> Result<()> {
        let mut schema = metadata::parse(&directory.join("metadata"), text, growing)?;
        self.relate(&mut schema.clocks);
        let schema = Arc::new(schema);
        let trace = self.traces.len();
        let mut streams: Vec<Stream> = Vec::new();
        let wrong = |e| Error::new(directory, 0, What::Io(e));
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            let name = path.file_name().unwrap_or_default();
            if name != "metadata" && !name.as_encoded_bytes().starts_with(b".") {
                let facts = fs::metadata(&path).map_err(|e| Error::new(&path, 0, What::Io(e)))?;
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
            match Stream::probe(&schema, part.clone(), growing) {
                Ok(Some(stream)) => streams.push(stream),
                Ok(None) => {}
                Err(error) if matches!(error.what, What::Truncated { .. }) => {
                    self.cut.push((error, part));
                }
                Err(error) => self.faults.push(error),
            }
        }
        // A tracer may continue a stream in further files: they are sorted by time.
        streams.sort_by_key(|s| (s.origin.class, s.id, s.id.and(s.packet.begin)));
        let continues = |s: &Stream| s.packet.number > Some(0) && s.packet.discarded > Some(0);
        self.continues |= streams.iter().any(continues);
        let key = |s: &Stream| (s.origin.class, s.id);
        for group in streams.chunk_by(|a, b| a.id.is_some() && key(a) == key(b)) {
            let parts = group.iter().flat_map(|s| s.origin.parts.iter().cloned());
            let origin = Origin {
                index: self.feeds.len(),
                trace,
                class: group.first().map_or(0, |s| s.origin.class),
                parts: parts.collect(),
                growing,
            };
            self.feeds.push(Feed::new(origin, &schema));
        }
        let first = self
            .traces
            .last()
            .map_or(0, |t| t.first + t.schema.classes.len());
        self.traces.push(Trace {
            directory: directory.to_path_buf(),
            schema,
            first,
        });
        Ok(())
    }

    /// Gives a clock the offset that it has in an earlier trace. A tracer measures the offset again for each trace, so
    /// it differs if the time of day was set in between, and would put the traces in the wrong order.
    fn relate(&self, clocks: &mut [Clock]) {
        for clock in clocks {
            let mut known = self.traces.iter().flat_map(|trace| trace.schema.clocks());
            let same = known.find(|of| {
                of.uid.is_some()
                    && of.uid == clock.uid
                    && of.name == clock.name
                    && of.frequency == clock.frequency
            });
            if let Some(of) = same {
                (clock.offset_seconds, clock.offset_cycles) = (of.offset_seconds, of.offset_cycles);
            }
        }
    }

    /// Connects the streams of a session that rotates: each trace has a part of every stream, and the counters of
    /// discarded events continue.
    fn connect(&mut self) {
        // Finding the counters takes the headers of all packets, so it is done only if a counter is needed.
        if self.traces.len() < 2 || !self.continues {
            return;
        }
        let origins = self.feeds.iter().map(|feed| &feed.origin);
        let span = |of: &Origin| of.span(&self.traces.get(of.trace)?.schema);
        let spans: Vec<_> = origins.map(span).collect();
        // A stream without an ID cannot be distinguished from the streams of other CPUs.
        let place = |span: &Span, number: u64| {
            let uuid = self.traces.get(span.trace)?.schema.uuid()?;
            let (class, id) = span.stream;
            Some((uuid, class, id?, number))
        };
        let end = |span: &Span| {
            let (_, last) = span.numbers?;
            Some((place(span, last.checked_add(1)?)?, span.discarded?))
        };
        let ends: HashMap<_, _> = spans.iter().flatten().filter_map(end).collect();
        let before = |span: &Span| ends.get(&place(span, span.numbers?.0)?).copied();
        for (feed, span) in self.feeds.iter_mut().zip(&spans) {
            if let Some(discarded) = span.as_ref().and_then(before) {
                feed.continue_from(discarded);
            }
        }
    }

    fn ready(&mut self, threads: Option<usize>) {
        let streams = self.feeds.len();
        let is_large = streams > 1 && self.progress().1 > LARGE;
        let worth = if is_large { further() } else { 0 };
        self.threads = threads.unwrap_or(worth).min(streams);
        // With threads, a stream has two batches.
        let windows = streams * (1 + usize::from(self.threads > 0));
        let size = (WINDOWS / windows.max(1)).clamp(LEAST, WINDOW);
        // Windows are a multiple of a page.
        self.feeds
            .iter_mut()
            .for_each(|feed| feed.limit(size / 4096 * 4096, streams <= FILES));
        self.begin();
    }
}

/// Returns the number of processors besides the one that merges, at most [`THREADS`].
fn further() -> usize {
    let processors = thread::available_parallelism();
    processors.map_or(0, |n| n.get() - 1).min(THREADS)
}

/// Whether a file in this directory starts with a packet.
fn has_stream(directory: &Path) -> bool {
    let begins = |path: &Path| {
        let begin = head(path, 4).unwrap_or_default();
        let magic = begin.first_chunk::<4>().copied();
        magic.is_some_and(|m| {
            u64::from(u32::from_le_bytes(m)) == MAGIC || u64::from(u32::from_be_bytes(m)) == MAGIC
        })
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.any(|entry| begins(&entry.path()))
}

/// Reads metadata. Fails if it exceeds [`metadata::LIMIT`].
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

/// Reads the first bytes of a file, at most this many.
fn head(file: &Path, bytes: u64) -> Result<Vec<u8>> {
    let wrong = |e| Error::new(file, 0, What::Io(e));
    let mut text = Vec::new();
    let open = fs::File::open(file).map_err(wrong)?;
    open.take(bytes).read_to_end(&mut text).map_err(wrong)?;
    Ok(text)
}
