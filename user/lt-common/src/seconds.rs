// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Durations as values of options.

use lt_proc::Nanos;

/// Parses a duration; without a unit, it is in seconds, as in other tools.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    let bare = text.bytes().all(|b| b.is_ascii_digit());
    let word = if bare {
        format!("{text}s")
    } else {
        text.to_string()
    };
    lt_proc::parse_duration(&word)
        .map_err(|_| "expected a duration such as 10s, 500ms or 5m".to_string())
}

/// The same, but not 0.
pub fn some_time(text: &str) -> Result<Nanos, String> {
    match seconds(text)? {
        Nanos(0) => {
            Err("expected a duration greater than 0; leave the option out for no limit".into())
        }
        time => Ok(time),
    }
}
