// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `why`: watches a target until one of its operations is late, explains the delay on one screen, and removes everything
//! that the run created.
//!
//! ```text
//!   instances that only count -> [a few seconds of usual delays] -> LTTng flight recorder -> threshold -> [command]
//!   an alert -> the longest of the alerts around it -> snapshot -> explanation, and a list of the others
//!   ends: first late operation (if its cause began before the recording, a later one: see `TRIES`), --duration,
//!         signal, end of the command
//!   with --worst or a command: a late operation does not end the run; the longest one is explained
//!   while nothing is late, a threshold that was measured comes down: see `Threshold`
//!   meanwhile, once a second: if the target's cgroup has a successor, the instances are limited to the successor
//! ```
//!
//! Recording a trace costs far more than the instances, so it starts only when the threshold is known. If the recording
//! fails, the alert itself is shown.
//!
//! Each resource that is set up is a value whose drop releases it, in reverse order, on every exit path. A killed run
//! leaves a note for the next run (see [`leftovers`]).

mod also;
mod args;
mod running;
mod target;
mod watched;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lt_common::capture::{Captures, Record, Taken};
use lt_common::exec::how;
use lt_common::instance::Loaded;
use lt_common::lttng::Buffers;
use lt_common::lttng::events::default_events;
use lt_common::out::{self, note};
use lt_common::wait::{Signals, Wake};
use lt_common::{Outcome, clock, pids, rt};
use lt_proc::{Alert, Nanos, ProcRoot};

pub(crate) use self::args::{EXAMPLES, WhyArgs};
use self::target::Target;
use self::watched::{Delays, MOST, Seen, Watched};
use crate::explain::{Explained, alone, explained, owner, stacks_of, with_stacks};
use crate::record::evidence::Collector;
use crate::record::flight::{Flight, Plan};
use crate::record::leftovers::{self, Note};
use crate::run::{Program, Running, Waiting};
use crate::trace::Saved;

/// Time for measuring the usual delays, at most a third of the whole time.
const USUAL: Duration = Duration::from_secs(5);
/// Shortest threshold that is chosen automatically: shorter delays may come from the tracer itself.
const LEAST: Nanos = Nanos(1_000_000);
/// Threshold if no operation ended while the usual delays were measured.
const UNKNOWN: Nanos = Nanos(10_000_000);
/// Time without a late operation after which the threshold comes down, unless the user sets the duration.
const LOWERED: Duration = Duration::from_secs(5);
/// Time to wait for the end of a longer operation around the late one.
const AROUND: Duration = Duration::from_millis(100);
/// Time for which a target other than a command is watched, unless the user sets one.
const WATCHED: Duration = Duration::from_secs(60);
/// Operations in flight that are shown if nothing was late.
const STUCK: usize = 5;
/// Maximum number of operations that are explained to find one whose cause lies within the recording.
const TRIES: usize = 3;
/// Maximum number of earlier alerts that are kept, because they may be about sleeps within a late system call.
const RECENT: usize = 1000;

