// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The instances of a run of `why`, and their alerts.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use lt_common::group::{Change, Followed};
use lt_common::out::{self, note};
use lt_common::{clock, exec, pids};
use lt_proc::{Alert, Histogram, Nanos, Pending, ProcRoot, Setting};

use super::nanos;
use super::target::{CGROUP, Part, Target};
use crate::explain::alone::is_inside;
use crate::record::leftovers::Note;
use crate::record::stream::Stream;
use crate::ustack::Names;

/// A threshold that no operation exceeds: the instances count, and raise no alert.
const NEVER: Nanos = Nanos(31_536_000_000_000_000);

/// Sleeps that are longer than the threshold divided by this have stacks.
const SHARE: u64 = 5;

const USTACK: &str = "ustack";
const OFFCPU: &str = "offcpu";

/// Maximum number of alerts per second and instance: bounds the cost of a threshold that is far too low.
pub(super) const MOST: u64 = 1000;

/// The instances; removed when dropped.
pub(super) struct Watched<'a> {
    root: &'a ProcRoot,
    target: &'a Target,
    /// The target's cgroup.
    followed: Option<Followed>,
    instances: Vec<Watch>,
    /// The instance that records the stacks of shorter sleeps. Its alerts are read only once an operation was late.
    stacks: Option<Watch>,
    names: Names,
    /// The session daemon and its descendants.
    lttng: BTreeSet<u32>,
}

struct Watch {
    name: String,
    part: Part,
    alerts: Stream,
    /// The threshold, ns. The kernel may have raised it: see [`Watched::arm`].
    over: u64,
    /// The delays up to the time when the threshold was set.
    before: Delays,
    /// The operations of this run that have exceeded the threshold since then: when each ended, and its delay, ns.
    /// Empty if the delays show no usual latency: see [`Target::is_telling`].
    ours: Vec<(u64, u64)>,
}

impl Watch {
    /// Starts an instance, which only counts at first, with stacks in user space if `has_ustack`.
    fn start(root: &ProcRoot, mut part: Part, has_ustack: bool, left: &mut Note) -> Result<Self> {
        if has_ustack {
            part.settings.push(setting(USTACK, "1".to_string()));
        }
        let name = format!("why_{}_{}", std::process::id(), part.name);
        part.settings.push(setting("threshold", NEVER.exact()));
        part.settings.push(setting("max_alerts", MOST.to_string()));
        left.has_own(&name);
        let create = |settings: &[Setting]| {
            lt_common::instance::create(root, &name, part.tracker, settings, &note)
        };
        if let Err(error) = create(&part.settings) {
            // This kernel may lack only what stacks in user space need.
            let all = part.settings.len();
            part.settings.retain(|setting| setting.key != USTACK);
            if part.settings.len() == all {
                return Err(error);
            }
            create(&part.settings)?;
            note(&format!(
                "no stacks in user space of {}: {error:#}",
                part.what
            ));
        }
        // From here on, every exit path removes the instance.
        match Stream::open(root, &name) {
            Ok(alerts) => Ok(Self {
                name,
                part,
                alerts,
                over: NEVER.0,
                before: Delays::default(),
                ours: Vec::new(),
            }),
            Err(error) => {
                let _ = root.remove(&name);
                Err(error)
            }
        }
    }
}

/// The delays of an instance up to some time.
#[derive(Debug, Default)]
pub(super) struct Delays {
    histogram: Histogram,
    max: u64,
    /// The end of the time that these delays cover, `CLOCK_MONOTONIC`, ns.
    time: u64,
}

impl Delays {
    fn read(root: &ProcRoot, name: &str) -> Result<Self> {
        // Opening and reading the files are operations of this run. The histogram counts its own open, which ends
        // before `time`, but not the reads, which end later.
        let (histogram, time) = root.histogram_at(name, clock::monotonic)?;
        Ok(Self {
            histogram,
            max: root.stats(name)?.count("max"),
            time,
        })
    }

