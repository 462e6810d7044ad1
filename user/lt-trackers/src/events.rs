// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The trace event of each tracker's alert, for the kernel and for LTTng.

use crate::BY;
use crate::declaration::{Field, Tracker};
use crate::text::{filled, is_of_name};
use crate::types::{C, fill_in};

/// The longest line, after the tab.
const WIDTH: usize = 72;

/// Returns a header with the events that [`event`] or [`lttng_event`] returns.
pub(crate) fn header(trackers: &[Tracker], event: fn(&Tracker) -> String) -> String {
    let events: String = trackers.iter().map(event).collect();
    format!("{BY} * Included by latency_tracker.h.\n */\n{events}")
}

/// What a field adds to each part of a trace event.
#[derive(Clone)]
struct Part {
    entry: String,
    assignment: String,
    format: String,
    value: String,
}

/// Returns the trace event of a tracker's alert.
pub(crate) fn event(tracker: &Tracker) -> String {
    let name = &tracker.name;
    let mut stored: Vec<Part> = tracker.stored.iter().filter_map(|it| part(it)).collect();
    let mut printed: Vec<Part> = tracker.printed.iter().filter_map(|it| part(it)).collect();
    if let Some(tail) = &tracker.tail {
        let words = tracker.words();
        let part = Part {
            entry: format!("__dynamic_array(u64, {tail}, alert->nr_args - {words})"),
            assignment: format!(
                "memcpy(__get_dynamic_array({tail}), alert->args + {words}, \
                 (alert->nr_args - {words}) * sizeof(u64));"
            ),
            format: format!("{tail}=%s"),
            value: format!(
                "__print_array(__get_dynamic_array({tail}),\n\t\t\
                 __get_dynamic_array_len({tail}) / sizeof(u64), sizeof(u64))"
            ),
        };
        stored.push(part.clone());
        printed.push(part);
    }
    let entries: Vec<&str> = stored.iter().map(|it| it.entry.as_str()).collect();
    let assignments: Vec<&str> = stored.iter().map(|it| it.assignment.as_str()).collect();
    let formats: Vec<&str> = printed.iter().map(|it| it.format.as_str()).collect();
    let last = printed.len().saturating_sub(1);
    let mut values = Vec::new();
    for (nth, it) in printed.iter().enumerate() {
        let comma = if nth == last { "" } else { "," };
        let value = it.value.clone() + comma;
        values.extend(pieces(&value, ",", "{").into_iter().map(str::to_owned));
    }
    format!(
        "\nLT_ALERT({name},\n\t{},\n\t{},\n\t\"{}\",\n\t{}\n);\n",
        filled("\t", WIDTH, &entries),
        filled("\t", WIDTH, &assignments),
        formats.join(" "),
        filled("\t", WIDTH, &values)
    )
}

/// Returns what a field adds to the trace event; `None` if the event does not have the field.
fn part(field: &Field) -> Option<Part> {
    let name = &field.name;
    let (c, format, conversion, value) = match &field.ty.c {
        C::Absent => return None,
        C::Wide(texts, _) => {
            let texts = texts.each_ref().map(|text| in_words(text, field));
            let [entry, assignment, format, value, _] = texts;
            return Some(Part {
                entry,
                assignment,
                format,
                value,
            });
        }
        C::Number([c, format, conversion, value]) => (c, format, conversion, value),
    };
    let (mut shown, mut format) = (name, format.as_str());
    let mut value = with_x(value, &format!("__entry->{name}"));
    if !field.words.is_empty() {
        format = "%s";
        match field.words.as_slice() {
            [no, yes] if field.ty.name == "bool" => {
                shown = &field.shown;
                value = format!("{value} ? \"{yes}\" : \"{no}\"");
            }
            words => {
                value = format!("__print_symbolic({value}");
                for (nth, word) in words.iter().enumerate() {
                    value += &format!(", {{ {nth}, \"{word}\" }}");
                }
                value += ")";
            }
        }
    }
    Some(Part {
        entry: format!("__field({c}, {name})"),
        assignment: format!("__entry->{name} = {};", number(field, conversion)),
        format: format!("{shown}={format}"),
        value,
    })
}

