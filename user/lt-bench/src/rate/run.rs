// SPDX-License-Identifier: GPL-2.0 OR MIT

//! One run: generates events at a rate, and counts the recorded ones. It has its own session, so
//! LTTng's counters start at 0. The session and the trace are removed when it ends, on
//! every path.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use lt_common::lttng::recording::{Recording, Source, Told, Wanted};
use lt_common::out;
use lt_common::wait::{Signals, Wake};
use serde::Serialize;

use super::args::{Kind, Pace, RateArgs};
use super::count::{self, Kept, interrupted};
use super::emit::{self, Made, Plan};
use super::ust::{self, Ust};
use crate::clock::Clock;
use crate::hold::{START, Subject};

/// How many times the events of a run fill the buffers, if [`LONGEST`] permits it.
const FILLS: u64 = 2;
/// Maximum length of a run, as a multiple of --time.
const LONGEST: u64 = 10;

/// The result of a run. Its rates count our own events; its numbers of events count LTTng's.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Run {
    /// Requested events per second; `None` for full rate.
    pub(super) asked: Option<u64>,
    /// The actual rate.
    pub(super) made: u64,
    /// How long events were generated, ns.
    time: u64,
    /// Events that were generated.
    pub(super) events: u64,
    /// Events in the trace.
    pub(super) kept: u64,
    /// Events that are missing from the trace.
    pub(super) missing: u64,
    /// Events that LTTng reports as discarded.
    pub(super) discarded: u64,
    /// Packets that LTTng reports as lost.
    pub(super) lost_packets: u64,
    /// Losses according to the trace.
    pub(super) told_by_trace: u64,
    /// Missing events that neither LTTng's counter nor the trace reports.
    pub(super) untold: u64,
    /// Bytes of the trace.
    pub(super) bytes: u64,
    /// How many times the events would fill the buffers of the CPU. Below 1, nothing is lost even
    /// without a reader.
    pub(super) fills: f64,
    pub(super) lossless: bool,
}

impl Run {
    fn new(
        asked: Option<u64>,
        made: &Made,
        per: u64,
        buffers: u64,
        kept: Kept,
        told: Told,
    ) -> Self {
        let events = made.events * per;
        let missing = events.saturating_sub(kept.events);
        let each = kept.bytes as f64 / kept.events.max(1) as f64;
        let mut run = Self {
            asked,
            made: made.rate(),
            time: made.time,
            events,
            kept: kept.events,
            missing,
            discarded: told.discarded,
            lost_packets: told.packets,
            told_by_trace: kept.lost,
            untold: missing.saturating_sub(told.discarded.max(kept.lost)),
            bytes: kept.bytes,
            fills: events as f64 * each / buffers as f64,
            lossless: false,
        };
        run.lossless = missing == 0 && run.told() == 0;
        run
    }

    /// Returns the reported losses of all kinds.
    fn told(&self) -> u64 {
        self.discarded + self.lost_packets + self.told_by_trace
    }

    /// Whether the trace has more events than were generated.
    pub(super) fn too_many(&self) -> bool {
        self.kept > self.events
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = out::thousands;
        match self.asked {
            Some(rate) => write!(f, "{}/s", n(rate))?,
            None => write!(f, "at full rate")?,
        }
        write!(f, ": made {}/s, {} events", n(self.made), n(self.events))?;
        match self.lossless {
            true => write!(f, ", nothing lost")?,
            false => write!(
                f,
                ", {} missing (LTTng reports {})",
                n(self.missing),
                n(self.discarded)
            )?,
        }
        write!(f, ", buffers filled {:.1} times", self.fills)
    }
}

/// Settings that all runs share.
pub(super) struct Runner<'a> {
    pub(super) args: &'a RateArgs,
    pub(super) cpu: u32,
    pub(super) clock: &'a Clock,
    pub(super) signals: &'a Signals,
    /// The directory for traces.
    pub(super) traces: &'a Path,
    /// The name of the session.
    pub(super) session: &'a str,
    /// The rate without LTTng, which is the highest possible.
    pub(super) fastest: u64,
    /// The process that generates user-space events.
    pub(super) ust: Option<RefCell<Ust>>,
}

impl Kind {
    /// Returns how many events LTTng records for one of ours.
    pub(super) fn per(self) -> u64 {
        match self {
            Self::Syscall => 2,
            Self::Kernel | Self::Ust => 1,
        }
    }

    /// Returns the approximate number of bytes in a trace for one of our events.
    fn bytes(self) -> u64 {
        match self {
            Self::Syscall => 24,
            Self::Kernel => 48,
            Self::Ust => 16,
        }
    }
}

