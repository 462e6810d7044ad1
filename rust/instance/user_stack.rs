// SPDX-License-Identifier: GPL-2.0

//! The stack of an event's task in user space (`ustack=1`): when it is walked, and where it is
//! kept until the alert.
//!
//! ```text
//!   syscall   the task raises the alert, at the end of its call       walked then
//!   offcpu    the task raises the alert, after its switch-in          walked then
//!   block     an interrupt or another task raises the alert           walked by the submitter, and
//!                                                                     kept in the event
//! ```
//!
//! Only the task itself can read its stack. A stack that is walked for the alert costs nothing
//! until an event is late. A stack that is kept costs a walk and [`KEPT`] words for each event.
//!
//! # Contexts
//!
//! Any, with preemption off.

use crate::{
    alert::record::{
        user::{End, Mark, USER_DEPTH},
        Owner, //
    },
    sys::{
        bindings as helpers,
        platform::PreemptGuard,
        task::{Context, TaskRef},
        user_stack::{walk, USER_DEPTH_MAX}, //
    },
};

const _: () = assert!(USER_DEPTH_MAX == USER_DEPTH);

/// Number of words of a [`Kept`] stack.
pub(crate) const KEPT: usize = 1 + USER_DEPTH;

/// A stack: its [`Mark`], and its addresses, innermost first.
pub(crate) type Kept = [u64; KEPT];

/// Returns the words that stand for a missing stack, with the reason why it is missing.
pub(crate) fn missing(why: End) -> Kept {
    let mut words: Kept = [0; KEPT];
    words[0] = Mark::new(why, 0).0.into();
    words
}

/// Walks the stack of the current task. Not inlined: the walk should take no room in the frame of
/// the caller.
#[inline(never)]
pub(crate) fn of_current(guard: &PreemptGuard) -> Kept {
    let mut words: Kept = [0; KEPT];
    let [mark, entries @ ..] = &mut words;
    let (len, end) = walk(guard, entries);
    let end = match end {
        helpers::lt_user_end_LT_USER_KERNEL => End::Kernel,
        helpers::lt_user_end_LT_USER_OUTERMOST => End::Outermost,
        helpers::lt_user_end_LT_USER_BROKEN => End::Broken,
        helpers::lt_user_end_LT_USER_UNREADABLE => End::Unreadable,
        helpers::lt_user_end_LT_USER_DEPTH => End::Depth,
        helpers::lt_user_end_LT_USER_UNSUPPORTED => End::Unsupported,
        _ => End::None,
    };
    *mark = Mark::new(end, len).0.into();
    words
}

/// Walks the stack of the owner of an event if the owner is the current task, in task context. Any
/// other stack is [`missing`].
pub(super) fn of_owner(guard: &PreemptGuard, owner: &Owner) -> Kept {
    let is_owner = TaskRef::with_current(|task| {
        let mark = Owner::start_mark_of(task.start_time());
        Context::current() == Context::Task && (task.tid(), mark) == (owner.tid, owner.start_mark)
    });
    if is_owner {
        of_current(guard)
    } else {
        missing(End::Elsewhere)
    }
}

/// Returns the mark of a stack, and its addresses.
pub(super) fn parts(kept: &Kept) -> (Mark, &[u64]) {
    let [mark, entries @ ..] = kept;
    let mark = Mark(*mark as u8);
    (mark, entries.get(..mark.len()).unwrap_or_default())
}
