// SPDX-License-Identifier: GPL-2.0

//! Measures pairs by BPF programs (tests/bench/bpf), which are called like the engine in whole.rs.

use crate::{
    engine::platform::Platform,
    key,
    meter::Meter,
    sys::{platform::Kernel, Bpf},
    unknown,
};
use kernel::prelude::*;

/// The programs.
pub(crate) struct Programs {
    /// Stores the time under a key.
    start: Bpf,
    /// Looks the key up, deletes it and enters the delay in a histogram.
    end: Bpf,
    /// Does nothing.
    empty: Bpf,
}

impl Programs {
    /// Returns the programs behind file descriptors of this task.
    pub(crate) fn from_fds(start: u64, end: u64, empty: u64) -> Result<Self> {
        Ok(Self {
            start: Bpf::from_fd(start)?,
            end: Bpf::from_fd(end)?,
            empty: Bpf::from_fd(empty)?,
        })
    }

    /// Measures with `live` live events; returns the total number of pairs. The map is empty before
    /// and after.
    pub(crate) fn run(&self, meter: &Meter, live: u64) -> u64 {
        let run = |program: &Bpf, key: &[u64; 2]| {
            let guard = Kernel::guard();
            program.run(&guard, key);
        };
        for n in 0..live - 1 {
            run(&self.start, &key(n));
        }
        meter.row("pair", live, |n| {
            run(&self.start, &key(n.wrapping_add(live - 1)));
            run(&self.end, &key(n));
        });
        meter.row("unknown_out", live, |n| run(&self.end, &unknown(n)));
        for n in 0..live - 1 {
            run(&self.end, &key(meter.calls() * 2 + n));
        }
        meter.calls() * 2 + live - 1
    }

    /// Measures an empty program.
    pub(crate) fn empty(&self, meter: &Meter) {
        meter.row("empty", 0, |n| {
            let guard = Kernel::guard();
            self.empty.run(&guard, &key(n));
        });
    }
}