pub(crate) fn run(root: &ProcRoot, args: &WhyArgs) -> Result<Outcome> {
    let signals = Signals::catch()?;
    lt_common::lttng::make_run_dir()?;
    leftovers::clean(root);
    // The values from here on are dropped in reverse order, which is the order of the cleanup.
    let mut left = Note::new();
    let command = Program::find(&args.command)?;
    let waiting = command.as_ref().map(Program::wait_to_start).transpose()?;
    let mut target = Target::find(args, waiting.as_ref().map(Waiting::id))?;
    let followed = target.followed.take();
    let _module = Loaded::load(root)?;
    let place = Place::new(args.output.as_deref())?;
    left.update(|owned| owned.directory = place.temporary());
    let mut watched = Watched::start(root, &target, followed, &mut left)?;
    let captures = Captures::open(place.path())?;
    let whole = match (args.duration, &waiting) {
        (Some(time), _) => Some(time.into()),
        (None, Some(_)) => None,
        (None, None) => Some(WATCHED),
    };
    let started = Instant::now();
    let end = whole.map(|time| started + time);
    // A threshold that was measured may come down.
    let quarter = |time: Nanos| Duration::from(time) / 4;
    let every = match (args.over, &waiting) {
        (None, None) => Some(args.duration.map_or(LOWERED, quarter)),
        _ => None,
    };
    let over = match (args.over, &waiting) {
        (Some(over), _) => over,
        (None, Some(_)) => LEAST,
        (None, None) => {
            let time = USUAL.min(whole.unwrap_or(USUAL) / 3);
            note(&format!(
                "watching {} for {} to measure the usual delays",
                target.name,
                nanos(time).exact()
            ));
            if !rest(&signals, &mut watched, time)? {
                return Ok(Outcome::Fine);
            }
            // Before the output, which takes time.
            let longest = watched.longest();
            for line in watched.table()? {
                out::line(&line)?;
            }
            longest.map_or(UNKNOWN, half)
        }
    };
    let flight = match args.no_trace {
        true => None,
        false => flight(&target, captures.path(), &mut left),
    };
    let worst = args.worst || waiting.is_some();
    let evidence = flight.as_ref().map(|_| Collector::start(Path::new("/")));
    watched.leave_out(flight.as_ref().and_then(Flight::served_by));
    watched.arm(over, worst)?;
    if signals.last().is_some() {
        return Ok(Outcome::Fine);
    }
    let began = flight.as_ref().map_or(0, |_| clock::monotonic());
    let running = match waiting {
        Some(waiting) => Some(waiting.start()?),
        None => {
            let which = if worst { "the longest" } else { "an" };
            let name = &target.name;
            note(&format!(
                "waiting for {which} operation of {name} that takes longer than {over} (Ctrl-C ends)"
            ));
            None
        }
    };
    // Unlike in `record`, a failure is not reported: it only means that the snapshot may be late on a busy machine.
    let _ = rt::raise();
    let mut search = Search {
        signals: &signals,
        threshold: Threshold::new(over, every),
        worst,
        began,
        flight,
        captures: &captures,
        is_kept: args.output.is_some(),
        evidence,
        missed: 0,
        cut: 0,
        has_noted: false,
        recent: Vec::new(),
        found: None,
    };
    search.wait(&mut watched, end, running)?;
    let (found, missed) = (search.found.take(), search.missed);
    let threshold = search.threshold;
    if found.is_none() {
        watched.look()?;
        watched.leave_out(search.flight.as_ref().and_then(Flight::served_by));
    }
    if let Some(unseen) = watched.unseen() {
        note(&unseen);
    }
    if missed > 0 {
        note(&format!(
            "missed {}: overwritten before they were read",
            out::plural(missed as usize, "alert")
        ));
    }
    let suppressed = watched.suppressed();
    if suppressed > 0 {
        note(&format!(
            "{} not raised: more than {MOST} in a second; a larger --over avoids this",
            out::plural(suppressed as usize, "alert")
        ));
    }
    match found {
        None => {
            nothing(&watched, &target, &threshold, started, missed)?;
            Ok(Outcome::Fine)
        }
        Some(mut found) => {
            if found.alert.start() < began {
                note("this operation began before the recording, which cannot show its cause");
            }
            // With --worst, the alerts around the operation were not collected.
            let lost = (!worst).then_some(missed + suppressed);
            let is_kept = args.output.is_some();
            found.show(is_kept, target.not_seen(), lost)?;
            if let (Some(capture), Some(_)) = (&found.capture, &args.output) {
                out::line(&format!("saved as {}", capture.display()))?;
            }
            Ok(Outcome::Alert)
        }
    }
}

/// Waits for `time`, and meanwhile follows the target. Returns false if a signal came first.
fn rest(signals: &Signals, watched: &mut Watched<'_>, time: Duration) -> Result<bool> {
    let end = Instant::now() + time;
    loop {
        let wake = watched.due().map_or(end, |due| due.min(end));
        if signals.wait(None, Some(wake))? == Wake::Signal {
            return Ok(false);
        }
        watched.follow()?;
        if Instant::now() >= end {
            return Ok(true);
        }
    }
}

/// Starts the flight recorder. If LTTng cannot record, reports the reason and returns `None`.
fn flight(target: &Target, output: &Path, left: &mut Note) -> Option<Flight> {
    let mut events: Vec<String> = Vec::new();
    for part in target.parts() {
        for event in default_events(part.tracker, false) {
            if !events.iter().any(|known| known == event) {
                events.push(event.to_string());
            }
        }
    }
    let plan = Plan {
        name: "why",
        buffers: Buffers::default(),
        events,
        asked: &[],
        format: None,
    };
    match Flight::start(plan, output, left) {
        Ok(flight) => Some(flight),
        Err(error) => {
            note(&format!("no trace: {error:#}"));
            note("without a trace, only the contents of the alert can be shown");
            None
        }
    }
}

