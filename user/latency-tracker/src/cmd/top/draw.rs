// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Draws the screen from the state alone.
//!
//! ```text
//!   title, and what was lost
//!   table of instances, at most two fifths of the screen, or three rows on a small screen
//!   alerts, or their groups     or, after Enter, instead of these two lists:
//!   operations in flight        histogram and counters of one instance
//!   keys, or what is being typed
//! ```

mod details;
mod lists;

pub(super) use lists::{ago, alert_cells, group_cells, pending_cells};

use lt_common::out;
use lt_proc::Nanos;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::columns::{self, Layout};
use super::keys;
use super::rows::Row;
use super::state::{Graph, Prompt, State};
use crate::cli::Column;

/// The smallest supported screen: columns, lines.
const LEAST: (u16, u16) = (40, 10);

/// Minimum number of lines for the table of instances.
const LEAST_ROWS: usize = 3;

/// Draws the screen.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    let lines = lines(state, usize::from(area.width), usize::from(area.height));
    for (line, y) in lines.into_iter().zip(area.top()..area.bottom()) {
        frame.render_widget(
            line,
            Rect {
                y,
                height: 1,
                ..area
            },
        );
    }
}

fn lines(state: &State, width: usize, height: usize) -> Vec<Line<'static>> {
    let (columns, rows) = (usize::from(LEAST.0), usize::from(LEAST.1));
    if width < columns || height < rows {
        let text = format!("too small: {width}x{height}; at least {columns}x{rows}");
        return vec![Line::raw(text)];
    }
    if state.shows_help {
        return help(width, height);
    }
    let rows = state.rows();
    let mut lines = Vec::new();
    if let Some(text) = warning(state.all(), state.missed) {
        lines.push(Line::styled(out::fit(&text, width), state.warns()));
    }
    // The title, the headings and the last line take one line each.
    let room = height - lines.len() - 3;
    let shown = rows.len().min((room * 2 / 5).max(LEAST_ROWS));
    let place = state.selection().map_or(0, |(place, _)| place);
    let first = (place + 1).saturating_sub(shown);
    lines.insert(0, title(state, first, shown, rows.len()));
    lines.extend(table(state, &rows, first, shown, width));
    let room = height - lines.len() - 1;
    match state.selection() {
        Some((_, row)) if state.shows_details => {
            lines.extend(details::lines(state, row, width, room));
        }
        _ => lines.extend(lists::lines(state, width, room)),
    }
    lines.truncate(height - 1);
    lines.resize(height - 1, Line::default());
    lines.push(last_line(state));
    lines
}

/// Styles of the screen. Without colours, all of these styles are only bold.
impl State {
    fn coloured(&self, colour: Color) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.has_colour {
            style.fg(colour)
        } else {
            style
        }
    }

    fn bad(&self) -> Style {
        self.coloured(Color::Red)
    }

    fn warns(&self) -> Style {
        self.coloured(Color::Yellow)
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn heading() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

/// A heading as wide as the screen.
fn heading_line(text: &str, width: usize) -> Line<'static> {
    Line::styled(format!("{:<width$}", out::fit(text, width)), heading())
}

fn title(state: &State, first: usize, shown: usize, all: usize) -> Line<'static> {
    let instances = match shown < all {
        true => format!("{}-{} of {all} instances", first + 1, first + shown),
        false => out::plural(all, "instance"),
    };
    let whole = state.all().iter().all(|row| row.interval.is_none());
    let interval = Nanos(u64::try_from(state.interval.as_nanos()).unwrap_or(u64::MAX)).exact();
    let since = match whole {
        true => "since their start".to_string(),
        false => format!("every {interval}"),
    };
    let reversed = if state.is_reversed { ", reversed" } else { "" };
    let mut text = format!(
        "  {}  {instances}, {since}, by {}{reversed}",
        state.clock,
        state.sort.heading()
    );
    if !state.filter.is_empty() {
        text += &format!(", filter {}", out::printable(&state.filter));
    }
    let mut spans = vec![Span::styled("latency-tracker top", bold()), Span::raw(text)];
    if state.is_paused {
        spans.push(Span::styled("  PAUSED", state.warns()));
    }
    Line::from(spans)
}

