// SPDX-License-Identifier: GPL-2.0

//! lt_stress: threads that use an engine on all CPUs while this module is loaded.
//!
//! There is one thread for each possible CPU. The threads are not bound to CPUs, so they migrate
//! when CPUs go offline and come back. On unload the log has `ok`, or the error that was found
//! (tests/vm/stress.sh).

#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the tests need less of the engine than the module does"
)]

use engine::platform::Platform;
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint, c_void},
    prelude::*,
};
use mix::{Dice, Mix, Notes, Op};
use sys::platform::Kernel;

mod common;
#[path = "../../rust/engine.rs"]
mod engine;
mod mix;
mod sys;

module! {
    type: Stress,
    name: "lt_stress",
    authors: ["The latency-tracker developers"],
    description: "Stress test of the latency-tracker engine",
    license: "GPL v2",
}

extern "C" {
    fn lt_crowd_start(
        nr: c_uint,
        function: unsafe extern "C" fn(c_uint, *mut c_void),
        arg: *mut c_void,
    ) -> c_int;
    fn lt_crowd_stop();
}

/// Operations that are not recorded.
struct Plain;

impl Notes for Plain {
    fn within<R>(&self, _: Op, work: impl FnOnce(&<Kernel as Platform>::Guard) -> R) -> R {
        work(&Kernel::guard())
    }
}

/// State shared by the threads.
struct Shared {
    mix: Mix,
    dice: KVec<Dice>,
}

/// Does a part of the work of thread number `thread`. Called repeatedly.
///
/// # Safety
///
/// `arg` points to a [`Shared`].
unsafe extern "C" fn work(thread: c_uint, arg: *mut c_void) {
    // SAFETY: The function's contract; all of `Shared` may be shared between threads.
    let shared = unsafe { &*arg.cast::<Shared>() };
    if let Some(dice) = shared.dice.get(thread as usize) {
        for _ in 0..64 {
            shared.mix.step(&Plain, dice);
            shared.mix.search(&Plain, dice);
        }
    }
}

struct Stress {
    shared: KBox<Shared>,
}

impl kernel::Module for Stress {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut dice = KVec::new();
        for thread in 0..Kernel::cpus() {
            dice.push(Dice::new(thread as u64), GFP_KERNEL)?;
        }
        let mix = Mix::new()?;
        let shared = KBox::new(Shared { mix, dice }, GFP_KERNEL)?;
        let arg = core::ptr::from_ref(&*shared).cast_mut().cast();
        // SAFETY: `work` gets the `Shared` that it expects, which does not move until our drop has
        // stopped the threads.
        to_result(unsafe { lt_crowd_start(Kernel::cpus() as c_uint, work, arg) })?;
        Ok(Self { shared })
    }
}

impl Drop for Stress {
    fn drop(&mut self) {
        // SAFETY: The threads were started by `init`.
        unsafe { lt_crowd_stop() };
        match self.shared.mix.verdict() {
            Ok(()) => pr_info!("ok\n"),
            Err(what) => pr_err!("FAILED: {what}\n"),
        }
    }
}
