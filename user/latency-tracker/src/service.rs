// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Messages to systemd from a command that runs as its service: ready, alive and status notifications, and an entry in
//! the journal for each alert, with a field for each of its words. Outside a service, nothing is sent.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lt_common::out::{self, note};
use lt_common::wait::{Signals, Wake};
use lt_proc::Alert;
use sd_notify::NotifyState;

/// The socket of the journal.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// `MESSAGE_ID` of an alert.
const ALERT: &str = "7d2e4c0bd1f94e0c9b0f6a52f1c83e17";

/// `PRIORITY` of an alert: a warning.
const WARNING: &str = "4";

#[derive(Debug)]
pub(crate) struct Service {
    /// How long the service may be silent before it is killed and restarted.
    watchdog: Option<Duration>,
    /// Whether the journal receives what this process prints.
    is_logged: bool,
    journal: Option<UnixDatagram>,
}

impl Service {
    pub(crate) fn find() -> Self {
        let is_logged = writes_to_journal();
        let journal = match is_logged.then(connect).transpose() {
            Ok(journal) => journal,
            Err(error) => {
                note(&format!("alerts are not written to the journal: {error:#}"));
                None
            }
        };
        Self {
            watchdog: sd_notify::watchdog_enabled(),
            is_logged,
            journal,
        }
    }

    /// Whether the journal receives what this process prints: then neither a stack of user space nor an explanation may
    /// be printed, since more users may read the journal than a capture.
    pub(crate) fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// Reports that the service is ready: `systemctl start` returns. Call it once.
    pub(crate) fn ready(&self) {
        tell(&[NotifyState::Ready]);
    }

    /// Sets the text that `systemctl status` shows.
    pub(crate) fn status(&self, text: &str) {
        tell(&[NotifyState::Status(text)]);
    }