/// The threshold. Unless the user has set it, it comes down while nothing is late.
#[derive(Debug, Clone, Copy)]
struct Threshold {
    over: Nanos,
    /// When the threshold was set.
    set: Instant,
    /// How long nothing must be late before the threshold may come down; `None` if it never does.
    every: Option<Duration>,
    /// When the threshold was set, or when its last check left it unchanged.
    looked: Instant,
}

impl Threshold {
    fn new(over: Nanos, every: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            over,
            set: now,
            every,
            looked: now,
        }
    }

    /// When the threshold may come down.
    fn due(&self) -> Option<Instant> {
        self.every.map(|every| self.looked + every)
    }

    /// If it is time, lowers the threshold to half of the longest delay since the threshold was set; never raises it.
    /// Returns whether it was lowered. The caller must ensure that nothing was late.
    fn lower(&mut self, now: Instant, longest: impl FnOnce() -> Option<Nanos>) -> bool {
        if self.due().is_none_or(|due| now < due) {
            return false;
        }
        self.looked = now;
        match longest().map(half) {
            Some(half) if half < self.over => {
                (self.over, self.set) = (half, now);
                true
            }
            _ => false,
        }
    }
}

/// The search for a late operation to explain.
struct Search<'a> {
    signals: &'a Signals,
    threshold: Threshold,
    /// Whether to find the longest delay of the whole run.
    worst: bool,
    /// A time at which the recording was already running, `CLOCK_MONOTONIC`, ns; 0 without a recording.
    began: u64,
    flight: Option<Flight>,
    captures: &'a Captures,
    /// Whether the captures are kept after the run.
    is_kept: bool,
    /// Facts for an explanation from a trace; `None` without a recording.
    evidence: Option<Collector>,
    missed: u64,
    /// Number of explained operations whose cause began before the recording.
    cut: usize,
    /// Whether a note has explained why the search continues after a late operation.
    has_noted: bool,
    /// The last alerts that were read, at most [`RECENT`].
    recent: Vec<Alert>,
    found: Option<Found>,
}

/// A late operation.
struct Found {
    alert: Alert,
    /// The alerts that were read together with `alert`, itself included, and others about times within its delay.
    beside: Vec<Alert>,
    /// The capture; `None` without a trace.
    capture: Option<PathBuf>,
    /// The time of day of the alert, in UTC.
    clock: String,
    /// The explanation from the capture, once there is one.
    explained: Option<Result<Explained>>,
}

