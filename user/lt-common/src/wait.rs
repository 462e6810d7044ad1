// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Waiting for the kernel, the clock or the user, whichever comes first.
//!
//! SIGINT, SIGTERM and SIGHUP only set a number, and write a byte into a socket that is polled while waiting. So no
//! signal interrupts a sequence of steps, and whatever has been set up is undone in order. The signals are not
//! blocked: children would inherit the mask, and SIGTERM could not end a session daemon. Handlers are not inherited.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Receives the signals that ask the program to end.
#[derive(Debug)]
pub struct Signals {
    wakes: UnixStream,
    /// Number of the last signal; 0 if there was none.
    last: Arc<AtomicUsize>,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// A signal asked the program to end.
    Signal,
    /// A file is readable.
    Ready,
    /// The time has passed.
    Timeout,
}

impl Signals {
    /// Installs the handlers: from now on, the signals are recorded here.
    pub fn catch() -> Result<Self> {
        let (reader, writer) = UnixStream::pair().context("cannot create sockets for signals")?;
        reader
            .set_nonblocking(true)
            .context("cannot prepare the socket for signals")?;
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The number is registered first: handlers run in the order of registration, and the byte wakes the
            // thread that then reads the number.
            flag::register_usize(signal, Arc::clone(&last), signal as usize)
                .context("cannot catch signals")?;
            let writer = writer
                .try_clone()
                .context("cannot copy the socket for signals")?;
            pipe::register(signal, writer).context("cannot catch signals")?;
        }
        Ok(Self {
            wakes: reader,
            last,
        })
    }

    /// The number of the last signal.
    pub fn last(&self) -> Option<i32> {
        let last = i32::try_from(self.last.load(Ordering::SeqCst)).ok();
        last.filter(|signal| *signal != 0)
    }

    /// Waits for one of `files` to become readable, for a signal, or until `end`. A signal takes precedence.
    pub fn wait<'a>(
        &'a self,
        files: impl IntoIterator<Item = &'a File>,
        end: Option<Instant>,
    ) -> Result<Wake> {
        self.wait_while_read(None, files, end)
    }

    /// Waits as [`Signals::wait`] does. Once no process can read from the pipe or socket `output`, fails with
    /// [`io::ErrorKind::BrokenPipe`], as a write would.
    pub fn wait_while_read<'a>(
        &'a self,
        output: Option<&'a File>,
        files: impl IntoIterator<Item = &'a File>,
        end: Option<Instant>,
    ) -> Result<Wake> {
        let own = (self.wakes.as_fd(), PollFlags::POLLIN);
        // An error or a hangup is reported without being requested.
        let output = output.map(|output| (output.as_fd(), PollFlags::empty()));
        let files = files
            .into_iter()
            .map(|file| (file.as_fd(), PollFlags::POLLIN));
        let fds: Vec<(BorrowedFd<'_>, PollFlags)> =
            std::iter::once(own).chain(output).chain(files).collect();
        let first = 1 + usize::from(output.is_some());
        loop {
            let timeout = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => PollTimeout::NONE,
                // Round up: rounding down would busy-wait through the last millisecond.
                Some(left) => {
                    PollTimeout::try_from(left.min(HOUR) + MILLISECOND).unwrap_or(PollTimeout::MAX)
                }
            };
            let mut polled: Vec<PollFd<'_>> = fds
                .iter()
                .map(|(fd, events)| PollFd::new(*fd, *events))
                .collect();
            match poll(&mut polled, timeout) {
                Err(Errno::EINTR) => continue,
                Err(e) => return Err(e).context("poll"),
                Ok(_) => {}
            }
            let any = |i: usize| {
                let events = polled.get(i).and_then(PollFd::revents);
                events.is_some_and(|e| !e.is_empty())
            };
            if any(0) {
                let _ = (&self.wakes).read(&mut [0; 16]);
                return Ok(Wake::Signal);
            }
            if (1..first).any(any) {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
            }
            if (first..fds.len()).any(any) {
                return Ok(Wake::Ready);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(Wake::Timeout);
            }
        }
    }

    /// Waits for `time` to pass; returns false if a signal came first.
    pub fn sleep(&self, time: Duration) -> Result<bool> {
        Ok(self.wait(None, Some(Instant::now() + time))? == Wake::Timeout)
    }
}