    /// The longest delay since `earlier`, ns, of an operation that is not in `ours`: see [`Watch::ours`]. Exact if
    /// it is the longest delay of the instance; otherwise up to an eighth more.
    fn longest_since(&self, earlier: &Self, ours: &[(u64, u64)]) -> Option<u64> {
        let since = self.histogram.since(&earlier.histogram);
        let last = since.buckets.iter().rfind(|bucket| {
            let is_in = |(end, delay): &&(u64, u64)| {
                (earlier.time..self.time).contains(end) && (bucket.low..bucket.high).contains(delay)
            };
            bucket.count > ours.iter().filter(is_in).count() as u64
        });
        Some(self.max.min(last?.high - 1))
    }
}

/// The result of reading the alerts of all instances.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) alerts: Vec<Alert>,
    /// Alerts that were overwritten before they were read.
    pub(super) missed: u64,
}

impl<'a> Watched<'a> {
    /// Starts the instances, which only count at first. An instance that this kernel cannot run is reported and left
    /// out.
    pub(super) fn start(
        root: &'a ProcRoot,
        target: &'a Target,
        followed: Option<Followed>,
        left: &mut Note,
    ) -> Result<Self> {
        let mut watched = Self {
            root,
            target,
            followed,
            instances: Vec::new(),
            stacks: None,
            names: Names::default(),
            lttng: BTreeSet::new(),
        };
        let trackers = root.trackers().unwrap_or_default();
        for part in target.parts() {
            let info = trackers.iter().find(|info| info.name == part.tracker);
            if let Some(why) = info.and_then(|info| info.unavailable.as_ref()) {
                note(&format!("{} are not watched: {why}", part.what));
                continue;
            }
            let takes =
                |key: &str| info.is_some_and(|info| info.params.iter().any(|p| p.name == key));
            // `block` would walk the stack whenever a request is submitted, late or not.
            let has_ustack = takes(USTACK) && part.tracker != "block";
            let watch = Watch::start(root, part, has_ustack, left)?;
            watched.instances.push(watch);
        }
        if watched.instances.is_empty() {
            bail!(
                "this kernel has no tracker for this target; `latency-tracker list --trackers` shows why"
            );
        }
        let mut watches = watched.instances.iter();
        let has_sleeps = watches.any(|watch| watch.part.tracker == OFFCPU);
        if let Some(part) = target.stacks().filter(|_| has_sleeps) {
            watched.stacks = Some(Watch::start(root, part, false, left)?);
        }
        if watched.followed.is_none() && target.is_cgroup() {
            note(&format!(
                "{}: its cgroup is not visible here, so a restart will not be noticed",
                target.name
            ));
        }
        Ok(watched)
    }

    /// Sets the threshold. With `worst`, an operation of a command raises an alert only if it takes longer than all
    /// earlier operations. For other targets, the kernel must not do this: an operation that does not count, such as an
    /// operation of this run, would hide shorter operations that count. See [`Self::raise`].
    pub(super) fn arm(&mut self, over: Nanos, worst: bool) -> Result<()> {
        let worst = u8::from(worst && self.target.is_command());
        for watch in &mut self.instances {
            let settings = [
                setting("worst", worst.to_string()),
                setting("threshold", over.exact()),
            ];
            watch.over = over.0;
            self.root
                .create(&watch.name, watch.part.tracker, &settings)?;
            watch.before = Delays::read(self.root, &watch.name)?;
            watch.ours.clear();
        }
        if let Some(watch) = &self.stacks {
            let part = Nanos((over.0 / SHARE).max(1));
            let settings = [setting("threshold", part.exact())];
            self.root
                .create(&watch.name, watch.part.tracker, &settings)?;
        }
        Ok(())
    }

