// SPDX-License-Identifier: GPL-2.0

//! `tree`: the wake chain from an interrupt or a timer to the task that runs because of it.
//!
//! ```text
//!   interrupt, timer     handler     softirq     thread        task woken     switched in
//!   ------|----------------|-----------|-----------|---------------|--------------|--------->
//!         |<----------------------------- delay --------------------------------->|
//!   origin                         steps                                         end
//! ```
//!
//! One interrupt wakes tasks and raises softirqs, which wake further tasks: a tree. Each waking and
//! each raise is a branch. Only the tips of branches are kept, each with the chain from its origin:
//!
//! - the current activity of a CPU, and the softirqs that it has raised, in per-CPU words
//!   (`percpu`);
//! - a task that was woken on such a chain, or runs on one, as an event of the engine whose key is
//!   the task's address: a task has at most one tip, or two while one is in doubt (`tips`,
//!   `wakings`, `switches`, `doubts`);
//! - a work item that was queued on such a chain, and a function that is queued for another CPU, by
//!   their addresses (`deferred`).
//!
//! The chain moves with the tip; a branch copies the chain. A chain becomes text only when it is
//! read. Its steps add up exactly to the delay (`chain`).
//!
//! Kernel threads are hops: the chain continues through a kernel thread. The chain ends with the
//! first user-space task, the *target*, to which the filter applies; with `kthreads=1`, a kernel
//! thread may be the target, too. A tip that reaches no target ends with the work of its thread,
//! and is counted as `gone`. With `end=work`, the target's chain continues under a cookie, from
//! `begin` to `done` (`work`).
//!
//! # Contexts
//!
//! See sys/causes.rs and sys/sched.rs.

pub(super) mod chain;
mod deferred;
mod doubts;
mod leaving;
mod percpu;
mod probes;
mod show;
mod switches;
mod tips;
mod totals;
mod wakings;
mod work;

use self::{
    chain::{task, Chain, Counts, Look, Origin, State, Words, COUNTS, NOTES, PLACE},
    percpu::Cpus,
};
use super::{
    declare::parameters,
    tasks::{self, Guard}, //
};
use crate::{
    alert::record::{actor::Place, Owner, DETAIL, OWN_TAIL},
    control::{
        names::{is_listed, is_named},
        Kind as ParamKind,
        ALL, //
    },
    engine::{event::EventCopy, freelist::MAX_CELLS, Late},
    instance::{
        kind::{Kind, Labelling, Tail, RAISED_ELSEWHERE},
        labels::{self, Rules},
        probed::{self, Live, Own, Probed},
        work::Work,
        Core,
        Details,
        Second,
        Table,
        Values, //
    },
    record::{FieldInfo, How, Record, Shown},
    sys::{
        assumptions::{self, QUEUED, THROTTLE_WORK, TIMER_BASE, WAKING_LOCK},
        causes::{self, VECTORS},
        tracepoint::Attachment, //
    },
};
use kernel::{prelude::*, seq_file::SeqFile, seq_print, sync::Arc};
use percpu::{Choice, Since, Timers, Timing};

const BY: usize = PARAM_INTERFERENCE + 1;

/// The values of `end`.
const SWITCH: u64 = 0;
const USER: u64 = 1;
const BLOCKED: u64 = 2;
const WORK: u64 = 3;

/// The names of origins, with their numbers in [`Origin`].
const ORIGINS: [(&str, u16); 5] = [
    ("irq", Origin::Irq as u16),
    ("vector", Origin::Vector as u16),
    ("timer", Origin::Timer as u16),
    ("work", Origin::Work as u16),
    ("wheel", Origin::Wheel as u16),
];

/// The values of `from`.
const DUE: u64 = 0;
const LATEST: u64 = 1;

/// The hops that need further tracepoints.
const HOP_NAMES: [(&str, u16); 3] = [("work", WORKS), ("call", CALLS), ("wheel", WHEEL)];
const WORKS: u16 = 1;
const CALLS: u16 = 2;
const WHEEL: u16 = 3;

/// The values of `vec`: `all`, and the local interrupts.
const VECTOR_NAMES: [&str; VECTORS.len() + 1] = {
    let mut names = ["all"; VECTORS.len() + 1];
    let mut at = 0;
    while at < VECTORS.len() {
        names[at + 1] = VECTORS[at];
        at += 1;
    }
    names
};

