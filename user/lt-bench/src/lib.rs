// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench`: measures what keeps a CPU from a task that has it for itself.
//!
//! `bench loop` is a loop that reads the clock and does nothing else (Beamonte's npt). Two readings that are far apart
//! were interrupted:
//!
//! ```text
//!   CPU under test   loop, SCHED_FIFO: now, now, now, ......., now, now       no system call, not even at a peak
//!                                                       | peak     ^
//!                                                       v          | go on: what passed meanwhile is no sample
//!   another CPU      watch: counters every 10 ms  --> counters, alerts, snapshot --> the least usual one is the cause
//! ```
//!
//! The thread that watches reads what the kernel counts for the CPU under test from another CPU. So the loop has no
//! reason to enter the kernel, and the counters around a peak span some milliseconds, not all the time since the last
//! one. With `--arm` or `--snapshot`, slices of the run without them are the baseline for those with them.
//!
//! With `--in-kernel` the module makes the loop, with interrupts off.
//!
//! `bench timer` is a task that sleeps until a time, as cyclictest's: the tracker tree says on which path it was woken.
//!
//! `bench rate` makes events at a rate, and searches for the highest at which LTTng loses none.

mod alerts;
mod args;
mod arm;
mod clock;
mod cycle;
mod guard;
mod hold;
mod inside;
pub mod measure;
mod others;
mod peak;
mod phase;
mod place;
mod plot;
mod probe;
mod rate;
mod report;
mod run;
mod show;
mod spin;
mod timer;
mod watch;

use std::path::Path;

use anyhow::Result;
use lt_common::Outcome;
use lt_proc::{Alert, ProcRoot};

use self::args::BenchCommand;
pub use self::args::{BenchArgs, EXAMPLES};

/// Explains the alerts of a capture from its trace, a text for each.
pub type Explain = fn(&Path, &[Alert]) -> Result<Vec<String>>;

/// Runs a bench. `explain` is for the captures of `bench loop --snapshot`.
pub fn run(root: &ProcRoot, args: &BenchArgs, explain: Explain) -> Result<Outcome> {
    match &args.command {
        BenchCommand::Loop(args) => run::run(root, args, explain),
        BenchCommand::Timer(args) => timer::run(root, args),
        BenchCommand::Rate(args) => rate::run(args),
        BenchCommand::Plot(args) => plot::run(args),
    }
}
