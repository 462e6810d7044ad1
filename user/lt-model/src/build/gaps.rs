// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Gaps: the times at which some processor is not recorded, by processor and merged.

use crate::state::Unrecorded;

/// A gap, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) why: Unrecorded,
}

impl Gap {
    fn of_absent(cpu: u32, since: u64, until: u64) -> Self {
        let why = Unrecorded::NoStream(cpu);
        Self { since, until, why }
    }
}

/// The first gap that hides a part of `from` to `to`, cut to those times.
fn part(gaps: &[Gap], from: u64, to: u64) -> Option<Gap> {
    let place = gaps.partition_point(|gap| gap.until <= from);
    // An empty gap makes the state after it unknown, but hides no time.
    let mut later = gaps[place..].iter().take_while(|gap| gap.since < to);
    let gap = later.find(|gap| gap.since < gap.until)?;
    Some(Gap {
        since: gap.since.max(from),
        until: gap.until.min(to),
        ..*gap
    })
}

/// The gaps of each processor, and the times at which any processor has a gap, in time order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gaps {
    of: Vec<Vec<Gap>>,
    any: Vec<Gap>,
    /// The processors without a stream.
    absent: Vec<u32>,
    stored: usize,
}

impl Gaps {
    /// Adds a gap of a processor. Gaps come in the order of their starts.
    pub(super) fn add(&mut self, cpu: u32, gap: Gap) {
        let place = cpu as usize;
        if self.of.len() <= place {
            self.of.resize_with(place + 1, Vec::new);
        }
        let of_cpu = &mut self.of[place];
        let until = of_cpu.last().map_or(0, |last| last.until);
        match of_cpu.last_mut() {
            Some(last) if gap.until <= last.until => {}
            Some(last) if gap.since <= last.until && gap.why == last.why => last.until = gap.until,
            // A gap with another reason starts where the known gap ends.
            _ => {
                let since = gap.since.max(until);
                of_cpu.push(Gap { since, ..gap });
                self.stored += 1;
            }
        }
        let since = self.any.last().map_or(0, |last| last.until).max(gap.since);
        if since < gap.until {
            self.any.push(Gap { since, ..gap });
            self.stored += 1;
        }
    }

    /// Declares that the activity of `cpu` is unknown.
    pub(super) fn set_absent(&mut self, cpu: u32) {
        if !self.absent.contains(&cpu) {
            self.absent.push(cpu);
        }
    }

    /// Memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        // A vector may have room for twice as many elements as it has, and for at least four.
        self.stored * 2 * size_of::<Gap>() + self.of.len() * 128 + self.absent.len() * 16
    }

    /// The start of the first gap of this processor between two times, and its reason.
    pub(super) fn first(&self, cpu: u32, from: u64, to: u64) -> Option<(u64, Unrecorded)> {
        let gaps = self.of.get(cpu as usize)?;
        let gap = gaps.get(gaps.partition_point(|gap| gap.until <= from))?;
        (gap.since < to).then_some((gap.since.max(from), gap.why))
    }

    /// The first part between two times in which some processor has a gap.
    pub(super) fn any(&self, from: u64, to: u64) -> Option<Gap> {
        match self.absent.first() {
            Some(cpu) => Some(Gap::of_absent(*cpu, from, to)),
            None => part(&self.any, from, to),
        }
    }

    /// All gaps, with the processor, start, end and reason of each. The gaps of a processor do not overlap.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, (u64, u64), Unrecorded)> {
        let absent = self.absent.iter();
        let absent = absent.map(|cpu| (*cpu, Gap::of_absent(*cpu, 0, u64::MAX)));
        let of_cpus = (0u32..).zip(&self.of);
        let seen = of_cpus.flat_map(|(cpu, gaps)| gaps.iter().map(move |gap| (cpu, *gap)));
        seen.chain(absent)
            .map(|(cpu, gap)| (cpu, (gap.since, gap.until), gap.why))
    }

    /// The reason why some processor has a gap between two times.
    pub(crate) fn why(&self, from: u64, to: u64) -> Option<Unrecorded> {
        self.any(from, to).map(|gap| gap.why)
    }

    /// Whether some processor has a gap between two times, even one of length 0.
    pub(crate) fn touches(&self, from: u64, to: u64) -> bool {
        let touches = |gaps: &Vec<Gap>| {
            let place = gaps.partition_point(|gap| gap.until < from);
            gaps.get(place).is_some_and(|gap| gap.since <= to)
        };
        !self.absent.is_empty() || self.of.iter().any(touches)
    }

    /// The first part between two times in which one of these processors has a gap.
    pub(super) fn on(&self, cpus: &[u32], from: u64, to: u64) -> Option<Gap> {
        if let Some(cpu) = self.absent.iter().find(|cpu| cpus.contains(cpu)) {
            return Some(Gap::of_absent(*cpu, from, to));
        }
        let of_cpus = cpus.iter().filter_map(|cpu| self.of.get(*cpu as usize));
        let gaps = of_cpus.filter_map(|gaps| part(gaps, from, to));
        gaps.min_by_key(|gap| gap.since)
    }
}
