// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A heat map. Time runs to the right and latency upwards; a darker cell has more operations.
//!
//! There is one panel per instance or kind of operation, one row per power of two, and one column per sample, whose
//! width shows how long the sample lasted. All panels share one logarithmic colour scale, from 1 to the largest count
//! of any cell: a single slow operation is visible beside a million fast ones. Each cell has a title, which browsers
//! show under the pointer. Times that the caller names as not recorded (`gaps`) are grey, unlike times without
//! operations.

use std::path::Path;

use anyhow::{Context, Result};
use lt_common::out::file::replace;
use lt_common::out::{thousands, wrap_to};
use lt_common::shapes::{Axis, round, text};
use lt_proc::Nanos;
use svg::Document;
use svg::node::element::{Group, Rectangle, Title};

/// The contents of a heat map.
#[derive(Debug, Default)]
pub(crate) struct HeatMap {
    pub(crate) heading: String,
    pub(crate) subheading: String,
    /// The shortest delay of each row, ns. A row ends where the next one begins; the last row has no end.
    pub(crate) low: Vec<u64>,
    pub(crate) panels: Vec<Panel>,
    /// Start and end of the times that are not completely recorded, on the clock of the columns.
    pub(crate) gaps: Vec<(u64, u64)>,
    /// Sentences below the panels.
    pub(crate) notes: Vec<String>,
}

/// The operations of one instance or kind.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// In time order.
    pub(crate) columns: Vec<Column>,
}

/// A sample.
#[derive(Debug, Default)]
pub(crate) struct Column {
    /// Start and end, ns. All columns use the same clock.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// A count for each row.
    pub(crate) counts: Vec<u64>,
}

const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const PLOT: f64 = 800.0;
const ROW: f64 = 13.0;
const HEAD: f64 = 64.0;
/// Space above a panel for its name, and below it for the times.
const ABOVE: f64 = 26.0;
const BELOW: f64 = 30.0;
const LEGEND: f64 = 52.0;
/// Height of a line of the notes, and its maximum length in characters.
const NOTE: (f64, usize) = (15.0, 140);

/// Number of rows for durations of any length: one below 2 ns, then one for each power of two; the last has no end.
pub(crate) const OCTAVES: usize = 42;

/// The row of a duration.
pub(crate) fn octave(ns: u64) -> usize {
    (ns.checked_ilog2().unwrap_or(0) as usize).min(OCTAVES - 1)
}

/// The shortest duration of each row, ns.
pub(crate) fn octaves() -> Vec<u64> {
    let low = |row| if row == 0 { 0 } else { 1u64 << row };
    (0..OCTAVES).map(low).collect()
}

/// Colours from light to dark, in steps that look even, also to colour-blind people.
const COLOURS: [(u8, u8, u8); 6] = [
    (0xfd, 0xe7, 0xa9),
    (0xfb, 0xb0, 0x5f),
    (0xee, 0x6a, 0x4b),
    (0xbf, 0x2f, 0x6c),
    (0x74, 0x12, 0x7d),
    (0x2a, 0x0f, 0x54),
];

/// Draws all panels into a file, which is replaced.
pub(crate) fn write(map: &HeatMap, file: &Path) -> Result<()> {
    let picture = svg(map);
    replace(file, |out| Ok(out.write_all(picture.as_bytes())?)).context("cannot write the picture")
}

/// The picture of all panels.
pub(crate) fn svg(map: &HeatMap) -> String {
    draw(map).to_string()
}

fn draw(map: &HeatMap) -> Document {
    let columns = || map.panels.iter().flat_map(|panel| &panel.columns);
    let begin = columns().map(|column| column.begin).min().unwrap_or(0);
    let end = columns().map(|column| column.end).max().unwrap_or(0);
    let most = columns().flat_map(|column| &column.counts).max();
    let most = most.copied().unwrap_or(0);
    let width = LEFT + PLOT + RIGHT;
    let panels_height: f64 = map.panels.iter().map(Panel::height).sum();
    let (line, length) = NOTE;
    let notes = map.notes.iter();
    let notes: Vec<_> = notes.flat_map(|note| wrap_to(note, 0, length)).collect();
    let height = HEAD + panels_height + LEGEND + line * notes.len() as f64;
    let axis = Axis::new((LEFT, PLOT), begin, end);
    let mut document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 11)
        .set("fill", "#222")
        .add(Title::new(map.heading.as_str()))
        .add(
            Rectangle::new()
                .set("width", width)
                .set("height", height)
                .set("fill", "white"),
        )
        .add(text(LEFT, 24.0, &map.heading).set("font-size", 15))
        .add(text(LEFT, 42.0, &map.subheading).set("fill", "#666"));
    let mut y = HEAD;
    for panel in &map.panels {
        document = document.add(panel.draw(map, (&axis, begin), y, most));
        y += panel.height();
    }
    document = document.add(legend(y + 6.0, most));
    y += LEGEND;
    for note in &notes {
        document = document.add(text(LEFT, y, note));
        y += line;
    }
    document
}