impl Search<'_> {
    /// Waits for a late operation until `end`, a signal, or the end of the command.
    fn wait(
        &mut self,
        watched: &mut Watched<'_>,
        end: Option<Instant>,
        mut command: Option<Running>,
    ) -> Result<()> {
        loop {
            watched.follow()?;
            let has_ended = command.as_ref().map_or(Ok(false), Running::has_ended)?;
            let now = Instant::now();
            let is_over = end.is_some_and(|end| now >= end);
            let is_due = !is_over && !has_ended && self.lowers().is_some_and(|due| now >= due);
            // The delays are read before the alerts: each late operation that the delays include already has its alert.
            let delays = is_due.then(|| watched.delays());
            // The alerts of the command's last operations can be read by now.
            let woken = match has_ended || is_over || is_due {
                true => Wake::Ready,
                false => {
                    let files = watched.files().chain(command.as_ref().map(Running::file));
                    let due = [end, watched.due(), self.lowers()];
                    let wake = due.into_iter().flatten().min();
                    self.signals.wait(files, wake)?
                }
            };
            if woken == Wake::Ready {
                let seen = watched.read()?;
                self.consider(seen, watched)?;
            }
            if let Some(delays) = delays {
                self.lower(now, &delays, watched)?;
            }
            if let Some(command) = command.take_if(|_| has_ended) {
                note(&format!(
                    "the command has ended: {}",
                    how(command.status()?)
                ));
                return Ok(());
            }
            // A signal may also have come while an operation was saved.
            if self.is_complete() || is_over || self.signals.last().is_some() {
                if let Some(command) = &command {
                    note(&format!(
                        "the command continues to run as process {}",
                        command.pid()
                    ));
                }
                return Ok(());
            }
        }
    }

    /// When the threshold may come down: never again once an operation was late.
    fn lowers(&self) -> Option<Instant> {
        self.threshold.due().filter(|_| self.found.is_none())
    }

    /// Lowers the threshold if nothing has exceeded it for long enough, and reports this. `delays` are the delays up to
    /// `now`. The alerts were read after that.
    fn lower(
        &mut self,
        now: Instant,
        delays: &[Option<Delays>],
        watched: &mut Watched<'_>,
    ) -> Result<()> {
        if self.found.is_some() {
            return Ok(());
        }
        let old = self.threshold;
        let longest = || watched.longest_since_set(delays);
        if self.threshold.lower(now, longest) {
            let new = self.threshold.over;
            let missing = Missing::of(watched, self.missed);
            note(&lowered(old.over, new, now - old.set, missing));
            watched.arm(new, self.worst)?;
        }
        Ok(())
    }

    /// Whether the search ends with what was found.
    fn is_complete(&self) -> bool {
        let is_enough = |found: &Found| found.is_enough(self.began, self.cut);
        !self.worst && self.found.as_ref().is_some_and(is_enough)
    }

    /// Saves the best-ranked of these alerts if it may rank above the operation found so far, and keeps the better of
    /// both.
    fn consider(&mut self, mut seen: Seen, watched: &mut Watched<'_>) -> Result<()> {
        self.missed += seen.missed;
        if seen.alerts.is_empty() {
            return Ok(());
        }
        let collector = self.evidence.as_mut();
        let late = collector.map(|collector| collector.woken(&seen.alerts));
        if self.worst {
            watched.raise(&seen.alerts, self.began)?;
        } else {
            // The system call around a late request or wait ends later.
            self.signals.sleep(AROUND)?;
            let more = watched.read()?;
            self.missed += more.missed;
            seen.alerts.extend(more.alerts);
        }
        let began = self.began;
        // Only the explanation shows whether the cause lies within the recording.
        let best = |alert: &Alert| rank(alert, began, false);
        let longest = seen.alerts.iter().max_by_key(|alert| best(alert)).cloned();
        let Some(alert) = longest else {
            return Ok(());
        };
        // A sleep within a system call ends first, so its alert may have been read earlier.
        let is_within = |other: &&Alert| alone::is_inside(other, &alert);
        let mut beside: Vec<Alert> = self.recent.iter().filter(is_within).cloned().collect();
        self.recent.extend_from_slice(&seen.alerts);
        let surplus = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..surplus);
        beside.extend(seen.alerts);
        let is_better = |than: (bool, bool, u64)| {
            let found = self.found.as_ref();
            found.is_none_or(|found| found.rank(began) < than)
        };
        if !is_better(best(&alert)) {
            return Ok(());
        }
        let sleeps = watched.sleeps(&alert, &beside);
        let sleeps = sleeps.unwrap_or_else(|error| {
            note(&format!("no stacks of shorter sleeps: {error:#}"));
            Vec::new()
        });
        let saved = self.save(&alert, &beside, &sleeps, late);
        let capture = saved.unwrap_or_else(|error| {
            note(&format!("no trace: {error:#}"));
            None
        });
        beside.extend(sleeps);
        // The longest operation of the whole run is explained at its end.
        let at_once = capture.as_deref().filter(|_| !self.worst);
        let is_kept = self.is_kept;
        let found = Found {
            explained: at_once.map(|capture| explanation(capture, is_kept, &alert, &beside)),
            clock: clock::at(alert.time),
            alert,
            beside,
            capture,
        };
        self.cut += usize::from(found.is_cut());
        let worse = match self.found.take() {
            Some(old) if old.rank(began) >= found.rank(began) => {
                self.found = Some(old);
                Some(found)
            }
            old => {
                self.found = Some(found);
                old
            }
        };
        if let Some(capture) = worse.and_then(|worse| worse.capture) {
            let removed = std::fs::remove_dir_all(&capture);
            removed.with_context(|| capture.display().to_string())?;
        }
        if !self.worst && !self.is_complete() && !self.has_noted {
            self.has_noted = true;
            note(
                "a late operation, or its cause, began before the recording: waiting for another one (Ctrl-C ends)",
            );
        }
        Ok(())
    }

    /// Makes a capture, as `record` does; `sleeps` are evidence only. Returns `None` without a flight recorder, or if the
    /// recording started during the delay.
    fn save(
        &mut self,
        alert: &Alert,
        alerts: &[Alert],
        sleeps: &[Alert],
        late: Option<crate::record::evidence::Seen>,
    ) -> Result<Option<PathBuf>> {
        let (Some(flight), Some(collector), Some(late)) = (&self.flight, &mut self.evidence, late)
        else {
            return Ok(None);
        };
        let evidence = || {
            let evidence = collector.finish(late);
            collector.rearm();
            evidence
        };
        // A trace that started during the delay does not show the cause.
        if alert.start() < self.began {
            evidence();
            return Ok(None);
        }
        // With `worst`, many traces may be saved, and one is read at the end.
        if !self.worst {
            note(&saving(alert));
        }
        let begun = Instant::now();
        let partial = flight.snapshot(self.captures);
        let took = begun.elapsed();
        let evidence = evidence();
        let mut partial = partial?;
        let alone = self.captures.alone()?;
        let number = self.captures.number(&mut partial)?;
        drop(alone);
        let record = Record {
            capture: number,
            taken: Taken::now(),
            instance: &alert.instance,
            tracker: &alert.tracker,
            snapshot_took: took.as_nanos() as u64,
            lost: self.missed,
            skipped: 0,
            alerts,
            sleeps,
            no_trace: None,
            sent: None,
            not_sent: None,
        };
        partial.write(
            "alert.json",
            &(serde_json::to_string_pretty(&record)? + "\n"),
        )?;
        partial.write(
            "evidence.json",
            &(serde_json::to_string_pretty(&evidence)? + "\n"),
        )?;
        self.captures.keep(partial, number).map(Some)
    }
}

