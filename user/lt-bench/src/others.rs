// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Other tools that measure how late a periodic task is woken, for `bench timer --compare`:
//! cyclictest, and rtla if the kernel has its tracer. The tools and our own measurement take turns,
//! with the same CPUs, priority and interval.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lt_common::out::note;
use lt_common::wait::{Signals, Wake};
use lt_readiness::{Cpus, Root};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::measure::{Curve, read};

/// Upper limit of the tools' histograms, us.
const LONGEST: u64 = 10_000;
/// How often to check for a signal.
const LOOK: Duration = Duration::from_millis(20);

/// The parameters of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) cpus: &'a Cpus,
    /// The SCHED_FIFO priority.
    pub(super) priority: i32,
    /// The period, ns.
    pub(super) interval: u64,
    pub(super) cycles: u64,
}

/// A tool, with its results so far.
#[derive(Debug)]
pub(super) struct Tool {
    name: &'static str,
    arguments: fn(&Turn<'_>) -> Vec<String>,
    pub(super) curves: Vec<Curve>,
}

/// Returns the tools that can run here. Fails without cyclictest.
pub(super) fn tools(root: &Root) -> Result<Vec<Tool>> {
    if !installed("cyclictest") {
        bail!("--compare runs cyclictest, which is not installed: install the package rt-tests");
    }
    let tool = |name, arguments| Tool {
        name,
        arguments,
        curves: Vec::new(),
    };
    let mut tools = vec![tool("cyclictest", cyclictest as fn(&Turn<'_>) -> _)];
    match (has_timerlat(root), installed("rtla")) {
        (true, true) => tools.push(tool("rtla timerlat", rtla)),
        (true, false) => {
            note("rtla is not installed: install the package rtla to compare with it, too")
        }
        (false, _) => note(
            "this kernel has no tracer timerlat (CONFIG_TIMERLAT_TRACER), so rtla is not compared",
        ),
    }
    Ok(tools)
}

fn has_timerlat(root: &Root) -> bool {
    let tracers = root.text("/sys/kernel/tracing/available_tracers");
    tracers.is_ok_and(|tracers| tracers.split_whitespace().any(|t| t == "timerlat"))
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Returns the command line of cyclictest; its histogram has bins of 1 us.
fn cyclictest(turn: &Turn<'_>) -> Vec<String> {
    let threads = turn.cpus.iter().count();
    let words = format!(
        "-q -m -a {} -t {threads} -p {} -d 0 -i {} -l {} -h {LONGEST}",
        turn.cpus,
        turn.priority,
        micros(turn.interval),
        turn.cycles
    );
    words.split(' ').map(str::to_string).collect()
}

/// Returns the command line of rtla, with user-space threads like ours. Its duration is in whole
/// seconds.
fn rtla(turn: &Turn<'_>) -> Vec<String> {
    let seconds = turn
        .cycles
        .saturating_mul(turn.interval)
        .div_ceil(1_000_000_000);
    let words = format!(
        "timerlat hist -u -c {} -P f:{} -p {} -d {seconds}s -b 1 -E {LONGEST}",
        turn.cpus,
        turn.priority,
        micros(turn.interval),
    );
    words.split(' ').map(str::to_string).collect()
}

fn micros(ns: u64) -> u64 {
    (ns / 1000).max(1)
}

impl Tool {
    /// Runs the tool once, and adds its results. Returns false if a signal ended it.
    pub(super) fn run(&mut self, turn: &Turn<'_>, signals: &Signals) -> Result<bool> {
        let program = self.name.split(' ').next().unwrap_or(self.name);
        let mut command = Command::new(program);
        command.args((self.arguments)(turn));
        let Some(said) = output(command, signals).with_context(|| self.name.to_string())? else {
            return Ok(false);
        };
        let found = read(&said).with_context(|| format!("output of {}", self.name))?;
        for mut curve in found {
            curve.name = format!("{} {}", self.name, curve.name);
            match self
                .curves
                .iter_mut()
                .find(|known| known.name == curve.name)
            {
                Some(known) => known.merge(&curve),
                None => self.curves.push(curve),
            }
        }
        Ok(true)
    }
}

/// Returns the output of a command; `None` if a signal ended it.
fn output(mut command: Command, signals: &Signals) -> Result<Option<String>> {
    // Signals from the terminal do not reach the tool: this process takes them, and ends the tool
    // with SIGINT. On SIGTERM, rtla would leave its tracer running, and the tracer's settings changed.
    command.process_group(0);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().context("does not start")?;
    let pid = Pid::from_raw(child.id().cast_signed());
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || child.wait_with_output());
        let mut ended = false;
        while !reader.is_finished() {
            let next = Instant::now() + LOOK;
            if signals.wait(None, Some(next))? == Wake::Signal {
                ended = true;
                // The last step of the reader is to wait for the process, so the pid still names
                // the process. If the reader takes this step just now, the pid is unused: pids are
                // not reused that soon.
                let _ = kill(pid, Signal::SIGINT);
            }
        }
        let joined = reader.join().ok().context("its output cannot be read")?;
        let output = joined.context("its output cannot be read")?;
        if ended {
            return Ok(None);
        }
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rev().find(|line| !line.trim().is_empty());
            bail!("{}: {}", output.status, last.unwrap_or("no output"));
        }
        Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tools_run_with_our_parameters() {
        let cpus = "2-3".parse::<Cpus>().unwrap();
        let turn = Turn {
            cpus: &cpus,
            priority: 95,
            interval: 500_000,
            cycles: 3001,
        };
        assert_eq!(
            cyclictest(&turn).join(" "),
            "-q -m -a 2-3 -t 2 -p 95 -d 0 -i 500 -l 3001 -h 10000"
        );
        assert_eq!(
            rtla(&turn).join(" "),
            "timerlat hist -u -c 2-3 -P f:95 -p 500 -d 2s -b 1 -E 10000"
        );
    }

    #[test]
    fn rtla_needs_its_tracer() {
        let dir = std::env::temp_dir().join(format!("lt-timerlat-{}", std::process::id()));
        let tracing = dir.join("sys/kernel/tracing");
        std::fs::create_dir_all(&tracing).unwrap();
        let root = Root::new(&dir);
        assert!(!has_timerlat(&root));
        for (tracers, has) in [
            ("hwlat timerlat osnoise nop\n", true),
            ("function nop\n", false),
        ] {
            std::fs::write(tracing.join("available_tracers"), tracers).unwrap();
            assert_eq!(has_timerlat(&root), has);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_output_of_a_tool_is_read_and_its_failure_is_reported() {
        let signals = Signals::catch().unwrap();
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let said = output(shell("echo 000001 000007"), &signals).unwrap();
        assert_eq!(said.as_deref(), Some("000001 000007\n"));
        let error = output(shell("echo no >&2; exit 3"), &signals).unwrap_err();
        assert!(error.to_string().ends_with("3: no"), "{error}");
        assert!(output(Command::new("/nowhere/at/all"), &signals).is_err());
    }
}
