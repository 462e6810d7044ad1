// SPDX-License-Identifier: GPL-2.0

//! The modules of rust/sys that the engine needs (a new module must be added here), and glue.c.

#[cfg(target_arch = "aarch64")]
#[path = "../../../rust/sys/arm64.rs"]
pub(crate) mod arm64;
#[path = "../../../rust/sys/atomic.rs"]
pub(crate) mod atomic;
#[path = "../../../rust/sys/bindings.rs"]
pub(crate) mod bindings;
#[path = "../../../rust/sys/compat.rs"]
pub(crate) mod compat;
#[path = "../../../rust/sys/memory.rs"]
pub(crate) mod memory;
#[path = "../../../rust/sys/platform.rs"]
pub(crate) mod platform;

use core::ptr::NonNull;
use kernel::{
    ffi::{c_int, c_uint, c_ulong},
    prelude::*,
};
use platform::PreemptGuard;

/// See glue.h.
mod glue {
    use super::{c_int, c_uint, c_ulong};

    #[repr(C)]
    pub(super) struct ObjpoolHead {
        opaque: [u8; 0],
    }

    #[repr(C)]
    pub(super) struct BpfProg {
        opaque: [u8; 0],
    }

    #[repr(C)]
    pub(super) struct Request {
        opaque: [u8; 0],
    }

    #[repr(C)]
    pub(super) struct Tracepoint {
        opaque: [u8; 0],
    }

    #[repr(C)]
    pub(super) struct Way {
        opaque: [u8; 0],
    }

    extern "C" {
        pub(super) fn ltb_irq_save() -> c_ulong;
        pub(super) fn ltb_irq_restore(flags: c_ulong);
        pub(super) fn ltb_free_memory() -> u64;
        pub(super) fn ltb_objpool_new(nr: c_int, size: c_int) -> *mut ObjpoolHead;
        pub(super) fn ltb_objpool_cycle(pool: *mut ObjpoolHead);
        pub(super) fn ltb_objpool_free(pool: *mut ObjpoolHead);
        pub(super) fn ltb_bpf_get(fd: c_int) -> *mut BpfProg;
        pub(super) fn ltb_bpf_run(prog: *mut BpfProg, args: *const u64) -> u32;
        pub(super) fn ltb_bpf_put(prog: *mut BpfProg);
        pub(super) fn ltb_request_new() -> *mut Request;
        pub(super) fn ltb_request_inserted(rq: *mut Request);
        pub(super) fn ltb_request_free(rq: *mut Request);
        pub(super) fn ltb_switch_find() -> *mut Tracepoint;
        pub(super) fn ltb_switch(tp: *mut Tracepoint, prev: c_int, next: c_int, state: u32);
        pub(super) fn ltb_way_new(what: c_uint) -> *mut Way;
        pub(super) fn ltb_way_attach(way: *mut Way) -> bool;
        pub(super) fn ltb_way_pass(way: *const Way);
        pub(super) fn ltb_way_free(way: *mut Way);
    }
}

/// Turns interrupts of this CPU off; the result is for [`irq_restore`].
#[inline(always)]
pub(crate) fn irq_save() -> c_ulong {
    // SAFETY: Allowed in every context.
    unsafe { glue::ltb_irq_save() }
}

/// Restores interrupts.
#[inline(always)]
pub(crate) fn irq_restore(flags: c_ulong) {
    // SAFETY: Allowed in every context; the flags come from `irq_save`.
    unsafe { glue::ltb_irq_restore(flags) }
}

/// Returns the free memory in bytes.
pub(crate) fn free_memory() -> u64 {
    // SAFETY: Reads counters.
    unsafe { glue::ltb_free_memory() }
}

/// A pool of lib/objpool, for comparison.
///
/// # Invariants
///
/// The pointer is a pool, all of whose objects are in it.
pub(crate) struct Objpool(NonNull<glue::ObjpoolHead>);

impl Objpool {
    /// Creates a pool of `nr` objects of `size` bytes. May sleep; fails with `ENOMEM`.
    pub(crate) fn new(nr: u32, size: usize) -> Result<Self> {
        // SAFETY: No requirements.
        let pool = unsafe { glue::ltb_objpool_new(nr as c_int, size as c_int) };
        // INVARIANT: A new pool is full.
        Ok(Self(NonNull::new(pool).ok_or(ENOMEM)?))
    }

    /// Takes an object and returns it.
    #[inline(always)]
    pub(crate) fn cycle(&self) {
        // SAFETY: By the type invariant there is an object to take; it is given back.
        unsafe { glue::ltb_objpool_cycle(self.0.as_ptr()) }
    }
}

impl Drop for Objpool {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and it is not used any more.
        unsafe { glue::ltb_objpool_free(self.0.as_ptr()) }
    }
}

