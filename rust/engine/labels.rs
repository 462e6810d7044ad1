// SPDX-License-Identifier: GPL-2.0

//! Counts delays by label. A label is a value of the event, such as the name of its task, or a
//! value at the event's end: the CPU, or the cgroup or kernel stack of the event's thread. The
//! label selects the row in which the delay is counted.
//!
//! ```text
//!   event (key, data) --Source--> label, 1 to 4 words
//!                                   |
//!                                   | home, then at most 15 others: find, or claim an empty one
//!                                   v
//!   slots   | state: tag, row | words of the label |        written once, never freed
//!                        |
//!   rows    | row 0 | row 1 | ... |     the delays of one label, for each CPU (delays.rs)
//!   stacks  | row 0 | row 1 | ... |     the addresses of one label, if labels are stacks
//!   other   in the unlabelled delays of `Stats`
//! ```
//!
//! Each delay is counted once: in one row, or in `other`. So a reader that adds up all delays needs
//! no consistent view of two counters.
//!
//! # A slot
//!
//! ```text
//!   63        12      11      10     0
//!  +------------+---------+-----------+
//!  |    tag     | claimed | row + 1   |     0: empty
//!  +------------+---------+-----------+
//! ```
//!
//! To claim a slot, a compare-and-swap replaces its empty state with the tag of the label, which is
//! part of the label's hash. The winner takes the next row, stores the words, and then publishes
//! the row in the same state word, with release. No caller waits for the winner: if a slot is
//! claimed with the caller's tag but has no row yet, the delay is counted in `other`. This also
//! holds if the caller interrupts the winner. A different tag means a different label, and the
//! search continues. So no label ever has two slots: a search passes over a slot only if another
//! label has it for good.
//!
//! Rows are given out first come, first served. Once all rows are taken, the delays of further
//! labels are counted in `other`. No label is evicted, so a label that has no row when the last row
//! is taken never gets one.
//!
//! # A search
//!
//! A search starts at the label's *home*, a slot that a single multiplication selects. Most labels
//! are at home, and [`Labels::row_at_home`] looks nowhere else: if that slot has a row and the
//! words of the label, the row is the label's, and no hash is needed.
//!
//! If the home has another label, the search continues with a sequence of slots that the hash
//! selects: a first slot, and the distance from each slot to the next. (The homes of regular labels
//! may be neighbours. A search that went on to the next slot would have to pass all of them.)
//!
//! The table has at least eight slots for each label, so an unsuccessful search usually ends at the
//! first or second slot. If a search finds neither its label nor an empty slot among [`PROBES`]
//! slots, the delay is counted in `other`, too. The seed is random, so labels cannot be chosen to
//! have the same sequence. (They can be chosen to share a home. Each end of a label that is not at
//! home costs a search.)
//!
//! # Stacks
//!
//! With [`Source::Stack`], the kernel stack of the event's thread when the operation ends is the
//! label. A stack is too long for a slot, so the slot has the stack's hash, and the row has the
//! addresses: the winner of a slot stores them before it publishes the row, as it does the words. A
//! search compares the addresses, too, so stacks with equal hashes have a row each.
//!
//! # Contexts
//!
//! [`Labels::row`] and [`Labels::row_at_home`]: any, including NMI. [`Labels::new`] may sleep.
//! Documentation/design/engine.md, section 15, argues why this is correct.

use crate::{
    engine::{
        delays::{self, Delays},
        event::Event,
        hash::Seed,
        platform::Platform,
    },
    sys::{
        atomic::{Acquire, Atomic, Relaxed, Release},
        memory::{NodeSlice, PerCpu},
    },
};
use kernel::prelude::*;

/// Maximum number of words of a label.
pub(crate) const LABEL: usize = 4;

/// Maximum number of addresses of a stack that is a label.
pub(crate) const STACK: usize = 32;

/// Limits of the number of labels of an instance.
pub(crate) const LABELS_MIN: u32 = 2;
pub(crate) const LABELS_MAX: u32 = 1024;

/// Minimum number of slots for each label; it keeps labels at home, and searches short.
const SPARE: usize = 8;

/// Maximum number of slots that a search looks at.
const PROBES: u64 = 16;

