// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Several distributions in one picture. The x axis is the time, the y axis the share of samples
//! that took this long or longer; both are logarithmic.
//!
//! This form compares tools whose bins differ: a curve has the same shape however fine its bins
//! are, and the few longest samples, which matter most, have as much room as all others. The svg
//! crate, which other commands use already, is enough for lines and words; a plotting crate would
//! add fonts and bitmaps.

use lt_common::shapes::{round, text};
use lt_proc::Nanos;
use svg::Document;
use svg::node::element::{Group, Line, Polyline, Rectangle, Title};

use super::Curve;

const LEFT: f64 = 76.0;
const TOP: f64 = 48.0;
const PLOT: (f64, f64) = (760.0, 380.0);
const RIGHT: f64 = 24.0;
const BELOW: f64 = 52.0;
const ENTRY: f64 = 18.0;

/// Colours that colour-blind people can distinguish, too (Okabe and Ito).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];

/// Draws the curves.
#[must_use]
pub fn picture(title: &str, curves: &[Curve]) -> String {
    let axes = Axes::around(curves);
    let width = LEFT + PLOT.0 + RIGHT;
    let height = TOP + PLOT.1 + BELOW + ENTRY * curves.len() as f64;
    let mut document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 11)
        .set("fill", "#222")
        .add(Title::new(title))
        .add(box_at(0.0, 0.0, width, height, "white"))
        .add(text(LEFT, 22.0, title).set("font-size", 15))
        .add(text(LEFT, 38.0, "share of samples that took this long or longer").set("fill", "#666"))
        .add(axes.draw());
    for (i, curve) in curves.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        // Once the colours are used up, lines are dashed.
        let dash = ["none", "6 3", "2 2", "8 2 2 2"][i / COLOURS.len() % 4];
        let y = TOP + PLOT.1 + BELOW + ENTRY * i as f64;
        let entry = Line::new()
            .set("x1", LEFT)
            .set("x2", LEFT + 24.0)
            .set("y1", y - 4.0)
            .set("y2", y - 4.0)
            .set("stroke", colour)
            .set("stroke-dasharray", dash)
            .set("stroke-width", 2);
        document = document
            .add(
                axes.line(curve)
                    .set("stroke", colour)
                    .set("stroke-dasharray", dash),
            )
            .add(entry)
            .add(text(LEFT + 32.0, y, &legend(curve)));
    }
    document.to_string()
}

/// Returns the legend of a curve: `CPU 1: 1000000 samples, p50 24ns, p99 31ns, p99.99 1.02us, max 7.57us`.
fn legend(curve: &Curve) -> String {
    let mut words = format!("{}: {} samples", curve.name, curve.count());
    for percentile in curve.percentiles() {
        if ["p50", "p99", "p99.99"].contains(&percentile.name) {
            words += &format!(", {} {}", percentile.name, Nanos(percentile.ns));
        }
    }
    if let Some(max) = curve.max {
        words += &format!(", max {}", Nanos(max));
    }
    words
}

/// The axes, in decades.
struct Axes {
    /// Exponents of ten, in ns, of the left and the right end.
    time: (i32, i32),
    /// The share at the bottom is 10 to the power of minus this.
    share: i32,
}

impl Axes {
    /// Returns axes on which all curves fit.
    fn around(curves: &[Curve]) -> Self {
        let lows = curves
            .iter()
            .flat_map(|c| &c.bins.buckets)
            .map(|b| b.low.max(1));
        let ends = curves.iter().filter_map(end).max();
        let most = curves.iter().map(Curve::count).max();
        let low = lows.min().unwrap_or(1).ilog10() as i32;
        let high = ends.unwrap_or(10).max(2);
        Self {
            time: (low, ((high - 1).ilog10() as i32 + 1).max(low + 1)),
            share: most.unwrap_or(1).max(2).ilog10() as i32 + 1,
        }
    }

    fn x(&self, ns: u64) -> f64 {
        let (low, high) = (f64::from(self.time.0), f64::from(self.time.1));
        let at = ((ns.max(1) as f64).log10() - low) / (high - low);
        round(LEFT + PLOT.0 * at.clamp(0.0, 1.0))
    }

    fn y(&self, share: f64) -> f64 {
        let at = -share.max(1e-300).log10() / f64::from(self.share);
        round(TOP + PLOT.1 * at.clamp(0.0, 1.0))
    }

