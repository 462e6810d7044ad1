// SPDX-License-Identifier: GPL-2.0

//! Folds repeated preemptions of one task into one step.
//!
//! ```text
//!   switch A   preempted X   switch A   preempted Y   switch A        A runs 9, X 1, A 7, Y 2
//!            9             1          7             2
//!   switch A   preempted Y*2   switch A                               A runs 16, others 3
//!            16              3
//! ```
//!
//! On PREEMPT_RT each tick preempts a task of normal priority, and each preemption takes at least
//! two places. So if a chain has no room, the running times of the task are added up, and so are
//! the times of its preemptions. The step keeps the number of preemptions, and the thread that
//! preempted the task for longest. Only the order of the preemptions and the other threads are
//! lost.
//!
//! The subject of a folded step:
//!
//! ```text
//!   63         48 47      32 31      22 21      0
//!  | the longest | priority | how often |   tid  |
//! ```

use super::{
    step::{is_attached, of_task},
    Kind, Look, Spent, Words, FIRST_STEP, KIND_AT, LONGEST, PLACES,
};

const TID_BITS: u32 = 22;
const TIMES_BITS: u32 = 10;
/// Maximum number of preemptions that a step records. A step with this number may stand for more.
const MOST: u32 = (1 << TIMES_BITS) - 1;
const PRIO_AT: u32 = 32;
const LONGEST_AT: u32 = 48;
/// Number of bits of the longest time that are kept below its leading bit.
const DIGITS: u32 = 10;

/// The subject of [`Kind::Preempted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Preempted {
    /// The preempting thread; of several threads, the thread that ran for longest.
    pub(crate) tid: u32,
    pub(crate) prio: i32,
    /// Number of preemptions that the step stands for, at most 1023.
    pub(crate) times: u32,
    /// The longest time, by [`rough`]; 0 for a single preemption.
    longest: u16,
}

/// Unpacks the subject of a [`Kind::Preempted`].
pub(crate) fn of_preempted(subject: u64) -> Preempted {
    let (low, prio) = of_task(subject);
    let times = low >> TID_BITS;
    let tid = low & ((1 << TID_BITS) - 1);
    match times {
        0 => Preempted {
            tid,
            prio,
            times: 1,
            longest: 0,
        },
        _ => Preempted {
            tid,
            prio: i32::from(prio as i16),
            times,
            longest: (subject >> LONGEST_AT) as u16,
        },
    }
}

impl Preempted {
    fn to_word(self) -> u64 {
        let prio = u64::from(self.prio as i16 as u16);
        u64::from(self.longest) << LONGEST_AT
            | prio << PRIO_AT
            | u64::from(self.times.min(MOST)) << TID_BITS
            | u64::from(self.tid)
    }
}

/// Returns the number of preemptions among the steps that a chain has left out; 0 if the number is
/// not known, since one of the remaining steps may stand for more preemptions than it records.
pub(super) fn left_out(chain: &impl Look) -> u64 {
    let counts = chain.counts();
    let mut kept = 0;
    for at in (0..counts.places()).map(|place| FIRST_STEP + 2 * place) {
        if chain.get(at) >> KIND_AT == Kind::Preempted as u64 {
            match of_preempted(chain.get(at + 1)).times {
                MOST => return 0,
                times => kept += u64::from(times),
            }
        }
    }
    counts.preempted().saturating_sub(kept)
}

/// Returns an approximation of a time, in 16 bits. A longer time never has a smaller number.
fn rough(time: u64) -> u16 {
    let bits = u64::BITS - time.leading_zeros();
    let more = bits.saturating_sub(DIGITS + 1);
    // If any bits are cut, the leading bit is set, and adds one to the upper part.
    (more << DIGITS) as u16 + (time >> more) as u16
}

/// A step and the places that belong to it: its first place, and the first place after them.
#[derive(Clone, Copy)]
struct Whole {
    at: usize,
    end: usize,
}

fn word<W: Words + ?Sized>(chain: &W, place: usize, nth: usize) -> u64 {
    chain.get(FIRST_STEP + 2 * place + nth)
}

fn kind<W: Words + ?Sized>(chain: &W, place: usize) -> u64 {
    word(chain, place, 0) >> KIND_AT
}