/// The bits of a state that hold the number of the row plus one; 0 until the label is published.
const ROW: u64 = (1 << 11) - 1;
const CLAIMED: u64 = ROW + 1;
/// The bits of a state that come from the label's hash.
const TAG: u64 = !(ROW | CLAIMED);
/// Stands in for the row in a slot that was claimed when all rows were taken.
const NO_ROW: u64 = ROW;
const _: () = assert!((LABELS_MAX as u64) < NO_ROW);

/// The words of an event that are its label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The position of the first word, among the words of the key and then of the data.
    pub(crate) at: usize,
    /// Number of bits of the first word below the label.
    pub(crate) shift: u32,
    /// The bits of the first word that belong to the label, after the shift.
    pub(crate) mask: u64,
    /// The number of words, from 1 to [`LABEL`].
    pub(crate) words: usize,
}

impl Place {
    /// Returns the first word of an event's label; `word` returns the event's word at a position.
    #[inline(always)]
    fn first(self, word: impl Fn(usize) -> u64) -> u64 {
        word(self.at).wrapping_shr(self.shift) & self.mask
    }

    /// Returns an event's label; `word` returns the event's word at a position.
    #[inline(always)]
    pub(crate) fn label(self, word: impl Fn(usize) -> u64) -> [u64; LABEL] {
        let next = |nth| match nth < self.words {
            true => word(self.at + nth),
            false => 0,
        };
        [self.first(&word), next(1), next(2), next(3)]
    }
}

/// The origin of labels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// The CPU on which the operation ends.
    Cpu,
    /// The cgroup of a thread when the operation ends; the event has the thread's id at this place.
    Cgroup(Place),
    /// The kernel stack of a thread when the operation ends; the event has the thread's id at this
    /// place.
    Stack(Place),
    /// The words of the event at this place.
    Event(Place),
}

impl Source {
    /// Returns the label of an event with this key and data that ends on a CPU. Returns zeros for a
    /// cgroup and a stack, which are not in the event.
    pub(crate) fn label(self, key: &[u64], data: &[u64], cpu: usize) -> [u64; LABEL] {
        let word = |at: usize| {
            Iterator::chain(key.iter(), data)
                .nth(at)
                .map_or(0, |word| *word)
        };
        match self {
            Source::Cpu => [cpu as u64, 0, 0, 0],
            Source::Cgroup(_) | Source::Stack(_) => [0; LABEL],
            Source::Event(place) => place.label(word),
        }
    }
}

/// The slot of one label, on its own cache line.
#[repr(align(64))]
struct Slot {
    /// See "A slot" at the head of this file.
    state: Atomic<u64>,
    words: [Atomic<u64>; LABEL],
}

/// The delays of one label.
pub(crate) struct Row {
    cpus: PerCpu<[Atomic<u64>; delays::WORDS]>,
}

impl Row {
    fn new<P: Platform>() -> Result<Self> {
        let cpus = PerCpu::<[Atomic<u64>; delays::WORDS]>::zeroed::<P>()?;
        for part in cpus.iter() {
            delays::clear(part);
        }
        Ok(Self { cpus })
    }

    /// Adds a delay.
    #[inline(always)]
    pub(crate) fn record<P: Platform>(&self, guard: &P::Guard, delay: u64) {
        let words = self.cpus.this::<P>(guard);
        delays::record::<P, 0, { delays::BUCKETS_AT }, { delays::WORDS }>(guard, words, delay);
    }
}

impl Delays for Row {
    fn parts(&self) -> impl Iterator<Item = &[Atomic<u64>]> {
        self.cpus.iter().map(|part| part.as_slice())
    }
}

/// The stacks of all rows, if labels are stacks.
struct Stacks {
    /// Maximum number of addresses of a stack.
    depth: usize,
    /// For each row, the number of addresses, or `depth` + 1 if the stack is cut off; then `depth`
    /// addresses, innermost first.
    words: NodeSlice<Atomic<u64>>,
}

impl Stacks {
    /// Returns the words of a row.
    fn of(&self, row: usize) -> Option<&[Atomic<u64>]> {
        let size = self.depth + 1;
        self.words.get(row.checked_mul(size)?..)?.get(..size)
    }
}

/// A stack that is a label: return addresses, innermost first.
pub(crate) struct Stack {
    addresses: [u64; STACK],
    len: usize,
    /// Whether outer functions are missing.
    pub(crate) is_cut: bool,
}

