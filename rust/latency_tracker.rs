// SPDX-License-Identifier: GPL-2.0

//! latency-tracker: reports late operations inside the kernel while they happen, and their causes.
//!
//! Kernel events arrive at the probes and are paired in the table; only late operations reach a
//! reader:
//!
//! ```text
//!  tracepoints                                                    user space
//!      |                                                              ^
//!   trackers/    raw arguments become (key, data)                     |
//!      |                                                              |
//!   engine       event_in, event_out, update                          |
//!    |     |                                                          |
//!  freelist rcu_ht    a preallocated event, findable by key           |
//!      |                                                              |
//!   histogram, stats  every event                                     |
//!      |                                                              |
//!   alert             late events -----> sys/trace (tracepoint)       |
//!      |                                                              |
//!   notify            irq_work, wait queue ---> stream, proc ---------+
//! ```
//!
//! | file, folder | content |
//! |---|---|
//! | `engine` | pairs starts and ends; `freelist` and `rcu_ht` are its pool and its table |
//! | `hwnoise` | the loop of `bench loop --in-kernel`, which runs with interrupts off |
//! | `measure` | the cost of the probes themselves, measured on request |
//! | `alert` | late events: their record, the ring, its files, and how readers are woken |
//! | `record` | the fields of an alert, declared once |
//! | `instance` | a named tracker: parameters, alerts, profile; code for all trackers with probes |
//! | `control`, `text` | the language of the control file, and names in text |
//! | `trackers` | a file and often a folder per tracker, and files that several trackers share |
//! | `api` | trackers of other modules; `api/ffi` has the functions that those modules call |
//! | `proc` | the registry of instances, and the files of the user interface |
//! | `sys` | safe wrappers over C; other `unsafe`: `freelist`, `rcu_ht`, `api/ffi`, `Platform` |
//!
//! The engine, `alert/record`, `alert/ring`, `record` without `record/kinds`, `control`, `text`,
//! `hwnoise`, `measure/tally`, `trackers/offcpu/early` and `trackers/tree/chain` need little more
//! than atomics and error codes from the kernel; user/engine compiles them for tests and models.

#![cfg_attr(
    any(only, not(all(CONFIG_BLOCK, CONFIG_NET, CONFIG_INET, CONFIG_FPROBE))),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "some trackers are left out"
    )
)]

use kernel::{prelude::*, sync::Arc};

mod alert;
#[cfg(any(not(only), module))]
mod api;
mod control;
mod engine;
mod hwnoise;
mod instance;
mod measure;
mod proc;
mod record;
mod sys;
mod text;
mod trackers;

use alert::stream::{Alerts, TAIL_MAX};
#[cfg(any(not(only), module))]
use api::ffi::Exports;
use measure::Measure;
use proc::registry::{Files, Registry, Works};
use sys::{
    assumptions, compat,
    periodic::{MemoryWork, PeriodicQueue},
    procfs::Dir,
};

pub(crate) const VERSION: &str = "0.1.0";

/// Number of alerts in the ring that all instances share.
const RING: u32 = 1024;

/// The shortest time between two wakeups of the readers of the shared ring, in nanoseconds.
const WAKEUP_INTERVAL: u64 = 1_000_000_000;

module! {
    type: LatencyTracker,
    name: "latency_tracker",
    authors: ["The latency-tracker developers"],
    description: "Finds out why something in Linux was suddenly late",
    license: "GPL v2",
    params: {
        gid: i64 {
            default: -1,
            description: "Group that may read /proc/latency_tracker (default: root only)",
        },
    },
}

/// The loaded module.
struct LatencyTracker {
    /// The functions for other modules. No other module has a tracker by the time that this is
    /// dropped: each such tracker keeps this module loaded.
    #[cfg(any(not(only), module))]
    exports: Option<Exports>,
    registry: Arc<Registry>,
    files: Files,
    /// Maintains the memory of instances; dropped after them.
    _memory: MemoryWork<Registry>,
    /// Dropped last, since it runs the workers of the fields above.
    _queue: PeriodicQueue,
}

impl kernel::Module for LatencyTracker {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let gid = compat::parameter::<i64>(module_parameters::gid.value());
        let gid = if gid < 0 {
            None
        } else {
            let valid = u32::try_from(gid).ok().filter(|&gid| gid != u32::MAX);
            if valid.is_none() {
                pr_err!("gid={gid}: expected the number of a group\n");
                return Err(EINVAL);
            }
            valid
        };
        assumptions::check();
        let measure = Measure::start()?;
        let queue = PeriodicQueue::new()?;
        let all = Arc::new(
            Alerts::new(RING, TAIL_MAX, WAKEUP_INTERVAL, trackers::line)?,
            GFP_KERNEL,
        )?;
        let root = Dir::new(c"latency_tracker", None, gid)?;
        let works = Works::new()?;
        let registry = Registry::new(
            all.clone(),
            root.clone(),
            gid,
            proc::files::instance_files,
            works.clone(),
            measure.clone(),
        )?;
        let memory = MemoryWork::new(registry.clone())?;
        let files = proc::files::root_files(&root, &all, &registry, &works, measure)?;
        #[cfg(any(not(only), module))]
        let exports = Some(Exports::new(registry.clone())?);
        pr_info!("version {VERSION}, controlled through /proc/latency_tracker\n");
        Ok(Self {
            #[cfg(any(not(only), module))]
            exports,
            registry,
            files,
            _memory: memory,
            _queue: queue,
        })
    }
}

impl Drop for LatencyTracker {
    fn drop(&mut self) {
        #[cfg(any(not(only), module))]
        {
            self.exports = None;
        }
        // Removes all instances, and so detaches all probes.
        self.registry.close();
        self.files.clear();
        sys::fprobe::unload();
    }
}
