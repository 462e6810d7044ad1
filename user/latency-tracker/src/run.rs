// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `run`: measures with one instance for a while, or for the time of a command, shows the result, and removes everything
//! that it made.
//!
//! ```text
//!   module -> [command, which waits] -> instance -> [command runs] -> end: time, command, signal
//!          -> instance off: from here on its counters stand still -> counters, histogram, alerts -> removed -> printed
//! ```
//!
//! `worst=1` makes the instance raise an alert for each new record only, so that the longest operation of the whole run
//! is known, however many are late.
//!
//! Each part that is set up is a value whose drop takes it down, in reverse order, on every exit path. A killed run
//! leaves a note for the next run (see [`leftovers`]).

mod args;
mod child;
mod losses;
mod report;

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lt_common::exec::{code, how};
use lt_common::group::Group;
use lt_common::instance::Loaded;
use lt_common::out::{self, note};
use lt_common::wait::{Signals, Wake};
use lt_common::{Outcome, lttng};
use lt_proc::{Alert, Histogram, Nanos, Pending, ProcRoot, Setting, Stats, TrackerInfo};

pub(crate) use self::args::{EXAMPLES, RunArgs};
pub(crate) use self::child::is_child;
use self::child::{Found, Running};
use crate::record::leftovers::{self, Note};
use crate::record::stream::Stream;

/// Time of a run without a command, unless the user sets one.
const TIME: Duration = Duration::from_secs(10);

/// What to measure.
#[derive(Debug)]
struct Question {
    tracker: String,
    settings: Vec<Setting>,
}

/// What was measured.
#[derive(Debug)]
struct Measured {
    /// The line of the instance in `control`, without its name.
    line: String,
    tracker: String,
    threshold: u64,
    time: Duration,
    histogram: Histogram,
    stats: Stats,
    /// The longest operation over the threshold.
    longest: Option<Alert>,
    /// Alerts that were overwritten before they were read.
    missed: u64,
    /// Operations in flight at the end, the oldest first.
    pending: Vec<Pending>,
    command: Vec<OsString>,
    /// How the command ended; none if it still runs.
    status: Option<ExitStatus>,
}

pub(crate) fn run(root: &ProcRoot, args: &RunArgs) -> Result<Outcome> {
    let signals = Signals::catch()?;
    let measured = measure(root, args, &signals)?;
    // Everything is removed by now, however long it takes to read this.
    let lines = match args.json {
        true => vec![report::json(&measured)?],
        false => report::text(&measured),
    };
    match &args.output {
        None => lines.iter().try_for_each(|line| out::line(line))?,
        Some(file) => out::file::replace(file, |file| {
            let text = lines.join("\n") + "\n";
            write!(file, "{}", anstream::adapter::strip_str(&text))?;
            Ok(())
        })?,
    }
    Ok(match (measured.status, &measured.longest) {
        (Some(status), _) => Outcome::Status(code(status)),
        (None, Some(_)) => Outcome::Alert,
        (None, None) => Outcome::Fine,
    })
}

fn measure(root: &ProcRoot, args: &RunArgs, signals: &Signals) -> Result<Measured> {
    let command = Found::find(&args.command)?;
    // From here on, these values are dropped in reverse order, which is the order of cleaning up.
    let _module = Loaded::load(root)?;
    let trackers = root.trackers()?;
    let mut question = Question {
        tracker: args.tracker.clone(),
        settings: args.settings.clone(),
    };
    lt_common::instance::check(root, &question.tracker, &question.settings)?;
    lttng::make_run_dir()?;
    leftovers::clean_noted(root);
    let mut left = Note::new();
    let group = match &command {
        Some(_) => question.group(&trackers, &mut left)?,
        None => None,
    };
    question.refuse_enabled()?;
    question.default("worst", "1");
    let waiting = command.as_ref().map(Found::wait_to_start).transpose()?;
    let mut instance = Watch::start(root, &question, &mut left)?;
    let begun = Instant::now();
    let running = match waiting {
        Some(waiting) => {
            if let Some(group) = &group {
                group.adopt(waiting.id())?;
            }
            Some(waiting.start()?)
        }
        None => None,
    };
    let time = args.duration.map(Duration::from);
    let time = time.or((running.is_none()).then_some(TIME));
    if let (Some(time), None) = (time, &running) {
        let time = Nanos(time.as_nanos() as u64).exact();
        note(&format!("measuring for {time} (Ctrl-C ends)"));
    }
    instance.wait(signals, time.map(|time| begun + time), running.as_ref())?;
    let time = begun.elapsed();
    let status = match running {
        Some(running) if running.has_ended()? => Some(running.status()?),
        Some(running) => {
            note(&format!("the command, process {}, goes on", running.pid()));
            None
        }
        None => None,
    };
    if let Some(status) = status {
        note(&format!("the command has ended: {}", how(status)));
    }
    instance.finish(time, args.command.clone(), status)
}

