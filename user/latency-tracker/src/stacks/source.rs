// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Where the alerts come from: an existing instance, an instance of this run, or a file; and what is known besides
//! them.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::clock::monotonic;
use lt_common::instance::Refusal;
use lt_common::out::note;
use lt_common::wait::{Signals, Wake};
use lt_proc::{
    Fields, Instance, Labels, Nanos, Pending, ProcRoot, Setting, StreamLine, TrackerInfo,
};

use super::args::{By, StacksArgs};
use super::tally::Tally;
use crate::explain;
use crate::labels::STACK;
use crate::recipes::Recipe;
use crate::record::stream::Stream;
use crate::run::{self, Plan, Question, UNREAD, losses};
use crate::ustack::Names;

/// Trackers that record a stack only for an operation that has timed out.
const ON_TIMEOUT: [&str; 12] = [
    "accept",
    "block",
    "func",
    "io",
    "irq",
    "module",
    "net",
    "pair",
    "softirq",
    "tree",
    "wakeup",
    "workqueue",
];

/// What is known besides the alerts.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// The instance or the file; none for an instance of this run.
    pub(super) name: Option<String>,
    /// The tracker; none for a file.
    pub(super) tracker: Option<String>,
    pub(super) recipe: Option<Recipe>,
    /// The tracker and its parameters.
    pub(super) line: Option<String>,
    /// Maximum number of functions of a stack.
    pub(super) depth: Option<u64>,
    pub(super) threshold: Option<u64>,
    /// Whether only a new maximum raised an alert (`worst=1`).
    pub(super) is_worst: bool,
    /// How long alerts were read.
    pub(super) time: Option<Duration>,
    /// Number and sum (ns) of all operations that ended, late or not. Known only for an instance of this run.
    pub(super) ended: Option<(u64, u64)>,
    /// The kernel's sums, with `by=stack`. Alerts are ignored then.
    pub(super) labels: Option<Labels>,
    pub(super) pending: Vec<Pending>,
    /// Alerts that were overwritten before they were read.
    pub(super) missed: u64,
    /// Whether alerts that were recorded before this command started are included.
    pub(super) has_older: bool,
    /// Counters of what is missing, with a sentence each.
    pub(super) losses: Vec<(String, u64, &'static str)>,
    /// Whether some operations are known to have been late, even if none of their alerts was read.
    pub(super) unread: bool,
    /// The exit status, unless it depends on the alerts.
    pub(super) outcome: Option<Outcome>,
}

impl Source {
    /// Sets the fields that depend on the parameters of an instance.
    fn with(mut self, params: &Fields) -> Self {
        self.depth = params.number("stack");
        self.threshold = params.number("threshold");
        self.is_worst = params.number("worst") == Some(1);
        self
    }
}

/// Reads the alerts in a file or of a capture.
pub(super) fn file(path: &Path, tally: &mut Tally) -> Result<Source> {
    let mut missed = 0u64;
    if path.is_dir() {
        let (alerts, lost) = explain::saved(path)?;
        alerts.iter().for_each(|alert| tally.see(alert));
        missed = lost;
    } else {
        for line in explain::recorded(path)? {
            match line {
                StreamLine::Alert(alert) => tally.see(&alert),
                StreamLine::Lost(lost) => missed = missed.saturating_add(lost),
            }
        }
    }
    let name = match path == Path::new("-") {
        true => "standard input".into(),
        false => path.display().to_string(),
    };
    Ok(Source {
        name: Some(name),
        missed,
        unread: missed > 0,
        outcome: Some(Outcome::Fine),
        ..Source::default()
    })
}

/// Whether an instance counts all operations by stack.
pub(super) fn is_counted(instance: &Instance) -> bool {
    instance.params.text("by").is_some_and(|by| by == STACK)
}

