// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Times in a trace, and events that mark times.

/// A time in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Absolute time on the trace's clock, ns.
    At(u64),
    /// Time since the start of the trace, ns.
    After(u64),
}

impl When {
    /// Converts to the clock of a trace that starts at `start`.
    pub(crate) fn since(self, start: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::After(time) => start.saturating_add(time),
        }
    }

    /// Parses a number of nanoseconds, or `+` and a duration since the start of the trace.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let time = text.strip_prefix('+').unwrap_or(text);
        let nanos = lt_proc::parse_duration(time);
        let bare = text.bytes().all(|b| b.is_ascii_digit());
        match nanos {
            Ok(nanos) if time.len() < text.len() => Ok(Self::After(nanos.0)),
            Ok(nanos) if bare => Ok(Self::At(nanos.0)),
            _ => Err(
                "expected a time as in an alert (ns), or since the start of the trace, such as +2s"
                    .into(),
            ),
        }
    }
}

/// An event that marks a time: its name and, if only events of one thread count, the thread ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) tid: Option<i32>,
}

/// A time in a trace, or an event that marks one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Point {
    Time(When),
    /// Time of day in UTC, ns since midnight.
    OfDay(u64),
    Event(Mark),
}

impl Point {
    /// Parses a time, a time of day (`14:03:20.5`), or the name of an event (`syscall_entry_read:812`).
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = When::parse(text) {
            return Ok(Self::Time(time));
        }
        match (of_day(text), text.starts_with(|c: char| c.is_ascii_alphabetic())) {
            (Some(time), _) => Ok(Self::OfDay(time)),
            (None, true) => event(text).map(Self::Event),
            (None, false) => Err(
                "expected a time (ns as in an alert, +2s since the start of the trace, or 14:03:20.5 in UTC), or the \
                 name of an event"
                    .into(),
            ),
        }
    }
}

/// Parses the name of an event, perhaps with a thread ID: `sched_switch`, `syscall_entry_read:812`.
pub(crate) fn event(text: &str) -> Result<Mark, String> {
    let (name, tid) = match text.rsplit_once(':').map(|(name, tid)| (name, tid.parse())) {
        Some((name, Ok(tid))) => (name, Some(tid)),
        _ => (text, None),
    };
    match name.is_empty() || name.contains(char::is_whitespace) {
        true => Err(
            "expected the name of an event, such as syscall_exit_read or syscall_exit_read:812"
                .into(),
        ),
        false => Ok(Mark {
            name: name.into(),
            tid,
        }),
    }
}

/// Parses a time of day.
fn of_day(text: &str) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let (time, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<u64> = time
        .split(':')
        .filter(|part| is_number(part) && part.len() == 2)
        .map_while(|part| part.parse().ok())
        .collect();
    let [hours @ ..24, minutes @ ..60, seconds @ ..60] = parts[..] else {
        return None;
    };
    if !is_number(fraction) || fraction.len() > 9 || time.split(':').count() != 3 {
        return None;
    }
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(((hours * 60 + minutes) * 60 + seconds) * SECOND + nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_time_a_time_of_day_or_an_event() {
        assert_eq!(
            Point::parse("+2s"),
            Ok(Point::Time(When::After(2_000_000_000)))
        );
        assert_eq!(Point::parse("00:00:01.5"), Ok(Point::OfDay(1_500_000_000)));
        assert_eq!(
            Point::parse("23:59:59"),
            Ok(Point::OfDay(86_399_000_000_000))
        );
        let mark = |name: &str, tid| {
            Point::Event(Mark {
                name: name.into(),
                tid,
            })
        };
        assert_eq!(Point::parse("sched_switch"), Ok(mark("sched_switch", None)));
        assert_eq!(
            Point::parse("sched:sched_switch"),
            Ok(mark("sched:sched_switch", None))
        );
        assert_eq!(
            Point::parse("syscall_exit_read:812"),
            Ok(mark("syscall_exit_read", Some(812)))
        );
        for bad in [
            "",
            "2s",
            "24:00:00",
            "1:2:3",
            "00:00",
            "00:00:01.",
            "00:60:00",
            "+",
            "a b",
            "-1",
            "00:00:00:00",
        ] {
            assert!(Point::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_of_the_clock_or_since_the_start() {
        assert_eq!(When::parse("26860215000"), Ok(When::At(26_860_215_000)));
        assert_eq!(When::parse("+2s").map(|w| w.since(5)), Ok(2_000_000_005));
        assert_eq!(When::parse("+7").map(|w| w.since(5)), Ok(12));
        for bad in ["", "+", "2s", "-5", "+-5", "x", "++1"] {
            assert!(When::parse(bad).is_err(), "{bad}");
        }
    }
}
