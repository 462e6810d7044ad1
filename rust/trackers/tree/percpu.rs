// SPDX-License-Identifier: GPL-2.0

//! The current activity of each CPU: the interrupt, the timer and the softirqs that a waking may
//! come from, and the chains of raised softirqs.
//!
//! ```text
//!   CpuState   one hard interrupt, and the timer in it       written with interrupts off
//!              the running task, if it has a tip; when the threads of softirqs were woken
//!   Served     running softirqs: by their task, since on PREEMPT_RT one may preempt another
//!   raised     for each vector: whether it is raised on a known chain, and where that chain is
//!   Chains     one belongs to each vector, and one to each softirq that may run: the chain to it
//!   Spending   the CPU's time for interrupts, for softirqs, and idle: the words of CpuState
//!              that other CPUs read, see spent.rs
//!   Logs       tasks, interrupts and softirqs that had the CPU while a task waited for it: only
//!              with interference=1, see logs.rs
//!   calls      the chain to the running function that another CPU has requested, if known
//!   Totals     how long the steps of ended chains took (totals.rs)
//! ```
//!
//! Nothing is looked up by hashing: an interrupt that wakes no task costs a few stores.
//!
//! All of these, except `Spending`, `Totals`, and the number of waits in `Logs`, belong to one CPU.
//! A probe that accesses them holds the guard, so only interrupts of this CPU come in between;
//! relaxed atomics are enough for that, since a CPU sees its own stores in their order. When a
//! softirq begins to run, it takes the chain of its vector, which gets the previous chain of the
//! softirq in exchange: a hard interrupt that raises the vector again writes there.

use super::{
    chain::{self, Kind, Look, Spent, Step, Words, WORDS},
    totals::Totals,
    work::Jobs,
};
use crate::{
    engine::platform::Platform,
    instance::Values,
    sys::{
        atomic::{Atomic, Relaxed},
        causes::SOFTIRQS,
        fprobe,
        irq::NAME_WORDS,
        memory::PerCpu,
        platform::Kernel,
        timer::{clock_offsets, HighRes, Timer}, //
    },
};
use kernel::{prelude::*, sync::Arc};

mod handlers;
mod logs;
mod spent;
mod state;
mod timers;

pub(super) use logs::{Interrupt, Logs, Timed};
pub(super) use state::CpuState;
pub(super) use timers::{Choice, Since, Timers, Timing};

use logs::{AllSums, Head};
use timers::{Base, Expired};

pub(super) type Guard = <Kernel as Platform>::Guard;

type Word = Atomic<u64>;

fn word() -> Word {
    Atomic::new(0)
}

/// Maximum number of functions of one name: several static functions may have the same name.
const FUNCTIONS: usize = 8;

/// A chain in per-CPU memory: its start, and its words.
type Stored = [Word; 1 + WORDS];

/// Returns the words of a chain in per-CPU memory.
#[inline(always)]
fn chain_of(stored: &Stored) -> Kept<'_> {
    let [_, chain @ ..] = stored;
    Kept(chain)
}

/// Bits of a `raised` word: TAKEN, a chain is recorded; UNWANTED, the filter rejects that chain.
/// Above them is the position of the chain.
const TAKEN: u64 = 1;
const UNWANTED: u64 = 2;
const CHAIN_SHIFT: u32 = 2;

/// Maximum number of running softirqs of a CPU that are followed, each preempted by the next.
const SERVING: usize = 4;
/// The words of a running softirq: its task, its timer, the position of its chain, its vector.
const SERVED_TIMER: usize = 1;
const SERVED_FUNCTION: usize = SERVED_TIMER + 2;
const SERVED_CHAIN: usize = SERVED_TIMER + 5;
const SERVED_VECTOR: usize = SERVED_CHAIN + 1;
const SERVED: usize = SERVED_VECTOR + 1;

type Served = [Word; SERVED];

/// Number of chains of a CPU: one for each vector, and one for each softirq that may run; rounded
/// up to a power of two, so that a position needs no check.
const CHAINS: usize = (SOFTIRQS + SERVING).next_power_of_two();

/// The chains of a CPU: no two vectors or running softirqs ever share one.
type Chains = [Stored; CHAINS];

