// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tables for a person: the rows that matter first, and the worst cases.

use lt_common::out;
use lt_model::tables::{EXACT, Kind, Row, Table};
use lt_proc::Nanos;

use super::view::{self, Report};

pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Wakeup => "Woken, until running",
        Kind::Run => "Time on CPUs",
        Kind::Preempted => "Preempted, until running again",
        Kind::Handler => "Interrupt handlers",
        Kind::Softirq => "Softirqs",
        Kind::Raise => "Softirqs, from raise to start",
        Kind::Call => "System calls",
        Kind::Queue => "Requests in the queue, from insertion to issue",
        Kind::Device => "Requests at the device, from issue to completion",
        Kind::Contention => "Contended kernel locks, until acquired",
        Kind::Futex => "Calls of futex",
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
        lines.extend(out::wrap(
            &format!(
                "~ P50, P90 and P99 of more than {} durations are upper bounds, at most 1/8 too high.",
                out::thousands(EXACT as u64)
            ),
            0,
        ));
    }
    lines
}

/// Adds the lines of a table. Returns whether any percentile is an upper bound.
fn one(report: &Report<'_>, table: &Table, lines: &mut Vec<String>) -> bool {
    let (rows, count) = report.few(table);
    let what = view::grouping(table);
    let shown = match rows.len() < count {
        true => format!(", {} of {count}", rows.len()),
        false => String::new(),
    };
    lines.push(format!("{}, by {what}{shown}", title(table.kind)));
    let (runs, is_divided) = (table.kind == Kind::Run, report.args.interval.is_some());
    let extras = view::extras(table.kind).iter();
    let extras: Vec<_> = extras
        .filter(|(_, which)| table.whole.extra(*which) > 0)
        .collect();
    let upper = |text: &str| format!(">{}", text.to_uppercase());
    let mut head: Vec<String> = Vec::new();
    if is_divided {
        head.push(">FROM".into());
    }
    head.push(if runs { ">TIME".into() } else { ">SUM".into() });
    if runs {
        head.push(">%".into());
    }
    head.push(if runs {
        ">RUNS".into()
    } else {
        ">COUNT".into()
    });
    if !runs {
        head.push(">MIN".into());
    }
    head.extend([">P50", ">P90", ">P99", ">MAX"].map(String::from));
    head.extend(extras.iter().map(|(name, _)| upper(name)));
    head.push(what.to_uppercase());
    let cells = |row: &Row, share: Option<f64>, interval: String, name: String| {
        let sums = &row.sums;
        let mark = if sums.is_exact() { "" } else { "~" };
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| Nanos(ns).to_string());
        let some = |ns| time((sums.count > 0).then_some(ns));
        let percentile = |percent| match sums.percentile(percent) {
            Some(ns) => format!("{mark}{}", Nanos(ns)),
            None => "-".into(),
        };
        let mut cells = Vec::new();
        if is_divided {
            cells.push(interval);
        }
        cells.push(Nanos(sums.sum).to_string());
        if runs {
            cells.push(share.map_or_else(String::new, |share| format!("{:.1}", share * 100.0)));
        }
        cells.push(sums.count.to_string());
        if !runs {
            cells.push(some(sums.least));
        }
        cells.extend([50, 90, 99].map(percentile));
        cells.push(some(sums.most));
        cells.extend(
            extras
                .iter()
                .map(|(_, which)| row.extra(*which).to_string()),
        );
        cells.push(name);
        cells
    };
    let mut table_rows: Vec<Vec<String>> = Vec::new();
    let mut is_rounded = false;
    for line in &rows {
        is_rounded |= !line.row.sums.is_exact();
        let share = report.share(table, line);
        table_rows.push(cells(
            line.row,
            share,
            line.interval.to_string(),
            line.name.clone(),
        ));
    }
    if count > 1 {
        is_rounded |= !table.whole.sums.is_exact();
        table_rows.push(cells(&table.whole, None, String::new(), "all".into()));
    }
    if count > 0 {
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        lines.extend(out::table(&head, &table_rows));
    }
    worst(report, table, lines);
    is_rounded
}

/// Adds the lines of the worst cases.
fn worst(report: &Report<'_>, table: &Table, lines: &mut Vec<String>) {
    if table.worst.is_empty() {
        return;
    }
    let has_object = table.worst.iter().any(|case| case.object.is_some());
    let has_thread = table.worst.iter().any(|case| case.thread.is_some());
    let mut head = vec![">TOOK", ">FROM", ">TO", ">CPU"];
    if has_thread {
        head.push("THREAD");
    }
    if has_object {
        head.push("WHAT");
    }
    let row = |case: &lt_model::tables::Case| {
        let mut cells = vec![
            Nanos(case.took()).to_string(),
            case.begin.to_string(),
            case.end.to_string(),
            case.cpu.to_string(),
        ];
        if has_thread {
            cells.push(report.who(case));
        }
        if has_object {
            let object = case.object.map(|object| report.object(object));
            cells.push(object.unwrap_or_default());
        }
        cells
    };
    let rows: Vec<_> = table.worst.iter().map(row).collect();
    lines.push(format!("the longest {}", rows.len()));
    lines.extend(out::table(&head, &rows));
}
