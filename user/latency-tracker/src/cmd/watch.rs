// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `watch`: the alerts already recorded, then new ones, as text or JSON.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lt_common::out::{self, Colour};
use lt_common::wait::{Lines, Signals, Wake};
use lt_common::{Outcome, chain, clock};
use lt_proc::{Alert, ProcRoot, StreamLine};
use serde::Serialize;

use crate::action;
use crate::cli::WatchArgs;
use crate::ustack::{self, Names};

/// The output of `--json` if alerts were overwritten before they were read.
#[derive(Serialize)]
struct Lost {
    lost: u64,
}

pub(crate) fn run(root: &ProcRoot, args: &WatchArgs) -> Result<Outcome> {
    if let Some(name) = &args.name {
        root.instance(name)?;
    }
    let signals = Signals::catch()?;
    // Actions react to new alerts only.
    let from_start = !args.new && args.on_alert.is_empty();
    let parts = (from_start && !args.json).then(|| Parts {
        start: clock::monotonic(),
        last: None,
    });
    let file = root.open_alerts(args.name.as_deref(), from_start)?;
    let end = args.duration.map(|d| Instant::now() + d.into());
    let mut watcher = Watcher {
        root,
        args,
        columns: Columns::new(root, args.timestamp),
        parts,
        seen: 0,
        overruns: Overruns::default(),
        names: Names::default(),
    };
    if !args.json {
        let heading = watcher.columns.heading();
        out::line(&out::paint(Colour::Bold, &heading))?;
    }
    watcher.watch(&file, &signals, end)?;
    if let Some(total) = watcher.overruns.total(args.name.as_deref()) {
        out::note(&total);
    }
    // A lost alert has fired, too.
    Ok(match (watcher.seen, watcher.overruns.lost) {
        (0, 0) => Outcome::Fine,
        _ => Outcome::Alert,
    })
}

/// Returns why there are no more alerts. The alerts of all instances end only with the module.
fn ended(root: &ProcRoot, name: Option<&str>) -> String {
    let unloaded = || lt_common::module::is_going() || !root.is_loaded();
    match name.filter(|_| !unloaded()) {
        Some(name) => format!("the instance {name} was removed"),
        None => "the latency_tracker module was unloaded".to_string(),
    }
}

struct Watcher<'a> {
    root: &'a ProcRoot,
    args: &'a WatchArgs,
    columns: Columns,
    /// `None` if only new alerts are shown, or for JSON.
    parts: Option<Parts>,
    seen: u64,
    overruns: Overruns,
    names: Names,
}

impl Watcher<'_> {
    fn watch(
        &mut self,
        file: &std::fs::File,
        signals: &Signals,
        end: Option<Instant>,
    ) -> Result<()> {
        let mut lines = Lines::default();
        let output = out::pipe();
        while self.args.count.is_none_or(|count| self.seen < count) {
            if signals.wait_while_read(output.as_ref(), Some(file), end)? != Wake::Ready {
                return Ok(());
            }
            let chunk = lines.read(file).context("cannot read the alerts")?;
            for line in &chunk.lines {
                match StreamLine::parse(line)? {
                    StreamLine::Lost(lost) => self.lost(lost)?,
                    StreamLine::Alert(mut alert) => {
                        self.seen += 1;
                        self.names.find(&mut alert);
                        let parts = self.parts.as_mut();
                        if let Some(note) = parts.and_then(|parts| parts.note(alert.time)) {
                            out::note(note);
                        }
                        self.show(&alert)?;
                        if !action::run(&self.args.on_alert, &alert)?
                            || self.args.count.is_some_and(|n| self.seen >= n)
                        {
                            return Ok(());
                        }
                    }
                }
            }
            if chunk.end {
                out::note(&ended(self.root, self.args.name.as_deref()));
                return Ok(());
            }
        }
        Ok(())
    }

    fn lost(&mut self, lost: u64) -> Result<()> {
        if self.args.json {
            out::json(&Lost { lost })?;
        }
        if let Some(text) = self.overruns.add(lost, Instant::now()) {
            out::note(&text);
        }
        Ok(())
    }

    fn show(&self, alert: &Alert) -> Result<()> {
        if self.args.json {
            return out::json(alert);
        }
        for line in self.columns.rows(alert, out::width()) {
            out::line(&line)?;
        }
        for line in chain::lines(alert) {
            out::line(&line)?;
        }
        for function in alert.stack() {
            out::line(&out::frame(&function))?;
        }
        for line in ustack::lines(alert, 2) {
            out::line(&line)?;
        }
        let waker = alert.waker_stack();
        if self.args.stacks && !waker.is_empty() {
            out::line("  woken from:")?;
            for function in waker {
                out::line(&out::frame(&function))?;
            }
        }
        Ok(())
    }
}

