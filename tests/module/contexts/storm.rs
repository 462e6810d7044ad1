// SPDX-License-Identifier: GPL-2.0

//! Threads that use the engine without a pause, while interrupts of every kind use it too.
//!
//! ```text
//!   thread    op op op [begin ...                                        ... ] op op
//!   softirq                  \                                          /
//!   hard irq                  \ op op [end ...                    ... ] op
//!   NMI                                    \ op op op op op op op /
//! ```
//!
//! Each operation sets a per-CPU mark while it runs, so a handler knows the operation that it has
//! interrupted, and [`storm`] continues until enough handlers have interrupted an operation. A
//! handler counts only if the interrupted instruction belongs to this module. A softirq does not
//! know that instruction, so the mark alone decides. On PREEMPT_RT a softirq runs in a thread and
//! interrupts nothing.

use crate::{
    common::{cond_resched, on_cpus},
    engine::platform::Platform,
    mix::{Notes, Op},
    sys::platform::Kernel,
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint, c_void},
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

/// Maximum number of CPUs that take part.
pub(crate) const CPUS: usize = 8;

/// Number of rounds after which a thread gives up; they take minutes. If all CPUs share one CPU of
/// a busy host, an NMI arrives only once in thousands of rounds.
const ROUNDS: u64 = 200_000_000;

/// Contexts that use the engine, numbered as in `enum lt_context` of interrupts.h.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    Thread,
    Softirq,
    HardIrq,
    Nmi,
}

impl Context {
    /// All contexts.
    pub(crate) const ALL: [Context; 4] = [
        Context::Thread,
        Context::Softirq,
        Context::HardIrq,
        Context::Nmi,
    ];
}

/// Number of `Op`s, plus one for no operation.
const OPS: usize = 6;

/// Marks and counts of one CPU.
struct Cpu {
    /// The innermost [`Op`] in progress; 0 for none.
    inside: Atomic<u64>,
    /// Number of runs of each context, by the [`Op`] that it interrupted.
    met: [[Atomic<u64>; OPS]; Context::ALL.len()],
}

/// Operations that a storm has interrupted so far.
pub(crate) struct Storm {
    cpus: [Cpu; CPUS],
}

impl Storm {
    fn new() -> Self {
        let zeros = || core::array::from_fn(|_| Atomic::new(0));
        Self {
            cpus: core::array::from_fn(|_| Cpu {
                inside: Atomic::new(0),
                met: core::array::from_fn(|_| zeros()),
            }),
        }
    }

    fn interrupted(&self, context: Context, cpu: usize, ours: bool) {
        let cpu = &self.cpus[cpu];
        let known = ours || context == Context::Softirq;
        let op = if known { cpu.inside.load(Relaxed) } else { 0 };
        cpu.met[context as usize][op as usize].add(1, Relaxed);
    }

    /// Returns how often a context interrupted an operation on a CPU.
    fn met(&self, context: Context, cpu: u64) -> u64 {
        let met = &self.cpus[cpu as usize].met[context as usize];
        met[1..].iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Returns how often a context interrupted this operation, on all CPUs.
    fn met_op(&self, context: Context, op: usize) -> u64 {
        let of = |cpu: &Cpu| cpu.met[context as usize][op].load(Relaxed);
        self.cpus.iter().map(of).sum()
    }

    fn print(&self, name: &str) {
        for (context, title) in Context::ALL.iter().zip(["", "softirq", "hard irq", "NMI"]) {
            if *context != Context::Thread {
                pr_info!(
                    "{name}: {title}: {} met begin, {} end, {} update, {} search, {} hold, {} nothing\n",
                    self.met_op(*context, Op::Begin as usize),
                    self.met_op(*context, Op::End as usize),
                    self.met_op(*context, Op::Update as usize),
                    self.met_op(*context, Op::Search as usize),
                    self.met_op(*context, Op::Hold as usize),
                    self.met_op(*context, 0)
                );
            }
        }
    }
}

impl Notes for Storm {
    fn within<R>(&self, op: Op, work: impl FnOnce(&<Kernel as Platform>::Guard) -> R) -> R {
        let guard = Kernel::guard();
        let inside = &self.cpus[Kernel::cpu(&guard)].inside;
        // Relaxed: only this CPU reads it, and an interrupt restores the value.
        let outer = inside.load(Relaxed);
        inside.store(op as u64, Relaxed);
        let result = work(&guard);
        inside.store(outer, Relaxed);
        result
    }
}

/// Returns the number of CPUs that take part; with fewer than two, no CPU could send an NMI.
pub(crate) fn cpus() -> u64 {
    Kernel::cpus().min(CPUS) as u64
}

/// Runs `work` repeatedly in a thread on each CPU and in each interrupt, until `wanted` NMIs and as
/// many hard interrupts have interrupted an operation on each CPU.
///
/// The inner result is an error if the interrupts themselves failed.
pub(crate) fn storm(
    name: &str,
    wanted: u64,
    work: impl Fn(&Storm, Context, u64) + Sync,
) -> Result<core::result::Result<(), &'static str>> {
    let storm = Storm::new();
    let handler = |context, cpu: u64, ours| {
        storm.interrupted(context, cpu as usize, ours);
        work(&storm, context, cpu);
    };
    let interrupts = Interrupts::new(cpus(), &handler)?;
    let enough = || {
        (0..cpus()).all(|cpu| {
            storm.met(Context::Nmi, cpu) >= wanted && storm.met(Context::HardIrq, cpu) >= wanted
        })
    };
    on_cpus(cpus(), |cpu| {
        interrupts.start();
        for round in 0..ROUNDS {
            work(&storm, Context::Thread, cpu);
            if round % 16 == 0 {
                interrupts.nmi(if cpu + 1 == cpus() { 0 } else { cpu + 1 });
            }
            if round % 1024 == 0 {
                if enough() {
                    return;
                }
                cond_resched();
            }
        }
    })?;
    interrupts.stop();
    storm.print(name);
    let (sent, came) = interrupts.counts();
    pr_info!("{name}: {sent} NMIs sent, {came} came\n");
    if sent != came {
        return Ok(Err("an NMI did not come"));
    }
    if !enough() {
        return Ok(Err("too few interrupts met the engine"));
    }
    Ok(Ok(()))
}

