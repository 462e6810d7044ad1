// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The action of each key. These keys are as in htop: h, ? and F1 (help), F4 (filter), <, > and F6 (sort), I (reverse),
//! q and F10 (quit). t and F5, which show processes as a tree in htop, group alerts.

use std::time::Duration;

use lt_common::seconds::seconds;
use lt_proc::Nanos;

use super::columns::COLUMNS;
use super::input::Key;
use super::state::{Graph, Prompt, State};
use crate::cli::By;

/// The keys, for the help.
pub(super) const HELP: [(&str, &str); 14] = [
    ("q F10 Esc ^C", "quit"),
    (
        "Up Down j k",
        "select an instance; also PgUp, PgDn, Home, End",
    ),
    ("Enter", "its histogram and counters, instead of the lists"),
    ("< > F6", "sort by the column to the left, to the right"),
    ("r I", "reverse the order"),
    ("/ F4", "show only names and trackers with this text"),
    ("g", "graph of P99, or of the rate"),
    (
        "t F5",
        "late operations by task, by subject, by stack, or single alerts",
    ),
    (
        "w",
        "newest alerts first, or longest; groups by total, or longest",
    ),
    ("p Space", "pause"),
    ("+ -", "longer or shorter interval"),
    ("d", "enter an interval: 500ms, 2"),
    ("^Z", "suspend; ^L draws the screen again"),
    ("h ? F1", "this help"),
];

/// The keys, for the last line of the screen.
pub(super) const FOOTER: [(&str, &str); 8] = [
    ("h", "Help"),
    ("/", "Filter"),
    ("<>", "Sort"),
    ("t", "Group"),
    ("Enter", "Details"),
    ("p", "Pause"),
    ("+-", "Interval"),
    ("q", "Quit"),
];

/// Intervals of + and -, ms.
const STEPS: [u64; 10] = [
    100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000,
];

/// The shortest interval that can be entered.
const SHORTEST: Duration = Duration::from_millis(10);

/// Number of rows of a page.
const PAGE: usize = 10;

/// The caller's next action after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Todo {
    Draw,
    /// Clear the screen, and draw.
    Clear,
    /// The interval has changed, or a pause has begun or ended.
    Reschedule,
    Suspend,
    Quit,
}

impl State {
    /// Handles a key.
    pub(super) fn press(&mut self, key: Key) -> Todo {
        self.note = None;
        match key {
            Key::Ctrl('c') => return Todo::Quit,
            Key::Ctrl('z') => return Todo::Suspend,
            Key::Ctrl('l') => return Todo::Clear,
            Key::F(10) => return Todo::Quit,
            _ => {}
        }
        if let Some(prompt) = self.prompt.take() {
            return self.edit(prompt, key);
        }
        if self.shows_help {
            self.shows_help = false;
            return match key {
                Key::Char('q') => Todo::Quit,
                _ => Todo::Draw,
            };
        }
        let place = self.selection().map_or(0, |(place, _)| place);
        match key {
            Key::Char('q') | Key::Esc => return Todo::Quit,
            Key::Char('h' | '?') | Key::F(1) => self.shows_help = true,
            Key::Up | Key::Char('k') => self.select(place.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.select(place + 1),
            Key::PageUp => self.select(place.saturating_sub(PAGE)),
            Key::PageDown => self.select(place + PAGE),
            Key::Home => self.select(0),
            Key::End => self.select(usize::MAX),
            Key::Enter => self.shows_details = !self.shows_details,
            Key::Char('<' | ',') | Key::Left => self.sort_beside(COLUMNS.len() - 1),
            Key::Char('>' | '.') | Key::Right | Key::F(6) => self.sort_beside(1),
            Key::Char('r' | 'I') => self.is_reversed = !self.is_reversed,
            Key::Char('/') | Key::F(3 | 4) => {
                self.prompt = Some(Prompt::Filter(self.filter.clone()));
            }
            Key::Char('g') => {
                self.graph = match self.graph {
                    Graph::P99 => Graph::Rate,
                    Graph::Rate => Graph::P99,
                };
            }
            Key::Char('t') | Key::F(5) => {
                self.by = match self.by {
                    None => Some(By::Task),
                    Some(By::Task) => Some(By::Subject),
                    Some(By::Subject) => Some(By::Stack),
                    Some(By::Stack) => None,
                };
            }
            Key::Char('w') => self.longest_first = !self.longest_first,
            Key::Char('p' | ' ') => {
                self.is_paused = !self.is_paused;
                return Todo::Reschedule;
            }
            Key::Char('+' | '=') => return self.step(|step, now| step > now),
            Key::Char('-') => return self.step(|step, now| step < now),
            Key::Char('d' | 's') => self.prompt = Some(Prompt::Interval(String::new())),
            _ => {}
        }
        Todo::Draw
    }

    /// Sorts by the column `n` places to the right, wrapping around to the left end.
    fn sort_beside(&mut self, n: usize) {
        let at = COLUMNS
            .iter()
            .position(|column| *column == self.sort)
            .unwrap_or(0);
        self.sort = COLUMNS[(at + n) % COLUMNS.len()];
    }

    /// Changes the interval to the nearest step for which `suits` returns true.
    fn step(&mut self, suits: fn(Duration, Duration) -> bool) -> Todo {
        let steps = STEPS.map(Duration::from_millis);
        let candidates = steps.iter().filter(|step| suits(**step, self.interval));
        let nearest = candidates.min_by_key(|step| step.abs_diff(self.interval));
        self.interval = nearest.copied().unwrap_or(self.interval);
        Todo::Reschedule
    }

    /// Handles a key while something is typed. A filter takes effect at once; Esc restores the
    /// previous one.
    fn edit(&mut self, prompt: Prompt, key: Key) -> Todo {
        let (Prompt::Filter(before) | Prompt::Interval(before)) = &prompt;
        let mut text = match &prompt {
            Prompt::Filter(_) => self.filter.clone(),
            Prompt::Interval(_) => before.clone(),
        };
        match key {
            Key::Char(c) => text.push(c),
            Key::Backspace => {
                text.pop();
            }
            Key::Ctrl('u') => text.clear(),
            Key::Esc => {
                if let Prompt::Filter(before) = prompt {
                    self.filter = before;
                    self.keep_selection();
                }
                return Todo::Draw;
            }
            Key::Enter => {
                return match prompt {
                    Prompt::Filter(_) => Todo::Draw,
                    Prompt::Interval(_) => self.set_interval(&text),
                };
            }
            _ => {}
        }
        self.prompt = Some(match prompt {
            Prompt::Filter(before) => {
                self.filter = text;
                self.keep_selection();
                Prompt::Filter(before)
            }
            Prompt::Interval(_) => Prompt::Interval(text),
        });
        Todo::Draw
    }

    fn set_interval(&mut self, text: &str) -> Todo {
        match seconds(text.trim()).map(Duration::from) {
            Ok(interval) if interval >= SHORTEST => {
                self.interval = interval;
                Todo::Reschedule
            }
            Ok(_) => {
                let least = Nanos(SHORTEST.as_nanos() as u64).exact();
                self.note = Some(format!("interval {text}: expected at least {least}"));
                Todo::Draw
            }
            Err(error) => {
                self.note = Some(format!("interval {text:?}: {error}"));
                Todo::Draw
            }
        }
    }
}
