// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `run`: measures with one instance for a while, or while a command runs, shows the result, and removes everything
//! that it created.
//!
//! ```text
//!   module -> [command, which waits] -> instance -> [command runs] -> end: time, command, signal
//!          -> instance off, so that its counters no longer change -> counters, histogram, alerts -> removed -> printed
//! ```
//!
//! With `worst=1`, the instance raises an alert only for a new maximum. So the longest operation of the whole run is
//! known, however many are late.
//!
//! Each resource that is set up is a value whose drop releases it, in reverse order, on every exit path. A killed run
//! leaves a note for the next run (see [`leftovers`]).

mod args;
mod child;
mod losses;
mod question;
mod report;
mod watch;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;
use lt_common::exec::{code, how};
use lt_common::instance::Loaded;
use lt_common::out::{self, note};
use lt_common::wait::Signals;
use lt_common::{Outcome, lttng};
use lt_proc::{Alert, Histogram, Labels, Nanos, Pending, ProcRoot, Setting, Stats, TrackerInfo};

pub(crate) use self::args::{EXAMPLES, RunArgs};
pub(crate) use self::child::{Program, Running, Waiting, is_child};
pub(crate) use self::losses::losses;
pub(crate) use self::question::{Question, TREE, descendants, refuse_pid_namespace};
use self::watch::Watch;
use crate::recipes::Recipe;
use crate::record::leftovers::{self, Note};
use crate::ustack::Names;

/// Counters of late operations whose alert cannot be read.
pub(crate) const UNREAD: [&str; 3] = ["alerts_lost", "alerts_suppressed", "readers"];

/// Time of a run without a command, unless the user sets one.
pub(crate) const TIME: Duration = Duration::from_secs(10);

/// What to measure, and for how long.
pub(crate) struct Plan<'a> {
    /// A tracker or a recipe.
    pub(crate) what: &'a str,
    pub(crate) settings: &'a [Setting],
    /// The command to run; none if empty.
    pub(crate) command: &'a [OsString],
    pub(crate) duration: Option<Nanos>,
    /// Checks and completes the question, before the instance is created.
    pub(crate) complete: &'a dyn Fn(&mut Question, &[TrackerInfo]) -> Result<()>,
}

/// The result of a measurement.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) recipe: Option<Recipe>,
    /// The line of the instance in `control`, without its name.
    pub(crate) line: String,
    pub(crate) tracker: String,
    pub(crate) threshold: u64,
    pub(crate) time: Duration,
    histogram: Histogram,
    /// The delays by label; `None` without `by=`.
    pub(crate) labels: Option<Labels>,
    pub(crate) stats: Stats,
    /// Alerts that were overwritten before they were read.
    pub(crate) missed: u64,
    /// Operations in flight at the end, the oldest first.
    pub(crate) pending: Vec<Pending>,
    pub(crate) command: Vec<OsString>,
    /// The command's exit status; `None` without a command, or if it still runs.
    pub(crate) status: Option<ExitStatus>,
}

pub(crate) fn run(root: &ProcRoot, args: &RunArgs) -> Result<Outcome> {
    out::file::check(&args.output)?;
    let signals = Signals::catch()?;
    let mut longest: Option<Alert> = None;
    let mut settings = args.settings.clone();
    settings.extend(args.by.iter().map(|field| Setting {
        key: "by".into(),
        value: field.clone(),
    }));
    let plan = Plan {
        what: &args.what,
        settings: &settings,
        command: &args.command,
        duration: args.duration,
        complete: &|question, _| {
            question.default("worst", "1");
            Ok(())
        },
    };
    let mut names = Names::default();
    let measured = measure(root, &plan, &signals, &mut |mut alert| {
        let is_longer = |longest: &Alert| longest.delay < alert.delay;
        if longest.as_ref().is_none_or(is_longer) {
            names.find(&mut alert);
            longest = Some(alert);
        }
    })?;
    // Everything is removed before the output, whose reader may be slow.
    let lines = match args.json {
        true => vec![report::json(&measured, longest.as_ref())?],
        false => report::text(&measured, longest.as_ref()),
    };
    print(&lines, args.output.as_deref())?;
    Ok(measured.outcome(longest.is_some()))
}

/// Prints the result, or writes it to a file.
pub(crate) fn print(lines: &[String], file: Option<&Path>) -> Result<()> {
    match file {
        None => lines.iter().try_for_each(|line| out::line(line)),
        Some(file) => out::file::replace(file, |file| {
            let text: String = lines
                .iter()
                .flat_map(|line| [line.as_str(), "\n"])
                .collect();
            write!(file, "{}", anstream::adapter::strip_str(&text))?;
            Ok(())
        }),
    }
}

impl Measured {
    /// Whether any operation is known to have exceeded the threshold, including operations whose alert was not read.
    pub(crate) fn was_late(&self, is_alert_read: bool) -> bool {
        is_alert_read
            || self.missed > 0
            || self.stats.count("max") > self.threshold
            || UNREAD.iter().any(|key| self.stats.count(key) > 0)
    }

    /// The exit status: the command's status if it has ended, otherwise whether any operation was late.
    pub(crate) fn outcome(&self, is_alert_read: bool) -> Outcome {
        match (self.status, self.was_late(is_alert_read)) {
            (Some(status), _) => Outcome::Status(code(status)),
            (None, true) => Outcome::Alert,
            (None, false) => Outcome::Fine,
        }
    }
}

/// Runs an instance for the time of `plan`. Passes each of its alerts to `see`.
pub(crate) fn measure(
    root: &ProcRoot,
    plan: &Plan<'_>,
    signals: &Signals,
    see: &mut dyn FnMut(Alert),
) -> Result<Measured> {
    let command = Program::find(plan.command)?;
    // The values from here on are dropped in reverse order, which is the order of the cleanup.
    let _module = Loaded::load(root)?;
    let trackers = root.trackers()?;
    let mut question = Question::find(plan.what, plan.settings, &trackers)?;
    lt_common::instance::check(root, &question.tracker, &question.settings)?;
    lttng::make_run_dir()?;
    leftovers::clean_noted(root);
    let mut left = Note::new();
    let waiting = command.as_ref().map(Program::wait_to_start).transpose()?;
    if let Some(waiting) = &waiting {
        question.limit_to(waiting.id(), &trackers)?;
    }
    question.refuse_enabled()?;
    (plan.complete)(&mut question, &trackers)?;
    let mut instance = Watch::start(root, &question, &mut left)?;
    let begun = Instant::now();
    let running = waiting.map(Waiting::start).transpose()?;
    let time = plan.duration.map(Duration::from);
    let time = time.or((running.is_none()).then_some(TIME));
    if let (Some(time), None) = (time, &running) {
        let time = Nanos(time.as_nanos() as u64).exact();
        note(&format!("measuring for {time} (Ctrl-C ends)"));
    }
    let end = time.map(|time| begun + time);
    instance.wait(signals, end, running.as_ref(), see)?;
    let time = begun.elapsed();
    let status = match running {
        Some(running) if running.has_ended()? => Some(running.status()?),
        Some(running) => {
            note(&format!(
                "the command, process {}, is still running",
                running.pid()
            ));
            None
        }
        None => None,
    };
    if let Some(status) = status {
        note(&format!("the command has ended: {}", how(status)));
    }
    Ok(Measured {
        recipe: question.recipe,
        command: plan.command.to_vec(),
        status,
        ..instance.finish(time, see)?
    })
}
