// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A session that writes events to disk, through one channel, and counts losses.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Buffers, Format, end, format_option, lttng};

const CHANNEL: &str = "all";

/// The events, buffers and format of a recording.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The only process whose events are recorded; `None` for all processes.
    pub pid: Option<u32>,
    /// The events to record: either only of the kernel, or only of user space.
    pub sources: &'a [Source<'a>],
    /// The buffers of the channel.
    pub buffers: Buffers,
    /// The format of the trace; by default LTTng's own.
    pub format: Option<Format>,
    /// Wakeup period of the consumer. Must not be zero for a kernel channel: nothing else wakes its consumer, and
    /// destroying the session waits for the consumer.
    pub read_timer: Duration,
}

/// Event names, separated by commas.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// System calls.
    Syscalls(&'a str),
    /// Tracepoints of the kernel.
    Tracepoints(&'a str),
    /// Tracepoints of user space.
    User(&'a str),
}

/// Losses that the tracer reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// Discarded events.
    pub discarded: u64,
    /// Lost packets.
    pub packets: u64,
}

/// A session that records.
#[derive(Debug)]
pub struct Recording {
    name: String,
}

impl Recording {
    /// Creates and starts the session; a failure half-way leaves nothing behind.
    pub fn start(name: &str, output: &Path, wanted: &Wanted<'_>) -> Result<Self> {
        let output = output
            .to_str()
            .context("the name of the directory of the traces is not UTF-8")?;
        let format = format_option(wanted.format)?;
        lttng(
            ["create", name, "--output", output]
                .into_iter()
                .chain(format),
        )
        .output()?;
        let recording = Self {
            name: name.to_string(),
        };
        let in_session = format!("--session={name}");
        let channel = format!("--channel={CHANNEL}");
        let domain = match wanted.sources {
            [Source::User(_), ..] => "--userspace",
            _ => "--kernel",
        };
        lttng([
            "enable-channel",
            domain,
            &in_session,
            "--discard",
            &format!("--subbuf-size={}", wanted.buffers.subbuf_size),
            &format!("--num-subbuf={}", wanted.buffers.num_subbuf),
            &format!("--read-timer={}", wanted.read_timer.as_micros()),
            CHANNEL,
        ])
        .output()?;
        for source in wanted.sources {
            let (how, events) = match source {
                Source::Syscalls(events) => ("--syscall", events),
                Source::Tracepoints(events) | Source::User(events) => ("--tracepoint", events),
            };
            lttng(["enable-event", domain, &in_session, &channel, how, events]).output()?;
        }
        if let Some(pid) = wanted.pid {
            // LTTng tracks the kernel by PID or by virtual PID, and user space only by virtual PID.
            let pid = format!("--vpid={pid}");
            lttng(["track", domain, &in_session, &pid]).output()?;
        }
        lttng(["start", name]).output()?;
        Ok(recording)
    }

    /// Stops the session; the trace is complete afterwards.
    pub fn stop(&self) -> Result<Told> {
        lttng(["stop", &self.name]).output()?;
        told(&lttng(["--mi", "xml", "list", &self.name]).output()?)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        end(&self.name);
    }
}

/// Counters of the channels in the output of `lttng --mi xml list SESSION`.
fn told(xml: &str) -> Result<Told> {
    Ok(Told {
        discarded: super::sum_of("discarded_events", xml)?,
        packets: super::sum_of("lost_packets", xml)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_packets_are_told_apart() {
        let xml = "<command xmlns=\"https://lttng.org/xml/ns/lttng-mi\"><output><channels><channel><attributes>\
            <discarded_events>3</discarded_events><lost_packets>9</lost_packets></attributes></channel></channels>\
            </output></command>";
        let both = Told {
            discarded: 3,
            packets: 9,
        };
        assert_eq!(told(xml).unwrap(), both);
        assert!(told("Error").is_err());
    }
}
