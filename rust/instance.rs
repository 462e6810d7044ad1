// SPDX-License-Identifier: GPL-2.0

//! An instance: a tracker with a name, parameters, counters and readers of its own.
//!
//! [`Core`] is what all trackers share: the engine, the parameter values that probes read, the
//! alerts. [`Instance`] is how the /proc tree sees any of them; nothing on a probe's path goes
//! through it.

use crate::{
    alerts::Alerts,
    control::{Kind, Number, Param},
    event::{Event, Snapshot},
    histogram,
    platform::Platform,
    record::{Alert, Name, Owner, Reason, DETAIL},
    stats::Counter,
    sys::{
        atomic::{Atomic, Relaxed},
        memory,
        platform::{self, Kernel},
        stack::{Stack, DEPTH_MAX},
        task::Task,
        ticker, trace,
    },
    tracker::{Late, Tracker, Why},
    trackers, wakeup,
};
use core::{
    ffi::CStr,
    ops::{Index, IndexMut}, //
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, str::CString, sync::Arc};

pub(crate) mod probed;
pub(crate) mod profile;

/// The most parameters a tracker can have.
pub(crate) const PARAMS_MAX: usize = 24;

/// The texts among the values, see [`Kind::is_text`].
type Texts = [Option<Arc<CString>>; PARAMS_MAX];

/// The values of an instance's parameters, in the order of its tracker's.
#[derive(Clone)]
pub(crate) struct Values {
    numbers: [Number; PARAMS_MAX],
    texts: Texts,
}

impl Values {
    /// Those for which nothing is given.
    pub(crate) fn defaults(kind: &trackers::Kind) -> Self {
        let default = |at| {
            let param: Option<&Param> = kind.params.get(at);
            param.map_or(0, |param| param.default.into())
        };
        Self {
            numbers: core::array::from_fn(default),
            texts: Texts::default(),
        }
    }

    /// The value of a parameter that is a text, if it is given.
    pub(crate) fn text(&self, param: usize) -> Option<&CStr> {
        self.texts[param].as_ref().map(|text| &***text)
    }
}

impl Index<usize> for Values {
    type Output = Number;

    fn index(&self, param: usize) -> &Number {
        &self.numbers[param]
    }
}

impl IndexMut<usize> for Values {
    fn index_mut(&mut self, param: usize) -> &mut Number {
        &mut self.numbers[param]
    }
}

/// New values for some parameters.
pub(crate) struct Changes {
    given: [bool; PARAMS_MAX],
    values: Values,
}

impl Changes {
    /// No change.
    pub(crate) fn none() -> Self {
        Self {
            given: [false; PARAMS_MAX],
            values: Values {
                numbers: [0; PARAMS_MAX],
                texts: Texts::default(),
            },
        }
    }

    /// Everything.
    pub(crate) fn all(values: &Values) -> Self {
        Self {
            given: [true; PARAMS_MAX],
            values: values.clone(),
        }
    }

    /// The new value of a parameter, if there is one.
    pub(crate) fn get(&self, at: usize) -> Option<Number> {
        self.given[at].then(|| self.values[at])
    }

    /// Gives a parameter a new value.
    pub(crate) fn set(&mut self, at: usize, value: Number) {
        self.given[at] = true;
        self.values[at] = value;
    }

    /// Gives a parameter that is a text a new value.
    pub(crate) fn set_text(&mut self, at: usize, text: CString) -> Result {
        self.values.texts[at] = Some(Arc::new(text, GFP_KERNEL)?);
        self.set(at, 0);
        Ok(())
    }

    /// Whether a parameter would change what an instance has.
    pub(crate) fn differs(&self, at: usize, instance: &dyn Instance) -> bool {
        let (new, old) = (self.values.text(at), instance.text(at));
        self.given[at] && (self.values[at] != instance.value(at) || new != old)
    }

