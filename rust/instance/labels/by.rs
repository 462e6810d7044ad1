// SPDX-License-Identifier: GPL-2.0

//! The fields of a tracker by which its delays can be counted.
//!
//! ```text
//!   record! { fields }  --names()--> cpu, comm, pid, tid, FIELD ...     the values of `by`
//!                                            |
//!   detail(key, data)  --source()--> Source  |  where an event keeps the field
//!                                            v
//!   label words ---------show()----------> the field, as in the line of an alert
//! ```
//!
//! A tracker declares only exceptions ([`Rules`]): the record has the list of fields. The position
//! of a field in an event is found with the tracker's own function that unpacks an event for an
//! alert. A search finds the bit of the event that becomes the first bit of the field, and then the
//! bits that become its next bits. The result is checked against that function with random events.
//! A field that is not simply copied from the event has no source.
//!
//! # Contexts
//!
//! The list is built at compile time. Everything else may sleep.

use crate::{
    alert::record::{Owner, DETAIL, ID_BITS},
    engine::{
        hash::Seed,
        labels::{Place, Source, LABEL},
    },
    record::{FieldInfo, How, Record},
    sys::random,
    text::{is_equal, Quoted},
};
use kernel::{fmt, prelude::*};

/// A value by which delays can be counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// No label: the first value of the parameter.
    None,
    /// The CPU on which the operation ends.
    Cpu,
    /// The name of the event's task.
    Comm,
    /// The process id of the event's task.
    Pid,
    /// The thread id of the event's task.
    Tid,
    /// The cgroup of the event's task when the operation ends.
    Cgroup,
    /// The kernel stack of the event's task when the operation ends: the stack of an alert.
    Stack,
    /// A field of the tracker.
    Field {
        /// The position in [`Record::FIELDS`].
        nth: usize,
        /// Number of bits.
        bits: usize,
    },
}

/// Restricts and extends the set of a record's fields that can be labels.
#[derive(Clone, Copy)]
pub(crate) struct Rules {
    /// Whether an event keeps its task.
    pub(crate) has_owner: bool,
    /// Whether the kernel stack of the event's task when the operation ends explains the delay. At
    /// that moment, the task must be the current one, or off the CPU.
    pub(crate) has_stack: bool,
    /// Fields that an event does not keep, or that are complete only at its end.
    pub(crate) excluded: &'static [&'static str],
    /// A field that forms a label together with the bits after it: the name of the field, the name
    /// of the label, and the number of bits.
    pub(crate) wider: Option<(&'static str, &'static str, usize)>,
}

impl Rules {
    /// Accepts all fields that have bits of their own, are short enough, and are in the lines of
    /// all alerts. Fields that are known only at the end must be excluded, see [`Rules::without`].
    pub(crate) const ALL: Self = Self {
        has_owner: true,
        has_stack: false,
        excluded: &[],
        wider: None,
    };

    /// As [`Rules::ALL`], plus the stack.
    pub(crate) const WITH_STACK: Self = Self {
        has_stack: true,
        ..Self::ALL
    };

    /// Excludes fields, see [`Rules::excluded`].
    pub(crate) const fn without(self, excluded: &'static [&'static str]) -> Self {
        Self { excluded, ..self }
    }

    const fn excludes(&self, field: &FieldInfo) -> bool {
        let mut at = 0;
        while at < self.excluded.len() {
            if is_equal(self.excluded[at], field.name) {
                return true;
            }
            at += 1;
        }
        !field.is_usual || field.bits == 0 || field.bits > 64 * LABEL
    }

    /// Returns the name and meaning of value `number`; `None` if there are fewer values.
    const fn value(&self, fields: &[FieldInfo], number: usize) -> Option<(&'static str, By)> {
        const COMMON: [(&str, By); 6] = [
            ("none", By::None),
            ("cpu", By::Cpu),
            ("comm", By::Comm),
            ("pid", By::Pid),
            ("tid", By::Tid),
            ("cgroup", By::Cgroup),
        ];
        let common = if self.has_owner { COMMON.len() } else { 2 };
        if number < common {
            return Some(COMMON[number]);
        }
        let (mut left, mut nth) = (number - common, 0);
        while nth < fields.len() {
            let field = &fields[nth];
            if !self.excludes(field) {
                if left == 0 {
                    let (mut name, mut bits) = (field.name, field.bits);
                    if let Some((of, label, wide)) = self.wider {
                        if is_equal(of, name) {
                            (name, bits) = (label, wide);
                        }
                    }
                    return Some((name, By::Field { nth, bits }));
                }
                left -= 1;
            }
            nth += 1;
        }
        if self.has_stack && left == 0 {
            return Some(("stack", By::Stack));
        }
        None
    }

    /// Returns the number of values.
    pub(crate) const fn count(&self, fields: &[FieldInfo]) -> usize {
        let mut number = 0;
        while self.value(fields, number).is_some() {
            number += 1;
        }
        number
    }

    /// Returns the names of the values, for the parameter.
    pub(crate) const fn names<const N: usize>(&self, fields: &[FieldInfo]) -> [&'static str; N] {
        let mut names = ["none"; N];
        let mut number = 0;
        while number < N {
            if let Some((name, _)) = self.value(fields, number) {
                names[number] = name;
            }
            number += 1;
        }
        names
    }

    fn by(&self, fields: &[FieldInfo], number: usize) -> By {
        self.value(fields, number).map_or(By::None, |(_, by)| by)
    }
}

