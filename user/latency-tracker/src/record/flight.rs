// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The flight recorder of a run: LTTng's session daemon, if none was running, and the session.
//!
//! The daemon can end during the run: killed by hand, by the OOM killer, or by an upgrade. Another program can destroy
//! the session, or stop it. Recorded events are then lost, or new events are missing. [`Flight::revive`] detects this,
//! and restarts the recording.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use lt_common::capture::{Captures, Partial};
use lt_common::clock;
use lt_common::lttng::events::{Known, is_expected};
use lt_common::lttng::{self, Buffers, Daemon, Format, Session, State};
use lt_common::out::note;

use super::leftovers::Note;

/// The events to record, and the buffers.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// Part of the session's name: the name of the instance, or of the command.
    pub(crate) name: &'a str,
    pub(crate) buffers: Buffers,
    /// All events, patterns included.
    pub(crate) events: Vec<String>,
    /// The events that the user requested.
    pub(crate) asked: &'a [String],
    pub(crate) format: Option<Format>,
}

/// A running flight recorder.
#[derive(Debug)]
pub(crate) struct Flight {
    // These fields are dropped in this order: the daemon must outlive the session.
    session: Option<Session>,
    daemon: Daemon,
    name: String,
    buffers: Buffers,
    events: Vec<String>,
    format: Option<Format>,
    /// PID of the session daemon that serves the session: ours, or one that was already running.
    served_by: Option<i32>,
    /// When the session was last seen recording, in time since boot.
    seen: Duration,
}

impl Flight {
    /// Starts the recorder with those events of the plan for which LTTng has probes, as its daemon reports. A missing
    /// event is an error if the user requested it. A missing default event is reported, because explanations lack its
    /// contents.
    pub(crate) fn start(plan: Plan<'_>, output: &Path, left: &mut Note) -> Result<Self> {
        let mut flight = Self {
            session: None,
            daemon: Daemon::ensure(|pid| left.has_daemon(pid))?,
            name: lttng::session_name(plan.name, std::process::id()),
            buffers: plan.buffers,
            events: plan.events,
            format: plan.format,
            served_by: None,
            seen: clock::since_boot(),
        };
        let known = Known::ask()?;
        known.check(plan.asked)?;
        let (events, missing) = known.split(std::mem::take(&mut flight.events));
        if events.is_empty() {
            bail!("LTTng has probes for none of the events; `latency-tracker check` shows why");
        }
        flight.events = events;
        say_missing(missing);
        left.update(|owned| owned.session = Some(flight.name.clone()));
        flight.record(output)?;
        Ok(flight)
    }

    fn record(&mut self, output: &Path) -> Result<()> {
        let session = Session::start(&self.name, output, self.buffers, &self.events, self.format)?;
        self.session = Some(session);
        self.served_by = lttng::daemon_pid();
        self.seen = clock::since_boot();
        Ok(())
    }

    /// Takes a snapshot; the capture has no number yet.
    pub(crate) fn snapshot(&self, captures: &Captures) -> Result<Partial> {
        let session = self.session.as_ref();
        captures.snapshot(session.context("the flight recorder has ended")?)
    }

    /// Sends a snapshot to the relay daemon at `url`, as `name`.
    pub(crate) fn send(&self, name: &str, url: &str) -> Result<()> {
        let session = self.session.as_ref();
        session
            .context("the flight recorder has ended")?
            .send(name, url)
    }

    /// Dates the events in later snapshots by the present time of day.
    pub(crate) fn set_date(&self) -> Result<()> {
        self.session.as_ref().map_or(Ok(()), Session::set_date)
    }

    /// PID of the session daemon that serves the session.
    pub(crate) fn served_by(&self) -> Option<i32> {
        self.served_by
    }

    /// The name of the session.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Restarts the recording if it has stopped, and returns a description of the gap.
    pub(crate) fn revive(&mut self, output: &Path, left: &mut Note) -> Result<Option<String>> {
        let (name, seen) = (&self.name, date(self.seen));
        let lost = |what: &str, restarted: &str| {
            let now = date(clock::since_boot());
            format!("{what} after {seen}: nothing was recorded until {now}, when {restarted} again")
        };
        let lost = match lttng::state(name)? {
            State::Recording => {
                self.seen = clock::since_boot();
                return Ok(None);
            }
            State::Stopped => {
                let session = self.session.as_ref();
                session
                    .context("the flight recorder has ended")?
                    .record(true)?;
                let what = format!("LTTng session {name} was stopped by another program");
                self.seen = clock::since_boot();
                lost(&what, "it was started")
            }
            State::Gone => {
                let (what, restarted) = match lttng::daemon_pid() == self.served_by {
                    true => (
                        format!("LTTng session {name} was destroyed by another program"),
                        "it was created",
                    ),
                    false => (
                        "LTTng's session daemon ended".to_string(),
                        "it and the session were started",
                    ),
                };
                if let Some(session) = self.session.take() {
                    session.gone();
                }
                self.daemon.revive(|pid| left.has_daemon(pid))?;
                self.record(output)?;
                lost(&what, restarted)
            }
        };
        Ok(Some(lost))
    }
}

/// The date of a time since boot. All dates are by the present time of day, even if it was set in between.
fn date(since_boot: Duration) -> String {
    let ago = clock::since_boot().saturating_sub(since_boot);
    let at = SystemTime::now().checked_sub(ago).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(at.max(UNIX_EPOCH)).to_string()
}

/// Reports these events as not recorded, except those that this architecture does not have.
pub(super) fn say_missing(mut missing: Vec<String>) {
    missing.retain(|event| is_expected(event));
    if !missing.is_empty() {
        note(&format!(
            "not recorded, because this LTTng has no probes for these events: {}",
            missing.join(", ")
        ));
    }
}