    /// The new values where there are any, else the old ones.
    pub(crate) fn over(&self, mut old: Values) -> Values {
        for at in (0..PARAMS_MAX).filter(|&at| self.given[at]) {
            old[at] = self.values[at];
            if let Some(text) = &self.values.texts[at] {
                old.texts[at] = Some(text.clone());
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

    /// How many there are.
    pub(crate) const COUNT: usize = 9;
}

/// The parameters of a tracker: the common ones, with its own default threshold in nanoseconds,
/// and then its own.
pub(crate) const fn params<const OWN: usize, const ALL: usize>(
    threshold: u64,
    own: [Param; OWN],
) -> [Param; ALL] {
    assert!(ALL == common::COUNT + OWN && ALL <= PARAMS_MAX);
    let common = common_params(threshold);
    let mut all = [common[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < common::COUNT {
            common[at]
        } else {
            own[at - common::COUNT]
        };
        at += 1;
    }
    all
}

const fn common_params(threshold: u64) -> [Param; common::COUNT] {
    [
        Param {
            name: "enabled",
            kind: Kind::Switch,
            default: 1,
            fixed: false,
            help: "follow what happens; 0 drops what is pending",
        },
        Param {
            name: "threshold",
            kind: Kind::Duration,
            default: threshold,
            fixed: false,
            help: "report a delay longer than this",
        },
        Param {
            name: "events",
            kind: Kind::Count {
                min: 1,
                max: crate::freelist::MAX_CELLS as u64,
            },
            default: 4096,
            fixed: true,
            help: "how many can be in flight at once, to begin with",
        },
        Param {
            name: "max_events",
            kind: Kind::Count {
                min: 1,
                max: crate::freelist::MAX_CELLS as u64,
            },
            default: 65_536,
            fixed: true,
            help: "how many that becomes, by doubling, when they run short; at least events",
        },
        Param {
            name: "wakeup_interval",
            kind: Kind::Duration,
            default: 1_000_000_000,
            fixed: false,
            help: "wake readers at most once in this time",
        },
        Param {
            name: "ring",
            kind: Kind::Power {
                min: 2,
                max: 1 << 20,
            },
            default: 1024,
            fixed: true,
            help: "how many alerts are kept for readers",
        },
        Param {
            name: "timeout",
            kind: Kind::Duration,
            default: 0,
            fixed: false,
            help: "report what has not ended after this time, as it is pending; 0 is never",
        },
        Param {
            name: "stack",
            kind: Kind::Count {
                min: 0,
                max: DEPTH_MAX as u64,
            },
            default: 16,
            fixed: true,
            help: "how many functions of the task's stack the alert of a timeout has; 0 is none",
        },
        Param {
            name: "worst",
            kind: Kind::Switch,
            default: 0,
            fixed: false,
            help: "an alert raises the threshold to its delay: only new worst ones are reported",
        },
    ]
}

/// Who made an instance that is no line of the control language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeBy {
    /// What the module calls it by, an address.
    pub(crate) handle: usize,
    /// The module, an address.
    pub(crate) module: usize,
}

/// An instance of any tracker, for the /proc tree. All functions sleep.
pub(crate) trait Instance: Send + Sync {
    /// Its tracker.
    fn kind(&self) -> &'static trackers::Kind;

    /// Who made it, if another module did.
    fn made_by(&self) -> Option<MadeBy> {
        None
    }

    /// Its alerts.
    fn alerts(&self) -> Arc<Alerts>;

    /// The value of a parameter.
    fn value(&self, param: usize) -> Number;

    /// The value of a parameter that is a text.
    fn text(&self, _param: usize) -> Option<&CStr> {
        None
    }

    /// Takes changes, none of them to what is fixed. If enabling fails, all is as it was.
    fn apply(&self, changes: &Changes) -> Result;

    /// Detaches from the kernel, drops what is pending and lets the readers go.
    fn retire(&self);

    /// Sees to the memory for events: more of it, if it runs short. Returns the nanoseconds
    /// until it should be done again, `None` when it is called for.
    fn tend(&self) -> Option<u64>;

    /// Its profile, if its tracker makes one.
    fn profile(&self) -> Option<Arc<profile::Keeper>> {
        None
    }

    /// Prints `stats`.
    fn show_stats(&self, out: &SeqFile);

    /// Prints `histogram`.
    fn show_histogram(&self, out: &SeqFile);

    /// Prints `pending`.
    fn show_pending(&self, out: &SeqFile) -> Result;
}

/// The value of a parameter, as it is written.
pub(crate) struct Shown<'a>(pub(crate) &'a dyn Instance, pub(crate) usize);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(instance, at) = *self;
        match instance.text(at) {
            // Checked when it was parsed: nothing odd is in it.
            Some(text) => f.write_str(text.to_str().unwrap_or("?")),
            None => f.write_fmt(fmt!(
                "{}",
                instance.kind().params[at].display(instance.value(at))
            )),
        }
    }
}

