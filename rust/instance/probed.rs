// SPDX-License-Identifier: GPL-2.0

//! The [`Instance`] of all trackers that have their own probes.
//!
//! ```text
//!   /proc tree ---> Probed     off <--> on ---> shut down     one lock for changes
//!                     |                  |
//!                     |                  +-- attachment: calls the probes
//!                     |                  +-- periodic work: looks for timed-out events
//!                     v                  v
//!                   Live       the Core and the tracker's own state; shared by all three
//! ```
//!
//! A tracker implements its behaviour in [`Probes`], and its state besides the core in [`Own`]. All
//! calls are bound at compile time, and a probe reaches its [`Core`] without a call. (A tracker of
//! another module has no probes, and references to its events may outlive it; such trackers are in
//! api/instances.rs.)
//!
//! [`Probes::settle`] and [`Probes::details`] are called with preemption off. Running probes call
//! [`Target::changes`], which calls [`Own::second`]. All other functions may sleep.

use super::{
    common,
    kind::{Kind, New},
    pending::{Batch, Lines},
    profile,
    work::Work,
    Changes,
    Core,
    Details,
    Instance,
    Second,
    Table,
    Values, //
};
use crate::{
    alert::{
        record::{Owner, BEFORE_START},
        stream::Alerts, //
    },
    control::Number,
    engine::{event::EventCopy, platform::Platform, Late},
    sys::{
        measure::{Meter, Target},
        periodic::{Periodic, PeriodicWork},
        platform::{self, Kernel, PreemptGuard},
        procfs::Records,
        symbol::StackField,
    }, //
};
use core::{ffi::CStr, marker::PhantomData};
use kernel::{
    new_mutex,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{Arc, Mutex, UniqueArc}, //
};

/// The state of a tracker's instance besides the [`Core`]; usually none.
pub(crate) trait Own: Sized + Send + Sync + 'static {
    /// Creates the state of a new instance with these values. May sleep.
    fn new(values: &Values) -> Result<Self>;

    /// Drops what is pending in this state, while the instance is disabled and no probe is running.
    /// May sleep.
    fn clear(&self) {}

    /// Returns the second engine, if there is one.
    fn second(&self) -> Option<&dyn Second> {
        None
    }

    /// Drops the outdated state of an offline CPU. May sleep.
    fn cpu_gone(&self, _cpu: usize) {}

    /// Does the periodic work while the instance is on. Returns the nanoseconds until the next run;
    /// `None` for never. May sleep.
    fn run(&self) -> Option<u64> {
        None
    }

    /// Returns the profile, if there is one.
    fn profile(&self) -> Option<Arc<profile::InstanceProfile>> {
        None
    }

    /// Returns the tracker's own file, see [`Instance::table`].
    fn table(&self) -> Option<(&'static CStr, Arc<dyn Table>)> {
        None
    }
}

impl Own for () {
    fn new(_: &Values) -> Result {
        Ok(())
    }
}

/// The behaviour of a tracker with probes, whose events have keys of `K` and data of `D` words.
/// Each of its instances has an `O`.
pub(crate) trait Probes<const K: usize, const D: usize, O: Own = ()>:
    Sized + Send + Sync + 'static
{
    /// Keeps the probes attached; dropping it waits for running probes.
    type Attachment: Send + Unpin;

    /// Returns its entry in the list of trackers.
    fn kind() -> &'static Kind;

    /// Attaches the probes. Fails with `ENOSYS` if the kernel lacks a tracepoint.
    fn attach(live: Arc<Live<Self, K, D, O>>) -> Result<Self::Attachment>;

    /// Whether [`Probes::take_stock`] does something.
    const TAKES_STOCK: bool = false;

    /// Starts events for the operations in flight that can be detected. Called once the probes are
    /// attached and the instance is enabled. May sleep.
    fn take_stock(_live: &Live<Self, K, D, O>) {}

    /// Returns the task that an event belongs to.
    fn owner(data: &[u64; D]) -> Owner;

    /// Whether an event can time out.
    fn can_time_out(_data: &[u64; D]) -> bool {
        true
    }

    /// Completes a copy of an event that has timed out: the delay was measured before the copy was
    /// made.
    fn settle(_late: &mut Late<K, D>) {}

    /// Returns the details of the alert of a timeout found at `now`; `None` if it must not be
    /// raised.
    fn details(core: &Core<K, D>, late: &Late<K, D>, now: u64) -> Option<Details>;

    /// Reports the timed-out events of the second engine, if there is one, see [`Core::expire_in`].
    /// May sleep.
    fn expire_second(_live: &Live<Self, K, D, O>) -> Option<u64> {
        None
    }

    /// Passes copies of the live events to `see`, in no particular order, until `see` fails.
    fn each_pending(
        live: &Live<Self, K, D, O>,
        see: &mut dyn FnMut(EventCopy<K, D>) -> Result,
    ) -> Result {
        live.core.engine().each_pending(see)
    }

    /// Returns the receiver of work marks, see [`Instance::work`].
    fn work(_live: &Arc<Live<Self, K, D, O>>) -> Option<Arc<dyn Work>> {
        None
    }

    /// Counts lost events that only the attachment knows about; dropping it counts the last ones.
    /// May sleep.
    fn collect_missed(_attachment: &mut Self::Attachment) {}

    /// Prints an event for `pending`, as fields of a line: its owner, and all that is known before
    /// the event ends. The caller prints the age before these fields, and the owner's stack after
    /// them. `is_trusted`: the reader may see addresses of user space.
    fn show_fields(core: &Core<K, D>, event: &EventCopy<K, D>, is_trusted: bool, out: &SeqFile);
}