/// Refuses options and settings for which the kernel's sums have no data.
fn check_counted(by: By, settings: &[Setting]) -> Result<()> {
    if by != By::Kernel {
        bail!(Refusal::new(
            "by=stack counts by the stack of the task, and records no waker",
            "leave out --by; or leave out by=stack, and set threshold=, for late operations only",
        ));
    }
    let user = settings.iter().find(|setting| setting.key == "ustack");
    if user.is_some_and(|user| user.value != "0") {
        bail!(Refusal::new(
            "by=stack counts by the stack in the kernel, and records no functions of programs",
            "leave out ustack=; or leave out by=stack, and set threshold=, for late operations only",
        ));
    }
    Ok(())
}

/// Reads the kernel's sums of an instance with `by=stack`. They cover all operations since the instance was started.
pub(super) fn counted(
    root: &ProcRoot,
    instance: &Instance,
    args: &StacksArgs,
    signals: &Signals,
) -> Result<Source> {
    let name = &instance.name;
    check_counted(args.by, &args.settings)?;
    if args.new {
        bail!(Refusal::new(
            format!("--new: {name} has counted all operations since it was started (by=stack)"),
            format!("leave it out; or see `latency-tracker hist {name} --by --since-reset`"),
        ));
    }
    if let Some(time) = args.duration {
        signals.sleep(Duration::from(time))?;
    }
    let labels = root.labels(name)?;
    let stats = root.stats(name)?;
    let counted = losses(&instance.tracker, &stats);
    let source = Source {
        name: Some(name.clone()),
        tracker: Some(instance.tracker.clone()),
        line: Some(format!("{} {}", instance.tracker, instance.params)),
        labels: Some(labels),
        losses: others(counted.into_iter(), true),
        pending: root.pending(name)?,
        outcome: Some(Outcome::Fine),
        ..Source::default()
    };
    Ok(source.with(&instance.params))
}

/// Reads the alerts of an instance, and changes nothing.
pub(super) fn observe(
    root: &ProcRoot,
    instance: &Instance,
    args: &StacksArgs,
    signals: &Signals,
    tally: &mut Tally,
) -> Result<Source> {
    let name = &instance.name;
    let before = match args.new {
        true => Some(root.stats(name)?),
        false => None,
    };
    let mut stream = match args.new {
        true => Stream::open(root, name)?,
        false => Stream::open_recorded(root, name)?,
    };
    let begun = Instant::now();
    let time = args.duration.map_or(run::TIME, Duration::from);
    if !time.is_zero() {
        let time = Nanos(time.as_nanos() as u64).exact();
        note(&format!(
            "reading the alerts of {name} for {time} (Ctrl-C ends)"
        ));
    }
    let mut names = Names::default();
    let (mut missed, mut is_removed) = (0u64, false);
    let mut end = None;
    while end.is_none() && !is_removed {
        let wake = signals.wait([stream.file()], Some(begun + time))?;
        if wake != Wake::Ready || begun.elapsed() >= time {
            end = Some(monotonic());
        }
        // A storm of alerts does not delay the end.
        let mut is_past = false;
        while !is_past && !is_removed {
            let woken = stream.read()?;
            missed = missed.saturating_add(woken.missed);
            is_removed = woken.end;
            let last = woken.alerts.last().map(|alert| alert.time);
            for mut alert in woken.alerts {
                names.find(&mut alert);
                tally.see(&alert);
            }
            is_past = match (end, last) {
                (Some(end), Some(last)) => last > end,
                (None, _) | (_, None) => true,
            };
        }
    }
    let mut source = Source {
        name: Some(name.clone()),
        tracker: Some(instance.tracker.clone()),
        line: Some(format!("{} {}", instance.tracker, instance.params)),
        time: (!time.is_zero()).then(|| begun.elapsed()),
        missed,
        has_older: !args.new,
        ..Source::default()
    };
    if is_removed {
        note(&format!(
            "the instance {name} was removed: its counters are not shown"
        ));
        return Ok(source.with(&instance.params));
    }
    source.pending = root.pending(name)?;
    let stats = root.stats(name)?;
    let counted = losses(&instance.tracker, &stats).into_iter();
    let since = |key: &str| before.as_ref().map_or(0, |before| before.count(key));
    let counted = counted.map(|(key, n, sentence)| (key, n.saturating_sub(since(key)), sentence));
    source.losses = others(counted, false);
    let is_unread = |(key, ..): &(String, u64, _)| UNREAD.contains(&key.as_str());
    source.unread = missed > 0 || source.losses.iter().any(is_unread);
    Ok(source.with(&instance.params))
}