const HOUR: Duration = Duration::from_secs(3600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// The result of reading a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Complete lines, and at the end of the stream, an incomplete last line.
    pub lines: Vec<String>,
    /// Whether the stream has ended.
    pub end: bool,
}

/// Lines from a non-blocking file, one read(2) at a time. A file that procfs has removed counts as ended.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Reads the available lines.
    pub fn read(&mut self, mut file: &File) -> io::Result<Chunk> {
        let mut chunk = Chunk::default();
        let mut buffer = [0; 16384];
        match file.read(&mut buffer) {
            Ok(0) => chunk.end = true,
            // The file was removed from procfs, and the kernel has not signalled its end yet.
            Err(e)
                if matches!(
                    e.raw_os_error().map(Errno::from_raw),
                    Some(Errno::EIO | Errno::ENODEV)
                ) =>
            {
                chunk.end = true;
            }
            Ok(n) => self.partial.extend_from_slice(&buffer[..n]),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(e),
        }
        while let Some(i) = self.partial.iter().position(|b| *b == b'\n') {
            let rest = self.partial.split_off(i + 1);
            let line = std::mem::replace(&mut self.partial, rest);
            chunk
                .lines
                .push(String::from_utf8_lossy(&line[..i]).into_owned());
        }
        if chunk.end && !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            chunk
                .lines
                .push(String::from_utf8_lossy(&line).into_owned());
        }
        Ok(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;

    /// One test, since a signal reaches every `Signals` of the process.
    #[test]
    fn a_wait_ends_with_time_or_a_signal_or_when_the_reader_of_the_output_leaves() {
        let signals = Signals::catch().unwrap();
        assert!(signals.sleep(Duration::from_millis(5)).unwrap());
        assert_eq!(signals.last(), None);
        let (reader, writer) = io::pipe().unwrap();
        let output = File::from(OwnedFd::from(writer));
        let soon = || Some(Instant::now() + Duration::from_millis(5));
        let wait = |end| signals.wait_while_read(Some(&output), None, end);
        assert_eq!(wait(soon()).unwrap(), Wake::Timeout);
        drop(reader);
        assert!(crate::out::is_broken_pipe(&wait(None).unwrap_err()));
        // Another file is not the output.
        let waited = signals.wait_while_read(None, Some(&output), None);
        assert_eq!(waited.unwrap(), Wake::Ready);
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert!(!signals.sleep(Duration::from_secs(60)).unwrap());
        assert_eq!(signals.last(), Some(SIGHUP));
        assert!(signals.sleep(Duration::from_millis(5)).unwrap());
    }

    #[test]
    fn lines_survive_being_cut_by_reads() {
        let (reader, mut writer) = io::pipe().unwrap();
        let reader = File::from(OwnedFd::from(reader));
        let mut lines = Lines::default();
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(lines.read(&reader).unwrap().lines, ["one"]);
        writer.write_all(b"o\nthree").unwrap();
        assert_eq!(lines.read(&reader).unwrap().lines, ["two"]);
        drop(writer);
        let last = lines.read(&reader).unwrap();
        assert_eq!((last.lines, last.end), (vec!["three".to_string()], true));
    }

    #[test]
    fn a_file_that_answers_with_eio_has_ended() {
        // A terminal returns EIO once no process has its other side open. A removed file of procfs also returns EIO.
        let pty = nix::pty::openpty(None, None).unwrap();
        let (master, mut slave) = (File::from(pty.master), File::from(pty.slave));
        let mut lines = Lines::default();
        slave.write_all(b"one\ntwo").unwrap();
        assert_eq!(lines.read(&master).unwrap().lines, ["one\r"]);
        drop(slave);
        let last = lines.read(&master).unwrap();
        assert_eq!((last.lines, last.end), (vec!["two".to_string()], true));
    }
}
