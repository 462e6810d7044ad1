// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The watching thread, on another CPU. It reads the counters every 10 ms (less often where a
//! reading is slow), so that there is a reading shortly before each peak, and again at a peak,
//! while the loop waits. It also handles the signals.
//!
//! ```text
//!   reading ---- reading ---- reading -------------- reading
//!                             |        peak |<- loop waits ->|
//!                             |<----- window: what moved --->|
//! ```

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use lt_common::capture::{Partial, Record, Taken};
use lt_common::out::note;
use lt_proc::{Alert, ProcRoot};

use super::alerts::{Tail, Why};
use super::arm::Armed;
use super::clock::Clock;
use super::inside;
use super::peak::{self, Peak, Where};
use super::phase::ARMED;
use super::probe::{self, Reading, Subject};
use super::spin::Mail;
use crate::measure::{Counter, Counts, Usual, moved};

/// Period of reading the counters, ns.
const PERIOD: u64 = 10_000_000;
/// Reading the counters takes at most `1 / SHARE` of the time.
const SHARE: u64 = 20;
/// Maximum number of readings kept for a CPU: the readings since its loop was last seen, and the
/// one before. Their number grows during a peak.
const KEPT: usize = 100;
/// Maximum number of alerts kept. Each is examined soon after its arrival.
const ALERTS: usize = 1000;

/// The state of one CPU.
#[derive(Debug)]
struct Subjected {
    subject: Subject,
    readings: VecDeque<Reading>,
    usual: Usual,
    smi: Option<u64>,
    /// When its loop was first seen after the readings were cleared; `None` if it has not been seen
    /// since. Counters that move while the loop is not running cause no peak, so nothing is learned
    /// from them.
    runs_since: Option<u64>,
    /// When the loop was last seen before the readings were cleared.
    seen_before: u64,
}

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) causes: u64,
    pub(super) snapshots: usize,
    /// Whether the first peak ends the run.
    pub(super) stop: bool,
}

