// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The thread and the range to analyze: from options, and from events in the trace.

use anyhow::{Context, Result, anyhow, bail, ensure};
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
/// running at an event.
pub(super) fn needs_no_processor(args: &DelaysArgs) -> Result<()> {
    let points = [&args.from, &args.to].into_iter().flatten();
    for point in points {
        if let Point::Event(Mark {
            name,
            tid: Some(tid),
        }) = point
        {
            bail!(
                "{name}:{tid} cannot be found with --max-memory, since the first pass does not keep which thread \
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

/// The requested thread and range.
pub(super) fn asked(model: &Model, args: &DelaysArgs, finder: &Finder) -> Result<Asked> {
    let Times { from, to, last } = times(model, args, finder)?;
    let (thread, note) = match (&args.tid, last) {
        (Some(tid), _) => named(model, tid, from, to)?,
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

/// Finds the thread with that number, or with that name at the end of the range: a new thread starts with its
/// parent's name.
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
        [] => bail!(not_there(model, text, from, to)),
        _ => {
            let names = found.iter().take(NAMED).map(|id| words::name(model, *id));
            let names: Vec<_> = names.collect();
            let more = if found.len() > NAMED { ", ..." } else { "" };
            bail!(
                "{} threads are named {text}: use the number of one with --tid: {}{more}",
                found.len(),
                names.join(", ")
            )
        }
    }
}

/// Explains why no thread has that name in the range: the name is nowhere in the trace, or only at another time.
fn not_there(model: &Model, text: &str, from: u64, to: Option<u64>) -> String {
    let to = to.unwrap_or(model.span.1);
    let is_named = |id: &ThreadId| {
        let thread = model.thread(*id);
        thread.is_some_and(|thread| {
            let mut names = thread.names();
            names.any(|name| model.names.text(name) == text)
        })
    };
    let all = (0..model.threads.len() as u32).map(ThreadId);
    let span = |id: ThreadId| Some((id, model.thread(id)?.span()?));
    let named: Vec<_> = all.filter(is_named).filter_map(span).collect();
    let Some((first, (begin, end))) = named.first().copied() else {
        return format!(
            "no thread named {text} in the trace; {}",
            super::super::busiest(model)
        );
    };
    let number = model.thread(first).map_or(0, |thread| thread.tid);
    let (thread, has) = match named.len() {
        1 => (format!("thread {text}/{number} is"), "has"),
        n => (format!("{n} threads named {text} are"), "have"),
    };
    if named.iter().any(|(_, (a, b))| *a < to && *b > from) {
        return format!(
            "{thread} in the trace, but {has} another name at {to}, the end of the range: use --tid {number}"
        );
    }
    let place = match named.len() {
        1 => format!("from {begin} to {end}"),
        _ => format!("the first from {begin} to {end}"),
    };
    format!(
        "{thread} in the trace ({place}), but not in the range from {from} to {to}: widen --from or --to"
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::made::{R, S, at, model, switch};
    use super::*;
    use lt_model::What;

    #[test]
    fn a_thread_outside_of_the_range_is_not_called_missing() {
        let (child, name) = (9, b"new" as &[u8]);
        let model = model(&[
            switch(0, 0, 0, R, 7),
            at(500, 0, What::Fork { child, name }),
            switch(600, 0, 7, S, 9),
            switch(700, 0, 9, S, 7),
        ]);
        let called = model.thread(model.by_tid(9).next().unwrap()).unwrap();
        let name = model.names.text(called.name_at(700).unwrap());
        assert_eq!(
            not_there(&model, name, 0, Some(400)),
            format!(
                "thread {name}/9 is in the trace (from 500 to 700), but not in the range from 0 to 400: widen --from \
                 or --to"
            )
        );
        let named = |to| {
            format!(
                "thread {name}/9 is in the trace, but has another name at {to}, the end of the range"
            )
        };
        assert!(not_there(&model, name, 0, Some(550)).starts_with(&named(550)));
        assert!(
            not_there(&model, "nobody", 0, Some(400))
                .starts_with("no thread named nobody in the trace; ")
        );
    }
}
