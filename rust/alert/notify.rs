// SPDX-License-Identifier: GPL-2.0

//! Wakes the readers of alerts: from any context, at most once an interval, never too seldom.
//!
//! ```text
//!   alert --> armed? --yes--> nothing: a wake-up is on its way       (counted as suppressed)
//!               |
//!               no --> armed, irq_work --> interval over? --yes--> wake, not armed
//!                                               |
//!                                               no --> timer --> wake, not armed
//! ```
//!
//! "Armed" is cleared just before the wake-up, so an alert that finds it armed is recorded before
//! that wake-up and is seen by it; a later one arms again. No alert waits for the next one to be
//! noticed.

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

/// The state of a [`Notifier`].
pub(crate) struct State {
    armed: Atomic<bool>,
    /// When the readers were woken last, in nanoseconds; 0 for never.
    last: Atomic<u64>,
    /// The shortest time between two wake-ups in nanoseconds.
    interval: Atomic<u64>,
    wakes: Atomic<u64>,
    suppressed: Atomic<u64>,
    gone: Atomic<bool>,
}

/// The readers of one ring, and how to wake them.
pub(crate) type Notifier = Waker<State>;

/// Creates a wake-up with the shortest time between two wake-ups, in nanoseconds.
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

/// An alert has been recorded. Any context.
pub(crate) fn raise(notifier: &Notifier) {
    // Full: the record is visible before it is decided that another context will announce it; pairs
    // with `wake`.
    if notifier.armed.xchg(true, Full) {
        notifier.suppressed.add(1, Relaxed);
    } else {
        notifier.handle().queue();
    }
}

/// Makes all readers return for good; they see end-of-file. Returns whether this was the first
/// time.
pub(crate) fn release(notifier: &Notifier) -> bool {
    // Full: they check it after they are woken.
    let first = !notifier.gone.xchg(true, Full);
    notifier.handle().wake();
    first
}

/// Changes the shortest time between two wake-ups, in nanoseconds.
///
/// A wake-up that waits for the old interval to end is rescheduled at once.
pub(crate) fn set_interval(notifier: &Notifier, interval: u64) {
    // Full: an alert that arms after this check, so that we do not queue, sees the new interval.
    notifier.interval.xchg(interval, Full);
    if notifier.armed.load(Relaxed) {
        notifier.handle().queue();
    }
}

impl State {
    /// Number of wakeups of the readers.
    pub(crate) fn wakes(&self) -> u64 {
        self.wakes.load(Relaxed)
    }

    /// Number of alerts for which a wakeup was already due.
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
        // Full: what was recorded before an alert found us armed is visible to the readers that we
        // wake.
        self.armed.xchg(false, Full);
        handle.wake();
    }
}

impl Callbacks for State {
    fn on_irq_work(&self, handle: &Handle) {
        // Not armed: queued by a change of the interval, and the timer was faster.
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
        // Not armed: a shorter interval was faster. If an alert has armed since, its own
        // irq_work decides, and this wake-up would come too early.
        let now = Kernel::now();
        let since = now.saturating_sub(self.last.load(Relaxed));
        if self.armed.load(Relaxed) && since >= self.interval.load(Relaxed) {
            self.wake(handle, now);
        } else if self.armed.load(Relaxed) {
            handle.queue();
        }
    }
}
