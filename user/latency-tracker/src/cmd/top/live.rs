// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The live view: waits for keys, signals and the clock, whichever comes first.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lt_common::Outcome;
use lt_common::wait::{Signals, Wake};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGCONT, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level::pipe};

use super::draw::draw;
use super::input::Decoder;
use super::keys::Todo;
use super::read::Reader;
use super::screen::Screen;
use super::state::State;
use super::{End, SLICE, end, next};
use crate::cli::TopArgs;

pub(super) fn run(
    reader: &mut Reader<'_>,
    args: &TopArgs,
    count: u64,
    input: File,
) -> Result<Outcome> {
    let signals = Signals::catch()?;
    let terminal = OfTerminal::catch()?;
    let mut state = State::new(args.interval.into(), args.sort);
    state.by = args.by;
    state.has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    state.is_unicode = is_unicode();
    // The first reading comes before the terminal is taken over, so that its errors are shown normally.
    state.clock = lt_common::clock::now();
    state.update(reader.read()?);
    let output = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .context("cannot copy the terminal")?;
    let screen = Screen::enter(input, File::from(output))?;
    let mut live = Live {
        reader,
        state,
        screen,
        keys: Decoder::default(),
        left: count.saturating_sub(1),
        next: Instant::now() + Duration::from(args.interval),
    };
    let ended = match live.run(&signals, &terminal) {
        Err(_) if live.screen.is_gone() => Ok(End::Wanted),
        ended => ended,
    };
    // Restores the terminal, before anything else is printed.
    drop(live);
    Ok(end(ended?))
}

struct Live<'a, 'r> {
    reader: &'a mut Reader<'r>,
    state: State,
    screen: Screen,
    keys: Decoder,
    /// Number of readings left. The last one is also shown for an interval.
    left: u64,
    /// The time of the next reading.
    next: Instant,
}

impl Live<'_, '_> {
    fn run(&mut self, signals: &Signals, terminal: &OfTerminal) -> Result<End> {
        self.draw()?;
        loop {
            let slice = Instant::now() + SLICE;
            let tick = (!self.state.is_paused).then_some(self.next);
            let until = [tick, self.keys.due()]
                .into_iter()
                .flatten()
                .fold(slice, Instant::min);
            match signals.wait([self.screen.input(), &terminal.pipe], Some(until))? {
                Wake::Signal => return Ok(End::Wanted),
                Wake::Ready => {}
                Wake::Timeout => {
                    let esc = self.keys.finish(Instant::now());
                    if let Some(end) = self.press(esc)? {
                        return Ok(end);
                    }
                }
            }
            self.obey(terminal)?;
            if let Some(end) = self.read_keys()? {
                return Ok(end);
            }
            if let Some(end) = self.tick()? {
                return Ok(end);
            }
        }
    }

    fn draw(&mut self) -> Result<()> {
        let state = &self.state;
        self.screen.draw(|frame| draw(state, frame))
    }

    /// Handles the signals that concern the terminal.
    fn obey(&mut self, terminal: &OfTerminal) -> Result<()> {
        let (mut pipe, mut bytes) = (&terminal.pipe, [0; 64]);
        let _ = pipe.read(&mut bytes);
        if terminal.stop.swap(false, Ordering::Relaxed) {
            self.suspend(terminal)?;
        }
        if terminal.resumed.swap(false, Ordering::Relaxed) {
            self.screen.resume()?;
            self.draw()?;
        }
        if terminal.resized.swap(false, Ordering::Relaxed) {
            self.screen.resize()?;
            self.draw()?;
        }
        Ok(())
    }

    fn suspend(&mut self, terminal: &OfTerminal) -> Result<()> {
        self.screen.suspend()?;
        terminal.resumed.store(false, Ordering::Relaxed);
        self.draw()
    }

    /// Handles the available keys.
    fn read_keys(&mut self) -> Result<Option<End>> {
        let mut polled = [PollFd::new(self.screen.input().as_fd(), PollFlags::POLLIN)];
        if poll(&mut polled, PollTimeout::ZERO).unwrap_or(0) == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 256];
        let (mut input, keys) = (self.screen.input(), &mut self.keys);
        let pressed = match input.read(&mut bytes) {
            Ok(n) if n > 0 => keys.add(&bytes[..n], Instant::now()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            // The terminal is gone.
            _ => return Ok(Some(End::Wanted)),
        };
        self.press(pressed)
    }

    /// Handles keys; returns why the run ends, if it does.
    fn press(&mut self, keys: impl IntoIterator<Item = super::input::Key>) -> Result<Option<End>> {
        let mut pressed = false;
        for key in keys {
            pressed = true;
            match self.state.press(key) {
                Todo::Draw => {}
                Todo::Quit => return Ok(Some(End::Wanted)),
                Todo::Clear => self.screen.resize()?,
                Todo::Reschedule => {
                    self.next = self.next.min(Instant::now() + self.state.interval);
                }
                Todo::Suspend => self.screen.suspend()?,
            }
        }
        if pressed {
            self.draw()?;
        }
        Ok(None)
    }

    /// Reads the instances if they are due, and the alerts in any case.
    fn tick(&mut self) -> Result<Option<End>> {
        let start = Instant::now();
        if self.state.is_paused || start < self.next {
            if !self.reader.is_loaded() {
                return Ok(Some(End::Removed));
            }
            self.reader.drain()?;
            return Ok(None);
        }
        if self.left == 0 {
            return Ok(Some(End::Wanted));
        }
        self.left -= 1;
        match self.reader.read() {
            Err(_) if !self.reader.is_loaded() => return Ok(Some(End::Removed)),
            reading => self.state.update(reading?),
        }
        self.state.clock = lt_common::clock::now();
        self.next = next(self.next, self.state.interval, start.elapsed());
        self.draw()?;
        Ok(None)
    }
}

/// Whether the locale's encoding is UTF-8, which has the bars of a graph.
fn is_unicode() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let language = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| set(name));
    language.is_some_and(|value| value.to_lowercase().replace('-', "").contains("utf8"))
}

/// The signals that concern the terminal.
struct OfTerminal {
    pipe: File,
    resized: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    resumed: Arc<AtomicBool>,
}

impl OfTerminal {
    fn catch() -> Result<Self> {
        let (reader, writer) = UnixStream::pair().context("cannot create sockets for signals")?;
        reader
            .set_nonblocking(true)
            .context("cannot prepare the socket for signals")?;
        let catch = |signal| -> Result<Arc<AtomicBool>> {
            let seen = Arc::new(AtomicBool::new(false));
            // The flag comes first: a byte in the pipe means that a flag is set.
            flag::register(signal, Arc::clone(&seen)).context("cannot catch signals")?;
            let writer = writer
                .try_clone()
                .context("cannot copy the socket for signals")?;
            pipe::register(signal, writer).context("cannot catch signals")?;
            Ok(seen)
        };
        Ok(Self {
            pipe: File::from(OwnedFd::from(reader)),
            resized: catch(SIGWINCH)?,
            stop: catch(SIGTSTP)?,
            resumed: catch(SIGCONT)?,
        })
    }
}
