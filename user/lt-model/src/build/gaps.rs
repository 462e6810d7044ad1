// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Where events are missing, of each processor and of any.

use crate::state::Unrecorded;

/// From when to when nothing is known, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) since: u64,
    pub(super) until: u64,
    pub(super) why: Unrecorded,
}

/// The gaps of each processor, and the times at which any processor has one, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    of: Vec<Vec<Gap>>,
    any: Vec<Gap>,
    /// A processor of which nothing is known at any time.
    absent: Option<u32>,
    stored: usize,
}

impl Gaps {
    /// Adds a gap of a processor. Gaps come in the order of their starts.
    pub(super) fn add(&mut self, cpu: u32, gap: Gap) {
        let place = cpu as usize;
        if self.of.len() <= place {
            self.of.resize_with(place + 1, Vec::new);
        }
        match self.of[place].last_mut() {
            Some(last) if gap.since <= last.until => last.until = last.until.max(gap.until),
            _ => {
                self.of[place].push(gap);
                self.stored += 1;
            }
        }
        let since = self.any.last().map_or(0, |last| last.until).max(gap.since);
        if since < gap.until {
            self.any.push(Gap { since, ..gap });
            self.stored += 1;
        }
    }

    /// Nothing is known of that processor.
    pub(super) fn set_absent(&mut self, cpu: u32) {
        self.absent.get_or_insert(cpu);
    }

    /// What they take.
    pub(super) fn bytes(&self) -> usize {
        // A vector may have room for twice as many, and for four.
        self.stored * 2 * size_of::<Gap>() + self.of.len() * 128
    }

    /// From where on it is not known what happened on that processor between two times, and why.
    pub(super) fn first(&self, cpu: u32, from: u64, to: u64) -> Option<(u64, Unrecorded)> {
        let gaps = self.of.get(cpu as usize)?;
        let gap = gaps.get(gaps.partition_point(|gap| gap.until <= from))?;
        (gap.since < to).then_some((gap.since.max(from), gap.why))
    }

    /// The first part of the time between two in which not all processors are known.
    pub(super) fn any(&self, from: u64, to: u64) -> Option<Gap> {
        if let Some(cpu) = self.absent {
            return Some(Gap {
                since: from,
                until: to,
                why: Unrecorded::NoStream(cpu),
            });
        }
        let place = self.any.partition_point(|gap| gap.until <= from);
        let gap = self.any.get(place).filter(|gap| gap.since < to)?;
        Some(Gap {
            since: gap.since.max(from),
            until: gap.until.min(to),
            ..*gap
        })
    }
}
