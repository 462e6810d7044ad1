// SPDX-License-Identifier: GPL-2.0

//! Reads a chain from the words of an alert, or of an event.

use super::{
    name_of, of_tag,
    step::{self, is_attached, Step},
    Counts, Kind, Look, Rivals, Spent, State, ACTION, COOKIE_MAX, COUNTS, FIRST, FIRST_STEP,
    KIND_AT, LONGEST, MORE, NAME, NAME_BYTES, PLACE, WORDS,
};

/// One item of a chain, as readers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    /// A step, the time since the previous item, and the name of its task, if any. After
    /// [`Shown::More`] the time is counted from the first of the steps left out.
    Step(Step, u64, [u64; 2]),
    /// The CPU's activity during the wait that the last step ended, and the length of the wait.
    Parts(Spent, u64),
    /// The rivals that had the CPU during that wait.
    Rivals(Rivals),
    /// Number of steps left out, and the time from the step before them to the first step left out.
    /// If no step follows, the time until the last step left out. If the number is 0, the excess of
    /// times that did not fit.
    More(u64, u64),
}

/// Calls `see` for the steps of a chain, given its counts, the time of the steps left out, and the
/// words of its steps.
pub(crate) fn each(counts: Counts, more: u64, steps: &[u64], mut see: impl FnMut(Shown)) {
    let used = counts.places().min(steps.len() / 2);
    let tag = |at: usize| steps[2 * at];
    let attached = |at: usize| at < used && is_attached(tag(at));
    let boundary = boundary(used, attached);
    let has_more = counts.more() > 0;
    // The time of the steps left out, which the next step gets.
    let mut rest = 0;
    for at in 0..used {
        if at == boundary && (has_more || more > 0) {
            let before = if has_more {
                (tag(0) & LONGEST).min(more)
            } else {
                more
            };
            rest = more - before;
            see(Shown::More(counts.more(), before));
        }
        let Some((kind, cpu, time)) = of_tag(tag(at)) else {
            continue;
        };
        let time = if at == 0 && has_more { 0 } else { time };
        let subject = steps[2 * at + 1];
        let step = Step { kind, cpu, subject };
        let (mut name, mut parts) = ([0; 2], None);
        let (mut rivals, mut names) = (None::<Rivals>, 0);
        for at in (at + 1..used).take_while(|&at| attached(at)) {
            let words = [tag(at), steps[2 * at + 1]];
            match Kind::of(words[0]) {
                Some(Kind::Rivals) => rivals.get_or_insert_default().add_place(words),
                Some(Kind::Name) if rivals.is_some() => {
                    let name = name_of(words[0], words[1]);
                    rivals.get_or_insert_default().set_name(names, name);
                    names += 1;
                }
                // Only the first name belongs to the task: later ones belong to a cookie.
                Some(Kind::Name) if name == [0; 2] => name = name_of(words[0], words[1]),
                Some(Kind::Parts) => parts = Some(Spent::of_words(words).1),
                _ => (),
            }
        }
        see(Shown::Step(step, time.saturating_add(rest), name));
        rest = 0;
        if let Some(parts) = parts {
            see(Shown::Parts(parts, time));
        }
        if let Some(rivals) = rivals {
            see(Shown::Rivals(rivals));
        }
    }
    if used <= boundary && (has_more || more > 0) {
        see(Shown::More(counts.more(), more));
    }
}

/// Returns the place from which steps are left out: the first [`FIRST`] places stay, with all
/// places that belong to the last step there.
pub(super) fn boundary(used: usize, is_attached: impl Fn(usize) -> bool) -> usize {
    let mut at = FIRST.min(used);
    while at < used && is_attached(at) {
        at += 1;
    }
    at
}

/// Returns the cookie of the work that was begun on a chain, from the words of its steps, in
/// `room`; empty if there is none.
pub(crate) fn cookie<'a>(steps: &[u64], room: &'a mut [u8; COOKIE_MAX]) -> &'a [u8] {
    let is = |place: &[u64], kind: Kind| place[0] >> KIND_AT == kind as u64;
    let mut places = steps.chunks_exact(2);
    let begin = places.find(|place| is(place, Kind::Begin));
    let len = begin.map_or(0, |place| step::len_of(place[1]));
    let (mut rest, mut used) = (len.min(COOKIE_MAX), 0);
    for place in places {
        if rest == 0 || !is(place, Kind::Name) {
            break;
        }
        let [low, high] = name_of(place[0], place[1]);
        let bytes = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        let part = rest.min(NAME_BYTES);
        room[used..used + part].copy_from_slice(&bytes[..part]);
        (rest, used) = (rest - part, used + part);
    }
    &room[..used]
}

/// Number of words in the first part of [`split`].
pub(crate) const SPLIT: usize = FIRST_STEP - MORE;

/// Returns the parts of a chain that go into an alert: all words before the steps except the time
/// of the last step, with a number for how the chain ended; and the words of its steps.
pub(crate) fn split(chain: &[u64; WORDS], end: u64) -> ([u64; SPLIT], &[u64]) {
    let mut head: [u64; SPLIT] = core::array::from_fn(|at| chain[MORE + at]);
    let mut counts = chain.counts();
    counts.set_end(end);
    if counts.state() == State::Leaving {
        // Alerts have no word for this state, in which the target was still running.
        counts.set_state(State::Running);
    }
    head[COUNTS - MORE] = counts.0;
    let action = &mut head[ACTION - MORE..];
    if chain.has_action() {
        cut(action);
    } else {
        action.fill(0);
    }
    (head, &chain[FIRST_STEP..chain.used()])
}

/// Cuts a name at its end, or before the last byte of these words if the name does not end earlier:
/// the bytes after the end are arbitrary.
fn cut(name: &mut [u64]) {
    let mut is_over = false;
    let last = name.len().saturating_sub(1);
    for (at, word) in name.iter_mut().enumerate() {
        let mut bytes = word.to_ne_bytes();
        for (nth, byte) in bytes.iter_mut().enumerate() {
            is_over |= *byte == 0 || (at == last && nth == 7);
            if is_over {
                *byte = 0;
            }
        }
        *word = u64::from_ne_bytes(bytes);
    }
}

/// Unpacks the first part of [`split`]: the time of the steps left out, the counts, the place of
/// the task, the name of the action.
pub(crate) fn of_split(head: &[u64]) -> (u64, Counts, u64, [u64; NAME]) {
    let word = |at: usize| head.get(at - MORE).copied().unwrap_or(0);
    (
        word(MORE),
        Counts(word(COUNTS)),
        word(PLACE),
        core::array::from_fn(|at| word(ACTION + at)),
    )
}