/// The note before the trace of an alert is saved and read, which takes seconds on a slow machine.
fn saving(alert: &Alert) -> String {
    format!(
        "an operation of {} took {}: saving and reading the trace",
        owner(alert),
        alone::took(alert)
    )
}

/// The note about a lower threshold, after nothing has exceeded the old one for this time.
fn lowered(old: Nanos, new: Nanos, time: Duration, missing: Missing) -> String {
    let what = match new == LEAST {
        true => "the lowest without --over",
        false => "half of the longest delay",
    };
    let nothing = missing.nothing_over(old, &format!("for {}", nanos(time)));
    format!("{nothing}: the threshold is now {new}, {what}")
}

/// Numbers of what may hide a late operation.
#[derive(Debug, Clone, Copy)]
struct Missing {
    /// Alerts that were not raised, not recorded or not read.
    alerts: u64,
    /// Operations that could not be tracked.
    operations: u64,
}

impl Missing {
    /// What is missing since the start, with this number of alerts that readers have missed: they were overwritten, or
    /// found no place in the ring.
    fn of(watched: &Watched<'_>, missed: u64) -> Self {
        Self {
            alerts: watched.suppressed() + missed,
            operations: watched.lost(),
        }
    }

    /// States that nothing took longer than `over` in this time, as far as is known.
    fn nothing_over(self, over: Nanos, time: &str) -> String {
        let missing = [(self.alerts, "alert"), (self.operations, "operation")];
        let missing = missing.into_iter().filter(|(number, _)| *number > 0);
        let missing = missing.map(|(number, what)| out::plural(number as usize, what));
        let missing: Vec<String> = missing.collect();
        match missing.as_slice() {
            [] => format!("nothing took longer than {over} {time}"),
            missing => format!(
                "no recorded operation took longer than {over} {time} (missing in this run: {})",
                missing.join(", ")
            ),
        }
    }
}

/// Ranks an operation by how well it can be explained: whether it began within the recording, whether its cause did,
/// and then its delay.
fn rank(alert: &Alert, began: u64, is_cut: bool) -> (bool, bool, u64) {
    (alert.start() >= began, !is_cut, alert.delay)
}

/// Explains an alert from the trace of its capture, and from the stacks of the alerts in `beside`. `is_kept` is whether
/// the capture is kept after the run.
fn explanation(
    capture: &Path,
    is_kept: bool,
    alert: &Alert,
    beside: &[Alert],
) -> Result<Explained> {
    let alerts = std::slice::from_ref(alert);
    let trace = capture.join("trace");
    let saved = match is_kept {
        true => Saved::Capture(trace.clone()),
        false => Saved::Nothing,
    };
    // Reading a trace takes time, so a new thread does it: new threads run at ordinary priority.
    let read = std::thread::scope(|scope| {
        let explain = || explained(&trace, saved, alerts, beside, &mut || ());
        scope.spawn(explain).join()
    });
    let read = read.map_err(|_| anyhow!("the reader of the trace failed"))??;
    read.into_iter().next().context("the alert is missing")
}

