// SPDX-License-Identifier: GPL-2.0

//! The kind of a tracker: its entry in the list of trackers (trackers.rs). The code that creates,
//! lists, checks and prints instances uses nothing else of the tracker.

use super::{Instance, Values};
use crate::{
    alert::{
        record::{Alert, Name},
        stream::Alerts,
    },
    control::Param,
    engine::labels::{Source, LABEL},
    measure::Measure,
};
use core::ffi::CStr;
use kernel::{fmt, prelude::*, sync::Arc};

/// The arguments for creating an instance.
pub(crate) struct New<'a> {
    pub(crate) name: Name,
    /// The position of its tracker in the list of trackers.
    pub(crate) number: usize,
    pub(crate) values: &'a Values,
    /// The alerts of all instances.
    pub(crate) all: Arc<Alerts>,
    /// Where the cost of its probes is recorded, if it is measured.
    pub(crate) measure: Option<Arc<Measure>>,
}

/// A kind of tracker, of which there can be any number of instances.
pub(crate) struct Kind {
    /// Its name in the control language.
    pub(crate) name: &'static str,
    /// Its name as a C string.
    pub(crate) c_name: &'static CStr,
    /// A one-line description of what it measures.
    pub(crate) help: &'static str,
    /// Its parameters: first the common parameters of [`crate::instance`], then its own.
    pub(crate) params: &'static [Param],
    /// The names of its own counters in `stats`.
    pub(crate) counters: &'static [&'static str],
    /// Number of words of [`Alert::detail`] that it uses.
    pub(crate) detail_words: usize,
    /// Its own words in the tail of a record, if any.
    pub(crate) tail: Option<Tail>,
    /// Why it has no parameter [`USER_STACK`], if it has none.
    pub(crate) no_user_stack: &'static str,
    /// Whether the last words of an event's data are a stack in user space, if the instance has
    /// [`USER_STACK`], see [`super::user_stack`].
    pub(crate) keeps_user_stack: bool,
    /// How delays are counted by label, if they can be; then `by` and `max_labels` are its last
    /// parameters.
    pub(crate) labels: Option<Labelling>,
    /// Prints its fields of an alert line, each with a space before it.
    pub(crate) detail: fn(&Alert, &mut fmt::Formatter<'_>) -> fmt::Result,
    /// Returns a parameter, and the reason, if these values are invalid together though each is
    /// valid alone; `None` if they are valid.
    pub(crate) check: fn(&Values) -> Option<(usize, &'static str)>,
    /// Returns what this kernel lacks for the tracker, usually the name of a tracepoint; `None` if
    /// nothing.
    pub(crate) missing: fn() -> Option<&'static CStr>,
    /// What it does not see on this architecture, if anything.
    pub(crate) lacks: Option<&'static str>,
    /// Creates an instance, not enabled yet. May sleep. `None` if a line of the control language
    /// cannot create an instance.
    pub(crate) create: Option<Create>,
}

/// The parameter of trackers whose alerts can have the task's stack in user space, see
/// [`super::user_stack`].
pub(crate) const USER_STACK: &str = "ustack";

/// Serves as [`Kind::no_user_stack`] of a tracker whose alerts the task itself may raise.
pub(crate) const NOT_RECORDED: &str = "this tracker does not record stacks in user space";

/// Serves as [`Kind::no_user_stack`] of a tracker whose alerts are raised elsewhere.
pub(crate) const RAISED_ELSEWHERE: &str =
    "a task's stack in user space can be read by the task only, and it does not raise these alerts";

impl Kind {
    /// Returns the position of the parameter [`USER_STACK`], if the tracker has it.
    pub(super) fn user_stack(&self) -> Option<usize> {
        let is_it = |param: &Param| param.name == USER_STACK;
        self.params.iter().position(is_it)
    }
}

/// The labels of a tracker, by the value of `by`.
#[derive(Clone, Copy)]
pub(crate) struct Labelling {
    /// Returns the source of the labels for this value of `by`; `None` if an event does not keep
    /// the field, or if the value is `none`.
    pub(crate) source: fn(usize) -> Option<Source>,
    /// Prints a label as fields of a line, each with a space before it.
    pub(crate) show: fn(usize, &[u64; LABEL], &mut fmt::Formatter<'_>) -> fmt::Result,
}

/// A tracker's own words in the tail of a record, before the stack.
pub(crate) struct Tail {
    /// Returns the part of an event's data that goes there, at most
    /// [`crate::alert::record::OWN_TAIL`] words.
    pub(crate) of: fn(&[u64]) -> &[u64],
    /// Returns the number of these words in an alert.
    pub(crate) len: fn(&Alert) -> usize,
    /// Prints the words as fields of the alert's line.
    pub(crate) show: fn(&Alert, &[u64], &mut fmt::Formatter<'_>) -> fmt::Result,
}

/// Creates an instance of a tracker.
pub(crate) type Create = fn(New<'_>) -> Result<Arc<dyn Instance>>;

/// Serves as [`Kind::check`] of a tracker whose values are valid together if each is valid alone.
pub(crate) fn all_right(_: &Values) -> Option<(usize, &'static str)> {
    None
}
