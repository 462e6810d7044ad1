// SPDX-License-Identifier: GPL-2.0

//! `runqueue`: how long runnable tasks have to let others run.
//!
//! ```text
//!   running      switched out, runnable               switched in
//!   ------------------->|------- on a runqueue -------->|---------> running
//!                       |<------------ delay ---------->|
//! ```
//!
//! An event begins when a task is switched out that has not gone to sleep (`sched_switch`, the
//! states `R` and `R+`): it was preempted, has yielded, or its cgroup has used up its quota. It
//! ends when that task is switched in. The key is the task; the filter applies to it, and the CPU
//! is the one that it is switched out of.
//!
//! Tasks that slept and were woken are the subject of `wakeup`.
//!
//! # Contexts
//!
//! The probe holds the lock of the runqueue, see sys/sched.rs.

use super::tasks::{self, Guard};
use crate::{
    alert::record::{
        actor::{Wait, Waited},
        Owner, //
    },
    control::Param,
    engine::{event::EventCopy, platform::Platform, tracker::Late},
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
        task::TaskRef,
        tracepoint::Attachment, //
    },
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

static PARAMS: [Param; common::COUNT + tasks::FILTER] = params(10_000_000, tasks::filter(true));

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "runqueue",
    c_name: c"runqueue",
    help: "runnable tasks, from switch-out to switch-in (key: the task)",
    params: &PARAMS,
    counters: &[tasks::READERS],
    detail_words: Waited::WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail(Waited::from_words(&alert.detail)))),
    check: all_right,
    missing: sched::missing::<Probes>,
    create: Some(Probed::<Runqueue, _, _>::create),
};

struct Runqueue;

type Probes = Live<Runqueue, 1, WORDS>;

/// The other task of a [`Wait`] is the one that ran next.
const WORDS: usize = Wait::WORDS;

/// The bit of its note: the task was preempted (`R+`), rather than yielding.
const PREEMPTED: u32 = 1;

/// As the tracepoint shows it.
fn state(note: u32) -> &'static str {
    if note & PREEMPTED == 0 {
        "R"
    } else {
        "R+"
    }
}

/// Our fields of an alert.
struct Detail(Waited);

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waited { other, place, prev } = &self.0;
        f.write_fmt(fmt!(
            "prio={} policy={} state={} from={} migrated={} {} {}",
            place.prio,
            policy_name(place.policy.into()),
            state(other.note),
            place.cpu,
            u32::from(tasks::has_migrated(prev)),
            other.named("by"),
            prev.named("prev")
        ))
    }
}

impl sched::Observer for Probes {
    const WAKINGS: bool = false;
    const NEW: bool = false;

    fn waking(&self, _: &Guard, _: TaskRef<'_>) {}

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        if state.is_runnable() && !prev.is_idle() {
            if tasks::may_be_wanted(&self.core, &prev) {
                self.begin_if_wanted(guard, switch);
            } else {
                self.core.tracker().filtered(guard);
            }
        }
        tasks::end_wait(&self.core, guard, &next, &prev);
    }
}

impl Probes {
    /// Not inlined: the registers that this needs should not be saved on every switch.
    #[inline(never)]
    fn begin_if_wanted(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        let tracker = self.core.tracker();
        let cpu = Kernel::cpu(guard) as u32;
        if !tasks::is_wanted(&self.core, &prev, cpu) {
            tracker.filtered(guard);
            return;
        }
        let preempted = if state.is_preempted() { PREEMPTED } else { 0 };
        let wait = Wait {
            owner: tasks::owner(&prev),
            other: tasks::actor_or_idle(&next, preempted),
            place: tasks::place(&prev, cpu),
        };
        let key = tasks::key(&prev);
        tracker.event_in_unique(guard, &key, Kernel::now(), &wait.to_words());
    }
}

impl probed::Probes<1, WORDS> for Runqueue {
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
            "{owner} prio={} policy={} state={} from={} {}",
            place.prio,
            policy_name(place.policy.into()),
            state(other.note),
            place.cpu,
            other.named("by")
        );
    }
}
