// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Draws a path and the activity around it as a trace for Perfetto.
//!
//! ```text
//! Critical path of a/7 | runs | waits for b/8                         | runs
//!                             | b/8 runs | b/8 waits for a timer | ...|
//! CPUs      CPU 0      | a/7  | b/8      |                       |b/8 | a/7
//!           CPU 1      ...
//! Threads   a/7        | runs | waits for b/8                   |woken| runs
//!           b/8        ...                                      ^ an arrow from here to the wakeup of a/7
//! ```
//!
//! A picture of delays also has a track with the states of the thread.
//!
//! Slices are labelled with the words of the text output, and clipped to the drawn time. Threads are drawn if they are
//! on a path or did anything but sleep.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use lt_common::out;
use lt_model::why::{Piece, Wait, waits};
use lt_model::{Class, Interval, Model, ThreadId, Use, Waker};

use super::show::Shown;
use super::words::{Facts, name_at, used_by, waits_for};
use crate::perfetto::{Arrow, Details, Track, Value, Writer};

/// Number of slices between two polls of the interrupt flag.
const OFTEN: u32 = 1 << 12;

/// A picture to draw.
pub(crate) struct Picture<'a> {
    pub(crate) model: &'a Model,
    pub(crate) facts: &'a Facts,
    /// Start and end of the drawn time.
    pub(crate) range: (u64, u64),
    pub(crate) alerts: Vec<Alarm>,
    pub(crate) states: Vec<States>,
    pub(crate) paths: Vec<Way<'a>>,
}

/// An alert to draw.
pub(crate) struct Alarm {
    pub(crate) name: String,
    pub(crate) range: (u64, u64),
    pub(crate) values: Vec<(&'static str, Value)>,
}

/// The states of a thread to draw.
pub(crate) struct States {
    pub(crate) title: String,
    /// Start, end and text of each stay in a state, in time order.
    pub(crate) stays: Vec<(u64, u64, String)>,
}

/// A path to draw.
pub(crate) struct Way<'a> {
    pub(crate) thread: ThreadId,
    pub(crate) range: (u64, u64),
    pub(crate) pieces: &'a [Piece],
    /// The number of the alert that it explains.
    pub(crate) alert: Option<usize>,
}

