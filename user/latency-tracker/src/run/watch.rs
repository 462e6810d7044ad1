// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The instance of a run, and its alerts.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lt_common::instance::Refusal;
use lt_common::out::note;
use lt_common::wait::{Signals, Wake};
use lt_proc::{Alert, ProcRoot, Setting};

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
    /// Its line in `control`, without its name, before the threshold rose.
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
        left.update(|owned| drop(owned.instances.insert(watch.name.clone(), String::new())));
        watch.alerts = Some(Stream::open(root, &watch.name)?);
        let line = root.instance(&watch.name)?;
        watch.threshold = line.params.number("threshold").unwrap_or(0);
        watch.line = format!("{tracker} {}", line.params);
        Ok(watch)
    }

    /// Waits for the end, and passes the alerts meanwhile to `see`.
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
        let pending = self.root.pending(&self.name)?;
        let off = Setting {
            key: "enabled".into(),
            value: "0".into(),
        };
        self.root.create(&self.name, &self.tracker, &[off])?;
        self.read(see)?;
        Ok(Measured {
            line: self.line.clone(),
            tracker: self.tracker.clone(),
            threshold: self.threshold,
            time,
            histogram: self.root.histogram(&self.name)?,
            stats: self.root.stats(&self.name)?,
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
        if let Err(error) = self.root.remove(&self.name) {
            let error = anyhow::Error::from(error);
            note(&format!("instance {} is left behind: {error:#}", self.name));
        }
    }
}