/// The values of `by`.
const LABELS: &[&str] = {
    const FIELDS: &[FieldInfo] = show::Label::FIELDS;
    const NAMES: [&str; Rules::ALL.count(FIELDS)] = Rules::ALL.names(FIELDS);
    &NAMES
};

parameters! {
    5_000_000, &tasks::filter(false), LABELS;
    end: ParamKind::Word(&["switch", "user", "blocked", "work"]) => SWITCH,
        "end of a chain: switch-in, return to user space, next wait, or work done", fixed;
    origin: ParamKind::Names(&ORIGINS) => 0, "only chains with one of these origins";
    irq: ParamKind::Id { max: i32::MAX as u64 } => ALL,
        "among device interrupts, only this line of /proc/interrupts";
    vec: ParamKind::Word(&VECTOR_NAMES) => 0, "among local interrupts, only this one";
    from: ParamKind::Word(&["softexpires", "expires", "vector"]) => DUE,
        "start of a timer's chain: its soft expiry, its hard expiry, or its interrupt";
    prio: ParamKind::Id { max: 139 } => ALL,
        "only targets of this kernel priority or a more urgent one";
    work_events: ParamKind::Count { min: 1, max: MAX_CELLS as u64 } => 1024,
        "with end=work: units of work that can be in flight at once", fixed;
    timer: ParamKind::FunctionOrAll => 0, "among timers, only those with this function", fixed;
    hops: ParamKind::Names(&HOP_NAMES) => 0,
        "further hops to follow: work items, calls to other CPUs, wheel timers", fixed;
    interference: ParamKind::Switch => 0,
        "split each wait for a CPU into interrupts, softirqs and other tasks", fixed;
}

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "tree",
    c_name: c"tree",
    help: "wake chains from an interrupt or timer to user space (key: the woken task)",
    params: &PARAMS,
    counters: &[
        tasks::READERS,
        "merged",
        "stale",
        "awake",
        "shortened",
        "unserved",
        "endless",
    ],
    no_user_stack: RAISED_ELSEWHERE,
    keeps_user_stack: false,
    detail_words: <show::Detail as Record>::WORDS,
    tail: Some(Tail {
        of: show::steps_of,
        len: show::words_of,
        show: show::chain,
    }),
    labels: Some(Labelling {
        source: |by| labels::source(&Rules::ALL, by, show::label, owner),
        show: |by, label, f| labels::show::<show::Label>(&Rules::ALL, by, label, f),
    }),
    detail: <show::Detail as Record>::print,
    check,
    missing: || {
        causes::missing::<Probes>()
            .or_else(|| assumptions::missing(&[&QUEUED, &WAKING_LOCK, &THROTTLE_WORK, &TIMER_BASE]))
    },
    lacks: if causes::HAS_LOCAL {
        None
    } else {
        Some("local interrupts (origin=vector) and NMIs, which have tracepoints on x86 only")
    },
    create: Some(Probed::<Tree, _, _, _>::create),
};

const _: () = assert!(chain::STEPS <= OWN_TAIL && chain::SPLIT < DETAIL);

/// The tracker's own counters, after `readers`.
#[derive(Clone, Copy)]
enum Extra {
    /// Further causes of a wakeup or raise that was already in flight.
    Merged = 1,
    /// Wakings, raises, work items or calls in an interrupt that has no tracepoint, if the last
    /// handler seen has already returned (`CpuState::is_stale`).
    Stale = 2,
    /// Wakings of tasks that turned out to be awake; also in `gone`.
    Awake = 3,
    /// Late chains that lack steps for want of room, if their task may be reported. Counted even if
    /// the alert is lost.
    Shortened = 4,
    /// Softirqs that were not followed: too many at once on a CPU.
    Unserved = 5,
    /// Chains of threads that repeatedly sleep in the middle of their work; also in `gone`.
    Endless = 6,
}

