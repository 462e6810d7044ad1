// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `record`: the daemon that saves a kernel trace of the time before each alert.
//!
//! ```text
//!   set up: instance, disabled (with TRACKER) -> LTTng flight recorder -> estimate -> arm delay -> enabled
//!   loop:   NAME/alerts (poll, real-time) -> policy -> post-trigger -> snapshot
//!           -> DIR/0001/{trace/, alert.json, evidence.json, explanation.txt}, rows of --parquet
//!   ends:   signal, --duration, --max-captures, disk budget, instance gone
//!           (without TRACKER: gone, and not replaced by `apply`)
//! ```
//!
//! The instance is created first, because the kernel then validates its parameters: after a typo, nothing is started.
//! To change a parameter that can only be given at creation, `apply` removes the instance and creates it again. Without
//! TRACKER, the new instance is recorded from its start, by the same flight recorder. As long as an `apply` is running,
//! the recorder waits for the new instance.
//! If the cgroup of the instance is replaced, because its unit was restarted, the instance is limited to the new
//! cgroup. The times of `--cooldown` and `--max-per-day` include suspends. If the time of day is set, dates are
//! corrected (see [`dates`]). A capture in the default directory is also listed for `export`, which may lack permission
//! to read it (see [`index`]).
//!
//! A failed snapshot does not end the run: the alerts are saved without a trace, or printed if saving fails as well.
//!
//! Each resource that is set up is a value whose drop releases it, in reverse order, on every exit path. A killed run
//! leaves a note for the next run (see [`leftovers`]).

mod analyses;
mod args;
mod dates;
mod estimate;
pub(crate) mod evidence;
pub(crate) mod flight;
mod index;
mod instance;
pub(crate) mod leftovers;
mod policy;
mod relay;
mod room;
mod same;
mod span;
pub(crate) mod stream;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lt_common::Outcome;
use lt_common::capture::{Captures, Partial, Record, Taken, size_of};
use lt_common::clock;
use lt_common::group::{self, Change, Followed, Groups};
use lt_common::out::{self, bytes, note};
use lt_common::private::make_private;
use lt_common::wait::{Signals, Wake};
use lt_proc::evidence::Evidence;
use lt_proc::{Nanos, ProcError, ProcRoot, Stats};

pub(crate) use self::args::RecordArgs;
use self::dates::{Dates, Jump};
use self::estimate::Estimate;
use self::evidence::Collector;
use self::flight::Flight;
pub(crate) use self::index::INDEX;
use self::index::Index;
use self::instance::Armed;
use self::leftovers::Note;
use self::policy::{History, Skip};
use self::relay::Relay;
use self::room::room;
use self::stream::{Stream, Woken};
use crate::analyze::parquet::{ParquetArgs, check_host};
use crate::config::{STATE, is_being_applied};
use crate::explain::explain_capture;
use crate::service::Service;
use crate::trace::Saved;

/// Default directory of captures.
pub(crate) const CAPTURES: &str = "/var/lib/latency-tracker/captures";

/// Running time of the recorder before its coverage is measured.
const SAMPLE: Duration = Duration::from_secs(1);

/// How often to check whether the flight recorder still records.
const LOOK: Duration = Duration::from_secs(30);

/// How long to wait for an instance that replaces the removed one if this user has no permission to check whether
/// `apply` is running.
const REPLACED: Duration = Duration::from_secs(10);

/// Interval between checks for an instance that replaces the removed one.
const REPLACED_LOOK: Duration = Duration::from_millis(100);

/// Maximum number of alerts of one wakeup that are explained; alert.json has all of them.
const EXPLAINED: usize = 3;