impl Found {
    /// Whether the cause of the largest part of the delay began before the recording, as far as is known.
    fn is_cut(&self) -> bool {
        matches!(&self.explained, Some(Ok(explained)) if explained.is_cut)
    }

    fn rank(&self, began: u64) -> (bool, bool, u64) {
        rank(&self.alert, began, self.is_cut())
    }

    /// Whether the search ends with this operation, after the causes of `cut` operations began before the recording.
    fn is_enough(&self, began: u64, cut: usize) -> bool {
        self.alert.start() >= began && (!self.is_cut() || cut >= TRIES)
    }

    /// Prints the explanation, or the contents of the alert if there is none, and `not_seen`. `is_kept` is whether the
    /// capture is kept after the run. With `lost`, the number of alerts that may be missing, also lists the other
    /// operations that were late at about that time.
    fn show(&mut self, is_kept: bool, not_seen: Option<&str>, lost: Option<u64>) -> Result<()> {
        let explained = match (self.explained.take(), &self.capture) {
            (None, Some(capture)) => {
                note("reading the trace of the longest operation");
                let (alert, beside) = (&self.alert, &self.beside);
                Some(explanation(capture, is_kept, alert, beside))
            }
            (explained, _) => explained,
        };
        let alone = || alone::parts(&self.alert, &self.beside, Some(&*self.clock));
        let (mut text, stacks) = match explained {
            None => alone(),
            Some(Ok(explained)) => {
                let running = running::paragraph(&explained.served, &self.alert);
                (explained.text + &running, stacks_of(&self.alert))
            }
            Some(Err(error)) => {
                let (text, stacks) = alone();
                (format!("No explanation: {error:#}\n{text}"), stacks)
            }
        };
        if let Some(not_seen) = not_seen {
            text.push_str(&format!("\n{}\n", out::wrap(not_seen, 2).join("\n")));
        }
        let takes_pids = pids::are_numbered_as_in_alerts(Path::new("/"));
        let (late, others) = (&self.alert, &self.beside);
        let also = lost.map(|lost| also::lines(late, others, lost, takes_pids, clock::at));
        if let Some(lines @ [_, ..]) = also.as_deref() {
            text.push_str(&format!("\n{}\n", lines.join("\n")));
        }
        let text = with_stacks(text, &stacks);
        if let Some(capture) = &self.capture {
            let file = capture.join("explanation.txt");
            // A full disk must not cost the explanation.
            if let Err(error) = std::fs::write(&file, &text) {
                note(&format!("{} not saved: {error}", file.display()));
            }
        }
        for line in text.lines() {
            out::line(line)?;
        }
        Ok(())
    }
}

/// Reports that nothing was late, and the operations that were counted. `missed` is the number of alerts that were
/// overwritten before they were read.
fn nothing(
    watched: &Watched<'_>,
    target: &Target,
    threshold: &Threshold,
    started: Instant,
    missed: u64,
) -> Result<()> {
    let over = threshold.over;
    // The delays are read before the output, which takes time.
    let seen = watched.longest_since_set(&watched.delays());
    let (armed, whole) = (threshold.set.elapsed(), started.elapsed());
    let time = format!("in the {} since this threshold was set", nanos(armed));
    let nothing = Missing::of(watched, missed).nothing_over(over, &time);
    out::line(&format!("{}: {nothing}", target.name))?;
    out::line(&format!(
        "\nAll operations in the {} since the start, also before the threshold was set:",
        nanos(whole)
    ))?;
    for line in watched.table()? {
        out::line(&line)?;
    }
    let stuck = watched.stuck(over);
    if !stuck.is_empty() {
        out::line("\nBut these operations have not ended yet:")?;
    }
    for (tracker, pending) in stuck.iter().take(STUCK) {
        for line in alone::unfinished(tracker, pending) {
            out::line(&line)?;
        }
    }
    if let more @ 1.. = stuck.len().saturating_sub(STUCK) {
        out::line(&format!("  and {more} more"))?;
    }
    if let Some(not_seen) = target.not_seen() {
        out::line(&format!("\n{}", out::wrap(not_seen, 0).join("\n")))?;
    }
    match suggested(over, [seen, watched.longest()]) {
        None => Ok(()),
        Some(lower) => out::line(&format!(
            "\nTo explain shorter operations, try --over {}.",
            lower.exact()
        )),
    }
}

