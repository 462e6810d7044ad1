// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Estimates how many seconds the flight recorder covers and how many events per second it records, or what a
//! recording to disk will cost.
//!
//! buffer = (sub-buffers - 1) x their size, per CPU; time = buffer / bytes per second. One sub-buffer does not count:
//! it is always being overwritten. The rate is measured: the recorder runs for about a second, then a snapshot shows
//! what was written. The busiest CPU's ring covers the shortest time, so it gives the answer. On a machine that gets
//! busier later, the ring covers less. An explanation reports a trace that starts too late.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use lt_common::lttng::Buffers;
use lt_common::lttng::events::matches;
use lt_common::out::bytes;
use lt_proc::Nanos;

/// Events are counted in samples up to this size; larger samples are measured in bytes only.
const COUNT_UP_TO: u64 = 64 << 20;

/// Number of events in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) all: u64,
    /// Number of these events that `--lean` leaves out.
    extra: u64,
}

/// The contents of a sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    buffers: Buffers,
    cpus: usize,
    /// Bytes of the busiest CPU, and of all CPUs.
    busiest: u64,
    total: u64,
    /// Events of all CPUs, if they were counted.
    events: Option<Count>,
    /// Whether there are events that `--lean` would leave out.
    has_extra: bool,
    /// Running time of the recorder at the sample.
    sampled: Duration,
}

impl Estimate {
    /// Measures the trace in the directory `trace`. `sampled` is the running time of the recorder at this sample, and
    /// `extra` are the events that `--lean` leaves out.
    pub(crate) fn measure(
        trace: &Path,
        buffers: Buffers,
        sampled: Duration,
        extra: &[&str],
    ) -> Result<Self> {
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
                count(trace, extra)
            } else {
                None
            },
            has_extra: !extra.is_empty(),
            sampled,
        })
    }

    /// Number of bytes that the ring of one CPU keeps.
    fn kept(&self) -> u64 {
        let kept = self.buffers.num_subbuf.saturating_sub(1).max(1);
        kept * self.buffers.subbuf_size
    }

    /// Whether the ring was full before the sample ended: then [`Self::seconds`] is an upper bound.
    fn wrapped(&self) -> bool {
        self.busiest >= self.kept()
    }

    /// The number of seconds covered; `None` if nothing was traced.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let rate = self.busiest as f64 / self.sampled.as_secs_f64();
        (self.busiest > 0).then(|| self.kept() as f64 / rate)
    }

    /// Describes the cost of a recording to disk, of which this is a sample; with `time`, also the size of a recording
    /// of that length. `lossy`: LTTng discarded events of the sample.
    pub(super) fn of_recording(&self, lossy: bool, time: Option<Nanos>) -> String {
        let b = self.buffers;
        let rate = |n: u64| n as f64 / self.sampled.as_secs_f64();
        let written = rate(self.total);
        let events = match self.events {
            Some(events) => format!("{:.0} events/s, ", rate(events.all)),
            None => String::new(),
        };
        let whole = match time {
            Some(time) => {
                let size = written * Duration::from(time).as_secs_f64();
                format!(", {} in {}", bytes(size as u64), time.exact())
            }
            None => String::new(),
        };
        format!(
            "buffers: {} x {} on each of {} CPUs, {} of memory\n\
             cost: {} {events}{}/s on disk{whole}\n  \
             (estimated from {:.1} s of recording; more when the machine is busier)",
            b.num_subbuf,
            bytes(b.subbuf_size),
            self.cpus,
            bytes(b.num_subbuf * b.subbuf_size * self.cpus as u64),
            if lossy { "more than" } else { "about" },
            bytes(written as u64),
            self.sampled.as_secs_f64()
        )
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
            return write!(f, "; no events were recorded, so there is no estimate");
        };
        let bound = if self.wrapped() { "at most" } else { "about" };
        write!(
            f,
            " cover {bound} {seconds:.1} s\n  (measured over {:.1} s; less when the machine is busier)",
            self.sampled.as_secs_f64()
        )?;
        let rate = |n: u64| n as f64 / self.sampled.as_secs_f64();
        let bound = if self.wrapped() { "more than " } else { "" };
        let Some(events) = self.events.filter(|n| n.all > 0) else {
            let rate = bytes(rate(self.total) as u64);
            return write!(f, "\ncost: {bound}{rate}/s; the events were not counted");
        };
        write!(
            f,
            "\ncost: {bound}{:.0} events/s of {} bytes",
            rate(events.all),
            self.total / events.all
        )?;
        if self.has_extra {
            let share = 100.0 * events.extra as f64 / events.all as f64;
            write!(
                f,
                "; with --lean {:.0} events/s ({share:.0} % fewer)",
                rate(events.all - events.extra)
            )?;
        }
        Ok(())
    }
}

