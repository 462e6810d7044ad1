// SPDX-License-Identifier: GPL-2.0

//! The [`Instance`] of all trackers that have their own probes.
//!
//! ```text
//!   /proc tree ---> Probed     off <--> on ---> retired       one lock for changes
//!                     |                  |
//!                     |                  +-- attachment: calls the probes
//!                     |                  +-- ticker: looks for what has timed out
//!                     v                  v
//!                   Live       the Core, and which tracker it is; shared by all three
//! ```
//!
//! A tracker supplies its behaviour by [`Probes`], and its state besides the core by [`Own`]; all
//! calls are bound at compile time, and a probe reaches its [`Core`] without a call. (Trackers of
//! other modules have no probes, but references that outlive the tracker; their instances are in
//! api/instances.rs.)
//!
//! All functions sleep.

use super::{
    common,
    kind::{Kind, New},
    pending::{Batch, Lines},
    profile, Changes, Core, Details, Instance,
};
use crate::{
    alerts::Alerts,
    control::Number,
    event::Snapshot,
    platform::Platform,
    record::Owner,
    sys::{
        platform::Kernel,
        procfs::Records,
        symbol::StackField,
        ticker::{Tick, Ticker},
    },
    tracker::Late, //
};
use core::{ffi::CStr, marker::PhantomData};
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex, UniqueArc}, //
};

/// The state of an instance of a tracker besides the [`Core`]; mostly none.
pub(crate) trait Own: Sized + Send + Sync + 'static {
    /// Creates it, for a new instance. Sleeps.
    fn new() -> Result<Self>;

    /// Does its periodic work while the instance is on. Returns the nanoseconds until the next
    /// time, `None` for never. Sleeps.
    fn tick(&self) -> Option<u64> {
        None
    }

    /// The profile, if it has one.
    fn profile(&self) -> Option<Arc<profile::Keeper>> {
        None
    }
}

impl Own for () {
    fn new() -> Result {
        Ok(())
    }
}

/// The behaviour of a tracker with probes, whose events have keys of `K` and data of `D` words.
/// Each of its instances has an `O`.
pub(crate) trait Probes<const K: usize, const D: usize, O: Own = ()>:
    Sized + Send + Sync + 'static
{
    /// The probes are called until this is dropped, which waits for running ones.
    type Attachment: Send + Unpin;

    /// Its entry in the list of trackers.
    fn kind() -> &'static Kind;

    /// Attaches the probes. `ENOSYS` if the kernel lacks a tracepoint.
    fn attach(live: Arc<Live<Self, K, D, O>>) -> Result<Self::Attachment>;

    /// The task that an event belongs to.
    fn owner(data: &[u64; D]) -> Owner;

    /// Whether an event can time out.
    fn can_time_out(_data: &[u64; D]) -> bool {
        true
    }

    /// The details of the alert of a timeout found at `now`; `None` if it must not be raised.
    fn details(core: &Core<K, D>, late: &Late<K, D>, now: u64) -> Option<Details>;

    /// Counts lost events that only the attachment knows about. Sleeps.
    fn settle(_core: &Core<K, D>, _attachment: &mut Self::Attachment) {}

    /// Prints an event for `pending`, as fields of a line: its owner, and what else is known of it
    /// before it ends. The age comes before that, the stack of the owner after it.
    fn show_fields(core: &Core<K, D>, event: &Snapshot<K, D>, out: &SeqFile);

    /// The same, for trackers that do not show the same to all readers: whether the reader may see
    /// addresses of user space.
    fn show_fields_to(core: &Core<K, D>, event: &Snapshot<K, D>, _trusted: bool, out: &SeqFile) {
        Self::show_fields(core, event, out);
    }
}