pub(crate) fn run(root: &ProcRoot, args: &RecordArgs) -> Result<Outcome> {
    if !args.events_for.is_empty() {
        return span::run(root, args);
    }
    let signals = Signals::catch()?;
    let service = Service::find();
    lt_common::instance::load_module(root)?;
    lt_common::lttng::make_run_dir()?;
    leftovers::clean(root);
    instance::check(root, args)?;
    let captures = Captures::open(args.captures()).map_err(|error| elsewhere(error, args))?;
    if let Some(directory) = &args.parquet.parquet {
        make_private(directory, "choose another directory with --parquet")?;
        let uname = nix::sys::utsname::uname().context("uname")?;
        check_host(&args.parquet, &uname.nodename().to_string_lossy())?;
    }
    let tracker = instance::tracker(root, args)?;

    // The values from here on are dropped in reverse order, which is the order of the cleanup.
    let mut left = Note::new();
    let mut armed = Armed::prepare(root, args, &mut left)?;
    note("setting up the flight recorder and measuring for a second");
    let dates = Dates::start();
    let flight = Flight::start(args.plan(&tracker), captures.path(), &mut left)?;
    let begun = Instant::now();
    if !signals.sleep(SAMPLE)? {
        return Ok(Outcome::Fine);
    }
    match estimate(&flight, &captures, args, &tracker, begun) {
        Ok(estimate) => out::line(&estimate.to_string())?,
        Err(error) => {
            note(&format!(
                "cannot estimate the time that the buffers cover: {error:#}"
            ));
            note(&room(captures.path()));
        }
    }
    if let Some(relay) = &args.url
        && let Err(error) = relay.check()
    {
        let captures = captures.path().display();
        note(&format!(
            "{error:#}; until the relay daemon answers, captures are saved only in {captures}"
        ));
    }
    if args.arm_delay.0 > 0 && !signals.sleep(args.arm_delay.into())? {
        return Ok(Outcome::Fine);
    }
    let evidence = Collector::start(Path::new("/"));
    out::line(&evidence.to_string())?;
    let stream = armed.arm()?;
    real_time();
    out::line(&format!("instance: {}", armed.line()))?;
    out::line(&format!(
        "armed; captures go to {} (Ctrl-C ends)",
        captures.path().display()
    ))?;
    let recorder = Recorder {
        root,
        args,
        signals: &signals,
        service: &service,
        captures: &captures,
        armed: &armed,
    };
    let is_default = args.captures() == Path::new(CAPTURES);
    let alerts = root.path().join(args.name()).join("alerts");
    let machine = Machine {
        flight,
        evidence,
        index: is_default.then(|| Index::new(alerts)),
        dates,
        left: &mut left,
        failure: String::new(),
        unlimited: None,
    };
    recorder.wait_for_alerts(stream, machine)
}

/// Measures how much time the buffers cover, with a snapshot that is not kept.
fn estimate(
    flight: &Flight,
    captures: &Captures,
    args: &RecordArgs,
    tracker: &str,
    begun: Instant,
) -> Result<Estimate> {
    // The time is taken before the snapshot, because writing the snapshot takes time that its contents do not cover.
    let sampled = begun.elapsed();
    let sample = flight.snapshot(captures)?;
    Estimate::measure(
        &sample.path.join("trace"),
        args.buffers(),
        sampled,
        &args.saved_by_lean(tracker),
    )
}

/// Raises the priority, so that the snapshot is taken before the ring overwrites the events of the delay. Missing
/// permission is not fatal.
fn real_time() {
    let limits = [
        (lt_common::rt::raise(), "rtprio"),
        (lt_common::rt::lock_memory(), "memlock"),
    ];
    for (result, limit) in limits {
        if let Err(error) = result {
            note(&format!(
                "{error:#}: on a busy machine a snapshot may be late; raise `{limit}` in /etc/security/limits.conf"
            ));
        }
    }
}

/// Adds a hint to an error about an output directory that this user may not use.
fn elsewhere(error: anyhow::Error, args: &RecordArgs) -> anyhow::Error {
    let denied = error.chain().any(|cause| {
        let cause = cause.downcast_ref::<std::io::Error>();
        cause.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    });
    match denied {
        true => error.context(format!(
            "cannot save captures in {}: choose another directory with -o",
            args.captures().display()
        )),
        false => error,
    }
}

struct Recorder<'a> {
    root: &'a ProcRoot,
    args: &'a RecordArgs,
    signals: &'a Signals,
    service: &'a Service,
    captures: &'a Captures,
    armed: &'a Armed<'a>,
}

/// The resources of a run besides the instance.
struct Machine<'a> {
    flight: Flight,
    evidence: Collector,
    /// `None` if the captures go to a directory other than the default.
    index: Option<Index>,
    dates: Dates,
    left: &'a mut Note,
    /// The last failure to restart the flight recorder, to report each failure once.
    failure: String,
    /// The last cgroup to which the instance could not be limited, to report each cgroup once.
    unlimited: Option<u64>,
}

/// Result of a wakeup that the policy wants captured.
enum Kept {
    /// A capture with a trace.
    Capture(PathBuf),
    /// Alerts without a trace: in a capture, or only on standard error. The failure has been reported.
    Alerts(Option<PathBuf>),
    /// Nothing: the disk budget has no room; if `is_for_now`, until other recorders have saved their captures.
    Nothing { is_for_now: bool },
}