/// The watching thread.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    clock: &'a Clock,
    armed: &'a Armed<'a>,
    limits: Limits,
    at: Where,
    subjects: Vec<Subjected>,
    tail: Tail,
    /// The latest alerts.
    alerts: VecDeque<Alert>,
    /// The latest time of an alert that is no longer kept, CLOCK_MONOTONIC ns.
    dropped: u64,
    phase: &'static str,
    next: u64,
    snapshots: usize,
    pub(super) peaks: Vec<Peak>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        clock: &'a Clock,
        root: &ProcRoot,
        armed: &'a Armed<'a>,
        limits: Limits,
        at: Where,
        cpus: impl Iterator<Item = u32>,
    ) -> Self {
        let subject = |cpu| Subjected {
            subject: Subject { cpu, tid: 0 },
            readings: VecDeque::new(),
            usual: Usual::default(),
            smi: at.smi.then(|| probe::smi(cpu)).flatten(),
            runs_since: None,
            seen_before: 0,
        };
        Self {
            clock,
            armed,
            limits,
            at,
            subjects: cpus.map(subject).collect(),
            // There are no alerts without the module.
            tail: Tail::open(root).unwrap_or_default(),
            alerts: VecDeque::new(),
            dropped: 0,
            phase: "",
            next: 0,
            snapshots: 0,
            peaks: Vec::new(),
        }
    }

    /// Starts a slice, which has new threads.
    pub(super) fn begin(&mut self, phase: &'static str, mails: &[Mail]) {
        self.phase = phase;
        self.read_alerts();
        for (subjected, mail) in self.subjects.iter_mut().zip(mails) {
            subjected.subject.tid = mail.tid();
            subjected.clear(mail.seen());
        }
        self.sample(mails);
    }

    /// Examines peaks, and reads the counters if it is time to.
    pub(super) fn look(&mut self, mails: &[Mail], stop: &AtomicBool) -> Result<()> {
        for (i, mail) in mails.iter().enumerate() {
            let Some((begin, end)) = mail.waiting() else {
                continue;
            };
            let enough = match self.limits.causes > self.peaks.len() as u64 {
                true => {
                    self.examine(i, begin, end, mails)?;
                    self.limits.causes <= self.peaks.len() as u64
                }
                false => true,
            };
            if self.limits.stop {
                stop.store(true, Ordering::Relaxed);
            }
            mail.done(enough);
        }
        if self.clock.now() >= self.next {
            self.read_alerts();
            self.sample(mails);
        }
        Ok(())
    }

    /// Returns the number of alerts that were lost or could not be parsed.
    pub(super) fn unread(&self) -> u64 {
        self.tail.missing.unread()
    }

    /// Reads the alerts that have arrived, and keeps the latest.
    fn read_alerts(&mut self) {
        let (alerts, dropped) = (&mut self.alerts, &mut self.dropped);
        let read = self.tail.read(|alert| {
            keep(alerts, dropped, alert);
            true
        });
        if let Err(error) = read {
            note(&format!("{error:#}"));
        }
    }

    /// Reads the counters of all CPUs, and learns their usual rates.
    fn sample(&mut self, mails: &[Mail]) {
        let subjects: Vec<Subject> = self.subjects.iter().map(|s| s.subject).collect();
        let readings = probe::read(self.clock, &subjects);
        let now = self.clock.now();
        let took = readings
            .first()
            .map_or(0, |r| r.end.saturating_sub(r.begin));
        self.next = now + PERIOD.max(took.saturating_mul(SHARE));
        for ((subjected, reading), mail) in self.subjects.iter_mut().zip(readings).zip(mails) {
            subjected.keep(reading, mail.seen());
        }
    }

    /// Finds the cause of a peak.
    fn examine(&mut self, i: usize, begin: u64, end: u64, mails: &[Mail]) -> Result<()> {
        let subject = self.subjects[i].subject;
        let (from, to) = (self.clock.monotonic(begin), self.clock.monotonic(end));
        let mut after = probe::read(self.clock, &[subject])
            .pop()
            .unwrap_or_default();
        self.read_alerts();
        let mut alerts = peak::during(self.alerts.iter(), subject.cpu, subject.tid, from, to);
        let missing = self.tail.missing.during(from, to);
        let missing = missing.or((self.dropped >= from).then_some(Why::Dropped));
        let smi = self.at.smi.then(|| probe::smi(subject.cpu)).flatten();
        let subjected = &mut self.subjects[i];
        subjected.learn(begin);
        let mut before = subjected.before().cloned().unwrap_or_default();
        // SMIs are counted from one peak to the next: reading the count in between would disturb
        // the loop.
        if let (Some(was), Some(is)) = (subjected.smi, smi)
            && !before.counts.is_empty()
        {
            before.counts.set(Counter::Smi, was);
            after.counts.set(Counter::Smi, is);
        }
        subjected.smi = smi;
        let window = match before.counts.is_empty() {
            true => 0,
            false => after.end.saturating_sub(before.begin),
        };
        let mut moved = moved(&before.counts, &after.counts, &subjected.usual, window);
        let mut waited = waited(&before.counts, &after.counts);
        if self.at.inside {
            // No task and no interrupt ran before the end of the slice.
            moved.retain(inside::may_move);
            alerts.clear();
            waited = 0;
        }
        let took = end - begin;
        let mut cause = peak::cause(took, waited, window, &moved, &alerts, self.at);
        if let Some(why) = missing.filter(|_| !self.at.inside) {
            cause = format!("{cause}; {}", why.text());
        }
        let mut peak = Peak {
            cpu: subject.cpu,
            phase: self.phase,
            time: to,
            took,
            window,
            waited,
            cause,
            moved,
            alerts,
            capture: None,
            explanation: None,
        };
        if let Some(partial) = self.snapshot(&mails[i])? {
            self.keep(partial, &mut peak, subject)?;
        }
        self.peaks.push(peak);
        // Examining the peak took time and moved counters. This falls before the next reading, so
        // it is in no window, and nothing is learned from it. The other CPUs keep their readings.
        self.subjects[i].clear(mails[i].seen());
        self.sample(mails);
        Ok(())
    }

    /// Takes a snapshot if the flight recorder runs and the limit is not reached.
    fn snapshot(&mut self, mail: &Mail) -> Result<Option<Partial>> {
        let (Some(session), Some(captures)) = (self.armed.session(), &self.armed.captures) else {
            return Ok(None);
        };
        if self.phase != ARMED || self.snapshots >= self.limits.snapshots {
            return Ok(None);
        }
        self.snapshots += 1;
        mail.takes_long();
        captures.snapshot(session).map(Some)
    }

    /// Completes a capture, with the peak as its alert: `latency-tracker explain` reads it.
    fn keep(&self, mut partial: Partial, peak: &mut Peak, subject: Subject) -> Result<()> {
        let Some(captures) = &self.armed.captures else {
            return Ok(());
        };
        let alone = captures.alone()?;
        let number = captures.number(&mut partial)?;
        drop(alone);
        let alert = as_alert(peak, subject, number)?;
        let record = Record {
            capture: number,
            taken: Taken::now(),
            instance: &alert.instance,
            tracker: &alert.tracker,
            snapshot_took: 0,
            lost: 0,
            skipped: 0,
            alerts: std::slice::from_ref(&alert),
            sleeps: &[],
            no_trace: None,
            sent: None,
            not_sent: None,
        };
        partial.write(
            "alert.json",
            &(serde_json::to_string_pretty(&record)? + "\n"),
        )?;
        peak.capture = Some(captures.keep(partial, number)?);
        Ok(())
    }
}

