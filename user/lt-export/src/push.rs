// SPDX-License-Identifier: GPL-2.0 OR MIT

//! OTLP over HTTP. Messages wait in a bounded queue, and a thread POSTs them one after another. If
//! the collector is down or busy, the thread retries later, as the specification requires. When the
//! queue is full, its oldest messages are dropped and counted.
//!
//! ```text
//!  queue() -> [oldest ... newest] -> POST -> 200                  sent
//!                |                    |  \-> 429, 502, 503, 504, no connection: again, later
//!                v                    v
//!             dropped              refused: dropped
//! ```

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::io::Read;
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message as _;
use thiserror::Error;

use crate::counts::{Counts, Signal};
use crate::otlp::{self, Record, Resource};

/// Maximum number of bytes in the queue; a single message may be larger.
const ROOM: usize = 4 << 20;

/// How long a collector may take for one message, in seconds.
const PATIENCE: u64 = 10;

/// The first pause between two tries of a message. The pause doubles with each try, up to [`LATER`].
const SOON: Duration = Duration::from_secs(1);
/// The longest pause between two tries, unless the collector requests another one. The actual pause is random, up to a
/// quarter longer or shorter.
const LATER: Duration = Duration::from_secs(60);

/// The longest pause that a collector may request.
const LATEST: Duration = Duration::from_secs(600);

/// Limits of a response, in bytes.
const STATUS_LINE: usize = 1024;
const HEADERS: usize = 8192;
const BODY: u64 = 65536;

/// Where a collector receives OTLP: `http://HOST[:PORT][/PATH]`, to which `/v1/metrics` and `/v1/logs` are added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(String);

/// Why a URL cannot be used for OTLP.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlError {
    /// Encryption is not built in.
    #[error("https is not supported; send to a collector on this machine that forwards with TLS")]
    Https,
    /// The URL has another form.
    #[error(
        "expected http://HOST[:PORT][/PATH] with a name or an IPv4 address, like http://localhost:4318"
    )]
    Shape,
}

impl FromStr for Endpoint {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        if url.starts_with("https://") {
            return Err(UrlError::Https);
        }
        let rest = url.strip_prefix("http://").ok_or(UrlError::Shape)?;
        let host = rest.split('/').next().unwrap_or_default();
        let (host, port) = host.split_once(':').unwrap_or((host, "80"));
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let is_path = |c: char| c.is_ascii_graphic() && !"?#".contains(c);
        let is_port = port.parse().is_ok_and(|port: u16| port > 0);
        if host.is_empty() || !host.chars().all(is_name) || !rest.chars().all(is_path) || !is_port {
            return Err(UrlError::Shape);
        }
        Ok(Self(url.trim_end_matches('/').to_string()))
    }
}

impl Endpoint {
    fn url(&self, signal: Signal) -> String {
        format!("{}/v1/{}", self.0, signal.name())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

struct Message {
    signal: Signal,
    body: Vec<u8>,
    /// Number of data points or alerts in it.
    items: u64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Message>,
    bytes: usize,
    /// The signal of the message that the thread sends, and the number of its items not counted yet.
    sending: Option<(Signal, u64)>,
    /// Set once the thread must end.
    ends: bool,
}

/// The queue, and the thread that sends.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("endpoint", &self.shared.endpoint)
            .finish_non_exhaustive()
    }
}

struct Shared {
    endpoint: Endpoint,
    queue: Mutex<Queue>,
    changed: Condvar,
    counts: Arc<Counts>,
    room: usize,
    soon: Duration,
    note: Box<dyn Fn(&str) + Send + Sync>,
}

impl Outbox {
    /// Starts the thread. `note` gets a line when the collector is down or refuses messages, and
    /// when it accepts them again.
    #[must_use]
    pub fn start(endpoint: Endpoint, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::with_limits(endpoint, note, ROOM, SOON)
    }

