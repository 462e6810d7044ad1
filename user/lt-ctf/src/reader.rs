// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads all traces below a directory as one: merges their streams by time.
//!
//! ```text
//! stream 0  e---e-----e--   \
//! stream 1  --e----e---e-    >  heap of the next event of each  -->  e e e e e e
//! stream 2  -----e-------   /
//! ```

mod merge;
mod open;

use std::path::Path;

use self::merge::Merge;
pub use self::open::Options;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::schema::Class;
use crate::stream::{Index, Lost, Next, Part, Span, Stream};
use crate::trace::Trace;

/// The next item of a trace.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// A loss: the tracer could not keep up, or the rest of a packet cannot be read. It comes where the gap starts.
    Lost(Lost),
}

/// Reads traces; made by [`Options::open`].
#[derive(Default)]
pub struct Reader {
    traces: Vec<Trace>,
    streams: Vec<Stream>,
    merge: Merge,
    /// Set while the caller has the first item, so that its stream must be advanced next.
    given: bool,
    /// Streams from which nothing has been read.
    fresh: Vec<u32>,
    /// Unreadable files.
    faults: Vec<Error>,
    /// Files that end within their first packet. They are errors unless they have grown by the time
    /// everything else has been read.
    cut: Vec<(Error, Part)>,
    /// Whether a file in `cut` has grown.
    grew: bool,
    index: Option<Vec<Index>>,
}

impl Reader {
    /// Opens all traces below `path` as they are.
    ///
    /// # Errors
    /// See [`Options::open`].
    pub fn open(path: &Path) -> Result<Self> {
        Options::default().open(path)
    }

    fn begin(&mut self) {
        self.merge.clear();
        self.given = false;
        self.fresh = (0..self.streams.len() as u32).rev().collect();
    }

    /// Returns the traces.
    #[must_use]
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// Returns the number of streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the bytes read, and the total. A packet counts as read once its first event has been
    /// read.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let each = self.streams.iter().map(Stream::progress);
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Whether a file has grown since the trace was opened. Such a file is still being written, and
    /// was read up to its size at the time. The result is valid only at the end.
    #[must_use]
    pub fn grew(&self) -> bool {
        self.grew || self.streams.iter().any(|stream| stream.grew)
    }

    /// Returns the range of each stream that has a packet, from the headers of all packets.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        let span = |s: &Stream| s.span(&self.traces.get(s.trace)?.schema);
        self.streams.iter().filter_map(span).collect()
    }

    /// Returns all event classes; [`Event::class_index`] is an index of this sequence.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.traces.iter().flat_map(|t| &t.schema.classes)
    }

    /// Returns the next event or loss of all streams; `None` at the end.
    ///
    /// # Errors
    /// When the next part of a stream cannot be read. This may be called again: it then reports the
    /// rest of the packet as [`Item::Lost`], and the stream continues with its next packet, if that
    /// can be found.
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
        let Some((nanoseconds, stream)) = self.merge.first() else {
            return self.finish();
        };
        self.given = true;
        Ok(self.item(nanoseconds, stream as usize))
    }

    /// Called when all streams have been read. Only files that end within their first packet are
    /// left.
    #[cold]
    fn finish(&mut self) -> Result<Option<Item<'_>>> {
        while let Some((error, part)) = self.cut.pop() {
            if !part.has_grown() {
                return Err(error);
            }
            self.grew = true;
        }
        Ok(None)
    }

    #[inline]
    fn item(&self, nanoseconds: i64, index: usize) -> Option<Item<'_>> {
        let stream = self.streams.get(index)?;
        if let Some(lost) = stream.told {
            return Some(Item::Lost(lost));
        }
        let trace = self.traces.get(stream.trace)?;
        Some(Item::Event(Event {
            trace,
            stream,
            class: trace.schema.classes.get(stream.event as usize)?,
            nanoseconds,
        }))
    }

    /// Advances the stream of the first item.
    #[inline]
    fn advance_first(&mut self) -> Result<()> {
        if let Some((_, stream)) = self.merge.first() {
            let time = self.advance(stream)?;
            self.merge.replace_first(time);
        }
        self.given = false;
        Ok(())
    }

    /// Advances a stream, and returns the time of its next item.
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

    /// Reads the first event of streams from which nothing has been read.
    fn start(&mut self) -> Result<()> {
        if let Some(error) = self.faults.pop() {
            return Err(error);
        }
        while let Some(index) = self.fresh.last().copied() {
            // After an error, the stream is tried again.
            let time = self.advance(index)?;
            self.fresh.pop();
            if let Some(time) = time {
                self.merge.push(time, index);
            }
        }
        Ok(())
    }

    /// Goes to the first event at `nanoseconds` (since the clock's origin) or later, forward or back.
    ///
    /// # Errors
    /// See [`Reader::next`]. If some streams cannot be read, the others are positioned nevertheless.
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
                    // Losses before that time belong to the events before it.
                    Ok(Some(time)) if time < nanoseconds => {}
                    Ok(Some(time)) => {
                        self.merge.push(time, index);
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
