// SPDX-License-Identifier: GPL-2.0 OR MIT

//! All traces below a directory as one: their streams merged by time.
//!
//! ```text
//! stream 0  e---e-----e--   \
//! stream 1  --e----e---e-    >  heap of the next event of each  -->  e e e e e e
//! stream 2  -----e-------   /
//! ```

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::convert::{self, Progress, Scratch};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::metadata;
use crate::schema::{Class, Schema};
use crate::stream::{Index, Lost, Next, Part, Stream, WINDOW};

/// How deep below the given directory traces are looked for.
const DEPTH: usize = 16;
/// All windows together, bytes, unless there are so many streams that each gets its least.
/// They should stay in the cache.
const WINDOWS: usize = 4 << 20;
const LEAST: usize = 16 << 10;

/// What comes next in a trace.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// The tracer could not keep up; it comes where the gap begins.
    Lost(Lost),
}

/// One trace: a directory with metadata and streams.
#[derive(Debug)]
pub struct Trace {
    /// Where it is; of an older trace, where it was before the conversion.
    pub directory: PathBuf,
    /// What its metadata say.
    pub schema: Schema,
    /// The number of its first class among those of all traces.
    first: usize,
}

/// How to open a trace.
#[derive(Default)]
pub struct Options<'a> {
    growing: bool,
    progress: Option<&'a mut dyn FnMut(Progress)>,
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
        self.progress = Some(told);
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
            return Err(Error::metadata(
                path,
                0,
                "no trace: there is no file `metadata` in or below it",
            ));
        }
        let mut reader = Reader::default();
        for directory in directories {
            reader.add(&directory, self.growing, &mut self.progress)?;
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

/// Reads traces; made by [`Options::open`].
#[derive(Default)]
pub struct Reader {
    traces: Vec<Trace>,
    streams: Vec<Stream>,
    /// The time of the next event of each stream that has one, and which; the earliest first.
    heap: Vec<(i64, u32)>,
    /// The first one is with the caller, and its stream has to go on.
    given: bool,
    /// Streams of which nothing has been read.
    fresh: Vec<u32>,
    /// Files that cannot be read at all.
    faults: Vec<Error>,
    index: Option<Vec<Index>>,
    /// The converted traces, as long as they are needed.
    scratch: Option<Scratch>,
}

impl Reader {
    /// Opens all traces below `path` as they are.
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: &Path) -> Result<Self> {
        Options::default().open(path)
    }

    fn add(
        &mut self,
        directory: &Path,
        growing: bool,
        progress: &mut Option<&mut dyn FnMut(Progress)>,
    ) -> Result<()> {
        let file = directory.join("metadata");
        let text = read_metadata(&file)?;
        if metadata::is_ctf2(&text) || text.is_empty() {
            return self.add_ctf2(directory, directory, &text, growing);
        }
        if self.scratch.is_none() {
            self.scratch = Some(Scratch::new(directory)?);
        }
        let Some(scratch) = &mut self.scratch else {
            return Ok(());
        };
        let converted = convert::convert(directory, scratch, progress)?;
        let mut directories = Vec::new();
        find(&converted, 0, &mut directories)?;
        for found in directories {
            let file = found.join("metadata");
            let text = read_metadata(&file)?;
            self.add_ctf2(directory, &found, &text, false)?;
        }
        Ok(())
    }

    fn add_ctf2(
        &mut self,
        shown: &Path,
        directory: &Path,
        text: &[u8],
        growing: bool,
    ) -> Result<()> {
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

    fn begin(&mut self) {
        self.heap.clear();
        self.given = false;
        self.fresh = (0..self.streams.len() as u32).rev().collect();
    }

    /// The traces.
    #[must_use]
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// How many streams there are.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// All classes of events; the number of each is that of [`Event::class_index`].
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.traces.iter().flat_map(|t| &t.schema.classes)
    }

    /// The next event of all streams, or what was lost. `None` at the end.
    ///
    /// # Errors
    /// When what follows in a stream cannot be read. The stream goes on with its next packet, if that can be
    /// found; so one may call this again.
    #[expect(
        clippy::should_implement_trait,
        reason = "an event borrows from the reader, which no iterator can express"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        if self.given {
            self.advance_first()?;
        } else {
            self.start()?;
        }
        let Some((nanoseconds, stream)) = self.heap.first().copied() else {
            return Ok(None);
        };
        self.given = true;
        Ok(self.item(nanoseconds, stream as usize))
    }

    #[inline]
    fn item(&self, nanoseconds: i64, index: usize) -> Option<Item<'_>> {
        let stream = self.streams.get(index)?;
        if let Some(lost) = stream.told {
            return Some(Item::Lost(lost));
        }
        let trace = self.traces.get(stream.trace)?;
        Some(Item::Event(Event {
            schema: &trace.schema,
            class: trace.schema.classes.get(stream.event as usize)?,
            class_index: trace.first + stream.event as usize,
            window: stream.window(),
            state: &stream.state,
            packet: stream.packet_fields(),
            stream: index,
            trace: stream.trace,
            cpu: stream.cpu,
            cycles: stream.cycles,
            nanoseconds,
        }))
    }

    /// The stream of the first of the heap goes on.
    #[inline]
    fn advance_first(&mut self) -> Result<()> {
        let Some(index) = self.heap.first().map(|(_, stream)| *stream) else {
            return Ok(());
        };
        match self.advance(index)? {
            Some(time) => {
                if let Some(first) = self.heap.first_mut() {
                    first.0 = time;
                }
            }
            None => {
                self.heap.swap_remove(0);
            }
        }
        self.given = false;
        sink(&mut self.heap, 0);
        Ok(())
    }

    /// One stream goes on: the time of what it has next.
    #[inline]
    fn advance(&mut self, index: u32) -> Result<Option<i64>> {
        let Some(stream) = self.streams.get_mut(index as usize) else {
            return Ok(None);
        };
        let Some(trace) = self.traces.get(stream.trace) else {
            return Ok(None);
        };
        Ok(match stream.advance(&trace.schema)? {
            Next::Event => Some(stream.nanoseconds(stream.cycles)),
            Next::Lost(lost) => Some(lost.nanoseconds.0),
            Next::End => None,
        })
    }

    /// Reads the first event of streams of which nothing has been read.
    fn start(&mut self) -> Result<()> {
        if let Some(error) = self.faults.pop() {
            return Err(error);
        }
        while let Some(index) = self.fresh.last().copied() {
            // After an error it is tried again.
            let time = self.advance(index)?;
            self.fresh.pop();
            if let Some(time) = time {
                self.heap.push((time, index));
                let last = self.heap.len() - 1;
                rise(&mut self.heap, last);
            }
        }
        Ok(())
    }

    /// Goes to the first event at `nanoseconds` (since the clock's origin) or later, forward or back.
    ///
    /// # Errors
    /// Those of [`Reader::next`]; the streams that can be read are where they should be then.
    pub fn seek(&mut self, nanoseconds: i64) -> Result<()> {
        if self.index.is_none() {
            let index = |s: &Stream| self.traces.get(s.trace).map(|t| s.index(&t.schema));
            self.index = Some(
                self.streams
                    .iter()
                    .map(|s| index(s).unwrap_or_default())
                    .collect(),
            );
        }
        let indexes = self.index.take().unwrap_or_default();
        for (stream, index) in self.streams.iter_mut().zip(&indexes) {
            stream.rewind(index.before(nanoseconds).unwrap_or((0, 0)));
        }
        self.index = Some(indexes);
        self.begin();
        let mut wrong = None;
        for index in std::mem::take(&mut self.fresh) {
            loop {
                match self.advance(index) {
                    // What was lost up to that time tells of what is there.
                    Ok(Some(time)) if time < nanoseconds => {}
                    Ok(Some(time)) => {
                        self.heap.push((time, index));
                        let last = self.heap.len() - 1;
                        rise(&mut self.heap, last);
                        break;
                    }
                    Ok(None) => break,
                    Err(error) => wrong = wrong.or(Some(error)),
                }
            }
        }
        wrong.map_or(Ok(()), Err)
    }
}