    fn with_limits(
        endpoint: Endpoint,
        note: impl Fn(&str) + Send + Sync + 'static,
        room: usize,
        soon: Duration,
    ) -> Self {
        let shared = Arc::new(Shared {
            endpoint,
            queue: Mutex::default(),
            changed: Condvar::new(),
            counts: Arc::default(),
            room,
            soon,
            note: Box::new(note),
        });
        let sender = Arc::clone(&shared);
        thread::spawn(move || sender.run());
        Self { shared }
    }

    /// Returns the delivery counters.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.shared.counts)
    }

    pub(crate) fn queue(&self, signal: Signal, body: Vec<u8>, items: u64) {
        let shared = &self.shared;
        let mut queue = shared.lock();
        queue.bytes += body.len();
        queue.waiting.push_back(Message {
            signal,
            body,
            items,
        });
        while queue.bytes > shared.room && queue.waiting.len() > 1 {
            if let Some(oldest) = queue.waiting.pop_front() {
                queue.bytes -= oldest.body.len();
                shared.counts.add_dropped(oldest.signal, oldest.items);
            }
        }
        shared.changed.notify_all();
    }

    /// Queues alerts, and counts alerts that were overwritten before they could be read.
    pub fn alerts(&self, records: &[Record], missed: u64, resource: &Resource) {
        self.shared.counts.add_dropped(Signal::Logs, missed);
        if !records.is_empty() {
            let body = otlp::logs(records, resource, SystemTime::now());
            self.queue(Signal::Logs, body, records.len() as u64);
        }
    }

    /// Waits until all messages are sent, for at most this time, and ends the thread. The remaining
    /// messages are dropped and counted, including a message that is still being sent.
    pub fn finish(self, time: Duration) {
        let end = Instant::now() + time;
        let mut queue = self.shared.lock();
        while queue.sending.is_some() || !queue.waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.ends = true;
        queue.bytes = 0;
        let sending = queue.sending.take();
        let waiting = queue.waiting.drain(..);
        let waiting = waiting.map(|message| (message.signal, message.items));
        for (signal, items) in sending.into_iter().chain(waiting) {
            self.shared.counts.add_dropped(signal, items);
        }
        self.shared.changed.notify_all();
    }
}

