// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Times in a trace.

/// A time in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Absolute time of the trace's clock, ns.
    At(u64),
    /// Time since the start of the trace, ns.
    After(u64),
}

impl When {
    /// Returns the time of the clock of a trace that starts at `start`.
    pub(crate) fn since(self, start: u64) -> u64 {
        match self {
            Self::At(time) => time,
            Self::After(time) => start.saturating_add(time),
        }
    }

    /// Parses a time.
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

#[cfg(test)]
mod tests {
    use super::*;

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