impl Question {
    /// Restricts the question to a cgroup for the command, if the tracker can.
    fn group(&mut self, trackers: &[TrackerInfo], left: &mut Note) -> Result<Option<Group>> {
        const FILTER: &str = "cgroup";
        if let Some(setting) = self.settings.iter().find(|setting| setting.key == FILTER) {
            bail!("{setting}: a COMMAND runs in a cgroup of its own; leave out one of them");
        }
        let info = trackers.iter().find(|info| info.name == self.tracker);
        if !info.is_some_and(|info| info.params.iter().any(|param| param.name == FILTER)) {
            note(&format!(
                "{} cannot tell the command from other processes: everything counts while it runs",
                self.tracker
            ));
            return Ok(None);
        }
        let group = Group::create("run")?;
        left.update(|owned| owned.cgroup = Some(group.directory().into()));
        self.default(FILTER, group.name());
        Ok(Some(group))
    }

    fn refuse_enabled(&self) -> Result<()> {
        match self
            .settings
            .iter()
            .find(|setting| setting.key == "enabled")
        {
            Some(setting) => bail!("{setting}: a run turns its instance on and off itself"),
            None => Ok(()),
        }
    }

    fn default(&mut self, key: &str, value: &str) {
        if self.settings.iter().all(|setting| setting.key != key) {
            self.settings.push(Setting {
                key: key.into(),
                value: value.into(),
            });
        }
    }
}

/// The instance; removed when dropped.
struct Watch<'a> {
    root: &'a ProcRoot,
    name: String,
    tracker: String,
    /// Its line in `control` before the threshold rose.
    line: String,
    threshold: u64,
    alerts: Option<Stream>,
    longest: Option<Alert>,
    missed: u64,
}

impl<'a> Watch<'a> {
    fn start(root: &'a ProcRoot, question: &Question, left: &mut Note) -> Result<Self> {
        let name = leftovers::name_of_run(std::process::id());
        let Question { tracker, settings } = question;
        lt_common::instance::create(root, &name, tracker, settings, &note)?;
        // From here on it is removed, whatever happens.
        let mut watch = Self {
            root,
            name,
            tracker: tracker.clone(),
            line: String::new(),
            threshold: 0,
            alerts: None,
            longest: None,
            missed: 0,
        };
        left.update(|owned| drop(owned.instances.insert(watch.name.clone(), String::new())));
        watch.alerts = Some(Stream::open(root, &watch.name)?);
        let line = root.instance(&watch.name)?;
        watch.threshold = line.params.number("threshold").unwrap_or(0);
        watch.line = format!("{tracker} {}", line.params);
        Ok(watch)
    }

    /// Waits for the end, and reads alerts meanwhile.
    fn wait(
        &mut self,
        signals: &Signals,
        end: Option<Instant>,
        running: Option<&Running>,
    ) -> Result<()> {
        let mut is_asked = false;
        loop {
            let files = self.alerts.iter().map(Stream::file);
            let files = files.chain(running.map(Running::file));
            match signals.wait(files, end)? {
                Wake::Timeout => return Ok(()),
                Wake::Ready => self.read()?,
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

    /// Reads the alerts up to now, and keeps the longest.
    fn read(&mut self) -> Result<()> {
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
            for alert in woken.alerts {
                let is_longer = |longest: &Alert| longest.delay < alert.delay;
                if self.longest.as_ref().is_none_or(is_longer) {
                    self.longest = Some(alert);
                }
            }
        }
    }

    /// Turns the instance off, so that all its numbers belong together, and returns them.
    fn finish(
        mut self,
        time: Duration,
        command: Vec<OsString>,
        status: Option<ExitStatus>,
    ) -> Result<Measured> {
        let pending = self.root.pending(&self.name)?;
        let off = Setting {
            key: "enabled".into(),
            value: "0".into(),
        };
        self.root.create(&self.name, &self.tracker, &[off])?;
        self.read()?;
        Ok(Measured {
            line: self.line.clone(),
            tracker: self.tracker.clone(),
            threshold: self.threshold,
            time,
            histogram: self.root.histogram(&self.name)?,
            stats: self.root.stats(&self.name)?,
            longest: self.longest.take(),
            missed: self.missed,
            pending,
            command,
            status,
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