/// A threshold below `over` that a delay in `longest` exceeds; the first delay that allows such a threshold counts.
fn suggested(over: Nanos, longest: [Option<Nanos>; 2]) -> Option<Nanos> {
    let mut longest = longest.into_iter().flatten();
    longest.find_map(|longest| {
        let half = half(longest);
        (half < over && half < longest).then_some(half)
    })
}

/// The threshold for a longest delay: half of it.
fn half(longest: Nanos) -> Nanos {
    round(Nanos(longest.0 / 2)).max(LEAST)
}

/// A duration as printed.
fn nanos(time: Duration) -> Nanos {
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Rounds a time down to two significant digits.
fn round(time: Nanos) -> Nanos {
    let digits = time.0.checked_ilog10().unwrap_or(0);
    let unit = 10u64.pow(digits.saturating_sub(1));
    Nanos(time.0 / unit * unit)
}

/// The directory of captures: one that the user chose, or a temporary one that is removed when dropped.
enum Place {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Place {
    fn new(output: Option<&Path>) -> Result<Self> {
        Ok(match output {
            Some(path) => Self::Kept(path.to_path_buf()),
            None => {
                let made = tempfile::Builder::new()
                    .prefix("latency-tracker-why-")
                    .tempdir();
                Self::Temporary(made.context("no directory for the trace")?)
            }
        })
    }

    /// The directory, if it is a temporary one.
    fn temporary(&self) -> Option<PathBuf> {
        match self {
            Self::Kept(_) => None,
            Self::Temporary(directory) => Some(directory.path().into()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A late operation, and whether its cause began before the recording, if it was explained.
    fn found(start: u64, delay: u64, is_cut: Option<bool>) -> Found {
        let time = start + delay;
        let line = format!(
            "seq=1 time={time} instance=a tracker=syscall reason=threshold delay={delay} threshold=1 cpu=0 pid=7 tid=7 \
             comm=\"x\""
        );
        let text = String::new();
        Found {
            alert: Alert::parse(&line).unwrap(),
            beside: Vec::new(),
            clock: String::new(),
            capture: None,
            explained: is_cut.map(|is_cut| {
                Ok(Explained {
                    text,
                    is_cut,
                    served: Vec::new(),
                })
            }),
        }
    }

    #[test]
    fn an_operation_within_the_recording_is_preferred() {
        let from_the_worst = [
            found(50, 900, None),
            found(100, 20, Some(true)),
            found(150, 500, Some(true)),
            found(120, 10, Some(false)),
            found(100, 30, None),
        ];
        assert!(from_the_worst.is_sorted_by(|a, b| a.rank(100) < b.rank(100)));
        let [before, cut, _, whole, unexplained] = &from_the_worst;
        assert!(whole.is_enough(100, 0) && unexplained.is_enough(100, 0));
        // If a cause began before the recording, the search continues, but only for `TRIES` such operations.
        assert!(!cut.is_enough(100, TRIES - 1) && cut.is_enough(100, TRIES));
        assert!(!before.is_enough(100, TRIES) && before.is_enough(0, 0));
    }

    #[test]
    fn a_threshold_has_two_digits() {
        for (time, rounded) in [
            (101_444_920, 100_000_000),
            (99_900_000, 99_000_000),
            (7, 7),
            (0, 0),
        ] {
            assert_eq!(round(Nanos(time)), Nanos(rounded));
        }
    }

    #[test]
    fn a_threshold_comes_down_while_nothing_is_late() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        let second = Duration::from_secs(1);
        let mut threshold = Threshold::new(ms(780), Some(5 * second));
        let start = threshold.set;
        let mut after = |seconds: u32, longest: Option<Nanos>| {
            let lowered = threshold.lower(start + seconds * second, || longest);
            (lowered, threshold.over)
        };
        assert_eq!(after(4, Some(ms(250))), (false, ms(780)));
        assert_eq!(after(5, Some(ms(251))), (true, ms(120)));
        // The time starts again even if the threshold stays.
        assert_eq!(after(9, Some(ms(100))), (false, ms(120)));
        assert_eq!(after(10, None), (false, ms(120)));
        assert_eq!(after(14, Some(ms(100))), (false, ms(120)));
        assert_eq!(after(15, Some(ms(300))), (false, ms(120)));
        assert_eq!(after(20, Some(Nanos(900))), (true, LEAST));
        assert_eq!(after(25, Some(Nanos(900))), (false, LEAST));
        // The user's threshold.
        let mut set = Threshold::new(ms(780), None);
        assert!(!set.lower(start + 999 * second, || Some(ms(2))));
        assert_eq!(set.over, ms(780));
    }

    #[test]
    fn the_note_about_a_lower_threshold_is_also_true_of_the_lowest_threshold() {
        let none = Missing {
            alerts: 0,
            operations: 0,
        };
        let note = |new| lowered(Nanos(120_000_000), new, Duration::from_secs(5), none);
        let begin = "nothing took longer than 120.0ms for 5.00s: the threshold is now";
        assert_eq!(
            note(half(Nanos(50_000_000))),
            format!("{begin} 25.00ms, half of the longest delay")
        );
        assert_eq!(
            note(half(Nanos(900))),
            format!("{begin} 1.00ms, the lowest without --over")
        );
    }

    #[test]
    fn if_nothing_was_late_what_is_missing_is_counted() {
        for (alerts, operations, expected) in [
            (0, 0, "nothing took longer than 5.00ms for 1s"),
            (
                12,
                0,
                "no recorded operation took longer than 5.00ms for 1s (missing in this run: 12 alerts)",
            ),
            (
                1,
                3,
                "no recorded operation took longer than 5.00ms for 1s (missing in this run: 1 alert, 3 operations)",
            ),
        ] {
            let missing = Missing { alerts, operations };
            let said = missing.nothing_over(Nanos(5_000_000), "for 1s");
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_note_names_the_operation_whose_trace_is_saved() {
        let late = found(50, 250_000_000, None).alert;
        let note = "an operation of x/7 took 250.0ms: saving and reading the trace";
        assert_eq!(saving(&late), note);
    }

    #[test]
    fn what_hides_a_late_operation_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        std::fs::create_dir(file("request")).unwrap();
        let stats = "full 2\nmissed 1\nalerts_suppressed 5\nalerts_lost 7\n";
        for (name, text) in [
            ("control", ""),
            ("request/alerts", ""),
            ("request/stats", stats),
        ] {
            std::fs::write(file(name), text).unwrap();
        }
        let root = ProcRoot::new(directory.path());
        let target = Target::of_disk("sda");
        // This number includes the alerts that found no place in the ring.
        let missed = 100;
        let missing = Missing::of(&Watched::made(&root, &target), missed);
        assert_eq!((missing.alerts, missing.operations), (105, 3));
    }

    /// An operation was late just before the threshold would come down, and its alert was not read yet.
    #[test]
    fn the_threshold_stays_once_an_operation_was_late() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let root = ProcRoot::new(directory.path());
        let mut alerts = watched::fifo(&file("request/alerts"));
        for (name, text) in [
            ("control", ""),
            ("request/stats", "max 250000000\n"),
            ("request/histogram", "234881024 251658240 1\n"),
        ] {
            std::fs::write(file(name), text).unwrap();
        }
        let target = Target::of_disk("sda");
        let mut watched = Watched::made(&root, &target);
        let late = found(50, 250_000_000, None).alert;
        let line = late.to_string().replace("instance=a", "instance=request");
        writeln!(alerts, "{line}").unwrap();
        let signals = Signals::catch().unwrap();
        let captures = Captures::open(&file("captures")).unwrap();
        let over = Nanos(200_000_000);
        let mut search = Search {
            signals: &signals,
            threshold: Threshold::new(over, Some(Duration::ZERO)),
            worst: false,
            began: 0,
            flight: None,
            captures: &captures,
            is_kept: false,
            evidence: None,
            missed: 0,
            cut: 0,
            has_noted: false,
            recent: Vec::new(),
            found: None,
        };
        search.wait(&mut watched, None, None).unwrap();
        assert_eq!(search.threshold.over, over);
        assert_eq!(search.found.unwrap().alert.delay, late.delay);
        assert_eq!(std::fs::read_to_string(file("control")).unwrap(), "");
    }

    #[test]
    fn a_suggested_threshold_has_been_exceeded() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        for (over, seen, whole, expected) in [
            (780, Some(ms(250)), Some(ms(1_570)), Some(ms(120))),
            (100, None, Some(ms(137)), Some(ms(68))),
            (100, None, Some(ms(300)), None),
            (100, Some(Nanos(900)), None, None),
            (100, None, None, None),
        ] {
            assert_eq!(suggested(ms(over), [seen, whole]), expected);
        }
    }
}
