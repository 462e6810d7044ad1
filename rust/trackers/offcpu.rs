// SPDX-License-Identifier: GPL-2.0

//! `offcpu`: how long tasks are off the CPU, where they wait, and what wakes them.
//!
//! ```text
//!   running    switched out            woken             switched in
//!   -------------->|------- blocked ---->|---- runnable ---->|---------> running
//!                  |<---------------- delay ---------------->|
//!                                        |<---- queued ----->|
//! ```
//!
//! An event begins when a task is switched out (`sched_switch`), for any reason, unless it has
//! exited. It ends when that task is switched in. `sched_waking` notes the waker in between, and
//! its stack if the delay is above the threshold by then. The key is the task; the filter applies
//! to it, and the CPU is the one that it is switched out of.
//!
//! The waking may come before the switch, of a task that has announced to sleep: there is no event
//! yet to note it in, and the task is made to run as soon as it has left the CPU. At the end this is
//! known by the state: it slept, and was not seen to be woken (`early`).
//!
//! The stack of the task itself does not change while it is off the CPU. It is walked when the task
//! is switched in too late, or has timed out, and at no other time.
//!
//! What is off the CPU when the instance starts gets an event then: see stock.rs. Its state is the
//! one it is in then, so a task that was woken before, and still waits for a CPU, counts as runnable.
//!
//! Threads of the kernel mostly wait for work, so they are not followed by default.
//!
//! # Contexts
//!
//! The probes hold the lock of the wakee or of the runqueue, see sys/sched.rs.

use self::event::{Off, FIRST_WORDS, WAKER, WORDS};
use super::{
    stock,
    tasks::{self, Guard}, //
};
use crate::{
    alert::record::Owner,
    control::{Kind as ParamKind, Param},
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Verdict},
    },
    instance::{
        common,
        kind::Kind,
        params,
        probed::{self, Live, Probed},
        Core,
        Details,
        Values, //
    },
    sys::{
        platform::Kernel,
        sched::{self, State, Switch},
        stack::{CompactStack, Stack},
        task::{Context, TaskRef},
        tracepoint::Attachment, //
    }, //
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

mod event;

const WHEN: usize = common::COUNT + tasks::FILTER;
const MAX: usize = WHEN + 1;

/// The values of `when`.
const BLOCKED: u64 = 1;
const PREEMPTED: u64 = 2;

static PARAMS: [Param; MAX + 1] = {
    let [a, b, c, d, e, f, g] = tasks::filter(false);
    let when = Param {
        name: "when",
        kind: ParamKind::Word(&["all", "blocked", "preempted"]),
        default: 0,
        fixed: false,
        help: "only tasks that went to sleep, or only runnable ones",
    };
    let max = Param {
        name: "max",
        kind: ParamKind::Duration,
        default: 0,
        fixed: false,
        help: "longest delay to report; 0 is no limit",
    };
    params(1_000_000_000, [a, b, c, d, e, f, g, when, max])
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "offcpu",
    c_name: c"offcpu",
    help: "tasks, from switch-out to switch-in (key: the task)",
    params: &PARAMS,
    counters: &[tasks::READERS, "over_max", "early"],
    detail_words: Off::DETAIL_WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Off::from_detail(&alert.detail))),
    check,
    missing: sched::missing::<Probes>,
    create: Some(Probed::<Offcpu, _, _>::create),
};

/// See [`Kind::check`]. With a timeout there are alerts without an end.
fn check(values: &Values) -> Option<(usize, &'static str)> {
    let [max, threshold, timeout] = [MAX, common::THRESHOLD, common::TIMEOUT].map(|at| values[at]);
    let is_impossible = max != 0 && max <= threshold && timeout == 0;
    is_impossible.then_some((MAX, "no delay is above threshold and at most max"))
}

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Late, but longer than `max`: not reported.
    OverMax = 1,
    /// Late: woken before it was switched out, so the waker is not known.
    Early = 2,
}

struct Offcpu;

type Probes = Live<Offcpu, 1, WORDS>;

impl sched::Observer for Probes {
    const WAKINGS: bool = true;
    const NEW: bool = false;