/// The shortest pause between two searches for what has timed out, in nanoseconds.
const FINEST: u64 = 500_000;

/// The nanoseconds until the next search for what has timed out, after one that began at `began`
/// and returned `first`, with timeouts of `shortest` or more.
///
/// Half of the time by which an alert may be late, max(1 ms, timeout / 16), is for the pause; the
/// other half is for the timer, the worker and the search. A search that takes long takes half of
/// a CPU at the most.
pub(crate) fn until_next_search(began: u64, shortest: u64, first: Option<u64>) -> u64 {
    let done = Kernel::now();
    // What begins after `began` can not time out before this.
    let unseen = began.saturating_add(shortest);
    let due = first.map_or(unseen, |first| first.min(unseen));
    let pause = (shortest / 32).max(FINEST).max(done.saturating_sub(began));
    due.saturating_sub(done).max(pause)
}

/// After how many nanoseconds growth is tried again, or what was outgrown is looked at again.
const TENDED: u64 = 1_000_000_000;

/// What the instances of all trackers have, with keys of `K` and data of `D` words.
pub(crate) struct Core<const K: usize, const D: usize> {
    name: Name,
    kind: &'static trackers::Kind,
    number: usize,
    traced: trace::Traced,
    tracker: Tracker<K, D, Kernel>,
    values: [Atomic<u64>; PARAMS_MAX],
    /// The upper halves.
    uppers: [Atomic<u64>; PARAMS_MAX],
    /// They never change.
    texts: Texts,
    alerts: Arc<Alerts>,
    all: Arc<Alerts>,
    /// How often the pool has grown, and how often there was no memory for it.
    grown: Atomic<u64>,
    grow_failed: Atomic<u64>,
}

impl From<&Task> for Owner {
    #[inline(always)]
    fn from(task: &Task) -> Self {
        Self {
            pid: task.pid,
            tid: task.tid,
            born: Owner::born_at(task.born),
            comm: task.comm,
        }
    }
}

/// What a late event adds to the common fields of an alert.
pub(crate) struct Details {
    /// The task it belongs to.
    pub(crate) owner: Owner,
    /// The tracker's own words.
    pub(crate) words: [u64; DETAIL],
}

impl<const K: usize, const D: usize> Core<K, D> {
    /// Makes it, not enabled. `all` also gets its alerts. `ENOMEM` or `EINVAL`. Sleeps.
    pub(crate) fn new(
        name: Name,
        kind: &'static trackers::Kind,
        values: &Values,
        all: Arc<Alerts>,
    ) -> Result<Self> {
        let (number, _) = trackers::find(kind.name.as_bytes()).ok_or(EINVAL)?;
        let capacity = values[common::EVENTS] as u32;
        let most = values[common::MAX_EVENTS] as u32;
        memory::check(Self::bytes(capacity))?;
        let alerts = Alerts::new(
            values[common::RING] as u32,
            values[common::STACK] as usize,
            values[common::WAKEUP_INTERVAL] as u64,
        )?;
        let threshold = values[common::THRESHOLD] as u64;
        let texts = values.texts.clone();
        let uppers = core::array::from_fn(|at| Atomic::new((values[at] >> 64) as u64));
        let values = core::array::from_fn(|at| {
            let is_off = at == common::ENABLED;
            Atomic::new(if is_off { 0 } else { values[at] as u64 })
        });
        Ok(Self {
            name,
            kind,
            number,
            traced: trace::Traced::of(kind.name),
            tracker: Tracker::growing(capacity, most, threshold, crate::sys::random::seed())?,
            values,
            uppers,
            texts,
            alerts: Arc::new(alerts, GFP_KERNEL)?,
            all,
            grown: Atomic::new(0),
            grow_failed: Atomic::new(0),
        })
    }

