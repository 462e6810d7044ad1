// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Threads that decode the next batches of streams while the reader merges the current ones.
//!
//! ```text
//! reader  --send-->  queue  --a thread-->  decode  -->  done, by stream  --take-->  reader
//!                      '------the reader, while its job is not done------'
//! ```
//!
//! Each stream has one job, which owns it. So the batches of a stream are decoded in order, by one thread at a time.
//! The contents of a batch do not depend on which thread decodes it, or when.
//!
//! *No deadlock.* A thread that decodes waits for no other thread, and holds no lock. The reader sleeps only if its job
//! is not done and the queue is empty. Then a thread is decoding that job, and wakes the reader. Otherwise the reader
//! decodes queued jobs itself. So the reader never waits for a thread that sleeps, and all processors are busy even if
//! decoding takes longer than merging.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::error::{Error, What};
use crate::schema::Schema;
use crate::stream::{Batch, Stream};

/// A stream, and the batch for its next events.
pub(super) struct Job {
    pub(super) schema: Arc<Schema>,
    pub(super) stream: Stream,
    pub(super) batch: Batch,
}

impl Job {
    fn decode(&mut self) {
        self.stream.next_batch(&self.schema, &mut self.batch);
    }

    fn index(&self) -> usize {
        self.stream.origin.index
    }

    /// Ends the stream with an error, after a panic.
    fn fail(&mut self) {
        let part = self.stream.origin.parts.first();
        let path = part.map_or(Path::new(""), |part| part.path.as_path());
        let what = io::Error::other("a fault of the reader: decoding this stream panicked");
        self.batch.fail(Error::new(path, 0, What::Io(what)));
    }
}

/// The threads. They end when this is dropped.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when there are jobs, or when the threads must end.
    work: Condvar,
    /// Signalled when the job for which the reader waits is done.
    done: Condvar,
    decode: fn(&mut Job),
}

struct State {
    queue: VecDeque<Box<Job>>,
    /// For each stream its job, once it is done.
    done: Vec<Option<Box<Job>>>,
    /// The stream for whose job the reader waits.
    awaited: Option<usize>,
    /// Number of jobs that the reader has sent and not taken back.
    away: usize,
    /// Number of threads that sleep.
    idle: usize,
    closed: bool,
}

impl State {
    fn put(&mut self, job: Box<Job>) {
        if let Some(place) = self.done.get_mut(job.index()) {
            *place = Some(job);
        }
    }
}

impl Ahead {
    /// Starts up to `threads` threads for `streams` streams. Returns `None` if none can be started.
    pub(super) fn start(threads: usize, streams: usize) -> Option<Self> {
        Self::start_with(threads, streams, Job::decode)
    }

    fn start_with(threads: usize, streams: usize, decode: fn(&mut Job)) -> Option<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                done: (0..streams).map(|_| None).collect(),
                awaited: None,
                away: 0,
                idle: 0,
                closed: false,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
            decode,
        });
        let start = |_| {
            let shared = Arc::clone(&shared);
            let thread = Builder::new().name("lt-ctf".into());
            thread.spawn(move || shared.work()).ok()
        };
        let threads: Vec<_> = (0..threads).map_while(start).collect();
        (!threads.is_empty()).then_some(Self { shared, threads })
    }

    /// Gives a job to the threads.
    pub(super) fn send(&self, job: Box<Job>) {
        let mut state = self.shared.lock();
        state.queue.push_back(job);
        state.away += 1;
        // Waking a thread is a system call, so with many streams a thread is woken for several jobs at once. Nothing
        // depends on it: the reader can decode the jobs, too.
        let wake = state.idle > 0 && 8 * state.queue.len() >= state.away;
        drop(state);
        if wake {
            self.shared.work.notify_one();
        }
    }

    /// Returns the job of a stream, which must have been sent, once it is done. Decodes queued jobs until then.
    pub(super) fn take(&self, stream: usize) -> Box<Job> {
        let mut state = self.shared.lock();
        loop {
            if let Some(job) = state.done.get_mut(stream).and_then(Option::take) {
                state.away -= 1;
                return job;
            }
            if let Some(mut job) = state.queue.pop_front() {
                drop(state);
                self.shared.run(&mut job);
                state = self.shared.lock();
                state.put(job);
            } else {
                state.awaited = Some(stream);
                state = wait(&self.shared.done, state);
                state.awaited = None;
            }
        }
    }

    /// Gives up on all queued jobs: they count as done. Those that are being decoded continue.
    pub(super) fn recall(&self) {
        let mut state = self.shared.lock();
        for job in std::mem::take(&mut state.queue) {
            state.put(job);
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // Panics have been caught.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes jobs in a thread, until the reader is dropped.
    fn work(&self) {
        let mut state = self.lock();
        while !state.closed {
            let Some(mut job) = state.queue.pop_front() else {
                state.idle += 1;
                state = wait(&self.work, state);
                state.idle -= 1;
                continue;
            };
            drop(state);
            self.run(&mut job);
            state = self.lock();
            if state.awaited == Some(job.index()) {
                self.done.notify_one();
            }
            state.put(job);
        }
    }

    fn run(&self, job: &mut Job) {
        // After a panic, neither stream nor batch is used again before it has been reset.
        if catch_unwind(AssertUnwindSafe(|| (self.decode)(job))).is_err() {
            job.fail();
        }
    }
}

fn wait<'a>(signal: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    signal.wait(state).unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Origin;

    fn job(index: usize) -> Box<Job> {
        let schema = Arc::new(Schema::default());
        let origin = Origin {
            index,
            trace: 0,
            class: 0,
            parts: Arc::default(),
            growing: false,
        };
        Box::new(Job {
            stream: Stream::new(&schema, origin),
            schema,
            batch: Batch::default(),
        })
    }

    #[test]
    fn a_panic_is_an_error_and_the_end_of_its_stream() {
        let decode = |job: &mut Job| {
            assert_ne!(job.index(), 1, "this panic belongs to the test");
            job.batch.last = true;
        };
        let ahead = Ahead::start_with(2, 3, decode).unwrap();
        (0..3).for_each(|index| ahead.send(job(index)));
        for index in [1, 0, 2] {
            let mut job = ahead.take(index);
            assert_eq!((job.index(), job.batch.last), (index, true));
            let first = job.batch.head.pop_front();
            assert_eq!(first.is_some_and(|item| item.is_err()), index == 1);
        }
    }

    #[test]
    fn the_threads_end_when_the_reader_is_dropped() {
        let ahead = Ahead::start_with(3, 8, |_| {}).unwrap();
        (0..8).for_each(|index| ahead.send(job(index)));
        let shared = Arc::downgrade(&ahead.shared);
        drop(ahead);
        assert!(shared.upgrade().is_none());
    }
}