/// Returns a peak in the form of an alert of the thread.
pub(super) fn as_alert(peak: &Peak, subject: Subject, seq: u64) -> Result<Alert> {
    let line = format!(
        "seq={seq} time={} instance=bench tracker=loop reason=threshold delay={} threshold=0 cpu={} pid={} tid={} \
         comm=\"latency-tracker\"",
        peak.time,
        peak.took,
        subject.cpu,
        std::process::id(),
        subject.tid
    );
    Alert::parse(&line).context("a peak as an alert")
}

impl Subjected {
    /// Clears the readings before the loop starts or resumes; `seen` is when the loop was last
    /// seen.
    fn clear(&mut self, seen: u64) {
        self.readings.clear();
        self.runs_since = None;
        self.seen_before = seen;
    }

    /// Adds a reading; `seen` is when the loop was last seen.
    fn keep(&mut self, reading: Reading, seen: u64) {
        if self.runs_since.is_none() && seen != self.seen_before {
            self.runs_since = Some(seen);
        }
        self.learn(seen);
        if self.readings.len() >= KEPT {
            self.readings.pop_back();
        }
        self.readings.push_back(reading);
    }

    /// Learns from the readings up to a time. All peaks up to then have been examined, so what
    /// moved while the loop ran was usual. Later readings may be in the middle of a peak that has
    /// not ended yet: they are kept, with the last reading before them.
    fn learn(&mut self, until: u64) {
        while let (Some(before), Some(after)) = (self.readings.front(), self.readings.get(1))
            && after.end <= until
        {
            if self.runs_since.is_some_and(|since| since <= before.begin) {
                let ns = after.end.saturating_sub(before.end);
                self.usual.learn(&before.counts, &after.counts, ns);
            }
            self.readings.pop_front();
        }
    }

    /// Returns the oldest reading kept: everything up to it has been learned.
    fn before(&self) -> Option<&Reading> {
        self.readings.front()
    }
}

/// Adds an alert, and drops the oldest one if there are too many. `dropped` is the latest time of a
/// dropped alert.
fn keep(alerts: &mut VecDeque<Alert>, dropped: &mut u64, alert: Alert) {
    if alerts.len() >= ALERTS
        && let Some(oldest) = alerts.pop_front()
    {
        *dropped = oldest.time.max(*dropped);
    }
    alerts.push_back(alert);
}

