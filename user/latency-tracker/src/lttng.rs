// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A flight-recorder session of LTTng, by way of the `lttng` command.
//!
//! The session is ours: its name tells whose (see [`session_name`]), and it is destroyed when the value
//! is dropped, on every way out. The user's own `~/.lttngrc` is left alone: our commands have their
//! own `LTTNG_HOME`.

pub(crate) mod recording;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::exec::Exec;
use crate::out::note;

/// Where our commands keep what they would keep in the home directory.
pub(crate) const RUN_DIR: &str = "/run/latency-tracker";

const SESSION_PREFIX: &str = "latency-tracker-";
const CHANNEL: &str = "flight";
const PID_FILES: [&str; 2] = [
    "/run/lttng/lttng-sessiond.pid",
    "/var/run/lttng/lttng-sessiond.pid",
];

/// Events that say who ran where, and who woke whom. Without `sched_wakeup` a thread that was woken for nothing, just
/// before it went to sleep, would seem to wait for a processor.
const OF_THREADS: [&str; 6] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
];
/// The life of a request.
const OF_REQUESTS: [&str; 3] = ["block_rq_*", "block_bio_backmerge", "block_bio_frontmerge"];
/// Which disk was waited for, whatever way it says that it is done.
const OF_DISKS: &str = "block_rq_complete";
/// Where a request was before that: until it was submitted, got a request, and was issued.
const OF_PLACES: [&str; 5] = [
    "block_bio_queue",
    "block_bio_remap",
    "block_getrq",
    "block_rq_insert",
    "block_rq_issue",
];
/// For which CPUs a thread waited, why one was idle meanwhile, and which limits held a thread back.
const OF_LIMITS: [&str; 7] = [
    "sched_migrate_task",
    "power_cpu_idle",
    "writeback_balance_dirty_pages",
    "workqueue_execute_start",
    "workqueue_execute_end",
    "timer_expire_entry",
    "timer_expire_exit",
];
/// What interrupts, and in whose name: where a wait ends that no thread ended. Patterns, since not every architecture
/// has all of them.
const OF_INTERRUPTS: [&str; 6] = [
    "irq_handler_*",
    "irq_softirq_*",
    "timer_hrtimer_expire_*",
    "x86_irq_vectors_local_timer_*",
    "x86_irq_vectors_reschedule_*",
    "x86_irq_vectors_call_function*",
];
/// What else is a step of a path of `tree`: works, and when a timer was started for what time, and called. No probe of
/// LTTng shows functions that one CPU calls on another (`csd_*`).
const OF_PATHS: [&str; 6] = [
    "workqueue_*",
    "timer_expire_*",
    "timer_hrtimer_start",
    "x86_irq_vectors_irq_work_*",
    "x86_irq_vectors_thermal_apic_*",
    "x86_irq_vectors_x86_platform_ipi_*",
];

/// The events that explain alerts of a tracker. If they are to be `lean`, without those that show where a thread or a
/// request was held back.
pub(crate) fn default_events(tracker: &str, lean: bool) -> Vec<&'static str> {
    let of_requests = matches!(tracker, "block" | "io");
    let mut events = OF_THREADS.to_vec();
    match of_requests {
        true => events.extend(OF_REQUESTS),
        false => events.push(OF_DISKS),
    }
    if tracker != "block" {
        events.extend(OF_INTERRUPTS);
    }
    if tracker == "tree" {
        events.extend(OF_PATHS);
    }
    if !lean {
        // An event that a pattern names is in it.
        let more = OF_PLACES.into_iter().chain(OF_LIMITS);
        let is_new = |event: &&str| !events.iter().any(|pattern| matches(pattern, event));
        let more: Vec<_> = more.filter(is_new).collect();
        events.extend(more);
    }
    events
}

/// The name of the session that process `pid` has for `instance`.
pub(crate) fn session_name(instance: &str, pid: u32) -> String {
    format!("{SESSION_PREFIX}{instance}-{pid}")
}

/// The process that a session of ours belongs to.
pub(crate) fn session_owner(session: &str) -> Option<u32> {
    let (_, pid) = session.strip_prefix(SESSION_PREFIX)?.rsplit_once('-')?;
    pid.parse().ok()
}

fn lttng<'a>(args: impl IntoIterator<Item = &'a str>) -> Exec {
    Exec::new("lttng", ["--no-sessiond"].into_iter().chain(args)).env("LTTNG_HOME", RUN_DIR)
}

/// The names of all sessions; none when no session daemon runs.
pub(crate) fn sessions() -> Vec<String> {
    let listed = lttng(["--mi", "xml", "list"]).output();
    let names = listed.and_then(|xml| names_of("session", &xml));
    names.unwrap_or_else(|_| Vec::new())
}

