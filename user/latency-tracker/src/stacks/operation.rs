// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One late operation, from all alerts about it: the alerts of a timeout or of a stack, and the alert of its end.

use std::collections::HashMap;

use lt_proc::{Alert, Pending, Reason};

use super::user::User;

/// A late operation.
#[derive(Debug, Clone)]
pub(crate) struct Operation<T = ()> {
    /// What the caller keeps of the last alert.
    pub(crate) tag: T,
    pub(super) comm: String,
    /// The task that woke the late task, or `[hardirq]` for an interrupt; empty if not recorded.
    pub(super) waker: String,
    /// Where the task was, the innermost function first; empty if not recorded.
    pub(crate) stack: Vec<String>,
    /// Where the waker was.
    pub(super) waker_stack: Vec<String>,
    /// Where the task was in user space; `None` unless its instance records it (`ustack=1`).
    pub(super) user: Option<User>,
    /// The delay, ns; so far, unless the operation has ended.
    pub(crate) delay: u64,
    /// Whether the operation had more than one stack.
    pub(super) is_moved: bool,
    /// Whether the operation began before its instance, so that the delay is a lower bound.
    pub(crate) is_at_least: bool,
    start: u64,
    /// Time of the operation's last alert.
    pub(crate) seen: u64,
    has_timed_out: bool,
}

impl<T> Operation<T> {
    fn of(alert: &Alert, tag: T) -> Self {
        let fields = &alert.fields;
        let waker = match fields.text("context").as_deref() {
            None => String::new(),
            Some("task") => fields.text("waker_comm").unwrap_or_default().into_owned(),
            // The interrupted task is unrelated to the wakeup.
            Some(context) => format!("[{context}]"),
        };
        Self {
            tag,
            comm: alert.comm.text().into_owned(),
            waker,
            stack: alert.stack(),
            waker_stack: alert.waker_stack(),
            user: User::of(alert),
            delay: alert.delay,
            is_moved: false,
            is_at_least: fields.is_at_least(),
            start: alert.start(),
            seen: alert.time,
            has_timed_out: alert.reason == Reason::Timeout,
        }
    }

    /// Removes and returns the operation that a later alert is about. `open` has the operations of a thread that have
    /// not ended. `reason` and `start` come from the alert; without a `reason`, `start` is the start of an operation in
    /// flight.
    ///
    /// If and only if the alert of an end is marked as late, it follows an alert of a timeout. The earlier alert was
    /// raised while the operation was in flight, so not before the start of the operation. If several operations fit,
    /// the one with the nearest start is taken: the start that is computed from an alert is late by the time that
    /// raising the alert took.
    pub(super) fn take_from(
        open: &mut Vec<Self>,
        start: u64,
        reason: Option<&Reason>,
    ) -> Option<Self> {
        let fits = |earlier: &Self| match reason {
            Some(Reason::Late) => earlier.has_timed_out,
            Some(Reason::Stack) | None => true,
            Some(_) => !earlier.has_timed_out,
        };
        let near = open.iter().enumerate();
        let near = near.filter(|(_, earlier)| fits(earlier) && start <= earlier.seen);
        let (at, _) = near.min_by_key(|(_, earlier)| earlier.start.abs_diff(start))?;
        Some(open.swap_remove(at))
    }

    /// Returns `later`, from a later alert of this operation, completed with data that only an earlier alert has.
    pub(super) fn then(self, mut later: Self) -> Self {
        let is_other = |a: &[String], b: &[String]| {
            !a.is_empty()
                && !b.is_empty()
                && !a.iter().map(|f| name(f)).eq(b.iter().map(|f| name(f)))
        };
        later.is_moved |= self.is_moved || is_other(&self.stack, &later.stack);
        later.is_at_least |= self.is_at_least;
        later.has_timed_out |= self.has_timed_out;
        later.start = self.start;
        if later.stack.is_empty() {
            later.stack = self.stack;
        }
        if later.waker_stack.is_empty() {
            later.waker_stack = self.waker_stack;
        }
        if later.waker.is_empty() {
            later.waker = self.waker;
        }
        later.user = match (self.user, later.user) {
            (earlier, None) => earlier,
            (earlier @ Some(User::Stack { .. }), Some(User::Missing(_))) => earlier,
            (_, later) => later,
        };
        later
    }
}

impl Operation {
    /// An operation in flight.
    pub(super) fn pending(pending: &Pending) -> Self {
        let fields = &pending.fields;
        let text = |key| fields.text(key).unwrap_or_default().into_owned();
        let start = fields.number("start").unwrap_or(0);
        Self {
            tag: (),
            comm: text("comm"),
            waker: String::new(),
            stack: pending.stack(),
            waker_stack: Vec::new(),
            user: None,
            delay: pending.age(),
            is_moved: false,
            is_at_least: fields.is_at_least(),
            start,
            seen: start.saturating_add(pending.age()),
            has_timed_out: false,
        }
    }
}

/// Late operations that have not ended, by instance and thread.
#[derive(Debug)]
pub(crate) struct Open<T = ()>(HashMap<(String, u64), Vec<Operation<T>>>);

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Open<T> {
    /// Adds an alert. If its operation has ended, returns the operation, completed with data from its earlier alerts.
    pub(crate) fn see(&mut self, alert: &Alert, tag: T) -> Option<Operation<T>> {
        let key = (alert.instance.clone(), alert.tid);
        let new = Operation::of(alert, tag);
        let earlier = self
            .0
            .get_mut(&key)
            .and_then(|open| Operation::take_from(open, alert.start(), Some(&alert.reason)));
        let operation = match earlier {
            Some(earlier) => earlier.then(new),
            None => new,
        };
        match alert.reason {
            Reason::Timeout | Reason::Stack => {
                self.0.entry(key).or_default().push(operation);
                None
            }
            Reason::Threshold | Reason::Late | Reason::Other(_) => {
                if self.0.get(&key).is_some_and(Vec::is_empty) {
                    self.0.remove(&key);
                }
                Some(operation)
            }
        }
    }

    /// Returns the operations that have not ended, each with its thread.
    pub(crate) fn rest(self) -> impl Iterator<Item = (u64, Operation<T>)> {
        let threads = self.0.into_iter();
        threads.flat_map(|((_, tid), open)| open.into_iter().map(move |one| (tid, one)))
    }
}

/// The function of a frame such as `ext4_sync_file+0x1a/0x340 [ext4]`, with its module, without the offset.
pub(crate) fn name(frame: &str) -> String {
    let (place, module) = frame.split_once(' ').unwrap_or((frame, ""));
    let function = place.split_once("+0x").map_or(place, |(name, _)| name);
    match module {
        "" => function.to_string(),
        module => format!("{function} {module}"),
    }
}

/// Whether the kernel is entered in this function, so that no function called it.
pub(super) fn is_entry(frame: &str) -> bool {
    const ENTRIES: [&str; 7] = [
        "entry_",
        // exceptions and interrupts of x86
        "asm_",
        "ret_from_fork",
        "common_startup_64",
        "secondary_startup",
        // arm64, from user space
        "el0t_",
        "el0_",
    ];
    ENTRIES.iter().any(|entry| frame.starts_with(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_names_and_ends() {
        assert_eq!(name("bio_await+0x79/0xb0"), "bio_await");
        assert_eq!(name("ext4_sync+0x1/0x2 [ext4]"), "ext4_sync [ext4]");
        assert_eq!(name("?"), "?");
        assert!(is_entry("entry_SYSCALL_64_after_hwframe+0x76/0x7e"));
        assert!(!is_entry("do_syscall_64+0xe1/0x650") && !is_entry("?"));
    }
}
