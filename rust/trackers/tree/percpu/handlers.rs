// SPDX-License-Identifier: GPL-2.0

//! The interrupt handler that a CPU runs, and the interrupt that a chain begins with: a device
//! interrupt with its handler, or a local interrupt.
//!
//! See the head of percpu.rs.

use super::{
    super::chain::{Kind, Origin, Step, Words},
    logs::Interrupt,
    word, Word,
};
use crate::sys::{
    atomic::Relaxed,
    irq::{Action, NAME_WORDS}, //
};

/// A handler that was called.
pub(super) struct Called {
    irq: Word,
    entered: Word,
    /// The name of its action, uncut: most names are never needed.
    action: [Word; NAME_WORDS],
}

impl Called {
    pub(super) fn new() -> Self {
        Self {
            irq: word(),
            entered: word(),
            action: core::array::from_fn(|_| word()),
        }
    }

    /// Notes that the handler is called now. Returns the time.
    ///
    /// The name of the action is copied, though few interrupts need it: the action may be freed
    /// once the handler has returned.
    #[inline(always)]
    pub(super) fn enter(&self, irq: u32, action: Action<'_>, now: impl FnOnce() -> u64) -> u64 {
        self.irq.store(irq.into(), Relaxed);
        action.with_uncut_name(|name| {
            for (word, value) in self.action.iter().zip(name) {
                word.store(value, Relaxed);
            }
        });
        // The clock is read last: fewer values must be kept in registers during the call.
        let now = now();
        self.entered.store(now, Relaxed);
        now
    }

    #[inline(always)]
    pub(super) fn interrupt(&self) -> Interrupt {
        let [low, high, ..] = &self.action;
        let name = [low, high].map(|word| word.load(Relaxed));
        Interrupt::Handler(self.irq.load(Relaxed), name)
    }
}

/// The interrupt that a chain begins with.
pub(super) struct First<'a> {
    origin: Origin,
    pub(super) at: u64,
    pub(super) step: Step,
    /// The handler, for a device interrupt.
    called: Option<&'a Called>,
}

impl<'a> First<'a> {
    #[inline(always)]
    pub(super) fn of_handler(called: &'a Called, cpu: u32) -> Self {
        let (kind, subject) = (Kind::Irq, called.irq.load(Relaxed));
        Self {
            origin: Origin::Irq,
            at: called.entered.load(Relaxed),
            step: Step { kind, cpu, subject },
            called: Some(called),
        }
    }

    /// Describes a local interrupt; `vector` is its position in the list of local interrupts.
    #[inline(always)]
    pub(super) fn of_vector(vector: u64, at: u64, cpu: u32) -> Self {
        let (kind, subject) = (Kind::Vector, vector);
        Self {
            origin: Origin::Vector,
            at,
            step: Step { kind, cpu, subject },
            called: None,
        }
    }

    /// Begins the chain. Returns its start.
    #[inline(always)]
    pub(super) fn begin(self, chain: &mut impl Words) -> u64 {
        chain.begin_with(self.origin, [(self.at, self.step)]);
        self.name(chain)
    }

    /// Begins the chain, followed by a step that is taken at `now`. Returns its start.
    #[inline(always)]
    pub(super) fn begin_with(self, chain: &mut impl Words, now: u64, step: Step) -> u64 {
        chain.begin_with(self.origin, [(self.at, self.step), (now, step)]);
        self.name(chain)
    }

    /// Gives the chain the name of the handler's action. Returns its start.
    #[inline(always)]
    fn name(self, chain: &mut impl Words) -> u64 {
        if let Some(called) = self.called {
            chain.set_action(core::array::from_fn(|at| called.action[at].load(Relaxed)));
        }
        self.at
    }
}
