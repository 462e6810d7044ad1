// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The two lists below the table: alerts or their groups, and operations in flight.

use lt_common::{disk, out};
use lt_proc::{Alert, Nanos, Pending, Reason};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{bold, heading_line, is_over};
use crate::cli::By;
use crate::cmd::at_least;
use crate::cmd::top::columns::compact;
use crate::cmd::top::groups::{Group, Totals};
use crate::cmd::top::read::KEPT;
use crate::cmd::top::rows::Row;
use crate::cmd::top::state::State;

/// Widths of the columns before `INSTANCE`.
const AGO: usize = 7;
const DELAY: usize = 9;
/// The width of the number of operations in a group.
const COUNT: usize = 6;
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
    let narrow = Narrow::new(state, width);
    let (title, mut late) = match state.by {
        Some(by) => groups(state, by, &narrow, room),
        None => alerts(state, &narrow, room),
    };
    if late.is_empty() {
        late.push(Line::raw("no alerts"));
    }
    let pending = state.pending(room);
    // A list without operations has a line, too.
    let in_flight = pending.len().max(1);
    let of_pending = in_flight.min(room.saturating_sub(late.len()).max(room / 2));
    late.truncate(room - of_pending);
    let pending = state.pending(of_pending);
    let mut lines = vec![heading_line(&title, width)];
    lines.extend(late);
    let title = narrow.one("INSTANCE", "WHO", "IN FLIGHT (oldest first)");
    lines.push(heading_line(&row("", "AGE", &title), width));
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
        narrow.line(grows, (&age, style), &narrow.one(&row.name, &who, &what))
    }));
    if pending.is_empty() {
        lines.push(Line::raw(nothing(state)));
    }
    lines
}

/// Returns the heading of the alerts, and at most `room` lines.
fn alerts(state: &State, narrow: &Narrow, room: usize) -> (String, Vec<Line<'static>>) {
    let order = match state.longest_first {
        true => "longest",
        false => "newest",
    };
    let title = narrow.one("INSTANCE", "WHO", &format!("ALERTS ({order} first)"));
    let shown = state.alerts().into_iter().take(room);
    let lines = shown.map(|alert| {
        let (delay, who, what) = alert_cells(alert);
        let delay = (delay.as_str(), urgency(state, alert.time));
        let ago = ago(state.time.saturating_sub(alert.time));
        narrow.line(&ago, delay, &narrow.one(&alert.instance, &who, &what))
    });
    (row("AGO", "DELAY", &title), lines.collect())
}

/// Returns the heading of the groups, and at most `room` lines.
fn groups(state: &State, by: By, narrow: &Narrow, room: usize) -> (String, Vec<Line<'static>>) {
    let order = match state.longest_first {
        true => "longest delay",
        false => "longest total",
    };
    // If older alerts were dropped, the groups cover only the newest ones.
    let of = match state.older {
        0 => String::new(),
        older => format!("{KEPT} of {} alerts; ", older + KEPT as u64),
    };
    let title = format!("{} ({of}{order} first)", by.heading());
    let title = narrow.group("INSTANCE", "COUNT", "LONGEST", &title);
    let shown = state.groups(by).into_iter().take(room);
    let lines = shown.map(|group| {
        let [last, total, count, longest, what] = group_cells(&group, state.time);
        let total = (total.as_str(), urgency(state, group.totals.last));
        let rest = narrow.group(&group.instance, &count, &longest, &what);
        narrow.line(&last, total, &rest)
    });
    (row("LAST", "TOTAL", &title), lines.collect())
}

/// The style of the delay of an alert: the alerts of the last interval are highlighted.
fn urgency(state: &State, time: u64) -> Style {
    if u128::from(state.time.saturating_sub(time)) <= state.interval.as_nanos() {
        state.bad()
    } else {
        bold()
    }
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

/// Time since the last alert of a group, total, count, longest delay, and what its operations have in common.
pub(in crate::cmd::top) fn group_cells(group: &Group, now: u64) -> [String; 5] {
    let Totals {
        sum,
        last,
        is_at_least,
    } = group.totals;
    let longer = if is_at_least { ">" } else { "" };
    [
        ago(now.saturating_sub(last)),
        format!("{longer}{}", Nanos(sum.total)),
        compact(sum.count),
        format!("{longer}{}", Nanos(sum.longest)),
        group.key.text(),
    ]
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

/// The text of a line: all lists start with these two columns.
fn row(ago: &str, delay: &str, rest: &str) -> String {
    format!("{ago:>AGO$} {delay:>DELAY$} {rest}")
}

/// The width of a line, and of its columns of text.
struct Narrow {
    width: usize,
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
            width,
            instance,
            who: left.clamp("WHO".len(), WHO),
        }
    }

    /// The columns of an operation, from its instance on.
    fn one(&self, instance: &str, who: &str, what: &str) -> String {
        let (instance, who) = (out::fit(instance, self.instance), out::fit(who, self.who));
        format!(
            "{instance:<i$} {who:<w$} {what}",
            i = self.instance,
            w = self.who
        )
    }

    /// The columns of a group, from its instance on.
    fn group(&self, instance: &str, count: &str, longest: &str, what: &str) -> String {
        let instance = out::fit(instance, self.instance);
        format!(
            "{instance:<i$} {count:>COUNT$} {longest:>DELAY$} {what}",
            i = self.instance
        )
    }

    fn line(&self, ago: &str, (delay, style): (&str, Style), rest: &str) -> Line<'static> {
        let room = self.width.saturating_sub(AGO + DELAY + 2);
        Line::from(vec![
            Span::raw(format!("{ago:>AGO$} ")),
            Span::styled(format!("{delay:>DELAY$} "), style),
            Span::raw(out::fit(rest, room)),
        ])
    }
}
