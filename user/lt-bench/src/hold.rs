// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The resources of a run. Each belongs to this process or to one of its threads. The kernel therefore releases them
//! when the process ends, even if it is killed:
//!
//! - the affinity and the priority of each thread under test;
//! - the affinity and the priority of the watching thread;
//! - locked memory;
//! - the open file /dev/cpu_dma_latency, whose value applies for as long as it is open.
//!
//! Nothing is written to /sys or to /proc/sys. A guard removes persistent resources, the instances
//! and an LTTng session: see [`super::arm`].

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_common::out::note;
use lt_common::rt;
use lt_readiness::Cpus;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::SigSet;
use nix::unistd::{Pid, gettid};

use super::args::DmaLatency;
use super::place::Place;

const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

/// The resources that a run requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// Priority of the threads under test; 0: ordinary tasks.
    pub(super) priority: i32,
    pub(super) dma_latency: DmaLatency,
}

/// The resources of a run; released when dropped.
#[derive(Debug)]
pub(super) struct Held {
    /// The resources, in lines to print.
    pub(super) said: Vec<String>,
    _dma_latency: Option<File>,
}

impl Held {
    /// Takes the requested resources. `there` is executed on the first CPU under test, at the
    /// priority of the watching thread. `what` names the threads under test in messages.
    pub(super) fn take<T>(
        wish: Wish,
        place: &Place,
        what: &str,
        there: impl FnOnce() -> Result<T>,
    ) -> Result<(Self, T)> {
        let mut said = Vec::new();
        let allowed = affinity();
        if wish.priority > 0 {
            // Tried here, so that the error can be explained.
            rt::fifo(1).with_context(|| {
                format!(
                    "SCHED_FIFO {} is not allowed: run it as root, or raise `rtprio` in \
                     /etc/security/limits.conf, or measure an ordinary task with --priority 0",
                    wish.priority
                )
            })?;
            rt::raise()?;
        }
        for cpu in place.cpus.iter().skip(1) {
            pin(&Cpus::from_iter([cpu]))?;
        }
        pin(&place.cpus.first().into_iter().collect())?;
        let prepared = there()?;
        let rest = pin_elsewhere(place, &allowed)?;
        said.push(match wish.priority {
            0 => format!("CPU {} for {what}, and CPU {rest} for the watching thread", place.cpus),
            priority => format!(
                "SCHED_FIFO {priority} for {what} on CPU {}, {} for the watching thread on CPU {rest}",
                place.cpus,
                rt::PRIORITY
            ),
        });
        match rt::lock_memory() {
            Ok(()) => said.push("its memory, locked".into()),
            Err(error) => note(&format!("{error:#}: page faults may be among the peaks")),
        }
        let dma_latency = dma_latency(wish.dma_latency, &mut said)?;
        let held = Self {
            said,
            _dma_latency: dma_latency,
        };
        Ok((held, prepared))
    }
}

/// Returns the CPUs that this thread may use.
pub(super) fn affinity() -> Cpus {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_else(|_| CpuSet::new());
    let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// Moves the watching thread away from the loops; returns its new CPUs. In the cgroup of a
/// partition, it moves to another CPU of the partition.
fn pin_elsewhere(place: &Place, allowed: &Cpus) -> Result<Cpus> {
    if pin(&place.rest).is_ok() {
        return Ok(place.rest.clone());
    }
    let others = allowed.without(&place.cpus);
    if others.is_empty() {
        bail!(
            "the cgroup of this shell has only CPU {}, and the watching thread needs another one: give the partition \
             another CPU",
            place.cpus
        );
    }
    pin(&others)?;
    Ok(others)
}

/// Sets and holds /dev/cpu_dma_latency. Adds the new and the previous value to `said`.
fn dma_latency(wish: DmaLatency, said: &mut Vec<String>) -> Result<Option<File>> {
    let Some(us) = wish.0 else { return Ok(None) };
    let mut before = [0; 4];
    let was = File::open(DMA_LATENCY).and_then(|mut file| file.read_exact(&mut before));
    let opened = OpenOptions::new().write(true).open(DMA_LATENCY);
    let written = opened.and_then(|mut file| file.write_all(&us.to_ne_bytes()).map(|()| file));
    match written {
        Ok(file) => {
            let was = match was {
                Ok(()) => format!(" (was {} us)", i32::from_ne_bytes(before)),
                Err(_) => String::new(),
            };
            said.push(format!("{DMA_LATENCY} at {us} us{was}"));
            Ok(Some(file))
        }
        // Setting 0, the default, may fail: the file may be missing, or this user may not use it.
        // If any other value cannot be set, the run ends.
        Err(error) if us == 0 => {
            note(&format!(
                "{DMA_LATENCY}: {error}: CPUs may enter deep idle states, and wake up late"
            ));
            Ok(None)
        }
        Err(error) => bail!("--dma-latency {us}: {DMA_LATENCY}: {error}"),
    }
}

/// Moves the calling thread onto these CPUs.
pub(super) fn pin(cpus: &Cpus) -> Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter() {
        set.set(cpu as usize)
            .with_context(|| format!("CPU {cpu} is beyond the largest CPU mask"))?;
    }
    match sched_setaffinity(Pid::from_raw(0), &set) {
        Err(Errno::EINVAL) => bail!(
            "the cgroup of this shell may not use CPU {cpus}; if this CPU is in a partition, move the shell there first: \
             `echo $$ > /sys/fs/cgroup/rt/cgroup.procs`; the partition needs another CPU for the watching thread"
        ),
        result => result.with_context(|| format!("cannot run on CPU {cpus}")),
    }
}

/// Makes the calling thread a thread under test: on `cpu`, at `priority`, without signals.
fn become_subject(cpu: u32, priority: i32) -> Result<()> {
    // Signals go to the watching thread, which ends this one.
    SigSet::all()
        .thread_block()
        .context("cannot block signals")?;
    // Priority first: an ordinary task that moves to a busy CPU waits for its turn there.
    if priority > 0 {
        rt::fifo(priority)?;
    }
    pin(&Cpus::from_iter([cpu]))
}

/// How long to wait for a thread under test to start. A task with a higher priority may keep it from
/// its CPU forever.
pub(super) const START: Duration = Duration::from_secs(10);

/// The id of a thread that becomes a thread under test; 0 before it starts.
#[derive(Debug, Default)]
pub(super) struct Subject(AtomicI32);

impl Subject {
    /// Makes the calling thread this thread under test, see [`become_subject`]. Does not return
    /// while a task with a higher priority has `cpu`.
    pub(super) fn start(&self, cpu: u32, priority: i32) -> Result<()> {
        // Relaxed: a number that orders nothing.
        self.0.store(gettid().as_raw(), Ordering::Relaxed);
        become_subject(cpu, priority)
    }

    /// Moves the thread to the CPUs of the calling thread, so that it can end even if it does not
    /// get its CPU. The thread must not have ended.
    pub(super) fn rescue(&self) {
        // Relaxed: as in `start`.
        let tid = self.0.load(Ordering::Relaxed);
        // 0 would be the calling thread.
        if tid != 0
            && let Ok(own) = sched_getaffinity(Pid::from_raw(0))
        {
            // If that fails, the watching thread tries again.
            let _ = sched_setaffinity(Pid::from_raw(tid), &own);
        }
    }
}
