// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `export`: serves the counters and histograms of all instances to Prometheus, and can also send
//! them to an OpenTelemetry collector; or prints them once.
//!
//! ```text
//!  this thread:     accepts connections (each has a thread), and queues the metrics every --interval
//!  with --alerts:   a thread that reads the alerts and queues them
//!  with --otlp:     a thread that sends the queue
//! ```

mod alerts;

use std::fmt::Display;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use lt_common::Outcome;
use lt_common::out::{self, note};
use lt_common::seconds::seconds;
use lt_common::wait::{Signals, Wake};
use lt_export::{Endpoint, Exporter, Format, Outbox, Resource, Server, Signal};
use lt_proc::{Nanos, ProcRoot};

use crate::record::{CAPTURES, INDEX};
use crate::service::Service;

/// The shortest time between messages with metrics.
const SHORTEST: Duration = Duration::from_secs(1);

/// Pause after a connection could not be accepted: if the process is out of file descriptors, the connection stays in
/// the queue.
const PAUSE: Duration = Duration::from_millis(100);

/// The shortest time between two notes about failures of one kind.
const QUIET: Duration = Duration::from_secs(60);

/// How long to wait for a collector at the end.
const PARTING: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Where to listen. Another machine needs an address that it can reach. There is no encryption and no password.
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9817"
    )]
    listen: SocketAddr,
    /// Print the page once, for example for the textfile collector of node_exporter, and end.
    #[arg(long, conflicts_with_all = ["listen", "otlp"])]
    once: bool,
    /// Name only the N instances with the most alerts; the sum of all others is called `other`.
    #[arg(long, value_name = "N", default_value = "100")]
    top: usize,
    /// Directory of captures, which are named as exemplars. For the default one, permission to read alerts is enough.
    #[arg(long, value_name = "DIR", default_value = CAPTURES)]
    captures: PathBuf,
    /// Also send the metrics to this OTLP receiver: `http://HOST[:PORT][/PATH]`, without /v1/metrics.
    #[arg(long, value_name = "URL")]
    otlp: Option<Endpoint>,
    /// How often to send the metrics.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = interval, requires = "otlp")]
    interval: Nanos,
    /// Also send each alert, as a log record. It has the name of the process.
    #[arg(long, requires = "otlp")]
    alerts: bool,
}

fn interval(text: &str) -> Result<Nanos, String> {
    match seconds(text)? {
        time if Duration::from(time) < SHORTEST => Err("expected 1s or more".into()),
        time => Ok(time),
    }
}

pub(crate) fn run(root: &ProcRoot, args: &ExportArgs) -> Result<Outcome> {
    let is_default = args.captures == Path::new(CAPTURES);
    let index = is_default.then(|| PathBuf::from(INDEX));
    let mut exporter = Exporter::new(root.clone(), args.top, args.captures.clone(), index);
    // This fails now if the files cannot be read. The module may be loaded later.
    let first = exporter.page(Format::Text)?;
    if args.once {
        out::line(first.trim_end())?;
        return Ok(Outcome::Fine);
    }
    let signals = Signals::catch()?;
    let server = Server::bind(args.listen).map_err(|error| {
        anyhow!(
            "cannot listen on {}: {error}; choose another address with --listen",
            args.listen
        )
    })?;
    let address = server.address().context("the address")?;
    if !address.ip().is_loopback() {
        note("anyone who can reach this address can read the counters");
    }
    if let Err(error) = exporter.captures() {
        let captures = args.captures.display();
        note(&format!("no exemplars: {captures}: {error}"));
    }
    let ready = File::from(OwnedFd::from(server.listener().try_clone()?));
    let service = Service::find();
    out::line(&format!("http://{address}/metrics (Ctrl-C ends)"))?;
    let outbox = args.otlp.clone().map(|url| Outbox::start(url, note));
    if let Some(outbox) = &outbox {
        exporter = exporter.with_counts(outbox.counts());
    }
    let exporter = Arc::new(exporter);
    let resource = resource();
    if let (true, Some(outbox)) = (args.alerts, &outbox) {
        alerts::start(root.clone(), outbox.clone(), resource.clone());
    }
    service.ready();
    let pages = Arc::clone(&exporter);
    let page: Arc<dyn Fn(Format) -> Result<String, String> + Send + Sync> =
        Arc::new(move |format| {
            let page = pages.page(format);
            page.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
        });
    let interval = Duration::from(args.interval);
    let mut due = outbox.is_some().then(Instant::now);
    let mut unread = Failures::new("no metrics", Instant::now());
    let mut refused = Failures::new("cannot accept a connection", Instant::now());
    loop {
        service.alive();
        if let (Some(outbox), Some(time)) = (&outbox, &mut due) {
            let now = Instant::now();
            if *time <= now {
                if let Err(error) = exporter.push(&resource, outbox) {
                    unread.add(&anyhow::Error::from(error));
                }
                *time = now + interval;
            }
        }
        for failures in [&mut unread, &mut refused] {
            failures.note(Instant::now());
        }
        let wakes = [due, unread.due(), refused.due()];
        let wake = wakes.into_iter().flatten().min();
        match signals.wait(Some(&ready), service.next(wake))? {
            Wake::Ready => {
                if let Err(error) = server.serve(&page) {
                    refused.add(&error);
                    if !signals.sleep(PAUSE)? {
                        break;
                    }
                }
            }
            Wake::Timeout => {}
            Wake::Signal => break,
        }
    }
    service.stopping();
    for mut failures in [unread, refused] {
        if let Some(due) = failures.due() {
            failures.note(due);
        }
    }
    if let Some(outbox) = outbox {
        let counts = outbox.counts();
        outbox.finish(PARTING);
        let dropped = [Signal::Metrics, Signal::Logs].map(|signal| counts.dropped(signal));
        if let [metrics, alerts] = dropped
            && metrics + alerts > 0
        {
            note(&format!(
                "not sent: {}, {}",
                out::plural(metrics as usize, "data point"),
                out::plural(alerts as usize, "alert")
            ));
        }
    }
    Ok(Outcome::Fine)
}

