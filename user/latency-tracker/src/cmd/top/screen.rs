// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Switches the terminal to raw mode and to its alternate screen, and back.
//!
//! The terminal is restored when the [`Screen`] is dropped, when the program is suspended, and before the message of a
//! panic. The kernel reports the size of the output. The terminal itself is not queried: if it did not answer, the
//! program would hang.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::signal::{Signal, raise};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use ratatui::layout::Rect;
use ratatui::prelude::CrosstermBackend;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

/// The alternate screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
const CLEAR: &[u8] = b"\x1b[0m\x1b[H\x1b[2J";
const LEAVE: &[u8] = b"\x1b[0m\x1b[2J\x1b[?25h\x1b[?1049l";

/// Assumed size of a terminal whose size is unknown.
const UNKNOWN: (u16, u16) = (80, 24);

/// How to restore the terminal; `None` if there is nothing to restore.
static RESTORE: Mutex<Option<Restore>> = Mutex::new(None);

struct Restore {
    mode: Termios,
    input: File,
    output: File,
}

/// Opens the terminal for reading keys, with its own file position and flags; `None` if there is no terminal.
pub(super) fn input() -> Option<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY);
    let file = options.open("/dev/tty").ok()?;
    tcgetattr(&file).ok()?;
    Some(file)
}

/// A terminal that is drawn on.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Output>>>,
    input: File,
    output: File,
}

impl Screen {
    /// Takes over a terminal.
    pub(super) fn enter(input: File, output: File) -> Result<Self> {
        restore_before_panic_messages();
        take_over(&input, &output)?;
        match on(&output) {
            Ok(terminal) => Ok(Self {
                terminal,
                input,
                output,
            }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// The terminal, to read keys from.
    pub(super) fn input(&self) -> &File {
        &self.input
    }

    /// Whether the terminal was closed.
    pub(super) fn is_gone(&self) -> bool {
        tcgetattr(&self.input).is_err()
    }

    /// Draws a frame; writes only the changes.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<()> {
        self.terminal
            .draw(draw)
            .context("cannot draw on the terminal")?;
        Ok(())
    }

    /// Adapts to the size of the terminal; the next frame is written completely.
    pub(super) fn resize(&mut self) -> Result<()> {
        let cleared = (&self.output).write_all(CLEAR);
        cleared.context("cannot clear the terminal")?;
        self.terminal = on(&self.output)?;
        Ok(())
    }

    /// Gives the terminal back, and stops until SIGCONT.
    ///
    /// Uses SIGSTOP, because SIGTSTP does not stop a process of an orphaned process group.
    pub(super) fn suspend(&mut self) -> Result<()> {
        restore();
        raise(Signal::SIGSTOP).context("cannot suspend")?;
        self.resume()
    }

    /// Takes over the terminal again. Another program may have used it meanwhile.
    pub(super) fn resume(&mut self) -> Result<()> {
        restore();
        take_over(&self.input, &self.output)?;
        self.resize()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the cursor stayed hidden, ratatui would show it after the terminal has been restored.
        let _ = self.terminal.show_cursor();
        restore();
    }
}

/// Output to a terminal. Once the terminal is gone, output is discarded without an error; reading keys reports that the
/// terminal is gone.
///
/// An error would make ratatui print a message when its terminal is dropped, and printing without a terminal panics.
struct Output(File);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prepares drawing on an empty screen.
fn on(output: &File) -> Result<Terminal<CrosstermBackend<BufWriter<Output>>>> {
    let writer = output.try_clone().context("cannot copy the terminal")?;
    let backend = CrosstermBackend::new(BufWriter::new(Output(writer)));
    // Not crossterm's view of the full screen: for its size, crossterm may ask other terminals or programs.
    let viewport = Viewport::Fixed(size(output));
    let options = TerminalOptions { viewport };
    Terminal::with_options(backend, options).context("cannot draw on the terminal")
}

/// Returns the size of a terminal.
fn size(output: &File) -> Rect {
    let size = terminal_size::terminal_size_of(output).map(|(width, height)| (width.0, height.0));
    let known = size.filter(|(width, height)| *width > 0 && *height > 0);
    let (width, height) = known.unwrap_or(UNKNOWN);
    Rect::new(0, 0, width, height)
}

fn take_over(input: &File, output: &File) -> Result<()> {
    let mode = tcgetattr(input).context("cannot read the mode of the terminal")?;
    let mut raw = mode.clone();
    cfmakeraw(&mut raw);
    let how_to_restore = Restore {
        mode,
        input: input.try_clone().context("cannot copy the terminal")?,
        output: output.try_clone().context("cannot copy the terminal")?,
    };
    *lock() = Some(how_to_restore);
    let entered = tcsetattr(input.as_fd(), SetArg::TCSANOW, &raw).map_err(io::Error::from);
    let entered = entered.and_then(|()| (&*output).write_all(ENTER));
    if entered.is_err() {
        restore();
    }
    entered.context("cannot take over the terminal")
}

/// Restores the terminal, if it is taken over. Errors are ignored: the terminal is gone then.
fn restore() {
    if let Some(saved) = lock().take() {
        let _ = (&saved.output).write_all(LEAVE);
        let _ = tcsetattr(saved.input.as_fd(), SetArg::TCSANOW, &saved.mode);
    }
}

fn lock() -> MutexGuard<'static, Option<Restore>> {
    RESTORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the terminal before the message of a panic, which would vanish with the alternate screen.
fn restore_before_panic_messages() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::panic::AssertUnwindSafe;

    use nix::pty::openpty;
    use nix::sys::termios::LocalFlags;

    /// Reads from a terminal until `text` arrives.
    fn read_until(master: &mut File, text: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        let mut part = [0; 256];
        while !all.windows(text.len()).any(|w| w == text) {
            let read = master.read(&mut part).unwrap();
            all.extend_from_slice(&part[..read]);
        }
        all
    }

    #[test]
    fn the_terminal_is_restored_even_after_a_panic() {
        let pty = openpty(None, None).unwrap();
        let (mut master, slave) = (File::from(pty.master), File::from(pty.slave));
        let copy = || slave.try_clone().unwrap();
        let before = tcgetattr(&slave).unwrap();
        let is_raw = || {
            !tcgetattr(&slave)
                .unwrap()
                .local_flags
                .contains(LocalFlags::ICANON)
        };

        let mut screen = Screen::enter(copy(), copy()).unwrap();
        assert!(is_raw());
        screen
            .draw(|frame| frame.render_widget("drawn", frame.area()))
            .unwrap();
        let shown = read_until(&mut master, b"drawn");
        assert!(shown.starts_with(ENTER));
        // The terminal is not queried: `ESC [ 6 n` asks for the cursor position, `ESC [ c` for the kind.
        assert!(!shown.windows(4).any(|w| w == b"\x1b[6n") && !shown.ends_with(b"\x1b[c"));
        screen.resume().unwrap();
        assert!(is_raw());
        drop(screen);
        assert_eq!(tcgetattr(&slave).unwrap(), before);
        read_until(&mut master, LEAVE);

        let caught = panic::catch_unwind(AssertUnwindSafe(|| {
            let screen = Screen::enter(copy(), copy()).unwrap();
            assert!(is_raw());
            // The message is printed before the screen is dropped, as if a callee had panicked.
            let _kept = screen;
            panic!("on purpose");
        }));
        assert!(caught.is_err());
        assert_eq!(tcgetattr(&slave).unwrap(), before);
        read_until(&mut master, LEAVE);
    }
}