/// Returns LTTng's event of a tracker's alert.
pub(crate) fn lttng_event(tracker: &Tracker) -> String {
    let name = &tracker.name;
    let mut enums = String::new();
    let mut fields = String::new();
    for field in &tracker.printed {
        let (of_words, all) = lttng_field(name, field);
        enums += &of_words;
        for field in pieces(&all, ")", "ctf_") {
            fields += &format!("\t{}\n", filled("\t\t", WIDTH, &pieces(field, ",", "")));
        }
    }
    if let Some(tail) = &tracker.tail {
        let words = tracker.words();
        fields += &format!(
            "\tctf_sequence_hex(u64, {tail}, alert->args + {words}, u32,\n\
             \t\talert->nr_args - {words})\n"
        );
    }
    format!("{enums}\nLT_LTTNG_ALERT({name},\n{fields})\n")
}

/// Returns two declarations: of the field's enumeration, and of the field. The first is empty if the
/// field's numbers have no words.
fn lttng_field(tracker: &str, field: &Field) -> (String, String) {
    let name = &field.name;
    let mut enumeration = String::new();
    let field = match &field.ty.c {
        C::Absent => String::new(),
        C::Wide([.., lttng], _) => in_words(lttng, field),
        C::Number([c, _, conversion, value]) if value.contains("LT_CONTEXTS") => {
            let number = number(field, conversion);
            format!("ctf_enum(latency_tracker_context, {c}, {name}, {number})")
        }
        C::Number([c, _, conversion, _]) if !field.words.is_empty() && field.ty.name != "bool" => {
            let id = format!("latency_tracker_{tracker}_{name}");
            enumeration = format!("\nLTTNG_TRACEPOINT_ENUM({id},\n\tTP_ENUM_VALUES(\n");
            for (nth, word) in field.words.iter().enumerate() {
                enumeration += &format!("\t\tctf_enum_value(\"{word}\", {nth})\n");
            }
            enumeration += "\t)\n)\n";
            let number = number(field, conversion);
            format!("ctf_enum({id}, {c}, {name}, {number})")
        }
        C::Number([c, format, conversion, _]) => {
            let is_hex = format.contains(['x', 'p']);
            let hex = if is_hex { "_hex" } else { "" };
            // LTTng requires a number for an address.
            let c = match c.as_str() {
                "void *" | "unsigned long" => "u64",
                "bool" => "u8",
                other => other,
            };
            let number = number(field, conversion);
            let number = number.strip_prefix("(void *)").unwrap_or(&number);
            format!("ctf_integer{hex}({c}, {name}, {number})")
        }
    };
    (enumeration, field)
}

/// Returns the value of a field, taken from the words of the alert.
fn number(field: &Field, conversion: &str) -> String {
    let word = format!("alert->args[{}]", field.word);
    match field.bit {
        0 => format!("{conversion}{word}"),
        bit if conversion.is_empty() => format!("{word} >> {bit}"),
        bit => format!("{conversion}({word} >> {bit})"),
    }
}

/// Replaces the names in a template of [`C::Wide`].
fn in_words(template: &str, field: &Field) -> String {
    fill_in(
        template,
        &field.name,
        &format!("alert->args + {}", field.word),
        &format!("alert->args[{}]", field.word),
        &format!("alert->args + {}", field.word + 1),
    )
}

/// Replaces the name `X`.
fn with_x(text: &str, value: &str) -> String {
    let mut out = String::new();
    for piece in text.split_inclusive(|c| !is_of_name(c)) {
        let name = piece.trim_end_matches(|c| !is_of_name(c));
        out += if name == "X" { value } else { name };
        out += &piece[name.len()..];
    }
    out
}

/// Splits a text at each space between `left` and `right`.
fn pieces<'a>(text: &'a str, left: &str, right: &str) -> Vec<&'a str> {
    let mut all = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(&format!("{left} {right}")) {
        let end = at + left.len();
        all.push(&text[start..end]);
        start = end + 1;
    }
    all.push(&text[start..]);
    all
}
