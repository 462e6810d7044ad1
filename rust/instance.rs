// SPDX-License-Identifier: GPL-2.0

//! An instance: a tracker with its own name, parameters, counters and readers.
//!
//! [`Core`] is the part that all trackers share: the engine, the parameter values that probes read,
//! and the alerts. [`Instance`] is the view of any tracker's instance from the /proc tree; probes
//! do not use it.

use crate::{
    alert::{
        notify,
        record::{user::USER_DEPTH, Name, Owner, OWN_TAIL},
        stream::Alerts,
    },
    control::Number,
    engine::{
        event::Event,
        hash::Seed,
        histogram,
        platform::Platform,
        stats::{Counter, Stats},
        Engine,
    },
    measure::Measure,
    sys::{
        atomic::{Atomic, Relaxed},
        measure::Meter,
        memory,
        periodic::cond_resched,
        platform::{self, Kernel},
        random,
        task::Task,
        trace, //
    }, //
};
use core::ffi::CStr;
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

pub(crate) mod descendants;
mod expire;
pub(crate) mod kind;
pub(crate) mod labels;
mod parameters;
pub(crate) mod pending;
pub(crate) mod probed;
pub(crate) mod profile;
mod raise;
pub(crate) mod settings;
pub(crate) mod user_stack;
pub(crate) mod work;

pub(crate) use self::{
    expire::until_next_search,
    parameters::{common, param_list, params, Changes, Shown, Values, PARAMS_MAX},
    raise::{Permit, Report}, //
};
pub(crate) use crate::record::Details;
use descendants::{Followed, FOLLOWED};
use kind::{Kind, New};
use parameters::Texts;

/// The creator of an instance that did not come from a line of the control language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeBy {
    /// Address that serves as the module's handle for the instance.
    pub(crate) handle: usize,
    /// Address of the module.
    pub(crate) module: usize,
}

/// An instance of any tracker, for the /proc tree. All functions may sleep.
pub(crate) trait Instance: Send + Sync {
    fn kind(&self) -> &'static Kind;

    /// Returns the module that created the instance, if a module did.
    fn made_by(&self) -> Option<MadeBy> {
        None
    }

    fn alerts(&self) -> Arc<Alerts>;

    fn value(&self, param: usize) -> Number;

    fn text(&self, _param: usize) -> Option<&CStr> {
        None
    }

    /// Whether a parameter is in the instance's line of `control`, and has a file. The parameters
    /// of labels have both only if delays are counted by label.
    fn shows(&self, param: usize) -> bool {
        let labels = self.kind().label_params();
        self.has_labels() || labels.is_none_or(|(first, _)| param < first)
    }

    /// Applies changes, none of which may change a fixed parameter. If enabling fails, nothing has
    /// changed.
    fn apply(&self, changes: &Changes) -> Result;

    /// Detaches from the kernel and drops pending events. The removal of the files then makes the
    /// readers return.
    fn shut_down(&self);

    /// Maintains the memory for events: allocates more if it runs short. Returns the nanoseconds
    /// until the next call; `None` if the next call is needed only on request.
    fn maintain(&self) -> Option<u64>;

    /// Returns its profile, if its tracker has one.
    fn profile(&self) -> Option<Arc<profile::InstanceProfile>> {
        None
    }

    /// Returns the name and the printer of the tracker's own file, if it has one.
    fn table(&self) -> Option<(&'static CStr, Arc<dyn Table>)> {
        None
    }

    /// Returns the receiver of work marks, if the instance waits for any.
    fn work(&self) -> Option<Arc<dyn work::Work>> {
        None
    }

    fn show_stats(&self, out: &SeqFile);

    fn show_histogram(&self, out: &SeqFile);

    /// Whether delays are counted by label.
    fn has_labels(&self) -> bool {
        false
    }

    /// Prints `labels`. Fails with `ENOMEM`.
    fn show_labels(&self, _out: &SeqFile) -> Result {
        Ok(())
    }

    /// Returns the lines of `pending`, for one open file. Fails with `ENOMEM`.
    fn pending(&self) -> Result<pending::Lines>;
}

/// The content of a tracker's own file.
pub(crate) trait Table: Send + Sync {
    /// Prints the content. May sleep.
    fn show(&self, out: &SeqFile);
}

/// A second engine of an instance, whose events are counted together with the events of the first.
/// If an instance has a second engine, only the events of that engine have an end.
pub(crate) trait Second {
    fn stats(&self) -> &Stats;

    /// Returns the number of live events.
    fn pending(&self) -> u64;

    /// Prints its own lines of `stats`.
    fn show(&self, out: &SeqFile);
}

