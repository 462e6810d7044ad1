// SPDX-License-Identifier: GPL-2.0

//! The parameters of instances: the parameters common to all trackers, values, and changes.
//!
//! A parameter is identified by its position in its tracker's list ([`super::kind::Kind::params`]);
//! the common parameters come first. A value is a number, or a text that is shared and never
//! changes.
//!
//! ```text
//!   a line ----> Changes: some values --over--> Values: all values ----> the instance
//! ```
//!
//! # Contexts
//!
//! Everything may sleep. A probe reads values from its [`super::Core`].

use super::Instance;
use crate::{
    control::{Kind, Number, Param},
    sys::stack::DEPTH_MAX, //
};
use core::{
    ffi::CStr,
    ops::{Index, IndexMut}, //
};
use kernel::{fmt, prelude::*, str::CString, sync::Arc};

/// Maximum number of parameters of a tracker, reached by the tracker `tree`. Each takes 24 bytes of
/// every instance.
pub(crate) const PARAMS_MAX: usize = 30;

/// The texts among the values, see [`Kind::is_text`].
pub(super) type Texts = [Option<Arc<CString>>; PARAMS_MAX];

/// The values of an instance's parameters, in the order of its tracker's list.
///
/// Not on the stack: enabling an instance goes deep into the kernel, and the probes that are
/// attached run on top of that.
pub(crate) struct Values(KBox<Content>);

struct Content {
    numbers: [Number; PARAMS_MAX],
    texts: Texts,
}

impl Values {
    /// Creates values from the number at each position. Fails with `ENOMEM`.
    ///
    /// Out of line, so that the copy on the stack is gone with its frame.
    #[inline(never)]
    pub(super) fn new(number: impl Fn(usize) -> Number, texts: &Texts) -> Result<Self> {
        let content = Content {
            numbers: core::array::from_fn(number),
            texts: texts.clone(),
        };
        Ok(Self(KBox::new(content, GFP_KERNEL)?))
    }

    /// Returns the default values. Fails with `ENOMEM`.
    pub(crate) fn defaults(params: &[Param]) -> Result<Self> {
        let default = |at| {
            params
                .get(at)
                .map_or(0, |param: &Param| param.default.into())
        };
        Self::new(default, &Texts::default())
    }

    /// Returns a copy. Fails with `ENOMEM`.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        Self::new(|at| self[at], &self.0.texts)
    }

    /// Returns a bit for each of these parameters whose number differs from the default.
    pub(super) fn changed(&self, params: &[Param]) -> u64 {
        const { assert!(PARAMS_MAX <= u64::BITS as usize) };
        let is_changed = |&at: &usize| self[at] != Number::from(params[at].default);
        let changed = (0..params.len().min(PARAMS_MAX)).filter(is_changed);
        changed.fold(0, |bits, at| bits | 1 << at)
    }

    pub(super) fn numbers(&self) -> &[Number; PARAMS_MAX] {
        &self.0.numbers
    }

    pub(super) fn texts(&self) -> &Texts {
        &self.0.texts
    }

    /// Returns the value of a text parameter, if it is given.
    pub(crate) fn text(&self, param: usize) -> Option<&CStr> {
        self.0.texts[param].as_ref().map(|text| &***text)
    }
}

impl Index<usize> for Values {
    type Output = Number;

    fn index(&self, param: usize) -> &Number {
        &self.0.numbers[param]
    }
}

impl IndexMut<usize> for Values {
    fn index_mut(&mut self, param: usize) -> &mut Number {
        &mut self.0.numbers[param]
    }
}

/// New values for some parameters.
pub(crate) struct Changes {
    given: [bool; PARAMS_MAX],
    values: Values,
}

impl Changes {
    /// Creates an empty set of changes. Fails with `ENOMEM`.
    pub(crate) fn none() -> Result<Self> {
        Ok(Self {
            given: [false; PARAMS_MAX],
            values: Values::new(|_| 0, &Texts::default())?,
        })
    }

    /// Creates a set of changes that gives every value. Fails with `ENOMEM`.
    pub(crate) fn all(values: &Values) -> Result<Self> {
        Ok(Self {
            given: [true; PARAMS_MAX],
            values: values.try_clone()?,
        })
    }

    /// Returns the new value of a parameter, if there is one.
    pub(crate) fn get(&self, at: usize) -> Option<Number> {
        self.given[at].then(|| self.values[at])
    }

