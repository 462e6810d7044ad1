// SPDX-License-Identifier: GPL-2.0 OR MIT

//! External commands. Each runs in its own process group, so that Ctrl-C at the terminal reaches only
//! this program and does not interrupt the command. If a command fails, the last lines of its output
//! are part of the error.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};

use crate::clock;

/// Number of processes that [`has_run`] remembers.
const REMEMBERED: usize = 64;

/// The process of a command. Times are of `CLOCK_MONOTONIC`, ns.
#[derive(Debug)]
struct Started {
    pid: u32,
    /// A time just before the process started.
    from: u64,
    /// A time just after the process ended, from which another process may have the PID. `u64::MAX` while it runs.
    to: u64,
}

/// The processes of the newest commands.
static STARTED: Mutex<VecDeque<Started>> = Mutex::new(VecDeque::new());

fn started() -> MutexGuard<'static, VecDeque<Started>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers a process that was started after `from`.
fn remember(pid: u32, from: u64) {
    let mut started = started();
    if started.len() >= REMEMBERED {
        started.pop_front();
    }
    let to = u64::MAX;
    started.push_back(Started { pid, from, to });
}

/// Remembers that a process has ended.
fn has_ended(pid: u32) {
    let to = clock::monotonic();
    let mut started = started();
    let running = started.iter_mut().rfind(|one| one.pid == pid);
    if let Some(running) = running {
        running.to = to;
    }
}

/// Whether process `pid` ran one of the newest commands of [`Exec`] at time `at` (`CLOCK_MONOTONIC`, ns).
pub fn has_run(pid: u32, at: u64) -> bool {
    let is_it = |one: &Started| one.pid == pid && (one.from..=one.to).contains(&at);
    started().iter().any(is_it)
}

/// A command that is about to run.
#[derive(Debug)]
pub struct Exec(Command);

impl Exec {
    /// Prepares to run `program` with `args`.
    pub fn new<S: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> Self {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).process_group(0);
        Self(command)
    }

    /// Prepares to run modprobe, even if PATH lacks its directory: under `su`, root keeps the user's PATH.
    pub fn modprobe<'a>(args: impl IntoIterator<Item = &'a str>) -> Self {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_string());
        Self::new("modprobe", args).env("PATH", format!("{path}:/usr/sbin:/sbin"))
    }

    /// Sets `key` in the environment of the command.
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(key, value);
        self
    }

    /// Runs the command to its end. Returns its standard output, or an error with the last lines of
    /// its error output, or of its standard output if the error output is empty.
    pub fn output(mut self) -> Result<String> {
        let shown = self.shown();
        self.0.stdout(Stdio::piped()).stderr(Stdio::piped());
        let from = clock::monotonic();
        let child = self.0.spawn().with_context(|| cannot_run(&shown))?;
        let pid = child.id();
        remember(pid, from);
        let output = child.wait_with_output();
        has_ended(pid);
        let output = output.with_context(|| format!("no output of `{shown}`"))?;
        if !output.status.success() {
            bail!("`{shown}` failed ({}){}", output.status, said(&output));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The words of the command, joined by spaces.
    fn shown(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
        words.join(" ")
    }
}

/// Quotes `text` as one word of a shell command.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Quotes a path as one word of a shell command, if necessary.
pub fn quoted_if_odd(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match !path.is_empty() && path.chars().all(plain) {
        true => path.to_string(),
        false => quoted(path),
    }
}

/// The error for a missing command.
pub fn cannot_run(shown: &str) -> String {
    let program = shown.split(' ').next().unwrap_or(shown);
    let package = match program {
        "lttng" | "lttng-sessiond" => "; install the package lttng-tools",
        "modprobe" => "; install the package kmod",
        _ => "",
    };
    format!("cannot run `{program}`{package}")
}

fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let text = if stderr.trim().is_empty() {
        stdout.trim()
    } else {
        stderr.trim()
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(6)..];
    if last.is_empty() {
        " and printed nothing".to_string()
    } else {
        format!(":\n  {}", last.join("\n  "))
    }
}

