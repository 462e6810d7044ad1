// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The page of the ABI: parameters, fields of an alert and of the event, words of args.

use crate::declaration::{Control, Field, Param, Tracker};
use crate::text::{filled, is_of_name};
use crate::types::{C, fill_in};

const HEAD: &str = "SPDX-License-Identifier: GPL-2.0 OR MIT

scripts/trackers generates this file from the declarations in rust/trackers. What it
does not have is in procfs-latency_tracker and tracepoint-latency_tracker.
";

const ABOUT: &str = "Date:\t\tNovember 2026
KernelVersion:\t7.2
Contact:\tThe latency-tracker developers
Description:
";

const USERS: &str = "Users:\t\tlatency-tracker(1), ftrace, perf, LTTng\n";

/// Width of a table, without the spaces between its columns.
const TABLE: usize = 60;

/// Names and a text.
type Row = (String, String);

/// Returns the page; `contexts` has the words for the numbers of contexts.
pub(crate) fn page(trackers: &[Tracker], contexts: &[String]) -> String {
    let entries = trackers.iter().map(|it| entry(it, contexts));
    format!("{HEAD}{}", String::from_iter(entries))
}

fn entry(tracker: &Tracker, contexts: &[String]) -> String {
    let name = &tracker.name;
    let fields = tracker.fields.iter();
    let placed = fields.filter(|it| it.ty.bits > 0 && it.when != "kept");
    let mut placed: Vec<_> = placed.collect();
    placed.sort_by_key(|it| (it.word, it.bit));
    let places = placed.iter().flat_map(|it| places_of(it, contexts));
    let places: Vec<Row> = places.collect();
    let words = match tracker.words() {
        1 => "1 word".to_owned(),
        words => format!("{words} words"),
    };
    let tail = match &tracker.tail {
        Some(tail) => format!(", and {tail} from args[{}] on", tracker.words()),
        None => String::new(),
    };
    let (what, control, event) = match &tracker.control {
        Some(control) => (
            format!("/proc/latency_tracker/<name> of the tracker {name}"),
            of_control(tracker, control),
            format!("The event latency_tracker:alert_{name} has them"),
        ),
        None => (
            format!("/sys/kernel/tracing/events/latency_tracker/alert_{name}"),
            String::new(),
            format!("The event has the fields of the tracker {name}"),
        ),
    };
    let event = prose(&format!(
        "{event} by name and type. In args of latency_tracker:alert ({words}), they are these \
         bits{tail}:"
    ));
    let places = table(&places);
    format!("\nWhat:\t\t{what}\n{ABOUT}{control}{event}{places}{USERS}")
}

/// Returns the paragraphs before the paragraph about the event.
fn of_control(tracker: &Tracker, control: &Control) -> String {
    let mut help = control.help.clone();
    if let Some(first) = help.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let name = &tracker.name;
    let mut text = prose(&format!("{help}. See Documentation/trackers/{name}.md."));
    let threshold = match control.threshold {
        ns if !ns.is_multiple_of(1_000_000) => format!("{ns} ns"),
        ns if !ns.is_multiple_of(1_000_000_000) => format!("{} ms", ns / 1_000_000),
        ns => format!("{} s", ns / 1_000_000_000),
    };
    let mut values = format!("The threshold is {threshold} by default.");
    let mut subject = "The tracker";
    if let Some(kthreads) = control.tasks {
        values += &format!(
            " The tracker has the parameters that filter tasks, kthreads={} by default.",
            u8::from(kthreads)
        );
        subject = "It";
    }
    if !control.params.is_empty() {
        values += &format!(" {subject} adds these parameters");
        if !control.params.iter().all(|param| param.is_fixed) {
            values += "; a change applies to events that begin from then on";
        }
        values += ":";
    }
    text += &prose(&values);
    if !control.params.is_empty() {
        let rows: Vec<Row> = control.params.iter().map(of_param).collect();
        text += &format!("{}\n", table(&rows));
    }
    text += &prose(
        "Alerts and lines of pending add these fields, after the common ones and before a stack:",
    );
    text += &format!("{}\n", table(&shown(tracker)));
    if !control.counters.is_empty() {
        text += &prose("stats has these counters, after `readers`:");
        let rows = control.counters.iter();
        let rows = rows.map(|(name, doc)| (name.clone(), sentence(doc)));
        text += &format!("{}\n", table(&rows.collect::<Vec<Row>>()));
    }
    text
}

fn of_param(param: &Param) -> Row {
    let access = if param.is_fixed { "RO" } else { "RW" };
    let values = match param.words.is_empty() {
        true => param.kind.clone(),
        false => format!("one of {}", param.words.join(", ")),
    };
    let Param { default, help, .. } = param;
    let more = match param.kind.as_str() {
        "duration" => "; a change also applies to earlier events",
        _ => "",
    };
    let text = format!("{access}, {values}; {default} by default: {help}{more}");
    (param.name.clone(), text)
}