/// Pause in nanoseconds before growth is retried or outgrown memory is checked again.
const RETRY_NS: u64 = 1_000_000_000;

/// The state common to the instances of all trackers, with keys of `K` and data of `D` words.
pub(crate) struct Core<const K: usize, const D: usize> {
    name: Name,
    kind: &'static Kind,
    number: usize,
    traced: trace::Traced,
    engine: Engine<K, D, Kernel>,
    values: [Atomic<u64>; PARAMS_MAX],
    /// The upper halves of the values.
    uppers: [Atomic<u64>; PARAMS_MAX],
    /// A bit for each value that differs from its default.
    changed: Atomic<u64>,
    /// The values of text parameters, which never change.
    texts: Texts,
    alerts: Arc<Alerts>,
    all: Arc<Alerts>,
    /// Whether alerts have the stack of their task in user space.
    has_user_stack: bool,
    measure: Option<Arc<Measure>>,
    /// Number of times the pool has grown.
    grown: Atomic<u64>,
    /// Number of times growth failed for lack of memory.
    grow_failed: Atomic<u64>,
    /// Number of alerts in the current second.
    rate: raise::Rate,
    /// The processes that the filter accepts, with `tree=1`.
    followed: Option<KBox<Followed>>,
}

impl From<&Task> for Owner {
    #[inline(always)]
    fn from(task: &Task) -> Self {
        Self {
            pid: task.pid,
            tid: task.tid,
            start_mark: Owner::start_mark_of(task.start_time),
            comm: task.comm,
        }
    }
}

