// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads a trace in near-constant memory: keeps only the activity that a report needs.
//!
//! ```text
//! first pass     o-----------o-----------o---------->   o: a checkpoint, the state of all threads and CPUs
//! parts                                  [---kept---]   What the report needs of the last part shows what it needs of
//!                            [---kept---]               the part before.
//!                [---kept---]
//! last pass      [needed]-------[needed]---[needed]->
//! ```
//!
//! A part is found by the index of packets, and is not read if it is not needed. A part that is too large is divided
//! into smaller parts, in the same way. So the memory for parts and checkpoints hardly depends on the length of the
//! trace.
//!
//! The report is the same as with the whole model in memory. If a checkpoint has separated two events that belong
//! together, the report may need more than the last pass has kept. The last pass is then repeated, and also keeps what
//! was missing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use lt_model::why::Search;
use lt_model::{Builder, Model, Wanted};

use super::super::beside::Beside;
use super::super::told::Told;
use super::super::when::When;
use super::{Keep, Pass, Source};

/// Limits on the memory for parts and checkpoints.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// A part with more than twice this number of events is divided.
    events: u64,
    /// Maximum number of checkpoints of the trace, or of a part that is divided.
    checkpoints: usize,
    /// Maximum size of these checkpoints, bytes. Two are always kept.
    bytes: usize,
}

impl Limits {
    /// Limits for a trace with this number of streams. At the start of a part, each stream is decoded from the start of
    /// a packet, which has some ten thousand events. With many streams, small parts would therefore take much longer.
    fn of(streams: usize) -> Self {
        const EVENTS: u64 = 1 << 18;
        const OF_STREAM: u64 = 1 << 13;
        Self {
            events: EVENTS + OF_STREAM * streams as u64,
            checkpoints: 32,
            bytes: 32 << 20,
        }
    }
}

/// The largest sizes so far.
#[derive(Debug, Default, Clone, Copy)]
struct Most {
    /// Number of events of a part that was kept.
    events: u64,
    /// Number of checkpoints.
    checkpoints: usize,
    /// Number of times that the last pass was made.
    passes: u32,
}

/// A place at which reading can continue.
struct Checkpoint {
    /// The time of the next event, as [`lt_ctf::Event::nanoseconds`]. All earlier events have earlier times.
    at: i64,
    pass: Pass,
    bytes: usize,
}

impl Checkpoint {
    fn new(at: i64, pass: Pass) -> Self {
        let bytes = pass.builder.bytes();
        Self { at, pass, bytes }
    }
}

/// Where a part ends: at the next checkpoint, or at the end of the trace.
#[derive(Clone, Copy)]
struct End {
    /// The time of the first event after the part.
    at: Option<i64>,
    /// Number of events up to there.
    fed: u64,
}

