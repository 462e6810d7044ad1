// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The process that generates user-space events.
//!
//! The command is linked statically and cannot load LTTng's library. So a Python process loads it,
//! and calls the tracepoint in the library; the speed of Python's loop limits the rate. The process
//! is killed when the [`Ust`] is dropped, and when this process ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use lt_common::wait::{Signals, Wake};

use super::emit::{Made, Plan};
use crate::measure::Record;

const PROGRAM: &str = include_str!("ust.py");
/// Name of the tracepoint.
pub(super) const EVENT: &str = "lttng_ust_cyg_profile_fast:func_entry";

#[derive(Debug)]
pub(super) struct Ust {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Ust {
    /// Starts the process. A session daemon must be running, since the library connects to it when
    /// loaded.
    pub(super) fn start(cpu: u32, priority: i32) -> Result<Self> {
        let mut command = Command::new("python3");
        command.args(["-c", PROGRAM]);
        command.args([cpu.to_string(), priority.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        // Signals from the terminal, which end this process, do not reach the new process.
        command.process_group(0);
        let mut child = command.spawn().context(
            "cannot run `python3`, which generates user-space events; install the package python3",
        )?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (to, from) = to.zip(from).context("no pipes to python3")?;
        let mut ust = Self {
            child,
            to,
            from: BufReader::new(from),
        };
        let mut line = String::new();
        ust.from.read_line(&mut line).context("python3")?;
        if line != "ready\n" {
            let _ = ust.child.wait();
            let mut said = String::new();
            if let Some(stderr) = &mut ust.child.stderr {
                let _ = stderr.read_to_string(&mut said);
            }
            let last = said.lines().last().unwrap_or("no output").trim();
            bail!(
                "python3 cannot generate user-space events ({last}); they need the package liblttng-ust1t64"
            );
        }
        Ok(ust)
    }

    /// Returns the pid of the process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Generates events; `None` if a signal ended the run.
    pub(super) fn make(&mut self, plan: &Plan, signals: &Signals) -> Result<Option<Made>> {
        let ended = "the process that generates events has ended";
        let gap = plan.gap.unwrap_or(0.0);
        let plan = format!(
            "{gap} {} {} {} {}\n",
            plan.length, plan.least, plan.longest, plan.most
        );
        self.to.write_all(plan.as_bytes()).context(ended)?;
        let file = std::fs::File::from(
            std::os::fd::AsFd::as_fd(self.from.get_ref()).try_clone_to_owned()?,
        );
        if signals.wait(Some(&file), None)? == Wake::Signal {
            return Ok(None);
        }
        let mut line = String::new();
        self.from.read_line(&mut line).context(ended)?;
        let numbers: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [events, time] = numbers.as_slice() else {
            bail!("{ended}");
        };
        let mut each = Record::default();
        let mut sample = [0; 8];
        for _ in 0..*events {
            self.from.read_exact(&mut sample).context(ended)?;
            each.add(u64::from_ne_bytes(sample));
        }
        Ok(Some(Made {
            events: *events,
            time: *time,
            each,
        }))
    }
}

impl Drop for Ust {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
