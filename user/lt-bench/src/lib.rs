// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `bench`: measures the activity that keeps a CPU from a task that should have it exclusively.
//!
//! `bench loop` is a loop that reads the clock and does nothing else (Beamonte's npt). If two
//! readings are far apart, something interrupted the loop:
//!
//! ```text
//!   CPU under test   loop, SCHED_FIFO: now, now, now, ......., now, now       no system call, see below
//!                                                       | peak     ^
//!                                                       v          | continue: the pause is not a sample
//!   another CPU      watch: counters every 10 ms  --> counters, alerts, snapshot --> the least usual one is the cause
//! ```
//!
//! From another CPU, the watching thread reads the kernel's counters for the CPU under test. The
//! loop therefore has no reason to enter the kernel, not even at a peak. There are three exceptions:
//! `--event syscall`, a snapshot, during which the loop sleeps, and a clock that user space cannot
//! read. The counters around a peak cover some milliseconds, not all the time since the last peak;
//! only SMIs are counted since then. The loop runs in slices, with rests between them; by default,
//! isolated CPUs have none. With `--arm` or `--snapshot`, a tracer runs in every second slice, and
//! the other slices are the baseline.
//!
//! With `--in-kernel`, the module runs the loop, with interrupts off.
//!
//! `bench timer` is a task that sleeps until a time, as in cyclictest. The tracker tree records the
//! wake chain of each late wakeup.
//!
//! `bench rate` generates events at a rate, and searches for the highest rate at which LTTng loses
//! none.
//!
//! `bench plot` compares the results of several runs, also of other tools.

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

/// A function that explains the alerts of a capture from its trace, with a text for each alert.
pub type Explain = fn(&Path, &[Alert]) -> Result<Vec<String>>;

/// Runs a bench. `explain` explains the captures of `bench loop --snapshot`.
pub fn run(root: &ProcRoot, args: &BenchArgs, explain: Explain) -> Result<Outcome> {
    match &args.command {
        BenchCommand::Loop(args) => run::run(root, args, explain),
        BenchCommand::Timer(args) => timer::run(root, args),
        BenchCommand::Rate(args) => rate::run(args),
        BenchCommand::Plot(args) => plot::run(args),
    }
}
