// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A stream as the merge reads it: item by item, from its current batch.
//!
//! ```text
//! batch   losses, errors | e e e e e e e e | e e e e e e e e |
//!                                          ^ from here on, a thread may decode the next batch
//! ```
//!
//! With threads, a stream has one batch in memory until half of its first batch has been read, and two from then on.
//! A stream that the merge has not reached yet therefore has one batch. Without threads, each stream has one batch.

use std::sync::Arc;

use super::ahead::{Ahead, Job};
use crate::error::Result;
use crate::schema::Schema;
use crate::stream::{Batch, Lost, Origin, Record, Start, Stream};

pub(super) struct Feed {
    pub(super) origin: Origin,
    pub(super) batch: Batch,
    /// The current item, if it is a loss.
    pub(super) lost: Option<Lost>,
    /// The index of the next event in the batch.
    next: usize,
    /// The end of the events that need no decision: the middle or the end of the batch.
    until: usize,
    /// Decodes the next batch; `None` while the threads have it.
    job: Option<Box<Job>>,
}

impl Feed {
    pub(super) fn new(origin: Origin, schema: &Arc<Schema>) -> Self {
        let job = Job {
            schema: Arc::clone(schema),
            stream: Stream::new(schema, origin.clone()),
            batch: Batch::default(),
        };
        Self {
            origin,
            batch: Batch::default(),
            lost: None,
            next: 0,
            until: 0,
            job: Some(Box::new(job)),
        }
    }

    pub(super) fn limit(&mut self, window: usize, stays_open: bool) {
        if let Some(job) = &mut self.job {
            job.stream.limit(window, stays_open);
        }
    }

    pub(super) fn continue_from(&mut self, discarded: u64) {
        if let Some(job) = &mut self.job {
            job.stream.continue_from(discarded);
        }
    }

    /// Advances to the next item, and returns its time.
    #[inline]
    pub(super) fn advance(&mut self, ahead: Option<&Ahead>) -> Result<Option<i64>> {
        match self.next_event() {
            Some(time) => Ok(Some(time)),
            None => self.turn(ahead),
        }
    }

    #[inline]
    fn next_event(&mut self) -> Option<i64> {
        if self.next >= self.until {
            return None;
        }
        let record = self.batch.records.get(self.next)?;
        self.next += 1;
        Some(record.nanoseconds)
    }

    /// Advances to the next item at the start, middle or end of a batch.
    #[cold]
    fn turn(&mut self, ahead: Option<&Ahead>) -> Result<Option<i64>> {
        self.lost = None;
        loop {
            if let Some(item) = self.batch.head.pop_front() {
                let lost = item?;
                self.lost = Some(lost);
                return Ok(Some(lost.nanoseconds.0));
            }
            let all = self.batch.records.len();
            if self.next < all {
                self.until = all / 2;
                if self.next >= self.until {
                    self.until = all;
                    self.send(ahead);
                }
                return Ok(self.next_event());
            }
            if self.batch.last {
                return Ok(None);
            }
            self.load(ahead);
        }
    }

    /// Lets a thread decode the next batch, if there are threads and this batch is not the last.
    pub(super) fn send(&mut self, ahead: Option<&Ahead>) {
        if let Some(ahead) = ahead
            && !self.batch.last
            && let Some(job) = self.job.take()
        {
            ahead.send(job);
        }
    }

    /// Replaces the batch, which has been read, with the next batch.
    fn load(&mut self, ahead: Option<&Ahead>) {
        if let Some(job) = &mut self.job {
            job.stream.next_batch(&job.schema, &mut self.batch);
        } else if let Some(ahead) = ahead {
            let mut job = ahead.take(self.origin.index);
            std::mem::swap(&mut self.batch, &mut job.batch);
            if self.batch.last {
                // Releases the memory.
                job.batch = Batch::default();
            }
            self.job = Some(job);
        } else {
            // Without threads, the job is never away.
            self.batch.last = true;
        }
        self.next = 0;
        self.until = 0;
    }

    /// Returns the current item, if it is an event.
    #[inline]
    pub(super) fn record(&self) -> Option<Record> {
        let record = self.batch.records.get(self.next.checked_sub(1)?);
        record.copied()
    }

    /// Takes the job back from the threads.
    pub(super) fn recall(&mut self, ahead: &Ahead) {
        if self.job.is_none() {
            self.job = Some(ahead.take(self.origin.index));
        }
    }

    /// Restarts reading at this packet. The threads must not have the job.
    pub(super) fn rewind(&mut self, start: Start) {
        if let Some(job) = &mut self.job {
            job.stream.rewind(start);
        }
        self.batch.clear();
        self.batch.at = start.at;
        self.lost = None;
        self.next = 0;
        self.until = 0;
    }
}