/// Whether `program` can be found.
pub fn exists(program: &str) -> bool {
    find(OsStr::new(program)).is_some()
}

/// The file of a program: a path with a slash, or the first file of this name in PATH.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = match program.as_encoded_bytes().contains(&b'/') {
        true => vec![program.into()],
        false => std::env::split_paths(&path)
            .map(|dir| dir.join(program))
            .collect(),
    };
    let place = places.iter().position(|file| file.is_file())?;
    Some(places.swap_remove(place))
}

/// How a command ended, for a message.
pub fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The exit status that a shell shows: 128+N if signal N ended the command.
pub fn code(status: ExitStatus) -> u8 {
    let signal = || status.signal().map_or(1, |signal| 128 + signal);
    u8::try_from(status.code().unwrap_or_else(signal)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_its_process_and_its_time() {
        let before = clock::monotonic();
        let pid = Exec::new("sh", ["-c", "echo $$"]).output().unwrap();
        let pid: u32 = pid.trim().parse().unwrap();
        let after = clock::monotonic();
        let times = |one: &Started| (one.pid == pid).then_some((one.from, one.to));
        let (from, to) = started().iter().find_map(times).unwrap();
        assert!(before <= from && from < to && to <= after);
        // Another process may have had its PID before, or have it now.
        assert!(has_run(pid, from) && has_run(pid, to));
        assert!(!has_run(pid, from - 1) && !has_run(pid, to + 1));
        assert!(!has_run(std::process::id(), to));
    }

    #[test]
    fn a_command_that_still_runs_is_known() {
        // No process has this PID.
        let pid = u32::MAX;
        remember(pid, 10);
        assert!(!has_run(pid, 9) && has_run(pid, clock::monotonic()));
    }

    #[test]
    fn a_failure_shows_the_output_of_the_command() {
        let error = Exec::new("sh", ["-c", "echo no such disk >&2; exit 3"])
            .output()
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("no such disk") && text.contains("3"),
            "{text}"
        );
        let error = Exec::new("no-such-program-here", ["x"])
            .output()
            .unwrap_err();
        assert!(format!("{error:#}").starts_with("cannot run `no-such-program-here`"));
    }

    #[test]
    fn output_and_environment_pass() {
        let exec = Exec::new("sh", ["-c", "printf %s \"$LT_X\""]).env("LT_X", "a b");
        assert_eq!(exec.output().unwrap(), "a b");
    }

    #[test]
    fn a_program_is_found_in_the_path_or_where_it_is_named() {
        assert!(find(OsStr::new("sh")).is_some_and(|file| file.is_absolute()));
        assert_eq!(find(OsStr::new("/bin/sh")), Some("/bin/sh".into()));
        assert_eq!(find(OsStr::new("/no/such/program")), None);
        assert_eq!(find(OsStr::new("no-such-program-here")), None);
        assert_eq!(find(OsStr::new("/tmp")), None);
    }

    #[test]
    fn a_name_in_a_command_is_one_word() {
        assert_eq!(quoted("/a b/$(c)'d"), "'/a b/$(c)'\\''d'");
        assert_eq!(quoted_if_odd("/srv/a-b_c.d"), "/srv/a-b_c.d");
        assert_eq!(quoted_if_odd("/srv/a b"), "'/srv/a b'");
        assert_eq!(quoted_if_odd(""), "''");
    }

    #[test]
    fn the_status_of_a_command_is_what_a_shell_shows() {
        for (raw, shown, text) in [
            (0, 0, "exit status 0"),
            (3 << 8, 3, "exit status 3"),
            (15, 143, "signal 15"),
        ] {
            let status = ExitStatus::from_raw(raw);
            assert_eq!((code(status), how(status).as_str()), (shown, text));
        }
    }
}