    /// Raises the threshold of each instance to the longest of these late operations: from now on, only a longer
    /// operation is of interest. For a command, the kernel has done this. An operation that began before `began` does
    /// not raise the threshold, since a shorter operation may be explained better. The threshold of sleeps stays if
    /// most sleeps do not count as late.
    pub(super) fn raise(&mut self, late: &[Alert], began: u64) -> Result<()> {
        let target = self.target;
        if target.is_command() {
            return Ok(());
        }
        let watches = self.instances.iter_mut();
        for watch in watches.filter(|watch| target.is_telling(&watch.part)) {
            let of_it = late.iter().filter(|alert| alert.instance == watch.name);
            let since = of_it.filter(|alert| alert.start() >= began);
            let longest = since.map(|alert| alert.delay).max();
            if let Some(longest) = longest.filter(|longest| *longest > watch.over) {
                let settings = [setting("threshold", Nanos(longest).exact())];
                self.root
                    .create(&watch.name, watch.part.tracker, &settings)?;
                watch.over = longest;
            }
        }
        Ok(())
    }

    /// Leaves out the session daemon with this PID and its helpers, unless the user may have chosen them as the target.
    pub(super) fn leave_out(&mut self, daemon: Option<i32>) {
        let daemon = daemon.filter(|_| self.target.may_include_lttng());
        if let Some(daemon) = daemon.and_then(|pid| u32::try_from(pid).ok()) {
            let helpers = pids::with_descendants(Path::new("/proc"), daemon);
            self.lttng.extend(helpers);
        }
    }

    /// Whether a process belonged to this run at a time of `CLOCK_MONOTONIC`, ns: this program, a command that it has
    /// run, or LTTng. A command's PID may belong to another process later.
    fn is_ours(&self, pid: u64, at: u64) -> bool {
        let is_ours = |pid: u32| {
            pid == std::process::id() || exec::has_run(pid, at) || self.lttng.contains(&pid)
        };
        u32::try_from(pid).is_ok_and(is_ours)
    }

