// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The command of a run. Its process is created before the instance, so that the command is measured from its start.
//!
//! ```text
//!   this process:  spawn, wait for the stop          instance for the child, SIGCONT
//!   child:                this program again, SIGSTOP                         exec(COMMAND)
//! ```
//!
//! An instance with `tree=1` does not count the stop of the process that it is started for, and a stopped process
//! neither runs nor wakes. So the first thing that counts is the wakeup by SIGCONT; after at most a few system calls, the
//! process executes the command. Until then, it does not outlive its parent.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use lt_common::exec::find;
use lt_common::out::note;
use lt_common::wait::Lines;
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{AccessFlags, Pid, access, getpgrp, getppid, tcgetpgrp};

/// First argument of the child, before the PID of its parent and the command.
const CHILD: &str = "__run";

/// Exit status of a shell for a command that it cannot run.
const NOT_EXECUTABLE: u8 = 126;

/// In the child, waits and becomes the command; returns only if that fails. In any other process, returns `None`.
pub(crate) fn is_child() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next().as_deref() != Some(OsStr::new(CHILD)) {
        return None;
    }
    let (Some(parent), Some(file), Some(name)) = (args.next(), args.next(), args.next()) else {
        return Some(ExitCode::from(1));
    };
    let mut command = Command::new(file);
    command.arg0(&name).args(args);
    // The parent may have ended before this call, which then has no effect.
    let is_bound = set_pdeathsig(Signal::SIGKILL).is_ok() && parent == *getppid().to_string();
    if !is_bound || raise(Signal::SIGSTOP).is_err() || set_pdeathsig(None::<Signal>).is_err() {
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
        access(&file, AccessFlags::X_OK)
            .with_context(|| format!("cannot run {}", name.display()))?;
        Ok(Some(Self {
            file,
            words: words.to_vec(),
        }))
    }

    /// Creates the process, which waits for [`Waiting::start`].
    pub(crate) fn wait_to_start(&self) -> Result<Waiting> {
        let mut command = Command::new("/proc/self/exe");
        command.arg(CHILD).arg(std::process::id().to_string());
        command.arg(&self.file).args(&self.words);
        Waiting::create(&mut command)
    }
}

/// A process that waits to become the command; killed when dropped.
#[derive(Debug)]
pub(crate) struct Waiting(Option<Child>);

impl Waiting {
    /// Creates a process that stops itself, and waits until it has stopped.
    fn create(command: &mut Command) -> Result<Self> {
        let child = command.spawn().context("cannot create a process")?;
        let mut waiting = Self(Some(child));
        match waitpid(waiting.pid()?, Some(WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(_, Signal::SIGSTOP)) => {
                waiting.wait_for_switch_out();
                Ok(waiting)
            }
            Ok(other) => {
                if !matches!(other, WaitStatus::Stopped(..)) {
                    // The process is gone, and its ID may be used again.
                    waiting.0 = None;
                }
                bail!("the process for the command did not wait: {other:?}")
            }
            Err(error) => Err(error).context("cannot wait for the process of the command"),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    fn pid(&self) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.id())?))
    }

    /// Waits until the stopped process is off its CPU: it reports the stop before it is switched out, and an instance
    /// would count that switch.
    fn wait_for_switch_out(&self) {
        let call = format!("/proc/{}/syscall", self.id());
        // Without permission to read this file, the time until an instance exists must suffice.
        let is_on_cpu = || std::fs::read(&call).is_ok_and(|call| call.starts_with(b"running"));
        for _ in 0..1000 {
            if !is_on_cpu() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Starts the command.
    pub(crate) fn start(mut self) -> Result<Running> {
        let pid = self.pid()?;
        let continued = WaitPidFlag::WCONTINUED | WaitPidFlag::WNOHANG;
        if let Ok(WaitStatus::Continued(_)) = waitid(Id::Pid(pid), continued) {
            bail!("the process of the command was continued (SIGCONT) before it could be measured");
        }
        let (reader, writer) = UnixStream::pair().context("cannot create a socket pair")?;
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

    /// Waits until the command has ended, and returns its exit status.
    pub(crate) fn status(self) -> Result<ExitStatus> {
        let joined = self.waiter.join();
        let status = joined.map_err(|_| anyhow!("the wait for the command failed"))?;
        status.context("cannot wait for the command")
    }

    /// Forwards a signal. In the terminal's foreground, a SIGINT is taken to come from the terminal, which sends it to
    /// the command, too. A command that has just ended is no error.
    pub(crate) fn pass_on(&self, signal: i32) -> Result<()> {
        let signal = Signal::try_from(signal)?;
        let terminal = File::open("/dev/tty");
        let is_in_front = terminal.is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()));
        if signal != Signal::SIGINT || !is_in_front {
            match kill(self.pid, signal) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(error).context("cannot forward the signal"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_another_signal_stops_is_killed() {
        let mut command = Command::new("sh");
        // The signal has no effect in an orphaned process group; a new group is not orphaned.
        command.args(["-c", "kill -s TSTP $$"]).process_group(0);
        let error = Waiting::create(&mut command).unwrap_err().to_string();
        let pid = error
            .strip_prefix("the process for the command did not wait: Stopped(Pid(")
            .and_then(|rest| rest.strip_suffix("), SIGTSTP)"));
        let pid = Pid::from_raw(pid.expect(&error).parse().unwrap());
        let status = waitpid(pid, Some(WaitPidFlag::WNOHANG));
        assert_eq!(status, Err(Errno::ECHILD), "killed and waited for");
    }
}