    #[inline(always)]
    fn waking(&self, guard: &Guard, wakee: TaskRef<'_>) {
        let tracker = self.core.tracker();
        // A task is switched in after it was woken, so no other CPU looks for the event now, with
        // one exception: a task that was preempted on its way to sleep can be switched in at this
        // very moment. That end is missed, and the event is `replaced` when the task is switched
        // out again.
        tracker.update(guard, &tasks::key(&wakee), |event| {
            let now = Kernel::now();
            let waker =
                TaskRef::with_current(|current| tasks::actor(&current, Context::current() as u32));
            event.set_words::<WAKER, _>(&Off::woken_words(waker, now));
            if now.saturating_sub(event.start()) > tracker.threshold() && self.core.may_raise() {
                let stack = CompactStack::here(self.core.depth());
                event.set_words::<FIRST_WORDS, _>(&stack.0);
            } else {
                event.set_words::<FIRST_WORDS, _>(&CompactStack::NONE);
            }
            Verdict::Keep
        });
    }

    #[inline(always)]
    fn switched<const TIMED: bool>(&self, guard: &Guard, switch: Switch<'_>) {
        let Switch { prev, next, state } = switch;
        let mut begun = None;
        if !prev.is_idle() && !state.is_dead() {
            if tasks::may_be_wanted(&self.core, &prev) {
                begun = self.begin_if_wanted(guard, prev, state);
            } else {
                self.core.tracker().filtered(guard);
            }
        }
        self.core.tracker().event_out_if_known(
            guard,
            &tasks::key(&next),
            // The same moment: the clock is not read twice.
            || begun.unwrap_or_else(Kernel::now),
            |_| true,
            |late| self.report(guard, late, next),
        );
    }
}

impl Probes {
    /// Whether `when` accepts tasks in this state.
    #[inline(always)]
    fn is_asked_for(&self, state: State) -> bool {
        match self.core.value(WHEN) {
            BLOCKED => !state.is_runnable(),
            PREEMPTED => state.is_runnable(),
            _ => true,
        }
    }

    /// Returns when it began, if it did.
    ///
    /// Not inlined: the registers that this needs should not be saved on every switch.
    #[inline(never)]
    fn begin_if_wanted(&self, guard: &Guard, prev: TaskRef<'_>, state: State) -> Option<u64> {
        let tracker = self.core.tracker();
        let cpu = Kernel::cpu(guard) as u32;
        if !self.is_asked_for(state) || !tasks::is_wanted(&self.core, &prev, cpu) {
            tracker.filtered(guard);
            return None;
        }
        let off = Off {
            owner: tasks::owner(&prev),
            place: tasks::place(&prev, cpu),
            state,
            ..Off::default()
        };
        let key = tasks::key(&prev);
        let now = Kernel::now();
        tracker.event_in_unique(guard, &key, now, &off.first_words());
        Some(now)
    }

    /// The late end of an event. The task is not on the CPU yet: its stack is unchanged.
    #[cold]
    fn report(&self, guard: &Guard, late: &Late<1, WORDS>, task: TaskRef<'_>) {
        let max = self.core.value(MAX);
        if max != 0 && late.delay > max {
            self.core.count_extra(guard, Extra::OverMax as usize);
            return;
        }
        let now = late.start.wrapping_add(late.delay);
        let mut off = Off::from_words(&late.data);
        if off.was_woken_early() {
            // It was runnable all the time.
            off.woken = late.start;
            self.core.count_extra(guard, Extra::Early as usize);
        }
        let details = off.details(now);
        let stack = if self.core.may_raise() {
            Stack::of_task(&task, self.core.depth())
        } else {
            Stack::EMPTY
        };
        tasks::raise(&self.core, guard, late, &details, stack.entries());
    }
}

impl probed::Probes<1, WORDS> for Offcpu {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        sched::attach(live)
    }

    const TAKES_STOCK: bool = true;

    fn take_stock(live: &Probes) {
        stock::take(&live.core, |waiting| {
            let (task, state) = (waiting.task(), waiting.state());
            if task.is_idle() || !live.is_asked_for(state) {
                return None;
            }
            let off = Off {
                owner: tasks::owner(&task),
                place: tasks::place(&task, task.cpu()),
                state,
                ..Off::default()
            };
            Some((tasks::key(&task), off.to_words()))
        });
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        Off::from_words(data).owner
    }

    fn details(core: &Core<1, WORDS>, late: &Late<1, WORDS>, now: u64) -> Option<Details> {
        tasks::reported(core, Off::from_words(&late.data).details(now))
    }

    fn show_fields(_: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, out: &SeqFile) {
        let off = Off::from_words(&event.data);
        seq_print!(out, "{} {}", off.owner, off.named());
    }
}
