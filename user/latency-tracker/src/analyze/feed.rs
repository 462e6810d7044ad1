// SPDX-License-Identifier: GPL-2.0 OR MIT

//! From the events of a trace to those of the model.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use lt_ctf::{Item, Options, Progress, Reader};
use lt_model::{Builder, Event, Model, Release, What};

use super::args::When;
use super::kinds::{Kind, kind};
use crate::out::{self, note};

/// How often the clock, and whether somebody wants us to end, are looked at, in events.
const OFTEN: u64 = 1 << 16;

/// What a trace told.
pub(crate) struct Told {
    pub(crate) model: Model,
    events: u64,
    lost: u64,
    /// The first thing that could not be read.
    fault: Option<lt_ctf::Error>,
    took: Duration,
}

impl Told {
    /// Says what may make the result wrong.
    pub(crate) fn complain(&self) {
        if self.lost > 0 {
            note(&format!(
                "the tracer lost {} events; what they told is not known: record with larger buffers",
                out::thousands(self.lost)
            ));
        }
        if let Some(fault) = &self.fault {
            note(&format!("a part of the trace cannot be read: {fault}"));
        }
    }

    pub(crate) fn say_how_fast(&self) {
        let rate = self.events as f64 / self.took.as_secs_f64().max(1e-9);
        note(&format!(
            "{} events in {:.2} s, {} a second",
            out::thousands(self.events),
            self.took.as_secs_f64(),
            out::thousands(rate as u64)
        ));
    }
}

/// Reads a trace to its end, or until `interrupted`. What ended before `from` is forgotten.
pub(crate) fn read(trace: &Path, from: Option<When>, interrupted: &AtomicBool) -> Result<Told> {
    let begin = Instant::now();
    let mut line = Line::default();
    let mut progress = |progress: Progress| {
        let percent = 100 * progress.done / progress.of.max(1);
        line.show(&format!("converting the trace: {percent} %"));
    };
    let opened = Options::default()
        .progress(&mut progress)
        .cancel(interrupted)
        .open(trace);
    line.clear();
    let mut reader = opened?;
    let kinds: Vec<Option<Kind>> = reader.classes().map(kind).collect();
    let releases = releases(&reader);
    let frequencies: Vec<u64> = frequencies(&reader);
    let mut builder = Builder::new();
    let mut told = Told {
        model: Model::default(),
        events: 0,
        lost: 0,
        fault: None,
        took: Duration::ZERO,
    };
    let (mut looked, mut fed, mut switches) = (0, 0u64, false);
    loop {
        looked += 1;
        if looked % OFTEN == 0 {
            if interrupted.load(Ordering::Relaxed) {
                line.clear();
                bail!("interrupted");
            }
            if begin.elapsed() > Duration::from_secs(1) {
                line.show(&format!("reading: {} events", out::thousands(told.events)));
            }
        }
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Event(event))) => {
                told.events += 1;
                let Some(kind) = kinds.get(event.class_index()).and_then(Option::as_ref) else {
                    continue;
                };
                let release = releases.get(event.trace()).copied().unwrap_or(NEW);
                let frequency = frequencies.get(event.trace()).copied().unwrap_or(SECOND);
                if let Some(what) = kind.what(&event, release) {
                    let time = nanoseconds(event.cycles(), frequency);
                    if let (Some(from), 0) = (from, fed) {
                        builder.forget_before(from.since(time));
                    }
                    fed += 1;
                    switches |= matches!(what, What::Switch { .. });
                    builder.feed(&Event {
                        time,
                        cpu: event.cpu().unwrap_or(0),
                        what,
                    });
                }
            }
            Ok(Some(Item::Lost(lost))) => {
                told.lost += if lost.packets { 0 } else { lost.count };
                // Streams of other traces, of programs, have no part in this.
                if let Some(cpu) = lost.cpu.filter(|_| releases.len() == 1) {
                    let since = nanoseconds(
                        lost.cycles.0,
                        frequencies.first().copied().unwrap_or(SECOND),
                    );
                    builder.feed(&Event {
                        time: since,
                        cpu,
                        what: What::Lost { since },
                    });
                }
            }
            // What cannot be read is not worth losing the rest.
            Err(fault) if told.fault.is_none() => told.fault = Some(fault),
            Err(_) => {}
        }
    }
    line.clear();
    if !switches {
        if let Some(fault) = told.fault {
            return Err(fault.into());
        }
        bail!(
            "{}: no event sched_switch in this trace, which tells who runs",
            trace.display()
        );
    }
    told.model = builder.finish();
    told.took = begin.elapsed();
    Ok(told)
}

const SECOND: u64 = 1_000_000_000;
/// What is taken for granted of a trace that does not say which kernel it is of.
const NEW: Release = Release(6, 0);

fn releases(reader: &Reader) -> Vec<Release> {
    let release = |t: &lt_ctf::Trace| {
        t.schema
            .environment("kernel_release")
            .and_then(Release::parse)
    };
    reader
        .traces()
        .iter()
        .map(|t| release(t).unwrap_or(NEW))
        .collect()
}

fn frequencies(reader: &Reader) -> Vec<u64> {
    let frequency = |t: &lt_ctf::Trace| t.schema.clocks().first().map_or(SECOND, |c| c.frequency);
    reader.traces().iter().map(frequency).collect()
}

fn nanoseconds(cycles: u64, frequency: u64) -> u64 {
    if frequency == SECOND {
        return cycles;
    }
    let ns = u128::from(cycles) * u128::from(SECOND) / u128::from(frequency.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A line on a terminal that tells how far we are.
#[derive(Default)]
struct Line {
    shown: bool,
}

impl Line {
    fn show(&mut self, text: &str) {
        if std::io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(std::io::stderr(), "\r\x1b[K  {text}");
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
