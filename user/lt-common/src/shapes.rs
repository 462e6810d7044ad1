// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Shared by pictures: text at a position, short numbers, and a time axis.

use lt_proc::Nanos;
use svg::node::Text as Words;
use svg::node::element::{Group, Rectangle, Text};

/// Returns text that starts at this position on the baseline.
#[must_use]
pub fn text(x: f64, y: f64, words: &str) -> Text {
    Text::new("")
        .set("x", round(x))
        .set("y", round(y))
        .add(Words::new(words))
}

/// Rounds to tenths, which are precise enough and short.
#[must_use]
pub fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

const SECOND: u64 = 1_000_000_000;

/// A time axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    left: f64,
    width: f64,
    begin: u64,
    span: u64,
}

impl Axis {
    /// Returns the axis for the time from `begin` to `end`, ns, drawn from x coordinate `left` over `width`.
    #[must_use]
    pub fn new((left, width): (f64, f64), begin: u64, end: u64) -> Self {
        let span = end.saturating_sub(begin).max(1);
        Self {
            left,
            width,
            begin,
            span,
        }
    }

    /// Returns the x coordinate of a time, ns.
    #[must_use]
    pub fn x(&self, time: u64) -> f64 {
        self.left + self.width * time.saturating_sub(self.begin) as f64 / self.span as f64
    }

    /// Returns the distance between ticks, ns. It fits 4 to 10 times into a span of 4 ns or more.
    fn step(&self) -> u64 {
        const SECONDS: [u64; 15] = [
            1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400,
        ];
        let short = (0..9).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
        let mut steps = short.chain(SECONDS.map(|seconds| seconds * SECOND));
        let step = steps.find(|step| self.span / step <= 10);
        step.unwrap_or(self.span / 8)
    }

    /// Draws ticks downwards from this y coordinate, labelled with the time since `begin`.
    #[must_use]
    pub fn ticks(&self, y: f64) -> Group {
        let step = self.step();
        let label = |time| match step {
            SECOND.. => clock(time),
            _ => Nanos(time).to_string(),
        };
        let mut group = Group::new();
        let mut next = Some(0);
        while let Some(time) = next.filter(|time| *time <= self.span) {
            let x = self.left + self.width * time as f64 / self.span as f64;
            let tick = Rectangle::new()
                .set("x", round(x))
                .set("y", y)
                .set("width", 1)
                .set("height", 4)
                .set("fill", "#888");
            let label = text(x, y + 16.0, &label(time)).set("text-anchor", "middle");
            group = group.add(tick).add(label);
            next = time.checked_add(step);
        }
        group
    }
}

/// Formats a time since the start: `0:05`, `1:00:00`.
fn clock(ns: u64) -> String {
    let seconds = ns / SECOND;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_marked_four_to_ten_times() {
        let short = [4, 9, 77, 999, 12_345, 999_999, 40_000_000, 1_125_183_000];
        let long = [5, 10, 60, 61, 600, 3599, 6600, 7199, 86_400].map(|seconds| seconds * SECOND);
        for span in short.into_iter().chain(long) {
            let axis = Axis::new((0.0, 100.0), 7, 7 + span);
            let ticks = span / axis.step();
            assert!((4..=10).contains(&ticks), "{span} ns: {ticks}");
            let drawn = axis.ticks(0.0).to_string();
            assert_eq!(drawn.matches("<rect").count() as u64, ticks + 1);
            assert_eq!((axis.x(7), axis.x(7 + span)), (0.0, 100.0));
        }
        assert_eq!(clock(65_000_000_000), "1:05");
        assert_eq!(clock(3_600_000_000_000), "1:00:00");
    }

    #[test]
    fn no_two_ticks_have_one_label() {
        for span in [40, 1_125_183, 999_999_999, 4_500_000_000, 70 * SECOND] {
            let drawn = Axis::new((0.0, 100.0), 0, span).ticks(0.0).to_string();
            let is_label = |line: &&str| !line.is_empty() && !line.starts_with('<');
            let mut labels: Vec<_> = drawn.lines().filter(is_label).collect();
            let all = labels.len();
            labels.sort_unstable();
            labels.dedup();
            assert!(labels.len() == all && all > 4, "{drawn}");
        }
    }
}