    /// Gives a parameter a new value.
    pub(crate) fn set(&mut self, at: usize, value: Number) {
        self.given[at] = true;
        self.values[at] = value;
    }

    /// Gives a text parameter a new value.
    pub(crate) fn set_text(&mut self, at: usize, text: CString) -> Result {
        self.values.0.texts[at] = Some(Arc::new(text, GFP_KERNEL)?);
        self.set(at, 0);
        Ok(())
    }

    /// Whether a parameter would change in an instance.
    pub(crate) fn differs(&self, at: usize, instance: &dyn Instance) -> bool {
        let (new, old) = (self.values.text(at), instance.text(at));
        self.given[at] && (self.values[at] != instance.value(at) || new != old)
    }

    /// Returns the new values where given, and the old ones elsewhere.
    pub(crate) fn over(&self, mut old: Values) -> Values {
        for at in (0..PARAMS_MAX).filter(|&at| self.given[at]) {
            old[at] = self.values[at];
            if let Some(text) = &self.values.0.texts[at] {
                old.0.texts[at] = Some(text.clone());
            }
        }
        old
    }
}

/// Positions of the common parameters.
pub(crate) mod common {
    pub(crate) const ENABLED: usize = 0;
    pub(crate) const THRESHOLD: usize = 1;
    pub(crate) const EVENTS: usize = 2;
    pub(crate) const MAX_EVENTS: usize = 3;
    pub(crate) const WAKEUP_INTERVAL: usize = 4;
    pub(crate) const RING: usize = 5;
    pub(crate) const TIMEOUT: usize = 6;
    pub(crate) const STACK: usize = 7;
    pub(crate) const WORST: usize = 8;
    pub(crate) const MAX_ALERTS: usize = 9;

    /// The number of common parameters.
    pub(crate) const COUNT: usize = 10;
}

/// Makes an array of parameters, each with its kind, default and help, and `fixed` if it can be set
/// only at creation.
macro_rules! param_list {
    ($($param:ident: $kind:expr => $default:expr, $help:expr $(, $fixed:ident)?;)*) => {
        [$($crate::control::Param {
            name: stringify!($param),
            kind: $kind,
            default: $default,
            fixed: $crate::instance::param_list!(@fixed $($fixed)?),
            help: $help,
        },)*]
    };
    (@fixed fixed) => { true };
    (@fixed) => { false };
}
pub(crate) use param_list;

/// Returns the common parameters, with a tracker's own default threshold in nanoseconds.
pub(crate) const fn params(threshold: u64) -> [Param; common::COUNT] {
    const EVENTS: Kind = Kind::Count {
        min: 1,
        max: crate::engine::freelist::MAX_CELLS as u64,
    };
    param_list! {
        enabled: Kind::Switch => 1, "record operations; 0 stops and drops those in flight";
        threshold: Kind::Duration => threshold, "report delays longer than this";
        events: EVENTS => 4096, "preallocated events, one for each operation in flight", fixed;
        max_events: EVENTS => 65_536,
            "limit up to which the pool doubles when it runs short; at least events", fixed;
        wakeup_interval: Kind::Duration => 1_000_000_000,
            "shortest time between two wakeups of readers";
        ring: Kind::Power { min: 2, max: 1 << 20 } => 1024,
            "number of alerts kept for readers", fixed;
        timeout: Kind::Duration => 0,
            "report an operation still in flight after this time; 0 is never";
        stack: Kind::Count { min: 0, max: DEPTH_MAX as u64 } => 16,
            "most functions in each kernel stack of an alert; 0 is none", fixed;
        worst: Kind::Switch => 0,
            "raise the threshold to the longest delay: report only new maxima";
        max_alerts: Kind::Count { min: 0, max: super::raise::MAX_ALERTS } => 0,
            "most alerts in a second, further ones only counted; 0 is no limit";
    }
}

/// The value of a parameter, in the notation of the control language.
pub(crate) struct Shown<'a>(pub(crate) &'a dyn Instance, pub(crate) usize);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(instance, at) = *self;
        match instance.text(at) {
            // Checked when it was parsed: it contains no special character.
            Some(text) => f.write_str(text.to_str().unwrap_or("?")),
            None => f.write_fmt(fmt!(
                "{}",
                instance.kind().params[at].display(instance.value(at))
            )),
        }
    }
}
