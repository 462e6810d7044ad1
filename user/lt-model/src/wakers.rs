// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The wakers, packed.

use crate::context::{Context, Helper, Waker};
use crate::ids::{ThreadId, WakerId};
use crate::list::{push, with_room};
use crate::request::Request;
use crate::tiles::Kinds;

/// Stands for no thread.
const NONE: u32 = u32::MAX;

/// All wakers, by number, in 16 bytes each.
#[derive(Debug, Clone, Default)]
pub struct Wakers {
    times: Vec<u64>,
    threads: Vec<u32>,
    /// Index in `known` of the CPU and the context that had interrupted the thread.
    kinds: Vec<u32>,
    known: Kinds<(u32, Option<Context>)>,
    /// The completed requests, by the number of the waker.
    requests: Vec<(u32, Request)>,
    /// Numbers of the wakers that are timers set by the wakee, or by another thread of its program.
    timeouts: Vec<u32>,
    /// Helpers, by the number of the waker.
    helpers: Vec<(u32, Helper)>,
    /// Number of wakers that were not stored.
    counted: usize,
}

impl Wakers {
    /// Size of a waker, in bytes.
    const BYTES: usize = size_of::<u64>() + 2 * size_of::<u32>();

    /// Adds a waker and returns its number.
    pub fn push(&mut self, waker: Waker) -> WakerId {
        let id = WakerId(self.times.len() as u32);
        push(&mut self.times, waker.time);
        push(
            &mut self.threads,
            waker.thread.map_or(NONE, |thread| thread.0),
        );
        push(
            &mut self.kinds,
            self.known.number((waker.cpu, waker.context)),
        );
        id
    }

    /// The waker with this number.
    #[must_use]
    pub fn get(&self, id: WakerId) -> Option<Waker> {
        let index = id.0 as usize;
        let kind = *self.kinds.get(index)?;
        let (cpu, context) = *self.known.list().get(kind as usize)?;
        let thread = self.threads.get(index).filter(|thread| **thread != NONE);
        Some(Waker {
            time: *self.times.get(index)?,
            cpu,
            thread: thread.map(|thread| ThreadId(*thread)),
            context,
        })
    }

    /// Records that the last waker is the completion of `request`.
    pub(crate) fn completes(&mut self, request: Request) {
        if let Some(last) = self.times.len().checked_sub(1) {
            push(&mut self.requests, (last as u32, request));
        }
    }

    /// Records that the last waker is a timer set by the wakee, or by another thread of its program.
    pub(crate) fn times_out(&mut self) {
        if let Some(last) = self.times.len().checked_sub(1) {
            push(&mut self.timeouts, last as u32);
        }
    }

    /// Whether the waker is recorded as a timer set by the wakee, or by another thread of its program.
    pub(crate) fn is_timeout(&self, id: WakerId) -> bool {
        self.timeouts.binary_search(&id.0).is_ok()
    }

    /// The request whose completion was this waker.
    pub(crate) fn request(&self, id: WakerId) -> Option<Request> {
        let place = self.requests.binary_search_by_key(&id.0, |(of, _)| *of);
        self.requests.get(place.ok()?).map(|(_, request)| *request)
    }

    /// The number of the next waker.
    pub(crate) fn next(&self) -> u32 {
        self.times.len() as u32
    }

    /// Sets the helper of the last waker.
    pub(crate) fn helped(&mut self, helper: Helper) {
        if let Some(last) = self.times.len().checked_sub(1) {
            push(&mut self.helpers, (last as u32, helper));
        }
    }

    /// Drops the due times of timers that were wakers on `cpu`, from number `from` on.
    pub(crate) fn not_due(&mut self, from: u32, cpu: u32) {
        let Self {
            helpers,
            kinds,
            known,
            ..
        } = self;
        let is_of_cpu = |id: u32| {
            let kind = kinds.get(id as usize).copied();
            let kind = kind.and_then(|kind| known.list().get(kind as usize));
            kind.is_some_and(|(of, _)| *of == cpu)
        };
        let last = helpers.iter_mut().rev();
        for (id, helper) in last.take_while(|(id, _)| *id >= from) {
            if let Helper::Handled(_, due) = helper
                && is_of_cpu(*id)
            {
                *due = None;
            }
        }
    }

    /// The helper of a waker.
    pub(crate) fn helper(&self, id: WakerId) -> Option<Helper> {
        let place = self.helpers.binary_search_by_key(&id.0, |(of, _)| *of);
        self.helpers.get(place.ok()?).map(|(_, helper)| *helper)
    }

    /// Counts a waker without storing it.
    pub(crate) fn count(&mut self) {
        self.counted += 1;
    }

    pub(crate) fn bytes(&self) -> usize {
        // A waker that was not stored is not in the interval that it ended, either.
        let counted = self.counted * (Self::BYTES + size_of::<(u32, WakerId)>());
        with_room(self.times.len() * Self::BYTES + counted)
            + with_room(self.requests.len() * size_of::<(u32, Request)>())
            + with_room(self.timeouts.len() * size_of::<u32>())
            + with_room(self.helpers.len() * size_of::<(u32, Helper)>())
            + self.known.bytes()
    }
}

impl FromIterator<Waker> for Wakers {
    fn from_iter<I: IntoIterator<Item = Waker>>(all: I) -> Self {
        let mut wakers = Self::default();
        for waker in all {
            wakers.push(waker);
        }
        wakers
    }
}