    /// When to look whether the target has another cgroup. `None` if its cgroup is not followed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.followed.as_ref().map(Followed::due)
    }

    /// If it is time, looks whether the target has another cgroup.
    pub(super) fn follow(&mut self) -> Result<()> {
        match self.due().is_some_and(|due| due <= Instant::now()) {
            true => self.look(),
            false => Ok(()),
        }
    }

    /// Looks whether the target has another cgroup, and if so, limits the instances to the new cgroup.
    pub(super) fn look(&mut self) -> Result<()> {
        let target = self.target;
        let Some(followed) = &mut self.followed else {
            return Ok(());
        };
        match followed.look(|| target.moved_to()) {
            None => {}
            Some(Change::Removed) => note(&format!("{} {}", target.name, target.removed())),
            Some(Change::New(number)) => {
                let settings = [setting(CGROUP, number.to_string())];
                for watch in self.instances.iter().chain(&self.stacks) {
                    self.root
                        .create(&watch.name, watch.part.tracker, &settings)?;
                }
                note(&format!(
                    "{} {}; operations that began before, in up to {}, may not have been seen",
                    target.name,
                    target.replaced(),
                    nanos(followed.watch(number))
                ));
            }
        }
        Ok(())
    }

    /// A sentence about the times in which a new cgroup of the target was not watched yet, if there were any.
    pub(super) fn unseen(&self) -> Option<String> {
        let (times, time) = self.followed.as_ref()?.unseen();
        (times > 0).then(|| {
            format!(
                "{}: operations in up to {} may not have been seen ({})",
                self.target.name,
                nanos(time),
                out::plural(times, "new cgroup")
            )
        })
    }

    /// The files to poll.
    pub(super) fn files(&self) -> impl Iterator<Item = &std::fs::File> {
        self.instances.iter().map(|watch| watch.alerts.file())
    }

    /// The available alerts about operations that count as late.
    pub(super) fn read(&mut self) -> Result<Seen> {
        let mut seen = Seen::default();
        for watch in &mut self.instances {
            let woken = watch.alerts.read()?;
            if woken.end {
                bail!("instance {} was removed during the run", watch.name);
            }
            seen.missed += woken.missed;
            seen.alerts.extend(woken.alerts);
        }
        let is_ours = |alert: &Alert| self.is_ours(alert.pid, alert.start());
        let (ours, others): (Vec<_>, _) = seen.alerts.into_iter().partition(is_ours);
        seen.alerts = others;
        self.note_ours(&ours);
        let target = self.target;
        let counts = |alert: &Alert| target.matters(&alert.tracker, &alert.fields);
        seen.alerts.retain(counts);
        for alert in &mut seen.alerts {
            self.names.find(alert);
        }
        Ok(seen)
    }

    /// The recorded sleeps of the thread within a late operation, except those in `known`. Their stacks show where the
    /// thread slept.
    pub(super) fn sleeps(&mut self, late: &Alert, known: &[Alert]) -> Result<Vec<Alert>> {
        let mut sleeps: Vec<Alert> = Vec::new();
        let watches = self.instances.iter().chain(&self.stacks);
        for watch in watches.filter(|watch| watch.part.tracker == OFFCPU) {
            let recorded = Stream::open_recorded(self.root, &watch.name)?.read()?;
            for mut alert in recorded.alerts {
                // Both instances may have recorded the same sleep.
                let is_same = |other: &Alert| {
                    (&other.tracker, other.tid) == (&alert.tracker, alert.tid)
                        && other.start() < alert.time
                        && alert.start() < other.time
                };
                if is_inside(&alert, late) && !known.iter().chain(&sleeps).any(is_same) {
                    self.names.find(&mut alert);
                    sleeps.push(alert);
                }
            }
        }
        Ok(sleeps)
    }

    /// Notes these operations of this run, whose delays must not set a threshold.
    fn note_ours(&mut self, alerts: &[Alert]) {
        let target = self.target;
        // The histogram does not count an operation that was in flight when the instance started.
        for alert in alerts.iter().filter(|alert| !alert.fields.is_at_least()) {
            let watches = self.instances.iter_mut();
            let mut telling = watches.filter(|watch| target.is_telling(&watch.part));
            if let Some(watch) = telling.find(|watch| watch.name == alert.instance) {
                watch.ours.push((alert.time, alert.delay));
            }
        }
    }

    /// The number of alerts that the instances have not raised, since they had raised too many in the same second.
    pub(super) fn suppressed(&self) -> u64 {
        let all = self.instances.iter();
        all.filter_map(|watch| self.root.stats(&watch.name).ok()?.get("alerts_suppressed"))
            .sum()
    }

    /// The number of operations that could not be tracked.
    pub(super) fn lost(&self) -> u64 {
        let all = self.instances.iter();
        let all = all.filter_map(|watch| self.root.stats(&watch.name).ok());
        all.map(|stats| stats.lost()).sum()
    }

    /// The longest operation so far in the instances that show the usual delays.
    pub(super) fn longest(&self) -> Option<Nanos> {
        let telling = self.instances.iter();
        let telling = telling.filter(|watch| self.target.is_telling(&watch.part));
        let longest = telling.filter_map(|watch| self.root.stats(&watch.name).ok()?.get("max"));
        longest.max().filter(|ns| *ns > 0).map(Nanos)
    }

    /// The delays of each instance up to now; `None` if they cannot be read.
    pub(super) fn delays(&self) -> Vec<Option<Delays>> {
        let read = |watch: &Watch| Delays::read(self.root, &watch.name).ok();
        self.instances.iter().map(read).collect()
    }

    /// The longest operation from the time when the threshold was set to the time of `now`, in the instances that show
    /// the usual delays. Operations of this run count only if they did not exceed the threshold: a histogram does not
    /// show to which process an operation belongs.
    pub(super) fn longest_since_set(&self, now: &[Option<Delays>]) -> Option<Nanos> {
        let watches = self.instances.iter().zip(now);
        let telling = watches.filter(|(watch, _)| self.target.is_telling(&watch.part));
        let longest = telling.filter_map(|(watch, now)| {
            let now = now.as_ref()?;
            now.longest_since(&watch.before, &watch.ours)
        });
        longest.max().map(Nanos)
    }

    /// A table of the number of operations since the start, and their durations.
    pub(super) fn table(&self) -> Result<Vec<String>> {
        let mut rows = Vec::new();
        for watch in &self.instances {
            let stats = self.root.stats(&watch.name)?;
            let (ended, max) = (stats.count("ended"), stats.count("max"));
            // The bound of a bucket may exceed the longest duration.
            let p99 = self.root.histogram(&watch.name)?.quantile(990_000);
            let time = |ns: Option<u64>| ns.map_or("-".into(), |ns| Nanos(ns.min(max)).to_string());
            rows.push(vec![
                out::thousands(ended),
                time(p99),
                time((ended > 0).then_some(max)),
                out::thousands(stats.lost()),
                watch.part.what.to_string(),
            ]);
        }
        Ok(out::table(
            &[">COUNT", ">P99", ">LONGEST", ">LOST", "WHAT"],
            &rows,
        ))
    }

    /// The operations in flight for longer than `over`, except operations of this run, and sleeps that may wait for
    /// work. System calls are last, since a read, for example, may also wait for work. Otherwise, the oldest is first.
    pub(super) fn stuck(&self, over: Nanos) -> Vec<(&'static str, Pending)> {
        let watches = self.instances.iter();
        let mut stuck: Vec<_> = watches
            .flat_map(|watch| {
                let pending = self.root.pending(&watch.name).unwrap_or_default();
                pending.into_iter().map(|one| (watch.part.tracker, one))
            })
            .filter(|(tracker, pending)| {
                let number = |key| pending.fields.number(key).unwrap_or(0);
                pending.age() > over.0
                    && self.target.matters(tracker, &pending.fields)
                    && !self.is_ours(number("pid"), number("start"))
            })
            .collect();
        stuck.sort_by_key(|(tracker, pending)| {
            (*tracker == "syscall", std::cmp::Reverse(pending.age()))
        });
        stuck
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        for watch in self.instances.iter().chain(&self.stacks) {
            // Another program may have removed the instance.
            if self.root.instance(&watch.name).is_ok()
                && let Err(error) = self.root.remove(&watch.name)
            {
                let error = anyhow::Error::from(error);
                note(&format!(
                    "instance {} is left behind: {error:#}",
                    watch.name
                ));
            }
        }
    }
}

