// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The instance of a run, and its alerts.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lt_common::group::{Groups, about_missing};
use lt_common::instance::Refusal;
use lt_common::out::note;
use lt_common::wait::{Signals, Wake};
use lt_proc::{Alert, Pending, ProcRoot, Reason, Setting};

use super::Measured;
use super::child::Running;
use super::question::Question;
use crate::recipes::Recipe;
use crate::record::leftovers::{self, Note};
use crate::record::stream::Stream;

/// The instance; removed when dropped.
pub(super) struct Watch<'a> {
    root: &'a ProcRoot,
    name: String,
    tracker: String,
    /// The instance's line in `control`, without the name, from before any alert raised the threshold (`worst=1`).
    line: String,
    threshold: u64,
    alerts: Option<Stream>,
    missed: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn start(root: &'a ProcRoot, question: &Question, left: &mut Note) -> Result<Self> {
        let name = leftovers::name_of_run(std::process::id());
        let Question {
            tracker, settings, ..
        } = question;
        left.has_own(&name);
        let created = lt_common::instance::create(root, &name, tracker, settings, &note);
        let lacks = || question.recipe.as_ref().and_then(Recipe::lacks);
        created.map_err(|error| match lacks() {
            Some(hint) => Refusal::new(format!("{error:#}"), hint).into(),
            None => error,
        })?;
        // From here on, the instance is removed in any case.
        let mut watch = Self {
            root,
            name,
            tracker: tracker.clone(),
            line: String::new(),
            threshold: 0,
            alerts: None,
            missed: 0,
        };
        watch.alerts = Some(Stream::open(root, &watch.name)?);
        let line = root.instance(&watch.name)?;
        watch.threshold = line.params.number("threshold").unwrap_or(0);
        watch.line = format!("{tracker} {}", line.params);
        Ok(watch)
    }

    /// Waits for the end, and meanwhile passes the alerts to `see`.
    pub(super) fn wait(
        &mut self,
        signals: &Signals,
        end: Option<Instant>,
        running: Option<&Running>,
        see: &mut dyn FnMut(Alert),
    ) -> Result<()> {
        let mut is_asked = false;
        loop {
            let files = self.alerts.iter().map(Stream::file);
            let files = files.chain(running.map(Running::file));
            match signals.wait(files, end)? {
                Wake::Timeout => return Ok(()),
                Wake::Ready => self.read(see)?,
                Wake::Signal => match (running, signals.last()) {
                    (Some(running), Some(signal)) if !is_asked => {
                        is_asked = true;
                        running.pass_on(signal)?;
                    }
                    _ => return Ok(()),
                },
            }
            if let Some(running) = running
                && running.has_ended()?
            {
                return Ok(());
            }
        }
    }

    /// Reads the alerts up to now.
    fn read(&mut self, see: &mut dyn FnMut(Alert)) -> Result<()> {
        let Some(stream) = &mut self.alerts else {
            return Ok(());
        };
        loop {
            let woken = stream.read()?;
            if woken.end {
                bail!("instance {} was removed during the run", self.name);
            }
            self.missed += woken.missed;
            if woken.alerts.is_empty() {
                return Ok(());
            }
            woken.alerts.into_iter().for_each(&mut *see);
        }
    }

    /// Turns the instance off, so that its figures are consistent, and returns them.
    pub(super) fn finish(mut self, time: Duration, see: &mut dyn FnMut(Alert)) -> Result<Measured> {
        self.read(see)?;
        let begun = Instant::now();
        let mut pending = self.root.pending(&self.name)?;
        let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let off = Setting {
            key: "enabled".into(),
            value: "0".into(),
        };
        self.root.create(&self.name, &self.tracker, &[off])?;
        self.read(&mut |alert| {
            take_ended(&mut pending, took, &alert);
            see(alert);
        })?;
        // This is checked only now, since the search of many cgroups takes a while.
        if let Some(number) = Groups::find().missing(&self.root.instance(&self.name)?) {
            note(&format!(
                "not measured to the end: {}",
                about_missing(number)
            ));
        }
        let stats = self.root.stats(&self.name)?;
        // An operation that ended below the threshold after `pending` was read has raised no alert, and is still in the
        // list.
        if pending.len() as u64 != stats.count("cleared") {
            pending.retain(|one| one.age() > self.threshold);
        }
        let labels = match self.root.has_labels(&self.name) {
            true => Some(self.root.labels(&self.name)?),
            false => None,
        };
        Ok(Measured {
            line: self.line.clone(),
            tracker: self.tracker.clone(),
            threshold: self.threshold,
            time,
            histogram: self.root.histogram(&self.name)?,
            labels,
            stats,
            missed: self.missed,
            pending,
            recipe: None,
            command: Vec::new(),
            status: None,
        })
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // Another program may have removed the instance.
        if self.root.instance(&self.name).is_ok()
            && let Err(error) = self.root.remove(&self.name)
        {
            let error = anyhow::Error::from(error);
            note(&format!("instance {} is left behind: {error:#}", self.name));
        }
    }
}

