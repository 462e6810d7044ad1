// SPDX-License-Identifier: GPL-2.0

// The kernel files that are tested here, for `include!` at the root of a crate: the engine, and
// other files that need little of the kernel: atomics, memory, error codes and formatting. A
// separate crate would add seconds to the build of each test program. The modules stay private.

#[path = "alert.rs"]
mod alert;
#[path = "../../../rust/control.rs"]
mod control;
#[path = "../../../rust/trackers/offcpu/early.rs"]
mod early;
#[path = "../../../rust/engine.rs"]
mod engine;
#[path = "../../../rust/hwnoise.rs"]
mod hwnoise;
#[path = "../../../rust/trackers/tree/chain.rs"]
mod chain;
#[path = "../../../rust/measure/tally.rs"]
mod tally;
#[path = "../../../rust/text.rs"]
mod text;
