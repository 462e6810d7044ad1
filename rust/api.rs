// SPDX-License-Identifier: GPL-2.0

//! Trackers of other modules: implements include/latency_tracker.h in safe Rust.
//!
//! ```text
//!   a module in C or Rust
//!        |  latency_tracker_event_in(), ...
//!   api/ffi.rs          raw pointers become slices and references
//!        |
//!   Any                 keys and data of any size: one type of engine for each class of sizes
//!        |
//!   Client<K, D>        bytes become words; a late event becomes a call and an alert
//!        |
//!   instance::Core      the engine, the counters, the alerts
//! ```
//!
//! A key of a fixed size up to 16 bytes takes one or two words. Any other key takes eight words and
//! its length, so that keys of different lengths differ. The last word of an event's data is the
//! event's own timeout; 0 means the tracker's timeout. Comparisons select the class, since a call
//! through a table of functions would cost a retpoline.
//!
//! # Contexts
//!
//! The functions of ffi/events.rs, and `set_threshold`: any. All other functions may sleep.

use crate::{
    alert::{
        record::{self, Name},
        stream::Alerts,
    },
    engine::{
        event::EventCopy,
        held::{Lookup, Reference},
        platform::Platform,
        Begin, Ended, Late,
    },
    instance::{self, common, kind::New, Core, Details, Instance, Values},
    sys::{module::Owner, periodic, platform::Kernel},
    trackers::{
        self,
        module::{self, Extra, KIND},
    },
};
use kernel::{prelude::*, sync::Arc};

mod any;
pub(crate) mod ffi;
mod instances;

pub(crate) use any::Any;
use ffi::{Callback, Report};
use instances::ModuleTracker;

type Guard = <Kernel as Platform>::Guard;

/// Maximum size of an event's data, in bytes.
pub(crate) const DATA_MAX: usize = 256;

/// Maximum length of a key of two words, in bytes.
const SHORT_KEY: usize = 16;

/// The timeout of an event that must never time out.
const NEVER: u64 = u64::MAX;

/// The configuration of a module's tracker, after its checks.
pub(crate) struct Config {
    pub(crate) callback: Callback,
    pub(crate) key_size: usize,
    pub(crate) data_size: usize,
    /// Minimum of the events' own timeouts; 0 if events have no timeouts of their own.
    pub(crate) min_event_timeout: u64,
    /// Whether a key can be live only once.
    pub(crate) unique: bool,
    /// Whether keys may be shorter than `key_size`.
    pub(crate) variable_keys: bool,
    /// Whether keys are shown unchanged.
    pub(crate) show_keys: bool,
}

/// Creates a disabled tracker for a module. Returns the address that the module uses for it, and
/// the instance. May sleep; fails with `EINVAL` or `ENOMEM`.
pub(crate) fn create(
    name: Name,
    owner: Owner,
    values: &Values,
    config: Config,
    all: Arc<Alerts>,
) -> Result<(*const Any, Arc<dyn Instance>)> {
    let tracker = ModuleTracker::new(name, owner, values, config, all)?;
    let any = Arc::as_ptr(tracker.any());
    Ok((any, tracker))
}

/// A tracker with keys of `K` words and data of `D` words, including the timeout.
pub(crate) struct Client<const K: usize, const D: usize> {
    core: Core<K, D>,
    config: Config,
}

impl<const K: usize, const D: usize> Client<K, D> {
    fn boxed(name: Name, values: &Values, config: Config, all: Arc<Alerts>) -> Result<KBox<Self>> {
        let (number, kind) = trackers::find(KIND.name.as_bytes()).ok_or(EINVAL)?;
        let new = New {
            name,
            number,
            values,
            all,
            measure: None,
        };
        let core = Core::new(kind, new)?;
        KBox::init(try_init!(Self { core <- core, config }), GFP_KERNEL)
    }

    /// Whether a key is followed by its length.
    const HAS_LENGTH: bool = K > SHORT_KEY / 8;

    /// Stores a key of a valid size in `words`, which must be zero.
    #[inline(always)]
    fn key(&self, words: &mut [u64; K], bytes: &[u8]) -> Result {
        let size = self.config.key_size;
        let fits = bytes.len() == size
            || self.config.variable_keys && !bytes.is_empty() && bytes.len() < size;
        if !fits {
            return Err(EINVAL);
        }
        to_words(words, bytes);
        if Self::HAS_LENGTH {
            words[K - 1] = bytes.len() as u64;
        }
        Ok(())
    }

