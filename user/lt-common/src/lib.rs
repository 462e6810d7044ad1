// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Shared by the command, its benches and its checks: output for people, signals and waiting, clocks, real-time
//! priority, external programs, LTTng, instances, captures.

pub mod capture;
pub mod chain;
pub mod clock;
pub mod disk;
pub mod exec;
pub mod group;
pub mod instance;
pub mod kmsg;
pub mod lttng;
pub mod module;
pub mod out;
pub mod pids;
pub mod private;
pub mod rt;
pub mod seconds;
pub mod shapes;
pub mod size;
mod user;
pub mod wait;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As requested; exit status 0.
    Fine,
    /// Something is wrong, and has been reported; exit status 1.
    Wrong,
    /// An alert fired, a limit was exceeded, or profiles differ; exit status 2.
    Alert,
    /// The status of the command that was run: its exit status, or 128+N after signal N.
    Status(u8),
}
