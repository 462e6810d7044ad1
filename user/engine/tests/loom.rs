// SPDX-License-Identifier: GPL-2.0

//! Models of the lock-free parts. Loom runs each model in every interleaving of its threads, and
//! with every value that a load may return, of the seven latest stores. If there are too many
//! interleavings, a model limits the number of preemptions in one run (`Some(4)`), and runs with
//! more are not tried. `LOOM_MAX_PREEMPTIONS`, by default 2 in tests/host/loom.sh, is a lower limit
//! for all models but those of reap.rs and doubt.rs.
//!
//! Each model states a property. Most are run again without a protection that the property depends
//! on ([`Mutation`]), and must then fail: by the assertion that the test names, if it names one.
//! A test without a protection is named PROPERTY_by_PROTECTION. The stand-in for the kernel's
//! atomics makes the mutations; the engine's files are the kernel's.
//!
//! Run by tests/host/loom.sh, or: `RUSTFLAGS="--cfg loom" cargo test --profile loom --test loom`.

#![cfg(loom)]
#![deny(unsafe_op_in_unsafe_fn)]
#![expect(dead_code, reason = "the module uses more of its engine")]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

include!("../src/engine.rs");

#[path = "../src/sys.rs"]
mod sys;

#[path = "loom/machine.rs"]
mod machine;

#[path = "loom/audit.rs"]
mod audit;
#[path = "loom/doubt.rs"]
mod doubt_model;
#[path = "loom/early.rs"]
mod early_model;
#[path = "loom/event.rs"]
mod event_model;
#[path = "loom/freelist.rs"]
mod freelist_model;
#[path = "loom/held.rs"]
mod held_model;
#[path = "loom/labels.rs"]
mod labels_model;
#[path = "loom/reap.rs"]
mod reap_model;
#[path = "loom/rename.rs"]
mod rename_model;
#[path = "loom/ring.rs"]
mod ring_model;
#[expect(unsafe_code, reason = "functions of C")]
#[path = "loom/stacks.rs"]
mod stacks;
#[path = "loom/step.rs"]
mod step_model;
#[path = "loom/table.rs"]
mod table_model;
#[path = "loom/timeout.rs"]
mod timeout_model;
