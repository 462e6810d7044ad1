// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads all traces below a directory as one: merges their streams by time.
//!
//! ```text
//! stream 0  e---e-----e--   \
//! stream 1  --e----e---e-    >  heap of the next event of each  -->  e e e e e e
//! stream 2  -----e-------   /
//! ```
//!
//! Each stream has a batch of decoded events (stream/batch.rs). If a large trace has several streams, threads decode
//! the next batches meanwhile (ahead.rs).

mod ahead;
mod feed;
mod merge;
mod open;

use std::path::Path;

use self::ahead::Ahead;
use self::feed::Feed;
use self::merge::Merge;
pub use self::open::Options;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::schema::Class;
use crate::stream::{Index, Lost, Origin, Part, Span};
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
    feeds: Vec<Feed>,
    /// Whether a file starts after the first packet of its recording, with a counter of discarded events that is not 0.
    continues: bool,
    /// Number of threads to start.
    threads: usize,
    /// The threads, once started.
    ahead: Option<Ahead>,
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
        self.fresh = (0..self.feeds.len() as u32).rev().collect();
    }

    /// Lets threads decode the first batch of each stream from which nothing has been read, if threads are wanted.
    fn launch(&mut self) {
        if self.threads > 0 && self.ahead.is_none() && !self.fresh.is_empty() {
            self.ahead = Ahead::start(self.threads, self.feeds.len());
        }
        for index in self.fresh.iter().rev() {
            if let Some(feed) = self.feeds.get_mut(*index as usize) {
                feed.send(self.ahead.as_ref());
            }
        }
    }

    /// Returns the traces.
    #[must_use]
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// Returns the number of streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.feeds.len()
    }

    /// Returns the bytes read, and the total. A packet counts as read once its first event has been
    /// read.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        let each = self.feeds.iter().map(|f| f.origin.progress(f.batch.at));
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Whether a file has grown since the trace was opened. Such a file is still being written, and
    /// was read only up to the size that it had when the trace was opened. The result is valid only at
    /// the end.
    #[must_use]
    pub fn grew(&self) -> bool {
        self.grew || self.feeds.iter().any(|feed| feed.batch.grew)
    }

    /// Returns the range of each stream that has a packet, from the headers of all packets.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        let origins = self.feeds.iter().map(|feed| &feed.origin);
        let span = |o: &Origin| o.span(&self.traces.get(o.trace)?.schema);
        origins.filter_map(span).collect()
    }

    /// Returns all event classes; [`Event::class_index`] is an index of this sequence.
    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.traces.iter().flat_map(|t| &t.schema.classes)
    }

    /// Returns the next event or loss of all streams; `None` at the end.
    ///
    /// # Errors
    /// When the next part of a stream cannot be read. The caller may call this function again: it then
    /// reports the rest of the packet as [`Item::Lost`], and the stream continues with its next packet,
    /// if that packet can be found.
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
        let Some((_, stream)) = self.merge.first() else {
            return self.finish();
        };
        self.given = true;
        Ok(self.item(stream as usize))
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
    fn item(&mut self, index: usize) -> Option<Item<'_>> {
        let feed = self.feeds.get_mut(index)?;
        if let Some(lost) = feed.lost {
            return Some(Item::Lost(lost));
        }
        let record = feed.record()?;
        let trace = self.traces.get(feed.origin.trace)?;
        let class = trace.schema.classes.get(record.class as usize)?;
        if !class.program.slots.is_empty() {
            feed.batch.restore(record, &class.program);
        }
        Some(Item::Event(Event {
            trace,
            batch: &feed.batch,
            class,
            record,
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
        match self.feeds.get_mut(index as usize) {
            Some(feed) => feed.advance(self.ahead.as_ref()),
            None => Ok(None),
        }
    }

    /// Reads the first event of streams from which nothing has been read.
    fn start(&mut self) -> Result<()> {
        if let Some(error) = self.faults.pop() {
            return Err(error);
        }
        self.launch();
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
            let origins = self.feeds.iter().map(|feed| &feed.origin);
            let index = |o: &Origin| self.traces.get(o.trace).map(|t| o.packets(&t.schema));
            self.index = Some(origins.map(|o| index(o).unwrap_or_default()).collect());
        }
        if let Some(ahead) = &self.ahead {
            ahead.recall();
            self.feeds.iter_mut().for_each(|feed| feed.recall(ahead));
        }
        let indexes = self.index.take().unwrap_or_default();
        for (feed, index) in self.feeds.iter_mut().zip(&indexes) {
            feed.rewind(index.before(nanoseconds).unwrap_or_default());
        }
        self.index = Some(indexes);
        self.begin();
        self.launch();
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
