// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Exports the counters of the instances to Prometheus or an OpenTelemetry collector.
//!
//! ```text
//!  /proc/latency_tracker  ->  Exporter   counters, gauges and a histogram for each instance
//!  captures of record,    ->             exemplars
//!  or their index
//!                             .page()    OpenMetrics or the older text, by the client's Accept
//!                             .push()    OTLP
//!                             Server     GET /metrics, a few connections at a time, each for a few seconds
//!                             Outbox     a bounded queue of OTLP messages, POSTed one after another
//! ```

mod captures;
mod counts;
mod format;
mod metrics;
mod otlp;
mod push;
mod readings;
mod server;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use lt_proc::{ProcError, ProcRoot};

pub use counts::{Counts, Signal};
pub use format::Format;
pub use otlp::{Record, Resource};
pub use push::{Endpoint, Outbox, UrlError};
pub use server::{CONNECTIONS, Server};

use captures::{Captures, Exemplars};
use metrics::Sample;
use readings::Top;

/// Reads the exported data.
#[derive(Debug)]
pub struct Exporter {
    root: ProcRoot,
    state: Mutex<(Top, Captures)>,
    counts: Option<Arc<Counts>>,
}

impl Exporter {
    /// Creates an exporter for the instances below `root`; at most `top` of them are named. The exemplars are the
    /// captures in a directory, or in the index if the directory may not be read.
    #[must_use]
    pub fn new(root: ProcRoot, top: usize, captures: PathBuf, index: Option<PathBuf>) -> Self {
        Self {
            root,
            state: Mutex::new((Top::new(top), Captures::new(captures, index))),
            counts: None,
        }
    }

    /// Also exports the delivery counters of the messages.
    #[must_use]
    pub fn with_counts(mut self, counts: Arc<Counts>) -> Self {
        self.counts = Some(counts);
        self
    }

    /// Checks whether the captures can be read or, if permission for them is missing, their index. If not, there are no
    /// exemplars.
    ///
    /// # Errors
    /// When the directory of captures cannot be read; if that is for lack of permission and there is an index, only
    /// when the index cannot be read, either.
    pub fn captures(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.exemplars().map(drop)
    }

    fn sample(&self) -> Result<Sample, ProcError> {
        // A thread that panicked here has left no partial state: each reading is replaced as a whole.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (top, captures) = &mut *state;
        Ok(Sample {
            readings: top.read(&self.root)?,
            // If the captures cannot be read, there are no exemplars.
            exemplars: captures.exemplars().unwrap_or_else(|_| Exemplars::new()),
            counts: self.counts.clone(),
        })
    }

    /// Returns the page. Without the module, `latency_tracker_loaded` is 0 and there are no instances.
    ///
    /// # Errors
    /// When the module's files cannot be read. An instance that is removed meanwhile is left out.
    pub fn page(&self, format: Format) -> Result<String, ProcError> {
        Ok(metrics::page(self.sample()?, format))
    }

    /// Queues the current metrics.
    ///
    /// # Errors
    /// See [`Exporter::page`].
    pub fn push(&self, resource: &Resource, outbox: &Outbox) -> Result<(), ProcError> {
        let (message, points) = otlp::metrics(&self.sample()?, resource, SystemTime::now());
        outbox.queue(Signal::Metrics, message, points);
        Ok(())
    }
}