impl Recorder<'_> {
    fn wait_for_alerts(&self, mut stream: Stream, mut machine: Machine<'_>) -> Result<Outcome> {
        let policy = self.args.policy();
        let end = self.args.duration.map(|d| Instant::now() + d.into());
        let mut history = History::default();
        let mut outcome = Outcome::Fine;
        let mut look = Instant::now() + LOOK;
        let mut followed = self.followed();
        self.service.ready();
        // A signal may also have come while an alert was captured.
        while !history.complete(&policy) && self.signals.last().is_none() {
            self.service.alive();
            if look <= Instant::now() {
                self.look(&mut machine);
                // Another program may have limited the instance to another cgroup.
                let now = self.armed.cgroup();
                followed = followed
                    .filter(|cgroup| Some(cgroup.number()) == now)
                    .or_else(|| now.and_then(Followed::of));
                look = Instant::now() + LOOK;
            }
            if let Some(cgroup) = followed.take_if(|cgroup| cgroup.due() <= Instant::now()) {
                followed = self.follow(cgroup, &mut machine);
            }
            let due = followed.as_ref().map(Followed::due);
            let wake = [end, Some(look), due].into_iter().flatten().min();
            match self
                .signals
                .wait(Some(stream.file()), self.service.next(wake))?
            {
                Wake::Ready => {}
                Wake::Timeout if end.is_none_or(|end| Instant::now() < end) => continue,
                Wake::Timeout | Wake::Signal => break,
            }
            let woken_at = Instant::now();
            let woken = stream.read()?;
            if woken.missed > 0 {
                // An alert that was missed has fired, too.
                outcome = Outcome::Alert;
                history.missed += woken.missed;
                note(&format!(
                    "missed {}, overwritten before they were read: create the instance with a larger ring=",
                    out::plural(woken.missed as usize, "alert")
                ));
            }
            if !woken.alerts.is_empty() {
                outcome = Outcome::Alert;
                if !self.react(&woken, woken_at, &mut history, &mut machine)? {
                    break;
                }
            }
            if woken.end {
                let Some(next) = self.successor(end)? else {
                    break;
                };
                stream = next;
                followed = self.followed();
            }
        }
        self.service.stopping();
        // The state was already reported after the last capture.
        if !history.complete(&policy) {
            out::line("\nended; total")?;
            out::line(&self.state(&history)?)?;
        }
        Ok(outcome)
    }

    /// Returns the alerts of the instance that replaces the removed one. While an `apply` is running, waits for that
    /// instance, though not beyond `end`. `None` if the run ends, which is reported. With TRACKER, the run ends with
    /// the instance that it has created or found.
    fn successor(&self, end: Option<Instant>) -> Result<Option<Stream>> {
        self.armed.set_removed();
        let (root, name) = (self.root, self.args.name());
        let is_unloaded = || lt_common::module::is_going() || !root.is_loaded();
        let last = Instant::now() + REPLACED;
        let mut is_waiting = false;
        while self.args.tracker.is_none() && !is_unloaded() {
            // Read before the instances: an `apply` that has ended since the removal has created the instance by now.
            let may_come = is_being_applied(Path::new(STATE));
            // By the end of the stream, `control` no longer lists the removed instance. It lists a new instance of
            // this name only once the files of the removed instance are gone.
            if let Ok(instance) = root.instance(name) {
                let tracker = self.armed.tracker();
                if instance.tracker != tracker {
                    bail!(
                        "instance {name} was replaced by one of the tracker {}, and this run records the events for \
                         {tracker}: start it again",
                        instance.tracker
                    );
                }
                let stream = Stream::open_whole(root, name)?;
                note(&format!(
                    "instance {name} was replaced: the run continues with the new one; operations in between were not \
                     tracked"
                ));
                out::line(&format!("instance: {instance}"))?;
                return Ok(Some(stream));
            }
            let now = Instant::now();
            let is_over = !may_come.unwrap_or(now < last) || end.is_some_and(|end| end <= now);
            if is_over || self.signals.last().is_some() {
                break;
            }
            if !std::mem::replace(&mut is_waiting, true) {
                note(&format!(
                    "instance {name} was removed: waiting for `apply`, which may replace it"
                ));
            }
            self.service.sleep(self.signals, REPLACED_LOOK)?;
        }
        let what = match is_unloaded() {
            true => "the latency_tracker module was unloaded".to_string(),
            false => format!("instance {name} was removed"),
        };
        note(&format!("{what}, so the run ends"));
        Ok(None)
    }

    /// Captures the alerts, or reports the reason for not doing so. Returns whether the run continues.
    fn react(
        &self,
        woken: &Woken,
        woken_at: Instant,
        history: &mut History,
        machine: &mut Machine<'_>,
    ) -> Result<bool> {
        if let Err(skip) = history.decide(&self.args.policy(), clock::since_boot()) {
            history.skipped += 1;
            self.service.alerts(&woken.alerts, None);
            self.say_skipped(woken, skip)?;
            return Ok(true);
        }
        let kept = self.capture(woken, woken_at, history, machine);
        let path = match &kept {
            Ok(Kept::Capture(path)) => Some(path),
            Ok(Kept::Alerts(path)) => path.as_ref(),
            Ok(Kept::Nothing { .. }) | Err(_) => None,
        };
        self.service
            .alerts(&woken.alerts, path.map(PathBuf::as_path));
        let kept = kept?;
        // This runs in a separate thread, at ordinary priority: there may be many cgroups.
        let _ = std::thread::scope(|scope| scope.spawn(|| machine.evidence.rearm()).join());
        match kept {
            Kept::Capture(path) => {
                history.captured(clock::since_boot());
                // This is checked here, because the snapshot of a stopped recorder does not fail.
                self.look(machine);
                self.forget_old(machine);
                self.list(&path, machine);
                self.say_state(history)?;
            }
            Kept::Alerts(path) => {
                history.failed(clock::since_boot());
                self.forget_old(machine);
                if let Some(path) = path {
                    self.list(&path, machine);
                }
                self.say_state(history)?;
            }
            Kept::Nothing { is_for_now: true } => {
                history.refused(clock::since_boot());
                self.say_skipped(woken, Skip::Others)?;
            }
            Kept::Nothing { is_for_now: false } => {
                history.skipped += 1;
                self.say_skipped(woken, Skip::Budget)?;
                let hint = match self.args.rotate {
                    true => "raise --disk-budget, or lower --subbuf-size or --num-subbuf",
                    false => "free some space, raise --disk-budget or use --rotate",
                };
                note(&format!(
                    "no room for the capture within the disk budget, so the run ends; {hint}"
                ));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The cgroup to follow, if the instance is limited to one. If it does not exist, reports that.
    fn followed(&self) -> Option<Followed> {
        let instance = self.root.instance(self.args.name()).ok()?;
        if let Some(number) = Groups::find().missing(&instance) {
            let about = group::about_missing(number);
            note(&format!("{}: {about}", instance.name));
            note(&group::remedy(&instance));
        }
        self.armed.cgroup().and_then(Followed::of)
    }

    /// If the cgroup of the instance has a successor, limits the instance to the successor. After a failure, which is
    /// reported once, the next look tries again. Returns the cgroup to follow, if there is one.
    fn follow(&self, mut followed: Followed, machine: &mut Machine<'_>) -> Option<Followed> {
        let name = self.args.name();
        let Some(change) = followed.look(|| None) else {
            return Some(followed);
        };
        // Another program may have changed the instance, or removed it.
        if self.armed.cgroup() != Some(followed.number()) {
            return self.followed();
        }
        match change {
            Change::Removed => note(&format!(
                "the cgroup of {name} was removed: nothing is tracked until it is created again"
            )),
            Change::New(number) => {
                if let Err(error) = self.armed.limit_to(number, machine.left) {
                    let is_reported = machine.unlimited == Some(number);
                    // The instance may have been removed meanwhile.
                    if !is_reported && self.armed.cgroup() == Some(followed.number()) {
                        machine.unlimited = Some(number);
                        note(&format!(
                            "the cgroup of {name} was created again, but the instance is still limited to the old one, \
                             so nothing is tracked: {error:#}"
                        ));
                    }
                    return Some(followed);
                }
                let unseen = followed.watch(number);
                note(&format!(
                    "the cgroup of {name} was created again: the instance is limited to the new one from now on; \
                     operations that began up to {} earlier may not have been seen",
                    Nanos(unseen.as_nanos() as u64)
                ));
            }
        }
        Some(followed)
    }

    /// Restarts a flight recorder that has stopped, and reports the gap. If the time of day was set, `--keep-for` also
    /// corrects the dates of captures: after a reboot, the age of a capture is known only by its date.
    fn look(&self, machine: &mut Machine<'_>) {
        if let Some(lost) = self.revive(machine) {
            note(&lost);
        }
        if self.check_dates(machine) {
            self.forget_old(machine);
        }
    }

    /// If the time of day was set, or the machine was suspended, dates later traces by the present time of day. Returns
    /// whether the time of day was set, which is reported.
    fn check_dates(&self, machine: &mut Machine<'_>) -> bool {
        let Some(jump) = machine.dates.look() else {
            return false;
        };
        if let Jump::Set(how) = &jump {
            note(how);
        }
        if let Err(error) = machine.flight.set_date() {
            note(&format!(
                "later traces of this run may have the former time of day: {error:#}"
            ));
        }
        jump != Jump::Suspended
    }

    /// Restarts the flight recorder if it has stopped, and returns a description of the gap. Reports a failure.
    fn revive(&self, machine: &mut Machine<'_>) -> Option<String> {
        let revived = machine.flight.revive(self.captures.path(), machine.left);
        let failure = revived.as_ref().map_or_else(
            |error| format!("no flight recorder: {error:#}"),
            |_| String::new(),
        );
        if !failure.is_empty() && failure != machine.failure {
            note(&failure);
        }
        machine.failure = failure;
        revived.ok().flatten()
    }

    /// Takes the snapshot and writes alert.json, evidence.json, explanation.txt and the rows of --parquet. Without a
    /// snapshot there is no explanation, and there are no rows; with --no-explain, there is no explanation.
    fn capture(
        &self,
        woken: &Woken,
        woken_at: Instant,
        history: &mut History,
        machine: &mut Machine<'_>,
    ) -> Result<Kept> {
        // The names are looked up at once, while the processes still exist.
        let naming = woken.find_names();
        let seen = machine.evidence.woken(&woken.alerts);
        if self.args.post_trigger.0 > 0 {
            // A signal ends this wait; the run ends after the capture.
            let time = self.args.post_trigger.into();
            self.service.sleep(self.signals, time)?;
        }
        self.service.alive();
        let (partial, failure) = match machine.flight.snapshot(self.captures) {
            Ok(partial) => (Ok(partial), None),
            Err(error) => {
                let lost = self.revive(machine);
                let failure = lost.unwrap_or_else(|| {
                    note(&room(self.captures.path()));
                    format!("{error:#}")
                });
                // The partial trace has been removed, so there may be room for the alerts now.
                (self.captures.partial(), Some(failure))
            }
        };
        let took = woken_at.elapsed();
        let woken = &naming.join().unwrap_or_else(|_| woken.clone());
        let evidence = machine.evidence.finish(seen);
        if let Some(failure) = &failure {
            note(&format!("no trace: {failure}"));
        }
        let saved = partial.and_then(|mut partial| {
            let alone = self.captures.alone()?;
            let number = self.captures.number(&mut partial)?;
            if let Some(nothing) = self.make_room(&partial)? {
                return Ok(Err(nothing));
            }
            drop(alone);
            let mut record = self.record(number, took, woken, history, failure.as_deref());
            let sent = match (&self.args.url, &failure) {
                (Some(relay), None) => Some(self.send(relay, machine, number, woken, &evidence)),
                _ => None,
            };
            match &sent {
                Some(Ok(place)) => record.sent = Some(place),
                Some(Err(why)) => {
                    record.not_sent = Some(why);
                    history.unsent += 1;
                }
                None => {}
            }
            partial.write(
                "alert.json",
                &(serde_json::to_string_pretty(&record)? + "\n"),
            )?;
            self.write_evidence(&partial, &evidence);
            self.service.alive();
            let parquet = &self.args.parquet;
            let (text, unwritten) = match &failure {
                Some(_) => (None, Some("it has no trace".to_string())),
                None if self.args.no_explain => (None, None),
                None => {
                    let (service, captures) = (self.service, self.captures);
                    let (text, unwritten) =
                        explanation(service, captures, &partial, number, woken, parquet);
                    (Some(text), unwritten)
                }
            };
            if let (Some(directory), Some(why)) = (&parquet.parquet, unwritten) {
                history.unwritten += 1;
                note(&format!(
                    "capture {number:04} has no rows in {}: {why}",
                    directory.display()
                ));
            }
            // The files besides the trace count, too.
            let _alone = self.captures.alone()?;
            Ok(match self.make_room(&partial)? {
                Some(nothing) => Err(nothing),
                None => Ok((partial, number, text)),
            })
        });
        let (partial, number, text) = match saved {
            Ok(Ok(saved)) => saved,
            Ok(Err(nothing)) => return Ok(nothing),
            Err(error) => {
                self.print_alerts(woken, &error);
                return Ok(Kept::Alerts(None));
            }
        };
        let path = match self.captures.keep(partial, number) {
            Ok(path) => path,
            Err(error) => {
                self.print_alerts(woken, &error);
                return Ok(Kept::Alerts(None));
            }
        };
        // The result is printed only now: a failure to print must not cost the capture.
        let alerts = out::plural(woken.alerts.len(), "alert");
        let how = match failure {
            None => "saved",
            Some(_) => "saved without a trace",
        };
        out::line(&format!(
            "\ncapture {number:04}: {alerts}, {how} within {}",
            Nanos(took.as_nanos() as u64)
        ))?;
        if let Some(text) = text
            && !self.service.is_logged()
        {
            out::line(&text)?;
        }
        out::line(&format!("saved as {}", path.display()))?;
        Ok(match failure {
            None => Kept::Capture(path),
            Some(_) => Kept::Alerts(Some(path)),
        })
    }

    /// The contents of `alert.json`.
    fn record<'a>(
        &'a self,
        capture: u64,
        took: Duration,
        woken: &'a Woken,
        history: &History,
        failure: Option<&'a str>,
    ) -> Record<'a> {
        Record {
            capture,
            taken: Taken::now(),
            instance: self.args.name(),
            tracker: self.armed.tracker(),
            snapshot_took: took.as_nanos() as u64,
            lost: woken.missed,
            skipped: history.skipped,
            alerts: &woken.alerts,
            sleeps: &[],
            no_trace: failure,
            sent: None,
            not_sent: None,
        }
    }

    /// Sends a copy of the trace to the relay daemon. Returns the location of the copy, or the reason for a failure.
    fn send(
        &self,
        relay: &Relay,
        machine: &Machine<'_>,
        number: u64,
        woken: &Woken,
        evidence: &Evidence,
    ) -> Result<String, String> {
        self.service.alive();
        let (flight, name) = (&machine.flight, format!("{number:04}"));
        let sent = relay
            .prepare(number, &woken.alerts, evidence)
            .and_then(|()| flight.send(&name, &relay.url));
        self.service.alive();
        match sent {
            Ok(()) => {
                let place = relay.place(flight.name(), &name);
                note(&format!(
                    "capture {number:04} sent to {}: {place}",
                    relay.url
                ));
                Ok(format!("{} {place}", relay.url))
            }
            Err(error) => {
                let why = format!("{error:#}");
                let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
                note(&format!(
                    "capture {number:04} saved only here, not sent: {why}"
                ));
                Err(why)
            }
        }
    }

    /// Writes `evidence.json`. A failure does not invalidate the capture.
    fn write_evidence(&self, partial: &Partial, evidence: &Evidence) {
        let text = serde_json::to_string_pretty(evidence).map_err(Into::into);
        let written = text.and_then(|text| partial.write("evidence.json", &(text + "\n")));
        if let Err(error) = written {
            note(&format!("evidence not saved: {error:#}"));
            note(&room(self.captures.path()));
        }
    }

    /// Prints the alerts on standard error as the kernel wrote them, since they are not in any file. In the journal,
    /// they have no user-space addresses.
    fn print_alerts(&self, woken: &Woken, error: &anyhow::Error) {
        note(&format!("alerts not saved: {error:#}"));
        note(&room(self.captures.path()));
        for alert in &woken.alerts {
            let text = match self.service.is_logged() {
                true => alert.without_user_addresses().to_string(),
                false => alert.to_string(),
            };
            note(&out::printable(&text));
        }
    }

    /// Returns [`Kept::Nothing`] unless all captures, including `partial`, fit into the disk budget. With `--rotate`,
    /// removes old captures to make room. `partial` must have its number, and the caller must hold the lock of
    /// [`Captures::alone`].
    fn make_room(&self, partial: &Partial) -> Result<Option<Kept>> {
        let (budget, rotate) = (self.args.disk_budget.0, self.args.rotate);
        let removed = |oldest: &Path| {
            note(&format!(
                "removed {} to stay within the disk budget",
                oldest.display()
            ));
        };
        if self.captures.make_room(budget, rotate, removed)? {
            return Ok(None);
        }
        // With `rotate`, all complete captures may be removed, so unfinished captures of other recorders fill the room.
        let is_for_now = rotate && size_of(&partial.path) <= budget;
        Ok(Some(Kept::Nothing { is_for_now }))
    }

    /// Removes captures that exceed the age limit, and then those that exceed the number to keep.
    fn forget_old(&self, machine: &mut Machine<'_>) {
        self.check_dates(machine);
        if let Some(age) = self.args.keep_for {
            let why = format!("older than {age}");
            let by_date = machine.dates.are_settled();
            self.forget(&why, |captures| captures.remove_older(age.into(), by_date));
        }
        if let Some(keep) = self.args.keep {
            let why = format!("to keep the newest {keep}");
            self.forget(&why, |captures| captures.remove_excess(keep));
        }
    }

    /// Lists a capture for `export`.
    fn list(&self, saved: &Path, machine: &mut Machine<'_>) {
        if let Some(index) = &mut machine.index {
            index.add(self.captures, saved);
        }
    }

    fn forget(&self, why: &str, remove: impl FnOnce(&Captures) -> Result<Vec<PathBuf>>) {
        let alone = self.captures.alone();
        match alone.and_then(|_alone| remove(self.captures)) {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => {
                let removed = out::plural(removed.len(), "capture");
                note(&format!("removed {removed}, {why}"));
            }
            Err(error) => note(&format!("old captures not removed: {error:#}")),
        }
    }

    fn say_skipped(&self, woken: &Woken, why: Skip) -> Result<()> {
        let Some(slowest) = woken.alerts.iter().max_by_key(|a| a.delay) else {
            return Ok(());
        };
        let text = format!(
            "no capture ({why}): {}, the longest took {}: {}",
            out::plural(woken.alerts.len(), "alert"),
            Nanos(slowest.delay),
            slowest.subject()
        );
        out::line(&out::fit_line(&text))
    }

    fn say_state(&self, history: &History) -> Result<()> {
        let state = self.state(history)?;
        self.service.status(&state.replace('\n', "  "));
        out::line(&state)
    }

    fn state(&self, history: &History) -> Result<String> {
        let size = bytes(
            self.captures
                .size()
                .context("cannot measure the captures")?,
        );
        let failed = match history.failed {
            0 => String::new(),
            n => format!("  without a trace {n}"),
        };
        let unsent = match history.unsent {
            0 => String::new(),
            n => format!("  not sent {n}"),
        };
        let unwritten = match history.unwritten {
            0 => String::new(),
            n => format!("  without rows {n}"),
        };
        Ok(format!(
            "captures {}{failed}{unsent}{unwritten}  skipped {}  disk {size} of {}\n{}",
            history.taken,
            history.skipped,
            bytes(self.args.disk_budget.0),
            counters(self.root.stats(self.args.name()), history.missed),
        ))
    }
}