/// Separates the alerts from before the start of this command, perhaps of instances that no longer exist, from later
/// ones.
#[derive(Debug)]
struct Parts {
    /// When this command started, `CLOCK_MONOTONIC`, ns.
    start: u64,
    /// The part of the last alert.
    last: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Since,
}

impl Parts {
    /// Returns the note to print before an alert of this time, if any. One note precedes the first alert from before
    /// the start. Another note precedes the first later alert, if it follows such alerts.
    fn note(&mut self, time: u64) -> Option<&'static str> {
        // The ring is not sorted by time.
        let part = match time < self.start && self.last != Some(Part::Since) {
            true => Part::Before,
            false => Part::Since,
        };
        match (self.last.replace(part), part) {
            (None, Part::Before) => {
                Some("alerts from before watch started (--new leaves them out):")
            }
            (Some(Part::Before), Part::Since) => Some("alerts since watch started:"),
            _ => None,
        }
    }
}

/// Counts the alerts that the ring overwrote before they were read. Reports them at intervals, and
/// at the end.
#[derive(Debug, Default)]
struct Overruns {
    times: u64,
    lost: u64,
    said: Option<Instant>,
}

impl Overruns {
    /// The shortest time between two lines about losses.
    const PAUSE: Duration = Duration::from_secs(10);

    /// Adds `lost` to the count. Returns a line if one is due.
    fn add(&mut self, lost: u64, now: Instant) -> Option<String> {
        self.times += 1;
        self.lost = self.lost.saturating_add(lost);
        let soon = |said: Instant| now.saturating_duration_since(said) < Self::PAUSE;
        if self.said.is_some_and(soon) {
            return None;
        }
        self.said = Some(now);
        Some(format!(
            "alerts come faster than they are read: lost={} so far",
            self.lost
        ))
    }

    /// Returns the sum, and how to avoid losses.
    fn total(&self, name: Option<&str>) -> Option<String> {
        let advice = match name {
            _ if self.times == 0 => return None,
            Some(name) => format!(
                "raise the threshold of {name}, or create it again with a larger ring="
            ),
            None => {
                "watch a single instance, whose own ring has room for ring= alerts; the shared ring has \
                     room for 1024"
                    .to_string()
            }
        };
        let times = match self.times {
            1 => "once".to_string(),
            n => format!("{n} times"),
        };
        let lost = out::thousands(self.lost);
        Some(format!(
            "lost={} alerts ({lost}), {times}: {advice}",
            self.lost
        ))
    }
}

/// Column widths of this run.
#[derive(Debug)]
struct Columns {
    name: usize,
    timestamp: bool,
}

const DELAY: usize = 9;
const COMM: usize = 15;
const TID: usize = 7;
/// Minimum width for the late operation beside the other columns. In less space, it is printed on separate lines.
const WHAT: usize = 20;

impl Columns {
    /// Makes the columns wide enough for the names of the current instances.
    fn new(root: &ProcRoot, timestamp: bool) -> Self {
        let names = super::names(root, None).unwrap_or_default();
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        let narrow = out::width().is_some_and(|width| width < 100);
        let most = if narrow { 12 } else { 31 };
        Self {
            name: longest.clamp(8, most),
            timestamp,
        }
    }

    fn heading(&self) -> String {
        let time = if self.timestamp { "TIME     " } else { "" };
        format!(
            "{time}{:<w$} {:>DELAY$} {:<COMM$} {:>TID$} WHAT",
            "INSTANCE",
            "DELAY",
            "COMM",
            "TID",
            w = self.name
        )
    }

