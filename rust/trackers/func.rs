// SPDX-License-Identifier: GPL-2.0

//! `func`: how long kernel functions take, from entry to return.
//!
//! ```text
//!   f(x)   entered                              returned
//!   depth 1   |----------------------------------->|
//!   f(y)         entered            returned
//!   depth 2         |------------------>|
//! ```
//!
//! An event starts when the instance's function is called, and ends when that call returns. The key
//! is the task and the depth: the number of the task's calls of the function that have not
//! returned, including this one. A task has one stack of calls, which includes the interrupts on
//! top of the task. So the last call to start is the first to end, and the depth distinguishes the
//! calls. The depth is found by trying values from 1 on, as usually no call is live. It is kept
//! with the return address, so the end needs no search.
//!
//! A call whose end was missed would count as an outer call forever. So an event keeps the frame of
//! its call, see sys/fprobe.rs: a call whose frame is not lower than the frame of the new call is
//! not an outer call, and is `replaced`.
//!
//! The owner is the calling task; a call from an interrupt has no owner, and is tracked if the
//! filter selects no particular task.
//!
//! A task that exits inside the function never returns: its events are dropped at
//! `sched_process_exit`, which comes before the last functions that it calls, and at
//! `sched_process_free`, which comes after. If an inner end was missed, there is an event at its
//! depth and none at the depth of an outer call that has returned. So all depths are tried, up to
//! the greatest one that the instance has seen.
//!
//! # Contexts
//!
//! The contexts of the function: any, including NMI, see sys/fprobe.rs.

use super::declare::*;
use crate::{
    instance::{probed, Values},
    record::{self, fields, InQuotes, Register, Registers},
    sys::{
        atomic::{Atomic, Relaxed},
        fprobe::{self, Call, Frame, Functions, What},
        sched,
        symbol::{FunctionName, Limit, Raw, Symbol}, //
    },
};
use kernel::{fmt, prelude::*, sync::Arc};

tracker! {
    func: "a kernel function, from entry to return (key: the task and its recursion depth)";
    key: 2;
    threshold: 10_000_000;
    tasks: true;
    own: Deepest;
    counters {
        /// Calls that fprobe could not follow.
        missed,
        /// Calls and returns in our own probes, or while our readers are woken; not tracked.
        own,
    }
    params {
        function: ParamKind::Function => 0,
            "function of the kernel or of a module; required", fixed;
    }
    keeps: [10];
    stored: function caller context depth arg ret;
    printed: function caller context depth arg ret;
    alert {
        /// The name of the function; `?` if its module was unloaded.
        function: Function at 0,
        /// Number of the task's calls of the function that have not returned, including this one.
        // In an event, the depth is in the key.
        depth: u32 at 2,
        /// The context of the CPU at the call: task, softirq, hardirq or nmi.
        context: Context at 2:32,
        /// The registers of the first three arguments, A,B,C: numbers; 16 hexadecimal digits stand
        /// for a possible kernel address.
        arg: Registers at 3 as args = |it, how| Arguments(it.arg, how.limit()),
        /// The return address, like an entry of stack.
        caller: Caller at 1,
        /// The register of the result, like args.
        // In an event, the frame.
        ret: Register at 6 if end = |it, how| Raw::new(it.ret, how.limit()),
    }
    attach: Attached = Attached::new,
        || fprobe::missing().or_else(|| tracepoint::missing(sched::exit_probes::<Probes>()));
    impl {
        const NO_USER_STACK: &str = NOT_RECORDED;

        fn collect_missed(attached: &mut Attached) {
            attached.functions.collect_missed();
        }
    }
}

/// The greatest depth of a call so far; 0 before the first nested call.
pub(crate) struct Deepest(Atomic<u64>);

impl Deepest {
    #[cold]
    fn note(&self, depth: u64) {
        // Relaxed: a maximum in one word, which orders nothing.
        let mut deepest = self.0.load(Relaxed);
        while depth > deepest {
            match self.0.cmpxchg(deepest, depth, Relaxed) {
                Ok(_) => return,
                Err(now) => deepest = now,
            }
        }
    }

    /// Returns a number that is not below the depth of any call of a task that exits now.
    fn bound(&self) -> u64 {
        // Relaxed: the task has noted its calls before it exits, and the word never falls.
        self.0.load(Relaxed).max(1)
    }
}

impl probed::Own for Deepest {
    fn new(_: &Values) -> Result<Self> {
        Ok(Self(Atomic::new(0)))
    }
}

/// The address of a function, printed as its name without its module.
#[derive(Clone, Copy, Default)]
pub(crate) struct Function(u64);

/// A return address.
#[derive(Clone, Copy, Default)]
pub(crate) struct Caller(u64);

