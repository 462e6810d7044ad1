// SPDX-License-Identifier: GPL-2.0

//! Wakes the readers of alerts, from any context and at most once per interval. Each alert is
//! followed by a wakeup.
//!
//! ```text
//!   alert --> armed? --yes--> nothing: a wakeup is on its way        (counted as suppressed)
//!               |
//!               no --> armed, irq_work --> interval over? --yes--> wake, not armed
//!                                               |
//!                                               no --> timer --> wake, not armed
//! ```
//!
//! `armed` is cleared just before the wakeup, so an alert that finds it set was recorded before
//! that wakeup, and the woken readers see it. A later alert sets `armed` again. So readers notice
//! an alert even if no other alert follows.

use crate::{
    engine::platform::Platform,
    sys::{
        platform::Kernel,
        waker::{Callbacks, Handle, Waker}, //
    },
};
use kernel::{
    prelude::*,
    sync::atomic::{Atomic, Full, Relaxed}, //
};

pub(crate) struct State {
    armed: Atomic<bool>,
    /// When the readers were last woken, in nanoseconds; 0 for never.
    last: Atomic<u64>,
    /// The minimum time between two wakeups, in nanoseconds.
    interval: Atomic<u64>,
    wakes: Atomic<u64>,
    suppressed: Atomic<u64>,
    gone: Atomic<bool>,
}

/// The readers of one ring, and the means to wake them.
pub(crate) type Notifier = Waker<State>;

/// Creates a notifier with the minimum time between two wakeups, in nanoseconds.
pub(crate) fn new(interval: u64) -> Result<Notifier> {
    Waker::new(State {
        armed: Atomic::new(false),
        last: Atomic::new(0),
        interval: Atomic::new(interval),
        wakes: Atomic::new(0),
        suppressed: Atomic::new(0),
        gone: Atomic::new(false),
    })
}

/// Announces an alert that has been recorded. Any context.
pub(crate) fn raise(notifier: &Notifier) {
    // Full: the record is visible before `armed` is read. If `armed` was set, another context wakes
    // the readers later, and they see the record; pairs with `wake`.
    if notifier.armed.xchg(true, Full) {
        notifier.suppressed.add(1, Relaxed);
    } else {
        notifier.handle().queue();
    }
}

/// Makes all readers return for good; they see end-of-file. Returns whether this is the first call.
pub(crate) fn release(notifier: &Notifier) -> bool {
    // Full: `gone` is set before the readers are woken. The woken readers check it.
    let first = !notifier.gone.xchg(true, Full);
    notifier.handle().wake();
    first
}

/// Changes the minimum time between two wakeups, in nanoseconds.
///
/// A wakeup that waits for the old interval to end is rescheduled at once.
pub(crate) fn set_interval(notifier: &Notifier, interval: u64) {
    // Full: we store the interval, and then read `armed`. An alert sets `armed` with a full
    // exchange, and its irq_work reads the interval only after that. So if we do not see `armed`
    // set, the irq_work sees the new interval.
    notifier.interval.xchg(interval, Full);
    if notifier.armed.load(Relaxed) {
        notifier.handle().queue();
    }
}

impl State {
    /// Returns the number of wakeups of the readers.
    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.load(Relaxed)
    }

    /// Returns the number of alerts for which a wakeup was already pending.
    pub(crate) fn suppressed(&self) -> u64 {
        self.suppressed.load(Relaxed)
    }

    /// Whether [`release`] was called.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    fn wake(&self, handle: &Handle, now: u64) {
        self.last.store(now, Relaxed);
        self.wakes.add(1, Relaxed);
        // Full: an alert that found `armed` set was recorded before this exchange, and the readers
        // that we wake see it.
        self.armed.xchg(false, Full);
        handle.wake();
    }
}

impl Callbacks for State {
    fn on_irq_work(&self, handle: &Handle) {
        // Not armed: a change of the interval queued this work, but the timer woke the readers
        // first.
        if !self.armed.load(Relaxed) {
            return;
        }
        let now = Kernel::now();
        let last = self.last.load(Relaxed);
        let interval = self.interval.load(Relaxed);
        let since = now.saturating_sub(last);
        if last == 0 || since >= interval {
            self.wake(handle, now);
        } else {
            handle.arm(interval - since);
        }
    }

    fn on_timer(&self, handle: &Handle) {
        // If not armed, a change to a shorter interval has already woken the readers. If a later
        // alert has set `armed` again, a wakeup now may be too early: then the irq_work decides.
        let now = Kernel::now();
        let since = now.saturating_sub(self.last.load(Relaxed));
        if self.armed.load(Relaxed) && since >= self.interval.load(Relaxed) {
            self.wake(handle, now);
        } else if self.armed.load(Relaxed) {
            handle.queue();
        }
    }
}