/// How many events the tracer has discarded, in all channels of these sessions.
pub(crate) fn discarded(sessions: &[String]) -> Result<u64> {
    let mut sum = 0;
    for session in sessions {
        let xml = lttng(["--mi", "xml", "list", session]).output()?;
        sum += discarded_in(&xml)?;
    }
    Ok(sum)
}

/// The sum of what the channels in `lttng --mi xml list SESSION` say.
fn discarded_in(xml: &str) -> Result<u64> {
    sum_of("discarded_events", xml)
}

/// The sum of all elements called `element`.
fn sum_of(element: &str, xml: &str) -> Result<u64> {
    let document = roxmltree::Document::parse(xml).context("what lttng says is not XML")?;
    let counts = document
        .descendants()
        .filter(|node| node.tag_name().name() == element);
    let counts = counts.filter_map(|node| node.text()?.trim().parse::<u64>().ok());
    Ok(counts.sum())
}

/// Destroys a session that is not a value any more.
pub(crate) fn destroy(session: &str) -> Result<()> {
    // It waits until the session is really gone: the daemon may be stopped next.
    lttng(["destroy", session]).output().map(drop)
}

/// Checks that all `events` are tracepoints of this kernel: `lttng enable-event` takes any word.
pub(crate) fn check_events(events: &[String]) -> Result<()> {
    let xml = lttng(["--mi", "xml", "list", "--kernel"]).output()?;
    let known = names_of("event", &xml)?;
    for event in events {
        if !known.iter().any(|k| matches(event, k)) {
            bail!("-e {event}: no such kernel tracepoint; `lttng list --kernel` shows them");
        }
    }
    Ok(())
}

/// Whether `name` fits `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|i| tail.is_char_boundary(i) && matches(rest, &tail[i..]))
        }),
    }
}

/// The names of all elements called `element` in what `lttng --mi xml` said.
fn names_of(element: &str, xml: &str) -> Result<Vec<String>> {
    let document = roxmltree::Document::parse(xml).context("what lttng says is not XML")?;
    let is = |node: &roxmltree::Node<'_, '_>, name: &str| node.tag_name().name() == name;
    let elements = document.descendants().filter(|node| is(node, element));
    let names = elements.filter_map(|node| node.children().find(|child| is(child, "name")));
    Ok(names
        .filter_map(|name| name.text())
        .map(str::to_string)
        .collect())
}

/// How the buffers are cut, per CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffers {
    pub(crate) subbuf_size: u64,
    pub(crate) num_subbuf: u64,
}

/// A running flight recorder.
#[derive(Debug)]
pub(crate) struct Session {
    name: String,
}

impl Session {
    /// Creates and starts it; a failure half-way leaves nothing.
    pub(crate) fn start(
        name: &str,
        output: &Path,
        buffers: Buffers,
        events: &[String],
    ) -> Result<Self> {
        let output = output
            .to_str()
            .context("the output directory's name is not UTF-8")?;
        lttng(["create", name, "--snapshot", "--output", output]).output()?;
        let session = Self {
            name: name.to_string(),
        };
        let in_session = format!("--session={name}");
        let size = format!("--subbuf-size={}", buffers.subbuf_size);
        let number = format!("--num-subbuf={}", buffers.num_subbuf);
        let channel = [
            "enable-channel",
            "--kernel",
            &in_session,
            "--overwrite",
            &size,
            &number,
            CHANNEL,
        ];
        lttng(channel).output()?;
        let channel = format!("--channel={CHANNEL}");
        lttng([
            "enable-event",
            "--kernel",
            &in_session,
            &channel,
            &events.join(","),
        ])
        .output()?;
        lttng(["start", name]).output()?;
        Ok(session)
    }