/// Metadata, of no more than is reasonable.
fn read_metadata(file: &Path) -> Result<Vec<u8>> {
    let wrong = |e| Error::new(file, 0, crate::What::Io(e));
    let mut text = Vec::new();
    let open = fs::File::open(file).map_err(wrong)?;
    open.take(metadata::LIMIT + 1)
        .read_to_end(&mut text)
        .map_err(wrong)?;
    if text.len() as u64 > metadata::LIMIT {
        return Err(Error::metadata(
            file,
            metadata::LIMIT,
            "far too much metadata",
        ));
    }
    Ok(text)
}

/// Brings the heap into order again when the one at `at` may be too late for its place.
#[inline]
fn sink(heap: &mut [(i64, u32)], mut at: usize) {
    let Some(moved) = heap.get(at).copied() else {
        return;
    };
    loop {
        let left = 2 * at + 1;
        let Some(mut least) = heap.get(left).copied() else {
            break;
        };
        let mut child = left;
        if let Some(right) = heap.get(left + 1)
            && *right < least
        {
            least = *right;
            child = left + 1;
        }
        if moved <= least {
            break;
        }
        heap[at] = least;
        at = child;
    }
    heap[at] = moved;
}

/// The same when it may be too early.
fn rise(heap: &mut [(i64, u32)], mut at: usize) {
    while at > 0 && heap[at] < heap[(at - 1) / 2] {
        heap.swap(at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}