/// Returns how long the thread waited for its CPU between the two readings, ns.
fn waited(before: &Counts, after: &Counts) -> u64 {
    match (before.get(&Counter::Waited), after.get(&Counter::Waited)) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(begin: u64, end: u64) -> Reading {
        let mut counts = Counts::default();
        counts.set(Counter::Waited, end);
        Reading { begin, end, counts }
    }

    #[test]
    fn the_time_of_the_last_dropped_alert_is_kept() {
        let (mut alerts, mut dropped) = (VecDeque::new(), 0);
        for time in 1..=ALERTS as u64 + 2 {
            let line = format!(
                "seq=1 time={time} instance=i tracker=irq reason=threshold delay=1 threshold=0 \
                 cpu=1 pid=1 tid=1 comm=\"x\""
            );
            keep(&mut alerts, &mut dropped, Alert::parse(&line).unwrap());
        }
        assert_eq!((alerts.len(), alerts[0].time, dropped), (ALERTS, 3, 2));
    }

    #[test]
    fn a_peak_is_compared_with_the_last_reading_before_it() {
        let mut subjected = Subjected {
            subject: Subject { cpu: 1, tid: 2 },
            readings: VecDeque::new(),
            usual: Usual::default(),
            smi: None,
            runs_since: None,
            seen_before: 0,
        };
        assert!(subjected.before().is_none());
        // The loop is seen shortly before each reading. Then it is no longer seen, for longer than
        // readings are kept.
        for at in (10..=40).step_by(10) {
            subjected.keep(reading(at, at + 2), at - 1);
        }
        for at in (50..=5000).step_by(10) {
            subjected.keep(reading(at, at + 2), 45);
        }
        assert!(subjected.readings.len() <= KEPT);
        subjected.learn(45);
        assert_eq!(subjected.before().unwrap().end, 42);
        // The peak started during the reading at 40.
        subjected.readings = [reading(30, 32), reading(40, 42)].into();
        subjected.learn(41);
        assert_eq!(subjected.before().unwrap().end, 32);
        let counts = |interrupts: u64| {
            let mut counts = Counts::default();
            counts.set(Counter::Softirq("HI".into()), interrupts);
            counts
        };
        // Counters that moved during a peak are not learned as usual.
        let at = |end, n| Reading {
            begin: end,
            end,
            counts: counts(n),
        };
        subjected.readings.clear();
        subjected.usual = Usual::default();
        for (end, n) in [(100, 0), (200, 0), (300, 1), (400, 1)] {
            subjected.keep(at(end, n), end.min(250) - 50);
        }
        subjected.learn(250);
        let moved = moved(
            &subjected.before().unwrap().counts,
            &counts(1),
            &subjected.usual,
            300,
        );
        assert!(moved[0].unusual && moved[0].usual == 0.0, "{moved:?}");
        // Counters that moved before the loop started or resumed are not learned, either. The loop
        // was seen at 450 then, and next at 650.
        for began in [false, true] {
            subjected.usual = Usual::default();
            subjected.clear(450);
            for (end, n) in [(500, 1), (600, 3), (700, 4), (800, 4 + u64::from(began))] {
                subjected.keep(at(end, n), if end > 650 { end - 50 } else { 450 });
            }
            subjected.learn(820);
            let mut usual = Usual::default();
            usual.learn(&counts(4), &counts(4 + u64::from(began)), 100);
            let [learned, right] = [&subjected.usual, &usual]
                .map(|usual| crate::measure::moved(&counts(0), &counts(1), usual, 100)[0].usual);
            assert_eq!(learned, right);
        }
        assert_eq!(waited(&reading(0, 3).counts, &reading(0, 8).counts), 5);
        assert_eq!(waited(&Counts::default(), &reading(0, 8).counts), 0);
    }
}
