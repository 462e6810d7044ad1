// SPDX-License-Identifier: GPL-2.0

//! Access to the event of one operation, for callers that read, change or build it.

use crate::engine::event::Event;

/// Access to an event, as passed to the closures of [`Engine::update`](super::Engine::update) or
/// [`Engine::event_out`](super::Engine::event_out), for instance. Only the owner of the event gets
/// mutable access.
pub(crate) struct Open<'a, const K: usize, const D: usize> {
    pub(super) event: &'a Event<K, D>,
}

impl<const K: usize, const D: usize> Open<'_, K, D> {
    /// Returns this access by value, for callees that keep it in a register.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Open<'_, K, D> {
        Open { event: self.event }
    }

    /// Returns the data.
    pub(crate) fn data(&self) -> [u64; D] {
        self.event.data()
    }

    /// Replaces the data.
    pub(crate) fn set_data(&mut self, data: &[u64; D]) {
        self.event.set_data(data);
    }

    /// Replaces `W` words of the data, from the word `AT` on.
    #[inline(always)]
    pub(crate) fn set_words<const AT: usize, const W: usize>(&mut self, words: &[u64; W]) {
        const { assert!(AT + W <= D) };
        self.event.set_words(AT, words);
    }

    /// Returns the start of the operation, in nanoseconds.
    pub(crate) fn start(&self) -> u64 {
        self.event.start()
    }

    /// Whether the operation was found in flight: it began at the recorded start or before.
    pub(crate) fn was_found(&self) -> bool {
        self.event.was_found()
    }

    /// Moves the start. The new start must not be earlier: the search for timeouts may rely on the
    /// old start.
    pub(crate) fn set_start(&mut self, start: u64) {
        self.event.set_start(start);
    }
}

/// What the closure of [`Engine::update`](super::Engine::update) decides about the operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The operation continues.
    Keep,
    /// The operation ceased to exist; counted as `gone`.
    Gone,
    /// The event stood for an earlier operation, whose end was not seen, and now stands for a new
    /// operation with the same key. The old operation is counted in `replaced`, the new one in
    /// `attempts` and `started`.
    Renewed,
}
