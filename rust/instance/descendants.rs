// SPDX-License-Identifier: GPL-2.0

//! `tree=1`: a filter that accepts the process of `pid` and its descendants. The head of
//! sys/descendants.rs names the few that may remain unknown.
//!
//! ```text
//!   pid=P          the value that probes compare is P
//!   pid=P tree=1   the value is FOLLOWED, which is not an ID: only the set decides
//! ```
//!
//! With `tree=1` the ID alone does not decide, since it may be reused by a process that is not a
//! descendant. The core then holds a value for `pid` that is above all IDs, as [`ALL`] is. A probe
//! first tests whether the value is an ID. If so, only that ID passes, and the set of
//! sys/descendants.rs is not looked at.
//!
//! The set is created with the instance, before the probes of the instance are attached, and is
//! kept up to date until the instance is removed, even while the instance is disabled. So neither
//! parameter can be changed later.

use super::{kind::Kind, Values};
use crate::{
    control::{Number, Param, ALL},
    sys::descendants::Descendants, //
};
use kernel::prelude::*;

/// The name of the parameter for the process.
pub(super) const PID: &str = "pid";

/// The name of the parameter that adds the descendants of that process.
pub(super) const TREE: &str = "tree";

/// The value of `pid` for probes if a set of processes decides; neither the ID of a process nor
/// [`ALL`].
pub(crate) const FOLLOWED: u64 = ALL - 1;

impl Kind {
    /// Returns the position of `pid` if an instance with these values has `tree=1`.
    pub(super) fn followed(&self, value: impl Fn(usize) -> Number) -> Option<usize> {
        let position = |name| {
            let mut params = self.params.iter();
            params.position(|param: &Param| param.name == name)
        };
        let tree = position(TREE)?;
        position(PID).filter(|_| value(tree) != 0)
    }
}

/// The processes that the filter accepts.
pub(super) struct Followed {
    /// The position of `pid`.
    pub(super) param: usize,
    /// The value of `pid` as it is shown.
    pub(super) pid: Number,
    processes: Descendants,
}

impl Followed {
    /// Creates the set of an instance with these values, if it has `tree=1`. May sleep. Fails with
    /// `ESRCH` if there is no such process, with `ENOMEM`, or with `ENOSYS`.
    // In a box, since initializers are copied from one frame of the stack to the next; not inlined,
    // since its frame is needed only here.
    #[inline(never)]
    pub(super) fn create(kind: &Kind, values: &Values) -> Result<Option<KBox<Self>>> {
        let Some(param) = kind.followed(|at| values[at]) else {
            return Ok(None);
        };
        let pid = values[param];
        let processes = Descendants::of(u32::try_from(pid)?)?;
        let followed = Self {
            param,
            pid,
            processes,
        };
        Ok(Some(KBox::new(followed, GFP_KERNEL)?))
    }

    /// Whether the filter accepts a process. Any context.
    #[inline(always)]
    pub(super) fn contains(&self, pid: u32) -> bool {
        self.processes.contains(pid)
    }
}
