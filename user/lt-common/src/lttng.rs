// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A flight-recorder session of LTTng, controlled by the `lttng` command.
//!
//! The session belongs to this process: its name contains the process ID (see [`session_name`]), and it is
//! destroyed when the value is dropped, on every exit path. The user's own `~/.lttngrc` is left alone: our
//! commands have their own `LTTNG_HOME`.
//!
//! Only root's session daemon traces the kernel. Members of its tracing group may use that daemon; their sessions and
//! traces belong to them.

mod access;
pub mod events;
pub mod recording;

pub use access::{make_run_dir, run_dir};

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::exec::{Exec, cannot_run, exists};
use crate::out::{self, note};
use crate::user::is_root;

/// A file in [`run_dir`]: process ID of a session daemon that outlived the recorder that started it.
const HANDED_OVER: &str = "sessiond";

const SESSION_PREFIX: &str = "latency-tracker-";
const CHANNEL: &str = "flight";
const PID_FILES: [&str; 2] = [
    "/run/lttng/lttng-sessiond.pid",
    "/var/run/lttng/lttng-sessiond.pid",
];

/// Name of the session of process `pid` for `instance`.
pub fn session_name(instance: &str, pid: u32) -> String {
    format!("{SESSION_PREFIX}{instance}-{pid}")
}

/// The process that owns this session; `None` if the session is not one of ours.
pub fn session_owner(session: &str) -> Option<u32> {
    let (_, pid) = session.strip_prefix(SESSION_PREFIX)?.rsplit_once('-')?;
    pid.parse().ok()
}

fn lttng<'a>(args: impl IntoIterator<Item = &'a str>) -> Exec {
    Exec::new("lttng", ["--no-sessiond"].into_iter().chain(args)).env("LTTNG_HOME", run_dir())
}

/// The names of all sessions; empty if no session daemon answers.
pub fn sessions() -> Vec<String> {
    let listed = lttng(["--mi", "xml", "list"]).output();
    let names = listed.and_then(|xml| names_of("session", &xml));
    names.unwrap_or_else(|_| Vec::new())
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The session records events.
    Recording,
    /// The session exists, but records nothing.
    Stopped,
    /// The session does not exist, or no session daemon runs.
    Gone,
}

/// The state of the session; an error if a daemon runs, but does not answer.
pub fn state(session: &str) -> Result<State> {
    match lttng(["--mi", "xml", "list"]).output() {
        Ok(xml) => state_in(session, &xml),
        Err(error) if daemon_pid().is_some() => Err(error),
        Err(_) => Ok(State::Gone),
    }
}

/// The state of `session` in the output of `lttng --mi xml list`.
fn state_in(session: &str, xml: &str) -> Result<State> {
    let document = roxmltree::Document::parse(xml).context("the output of lttng is not XML")?;
    let text = |node: &roxmltree::Node<'_, '_>, name: &str| {
        let mut children = node.children();
        let found = children.find(|child| child.tag_name().name() == name);
        found
            .and_then(|child| child.text())
            .map(|text| text.trim().to_string())
    };
    let mut sessions = document
        .descendants()
        .filter(|node| node.tag_name().name() == "session");
    let found = sessions.find(|node| text(node, "name").as_deref() == Some(session));
    Ok(match found.map(|node| text(&node, "enabled")) {
        None => State::Gone,
        Some(Some(enabled)) if enabled == "false" => State::Stopped,
        Some(_) => State::Recording,
    })
}

/// Number of events discarded by the tracer, in all channels of these sessions.
pub fn discarded(sessions: &[String]) -> Result<u64> {
    let mut sum = 0;
    for session in sessions {
        let xml = lttng(["--mi", "xml", "list", session]).output()?;
        sum += discarded_in(&xml)?;
    }
    Ok(sum)
}

/// Total over the channels in the output of `lttng --mi xml list SESSION`.
fn discarded_in(xml: &str) -> Result<u64> {
    sum_of("discarded_events", xml)
}

/// The sum of all elements called `element`.
fn sum_of(element: &str, xml: &str) -> Result<u64> {
    let document = roxmltree::Document::parse(xml).context("the output of lttng is not XML")?;
    let counts = document
        .descendants()
        .filter(|node| node.tag_name().name() == element);
    let counts = counts.filter_map(|node| node.text()?.trim().parse::<u64>().ok());
    Ok(counts.sum())
}