/// A chain by its position.
#[inline(always)]
fn stored_at(chains: &Chains, at: u64) -> &Stored {
    &chains[at as usize % CHAINS]
}

/// The words of a chain in per-CPU memory.
pub(super) struct Kept<'a>(&'a [Word; WORDS]);

impl Look for Kept<'_> {
    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self.0.get(at).map_or(0, |word| word.load(Relaxed))
    }
}

impl Words for Kept<'_> {
    #[inline(always)]
    fn set(&mut self, at: usize, value: u64) {
        if let Some(word) = self.0.get(at) {
            word.store(value, Relaxed);
        }
    }
}

/// The per-CPU state of an instance. See the head of this file.
pub(super) struct Cpus {
    states: PerCpu<CpuState>,
    raised: PerCpu<[Word; SOFTIRQS]>,
    chains: PerCpu<Chains>,
    served: PerCpu<[Served; SERVING]>,
    calls: PerCpu<Stored>,
    /// Number of tips in doubt, on all CPUs (doubts.rs).
    pub(super) doubts: Word,
    /// The addresses of the functions of wanted timers; all timers are wanted if the first is 0.
    wanted: [Word; FUNCTIONS],
    pub(super) totals: Arc<Totals>,
    /// The tasks, interrupts and softirqs that had each CPU, if the instance keeps them.
    logs: Option<(PerCpu<Head>, PerCpu<AllSums>)>,
    /// The units of work that programs mark, with `end=work`. They belong to no CPU.
    pub(super) jobs: Option<KBox<Jobs>>,
}

/// Clears the raised state. The positions of the chains stay, even if the CPU exchanges them at
/// this moment.
fn forget_raised(raised: &[Word; SOFTIRQS]) {
    for word in raised {
        let state = word.load(Relaxed);
        // Relaxed: the exchange orders no other access. If it fails, the CPU is back.
        _ = word.cmpxchg(state, state & !(TAKEN | UNWANTED), Relaxed);
    }
}

fn forget_served(served: &[Served; SERVING]) {
    for served in served {
        served[0].store(0, Relaxed);
    }
}

impl Cpus {
    /// Creates the state. May sleep; fails with `ENOMEM`.
    pub(super) fn new(values: &Values) -> Result<Self> {
        Ok(Self {
            states: PerCpu::try_new::<Kernel>(|_| Ok(CpuState::new()))?,
            raised: PerCpu::try_new::<Kernel>(|_| {
                Ok(core::array::from_fn(|vector| {
                    Atomic::new((vector as u64) << CHAIN_SHIFT)
                }))
            })?,
            chains: PerCpu::zeroed::<Kernel>()?,
            served: PerCpu::try_new::<Kernel>(|_| {
                Ok(core::array::from_fn(|nth| {
                    let served: Served = core::array::from_fn(|_| word());
                    served[SERVED_CHAIN].store((SOFTIRQS + nth) as u64, Relaxed);
                    served
                }))
            })?,
            calls: PerCpu::zeroed::<Kernel>()?,
            doubts: word(),
            wanted: core::array::from_fn(|_| word()),
            totals: Arc::new(Totals::new()?, GFP_KERNEL)?,
            logs: match values[super::PARAM_INTERFERENCE] {
                0 => None,
                _ => Some((
                    PerCpu::try_new::<Kernel>(|_| Ok(Head::new()))?,
                    PerCpu::zeroed::<Kernel>()?,
                )),
            },
            jobs: Jobs::new(values)?,
        })
    }

    /// Restricts the timers to those with a function of this name, while no probe is running. May
    /// sleep. Fails with `ENOENT` if there is no such function, or `ENOSPC` if there are too many.
    pub(super) fn want_timers(&self, name: &CStr) -> Result {
        let mut found = [0; FUNCTIONS + 1];
        if fprobe::find(name, &mut found)? > FUNCTIONS {
            return Err(ENOSPC);
        }
        for (word, address) in self.wanted.iter().zip(found) {
            word.store(address, Relaxed);
        }
        Ok(())
    }

    /// Whether timers are wanted whatever their function is.
    #[inline(always)]
    pub(super) fn is_each_timer_wanted(&self) -> bool {
        self.wanted[0].load(Relaxed) == 0
    }

