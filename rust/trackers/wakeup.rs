// SPDX-License-Identifier: GPL-2.0

//! `wakeup`: how long woken tasks wait for a CPU.
//!
//! ```text
//!   asleep          waking                            switched in
//!   ---------------->|--------- on a runqueue -------->|---------> running
//!                    |<------------ delay ------------>|
//! ```
//!
//! An event begins when a task is woken (`sched_waking`), or a new one is made to run for the first
//! time (`sched_wakeup_new`), and ends when that task is switched in. The key is the task, the
//! *wakee*; the filter applies to it, not to the waker.
//!
//! Not every waking is one. A task that has announced to sleep, but still runs, is woken too, and
//! continues without having waited:
//!
//! - a task that wakes itself, or is woken by an interrupt on top of it, is seen to be awake;
//! - a task that runs elsewhere may be about to be switched out on its CPU, and then really has to
//!   be woken, by this waker. So the event begins, and is dropped (`gone`, `awake`) if the task
//!   turns out to run on: it is switched out while runnable, that is, without having gone to sleep,
//!   or it exits. If it does go to sleep and is woken again, that waking counts (`replaced`). Until
//!   then such an event does not time out.
//!
//! # Contexts
//!
//! The probes hold the lock of the wakee or of the runqueue, see sys/sched.rs.

use super::tasks::{self, Guard};
use crate::{
    alert::record::{
        actor::{Actor, Wait, Waited},
        Owner, //
    },
    control::Param,
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Verdict},
    },
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Probed},
        Core,
        Details, //
    },
    sys::{
        platform::Kernel,
        sched::{self, policy_name, Switch},
        task::{Context, TaskRef},
        tracepoint::Attachment, //
    },
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

static PARAMS: [Param; common::COUNT + tasks::FILTER] = params(5_000_000, tasks::filter(true));

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "wakeup",
    c_name: c"wakeup",
    help: "woken tasks, from wakeup to switch-in (key: the woken task)",
    params: &PARAMS,
    counters: &[tasks::READERS, "awake"],
    detail_words: Waited::WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail(Waited::from_words(&alert.detail)))),
    check: all_right,
    missing: sched::missing::<Probes>,
    create: Some(Probed::<Wakeup, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Wakings of tasks that had not gone to sleep; also in `gone`.
    Awake = 1,
}

struct Wakeup;

type Probes = Live<Wakeup, 1, WORDS>;

/// The other task of a [`Wait`] is the waker.
const WORDS: usize = Wait::WORDS;

/// The bits of the waker's note: the context, and whether the wakee had not gone to sleep.
const CONTEXT: u32 = 3;
const AWAKE: u32 = 4;

fn context(waker: &Actor) -> &'static str {
    Context::from_number(waker.note & CONTEXT).name()
}

/// Our fields of an alert.
struct Detail(Waited);

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waited { other, place, prev } = &self.0;
        f.write_fmt(fmt!(
            "prio={} policy={} target={} migrated={} {} context={} {}",
            place.prio,
            policy_name(place.policy.into()),
            place.cpu,
            u32::from(tasks::has_migrated(prev)),
            other.named("waker"),
            context(other),
            prev.named("prev")
        ))
    }
}

impl sched::Observer for Probes {
    const WAKINGS: bool = true;
    const NEW: bool = true;

    #[inline(always)]
    fn waking(&self, guard: &Guard, wakee: TaskRef<'_>) {
        let tracker = self.core.tracker();
        TaskRef::with_current(|current| {
            if current.is(&wakee) {
                // It keeps running, in spite of its state. Not an attempt: no wait begins.
                return;
            }
            let cpu = wakee.cpu();
            let may_be = tasks::may_be_wanted(&self.core, &wakee);
            if !may_be || !tasks::is_wanted(&self.core, &wakee, cpu) {
                tracker.filtered(guard);
                return;
            }
            let context = Context::current();
            let awake = if wakee.is_awake() { AWAKE } else { 0 };
            let waking = Wait {
                owner: tasks::owner(&wakee),
                other: tasks::actor(&current, context as u32 | awake),
                place: tasks::place(&wakee, cpu),
            };
            let key = tasks::key(&wakee);
            tracker.event_in_unique(guard, &key, Kernel::now(), &waking.to_words());
        });
    }

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        if state.is_runnable() || state.is_dead() {
            self.drop_awake(guard, prev);
        }
        tasks::end_wait(&self.core, guard, &next, &prev);
    }
}

impl Probes {
    /// A task that keeps running without having slept has not waited, if it was woken.
    ///
    /// Not inlined: the registers that this needs should not be saved on every switch.
    #[inline(never)]
    fn drop_awake(&self, guard: &Guard, task: TaskRef<'_>) {
        let key = tasks::key(&task);
        let gone = self.core.tracker().update(guard, &key, |_| Verdict::Gone);
        if gone.is_some() {
            self.core.count_extra(guard, Extra::Awake as usize);
        }
    }
}

impl probed::Probes<1, WORDS> for Wakeup {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        sched::attach(live)
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        Wait::from_words(*data).owner
    }

    fn can_time_out(data: &[u64; WORDS]) -> bool {
        Wait::from_words(*data).other.note & AWAKE == 0
    }

    fn details(core: &Core<1, WORDS>, late: &Late<1, WORDS>, _: u64) -> Option<Details> {
        tasks::waits(core, late)
    }

    fn show_fields(_: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, out: &SeqFile) {
        let Wait {
            owner,
            other,
            place,
        } = Wait::from_words(event.data);
        seq_print!(
            out,
            "{owner} prio={} policy={} target={} {} context={} awake={}",
            place.prio,
            policy_name(place.policy.into()),
            place.cpu,
            other.named("waker"),
            context(&other),
            u32::from(other.note & AWAKE != 0)
        );
    }
}
