// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The observers of the threads under test: instances of our own trackers, and LTTng's flight recorder. For a loop they
//! are off in the slices of the baseline, and on in the other slices.
//!
//! The kernel does not remove them when the process ends. Dropping [`Armed`] removes them; if the
//! process is killed, a guard does (see [`super::guard`]). If the guard was killed, too, the next
//! run removes the instances: their names contain the pid of the process that is gone.

use std::path::Path;

use anyhow::Result;
use lt_common::capture::Captures;
use lt_common::instance;
use lt_common::lttng::{self, Buffers, Daemon, Session};
use lt_common::out::note;
use lt_proc::{ProcRoot, Setting};

use super::args::{EventKind, LoopArgs};
use super::guard::{Guard, Guarded};
use super::place::Place;

const PREFIX: &str = "bench_";
/// The trackers that show activity that kept a CPU from its task.
const TRACKERS: [&str; 3] = ["irq", "softirq", "runqueue"];
/// Trackers of further instances that a bench creates.
const OTHERS: [&str; 2] = ["syscall", "tree"];

/// An instance to be created.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) tracker: &'static str,
    /// All settings except `enabled=0`, which every instance starts with.
    pub(super) settings: Vec<Setting>,
}

/// An instance created by this process.
#[derive(Debug)]
struct Watcher<'a> {
    root: &'a ProcRoot,
    name: String,
    tracker: &'static str,
}

impl Watcher<'_> {
    fn enable(&self, on: bool) -> Result<()> {
        let setting = setting("enabled", u8::from(on));
        self.root.create(&self.name, self.tracker, &[setting])?;
        Ok(())
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        if self.root.instance(&self.name).is_ok()
            && let Err(error) = self.root.remove(&self.name)
        {
            note(&format!("instance {} is left behind: {error}", self.name));
        }
    }
}

/// Losses. All counts are 0 if a result is complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Lost {
    /// Peaks whose causes were not searched for.
    pub(super) peaks: u64,
    /// Alerts that found no place in the ring of their instance.
    pub(super) alerts: u64,
    /// Alerts of any instance that were lost before they were read, or could not be parsed.
    pub(super) unread: u64,
    /// Alerts that were dropped for lack of room. They fail no run: they matter only for late
    /// cycles, which fail it.
    pub(super) dropped: u64,
    /// Operations that an instance did not track for lack of room.
    pub(super) operations: u64,
    /// Events of the loop that the tracker syscall did not see.
    pub(super) events: u64,
    /// Events that LTTng discarded.
    pub(super) lttng: u64,
}

impl Lost {
    pub(super) fn nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the losses that fail a run.
    pub(super) fn failed(&self) -> Vec<String> {
        let all = [
            (
                self.peaks,
                "peaks are not explained: raise --max-causes or --threshold",
            ),
            (
                self.alerts,
                "alerts found no place in the ring of their instance",
            ),
            (
                self.unread,
                "alerts, of any instance, were lost before they were read or could not be parsed",
            ),
            (
                self.operations,
                "operations were not followed: the pool of an instance was full",
            ),
            (
                self.events,
                "events of the loop were not seen by the tracker syscall",
            ),
            (
                self.lttng,
                "events were discarded by LTTng: give its channels larger buffers",
            ),
        ];
        let lost = all.iter().filter(|(count, _)| *count > 0);
        lost.map(|(count, what)| format!("{count} {what}"))
            .collect()
    }
}

/// All instances and sessions of a run. They are removed in the order of the fields.
#[derive(Debug)]
pub(super) struct Armed<'a> {
    watchers: Vec<Watcher<'a>>,
    session: Option<Session>,
    pub(super) captures: Option<Captures>,
    /// All sessions at the start, including sessions of other users: the load of a run may make them discard events.
    /// `discarded` is the number that they had discarded by then.
    sessions: Vec<String>,
    discarded: u64,
    _daemon: Option<Daemon>,
    _guard: Option<Guard>,
}

impl<'a> Armed<'a> {
    /// Sets up these instances, and a flight recorder that saves in this directory. All start
    /// switched off.
    pub(super) fn new(
        root: &'a ProcRoot,
        wanted: Vec<Wanted>,
        snapshot: Option<&Path>,
    ) -> Result<Self> {
        let mut armed = Self {
            watchers: Vec::new(),
            session: None,
            captures: None,
            sessions: Vec::new(),
            discarded: 0,
            _daemon: None,
            _guard: None,
        };
        if wanted.is_empty() && snapshot.is_none() {
            return Ok(armed);
        }
        let pid = std::process::id();
        let session = lttng::session_name("bench", pid);
        let named = |tracker| format!("{PREFIX}{pid}_{tracker}");
        let names: Vec<String> = wanted.iter().map(|wanted| named(wanted.tracker)).collect();
        if !wanted.is_empty() {
            instance::load_module(root)?;
            remove_leftovers(root);
        }
        if let Some(directory) = snapshot {
            armed.captures = Some(Captures::open(directory)?);
            // LTTng's commands keep their configuration in the run directory.
            lttng::make_run_dir()?;
            armed._daemon = Some(Daemon::ensure(|_| ())?);
        }
        let guarded = Guarded {
            control: Some(&root.path().join("control")),
            instances: &names,
            session: snapshot.is_some().then_some(session.as_str()),
            daemon: armed._daemon.as_ref().and_then(Daemon::started),
            directory: None,
        };
        armed._guard = Some(Guard::start(&guarded)?);
        for (name, wanted) in names.into_iter().zip(wanted) {
            let off = std::iter::once(setting("enabled", 0));
            let settings: Vec<Setting> = off.chain(wanted.settings).collect();
            instance::create(
                root,
                &name,
                wanted.tracker,
                &settings,
                &lt_common::out::note,
            )?;
            armed.watchers.push(Watcher {
                root,
                name,
                tracker: wanted.tracker,
            });
        }
        if let Some(captures) = &armed.captures {
            let events: Vec<String> = lttng::events::default_events("irq", true)
                .into_iter()
                .map(String::from)
                .collect();
            let buffers = Buffers {
                subbuf_size: 1 << 20,
                num_subbuf: 4,
            };
            let session = Session::start(&session, captures.path(), buffers, &events, None)?;
            session.record(false)?;
            armed.session = Some(session);
        }
        armed.sessions = lttng::sessions();
        armed.discarded = lttng::discarded(&armed.sessions)?;
        Ok(armed)
    }

