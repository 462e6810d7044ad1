// SPDX-License-Identifier: GPL-2.0

//! The data of an event of `pair`, and the fields of its alert.

use crate::{
    alert::record::{Owner, DETAIL},
    control::fields::FIELDS,
    instance::Details,
    sys::{
        symbol::{Limit, Raw},
        task::Context,
    },
};
use kernel::{
    fmt::{self, Write},
    prelude::*, //
};

/// The values that were taken at a point.
pub(super) type FieldValues = [u64; FIELDS];

/// The words of an event.
pub(super) const WORDS: usize = Owner::WORDS + 1 + FIELDS;

/// A begin, and its end if there was one.
#[derive(Clone, Copy)]
pub(super) struct PairEvent {
    /// The task at the begin.
    pub(super) owner: Owner,
    /// Its context.
    pub(super) context: Context,
    pub(super) key: FieldValues,
    /// The shown values of the begin.
    pub(super) begin: FieldValues,
    /// The shown values of the end. Not in an event.
    pub(super) end: FieldValues,
    /// The numbers of fields of these three.
    pub(super) counts: [u8; 3],
}

impl PairEvent {
    /// The words of an alert that it uses.
    pub(super) const DETAIL_WORDS: usize = 1 + 3 * FIELDS;

    fn note(self) -> u64 {
        let [key, begin, end] = self.counts.map(u64::from);
        self.context as u64 | key << 8 | begin << 16 | end << 24
    }

    fn with_note(self, note: u64) -> Self {
        Self {
            context: Context::from_number((note & 0xff) as u32),
            counts: [8, 16, 24].map(|shift: u32| (note >> shift) as u8),
            ..self
        }
    }

    const EMPTY: Self = Self {
        owner: Owner {
            pid: 0,
            tid: 0,
            start_mark: 0,
            comm: [0; 2],
        },
        context: Context::Task,
        key: [0; FIELDS],
        begin: [0; FIELDS],
        end: [0; FIELDS],
        counts: [0; 3],
    };

    /// Packs it into an event's words.
    #[inline(always)]
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let [o0, o1, o2] = self.owner.to_words();
        let [b0, b1] = self.begin;
        [o0, o1, o2, self.note(), b0, b1]
    }

    /// The inverse of [`PairEvent::to_words`].
    pub(super) fn from_words(words: &[u64; WORDS], key: FieldValues) -> Self {
        let [o0, o1, o2, note, b0, b1] = *words;
        Self {
            owner: Owner::from_words([o0, o1, o2]),
            key,
            begin: [b0, b1],
            ..Self::EMPTY
        }
        .with_note(note)
    }

    /// The details of its alert.
    pub(super) fn details(self) -> Details {
        let mut words = [0; DETAIL];
        let ([k0, k1], [b0, b1], [e0, e1]) = (self.key, self.begin, self.end);
        let used: [u64; Self::DETAIL_WORDS] = [self.note(), k0, k1, b0, b1, e0, e1];
        words[..Self::DETAIL_WORDS].copy_from_slice(&used);
        Details {
            owner: self.owner,
            words,
        }
    }

    /// The inverse of [`PairEvent::details`], except the owner.
    pub(super) fn from_detail(words: &[u64; DETAIL]) -> Self {
        let [note, k0, k1, b0, b1, e0, e1, ..] = *words;
        Self {
            key: [k0, k1],
            begin: [b0, b1],
            end: [e0, e1],
            ..Self::EMPTY
        }
        .with_note(note)
    }

    /// As fields of a line, with those of the end if there was one.
    pub(super) fn named(self, has_ended: bool, limit: Limit) -> impl fmt::Display {
        Named {
            event: self,
            has_ended,
            limit,
        }
    }
}

struct Named {
    event: PairEvent,
    has_ended: bool,
    limit: Limit,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PairEvent {
            context,
            key,
            begin,
            end,
            counts: [keys, begins, ends],
            ..
        } = self.event;
        f.write_fmt(fmt!("context={}", context.name()))?;
        let ends = if self.has_ended { ends } else { 0 };
        for (name, values, count) in [
            ("key", key, keys),
            ("begin", begin, begins),
            ("end", end, ends),
        ] {
            for (at, &value) in values.iter().take(usize::from(count)).enumerate() {
                if at == 0 {
                    f.write_fmt(fmt!(" {name}="))?;
                } else {
                    f.write_char(',')?;
                }
                f.write_fmt(fmt!("{}", Raw::new(value, self.limit)))?;
            }
        }
        Ok(())
    }
}