/// Checks the values together, see [`Kind::check`].
fn check(values: &Values) -> Option<(usize, &'static str)> {
    if values[BY] != 0 && values[PARAM_END] == u128::from(WORK) {
        let why = "expected none, since the delays of work (end=work) have no labels";
        return Some((BY, why));
    }
    let halves = |param: usize| [values[param] as u64, (values[param] >> 64) as u64];
    let is_origin = |origin: Origin| is_named(halves(PARAM_ORIGIN), origin as u16);
    if is_origin(Origin::Wheel) && !follows(halves(PARAM_HOPS), WHEEL) {
        return Some((PARAM_ORIGIN, "wheel timers are not among hops"));
    }
    if !causes::HAS_LOCAL && is_origin(Origin::Vector) {
        let why = "expected no vector: local interrupts have tracepoints on x86 only";
        return Some((PARAM_ORIGIN, why));
    }
    if !causes::HAS_LOCAL && values[PARAM_VEC] != 0 {
        let why = "expected all: local interrupts have tracepoints on x86 only";
        return Some((PARAM_VEC, why));
    }
    (is_origin(Origin::Work) && values[PARAM_END] != u128::from(WORK))
        .then_some((PARAM_ORIGIN, "work is an origin only with end=work"))
}

/// Whether a value of `hops` includes this hop.
fn follows(hops: [u64; 2], hop: u16) -> bool {
    hops == [0; 2] || is_listed(hops, hop)
}

struct Tree;

type Probes = Live<Tree, 1, DATA, Cpus>;

/// The data of an event: the task, the chain to it, and notes on the chain.
const DATA: usize = NOTES_AT + NOTES;
const CHAIN_AT: usize = Owner::WORDS;
const NOTES_AT: usize = CHAIN_AT + chain::WORDS;

type Data = [u64; DATA];

/// The chain in an event's data.
struct InData<'a>(&'a mut Data);

impl Look for InData<'_> {
    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self.0[CHAIN_AT + at]
    }
}

impl Words for InData<'_> {
    #[inline(always)]
    fn set(&mut self, at: usize, word: u64) {
        self.0[CHAIN_AT + at] = word;
    }
}

fn owner(data: &Data) -> Owner {
    let [o0, o1, o2, ..] = *data;
    Owner::from_words([o0, o1, o2])
}

/// Returns the chain in an event's data, with its notes converted to steps.
fn settled(data: &Data) -> Chain {
    let [_, _, _, rest @ ..] = *data;
    let (chain, notes) = rest.split_at(chain::WORDS);
    let (mut chain, mut notes): (Chain, [u64; NOTES]) = (
        core::array::from_fn(|at| chain[at]),
        core::array::from_fn(|at| notes[at]),
    );
    let prio = Place::from_word(chain.get(PLACE)).prio;
    let subject = task(owner(data).tid, prio.into());
    chain::settle(&mut chain, &mut notes, subject);
    chain
}

/// Returns the data with another chain, and no notes.
fn with_chain(data: &Data, chain: &Chain) -> Data {
    let mut data = *data;
    data[CHAIN_AT..NOTES_AT].copy_from_slice(chain);
    data[NOTES_AT..].fill(0);
    data
}

/// Completes a copy of a timed-out event, see [`probed::Probes::settle`].
fn settle(late: &mut Late<1, DATA>) {
    let chain = settled(&late.data);
    late.data = with_chain(&late.data, &chain);
    // The clock was read before the copy was made, and on another CPU. So the chain in the copy may
    // already be longer than the delay.
    let so_far = chain.last().saturating_sub(late.start);
    late.delay = late.delay.max(so_far);
}

impl Own for Cpus {
    fn new(values: &Values) -> Result<Self> {
        Cpus::new(values)
    }

    fn clear(&self) {
        if let Some(jobs) = &self.jobs {
            jobs.clear();
        }
    }

    fn second(&self) -> Option<&dyn Second> {
        self.jobs.as_deref().map(|jobs| jobs as &dyn Second)
    }

    fn cpu_gone(&self, cpu: usize) {
        Cpus::cpu_gone(self, cpu);
    }

    fn table(&self) -> Option<(&'static CStr, Arc<dyn Table>)> {
        Some((c"steps", self.totals.clone()))
    }
}

