// SPDX-License-Identifier: GPL-2.0

//! The model's machine, and how models are run.

use crate::{engine::platform::Platform, sys::memory::watched::watch};
use kernel::{
    model::{self, Change, Mutation},
    sync::atomic::{Atomic, Relaxed},
};
use loom::model::Builder;
use std::{
    panic::{catch_unwind, AssertUnwindSafe},
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc,
    },
    time::Instant,
};

/// A machine's topology, as for the tests' `Host`: the node of each CPU in four bits, CPU 0 the
/// lowest, and the nodes with memory.
pub(crate) struct Model<
    const CPUS: usize,
    const NODES: usize = 1,
    const MAP: u64 = 0,
    const MEMORY: u64 = { u64::MAX },
>;

/// A thread of the model on a CPU. No two threads of a model take or return cells on one CPU at the
/// same time.
pub(crate) struct On(pub(crate) usize);

// SAFETY: The CPU of an `On` never changes, an `On` stays in its thread, and models free nothing
// that another thread may access. The topology is constant.
#[expect(unsafe_code, reason = "an unsafe trait")]
unsafe impl<const CPUS: usize, const NODES: usize, const MAP: u64, const MEMORY: u64> Platform
    for Model<CPUS, NODES, MAP, MEMORY>
{
    type Guard = On;

    /// Used by `clear`, which models run on CPU 0, and by `expire`, which only counts.
    fn guard() -> On {
        On(0)
    }

    fn cpu(guard: &On) -> usize {
        guard.0
    }

    fn cpus() -> usize {
        CPUS
    }

    fn nodes() -> usize {
        NODES
    }

    fn node_of(cpu: usize) -> Option<usize> {
        (cpu < CPUS).then(|| (MAP >> (4 * cpu)) as usize & 0xf)
    }

    fn has_memory(node: usize) -> bool {
        MEMORY >> node & 1 != 0
    }

    fn distance(from: usize, to: usize) -> u32 {
        10 + 10 * from.abs_diff(to) as u32
    }

    fn now() -> u64 {
        0
    }

    /// Does nothing: models do not free outgrown memory.
    fn synchronize() {}

    fn queue_memory_work() {}

    fn add_local(_: &On, counter: &Atomic<u64>, n: u64) {
        counter.add(n, Relaxed);
    }
}

/// Whether an atomic is modelled. The counters (which src/memory.rs creates), the threshold and the high watermark of a
/// chunk are not modelled, since they order nothing. Of a slot of the alert ring, two of the 32 words and two words of
/// the tail are modelled; of the wakers of tasks that were woken early, the first slot without its last word. Only the
/// models that request it include the note of an exhausted pool.
pub(crate) fn selection(file: &str, nth: usize) -> bool {
    let ends = |end| file.ends_with(end);
    !ends("src/memory.rs")
        && !ends("rust/engine.rs")
        && !ends("rust/freelist/used.rs")
        && !ends("rust/freelist/exhausted.rs")
        && (!ends("rust/alert/ring.rs") || nth % 32 < 2)
        && (!ends("rust/trackers/offcpu/early.rs") || nth < 5)
}

#[test]
fn no_counter_is_modelled() {
    model::select(|file, nth| {
        assert!(!selection(file, nth), "{file}");
        false
    });
    crate::engine::stats::Stats::new::<Model<2>>().unwrap();
}

/// Maximum number of preemptions in one run; `None` for no limit.
pub(crate) type Bound = Option<usize>;

/// Runs a model; returns the number of runs, or the message with which it failed.
pub(crate) fn run(bound: Bound, body: fn()) -> Result<u64, String> {
    model::select(selection);
    // Memory is watched only in the runs of the models that request it.
    watch(false);
    let mut builder = Builder::new();
    builder.max_branches = 20_000;
    builder.preemption_bound = bound;
    let runs = Arc::new(AtomicU64::new(0));
    let inside = runs.clone();
    let result = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            inside.fetch_add(1, Ordering::Relaxed);
            model::begin();
            body();
        });
    }));
    match result {
        Ok(()) => Ok(runs.load(Ordering::Relaxed)),
        Err(payload) => Err(payload
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()))
            .unwrap_or_default()),
    }
}

/// Returns the bound of a model, or `LOOM_MAX_PREEMPTIONS` if that is lower.
fn within(bound: Bound) -> Bound {
    let of_all = Builder::new().preemption_bound;
    bound.into_iter().chain(of_all).min()
}

/// Checks that a property holds.
pub(crate) fn holds(name: &str, bound: Bound, body: fn()) {
    model::mutate(&[]);
    let start = Instant::now();
    match run(within(bound), body) {
        Ok(runs) => println!("holds   {name}: {runs} runs, {:.1?}", start.elapsed()),
        Err(message) => panic!("{name}: {message}"),
    }
}

/// Checks that a property fails, by the assertion with this text, when something is removed.
pub(crate) fn fails(
    name: &str,
    what: &str,
    bound: Bound,
    mutations: &[Mutation],
    assertion: &str,
    body: fn(),
) {
    let unfit = model::mutate(mutations);
    assert!(
        unfit.is_empty(),
        "not in the source, or not once: {:?}",
        unfit[0].text
    );
    let start = Instant::now();
    match run(within(bound), body) {
        Ok(runs) => panic!("{name} without {what}: not noticed in {runs} runs"),
        Err(message) => {
            let shown = message.lines().next().unwrap_or_default();
            println!(
                "notices {name} without {what}: {shown}, {:.1?}",
                start.elapsed()
            );
            assert!(message.contains(assertion), "another failure: {message}");
        }
    }
}

macro_rules! source {
    ($file:literal) => {
        |text, change| kernel::model::Mutation {
            file: concat!("rust/", $file),
            source: include_str!(concat!("../../../../rust/", $file)),
            text,
            change,
        }
    };
}
pub(crate) use source;

/// A mutation of a known file.
pub(crate) type Mutate = fn(&'static str, Change) -> Mutation;
