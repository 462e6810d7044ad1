// SPDX-License-Identifier: GPL-2.0

//! The use of a CPU while a task waited for it. The parts never exceed the wait, and are exact to
//! the nanosecond if they are read on that CPU.

use crate::chain::{
    wait::{begin, end, is_running, more, total, LONGEST_WAIT, MASK},
    Chain, Kind, Look, Origin, Rivals, Spent, Step, Words, STEPS, WORDS,
};
use proptest::prelude::*;

/// The words of a CPU, updated as in percpu/spent.rs, and the true times.
#[derive(Clone, Copy)]
struct Cpu {
    now: u64,
    words: [u64; 3],
    /// True time in interrupts, softirqs, idle and tasks, ns. Time counts for the innermost category.
    truth: [u64; 4],
}

const IRQ: usize = 0;
const SOFTIRQ: usize = 1;
const IDLE: usize = 2;

impl Cpu {
    fn new(now: u64) -> Self {
        let (words, truth) = ([0; 3], [0; 4]);
        Self { now, words, truth }
    }

    fn is(&self, which: usize) -> bool {
        is_running(self.words[which])
    }

    fn passes(&mut self, time: u64) {
        let inner = [IRQ, SOFTIRQ, IDLE].into_iter().find(|&one| self.is(one));
        self.truth[inner.unwrap_or(3)] += time;
        self.now = self.now.wrapping_add(time);
    }

    /// Returns the clock of a category. It stands still while an inner category runs.
    fn clock(&self, which: usize) -> u64 {
        (0..which).fold(self.now, |clock, inner| {
            clock.wrapping_sub(total(self.words[inner], clock))
        })
    }

    /// Starts or ends a category, unless an inner one is running.
    fn toggle(&mut self, which: usize) {
        if (0..which).any(|inner| self.is(inner)) {
            return;
        }
        let change = if self.is(which) { end } else { begin };
        let by = change(self.clock(which));
        self.words[which] = self.words[which].wrapping_add(by);
    }

    /// Runs an NMI, which is reported at its end.
    fn nmi(&mut self, time: u64) {
        self.now = self.now.wrapping_add(time);
        self.truth[IRQ] += time;
        if !self.is(IRQ) {
            self.words[IRQ] = self.words[IRQ].wrapping_add(more(time));
        }
    }

    fn spent(&self) -> Spent {
        Spent::of(self.words, self.now)
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Toggle(usize),
    Nmi(u64),
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        6 => (0..3usize).prop_map(Act::Toggle),
        1 => (0..5_000u64).prop_map(Act::Nmi),
    ];
    let time = prop_oneof![8 => 0..100_000u64, 1 => Just(0), 1 => 0..2_000_000_000u64];
    prop::collection::vec((time, act), 0..40)
}

fn all(spent: Spent) -> [u64; 3] {
    [spent.irq, spent.softirq, spent.idle]
}

const NONE: Spent = Spent {
    irq: 0,
    softirq: 0,
    idle: 0,
};