/// Returns the step of this kind at a place.
fn whole<W: Words + ?Sized>(chain: &W, at: usize, used: usize, is: Kind) -> Option<Whole> {
    if at >= used || kind(chain, at) != is as u64 {
        return None;
    }
    let attached = |place: &usize| is_attached(word(chain, *place, 0));
    let end = at + 1 + (at + 1..used).take_while(attached).count();
    Some(Whole { at, end })
}

/// Folds preemptions until there is room for `places` more, or nothing is left to fold. Returns the
/// number of places in use. Steps are not moved across steps that are left out.
#[cold]
pub(super) fn fold<W: Words + ?Sized>(chain: &mut W, mut used: usize, places: usize) -> usize {
    let from = match chain.counts().more() {
        0 => 0,
        _ => chain.boundary(used),
    };
    let mut at = from;
    while at < used && used + places > PLACES {
        match fold_at(chain, at, used) {
            Some(left) => used = left,
            None => at += 1,
        }
    }
    let mut counts = chain.counts();
    counts.set_places(used);
    chain.set_counts(counts);
    used
}

/// Returns the sums of the CPU's activity in the waits that two switches ended: `Some(None)` if
/// neither wait has any, `None` if the two cannot be added.
fn parts_of_both<W: Words + ?Sized>(
    chain: &W,
    one: Whole,
    other: Whole,
) -> Option<Option<[u64; 2]>> {
    let of = |step: Whole| [0, 1].map(|nth| word(chain, step.at + 1, nth));
    match (one.end - one.at, other.end - other.at) {
        (1, 1) => Some(None),
        (2, 2) if [one, other].map(|step| kind(chain, step.at + 1)) == [Kind::Parts as u64; 2] => {
            let ((_, one), (cpu, other)) = (Spent::of_words(of(one)), Spent::of_words(of(other)));
            let sum = one.and(other)?;
            Some(Some(sum.to_words(Kind::Parts, cpu)))
        }
        _ => None,
    }
}

/// Folds two preemptions into one if they follow a switch at this place. Returns the number of
/// places then in use.
fn fold_at<W: Words + ?Sized>(chain: &mut W, at: usize, used: usize) -> Option<usize> {
    let runs = whole(chain, at, used, Kind::Switch)?;
    let first = whole(chain, runs.end, used, Kind::Preempted)?;
    let between = whole(chain, first.end, used, Kind::Switch)?;
    let second = whole(chain, between.end, used, Kind::Preempted)?;
    let last = whole(chain, second.end, used, Kind::Switch)?;
    let task = |step: Whole| word(chain, step.at, 1) as u32;
    if task(runs) != task(between) || task(runs) != task(last) {
        return None;
    }
    let time = |step: Whole| word(chain, step.at, 0) & LONGEST;
    let (ran, preempted) = (time(first) + time(second), [time(between), time(last)]);
    let all = preempted[0] + preempted[1];
    if ran > LONGEST || all > LONGEST {
        return None;
    }
    let parts = parts_of_both(chain, between, last)?;
    let [mut one, mut other] = [first, second].map(|step| of_preempted(word(chain, step.at, 1)));
    for (one, time) in [(&mut one, preempted[0]), (&mut other, preempted[1])] {
        if one.times == 1 {
            one.longest = rough(time);
        }
    }
    let (kept, mut subject) = if other.longest > one.longest {
        (second, other)
    } else {
        (first, one)
    };
    subject.times = one.times + other.times;
    let tag = word(chain, kept.at, 0) & !LONGEST | ran;
    let back = word(chain, last.at, 0) & !LONGEST | all;
    let end = [back, word(chain, last.at, 1)];
    // The step that is kept, with its name, then the last switch, then the steps after it.
    let mut to = first.at;
    let mut put = |chain: &mut W, words: [u64; 2]| {
        for (nth, word) in words.into_iter().enumerate() {
            chain.set(FIRST_STEP + 2 * to + nth, word);
        }
        to += 1;
    };
    put(chain, [tag, subject.to_word()]);
    for place in kept.at + 1..kept.end {
        let words = [word(chain, place, 0), word(chain, place, 1)];
        put(chain, words);
    }
    put(chain, end);
    if let Some(parts) = parts {
        put(chain, parts);
    }
    for place in last.end..used {
        let words = [word(chain, place, 0), word(chain, place, 1)];
        put(chain, words);
    }
    Some(to)
}