/// A BPF program.
///
/// # Invariants
///
/// The pointer is a jitted raw tracepoint program that we have a reference to.
pub(crate) struct Bpf(NonNull<glue::BpfProg>);

impl Bpf {
    /// Returns the program behind a file descriptor of this task. Fails with `EBADF` unless it is a
    /// jitted program of the type raw tracepoint.
    pub(crate) fn from_fd(fd: u64) -> Result<Self> {
        let fd = c_int::try_from(fd)?;
        // SAFETY: Called by a task, when the module loads.
        let prog = unsafe { glue::ltb_bpf_get(fd) };
        // INVARIANT: Guaranteed by `ltb_bpf_get`.
        Ok(Self(NonNull::new(prog).ok_or(EBADF)?))
    }

    /// Runs the program with a key of two words as arguments.
    #[inline(always)]
    pub(crate) fn run(&self, _: &PreemptGuard, args: &[u64; 2]) -> u32 {
        // SAFETY: By the type invariant; the guard keeps preemption off, so this is an RCU
        // read-side critical section, too. The programs of tests/bench/bpf use two arguments.
        unsafe { glue::ltb_bpf_run(self.0.as_ptr(), args.as_ptr()) }
    }
}

impl Drop for Bpf {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; the reference is given up.
        unsafe { glue::ltb_bpf_put(self.0.as_ptr()) }
    }
}

/// A dummy block request, all zeroes.
///
/// # Invariants
///
/// The pointer is from `ltb_request_new`.
pub(crate) struct Request(NonNull<glue::Request>);

impl Request {
    /// Creates a request. May sleep; fails with `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Called by a task, when the module loads.
        let rq = unsafe { glue::ltb_request_new() };
        // INVARIANT: Just made.
        Ok(Self(NonNull::new(rq).ok_or(ENOMEM)?))
    }

    /// Hits the tracepoint block_rq_insert. An attached probe may only use the address of the
    /// request, as our probe does with a request that it does not track.
    #[inline(always)]
    pub(crate) fn inserted(&self) {
        // SAFETY: By the type invariant.
        unsafe { glue::ltb_request_inserted(self.0.as_ptr()) }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; no one keeps a request that was never issued.
        unsafe { glue::ltb_request_free(self.0.as_ptr()) }
    }
}

/// The probes attached to the tracepoint sched_switch.
///
/// # Invariants
///
/// The pointer is that tracepoint.
pub(crate) struct Switches(NonNull<glue::Tracepoint>);

impl Switches {
    /// Finds the tracepoint; fails with `ENODEV`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: No requirements.
        let tracepoint = unsafe { glue::ltb_switch_find() };
        // INVARIANT: Unless NULL, it is the tracepoint, which is never freed.
        Ok(Self(NonNull::new(tracepoint).ok_or(ENODEV)?))
    }

    /// Hits the tracepoint: one of two tasks goes to sleep, and the other one, given by its number,
    /// runs next.
    #[inline(always)]
    pub(crate) fn switch(&self, _: &PreemptGuard, next: u64) {
        const TASK_INTERRUPTIBLE: u32 = 1;
        let next = (next & 1) as c_int;
        // SAFETY: The tracepoint, by the type invariant; preemption is off.
        unsafe { glue::ltb_switch(self.0.as_ptr(), 1 - next, next, TASK_INTERRUPTIBLE) };
    }
}

/// A scenario, from start to end.
///
/// # Invariants
///
/// The pointer is from `ltb_way_new`.
pub(crate) struct Way(NonNull<glue::Way>);

impl Way {
    /// Creates the scenario with this number in glue.h. May sleep; fails with `ENODEV`, even for
    /// lack of memory.
    pub(crate) fn new(what: u32) -> Result<Self> {
        // SAFETY: Called by a task, when the module loads.
        let way = unsafe { glue::ltb_way_new(what) };
        // INVARIANT: Just made.
        Ok(Self(NonNull::new(way).ok_or(ENODEV)?))
    }

    /// Attaches a function that does nothing to each of its tracepoints. May sleep; fails with
    /// `ENOMEM`.
    pub(crate) fn attach_empty(&self) -> Result {
        // SAFETY: By the type invariant; called by a task, when the module loads.
        unsafe { glue::ltb_way_attach(self.0.as_ptr()) }
            .then_some(())
            .ok_or(ENOMEM)
    }

    /// Runs the scenario once.
    #[inline(always)]
    pub(crate) fn pass(&self, _: &PreemptGuard) {
        // SAFETY: By the type invariant; preemption is off.
        unsafe { glue::ltb_way_pass(self.0.as_ptr()) };
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, and it is not used any more.
        unsafe { glue::ltb_way_free(self.0.as_ptr()) };
    }
}