    #[inline(always)]
    pub(super) fn is_timer_wanted(&self, function: u64) -> bool {
        let mut wanted = self.wanted.iter().map(|word| word.load(Relaxed));
        match wanted.next() {
            Some(0) | None => true,
            Some(first) => first == function || wanted.any(|one| one == function),
        }
    }

    /// Clears everything except the totals, the wanted timers and the units of work, while no probe
    /// is running.
    pub(super) fn reset(&self) {
        let offsets = clock_offsets();
        self.doubts.store(0, Relaxed);
        self.states.iter().for_each(|state| state.reset(offsets));
        if let Some((heads, _)) = &self.logs {
            heads.iter().for_each(|head| head.reset(Kernel::now()));
        }
        self.raised.iter().for_each(forget_raised);
        self.served.iter().for_each(forget_served);
    }

    /// Clears the raised softirqs of an offline CPU: the kernel has moved or dropped them. If the
    /// CPU comes back at this moment, softirqs that it raises meanwhile may be cleared, too.
    pub(super) fn cpu_gone(&self, cpu: usize) {
        if let Some(jobs) = &self.jobs {
            jobs.cpu_gone(cpu);
        }
        self.raised.get(cpu).map(forget_raised);
        self.served.get(cpu).map(forget_served);
    }

    #[inline(always)]
    pub(super) fn cpu(&self, guard: &Guard) -> &CpuState {
        self.states.this::<Kernel>(guard)
    }

    /// Notes that a task waits for a CPU from `now` on. Returns the CPU's totals at that time, if
    /// they are kept.
    #[inline(always)]
    pub(super) fn begin_wait(&self, cpu: u32, now: u64) -> Option<Spent> {
        let (heads, _) = self.logs.as_ref()?;
        heads.get(cpu as usize)?.begin_wait();
        Some(self.states.get(cpu as usize)?.spent(now))
    }