/// Destroys the session with this name.
pub fn destroy(session: &str) -> Result<()> {
    // Wait until the session is really gone: the daemon may be stopped next.
    lttng(["destroy", session]).output().map(drop)
}

/// Destroys the session of a dropped value. Reports the session if it is left behind.
fn end(session: &str) {
    if let Err(error) = destroy(session)
        && !matches!(state(session), Ok(State::Gone))
    {
        note(&format!("session {session} is left behind: {error:#}"));
    }
}

/// The names of all elements called `element` in output of `lttng --mi xml`.
fn names_of(element: &str, xml: &str) -> Result<Vec<String>> {
    let document = roxmltree::Document::parse(xml).context("the output of lttng is not XML")?;
    let is = |node: &roxmltree::Node<'_, '_>, name: &str| node.tag_name().name() == name;
    let elements = document.descendants().filter(|node| is(node, element));
    let names = elements.filter_map(|node| node.children().find(|child| is(child, "name")));
    Ok(names
        .filter_map(|name| name.text())
        .map(str::to_string)
        .collect())
}

/// Number and size of the sub-buffers of each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Bytes of a sub-buffer, a power of two.
    pub subbuf_size: u64,
    /// Number of sub-buffers, a power of two.
    pub num_subbuf: u64,
}

impl Default for Buffers {
    /// The buffers of a flight recorder.
    fn default() -> Self {
        Self {
            subbuf_size: 1 << 20,
            num_subbuf: 4,
        }
    }
}

/// A trace format. LTTng 2.15 and later offer the choice, and write CTF 2 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[expect(
    missing_docs,
    reason = "the names say it, and --help would show a comment"
)]
pub enum Format {
    #[value(name = "ctf-1.8")]
    Ctf1,
    #[value(name = "ctf-2")]
    Ctf2,
}

impl Format {
    /// Returns the option of `lttng create` that selects this format, if this version needs one.
    fn option(self, version: &str) -> Result<Option<&'static str>> {
        let has_choice = release(version).is_none_or(|release| release >= (2, 15));
        match (self, has_choice) {
            (Self::Ctf1, true) => Ok(Some("--trace-format=ctf-1.8")),
            (Self::Ctf2, true) => Ok(Some("--trace-format=ctf-2")),
            (Self::Ctf1, false) => Ok(None),
            (Self::Ctf2, false) => bail!(
                "--trace-format ctf-2: this needs LTTng 2.15 or later, and the installed version is {}",
                version.trim()
            ),
        }
    }
}

/// Returns the option of `lttng create` for the requested format.
fn format_option(format: Option<Format>) -> Result<Option<&'static str>> {
    match format {
        Some(format) => format.option(&lttng(["--version"]).output()?),
        None => Ok(None),
    }
}

