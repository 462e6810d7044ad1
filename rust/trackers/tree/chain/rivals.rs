// SPDX-License-Identifier: GPL-2.0

//! The rivals that kept a task from its CPU: the three that had it for longest, by name.
//!
//! ```text
//!   switch, its places: the step | parts | name of the task | rivals | rivals | name | name | name
//!                                                             1, 2     3        of 1, 2, 3
//! ```
//!
//! The rivals are summed up in a table with room for a few. If a new rival does not fit, either it
//! or the smallest entry is dropped, whichever is smaller. The time of the dropped rival belongs to
//! no rival from then on. All time that belongs to no rival could be due to one rival, perhaps an
//! unnamed one. So a rival is named only if its time is at least that time plus the time of the
//! largest unnamed rival. Then it is certainly among the top three.
//!
//! Times are exact, in nanoseconds.

use super::{log::Who, place_of_name, wait::MASK, Kind, KIND_AT};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    /// A device interrupt: its handler, or its thread.
    Irq = 1,
    /// A local interrupt, by its position in the list of local interrupts.
    Vector = 2,
    /// A softirq, by its number, wherever it ran.
    Softirq = 3,
    Task = 4,
    Nmi = 5,
    /// The thread of an interrupt, as a task. Only in logs.
    Thread = 6,
}

impl Sort {
    fn of(number: u64) -> Option<Self> {
        const ALL: [Sort; 6] = [
            Sort::Irq,
            Sort::Vector,
            Sort::Softirq,
            Sort::Task,
            Sort::Nmi,
            Sort::Thread,
        ];
        ALL.get((number as usize).wrapping_sub(1)).copied()
    }

    fn is_named(self) -> bool {
        matches!(self, Sort::Irq | Sort::Task)
    }
}

const SORT_BITS: u32 = 3;
/// Number of bits of a Linux thread id; an interrupt whose line does not fit is not named.
const ID_BITS: u32 = 22;
const TIME_AT: u32 = SORT_BITS + ID_BITS;
const TIME_BITS: u32 = 36;
const RIVAL_BITS: u32 = TIME_AT + TIME_BITS;
// Two rivals and one bit fill a place, besides its kind.
const LEAST_AT: u32 = 2 * RIVAL_BITS;
const _: () = assert!(LEAST_AT < KIND_AT + 64 && MASK < 1 << TIME_BITS);

/// Packs a rival without its name.
#[inline(always)]
pub(crate) fn who(sort: Sort, id: u32) -> u64 {
    u64::from(id) << SORT_BITS | sort as u64
}

/// Cuts a name at its end, or after 15 bytes: memory after the end is arbitrary.
#[inline(always)]
pub(crate) fn cut([low, high]: [u64; 2]) -> [u64; 2] {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The lowest set bit is in the first byte that is 0.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let cut = |word: u64, zeros: u64| word & ((zeros & zeros.wrapping_neg()) >> 7).wrapping_sub(1);
    match (zeros(low), zeros(high)) {
        (0, 0) => [low, high & (u64::MAX >> 8)],
        (0, end) => [low, cut(high, end)],
        (end, _) => [cut(low, end), 0],
    }
}

/// A rival, and how long it had the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rival {
    pub(crate) sort: Sort,
    pub(crate) id: u32,
    pub(crate) name: [u64; 2],
    pub(crate) time: u64,
}

/// Maximum number of rivals that are named.
pub(crate) const NAMED: usize = 3;
/// Maximum number of places of the rivals.
pub(crate) const RIVAL_PLACES: usize = 2 + NAMED;

/// The rivals that had the CPU for longest, in descending order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rivals {
    pub(crate) named: [Option<Rival>; NAMED],
    /// Whether the times are lower bounds: more than 1/`SMALL` of the wait belongs to no rival.
    pub(crate) at_least: bool,
}

impl Rivals {
    pub(crate) fn is_empty(&self) -> bool {
        self.named[0].is_none()
    }

    pub(super) fn drop_last(&mut self) {
        if let Some(last) = self.named.iter_mut().rfind(|rival| rival.is_some()) {
            *last = None;
        }
    }

    fn each(&self) -> impl Iterator<Item = &Rival> {
        self.named.iter().flatten()
    }

    /// Returns the places of the rivals, and the number of places.
    pub(super) fn places(&self) -> ([[u64; 2]; RIVAL_PLACES], usize) {
        let mut places = [[0; 2]; RIVAL_PLACES];
        let mut used = 0;
        for pair in self.named.chunks(2).filter(|pair| pair[0].is_some()) {
            let mut number = u128::from(self.at_least) << LEAST_AT;
            for (nth, rival) in pair.iter().flatten().enumerate() {
                let word = (rival.time & MASK) << TIME_AT | who(rival.sort, rival.id);
                number |= u128::from(word) << (nth as u32 * RIVAL_BITS);
            }
            let low = number as u64 & ((1 << KIND_AT) - 1);
            places[used] = [
                (Kind::Rivals as u64) << KIND_AT | low,
                (number >> KIND_AT) as u64,
            ];
            used += 1;
        }
        for rival in self.each().filter(|rival| rival.sort.is_named()) {
            places[used] = place_of_name(rival.name);
            used += 1;
        }
        (places, used)
    }

    /// Adds the rivals in the words of a place, without names.
    pub(super) fn add_place(&mut self, [low, high]: [u64; 2]) {
        let number = u128::from(low & ((1 << KIND_AT) - 1)) | u128::from(high) << KIND_AT;
        self.at_least |= number >> LEAST_AT != 0;
        for nth in 0..2 {
            let word = (number >> (nth * RIVAL_BITS)) as u64 & ((1 << RIVAL_BITS) - 1);
            let Some(sort) = Sort::of(word & ((1 << SORT_BITS) - 1)) else {
                continue;
            };
            if let Some(free) = self.named.iter_mut().find(|rival| rival.is_none()) {
                *free = Some(Rival {
                    sort,
                    id: (word >> SORT_BITS) as u32 & ((1 << ID_BITS) - 1),
                    name: [0; 2],
                    time: word >> TIME_AT,
                });
            }
        }
    }

