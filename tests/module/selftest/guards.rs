// SPDX-License-Identifier: GPL-2.0

//! The guard of the kernel's platform, where it is inline instructions, ends with a call only if a
//! reschedule is needed.

use crate::{
    common::{check, on_cpus, Verdict},
    engine::platform::Platform,
    sys::platform::{Kernel, GUARDS_ARE_IN_PLACE},
};
use kernel::{
    ffi::c_ulong,
    prelude::*,
    sync::atomic::{Atomic, Relaxed},
};

// See threads.h.
extern "C" {
    fn lt_guards_ended_by_call() -> c_ulong;
    fn lt_want_to_schedule();
    fn lt_wants_to_schedule() -> bool;
}

fn ended_by_call() -> u64 {
    // SAFETY: Reads a counter.
    unsafe { lt_guards_ended_by_call() as u64 }
}

/// Tests the width of the preemption count (rust/sys: compat.rs, arm64.rs): too narrow an access
/// sees zero at each outermost end, too wide an access never does.
pub(crate) fn a_guard_ends_by_a_call_only_to_schedule() -> Result<Verdict> {
    const GUARDS: u64 = 1_000_000;
    const WANTED: u64 = 100;
    let (calls, wanted, left) = (Atomic::new(0_u64), Atomic::new(0_u64), Atomic::new(0_u64));
    on_cpus(1, |_| {
        let before = ended_by_call();
        for _ in 0..GUARDS {
            drop(Kernel::guard());
        }
        let after = ended_by_call();
        calls.add(after - before, Relaxed);
        for _ in 0..WANTED {
            let outer = Kernel::guard();
            let inner = Kernel::guard();
            // SAFETY: Preemption is off.
            unsafe { lt_want_to_schedule() };
            // Not the outermost guard: nothing happens.
            drop(inner);
            // SAFETY: Reads a flag.
            let still = unsafe { lt_wants_to_schedule() };
            drop(outer);
            // SAFETY: Reads a flag.
            let then = unsafe { lt_wants_to_schedule() };
            left.add(u64::from(!still || then), Relaxed);
        }
        wanted.add(ended_by_call() - after, Relaxed);
    })?;
    let (calls, wanted, left) = (
        calls.load(Relaxed),
        wanted.load(Relaxed),
        left.load(Relaxed),
    );
    pr_info!(
        "{calls} of {GUARDS} guards ended by a call, and {wanted} of {WANTED} that had to schedule, of which {left} did not\n"
    );
    if GUARDS_ARE_IN_PLACE {
        // The scheduler rarely needs a reschedule of its own, such as for another thread.
        check!("ended by a call", calls < GUARDS / 100);
    } else {
        check!("not ended by a call", calls == GUARDS);
    }
    check!("did not see the need", wanted >= WANTED);
    // Another task may have wanted to run just then.
    check!("did not schedule", left < WANTED / 10);
    Ok(Ok(()))
}