/// Returns the rows about the fields of a line.
pub(crate) fn shown(tracker: &Tracker) -> Vec<Row> {
    let fields = tracker.fields.iter();
    let shown = fields.filter(|field| field.is_in_line());
    shown.map(|field| of_field(field)).collect()
}

/// Returns the row about a field in a line. Its comment may give the names.
fn of_field(field: &Field) -> Row {
    let usual = || names_of_type(field).unwrap_or(field.shown.clone());
    let (names, doc) = names_in(&field.doc).unwrap_or_else(|| (usual(), &field.doc));
    let is_flag = field.ty.name == "bool" && field.words.is_empty();
    let text = match doc.strip_prefix("Whether ") {
        Some(rest) if is_flag => sentence(&format!("1 if {rest}")),
        _ => sentence(doc),
    };
    let when = match field.when.as_str() {
        "alert" => "; not in pending",
        "end" => "; not in pending, and missing with a timeout",
        "pending" => "; only in pending",
        _ => "",
    };
    (names, text + when)
}

/// Splits the names from a comment: `` `NAME`, `NAME`: text ``.
fn names_in(doc: &str) -> Option<(String, &str)> {
    let (names, text) = doc.split_once(": ")?;
    let names: Option<Vec<&str>> = names
        .split(", ")
        .map(|name| name.strip_prefix('`')?.strip_suffix('`'))
        .map(|name| name.filter(|name| name.chars().all(is_of_name)))
        .collect();
    Some((names?.join(", "), text))
}

/// Returns the names of a field that has several in the trace event.
fn names_of_type(field: &Field) -> Option<String> {
    let C::Wide(_, rows) = &field.ty.c else {
        return None;
    };
    let rows = rows.iter().filter(|row| row.starts_with("NAME_"));
    let names = rows.filter_map(|row| {
        Some(
            row.replace("NAME", &field.name)
                .split_once(':')?
                .0
                .to_owned(),
        )
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Returns a comment as the text of a row.
fn sentence(doc: &str) -> String {
    let mut text = doc.strip_suffix('.').unwrap_or(doc).to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    text
}

/// Returns rows about where a field is in args.
fn places_of(field: &Field, contexts: &[String]) -> Vec<Row> {
    let (name, word, bit, bits) = (&field.name, field.word, field.bit, field.ty.bits);
    let words_from = |from: usize| match word + bits.div_ceil(64) - 1 {
        to if to > from => format!("args[{from}] to args[{to}]"),
        _ => format!("args[{from}]"),
    };
    let (c, value) = match &field.ty.c {
        C::Absent => return vec![(name.clone(), words_from(word) + "; not in the event")],
        C::Wide(_, rows) => {
            let (words, next) = (words_from(word), words_from(word + 1));
            let rows = rows.iter().filter_map(|row| {
                let row = fill_in(row, name, &words, &format!("args[{word}]"), &next);
                let (field, place) = row.split_once(": ")?;
                Some((field.to_owned(), place.to_owned()))
            });
            return rows.collect();
        }
        C::Number([c, .., value]) => (c, value),
    };
    let last = bit + bits - 1;
    let mut text = match bits {
        1 => format!("{c}; bit {bit} of args[{word}]"),
        _ => format!("{c}; bits {bit} to {last} of args[{word}]"),
    };
    if field.when == "pending" {
        text += "; not in the event";
    }
    let words: &[String] = match value.contains("LT_CONTEXTS") {
        true => contexts,
        false => &field.words,
    };
    for (nth, word) in words.iter().enumerate() {
        text += if nth == 0 { "; " } else { ", " };
        text += &format!("{nth} {word}");
    }
    vec![(name.clone(), text)]
}

/// Returns a paragraph.
fn prose(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    format!("\t\t{}\n\n", filled("\t\t", 62, &words))
}

/// Returns rows as a table of reStructuredText. Several names are one below the other.
fn table(rows: &[Row]) -> String {
    let all_names = rows.iter().flat_map(|(names, _)| names.split(' '));
    let width = all_names.map(str::len).max().unwrap_or(0);
    let rest = TABLE.saturating_sub(width);
    let rule = format!("\t\t{}  {}\n", "=".repeat(width), "=".repeat(rest));
    let mut table = rule.clone();
    for (names, text) in rows {
        let words: Vec<&str> = text.split(' ').collect();
        let text = filled("", rest, &words);
        let (mut names, mut lines) = (names.split(' '), text.lines());
        loop {
            let (name, line) = match (names.next(), lines.next()) {
                (None, None) => break,
                (name, line) => (name.unwrap_or(""), line.unwrap_or("")),
            };
            table += format!("\t\t{name:width$}  {line}").trim_end_matches(' ');
            table += "\n";
        }
    }
    table + &rule
}
