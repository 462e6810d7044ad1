// SPDX-License-Identifier: GPL-2.0 OR MIT

//! How many seconds the flight recorder remembers.
//!
//! buffer = sub-buffers x their size, per CPU; events = buffer / size of one; time = events / rate.
//! Rate and size are measured: the recorder runs for about a second, then a snapshot shows what was
//! written. The busiest CPU forgets first, so it gives the answer; and one sub-buffer is always being
//! overwritten, so it does not count. A machine that gets busier later remembers less: each capture
//! says what it covered.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::lttng::Buffers;
use crate::out::bytes;

/// Above this a sample is measured in bytes only.
const COUNT_UP_TO: u64 = 16 << 20;

/// The contents of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    buffers: Buffers,
    cpus: usize,
    /// Bytes of the busiest CPU and of all.
    busiest: u64,
    total: u64,
    /// Events of all CPUs, when they were counted.
    events: Option<u64>,
    /// How long the recorder had run.
    sampled: Duration,
}

impl Estimate {
    /// From the snapshot below `trace`, taken `sampled` after the recorder started.
    pub(crate) fn measure(trace: &Path, buffers: Buffers, sampled: Duration) -> Result<Self> {
        let mut sizes = Vec::new();
        let kernel = trace.join("kernel");
        for entry in fs::read_dir(&kernel)
            .with_context(|| kernel.display().to_string())?
            .flatten()
        {
            let name = entry.file_name();
            let cpu = name
                .to_string_lossy()
                .rsplit_once('_')
                .map(|(_, cpu)| cpu.parse::<u32>());
            if let (Some(Ok(_)), Ok(meta)) = (cpu, entry.metadata()) {
                sizes.push(meta.len());
            }
        }
        let total = sizes.iter().sum();
        Ok(Self {
            buffers,
            cpus: sizes.len(),
            busiest: sizes.iter().copied().max().unwrap_or(0),
            total,
            events: if total <= COUNT_UP_TO {
                count(trace)
            } else {
                None
            },
            sampled,
        })
    }

    /// The bytes of one CPU that survive.
    fn kept(&self) -> u64 {
        let kept = self.buffers.num_subbuf.saturating_sub(1).max(1);
        kept * self.buffers.subbuf_size
    }

    /// Whether the ring was full before the sample ended: then the answer is an upper bound.
    fn wrapped(&self) -> bool {
        self.busiest >= self.kept()
    }

    /// The seconds it covers; none when nothing was traced.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let rate = self.busiest as f64 / self.sampled.as_secs_f64();
        (self.busiest > 0).then(|| self.kept() as f64 / rate)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.buffers;
        write!(
            f,
            "buffers: {} x {} on each of {} CPUs",
            b.num_subbuf,
            bytes(b.subbuf_size),
            self.cpus
        )?;
        let Some(seconds) = self.seconds() else {
            return write!(f, "; nothing happened yet, so no estimate");
        };
        let bound = if self.wrapped() { "at most" } else { "about" };
        write!(f, " remember {bound} {seconds:.1} s\n  (")?;
        if let Some(events) = self.events.filter(|n| *n > 0) {
            let rate = events as f64 / self.sampled.as_secs_f64();
            write!(f, "{rate:.0} events/s of {} bytes, ", self.total / events)?;
        }
        write!(
            f,
            "measured over {:.1} s; busier is shorter)",
            self.sampled.as_secs_f64()
        )
    }
}

/// How many events a trace holds; `None` when it cannot be read.
fn count(trace: &Path) -> Option<u64> {
    let mut reader = lt_ctf::Reader::open(trace).ok()?;
    let mut events = 0;
    while let Some(item) = reader.next().ok()? {
        events += u64::from(matches!(item, lt_ctf::Item::Event(_)));
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(busiest: u64) -> Estimate {
        Estimate {
            buffers: Buffers {
                subbuf_size: 1 << 20,
                num_subbuf: 4,
            },
            cpus: 2,
            busiest,
            total: busiest + 1000,
            events: Some(3000),
            sampled: Duration::from_secs(1),
        }
    }

    #[test]
    fn the_busiest_cpu_decides() {
        let e = estimate(300 << 10);
        assert!((e.seconds().unwrap() - 10.24).abs() < 0.01);
        let text = e.to_string();
        assert!(
            text.starts_with("buffers: 4 x 1 MiB on each of 2 CPUs remember about 10.2 s\n"),
            "{text}"
        );
        assert!(text.contains("3000 events/s of 102 bytes"), "{text}");
        assert!(text.lines().all(|l| l.len() < 80));
    }

    #[test]
    fn a_full_ring_gives_a_bound_and_an_empty_one_nothing() {
        assert!(estimate(3 << 20).to_string().contains("at most 1.0 s"));
        assert_eq!(estimate(0).seconds(), None);
    }
}