/// Major and minor number in the output of `lttng --version`: `lttng (LTTng Trace Control) 2.16.0 - Name`.
fn release(version: &str) -> Option<(u32, u32)> {
    let word = version.split(')').nth(1)?.split_whitespace().next()?;
    let mut numbers = word.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A running flight recorder.
#[derive(Debug)]
pub struct Session {
    name: String,
}

impl Session {
    /// Creates and starts the session; a failure half-way leaves nothing behind.
    pub fn start(
        name: &str,
        output: &Path,
        buffers: Buffers,
        events: &[String],
        format: Option<Format>,
    ) -> Result<Self> {
        let output = output
            .to_str()
            .context("the output directory's name is not UTF-8")?;
        let format = format_option(format)?;
        let create = ["create", name, "--snapshot", "--output", output];
        lttng(create.into_iter().chain(format)).output()?;
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

    /// Starts or stops recording.
    pub fn record(&self, on: bool) -> Result<()> {
        let word = if on { "start" } else { "stop" };
        lttng([word, &self.name]).output().map(drop)
    }

    /// Measures the difference between the clock of the trace and the time of day again. The session must be recording.
    /// Later snapshots are complete: each reads all metadata from the start.
    pub fn set_date(&self) -> Result<()> {
        let in_session = format!("--session={}", self.name);
        lttng(["regenerate", "metadata", &in_session])
            .output()
            .map(drop)
    }

    /// The name of the session.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the contents of the recorder to `directory/kernel`.
    pub fn snapshot(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let in_session = format!("--session={}", self.name);
        let path = directory
            .to_str()
            .context("the output directory's name is not UTF-8")?;
        lttng(["snapshot", "record", &in_session, path]).output()?;
        flatten(directory).with_context(|| format!("no trace below {path}"))?;
        sign_trace(directory)
    }

    /// Sends the contents of the recorder to the relay daemon at `url`, as `name`.
    pub fn send(&self, name: &str, url: &str) -> Result<()> {
        let in_session = format!("--session={}", self.name);
        let name = format!("--name={name}");
        lttng(["snapshot", "record", &in_session, &name, url])
            .output()
            .map(drop)
    }
}

impl Session {
    /// Drops a session that no longer exists.
    pub fn gone(mut self) {
        self.name.clear();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            end(&self.name);
        }
    }
}

/// Makes a kernel trace that LTTng wrote in `directory` readable for Trace Compass; see [`sign`].
pub fn sign_trace(directory: &Path) -> Result<()> {
    sign(&directory.join("kernel/metadata"))
}

/// Prepends the signature of CTF 1.8 to plain-text metadata. LTTng 2.14 and later write such metadata without it, and
/// Trace Compass does not open metadata without the signature. On failure, such as a full disk, the metadata is
/// unchanged.
fn sign(metadata: &Path) -> Result<()> {
    let bytes = fs::read(metadata).with_context(|| metadata.display().to_string())?;
    // CTF 2 starts with a record separator; a packet of CTF 1.8 starts with a magic number that is not UTF-8.
    let plain = std::str::from_utf8(&bytes).is_ok_and(|text| {
        text.contains("trace {") && !text.starts_with(['{', '\x1e']) && !text.starts_with("/* CTF")
    });
    if !plain {
        return Ok(());
    }
    out::file::replace(metadata, |file| {
        file.write_all(b"/* CTF 1.8 */\n")?;
        Ok(file.write_all(&bytes)?)
    })
}

/// Removes the middle directory of DIRECTORY/snapshot-1-DATE-TIME-0/kernel, as LTTng creates it.
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

/// The session daemon, if it was started here; stopped when dropped.
///
/// Runs as our child, not with `--daemonize`, which forks: if the parent is killed before its child is ready, the child
/// is left running, and no process knows its ID. The daemon starts only once its ID has been noted, see
/// [`Daemon::revive`].
#[derive(Debug)]
pub struct Daemon {
    child: Option<Child>,
}

impl Daemon {
    /// Ensures that a daemon runs, as [`Daemon::revive`] does.
    pub fn ensure(starts: impl FnOnce(i32)) -> Result<Self> {
        let mut daemon = Self { child: None };
        daemon.revive(starts)?;
        Ok(daemon)
    }

    /// Starts a daemon if none runs; before it starts, passes its process ID to `starts`. Only root can start one: for
    /// other users, checks that they may use root's daemon.
    pub fn revive(&mut self, starts: impl FnOnce(i32)) -> Result<()> {
        if is_running(&mut self.child, |pid| daemon_pid() == Some(pid))? {
            return Ok(());
        }
        if !is_root() {
            return access::check(daemon_pid());
        }
        if daemon_pid().is_some() {
            return Ok(());
        }
        note("starting LTTng's session daemon");
        let hint = "LTTng's session daemon does not start; `latency-tracker check` shows why";
        self.child = start_daemon("lttng-sessiond", starts, ready).context(hint)?;
        Ok(())
    }

    /// The process ID of the daemon, if it was started here.
    pub fn started(&self) -> Option<i32> {
        self.child.as_ref().map(pid_of)
    }
}

/// Timeout for starting and stopping the daemon: it loads and unloads the tracer's modules, which takes a long time on
/// a busy machine.
const DAEMON: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            stop_handed_over();
            return;
        };
        // If other users have sessions by now, the daemon outlives us: the last recorder stops it.
        if matches!(child.try_wait(), Ok(None)) && daemon_pid() == Some(pid_of(&child)) {
            if !sessions().is_empty() {
                let _ = fs::write(run_dir().join(HANDED_OVER), child.id().to_string());
                return;
            }
            let _ = kill(Pid::from_raw(pid_of(&child)), Signal::SIGTERM);
            // The next run must not find a daemon that is ending.
            if !has_ended(&mut child) {
                return;
            }
        }
        kill_all(&child);
    }
}