    /// Returns the words and the length of a key.
    fn split<'a>(&self, key: &'a [u64; K]) -> (&'a [u64], usize) {
        if Self::HAS_LENGTH {
            (&key[..K - 1], key[K - 1] as usize)
        } else {
            (key, self.config.key_size)
        }
    }

    #[inline(always)]
    fn data(&self, words: &mut [u64; D], data: Option<&[u8]>, timeout: u64) -> Result {
        let shortest = self.config.min_event_timeout;
        if timeout != 0 && timeout != NEVER && (shortest == 0 || timeout < shortest) {
            return Err(EINVAL);
        }
        if let Some(bytes) = data {
            to_words(words, bytes);
        }
        words[D - 1] = timeout;
        Ok(())
    }

    /// Returns the guard and the time of the start, if the tracker is on.
    #[inline(always)]
    fn enter(&self, start: u64) -> Result<(Guard, u64)> {
        let guard = Kernel::guard();
        if !self.core.is_enabled() {
            self.core.engine().off(&guard);
            return Err(EAGAIN);
        }
        Ok((guard, or_now(start)))
    }

    // The functions that start and end events are not inlined: otherwise each call would need the
    // stack frame of the largest class of `Any`, whatever the class of its tracker.

    #[inline(never)]
    fn event_in(&self, key: &[u8], data: Option<&[u8]>, start: u64, timeout: u64) -> Result {
        let (mut key_words, mut data_words) = ([0; K], [0; D]);
        self.key(&mut key_words, key)?;
        self.data(&mut data_words, data, timeout)?;
        let (key, data) = (&key_words, &data_words);
        let (guard, start) = self.enter(start)?;
        let engine = self.core.engine();
        let begun = if self.config.unique {
            engine.event_in_unique(&guard, key, start, data)
        } else {
            engine.event_in(&guard, key, start, data)
        };
        match begun {
            Begin::Started => Ok(()),
            lost => Err(lost_by(lost)),
        }
    }

    #[inline(never)]
    fn event_in_held(
        &self,
        key: &[u8],
        data: Option<&[u8]>,
        start: u64,
        timeout: u64,
    ) -> Result<Reference> {
        let (mut key_words, mut data_words) = ([0; K], [0; D]);
        self.key(&mut key_words, key)?;
        self.data(&mut data_words, data, timeout)?;
        let (key, data) = (&key_words, &data_words);
        let (guard, start) = self.enter(start)?;
        let engine = self.core.engine();
        let begun = if self.config.unique {
            engine.event_in_unique_held(&guard, key, start, data)
        } else {
            engine.event_in_held(&guard, key, start, data)
        };
        begun.map_err(lost_by)
    }

    #[inline(never)]
    fn event_out(&self, key: &[u8], id: u64, end: u64) -> Result<Ended> {
        let mut words = [0; K];
        self.key(&mut words, key)?;
        let guard = Kernel::guard();
        let end = or_now(end);
        let late = |late: &Late<K, D>| self.report(&guard, late, id);
        let engine = self.core.engine();
        let ended = engine.event_out_if_known(&guard, &words, end, |_| true, late);
        if ended.is_none() {
            engine.unmatched(&guard);
        }
        ended.ok_or(ENOENT)
    }

    #[inline(never)]
    fn event_out_all(&self, key: &[u8], id: u64, end: u64) -> Result<u64> {
        let mut words = [0; K];
        self.key(&mut words, key)?;
        let guard = Kernel::guard();
        let end = or_now(end);
        let late = |late: &Late<K, D>| self.report(&guard, late, id);
        match self.core.engine().event_out_all(&guard, &words, end, late) {
            0 => Err(ENOENT),
            ended => Ok(ended),
        }
    }

    #[inline(never)]
    fn event_out_held(&self, event: &Reference, id: u64, end: u64) -> Result<Ended> {
        let guard = Kernel::guard();
        let end = or_now(end);
        let late = |late: &Late<K, D>| self.report(&guard, late, id);
        let engine = self.core.engine();
        let ended = engine.event_out_held(&guard, event, end, late);
        ended.ok_or(ENOENT)
    }

    fn lookup(&self, key: &[u8]) -> Result<Reference> {
        let mut words = [0; K];
        self.key(&mut words, key)?;
        let guard = Kernel::guard();
        match self.core.engine().lookup(&guard, &words) {
            Lookup::Found(event) => Ok(event),
            Lookup::NotFound => Err(ENOENT),
            Lookup::TooMany => Err(self.busy(&guard)),
        }
    }

    fn get_ref_again(&self, event: &Reference) -> Result<Reference> {
        let guard = Kernel::guard();
        let again = self.core.engine().get_ref_again(event);
        again.ok_or_else(|| self.busy(&guard))
    }

    #[cold]
    fn busy(&self, guard: &Guard) -> Error {
        self.core.count_extra(guard, Extra::Busy as usize);
        EBUSY
    }

    fn reference(&self, number: u32) -> Option<Reference> {
        self.core.engine().reference(number)
    }

    fn put_ref(&self, event: Reference) {
        self.core.engine().put_ref(&Kernel::guard(), event);
    }

    fn is_live(&self, event: &Reference) -> bool {
        self.core.engine().is_live(event)
    }

    fn start(&self, event: &Reference) -> u64 {
        self.core.engine().view(event).start
    }

    fn with_key<R>(&self, event: &Reference, f: impl FnOnce(&[u64], usize) -> R) -> R {
        let copy = self.core.engine().view(event);
        let (words, len) = self.split(&copy.key);
        f(words, len)
    }

    fn with_data<R>(&self, event: &Reference, f: impl FnOnce(&[u64], usize) -> R) -> R {
        let copy = self.core.engine().view(event);
        f(&copy.data[..D - 1], self.config.data_size)
    }

    fn each_of(&self, key: &[u8], see: impl FnMut(&Reference) -> bool) -> Result<u64> {
        let mut words = [0; K];
        self.key(&mut words, key)?;
        let guard = Kernel::guard();
        Ok(self.core.engine().each_of(&guard, &words, see))
    }

    fn clear(&self) -> u64 {
        self.core.engine().clear()
    }

    fn holders(&self) -> u64 {
        self.core.engine().holders()
    }

    fn set_threshold(&self, ns: u64) {
        self.core.engine().set_threshold(ns);
    }

    /// Returns the visible form of a key.
    fn shown<'a>(&self, key: &'a [u64; K]) -> module::Key<'a> {
        if self.config.show_keys {
            let (words, len) = self.split(key);
            module::Key::Shown(words, len)
        } else {
            module::Key::Hidden(self.core.engine().pseudonym(key))
        }
    }

    /// Reports a late event to the module, and as an alert. Any context.
    ///
    /// A callback may end events, and so re-enter this function. This path therefore uses as little
    /// stack as possible: the alert has a frame of its own.
    #[cold]
    fn report(&self, guard: &Guard, late: &Late<K, D>, id: u64) {
        let Some(permit) = self.core.raise_threshold(late) else {
            return;
        };
        self.call(guard, late, permit.threshold, id);
        self.alert(guard, late, permit, id);
    }

    #[inline(never)]
    fn call(&self, guard: &Guard, late: &Late<K, D>, threshold: u64, id: u64) {
        let (words, len) = self.split(&late.key);
        let called = self.config.callback.call(
            guard,
            &Report {
                why: late.why,
                key: words,
                key_size: len,
                data: &late.data[..D - 1],
                data_size: self.config.data_size,
                start: late.start,
                end: end_of(late),
                delay: late.delay,
                threshold,
                id,
            },
        );
        if !called {
            self.core.count_extra(guard, Extra::Nested as usize);
        }
    }

    #[inline(never)]
    fn alert(&self, guard: &Guard, late: &Late<K, D>, permit: instance::Permit, id: u64) {
        let late = Late {
            threshold: permit.threshold,
            ..*late
        };
        let details = Details {
            owner: record::Owner::default(),
            words: module::detail(&self.shown(&late.key), id),
        };
        self.core.raise_kept(
            guard,
            &instance::Report {
                late: &late,
                details: &details,
                stack: &[],
                is_counted: permit.is_counted,
            },
        );
    }

    /// Reports timed-out events; see [`periodic::Periodic`].
    fn run(&self) -> Option<u64> {
        let common = match self.core.value(common::TIMEOUT) {
            0 => NEVER,
            ns => ns,
        };
        let shortest = match self.config.min_event_timeout {
            0 => common,
            own => own.min(common),
        };
        if shortest == NEVER {
            return None;
        }
        let now = Kernel::now();
        let timeout = |event: &EventCopy<K, D>| match event.data[D - 1] {
            0 => common,
            own => own,
        };
        // No task is known to wait, so there is no stack to walk.
        let look = |_: &EventCopy<K, D>| ();
        let engine = self.core.engine();
        let report = |guard: &_, late: &_, (): &()| self.report(guard, late, 0);
        let first = engine.expire(now, shortest, timeout, periodic::cond_resched, look, report);
        Some(instance::until_next_search(now, shortest, first))
    }
}

/// Returns the time at which an event ended, or at which its timeout was noticed; the start, if the
/// end is before the start.
fn end_of<const K: usize, const D: usize>(late: &Late<K, D>) -> u64 {
    late.start.wrapping_add(late.delay)
}

/// Returns the error for a lost start.
#[cold]
fn lost_by(begun: Begin) -> Error {
    match begun {
        Begin::Crowded => EBUSY,
        Begin::Full | Begin::Started => ENOSPC,
    }
}

fn or_now(time: u64) -> u64 {
    if time == 0 {
        Kernel::now()
    } else {
        time
    }
}

/// Copies bytes into words, in memory order; the words must be zero. Works in place, which saves a
/// copy and its space on the stack.
#[inline(always)]
fn to_words<const N: usize>(words: &mut [u64; N], bytes: &[u8]) {
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        for (to, from) in padded.iter_mut().zip(chunk) {
            *to = *from;
        }
        *word = u64::from_ne_bytes(padded);
    }
}
