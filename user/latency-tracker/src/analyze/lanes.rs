// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The lanes of a page (`--html`): the result of an analysis, and the activity of threads and CPUs around it.
//!
//! ```text
//! Critical path        late/7       | runs | waits for hog/8                         | runs
//!                      waited for          | hog/8 runs | hog/8 waits for a timer |..|
//! Threads of the path  late/7       | runs | waits for hog/8              |woken|      runs
//!                      hog/8        ...                                   ^ an arrow: the wakeup
//! CPUs                 CPU 0        | late/7 | hog/8 |   | hog/8 | late/7
//! Other threads        ...
//! ```
//!
//! Bars use the wording of the text output. Unrecorded time has a bar, too. Items beyond a limit are left out, with
//! a note in the view.

mod around;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use lt_common::out;
use lt_model::why::{Cause, Wait};
use lt_model::{Interval, Model, ThreadId, Use};
use lt_proc::Nanos;

use super::show::Shown;
use super::words::{Facts, name_at, used_by};
use crate::html::merge::{Bars, Drawn, Source, least, merged};
use crate::html::{Bar, Group, Kind, Lane, View, Words};

use self::around::Places;

/// Maximum number of bars on a page, and the number that each view may have even if the page then has more.
const BARS: usize = 60_000;
const FEW: usize = 2000;
/// Maximum number of bars in a picture (`--svg`), which has no zoom, and the number that every view may have regardless.
const PICTURE: (usize, usize) = (4000, 400);

/// Maximum number of bars of each view on a page with `views` views.
pub(crate) fn bars_of_each(views: usize) -> usize {
    (BARS / views.max(1)).max(FEW)
}

/// Maximum number of bars of each view in a picture with `views` views.
pub(crate) fn bars_in_picture(views: usize) -> usize {
    let (all, few) = PICTURE;
    (all / views.max(1)).max(few)
}

/// A scene to draw.
pub(crate) struct Scene<'a> {
    pub(crate) model: &'a Model,
    pub(crate) facts: &'a Facts,
    /// Start and end of the drawn time.
    pub(crate) range: (u64, u64),
    pub(crate) upper: Option<Upper<'a>>,
    /// The threads of the path, in the order of their lanes; duplicates do not matter.
    pub(crate) threads: Vec<ThreadId>,
    /// The CPUs of the path.
    pub(crate) cpus: Vec<u32>,
    /// The waits of the path.
    pub(crate) waits: &'a [Wait],
    /// Maximum number of bars.
    pub(crate) most: usize,
    /// Set by a signal.
    pub(crate) interrupted: &'a AtomicBool,
}

/// The result of the analysis, above all other lanes.
pub(crate) struct Upper<'a> {
    pub(crate) name: &'static str,
    pub(crate) rows: Vec<UpperRow>,
    /// The contents of a bar, by its number.
    pub(crate) describe: &'a dyn Fn(usize) -> Described,
}

/// A name; and the start, end and number of each bar.
pub(crate) struct UpperRow {
    pub(crate) name: String,
    pub(crate) bars: Vec<(u64, u64, usize)>,
}

/// The contents of a bar.
pub(crate) struct Described {
    pub(crate) kind: Kind,
    pub(crate) text: String,
    pub(crate) cpu: Option<u32>,
    pub(crate) more: Option<String>,
}

impl Described {
    fn new(kind: Kind, text: String) -> Self {
        Self {
            kind,
            text,
            cpu: None,
            more: None,
        }
    }
}