/// Measures with an instance of this run.
pub(super) fn measure(
    root: &ProcRoot,
    args: &StacksArgs,
    what: &str,
    signals: &Signals,
    tally: &mut Tally,
) -> Result<Source> {
    if args.duration == Some(Nanos(0)) {
        bail!("-d 0 reads what an instance has recorded; {what} is not an instance");
    }
    let depth = Cell::new(None);
    let is_counted = Cell::new(false);
    let plan = Plan {
        what,
        settings: &args.settings,
        command: &args.command,
        duration: args.duration,
        complete: &|question, trackers| {
            // by= may also be in a recipe.
            let by = question.settings.iter().find(|s| s.key == "by");
            is_counted.set(by.is_some_and(|by| by.value == STACK));
            if is_counted.get() {
                check_counted(args.by, &question.settings)?;
            }
            complete(question, trackers)?;
            let stack = question.settings.iter().find(|s| s.key == "stack");
            depth.set(stack.and_then(|stack| stack.value.parse().ok()));
            Ok(())
        },
    };
    let mut names = Names::default();
    let measured = run::measure(root, &plan, signals, &mut |mut alert| {
        if !is_counted.get() {
            names.find(&mut alert);
            tally.see(&alert);
        }
    })?;
    let is_counted = is_counted.get();
    let counted = losses(&measured.tracker, &measured.stats);
    let count = |key| measured.stats.count(key);
    let is_known = is_counted || measured.status.is_some();
    let outcome = is_known.then(|| measured.outcome(false));
    let unread = measured.was_late(false);
    Ok(Source {
        depth: depth.get(),
        threshold: Some(measured.threshold),
        ended: Some((
            count("ended").saturating_sub(count("before_start_ended")),
            count("sum_us").saturating_mul(1000),
        )),
        losses: others(counted.into_iter(), is_counted),
        name: None,
        is_worst: false,
        time: Some(measured.time),
        missed: if is_counted { 0 } else { measured.missed },
        has_older: false,
        unread,
        outcome,
        labels: measured.labels.filter(|_| is_counted),
        tracker: Some(measured.tracker),
        recipe: measured.recipe,
        line: Some(measured.line),
        pending: measured.pending,
    })
}

/// Leaves out counters that are 0, and `overruns`, which counts the alerts that any reader has missed: this run has a
/// count of its own misses. If the kernel has counted the operations, the sums do not depend on alerts, so the counters
/// of missing alerts are left out, too.
fn others<'a>(
    counted: impl Iterator<Item = (&'a str, u64, &'static str)>,
    is_counted: bool,
) -> Vec<(String, u64, &'static str)> {
    let is_of_alerts = |key: &str| UNREAD.contains(&key) || key == "over_max";
    counted
        .filter(|(key, n, _)| *n > 0 && *key != "overruns" && !(is_counted && is_of_alerts(key)))
        .map(|(key, n, sentence)| (key.to_string(), n, sentence))
        .collect()
}