proptest! {
    /// The parts are exact for any interval at any time since boot, even if totals and clocks wrap.
    #[test]
    fn parts_are_what_the_cpu_did(
        boot: u64,
        before in acts(),
        during in acts(),
        half in 0..1000u64,
    ) {
        let mut cpu = Cpu::new(boot);
        let run = |cpu: &mut Cpu, acts: Vec<(u64, Act)>| for (time, act) in acts {
            cpu.passes(time);
            match act {
                Act::Toggle(which) => cpu.toggle(which),
                Act::Nmi(time) => cpu.nmi(time),
            }
        };
        run(&mut cpu, before);
        cpu.passes(half);
        let (noted, then) = (cpu.spent(), cpu);
        run(&mut cpu, during);
        cpu.passes(half);
        let wait = cpu.now.wrapping_sub(then.now);
        let parts = noted.until(cpu.spent(), wait);
        if wait > LONGEST_WAIT {
            prop_assert_eq!(parts, None);
            return Ok(());
        }
        let parts = parts.unwrap();
        let truth: Vec<_> = (0..4).map(|one| cpu.truth[one] - then.truth[one]).collect();
        prop_assert_eq!(&all(parts)[..], &truth[..3]);
        prop_assert_eq!(parts.tasks(wait), truth[3]);
    }

    /// Values read on another CPU may be arbitrary: neither a part nor the sum exceeds the wait.
    #[test]
    fn parts_are_never_more_than_the_wait(
        noted in prop::array::uniform3(0..=MASK),
        now in prop::array::uniform3(0..=MASK),
        wait in 0..=LONGEST_WAIT,
    ) {
        let spent = |[irq, softirq, idle]: [u64; 3]| Spent { irq, softirq, idle };
        let parts = spent(noted).until(spent(now), wait).unwrap();
        prop_assert!(all(parts).iter().sum::<u64>() <= wait);
        prop_assert_eq!(all(parts).iter().sum::<u64>() + parts.tasks(wait), wait);
    }

    /// A task that migrates during its wait has waited for both CPUs, one after the other.
    #[test]
    fn a_wait_moves_with_its_task(
        noted in prop::array::uniform3(0..1u64 << 30),
        first in prop::array::uniform3(0..1u64 << 20),
        other in prop::array::uniform3(0..=MASK),
        second in prop::array::uniform3(0..1u64 << 20),
    ) {
        let step = |kind, cpu| Step { kind, cpu, subject: 7 };
        let spent = |[irq, softirq, idle]: [u64; 3]| Spent { irq, softirq, idle };
        let sum = |a: [u64; 3], b: [u64; 3]| core::array::from_fn(|at| (a[at] + b[at]) & MASK);
        let mut chain: Chain = [0; WORDS];
        chain.begin_with(Origin::Irq, [(100, step(Kind::Irq, 4))]);
        chain.push(100, step(Kind::Waking, 4));
        chain.push_wait(5, spent(noted));
        chain.move_wait(6, false, |cpu| match cpu {
            5 => Some(spent(sum(noted, first))),
            6 => Some(spent(other)),
            _ => None,
        });
        prop_assert!(chain.is_waiting());
        let now = spent(sum(other, second));
        chain.push_waited(100 + (1 << 23), step(Kind::Switch, 6), None, now, |_, _| Rivals::default());
        let words = [chain.get(WORDS - STEPS + 2 * 3), chain.get(WORDS - STEPS + 2 * 3 + 1)];
        prop_assert_eq!(words, spent(sum(first, second)).to_words(Kind::Parts, 6));
    }

    #[test]
    fn two_words_hold_all_parts_of_a_wait(times in prop::array::uniform3(0..=MASK), cpu in 0..8192u32) {
        let [irq, softirq, idle] = times;
        let spent = Spent { irq, softirq, idle };
        let words = spent.to_words(Kind::Wait, cpu);
        prop_assert_eq!(words[0] >> 59, Kind::Wait as u64);
        prop_assert_eq!(Spent::of_words(words), (cpu, spent));
    }
}

/// A task that is switched in on a CPU without notes has no parts: none are invented.
#[test]
fn unknown_parts_are_missing() {
    let step = |kind, cpu| Step {
        kind,
        cpu,
        subject: 7,
    };
    let waits = |noted: Option<u32>, wait: u64| {
        let mut chain: Chain = [0; WORDS];
        chain.begin_with(Origin::Irq, [(100, step(Kind::Irq, 4))]);
        chain.push(100, step(Kind::Waking, 4));
        if let Some(cpu) = noted {
            chain.push_wait(cpu, NONE);
        }
        let step = step(Kind::Switch, 5);
        chain.push_waited(100 + wait, step, Some([1, 2]), NONE, |_, _| {
            Rivals::default()
        });
        chain.counts().places()
    };
    assert_eq!(waits(Some(5), 10), 5);
    // The task migrated, nothing was noted, or it has waited for too long.
    for places in [
        waits(Some(4), 10),
        waits(None, 10),
        waits(Some(5), LONGEST_WAIT + 1),
    ] {
        assert_eq!(places, 4);
    }
}