/// The contents of a bar, before they are described.
#[derive(Clone, Copy)]
enum What {
    Upper(usize),
    Interval(ThreadId, Interval),
    Use(Use),
    Absent(&'static str),
}

/// The kind of a cause's bar.
pub(crate) fn kind(cause: Cause) -> Kind {
    match cause {
        Cause::Running(_) => Kind::Running,
        Cause::Interrupted(_) => Kind::Interrupted,
        Cause::Preempted | Cause::Waiting | Cause::LeavesIdle | Cause::Limited(_) => Kind::Runnable,
        Cause::For(..) | Cause::Held(..) | Cause::Blocked(_) | Cause::Idle | Cause::Transit => {
            Kind::Blocked
        }
        Cause::Unknown(_) => Kind::Unknown,
    }
}

impl<'a> Scene<'a> {
    /// Adds the lanes and arrows to a view of the drawn time.
    pub(crate) fn draw(&self, view: &mut View) -> Result<()> {
        let (mine, others) = self.threads(&mut view.left_out);
        let cpus = self.processors(&mut view.left_out);
        let upper = self.upper.as_ref();
        let mut groups: Vec<(&'static str, Vec<Source<'_, What>>)> =
            vec![(upper.map_or("", |upper| upper.name), self.upper_lanes())];
        let mut places = Places::default();
        let mut next = groups.iter().map(|(_, lanes)| lanes.len()).sum();
        let mut place = |places: &mut HashMap<_, _>, id| {
            places.insert(id, next);
            next += 1;
        };
        mine.iter().for_each(|id| place(&mut places.threads, id.0));
        cpus.iter()
            .for_each(|cpu| place(&mut places.cpus, *cpu as u32));
        others
            .iter()
            .for_each(|id| place(&mut places.threads, id.0));
        let lanes = |ids: &[ThreadId]| ids.iter().map(|id| self.thread(*id)).collect();
        groups.push(("Threads of the path", lanes(&mine)));
        groups.push((
            "CPUs",
            cpus.iter().map(|cpu| self.processor(*cpu)).collect(),
        ));
        groups.push(("Other threads", lanes(&others)));
        groups.retain(|(_, lanes)| !lanes.is_empty());

        let (from, to) = self.range;
        let lanes: Vec<_> = groups.iter().flat_map(|(_, lanes)| lanes).collect();
        let least = least(&lanes, to - from, self.most, self.interrupted);
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        let set = self.threads.iter().copied().collect();
        let (mut many, mut of) = (0, 0);
        let mut draw = |source: &Source<'_, What>| Lane {
            name: source.name.clone(),
            bars: merged((source.bars)(), least)
                .map(|bar| {
                    if let Drawn::Many(_, _, count) = bar {
                        many += 1;
                        of += count;
                    }
                    self.bar(bar, least, &set, &mut view.words)
                })
                .collect(),
        };
        view.groups = groups
            .iter()
            .map(|(name, lanes)| Group {
                name,
                lanes: lanes.iter().map(&mut draw).collect(),
            })
            .collect();
        if many > 0 {
            view.left_out.push(format!(
                "{} states shorter than {} are drawn together, as {} hatched bars.",
                out::thousands(of),
                Nanos(least),
                out::thousands(many)
            ));
        }
        self.arrows(&places, view);
        Ok(())
    }

