// SPDX-License-Identifier: GPL-2.0

//! lt_structures: ways to pair events, compared behind one interface (structures/structures.h).
//!
//! This file puts the engine behind that interface; the engine's files are compiled into this
//! module unchanged. The other structures are in C. Loading the module checks or measures all of
//! them (scripts/bench structures).

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the tests need less of the engine than the module does"
)]

use common::{engine, total, Engine};
use engine::{platform::Platform, stats::Counter, Begin};
use kernel::{
    error::{code::*, to_result},
    ffi::{c_int, c_uint, c_void},
    prelude::*,
};
use sys::{compat::parameter, platform::Kernel};

mod common;
#[path = "../../rust/engine.rs"]
mod engine;
mod sys;

module! {
    type: Structures,
    name: "lt_structures",
    authors: ["The latency-tracker developers"],
    description: "Ways to pair events, compared",
    license: "GPL v2",
    params: {
        what: u64 {
            default: 0,
            description: "0 check all; count instructions of a pair: 1 on one CPU, 2 across two; 3 what is lost \
                          when CPUs are busy, 4 across them",
        },
        calls: u64 {
            default: 10_000,
            description: "How many pairs; with what=3 and 4, rounds",
        },
        live: u64 {
            default: 1_000,
            description: "Live events of a CPU, with what=2 to 4",
        },
        bpf_start: u64 {
            default: 0,
            description: "File descriptor of the BPF program that begins an event: measured \
                          instead of the structures",
        },
        bpf_end: u64 {
            default: 0,
            description: "File descriptor of the BPF program that ends an event",
        },
        bpf_empty: u64 {
            default: 0,
            description: "Not used; the loader of lt_bench gives it",
        },
        by_task: u64 {
            default: 0,
            description: "1: the programs keep one event a task",
        },
    },
}

extern "C" {
    fn lts_check() -> c_int;
    fn lts_measure(calls: c_uint, bpf: bool, by_task: bool) -> c_int;
    fn lts_measure_across(live: c_uint, bpf: bool) -> c_int;
    fn lts_crowd(cpus: c_uint, live: c_uint, rounds: c_uint, across: bool, bpf: bool) -> c_int;
    fn lts_bpf_get(begin: c_int, end: c_int) -> c_int;
    fn lts_bpf_put();
}

/// `struct lts_counts` of C.
#[repr(C)]
pub struct Counts {
    begun: u64,
    ended: u64,
    dropped: u64,
    busy: u64,
    missed: u64,
    unmatched: u64,
    delays: u64,
}

#[no_mangle]
extern "C" fn lts_engine_create(capacity: c_uint) -> *mut c_void {
    let boxed = engine(capacity).and_then(|engine| Ok(KBox::new(engine, GFP_KERNEL)?));
    boxed.map_or(core::ptr::null_mut(), |engine| {
        KBox::into_raw(engine).cast()
    })
}

/// # Safety
///
/// `store` is from `lts_engine_create`, and is no longer used.
#[no_mangle]
unsafe extern "C" fn lts_engine_destroy(store: *mut c_void) {
    // SAFETY: The function's contract.
    drop(unsafe { KBox::<Engine>::from_raw(store.cast()) });
}

/// # Safety
///
/// `store` is from `lts_engine_create`; `key` points to a key.
#[no_mangle]
unsafe extern "C" fn lts_engine_begin(store: *mut c_void, key: *const [u64; 2]) -> c_int {
    // SAFETY: The function's contract.
    let (engine, key) = unsafe { (&*store.cast::<Engine>(), &*key) };
    let guard = Kernel::guard();
    match engine.event_in(&guard, key, Kernel::now(), &[key[0], !key[1]]) {
        Begin::Started => 0,
        _ => ENOSPC.to_errno(),
    }
}

/// # Safety
///
/// `store` is from `lts_engine_create`; `key` points to a key.
#[no_mangle]
unsafe extern "C" fn lts_engine_end(store: *mut c_void, key: *const [u64; 2]) -> c_int {
    // SAFETY: The function's contract.
    let (engine, key) = unsafe { (&*store.cast::<Engine>(), &*key) };
    let guard = Kernel::guard();
    if engine.event_out(&guard, key, Kernel::now, |_| true, |_| {}) {
        0
    } else {
        ENOENT.to_errno()
    }
}

/// # Safety
///
/// `store` is from `lts_engine_create`; `counts` may be written to.
#[no_mangle]
unsafe extern "C" fn lts_engine_count(store: *mut c_void, counts: *mut Counts) {
    // SAFETY: The function's contract.
    let (engine, counts) = unsafe { (&*store.cast::<Engine>(), &mut *counts) };
    let delays = (0..engine::histogram::BUCKETS).map(|bucket| engine.stats().bucket(bucket));
    *counts = Counts {
        begun: total(engine, Counter::Started),
        ended: total(engine, Counter::Ended),
        dropped: total(engine, Counter::Full) + total(engine, Counter::Crowded),
        busy: 0,
        missed: 0,
        unmatched: total(engine, Counter::Unmatched),
        delays: delays.sum(),
    };
}

struct Structures;

/// Checks or measures, depending on the parameters.
fn run(bpf: bool) -> Result {
    let calls = c_uint::try_from(parameter::<u64>(module_parameters::calls.value()))?;
    let live = c_uint::try_from(parameter::<u64>(module_parameters::live.value()))?;
    let by_task = parameter::<u64>(module_parameters::by_task.value()) != 0;
    let cpus = Kernel::cpus() as c_uint;
    let across = |what| what == 4;
    // SAFETY: Called by a task that may sleep; with `bpf`, `lts_bpf_get` has got the programs, and
    // they are put only after this.
    to_result(unsafe {
        match parameter::<u64>(module_parameters::what.value()) {
            0 => lts_check(),
            1 => lts_measure(calls, bpf, by_task),
            2 => lts_measure_across(live, bpf),
            what @ 3..=4 => lts_crowd(cpus, live, calls, across(what), bpf),
            _ => EINVAL.to_errno(),
        }
    })
}

impl kernel::Module for Structures {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let begin = parameter::<u64>(module_parameters::bpf_start.value());
        let end = parameter::<u64>(module_parameters::bpf_end.value());
        let bpf = begin != 0;
        if bpf {
            // SAFETY: Called by a task, whose file descriptors these are.
            to_result(unsafe { lts_bpf_get(c_int::try_from(begin)?, c_int::try_from(end)?) })?;
        }
        let done = run(bpf);
        // SAFETY: No program is running any more.
        unsafe { lts_bpf_put() };
        done?;
        pr_info!("complete\n");
        Ok(Self)
    }
}