impl Runner<'_> {
    /// Returns the size of the buffers of a CPU, in bytes.
    fn buffers(&self) -> u64 {
        let buffers = self.args.buffers();
        buffers.num_subbuf * buffers.subbuf_size
    }

    /// Returns the approximate size of the largest trace.
    pub(super) fn largest(&self) -> u64 {
        let bytes = self.args.kind.bytes();
        if let Some(events) = self.args.events {
            return events.saturating_mul(bytes);
        }
        let rate = match self.args.rate {
            Some(Pace::Events(rate)) => rate.min(self.fastest),
            _ => self.fastest,
        };
        let second = rate.saturating_mul(bytes);
        let in_time = |ns: u64| (u128::from(second) * u128::from(ns) / 1_000_000_000) as u64;
        let time = in_time(self.args.time.0);
        let longest = in_time(self.args.time.0.saturating_mul(LONGEST));
        time.max(longest.min(FILLS * self.buffers()))
    }

    fn plan(&self, asked: Option<u64>) -> Plan {
        let gap = asked.map(|rate| 1e9 / rate as f64);
        match self.args.events {
            Some(events) => Plan {
                gap,
                length: u64::MAX,
                least: 0,
                longest: u64::MAX,
                most: events,
            },
            None => Plan {
                gap,
                length: self.args.time.0,
                least: FILLS * self.buffers() / self.args.kind.bytes(),
                longest: self.args.time.0.saturating_mul(LONGEST),
                most: u64::MAX,
            },
        }
    }

    /// Generates events for this time, without LTTng.
    pub(super) fn untraced(&self, time: Duration) -> Result<Made> {
        let length = time.as_nanos() as u64;
        let plan = Plan {
            gap: None,
            length,
            least: 0,
            longest: length,
            most: self.args.events.unwrap_or(u64::MAX),
        };
        Ok(self.make(&plan)?.unwrap_or_default())
    }

    /// Performs a run; `None` if a signal ended it.
    pub(super) fn run(
        &self,
        read_timer: Duration,
        asked: Option<u64>,
    ) -> Result<Option<(Run, Made)>> {
        let kind = self.args.kind;
        let trace = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(self.traces)?;
        let pid = self
            .ust
            .as_ref()
            .map_or_else(std::process::id, |ust| ust.borrow().pid());
        let source = match kind {
            Kind::Syscall => Source::Syscalls("getppid"),
            Kind::Kernel => Source::Tracepoints("signal_generate"),
            Kind::Ust => Source::User(ust::EVENT),
        };
        let wanted = Wanted {
            pid: Some(pid),
            sources: &[source],
            buffers: self.args.buffers(),
            format: None,
            read_timer,
        };
        if interrupted(self.signals)? {
            return Ok(None);
        }
        let recording = Recording::start(self.session, trace.path(), &wanted)?;
        let Some(made) = self.make(&self.plan(asked))? else {
            return Ok(None);
        };
        let told = recording.stop()?;
        drop(recording);
        let Some(kept) = count::count(trace.path(), kind, self.signals)? else {
            return Ok(None);
        };
        if made.events == 0 {
            bail!("no event was made; please report this");
        }
        let run = Run::new(asked, &made, kind.per(), self.buffers(), kept, told);
        Ok(Some((run, made)))
    }

    /// Generates events on the CPU under test, in a separate thread or, for events of user space, in a separate
    /// process. `None` if a signal ended it.
    fn make(&self, plan: &Plan) -> Result<Option<Made>> {
        if let Some(ust) = &self.ust {
            return ust.borrow_mut().make(plan, self.signals);
        }
        let (stop, started) = (AtomicBool::new(false), AtomicBool::new(false));
        let subject = Subject::default();
        let (cpu, args, clock) = (self.cpu, self.args, self.clock);
        let begin = Instant::now();
        let mut signalled = false;
        let made = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                subject.start(cpu, args.priority)?;
                started.store(true, Ordering::Relaxed);
                Ok(emit::emit(args.kind, clock, plan, &stop))
            });
            let mut watched = Ok(());
            while !thread.is_finished() {
                let next = Instant::now() + Duration::from_millis(5);
                match self.signals.wait(None, Some(next)) {
                    Ok(Wake::Timeout | Wake::Ready) => {}
                    Ok(Wake::Signal) => signalled = true,
                    Err(error) => watched = Err(error),
                }
                let waits = !started.load(Ordering::Relaxed);
                if waits && begin.elapsed() > START {
                    watched = Err(anyhow!(
                        "the thread that generates events does not get CPU {}: does a task with a higher priority have it?",
                        self.cpu
                    ));
                }
                if signalled || watched.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    if waits && !thread.is_finished() {
                        subject.rescue();
                    }
                }
            }
            let joined = thread.join();
            let made: Result<Made> = joined.unwrap_or_else(|_| {
                Err(anyhow!(
                    "the thread that generates events has failed; please report this"
                ))
            });
            watched.and(made)
        })?;
        Ok((!signalled).then_some(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(events: u64, kept: u64, lost: u64, told: Told) -> Run {
        let made = Made {
            events,
            time: 1_000_000_000,
            ..Made::default()
        };
        let kept = Kept {
            events: kept,
            lost,
            bytes: 1000,
        };
        Run::new(None, &made, 2, 500, kept, told)
    }

    #[test]
    fn a_run_is_lossless_only_if_no_counter_shows_a_loss() {
        let fine = Told::default();
        let whole = run(10, 20, 0, fine);
        assert!(whole.lossless && !whole.too_many());
        assert_eq!((whole.made, whole.events, whole.fills), (10, 20, 2.0));
        let discarded = Told {
            discarded: 3,
            packets: 0,
        };
        let lost = run(10, 17, 3, discarded);
        assert!(!lost.lossless && lost.untold == 0);
        assert_eq!(
            (lost.missing, lost.discarded, lost.told_by_trace),
            (3, 3, 3)
        );
        let packets = Told {
            discarded: 0,
            packets: 1,
        };
        assert!(!run(10, 20, 0, packets).lossless);
        assert!(!run(10, 20, 1, fine).lossless);
    }

    #[test]
    fn an_unreported_loss_is_found() {
        let silent = run(10, 19, 0, Told::default());
        assert!(!silent.lossless && silent.untold == 1);
        assert!(run(10, 21, 0, Told::default()).too_many());
    }

    #[test]
    fn a_run_is_shown_in_a_line() {
        let text = run(
            1000,
            1900,
            100,
            Told {
                discarded: 100,
                packets: 0,
            },
        )
        .to_string();
        assert!(
            text.starts_with(
                "at full rate: made 1,000/s, 2,000 events, 100 missing (LTTng reports 100)"
            ),
            "{text}"
        );
    }
}