    fn upper_lanes(&self) -> Vec<Source<'_, What>> {
        let rows = self.upper.iter().flat_map(|upper| &upper.rows);
        rows.map(|row| Source {
            name: row.name.clone(),
            bars: Box::new(|| {
                let bars = row.bars.iter();
                self.clipped(bars.map(|(begin, end, i)| (*begin, *end, What::Upper(*i))))
            }),
        })
        .collect()
    }

    fn thread(&self, id: ThreadId) -> Source<'_, What> {
        Source {
            name: name_at(self.model, id, self.range.1),
            bars: Box::new(move || {
                let thread = self.model.thread(id);
                let all = thread.into_iter().flat_map(|t| {
                    let (from, to) = self.range;
                    t.between(from, to)
                });
                let all = all.map(move |i| (i.begin, i.end, What::Interval(id, i)));
                let (mut before, mut after) = (None, None);
                if let Some(thread) = thread
                    && let Some((begin, end)) = thread.span()
                {
                    // A thread that is not created yet, or has ended, has no bar.
                    before = (!thread.born).then(|| self.absent(0, begin)).flatten();
                    after = thread
                        .ended
                        .is_none()
                        .then(|| self.absent(end, u64::MAX))
                        .flatten();
                }
                self.clipped(before.into_iter().chain(all).chain(after))
            }),
        }
    }

    fn processor(&self, cpu: usize) -> Source<'_, What> {
        Source {
            name: format!("CPU {cpu}"),
            bars: Box::new(move || {
                let (from, to) = self.range;
                let processor = self.model.processors.get(cpu);
                let all = processor.into_iter().flat_map(move |p| p.between(from, to));
                let mut all = all.peekable();
                let begin = all.peek().map_or(to, |stretch| stretch.begin);
                let last = all.clone().last();
                let end = last.map_or(to, |stretch| stretch.end);
                let before = self.absent(0, begin);
                let after = self.absent(end, u64::MAX);
                let all = all.map(|s| (s.begin, s.end, What::Use(s.used)));
                self.clipped(before.into_iter().chain(all).chain(after))
            }),
        }
    }

    /// A bar for a time without events.
    fn absent(&self, begin: u64, end: u64) -> Option<(u64, u64, What)> {
        let (first, last) = self.model.span;
        let why = if end <= first {
            "not recorded: the trace starts later"
        } else if begin >= last {
            "not recorded: the trace ends earlier"
        } else {
            "not recorded: no event shows it"
        };
        (begin < end).then_some((begin, end, What::Absent(why)))
    }

    /// The parts of bars in the drawn time.
    fn clipped<'b>(&self, bars: impl Iterator<Item = (u64, u64, What)> + 'b) -> Bars<'b, What> {
        let (from, to) = self.range;
        let clip = move |(begin, end, what): (u64, u64, What)| {
            let (begin, end) = (begin.max(from), end.min(to));
            (begin < end).then_some((begin, end, what))
        };
        Box::new(bars.filter_map(clip))
    }

    fn bar(
        &self,
        bar: Drawn<What>,
        least: u64,
        mine: &HashSet<ThreadId>,
        words: &mut Words,
    ) -> Bar {
        let (begin, end, described) = match bar {
            Drawn::One(begin, end, what) => (begin, end, self.describe(what, mine)),
            Drawn::Many(begin, end, count) => {
                let text = format!(
                    "{} states shorter than {} each, drawn together",
                    out::thousands(count),
                    Nanos(least)
                );
                (begin, end, Described::new(Kind::Merged, text))
            }
        };
        Bar(
            begin - self.range.0,
            end - begin,
            described.kind,
            words.number(described.text),
            described.cpu,
            described.more.map(|text| words.number(text)),
        )
    }

    fn describe(&self, what: What, mine: &HashSet<ThreadId>) -> Described {
        match (what, &self.upper) {
            (What::Upper(i), Some(upper)) => (upper.describe)(i),
            (What::Upper(_), None) => Described::new(Kind::Unknown, String::new()),
            (What::Absent(why), _) => Described::new(Kind::Unknown, why.into()),
            (What::Interval(id, interval), _) => self.state(id, &interval),
            (What::Use(used), _) => {
                let kind = match used {
                    Use::Unknown => Kind::Unknown,
                    Use::Idle => Kind::Idle,
                    Use::Thread(id) if mine.contains(&id) => Kind::Running,
                    Use::Thread(_) => Kind::Other,
                    Use::Context(_) => Kind::Interrupted,
                };
                Described::new(kind, used_by(self.model, used, self.range.1))
            }
        }
    }

    fn state(&self, id: ThreadId, interval: &Interval) -> Described {
        let shown = Shown {
            model: self.model,
            thread: id,
            range: self.range,
            pieces: &[],
            facts: self.facts,
        };
        let cause = Cause::of(self.model, interval);
        Described {
            cpu: interval.cpu,
            ..Described::new(kind(cause), shown.state(interval))
        }
    }
}

#[cfg(test)]
mod tests;