/// Removes the operation whose end this alert reports. Reading `pending` took `took` ns.
///
/// The start that is computed from an alert is late by the time that raising the alert took. So of the operations of
/// the alert's task, this is the one with the latest start before the computed start. The kernel computes ages while
/// `pending` is read: an operation that ended meanwhile has an age above its delay, but by no more than `took`. An
/// older operation has a higher age.
fn take_ended(pending: &mut Vec<Pending>, took: u64, alert: &Alert) {
    if matches!(alert.reason, Reason::Timeout | Reason::Stack) {
        return;
    }
    let started = |one: &Pending| {
        let start = one.fields.number("start")?;
        let seen = start.saturating_add(one.age());
        let is_of_task = one.fields.number("tid").unwrap_or(0) == alert.tid;
        let was_in_flight = (start..=seen).contains(&alert.start());
        let is_older = one.age() > alert.delay.saturating_add(took);
        (is_of_task && was_in_flight && !is_older).then_some(start)
    };
    let fitting = pending.iter().enumerate();
    let fitting = fitting.filter_map(|(at, one)| Some((started(one)?, at)));
    if let Some((_, at)) = fitting.max() {
        pending.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_ended_while_the_list_was_read_is_not_in_flight() {
        let lines = [100, 400, 700].map(|start| {
            let age = 1000 - start;
            format!("age={age} start={start} pid=7 tid=7 comm=\"io\"\n")
        });
        let left = |time: u64, delay: u64, tid: u64, reason: &str| -> Vec<u64> {
            let mut pending = Pending::parse_all(&lines.concat()).unwrap();
            let line = format!(
                "seq=1 time={time} instance=t tracker=block reason={reason} delay={delay} threshold=1 cpu=0 pid={tid} \
                 tid={tid} comm=\"io\""
            );
            take_ended(&mut pending, 20, &Alert::parse(&line).unwrap());
            let starts = pending.iter().filter_map(|one| one.fields.number("start"));
            starts.collect()
        };
        // The operation that started at 400 ended at 1200; raising its alert took 5 ns.
        assert_eq!(left(1205, 800, 7, "threshold"), [100, 700]);
        assert_eq!(left(1205, 800, 7, "late"), [100, 700]);
        assert_eq!(left(1205, 800, 8, "threshold"), [100, 400, 700]);
        assert_eq!(left(1205, 800, 7, "timeout"), [100, 400, 700]);
        // The operation ended at 990, while the list was read.
        assert_eq!(left(995, 590, 7, "threshold"), [100, 700]);
        // This operation started after the list was read.
        assert_eq!(left(1205, 100, 7, "threshold"), [100, 400, 700]);
        // These operations ended before the list was read; the second alert was raised after that.
        assert_eq!(left(950, 500, 7, "threshold"), [100, 400, 700]);
        assert_eq!(left(1005, 500, 7, "threshold"), [100, 400, 700]);
    }
}
