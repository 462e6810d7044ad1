// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Shared by pictures: text at a position, and short numbers.

use svg::node::Text as Words;
use svg::node::element::Text;

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