    /// Returns the logs of this CPU, if they are kept.
    #[inline(always)]
    pub(super) fn logs(&self, guard: &Guard) -> Option<Logs<'_>> {
        let (heads, sums) = self.logs.as_ref()?;
        Some(Logs {
            head: heads.this::<Kernel>(guard),
            sums: sums.this::<Kernel>(guard),
        })
    }

    /// Returns this CPU and its logs, if they are kept.
    #[inline(always)]
    pub(super) fn timed(&self, guard: &Guard) -> Option<Timed<'_>> {
        let logs = self.logs(guard)?;
        Some(Timed::new(self.cpu(guard), logs))
    }

    /// Whether the times of the CPUs are kept.
    pub(super) fn keeps_times(&self) -> bool {
        self.logs.is_some()
    }

    /// Returns the softirq that a task serves and is about to resume. Only on PREEMPT_RT can the
    /// task have been switched out meanwhile.
    #[inline(always)]
    pub(super) fn served(&self, guard: &Guard, task: u64) -> Option<u64> {
        if !cfg!(CONFIG_PREEMPT_RT) {
            return None;
        }
        let served = self.served_by(guard, task)?;
        Some(served[SERVED_VECTOR].load(Relaxed))
    }

    /// Whether a softirq is raised already, on a known chain.
    #[inline(always)]
    pub(super) fn is_raised(&self, guard: &Guard, vector: usize) -> bool {
        let raised = self.raised.this::<Kernel>(guard).get(vector);
        raised.is_some_and(|raised| raised.load(Relaxed) & TAKEN != 0)
    }

    /// Notes that a softirq is raised on the chain that `make` makes; `make` returns the start of
    /// the chain, and whether it is wanted. Returns `false` if the softirq was already raised on a
    /// known chain: that chain stays if it is wanted; if not, the new one replaces it. Interrupts
    /// are off.
    pub(super) fn raise(
        &self,
        guard: &Guard,
        vector: usize,
        make: impl FnOnce(&mut Kept<'_>) -> Option<(u64, bool)>,
    ) -> bool {
        let (raised, chains) = (
            self.raised.this::<Kernel>(guard),
            self.chains.this::<Kernel>(guard),
        );
        let Some(raised) = raised.get(vector) else {
            return true;
        };
        let state = raised.load(Relaxed);
        let is_first = state & TAKEN == 0;
        if !is_first && state & UNWANTED == 0 {
            return false;
        }
        let at = state >> CHAIN_SHIFT;
        let stored = stored_at(chains, at);
        let taken = match make(&mut chain_of(stored)) {
            Some((start, is_wanted)) => {
                stored[0].store(start, Relaxed);
                TAKEN | if is_wanted { 0 } else { UNWANTED }
            }
            // An unwanted chain is dropped even if no new chain replaces it.
            None => 0,
        };
        // Interrupts are off, so `serve` takes the chain before or after all of these stores.
        raised.store(at << CHAIN_SHIFT | taken, Relaxed);
        is_first
    }

    /// Notes that the current task begins to serve a softirq; `now` is called if the softirq is on
    /// a known chain. Returns `false` if there is no room for the note.
    pub(super) fn serve(
        &self,
        guard: &Guard,
        vector: usize,
        task: u64,
        cpu: u32,
        now: impl FnOnce() -> u64,
    ) -> bool {
        let Some(raised) = self.raised.this::<Kernel>(guard).get(vector) else {
            return true;
        };
        let mut all = self.served.this::<Kernel>(guard).iter();
        let served = all.find(|served| [0, task].contains(&served[0].load(Relaxed)));
        let state = raised.load(Relaxed);
        let is_taken = state & TAKEN != 0;
        let Some(served) = served else {
            // If no chain is recorded yet, an interrupt may record one at this moment.
            if is_taken {
                raised.store(state & !(TAKEN | UNWANTED), Relaxed);
            }
            return false;
        };
        served[SERVED_FUNCTION].store(0, Relaxed);
        served[SERVED_VECTOR].store(vector as u64, Relaxed);
        let mut at = served[SERVED_CHAIN].load(Relaxed);
        if is_taken {
            // From this store on, an interrupt that raises the softirq again writes to the other
            // chain. Before it, an interrupt may have replaced an unwanted chain.
            raised.store(at << CHAIN_SHIFT, Relaxed);
            at = state >> CHAIN_SHIFT;
            served[SERVED_CHAIN].store(at, Relaxed);
        }
        let stored = stored_at(self.chains.this::<Kernel>(guard), at);
        if is_taken {
            let (now, mut chain) = (now(), chain_of(stored));
            let (kind, subject) = (Kind::Softirq, vector as u64);
            let step = Step { kind, cpu, subject };
            self.cpu(guard).append_served(&mut chain, task, (now, step));
        } else {
            stored[0].store(0, Relaxed);
        }
        served[0].store(task, Relaxed);
        true
    }

    #[inline(always)]
    fn served_by(&self, guard: &Guard, task: u64) -> Option<&Served> {
        let mut all = self.served.this::<Kernel>(guard).iter();
        all.find(|served| served[0].load(Relaxed) == task)
    }

    /// Whether the current task serves no softirq, or one that is on no known chain and runs no
    /// function of a timer.
    #[inline(always)]
    pub(super) fn is_serving_off_chains(&self, guard: &Guard, task: u64) -> bool {
        let Some(served) = self.served_by(guard, task) else {
            return true;
        };
        let chains = self.chains.this::<Kernel>(guard);
        let stored = stored_at(chains, served[SERVED_CHAIN].load(Relaxed));
        stored[0].load(Relaxed) == 0 && served[SERVED_FUNCTION].load(Relaxed) == 0
    }

    /// Notes that the current task has finished serving a softirq.
    pub(super) fn done(&self, guard: &Guard, task: u64) {
        if let Some(served) = self.served_by(guard, task) {
            served[0].store(0, Relaxed);
        }
    }

    /// Notes that the function of a timer is called in a softirq that the current task serves.
    /// `since` is when the timer's clock was last set, or 0: an earlier due time counts as `since`.
    #[inline(always)]
    pub(super) fn enter_soft_timer(
        &self,
        guard: &Guard,
        task: u64,
        timer: &Timer,
        timing: Timing,
        since: u64,
        now: u64,
    ) {
        let Some(served) = self.served_by(guard, task) else {
            return;
        };
        let (due, latest) = (timer.due.max(since), timer.latest.max(since));
        let words = [due, latest, timer.function, now, timing as u64];
        for (at, value) in words.into_iter().enumerate() {
            served[SERVED_TIMER + at].store(value, Relaxed);
        }
    }

    /// Notes the call of a timer's function in a softirq of the current task, for a timer whose
    /// clock can be set.
    #[inline(never)]
    pub(super) fn enter_soft_timer_of_clock(
        &self,
        guard: &Guard,
        task: u64,
        timer: HighRes<'_>,
        now: u64,
    ) {
        let timer = timer.read();
        let since = self.cpu(guard).clock_set(&timer, now);
        self.enter_soft_timer(guard, task, &timer, Timing::Exact, since, now);
    }

    /// Notes that the function of the timer has returned.
    #[inline(always)]
    pub(super) fn leave_soft_timer(&self, guard: &Guard, task: u64) {
        if let Some(served) = self.served_by(guard, task) {
            served[SERVED_FUNCTION].store(0, Relaxed);
        }
    }

    /// Makes the chain to the softirq that the current task serves. Returns its start.
    #[inline(always)]
    pub(super) fn soft(
        &self,
        guard: &Guard,
        task: u64,
        chain: &mut impl Words,
        cpu: u32,
        choice: &impl Choice,
    ) -> Option<u64> {
        let served = self.served_by(guard, task)?;
        let stored = stored_at(
            self.chains.this::<Kernel>(guard),
            served[SERVED_CHAIN].load(Relaxed),
        );
        let start = stored[0].load(Relaxed);
        if served[SERVED_FUNCTION].load(Relaxed) != 0 {
            return Self::soft_timer(served, stored, chain, cpu, choice);
        }
        if start == 0 {
            return None;
        }
        chain.copy_from(&chain_of(stored));
        Some(start)
    }

    /// Makes the chain to the function of a timer that is running in the softirq.
    #[inline(never)]
    fn soft_timer(
        served: &Served,
        stored: &Stored,
        chain: &mut impl Words,
        cpu: u32,
        choice: &impl Choice,
    ) -> Option<u64> {
        let (start, timer) = (stored[0].load(Relaxed), expired(served));
        if start != 0 && timer.timing == Timing::Exact && choice.is_plain() {
            return Some(timer.due_on(chain, (start, &chain_of(stored)), cpu));
        }
        Self::soft_timer_in_general(served, stored, chain, cpu, choice)
    }
}

