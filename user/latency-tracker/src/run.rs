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
mod question;
mod report;
mod watch;

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;
use lt_common::exec::{code, how};
use lt_common::instance::Loaded;
use lt_common::out::{self, note};
use lt_common::wait::Signals;
use lt_common::{Outcome, lttng};
use lt_proc::{Alert, Histogram, Nanos, Pending, ProcRoot, Stats};

pub(crate) use self::args::{EXAMPLES, RunArgs};
use self::child::Found;
pub(crate) use self::child::is_child;
use self::question::Question;
use self::watch::Watch;
use crate::recipes::Recipe;
use crate::record::leftovers::{self, Note};

/// Time of a run without a command, unless the user sets one.
const TIME: Duration = Duration::from_secs(10);

/// The result of a measurement.
#[derive(Debug)]
struct Measured {
    recipe: Option<Recipe>,
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
    /// The command's exit status; `None` if it still runs.
    status: Option<ExitStatus>,
}

impl Measured {
    /// Whether any operation is known to have exceeded the threshold, also one whose alert was not read.
    fn was_late(&self) -> bool {
        const UNREAD: [&str; 3] = ["alerts_lost", "alerts_suppressed", "readers"];
        self.longest.is_some()
            || self.missed > 0
            || self.stats.count("max") > self.threshold
            || UNREAD.iter().any(|key| self.stats.count(key) > 0)
    }
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
    Ok(match measured.status {
        Some(status) => Outcome::Status(code(status)),
        None if measured.was_late() => Outcome::Alert,
        None => Outcome::Fine,
    })
}

fn measure(root: &ProcRoot, args: &RunArgs, signals: &Signals) -> Result<Measured> {
    let command = Found::find(&args.command)?;
    // From here on, these values are dropped in reverse order, which is the order of cleaning up.
    let _module = Loaded::load(root)?;
    let trackers = root.trackers()?;
    let mut question = Question::find(args, &trackers)?;
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
    Ok(Measured {
        recipe: question.recipe,
        command: args.command.clone(),
        status,
        ..instance.finish(time)?
    })
}