/// The state that probes work on.
pub(crate) struct Live<T, const K: usize, const D: usize, O = ()> {
    pub(crate) core: Core<K, D>,
    pub(crate) own: O,
    tracker: PhantomData<T>,
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Tick for Live<T, K, D, O> {
    const WATCHED: bool = true;

    fn tick(&self) -> Option<u64> {
        let details = |late: &Late<K, D>, now| T::details(&self.core, late, now);
        let expiry = self.core.expire(T::owner, T::can_time_out, details);
        [expiry, self.own.tick()].into_iter().flatten().min()
    }
}

/// An instance of a tracker with probes.
#[pin_data]
pub(crate) struct Probed<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own = ()> {
    live: Arc<Live<T, K, D, O>>,
    /// The lock also serialises changes.
    #[pin]
    state: Mutex<State<T, K, D, O>>,
}

/// Whether the probes are attached.
enum State<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> {
    Off,
    On {
        attachment: T::Attachment,
        /// Searches for timed-out events.
        ticker: Ticker<Live<T, K, D, O>>,
    },
    /// Removed; this is final.
    Retired,
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Probed<T, K, D, O> {
    /// Creates one, not enabled; for [`Kind::create`].
    pub(crate) fn create(new: New<'_>) -> Result<Arc<dyn Instance>> {
        let core = Core::new(T::kind(), new)?;
        let live = UniqueArc::init(
            try_init!(Live {
                core <- core,
                own: O::new()?,
                tracker: PhantomData,
            }),
            GFP_KERNEL,
        )?;
        let live = Arc::from(live);
        let instance = Arc::pin_init(
            pin_init!(Self {
                live,
                state <- new_mutex!(State::Off),
            }),
            GFP_KERNEL,
        )?;
        Ok(instance)
    }

    /// Detaches the probes if they are attached, and drops pending events.
    fn detach(&self, state: &mut State<T, K, D, O>, next: State<T, K, D, O>) {
        let core = &self.live.core;
        core.set_enabled(false);
        if let State::On { attachment, .. } = state {
            T::settle(core, attachment);
        }
        *state = next;
        core.tracker().clear();
    }
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Instance for Probed<T, K, D, O> {
    fn kind(&self) -> &'static Kind {
        self.live.core.kind()
    }

    fn alerts(&self) -> Arc<Alerts> {
        self.live.core.alerts().clone()
    }

    fn value(&self, param: usize) -> Number {
        self.live.core.shown(param)
    }

    fn text(&self, param: usize) -> Option<&CStr> {
        self.live.core.text(param)
    }

    fn apply(&self, changes: &Changes) -> Result {
        let core = &self.live.core;
        let mut state = self.state.lock();
        let before = core.values();
        let values = &changes.over(before.clone());
        let enable = values[common::ENABLED] != 0;
        // Probes run from within `attach` on, and until `detach` returns: new values are set before
        // the first of them runs, old ones remain until after the last one.
        match *state {
            State::Retired => return Err(ENODEV),
            State::Off if enable => {
                let ticker = Ticker::new(self.live.clone())?;
                core.set_values(values, changes);
                let attached = T::attach(self.live.clone());
                let attachment = attached.inspect_err(|_| {
                    // Some probes may have run meanwhile; none is running now.
                    core.tracker().clear();
                    core.set_values(&before, changes);
                })?;
                core.set_enabled(true);
                *state = State::On { attachment, ticker };
            }
            _ => {
                if !enable {
                    self.detach(&mut state, State::Off);
                }
                core.set_values(values, changes);
            }
        }
        // The timeout may be new, or shorter.
        if let State::On { ticker, .. } = &*state {
            ticker.kick();
        }
        Ok(())
    }

    fn retire(&self) {
        self.detach(&mut self.state.lock(), State::Retired);
    }

    fn tend(&self) -> Option<u64> {
        self.live.core.tend()
    }

    fn profile(&self) -> Option<Arc<profile::Keeper>> {
        self.live.own.profile()
    }

    fn show_stats(&self, out: &SeqFile) {
        if let State::On { attachment, .. } = &mut *self.state.lock() {
            T::settle(&self.live.core, attachment);
        }
        self.live.core.show_stats(out);
    }

    fn show_histogram(&self, out: &SeqFile) {
        self.live.core.show_histogram(out);
    }

    fn pending(&self) -> Result<Lines> {
        let (live, batch) = (
            self.live.clone(),
            Batch::new(self.live.core.tracker().capacity()),
        );
        let lines: Lines = KBox::new(Pending { live, batch }, GFP_KERNEL)?;
        Ok(lines)
    }
}

/// What an open `pending` file reads.
struct Pending<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> {
    live: Arc<Live<T, K, D, O>>,
    batch: Batch<K, D>,
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Records for Pending<T, K, D, O> {
    fn rewind(&mut self) {
        self.batch.rewind();
    }

    fn next(&mut self) -> Result<usize> {
        let tracker = self.live.core.tracker();
        self.batch.next(|see| tracker.each_pending(see))
    }

    fn show(&self, nth: usize, is_trusted: bool, out: &SeqFile) {
        let Some(event) = self.batch.get(nth) else {
            return;
        };
        let (core, start) = (&self.live.core, event.start);
        let age = Kernel::now().saturating_sub(start);
        seq_print!(out, "age={age} start={start} ");
        T::show_fields_to(core, event, is_trusted, out);
        let stack = core.stack_of(T::owner(&event.data), start);
        seq_print!(out, "{}\n", StackField(stack.entries()));
    }
}