/// Whether the daemon `child` still runs and `serves`. A daemon that is ending no longer answers, but another daemon
/// cannot start before it is gone, so this waits for its end. After the end, kills its helpers and clears `child`.
fn is_running(child: &mut Option<Child>, serves: impl FnOnce(i32) -> bool) -> Result<bool> {
    let Some(daemon) = child else {
        return Ok(false);
    };
    if daemon.try_wait()?.is_none() {
        if serves(pid_of(daemon)) {
            return Ok(true);
        }
        if !has_ended(daemon) {
            bail!(
                "LTTng's session daemon (process {}) no longer answers, and has not ended within {} s",
                daemon.id(),
                DAEMON.as_secs()
            );
        }
    }
    kill_all(daemon);
    *child = None;
    Ok(false)
}

/// Waits until the process has ended, for up to [`DAEMON`]. Returns whether it has ended.
fn has_ended(child: &mut Child) -> bool {
    let end = Instant::now() + DAEMON;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

/// Stops the session daemon that a recorder left running for other users, unless they still use it.
fn stop_handed_over() {
    let file = run_dir().join(HANDED_OVER);
    let pid = fs::read_to_string(&file).ok();
    if let Some(pid) = pid.and_then(|pid| pid.trim().parse().ok())
        && sessions().is_empty()
    {
        stop_daemon(pid);
        let _ = fs::remove_file(file);
    }
}

/// Creates a process in its own process group. The new process executes `program` once it has read a line from its
/// standard input. It ends if the caller is killed before writing that line.
fn spawn_waiting(program: &str, errors: File) -> Result<Child> {
    if !exists(program) {
        bail!(cannot_run(program));
    }
    let mut command = Command::new("sh");
    command.args(["-c", "read -r _ && exec \"$0\" </dev/null", program]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    // Do not keep the file system of the current directory busy.
    command.stderr(errors).process_group(0).current_dir("/");
    command.spawn().with_context(|| cannot_run("sh"))
}

/// Passes the process ID of `program`, which has its own process group, to `starts`, starts the program, and waits
/// until `ready`; `None` if another daemon started first. On failure, kills the whole group.
fn start_daemon(
    program: &str,
    starts: impl FnOnce(i32),
    ready: impl Fn(i32) -> bool,
) -> Result<Option<Child>> {
    let said = tempfile_for_errors()?;
    let errors = said.try_clone().context("cannot copy a file")?;
    let mut child = spawn_waiting(program, errors)?;
    starts(pid_of(&child));
    if let Some(mut input) = child.stdin.take() {
        // If this fails, the process has ended.
        let _ = input.write_all(b"\n");
    }
    let end = Instant::now() + DAEMON;
    loop {
        let ended = child.try_wait()?;
        if ended.is_none() && ready(pid_of(&child)) {
            return Ok(Some(child));
        }
        if ended.is_some() || Instant::now() >= end {
            kill_all(&child);
            let _ = child.wait();
            if daemon_pid().is_some_and(|pid| pid != pid_of(&child)) {
                return Ok(None);
            }
            let how = ended.map_or("does not answer".to_string(), |status| status.to_string());
            bail!("`{program}` failed ({how}){}", last_lines(said));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the daemon `pid` accepts commands.
fn ready(pid: i32) -> bool {
    daemon_pid() == Some(pid) && lttng(["--mi", "xml", "list"]).output().is_ok()
}

fn pid_of(child: &Child) -> i32 {
    child.id().cast_signed()
}

/// Kills the remaining processes in the group of `child`: helpers of a killed daemon.
fn kill_all(child: &Child) {
    let _ = killpg(Pid::from_raw(pid_of(child)), Signal::SIGKILL);
}

/// Returns an unnamed file for a daemon's output: nothing would read a pipe once this process is gone.
fn tempfile_for_errors() -> Result<File> {
    let path = std::env::temp_dir().join(format!(".latency-tracker-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true).mode(0o600);
    let file = options.open(&path);
    let file = file.with_context(|| path.display().to_string())?;
    let _ = fs::remove_file(&path);
    Ok(file)
}

/// The last lines of a daemon's output, for the end of an error message.
fn last_lines(mut said: File) -> String {
    let mut text = String::new();
    let _ = said.seek(SeekFrom::Start(0));
    let _ = said.read_to_string(&mut text);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    match last.is_empty() {
        true => String::new(),
        false => format!(":\n  {}", last.join("\n  ")),
    }
}

/// Stops the session daemon `pid` of a killed run, unless it has other users by now. A daemon that is still starting
/// may have no PID file yet.
pub fn stop_daemon(pid: i32) {
    let is_it = daemon_pid().unwrap_or(pid) == pid && is_daemon(pid);
    if !is_it || !sessions().is_empty() {
        return;
    }
    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    // The next run must not find a daemon that is ending.
    let end = Instant::now() + DAEMON;
    while kill(Pid::from_raw(pid), None).is_ok() && Instant::now() < end {
        std::thread::sleep(PAUSE);
    }
}

/// Returns the process ID of root's session daemon, if it runs.
pub fn daemon_pid() -> Option<i32> {
    let pid = PID_FILES.iter().find_map(|f| fs::read_to_string(f).ok())?;
    let pid = pid.trim().parse().ok()?;
    is_daemon(pid).then_some(pid)
}

/// Whether process `pid` is a session daemon.
fn is_daemon(pid: i32) -> bool {
    // Not comm: the daemon renames its threads.
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = command.split(|b| *b == 0).next().unwrap_or_default();
    program.ends_with(b"lttng-sessiond")
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
    fn a_daemon_that_ends_while_it_starts_leaves_no_process() {
        let dir = std::env::temp_dir().join(format!("lt-daemon-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (pid, script) = (dir.join("pid"), dir.join("daemon"));
        // The daemon has started a helper by the time it is killed.
        let text = format!(
            "#!/bin/sh\nsleep 300 &\necho $! >{}\necho no shared memory >&2\nkill -9 $$\n",
            pid.display()
        );
        program(&script, &text);
        let error = start_daemon(script.to_str().unwrap(), |_| (), |_| false).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("signal: 9") && error.contains("no shared memory"),
            "{error}"
        );
        let helper: i32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let stat = || fs::read_to_string(format!("/proc/{helper}/stat")).unwrap_or_default();
        let end = Instant::now() + Duration::from_secs(10);
        while !stat().is_empty() && !stat().contains(") Z ") && Instant::now() < end {
            std::thread::sleep(PAUSE);
        }
        assert!(stat().is_empty() || stat().contains(") Z "), "{}", stat());
        // The daemon that became ready is ours. Its process ID is known before it is ready.
        program(&script, "#!/bin/sh\nexec sleep 300\n");
        let known = std::cell::Cell::new(0);
        let (starts, ready) = (|pid| known.set(pid), |pid: i32| known.get() == pid);
        let child = start_daemon(script.to_str().unwrap(), starts, ready).unwrap();
        let mut child = child.unwrap();
        kill_all(&child);
        assert!(!child.wait().unwrap().success());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_daemon_that_is_ending_does_not_run() {
        let mut cat = Command::new("cat");
        let cat = cat.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut daemon = Some(cat.process_group(0).spawn().unwrap());
        let input = daemon.as_mut().unwrap().stdin.take();
        assert!(is_running(&mut daemon, |_| true).unwrap());
        // The process is still there when it no longer serves, and ends once its input is closed.
        let closes = |_: i32| {
            drop(input);
            false
        };
        assert!(!is_running(&mut daemon, closes).unwrap());
        assert!(daemon.is_none());
        assert!(!is_running(&mut daemon, |_| true).unwrap());
    }

    #[test]
    fn a_daemon_does_not_start_if_its_run_is_killed_before_noting_it() {
        let dir = std::env::temp_dir().join(format!("lt-noted-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (started, script) = (dir.join("started"), dir.join("daemon"));
        program(&script, &format!("#!/bin/sh\n: >{}\n", started.display()));
        let script = script.to_str().unwrap();
        let errors = || File::create(dir.join("errors")).unwrap();
        for is_noted in [false, true] {
            let mut child = spawn_waiting(script, errors()).unwrap();
            // The kernel closes the pipe of a killed process.
            let mut input = child.stdin.take().unwrap();
            if is_noted {
                input.write_all(b"\n").unwrap();
            }
            drop(input);
            assert_eq!(child.wait().unwrap().success(), is_noted);
            assert_eq!(started.exists(), is_noted);
        }
        let error = spawn_waiting("/nonexistent/daemon", errors()).unwrap_err();
        assert_eq!(error.to_string(), "cannot run `/nonexistent/daemon`");
        fs::remove_dir_all(&dir).unwrap();
    }

    /// Creates an executable. Another process writes it: see tests/program of the command.
    fn program(path: &Path, text: &str) {
        let mut install = Command::new("install");
        install.args(["-m", "755", "--", "/dev/stdin"]).arg(path);
        let mut install = install.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = install.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        drop(input);
        assert!(install.wait().unwrap().success());
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
    fn a_session_records_is_stopped_or_is_gone() {
        let xml = "<command xmlns=\"https://lttng.org/xml/ns/lttng-mi\"><name>list</name><output><sessions>\
            <session><name>a</name><path>/x</path><enabled>true</enabled></session>\
            <session><name>b</name><enabled>false</enabled></session></sessions></output></command>";
        assert_eq!(state_in("a", xml).unwrap(), State::Recording);
        assert_eq!(state_in("b", xml).unwrap(), State::Stopped);
        assert_eq!(state_in("c", xml).unwrap(), State::Gone);
        assert!(state_in("a", "Error").is_err());
    }

    #[test]
    fn discarded_events_of_all_channels_are_summed_up() {
        let xml = "<command xmlns=\"https://lttng.org/xml/ns/lttng-mi\"><output><sessions><session><name>a</name>\
            <domains><domain><channels><channel><name>c</name><attributes><discarded_events>3</discarded_events>\
            <lost_packets>9</lost_packets></attributes></channel><channel><attributes><discarded_events>4\
            </discarded_events></attributes></channel></channels></domain></domains></session></sessions></output>\
            </command>";
        assert_eq!(discarded_in(xml).unwrap(), 7);
        assert!(discarded_in("Error").is_err());
    }

    #[test]
    fn the_format_is_an_option_where_lttng_has_the_choice() {
        let version = |number: &str| format!("lttng (LTTng Trace Control) {number} - Name\n");
        let option = |format: Format, number: &str| format.option(&version(number));
        let old = "--trace-format=ctf-1.8";
        assert_eq!(option(Format::Ctf1, "2.16.0").unwrap(), Some(old));
        assert_eq!(option(Format::Ctf1, "2.15.0-pre").unwrap(), Some(old));
        assert_eq!(option(Format::Ctf1, "2.13.9").unwrap(), None);
        assert_eq!(
            option(Format::Ctf2, "3.0").unwrap(),
            Some("--trace-format=ctf-2")
        );
        assert!(option(Format::Ctf2, "2.13.9").is_err());
        assert_eq!(release("nonsense"), None);
    }

    #[test]
    fn plain_metadata_is_signed_once() {
        let file = std::env::temp_dir().join(format!("lt-sign-{}", std::process::id()));
        let after = |text: &[u8]| {
            fs::write(&file, text).unwrap();
            sign(&file).unwrap();
            sign(&file).unwrap();
            fs::read(&file).unwrap()
        };
        let plain = b"typealias integer { size = 8; } := a;\ntrace {\n};\n";
        assert_eq!(
            after(plain),
            [b"/* CTF 1.8 */\n".as_slice(), plain].concat()
        );
        for other in [
            b"\x1e{\"type\":\"preamble\",\"version\":2}".as_slice(),
            b"/* CTF 1.8 */\ntrace {",
            b"\x57\x1d\xd1\x75\0trace {",
            b"{\"trace {",
        ] {
            assert_eq!(after(other), other);
        }
        // The old metadata is replaced, not overwritten, so that no failure damages it.
        fs::write(&file, plain).unwrap();
        let old = file.with_extension("old");
        fs::hard_link(&file, &old).unwrap();
        sign(&file).unwrap();
        assert_eq!(fs::read(&old).unwrap(), plain);
        fs::remove_file(&old).unwrap();
        fs::remove_file(&file).unwrap();
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