extern "C" {
    fn lt_interrupts_new(
        nr: c_uint,
        function: unsafe extern "C" fn(c_uint, c_uint, bool, *mut c_void),
        arg: *mut c_void,
    ) -> c_int;
    fn lt_interrupts_start();
    fn lt_interrupts_nmi(cpu: c_uint);
    fn lt_interrupts_sent(cpu: c_uint) -> u64;
    fn lt_interrupts_came(cpu: c_uint) -> u64;
    fn lt_interrupts_stop();
    fn lt_interrupts_free();
}

/// Interrupts that call a function. Dropping it stops them. Only one can exist at a time.
struct Interrupts<'a, F> {
    cpus: u64,
    handler: PhantomData<&'a F>,
}

impl<'a, F: Fn(Context, u64, bool) + Sync> Interrupts<'a, F> {
    fn new(cpus: u64, handler: &'a F) -> Result<Self> {
        /// # Safety
        ///
        /// `arg` points to an `F` that can be shared with this context, and that lives until this
        /// call returns.
        unsafe extern "C" fn call<F: Fn(Context, u64, bool) + Sync>(
            context: c_uint,
            cpu: c_uint,
            ours: bool,
            arg: *mut c_void,
        ) {
            // SAFETY: The function's contract.
            let handler = unsafe { &*arg.cast::<F>() };
            if let Some(context) = Context::ALL.get(context as usize) {
                handler(*context, u64::from(cpu), ours);
            }
        }
        let arg = core::ptr::from_ref(handler).cast_mut().cast();
        // SAFETY: `call` gets an `F`, its type parameter, which is `Sync` and outlives this value;
        // the drop of this value waits for all handlers.
        to_result(unsafe { lt_interrupts_new(cpus as c_uint, call::<F>, arg) })?;
        Ok(Self {
            cpus,
            handler: PhantomData,
        })
    }
}

impl<F> Interrupts<'_, F> {
    fn start(&self) {
        // SAFETY: The interrupts exist for as long as this value; called by a thread that is
        // bound to one of the CPUs.
        unsafe { lt_interrupts_start() };
    }

    fn nmi(&self, cpu: u64) {
        // SAFETY: The interrupts exist for as long as this value; callers name one of the CPUs.
        unsafe { lt_interrupts_nmi(cpu as c_uint) };
    }

    /// Returns the number of NMIs sent and received, on all CPUs.
    fn counts(&self) -> (u64, u64) {
        (0..self.cpus as c_uint).fold((0, 0), |(sent, came), cpu| {
            // SAFETY: The interrupts exist for as long as this value, and `cpu` is one of the CPUs.
            let (s, c) = unsafe { (lt_interrupts_sent(cpu), lt_interrupts_came(cpu)) };
            (sent + s, came + c)
        })
    }

    /// Stops the interrupts and waits for running handlers. A second call does nothing. May sleep.
    fn stop(&self) {
        // SAFETY: The interrupts exist for as long as this value; called by a task that may sleep.
        unsafe { lt_interrupts_stop() };
    }
}

impl<F> Drop for Interrupts<'_, F> {
    fn drop(&mut self) {
        self.stop();
        // SAFETY: Stopped above; no other use follows.
        unsafe { lt_interrupts_free() };
    }
}
