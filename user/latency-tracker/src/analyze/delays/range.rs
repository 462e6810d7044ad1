// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The thread and the range to analyze: from options, and from events in the trace.

use anyhow::{Context, Result, anyhow, bail, ensure};
use lt_model::{Model, ThreadId};
use lt_proc::Nanos;

use super::super::args::DelaysArgs;
use super::super::tables::args::{INTERVALS, too_many};
use super::super::thread::named;
use crate::trace::{Finder, Mark, Point, When};

/// The thread and the range, with a note about the choice.
pub(super) struct Asked {
    pub(super) thread: ThreadId,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) note: Option<String>,
}

/// Returns a finder of the events that the options name.
pub(super) fn finder(args: &DelaysArgs) -> Finder {
    let points = [&args.from, &args.to].into_iter().flatten();
    let mark = points.filter_map(|point| match point {
        Point::Event(mark) => Some(mark),
        _ => None,
    });
    let all = mark.chain(&args.event);
    Finder::new(all.map(|mark| mark.name.clone()))
}

/// Returns an error if --from or --to names an event of one thread: only a complete model shows which thread was
/// running at an event. `option` is the option due to which the model is not complete.
pub(super) fn needs_no_processor(args: &DelaysArgs, option: &str) -> Result<()> {
    let points = [&args.from, &args.to].into_iter().flatten();
    for point in points {
        if let Point::Event(Mark {
            name,
            tid: Some(tid),
        }) = point
        {
            bail!(
                "{name}:{tid} cannot be found with {option}, since the first pass does not keep which thread \
                 ran where: give its time instead"
            );
        }
    }
    Ok(())
}

/// The start of the range, if known before the trace is read.
pub(super) fn start(args: &DelaysArgs) -> Option<When> {
    match args.from {
        Some(Point::Time(time)) => Some(time),
        _ => None,
    }
}

/// The requested time.
struct Times {
    from: u64,
    /// The end, if an option names it.
    to: Option<u64>,
    /// The time of `--event`, and the thread that was running.
    last: Option<(u64, Option<ThreadId>)>,
}

fn times(model: &Model, args: &DelaysArgs, finder: &Finder) -> Result<Times> {
    let (begin, end) = model.span;
    let time = |point: &Point, since| -> Result<u64> {
        match point {
            Point::Time(time) => Ok(time.since(begin)),
            Point::OfDay(time) => finder.at(*time, begin).context(
                "the trace does not record the time of day: use times as in an alert, or since the start of the trace (+2s)",
            ),
            Point::Event(mark) => Ok(event(model, finder, mark, since)?.0),
        }
    };
    let from = args.from.as_ref().map(|from| time(from, begin));
    let from = from.transpose()?.unwrap_or(begin);
    // The event that ends the range is searched for after the start of the range.
    let since = from.saturating_add(1);
    let last = args.event.as_ref();
    let last = last.map(|mark| event(model, finder, mark, since));
    let last = last.transpose()?;
    let to = match (&args.to, last) {
        (_, Some((time, _))) => Some(time),
        (Some(to), None) => Some(time(to, since)?),
        (None, None) => None,
    };
    if from >= end || to.is_some_and(|to| to <= begin) {
        bail!("the trace is from {begin} to {end}, and does not cover the requested time");
    }
    Ok(Times { from, to, last })
}

/// The range, if no thread is requested.
pub(super) fn of_all(model: &Model, args: &DelaysArgs, finder: &Finder) -> Result<(u64, u64)> {
    let Times { from, to, .. } = times(model, args, finder)?;
    let to = to.unwrap_or(model.span.1);
    ensure!(from < to, "the range from {from} to {to} is empty");
    Ok((from, to))
}

/// The intervals of a range, the last of which may be shorter. Intervals outside of the trace are left out. Without a
/// length, the whole range is one interval.
pub(super) fn intervals(
    model: &Model,
    (from, to): (u64, u64),
    length: Option<Nanos>,
) -> Result<Vec<(u64, u64)>> {
    let Some(length) = length else {
        return Ok(vec![(from, to)]);
    };
    let (begin, end) = model.span;
    let last = to.min(end);
    if last.saturating_sub(from).div_ceil(length.0) > INTERVALS {
        bail!(too_many(length));
    }
    let starts = std::iter::successors(Some(from), |start| start.checked_add(length.0));
    let starts = starts.take_while(|start| *start < last);
    let parts = starts.map(|start| (start, start.saturating_add(length.0).min(to)));
    Ok(parts.filter(|(_, end)| *end > begin).collect())
}

/// The requested thread and range.
pub(super) fn asked(model: &Model, args: &DelaysArgs, finder: &Finder) -> Result<Asked> {
    let Times { from, to, last } = times(model, args, finder)?;
    let (thread, note) = match (&args.tid, last) {
        (Some(tid), _) => {
            let (thread, _, note) = named(model, tid, Some(from), to)?;
            (thread, note)
        }
        (None, Some((_, Some(thread)))) => (thread, None),
        (None, Some((time, None))) => {
            bail!("no thread is recorded for the event at {time}: name a thread with --tid")
        }
        (None, None) => bail!("no thread: name one with --tid or --event"),
    };
    let last = model.thread(thread).and_then(lt_model::Thread::span);
    let to = to.or(last.map(|(_, end)| end)).unwrap_or(model.span.1);
    ensure!(from < to, "the range from {from} to {to} is empty");
    Ok(Asked {
        thread,
        from,
        to,
        note,
    })
}

/// The time of an event, and the thread that was running.
fn event(
    model: &Model,
    finder: &Finder,
    mark: &Mark,
    from: u64,
) -> Result<(u64, Option<ThreadId>)> {
    let of = mark.tid.map(|tid| format!(" of thread {tid}"));
    finder.first(model, mark, from).ok_or_else(|| {
        let name = &mark.name;
        anyhow!(
            "no event {name}{} in the trace from {from} on",
            of.unwrap_or_default()
        )
    })
}