/// The counters of the instance, unless they cannot be read, and the number of alerts that this run has missed. At the
/// end of a run, the instance may be gone.
fn counters(stats: Result<Stats, ProcError>, missed: u64) -> String {
    let missed = format!("missed: alerts {}", out::thousands(missed));
    match stats.map_err(anyhow::Error::from) {
        Ok(stats) => format!(
            "events {}  alerts {}  {missed}  events {}",
            out::thousands(stats.count("started")),
            out::thousands(stats.count("alerts")),
            out::lost(&stats),
        ),
        Err(error) => format!("counters not readable: {error:#}  {missed}"),
    }
}

/// Explains the slowest alerts of the capture with this number, and writes the rows of --parquet. Returns the text, and
/// why the rows were not written. An unreadable trace is reported, and is not fatal.
fn explanation(
    service: &Service,
    captures: &Captures,
    partial: &Partial,
    number: u64,
    woken: &Woken,
    parquet: &ParquetArgs,
) -> (String, Option<String>) {
    let mut slowest = woken.alerts.clone();
    slowest.sort_by_key(|a| std::cmp::Reverse(a.delay));
    slowest.truncate(EXPLAINED);
    let trace = partial.path.join("trace");
    let saved = Saved::Capture(captures.place(number).join("trace"));
    // Reading a trace takes time, so a new thread does it: new threads run at ordinary priority.
    let explained = std::thread::scope(|scope| {
        let explain = || {
            let goes_on = &mut service.progress();
            explain_capture(&trace, saved, &slowest, &woken.alerts, parquet, goes_on)
        };
        scope.spawn(explain).join()
    });
    let (text, unwritten) = match explained {
        Ok(Ok((texts, written))) => {
            let more = woken.alerts.len() - slowest.len();
            let rest = if more > 0 {
                format!(
                    "\n{} not explained; see alert.json.\n",
                    out::plural(more, "more alert")
                )
            } else {
                String::new()
            };
            let unwritten = written.err().map(|error| format!("{error:#}"));
            (texts.join("\n") + &rest, unwritten)
        }
        Ok(Err(error)) => {
            let why = format!("{error:#}");
            (format!("No explanation: {why}\n"), Some(why))
        }
        Err(_) => {
            let why = "the reader of the trace failed";
            (format!("No explanation: {why}.\n"), Some(why.into()))
        }
    };
    if let Err(error) = partial.write("explanation.txt", &text) {
        note(&format!("explanation not saved: {error:#}"));
        note(&room(captures.path()));
    }
    (text, unwritten)
}

