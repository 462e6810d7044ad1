// SPDX-License-Identifier: GPL-2.0

//! latency-tracker: finds out, inside the kernel and while it happens, why something was late.
//!
//! Kernel events come in at the probes and are paired in the table; only the late ones reach a
//! reader:
//!
//! ```text
//!  tracepoints                                                    user space
//!      |                                                              ^
//!   trackers/    raw arguments become (key, data)                     |
//!      |                                                              |
//!   tracker      event_in, event_out, update                          |
//!    |     |                                                          |
//!  freelist rcu_ht    a preallocated event, findable by key           |
//!      |                                                              |
//!   histogram, stats  every event                                     |
//!      |                                                              |
//!   record, alert     the late ones ---> sys/trace (tracepoint)       |
//!      |                                                              |
//!   wakeup            irq_work, wait queue ---> alerts, procfs --------+
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `platform` | what the engine needs from the machine |
//! | `freelist`, `rcu_ht`, `event`, `hash`, `histogram`, `stats`, `tracker` | the engine |
//! | `alert`, `record`, `alerts`, `readers`, `wakeup` | late events, and how their readers learn of them |
//! | `control`, `registry`, `instance`, `procfs`, `text` | what a person sees |
//! | `instance/probed` | what all trackers with probes have in common |
//! | `profile`, `instance/profile` | tables of how long operations of each class took |
//! | `trackers/` | one file a tracker; `tasks` is what those of tasks share |
//! | `api` | trackers of other modules; `api/ffi` is what they call |
//! | `sys/` | safe wrappers over C; with `freelist`, `rcu_ht` and `api/ffi` the only `unsafe` code |
//!
//! The engine, `profile`, `alert`, `record`, `control` and `text` use nothing of the kernel but atomics and
//! error codes; user/engine compiles the same files for tests and models.

use kernel::{prelude::*, sync::Arc};

mod alert;
mod alerts;
mod api;
mod control;
mod event;
mod freelist;
mod hash;
mod histogram;
mod instance;
mod platform;
mod procfs;
mod profile;
mod rcu_ht;
mod readers;
mod record;
mod registry;
mod stats;
mod sys;
mod text;
mod tracker;
mod trackers;
mod wakeup;

use alerts::Alerts;
use api::ffi::Exports;
use registry::{Files, Registry};
use sys::{
    compat,
    procfs::Dir,
    stack::DEPTH_MAX,
    ticker::{Grower, Tickers},
};

/// The version of the module.
pub(crate) const VERSION: &str = "0.1.0";

/// How many alerts of all instances are kept for readers.
const RING: u32 = 1024;

/// The shortest time between two wake-ups of the readers of all instances, in nanoseconds.
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
    /// For other modules. None of them has a tracker when this is dropped.
    exports: Option<Exports>,
    registry: Arc<Registry>,
    files: Files,
    /// Maintains the memory of instances; dropped after them.
    _grower: Grower<Registry>,
    /// The last one: all of the above have workers.
    _tickers: Tickers,
}

impl kernel::Module for LatencyTracker {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let gid = compat::parameter::<i64>(module_parameters::gid.value());
        let gid = if gid < 0 {
            None
        } else {
            let valid = u32::try_from(gid).ok().filter(|&gid| gid != u32::MAX);
            if valid.is_none() {
                pr_err!("gid={gid} is not a group\n");
                return Err(EINVAL);
            }
            valid
        };
        let tickers = Tickers::new()?;
        let all = Arc::new(
            Alerts::new(RING, DEPTH_MAX, WAKEUP_INTERVAL, trackers::line)?,
            GFP_KERNEL,
        )?;
        let root = Dir::new(c"latency_tracker", None, gid)?;
        let registry = Registry::new(all.clone(), root.clone(), gid, procfs::instance_files)?;
        let grower = Grower::new(registry.clone())?;
        let files = procfs::root_files(&root, &all, &registry)?;
        let exports = Some(Exports::new(registry.clone())?);
        pr_info!("version {VERSION}, control it at /proc/latency_tracker\n");
        Ok(Self {
            exports,
            registry,
            files,
            _grower: grower,
            _tickers: tickers,
        })
    }
}

impl Drop for LatencyTracker {
    fn drop(&mut self) {
        self.exports = None;
        // No new instances, and none of the old ones: all probes are off.
        self.registry.close();
        self.files.clear();
        sys::fprobe::unload();
    }
}
