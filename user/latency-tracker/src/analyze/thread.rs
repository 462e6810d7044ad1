// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Finds the thread to analyze, by its number or its name.

use anyhow::{Result, bail};
use lt_model::{Class, Model, ThreadId, why};

use super::words;

/// Maximum number of threads that an error lists.
const NAMED: usize = 8;

/// Finds the thread that `text` names: by its number, or by its name at the end of the requested time. An earlier name
/// may be its parent's, with which a new thread starts. Returns the thread, the time for which it is recorded, and a
/// note if the choice needs one.
pub(super) fn named(
    model: &Model,
    text: &str,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<(ThreadId, (u64, u64), Option<String>)> {
    if let Ok(tid) = text.parse() {
        return choose(model, tid, from, to);
    }
    let (from, until) = (from.unwrap_or(model.span.0), to.unwrap_or(u64::MAX));
    let is_named = |id: ThreadId| {
        let thread = model.thread(id)?;
        let name = thread.name_at(until).map(|name| model.names.text(name));
        let (begin, end) = thread.span()?;
        let is_there = begin < until && end > from;
        (is_there && name == Some(text)).then_some((id, (begin, end)))
    };
    let all = (0..model.threads.len() as u32).map(ThreadId);
    let found: Vec<_> = all.filter_map(is_named).collect();
    match found[..] {
        [(one, span)] => Ok((one, span, None)),
        [] => bail!(not_there(model, text, from, to)),
        _ => {
            let names = found
                .iter()
                .take(NAMED)
                .map(|(id, _)| words::name_at(model, *id, until));
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

/// Finds the thread with number `tid` that existed for the longest part of the requested time. Returns the thread, the
/// time for which it is recorded, and a note if other threads also had the number in the requested time.
fn choose(
    model: &Model,
    tid: i32,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<(ThreadId, (u64, u64), Option<String>)> {
    let (from, to) = (from.unwrap_or(0), to.unwrap_or(u64::MAX));
    let span = |id| model.thread(id)?.span();
    let spans: Vec<(u64, u64)> = model.by_tid(tid).filter_map(span).collect();
    let is_dead = |id| {
        model
            .thread(id)
            .is_some_and(|thread| thread.ended.is_some())
    };
    match why::thread_in(model, tid, from, to).and_then(|id| Some((id, span(id)?))) {
        Some((id, (begin, end))) => {
            let there = spans.iter().filter(|(a, b)| *a < to && *b > from);
            let several = (there.count() > 1).then(|| {
                format!(
                    "several threads had the number {tid}; the one from {begin} to {end} is shown"
                )
            });
            Ok((id, (begin, end), several))
        }
        // Intervals that ended before the requested time were dropped.
        None if spans.is_empty() && model.by_tid(tid).any(is_dead) => {
            let from = from.max(model.span.0);
            bail!("thread {tid} had ended by {from}, the start of the range")
        }
        None if spans.is_empty() => bail!("no thread {tid} in the trace{}", busiest(model)),
        None => {
            let times: Vec<_> = spans
                .iter()
                .map(|(a, b)| format!("from {a} to {b}"))
                .collect();
            bail!(
                "thread {tid} is in the trace ({}), but not in the requested range: widen --from or --to",
                times.join(", and ")
            )
        }
    }
}

/// Explains why no thread has that name in the range: the name is nowhere in the trace, or only at another time.
/// Intervals and names from before the range may have been dropped.
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
    let all: Vec<_> = all.filter(is_named).collect();
    let named: Vec<_> = all.iter().copied().filter_map(span).collect();
    let Some((first, (begin, end))) = named.first().copied() else {
        let dead = all.iter().filter_map(|id| model.thread(*id));
        let dead: Vec<_> = dead.filter(|thread| thread.ended.is_some()).collect();
        let since = match from > model.span.0 {
            true => format!(" from {from} on"),
            false => String::new(),
        };
        let who = match dead[..] {
            [] => {
                return format!(
                    "no thread named {text} in the trace{since}{}",
                    busiest(model)
                );
            }
            [one] => format!("thread {text}/{}", one.tid),
            _ => format!("{} threads named {text}", dead.len()),
        };
        return format!("{who} had ended by {from}, the start of the range");
    };
    let describe = |first: ThreadId, count: usize| {
        let number = model.thread(first).map_or(0, |thread| thread.tid);
        match count {
            1 => (number, format!("thread {text}/{number} is"), "has"),
            n => (number, format!("{n} threads named {text} are"), "have"),
        }
    };
    let in_range = |(_, (a, b)): &&(ThreadId, (u64, u64))| *a < to && *b > from;
    let mut there = named.iter().filter(in_range);
    if let Some((one, _)) = there.next() {
        let (number, threads, has) = describe(*one, 1 + there.count());
        return format!(
            "{threads} in the trace, but {has} another name at {to}, the end of the range: use --tid {number}"
        );
    }
    let (_, thread, _) = describe(first, named.len());
    let place = match named.len() {
        1 => format!("from {begin} to {end}"),
        _ => format!("the first from {begin} to {end}"),
    };
    format!(
        "{thread} in the trace ({place}), but not in the range from {from} to {to}: widen --from or --to"
    )
}

/// The threads that worked the longest, as the end of a sentence; empty if the model does not have their activity.
fn busiest(model: &Model) -> String {
    let (from, to) = model.span;
    let work = |id| Some((model.thread(id)?.time_in(Class::Working, from, to), id));
    let all = (0..model.threads.len() as u32).map(ThreadId);
    let mut worked: Vec<_> = all.filter_map(work).collect();
    worked.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    worked.truncate(NAMED);
    if worked.first().is_none_or(|(time, _)| *time == 0) {
        return String::new();
    }
    let names = worked.iter().map(|(_, id)| words::name(model, *id));
    format!(
        "; the threads that ran the most: {}",
        names.collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::made::{R, S, at, model, switch};
    use super::*;
    use lt_model::{Builder, SwitchedOut, What};

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

    #[test]
    fn a_thread_in_the_range_is_named_even_if_an_earlier_thread_had_the_name() {
        let name = b"new" as &[u8];
        let model = model(&[
            switch(0, 0, 0, R, 7),
            at(100, 0, What::Fork { child: 10, name }),
            switch(200, 0, 7, S, 10),
            switch(300, 0, 10, SwitchedOut::Dead, 7),
            at(500, 0, What::Fork { child: 9, name }),
            switch(600, 0, 7, S, 9),
            switch(700, 0, 9, S, 7),
        ]);
        assert_eq!(
            not_there(&model, "new", 400, Some(550)),
            "thread new/9 is in the trace, but has another name at 550, the end of the range: use --tid 9"
        );
        assert_eq!(
            not_there(&model, "new", 310, Some(400)),
            "2 threads named new are in the trace (the first from 100 to 300), but not in the range from 310 to \
             400: widen --from or --to"
        );
    }

    /// As if the trace had been read from the start of the range on.
    #[test]
    fn a_thread_that_ended_before_the_range_is_not_called_missing() {
        let events = [
            switch(0, 0, 0, R, 7),
            switch(100, 0, 7, SwitchedOut::Dead, 8),
            switch(500, 0, 8, S, 0),
            switch(600, 0, 0, R, 9),
        ];
        let mut builder = Builder::new();
        builder.forget_before(400);
        events.iter().for_each(|event| builder.feed(event));
        let model = builder.finish();
        for (text, who) in [("late", "late/7"), ("7", "7")] {
            let error = named(&model, text, Some(400), None).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("thread {who} had ended by 400, the start of the range")
            );
        }
        let error = named(&model, "nobody", Some(400), None).unwrap_err();
        let expected = "no thread named nobody in the trace from 400 on; ";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn a_thread_that_ended_with_the_first_event_is_not_called_missing() {
        let model = model(&[
            switch(100, 0, 7, SwitchedOut::Dead, 8),
            switch(500, 0, 8, S, 0),
        ]);
        for (text, who) in [("late", "late/7"), ("7", "7")] {
            let error = named(&model, text, None, None).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("thread {who} had ended by 100, the start of the range")
            );
        }
    }

    #[test]
    fn a_name_and_the_number_find_the_same_thread() {
        let model = model(&[
            switch(0, 0, 0, R, 7),
            switch(500, 0, 7, S, 9),
            switch(700, 0, 9, S, 7),
        ]);
        for range in [(None, None), (Some(100), Some(400))] {
            let of = |text| named(&model, text, range.0, range.1).unwrap();
            assert_eq!(of("late"), of("7"));
        }
        let error = named(&model, "nobody", None, None).unwrap_err();
        assert!(
            error.to_string().contains("no thread named nobody"),
            "{error}"
        );
    }
}