    /// About how many bytes so many events take: of each, a cell and its part of the table.
    fn bytes(events: u32) -> usize {
        events as usize * (size_of::<Event<K, D>>() + 32)
    }

    /// Has the pool grow if it has asked for it, frees what was outgrown, and takes back what
    /// CPUs that are offline had kept. See [`Instance::tend`]. Sleeps.
    pub(crate) fn tend(&self) -> Option<u64> {
        platform::each_offline_cpu(|cpu| self.tracker.cpu_gone(cpu));
        if self.tracker.wants_to_grow() {
            // What is outgrown can wait, a burst does not.
            self.grow();
            return Some(TENDED);
        }
        match self.tracker.reap() {
            Ok(0) => None,
            _ => Some(TENDED),
        }
    }

    fn grow(&self) {
        while self.tracker.wants_to_grow() {
            let more = self.tracker.next_capacity() - self.tracker.capacity();
            match memory::check(Self::bytes(more)).and_then(|()| self.tracker.grow()) {
                Ok(_) => self.add(&self.grown),
                Err(_) => return self.add(&self.grow_failed),
            }
        }
    }

    fn add(&self, counter: &Atomic<u64>) {
        // Relaxed: a number for people.
        counter.add(1, Relaxed);
    }

    /// Counts one in a counter of the tracker's own. Any context.
    pub(crate) fn count_extra(&self, guard: &<Kernel as Platform>::Guard, which: usize) {
        self.tracker
            .stats()
            .here::<Kernel>(guard)
            .count_extra(which);
    }

    /// Adds to a counter of the tracker's own. Any context.
    pub(crate) fn add_extra(&self, guard: &<Kernel as Platform>::Guard, which: usize, n: u64) {
        self.tracker
            .stats()
            .here::<Kernel>(guard)
            .add_extra(which, n);
    }

    /// The engine.
    #[inline(always)]
    pub(crate) fn tracker(&self) -> &Tracker<K, D, Kernel> {
        &self.tracker
    }