impl End {
    /// Breaks at the first event after the part.
    fn check(self, event: &lt_ctf::Event<'_>) -> ControlFlow<()> {
        match self.at {
            Some(at) if at <= event.nanoseconds() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The checkpoints of a pass, in time order. If there are too many, every second is dropped.
struct Checkpoints {
    all: Vec<Checkpoint>,
    limits: Limits,
    /// Number of events between two checkpoints.
    every: u64,
    /// Number of events before the next checkpoint.
    next: u64,
}

impl Checkpoints {
    fn new(first: Checkpoint, limits: Limits) -> Self {
        let every = limits.events;
        Self {
            next: first.pass.fed + every,
            all: vec![first],
            limits,
            every,
        }
    }

    fn push(&mut self, checkpoint: Checkpoint) {
        let mut next = checkpoint.pass.fed;
        self.all.push(checkpoint);
        let bytes: usize = self.all.iter().map(|checkpoint| checkpoint.bytes).sum();
        let is_too_large = bytes > self.limits.bytes && self.all.len() > 2;
        if is_too_large || self.all.len() > self.limits.checkpoints {
            let mut is_kept = false;
            self.all.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.every *= 2;
            next = self.all.last().map_or(next, |last| last.pass.fed);
        }
        self.next = next + self.every;
    }
}

impl Pass {
    /// Returns a pass in the same state, except for names of disks.
    fn copy(&self) -> Self {
        Self {
            builder: self.builder.checkpoint(),
            gaps: self.gaps.clone(),
            fed: self.fed,
            found: self.found.clone(),
            disks: BTreeMap::new(),
        }
    }
}

/// Reads what a report needs of a trace. `search` returns the search for it, given a model without the activity of
/// threads: it has their numbers, their names, and when and by which thread each was created. The first pass also
/// passes the events to `beside`.
pub(crate) fn read_in_parts<B: Beside>(
    trace: &Path,
    from: Option<When>,
    interrupted: &AtomicBool,
    beside: &mut B,
    search: impl Fn(&Model, &B) -> Result<Search>,
) -> Result<Told> {
    let (told, _) = read(trace, from, interrupted, beside, search, Limits::of)?;
    Ok(told)
}

/// As [`read_in_parts`], with these limits for the number of streams.
fn read<B: Beside>(
    trace: &Path,
    from: Option<When>,
    interrupted: &AtomicBool,
    beside: &mut B,
    search: impl Fn(&Model, &B) -> Result<Search>,
    limits: impl Fn(usize) -> Limits,
) -> Result<(Told, Most)> {
    let source = Source::open(trace, from.map_or(Keep::All, Keep::Since))?;
    beside.begin(&source.reader);
    let first = Checkpoint::new(i64::MIN, source.start(only(Wanted::default())));
    let mut parts = Parts {
        limits: limits(source.reader.streams()),
        source,
        interrupted,
        most: Most::default(),
    };
    let end = End {
        at: None,
        fed: u64::MAX,
    };
    let (pass, checkpoints) =
        parts.checkpoints(first, end, 0, |time, event| beside.see(time, event))?;
    let end = End {
        at: None,
        fed: pass.fed,
    };
    let model = pass.builder.finish();
    if !parts.source.told.switches {
        let told = parts.source.end(model)?.with_threads(trace)?;
        return Ok((told, parts.most));
    }
    let mut found = search(&model, beside)?;
    drop(model);
    parts.search(checkpoints, end, 0, &mut found)?;
    let mut wanted = found.into_wanted();
    let model = loop {
        parts.most.passes += 1;
        parts.seek(i64::MIN);
        let builder = only(wanted.clone());
        let model = parts.source.pass(builder, interrupted, None)?.finish();
        let needed = search(&model, beside)?.all(&model);
        if wanted.has_all(&needed) {
            break model;
        }
        wanted.add_all(&needed);
    };
    Ok((parts.source.end(model)?, parts.most))
}

/// A builder that keeps only these parts.
fn only(wanted: Wanted) -> Builder {
    let mut builder = Builder::new();
    builder.keep_only(wanted);
    builder
}

/// A trace that is read in parts.
struct Parts<'a> {
    source: Source,
    limits: Limits,
    interrupted: &'a AtomicBool,
    most: Most,
}

impl Parts<'_> {
    /// Goes to the first event at this time.
    fn seek(&mut self, at: i64) {
        // Unreadable events have already been reported.
        let _ = self.source.reader.seek(at);
    }

    /// Reads from the current position, which is that of `first`, to `end`. Returns the pass, and `first` with the
    /// checkpoints after it. `held` is the number of other checkpoints.
    fn checkpoints(
        &mut self,
        first: Checkpoint,
        end: End,
        held: usize,
        mut see: impl FnMut(u64, &lt_ctf::Event<'_>),
    ) -> Result<(Pass, Vec<Checkpoint>)> {
        let mut pass = first.pass.copy();
        let mut checkpoints = Checkpoints::new(first, self.limits);
        let most = &mut self.most;
        let mut latest = i64::MIN;
        self.source
            .go_on(&mut pass, &[], self.interrupted, |pass, time, event| {
                end.check(event)?;
                see(time, event);
                let at = event.nanoseconds();
                if pass.fed >= checkpoints.next && at > latest {
                    checkpoints.push(Checkpoint::new(at, pass.copy()));
                    most.checkpoints = most.checkpoints.max(held + checkpoints.all.len());
                }
                latest = latest.max(at);
                ControlFlow::Continue(())
            })?;
        Ok((pass, checkpoints.all))
    }

    /// Searches the parts that start at these checkpoints, the last part first.
    fn search(
        &mut self,
        mut checkpoints: Vec<Checkpoint>,
        mut end: End,
        held: usize,
        search: &mut Search,
    ) -> Result<()> {
        while let Some(first) = checkpoints.pop() {
            let begin = End {
                at: Some(first.at),
                fed: first.pass.fed,
            };
            if search.needs(&first.pass.builder.since()) {
                self.search_part(first, end, held + checkpoints.len(), search)?;
            }
            end = begin;
        }
        Ok(())
    }

    /// Searches the part from `first` to `end`.
    fn search_part(
        &mut self,
        mut first: Checkpoint,
        end: End,
        held: usize,
        search: &mut Search,
    ) -> Result<()> {
        // If a file changes meanwhile, each pass may read a different number of events.
        let (at, events) = (first.at, end.fed.saturating_sub(first.pass.fed));
        self.seek(at);
        if events > 2 * self.limits.events {
            let (_, mut inner) = self.checkpoints(first, end, held, |_, _| {})?;
            if inner.len() > 1 {
                return self.search(inner, end, held, search);
            }
            // All events of the part have the same time.
            let Some(whole) = inner.pop() else {
                return Ok(());
            };
            first = whole;
            self.seek(at);
        }
        self.most.events = self.most.events.max(events);
        let mut pass = first.pass;
        let before = pass.builder.since();
        pass.builder.keep_all();
        self.source
            .go_on(&mut pass, &[], self.interrupted, |_, _, event| {
                end.check(event)
            })?;
        search.look(&pass.builder.finish(), &before);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lt_model::why::{Segment, delays, path};
    use lt_model::{ThreadId, Waker};

    use super::super::tests::traces;
    use super::*;

    /// The segments of a thread, and the wakers of its waits. The number of a waker depends on what a model keeps.
    fn segments(model: &Model, id: ThreadId) -> (Vec<Segment>, Vec<Option<Waker>>) {
        let (from, to) = model.span;
        let mut segments = delays(model, id, from, to);
        let waits = segments.iter_mut().flat_map(|segment| &mut segment.waits);
        let wakers = waits.map(|wait| model.waker(wait.waker.take()?)).collect();
        (segments, wakers)
    }

    #[test]
    fn in_small_parts_the_delays_are_the_same() {
        let dir = traces();
        let trace = dir.path().join("compact");
        let file = trace.join("kernel/channel_0");
        let never = AtomicBool::new(false);
        let bytes = fs::read(&file).unwrap();
        let packet = bytes.len() / 8;
        let without_two = [&bytes[..2 * packet], &bytes[4 * packet..]].concat();
        for bytes in [&bytes, &without_two] {
            fs::write(&file, bytes).unwrap();
            let whole = super::super::read(&trace, None, None, &never, None).unwrap();
            let model = &whole.model;
            let (from, to) = model.span;
            let mut threads: Vec<_> = (0..model.threads.len() as u32).map(ThreadId).collect();
            let states = |id: &ThreadId| model.thread(*id).map_or(0, |of| of.intervals.len());
            threads.sort_by_key(|id| std::cmp::Reverse(states(id)));
            for id in threads.into_iter().take(5) {
                let search = |model: &Model, (): &()| Ok(Search::delays(model, id, from, to, true));
                for events in [50, 700, 1 << 20] {
                    let limits = |_| Limits {
                        events,
                        checkpoints: 4,
                        bytes: usize::MAX,
                    };
                    let (found, most) =
                        read(&trace, None, &never, &mut (), search, limits).unwrap();
                    assert_eq!(segments(&found.model, id), segments(model, id));
                    let expected = path(model, id, from, to);
                    assert_eq!(path(&found.model, id, from, to), expected);
                    assert_eq!(found.model.span, model.span);
                    assert_eq!(found.events, whole.events);
                    assert_eq!(found.caveats(), whole.caveats());
                    assert!(most.events <= 2 * events, "{most:?}");
                    // A part is divided by up to four checkpoints, several times if parts are small.
                    assert!(most.checkpoints <= 4 * 12, "{most:?}");
                    assert!(most.checkpoints > 4 || events > 50, "{most:?}");
                    // Nothing is missing if the trace is not divided.
                    assert!(most.passes == 1 || events < 1 << 20, "{most:?}");
                }
            }
        }
    }

    /// A checkpoint of this size after this number of events.
    fn checkpoint(fed: u64, bytes: usize) -> Checkpoint {
        let pass = Pass {
            builder: Builder::new(),
            gaps: Vec::new().into_iter().peekable(),
            fed,
            found: BTreeMap::new(),
            disks: BTreeMap::new(),
        };
        Checkpoint {
            at: fed as i64,
            pass,
            bytes,
        }
    }

    #[test]
    fn the_number_and_the_size_of_checkpoints_are_limited() {
        let limits = Limits {
            events: 10,
            checkpoints: 8,
            bytes: 1000,
        };
        for bytes in [1, 300, 5000] {
            let mut checkpoints = Checkpoints::new(checkpoint(0, bytes), limits);
            for fed in 1..10_000 {
                if fed >= checkpoints.next {
                    checkpoints.push(checkpoint(fed, bytes));
                }
                let fed: Vec<u64> = checkpoints.all.iter().map(|one| one.pass.fed).collect();
                assert!(fed.len() <= 8 && (fed.len() <= 2 || bytes * fed.len() <= 1000));
                assert_eq!(fed[0], 0);
                let every = checkpoints.every;
                assert!(
                    fed.windows(2).all(|two| two[1] - two[0] <= every),
                    "{fed:?}"
                );
            }
            assert!(checkpoints.all.len() >= 2);
        }
    }
}
