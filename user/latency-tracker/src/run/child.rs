// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command of a run. Its process is created before the instance, so that the command is measured from its first
//! instruction on. What the process does before that is not measured.
//!
//! ```text
//!   this process:  spawn, wait for the stop          instance, cgroup <- child, SIGCONT
//!   child:                this program again, SIGSTOP                            exec(COMMAND)
//! ```
//!
//! If the child prepared itself inside the cgroup, the cgroup would be charged for that. So the child stops itself
//! outside, and is moved while it is stopped. Its next action is to execute the command.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use lt_common::exec::find;
use lt_common::out::note;
use lt_common::wait::Lines;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};

/// First argument of the child, before the command.
const CHILD: &str = "__run";

/// Exit status of a shell for a command that it cannot run.
const NOT_EXECUTABLE: u8 = 126;

/// In the child, waits and becomes the command; returns only if that fails. In any other process, returns `None`.
pub(crate) fn is_child() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(CHILD)) {
        return None;
    }
    let (Some(file), Some(name)) = (args.next(), args.next()) else {
        return Some(ExitCode::from(1));
    };
    let mut command = Command::new(file);
    command.arg0(&name).args(args);
    if raise(Signal::SIGSTOP).is_err() {
        return Some(ExitCode::from(1));
    }
    let error = command.exec();
    note(&format!("cannot run {}: {error}", name.display()));
    Some(ExitCode::from(NOT_EXECUTABLE))
}

/// A command that exists, with its arguments.
#[derive(Debug)]
pub(super) struct Found {
    file: PathBuf,
    words: Vec<OsString>,
}

impl Found {
    /// Finds the command of the user; `None` if there are no words.
    pub(super) fn find(words: &[OsString]) -> Result<Option<Self>> {
        let Some(name) = words.first() else {
            return Ok(None);
        };
        let file = find(name)
            .with_context(|| format!("cannot run {}: there is no such program", name.display()))?;
        Ok(Some(Self {
            file,
            words: words.to_vec(),
        }))
    }

    /// Creates the process, which waits for [`Waiting::start`].
    pub(super) fn wait_to_start(&self) -> Result<Waiting> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(CHILD).arg(&self.file).args(&self.words);
        let child = command.spawn().context("cannot create a process")?;
        let waiting = Waiting(Some(child));
        match waitpid(waiting.pid()?, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(_, Signal::SIGSTOP)) => Ok(waiting),
            Ok(other) => bail!("the process for the command did not wait: {other:?}"),
            Err(error) => Err(error).context("cannot wait for the process of the command"),
        }
    }
}

/// A process that waits to become the command; killed when dropped.
#[derive(Debug)]
pub(super) struct Waiting(Option<Child>);

impl Waiting {
    pub(super) fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    fn pid(&self) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.id())?))
    }

    /// Starts the command.
    pub(super) fn start(mut self) -> Result<Running> {
        let pid = self.pid()?;
        let (reader, writer) = UnixStream::pair().context("cannot create a pipe")?;
        reader.set_nonblocking(true)?;
        kill(pid, Signal::SIGCONT).context("cannot start the command")?;
        let mut child = self.0.take().context("no process")?;
        let waiter = std::thread::spawn(move || {
            let status = child.wait();
            drop(writer);
            status
        });
        Ok(Running {
            pid,
            end: File::from(OwnedFd::from(reader)),
            waiter,
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command.
#[derive(Debug)]
pub(super) struct Running {
    pid: Pid,
    /// Readable once the command has ended.
    end: File,
    waiter: JoinHandle<std::io::Result<ExitStatus>>,
}

impl Running {
    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// The file to poll.
    pub(super) fn file(&self) -> &File {
        &self.end
    }

    pub(super) fn has_ended(&self) -> Result<bool> {
        Ok(Lines::default().read(&self.end)?.end)
    }

    /// How the command has ended.
    pub(super) fn status(self) -> Result<ExitStatus> {
        let joined = self.waiter.join();
        let status = joined.map_err(|_| anyhow!("the wait for the command failed"))?;
        status.context("cannot wait for the command")
    }

    /// Forwards a signal, unless the terminal has also sent it to the command.
    pub(super) fn pass_on(&self, signal: i32) -> Result<()> {
        let signal = Signal::try_from(signal)?;
        let terminal = File::open("/dev/tty");
        let is_in_front = terminal.is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()));
        if signal != Signal::SIGINT || !is_in_front {
            kill(self.pid, signal)?;
        }
        Ok(())
    }
}