/// The outcome of an attempt to send.
enum Outcome {
    /// The collector has accepted the message, but rejected this many of its items, for this
    /// reason.
    Sent(u64, String),
    /// Try again, for this reason, after the pause that the collector requested or else after our own.
    Again(String, Option<Duration>),
    /// Do not try again, for this reason.
    Refused(String),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic leaves no partial state: each change is a single step.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the oldest message; `None` once the thread must end.
    fn next(&self) -> Option<Message> {
        let mut queue = self.lock();
        loop {
            queue.sending = None;
            if queue.ends {
                return None;
            }
            if let Some(message) = queue.waiting.pop_front() {
                queue.bytes -= message.body.len();
                queue.sending = Some((message.signal, message.items));
                return Some(message);
            }
            self.changed.notify_all();
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps; returns false if the thread must end.
    fn sleep(&self, time: Duration) -> bool {
        let queue = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(queue, time, |queue| !queue.ends);
        !waited.unwrap_or_else(PoisonError::into_inner).0.ends
    }

    /// Counts the items of the message being sent, unless [`Outbox::finish`] has done so.
    fn count(&self, signal: Signal, sent: u64, dropped: u64) {
        if let Some((_, items)) = &mut self.lock().sending {
            *items = 0;
            self.counts.add_sent(signal, sent);
            self.counts.add_dropped(signal, dropped);
        }
    }

    fn run(&self) {
        // The last note about each signal, so that no note is repeated.
        let mut said = [String::new(), String::new()];
        let mut away: Option<(Instant, u64)> = None;
        while let Some(message) = self.next() {
            let (url, said) = (
                self.endpoint.url(message.signal),
                &mut said[message.signal as usize],
            );
            let mut say = |text: String| {
                if *said != text {
                    (self.note)(&format!("{url}: {text}"));
                    *said = text;
                }
            };
            let mut pause = self.soon;
            loop {
                match self.post(&url, &message) {
                    Outcome::Sent(rejected, why) => {
                        let rejected = rejected.min(message.items);
                        self.count(message.signal, message.items - rejected, rejected);
                        if let Some((since, dropped)) = away.take() {
                            let dropped = self.dropped() - dropped;
                            let seconds = since.elapsed().as_secs();
                            say(format!(
                                "accepted again after {seconds} s; dropped meanwhile: {dropped}"
                            ));
                        }
                        match rejected {
                            0 if why.is_empty() => {}
                            0 => say(format!("accepted with a warning: {why}")),
                            _ => say(format!("rejected {rejected} of {}: {why}", message.items)),
                        }
                        break;
                    }
                    Outcome::Refused(why) => {
                        self.count(message.signal, 0, message.items);
                        say(format!("{why}; dropped"));
                        break;
                    }
                    Outcome::Again(why, asked) => {
                        away.get_or_insert_with(|| (Instant::now(), self.dropped()));
                        say(format!("{why}; trying again"));
                        if !self
                            .sleep(asked.map_or_else(|| jitter(pause), |asked| asked.min(LATEST)))
                        {
                            break;
                        }
                        pause = (pause * 2).min(LATER);
                    }
                }
            }
        }
    }

    fn dropped(&self) -> u64 {
        let each = Signal::ALL.map(|signal| self.counts.dropped(signal));
        each.iter().sum()
    }

    fn post(&self, url: &str, message: &Message) -> Outcome {
        let sent = minreq::post(url)
            .with_header("Content-Type", "application/x-protobuf")
            .with_header(
                "User-Agent",
                concat!("latency-tracker/", env!("CARGO_PKG_VERSION")),
            )
            .with_body(message.body.as_slice())
            .with_timeout(PATIENCE)
            .with_follow_redirects(false)
            .with_max_status_line_length(STATUS_LINE)
            .with_max_headers_size(HEADERS)
            .send_lazy();
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return Outcome::Again(error.to_string(), None),
        };
        let header = |name: &str| {
            let found = response
                .headers
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.trim().to_string())
        };
        let (retry, kind) = (
            header("Retry-After"),
            header("Content-Type").unwrap_or_default(),
        );
        let status = format!("{} {}", response.status_code, response.reason_phrase);
        let code = response.status_code;
        let mut body = Vec::new();
        let whole = response.by_ref().take(BODY).read_to_end(&mut body).is_ok();
        match code {
            200..=299 => {
                let (rejected, why) = match whole {
                    true => partial(message.signal, &body),
                    false => Default::default(),
                };
                Outcome::Sent(rejected, printable(&why))
            }
            429 | 502 | 503 | 504 => {
                let seconds = retry.and_then(|retry| retry.parse().ok());
                Outcome::Again(printable(&status), seconds.map(Duration::from_secs))
            }
            _ => Outcome::Refused(printable(&format!("{status} {}", reason(&kind, &body)))),
        }
    }
}

/// Returns a random time around `pause`, so that clients do not retry at the same time.
fn jitter(pause: Duration) -> Duration {
    // The keys of a hasher are random.
    let random = RandomState::new().hash_one(0) % 512;
    pause * (768 + random as u32) / 1024
}

/// Returns how many items a collector rejected, and why.
fn partial(signal: Signal, body: &[u8]) -> (u64, String) {
    let partial = match signal {
        Signal::Metrics => ExportMetricsServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .map(|partial| (partial.rejected_data_points, partial.error_message)),
        Signal::Logs => ExportLogsServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .map(|partial| (partial.rejected_log_records, partial.error_message)),
    };
    let (rejected, why) = partial.unwrap_or_default();
    (u64::try_from(rejected).unwrap_or(0), why)
}

/// The body of a refusal: `google.rpc.Status`, or text.
#[derive(prost::Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

fn reason(kind: &str, body: &[u8]) -> String {
    match kind {
        "application/x-protobuf" => Status::decode(body).unwrap_or_default().message,
        _ if kind.starts_with("text/html") => String::new(),
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// Returns a server's text as one line of limited length.
fn printable(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.chars().filter(|c| !c.is_control()).take(200);
    line.collect::<String>().trim().to_string()
}

#[cfg(test)]
mod tests;