/// Failures of one kind. The first failure is noted at once, later failures as a sum: see [`QUIET`].
struct Failures {
    /// The consequence, with which each note begins.
    what: &'static str,
    /// The number since the last note.
    count: usize,
    /// The last error.
    error: String,
    /// The earliest time for the next note.
    next: Instant,
}

impl Failures {
    fn new(what: &'static str, now: Instant) -> Self {
        Self {
            what,
            count: 0,
            error: String::new(),
            next: now,
        }
    }

    fn add(&mut self, error: &impl Display) {
        self.count += 1;
        // The text includes the causes of the error.
        self.error = format!("{error:#}");
    }

    /// When a note is due.
    fn due(&self) -> Option<Instant> {
        (self.count > 0).then_some(self.next)
    }

    /// Prints a note if it is due.
    fn note(&mut self, now: Instant) {
        if let Some(text) = self.text(now) {
            note(&text);
        }
    }

    /// The text of the note, if it is due.
    fn text(&mut self, now: Instant) -> Option<String> {
        self.due().filter(|due| *due <= now)?;
        self.next = now + QUIET;
        let (what, error) = (self.what, &self.error);
        Some(match std::mem::take(&mut self.count) {
            1 => format!("{what}: {error}"),
            n => format!("{what}: {n} failures since the last note: {error}"),
        })
    }
}

fn resource() -> Resource {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Resource {
        host: host.trim().to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn failures_are_noted_at_once_and_then_at_most_once_a_minute() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut refused = Failures::new("cannot accept a connection", start);
        assert_eq!((refused.due(), refused.text(start)), (None, None));
        let one = "cannot accept a connection: other error";
        let error = io::Error::from(io::ErrorKind::Other);
        refused.add(&error);
        assert_eq!(refused.text(after(1)).as_deref(), Some(one));
        assert_eq!(refused.due(), None);
        for _ in 0..500 {
            refused.add(&error);
            assert_eq!(refused.text(after(60)), None);
        }
        assert_eq!(refused.due(), Some(after(61)));
        let sum = "cannot accept a connection: 500 failures since the last note: other error";
        assert_eq!(refused.text(after(61)).as_deref(), Some(sum));
        // A failure after a long time without one is noted at once.
        refused.add(&error);
        assert_eq!(refused.text(after(200)).as_deref(), Some(one));
        // A note names the causes of an error.
        let mut unread = Failures::new("no metrics", start);
        unread.add(&anyhow!("denied").context("stats"));
        let causes = "no metrics: stats: denied";
        assert_eq!(unread.text(start).as_deref(), Some(causes));
    }
}
