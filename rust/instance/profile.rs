// SPDX-License-Identifier: GPL-2.0

//! The profile of an instance, and the lock that its readers and its worker share.
//!
//! Probes count without the lock. Showing, resetting and taking a snapshot require it.

use crate::{
    engine::{
        platform::Platform,
        profile::{Class, Counts, History, Span},
    },
    sys::platform::Kernel, //
};
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex}, //
};

/// An instance's counters and history.
#[pin_data]
pub(crate) struct InstanceProfile {
    counts: Counts,
    #[pin]
    history: Mutex<History>,
}

impl InstanceProfile {
    /// Creates a profile that starts now. May sleep; fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        let counts = Counts::new::<Kernel>()?;
        let history = History::new(Kernel::now())?;
        Arc::pin_init(
            pin_init!(Self {
                counts,
                history <- new_mutex!(history),
            }),
            GFP_KERNEL,
        )
    }

    /// Counts an operation. Any context.
    #[inline(always)]
    pub(crate) fn count(&self, guard: &<Kernel as Platform>::Guard, class: Class, delay: u64) {
        self.counts.count::<Kernel>(guard, class, delay);
    }

    /// Prints the table of a span. May sleep.
    pub(crate) fn show(&self, span: Span, out: &SeqFile) {
        let mut history = self.history.lock();
        seq_print!(
            out,
            "{}",
            history.profile(&self.counts, span, Kernel::now())
        );
    }

    /// Ends the profile and starts the next. May sleep.
    pub(crate) fn reset(&self) {
        self.history.lock().reset(&self.counts, Kernel::now());
    }

    /// Takes the snapshots that are due. Returns the nanoseconds until the next one is due, or a
    /// short time if another task holds the lock. Does not wait for that task, which may be kept
    /// from running. Task context.
    pub(crate) fn take_due(&self) -> u64 {
        const MOMENT: u64 = 10_000_000;
        let Some(mut history) = self.history.try_lock() else {
            return MOMENT;
        };
        history.take_due(&self.counts, Kernel::now())
    }
}
