// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Durations as values of options.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_proc::Nanos;

/// Parses a duration; without a unit, it is in seconds, as in other tools.
pub fn seconds(text: &str) -> std::result::Result<Nanos, String> {
    let bare = text.bytes().all(|b| b.is_ascii_digit());
    let word = if bare {
        format!("{text}s")
    } else {
        text.to_string()
    };
    lt_proc::parse_duration(&word)
        .map_err(|_| "expected a duration such as 10s, 500ms or 5m".to_string())
}

/// Parses a duration greater than 0; without a unit, it is in seconds.
pub fn some_time(text: &str) -> std::result::Result<Nanos, String> {
    match seconds(text)? {
        Nanos(0) => {
            Err("expected a duration greater than 0; leave the option out for no limit".into())
        }
        time => Ok(time),
    }
}

/// Parses INTERVAL and COUNT of `-i`; `None` if the option is missing.
///
/// # Errors
/// Names the word that is neither a duration nor a count.
pub fn interval(words: &[String]) -> Result<Option<(Duration, u64)>> {
    let Some(first) = words.first() else {
        return Ok(None);
    };
    let interval = seconds(first)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("-i {first}"))?;
    if interval.0 == 0 {
        bail!("-i {first}: expected a duration greater than 0");
    }
    let count = match words.get(1) {
        None => u64::MAX,
        Some(word) => word
            .parse()
            .with_context(|| format!("-i {first} {word}: expected a count"))?,
    };
    Ok(Some((interval.into(), count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_in_bcc() {
        let words = |w: &[&str]| w.iter().map(|s| (*s).to_string()).collect::<Vec<_>>();
        assert_eq!(interval(&[]).unwrap(), None);
        assert_eq!(
            interval(&words(&["1", "5"])).unwrap(),
            Some((Duration::from_secs(1), 5))
        );
        assert_eq!(
            interval(&words(&["500ms"])).unwrap(),
            Some((Duration::from_millis(500), u64::MAX))
        );
        assert!(interval(&words(&["0"])).is_err());
        assert!(interval(&words(&["1", "x"])).is_err());
    }
}
