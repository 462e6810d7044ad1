// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sends the alerts of all instances to a collector: a thread waits for alerts, and sends the
//! alerts of each second together.

use std::fs::File;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use lt_common::out::note;
use lt_common::wait::Lines;
use lt_export::{Outbox, Record, Resource};
use lt_proc::{ProcRoot, StreamLine};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

/// Once a message has this many alerts, no more are read for it.
const MOST: usize = 1024;

/// The alerts of this period are sent together.
const TOGETHER: Duration = Duration::from_secs(1);

/// How often to look for a module that is not loaded.
const AGAIN: Duration = Duration::from_secs(5);

/// Starts a thread that sends all alerts from now on. It ends with the process.
pub(crate) fn start(root: ProcRoot, outbox: Outbox, resource: Resource) {
    // If the module is loaded, opens the file before this returns, so that no alert is missed.
    let mut file = root.open_alerts(None, false).ok();
    thread::spawn(move || {
        let mut said = String::new();
        loop {
            if let Some(file) = file.take()
                && let Err(error) = read(&file, &outbox, &resource)
            {
                let text = format!("{error:#}");
                if said != text {
                    note(&text);
                    said = text;
                }
            }
            // The module was unloaded, or is not loaded yet.
            thread::sleep(AGAIN);
            file = root.open_alerts(None, false).ok();
        }
    });
}

/// Sends the alerts until the module is unloaded.
fn read(file: &File, outbox: &Outbox, resource: &Resource) -> Result<()> {
    let mut lines = Lines::default();
    loop {
        let mut polled = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::NONE).context("poll")?;
        thread::sleep(TOGETHER);
        loop {
            let (mut records, mut missed, mut end, mut more) = (Vec::new(), 0, false, true);
            while more && !end && records.len() < MOST {
                let chunk = lines.read(file).context("cannot read the alerts")?;
                (end, more) = (chunk.end, !chunk.lines.is_empty());
                for line in &chunk.lines {
                    match StreamLine::parse(line) {
                        Ok(StreamLine::Alert(alert)) => records.push(Record {
                            time: time_of(alert.time),
                            // A collector may show the addresses to anyone.
                            alert: alert.without_user_addresses(),
                        }),
                        Ok(StreamLine::Lost(n)) => missed += n,
                        // An alert of a newer module.
                        Err(_) => missed += 1,
                    }
                }
            }
            outbox.alerts(&records, missed, resource);
            if end {
                return Ok(());
            }
            if !more {
                break;
            }
        }
    }
}

/// Returns the time of day of a time in `CLOCK_MONOTONIC`, ns.
fn time_of(monotonic: u64) -> SystemTime {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    SystemTime::now() - now.saturating_sub(Duration::from_nanos(monotonic))
}