impl<const K: usize, const D: usize> Core<K, D> {
    /// Returns an initializer that creates a disabled core in place. A core is too large for the
    /// kernel stack, which must also have room for reclaim: the core's allocation may trigger it.
    /// May sleep; fails with `ENOMEM`, `EINVAL`, or the error of `Followed::create`.
    pub(crate) fn new<'a>(
        kind: &'static Kind,
        new: New<'a>,
    ) -> Result<impl Init<Self, Error> + 'a> {
        let New {
            name,
            number,
            values: given,
            all,
            measure,
        } = new;
        let capacity = given[common::EVENTS] as u32;
        let most = given[common::MAX_EVENTS] as u32;
        memory::check(Self::bytes(capacity))?;
        let has_user_stack = kind.user_stack().is_some_and(|at| given[at] != 0);
        let user_depth = if has_user_stack { USER_DEPTH } else { 0 };
        let own = kind.tail.as_ref().map_or(0, |_| OWN_TAIL);
        let alerts = Alerts::new(
            given[common::RING] as u32,
            given[common::STACK] as usize + own + user_depth,
            given[common::WAKEUP_INTERVAL] as u64,
            all.line(),
        )?;
        let alerts = Arc::new(alerts, GFP_KERNEL)?;
        let threshold = given[common::THRESHOLD] as u64;
        let followed = Followed::create(kind, given)?;
        let pid = followed.as_ref().map(|followed| followed.param);
        let first = move |at: usize| match at {
            common::ENABLED => 0,
            at if pid == Some(at) => FOLLOWED,
            at => given[at] as u64,
        };
        let [a, b] = random::words();
        let labels = match kind.label_params() {
            Some((by, max)) => {
                let depth = given[common::STACK] as usize;
                labels::create(kind, given[by] as u64, given[max] as u32, depth)?
            }
            None => None,
        };
        let is_labelled = labels.is_some();
        let core = try_init!(Self {
            name,
            kind,
            number,
            traced: trace::Traced::of(kind.c_name),
            engine: Engine::growing(capacity, most, threshold, Seed::new(a, b), is_labelled)?,
            values: core::array::from_fn(|at| Atomic::new(first(at))),
            uppers: core::array::from_fn(|at| Atomic::new((given[at] >> 64) as u64)),
            changed: Atomic::new(given.changed(kind.params)),
            texts: given.texts().clone(),
            alerts,
            all,
            has_user_stack,
            measure,
            grown: Atomic::new(0),
            grow_failed: Atomic::new(0),
            rate: raise::Rate::new(),
            followed,
        });
        Ok(Init::chain(core, move |core| {
            if let Some(labels) = labels {
                core.engine.set_labels(KBox::into_inner(labels));
            }
            Ok(())
        }))
    }

    /// Returns the approximate size of this many events in bytes: a cell and a share of the table
    /// each.
    fn bytes(events: u32) -> usize {
        events as usize * (size_of::<Event<K, D>>() + 32)
    }

    /// Grows the pool if it has requested this, frees outgrown memory, and takes back the cells
    /// that offline CPUs had cached. See [`Instance::maintain`]. May sleep.
    pub(crate) fn maintain(&self) -> Option<u64> {
        platform::each_offline_cpu(|cpu| self.engine.cpu_gone(cpu));
        if self.engine.wants_to_grow() {
            // Outgrown memory can wait; a burst cannot.
            self.grow();
            return Some(RETRY_NS);
        }
        match self.engine.reap() {
            Ok(0) => None,
            _ => Some(RETRY_NS),
        }
    }

    fn grow(&self) {
        while self.engine.wants_to_grow() {
            let more = self.engine.next_capacity() - self.engine.capacity();
            match memory::check(Self::bytes(more)).and_then(|()| self.engine.grow()) {
                Ok(_) => self.add(&self.grown),
                // Another caller, such as the maintenance work, is growing the pool right now.
                Err(error) if error == EBUSY => return,
                Err(_) => return self.add(&self.grow_failed),
            }
        }
    }

    fn add(&self, counter: &Atomic<u64>) {
        // Relaxed: the number is only displayed.
        counter.add(1, Relaxed);
    }

    /// Increments one of the tracker's own counters. Any context.
    pub(crate) fn count_extra(&self, guard: &<Kernel as Platform>::Guard, which: usize) {
        self.engine.stats().here::<Kernel>(guard).count_extra(which);
    }

    /// Adds to one of the tracker's own counters. Any context.
    pub(crate) fn add_extra(&self, guard: &<Kernel as Platform>::Guard, which: usize, n: u64) {
        self.engine
            .stats()
            .here::<Kernel>(guard)
            .add_extra(which, n);
    }

    #[inline(always)]
    pub(crate) fn engine(&self) -> &Engine<K, D, Kernel> {
        &self.engine
    }

    pub(crate) fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Returns the meter of the probe at a tracepoint or a function, if it is measured. May sleep.
    pub(crate) fn meter(&self, hook: &CStr) -> Option<Arc<dyn Meter>> {
        let point = self.measure.as_ref()?.point(self.kind.name, hook)?;
        Some(point)
    }

    pub(crate) fn alerts(&self) -> &Arc<Alerts> {
        &self.alerts
    }

    /// Returns the value of a parameter; [`FOLLOWED`] for `pid` with `tree=1`. Any context.
    #[inline(always)]
    pub(crate) fn value(&self, param: usize) -> u64 {
        // Relaxed: a value that changes now applies from about now.
        self.values[param].load(Relaxed)
    }

    /// With `tree=1`: whether a process is the process of `pid`. Any context.
    pub(crate) fn follows_from(&self, pid: u32) -> bool {
        let followed = self.followed.as_ref();
        followed.is_some_and(|followed| followed.pid == Number::from(pid))
    }

    /// With `tree=1`: whether a process is the process of `pid` or one of its descendants. Any
    /// context.
    ///
    /// In line: with a call, a probe that finds nothing would need a frame.
    #[inline(always)]
    pub(crate) fn follows(&self, pid: u32) -> bool {
        let followed = self.followed.as_ref();
        followed.is_some_and(|followed| followed.contains(pid))
    }

    /// Returns both halves of the value of a parameter, the lower first. During a change they may
    /// belong to different values. Any context.
    #[inline(always)]
    pub(crate) fn halves(&self, param: usize) -> [u64; 2] {
        // Relaxed: as in `value`.
        [self.value(param), self.uppers[param].load(Relaxed)]
    }

    /// Whether all of these parameters, one bit each, have their defaults: a single test for
    /// filters that are rarely used. Any context.
    #[inline(always)]
    pub(crate) fn are_default(&self, params: u64) -> bool {
        // Relaxed: as in `value`.
        self.changed.load(Relaxed) & params == 0
    }

    /// Returns the maximum number of entries of a stack. Any context.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.value(common::STACK) as usize
    }

    /// Returns the value of a parameter as it is shown. Any context.
    pub(crate) fn shown(&self, param: usize) -> Number {
        match (param, &self.followed) {
            (common::THRESHOLD, _) => self.engine.threshold().into(),
            (_, Some(followed)) if followed.param == param => followed.pid,
            _ => {
                let [lower, upper] = self.halves(param);
                Number::from(upper) << 64 | Number::from(lower)
            }
        }
    }

    /// Returns the values of all parameters. May sleep; fails with `ENOMEM`.
    pub(crate) fn values(&self) -> Result<Values> {
        Values::new(|at| self.shown(at), &self.texts)
    }

    /// Returns the value of a text parameter.
    pub(crate) fn text(&self, param: usize) -> Option<&CStr> {
        self.texts[param].as_ref().map(|text| &***text)
    }

    /// Stores the values of all parameters except `enabled`: the new values of `changes`, or the
    /// old values again.
    pub(crate) fn set_values(&self, values: &Values, changes: &Changes) {
        let pid = self.followed.as_ref().map(|followed| followed.param);
        for (i, value) in values.numbers().iter().enumerate() {
            // With `tree=1`, `pid` does not change.
            if i != common::ENABLED && pid != Some(i) {
                self.values[i].store(*value as u64, Relaxed);
                self.uppers[i].store((*value >> 64) as u64, Relaxed);
            }
        }
        self.changed
            .store(values.changed(self.kind.params), Relaxed);
        // Only if the threshold is given: an end may have raised it since the values were read.
        if changes.get(common::THRESHOLD).is_some() {
            let threshold = values[common::THRESHOLD] as u64;
            self.engine.set_threshold(threshold);
        }
        let interval = values[common::WAKEUP_INTERVAL] as u64;
        notify::set_interval(self.alerts.notifier(), interval);
    }

    /// Whether starts are tracked. Any context.
    #[inline(always)]
    pub(crate) fn is_enabled(&self) -> bool {
        self.value(common::ENABLED) != 0
    }

    /// Turns the tracking of starts on or off.
    pub(crate) fn set_enabled(&self, enabled: bool) {
        self.values[common::ENABLED].store(u64::from(enabled), Relaxed);
    }

    /// Prints `stats`, including the counters of a second engine, if there is one.
    pub(crate) fn show_stats(&self, second: Option<&dyn Second>, out: &SeqFile) {
        let stats = self.engine.stats();
        let total = |counter| {
            let more = second.map_or(0, |second| second.stats().total(counter));
            stats.total(counter) + more
        };
        // Printed further down in the file.
        let later = [
            Counter::Crowded,
            Counter::AlertsSuppressed,
            Counter::BeforeStart,
            Counter::BeforeStartEnded,
        ];
        for &counter in Counter::ALL
            .iter()
            .filter(|counter| !later.contains(counter))
        {
            seq_print!(out, "{} {}\n", counter.name(), total(counter));
            if counter == Counter::Ended {
                let more = second.map_or(0, Second::pending);
                seq_print!(out, "pending {}\n", self.engine.pending_count() + more);
            }
        }
        let notifier = self.alerts.notifier();
        seq_print!(out, "wakes {}\n", notifier.wakes());
        seq_print!(out, "wakes_suppressed {}\n", notifier.suppressed());
        // If there is a second engine, only its events have an end.
        let summary = second.map_or(stats, Second::stats).summary();
        seq_print!(
            out,
            "min {}\nmean {}\nmax {}\n",
            summary.min,
            summary.mean,
            summary.max
        );
        seq_print!(out, "capacity {}\n", self.engine.capacity());
        seq_print!(out, "max_capacity {}\n", self.engine.max_capacity());
        seq_print!(out, "free {}\n", self.engine.free());
        // Relaxed: the numbers are only displayed.
        seq_print!(out, "grown {}\n", self.grown.load(Relaxed));
        seq_print!(out, "grow_failed {}\n", self.grow_failed.load(Relaxed));
        let suppressed = Counter::AlertsSuppressed;
        seq_print!(out, "{} {}\n", suppressed.name(), total(suppressed));
        seq_print!(out, "overruns {}\n", self.alerts.overruns());
        for (which, name) in self.kind.counters.iter().enumerate() {
            seq_print!(out, "{name} {}\n", stats.total_extra(which));
        }
        let last = Counter::Crowded;
        seq_print!(out, "{} {}\n", last.name(), total(last));
        seq_print!(out, "sum_us {}\n", summary.sum_us);
        if let Some(second) = second {
            second.show(out);
        }
    }

    /// Prints the lines of `stats` about operations that were in flight when the instance started.
    pub(crate) fn show_stock(&self, out: &SeqFile) {
        for counter in [Counter::BeforeStart, Counter::BeforeStartEnded] {
            let total = self.engine.stats().total(counter);
            seq_print!(out, "{} {total}\n", counter.name());
        }
    }

    pub(crate) fn show_histogram(&self, second: Option<&dyn Second>, out: &SeqFile) {
        let stats = second.map_or(self.engine.stats(), Second::stats);
        for bucket in 0..histogram::BUCKETS {
            let count = stats.bucket(bucket);
            if count != 0 {
                let (low, high) = histogram::bounds(bucket);
                seq_print!(out, "{low} {high} {count}\n");
            }
            // A bucket is a word for each CPU and label.
            cond_resched();
        }
    }
}
