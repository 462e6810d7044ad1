// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Atomics over loom's, or over `core`'s if not modelled, with mutations.

use super::{
    AtomicType,
    ordering::{AcquireOrRelaxed, Ordering, Relaxed, ReleaseOrRelaxed},
    sealed::Repr,
};
use crate::model::{self, Change};
use core::{fmt, panic::Location, sync::atomic::Ordering as Native};

/// A value that several threads of a model read and write.
pub struct Atomic<T: AtomicType>(Inner<T>);

enum Inner<T: AtomicType> {
    Modelled(Box<Modelled<T>>),
    Plain(T::Native),
}

/// An atomic of the model, and the means to make loom try all orders of its operations.
///
/// Loom (0.7) reorders two operations only if the later one conflicts with the *last* access to that atomic. A thread
/// that loads and then exchanges therefore hides the earlier loads of other threads: the order in which its exchange
/// comes before those loads is never tried. So a swap of a second atomic, `turn`, precedes each operation and conflicts
/// with all earlier ones. The swap is relaxed, so it orders no other access.
struct Modelled<T: AtomicType> {
    atomic: T::Modelled,
    turn: loom::sync::atomic::AtomicBool,
}

/// Performs an operation on the native or on the modelled atomic.
macro_rules! on {
    ($self:expr, $method:ident($($argument:expr),*)) => {
        match &$self.0 {
            Inner::Modelled(modelled) => {
                modelled.turn.swap(false, Native::Relaxed);
                modelled.atomic.$method($($argument),*)
            }
            Inner::Plain(atomic) => atomic.$method($($argument),*),
        }
    };
}

/// Returns the ordering that remains after a change.
fn left(ordering: Native, change: Option<Change>) -> Native {
    match change {
        Some(Change::Relax) => Native::Relaxed,
        Some(Change::Acquire) => Native::Acquire,
        Some(Change::Release) => Native::Release,
        _ => ordering,
    }
}

/// Returns the value that is written.
fn written<T: AtomicType>(value: T, change: Option<Change>) -> T {
    match change {
        Some(Change::Write(f)) => T::from_word(f(value.word())),
        _ => value,
    }
}

impl<T: AtomicType> Atomic<T> {
    /// Creates an atomic.
    #[track_caller]
    pub fn new(value: T) -> Self {
        Self(if model::is_modelled(Location::caller()) {
            Inner::Modelled(Box::new(Modelled {
                atomic: T::Modelled::new(value),
                turn: loom::sync::atomic::AtomicBool::new(false),
            }))
        } else {
            Inner::Plain(T::Native::new(value))
        })
    }

    /// Reads the value.
    #[track_caller]
    pub fn load<O: AcquireOrRelaxed>(&self, _: O) -> T {
        let fits = |change: &Change| {
            !matches!(change, Change::Split | Change::Skip | Change::Write(_))
        };
        let change = model::change(Location::caller(), fits);
        let value = on!(self, load(left(O::NATIVE, change)));
        if !model::is_mutated() {
            return value;
        }
        let before = model::reload(core::ptr::from_ref(self).addr(), value.word());
        match (change, before) {
            (Some(Change::Read(f)), _) => T::from_word(f(value.word())),
            (Some(Change::Again), Some(before)) => T::from_word(before),
            _ => value,
        }
    }

    /// Writes the value.
    #[track_caller]
    pub fn store<O: ReleaseOrRelaxed>(&self, value: T, _: O) {
        let fits = |change: &Change| {
            !matches!(change, Change::Split | Change::Read(_) | Change::Again)
        };
        let change = model::change(Location::caller(), fits);
        if let Some(Change::Skip) = change {
            return;
        }
        on!(self, store(written(value, change), left(O::NATIVE, change)));
    }

    /// Writes the value and returns the old one.
    #[track_caller]
    pub fn xchg<O: Ordering>(&self, value: T, _: O) -> T {
        let fits = |change: &Change| {
            !matches!(
                change,
                Change::Split | Change::Skip | Change::Read(_) | Change::Again
            )
        };
        let change = model::change(Location::caller(), fits);
        let ordering = left(O::NATIVE, change);
        // A full exchange is a barrier before and after, which loom has only as fences.
        let barrier = || {
            if ordering == Native::AcqRel {
                loom::sync::atomic::fence(Native::SeqCst);
            }
        };
        barrier();
        let old = on!(self, swap(written(value, change), ordering));
        barrier();
        old
    }

    /// Writes `new` if the value is `old`; otherwise fails with the value.
    #[track_caller]
    pub fn cmpxchg<O: Ordering>(&self, old: T, new: T, _: O) -> Result<T, T> {
        let fits = |change: &Change| !matches!(change, Change::Read(_) | Change::Again);
        let change = model::change(Location::caller(), fits);
        let new = written(new, change);
        if let Some(Change::Skip) = change {
            return Ok(old);
        }
        if let Some(Change::Split) = change {
            let found = on!(self, load(Native::Acquire));
            if found != old {
                return Err(found);
            }
            on!(self, store(new, Native::Release));
            return Ok(old);
        }
        let ordering = left(O::NATIVE, change);
        let result = on!(self, cmpxchg(old, new, ordering));
        let place = Location::caller();
        if result.is_ok() && ordering == Native::AcqRel && model::is_barrier(place) {
            loom::sync::atomic::fence(Native::SeqCst);
        }
        result
    }

    /// Adds to the value.
    #[track_caller]
    pub fn add(&self, value: T, order: Relaxed) {
        self.fetch_add(value, order);
    }

    /// Adds to the value and returns the old one.
    #[track_caller]
    pub fn fetch_add<O: Ordering>(&self, value: T, _: O) -> T {
        let fits = |change: &Change| {
            !matches!(change, Change::Write(_) | Change::Read(_) | Change::Again)
        };
        let change = model::change(Location::caller(), fits);
        match change {
            Some(Change::Skip) => on!(self, load(Native::Relaxed)),
            Some(Change::Split) => {
                let found = on!(self, load(Native::Acquire));
                on!(self, store(found.plus(value), Native::Release));
                found
            }
            _ => on!(self, fetch_add(value, left(O::NATIVE, change))),
        }
    }

    /// Subtracts from the value and returns the old one.
    #[track_caller]
    pub fn fetch_sub<O: Ordering>(&self, value: T, _: O) -> T {
        let fits = |change: &Change| {
            !matches!(change, Change::Write(_) | Change::Read(_) | Change::Again)
        };
        let change = model::change(Location::caller(), fits);
        match change {
            Some(Change::Skip) => on!(self, load(Native::Relaxed)),
            Some(Change::Split) => {
                let found = on!(self, load(Native::Acquire));
                on!(self, store(found.minus(value), Native::Release));
                found
            }
            _ => on!(self, fetch_sub(value, left(O::NATIVE, change))),
        }
    }
}

impl<T: AtomicType + fmt::Debug> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Atomic")
    }
}