    /// Stops recording, or goes on with it.
    pub(crate) fn record(&self, on: bool) -> Result<()> {
        let word = if on { "start" } else { "stop" };
        lttng([word, &self.name]).output().map(drop)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Writes what the recorder holds below `directory`, as `directory/kernel`.
    pub(crate) fn snapshot(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let in_session = format!("--session={}", self.name);
        let path = directory
            .to_str()
            .context("the output directory's name is not UTF-8")?;
        lttng(["snapshot", "record", &in_session, path]).output()?;
        flatten(directory).with_context(|| format!("no trace below {path}"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Err(error) = destroy(&self.name) {
            note(&format!("session {} is left behind: {error:#}", self.name));
        }
    }
}

/// LTTng makes DIRECTORY/snapshot-1-DATE-TIME-0/kernel: the middle says nothing.
fn flatten(directory: &Path) -> Result<()> {
    let mut entries = fs::read_dir(directory)?;
    let (Some(only), None) = (entries.next(), entries.next()) else {
        return Ok(());
    };
    let middle = only?.path();
    for entry in fs::read_dir(&middle)? {
        let entry = entry?;
        fs::rename(entry.path(), directory.join(entry.file_name()))?;
    }
    fs::remove_dir(&middle)?;
    Ok(())
}

/// The session daemon, if it was us who started it; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    pid: Option<i32>,
}

impl Daemon {
    /// Makes sure that one runs.
    pub(crate) fn ensure() -> Result<Self> {
        if daemon_pid().is_some() {
            return Ok(Self { pid: None });
        }
        note("starting LTTng's session daemon");
        let hint = "LTTng's session daemon does not start; `latency-tracker check` tells more";
        Exec::new("lttng-sessiond", ["--daemonize"])
            .output()
            .context(hint)?;
        Ok(Self { pid: daemon_pid() })
    }

    /// The daemon we started.
    pub(crate) fn started(&self) -> Option<i32> {
        self.pid
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            stop_daemon(pid);
        }
    }
}

/// Ends the session daemon `pid`, unless others use it by now.
pub(crate) fn stop_daemon(pid: i32) {
    if daemon_pid() != Some(pid) || !sessions().is_empty() {
        return;
    }
    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    // It unloads the tracer's modules, which takes its time on a busy machine. The next run must not find it dying.
    let end = Instant::now() + Duration::from_secs(60);
    while kill(Pid::from_raw(pid), None).is_ok() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The running session daemon of root.
fn daemon_pid() -> Option<i32> {
    let pid = PID_FILES.iter().find_map(|f| fs::read_to_string(f).ok())?;
    let pid: i32 = pid.trim().parse().ok()?;
    // Not comm: the daemon gives its threads names of their own.
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = command.split(|b| *b == 0).next().unwrap_or_default();
    program.ends_with(b"lttng-sessiond").then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_names_its_owner() {
        assert_eq!(session_owner(&session_name("slow-disk", 4321)), Some(4321));
        assert_eq!(session_owner("latency-tracker-x"), None);
        assert_eq!(session_owner("auto-20261121"), None);
    }

    #[test]
    fn names_of_sessions_are_found_in_the_xml_of_lttng() {
        let xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <command xmlns=\"https://lttng.org/xml/ns/lttng-mi\" schemaVersion=\"4.1\"><name>list</name><output>\
            <sessions><session>\n  <name>a-1</name><path></path><domains><channel><name>c</name></channel>\
            </domains></session>\n<session><path>/x</path>\n<name>b&amp;b</name></session></sessions></output></command>";
        assert_eq!(names_of("session", xml).unwrap(), ["a-1", "b&b"]);
        assert_eq!(names_of("channel", xml).unwrap(), ["c"]);
        let none = names_of("session", "<output><sessions/></output>").unwrap();
        assert!(none.is_empty());
        assert!(names_of("session", "Error: no daemon").is_err());
    }

    #[test]
    fn what_channels_discarded_is_summed_up() {
        let xml = "<command xmlns=\"https://lttng.org/xml/ns/lttng-mi\"><output><sessions><session><name>a</name>\
            <domains><domain><channels><channel><name>c</name><attributes><discarded_events>3</discarded_events>\
            <lost_packets>9</lost_packets></attributes></channel><channel><attributes><discarded_events>4\
            </discarded_events></attributes></channel></channels></domain></domains></session></sessions></output>\
            </command>";
        assert_eq!(discarded_in(xml).unwrap(), 7);
        assert!(discarded_in("Error").is_err());
    }

    #[test]
    fn what_shows_where_a_wait_was_held_is_recorded_once_unless_it_is_to_be_lean() {
        for tracker in ["offcpu", "syscall", "block", "io", "tree"] {
            let (lean, all) = (
                default_events(tracker, true),
                default_events(tracker, false),
            );
            let times = |event: &str, events: &[&str]| {
                events
                    .iter()
                    .filter(|pattern| matches(pattern, event))
                    .count()
            };
            for event in OF_PLACES.into_iter().chain(OF_LIMITS) {
                assert_eq!(times(event, &all), 1, "{tracker} {event}");
            }
            assert_eq!(times("sched_migrate_task", &lean), 0);
            assert_eq!(times("block_rq_complete", &lean), 1);
            assert!(lean.iter().all(|event| all.contains(event)));
        }
    }

    #[test]
    fn patterns_match_as_those_of_lttng() {
        assert!(matches("irq_*", "irq_handler_entry"));
        assert!(matches("*_exit", "irq_handler_exit"));
        assert!(matches("irq_*_e*", "irq_handler_entry"));
        assert!(!matches("irq", "irq_handler_entry"));
        assert!(!matches("sched_*x", "sched_switch"));
    }

    #[test]
    fn a_snapshot_lies_directly_in_its_directory() {
        let dir = std::env::temp_dir().join(format!("lt-flatten-{}", std::process::id()));
        fs::create_dir_all(dir.join("snapshot-1-20261121-0/kernel")).unwrap();
        fs::write(dir.join("snapshot-1-20261121-0/kernel/metadata"), "x").unwrap();
        flatten(&dir).unwrap();
        assert!(dir.join("kernel/metadata").is_file());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(&dir).unwrap();
    }
}