fn setting(key: &str, value: String) -> Setting {
    Setting {
        key: key.into(),
        value,
    }
}

/// Creates a pipe, from which alerts are read as from the file `alerts`, and opens it.
#[cfg(test)]
pub(super) fn fifo(path: &Path) -> std::fs::File {
    use nix::sys::stat::Mode;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    // Without a process that can write to the file, reading it would end.
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).open(path).unwrap()
}

#[cfg(test)]
impl<'a> Watched<'a> {
    /// Instances that have the names of their parts, and whose files exist.
    pub(super) fn made(root: &'a ProcRoot, target: &'a Target) -> Self {
        let watch = |part: Part| Watch {
            name: part.name.into(),
            alerts: Stream::open(root, part.name).unwrap(),
            part,
            over: NEVER.0,
            before: Delays::default(),
            ours: Vec::new(),
        };
        Self {
            root,
            target,
            followed: None,
            instances: target.parts().into_iter().map(watch).collect(),
            stacks: target.stacks().map(watch),
            names: Names::default(),
            lttng: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn delays(max: u64, histogram: &str) -> Delays {
        Delays {
            max,
            histogram: Histogram::parse(histogram).unwrap(),
            time: 0,
        }
    }

    #[test]
    fn the_longest_delay_since_a_reading_is_in_the_last_bucket_that_grew() {
        let before = delays(1_570, "100 112 5\n1536 1664 1\n");
        let since = |max, histogram: &str| delays(max, histogram).longest_since(&before, &[]);
        assert_eq!(since(1_570, "100 112 5\n1536 1664 1\n"), None);
        let shorter = "100 112 9\n240 256 1\n1536 1664 1\n";
        assert_eq!(since(1_570, shorter), Some(255));
        // The result is at most the longest delay of all.
        assert_eq!(since(1_570, "100 112 5\n1536 1664 2\n"), Some(1_570));
        assert_eq!(since(1_600, "100 112 5\n1536 1664 2\n"), Some(1_600));
    }

    #[test]
    fn a_delay_of_this_run_is_not_the_longest_one() {
        let before = Delays {
            time: 1000,
            ..delays(0, "")
        };
        let now = Delays {
            time: 9000,
            ..delays(1_570, "100 112 5\n240 256 2\n1536 1664 1\n")
        };
        let since = |ours: &[(u64, u64)]| now.longest_since(&before, ours);
        assert_eq!(since(&[]), Some(1_570));
        let longest = (5000, 1_570);
        assert_eq!(since(&[longest]), Some(255));
        // Another process has the other delay of this bucket.
        assert_eq!(since(&[longest, (6000, 250)]), Some(255));
        assert_eq!(since(&[(6000, 250), (7000, 240), longest]), Some(111));
        // These operations ended before the threshold was set, or are not in the histogram yet.
        assert_eq!(since(&[(900, 1_570), (9000, 1_570)]), Some(1_570));
    }

    /// The histogram counts its own open, but not its own read.
    #[test]
    fn the_time_of_the_delays_is_between_the_open_and_the_read() {
        use nix::sys::stat::Mode;
        let directory = tempfile::tempdir().unwrap();
        let instance = directory.path().join("request");
        std::fs::create_dir(&instance).unwrap();
        std::fs::write(instance.join("stats"), "max 70\n").unwrap();
        let histogram = instance.join("histogram");
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        nix::unistd::mkfifo(histogram.as_path(), mode).unwrap();
        let written = std::thread::spawn(move || {
            let before = clock::monotonic();
            // Waits for the reader, whose open ends only now.
            let mut file = std::fs::File::create(&histogram).unwrap();
            // More than a pipe holds, so the write ends only during the read.
            let text = " ".repeat(2 << 20) + "\n64 72 1\n";
            file.write_all(text.as_bytes()).unwrap();
            before..=clock::monotonic()
        });
        let delays = Delays::read(&ProcRoot::new(directory.path()), "request").unwrap();
        assert_eq!(delays.longest_since(&Delays::default(), &[]), Some(70));
        assert!(written.join().unwrap().contains(&delays.time));
    }

    #[test]
    fn operations_of_this_run_are_not_late_but_noted() {
        let directory = tempfile::tempdir().unwrap();
        let root = ProcRoot::new(directory.path());
        let mut alerts = fifo(&directory.path().join("request/alerts"));
        let target = Target::of_disk("sda");
        let mut watched = Watched::made(&root, &target);
        let own = std::process::id();
        for (seq, pid, more) in [
            (5, own, ""),
            // The histogram does not count this one.
            (6, own, " since=before-start"),
            (7, own + 1, ""),
        ] {
            writeln!(
                alerts,
                "seq={seq} time={seq}000 instance=request tracker=block reason=threshold delay=70 threshold=1 cpu=0 \
                 pid={pid} tid={pid} comm=\"x\"{more}"
            )
            .unwrap();
        }
        let late = watched.read().unwrap().alerts;
        assert_eq!(late.iter().map(|alert| alert.seq).collect::<Vec<_>>(), [7]);
        assert_eq!(watched.instances[0].ours, [(5000, 70)]);
    }

    #[test]
    fn an_operation_of_this_run_does_not_raise_the_threshold() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let control = || {
            let text = std::fs::read_to_string(file("control")).unwrap();
            std::fs::write(file("control"), "").unwrap();
            text
        };
        let root = ProcRoot::new(directory.path());
        let mut alerts = fifo(&file("request/alerts"));
        for (name, text) in [
            ("control", ""),
            ("request/stats", "max 0\n"),
            ("request/histogram", ""),
        ] {
            std::fs::write(file(name), text).unwrap();
        }
        let target = Target::of_disk("sda");
        let mut watched = Watched::made(&root, &target);
        watched.arm(Nanos(50), true).unwrap();
        assert_eq!(control(), "request block worst=0 threshold=50ns\n");
        let own = std::process::id();
        // The last one began before the recording.
        for (seq, pid, delay) in [
            (1, own, 90),
            (2, own + 1, 60),
            (3, own + 1, 70),
            (4, own + 1, 950),
        ] {
            writeln!(
                alerts,
                "seq={seq} time=1000 instance=request tracker=block reason=threshold delay={delay} threshold=50 cpu=0 \
                 pid={pid} tid={pid} comm=\"x\""
            )
            .unwrap();
        }
        let late = watched.read().unwrap().alerts;
        assert_eq!((late.len(), control().as_str()), (3, ""));
        for expected in ["request block threshold=70ns\n", ""] {
            watched.raise(&late, 100).unwrap();
            assert_eq!(control(), expected);
        }
    }

    /// The threads of a run sleep all the time, and a run may take days.
    #[test]
    fn sleeps_of_this_run_are_noted_only_if_sleeps_set_the_threshold() {
        let own = std::process::id();
        let line = format!(
            "seq=1 time=1000 instance=sleep tracker=offcpu reason=threshold delay=70 threshold=1 cpu=0 pid={own} \
             tid={own} comm=\"x\" state=S"
        );
        let sleep = Alert::parse(&line).unwrap();
        for waits in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            for name in ["call", "wakeup", "runnable", "sleep", "stacks"] {
                std::fs::create_dir(directory.path().join(name)).unwrap();
                std::fs::write(directory.path().join(name).join("alerts"), "").unwrap();
            }
            let root = ProcRoot::new(directory.path());
            let target = Target::of_process(waits);
            let mut watched = Watched::made(&root, &target);
            watched.note_ours(std::slice::from_ref(&sleep));
            let noted: usize = watched.instances.iter().map(|of| of.ours.len()).sum();
            assert_eq!(noted, usize::from(waits));
        }
    }