    /// Switches the instances and the flight recorder on or off.
    pub(super) fn switch(&self, on: bool) -> Result<()> {
        self.watchers
            .iter()
            .try_for_each(|watcher| watcher.enable(on))?;
        self.session
            .iter()
            .try_for_each(|session| session.record(on))
    }

    /// Returns the flight recorder, if there is one.
    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Returns the losses, given the number of events that were generated while the instances were switched on, and the
    /// number of alerts that were not read, which count if there are instances.
    pub(super) fn lost(&self, events: u64, unread: u64) -> Result<Lost> {
        let mut lost = Lost::default();
        if !self.watchers.is_empty() {
            lost.unread = unread;
        }
        for watcher in &self.watchers {
            let stats = watcher.root.stats(&watcher.name)?;
            lost.operations += stats.lost();
            lost.alerts += stats.count("alerts_lost");
            if watcher.tracker == "syscall" {
                lost.events = events.saturating_sub(stats.count("started"));
            }
        }
        // The losses of a session are unknown once it no longer exists.
        let there: Vec<String> = lttng_sessions(&self.sessions);
        lost.lttng = lttng::discarded(&there)?.saturating_sub(self.discarded);
        Ok(lost)
    }

    /// Describes the instances and the session in a phrase.
    pub(super) fn said(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.watchers.is_empty() {
            let names: Vec<&str> = self.watchers.iter().map(|w| w.name.as_str()).collect();
            parts.push(format!("instances {}", names.join(", ")));
        }
        if let Some(session) = &self.session {
            parts.push(format!("LTTng session {}", session.name()));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Returns the sessions of `known` that still exist.
fn lttng_sessions(known: &[String]) -> Vec<String> {
    if known.is_empty() {
        return Vec::new();
    }
    let now = lttng::sessions();
    known
        .iter()
        .filter(|name| now.contains(name))
        .cloned()
        .collect()
}

/// Returns the instances that the options of a loop request.
pub(super) fn of_loop(args: &LoopArgs, place: &Place) -> Vec<Wanted> {
    let mut trackers = match args.arm {
        true => TRACKERS.to_vec(),
        false => Vec::new(),
    };
    if args.arm && args.event == EventKind::Syscall {
        trackers.push("syscall");
    }
    let wanted = |tracker| Wanted {
        tracker,
        settings: settings(args, place, tracker, std::process::id()),
    };
    trackers.into_iter().map(wanted).collect()
}

pub(super) fn setting(key: &str, value: impl ToString) -> Setting {
    Setting {
        key: key.into(),
        value: value.to_string(),
    }
}

/// Returns the settings of an instance. The threshold is half of the peak threshold: a delay of that length explains at
/// least half of a peak at the threshold.
fn settings(args: &LoopArgs, place: &Place, tracker: &str, pid: u32) -> Vec<Setting> {
    let mut settings = vec![setting("threshold", format!("{}ns", args.threshold.0 / 2))];
    match tracker {
        "runqueue" => settings.push(setting("pid", pid)),
        "syscall" => settings.extend([setting("pid", pid), setting("calls", "getppid")]),
        // These trackers can filter by one CPU only.
        _ if place.cpus.iter().count() == 1 => {
            settings.extend(place.cpus.first().map(|cpu| setting("cpu", cpu)));
        }
        _ => {}
    }
    settings
}

/// Removes the instances of runs that were killed together with their guards.
fn remove_leftovers(root: &ProcRoot) {
    for instance in root.instances().unwrap_or_default() {
        let owner = owner(&instance.name);
        let gone = owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if gone && root.remove(&instance.name).is_ok() {
            note(&format!(
                "removed instance {}, left by a killed run",
                instance.name
            ));
        }
    }
}

/// Returns the pid of the bench that created an instance; `None` for other instances.
fn owner(name: &str) -> Option<u32> {
    let (pid, tracker) = name.strip_prefix(PREFIX)?.split_once('_')?;
    let ours = TRACKERS.contains(&tracker) || OTHERS.contains(&tracker);
    ours.then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_owner() {
        for tracker in ["irq", "runqueue", "syscall", "tree"] {
            assert_eq!(owner(&format!("{PREFIX}17_{tracker}")), Some(17));
            assert!(lt_proc::valid_name(&format!("{PREFIX}4194304_{tracker}")));
        }
        for foreign in [
            "bench_irq",
            "bench_x_irq",
            "bench_17_mine",
            "irq",
            "bench_17",
        ] {
            assert_eq!(owner(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn one_lost_event_is_a_loss() {
        assert!(Lost::default().nothing());
        assert!(
            !Lost {
                lttng: 1,
                ..Lost::default()
            }
            .nothing()
        );
    }
}
