// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The flight recorder of a run: LTTng's session daemon, if none ran, and the session.
//!
//! The daemon can end while the run goes on: killed by hand, by the OOM killer, by an upgrade. The session and what it
//! had recorded are gone then. [`Flight::revive`] starts both again.

use std::path::Path;

use anyhow::{Context, Result};

use super::args::RecordArgs;
use super::capture::{Captures, Partial};
use super::leftovers::Note;
use crate::lttng::{self, Buffers, Daemon, Format, Session};

/// A running flight recorder.
#[derive(Debug)]
pub(crate) struct Flight {
    // Dropped in this order: the daemon stays while there is a session.
    session: Option<Session>,
    daemon: Daemon,
    name: String,
    buffers: Buffers,
    events: Vec<String>,
    format: Option<Format>,
}

impl Flight {
    /// Starts it, after checking the events of `-e`, which only the daemon knows.
    pub(crate) fn start(
        args: &RecordArgs,
        events: Vec<String>,
        output: &Path,
        left: &mut Note,
    ) -> Result<Self> {
        let mut flight = Self {
            session: None,
            daemon: Daemon::ensure()?,
            name: lttng::session_name(&args.name, std::process::id()),
            buffers: args.buffers(),
            events,
            format: args.trace_format,
        };
        left.update(|owned| owned.daemon = flight.daemon.started());
        if !args.events.is_empty() {
            lttng::check_events(&args.events)?;
        }
        left.update(|owned| owned.session = Some(flight.name.clone()));
        flight.record(output)?;
        Ok(flight)
    }

    fn record(&mut self, output: &Path) -> Result<()> {
        let session = Session::start(&self.name, output, self.buffers, &self.events, self.format)?;
        self.session = Some(session);
        Ok(())
    }

    /// Takes a snapshot; the capture has no number yet.
    pub(crate) fn snapshot(&self, captures: &Captures) -> Result<Partial> {
        let session = self.session.as_ref();
        captures.snapshot(session.context("the flight recorder has ended")?)
    }

    /// Starts the daemon and the session again if they are gone; whether they were.
    pub(crate) fn revive(&mut self, output: &Path, left: &mut Note) -> Result<bool> {
        if lttng::sessions().contains(&self.name) {
            return Ok(false);
        }
        if let Some(session) = self.session.take() {
            session.gone();
        }
        self.daemon.revive()?;
        left.update(|owned| owned.daemon = self.daemon.started());
        self.record(output)?;
        Ok(true)
    }
}
