// SPDX-License-Identifier: GPL-2.0

//! The data of an event of the `offcpu` tracker, and the fields of its alerts.

use crate::{
    alert::record::{
        actor::{Actor, Place},
        Owner,
        DETAIL, //
    },
    instance::Details,
    sys::{
        sched::{policy_name, State},
        stack::{CompactStack, COMPACT_WORDS},
        symbol::Symbol,
        task::Context, //
    },
    text::Escaped, //
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// A task that is off the CPU.
#[derive(Clone, Copy, Default)]
pub(super) struct Off {
    pub(super) owner: Owner,
    /// Where it was, and its priority.
    pub(super) place: Place,
    /// Why it was switched out.
    pub(super) state: State,
    /// The waker; the note has the context. None yet, if `woken` is 0.
    pub(super) waker: Actor,
    /// When it was woken; in an alert, how long it has been runnable since then. Nanoseconds.
    pub(super) woken: u64,
    /// The waker's stack, if that was late.
    pub(super) waker_stack: CompactStack,
}

/// The words of [`Off`].
pub(super) const WORDS: usize = Owner::WORDS + Off::DETAIL_WORDS;

/// The part of it that is known at the begin. The last word is `woken`: the stack after it is
/// undefined until that is set.
pub(super) const FIRST_WORDS: usize = WORDS - COMPACT_WORDS;

/// The position of the waker, which is followed by `woken`.
pub(super) const WAKER: usize = FIRST_WORDS - 1 - Actor::WORDS;

impl Off {
    /// The words of an alert that it uses.
    pub(super) const DETAIL_WORDS: usize = 3 + Actor::WORDS + COMPACT_WORDS;

    /// Packs for an event what is known at the begin: it has not been woken.
    #[inline(always)]
    pub(super) fn first_words(&self) -> [u64; FIRST_WORDS] {
        let [o0, o1, o2] = self.owner.to_words();
        let (place, state) = (self.place.to_word(), self.state.to_word());
        [o0, o1, o2, place, state, 0, 0, 0, 0]
    }

    /// All words, for an event of a task that was found off the CPU.
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let first = self.first_words();
        words[..FIRST_WORDS].copy_from_slice(&first);
        words
    }

    /// What is known when `waker` wakes it, at `now`.
    #[inline(always)]
    pub(super) fn woken_words(waker: Actor, now: u64) -> [u64; Actor::WORDS + 1] {
        let [w0, w1, w2] = waker.to_words();
        [w0, w1, w2, now]
    }

    #[inline(always)]
    fn to_detail(self) -> [u64; Self::DETAIL_WORDS] {
        let [w0, w1, w2] = self.waker.to_words();
        let mut words = [0; Self::DETAIL_WORDS];
        let (head, stack) = words.split_at_mut(Self::DETAIL_WORDS - COMPACT_WORDS);
        let place = self.place.to_word();
        head.copy_from_slice(&[place, self.state.to_word(), w0, w1, w2, self.woken]);
        stack.copy_from_slice(&self.waker_stack.0);
        words
    }

    /// From the words of an event.
    pub(super) fn from_words(words: &[u64; WORDS]) -> Self {
        let [o0, o1, o2, rest @ ..] = words;
        let mut off = Self::from_detail(rest);
        off.owner = Owner::from_words([*o0, *o1, *o2]);
        if off.woken == 0 {
            off.waker_stack = CompactStack::default();
        }
        off
    }

    /// From the words of an event after the owner, or from those of an alert, without the
    /// owner.
    pub(super) fn from_detail(words: &[u64]) -> Self {
        let Some([place, state, w0, w1, w2, woken, rest @ ..]) = words.get(..Self::DETAIL_WORDS)
        else {
            return Self::default();
        };
        let mut stack = [0; COMPACT_WORDS];
        stack.copy_from_slice(rest);
        Self {
            owner: Owner::default(),
            place: Place::from_word(*place),
            state: State::from_word(*state),
            waker: Actor::from_words([*w0, *w1, *w2]),
            woken: *woken,
            waker_stack: CompactStack(stack),
        }
    }

    /// Whether it was woken before it was switched out: it had gone to sleep, has been switched in,
    /// and no waking came in between. For an event that has ended.
    pub(super) fn was_woken_early(&self) -> bool {
        self.woken == 0 && !self.state.is_runnable()
    }

    /// The details of an alert at `now`.
    pub(super) fn details(&self, now: u64) -> Details {
        let queued = match self.woken {
            0 => 0,
            woken => now.saturating_sub(woken),
        };
        let said = Self {
            woken: queued,
            ..*self
        };
        let mut words = [0; DETAIL];
        words[..Self::DETAIL_WORDS].copy_from_slice(&said.to_detail());
        Details {
            owner: self.owner,
            words,
        }
    }

    /// What is known before the end, as fields of a line.
    pub(super) fn named(&self) -> impl fmt::Display + '_ {
        struct Fields<'a>(&'a Off);
        impl fmt::Display for Fields<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let off = self.0;
                f.write_fmt(fmt!(
                    "prio={} policy={} from={} state={} {} context={}",
                    off.place.prio,
                    policy_name(off.place.policy.into()),
                    off.place.cpu,
                    off.state,
                    off.waker.named("waker"),
                    Context::from_number(off.waker.note).name()
                ))
            }
        }
        Fields(self)
    }
}

/// As fields of an alert's line.
impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{} queued={}", self.named(), self.woken))?;
        let mut entries = self.waker_stack.entries().peekable();
        // The function by which a tracepoint calls its probes is not shown.
        let is_ours = |&address: &u64| Symbol(address).starts_with("__traceiter_");
        while entries.next_if(is_ours).is_some() {}
        if entries.peek().is_none() {
            return Ok(());
        }
        f.write_str(" waker_stack=\"")?;
        for (i, address) in entries.enumerate() {
            let comma = if i == 0 { "" } else { "," };
            Escaped(f).write_fmt(fmt!("{comma}{}", Symbol(address)))?;
        }
        f.write_str("\"")
    }
}