/// Returns a line about instances whose cgroup is missing, and about the losses of each instance; `None` if there is
/// neither.
pub(super) fn warning(rows: &[Row], missed: u64) -> Option<String> {
    let missing = rows.iter().filter(|row| row.missing_cgroup.is_some());
    let missing: Vec<&str> = missing.map(|row| row.name.as_str()).collect();
    let missing = (!missing.is_empty()).then(|| {
        let names = missing.join(", ");
        format!("cgroup is gone (see `list NAME`): {names}")
    });
    let all: Vec<String> = missing.into_iter().chain(lost(rows, missed)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Returns a sentence about the losses of each instance.
fn lost(rows: &[Row], missed: u64) -> Option<String> {
    let one = |row: &Row| {
        let lost: Vec<String> = row.lost().map(|(key, n)| format!("{key}={n}")).collect();
        (!lost.is_empty()).then(|| format!("{} {}", row.name, lost.join(" ")))
    };
    let mut all: Vec<String> = rows.iter().filter_map(one).collect();
    if missed > 0 {
        all.push(format!(
            "{} overwritten before being read",
            out::plural(missed as usize, "alert")
        ));
    }
    (!all.is_empty()).then(|| format!("lost: {}", all.join("; ")))
}

fn table(
    state: &State,
    rows: &[&Row],
    first: usize,
    shown: usize,
    width: usize,
) -> Vec<Line<'static>> {
    let layout = Layout::with_graph(rows, width);
    let mut spans = Vec::new();
    for (column, text) in layout.headings() {
        let style = match column == state.sort {
            true => heading().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
            false => heading(),
        };
        spans.push(Span::styled(text, style));
        spans.push(Span::styled(" ".repeat(layout.gap), heading()));
    }
    if layout.graph > 0 {
        let graph = match (state.graph, layout.graph < "RATE OVER TIME".len()) {
            (Graph::P99, false) => "P99 OVER TIME",
            (Graph::P99, true) => "P99",
            (Graph::Rate, false) => "RATE OVER TIME",
            (Graph::Rate, true) => "RATE",
        };
        let graph = format!("{graph:>w$}", w = layout.graph);
        spans.push(Span::styled(graph, heading()));
    }
    spans.push(Span::styled(" ".repeat(width), heading()));
    let mut lines = vec![Line::from(spans)];
    if rows.is_empty() {
        let text = match state.all().is_empty() {
            true => super::NO_INSTANCES,
            false => "no instance passes the filter",
        };
        lines.extend(out::wrap_to(text, 0, width).into_iter().map(Line::raw));
    }
    for row in rows.iter().skip(first).take(shown) {
        lines.push(table_row(state, &layout, row, width));
    }
    lines
}

fn table_row(state: &State, layout: &Layout, row: &Row, width: usize) -> Line<'static> {
    let mut spans = Vec::new();
    for (column, text) in layout.cells(row) {
        let style = match column {
            Column::Name if row.missing_cgroup.is_some() => state.warns(),
            Column::Name => bold(),
            Column::Alerts if row.new_alerts > 0 => state.bad(),
            Column::Oldest if is_over(row, row.age()) => state.bad(),
            Column::Lost if row.lost().next().is_some() => state.warns(),
            _ => Style::new(),
        };
        spans.push(Span::styled(text, style));
        spans.push(Span::raw(" ".repeat(layout.gap)));
    }
    if layout.graph > 0 {
        let values = state.graph_of(&row.name);
        spans.push(Span::raw(columns::graph(
            &values,
            layout.graph,
            state.is_unicode,
        )));
    }
    let line = Line::from(spans);
    if state.selected.as_ref() == Some(&row.name) {
        let rest = width.saturating_sub(line.width());
        let mut line = line.patch_style(heading());
        line.push_span(Span::styled(" ".repeat(rest), heading()));
        return line;
    }
    line
}

/// Whether a time is longer than the threshold of its instance.
fn is_over(row: &Row, time: Option<u64>) -> bool {
    matches!((time, row.threshold), (Some(time), Some(threshold)) if time > threshold)
}

fn last_line(state: &State) -> Line<'static> {
    match &state.prompt {
        Some(Prompt::Filter(_)) => {
            return Line::raw(format!("filter: {}_", out::printable(&state.filter)));
        }
        Some(Prompt::Interval(text)) => {
            return Line::raw(format!("interval (500ms, 2): {}_", out::printable(text)));
        }
        None => {}
    }
    if let Some(note) = &state.note {
        return Line::styled(out::printable(note), state.warns());
    }
    let mut spans = Vec::new();
    for (key, what) in keys::FOOTER {
        spans.push(Span::styled(key, bold()));
        spans.push(Span::styled(format!("{what} "), heading()));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

/// Explains the columns.
const MEANINGS: [&str; 8] = [
    "RATE     operations that ended, per second of the last interval",
    "P50 P99  of their delays: upper bounds, at most 1/8 above the true value",
    "ALERTS   since the start of the instance, and +N in the last interval",
    "OLDEST   age of the oldest operation in flight; >: it is older than that;",
    "         ~: read some time ago, since reading it takes a long time",
    "LOST     counters of losses since the start; shown if one is not 0",
    "TOTAL    delay of late operations, each once; >: the true sum is greater",
    "growing  the operation was in flight one interval ago, too",
];

fn help(width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![heading_line("Keys (any key goes back)", width)];
    for (key, what) in keys::HELP {
        lines.push(Line::from(vec![
            Span::styled(format!("  {key:<14}"), bold()),
            Span::raw(what),
        ]));
    }
    lines.push(heading_line("Columns", width));
    lines.extend(MEANINGS.map(|text| Line::raw(format!("  {text}"))));
    lines.truncate(height);
    lines
}
