// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result of reading a trace, with the reasons why it may be incomplete.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use lt_common::out::{self, note};
use lt_model::Model;

use super::several::Gap;

/// The result of reading a trace.
pub(crate) struct Told {
    pub(crate) model: Model,
    /// Whether the trace has sched_switch.
    pub(super) switches: bool,
    /// Whether the trace has sched_waking.
    pub(super) wakings: bool,
    /// Whether the trace has wakeups: sched_waking or sched_wakeup.
    pub(super) wakeups: bool,
    /// Whether the trace has system calls.
    pub(super) calls: bool,
    pub(super) events: u64,
    pub(crate) lost: u64,
    /// Missing packets, with an unknown number of events.
    pub(crate) packets: u64,
    /// Number of packets that could be read only in part.
    pub(super) damaged: u64,
    /// Whether the trace is still being written.
    pub(super) grew: bool,
    /// Gaps between traces that were recorded one after the other.
    pub(super) gaps: Vec<Gap>,
    /// The error about the first part that could not be read.
    pub(crate) fault: Option<lt_ctf::Error>,
    pub(super) took: Duration,
    /// Difference between the time since 1970 and CLOCK_MONOTONIC, ns, if the trace records it.
    pub(crate) epoch: Option<i128>,
    /// What can be read again after this run.
    pub(crate) saved: Saved,
}

/// What can be read again after the run that has read a trace.
#[derive(Debug)]
pub(crate) enum Saved {
    /// The trace in this directory.
    Trace(PathBuf),
    /// The trace in this directory, and the `alert.json` of its capture.
    Capture(PathBuf),
    /// Nothing: `why` without -o removes the trace and the alerts.
    Nothing,
}

impl Saved {
    /// The directory of the trace.
    pub(crate) fn trace(&self) -> Option<&Path> {
        match self {
            Self::Trace(trace) | Self::Capture(trace) => Some(trace),
            Self::Nothing => None,
        }
    }
}

impl Told {
    /// Returns `self`, or an error if the `trace` has no sched_switch.
    pub(crate) fn with_threads(self, trace: &Path) -> Result<Self> {
        match self.fault {
            _ if self.switches => Ok(self),
            Some(fault) => Err(fault.into()),
            None if self.events == 0 => bail!("{}: no event in this trace", trace.display()),
            None => bail!(
                "{}: no event sched_switch in this trace: it does not show which thread ran; record with -e sched_switch",
                trace.display()
            ),
        }
    }

    /// The time since 1970 of a time in CLOCK_MONOTONIC, ns, as in alerts. `None` if the trace does not record it.
    pub(crate) fn since_1970(&self, time: u64) -> Option<Duration> {
        let since = self.epoch? + i128::from(time);
        Some(Duration::from_nanos(u64::try_from(since).ok()?))
    }

    /// The time of day in UTC of a time in CLOCK_MONOTONIC, ns. `None` if the trace does not record it.
    pub(crate) fn time_of_day(&self, time: u64) -> Option<String> {
        let since = self.since_1970(time)?;
        Some(lt_common::clock::of_day(since.as_secs()))
    }

    /// As [`Self::time_of_day`], with milliseconds: `14:03:17.120`.
    pub(crate) fn instant_of_day(&self, time: u64) -> Option<String> {
        let (day, since) = (self.time_of_day(time)?, self.since_1970(time)?);
        Some(format!("{day}.{:03}", since.subsec_millis()))
    }

    /// Whether the trace has no event.
    pub(crate) fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Whether the activity of threads is recorded.
    pub(crate) fn has_threads(&self) -> bool {
        self.switches
    }