    fn draw(&self) -> Group {
        let mut group = Group::new().add(box_at(LEFT, TOP, PLOT.0, PLOT.1, "#f6f6f6"));
        for power in self.time.0..=self.time.1 {
            let x = self.x(10u64.saturating_pow(power.unsigned_abs()));
            let label = Nanos(10u64.saturating_pow(power.unsigned_abs())).to_string();
            let label = label.replace(".00", "").replace(".0", "");
            group = group
                .add(rule((x, TOP), (x, TOP + PLOT.1)))
                .add(text(x, TOP + PLOT.1 + 16.0, &label).set("text-anchor", "middle"));
        }
        for power in 0..=self.share {
            let y = self.y(10f64.powi(-power));
            let label = match power {
                0 => "all".to_string(),
                power => format!("1 in 10^{power}"),
            };
            group = group
                .add(rule((LEFT, y), (LEFT + PLOT.0, y)))
                .add(text(LEFT - 6.0, y + 4.0, &label).set("text-anchor", "end"));
        }
        group
    }

    /// Returns a step function: a share applies from the start of its bin to the start of the next.
    fn line(&self, curve: &Curve) -> Polyline {
        let shares = curve.shares();
        let mut points = String::new();
        let mut add = |x: f64, y: f64| points += &format!("{x},{y} ");
        for (i, (low, share)) in shares.iter().enumerate() {
            let y = self.y(*share);
            let next = shares.get(i + 1).map(|next| next.0).or(end(curve));
            add(self.x(*low), y);
            add(self.x(next.unwrap_or(*low)), y);
        }
        Polyline::new()
            .set("points", points.trim_end())
            .set("fill", "none")
            .set("stroke-width", 1.5)
            .add(Title::new(legend(curve)))
    }
}

/// Returns where a curve ends: at its longest sample or, if that is unknown, at the end of its last bin.
fn end(curve: &Curve) -> Option<u64> {
    curve
        .max
        .or(curve.bins.buckets.last().map(|last| last.high))
}

fn rule(from: (f64, f64), to: (f64, f64)) -> Line {
    Line::new()
        .set("x1", from.0)
        .set("y1", from.1)
        .set("x2", to.0)
        .set("y2", to.1)
        .set("stroke", "#dddddd")
}

fn box_at(x: f64, y: f64, width: f64, height: f64, fill: &str) -> Rectangle {
    Rectangle::new()
        .set("x", x)
        .set("y", y)
        .set("width", width)
        .set("height", height)
        .set("fill", fill)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lt_proc::{Bucket, Histogram};

    fn curve(name: &str, bins: &[(u64, u64, u64)], max: u64) -> Curve {
        let bin = |&(low, high, count): &(u64, u64, u64)| Bucket { low, high, count };
        Curve {
            name: name.into(),
            bins: Histogram {
                buckets: bins.iter().map(bin).collect(),
            },
            max: Some(max),
            ..Curve::default()
        }
    }

    #[test]
    fn each_curve_has_a_line_and_a_legend_and_decades_are_marked() {
        let curves = [
            curve("ours", &[(20, 22, 990), (1000, 1152, 10)], 1100),
            curve("<rtla>", &[(1000, 2000, 100)], 90_000),
        ];
        let picture = picture("two & more", &curves);
        assert_eq!(picture.matches("<polyline").count(), 2);
        for words in [
            "two &amp; more",
            "&lt;rtla&gt;: 100 samples",
            "ours: 1000 samples",
            "100us",
            "1 in 10^4",
        ] {
            assert!(picture.contains(words), "{words}: {picture}");
        }
        assert!(!picture.contains("<rtla>") && !picture.contains("NaN"));
    }

    #[test]
    fn a_curve_steps_down_from_all_at_its_first_bin() {
        let one = curve("a", &[(10, 11, 99), (100, 112, 1)], 1000);
        let axes = Axes::around(std::slice::from_ref(&one));
        assert_eq!((axes.time, axes.share), ((1, 3), 3));
        let line = axes.line(&one).to_string();
        let (left, middle, right) = (LEFT, LEFT + PLOT.0 / 2.0, LEFT + PLOT.0);
        let low = round(TOP + PLOT.1 * 2.0 / 3.0);
        let expected = format!("{left},{TOP} {middle},{TOP} {middle},{low} {right},{low}");
        assert!(line.contains(&expected), "{line} has no {expected}");
    }

    #[test]
    fn no_curve_and_odd_curves_make_valid_pictures() {
        for curves in [
            vec![],
            vec![curve("z", &[(0, 1, 1)], 0)],
            vec![curve("m", &[(1 << 63, u64::MAX, 1)], u64::MAX)],
        ] {
            let picture = picture("x", &curves);
            assert!(
                picture.starts_with("<svg") && !picture.contains("NaN"),
                "{picture}"
            );
        }
    }
}