    /// The thread sleeps four times within a late call. Two of these sleeps exceed the threshold.
    #[test]
    fn each_sleep_within_a_late_operation_is_found_once() {
        let directory = tempfile::tempdir().unwrap();
        let line = |instance: &str, seq: u64, (begin, end): (u64, u64), more: &str| {
            let delay = end - begin;
            format!(
                "seq={seq} time={end} instance={instance} tracker=offcpu reason=threshold delay={delay} threshold=1 \
                 cpu=0 pid=7 tid=7 comm=\"x\" {more}\n"
            )
        };
        let deep = "state=D stack=\"blk_mq_get_tag+0x1/0x2\"";
        let sleep = [
            line("sleep", 1, (100, 150), deep),
            line("sleep", 2, (200, 250), "state=S"),
        ];
        let stacks = [
            // One before the call, one of another thread, two that are also in `sleep`, and two at other times.
            line("stacks", 1, (10, 20), deep),
            line("stacks", 2, (120, 130), deep).replace("tid=7", "tid=8"),
            line("stacks", 3, (101, 151), deep),
            line("stacks", 4, (199, 249), "state=S"),
            line("stacks", 5, (300, 310), deep),
            line("stacks", 6, (400, 410), "state=S"),
        ];
        for (name, lines) in [
            ("call", String::new()),
            ("wakeup", String::new()),
            ("runnable", String::new()),
            ("sleep", sleep.concat()),
            ("stacks", stacks.concat()),
        ] {
            let instance = directory.path().join(name);
            std::fs::create_dir(&instance).unwrap();
            std::fs::write(instance.join("alerts"), lines).unwrap();
        }
        let root = ProcRoot::new(directory.path());
        let target = Target::of_process(false);
        let mut watched = Watched::made(&root, &target);
        let late = line("call", 9, (50, 500), "").replace("offcpu", "syscall");
        let late = Alert::parse(late.trim_end()).unwrap();
        let known = [late.clone(), Alert::parse(sleep[0].trim_end()).unwrap()];
        let found = watched.sleeps(&late, &known).unwrap();
        let found = found.iter().map(|one| (&one.instance[..], one.seq));
        let expected = [("sleep", 2), ("stacks", 5), ("stacks", 6)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