impl Picture<'_> {
    /// Writes the picture, replacing `file`.
    pub(crate) fn write(&self, file: &Path, interrupted: &AtomicBool) -> Result<()> {
        out::file::replace(file, |out| self.draw(out, interrupted))
    }

    fn draw(&self, out: &mut dyn Write, interrupted: &AtomicBool) -> Result<()> {
        let mut drawing = Drawing {
            writer: Writer::new(out),
            interrupted,
            drawn: 0,
            arrows: HashMap::new(),
        };
        let waits: Vec<Vec<Wait>> = self
            .paths
            .iter()
            .map(|way| waits(self.model, way.thread, way.range.0, way.range.1))
            .collect();

        let mut tops = Vec::new();
        for alarm in &self.alerts {
            let track = drawing.writer.track(&alarm.name, None)?;
            let details = Details {
                values: alarm.values.clone(),
                ..Details::default()
            };
            drawing.slice(track, alarm.range, &alarm.name, details)?;
            tops.push(track);
        }
        for states in &self.states {
            let track = drawing.writer.track(&states.title, None)?;
            for (begin, end, text) in &states.stays {
                drawing.slice(track, (*begin, *end), text, Details::default())?;
            }
        }
        for (way, waits) in self.paths.iter().zip(&waits) {
            let title = format!("Critical path of {}", self.name(way.thread));
            let top = way.alert.and_then(|alert| tops.get(alert)).copied();
            let track = drawing.writer.track(&title, top)?;
            self.path(&mut drawing, track, way, waits)?;
        }

        let cpus = self.tracks_of_processors(&mut drawing)?;
        let threads = self.tracks_of_threads(&mut drawing, &waits)?;
        let found = threads.iter().copied().collect();
        for wait in waits.iter().flatten() {
            self.waking(&mut drawing, wait, &cpus, &found)?;
        }
        for (cpu, track) in &cpus {
            self.processor(&mut drawing, *track, *cpu)?;
        }
        for (id, track) in &threads {
            self.thread(&mut drawing, *track, *id)?;
        }
        drawing.writer.finish()?;
        Ok(())
    }

    /// Draws the path on one track; the pieces that explain a wait lie below that wait.
    fn path(
        &self,
        drawing: &mut Drawing<'_>,
        track: Track,
        way: &Way<'_>,
        waits: &[Wait],
    ) -> Result<()> {
        let shown = self.shown(way);
        let mut waits = waits.iter().filter(|wait| wait.by.is_some()).peekable();
        let mut open: Vec<u64> = Vec::new();
        for piece in way.pieces {
            while let Some(end) = open.pop_if(|end| *end <= piece.begin) {
                drawing.writer.end(track, end)?;
            }
            while let Some(wait) = waits.next_if(|wait| wait.begin <= piece.begin) {
                let text = format!(
                    "{} {}",
                    self.name(wait.thread),
                    waits_for(self.model, wait.kind, wait.by, self.range.1)
                );
                let details = Details::default();
                drawing.writer.begin(track, wait.begin, &text, details)?;
                open.push(wait.end);
            }
            let who = self.name(piece.thread);
            let text = format!("{who} {}", shown.what(piece.cause));
            let mut details = on(piece.cpu);
            if piece.cause.is_runnable() {
                details
                    .values
                    .push(("meanwhile", Value::Text(shown.step(piece))));
            }
            drawing.slice(track, (piece.begin, piece.end), &text, details)?;
        }
        while let Some(end) = open.pop() {
            drawing.writer.end(track, end)?;
        }
        Ok(())
    }

    /// A thread, with its name at the end of the drawn time.
    fn name(&self, id: ThreadId) -> String {
        name_at(self.model, id, self.range.1)
    }

    fn shown<'a>(&'a self, way: &Way<'a>) -> Shown<'a> {
        Shown {
            model: self.model,
            thread: way.thread,
            range: way.range,
            pieces: way.pieces,
            facts: self.facts,
        }
    }

    /// Creates a track for each CPU with recorded activity in the range.
    fn tracks_of_processors(&self, drawing: &mut Drawing<'_>) -> Result<Vec<(usize, Track)>> {
        let (from, to) = self.range;
        let all = drawing.writer.track("CPUs", None)?;
        let mut tracks = Vec::new();
        for (cpu, processor) in self.model.processors.iter().enumerate() {
            if processor.between(from, to).next().is_some() {
                let track = drawing.writer.track(&format!("CPU {cpu}"), Some(all))?;
                tracks.push((cpu, track));
            }
        }
        Ok(tracks)
    }

    /// Creates tracks for the threads of the paths, in path order, and then for the other threads that were awake.
    fn tracks_of_threads(
        &self,
        drawing: &mut Drawing<'_>,
        waits: &[Vec<Wait>],
    ) -> Result<Vec<(ThreadId, Track)>> {
        let (from, to) = self.range;
        let mut order = Vec::new();
        for (way, waits) in self.paths.iter().zip(waits) {
            order.push(way.thread);
            order.extend(way.pieces.iter().map(|piece| piece.thread));
            let by = |wait: &Wait| self.model.waker(wait.waker?)?.by();
            order.extend(waits.iter().filter_map(by));
        }
        let awake = |i: &Interval| !matches!(i.state.class(), Class::Blocked | Class::Unknown);
        let all = (0..).map(ThreadId).zip(&self.model.threads);
        order.extend(
            all.filter(|(_, thread)| thread.between(from, to).any(|i| awake(&i)))
                .map(|(id, _)| id),
        );
        let mut seen = HashSet::new();
        order.retain(|id| seen.insert(*id));
        let all = drawing.writer.track("Threads", None)?;
        let mut tracks = Vec::new();
        for id in order {
            let track = drawing.writer.track(&self.name(id), Some(all))?;
            tracks.push((id, track));
        }
        Ok(tracks)
    }

    /// Draws the start of an arrow, at the waker or creator of a thread. [`Self::thread`] draws its end.
    fn waking(
        &self,
        drawing: &mut Drawing<'_>,
        wait: &Wait,
        cpus: &[(usize, Track)],
        threads: &HashMap<ThreadId, Track>,
    ) -> Result<()> {
        let (from, to) = self.range;
        let waker: Option<Waker> = wait.waker.and_then(|id| self.model.waker(id));
        let next = self.model.thread(wait.thread);
        let next = next.and_then(|t| t.between(wait.end, wait.end.saturating_add(1)).next());
        let (Some(waker), Some(next)) = (waker, next) else {
            return Ok(());
        };
        // The wait extends beyond the requested time, or one end of the arrow is not drawn.
        if next.begin != wait.end || waker.time < from || wait.end >= to {
            return Ok(());
        }
        let track = match waker.by() {
            Some(by) => threads.get(&by).copied(),
            None => {
                let on = cpus.iter().find(|(cpu, _)| *cpu == waker.cpu as usize);
                on.map(|(_, t)| *t)
            }
        };
        let key = (wait.thread, wait.end);
        if let (Some(track), false) = (track, drawing.arrows.contains_key(&key)) {
            let arrow = drawing.writer.arrow();
            drawing.arrows.insert(key, arrow);
            let text = format!("wakes {}", self.name(wait.thread));
            let details = Details {
                from: Some(arrow),
                ..on(Some(waker.cpu))
            };
            drawing.writer.instant(track, waker.time, &text, details)?;
        }
        Ok(())
    }

    fn processor(&self, drawing: &mut Drawing<'_>, track: Track, cpu: usize) -> Result<()> {
        let (from, to) = self.range;
        let processor = self.model.processors.get(cpu);
        for stretch in processor.into_iter().flat_map(|p| p.between(from, to)) {
            if stretch.used == Use::Idle {
                continue;
            }
            let range = (stretch.begin.max(from), stretch.end.min(to));
            let text = used_by(self.model, stretch.used, self.range.1);
            drawing.slice(track, range, &text, Details::default())?;
        }
        Ok(())
    }

    fn thread(&self, drawing: &mut Drawing<'_>, track: Track, id: ThreadId) -> Result<()> {
        let (from, to) = self.range;
        let shown = Shown {
            model: self.model,
            thread: id,
            range: self.range,
            pieces: &[],
            facts: self.facts,
        };
        let thread = self.model.thread(id);
        for interval in thread.into_iter().flat_map(|t| t.between(from, to)) {
            let range = (interval.begin.max(from), interval.end.min(to));
            let text = shown.state(&interval);
            let details = Details {
                to: drawing.arrows.get(&(id, interval.begin)).copied(),
                ..on(interval.cpu)
            };
            drawing.slice(track, range, &text, details)?;
        }
        Ok(())
    }
}

/// The details of an event on this CPU, if the CPU is known.
fn on(cpu: Option<u32>) -> Details {
    let value = |cpu| ("cpu", Value::Number(u64::from(cpu)));
    Details {
        values: cpu.map(value).into_iter().collect(),
        ..Details::default()
    }
}

/// A drawing in progress.
struct Drawing<'a> {
    writer: Writer<&'a mut dyn Write>,
    interrupted: &'a AtomicBool,
    drawn: u32,
    /// Arrows, by the thread woken and the time.
    arrows: HashMap<(ThreadId, u64), Arrow>,
}

impl Drawing<'_> {
    fn slice(
        &mut self,
        track: Track,
        range: (u64, u64),
        text: &str,
        details: Details,
    ) -> Result<()> {
        self.drawn = self.drawn.wrapping_add(1);
        if self.drawn.is_multiple_of(OFTEN) && self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        self.writer.begin(track, range.0, text, details)?;
        self.writer.end(track, range.1)?;
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod pftrace;
#[cfg(test)]
pub(super) mod tests;
