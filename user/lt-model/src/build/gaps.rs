// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Where events of each processor are missing.

/// Begin and end of each gap, by processor, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    of: Vec<Vec<(u64, u64)>>,
    stored: usize,
}

impl Gaps {
    /// Gaps come in the order of their begins.
    pub(super) fn add(&mut self, cpu: u32, since: u64, until: u64) {
        let cpu = cpu as usize;
        if self.of.len() <= cpu {
            self.of.resize_with(cpu + 1, Vec::new);
        }
        match self.of[cpu].last_mut() {
            Some(last) if since <= last.1 => last.1 = last.1.max(until),
            _ => {
                self.of[cpu].push((since, until));
                self.stored += 1;
            }
        }
    }

    /// What they take.
    pub(super) fn bytes(&self) -> usize {
        // A vector may have room for twice as many, and for four.
        self.stored * 2 * size_of::<(u64, u64)>() + self.of.len() * 128
    }

    /// From where on it is not known what happened there between two times.
    pub(super) fn first(&self, cpu: u32, from: u64, to: u64) -> Option<u64> {
        let gaps = self.of.get(cpu as usize)?;
        let (since, _) = *gaps.get(gaps.partition_point(|gap| gap.1 <= from))?;
        (since < to).then_some(since.max(from))
    }
}
