// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The thread and the range to analyze: from options, and from events that the trace has.

use anyhow::{Context, Result, anyhow, bail};
use lt_model::{Model, ThreadId};

use super::super::args::DelaysArgs;
use super::super::{NAMED, choose, words};
use crate::trace::{Finder, Mark, Point, When};

/// The thread and the range, with a note about the choice.
pub(super) struct Asked {
    pub(super) thread: ThreadId,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) note: Option<String>,
}

/// Finds the events that the options name.
pub(super) fn finder(args: &DelaysArgs) -> Finder {
    let points = [&args.from, &args.to].into_iter().flatten();
    let mark = points.filter_map(|point| match point {
        Point::Event(mark) => Some(mark),
        _ => None,
    });
    let all = mark.chain(&args.event);
    Finder::new(all.map(|mark| mark.name.clone()))
}

/// The start of the range, if known before the trace is read.
pub(super) fn start(args: &DelaysArgs) -> Option<When> {
    match args.from {
        Some(Point::Time(time)) => Some(time),
        _ => None,
    }
}

/// The requested thread and range.
pub(super) fn asked(model: &Model, args: &DelaysArgs, finder: &Finder) -> Result<Asked> {
    let (begin, end) = model.span;
    let time = |point: &Point, since| -> Result<u64> {
        match point {
            Point::Time(time) => Ok(time.since(begin)),
            Point::OfDay(time) => finder.at(*time, begin).context(
                "the trace does not record the time of day: give times as in an alert, or since its start (+2s)",
            ),
            Point::Event(mark) => Ok(event(model, finder, mark, since)?.0),
        }
    };
    let from = args.from.as_ref().map(|from| time(from, begin));
    let from = from.transpose()?.unwrap_or(begin);
    // An event that ends the range comes after its start.
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
        bail!("the trace is from {begin} to {end}, and does not reach the time that is asked for");
    }
    let (thread, note) = match (&args.tid, last) {
        (Some(tid), _) => named(model, tid, from, to)?,
        (None, Some((_, Some(thread)))) => (thread, None),
        (None, Some((time, None))) => {
            bail!("the event at {time} is of no thread, or which one is not recorded: give --tid")
        }
        (None, None) => bail!("give --tid or --event"),
    };
    let last = model.thread(thread).and_then(lt_model::Thread::span);
    let to = to.or(last.map(|(_, end)| end)).unwrap_or(end);
    if from >= to {
        bail!("there is no time between {from} and {to}");
    }
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

/// The thread with that number, or with that name at the end of the range: a new thread has the name of its parent at
/// first.
fn named(
    model: &Model,
    text: &str,
    from: u64,
    to: Option<u64>,
) -> Result<(ThreadId, Option<String>)> {
    if let Ok(tid) = text.parse() {
        let (thread, _, note) = choose(model, tid, Some(from), to)?;
        return Ok((thread, note));
    }
    let until = to.unwrap_or(u64::MAX);
    let is_named = |id: &ThreadId| {
        let thread = model.thread(*id);
        thread.is_some_and(|thread| {
            let name = thread.name_at(until).map(|name| model.names.text(name));
            let there = thread.span().is_some_and(|(a, b)| a < until && b > from);
            there && name == Some(text)
        })
    };
    let all = (0..model.threads.len() as u32).map(ThreadId);
    let found: Vec<_> = all.filter(is_named).collect();
    match found[..] {
        [one] => Ok((one, None)),
        [] => bail!(
            "no thread named {text} in the trace; {}",
            super::super::busiest(model)
        ),
        _ => {
            let names = found.iter().take(NAMED).map(|id| words::name(model, *id));
            let names: Vec<_> = names.collect();
            let more = if found.len() > NAMED { ", ..." } else { "" };
            bail!(
                "{} threads are named {text}: give --tid with the number of one of them: {}{more}",
                found.len(),
                names.join(", ")
            )
        }
    }
}
