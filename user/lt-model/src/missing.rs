// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The kinds of events that a trace does not have at all. They may have happened at any time, so nothing may be
//! concluded from their absence.

/// Events without which something else may seem to be a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// `block_rq_complete`: a disk has ended a wait, and not the timer or the call in which its driver says so.
    Completions,
    /// `writeback_balance_dirty_pages`: a pause is that of the dirty limit.
    Dirty,
    /// `irq_softirq_entry`: a softirq did it, and not the thread that it has interrupted.
    Softirqs,
    /// `timer_expire_entry`: the softirq of timers did it.
    Timers,
    /// `irq_handler_entry`: the handler of a device has raised a softirq, and not the thread that it has interrupted.
    Handlers,
    /// `workqueue_execute_start`: a worker submits what a limit has held back.
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