    /// Sets the name of the `nth` rival, from 0, counting only rivals of sorts that have names. The
    /// name may be empty.
    pub(super) fn set_name(&mut self, nth: usize, name: [u64; 2]) {
        let named = self.named.iter_mut().flatten();
        if let Some(rival) = named.filter(|rival| rival.sort.is_named()).nth(nth) {
            rival.name = name;
        }
    }
}

/// Number of entries in the table.
const ROOM: usize = 8;

/// A rival in the table.
#[derive(Clone, Copy)]
struct Entry {
    rival: Rival,
    /// Whether its name may have been cut.
    is_cut: bool,
}

impl Entry {
    /// Unpacks a rival of a log.
    fn of([word, low, high]: Who, time: u64) -> Option<Self> {
        let id = (word >> SORT_BITS) as u32;
        let sort = Sort::of(word & ((1 << SORT_BITS) - 1)).filter(|_| id < 1 << ID_BITS)?;
        let name = [low, high];
        if sort == Sort::Thread {
            return Some(Self::of_thread(id, name, time));
        }
        let rival = Rival {
            sort,
            id,
            name,
            time,
        };
        let is_cut = false;
        Some(Self { rival, is_cut })
    }

    /// Returns the rival for the thread of an interrupt, identified by its name, such as
    /// `irq/30-eth0`. A thread with another name is a task.
    fn of_thread(id: u32, comm: [u64; 2], time: u64) -> Self {
        let (mut line, bytes) = (0u32, bytes_of(comm));
        let mut sort = Sort::Task;
        let (mut id, mut name, mut is_cut) = (id, comm, false);
        for at in NUMBER_AT..MOST_BYTES {
            match bytes[at] {
                digit @ b'0'..=b'9' => {
                    line = line
                        .saturating_mul(10)
                        .saturating_add((digit - b'0').into());
                    continue;
                }
                b'-' if at > NUMBER_AT && line < 1 << ID_BITS => {
                    let number = u128::from_le_bytes(bytes) >> (8 * (at + 1));
                    (sort, id) = (Sort::Irq, line);
                    name = [number as u64, (number >> 64) as u64];
                    is_cut = bytes[MOST_BYTES - 1] != 0;
                }
                _ => (),
            }
            break;
        }
        let rival = Rival {
            sort,
            id,
            name,
            time,
        };
        Self { rival, is_cut }
    }

    fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.rival, &other.rival);
        let is_name = one.name == two.name
            || (self.is_cut && begins_with(two.name, one.name))
            || (other.is_cut && begins_with(one.name, two.name));
        one.sort == two.sort && one.id == two.id && is_name
    }
}

/// Position of the number in the name of an interrupt's thread.
const NUMBER_AT: usize = 4;
/// Number of bytes of the name of a task, without the terminating NUL.
const MOST_BYTES: usize = 15;

fn bytes_of([low, high]: [u64; 2]) -> [u8; 16] {
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

fn begins_with(name: [u64; 2], with: [u64; 2]) -> bool {
    let mut pairs = bytes_of(name).into_iter().zip(bytes_of(with));
    pairs.all(|(byte, of_begin)| of_begin == 0 || byte == of_begin)
}

/// The sums of a wait: see the head of this file.
pub(crate) struct Table {
    entries: [Option<Entry>; ROOM],
    /// The time that belongs to no rival.
    rest: u64,
}

fn time_of(entry: &Option<Entry>) -> u64 {
    entry.map_or(0, |entry| entry.rival.time)
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            entries: [None; ROOM],
            rest: 0,
        }
    }

    /// Adds time that belongs to no rival.
    pub(crate) fn add_rest(&mut self, time: u64) {
        self.rest = self.rest.saturating_add(time);
    }

    /// Adds the time for which a rival had the CPU. `who` is a rival of a log.
    pub(crate) fn add(&mut self, who: Who, time: u64) {
        let Some(new) = Entry::of(who, time) else {
            return self.add_rest(time);
        };
        let mut entries = self.entries.iter_mut().flatten();
        if let Some(entry) = entries.find(|entry| entry.is_same(&new)) {
            let sum = entry.rival.time.saturating_add(time);
            if entry.is_cut {
                *entry = new;
            }
            entry.rival.time = sum;
            return;
        }
        if let Some(least) = self.entries.iter_mut().min_by_key(|entry| time_of(entry)) {
            let rest = time_of(least).min(time);
            if time_of(least) <= time {
                *least = Some(new);
            }
            self.add_rest(rest);
        }
    }

    /// Removes the rival that had the CPU for longest.
    fn take_most(&mut self) -> Option<Rival> {
        let most = self.entries.iter_mut().max_by_key(|entry| time_of(entry))?;
        Some(most.take()?.rival)
    }

    /// Returns the rivals that had the CPU for longest in a wait of this length.
    pub(crate) fn most(mut self, wait: u64) -> Rivals {
        let most: [Option<Rival>; NAMED] = core::array::from_fn(|_| self.take_most());
        let next = self.take_most().map_or(0, |rival| rival.time);
        let least = next.saturating_add(self.rest).max(wait / SMALL);
        Rivals {
            named: most.map(|rival| rival.filter(|rival| rival.time >= least)),
            at_least: self.rest > wait / SMALL,
        }
    }
}

/// A rival with less than 1/`SMALL` of a wait is not named.
const SMALL: u64 = 64;