/// Counts all events of a trace, and the events that `extra` names; `None` if the trace cannot be read.
pub(super) fn count(trace: &Path, extra: &[&str]) -> Option<Count> {
    let mut reader = lt_ctf::Reader::open(trace).ok()?;
    let is_extra = |class: &lt_ctf::Class| extra.iter().any(|event| matches(event, &class.name));
    let is_extra: Vec<bool> = reader.classes().map(is_extra).collect();
    let mut count = Count { all: 0, extra: 0 };
    while let Some(item) = reader.next().ok()? {
        if let lt_ctf::Item::Event(event) = item {
            count.all += 1;
            count.extra += u64::from(is_extra.get(event.class_index()) == Some(&true));
        }
    }
    Some(count)
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
            events: Some(Count {
                all: 3000,
                extra: 1200,
            }),
            has_extra: true,
            sampled: Duration::from_secs(1),
        }
    }

    #[test]
    fn the_busiest_cpu_decides() {
        let e = estimate(300 << 10);
        assert!((e.seconds().unwrap() - 10.24).abs() < 0.01);
        let text = e.to_string();
        assert!(
            text.starts_with("buffers: 4 x 1 MiB on each of 2 CPUs cover about 10.2 s\n"),
            "{text}"
        );
        let cost = "\ncost: 3000 events/s of 102 bytes; with --lean 1800 events/s (40 % fewer)";
        assert!(text.ends_with(cost), "{text}");
        assert!(text.lines().all(|l| l.len() < 80));
    }

    #[test]
    fn a_sample_that_is_too_large_to_count_is_measured_in_bytes() {
        let uncounted = Estimate {
            events: None,
            ..estimate(1 << 20)
        };
        let text = uncounted.to_string();
        let cost = format!(
            "\ncost: {}/s; the events were not counted",
            bytes((1 << 20) + 1000)
        );
        assert!(text.ends_with(&cost), "{text}");
    }

    #[test]
    fn a_recording_costs_memory_and_disk_space() {
        let mut sample = estimate(300 << 10);
        let text = sample.of_recording(false, Some(Nanos(10_000_000_000)));
        assert_eq!(
            text,
            "buffers: 4 x 1 MiB on each of 2 CPUs, 8 MiB of memory\n\
             cost: about 3000 events/s, 301.0 KiB/s on disk, 2.9 MiB in 10s\n  \
             (estimated from 1.0 s of recording; more when the machine is busier)"
        );
        assert!(text.lines().all(|l| l.len() < 80));
        sample.events = None;
        let text = sample.of_recording(true, None);
        assert!(
            text.contains("\ncost: more than 301.0 KiB/s on disk\n"),
            "{text}"
        );
    }

    #[test]
    fn a_lean_run_does_not_report_what_lean_saves() {
        let lean = Estimate {
            has_extra: false,
            ..estimate(300 << 10)
        };
        assert!(lean.to_string().ends_with("3000 events/s of 102 bytes"));
    }

    #[test]
    fn a_full_ring_gives_a_bound_and_an_empty_ring_gives_nothing() {
        let full = estimate(3 << 20).to_string();
        assert!(full.contains("at most 1.0 s"), "{full}");
        assert!(full.contains("cost: more than 3000 events/s"), "{full}");
        assert_eq!(estimate(0).seconds(), None);
    }
}
