// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The two lists below the table: alerts, and operations in flight.

use lt_common::{disk, out};
use lt_proc::{Alert, Nanos, Pending, Reason};
use ratatui::text::{Line, Span};

use super::{bold, heading_line, is_over};
use crate::cmd::at_least;
use crate::cmd::top::rows::Row;
use crate::cmd::top::state::State;

/// Widths of the columns before `INSTANCE`.
const AGO: usize = 7;
const DELAY: usize = 9;
/// Maximum widths of an instance and of a task.
const INSTANCE: usize = 16;
const WHO: usize = 22;
/// Minimum width of the subject; on a narrow screen, the task gets less.
const WHAT: usize = 20;

/// Returns both lists, which share `room` lines. Lines that one list does not need go to the other.
pub(super) fn lines(state: &State, width: usize, room: usize) -> Vec<Line<'static>> {
    // Two headings.
    let Some(room) = room.checked_sub(2) else {
        return Vec::new();
    };
    let alerts = state.alerts();
    let pending = state.pending(room);
    // Each list has at least one line, which may show that the list is empty.
    let (many, in_flight) = (alerts.len().max(1), pending.len().max(1));
    let of_pending = in_flight.min(room.saturating_sub(many).max(room / 2));
    let of_alerts = many.min(room - of_pending);
    let pending = state.pending(of_pending);
    let narrow = Narrow::new(state, width);
    let order = if state.longest_first {
        "longest"
    } else {
        "newest"
    };
    let title = format!("ALERTS ({order} first)");
    let title = narrow.row("AGO", "DELAY", "INSTANCE", "WHO", &title);
    let mut lines = vec![heading_line(&title, width)];
    lines.extend(alerts.iter().take(of_alerts).map(|alert| {
        let ago = ago(state.time.saturating_sub(alert.time));
        let (delay, who, what) = alert_cells(alert);
        let style = if state.time.saturating_sub(alert.time) <= recent(state) {
            state.bad()
        } else {
            bold()
        };
        narrow.line(&ago, (&delay, style), &alert.instance, &who, &what, width)
    }));
    if alerts.is_empty() {
        lines.push(Line::raw("no alerts"));
    }
    let title = narrow.row("", "AGE", "INSTANCE", "WHO", "IN FLIGHT (oldest first)");
    lines.push(heading_line(&title, width));
    lines.extend(pending.iter().map(|(row, pending)| {
        let grows = if state.has_grown(row, pending) {
            "growing"
        } else {
            ""
        };
        let (age, who, what) = pending_cells(pending);
        let style = if is_over(row, Some(pending.age())) {
            state.bad()
        } else {
            bold()
        };
        narrow.line(grows, (&age, style), &row.name, &who, &what, width)
    }));
    if pending.is_empty() {
        lines.push(Line::raw(nothing(state)));
    }
    lines
}

/// The length of the last interval, ns: its alerts are highlighted.
fn recent(state: &State) -> u64 {
    u64::try_from(state.interval.as_nanos()).unwrap_or(u64::MAX)
}

fn nothing(state: &State) -> &'static str {
    let rows = state.rows();
    let any = rows.iter().any(|row| row.stats.count("pending") > 0);
    if any {
        "not read"
    } else {
        "no operation is in flight"
    }
}

/// Delay, task and subject of an alert.
pub(in crate::cmd::top) fn alert_cells(alert: &Alert) -> (String, String, String) {
    let reason = match &alert.reason {
        Reason::Threshold => String::new(),
        other => format!("{other}: "),
    };
    (
        at_least(alert.delay, &alert.fields),
        out::printable(&format!("{}/{}", alert.comm.text(), alert.tid)),
        out::printable(&format!("{reason}{}", alert.subject())),
    )
}

/// Age, task and subject of an operation in flight.
pub(in crate::cmd::top) fn pending_cells(pending: &Pending) -> (String, String, String) {
    let text = |key| pending.fields.text(key).unwrap_or_default();
    (
        at_least(pending.age(), &pending.fields),
        out::printable(&format!("{}/{}", text("comm"), text("tid"))),
        out::printable(&disk::named(&pending.subject())),
    )
}

/// The age of an event, in at most [`AGO`] characters.
pub(in crate::cmd::top) fn ago(ns: u64) -> String {
    match ns / 1_000_000_000 {
        0 => Nanos(ns).to_string(),
        s @ 1..=99 => format!("{s}s"),
        s @ 100..=5999 => format!("{}m", s / 60),
        s @ 6000..=172_799 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}

/// Widths of the columns of text.
struct Narrow {
    instance: usize,
    who: usize,
}

impl Narrow {
    fn new(state: &State, width: usize) -> Self {
        let rows: Vec<&Row> = state.rows();
        let longest = rows.iter().map(|row| row.name.chars().count()).max();
        let instance = longest.unwrap_or(0).clamp("INSTANCE".len(), INSTANCE);
        let left = width.saturating_sub(AGO + DELAY + instance + 4 + WHAT);
        Self {
            instance,
            who: left.clamp("WHO".len(), WHO),
        }
    }

    fn row(&self, ago: &str, delay: &str, instance: &str, who: &str, what: &str) -> String {
        format!(
            "{ago:>AGO$} {delay:>DELAY$} {}",
            self.rest(instance, who, what)
        )
    }

    fn rest(&self, instance: &str, who: &str, what: &str) -> String {
        let (instance, who) = (out::fit(instance, self.instance), out::fit(who, self.who));
        format!(
            "{instance:<i$} {who:<w$} {what}",
            i = self.instance,
            w = self.who
        )
    }

    fn line(
        &self,
        ago: &str,
        (delay, style): (&str, ratatui::style::Style),
        instance: &str,
        who: &str,
        what: &str,
        width: usize,
    ) -> Line<'static> {
        let rest = self.rest(instance, who, what);
        let room = width.saturating_sub(AGO + DELAY + 2);
        Line::from(vec![
            Span::raw(format!("{ago:>AGO$} ")),
            Span::styled(format!("{delay:>DELAY$} "), style),
            Span::raw(out::fit(&rest, room)),
        ])
    }
}
