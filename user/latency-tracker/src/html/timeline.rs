// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The lanes of a page as a picture (SVG), with the page's colours, and without zoom or script.
//!
//! ```text
//! title; then, for each view: its name (if there are several views), verdict and start
//! group    lane | bar | bar     | bar |     each bar has its text as a title, which browsers show
//!          lane       | bar | bar           under the pointer
//! ticks, legend, notes
//! ```

use std::collections::BTreeMap;

use lt_common::out::{fit, thousands, wrap_to};
use lt_common::shapes::{Axis, round, text};
use lt_proc::Nanos;
use svg::node::element::{self, Definitions, Line, Marker, Pattern, Polygon, Rectangle, Title};
use svg::{Document, Node};

use super::{Arrow, Bar, Kind, Page, STYLE, View};

const LEFT: f64 = 200.0;
const PLOT: f64 = 1000.0;
const RIGHT: f64 = 24.0;
/// Height of a lane, of its bars, and of a heading or a line of text.
const ROW: f64 = 20.0;
const BAR: f64 = 16.0;
const TEXT: f64 = 18.0;
/// Width of a character.
const CHAR: f64 = 6.2;
/// If there are more wakeups outside of the path than this, they have no arrows: arrows would hide the bars.
const ARROWS: usize = 60;

/// Returns a colour of the style by the name of its property. The first match is the colour of light pages.
fn colour(name: &str) -> &'static str {
    let value = STYLE.split_once(&format!("--{name}: "));
    let value = value.and_then(|(_, rest)| rest.split_once(';'));
    value.map_or("#888888", |(colour, _)| colour)
}

fn name(kind: Kind) -> &'static str {
    Kind::ALL[kind as usize].0
}

/// Whether bars of this kind are hatched.
fn is_hatched(kind: Kind) -> bool {
    matches!(kind, Kind::Unknown | Kind::Merged)
}

fn fill(kind: Kind) -> String {
    match is_hatched(kind) {
        true => format!("url(#{})", name(kind)),
        false => colour(name(kind)).into(),
    }
}

/// A rectangle in a colour.
fn area((x, y): (f64, f64), (width, height): (f64, f64), fill: &str) -> Rectangle {
    Rectangle::new()
        .set("x", round(x))
        .set("y", round(y))
        .set("width", round(width))
        .set("height", round(height))
        .set("fill", fill)
}

fn hatch(kind: Kind, over: &str, angle: i32) -> Pattern {
    Pattern::new()
        .set("id", name(kind))
        .set("width", 8)
        .set("height", 8)
        .set("patternUnits", "userSpaceOnUse")
        .set("patternTransform", format!("rotate({angle})"))
        .add(area((0.0, 0.0), (8.0, 8.0), colour(name(kind))))
        .add(area((0.0, 0.0), (1.5, 8.0), over))
}

fn definitions() -> Definitions {
    let head = Polygon::new()
        .set("points", "0,0 6,3 0,6")
        .set("fill", colour("arrow"));
    let head = Marker::new()
        .set("id", "head")
        .set("refX", 6)
        .set("refY", 3)
        .set("markerWidth", 6)
        .set("markerHeight", 6)
        .set("orient", "auto")
        .add(head);
    Definitions::new()
        .add(hatch(Kind::Unknown, colour("hatch"), 45))
        .add(hatch(Kind::Merged, colour("on-merged"), -45))
        .add(head)
}

/// The picture so far, from the top.
struct Drawing {
    body: element::Group,
    y: f64,
}

