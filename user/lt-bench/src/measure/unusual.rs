// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Possible causes of a peak: the counters that moved around it, the least usual first.
//!
//! Some counters always move: the tick comes hundreds of times a second. A counter is evidence for
//! a peak if it moved more than usual. The usual rate is learned from the readings between which
//! there was no peak. Interrupts that are independent of each other follow a Poisson distribution.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Counter, Counts};

/// A move less probable than this is unusual.
const SELDOM: f64 = 0.02;

/// Above this average, the Poisson distribution is approximated by a normal one.
const MANY: f64 = 500.0;

/// How often counters move when there is no peak.
#[derive(Debug, Clone, Default)]
pub struct Usual {
    by: BTreeMap<Counter, u64>,
    ns: u64,
}

impl Usual {
    /// Learns from two readings, `ns` apart.
    pub fn learn(&mut self, before: &Counts, after: &Counts, ns: u64) {
        for (counter, by) in grown(before, after) {
            *self.by.entry(counter).or_default() += by;
        }
        self.ns += ns;
    }

    /// Returns by how much a counter moves in `ns`, on average.
    fn expected(&self, counter: &Counter, ns: u64) -> f64 {
        let by = self.by.get(counter).copied().unwrap_or(0);
        if self.ns == 0 {
            return 0.0;
        }
        by as f64 * ns as f64 / self.ns as f64
    }
}

/// A counter that moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Moved {
    /// Name of the counter.
    pub counter: String,
    /// How much it moved.
    pub by: u64,
    /// How much it would have moved on average.
    pub usual: f64,
    /// Whether it moved more than chance explains.
    pub unusual: bool,
}

/// Returns the counters that moved in `ns`, the least usual first, except [`Counter::Waited`],
/// which counts time.
#[must_use]
pub fn moved(before: &Counts, after: &Counts, usual: &Usual, ns: u64) -> Vec<Moved> {
    let mut all: Vec<((f64, u8), Moved)> = grown(before, after)
        .filter(|(counter, _)| *counter != Counter::Waited)
        .map(|(counter, by)| {
            let expected = usual.expected(&counter, ns);
            let chance = at_least(by, expected);
            let rank = rank(&counter);
            let moved = Moved {
                counter: counter.to_string(),
                by,
                usual: expected,
                unusual: chance < SELDOM,
            };
            ((chance, rank), moved)
        })
        .collect();
    all.sort_by(|((a, i), x), ((b, j), y)| a.total_cmp(b).then(i.cmp(j)).then(y.by.cmp(&x.by)));
    all.into_iter().map(|(_, moved)| moved).collect()
}

/// Ranks equally unusual counters, the most specific first: an interrupt names a device, a
/// preemption names nothing.
fn rank(counter: &Counter) -> u8 {
    match counter {
        Counter::Smi => 0,
        Counter::Interrupt(name, _) if name.bytes().all(|b| b.is_ascii_digit()) => 1,
        Counter::MajorFault | Counter::Steal => 2,
        Counter::Interrupt(..) => 3,
        Counter::Softirq(_) => 4,
        Counter::MinorFault => 5,
        Counter::Preempted | Counter::Waited => 6,
    }
}

/// Returns the counters that are larger in the second reading; none if the first reading is empty.
/// An interrupt that is only in the second reading was just requested, and started at 0. Any other
/// counter that is only there is left out: its earlier value is unknown.
fn grown(before: &Counts, after: &Counts) -> impl Iterator<Item = (Counter, u64)> {
    after.0.iter().filter_map(|(counter, now)| {
        let by = now.saturating_sub(before.get(counter).unwrap_or(0));
        let known = before.get(counter).is_some() || matches!(counter, Counter::Interrupt(..));
        (by > 0 && known && !before.is_empty()).then(|| (counter.clone(), by))
    })
}

