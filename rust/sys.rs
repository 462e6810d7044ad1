// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers over the C interfaces that the `kernel` crate does not wrap (yet).
//!
//! Only this folder, `freelist`, `rcu_ht` and `api/ffi` may have `unsafe` code; the engine's trait
//! `Platform` is unsafe, too. Apart from `trace`, which has the tracepoints of alerts, no file here
//! is about latency: most could move to `rust/kernel` one day.

#[cfg(all(CONFIG_INET, CONFIG_FPROBE))]
pub(crate) mod accept;
#[cfg(target_arch = "aarch64")]
pub(crate) mod arm64;
pub(crate) mod assumptions;
pub(crate) mod atomic;
pub(crate) mod bindings;
pub(crate) mod block;
pub(crate) mod causes;
pub(crate) mod cgroup;
pub(crate) mod compat;
pub(crate) mod deferred;
pub(crate) mod descendants;
pub(crate) mod fprobe;
pub(crate) mod interrupts;
pub(crate) mod irq;
pub(crate) mod kthread_work;
pub(crate) mod measure;
pub(crate) mod memory;
pub(crate) mod module;
#[cfg(all(CONFIG_NET, CONFIG_FPROBE))]
pub(crate) mod net;
pub(crate) mod periodic;
pub(crate) mod platform;
pub(crate) mod procfs;
pub(crate) mod random;
pub(crate) mod raw;
pub(crate) mod sched;
pub(crate) mod stack;
pub(crate) mod symbol;
pub(crate) mod syscall;
pub(crate) mod task;
pub(crate) mod timer;
pub(crate) mod trace;
pub(crate) mod tracepoint;
pub(crate) mod user_stack;
pub(crate) mod waiting;
pub(crate) mod waker;
pub(crate) mod workqueue;

/// Returns `ENOSYS`, for a kernel that lacks a necessary feature. The `kernel` crate has no name
/// for this error yet.
pub(crate) fn enosys() -> kernel::error::Error {
    kernel::error::Error::from_errno(-(kernel::bindings::ENOSYS as i32))
}