impl Panel {
    /// The first and the last row that is drawn.
    fn rows(&self) -> (usize, usize) {
        let used = |column: &Column| {
            let is_used = |row: &usize| column.counts[*row] > 0;
            let rows = 0..column.counts.len();
            Some((rows.clone().find(is_used)?, rows.rev().find(is_used)?))
        };
        let used = self.columns.iter().filter_map(used);
        used.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .unwrap_or((0, 0))
    }

    fn plot_height(&self) -> f64 {
        let (first, last) = self.rows();
        (last - first + 1) as f64 * ROW
    }

    fn height(&self) -> f64 {
        ABOVE + self.plot_height() + BELOW
    }

    fn draw(&self, map: &HeatMap, (axis, start): (&Axis, u64), top: f64, most: u64) -> Group {
        let (first, last) = self.rows();
        let plot = top + ABOVE;
        let bottom = plot + self.plot_height();
        let y = |row: usize| plot + (last - row) as f64 * ROW;
        let counts = self.columns.iter().flat_map(|column| &column.counts);
        let name = format!("{}: {}", self.name, thousands(counts.sum()));
        let frame = Rectangle::new()
            .set("x", LEFT)
            .set("y", plot)
            .set("width", PLOT)
            .set("height", self.plot_height())
            .set("fill", "#f6f6f6");
        let mut group = Group::new()
            .add(text(LEFT, plot - 8.0, &name).set("font-weight", "bold"))
            .add(frame);
        for (begin, end) in &map.gaps {
            let (left, right) = (axis.x(*begin), axis.x(*end));
            let gap = Rectangle::new()
                .set("x", round(left))
                .set("y", plot)
                .set("width", round((right - left).max(0.6)))
                .set("height", self.plot_height())
                .set("fill", "#d4d4d4")
                .add(Title::new("not recorded"));
            group = group.add(gap);
        }
        for Column { begin, end, counts } in &self.columns {
            let (left, right) = (axis.x(*begin), axis.x(*end));
            for row in (first..=last).filter(|row| counts[*row] > 0) {
                let from = Nanos(begin.saturating_sub(start));
                let title = format!(
                    "{} of {} after {from}",
                    thousands(counts[row]),
                    range(&map.low, row)
                );
                let cell = Rectangle::new()
                    .set("x", round(left))
                    .set("y", round(y(row)))
                    // Cells are slightly wider, so that the background does not show between two cells.
                    .set("width", round((right - left).max(0.6) + 0.2))
                    .set("height", ROW)
                    .set("fill", colour(counts[row], most))
                    .add(Title::new(title));
                group = group.add(cell);
            }
        }
        // Label every other bound, or all bounds if there are few.
        let every = if last - first < 8 { 1 } else { 2 };
        for row in (first..=last).filter(|row| (row - first).is_multiple_of(every)) {
            let bound = Nanos(map.low[row]).to_string();
            let label = text(LEFT - 6.0, y(row) + ROW + 3.5, &bound).set("text-anchor", "end");
            group = group.add(label);
        }
        group.add(axis.ticks(bottom))
    }
}

/// Draws the scale of colours.
fn legend(y: f64, most: u64) -> Group {
    const STEPS: usize = 40;
    const WIDTH: f64 = 200.0;
    let mut group = Group::new().add(text(LEFT, y + 10.0, "operations in a cell:"));
    let x = LEFT + 124.0;
    for step in 0..STEPS {
        let part = step as f64 / (STEPS - 1) as f64;
        let patch = Rectangle::new()
            .set("x", round(x + WIDTH * step as f64 / STEPS as f64))
            .set("y", y)
            .set("width", round(WIDTH / STEPS as f64 + 0.3))
            .set("height", 12)
            .set("fill", mix(part));
        group = group.add(patch);
    }
    // Only different counts have labels. If `most` is below 4, no count has the colour in the middle.
    let parts: &[f64] = match most {
        0 | 1 => &[0.0],
        2 | 3 => &[0.0, 1.0],
        _ => &[0.0, 0.5, 1.0],
    };
    for part in parts {
        let count = (most.max(1) as f64).powf(*part).round() as u64;
        let label = text(x + WIDTH * part, y + 26.0, &thousands(count));
        group = group.add(label.set("text-anchor", "middle"));
    }
    group
}

/// Returns the colour of a count: 1 is the lightest; `most`, if above 1, is the darkest.
fn colour(count: u64, most: u64) -> String {
    let scale = (most.max(2) as f64).ln();
    mix((count.max(1) as f64).ln() / scale)
}

