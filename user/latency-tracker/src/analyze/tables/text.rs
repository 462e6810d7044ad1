// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables for a person: the rows that matter first, and the worst cases.

use lt_common::out;
use lt_model::tables::{EXACT, Kind, Table};
use lt_proc::Nanos;

use super::columns::{Value, of_rows, of_worst, row};
use super::view::{self, Report};
use crate::html::{Cells, Column};

pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Wakeup => "Woken, until running",
        Kind::Sleep => "Asleep, until woken",
        Kind::Run => "Time on CPUs",
        Kind::Preempted => "Preempted, until running again",
        Kind::Handler => "Interrupt handlers",
        Kind::Softirq => "Softirqs",
        Kind::Raise => "Softirqs, from raise to start",
        Kind::Call => "System calls",
        Kind::Queue => "Requests in the queue, from insertion to issue",
        Kind::Device => "Requests at the device, from issue to completion",
        Kind::Contention => "Contended kernel locks, until acquired",
        Kind::Futex => "Futex calls",
        Kind::Queued => "Work items, from queueing to start",
        Kind::Work => "Work items, from start to end",
        Kind::Reclaim => "Reclaim and compaction of memory",
        Kind::Backlog => "Packets in the backlog of a CPU, until received",
        Kind::Receive => "Received packets, until copied, consumed or dropped",
        Kind::Transmit => "Packets to send, until their driver has returned",
    }
}

pub(super) fn lines(report: &Report<'_>) -> Vec<String> {
    let (from, to) = report.found.range;
    let mut lines = vec![format!(
        "{} from {from} to {to}: {}",
        report.found.subject.name(),
        Nanos(to - from)
    )];
    let mut is_rounded = false;
    for table in &report.found.tables.tables {
        let missed = Report::missed(table);
        if table.rows.is_empty() && missed.is_empty() {
            continue;
        }
        lines.push(String::new());
        is_rounded |= one(report, table, &mut lines);
        for text in missed {
            lines.extend(out::wrap(&text, 0));
        }
    }
    if lines.len() == 1 {
        lines.push("no such operation in this range".into());
    }
    if is_rounded {
        lines.push(String::new());
        lines.extend(out::wrap(&format!("~ {}", rounded()), 0));
    }
    lines
}

/// Describes percentiles that are not exact.
pub(super) fn rounded() -> String {
    format!(
        "P50, P90 and P99 of more than {} durations are upper bounds, at most 1/8 too high.",
        out::thousands(EXACT as u64)
    )
}

/// Adds the lines of a table. Returns whether any percentile is an upper bound.
fn one(report: &Report<'_>, table: &Table, lines: &mut Vec<String>) -> bool {
    let (rows, count) = report.few(table);
    let what = view::grouping(table);
    let shown = match rows.len() < count {
        true => format!(", {} of {count}", rows.len()),
        false => String::new(),
    };
    lines.push(format!("{} (by {what}{shown})", title(table.kind)));
    let all = (count > 1).then_some(None);
    let shown = rows.iter().map(Some).chain(all);
    let values: Vec<_> = shown.map(|line| row(report, table, line)).collect();
    if count > 0 {
        lines.extend(drawn(&of_rows(report, table), &values));
    }
    if !table.worst.is_empty() {
        let (columns, worst) = of_worst(report, table);
        lines.push(format!("the longest {}", worst.len()));
        lines.extend(drawn(&columns, &worst));
    }
    let is_rounded = |value: &Value| matches!(value, Value::Time(Some(_), false));
    values.iter().flatten().any(is_rounded)
}

/// The lines of a table with these columns.
fn drawn(columns: &[Column], rows: &[Vec<Value>]) -> Vec<String> {
    let head = |Column(name, cells): &Column| match cells {
        Cells::Text => name.to_uppercase(),
        _ => format!(">{}", name.to_uppercase()),
    };
    let head: Vec<String> = columns.iter().map(head).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let cells = |row: &Vec<Value>| row.iter().map(Value::text).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    out::table(&head, &rows)
}