/// The state that probes work on.
pub(crate) struct Live<T, const K: usize, const D: usize, O = ()> {
    pub(crate) core: Core<K, D>,
    pub(crate) own: O,
    tracker: PhantomData<T>,
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Target for Live<T, K, D, O> {
    fn meter(&self, hook: &CStr) -> Option<Arc<dyn Meter>> {
        self.core.meter(hook)
    }

    fn changes(&self, guard: &PreemptGuard) -> u64 {
        let own = self.core.engine().stats().here::<Kernel>(guard).changes();
        let second = self.own.second();
        let more = second.map_or(0, |second| second.stats().here::<Kernel>(guard).changes());
        own.wrapping_add(more)
    }
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Periodic for Live<T, K, D, O> {
    const WATCHED: bool = true;

    fn run(&self) -> Option<u64> {
        let details = |late: &Late<K, D>, now| T::details(&self.core, late, now);
        let expiry = self
            .core
            .expire(T::owner, T::can_time_out, T::settle, details);
        let next = [expiry, T::expire_second(self), self.own.run()];
        next.into_iter().flatten().min()
    }
}

/// An instance of a tracker with probes.
#[pin_data]
pub(crate) struct Probed<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own = ()> {
    live: Arc<Live<T, K, D, O>>,
    /// Whether the probes are attached; the lock also serialises changes.
    #[pin]
    state: Mutex<State<T, K, D, O>>,
}

/// Whether the probes are attached.
enum State<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> {
    Off,
    On {
        attachment: T::Attachment,
        /// Searches for timed-out events.
        work: PeriodicWork<Live<T, K, D, O>>,
    },
    /// Removed, for good.
    Retired,
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Probed<T, K, D, O> {
    /// Creates an instance, not enabled; for [`Kind::create`].
    pub(crate) fn create(new: New<'_>) -> Result<Arc<dyn Instance>> {
        let values = new.values;
        let core = Core::new(T::kind(), new)?;
        let live = UniqueArc::init(
            try_init!(Live {
                core <- core,
                own: O::new(values)?,
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
        *state = next;
        core.engine().clear();
        self.live.own.clear();
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
        let before = core.values()?;
        let values = &changes.over(before.try_clone()?);
        let enable = values[common::ENABLED] != 0;
        // Probes run from the middle of `attach` until `detach` returns: new values are set before
        // the first probe runs, and old values remain until the last probe has run.
        match *state {
            State::Retired => return Err(ENODEV),
            State::Off if enable => {
                let work = PeriodicWork::new(self.live.clone())?;
                core.set_values(values, changes);
                let attached = T::attach(self.live.clone());
                let attachment = attached.inspect_err(|_| {
                    // Some probes may have run meanwhile; none is running now.
                    core.engine().clear();
                    self.live.own.clear();
                    core.set_values(&before, changes);
                })?;
                core.set_enabled(true);
                T::take_stock(&self.live);
                *state = State::On { attachment, work };
            }
            _ => {
                if !enable {
                    self.detach(&mut state, State::Off);
                }
                core.set_values(values, changes);
            }
        }
        // The timeout may be new, or shorter.
        if let State::On { work, .. } = &*state {
            work.kick();
        }
        Ok(())
    }

    fn shut_down(&self) {
        self.detach(&mut self.state.lock(), State::Retired);
    }

    fn maintain(&self) -> Option<u64> {
        platform::each_offline_cpu(|cpu| self.live.own.cpu_gone(cpu));
        self.live.core.maintain()
    }

    fn profile(&self) -> Option<Arc<profile::InstanceProfile>> {
        self.live.own.profile()
    }

    fn table(&self) -> Option<(&'static CStr, Arc<dyn Table>)> {
        self.live.own.table()
    }

    fn work(&self) -> Option<Arc<dyn Work>> {
        T::work(&self.live)
    }

    fn show_stats(&self, out: &SeqFile) {
        if let State::On { attachment, .. } = &mut *self.state.lock() {
            T::collect_missed(attachment);
        }
        self.live.core.show_stats(self.live.own.second(), out);
        if T::TAKES_STOCK {
            self.live.core.show_stock(out);
        }
    }

    fn show_histogram(&self, out: &SeqFile) {
        let second = self.live.own.second();
        self.live.core.show_histogram(second, out);
    }

    fn has_labels(&self) -> bool {
        self.live.core.has_labels()
    }

    fn show_labels(&self, out: &SeqFile) -> Result {
        self.live.core.show_labels(out)
    }

    fn pending(&self) -> Result<Lines> {
        let (live, batch) = (
            self.live.clone(),
            Batch::new(self.live.core.engine().capacity()),
        );
        let lines: Lines = KBox::new(Pending { live, batch }, GFP_KERNEL)?;
        Ok(lines)
    }
}

/// The content of an open `pending` file.
struct Pending<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> {
    live: Arc<Live<T, K, D, O>>,
    batch: Batch<K, D>,
}

impl<T: Probes<K, D, O>, const K: usize, const D: usize, O: Own> Records for Pending<T, K, D, O> {
    fn rewind(&mut self) {
        self.batch.rewind();
    }

    fn next(&mut self) -> Result<usize> {
        let live = &self.live;
        self.batch.next(|see| T::each_pending(live, see))
    }

    fn show(&self, nth: usize, is_trusted: bool, out: &SeqFile) {
        let Some(event) = self.batch.get(nth) else {
            return;
        };
        let (core, start) = (&self.live.core, event.start);
        let age = Kernel::now().saturating_sub(start);
        seq_print!(out, "age={age} start={start} ");
        T::show_fields(core, event, is_trusted, out);
        let stack = core.stack_of(T::owner(&event.data), start);
        let since = if event.found { BEFORE_START } else { "" };
        seq_print!(out, "{}{since}\n", StackField(stack.entries()));
    }
}