/// Returns a colour between the first (0) and the last (1).
fn mix(part: f64) -> String {
    let at = part.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (at as usize).min(COLOURS.len() - 2);
    let (from, to, part) = (COLOURS[below], COLOURS[below + 1], at - below as f64);
    let mix =
        |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part).round();
    let (r, g, b) = (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2));
    format!("#{:02x}{:02x}{:02x}", r as u8, g as u8, b as u8)
}

/// Formats the range of a row.
fn range(low: &[u64], row: usize) -> String {
    match low.get(row + 1) {
        Some(high) => format!("{} to {}", Nanos(low[row]), Nanos(*high)),
        None => format!("{} or more", Nanos(low[row])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map with a column for each second.
    fn map(low: &[u64], counts: &[&[u64]]) -> HeatMap {
        let column = |(i, counts): (usize, &&[u64])| Column {
            begin: i as u64 * 1_000_000_000,
            end: (i as u64 + 1) * 1_000_000_000,
            counts: counts.to_vec(),
        };
        HeatMap {
            heading: "<script>&".into(),
            subheading: String::new(),
            low: low.to_vec(),
            panels: vec![Panel {
                name: "read calls (s_read)".into(),
                columns: counts.iter().enumerate().map(column).collect(),
            }],
            ..HeatMap::default()
        }
    }

    #[test]
    fn each_cell_that_has_a_count_is_drawn_once_with_its_title() {
        let picture = draw(&map(&[1024, 2048, 4096], &[&[0, 7, 0], &[0, 0, 1200]])).to_string();
        assert!(picture.starts_with("<svg"));
        assert!(
            picture.contains("7 of 2.05us to 4.10us after 0ns"),
            "{picture}"
        );
        assert!(picture.contains("1,200 of 4.10us or more after 1.00s"));
        assert_eq!(picture.matches(" after ").count(), 2);
        assert!(picture.contains("read calls (s_read): 1,207"));
        // The row below all counts is left out, and the second sample is to the right of the first.
        assert!(!picture.contains("1.02us"));
        let cell = picture
            .lines()
            .position(|line| line.contains("1,200 of"))
            .unwrap();
        let before: Vec<&str> = picture.lines().take(cell + 1).collect();
        let rect = before.iter().rfind(|line| line.contains("<rect")).unwrap();
        assert!(
            rect.contains(&format!("x=\"{}\"", LEFT + PLOT / 2.0)),
            "{rect}"
        );
    }

    #[test]
    fn names_cannot_break_the_picture() {
        let picture = draw(&map(&[1, 2], &[&[1, 1]])).to_string();
        assert!(!picture.contains("<script>"), "{picture}");
    }

    #[test]
    fn colours_run_from_light_to_dark() {
        assert_eq!(colour(1, 1000), "#fde7a9");
        assert_eq!(colour(1000, 1000), "#2a0f54");
        assert_eq!(colour(1, 1), "#fde7a9");
        let light = |colour: String| {
            let part = |i: usize| u64::from_str_radix(&colour[i..i + 2], 16).unwrap();
            part(1) * 3 + part(3) * 6 + part(5)
        };
        let all: Vec<u64> = (0..=10)
            .map(|exponent| light(colour(1 << exponent, 1024)))
            .collect();
        assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
    }

    #[test]
    fn the_legend_has_a_label_for_each_different_count() {
        for (most, labels) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (1000, 3)] {
            let legend = Document::new().add(legend(0.0, most)).to_string();
            let found = legend.matches("text-anchor=\"middle\"").count();
            assert_eq!(found, labels, "{most}: {legend}");
        }
    }

    #[test]
    fn a_map_without_samples_is_an_empty_picture() {
        assert!(draw(&map(&[1, 2], &[])).to_string().contains("(s_read): 0"));
        assert!(draw(&HeatMap::default()).to_string().starts_with("<svg"));
    }

    #[test]
    fn a_time_that_is_not_recorded_does_not_look_empty() {
        let mut map = map(&[1, 2], &[&[0, 3], &[0, 0], &[0, 5]]);
        map.gaps = vec![(1_000_000_000, 2_000_000_000)];
        map.notes = vec!["word ".repeat(100)];
        let picture = draw(&map).to_string();
        assert_eq!(picture.matches("<title>not recorded</title>").count(), 1);
        let (x, width) = (round(LEFT + PLOT / 3.0), round(PLOT / 3.0));
        let place = format!("width=\"{width}\" x=\"{x}\"");
        let grey = picture.lines().find(|line| line.contains("#d4d4d4"));
        assert!(grey.is_some_and(|line| line.contains(&place)), "{picture}");
        let notes = picture.lines().filter(|line| line.starts_with("word"));
        assert_eq!(notes.count(), 4);
    }
}