impl Stack {
    /// Returns the addresses; none if no stack was found.
    pub(crate) fn addresses(&self) -> &[u64] {
        self.addresses.get(..self.len).unwrap_or_default()
    }
}

/// The labels of an instance, and their delays.
pub(crate) struct Labels {
    source: Source,
    seed: Seed,
    /// A secret odd number, see [`Labels::home`].
    multiplier: u64,
    /// 64 minus the logarithm of the number of slots.
    shift: u32,
    /// The slots; their number is a power of two.
    slots: NodeSlice<Slot>,
    rows: NodeSlice<Row>,
    stacks: Option<Stacks>,
    /// Number of attempts to take a row; simultaneous attempts may raise it above the number of
    /// rows.
    taken: Atomic<u64>,
}

impl Labels {
    /// Creates a table for `labels` labels, from [`LABELS_MIN`] to [`LABELS_MAX`]. May sleep; fails
    /// with `ENOMEM`.
    pub(crate) fn new<P: Platform>(source: Source, labels: u32, seed: Seed) -> Result<Self> {
        let labels = labels.clamp(1, LABELS_MAX) as usize;
        let slots = Self::slots(labels);
        Ok(Self {
            source,
            seed,
            multiplier: seed.hash(&[0]) | 1,
            shift: u64::BITS - slots.trailing_zeros(),
            slots: NodeSlice::try_new(slots, None, |_| {
                Ok(Slot {
                    state: Atomic::new(0),
                    words: core::array::from_fn(|_| Atomic::new(0)),
                })
            })?,
            rows: NodeSlice::try_new(labels, None, |_| Row::new::<P>())?,
            stacks: None,
            taken: Atomic::new(0),
        })
    }

    /// Adds room for stacks of at most `depth` addresses, from 1 to [`STACK`], which
    /// [`Source::Stack`] needs. May sleep; fails with `ENOMEM`.
    pub(crate) fn with_stacks(self, depth: usize) -> Result<Self> {
        let depth = depth.clamp(1, STACK);
        let words = self.rows.len() * (depth + 1);
        let words = NodeSlice::try_new(words, None, |_| Ok(Atomic::new(0)))?;
        let stacks = Some(Stacks { depth, words });
        Ok(Self { stacks, ..self })
    }

    fn slots(labels: usize) -> usize {
        SPARE * labels.next_power_of_two()
    }

    /// Returns the size of a table in bytes, for `cpus` CPUs and stacks of `depth` addresses;
    /// `depth` is 0 if labels are not stacks.
    pub(crate) fn bytes(labels: u32, cpus: usize, depth: usize) -> usize {
        let labels = labels as usize;
        let stack = if depth == 0 { 0 } else { depth + 1 };
        let row = size_of::<[u64; delays::WORDS]>() * cpus + size_of::<Row>();
        Self::slots(labels) * size_of::<Slot>() + labels * (row + stack * size_of::<u64>())
    }

    /// Returns the maximum number of addresses of a stack; 0 if labels are not stacks.
    pub(crate) fn depth(&self) -> usize {
        self.stacks.as_ref().map_or(0, |stacks| stacks.depth)
    }

    /// Returns the row of an event that the caller owns, if the label is one or two words of the
    /// event and is at home. If not, [`Labels::row`] finds the row.
    #[inline(always)]
    pub(crate) fn row_at_home<const K: usize, const D: usize>(
        &self,
        event: &Event<K, D>,
    ) -> Option<&Row> {
        let Source::Event(place) = self.source else {
            return None;
        };
        let word = |at| event.kept(at);
        match place.words {
            1 => self.at_home(&[place.first(word)]),
            2 => self.at_home(&[place.first(word), word(place.at.wrapping_add(1))]),
            _ => None,
        }
    }

    /// Returns the row of an ending event that the caller owns; `None` for `other`.
    #[inline(always)]
    pub(crate) fn row<P: Platform, const K: usize, const D: usize>(
        &self,
        guard: &P::Guard,
        event: &Event<K, D>,
    ) -> Option<&Row> {
        let word = |at| event.kept(at);
        match self.source {
            Source::Cpu => self.find(&[P::cpu(guard) as u64]),
            Source::Cgroup(place) => self.find(&[P::cgroup_of(place.first(word) as u32)]),
            Source::Stack(place) => self.find_stack_of::<P>(place.first(word) as u32),
            // Not `find`: usually `row_at_home` has already looked at the home.
            Source::Event(place) => self.search(&place.label(word), &[]),
        }
    }