    pub(crate) fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }

    /// Resets the watchdog. Call it before [`Service::next`] and before long operations.
    pub(crate) fn alive(&self) {
        if self.watchdog.is_some() {
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// Returns the time at which [`Service::alive`] is due, or `end` if that is earlier.
    pub(crate) fn next(&self, end: Option<Instant>) -> Option<Instant> {
        let due = self.watchdog.map(|time| Instant::now() + time / 2);
        [due, end].into_iter().flatten().min()
    }

    /// Waits for `time`, or until a signal, and resets the watchdog meanwhile.
    pub(crate) fn sleep(&self, signals: &Signals, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        loop {
            self.alive();
            match signals.wait(None, self.next(Some(end)))? {
                Wake::Timeout if Instant::now() < end => {}
                _ => return Ok(()),
            }
        }
    }

    /// Returns a function for a long operation to call at each step: it resets the watchdog when that is due, so that an
    /// operation that hangs is still noticed.
    pub(crate) fn progress(&self) -> impl FnMut() {
        let mut due = self.next(None);
        move || {
            if due.is_some_and(|due| due <= Instant::now()) {
                self.alive();
                due = self.next(None);
            }
        }
    }

    /// Writes the alerts to the journal, with the capture that has them. Alerts that cannot be
    /// written are reported.
    pub(crate) fn alerts(&self, alerts: &[Alert], capture: Option<&Path>) {
        let Some(journal) = &self.journal else {
            return;
        };
        let mut failed = 0;
        let mut last = None;
        for alert in alerts {
            let sent = entry(alert, capture).and_then(|entry| Ok(journal.send(&entry)?));
            if let Err(error) = sent {
                failed += 1;
                last = Some(error);
            }
        }
        if let Some(error) = last {
            let failed = out::plural(failed, "alert");
            note(&format!(
                "{failed} without an entry in the journal: {error:#}"
            ));
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        note(&format!("cannot notify systemd: {error}"));
    }
}

/// Whether standard output or standard error is the journal: systemd puts the device and inode of its stream into
/// `JOURNAL_STREAM`.
fn writes_to_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    let is_stream = |path: &str| {
        fs::metadata(path).is_ok_and(|file| stream == format!("{}:{}", file.dev(), file.ino()))
    };
    is_stream("/proc/self/fd/1") || is_stream("/proc/self/fd/2")
}

fn connect() -> Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(JOURNAL).context(JOURNAL)?;
    // A journal that hangs must not delay the next capture.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Encodes an alert in the journal's native protocol. A field of `--json` becomes `LATENCY_TRACKER_FIELD`.
fn entry(alert: &Alert, capture: Option<&Path>) -> Result<Vec<u8>> {
    let mut entry = Vec::new();
    // Readers of the journal must not see the addresses of a process.
    let alert = &alert.without_user_addresses();
    let message = out::printable(&alert.to_string());
    let fixed = [
        ("MESSAGE", &*message),
        ("MESSAGE_ID", ALERT),
        ("PRIORITY", WARNING),
        ("SYSLOG_IDENTIFIER", "latency-tracker"),
    ];
    for (name, value) in fixed {
        field(&mut entry, name, value)?;
    }
    if let Some(capture) = capture {
        let path = capture.to_string_lossy();
        field(&mut entry, "LATENCY_TRACKER_CAPTURE", &path)?;
    }
    if let serde_json::Value::Object(fields) = serde_json::to_value(alert)? {
        for (key, value) in fields {
            let name = format!("LATENCY_TRACKER_{}", key.to_ascii_uppercase());
            match value {
                serde_json::Value::String(text) => field(&mut entry, &name, &text)?,
                other => field(&mut entry, &name, &other.to_string())?,
            }
        }
    }
    Ok(entry)
}

/// Adds a field. A value of several lines is preceded by its length.
fn field(entry: &mut Vec<u8>, name: &str, value: &str) -> Result<()> {
    if value.contains('\n') {
        writeln!(entry, "{name}")?;
        entry.extend((value.len() as u64).to_le_bytes());
        writeln!(entry, "{value}")?;
    } else {
        writeln!(entry, "{name}={value}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_of(line: &str, capture: Option<&Path>) -> Result<Vec<u8>> {
        entry(&Alert::parse(line)?, capture)
    }

    const LINE: &str = r#"seq=7 time=900 instance=slow tracker=block reason=threshold delay=20 threshold=10 cpu=1 pid=4 tid=5 comm="a\nb" dev=8:0 sector=64"#;

    #[test]
    fn addresses_of_a_process_are_not_written() -> Result<()> {
        let line = format!("{LINE} ustack=0x401136,0x401180 ustack_end=outermost");
        let entry = entry_of(&line, None)?;
        let text = String::from_utf8_lossy(&entry);
        assert!(text.contains("LATENCY_TRACKER_USTACK=hidden\n"), "{text}");
        assert!(!text.contains("0x4011"), "{text}");
        Ok(())
    }

    #[test]
    fn an_alert_has_its_words_as_fields() -> Result<()> {
        let entry = entry_of(LINE, Some(Path::new("/captures/0001")))?;
        let text = String::from_utf8_lossy(&entry);
        for field in [
            "PRIORITY=4\n",
            "LATENCY_TRACKER_SEQ=7\n",
            "LATENCY_TRACKER_INSTANCE=slow\n",
            "LATENCY_TRACKER_DELAY=20\n",
            "LATENCY_TRACKER_SECTOR=64\n",
            "LATENCY_TRACKER_CAPTURE=/captures/0001\n",
        ] {
            assert!(text.contains(field), "no {field:?} in {text}");
        }
        Ok(())
    }

    #[test]
    fn a_line_feed_in_a_name_makes_no_field_of_its_own() -> Result<()> {
        let entry = entry_of(LINE, None)?;
        let name = b"LATENCY_TRACKER_COMM\n\x03\0\0\0\0\0\0\0a\nb\n";
        assert!(
            entry.windows(name.len()).any(|bytes| bytes == name),
            "{}",
            String::from_utf8_lossy(&entry)
        );
        Ok(())
    }
}