impl Cpus {
    /// Makes the chain to the function of any timer. Out of line, so that the compiler can
    /// specialise the common case in the caller.
    #[inline(never)]
    fn soft_timer_in_general(
        served: &Served,
        stored: &Stored,
        chain: &mut impl Words,
        cpu: u32,
        choice: &impl Choice,
    ) -> Option<u64> {
        let timer = expired(served);
        let timers = choice.timers(timer.timing, timer.function);
        let base = match stored[0].load(Relaxed) {
            0 => Base::Unknown,
            start => Base::Chain(start, chain_of(stored)),
        };
        timer.chain(chain, base, cpu, timers)
    }
}

/// Returns the timer whose function is running in a softirq.
#[inline(always)]
fn expired(served: &Served) -> Expired {
    let [due, latest, function, called, timing] =
        core::array::from_fn(|at| served[SERVED_TIMER + at].load(Relaxed));
    Expired {
        due,
        latest,
        function,
        called,
        timing: Timing::of(timing),
    }
}

/// The functions that other CPUs have requested.
impl Cpus {
    /// Notes the call of a requested function, on a chain that began at `start`. Interrupts are
    /// off.
    pub(super) fn enter_call(
        &self,
        guard: &Guard,
        start: u64,
        chain: &impl Look,
        function: u64,
        cpu: u32,
        now: u64,
    ) {
        let stored = self.calls.this::<Kernel>(guard);
        let mut to = chain_of(stored);
        to.copy_from(chain);
        self.cpu(guard).append_vector(&mut to, cpu);
        let (kind, subject) = (Kind::Called, function);
        to.push(now, Step { kind, cpu, subject });
        stored[0].store(start, Relaxed);
        self.cpu(guard).set_calling(true);
    }

    /// Makes the chain to the requested function that is running. Returns the start of the chain.
    pub(super) fn call(&self, guard: &Guard, chain: &mut impl Words) -> Option<u64> {
        let stored = self.calls.this::<Kernel>(guard);
        chain.copy_from(&chain_of(stored));
        Some(stored[0].load(Relaxed))
    }
}

// A chain has room for the whole name of an action.
const _: () = assert!(NAME_WORDS == chain::NAME);