    /// Returns the row of the stack that a thread has now; `None` for `other`.
    ///
    /// Not inlined: other labels need no room for a stack.
    #[inline(never)]
    fn find_stack_of<P: Platform>(&self, tid: u32) -> Option<&Row> {
        // The number of addresses, then the addresses: up to one more than a row holds, which shows
        // that the stack is cut off.
        let mut words = [0; STACK + 2];
        let depth = self.stacks.as_ref()?.depth;
        let len = P::stack_of(tid, words.get_mut(1..depth + 2)?);
        words[0] = len as u64;
        self.find_stack(words.get(..=len.min(depth))?)
    }

    /// Returns the row of a stack, claiming one if the stack is new; `None` for `other`. `words`
    /// holds the number of addresses, then the addresses, as a row does.
    #[inline(always)]
    pub(crate) fn find_stack(&self, words: &[u64]) -> Option<&Row> {
        self.search(&[self.seed.hash_words(words)], words)
    }

    /// Returns the row of a label, claiming one if the label is new; `None` for `other`.
    #[inline(always)]
    pub(crate) fn find<const W: usize>(&self, label: &[u64; W]) -> Option<&Row> {
        const { assert!(W <= LABEL) };
        self.at_home(label).or_else(|| self.search(label, &[]))
    }

    /// Returns the number of the slot where the search for a label starts.
    ///
    /// Words that are 0 at the end of a label do not matter. The result is cheaper than a hash, but
    /// less even: regular labels may share a home.
    #[inline(always)]
    pub(crate) fn home(&self, label: &[u64]) -> usize {
        let mixed = label.iter().fold(0_u64, |mixed, word| mixed ^ *word);
        let product = mixed.wrapping_mul(self.multiplier);
        // Every bit of the label reaches the high bits.
        product.wrapping_shr(self.shift) as usize
    }

    /// Returns the row of a label that is at home. For labels that are not stacks.
    #[inline(always)]
    fn at_home(&self, label: &[u64]) -> Option<&Row> {
        let slot = self.slots.get(self.home(label))?;
        // Acquire: pairs with the release of `claim`. If there is a row, all words of its label are
        // visible below. (Without this order, a word that still seems 0 could make them equal to
        // another label.)
        let state = slot.state.load(Acquire);
        // `None` if there is no row: the number is then beyond the rows.
        let row = self.rows.get((state & ROW).wrapping_sub(1) as usize)?;
        slot.has(label).then_some(row)
    }

    /// Returns the row of a label, claiming one if the label is new; `None` for `other`. If the
    /// label is the hash of a stack, `stack` has the words of that stack, and only a row with the
    /// same words is found; for any other label, `stack` is empty.
    ///
    /// All searches of a table pass labels of the same length.
    #[cold]
    #[inline(never)]
    fn search(&self, label: &[u64], stack: &[u64]) -> Option<&Row> {
        let hash = self.seed.hash_words(label);
        let tag = hash & TAG;
        for step in 0..PROBES {
            let slot = self.slot(label, hash, step)?;
            // Acquire: pairs with the release of `claim`; if there is a row, the words of its label
            // are visible.
            let mut state = slot.state.load(Acquire);
            if state == 0 {
                match self.claim(slot, tag, label, stack) {
                    Ok(row) => return self.rows.get(row?),
                    Err(found) => state = found,
                }
            }
            if state & TAG != tag {
                continue;
            }
            if state & ROW == 0 {
                return None;
            }
            let row = (state & ROW) as usize - 1;
            if slot.has(label) && self.has_stack(row, stack) {
                return self.rows.get(row);
            }
        }
        None
    }

    /// Returns a slot of a search: the home, and then the slots that the hash selects. Since their
    /// distance is odd, none of these is repeated before all slots have been visited; one of them
    /// may be the home.
    fn slot(&self, label: &[u64], hash: u64, step: u64) -> Option<&Slot> {
        let distance = hash >> 32 | 1;
        let mask = self.slots.len().wrapping_sub(1);
        let at = match step {
            0 => self.home(label),
            // The slot comes from the lowest bits, most of which are not in the tag.
            _ => hash.wrapping_add(step.wrapping_mul(distance)) as usize & mask,
        };
        self.slots.get(at)
    }

