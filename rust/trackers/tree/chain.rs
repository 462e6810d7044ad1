// SPDX-License-Identifier: GPL-2.0

//! The wake chain of a tip: the steps from its origin to where it is now.
//!
//! ```text
//!   origin                                                              last
//!     |---- step ----|------ step ------|-- step --| ... |---- step ----|
//!      the sum of all steps is last - origin, to the nanosecond, always
//! ```
//!
//! A step is two words. The first holds its kind, its CPU, and the time since the previous step;
//! the second holds its subject. Further data takes up places of steps: one for the name of a
//! step's task ([`Kind::Name`]), up to five for the cookie of a unit of work, one for the CPU's
//! activity while a task waited, and up to five, if they are free, for the rivals that had the CPU
//! in the longest wait. If a time does not fit, the excess is added to the total time of the steps
//! that are left out. When there is no room, the first [`FIRST`] places and the latest ones stay.
//! Of the steps in between, only their number, their total time, and the start of the first are
//! kept. Before any step is left out, repeated preemptions of one task become one step (fold.rs).
//!
//! A chain is words, in an event, in per-CPU memory, or on the stack ([`Words`]), and is changed in
//! place. This code uses only atomics of the kernel: user/engine tests the same files. Any context.

#[path = "chain/counts.rs"]
mod counts;
#[path = "chain/fold.rs"]
mod fold;
#[path = "chain/log.rs"]
pub(crate) mod log;
#[path = "chain/look.rs"]
mod look;
#[path = "chain/notes.rs"]
mod notes;
#[path = "chain/read.rs"]
mod read;
#[path = "chain/rivals.rs"]
pub(crate) mod rivals;
#[path = "chain/row.rs"]
mod row;
#[path = "chain/step.rs"]
mod step;
#[path = "chain/wait.rs"]
pub(crate) mod wait;
#[path = "chain/words.rs"]
mod words;

#[allow(
    unused_imports,
    reason = "tests include this file alone, and need less of it"
)]
pub(crate) use self::{
    counts::{Counts, Origin, State},
    fold::{of_preempted, Preempted},
    look::Look,
    notes::{note, noted_at, settle, state, MERGED, NOTES, SLEPT, WAKER, WOKEN},
    read::{cookie, each, of_split, split, Shown, SPLIT},
    rivals::Rivals,
    step::{begin, of_task, task, waker_of, Kind, Step},
    wait::Spent,
    words::Words,
};
use step::is_attached;

/// Number of places for steps.
pub(crate) const PLACES: usize = 14;

/// Number of places that are never left out.
const FIRST: usize = 4;

/// Number of words of the steps.
pub(crate) const STEPS: usize = 2 * PLACES;

/// Number of words of the name of an interrupt's action. Only a chain that begins with a device
/// interrupt has one. In other chains these words are undefined, as are the words of unused places
/// and the bytes after the end of the name: [`split`] leaves all of them out.
pub(crate) const NAME: usize = 4;

/// Position of the time of the last step.
pub(crate) const LAST: usize = 0;
/// Position of the sum of the times of the steps left out, each since its previous step, and of the
/// excess of all times over [`LONGEST`]. The time of the first step left out is also kept
/// separately: see [`Look::before_more`].
const MORE: usize = 1;
/// Position of [`Counts`].
pub(crate) const COUNTS: usize = 2;
/// Position of the CPU, priority and policy of the task that was woken or switched in last.
pub(crate) const PLACE: usize = 3;
/// Position of the name of the action of the interrupt at the origin.
const ACTION: usize = 4;
const FIRST_STEP: usize = ACTION + NAME;

/// Number of words of a chain, without its start.
pub(crate) const WORDS: usize = FIRST_STEP + STEPS;

const KIND_AT: u32 = 59;
const CPU_AT: u32 = 46;
const CPU_BITS: u32 = 13;

/// Maximum time of a step, in nanoseconds: 19 hours.
pub(crate) const LONGEST: u64 = (1 << CPU_AT) - 1;

/// Returns the first word of a step. The time is at most [`LONGEST`].
#[inline(always)]
fn tag_of(kind: Kind, cpu: u32, time: u64) -> u64 {
    let cpu = u64::from(cpu) & ((1 << CPU_BITS) - 1);
    (kind as u64) << KIND_AT | cpu << CPU_AT | time
}

/// Number of bytes of a name that fit in the place of a step, and number of the name's bits that
/// are in the first word of the place.
const NAME_BYTES: usize = 15;
const NAME_BITS: u32 = 56;

/// Maximum length of a cookie.
pub(crate) const COOKIE_MAX: usize = 64;
// Even with a cookie there is room for the places that are never left out, with a name, and for the
// start and the end of the work.
const _: () = assert!(FIRST + 3 + COOKIE_MAX.div_ceil(NAME_BYTES) <= PLACES);

/// Returns the words of the place of a name, which has at most [`NAME_BYTES`].
#[inline(always)]
pub(crate) fn place_of_name([low, high]: [u64; 2]) -> [u64; 2] {
    // The first 7 bytes fit besides the kind.
    let tag = (Kind::Name as u64) << KIND_AT | low & ((1 << NAME_BITS) - 1);
    [tag, low >> NAME_BITS | high << (64 - NAME_BITS)]
}

/// Returns the name in the words of a place.
#[inline(always)]
fn name_of(low: u64, high: u64) -> [u64; 2] {
    [
        low & ((1 << NAME_BITS) - 1) | high << NAME_BITS,
        high >> (64 - NAME_BITS),
    ]
}

/// Unpacks the result of [`tag_of`]; `None` for a word that is not a step's.
#[inline(always)]
fn of_tag(tag: u64) -> Option<(Kind, u32, u64)> {
    let kind = Kind::of(tag).filter(|_| !is_attached(tag))?;
    let cpu = (tag >> CPU_AT) as u32 & ((1 << CPU_BITS) - 1);
    Some((kind, cpu, tag & LONGEST))
}
impl Look for [u64; WORDS] {
    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self[at]
    }
}

impl Words for [u64; WORDS] {
    #[inline(always)]
    fn set(&mut self, at: usize, word: u64) {
        self[at] = word;
    }
}

/// A chain on the stack.
pub(crate) type Chain = [u64; WORDS];