impl Choice for Probes {
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.own.is_each_timer_wanted()
            && self.core.are_default(1 << PARAM_ORIGIN | 1 << PARAM_FROM)
    }

    #[inline(never)]
    fn timers(&self, timing: Timing, function: u64) -> Timers {
        let halves = self.core.halves(PARAM_ORIGIN);
        let is_origin = match timing {
            Timing::Exact => !self.is_origin_chosen() || is_listed(halves, Origin::Timer as u16),
            // Wheel timers are late by design, so they are origins only on request.
            Timing::Tick => is_named(halves, Origin::Wheel as u16),
            Timing::Any => false,
        };
        let since = match self.core.value(PARAM_FROM) {
            _ if !is_origin => Since::NoOrigin,
            DUE => Since::Due,
            LATEST => Since::Latest,
            _ => Since::Vector,
        };
        let is_refused = !self.own.is_timer_wanted(function);
        Timers { since, is_refused }
    }
}

impl Probes {
    fn is_origin_chosen(&self) -> bool {
        self.core.halves(PARAM_ORIGIN) != [0; 2]
    }

    /// The parameters that select origins, a bit each.
    const ORIGINS: u64 = 1 << PARAM_ORIGIN | 1 << PARAM_IRQ | 1 << PARAM_VEC;

    /// Whether a chain with this origin is wanted.
    #[inline(always)]
    fn is_origin_wanted(&self, chain: &impl Look) -> bool {
        if self.core.are_default(Self::ORIGINS) {
            return !chain.counts().is_refused();
        }
        let origin = chain.counts().origin();
        if self.is_origin_chosen() && !is_listed(self.core.halves(PARAM_ORIGIN), origin as u16) {
            return false;
        }
        let subject = chain.first_subject();
        match origin {
            Origin::Irq => [ALL, subject].contains(&self.core.value(PARAM_IRQ)),
            Origin::Vector => [0, subject + 1].contains(&self.core.value(PARAM_VEC)),
            Origin::Timer | Origin::Wheel => !chain.counts().is_refused(),
            _ => true,
        }
    }

    /// Increments one of the tracker's own counters, for rare events.
    #[cold]
    fn count(&self, guard: &Guard, which: Extra) {
        self.core.count_extra(guard, which as usize);
    }
}

impl probed::Probes<1, DATA, Cpus> for Tree {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        live.own.reset();
        if let Some(function) = live.core.text(PARAM_TIMER) {
            live.own.want_timers(function)?;
        }
        causes::attach(live)
    }

    fn owner(data: &Data) -> Owner {
        owner(data)
    }

    fn can_time_out(data: &Data) -> bool {
        let counts = Counts(data[CHAIN_AT + COUNTS]);
        !counts.has_begun()
            && counts.state() != State::Doubted
            && !leaving::may_be_in_user_space(data)
    }

    fn settle(late: &mut Late<1, DATA>) {
        settle(late);
    }

    fn expire_second(live: &Probes) -> Option<u64> {
        let next = [live.expire_work(), live.drop_cancelled()];
        next.into_iter().flatten().min()
    }

    fn each_pending(live: &Probes, see: &mut dyn FnMut(EventCopy<1, DATA>) -> Result) -> Result {
        live.core.engine().each_pending(&mut *see)?;
        live.own.jobs.as_ref().map_or(Ok(()), |jobs| jobs.each(see))
    }

    fn work(live: &Arc<Probes>) -> Option<Arc<dyn Work>> {
        let work: Arc<dyn Work> = live.clone();
        live.own.jobs.is_some().then_some(work)
    }

    fn details(core: &Core<1, DATA>, late: &Late<1, DATA>, _: u64) -> Option<Details> {
        if deferred::is_cancelled(&late.key, &late.data) {
            return None;
        }
        tasks::reported(core, show::details(&late.data, show::End::None))
    }

    fn show_fields(_: &Core<1, DATA>, event: &EventCopy<1, DATA>, _: bool, out: &SeqFile) {
        let data = with_chain(&event.data, &settled(&event.data));
        let details = show::details(&data, show::End::None);
        let chain = show::Chain {
            words: &details.words,
            steps: show::steps_of(&data),
            rest: None,
        };
        let detail = show::Detail::unpack(&details.words);
        let (owner, detail) = (details.owner, Shown(&detail, How::of_pending(false)));
        seq_print!(out, "{owner}{detail}{chain}");
    }
}