/// Returns the bits of a field in a list of words, from bit `at` on.
fn cut(words: &[u64], at: usize, bits: usize, spare: usize) -> [u64; LABEL] {
    let place = Place {
        at: at / 64,
        shift: (at % 64) as u32,
        mask: mask(bits, spare),
        words: bits.div_ceil(64),
    };
    place.label(|at| words.get(at).map_or(0, |word| *word))
}

/// Returns the mask of a field's bits in its first word.
fn mask(bits: usize, spare: usize) -> u64 {
    let mask = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
    mask >> spare
}

/// Finds the position of a field of `bits` bits in an event. `value` returns the field for a key
/// and data. `None` if no position matches.
fn locate<const K: usize, const D: usize>(
    bits: usize,
    value: impl Fn(&[u64; K], &[u64; D]) -> [u64; LABEL],
) -> Option<Source> {
    // Returns the first word of the label of an event in which only this bit is set.
    let of_bit = |at: usize, bit: u32| {
        let (mut key, mut data) = ([0; K], [0; D]);
        let words = Iterator::chain(key.iter_mut(), &mut data);
        words.skip(at).take(1).for_each(|word| *word = 1 << bit);
        value(&key, &data)[0]
    };
    let places = (0..K + D).flat_map(|at| (0..u64::BITS).map(move |shift| (at, shift)));
    for (at, shift) in places {
        if of_bit(at, shift) != 1 {
            continue;
        }
        // An event may keep fewer bits than the field has.
        let is_kept = |&bit: &u32| of_bit(at, shift + bit) == 1 << bit;
        let kept = (0..u64::BITS - shift).filter(is_kept);
        let source = Source::Event(Place {
            at,
            shift,
            mask: kept.fold(0, |mask, bit| mask | 1 << bit),
            words: bits.div_ceil(64),
        });
        if agrees(source, &value) {
            return Some(source);
        }
    }
    None
}

/// Whether, for random events, a source yields the labels that `value` returns.
fn agrees<const K: usize, const D: usize>(
    source: Source,
    value: &impl Fn(&[u64; K], &[u64; D]) -> [u64; LABEL],
) -> bool {
    const EVENTS: u64 = 8;
    let [a, b] = random::words();
    let seed = Seed::new(a, b);
    (0..EVENTS).all(|event| {
        let word = |at: usize| seed.hash(&[event, at as u64]);
        let key: [u64; K] = core::array::from_fn(word);
        let data: [u64; D] = core::array::from_fn(|at| word(K + at));
        source.label(&key, &data, 0) == value(&key, &data)
    })
}

/// Returns the source of the label that value `number` of `by` selects. `fields` and `owner` return
/// the fields and the owner of an event. Returns `None` for `by=none`, and for a field that is not
/// simply copied from the event.
pub(crate) fn source<const K: usize, const D: usize, R: Record>(
    rules: &Rules,
    number: usize,
    fields: impl Fn(&[u64; K], &[u64; D]) -> R,
    owner: impl Fn(&[u64; D]) -> Owner,
) -> Option<Source> {
    let of_owner = |at: usize, bits: usize| {
        locate(bits, |_: &[u64; K], data: &[u64; D]| {
            cut(&owner(data).to_words(), at, bits, 0)
        })
    };
    const ID: usize = ID_BITS as usize;
    let of_thread = |source: fn(Place) -> Source| match of_owner(0, ID)? {
        Source::Event(place) => Some(source(place)),
        Source::Cpu | Source::Cgroup(_) | Source::Stack(_) => None,
    };
    match rules.by(R::FIELDS, number) {
        By::None => None,
        By::Cpu => Some(Source::Cpu),
        By::Comm => of_owner(64, 128),
        By::Pid => of_owner(ID, ID),
        By::Tid => of_owner(0, ID),
        By::Cgroup => of_thread(Source::Cgroup),
        By::Stack => of_thread(Source::Stack),
        By::Field { nth, bits } => {
            let FieldInfo { at, spare, .. } = R::FIELDS[nth];
            locate(bits, |key: &[u64; K], data: &[u64; D]| {
                let words: [u64; DETAIL] = fields(key, data).words();
                cut(&words, at, bits, spare)
            })
        }
    }
}

/// Prints a label as fields of a line, each with a space before it.
pub(crate) fn show<R: Record>(
    rules: &Rules,
    number: usize,
    label: &[u64; LABEL],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let [first, second, ..] = *label;
    match rules.by(R::FIELDS, number) {
        // The label of a stack is a hash; the caller prints the stack itself.
        By::None | By::Stack => Ok(()),
        By::Cpu => f.write_fmt(fmt!(" cpu={first}")),
        By::Comm => f.write_fmt(fmt!(" comm={}", Quoted::words(&[first, second]))),
        By::Pid => f.write_fmt(fmt!(" pid={first}")),
        By::Tid => f.write_fmt(fmt!(" tid={first}")),
        By::Cgroup => f.write_fmt(fmt!(" cgroup={first}")),
        By::Field { nth, .. } => {
            let at = R::FIELDS[nth].at;
            let mut words = [0; DETAIL];
            let places = words.iter_mut().skip(at / 64).zip(label);
            places.for_each(|(to, word)| *to = *word);
            if let Some(word) = words.get_mut(at / 64) {
                *word <<= at % 64;
            }
            let (record, how) = (R::unpack(&words), How::of_label());
            record.show_field(nth, &how, f)?;
            // The fields derived from this one, which follow it and have no bits of their own.
            for next in nth + 1..R::FIELDS.len() {
                if R::FIELDS[next].bits != 0 {
                    break;
                }
                record.show_field(next, &how, f)?;
            }
            Ok(())
        }
    }
}