    /// Reasons why the result may be incomplete.
    pub(crate) fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.lost > 0 {
            caveats.push(format!(
                "the tracer lost {} events, so the result may be incomplete: record with larger buffers",
                out::thousands(self.lost)
            ));
        }
        if self.packets > 0 {
            caveats.push(format!(
                "{} are missing, so the result may be incomplete: record with larger buffers",
                out::plural(
                    usize::try_from(self.packets).unwrap_or(usize::MAX),
                    "packet"
                )
            ));
        }
        if let Some(first) = self.gaps.first() {
            caveats.push(format!(
                "nothing is recorded between the traces: on CPU {} from {} to {}{}",
                first.cpu,
                first.from,
                first.until,
                match self.gaps.len() {
                    1 => String::new(),
                    n => format!(", and {}", out::plural(n - 1, "other time")),
                }
            ));
        }
        // `sched_wakeup` may be recorded on the CPU where the thread is queued, which need not be the waker's.
        if self.switches && self.wakeups && !self.wakings {
            caveats.push(
                "no event sched_waking in this trace: if another CPU woke a thread, the result may name \
                 the thread that ran on the CPU of sched_wakeup instead; record with -e sched_waking"
                    .into(),
            );
        }
        if self.grew {
            caveats.push(
                "the trace is still being written: only the part that existed was read".into(),
            );
        }
        if let Some(fault) = &self.fault {
            let part = match self.damaged {
                0 | 1 => "part of the trace".into(),
                n => format!("the ends of {} packets of the trace", out::thousands(n)),
            };
            let first = if self.damaged > 1 { "the first: " } else { "" };
            caveats.push(format!(
                "{part} cannot be read, so the result may be incomplete: {first}{fault}"
            ));
        }
        caveats
    }

    /// The kinds of events about threads and waits that the trace lacks, and how to record them.
    pub(crate) fn unrecorded(&self) -> Vec<&'static str> {
        let wakeups = "no event sched_waking in this trace: it does not show what ended a wait; \
                       record with -e sched_waking";
        let calls = "no system calls in this trace: it does not show in which call a thread was; \
                     record with latency-tracker record --events-for delays";
        let all = [(self.wakeups, wakeups), (self.calls, calls)];
        all.into_iter()
            .filter(|(has, _)| !has)
            .map(|(_, text)| text)
            .collect()
    }

    /// Times between traces in which a CPU was not recorded: the CPU, start and end.
    pub(crate) fn between(&self) -> impl Iterator<Item = (u32, (u64, u64))> {
        let gaps = self.gaps.iter();
        gaps.map(|gap| (gap.cpu, (gap.from, gap.until)))
    }

    /// Prints the caveats.
    pub(crate) fn complain(&self) {
        self.caveats().iter().for_each(|caveat| note(caveat));
    }

    /// A result with a given model, without a trace.
    #[cfg(test)]
    pub(crate) fn made(model: Model, lost: u64) -> Self {
        Self {
            model,
            switches: true,
            wakings: true,
            wakeups: true,
            calls: true,
            events: 0,
            lost,
            packets: 0,
            damaged: 0,
            grew: false,
            gaps: Vec::new(),
            fault: None,
            took: Duration::ZERO,
            epoch: None,
            saved: Saved::Trace("TRACE".into()),
        }
    }

    pub(crate) fn say_how_fast(&self) {
        let rate = self.events as f64 / self.took.as_secs_f64().max(1e-9);
        note(&format!(
            "{} events in {:.2} s, {} a second",
            out::thousands(self.events),
            self.took.as_secs_f64(),
            out::thousands(rate as u64)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A result as from a trace of `perf record -e sched:sched_switch,sched:sched_wakeup`.
    #[test]
    fn without_wakings_a_waker_may_be_another_thread() {
        let mut told = Told::made(Model::default(), 0);
        assert_eq!(told.caveats(), [""; 0]);
        told.wakings = false;
        let said = told.caveats();
        assert!(
            said.len() == 1 && said[0].starts_with("no event sched_waking in this trace: if"),
            "{said:?}"
        );
        // No waker is named.
        told.wakeups = false;
        assert_eq!(told.caveats(), [""; 0]);
    }

    #[test]
    fn an_alert_has_a_time_of_day_if_the_trace_records_it() {
        let mut told = Told::made(Model::default(), 0);
        assert_eq!(told.time_of_day(5), None);
        told.epoch = Some(86_400_000_000_000);
        let clock = told.time_of_day(3_723_999_999_999);
        assert_eq!(clock.as_deref(), Some("01:02:03"));
        let instant = told.instant_of_day(3_723_045_999_999);
        assert_eq!(instant.as_deref(), Some("01:02:03.045"));
        told.epoch = Some(-6);
        assert_eq!(told.time_of_day(5), None);
    }
}