/// Returns the probability of `count` or more where `expected` is the average.
fn at_least(count: u64, expected: f64) -> f64 {
    if count == 0 {
        return 1.0;
    }
    if expected <= 0.0 {
        return 0.0;
    }
    if expected > MANY {
        let off = (count as f64 - expected) / expected.sqrt();
        // A count more than about two deviations above the average is unusual.
        return if off > 2.06 { 0.0 } else { 0.5 };
    }
    let (mut term, mut below) = ((-expected).exp(), 0.0);
    for i in 0..count {
        below += term;
        term *= expected / (i + 1) as f64;
        // The remaining terms are smaller than this one, and decrease.
        if i as f64 > expected && term < 1e-12 {
            break;
        }
    }
    (1.0 - below).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(timer: u64, disk: u64) -> Counts {
        let mut counts = Counts::default();
        counts.set(Counter::Interrupt("LOC".into(), "timer".into()), timer);
        counts.set(Counter::Interrupt("25".into(), "disk".into()), disk);
        counts.set(Counter::Waited, timer * 1000);
        counts
    }

    #[test]
    fn a_rare_counter_comes_first_and_the_tick_is_usual() {
        let mut usual = Usual::default();
        // 250 times in one second.
        usual.learn(&counts(0, 0), &counts(250, 0), 1_000_000_000);
        let moved = moved(&counts(250, 0), &counts(253, 1), &usual, 10_000_000);
        let names: Vec<&str> = moved.iter().map(|m| m.counter.as_str()).collect();
        assert_eq!(names, ["interrupt 25 (disk)", "interrupt LOC (timer)"]);
        assert!(moved[0].unusual && !moved[1].unusual, "{moved:?}");
        assert!((moved[1].usual - 2.5).abs() < 1e-9);
    }

    #[test]
    fn a_storm_of_the_usual_is_unusual() {
        let mut usual = Usual::default();
        usual.learn(&counts(0, 0), &counts(250, 10), 1_000_000_000);
        let moved = moved(&counts(0, 0), &counts(40, 0), &usual, 10_000_000);
        assert!(moved[0].unusual && moved[0].by == 40, "{moved:?}");
    }

    #[test]
    fn nothing_moves_between_equals_and_a_new_line_is_new() {
        let usual = Usual::default();
        assert!(moved(&counts(1, 1), &counts(1, 1), &usual, 1).is_empty());
        let mut more = counts(1, 1);
        more.set(Counter::Interrupt("26".into(), "new".into()), 2);
        assert_eq!(moved(&counts(1, 1), &more, &usual, 1)[0].by, 2);
        // The usual rate of a counter that could not be read before is unknown.
        more.set(Counter::Smi, 7);
        assert_eq!(moved(&counts(1, 1), &more, &usual, 1).len(), 1);
        assert!(moved(&Counts::default(), &more, &usual, 1).is_empty());
    }

    #[test]
    fn among_equally_unusual_counters_a_device_comes_first() {
        let mut before = counts(0, 0);
        let mut after = counts(0, 1);
        for (counter, by) in [
            (Counter::Preempted, 3),
            (Counter::Interrupt("IWI".into(), "IRQ work".into()), 2),
            (Counter::Softirq("HI".into()), 4),
        ] {
            before.set(counter.clone(), 0);
            after.set(counter, by);
        }
        let moved = moved(&before, &after, &Usual::default(), 1);
        let names: Vec<&str> = moved.iter().map(|m| m.counter.as_str()).collect();
        assert_eq!(
            names,
            [
                "interrupt 25 (disk)",
                "interrupt IWI (IRQ work)",
                "softirq HI",
                "preemption"
            ]
        );
    }

    #[test]
    fn chances_agree_with_tables() {
        for (count, expected, chance) in [
            (1, 0.1, 0.0951625),
            (6, 2.5, 0.0420210),
            (3, 2.5, 0.4561869),
            (10, 10.0, 0.5420703),
        ] {
            assert!(
                (at_least(count, expected) - chance).abs() < 1e-6,
                "{count} {expected}"
            );
        }
        assert!(at_least(1100, 1000.0) < SELDOM && at_least(1010, 1000.0) > SELDOM);
    }

    proptest! {
        #[test]
        fn chances_fall_with_the_count(count in 1u64..2000, expected in 0.0f64..1000.0) {
            let (this, more) = (at_least(count, expected), at_least(count + 1, expected));
            prop_assert!((0.0..=1.0).contains(&this) && more <= this + 1e-9);
        }
    }
}