fields! {
    Function, u64::BITS, |it| it.0, |bits| Function(bits), FunctionName(it.0),
        "unsigned long" "%ps" "" "(void *)X";
    Caller, u64::BITS, |it| it.0, |bits| Caller(bits), InQuotes(Symbol(it.0)),
        "unsigned long" "%pS" "" "(void *)X";
}

/// The arguments, hashed where the reader may not see them.
struct Arguments(Registers, Limit);

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a0, a1, a2] = self.0.map(|argument| Raw::new(argument, self.1));
        f.write_fmt(fmt!("{a0},{a1},{a2}"))
    }
}

impl Detail {
    fn of([_, depth]: &[u64; 2], data: &[u64; WORDS]) -> Self {
        Self {
            depth: *depth as u32,
            ret: 0,
            ..record::known(data)
        }
    }
}

#[inline(always)]
fn frame_of(data: &[u64; WORDS]) -> Frame {
    let [.., frame] = data;
    Frame(*frame)
}

/// Returns the key of a task's call at this depth.
#[inline(always)]
fn key(task: &TaskRef<'_>, depth: u64) -> [u64; 2] {
    [task.address(), depth]
}

impl Probes {
    /// Returns the depth of a new call, from the calls of this task that have not returned.
    #[inline(always)]
    fn depth(&self, guard: &Guard, task: &TaskRef<'_>, frame: Frame) -> u64 {
        let is_outer = |depth: &u64| {
            let outer = self
                .core
                .engine()
                .copy_of(guard, &key(task, *depth), |_| true);
            outer.is_some_and(|outer| frame_of(&outer.data) < frame)
        };
        (1..).find(|depth| !is_outer(depth)).unwrap_or(u64::MAX)
    }
}

impl fprobe::Observer<Tracked> for Probes {
    #[inline(always)]
    fn entered(&self, guard: &Guard, call: &Call<'_>, frame: Frame) -> Option<u64> {
        TaskRef::with_current(|task| {
            let engine = self.core.engine();
            let context = Context::current();
            let cpu = Kernel::cpu(guard) as u32;
            let Some(owner) = tasks::caller(&self.core, &task, context, cpu) else {
                engine.filtered(guard);
                return None;
            };
            let depth = self.depth(guard, &task, frame);
            if depth > 1 {
                self.own.note(depth);
            }
            let known = Detail {
                function: Function(call.function),
                context,
                arg: core::array::from_fn(|nth| call.argument(nth as u32)),
                caller: Caller(call.caller),
                ret: frame.0,
                ..Detail::default()
            };
            let (key, data) = (key(&task, depth), record::data::<WORDS>(owner, &known));
            // If the pool was full, the call has no event, but its return is traced all the same,
            // and counted as `unmatched`.
            engine.event_in_unique(guard, &key, Kernel::now(), &data);
            Some(depth)
        })
    }

    #[inline(always)]
    fn returned(&self, guard: &Guard, call: &Call<'_>, frame: Frame, depth: u64) {
        TaskRef::with_current(|task| {
            self.core.engine().event_out(
                guard,
                &key(&task, depth),
                Kernel::now,
                |event| frame_of(&event.data()) == frame,
                |late| {
                    let mut detail = Detail::of(&late.key, &late.data);
                    detail.ret = call.result();
                    let owner = record::owner(&late.data);
                    report::<_, _, _, Tracked>(&self.core, guard, late, owner, detail);
                },
            );
        });
    }

    #[cold]
    fn within_ourselves(&self, guard: &Guard) {
        self.core.count_extra(guard, COUNT_OWN);
    }

    fn missed(&self, calls: u64) {
        self.core.add_extra(&Kernel::guard(), COUNT_MISSED, calls);
    }
}

impl sched::ExitObserver for Probes {
    fn exits(&self, guard: &Guard, task: TaskRef<'_>) {
        let engine = self.core.engine();
        for depth in 1..=self.own.bound() {
            engine.event_out_if_known(guard, &key(&task, depth), 0, |_| false, |_| ());
        }
    }
}

/// Keeps the probes attached. `functions` is dropped first: after that, no event starts.
pub(crate) struct Attached {
    functions: Functions<Tracked, Probes>,
    _exits: Attachment<Probes>,
}

impl Attached {
    fn new(live: Arc<Probes>) -> Result<Self> {
        let exits = Attachment::new(live.clone(), sched::exit_probes())?;
        let name = live.core.text(PARAM_FUNCTION).ok_or(EINVAL)?;
        Ok(Self {
            functions: Functions::new(name, What::Both, live.clone())?,
            _exits: exits,
        })
    }
}