    /// Whether a published row has this stack. Also true if `stack` is empty, since the label alone
    /// then decides, and if `row` is not a row, because all rows were taken when the slot was
    /// claimed.
    #[inline(always)]
    fn has_stack(&self, row: usize, stack: &[u64]) -> bool {
        if stack.is_empty() {
            return true;
        }
        // The first word is the number of addresses, so no word beyond `stack` matters. Relaxed:
        // ordered by the load of the state.
        let mut words = self.stack_words(row).iter().zip(stack);
        words.all(|(word, wanted)| word.load(Relaxed) == *wanted)
    }

    /// Returns the words of the stack of a row; none if labels are not stacks.
    #[inline(always)]
    fn stack_words(&self, row: usize) -> &[Atomic<u64>] {
        let words = self.stacks.as_ref().and_then(|stacks| stacks.of(row));
        words.unwrap_or_default()
    }

    /// Claims an empty slot for a label, and returns the number of the label's row; `None` if all
    /// rows are taken. Fails with the slot's state if another caller has claimed the slot.
    #[cold]
    #[inline(never)]
    fn claim(
        &self,
        slot: &Slot,
        tag: u64,
        label: &[u64],
        stack: &[u64],
    ) -> Result<Option<usize>, u64> {
        let rows = self.rows.len() as u64;
        // Relaxed: rows are never returned, so this stays true.
        if self.taken.load(Relaxed) >= rows {
            return Ok(None);
        }
        // Relaxed: it selects the caller that writes the slot, and publishes nothing.
        if slot.state.cmpxchg(0, tag | CLAIMED, Relaxed).is_err() {
            // Acquire: as in `search`.
            return Err(slot.state.load(Acquire));
        }
        // Relaxed: each caller gets a different number in any order.
        let row = self.taken.fetch_add(1, Relaxed);
        let kept = self.stack_words(row as usize).iter().zip(stack);
        for (to, word) in Iterator::chain(slot.words.iter().zip(label), kept) {
            // Relaxed: published by the store below.
            to.store(*word, Relaxed);
        }
        let (number, row) = if row < rows {
            (row + 1, Some(row as usize))
        } else {
            (NO_ROW, None)
        };
        // Release: a caller that sees the row sees the words.
        slot.state.store(tag | CLAIMED | number, Release);
        Ok(row)
    }

    /// Returns the number of labels that have a row.
    pub(crate) fn used(&self) -> usize {
        // Relaxed: a number that only grows.
        self.rows.len().min(self.taken.load(Relaxed) as usize)
    }

    /// Returns the maximum number of labels.
    pub(crate) fn max(&self) -> usize {
        self.rows.len()
    }

    /// Returns all rows; the first [`Labels::used`] have labels.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Returns the label of a row, and the row; `None` if it is not published yet.
    pub(crate) fn labelled(&self, row: usize) -> Option<([u64; LABEL], &Row)> {
        let number = row as u64 + 1;
        // Acquire: as in `search`.
        let is_it = |slot: &&Slot| slot.state.load(Acquire) & ROW == number;
        let slot = self.slots.iter().find(is_it)?;
        // Relaxed: a published slot does not change.
        let label = core::array::from_fn(|at| slot.words[at].load(Relaxed));
        Some((label, self.rows.get(row)?))
    }

    /// Returns the stack of a row that [`Labels::labelled`] has returned; `None` if labels are not
    /// stacks.
    pub(crate) fn stack(&self, row: usize) -> Option<Stack> {
        let (len, words) = self.stack_words(row).split_first()?;
        // Relaxed, here and below: ordered by the load of the state in `labelled`.
        let len = len.load(Relaxed) as usize;
        let mut addresses = [0; STACK];
        for (to, word) in addresses.iter_mut().zip(words) {
            *to = word.load(Relaxed);
        }
        Some(Stack {
            addresses,
            len: len.min(words.len()),
            is_cut: len > words.len(),
        })
    }
}

impl Slot {
    /// Whether a published slot has this label.
    #[inline(always)]
    fn has(&self, label: &[u64]) -> bool {
        // Relaxed: ordered by the load of the state.
        let mut words = self.words.iter().zip(label);
        words.all(|(word, wanted)| word.load(Relaxed) == *wanted)
    }
}