#[cfg(test)]
mod tests {
    use std::io::Result;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;

    use lt_proc::Alert;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    /// A capture of the trace `compact` and a late thread in it, not yet explained.
    fn capture(traces: &Path) -> (Captures, Partial, Woken) {
        let captures = Captures::open(&traces.join("captures")).unwrap();
        let partial = captures.partial().unwrap();
        std::fs::rename(traces.join("compact"), partial.path.join("trace")).unwrap();
        let alert = "seq=1 time=22672338106 instance=a tracker=offcpu reason=threshold delay=300000000 threshold=1 \
                     cpu=0 pid=187 tid=195 comm=\"lttng-consumerd\"";
        let woken = Woken {
            alerts: vec![Alert::parse(alert).unwrap()],
            ..Woken::default()
        };
        let text = serde_json::json!({ "alerts": woken.alerts }).to_string();
        partial.write("alert.json", &text).unwrap();
        (captures, partial, woken)
    }

    /// Runs as a service in a separate process: waits for a signal, and explains an alert.
    #[test]
    #[ignore = "run by the_watchdog_is_reset_while_a_trace_is_read"]
    fn a_service() {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return;
        }
        let signals = Signals::catch().unwrap();
        let service = Service::find();
        service.sleep(&signals, Duration::from_secs(3600)).unwrap();
        service.status("explains");
        let traces = crate::trace::test_traces();
        let (captures, partial, woken) = capture(traces.path());
        let none = ParquetArgs {
            parquet: None,
            host: None,
        };
        let (text, _) = explanation(&service, &captures, &partial, 1, &woken, &none);
        assert!(!text.contains("No explanation"), "{text}");
        service.stopping();
    }

    #[test]
    fn rows_that_cannot_be_written_change_no_explanation() {
        let traces = crate::trace::test_traces();
        let (captures, partial, woken) = capture(traces.path());
        std::fs::write(traces.path().join("file"), "kept").unwrap();
        let service = Service::find();
        let explained = |place: &str| {
            let parquet = ParquetArgs {
                parquet: Some(traces.path().join(place)),
                host: Some("web3".into()),
            };
            let explained = explanation(&service, &captures, &partial, 1, &woken, &parquet);
            std::fs::remove_file(partial.path.join("explanation.txt")).unwrap();
            explained
        };
        let (text, unwritten) = explained("fleet");
        assert!(!text.contains("No explanation"), "{text}");
        assert_eq!(unwritten, None);
        for table in ["alerts", "edges", "coverage"] {
            let host = traces.path().join("fleet").join(table).join("host=web3");
            assert_eq!(std::fs::read_dir(host).unwrap().count(), 1, "{table}");
        }
        let (same, unwritten) = explained("file");
        assert_eq!(same, text);
        let why = unwritten.unwrap();
        assert!(why.contains("Not a directory"), "{why}");
        // Without a readable trace, there is neither.
        std::fs::remove_dir_all(partial.path.join("trace")).unwrap();
        let (text, unwritten) = explained("fleet");
        assert!(text.starts_with("No explanation: "), "{text}");
        assert!(unwritten.is_some());
    }

    #[test]
    fn counters_that_cannot_be_read_are_not_shown_as_zero() {
        let stats = Stats::parse("started 1200\nfull 2\nalerts 3\n").unwrap();
        assert_eq!(
            counters(Ok(stats), 1),
            "events 1,200  alerts 3  missed: alerts 1  events 2 (pool full)"
        );
        let gone = ProcError::NoInstance("slow".into());
        assert_eq!(
            counters(Err(gone), 1),
            "counters not readable: no instance named \"slow\"  missed: alerts 1"
        );
    }

    #[test]
    fn the_watchdog_is_reset_while_a_trace_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut service = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "record::tests::a_service", "--ignored"])
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "1")
            .env_remove("WATCHDOG_PID")
            .env_remove("JOURNAL_STREAM")
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(service.id().cast_signed());
        // This test must end even if the service fails.
        let ended = std::thread::spawn(move || {
            let status = service.wait().unwrap();
            let end = UnixDatagram::unbound().unwrap();
            end.send_to(b"ended", &path).unwrap();
            status
        });
        let next = || -> Result<String> {
            let mut message = [0; 256];
            let length = socket.recv(&mut message)?;
            Ok(String::from_utf8_lossy(&message[..length]).into_owned())
        };
        let resets_until = |last: &str| {
            let mut resets = 0;
            loop {
                match next().unwrap().trim_end() {
                    "WATCHDOG=1" => resets += 1,
                    message if message == last => return resets,
                    message => assert_ne!(message, "ended", "after {resets} resets"),
                }
            }
        };
        // While waiting, the service resets the watchdog repeatedly, until the signal.
        for _ in 0..3 {
            assert_eq!(next().unwrap().trim_end(), "WATCHDOG=1");
        }
        kill(pid, Signal::SIGTERM).unwrap();
        resets_until("STATUS=explains");
        let resets = resets_until("STOPPING=1");
        assert!(resets > 1, "{resets} resets while 4,756 events are read");
        assert!(ended.join().unwrap().success());
    }
}
