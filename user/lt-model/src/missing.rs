// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Kinds of events that are not recorded at all. They may have happened at any time, so their absence proves nothing.

/// Events whose absence may make something else look like a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// `block_rq_complete`: shows that a disk ended a wait, and not the timer or the call in which its driver completes
    /// requests.
    Completions,
    /// `writeback_balance_dirty_pages`: shows that a pause is due to the dirty limit.
    Dirty,
    /// `irq_softirq_entry`: shows that a softirq acted, and not the thread that it interrupted.
    Softirqs,
    /// `timer_expire_entry`: shows that the timer softirq acted.
    Timers,
    /// `irq_handler_entry`: shows that a device's handler raised a softirq, and not the thread that it interrupted.
    Handlers,
    /// `workqueue_execute_start`: shows that a worker submits requests that a limit held back.
    Works,
}

impl Events {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Completions,
        Self::Dirty,
        Self::Softirqs,
        Self::Timers,
        Self::Handlers,
        Self::Works,
    ];
}

/// The kinds that are not recorded.
#[derive(Debug, Default, Clone)]
pub(crate) struct Missing(Vec<Events>);

impl Missing {
    pub(crate) fn add(&mut self, events: Events) {
        if !self.has(events) {
            self.0.push(events);
        }
    }

    pub(crate) fn has(&self, events: Events) -> bool {
        self.0.contains(&events)
    }
}