impl Drawing {
    fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.body.append(node);
    }

    /// Adds paragraphs.
    fn write<'t>(&mut self, paragraphs: impl IntoIterator<Item = &'t String>) {
        let width = ((LEFT + PLOT - ROW) / CHAR) as usize;
        for paragraph in paragraphs {
            for line in wrap_to(paragraph, 0, width) {
                self.y += TEXT;
                self.add(text(ROW, self.y, &line));
            }
        }
    }

    fn view(&mut self, view: &View) {
        let start = format!(
            "{} from {} ns of the trace's clock",
            Nanos(view.length),
            view.origin
        );
        self.write(view.verdict.iter().chain([&start]));
        let axis = Axis::new((LEFT, PLOT), 0, view.length);
        let mut tops = Vec::new();
        let mut kinds = BTreeMap::new();
        for group in &view.groups {
            self.y += TEXT + 6.0;
            let heading = text(ROW, self.y, group.name).set("font-weight", "bold");
            self.add(heading.set("fill", colour("dim")));
            self.y += 6.0;
            for lane in &group.lanes {
                let width = ((LEFT - 2.0 * ROW) / CHAR) as usize;
                self.add(text(ROW, self.y + 12.0, &fit(&lane.name, width)));
                self.add(area((LEFT, self.y), (PLOT, BAR), colour("lane")));
                for bar in &lane.bars {
                    kinds.insert(bar.2 as usize, bar.2);
                    self.bar(view, &axis, bar);
                }
                tops.push(self.y);
                self.y += ROW;
            }
        }
        self.add(axis.ticks(self.y));
        let hidden = self.arrows(view, &axis, &tops);
        self.y += 2.0 * TEXT;
        let mut x = LEFT;
        for kind in kinds.into_values() {
            let (_, label) = Kind::ALL[kind as usize];
            self.add(area((x, self.y), (18.0, 12.0), &fill(kind)));
            self.add(text(x + 24.0, self.y + 10.0, label));
            x += 44.0 + CHAR * label.len() as f64;
        }
        self.y += TEXT;
        let hidden = (hidden > 0).then(|| {
            let hidden = thousands(hidden as u64);
            format!("{hidden} wakeups outside of the path have no arrow.")
        });
        self.write(view.notes.iter().chain(&view.left_out).chain(&hidden));
        self.y += TEXT;
    }

    fn bar(&mut self, view: &View, axis: &Axis, Bar(begin, took, kind, word, cpu, more): &Bar) {
        let left = axis.x(*begin);
        let width = axis.x(begin + took) - left;
        let words = view.words.list.get(word.0).map_or("", String::as_str);
        let mut title = format!("{words}: {} at +{}", Nanos(*took), Nanos(*begin));
        if let Some(cpu) = cpu {
            title += &format!(", CPU {cpu}");
        }
        if let Some(more) = more.and_then(|more| view.words.list.get(more.0)) {
            title += &format!("; {more}");
        }
        // An idle CPU is a thin line.
        let (top, height) = match kind {
            Kind::Idle => (self.y + BAR / 2.0 - 1.0, 2.0),
            _ => (self.y, BAR),
        };
        let bar = area((left, top), (width.max(0.6), height), &fill(*kind));
        self.add(bar.add(Title::new(title)));
        let room = ((width - 8.0) / CHAR) as usize;
        if room > 2 && *kind != Kind::Idle && !is_hatched(*kind) {
            let label = text(left + 4.0, self.y + 12.0, &fit(words, room));
            let colour = colour(&format!("on-{}", name(*kind)));
            self.add(label.set("fill", colour).set("pointer-events", "none"));
        }
    }

    /// Adds an arrow for each wakeup. If too many are outside of the path, omits these and returns their number.
    fn arrows(&mut self, view: &View, axis: &Axis, tops: &[f64]) -> usize {
        let others = view.arrows.iter().filter(|arrow| !arrow.4).count();
        let hidden = if others > ARROWS { others } else { 0 };
        for Arrow(begin, from, end, to, is_of_path) in &view.arrows {
            let (Some(from), Some(to)) = (tops.get(*from), tops.get(*to)) else {
                continue;
            };
            if hidden > 0 && !is_of_path {
                continue;
            }
            let edge = if to > from { 0.0 } else { BAR };
            let arrow = Line::new()
                .set("x1", round(axis.x(*begin)))
                .set("y1", round(from + BAR / 2.0))
                .set("x2", round(axis.x(*end)))
                .set("y2", round(to + edge))
                .set("stroke", colour("arrow"))
                .set("opacity", if *is_of_path { 0.85 } else { 0.35 })
                .set("marker-end", "url(#head)");
            self.add(arrow);
        }
        hidden
    }
}

/// Draws the lanes of all views, one view below the other.
pub(super) fn draw(page: &Page) -> String {
    let mut drawing = Drawing {
        body: element::Group::new(),
        y: 26.0,
    };
    drawing.add(text(ROW, drawing.y, &page.title).set("font-size", 15));
    for view in &page.views {
        if page.views.len() > 1 {
            drawing.y += 2.0 * TEXT;
            let name = text(ROW, drawing.y, &view.name).set("font-size", 13);
            drawing.add(name.set("font-weight", "bold"));
        }
        drawing.view(view);
    }
    drawing.write(&page.left_out);
    let (width, height) = (LEFT + PLOT + RIGHT, round(drawing.y + TEXT));
    let picture = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 11)
        .set("fill", colour("text"))
        .add(Title::new(page.title.as_str()))
        .add(definitions())
        .add(area((0.0, 0.0), (width, height), colour("card")))
        .add(drawing.body);
    // XML allows hardly any control character, and neither U+FFFE nor U+FFFF.
    let allowed = |c: char| match c {
        '\n' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => !c.is_control(),
    };
    let picture = picture.to_string();
    let safe = picture.chars().map(|c| if allowed(c) { c } else { '?' });
    safe.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{HOSTILE, page_of};
    use super::*;

    #[test]
    fn each_bar_has_its_text_and_no_name_becomes_markup() {
        let mut page = page_of(&HOSTILE);
        page.title.push('\u{ffff}');
        let picture = draw(&page);
        let ends = picture.matches(", CPU 0; ").count();
        assert_eq!(ends, HOSTILE.len(), "{picture}");
        for markup in ["<script", "<img", "<!--", "</pre>"] {
            assert!(!picture.contains(markup), "{picture}");
        }
        assert!(!picture.contains(|c: char| c.is_control() && c != '\n' || c == '\u{ffff}'));
    }

    #[test]
    fn colours_are_the_colours_of_light_pages() {
        // The style has two values; the first value is for light pages.
        assert_eq!(colour("running"), "#2a9d6f");
        assert_eq!(colour("on-runnable"), "#1b1f24");
        for (kind, _) in Kind::ALL {
            assert_ne!(colour(kind), "#888888", "{kind}");
            assert_ne!(colour(&format!("on-{kind}")), "#888888", "{kind}");
        }
        let others = ["arrow", "card", "dim", "hatch", "lane", "text"];
        assert!(others.iter().all(|name| colour(name) != "#888888"));
    }

    #[test]
    fn what_has_no_arrow_is_counted() {
        let mut page = page_of(&["a", "b"]);
        let lanes = |arrows: Vec<Arrow>, page: &mut Page| {
            page.views[0].arrows = arrows;
            let picture = draw(page);
            let note = picture.contains("wakeups outside of the path have no arrow");
            (picture.matches("<line").count(), note)
        };
        let arrow = |is_of_path| Arrow(1, 0, 2, 0, is_of_path);
        assert_eq!(lanes(vec![arrow(false); 60], &mut page), (60, false));
        let mut many = vec![arrow(false); 61];
        many.push(arrow(true));
        assert_eq!(lanes(many, &mut page), (1, true));
    }
}