/// Makes the instance record as many stacks as it can. Refuses settings that would leave none or give wrong sums.
fn complete(question: &mut Question, trackers: &[TrackerInfo]) -> Result<()> {
    let value = |key: &str| {
        let setting = question.settings.iter().find(|s| s.key == key);
        setting.map(|setting| setting.value.as_str())
    };
    if value("stack") == Some("0") {
        bail!("stack=0 records no stack; leave it out");
    }
    if value("worst") == Some("1") {
        bail!("worst=1 reports new records only, which cannot be summed; leave it out");
    }
    let tracker = question.tracker.as_str();
    let has_timeout = !matches!(value("timeout"), None | Some("0"));
    let is_counted = value("by") == Some(STACK);
    let has_user = value("ustack").is_some_and(|user| user != "0");
    if ON_TIMEOUT.contains(&tracker) && !has_timeout && !is_counted && !has_user {
        bail!(Refusal::new(
            format!("{tracker} records a stack only for an operation that times out"),
            format!(
                "add timeout=, for example `{tracker} timeout=100ms`; or see where tasks wait: `latency-tracker \
                 stacks offcpu threshold=10ms`"
            ),
        ));
    }
    let info = trackers.iter().find(|info| info.name == tracker);
    let has = |key: &str| info.is_none_or(|info| info.params.iter().any(|param| param.name == key));
    let wanted = [
        ("stack", "32"),
        ("stacks", "switch"),
        ("ring", "4096"),
        // Alerts are read often, since the ring overwrites alerts that are not read yet.
        ("wakeup_interval", "100ms"),
        // This bounds the cost of a threshold that is far too low.
        ("max_alerts", "10000"),
    ];
    let possible: Vec<_> = wanted.into_iter().filter(|(key, _)| has(key)).collect();
    for (key, value) in possible {
        question.default(key, value);
    }
    Ok(())
}

/// The instance to observe, if `what` names one. Parameters and a command are for an instance of this run.
pub(super) fn instance(root: &ProcRoot, args: &StacksArgs, what: &str) -> Result<Option<Instance>> {
    let instances = match root.is_loaded() {
        true => root.instances()?,
        false => Vec::new(),
    };
    let Some(found) = instances.into_iter().find(|one| one.name == what) else {
        return Ok(None);
    };
    let is_observed = args.settings.is_empty() && args.command.is_empty();
    if is_observed {
        return Ok(Some(found));
    }
    let is_more = root.trackers()?.iter().any(|info| info.name == what)
        || crate::recipes::Recipes::read()
            .find(what)
            .is_ok_and(|recipe| recipe.is_some());
    if is_more {
        return Ok(None);
    }
    let odd = args.settings.first().map(ToString::to_string);
    let odd = odd.or_else(|| args.command.first().map(|c| c.to_string_lossy().into()));
    let odd = odd.context("nothing is odd")?;
    bail!(Refusal::new(
        format!("{odd}: {what} is an instance, which is not changed"),
        format!(
            "leave it out; or name the tracker, for an instance that is removed at the end: `latency-tracker stacks \
             {} ...`",
            found.tracker
        ),
    ))
}

/// Why stacks are missing.
pub(super) fn why_without(source: &Source) -> &'static str {
    match (source.depth, source.tracker.as_deref()) {
        (Some(0), _) => "late operations without a stack: the instance has stack=0",
        (_, Some("syscall")) => {
            "late operations without a stack: the task was not switched in between the threshold and the end (stacks=switch), \
             or the call has not timed out (stacks=timeout)"
        }
        (_, Some(tracker)) if ON_TIMEOUT.contains(&tracker) => {
            "late operations without a stack: this tracker records one only on timeout (timeout=)"
        }
        _ => "late operations without a stack: not recorded in the alert",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_alert_is_a_loss_only_for_sums_of_alerts() {
        let all = ["full", "overruns", "alerts_suppressed", "over_max"].map(|key| (key, 1, ""));
        let keys = |is_counted| {
            let left = others(all.into_iter(), is_counted).into_iter();
            left.map(|(key, ..)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys(true), ["full"]);
        assert_eq!(keys(false), ["full", "alerts_suppressed", "over_max"]);
    }

    #[test]
    fn every_tracker_with_a_stack_at_the_end_is_known() {
        let abi = include_str!("../../../../tests/abi.txt");
        let mut seen = 0;
        for section in abi.split("\n\n") {
            let tracker = section.lines().next().unwrap_or_default();
            let alert = section.lines().find(|line| line.starts_with("  alert: "));
            if let Some(alert) = alert {
                seen += 1;
                let is_late = ON_TIMEOUT.contains(&tracker);
                assert!(!(alert.contains(" stack=") && is_late), "{tracker}");
            }
        }
        assert!(seen > 10, "{seen}");
    }
}
