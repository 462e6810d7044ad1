// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command of a run. Its process is created before the instance, so that the command is measured from its first
//! instruction on. What the process does before that is not measured.
//!
//! ```text
//!   this process:  spawn, wait for the stop          instance for the child, SIGCONT
//!   child:                this program again, SIGSTOP                         exec(COMMAND)
//! ```
//!
//! An instance with `tree=1` does not count the stop of the process that it is started for, and a stopped process
//! neither runs nor wakes. So the first thing that counts is the SIGCONT, and the next is the execution of the command.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail};
use lt_common::exec::find;
use lt_common::instance::Refusal;
use lt_common::out::note;
use lt_common::pids::are_numbered_as_in_alerts;
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
pub(crate) struct Program {
    file: PathBuf,
    words: Vec<OsString>,
}

impl Program {
    /// Finds the command of the user; `None` if there are no words.
    pub(crate) fn find(words: &[OsString]) -> Result<Option<Self>> {
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
    pub(crate) fn wait_to_start(&self) -> Result<Waiting> {
        if !are_numbered_as_in_alerts(Path::new("/")) {
            return Err(Refusal::new(
                "in this PID namespace, the command's ID is not its ID in the kernel, so it cannot be followed",
                "outside the container, `nsenter --target 1 --pid --mount latency-tracker` with the same arguments",
            )
            .into());
        }
        let mut command = Command::new("/proc/self/exe");
        command.arg(CHILD).arg(&self.file).args(&self.words);
        let child = command.spawn().context("cannot create a process")?;
        let waiting = Waiting(Some(child));
        match waitpid(waiting.pid()?, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(_, Signal::SIGSTOP)) => {
                // The child reports its stop before it is switched out, which an instance would count. This read waits
                // for that.
                let _ = std::fs::read(format!("/proc/{}/syscall", waiting.id()));
                Ok(waiting)
            }
            Ok(other) => bail!("the process for the command did not wait: {other:?}"),
            Err(error) => Err(error).context("cannot wait for the process of the command"),
        }
    }
}

/// A process that waits to become the command; killed when dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Option<Child>);

impl Waiting {
    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    fn pid(&self) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.id())?))
    }

    /// Starts the command.
    pub(crate) fn start(mut self) -> Result<Running> {
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
pub(crate) struct Running {
    pid: Pid,
    /// Readable once the command has ended.
    end: File,
    waiter: JoinHandle<std::io::Result<ExitStatus>>,
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The file to poll.
    pub(crate) fn file(&self) -> &File {
        &self.end
    }

    pub(crate) fn has_ended(&self) -> Result<bool> {
        Ok(Lines::default().read(&self.end)?.end)
    }

    /// How the command has ended.
    pub(crate) fn status(self) -> Result<ExitStatus> {
        let joined = self.waiter.join();
        let status = joined.map_err(|_| anyhow!("the wait for the command failed"))?;
        status.context("cannot wait for the command")
    }

    /// Forwards a signal, unless the terminal has also sent it to the command.
    pub(crate) fn pass_on(&self, signal: i32) -> Result<()> {
        let signal = Signal::try_from(signal)?;
        let terminal = File::open("/dev/tty");
        let is_in_front = terminal.is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()));
        if signal != Signal::SIGINT || !is_in_front {
            kill(self.pid, signal)?;
        }
        Ok(())
    }
}