    /// Formats an alert: one line in a pipe, and as many lines as needed on a terminal, where a long
    /// name of an instance is cut, and so is a word that is too long for a line.
    fn rows(&self, alert: &Alert, limit: Option<usize>) -> Vec<String> {
        let time = if self.timestamp {
            format!("{} ", lt_common::clock::at(alert.time))
        } else {
            String::new()
        };
        let reason = match alert.reason {
            lt_proc::Reason::Threshold => String::new(),
            ref other => format!("{other}: "),
        };
        let w = self.name;
        let name = match limit {
            Some(_) => out::fit(&alert.instance, w),
            None => alert.instance.clone(),
        };
        let delay = super::at_least(alert.delay, &alert.fields);
        let comm = out::fit(&out::printable(&alert.comm.text()), COMM);
        let left = format!("{time}{name:<w$} ");
        let right = format!(" {comm:<COMM$} {:>TID$} ", alert.tid);
        let what = out::printable(&format!("{reason}{}", alert.subject()));
        let fixed = left.chars().count() + DELAY + right.chars().count();
        let delay = out::paint(Colour::Red, &format!("{delay:>DELAY$}"));
        let Some(limit) = limit else {
            return vec![format!("{left}{delay}{right}{what}")];
        };
        if fixed + WHAT > limit {
            let mut rows = vec![format!("{left}{delay}{right}")];
            rows.extend(out::wrap_to(&what, 4, limit));
            return rows;
        }
        let mut rows = out::wrap_to(&what, fixed, limit);
        if let Some(first) = rows.first_mut() {
            *first = format!("{left}{delay}{right}{}", first.trim_start());
        } else {
            rows.push(format!("{left}{delay}{right}"));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "seq=17 time=1234567890123 instance=a_name_longer_than_that tracker=wakeup \
        reason=timeout delay=10412345 threshold=10000000 cpu=1 pid=812 tid=1234567 \
        comm=\"a\\x1b[31m_long_name\" prio=120 policy=other target=1 migrated=0 waker_pid=1 \
        waker_tid=4711 waker_comm=\"the waker\" context=hardirq prev_pid=9 prev_tid=9 prev_comm=\"before\"";

    fn plain(rows: &[String]) -> Vec<String> {
        rows.iter()
            .map(|row| anstream::adapter::strip_str(row).to_string())
            .collect()
    }

    #[test]
    fn rows_are_under_their_headings_and_whole() {
        let alert = Alert::parse(LINE).unwrap();
        for timestamp in [false, true] {
            let columns = Columns {
                name: 12,
                timestamp,
            };
            let column = columns.heading().find("WHAT").unwrap();
            for limit in [None, Some(79), Some(100), Some(140), Some(300)] {
                let rows = plain(&columns.rows(&alert, limit));
                assert!(!rows.concat().contains('\u{1b}'));
                let text = rows
                    .iter()
                    .map(|row| row.trim())
                    .collect::<Vec<_>>()
                    .join(" ");
                for word in ["waker=the waker/4711", "prev=before/9", "context=hardirq"] {
                    assert!(text.contains(word), "{limit:?}: {text}");
                }
                let Some(limit) = limit else {
                    assert_eq!(rows.len(), 1);
                    continue;
                };
                assert!(rows.iter().all(|r| r.chars().count() <= limit), "{rows:?}");
                assert!(rows[0][column..].starts_with("timeout: prio"), "{rows:?}");
                assert!(rows[1..].iter().all(|r| r[..column].trim().is_empty()));
                assert_eq!(limit >= 300, rows.len() == 1, "{rows:?}");
            }
        }
    }

    #[test]
    fn a_delay_that_began_before_the_start_is_a_lower_bound() {
        let columns = Columns {
            name: 8,
            timestamp: false,
        };
        let alert = Alert::parse(&format!("{LINE} since=before-start")).unwrap();
        let rows = plain(&columns.rows(&alert, None));
        assert!(rows[0].contains(" >10.41ms "), "{rows:?}");
        assert!(
            rows[0].contains("timeout: began before the start: prio=120"),
            "{rows:?}"
        );
        assert!(!rows[0].contains("since="), "{rows:?}");
    }

    #[test]
    fn a_note_precedes_old_alerts_and_the_first_new_one_after_them() {
        let notes = |times: &[u64]| {
            let mut parts = Parts {
                start: 100,
                last: None,
            };
            let notes = times.iter().map(|time| parts.note(*time));
            notes.collect::<Vec<_>>()
        };
        let before = Some("alerts from before watch started (--new leaves them out):");
        let since = Some("alerts since watch started:");
        // CPUs may store alerts out of time order.
        let mixed = [before, None, since, None, None];
        assert_eq!(notes(&[7, 99, 100, 99, 101]), mixed);
        assert!(notes(&[100, 101, 99]).iter().all(Option::is_none));
    }

    #[test]
    fn losses_are_summed_and_reported_only_at_intervals() {
        let mut overruns = Overruns::default();
        assert_eq!(overruns.total(None), None);
        let now = Instant::now();
        let said = (0..960).filter(|i| {
            let at = now + Duration::from_millis(20 * i);
            overruns.add(150, at).is_some()
        });
        assert_eq!(said.count(), 2);
        let all = overruns.total(None).unwrap();
        assert!(
            all.contains("lost=144000 alerts (144,000), 960 times"),
            "{all}"
        );
        assert!(
            all.contains("watch a single instance") && !all.contains("larger"),
            "{all}"
        );
        assert!(overruns.total(Some("a")).unwrap().contains("larger ring="));
    }
}