    /// Its tracker.
    pub(crate) fn kind(&self) -> &'static trackers::Kind {
        self.kind
    }

    /// Its alerts.
    pub(crate) fn alerts(&self) -> &Arc<Alerts> {
        &self.alerts
    }

    /// The value of a parameter. Any context.
    #[inline(always)]
    pub(crate) fn value(&self, param: usize) -> u64 {
        // Relaxed: a value that changes now applies from about now.
        self.values[param].load(Relaxed)
    }

    /// Both halves of the value of a parameter, the lower first. While it is changed they may be
    /// of different values. Any context.
    #[inline(always)]
    pub(crate) fn halves(&self, param: usize) -> [u64; 2] {
        // Relaxed: as in `value`.
        [self.value(param), self.uppers[param].load(Relaxed)]
    }

    /// The value of a parameter as it is shown. Any context.
    pub(crate) fn shown(&self, param: usize) -> Number {
        match param {
            common::THRESHOLD => self.tracker.threshold().into(),
            _ => {
                let [lower, upper] = self.halves(param);
                Number::from(upper) << 64 | Number::from(lower)
            }
        }
    }

    /// The values of all parameters.
    pub(crate) fn values(&self) -> Values {
        Values {
            numbers: core::array::from_fn(|at| self.shown(at)),
            texts: self.texts.clone(),
        }
    }

    /// The value of a parameter that is a text.
    pub(crate) fn text(&self, param: usize) -> Option<&CStr> {
        self.texts[param].as_ref().map(|text| &***text)
    }

    /// Stores the values of all parameters but `enabled`, as they are after `changes`.
    pub(crate) fn set_values(&self, values: &Values, changes: &Changes) {
        for (i, value) in values.numbers.iter().enumerate() {
            if i != common::ENABLED {
                self.values[i].store(*value as u64, Relaxed);
                self.uppers[i].store((*value >> 64) as u64, Relaxed);
            }
        }
        // Only if it is given: an alert may have raised it since the values were read.
        if let Some(threshold) = changes.get(common::THRESHOLD) {
            self.tracker.set_threshold(threshold as u64);
        }
        let interval = values[common::WAKEUP_INTERVAL] as u64;
        wakeup::set_interval(self.alerts.wakeup(), interval);
    }

    /// Whether begins are followed. Any context.
    #[inline(always)]
    pub(crate) fn is_enabled(&self) -> bool {
        self.value(common::ENABLED) != 0
    }

    /// Sets what [`Core::is_enabled`] says.
    pub(crate) fn set_enabled(&self, enabled: bool) {
        self.values[common::ENABLED].store(u64::from(enabled), Relaxed);
    }

    /// Reports what has timed out. Returns the nanoseconds until something can time out next,
    /// `None` if there is no timeout. May sleep.
    ///
    /// `owner` is the task that an event belongs to: where it is now goes into the alert. What
    /// `can_time_out` denies is passed over, that for which there are no `details` is counted
    /// but not reported.
    pub(crate) fn expire(
        &self,
        owner: impl Fn(&[u64; D]) -> Owner,
        can_time_out: impl Fn(&[u64; D]) -> bool,
        mut details: impl FnMut(&Late<K, D>, u64) -> Option<Details>,
    ) -> Option<u64> {
        let timeout = self.value(common::TIMEOUT);
        if timeout == 0 {
            return None;
        }
        let now = Kernel::now();
        let look = |event: &Snapshot<K, D>| self.stack_of(owner(&event.data), event.start);
        let report = |guard: &<Kernel as Platform>::Guard, late: &Late<K, D>, stack: &Stack| {
            if let Some(details) = details(late, now) {
                self.raise(guard, now, late, &details, stack.entries());
            }
        };
        let timeout_of = |event: &Snapshot<K, D>| {
            if can_time_out(&event.data) {
                timeout
            } else {
                u64::MAX
            }
        };
        let first = self
            .tracker
            .expire(now, timeout, timeout_of, ticker::relax, look, report);
        Some(until_next_search(now, timeout, first))
    }

    /// Where the owner of an event that began at `start` is now, as deep as `stack` says. Empty if
    /// the event has no owner, if that runs at this moment, or is the caller. May sleep.
    pub(crate) fn stack_of(&self, owner: Owner, start: u64) -> Stack {
        let depth = self.alerts.depth();
        if depth == 0 || owner.tid == 0 {
            return Stack::EMPTY;
        }
        Stack::of(owner.tid, depth, |born| owner.is_born(born, start))
    }

    /// Whether a late event is to be reported: if only the worst are wanted, and there has been a
    /// worse one, it is not. To be asked once of each. Any context.
    pub(crate) fn keep_worst(&self, late: &mut Late<K, D>) -> bool {
        self.value(common::WORST) == 0 || self.tracker.keep_worst(late)
    }

    /// Raises an alert, with the stack of its task if there is one, unless there has been a worse
    /// one, see [`Core::keep_worst`]. Any context, also under the runqueue lock.
    #[cold]
    pub(crate) fn raise(
        &self,
        guard: &<Kernel as Platform>::Guard,
        time: u64,
        late: &Late<K, D>,
        details: &Details,
        stack: &[u64],
    ) {
        let mut late = *late;
        if self.keep_worst(&mut late) {
            self.raise_kept(guard, time, &late, details, stack);
        }
    }

    /// As [`Core::raise`], of what is to be reported.
    #[cold]
    pub(crate) fn raise_kept(
        &self,
        guard: &<Kernel as Platform>::Guard,
        time: u64,
        late: &Late<K, D>,
        details: &Details,
        stack: &[u64],
    ) {
        let reason = match late.why {
            Why::Threshold => Reason::Threshold,
            Why::Timeout => Reason::Timeout,
            Why::LateEnd => Reason::Late,
        };
        self.raise_as(reason, guard, time, late, details, stack);
    }

    /// Raises an alert for a reason that is not the event's; of what is to be reported. Any
    /// context, also under the runqueue lock.
    #[cold]
    pub(crate) fn raise_as(
        &self,
        reason: Reason,
        guard: &<Kernel as Platform>::Guard,
        time: u64,
        late: &Late<K, D>,
        details: &Details,
        stack: &[u64],
    ) {
        let mut alert = Alert {
            seq: 0,
            time,
            instance: self.name,
            tracker: self.number,
            reason,
            delay: late.delay,
            threshold: late.threshold,
            cpu: Kernel::cpu(guard) as u32,
            owner: details.owner,
            detail: details.words,
            // No more than `DEPTH_MAX`.
            stack: stack.len() as u8,
        };
        let stats = self.tracker.stats();
        stats.here::<Kernel>(guard).count(Counter::ALERTS);
        let numbered = |seq| {
            alert.seq = seq;
            alert.to_words()
        };
        let recorded = self.alerts.record(numbered, stack);
        if let Err(seq) = recorded {
            alert.seq = seq;
            stats.here::<Kernel>(guard).count(Counter::ALERTS_LOST);
        }
        // The readers of all instances see the gap in their own numbering if this one is lost.
        let _ = self.all.record(|_| alert.to_words(), stack);
        self.trace(&alert, stack);
        self.alerts.announce();
        self.all.announce();
    }

    fn trace(&self, alert: &Alert, stack: &[u64]) {
        if !trace::alert_enabled(self.traced) {
            return;
        }
        trace::alert(&trace::AlertEvent {
            traced: self.traced,
            seq: alert.seq,
            time: alert.time,
            delay: alert.delay,
            threshold: alert.threshold,
            instance: &alert.instance,
            tracker: self.kind.c_name,
            reason: alert.reason.name(),
            pid: alert.owner.pid,
            tid: alert.owner.tid,
            comm: &alert.owner.comm,
            args: &alert.detail[..self.kind.detail_words],
            stack,
        });
    }

    /// Prints `stats`.
    pub(crate) fn show_stats(&self, out: &SeqFile) {
        let stats = self.tracker.stats();
        // Where the totals belong in the order of the file.
        for &counter in Counter::ALL {
            seq_print!(out, "{} {}\n", counter.name(), stats.total(counter));
            if counter == Counter::Ended {
                seq_print!(out, "pending {}\n", self.tracker.pending_count());
            }
        }
        let wakeup = self.alerts.wakeup();
        seq_print!(out, "wakes {}\n", wakeup.wakes());
        seq_print!(out, "wakes_suppressed {}\n", wakeup.suppressed());
        let summary = stats.summary();
        seq_print!(
            out,
            "min {}\nmean {}\nmax {}\n",
            summary.min,
            summary.mean,
            summary.max
        );
        seq_print!(out, "capacity {}\n", self.tracker.capacity());
        seq_print!(out, "max_capacity {}\n", self.tracker.max_capacity());
        seq_print!(out, "free {}\n", self.tracker.free());
        // Relaxed: numbers for people.
        seq_print!(out, "grown {}\n", self.grown.load(Relaxed));
        seq_print!(out, "grow_failed {}\n", self.grow_failed.load(Relaxed));
        for (which, name) in self.kind.counters.iter().enumerate() {
            seq_print!(out, "{name} {}\n", stats.total_extra(which));
        }
    }

    /// Prints `histogram`.
    pub(crate) fn show_histogram(&self, out: &SeqFile) {
        for bucket in 0..histogram::BUCKETS {
            let count = self.tracker.stats().bucket(bucket);
            if count != 0 {
                let (low, high) = histogram::bounds(bucket);
                seq_print!(out, "{low} {high} {count}\n");
            }
        }
    }
}
