// SPDX-License-Identifier: GPL-2.0

//! Unit tests of the module's files that this crate compiles, and tests of interrupts, which
//! concern all of these files.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

mod alert;
mod chain;
mod control;
mod early;
mod engine;
mod event;
mod fields;
mod found;
mod freelist;
mod hash;
mod held;
mod histogram;
mod hwnoise;
#[cfg(debug_assertions)]
mod interrupts;
mod labels;
mod measure;
mod memory;
mod profile;
mod rcu_ht;
mod record;
mod rivals;
mod schedule;
mod stats;
mod step;
#[cfg(debug_assertions)]
mod threshold;
mod timeout;
mod wait;
mod worst;

use crate::{
    engine::platform::Platform,
    host::{Guard, Host, Machine},
};

/// Two nodes of two CPUs.
type Numa = Host<4, 2, 0x1100>;

/// Runs code that may sleep, alone on a machine and without a guard.
fn off_guard<R>(body: impl FnOnce() -> R) -> R {
    let _seat = Machine::new().pin(0);
    body()
}

/// Runs `body` alone on a CPU of a machine, with a guard.
fn on<P: Platform<Guard = Guard>, R>(cpu: usize, body: impl FnOnce(&Guard) -> R) -> R {
    let _seat = Machine::new().pin(cpu);
    body(&P::guard())
}
